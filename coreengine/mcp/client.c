/* The client's side of a connection: requests that are open, messages as they come, time. */
#include "coreengine/mcp/client_internal.h"

#include <json-c/linkhash.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LATE   1000 /* bytes of the words about an answer that did not come: a method and numbers */
#define NOMEM(err) RV_FAIL((err), RV_E_NOMEM, "no memory for a connection to an MCP server")

/* --- requests that are open --- */

static void open_free(struct rv_mcp_open *o)
{
    json_object_put(o->params);
    json_object_put(o->headers);
    json_object_put(o->items);
    json_object_put(o->cursors);
    json_object_put(o->cursor);
    json_object_put(o->state);
    json_object_put(o->input);
    json_object_put(o->responses);
    json_object_put(o->samples);
    json_object_put(o->task);
    free(o);
}

static void open_unlink(rv_mcp_client *c, struct rv_mcp_open *o)
{
    struct rv_mcp_open **at = &c->open;

    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    if (!*at)
        c->open_end = at;
    c->n_open--;
}

static struct rv_mcp_open *open_of(const rv_mcp_client *c, int64_t id)
{
    for (struct rv_mcp_open *o = c->open; o; o = o->next)
        if (o->id == id)
            return o;
    return NULL;
}

static int end_with(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, bool asks, rv_err **err)
{
    int rc = mcp_put_result(c, o, result, asks, err);

    if (rc < 0)
        return rc;
    open_unlink(c, o);
    open_free(o);
    return 0;
}

int mcp_end_ok(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, rv_err **err)
{
    return end_with(c, o, result, false, err);
}

int mcp_end_asks(rv_mcp_client *c, struct rv_mcp_open *o, json_object *requests, rv_err **err)
{
    return end_with(c, o, requests, true, err);
}

int mcp_end_failed(rv_mcp_client *c, struct rv_mcp_open *o, const struct rv_mcp_trouble *t, rv_err **err)
{
    struct rv_mcp_trouble of = *t;

    of.is_unsent =
        t->is_unsent && !o->task && !o->samples; /* the server has begun, whatever became of a question after that */
    int rc = mcp_put_trouble(c, o->ask, &of, err);
    if (rc < 0) /* its end cannot be told: it stays open */
        return rc;
    open_unlink(c, o);
    open_free(o);
    return 0;
}

int mcp_die(rv_mcp_client *c, const struct rv_mcp_trouble *t, rv_err **err)
{
    int rc = 0;

    c->phase = RV_MCP_DEAD;
    c->phase_due_us = RV_NEVER;
    while (c->open && rc == 0) {
        struct rv_mcp_trouble of = *t;
        of.is_unsent = !c->open->id;
        rc = mcp_end_failed(c, c->open, &of, err);
    }
    return rc < 0 ? rc : mcp_put_trouble(c, 0, t, err);
}

/* --- what is sent --- */

/* Copies members by reference, but for _meta. */
static int copy_members(json_object *from, json_object *to, rv_err **err)
{
    int rc = 0;

    if (!from)
        return 0;
    json_object_object_foreach (from, key, value) {
        if (strcmp(key, "_meta") == 0)
            continue;
        rc = rv_json_set_ref(to, key, value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int write_meta(const rv_mcp_client *c, const struct rv_mcp_open *o, json_object *params, rv_err **err)
{
    json_object *own = rv_json_get_obj(o->params, "_meta"), *meta = json_object_new_object();

    if (!meta)
        return NOMEM(err);
    int rc = copy_members(own, meta, err);
    if (rc == 0 && o->wants_progress)
        rc = rv_json_set_int(meta, "progressToken", o->id, err);
    if (rc == 0 && c->era == RV_MCP_ERA_MODERN)
        rc = mcp_add_meta(c, meta, c->version, err);
    if (rc == 0 && json_object_object_length(meta) > 0)
        return rv_json_set_take(params, "_meta", meta, err);
    json_object_put(meta);
    return rc;
}

/* Sent, or sent again as the server wants it: each time with an id of its own. */
int mcp_send_open(rv_mcp_client *c, struct rv_mcp_open *o, rv_err **err)
{
    int resumed = mcp_task_resume(c, o, err);
    json_object *params = resumed < 0 ? NULL : json_object_new_object();

    if (!params)
        return resumed < 0 ? resumed : NOMEM(err);
    json_object_put(o->samples); /* what a request before this one asked for is not waited for */
    o->samples = NULL;
    o->id = ++c->last_id;
    o->has_progress = o->has_progress && o->token;
    int rc = copy_members(o->params, params, err);
    if (rc == 0 && o->cursor)
        rc = rv_json_set_ref(params, "cursor", o->cursor, err);
    if (rc == 0 && o->responses)
        rc = rv_json_set_ref(params, "inputResponses", o->responses, err);
    if (rc == 0 && o->state)
        rc = rv_json_set_ref(params, "requestState", o->state, err);
    if (rc == 0 && o->input && c->era == RV_MCP_ERA_MODERN && strcmp(o->method, "tasks/get") != 0)
        rc = mcp_add_input(c, o, params, err);
    if (rc == 0)
        rc = mcp_task_wish(c, o, params, err);
    if (rc == 0)
        rc = write_meta(c, o, params, err);
    bool any = json_object_object_length(params) > 0;
    if (rc == 0)
        rc = mcp_put_request(c,
                             &(struct mcp_request){.id = o->id,
                                                   .method = o->method,
                                                   .params = any ? params : NULL,
                                                   .headers = o->headers,
                                                   .is_modern = c->era == RV_MCP_ERA_MODERN,
                                                   .version = c->version},
                             err);
    json_object_put(params);
    if (rc != RV_E_LIMIT)
        return rc;
    rv_err_free(rv_err_steal(err));
    o->id = 0;
    return mcp_end_failed(c, o,
                          &(struct rv_mcp_trouble){.code = rv_mcp_fault_code(RV_MCP_FAULT_TOO_LARGE),
                                                   .text = "the request is larger than a message may be",
                                                   .is_unsent = true},
                          err);
}

int rv_mcp_client_ask(rv_mcp_client *c, const struct rv_mcp_ask *ask, int64_t now_us, int64_t *out, rv_err **err)
{
    if (c->phase == RV_MCP_DEAD)
        return RV_FAIL(err, RV_E_STATE, "the connection to MCP server \"%s\" has ended", c->server);
    if (c->n_open >= RV_MCP_MAX_ASKS)
        return RV_FAIL(err, RV_E_LIMIT, "MCP server \"%s\": %d requests wait for answers", c->server, RV_MCP_MAX_ASKS);
    struct rv_mcp_open *o = calloc(1, sizeof *o);
    if (!o)
        return NOMEM(err);
    *o = (struct rv_mcp_open){.ask = ++c->last_ask,
                              .method = ask->method,
                              .list = ask->list,
                              .params = json_object_get(ask->params),
                              .headers = json_object_get(ask->headers),
                              .input = json_object_get(ask->input),
                              .is_repeatable = ask->is_repeatable,
                              .needs_task = ask->needs_task,
                              .due_us = ask->timeout_us > 0 ? now_us + ask->timeout_us : RV_NEVER,
                              .wants_progress = ask->wants_progress};
    *c->open_end = o;
    c->open_end = &o->next;
    c->n_open++;
    int64_t name = o->ask; /* one that is too large to send is over, and freed, at once */
    int rc = c->phase == RV_MCP_READY ? mcp_send_open(c, o, err) : 0;
    if (rc < 0) {
        open_unlink(c, o);
        open_free(o);
        return rc;
    }
    *out = name;
    return 0;
}

int mcp_withdraw(rv_mcp_client *c, const struct rv_mcp_open *o, const char *reason, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    int rc = 0;

    if (c->phase == RV_MCP_READY && o->task)
        rc = mcp_task_cancel(c, o, err);
    if (rc < 0 || !o->id || c->phase == RV_MCP_DEAD)
        return rc;
    if (!(c->is_http && c->era == RV_MCP_ERA_MODERN)) { /* there closing the stream says it */
        json_object *params = json_object_new_object();
        if (!params)
            return NOMEM(err);
        rv_json_build_int(&b, params, "requestId", o->id);
        rv_json_build_text(&b, params, "reason", reason);
        rc = b.rc < 0 ? b.rc : mcp_put_notification(c, "notifications/cancelled", params, err);
        json_object_put(params);
    }
    return rc < 0 ? rc : mcp_put_simple(c, RV_MCP_OUT_FORGET, o->id, err);
}

int rv_mcp_client_give_up(rv_mcp_client *c, int64_t ask, rv_err **err)
{
    struct rv_mcp_open *o = c->open;

    while (o && o->ask != ask)
        o = o->next;
    if (!o)
        return 0;
    int rc = mcp_withdraw(c, o, "the caller does not want the answer any more", err);
    open_unlink(c, o);
    open_free(o);
    return rc;
}

/* --- what comes --- */

static int progressed(rv_mcp_client *c, json_object *params, rv_err **err)
{
    json_object *now = NULL, *of = NULL, *text = NULL;
    int64_t token;

    if (!rv_json_get_int(params, "progressToken", &token))
        return 0;
    struct rv_mcp_open *o = c->open;
    while (o && (token <= 0 || !((o->wants_progress && o->id == token) || o->token == token)))
        o = o->next;
    if (!o || !json_object_object_get_ex(params, "progress", &now) || !rv_json_is_number(now))
        return 0;
    double progress = json_object_get_double(now), total = 0;
    if (!isfinite(progress))
        return 0;
    if (o->has_progress && !(progress > o->progress))
        return 0; /* it only grows */
    if (json_object_object_get_ex(params, "total", &of) && rv_json_is_number(of))
        total = json_object_get_double(of);
    json_object_object_get_ex(params, "message", &text);
    o->has_progress = true;
    o->progress = progress;
    return mcp_put_progress(c, o->ask, progress, isfinite(total) && total > 0 ? total : 0, rv_json_str(text), err);
}

static int noticed(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    if (strcmp(m->method, "notifications/progress") == 0)
        return m->params ? progressed(c, m->params, err) : 0;
    if (strcmp(m->method, "notifications/tools/list_changed") == 0 && !c->is_change_told) {
        c->is_change_told = true;
        return mcp_put_simple(c, RV_MCP_OUT_CHANGED, 0, err);
    }
    return 0;
}

static int asked_for_roots(rv_mcp_client *c, json_object *id, rv_err **err)
{
    json_object *roots = NULL;
    int rc = mcp_write_roots(c, &roots, err);

    if (rc == 0)
        rc = mcp_put_answer(c, id, roots, 0, NULL, err);
    json_object_put(roots);
    return rc;
}

/* What was not declared is refused. */
static int asked(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    if (c->era == RV_MCP_ERA_MODERN)
        return mcp_put_note(c, err, "the server sent a request, which its revision forbids");
    if (strcmp(m->method, "ping") == 0)
        return mcp_put_answer(c, m->id, NULL, 0, NULL, err);
    if (c->elicits && strcmp(m->method, "elicitation/create") == 0)
        return mcp_elicited(c, m, err);
    if (c->roots && strcmp(m->method, "roots/list") == 0)
        return asked_for_roots(c, m->id, err);
    if (c->max_samples > 0 && strcmp(m->method, "sampling/createMessage") == 0)
        return mcp_sample_asked(c, m, err);
    return mcp_put_answer(c, m->id, NULL, RV_MCP_METHOD_NOT_FOUND, "the client has not declared this", err);
}

static int64_t id_of(json_object *id)
{
    return rv_json_is_int(id) ? json_object_get_int64(id) : 0;
}

static int answered(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    int64_t id = id_of(m->id);
    struct rv_mcp_open *o = id > 0 ? open_of(c, id) : NULL;

    if (id > 0 && id == c->handshake_id)
        return mcp_handshake_answer(c, m, err);
    if (id > 0 && id == c->probe_id)
        return mcp_handshake_probed(c, m, err);
    if (o)
        return mcp_answered(c, o, m, err);
    if (id > 0 && id <= c->last_id)
        return 0; /* given up, or answered before */
    return mcp_put_note(c, err, "the server answered a request that was not made");
}

int rv_mcp_client_on_message(rv_mcp_client *c, rv_str json, rv_err **err)
{
    struct rv_mcp_message m;
    rv_err *why = NULL;
    int rc;

    if (c->phase == RV_MCP_DEAD)
        return 0;
    rc = rv_mcp_read(json, &m, NULL, &why);
    if (rc == RV_E_NOMEM || rv_err_is(why, RV_E_NOMEM))
        rc = NOMEM(err);
    else if (rc < 0)
        rc = mcp_misread(c, &m, json, rv_err_cause(why) ? rv_err_text(rv_err_cause(why)) : rv_err_text(why), err);
    else if (m.kind == RV_MCP_REQUEST)
        rc = asked(c, &m, err);
    else if (m.kind == RV_MCP_NOTIFICATION)
        rc = noticed(c, &m, err);
    else
        rc = answered(c, &m, err);
    rv_err_free(why);
    rv_mcp_message_fini(&m);
    return rc;
}

static struct rv_mcp_trouble trouble_of(const struct rv_mcp_failure *f)
{
    return (struct rv_mcp_trouble){.code = rv_mcp_fault_code(f->fault),
                                   .text = f->text,
                                   .status = f->status,
                                   .is_unsent = f->is_unsent,
                                   .retryable = f->retryable,
                                   .is_timeout = f->fault == RV_MCP_FAULT_TIMED_OUT};
}

/* An error status may carry the error itself. */
static int failed_one(rv_mcp_client *c, struct rv_mcp_open *o, const struct rv_mcp_failure *f, rv_err **err)
{
    const struct rv_mcp_trouble t = trouble_of(f);
    struct rv_mcp_message m = {0};

    if (f->body.len > 0) {
        int rc = rv_mcp_read(f->body, &m, NULL,
                             RV_CODE_ONLY("a body that is not a message adds nothing to the failure, which is told"));
        if (rc == 0 && m.kind == RV_MCP_ERROR)
            rc = mcp_answered(c, o, &m, err);
        else
            rc = rc == RV_E_NOMEM ? NOMEM(err) : mcp_end_failed(c, o, &t, err);
        rv_mcp_message_fini(&m);
        return rc;
    }
    return mcp_end_failed(c, o, &t, err);
}

int rv_mcp_client_on_failure(rv_mcp_client *c, int64_t id, const struct rv_mcp_failure *failure, int64_t now_us,
                             rv_err **err)
{
    if (c->phase == RV_MCP_DEAD)
        return 0;
    if (id == 0) {
        const struct rv_mcp_trouble t = trouble_of(failure);
        return mcp_die(c, &t, err);
    }
    if (id == c->handshake_id)
        return mcp_handshake_failed(c, failure, err);
    struct rv_mcp_open *o = open_of(c, id);
    if (!o)
        return 0;
    if (failure->fault != RV_MCP_FAULT_SESSION_EXPIRED || !failure->is_unsent || o->was_refused)
        return failed_one(c, o, failure, err);
    o->was_refused = true; /* nothing was done: once more, in a new session */
    o->id = 0;
    return c->phase == RV_MCP_READY ? mcp_handshake_begin(c, now_us, err) : 0;
}

/* --- time --- */

static int write_late(rv_buf *text, const char *what, const char *misread, rv_err **err)
{
    rv_buf_puts(text, what);
    if (misread)
        rv_buf_printf(text, "; meanwhile it sent what is not a message: %s", misread);
    return rv_buf_check(text, "reason", err);
}

static int time_out(rv_mcp_client *c, struct rv_mcp_open *o, rv_err **err)
{
    static const char reason[] = "no answer in time";
    rv_buf text = RV_BUF_INIT(MAX_LATE);
    bool sent = o->id != 0;
    int rc = mcp_withdraw(c, o, reason, err);

    if (rc == 0)
        rc = write_late(&text, "the server did not answer in time", o->heard_misread ? c->misread : NULL, err);
    if (rc == 0)
        rc = mcp_end_failed(c, o,
                            &(struct rv_mcp_trouble){.code = "timed_out",
                                                     .text = rv_buf_cstr(&text),
                                                     .is_unsent = !sent,
                                                     .retryable = true,
                                                     .is_timeout = true},
                            err);
    rv_buf_fini(&text);
    return rc;
}

static int handshake_late(rv_mcp_client *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_LATE);

    if (c->phase == RV_MCP_PROBING && c->era == RV_MCP_ERA_UNKNOWN && c->phase_due_us < c->handshake_due_us) {
        c->probe_id = c->handshake_id;
        return mcp_handshake_initialize(c, err);
    }
    c->handshake_id = 0;
    int rc = write_late(&text, "the server did not begin the connection in time", c->misread, err);
    if (rc == 0)
        rc = mcp_die(c,
                     &(struct rv_mcp_trouble){.code = "timed_out",
                                              .text = rv_buf_cstr(&text),
                                              .is_unsent = true,
                                              .retryable = true,
                                              .is_timeout = true},
                     err);
    rv_buf_fini(&text);
    return rc;
}

int rv_mcp_client_tick(rv_mcp_client *c, int64_t now_us, rv_err **err)
{
    int rc = 0;

    if (now_us >= c->phase_due_us)
        rc = handshake_late(c, err);
    for (struct rv_mcp_open *o = c->open, *next; o && rc == 0; o = next) {
        next = o->next;
        rc = now_us >= o->due_us ? time_out(c, o, err) : mcp_task_tick(c, o, now_us, err);
    }
    return rc;
}

int64_t rv_mcp_client_due_us(const rv_mcp_client *c)
{
    int64_t due = c->phase_due_us;

    for (const struct rv_mcp_open *o = c->open; o; o = o->next)
        due = o->due_us < due ? o->due_us : due;
    for (const struct rv_mcp_open *o = c->open; o; o = o->next)
        if (o->task && !o->id && c->phase == RV_MCP_READY && o->poll_at_us < due)
            due = o->poll_at_us;
    return due;
}

/* --- the whole --- */

int rv_mcp_client_new(const struct rv_mcp_client_opts *opts, int64_t now_us, rv_mcp_client **out, rv_err **err)
{
    rv_mcp_client *c = calloc(1, sizeof *c);

    if (!c)
        return NOMEM(err);
    *c = (rv_mcp_client){.server = rv_str_dup(rv_str_of(opts->server)),
                         .is_http = opts->is_http,
                         .elicits = opts->elicits,
                         .max_samples = opts->max_samples,
                         .roots = json_object_get(opts->roots),
                         .era = opts->era,
                         .handshake_us = opts->handshake_us ? opts->handshake_us : RV_MCP_HANDSHAKE_US};
    c->end = &c->first;
    c->open_end = &c->open;
    int rc = c->server ? mcp_handshake_begin(c, now_us, err) : NOMEM(err);
    if (rc < 0) {
        rv_mcp_client_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

void rv_mcp_client_free(rv_mcp_client *c)
{
    if (!c)
        return;
    while (c->open) {
        struct rv_mcp_open *o = c->open;
        open_unlink(c, o);
        open_free(o);
    }
    mcp_queue_fini(c);
    json_object_put(c->answer);
    json_object_put(c->roots);
    free(c->misread);
    free(c->server);
    free(c);
}

bool rv_mcp_client_is_ready(const rv_mcp_client *c)
{
    return c->phase == RV_MCP_READY;
}

bool rv_mcp_client_is_dead(const rv_mcp_client *c)
{
    return c->phase == RV_MCP_DEAD;
}

enum rv_mcp_version rv_mcp_client_version(const rv_mcp_client *c)
{
    return c->version;
}

enum rv_mcp_era rv_mcp_client_era(const rv_mcp_client *c)
{
    return c->era;
}

bool rv_mcp_client_offers(const rv_mcp_client *c, const char *capability)
{
    return rv_json_get_obj(rv_json_get_obj(c->answer, "capabilities"), capability) != NULL;
}
