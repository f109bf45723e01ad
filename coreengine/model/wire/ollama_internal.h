/* Shared by the files of the Ollama wire only. */
#ifndef RV_WIRE_OLLAMA_INTERNAL_H
#define RV_WIRE_OLLAMA_INTERNAL_H

#include "coreengine/model/wire/wire_internal.h"

/* ollama_stream.c */
RV_MUST_CHECK int rv_ollama_line(rv_wire_reader *r, rv_str name, rv_str data, rv_err **err);
RV_MUST_CHECK int rv_ollama_whole(rv_wire_reader *r, json_object *reply, rv_err **err);
void rv_ollama_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text);

#endif
