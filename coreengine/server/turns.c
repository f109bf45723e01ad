/* Turns of chats: a lane with one engine, on which any number of them go on at once.
 *
 * A turn that waits for an answer keeps its seat, so that the answer finds it; the oldest go when there are many, and
 * who answers them then takes `POST /runs/{id}/answer`. A client that leaves cancels its turn: what was said until
 * then is kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/chat.h"
#include "coreengine/server/chats_internal.h"

#define MAX_PARKED 1000 /* turns that wait for an answer, with their seats */

struct turn {
    struct turn *next;
    struct srv_turns *all;
    struct srv_turn_ask *ask;
    struct srv_stream *st; /* NULL: no client listens */
    rv_app_seat *seat;
    rv_protocol *encoder; /* NULL: nothing has happened yet */
    char run_id[RV_STORE_MAX_ID + 1];
    rv_buf out;
    struct srv_client_tools client;
    bool is_parked; /* it waits for an answer */
    char interrupt_id[RV_STORE_MAX_ID + 1];
    bool has_begun; /* the head was sent, or will be */
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
    json_object_put(ask->made);
    if (ask->run)
        srv_told_free(ask->run->told);
    free(ask->run);
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

static void free_turn(struct turn *t)
{
    if (t->st)
        srv_stream_end(t->st);
    rv_protocol_free(t->encoder);
    rv_app_seat_free(t->seat);
    srv_turn_ask_free(t->ask);
    rv_buf_fini(&t->out);
    srv_client_tools_fini(&t->client);
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
static void park(struct turn *t, const struct rv_interrupt *in)
{
    const char *interrupt = in->id;
    struct turn *oldest = NULL;

    if (t->all->n_parked >= MAX_PARKED)
        for (struct turn *o = t->all->turns; o; o = o->next)
            oldest = o->is_parked ? o : oldest;
    if (oldest)
        end_turn(oldest);
    srv_client_tools_wait(&t->client, in);
    snprintf(t->interrupt_id, sizeof t->interrupt_id, "%s", interrupt ? interrupt : "");
    t->is_parked = true;
    t->all->n_parked++;
    if (t->st)
        srv_stream_end(t->st);
    t->st = NULL;
    rv_protocol_free(t->encoder);
    t->encoder = NULL;
}

/* --- what happens in a turn, to its client --- */

static void begin_stream(struct turn *t)
{
    if (t->has_begun || !t->st)
        return;
    t->has_begun = true;
    srv_stream_field(t->st, "X-Session-Id", rv_chat_session(rv_app_seat_chat(t->seat)));
    srv_stream_field(t->st, "X-Run-Id", t->run_id);
    if (!t->ask->opts.is_whole)
        srv_stream_begin(t->st);
}

static void flush(struct turn *t)
{
    if (t->ask->opts.is_whole || !t->st || t->out.len == 0)
        return;
    srv_stream_write(t->st, &t->out);
    rv_buf_init(&t->out, RV_PROTOCOL_MAX_OUT);
}

static void broken(struct turn *t, rv_err *err)
{
    RV_LOG(t->all->app.log, WARN, "stream.broken", RV_F_TEXT("run", t->run_id), RV_F_ERR("error", err));
    rv_err_free(err);
    rv_chat_cancel(rv_app_seat_chat(t->seat));
}

static int make_encoder(struct turn *t, rv_err **err)
{
    struct rv_protocol_opts opts = t->ask->opts;
    const struct rv_protocol_at at = {.now_us = srv_now_us()};

    opts.run_id = t->run_id;
    opts.session_id = rv_chat_session(rv_app_seat_chat(t->seat));
    if (opts.kind == RV_PROTOCOL_AGUI || opts.kind == RV_PROTOCOL_AGUI_OLD) /* as the client calls it (p8 14) */
        RV_IGNORE(rv_json_get_text(t->ask->req.body, "threadId", &opts.session_id), "else it is the session");
    opts.client_run_id = t->ask->req.run_id;
    opts.parent_run_id = t->ask->req.parent_run_id;
    opts.model = t->ask->req.model ? t->ask->req.model : rv_chat_agent(rv_app_seat_chat(t->seat));
    opts.created_us = srv_now_us();
    opts.tells_usage = t->ask->req.tells_usage;
    opts.child_text = RV_UNSET;
    opts.client_tools = t->client.names;
    opts.n_client_tools = t->client.n;
    int rc = rv_protocol_new(&opts, &t->encoder, err);
    return rc < 0 ? rc : rv_protocol_begin(t->encoder, &at, &t->out, err);
}

/* The id of the run: the first event says it. */
static void note_run(struct turn *t, rv_str line)
{
    json_object *json = NULL;
    const char *id = NULL;

    if (rv_json_parse(line, NULL, &json, NULL) == 0 && rv_json_get_text(json, "envelope_id", &id))
        snprintf(t->run_id, sizeof t->run_id, "%s", id);
    json_object_put(json);
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct turn *t = self;
    const struct rv_protocol_at at = {.now_us = srv_now_us()};
    rv_err *err = NULL;
    int rc = 0;

    (void)e;
    srv_watch_event(t->all->server->watch, t, &t->ask->trace, line);
    if (!t->st)
        return;
    if (!t->encoder) {
        note_run(t, line);
        rc = make_encoder(t, &err);
        begin_stream(t);
    }
    if (rc == 0)
        rc = rv_protocol_event(t->encoder, &at, line, &t->out, &err);
    if (rc < 0)
        broken(t, err);
    flush(t);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct turn *t = self;
    const struct rv_protocol_at at = {.now_us = srv_now_us()};
    const struct rv_protocol_from where = rv_protocol_from(NULL, from);
    rv_err *err = NULL;

    if (!t->st || !t->encoder)
        return true;
    if (rv_protocol_delta(t->encoder, &at, &where, d, &t->out, &err) < 0)
        broken(t, err);
    flush(t);
    return true;
}

static int tell_end(struct turn *t, const struct rv_chat_turn *turn, rv_err **err)
{
    const struct rv_protocol_at at = {.now_us = srv_now_us()};
    const struct rv_protocol_end end = rv_protocol_end_of(turn);

    if (!t->encoder && turn->run_id)
        snprintf(t->run_id, sizeof t->run_id, "%s", turn->run_id);
    int rc = t->encoder ? 0 : make_encoder(t, err);
    return rc < 0 ? rc : rv_protocol_end(t->encoder, &at, &end, &t->out, err);
}

/* A quota that ran out within the turn is the client's to mind; the rest is that of those behind us. */
static int failed_status(const struct rv_chat_turn *turn)
{
    return turn->code && strcmp(turn->code, "quota_exceeded") == 0 ? 429 : 502;
}

static void give_answer(struct turn *t, const struct rv_chat_turn *turn)
{
    bool failed = turn->status == RV_RUN_FAILED || turn->status == RV_RUN_CANCELLED;

    if (t->ask->opts.is_whole) {
        begin_stream(t);
        srv_stream_answer(t->st, failed ? failed_status(turn) : 200, "application/json", &t->out);
        t->st = NULL;
        rv_buf_init(&t->out, RV_PROTOCOL_MAX_OUT);
    } else {
        begin_stream(t);
        flush(t);
    }
}

static void on_turn(void *self, rv_chat *chat, const struct rv_chat_turn *turn, int rc, const rv_err *why)
{
    struct turn *t = self;
    rv_buf text = RV_BUF_INIT(16 << 10);
    rv_err *err = NULL;

    (void)chat;
    srv_watch_over(t->all->server->watch, t);
    if (rc == 0 && t->st)
        rc = tell_end(t, turn, &err);
    else if (rc < 0)
        rv_err_write_chain(why, &text);
    if (rc < 0 && t->st && !t->has_begun) {
        if (!err)
            rc = RV_FAIL(&err, rc, "%s", rv_buf_cstr(&text));
        srv_stream_fail(t->st, rc, err);
        t->st = NULL;
        err = NULL;
    } else if (rc == 0 && t->st) {
        give_answer(t, turn);
    } else if (rc < 0) {
        RV_LOG(t->all->app.log, ERROR, "turn.failed", RV_F_TEXT("run", t->run_id),
               RV_F_TEXT("error", rv_buf_cstr(&text)), RV_F_ERR("cause", err));
    }
    rv_err_free(err);
    rv_buf_fini(&text);
    if (rc == 0 && turn->status == RV_RUN_INTERRUPTED && !t->all->is_draining)
        park(t, &turn->interrupt);
    else
        end_turn(t);
}

/* --- what its client does --- */

static void on_gone(void *self)
{
    struct turn *t = self;
    struct srv_stream *st = t->st;

    t->st = NULL;
    srv_stream_end(st);
    rv_chat_cancel(rv_app_seat_chat(t->seat));
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
static int answer_parked(struct turn *fresh, struct turn *parked, const struct rv_response *response, rv_err **err)
{
    int rc = rv_chat_check_answer(rv_app_seat_chat(parked->seat), response, err);
    if (rc < 0)
        return rc;
    struct srv_turn_ask *ask = parked->ask; /* the seat borrows from it: only the request changes */
    struct rv_request old = ask->req;
    ask->req = fresh->ask->req;
    ask->opts = fresh->ask->opts;
    ask->trace = fresh->ask->trace;
    fresh->ask->req = old;
    parked->st = fresh->st;
    parked->st->self = parked;
    fresh->st = NULL;
    parked->is_parked = false;
    parked->has_begun = false;
    parked->all->n_parked--;
    return begin(parked, response, err);
}

/* The client has run its tools. */
static int answer_client(struct turn *fresh, struct turn *parked, rv_err **err)
{
    struct rv_response response;
    json_object *data = NULL;
    int rc = srv_client_tools_answer(&parked->client, &fresh->ask->req, &data, &response, err);

    if (rc == 0)
        rc = answer_parked(fresh, parked, &response, err);
    json_object_put(data);
    return rc;
}

/* A client that names no session is known by the calls whose results it brings. */
static struct turn *find_client(struct srv_turns *all, const struct srv_turn_ask *ask)
{
    for (struct turn *t = all->turns; t && !ask->session; t = t->next)
        if (t->is_parked && strcmp(t->ask->who.tenant, ask->who.tenant) == 0 &&
            strcmp(t->ask->who.user, ask->who.user) == 0 && t->ask->agent && ask->agent &&
            strcmp(t->ask->agent, ask->agent) == 0 && srv_client_tools_same(&t->client, &ask->req))
            return t;
    return NULL;
}

static int start(struct turn *t, struct turn **failed, rv_err **err)
{
    struct srv_turn_ask *a = t->ask;
    struct turn *parked = a->session ? find(t->all, a, true) : find_client(t->all, a);
    bool is_client = parked && srv_client_tools_answered(&parked->client, &a->req);

    *failed = t;
    if (find(t->all, a, false) != NULL) {
        int rc = RV_FAIL(err, RV_E_STATE, "the session has a turn under way");
        rv_err_hint(err, "wait for its end, or cancel its run");
        return rc;
    }
    if (a->req.n_answers > 0 && !parked) {
        int rc = RV_FAIL(err, RV_E_STATE, "the session has no turn that waits for an answer here");
        rv_err_hint(err, "POST /runs/{id}/answer answers a run that waits in the store");
        return rc;
    }
    if (a->req.n_answers > 0) {
        const struct rv_response response = srv_chat_answer(&a->req, parked->interrupt_id);
        int rc = answer_parked(t, parked, &response, err);
        if (rc == 0 || !t->st)
            *failed = parked;
        return rc;
    }
    if (is_client) {
        int rc = answer_client(t, parked, err);
        if (rc == 0 || !t->st)
            *failed = parked;
        return rc;
    }
    if (!a->req.has_message) {
        int rc = RV_FAIL(err, RV_E_STATE, "no tool of the client waits for these results");
        rv_err_hint(err, "name the session with X-Session-Id, and the calls as they were told");
        return rc;
    }
    if (parked) /* a new message gives the question up */
        end_turn(parked);
    int rc = srv_client_tools_init(&t->client, &a->req, err);
    if (rc == 0)
        rc = take_seat(t, err);
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
