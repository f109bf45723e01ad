/* What is wrong with declared agents, and where it is said: in the pipeline or in the document. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config_agents/world.h"

#define DOC(name, more) "type: object\nname: " name "\ndescription: x\n" more
static const char *const texts[][2] = {
    {"ok", DOC("ok", "")},
    {"lost", DOC("other", "")},
    {"far", DOC("far", "tools: [a, {name: t, server: crm}]\n")},
    {"asker", DOC("asker", "tools: [{name: ask_agent, server: crm}]\n")},
    {"reader", DOC("reader", "tools: [{name: r, uri: 'rem://x'}]\n")},
    {"chain", DOC("chain", "structured_output: true\nproperties: {a: {type: string}}\nchained_tool: sedn\n")},
    {"tooled", DOC("tooled", "tools: [ask_agent, b, c]\n")},
    {"broken", "name: broken\n  x: [\n"},
};

static const struct {
    const char *text, *want;
} cases[] = {
    {"name: x\nagents: [{agent: nobody}]\n",
     "t.yaml:2:18: error: agent \"nobody\": there is no agent \"nobody\"\n  hint: look into the folder\n"},
    {"name: x\nagents:\n  - {agent: nobody, name: one}\n  - {agent: nobody, name: two}\n",
     "t.yaml:3:13: error: agent \"one\": there is no agent \"nobody\"\n  hint: look into the folder\n"
     "t.yaml:4:13: error: agent \"two\": there is no agent \"nobody\"\n  hint: look into the folder\n"},
    {"name: x\nagents: [{agent: garbled}]\n", "row 7:2:3: error: agent \"garbled\": it is no agent\n"},
    {"name: x\nagents: [{agent: lost}]\n",
     "lost.yaml:2:7: error: agent \"lost\": the document is of agent \"other\", not of \"lost\"\n"},
    {"name: x\nagents: [{agent: far}]\n",
     "far.yaml:4:12: error: agent \"far\": tool \"t\": no server \"crm\" is configured\n"
     "  hint: add it to mcp_servers of the pipeline, leave server out for a tool of a capability, or take the tool "
     "out\n"},
    {"name: x\nagents: [{agent: far, allowed_tools: [a]}]\n", ""},
    {"name: x\nagents: [{agent: asker}]\n", ""},  /* p8 7.1: whatever its server */
    {"name: x\nagents: [{agent: reader}]\n", ""}, /* p8 7.3 */
    {"name: x\nagents: [{agent: ok, has_llm: false, has_tools: false}]\n",
     "t.yaml:2:31: error: agent \"ok\": has_llm is false, but a declared agent calls a model\n"
     "  hint: leave has_llm out\n"
     "t.yaml:2:49: error: agent \"ok\": has_tools is false, but its document says what tools there are\n"
     "  hint: write allowed_tools: [] for none\n"},
    {"name: x\nagents: [{agent: ok, has_llm: true, has_tools: true}]\n", ""},
    {"name: x\nagents: [{agent: ok, output_mode: text, output_schema: {type: object}}]\n",
     "t.yaml:2:35: error: agent \"ok\": output_mode is what the document of a declared agent makes it\n"
     "  hint: leave it out, or write structured_output: true or false\n"},
    {"name: x\nagents: [{agent: ok, output_via: tool}]\n",
     "t.yaml:2:34: warning: agent \"ok\": output_via says how to come to an output that nothing describes\n"
     "  hint: write structured_output: true, or leave it out\n"},
    {"name: x\nagents: [{name: s, joins_session: false, structured_output: true}]\n",
     "t.yaml:2:35: error: agent \"s\": joins_session is for declared agents, and the stage has none\n"
     "  hint: name one: agent: NAME, or leave the key out\n"
     "t.yaml:2:61: error: agent \"s\": structured_output is for declared agents, and the stage has none\n"
     "  hint: name one: agent: NAME, or leave the key out\n"},
    {"name: x\nagents: [{agent: ok, structured_output: maybe, child_text: kid}]\n",
     "t.yaml:2:41: error: agent \"ok\": structured_output must be a boolean, not string \"maybe\"\n"
     "  hint: booleans are written true and false\n"
     "t.yaml:2:60: error: agent \"ok\": child_text is \"kid\", which is not a valid choice of what is heard\n"
     "  hint: legal: child, parent, both, final\n"},
    {"name: x\nagents: [{agent: 'two words', name: s}]\n",
     "t.yaml:2:18: error: agent \"s\": agent is \"two words\", which is not the name of an agent\n"
     "  hint: a name is one word of letters, digits, \"-\", \"_\" and \".\"\n"},
    {"name: x\nagents: [{agent: '', name: s}]\n",
     "t.yaml:2:18: error: agent \"s\": agent is \"\", which is not the name of an agent\n"
     "  hint: a name is one word of letters, digits, \"-\", \"_\" and \".\"\n"},
    {"name: x\nagents: [{agent: 1}, {agent: ok, name: ''}, {}]\n",
     "t.yaml:2:18: error: agent: agent must be a string, not integer 1\n  hint: put it in quotes: \"1\"\n"
     "t.yaml:2:40: error: agent: name is required but empty\n"
     "t.yaml:2:45: error: agent: name is required\n  hint: add `name:` with one word\n"},
    {"name: x\nagents: [agent: ok, agent: ok]\n",
     "t.yaml:2:28: error: duplicate agent name \"ok\"; the first one is on line 2\n"
     "  hint: give each agent a name of its own\n"},
    {"name: x\nmax_delegation_depth: 17\nmax_delegation_repeats: 0\nagents: [{name: s}]\n",
     "t.yaml:2:23: error: pipeline \"x\": max_delegation_depth must be at most 16, not 17\n"
     "  hint: left out, it is 3\n"
     "t.yaml:3:25: error: pipeline \"x\": max_delegation_repeats must be at least 1, not 0\n"
     "  hint: left out, it is 2\n"},
    {"name: x\nagents: [{agent: ok, model_role: bigg}]\nmodels: {big: scripted}\n",
     "t.yaml:2:34: error: agent \"ok\": model_role names \"bigg\", which is not a role of models\n"
     "  hint: did you mean \"big\"? roles: big\n"},
};

/* Proves p8.7.1/classes: `ask_agent` is the engine's own whatever its server; `local`, `rem` and none are the
 * process; a tool that is named twice is offered once */
START_TEST(faults_are_found_at_their_places)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_text(cases[_i].text, &docs);

    ck_assert_str_eq(b.findings, cases[_i].want);
    bound_fini(&b);
}
END_TEST

START_TEST(a_fault_in_a_document_is_said_once)
{
    struct docs docs = DOCS(texts);
    struct bound b = bind_text("name: x\nagents: [{agent: broken}, {agent: broken, name: again}]\n", &docs);

    ck_assert_int_eq(strncmp(b.findings, "broken.yaml", 11), 0);
    ck_assert_ptr_null(strstr(b.findings + 11, "broken.yaml"));
    ck_assert_ptr_null(strstr(b.findings, "t.yaml"));
    ck_assert_ptr_null(b.p->agents[0].declared.doc);
    ck_assert(!b.p->is_sound);
    bound_fini(&b);
}
END_TEST

START_TEST(a_source_that_fails_is_no_finding)
{
    struct docs docs = DOCS(texts);
    struct rv_agent_source source = docs_source(&docs);
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(
        rv_pipeline_parse(rv_str_of("name: x\nagents: [agent: offline]\n"), "t.yaml", ".", findings, &p, NULL), 0);
    ck_assert_int_eq(rv_pipeline_bind_agents(p, &source, findings, &err), RV_E_IO);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    ck_assert(!p->is_sound);
    rv_err_free(err);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

START_TEST(a_document_that_is_too_long_is_a_finding)
{
    char *long_text = malloc(RV_AGENTDOC_MAX_BYTES + 2);
    const char *list[1][2] = {{"long", long_text}};
    struct docs docs = {(const char *const(*)[2])list, 1, 0};
    struct bound b;

    memset(long_text, '#', RV_AGENTDOC_MAX_BYTES + 1);
    long_text[RV_AGENTDOC_MAX_BYTES + 1] = 0;
    b = bind_text("name: x\nagents: [agent: long]\n", &docs);
    ck_assert_ptr_nonnull(strstr(b.findings, "t.yaml:2:17: error: agent \"long\": "));
    ck_assert_ptr_nonnull(strstr(b.findings, "limit"));
    bound_fini(&b);
    free(long_text);
}
END_TEST

/* A long document of whatever name is asked for. */
static int find_long(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    rv_buf_clear(b);
    rv_buf_printf(b, "type: object\nname: %s\ndescription: x\n#%0*d\n", name, (int)RV_AGENTDOC_MAX_BYTES - 200, 0);
    *text = rv_buf_str(b);
    *place = name;
    return 0;
}

START_TEST(all_documents_together_have_a_size)
{
    enum { N = 70 }; /* of which 64 are 16 MiB */
    rv_buf text = RV_BUF_INIT(1 << 20), document = RV_BUF_INIT(1 << 20), out = RV_BUF_INIT(1 << 20);
    const struct rv_agent_source source = {find_long, &document};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    size_t n;

    rv_buf_puts(&text, "name: x\nagents:\n");
    for (int i = 0; i < N; i++)
        rv_buf_printf(&text, "  - agent: a%d\n", i);
    ck_assert_int_eq(rv_pipeline_parse(rv_buf_str(&text), "t.yaml", ".", findings, &p, NULL), 0);
    ck_assert_int_eq(rv_pipeline_bind_agents(p, &source, findings, NULL), 0);
    rv_findings_write_text(findings, false, &out);
    ck_assert_int_eq(strncmp(rv_buf_cstr(&out),
                             "t.yaml:67:12: error: agent \"a64\": all agent documents together exceed 16777216 bytes\n",
                             80),
                     0);
    RV_IGNORE(rv_pipeline_bound_agents(p, &n) == NULL, "only the number counts");
    ck_assert_uint_eq(n, 64);
    ck_assert(!p->is_sound);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    rv_buf_fini(&text);
    rv_buf_fini(&document);
    rv_buf_fini(&out);
}
END_TEST

static const struct {
    const char *agents, *want;
} names[] = {
    {"[{agent: tooled}]",
     "tooled.yaml:4:23: error: agent \"tooled\": allowed_tools names \"c\", which is not a known tool\n"
     "  hint: tools: a, b, send\n"},
    {"[{agent: chain}]",
     "chain.yaml:6:15: error: agent \"chain\": chained_tool names \"sedn\", which is not a known tool\n"
     "  hint: did you mean \"send\"? tools: a, b, send\n"},
    {"[{name: m, has_llm: true, has_tools: true, model_role: default, allowed_tools: [ask_agent]}]", ""},
    {"[{name: m, has_tools: true, allowed_tools: [ask_agent]}]",
     "t.yaml:2:53: error: agent \"m\": allowed_tools names \"ask_agent\", which is not a known tool\n"
     "  hint: tools: a, b, send\n"},
};

/* Proves p8.W12: A tool that nobody has, or a server that is not configured, is an error before anything is asked
 * Proves remlight.19/15 */
START_TEST(names_of_tools_must_be_known)
{
    struct docs docs = DOCS(texts);
    struct rv_known_names known = known_tools();
    rv_findings *findings = rv_findings_new();
    rv_buf text = RV_BUF_INIT(4096), out = RV_BUF_INIT(4096);
    struct bound b;

    rv_buf_printf(&text, "name: x\nagents: %s\n", names[_i].agents);
    b = bind_clean(rv_buf_cstr(&text), &docs);
    rv_pipeline_check_names(b.p, &known, findings);
    rv_findings_write_text(findings, false, &out);
    ck_assert_str_eq(rv_buf_cstr(&out), names[_i].want);
    ck_assert(b.p->is_sound == !names[_i].want[0]);
    rv_findings_free(findings);
    rv_buf_fini(&text);
    rv_buf_fini(&out);
    bound_fini(&b);
}
END_TEST

TCase *faults_case(void)
{
    TCase *tc = tcase_create("faults");

    tcase_add_loop_test(tc, faults_are_found_at_their_places, 0, RV_COUNT(cases));
    tcase_add_test(tc, a_fault_in_a_document_is_said_once);
    tcase_add_test(tc, a_source_that_fails_is_no_finding);
    tcase_add_test(tc, a_document_that_is_too_long_is_a_finding);
    tcase_add_test(tc, all_documents_together_have_a_size);
    tcase_add_loop_test(tc, names_of_tools_must_be_known, 0, RV_COUNT(names));
    return tc;
}
