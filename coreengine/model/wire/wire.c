/* The three wires: requests out, answers and errors in, each by the codec of its target. */
#include "coreengine/model/wire/wire_internal.h"

static const struct {
    const char *path;
    const struct wire_codec *codec;
} wires[] = {
    [RV_WIRE_OPENAI] = {"/chat/completions", &wire_of_openai},
    [RV_WIRE_ANTHROPIC] = {"/v1/messages", &wire_of_anthropic},
    [RV_WIRE_OLLAMA] = {"/api/chat", &wire_of_ollama},
};
RV_EACH_HAS_ROW(wires, RV_N_WIRES);

const char *rv_wire_path(enum rv_wire_kind wire)
{
    return wires[wire].path;
}

unsigned rv_wire_takes(enum rv_wire_kind wire)
{
    return wires[wire].codec->takes;
}

const struct wire_codec *wire_codec_of(enum rv_wire_kind wire)
{
    return wires[wire].codec;
}

int rv_wire_write_request(const struct rv_wire_target *t, json_object *request, rv_buf *body, rv_err **err)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    struct wire_output output;
    rv_jw w = rv_jw_on(body);

    if (t->no_tools && tools && json_object_array_length(tools) > 0)
        return RV_FAIL(err, RV_E_INVALID, "model \"%s\" cannot call tools", t->model);
    int rc = wire_parts_check(t, wires[t->wire].codec->takes, request, err);
    if (rc < 0)
        return rc;
    rc = wire_body_output(t, request, &output, err);
    if (rc == 0)
        rc = wires[t->wire].codec->request(t, request, &output, &w, err);
    json_object_put(output.schema);
    return rc < 0 ? rc : rv_buf_check(body, "the body of a model request", err);
}

/* --- answers with a bad status --- */

/* The error object of a body; NULL: it has none. Some put it into a list. */
static int read_object(rv_str body, json_object **out, rv_err **err)
{
    static const struct rv_json_opts opts = {.max_bytes = RV_WIRE_MAX_ERROR, .allow_duplicates = true};
    json_object *value = NULL, *found = NULL;
    int rc = rv_json_try_parse(body, &opts, &value, err);

    if (rc < 0)
        return rc;
    if (json_object_is_type(value, json_type_array) && json_object_array_length(value) > 0)
        found = json_object_array_get_idx(value, 0);
    else
        found = value;
    *out = json_object_is_type(found, json_type_object) ? json_object_get(found) : NULL;
    json_object_put(value);
    return 0;
}

static void say(const struct rv_wire_target *t, int status, rv_str content_type, rv_str words, rv_buf *out)
{
    wire_name_target(t, out);
    rv_buf_printf(out, " answered with status %d", status);
    if (content_type.len) {
        rv_buf_puts(out, " (");
        wire_show(content_type, out);
        rv_buf_puts(out, ")");
    }
    rv_buf_puts(out, words.len ? ": " : " and no text");
    wire_show(words, out);
}

int rv_wire_read_fault(const struct rv_wire_target *t, int status, rv_str content_type, rv_str body,
                       struct rv_llm_reply *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_WIRE_MAX_ERROR), message = RV_BUF_INIT(WIRE_MAX_WHY);
    json_object *object = NULL;
    bool retryable = false;
    int kind = (int)wire_fault_kind(status, &retryable), rc;

    rv_llm_reply_init(out);
    if (body.len > RV_WIRE_MAX_ERROR)
        body.len = RV_WIRE_MAX_ERROR;
    rc = read_object(body, &object, err);
    if (rc == 0 && object)
        wire_codec_of(t->wire)->fault(object, status, &kind, &retryable, &text);
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
