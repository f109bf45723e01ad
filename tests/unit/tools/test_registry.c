/* Rule 6.3: the registry, alone and under many threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

static int echo(void *self, rv_str args, rv_buf *reply, rv_err **err)
{
    (void)self;
    (void)err;
    rv_buf_add_str(reply, args);
    return 0;
}

static int say(void *self, rv_str args, rv_buf *reply, rv_err **err)
{
    (void)args;
    (void)err;
    rv_buf_puts(reply, self);
    return 0;
}

static int fail_with(void *self, rv_str args, rv_buf *reply, rv_err **err)
{
    (void)args;
    rv_buf_puts(reply, "{\"half\":");
    return RV_FAIL(err, *(int *)self, "the disk is gone");
}

static int fail_silently(void *self, rv_str args, rv_buf *reply, rv_err **err)
{
    (void)args;
    (void)reply;
    (void)err;
    return *(int *)self;
}

static const struct rv_tool_handler echoes = {.call = echo};

static int add(rv_tool_registry *r, const char *name, const struct rv_tool_handler *handler, bool replace, rv_err **err)
{
    struct rv_tool_info info = {
        .name = name, .description = "d", .category = RV_UNSET, .risk = RV_UNSET, .effect = RV_UNSET};

    return rv_tool_register(r, &info, handler, replace, err);
}

/* Proves 6.3/register: A tool needs a name and a handler; the messages say which is missing and name the tool */
START_TEST(registering_needs_a_name_and_a_handler)
{
    static const struct rv_tool_handler none = {.call = NULL};
    rv_tool_registry *r = rv_tool_registry_new();
    static const struct {
        const char *name;
        const struct rv_tool_handler *handler;
        const char *message;
    } cases[] = {
        {NULL, &echoes, "tool name is required"},
        {"", &echoes, "tool name is required"},
        {"t", NULL, "tool \"t\" has no handler"},
        {"t", &none, "tool \"t\" has no handler"},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        rv_err *err = NULL;
        ck_assert_int_eq(add(r, cases[i].name, cases[i].handler, true, &err), RV_E_INVALID);
        ck_assert_str_eq(rv_err_text(err), cases[i].message);
        rv_err_free(err);
    }
    ck_assert_ptr_null(rv_tool_find(r, RV_STR_LIT("t")));
    rv_tool_registry_free(r);
}
END_TEST

/* Proves 6.3/replace: A name can be registered again only with the replace flag */
START_TEST(same_name_again_needs_the_replace_flag)
{
    struct rv_tool_handler one = {say, "1"}, two = {say, "2"};
    rv_tool_registry *r = rv_tool_registry_new();
    rv_buf reply = RV_BUF_INIT(100);
    rv_err *err = NULL;

    ck_assert_int_eq(add(r, "t", &one, false, NULL), 0);
    ck_assert_int_eq(add(r, "t", &two, false, &err), RV_E_EXISTS);
    ck_assert_str_eq(rv_err_text(err), "tool \"t\" is registered already");
    rv_err_free(err);
    ck_assert_int_eq(rv_tool_execute(r, RV_STR_LIT("t"), RV_STR_LIT("{}"), &reply, NULL), 0);
    ck_assert_str_eq(reply.ptr, "1");
    ck_assert_int_eq(add(r, "t", &two, true, NULL), 0);
    ck_assert_int_eq(rv_tool_execute(r, RV_STR_LIT("t"), RV_STR_LIT("{}"), &reply, NULL), 0);
    ck_assert_str_eq(reply.ptr, "12"); /* appended */
    rv_buf_fini(&reply);
    rv_tool_registry_free(r);
}
END_TEST

/* Proves 6.3/definition: The registry keeps its own copy of a definition and compiles its schemas; a bad schema is
 * refused */
START_TEST(definition_is_copied_with_compiled_schemas)
{
    json_object *input = rv_kit_json("{'type':'object','required':['a']}"), *args = rv_kit_json("{}");
    char name[] = "probe", description[] = "looks";
    struct rv_tool_info info = {.name = name,
                                .description = description,
                                .category = RV_CATEGORY_READ,
                                .risk = RV_RISK_LOW,
                                .effect = RV_EFFECT_SAFE,
                                .timeout_ms = 5,
                                .input_json = input};
    rv_tool_registry *r = rv_tool_registry_new();
    const struct rv_tool_info *got;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_tool_register(r, &info, &echoes, false, NULL), 0);
    memset(name, 'x', sizeof name - 1);
    memset(description, 'x', sizeof description - 1);
    json_object_put(input);
    got = rv_tool_find(r, RV_STR_LIT("probe"));
    ck_assert_ptr_nonnull(got);
    ck_assert_str_eq(got->name, "probe");
    ck_assert_str_eq(got->description, "looks");
    ck_assert_int_eq(got->category, RV_CATEGORY_READ);
    ck_assert_int_eq(got->risk, RV_RISK_LOW);
    ck_assert_int_eq((int)got->timeout_ms, 5);
    ck_assert_ptr_null(got->output);
    ck_assert_int_eq(rv_schema_check(got->input, args, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), "input of tool \"probe\": (root): missing required property \"a\"");
    rv_err_free(err);
    json_object_put(args);
    rv_tool_registry_free(r);
}
END_TEST

/* Proves 6.3/definition */
START_TEST(bad_schema_is_refused)
{
    json_object *output = rv_kit_json("{'typ':'object'}");
    struct rv_tool_info info = {.name = "t", .output_json = output};
    rv_tool_registry *r = rv_tool_registry_new();
    rv_err *err = NULL;

    ck_assert_int_eq(rv_tool_register(r, &info, &echoes, false, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), "schema of output of tool \"t\": (root): unknown keyword \"typ\"");
    ck_assert_str_eq(rv_err_hint_text(err), "did you mean \"type\"?");
    ck_assert_ptr_null(rv_tool_find(r, RV_STR_LIT("t")));
    rv_err_free(err);
    json_object_put(output);
    rv_tool_registry_free(r);
}
END_TEST

/* Proves 6.3/list: Names are listed sorted */
START_TEST(names_are_sorted)
{
    static const char *const added[] = {"m", "z", "a", "mm", "b", "B", "y"};
    static const char *const want[] = {"B", "a", "b", "m", "mm", "y", "z"};
    rv_tool_registry *r = rv_tool_registry_new();
    const char **names = NULL;
    size_t n = 99;

    ck_assert_int_eq(rv_tool_names(r, &names, &n, NULL), 0);
    ck_assert_uint_eq(n, 0);
    free(names);
    for (size_t i = 0; i < RV_COUNT(added); i++)
        ck_assert_int_eq(add(r, added[i], &echoes, false, NULL), 0);
    ck_assert_int_eq(rv_tool_names(r, &names, &n, NULL), 0);
    ck_assert_uint_eq(n, RV_COUNT(want));
    for (size_t i = 0; i < n; i++)
        ck_assert_str_eq(names[i], want[i]);
    free(names);
    ck_assert_ptr_null(rv_tool_find(r, RV_STR_LIT("c")));
    ck_assert_ptr_null(rv_tool_find(r, RV_STR_LIT("")));
    rv_tool_registry_free(r);
}
END_TEST

/* Proves 6.3/execute: Executing an unknown tool says "tool not found" with the name and the nearest one; else the
 * handler's answer or error comes back as it is */
START_TEST(unknown_tool_is_not_found_with_the_nearest_name)
{
    rv_tool_registry *r = rv_tool_registry_new();
    rv_buf reply = RV_BUF_INIT(100);
    rv_err *err = NULL;

    ck_assert_int_eq(add(r, "read_file", &echoes, false, NULL), 0);
    ck_assert_int_eq(rv_tool_execute(r, RV_STR_LIT("read_flie"), RV_STR_LIT("{}"), &reply, &err), RV_E_NOT_FOUND);
    ck_assert_str_eq(rv_err_text(err), "tool not found: \"read_flie\"");
    ck_assert_str_eq(rv_err_hint_text(err), "did you mean \"read_file\"?");
    rv_err_free(err);
    rv_tool_registry_free(r);
}
END_TEST

/* Proves 6.3/execute */
START_TEST(handlers_own_answer_comes_back)
{
    rv_tool_registry *r = rv_tool_registry_new();
    rv_buf reply = RV_BUF_INIT(100);

    ck_assert_int_eq(add(r, "t", &echoes, false, NULL), 0);
    ck_assert_int_eq(rv_tool_execute(r, RV_STR_LIT("t"), RV_STR_LIT(" {\"a\": 1.50}"), &reply, NULL), 0);
    ck_assert_str_eq(reply.ptr, " {\"a\": 1.50}");
    rv_buf_fini(&reply);
    rv_tool_registry_free(r);
}
END_TEST

static const struct {
    char *answer;
    const char *message;
} bad_answers[] = {
    {"", "tool \"t\" gave no answer"},
    {" \n", "tool \"t\" gave no answer"},
    {"null", "tool \"t\" answered null"},
    {"{'a':1}", "tool \"t\" gave an answer that is no JSON"},
    {"{} {}", "tool \"t\" gave an answer that is no JSON"},
};

/* Proves 6.3/null: No answer, a null and text that is no JSON are errors of the tool, reported as ExecutionError */
START_TEST(answer_that_is_no_json_is_a_tool_error)
{
    struct rv_tool_handler handler = {say, bad_answers[_i].answer};
    rv_tool_registry *r = rv_tool_registry_new();
    rv_buf reply = RV_BUF_INIT(100);
    rv_err *err = NULL;

    rv_buf_puts(&reply, "before");
    ck_assert_int_eq(add(r, "t", &handler, false, NULL), 0);
    ck_assert_int_eq(rv_tool_execute(r, RV_STR_LIT("t"), RV_STR_LIT("{}"), &reply, &err), RV_E_TOOL);
    ck_assert_str_eq(rv_err_text(err), bad_answers[_i].message);
    ck_assert_str_eq(reply.ptr, "before");
    rv_err_free(err);
    rv_buf_fini(&reply);
    rv_tool_registry_free(r);
}
END_TEST

/* Proves 6.3/execute */
START_TEST(failing_handlers_error_comes_back_unchanged)
{
    int code = RV_E_IO;
    struct rv_tool_handler handler = {fail_with, &code};
    rv_tool_registry *r = rv_tool_registry_new();
    rv_buf reply = RV_BUF_INIT(100);
    rv_err *err = NULL;

    ck_assert_int_eq(add(r, "t", &handler, false, NULL), 0);
    ck_assert_int_eq(rv_tool_execute(r, RV_STR_LIT("t"), RV_STR_LIT("{}"), &reply, &err), RV_E_IO);
    ck_assert_str_eq(rv_err_text(err), "the disk is gone");
    ck_assert_uint_eq(reply.len, 0);
    rv_err_free(err);
    rv_tool_registry_free(r);
}
END_TEST

START_TEST(handler_that_fails_without_a_word_is_a_tool_error)
{
    static int codes[] = {1, RV_E_IO};

    for (size_t i = 0; i < RV_COUNT(codes); i++) {
        struct rv_tool_handler handler = {fail_silently, &codes[i]};
        rv_tool_registry *r = rv_tool_registry_new();
        rv_buf reply = RV_BUF_INIT(100);
        rv_err *err = NULL;
        ck_assert_int_eq(add(r, "t", &handler, false, NULL), 0);
        ck_assert_int_eq(rv_tool_execute(r, RV_STR_LIT("t"), RV_STR_LIT("{}"), &reply, &err), RV_E_TOOL);
        ck_assert_str_eq(rv_err_text(err), "tool \"t\" failed");
        rv_err_free(err);
        rv_tool_registry_free(r);
    }
}
END_TEST

START_TEST(answer_beyond_the_callers_ceiling_is_a_limit)
{
    struct rv_tool_handler handler = {say, "\"0123456789\""};
    rv_tool_registry *r = rv_tool_registry_new();
    rv_buf reply = RV_BUF_INIT(8);
    rv_err *err = NULL;

    ck_assert_int_eq(add(r, "t", &handler, false, NULL), 0);
    ck_assert_int_eq(rv_tool_execute(r, RV_STR_LIT("t"), RV_STR_LIT("{}"), &reply, &err), RV_E_LIMIT);
    rv_err_free(err);
    rv_tool_registry_free(r);
}
END_TEST

/* --- threads --- */

#define N_WRITERS 2
#define N_READERS 4
#define N_ROUNDS  300

struct crowd {
    rv_tool_registry *registry;
    atomic_int n_executed, n_unexpected;
};

struct member {
    struct crowd *crowd;
    int number;
};

static void *write_names(void *arg)
{
    struct member *m = arg;
    char name[32];

    for (int i = 0; i < N_ROUNDS; i++) {
        snprintf(name, sizeof name, "tool_%d_%d", m->number, i % 50);
        if (add(m->crowd->registry, name, &echoes, true, NULL) < 0)
            atomic_fetch_add(&m->crowd->n_unexpected, 1);
    }
    return NULL;
}

/* The schema of a registered tool is shared, the value is this thread's own. */
static bool check_arguments(rv_tool_registry *r)
{
    const struct rv_tool_info *info = rv_tool_find(r, RV_STR_LIT("constant"));
    json_object *good = rv_kit_json("{'a':'x'}"), *bad = rv_kit_json("{'a':'y','b':1}");
    bool as_expected = info && rv_schema_check(info->input, good, NULL) == 0 &&
                       rv_schema_check(info->input, bad, NULL) == RV_E_INVALID &&
                       rv_schema_fill_defaults(info->input, good, NULL) == 0;

    json_object_put(good);
    json_object_put(bad);
    return as_expected;
}

static void *read_names(void *arg)
{
    struct member *m = arg;
    rv_tool_registry *r = m->crowd->registry;
    rv_buf reply = RV_BUF_INIT(100);

    for (int i = 0; i < N_ROUNDS; i++) {
        const char **names = NULL;
        size_t n = 0;
        if (rv_tool_execute(r, RV_STR_LIT("constant"), RV_STR_LIT("{}"), &reply, NULL) == 0 && check_arguments(r) &&
            rv_tool_execute(r, RV_STR_LIT("no"), RV_STR_LIT("{}"), &reply, NULL) == RV_E_NOT_FOUND &&
            rv_tool_names(r, &names, &n, NULL) == 0 && n > 0)
            atomic_fetch_add(&m->crowd->n_executed, 1);
        free(names);
        rv_buf_clear(&reply);
    }
    rv_buf_fini(&reply);
    return NULL;
}

/* Proves 6.3/threads: Readers and writers may use a registry at once */
START_TEST(many_readers_and_writers_at_once)
{
    json_object *input = rv_kit_json("{'properties':{'a':{'enum':['x']},'c':{'default':[1]}},"
                                     "'additionalProperties':false}");
    struct rv_tool_info constant = {.name = "constant", .input_json = input};
    struct crowd crowd = {.registry = rv_tool_registry_new()};
    const int n_wanted = N_READERS * N_ROUNDS;
    struct member members[N_WRITERS + N_READERS];
    pthread_t threads[N_WRITERS + N_READERS];

    ck_assert_int_eq(rv_tool_register(crowd.registry, &constant, &echoes, false, NULL), 0);
    for (int i = 0; i < N_WRITERS + N_READERS; i++) {
        members[i] = (struct member){&crowd, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, i < N_WRITERS ? write_names : read_names, &members[i]), 0);
    }
    for (int i = 0; i < N_WRITERS + N_READERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&crowd.n_unexpected), 0);
    ck_assert_int_eq(atomic_load(&crowd.n_executed), n_wanted);
    json_object_put(input);
    rv_tool_registry_free(crowd.registry);
}
END_TEST

TCase *registry_case(void)
{
    TCase *tc = tcase_create("registry");

    tcase_add_test(tc, registering_needs_a_name_and_a_handler);
    tcase_add_test(tc, same_name_again_needs_the_replace_flag);
    tcase_add_test(tc, definition_is_copied_with_compiled_schemas);
    tcase_add_test(tc, bad_schema_is_refused);
    tcase_add_test(tc, names_are_sorted);
    tcase_add_test(tc, unknown_tool_is_not_found_with_the_nearest_name);
    tcase_add_test(tc, handlers_own_answer_comes_back);
    tcase_add_loop_test(tc, answer_that_is_no_json_is_a_tool_error, 0, (int)RV_COUNT(bad_answers));
    tcase_add_test(tc, failing_handlers_error_comes_back_unchanged);
    tcase_add_test(tc, handler_that_fails_without_a_word_is_a_tool_error);
    tcase_add_test(tc, answer_beyond_the_callers_ceiling_is_a_limit);
    tcase_add_test(tc, many_readers_and_writers_at_once);
    return tc;
}
