/* Copies as the environment changes them (p8 1.7). */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agentdoc/suites.h"

#define DOCUMENT                                                                                                       \
    "name: a\ndescription: d\nmodel: m\ntemperature: 0.5\nmax_iterations: 3\n"                                         \
    "limits: {request_limit: 4, input_tokens_limit: 5}\ntools: [t]\n"

/* self: NULL-terminated pairs of name and value. */
static const char *from_list(void *self, const char *name)
{
    const char *const *pairs = self;

    for (; *pairs; pairs += 2)
        if (strcmp(*pairs, name) == 0)
            return pairs[1];
    return NULL;
}

static const char *all[] = {"AGENT_MODEL",
                            "e:m",
                            "AGENT_TEMPERATURE",
                            "1.5",
                            "AGENT_MAX_ITERATIONS",
                            "13",
                            "AGENT_REQUEST_LIMIT",
                            "14",
                            "AGENT_TOTAL_TOKENS_LIMIT",
                            "15",
                            "AGENT_TOOL_CALLS_LIMIT",
                            "16",
                            NULL};
static const char *empty[] = {"AGENT_MODEL", "", "AGENT_TEMPERATURE", "", "AGENT_REQUEST_LIMIT", "", NULL};

START_TEST(nothing_set_changes_nothing)
{
    struct rv_agentdoc *d = doc_of(DOCUMENT), *copy = d;

    ck_assert_int_eq(rv_agentdoc_dup_with_env(d, from_list, empty, &copy, NULL), 0);
    ck_assert_ptr_null(copy);
    rv_agentdoc_free(d);
}
END_TEST

/* Proves p8.1.7 */
START_TEST(the_environment_wins_over_the_document)
{
    struct rv_agentdoc *d = doc_of(DOCUMENT), *copy = NULL;

    ck_assert_int_eq(rv_agentdoc_dup_with_env(d, from_list, all, &copy, NULL), 0);
    ck_assert_str_eq(copy->model, "e:m");
    ck_assert(copy->temperature == 1.5);
    ck_assert_int_eq(copy->max_iterations, 13);
    ck_assert_int_eq(copy->limits.request_limit, 14);
    ck_assert_int_eq(copy->limits.total_tokens_limit, 15);
    ck_assert_int_eq(copy->limits.tool_calls_limit, 16);
    ck_assert_int_eq(copy->limits.input_tokens_limit, 5); /* the others stay */
    ck_assert_str_eq(d->model, "openai:m");
    rv_agentdoc_free(copy);
    rv_agentdoc_free(d);
}
END_TEST

START_TEST(the_models_variable_wins_over_override_model)
{
    static const char *pairs[] = {"AGENT_MODEL", "bare", "AGENT_REQUEST_LIMIT", "3", NULL};
    struct rv_agentdoc *d = doc_of("name: a\ndescription: d\noverride_model: o:o\n"), *copy = NULL;

    ck_assert_int_eq(rv_agentdoc_dup_with_env(d, from_list, pairs, &copy, NULL), 0);
    ck_assert_str_eq(copy->model, "openai:bare");
    ck_assert(!copy->model_overrides);
    ck_assert_int_eq(copy->limits.request_limit, 3);
    ck_assert_str_eq(copy->src.file, "a.yaml with AGENT_* variables");
    rv_agentdoc_free(copy);
    rv_agentdoc_free(d);
}
END_TEST

static const struct {
    const char *name, *value, *want;
} wrong[] = {
    {"AGENT_TEMPERATURE", "warm", "AGENT_TEMPERATURE must be a number from 0 to 2, not \"warm\""},
    {"AGENT_TEMPERATURE", "3", "AGENT_TEMPERATURE must be a number from 0 to 2, not \"3\""},
    {"AGENT_MAX_ITERATIONS", "0", "AGENT_MAX_ITERATIONS must be a whole number from 1, not \"0\""},
    {"AGENT_MAX_ITERATIONS", "1.5", "AGENT_MAX_ITERATIONS must be a whole number from 1, not \"1.5\""},
    {"AGENT_REQUEST_LIMIT", "many", "AGENT_REQUEST_LIMIT must be a whole number from 1, not \"many\""},
    {"AGENT_TOTAL_TOKENS_LIMIT", "-1", "AGENT_TOTAL_TOKENS_LIMIT must be a whole number from 1, not \"-1\""},
    {"AGENT_TOOL_CALLS_LIMIT", "x", "AGENT_TOOL_CALLS_LIMIT must be a whole number from 1, not \"x\""},
    {"AGENT_MODEL", "a b", "model must be provider:model, not \"a b\""},
};

/* Proves p8.1.7 */
START_TEST(a_wrong_variable_is_named)
{
    const char *pairs[] = {wrong[_i].name, wrong[_i].value, NULL};
    struct rv_agentdoc *d = doc_of(DOCUMENT), *copy = NULL;
    rv_err *err = NULL;
    char *got;

    ck_assert_int_eq(rv_agentdoc_dup_with_env(d, from_list, pairs, &copy, &err), RV_E_INVALID);
    ck_assert_ptr_null(copy);
    got = rv_kit_err_take(err);
    ck_assert_msg(strstr(got, wrong[_i].want) != NULL, "%s", got);
    ck_assert_msg(strstr(got, "change agent \"a\"") != NULL, "%s", got);
    free(got);
    rv_agentdoc_free(d);
}
END_TEST

TCase *with_case(void)
{
    TCase *tc = tcase_create("with");

    tcase_add_test(tc, nothing_set_changes_nothing);
    tcase_add_test(tc, the_environment_wins_over_the_document);
    tcase_add_test(tc, the_models_variable_wins_over_override_model);
    tcase_add_loop_test(tc, a_wrong_variable_is_named, 0, RV_COUNT(wrong));
    return tc;
}
