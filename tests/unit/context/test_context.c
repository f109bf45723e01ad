/* The context as a value: JSON and back, and children that leave their parents as they are. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/context/suites.h"

char *text_of_context(const struct rv_context *c)
{
    rv_buf b = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&b);

    rv_context_write_json(c, &w);
    ck_assert_int_eq(b.rc, 0);
    return rv_buf_steal(&b, NULL);
}

static const struct {
    const char *json, *written; /* NULL: the same */
} good[] = {
    {"{\"tenant_id\":\"default\"}", NULL},
    {"{}", "{\"tenant_id\":\"default\"}"},
    {"{\"user_id\":\"u\",\"tenant_id\":\"t\",\"session_id\":\"s\",\"default_model\":\"openai:gpt-4.1\","
     "\"agent_schema_uri\":\"general\",\"client_id\":\"web\",\"user_profile_hint\":\"Profile: a\\nTopics: b\","
     "\"user_email\":\"a@b.c\",\"user_name\":\"Zoë\",\"is_eval\":true}",
     NULL},
    /* empty, null and false are what is not known */
    {"{\"user_id\":\"\",\"tenant_id\":\"\",\"session_id\":null,\"is_eval\":false}", "{\"tenant_id\":\"default\"}"},
};

/* Proves remlight.1 */
START_TEST(what_is_read_is_written_again)
{
    json_object *json = rv_kit_json(good[_i].json);
    struct rv_context c;
    char *text;

    ck_assert_int_eq(rv_context_read_json(json, &c, NULL), 0);
    text = text_of_context(&c);
    ck_assert_str_eq(text, good[_i].written ? good[_i].written : good[_i].json);
    free(text);
    json_object_put(json);
}
END_TEST

static const struct {
    const char *json, *error;
} wrong[] = {
    {"[]", "an agent context must be an object, not array  [invalid_argument]\n"},
    {"null", "an agent context must be an object, not null  [invalid_argument]\n"},
    {"{\"user\":\"u\"}", "agent context: unknown member \"user\"  [invalid_argument]\n"},
    {"{\"user\":\"u\",\"user_id\":\"u\"}", "agent context: unknown member \"user\"  [invalid_argument]\n"},
    {"{\"user_id\":7}", "agent context: user_id must be a string, not integer  [invalid_argument]\n"},
    {"{\"is_eval\":\"true\"}", "agent context: is_eval must be a boolean, not string  [invalid_argument]\n"},
    {"{\"is_eval\":null}", "agent context: is_eval must be a boolean, not null  [invalid_argument]\n"},
    {"{\"session_id\":\"a\\u0000b\"}", "agent context: session_id has a NUL  [invalid_argument]\n"},
    {"{\"user_name\":\"a\\nAgent: b\"}", "agent context: user_name has a control character at byte 1  "
                                         "[invalid_argument]\n"},
    {"{\"user_name\":\"a\\u2028b\"}", "agent context: user_name has a control character at byte 1  "
                                      "[invalid_argument]\n"},
    {"{\"user_profile_hint\":\"a\\u001bb\"}", "agent context: user_profile_hint has a control character at byte 1  "
                                              "[invalid_argument]\n"},
};

START_TEST(what_is_wrong_is_named)
{
    json_object *json = rv_kit_json(wrong[_i].json);
    struct rv_context c = {.user_id = "kept"};
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_context_read_json(json, &c, &err), RV_E_INVALID);
    ck_assert_str_eq(c.user_id, "kept");
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, wrong[_i].error);
    free(text);
    json_object_put(json);
}
END_TEST

START_TEST(a_text_may_be_as_long_as_its_limit)
{
    char text[RV_CONTEXT_MAX_HINT + 2];
    struct rv_context c = {.tenant_id = "default"};

    memset(text, 'a', sizeof text);
    text[RV_CONTEXT_MAX_TEXT] = '\0';
    c.user_id = text;
    ck_assert_int_eq(rv_context_check(&c, NULL), 0);
    text[RV_CONTEXT_MAX_TEXT] = 'a';
    text[RV_CONTEXT_MAX_HINT] = '\0';
    ck_assert_int_eq(rv_context_check(&c, NULL), RV_E_INVALID);
    c.user_id = NULL;
    c.user_profile_hint = text;
    ck_assert_int_eq(rv_context_check(&c, NULL), 0);
    text[RV_CONTEXT_MAX_HINT] = 'a';
    text[RV_CONTEXT_MAX_HINT + 1] = '\0';
    ck_assert_int_eq(rv_context_check(&c, NULL), RV_E_INVALID);
    c.user_profile_hint = "\xff";
    ck_assert_int_eq(rv_context_check(&c, NULL), RV_E_INVALID);
}
END_TEST

static const struct rv_context parent = {.user_id = "u",
                                         .tenant_id = "t",
                                         .session_id = "s",
                                         .default_model = "p:m",
                                         .agent_schema_uri = "a",
                                         .is_eval = true,
                                         .client_id = "cli",
                                         .user_profile_hint = "h",
                                         .user_email = "e",
                                         .user_name = "n"};

static const struct {
    const char *agent, *model, *want_agent, *want_model;
} children[] = {
    {NULL, NULL, "a", "p:m"}, {"b", NULL, "b", "p:m"}, {NULL, "p:n", "a", "p:n"},
    {"b", "p:n", "b", "p:n"}, {"", "", "a", "p:m"},
};

/* Proves remlight.1/child: A child's context is its parent's with another agent and model */
START_TEST(a_child_is_its_parent_with_another_agent_and_model)
{
    struct rv_context child = rv_context_child(&parent, children[_i].agent, children[_i].model), want = parent;
    char *text = text_of_context(&child), *wanted;

    want.agent_schema_uri = children[_i].want_agent;
    want.default_model = children[_i].want_model;
    wanted = text_of_context(&want);
    ck_assert_str_eq(text, wanted);
    free(text);
    free(wanted);
}
END_TEST

/* What follows a delegation, however it ended, goes on with the context it had: there is only the value it holds. */
static void delegate(const struct rv_context *from, int depth, bool fails)
{
    char *before = text_of_context(from), *after;
    char name[] = {(char)('0' + depth), '\0'};
    struct rv_context child = rv_context_child(from, name, depth % 2 ? name : NULL);

    if (depth > 0) {
        delegate(&child, depth - 1, fails);
        ck_assert_str_eq(child.agent_schema_uri, name);
        child.user_id = "somebody else"; /* even a child that forgets itself */
        child = (struct rv_context){0};
        if (!fails)
            delegate(from, depth - 1, true);
    }
    after = text_of_context(from);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}

/* Proves remlight.2: A scope ends with its context restored: contexts are values, and none is ever changed */
START_TEST(nested_children_never_change_their_parents)
{
    delegate(&parent, 5, false);
    delegate(&parent, 5, true);
}
END_TEST

TCase *context_case(void)
{
    TCase *tc = tcase_create("context");

    tcase_add_loop_test(tc, what_is_read_is_written_again, 0, RV_COUNT(good));
    tcase_add_loop_test(tc, what_is_wrong_is_named, 0, RV_COUNT(wrong));
    tcase_add_test(tc, a_text_may_be_as_long_as_its_limit);
    tcase_add_loop_test(tc, a_child_is_its_parent_with_another_agent_and_model, 0, RV_COUNT(children));
    tcase_add_test(tc, nested_children_never_change_their_parents);
    return tc;
}
