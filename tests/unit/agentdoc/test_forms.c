/* The three forms and what each makes of its keys (p8 1.4, 1.6, W5; remlight 3). */
#include <stdlib.h>

#include "tests/unit/agentdoc/suites.h"

#define HEAD "name: a\ndescription: d\n"

/* The members of the flat document that differ from those of HEAD alone. */
static const struct {
    const char *text;
    enum rv_agentdoc_form form;
    const char *name, *description, *model;
    bool overrides;
} forms[] = {
    {HEAD, RV_AGENTDOC_FLAT, "a", "d", NULL, false},
    {HEAD "model: gpt", RV_AGENTDOC_FLAT, "a", "d", "openai:gpt", false}, /* p8 6: a bare name is openai's */
    {HEAD "model: anthropic:x:y", RV_AGENTDOC_FLAT, "a", "d", "anthropic:x:y", false},
    {HEAD "override_model: o:p", RV_AGENTDOC_FLAT, "a", "d", "o:p", true},
    {HEAD "override_model: o:p\nmodel: q:r", RV_AGENTDOC_FLAT, "a", "d", "o:p", true}, /* in either order */
    {HEAD "model: q:r\noverride_model: o:p", RV_AGENTDOC_FLAT, "a", "d", "o:p", true},
    {HEAD "content: c\nmodel_name: m", RV_AGENTDOC_FLAT, "a", "d", NULL, false}, /* name and description decide */
    {"description: d\njson_schema_extra: {name: a}", RV_AGENTDOC_NESTED, "a", "d", NULL, false},
    {"name: b\ndescription: e\njson_schema_extra: {name: a, description: d}", RV_AGENTDOC_NESTED, "a", "d", NULL,
     false},
    {"description: d\njson_schema_extra: {name: a, override_model: m}", RV_AGENTDOC_NESTED, "a", "d", "openai:m", true},
    {"name: a\ncontent: d\ndescription: e\njson_schema: {model_name: m}", RV_AGENTDOC_LEGACY, "a", "d", "openai:m",
     false},
    {"name: a\ndescription: d\njson_schema: {model: m}", RV_AGENTDOC_LEGACY, "a", "d", "openai:m", false},
    {"name: a\ncontent: ''\ndescription: d\njson_schema: null", RV_AGENTDOC_LEGACY, "a", "d", NULL, false},
    {"content: d\njson_schema: {name: a}", RV_AGENTDOC_LEGACY, "a", "d", NULL, false},
    {"name: a\ncontent: d", RV_AGENTDOC_LEGACY, "a", "d", NULL, false},
    {"name: a\ncontent: d\nmodel_name: m\nmodel: n", RV_AGENTDOC_LEGACY, "a", "d", "openai:m", false},
    {"name: row\ncontent: d\njson_schema: {name: a, description: d}", RV_AGENTDOC_FLAT, "a", "d", NULL, false},
    {"name: row\njson_schema: {description: d, json_schema_extra: {name: a}}", RV_AGENTDOC_NESTED, "a", "d", NULL,
     false},
};

/* Proves p8.1.6: Three forms, told apart by what is written in them
 * Proves p8.W5: Forms are not guessed; a key without effect is a warning, and no configuration is lost
 * Proves remlight.3: The nested form, with both spellings of the knobs */
START_TEST(a_document_has_the_form_that_is_written_in_it)
{
    struct rv_agentdoc *d = doc_of(forms[_i].text);

    ck_assert_int_eq(d->form, forms[_i].form);
    ck_assert_str_eq(d->name, forms[_i].name);
    ck_assert_str_eq(d->description, forms[_i].description);
    ck_assert_pstr_eq(d->model, forms[_i].model);
    ck_assert_int_eq(d->model_overrides, forms[_i].overrides);
    rv_agentdoc_free(d);
}
END_TEST

/* Proves p8.1.1: Fields of a flat document, with their types and defaults; scalars may be written laxly where that
 * is unambiguous
 * Proves remlight.19/14: What a document says is applied or refused: temperature 0, limits, `max_tokens` */
START_TEST(a_flat_document_has_every_field)
{
    struct rv_agentdoc *d = doc_of(
        HEAD
        "kind: k\nversion: '3'\nshort_description: s\nsystem_prompt: p\nauthor: w\nstructured_output: true\n"
        "chained_tool: save\nchained_map: {x: y}\nproperties: {x: {type: string}}\nrequired: [x]\n"
        "temperature: 0\nmax_tokens: 5\nmax_iterations: 6\nlimits: {request_limit: 1, tool_calls_limit: 2,\n"
        "  input_tokens_limit: 3, output_tokens_limit: 4, total_tokens_limit: 5}\nrouting_enabled: false\n"
        "routing_max_turns: 7\nrouting: {agents: [b, c], fallback: f}\nobservation_mode: disabled\n"
        "context_token_budget: 100\nalways_include_last_messages: 0\nreplay: skip\ntags: [t, u]\n$defs: {D: {}}\n");

    ck_assert_str_eq(d->kind, "k");
    ck_assert_str_eq(d->version, "3");
    ck_assert_str_eq(d->short_description, "s");
    ck_assert_str_eq(d->system_prompt, "p");
    ck_assert_str_eq(d->author, "w");
    ck_assert(d->structured_output && d->has_temperature && d->temperature == 0); /* remlight 19.14: 0 counts */
    ck_assert_str_eq(d->chained_tool, "save");
    ck_assert_int_eq(json_object_object_length(d->chained_map), 1);
    ck_assert_int_eq(d->max_tokens, 5);
    ck_assert_int_eq(d->max_iterations, 6);
    ck_assert_int_eq(d->limits.request_limit, 1);
    ck_assert_int_eq(d->limits.tool_calls_limit, 2);
    ck_assert_int_eq(d->limits.input_tokens_limit, 3);
    ck_assert_int_eq(d->limits.output_tokens_limit, 4);
    ck_assert_int_eq(d->limits.total_tokens_limit, 5);
    ck_assert(!d->routing_enabled);
    ck_assert_int_eq(d->routing_max_turns, 7);
    ck_assert_uint_eq(d->routes.n, 2);
    ck_assert_str_eq(d->routes.items[1], "c");
    ck_assert_str_eq(d->routing_fallback, "f");
    ck_assert_int_eq(d->observation_mode, RV_OBSERVATION_DISABLED);
    ck_assert_int_eq(d->context_token_budget, 100);
    ck_assert_int_eq(d->always_include_last, 0);
    ck_assert_int_eq(d->replay, 1); /* RV_REPLAY_SKIP */
    ck_assert_uint_eq(d->tags.n, 2);
    ck_assert(d->defs && d->properties && d->required);
    ck_assert_int_eq(d->limits_src.line, 16);
    ck_assert_int_eq(d->name_src.col, 7);
    rv_agentdoc_free(d);
}
END_TEST

/* Proves p8.1.1 */
START_TEST(what_is_not_given_has_its_default)
{
    struct rv_agentdoc *d =
        doc_of(HEAD "model: null\nlimits: null\nstructured_output: null\ntemperature: ~\ndefinitions: null\n");

    ck_assert_str_eq(d->kind, "agent");
    ck_assert_str_eq(d->version, "1.0.0");
    ck_assert_ptr_null(d->short_description);
    ck_assert_ptr_null(d->model);
    ck_assert(!d->structured_output && !d->has_temperature && d->routing_enabled && d->n_tools == 0);
    ck_assert_int_eq(d->routing_max_turns, 20);
    ck_assert_int_eq(d->observation_mode, RV_OBSERVATION_SYNC);
    ck_assert_int_eq(d->always_include_last, RV_UNSET);
    ck_assert_int_eq(d->replay, RV_UNSET);
    ck_assert_int_eq(d->context_token_budget, 0);
    ck_assert(!d->routes.is_set && !d->properties && !d->required && !d->defs && !d->chained_map);
    rv_agentdoc_free(d);
}
END_TEST

/* Proves p8.1.6 */
START_TEST(a_legacy_row_keeps_what_the_form_has)
{
    struct rv_agentdoc *d = doc_of("name: a\ncontent: c\njson_schema:\n  model_name: m\n  temperature: '0.5'\n"
                                   "  max_iterations: 3\n  limits: {request_limit: 2}\n  structured_output: 'on'\n"
                                   "  routing_enabled: 0\n  routing_max_turns: 4\n  observation_mode: disabled\n"
                                   "  tools: [x]\n  response_schema: {properties: {p: {type: string}}, required: [p],\n"
                                   "    $defs: {D: {}}}\n");

    ck_assert(d->temperature == 0.5 && d->structured_output && !d->routing_enabled && d->properties && d->defs);
    ck_assert_int_eq(d->max_iterations, 3);
    ck_assert_int_eq(d->limits.request_limit, 2);
    ck_assert_int_eq(d->routing_max_turns, 4);
    ck_assert_int_eq(d->observation_mode, RV_OBSERVATION_DISABLED);
    ck_assert_uint_eq(d->n_tools, 1);
    rv_agentdoc_free(d);
}
END_TEST

/* Proves p8.W5 */
START_TEST(further_keys_are_kept_as_they_are)
{
    struct rv_agentdoc *d = doc_of(HEAD "title: T\nx-list: [1, 2.50, null]\n$comment: c\nodd: {deep: 'no'}\nicon: i\n");
    char *flat = flat_of(d);

    ck_assert_str_eq(flat,
                     "{\"type\":\"object\",\"description\":\"d\",\"properties\":{},\"required\":[],\"name\":\"a\","
                     "\"kind\":\"agent\",\"version\":\"1.0.0\",\"structured_output\":false,\"tools\":[],"
                     "\"routing_enabled\":true,\"routing_max_turns\":20,\"observation_mode\":\"sync\",\"tags\":[],"
                     "\"x-list\":[1,2.50,null],\"$comment\":\"c\",\"odd\":{\"deep\":\"no\"},\"icon\":\"i\"}");
    free(flat);
    rv_agentdoc_free(d);
}
END_TEST

static const struct {
    const char *text, *want;
} warnings[] = {
    {HEAD "x-a: 1\n$schema: s\n$id: i\ntitle: t\nexamples: []\n$comment: c\nadditionalProperties: false\nicon: i\n"
          "enabled: true\n",
     NULL},
    {HEAD "modle: m",
     "a.yaml:3:1: warning: agent \"a\": the key \"modle\" has no effect\n  hint: did you mean \"model\"?"},
    {HEAD "routing_model: m", "3:1: warning: agent \"a\": the key \"routing_model\" has no effect"},
    {HEAD "mcp_servers: []", "the key \"mcp_servers\" has no effect"},
    {HEAD "favourite: blue", "hint: it is only kept; begin the key with \"x-\" if that is wanted"},
    {"name: a\n", "warning: agent \"a\": there is no description: the prompt is empty"},
    {"description: d\nname: b\njson_schema_extra: {name: a}",
     "a.yaml:2:1: warning: agent \"a\": the key \"name\" has no "
     "effect\n  hint: the one in json_schema_extra wins"},
    {"description: d\nname: a\njson_schema_extra: {name: a}", NULL},
    {"description: d\njson_schema_extra: {name: a, titel: x}",
     "2:30: warning: agent \"a\": the key \"titel\" has no effect"},
    {"name: a\ncontent: c\njson_schema: {chained_tool: t}",
     "3:15: warning: agent \"a\": the key \"chained_tool\" has no effect\n  hint: the legacy form does not read it"},
    {"name: a\ncontent: c\njson_schema: {temprature: 1}", "hint: did you mean \"temperature\"?"},
    {"name: a\ncontent: c\njson_schema: {system_prompt: s, properties: {}, tags: [], version: '1'}",
     "the key \"version\" has no effect"},
    {"id: 1\nname: a\nkind: agent\ncontent: c\nmetadata: {}\ncreated_at: x\njson_schema: {limits: {}}", NULL},
    {"name: a\ncontent: c\njson_schema: {response_schema: {type: object, title: t, anyOf: []}}",
     "the key \"anyOf\" has no effect\n  hint: a legacy response_schema gives properties, required and $defs only"},
    {"name: r\ncontent: other\njson_schema: {name: a, description: d}",
     "2:1: warning: agent \"r\": the key \"content\" has no effect\n  hint: the prompt is json_schema.description"},
    {"name: r\ncontent: d\njson_schema: {name: a, description: d}", NULL},
    {"name: r\nmodel: m\njson_schema: {name: a, description: d}",
     "the key \"model\" has no effect\n  hint: the document is in json_schema: write it there"},
    {HEAD "override_model: o\nmodel: m", "4:8: warning: agent \"a\": the key \"model\" has no effect"},
    {HEAD "history: none\ncontext_token_budget: 5", "context_token_budget has no effect beside history: none"},
    {HEAD "context_token_budget: 5\nhistory: none", "context_token_budget has no effect beside history: none"},
};

/* Proves p8.W5 */
START_TEST(what_has_no_effect_is_a_warning)
{
    ck_findings(warnings[_i].text, warnings[_i].want);
}
END_TEST

static const struct {
    const char *text, *want;
} errors[] = {
    {"description: d\n", "a.yaml:1:1: error: agent: name is required"},
    {"properties: {a: {}}\nmodel: m\n", "name is required"}, /* W5: nothing is guessed */
    {"json_schema_extra: 3\nname: a\ndescription: d\n",
     "a.yaml:1:20: error: agent \"a\": json_schema_extra must be a map, not integer 3"},
    {"name: a\njson_schema: [x]\n", "json_schema must be a map, not list"},
    {"name: a\ncontent: c\njson_schema: {response_schema: []}", "response_schema must be a map, not list"},
    {"- a\n", "an agent document must be a map, not list"},
    {"", "an agent document must be a map, not empty"},
    {HEAD "type: array\n", "3:7: error: agent \"a\": type cannot be \"array\"\n  hint: one of: object"},
    {HEAD "$defs: {}\ndefinitions: {}\n", "4:14: error: agent \"a\": it has both $defs and definitions"},
};

START_TEST(what_is_no_document_is_an_error)
{
    ck_findings(errors[_i].text, errors[_i].want);
}
END_TEST

START_TEST(history_none_takes_all_of_it_away)
{
    struct rv_agentdoc *d = doc_of(HEAD "context_token_budget: 5\nhistory: none");

    ck_assert_int_eq(d->context_token_budget, -1);
    rv_agentdoc_free(d);
    d = doc_of(HEAD "history: none\ncontext_token_budget: 5");
    ck_assert_int_eq(d->context_token_budget, -1);
    rv_agentdoc_free(d);
}
END_TEST

TCase *forms_case(void)
{
    TCase *tc = tcase_create("forms");

    tcase_add_loop_test(tc, a_document_has_the_form_that_is_written_in_it, 0, RV_COUNT(forms));
    tcase_add_test(tc, a_flat_document_has_every_field);
    tcase_add_test(tc, what_is_not_given_has_its_default);
    tcase_add_test(tc, a_legacy_row_keeps_what_the_form_has);
    tcase_add_test(tc, further_keys_are_kept_as_they_are);
    tcase_add_loop_test(tc, what_has_no_effect_is_a_warning, 0, RV_COUNT(warnings));
    tcase_add_loop_test(tc, what_is_no_document_is_an_error, 0, RV_COUNT(errors));
    tcase_add_test(tc, history_none_takes_all_of_it_away);
    return tc;
}
