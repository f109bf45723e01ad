/* Routing rules (rule 5.8, W31): first match, literal keys, equality by type and value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/agent/suites.h"

/* A rule `condition`/`value` (as YAML) against an output (as JSON). */
static const struct {
    const char *condition, *value, *output;
    bool matches;
} cases[] = {
    {"v", "1", "{'v':1}", true},
    {"v", "1", "{'v':1.0}", true},
    {"v", "1.0", "{'v':1}", true},
    {"v", "1.5", "{'v':1.5}", true},
    {"v", "1", "{'v':1.5}", false},
    {"v", "9007199254740993", "{'v':9007199254740992.0}", false},
    {"v", "-0.0", "{'v':0}", true},
    {"v", "1", "{'v':'1'}", false},
    {"v", "'1'", "{'v':1}", false},
    {"v", "'1'", "{'v':'1'}", true},
    {"v", "true", "{'v':true}", true},
    {"v", "true", "{'v':'true'}", false},
    {"v", "'true'", "{'v':true}", false},
    {"v", "true", "{'v':1}", false},
    {"v", "null", "{'v':null}", true},
    {"v", "null", "{}", false},
    {"v", "false", "{'v':null}", false},
    {"v", "''", "{'v':null}", false},
    {"v", "yes", "{'v':'yes'}", true},
    {"v", "yes", "{'v':'Yes'}", false},
    {"v", "\"e\\u0301\"", "{'v':'\xc3\xa9'}", false}, /* bytewise: no normalisation */
    {"a.b", "1", "{'a':{'b':1}}", false},
    {"a.b", "1", "{'a.b':1}", true},
    {"v", "[1, 2]", "{'v':[1,2.0]}", true},
    {"v", "[1, 2]", "{'v':[2,1]}", false},
    {"v", "[1, 2]", "{'v':[1]}", false},
    {"v", "[]", "{'v':{}}", false},
    {"v", "{a: 1, b: [x]}", "{'v':{'b':['x'],'a':1.0}}", true},
    {"v", "{a: 1}", "{'v':{'a':1,'b':2}}", false},
    {"v", "{a: null}", "{'v':{}}", false},
    {"other", "1", "{'v':1}", false},
};

/* Proves 5.8/match: A rule compares one literal top-level key of the stored output by type and value; numbers
 * across integer and float, lists and objects deeply
 * Proves 11.3: Integers stay integers; 1 equals 1.0 in routing and both are written as they were read
 * Proves W31: 1 equals 1.0 in rules; lists and objects compare deeply */
START_TEST(a_rule_matches_by_type_and_value)
{
    rv_buf yaml = RV_BUF_INIT(4096);
    json_object *output = rv_kit_json(cases[_i].output);
    struct rv_routed routed = {-9, RV_ROUTE_ERROR, -9};

    rv_buf_printf(&yaml,
                  "name: t\nagents:\n  - name: a\n    stage_order: 1\n    routing_rules:\n      - {condition: %s, "
                  "value: %s, target: c}\n"
                  "    default_next: b\n  - {name: b, stage_order: 2}\n  - {name: c, stage_order: 3}\n",
                  cases[_i].condition, cases[_i].value);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    ck_assert_int_eq(rv_route(&d->p->agents[0], output, NULL, &routed, NULL), 0);
    ck_assert_msg(routed.target == (cases[_i].matches ? 2 : 1), "%s: %s against %s", cases[_i].condition,
                  cases[_i].value, cases[_i].output);
    ck_assert_int_eq(routed.by, cases[_i].matches ? RV_ROUTE_RULE : RV_ROUTE_DEFAULT);
    ck_assert_int_eq(routed.rule, cases[_i].matches ? 0 : -1);
    json_object_put(output);
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

TCase *route_case(void)
{
    TCase *tc = tcase_create("route");

    tcase_add_loop_test(tc, a_rule_matches_by_type_and_value, 0, RV_COUNT(cases));
    return tc;
}
