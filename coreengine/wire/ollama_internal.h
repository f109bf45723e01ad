/* Shared by the files of the Ollama wire only. */
#ifndef RV_WIRE_OLLAMA_INTERNAL_H
#define RV_WIRE_OLLAMA_INTERNAL_H

#include "coreengine/wire/wire_internal.h"

/** The string under key; empty for anything else. */
static inline rv_str rv_ollama_text(json_object *obj, const char *key)
{
    json_object *part = NULL;

    return json_object_object_get_ex(obj, key, &part) ? rv_json_str(part) : (rv_str){NULL, 0};
}

/* ollama_stream.c */
RV_MUST_CHECK int rv_ollama_line(rv_wire_reader *r, rv_str name, rv_str data, rv_err **err);
RV_MUST_CHECK int rv_ollama_whole(rv_wire_reader *r, json_object *reply, rv_err **err);
void rv_ollama_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text);

#endif
