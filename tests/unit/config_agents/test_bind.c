/* What a stage becomes: its document, and its own keys before it. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/analysis.h"
#include "tests/unit/config_agents/world.h"

#define BARE "type: object\nname: bare\ndescription: You help.\n"
#define FULL                                                                                                           \
    "type: object\nname: full\ndescription: You sort.\nstructured_output: true\nproperties:\n"                         \
    "  label: {type: string, description: What it is}\nrequired: [label]\ntools: [a, {name: b, server: rem}]\n"        \
    "chained_tool: send\nchained_map: {label: subject}\nmodel: openai:gpt-4.1-mini\ntemperature: 0.5\n"                \
    "max_tokens: 300\nmax_iterations: 30\nlimits: {request_limit: 20, tool_calls_limit: 5}\n"
static const char *const texts[][2] = {
    {"bare", BARE},
    {"full", FULL},
    {"asker", "type: object\nname: asker\ndescription: You ask.\ntools: [ask_agent, a]\nlimits: {request_limit: 2}\n"},
    {"twice", "type: object\nname: twice\ndescription: x\ntools: [b, a, b]\n"},
    {"capped", "type: object\nname: capped\ndescription: x\nmax_iterations: 4\n"},
};

START_TEST(a_stage_takes_its_name_from_its_agent)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nagents:\n  - agent: bare\n  - {agent: bare, name: second}\n", &docs);

    ck_assert_str_eq(b.p->agents[0].name, "bare");
    ck_assert_str_eq(b.p->agents[0].output.key, "bare");
    ck_assert_str_eq(b.p->agents[1].name, "second");
    ck_assert_int_eq(rv_pipeline_find_stage(b.p, rv_str_of("bare")), 0);
    ck_assert_ptr_eq(b.p->agents[0].declared.doc, b.p->agents[1].declared.doc);
    ck_assert_uint_eq(docs.n_asked, 1);
    bound_fini(&b);
}
END_TEST

START_TEST(an_agent_without_keys_gets_the_defaults)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nagents: [agent: bare]\n", &docs);
    const struct rv_agent *a = &b.p->agents[0];

    ck_assert(a->has_llm && !a->has_tools && a->session.joins && !a->session.child_text_resets);
    ck_assert_int_eq(a->session.child_text, RV_UNSET);
    ck_assert_str_eq(a->model.system, "You help.");
    ck_assert_ptr_null(a->output.schema);
    ck_assert_int_eq(a->output.mode, RV_OUTPUT_TEXT);
    ck_assert(a->tools.allowed.is_set && a->tools.allowed.n == 0);
    ck_assert_int_eq(a->limits.llm.request_limit, RV_AGENT_DEFAULT_REQUESTS);
    ck_assert_int_eq(a->limits.llm.total_tokens_limit, RV_AGENT_DEFAULT_TOKENS);
    ck_assert_int_eq(a->limits.llm.tool_calls_limit, 0);
    ck_assert_int_eq(a->limits.max_rounds, RV_AGENT_DEFAULT_REQUESTS);
    ck_assert(!a->model.has_temperature && !a->model.has_max_tokens);
    ck_assert_str_eq(a->model.role, "default");
    ck_assert_str_eq(a->tools.chained, "");
    bound_fini(&b);
}
END_TEST

/* Proves remlight.19/14, p8.6 */
START_TEST(a_document_decides_what_its_stage_leaves_open)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nagents: [agent: full]\n", &docs);
    const struct rv_agent *a = &b.p->agents[0];
    char *tools = joined(&a->tools.allowed);

    ck_assert_str_eq(tools, "a b");
    ck_assert_str_eq(a->tools.allowed.srcs[1].file, "full.yaml");
    ck_assert_int_eq(a->tools.allowed.srcs[1].line, 8);
    ck_assert(a->has_tools && a->tools.access == RV_ACCESS_ALL);
    ck_assert_str_eq(a->model.system, "You sort.");
    ck_assert_int_eq(a->output.mode, RV_OUTPUT_JSON);
    ck_assert_int_eq(a->output.via, RV_OUTPUT_VIA_TOOL);
    ck_assert_ptr_nonnull(strstr(json_object_to_json_string(a->output.schema), "What it is"));
    ck_assert_str_eq(a->tools.chained, "send");
    ck_assert_str_eq(json_object_to_json_string_ext(a->tools.chained_map, JSON_C_TO_STRING_PLAIN),
                     "{\"label\":\"subject\"}");
    ck_assert(a->model.has_temperature && a->model.temperature > 0.49 && a->model.temperature < 0.51);
    ck_assert(a->model.has_max_tokens && a->model.max_tokens == 300);
    ck_assert_int_eq(a->limits.llm.request_limit, 20); /* below max_iterations */
    ck_assert_int_eq(a->limits.llm.tool_calls_limit, 5);
    ck_assert_int_eq(a->limits.max_rounds, 20);
    ck_assert_str_eq(a->model.role, "agent:full");
    free(tools);
    bound_fini(&b);
}
END_TEST

START_TEST(no_temperature_is_one_that_the_stage_says)
{
    struct docs docs = DOCS(texts);
    struct bound b =
        bind_clean("name: x\nmodels: {default: scripted}\nagents: [{agent: full, temperature: null}]\n", &docs);

    ck_assert(b.p->agents[0].model.no_temperature && !b.p->agents[0].model.has_temperature);
    bound_fini(&b);
}
END_TEST

START_TEST(keys_of_the_stage_win)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(
        "name: x\nmodels: {small: 'scripted'}\nagents:\n"
        "  - {agent: full, model_role: small, temperature: 0, max_tokens: 9, tool_access: read, allowed_tools: [b, "
        "c],\n"
        "     limits: {request_limit: 40}, max_rounds: 3, max_repairs: 0, output_via: native, output_key: o,\n"
        "     joins_session: false, child_text: both, child_text_resets: true, prompt_key: p, timeout_seconds: 7}\n"
        "prompts: {p: hello}\n",
        &docs);
    const struct rv_agent *a = &b.p->agents[0];
    char *tools = joined(&a->tools.allowed);

    ck_assert_str_eq(tools, "b c");
    ck_assert_int_eq(a->tools.access, RV_ACCESS_READ);
    ck_assert_str_eq(a->model.role, "small");
    ck_assert_uint_eq(b.p->n_models, 1);
    ck_assert(a->model.has_temperature && a->model.temperature == 0);
    ck_assert_int_eq(a->model.max_tokens, 9);
    ck_assert_int_eq(a->limits.llm.request_limit, 40);
    ck_assert_int_eq(a->limits.llm.tool_calls_limit, 5);
    ck_assert_int_eq(a->limits.max_rounds, 3);
    ck_assert_int_eq(a->limits.max_repairs, 0);
    ck_assert_int_eq(a->output.via, RV_OUTPUT_VIA_NATIVE);
    ck_assert_str_eq(a->output.key, "o");
    ck_assert(!a->session.joins && a->session.child_text_resets);
    ck_assert_int_eq(a->session.child_text, RV_CHILD_TEXT_BOTH);
    ck_assert_str_eq(a->model.prompt_key, "p");
    ck_assert_int_eq(a->limits.timeout_seconds, 7);
    free(tools);
    bound_fini(&b);
}
END_TEST

static const struct {
    const char *agent;
    const char *keys, *execution;
    int64_t requests, rounds, tokens;
} limits[] = {
    {"capped", "", "", 4, 10, RV_AGENT_DEFAULT_TOKENS},                           /* max_iterations alone */
    {"capped", "limits: {request_limit: 6}", "", 6, 10, RV_AGENT_DEFAULT_TOKENS}, /* the stage's own */
    {"full", "limits: {tool_calls_limit: 1}", "", 20, 20, RV_AGENT_DEFAULT_TOKENS},
    {"bare", "max_rounds: 2", "", RV_AGENT_DEFAULT_REQUESTS, 2, RV_AGENT_DEFAULT_TOKENS},
    {"bare", "", "agent_request_limit: 3, agent_token_limit: 70", 3, 10, 70}, /* of the pipeline, where nobody says */
    {"capped", "", "agent_request_limit: 3", 4, 10, RV_AGENT_DEFAULT_TOKENS},
    {"full", "limits: {total_tokens_limit: 9}", "agent_request_limit: 3, agent_token_limit: 70", 20, 20, 9},
};

/* Proves p8.W2, p8.W3 */
START_TEST(limits_are_the_stages_then_the_documents_then_the_engines)
{
    struct docs docs = DOCS(texts);
    rv_buf text = RV_BUF_INIT(4096);
    struct bound b;

    rv_buf_printf(&text, "name: x\nexecution: {%s}\nagents: [{agent: %s%s%s}]\n", limits[_i].execution,
                  limits[_i].agent, limits[_i].keys[0] ? ", " : "", limits[_i].keys);
    b = bind_clean(rv_buf_cstr(&text), &docs);
    ck_assert_int_eq(b.p->agents[0].limits.llm.request_limit, limits[_i].requests);
    ck_assert_int_eq(b.p->agents[0].limits.llm.total_tokens_limit, limits[_i].tokens);
    ck_assert_int_eq(b.p->agents[0].limits.max_rounds, limits[_i].rounds);
    rv_buf_fini(&text);
    bound_fini(&b);
}
END_TEST

/* Proves remlight.5 */
START_TEST(structured_output_of_the_stage_wins)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_text("name: x\nagents: [{agent: full, structured_output: false}]\n", &docs);
    const struct rv_agent *a = &b.p->agents[0];

    ck_assert_int_eq(a->declared.structured, 0);
    ck_assert_int_eq(a->output.mode, RV_OUTPUT_TEXT);
    ck_assert_ptr_null(a->output.schema);
    ck_assert_str_eq(a->tools.chained, ""); /* the output is no map */
    ck_assert_str_eq(b.findings,
                     "full.yaml:9:15: warning: agent \"full\": its chained_tool is never called, since its output is "
                     "not structured\n  hint: set structured_output and properties\n");
    ck_assert(b.p->is_sound);
    bound_fini(&b);
}
END_TEST

/* Proves remlight.4 */
START_TEST(an_empty_list_of_the_stage_takes_every_tool_away)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nagents: [{agent: full, allowed_tools: []}]\n", &docs);

    ck_assert(!b.p->agents[0].has_tools);
    ck_assert_uint_eq(b.p->agents[0].tools.allowed.n, 0);
    bound_fini(&b);
}
END_TEST

/* Proves p8.7.1/classes, p8.4.2 */
START_TEST(a_tool_is_offered_once)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_text("name: x\nagents: [agent: twice]\n", &docs);
    char *tools = joined(&b.p->agents[0].tools.allowed);

    ck_assert(b.p->is_sound); /* the document gets a warning */
    ck_assert_str_eq(tools, "b a");
    free(tools);
    bound_fini(&b);
}
END_TEST

START_TEST(documents_are_kept_as_they_were)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nagents: [agent: full, agent: bare, {name: s}]\n", &docs);
    size_t n;
    const struct rv_bound_agent *kept = rv_pipeline_bound_agents(b.p, &n);

    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(kept[0].name, "full");
    ck_assert_str_eq(kept[0].place, "full.yaml");
    ck_assert(rv_str_eq(kept[0].text, rv_str_of(FULL)));
    ck_assert_str_eq(kept[1].name, "bare");
    ck_assert_ptr_null(b.p->agents[2].declared.doc);
    bound_fini(&b);
}
END_TEST

START_TEST(binding_again_changes_nothing)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nagents: [agent: full]\n", &docs);
    struct rv_agent_source source = docs_source(&docs);
    rv_findings *findings = rv_findings_new();
    size_t n;

    ck_assert_int_eq(rv_pipeline_bind_agents(b.p, &source, findings, NULL), 0);
    RV_IGNORE(rv_pipeline_bound_agents(b.p, &n) == NULL, "only the number counts");
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(b.p->n_models, 1);
    ck_assert_uint_eq(docs.n_asked, 1);
    rv_findings_free(findings);
    bound_fini(&b);
}
END_TEST

START_TEST(stages_in_another_order_keep_their_own_keys)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nagents:\n  - {agent: bare, stage_order: 2, max_rounds: 7}\n"
                                "  - {agent: capped, stage_order: 1}\n",
                                &docs);

    ck_assert_str_eq(b.p->agents[0].name, "capped");
    ck_assert_int_eq(b.p->agents[0].limits.max_rounds, RV_LLM_DEFAULT_ROUNDS);
    ck_assert_int_eq(b.p->agents[1].limits.max_rounds, 7);
    bound_fini(&b);
}
END_TEST

START_TEST(what_delegation_may_do_has_defaults)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nagents: [{name: s}]\n", &docs);
    struct bound c = bind_clean("name: x\nschema_dir: agents\nmax_delegation_depth: 0\nmax_delegation_repeats: 1\n"
                                "execution: {delegation_timeout: 1.5}\nagents: [{name: s}]\n",
                                &docs);

    ck_assert_str_eq(b.p->schema_dir, "");
    ck_assert_int_eq(b.p->max_delegation_depth, 3);
    ck_assert_int_eq(b.p->max_delegation_repeats, 2);
    ck_assert_int_eq(b.p->delegation_timeout_ms, 300000);
    ck_assert(!b.p->agents[0].session.joins && !b.p->agents[0].has_llm);
    ck_assert_str_eq(c.p->schema_dir, "agents");
    ck_assert_int_eq(c.p->max_delegation_depth, 0);
    ck_assert_int_eq(c.p->max_delegation_repeats, 1);
    ck_assert_int_eq(c.p->delegation_timeout_ms, 1500);
    bound_fini(&b);
    bound_fini(&c);
}
END_TEST

START_TEST(a_schema_dir_starts_at_the_pipelines_folder)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of("name: x\nschema_dir: a/b\nagents: [{name: s}]\n"), "t.yaml", "/x",
                                       findings, &p, NULL),
                     0);
    ck_assert_str_eq(p->schema_dir, "/x/a/b");
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

static const struct {
    const char *agents;
    int64_t calls;
} proofs[] = {
    {"[{agent: capped}]", 1},                           /* no tools: one reply is all */
    {"[{agent: full}]", 20},                            /* as many as it may request */
    {"[{agent: full, limits: {request_limit: 5}}]", 5}, /* or less */
    {"[{agent: full, max_rounds: 2}]", 4},              /* two rounds, one repair, the output */
    {"[{agent: asker}]", 100},                          /* those that it asks make calls as well */
    {"[{agent: asker, allowed_tools: [a]}]", 2},        /* unless it can not ask */
    {"[{name: m, has_llm: true, has_tools: true, model_role: default, allowed_tools: [ask_agent]}]", 100},
};

START_TEST(what_agents_may_call_is_in_the_proof)
{
    struct docs docs = DOCS(texts);
    rv_buf text = RV_BUF_INIT(4096);
    struct rv_proof proof = {0};
    struct bound b;

    rv_buf_printf(&text, "name: x\nmax_llm_calls: 100\nagents: %s\n", proofs[_i].agents);
    b = bind_clean(rv_buf_cstr(&text), &docs);
    for (int mode = 0; mode < 2; mode++) {
        ck_assert_int_eq(rv_pipeline_prove(b.p, mode ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL, &proof, NULL), 0);
        ck_assert_int_eq(proof.max_llm_calls, proofs[_i].calls);
        ck_assert_int_eq(proof.max_visits, 1);
        rv_proof_fini(&proof);
    }
    rv_buf_fini(&text);
    bound_fini(&b);
}
END_TEST

static char *explained(const struct rv_pipeline *p)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);

    rv_pipeline_write_json(p, &w);
    return rv_buf_steal(&b, NULL);
}

static void expect_parts(char *text, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(strstr(text, parts[i]), "%s\nis not in\n%s", parts[i], text);
    free(text);
}

START_TEST(views_show_what_agents_are)
{
    static const char *const parts[] = {
        "\"agent\":\"full\"",
        "\"structured_output\":true",
        "\"joins_session\":true",
        "\"chained_tool\":\"send\"",
        "\"chained_map\":{\"label\":\"subject\"}",
        "\"child_text\":\"final\"",
        "\"allowed_tools\":[\"a\",\"b\"]",
        "\"schema_dir\":\"dir\"",
        "\"max_delegation_depth\":3",
        "\"max_delegation_repeats\":2",
        "\"delegation_timeout\":300",
        "\"request_limit\":20",
        "\"agent:full\":{\"provider\":\"openai\",\"model\":\"gpt-4.1-mini\"",
    };
    static const char *const drawn[] = {"full", "agent, then send"};
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nschema_dir: dir\nagents: [agent: full]\n", &docs);

    expect_parts(explained(b.p), parts, RV_COUNT(parts));
    for (int format = RV_GRAPH_ASCII; format <= RV_GRAPH_JSON; format++) {
        rv_buf text = RV_BUF_INIT(1 << 20);
        rv_pipeline_write_graph(b.p, (enum rv_graph_format)format, &text);
        expect_parts(rv_buf_steal(&text, NULL), drawn, RV_COUNT(drawn));
    }
    bound_fini(&b);
}
END_TEST

/* --- Pipelines that a program makes --- */

/* What a run starts with and what its bundle opens later is the same pipeline. */
START_TEST(a_pipeline_of_a_value_is_the_one_that_its_text_makes)
{
    static const char keys[] = "{\"name\":\"plain\",\"capabilities\":[\"p8\",\"a/b.so\"],\"models\":{\"default\":{"
                               "\"model\":\"openai:gpt-4.1\",\"temperature\":0.7,\"max_tokens\":4000},\"own\":\"x:y\"},"
                               "\"max_llm_calls\":100,\"execution\":{\"agent_request_limit\":9},\"agents\":[{\"agent\":"
                               "\"plain\",\"model_role\":\"own\",\"temperature\":0,\"child_text\":\"both\"}]}";
    static const char *const documents[][2] = {{"plain", "name: plain\ndescription: Help.\ntools: [a]\n"}};
    struct docs docs = DOCS(documents);
    struct rv_agent_source source = docs_source(&docs);
    struct bound parsed = bind_clean(keys, &docs);
    rv_findings *findings = rv_findings_new();
    json_object *value = NULL;
    struct rv_pipeline *p = NULL;
    char *want = explained(parsed.p), *got;
    rv_str text;

    ck_assert_int_eq(rv_json_parse(rv_str_of(keys), NULL, &value, NULL), 0);
    ck_assert_int_eq(rv_pipeline_load_value(value, "t.yaml", findings, &p, NULL), 0);
    ck_assert_int_eq(rv_pipeline_bind_agents(p, &source, findings, NULL), 0);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    ck_assert(p->is_sound);
    got = explained(p);
    ck_assert_str_eq(got, want);
    text = rv_pipeline_text(p);
    ck_assert(rv_str_is(text, keys));
    ck_assert_int_eq(p->agents[0].places.model_role.line, 1); /* it was given */
    ck_assert_int_eq(p->agents[0].places.prompt_key.line, 0);
    free(got);
    free(want);
    json_object_put(value);
    rv_findings_free(findings);
    rv_pipeline_free(p);
    bound_fini(&parsed);
}
END_TEST

START_TEST(a_value_is_checked_as_a_file_is)
{
    rv_findings *findings = rv_findings_new();
    json_object *value = NULL;
    struct rv_pipeline *p = NULL;
    rv_buf text = RV_BUF_INIT(1 << 16);

    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("{\"name\":\"x\",\"agents\":[{\"name\":\"a\",\"max_retries\":-1}]}"),
                                   NULL, &value, NULL),
                     0);
    ck_assert_int_eq(rv_pipeline_load_value(value, "made", findings, &p, NULL), 0);
    ck_assert(!p->is_sound);
    rv_findings_write_text(findings, false, &text);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "made:1:1: error: agent \"a\""));
    rv_buf_fini(&text);
    json_object_put(value);
    rv_findings_free(findings);
    rv_pipeline_free(p);
}
END_TEST

TCase *bind_case(void)
{
    TCase *tc = tcase_create("bind");

    tcase_add_test(tc, a_stage_takes_its_name_from_its_agent);
    tcase_add_test(tc, an_agent_without_keys_gets_the_defaults);
    tcase_add_test(tc, a_document_decides_what_its_stage_leaves_open);
    tcase_add_test(tc, keys_of_the_stage_win);
    tcase_add_test(tc, no_temperature_is_one_that_the_stage_says);
    tcase_add_loop_test(tc, limits_are_the_stages_then_the_documents_then_the_engines, 0, RV_COUNT(limits));
    tcase_add_test(tc, structured_output_of_the_stage_wins);
    tcase_add_test(tc, an_empty_list_of_the_stage_takes_every_tool_away);
    tcase_add_test(tc, a_tool_is_offered_once);
    tcase_add_test(tc, documents_are_kept_as_they_were);
    tcase_add_test(tc, binding_again_changes_nothing);
    tcase_add_test(tc, stages_in_another_order_keep_their_own_keys);
    tcase_add_test(tc, what_delegation_may_do_has_defaults);
    tcase_add_test(tc, a_schema_dir_starts_at_the_pipelines_folder);
    tcase_add_loop_test(tc, what_agents_may_call_is_in_the_proof, 0, RV_COUNT(proofs));
    tcase_add_test(tc, views_show_what_agents_are);
    tcase_add_test(tc, a_pipeline_of_a_value_is_the_one_that_its_text_makes);
    tcase_add_test(tc, a_value_is_checked_as_a_file_is);
    return tc;
}
