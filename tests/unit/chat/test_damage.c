/* A store with damaged bytes: what is left out is in the log. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/chat/world.h"

#define SESSION "5a0f7c1e-0000-4000-8000-000000000001"

static void on_line(void *self, enum rv_log_level level, rv_str line)
{
    rv_buf *b = self;

    if (level == RV_LOG_ERROR)
        rv_buf_printf(b, "%.*s\n", RV_STR_ARG(line));
}

static void damage(const char *place, const char *metadata)
{
    sqlite3 *db = NULL;
    char *sql = sqlite3_mprintf("UPDATE sessions SET metadata = CAST(%Q AS BLOB)", metadata);

    ck_assert_int_eq(sqlite3_open(place, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 60000);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    sqlite3_free(sql);
}

START_TEST(a_session_goes_on_without_damaged_metadata_and_the_log_says_so)
{
    static const char *const broken[] = {"{\"routing\":", "[1]"};
    const char *files[] = {"calm.yaml", "type: object\nname: calm\ndescription: You answer.\n", NULL};
    rv_buf lines = RV_BUF_INIT((size_t)1 << 20);
    char *dir = rv_kit_tmpdir(), *place = rv_kit_path(dir, "chat.db");
    rv_log *log = rv_log_new(&(struct rv_log_opts){.level = RV_LOG_ERROR, .line = on_line, .line_self = &lines});
    struct world w;

    world_init_at(&w, place, log, "models: {calm: [{text: one}, {text: two}]}\n", files);
    world_chat(&w, "calm", SESSION, "alice");
    ck_assert_str_eq(world_say(&w, "hi").text.ptr, "one");
    ck_assert_uint_eq(lines.len, 0);
    damage(place, broken[_i]);
    struct rv_chat_turn t = world_say(&w, "again");
    ck_assert_str_eq(t.text.ptr, "two");
    ck_assert(t.was_kept);
    const char *told = rv_buf_cstr(&lines);
    ck_assert_msg(strstr(told, "store.damaged") && strstr(told, "kind=session") && strstr(told, SESSION), "%s", told);
    world_fini(&w);
    rv_log_free(log);
    rv_buf_fini(&lines);
    free(place);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

Suite *damage_suite(void)
{
    Suite *s = suite_create("damage");
    TCase *tc = tcase_create("damage");

    tcase_add_loop_test(tc, a_session_goes_on_without_damaged_metadata_and_the_log_says_so, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
