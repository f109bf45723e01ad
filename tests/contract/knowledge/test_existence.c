/* Whether another user has a name cannot be told by the work that a query takes: what a query of that name executes is,
 * to the instruction of SQLite's machine, what one of a name that does not exist executes. Instructions, not time: they
 * are the same each time. */
#include <sqlite3.h>

#include "coreengine/store/sqlite/sqlite_internal.h"
#include "tests/contract/knowledge/people.h"

static int count(void *self)
{
    ++*(int64_t *)self;
    return 0;
}

static int64_t work_once(struct world *w, const char *query)
{
    sqlite3 *db = ((struct sqlite *)w->s->sql)->link->db;
    int64_t n = 0;

    sqlite3_progress_handler(db, 1, count, &n);
    free(ask(w, &ada, query, NULL));
    sqlite3_progress_handler(db, 0, NULL, NULL);
    return n;
}

/* Those of the first time (what a process reads once) do not count. */
static int64_t work_of(struct world *w, const char *query)
{
    work_once(w, query);
    return work_once(w, query);
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
    static const char *const queries[] = {
        "LOOKUP lunch", "LOOKUP report, atlas", "SQL SELECT name FROM sessions ORDER BY name",
        "SQL SELECT content FROM messages ORDER BY id", "SQL SELECT name FROM schemas ORDER BY name"};
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

/* Rows of ada's tenant and of another one that match what ada asks for, by their names, words and vectors. */
static void fill_others(struct world *w, int n)
{
    const struct rv_store_scope *const others[] = {&bob, &elsewhere};
    char row[200];

    for (int i = 0; i < n; i++) {
        snprintf(row, sizeof row, "{\"name\":\"Lunch %d\",\"summary\":\"We met at the harbour %d\"}", i, i);
        json_object_put(put_one(w, others[i % 2], "moments", row, T0 + 40 + i));
    }
}

static const char *const searches[] = {
    "FUZZY lunhc",
    "FUZZY harbour THRESHOLD 0",
    "SEARCH met at the harbour FROM moments",
    "SEARCH met at the harbour FROM moments rank=words",
    "SEARCH met at the harbour FROM moments CATEGORY people rank=hybrid",
    "SEARCH nothing of this kind FROM resources",
    "SQL SELECT name FROM moments ORDER BY name",
    "SQL SELECT count(*) AS n FROM moments",
    "SQL SELECT name FROM moments WHERE name = 'Lunch 1'",
};

/* Whether an index has an entry behind the last one that is wanted is one instruction: both stores have rows of others.
 */

/* Proves p8-data.23/work: A search or a statement of SQL takes the same work beside rows of others that match and
 * beside one that does not, when nothing was read before, when nothing changed, and when only others wrote */
START_TEST(a_search_or_statement_reads_no_row_of_others)
{
    struct world with, without;

    world_open(&with, 0);
    world_open(&without, 0);
    fill_seen(&with);
    fill_seen(&without);
    fill_others(&with, 60);
    json_object_put(put_one(&without, &bob, "tools", "{\"name\":\"x\"}", T0 + 40));
    json_object_put(put_one(&without, &elsewhere, "tools", "{\"name\":\"x\"}", T0 + 40));
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < RV_COUNT(searches); i++) {
            int64_t one = work_once(&with, searches[i]), other = work_once(&without, searches[i]);
            ck_assert_msg(one == other, "%s: %lld instructions, without rows of others %lld, round %d", searches[i],
                          (long long)one, (long long)other, round);
        }
        /* One write on each side: of a row that matches, and of one that does not. */
        json_object_put(put_one(&with, &bob, "moments", "{\"name\":\"Lunch\"}", T0 + 200 + round));
        json_object_put(put_one(&without, &elsewhere, "tools", "{\"name\":\"y\"}", T0 + 200 + round));
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
    tcase_add_test(tc, a_search_or_statement_reads_no_row_of_others);
    suite_add_tcase(s, tc);
    return s;
}
