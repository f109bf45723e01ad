/* Turns that clients come back to, after their connection, this process or another one has ended: their streams are
 * read from the store, and each client is sent what follows the last block that it has. The same loop hands answers
 * over whose turns are not in this process. A stream that no process ends, as its own has died when all was done, gets
 * its end here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/chats_internal.h"
#include "coreengine/server/reader_internal.h"
#include "coreengine/server/view_internal.h"

#define LOOK_MS    25                 /* between two looks of one timer for all readers */
#define MAX_LATE   80                 /* looks behind the grace of a drain: two seconds */
#define MAX_UNSENT ((size_t)64 << 10) /* bytes that a slow client has not taken; then reading waits for it */
/* Looks at a stream without a turn, whose run is over. */
#define MAX_QUIET 20  /* its answer was handed over from here: half a second for the worker that writes it */
#define MAX_STILL 200 /* five seconds: a turn may write it, whose client must not lose it to a disk that is slow */

struct rejoin {
    struct rejoin *next;
    struct srv_rejoins *all;
    struct srv_rejoin_ask ask;
    struct srv_stream *st;
    struct rv_store_scope scope;
    struct rv_app_past past;
    bool has_past, has_begun, is_over;
    bool is_handed_over;       /* its answer waits for a worker */
    bool is_draining;          /* it is told what this process brings to an end within its grace */
    int n_late;                /* looks behind that: turns that were cancelled are told their end */
    struct srv_message *leave; /* tells the turn that this client is gone; owned; NULL: the turn was not told */
    rv_follower *follower;     /* owned */
    int64_t seen;              /* records */
    int64_t ordinal, wants;    /* the stream that is read, and that is sent; of the run's streams */
    int64_t part;              /* the last one that was read */
    int64_t n_events;
    char question[RV_STORE_MAX_ID + 1]; /* whose answer was handed over; "": none was */
    int n_quiet;
    rv_buf done;           /* the last event `done` */
    struct srv_view *view; /* owned */
    rv_buf out;
};
struct srv_rejoins {
    struct srv_reader reader;
    struct rejoin *first;
};
struct note {
    struct srv_message message;
    struct srv_rejoins *all;
    struct srv_rejoin_ask ask;
    struct srv_turn_ask *answer; /* owned; NULL: none */
    struct srv_stream *st;
};

/* --- what the journal has --- */

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct rejoin *r = self;
    int64_t seq = rv_run_counters(run).next_seq;
    int rc = 0;

    (void)record;
    const struct rv_protocol_reply reply = {.text = ev ? ev->reply : (rv_str){NULL, 0},
                                            .tool_calls = ev ? ev->llm.tool_calls : (rv_str){NULL, 0}};
    for (size_t i = 0; ev && i < effects->n; i++)
        seq -= effects->items[i].kind == RV_EFFECT_EMIT;
    for (size_t i = 0; ev && i < effects->n && rc == 0; i++) {
        if (effects->items[i].kind != RV_EFFECT_EMIT)
            continue;
        rv_str line = rv_effect_text(effects, &effects->items[i]);
        if (effects->items[i].emit == RV_EMIT_DONE) {
            rv_buf_clear(&r->done);
            rv_buf_add_str(&r->done, line);
            rc = rv_buf_check(&r->done, "the end of a run", err);
        }
        r->n_events = seq;
        if (rc == 0)
            rc = srv_view_event(r->view, seq, line, NULL, err);
        if (rc == 0 && effects->items[i].emit == RV_EMIT_LLM_RESULT && ev->kind == RV_EVENT_LLM_DONE && !ev->failed)
            rc = srv_view_reply(r->view, seq, &reply, err);
        seq++;
    }
    return rc;
}

static int open_past(struct rejoin *r, rv_err **err)
{
    rv_err *cause = NULL;
    int rc = rv_app_past_open(r->all->reader.store, &r->scope, r->ask.run, &r->past, &cause);

    if (rc == RV_E_NOT_FOUND) { /* it has not begun */
        rv_err_free(cause);
        return 0;
    }
    r->has_past = rc == 0;
    return rc < 0 ? rv_err_pass(err, cause) : 0;
}

static int read_journal(struct rejoin *r, rv_err **err)
{
    struct rv_run_row row;

    if (!r->has_past) {
        int rc = open_past(r, err);
        if (rc < 0 || !r->has_past)
            return rc;
    }
    int rc = rv_store_get_run(r->all->reader.store, &r->scope, r->ask.run, &row, err);
    if (rc < 0)
        return rc;
    bool grew = row.n_records != r->seen;
    r->seen = row.n_records;
    rv_run_row_fini(&r->past.row);
    r->past.row = row;
    if (!grew)
        return 0;
    const struct rv_replay_opts opts = {
        .pipeline = rv_app_past_pipeline(&r->past), .catalog = &r->past.catalog, .on_step = on_step, .self = r};
    return r->follower ? rv_follower_feed(r->follower, err)
                       : rv_journal_follow(r->all->reader.store, &r->scope, r->ask.run, &opts, &r->follower, err);
}

/* --- what its streams have --- */

static int on_part(void *self, const struct rv_stream_part *part, rv_err **err)
{
    struct rejoin *r = self;
    int rc = srv_view_lines(r->view, part, &r->out, err);

    if (rc == 0)
        r->part = part->n;
    return rc > 0 ? RV_STORE_ENOUGH : rc;
}

/* An answer that was refused, or whose process died, left it: there is its first line, and later ones follow. */
static int is_unbegun(struct rejoin *r, const char *id, bool *out, rv_err **err)
{
    struct rv_stream_row row;
    rv_err *cause = NULL;
    int rc = rv_store_get_stream(r->all->reader.store, &r->scope, id, &row, &cause);

    *out = rc == 0 && row.ended_us == 0 && row.n_lines <= 1;
    if (rc == 0)
        rv_stream_row_fini(&row);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    return rc < 0 ? rv_err_pass(err, cause) : 0;
}

/* The earlier streams of the run are read, too, but for those that are not kept any more, or have no turn: nothing of
 * them is sent. */
static int read_lines(struct rejoin *r, rv_err **err)
{
    char id[SRV_STREAM_ID];
    bool is_passed = false;
    int rc = 0;

    while (rc == 0) {
        int64_t before = r->part;
        srv_stream_id(r->ask.run, r->ordinal, id);
        if (r->ordinal < r->wants && r->part == 0)
            rc = is_unbegun(r, id, &is_passed, err);
        if (rc == 0 && is_passed) {
            r->ordinal++;
            is_passed = false;
            continue;
        }
        if (rc < 0)
            break;
        rc = rv_store_read_stream(r->all->reader.store, id, r->part, on_part, r, err);
        if (rc > 0) /* an event is needed that the journal was not read to */
            return 0;
        bool is_there = r->part > 0 || r->part != before;
        if (rc < 0 || r->ordinal >= r->wants || (is_there && !srv_view_is_over(r->view)))
            break;
        r->ordinal++;
        r->part = 0;
    }
    return rc;
}

/* --- the end that its process could not write --- */

static int finish(struct rejoin *r, const struct rv_stream_row *row, rv_err **err)
{
    const struct rv_app_stream_opts how = {.id = row->id, .owner = r->all->reader.server->owner};
    rv_buf json = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_app_stream *log = NULL;
    char number[32];

    int rc = srv_lost_end_write(r->all->reader.store, &r->scope, &r->past.row, rv_buf_str(&r->done), &json, err);
    if (rc == 0) /* made first: what fails behind the taking would leave a stream that no process ends */
        rc = rv_app_stream_new(r->all->reader.server->streams, &how, &log, err);
    if (rc == 0)
        rc = rv_store_claim_stream(r->all->reader.store, row->id, row->owner, r->all->reader.server->owner, err);
    if (rc < 0 && log)
        rv_app_stream_close(log, RV_APP_STREAM_LEAVES);
    if (rc == 0) {
        int n = snprintf(number, sizeof number, "%" PRId64, r->n_events);
        rv_app_stream_note(log, "", (rv_str){number, (size_t)n});
        rv_app_stream_note(log, "end", rv_buf_str(&json));
        rv_app_stream_close(log, RV_APP_STREAM_ENDS);
    }
    rv_buf_fini(&json);
    return rc;
}

static int fail_unbegun(rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_UNAVAILABLE, "the turn was refused, or its process ended before it began");

    rv_err_set_hint(err, "send its request again");
    return rc;
}

static int is_question(void *self, const struct rv_pending *p, rv_err **err)
{
    const struct rejoin *r = self;

    (void)err;
    return strcmp(p->id, r->question) == 0 ? RV_STORE_ENOUGH : 0;
}

/* Its run is over or waits, and the stream has no turn: the run took another answer. 1: so it is, for long enough. */
static int took_another(struct rejoin *r, const struct rv_stream_row *row, rv_err **err)
{
    bool is_final = rv_run_status_is_final(r->past.row.status);

    if (row->n_lines > 1 || (!is_final && !r->question[0]))
        return 0;
    int rc = is_final ? 0 : rv_store_list_pending(r->all->reader.store, &r->scope, r->ask.run, is_question, r, err);
    if (rc != 0)
        return rc == RV_STORE_ENOUGH ? 0 : rc;
    return ++r->n_quiet >= (r->question[0] ? MAX_QUIET : MAX_STILL);
}

static bool has_no_writer(const struct rejoin *r, const struct rv_stream_row *row)
{
    return strcmp(row->owner, RV_APP_STREAM_NOBODY) == 0 ||
           (strcmp(row->owner, r->all->reader.server->owner) != 0 && rv_owner_is_dead(row->owner));
}

/* Nothing more comes by itself: the run is over, or waits, and who wrote the stream is gone or writes none; or there is
 * no run, and no process that begins it. */
static int maybe_finish(struct rejoin *r, rv_err **err)
{
    enum rv_run_status status = r->past.row.status;
    bool rests = r->done.len > 0 && (rv_run_status_is_final(status) || status == RV_RUN_INTERRUPTED);
    struct rv_stream_row row;
    rv_err *cause = NULL;

    if (r->ordinal < r->wants || (r->has_past && !rests))
        return 0;
    int rc = rv_store_get_stream(r->all->reader.store, &r->scope, r->ask.stream, &row, &cause);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return fail_unbegun(err);
    }
    if (rc < 0)
        return rv_err_pass(err, cause);
    bool ends = has_no_writer(r, &row) && row.ended_us == 0;
    if (!r->has_past) {
        rc = ends && row.n_lines <= 1 ? fail_unbegun(&cause) : 0;
    } else if (row.ended_us == 0 && row.last_part == r->part) {
        rc = ends ? 1 : took_another(r, &row, &cause);
        if (rc > 0 && finish(r, &row, &cause) == RV_E_STATE) {
            rv_err_free(cause); /* another one does it */
            cause = NULL;
        }
    }
    rv_stream_row_fini(&row);
    return cause ? rv_err_pass(err, cause) : 0;
}

/* --- one client --- */

static void begin(struct rejoin *r)
{
    if (r->has_begun)
        return;
    r->has_begun = true;
    srv_stream_field(r->st, "X-Session-Id", r->ask.session);
    srv_stream_field(r->st, "X-Run-Id", r->ask.run);
    if (!srv_view_is_whole(r->view))
        srv_stream_begin(r->st);
}

static void end_rejoin(struct rejoin *r)
{
    struct srv_rejoins *all = r->all;
    struct rejoin **at = &all->first;

    while (*at && *at != r)
        at = &(*at)->next;
    if (*at)
        *at = r->next;
    if (r->st)
        srv_stream_end(r->st);
    srv_turns_leave(all->reader.server->turns, &r->leave);
    rv_follower_free(r->follower);
    if (r->has_past)
        rv_app_past_fini(&r->past);
    srv_view_free(r->view);
    rv_buf_fini(&r->done);
    rv_buf_fini(&r->out);
    free(r);
    if (!all->first && !all->reader.loop.is_closed)
        uv_timer_stop(&all->reader.timer);
}

/* A client that came by GET comes back by itself when the stream is cut; one that posted is told. */
static void break_off(struct rejoin *r, rv_err *err)
{
    int rc = rv_err_code(err);

    if (r->has_begun && r->ask.is_post && srv_view_break(r->view, rc, &r->out)) {
        srv_stream_write(r->st, &r->out);
        rv_err_free(err);
    } else {
        srv_stream_fail(r->st, rc, err);
        r->st = NULL;
    }
    end_rejoin(r);
}

static void give_whole(struct rejoin *r)
{
    begin(r);
    srv_view_put_fields(r->view, r->st);
    srv_stream_answer(r->st, srv_view_http(r->view), "application/json", &r->out);
    r->st = NULL;
}

static void send_some(struct rejoin *r)
{
    if (srv_view_is_whole(r->view) || r->out.len == 0 || srv_stream_is_full(r->st, MAX_UNSENT))
        return;
    begin(r);
    srv_stream_write(r->st, &r->out);
    rv_buf_init(&r->out, RV_APP_MAX_TEXT);
}

static int look(struct rejoin *r, rv_err **err)
{
    int rc = read_journal(r, err);

    if (rc == 0)
        rc = read_lines(r, err);
    r->is_over = rc == 0 && r->ordinal == r->wants && srv_view_is_over(r->view);
    return rc == 0 && !r->is_over ? maybe_finish(r, err) : rc;
}

static void stop(struct rejoin *r)
{
    rv_err *err = NULL;

    RV_IGNORE(RV_FAIL(&err, RV_E_UNAVAILABLE, "the server drains"), "it is told");
    break_off(r, err);
}

/* The server drains, and others bring the turn to its end. The end of a stream is written behind that of its run. */
static bool has_waited_enough(struct rejoin *r)
{
    const struct srv_server *s = r->all->reader.server;
    const struct rv_run_row *run = &r->past.row;

    if (!r->is_draining || r->is_over)
        return false;
    if (!r->has_past || (atomic_load(&s->is_over) && ++r->n_late > MAX_LATE))
        return true;
    bool ends = rv_run_status_is_final(run->status) || (run->status == RV_RUN_INTERRUPTED && !r->is_handed_over);
    return !ends && (!run->owner || strcmp(run->owner, s->owner) != 0);
}

static void go_on(struct rejoin *r)
{
    rv_err *err = NULL;

    if (!r->is_over && r->out.len < MAX_UNSENT && look(r, &err) < 0) {
        RV_LOG(r->all->reader.server->app.log, WARN, "rejoin.failed", RV_F_TEXT("run_id", r->ask.run),
               RV_F_ERR("error", err));
        break_off(r, err);
        return;
    }
    if (has_waited_enough(r)) {
        stop(r);
        return;
    }
    if (r->is_over && srv_view_is_whole(r->view)) {
        give_whole(r);
        end_rejoin(r);
        return;
    }
    if (!srv_view_is_whole(r->view) && r->part > 0)
        begin(r);
    send_some(r);
    if (r->is_over && r->out.len == 0)
        end_rejoin(r);
}

static void on_look(uv_timer_t *timer)
{
    struct srv_rejoins *all = timer->data;

    for (struct rejoin *r = all->first, *next; r; r = next) {
        next = r->next;
        go_on(r);
    }
}

static void on_gone(void *self)
{
    end_rejoin(self);
}

static void on_drain(void *self)
{
    send_some(self);
}

/* A client that came by GET asks another process; one that posted hears of a turn that ends in time. */
static void on_stop(void *self)
{
    struct rejoin *r = self;

    r->is_draining = true;
    (r->ask.is_post ? go_on : stop)(r);
}

/* --- the beginning --- */

static int open_rejoin(struct rejoin *r, struct srv_turn_ask *answer, rv_err **err)
{
    r->scope = (struct rv_store_scope){r->ask.tenant, r->ask.has_user ? r->ask.user : NULL};
    r->wants = srv_stream_ordinal(r->ask.stream);
    r->ordinal = 1;
    rv_buf_init(&r->out, RV_APP_MAX_TEXT);
    rv_buf_init(&r->done, RV_APP_MAX_TEXT);
    if (r->ask.from.ordinal != r->wants)
        r->ask.from = (struct srv_cursor){.ordinal = r->wants, .line = 0, .blocks = 0};
    r->view = srv_view_new(&r->ask.from);
    if (!r->view)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a stream");
    int rc = srv_turns_come(r->all->reader.server->turns, r->ask.run, &r->leave, err);
    r->is_handed_over = answer != NULL;
    return rc == 0 && answer ? srv_answer_hand_over(r->all->reader.store, &r->scope, answer, r->question, err) : rc;
}

/* It was not taken: a client that reads its stream would wait without an end. */
static void drop_row(struct srv_rejoins *all, const char *stream)
{
    rv_err *err = NULL;

    if (rv_store_delete_stream(all->reader.store, stream, all->reader.server->owner, &err) < 0)
        RV_LOG(all->reader.server->app.log, WARN, "stream.unkept", RV_F_TEXT("stream_id", stream),
               RV_F_ERR("error", err));
    rv_err_free(err);
}

static void on_ask(struct srv_message *l)
{
    struct note *n = (struct note *)l;
    struct srv_rejoins *all = n->all;
    struct rejoin *r = all->reader.loop.is_closed ? NULL : calloc(1, sizeof *r);
    rv_err *err = NULL;
    int rc = r                            ? 0
             : all->reader.loop.is_closed ? RV_FAIL(&err, RV_E_UNAVAILABLE, "the server drains")
                                          : RV_FAIL(&err, RV_E_NOMEM, "go on with a stream");

    if (r) {
        r->all = all;
        r->ask = n->ask;
        r->st = n->st;
        r->st->self = r;
        rc = open_rejoin(r, n->answer, &err);
    }
    if (rc < 0 && n->answer)
        drop_row(all, n->ask.stream);
    srv_turn_ask_free(n->answer);
    if (rc < 0) {
        srv_stream_fail(n->st, rc, err);
        free(n);
        if (r) {
            r->st = NULL;
            end_rejoin(r);
        }
        return;
    }
    free(n);
    r->next = all->first;
    all->first = r;
    uv_timer_start(&all->reader.timer, on_look, LOOK_MS, LOOK_MS);
    go_on(r);
}

static void ask(struct srv_rejoins *all, struct srv_call *c, const struct srv_rejoin_ask *what,
                struct srv_turn_ask *answer)
{
    struct note *n = calloc(1, sizeof *n);
    struct srv_stream *st = n ? srv_stream_new(c, &all->reader.loop) : NULL;

    if (!st) {
        free(n);
        srv_turn_ask_free(answer);
        c->rc = RV_FAIL(&c->err, RV_E_NOMEM, "go on with a stream");
        srv_call_reply(c);
        return;
    }
    st->on_gone = on_gone;
    st->on_drain = on_drain;
    st->on_stop = on_stop;
    n->message.open = on_ask;
    n->all = all;
    n->ask = *what;
    n->answer = answer;
    n->st = st;
    srv_loop_post(&all->reader.loop, &n->message);
}

void srv_rejoins_ask(struct srv_rejoins *all, struct srv_call *c, const struct srv_rejoin_ask *what)
{
    ask(all, c, what, NULL);
}

/* On the loop. */
static void on_moved(struct srv_call *c, void *arg)
{
    struct srv_turn_ask *a = arg;
    struct srv_rejoin_ask what = {.is_post = true};

    if (!c) {
        srv_turn_ask_free(a);
        return;
    }
    snprintf(what.run, sizeof what.run, "%s", a->run);
    snprintf(what.session, sizeof what.session, "%s", a->session);
    srv_stream_id(a->run, a->ordinal, what.stream);
    memcpy(what.tenant, c->who.tenant, sizeof what.tenant);
    what.has_user = c->app.scope.user != NULL;
    if (what.has_user)
        snprintf(what.user, sizeof what.user, "%s", c->app.scope.user);
    ask(c->server->rejoins, c, &what, a);
}

void srv_rejoins_answer(struct srv_rejoins *all, struct srv_stream *st, struct srv_turn_ask *a)
{
    (void)all;
    srv_stream_move(st, on_moved, a);
}

/* --- the loop --- */

static void end_all(void *self)
{
    struct srv_rejoins *all = self;

    while (all->first)
        stop(all->first);
}

int srv_rejoins_new(struct srv_server *s, struct srv_rejoins **out, rv_err **err)
{
    struct srv_rejoins *all = calloc(1, sizeof *all);

    if (!all)
        return RV_FAIL(err, RV_E_NOMEM, "go on with streams");
    bool is_open = false;
    int rc = srv_reader_open(&all->reader, s, end_all, all, &is_open, err);
    if (is_open)
        *out = all;
    else
        free(all);
    return rc;
}

void srv_rejoins_stop(struct srv_rejoins *all)
{
    srv_reader_stop(&all->reader);
}

void srv_rejoins_free(struct srv_rejoins *all)
{
    if (!all)
        return;
    srv_reader_close(&all->reader);
    free(all);
}
