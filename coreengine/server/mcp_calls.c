/* Sessions of MCP clients, and the answers of their calls that come over time. A loop looks at the runs that clients
 * wait for, and writes what is told of them. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/mcp_internal.h"

#define MAX_SESSIONS 1000           /* of all clients: each is in memory; the one that was quiet longest goes */
#define MAX_OF_USER  200            /* of one user: of these the quietest goes, so that others keep theirs */
#define MAX_QUIET_US RV_US_PER_HOUR /* a session without a request for so long may go */
#define MAX_WAITING  (4 * RV_MCP_MAX_MESSAGE) /* bytes of messages before the answer begins: it is in memory */

/* --- sessions --- */

/* Without its answer: a last chunk would say that all is there. */
static void cut(struct srv_stream *st)
{
    rv_err *err = NULL;
    int rc = RV_FAIL(&err, RV_E_UNAVAILABLE, "the answer of a call breaks off");

    srv_stream_fail(st, rc, err);
}

static void streams_fini(struct srv_mcp_session *s)
{
    for (struct srv_mcp_stream *st = s->streams, *next; st; st = next) {
        next = st->next;
        if (st->st)
            cut(st->st);
        rv_buf_fini(&st->waiting);
        free(st);
    }
    s->streams = NULL;
}

static void on_end(struct srv_message *l)
{
    struct srv_mcp_session *s = (struct srv_mcp_session *)((char *)l - offsetof(struct srv_mcp_session, end));

    streams_fini(s);
    rv_app_mcp_free(s->client);
    pthread_cond_destroy(&s->is_free);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static bool drop_ref(struct srv_mcp_session *s)
{
    return --s->refs == 0;
}

void srv_mcp_session_unref(struct srv_mcp_session *s)
{
    struct srv_mcps *all = s->all;

    pthread_mutex_lock(&all->lock);
    bool is_last = drop_ref(s);
    pthread_mutex_unlock(&all->lock);
    if (!is_last)
        return;
    s->end.open = on_end;
    srv_loop_post(&all->reader.loop, &s->end);
}

/* Under the lock of all. */
static struct srv_mcp_session *unlink_session(struct srv_mcps *all, struct srv_mcp_session *s)
{
    struct srv_mcp_session **at = &all->table;

    while (*at && *at != s)
        at = &(*at)->next;
    if (!*at)
        return NULL;
    *at = s->next;
    all->n--;
    return s;
}

void srv_mcp_session_end(struct srv_mcp_session *s)
{
    struct srv_mcps *all = s->all;

    pthread_mutex_lock(&all->lock);
    struct srv_mcp_session *gone = unlink_session(all, s);
    pthread_mutex_unlock(&all->lock);
    if (gone)
        srv_mcp_session_unref(gone);
}

static bool is_of_user(const struct srv_mcp_session *s, const struct rv_identity *identity)
{
    return strcmp(s->who.tenant, identity->tenant) == 0 && strcmp(s->who.user, identity->user) == 0;
}

/* Under the lock: of that user, or of all with NULL, how many there are and the one that was quiet longest. */
static size_t count_sessions(const struct srv_mcps *all, const struct rv_identity *identity,
                             struct srv_mcp_session **quiet)
{
    size_t n = 0;

    *quiet = NULL;
    for (struct srv_mcp_session *s = all->table; s; s = s->next) {
        if (identity && !is_of_user(s, identity))
            continue;
        n++;
        if (s->refs == 1 && (!*quiet || s->used_us < (*quiet)->used_us))
            *quiet = s;
    }
    return n;
}

/* Room for a session, under the lock. gone: the one that has to go for it, the caller's. 0, or when all are busy how
 * many there are. */
static int make_room(struct srv_mcps *all, const struct srv_mcp_session *fresh, struct srv_mcp_session **gone)
{
    struct srv_mcp_session *own, *quiet;
    size_t n_own = count_sessions(all, &fresh->who, &own);

    count_sessions(all, NULL, &quiet);
    if (n_own >= MAX_OF_USER) {
        *gone = own ? unlink_session(all, own) : NULL;
        return own ? 0 : MAX_OF_USER;
    }
    if (quiet && (all->n >= MAX_SESSIONS || fresh->used_us - quiet->used_us >= MAX_QUIET_US))
        *gone = unlink_session(all, quiet);
    return all->n < MAX_SESSIONS ? 0 : MAX_SESSIONS;
}

static int keep(struct srv_mcps *all, struct srv_mcp_session *s, rv_err **err)
{
    unsigned char bytes[SRV_MCP_MAX_ID / 2];
    struct rv_rand rand = rv_rand_system();
    struct srv_mcp_session *gone = NULL;

    rand.fill(rand.self, bytes, sizeof bytes);
    rv_hex_make(bytes, sizeof bytes, s->id);
    pthread_mutex_lock(&all->lock);
    int n_busy = make_room(all, s, &gone);
    if (n_busy == 0) {
        s->refs++;
        s->next = all->table;
        all->table = s;
        all->n++;
    }
    pthread_mutex_unlock(&all->lock);
    if (gone)
        srv_mcp_session_unref(gone);
    return n_busy ? RV_FAIL(err, RV_E_UNAVAILABLE, "%d sessions of MCP are busy: try again later", n_busy) : 0;
}

int srv_mcp_session_new(struct srv_mcps *all, const struct srv_call *c, bool is_kept, struct srv_mcp_session **out,
                        rv_err **err)
{
    struct srv_mcp_session *s = calloc(1, sizeof *s);
    int rc =
        s ? rv_app_mcp_new(&all->offer, !is_kept, &s->client, err) : RV_FAIL(err, RV_E_NOMEM, "begin a session of MCP");

    if (rc < 0) {
        free(s);
        return rc;
    }
    s->all = all;
    s->refs = 1;
    s->who = c->who;
    s->is_modern = !is_kept;
    s->app = all->reader.server->app;
    s->app.scope = rv_identity_scope(&s->who);
    s->used_us = srv_now_us();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->is_free, NULL);
    rc = is_kept ? keep(all, s, err) : 0;
    if (rc < 0)
        srv_mcp_session_unref(s);
    else
        *out = s;
    return rc;
}

struct srv_mcp_session *srv_mcp_session_find(struct srv_mcps *all, const struct srv_call *c, const char *id)
{
    pthread_mutex_lock(&all->lock);
    struct srv_mcp_session *s = all->table;
    while (s && strcmp(s->id, id) != 0)
        s = s->next;
    /* Of another caller: as if it did not exist. */
    if (s && (!is_of_user(s, &c->who) || strcmp(s->who.key, c->who.key) != 0 || s->who.level != c->who.level))
        s = NULL;
    if (s) {
        s->refs++;
        s->used_us = srv_now_us();
    }
    pthread_mutex_unlock(&all->lock);
    return s;
}

/* --- streams --- */

int srv_mcp_stream_new(struct srv_mcp_session *s, int64_t call, rv_err **err)
{
    struct srv_mcp_stream *st = calloc(1, sizeof *st);

    if (!st)
        return RV_FAIL(err, RV_E_NOMEM, "answer a client");
    st->call = call;
    st->session = s;
    rv_buf_init(&st->waiting, MAX_WAITING);
    st->next = s->streams;
    s->streams = st;
    return 0;
}

static struct srv_mcp_stream *find(struct srv_mcp_session *s, int64_t call)
{
    struct srv_mcp_stream *st = s->streams;

    while (st && st->call != call)
        st = st->next;
    return st;
}

static void flush(struct srv_mcp_stream *st)
{
    if (st->waiting.rc < 0 && st->st) { /* half of a message is worse than none */
        cut(st->st);
        st->st = NULL;
        st->is_gone = true;
    }
    if (st->st && st->waiting.len > 0)
        srv_stream_write(st->st, &st->waiting);
    if (st->is_gone)
        rv_buf_fini(&st->waiting);
    rv_buf_init(&st->waiting, MAX_WAITING);
}

bool srv_mcp_stream_add(struct srv_mcp_session *s, const struct rv_mcp_order *o)
{
    struct srv_mcp_stream *st = o->call > 0 ? find(s, o->call) : NULL;

    if (!st)
        return false;
    /* JSON has no line ends: one message is one line. */
    rv_buf_puts(&st->waiting, "event: message\ndata: ");
    rv_buf_add_str(&st->waiting, rv_buf_str(&o->bytes));
    rv_buf_puts(&st->waiting, "\n\n");
    st->is_over = st->is_over || o->is_answer;
    return true;
}

/* Free the streams that are over. In a turn and under the lock. */
static void sweep(struct srv_mcp_session *s)
{
    for (struct srv_mcp_stream **p = &s->streams; *p;) {
        struct srv_mcp_stream *st = *p;
        bool has_begun = st->st || st->is_gone;
        if (has_begun)
            flush(st);
        if (!has_begun || (!st->is_over && rv_app_mcp_has_call(s->client, st->call))) {
            p = &st->next;
            continue;
        }
        *p = st->next;
        if (st->st && st->is_cut)
            cut(st->st);
        else if (st->st)
            srv_stream_end(st->st);
        rv_buf_fini(&st->waiting);
        free(st);
    }
}

/* What came of calls; takes out and err. */
static void tell(struct srv_mcp_session *s, struct rv_mcp_orders *out, int rc, rv_err *err)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < out->n; i++)
        RV_IGNORE(!srv_mcp_stream_add(s, &out->items[i]), "its client has left");
    if (rc < 0) { /* no memory: the answers break off, and the runs go on */
        RV_LOG(s->app.log, ERROR, "mcp.failed", RV_F_ERR("error", err));
        for (struct srv_mcp_stream *st = s->streams; st; st = st->next) {
            st->is_cut = !st->is_over;
            st->is_over = true;
        }
    }
    pthread_mutex_unlock(&s->lock);
    rv_mcp_orders_fini(out);
    rv_err_free(err);
}

/* The call of a stream whose client has left; 0: there is none. */
static int64_t take_cancelled(struct srv_mcp_session *s)
{
    int64_t call = 0;

    pthread_mutex_lock(&s->lock);
    for (struct srv_mcp_stream *st = s->streams; st && !call; st = st->next)
        if (st->cancels) {
            st->cancels = false;
            st->is_over = true;
            call = st->call;
        }
    pthread_mutex_unlock(&s->lock);
    return call;
}

/* In a turn. */
static void cancel_left(struct srv_mcp_session *s, const struct rv_app_mcp_at *at)
{
    for (int64_t call; (call = take_cancelled(s)) != 0;)
        rv_app_mcp_cancel(s->client, at, call);
}

static void look(struct srv_mcp_session *s)
{
    struct rv_app_sources sources = {.store = s->all->reader.store};
    const struct rv_app_mcp_at at = {.app = &s->app, .sources = &sources, .worker = s->all->reader.server->worker_stop};
    struct rv_mcp_orders out = {NULL, 0, 0};
    rv_err *err = NULL;

    if (!srv_mcp_session_try(s)) /* the others are not kept waiting; the next look is soon */
        return;
    cancel_left(s, &at);
    int rc = rv_app_mcp_look(s->client, &at, &out, &err);
    tell(s, &out, rc, err);
    pthread_mutex_lock(&s->lock);
    srv_mcp_cut_left(s);
    sweep(s);
    pthread_mutex_unlock(&s->lock);
    srv_mcp_session_leave(s);
}

void srv_mcp_job_add(struct srv_mcp_session *s, rv_app_mcp_job *job)
{
    pthread_mutex_lock(&s->all->lock);
    s->refs++;
    pthread_mutex_unlock(&s->all->lock);
    rv_app_mcp_aside_add(s->all->aside, job, &s->app, s);
}

/* In a turn, which ends: a call that has begun on another thread, or failed there. Takes the job's reference. */
static void finish_job(struct srv_mcp_session *s, rv_app_mcp_job *job)
{
    struct rv_app_sources sources = {.store = s->all->reader.store};
    const struct rv_app_mcp_at at = {.app = &s->app, .sources = &sources, .worker = s->all->reader.server->worker_stop};
    struct rv_mcp_orders out = {NULL, 0, 0};
    rv_err *err = NULL;

    int rc = rv_app_mcp_finish(s->client, &at, job, &out, &err);
    tell(s, &out, rc, err);
    srv_mcp_session_leave(s);
    srv_mcp_session_unref(s);
}

/* Those whose sessions are free; the others come later. waits: all of them now. */
static void finish_jobs(struct srv_mcps *all, bool waits)
{
    rv_app_mcp_job *job;
    void *owner;

    for (struct srv_mcp_late **p = &all->late; *p;) {
        struct srv_mcp_late *l = *p;
        if (waits) {
            srv_mcp_session_enter(l->session);
        } else if (!srv_mcp_session_try(l->session)) {
            p = &l->next;
            continue;
        }
        *p = l->next;
        finish_job(l->session, l->job);
        free(l);
    }
    while ((job = rv_app_mcp_aside_steal(all->aside, &owner)) != NULL) {
        bool is_mine = !waits && srv_mcp_session_try(owner);
        struct srv_mcp_late *l = is_mine || waits ? NULL : calloc(1, sizeof *l);
        if (l) {
            *l = (struct srv_mcp_late){all->late, owner, job};
            all->late = l;
            continue;
        }
        if (!is_mine)
            srv_mcp_session_enter(owner);
        finish_job(owner, job);
    }
}

static void on_look(uv_timer_t *timer)
{
    struct srv_mcps *all = timer->data;

    finish_jobs(all, false);

    for (struct srv_mcp_session **p = &all->busy; *p;) {
        struct srv_mcp_session *s = *p;
        look(s);
        pthread_mutex_lock(&s->lock);
        bool is_busy = s->streams != NULL;
        pthread_mutex_unlock(&s->lock);
        if (is_busy) {
            p = &s->next_busy;
            continue;
        }
        *p = s->next_busy;
        s->is_listed = false;
        srv_mcp_session_unref(s);
    }
    if (!all->busy && !all->late && !rv_app_mcp_aside_is_busy(all->aside) && !all->reader.loop.is_closed)
        uv_timer_stop(&all->reader.timer);
}

/* --- the beginning and the end of an answer, on the loop --- */

/* A client that leaves cancels its call in 2026-07-28; a legacy client may come back, so its run goes on. Under the
 * lock of the session. */
static void lose(struct srv_mcp_stream *st)
{
    if (st->st)
        cut(st->st);
    st->st = NULL;
    st->is_gone = true;
    st->cancels = st->session->is_modern && !st->is_over; /* at the next look */
}

static void on_gone(void *self)
{
    struct srv_mcp_stream *st = self;
    struct srv_mcp_session *s = st->session;

    pthread_mutex_lock(&s->lock);
    lose(st);
    pthread_mutex_unlock(&s->lock);
}

struct note {
    struct srv_message message;
    struct srv_mcp_session *session;
    int64_t call;
    struct srv_stream *st; /* NULL: the client is gone */
};

static void on_begin(struct srv_message *l)
{
    struct note *n = (struct note *)l;
    struct srv_mcp_session *s = n->session;
    struct srv_mcps *all = s->all;

    pthread_mutex_lock(&s->lock);
    struct srv_mcp_stream *st = !all->reader.loop.is_closed ? find(s, n->call) : NULL;
    if (st && !n->st) {
        lose(st);
    } else if (st) {
        st->st = n->st;
        st->st->self = st;
        srv_stream_begin(st->st);
    }
    pthread_mutex_unlock(&s->lock);
    if (!st && n->st)
        cut(n->st);
    free(n);
    if (!st || s->is_listed) {
        srv_mcp_session_unref(s);
        return;
    }
    s->is_listed = true;
    s->next_busy = all->busy;
    all->busy = s; /* with the reference */
    uv_timer_start(&all->reader.timer, on_look, 0, RV_APP_MCP_LOOK_MS);
}

void srv_mcp_stream_begin(struct srv_call *c, struct srv_mcp_session *s, int64_t call)
{
    struct note *n = calloc(1, sizeof *n);
    struct srv_stream *st = n ? srv_stream_new(c, &s->all->reader.loop) : NULL;

    if (!st) {
        free(n);
        srv_mcp_session_unref(s);
        c->rc = RV_FAIL(&c->err, RV_E_NOMEM, "answer a client");
        srv_call_reply(c);
        return;
    }
    st->on_gone = on_gone;
    n->message.open = on_begin;
    n->session = s;
    n->call = call;
    n->st = st;
    srv_loop_post(&s->all->reader.loop, &n->message);
}

void srv_mcp_stream_lost(struct srv_mcp_session *s, int64_t call)
{
    struct note *n = calloc(1, sizeof *n);

    if (!n) { /* the run goes on, and no client hears the result */
        srv_mcp_session_unref(s);
        return;
    }
    n->message.open = on_begin;
    n->session = s;
    n->call = call;
    srv_loop_post(&s->all->reader.loop, &n->message);
}

/* --- the whole --- */

/* On the loop: nothing is told any more. */
static void end_all(void *self)
{
    struct srv_mcps *all = self;

    rv_app_mcp_aside_stop(all->aside);
    finish_jobs(all, true);
    for (struct srv_mcp_session *s = all->busy, *next; s; s = next) {
        struct rv_app_sources sources = {.store = all->reader.store};
        const struct rv_app_mcp_at at = {
            .app = &s->app, .sources = &sources, .worker = all->reader.server->worker_stop};
        next = s->next_busy;
        srv_mcp_session_enter(s);
        cancel_left(s, &at);
        srv_mcp_session_leave(s);
        pthread_mutex_lock(&s->lock);
        streams_fini(s);
        pthread_mutex_unlock(&s->lock);
        s->is_listed = false;
        srv_mcp_session_unref(s);
    }
    all->busy = NULL;
    for (;;) {
        pthread_mutex_lock(&all->lock);
        struct srv_mcp_session *s = all->table ? unlink_session(all, all->table) : NULL;
        pthread_mutex_unlock(&all->lock);
        if (!s)
            break;
        srv_mcp_session_unref(s);
    }
    srv_loop_read(&all->reader.loop); /* they go while their store is open */
}

/* A tool that is not there is told before the first client asks. */
static int check_offer(struct srv_server *s, const struct rv_app_mcp_opts *offer, rv_err **err)
{
    struct srv_handles *d;

    if (offer->n_tools == 0)
        return 0;
    int rc = srv_handles_take(s, &d, err);
    if (rc < 0)
        return rc;
    rc = rv_app_mcp_check(offer, &(struct rv_app_mcp_at){.app = &s->app, .sources = &d->sources}, err);
    srv_handles_give(s, d);
    return rc < 0 ? RV_WRAP(err, rc, "--mcp-tool") : 0;
}

int srv_mcps_new(struct srv_server *s, struct srv_mcps **out, rv_err **err)
{
    struct srv_mcps *all = calloc(1, sizeof *all);
    bool is_open = false;

    if (!all)
        return RV_FAIL(err, RV_E_NOMEM, "make the clients of MCP");
    pthread_mutex_init(&all->lock, NULL);
    all->offer = (struct rv_app_mcp_opts){.pipelines = s->opts->pipelines,
                                          .scripts = s->opts->scripts,
                                          .agents = s->opts->mcp_agents,
                                          .tools = s->opts->mcp_tools,
                                          .n_tools = s->opts->n_mcp_tools,
                                          .is_http = true};
    int rc = check_offer(s, &all->offer, err);
    if (rc == 0)
        rc = rv_app_mcp_aside_new(s->worker_stop, &all->aside, err);
    if (rc == 0)
        rc = srv_reader_open(&all->reader, s, end_all, all, &is_open, err);
    if (is_open) {
        *out = all;
    } else {
        rv_app_mcp_aside_free(all->aside);
        pthread_mutex_destroy(&all->lock);
        free(all);
    }
    return rc;
}

void srv_mcps_stop(struct srv_mcps *all)
{
    srv_reader_stop(&all->reader);
}

void srv_mcps_free(struct srv_mcps *all)
{
    if (!all)
        return;
    srv_reader_close(&all->reader);
    rv_app_mcp_aside_free(all->aside);
    pthread_mutex_destroy(&all->lock);
    free(all);
}
