/* Ollama's own chat protocol: requests out, answers in.
 *
 * It forces no tool, reads no references in a tool's parameters and knows no failed result; a prompt that is too long
 * for the context is refused, not cut, as we ask it to. An answer has one object a line, the last with "done"; tool
 * calls come whole, their arguments as objects. */
#include <json-c/linkhash.h>
#include <string.h>

#include "coreengine/model/wire/wire_internal.h"

struct writer {
    const struct rv_wire_target *t;
    rv_jw *w;
    json_object *ask;         /* the schema that the prompt asks for in words; NULL: none */
    json_object *attachments; /* of the prompt, images as data; NULL: none */
};

/* --- messages --- */

static void write_images(const struct writer *x)
{
    rv_jw_key(x->w, "images");
    rv_jw_arr(x->w);
    for (size_t i = 0; i < json_object_array_length(x->attachments); i++)
        rv_jw_str(x->w, wire_parts_at(x->attachments, i).data);
    rv_jw_arr_end(x->w);
}

static int write_message(void *self, const char *role, json_object *message, rv_str content, rv_err **err)
{
    const struct writer *x = self;
    json_object *calls = message ? rv_json_get_arr(message, "tool_calls") : NULL;
    int rc = 0;

    rv_jw_obj(x->w);
    rv_jw_kv_text(x->w, "role", role);
    if (!message && x->ask && rv_str_is(rv_str_of(role), "user"))
        rc = wire_body_write_prompt(content, x->ask, x->w, err);
    else
        rv_jw_kv_str(x->w, "content", content);
    if (!message && x->attachments && rv_str_is(rv_str_of(role), "user"))
        write_images(x);
    if (rc == 0 && calls && json_object_array_length(calls))
        rc = wire_body_write_calls(x->t, NULL, calls, x->w, err);
    if (message && rv_str_is(rv_str_of(role), "tool")) {
        rv_jw_kv_str(x->w, "tool_name", wire_text(message, "name"));
        rv_jw_kv_str(x->w, "tool_call_id", wire_text(message, "tool_call_id"));
    }
    rv_jw_obj_end(x->w);
    return rc;
}

static int write_tools(const struct writer *x, json_object *request, json_object *output_schema, rv_err **err)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    int rc = output_schema ? wire_body_check_output_tool(output_schema, err) : 0;

    if (rv_str_is(wire_text(request, "tool_choice"), "none"))
        tools = NULL; /* the only way to say it */
    if (rc < 0 || (!output_schema && (!tools || json_object_array_length(tools) == 0)))
        return rc;
    return wire_body_key(x->t, x->w, "tools") ? wire_body_write_tools(x->t, tools, output_schema, x->w, err) : 0;
}

/* --- the rest --- */

/* The target's options stand beside ours, and over them. */
static void write_options(const struct writer *x, json_object *options)
{
    static const struct {
        const char *key;
        bool is_sampling;
    } known[] = {{"num_predict", false}, {"num_ctx", false}, {"temperature", true}, {"seed", true}};
    json_object *extra = x->t->extra_body ? rv_json_get_obj(x->t->extra_body, "options") : NULL;

    rv_jw_key(x->w, "options");
    rv_jw_obj(x->w);
    for (size_t i = 0; options && i < RV_COUNT(known); i++) {
        json_object *value = NULL;
        if (known[i].is_sampling && x->t->no_sampling)
            continue;
        if (extra && json_object_object_get_ex(extra, known[i].key, NULL))
            continue;
        if (json_object_object_get_ex(options, known[i].key, &value) && value)
            rv_jw_kv_value(x->w, known[i].key, value);
    }
    if (extra) {
        json_object_object_foreach (extra, name, value) {
            rv_jw_kv_value(x->w, name, value);
        }
    }
    rv_jw_obj_end(x->w);
}

static void write_extra(const struct writer *x)
{
    if (!x->t->extra_body)
        return;
    json_object_object_foreach (x->t->extra_body, name, value) {
        if (!rv_str_is(rv_str_of(name), "options"))
            rv_jw_kv_value(x->w, name, value);
    }
}

static int write_request(const struct rv_wire_target *t, json_object *request, struct wire_output *output, rv_jw *w,
                         rv_err **err)
{
    struct writer x = {t, w, output->via == WIRE_VIA_PROMPT ? output->schema : NULL, wire_parts_of(request)};
    int rc;

    rv_jw_obj(w);
    if (wire_body_key(t, w, "model"))
        rv_jw_text(w, t->model);
    rc = wire_body_write_messages(t, request, write_message, &x, w, err);
    if (rc == 0)
        rc = write_tools(&x, request, output->via == WIRE_VIA_TOOL ? output->schema : NULL, err);
    if (rc < 0)
        return rc;
    if (output->via == WIRE_VIA_NATIVE && wire_body_key(t, w, "format"))
        rv_jw_value(w, output->schema);
    write_options(&x, rv_json_get_obj(request, "options"));
    if (wire_body_key(t, w, "truncate"))
        rv_jw_bool(w, false);
    if (wire_body_key(t, w, "stream"))
        rv_jw_bool(w, true);
    write_extra(&x);
    rv_jw_obj_end(w);
    return 0;
}

/* --- the answer --- */

static int read_arguments(rv_wire_reader *r, struct wire_call *c, json_object *arguments, rv_err **err)
{
    if (json_object_is_type(arguments, json_type_string))
        return wire_reader_arguments(r, c, rv_json_str(arguments), err); /* what others write that speak like it */
    if (!arguments)
        return wire_reader_arguments(r, c, RV_STR_LIT("{}"), err);
    return wire_reader_arguments_object(r, c, arguments, err);
}

static int read_call(rv_wire_reader *r, json_object *call, rv_err **err)
{
    json_object *function = rv_json_get_obj(call, "function"), *arguments = NULL;
    struct wire_call *c;
    int rc;

    if (!function)
        return 0;
    c = wire_reader_call(r, -1, &rc, err);
    if (!c)
        return rc;
    rv_buf_add_str(&c->id, wire_text(call, "id"));
    rv_buf_add_str(&c->name, wire_text(function, "name"));
    rc = wire_reader_call_starts(r, c, err);
    if (rc < 0 || r->is_broken)
        return rc;
    json_object_object_get_ex(function, "arguments", &arguments);
    rc = read_arguments(r, c, arguments, err);
    if (rc == 0 && !r->is_broken)
        wire_reader_call_ends(r, c);
    return rc;
}

static int read_message(rv_wire_reader *r, json_object *message, rv_err **err)
{
    json_object *calls = rv_json_get_arr(message, "tool_calls");
    size_t n = calls ? json_object_array_length(calls) : 0;
    int rc = wire_reader_thinking(r, wire_text(message, "thinking"), err);

    if (rc == 0 && !r->is_broken)
        rc = wire_reader_said(r, rv_json_member(message, "content"), err);
    for (size_t i = 0; rc == 0 && i < n && !r->is_broken; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        if (json_object_is_type(call, json_type_object))
            rc = read_call(r, call, err);
    }
    return rc;
}

static void read_end(rv_wire_reader *r, json_object *line)
{
    rv_str reason = wire_text(line, "done_reason");
    struct rv_usage totals = {0};

    wire_reader_count(line, "prompt_eval_count", &totals.input_tokens);
    wire_reader_count(line, "eval_count", &totals.output_tokens);
    r->knows_input = r->knows_output = true; /* it leaves out a 0, as of a prompt that it has evaluated before */
    if (totals.input_tokens || totals.output_tokens)
        wire_reader_usage(r, &totals);
    if (rv_str_is(reason, "length"))
        wire_reader_finish(r, RV_FINISH_LENGTH);
    else if (rv_str_is(reason, "stop") || !reason.len) /* older servers give none */
        wire_reader_finish(r, RV_FINISH_STOP);
    else
        wire_reader_finish(r, RV_FINISH_OTHER);
    r->saw_end = true;
}

static int read_reply(rv_wire_reader *r, json_object *reply, rv_err **err)
{
    json_object *message = rv_json_get_obj(reply, "message");
    bool is_done = false;
    int rc = 0;

    if (wire_says_error(reply))
        return wire_reader_fault(r, reply, err);
    if (message)
        rc = read_message(r, message, err);
    if (rc == 0 && !r->is_broken && rv_json_get_bool(reply, "done", &is_done) && is_done)
        read_end(r, reply);
    return rc;
}

static int read_line(rv_wire_reader *r, rv_str name, rv_str data, rv_err **err)
{
    json_object *line = NULL;
    int rc = wire_reader_json(r, data, &line, err);

    (void)name; /* lines have none */
    if (rc == 0 && line)
        rc = read_reply(r, line, err);
    json_object_put(line);
    return rc;
}

/* The text by which Ollama says that the prompt is too long; there is no code for it. */
static const char *const too_long[] = {"context length",  "context size",       "context window",
                                       "prompt too long", "prompt is too long", "input too long"};

static void read_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text)
{
    json_object *inner = body ? rv_json_get_obj(body, "error") : NULL;

    (void)status; /* says all there is to say */
    if (!body)
        return;
    rv_buf_add_str(text, inner ? wire_text(inner, "message") : wire_text(body, "error"));
    for (size_t i = 0; i < RV_COUNT(too_long); i++) {
        if (strcasestr(rv_buf_cstr(text), too_long[i])) {
            *kind = RV_LLM_ERROR_CONTEXT_TOO_LONG;
            *retryable = false;
        }
    }
}

const struct wire_codec wire_of_ollama = {.request = write_request,
                                          .event = read_line,
                                          .whole = read_reply,
                                          .fault = read_fault,
                                          .takes = RV_WIRE_IMAGE_DATA};
