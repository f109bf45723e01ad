/* Routing rules (rule 5.8, W31): first match, literal keys, equality by type and value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

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
    enum rv_route_by by = RV_ROUTE_ERROR;
    int target = -9, rule = -9;

    rv_buf_printf(&yaml,
                  "name: t\nagents:\n  - name: a\n    stage_order: 1\n    routing_rules:\n      - {condition: %s, "
                  "value: %s, target: c}\n"
                  "    default_next: b\n  - {name: b, stage_order: 2}\n  - {name: c, stage_order: 3}\n",
                  cases[_i].condition, cases[_i].value);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    ck_assert_int_eq(rv_route(&d->p->agents[0], output, NULL, &target, &by, &rule, NULL), 0);
    ck_assert_msg(target == (cases[_i].matches ? 2 : 1), "%s: %s against %s", cases[_i].condition, cases[_i].value,
                  cases[_i].output);
    ck_assert_int_eq(by, cases[_i].matches ? RV_ROUTE_RULE : RV_ROUTE_DEFAULT);
    ck_assert_int_eq(rule, cases[_i].matches ? 0 : -1);
    json_object_put(output);
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

static const char forks[] =
    "name: t\nagents:\n"
    "  - name: a\n    stage_order: 1\n    has_llm: true\n    model_role: r\n    routing_rules:\n"
    "      - {condition: v, value: 1, target: b}\n"
    "      - {condition: v, value: 1, target: c}\n"
    "      - {when: 'output.w > 2', target: c}\n"
    "      - {condition: v, value: 9, target: end}\n"
    "  - {name: b, stage_order: 2}\n  - {name: c, stage_order: 3}\n"
    "models: {r: 'scripted'}\n";

static const struct {
    const char *reply, *story;
} stories[] = {
    {"{'v':1,'w':9}", "routing_decision:a>b"}, /* the first match wins */
    {"{'v':2,'w':3}", "routing_decision:a>c"},      {"{'v':9,'w':0}", "routing_decision:a>end"},
    {"{'v':3,'w':0}", "routing_decision:a>end"},    /* none matches, no default: the end */
    {"{'v':3}", "stage_completed:a=error error:a"}, /* a condition that can not be decided fails the stage */
};

/* Proves 5.8/order: The first match wins, then default_next, then the end
 * Proves 10/one-order */
START_TEST(the_first_match_wins_and_the_end_is_the_last_resort)
{
    struct drive_answer answer = {"llm:a", stories[_i].reply, false, 0};
    struct drive *d = drive_new(forks, NULL, 0);

    drive_answers(d, &answer, 1);
    drive_run(d);
    ck_assert_msg(strstr(drive_story(d), stories[_i].story) != NULL, "%s", drive_story(d));
    drive_free(d);
}
END_TEST

START_TEST(a_failing_condition_is_a_processing_error_and_takes_the_output_back)
{
    struct drive *d = drive_new(forks, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "{'v':3}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"ProcessingError\"");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"tool_failed_fatally\"");
    ck_assert_str_eq(drive_state(d, "outputs"), "{}");
    drive_free(d);
}
END_TEST

/* Proves 5.8/match */
START_TEST(rules_consult_what_is_stored_at_the_output_key)
{
    struct drive *d =
        drive_new("name: t\nagents:\n  - name: a\n    stage_order: 1\n    output_key: out\n    post_process: x.post\n"
                  "    routing_rules:\n      - {condition: v, value: 1, target: b}\n"
                  "      - {condition: v, value: 2, target: c}\n"
                  "  - {name: b, stage_order: 2}\n  - {name: c, stage_order: 3}\n",
                  NULL, 0);

    DRIVE_ANSWERS(d, {"hook:x.post", "{'envelope':{'outputs':{'out':{'v':2}}}}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_msg(strstr(drive_story(d), "routing_decision:a>c") != NULL, "%s", drive_story(d));
    drive_free(d);
}
END_TEST

static const struct {
    const char *reply, *story, *error;
} functions[] = {
    {"{'next':'b'}", "routing_decision:a>b", NULL},
    {"{'next':'end'}", "routing_decision:a>end", NULL},
    {"{'next':'clarification'}", "interrupt_pending:a", NULL},
    {"{}", "routing_decision:a>c", NULL}, /* no opinion: the default */
    {"", "routing_decision:a>c", NULL},
    {"{'terminate':'enough'}", "done:terminated", NULL},
    {"{'break':'enough'}", "done:terminated", NULL},
    {"{'next':'nowhere'}", "done:failed", "ProcessingError"},
    {"{'next':''}", "done:failed", "ProcessingError"},
    {"[1]", "done:failed", "HookError"},
    {"no json", "done:failed", "HookError"},
    {"!:broken", "done:failed", "HookError"},
    {"!TimeoutError:late", "done:failed", "TimeoutError"},
};

/* Proves 10/functions: Routing functions choose the next stage, terminate, or leave it to the default; an unknown
 * stage is an error
 * Proves 5.2/garbage, 10/break */
START_TEST(a_routing_function_decides_or_fails_the_stage)
{
    struct drive_answer answer = {"route:x.where", functions[_i].reply, false, 0};
    struct drive *d =
        drive_new("name: t\nagents:\n  - {name: a, stage_order: 1, routing_function: x.where, default_next: c}\n"
                  "  - {name: b, stage_order: 2}\n  - {name: c, stage_order: 3}\n",
                  NULL, 0);

    drive_answers(d, &answer, 1);
    drive_run(d);
    ck_assert_msg(strstr(drive_story(d), functions[_i].story) != NULL, "%s: %s", functions[_i].reply, drive_story(d));
    if (functions[_i].error) {
        char want[64];
        snprintf(want, sizeof want, "\"%s\"", functions[_i].error);
        ck_assert_str_eq(drive_state(d, "errors.0.error_type"), want);
    }
    drive_free(d);
}
END_TEST

TCase *route_case(void)
{
    TCase *tc = tcase_create("route");

    tcase_add_loop_test(tc, a_rule_matches_by_type_and_value, 0, RV_COUNT(cases));
    tcase_add_loop_test(tc, the_first_match_wins_and_the_end_is_the_last_resort, 0, RV_COUNT(stories));
    tcase_add_test(tc, a_failing_condition_is_a_processing_error_and_takes_the_output_back);
    tcase_add_test(tc, rules_consult_what_is_stored_at_the_output_key);
    tcase_add_loop_test(tc, a_routing_function_decides_or_fails_the_stage, 0, RV_COUNT(functions));
    return tc;
}
