/* Names that only capabilities know. */
#include <stdio.h>
#include <stdlib.h>

#include "config/analysis/analysis.h"
#include "tests/unit/config/world.h"

static const char *const *list(void *self, enum rv_name_kind kind, size_t *n)
{
    /* Only kinds that a pipeline can name. */
    static const char *const names[RV_N_NAME_KINDS][2] = {
        [RV_NAME_TOOL] = {"read_file", "search_files"}, [RV_NAME_HOOK] = {"c.post", "c.pre"},
        [RV_NAME_POLICY] = {"c.allow", "c.deny"},       [RV_NAME_MOCK] = {"c.mock", "c.other"},
        [RV_NAME_ROUTE] = {"c.route", "c.way"},         [RV_NAME_PROMPT] = {"c.ask", "c.tell"},
        [RV_NAME_PROVIDER] = {"openai", "scripted"},
    };

    (void)self;
    *n = 2;
    return names[kind];
}

static const char *const *list_nothing(void *self, enum rv_name_kind kind, size_t *n)
{
    (void)self;
    (void)kind;
    *n = 0;
    return NULL;
}

static void expect_of(const struct rv_known_names *known, struct loaded l, const char *want)
{
    rv_findings *findings = rv_findings_new();
    rv_buf b = RV_BUF_INIT(1 << 20);

    rv_pipeline_check_names(l.p, known, findings);
    rv_findings_sort(findings);
    rv_findings_write_text(findings, false, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), want);
    ck_assert(l.p->is_sound == (want[0] == 0));
    rv_buf_fini(&b);
    rv_findings_free(findings);
    loaded_fini(&l);
}

static void expect(const char *text, const char *want)
{
    struct loaded l = load_text(text, ".");

    ck_assert_str_eq(l.findings, "");
    expect_of(&(struct rv_known_names){.list = list, .self = NULL}, l, want);
}

static const struct {
    const char *keys, *want, *want_unknown; /* where capabilities have policies, and where nothing is known */
} policy_cases[] = {
    {"has_policies: true, policies: [c.deny]", "",
     "t.yaml:3:46: error: agent \"a\": policies names \"c.deny\", which is not a known policy\n"
     "  hint: no policies are known here: name the capability that brings them under `capabilities` (`reeve inspect` "
     "lists those that are found), or play them with --script\n"},
    {"has_policies: false", "", ""},
    {"policies: []", "", ""},
    {"has_policies: true",
     "t.yaml:3:29: error: agent \"a\": has_policies needs a policy, and none is bound\n"
     "  hint: name one, for example policies: [c.allow], or remove has_policies\n",
     "t.yaml:3:29: error: agent \"a\": has_policies needs a policy, and none is bound\n"
     "  hint: name one, for example policies: [capability.name], or remove has_policies\n"},
    {"policies: [], has_policies: true",
     "t.yaml:3:43: error: agent \"a\": has_policies needs a policy, and none is bound\n"
     "  hint: name one, for example policies: [c.allow], or remove has_policies\n",
     "t.yaml:3:43: error: agent \"a\": has_policies needs a policy, and none is bound\n"
     "  hint: name one, for example policies: [capability.name], or remove has_policies\n"},
    {"mock: true, mock_handler: c.mock, has_policies: true",
     "t.yaml:3:63: error: agent \"a\": has_policies needs a policy, and none is bound\n"
     "  hint: name one, for example policies: [c.allow], or remove has_policies\n",
     NULL},
};

/* Proves 5.1/checks */
START_TEST(policies_that_are_on_need_one_to_ask)
{
    const struct rv_known_names known = {.list = list, .self = NULL}, nothing = {.list = list_nothing, .self = NULL};
    char text[256];

    snprintf(text, sizeof text, "name: x\nagents:\n  - {name: a, %s}\n", policy_cases[_i].keys);
    expect_of(&known, load_text(text, "."), policy_cases[_i].want);
    if (policy_cases[_i].want_unknown)
        expect_of(&nothing, load_text(text, "."), policy_cases[_i].want_unknown);
}
END_TEST

START_TEST(known_names_pass)
{
    expect("name: x\nmodels: {r: 'openai:m', s: scripted}\nprompts: {own: hi}\nagents:\n"
           "  - {name: a, allowed_tools: [read_file], policies: [c.deny], pre_process: c.pre, post_process: c.post,\n"
           "     mock_handler: c.mock, routing_function: c.route, prompt_key: own}\n"
           "  - {name: c, has_llm: true, model_role: r, has_tools: true, tool_access: all, before_model: c.pre,\n"
           "     after_model: [c.post], before_tool: [c.pre, c.post], after_tool: c.post}\n"
           "  - {name: b, allowed_tools: {zz: false}, prompt_key: c.ask}\n",
           "");
}
END_TEST

#define NO_HOOK ", which is not a known hook\n"

START_TEST(unknown_names_are_found_by_kind)
{
    expect(
        "name: x\nmodels: {r: 'opnai:m', s: {model: 'q:m'}}\nagents:\n"
        "  - name: a\n"
        "    allowed_tools: [read_fil]\n"
        "    policies: [c.dney]\n"
        "    pre_process: c.prae\n"
        "    post_process: zzzzzzzz\n"
        "    mock_handler: c.mok\n"
        "    routing_function: c.rute\n"
        "    prompt_key: c.aks\n"
        "  - {name: b, has_llm: true, model_role: s, has_tools: true, tool_access: all, before_model: c.prae,\n"
        "     after_model: [c.post, zz], before_tool: [c.pre, c.pro], after_tool: c.past}\n",
        "t.yaml:2:13: error: model \"r\": \"opnai\" is not a known provider\n"
        "  hint: did you mean \"openai\"? providers: openai, scripted\n"
        "t.yaml:2:35: error: model \"s\": \"q\" is not a known provider\n"
        "  hint: providers: openai, scripted\n"
        "t.yaml:5:21: error: agent \"a\": allowed_tools names \"read_fil\", which is not a known tool\n"
        "  hint: did you mean \"read_file\"? tools: read_file, search_files\n"
        "t.yaml:6:16: error: agent \"a\": policies names \"c.dney\", which is not a known policy\n"
        "  hint: did you mean \"c.deny\"? policies: c.allow, c.deny\n"
        "t.yaml:7:18: error: agent \"a\": pre_process names \"c.prae\"" NO_HOOK
        "  hint: did you mean \"c.pre\"? hooks: c.post, c.pre\n"
        "t.yaml:8:19: error: agent \"a\": post_process names \"zzzzzzzz\"" NO_HOOK "  hint: hooks: c.post, c.pre\n"
        "t.yaml:9:19: error: agent \"a\": mock_handler names \"c.mok\", which is not a known mock handler\n"
        "  hint: did you mean \"c.mock\"? mock handlers: c.mock, c.other\n"
        "t.yaml:10:23: error: agent \"a\": routing_function names \"c.rute\", which is not a known routing function\n"
        "  hint: did you mean \"c.route\"? routing functions: c.route, c.way\n"
        "t.yaml:11:17: error: agent \"a\": prompt_key names \"c.aks\", which is not a known prompt\n"
        "  hint: did you mean \"c.ask\"? prompts: c.ask, c.tell\n"
        "t.yaml:12:94: error: agent \"b\": before_model names \"c.prae\"" NO_HOOK
        "  hint: did you mean \"c.pre\"? hooks: c.post, c.pre\n"
        "t.yaml:13:28: error: agent \"b\": after_model names \"zz\"" NO_HOOK "  hint: hooks: c.post, c.pre\n"
        "t.yaml:13:54: error: agent \"b\": before_tool names \"c.pro\"" NO_HOOK
        "  hint: did you mean \"c.pre\"? hooks: c.post, c.pre\n"
        "t.yaml:13:74: error: agent \"b\": after_tool names \"c.past\"" NO_HOOK
        "  hint: did you mean \"c.post\"? hooks: c.post, c.pre\n");
}
END_TEST

#define ASKS "agents:\n  - {name: a, has_llm: true, model_role: writer"
#define NO_MODEL                                                                                                       \
    ": warning: agent \"a\" asks role \"writer\", which has no model: without --script it cannot run\n"                \
    "  hint: give it one, for example models: {writer: provider:model}, or play it with --script\n"

static const struct {
    const char *text, *want;
} unscripted_cases[] = {
    {"name: x\n" ASKS "}\n", "t.yaml:3:42" NO_MODEL},
    {"name: x\n" ASKS "}\n  - {name: b, stage_order: 2, has_llm: true, model_role: reader}\n",
     "t.yaml:3:42" NO_MODEL
     "t.yaml:4:58: warning: agent \"b\" asks role \"reader\", which has no model: without --script it cannot run\n"
     "  hint: give it one, for example models: {reader: provider:model}, or play it with --script\n"},
    {"name: x\n" ASKS ", has_tools: true, tool_access: all}\n", "t.yaml:3:42" NO_MODEL},
    {"name: x\nmodels: {writer: 'scripted:any'}\n" ASKS "}\n", ""},
    {"name: x\nmodels: {writer: 'openai:m'}\n" ASKS "}\n", ""},
    {"name: x\nmodels: {writer: {model: \"${env:RV_TEST_MISSING}\", optional: true}}\n" ASKS "}\n", ""},
    {"name: x\n" ASKS ", mock: true, mock_handler: c.mock}\n", ""},
    {"name: x\nagents: [{name: a, model_role: writer}]\n", ""},
};

START_TEST(a_stage_whose_role_has_no_model_needs_a_script)
{
    struct loaded l = load_text(unscripted_cases[_i].text, ".");
    rv_findings *findings = rv_findings_new();
    rv_buf b = RV_BUF_INIT(1 << 20);

    ck_assert_uint_eq(l.n_errors, 0);
    rv_pipeline_lint_unscripted(l.p, findings);
    rv_findings_write_text(findings, false, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), unscripted_cases[_i].want);
    rv_buf_fini(&b);
    rv_findings_free(findings);
    loaded_fini(&l);
}
END_TEST

TCase *names_case(void)
{
    TCase *tc = tcase_create("names");

    tcase_add_test(tc, known_names_pass);
    tcase_add_test(tc, unknown_names_are_found_by_kind);
    tcase_add_loop_test(tc, policies_that_are_on_need_one_to_ask, 0, (int)RV_COUNT(policy_cases));
    tcase_add_loop_test(tc, a_stage_whose_role_has_no_model_needs_a_script, 0, (int)RV_COUNT(unscripted_cases));
    return tc;
}
