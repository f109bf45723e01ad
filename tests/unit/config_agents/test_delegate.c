/* Agents that others ask: pipelines of one stage, made while a run is under way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config_agents/world.h"

#define DOC(name, more) "type: object\nname: " name "\ndescription: x\n" more
static const char *const texts[][2] = {{"boss", DOC("boss", "tools: [ask_agent]\nmodel: openai:gpt-4.1\n")}};
static const char parent[] = "name: x\nschema_dir: dir\nmax_llm_calls: 7\nmax_delegation_depth: 5\n"
                             "budget: {usd: 2}\nexecution: {delegation_timeout: 1.5, max_llm_retries: 1, "
                             "agent_token_limit: 900}\n"
                             "models: {default: 'openai:gpt-4.1-mini', free: {model: 'own:x', fallback: [default], "
                             "price: {input: 1, output: 2}}}\nagents: [agent: boss]\n";

static int delegate(const struct rv_pipeline *of, const char *name, const char *document, struct rv_pipeline **out,
                    rv_err **err)
{
    const struct rv_delegate d = {.name = name, .document = rv_str_of(document), .structured = RV_UNSET};

    *out = NULL;
    return rv_pipeline_delegate(of, &d, out, err);
}

START_TEST(a_delegate_is_a_pipeline_of_one_stage)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(parent, &docs);
    struct rv_pipeline *p;
    const struct rv_agent *a;
    const struct rv_model_config *m;

    ck_assert_int_eq(delegate(b.p, "child", DOC("child", "tools: [a]\nlimits: {request_limit: 3}\n"), &p, NULL), 0);
    a = &p->agents[0];
    ck_assert(p->is_sound && p->n_agents == 1);
    ck_assert_str_eq(p->name, "child");
    ck_assert_str_eq(a->name, "child");
    ck_assert_str_eq(a->declared.name, "child");
    ck_assert_str_eq(a->output.key, "child");
    ck_assert_int_eq(rv_pipeline_find_stage(p, rv_str_of("child")), 0);
    ck_assert_int_eq(rv_pipeline_find_target(p, rv_str_of("end")), RV_TARGET_END);
    ck_assert_int_eq(a->routing.default_target, RV_TARGET_NONE);
    ck_assert(a->has_llm && a->has_tools && !a->session.joins);
    ck_assert_str_eq(a->model.system, "x");
    ck_assert_int_eq(a->limits.llm.request_limit, 3);
    ck_assert_int_eq(a->limits.llm.total_tokens_limit, 900); /* p8 W2: the settings' hold for who is asked, too */
    ck_assert_str_eq(a->model.role, "default");
    ck_assert_int_eq(a->limits.timeout_seconds, 86400); /* the call decides */
    ck_assert_int_eq(p->max_llm_calls, 7);
    ck_assert_int_eq(p->max_delegation_depth, 5);
    ck_assert_int_eq(p->delegation_timeout_ms, 1500);
    ck_assert(p->has_budget && p->budget_micro_usd == 2000000);
    ck_assert_int_eq(p->execution.max_llm_retries, 1);
    ck_assert_str_eq(p->schema_dir, "dir");
    ck_assert_uint_eq(p->n_models, b.p->n_models);
    m = rv_pipeline_find_model(p, rv_str_of("free"));
    ck_assert(m->has_price && m->price.output == 2000000);
    ck_assert_ptr_eq(m->fallback_models[0], rv_pipeline_find_model(p, rv_str_of("default")));
    rv_pipeline_free(p);
    bound_fini(&b);
}
END_TEST

static const struct {
    const char *more, *role, *want, *model;
} roles[] = {
    {"", NULL, "default", "gpt-4.1-mini"},
    {"", "", "default", "gpt-4.1-mini"},
    {"", "free", "free", "x"},
    {"", "agent:boss", "agent:boss", "gpt-4.1"},
    {"model: openai:gpt-4.1-nano\n", "free", "agent:child", "gpt-4.1-nano"},
};

START_TEST(a_delegate_has_its_documents_model_or_the_askers)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(parent, &docs);
    rv_buf text = RV_BUF_INIT(4096);
    struct rv_delegate d = {
        .name = "child", .structured = RV_UNSET, .model_role = roles[_i].role, .child_text = RV_CHILD_TEXT_PARENT};
    struct rv_pipeline *p = NULL;
    const struct rv_model_config *m;

    rv_buf_printf(&text, DOC("child", "%s"), roles[_i].more);
    d.document = rv_buf_str(&text);
    ck_assert_int_eq(rv_pipeline_delegate(b.p, &d, &p, NULL), 0);
    ck_assert_str_eq(p->agents[0].model.role, roles[_i].want);
    ck_assert_int_eq(p->agents[0].session.child_text, RV_CHILD_TEXT_PARENT);
    m = rv_pipeline_find_model(p, rv_str_of(roles[_i].want));
    ck_assert_str_eq(m->model, roles[_i].model);
    ck_assert(m->has_price);
    rv_buf_fini(&text);
    rv_pipeline_free(p);
    bound_fini(&b);
}
END_TEST

START_TEST(another_document_of_a_bound_name_has_its_own_model)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(parent, &docs);
    struct rv_pipeline *p;

    ck_assert_int_eq(delegate(b.p, "boss", DOC("boss", "model: openai:gpt-4.1-nano\n"), &p, NULL), 0);
    ck_assert_str_eq(rv_pipeline_find_model(p, rv_str_of("agent:boss"))->model, "gpt-4.1-nano");
    ck_assert_str_eq(rv_pipeline_find_model(b.p, rv_str_of("agent:boss"))->model, "gpt-4.1");
    rv_pipeline_free(p);
    bound_fini(&b);
}
END_TEST

START_TEST(delegates_ask_others_in_turn)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(parent, &docs);
    struct rv_pipeline *child, *grandchild;

    ck_assert_int_eq(
        delegate(b.p, "child", DOC("child", "model: openai:gpt-4.1-nano\ntools: [ask_agent]\n"), &child, NULL), 0);
    ck_assert_int_eq(delegate(child, "inner", DOC("inner", ""), &grandchild, NULL), 0);
    ck_assert_int_eq(grandchild->max_delegation_depth, 5);
    ck_assert_ptr_nonnull(rv_pipeline_find_model(grandchild, rv_str_of("agent:child")));
    rv_pipeline_free(grandchild);
    rv_pipeline_free(child);
    bound_fini(&b);
}
END_TEST

/* Proves remlight.5 */
START_TEST(structured_output_may_be_asked_for)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(parent, &docs);
    struct rv_delegate d = {.name = "child",
                            .structured = 1,
                            .document = rv_str_of(DOC("child", "properties: {a: {type: string}}\nchained_tool: send\n"
                                                               "structured_output: false\n"))};
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(rv_pipeline_delegate(b.p, &d, &p, NULL), 0);
    ck_assert_ptr_nonnull(p->agents[0].output.schema);
    ck_assert_int_eq(p->agents[0].output.via, RV_OUTPUT_VIA_TOOL);
    ck_assert_str_eq(p->agents[0].tools.chained, "send");
    rv_pipeline_free(p);
    bound_fini(&b);
}
END_TEST

static const struct {
    const char *document, *want; /* a part of it */
    int line;
} faults[] = {
    {"name: child\n  x: [\n", "agent \"child\": ", 2},
    {DOC("child", "tools: [{name: t, server: crm}]\n"), "no server \"crm\" is configured", 4},
    {DOC("child", "model: nobody:knows\n"), "what this model costs is not known", 4},
    {"", "agent \"child\": ", 0},
};

START_TEST(a_document_with_faults_is_an_error)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(parent, &docs);
    struct rv_pipeline *p;
    rv_err *err = NULL;
    rv_buf text = RV_BUF_INIT(4096);
    struct rv_src src = {NULL, 0, 0};

    ck_assert_int_eq(delegate(b.p, "child", faults[_i].document, &p, &err), RV_E_INVALID);
    ck_assert_ptr_null(p);
    rv_err_write_text(err, false, &text);
    ck_assert_msg(strstr(rv_buf_cstr(&text), faults[_i].want), "%s", rv_buf_cstr(&text));
    for (const rv_err *link = err; link; link = rv_err_cause(link))
        if (rv_err_src(link).line > 0)
            src = rv_err_src(link);
    if (faults[_i].line)
        ck_assert_int_eq(src.line, faults[_i].line);
    rv_err_free(err);
    rv_buf_fini(&text);
    bound_fini(&b);
}
END_TEST

START_TEST(a_pipeline_of_an_agent_has_models_and_limits_of_its_own)
{
    static const char *const capabilities[] = {"files", "p8"};
    const struct rv_agent_model_role models[] = {
        {.role = "default", .model = "gpt-4.1", .has_temperature = true, .temperature = 0.5, .max_tokens = 70},
        {.role = "other", .model = "own:x"}};
    struct rv_agent_pipeline from = {.agent = "child",
                                     .document = rv_str_of(DOC("child", "limits: {request_limit: 3}\n")),
                                     .file = "chat",
                                     .structured = RV_UNSET,
                                     .child_text = RV_CHILD_TEXT_BOTH,
                                     .has_temperature = true,
                                     .temperature = 0.25,
                                     .max_tokens = 60,
                                     .models = models,
                                     .n_models = RV_COUNT(models),
                                     .capabilities = capabilities,
                                     .n_capabilities = RV_COUNT(capabilities),
                                     .max_llm_calls = 100,
                                     .agent_token_limit = 900};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(rv_pipeline_build_agent(&from, findings, &p, NULL), 0);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    ck_assert(p->is_sound && p->agents[0].session.joins);
    ck_assert_str_eq(rv_pipeline_text(p).ptr,
                     "{\"name\":\"child\",\"capabilities\":[\"files\",\"p8\"],\"models\":{\"default\":{\"model\":"
                     "\"openai:gpt-4.1\",\"temperature\":0.5,\"max_tokens\":70},\"other\":{\"model\":\"own:x\"}},"
                     "\"max_llm_calls\":100,\"execution\":{\"agent_token_limit\":900},\"agents\":[{\"agent\":\"child\","
                     "\"child_text\":\"both\",\"temperature\":0.25,\"max_tokens\":60}]}");
    ck_assert_str_eq(p->agents[0].model.role, "default");
    ck_assert_int_eq(p->agents[0].limits.llm.request_limit, 3);
    ck_assert_int_eq(p->agents[0].limits.llm.total_tokens_limit, 900);
    rv_pipeline_free(p);
    from.role = "none";
    ck_assert_int_eq(rv_pipeline_build_agent(&from, findings, &p, NULL), 0);
    ck_assert(!p->is_sound && rv_findings_n_errors(findings) == 1);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

START_TEST(the_environment_decides_nothing)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(parent, &docs);
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "prices.json");
    struct rv_pipeline *p;
    int64_t input;

    ck_assert_int_eq(delegate(b.p, "child", DOC("child", "model: openai:gpt-4.1-nano\n"), &p, NULL), 0);
    input = rv_pipeline_find_model(p, rv_str_of("agent:child"))->price.input;
    rv_pipeline_free(p);
    rv_kit_write(path, "{\"models\": {\"openai:*\": {\"input\": 77, \"output\": 77}, \"openai:gpt-4.1-nano\": "
                       "{\"input\": 77, \"output\": 77}}}");
    setenv("REEVE_PRICES", path, 1);
    ck_assert_int_eq(delegate(b.p, "child", DOC("child", "model: openai:gpt-4.1-nano\n"), &p, NULL), 0);
    ck_assert_int_eq(rv_pipeline_find_model(p, rv_str_of("agent:child"))->price.input, input);
    unsetenv("REEVE_PRICES");
    rv_pipeline_free(p);
    free(path);
    rv_kit_tmpdir_remove(dir);
    bound_fini(&b);
}
END_TEST

TCase *delegate_case(void)
{
    TCase *tc = tcase_create("delegate");

    tcase_add_test(tc, a_delegate_is_a_pipeline_of_one_stage);
    tcase_add_loop_test(tc, a_delegate_has_its_documents_model_or_the_askers, 0, RV_COUNT(roles));
    tcase_add_test(tc, another_document_of_a_bound_name_has_its_own_model);
    tcase_add_test(tc, delegates_ask_others_in_turn);
    tcase_add_test(tc, structured_output_may_be_asked_for);
    tcase_add_loop_test(tc, a_document_with_faults_is_an_error, 0, RV_COUNT(faults));
    tcase_add_test(tc, a_pipeline_of_an_agent_has_models_and_limits_of_its_own);
    tcase_add_test(tc, the_environment_decides_nothing);
    return tc;
}
