/* A context from headers (remlight 1), and who wins where they and the authentication differ (remlight 19, row 11). */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/context/suites.h"

#define MAX_HEADERS 12

static const struct {
    const char *headers[2 * MAX_HEADERS]; /* name, value, ... */
    const char *model, *user, *tenant, *email;
    const char *want;
} good[] = {
    {{NULL}, NULL, NULL, NULL, NULL, "{\"tenant_id\":\"default\"}"},
    {{NULL}, "p:m", NULL, NULL, NULL, "{\"tenant_id\":\"default\",\"default_model\":\"p:m\"}"},
    {{"X-User-Id", "u", "X-Tenant-Id", "t", "X-Session-Id", "s", "X-Model-Name", "q:n", "X-Agent-Schema", "a",
      "X-Is-Eval", "yes", "X-Client-Id", "web", "X-User-Email", "a@b.c", "X-User-Name", "Zo\xc3\xab"},
     "p:m",
     NULL,
     NULL,
     NULL,
     "{\"user_id\":\"u\",\"tenant_id\":\"t\",\"session_id\":\"s\",\"default_model\":\"q:n\",\"agent_schema_uri\":\"a\","
     "\"client_id\":\"web\",\"user_email\":\"a@b.c\",\"user_name\":\"Zo\xc3\xab\",\"is_eval\":true}"},
    /* names without regard to case, values as they are */
    {{"x-uSER-iD", "U", "X-TENANT-ID", " t "}, NULL, NULL, NULL, NULL, "{\"user_id\":\"U\",\"tenant_id\":\" t \"}"},
    /* an empty value is none */
    {{"X-User-Id", "", "X-Tenant-Id", "", "X-Model-Name", "", "X-Session-Id", "", "X-Is-Eval", ""},
     "p:m",
     NULL,
     NULL,
     NULL,
     "{\"tenant_id\":\"default\",\"default_model\":\"p:m\"}"},
    {{"X-User-Id", "", "X-User-Id", "u", "X-User-Id", "", "X-User-Id", "u"},
     NULL,
     NULL,
     NULL,
     NULL,
     "{\"user_id\":\"u\",\"tenant_id\":\"default\"}"},
    /* who was authenticated wins for the user and for the tenant */
    {{"X-User-Id", "u", "X-Tenant-Id", "t"}, NULL, "v", "w", NULL, "{\"user_id\":\"v\",\"tenant_id\":\"w\"}"},
    {{"X-User-Id", "u", "X-Tenant-Id", "t"}, NULL, "v", "", NULL, "{\"user_id\":\"v\",\"tenant_id\":\"t\"}"},
    {{"X-User-Id", "u", "X-Tenant-Id", "t"}, NULL, "", "w", NULL, "{\"user_id\":\"u\",\"tenant_id\":\"w\"}"},
    {{NULL}, NULL, "v", "w", NULL, "{\"user_id\":\"v\",\"tenant_id\":\"w\"}"},
    {{"X-User-Id", "u", "X-User-Email", "x@y.z"},
     NULL,
     NULL,
     NULL,
     "Alice@Example.com",
     "{\"user_id\":\"edabafbb-61ad-51d6-9fd8-e976c892a731\",\"tenant_id\":\"default\",\"user_email\":\"Alice@Example."
     "com\"}"},
    {{"X-User-Email", "x@y.z"},
     NULL,
     "v",
     NULL,
     "a@b.c",
     "{\"user_id\":\"v\",\"tenant_id\":\"default\",\"user_"
     "email\":\"a@b.c\"}"},
    {{"X-User-Email", "x@y.z"}, NULL, "v", NULL, NULL, "{\"user_id\":\"v\",\"tenant_id\":\"default\"}"},
    /* what is none of ours is nobody's business */
    {{"X-Trace-Id", "\xff\n", "X-User", "u"}, NULL, NULL, NULL, NULL, "{\"tenant_id\":\"default\"}"},
};

static size_t fill(const char *const texts[], struct rv_context_header out[MAX_HEADERS])
{
    size_t n = 0;

    while (n < MAX_HEADERS && texts[2 * n]) {
        out[n] = (struct rv_context_header){rv_str_of(texts[2 * n]), rv_str_of(texts[2 * n + 1])};
        n++;
    }
    return n;
}

/* Proves remlight.1: The context: fields, headers, priorities
 * Proves remlight.19/11: Who was authenticated goes before headers, for the user and the tenant */
START_TEST(headers_and_authentication_become_a_context)
{
    struct rv_context_header headers[MAX_HEADERS];
    struct rv_context_source from = {.headers = headers,
                                     .n_headers = fill(good[_i].headers, headers),
                                     .default_model = good[_i].model,
                                     .auth_user_id = good[_i].user,
                                     .auth_tenant_id = good[_i].tenant,
                                     .auth_email = good[_i].email};
    rv_arena *room = rv_arena_new(1 << 16);
    struct rv_context c;
    char *text;

    ck_assert_int_eq(rv_context_read_headers(&from, room, &c, NULL), 0);
    text = text_of_context(&c);
    ck_assert_str_eq(text, good[_i].want);
    free(text);
    rv_arena_free(room);
}
END_TEST

static const struct {
    const char *value;
    bool is_eval;
} evals[] = {
    {"true", true}, {"TRUE", true}, {"1", true},   {"Yes", true},    {"yes", true},    {"", false},   {"on", false},
    {"y", false},   {"0", false},   {"01", false}, {" true", false}, {"true ", false}, {"no", false}, {"11", false},
};

/* Proves remlight.1 */
START_TEST(only_three_words_make_an_evaluation)
{
    struct rv_context_header header = {RV_STR_LIT("x-is-eval"), rv_str_of(evals[_i].value)};
    struct rv_context_source from = {.headers = &header, .n_headers = 1};
    rv_arena *room = rv_arena_new(1 << 16);
    struct rv_context c;

    ck_assert_int_eq(rv_context_read_headers(&from, room, &c, NULL), 0);
    ck_assert_int_eq(c.is_eval, evals[_i].is_eval);
    rv_arena_free(room);
}
END_TEST

static const struct {
    const char *headers[2 * MAX_HEADERS];
    const char *user;
    const char *error;
} wrong[] = {
    {{"X-User-Id", "a\nb"}, NULL, "request header: X-User-Id has a control character at byte 1  [invalid_argument]\n"},
    {{"X-User-Id", "\xff"}, NULL, "request header: X-User-Id is not UTF-8 at byte 0  [invalid_argument]\n"},
    {{"X-Session-Id", "a\xc2\x85"},
     NULL,
     "request header: X-Session-Id has a control character at byte 1  [invalid_argument]\n"},
    {{"X-User-Id", "a", "x-user-id", "b"},
     NULL,
     "request header X-User-Id is there twice, with different values  [invalid_argument]\n"},
    {{"X-Is-Eval", "1", "X-Is-Eval", "0"},
     NULL,
     "request header X-Is-Eval is there twice, with different values  [invalid_argument]\n"},
    {{NULL}, "a\tb", "authenticated user has a control character at byte 1  [invalid_argument]\n"},
};

START_TEST(a_header_that_is_no_text_or_not_clear_is_refused)
{
    struct rv_context_header headers[MAX_HEADERS];
    struct rv_context_source from = {
        .headers = headers, .n_headers = fill(wrong[_i].headers, headers), .auth_user_id = wrong[_i].user};
    rv_arena *room = rv_arena_new(1 << 16);
    struct rv_context c;
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_context_read_headers(&from, room, &c, &err), RV_E_INVALID);
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, wrong[_i].error);
    free(text);
    rv_arena_free(room);
}
END_TEST

START_TEST(a_header_may_be_as_long_as_its_limit)
{
    char value[RV_CONTEXT_MAX_TEXT + 1];
    struct rv_context_header header = {RV_STR_LIT("X-User-Id"), {value, sizeof value - 1}};
    struct rv_context_source from = {.headers = &header, .n_headers = 1};
    rv_arena *room = rv_arena_new(1 << 16);
    struct rv_context c;

    memset(value, 'a', sizeof value);
    ck_assert_int_eq(rv_context_read_headers(&from, room, &c, NULL), 0);
    ck_assert_uint_eq(strlen(c.user_id), sizeof value - 1);
    header.value.len++;
    ck_assert_int_eq(rv_context_read_headers(&from, room, &c, NULL), RV_E_INVALID);
    rv_arena_free(room);
}
END_TEST

TCase *headers_case(void)
{
    TCase *tc = tcase_create("headers");

    tcase_add_loop_test(tc, headers_and_authentication_become_a_context, 0, RV_COUNT(good));
    tcase_add_loop_test(tc, only_three_words_make_an_evaluation, 0, RV_COUNT(evals));
    tcase_add_loop_test(tc, a_header_that_is_no_text_or_not_clear_is_refused, 0, RV_COUNT(wrong));
    tcase_add_test(tc, a_header_may_be_as_long_as_its_limit);
    return tc;
}
