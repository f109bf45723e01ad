/* Answers are kept, but not longer than they are true. */
#include "tests/unit/agents/world.h"

#include <stdio.h>
#include <string.h>

#define SECOND ((int64_t)1000000)

/* Counts how often the store is asked for a row. */
struct counter {
    int n_finds;
};

static int count(void *self, const char *point, rv_err **err)
{
    struct counter *c = self;

    (void)err;
    c->n_finds += strcmp(point, "find_schema") == 0;
    return 0;
}

static void count_finds(struct world *w, struct counter *c)
{
    c->n_finds = 0;
    rv_store_set_faults(w->store, (struct rv_store_faults){count, c});
}

/* Proves p8.5.2: Answers are kept for five minutes, by name, user and tenant */
START_TEST(an_answer_is_kept_for_five_minutes)
{
    struct counter c;
    struct world w;

    world_begin(&w, _i, NOT_REGISTERING);
    count_finds(&w, &c);
    must_find(&w, &ann, "as_json", "built-in", "You extract.");
    w.time.us += 299 * SECOND;
    must_find(&w, &ann, "as_json", "built-in", "You extract.");
    ck_assert_int_eq(c.n_finds, 1);
    w.time.us += SECOND;
    must_find(&w, &ann, "as_json", "built-in", "You extract.");
    ck_assert_int_eq(c.n_finds, 2);
    world_end(&w);
}
END_TEST

/* Proves remlight.19/13: What is kept of an agent is its document, under the whole of who asks; nothing of a
 * request is in it
 * Proves p8.5.2 */
START_TEST(an_answer_is_for_one_user_of_one_tenant)
{
    const struct rv_store_scope scopes[] = {ann, bob, nobody, {"acme", NULL}, {"other", "ann"}, {NULL, "ann"}};
    struct counter c;
    struct world w;

    world_begin(&w, 0, NOT_REGISTERING);
    count_finds(&w, &c);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < RV_COUNT(scopes); i++)
            must_find(&w, &scopes[i], "as_json", "built-in", "You extract.");
    ck_assert_int_eq(c.n_finds, (int)RV_COUNT(scopes));
    must_find(&w, &(struct rv_store_scope){RV_STORE_TENANT, "ann"}, "as_json", "built-in", "You extract.");
    ck_assert_int_eq(c.n_finds, (int)RV_COUNT(scopes)); /* no tenant is the default one */
    world_end(&w);
}
END_TEST

/* Proves p8.W9: A change counts at once, whoever makes it; what is kept has a bound and is one user's */
START_TEST(a_change_by_another_process_counts_at_once)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    struct rv_agents_opts other_opts = {.registers = true};
    rv_agents *other = NULL;
    rv_store *store = NULL;
    struct world w;

    world_begin(&w, 1, 0);
    world_put(&w, &nobody, false, DOC("helper", "First"));
    must_find(&w, &ann, "helper", "store", "First");
    ck_assert_int_eq(rv_store_open(w.url, &opts, &store, NULL), 0);
    other_opts.store = store;
    ck_assert_int_eq(rv_agents_new(&other_opts, &other, NULL), 0);
    ck_assert_int_eq(
        rv_agents_put(other, &nobody,
                      &(const struct rv_agent_text){.user_own = false, .text = RV_STR_LIT(DOC("helper", "Second"))},
                      NULL, NULL),
        0);
    must_find(&w, &ann, "helper", "store", "Second");
    ck_assert_int_eq(rv_store_delete_schema(store, &nobody, "agent", "helper", w.time.us, NULL), 0);
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_NOT_FOUND);
    rv_agents_free(other);
    rv_store_close(store);
    world_end(&w);
}
END_TEST

/* Proves p8.W9 */
START_TEST(a_file_that_changes_counts_at_once)
{
    struct world w;

    world_begin(&w, 0, NO_STORE);
    world_file(&w, "a.yaml", DOC("helper", "First"));
    must_find(&w, &ann, "helper", "file", "First");
    world_file(&w, "a.yaml", DOC("helper", "Other")); /* as long as before */
    must_find(&w, &ann, "helper", "file", "Other");
    world_file(&w, "0.yaml", DOC("helper", "Earlier"));
    must_find(&w, &ann, "helper", "file", "Earlier");
    world_no_file(&w, "0.yaml");
    must_find(&w, &ann, "helper", "file", "Other");
    world_no_file(&w, "a.yaml");
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_NOT_FOUND);
    world_end(&w);
}
END_TEST

START_TEST(an_unchanged_folder_is_read_again_after_five_minutes)
{
    struct world w;
    size_t n_lines;

    world_begin(&w, 0, NO_STORE | NO_PLUGINS);
    world_file(&w, "bad.yaml", "- x\n"); /* each reading complains about it */
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_NOT_FOUND);
    n_lines = w.log.n_lines;
    w.time.us += 299 * SECOND;
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_NOT_FOUND);
    ck_assert_uint_eq(w.log.n_lines, n_lines);
    w.time.us += SECOND;
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_NOT_FOUND);
    ck_assert_uint_eq(w.log.n_lines, n_lines + 1);
    world_end(&w);
}
END_TEST

START_TEST(forgetting_asks_again)
{
    struct counter c;
    struct world w;

    world_begin(&w, 0, NOT_REGISTERING);
    count_finds(&w, &c);
    must_find(&w, &ann, "as_json", "built-in", "You extract.");
    rv_agents_forget(w.agents);
    must_find(&w, &ann, "as_json", "built-in", "You extract.");
    ck_assert_int_eq(c.n_finds, 2);
    world_end(&w);
}
END_TEST

static void ask_as(struct world *w, int who)
{
    char user[32];
    const struct rv_store_scope scope = {"acme", user};

    snprintf(user, sizeof user, "u%d", who);
    must_find(w, &scope, "as_json", "built-in", "You extract.");
}

/* Proves p8.W9 */
START_TEST(the_oldest_answer_goes_when_there_are_too_many)
{
    struct counter c;
    struct world w;

    world_begin(&w, 0, NOT_REGISTERING);
    count_finds(&w, &c);
    for (int i = 0; i < 257; i++)
        ask_as(&w, i);
    ck_assert_int_eq(c.n_finds, 257);
    ask_as(&w, 1);
    ask_as(&w, 256);
    ck_assert_int_eq(c.n_finds, 257);
    ask_as(&w, 0);
    ck_assert_int_eq(c.n_finds, 258);
    world_end(&w);
}
END_TEST

START_TEST(what_is_not_there_is_not_remembered)
{
    struct world w;

    world_begin(&w, _i, 0);
    ck_assert_int_eq(world_find(&w, &ann, "helper"), RV_E_NOT_FOUND);
    world_put(&w, &ann, true, DOC("helper", "Now"));
    must_find(&w, &ann, "helper", "store", "Now");
    world_end(&w);
}
END_TEST

TCase *cache_case(void)
{
    TCase *tc = tcase_create("cache");

    tcase_add_loop_test(tc, an_answer_is_kept_for_five_minutes, 0, N_STORES);
    tcase_add_test(tc, an_answer_is_for_one_user_of_one_tenant);
    tcase_add_test(tc, a_change_by_another_process_counts_at_once);
    tcase_add_test(tc, a_file_that_changes_counts_at_once);
    tcase_add_test(tc, an_unchanged_folder_is_read_again_after_five_minutes);
    tcase_add_test(tc, forgetting_asks_again);
    tcase_add_test(tc, the_oldest_answer_goes_when_there_are_too_many);
    tcase_add_loop_test(tc, what_is_not_there_is_not_remembered, 0, N_STORES);
    return tc;
}
