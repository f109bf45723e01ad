/* Answers with a bad status: what they mean and what they say. */
#include "coreengine/model/wire/wire_internal.h"

enum rv_llm_error rv_fault_kind(int status, bool *retryable)
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

/* The error object of a body; NULL: it has none. Some put it into a list. */
static int read_object(rv_str body, json_object **out, rv_err **err)
{
    static const struct rv_json_opts opts = {.max_bytes = RV_WIRE_MAX_ERROR, .allow_duplicates = true};
    json_object *value = NULL, *found = NULL;
    int rc = rv_json_parse(body, &opts, &value, NULL);

    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to read an error");
    if (rc == 0 && json_object_is_type(value, json_type_array) && json_object_array_length(value) > 0)
        found = json_object_array_get_idx(value, 0);
    else if (rc == 0)
        found = value;
    *out = json_object_is_type(found, json_type_object) ? json_object_get(found) : NULL;
    json_object_put(value);
    return 0;
}

static void say(const struct rv_wire_target *t, int status, rv_str content_type, rv_str words, rv_buf *out)
{
    rv_wire_name_target(t, out);
    rv_buf_printf(out, " answered with status %d", status);
    if (content_type.len) {
        rv_buf_puts(out, " (");
        rv_wire_show(content_type, out);
        rv_buf_puts(out, ")");
    }
    rv_buf_puts(out, words.len ? ": " : " and no text");
    rv_wire_show(words, out);
}

int rv_wire_fault(const struct rv_wire_target *t, int status, rv_str content_type, rv_str body,
                  struct rv_llm_reply *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_WIRE_MAX_ERROR), message = RV_BUF_INIT(WIRE_MAX_WHY);
    json_object *object = NULL;
    bool retryable = false;
    int kind = (int)rv_fault_kind(status, &retryable), rc;

    rv_llm_reply_init(out);
    if (body.len > RV_WIRE_MAX_ERROR)
        body.len = RV_WIRE_MAX_ERROR;
    rc = read_object(body, &object, err);
    if (rc == 0 && object)
        rv_wire_codec(t->wire)->fault(object, status, &kind, &retryable, &text);
    if (rc == 0 && text.rc == RV_E_NOMEM)
        rc = rv_buf_check(&text, "a provider's error", err);
    if (rc == 0) {
        if (text.len)
            say(t, status, (rv_str){NULL, 0}, rv_buf_str(&text), &message);
        else
            say(t, status, content_type, body, &message);
        rc = rv_buf_check(&message, "a provider's error", err);
    }
    if (rc == 0) {
        rv_llm_reply_fail(out, (enum rv_llm_error)kind, "%s", rv_buf_cstr(&message));
        out->retryable = retryable && rv_llm_error_is_retryable((enum rv_llm_error)kind);
        out->answer.may_be_billed = status == 504; /* behind the gateway it may have been answered */
        rc = rv_buf_check(&out->error, "a provider's error", err);
    }
    if (rc < 0)
        rv_llm_reply_fini(out);
    json_object_put(object);
    rv_buf_fini(&text);
    rv_buf_fini(&message);
    return rc;
}
