/* The dispatcher of a worker, the thread that talks to the store: it claims no task once it ends, and hands back tasks
 * that only the store thinks it holds. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "coreengine/app/app.h"
#include "coreengine/app/worker/worker_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

#define LEASE_US    INT64_C(3000000) /* a sign of life comes three times as often */
#define MAX_SIGNS   6                /* until a stray is seen */
#define MAX_YIELDS  1000
#define N_ENDS      30
#define N_SOAK_ENDS 5000

static const char pipeline_text[] = "name: say\nagents: [{name: a, set: {v: 1}}]\n";

struct place {
    char *dir, *store, *pipeline;
    struct rv_app app;
};

static void open_place(struct place *p)
{
    p->dir = rv_kit_tmpdir();
    p->store = rv_kit_path(p->dir, "runs.db");
    p->pipeline = rv_kit_path(p->dir, "say.yaml");
    rv_kit_write(p->pipeline, pipeline_text);
    p->app = (struct rv_app){.store = p->store, .sync = "off", .capability = "", .quotas = "", .lease_us = LEASE_US};
}

static void close_place(struct place *p)
{
    rv_kit_tmpdir_remove(p->dir);
    free(p->store);
    free(p->pipeline);
}

static rv_store *open_store(const struct place *p)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *s = NULL;

    ck_assert_int_eq(rv_store_open(p->store, &opts, &s, NULL), 0);
    return s;
}

static void enqueue(rv_store *s, const char *id, int64_t due_us)
{
    const struct rv_new_task task = {.id = id,
                                     .type = "say",
                                     .payload = RV_STR_LIT("{\"input\": \"x\"}"),
                                     .max_retries = RV_UNSET,
                                     .scheduled_us = due_us,
                                     .now_us = rv_app_now_us()};
    rv_err *err = NULL;
    int rc = rv_store_enqueue(s, &task, NULL, &err);

    ck_assert_msg(rc == 0, "%s", rv_kit_err_take(err));
}

static struct rv_task_row task_of(rv_store *s, const char *id)
{
    const struct rv_store_scope all = {NULL, NULL};
    struct rv_task_row row;

    ck_assert_int_eq(rv_store_get_task(s, &all, id, &row, NULL), 0);
    return row;
}

/* --- strays --- */

struct shown {
    struct place place;
    rv_store *store;
    struct rv_worker_stop *stop;
    char owner[RV_OWNER_MAX];
    bool was_made, was_seen; /* the worker handed "second" back */
};

/* As after a claim whose answer got lost: the store has it as claimed by the worker, who does not know. */
static void make_stray(const struct shown *w, const char *id)
{
    char *sql = sqlite3_mprintf("UPDATE tasks SET status = 'processing', attempt = 1, worker = %Q,"
                                " lease_until_us = %lld WHERE id = %Q AND status = 'waiting'",
                                w->owner, (long long)(rv_app_now_us() + 3600 * INT64_C(1000000)), id);
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(w->place.store, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 60000);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_changes(db), 1);
    sqlite3_close(db);
    sqlite3_free(sql);
}

/* The loop stands still while the dispatcher goes on, whose signs of life show in the lease of "first". */
static void wait_for_release(struct shown *w)
{
    int64_t lease_us = 0;

    for (int n_signs = 0; n_signs < MAX_SIGNS && !w->was_seen;) {
        struct rv_task_row first = task_of(w->store, "first"), second = task_of(w->store, "second");
        w->was_seen = second.status == RV_TASK_PENDING;
        n_signs += first.lease_until_us != lease_us;
        lease_us = first.lease_until_us;
        rv_task_row_fini(&first);
        rv_task_row_fini(&second);
    }
    if (!w->was_seen) /* it would not become idle */
        rv_worker_stop(w->stop);
}

static void on_line(void *self, const char *line)
{
    static const char begin[] = "working as ";
    struct shown *w = self;

    if (strncmp(line, begin, sizeof begin - 1) == 0) {
        const char *name = line + sizeof begin - 1;
        snprintf(w->owner, sizeof w->owner, "%.*s", (int)(strstr(name, ": up to ") - name), name);
        enqueue(w->store, "first", 0);
    } else if (!w->was_made && strncmp(line, "task first: ", 12) == 0) {
        w->was_made = true;
        make_stray(w, "second");
        wait_for_release(w);
    }
}

START_TEST(a_task_that_only_the_store_thinks_it_holds_is_handed_back)
{
    struct shown w = {.was_seen = false};
    struct rv_worker_done done;
    rv_err *err = NULL;

    open_place(&w.place);
    w.stop = rv_worker_stop_new();
    ck_assert_ptr_nonnull(w.stop);
    w.store = open_store(&w.place);
    enqueue(w.store, "second", rv_app_now_us() + 3600 * INT64_C(1000000));
    const struct rv_worker_handler handler = {"say", w.place.pipeline};
    const struct rv_worker_opts opts = {.app = &w.place.app,
                                        .stop = w.stop,
                                        .handlers = &handler,
                                        .n_handlers = 1,
                                        .concurrency = 1,
                                        .threads = 1,
                                        .say = on_line,
                                        .self = &w,
                                        .until_idle = true};
    int rc = rv_worker_run(&opts, &done, &err);
    ck_assert_msg(rc == 0, "%s", rv_kit_err_take(err));
    ck_assert_msg(w.was_seen, "its lease was renewed, and no worker has it");
    struct rv_task_row second = task_of(w.store, "second");
    ck_assert_int_eq(second.status, RV_TASK_COMPLETED);
    ck_assert_int_eq(second.retry_count, 0);
    rv_task_row_fini(&second);
    rv_worker_stop_free(w.stop);
    rv_store_close(w.store);
    close_place(&w.place);
}
END_TEST

/* --- the end of a worker that is idle --- */

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    size_t n;
};

static void ring(void *self)
{
    struct bell *b = self;

    pthread_mutex_lock(&b->lock);
    b->n++;
    pthread_cond_signal(&b->rung);
    pthread_mutex_unlock(&b->lock);
}

static void wait_for(struct bell *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->n == 0)
        pthread_cond_wait(&b->rung, &b->lock);
    b->n = 0;
    pthread_mutex_unlock(&b->lock);
}

/* What the loop does while it drains: each task goes back. */
static void give_all(struct work_dispatcher *d)
{
    for (struct work_job *j = app_work_dispatcher_take(d), *next; j; j = next) {
        next = j->next;
        j->end = WORK_BACK;
        app_work_dispatcher_give(d, j);
    }
}

/* A task comes just as the worker that is idle is asked whether it ends: it is claimed and given back, or not claimed;
 * one that the dispatcher claims when it has said that it ends would be left behind. */
static void end_while_a_task_comes(struct rv_worker *w, rv_store *s, struct bell *bell, int i)
{
    const struct rv_store_scope all = {NULL, NULL};
    struct work_dispatcher *d = NULL;
    rv_err *err = NULL;
    char id[32];

    snprintf(id, sizeof id, "task-%d", i);
    bell->n = 0;
    int rc = app_work_dispatcher_new(w, s, ring, bell, &d, &err);
    ck_assert_msg(rc == 0, "%s", rv_kit_err_take(err));
    wait_for(bell);
    enqueue(s, id, 0);
    app_work_dispatcher_tell(d);
    for (int k = 0; k < i * 61 % MAX_YIELDS; k++) /* to meet the dispatcher at any point of its way to a claim */
        sched_yield();
    if (!app_work_dispatcher_end_if_idle(d)) {
        app_work_dispatcher_drain(d);
        for (give_all(d); !app_work_dispatcher_is_empty(d); give_all(d))
            wait_for(bell);
    }
    app_work_dispatcher_free(d);
    struct rv_task_row row = task_of(s, id);
    ck_assert_msg(row.status != RV_TASK_PROCESSING, "%s was claimed by a worker that has ended", id);
    rv_task_row_fini(&row);
    ck_assert_int_eq(rv_store_cancel_task(s, &all, id, rv_app_now_us(), NULL, NULL), 0);
}

START_TEST(a_worker_that_ends_because_it_is_idle_claims_nothing_more)
{
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct place place;
    rv_err *err = NULL;

    open_place(&place);
    rv_store *s = open_store(&place);
    const struct rv_worker_handler given = {"say", place.pipeline};
    const struct rv_worker_opts opts = {.app = &place.app, .handlers = &given, .n_handlers = 1};
    const struct rv_engine_opts engine = {.workers = 1};
    struct rv_worker w = {.opts = &opts, .app = place.app, .lease_us = 60000000, .n_max = 4};
    rv_owner_make_name(w.owner);
    ck_assert_int_eq(app_work_handlers_load(&w.app, &given, 1, &w.handlers, &err), 0);
    ck_assert_int_eq(rv_engine_new(&engine, &w.engine, &err), 0);
    for (int i = 0; i < rv_kit_sample(N_ENDS, N_SOAK_ENDS); i++)
        end_while_a_task_comes(&w, s, &bell, i);
    rv_engine_free(w.engine);
    app_work_handlers_free(w.handlers, 1);
    rv_store_close(s);
    close_place(&place);
}
END_TEST

/* --- a full disk --- */

static void on_refusal(void *self, enum rv_log_level level, rv_str line)
{
    (void)level;
    if (memmem(line.ptr, line.len, "task.untold", 11))
        ring(self);
}

/* No file of this process can grow, as on a full disk. */
static void fill_disk(bool is_full)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = is_full ? 0 : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static struct work_job *wait_for_job(struct work_dispatcher *d, struct bell *bell)
{
    struct work_job *j;

    while (!(j = app_work_dispatcher_take(d)))
        wait_for(bell);
    return j;
}

/* A task that the store believes to be under way is handed back, and its paid calls are made once more. */
START_TEST(a_full_disk_delays_the_end_of_a_task_and_loses_it_not)
{
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct bell refused = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct work_dispatcher *d = NULL;
    struct place place;
    rv_err *err = NULL;

    signal(SIGXFSZ, SIG_IGN);
    open_place(&place);
    rv_store *s = open_store(&place);
    const struct rv_worker_handler given = {"say", place.pipeline};
    const struct rv_worker_opts opts = {.app = &place.app, .handlers = &given, .n_handlers = 1};
    const struct rv_engine_opts engine = {.workers = 1};
    struct rv_worker w = {.opts = &opts, .app = place.app, .lease_us = 60000000, .n_max = 1};
    rv_owner_make_name(w.owner);
    w.app.log = rv_log_new(&(struct rv_log_opts){.level = RV_LOG_WARN, .line = on_refusal, .line_self = &refused});
    ck_assert_int_eq(app_work_handlers_load(&w.app, &given, 1, &w.handlers, &err), 0);
    ck_assert_int_eq(rv_engine_new(&engine, &w.engine, &err), 0);
    enqueue(s, "paid", 0);
    ck_assert_int_eq(app_work_dispatcher_new(&w, s, ring, &bell, &d, &err), 0);
    struct work_job *j = wait_for_job(d, &bell);
    app_work_done(j, "completed");
    fill_disk(true);
    app_work_dispatcher_give(d, j);
    wait_for(&refused);
    fill_disk(false);
    while (!app_work_dispatcher_is_empty(d))
        wait_for(&bell);
    struct rv_task_row row = task_of(s, "paid");
    ck_assert_msg(row.status == RV_TASK_COMPLETED, "the store thinks that the task has not ended: %d", row.status);
    ck_assert_int_eq(row.attempt, 1);
    rv_task_row_fini(&row);
    app_work_dispatcher_free(d);
    rv_engine_free(w.engine);
    app_work_handlers_free(w.handlers, 1);
    rv_log_free(w.app.log);
    rv_store_close(s);
    close_place(&place);
}
END_TEST

/* --- a run that waits, and was asked to cancel before --- */

struct heard {
    struct bell bell;
    bool was_uncancelled;
};

static void on_warning(void *self, enum rv_log_level level, rv_str line)
{
    struct heard *h = self;

    (void)level;
    h->was_uncancelled = memmem(line.ptr, line.len, "run.uncancelled", 15);
    ring(&h->bell);
}

static void sql(const struct place *p, const char *text)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(p->store, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 60000);
    ck_assert_int_eq(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Asked through the row alone: no process ends it, and no task is queued for that. */
static void make_asked(const struct place *p, rv_store *s, char id[static RV_ID_MAX])
{
    struct rv_app_job job = RV_APP_JOB_INIT;
    struct rv_app_result asks;

    job.pipeline = rv_kit_path(p->dir, "ask.yaml");
    rv_kit_write(job.pipeline, "name: ask\nagents: [{name: a, ask: {question: 'who?', options: text}}]\n");
    ck_assert_int_eq(rv_app_run(&p->app, &job, &asks, NULL), 0);
    ck_assert_int_eq(asks.status, RV_RUN_INTERRUPTED);
    snprintf(id, RV_ID_MAX, "%s", rv_envelope_fields(asks.envelope)->envelope_id);
    rv_app_result_fini(&asks);
    free((char *)job.pipeline);
    ck_assert_int_eq(rv_store_request_cancel(s, &p->app.scope, id, rv_app_now_us(), NULL), 0);
}

START_TEST(a_run_that_went_on_apart_and_waits_is_ended_as_it_was_asked)
{
    struct heard heard = {.bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER}};
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    const struct rv_engine_opts engine = {.workers = 1};
    struct work_dispatcher *d = NULL;
    char id[RV_ID_MAX];
    struct place place;
    rv_err *err = NULL;

    open_place(&place);
    rv_store *s = open_store(&place);
    const struct rv_worker_handler given = {"say", place.pipeline};
    const struct rv_worker_opts opts = {.app = &place.app, .handlers = &given, .n_handlers = 1};
    struct rv_worker w = {.opts = &opts, .app = place.app, .lease_us = 60000000, .n_max = 1};
    rv_owner_make_name(w.owner);
    w.app.log = rv_log_new(&(struct rv_log_opts){.level = RV_LOG_WARN, .line = on_warning, .line_self = &heard});
    ck_assert_int_eq(app_work_handlers_load(&w.app, &given, 1, &w.handlers, &err), 0);
    ck_assert_int_eq(rv_engine_new(&engine, &w.engine, &err), 0);
    make_asked(&place, s, id);
    enqueue(s, "apart", 0);
    ck_assert_int_eq(app_work_dispatcher_new(&w, s, ring, &bell, &d, &err), 0);
    struct work_job *j = wait_for_job(d, &bell);
    snprintf(j->run, sizeof j->run, "%s", id);
    app_work_find_end(s, j);
    sql(&place, "CREATE TABLE kept AS SELECT key, data FROM blobs; UPDATE blobs SET data = x'00'");
    app_work_dispatcher_give(d, j);
    wait_for(&heard.bell);
    struct rv_task_row row = task_of(s, "apart");
    ck_assert_int_eq(row.status, RV_TASK_COMPLETED);
    rv_task_row_fini(&row);
    ck_assert_msg(heard.was_uncancelled, "what was told of the task is logged as untold");
    sql(&place, "UPDATE blobs SET data = (SELECT k.data FROM kept k WHERE k.key = blobs.key)");
    j = wait_for_job(d, &bell); /* the task that ends it */
    ck_assert_str_eq(j->run, id);
    ck_assert(j->cancels);
    app_work_dispatcher_drain(d);
    j->end = WORK_BACK;
    app_work_dispatcher_give(d, j);
    for (give_all(d); !app_work_dispatcher_is_empty(d); give_all(d))
        wait_for(&bell);
    app_work_dispatcher_free(d);
    rv_engine_free(w.engine);
    app_work_handlers_free(w.handlers, 1);
    rv_log_free(w.app.log);
    rv_store_close(s);
    close_place(&place);
}
END_TEST

/* --- runs that were left --- */

static void add_run(rv_store *s, const char *bundle, const char *id, const char *owner)
{
    const struct rv_record first = {.seq = 1, .body = RV_STR_LIT("one")};
    const struct rv_store_new_run run = {.id = id,
                                         .user = "",
                                         .session = "",
                                         .pipeline = "say",
                                         .bundle = bundle,
                                         .status = RV_RUN_RUNNING,
                                         .stage = "a",
                                         .owner = owner,
                                         .now_us = rv_app_now_us(),
                                         .lease_until_us = rv_app_now_us() + 3600 * INT64_C(1000000),
                                         .records = &first,
                                         .n_records = 1};

    ck_assert_int_eq(rv_store_create_run(s, &run, NULL), 0);
}

/* Its bundle is not one, so that it cannot be queued, and is told. */
START_TEST(the_runs_of_a_dead_owner_are_found_behind_many_that_live)
{
    char me[RV_OWNER_MAX], id[RV_OWNER_MAX], bundle[RV_HASH_MAX];
    struct place p;
    rv_err *err = NULL;
    struct work_sweep at = {0};
    int64_t n = 0;

    open_place(&p);
    rv_store *s = open_store(&p);
    ck_assert_int_eq(rv_store_put_blob(s, RV_STR_LIT("bundle"), bundle, NULL), 0);
    ck_assert_int_eq(rv_store_begin(s, NULL), 0);
    for (int i = 0; i < 300; i++) {
        snprintf(id, sizeof id, "a%d", i);
        add_run(s, bundle, id, id);
    }
    ck_assert_int_eq(rv_store_end(s, 0, NULL), 0);
    ck_assert_int_eq(app_work_sweep(s, &at, rv_app_now_us(), &n, NULL), 0);
    rv_owner_make_name(me);
    *strrchr(me, '/') = '\0'; /* the mark */
    memcpy(strrchr(me, '/'), "/1", 3);
    add_run(s, bundle, "left", me);
    ck_assert_int_lt(app_work_sweep(s, &at, rv_app_now_us(), &n, &err), 0);
    char *why = rv_kit_err_take(err);
    ck_assert_msg(strstr(why, "left"), "%s", why);
    free(why);
    rv_store_close(s);
    close_place(&p);
}
END_TEST

/* Runs of handlers' tasks go on with their tasks, and the others cannot be queued: they stay where they are. */
START_TEST(a_run_that_was_left_has_its_turn_behind_many_that_stay)
{
    char id[RV_OWNER_MAX], bundle[RV_HASH_MAX];
    struct work_sweep at = {0};
    struct place p;
    int64_t n = 0, later_us = rv_app_now_us() + 7200 * INT64_C(1000000);
    bool found = false;

    open_place(&p);
    rv_store *s = open_store(&p);
    ck_assert_int_eq(rv_store_put_blob(s, RV_STR_LIT("bundle"), bundle, NULL), 0);
    ck_assert_int_eq(rv_store_begin(s, NULL), 0);
    for (int i = 0; i < 700; i++) {
        snprintf(id, sizeof id, "%s%d", i < 450 ? "job_" : "a", i);
        add_run(s, bundle, id, "gone");
    }
    ck_assert_int_eq(rv_store_end(s, 0, NULL), 0);
    for (int i = 0; i < 4; i++) { /* two parts, and from the beginning again */
        rv_err *err = NULL;
        ck_assert_int_lt(app_work_sweep(s, &at, later_us, &n, &err), 0);
        char *why = rv_kit_err_take(err);
        ck_assert_msg(!strstr(why, "job_"), "%s", why);
        ck_assert_msg(!!strstr(why, "\"a450\"") == (i % 2 == 0), "%d: %s", i, why);
        found = found || strstr(why, "\"a650\"");
        free(why);
    }
    ck_assert(found);
    rv_store_close(s);
    close_place(&p);
}
END_TEST

TCase *dispatcher_case(void)
{
    TCase *tc = tcase_create("dispatcher");

    tcase_add_test(tc, a_task_that_only_the_store_thinks_it_holds_is_handed_back);
    tcase_add_test(tc, a_worker_that_ends_because_it_is_idle_claims_nothing_more);
    tcase_add_test(tc, a_full_disk_delays_the_end_of_a_task_and_loses_it_not);
    tcase_add_test(tc, a_run_that_went_on_apart_and_waits_is_ended_as_it_was_asked);
    tcase_add_test(tc, the_runs_of_a_dead_owner_are_found_behind_many_that_live);
    tcase_add_test(tc, a_run_that_was_left_has_its_turn_behind_many_that_stay);
    return tc;
}
