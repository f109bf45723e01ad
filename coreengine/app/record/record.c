/* --record: a script that plays the same run again, gathered from what the run was told. Only answers are recorded, no
 * requests; what the pipeline has as secrets is overwritten where an answer repeats it. */
#include "coreengine/app/record/record_internal.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT   (2 * RV_LLM_MAX_REPLY) /* bytes: a reply with its escapes */
#define MAX_BYTES  ((size_t)256 << 20)    /* of one recording: it is kept in memory; more is an error */
#define MAX_PIECES ((size_t)1 << 20)      /* of one reply: a stream of a token each stays below */

/* --- pieces that are joined --- */

/* A piece as it stands in a list of chunks. */
struct piece {
    bool is_thinking;
    rv_str text;
    int64_t delay_ms;
};

static struct piece read_piece(json_object *item)
{
    struct piece p = {false, rv_json_str(item), 0};
    json_object *text = NULL;

    if (!json_object_is_type(item, json_type_object))
        return p;
    p.is_thinking = json_object_object_get_ex(item, "thinking", &text);
    if (p.is_thinking || json_object_object_get_ex(item, "text", &text))
        p.text = rv_json_str(text);
    if (!rv_json_get_int(item, "delay_ms", &p.delay_ms))
        p.delay_ms = 0;
    return p;
}

static int push(json_object *list, const rv_buf *text, bool is_thinking, int64_t delay_ms, rv_err **err)
{
    json_object *item = json_object_new_object();

    int rc = rv_buf_check(text, "recorded text", err);
    if (rc < 0) {
        json_object_put(item);
        return rc;
    }
    rc = rv_json_push_take(list, item, err);
    if (rc == 0 && text->len)
        rc = rv_json_set_str(item, is_thinking ? "thinking" : "text", rv_buf_str(text), err);
    if (rc == 0 && delay_ms > 0)
        rc = rv_json_set_int(item, "delay_ms", delay_ms, err);
    return rc;
}

static int coarsen(json_object *from, int64_t window_ms, json_object *to, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct piece last = {false, {NULL, 0}, 0};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_object_array_length(from); i++) {
        struct piece p = read_piece(json_object_array_get_idx(from, i));
        if (i > 0 && p.is_thinking == last.is_thinking && p.delay_ms < window_ms) {
            last.delay_ms += p.delay_ms;
        } else {
            if (i > 0)
                rc = push(to, &text, last.is_thinking, last.delay_ms, err);
            rv_buf_clear(&text);
            last = p;
        }
        rv_buf_add_str(&text, p.text);
    }
    if (rc == 0 && json_object_array_length(from) > 0)
        rc = push(to, &text, last.is_thinking, last.delay_ms, err);
    rv_buf_fini(&text);
    return rc;
}

static int coarsen_entry(json_object *entry, int64_t window_ms, rv_err **err)
{
    json_object *from = rv_json_get_arr(entry, "chunks"), *to;

    if (!from)
        return 0;
    to = json_object_new_array();
    int rc = to ? coarsen(from, window_ms, to, err) : RV_FAIL(err, RV_E_NOMEM, "shorten a recording");
    if (rc < 0) {
        json_object_put(to);
        return rc;
    }
    return rv_json_set_take(entry, "chunks", to, err);
}

static int coarsen_all(json_object *models, int64_t window_ms, rv_err **err)
{
    int rc = 0;

    json_object_object_foreach (models, stage, entries) {
        (void)stage;
        for (size_t i = 0; rc == 0 && i < json_object_array_length(entries); i++)
            rc = coarsen_entry(json_object_array_get_idx(entries, i), window_ms, err);
    }
    return rc;
}

int app_record_add_copy(json_object *entry, const char *key, json_object *value, rv_err **err)
{
    json_object *copy = NULL;
    int rc = value ? rv_json_dup(value, &copy, err) : 0;

    return rc == 0 && copy ? rv_json_set_take(entry, key, copy, err) : rc;
}

/* --- the recorder --- */

struct rv_recorder {
    struct rv_record_call *calls; /* under way; owned */
    size_t n_calls, cap_calls;
    json_object *models;   /* stage -> list of entries, in the order in which the calls were made; owned */
    json_object *tools;    /* tool -> list of entries; owned */
    json_object *declared; /* tool -> further members of its entry in a script; owned */
    json_object *answers;  /* owned */
    json_object
        *requests; /* call id -> rv_script_request_make_key(), of calls under way; NULL: they are not noted; owned */
    struct rv_record_secrets secrets;
    int64_t last_us; /* the latest time that was seen */
    rv_err *lost;    /* why a part is missing, the first reason: told at the end; owned */
};

rv_recorder *rv_recorder_new(void)
{
    rv_recorder *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->models = json_object_new_object();
    r->tools = json_object_new_object();
    r->declared = json_object_new_object();
    r->answers = json_object_new_array();
    if (!r->models || !r->tools || !r->declared || !r->answers) {
        rv_recorder_free(r);
        return NULL;
    }
    return r;
}

static void call_fini(struct rv_record_call *c)
{
    rv_buf_fini(&c->text);
    free(c->pieces);
}

void rv_recorder_free(rv_recorder *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_calls; i++)
        call_fini(&r->calls[i]);
    free(r->calls);
    json_object_put(r->models);
    json_object_put(r->tools);
    json_object_put(r->declared);
    json_object_put(r->answers);
    json_object_put(r->requests);
    app_record_secrets_fini(&r->secrets);
    rv_err_free(r->lost);
    free(r);
}

/* rc: of a step that keeps a part. Takes why. */
static void note_lost(rv_recorder *r, int rc, rv_err *why)
{
    if (rc == 0)
        return;
    if (r->lost)
        rv_err_free(why);
    else
        r->lost = why;
}

static void note_no_memory(rv_recorder *r)
{
    rv_err *why = NULL;
    int rc = RV_FAIL(&why, RV_E_NOMEM, "record what a run is told");

    note_lost(r, rc, why);
}

void rv_recorder_hide(rv_recorder *r, const struct rv_pipeline *p)
{
    size_t n;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n);
    rv_err *why = NULL;
    int rc = app_record_secrets_of(&r->secrets, p, &why);

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = app_record_secrets_of(&r->secrets, inner[i], &why);
    note_lost(r, rc, why);
}

void rv_recorder_note_tools(rv_recorder *r, const struct rv_pipeline *p, const struct rv_catalog *c)
{
    size_t n;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n);
    rv_err *why = NULL;
    int rc = app_record_declare(r->declared, p, c, &why);

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = app_record_declare(r->declared, inner[i], c, &why);
    note_lost(r, rc, why);
}

static void note_time(rv_recorder *r, int64_t now_us)
{
    if (now_us > r->last_us)
        r->last_us = now_us;
}

/* --- calls under way --- */

static struct rv_record_call *call_of(rv_recorder *r, int64_t id)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].id == id)
            return &r->calls[i];
    return NULL;
}

static int begin_call(rv_recorder *r, bool is_model, const char *name, int64_t id, int64_t start_us)
{
    json_object *map = is_model ? r->models : r->tools, *list = rv_json_get_arr(map, name);
    int rc = 0;

    if (!rv_has_room(&r->calls, &r->cap_calls, r->n_calls + 1, sizeof *r->calls))
        return RV_E_NOMEM;
    if (!list) {
        list = json_object_new_array();
        rc = rv_json_set_take(map, name, list, RV_CODE_ONLY("it fails without memory only, which the caller notes"));
    }
    json_object *entry = rc == 0 ? json_object_new_object() : NULL;
    if (rc == 0)
        rc = rv_json_push_take(list, entry, RV_CODE_ONLY("it fails without memory only, which the caller notes"));
    if (rc == 0)
        r->calls[r->n_calls++] = (struct rv_record_call){.id = id,
                                                         .start_us = start_us,
                                                         .is_model = is_model,
                                                         .entry = entry,
                                                         .text = RV_BUF_INIT(2 * RV_LLM_MAX_REPLY)};
    return rc;
}

static void end_call(rv_recorder *r, struct rv_record_call *c)
{
    call_fini(c);
    *c = r->calls[--r->n_calls];
}

void rv_recorder_note_event(rv_recorder *r, const struct rv_effect *e, rv_str line)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH, .what = "the beginning of a call"};
    rv_err *why = NULL;
    json_object *json = NULL;
    const char *name = NULL, *time = NULL;
    int64_t id = 0, start_us = 0;
    bool is_asked = e->origin != NULL; /* then the script has it under the agent's name */

    bool is_model = e->emit == RV_EMIT_LLM_CALL_START, is_tool = e->emit == RV_EMIT_TOOL_CALL_START;
    if (!is_model && !is_tool)
        return;
    int rc = rv_json_parse(line, &opts, &json, &why);
    if (rc < 0)
        note_lost(r, rc, why);
    if (rc == 0 &&
        rv_json_get_text(json,
                         !is_model  ? "tool"
                         : is_asked ? "agent"
                                    : "stage",
                         &name) &&
        rv_json_get_int(json, "call_id", &id) && rv_json_get_text(json, "time", &time) &&
        rv_time_read(rv_str_of(time), &start_us)) {
        note_time(r, start_us);
        rc = begin_call(r, is_model, name, id, start_us);
        if (rc == RV_E_NOMEM)
            note_no_memory(r);
    }
    json_object_put(json);
}

static int room_for_piece(struct rv_record_call *c)
{
    if (c->n_pieces >= MAX_PIECES)
        return RV_E_LIMIT;
    return rv_has_room(&c->pieces, &c->cap_pieces, c->n_pieces + 1, sizeof *c->pieces) ? 0 : RV_E_NOMEM;
}

void rv_recorder_note_delta(rv_recorder *r, int stage, int64_t call_id, const struct rv_llm_delta *d, int64_t now_us)
{
    struct rv_record_call *c = call_of(r, call_id);

    (void)stage; /* the call knows */
    if (!c || (d->kind != RV_LLM_DELTA_TEXT && d->kind != RV_LLM_DELTA_THINKING) || !d->text.len || c->is_whole)
        return;
    note_time(r, now_us);
    int rc = room_for_piece(c);
    if (rc == 0) {
        rv_buf_add_str(&c->text, d->text);
        rc = c->text.rc;
    }
    if (rc == 0)
        c->pieces[c->n_pieces++] = (struct rv_record_piece){
            .at_us = now_us, .is_thinking = d->kind == RV_LLM_DELTA_THINKING, .len = d->text.len};
    c->is_whole = rc < 0;
    if (rc == RV_E_NOMEM)
        note_no_memory(r);
}

/* --- what the run is told --- */

void rv_recorder_note_request(rv_recorder *r, const struct rv_pipeline *p, const struct rv_effect *e)
{
    char key[24], hash[RV_HASH_MAX];

    if (e->kind != RV_EFFECT_CALL_LLM)
        return;
    if (!r->requests && !(r->requests = json_object_new_object())) {
        note_no_memory(r);
        return;
    }
    snprintf(key, sizeof key, "%lld", (long long)e->call_id);
    rv_script_request_make_key(e->pipeline ? e->pipeline : p, e->name, (rv_str){e->request, e->request_len}, hash);
    rv_err *why = NULL;
    int rc = rv_json_set_text(r->requests, key, hash, &why);
    note_lost(r, rc, why);
}

/* The entry of a call tells which request it answers. */
static int name_request(rv_recorder *r, const struct rv_record_call *c, rv_err **err)
{
    const char *hash = NULL;
    char key[24];

    snprintf(key, sizeof key, "%lld", (long long)c->id);
    if (!c->is_model || !r->requests || !rv_json_get_text(r->requests, key, &hash))
        return 0;
    int rc = rv_json_set_text(c->entry, "request", hash, err);
    json_object_object_del(r->requests, key);
    return rc;
}

static int answer_call(rv_recorder *r, const struct rv_event *ev, rv_err **err)
{
    struct rv_record_call *c = call_of(r, ev->call_id);

    if (!c)
        return 0;
    if (app_record_has_secret(&r->secrets, rv_buf_str(&c->text)))
        c->is_whole = true; /* it may lie across pieces */
    int rc = name_request(r, c, err);
    if (rc == 0)
        rc = app_record_answer(c, ev, err);
    end_call(r, c);
    return rc;
}

static int add_answer(rv_recorder *r, const struct rv_response *response, rv_err **err)
{
    json_object *entry = json_object_new_object();
    int rc = rv_json_push_take(r->answers, entry, err);

    if (rc == 0 && response->interrupt_id.ptr && response->asker) /* else whichever is pending takes it, as before */
        rc = rv_json_set_text(entry, "stage", response->asker, err);
    if (rc == 0 && response->text.ptr)
        rc = rv_json_set_str(entry, "text", response->text, err);
    if (rc == 0 && response->has_approved)
        rc = rv_json_set_bool(entry, "approved", response->approved, err);
    if (rc == 0 && response->decision.ptr)
        rc = rv_json_set_str(entry, "decision", response->decision, err);
    if (rc == 0 && response->choice.ptr)
        rc = rv_json_set_str(entry, "choice", response->choice, err);
    if (rc == 0 && response->expired)
        rc = rv_json_set_bool(entry, "expires", true, err);
    if (rc == 0 && response->cancelled)
        rc = rv_json_set_bool(entry, "cancels", true, err);
    if (rc == 0)
        rc = app_record_add_copy(entry, "arguments", response->arguments, err);
    return rc == 0 ? app_record_add_copy(entry, "data", response->data, err) : rc;
}

void rv_recorder_note_input(rv_recorder *r, const struct rv_event *ev)
{
    rv_err *why = NULL;
    int rc = 0;

    note_time(r, ev->now_us);
    if (ev->kind == RV_EVENT_LLM_DONE || ev->kind == RV_EVENT_TOOL_DONE)
        rc = answer_call(r, ev, &why);
    else if (ev->kind == RV_EVENT_ANSWER)
        rc = add_answer(r, &ev->response, &why);
    note_lost(r, rc, why);
}

/* --- the script --- */

/* Calls whose answer the run no longer waits for. */
static int end_calls(rv_recorder *r, rv_err **err)
{
    int rc = 0;

    while (rc == 0 && r->n_calls > 0) {
        struct rv_record_call *c = &r->calls[r->n_calls - 1];
        if (app_record_has_secret(&r->secrets, rv_buf_str(&c->text)))
            c->is_whole = true;
        rc = name_request(r, c, err);
        if (rc == 0)
            rc = app_record_no_answer(c, r->last_us, err);
        end_call(r, c);
    }
    return rc;
}

void rv_recorder_end_run(rv_recorder *r)
{
    rv_err *why = NULL;
    int rc = end_calls(r, &why);

    note_lost(r, rc, why);
}

static int close_calls(rv_recorder *r, rv_err **err)
{
    int rc = end_calls(r, err);

    if (rc == 0)
        rc = app_record_join_tools(r->declared, r->tools, err);
    if (rc == 0)
        rc = app_record_hide(&r->secrets, r->models, err);
    if (rc == 0)
        rc = app_record_hide(&r->secrets, r->tools, err);
    return rc < 0 ? rc : app_record_hide(&r->secrets, r->answers, err);
}

static int write_text(const rv_recorder *r, const char *note, rv_buf *text, rv_err **err)
{
    rv_buf json = RV_BUF_INIT(MAX_BYTES);
    rv_jw w = rv_jw_on(&json);

    rv_jw_obj(&w);
    if (json_object_object_length(r->models))
        rv_jw_kv_value(&w, "models", r->models);
    if (json_object_object_length(r->tools))
        rv_jw_kv_value(&w, "tools", r->tools);
    if (json_object_array_length(r->answers))
        rv_jw_kv_value(&w, "answers", r->answers);
    rv_jw_obj_end(&w);
    int rc = rv_buf_check(&json, "recording", err);
    rv_buf_clear(text);
    rv_buf_printf(text, "# %s\n", note);
    if (rc == 0)
        rv_script_add_json(rv_buf_str(&json), text);
    rv_buf_putc(text, '\n');
    rv_buf_fini(&json);
    return rc < 0 ? rc : rv_buf_check(text, "recording", err);
}

/* Pieces are joined until the text is one that a script may have. */
static int fit(rv_recorder *r, const char *note, rv_buf *text, rv_err **err)
{
    static const int64_t windows_ms[] = {10, 50, 250, 1000, INT64_MAX};
    int rc = write_text(r, note, text, err);

    for (size_t i = 0; rc == 0 && text->len > RV_YAML_MAX_BYTES && i < RV_COUNT(windows_ms); i++) {
        rc = coarsen_all(r->models, windows_ms[i], err);
        if (rc == 0)
            rc = write_text(r, note, text, err);
    }
    return rc;
}

/* It is written in any case: the answers may have cost money. */
static int check_playable(const rv_buf *text, const char *path, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    rv_script *script = NULL;
    int rc = findings ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the recording");

    if (rc == 0)
        rc = rv_script_parse(rv_buf_str(text), path, findings, &script, err);
    if (rc == 0 && !script) {
        const struct rv_finding f = rv_findings_at(findings, 0);
        rc = RV_FAIL_AT(err, &f.src, RV_E_INVALID, "it was written, but cannot be played: %s", f.text);
    }
    rv_script_free(script);
    rv_findings_free(findings);
    return rc;
}

static int fail_lost(rv_recorder *r, rv_err **err)
{
    int rc = rv_err_pass(err, rv_err_steal(&r->lost));

    return RV_WRAP(err, rc, "a part of the recording is missing");
}

int rv_recorder_write(rv_recorder *r, const char *note, const char *path, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_BYTES);
    int rc = r->lost ? fail_lost(r, err) : close_calls(r, err);

    if (rc == 0)
        rc = fit(r, note, &text, err);
    if (rc == 0)
        rc = rv_file_write(path, rv_buf_str(&text), err);
    if (rc == 0)
        rc = check_playable(&text, path, err);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "write recording \"%s\"", path) : 0;
}
