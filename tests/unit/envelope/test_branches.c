/* Forks of forks, and branches that are joined. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdlib.h>

static rv_envelope *branch_of(const rv_envelope *env)
{
    rv_envelope *branch = NULL;

    OK(rv_envelope_branch(env, &branch, NULL));
    return branch;
}

static void put(rv_envelope *env, const char *key, int n)
{
    json_object *value = json_object_new_object();

    json_object_object_add(value, "n", json_object_new_int(n));
    OK(rv_envelope_set_output(env, rv_str_of(key), value, NULL));
    json_object_put(value);
}

static int got(const rv_envelope *env, const char *key)
{
    json_object *value = rv_envelope_output(env, rv_str_of(key), NULL), *n = NULL;

    return value && json_object_object_get_ex(value, "n", &n) ? json_object_get_int(n) : -1;
}

START_TEST(a_fork_of_a_fork_looks_like_the_root)
{
    rv_envelope *env = random_envelope((uint64_t)_i), *one = branch_of(env), *two = branch_of(one);
    char *a = world_state(env), *b = world_state(two);

    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    rv_envelope_free(two);
    rv_envelope_free(one);
    rv_envelope_free(env);
}
END_TEST

START_TEST(each_level_sees_its_own_changes_and_those_below)
{
    rv_envelope *env = random_envelope(1);

    put(env, "x", 1);
    rv_envelope *one = branch_of(env);
    OK(rv_envelope_remove_output(one, rv_str_of("x"), NULL));
    put(one, "y", 2);
    rv_envelope *two = branch_of(one);
    ck_assert_int_eq(got(two, "x"), -1);
    ck_assert_int_eq(got(two, "y"), 2);
    put(two, "x", 3);
    ck_assert_int_eq(got(env, "x"), 1);
    ck_assert_int_eq(got(one, "x"), -1);
    ck_assert_int_eq(got(two, "x"), 3);
    struct rv_joining j = {0};
    OK(rv_envelope_join(one, two, rv_str_of("two"), true, &j, NULL));
    OK(rv_envelope_join_end(one, &j, NULL));
    rv_joining_fini(&j);
    ck_assert_int_eq(got(one, "x"), 3);
    OK(rv_envelope_join(env, one, rv_str_of("one"), true, &j, NULL));
    OK(rv_envelope_join_end(env, &j, NULL));
    rv_joining_fini(&j);
    ck_assert_int_eq(got(env, "x"), 3);
    ck_assert_int_eq(got(env, "y"), 2);
    rv_envelope_free(two);
    rv_envelope_free(one);
    rv_envelope_free(env);
}
END_TEST

TCase *branches_case(void)
{
    TCase *tc = tcase_create("branches");

    tcase_add_loop_test(tc, a_fork_of_a_fork_looks_like_the_root, 0, 50);
    tcase_add_test(tc, each_level_sees_its_own_changes_and_those_below);
    return tc;
}
