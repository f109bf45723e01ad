/* Names of outputs and of their fields in expressions and prompts: the whole print, with places, and what is right.
 */
#include "tests/unit/config/world.h"

#define HEAD "name: x\nmodels: {r: scripted}\nagents:\n"
/* Two stages: the shape of what `plan` makes is known, of what `free` makes it is not. */
#define SHAPED                                                                                                         \
    HEAD "  - {name: plan, has_llm: true, model_role: r, default_next: b, output_schema: {type: object, "              \
         "additionalProperties: false, properties: {goal: {}, steps: {}}}}\n"                                          \
         "  - {name: free, has_llm: true, model_role: r, output_schema: {type: object, properties: {goal: {}}}}\n"
#define RULE(when)   SHAPED "  - name: b\n    routing_rules: [{when: \"" when "\", target: end}]\n"
#define PROMPT(text) SHAPED "  - {name: b, has_llm: true, model_role: r, prompt_key: p}\nprompts:\n  p: \"" text "\"\n"

#define TEXT(more) HEAD "  - {name: t, has_llm: true, model_role: r, output_mode: text}\n" more

#define KEYS  "output keys: plan, free, b\n"
#define STEPS "fields: goal, steps\n"

static const struct {
    const char *text, *want;
} cases[] = {
    /* no such output */
    {RULE("outputs.plam.goal == 1"),
     "t.yaml:7:37: error: agent \"b\": rule 1: \"when\" names the output \"plam\", which no stage makes\n"
     "  hint: did you mean \"plan\"? " KEYS},
    {RULE("has(outputs.nope.goal)"), "t.yaml:7:41: error: agent \"b\": rule 1: \"when\" names the output \"nope\", "
                                     "which no stage makes\n  hint: " KEYS},
    {RULE("has(outputs.nope)"), "t.yaml:7:41: error: agent \"b\": rule 1: \"when\" names the output \"nope\", which no "
                                "stage makes\n  hint: " KEYS},
    {RULE("'nope' in outputs"), "t.yaml:7:29: error: agent \"b\": rule 1: \"when\" names the output \"nope\", which no "
                                "stage makes\n  hint: " KEYS},
    {RULE("true || outputs['no way'].x"), "t.yaml:7:45: error: agent \"b\": rule 1: \"when\" names the output \"no "
                                          "way\", which no stage makes\n  hint: " KEYS},
    /* the field of an output whose schema is closed */
    {RULE("outputs.plan.gaol == 1"),
     "t.yaml:7:37: warning: agent \"b\": rule 1: \"when\" names the field \"gaol\" of the output \"plan\", whose "
     "output_schema does not allow it\n  hint: did you mean \"goal\"? " STEPS},
    {RULE("has(outputs.plan) && outputs['plan']['zz'] == 1"),
     "t.yaml:7:58: warning: agent \"b\": rule 1: \"when\" names the field \"zz\" of the output \"plan\", whose "
     "output_schema does not allow it\n  hint: " STEPS},
    {HEAD "  - name: a\n    has_llm: true\n    model_role: r\n    output_schema: {type: object, additionalProperties: "
          "false, properties: {ok: {}}}\n    routing_rules:\n      - target: end\n        when: |\n          true ||\n"
          "            output.okay\n",
     "t.yaml:12:20: warning: agent \"a\": rule 1: \"when\" names the field \"okay\" of the output \"a\", whose "
     "output_schema does not allow it\n  hint: fields: ok\n"},
    /* what may be, or is asked for */
    {RULE("outputs.plan.goal == 1 && outputs.free.anything == 2 && outputs.b.anything == 3"), ""},
    {RULE("has(outputs.plan.gaol) && outputs.plan.gaol == 1"), ""},
    {RULE("'gaol' in outputs.plan"), ""},
    {RULE("outputs.exists(k, k == 'nope') || outputs.map(outputs, outputs).size() == 0"), ""},
    {RULE("'outputs.nope.x' == state.note || outputs[state.key].x == 1"), ""},
    {RULE("metadata.outputs.nope == 1 || envelope.raw_input == 'outputs.nope'"), ""},
    {SHAPED "  - {name: b, has_llm: true, model_role: r, output_schema: {type: object, additionalProperties: false, "
            "properties: {}, patternProperties: {'^x': {}}}, routing_rules: [{when: output.xyz, target: end}]}\n",
     ""},
    {SHAPED "  - {name: b, has_llm: true, model_role: r, output_schema: {type: object, additionalProperties: false}, "
            "post_process: c.h, routing_rules: [{when: output.xyz, target: end}]}\n",
     ""},
    {SHAPED "  - {name: b, has_llm: true, model_role: r, output_schema: {type: object, additionalProperties: false, "
            "properties: {}}, routing_rules: [{when: has(output.x) && output.x.y, target: end}]}\n",
     ""},
    /* prompts, by the same rules */
    {PROMPT("{{outputs.plan.gaol}} {{plan.gaol}}"),
     "t.yaml:8:7: warning: prompt \"p\": {{outputs.plan.gaol}} names the field \"gaol\" of the output \"plan\", whose "
     "output_schema does not allow it\n  hint: did you mean \"goal\"? " STEPS
     "t.yaml:8:29: warning: prompt \"p\": {{plan.gaol}} names the field \"gaol\" of the output \"plan\", whose "
     "output_schema does not allow it\n  hint: did you mean \"goal\"? " STEPS},
    {PROMPT("{{#outputs.nope.x}}a{{/outputs.nope.x}}"),
     "t.yaml:8:7: error: prompt \"p\": {{outputs.nope.x}} names the output \"nope\", which no stage makes\n"
     "  hint: " KEYS},
    {PROMPT(
         "{{#outputs.plan.gaol}}a{{/outputs.plan.gaol}} {{plan.gaol | default \\\"x\\\"}} {{plan.goal}} {{free.zz}}"),
     ""},
    /* a text has one field, whatever names it, unless a hook or a person adds to it */
    {TEXT("response: {output_key: t}\n"),
     "t.yaml:5:24: warning: response names the field \"final_response\" of the output \"t\", which is a text and has "
     "only \"response\"\n  hint: fields: response\n"},
    {TEXT("response: {output_key: t, field: answer}\n"),
     "t.yaml:5:34: warning: response names the field \"answer\" of the output \"t\", which is a text and has only "
     "\"response\"\n  hint: fields: response\n"},
    {TEXT("response: {output_key: t, field: response}\n"), ""},
    {TEXT("prompts: {p: '{{t.text}}'}\n"),
     "t.yaml:5:15: warning: prompt \"p\": {{t.text}} names the field \"text\" of the output \"t\", which is a text and "
     "has only \"response\"\n  hint: fields: response\n"},
    {HEAD "  - {name: t, has_llm: true, model_role: r, output_mode: text, post_process: c.h}\n"
          "response: {output_key: t, field: x}\n",
     ""},
    {HEAD "  - {name: t, has_llm: true, model_role: r, output_mode: text, strategy: planned, has_tools: true, "
          "allowed_tools: [z]}\n"
          "response: {output_key: t, field: x}\n",
     ""},
    {SHAPED "  - {name: b}\n"
            "response: {output_key: plan, field: gaol}\n",
     "t.yaml:7:37: warning: response names the field \"gaol\" of "
     "the output \"plan\", whose output_schema does not allow "
     "it\n  hint: did you mean \"goal\"? " STEPS},
    {SHAPED "  - {name: b}\n"
            "response: {output_key: free, field: x}\n",
     ""},
    /* what a stage looks for in its own output */
    {HEAD "  - {name: t, has_llm: true, model_role: r, output_mode: text, required_output_fields: [response, title]}\n",
     "t.yaml:4:99: error: agent \"t\": each visit fails: required_output_fields names \"title\" of an output which is "
     "a "
     "text and has only \"response\"\n  hint: fields: response\n"},
    {HEAD "  - {name: s, set: {a: '1'}, required_output_fields: [b], error_next: e}\n  - {name: e}\n",
     "t.yaml:4:55: warning: agent \"s\": each visit fails: required_output_fields names \"b\" of an output whose `set` "
     "does not make it\n  hint: fields: a\n"},
    {HEAD "  - {name: s, set: {a: '1'}, required_output_fields: [b], post_process: x.y}\n", ""},
    {HEAD "  - {name: s, set: {a: '1'}, routing_rules: [{condition: b, value: 1, target: end}, "
          "{condition: a, value: 1, target: end}]}\n",
     "t.yaml:4:46: warning: stage \"s\": rule 1 never matches: it tests the field \"b\" of an output whose `set` does "
     "not make it\n  hint: fields: a\n"},
    {HEAD "  - {name: s, has_llm: true, model_role: r, output_schema: {type: object, additionalProperties: false, "
          "properties: {v: {enum: [1, x]}}}, routing_rules: [{condition: v, value: 1.0, target: end}, "
          "{condition: v, value: y, target: end}]}\n",
     "t.yaml:4:195: warning: stage \"s\": rule 2 never matches: output_schema does not allow that value of \"v\"\n"
     "  hint: write one of the values of its enum\n"},
};

START_TEST(names_of_outputs_and_fields_are_compared_with_the_stages)
{
    expect_findings(cases[_i].text, cases[_i].want);
}
END_TEST

static bool no_file(void *self, const char *path, rv_str *out)
{
    (void)self, (void)path, (void)out;
    return false;
}

/* Nothing that was loaded once is refused later: a run goes on with the text that it began with. */
START_TEST(recorded_pipeline_with_an_unknown_output_still_loads)
{
    const struct rv_pipeline_opts opts = {.file = no_file};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(
        rv_pipeline_parse_with(&(const struct rv_pipeline_source){RV_STR_LIT(RULE("has(outputs.nope)")), "t.yaml", "."},
                               &opts, findings, &p, NULL),
        0);
    ck_assert_uint_eq(rv_findings_n(findings), 1);
    ck_assert_uint_eq(rv_findings_n_errors(findings), 0);
    ck_assert(p->is_sound);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

TCase *value_names_case(void)
{
    TCase *tc = tcase_create("value_names");

    tcase_add_loop_test(tc, names_of_outputs_and_fields_are_compared_with_the_stages, 0, RV_COUNT(cases));
    tcase_add_test(tc, recorded_pipeline_with_an_unknown_output_still_loads);
    return tc;
}
