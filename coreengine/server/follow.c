/* Runs that clients watch: each is a replay of its journal that goes on while the run does, in whatever process that
 * is. The same number gives the same bytes each time, as everything comes from the journal.
 *
 * A loop reads all of them. What a client has not taken waits here, so a slow client keeps its connection. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/chats_internal.h"
#include "coreengine/server/pieces_internal.h"
#include "coreengine/server/reader_internal.h"

#define LOOK_MS    50 /* between two looks of one timer for all followers */
#define MAX_IDLE   40 /* looks: two seconds; then the journal is told without the lines that are missing */
#define MAX_UNSENT ((size_t)64 << 10) /* bytes on their way: a slow client must not fill memory */
/* bytes of the lines that one look reads: the store's largest record (RV_STORE_MAX_BODY) */
#define MAX_BLOCK ((size_t)96 << 20)

struct follow {
    struct follow *next;
    struct srv_follows *all;
    struct srv_follow_ask ask;
    struct srv_stream *st;
    struct rv_store_scope scope;
    struct rv_app_past past;
    rv_follower *follower; /* NULL: nothing was read yet; owned */
    int64_t seen;          /* records */
    int64_t from;
    rv_buf out; /* whole blocks */
    size_t sent;
    bool is_over;              /* no more comes */
    struct srv_pieces *pieces; /* NULL: events alone; owned */
    int64_t part;              /* of the run's stream that was read last */
    int n_idle;                /* looks at a run that is over, without a new line */
    bool is_told;              /* CHAT: the end, too */
    bool is_draining;          /* it is told what this process brings to an end within its grace */
};
struct srv_follows {
    struct srv_reader reader;
    struct follow *first;
};

struct note {
    struct srv_message message;
    struct srv_follows *all;
    struct srv_follow_ask ask;
    struct srv_stream *st;
};

/* --- one of them --- */

static void add_line(struct follow *f, int64_t seq, rv_str line)
{
    if (f->ask.form == SRV_FOLLOW_LINES) {
        rv_buf_add_str(&f->out, line);
        rv_buf_putc(&f->out, '\n');
        return;
    }
    rv_buf_puts(&f->out, "data: ");
    rv_buf_add_str(&f->out, line);
    rv_buf_printf(&f->out, "\nid: %" PRId64 "\n\n", seq);
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct follow *f = self;
    int64_t seq = rv_run_counters(run).next_seq;
    int rc = 0;

    (void)record;
    for (size_t i = 0; ev && i < effects->n; i++) /* the last of them has the number before next_seq */
        seq -= effects->items[i].kind == RV_EFFECT_EMIT;
    for (size_t i = 0; ev && i < effects->n; i++) {
        if (effects->items[i].kind != RV_EFFECT_EMIT)
            continue;
        if (f->ask.told)
            rc = rc == 0 ? srv_told_event(f->ask.told, rv_effect_text(effects, &effects->items[i]), &f->out, err) : rc;
        else if (f->pieces)
            rc = rc == 0 ? srv_pieces_event(f->pieces, seq, rv_effect_text(effects, &effects->items[i]), err) : rc;
        else if (seq >= f->from)
            add_line(f, seq, rv_effect_text(effects, &effects->items[i]));
        seq++;
    }
    return rc == 0 ? rv_buf_check(&f->out, "events of a run", err) : rc;
}

static int read_more(struct follow *f, rv_err **err)
{
    const struct rv_replay_opts opts = {
        .pipeline = rv_app_past_pipeline(&f->past), .catalog = &f->past.catalog, .on_step = on_step, .self = f};

    if (f->ask.form == SRV_FOLLOW_RESULT)
        return 0;
    return f->follower ? rv_follower_feed(f->follower, err)
                       : rv_journal_follow(f->all->reader.store, &f->scope, f->ask.run, &opts, &f->follower, err);
}

static bool is_done(const struct follow *f)
{
    enum rv_run_status status = f->past.row.status;

    return rv_run_status_is_final(status) || (f->ask.until_waits && status == RV_RUN_INTERRUPTED);
}

/* --- pieces of model calls, from the run's stream --- */

static int on_part(void *self, const struct rv_stream_part *part, rv_err **err)
{
    struct follow *f = self;
    int rc = srv_pieces_lines(f->pieces, part, &f->out, err);

    if (rc == 0) {
        f->part = part->n;
        f->n_idle = 0;
    }
    return rc > 0 ? RV_STORE_ENOUGH : rc;
}

/* Does a process write lines that are not read yet? A run may have no stream. */
static int find_writer(struct follow *f, const char *id, bool *is_written, int64_t *last_part, rv_err **err)
{
    struct rv_stream_row row;
    rv_err *cause = NULL;
    int rc = rv_store_get_stream(f->all->reader.store, &f->scope, id, &row, &cause);

    *is_written = false;
    *last_part = 0;
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0) {
        rv_err_pass(err, cause);
        return rc;
    }
    *last_part = row.last_part;
    *is_written = row.ended_us == 0 && strcmp(row.owner, RV_APP_STREAM_NOBODY) != 0 && !rv_owner_is_dead(row.owner);
    rv_stream_row_fini(&row);
    return 0;
}

/* *all: nothing more comes by itself. */
static int read_pieces(struct follow *f, bool *all, rv_err **err)
{
    char id[RV_APP_STREAM_ID];
    bool is_written = false;
    int64_t last_part = 0;

    *all = false;
    rv_app_stream_of_run(f->ask.run, id);
    int rc = find_writer(f, id, &is_written, &last_part, err);
    if (rc == 0 && last_part > f->part) {
        rc = rv_store_read_stream(f->all->reader.store, id, f->part, on_part, f, err);
        rc = rc > 0 ? 0 : rc;
    }
    *all = rc == 0 && ((!is_written && f->part >= last_part) || (is_done(f) && ++f->n_idle > MAX_IDLE));
    return *all ? srv_pieces_flush(f->pieces, &f->out, err) : rc;
}

static int look(struct follow *f, rv_err **err)
{
    bool has_all = true;
    struct rv_run_row row;
    int rc = rv_store_get_run(f->all->reader.store, &f->scope, f->ask.run, &row, err);

    if (rc < 0)
        return rc;
    bool grew = row.n_records != f->seen;
    rv_run_row_fini(&f->past.row);
    f->past.row = row;
    rc = grew ? read_more(f, err) : 0;
    f->seen = row.n_records;
    if (rc == 0 && f->pieces)
        rc = read_pieces(f, &has_all, err);
    f->is_over = rc == 0 && has_all && is_done(f);
    return rc;
}

/* Whole blocks, as many as the connection takes at once. */
static void send_some(struct follow *f)
{
    const char *sep = f->ask.form == SRV_FOLLOW_LINES ? "\n" : "\n\n";

    while (f->sent < f->out.len && !srv_stream_is_full(f->st, MAX_UNSENT)) {
        const char *at = f->out.ptr + f->sent, *end = f->out.ptr + f->out.len;
        const char *last = at;
        while (last < end && (size_t)(last - at) < MAX_UNSENT)
            last = (const char *)memmem(last, (size_t)(end - last), sep, strlen(sep)) + strlen(sep);
        rv_buf bytes = RV_BUF_INIT(MAX_BLOCK);
        rv_buf_add(&bytes, at, (size_t)(last - at));
        srv_stream_write(f->st, &bytes);
        rv_buf_fini(&bytes);
        f->sent += (size_t)(last - at);
    }
    if (f->sent == f->out.len) {
        rv_buf_clear(&f->out);
        f->sent = 0;
    }
}

/* What is there, however much waits for the client. */
static void send_all(struct follow *f)
{
    rv_buf bytes = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_buf_add(&bytes, f->out.ptr + f->sent, f->out.len - f->sent);
    srv_stream_write(f->st, &bytes);
    rv_buf_fini(&bytes);
    f->sent = f->out.len;
}

static void give_result(struct follow *f)
{
    struct rv_replayed r = {0};
    rv_buf body = RV_BUF_INIT(SRV_MAX_ANSWER), state = RV_BUF_INIT(SRV_MAX_ANSWER);
    rv_jw w = rv_jw_on(&body);
    rv_err *err = NULL;

    int rc = rv_app_past_replay(f->all->reader.store, &f->past, NULL, &r, &err);
    if (rc == 0) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "id", f->ask.run);
        rv_jw_kv_text(&w, "status", rv_run_status_text(f->past.row.status));
        const struct rv_pipeline *p = rv_app_past_pipeline(&f->past);
        const struct rv_response_place place = {p->response.output_key, p->response.field};
        rv_envelope_write_result(rv_run_envelope(r.run), &place, &state);
        rv_jw_key(&w, "result");
        rv_jw_raw(&w, rv_buf_str(&state));
        rv_jw_obj_end(&w);
        rv_replayed_fini(&r);
        rc = rv_buf_check(&state, "the result of a run", &err);
        if (rc == 0)
            rc = rv_buf_check(&body, "the result of a run", &err);
    }
    if (rc < 0)
        srv_stream_fail(f->st, rc, err);
    else
        srv_stream_answer(f->st, 200, "application/json", &body);
    rv_buf_fini(&body);
    rv_buf_fini(&state);
    f->st = NULL;
}

/* The end of the answer; a whole answer is sent now. */
static int tell_end(struct follow *f, rv_err **err)
{
    enum rv_run_status status = f->past.row.status;
    struct rv_replayed r = {0};
    int rc = rv_app_past_replay(f->all->reader.store, &f->past, NULL, &r, err);

    if (rc < 0)
        return rc;
    rc = srv_told_end(f->ask.told, status, rv_app_past_pipeline(&f->past), rv_run_envelope(r.run), &f->out, err);
    rv_replayed_fini(&r);
    if (rc == 0 && srv_told_is_whole(f->ask.told)) {
        int http = srv_told_http(f->ask.told, status);
        if (http != 200) /* clients repeat a 429 and a 502 by themselves, and the run is over */
            srv_stream_field(f->st, "x-should-retry", "false");
        srv_stream_answer(f->st, http, "application/json", &f->out);
        f->st = NULL;
        rv_buf_init(&f->out, RV_APP_MAX_TEXT);
    }
    return rc;
}

static void end_follow(struct follow *f)
{
    struct srv_follows *all = f->all;
    struct follow **at = &all->first;

    while (*at && *at != f)
        at = &(*at)->next;
    if (*at)
        *at = f->next;
    if (f->st)
        srv_stream_end(f->st);
    rv_follower_free(f->follower);
    srv_pieces_free(f->pieces);
    rv_app_past_fini(&f->past);
    rv_buf_fini(&f->out);
    srv_told_free(f->ask.told);
    free(f);
    if (!all->first && !all->reader.loop.is_closed)
        uv_timer_stop(&all->reader.timer);
}

/* A client that came by GET comes back with its number when the stream is cut; one that posted is told. */
static void break_off(struct follow *f, rv_err *err)
{
    int rc = rv_err_code(err);

    if (f->st && f->ask.told && srv_told_break(f->ask.told, rc, &f->out)) {
        send_all(f);
        rv_err_free(err);
    } else if (f->st) {
        srv_stream_fail(f->st, rc, err);
        f->st = NULL;
    } else {
        rv_err_free(err);
    }
    end_follow(f);
}

static void stop(struct follow *f)
{
    rv_err *err = NULL;

    RV_IGNORE(RV_FAIL(&err, RV_E_UNAVAILABLE, "the server drains"), "it is told");
    break_off(f, err);
}

/* The server drains: a run that it does not have comes to its end elsewhere, and any other may take longer. */
static bool is_left(const struct follow *f)
{
    const struct srv_server *s = f->all->reader.server;
    const char *owner = f->past.row.owner;

    return f->is_draining && !is_done(f) && (atomic_load(&s->is_over) || !owner || strcmp(owner, s->owner) != 0);
}

static void go_on(struct follow *f)
{
    rv_err *err = NULL;
    int rc = f->is_over ? 0 : look(f, &err);

    if (rc == 0 && is_left(f)) {
        stop(f);
        return;
    }
    if (rc == 0 && f->is_over && f->ask.told && !f->is_told) {
        f->is_told = true;
        rc = tell_end(f, &err);
    }
    if (rc < 0) {
        RV_LOG(f->all->reader.server->app.log, WARN, "follow.failed", RV_F_TEXT("run_id", f->ask.run),
               RV_F_ERR("error", err));
        break_off(f, err);
        return;
    }
    if (f->st && !(f->ask.told && srv_told_is_whole(f->ask.told)))
        send_some(f);
    if (!f->is_over || (f->st && f->out.len > 0))
        return;
    if (f->ask.form == SRV_FOLLOW_RESULT)
        give_result(f);
    end_follow(f);
}

static void on_look(uv_timer_t *timer)
{
    struct srv_follows *all = timer->data;

    for (struct follow *f = all->first, *next; f; f = next) {
        next = f->next;
        go_on(f);
    }
}

/* --- what its client does --- */

static void on_gone(void *self)
{
    end_follow(self);
}

static void on_drain(void *self)
{
    send_some(self);
}

/* A client that came by GET asks another process; one that posted hears of a run that ends in time. */
static void on_stop(void *self)
{
    struct follow *f = self;

    f->is_draining = true;
    if (f->ask.until_waits)
        go_on(f);
    else
        stop(f);
}

/* --- the beginning --- */

static int open_follow(struct follow *f, rv_err **err)
{
    f->scope = (struct rv_store_scope){f->ask.tenant, f->ask.has_user ? f->ask.user : NULL};
    f->from = f->ask.from > 0 ? f->ask.from : 1;
    rv_buf_init(&f->out, RV_APP_MAX_TEXT);
    const struct srv_piece_cursor cursor = {f->from - 1, f->ask.piece};
    if (f->ask.deltas && !(f->pieces = srv_pieces_new(&cursor, f->ask.form == SRV_FOLLOW_LINES)))
        return RV_FAIL(err, RV_E_NOMEM, "follow a run");
    return rv_app_past_open(f->all->reader.store, &f->scope, f->ask.run, &f->past, err);
}

static void on_ask(struct srv_message *l)
{
    struct note *n = (struct note *)l;
    struct srv_follows *all = n->all;
    struct follow *f = all->reader.loop.is_closed ? NULL : calloc(1, sizeof *f);
    rv_err *err = NULL;
    int rc = f                            ? 0
             : all->reader.loop.is_closed ? RV_FAIL(&err, RV_E_UNAVAILABLE, "the server drains")
                                          : RV_FAIL(&err, RV_E_NOMEM, "follow a run");

    if (f) {
        f->all = all;
        f->ask = n->ask;
        f->st = n->st;
        f->st->self = f;
        rc = open_follow(f, &err);
    }
    if (rc < 0) {
        srv_stream_fail(n->st, rc, err);
        if (!f)
            srv_told_free(n->ask.told);
        if (f) {
            f->st = NULL;
            end_follow(f);
        }
        free(n);
        return;
    }
    free(n);
    srv_stream_field(f->st, "X-Run-Id", f->ask.run);
    if (f->ask.form == SRV_FOLLOW_EVENTS || (f->ask.told && !srv_told_is_whole(f->ask.told)))
        srv_stream_begin(f->st);
    else if (f->ask.form == SRV_FOLLOW_LINES)
        srv_stream_begin_lines(f->st);
    f->next = all->first;
    all->first = f;
    uv_timer_start(&all->reader.timer, on_look, LOOK_MS, LOOK_MS);
    go_on(f);
}

void srv_follows_ask(struct srv_follows *all, struct srv_call *c, const struct srv_follow_ask *ask)
{
    struct note *n = calloc(1, sizeof *n);
    struct srv_stream *st = n ? srv_stream_new(c, &all->reader.loop) : NULL;

    if (!st) {
        free(n);
        srv_told_free(ask->told);
        c->rc = RV_FAIL(&c->err, RV_E_NOMEM, "follow a run");
        srv_call_reply(c);
        return;
    }
    st->on_gone = on_gone;
    st->on_drain = on_drain;
    st->on_stop = on_stop;
    n->message.open = on_ask;
    n->all = all;
    n->ask = *ask;
    n->st = st;
    srv_loop_post(&all->reader.loop, &n->message);
}

/* --- the loop --- */

static void end_all(void *self)
{
    struct srv_follows *all = self;

    while (all->first)
        stop(all->first);
}

int srv_follows_new(struct srv_server *s, struct srv_follows **out, rv_err **err)
{
    struct srv_follows *all = calloc(1, sizeof *all);

    if (!all)
        return RV_FAIL(err, RV_E_NOMEM, "make the followers");
    bool is_open = false;
    int rc = srv_reader_open(&all->reader, s, end_all, all, &is_open, err);
    if (is_open)
        *out = all;
    else
        free(all);
    return rc;
}

void srv_follows_stop(struct srv_follows *all)
{
    srv_reader_stop(&all->reader);
}

void srv_follows_free(struct srv_follows *all)
{
    if (!all)
        return;
    srv_reader_close(&all->reader);
    free(all);
}
