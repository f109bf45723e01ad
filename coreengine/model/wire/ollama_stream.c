/* The answers of Ollama: one object a line, the last with "done". Tool calls come whole, their arguments as objects. */
#include <string.h>

#include "coreengine/model/wire/ollama_internal.h"

static int write_arguments(rv_wire_reader *r, struct wire_call *c, json_object *arguments, rv_err **err)
{
    if (json_object_is_type(arguments, json_type_string))
        return rv_reader_arguments(r, c, rv_json_str(arguments), err); /* what others write that speak like it */
    if (!arguments)
        return rv_reader_arguments(r, c, RV_STR_LIT("{}"), err);
    return rv_reader_arguments_object(r, c, arguments, err);
}

static int read_call(rv_wire_reader *r, json_object *call, rv_err **err)
{
    json_object *function = rv_json_get_obj(call, "function"), *arguments = NULL;
    struct wire_call *c;
    int rc;

    if (!function)
        return 0;
    c = rv_reader_call(r, -1, &rc, err);
    if (!c)
        return rc;
    rv_buf_add_str(&c->id, rv_wire_text(call, "id"));
    rv_buf_add_str(&c->name, rv_wire_text(function, "name"));
    rc = rv_reader_call_starts(r, c, err);
    if (rc < 0 || r->is_broken)
        return rc;
    json_object_object_get_ex(function, "arguments", &arguments);
    rc = write_arguments(r, c, arguments, err);
    if (rc == 0 && !r->is_broken)
        rv_reader_call_ends(r, c);
    return rc;
}

static int read_message(rv_wire_reader *r, json_object *message, rv_err **err)
{
    json_object *calls = rv_json_get_arr(message, "tool_calls");
    size_t n = calls ? json_object_array_length(calls) : 0;
    int rc = rv_reader_thinking(r, rv_wire_text(message, "thinking"), err);

    if (rc == 0 && !r->is_broken)
        rc = rv_reader_text(r, rv_wire_text(message, "content"), err);
    for (size_t i = 0; rc == 0 && i < n && !r->is_broken; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        if (json_object_is_type(call, json_type_object))
            rc = read_call(r, call, err);
    }
    return rc;
}

static int64_t count_of(json_object *line, const char *key)
{
    int64_t n = 0;

    return rv_json_get_int(line, key, &n) && n > 0 ? n : 0;
}

static void read_end(rv_wire_reader *r, json_object *line)
{
    rv_str reason = rv_wire_text(line, "done_reason");
    struct rv_usage totals = {.input_tokens = count_of(line, "prompt_eval_count"),
                              .output_tokens = count_of(line, "eval_count")};

    if (totals.input_tokens || totals.output_tokens)
        rv_reader_usage(r, &totals);
    if (rv_str_is(reason, "length"))
        rv_reader_finish(r, RV_FINISH_LENGTH);
    else if (rv_str_is(reason, "stop") || !reason.len) /* older servers give none */
        rv_reader_finish(r, RV_FINISH_STOP);
    else
        rv_reader_finish(r, RV_FINISH_OTHER);
    r->saw_end = true;
}

int rv_ollama_whole(rv_wire_reader *r, json_object *reply, rv_err **err)
{
    json_object *message = rv_json_get_obj(reply, "message"), *error = NULL;
    bool is_done = false;
    int rc = 0;

    if (json_object_object_get_ex(reply, "error", &error) && error)
        return rv_reader_fault(r, reply, err);
    if (message)
        rc = read_message(r, message, err);
    if (rc == 0 && !r->is_broken && rv_json_get_bool(reply, "done", &is_done) && is_done)
        read_end(r, reply);
    return rc;
}

int rv_ollama_line(rv_wire_reader *r, rv_str name, rv_str data, rv_err **err)
{
    json_object *line = NULL;
    int rc = rv_reader_json(r, data, &line, err);

    (void)name; /* lines have none */
    if (rc == 0 && line)
        rc = rv_ollama_whole(r, line, err);
    json_object_put(line);
    return rc;
}

/* The text by which Ollama says that the prompt is too long; there is no code for it. */
static const char *const too_long[] = {"context length",  "context size",       "context window",
                                       "prompt too long", "prompt is too long", "input too long"};

void rv_ollama_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text)
{
    json_object *inner = body ? rv_json_get_obj(body, "error") : NULL;

    (void)status; /* says all there is to say */
    if (!body)
        return;
    rv_buf_add_str(text, inner ? rv_wire_text(inner, "message") : rv_wire_text(body, "error"));
    for (size_t i = 0; i < RV_COUNT(too_long); i++) {
        if (strcasestr(rv_buf_cstr(text), too_long[i])) {
            *kind = RV_LLM_ERROR_CONTEXT_TOO_LONG;
            *retryable = false;
        }
    }
}
