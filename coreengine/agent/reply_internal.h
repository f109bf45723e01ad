/* Shared by the files about a model's reply: visit_reply.c, reply_calls.c, reply_output.c, reply_events.c. */
#ifndef RV_REPLY_INTERNAL_H
#define RV_REPLY_INTERNAL_H

#include "coreengine/agent/agent_internal.h"

#define REPLY_HEAD_BYTES 80 /* of a reply that an error shows */

/* visit_reply.c */
/** The attempt failed: try again if that may help, else the stage fails. Takes cause. */
RV_MUST_CHECK int rv_reply_failed(rv_visit *v, const char *type, bool retryable, rv_err *cause, struct rv_effects *out,
                                  rv_err **err);

/* reply_calls.c; calls: as rv_reply_calls() gives them */
/** The calls of a reply as an array, the caller's; NULL: none. RV_E_PARSE: the member is not a list of calls, which is
 * a fault of the provider. */
RV_MUST_CHECK int rv_reply_calls(const struct rv_event *ev, json_object **out, rv_err **cause);
/** A member of a call; borrowed, empty if it is not there. */
rv_str rv_reply_call_text(json_object *call, const char *key);
/** Arguments as an object, the caller's; RV_E_PARSE and RV_E_INVALID say why they are none. */
RV_MUST_CHECK int rv_reply_arguments(const rv_visit *v, rv_str text, json_object **out, rv_err **cause);
/** The call by which the model hands over its output, or NULL; borrowed. calls may be NULL. */
json_object *rv_reply_output_call(json_object *calls);
/** The calls become the steps of the tool machine. */
RV_MUST_CHECK int rv_reply_act(rv_visit *v, const struct rv_event *ev, json_object *calls, rv_err **err);
/** The model called tools that it was not offered: the attempt failed. */
RV_MUST_CHECK int rv_reply_unasked(rv_visit *v, json_object *calls, struct rv_effects *out, rv_err **err);

/* reply_output.c */
/** The output of a stage with output_schema. calls: NULL, or with one that hands it over. */
RV_MUST_CHECK int rv_reply_structured(rv_visit *v, const struct rv_event *ev, json_object *calls,
                                      struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int rv_reply_plain(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* reply_events.c */
/** calls: their names are told; NULL: none. spent_before: micro-dollars, before this reply was paid for. */
void rv_reply_emit(rv_visit *v, const struct rv_event *ev, json_object *calls, int64_t spent_before,
                   struct rv_effects *out);
/** An answer that is good, but ended because it reached its longest; nothing for others. */
void rv_reply_warn_of_cut(rv_visit *v, const struct rv_event *ev, struct rv_effects *out);
void rv_reply_emit_repair(rv_visit *v, const char *why, struct rv_effects *out);

#endif
