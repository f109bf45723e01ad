/* Records as text: written, read back, and as one line for people. docs/reference/journal.md describes them. A journal
 * may be damaged or made by hand: everything that is read is checked. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

#define MAX_DEPTH (RV_JSON_MAX_DEPTH + 16) /* an answer's data was within the limits of JSON input itself */

static const char *const kind_texts[RV_N_RECORD_KINDS] = {[RV_RECORD_NONE] = "unknown",
#define X(name, text, meaning) [RV_RECORD_##name] = text,
                                                          RV_RECORDS(X)
#undef X
};

const char *rv_record_kind_text(int kind)
{
    return kind > RV_RECORD_NONE && kind < RV_N_RECORD_KINDS ? kind_texts[kind] : kind_texts[RV_RECORD_NONE];
}

/* A clock may be wrong: what is written can be read. */
static int64_t a_time(int64_t us)
{
    return us < 0 ? 0 : us > RV_JOURNAL_MAX_US ? RV_JOURNAL_MAX_US : us;
}

/* --- Writing --- */

void journal_record_put_begin(const struct rv_journal_begin *b, const struct rv_pipeline *p, int64_t now_us,
                              rv_buf *body)
{
    bool any = false;
    rv_jw w = rv_jw_on(body);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "v", RV_JOURNAL_VERSION);
    rv_jw_kv_text(&w, "engine", rv_version());
    rv_jw_kv_int(&w, "rules", b->rules == RV_RULES_NEWEST ? RV_RULES_LAST : b->rules);
    rv_jw_kv_int(&w, "now_us", a_time(now_us));
    if (b->mode != RV_UNSET)
        rv_jw_kv_text(&w, "mode", rv_run_mode_text((enum rv_run_mode)b->mode));
    if (b->continues)
        rv_jw_kv_bool(&w, "continues", true);
    if (b->use_mocks)
        rv_jw_kv_bool(&w, "mock", true);
    if (b->has_script)
        rv_jw_kv_bool(&w, "script", true);
    if (b->answers_from_script)
        rv_jw_kv_bool(&w, "answers", true);
    if (b->is_script_blind)
        rv_jw_kv_bool(&w, "blind", true);
    if (b->max_parallel > 0)
        rv_jw_kv_int(&w, "max_parallel", b->max_parallel < INT64_MAX ? (int64_t)b->max_parallel : INT64_MAX);
    for (size_t i = 0; b->scripted && i < p->n_agents; i++) {
        if (!b->scripted[i])
            continue;
        if (!any) {
            rv_jw_key(&w, "scripted");
            rv_jw_arr(&w);
        }
        any = true;
        rv_jw_text(&w, p->agents[i].name);
    }
    for (size_t i = 0; b->scripted_inner && i < json_object_array_length(b->scripted_inner); i++) {
        if (!any) {
            rv_jw_key(&w, "scripted");
            rv_jw_arr(&w);
        }
        any = true;
        rv_jw_str(&w, rv_json_str(json_object_array_get_idx(b->scripted_inner, i)));
    }
    if (any)
        rv_jw_arr_end(&w);
    if (b->script_at)
        rv_jw_kv_value(&w, "script_at", b->script_at);
    if (b->conversation) {
        rv_jw_key(&w, "conversation");
        rv_conversation_write_json(b->conversation, &w);
    }
    if (b->task)
        rv_jw_kv_text(&w, "task", b->task);
    if (b->request)
        rv_jw_kv_text(&w, "request", b->request);
    rv_jw_obj_end(&w);
}

/* --- events --- */

/* A store keeps text. Bytes that are none (of a capability that failed oddly) must not stop the run. */
static void put_hex(rv_str bytes, rv_buf *out)
{
    char digits[2];

    for (size_t i = 0; i < bytes.len; i++) {
        rv_hex_make(bytes.ptr + i, 1, digits);
        rv_buf_add(out, digits, sizeof digits);
    }
}

rv_str journal_record_put_event(const struct rv_event *ev, rv_buf *body, rv_buf *value)
{
    struct rv_event written = *ev;
    rv_jw w = rv_jw_on(body);

    written.now_us = a_time(ev->now_us);
    rv_jw_obj(&w);
    rv_str text = rv_event_write_members(&written, &w);
    if (ev->kind == RV_EVENT_ANSWER) {
        rv_jw v = rv_jw_on(value);
        rv_response_write_json(&ev->response, &v);
        text = rv_buf_str(value);
    } else if (ev->kind != RV_EVENT_CANCEL && text.len && !rv_utf8_valid(text, NULL)) {
        rv_jw_kv_bool(&w, "hex", true);
        put_hex(text, value);
        text = rv_buf_str(value);
    }
    rv_jw_obj_end(&w);
    return text.len ? text : (rv_str){NULL, 0};
}

void journal_put_end(const rv_envelope *env, rv_buf *body)
{
    rv_buf state = RV_BUF_INIT(RV_STORE_MAX_VALUE);
    char hash[RV_HASH_MAX];

    rv_envelope_write_state(env, &state);
    if (state.rc == RV_E_NOMEM) {
        body->rc = RV_E_NOMEM;
    } else if (state.rc == 0 && body->len > 0) {
        rv_hash_format(rv_buf_str(&state), hash);
        rv_buf_truncate(body, body->len - 1); /* the object goes on */
        rv_buf_printf(body, ",\"engine\":\"%s\",\"state_sha256\":\"%s\"}", rv_version(), hash);
    }
    rv_buf_fini(&state);
}

int rv_record_get_end(const struct rv_record *r, struct rv_journal_end *out, rv_err **err)
{
    static const char key[] = "\"state_sha256\"";
    json_object *body = NULL;
    const char *engine = NULL, *hash = NULL;

    *out = (struct rv_journal_end){.state_hash = ""};
    if (r->kind != RV_RECORD_EVENT || !memmem(r->body.ptr, r->body.len, key, sizeof key - 1))
        return 0;
    int rc = journal_record_get_body(r, &body, err);
    if (rc == 0 && rv_json_get_text(body, "engine", &engine) && rv_json_get_text(body, "state_sha256", &hash)) {
        snprintf(out->engine, sizeof out->engine, "%s", engine);
        snprintf(out->state_hash, sizeof out->state_hash, "%s", hash);
    }
    json_object_put(body);
    return rc;
}

void journal_record_put_owner(const char *owner, int64_t fence, int64_t now_us, rv_buf *body)
{
    rv_jw w = rv_jw_on(body);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "owner", owner);
    rv_jw_kv_int(&w, "fence", fence);
    rv_jw_kv_int(&w, "now_us", a_time(now_us));
    rv_jw_obj_end(&w);
}

/* --- Reading --- */

static int fail_json(rv_err **err, int rc, const char *what)
{
    return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_INVALID, "its %s cannot be read", what);
}

int journal_record_get_body(const struct rv_record *r, json_object **body, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .what = "body"};
    json_object *json = NULL;

    int rc = rv_json_parse(r->body, &opts, &json, err);
    if (rc < 0)
        return fail_json(err, rc, "body");
    if (!json_object_is_type(json, json_type_object)) {
        json_object_put(json);
        return RV_FAIL(err, RV_E_INVALID, "its body is not an object");
    }
    *body = json;
    return 0;
}

/* --- events --- */

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int get_hex(rv_str text, rv_buf *out, rv_err **err)
{
    rv_buf_clear(out);
    if (text.len % 2 != 0)
        return RV_FAIL(err, RV_E_INVALID, "its value has half a byte");
    for (size_t i = 0; i < text.len; i += 2) {
        int high = digit(text.ptr[i]), low = digit(text.ptr[i + 1]);
        if (high < 0 || low < 0)
            return RV_FAIL(err, RV_E_INVALID, "its value is not hexadecimal at byte %zu", i);
        rv_buf_putc(out, (char)(high * 16 + low));
    }
    return rv_buf_check(out, "value", err);
}

/* An answer's text stands in the value, as an object. */
static int add_response(const struct rv_record *r, json_object *body, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .max_depth = MAX_DEPTH, .what = "answer"};
    json_object *response = NULL;

    if (!r->value.ptr)
        return RV_FAIL(err, RV_E_INVALID, "it is an answer without its content");
    int rc = rv_json_parse(r->value, &opts, &response, err);
    if (rc < 0)
        return fail_json(err, rc, "value");
    if (!json_object_is_type(response, json_type_object)) {
        json_object_put(response);
        return RV_FAIL(err, RV_E_INVALID, "its value is not an object");
    }
    return rv_json_set_take(body, "response", response, err);
}

static bool is_within(int64_t n, int64_t most)
{
    return n >= 0 && n <= most;
}

int journal_record_get_event(const struct rv_record *r, json_object **own, rv_buf *scratch, struct rv_event *ev,
                             rv_err **err)
{
    const char *kind = NULL;
    bool is_hex = false;

    int rc = journal_record_get_body(r, own, err);
    if (rc == 0 && rv_json_get_text(*own, "event", &kind) && strcmp(kind, "answer") == 0)
        rc = add_response(r, *own, err);
    if (rc == 0)
        rc = rv_event_read_json(*own, ev, err);
    if (rc < 0)
        return rc;
    if (!is_within(ev->now_us, RV_JOURNAL_MAX_US) || !is_within(ev->call_id, INT64_MAX))
        return RV_FAIL(err, RV_E_INVALID, "one of its numbers is negative or too large");
    if (ev->kind == RV_EVENT_CANCEL && r->value.ptr)
        *(ev->failed ? &ev->error : &ev->reply) = r->value;
    if (ev->kind != RV_EVENT_LLM_DONE && ev->kind != RV_EVENT_TOOL_DONE && ev->kind != RV_EVENT_HOOK_DONE)
        return 0;
    rv_str text = r->value.ptr ? r->value : RV_STR_LIT("");
    if (rv_json_get_bool(*own, "hex", &is_hex) && is_hex) {
        rc = get_hex(text, scratch, err);
        text = (rv_str){rv_buf_cstr(scratch), scratch->len};
    }
    if (ev->failed)
        ev->error = text;
    else
        ev->reply = text;
    return rc;
}

/* --- the begin --- */

/* A stage inside of stages, as "sub/inner". */
static bool is_inner_stage(const struct rv_pipeline *p, rv_str name)
{
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        size_t len = strlen(a->name);
        rv_str rest = {name.ptr + len + 1, name.len - len - 1};

        if (a->inner.pipeline && name.len > len && strncmp(name.ptr, a->name, len) == 0 && name.ptr[len] == '/' &&
            (rv_pipeline_find_stage(a->inner.pipeline, rest) >= 0 || is_inner_stage(a->inner.pipeline, rest)))
            return true;
    }
    return false;
}

static int get_scripted(json_object *list, const struct rv_pipeline *p, struct rv_journal_begin *b, rv_err **err)
{
    b->own = calloc(p->n_agents + 1, sizeof *b->own);
    if (!b->own)
        return RV_FAIL(err, RV_E_NOMEM, "read which stages were scripted");
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        rv_str name = rv_json_str(json_object_array_get_idx(list, i));
        int stage = rv_pipeline_find_stage(p, name);
        if (stage < 0 && is_inner_stage(p, name)) {
            if (!b->scripted_inner && !(b->scripted_inner = json_object_new_array()))
                return RV_FAIL(err, RV_E_NOMEM, "read which stages were scripted");
            int rc = rv_json_push_ref(b->scripted_inner, json_object_array_get_idx(list, i), err);
            if (rc < 0)
                return rc;
            continue;
        }
        if (stage < 0) {
            RV_FAIL(err, RV_E_STATE, "stage \"%.*s\" was scripted, and pipeline \"%s\" has no such stage",
                    RV_STR_ARG(rv_utf8_cut(name, 200)), p->name);
            return journal_diverged(err, RV_E_STATE);
        }
        b->own[stage] = true;
    }
    b->scripted = b->own;
    return 0;
}

static int get_begin(json_object *body, const struct rv_pipeline *p, struct rv_journal_begin *b, rv_err **err)
{
    const char *mode = NULL, *engine = "?";
    int64_t version = 0, parallel = 0;

    if (!rv_json_get_int(body, "v", &version) || version < 1)
        return RV_FAIL(err, RV_E_INVALID, "it has no version");
    if (version > RV_JOURNAL_VERSION) {
        engine = rv_json_text_or(body, "engine", "?");
        return RV_FAIL(err, RV_E_VERSION, "it was written by engine %.40s in format %lld; this one reads format %d",
                       engine, (long long)version, RV_JOURNAL_VERSION);
    }
    int64_t rules = rv_json_int_or(body, "rules", RV_RULES_1);
    if (rules < RV_RULES_1)
        return RV_FAIL(err, RV_E_INVALID, "its version of the rules is not a number from 1");
    if (rules > RV_RULES_LAST) {
        engine = rv_json_text_or(body, "engine", engine);
        return RV_FAIL(err, RV_E_VERSION, "engine %.40s began it with version %lld of the rules; this one knows %d",
                       engine, (long long)rules, RV_RULES_LAST);
    }
    b->rules = (enum rv_rules)rules;
    if (rv_json_get_text(body, "mode", &mode)) {
        enum rv_run_mode m;
        int rc = rv_run_mode_of(rv_str_of(mode), &m, err);
        if (rc < 0)
            return rc;
        b->mode = (int)m;
    }
    b->continues = rv_json_bool_or(body, "continues", b->continues);
    b->use_mocks = rv_json_bool_or(body, "mock", b->use_mocks);
    b->has_script = rv_json_bool_or(body, "script", b->has_script);
    b->answers_from_script = rv_json_bool_or(body, "answers", b->answers_from_script);
    b->is_script_blind = rv_json_bool_or(body, "blind", b->is_script_blind);
    if (rv_json_get_int(body, "max_parallel", &parallel)) {
        if (parallel < 0)
            return RV_FAIL(err, RV_E_INVALID, "max_parallel is negative");
        b->max_parallel = (size_t)parallel;
    }
    b->script_at = json_object_get(rv_json_get_obj(body, "script_at"));
    json_object *conversation = rv_json_get_obj(body, "conversation");
    if (conversation) {
        int rc = rv_conversation_read_json(conversation, &b->own_conversation, err);
        if (rc < 0)
            return rc;
        b->conversation = b->own_conversation;
    }
    json_object *scripted = rv_json_get_arr(body, "scripted");
    return scripted ? get_scripted(scripted, p, b, err) : 0;
}

int journal_record_get_begin(const struct rv_record *r, const struct rv_pipeline *p, struct rv_journal_begin *out,
                             int64_t *now_us, rv_err **err)
{
    struct rv_journal_begin b = {.mode = RV_UNSET};
    json_object *body = NULL;

    int rc = journal_record_get_body(r, &body, err);
    if (rc == 0)
        rc = get_begin(body, p, &b, err);
    if (rc == 0 && (!rv_json_get_int(body, "now_us", now_us) || !is_within(*now_us, RV_JOURNAL_MAX_US)))
        rc = RV_FAIL(err, RV_E_INVALID, "it has no time");
    json_object_put(body);
    if (rc < 0)
        rv_journal_begin_fini(&b);
    else
        *out = b;
    return rc;
}

void rv_journal_begin_fini(struct rv_journal_begin *b)
{
    free(b->own);
    b->own = NULL;
    b->scripted = NULL;
    json_object_put(b->scripted_inner);
    b->scripted_inner = NULL;
    json_object_put(b->script_at);
    b->script_at = NULL;
    rv_conversation_free(b->own_conversation);
    b->own_conversation = NULL;
    b->conversation = NULL;
}

void rv_journal_begin_set_opts(const struct rv_journal_begin *b, struct rv_run_opts *opts)
{
    opts->rules = b->rules;
    opts->continues = b->continues;
    opts->mode = b->mode;
    opts->use_mocks = b->use_mocks;
    opts->scripted_stages = b->scripted;
    opts->scripted_inner = b->scripted_inner;
    opts->is_script_blind = b->is_script_blind;
    opts->max_parallel = b->max_parallel;
    opts->conversation = b->conversation;
}

/* --- states --- */

int journal_load_state(rv_str text, int64_t now_us, rv_envelope **out, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH, .what = "state"};
    struct rv_rand_state bits;
    json_object *json = NULL;

    int rc = rv_json_parse(text, &opts, &json, err);
    if (rc == 0) /* the state names its ids: what is random here does not show */
        rc = rv_envelope_load(json, rv_rand_seeded(&bits, 1), now_us, out, err);
    json_object_put(json);
    return rc < 0 ? fail_json(err, rc, "state") : 0;
}

/* --- For people: what is JSON is shown as such, what is text as text --- */

/* True if it was written. */
static bool put_json(rv_jw *w, const char *key, rv_str text)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *json = NULL;

    int rc = rv_json_parse(text, &opts, &json,
                           RV_CODE_ONLY("text that is not JSON is shown as text; want of memory fails the writer"));
    if (rc == RV_E_NOMEM && w->out->rc == 0)
        w->out->rc = RV_E_NOMEM;
    bool is_tree =
        rc == 0 && (json_object_is_type(json, json_type_object) || json_object_is_type(json, json_type_array));
    if (is_tree) {
        rv_jw_key(w, key);
        rv_jw_raw(w, rv_str_trim(text));
    }
    json_object_put(json);
    return is_tree;
}

static void put_text(rv_jw *w, const char *key, rv_str text)
{
    char hash[RV_HASH_MAX];

    if (rv_utf8_valid(text, NULL)) {
        rv_jw_kv_str(w, key, text);
        return;
    }
    rv_hash_format(text, hash);
    rv_jw_kv_text(w, "not_utf8", key);
    rv_jw_kv_text(w, "sha256", hash);
}

/* The members of the body stand beside seq and record. */
static void put_members(rv_jw *w, rv_str body)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY};
    json_object *json = NULL;

    int rc = rv_json_parse(body, &opts, &json,
                           RV_CODE_ONLY("a body that is not JSON is shown as text; want of memory fails the writer"));
    if (rc == RV_E_NOMEM && w->out->rc == 0)
        w->out->rc = RV_E_NOMEM;
    if (rc == 0 && json_object_is_type(json, json_type_object)) {
        json_object_object_foreach (json, key, value) {
            rv_jw_kv_value(w, key, value);
        }
    } else {
        put_text(w, "body", body);
    }
    json_object_put(json);
}

void rv_record_write_json(const struct rv_record *r, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_int(w, "seq", r->seq);
    rv_jw_kv_text(w, "record", rv_record_kind_text(r->kind));
    put_members(w, r->body);
    if (r->value.ptr && !put_json(w, "value", r->value))
        put_text(w, "value", r->value);
    rv_jw_obj_end(w);
}
