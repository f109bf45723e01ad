/* What definitions mean: risk (W02), effect class (2.2), prompt lines (section 10), the empty catalogue. */
#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

/* Proves 6.3/unset-risk: A tool without a risk counts as write
 * Proves W02 */
START_TEST(unset_risk_counts_as_write)
{
    struct rv_tool_info info = {.name = "t", .risk = RV_UNSET, .effect = RV_UNSET};

    ck_assert_int_eq(rv_tool_risk(&info), RV_RISK_WRITE);
    ck_assert_int_eq(rv_tool_effect(&info), RV_EFFECT_NON_IDEMPOTENT);
}
END_TEST

static const struct {
    int risk;
    enum rv_effect_class effect;
    bool confirm;
} risks[] = {
    {RV_RISK_READ_ONLY, RV_EFFECT_SAFE, false},         {RV_RISK_WRITE, RV_EFFECT_NON_IDEMPOTENT, false},
    {RV_RISK_DESTRUCTIVE, RV_EFFECT_IDEMPOTENT, true},  {RV_RISK_LOW, RV_EFFECT_NON_IDEMPOTENT, false},
    {RV_RISK_MEDIUM, RV_EFFECT_NON_IDEMPOTENT, false},  {RV_RISK_HIGH, RV_EFFECT_NON_IDEMPOTENT, true},
    {RV_RISK_CRITICAL, RV_EFFECT_NON_IDEMPOTENT, true},
};

/* Proves 2.2/effect: The effect class follows from the risk: read_only is safe, destructive is idempotent,
 * everything else (an unset risk too) is non_idempotent; a stated class wins
 * Proves 2.2/confirm: Destructive, high and critical tools need confirmation, the other risks do not
 * Proves W02 */
START_TEST(risk_gives_effect_class_and_confirmation)
{
    struct rv_tool_info info = {.name = "t", .risk = risks[_i].risk, .effect = RV_UNSET};

    ck_assert_int_eq(rv_tool_risk(&info), risks[_i].risk);
    ck_assert_int_eq(rv_tool_effect(&info), risks[_i].effect);
    ck_assert_int_eq(rv_risk_needs_confirmation(rv_tool_risk(&info)), risks[_i].confirm);
}
END_TEST

/* Proves 2.2/effect */
START_TEST(stated_effect_wins_over_the_risk)
{
    struct rv_tool_info info = {.name = "t", .risk = RV_RISK_WRITE, .effect = RV_EFFECT_SAFE};

    ck_assert_int_eq(rv_tool_effect(&info), RV_EFFECT_SAFE);
}
END_TEST

static const struct {
    const char *input, *description, *want;
} lines[] = {
    {NULL, "Say hello", "- t(): Say hello"},
    {"{}", NULL, "- t()"},
    {"{'properties':{'path':{'type':'string'},'limit':{'type':'integer'},'deep':{'type':'boolean'},"
     "'share':{'type':'number'}},'required':['path','share']}",
     "Search", "- t(path: string, limit?: int, deep?: bool, share: float): Search"},
    {"{'properties':{'kind':{'enum':['a','b']},'names':{'type':'array','items':{'type':'string'}},"
     "'other':{'type':'array'},'all':true,'map':{'type':'object'}},'required':['kind','names','other','all','map']}",
     "", "- t(kind: \"a\"|\"b\", names: string_list, other: array, all: any, map: object)"},
    {"{'properties':{'n':{'type':'integer','default':3}},'required':['n']}", "d", "- t(n?: int): d"},
    {"{'properties':{'n':{'type':['integer','null']},'s':{'type':['null','string']},'l':{'type':['array','null'],"
     "'items':{'type':'string'}},'u':{'type':['integer','string']},'z':{'type':['null']},'e':{'type':[]}},"
     "'required':['n','u','z','e']}",
     "d", "- t(n: integer?, s?: string?, l?: string_list?, u: any, z: null, e: any): d"},
};

/* Proves 10/catalogue-line: A prompt shows a tool in one line with its parameters, their types, and which are
 * optional */
START_TEST(prompt_line_shows_parameters_with_types)
{
    json_object *input = lines[_i].input ? rv_kit_json(lines[_i].input) : NULL;
    struct rv_tool_info info = {.name = "t", .description = lines[_i].description, .input_json = input};
    rv_buf b = RV_BUF_INIT(1000);

    rv_tool_write_line(&info, &b);
    ck_assert_int_eq(rv_buf_check(&b, "line", NULL), 0);
    ck_assert_str_eq(b.ptr, lines[_i].want);
    rv_buf_fini(&b);
    json_object_put(input);
}
END_TEST

START_TEST(empty_catalog_knows_nothing)
{
    const struct rv_catalog *c = &rv_catalog_empty;

    ck_assert_ptr_null(c->tool(c->self, RV_STR_LIT("x")));
    ck_assert_ptr_null(c->entry(c->self, RV_NAME_HOOK, RV_STR_LIT("x.y")));
    ck_assert_ptr_null(c->prompt(c->self, RV_STR_LIT("x")));
}
END_TEST

TCase *catalog_case(void)
{
    TCase *tc = tcase_create("catalog");

    tcase_add_test(tc, unset_risk_counts_as_write);
    tcase_add_loop_test(tc, risk_gives_effect_class_and_confirmation, 0, (int)RV_COUNT(risks));
    tcase_add_test(tc, stated_effect_wins_over_the_risk);
    tcase_add_loop_test(tc, prompt_line_shows_parameters_with_types, 0, (int)RV_COUNT(lines));
    tcase_add_test(tc, empty_catalog_knows_nothing);
    return tc;
}
