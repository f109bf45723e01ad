/* A worker of which each allocation fails once, in whatever thread: its loop, the dispatcher that talks to the store,
 * the threads of the engine. It begins a queued run, goes on with one that no process drives, handles two tasks (one
 * fails) and fires a schedule. No crash and no lost work: after a worker that has its memory, each run and each task
 * has ended. Then, on one thread and without a leak: submitting, and what a queued run waits for. */
#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/app/app.h"
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char good_text[] =
    "name: good\nagents: [{name: a, set: {v: 1}, default_next: b}, {name: b, set: {v: 2}}]\n";
static const char bad_text[] = "name: bad\nagents: [{name: a, set: {v: metadata.nothing.more}}]\n";

#define LEASE_US                                                                                                       \
    100000 /* a worker that lost its memory may leave tasks behind, for which the next one waits so long               \
            */

/* libuv ends the process where it has no memory for its own tables, so these do not fail. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *p);

struct place {
    char *dir, *good, *bad, *store, *empty, *full, left[RV_STORE_MAX_ID + 1];
    struct rv_app app;
};

static void open_place(struct place *p)
{
    p->dir = rv_kit_tmpdir();
    p->good = rv_kit_path(p->dir, "good.yaml");
    p->bad = rv_kit_path(p->dir, "bad.yaml");
    p->store = rv_kit_path(p->dir, "runs.db");
    p->empty = rv_kit_path(p->dir, "empty.db");
    p->full = rv_kit_path(p->dir, "full.db");
    rv_kit_write(p->good, good_text);
    rv_kit_write(p->bad, bad_text);
    p->app = (struct rv_app){.store = p->store, .sync = "off", .capability = "", .quotas = "", .lease_us = LEASE_US};
}

static void close_place(struct place *p)
{
    rv_kit_tmpdir_remove(p->dir);
    free(p->good);
    free(p->bad);
    free(p->store);
    free(p->empty);
    free(p->full);
}

/* --- what is queued --- */

/* key NULL: it is kept and not queued. */
static int submit(struct place *p, const char *key, rv_err **err)
{
    const struct rv_app_load_opts opts = {.keeps = true};
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("x")};
    const struct rv_app_submit how = {.key = key};
    struct rv_app_submitted out;
    struct rv_app_loaded loaded;
    rv_envelope *env = NULL;

    int rc = rv_app_load(&p->app, p->good, &opts, &loaded, err);
    if (rc < 0)
        return rc;
    struct rv_app_run run = {.app = &p->app, .loaded = &loaded, .mode = RV_UNSET};
    rc = loaded.pipeline ? rv_envelope_new(&seed, rv_rand_system(), 1, &env, err) : RV_E_NOMEM;
    if (rc == 0)
        rc = rv_app_run_open(&run, err);
    if (rc == 0 && !key)
        snprintf(p->left, sizeof p->left, "%s", rv_envelope_fields(env)->envelope_id);
    if (rc == 0)
        rc = key ? rv_app_submit(&run, env, &how, &out, err) : rv_app_run_keep(&run, env, err);
    rv_envelope_free(env);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return rc;
}

static void must(int rc, rv_err *err)
{
    ck_assert_msg(rc == 0, "%s", rv_kit_err_take(err));
}

static void enqueue(rv_store *store, const char *type, int64_t max_retries)
{
    const struct rv_new_task task = {
        .id = type, .type = type, .payload = RV_STR_LIT("{\"input\": \"x\"}"), .max_retries = max_retries, .now_us = 1};
    rv_err *err = NULL;

    must(rv_store_enqueue(store, &task, NULL, &err), err);
}

static rv_store *open_store(const char *path)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *s = NULL;

    ck_assert_int_eq(rv_store_open(path, &opts, &s, NULL), 0);
    return s;
}

/* `full`: a store with all that a worker finds. */
static void fill(struct place *p)
{
    const struct rv_schedule_row schedule = {.id = "sched_1",
                                             .name = "yearly",
                                             .expr = "0 0 1 1 *",
                                             .zone = "UTC",
                                             .type = "good",
                                             .max_retries = RV_UNSET,
                                             .created_us = 1,
                                             .next_us = rv_app_now_us() - 1000000};
    const struct rv_store_scope all = {NULL, NULL};
    const struct rv_store_claim gone = {.owner = "gone", .now_us = 1, .until_us = 2}; /* the lease ended long ago */
    int64_t fence = 0;
    rv_err *err = NULL;

    rv_store_close(open_store(p->empty));
    rv_kit_copy(p->empty, p->store);
    must(submit(p, "first", &err), err);
    must(submit(p, NULL, &err), err);
    rv_store *s = open_store(p->store);
    must(rv_store_claim(s, &all, p->left, &gone, &fence, &err), err);
    enqueue(s, "good", RV_UNSET);
    enqueue(s, "bad", 0);
    must(rv_store_add_schedule(s, &schedule, &err), err);
    rv_store_close(s);
    rv_kit_copy(p->store, p->full);
}

/* --- the worker --- */

/* What failed is tried again in half a minute: the worker need not wait for that. */
static void stop_at_a_failure(void *self, const char *line)
{
    if (strstr(line, "retries used") && !strstr(line, "0 of 0"))
        rv_worker_stop(self);
}

static void make_due(const struct place *p)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(p->store, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "UPDATE tasks SET scheduled_us = 1 WHERE status = 'waiting'", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
}

static int work(struct place *p, rv_err **err)
{
    const struct rv_worker_handler handlers[] = {{"good", p->good}, {"bad", p->bad}};
    struct rv_worker_stop *stop = rv_worker_stop_new();
    struct rv_worker_done done;

    if (!stop)
        return RV_FAIL(err, RV_E_NOMEM, "make a stop");
    const struct rv_worker_opts opts = {.app = &p->app,
                                        .stop = stop,
                                        .handlers = handlers,
                                        .n_handlers = RV_COUNT(handlers),
                                        .threads = 2,
                                        .say = stop_at_a_failure,
                                        .self = stop,
                                        .until_idle = true};
    int rc = rv_worker_run(&opts, &done, err);
    rv_worker_stop_free(stop);
    return rc;
}

/* --- what has become of everything --- */
struct verdict {
    int n_completed, n_failed, n_waiting; /* runs */
    int n_of_tasks;                       /* that have not ended, of tasks: `reeve tasks retry` goes on with them */
    int n_tasks, n_alive, n_lost;         /* lost: tasks that failed for good, but for `bad` */
    bool is_put_off;
};

static int see_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct verdict *v = self;

    (void)err;
    if (row->status == RV_RUN_COMPLETED)
        v->n_completed++;
    else if (row->status == RV_RUN_FAILED)
        v->n_failed++;
    else if (strncmp(row->id, "job_", strlen("job_")) == 0)
        v->n_of_tasks++;
    else
        v->n_waiting++;
    return 0;
}

static int see_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    struct verdict *v = self;

    (void)err;
    v->n_tasks++;
    v->n_lost += row->status == RV_TASK_FAILED && strcmp(row->type, "bad") != 0;
    v->n_alive += (RV_TASKS_ALIVE >> row->status & 1u) != 0;
    return 0;
}

static struct verdict look(struct place *p)
{
    const struct rv_store_scope all = {NULL, NULL};
    struct rv_schedule_row schedule = {0};
    struct verdict v = {0};
    rv_store *s = open_store(p->store);
    rv_err *err = NULL;

    must(rv_store_check(s, &err), err);
    must(rv_store_list_runs(s, &all, NULL, see_run, &v, &err), err);
    must(rv_store_list_tasks(s, &all, NULL, see_task, &v, &err), err);
    if (rv_store_get_schedule(s, &all, "yearly", &schedule, NULL) == 0)
        v.is_put_off = schedule.n_fired == 0 && schedule.error; /* it is looked at again */
    rv_schedule_row_fini(&schedule);
    rv_store_close(s);
    return v;
}

static void begin_again(struct place *p, const char *from)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal"};
    char name[512];

    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        snprintf(name, sizeof name, "%s%s", p->store, ends[i]);
        unlink(name);
    }
    rv_kit_copy(from, p->store);
}

START_TEST(any_allocation_of_a_worker_may_fail)
{
    struct place place, *p = &place;
    rv_err *err = NULL;
    size_t n, n_ends = 0;

    open_place(p);
    fill(p);
    rv_fault_arm_all(SIZE_MAX);
    int rc = work(p, &err);
    rv_fault_disarm();
    must(rc, err);
    const size_t step = rv_kit_step(rv_fault_count() / 40 + 1);
    struct verdict v = look(p);
    ck_assert_msg(v.n_completed == 4 && v.n_failed == 1 && v.n_waiting == 0, "%d completed, %d failed, %d waiting",
                  v.n_completed, v.n_failed, v.n_waiting);
    ck_assert_int_eq(v.n_tasks, 5);
    ck_assert_int_eq(v.n_alive, 0);
    for (n = rv_kit_first(step);; n += step) {
        begin_again(p, p->full);
        rv_fault_arm_all(n);
        rc = work(p, &err);
        bool fired = rv_fault_disarm();
        ck_assert_msg(rc == 0 || rv_err_is(err, RV_E_NOMEM), "allocation %zu: %s", n, rv_kit_err_take(err));
        rv_err_free(err);
        err = NULL;
        make_due(p);
        must(work(p, &err), err);
        v = look(p);
        ck_assert_msg(v.n_waiting == 0 && v.n_alive == 0 && v.n_lost == 0 && v.n_failed <= 2 &&
                          v.n_tasks == 5 - v.is_put_off,
                      "allocation %zu: %d completed, %d failed, %d waiting, %d tasks, %d alive, %d lost", n,
                      v.n_completed, v.n_failed, v.n_waiting, v.n_tasks, v.n_alive, v.n_lost);
        n_ends += v.n_completed == 4 && v.n_failed == 1;
        if (!fired)
            break;
    }
    ck_assert(n > 1000 || !rv_fault_works());
    ck_assert_uint_ge(n_ends, n / step / 2); /* most of them cost an attempt at most */
    close_place(p);
}
END_TEST

static void use_own_memory_of_libuv(void)
{
    ck_assert_int_eq(uv_replace_allocator(__libc_malloc, __libc_realloc, __libc_calloc, __libc_free), 0);
}

/* --- on one thread --- */

static int submit_and_look(struct place *p)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    const struct rv_store_scope all = {NULL, NULL};
    struct rv_app_queued queued = {0};
    struct rv_run_row row = {0};
    rv_store *s = NULL;
    rv_err *err = NULL;

    int rc = submit(p, "first", &err);
    if (rc == 0)
        rc = submit(p, "first", &err); /* the same */
    if (rc == 0)
        rc = rv_store_open(p->store, &opts, &s, &err);
    if (rc == 0)
        rc = rv_app_find_run(s, &all, "last", &row, &err);
    if (rc == 0)
        rc = rv_app_queued_read(s, &row, &queued, &err);
    rv_app_queued_fini(&queued);
    rv_run_row_fini(&row);
    rv_store_close(s);
    if (rc < 0 && rv_err_is(err, RV_E_NOMEM))
        rc = RV_E_NOMEM;
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_submitting_may_fail)
{
    struct place place, *p = &place;
    size_t n;

    open_place(p);
    rv_store_close(open_store(p->empty));
    begin_again(p, p->empty);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(submit_and_look(p), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 160 + 1);
    for (n = rv_kit_first(step);; n += step) {
        begin_again(p, p->empty);
        rv_fault_arm(n);
        int rc = submit_and_look(p);
        bool fired = rv_fault_disarm();
        ck_assert_msg(rc == (fired ? RV_E_NOMEM : 0) || rc == 0, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        struct verdict v = look(p); /* both, or neither */
        ck_assert_int_eq(v.n_waiting, v.n_alive);
        if (!fired)
            break;
    }
    ck_assert(n > 100 || !rv_fault_works());
    close_place(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_worker");
    TCase *tc = tcase_create("worker");

    setenv("REEVE_CAPABILITY_PATH", "/nowhere", 1);
    tcase_add_unchecked_fixture(tc, use_own_memory_of_libuv, NULL);
    tcase_add_test(tc, any_allocation_of_a_worker_may_fail);
    tcase_add_test(tc, any_allocation_of_submitting_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
