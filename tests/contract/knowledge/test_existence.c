/* Whether another user has a name cannot be told by the work that a query takes: what a query of that name executes is,
 * to the instruction of SQLite's machine, what one of a name that does not exist executes. Instructions, not time: they
 * are the same each time. */
#include <sqlite3.h>

#include "coreengine/store/sqlite_internal.h"
#include "tests/contract/knowledge/people.h"

static int count(void *self)
{
    ++*(int64_t *)self;
    return 0;
}

/* Instructions, of which those of the first time (what a process reads once) do not count. */
static int64_t work_of(struct world *w, const char *query)
{
    sqlite3 *db = ((struct sqlite *)w->s->sql)->link->db;
    int64_t n = 0;

    free(ask(w, &ada, query, NULL));
    sqlite3_progress_handler(db, 1, count, &n);
    char *answer = ask(w, &ada, query, NULL);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    free(answer);
    return n;
}

/* Names of bob and of another tenant, and names that do not exist, with as many characters. */
static const struct {
    const char *before, *hidden, *absent, *behind;
} asked[] = {
    {"LOOKUP", "secret plan", "secret plum", ""},
    {"LOOKUP", "hidden file", "hidden fine", ""},
    {"LOOKUP", "hidden user", "hidden used", ""},
    {"LOOKUP", "hidden agent", "hidden scent", ""},
    {"LOOKUP", "99999999-0000-4000-8000-000000000002", "99999999-0000-4000-8000-000000000009", ""},
    {"TRAVERSE", "secret plan", "secret plum", "DEPTH 3"},
    {"TRAVERSE", "hidden file", "hidden fine", "DEPTH 3 PATHS LOAD"},
};

/* Proves p8-data.23/7 */
START_TEST(a_name_of_another_user_takes_the_work_of_one_that_is_absent)
{
    struct world world, *w = &world;

    world_open(w, 0);
    fill_seen(w);
    fill_hidden(w);
    for (size_t i = 0; i < RV_COUNT(asked); i++) {
        char hidden[200], absent[200];
        snprintf(hidden, sizeof hidden, "%s \"%s\" %s", asked[i].before, asked[i].hidden, asked[i].behind);
        snprintf(absent, sizeof absent, "%s \"%s\" %s", asked[i].before, asked[i].absent, asked[i].behind);
        int64_t one = work_of(w, hidden), other = work_of(w, absent);
        ANSWERS(&ada, hidden, "[]");
        ck_assert_int_gt(one, 20);
        ck_assert_msg(one == other, "%s: %lld instructions, of a name that does not exist %lld", hidden, (long long)one,
                      (long long)other);
    }
    world_close(w);
}
END_TEST

/* Keys that ada and others have. */
START_TEST(rows_of_others_are_no_work)
{
    static const char *const queries[] = {"LOOKUP lunch", "LOOKUP report, atlas"};
    struct world with, without;

    world_open(&with, 0);
    world_open(&without, 0);
    fill_seen(&with);
    fill_seen(&without);
    fill_hidden(&with);
    for (size_t i = 0; i < RV_COUNT(queries); i++) {
        int64_t one = work_of(&with, queries[i]), other = work_of(&without, queries[i]);
        ck_assert_msg(one == other, "%s: %lld instructions, without rows of others %lld", queries[i], (long long)one,
                      (long long)other);
    }
    world_close(&with);
    world_close(&without);
}
END_TEST

Suite *existence_suite(void)
{
    Suite *s = suite_create("existence");
    TCase *tc = tcase_create("existence");

    tcase_add_test(tc, a_name_of_another_user_takes_the_work_of_one_that_is_absent);
    tcase_add_test(tc, rows_of_others_are_no_work);
    suite_add_tcase(s, tc);
    return s;
}
