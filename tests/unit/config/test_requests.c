/* Keys about requests to a model: the system prompt, examples and attachments of a stage. */
#include "tests/unit/config/world.h"

#define HEAD         "name: x\nmodels: {r: scripted}\nagents:\n"
#define STAGE(keys)  HEAD "  - {name: a, has_llm: true, model_role: r, " keys "}\n"
#define WITH(prompt) "prompts: {s: '" prompt "'}\n"
#define NAMES                                                                                                          \
    "names: a, raw_input, user_id, session_id, metadata, iteration, loop_feedback, prior_plans, interrupt_response, "  \
    "outputs, state, stage_context\n"

static const struct {
    const char *text, *want;
} cases[] = {
    /* the system prompt is checked as a prompt that is used */
    {STAGE("system_key: s") WITH("{{a}} {{metadata.x}}"), ""},
    {STAGE("system_key: s") WITH("{{zz}}"),
     "t.yaml:5:15: error: prompt \"s\": {{zz}} can have no value: nothing is called \"zz\"\n"
     "  hint: " NAMES},
    {STAGE("system_key: s") WITH("{% if %}"),
     "t.yaml:5:15: warning: prompt \"s\": the model gets \"{% if %}\" as it stands\n"
     "  hint: tags are {{name}}, {{#list}}...{{/list}}, {{^list}}...{{/list}}; write \\{{ for braces that are text\n"},
    {HEAD "  - {agent: a, system_key: s}\n" WITH("x"),
     "t.yaml:4:28: error: agent \"a\": system_key says what the document of a declared agent says\n"
     "  hint: put the text into the document\n"},
    {HEAD "  - {agent: a, examples: [{user: u, assistant: v}], attachments: [metadata.x]}\n", ""},
    /* examples */
    {STAGE("examples: []"), ""},
    {STAGE("examples: [{user: '{{raw_input}}', assistant: '{{#a}}{{.x}}{{/a}}'}]"), ""},
    {STAGE("examples: {user: u, assistant: v}"),
     "t.yaml:4:55: error: agent \"a\": examples must be a list of maps, not map\n"
     "  hint: begin each item with `- `, as in `- user: u`\n"},
    {STAGE("examples: [{user: u}, {user: 1, assistant: ''}, x, {user: u, assistant: v, usr: w}]"),
     "t.yaml:4:56: error: agent \"a\": examples[0].assistant is required\n"
     "  hint: add `assistant:`, what it is to have answered; with placeholders, too\n"
     "t.yaml:4:74: error: agent \"a\": examples[1].user must be a string, not integer 1\n"
     "  hint: put it in quotes: \"1\"\n"
     "t.yaml:4:88: error: agent \"a\": examples[1].assistant is required but empty\n"
     "t.yaml:4:93: error: agent \"a\": must be a map, not string \"x\"\n"
     "  hint: keys here: user, assistant\n"
     "t.yaml:4:120: error: agent \"a\": unknown key \"examples[3].usr\"\n"
     "  hint: did you mean \"user\"?\n"},
    {STAGE("examples: [{user: '{{zz}}', assistant: '{{a | upper}}'}, {user: '{{#if x}}', assistant: '{{outputs.b}}'}]"),
     "t.yaml:4:64: error: agent \"a\": examples[0].user: {{zz}} can have no value: nothing is called \"zz\"\n"
     "  hint: " NAMES
     "t.yaml:4:85: error: agent \"a\": examples[0].assistant: \"{{a | upper\": unknown filter \"upper\"\n"
     "  hint: filters are default, json, join, truncate, indent\n"
     "t.yaml:4:110: warning: agent \"a\": examples[1].user: the model gets \"{{#if x}}\" as it stands\n"
     "  hint: tags are {{name}}, {{#list}}...{{/list}}, {{^list}}...{{/list}}; write \\{{ for braces that are text\n"
     "t.yaml:4:134: error: agent \"a\": examples[1].assistant: {{outputs.b}} names the output \"b\", which no stage "
     "makes\n"
     "  hint: output keys: a\n"},
    /* attachments */
    {STAGE("attachments: ['outputs.a.picture', \"'https://x/y.png'\", 'has(metadata.p) ? metadata.p : null']"), ""},
    {STAGE("attachments: metadata.x"),
     "t.yaml:4:58: error: agent \"a\": attachments must be a list of expressions, not string \"metadata.x\"\n"
     "  hint: write a list: [metadata.x]\n"},
    {STAGE("attachments: [1, 'output.x', 'metadata.', 'outputs.zz.p']"),
     "t.yaml:4:59: error: agent \"a\": attachments[0] must be an expression, not integer 1\n"
     "t.yaml:4:63: error: agent \"a\": attachments[1]: unknown variable \"output\"\n"
     "  hint: did you mean \"outputs\"?\n"
     "t.yaml:4:84: error: agent \"a\": attachments[2]: unexpected end of the expression, expected a field name after "
     "\".\"; other names are written a[\"name\"]\n"
     "t.yaml:4:96: error: agent \"a\": attachments[3] names the output \"zz\", which no stage makes\n"
     "  hint: output keys: a\n"},
    /* names that only some visits have */
    {STAGE("for_each: metadata.birds, max_items: 9, attachments: [item.picture], system_key: s") WITH("{{item.name}}"),
     ""},
    /* without a model */
    {HEAD "  - {name: a, system_key: s, examples: [], attachments: []}\n" WITH("x"),
     "t.yaml:4:27: warning: agent \"a\": system_key has no effect: the stage does not call a model\n"
     "  hint: set has_llm, or leave it out\n"
     "t.yaml:4:40: warning: agent \"a\": examples has no effect: the stage does not call a model\n"
     "  hint: set has_llm, or leave it out\n"
     "t.yaml:4:57: warning: agent \"a\": attachments has no effect: the stage does not call a model\n"
     "  hint: set has_llm, or leave it out\n"},
};

START_TEST(keys_of_requests_are_checked)
{
    expect_findings(cases[_i].text, cases[_i].want);
}
END_TEST

START_TEST(their_number_is_bounded)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    rv_buf_puts(&text, HEAD "  - name: a\n    has_llm: true\n    model_role: r\n    attachments: [");
    for (int i = 0; i <= RV_MAX_ATTACHMENTS; i++)
        rv_buf_puts(&text, "metadata.x, ");
    rv_buf_puts(&text, "]\n    examples:\n");
    for (int i = 0; i <= RV_MAX_EXAMPLES; i++)
        rv_buf_puts(&text, "      - {user: u, assistant: v}\n");
    expect_findings(rv_buf_cstr(&text),
                    "t.yaml:7:18: error: agent \"a\": attachments has 33 entries (the limit is 32)\n"
                    "t.yaml:9:7: error: agent \"a\": examples has 65 entries (the limit is 64)\n");
    rv_buf_fini(&text);
}
END_TEST

TCase *requests_case(void)
{
    TCase *tc = tcase_create("requests");

    tcase_add_loop_test(tc, keys_of_requests_are_checked, 0, RV_COUNT(cases));
    tcase_add_test(tc, their_number_is_bounded);
    return tc;
}
