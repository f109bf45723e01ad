/* OpenAI Chat Completions: the body of a request. Only what was asked for is sent: many servers that speak this
 * protocol refuse members that they do not know, even when they are null. */
#include <stdio.h>

#include "coreengine/model/wire/wire_internal.h"

#define MAX_NAME 64 /* of a schema: letters, digits, '_' and '-' */

struct writer {
    const struct rv_wire_target *t;
    rv_jw *w;
    enum wire_via via;
    json_object *schema;      /* of the output; NULL: none */
    json_object *attachments; /* of the prompt; NULL: none */
    json_object *tools;       /* of the request; NULL: none */
};

/* --- messages --- */

/* The member `key` as data:MEDIA_TYPE;base64,... */
static int write_data_url(const struct wire_attachment *a, const char *key, rv_jw *w, rv_err **err)
{
    rv_buf url = RV_BUF_INIT(SIZE_MAX / 2);

    rv_buf_puts(&url, "data:");
    rv_buf_add_str(&url, a->media_type);
    rv_buf_puts(&url, ";base64,");
    rv_buf_add_str(&url, a->data);
    int rc = rv_buf_check(&url, "an attachment", err);
    if (rc == 0)
        rv_jw_kv_str(w, key, rv_buf_str(&url));
    rv_buf_fini(&url);
    return rc;
}

static int write_image(const struct wire_attachment *a, rv_jw *w, rv_err **err)
{
    int rc = 0;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "image_url");
    rv_jw_key(w, "image_url");
    rv_jw_obj(w);
    if (a->url.len > 0)
        rv_jw_kv_str(w, "url", a->url);
    else
        rc = write_data_url(a, "url", w, err);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
    return rc;
}

/* A file has to have a name. */
static int write_file(const struct wire_attachment *a, size_t number, rv_jw *w, rv_err **err)
{
    bool is_pdf = rv_str_is(a->media_type, "application/pdf");
    char name[48];

    snprintf(name, sizeof name, "attachment-%zu%s", number, is_pdf ? ".pdf" : "");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "file");
    rv_jw_key(w, "file");
    rv_jw_obj(w);
    rv_jw_kv_str(w, "filename", a->name.len > 0 ? a->name : rv_str_of(name));
    int rc = write_data_url(a, "file_data", w, err);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
    return rc;
}

/* The member "content" of a prompt with attachments: a list of parts. */
static int write_parts(const struct writer *x, rv_str content, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(SIZE_MAX / 2);
    int rc = wire_body_prompt(content, x->via == WIRE_VIA_PROMPT ? x->schema : NULL, &text, err);

    rv_jw_key(x->w, "content");
    rv_jw_arr(x->w);
    if (text.len > 0) {
        rv_jw_obj(x->w);
        rv_jw_kv_text(x->w, "type", "text");
        rv_jw_kv_str(x->w, "text", rv_buf_str(&text));
        rv_jw_obj_end(x->w);
    }
    for (size_t i = 0; i < json_object_array_length(x->attachments) && rc == 0; i++) {
        struct wire_attachment a = wire_parts_at(x->attachments, i);
        rc = a.is_image ? write_image(&a, x->w, err) : write_file(&a, i + 1, x->w, err);
    }
    rv_jw_arr_end(x->w);
    rv_buf_fini(&text);
    return rc;
}

static int write_message(void *self, const char *role, json_object *message, rv_str content, rv_err **err)
{
    const struct writer *x = self;
    json_object *calls = message ? rv_json_get_arr(message, "tool_calls") : NULL;
    bool has_calls = calls && json_object_array_length(calls) > 0;
    int rc = 0;

    if (x->t->developer_role && rv_str_is(rv_str_of(role), "system"))
        role = "developer";
    rv_jw_obj(x->w);
    rv_jw_kv_text(x->w, "role", role);
    if (rv_str_is(rv_str_of(role), "tool"))
        rv_jw_kv_str(x->w, "tool_call_id", wire_text(message, "tool_call_id"));
    if (!message && x->attachments && rv_str_is(rv_str_of(role), "user"))
        rc = write_parts(x, content, err);
    else if (!message && x->via == WIRE_VIA_PROMPT && rv_str_is(rv_str_of(role), "user"))
        rc = wire_body_write_prompt(content, x->schema, x->w, err);
    else if (has_calls && content.len == 0)
        rv_jw_kv_text(x->w, "content", NULL);
    else
        rv_jw_kv_str(x->w, "content", content);
    if (rc == 0 && has_calls)
        rc = wire_body_write_calls(x->t, x->tools, calls, x->w, err);
    rv_jw_obj_end(x->w);
    return rc;
}

/* --- tools --- */

static int write_tools(const struct writer *x, json_object *request, rv_err **err)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    bool by_tool = x->via == WIRE_VIA_TOOL;
    const char *choice = NULL;
    bool has_choice = rv_json_get_text(request, "tool_choice", &choice);
    int rc = by_tool ? wire_body_check_output_tool(x->schema, err) : 0;

    if (rc < 0 || (!by_tool && (!tools || json_object_array_length(tools) == 0)))
        return rc;
    if (wire_body_key(x->t, x->w, "tools"))
        rc = wire_body_write_tools(x->t, tools, by_tool ? x->schema : NULL, x->w, err);
    if (rc < 0)
        return rc;
    if (by_tool)
        choice = "required"; /* the answer itself is a call */
    if ((has_choice || by_tool) && wire_body_key(x->t, x->w, "tool_choice"))
        rv_jw_text(x->w, choice);
    if (x->t->no_parallel_calls && wire_body_key(x->t, x->w, "parallel_tool_calls"))
        rv_jw_bool(x->w, false);
    return 0;
}

/* --- structured output --- */

static void write_schema_name(rv_jw *w, rv_str name)
{
    char legal[MAX_NAME];
    size_t n = name.len < MAX_NAME ? name.len : MAX_NAME;

    for (size_t i = 0; i < n; i++) {
        char c = name.ptr[i];
        bool is_legal = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        legal[i] = is_legal ? c : '_';
    }
    rv_jw_kv_str(w, "name", n ? (rv_str){legal, n} : RV_STR_LIT("output"));
}

static int write_output(const struct writer *x, json_object *request, rv_err **err)
{
    json_object *strict = NULL;
    int rc;

    if (x->via != WIRE_VIA_NATIVE || !wire_body_key(x->t, x->w, "response_format"))
        return 0;
    rc = x->t->no_strict_output ? 0 : wire_schema_to_strict(x->schema, &strict, err);
    if (rc < 0)
        return rc;
    rv_jw_obj(x->w);
    rv_jw_kv_text(x->w, "type", "json_schema");
    rv_jw_key(x->w, "json_schema");
    rv_jw_obj(x->w);
    write_schema_name(x->w, wire_text(rv_json_get_obj(request, "output"), "name"));
    rv_jw_kv_value(x->w, "schema", strict ? strict : x->schema);
    if (strict)
        rv_jw_kv_bool(x->w, "strict", true);
    rv_jw_obj_end(x->w);
    rv_jw_obj_end(x->w);
    json_object_put(strict);
    return 0;
}

/* --- the rest --- */

static void write_sampling(const struct writer *x, json_object *options)
{
    json_object *temperature = NULL, *seed = NULL;
    const char *max_tokens = x->t->old_max_tokens ? "max_tokens" : "max_completion_tokens";
    int64_t n = 0;

    if (!options)
        return;
    if (!x->t->no_sampling) {
        json_object_object_get_ex(options, "temperature", &temperature);
        json_object_object_get_ex(options, "seed", &seed);
    }
    if (temperature && wire_body_key(x->t, x->w, "temperature"))
        rv_jw_value(x->w, temperature);
    if (seed && wire_body_key(x->t, x->w, "seed"))
        rv_jw_value(x->w, seed);
    if (rv_json_get_int(options, "num_predict", &n) && n > 0 && wire_body_key(x->t, x->w, max_tokens))
        rv_jw_int(x->w, n);
}

int wire_openai_request(const struct rv_wire_target *t, json_object *request, struct wire_output *output, rv_jw *w,
                        rv_err **err)
{
    struct writer writer =
                      {t, w, output->via, output->schema, wire_parts_of(request), rv_json_get_arr(request, "tools")},
                  *x = &writer;
    int rc;

    rv_jw_obj(x->w);
    if (wire_body_key(x->t, x->w, "model"))
        rv_jw_text(x->w, x->t->model);
    rc = wire_body_write_messages(x->t, request, write_message, x, x->w, err);
    if (rc == 0)
        rc = write_tools(x, request, err);
    if (rc == 0)
        rc = write_output(x, request, err);
    if (rc < 0)
        return rc;
    write_sampling(x, rv_json_get_obj(request, "options"));
    if (wire_body_key(x->t, x->w, "stream"))
        rv_jw_bool(x->w, true);
    if (!x->t->no_stream_usage && wire_body_key(x->t, x->w, "stream_options")) {
        rv_jw_obj(x->w);
        rv_jw_kv_bool(x->w, "include_usage", true);
        rv_jw_obj_end(x->w);
    }
    wire_body_write_extra(x->t, x->w);
    rv_jw_obj_end(x->w);
    return 0;
}
