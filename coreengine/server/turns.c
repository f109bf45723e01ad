/* Turns of chats: a loop with one engine, on which any number of them go on at once.
 *
 * What happens in a turn becomes lines of its stream (coreengine/app/streams.h). When they are in the store, they come
 * back here, and the client is sent what they say. A client that comes back is sent the same bytes by rejoin.c.
 *
 * A turn that waits for an answer keeps its chat, so that the answer finds it; the oldest go when there are many, and
 * who answers them then takes the run from the store. A client that leaves has some time to come back, then its turn is
 * cancelled: what was said until then is kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/chats_internal.h"
#include "coreengine/server/turns_internal.h"

/* --- the messages --- */

struct note {
    struct srv_message message;
    struct srv_turns *all;
    struct srv_turn_ask *ask; /* owned */
    struct srv_stream *st;
};

/* --- the end of a turn --- */

static void maybe_close(struct srv_turns *all)
{
    if (all->is_draining && !all->turns && !all->loop.is_closed)
        srv_loop_close(&all->loop);
}

static struct turn **row_of(struct srv_turns *all, int64_t serial)
{
    return &all->by_serial[(uint64_t)serial % SRV_TURN_ROWS];
}

static const char *session_of(const struct turn *t)
{
    return t->user_chat ? rv_chat_session(rv_app_user_chat_chat(t->user_chat)) : t->ask->session;
}

/* NULL: a session that has no id yet. */
static struct turn **row_of_session(struct srv_turns *all, const char *session)
{
    return session ? &all->by_session[rv_fnv_add(RV_FNV_START, rv_str_of(session)) % SRV_TURN_ROWS] : NULL;
}

static void link_to_session(struct turn *t)
{
    struct turn **row = row_of_session(t->all, session_of(t));

    if (!row)
        return;
    t->next_of_session = *row;
    t->at_session = row;
    if (*row)
        (*row)->at_session = &t->next_of_session;
    *row = t;
}

static void link_turn(struct srv_turns *all, struct turn *t)
{
    struct turn **row = row_of(all, t->serial);

    t->next = all->turns;
    t->at = &all->turns;
    if (t->next)
        t->next->at = &t->next;
    all->turns = t;
    t->next_of_row = *row;
    *row = t;
    link_to_session(t);
}

static void unlink_turn(struct turn *t)
{
    struct turn **at = row_of(t->all, t->serial);

    *t->at = t->next;
    if (t->next)
        t->next->at = t->at;
    while (*at != t)
        at = &(*at)->next_of_row;
    *at = t->next_of_row;
    if (t->at_session)
        *t->at_session = t->next_of_session;
    if (t->at_session && t->next_of_session)
        t->next_of_session->at_session = t->at_session;
    t->all->n_parked -= t->is_parked;
}

struct turn *srv_turn_of(const struct srv_turns *all, int64_t serial)
{
    struct turn *t = all->by_serial[(uint64_t)serial % SRV_TURN_ROWS];

    while (t && t->serial != serial)
        t = t->next_of_row;
    return t;
}

static void on_grace_closed(uv_handle_t *h)
{
    free(h);
}

void srv_turn_end_grace(struct turn *t)
{
    if (t->grace)
        uv_close((uv_handle_t *)t->grace, on_grace_closed);
    t->grace = NULL;
}

static void free_turn(struct turn *t)
{
    rv_err *err = NULL;

    if (t->st) {
        int rc = RV_FAIL(&err, RV_E_UNAVAILABLE, "the server ends");
        srv_stream_fail(t->st, rc, err);
    }
    srv_turn_end_grace(t);
    srv_turn_close_log(t, RV_APP_STREAM_GIVES);
    srv_view_free(t->view);
    rv_app_user_chat_free(t->user_chat);
    srv_turn_ask_free(t->ask);
    rv_buf_fini(&t->out);
    rv_buf_fini(&t->routing);
    free(t->spare);
    free(t);
}

void srv_turn_end(struct turn *t)
{
    struct srv_turns *all = t->all;

    unlink_turn(t);
    free_turn(t);
    maybe_close(all);
}

/* --- what its clients do --- */

static void cancel(struct turn *t, enum srv_turn_by whom)
{
    if (t->is_parked || t->is_told)
        return;
    t->cancelled_by = whom;
    rv_chat_cancel(rv_app_user_chat_chat(t->user_chat));
}

static void on_grace(uv_timer_t *timer)
{
    struct turn *t = timer->data;

    srv_turn_end_grace(t);
    if (!t->st && t->n_others == 0)
        cancel(t, SRV_TURN_BY_CLIENT);
}

/* It goes on for a while, for its client to come back. */
static void no_client(struct turn *t)
{
    int64_t grace_us = t->ask->stays_us;

    srv_turn_read_on(t);
    if (t->st || t->n_others > 0 || t->is_parked || grace_us == RV_SERVER_STAYS || t->grace)
        return;
    t->grace = grace_us > 0 ? calloc(1, sizeof *t->grace) : NULL;
    if (!t->grace) {
        if (grace_us > 0)
            RV_LOG(t->all->app.log, WARN, "turn.cut", RV_F_TEXT("run_id", t->ask->run),
                   RV_F_TEXT("error", "no memory to wait for its client"));
        cancel(t, SRV_TURN_BY_CLIENT);
        return;
    }
    uv_timer_init(&t->all->loop.own, t->grace);
    t->grace->data = t;
    uv_timer_start(t->grace, on_grace, (uint64_t)(grace_us / RV_US_PER_MS), 0);
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
    srv_turn_read_on(self);
}

struct other {
    struct srv_message message;
    struct srv_turns *all;
    char run[RV_STORE_MAX_ID + 1];
    bool comes;
};

static void on_other(struct srv_message *l)
{
    struct other *o = (struct other *)l;
    struct turn *t = o->all->turns;

    while (t && strcmp(t->ask->run, o->run) != 0)
        t = t->next;
    if (t && o->comes) {
        t->n_others++;
        srv_turn_end_grace(t);
    } else if (t && t->n_others > 0 && --t->n_others == 0) {
        no_client(t);
    }
    free(o);
}

static struct srv_message *new_other(struct srv_turns *all, const char *run, bool comes)
{
    struct other *o = calloc(1, sizeof *o);

    if (!o)
        return NULL;
    *o = (struct other){.message = {.open = on_other}, .all = all, .comes = comes};
    snprintf(o->run, sizeof o->run, "%s", run);
    return &o->message;
}

int srv_turns_come(struct srv_turns *all, const char *run, struct srv_message **leave, rv_err **err)
{
    struct srv_message *come = new_other(all, run, true);

    *leave = come ? new_other(all, run, false) : NULL;
    if (!*leave) {
        free(come);
        return RV_FAIL(err, RV_E_NOMEM, "tell a turn that it is followed");
    }
    srv_loop_post(&all->loop, come);
    return 0;
}

void srv_turns_leave(struct srv_turns *all, struct srv_message **leave)
{
    if (*leave)
        srv_loop_post(&all->loop, *leave);
    *leave = NULL;
}

/* --- the beginning --- */

static bool is_same(const struct turn *t, const struct srv_turn_ask *ask)
{
    const char *session = session_of(t);

    return session && ask->session && strcmp(session, ask->session) == 0 && strcmp(t->ask->tenant, ask->tenant) == 0 &&
           rv_text_eq(t->ask->user, ask->user);
}

static struct turn *find(struct srv_turns *all, const struct srv_turn_ask *ask, bool is_parked)
{
    struct turn **row = row_of_session(all, ask->session);

    for (struct turn *t = row ? *row : NULL; t; t = t->next_of_session)
        if (t->is_parked == is_parked && is_same(t, ask))
            return t;
    return NULL;
}

static int take_user_chat(struct turn *t, rv_err **err)
{
    const struct srv_turn_ask *a = t->ask;
    struct rv_app_user_chat_opts opts = {.scope = {a->tenant, a->user},
                                         .session = a->session,
                                         .agent = a->agent,
                                         .chat = {.model = a->model ? a->model : t->all->server->opts->model,
                                                  .session_name = a->session_name,
                                                  .session_type = a->session_type,
                                                  .child_text = a->opts.kind == RV_PROTOCOL_REMLIGHT ? "child" : NULL,
                                                  .run_id = a->run,
                                                  .sections = (const char *const *)&a->section,
                                                  .n_sections = a->section != NULL,
                                                  .request = a->request,
                                                  .on_event = srv_turn_on_event,
                                                  .on_delta = srv_turn_on_delta,
                                                  .on_turn = srv_turn_on_turn,
                                                  .context = {.client_id = a->client,
                                                              .is_eval = a->is_eval,
                                                              .user_email = a->user_email,
                                                              .user_name = a->user_name ? a->user_name : a->by_name},
                                                  .self = t}};

    return rv_app_user_chat_new(&t->all->base, &opts, &t->user_chat, err);
}

static int begin(struct turn *t, const struct rv_response *response, rv_err **err)
{
    return rv_chat_begin(rv_app_user_chat_chat(t->user_chat), rv_buf_str(&t->ask->req.text), response, err);
}

/* The body of a request is many times as large as the message, which the chat has now. */
static void let_go_of_body(struct srv_turn_ask *a)
{
    const struct rv_chat_request *r = &a->request;

    if (!r->client_tools && !r->output_schema && !r->attachments && !r->metadata)
        rv_request_fini(&a->req);
}

/* The parked turn of the session gets its answer, and the client of this request hears what follows. */
static int answer_parked(struct turn *fresh, struct turn *parked, rv_err **err)
{
    const struct rv_request_answer *a = &fresh->ask->req.answers[0];
    struct rv_response response = a->response;

    for (size_t i = 0; i < fresh->ask->req.n_answers; i++)
        if (strcmp(fresh->ask->req.answers[i].interrupt_id, parked->interrupt_id) == 0)
            response = fresh->ask->req.answers[i].response;
    int rc = srv_turn_check_wanted(parked, err);
    if (rc == 0)
        rc = rv_chat_check_answer(rv_app_user_chat_chat(parked->user_chat), &response, err);
    if (rc < 0)
        return rc;
    struct srv_turn_ask *ask = parked->ask; /* the chat borrows from it: only the request changes */
    struct rv_request old = ask->req;
    json_object *old_made = ask->made;
    ask->req = fresh->ask->req;
    ask->made = fresh->ask->made;
    ask->opts = fresh->ask->opts;
    ask->stays_us = fresh->ask->stays_us;
    fresh->ask->req = old;
    fresh->ask->made = old_made;
    parked->st = fresh->st;
    parked->st->self = parked;
    fresh->st = NULL;
    parked->cancelled_by = SRV_TURN_BY_REQUEST;
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
    if (find(t->all, a, false) != NULL)
        return srv_fail_busy(err);
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
        srv_turn_end(parked);
    rv_agents_hold(t->all->base.agents, true);
    int rc = take_user_chat(t, err);
    if (rc == 0)
        rc = begin(t, NULL, err);
    rv_agents_hold(t->all->base.agents, false);
    if (rc == 0)
        let_go_of_body(a);
    return rc;
}

static void on_ask(struct srv_message *l)
{
    struct note *n = (struct note *)l;
    struct srv_turns *all = n->all;
    struct turn *t = calloc(1, sizeof *t), *failed = t;
    rv_err *err = NULL;
    int rc = t ? 0 : RV_FAIL(&err, RV_E_NOMEM, "begin a turn");

    srv_loop_hurry(&all->loop);
    if (rc < 0 || all->is_draining) {
        if (rc == 0)
            rc = RV_FAIL(&err, RV_E_UNAVAILABLE, "the server drains");
        srv_turn_give_row(all, n->ask);
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
    rv_buf_init(&t->routing, RV_PROTOCOL_MAX_OUT);
    free(n);
    rc = start(t, &failed, &err);
    if (rc == 0 && failed == t) { /* it goes on by itself */
        link_turn(all, t);
        return;
    }
    if (rc == 0 && !failed) { /* others do it */
        free_turn(t);
        return;
    }
    if (rc < 0 && !failed->log)
        srv_turn_give_row(all, failed->ask);
    if (rc < 0 && failed->st) {
        srv_stream_fail(failed->st, rc, err);
        failed->st = NULL;
    }
    if (failed != t && rc < 0)
        srv_turn_end(failed);
    free_turn(t);
}

static bool take_text(char **to, const char *text)
{
    *to = text[0] ? rv_str_dup(rv_str_of(text)) : NULL;
    return *to || !text[0];
}

/* What the turn has of who asks, and for which trace. False: no memory. */
static bool take_asker(struct srv_turn_ask *ask, const struct srv_call *c)
{
    ask->trace = srv_watch_trace(c);
    rv_str state = srv_watch_trace_state(c, &ask->trace);
    if (!take_text(&ask->tenant, c->who.tenant) || !take_text(&ask->user, c->who.user) ||
        !take_text(&ask->user_email, c->who.email) || !take_text(&ask->by_name, c->who.name))
        return false;
    if (!ask->trace.parent[0])
        return true;
    ask->request.trace = ask->trace.parent;
    ask->request.trace_state = ask->trace_state = state.len > 0 ? rv_str_dup(state) : NULL;
    return state.len == 0 || ask->trace_state;
}

void srv_turns_ask(struct srv_turns *all, struct srv_call *c, struct srv_turn_ask *ask)
{
    struct note *n = take_asker(ask, c) ? calloc(1, sizeof *n) : NULL;
    struct srv_stream *st = n ? srv_stream_new(c, &all->loop) : NULL;

    if (!st) {
        free(n);
        srv_turn_ask_free(ask);
        c->rc = RV_FAIL(&c->err, RV_E_NOMEM, "begin a turn");
        srv_call_reply(c);
        return;
    }
    st->on_gone = on_gone;
    st->on_drain = on_taken;
    n->message.open = on_ask;
    n->all = all;
    n->ask = ask;
    n->st = st;
    srv_loop_post(&all->loop, &n->message);
}

/* --- the loop --- */

int srv_turns_new(struct srv_server *s, struct srv_turns **out, rv_err **err)
{
    struct srv_turns *all = calloc(1, sizeof *all);

    if (!all)
        return RV_FAIL(err, RV_E_NOMEM, "make the turns");
    all->server = s;
    all->app = s->app;
    rv_owner_make_name(all->owner);
    int rc = srv_loop_open(&all->loop, err);
    if (rc < 0) {
        free(all);
        return rc;
    }
    all->loop.outlet = &s->server_loop;
    all->loop.coalesces = true;
    all->base = (struct rv_app_chat){.app = &all->app,
                                     .script = s->opts->script,
                                     .wanted = s->opts->capabilities,
                                     .n_wanted = s->opts->n_capabilities,
                                     .loop = &all->loop.own};
    rc = rv_app_chat_open(&all->base, err);
    if (rc == 0)
        rc = srv_loop_go(&all->loop, err);
    if (rc < 0)
        srv_turns_free(all);
    else
        *out = all;
    return rc;
}

static void on_drain(struct srv_message *l)
{
    struct order *o = (struct order *)l;
    struct srv_turns *all = o->all;

    atomic_store(&o->is_posted, false);
    all->is_draining = true;
    for (struct turn *t = all->turns, *next; t; t = next) {
        next = t->next;
        if (t->is_parked)
            srv_turn_end(t);
    }
    maybe_close(all);
}

static void on_stop(struct srv_message *l)
{
    struct order *o = (struct order *)l;

    atomic_store(&o->is_posted, false);
    for (struct turn *t = o->all->turns; t; t = t->next)
        cancel(t, SRV_TURN_BY_SERVER);
}

static void tell_loop(struct srv_turns *all, struct order *o, void (*open)(struct srv_message *l))
{
    if (atomic_exchange(&o->is_posted, true))
        return;
    o->message.open = open;
    o->all = all;
    srv_loop_post(&all->loop, &o->message);
}

const struct rv_quotas *srv_turns_quotas(const struct srv_turns *all)
{
    return all->base.quotas;
}

void srv_turns_drain(struct srv_turns *all)
{
    tell_loop(all, &all->drain, on_drain);
}

void srv_turns_stop(struct srv_turns *all)
{
    tell_loop(all, &all->stop, on_stop);
}

void srv_turns_free(struct srv_turns *all)
{
    if (!all)
        return;
    if (all->loop.has_thread)
        srv_loop_join(&all->loop);
    else
        srv_loop_close(&all->loop); /* it never ran */
    while (all->turns)
        srv_turn_end(all->turns);
    rv_app_chat_close(&all->base);
    srv_loop_fini(&all->loop);
    free(all);
}
