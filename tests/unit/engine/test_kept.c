/* Steps that the store's own thread keeps. The store's points tell which thread passes them; one of them is a gate
 * where the thread waits until the test opens it, as it would wait for a slow disk. Where the loop waited for it, too,
 * the test would never end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

#define N_RUNS 12
#define STAGES "name: kept\nagents: [{name: a, default_next: b}, {name: b}]"
#define TALKS  "name: talks\nagents: [{name: t, has_llm: true, model_role: m}]\nmodels: {m: scripted:x}"
#define WORDS  "models: {t: [{chunks: [a, b, c]}]}"

static const struct rv_store_scope all = {NULL, NULL};

struct host {
    uv_loop_t loop;
    struct world w, talks;
    char *dir, url[512];
    rv_store *store;
    rv_engine *engine;
    struct {
        rv_exec *exec;
        rv_journal *journal;
        int rc;
    } runs[N_RUNS];
    bool holds;
    bool is_new; /* runs are made with their first step */
    int n_over, n_events, n_deltas;
    pthread_t loop_thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    const char *gate; /* where the thread stops; NULL: nowhere */
    bool is_at_gate;
    const char *fails; /* with the second write that passes it, once */
    int n_passed;
    int n_writes, n_on_loop, n_begins, n_appends, n_renewals;
    int64_t ahead_us; /* of its clock */
    int n_freed, n_closed;
    char left[64]; /* the id of a run that another process left */
};

static bool is_write(const char *point)
{
    static const char *const writes[] = {"append",     "renew",   "begin", "commit",
                                         "create_run", "release", "claim", "put_snapshot"};

    for (size_t i = 0; i < RV_COUNT(writes); i++)
        if (strcmp(point, writes[i]) == 0)
            return true;
    return false;
}

static int at(void *self, const char *point, rv_err **err)
{
    struct host *h = self;
    int rc = 0;

    pthread_mutex_lock(&h->lock);
    if (is_write(point)) {
        h->n_writes++;
        h->n_on_loop += pthread_equal(pthread_self(), h->loop_thread) != 0;
    }
    h->n_begins += strcmp(point, "begin") == 0;
    h->n_renewals += strcmp(point, "renew") == 0;
    pthread_cond_broadcast(&h->moved);
    h->n_appends += strcmp(point, "append") == 0;
    while (h->gate && strcmp(h->gate, point) == 0) {
        h->is_at_gate = true;
        pthread_cond_broadcast(&h->moved);
        pthread_cond_wait(&h->moved, &h->lock);
    }
    if (h->fails && strcmp(h->fails, point) == 0 && ++h->n_passed == 2) {
        h->fails = NULL;
        rc = RV_FAIL(err, RV_E_IO, "the disk says no");
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static void wait_for_gate(struct host *h)
{
    pthread_mutex_lock(&h->lock);
    while (!h->is_at_gate)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static void open_gate(struct host *h)
{
    pthread_mutex_lock(&h->lock);
    h->gate = NULL;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct host *h = self;

    (void)line;
    h->n_events += e->emit == RV_EMIT_STAGE_STARTED;
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct host *h = self;

    (void)from;
    if (d->kind == RV_LLM_DELTA_TEXT && ++h->n_deltas == 3)
        open_gate(h);
    return true;
}

static void on_over(void *self, rv_exec *x, int rc, const rv_err *err)
{
    struct host *h = self;

    (void)err;
    h->n_over++;
    for (size_t i = 0; i < N_RUNS; i++)
        if (h->runs[i].exec == x)
            h->runs[i].rc = rc;
}

static int64_t now(void *self)
{
    const struct rv_clock real = rv_clock_system();

    return real.now_us(real.self) + ((struct host *)self)->ahead_us;
}

static void host_new(struct host *h)
{
    const struct rv_store_opts store_opts = {.sync = RV_STORE_SYNC_OFF};
    rv_err *err = NULL;

    *h = (struct host){.dir = rv_kit_tmpdir(), .loop_thread = pthread_self()};
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->moved, NULL);
    snprintf(h->url, sizeof h->url, "sqlite:%s/runs", h->dir);
    ck_assert_int_eq(rv_store_open(h->url, &store_opts, &h->store, NULL), 0);
    ck_assert_int_eq(uv_loop_init(&h->loop), 0);
    world_load(&h->w, STAGES, NULL, NULL);
    rv_store_set_faults(h->store, (struct rv_store_faults){at, h});
    const struct rv_engine_opts opts = {.loop = &h->loop, .store = h->store, .owner = "test/1", .clock = {now, h}};
    ck_assert_int_eq(rv_engine_new(&opts, &h->engine, &err), 0);
}

static void on_free(void *self)
{
    ((struct host *)self)->n_freed++;
}

static void on_closed(void *self)
{
    struct host *h = self;

    h->engine = NULL;
    h->n_closed++;
}

static void host_fini(struct host *h)
{
    rv_engine_free(h->engine);
    for (size_t i = 0; i < N_RUNS; i++) {
        rv_exec_free(h->runs[i].exec);
        rv_journal_free(h->runs[i].journal);
    }
    world_fini(&h->w);
    world_fini(&h->talks);
    uv_run(&h->loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(uv_loop_close(&h->loop), 0);
    rv_store_close(h->store);
    rv_kit_tmpdir_remove(h->dir);
    pthread_cond_destroy(&h->moved);
    pthread_mutex_destroy(&h->lock);
}

static rv_envelope *envelope(size_t i, int64_t now_us)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("x")};
    struct rv_rand_state state;
    rv_envelope *env = NULL;

    ck_assert_int_eq(rv_envelope_new(&seed, rv_rand_seeded(&state, 100 + i), now_us, &env, NULL), 0);
    return env;
}

static rv_journal *journal(struct host *h, const rv_envelope *env, int64_t now_us)
{
    struct rv_journal_start start = {.pipeline = h->w.pipeline,
                                     .env = env,
                                     .owner = "test/1",
                                     .now_us = now_us,
                                     .begin = {.mode = RV_UNSET, .max_parallel = RV_ENGINE_MAX_PARALLEL}};
    bool flags[8] = {false};
    char hash[RV_STORE_HASH_MAX];
    rv_journal *j = NULL;

    ck_assert_int_eq(rv_store_put_blob(h->store, RV_STR_LIT("{}"), hash, NULL), 0);
    start.bundle = hash;
    if (h->w.script) {
        rv_script_stages(h->w.script, h->w.pipeline, flags);
        start.begin.has_script = true;
        start.begin.scripted = flags;
    }
    ck_assert_int_eq(
        h->is_new ? rv_journal_new(h->store, &start, &j, NULL) : rv_journal_create(h->store, &start, &j, NULL), 0);
    return j;
}

/* All journals first: what makes them is no part of what is looked at. */
static void start_all(struct host *h, size_t from, size_t upto)
{
    int64_t now_us = rv_engine_now_us(h->engine);

    for (size_t i = from; i < upto; i++) {
        struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
        rv_envelope *env = envelope(i, now_us);
        rv_store_set_faults(h->store, (struct rv_store_faults){0});
        h->runs[i].journal = journal(h, env, now_us);
        rv_store_set_faults(h->store, (struct rv_store_faults){at, h});
        opts.pipeline = h->w.pipeline;
        opts.script = h->w.script;
        opts.journal = h->runs[i].journal;
        opts.observer.on_event = on_event;
        opts.observer.on_over = on_over;
        opts.observer.self = h;
        h->runs[i].rc = -1000;
        ck_assert_int_eq(rv_engine_start(h->engine, &opts, env, NULL, &h->runs[i].exec, NULL), 0);
    }
}

static int64_t n_records(struct host *h, size_t i)
{
    struct rv_run_row row;

    ck_assert_int_eq(rv_store_get_run(h->store, &all, rv_journal_run(h->runs[i].journal), &row, NULL), 0);
    int64_t n = row.n_records;
    rv_run_row_fini(&row);
    return n;
}

START_TEST(the_loop_thread_writes_nothing)
{
    struct host h;

    host_new(&h);
    h.is_new = true;
    start_all(&h, 0, 3);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(h.n_over, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(h.runs[i].rc, 0);
        ck_assert_int_eq(rv_exec_status(h.runs[i].exec), RV_RUN_COMPLETED);
        ck_assert_int_ge(n_records(&h, i), 2);
    }
    ck_assert_int_ge(h.n_writes, 3);
    ck_assert_int_eq(h.n_on_loop, 0);
    host_fini(&h);
}
END_TEST

START_TEST(nothing_of_a_step_is_done_before_it_is_kept)
{
    struct host h;

    host_new(&h);
    h.gate = "commit";
    start_all(&h, 0, 1);
    wait_for_gate(&h);
    for (int i = 0; i < 20; i++)
        uv_run(&h.loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(h.n_events, 0);
    rv_exec_cancel(h.runs[0].exec); /* heard when the step is kept */
    uv_run(&h.loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(h.n_over, 0);
    open_gate(&h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.runs[0].rc, 0);
    host_fini(&h);
}
END_TEST

START_TEST(a_store_that_takes_its_time_delays_no_piece_of_another_run)
{
    struct host h;
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_exec *talk = NULL;

    host_new(&h);
    world_load(&h.talks, TALKS, WORDS, NULL);
    h.gate = "commit"; /* until three pieces were told */
    start_all(&h, 0, 1);
    wait_for_gate(&h);
    opts.pipeline = h.talks.pipeline;
    opts.script = h.talks.script;
    opts.observer.on_delta = on_delta;
    opts.observer.on_over = on_over;
    opts.observer.self = &h;
    rv_envelope *env = envelope(50, rv_engine_now_us(h.engine));
    ck_assert_int_eq(rv_engine_start(h.engine, &opts, env, NULL, &talk, NULL), 0);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_deltas, 3);
    ck_assert_int_eq(h.n_over, 2);
    rv_exec_free(talk);
    host_fini(&h);
}
END_TEST

START_TEST(what_waits_is_written_together)
{
    struct host h;

    host_new(&h);
    h.gate = "begin";
    start_all(&h, 0, 1);
    wait_for_gate(&h);
    h.is_new = true;
    start_all(&h, 1, N_RUNS); /* eleven first steps wait for the thread */
    h.n_begins = h.n_appends = 0;
    open_gate(&h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, N_RUNS);
    for (size_t i = 0; i < N_RUNS; i++)
        ck_assert_int_eq(h.runs[i].rc, 0);
    ck_assert_int_ge(h.n_appends, N_RUNS);
    ck_assert_int_le(h.n_begins, h.n_appends - 10); /* those eleven were one transaction */
    host_fini(&h);
}
END_TEST

/* The first write is on its way; three others wait, and somebody takes the second run over. */
START_TEST(a_run_that_was_taken_over_fails_alone)
{
    struct rv_store_claim claim = {.owner = "other/1", .dead = "test/1"};
    struct host h;
    int64_t fence = 0;

    host_new(&h);
    h.gate = "begin";
    start_all(&h, 0, 1);
    wait_for_gate(&h);
    start_all(&h, 1, 4);
    claim.now_us = rv_engine_now_us(h.engine);
    claim.until_us = claim.now_us + 60000000;
    rv_store_set_faults(h.store, (struct rv_store_faults){0});
    ck_assert_int_eq(rv_store_claim(h.store, &all, rv_journal_run(h.runs[2].journal), &claim, &fence, NULL), 0);
    open_gate(&h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(h.runs[i].rc, i == 2 ? RV_E_STATE : 0);
    ck_assert_int_eq(n_records(&h, 2), 1); /* its beginning alone */
    host_fini(&h);
}
END_TEST

static const char *const group_points[] = {"begin", "commit"};

START_TEST(a_group_that_fails_is_written_one_by_one)
{
    struct host h;

    host_new(&h);
    h.gate = "begin";
    start_all(&h, 0, 1);
    wait_for_gate(&h);
    start_all(&h, 1, 3);
    h.is_new = true;
    start_all(&h, 3, 5);
    pthread_mutex_lock(&h.lock);
    h.fails = group_points[_i];
    h.gate = NULL;
    pthread_cond_broadcast(&h.moved);
    pthread_mutex_unlock(&h.lock);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 5);
    ck_assert_ptr_null(h.fails);
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(h.runs[i].rc, 0);
    host_fini(&h);
}
END_TEST

#define ASKS     "name: asks\nagents: [{name: ask, default_next: use}, {name: use}]"
#define QUESTION "stages: {ask: [{visit: 1, raise: {kind: clarification, question: which?}}, {output: {}}]}"

static void on_question(void *self, rv_exec *x, const struct rv_pending *q)
{
    const struct rv_response response = {.text = RV_STR_LIT("that one")};
    struct host *h = self;
    struct rv_run_row row;

    ck_assert_ptr_nonnull(q->id);
    ck_assert_int_eq(rv_store_get_run(h->store, &all, rv_journal_run(h->runs[0].journal), &row, NULL), 0);
    ck_assert_int_eq(row.status, RV_RUN_INTERRUPTED); /* the question is kept before anybody hears it */
    ck_assert_int_eq(row.n_pending, 1);
    ck_assert((row.owner != NULL) == h->holds);
    rv_run_row_fini(&row);
    ck_assert_int_eq(rv_exec_answer(x, &response, NULL), h->holds ? 0 : RV_E_STATE);
}

START_TEST(a_run_that_holds_its_lease_is_answered_without_opening_its_journal_again)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct host h;

    host_new(&h);
    world_fini(&h.w);
    world_load(&h.w, ASKS, QUESTION, NULL);
    h.holds = opts.holds = _i;
    rv_envelope *env = envelope(0, rv_engine_now_us(h.engine));
    h.is_new = true;
    h.runs[0].journal = journal(&h, env, rv_engine_now_us(h.engine));
    opts.pipeline = h.w.pipeline;
    opts.script = h.w.script;
    opts.journal = h.runs[0].journal;
    opts.observer = (struct rv_observer){.on_question = on_question, .on_over = on_over, .self = &h};
    ck_assert_int_eq(rv_engine_start(h.engine, &opts, env, NULL, &h.runs[0].exec, NULL), 0);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(rv_exec_status(h.runs[0].exec), h.holds ? RV_RUN_COMPLETED : RV_RUN_INTERRUPTED);
    ck_assert_int_eq(h.n_on_loop, 0);
    host_fini(&h);
}
END_TEST

START_TEST(an_engine_that_is_freed_writes_what_it_was_given)
{
    struct host h;

    host_new(&h);
    start_all(&h, 0, 4);
    rv_engine_free(h.engine);
    h.engine = NULL;
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_ge(n_records(&h, i), 2); /* its beginning, and the step */
    ck_assert_int_eq(h.n_events, 0);
    host_fini(&h);
}
END_TEST

/* A run that another process left: it began, or waits for an answer. */
static void leave_a_run(struct host *h, bool asks)
{
    rv_envelope *env = envelope(0, now(h));

    rv_store_set_faults(h->store, (struct rv_store_faults){0});
    h->is_new = false;
    snprintf(h->left, sizeof h->left, "%s", rv_envelope_fields(env)->envelope_id);
    if (asks) {
        struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
        world_fini(&h->w);
        world_load(&h->w, ASKS, QUESTION, NULL);
        h->runs[0].journal = journal(h, env, now(h));
        opts.pipeline = h->w.pipeline;
        opts.script = h->w.script;
        opts.journal = h->runs[0].journal;
        ck_assert_int_eq(rv_engine_start(h->engine, &opts, env, NULL, &h->runs[0].exec, NULL), 0);
        uv_run(&h->loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(rv_exec_status(h->runs[0].exec), RV_RUN_INTERRUPTED);
        rv_exec_free(h->runs[0].exec);
        h->runs[0].exec = NULL;
    } else {
        h->runs[0].journal = journal(h, env, now(h) - INT64_C(3600000000));
        rv_envelope_free(env);
    }
    rv_store_set_faults(h->store, (struct rv_store_faults){at, h});
}

static void open_it(struct host *h, const struct rv_response *response)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;

    opts.pipeline = h->w.pipeline;
    opts.script = h->w.script;
    opts.observer = (struct rv_observer){.on_event = on_event, .on_over = on_over, .self = h};
    opts.on_free = on_free;
    opts.self = h;
    h->runs[1].rc = -1000;
    ck_assert_int_eq(rv_engine_open(h->engine, &opts, &all, h->left, response, false, &h->runs[1].exec, NULL), 0);
}

static bool has_owner(struct host *h)
{
    struct rv_run_row row;

    ck_assert_int_eq(rv_store_get_run(h->store, &all, h->left, &row, NULL), 0);
    bool owned = row.owner != NULL;
    rv_run_row_fini(&row);
    return owned;
}

static const struct rv_response that_one = {.text = {"that one", 8}};

enum { OPENED, ANSWERED, ANSWERED_LATER, UNANSWERED, CANCELLED, N_OPENINGS };

START_TEST(a_run_is_opened_by_the_store_thread)
{
    static const enum rv_run_status ends[] = {RV_RUN_COMPLETED, RV_RUN_COMPLETED, RV_RUN_COMPLETED, RV_RUN_RUNNING,
                                              RV_RUN_CANCELLED};
    bool asks = _i == ANSWERED || _i == ANSWERED_LATER || _i == UNANSWERED;
    struct host h;

    host_new(&h);
    leave_a_run(&h, asks);
    h.n_over = 0;
    h.gate = "claim";
    open_it(&h, _i == ANSWERED ? &that_one : NULL);
    wait_for_gate(&h);
    for (int i = 0; i < 20; i++)
        uv_run(&h.loop, UV_RUN_NOWAIT);
    ck_assert(!rv_exec_is_over(h.runs[1].exec));
    if (_i == ANSWERED_LATER)
        ck_assert_int_eq(rv_exec_answer(h.runs[1].exec, &that_one, NULL), 0);
    if (_i == ANSWERED_LATER || _i == ANSWERED)
        ck_assert_int_eq(rv_exec_answer(h.runs[1].exec, &that_one, NULL), RV_E_STATE);
    if (_i == CANCELLED)
        rv_exec_cancel(h.runs[1].exec);
    open_gate(&h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.runs[1].rc, _i == UNANSWERED ? RV_E_STATE : 0);
    ck_assert_int_eq(rv_exec_status(h.runs[1].exec), ends[_i]);
    rv_exec_free(h.runs[1].exec);
    h.runs[1].exec = NULL;
    rv_engine_close(h.engine, on_closed, &h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_freed, 1);
    ck_assert_int_eq(h.n_closed, 1);
    ck_assert_int_eq(h.n_on_loop, 0);
    ck_assert(!has_owner(&h));
    host_fini(&h);
}
END_TEST

/* Freed while the thread opens it, while a step of it is written, and with its engine. */
START_TEST(what_is_freed_is_given_up_by_the_store_thread)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct host h;
    rv_exec *x = NULL;

    host_new(&h);
    leave_a_run(&h, false);
    if (_i % 2) {
        h.gate = "claim";
        open_it(&h, NULL);
        x = h.runs[1].exec;
        h.runs[1].exec = NULL;
    } else {
        rv_envelope *env = envelope(1, now(&h));
        rv_store_set_faults(h.store, (struct rv_store_faults){0});
        rv_journal_free(h.runs[0].journal);
        opts.journal = journal(&h, env, now(&h));
        h.runs[0].journal = NULL;
        snprintf(h.left, sizeof h.left, "%s", rv_envelope_fields(env)->envelope_id);
        rv_store_set_faults(h.store, (struct rv_store_faults){at, &h});
        opts.pipeline = h.w.pipeline;
        opts.takes_journal = true;
        opts.on_free = on_free;
        opts.self = &h;
        h.gate = "commit";
        ck_assert_int_eq(rv_engine_start(h.engine, &opts, env, NULL, &x, NULL), 0);
    }
    wait_for_gate(&h);
    rv_exec_free(x);
    ck_assert_int_eq(h.n_freed, _i % 2); /* nothing of one that is not open yet is written */
    if (_i < 2) {
        rv_engine_close(h.engine, on_closed, &h);
        for (int i = 0; i < 20; i++)
            uv_run(&h.loop, UV_RUN_NOWAIT);
        ck_assert_int_eq(h.n_closed, 0);
        open_gate(&h);
        uv_run(&h.loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(h.n_closed, 1);
    } else {
        open_gate(&h);
        rv_engine_free(h.engine);
        h.engine = NULL;
    }
    ck_assert_int_eq(h.n_freed, 1);
    ck_assert_int_eq(h.n_on_loop, 0);
    ck_assert(!has_owner(&h));
    host_fini(&h);
}
END_TEST

#define LATE "stages: {a: [{output: {}, delay_ms: 600000}]}"

START_TEST(leases_are_renewed_by_the_store_thread)
{
    struct host h;

    host_new(&h);
    world_fini(&h.w);
    world_load(&h.w, STAGES, LATE, NULL);
    start_all(&h, 0, 1);
    uv_run(&h.loop, UV_RUN_NOWAIT);
    h.ahead_us += RV_LEASE_DEFAULT_US / 2;
    do /* until the thread has come to it */
        uv_run(&h.loop, UV_RUN_ONCE);
    while (h.n_renewals == 0);
    rv_exec_cancel(h.runs[0].exec);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.n_on_loop, 0);
    host_fini(&h);
}
END_TEST

Suite *kept_suite(void)
{
    Suite *s = suite_create("kept");
    TCase *tc = tcase_create("kept");

    tcase_add_test(tc, the_loop_thread_writes_nothing);
    tcase_add_test(tc, nothing_of_a_step_is_done_before_it_is_kept);
    tcase_add_test(tc, a_store_that_takes_its_time_delays_no_piece_of_another_run);
    tcase_add_test(tc, what_waits_is_written_together);
    tcase_add_test(tc, a_run_that_was_taken_over_fails_alone);
    tcase_add_loop_test(tc, a_group_that_fails_is_written_one_by_one, 0, RV_COUNT(group_points));
    tcase_add_loop_test(tc, a_run_that_holds_its_lease_is_answered_without_opening_its_journal_again, 0, 2);
    tcase_add_test(tc, an_engine_that_is_freed_writes_what_it_was_given);
    tcase_add_loop_test(tc, a_run_is_opened_by_the_store_thread, 0, N_OPENINGS);
    tcase_add_loop_test(tc, what_is_freed_is_given_up_by_the_store_thread, 0, 4);
    tcase_add_test(tc, leases_are_renewed_by_the_store_thread);
    suite_add_tcase(s, tc);
    return s;
}
