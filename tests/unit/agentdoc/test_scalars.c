/* Scalars are read as p8 1.1 says; what does not fit is a finding with its place (p8 W20). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agentdoc/suites.h"

#define HEAD "name: a\ndescription: d\n"

static const struct {
    const char *value;
    int got; /* RV_UNSET: refused */
} bools[] = {
    {"true", 1},
    {"false", 0},
    {"True", 1},
    {"FALSE", 0},
    {"1", 1},
    {"0", 0},
    {"'1'", 1},
    {"'0'", 0},
    {"yes", 1},
    {"No", 0},
    {"oN", 1},
    {"OFF", 0},
    {"t", 1},
    {"F", 0},
    {"y", 1},
    {"N", 0},
    {"'true'", 1},
    {"2", RV_UNSET},
    {"1.0", RV_UNSET},
    {"' yes'", RV_UNSET},
    {"maybe", RV_UNSET},
    {"''", RV_UNSET},
    {"[]", RV_UNSET},
    {"'yes\\0'", RV_UNSET},
};

/* Proves p8.1.1 */
START_TEST(booleans_have_words)
{
    char text[200];
    struct rv_agentdoc *d = NULL;
    char *findings;

    snprintf(text, sizeof text, HEAD "structured_output: %s\nproperties: {a: {}}\n", bools[_i].value);
    findings = findings_of(text, &d);
    if (bools[_i].got == RV_UNSET)
        ck_assert_msg(strstr(findings, "a.yaml:3:20: error: agent \"a\": structured_output must be a boolean"), "%s",
                      findings);
    else
        ck_assert_msg(d && d->structured_output == bools[_i].got, "%s: %s", text, findings);
    free(findings);
    rv_agentdoc_free(d);
}
END_TEST

static const struct {
    const char *value;
    int64_t got; /* 0: refused */
} ints[] = {
    {"7", 7},    {"'7'", 7},   {"' 7 '", 7}, {"'+7'", 7},    {"'007'", 7},
    {"7.0", 7},  {"'7.0'", 7}, {"7e0", 7},   {"'0.7e1'", 7}, {"'9223372036854775807'", INT64_MAX},
    {"7.5", 0},  {"'7.5'", 0}, {"true", 0},  {"'seven'", 0}, {"''", 0},
    {"-1", 0},   {"0", 0},     {"1e30", 0},  {"'1e30'", 0},  {"9223372036854775808", 0},
    {".inf", 0}, {"'inf'", 0}, {"'0x7'", 0}, {"'7 7'", 0},   {"'9223372036854775808'", 0},
    {"[7]", 0},  {"'-'", 0},   {"'.'", 0},   {"'7e'", 0},    {"'1_0'", 0},
};

/* Proves p8.1.1 */
START_TEST(integers_may_be_texts_and_whole_floats)
{
    char text[200];
    struct rv_agentdoc *d = NULL;
    char *findings;

    snprintf(text, sizeof text, HEAD "max_iterations: %s\n", ints[_i].value);
    findings = findings_of(text, &d);
    if (ints[_i].got == 0)
        ck_assert_msg(!d && strstr(findings, "a.yaml:3:17: error: agent \"a\": max_iterations must be"), "%s: %s", text,
                      findings);
    else
        ck_assert_msg(d && d->max_iterations == ints[_i].got, "%s: %s", text, findings);
    free(findings);
    rv_agentdoc_free(d);
}
END_TEST

static const struct {
    const char *value;
    double got; /* below 0: refused */
} numbers[] = {
    {"0.5", 0.5},    {"'0.5'", 0.5}, {"'.5'", 0.5}, {"'1.'", 1},  {"2", 2},       {"'2'", 2},
    {"'5e-1'", 0.5}, {"0", 0},       {"2.5", -1},   {"-0.1", -1}, {"true", -1},   {"warm", -1},
    {"'nan'", -1},   {".nan", -1},   {"'e1'", -1},  {"{}", -1},   {"'0.5x'", -1},
};

/* Proves p8.1.1 */
START_TEST(numbers_may_be_texts)
{
    char text[200];
    struct rv_agentdoc *d = NULL;
    char *findings;

    snprintf(text, sizeof text, HEAD "temperature: %s\n", numbers[_i].value);
    findings = findings_of(text, &d);
    if (numbers[_i].got < 0)
        ck_assert_msg(!d && strstr(findings, "a.yaml:3:14: error: agent \"a\": temperature must be"), "%s: %s", text,
                      findings);
    else
        ck_assert_msg(d && d->temperature == numbers[_i].got, "%s: %s", text, findings);
    free(findings);
    rv_agentdoc_free(d);
}
END_TEST

static const struct {
    const char *text, *want;
} faults[] = {
    {"name: 12\n", "1:7: error: agent: name must be a string, not integer 12\n  hint: put it in quotes: \"12\""},
    {"name: true\n", "name must be a string, not boolean"},
    {"name: null\n", "name must not be null"},
    {"name: ''\n", "name must be a plain name, not \"\""},
    {"name: a b\n", "name must be a plain name, not \"a b\"\n  hint: a name has letters, digits"},
    {"name: ../x\n", "name must be a plain name"}, /* remlight 19.24: names become files */
    {"name: .x\n", "name must be a plain name"},
    {"name: ä\n", "name must be a plain name"},
    {HEAD "version: 1.0\n", "3:10: error: agent \"a\": version must be a string, not number 1.0"},
    {HEAD "kind: null\n", "kind must not be null"},
    {HEAD "author: [x]\n", "author must be a string, not list"},
    {HEAD "system_prompt: \"a\\0b\"\n", "has a NUL character"},
    {"name: a\ndescription: null\n", "2:14: error: agent \"a\": description must not be null"},
    {"name: a\ndescription: 3\n", "description must be a string, not integer 3"},
    {HEAD "\"a\\0b\": 1\n", "has a NUL character"},
    {HEAD "limits: 3\n", "3:9: error: agent \"a\": limits must be a map, not integer"},
    {HEAD "limits: {request_limit: -1}\n", "3:25: error: agent \"a\": limits.request_limit must be 1 or more, not -1"},
    {HEAD "limits: {request_limit: 0}\n", "limits.request_limit must be 1 or more, not 0"},
    {HEAD "limits: {request_limit: x}\n", "limits.request_limit must be an integer, not string \"x\""},
    {HEAD "limits: {request_limt: 3}\n", "3:10: warning: agent \"a\": limits.request_limt has no effect\n"
                                         "  hint: did you mean \"request_limit\"?"},
    {HEAD "limits: {speed: 3}\n", "hint: the keys are request_limit, tool_calls_limit"},
    {HEAD "limits: {request_limit: null}\n", NULL},
    {HEAD "temperature: 2.1\n", "temperature must be 0 to 2, not 2.1"},
    {HEAD "max_tokens: 0\n", "max_tokens must be 1 or more, not 0"},
    {HEAD "routing_max_turns: 0\n", "routing_max_turns must be 1 or more, not 0"},
    {HEAD "routing_max_turns: null\n", "routing_max_turns must not be null"},
    {HEAD "routing_enabled: null\n", "routing_enabled must not be null"},
    {HEAD "context_token_budget: -1\n", "context_token_budget must be 0 or more, not -1"},
    {HEAD "always_include_last_messages: -1\n", "always_include_last_messages must be 0 or more, not -1"},
    {HEAD "routing: {agents: [b]}\n",
     "3:10: warning: agent \"a\": routing leads to the fallback alone without structured_output\n"
     "  hint: set structured_output: true"},
    {HEAD "routing: {agents: [b]}\nstructured_output: true\nproperties: {agnt: {type: string}}\n",
     "5:13: warning: agent \"a\": routing leads to the fallback alone: no property is called \"agent\""},
    {HEAD "routing: {agents: [b]}\nstructured_output: true\nproperties: {agent: {type: string}}\n", NULL},
    {HEAD "structured_output: true\nchained_tool: t\nproperties: {a: {}, b: {}, c: {}}\nchained_map: {a: x, b: x}\n",
     "6:24: warning: agent \"a\": chained_map: \"a\" and \"b\" both become \"x\", so one of them is lost\n"
     "  hint: give each member a parameter of its own"},
    {HEAD "structured_output: true\nchained_tool: t\nproperties: {a: {}, b: {}, c: {}}\nchained_map: {a: b}\n",
     "6:18: warning: agent \"a\": chained_map: \"a\" becomes \"b\", as a property is called, so one of them is lost"},
    {HEAD
     "structured_output: true\nchained_tool: t\nproperties: {a: {}, b: {}, c: {}}\nchained_map: {a: b, b: a, c: c}\n",
     NULL},
    {HEAD "moment_max_inject: 50\n", NULL},
    {HEAD "moment_max_inject: 51\n", "3:20: error: agent \"a\": moment_max_inject must be 50 or less, not 51"},
    {HEAD "moment_max_tokens: \"1048577\"\n", "moment_max_tokens must be 1048576 or less, not 1048577"},
    {HEAD "observation_mode: sinc\n", "observation_mode cannot be \"sinc\"\n  hint: did you mean \"sync\"?"},
    {HEAD "observation_mode: everything\n", "hint: one of: sync, disabled"},
    {HEAD "observation_mode: 1\n", "observation_mode must be a string"},
    {HEAD "replay: skp\n", "replay cannot be \"skp\"\n  hint: did you mean \"skip\"?"},
    {HEAD "history: all\n", "history cannot be \"all\"\n  hint: one of: none"},
    {HEAD "tags: x\n", "tags must be a list of strings, not string \"x\""},
    {HEAD "tags: [1]\n", "tags[0] must be a string, not integer 1"},
    {HEAD "tags: null\n", "tags must not be null"},
    {HEAD "model: ''\n", "3:8: error: agent \"a\": model must be provider:model, not \"\""},
    {HEAD "model: ':x'\n", "model must be provider:model"},
    {HEAD "model: 'x:'\n", "model must be provider:model"},
    {HEAD "model: 'x y'\n", "model must be provider:model"},
    {HEAD "model: 4\n", "model must be a string, not integer 4"},
    {HEAD "chained_tool: a b\nstructured_output: true\n", "chained_tool must be a plain name"},
    {HEAD "chained_tool: t\n", "3:15: warning: agent \"a\": chained_tool is only called with structured output"},
    {HEAD "structured_output: true\n", "warning: agent \"a\": structured_output has no effect without properties"},
    {HEAD "structured_output: true\nproperties: {}\n", "4:13: warning: agent \"a\": structured_output has no effect"},
    {HEAD "chained_map: {a: b}\nproperties: {a: {}}\n",
     "3:14: warning: agent \"a\": chained_map has no effect without"},
    {HEAD "chained_map: [a]\n", "chained_map must be a map, not list"},
    {HEAD "chained_map: {a: 1}\nproperties: {a: {}}\n", "chained_map.a must be a string, not integer 1"},
    {HEAD "chained_map: {a: ''}\nproperties: {a: {}}\n", "chained_map.a is empty"},
    {HEAD "chained_map: {momemts: x}\nproperties: {moments: {}}\n", /* p8 W37 */
     "3:15: error: agent \"a\": chained_map: no property is called \"momemts\"\n  hint: did you mean \"moments\"?"},
    {HEAD "routing: x\n", "routing must be a map, not string"},
    {HEAD "routing: {fallback: x}\n", "3:10: error: agent \"a\": routing.agents is required"},
    {HEAD "routing: {agents: []}\n", "routing.agents names no agent"},
    {HEAD "routing: {agents: [a b]}\n", "3:20: error: agent \"a\": routing.agents has \"a b\", which is not a name"},
    {HEAD "routing: {agents: x}\n", "routing.agents must be a list of strings"},
    {HEAD "routing: {agents: [x], fallback: 3}\n", "routing.fallback must be a string"},
    {HEAD "routing: {agents: [x], falback: y}\n", "routing.falback has no effect\n  hint: did you mean \"fallback\"?"},
    {HEAD "routing: {agents: [x, a]}\n", "3:23: error: agent \"a\": routing.agents has \"a\" itself: a router does not "
                                         "answer\n  hint: list the agents that answer"},
    {HEAD "routing: {agents: [x], fallback: a}\n",
     "3:34: error: agent \"a\": routing.fallback is \"a\" itself: a router does not answer\n  hint: name an agent that "
     "answers, or leave it out: then it is general"},
    {"name: general\ndescription: d\nrouting: {agents: [x]}\n",
     "3:10: error: agent \"general\": routing.fallback is general unless told, which is this agent"},
    {HEAD "additionalProperties: 3\n", "additionalProperties must be true, false or a schema, not integer 3"},
    {HEAD "x-number: .inf\n", "the number .inf has no JSON form"},
};

/* Proves p8.W37 */
START_TEST(a_wrong_value_is_a_finding_with_its_place)
{
    ck_findings(faults[_i].text, faults[_i].want);
}
END_TEST

static const struct {
    const char *name;
    bool is;
} names[] = {
    {"a", true},  {"A-b_c.d9", true}, {"9", true},    {"_x", true},   {"a..b", true}, {"", false},  {"-a", false},
    {".", false}, {"..", false},      {"a/b", false}, {"a b", false}, {"a\n", false}, {"é", false},
};

/* Proves remlight.19/24: Names of agents are one word */
START_TEST(names_are_one_word)
{
    ck_assert_int_eq(rv_agentdoc_is_name(rv_str_of(names[_i].name)), names[_i].is);
}
END_TEST

START_TEST(names_have_a_longest)
{
    char name[RV_AGENTDOC_MAX_NAME + 2];

    memset(name, 'a', sizeof name);
    ck_assert(rv_agentdoc_is_name((rv_str){name, RV_AGENTDOC_MAX_NAME}));
    ck_assert(!rv_agentdoc_is_name((rv_str){name, RV_AGENTDOC_MAX_NAME + 1}));
}
END_TEST

/* Proves p8.W20 */
START_TEST(every_fault_is_found_at_once)
{
    char *got = findings_of("name: a b\ndescription: null\ntemperature: 9\ntools: null\nlimits: 1\n", NULL);
    size_t n = 0;

    for (const char *p = got; (p = strstr(p, ": error: ")) != NULL; p++)
        n++;
    ck_assert_uint_eq(n, 5);
    free(got);
}
END_TEST

TCase *scalars_case(void)
{
    TCase *tc = tcase_create("scalars");

    tcase_add_loop_test(tc, booleans_have_words, 0, RV_COUNT(bools));
    tcase_add_loop_test(tc, integers_may_be_texts_and_whole_floats, 0, RV_COUNT(ints));
    tcase_add_loop_test(tc, numbers_may_be_texts, 0, RV_COUNT(numbers));
    tcase_add_loop_test(tc, a_wrong_value_is_a_finding_with_its_place, 0, RV_COUNT(faults));
    tcase_add_loop_test(tc, names_are_one_word, 0, RV_COUNT(names));
    tcase_add_test(tc, names_have_a_longest);
    tcase_add_test(tc, every_fault_is_found_at_once);
    return tc;
}
