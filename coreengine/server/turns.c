/* Turns of chats: a lane with one engine, on which any number of them go on at once.
 *
 * What happens in a turn becomes lines of its stream (coreengine/app/streams.h). When they are in the store, they come
 * back here, and the client is sent what they say: a client that lost its connection is sent the same bytes by
 * follow.c, also by another process.
 *
 * A turn that waits for an answer keeps its seat, so that the answer finds it; the oldest go when there are many, and
 * who answers them then takes the run from the store. A client that leaves has some time to come back, then its turn is
 * cancelled: what was said until then is kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/chat.h"
#include "coreengine/server/chats_internal.h"
#include "coreengine/server/view_internal.h"

#define MAX_PARKED  1000               /* turns that wait for an answer, with their seats */
#define MAX_UNKEPT  ((size_t)1 << 20)  /* bytes of a stream that are not in the store yet: the model is held */
#define MAX_UNTAKEN ((size_t)64 << 10) /* bytes that the client has not taken: the model is held */

struct turn {
    struct turn *next;
    struct srv_turns *all;
    int64_t serial;
    struct srv_turn_ask *ask;
    struct srv_stream *st; /* NULL: no client listens */
    rv_app_seat *seat;
    rv_app_stream *log;    /* NULL: nothing has happened yet */
    struct srv_view *view; /* with the log */
    rv_buf out;
    bool is_answering; /* the run of its answer has begun: before it a router may have had one */
    bool is_told;      /* its end is a line, or there will be none */
    bool is_held;      /* the model is */
    bool is_parked;    /* it waits for an answer */
    char interrupt_id[RV_STORE_MAX_ID + 1];
    bool has_begun;    /* the head was sent, or will be */
    size_t n_others;   /* clients that follow it elsewhere in this process */
    uv_timer_t *grace; /* runs while no client listens; NULL: it does not */
};
/* A letter that is under way once at most. */
struct order {
    struct srv_letter letter;
    struct srv_turns *all;
    atomic_bool is_posted;
};

struct srv_turns {
    struct srv_lane lane;
    struct srv_server *server;
    struct rv_app app;
    struct rv_app_chat base;
    struct turn *turns; /* newest first */
    size_t n_parked;
    int64_t n_serial;
    char owner[RV_OWNER_MAX];
    bool is_draining;
    struct order drain, stop; /* told without memory: without them the process would not end */
};

/* --- the letters --- */

struct note {
    struct srv_letter letter;
    struct srv_turns *all;
    struct srv_turn_ask *ask;
    struct srv_stream *st;
};

void srv_turn_ask_free(struct srv_turn_ask *ask)
{
    if (!ask)
        return;
    rv_request_fini(&ask->req);
    rv_buf_fini(&ask->open);
    json_object_put(ask->made);
    if (ask->model_run)
        srv_told_free(ask->model_run->told);
    free(ask->model_run);
    free(ask->agent);
    free(ask->model);
    free(ask->session);
    free(ask->session_name);
    free(ask->session_type);
    free(ask->section);
    free(ask->client);
    free(ask->user_name);
    free(ask);
}

/* --- the end of a turn --- */

static void maybe_close(struct srv_turns *all)
{
    if (all->is_draining && !all->turns && !all->lane.is_closed)
        srv_lane_close(&all->lane);
}

static void unlink_turn(struct turn *t)
{
    struct turn **at = &t->all->turns;

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->all->n_parked -= t->is_parked;
}

static void on_grace_closed(uv_handle_t *h)
{
    free(h);
}

static void end_grace(struct turn *t)
{
    if (t->grace)
        uv_close((uv_handle_t *)t->grace, on_grace_closed);
    t->grace = NULL;
}

static void close_log(struct turn *t, enum rv_app_stream_close how)
{
    if (t->log)
        rv_app_stream_close(t->log, how);
    t->log = NULL;
}

static void free_turn(struct turn *t)
{
    if (t->st)
        srv_stream_end(t->st);
    end_grace(t);
    close_log(t, RV_APP_STREAM_GIVES);
    srv_view_free(t->view);
    rv_app_seat_free(t->seat);
    srv_turn_ask_free(t->ask);
    rv_buf_fini(&t->out);
    free(t);
}

static void end_turn(struct turn *t)
{
    struct srv_turns *all = t->all;

    unlink_turn(t);
    free_turn(t);
    maybe_close(all);
}

/* It keeps its seat, and no client listens until an answer comes. */
static void park(struct turn *t)
{
    struct turn *oldest = NULL;

    if (t->all->n_parked >= MAX_PARKED)
        for (struct turn *o = t->all->turns; o; o = o->next)
            oldest = o->is_parked ? o : oldest;
    if (oldest)
        end_turn(oldest);
    t->is_parked = true;
    t->all->n_parked++;
    if (t->st)
        srv_stream_end(t->st);
    t->st = NULL;
    end_grace(t);
}

/* --- what its client is sent --- */

static void begin_stream(struct turn *t)
{
    if (t->has_begun || !t->st)
        return;
    t->has_begun = true;
    srv_stream_field(t->st, "X-Session-Id", rv_chat_session(rv_app_seat_chat(t->seat)));
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

static void read_on(struct turn *t)
{
    bool is_full = t->st && atomic_load(&t->st->unsent) > MAX_UNTAKEN;

    if (!t->is_held || is_full || (t->log && rv_app_stream_waiting(t->log) > MAX_UNKEPT))
        return;
    t->is_held = false;
    rv_chat_read_on(rv_app_seat_chat(t->seat));
}

static void finish(struct turn *t)
{
    enum rv_run_status status = srv_view_status(t->view);

    if (t->st) {
        begin_stream(t);
        if (t->ask->opts.is_whole) {
            srv_stream_answer(t->st, srv_view_http(t->view), "application/json", &t->out);
            t->st = NULL;
            rv_buf_init(&t->out, RV_PROTOCOL_MAX_OUT);
        } else {
            flush(t);
        }
    }
    close_log(t, RV_APP_STREAM_ENDS);
    if (t->is_told && status == RV_RUN_INTERRUPTED && !t->all->is_draining)
        park(t);
    else
        end_turn(t);
}

static void broken(struct turn *t, rv_err *err)
{
    RV_LOG(t->all->app.log, WARN, "stream.broken", RV_F_TEXT("run", t->ask->run), RV_F_ERR("error", err));
    rv_err_free(err);
    if (t->st)
        srv_stream_end(t->st);
    t->st = NULL;
    close_log(t, RV_APP_STREAM_LEAVES);
    if (t->is_told) { /* its end cannot be told any more */
        end_turn(t);
        return;
    }
    t->is_told = true;
    rv_chat_cancel(rv_app_seat_chat(t->seat));
}

/* --- lines that are in the store now --- */

struct kept {
    struct srv_letter letter;
    struct srv_turns *all;
    int64_t serial;
    struct rv_stream_part part; /* its lines are owned */
    rv_err *err;
};

static void on_kept_letter(struct srv_letter *l)
{
    struct kept *k = (struct kept *)l;
    struct turn *t = k->all->turns;
    rv_err *err = k->err;
    int rc = 0;

    while (t && t->serial != k->serial)
        t = t->next;
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
            read_on(t);
            if (srv_view_is_over(t->view))
                finish(t);
        }
    }
    free((char *)k->part.lines.ptr);
    free(k);
}

static void on_kept(void *self, const struct rv_stream_part *part, int rc, const rv_err *why)
{
    struct turn *t = self; /* its log is open, so it is there */
    struct kept *k = calloc(1, sizeof *k);

    if (!k)
        return;
    k->letter.open = on_kept_letter;
    k->all = t->all;
    k->serial = t->serial;
    if (part) {
        k->part = *part;
        k->part.lines = (rv_str){rv_str_dup(part->lines), part->lines.len};
    }
    if (part && !k->part.lines.ptr)
        rc = RV_E_NOMEM;
    if (rc < 0)
        rc = RV_FAIL(&k->err, rc, "%s", why ? rv_err_text(why) : "go on with a stream");
    srv_lane_post(&t->all->lane, &k->letter);
}

/* --- what happens in a turn, as lines --- */

static int open_log(struct turn *t, rv_err **err)
{
    const struct srv_turn_ask *a = t->ask;
    rv_buf id = RV_BUF_INIT(RV_STORE_MAX_ID + 1), line = RV_BUF_INIT(RV_PROTOCOL_MAX_TEXT);

    rv_buf_puts(&id, a->run);
    if (a->ordinal > 1)
        rv_buf_printf(&id, "~%lld", (long long)a->ordinal);
    rv_buf_puts(&line, "open ");
    rv_buf_add_str(&line, rv_buf_str(&a->open));
    rv_buf_putc(&line, '\n');
    const struct rv_app_stream_opts how = {
        .id = rv_buf_cstr(&id), .owner = t->all->owner, .no_pieces = a->opts.is_whole, .on_kept = on_kept, .self = t};
    const struct rv_stream_part part = {.first = 1, .at_us = a->open_us, .lines = rv_buf_str(&line)};
    if (!t->view)
        t->view = srv_view_new(NULL);
    int rc =
        t->view ? rv_buf_check(&line, "the first line of a stream", err) : RV_FAIL(err, RV_E_NOMEM, "begin a turn");
    if (rc == 0)
        rc = rv_buf_check(&id, "id of a stream", err);
    if (rc == 0)
        rc = rv_app_stream_new(t->all->server->streams, &how, &t->log, err);
    if (rc == 0)
        rc = srv_view_lines(t->view, &part, &t->out, err);
    if (rc == 0) {
        begin_stream(t);
        flush(t);
    }
    rv_buf_fini(&id);
    rv_buf_fini(&line);
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

/* A router has a run of its own before: its events are lines as they are. */
static bool is_of_answer(struct turn *t, rv_str line)
{
    if (!t->is_answering && memmem(line.ptr, line.len, "\"pipeline_started\"", 18))
        t->is_answering = memmem(line.ptr, line.len, t->ask->run, strlen(t->ask->run)) != NULL;
    return t->is_answering;
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct turn *t = self;
    int64_t seq = number_of(line);
    rv_err *err = NULL;
    int rc = 0;

    (void)e;
    srv_watch_event(t->all->server->watch, t, &t->ask->trace, line);
    if (t->is_told)
        return;
    if (!t->log)
        rc = open_log(t, &err);
    if (rc == 0 && seq > 0 && is_of_answer(t, line)) {
        rc = srv_view_event(t->view, seq, line, &err);
        rv_app_stream_event(t->log, line);
    } else if (rc == 0) {
        rv_app_stream_note(t->log, "", line);
    }
    if (rc < 0)
        broken(t, err);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct turn *t = self;

    if (!t->log || t->is_told)
        return true;
    rv_app_stream_delta(t->log, NULL, from, d);
    t->is_held = rv_app_stream_waiting(t->log) > MAX_UNKEPT || (t->st && atomic_load(&t->st->unsent) > MAX_UNTAKEN);
    return !t->is_held;
}

/* The same request begins it again. */
static void give_row(struct turn *t)
{
    const struct rv_app_stream_opts how = {.id = t->ask->run, .owner = t->all->owner};
    rv_app_stream *log = NULL;
    rv_err *err = NULL;

    if (!t->log && t->ask->ordinal == 1 && rv_app_stream_new(t->all->server->streams, &how, &log, &err) == 0)
        rv_app_stream_close(log, RV_APP_STREAM_GIVES);
    rv_err_free(err);
}

/* It could not be had: before it began that is the answer, and the same request begins it again. */
static void refuse(struct turn *t, int rc, const rv_err *why)
{
    rv_buf text = RV_BUF_INIT(16 << 10);
    rv_err *err = NULL;

    rv_err_write_chain(why, &text);
    RV_LOG(t->all->app.log, ERROR, "turn.failed", RV_F_TEXT("run", t->ask->run),
           RV_F_TEXT("error", rv_buf_cstr(&text)));
    if (t->st) {
        rc = RV_FAIL(&err, rc, "%s", rv_buf_cstr(&text));
        srv_stream_fail(t->st, rc, err);
        t->st = NULL;
    }
    rv_buf_fini(&text);
    give_row(t);
    end_turn(t);
}

static void on_turn(void *self, rv_chat *chat, const struct rv_chat_turn *turn, int rc, const rv_err *why)
{
    struct turn *t = self;
    struct rv_protocol_end end = {.status = RV_RUN_FAILED, .finish = RV_UNSET, .error = "the turn could not be kept"};
    rv_buf json = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_jw w = rv_jw_on(&json);
    rv_err *err = NULL;

    (void)chat;
    srv_watch_over(t->all->server->watch, t);
    if (t->is_told) { /* its stream broke */
        end_turn(t);
        return;
    }
    if (rc < 0 && !t->log) {
        refuse(t, rc, why);
        return;
    }
    if (rc == 0)
        end = rv_protocol_end_of(turn);
    else
        RV_LOG(t->all->app.log, ERROR, "turn.failed", RV_F_TEXT("run", t->ask->run), RV_F_ERR("error", why));
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

/* --- what its clients do --- */

static void cancel(struct turn *t)
{
    if (!t->is_parked && !t->is_told)
        rv_chat_cancel(rv_app_seat_chat(t->seat));
}

static void on_grace(uv_timer_t *timer)
{
    struct turn *t = timer->data;

    end_grace(t);
    if (!t->st && t->n_others == 0)
        cancel(t);
}

/* It goes on for a while, for its client to come back. */
static void no_client(struct turn *t)
{
    int64_t grace_us = t->ask->stays_us;

    read_on(t);
    if (t->st || t->n_others > 0 || t->is_parked || grace_us == RV_SERVER_STAYS || t->grace)
        return;
    t->grace = grace_us > 0 ? calloc(1, sizeof *t->grace) : NULL;
    if (!t->grace) {
        cancel(t);
        return;
    }
    uv_timer_init(&t->all->lane.own, t->grace);
    t->grace->data = t;
    uv_timer_start(t->grace, on_grace, (uint64_t)(grace_us / 1000), 0);
}

static void on_gone(void *self)
{
    struct turn *t = self;
    struct srv_stream *st = t->st;

    t->st = NULL;
    srv_stream_end(st);
    no_client(t);
}

static void on_taken(void *self)
{
    read_on(self);
}

struct other {
    struct srv_letter letter;
    struct srv_turns *all;
    char run[RV_STORE_MAX_ID + 1];
    bool comes;
};

static void on_other(struct srv_letter *l)
{
    struct other *o = (struct other *)l;
    struct turn *t = o->all->turns;

    while (t && strcmp(t->ask->run, o->run) != 0)
        t = t->next;
    if (t && o->comes) {
        t->n_others++;
        end_grace(t);
    } else if (t && t->n_others > 0 && --t->n_others == 0) {
        no_client(t);
    }
    free(o);
}

void srv_turns_other(struct srv_turns *all, const char *run, bool comes)
{
    struct other *o = calloc(1, sizeof *o);

    if (!o)
        return;
    o->letter.open = on_other;
    o->all = all;
    o->comes = comes;
    snprintf(o->run, sizeof o->run, "%s", run);
    srv_lane_post(&all->lane, &o->letter);
}

/* --- the beginning --- */

static bool is_same(const struct turn *t, const struct srv_turn_ask *ask)
{
    const char *session = t->seat ? rv_chat_session(rv_app_seat_chat(t->seat)) : t->ask->session;

    return session && ask->session && strcmp(session, ask->session) == 0 &&
           strcmp(t->ask->who.tenant, ask->who.tenant) == 0 && strcmp(t->ask->who.user, ask->who.user) == 0;
}

static struct turn *find(struct srv_turns *all, const struct srv_turn_ask *ask, bool is_parked)
{
    for (struct turn *t = all->turns; t; t = t->next)
        if (t->is_parked == is_parked && is_same(t, ask))
            return t;
    return NULL;
}

static int take_seat(struct turn *t, rv_err **err)
{
    const struct srv_turn_ask *a = t->ask;
    struct rv_app_seat_opts opts = {.scope = {a->who.tenant, a->who.user[0] ? a->who.user : NULL},
                                    .session = a->session,
                                    .agent = a->agent,
                                    .chat = {.model = a->model ? a->model : t->all->server->opts->model,
                                             .session_name = a->session_name,
                                             .session_type = a->session_type,
                                             .run_id = a->run,
                                             .sections = (const char *const *)&a->section,
                                             .n_sections = a->section != NULL,
                                             .request = a->request,
                                             .on_event = on_event,
                                             .on_delta = on_delta,
                                             .on_turn = on_turn,
                                             .self = t}};

    opts.chat.context.client_id = a->client;
    opts.chat.context.user_email = a->who.email;
    opts.chat.context.user_name = a->user_name ? a->user_name : a->who.name;
    return rv_app_seat_new(&t->all->base, &opts, &t->seat, err);
}

static int begin(struct turn *t, const struct rv_response *response, rv_err **err)
{
    return rv_chat_begin(rv_app_seat_chat(t->seat), rv_buf_str(&t->ask->req.text), response, err);
}

/* The parked turn of the session gets its answer, and the client of this request hears what follows. */
static int answer_parked(struct turn *fresh, struct turn *parked, rv_err **err)
{
    const struct rv_request_answer *a = &fresh->ask->req.answers[0];
    struct rv_response response = a->response;

    for (size_t i = 0; i < fresh->ask->req.n_answers; i++)
        if (strcmp(fresh->ask->req.answers[i].interrupt_id, parked->interrupt_id) == 0)
            response = fresh->ask->req.answers[i].response;
    int rc = rv_chat_check_answer(rv_app_seat_chat(parked->seat), &response, err);
    if (rc < 0)
        return rc;
    struct srv_turn_ask *ask = parked->ask; /* the seat borrows from it: only the request changes */
    struct rv_request old = ask->req;
    json_object *old_made = ask->made;
    ask->req = fresh->ask->req;
    ask->made = fresh->ask->made;
    ask->opts = fresh->ask->opts;
    ask->trace = fresh->ask->trace;
    ask->stays_us = fresh->ask->stays_us;
    fresh->ask->req = old;
    fresh->ask->made = old_made;
    parked->st = fresh->st;
    parked->st->self = parked;
    fresh->st = NULL;
    parked->is_parked = parked->is_told = parked->has_begun = parked->is_held = false;
    parked->is_answering = true;
    ask->ordinal = fresh->ask->ordinal;
    rv_buf old_open = ask->open;
    ask->open_us = fresh->ask->open_us;
    ask->open = fresh->ask->open;
    fresh->ask->open = old_open;
    parked->all->n_parked--;
    return begin(parked, &response, err);
}

static int start(struct turn *t, struct turn **failed, rv_err **err)
{
    struct srv_turn_ask *a = t->ask;
    struct turn *parked = find(t->all, a, true);

    *failed = t;
    if (find(t->all, a, false) != NULL) {
        int rc = RV_FAIL(err, RV_E_STATE, "the session has a turn under way");
        rv_err_hint(err, "wait for its end, or cancel its run");
        return rc;
    }
    if (a->req.n_answers > 0 && (!parked || strcmp(parked->ask->run, a->run) != 0)) {
        srv_rejoins_answer(t->all->server->rejoins, t->st, a);
        t->st = NULL;
        t->ask = NULL;
        *failed = NULL;
        return 0;
    }
    if (a->req.n_answers > 0) {
        int rc = answer_parked(t, parked, err);
        if (rc == 0 || !t->st)
            *failed = parked;
        return rc;
    }
    if (parked) /* a new message gives the question up */
        end_turn(parked);
    int rc = take_seat(t, err);
    return rc < 0 ? rc : begin(t, NULL, err);
}

static void on_ask(struct srv_letter *l)
{
    struct note *n = (struct note *)l;
    struct srv_turns *all = n->all;
    struct turn *t = calloc(1, sizeof *t), *failed = t;
    rv_err *err = NULL;
    int rc = t ? 0 : RV_FAIL(&err, RV_E_NOMEM, "begin a turn");

    if (rc < 0 || all->is_draining) {
        if (rc == 0)
            rc = RV_FAIL(&err, RV_E_CANCELLED, "the server drains");
        srv_stream_fail(n->st, rc, err);
        srv_turn_ask_free(n->ask);
        free(t);
        free(n);
        return;
    }
    t->all = all;
    t->serial = ++all->n_serial;
    t->ask = n->ask;
    t->st = n->st;
    t->st->self = t;
    rv_buf_init(&t->out, RV_PROTOCOL_MAX_OUT);
    free(n);
    rc = start(t, &failed, &err);
    if (rc == 0 && failed == t) { /* it goes on by itself */
        t->next = all->turns;
        all->turns = t;
        return;
    }
    if (rc == 0 && !failed) { /* others do it */
        free_turn(t);
        return;
    }
    if (rc < 0)
        give_row(failed);
    if (rc < 0 && failed->st) {
        srv_stream_fail(failed->st, rc, err);
        failed->st = NULL;
    }
    if (failed != t && rc < 0)
        end_turn(failed);
    free_turn(t);
}

void srv_turns_ask(struct srv_turns *all, struct srv_call *c, struct srv_turn_ask *ask)
{
    struct note *n = calloc(1, sizeof *n);
    struct srv_stream *st = n ? srv_stream_new(c, &all->lane) : NULL;

    if (!st) {
        free(n);
        srv_turn_ask_free(ask);
        c->rc = RV_FAIL(&c->err, RV_E_NOMEM, "begin a turn");
        srv_call_reply(c);
        return;
    }
    ask->who = c->who;
    ask->trace = srv_watch_trace(c);
    st->on_gone = on_gone;
    st->on_drain = on_taken;
    n->letter.open = on_ask;
    n->all = all;
    n->ask = ask;
    n->st = st;
    srv_lane_post(&all->lane, &n->letter);
}

/* --- the lane --- */

int srv_turns_new(struct srv_server *s, struct srv_turns **out, rv_err **err)
{
    struct srv_turns *all = calloc(1, sizeof *all);

    if (!all)
        return RV_FAIL(err, RV_E_NOMEM, "make the turns");
    all->server = s;
    all->app = s->app;
    rv_owner_name(all->owner);
    int rc = srv_lane_open(&all->lane, err);
    if (rc < 0) {
        free(all);
        return rc;
    }
    all->base = (struct rv_app_chat){.app = &all->app,
                                     .script = s->opts->script,
                                     .wanted = s->opts->capabilities,
                                     .n_wanted = s->opts->n_capabilities,
                                     .loop = &all->lane.own};
    *out = all;
    rc = rv_app_chat_open(&all->base, err);
    return rc < 0 ? rc : srv_lane_go(&all->lane, err);
}

static void on_drain(struct srv_letter *l)
{
    struct order *o = (struct order *)l;
    struct srv_turns *all = o->all;

    atomic_store(&o->is_posted, false);
    all->is_draining = true;
    for (struct turn *t = all->turns, *next; t; t = next) {
        next = t->next;
        if (t->is_parked)
            end_turn(t);
    }
    maybe_close(all);
}

static void on_stop(struct srv_letter *l)
{
    struct order *o = (struct order *)l;

    atomic_store(&o->is_posted, false);
    for (struct turn *t = o->all->turns; t; t = t->next)
        rv_chat_cancel(rv_app_seat_chat(t->seat));
}

static void tell_lane(struct srv_turns *all, struct order *o, void (*open)(struct srv_letter *l))
{
    if (atomic_exchange(&o->is_posted, true))
        return;
    o->letter.open = open;
    o->all = all;
    srv_lane_post(&all->lane, &o->letter);
}

const struct rv_quotas *srv_turns_quotas(const struct srv_turns *all)
{
    return all->base.quotas;
}

void srv_turns_drain(struct srv_turns *all)
{
    tell_lane(all, &all->drain, on_drain);
}

void srv_turns_stop(struct srv_turns *all)
{
    tell_lane(all, &all->stop, on_stop);
}

void srv_turns_free(struct srv_turns *all)
{
    if (!all)
        return;
    if (all->lane.has_thread)
        srv_lane_join(&all->lane);
    else
        srv_lane_close(&all->lane); /* it never ran */
    while (all->turns)
        end_turn(all->turns);
    rv_app_chat_close(&all->base);
    srv_lane_fini(&all->lane);
    free(all);
}
