/* Written and read again, a document is the same (p8 1.5); what is said of all documents. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/unit/agentdoc/suites.h"

#define HEAD "name: a\ndescription: d\n"

static char *yaml_of(const struct rv_agentdoc *d)
{
    rv_buf out = RV_BUF_INIT(1 << 20);

    rv_agentdoc_write_yaml(d, &out);
    ck_assert_int_eq(out.rc, 0);
    return rv_buf_steal(&out, NULL);
}

static char *json_of(const struct rv_agentdoc *d)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&out);

    rv_agentdoc_write_json(d, &w);
    ck_assert_int_eq(out.rc, 0);
    return rv_buf_steal(&out, NULL);
}

static void ck_same(const char *text, const char *want)
{
    struct rv_agentdoc *d = doc_of(text);
    char *got = flat_of(d);

    ck_assert_msg(strcmp(got, want) == 0, "%s\nwant: %s\ngot:  %s", text, want, got);
    free(got);
    rv_agentdoc_free(d);
}

static void ck_round_trip(const char *text)
{
    struct rv_agentdoc *d = doc_of(text);
    char *flat = flat_of(d), *yaml = yaml_of(d), *json = json_of(d);

    ck_same(yaml, flat);
    ck_same(json, flat);
    free(flat);
    free(yaml);
    free(json);
    rv_agentdoc_free(d);
}

static const char *const documents[] = {
    HEAD,
    HEAD "override_model: x:y\ntemperature: 0\nlimits: {total_tokens_limit: 3}\nhistory: none\nreplay: synthesise\n"
         "always_include_last_messages: 0\nrouting: {agents: [x], fallback: y}\nchained_tool: t\nchained_map: {p: q}\n"
         "properties: {p: {}}\nstructured_output: true\nmax_tokens: 9\ntools: [{name: t, server: s, uri: 'a:b'}, u]\n"
         "context_token_budget: 7\nmax_iterations: 2\nadditionalProperties: {type: string}\nobservation_mode: disabled",
    HEAD "x-texts: ['', ' ', a, 'a ', ' a', '- a', 'a: b', 'a #b', '#', '@', '`', '%', '&a', '*a', '!a', '|', '>', '?',"
         " '{', '}', '[', ']', ',', 'null', 'Null', '~', 'true', 'yes', 'No', 'ON', 'y', '1', '1.0', '0x1', '.inf',"
         " '1e3', '-1', '012', '2026-01-01', '12:30:00', '<<', '=', '...', '---', \"a'b\", 'a\"b', 'a\\b', 'NaN']",
    HEAD
    "x-lines: [\"a\\nb\", \"a\\n\", \"\\n\", \"\\na\", \"a\\n\\n\", \"a\\n\\nb\\n\\n\\n\", \" a\\nb\", \"a\\n b\\n\","
    " \"a\\n   \\nb\", \"a\\n  \", \"a\\n  \\n\", \"\\ta\\nb\", \"a\\r\\nb\", \"a\\n#b\", \"a\\n- b\\n\","
    " \"a\\n---\\nb\", \"   \\na\", \"a \\nb \\n\", \"\\n\\n\", \"---\\n\", \"a\\n...\\n\"]",
    HEAD "x-odd: [\"\\x01\", \"\\x7f\", \"\\u0085\", \"a\\u0085b\\nc\", \"\\u2028\", \"x\\u2029\\ny\","
         " \"\\ufeff\", \"\\ufffd\", \"\\uffff\", \"\\u00a0\", \"\\U0001f600\", \"\\e\\a\"]",
    HEAD
    "x-keys: {'': 1, ' ': 2, 'a b': 3, 'a: b': 4, '1': 5, 'true': 6, \"\\n\": 7, '- a': 8, $x: 9, '{': {}, n: [],\n"
    "  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: 10}",
    HEAD "x-nested: [[], [[]], [[1, [2]], {a: [], b: [{c: [d, {e: f}]}]}], {}, {a: {}}, null, [null]]",
    HEAD "x-numbers: [1, 1.0, 1.50, 1e5, 1e-7, -0.0, 0, 9223372036854775807, -9223372036854775808, 1E300]",
    "name: a\ndescription: |\n  Lines.\n\n    Indented.\n  End.\n\nsystem_prompt: |+\n  More.\n\n\n",
    "name: a\ncontent: c\njson_schema: {model: m, response_schema: {properties: {p: {}}}}",
    ("description: d\ndefinitions: {A: {}}\nproperties: {p: {$ref: '#/definitions/A'}}\njson_schema_extra:\n"
     "  {name: a, resources: ['u://v'], override_temperature: 1, override_max_iterations: 2}"),
};

/* Proves p8.1.5: What is written reads as the same, keys in one order; as a row of the store a document has name,
 * description and text */
START_TEST(what_is_written_reads_as_the_same)
{
    ck_round_trip(documents[_i]);
}
END_TEST

START_TEST(long_keys_are_written_so_that_they_can_be_read)
{
    rv_buf text = RV_BUF_INIT(1 << 12);

    rv_buf_puts(&text, "{\"name\":\"a\",\"description\":\"d\",\"x-map\":{\"");
    for (int i = 0; i < RV_AGENTDOC_MAX_KEY; i++)
        rv_buf_putc(&text, 'k');
    rv_buf_puts(&text, "\":{\"a\":1}}}");
    ck_round_trip(rv_buf_cstr(&text));
    rv_buf_fini(&text);
}
END_TEST

static int is_document(const struct dirent *entry)
{
    return strstr(entry->d_name, ".yaml") != NULL;
}

/* Proves p8.1.5 */
START_TEST(the_golden_documents_read_as_the_same)
{
    struct dirent **entries = NULL;
    int n = scandir(RV_SOURCE_DIR "/tests/golden/agent_prompts", &entries, is_document, alphasort);

    ck_assert_int_gt(n, 0);
    for (int i = 0; i < n; i++) {
        char *path = rv_kit_path(RV_SOURCE_DIR "/tests/golden/agent_prompts", entries[i]->d_name);
        char *text = rv_kit_read(path);
        ck_round_trip(text);
        free(text);
        free(path);
        free(entries[i]);
    }
    free(entries);
}
END_TEST

START_TEST(yaml_is_written_for_people)
{
    struct rv_agentdoc *d =
        doc_of("name: a\ndescription: |\n  One.\n  Two.\nproperties: {p: {type: string, enum: ['yes', x]}}\n"
               "tools: [t, {name: u, description: Ask first}]\nlimits: {request_limit: 3}\ntemperature: 0.50\n");
    char *yaml = yaml_of(d);

    ck_assert_str_eq(yaml, "type: object\n"
                           "description: |\n  One.\n  Two.\n"
                           "properties:\n  p:\n    type: string\n    enum:\n      - \"yes\"\n      - x\n"
                           "required: []\n"
                           "name: a\n"
                           "kind: agent\n"
                           "version: \"1.0.0\"\n"
                           "structured_output: false\n"
                           "tools:\n  - name: t\n  - name: u\n    description: Ask first\n"
                           "temperature: 0.5\n"
                           "limits:\n  request_limit: 3\n"
                           "routing_enabled: true\n"
                           "routing_max_turns: 20\n"
                           "observation_mode: sync\n"
                           "tags: []\n");
    free(yaml);
    rv_agentdoc_free(d);
}
END_TEST

START_TEST(the_schema_has_every_key)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&out);
    json_object *schema = NULL, *properties;
    size_t n;
    const struct rv_agentdoc_key *rows = agentdoc_keys(&n);

    rv_agentdoc_write_schema(&w);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&out), NULL, &schema, NULL), 0);
    properties = rv_json_get_obj(schema, "properties");
    ck_assert_int_eq(json_object_object_length(properties), (int)n);
    for (size_t i = 0; i < n; i++)
        ck_assert_ptr_nonnull(rv_json_get_obj(properties, rows[i].name));
    ck_assert_ptr_nonnull(
        rv_json_get_obj(rv_json_get_obj(rv_json_get_obj(properties, "limits"), "properties"), "total_tokens_limit"));
    json_object_put(schema);
    rv_buf_fini(&out);
}
END_TEST

static rv_schema *schema_of_documents(json_object **tree)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&out);
    rv_schema *schema = NULL;
    rv_err *err = NULL;

    rv_agentdoc_write_schema(&w);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&out), NULL, tree, NULL), 0);
    ck_assert_msg(rv_schema_compile(*tree, "agent document", &schema, &err) == 0, "%s", rv_err_text(err));
    rv_buf_fini(&out);
    return schema;
}

START_TEST(what_is_written_fits_the_schema)
{
    json_object *tree = NULL;
    rv_schema *schema = schema_of_documents(&tree);

    for (size_t i = 0; i < RV_COUNT(documents); i++) {
        struct rv_agentdoc *d = doc_of(documents[i]);
        rv_err *err = NULL;
        ck_assert_msg(rv_schema_check(schema, d->flat, &err) == 0, "%s\n%s", documents[i], rv_err_text(err));
        rv_agentdoc_free(d);
    }
    rv_schema_free(schema);
    json_object_put(tree);
}
END_TEST

/* What the reader refuses of single values, the schema refuses, too. */
static const char *const unfit[] = {
    "{'description':'no name'}",         "{'name':''}",
    "{'name':'a','type':'array'}",       "{'name':'a','temperature':2.5}",
    "{'name':'a','max_tokens':0}",       "{'name':'a','limits':{'request_limit':0}}",
    "{'name':'a','replay':'skp'}",       "{'name':'a','tools':[3]}",
    "{'name':'a','tools':[{}]}",         "{'name':'a','routing':{}}",
    "{'name':'a','properties':{'p':3}}", "{'name':'a','chained_map':{'p':3}}",
};

START_TEST(what_is_no_document_does_not_fit_the_schema)
{
    json_object *tree = NULL, *value = rv_kit_json(unfit[_i]);
    rv_schema *schema = schema_of_documents(&tree);
    struct rv_agentdoc *d = NULL;
    char *text = rv_kit_text(value);

    ck_assert_int_eq(rv_schema_check(schema, value, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_agentdoc_read(rv_str_of(text), "a.json", &d, NULL), RV_E_INVALID);
    free(text);
    rv_schema_free(schema);
    json_object_put(tree);
    json_object_put(value);
}
END_TEST

START_TEST(the_reference_has_every_key)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    size_t n;
    const struct rv_agentdoc_key *rows = agentdoc_keys(&n);

    rv_agentdoc_write_reference(&out);
    ck_assert_int_eq(out.rc, 0);
    ck_assert_int_eq(strncmp(rv_buf_cstr(&out), "# Keys of an agent document\n", 28), 0);
    for (size_t i = 0; i < n; i++) {
        rv_buf row = RV_BUF_INIT(256);
        rv_buf_printf(&row, "\n| `%s` | ", rows[i].name);
        ck_assert_msg(strstr(rv_buf_cstr(&out), rv_buf_cstr(&row)) != NULL, "%s", rows[i].name);
        rv_buf_fini(&row);
    }
    ck_assert_int_eq(out.ptr[out.len - 1], '\n');
    rv_buf_fini(&out);
}
END_TEST

TCase *write_case(void)
{
    TCase *tc = tcase_create("write");

    tcase_add_loop_test(tc, what_is_written_reads_as_the_same, 0, RV_COUNT(documents));
    tcase_add_test(tc, long_keys_are_written_so_that_they_can_be_read);
    tcase_add_test(tc, the_golden_documents_read_as_the_same);
    tcase_add_test(tc, yaml_is_written_for_people);
    tcase_add_test(tc, the_schema_has_every_key);
    tcase_add_test(tc, what_is_written_fits_the_schema);
    tcase_add_loop_test(tc, what_is_no_document_does_not_fit_the_schema, 0, RV_COUNT(unfit));
    tcase_add_test(tc, the_reference_has_every_key);
    return tc;
}
