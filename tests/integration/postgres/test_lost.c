/* The connection breaks before each message of each kind of write: the write is done once, whatever was lost. */
#include "tests/integration/postgres/lost.h"

static const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF, .busy_ms = 20000};

void name_of(char name[20], const char *kind, int n)
{
    snprintf(name, 20, "%s%d", kind, n);
}

/* --- Each kind of write: made ready past the proxy, done by it, checked past it --- */

void no_more(struct scene *sc)
{
    (void)sc;
}

static void make_runs(struct scene *sc)
{
    struct world *w = &sc->world;
    char name[20];

    for (int i = 0; i < 2; i++) {
        name_of(name, i ? "other" : "run", sc->n);
        OK(world_create(w, w->s, name, &w->err));
    }
}

static int do_step(struct scene *sc, rv_err **err)
{
    char name[20];

    name_of(name, "run", sc->n);
    return world_append(sc->s, name, 1, 1, 3, err);
}

static void check_step(struct scene *sc)
{
    char name[20];

    name_of(name, "run", sc->n);
    ck_assert_int_eq(world_count(&sc->world, name), 4);
}

/* As the thread of the store does it. */
static int do_group(struct scene *sc, rv_err **err)
{
    char one[20], two[20];
    int rc;

    name_of(one, "run", sc->n);
    name_of(two, "other", sc->n);
    do {
        rc = rv_store_begin(sc->s, err);
        if (rc < 0)
            continue;
        rc = world_append(sc->s, one, 1, 1, 2, err);
        if (rc == 0)
            rc = world_append(sc->s, two, 1, 1, 1, err);
        if (rc == 0)
            rc = world_append(sc->s, one, 1, 3, 1, err);
        rc = rv_store_end(sc->s, rc, err);
    } while (rc < 0 && rv_store_wait_again(sc->s, err));
    return rc;
}

static void check_group(struct scene *sc)
{
    char name[20];

    check_step(sc);
    name_of(name, "other", sc->n);
    ck_assert_int_eq(world_count(&sc->world, name), 2);
}

static int do_create(struct scene *sc, rv_err **err)
{
    char name[20];

    name_of(name, "run", sc->n);
    return world_create(&sc->world, sc->s, name, err);
}

static void check_create(struct scene *sc)
{
    char name[20];

    name_of(name, "run", sc->n);
    ck_assert_int_eq(world_count(&sc->world, name), 1);
}

static int do_claim(struct scene *sc, rv_err **err)
{
    const struct rv_store_claim claim = {"B", "A", T0, T0 + 200};
    int64_t fence = 0;
    char name[20];

    name_of(name, "run", sc->n);
    int rc = rv_store_claim(sc->s, &operator_scope, name, &claim, &fence, err);
    ck_assert(rc < 0 || fence == 2);
    return rc;
}

static void check_claim(struct scene *sc)
{
    struct world *w = &sc->world;
    struct rv_run_row row = {0};
    char name[20];

    name_of(name, "run", sc->n);
    OK(rv_store_get_run(w->s, &operator_scope, name, &row, &w->err));
    ck_assert_int_eq(row.fence, 2);
    ck_assert_str_eq(row.owner, "B");
    rv_run_row_fini(&row);
}

int do_session(struct scene *sc, rv_err **err)
{
    char name[20];
    struct rv_message rows[2];
    struct rv_turn turn = {.session = name, .rows = rows, .n_rows = 2};

    name_of(name, "session", sc->n);
    for (int i = 0; i < 2; i++) {
        rows[i] = (struct rv_message){.id = i ? "m2" : "m1",
                                      .type = "user",
                                      .has_content = true,
                                      .content = RV_STR_LIT("hello"),
                                      .token_count = 5};
    }
    return rv_store_add_messages(sc->s, &operator_scope, &turn, T0, err);
}

void make_session(struct scene *sc)
{
    struct world *w = &sc->world;
    char name[20];
    const struct rv_session_row fresh = {.id = name, .tenant = RV_STORE_TENANT, .user = "u", .created_us = T0};

    name_of(name, "session", sc->n);
    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
}

static void check_session(struct scene *sc)
{
    struct world *w = &sc->world;
    struct rv_session_row row = {0};
    char name[20];

    name_of(name, "session", sc->n);
    OK(rv_store_get_session(w->s, &operator_scope, name, &row, &w->err));
    ck_assert_int_eq(row.n_messages, 2);
    ck_assert_int_eq(row.total_tokens, 10);
    rv_session_row_fini(&row);
}

/* Each change is counted: one that was done twice would show. */
static int do_schema(struct scene *sc, rv_err **err)
{
    char name[20];
    const struct rv_schema_row row = {.name = name, .kind = "agent", .source = "person", .content = RV_STR_LIT("c")};
    bool changed = false;

    name_of(name, "schema", sc->n);
    int rc = rv_store_put_schema(sc->s, &row, RV_SCHEMA_PUT, T0, &changed, err);
    ck_assert(rc < 0 || changed);
    return rc;
}

static void check_schema(struct scene *sc)
{
    struct world *w = &sc->world;
    int64_t version = 0;

    OK(rv_store_read_schemas_version(w->s, &version, &w->err));
    ck_assert_int_eq(version, sc->n);
}

static int count_event(void *self, const struct rv_task_event *e, rv_err **err)
{
    (void)err;
    ck_assert_int_eq(e->seq, ++*(int64_t *)self);
    return 0;
}

static int claim_group(rv_store *s, const char *worker, struct rv_claimed *got, rv_err **err)
{
    const struct rv_claim_tasks claim = {
        .worker = worker, .classes = (const int64_t[]){1}, .n_classes = 1, .n = 9, .now_us = T0, .until_us = T0 + 1000};

    return rv_store_claim_tasks(s, &claim, got, err);
}

/* --- The queue: three tasks of each round, "task<n>.0" and so on --- */

enum { N_TASKS = 3 };

static void task_name(char name[30], int n, int i)
{
    snprintf(name, 30, "task%d.%d", n, i);
}

static int enqueue_group(rv_store *s, int n, rv_err **err)
{
    char name[30];
    int rc;

    do {
        rc = rv_store_begin(s, err);
        for (int i = 0; i < N_TASKS && rc == 0; i++) {
            const struct rv_new_task task = {.id = name, .type = "news", .max_retries = RV_UNSET, .now_us = T0};
            task_name(name, n, i);
            rc = rv_store_enqueue(s, &task, NULL, err);
        }
        rc = rv_store_end(s, rc, err);
    } while (rc < 0 && rv_store_wait_again(s, err));
    return rc;
}

static int do_enqueue(struct scene *sc, rv_err **err)
{
    return enqueue_group(sc->s, sc->n, err);
}

static void tasks_are(struct scene *sc, enum rv_task_status status, int64_t n_events)
{
    struct world *w = &sc->world;

    for (int i = 0; i < N_TASKS; i++) {
        struct rv_task_row row;
        int64_t n = 0;
        char name[30];
        task_name(name, sc->n, i);
        OK(rv_store_get_task(w->s, &operator_scope, name, &row, &w->err));
        ck_assert_str_eq(rv_task_status_text(row.status), rv_task_status_text(status));
        ck_assert_int_eq(row.attempt, status != RV_TASK_PENDING);
        rv_task_row_fini(&row);
        OK(rv_store_list_task_events(w->s, &operator_scope, name, count_event, &n, &w->err));
        ck_assert_int_eq(n, n_events);
    }
}

/* Those that a check is done with are not claimed by the next round. */
static void finish(struct scene *sc)
{
    struct world *w = &sc->world;
    struct rv_claimed got = {0};

    OK(claim_group(w->s, "X", &got, &w->err));
    rv_claimed_fini(&got);
}

static void check_enqueued(struct scene *sc)
{
    tasks_are(sc, RV_TASK_PENDING, 0);
    finish(sc);
}

static void make_tasks(struct scene *sc)
{
    struct world *w = &sc->world;

    OK(enqueue_group(w->s, sc->n, &w->err));
}

static int do_claim_tasks(struct scene *sc, rv_err **err)
{
    struct rv_claimed got = {0};
    int rc = claim_group(sc->s, "W", &got, err);

    ck_assert_uint_eq(got.n, rc == 0 ? N_TASKS : 0);
    rv_claimed_fini(&got);
    return rc;
}

static void check_claimed(struct scene *sc)
{
    tasks_are(sc, RV_TASK_PROCESSING, 1);
}

static void make_held(struct scene *sc)
{
    struct world *w = &sc->world;
    struct rv_claimed got = {0};

    make_tasks(sc);
    OK(claim_group(w->s, "W", &got, &w->err));
    ck_assert_uint_eq(got.n, N_TASKS);
    rv_claimed_fini(&got);
}

static int do_complete(struct scene *sc, rv_err **err)
{
    struct rv_task_end ends[N_TASKS];
    char names[N_TASKS][30];

    for (int i = 0; i < N_TASKS; i++) {
        task_name(names[i], sc->n, i);
        ends[i] = (struct rv_task_end){{names[i], "W", 1}, RV_STR_LIT("{}"), false};
    }
    int rc = rv_store_complete_tasks(sc->s, ends, N_TASKS, T0 + 1, err);
    for (int i = 0; i < N_TASKS && rc == 0; i++)
        ck_assert_msg(!ends[i].is_lost, "task %d was completed before", i);
    return rc;
}

static void check_completed(struct scene *sc)
{
    tasks_are(sc, RV_TASK_COMPLETED, 2);
}

static int do_cancel(struct scene *sc, rv_err **err)
{
    char name[30];
    int rc = 0;

    for (int i = 0; i < N_TASKS && rc == 0; i++) {
        task_name(name, sc->n, i);
        rc = rv_store_cancel_task(sc->s, &operator_scope, name, T0 + 1, NULL, err);
    }
    return rc;
}

static void check_cancelled(struct scene *sc)
{
    tasks_are(sc, RV_TASK_PROCESSING, 2); /* claimed, and asked once */
}

static const struct kind kinds[] = {
    {"a step", make_runs, do_step, check_step},
    {"a group", make_runs, do_group, check_group},
    {"a new run", no_more, do_create, check_create},
    {"a claim", make_runs, do_claim, check_claim},
    {"a turn", make_session, do_session, check_session},
    {"a schema", no_more, do_schema, check_schema},
    {"new tasks", no_more, do_enqueue, check_enqueued},
    {"a claim of tasks", make_tasks, do_claim_tasks, check_claimed},
    {"tasks done", make_held, do_complete, check_completed},
    {"tasks to be cancelled", make_held, do_cancel, check_cancelled},
};

/* The write with a connection that breaks before message `at`. Returns how many messages it took. */
static int once(struct scene *sc, const struct kind *kind, int at, enum proxy_cut how, bool *was_cut)
{
    struct world *w = &sc->world;

    sc->n++;
    kind->make(sc);
    proxy_arm(sc->proxy, at, how);
    int rc = kind->write(sc, &w->err);
    int n = proxy_count(sc->proxy, was_cut);
    proxy_arm(sc->proxy, -1, how);
    ck_assert_msg(rc == 0, "%s, cut before message %d (%s): %s", kind->name, at,
                  how == PROXY_LATE   ? "late"
                  : how == PROXY_TOLD ? "told"
                                      : "both",
                  w->err ? rv_kit_err_take(w->err) : "");
    kind->check(sc);
    return n;
}

static void cut_everywhere(const struct kind *kind, int first, enum proxy_cut how)
{
    struct scene sc = {0};
    bool was_cut = true;
    int n_cuts = 0, stride = getenv("REEVE_SOAK") ? 1 : (how == PROXY_TOLD ? 11 : 5) * (int)rv_kit_stride(3);

    world_open(&sc.world, NULL);
    sc.proxy = proxy_new(sc.world.server->socket);
    sc.s = world_by(&sc.world, proxy_folder(sc.proxy), &opts);
    for (int i = 0; i < 2; i++) /* what is prepared at first use is there afterwards */
        once(&sc, kind, -1, how, NULL);
    int n = once(&sc, kind, -1, how, NULL);
    for (int at = first % stride; was_cut; at += stride) {
        once(&sc, kind, at, how, &was_cut);
        n_cuts += was_cut;
    }
    ck_assert_msg(n_cuts >= n / stride, "%s: %d cuts of %d messages", kind->name, n_cuts, n);
    rv_store_close(sc.s);
    proxy_free(sc.proxy);
    world_close(&sc.world);
}

START_TEST(a_write_is_done_once_whatever_message_is_lost)
{
    cut_everywhere(&kinds[_i], _i, PROXY_BOTH);
}
END_TEST

/* How it broke is the business of the store; these are repeated by the same loop however it did. */
START_TEST(a_group_of_the_application_is_done_once)
{
    cut_everywhere(&app_kinds[_i], _i, PROXY_BOTH);
}
END_TEST

START_TEST(a_write_is_done_once_even_if_its_messages_come_late)
{
    cut_everywhere(&kinds[_i], _i, PROXY_LATE);
}
END_TEST

/* A server that ends a connection has said so in place of an answer: 25P03, 57P01, 57P05. */
START_TEST(a_write_is_done_once_when_the_server_ends_the_connection)
{
    cut_everywhere(&kinds[_i], _i, PROXY_TOLD);
}
END_TEST

static int count_record(void *self, const struct rv_record *r, rv_err **err)
{
    (void)err;
    ck_assert_int_eq(r->seq, ++*(int64_t *)self);
    return 0;
}

/* All records, or a failure; never a record twice. */
START_TEST(a_read_that_is_cut_gives_no_record_twice)
{
    struct scene sc = {0};
    struct world *w = &sc.world;
    bool was_cut = true;
    int n_whole = 0, n_failed = 0;

    world_open(w, NULL);
    sc.proxy = proxy_new(w->server->socket);
    sc.s = world_by(w, proxy_folder(sc.proxy), &opts);
    OK(world_create(w, w->s, "long", &w->err));
    for (int64_t seq = 1; seq < 400; seq += 7)
        OK(world_append(w->s, "long", 1, seq, 7, &w->err));
    for (int at = 0; was_cut; at += 1 + at / 60 * 20) {
        int64_t n = 0;
        proxy_arm(sc.proxy, at, PROXY_BOTH);
        int rc = rv_store_read(sc.s, &operator_scope, &(struct rv_record_range){.run = "long", .from = 1}, count_record,
                               &n, &w->err);
        proxy_count(sc.proxy, &was_cut);
        n_whole += rc == 0;
        n_failed += rc < 0;
        ck_assert_msg(rc == RV_E_IO || (rc == 0 && n == 400), "cut before message %d: %lld records, %s", at,
                      (long long)n, rv_code_text(rc));
        rv_err_free(w->err);
        w->err = NULL;
    }
    ck_assert_int_gt(n_whole, 5);
    ck_assert_int_gt(n_failed, 2);
    rv_store_close(sc.s);
    proxy_free(sc.proxy);
    world_close(w);
}
END_TEST

/* A sweep takes a row of a handle that was silent for a day; the handle goes on with another. */
START_TEST(a_handle_whose_row_was_swept_goes_on)
{
    struct world world, *w = &world;

    world_open(w, NULL);
    OK(world_create(w, w->s, "r1", &w->err));
    rv_buf sql = RV_BUF_INIT(200);
    rv_buf_printf(&sql, "DELETE FROM %s.handles", strstr(w->url, "schema=") + 7);
    free(rv_kit_postgres_sql(w->server, rv_buf_cstr(&sql)));
    rv_buf_fini(&sql);
    OK(world_append(w->s, "r1", 1, 1, 2, &w->err));
    ck_assert_int_eq(world_count(w, "r1"), 3);
    world_close(w);
}
END_TEST

/* --- What they cost --- */

static int step_of(struct scene *sc, int64_t seq)
{
    struct world *w = &sc->world;
    char value[700];
    struct rv_record records[] = {{.seq = seq + 1, .kind = 1, .body = {value, 600}},
                                  {.seq = seq + 2, .kind = 2, .body = {value, 200}},
                                  {.seq = seq + 3, .kind = 2, .body = {value, 200}}};
    const struct rv_store_append a = {.run = "r",
                                      .fence = 1,
                                      .records = records,
                                      .n_records = RV_COUNT(records),
                                      .now_us = T0 + seq,
                                      .status = RV_RUN_RUNNING,
                                      .stage = "a"};

    memset(value, 'v', sizeof value);
    return rv_store_append(sc->s, &a, &w->err);
}

START_TEST(a_step_is_one_round_trip_beside_its_commit)
{
    enum { GROUP = 10 };
    struct scene sc = {0};
    struct world *w = &sc.world;
    int64_t seq = 1;

    world_open(w, NULL);
    sc.proxy = proxy_new(w->server->socket);
    sc.s = world_by(w, proxy_folder(sc.proxy), &opts);
    OK(world_create(w, w->s, "r", &w->err));
    for (; seq < 7; seq += 3) /* what is prepared at first use is there afterwards */
        OK(step_of(&sc, seq));
    proxy_arm(sc.proxy, -1, PROXY_BOTH);
    OK(step_of(&sc, seq));
    struct proxy_traffic one = proxy_traffic(sc.proxy);
    proxy_arm(sc.proxy, -1, PROXY_BOTH);
    OK(rv_store_begin(sc.s, &w->err));
    for (int i = 0; i < GROUP; i++)
        OK(step_of(&sc, seq += 3));
    OK(rv_store_commit(sc.s, &w->err));
    struct proxy_traffic many = proxy_traffic(sc.proxy);
    printf("a step: %d round trips, %zu bytes up, %zu down; in a group of %d: %d, %zu, %zu\n", one.n_trips, one.up,
           one.down, GROUP, many.n_trips, many.up / GROUP, many.down / GROUP);
    ck_assert_int_eq(one.n_trips, 2);
    ck_assert_int_eq(many.n_trips, GROUP + 1);
    ck_assert_uint_lt(one.up, 2600); /* of which 1,000 are the records */
    ck_assert_uint_lt(many.up / GROUP, 2300);
    rv_store_close(sc.s);
    proxy_free(sc.proxy);
    world_close(w);
}
END_TEST

Suite *lost_suite(void)
{
    Suite *suite = suite_create("lost");
    TCase *tc = tcase_create("lost");

    tcase_add_loop_test(tc, a_write_is_done_once_whatever_message_is_lost, 0, (int)RV_COUNT(kinds));
    tcase_add_loop_test(tc, a_group_of_the_application_is_done_once, 0, N_APP_KINDS);
    tcase_add_loop_test(tc, a_write_is_done_once_even_if_its_messages_come_late, 0, (int)RV_COUNT(kinds));
    tcase_add_loop_test(tc, a_write_is_done_once_when_the_server_ends_the_connection, 0, (int)RV_COUNT(kinds));
    tcase_add_test(tc, a_read_that_is_cut_gives_no_record_twice);
    tcase_add_test(tc, a_step_is_one_round_trip_beside_its_commit);
    tcase_add_test(tc, a_handle_whose_row_was_swept_goes_on);
    suite_add_tcase(suite, tc);
    return suite;
}
