/* Sessions in a file: one of before there were any, what a walk reads of it, damage that SQLite takes for sound, and
 * many processes at one session. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/store/sqlite/sqlite_internal.h"
#include "tests/unit/store/world.h"

/* A file as the first version of the program made it, with a run in it. */
static const char *const old_rows =
    "INSERT INTO blobs VALUES (1, x'"
    "b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78', 5, 'ABC');"
    "INSERT INTO runs (id, tenant, user, session, pipeline, bundle, parent_seq, status, stage, created_us, updated_us,"
    " expires_us, n_records, owner, fence, lease_until_us, cancel, n_pending) VALUES ('r1', 'default', 'u', 's1', 'p',"
    " 1, 0, 'running', 'a', 5, 6, 0, 2, 'A', 1, 100, 0, 0);"
    "INSERT INTO records VALUES (1, 1, 7, 'one', NULL, NULL), (1, 2, 7, 'two', 'v', NULL);";

static void write_version_one(struct world *w)
{
    world_sql(w->path, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = 0x72656576; PRAGMA user_version = 1");
    world_sql(w->path, store_sqlite_schema[0]);
    world_sql(w->path, old_rows);
}

static void make_version_one(struct world *w)
{
    world_open(w, -1);
    write_version_one(w);
}

static int turn_of(struct world *w, rv_store *s, int64_t seq, const char *id, const char *content)
{
    struct rv_message m = {
        .id = id, .type = "user", .has_content = true, .content = rv_str_of(content), .token_count = RV_UNSET};
    const struct rv_turn turn = {.session = "s1", .rows = &m, .n_rows = 1};
    const struct rv_record record = {.seq = seq, .kind = 7, .body = RV_STR_LIT("step")};
    const struct rv_store_append a = {.run = "r1",
                                      .fence = 1,
                                      .records = &record,
                                      .n_records = 1,
                                      .now_us = T0 + seq,
                                      .status = RV_RUN_RUNNING,
                                      .stage = "a",
                                      .turns = &turn,
                                      .n_turns = 1};

    return rv_store_append(s, &a, &w->err);
}

static int count_hit(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    (void)hit;
    (void)err;
    ++*(int *)self;
    return 0;
}

/* What the step of the schema leaves of a store whose sessions are older than the index of names. */
START_TEST(names_of_an_older_file_are_indexed_when_it_is_opened_for_writing)
{
    const struct rv_session_row fresh = {.id = "s1", .tenant = RV_STORE_TENANT, .user = "u", .created_us = T0};
    struct world world, *w = &world;
    int n = 0;

    world_open(w, -1);
    OK(world_store(w, w->path, &quick, &w->s));
    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
    rv_store_close(w->s);
    world_sql(w->path, "DELETE FROM keys; DELETE FROM tokens; UPDATE counters SET value = 0 WHERE name = 'keys'");
    OK(world_store(w, w->path, &(struct rv_store_opts){.read_only = true}, &w->s));
    OK(rv_store_check(w->s, &w->err));
    OK(rv_store_lookup(w->s, &operator_scope, RV_STR_LIT("chat s1"), count_hit, &n, &w->err));
    ck_assert_int_eq(n, 0);
    rv_store_close(w->s);
    OK(world_store(w, w->path, &quick, &w->s));
    OK(rv_store_lookup(w->s, &operator_scope, RV_STR_LIT("chat s1"), count_hit, &n, &w->err));
    ck_assert_int_eq(n, 1);
    rv_store_close(w->s);
    world_sql(w->path, "UPDATE keys SET entity_key = 'other'");
    OK(world_store(w, w->path, &quick, &w->s));
    FAILS(RV_E_IO, "has the key", NULL, rv_store_check(w->s, &w->err));
    OK(rv_store_rebuild_keys(w->s, NULL, &w->err));
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_file_of_version_one_comes_forward_and_takes_sessions)
{
    struct world world, *w = &world;
    struct rv_session_row row;
    struct rv_run_row run;

    make_version_one(w);
    FAILS(RV_E_VERSION, "schema version 1, this program reads version 11", "for writing",
          world_store(w, w->path, &(struct rv_store_opts){.read_only = true}, &w->s));
    OK(world_store(w, w->path, &quick, &w->s));
    OK(rv_store_check(w->s, &w->err));
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &run, &w->err));
    ck_assert_int_eq(run.n_records, 2);
    ck_assert_str_eq(run.session, "s1");
    rv_run_row_fini(&run);
    FAILS(RV_E_NOT_FOUND, "no session \"s1\"", NULL,
          rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err)); /* a run's session was only a name */
    OK(turn_of(w, w->s, 3, "m1", "hello"));
    OK(rv_store_get_session(w->s, &(struct rv_store_scope){NULL, "u"}, "s1", &row, &w->err));
    ck_assert_int_eq(row.n_messages, 1);
    rv_session_row_fini(&row);
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

static int count(void *self, const struct rv_message *m, rv_err **err)
{
    int *left = self;

    (void)m;
    (void)err;
    return --*left == 0 ? RV_STORE_ENOUGH : 0;
}

/* How many steps SQLite's machine takes to give the newest two messages. */
static int steps_of_a_walk(struct world *w, bool newest_first)
{
    const enum sql_id id = newest_first ? SQL_MESSAGES_NEWEST : SQL_MESSAGES;
    const struct rv_message_filter filter = {.newest_first = newest_first};
    const struct rv_store_scope scope = {"default", "u"};
    rv_store *s = NULL;
    int left = 2, n_steps;

    OK(rv_store_open(w->path, &quick, &s, &w->err));
    const struct sqlite *st = (const struct sqlite *)s->sql;
    OK(rv_store_read_messages(s, &scope, &(const struct rv_messages_of){"s1", &filter}, count, &left, &w->err));
    ck_assert_int_eq(left, 0);
    n_steps = sqlite3_stmt_status(st->own.stmts[id].native, SQLITE_STMTSTATUS_VM_STEP, 0);
    ck_assert_int_eq(sqlite3_stmt_status(st->own.stmts[id].native, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0), 0);
    ck_assert_int_eq(sqlite3_stmt_status(st->own.stmts[id].native, SQLITE_STMTSTATUS_SORT, 0), 0);
    rv_store_close(s);
    return n_steps;
}

START_TEST(a_walk_that_has_enough_does_not_read_the_rest)
{
    struct world world, *w = &world;
    int few, many, few_old;

    make_version_one(w);
    OK(world_store(w, w->path, &quick, &w->s));
    for (int64_t i = 0; i < 10; i++) {
        char id[20];
        snprintf(id, sizeof id, "m%lld", (long long)i);
        OK(turn_of(w, w->s, 3 + i, id, "hello"));
    }
    few = steps_of_a_walk(w, true);
    few_old = steps_of_a_walk(w, false);
    world_sql(w->path, "WITH RECURSIVE n (i) AS (SELECT 11 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
                       " INSERT INTO messages (session, seq, id, message_type, content, token_count, created_us)"
                       " SELECT 1, i, 'x' || i, 'user', hex(zeroblob(500)), 0, 7 FROM n;"
                       "UPDATE sessions SET n_messages = 5000");
    OK(rv_store_check(w->s, &w->err));
    many = steps_of_a_walk(w, true);
    ck_assert_msg(few > 0 && many == few, "%d steps for 10 messages, %d for 5000", few, many);
    ck_assert_int_eq(steps_of_a_walk(w, false), few_old);
    world_sql(w->path, "UPDATE messages SET token_count = -1 WHERE seq < 4000"); /* what it does not read, it misses */
    ck_assert_int_eq(steps_of_a_walk(w, true), few);
    world_close(w);
}
END_TEST

static const struct {
    const char *sql, *said;
} wrong[] = {
    {"DELETE FROM messages WHERE seq = 2", "session \"s1\" should have 3 messages and has 2, the last 3"},
    {"DELETE FROM messages WHERE seq = 3", "session \"s1\" should have 3 messages and has 2, the last 2"},
    {"UPDATE messages SET seq = 9 WHERE seq = 3", "should have 3 messages and has 3, the last 9"},
    {"UPDATE sessions SET n_messages = 4", "should have 4 messages and has 3"},
    {"UPDATE sessions SET total_tokens = 77", "session \"s1\" should have 77 tokens and has 3"},
    {"UPDATE messages SET token_count = 5 WHERE seq = 2", "should have 3 tokens and has 7"},
    {"UPDATE messages SET parent_call_id = 'c' WHERE seq = 2", "should have 3 tokens and has 2"},
    {"UPDATE sessions SET metadata = '[]'", "session \"s1\" has metadata that is not a JSON object"},
    {"UPDATE sessions SET metadata = '{'", "session \"s1\" has metadata that is not a JSON object"},
    {"UPDATE sessions SET created_us = -1", "session \"s1\" has an impossible number"},
    {"UPDATE messages SET tool_calls = 'x' WHERE seq = 2",
     "message 2 of session \"s1\" has tool_calls that is not a JSON object"},
    {"UPDATE messages SET tool_calls = '\"x\"' WHERE seq = 2",
     "message 2 of session \"s1\" has tool_calls that is not a JSON object"},
    {"UPDATE messages SET metadata = '{}}' WHERE seq = 1",
     "message 1 of session \"s1\" has metadata that is not a JSON"},
    {"UPDATE messages SET latency_ms = -7 WHERE seq = 3", "message 3 of session \"s1\" has an impossible number"},
    {"DELETE FROM sessions", "a row of messages refers to one of sessions that is not there"},
    {"UPDATE schemas SET document = 'forged'", "not that of its checksum: n"},
    {"UPDATE schemas SET json_schema = ''", "schema \"n\" has json_schema that is not a JSON object"},
    {"DELETE FROM counters", "the counter of schemas is missing"},
    {"INSERT INTO api_keys VALUES ('k1', 'h', 'tenant', 't', '', 'chat', '', 1, 0x7fffffffffffffff, 0, 0)",
     "API key \"k1\" has an impossible number"},
};

START_TEST(sessions_that_contradict_their_messages_are_found)
{
    const struct rv_schema_row schema = {
        .name = "n", .kind = "agent", .source = "person", .document = RV_STR_LIT("doc")};
    struct world world, *w = &world;
    rv_buf bytes;

    make_version_one(w);
    OK(world_store(w, w->path, &quick, &w->s));
    OK(turn_of(w, w->s, 3, "m1", "four"));
    OK(turn_of(w, w->s, 4, "m2", "four"));
    OK(turn_of(w, w->s, 5, "m3", "four"));
    OK(rv_store_put_schema(w->s, &schema, RV_SCHEMA_PUT, T0, NULL, &w->err));
    rv_store_close(w->s);
    bytes = world_read(w->path);
    for (size_t i = 0; i < RV_COUNT(wrong); i++) {
        world_write(w->path, rv_buf_str(&bytes));
        OK(world_store(w, w->path, &quick, &w->s));
        OK(rv_store_check(w->s, &w->err));
        world_sql(w->path, wrong[i].sql);
        FAILS(RV_E_IO, wrong[i].said, "backup", rv_store_check(w->s, &w->err));
        rv_store_close(w->s);
    }
    w->s = NULL;
    rv_buf_fini(&bytes);
    world_close(w);
}
END_TEST

/* Reading what is damaged says so, and nothing is added to it. */
START_TEST(a_damaged_session_is_an_error_and_not_a_crash)
{
    static const struct {
        const char *sql;
        int get, add;
    } rows[] = {
        {"UPDATE sessions SET n_messages = -1", RV_E_IO, RV_E_IO},
        {"UPDATE sessions SET total_tokens = 0x7fffffffffffffff", RV_E_IO, RV_E_IO},
        {"UPDATE sessions SET total_tokens = 1 << 61", 0, RV_E_LIMIT},
        {"UPDATE sessions SET metadata = '{'", 0, RV_E_IO},
        {"UPDATE sessions SET metadata = '7'", 0, RV_E_IO},
    };
    struct world world, *w = &world;
    struct rv_message m = {.id = "m9", .type = "user", .has_content = true, .token_count = 4};
    struct rv_turn turn = {.session = "s1", .rows = &m, .n_rows = 1};
    struct rv_session_row row;

    make_version_one(w);
    OK(world_store(w, w->path, &quick, &w->s));
    OK(turn_of(w, w->s, 3, "m1", "four"));
    turn.metadata = json_object_new_object();
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        world_sql(w->path, "UPDATE sessions SET n_messages = 1, total_tokens = 1, metadata = '{}'");
        world_sql(w->path, rows[i].sql);
        int rc = rv_store_get_session(w->s, &operator_scope, "s1", &row, NULL);
        ck_assert_msg(rc == rows[i].get, "row %zu: get: %d", i, rc);
        if (rc == 0)
            rv_session_row_fini(&row);
        rc = rv_store_add_messages(w->s, &operator_scope, &turn, T0, NULL);
        ck_assert_msg(rc == rows[i].add, "row %zu: add: %d", i, rc);
    }
    world_sql(w->path, "UPDATE sessions SET n_messages = 1, total_tokens = 1, metadata = '{}'");
    OK(rv_store_check(w->s, &w->err));
    json_object_put(turn.metadata);
    world_close(w);
}
END_TEST

#define N_PROCESSES 4
#define N_TURNS     25

/* One process: turns of two messages each to a session that all share. */
static void talk(const char *path, int who)
{
    const struct rv_store_opts patient = {.sync = RV_STORE_SYNC_OFF};
    rv_store *s = NULL;
    int rc = rv_store_open(path, &patient, &s, NULL);

    for (int i = 0; i < N_TURNS && rc == 0; i++) {
        char a[30], b[30];
        snprintf(a, sizeof a, "p%d-%d-a", who, i);
        snprintf(b, sizeof b, "p%d-%d-b", who, i);
        struct rv_message rows[] = {{.id = a, .type = "user", .token_count = 1},
                                    {.id = b, .type = "assistant", .token_count = 2}};
        const struct rv_turn turn = {.session = "s1", .rows = rows, .n_rows = 2};
        rc = rv_store_add_messages(s, &operator_scope, &turn, T0 + i, NULL);
    }
    rv_store_close(s);
    _exit(rc == 0 ? 0 : 1);
}

static int see_pair(void *self, const struct rv_message *m, rv_err **err)
{
    char *before = self;
    size_t len = strlen(m->id);

    (void)err;
    if (m->seq % 2 == 0) /* the two of a turn stand together */
        ck_assert_int_eq(strncmp(before, m->id, len - 1), 0);
    snprintf(before, 40, "%s", m->id);
    return 0;
}

/* Proves p8.W33 */
START_TEST(many_processes_number_one_session_without_gaps)
{
    const struct rv_session_row fresh = {.id = "s1", .tenant = "default", .user = "u", .created_us = T0};
    struct world world, *w = &world;
    pid_t pids[N_PROCESSES];
    struct rv_session_row row;
    char before[40] = "";

    world_open(w, 1);
    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
    for (int i = 0; i < N_PROCESSES; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0)
            talk(w->path, i);
    }
    for (int i = 0; i < N_PROCESSES; i++) {
        int status = -1;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    OK(rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
    ck_assert_int_eq(row.n_messages, 2 * N_PROCESSES * N_TURNS);
    ck_assert_int_eq(row.total_tokens, 3 * N_PROCESSES * N_TURNS);
    rv_session_row_fini(&row);
    OK(rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", NULL}, see_pair, before,
                              &w->err));
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

/* Steps with a turn each, for ever; says so after the first. */
static void step_until_killed(struct world *w, int to)
{
    rv_store *s = NULL;

    if (rv_store_open(w->path, &(struct rv_store_opts){.sync = RV_STORE_SYNC_NORMAL}, &s, NULL) < 0)
        _exit(1);
    for (int64_t seq = 3; rv_store_begin(s, NULL) == 0; seq += 2) { /* two steps a group, so that it can be halved */
        char a[30], b[30];
        snprintf(a, sizeof a, "m%lld", (long long)seq);
        snprintf(b, sizeof b, "m%lld", (long long)seq + 1);
        if (turn_of(w, s, seq, a, "hello") < 0 || turn_of(w, s, seq + 1, b, "hello") < 0 ||
            rv_store_commit(s, NULL) < 0)
            break;
        if (seq == 3 && write(to, "y", 1) != 1)
            break;
    }
    _exit(1);
}

/* Proves p8.W33: One transaction a turn, numbers without gaps */
START_TEST(a_killed_process_leaves_each_step_with_its_turn)
{
    struct world world, *w = &world;

    world_open(w, -1);
    for (int i = 0; i < 5; i++) {
        struct rv_session_row row = {0};
        struct rv_run_row run = {0};
        int up[2], status;
        char c = 0;
        pid_t pid;
        write_version_one(w);
        ck_assert_int_eq(pipe(up), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            step_until_killed(w, up[1]);
        close(up[1]);
        ck_assert_int_eq(read(up[0], &c, 1), 1);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        close(up[0]);
        OK(world_store(w, w->path, &quick, &w->s));
        OK(rv_store_check(w->s, &w->err));
        OK(rv_store_get_run(w->s, &operator_scope, "r1", &run, &w->err));
        OK(rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
        ck_assert_int_ge(row.n_messages, 2);
        ck_assert_int_eq(row.n_messages, run.n_records - 2);
        rv_session_row_fini(&row);
        rv_run_row_fini(&run);
        rv_store_close(w->s);
        w->s = NULL;
        unlink(w->path);
    }
    world_close(w);
}
END_TEST

START_TEST(a_backup_has_the_sessions_and_schemas)
{
    const struct rv_schema_row schema = {
        .name = "n", .kind = "agent", .source = "person", .document = RV_STR_LIT("doc")};
    struct world world, *w = &world;
    struct rv_store_stats stats;
    rv_store *copy = NULL;
    char *path;

    make_version_one(w);
    path = rv_kit_path(w->dir, "copy.db");
    OK(world_store(w, w->path, &quick, &w->s));
    OK(turn_of(w, w->s, 3, "m1", "hello"));
    OK(rv_store_put_schema(w->s, &schema, RV_SCHEMA_PUT, T0, NULL, &w->err));
    OK(rv_store_backup(w->s, path, &w->err));
    OK(world_store(w, path, &quick, &copy));
    OK(rv_store_check(copy, &w->err));
    OK(rv_store_read_stats(copy, &stats, &w->err));
    ck_assert_int_eq(stats.sessions, 1);
    ck_assert_int_eq(stats.messages, 1);
    ck_assert_int_eq(stats.schemas, 1);
    ck_assert_int_eq(stats.schema, 11);
    rv_store_close(copy);
    free(path);
    world_close(w);
}
END_TEST

Suite *sessions_suite(void)
{
    Suite *suite = suite_create("sessions");
    TCase *tc = tcase_create("sessions");

    tcase_add_test(tc, names_of_an_older_file_are_indexed_when_it_is_opened_for_writing);
    tcase_add_test(tc, a_file_of_version_one_comes_forward_and_takes_sessions);
    tcase_add_test(tc, a_walk_that_has_enough_does_not_read_the_rest);
    tcase_add_test(tc, sessions_that_contradict_their_messages_are_found);
    tcase_add_test(tc, a_damaged_session_is_an_error_and_not_a_crash);
    tcase_add_test(tc, many_processes_number_one_session_without_gaps);
    tcase_add_test(tc, a_killed_process_leaves_each_step_with_its_turn);
    tcase_add_test(tc, a_backup_has_the_sessions_and_schemas);
    suite_add_tcase(suite, tc);
    return suite;
}
