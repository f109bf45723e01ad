/* The server stops, crashes, is away: nothing that was acknowledged is lost, nothing is done twice, and a handle works
 * again as soon as the server does. */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "tests/integration/postgres/world.h"

static const struct rv_store_opts patient = {.busy_ms = 60000}, hasty = {.busy_ms = 300};

struct writer {
    struct world *w;
    rv_store *s;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t more;  /* has written, or failed */
    bool is_over;
    int64_t n_written;
    int rc;
    char why[400];
};

static bool go_on(struct writer *o, int rc, const rv_err *err)
{
    pthread_mutex_lock(&o->lock);
    o->n_written += rc == 0;
    if (rc < 0 && o->rc == 0) {
        o->rc = rc;
        snprintf(o->why, sizeof o->why, "%s", rv_err_text(err));
    }
    bool goes_on = rc == 0 && !o->is_over;
    pthread_cond_broadcast(&o->more);
    pthread_mutex_unlock(&o->lock);
    return goes_on;
}

/* A write whose commit does not wait for the disk: a crash of the server may take it, with its count. */
static int beat(struct writer *o, int64_t n, rv_err **err)
{
    return rv_store_heartbeat(o->s, "W", T0 + n, T0 + n + 1000, NULL, err);
}

static void hold_a_task(struct world *w)
{
    const struct rv_new_task task = {.id = "held", .type = "news", .max_retries = RV_UNSET, .now_us = T0};
    const struct rv_claim_tasks claim = {
        .worker = "W", .classes = (const int64_t[]){1}, .n_classes = 1, .n = 1, .now_us = T0, .until_us = T0 + 1};
    struct rv_claimed got = {0};

    OK(rv_store_enqueue(w->s, &task, NULL, &w->err));
    OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
    ck_assert_uint_eq(got.n, 1);
    rv_claimed_fini(&got);
}

/* A record after the other, a heartbeat before each, and each third time two in a group. */
static void *write_on(void *self)
{
    struct writer *o = self;
    rv_err *err = NULL;
    int rc = 0;

    for (int64_t seq = 1; go_on(o, rc, err); seq++) {
        bool is_group = seq % 3 == 0;
        rc = beat(o, seq, &err);
        if (rc < 0)
            continue;
        do {
            rc = is_group ? rv_store_begin(o->s, &err) : 0;
            if (rc == 0) {
                rc = world_append(o->s, "r1", 1, seq, 1, &err);
                rc = is_group ? rv_store_end(o->s, rc, &err) : rc;
            }
        } while (rc < 0 && is_group && rv_store_wait_again(o->s, &err));
    }
    rv_err_free(err);
    return NULL;
}

/* It has written so many more, or failed. */
static void wait_for(struct writer *o, int64_t n)
{
    pthread_mutex_lock(&o->lock);
    for (n += o->n_written; o->rc == 0 && o->n_written < n;)
        pthread_cond_wait(&o->more, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

static void own_world(struct world *w, struct rv_kit_postgres *pg)
{
    *pg = (struct rv_kit_postgres){0};
    rv_kit_postgres_start(pg);
    world_open(w, pg);
}

START_TEST(a_writer_outlives_a_server_that_ends_and_comes_back)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGKILL};
    struct world world, *w = &world;
    struct rv_kit_postgres pg;
    struct writer o = {.w = w, .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
    pthread_t thread;

    own_world(w, &pg);
    OK(world_create(w, w->s, "r1", &w->err));
    hold_a_task(w);
    rv_store_close(w->s);
    w->s = NULL;
    OK(rv_store_open(w->url, &patient, &o.s, &w->err));
    ck_assert_int_eq(pthread_create(&thread, NULL, write_on, &o), 0);
    for (int i = 0; i < rv_kit_sample(6, 60); i++) {
        wait_for(&o, 20);
        rv_kit_postgres_stop(&pg, signals[i % (int)RV_COUNT(signals)]);
        rv_kit_postgres_restart(&pg);
    }
    wait_for(&o, 1);
    pthread_mutex_lock(&o.lock);
    o.is_over = true;
    pthread_mutex_unlock(&o.lock);
    pthread_join(thread, NULL);
    ck_assert_msg(o.rc == 0, "after %lld writes: %s", (long long)o.n_written, o.why);
    rv_store_close(o.s);
    OK(rv_store_open(w->url, &patient, &w->s, &w->err));
    ck_assert_int_eq(world_count(w, "r1"), o.n_written); /* and the first; the first turn of the loop wrote none */
    world_close(w);
    rv_kit_postgres_end(&pg);
}
END_TEST

/* A claim does not wait for the disk: after a crash of the server the task is pending, or it is held. */
START_TEST(a_claim_that_a_crash_took_is_made_again)
{
    struct world world, *w = &world;
    struct rv_kit_postgres pg;
    int n_lost = 0, n = 0;

    own_world(w, &pg);
    for (; n < 6 || (n_lost == 0 && n < 200); n++) { /* the server writes such commits five times a second */
        char id[20];
        const int64_t now_us = T0 + n * 1000;
        const struct rv_new_task task = {.id = id, .type = "news", .max_retries = RV_UNSET, .now_us = now_us};
        const struct rv_claim_tasks claim = {.worker = "W",
                                             .classes = (const int64_t[]){1},
                                             .n_classes = 1,
                                             .n = 1,
                                             .now_us = now_us,
                                             .until_us = now_us + 1000};
        struct rv_claimed got = {0};
        snprintf(id, sizeof id, "task%d", n);
        OK(rv_store_enqueue(w->s, &task, NULL, &w->err));
        OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
        ck_assert_uint_eq(got.n, 1);
        rv_kit_postgres_stop(&pg, SIGKILL);
        rv_kit_postgres_restart(&pg);
        struct rv_task_end end = {.lease = {id, "W", 1}};
        OK(rv_store_complete_tasks(w->s, &end, 1, now_us, &w->err));
        n_lost += end.is_lost;
        rv_claimed_fini(&got);
        if (!end.is_lost)
            continue;
        OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
        ck_assert_uint_eq(got.n, 1);
        ck_assert_str_eq(got.rows[0].id, id);
        OK(rv_store_complete_tasks(w->s, &end, 1, now_us, &w->err));
        ck_assert(!end.is_lost);
        rv_claimed_fini(&got);
    }
    for (int i = 0; i < n; i++) {
        struct rv_task_row row;
        char id[20];
        snprintf(id, sizeof id, "task%d", i);
        OK(rv_store_get_task(w->s, &operator_scope, id, &row, &w->err));
        ck_assert_int_eq(row.status, RV_TASK_COMPLETED);
        rv_task_row_fini(&row);
    }
    ck_assert_int_gt(n_lost, 0);
    world_close(w);
    rv_kit_postgres_end(&pg);
}
END_TEST

START_TEST(a_server_that_is_away_is_waited_for_and_no_longer)
{
    struct world world, *w = &world;
    struct rv_kit_postgres pg;
    rv_store *s = NULL, *none = NULL;
    struct rv_store_stats stats;

    own_world(w, &pg);
    OK(world_create(w, w->s, "r1", &w->err));
    OK(rv_store_open(w->url, &hasty, &s, &w->err));
    rv_kit_postgres_stop(&pg, SIGINT);
    FAILS(RV_E_TIMEOUT, "no connection to the server within 300 ms", "is the server running",
          world_append(s, "r1", 1, 1, 1, &w->err));
    FAILS(RV_E_TIMEOUT, "no connection", NULL, rv_store_read_stats(s, &stats, &w->err));
    FAILS(RV_E_UNAVAILABLE, "connection to server", "is the server running",
          rv_store_open(w->url, &hasty, &none, &w->err));
    rv_kit_postgres_restart(&pg);
    rv_store_set_wait(s, 60000);
    OK(world_append(s, "r1", 1, 1, 1, &w->err));
    OK(rv_store_read_stats(s, &stats, &w->err));
    ck_assert_int_eq(world_count(w, "r1"), 2);
    rv_store_close(s);
    world_close(w);
    rv_kit_postgres_end(&pg);
}
END_TEST

/* Two handles write one run at the same time: the second waits, and then sees what the first has done. */
START_TEST(a_lock_is_waited_for_and_no_longer)
{
    struct world world, *w = &world;
    rv_store *s = NULL;

    world_open(w, NULL);
    OK(world_create(w, w->s, "r1", &w->err));
    OK(rv_store_open(w->url, &hasty, &s, &w->err));
    OK(rv_store_begin(w->s, &w->err));
    OK(world_append(w->s, "r1", 1, 1, 1, &w->err));
    FAILS(RV_E_TIMEOUT, "lock timeout", "holds the lock", world_append(s, "r1", 1, 2, 1, &w->err));
    rv_store_set_wait(s, 100);
    FAILS(RV_E_TIMEOUT, "lock timeout", NULL, world_append(s, "r1", 1, 2, 1, &w->err));
    OK(rv_store_commit(w->s, &w->err));
    OK(world_append(s, "r1", 1, 2, 1, &w->err));
    ck_assert_int_eq(world_count(w, "r1"), 3);
    rv_store_close(s);
    world_close(w);
}
END_TEST

struct crosser {
    struct world *w;
    pthread_barrier_t *meet;
    const char *first, *second;
    int n_tries, rc;
};

/* Two runs in one group, in the order that is not the other's. */
static void *cross(void *self)
{
    struct crosser *c = self;
    rv_store *s = NULL;
    rv_err *err = NULL;

    c->rc = rv_store_open(c->w->url, &patient, &s, &err);
    do {
        if (c->rc == 0 || c->n_tries > 0)
            c->rc = rv_store_begin(s, &err);
        if (c->rc == 0)
            c->rc = rv_store_request_cancel(s, &operator_scope, c->first, T0, &err);
        if (c->n_tries++ == 0)
            pthread_barrier_wait(c->meet);
        if (c->rc == 0)
            c->rc = rv_store_request_cancel(s, &operator_scope, c->second, T0, &err);
        c->rc = rv_store_end(s, c->rc, &err);
    } while (c->rc < 0 && rv_store_wait_again(s, &err));
    rv_err_free(err);
    rv_store_close(s);
    return NULL;
}

/* 40P01: the server ends one of two that wait for each other, and that one does it again. */
START_TEST(of_two_groups_that_wait_for_each_other_one_is_repeated)
{
    struct world world, *w = &world;
    pthread_barrier_t meet;
    struct crosser crossers[] = {{w, &meet, "r1", "r2", 0, 0}, {w, &meet, "r2", "r1", 0, 0}};
    pthread_t threads[RV_COUNT(crossers)];

    world_open(w, NULL);
    OK(world_create(w, w->s, "r1", &w->err));
    OK(world_create(w, w->s, "r2", &w->err));
    ck_assert_int_eq(pthread_barrier_init(&meet, NULL, RV_COUNT(crossers)), 0);
    for (size_t i = 0; i < RV_COUNT(crossers); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, cross, &crossers[i]), 0);
    for (size_t i = 0; i < RV_COUNT(crossers); i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(crossers[i].rc == 0, "%s", rv_code_text(crossers[i].rc));
    }
    ck_assert_int_ge(crossers[0].n_tries + crossers[1].n_tries, 3); /* more if they meet again */
    pthread_barrier_destroy(&meet);
    world_close(w);
}
END_TEST

struct racer {
    struct world *w;
    int n, rc;
};

static void *race(void *self)
{
    struct racer *r = self;
    rv_store *s = NULL;
    char id[20], value[4000], hash[RV_STORE_HASH_MAX];

    r->rc = rv_store_open(r->w->url, &patient, &s, NULL);
    for (int i = 0; i < 30 && r->rc == 0; i++) {
        memset(value, 'a' + i % 26, sizeof value); /* the same in all, at about the same time */
        r->rc = rv_store_put_blob(s, (rv_str){value, sizeof value}, hash, NULL);
        snprintf(id, sizeof id, "r%d", i);
        if (r->rc == 0) {
            int rc = world_create(r->w, s, id, NULL);
            r->n += rc == 0;
            r->rc = rc == RV_E_EXISTS ? 0 : rc;
        }
        const struct rv_session_row fresh = {.id = id, .tenant = "t", .user = "u", .created_us = T0};
        if (r->rc == 0)
            r->rc = rv_store_ensure_session(s, &fresh, NULL, NULL);
    }
    rv_store_close(s);
    return NULL;
}

START_TEST(what_several_make_at_once_is_made_once)
{
    struct world world, *w = &world;
    struct racer racers[4] = {{0}};
    struct rv_store_stats stats;
    pthread_t threads[RV_COUNT(racers)];
    int n = 0;

    world_open(w, NULL);
    for (size_t i = 0; i < RV_COUNT(racers); i++) {
        racers[i].w = w;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < RV_COUNT(racers); i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(racers[i].rc == 0, "%s", rv_code_text(racers[i].rc));
        n += racers[i].n;
    }
    ck_assert_int_eq(n, 30);
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    ck_assert_int_eq(stats.runs, 30);
    ck_assert_int_eq(stats.sessions, 30);
    ck_assert_int_eq(stats.blobs, 27); /* and the bundle */
    world_close(w);
}
END_TEST

Suite *server_suite(void)
{
    Suite *suite = suite_create("server");
    TCase *tc = tcase_create("server");

    tcase_add_test(tc, a_writer_outlives_a_server_that_ends_and_comes_back);
    tcase_add_test(tc, a_claim_that_a_crash_took_is_made_again);
    tcase_add_test(tc, a_server_that_is_away_is_waited_for_and_no_longer);
    tcase_add_test(tc, a_lock_is_waited_for_and_no_longer);
    tcase_add_test(tc, of_two_groups_that_wait_for_each_other_one_is_repeated);
    tcase_add_test(tc, what_several_make_at_once_is_made_once);
    suite_add_tcase(suite, tc);
    return suite;
}
