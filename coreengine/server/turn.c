/* One turn of a chat: what happens in it becomes lines of its stream, and when these are in the store, the client is
 * sent what they say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/turns_internal.h"

#define MAX_UNKEPT  ((size_t)1 << 20)  /* bytes of a stream that are not in the store yet: the model is held */
#define MAX_UNTAKEN ((size_t)64 << 10) /* bytes that the client has not taken: the model is held */

void srv_turn_close_log(struct turn *t, enum rv_app_stream_close how)
{
    if (t->log)
        rv_app_stream_close(t->log, how);
    t->log = NULL;
}

/* --- what its client is sent --- */

static void begin_stream(struct turn *t)
{
    if (t->has_begun || !t->st)
        return;
    t->has_begun = true;
    srv_stream_field(t->st, "X-Session-Id", rv_chat_session(rv_app_user_chat_chat(t->user_chat)));
    srv_stream_field(t->st, "X-Run-Id", t->ask->run);
    if (!t->ask->opts.is_whole)
        srv_stream_begin(t->st);
}

static void flush(struct turn *t)
{
    if (t->ask->opts.is_whole)
        return;
    if (t->st && t->out.len > 0) {
        srv_stream_write(t->st, &t->out);
        rv_buf_init(&t->out, RV_PROTOCOL_MAX_OUT);
    }
    rv_buf_clear(&t->out);
}

void srv_turn_read_on(struct turn *t)
{
    bool is_full = t->st && srv_stream_is_full(t->st, MAX_UNTAKEN);

    if (!t->is_held || is_full || (t->log && rv_app_stream_waiting(t->log) > MAX_UNKEPT))
        return;
    t->is_held = false;
    rv_chat_read_on(rv_app_user_chat_chat(t->user_chat));
}

static void finish(struct turn *t)
{
    enum rv_run_status status = srv_view_status(t->view);

    if (t->st) {
        begin_stream(t);
        if (t->ask->opts.is_whole) {
            srv_view_put_fields(t->view, t->st);
            srv_stream_answer(t->st, srv_view_http(t->view), "application/json", &t->out);
            rv_buf_init(&t->out, RV_PROTOCOL_MAX_OUT);
        } else {
            flush(t);
            srv_stream_end(t->st);
        }
        t->st = NULL;
    }
    srv_turn_close_log(t, RV_APP_STREAM_ENDS);
    if (t->is_told && status == RV_RUN_INTERRUPTED && !t->all->is_draining)
        srv_turn_park(t);
    else
        srv_turn_end(t);
}

/* The client of a stream that broke must not take it for one that ended. */
static void tell_broken(struct turn *t, rv_err *err)
{
    int rc = rv_err_code(err);

    if (t->has_begun && t->view && srv_view_break(t->view, rc, &t->out)) {
        flush(t);
        srv_stream_end(t->st);
        rv_err_free(err);
    } else {
        srv_stream_fail(t->st, rc, err);
    }
    t->st = NULL;
}

static void broken(struct turn *t, rv_err *err)
{
    RV_LOG(t->all->app.log, WARN, "stream.broken", RV_F_TEXT("run_id", t->ask->run), RV_F_ERR("error", err));
    if (t->st)
        tell_broken(t, err);
    else
        rv_err_free(err);
    srv_turn_close_log(t, RV_APP_STREAM_LEAVES);
    if (t->is_told) { /* its end cannot be told any more */
        srv_turn_end(t);
        return;
    }
    t->is_told = true;
    rv_chat_cancel(rv_app_user_chat_chat(t->user_chat));
}

/* --- lines that are in the store now --- */

struct kept {
    struct srv_message message;
    struct srv_turns *all;
    int64_t serial;
    struct rv_stream_part part; /* its lines are owned */
    rv_err *err;
};

static void on_kept_message(struct srv_message *l)
{
    struct kept *k = (struct kept *)l;
    struct turn *t = srv_turn_of(k->all, k->serial);
    rv_err *err = k->err;
    int rc = 0;

    if (!t || !t->log) {
        rv_err_free(err);
    } else {
        if (!err)
            rc = srv_view_lines(t->view, &k->part, &t->out, &err);
        if (rc > 0)
            rc = RV_FAIL(&err, RV_E_INTERNAL, "a line of a stream is of an event that did not happen");
        if (err) {
            broken(t, err);
        } else {
            begin_stream(t);
            flush(t);
            srv_turn_read_on(t);
            if (srv_view_is_over(t->view))
                finish(t);
        }
    }
    free((char *)k->part.lines.ptr);
    free(k);
}

/* Lines that cannot be handed on end the stream: its client comes back for them. */
static void on_kept(void *self, const struct rv_stream_part *part, rv_buf *lines, bool more, int rc, const rv_err *why)
{
    struct turn *t = self; /* its log is open, so it is there */
    struct kept *k = calloc(1, sizeof *k);

    if (!k) {
        k = t->spare;
        t->spare = NULL;
        rc = rc < 0 ? rc : RV_E_NOMEM;
        if (!k) /* it was told that it is broken */
            return;
    }
    k->message.open = on_kept_message;
    k->message.is_followed = more;
    k->all = t->all;
    k->serial = t->serial;
    if (rc == 0) {
        k->part = *part;
        k->part.lines.ptr = rv_buf_steal(lines, &k->part.lines.len);
    } else {
        rc = RV_FAIL(&k->err, rc, "%s", why ? rv_err_text(why) : "go on with a stream");
    }
    srv_loop_post(&t->all->loop, &k->message);
}

/* --- what happens in a turn, as lines --- */

static int open_log(struct turn *t, rv_err **err)
{
    const struct srv_turn_ask *a = t->ask;
    rv_buf line = RV_BUF_INIT(RV_PROTOCOL_MAX_TEXT);
    char id[SRV_STREAM_ID];

    srv_stream_id(a->run, a->ordinal, id);
    rv_buf_puts(&line, "open ");
    rv_buf_add_str(&line, rv_buf_str(&a->open));
    rv_buf_putc(&line, '\n');
    const struct rv_app_stream_opts how = {
        .id = id, .owner = t->all->owner, .is_whole = a->opts.is_whole, .on_kept = on_kept, .self = t};
    const struct rv_stream_part part = {.first = 1, .at_us = a->open_us, .lines = rv_buf_str(&line)};
    if (!t->view)
        t->view = srv_view_new(NULL);
    if (!t->spare)
        t->spare = calloc(1, sizeof *t->spare);
    int rc = t->view && t->spare ? rv_buf_check(&line, "the first line of a stream", err)
                                 : RV_FAIL(err, RV_E_NOMEM, "begin a turn");
    if (rc == 0)
        rc = rv_app_stream_new(t->all->server->streams, &how, &t->log, err);
    if (rc == 0)
        rc = srv_view_lines(t->view, &part, &t->out, err);
    if (rc == 0) {
        begin_stream(t);
        flush(t);
    }
    rv_buf_fini(&line);
    rv_buf_fini(&t->ask->open); /* the stream has it now */
    rv_buf_init(&t->ask->open, RV_PROTOCOL_MAX_TEXT);
    return rc;
}

/* The number of an event that a journal has; 0: none has it. */
static int64_t number_of(rv_str line)
{
    static const char head[] = "{\"seq\":";
    size_t i = sizeof head - 1;
    int64_t n = 0;

    if (line.len <= i || memcmp(line.ptr, head, i) != 0)
        return 0;
    for (; i < line.len && rv_is_digit(line.ptr[i]) && n < INT64_MAX / 100; i++)
        n = n * 10 + (line.ptr[i] - '0');
    return n;
}

/* A router has a run of its own before. */
static bool is_of_answer(struct turn *t, rv_str line)
{
    if (!t->is_answering && memmem(line.ptr, line.len, "\"pipeline_started\"", 18))
        t->is_answering = memmem(line.ptr, line.len, t->ask->run, strlen(t->ask->run)) != NULL;
    return t->is_answering;
}

/* What a router used is the turn's: its events are lines as they are. Those of a turn that has not begun wait: a stream
 * with lines has a run, which others go on with. */
static void tell_routing(struct turn *t)
{
    rv_str rest = rv_buf_str(&t->routing);
    size_t n;

    for (; rest.len > 0; rest = (rv_str){rest.ptr + n + 1, rest.len - n - 1}) {
        n = (size_t)((const char *)memchr(rest.ptr, '\n', rest.len) - rest.ptr);
        rv_app_stream_note(t->log, "", (rv_str){rest.ptr, n});
    }
    rv_buf_fini(&t->routing);
}

static void tell_event(struct turn *t, rv_str line, json_object *event)
{
    int64_t seq = number_of(line);
    rv_err *err = NULL;
    int rc = 0;

    if (!t->log)
        rc = open_log(t, &err);
    if (rc == 0 && seq > 0 && is_of_answer(t, line)) {
        tell_routing(t);
        rc = srv_view_event(t->view, seq, line, event, &err);
        rv_app_stream_on_event(t->log, line);
    } else if (rc == 0 && !t->is_answering) {
        rv_buf_add_str(&t->routing, line);
        rv_buf_putc(&t->routing, '\n');
        rc = rv_buf_check(&t->routing, "what a router did", &err);
    } else if (rc == 0) {
        rv_app_stream_note(t->log, "", line);
    }
    if (rc < 0)
        broken(t, err);
}

/* The line is read once, for what is counted and for what the client is told. */
void srv_turn_on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct turn *t = self;
    json_object *event = rv_telemetry_parse_event(line);

    (void)e;
    srv_loop_hurry(&t->all->loop);
    srv_watch_event(t->all->server->watch, t, &t->ask->trace, event);
    if (!t->is_told)
        tell_event(t, line, event);
    json_object_put(event);
}

bool srv_turn_on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct turn *t = self;

    if (!t->log || t->is_told || !t->is_answering) /* a router replies to the engine */
        return true;
    rv_app_stream_on_delta(t->log, NULL, from, d);
    t->is_held = rv_app_stream_waiting(t->log) > MAX_UNKEPT || (t->st && srv_stream_is_full(t->st, MAX_UNTAKEN));
    return !t->is_held;
}

void srv_turn_give_row(struct srv_turns *all, const struct srv_turn_ask *ask)
{
    const struct rv_app_stream_opts how = {.id = ask->run, .owner = all->owner};
    rv_app_stream *log = NULL;
    char id[SRV_STREAM_ID];
    rv_err *err = NULL;
    int rc;

    srv_stream_id(ask->run, ask->ordinal, id);
    if (ask->ordinal > 1) /* the run goes on without it */
        rc = rv_store_delete_stream(all->base.store, id, all->owner, &err);
    else
        rc = rv_app_stream_new(all->server->streams, &how, &log, &err);
    if (log)
        rv_app_stream_close(log, RV_APP_STREAM_GIVES);
    if (rc < 0)
        RV_LOG(all->app.log, WARN, "stream.unkept", RV_F_TEXT("stream_id", id), RV_F_ERR("error", err));
    rv_err_free(err);
}

/* It could not be had: before it began that is the answer, and the same request begins it again. */
static void refuse(struct turn *t, int rc, const rv_err *why)
{
    rv_buf text = RV_BUF_INIT(16 << 10);
    rv_err *err = NULL;

    rv_err_write_chain(why, &text);
    RV_LOG(t->all->app.log, ERROR, "turn.failed", RV_F_TEXT("run_id", t->ask->run),
           RV_F_TEXT("error", rv_buf_cstr(&text)));
    if (t->st) {
        rc = RV_FAIL(&err, rc, "%s", rv_buf_cstr(&text));
        srv_stream_fail(t->st, rc, err);
        t->st = NULL;
    }
    rv_buf_fini(&text);
    srv_turn_give_row(t->all, t->ask);
    srv_turn_end(t);
}

/* Of a turn that was cancelled, and not by a request for that. */
static void tell_who(const struct turn *t, struct rv_protocol_end *end)
{
    if (end->status != RV_RUN_CANCELLED || t->cancelled_by == SRV_TURN_BY_REQUEST)
        return;
    if (t->cancelled_by == SRV_TURN_BY_SERVER)
        end->code = SRV_STOPPED;
    end->error = t->cancelled_by == SRV_TURN_BY_SERVER ? "the server ended before the turn did: send the request again"
                                                       : "its client left, and did not come back in time";
}

void srv_turn_on_turn(void *self, rv_chat *chat, const struct rv_chat_turn *turn, int rc, const rv_err *why)
{
    struct turn *t = self;
    struct rv_protocol_end end = {.status = RV_RUN_FAILED, .finish = RV_UNSET, .error = "the turn could not be kept"};
    rv_buf json = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_jw w = rv_jw_on(&json);
    char reason[SRV_MAX_REASON];
    rv_err *err = NULL;

    (void)chat;
    srv_watch_over(t->all->server->watch, t);
    if (t->is_told) { /* its stream broke */
        srv_turn_end(t);
        return;
    }
    if (rc < 0 && !t->log) {
        refuse(t, rc, why);
        return;
    }
    if (rc == 0) {
        end = rv_protocol_end_of(turn);
        end.error = srv_reason(turn, t->ask->run, reason);
        if (end.error == reason)
            RV_LOG(t->all->app.log, ERROR, "turn.failed", RV_F_TEXT("run_id", t->ask->run),
                   RV_F_TEXT("error", turn->error));
        tell_who(t, &end);
    } else {
        RV_LOG(t->all->app.log, ERROR, "turn.failed", RV_F_TEXT("run_id", t->ask->run), RV_F_ERR("error", why));
    }
    snprintf(t->interrupt_id, sizeof t->interrupt_id, "%s", rc == 0 && turn->interrupt.id ? turn->interrupt.id : "");
    rv_protocol_end_write(&end, &w);
    rc = rv_buf_check(&json, "the end of a turn", &err);
    if (rc == 0 && !t->log)
        rc = open_log(t, &err);
    if (rc == 0)
        rv_app_stream_note(t->log, "end", rv_buf_str(&json));
    t->is_told = true;
    rv_buf_fini(&json);
    if (rc < 0)
        broken(t, err);
}
