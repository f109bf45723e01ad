/* What a script knows by name, and how it is held against a pipeline. */
#include "tests/unit/script/suites.h"

#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

static struct rv_pipeline *pipeline_of(const char *text)
{
    rv_findings *f = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_buf out = RV_BUF_INIT(1 << 16);

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), "p.yaml", ".", f, &p, NULL), 0);
    rv_findings_write_text(f, false, &out);
    ck_assert_msg(rv_findings_n_errors(f) == 0, "%s", rv_buf_cstr(&out));
    rv_buf_fini(&out);
    rv_findings_free(f);
    return p;
}

#define PIPELINE                                                                                                       \
    "name: p\nmodels: {default: scripted}\nagents:\n"                                                                  \
    "  - {name: plan, has_llm: true, model_role: default}\n"                                                           \
    "  - {name: act, has_tools: true, tool_access: read, allowed_tools: [look, find]}\n"                               \
    "  - {name: write}\n"

static const struct {
    const char *script, *findings;
} checks[] = {
    {"models: {plan: [{text: x}]}\nstages: {write: [{output: {}}]}\ntools: {look: [{result: {}}]}", ""},
    {"models: {plann: [{text: x}]}",
     "s.yaml:1:10: error: script: unknown stage \"plann\"\n  hint: did you mean \"plan\"?\n"},
    {"models: {write: [{text: x}]}",
     "s.yaml:1:10: warning: script: stage \"write\" asks no model\n  hint: has_llm: true makes it one\n"},
    {"stages: [{stage: nobody, output: {}}]", "s.yaml:1:10: error: script: unknown stage \"nobody\"\n"
                                              "  hint: stages: plan, act, write\n"},
    {"models: [{contains: x, text: y}]", ""},
    {"tools: {lok: [{result: {}}]}", "s.yaml:1:9: warning: script: no stage of the pipeline may call tool \"lok\"\n"},
    {"models: {plan: [{text: x, answered_by: default}]}", ""},
    {"models: {plan: [{text: y}, {text: x, answered_by: defalt}]}",
     "s.yaml:1:28: error: script: unknown model role \"defalt\"\n  hint: answered_by is a role of the pipeline's "
     "models\n"},
    {"tools: [{tool: look, stage: acct, result: {}}]",
     "s.yaml:1:9: error: script: unknown stage \"acct\"\n  hint: did you mean \"act\"?\n"},
};

START_TEST(names_that_the_pipeline_does_not_have_are_found)
{
    struct rv_pipeline *p = pipeline_of(PIPELINE);
    rv_script *s = script_of(checks[_i].script, NULL);
    rv_findings *f = rv_findings_new();
    rv_buf out = RV_BUF_INIT(1 << 16);

    rv_script_check(s, p, f);
    rv_findings_write_text(f, false, &out);
    ck_assert_str_eq(rv_buf_cstr(&out), checks[_i].findings);
    rv_buf_fini(&out);
    rv_findings_free(f);
    rv_script_free(s);
    rv_pipeline_free(p);
}
END_TEST

static const struct {
    const char *script;
    bool flags[3];
} stages[] = {
    {"models: {plan: [{text: x}]}", {false, false, false}},
    {"stages: {write: [{output: {}}], plan: [{error: x}]}", {true, false, true}},
    {"stages: [{stage: act, output: {}}, {stage: act, error: x}]", {false, true, false}},
};

START_TEST(scripted_stages_are_flagged)
{
    struct rv_pipeline *p = pipeline_of(PIPELINE);
    rv_script *s = script_of(stages[_i].script, NULL);
    bool flags[3] = {true, true, true};

    rv_script_mark_stages(s, p, flags);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(flags[i], stages[_i].flags[i]);
    rv_script_free(s);
    rv_pipeline_free(p);
}
END_TEST

/* graph 8.2: "sub/inner" is the stage `inner` of the pipeline that stage `sub` runs. */
START_TEST(scripted_stages_inside_of_stages_are_named)
{
    static const char *const scripts[] = {
        "stages: {a: [{output: {}}], sub/x: [{output: {}}], sub/gone: [{output: {}}]}",
        "stages: [{stage: sub/x, output: {}}, {stage: a, output: {}}]", "stages: {sub: [{output: {}}]}"};
    char *dir = rv_kit_tmpdir(), *file = rv_kit_path(dir, "in.yaml");
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    rv_kit_write(file, "name: in\nagents: [{name: x, set: {v: 1}}]\n");
    ck_assert_int_eq(
        rv_pipeline_parse(RV_STR_LIT("name: t\nagents: [{name: a, default_next: sub}, {name: sub, pipeline: "
                                     "in.yaml}]\n"),
                          "t.yaml", dir, findings, &p, NULL),
        0);
    ck_assert(p->is_sound);
    for (size_t i = 0; i < RV_COUNT(scripts); i++) {
        rv_script *s = script_of(scripts[i], NULL);
        json_object *names = NULL;

        ck_assert_int_eq(rv_script_find_inner_stages(s, p, &names, NULL), 0);
        ck_assert_uint_eq(names ? json_object_array_length(names) : 0, i < 2);
        ck_assert(!names || rv_str_is(rv_json_str(json_object_array_get_idx(names, 0)), "sub/x"));
        ck_assert_int_eq(rv_script_has_stage(s, RV_STR_LIT("sub/x")), i < 2);
        ck_assert(!rv_script_has_stage(s, RV_STR_LIT("x")));
        json_object_put(names);
        rv_script_free(s);
    }
    rv_pipeline_free(p);
    rv_findings_free(findings);
    free(file);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static const struct rv_tool_info known = {.name = "look", .risk = RV_RISK_WRITE, .effect = RV_UNSET};

static const struct rv_tool_info *known_tool(void *self, rv_str name)
{
    (void)self;
    return rv_str_is(name, "look") ? &known : NULL;
}

static const char *known_name(void *self, size_t i)
{
    static const char *const names[] = {"look", "other"};
    (void)self;
    return i < RV_COUNT(names) ? names[i] : NULL;
}

/* All names, with a blank behind each. */
static void want_names(const struct rv_catalog *c, const char *want)
{
    rv_buf names = RV_BUF_INIT(1 << 10);

    for (size_t i = 0; c->tool_name(c->self, i); i++)
        rv_buf_printf(&names, "%s ", c->tool_name(c->self, i));
    ck_assert_str_eq(rv_buf_cstr(&names), want);
    rv_buf_fini(&names);
}

START_TEST(a_catalog_names_the_tools_of_both)
{
    rv_script *s = script_of("tools: {peek: [{result: {}}], look: [{result: {}}]}", NULL);
    struct rv_catalog under = rv_catalog_empty;

    struct rv_catalog c = rv_script_catalog(s, &under);
    want_names(&c, "look peek ");
    under.tool_name = known_name;
    c = rv_script_catalog(s, &under);
    want_names(&c, "look peek look other ");
    rv_script_free(s);
}
END_TEST

START_TEST(tools_of_the_script_fill_the_gaps_of_a_catalog)
{
    rv_script *s = script_of("tools:\n  look: [{result: {}}]\n  plain: [{result: {}}]\n"
                             "  wipe: {risk: destructive, description: all gone, calls: [{result: {}}],\n"
                             "         input_schema: {type: object, required: [path]}}\n"
                             "  odd: {risk: write, effect: safe, calls: [{result: {}}]}\n",
                             NULL);
    struct rv_catalog under = rv_catalog_empty;
    size_t n;

    under.tool = known_tool;
    struct rv_catalog c = rv_script_catalog(s, &under);
    ck_assert_ptr_eq(c.tool(c.self, RV_STR_LIT("look")), &known);
    ck_assert_ptr_null(c.tool(c.self, RV_STR_LIT("none")));
    const struct rv_tool_info *plain = c.tool(c.self, RV_STR_LIT("plain"));
    ck_assert_int_eq(rv_tool_risk(plain), RV_RISK_READ_ONLY);
    ck_assert_int_eq(rv_tool_effect(plain), RV_EFFECT_SAFE);
    const struct rv_tool_info *wipe = c.tool(c.self, RV_STR_LIT("wipe"));
    ck_assert_int_eq(rv_tool_risk(wipe), RV_RISK_DESTRUCTIVE);
    ck_assert_int_eq(rv_tool_effect(wipe), RV_EFFECT_IDEMPOTENT);
    ck_assert_str_eq(wipe->description, "all gone");
    json_object *empty = json_object_new_object();
    ck_assert_int_eq(rv_schema_check(wipe->input, empty, NULL), RV_E_INVALID);
    json_object_put(empty);
    ck_assert_int_eq(rv_tool_effect(c.tool(c.self, RV_STR_LIT("odd"))), RV_EFFECT_SAFE);
    ck_assert(rv_script_has_tool(s, RV_STR_LIT("plain")) && !rv_script_has_tool(s, RV_STR_LIT("none")));
    const char *const *names = rv_script_tool_names(s, &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(names[0], "look");
    ck_assert_str_eq(names[3], "wipe");
    rv_script_free(s);
}
END_TEST

Suite *catalog_suite(void)
{
    Suite *suite = suite_create("catalog");
    TCase *tc = tcase_create("catalog");

    tcase_add_loop_test(tc, names_that_the_pipeline_does_not_have_are_found, 0, RV_COUNT(checks));
    tcase_add_loop_test(tc, scripted_stages_are_flagged, 0, RV_COUNT(stages));
    tcase_add_test(tc, scripted_stages_inside_of_stages_are_named);
    tcase_add_test(tc, a_catalog_names_the_tools_of_both);
    tcase_add_test(tc, tools_of_the_script_fill_the_gaps_of_a_catalog);
    suite_add_tcase(suite, tc);
    return suite;
}
