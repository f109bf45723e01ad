/* What is deleted is nowhere: the store is copied into a file, and each column of each table is looked at. */
#include <sqlite3.h>

#include "tests/contract/store/tasks.h"

#define MARK   "zebra7f3" /* in every text that was given */
#define OBJECT "{\"it\":\"" MARK "\"}"

static const struct rv_store_scope u = {NULL, "u"};

/* --- Where the mark is --- */

static void look_at(sqlite3 *db, const char *table, rv_buf *found)
{
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
    sqlite3_stmt *rows = NULL;

    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            const void *bytes = sqlite3_column_blob(rows, i);
            size_t n = (size_t)sqlite3_column_bytes(rows, i);
            if (bytes && memmem(bytes, n, MARK, strlen(MARK)))
                rv_buf_printf(found, " %s.%s", table, sqlite3_column_name(rows, i));
        }
    sqlite3_finalize(rows);
    sqlite3_free(sql);
}

static void find_marks(struct world *w, const char *file, rv_buf *found)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF, .takes_copy = true};
    const struct rv_store_copy_opts how = {.now_us = T0};
    char *path = rv_kit_path(w->dir, file);
    struct rv_store_copied copied;
    sqlite3_stmt *tables = NULL;
    rv_store *to = NULL;
    sqlite3 *db = NULL;

    OK(rv_store_open(path, &opts, &to, &w->err));
    OK(rv_store_copy(w->s, to, &how, &copied, &w->err));
    rv_store_close(to);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", -1, &tables, NULL),
        SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW)
        look_at(db, (const char *)sqlite3_column_text(tables, 0), found);
    sqlite3_finalize(tables);
    sqlite3_close(db);
    free(path);
}

static void marks_are(struct world *w, const char *file, const char *places, int line)
{
    rv_buf found = RV_BUF_INIT(1 << 16);

    find_marks(w, file, &found);
    ck_assert_msg(strcmp(rv_buf_cstr(&found), places) == 0, "line %d: %s:\n%s\nnot\n%s", line, w->impl->name,
                  rv_buf_cstr(&found), places);
    rv_buf_fini(&found);
}
#define MARKS(file, places) marks_are(w, (file), (places), __LINE__)

/* --- What there is --- */

/* Columns that a version of some other program may have filled in a file. */
static void fill_other_columns(struct world *w)
{
    sqlite3 *db = NULL;

    if (!w->impl->scheme || !w->impl->is_shared)
        return;
    ck_assert_int_eq(sqlite3_open(w->url + strlen(w->impl->scheme), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "UPDATE sessions SET tags = '[\"" MARK "\"]', graph_edges = '[\"" MARK "\"]';"
                                  "UPDATE messages SET tags = '[\"" MARK "\"]', graph_edges = '[\"" MARK "\"]';",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
}

static void add_session(struct world *w, const char *id)
{
    const struct rv_session_row fresh = {.id = id,
                                         .tenant = RV_STORE_TENANT,
                                         .user = "u",
                                         .name = MARK,
                                         .description = MARK " " MARK,
                                         .agent_name = MARK,
                                         .mode = MARK,
                                         .metadata = RV_STR_LIT(OBJECT),
                                         .created_us = T0};
    struct rv_message rows[] = {world_message("m1", "user", MARK), world_message("m2", "assistant", MARK " " MARK)};
    json_object *edges = rv_kit_json("[{'target':'" MARK "','type':'about'}]");
    struct rv_turn turn = {.session = id, .rows = rows, .n_rows = RV_COUNT(rows)};
    json_object *chunk = NULL;

    rows[0].metadata = rows[1].metadata = RV_STR_LIT(OBJECT);
    rows[1].tool_calls = RV_STR_LIT("{\"name\":\"" MARK "\",\"id\":\"c\",\"arguments\":{}}");
    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
    OK(rv_store_merge_edges(w->s, &u, &(struct rv_entity_target){"sessions", id, T0 + 1}, edges, NULL, &w->err));
    OK(rv_store_add_messages(w->s, &u, &turn, T0 + 2, &w->err));
    OK(rv_store_build_moment(w->s, &u, &(const struct rv_moment_build){id, 0, T0 + 3}, &chunk, &w->err));
    ck_assert_ptr_nonnull(chunk);
    json_object_put(chunk);
    json_object_put(edges);
}

static void add_run(struct world *w)
{
    const struct rv_webhook hook = {.url = "https://x/" MARK, .secret = MARK, .events = RV_WEBHOOK_ENDED};
    const struct rv_pending asks = {
        .id = "q", .kind = "confirmation", .stage = "a", .text = RV_STR_LIT(MARK), .body = RV_STR_LIT(OBJECT)};
    const struct rv_stream_row stream = {
        .id = "st", .run = "r", .user = "u", .session = "s", .ask = MARK, .hash = "h", .owner = "A", .created_us = T0};
    const struct rv_new_stream_part lines = {"st", "A", RV_STR_LIT(MARK "\n"), 1, T0};
    struct rv_new_task task = new_task("t");
    struct rv_record r;

    make_run(w, "r");
    struct rv_store_append a = world_append("r", 1, &r, 2, OBJECT);
    r.value = RV_STR_LIT("\"" MARK "\"");
    a.status = RV_RUN_INTERRUPTED;
    a.set_pending = true;
    a.pending = &asks;
    a.n_pending = 1;
    OK(rv_store_add_webhook(w->s, &operator_scope, "r", 0, &hook, &w->err));
    OK(rv_store_append(w->s, &a, &w->err));
    OK(rv_store_put_snapshot(w->s, "r", 1, 2, RV_STR_LIT(MARK), &w->err));
    OK(rv_store_add_stream(w->s, &stream, &w->err));
    OK(rv_store_add_stream_part(w->s, &lines, NULL, NULL, &w->err));
    task.type = "run";
    task.user = "u";
    task.key = "r";
    task.payload = RV_STR_LIT(OBJECT); /* the answer of a person */
    enqueue_as(w, &task);
    CLAIM("W", 1, 0, "t");
    OK(rv_store_complete_task(w->s, HELD("t", "W", 1), RV_STR_LIT(OBJECT), AT(1), &w->err));
}

static void sweep(struct world *w, int64_t now_us)
{
    OK(rv_store_sweep(w->s, now_us, 0, NULL, &w->err));
}

START_TEST(nothing_is_left_of_what_a_deleted_session_said)
{
    struct world world, *w = &world;

    world_open(w, _i);
    add_session(w, "s");
    add_run(w);
    fill_other_columns(w);
    rv_buf before = RV_BUF_INIT(1 << 16);
    find_marks(w, "before.db", &before);
    static const char *const places[] = {"sessions.name",    "sessions.description", "sessions.metadata",
                                         "sessions.mode",    "sessions.agent_name",  "sessions.graph_edges",
                                         "messages.content", "messages.tool_calls",  "messages.metadata",
                                         "entities.fields",  "records.body",         "records.value",
                                         "pending.text",     "interrupts.text",      "snapshots.body",
                                         "webhooks.url",     "stream_parts.body",    "streams.ask",
                                         "tasks.payload",    "tasks.result",         "keys.summary"};
    for (size_t i = 0; i < RV_COUNT(places); i++)
        ck_assert_msg(strstr(rv_buf_cstr(&before), places[i]), "%s: nothing to erase in %s: %s", w->impl->name,
                      places[i], rv_buf_cstr(&before));
    rv_buf_fini(&before);
    OK(rv_store_delete_session(w->s, &u, "s", T0 + 4, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r", NULL, T0 + 1000, &w->err));
    sweep(w, AT(2));
    MARKS("after.db", "");
    world_close(w);
}
END_TEST

/* The same of a message that was deleted, in its row and in the chunk. */
START_TEST(nothing_is_left_of_what_a_deleted_message_said)
{
    struct world world, *w = &world;
    struct rv_message rows[] = {world_message("m1", "user", MARK), world_message("m2", "user", "stays")};
    struct rv_turn turn = {.session = "s", .rows = rows, .n_rows = 1};

    world_open(w, _i);
    make_session(w, "s", "u");
    rows[0].metadata = RV_STR_LIT(OBJECT);
    OK(rv_store_add_messages(w->s, &u, &turn, T0 + 2, &w->err));
    fill_other_columns(w);
    turn.rows = &rows[1];
    OK(rv_store_add_messages(w->s, &u, &turn, T0 + 2, &w->err));
    OK(rv_store_delete_message(w->s, &u, "s", 1, T0 + 3, &w->err));
    sweep(w, T0 + 4);
    MARKS("after.db", w->impl->scheme && w->impl->is_shared ? " sessions.tags sessions.graph_edges" : "");
    world_close(w);
}
END_TEST

/* A task that waits goes on to its end, and says then that its run is gone. */
START_TEST(tasks_and_streams_go_with_their_runs)
{
    struct world world, *w = &world;
    struct rv_new_task waits = new_task("t2"), other = new_task("t3");

    world_open(w, _i);
    add_run(w);
    waits.type = other.type = "run";
    waits.key = "r";
    enqueue_as(w, &waits);
    make_run(w, "r2");
    other.key = "r2";
    enqueue_as(w, &other);
    sweep(w, AT(2));
    TASK("t", "completed 1 0/3"); /* its run is there */
    OK(rv_store_delete_run(w->s, &operator_scope, "r", NULL, T0 + 1000, &w->err));
    sweep(w, T0 - 1); /* the row of a stream is made before its run */
    struct rv_stream_row row;
    OK(rv_store_get_stream(w->s, &u, "st", &row, &w->err));
    rv_stream_row_fini(&row);
    sweep(w, AT(2));
    FAILS(RV_E_NOT_FOUND, rv_store_get_stream(w->s, &u, "st", &row, &w->err));
    LIST(&operator_scope, NULL, "t3 t2");
    world_close(w);
}
END_TEST

Suite *erasure_suite(void)
{
    Suite *suite = suite_create("erasure");
    TCase *tc = tcase_create("erasure");

    ADD(tc, nothing_is_left_of_what_a_deleted_session_said);
    ADD(tc, nothing_is_left_of_what_a_deleted_message_said);
    ADD(tc, tasks_and_streams_go_with_their_runs);
    suite_add_tcase(suite, tc);
    return suite;
}
