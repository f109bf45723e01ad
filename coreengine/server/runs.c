/* Handlers of runs: started through the queue, listed, watched, answered, cancelled, forked. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/server/chats_internal.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/server/pieces_internal.h"

/* --- one run is watched --- */

static void free_follow(void *made)
{
    free(made);
}

static int new_follow(const struct srv_call *c, const char *run, struct srv_follow_ask **out, rv_err **err)
{
    struct srv_follow_ask *f = strlen(run) <= RV_STORE_MAX_ID ? calloc(1, sizeof *f) : NULL;

    if (!f && strlen(run) > RV_STORE_MAX_ID) {
        RV_FAIL(err, RV_E_NOT_FOUND, "the id of a run has at most %d characters", RV_STORE_MAX_ID);
        rv_err_set_hint(err, "GET /runs lists the runs");
        return RV_E_NOT_FOUND;
    }
    if (!f)
        return RV_FAIL(err, RV_E_NOMEM, "follow a run");
    memcpy(f->run, run, strlen(run) + 1);
    memcpy(f->tenant, c->who.tenant, sizeof f->tenant);
    if (c->app.scope.user) {
        f->has_user = true;
        memcpy(f->user, c->app.scope.user, strlen(c->app.scope.user) + 1);
    }
    *out = f;
    return 0;
}

static int make_follow(struct srv_call *c, const char *run, struct srv_follow_ask **out, rv_err **err)
{
    int rc = new_follow(c, run, out, err);

    if (rc < 0)
        return rc;
    c->made = *out;
    c->free_made = free_follow;
    return 0;
}

void srv_run_begin(struct srv_call *c)
{
    srv_follows_ask(c->server->follows, c, c->made);
}

/* How what happens is told: events, or lines if they are asked for. */
static int take_form(const struct srv_call *c, enum srv_follow_form *out, rv_err **err)
{
    char *accept = NULL;
    int rc = srv_call_dup_header(c, "accept", &accept, err);

    if (rc == 0)
        *out = accept && strstr(accept, "application/x-ndjson") ? SRV_FOLLOW_LINES : SRV_FOLLOW_EVENTS;
    free(accept);
    return rc;
}

int srv_run_last_event(struct srv_call *c, const char *run, int64_t *out, rv_err **err)
{
    struct rv_app_past past = {0};
    struct rv_replayed r = {0};
    int rc = rv_app_past_open(c->store, &c->app.scope, run, &past, err);

    if (rc == 0)
        rc = rv_app_past_replay(c->store, &past, NULL, &r, err);
    if (rc == 0) {
        *out = rv_run_counters(r.run).next_seq - 1;
        rv_replayed_fini(&r);
    }
    rv_app_past_fini(&past);
    return rc;
}

/* Is there anything from that number on, of a run that is over? */
static int is_past_end(struct srv_call *c, const struct srv_follow_ask *f, const struct rv_run_row *row, bool *out,
                       rv_err **err)
{
    int64_t last = 0;

    *out = false;
    if (f->from <= 1 || !rv_run_status_is_final(row->status))
        return 0;
    int rc = srv_run_last_event(c, f->run, &last, err);
    *out = rc == 0 && f->from > last;
    return rc;
}

int srv_run_events(struct srv_call *c, rv_err **err)
{
    struct srv_follow_ask *f;
    struct rv_run_row row;
    bool is_past = false;
    int64_t from = 1, piece = INT64_MAX;
    rv_str last;

    int rc = rv_store_get_run(c->store, &c->app.scope, c->args[0], &row, err);
    if (rc < 0)
        return rc;
    rc = make_follow(c, c->args[0], &f, err);
    if (rc == 0)
        rc = srv_call_int(c, "from", 1, INT64_MAX, &from, err);
    if (rc == 0 && rv_httpd_find_field(c->req, "last-event-id", &last, NULL) && last.len > 0) {
        struct srv_piece_cursor cursor;
        if (!srv_piece_cursor_read(last, &cursor))
            rc = RV_FAIL(err, RV_E_INVALID, "Last-Event-ID must be the id of an event or a delta, such as 17 or 17.2");
        from = rc == 0 ? cursor.seq + 1 : 1;
        piece = rc == 0 ? cursor.piece : 0;
    }
    if (rc == 0) {
        f->from = from;
        f->piece = piece;
        rc = srv_call_bool(c, "deltas", &f->deltas, err);
    }
    if (rc == 0)
        rc = take_form(c, &f->form, err);
    if (rc == 0)
        rc = is_past_end(c, f, &row, &is_past, err);
    if (rc == 0 && is_past)
        c->status = 204;
    rv_run_row_fini(&row);
    return rc;
}

/* --- a new run --- */

static int make_state(struct srv_call *c, json_object **out, rv_err **err)
{
    json_object *state = NULL, *input = NULL;
    const char *session = NULL;
    int rc = srv_body_text(c, "session", false, &session, err);

    *out = NULL;
    if (rc == 0 && json_object_object_get_ex(c->body, "input", &input) && !json_object_is_type(input, json_type_string))
        rc = RV_FAIL(err, RV_E_INVALID, "\"input\" must be a text");
    if (rc == 0 && json_object_object_get_ex(c->body, "state", &state) && !json_object_is_type(state, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "\"state\" must be an object");
    if (rc < 0)
        return rc;
    if (state)
        rc = rv_json_dup(state, out, err);
    else if (!(*out = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "start a run");
    if (rc == 0 && input)
        rc = rv_json_set_str(*out, "raw_input", rv_json_str(input), err);
    if (rc == 0 && session)
        rc = rv_json_set_text(*out, "session_id", session, err);
    if (rc == 0 && c->who.user[0])
        rc = rv_json_set_text(*out, "user_id", c->who.user, err);
    return rc;
}

/* The faults of a pipeline are its author's: they go to the log. */
static int check_sound(struct srv_call *c, struct rv_app_loaded *l, const char *name, rv_err **err)
{
    int rc = l->pipeline ? rv_app_check(l, false, err) : 0;

    if (rc < 0 || rv_findings_n_errors(l->findings) == 0)
        return rc;
    size_t i = 0;
    while (rv_findings_at(l->findings, i).severity == RV_SEVERITY_WARNING)
        i++;
    const struct rv_finding f = rv_findings_at(l->findings, i);
    RV_LOG(c->app.log, ERROR, "pipeline.faulty", RV_F_TEXT("pipeline", name), RV_F_TEXT("finding", f.text));
    return RV_FAIL(err, RV_E_STATE, "the pipeline \"%.100s\" has errors: the server's log names them", name);
}

int srv_run_mode(struct srv_call *c, int *mode, rv_err **err)
{
    enum rv_run_mode which = RV_MODE_UNSET;
    const char *word = NULL;

    int rc = srv_body_text(c, "mode", false, &word, err);
    if (rc == 0 && word)
        rc = rv_run_mode_of(rv_str_of(word), &which, err);
    if (rc == 0)
        *mode = which;
    return rc;
}

/* A run says in its state which trace it belongs to: that is its caller's, as far as the caller is trusted with it. */
static int set_trace(json_object *state, const struct srv_trace *caller, rv_str trace_state, rv_err **err)
{
    json_object *metadata = rv_json_get_obj(state, "metadata");
    int rc = 0;

    if (metadata && !caller->is_trusted) {
        json_object_object_del(metadata, RV_TRACE_PARENT);
        json_object_object_del(metadata, RV_TRACE_STATE);
    }
    if (!caller->parent[0])
        return 0;
    if (!metadata) {
        metadata = json_object_new_object();
        rc = rv_json_set_take(state, "metadata", metadata, err);
    }
    if (rc == 0)
        rc = rv_json_set_text(metadata, RV_TRACE_PARENT, caller->parent, err);
    if (rc == 0 && trace_state.len > 0)
        rc = rv_json_set_str(metadata, RV_TRACE_STATE, trace_state, err);
    return rc;
}

/* Clients of OpenAI's package send no key. They count how often they repeat a request: from 1 on an equal one is the
 * same. buf: has room for the name. */
static int name_request(const struct srv_call *c, const char *hash, char *buf, size_t size, struct rv_app_submit *how,
                        rv_err **err)
{
    char *count = NULL;
    int rc = how->key ? 0 : srv_call_dup_header(c, "x-stainless-retry-count", &count, err);

    if (rc == 0 && count) {
        snprintf(buf, size, "body %s", hash);
        how->ask = buf;
        how->repeats = strcmp(count, "0") != 0;
    }
    free(count);
    return rc;
}

static int submit(struct srv_call *c, struct rv_app_loaded *l, json_object *state, struct rv_app_submitted *out,
                  rv_err **err)
{
    char *key = NULL, *trace = NULL, hash[RV_HASH_MAX], ask[RV_STREAM_MAX_ASK + 1];
    struct srv_trace caller = srv_watch_trace(c);
    struct rv_webhook hooks[SRV_MAX_WEBHOOKS];
    struct rv_app_submit how = {.webhooks = hooks};
    struct rv_app_run run = {.app = &c->app, .loaded = l, .mode = RV_UNSET, .store = c->store};
    rv_envelope *env = NULL;
    int rc = srv_call_key(c, "", &key, hash, err);
    if (rc == 0)
        rc = srv_call_dup_header(c, "traceparent", &trace, err);
    how.key = key;
    how.request = key ? hash : NULL;
    if (rc == 0)
        rc = name_request(c, hash, ask, sizeof ask, &how, err);
    how.trusts_trace = caller.is_trusted;
    how.trace = rv_trace_is_set(&caller.caller) ? trace : NULL;
    if (rc == 0)
        rc = srv_run_mode(c, &run.mode, err);
    if (rc == 0)
        rc = srv_body_int(c, "priority", -RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY, &how.priority, err);
    if (rc == 0)
        rc = srv_body_text(c, "session", false, &run.session, err);
    if (rc == 0 && run.session)
        rc = srv_session_check_owner(c, run.session, err);
    if (rc == 0)
        rc = srv_webhooks_read(c, hooks, &how.n_webhooks, err);
    if (rc == 0)
        rc = srv_body_bool(c, "deltas", &how.keeps_deltas, err);
    if (rc == 0)
        rc = set_trace(state, &caller, srv_watch_trace_state(c, &caller), err);
    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_system(), srv_now_us(), &env, err);
    if (rc == 0)
        rc = rv_app_check_user(&c->app.scope, rv_envelope_fields(env)->user_id, err);
    if (rc == 0)
        rc = rv_app_run_open(&run, err);
    if (rc == 0)
        rc = rv_app_submit(&run, env, &how, out, err);
    if (rc == 0)
        rv_worker_tell(c->server->worker_stop);
    rv_envelope_free(env);
    rv_app_run_fini(&run);
    free(trace);
    free(key);
    return rc;
}

int srv_run_load(struct srv_call *c, const char *name, struct rv_app_loaded *out, json_object **state, rv_err **err)
{
    struct rv_app_load_opts opts = {.connects = true, .keeps = true, .store = c->store};
    rv_buf path = RV_BUF_INIT(8192), script = RV_BUF_INIT(8192);

    *state = NULL;
    int rc = rv_app_find_pipeline_path(c->server->opts->pipelines, name, &path, err);
    if (rc == 0)
        rc = make_state(c, state, err);
    if (rc == 0 && c->server->opts->scripts) {
        rv_buf_printf(&script, "%s/%s.yaml", c->server->opts->scripts, name);
        rc = rv_buf_check(&script, "the path of a script", err); /* without it the run would ask the real model */
        opts.script = rc == 0 && access(rv_buf_cstr(&script), F_OK) == 0 ? rv_buf_cstr(&script) : NULL;
    }
    if (rc == 0)
        rc = rv_app_load(&c->app, rv_buf_cstr(&path), &opts, out, err);
    if (rc == 0 && (rc = check_sound(c, out, name, err)) < 0)
        rv_app_loaded_fini(out);
    if (rc < 0) {
        json_object_put(*state);
        *state = NULL;
    }
    rv_buf_fini(&path);
    rv_buf_fini(&script);
    return rc;
}

static int start(struct srv_call *c, const char *name, struct rv_app_submitted *out, rv_err **err)
{
    json_object *state = NULL;
    struct rv_app_loaded l;
    int rc = srv_run_load(c, name, &l, &state, err);

    if (rc < 0)
        return rc;
    rc = submit(c, &l, state, out, err);
    if (rc == 0)
        snprintf(c->run_id, sizeof c->run_id, "%s", out->run);
    rv_app_loaded_fini(&l);
    json_object_put(state);
    return rc;
}

/* In the words of the store, without what was tried. */
static void refuse_quota(struct srv_call *c, const rv_err *err, int64_t again_us)
{
    while (rv_err_cause(err))
        err = rv_err_cause(err);
    c->is_refused = true;
    rv_refuse_quota(c->refusal, rv_err_text(err), again_us, srv_now_us());
}

int srv_run_of_model(struct srv_call *c, const char *model, rv_str input, const struct rv_protocol_opts *opts,
                     struct srv_follow_ask **out, rv_err **err)
{
    struct rv_app_submitted done = {.is_new = false};

    c->is_refused = rv_identity_needs(&c->who, RV_SCOPE_RUNS_WRITE, c->refusal) == RV_E_DENIED;
    if (c->is_refused)
        return 0;
    c->body = json_object_new_object();
    int rc = c->body ? rv_json_set_str(c->body, "input", input, err) : RV_FAIL(err, RV_E_NOMEM, "start a run");
    if (rc == 0)
        rc = start(c, model + strlen(SRV_PIPELINE), &done, err);
    if (rc == RV_E_QUOTA)
        refuse_quota(c, *err, done.again_us);
    if (rc == 0)
        rc = new_follow(c, done.run, out, err);
    if (rc < 0)
        return rc;
    (*out)->until_waits = true;
    (*out)->form = SRV_FOLLOW_CHAT;
    rc = srv_told_new(opts, done.run, model, &(*out)->told, err);
    if (rc < 0) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

int srv_runs_post(struct srv_call *c, rv_err **err)
{
    struct rv_app_submitted done = {.is_new = false};
    struct srv_follow_ask *f;
    const char *name = NULL;
    bool waits = false, streams = false, has_deltas = false;
    enum srv_follow_form form = SRV_FOLLOW_EVENTS;
    rv_buf place = RV_BUF_INIT(1024);

    if (!rv_json_get_text(c->body, "pipeline", &name))
        return RV_FAIL(err, RV_E_INVALID, "the body needs \"pipeline\", the name of a pipeline of the server");
    int rc = srv_body_bool(c, "wait", &waits, err);
    if (rc == 0)
        rc = srv_body_bool(c, "stream", &streams, err);
    if (rc == 0)
        rc = srv_body_bool(c, "deltas", &has_deltas, err);
    if (rc == 0)
        rc = take_form(c, &form, err);
    if (rc < 0)
        return rc;
    rc = start(c, name, &done, err);
    if (rc == RV_E_QUOTA)
        refuse_quota(c, *err, done.again_us);
    if (rc < 0)
        return rc;
    rv_buf_printf(&place, "/runs/%s", done.run);
    srv_call_field_buf(c, "Location", &place);
    rv_buf_fini(&place);
    if (waits || streams) {
        rc = make_follow(c, done.run, &f, err);
        if (rc == 0) {
            f->until_waits = true;
            f->deltas = has_deltas;
            f->form = streams ? form : SRV_FOLLOW_RESULT;
        }
        return rc;
    }
    rv_jw w = srv_call_json(c, done.is_new ? 202 : 200);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "id", done.run);
    rv_jw_kv_bool(&w, "is_new", done.is_new);
    rv_jw_obj_end(&w);
    return 0;
}

/* --- lists --- */

int srv_runs_list(struct srv_call *c, rv_err **err)
{
    char *status = NULL, *session = NULL, *pipeline = NULL;
    struct rv_app_runs list = {0};
    rv_jw w = srv_call_json(c, 200);

    int rc = srv_call_dup_text(c, "status", &status, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "session", &session, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "pipeline", &pipeline, err);
    struct rv_run_filter filter = {.limit = SRV_LIMIT, .session = session, .pipeline = pipeline};
    if (rc == 0)
        rc = srv_call_int(c, "limit", 1, SRV_MAX_LIMIT, &filter.limit, err);
    for (int i = 0; status && i < RV_N_RUN; i++)
        if (strcmp(status, rv_run_status_text((enum rv_run_status)i)) == 0)
            filter.statuses = 1u << i;
    if (rc == 0 && status && !filter.statuses)
        rc = RV_FAIL(err, RV_E_INVALID, "status \"%.40s\" is not a status of runs", status);
    if (rc == 0)
        rc = rv_app_runs_find(c->store, &c->app.scope, filter, &list, err);
    if (rc == 0)
        rv_app_runs_write(&list, &w);
    rv_app_runs_fini(&list);
    free(status);
    free(session);
    free(pipeline);
    return rc;
}

static int add_pending(void *self, const struct rv_pending *p, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *body = NULL;
    int rc = rv_json_parse(p->body, &opts, &body, err);

    return rc < 0 ? rc : rv_json_push_take(self, body, err);
}

int srv_run_show(struct srv_call *c, rv_err **err)
{
    const struct rv_app_window window = {.first = 20, .last = 80};
    struct rv_app_past past = {0};
    struct rv_app_steps steps = {0};
    struct rv_replayed replayed = {0};
    json_object *pending = json_object_new_array();
    struct rv_run_row row;

    int rc = pending ? rv_store_get_run(c->store, &c->app.scope, c->args[0], &row, err)
                     : RV_FAIL(err, RV_E_NOMEM, "show a run");
    if (rc == 0) {
        rv_run_row_fini(&row);
        rc = rv_app_past_open(c->store, &c->app.scope, c->args[0], &past, err);
    }
    if (rc == 0)
        rc = rv_app_steps_read(c->store, &past, &window, &steps, &replayed, err);
    if (rc == 0)
        rc = rv_store_list_pending(c->store, &c->app.scope, c->args[0], add_pending, pending, err);
    const struct rv_app_view view = {
        .past = &past, .steps = &steps, .replayed = &replayed, .pending = pending, .now_us = srv_now_us()};
    if (rc == 0) {
        RV_IGNORE((srv_call_json(c, 200), 0), "the view writes itself");
        rv_app_view_write(&view, &c->out);
    }
    rv_app_steps_fini(&steps);
    rv_replayed_fini(&replayed);
    rv_app_past_fini(&past);
    json_object_put(pending);
    return rc;
}

static int write_interrupt(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    (void)err;
    rv_app_interrupt_write(row, self);
    return 0;
}

int srv_interrupts(struct srv_call *c, rv_err **err)
{
    char *run = NULL, *session = NULL;
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = srv_call_dup_text(c, "run", &run, err);
    if (rc == 0)
        rc = srv_call_dup_text(c, "session", &session, err);
    const struct rv_interrupt_filter filter = {
        .run = run, .session = session, .open_only = true, .limit = SRV_MAX_LIMIT};
    if (rc == 0)
        rc = rv_store_list_interrupts(c->store, &c->app.scope, &filter, write_interrupt, &w, err);
    rv_jw_arr_end(&w);
    free(run);
    free(session);
    return rc;
}

/* --- changes --- */

static void write_done(struct srv_call *c, const char *run, const char *what)
{
    rv_jw w = srv_call_json(c, 202);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "id", run);
    rv_jw_kv_bool(&w, what, true);
    rv_jw_obj_end(&w);
}

int srv_run_cancel(struct srv_call *c, rv_err **err)
{
    int rc = rv_app_enqueue_cancel(c->store, &c->app.scope, c->args[0], err);

    if (rc == 0)
        write_done(c, c->args[0], "cancel_requested");
    return rc;
}

static rv_str text_member(json_object *body, const char *key)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(body, key, &value) || !json_object_is_type(value, json_type_string))
        return (rv_str){NULL, 0};
    return rv_json_str(value);
}

static void read_answer(json_object *body, struct rv_response *r)
{
    bool cancelled = false;

    r->text = text_member(body, "text");
    r->decision = text_member(body, "decision");
    r->choice = text_member(body, "choice");
    r->interrupt_id = text_member(body, "interrupt_id");
    r->has_approved = rv_json_get_bool(body, "approved", &r->approved);
    r->arguments = rv_json_get_obj(body, "arguments");
    RV_IGNORE(json_object_object_get_ex(body, "data", &r->data), "there may be none");
    r->cancelled = rv_json_get_bool(body, "cancelled", &cancelled) && cancelled;
}

int srv_run_answer(struct srv_call *c, rv_err **err)
{
    struct rv_app_question q = {.n = 0};
    struct rv_response r = {.text = {NULL, 0}};
    struct rv_run_row row;
    bool is_new = false;

    int rc = rv_store_get_run(c->store, &c->app.scope, c->args[0], &row, err);
    if (rc < 0)
        return rc;
    read_answer(c->body, &r);
    rc = rv_app_find_question(c->store, &c->app.scope, &row, r.interrupt_id, &q, err);
    if (rc == 0)
        rc = rv_app_check_answer(&q, &r, err);
    if (rc == 0)
        rc = rv_app_check_arguments(c->store, &c->app.scope, &row, &q, &r, err);
    if (rc == 0) {
        r.interrupt_id = rv_str_of(q.id);
        rc = rv_app_enqueue(c->store, &c->app.scope, c->args[0], &r, &is_new, err);
    }
    if (rc == 0 && !is_new)
        rc = RV_FAIL(err, RV_E_STATE, "an answer to this question waits already");
    rv_app_question_fini(&q);
    rv_run_row_fini(&row);
    if (rc == 0)
        write_done(c, c->args[0], "answered");
    return rc;
}

int srv_run_fork(struct srv_call *c, rv_err **err)
{
    struct rv_app_fork fork = {.step = 0};
    struct rv_run_row row;

    if (json_object_object_get_ex(c->body, "step", NULL) &&
        (!rv_json_get_int(c->body, "step", &fork.step) || fork.step < 0))
        return RV_FAIL(err, RV_E_INVALID, "step must be the number of a step of the run, or 0 for its beginning");
    int rc = rv_store_get_run(c->store, &c->app.scope, c->args[0], &row, err);
    if (rc < 0)
        return rc;
    rv_run_row_fini(&row);
    rc = rv_app_fork(&c->app, c->store, c->args[0], &fork, err);
    if (rc == 0)
        rc = rv_app_enqueue(c->store, &c->app.scope, fork.id, NULL, NULL, err);
    if (rc == 0)
        write_done(c, fork.id, "is_new");
    return rc;
}
