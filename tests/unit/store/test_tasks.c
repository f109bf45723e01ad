/* The queue in a file: which index serves each statement, damage, files of older versions, several processes' handles.
 */
#include <stdlib.h>

#include "coreengine/store/sqlite/sqlite_internal.h"
#include "tests/unit/store/world.h"

/* --- Indexes: neither what is finished nor what other tenants have may cost a claim anything --- */

#define X(name, text) [SQL_##name] = (text),
static const char *const texts[SQL_N_STATEMENTS] = {RV_SQL_TASK_STATEMENTS(X)};
#undef X

static const struct {
    enum sql_id id;
    const char *index;
} served[] = {
    {SQL_FREE_LANE, "lanes_open"},      {SQL_ANY_LANE, "lanes_open"},      {SQL_IS_OPEN, "lanes_open"},
    {SQL_MOVE_LANE, "lanes_open"},      {SQL_MOVE_LANE, "lanes_shut"},     {SQL_CLAIMABLE, "tasks_ready"},
    {SQL_DUE_TASKS, "tasks_waiting"},   {SQL_NEXT_TASKS, "tasks_waiting"}, {SQL_NEXT_TASKS, "tasks_by_lease"},
    {SQL_STALE_TASK, "tasks_by_lease"}, {SQL_HELD, "tasks_by_worker"},     {SQL_HEARTBEAT, "tasks_by_worker"},
    {SQL_FIND_KEY, "tasks_by_key"},     {SQL_SAME_KEY, "tasks_by_key"},    {SQL_PRUNE_TASKS, "tasks_over"},
};

/* The plan, one line a step. */
static void plan_of(sqlite3 *db, const char *text, rv_buf *out)
{
    rv_buf sql = RV_BUF_INIT(10000);
    sqlite3_stmt *stmt = NULL;

    rv_buf_printf(&sql, "EXPLAIN QUERY PLAN %s", text);
    ck_assert_msg(sqlite3_prepare_v2(db, rv_buf_cstr(&sql), -1, &stmt, NULL) == SQLITE_OK, "%s: %s", text,
                  sqlite3_errmsg(db));
    while (sqlite3_step(stmt) == SQLITE_ROW)
        rv_buf_printf(out, "%s\n", (const char *)sqlite3_column_text(stmt, 3));
    sqlite3_finalize(stmt);
    rv_buf_fini(&sql);
}

/* No table is read from end to end, and nothing is sorted. */
static void must_be_served(const char *text, const char *plan)
{
    for (const char *line = plan; *line; line = strchr(line, '\n') + 1) {
        bool is_small = strncmp(line, "SCAN classes", 12) == 0 || strncmp(line, "SCAN CONSTANT", 13) == 0;
        ck_assert_msg(strncmp(line, "SCAN", 4) != 0 || is_small || strstr(plan, "USING COVERING INDEX"), "%s\n%s", text,
                      plan);
        ck_assert_msg(strncmp(line, "USE TEMP B-TREE FOR ORDER BY", 28) != 0, "%s\n%s", text, plan);
    }
}

static sqlite3 *open_raw(struct world *w)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(w->path, &db), SQLITE_OK);
    return db;
}

START_TEST(each_statement_of_the_queue_is_served_by_an_index)
{
    struct world world, *w = &world;
    sqlite3 *db;

    world_open(w, 1);
    db = open_raw(w);
    for (size_t i = 0; i < SQL_N_STATEMENTS; i++) {
        rv_buf plan = RV_BUF_INIT(10000);
        if (!texts[i])
            continue;
        plan_of(db, texts[i], &plan);
        must_be_served(texts[i], rv_buf_cstr(&plan));
        for (size_t j = 0; j < RV_COUNT(served); j++)
            if (served[j].id == (enum sql_id)i)
                ck_assert_msg(strstr(rv_buf_cstr(&plan), served[j].index), "%s: not %s:\n%s", texts[i], served[j].index,
                              rv_buf_cstr(&plan));
        rv_buf_fini(&plan);
    }
    sqlite3_close(db);
    world_close(w);
}
END_TEST

static int keep_text(unsigned event, void *self, void *stmt, void *text)
{
    (void)event;
    (void)text;
    rv_buf_truncate(self, 0);
    rv_buf_puts(self, sqlite3_sql(stmt));
    return 0;
}

static int see_nothing(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)self;
    (void)row;
    (void)err;
    return 0;
}

START_TEST(each_list_of_tasks_is_served_by_an_index)
{
    static const struct {
        struct rv_task_filter filter;
        const char *index;
    } lists[] = {
        {{.limit = 5}, "tasks_by_age"},
        {{.oldest_first = true}, "tasks_by_age"},
        {{.type = "news", .statuses = 1u << RV_TASK_PENDING | 1u << RV_TASK_WAITING}, "tasks_by_age"},
        {{.statuses = 1u << RV_TASK_FAILED}, "tasks_failed"}, /* dead letters */
    };
    const struct rv_store_scope scopes[] = {{NULL, NULL}, {"x", "u"}};
    rv_buf text = RV_BUF_INIT(10000);
    struct world world, *w = &world;
    rv_store *s = NULL;
    sqlite3 *db;

    world_open(w, 1);
    db = open_raw(w);
    OK(world_store(w, w->path, &quick, &s));
    for (size_t i = 0; i < RV_COUNT(lists) * 2; i++) {
        rv_buf plan = RV_BUF_INIT(10000);
        sqlite3_trace_v2(((struct sqlite *)s->sql)->link->db, SQLITE_TRACE_STMT, keep_text, &text);
        OK(rv_store_list_tasks(s, &scopes[i % 2], &lists[i / 2].filter, see_nothing, NULL, &w->err));
        sqlite3_trace_v2(((struct sqlite *)s->sql)->link->db, 0, NULL, NULL);
        plan_of(db, rv_buf_cstr(&text), &plan);
        must_be_served(rv_buf_cstr(&text), rv_buf_cstr(&plan));
        ck_assert_msg(strstr(rv_buf_cstr(&plan), lists[i / 2].index), "%s\n%s", rv_buf_cstr(&text), rv_buf_cstr(&plan));
        rv_buf_fini(&plan);
    }
    rv_buf_fini(&text);
    rv_store_close(s);
    sqlite3_close(db);
    world_close(w);
}
END_TEST

/* --- Damage --- */

static const int64_t one[] = {1};

static int claim(struct world *w, rv_store *s, const char *worker, size_t n, struct rv_claimed *out)
{
    const struct rv_claim_tasks want = {
        .worker = worker, .classes = one, .n_classes = 1, .n = n, .now_us = T0, .until_us = T0 + 1000};

    return rv_store_claim_tasks(s, &want, out, &w->err);
}

/* A store with tasks a (processing), b (pending), c (waiting), d (failed). */
static void fill(struct world *w)
{
    struct rv_claimed got = {0};

    world_open(w, 2);
    for (const char *const *id = (const char *const[]){"a", "d", "b", "c", NULL}; *id; id++) {
        struct rv_new_task task = {.id = *id, .type = "news", .now_us = T0, .max_retries = RV_UNSET};
        task.scheduled_us = **id == 'c' ? T0 + 9 : 0;
        OK(rv_store_enqueue(w->s, &task, NULL, &w->err));
    }
    OK(claim(w, w->s, "W", 2, &got));
    rv_claimed_fini(&got);
    OK(rv_store_fail_task(w->s, &(struct rv_task_lease){"d", "W", 1},
                          &(struct rv_task_failure){.error = "x", .is_final = true, .now_us = T0}, NULL, &w->err));
    OK(rv_store_check(w->s, &w->err));
}

static const struct {
    const char *sql, *said;
    int use; /* what working with task a and with lists says then */
} wrong[] = {
    {"UPDATE lanes SET n_pending = 2", "counts 2 pending and 1 processing tasks and has 1 and 1", 0},
    {"UPDATE lanes SET n_processing = 0", "counts 1 pending and 0 processing tasks and has 1 and 1", 0},
    {"UPDATE lanes SET weight = 0", "has an impossible number", RV_E_IO},
    {"UPDATE lanes SET tenant = 'x'", "is in the lane of tenant \"x\"", 0},
    {"DELETE FROM task_events WHERE seq = 2", "task \"d\" should have 2 events and has 1, the last 1", 0},
    {"UPDATE tasks SET status = 'dancing' WHERE id = 'a'", "task \"a\" has a status that cannot be", RV_E_IO},
    {"UPDATE tasks SET worker = NULL WHERE id = 'a'", "task \"a\" is processing and has a worker", RV_E_STATE},
    {"UPDATE tasks SET completed_us = 0 WHERE id = 'd'", "task \"d\" is failed and has", 0},
    {"UPDATE tasks SET retry_count = -1 WHERE id = 'a'", "task \"a\" is processing and has", RV_E_IO},
    {"UPDATE tasks SET payload = '[1]' WHERE id = 'c'", "task \"c\" has payload that is not a JSON object", 0},
    {"UPDATE tasks SET lane = 77 WHERE id = 'c'", "refers to one of lanes that is not there", 0},
};

static int use(struct world *w)
{
    const struct rv_task_lease lease = {"a", "W", 1};
    struct rv_claimed got = {0};
    int rc = rv_store_complete_task(w->s, &lease, RV_STR_LIT("{}"), T0, &w->err);

    if (rc == 0)
        rc = rv_store_list_tasks(w->s, &operator_scope, NULL, see_nothing, NULL, &w->err);
    if (rc == 0)
        rc = claim(w, w->s, "W", 9, &got);
    rv_claimed_fini(&got);
    rv_err_free(w->err);
    w->err = NULL;
    return rc;
}

START_TEST(tasks_that_contradict_each_other_are_found)
{
    struct world world, *w = &world;

    for (size_t i = 0; i < RV_COUNT(wrong); i++) {
        int rc;
        fill(w);
        world_sql(w->path, wrong[i].sql);
        FAILS(RV_E_IO, wrong[i].said, "backup", rv_store_check(w->s, &w->err));
        rc = use(w);
        ck_assert_msg(rc == wrong[i].use, "%s: %s", wrong[i].sql, rv_code_text(rc));
        world_close(w);
    }
}
END_TEST

START_TEST(a_lane_that_counts_wrong_does_not_stop_the_others)
{
    struct world world, *w = &world;
    struct rv_claimed got = {0};

    fill(w);
    world_sql(w->path, "INSERT INTO lanes (tenant, class, vt, weight, cap, n_pending, n_processing)"
                       " VALUES ('x', 1, 0, 1, 9, 5, 0)");
    for (int i = 0; i < 5 && got.n == 0; i++) {
        rv_claimed_fini(&got);
        OK(claim(w, w->s, "V", 1, &got));
    }
    ck_assert_uint_eq(got.n, 1);
    ck_assert_str_eq(got.rows[0].id, "b");
    rv_claimed_fini(&got);
    world_close(w);
}
END_TEST

/* --- Older files --- */

START_TEST(a_file_of_version_3_gets_the_queue_and_keeps_its_data)
{
    struct sqlite st = {.base = {.driver = &sqlite_driver}, .link = &st.own, .busy_ms = 50};
    struct rv_new_task task = {.id = "t", .type = "news", .now_us = T0, .max_retries = RV_UNSET};
    struct world world, *w = &world;
    struct rv_store_stats stats;
    struct rv_run_row row;

    world_open(w, -1);
    st.base.path = w->path;
    ck_assert_int_eq(sqlite3_open(w->path, &st.own.db), SQLITE_OK);
    OK(sqlite_bring_forward(&st, NULL, store_sqlite_schema, 3, &w->err)); /* as that version of the program did */
    sqlite_disconnect(&st.own);
    world_sql(w->path,
              "INSERT INTO blobs VALUES (1, X'1e6ed65d77d6364eeaed5a745ba5c4985ae2b700dd85d7cf7f027bdf294a33fc', 5, "
              "CAST('bundle' AS BLOB));"
              "INSERT INTO runs VALUES (1, 'old', 'default', 'u', 's', 'p', 1, NULL, 0, 'completed', 'z', 5, 6, 0, 1,"
              " NULL, 3, 0, 0, 0); INSERT INTO records VALUES (1, 1, 7, 'one', 'value', NULL)");
    OK(world_store(w, w->path, &quick, &w->s));
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    ck_assert_int_eq(stats.schema, RV_SQLITE_SCHEMA);
    ck_assert_int_eq(stats.records, 1);
    ck_assert_int_eq(stats.tasks, 0);
    OK(rv_store_get_run(w->s, &operator_scope, "old", &row, &w->err));
    ck_assert_int_eq(row.fence, 3);
    rv_run_row_fini(&row);
    OK(rv_store_enqueue(w->s, &task, NULL, &w->err));
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

/* --- Two handles --- */

START_TEST(two_handles_never_claim_the_same_task)
{
    struct world world, *w = &world;
    rv_store *other = NULL;
    int n_seen[40] = {0};

    world_open(w, 1);
    OK(world_store(w, w->path, &quick, &other));
    for (int i = 0; i < 40; i++) {
        char id[20];
        snprintf(id, sizeof id, "%d", i);
        OK(rv_store_enqueue(w->s, &(struct rv_new_task){.id = id, .type = "x", .now_us = T0}, NULL, &w->err));
    }
    for (int i = 0; i < 20; i++) {
        struct rv_claimed got = {0};
        OK(claim(w, i % 2 ? other : w->s, i % 2 ? "B" : "A", 3, &got));
        for (size_t j = 0; j < got.n; j++)
            ck_assert_int_eq(n_seen[strtol(got.rows[j].id, NULL, 10)]++, 0);
        rv_claimed_fini(&got);
    }
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(n_seen[i], 1);
    rv_store_close(other);
    world_close(w);
}
END_TEST

Suite *tasks_suite(void)
{
    Suite *suite = suite_create("tasks");
    TCase *tc = tcase_create("tasks");

    tcase_add_test(tc, each_statement_of_the_queue_is_served_by_an_index);
    tcase_add_test(tc, each_list_of_tasks_is_served_by_an_index);
    tcase_add_test(tc, tasks_that_contradict_each_other_are_found);
    tcase_add_test(tc, a_lane_that_counts_wrong_does_not_stop_the_others);
    tcase_add_test(tc, a_file_of_version_3_gets_the_queue_and_keeps_its_data);
    tcase_add_test(tc, two_handles_never_claim_the_same_task);
    suite_add_tcase(suite, tc);
    return suite;
}
