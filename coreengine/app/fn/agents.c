/* Filters: documents of agents, and what agents do with them. */
#include "config/agentdoc/agentdoc.h"
#include "coreengine/app/fn/fn_internal.h"
#include "coreengine/conversation/conversation.h"

#include <json-c/linkhash.h>
#include <stdlib.h>

#define MAX_HEADERS    256 /* of one request: they are on the stack, and requests have some 30; more is an error */
#define CONTEXT_MEMORY ((size_t)64 << 10) /* the texts of one context */

/* --- documents --- */

/* A document as text (YAML or JSON) or as a value. */
static int text_of_document(json_object *in, rv_buf *text, rv_err **err)
{
    json_object *given = app_fn_any(in, "document");

    if (json_object_is_type(given, json_type_string))
        rv_buf_add_str(text, rv_json_str(given));
    else
        rv_json_write(given, text); /* JSON is YAML */
    return rv_buf_check(text, "agent document", err);
}

/* What is wrong with it is part of the answer: warnings are not dropped, and all errors are told. */
static int agent_document(json_object *in, rv_jw *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;
    int rc = findings ? text_of_document(in, &text, err) : RV_FAIL(err, RV_E_NOMEM, "read an agent document");

    if (rc == 0)
        rc = rv_agentdoc_parse(rv_buf_str(&text), "document", findings, &d, err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_key(out, "document");
        if (d)
            rv_agentdoc_write_json(d, out);
        else
            rv_jw_null(out);
        rv_jw_key(out, "findings");
        rv_findings_write_json(findings, out);
        rv_jw_obj_end(out);
    }
    rv_agentdoc_free(d);
    rv_findings_free(findings);
    rv_buf_fini(&text);
    return rc;
}

static int agent_prompt(json_object *in, rv_jw *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES), prompt = RV_BUF_INIT(RV_FN_MAX_REPLY);
    struct rv_agentdoc *d = NULL;
    json_object *schema = NULL;
    int structured = app_fn_any(in, "structured") ? app_fn_flag(in, "structured") : RV_UNSET;
    int rc = text_of_document(in, &text, err);

    if (rc == 0)
        rc = rv_agentdoc_read(rv_buf_str(&text), "document", &d, err);
    if (rc == 0)
        rc = rv_agentdoc_write_prompt(d, structured, &prompt, err);
    if (rc == 0)
        rc = rv_agentdoc_build_output_schema(d, structured, &schema, err);
    if (rc == 0)
        rc = rv_buf_check(&prompt, "prompt", err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_str(out, "prompt", rv_buf_str(&prompt));
        rv_jw_kv_value(out, "output_schema", schema);
        rv_jw_obj_end(out);
    }
    json_object_put(schema);
    rv_agentdoc_free(d);
    rv_buf_fini(&prompt);
    rv_buf_fini(&text);
    return rc;
}

/* --- agents --- */

/* All members, unlike what is kept: people look for what is not known, too. */
static void write_context(const struct rv_context *c, rv_jw *out)
{
    rv_jw_obj(out);
    rv_jw_kv_text(out, "user_id", c->user_id);
    rv_jw_kv_text(out, "tenant_id", c->tenant_id);
    rv_jw_kv_text(out, "session_id", c->session_id);
    rv_jw_kv_text(out, "default_model", c->default_model);
    rv_jw_kv_text(out, "agent_schema_uri", c->agent_schema_uri);
    rv_jw_kv_bool(out, "is_eval", c->is_eval);
    rv_jw_kv_text(out, "client_id", c->client_id);
    rv_jw_kv_text(out, "user_profile_hint", c->user_profile_hint);
    rv_jw_kv_text(out, "user_email", c->user_email);
    rv_jw_kv_text(out, "user_name", c->user_name);
    rv_jw_obj_end(out);
}

/* A map from name to value, or a list of pairs, in which a name may come twice. */
static int read_headers(json_object *given, struct rv_context_header out[MAX_HEADERS], size_t *n, rv_err **err)
{
    bool is_map = json_object_is_type(given, json_type_object);
    size_t count = is_map ? (size_t)json_object_object_length(given) : json_object_array_length(given);

    *n = 0;
    if (count > MAX_HEADERS)
        return RV_FAIL(err, RV_E_LIMIT, "%zu headers, more than %d", count, MAX_HEADERS);
    if (is_map) {
        json_object_object_foreach (given, key, value) {
            if (!json_object_is_type(value, json_type_string))
                return RV_FAIL(err, RV_E_INVALID, "headers.%s must be string, not %s", key, rv_json_type_text(value));
            out[(*n)++] = (struct rv_context_header){rv_str_of(key), rv_json_str(value)};
        }
        return 0;
    }
    for (; *n < count; (*n)++) {
        json_object *pair = json_object_array_get_idx(given, *n), *name, *value;

        if (!json_object_is_type(pair, json_type_array) || json_object_array_length(pair) != 2)
            return RV_FAIL(err, RV_E_INVALID, "headers[%zu] must be a list of a name and a value", *n);
        name = json_object_array_get_idx(pair, 0);
        value = json_object_array_get_idx(pair, 1);
        if (!json_object_is_type(name, json_type_string) || !json_object_is_type(value, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "headers[%zu] must be two strings, not %s and %s", *n,
                           rv_json_type_text(name), rv_json_type_text(value));
        out[*n] = (struct rv_context_header){rv_json_str(name), rv_json_str(value)};
    }
    return 0;
}

static int context_from_headers(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *who = rv_json_get_obj(in, "authenticated");
    struct rv_context_header headers[MAX_HEADERS];
    struct rv_context_source from = {.headers = headers, .default_model = app_fn_str(in, "default_model").ptr};
    rv_arena *room = rv_arena_new(CONTEXT_MEMORY);
    struct rv_context c;
    int rc = room ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for an agent context");

    if (rc == 0 && who) {
        rc = app_fn_check_shape("{id?: word, tenant_id?: word, email?: word}", who, err);
        if (rc < 0)
            rc = RV_WRAP(err, rc, "authenticated");
        from.auth_user_id = app_fn_str(who, "id").ptr;
        from.auth_tenant_id = app_fn_str(who, "tenant_id").ptr;
        from.auth_email = app_fn_str(who, "email").ptr;
    }
    if (rc == 0)
        rc = read_headers(app_fn_any(in, "headers"), headers, &from.n_headers, err);
    if (rc == 0)
        rc = rv_context_read_headers(&from, room, &c, err);
    if (rc == 0)
        write_context(&c, out);
    rv_arena_free(room);
    return rc;
}

static int child_context(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_context parent, child;
    int rc = rv_context_read_json(app_fn_any(in, "context"), &parent, err);

    if (rc < 0)
        return rc;
    child = rv_context_child(&parent, app_fn_str(in, "agent").ptr, app_fn_str(in, "model").ptr);
    rc = rv_context_check(&child, err);
    if (rc == 0)
        write_context(&child, out);
    return rc;
}

static int entity_id(json_object *in, rv_jw *out, rv_err **err)
{
    char id[RV_UUID_MAX];

    (void)err;
    rv_entity_make_id(app_fn_str(in, "table").ptr, app_fn_str(in, "key"), app_fn_str(in, "user").ptr, id);
    rv_jw_text(out, id);
    return 0;
}

static int user_id(json_object *in, rv_jw *out, rv_err **err)
{
    char id[RV_UUID_MAX];

    (void)err;
    rv_user_id_make(app_fn_str(in, "email"), id);
    rv_jw_text(out, id);
    return 0;
}

/* A conversation as runs keep it, with what has no part in instructions filled in. */
static int read_conversation(json_object *given, struct rv_conversation **out, rv_err **err)
{
    struct rv_conversation empty = {.context = {.tenant_id = "default"}, .history_opts = RV_HISTORY_OPTS_INIT};
    rv_buf text = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&text);
    json_object *whole = NULL;
    int rc;

    rv_conversation_write_json(&empty, &w);
    rc = rv_buf_check(&text, "conversation", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), NULL, &whole, err);
    if (rc == 0 && given) {
        json_object_object_foreach (given, key, value) {
            rc = rv_json_set_ref(whole, key, value, err);
            if (rc < 0)
                break;
        }
    }
    if (rc == 0)
        rc = rv_conversation_read_json(whole, out, err);
    json_object_put(whole);
    rv_buf_fini(&text);
    return rc;
}

static int instructions(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_conversation *c = NULL;
    rv_buf text = RV_BUF_INIT(RV_FN_MAX_REPLY);
    struct rv_fn_source source;
    int rc = app_fn_source(in, &source, err);

    if (rc == 0)
        rc = read_conversation(rv_json_get_obj(in, "conversation"), &c, err);
    if (rc == 0) {
        bool can_look_up = rv_json_bool_or(in, "look_up", true);
        rv_instructions_write(c, app_fn_str(in, "agent").ptr, can_look_up, source.now_us, &text);
        rc = rv_buf_check(&text, "instructions", err);
    }
    if (rc == 0)
        rv_jw_str(out, rv_buf_str(&text));
    rv_conversation_free(c);
    rv_buf_fini(&text);
    return rc;
}

static int routing(json_object *in, rv_jw *out, rv_err **err)
{
    rv_str op = app_fn_str(in, "op");
    const char *agent = app_fn_str(in, "agent").ptr;
    struct rv_routing r;

    rv_routing_read_json(app_fn_any(in, "state"), &r);
    int64_t max_turns = rv_json_int_or(in, "max_turns", 0);
    if (rv_str_is(op, "activate"))
        rv_routing_activate(&r, agent, max_turns);
    else if (rv_str_is(op, "increment"))
        rv_routing_increment(&r);
    else if (rv_str_is(op, "complete"))
        rv_routing_complete(&r);
    else if (rv_str_is(op, "escalate"))
        rv_routing_escalate(&r, app_fn_str(in, "why").ptr);
    else if (rv_str_is(op, "resolve"))
        rv_routing_resolve(&r);
    else if (!rv_str_is(op, "read"))
        return RV_FAIL(err, RV_E_INVALID,
                       "unknown op \"%.*s\": legal are read, activate, increment, complete, escalate, resolve",
                       RV_STR_ARG(rv_utf8_cut(op, 64)));
    rv_jw_obj(out);
    rv_jw_key(out, "state");
    rv_routing_write_json(&r, out);
    rv_jw_kv_bool(out, "needs_classification", rv_routing_needs_classification(&r));
    rv_jw_obj_end(out);
    return 0;
}

static int compress_message(json_object *in, rv_jw *out, rv_err **err)
{
    rv_str text = app_fn_str(in, "text");
    rv_buf shorter = RV_BUF_INIT(RV_FN_MAX_BYTES);
    bool compressed;
    int rc;
    int64_t keep = rv_json_int_or(in, "keep", RV_COMPRESS_KEEP);

    if (keep < 0)
        return RV_FAIL(err, RV_E_INVALID, "keep is negative");
    compressed = rv_message_compress(text, app_fn_str(in, "key").ptr, (size_t)keep, &shorter);
    rc = rv_buf_check(&shorter, "message", err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_str(out, "text", compressed ? rv_buf_str(&shorter) : text);
        rv_jw_kv_bool(out, "compressed", compressed);
        rv_jw_obj_end(out);
    }
    rv_buf_fini(&shorter);
    return rc;
}

/* The text of a value that rows hold as JSON text: a string is that text already, right or wrong. */
static rv_str json_text(json_object *row, const char *key, rv_buf *keep)
{
    json_object *v = app_fn_any(row, key);

    if (!v || json_object_is_type(v, json_type_string))
        return app_fn_str(row, key);
    rv_json_write(v, keep);
    return rv_buf_str(keep);
}

static int add_row(rv_history *h, json_object *row, size_t i, bool *full, rv_err **err)
{
    static const char shape[] = "{seq?: int, id?: word, type?: word, content?: string, tool_calls?: object|string, "
                                "token_count?: int, parent_call_id?: word, status?: word, metadata?: object|string, "
                                "created_at?: string}";
    rv_buf calls = RV_BUF_INIT(RV_FN_MAX_BYTES), metadata = RV_BUF_INIT(RV_FN_MAX_BYTES);
    struct rv_message m = {.seq = (int64_t)i + 1, .token_count = RV_UNSET};
    int rc = app_fn_check_shape(shape, row, err);

    if (rc == 0 && app_fn_str(row, "created_at").ptr)
        rc = rv_time_parse(app_fn_str(row, "created_at"), &m.created_us, err);
    if (rc == 0) {
        m.id = app_fn_str(row, "id").ptr;
        m.type = app_fn_str(row, "type").ptr;
        m.content = app_fn_str(row, "content");
        m.has_content = app_fn_any(row, "content") != NULL;
        m.tool_calls = json_text(row, "tool_calls", &calls);
        m.metadata = json_text(row, "metadata", &metadata);
        m.parent_call_id = app_fn_str(row, "parent_call_id").ptr;
        m.status = app_fn_str(row, "status").ptr;
        m.seq = rv_json_int_or(row, "seq", m.seq);
        m.token_count = rv_json_int_or(row, "token_count", m.token_count);
        rc = rv_buf_check(&calls, "tool_calls", err);
    }
    if (rc == 0)
        rc = rv_buf_check(&metadata, "metadata", err);
    if (rc == 0)
        rc = rv_history_add(h, &m, full, err);
    rv_buf_fini(&calls);
    rv_buf_fini(&metadata);
    return rc < 0 ? RV_WRAP(err, rc, "rows[%zu]", i) : 0;
}

#define MAX_ROWS 1000 /* moments of one input: a history has RV_MOMENT_MAX_INJECT; pointers are on the stack */

/* Notes of moments that are given newest first; *out may be NULL. */
static int note_moments(json_object *in, bool covers, json_object **out, rv_err **err)
{
    json_object *list = rv_json_get_arr(in, "moments"), *rows[MAX_ROWS];
    struct rv_moment_opts opts = RV_MOMENT_OPTS_INIT;
    size_t n = list ? json_object_array_length(list) : 0;

    *out = NULL;
    if (n > MAX_ROWS)
        return RV_FAIL(err, RV_E_LIMIT, "%zu moments, more than %d", n, MAX_ROWS);
    for (size_t i = 0; i < n; i++) {
        rows[i] = json_object_array_get_idx(list, i);
        if (!json_object_is_type(rows[i], json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "moments[%zu] is not an object", i);
    }
    opts.max_inject = rv_json_int_or(in, "max_moments", opts.max_inject);
    opts.max_tokens = rv_json_int_or(in, "max_tokens", opts.max_tokens);
    return rv_moments_note(rows, n, &opts, covers, out, err);
}

static void write_system(json_object *notes, rv_jw *out)
{
    for (size_t i = 0; notes && i < json_object_array_length(notes); i++) {
        json_object *text = NULL;
        if (!json_object_object_get_ex(json_object_array_get_idx(notes, i), "text", &text))
            continue;
        rv_jw_obj(out);
        rv_jw_kv_text(out, "type", "system");
        rv_jw_kv_value(out, "content", text);
        rv_jw_kv_int(out, "token_count", 0);
        rv_jw_obj_end(out);
    }
}

static int inject_moments(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *notes, *messages = rv_json_get_arr(in, "messages");
    int rc = note_moments(in, false, &notes, err);

    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_key(out, "messages");
        rv_jw_arr(out);
        write_system(notes, out);
        for (size_t i = 0; messages && i < json_object_array_length(messages); i++)
            rv_jw_value(out, json_object_array_get_idx(messages, i));
        rv_jw_arr_end(out);
        rv_jw_obj_end(out);
    }
    json_object_put(notes);
    return rc;
}

static bool is_replayed(json_object *message)
{
    int type = rv_message_type_of(app_fn_str(message, "type"));

    return type != RV_MESSAGE_TOOL_CALL && type != RV_MESSAGE_TOOL_RESPONSE && type != RV_MESSAGE_TOOL &&
           type != RV_MESSAGE_TOOL_RESULT && type != RV_MESSAGE_THINK;
}

/* One message, or the hint in its place. */
static int write_compacted(json_object *message, json_object *notes, rv_jw *out, rv_err **err)
{
    rv_buf hint = RV_BUF_INIT(RV_FN_MAX_BYTES);
    int64_t created_us = 0, tokens;
    int rc = 0;

    int64_t seq = rv_json_int_or(message, "seq", 0);
    if (app_fn_str(message, "created_at").ptr)
        rc = rv_time_parse(app_fn_str(message, "created_at"), &created_us, err);
    tokens = rv_moment_write_hint(notes, seq, created_us, true, &hint);
    if (rc == 0)
        rc = rv_buf_check(&hint, "a hint", err);
    if (rc == 0) {
        rv_jw_obj(out);
        json_object_object_foreach (message, key, value) {
            if (strcmp(key, "content") == 0)
                rv_jw_kv_str(out, key, rv_buf_str(&hint));
            else if (strcmp(key, "token_count") != 0)
                rv_jw_kv_value(out, key, value);
        }
        rv_jw_kv_int(out, "token_count", tokens);
        rv_jw_obj_end(out);
    }
    rv_buf_fini(&hint);
    return rc;
}

static int compact_messages(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *messages = rv_json_get_arr(in, "messages"), *notes;
    size_t n = json_object_array_length(messages), n_replayed = 0, at = 0;
    int rc = note_moments(in, true, &notes, err);
    int64_t last = rv_json_int_or(in, "always_last", RV_HISTORY_OPTS_INIT.always_last);

    if (rc == 0 && last < 0)
        rc = RV_FAIL(err, RV_E_INVALID, "always_last is negative");
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *m = json_object_array_get_idx(messages, i);
        if (!json_object_is_type(m, json_type_object))
            rc = RV_FAIL(err, RV_E_INVALID, "messages[%zu] is not an object", i);
        n_replayed += rc == 0 && is_replayed(m);
    }
    if (rc == 0) {
        bool compacts = n_replayed > 2 && (uint64_t)last < n_replayed - 2;
        rv_jw_obj(out);
        rv_jw_key(out, "messages");
        rv_jw_arr(out);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            json_object *m = json_object_array_get_idx(messages, i);
            bool is_old = at + (uint64_t)last < n_replayed && is_replayed(m);
            at += is_replayed(m);
            if (compacts && is_old && rv_message_type_of(app_fn_str(m, "type")) == RV_MESSAGE_ASSISTANT &&
                app_fn_str(m, "content").len > 0)
                rc = write_compacted(m, notes, out, err);
            else
                rv_jw_value(out, m);
        }
        rv_jw_arr_end(out);
        rv_jw_obj_end(out);
    }
    json_object_put(notes);
    return rc;
}

static int rebuild_messages(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *notes = NULL;
    json_object *rows = rv_json_get_arr(in, "rows"), *messages = NULL;
    struct rv_history_opts opts = RV_HISTORY_OPTS_INIT;
    rv_history *h = NULL;
    bool full = false;
    int rc = app_fn_any(in, "options") ? rv_history_opts_read(app_fn_any(in, "options"), &opts, err) : 0;

    if (rc == 0)
        rc = rv_history_new(app_fn_str(in, "session").ptr, &opts, &h, err);
    for (size_t i = json_object_array_length(rows); rc == 0 && !full && i > 0; i--)
        rc = add_row(h, json_object_array_get_idx(rows, i - 1), i - 1, &full, err);
    if (rc == 0)
        rc = note_moments(in, opts.compacts, &notes, err);
    if (rc == 0) {
        rv_history_set_moments(h, notes);
        rc = rv_history_finish(h, &messages, err);
    }
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_value(out, "messages", messages);
        rv_jw_obj_end(out);
    }
    json_object_put(messages);
    rv_history_free(h);
    json_object_put(notes);
    return rc;
}

#define CONTEXT_SHAPE                                                                                                  \
    "{user_id, tenant_id, session_id, default_model, agent_schema_uri, is_eval, client_id, user_profile_hint, "        \
    "user_email, user_name}"

static const struct rv_fn items[] = {
    {"agent_document", "{document: object|string}", "{document: object, findings: list}",
     "an agent document of any form as the flat one (null: it has errors), and what is wrong with it", agent_document},
    {"agent_prompt", "{document: object|string, structured?: bool}", "{prompt: string, output_schema: object}",
     "the system prompt of an agent document, and the schema of its output (null: text)", agent_prompt},
    {"context_from_headers", "{headers: object|list, authenticated?: object, default_model?: word}", CONTEXT_SHAPE,
     "who asks: headers (a map, or pairs of name and value) below who was authenticated: {id?, tenant_id?, email?}",
     context_from_headers},
    {"child_context", "{context: object, agent?: word, model?: word}", CONTEXT_SHAPE,
     "the context of a delegated agent", child_context},
    {"instructions", "{conversation?: object, agent?: word, now?: string, look_up?: bool}", "string",
     "what a model is told of a request", instructions},
    {"routing", "{op: string, state?: object, agent?: word, max_turns?: int, why?: word}",
     "{state: object, needs_classification: bool}",
     "routing between agents after an op: read, activate, increment, complete, escalate, resolve", routing},
    {"entity_id", "{table: word, key: string, user?: word}", "string", "the id of a row that has a name", entity_id},
    {"user_id", "{email: string}", "string", "the user id that belongs to an e-mail address", user_id},
    {"compress_message", "{text: string, key?: word, keep?: int}", "{text: string, compressed: bool}",
     "a long text with its middle left out, if that is shorter", compress_message},
    {"rebuild_messages",
     "{session: word, rows: list, options?: object, moments?: list, max_moments?: int, max_tokens?: int}",
     "{messages: list}",
     "rows of a session, oldest first, as messages for a model, after its moments, newest first; options: policy, "
     "max_tokens, max_messages, since_us, always_last, compress, compress_keep, count_tool_rows, compacts",
     rebuild_messages},
    {"inject_moments", "{moments: list, messages?: list, max_moments?: int, max_tokens?: int}", "{messages: list}",
     "moments of a session, newest first, as system entries, oldest first, before its messages", inject_moments},
    {"compact_messages", "{messages: list, moments?: list, always_last?: int, max_moments?: int, max_tokens?: int}",
     "{messages: list}",
     "entries of a session, {type, content, seq?, created_at?}, oldest first, with older answers as hints at moments, "
     "newest first",
     compact_messages},
};

const struct rv_fn_group app_fn_group_agents = {items, RV_COUNT(items)};
