/* Which model an agent has, what it costs, and how that is kept. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/analysis.h"
#include "tests/unit/config_agents/world.h"

#define DOC(name, more) "type: object\nname: " name "\ndescription: x\n" more
static const char *const texts[][2] = {
    {"own", DOC("own", "model: openai:gpt-4.1-mini\n")},
    {"fixed", DOC("fixed", "override_model: openai:gpt-4.1\n")},
    {"none", DOC("none", "")},
    {"rare", DOC("rare", "model: nobody:knows\n")},
    {"played", DOC("played", "model: 'scripted:x'\n")},
};

static const struct {
    const char *text, *role, *provider, *model; /* of the first stage; provider NULL: the role has no model */
    size_t n_models;
} roles[] = {
    {"name: x\nagents: [agent: own]\n", "agent:own", "openai", "gpt-4.1-mini", 1},
    {"name: x\nmodels: {default: 'a:b', big: 'c:d'}\nagents: [agent: own, {agent: own, name: s}]\n", "agent:own",
     "openai", "gpt-4.1-mini", 3},
    {"name: x\nmodels: {default: 'a:b', big: 'c:d'}\nagents: [{agent: own, model_role: big}]\n", "big", "c", "d", 2},
    {"name: x\nmodels: {default: 'a:b', big: 'c:d'}\nagents: [{agent: fixed, model_role: big}]\n", "agent:fixed",
     "openai", "gpt-4.1", 3},
    {"name: x\nmodels: {default: 'a:b', big: 'c:d'}\nagents: [agent: none]\n", "default", "a", "b", 2},
    {"name: x\nmodels: {default: {model: '${env:RV_NOT_SET_HERE}', optional: true}}\nagents: [agent: none]\n",
     "default", NULL, NULL, 0},
    {"name: x\nmodels: {'agent:own': {model: 'c:d', max_attempts: 1}}\nagents: [agent: own]\n", "agent:own", "c", "d",
     1}, /* what the file says of it wins */
    {"name: x\nagents: [agent: none]\n", "default", NULL, NULL, 0},
};

/* Proves remlight.4/model: The model: `override_model`, what is asked for, the document, the settings */
START_TEST(an_agent_has_the_model_that_is_nearest)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(roles[_i].text, &docs);
    const struct rv_agent *a = &b.p->agents[0];
    const struct rv_model_config *m = rv_pipeline_find_model(b.p, rv_str_of(a->model.role));

    ck_assert_str_eq(a->model.role, roles[_i].role);
    ck_assert(!m == !roles[_i].provider);
    if (m) {
        ck_assert_str_eq(m->provider, roles[_i].provider);
        ck_assert_str_eq(m->model, roles[_i].model);
    }
    ck_assert_uint_eq(b.p->n_models, roles[_i].n_models);
    bound_fini(&b);
}
END_TEST

START_TEST(without_any_model_it_is_said)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_text("name: x\nmodels: {big: 'c:d'}\nagents: [agent: none]\n", &docs);

    ck_assert_str_eq(b.findings, "t.yaml:3:17: error: agent \"none\": it has no model: its document names none, and "
                                 "models has no role \"default\"\n"
                                 "  hint: write model_role: ROLE, or model in its document\n");
    bound_fini(&b);
}
END_TEST

START_TEST(fallbacks_stay_where_they_lead)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean("name: x\nmodels: {a: {model: 'a:b', fallback: [c, b]}, b: 'b:b', c: 'c:c'}\n"
                                "agents: [agent: own, {name: s, has_llm: true, model_role: a}]\n",
                                &docs);
    const struct rv_model_config *m = rv_pipeline_find_model(b.p, rv_str_of("a"));

    ck_assert_ptr_eq(m->fallback_models[0], &b.p->models[2]);
    ck_assert_ptr_eq(m->fallback_models[1], &b.p->models[1]);
    bound_fini(&b);
}
END_TEST

static const struct {
    const char *agents, *want;
} budgets[] = {
    {"[agent: own]", ""},
    {"[agent: played]", "played.yaml:4:8: error: model \"agent:played\": there is a budget, and what this model costs "
                        "is not known\n  hint: say it, in US dollars for a million tokens: price: {input: 0.4, output: "
                        "1.6}\n"},
    {"[{agent: rare, model_role: free}, {agent: none, model_role: free}]", ""},
    {"[{agent: none}]",
     "t.yaml:3:10: error: model \"default\": there is a budget, and what this model costs is not "
     "known\n  hint: say it, in US dollars for a million tokens: price: {input: 0.4, output: 1.6}\n"},
    {"[{agent: none}, {name: s, has_llm: true, model_role: default}]",
     "t.yaml:3:10: error: model \"default\": there is a budget, and what this model costs is not known\n"
     "  hint: say it, in US dollars for a million tokens: price: {input: 0.4, output: 1.6}\n"},
};

START_TEST(a_budget_needs_the_price_of_what_is_asked)
{
    struct docs docs = DOCS(texts);
    rv_buf text = RV_BUF_INIT(4096);
    struct bound b;

    rv_buf_printf(&text,
                  "name: x\nbudget: {usd: 1}\nmodels: {default: scripted, free: {model: scripted, price: {input: 0, "
                  "output: 0}}}\nagents: %s\n",
                  budgets[_i].agents);
    b = bind_text(rv_buf_cstr(&text), &docs);
    ck_assert_str_eq(b.findings, budgets[_i].want);
    rv_buf_fini(&text);
    bound_fini(&b);
}
END_TEST

START_TEST(prices_of_documents_models_are_kept_for_the_next_time)
{
    static const char text[] = "name: x\nmodels: {default: 'openai:gpt-4.1'}\nagents: [agent: own, agent: rare]\n";
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(text, &docs);
    const struct rv_model_config *m = rv_pipeline_find_model(b.p, rv_str_of("agent:own"));
    struct rv_agent_source source = docs_source(&docs);
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    struct rv_chosen_model given[4];
    size_t n;
    const struct rv_chosen_model *chosen = rv_pipeline_chosen_models(b.p, &n);

    ck_assert(m->has_price && m->price_from_table && m->max_input_tokens > 0);
    ck_assert_uint_eq(n, 2); /* nothing is known of "rare" */
    ck_assert_str_eq(chosen[1].role, "agent:own");
    ck_assert(chosen[1].has_price && chosen[1].price.input == m->price.input);
    memcpy(given, chosen, n * sizeof *chosen);
    given[1].price.input = 12345; /* a table of another day */
    const struct rv_pipeline_opts opts = {.models = given, .n_models = n};
    ck_assert_int_eq(rv_pipeline_parse_with(&(const struct rv_pipeline_source){rv_str_of(text), "t.yaml", "."}, &opts,
                                            findings, &p, NULL),
                     0);
    ck_assert_int_eq(rv_pipeline_bind_agents(p, &source, findings, NULL), 0);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    m = rv_pipeline_find_model(p, rv_str_of("agent:own"));
    ck_assert(m->has_price && m->price.input == 12345);
    m = rv_pipeline_find_model(p, rv_str_of("agent:rare"));
    ck_assert(!m->has_price && m->max_input_tokens == 0);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    bound_fini(&b);
}
END_TEST

START_TEST(a_provider_that_is_not_known_is_said_in_the_document)
{
    struct docs docs = DOCS(texts);
    struct rv_known_names known = known_tools();
    rv_findings *findings = rv_findings_new();
    rv_buf out = RV_BUF_INIT(4096);
    struct bound b = bind_clean("name: x\nagents: [agent: rare]\n", &docs);

    rv_pipeline_check_names(b.p, &known, findings);
    rv_findings_write_text(findings, false, &out);
    ck_assert_str_eq(rv_buf_cstr(&out),
                     "rare.yaml:4:8: error: model \"agent:rare\": \"nobody\" is not a known provider\n"
                     "  hint: providers: anthropic, openai, scripted\n");
    rv_buf_fini(&out);
    rv_findings_free(findings);
    bound_fini(&b);
}
END_TEST

static const struct {
    const char *text, *want, *unscripted;
} lints[] = {
    {"name: x\nmodels: {default: 'a:b'}\nagents: [agent: none]\n", "", ""},
    {"name: x\nmodels: {default: 'a:b'}\nagents: [agent: own]\n",
     "t.yaml:2:10: warning: model \"default\" is never used: no stage with has_llm has it as model_role\n", ""},
    {"name: x\nagents: [agent: own]\n", "", ""},
    {"name: x\nagents: [agent: none]\n", "",
     "t.yaml:2:17: warning: agent \"none\" asks role \"default\", which has no model: without --script it cannot run\n"
     "  hint: give it one, for example models: {default: provider:model}, or play it with --script\n"},
};

START_TEST(lint_knows_what_agents_ask)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_clean(lints[_i].text, &docs);

    for (int unscripted = 0; unscripted < 2; unscripted++) {
        rv_findings *findings = rv_findings_new();
        rv_buf out = RV_BUF_INIT(4096);

        rv_buf_puts(&out, "");
        (unscripted ? rv_pipeline_lint_unscripted : rv_pipeline_lint)(b.p, findings);
        rv_findings_write_text(findings, false, &out);
        ck_assert_str_eq(rv_buf_cstr(&out), unscripted ? lints[_i].unscripted : lints[_i].want);
        rv_buf_fini(&out);
        rv_findings_free(findings);
    }
    bound_fini(&b);
}
END_TEST

START_TEST(nothing_is_said_of_models_before_agents_are_bound)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of("name: x\nbudget: {usd: 1}\nmodels: {default: 'nobody:knows'}\n"
                                                 "agents: [agent: own]\n"),
                                       "t.yaml", ".", findings, &p, NULL),
                     0);
    rv_pipeline_lint(p, findings);
    rv_pipeline_lint_unscripted(p, findings);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

TCase *models_case(void)
{
    TCase *tc = tcase_create("models");

    tcase_add_loop_test(tc, an_agent_has_the_model_that_is_nearest, 0, RV_COUNT(roles));
    tcase_add_test(tc, without_any_model_it_is_said);
    tcase_add_test(tc, fallbacks_stay_where_they_lead);
    tcase_add_loop_test(tc, a_budget_needs_the_price_of_what_is_asked, 0, RV_COUNT(budgets));
    tcase_add_test(tc, prices_of_documents_models_are_kept_for_the_next_time);
    tcase_add_test(tc, a_provider_that_is_not_known_is_said_in_the_document);
    tcase_add_test(tc, nothing_is_said_of_models_before_agents_are_bound);
    tcase_add_loop_test(tc, lint_knows_what_agents_ask, 0, RV_COUNT(lints));
    return tc;
}
