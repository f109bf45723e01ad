#include "tests/unit/engine/kept_host.h"

#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"

static bool is_write(const char *point)
{
    static const char *const writes[] = {"append",     "renew",   "begin", "commit",
                                         "create_run", "release", "claim", "put_snapshot"};

    for (size_t i = 0; i < RV_COUNT(writes); i++)
        if (strcmp(point, writes[i]) == 0)
            return true;
    return false;
}

int host_at(void *self, const char *point, rv_err **err)
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
    if (h->fails && strcmp(h->fails, point) == 0 && ++h->n_passed >= 2) {
        if (h->n_more-- == 0)
            h->fails = NULL;
        rc = RV_FAIL(err, h->fails_with ? h->fails_with : RV_E_IO, "the disk says no");
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

void host_wait_for_gate(struct host *h)
{
    pthread_mutex_lock(&h->lock);
    while (!h->is_at_gate)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

void host_open_gate(struct host *h)
{
    pthread_mutex_lock(&h->lock);
    h->gate = NULL;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

void host_on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct host *h = self;

    (void)line;
    h->n_events += e->emit == RV_EMIT_STAGE_STARTED;
}

void host_on_over(void *self, rv_exec *x, int rc, const rv_err *err)
{
    struct host *h = self;

    (void)err;
    h->n_over++;
    for (size_t i = 0; i < N_RUNS; i++)
        if (h->runs[i].exec == x)
            h->runs[i].rc = rc;
}

int64_t host_now(void *self)
{
    const struct rv_clock real = rv_clock_system();

    return real.now_us(real.self) + ((struct host *)self)->ahead_us;
}

void host_new(struct host *h)
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
    rv_store_set_faults(h->store, (struct rv_store_faults){host_at, h});
    const struct rv_engine_opts opts = {.loop = &h->loop, .store = h->store, .owner = "test/1", .clock = {host_now, h}};
    ck_assert_int_eq(rv_engine_new(&opts, &h->engine, &err), 0);
}

void host_fini(struct host *h)
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

rv_envelope *host_envelope(size_t i, int64_t now_us)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("x")};
    struct rv_rand_state state;
    rv_envelope *env = NULL;

    ck_assert_int_eq(rv_envelope_new(&seed, rv_rand_seeded(&state, 100 + i), now_us, &env, NULL), 0);
    return env;
}

rv_journal *host_journal(struct host *h, const rv_envelope *env, int64_t now_us)
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
        rv_script_mark_stages(h->w.script, h->w.pipeline, flags);
        start.begin.has_script = true;
        start.begin.is_script_blind = rv_script_is_blind(h->w.script);
        start.begin.scripted = flags;
    }
    ck_assert_int_eq(
        h->is_new ? rv_journal_new(h->store, &start, &j, NULL) : rv_journal_create(h->store, &start, &j, NULL), 0);
    return j;
}

void host_start_all(struct host *h, size_t from, size_t upto)
{
    int64_t now_us = rv_engine_now_us(h->engine);

    for (size_t i = from; i < upto; i++) {
        struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
        rv_envelope *env = host_envelope(i, now_us);
        rv_store_set_faults(h->store, (struct rv_store_faults){0});
        h->runs[i].journal = host_journal(h, env, now_us);
        rv_store_set_faults(h->store, (struct rv_store_faults){host_at, h});
        opts.pipeline = h->w.pipeline;
        opts.script = h->w.script;
        opts.journal = h->runs[i].journal;
        opts.quotas = h->quotas;
        opts.observer.on_event = host_on_event;
        opts.observer.on_ended = host_on_over;
        opts.observer.self = h;
        h->runs[i].rc = -1000;
        ck_assert_int_eq(rv_engine_start(h->engine, &opts, env, NULL, &h->runs[i].exec, NULL), 0);
    }
}
