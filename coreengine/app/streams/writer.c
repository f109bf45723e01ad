/* The writer of streams: lines from any threads, one thread that puts them into the store, many streams at a time. */
#include "coreengine/app/streams.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/base/base.h"

#define MAX_WAITING RV_STREAM_MAX_PART /* the store takes no larger group */
#define MAX_HELD    ((size_t)64 << 10) /* bytes of text that become one piece: it is one value of a row */
#define PRUNE_US    (30 * RV_US_PER_S) /* half a minute: old streams take room, nothing else */
#define PRUNE_OFTEN RV_US_PER_S        /* as often at most, where they are kept for less than PRUNE_US */
#define PRUNE_MAX   500                /* streams in one transaction: it stays short for other writers */
#define MAX_GROUP   256                /* streams of one transaction: other processes wait for its end */
#define GATHER_NS                                                                                                      \
    INT64_C(20000000) /* from one transaction to the next, if no line hurries: then many streams share it */

struct rv_app_stream {
    struct rv_app_stream *next; /* of those with something to write; guarded, as all that follows to the line */
    rv_app_streams *writer;
    const char *id, *owner; /* behind the struct */
    rv_buf lines;           /* that have come */
    int64_t n_lines;
    size_t writing; /* bytes that the writer has */
    bool is_listed, is_busy, is_closed, has_failed;
    bool hurries;  /* a line that came while it was busy does */
    bool has_told; /* pieces of its answer: the next ones need not hurry */
    enum rv_app_stream_close how;
    struct rv_app_stream_opts opts;
    struct rv_stream_tail tail; /* the thread's */
    /* --- the producer's --- */
    rv_buf head, text; /* of a piece that may grow: its line up to the text, its text */
    struct rv_delta_from held;
    enum rv_llm_delta_kind held_kind;
    size_t held_index;
};
/* What the thread took of a stream. */
struct batch {
    struct rv_app_stream *st;
    rv_buf lines;
    int64_t n_lines, first, at_us;
    bool closes;
    int rc;
    rv_err *err; /* owned */
};
struct rv_app_streams {
    pthread_mutex_t lock; /* guards the streams and flags; before server/loop_internal.h, which on_kept() posts to */
    pthread_cond_t wake;
    struct rv_app_stream *first, **end;
    bool hurries; /* a line that waits does */
    bool gathers; /* the thread sleeps until its time has come, or a line hurries; then the
                   * first line need not wake it */
    bool is_over, has_thread;
    int64_t wrote_ns; /* the thread's: when it wrote last */
    pthread_t thread;
    rv_store *store;           /* the thread's, as the next one */
    struct batch *batches;     /* owned */
    int64_t kept_us, prune_ns; /* prune_ns: when old streams are deleted next */
    rv_log *log;
};

static void free_stream(struct rv_app_stream *st)
{
    rv_buf_fini(&st->lines);
    rv_buf_fini(&st->head);
    rv_buf_fini(&st->text);
    free(st);
}

/* --- the thread --- */

/* A stream that lacks lines gets no further ones, or the numbers of those would be wrong. */
static int write_one(rv_app_streams *w, struct batch *b)
{
    struct rv_app_stream *st = b->st;
    int rc = st->has_failed ? 0 : rv_buf_check(&b->lines, "a group of lines", &b->err);

    if (rc < 0 || st->has_failed || b->lines.len == 0)
        return rc;
    const struct rv_new_stream_part part = {st->id, st->owner, rv_buf_str(&b->lines), b->n_lines, b->at_us};
    return rv_store_add_stream_part(w->store, &part, &st->tail, &b->first, &b->err);
}

static int close_one(rv_app_streams *w, struct batch *b)
{
    struct rv_app_stream *st = b->st;
    rv_err *cause = NULL;

    if (!b->closes || st->how == RV_APP_STREAM_LEAVES)
        return b->rc;
    if (st->how == RV_APP_STREAM_ENDS && b->rc == 0 && !st->has_failed)
        return rv_store_end_stream(w->store, st->id, st->owner, rv_app_now_us(), &b->err);
    int rc = rv_store_claim_stream(w->store, st->id, st->owner, RV_APP_STREAM_NOBODY, &cause);
    if (b->rc < 0) { /* which says more */
        rv_err_free(cause);
        return b->rc;
    }
    b->err = cause;
    return rc;
}

static void fail(struct batch *b, int rc, const rv_err *why)
{
    if (b->rc == 0)
        b->rc = RV_FAIL(&b->err, rc, "keep a stream: %s", rv_err_text(why));
}

static void write_all(rv_app_streams *w, struct batch *batches, size_t n)
{
    rv_err *err = NULL;
    int rc = 0;

    do {
        for (size_t i = 0; i < n; i++) {
            rv_err_free(batches[i].err);
            batches[i].err = NULL;
            batches[i].rc = 0;
            if (rc < 0) /* what it moved over is not there */
                batches[i].st->tail = (struct rv_stream_tail){.key = 0};
        }
        rc = rv_store_begin(w->store, &err);
        for (size_t i = 0; i < n && rc == 0; i++) {
            batches[i].rc = write_one(w, &batches[i]);
            batches[i].rc = close_one(w, &batches[i]);
        }
        if (rc == 0)
            rc = rv_store_commit(w->store, &err);
    } while (rc < 0 && rv_store_wait_again(w->store, &err));
    for (size_t i = 0; i < n && rc < 0; i++)
        fail(&batches[i], rc, err);
    rv_err_free(err);
}

/* The piece that may grow does so no more. */
static void add_held(struct rv_app_stream *st)
{
    if (st->head.len == 0 && st->head.rc == 0)
        return;
    rv_jw w = rv_jw_on(&st->head);
    rv_buf_puts(&st->head, ",\"text\":");
    rv_jw_str(&w, rv_buf_str(&st->text));
    rv_buf_puts(&st->head, "}\n");
    rv_buf_add_str(&st->lines, rv_buf_str(&st->head));
    st->n_lines++;
    if (st->lines.rc == 0) /* a piece that is cut, or not there, fails its group */
        st->lines.rc = st->text.rc < 0 ? st->text.rc : st->head.rc;
    rv_buf_clear(&st->head);
    rv_buf_clear(&st->text);
}

/* With the lock. */
static size_t take(rv_app_streams *w, struct batch *batches)
{
    size_t n = 0;

    while (w->first && n < MAX_GROUP) {
        struct rv_app_stream *st = w->first;
        struct batch *b = &batches[n++];
        w->first = st->next;
        if (!w->first)
            w->end = &w->first;
        add_held(st);
        st->hurries = false;
        st->is_listed = false;
        st->is_busy = true;
        *b = (struct batch){.st = st, .lines = st->lines, .n_lines = st->n_lines, .closes = st->is_closed};
        b->at_us = rv_app_now_us();
        st->writing = st->lines.len;
        rv_buf_init(&st->lines, MAX_WAITING);
        st->n_lines = 0;
    }
    w->hurries = w->hurries && w->first;
    return n;
}

/* With the lock. A stream that is busy is listed when its lines were written. */
static void list(rv_app_streams *w, struct rv_app_stream *st, bool hurries)
{
    st->hurries = st->hurries || hurries;
    if (st->is_busy)
        return;
    if (!st->is_listed) {
        st->is_listed = true;
        st->next = NULL;
        *w->end = st;
        w->end = &st->next;
    }
    w->hurries = w->hurries || st->hurries;
    if (!w->gathers || w->hurries)
        pthread_cond_signal(&w->wake);
}

/* With the lock. */
static bool is_heard(const struct batch *b)
{
    const struct rv_app_stream *st = b->st;

    return st->opts.on_kept && !st->is_closed && !st->has_failed && (b->rc < 0 || b->lines.len > 0);
}

static void tell(rv_app_streams *w, struct batch *b, bool more)
{
    struct rv_app_stream *st = b->st;
    const struct rv_stream_part part = {.first = b->first, .at_us = b->at_us, .lines = rv_buf_str(&b->lines)};

    st->is_busy = false;
    st->writing = 0;
    if (b->rc < 0 && !st->has_failed)
        RV_LOG(w->log, WARN, "stream.unkept", RV_F_TEXT("stream_id", st->id), RV_F_ERR("error", b->err));
    if (is_heard(b))
        st->opts.on_kept(st->opts.self, b->rc < 0 ? NULL : &part, &b->lines, more, b->rc, b->err);
    st->has_failed = st->has_failed || b->rc < 0;
    rv_err_free(b->err);
    rv_buf_fini(&b->lines);
    if (b->closes)
        free_stream(st);
    else if (st->lines.len > 0 || st->lines.rc < 0 || st->head.len > 0 || st->head.rc < 0 || st->is_closed)
        list(w, st, false);
}

static void tell_all(rv_app_streams *w, struct batch *batches, size_t n)
{
    size_t last = 0;

    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < n; i++)
        last = is_heard(&batches[i]) ? i : last;
    for (size_t i = 0; i < n; i++)
        tell(w, &batches[i], i < last);
    pthread_mutex_unlock(&w->lock);
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* As many as one transaction has: the next ones at once, behind the lines that wait. */
static void prune(rv_app_streams *w)
{
    int64_t now_us = rv_app_now_us(), every_us = w->kept_us < PRUNE_US ? w->kept_us : PRUNE_US, n = 0;
    rv_err *err = NULL;

    every_us = every_us > PRUNE_OFTEN ? every_us : PRUNE_OFTEN;
    if (now_ns() < w->prune_ns)
        return;
    if (rv_store_prune_streams(w->store, now_us - w->kept_us, now_us, PRUNE_MAX, &n, &err) < 0)
        RV_LOG(w->log, WARN, "stream.prune", RV_F_ERR("error", err));
    rv_err_free(err);
    w->prune_ns = now_ns() + (n < PRUNE_MAX ? every_us * 1000 : 0);
}

/* With the lock. */
static void wait_until(rv_app_streams *w, int64_t ns)
{
    const struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    RV_IGNORE(pthread_cond_timedwait(&w->wake, &w->lock, &until), "the time is looked at again");
}

/* With the lock: false when it is time to write, or to delete. */
static bool wait_for_lines(rv_app_streams *w)
{
    int64_t until_ns = w->wrote_ns + GATHER_NS, at_ns = now_ns();

    if (w->hurries || w->is_over || at_ns >= until_ns) {
        if (w->first || w->is_over || at_ns >= w->prune_ns)
            return false;
        wait_until(w, w->prune_ns);
        return true;
    }
    w->gathers = true;
    wait_until(w, until_ns);
    w->gathers = false;
    return true;
}

static void *run(void *self)
{
    rv_app_streams *w = self;
    struct batch *batches = w->batches;

    pthread_mutex_lock(&w->lock);
    while (!w->is_over || w->first) {
        if (wait_for_lines(w))
            continue;
        size_t n = take(w, batches);
        pthread_mutex_unlock(&w->lock);
        if (n > 0) {
            write_all(w, batches, n);
            w->wrote_ns = now_ns();
            tell_all(w, batches, n);
        }
        prune(w);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int rv_app_streams_new(const struct rv_app_streams_opts *opts, rv_app_streams **out, rv_err **err)
{
    rv_app_streams *w = calloc(1, sizeof *w);

    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "make the writer of streams");
    w->end = &w->first;
    w->log = opts->app->log;
    w->prune_ns = now_ns() + PRUNE_OFTEN * 1000; /* what is begun first is written first */
    w->kept_us = opts->kept_us == RV_APP_STREAM_NOT_KEPT ? 0
                 : opts->kept_us > 0                     ? opts->kept_us
                                                         : RV_APP_STREAM_KEPT_US;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attr);
    pthread_condattr_destroy(&attr);
    struct rv_app app = *opts->app;
    const char *sync = app.sync ? app.sync : app_env("REEVE_SYNC");
    if (!sync || strcmp(sync, "full") == 0)
        app.sync = "normal"; /* after a power cut a stream may lack its last lines; its clients have left anyway */
    w->batches = calloc(MAX_GROUP, sizeof *w->batches);
    int rc = w->batches ? rv_app_store_open(&app, RV_APP_STORE_MAKE, &w->store, err)
                        : RV_FAIL(err, RV_E_NOMEM, "make the writer of streams");
    if (rc == 0) {
        rc = rv_thread_start(run, w, &w->thread, err);
        w->has_thread = rc == 0;
    }
    if (rc < 0)
        rv_app_streams_free(w);
    else
        *out = w;
    return rc;
}

void rv_app_streams_free(rv_app_streams *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_over = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    rv_store_close(w->store);
    free(w->batches);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* --- one stream --- */

void rv_app_stream_of_run(const char *run, char out[RV_APP_STREAM_ID])
{
    snprintf(out, RV_APP_STREAM_ID, "%.*s~deltas", RV_STORE_MAX_ID, run);
}

int rv_app_stream_new(rv_app_streams *w, const struct rv_app_stream_opts *opts, rv_app_stream **out, rv_err **err)
{
    size_t n_id = strlen(opts->id) + 1, n_owner = strlen(opts->owner) + 1;
    struct rv_app_stream *st = calloc(1, sizeof *st + n_id + n_owner);

    if (!st)
        return RV_FAIL(err, RV_E_NOMEM, "keep a stream");
    st->writer = w;
    st->opts = *opts;
    st->id = memcpy(st + 1, opts->id, n_id);
    st->owner = memcpy((char *)(st + 1) + n_id, opts->owner, n_owner);
    rv_buf_init(&st->lines, MAX_WAITING);
    rv_buf_init(&st->head, MAX_WAITING);
    rv_buf_init(&st->text, MAX_WAITING);
    *out = st;
    return 0;
}

/* With the lock. What could not be added, as memory was short or the group too long, fails the group. */
static void add_line(struct rv_app_stream *st, const char *word, rv_str rest)
{
    add_held(st);
    rv_buf_puts(&st->lines, word);
    rv_buf_add_str(&st->lines, rest);
    rv_buf_putc(&st->lines, '\n');
    st->n_lines++;
    list(st->writer, st, true);
}

static void add(struct rv_app_stream *st, const char *word, rv_str rest)
{
    pthread_mutex_lock(&st->writer->lock);
    add_line(st, word, rest);
    pthread_mutex_unlock(&st->writer->lock);
}

/* Lines of the engine begin with {"seq":17, */
void rv_app_stream_on_event(rv_app_stream *st, rv_str line)
{
    static const char head[] = "{\"seq\":";
    size_t n = sizeof head - 1, end = n;

    if (line.len > n && memcmp(line.ptr, head, n) == 0) {
        while (end < line.len && rv_is_digit(line.ptr[end]))
            end++;
        add(st, "", (rv_str){line.ptr + n, end - n});
    } else {
        add(st, "", line);
    }
}

void rv_app_stream_note(rv_app_stream *st, const char *word, rv_str json)
{
    char head[16];

    snprintf(head, sizeof head, "%s%s", word, word[0] && json.len > 0 ? " " : "");
    add(st, head, json);
}

void rv_app_stream_on_again(rv_app_stream *st, int64_t seq)
{
    char number[32];

    snprintf(number, sizeof number, "again %" PRId64, seq);
    add(st, number, RV_STR_LIT(""));
}

static void write_from(const char *stage, const struct rv_delta_from *from, rv_jw *w)
{
    if (stage)
        rv_jw_kv_text(w, "stage", stage);
    if (from->origin) {
        rv_jw_kv_text(w, "agent", from->origin->agent);
        rv_jw_kv_int(w, "depth", from->origin->depth);
        rv_jw_kv_text(w, "parent_tool_call_id", from->origin->parent_tool_call_id);
    }
    rv_jw_kv_int(w, "call_id", from->call_id);
    if (from->is_muted)
        rv_jw_kv_bool(w, "muted", true);
}

static bool grows(const struct rv_app_stream *st, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    return st->head.len > 0 && st->held.call_id == from->call_id && st->held.stage == from->stage &&
           st->held.origin == from->origin && st->held.is_muted == from->is_muted && st->held_kind == d->kind &&
           st->held_index == d->index && st->text.len + d->text.len <= MAX_HELD;
}

static void hold(struct rv_app_stream *st, const char *stage, const struct rv_delta_from *from,
                 const struct rv_llm_delta *d)
{
    rv_jw w = rv_jw_on(&st->head);

    add_held(st);
    st->held = *from;
    st->held_kind = d->kind;
    st->held_index = d->index;
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "type", "delta");
    rv_jw_kv_text(&w, "kind",
                  d->kind == RV_LLM_DELTA_TEXT       ? "text"
                  : d->kind == RV_LLM_DELTA_THINKING ? "thinking"
                                                     : "tool_call_arguments");
    write_from(stage, from, &w);
    if (d->kind == RV_LLM_DELTA_TOOL_ARGUMENTS)
        rv_jw_kv_int(&w, "index", (int64_t)d->index);
}

static void add_other(struct rv_app_stream *st, const char *stage, const struct rv_delta_from *from,
                      const struct rv_llm_delta *d)
{
    rv_jw w = rv_jw_on(&st->lines);

    add_held(st);
    rv_llm_delta_write(d, &w);
    write_from(stage, from, &w);
    rv_jw_obj_end(&w);
    rv_buf_putc(&st->lines, '\n');
    st->n_lines++;
}

void rv_app_stream_on_delta(rv_app_stream *st, const char *stage, const struct rv_delta_from *from,
                            const struct rv_llm_delta *d)
{
    bool is_text =
        d->kind == RV_LLM_DELTA_TEXT || d->kind == RV_LLM_DELTA_THINKING || d->kind == RV_LLM_DELTA_TOOL_ARGUMENTS;

    if (d->kind == RV_LLM_DELTA_USAGE || d->kind == RV_LLM_DELTA_FINISH)
        return; /* no client is told these */
    pthread_mutex_lock(&st->writer->lock);
    if (is_text) {
        if (!grows(st, from, d))
            hold(st, stage, from, d);
        rv_buf_add_str(&st->text, d->text);
    } else {
        add_other(st, stage, from, d);
    }
    if (!st->opts.is_whole || st->lines.len > MAX_HELD)
        list(st->writer, st, !st->has_told);
    st->has_told = true;
    pthread_mutex_unlock(&st->writer->lock);
}

size_t rv_app_stream_waiting(rv_app_stream *st)
{
    pthread_mutex_lock(&st->writer->lock);
    size_t n = st->lines.len + st->text.len + st->writing;
    pthread_mutex_unlock(&st->writer->lock);
    return n;
}

void rv_app_stream_close(rv_app_stream *st, enum rv_app_stream_close how)
{
    rv_app_streams *w = st->writer;

    pthread_mutex_lock(&w->lock);
    add_held(st);
    st->is_closed = true;
    st->how = how;
    list(w, st, true);
    pthread_mutex_unlock(&w->lock);
}
