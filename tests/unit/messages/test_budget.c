/* What has room: p8-data 5.1, over what is really sent (p8 W17). */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

#define MAX_ROWS 8
#define T(kind, text, n)                                                                                               \
    {                                                                                                                  \
        .type = (kind), .has_content = true, .content = VIEW(text), .token_count = (n)                                 \
    }
#define U(text, n) T("user", text, n)
#define A(text, n) T("assistant", text, n)
#define C(args)                                                                                                        \
    {                                                                                                                  \
        .type = "tool_call", .tool_calls = VIEW("{\"name\":\"f\",\"id\":\"c\",\"arguments\":" args "}")                \
    }
#define R(text, n)                                                                                                     \
    {                                                                                                                  \
        .type = "tool_response", .tool_calls = VIEW("{\"name\":\"f\",\"id\":\"c\"}"), .has_content = true,             \
        .content = VIEW(text), .token_count = (n)                                                                      \
    }
#define CR "assistant + c:f{}\ntool c f r\n"
#define NO RV_UNSET

static const struct {
    const char *what;
    struct rv_message rows[MAX_ROWS];
    int64_t max_tokens, max_messages;
    bool count_tool_rows;
    const char *want, *skipped; /* skipped NULL: the same */
    bool full;
} cases[] = {
    {"the sum may equal the budget", {U("a", 3), A("b", 4)}, 7, NO, false, "user a\nassistant b\n", NULL, false},
    {"the first that breaks it ends the walk", {U("a", 0), A("b", 4), U("c", 4)}, 7, NO, false, "user c\n", NULL, true},
    {"zero tokens beside a kept row", {U("a", 0), A("b", 7)}, 7, NO, false, "user a\nassistant b\n", NULL, false},
    {"a budget of nothing", {U("a", 0)}, 0, NO, false, "", NULL, true},
    {"a newest row beyond the budget", {U("a", 1), A("b", 8)}, 7, NO, false, "", NULL, true},
    {"no limit", {U("a", INT64_MAX), A("b", INT64_MAX)}, NO, NO, false, "user a\nassistant b\n", NULL, false},
    {"counts that do not add up",
     {U("a", INT64_MAX), A("b", INT64_MAX)},
     INT64_MAX,
     NO,
     false,
     "assistant b\n",
     NULL,
     true},
    {"no count is an estimate",
     {U("12345678", NO), A("1234567", NO)},
     3,
     NO,
     false,
     "user 12345678\nassistant 1234567\n",
     NULL,
     false},
    {"an estimate that breaks it",
     {U("12345678", NO), A("12345678", NO)},
     3,
     NO,
     false,
     "assistant 12345678\n",
     NULL,
     true},
    {"an observation with its words", {T("observation", "12", NO)}, 3, NO, false, "", NULL, true}, /* 16 code points */
    {"an observation that was counted",
     {T("observation", "12", 1)},
     3,
     NO,
     false,
     "user [Observation] 12\n",
     NULL,
     false},
    {"rows", {U("a", 1), A("b", 1), U("c", 1)}, NO, 2, false, "assistant b\nuser c\n", NULL, true},
    {"no rows", {U("a", 1)}, NO, 0, false, "", NULL, true},
    {"the tighter limit", {U("a", 1), A("b", 1), U("c", 1)}, 2, 1, false, "user c\n", NULL, true},
    {"the tighter limit, tokens", {U("a", 1), A("b", 1), U("c", 1)}, 1, 2, false, "user c\n", NULL, true},
    /* tools */
    {"a pair is arguments and result",
     {U("a", 0), C("{\"a\":12}"), R("r", 3)},
     5,
     NO,
     false,
     "user a\nassistant + c:f{\"a\":12}\ntool c f r\n",
     "user a\n",
     false},
    {"a pair that does not fit is left out whole",
     {U("a", 1), C("{\"a\":12}"), R("r", 4)},
     5,
     NO,
     false,
     "user a\n",
     NULL,
     false},
    {"a result that does not fit", {U("a", 5), C("{}"), R("r", 6)}, 5, NO, false, "user a\n", NULL, false},
    {"an older pair may fit",
     {C("{}"), R("r", 2), A("a", 1), C("{}"), R("r", 9), A("b", 1)},
     4,
     NO,
     false,
     "assistant + c:f{}\ntool c f r\nassistant a\nassistant b\n",
     "assistant a\nassistant b\n",
     false},
    {"what a pair would have taken is free again",
     {U("a", 5), C("{\"a\":12}"), R("r", 4)},
     5,
     NO,
     false,
     "user a\n",
     NULL,
     false},
    {"a pair is two rows",
     {U("a", 1), C("{}"), R("r", 0), A("b", 1)},
     NO,
     3,
     false,
     CR "assistant b\n",
     "user a\nassistant b\n",
     true},
    {"a pair with room for one row",
     {U("a", 1), C("{}"), R("r", 0), A("b", 1)},
     NO,
     2,
     false,
     "user a\nassistant b\n",
     NULL,
     true},
    {"both in one row are one",
     {U("a", 1), TOOL("{\"tool_name\":\"f\",\"tool_call_id\":\"c\"}", "1")},
     NO,
     1,
     false,
     "assistant + c:f{}\ntool c f 1\n",
     "user a\n",
     true},
    {"both in one row, counted",
     {U("a", 1), TOOL("{\"tool_name\":\"f\",\"tool_call_id\":\"c\",\"tool_arguments\":{\"a\":12}}", "1234")},
     2,
     NO,
     false,
     "user a\n",
     NULL,
     false},
    {"no result takes room, too", {C("{}")}, 8, NO, false, "", NULL, false},
    {"no result with room",
     {C("{}")},
     9,
     NO,
     false,
     "assistant + c:f{}\ntool! c f no result was recorded for this call\n",
     "",
     false},
    {"a result whose call is beyond the end",
     {C("{}"), A("b", 9), R("r", 1), A("d", 1)},
     5,
     NO,
     false,
     "assistant d\n",
     NULL,
     true},
    /* as p8 counts (Q6 and W17 are what is wrong with it) */
    {"rows that are not shown take nothing",
     {U("a", 1), T("think", "t", 9), T("x", "y", 9), A("b", 1)},
     2,
     2,
     false,
     "user a\nassistant b\n",
     NULL,
     true},
    {"as p8: they do", {U("a", 1), T("think", "t", 1), A("b", 1)}, 2, NO, true, "assistant b\n", NULL, true},
    {"as p8: they end the walk", {U("a", 0), T("think", "t", 9), A("b", 1)}, 2, NO, true, "assistant b\n", NULL, true},
    {"as p8: they are rows", {U("a", 0), T("think", "t", 0), A("b", 1)}, NO, 2, true, "assistant b\n", NULL, true},
    {"as p8: tools",
     {U("a", 1), C("{}"), R("r", 2), A("b", 1)},
     4,
     NO,
     true,
     "user a\n" CR "assistant b\n",
     "user a\nassistant b\n",
     false},
    {"as p8: tools beyond", {U("a", 0), C("{}"), R("r", 9), A("b", 1)}, 4, NO, true, "assistant b\n", NULL, true},
    {"as p8: no estimate for what has one", {U("a", 0), T("think", "12345678", NO)}, 1, NO, true, "", NULL, true},
};
/* Proves p8.W17: The budget is for what is shown
 * Proves p8-data.5.1: The newest rows that fit, by tokens, number and age
 * Proves remlight.19/8: A budget, from the newest back, that parts no pair */
START_TEST(the_budget_decides_what_is_shown)
{
    for (int policy = 0; policy < RV_N_REPLAY_POLICIES; policy++) {
        struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
        const char *want = policy == RV_REPLAY_SKIP && cases[_i].skipped ? cases[_i].skipped : cases[_i].want;
        size_t n = count_rows(cases[_i].rows, MAX_ROWS);
        rv_buf got = RV_BUF_INIT(10000), again = RV_BUF_INIT(10000);
        json_object *messages;

        o.policy = policy;
        o.max_tokens = cases[_i].max_tokens;
        o.max_messages = cases[_i].max_messages;
        o.count_tool_rows = cases[_i].count_tool_rows;
        messages = history_of(cases[_i].rows, n, &o, false, NULL);
        write_messages(messages, &got);
        ck_assert_msg(strcmp(rv_buf_cstr(&got), want) == 0, "%s: %s", cases[_i].what, rv_buf_cstr(&got));
        json_object_put(messages);
        messages = history_of(cases[_i].rows, n, &o, true, NULL); /* a reader that does not stop */
        write_messages(messages, &again);
        ck_assert_str_eq(rv_buf_cstr(&got), rv_buf_cstr(&again));
        json_object_put(messages);
        rv_buf_fini(&got);
        rv_buf_fini(&again);
    }
}
END_TEST

START_TEST(the_end_of_the_walk_is_told)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    size_t n = count_rows(cases[_i].rows, MAX_ROWS), n_read = 0;
    rv_history *h = NULL;
    bool full = false;

    o.max_tokens = cases[_i].max_tokens;
    o.max_messages = cases[_i].max_messages;
    o.count_tool_rows = cases[_i].count_tool_rows;
    ck_assert_int_eq(rv_history_new("s", &o, &h, NULL), 0);
    for (n_read = 0; n_read < n && !full; n_read++)
        ck_assert_int_eq(rv_history_add(h, &cases[_i].rows[n - 1 - n_read], &full, NULL), 0);
    ck_assert_int_eq(full, cases[_i].full);
    rv_history_free(h);
}
END_TEST

/* W17: of a text that is shortened only what is left counts. */
START_TEST(a_shortened_text_counts_as_it_is_shown)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    struct rv_message rows[] = {U("u", 0), A("", 2500), U("v", 0)};
    char text[10001];
    json_object *messages;

    memset(text, 'x', 10000);
    rows[1].content = (rv_str){text, 10000};
    o.always_last = 1;
    o.max_tokens = (400 + 69 + 15) / 4;
    messages = history_of(rows, 3, &o, false, NULL);
    ck_assert_uint_eq(json_object_array_length(messages), 3);
    json_object_put(messages);
    o.max_tokens--;
    messages = history_of(rows, 3, &o, false, NULL);
    ck_assert_uint_eq(json_object_array_length(messages), 1);
    json_object_put(messages);
}
END_TEST

/* p8-data 5.3: the newest that are never shortened are those that are shown. */
START_TEST(a_pair_that_is_left_out_is_none_of_the_newest)
{
    struct rv_message rows[] = {A("", 0), C("{\"a\":12}"), R("r", 200), A("b", 0)};
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;

    o.always_last = 2;
    for (int fits = 0; fits < 2; fits++) {
        char text[601];
        json_object *messages;
        const char *content = NULL;
        memset(text, 'x', 600);
        rows[0].content = (rv_str){text, 600};
        rows[0].token_count = 0;
        o.max_tokens = fits ? 400 : 200;
        messages = history_of(rows, 4, &o, false, NULL);
        ck_assert_uint_eq(json_object_array_length(messages), fits ? 3 : 2);
        ck_assert(rv_json_get_text(json_object_array_get_idx(messages, 0), "content", &content));
        ck_assert_int_eq(strlen(content) == 600, !fits);
        json_object_put(messages);
    }
}
END_TEST

/* Proves p8-data.5.1 */
START_TEST(older_rows_are_not_looked_at)
{
    struct rv_message rows[] = {U("a", 1), C("{}"), R("r", 1), U("b", 1)};
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    static const char *const want[] = {"user a\n" CR "user b\n", CR "user b\n", "user b\n", "user b\n", ""};

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        rows[i].created_us = 10 * ((int64_t)i + 1);
    for (size_t i = 0; i < RV_COUNT(want); i++) {
        rv_buf got = RV_BUF_INIT(10000);
        json_object *messages;
        size_t n_read;
        o.since_us = 10 * ((int64_t)i + 1);
        messages = history_of(rows, 4, &o, false, &n_read);
        write_messages(messages, &got);
        ck_assert_str_eq(rv_buf_cstr(&got), want[i]);
        ck_assert_uint_eq(n_read, i == 0 ? 4 : 5 - i);
        json_object_put(messages);
        rv_buf_fini(&got);
    }
}
END_TEST

/* What does not fit is not kept: a long session costs no more than its budget. */
/* Proves p8-data.5.1 */
START_TEST(a_long_session_is_read_only_as_far_as_it_is_shown)
{
    enum { N = 10000 };
    struct rv_message *rows = calloc(N, sizeof *rows);
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    size_t n_read;
    json_object *messages;

    ck_assert_ptr_nonnull(rows);
    for (size_t i = 0; i < N; i++)
        rows[i] = (struct rv_message)U("a", 100);
    messages = history_of(rows, N, &o, false, &n_read);
    ck_assert_uint_eq(json_object_array_length(messages), 80);
    ck_assert_uint_eq(n_read, 81);
    json_object_put(messages);
    free(rows);
}
END_TEST

TCase *budget_case(void)
{
    TCase *c = tcase_create("budget");

    tcase_add_loop_test(c, the_budget_decides_what_is_shown, 0, RV_COUNT(cases));
    tcase_add_loop_test(c, the_end_of_the_walk_is_told, 0, RV_COUNT(cases));
    tcase_add_test(c, a_shortened_text_counts_as_it_is_shown);
    tcase_add_test(c, a_pair_that_is_left_out_is_none_of_the_newest);
    tcase_add_test(c, older_rows_are_not_looked_at);
    tcase_add_test(c, a_long_session_is_read_only_as_far_as_it_is_shown);
    return c;
}
