/* JSON of an answer: a value of the stream, or the provider's message about an error in the middle of the stream. */
#include "coreengine/model/wire/wire_internal.h"

int rv_reader_json(rv_wire_reader *r, rv_str text, json_object **out, rv_err **err)
{
    /* What servers write is taken as every other client takes it: the last of equal keys, big counters as they are. */
    static const struct rv_json_opts opts = {.max_bytes = WIRE_MAX_WHOLE, .allow_duplicates = true, .what = "its JSON"};
    rv_buf marked = RV_BUF_INIT(WIRE_MAX_WHOLE), shown = RV_BUF_INIT(WIRE_MAX_WHY / 2);
    json_object *value = NULL;
    rv_err *why = NULL;
    int rc;

    *out = NULL;
    rv_half_mark(text, &marked, &r->has_halves);
    rc = rv_buf_check(&marked, "an event", &why);
    if (rc == 0)
        rc = rv_json_parse(r->has_halves ? rv_buf_str(&marked) : text, &opts, &value, &why);
    if (rc < 0 || !json_object_is_type(value, json_type_object))
        rv_wire_show(text, &shown);
    if (rv_err_is(why, RV_E_NOMEM) || shown.rc == RV_E_NOMEM) { /* also where only the words found none */
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory to read an answer");
    } else if (rc < 0) {
        rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer can not be understood: %s: %s", rv_err_text(why),
                        rv_buf_cstr(&shown));
        rc = 0;
    } else if (!json_object_is_type(value, json_type_object)) {
        rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer can not be understood: no JSON object: %s",
                        rv_buf_cstr(&shown));
    } else {
        *out = value;
        value = NULL;
    }
    json_object_put(value);
    rv_buf_fini(&marked);
    rv_buf_fini(&shown);
    rv_err_free(why);
    return rc;
}

int rv_reader_fault(rv_wire_reader *r, json_object *body, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_WIRE_MAX_ERROR), shown = RV_BUF_INIT(WIRE_MAX_WHY / 2);
    int kind = RV_LLM_ERROR_OVERLOADED, rc;
    bool retryable = true;

    r->codec->fault(body, 0, &kind, &retryable, &text);
    rv_wire_show(rv_buf_str(&text), &shown);
    rc = text.rc == RV_E_NOMEM ? rv_buf_check(&text, "a provider's error", err)
                               : rv_buf_check(&shown, "a provider's error", err);
    if (rc == 0) {
        rv_reader_break(r, (enum rv_llm_error)kind, "the provider broke off: %s",
                        shown.len ? rv_buf_cstr(&shown) : "it does not say why");
        r->broken_for_good = !retryable;
    }
    rv_buf_fini(&text);
    rv_buf_fini(&shown);
    return rc;
}
