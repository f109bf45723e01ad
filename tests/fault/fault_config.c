/* Each allocation of loading and explaining a pipeline fails once, in a sound file and in one full of faults. */
#include "config/config.h"
#include "tests/kit/fault.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char sound[] =
    "name: &n all-of-it\n"
    "description: every section once\n"
    "capabilities: [files, {path: x.so, config: {home: \"${env:RV_FAULT_VAR}\", n: [1, 2.5]}}]\n"
    "models:\n"
    "  default: {model: \"a:b\", api_key: \"${env:RV_FAULT_VAR}\", price: {input: 1, output: 2}, fallback: [near, "
    "gone]}\n"
    "  gone: {model: \"a:b\", api_key: \"${env:RV_FAULT_NONE}\", optional: true}\n"
    "  near: {model: \"anthropic:claude-sonnet-4-5\", headers: {h: x}, quirks: {no_tools: true}, options: {o: [1]}}\n"
    "budget: {usd: 0.5}\n"
    "agents:\n"
    "  - name: plan\n"
    "    has_llm: true\n"
    "    model_role: default\n"
    "    prompt_key: p\n"
    "    output_schema: {type: object, properties: {a: {type: string}}}\n"
    "    limits: {request_limit: 3}\n"
    "    stage_order: 2\n" /* after the next one, so that they are sorted */
    "    before_model: c.x\n"
    "    after_model: [c.x, c.y]\n"
    "    routing_rules:\n"
    "      - {condition: verdict, value: {a: [1, null, *n]}, target: work}\n"
    "      - {when: \"output.score < 0.5 && size(state) > 0\", target: end}\n"
    "  - name: work\n"
    "    has_tools: true\n"
    "    allowed_tools: {x: true, y: false}\n"
    "    requires: [plan]\n"
    "edge_limits: [{from: plan, to: work, max_count: 2}]\n"
    "prompts: {p: \"say {{raw_input}} {{outputs.work.x}}\"}\n"
    "execution: {llm_timeout: 2}\n"
    "state: [{key: work, merge: append}]\n"
    "retry_clear: [plan]\n"
    "tests:\n"
    "  - name: t\n"
    "    input: {raw_input: hello}\n"
    "    script: {models: {}}\n"
    "    expect: {status: completed, visited: [plan, work], errors: [{agent: plan}], that: [\"size(calls) == 0\"],"
    " schema: {plan: {type: object}}, tool_calls: [{tool: x, stage: work, arguments: {a: 1}}], similar: {to: x}}\n"
    "  - name: \"of {{case.q}}\"\n"
    "    cases: [{q: one, n: [1]}, {q: two, n: {a: b}}]\n"
    "    input: {raw_input: \"{{case.q}}\", metadata: \"{{case.n}}\"}\n"
    "  - name: all\n"
    "    cases: [{q: one}]\n"
    "    matrix: {model: [\"a:b\", \"a:c\"], n: {one: {a: b}, two: null}}\n"
    "    input: {raw_input: \"{{case.q}} {{matrix.model}}\", metadata: \"{{matrix.n}}\"}\n";

static const char faulty[] =
    "name: &a x\n"
    "nmae: *a\n"
    "models: {default: nothing, other: {model: \"a:b\", k: 1, proxy: \"${env:RV_FAULT_NONE}\", fallback: [other, x]},"
    " c: {model: \"a:b\", fallback: [d]}, d: {model: \"a:b\", fallback: [c], options: {proxy: 1}}}\n"
    "budget: {usd: 0}\n"
    "agents:\n"
    "  - {name: a, has_llm: yes, model_role: defalt, default_next: c, requires: [b, a, zz],"
    " output_schema: {type: array}, output_via: none, before_model: '', before_tool: c.x, after_tool: [1]}\n"
    "  - {name: b, requires: [a], join_strategy: al, output_key: a, stage_order: \"1\"}\n"
    "  - {name: b, routing_rules: [{when: \"1 +\", target: end}, {condition: x, target: nn}]}\n"
    "edge_limits: [{from: q, to: a, max_count: 0}, {from: a, to: b, max_count: 1},"
    " {from: a, to: b, max_count: 1}]\n"
    "prompts: {p: \"{{nobody}} {{outputs.none}}\", q: {file: /nonexistent/file}, r: \"{{x\"}\n"
    "prompts: 1\n"
    "state: [{key: a}, {key: a}]\n"
    "tests: [{name: t, expect: {visited: [zz], output: {zz: 1}, that: ['1 +', nope, 3], tool_calls: [{tol: x}],"
    " similar: 3}}, {name: u, cases: [{a: 1}, 2], script: '{{case.b}}'}, {name: v, cases: none.csv},"
    " {name: w, matrix: {a: [], b: 1, c: [1, 1, [2]], model: [x], prompts: {s: 1, t: {p: '{{x'}}}}]\n";

static const char broken[] = "name: x\n  bad: [1, 2\n";

static int load(const char *text)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);
    rv_err *err = NULL;
    int rc;

    if (!findings)
        return RV_E_NOMEM;
    rc = rv_pipeline_parse(rv_str_of(text), "fault.yaml", ".", findings, &p, &err);
    if (rc == 0) {
        rv_findings_sort(findings);
        rv_findings_write_text(findings, false, &b);
        rv_jw_obj(&w);
        if (p && p->is_sound) {
            rv_jw_key(&w, "pipeline");
            rv_pipeline_write_json(p, &w);
        }
        rv_jw_obj_end(&w);
        rc = rv_buf_check(&b, "explanation", NULL);
    }
    rv_buf_fini(&b);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    rv_err_free(err);
    return rc;
}

static const char declared[] =
    "name: x\nschema_dir: agents\nbudget: {usd: 1}\nmodels: {default: {model: scripted, price: {input: 1, output: 2}},"
    " other: {model: scripted, fallback: [default], price: {input: 1, output: 2}}}\n"
    "agents:\n  - {agent: help, allowed_tools: [a], max_rounds: 3, model_role: other, default_next: s}\n"
    "  - {agent: sort, name: s, structured_output: true}\n  - {agent: sort, child_text: both}\n";
static const char undeclared[] =
    "name: x\nagents:\n  - {agent: nobody}\n  - {agent: bad, output_mode: text}\n"
    "  - {agent: bad, name: again, joins_session: true}\n  - {name: s, joins_session: 1}\n";

static int find(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    static const char *const documents[][2] = {
        {"help", "type: object\nname: help\ndescription: x\ntools: [a, {name: b, description: c}]\n"},
        {"sort", "type: object\nname: sort\ndescription: x\nproperties: {a: {type: string}}\nmodel: openai:gpt-4.1\n"
                 "tools: [ask_agent, a]\nchained_tool: send\nchained_map: {a: b}\n"},
        {"bad", "type: object\nname: worse\ndescription: x\nmodel: a:b\ntools: [{name: t, server: s}]\n"},
    };

    (void)self;
    for (size_t i = 0; i < RV_COUNT(documents); i++) {
        if (strcmp(documents[i][0], name) != 0)
            continue;
        *text = rv_str_of(documents[i][1]);
        *place = "somewhere";
        return 0;
    }
    return RV_FAIL(err, RV_E_NOT_FOUND, "there is no agent \"%s\"", name);
}

static int delegate(const struct rv_pipeline *of, rv_buf *out, rv_err **err)
{
    struct rv_delegate d = {.name = "sort", .structured = RV_UNSET, .model_role = "other"};
    rv_jw w = rv_jw_on(out);
    struct rv_pipeline *p = NULL;
    const char *place;
    int rc = find(NULL, d.name, &d.document, &place, err);

    if (rc == 0)
        rc = rv_pipeline_delegate(of, &d, &p, err);
    if (rc == 0)
        rv_pipeline_write_json(p, &w);
    rv_pipeline_free(p);
    return rc;
}

static int bind(const char *text)
{
    const struct rv_agent_source source = {find, NULL};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);
    rv_err *err = NULL;
    int rc;

    if (!findings)
        return RV_E_NOMEM;
    rc = rv_pipeline_parse(rv_str_of(text), "fault.yaml", ".", findings, &p, &err);
    if (rc == 0)
        rc = rv_pipeline_bind_agents(p, &source, findings, &err);
    if (rc == 0)
        rv_pipeline_write_json(p, &w);
    if (rc == 0 && p->is_sound)
        rc = delegate(p, &b, &err);
    if (rc == 0)
        rc = rv_buf_check(&b, "explanation", NULL);
    if (rc == 0)
        rc = rv_findings_check(findings, NULL);
    if (rc == 0 && p->is_sound != (text == declared))
        rc = RV_E_INTERNAL; /* nothing is overlooked for want of memory */
    rv_buf_fini(&b);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    rv_err_free(err);
    return rc;
}

/* A pipeline of one agent, with models of its own. */
static int chat(void)
{
    static const char *const capabilities[] = {"files"};
    const struct rv_agent_model_role models[] = {{.role = "default", .model = "gpt-4.1", .max_tokens = 9}};
    struct rv_agent_pipeline from = {.agent = "sort",
                                     .structured = RV_UNSET,
                                     .child_text = RV_CHILD_TEXT_BOTH,
                                     .models = models,
                                     .n_models = RV_COUNT(models),
                                     .capabilities = capabilities,
                                     .n_capabilities = RV_COUNT(capabilities),
                                     .agent_token_limit = 900};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_err *err = NULL;
    int rc = findings ? find(NULL, from.agent, &from.document, &from.place, &err) : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_pipeline_build_agent(&from, findings, &p, &err);
    if (rc == 0)
        rc = rv_findings_check(findings, NULL);
    if (rc == 0 && !p->is_sound)
        rc = RV_E_INTERNAL;
    rv_pipeline_free(p);
    rv_findings_free(findings);
    rv_err_free(err);
    return rc;
}

static int schema(void)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);
    int rc;

    rv_pipeline_write_schema(&w);
    rv_pipeline_write_reference(&b);
    rc = rv_buf_check(&b, "schema", NULL);
    rv_buf_fini(&b);
    return rc;
}

static int run(int scenario)
{
    static const char *const texts[] = {sound, faulty, broken};

    if (scenario == 6)
        return chat();
    if (scenario > 3)
        return bind(scenario == 4 ? declared : undeclared);
    return scenario < 3 ? load(texts[scenario]) : schema();
}

START_TEST(every_allocation_may_fail)
{
    int rc;

    setenv("RV_FAULT_VAR", "value", 1);
    unsetenv("RV_FAULT_NONE");
    ck_assert_int_eq(run(_i), 0); /* libraries set themselves up at first use */
    for (size_t n = 0;; n++) {
        rv_fault_arm(n);
        rc = run(_i);
        if (!rv_fault_disarm())
            break;
        /* a hint may do without its memory; nothing else does */
        ck_assert_msg(rc == RV_E_NOMEM || (rc == 0 && (_i == 1 || _i > 3)), "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks leaked", n, rv_fault_balance());
    }
    ck_assert_int_eq(rc, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_config");
    TCase *tc = tcase_create("allocations");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, 7);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
