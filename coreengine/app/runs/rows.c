/* Rows of a store as JSON. What is kept as JSON text is put in as it is, and as a text where it is none. */
#include "coreengine/app/rows.h"

#include <string.h>

static void put_time(rv_jw *w, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text);
    rv_jw_kv_text(w, key, text);
}

static json_object *read_json(rv_str text)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE};
    json_object *json = NULL;

    if (text.len)
        RV_IGNORE(rv_json_parse(text, &opts, &json, NULL), "text that is not JSON is shown as it is");
    return json;
}

/* empty: what stands for no text at all. */
static void put_json(rv_jw *w, const char *key, rv_str text, const char *empty)
{
    json_object *json = read_json(text);

    if (json || rv_str_is(text, "null"))
        rv_jw_kv_value(w, key, json);
    else if (text.len) {
        rv_jw_kv_str(w, key, text);
    } else {
        rv_jw_key(w, key);
        rv_jw_raw(w, rv_str_of(empty));
    }
    json_object_put(json);
}

void rv_app_session_json(const struct rv_session_row *row, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", row->id);
    rv_jw_kv_text(w, "tenant_id", row->tenant);
    rv_jw_kv_text(w, "user_id", row->user);
    rv_jw_kv_text(w, "name", row->name);
    rv_jw_kv_text(w, "description", row->description);
    rv_jw_kv_text(w, "agent_name", row->agent_name);
    rv_jw_kv_text(w, "mode", row->mode);
    rv_jw_kv_text(w, "status", row->status);
    rv_jw_kv_int(w, "total_tokens", row->total_tokens);
    rv_jw_kv_int(w, "messages", row->n_messages);
    put_json(w, "metadata", row->metadata, "{}");
    put_time(w, "created_at", row->created_us);
    put_time(w, "updated_at", row->updated_us);
    rv_jw_obj_end(w);
}

/* Those that were told, else an estimate. */
static int64_t message_tokens(const struct rv_message *m)
{
    return m->token_count == RV_UNSET ? rv_tokens_estimate(m->content) : m->token_count;
}

/* An unknown number is null. */
static void put_count(rv_jw *w, const char *key, int64_t n)
{
    rv_jw_key(w, key);
    if (n == RV_UNSET)
        rv_jw_null(w);
    else
        rv_jw_int(w, n);
}

void rv_app_message_json(const char *session, const struct rv_message *m, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", m->id);
    rv_jw_kv_text(w, "session_id", session);
    rv_jw_kv_int(w, "seq", m->seq);
    rv_jw_kv_text(w, "message_type", m->type);
    rv_jw_key(w, "content");
    if (m->has_content)
        rv_jw_str(w, m->content);
    else
        rv_jw_null(w);
    put_json(w, "tool_calls", m->tool_calls, "null");
    rv_jw_kv_int(w, "token_count", message_tokens(m));
    put_count(w, "input_tokens", m->input_tokens);
    put_count(w, "output_tokens", m->output_tokens);
    put_count(w, "cost_micro_usd", m->cost_micro_usd);
    put_count(w, "latency_ms", m->latency_ms);
    rv_jw_kv_text(w, "model", m->model);
    rv_jw_kv_text(w, "agent_name", m->agent_name);
    rv_jw_kv_text(w, "trace_id", m->trace_id);
    rv_jw_kv_text(w, "span_id", m->span_id);
    rv_jw_kv_text(w, "run_id", m->run_id);
    rv_jw_kv_text(w, "status", m->status ? m->status : rv_turn_status_text(RV_TURN_COMPLETED));
    rv_jw_kv_text(w, "parent_call_id", m->parent_call_id);
    put_json(w, "metadata", m->metadata, "{}");
    put_time(w, "created_at", m->created_us);
    rv_jw_obj_end(w);
}

void rv_app_schema_json(const struct rv_schema_row *row, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", row->id);
    rv_jw_kv_text(w, "tenant_id", row->tenant);
    rv_jw_kv_text(w, "user_id", row->user);
    rv_jw_kv_text(w, "name", row->name);
    rv_jw_kv_text(w, "kind", row->kind);
    rv_jw_kv_text(w, "version", row->version);
    rv_jw_kv_text(w, "description", row->description);
    rv_jw_kv_str(w, "content", row->content);
    put_json(w, "json_schema", row->json_schema, "null");
    rv_jw_kv_str(w, "document", row->document);
    rv_jw_kv_text(w, "source", row->source);
    rv_jw_kv_text(w, "place", row->place);
    rv_jw_kv_text(w, "checksum", row->checksum);
    put_time(w, "created_at", row->created_us);
    put_time(w, "updated_at", row->updated_us);
    rv_jw_obj_end(w);
}

void rv_app_tool_call_read(const struct rv_message *m, json_object **json, struct rv_app_tool_call *out)
{
    json_object *read = read_json(m->tool_calls);
    bool is_call = json_object_is_type(read, json_type_object);

    *out = (struct rv_app_tool_call){.name = "", .id = ""};
    *json = read;
    if (!is_call)
        return;
    if (!rv_json_get_text(read, "name", &out->name))
        out->name = "";
    if (!rv_json_get_text(read, "id", &out->id))
        out->id = "";
    json_object_object_get_ex(read, "arguments", &out->arguments);
}
