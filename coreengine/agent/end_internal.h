/* Shared by the files about a visit's end: end_outcome.c, end_ask.c, end_failure.c, visit_end.c. */
#ifndef RV_END_INTERNAL_H
#define RV_END_INTERNAL_H

#include "coreengine/agent/agent_internal.h"

/* end_outcome.c */
/** The text of the first of two members of an output that is there; second may be NULL. Borrowed; NULL: neither. */
const char *rv_end_text(json_object *output, const char *first, const char *second);
/** Take back what was stored, so that a rejected output is not seen (W25). */
RV_MUST_CHECK int rv_end_restore(rv_visit *v, rv_err **err);

/* end_ask.c */
/** Ask what the output wants to know, and stay. kind: CLARIFY or CONFIRM. */
RV_MUST_CHECK int rv_end_ask(rv_visit *v, enum rv_outcome kind, struct rv_effects *out, rv_err **err);
/** Go on from an approval to `clarification`. */
RV_MUST_CHECK int rv_end_ask_next(rv_visit *v, rv_err **err);
/** error_next leads to a person: ask about the failure. kind: CLARIFICATION or CONFIRMATION. */
RV_MUST_CHECK int rv_end_ask_after_failure(rv_visit *v, enum rv_interrupt_kind kind, rv_err **err);

/* visit_end.c */
/** Rows and history of a visit that is over. */
RV_MUST_CHECK int rv_end_record(rv_visit *v, enum rv_history_status status, struct rv_effects *out, rv_err **err);
/** next: the stage that follows; NULL: none. */
void rv_end_emit_completed(rv_visit *v, const char *status, const char *next, struct rv_effects *out);
void rv_end_emit_decision(rv_visit *v, int to, enum rv_route_by by, struct rv_effects *out);

#endif
