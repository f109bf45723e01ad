/* Capabilities that sets share: opened once, closed when they are not needed any more, and only what is the same is
 * shared. `counted` writes a line when it is opened and when it is closed. */
#include "tests/kit/kit.h"
#include "tests/unit/plugin/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scene {
    rv_plugin_pool *pool;
    char *dir, *lines, *file;
};

static void begin(struct scene *s)
{
    s->dir = rv_kit_tmpdir();
    s->lines = rv_kit_path(s->dir, "lines");
    s->file = rv_kit_path(s->dir, "counted.so");
    rv_kit_copy(HOSTILE_DIR "/counted.so", s->file);
    rv_kit_write(s->lines, "");
    setenv("COUNT_FILE", s->lines, 1);
    ck_assert_int_eq(rv_plugin_pool_new(&s->pool, NULL), 0);
}

static void end(struct scene *s)
{
    rv_plugin_pool_free(s->pool);
    unsetenv("COUNT_FILE");
    rv_kit_tmpdir_remove(s->dir);
    free(s->lines);
    free(s->file);
}

/* A set of this scene with the capability in it. */
static rv_plugins *set_of(const struct scene *s, const char *base_dir, const char *config)
{
    const char *dirs[] = {s->dir, HOSTILE_DIR};
    const struct rv_plugins_opts opts = {dirs, RV_COUNT(dirs), base_dir, NULL, REEVE_PROGRAM, s->pool};
    rv_plugins *p = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_plugins_new(&opts, &p, NULL), 0);
    ck_assert_msg(load_named(p, "counted", config, &err) == 0, "%s", error_text(err));
    return p;
}

static int count(const struct scene *s, const char *word)
{
    char *text = rv_kit_read(s->lines);
    int n = 0;

    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    free(text);
    return n;
}

#define COUNTS_ARE(s, opened, closed)                                                                                  \
    do {                                                                                                               \
        ck_assert_int_eq(count(s, "open"), opened);                                                                    \
        ck_assert_int_eq(count(s, "close"), closed);                                                                   \
    } while (0)

/* The number of the opening that answers a set. */
static int answers(rv_plugins *p)
{
    rv_buf out = RV_BUF_INIT(4096);
    rv_err *err = NULL;
    int64_t n = 0;

    ck_assert_msg(call_entry(p, RV_NAME_TOOL, "which", "{}", &out, &err) == 0, "%s", error_text(err));
    json_object *reply = rv_kit_json(rv_buf_cstr(&out));
    ck_assert(rv_json_get_int(reply, "which", &n));
    json_object_put(reply);
    rv_buf_fini(&out);
    return (int)n;
}

START_TEST(sets_share_what_is_open_until_the_pool_is_freed)
{
    struct scene s;

    begin(&s);
    rv_plugins *a = set_of(&s, "tests", NULL), *b = set_of(&s, "tests", NULL);
    COUNTS_ARE(&s, 1, 0);
    ck_assert_int_eq(answers(a), 1);
    rv_plugins_free(a);
    ck_assert_int_eq(answers(b), 1);
    rv_plugins_free(b);
    COUNTS_ARE(&s, 1, 0);
    a = set_of(&s, "tests", NULL);
    ck_assert_int_eq(answers(a), 1);
    rv_plugins_free(a);
    rv_plugin_pool_free(s.pool);
    s.pool = NULL;
    COUNTS_ARE(&s, 1, 1);
    end(&s);
}
END_TEST

START_TEST(another_configuration_or_folder_is_opened_apart)
{
    struct scene s;

    begin(&s);
    rv_plugins *a = set_of(&s, "tests", NULL), *b = set_of(&s, "tests", "{\"n\": 1}"),
               *c = set_of(&s, "tests", "{\"n\": 1}"), *d = set_of(&s, "docs", NULL);
    ck_assert_int_eq(answers(a), 1);
    ck_assert_int_eq(answers(b), 2);
    ck_assert_int_eq(answers(c), 2);
    ck_assert_int_eq(answers(d), 3);
    rv_plugins_free(a);
    rv_plugins_free(b);
    rv_plugins_free(c);
    rv_plugins_free(d);
    end(&s);
}
END_TEST

START_TEST(a_capability_in_a_process_of_its_own_is_not_shared)
{
    struct scene s;

    begin(&s);
    rv_plugins *a = set_of(&s, "tests", NULL);
    for (int i = 0; i < 2; i++) {
        const char *dirs[] = {s.dir};
        const struct rv_plugins_opts opts = {dirs, 1, "tests", NULL, REEVE_PROGRAM, s.pool};
        rv_plugins *p = NULL;
        rv_err *err = NULL;
        ck_assert_int_eq(rv_plugins_new(&opts, &p, NULL), 0);
        ck_assert_msg(load_isolated(p, "counted", NULL, &err) == 0, "%s", error_text(err));
        COUNTS_ARE(&s, 2 + i, i);
        rv_plugins_free(p);
    }
    rv_plugins_free(a);
    end(&s);
}
END_TEST

/* As an installer does it: a new file takes the name. */
static void replace(const struct scene *s)
{
    char *fresh = rv_kit_path(s->dir, "fresh");

    rv_kit_copy(HOSTILE_DIR "/counted.so", fresh);
    ck_assert_int_eq(rename(fresh, s->file), 0);
    free(fresh);
}

START_TEST(a_file_that_was_replaced_is_opened_anew)
{
    struct scene s;

    begin(&s);
    rv_plugins_free(set_of(&s, "tests", NULL));
    replace(&s);
    rv_plugins *a = set_of(&s, "tests", NULL);
    COUNTS_ARE(&s, 2, 1);
    ck_assert_int_eq(answers(a), 1); /* of other code: it counts from the beginning */
    rv_plugins_free(a);
    end(&s);
}
END_TEST

/* The dynamic linker has the old code under that name as long as anyone uses it. */
START_TEST(nothing_is_shared_while_the_old_file_is_in_use)
{
    struct scene s;

    begin(&s);
    rv_plugins *a = set_of(&s, "tests", NULL);
    replace(&s);
    rv_plugins *b = set_of(&s, "tests", NULL), *c = set_of(&s, "tests", NULL);
    COUNTS_ARE(&s, 3, 0);
    ck_assert_int_eq(answers(b), 2);
    rv_plugins_free(b);
    rv_plugins_free(c);
    rv_plugins_free(a);
    COUNTS_ARE(&s, 3, 3);
    rv_plugins_free(set_of(&s, "tests", NULL));
    rv_plugins_free(set_of(&s, "tests", NULL));
    COUNTS_ARE(&s, 4, 3);
    end(&s);
}
END_TEST

START_TEST(a_set_that_outlives_its_pool_closes_what_it_used)
{
    struct scene s;

    begin(&s);
    rv_plugins *a = set_of(&s, "tests", NULL);
    rv_plugins_free(set_of(&s, "tests", "{\"n\": 1}"));
    rv_plugin_pool_free(s.pool);
    COUNTS_ARE(&s, 2, 1);
    ck_assert_int_eq(answers(a), 1);
    rv_plugins_free(a);
    COUNTS_ARE(&s, 2, 2);
    s.pool = NULL;
    end(&s);
}
END_TEST

START_TEST(what_no_set_uses_is_closed_beyond_a_limit)
{
    struct scene s;
    char config[32];

    begin(&s);
    for (int i = 0; i < 70; i++) {
        snprintf(config, sizeof config, "{\"n\": %d}", i);
        rv_plugins_free(set_of(&s, "tests", config));
    }
    COUNTS_ARE(&s, 70, 6);
    rv_plugins_free(set_of(&s, "tests", "{\"n\": 69}")); /* the newest are kept */
    COUNTS_ARE(&s, 70, 6);
    rv_plugins_free(set_of(&s, "tests", "{\"n\": 0}"));
    COUNTS_ARE(&s, 71, 7);
    end(&s);
}
END_TEST

START_TEST(a_set_that_refuses_one_leaves_it_to_the_others)
{
    struct scene s;
    rv_err *err = NULL;

    begin(&s);
    rv_plugins *a = set_of(&s, "tests", NULL);
    ck_assert_int_eq(load_named(a, "counted", NULL, &err), RV_E_EXISTS);
    rv_err_free(err);
    err = NULL;
    ck_assert_int_eq(load_named(a, "counted", "{\"n\": \"text\"}", &err), RV_E_EXISTS);
    rv_err_free(err);
    COUNTS_ARE(&s, 1, 0);
    rv_plugins_free(a);
    a = set_of(&s, "tests", NULL);
    COUNTS_ARE(&s, 1, 0);
    rv_plugins_free(a);
    end(&s);
}
END_TEST

Suite *pool_suite(void)
{
    Suite *s = suite_create("pool");
    TCase *tc = tcase_create("pool");

    tcase_add_test(tc, sets_share_what_is_open_until_the_pool_is_freed);
    tcase_add_test(tc, another_configuration_or_folder_is_opened_apart);
    tcase_add_test(tc, a_capability_in_a_process_of_its_own_is_not_shared);
    tcase_add_test(tc, a_file_that_was_replaced_is_opened_anew);
    tcase_add_test(tc, nothing_is_shared_while_the_old_file_is_in_use);
    tcase_add_test(tc, a_set_that_outlives_its_pool_closes_what_it_used);
    tcase_add_test(tc, what_no_set_uses_is_closed_beyond_a_limit);
    tcase_add_test(tc, a_set_that_refuses_one_leaves_it_to_the_others);
    suite_add_tcase(s, tc);
    return s;
}
