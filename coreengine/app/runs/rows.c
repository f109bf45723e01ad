/* Rows of a store, agents and providers as JSON. What is kept as JSON text is put in as it is, and as a text where it
 * is none. */
#include "coreengine/app/rows.h"

#include <string.h>

#define MAX_LIST ((size_t)16 << 20)

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

/* --- agents --- */

const char *rv_app_agent_mode(const struct rv_agentdoc *doc)
{
    return rv_agentdoc_is_structured(doc, RV_UNSET) ? "structured" : "conversational";
}

void rv_app_agent_json(const char *name, const struct rv_agents_found *found, const char *hidden, const rv_err *fault,
                       rv_jw *w)
{
    const struct rv_agentdoc *doc = found->doc;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", name);
    rv_jw_kv_bool(w, "valid", doc != NULL);
    rv_jw_kv_text(w, "source", found->source);
    rv_jw_kv_text(w, "place", found->place);
    if (hidden)
        rv_jw_kv_text(w, "hides", hidden);
    if (doc) {
        rv_jw_kv_text(w, "mode", rv_app_agent_mode(doc));
        rv_jw_kv_text(w, "model", doc->model);
        rv_jw_kv_text(w, "version", doc->version);
        rv_jw_kv_text(w, "description", doc->short_description ? doc->short_description : doc->description);
        rv_jw_key(w, "tools");
        rv_jw_arr(w);
        for (size_t i = 0; i < doc->n_tools; i++)
            rv_jw_text(w, doc->tools[i].name);
        rv_jw_arr_end(w);
        rv_jw_kv_text(w, "kind", doc->kind);
        rv_jw_kv_text(w, "author", doc->author);
        rv_jw_key(w, "tags");
        rv_jw_arr(w);
        for (size_t i = 0; i < doc->tags.n; i++)
            rv_jw_text(w, doc->tags.items[i]);
        rv_jw_arr_end(w);
    } else if (fault) {
        rv_jw_key(w, "error");
        rv_err_write_json(fault, w);
    }
    rv_jw_obj_end(w);
}

/* --- capabilities and providers --- */

static int read_back(rv_buf *text, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_LIST};

    int rc = rv_buf_check(text, "a list of capabilities", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(text), &opts, out, err);
    rv_buf_fini(text);
    return rc;
}

int rv_app_capabilities(rv_plugins *plugins, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_LIST);
    rv_jw w = rv_jw_on(&text);

    rv_plugins_write_json(plugins, &w);
    return read_back(&text, out, err);
}

static void write_provider(const struct rv_provider_info *p, rv_jw *w)
{
    static const char *const wires[RV_N_WIRES] = {
        [RV_WIRE_OPENAI] = "chat-completions", [RV_WIRE_ANTHROPIC] = "messages", [RV_WIRE_OLLAMA] = "ollama"};

    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", p->name);
    rv_jw_kv_text(w, "description", p->description);
    rv_jw_kv_text(w, "wire", wires[p->wire]);
    rv_jw_kv_text(w, "base_url", p->base_url);
    rv_jw_kv_text(w, "base_url_env", p->base_url_env);
    rv_jw_kv_text(w, "key_env", p->key_env);
    rv_jw_kv_bool(w, "needs_key", p->needs_key);
    rv_jw_obj_end(w);
}

static void put_member(rv_jw *w, const char *key, json_object *of, const char *name)
{
    const char *text = "";

    RV_IGNORE(!rv_json_get_text(of, name, &text), "every capability and every entry has it");
    rv_jw_kv_text(w, key, text);
}

/* Those of a capability: their addresses and keys are in its configuration. */
static void write_brought(json_object *cap, rv_jw *w)
{
    json_object *list = rv_json_get_arr(cap, "providers");

    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        rv_jw_obj(w);
        put_member(w, "name", entry, "name");
        put_member(w, "description", entry, "description");
        put_member(w, "capability", cap, "name");
        rv_jw_obj_end(w);
    }
}

int rv_app_providers(rv_plugins *plugins, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_LIST);
    rv_jw w = rv_jw_on(&text);
    json_object *caps = NULL;
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    int rc = rv_app_capabilities(plugins, &caps, err);
    if (rc < 0)
        return rc;
    rv_jw_arr(&w);
    for (size_t i = 0; i < n; i++)
        write_provider(&list[i], &w);
    for (size_t i = 0; i < json_object_array_length(caps); i++)
        write_brought(json_object_array_get_idx(caps, i), &w);
    rv_jw_arr_end(&w);
    json_object_put(caps);
    return read_back(&text, out, err);
}
