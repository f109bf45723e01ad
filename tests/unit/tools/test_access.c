/* Rule 6.2: every access level, with every kind of whitelist, for every risk. W34: nothing is allowed by omission. */
#include "coreengine/tools/tools.h"
#include "tests/unit/tools/suites.h"

enum list { NO_LIST, EMPTY_LIST, LISTED, OTHERS_LISTED, N_LISTS };

static struct rv_str_list whitelist(enum list kind)
{
    static const char *listed[] = {"other", "probe"}, *others[] = {"other", "prob", "probes"};

    switch (kind) {
    case NO_LIST:
    case N_LISTS:
        break;
    case EMPTY_LIST:
        return (struct rv_str_list){.is_set = true};
    case LISTED:
        return (struct rv_str_list){.items = listed, .n = 2, .is_set = true};
    case OTHERS_LISTED:
        return (struct rv_str_list){.items = others, .n = 3, .is_set = true};
    }
    return (struct rv_str_list){.is_set = false};
}

/* What the level alone lets through, by risk in the order of the enum: read_only write destructive low medium high
 * critical, then an unset risk, then an unknown tool. */
static const struct {
    int access;
    bool by_risk[RV_N_RISK + 2];
} levels[] = {
    {RV_ACCESS_NONE, {0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {RV_ACCESS_READ, {1, 0, 0, 1, 0, 0, 0, 0, 1}},
    {RV_ACCESS_WRITE, {1, 1, 0, 1, 1, 0, 0, 1, 1}},
    {RV_ACCESS_ALL, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
};

static bool allowed(int access, enum list kind, int risk_column, const char **why)
{
    struct rv_tool_info info = {.name = "probe", .risk = risk_column < RV_N_RISK ? risk_column : RV_UNSET};
    struct rv_str_list list = whitelist(kind);

    return rv_tool_is_allowed(access, &list, RV_STR_LIT("probe"), risk_column <= RV_N_RISK ? &info : NULL, why);
}

/* Proves 6.2/none: Access none allows no tool, whitelisted or not
 * Proves 6.2/all: Access all allows every tool that the whitelist, if there is one, lists
 * Proves 6.2/read: Access read allows read_only and low tools that the whitelist, if there is one, lists
 * Proves 6.2/write: Access write adds write and medium tools, never destructive, high or critical ones
 * Proves 6.2/whitelist: An empty whitelist allows nothing
 * Proves W34: read and write are enforced, unset access means nothing, all respects the whitelist
 * Proves 10/access */
START_TEST(access_level_and_whitelist_both_have_to_agree)
{
    for (int risk = 0; risk < RV_N_RISK + 2; risk++) {
        for (int kind = 0; kind < N_LISTS; kind++) {
            bool list_agrees = kind == NO_LIST || kind == LISTED;
            const char *why = "not written";
            bool got = allowed(levels[_i].access, (enum list)kind, risk, &why);
            ck_assert_msg(got == (levels[_i].by_risk[risk] && list_agrees), "access %d, risk %d, list %d: %d",
                          levels[_i].access, risk, kind, got);
            ck_assert_msg(got == !why, "a reason comes with a denial only");
        }
    }
}
END_TEST

/* Proves 6.2/unset: Unset access allows nothing without a whitelist, and exactly the listed tools with one
 * Proves 6.2/whitelist, W34 */
START_TEST(unset_access_allows_exactly_what_a_whitelist_lists)
{
    for (int risk = 0; risk < RV_N_RISK + 2; risk++) {
        ck_assert(!allowed(RV_UNSET, NO_LIST, risk, NULL));
        ck_assert(!allowed(RV_UNSET, EMPTY_LIST, risk, NULL));
        ck_assert(!allowed(RV_UNSET, OTHERS_LISTED, risk, NULL));
        ck_assert(allowed(RV_UNSET, LISTED, risk, NULL));
    }
}
END_TEST

START_TEST(no_whitelist_at_all_is_an_unset_one)
{
    struct rv_tool_info info = {.name = "probe", .risk = RV_RISK_READ_ONLY};

    ck_assert(rv_tool_is_allowed(RV_ACCESS_READ, NULL, RV_STR_LIT("probe"), &info, NULL));
    ck_assert(!rv_tool_is_allowed(RV_UNSET, NULL, RV_STR_LIT("probe"), &info, NULL));
}
END_TEST

START_TEST(access_outside_the_list_allows_nothing)
{
    ck_assert(!allowed(RV_N_ACCESS, NO_LIST, RV_RISK_READ_ONLY, NULL));
    ck_assert(!allowed(77, LISTED, RV_RISK_READ_ONLY, NULL));
}
END_TEST

/* Proves 6.2/why: A denial says which of the rules it was */
START_TEST(denial_says_which_rule_it_was)
{
    static const struct {
        int access;
        enum list kind;
        int risk;
        const char *why;
    } cases[] = {
        {RV_ACCESS_NONE, LISTED, RV_RISK_READ_ONLY, "tool_access is none"},
        {RV_ACCESS_READ, NO_LIST, RV_RISK_WRITE, "tool_access is read and the tool does more than read"},
        {RV_ACCESS_WRITE, NO_LIST, RV_RISK_HIGH, "tool_access is write and the tool may destroy"},
        {RV_ACCESS_ALL, OTHERS_LISTED, RV_RISK_LOW, "allowed_tools does not list it"},
        {RV_UNSET, NO_LIST, RV_RISK_LOW, "neither tool_access nor allowed_tools is set"},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        const char *why = NULL;
        ck_assert(!allowed(cases[i].access, cases[i].kind, cases[i].risk, &why));
        ck_assert_str_eq(why, cases[i].why);
    }
}
END_TEST

TCase *access_case(void)
{
    TCase *tc = tcase_create("access");

    tcase_add_loop_test(tc, access_level_and_whitelist_both_have_to_agree, 0, (int)RV_COUNT(levels));
    tcase_add_test(tc, unset_access_allows_exactly_what_a_whitelist_lists);
    tcase_add_test(tc, no_whitelist_at_all_is_an_unset_one);
    tcase_add_test(tc, access_outside_the_list_allows_nothing);
    tcase_add_test(tc, denial_says_which_rule_it_was);
    return tc;
}
