/* Shared by the files of the Anthropic wire only. */
#ifndef RV_WIRE_ANTHROPIC_INTERNAL_H
#define RV_WIRE_ANTHROPIC_INTERNAL_H

#include "coreengine/model/wire/wire_internal.h"

/* anthropic_messages.c */
/** The members "system" and "messages". ask: the schema that the prompt has to ask for in words; NULL: none. */
RV_MUST_CHECK int rv_anthropic_messages(const struct rv_wire_target *t, json_object *request, json_object *ask,
                                        rv_jw *w, rv_err **err);

/* anthropic_stream.c */
RV_MUST_CHECK int rv_anthropic_event(rv_wire_reader *r, rv_str name, rv_str data, rv_err **err);
RV_MUST_CHECK int rv_anthropic_whole(rv_wire_reader *r, json_object *reply, rv_err **err);

/* anthropic_fault.c */
void rv_anthropic_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text);

#endif
