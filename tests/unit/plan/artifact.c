/* Artifacts of results: form, id, type, hints, metadata and parts. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/plan/plan.h"
#include "coreengine/tools/tools.h"
#include "tests/unit/plan/plan_suites.h"
#include "tests/unit/plan/world.h"

static const struct rv_artifact_source base = {
    .tool = "draw",
    .fresh_id = "fresh",
    .created_at = "2026-01-02T03:04:05Z",
    .context = {.context_id = "ctx", .task_id = "task"},
};

/* What was made of a result, as JSON with single quotes; `at` is a path into it. */
static char *made(const char *result, const char *schema, const struct rv_artifact_source *like, const char *at)
{
    struct rv_artifact_source source = like ? *like : base;
    json_object *tree = rv_kit_json(result), *declared = schema ? rv_kit_json(schema) : NULL, *value;
    rv_buf text = RV_BUF_INIT(1000000);
    rv_jw w = rv_jw_on(&text);
    struct rv_artifact a;
    char path[100], *rest = path, *key;

    source.result = tree;
    source.schema = declared;
    ck_assert_int_eq(rv_artifact_build(&source, &a, NULL), 0);
    if (!a.exists) {
        rv_buf_printf(&text, "{\"none\":%s%s%s,\"parts\":", a.warning ? "\"" : "", a.warning ? a.warning : "null",
                      a.warning ? "\"" : "");
        rv_json_write(a.parts, &text);
        rv_buf_putc(&text, '}');
    } else {
        rv_artifact_write(&a, source.tool, &w);
    }
    json_object *whole = value = rv_kit_json(rv_buf_cstr(&text));
    if (a.exists && a.warning)
        ck_assert_int_eq(rv_json_set_text(whole, "warning", a.warning, NULL), 0);
    snprintf(path, sizeof path, "%s", at);
    while ((key = strsep(&rest, " ")) && *key)
        if (!json_object_object_get_ex(value, key, &value))
            value = NULL;
    char *got = rv_kit_text(value);
    for (char *p = got; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    json_object_put(whole);
    rv_artifact_fini(&a);
    json_object_put(tree);
    json_object_put(declared);
    rv_buf_fini(&text);
    return got;
}

static const struct {
    const char *result, *schema, *at, *want;
} cases[] = {
    /* Proves plan.A1: an object with artifact_id, artifact and _metadata is a wrapper; else a result whose _meta names
     * an artifact has one with provenance; else it is bare */
    {"{'structuredContent':{'artifact_id':'w','artifact':{'v':1},'_metadata':{}}}", NULL, "parts",
     "[{'data':{'v':1}}]"},
    {"{'structuredContent':{'artifact_id':'','artifact':{'v':1},'_metadata':{}}}", NULL, "id", "'fresh'"},
    {"{'structuredContent':{'artifact_id':'','artifact':{'v':1},'_metadata':{}}}", NULL, "parts",
     "[{'data':{'artifact_id':'','artifact':{'v':1},'_metadata':{}}}]"},
    {"{'structuredContent':{'artifact_id':'w','artifact':[],'_metadata':{}}}", NULL, "id", "'fresh'"},
    {"{'structuredContent':{'artifact_id':'w','artifact':{}}}", NULL, "id", "'fresh'"},
    {"{'structuredContent':{'v':1},'_meta':{'io.systemprompt/execution':{'artifact_id':'p'}}}", NULL, "id", "'p'"},
    {"{'structuredContent':{'v':1},'_meta':{'io.systemprompt/execution':{'artifact_id':''}}}", NULL, "id", "'fresh'"},
    /* Proves plan.A2: the payload is the artifact of a wrapper, else all of the structured content */
    {"{'structuredContent':{'v':1},'_meta':{'io.systemprompt/execution':{'artifact_id':'p'}}}", NULL, "parts",
     "[{'data':{'v':1}}]"},
    {"{'structuredContent':{'artifact_id':'w','artifact':{}}}", NULL, "parts",
     "[{'data':{'artifact_id':'w','artifact':{}}}]"},
    /* Proves plan.A3: the id is that of the wrapper, of the provenance, or a fresh one */
    {"{'structuredContent':{'artifact_id':'w','artifact':{},'_metadata':{}},'_meta':{'io.systemprompt/execution':{"
     "'artifact_id':'p'}}}",
     NULL, "id", "'w'"},
    {"{'structuredContent':[1]}", NULL, "id", "'fresh'"},
    /* Proves plan.A5: the execution id is mcp_execution_id, else execution_id of the metadata */
    {"{'structuredContent':{'artifact_id':'w','mcp_execution_id':'m','artifact':{},'_metadata':{'execution_id':'e'}}}",
     NULL, "metadata mcp_execution_id", "'m'"},
    {"{'structuredContent':{'artifact_id':'w','mcp_execution_id':'','artifact':{},'_metadata':{'execution_id':'e'}}}",
     NULL, "metadata mcp_execution_id", "'e'"},
    {"{'structuredContent':{},'_meta':{'io.systemprompt/execution':{'artifact_id':'p','execution_id':'x'}}}", NULL,
     "metadata mcp_execution_id", "'x'"},
    {"{'structuredContent':{}}", NULL, "metadata mcp_execution_id", "null"},
    /* Proves plan.A6: the skill is named by the payload, the wrapper, _metadata or the provenance, in this order */
    {"{'structuredContent':{'artifact_id':'w','skill_id':'2','artifact':{'skill_id':'1'},'_metadata':{'skill_id':'3'}}"
     "}",
     NULL, "metadata skill_id", "'1'"},
    {"{'structuredContent':{'artifact_id':'w','skill_id':'2','artifact':{'skill_id':7},'_metadata':{'skill_id':'3'}}}",
     NULL, "metadata skill_id", "'2'"},
    {"{'structuredContent':{'artifact_id':'w','skill_id':'','artifact':{},'_metadata':{'skill_id':'3'}}}", NULL,
     "metadata skill_id", "'3'"},
    {"{'structuredContent':{'artifact_id':'w','artifact':{},'_metadata':{'skill_id':'3'}},"
     "'_meta':{'io.systemprompt/execution':{'artifact_id':'p','skill_id':'4'}}}",
     NULL, "metadata skill_id", "'3'"},
    {"{'structuredContent':{'v':1},'_meta':{'io.systemprompt/execution':{'artifact_id':'p','skill_id':'4'}}}", NULL,
     "metadata skill_id", "'4'"},
    {"{'structuredContent':{'artifact_id':'w','artifact':{},'_metadata':{'skill_name':'n'}},"
     "'_meta':{'io.systemprompt/execution':{'artifact_id':'p','skill_name':'m'}}}",
     NULL, "metadata skill_name", "'n'"},
    {"{'structuredContent':{'v':1},'_meta':{'io.systemprompt/execution':{'artifact_id':'p','skill_name':'m'}}}", NULL,
     "metadata skill_name", "'m'"},
    /* Proves plan.A7: a failed call and a result without structured content have no artifact; one that cannot be built
     * is a warning */
    {"{'isError':true,'structuredContent':{'v':1}}", NULL, "", "{'none':null,'parts':null}"},
    {"{'content':[{'type':'text','text':'x'}]}", NULL, "", "{'none':null,'parts':[{'text':'x'}]}"},
    {"{'structuredContent':null}", NULL, "", "{'none':null,'parts':[]}"},
    {"[1]", NULL, "none", "'the result is not an object'"},
    /* Proves plan.A8: the metadata has the place of the call in the plan, and the title is the name of the tool */
    {"{'structuredContent':{}}", NULL, "metadata execution_index", "0"},
    {"{'structuredContent':{}}", NULL, "title", "'draw'"},
    /* types, in the order in which they are looked for */
    {"{'structuredContent':{'x-artifact-type':'list'}}", "{'x-artifact-type':'Chart'}", "type", "'chart'"},
    {"{'structuredContent':{}}", "{'properties':{'artifact':{'x-artifact-type':'image'}}}", "type", "'image'"},
    {"{'structuredContent':{'x-artifact-type':'list','items':[]}}", "{'x-artifact-type':'cli'}", "type", "'list'"},
    {"{'structuredContent':[]}", "{'type':'array','items':{'type':'object'}}", "type", "'table'"},
    {"{'structuredContent':{}}", "{'properties':{'fields':{'type':'array'}}}", "type", "'form'"},
    {"{'structuredContent':{}}", "{'properties':{'labels':{},'datasets':{}}}", "type", "'chart'"},
    {"{'structuredContent':{'x-artifact-type':'list','items':[]}}", "{'properties':{'labels':{},'datasets':{}}}",
     "type", "'chart'"},
    {"{'structuredContent':{'artifact_type':'Own_Type'}}", NULL, "type", "'own_type'"},
    {"{'structuredContent':{'artifact':{'x-artifact-type':'video'}}}", NULL, "type", "'video'"},
    {"{'structuredContent':{'artifact':{'card':{'x-artifact-type':'presentation_card'}}}}", NULL, "type",
     "'presentation_card'"},
    {"{'structuredContent':{'x-artifact-type':'cli','artifact_type':'list'}}", NULL, "type", "'data'"},
    {"{'structuredContent':[{'a':1}]}", NULL, "type", "'table'"},
    {"{'structuredContent':[1]}", NULL, "type", "'data'"},
    {"{'structuredContent':[]}", NULL, "type", "'data'"},
    {"{'structuredContent':'x'}", NULL, "type", "'text'"},
    /* hints */
    {"{'structuredContent':[]}", "{'type':'array','items':{'type':'object','properties':{'b':{},'a':{}}}}",
     "metadata rendering_hints", "{'columns':['b','a'],'sortable_columns':['b','a'],'filterable':true,'page_size':25}"},
    {"{'structuredContent':[]}", "{'x-artifact-type':'table','x-table-hints':{'k':1}}", "metadata rendering_hints",
     "{'k':1}"},
    {"{'structuredContent':[{}]}", NULL, "metadata rendering_hints", "{}"},
    {"{'structuredContent':{}}",
     "{'x-artifact-type':'form','properties':{'e':{'format':'email','description':'d'},'s':{'enum':['x'],'default':'x'}"
     ","
     "'n':{'type':'number'},'b':{'type':'boolean'},'w':{'format':'date-time'},'o':{'format':'uri'}}}",
     "metadata rendering_hints",
     "{'fields':[{'name':'e','label':'e','type':'email','help_text':'d'},{'name':'s','label':'s','type':'select',"
     "'options':['x'],'default':'x'},{'name':'n','label':'n','type':'number'},{'name':'b','label':'b','type':"
     "'checkbox'},{'name':'w','label':'w','type':'datetime'},{'name':'o','label':'o','type':'text'}],'layout':"
     "'vertical'}"},
    {"{'structuredContent':{'x-artifact-type':'presentation_card'}}", NULL, "metadata rendering_hints",
     "{'theme':'default'}"},
    {"{'structuredContent':{'x-artifact-type':'chart'}}", NULL, "metadata rendering_hints", "null"},
    /* parts */
    {"{'structuredContent':{'content':'x'}}", NULL, "parts", "[{'data':{'content':'x'}}]"},
    {"{'structuredContent':[1]}", NULL, "parts", "[{'data':{'items':[1]}}]"},
    {"{'structuredContent':'x'}", NULL, "parts", "[{'text':'x'}]"},
    {"{'structuredContent':1.50}", NULL, "parts", "[{'text':'1.50'}]"},
    {"{'content':[{'type':'text','text':'t'},{'type':'image','data':'aa','mimeType':'image/png'},{'type':"
     "'resource_link','uri':'u','name':'n'},{'type':'resource','resource':{'uri':'u','text':'r'}},{'type':'resource',"
     "'resource':{'uri':'u','blob':'bb'}},{'type':'other'},7]}",
     NULL, "parts",
     "[{'text':'t'},{'file':{'bytes':'aa','mimeType':'image/"
     "png'}},{'file':{'name':'n','url':'u'}},{'text':'r'},{'file':"
     "{'name':'u','bytes':'bb'}}]"},
    {"{'content':[{'type':'other'},7]}", NULL, "none", "'2 blocks of the content cannot be read'"},
    /* shapes */
    {"{'structuredContent':{'x-artifact-type':'table','columns':[{'name':'a'}]}}", NULL, "warning",
     "'columns[0] of a table has no column_type; a table needs items'"},
    {"{'structuredContent':{'x-artifact-type':'list','items':{}}}", NULL, "warning",
     "'items of a list has to be a list'"},
    {"{'structuredContent':{'x-artifact-type':'message','messages':[{'level':'info','text':'x'}]}}", NULL, "warning",
     "null"},
};

START_TEST(artifacts_are_read)
{
    char *got = made(cases[_i].result, cases[_i].schema, NULL, cases[_i].at);

    ck_assert_str_eq(got, cases[_i].want);
    free(got);
}
END_TEST

START_TEST(whole_metadata)
{
    struct rv_artifact_source source = base;
    json_object *arguments = rv_kit_json("{'b':[{'y':1.10,'x':null}],'a':'ä'}");

    json_object *extensions = rv_kit_json("['https://a/b']");

    source.arguments = arguments;
    source.index = 3;
    source.is_internal = true;
    source.extensions = extensions;
    source.provenance = "own/key";
    char *got = made("{'structuredContent':{'v':1},'_meta':{'own/key':{'artifact_id':'p'}}}", NULL, &source, "id");
    ck_assert_str_eq(got, "'p'"); /* by the key of the pipeline */
    free(got);
    got = made("{'structuredContent':{'v':1}}", "{'type':'object'}", &source, "metadata");
    /* printf '{"a":"ä","b":[{"x":null,"y":1.10}]}' | sha256sum */
    ck_assert_str_eq(got,
                     "{'artifact_type':'data','context_id':'ctx','task_id':'task','created_at':"
                     "'2026-01-02T03:04:05Z','source':'mcp_tool','mcp_schema':{'type':'object'},'is_internal':true,"
                     "'tool_name':'draw','execution_index':3,'extensions':['https://a/b'],'fingerprint':"
                     "'draw-9807c93eec09d1ed'}");
    free(got);
    json_object_put(arguments);
    json_object_put(extensions);
}
END_TEST

START_TEST(fingerprints_ignore_the_order_of_keys)
{
    static const char *const arguments[] = {"{'a':1,'b':{'c':2,'d':[3]}}", "{'b':{'d':[3],'c':2},'a':1}",
                                            "{'a':1,'b':{'c':2,'d':[4]}}"};
    char *prints[4];

    for (size_t i = 0; i < 4; i++) {
        struct rv_artifact_source source = base;
        json_object *given = i < 3 ? rv_kit_json(arguments[i]) : json_object_new_object();
        source.arguments = given;
        prints[i] = made("{'structuredContent':{}}", NULL, &source, "metadata fingerprint");
        json_object_put(given);
    }
    char *absent = made("{'structuredContent':{}}", NULL, NULL, "metadata fingerprint");
    ck_assert_str_eq(prints[0], prints[1]);
    ck_assert_str_ne(prints[0], prints[2]);
    ck_assert_str_eq(prints[3], absent); /* no arguments are an empty object */
    for (size_t i = 0; i < 4; i++)
        free(prints[i]);
    free(absent);
}
END_TEST

START_TEST(what_an_artifact_needs)
{
    struct rv_artifact_source source = base;
    char *got;

    source.context.task_id = NULL;
    got = made("{'structuredContent':{}}", NULL, &source, "none");
    ck_assert_str_eq(got, "'the artifact has no task_id'");
    free(got);
    got = made("{'structuredContent':{'artifact_id':'w','artifact':{},'_metadata':{'task_id':'t'}}}", NULL, &source,
               "metadata task_id");
    ck_assert_str_eq(got, "'t'");
    free(got);
    source = base;
    source.fresh_id = NULL;
    got = made("{'structuredContent':{}}", NULL, &source, "none");
    ck_assert_str_eq(got, "'the artifact has no id'");
    free(got);
}
END_TEST

/* Proves plan.A10: a policy may forbid artifacts of a caller; the parts of the result stay */
START_TEST(artifacts_may_be_refused)
{
    struct rv_artifact_source source = base;
    char *got;

    source.is_refused = true;
    got = made("{'structuredContent':{'v':1}}", NULL, &source, "");
    ck_assert_str_eq(got, "{'none':'the caller may not create artifacts','parts':[{'data':{'v':1}}]}");
    free(got);
}
END_TEST

/* Proves plan.A4: a tool of this engine returns a wrapper with its metadata, and the same provenance in _meta; it fits
 * the standard schema and is read as the artifact that it was */
START_TEST(wrapped_artifacts_are_read)
{
    struct rv_artifact_context context = {.context_id = "c", .user_id = "u", .skill_id = "s", .execution_id = "e"};
    json_object *payload = rv_kit_json("{'x-artifact-type':'text','content':'hi'}"), *result = NULL, *schema = NULL;
    json_object *structured = NULL;
    struct rv_artifact_source source = base;
    rv_schema *compiled = NULL;
    struct rv_artifact a;

    ck_assert_int_eq(
        rv_artifact_wrap(&(struct rv_artifact_made){payload, "id-1", "draw", "2026-01-02T03:04:05Z", "drawn"}, &context,
                         &result, NULL),
        0);
    ck_assert_int_eq(rv_artifact_build_schema(NULL, &schema, NULL), 0);
    char *text = rv_kit_text(rv_json_get_arr(schema, "required"));
    ck_assert_str_eq(text, "[\"artifact_id\",\"artifact\",\"_metadata\"]");
    free(text);
    text = rv_kit_text(schema);
    ck_assert_ptr_nonnull(strstr(text, "\"executed_at\":{\"type\":\"string\",\"format\":\"date-time\"}"));
    free(text);
    ck_assert_int_eq(rv_schema_compile(schema, "artifact", &compiled, NULL), 0);
    ck_assert(json_object_object_get_ex(result, "structuredContent", &structured));
    ck_assert_int_eq(rv_schema_check(compiled, structured, NULL), 0);
    text = rv_kit_text(result);
    ck_assert_str_eq(
        text, "{\"content\":[{\"type\":\"text\",\"text\":\"drawn\"}],\"structuredContent\":{\"artifact_id\":\"id-1\","
              "\"mcp_execution_id\":\"e\",\"artifact\":{\"x-artifact-type\":\"text\",\"content\":\"hi\"},"
              "\"_metadata\":{\"context_id\":\"c\",\"request_id\":\"\",\"trace_id\":\"\",\"user_id\":\"u\","
              "\"tool_name\":\"draw\",\"executed_at\":\"2026-01-02T03:04:05Z\",\"timestamp\":"
              "\"2026-01-02T03:04:05Z\",\"skill_id\":\"s\",\"execution_id\":\"e\"}},\"_meta\":{"
              "\"io.systemprompt/execution\":{\"artifact_id\":\"id-1\",\"context_id\":\"c\",\"request_id\":\"\","
              "\"trace_id\":\"\",\"user_id\":\"u\",\"tool_name\":\"draw\",\"executed_at\":"
              "\"2026-01-02T03:04:05Z\",\"timestamp\":\"2026-01-02T03:04:05Z\",\"skill_id\":\"s\",\"execution_id\":"
              "\"e\"}}}");
    free(text);
    source.result = result;
    source.schema = schema;
    ck_assert_int_eq(rv_artifact_build(&source, &a, NULL), 0);
    ck_assert(a.exists && a.form == RV_ARTIFACT_WRAPPER && !a.warning);
    ck_assert_str_eq(json_object_get_string(a.id), "id-1");
    ck_assert_str_eq(a.type, "text");
    ck_assert_ptr_eq(a.payload, payload);
    rv_artifact_fini(&a);
    rv_schema_free(compiled);
    json_object_put(result);
    json_object_put(schema);
    json_object_put(payload);
}
END_TEST

TCase *artifact_case(void)
{
    TCase *tc = tcase_create("artifact");

    tcase_add_loop_test(tc, artifacts_are_read, 0, (int)RV_COUNT(cases));
    tcase_add_test(tc, whole_metadata);
    tcase_add_test(tc, fingerprints_ignore_the_order_of_keys);
    tcase_add_test(tc, what_an_artifact_needs);
    tcase_add_test(tc, artifacts_may_be_refused);
    tcase_add_test(tc, wrapped_artifacts_are_read);
    return tc;
}
