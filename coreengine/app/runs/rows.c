/* Rows of a store, agents, providers and one whole run as JSON. What is kept as JSON text is put in as it is, and as a
 * text where it is none. */
#include "coreengine/app/rows.h"
#include "coreengine/app/past.h"
#include "coreengine/app/work.h"
#include "coreengine/plan/plan.h"

#include <string.h>

#define MAX_LIST ((size_t)16 << 20) /* bytes of a list that a row has as JSON: all are in memory */

static void put_time(rv_jw *w, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text);
    rv_jw_kv_text(w, key, text);
}

/* NULL: text that is not JSON is shown as it is; without memory the writer, if there is one, fails. */
static json_object *read_json(rv_jw *w, rv_str text)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE};
    json_object *json = NULL;

    if (text.len &&
        rv_json_parse(text, &opts, &json,
                      RV_CODE_ONLY("text that is not JSON is shown as it is; want of memory fails the writer")) ==
            RV_E_NOMEM &&
        w && w->out->rc == 0)
        w->out->rc = RV_E_NOMEM;
    return json;
}

/* empty: what stands for no text at all. */
static void put_json(rv_jw *w, const char *key, rv_str text, const char *empty)
{
    json_object *json = read_json(w, text);

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

void rv_app_session_write(const struct rv_session_row *row, rv_jw *w)
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
    put_json(w, "metadata", row->shown_metadata.ptr ? row->shown_metadata : row->metadata, "{}");
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

void rv_app_message_write(const char *session, const struct rv_message *m, rv_jw *w)
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

struct messages {
    const char *session;
    rv_jw *w;
};

static int write_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct messages *l = self;

    (void)err;
    rv_app_message_write(l->session, m, l->w);
    return 0;
}

int rv_app_messages_write(rv_store *store, const struct rv_store_scope *scope, const char *session,
                          const struct rv_message_filter *filter, rv_jw *w, rv_err **err)
{
    struct messages l = {session, w};

    rv_jw_arr(w);
    int rc =
        rv_store_read_messages(store, scope, &(const struct rv_messages_of){session, filter}, write_message, &l, err);
    rv_jw_arr_end(w);
    return rc < 0 ? rc : 0;
}

void rv_app_tool_call_read(const struct rv_message *m, json_object **json, struct rv_app_tool_call *out)
{
    json_object *read = read_json(NULL, m->tool_calls);
    bool is_call = json_object_is_type(read, json_type_object);

    *out = (struct rv_app_tool_call){.name = "", .id = ""};
    *json = read;
    if (!is_call)
        return;
    if (!rv_json_get_text(read, "name", &out->name))
        out->name = json_object_object_get_ex(read, "encrypted", NULL) ? "(encrypted)" : "";
    if (!rv_json_get_text(read, "id", &out->id))
        out->id = "";
    json_object_object_get_ex(read, "arguments", &out->arguments);
}

/* --- agents --- */

const char *rv_app_agent_mode(const struct rv_agentdoc *doc)
{
    return rv_agentdoc_is_structured(doc, RV_UNSET) ? "structured" : "conversational";
}

void rv_app_agent_write(const char *name, const struct rv_agents_found *found, const char *hidden, const rv_err *fault,
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
        rv_jw_kv_list(w, "tags", &doc->tags);
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

/* Which fields of the output of a tool a plan may refer to. */
static int add_fields(json_object *tool, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_LIST, .what = "fields of an output"};
    json_object *schema = rv_json_get_obj(tool, "output_schema"), *fields = NULL;
    rv_buf text = RV_BUF_INIT(MAX_LIST);
    rv_jw w = rv_jw_on(&text);

    if (!schema)
        return 0;
    rv_plan_fields_write(schema, &w);
    int rc = rv_buf_check(&text, "the fields of an output", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, &fields, err);
    rv_buf_fini(&text);
    return rc == 0 ? rv_json_set_take(tool, "output_fields", fields, err) : rc;
}

static int add_all_fields(json_object *capabilities, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(capabilities) && rc == 0; i++) {
        json_object *tools = rv_json_get_arr(json_object_array_get_idx(capabilities, i), "tools");
        for (size_t k = 0; tools && k < json_object_array_length(tools) && rc == 0; k++)
            rc = add_fields(json_object_array_get_idx(tools, k), err);
    }
    return rc;
}

int rv_app_build_capabilities(rv_plugins *plugins, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_LIST);
    rv_jw w = rv_jw_on(&text);
    json_object *list = NULL;

    rv_plugins_write_json(plugins, &w);
    int rc = read_back(&text, &list, err);
    if (rc == 0)
        rc = add_all_fields(list, err);
    if (rc < 0)
        json_object_put(list);
    else
        *out = list;
    return rc;
}

static void write_takes(const struct rv_provider_info *p, rv_jw *w)
{
    static const struct {
        unsigned bit;
        const char *text;
    } rows[] = {{RV_WIRE_IMAGE_DATA, "image as data"},
                {RV_WIRE_IMAGE_URL, "image by URL"},
                {RV_WIRE_FILE_DATA, "file as data"},
                {RV_WIRE_FILE_URL, "file by URL"}};
    unsigned takes = rv_provider_takes(p);

    rv_jw_key(w, "attachments");
    rv_jw_arr(w);
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        if (takes & rows[i].bit)
            rv_jw_text(w, rows[i].text);
    rv_jw_arr_end(w);
}

static void write_provider(const struct rv_provider_info *p, rv_jw *w)
{
    static const char *const wires[] = {
        [RV_WIRE_OPENAI] = "chat-completions", [RV_WIRE_ANTHROPIC] = "messages", [RV_WIRE_OLLAMA] = "ollama"};
    RV_EACH_HAS_ROW(wires, RV_N_WIRES);

    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", p->name);
    rv_jw_kv_text(w, "description", p->description);
    rv_jw_kv_text(w, "wire", wires[p->wire]);
    rv_jw_kv_text(w, "base_url", p->base_url);
    rv_jw_kv_text(w, "base_url_env", p->base_url_env);
    rv_jw_kv_text(w, "key_env", p->key_env);
    rv_jw_kv_bool(w, "needs_key", p->needs_key);
    write_takes(p, w);
    rv_jw_obj_end(w);
}

static void put_member(rv_jw *w, const char *key, json_object *of, const char *name)
{
    const char *text = rv_json_text_or(of, name, "");

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

int rv_app_build_providers(rv_plugins *plugins, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_LIST);
    rv_jw w = rv_jw_on(&text);
    json_object *caps = NULL;
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    int rc = rv_app_build_capabilities(plugins, &caps, err);
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

/* --- one run --- */

const char *rv_app_owner_text(enum rv_app_owner owner)
{
    static const char *const texts[] = {
        [RV_APP_OWNER_NONE] = "none",
        [RV_APP_OWNER_LIVES] = "alive",
        [RV_APP_OWNER_LATE] = "its lease has ended",
        [RV_APP_OWNER_DEAD] = "gone",
    };
    RV_EACH_HAS_ROW(texts, RV_N_APP_OWNERS);
    return texts[owner];
}

const char *rv_app_call_kind(const struct rv_app_call *c)
{
    if (c->kind != RV_EFFECT_CALL_HOOK)
        return c->kind == RV_EFFECT_CALL_LLM ? "model" : "tool";
    return c->entry == RV_NAME_POLICY  ? "policy"
           : c->entry == RV_NAME_MOCK  ? "mock"
           : c->entry == RV_NAME_ROUTE ? "route"
                                       : "hook";
}

static void put_moment(rv_jw *w, const char *key, int64_t us)
{
    if (us > 0)
        put_time(w, key, us);
}

static void write_row(const struct rv_app_view *p, rv_jw *w)
{
    const struct rv_run_row *r = &p->past->row;

    rv_jw_kv_text(w, "id", r->id);
    rv_jw_kv_text(w, "pipeline", r->pipeline);
    rv_jw_kv_text(w, "status", rv_run_status_text(r->status));
    rv_jw_kv_text(w, "stage", r->stage);
    rv_jw_kv_text(w, "user", r->user);
    rv_jw_kv_text(w, "session", r->session);
    put_moment(w, "created_at", r->created_us);
    put_moment(w, "updated_at", r->updated_us);
    rv_jw_kv_int(w, "records", r->n_records);
    rv_jw_kv_text(w, "bundle", r->bundle);
    if (r->parent) {
        rv_jw_kv_text(w, "parent", r->parent);
        rv_jw_kv_int(w, "parent_seq", r->parent_seq);
    }
    rv_jw_kv_bool(w, "mock", p->replayed->begin.use_mocks);
    rv_jw_kv_bool(w, "script", p->replayed->begin.has_script);
    rv_jw_kv_bool(w, "cancel_requested", r->cancel_requested);
    rv_jw_key(w, "owner");
    if (!r->owner) {
        rv_jw_null(w);
        return;
    }
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", r->owner);
    rv_jw_kv_text(w, "state", rv_app_owner_text(rv_app_owner_of(r, p->now_us)));
    put_moment(w, "lease_until", r->lease_until_us);
    rv_jw_kv_int(w, "fence", r->fence);
    rv_jw_obj_end(w);
}

static void write_queued(const struct rv_app_queued *q, rv_jw *w)
{
    rv_jw_key(w, "queue");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "task", q->task);
    rv_jw_kv_text(w, "status", rv_task_status_text(q->status));
    put_moment(w, "since", q->since_us);
    put_moment(w, "due_at", q->due_us);
    rv_jw_kv_int(w, "priority", q->priority);
    rv_jw_kv_int(w, "before", q->n_before);
    rv_jw_kv_text(w, "worker", q->worker[0] ? q->worker : NULL);
    rv_jw_key(w, "needs");
    rv_needs_write(&q->needs, w);
    rv_jw_key(w, "unmet");
    rv_needs_write(&q->unmet, w);
    rv_jw_kv_int(w, "workers", (int64_t)q->n_workers);
    rv_jw_kv_int(w, "able_workers", (int64_t)q->n_able);
    rv_jw_kv_text(w, "error", q->error.len ? rv_buf_cstr(&q->error) : NULL);
    rv_jw_obj_end(w);
}

static void write_call(const struct rv_app_view *p, const struct rv_app_call *c, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_int(w, "call_id", c->id);
    rv_jw_kv_text(w, "kind", rv_app_call_kind(c));
    rv_jw_kv_text(w, "name", c->name);
    if (c->kind == RV_EFFECT_CALL_TOOL)
        rv_jw_kv_text(w, "class", rv_effect_class_text((enum rv_effect_class)c->effect_class));
    if (c->asked)
        rv_jw_kv_text(w, "asked", c->asked);
    if (c->agent)
        rv_jw_kv_text(w, "agent", c->agent);
    if (c->asker != RV_APP_NO_CALL)
        rv_jw_kv_int(w, "parent_call_id", p->steps->calls[c->asker].id);
    rv_jw_kv_int(w, "attempt", c->attempt);
    rv_jw_kv_text(w, "outcome", rv_app_call_end_text(c->end));
    put_moment(w, "begun_at", c->begun_us);
    put_moment(w, "ended_at", c->ended_us);
    if (c->has_spent && (c->spent.is_told || c->spent.usage.cost_micro_usd)) {
        rv_jw_key(w, "usage");
        rv_usage_write_json(&c->spent.usage, w);
    }
    if (c->muted)
        rv_jw_kv_text(w, "muted_text", c->muted);
    if (c->spent.latency_ms)
        rv_jw_kv_int(w, "latency_ms", c->spent.latency_ms);
    if (c->spent.first_ms)
        rv_jw_kv_int(w, "first_token_ms", c->spent.first_ms);
    rv_jw_obj_end(w);
}

static void write_step(const struct rv_app_view *p, size_t i, rv_jw *w)
{
    static const char *const keys[] = {"status", "outcome",    "output_key", "output", "next_stage",
                                       "error",  "error_type", "code",       "usage"};
    const struct rv_app_step *s = &p->steps->items[i];
    json_object *part;

    rv_jw_obj(w);
    rv_jw_key(w, "step");
    if (s->end)
        rv_jw_int(w, s->number);
    else
        rv_jw_null(w);
    rv_jw_kv_text(w, "stage",
                  s->label        ? s->label
                  : s->stage >= 0 ? rv_app_past_pipeline(p->past)->agents[s->stage].name
                                  : "-");
    rv_jw_kv_int(w, "visit", s->visit);
    if (s->path)
        rv_jw_kv_text(w, "path", s->path);
    if (s->index >= 0)
        rv_jw_kv_int(w, "index", s->index);
    rv_jw_kv_bool(w, "can_fork", s->can_fork);
    rv_jw_kv_bool(w, "asks", s->asks);
    put_moment(w, "begun_at", s->begun_us);
    put_moment(w, "ended_at", s->ended_us);
    if (s->end)
        rv_jw_kv_int(w, "record", s->seq);
    for (size_t k = 0; s->end && k < RV_COUNT(keys); k++)
        if (json_object_object_get_ex(s->end, keys[k], &part))
            rv_jw_kv_value(w, keys[k], part);
    rv_jw_key(w, "calls");
    rv_jw_arr(w);
    for (size_t c = s->first_call; c != RV_APP_NO_CALL; c = p->steps->calls[c].next)
        write_call(p, &p->steps->calls[c], w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_app_view_write(const struct rv_app_view *p, rv_buf *b)
{
    const struct rv_envelope_used used = rv_run_used(p->replayed->run);
    rv_jw w = rv_jw_on(b);
    rv_buf state = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_jw_obj(&w);
    write_row(p, &w);
    if (p->queued)
        write_queued(p->queued, &w);
    rv_jw_key(&w, "steps");
    rv_jw_arr(&w);
    for (size_t i = 0; i < p->steps->n; i++)
        if (!p->steps->items[i].is_left_out)
            write_step(p, i, &w);
    rv_jw_arr_end(&w);
    if (p->steps->n_left_out)
        rv_jw_kv_int(&w, "steps_left_out", p->steps->n_left_out);
    rv_jw_key(&w, "usage");
    rv_usage_write_json(&used.usage, &w);
    rv_jw_kv_value(&w, "pending", p->pending);
    if (p->artifacts.ptr) {
        rv_jw_key(&w, "artifacts");
        rv_jw_raw(&w, p->artifacts);
    }
    rv_envelope_write_state(rv_run_envelope(p->replayed->run), &state);
    if (state.rc < 0 && b->rc == 0)
        b->rc = state.rc;
    rv_jw_key(&w, "state");
    rv_jw_raw(&w, rv_buf_str(&state));
    rv_jw_obj_end(&w);
    rv_buf_fini(&state);
}

void rv_app_put_time(rv_jw *w, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text);
    rv_jw_kv_text(w, key, us > 0 ? text : NULL);
}

void rv_app_build_time(struct rv_json_build *b, json_object *to, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text);
    rv_json_build_text(b, to, key, text);
}
