/* Words, estimates and names of tools. */
#include <string.h>

#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

/* Proves p8-data.4.2: Types of messages */
START_TEST(words_are_read_back)
{
    for (int i = 0; i < RV_N_MESSAGE_TYPES; i++)
        ck_assert_int_eq(rv_message_type_of(rv_str_of(rv_message_type_text((enum rv_message_type)i))), i);
    for (int i = 0; i < RV_N_TURN_STATUSES; i++)
        ck_assert_int_eq(rv_turn_status_of(rv_str_of(rv_turn_status_text((enum rv_turn_status)i))), i);
    for (int i = 0; i < RV_N_REPLAY_POLICIES; i++)
        ck_assert_int_eq(rv_replay_policy_of(rv_str_of(rv_replay_policy_text((enum rv_replay_policy)i))), i);
    ck_assert_int_eq(rv_message_type_of(RV_STR_LIT("User")), RV_UNSET);
    ck_assert_int_eq(rv_message_type_of(RV_STR_LIT("")), RV_UNSET);
    ck_assert_int_eq(rv_replay_policy_of(RV_STR_LIT("synthesize")), RV_UNSET);
}
END_TEST

/* p8-data 4.4: a quarter of the code points, rounded down. */
static const struct {
    rv_str text;
    int64_t tokens;
} estimates[] = {
    {VIEW(""), 0},
    {VIEW("abc"), 0},
    {VIEW("abcd"), 1},
    {VIEW("hello world!"), 3},
    {VIEW("assistant text \xc3\xa9"), 4},                          /* 16 code points, 17 bytes */
    {VIEW("\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), 0}, /* 3 code points, 12 bytes */
    {VIEW("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97"), 1}, /* 4 code points, 12 bytes */
};
/* Proves p8-data.4.4: A token is four code points */
START_TEST(a_token_is_four_code_points)
{
    ck_assert_int_eq(rv_tokens_estimate(estimates[_i].text), estimates[_i].tokens);
}
END_TEST

/* remlight 14, rules 8 and 9 */
static const struct {
    rv_str name;
    const char *want;
} names[] = {
    {VIEW("search"), "search"},
    {VIEW("query-agent:search"), "query-agent_search"},
    {VIEW("a.b c/d"), "a_b_c_d"},
    {VIEW("\xc3\xa9t\xc3\xa9"), "__t__"},
    {VIEW("a\0b"), "a_b"},
    {VIEW(""), "unknown_tool"},
    {VIEW("0123456789012345678901234567890123456789012345678901234567890123"),
     "0123456789012345678901234567890123456789012345678901234567890123"},
    {VIEW("0123456789012345678901234567890123456789012345678901234567890123:"),
     "0123456789012345678901234567890123456789012345678901234567890123"},
};
/* Proves remlight.14 */
START_TEST(names_of_tools_become_legal)
{
    char got[65];

    memset(got, 'x', sizeof got);
    rv_message_make_tool_name(names[_i].name, got);
    ck_assert_str_eq(got, names[_i].want);
}
END_TEST

TCase *words_case(void)
{
    TCase *c = tcase_create("words");

    tcase_add_test(c, words_are_read_back);
    tcase_add_loop_test(c, a_token_is_four_code_points, 0, RV_COUNT(estimates));
    tcase_add_loop_test(c, names_of_tools_become_legal, 0, RV_COUNT(names));
    return c;
}
