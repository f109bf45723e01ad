/* What goes wrong with answers: what a bad status means, and the words that say so. */
#include "coreengine/model/wire/wire_internal.h"

enum rv_llm_error wire_fault_kind(int status, bool *retryable)
{
    static const struct {
        int status;
        enum rv_llm_error kind;
        bool retryable;
    } table[] = {
        {401, RV_LLM_ERROR_AUTH, false},
        {402, RV_LLM_ERROR_RATE_LIMITED, false}, /* the money is used up */
        {403, RV_LLM_ERROR_AUTH, false},
        {407, RV_LLM_ERROR_AUTH, false}, /* of a proxy */
        {408, RV_LLM_ERROR_TIMEOUT, true},
        {409, RV_LLM_ERROR_OVERLOADED, true}, /* a lock is held */
        {413, RV_LLM_ERROR_CONTEXT_TOO_LONG, false},
        {429, RV_LLM_ERROR_RATE_LIMITED, true},
        {504, RV_LLM_ERROR_TIMEOUT, true},
    };

    for (size_t i = 0; i < RV_COUNT(table); i++) {
        if (table[i].status == status) {
            *retryable = table[i].retryable;
            return table[i].kind;
        }
    }
    *retryable = status >= 500;
    if (status >= 500)
        return RV_LLM_ERROR_OVERLOADED;
    return status >= 400 ? RV_LLM_ERROR_BAD_REQUEST : RV_LLM_ERROR_PROTOCOL;
}

bool wire_says_error(json_object *body)
{
    json_object *error = rv_json_member(body, "error");

    switch (json_object_get_type(error)) {
    case json_type_null:
        return false;
    case json_type_boolean:
        return json_object_get_boolean(error);
    case json_type_string:
        return rv_json_str(error).len > 0;
    case json_type_object:
        return json_object_object_length(error) > 0;
    case json_type_array:
        return json_object_array_length(error) > 0;
    case json_type_int:
    case json_type_double:
        break;
    }
    return true;
}

void wire_show(rv_str bytes, rv_buf *out)
{
    size_t i = 0, limit = bytes.len < WIRE_MAX_SHOWN ? bytes.len : WIRE_MAX_SHOWN;
    bool blank = true; /* nothing yet, or a blank: no further one */

    while (i < limit) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        size_t left = bytes.len - i, n = rv_utf8_control(bytes.ptr + i, left);
        if (c == ' ' || n > 0) {
            if (!blank)
                rv_buf_putc(out, ' ');
            blank = true;
            i += n > 0 ? n : 1;
            continue;
        }
        n = 1;
        if (c >= 0x80) {
            n = 2;
            while (n <= 4 && n <= left && !rv_utf8_valid((rv_str){bytes.ptr + i, n}, NULL))
                n++;
            if (n > 4 || n > left) {
                rv_buf_putc(out, '?');
                blank = false;
                i++;
                continue;
            }
        }
        rv_buf_add(out, bytes.ptr + i, n);
        blank = false;
        i += n;
    }
    if (bytes.len > limit)
        rv_buf_puts(out, "...");
}

void wire_name_target(const struct rv_wire_target *t, rv_buf *out)
{
    rv_buf_printf(out, "%s:%s", t->provider ? t->provider : "model", t->model ? t->model : "?");
}
