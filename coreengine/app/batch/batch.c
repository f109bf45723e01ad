/* The loop of a batch. Lines wait in a ring of slots, in their order: at its tail lines are read and their runs begun,
 * at its head results are handed out (slot.c). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/app/batch/loop_internal.h"
#include "coreengine/base/loop.h"

#define AHEAD        16                 /* slots for each run: so far the order of results may hold up others */
#define MIN_SLOTS    256                /* and at least */
#define MAX_HELD     ((size_t)64 << 20) /* bytes of results that wait for an earlier line: protects memory */
#define LINES_A_TURN 32                 /* read before the loop sees to signals and ends of runs */
#define TICK_MS      100                /* between two drawings of the progress: as often as an eye follows */
#define PATIENCE_US  (2 * RV_US_PER_S)  /* for owners of runs that are ending */

/* --- stopping --- */

void batch_stop(struct batch *b, bool lets_end)
{
    b->is_stopping = b->sum.is_cut = true;
    if (lets_end)
        return;
    b->hands_over = true;
    for (size_t i = 0; i < b->n_slots; i++)
        if (b->slots[i].exec)
            rv_exec_hand_over(b->slots[i].exec);
}

void batch_fail(struct batch *b, int rc, rv_err *err)
{
    if (b->rc == 0) {
        b->rc = rc;
        b->why = err;
    } else {
        rv_err_free(err);
    }
    batch_stop(b, rc == RV_E_QUOTA);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct batch *b = handle->data;

    (void)number;
    if (b->hands_over)
        _exit(RV_EXIT_AT_ONCE); /* asked twice: the runs are left as after a crash */
    rv_err *err = NULL;
    int rc = RV_FAIL(&err, RV_E_CANCELLED, "the batch was stopped; the same command goes on with it");
    batch_fail(b, rc, err);
    batch_tick(b);
}

/* --- lines --- */

static bool has_room(const struct batch *b)
{
    return !b->is_stopping && !b->is_alone && b->n_used < b->n_slots && b->n_running < b->n_all && b->held < MAX_HELD;
}

/* The next line becomes a slot. False: there is none now. */
static bool read_line(struct batch *b)
{
    enum batch_read what;
    rv_err *err = NULL;
    rv_str text;
    int rc = batch_reader_next(&b->reader, &what, &text, &err);

    b->sum.read_bytes = b->reader.read_bytes;
    if (rc < 0) {
        batch_fail(b, rc, err);
        return false;
    }
    b->is_read = what == BATCH_END;
    b->is_waiting = what == BATCH_LATER;
    if (b->is_read || b->is_waiting || what == BATCH_PAUSE)
        return false;
    struct slot *s = &b->slots[(b->head + b->n_used++) % b->n_slots];
    s->is_open = true;
    s->line = (struct batch_line){.file = b->reader.path, .number = b->reader.number};
    rc = what == BATCH_LONG ? RV_FAIL(&err, RV_E_LIMIT, "the line is longer than %zu bytes", BATCH_MAX_LINE)
                            : batch_line_read(&s->line, text, b->opts->state, &b->seed, &err);
    if (rc < 0)
        batch_conclude_faulty(s, rc, err);
    return true;
}

/* The last slot, if its run has not begun: it waits until no other run goes on. */
static struct slot *waiting_slot(struct batch *b)
{
    struct slot *s = b->n_used > 0 ? &b->slots[(b->head + b->n_used - 1) % b->n_slots] : NULL;

    return s && s->is_open && !s->is_done && !s->exec ? s : NULL;
}

static void on_more(uv_idle_t *idle)
{
    struct batch *b = idle->data;

    for (int i = 0; i < LINES_A_TURN && has_room(b); i++) {
        struct slot *s = waiting_slot(b);
        if (!s && !read_line(b))
            break;
        s = s ? s : waiting_slot(b);
        if (s && !batch_begin(s))
            break;
    }
    uv_idle_stop(&b->more);
    batch_tick(b);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    struct batch *b = poll->data;

    (void)status; /* what is wrong with it, reading tells */
    (void)events;
    uv_poll_stop(poll);
    b->is_waiting = false;
    batch_tick(b);
}

static void wait_for_input(struct batch *b)
{
    rv_err *err = NULL;

    if (!b->has_input) {
        int failed = uv_poll_init(&b->loop, &b->input, b->reader.fd);
        if (failed < 0) {
            int rc = RV_FAIL(&err, RV_E_IO, "wait for \"%s\": %s", b->reader.path, uv_strerror(failed));
            batch_fail(b, rc, err);
            return;
        }
        b->input.data = b;
        b->has_input = true;
    }
    int failed = uv_poll_start(&b->input, UV_READABLE | UV_DISCONNECT, on_input);
    if (failed < 0)
        batch_fail(b, RV_FAIL(&err, RV_E_IO, "wait for \"%s\": %s", b->reader.path, uv_strerror(failed)), err);
}

static void close_all(struct batch *b)
{
    if (b->is_closed)
        return;
    b->is_closed = true;
    uv_close((uv_handle_t *)&b->more, NULL);
    uv_close((uv_handle_t *)&b->tick, NULL);
    if (b->has_input)
        uv_close((uv_handle_t *)&b->input, NULL);
    for (size_t i = 0; i < RV_COUNT(b->signals); i++)
        if (b->signals[i].loop)
            uv_close((uv_handle_t *)&b->signals[i], NULL);
}

void batch_tick(struct batch *b)
{
    struct slot *waits = waiting_slot(b);

    if (b->is_waiting && !b->is_stopping && has_room(b))
        wait_for_input(b);
    if (b->n_running == 0 && (b->is_stopping || (b->is_read && !waits)))
        close_all(b);
    else if (!b->is_waiting && has_room(b) && (!b->is_read || (waits && b->n_running == 0)))
        uv_idle_start(&b->more, on_more);
}

static void on_tick(uv_timer_t *timer)
{
    struct batch *b = timer->data;

    b->sum.running = (int64_t)b->n_running;
    b->opts->on_tick(b->opts->self, &b->sum);
}

/* --- the batch --- */

static int make_scripts(struct batch *b, rv_err **err)
{
    struct rv_app_loaded *l = b->opts->loaded;
    rv_buf text = RV_BUF_INIT((size_t)64 << 20);
    const char *name = NULL;

    b->n_all = b->opts->concurrency ? b->opts->concurrency : RV_BATCH_CONCURRENCY;
    b->scripts = calloc(b->n_all, sizeof *b->scripts);
    if (!b->scripts)
        return RV_FAIL(err, RV_E_NOMEM, "make a batch");
    if (!l->script)
        return 0;
    int rc = rv_script_write_source(l->script, &name, &text, err);
    for (size_t i = 0; rc == 0 && i < b->n_all; i++) {
        rv_findings *f = rv_findings_new();
        rc = f ? rv_script_parse(rv_buf_str(&text), name, f, &b->scripts[i], err)
               : RV_FAIL(err, RV_E_NOMEM, "make a batch");
        if (rc == 0)
            rc = app_findings_error(f, err);
        b->n_scripts += rc == 0;
        rv_findings_free(f);
    }
    rv_buf_fini(&text);
    if (rc == 0)
        rc = app_scripted_stages(l, &b->scripted, err);
    return rc < 0 ? rc : rv_script_find_inner_stages(l->script, l->pipeline, &b->inner, err);
}

static int prepare(struct batch *b, rv_err **err)
{
    const struct rv_app_batch *o = b->opts;
    size_t n = 0;
    int rc;

    b->run = (struct rv_app_run){.app = o->app, .loaded = o->loaded, .mode = o->mode, .use_mocks = o->use_mocks};
    rv_owner_make_name(b->owner);
    rc = rv_app_run_open(&b->run, err);
    b->store = b->run.store;
    if (rc == 0)
        rc = rv_app_quotas_open(o->app, &b->quotas, err);
    if (rc == 0)
        rc = app_register_run_agents(&b->run, err);
    if (rc == 0)
        rc = app_put_bundle(&b->run, b->bundle, err);
    if (rc == 0)
        rc = make_scripts(b, err);
    if (rc < 0)
        return rc;
    n = b->n_all * AHEAD < MIN_SLOTS ? MIN_SLOTS : b->n_all * AHEAD;
    b->slots = calloc(n, sizeof *b->slots);
    if (!b->slots)
        return RV_FAIL(err, RV_E_NOMEM, "make a batch");
    b->n_slots = n;
    for (size_t i = 0; i < n; i++) {
        b->slots[i].b = b;
        b->slots[i].text = RV_BUF_INIT(BATCH_MAX_TEXT);
    }
    b->seed = (struct batch_seed){.bundle = b->bundle,
                                  .tenant = o->app->scope.tenant ? o->app->scope.tenant : RV_STORE_TENANT,
                                  .name = o->name ? o->name : "",
                                  .mode = o->mode,
                                  .use_mocks = o->use_mocks};
    b->patience_us = PATIENCE_US;
    RV_IGNORE(rv_app_services_init(&b->services, o->app), "exec_opts() has them");
    return 0;
}

static int open_handles(struct batch *b, rv_err **err)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    int rc = 0;

    uv_idle_init(&b->loop, &b->more);
    uv_timer_init(&b->loop, &b->tick);
    b->more.data = b->tick.data = b;
    if (b->opts->on_tick)
        uv_timer_start(&b->tick, on_tick, TICK_MS, TICK_MS);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(b->signals); i++) {
        b->signals[i].data = b;
        rc = rv_signal_init(&b->loop, &b->signals[i], on_signal, b->opts->handle_signals ? numbers[i] : 0, err);
    }
    return rc;
}

static int work(struct batch *b, rv_err **err)
{
    const struct rv_engine_opts opts = {.workers = b->opts->workers,
                                        .loop = &b->loop,
                                        .log = b->opts->app->log,
                                        .store = b->store,
                                        .owner = b->owner,
                                        .lease_us = b->opts->app->lease_us};
    int rc = rv_loop_init(&b->loop, err);

    if (rc < 0)
        return rc;
    rc = open_handles(b, err);
    if (rc == 0)
        rc = rv_engine_new(&opts, &b->engine, err);
    if (rc == 0)
        batch_tick(b);
    else
        close_all(b);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    rv_app_engine_free(b->opts->loaded, b->engine);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    RV_IGNORE(uv_loop_close(&b->loop), "all handles are closed");
    return rc;
}

static void free_batch(struct batch *b)
{
    for (size_t i = 0; i < b->n_slots; i++) {
        batch_line_fini(&b->slots[i].line);
        rv_buf_fini(&b->slots[i].text);
    }
    for (size_t i = 0; i < b->n_scripts; i++)
        rv_script_free(b->scripts[i]);
    free(b->slots);
    free(b->scripts);
    free(b->scripted);
    json_object_put(b->inner);
    rv_app_services_fini(&b->services);
    rv_quotas_free(b->quotas);
    rv_app_past_fini(&b->past);
    rv_app_run_fini(&b->run);
    batch_reader_close(&b->reader);
    rv_err_free(b->why);
    free(b);
}

int rv_app_batch_run(const struct rv_app_batch *batch, struct rv_app_batch_sum *out, rv_err **err)
{
    struct batch *b = calloc(1, sizeof *b);

    *out = (struct rv_app_batch_sum){.is_cut = true};
    if (!b)
        return RV_FAIL(err, RV_E_NOMEM, "make a batch");
    b->opts = batch;
    b->reader.fd = -1;
    int rc = batch_reader_open(batch->file, &b->reader, err);
    b->sum.size = b->reader.size;
    if (rc == 0)
        rc = prepare(b, err);
    if (rc == 0)
        rc = work(b, err);
    if (rc == 0 && b->rc < 0) {
        rc = b->rc;
        rv_err_pass(err, b->why);
        b->why = NULL;
    }
    b->sum.running = 0;
    *out = b->sum;
    free_batch(b);
    return rc < 0 ? RV_WRAP(err, rc, "run batch \"%s\"", batch->file) : 0;
}
