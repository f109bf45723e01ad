/* Documents to definitions: the tool of each operation, and the faults of those that are left out. */
#include "tests/unit/openapi/suites.h"

#define PET                                                                                                            \
    "{'schemas':{'Pet':{'type':'object','properties':{'name':{'type':'string'},'child':{'$ref':"                       \
    "'#/components/schemas/Pet'}}}}}"

/* Proves remlight.4/rest: Tools of servers by REST */
START_TEST(an_operation_becomes_a_tool)
{
    json_object *tools = openapi_tools(
        "{'/pets/{id}':{'parameters':[{'name':'id','in':'path','required':true,'schema':{'type':'string'}}],"
        "'put':{'operationId':'set pet!','summary':'Set it','description':'At once.',"
        "'parameters':[{'name':'id','in':'query','description':'who','schema':{'type':'integer'}},"
        "{'name':'X-Trace','in':'header','schema':{}},{'name':'Host','in':'header','schema':{}},"
        "{'name':'Idempotency-Key','in':'header','required':true,'schema':{}}],"
        "'requestBody':{'required':true,'content':{'application/json; charset=utf-8':{'schema':"
        "{'$ref':'#/components/schemas/Pet'}}}},"
        "'responses':{'200':{'content':{'application/json':{'schema':{'type':'array','items':{'type':'integer'}}}}},"
        "'404':{}}}}}",
        PET);
    json_object *want = rv_kit_json(
        "[{'name':'set_pet','description':'Set it\\n\\nAt once.','inputSchema':{'type':'object','properties':"
        "{'id':{'type':'integer','description':'who'},'X-Trace':{},'id_in_path':{'type':'string'},"
        "'body':{'$ref':'#/$defs/Pet_0'}},"
        "'required':['id_in_path','body'],'additionalProperties':false,'$defs':{'Pet_0':{'type':'object','properties':"
        "{'name':{'type':'string'},'child':{'$ref':'#/$defs/Pet_0'}}}}},"
        "'outputSchema':{'type':'array','items':{'type':'integer'}},"
        "'annotations':{'readOnlyHint':false,'idempotentHint':true,'openWorldHint':true},"
        "'dev.reeve/operation':{'method':'PUT','path':'/pets/{id}','parameters':["
        "{'argument':'id','name':'id','in':'query','style':'plain','explode':true},"
        "{'argument':'X-Trace','name':'X-Trace','in':'header','style':'plain','explode':false},"
        "{'argument':'id_in_path','name':'id','in':'path','style':'plain','explode':false},"
        "{'argument':'body','name':'application/json; charset=utf-8','in':'body','style':'json','explode':false}]}}]");

    ck_assert_str_eq(json_object_to_json_string(tools), json_object_to_json_string(want));
    json_object_put(tools);
    json_object_put(want);
}
END_TEST

static const struct {
    const char *method, *name;
    bool read_only, idempotent, destructive;
} by_method[] = {
    {"get", "get_a", true, true, false},           {"head", "head_a", true, true, false},
    {"put", "put_a", false, true, false},          {"delete", "delete_a", false, true, true},
    {"post", "post_a", false, false, false},       {"patch", "patch_a", false, false, false},
    {"options", "options_a", false, false, false},
};

/* Whatever a document says about it. */
START_TEST(what_a_call_may_do_follows_from_its_method)
{
    rv_buf paths = RV_BUF_INIT(1000);
    bool read_only = false, idempotent = false, destructive = false;
    const char *name = "";

    rv_buf_printf(&paths, "{'/a':{'%s':{'x-readOnlyHint':true,'annotations':{'readOnlyHint':true},'responses':{}}}}",
                  by_method[_i].method);
    json_object *tools = openapi_tools(rv_buf_cstr(&paths), "");
    json_object *tool = json_object_array_get_idx(tools, 0), *hints = rv_json_get_obj(tool, "annotations");
    ck_assert(rv_json_get_text(tool, "name", &name));
    ck_assert_str_eq(name, by_method[_i].name);
    ck_assert(rv_json_get_bool(hints, "readOnlyHint", &read_only) && read_only == by_method[_i].read_only);
    ck_assert(rv_json_get_bool(hints, "idempotentHint", &idempotent) && idempotent == by_method[_i].idempotent);
    ck_assert(rv_json_get_bool(hints, "destructiveHint", &destructive) == by_method[_i].destructive);
    json_object_put(tools);
    rv_buf_fini(&paths);
}
END_TEST

#define GET(more)     "{'/a':{'get':{'operationId':'bad'," more "},'post':{'operationId':'good'}}}"
#define QUERY(schema) GET("'parameters':[{'name':'q','in':'query','schema':" schema "}]")

static const struct {
    const char *paths, *components, *why;
} refused[] = {
    {GET("'parameters':7"), "", "its parameters are not a list"},
    {GET("'parameters':[{'in':'query'}]"), "", "a parameter has no name, or no place (parameter 1)"},
    {GET("'parameters':[{'name':'a','in':'query'},{'name':'c','in':'cookie','required':true}]"), "",
     "the parameter \"c\" is in a place that is not supported (parameter 2)"},
    {GET("'parameters':[{'name':'x','in':'path','required':true}]"), "", "the path has no {x} (parameter 1)"},
    {GET("'parameters':[{'name':'q','in':'query','style':'matrix'}]"), "",
     "the parameter \"q\" has a style that is not supported (parameter 1)"},
    {GET("'parameters':[{'$ref':'#/components/parameters/no'}]"), "{'parameters':{}}",
     "the reference \"#/components/parameters/no\" leads nowhere (parameter 1)"},
    {GET("'parameters':[{'$ref':'#/components/parameters/a'}]"),
     "{'parameters':{'a':{'$ref':'#/components/parameters/b'},'b':{'$ref':'#/components/parameters/a'}}}",
     "its references lead in a circle (parameter 1)"},
    {QUERY("{'$ref':'http://elsewhere.test/s.json'}"), "",
     "the reference \"http://elsewhere.test/s.json\" leads out of the document, which is not followed (parameter 1)"},
    {QUERY("{'$ref':'../other.json#/a'}"), "",
     "the reference \"../other.json#/a\" leads out of the document, which is not followed (parameter 1)"},
    {QUERY("{'items':7}"), "", "a schema is neither an object nor true or false (parameter 1)"},
    {QUERY("{'anyOf':[]}"), "", "a list of schemas is empty, or not a list (parameter 1)"},
    {QUERY("{'$dynamicRef':'#x'}"), "", "a schema has a $dynamicRef (parameter 1)"},
    {GET("'requestBody':{'required':true,'content':{'text/plain':{}}}"), "", "its body is not JSON"},
    {GET("'servers':[{'url':'http://elsewhere.test'}]"), "", "it names a server of its own, which is not supported"},
    {"{'/a/{b}':{'get':{'operationId':'bad'}},'/a':{'post':{'operationId':'good'}}}", "",
     "the path has {b}, which is not a parameter"},
    {"{'/a/../b':{'get':{'operationId':'bad'}},'/a':{'post':{'operationId':'good'}}}", "", "the path is not one"},
    {"{'/a/%2e%2e':{'get':{'operationId':'bad'}},'/a':{'post':{'operationId':'good'}}}", "", "the path is not one"},
    {"{'/a b':{'get':{'operationId':'bad'}},'/a':{'post':{'operationId':'good'}}}", "", "the path is not one"},
    {"{'/a?x':{'get':{'operationId':'bad'}},'/a':{'post':{'operationId':'good'}}}", "", "the path is not one"},
    {"{'/b':{'get':7},'/a':{'post':{'operationId':'good'}}}", "", "it is not an object"},
    {"{'/b':7,'/a':{'post':{'operationId':'good'}}}", "", "the path has no operations"},
};

START_TEST(one_bad_operation_is_named_and_does_not_sink_the_rest)
{
    json_object *tools = openapi_tools(refused[_i].paths, refused[_i].components);
    const char *why = NULL, *name = "";

    ck_assert_uint_eq(json_object_array_length(tools), 2);
    ck_assert(rv_json_get_text(json_object_array_get_idx(tools, 0), RV_MCP_REFUSED, &why));
    ck_assert_msg(strstr(why, refused[_i].why), "%s", why);
    ck_assert_msg(strncmp(why, "GET /", 5) == 0, "%s", why);
    ck_assert(rv_json_get_text(json_object_array_get_idx(tools, 1), "name", &name));
    ck_assert_str_eq(name, "good");
    ck_assert(!rv_json_get_text(json_object_array_get_idx(tools, 1), RV_MCP_REFUSED, &why));
    json_object_put(tools);
}
END_TEST

/* A parameter, and the schema of its argument. */
static const struct {
    const char *version, *schema, *want;
} schemas[] = {
    {"3.0.3", "{'type':'string','nullable':true,'enum':['a'],'example':'a','x-y':1}",
     "{'type':['string','null'],'enum':['a',null]}"},
    {"3.0.3", "{'type':'integer','minimum':1,'exclusiveMinimum':true,'maximum':9,'exclusiveMaximum':false}",
     "{'type':'integer','exclusiveMinimum':1,'maximum':9}"},
    {"3.1.0", "{'type':['string','null'],'examples':['a'],'deprecated':true}", "{'type':['string','null']}"},
    {"3.0.3", "{'type':'object','required':['a','b'],'properties':{'a':{'readOnly':true},'b':{'writeOnly':true}}}",
     "{'type':'object','required':['b'],'properties':{'b':{}}}"},
    {"3.1.0", "true", "true"},
};

START_TEST(schemas_become_json_schema)
{
    rv_buf text = RV_BUF_INIT(2000);
    const struct rv_openapi_opts how = {.url = "https://api.test", .document_url = ""};
    json_object *tools = NULL;

    rv_buf_printf(&text,
                  "{'openapi':'%s','paths':{'/':{'get':{'parameters':[{'name':'q','in':'query','schema':%s}]}}}}",
                  schemas[_i].version, schemas[_i].schema);
    json_object *document = rv_kit_json(rv_buf_cstr(&text)), *want = rv_kit_json(schemas[_i].want), *got = NULL;
    ck_assert_int_eq(rv_openapi_build_tools(document, &how, &tools, NULL), 0);
    json_object *input = rv_json_get_obj(json_object_array_get_idx(tools, 0), "inputSchema");
    ck_assert(input && json_object_object_get_ex(rv_json_get_obj(input, "properties"), "q", &got));
    ck_assert_msg(rv_json_equal(got, want), "%s", json_object_to_json_string(got));
    json_object_put(want);
    json_object_put(tools);
    json_object_put(document);
    rv_buf_fini(&text);
}
END_TEST

/* What a document says about its server counts only where the document came from. */
static const struct {
    const char *servers, *url, *document_url, *want, *why;
} addresses[] = {
    {"[]", "https://a.test/v1/", "", "", NULL},
    {"[{'url':'https://evil.test'}]", "https://a.test", "https://b.test/o.json", "", NULL},
    {"[]", "", "https://a.test/docs/o.json", "https://a.test", NULL},
    {"[{'url':'/v2/'}]", "", "https://a.test/docs/o.json", "https://a.test/v2", NULL},
    {"[{'url':'https://a.test/{v}','variables':{'v':{'default':'v3'}}}]", "", "https://a.test/o.json",
     "https://a.test/v3", NULL},
    {"[{'url':'https://evil.test'}]", "", "https://a.test/o.json", NULL, "not at the document's own address"},
    {"[{'url':'//evil.test'}]", "", "https://a.test/o.json", NULL, "not at the document's own address"},
    {"[{'url':'http://a.test'}]", "", "https://a.test/o.json", NULL, "not at the document's own address"},
    {"[{'url':'https://a.test:8443'}]", "", "https://a.test/o.json", NULL, "not at the document's own address"},
    {"[{'url':'https://a.test/{v}'}]", "", "https://a.test/o.json", NULL, "does not name a server that can be used"},
    {"[{'url':'https://a.test/v1'}]", "", "", NULL, "url: https://a.test/v1"},
    {"[]", "https://u:p@a.test", "", NULL, "a user or a password"},
    {"[]", "https://a.test/?q", "", NULL, "without a query"},
};

START_TEST(a_document_cannot_send_calls_elsewhere)
{
    rv_buf text = RV_BUF_INIT(2000);
    const struct rv_openapi_opts how = {.url = addresses[_i].url, .document_url = addresses[_i].document_url};
    json_object *tools = NULL;
    const char *url = "";
    rv_err *err = NULL;

    rv_buf_printf(&text, "{'openapi':'3.1.0','servers':%s,'paths':{'/':{'get':{}}}}", addresses[_i].servers);
    json_object *document = rv_kit_json(rv_buf_cstr(&text));
    int rc = rv_openapi_build_tools(document, &how, &tools, &err);
    if (addresses[_i].want) {
        ck_assert_int_eq(rc, 0);
        RV_IGNORE(
            !rv_json_get_text(rv_json_get_obj(json_object_array_get_idx(tools, 0), RV_MCP_OPERATION), "url", &url),
            "left out means the configured one");
        ck_assert_str_eq(url, addresses[_i].want);
    } else {
        ck_assert_int_lt(rc, 0);
        ck_assert_msg(strstr(rv_err_text(err), addresses[_i].why), "%s", rv_err_text(err));
    }
    rv_err_free(err);
    json_object_put(tools);
    json_object_put(document);
    rv_buf_fini(&text);
}
END_TEST

static const struct {
    const char *text;
    int rc;
    const char *why;
} documents[] = {
    {"openapi: 3.0.1\npaths: {}\n", 0, NULL},
    {" {\"openapi\":\"3.1.0\",\"paths\":{}}", 0, NULL},
    {"swagger: '2.0'\n", RV_E_INVALID, "Swagger 2"},
    {"openapi: 4.0.0\n", RV_E_INVALID, "not a document of OpenAPI 3.0 or 3.1"},
    {"[1]", RV_E_INVALID, "not a document of OpenAPI 3.0 or 3.1"},
    {"", RV_E_INVALID, "not a document of OpenAPI 3.0 or 3.1"},
    {"{\"openapi\":", RV_E_PARSE, NULL},
    {"a: [", RV_E_PARSE, NULL},
};

START_TEST(only_documents_of_version_3_are_read)
{
    json_object *document = NULL;
    rv_err *err = NULL;
    int rc = rv_openapi_read(rv_str_of(documents[_i].text), "api", &document, &err);

    if (documents[_i].rc == 0)
        ck_assert_int_eq(rc, 0);
    else
        ck_assert_int_lt(rc, 0);
    ck_assert(!documents[_i].why || strstr(rv_err_text(err), documents[_i].why));
    rv_err_free(err);
    json_object_put(document);
}
END_TEST

/* Schemas that double at each level, and operations without end. */
START_TEST(large_documents_are_bounded)
{
    rv_buf text = RV_BUF_INIT((size_t)8 << 20);
    const struct rv_openapi_opts how = {.url = "https://api.test", .document_url = ""};
    json_object *document = NULL, *tools = NULL;
    const char *why = NULL;

    rv_buf_puts(&text,
                "{\"openapi\":\"3.1.0\",\"paths\":{\"/a\":{\"get\":{\"parameters\":[{\"name\":\"q\",\"in\":\"query\","
                "\"schema\":{\"enum\":[");
    for (int i = 0; i < 40000; i++)
        rv_buf_printf(&text, "%s%d", i ? "," : "", i);
    rv_buf_puts(&text, "]}}]},\"post\":{}}}}");
    ck_assert_int_eq(rv_openapi_read(rv_buf_str(&text), "api", &document, NULL), 0);
    ck_assert_int_eq(rv_openapi_build_tools(document, &how, &tools, NULL), 0);
    ck_assert(rv_json_get_text(json_object_array_get_idx(tools, 0), RV_MCP_REFUSED, &why));
    ck_assert_msg(strstr(why, "its schemas have more than 256 KiB"), "%s", why);
    ck_assert(!rv_json_get_text(json_object_array_get_idx(tools, 1), RV_MCP_REFUSED, &why));
    json_object_put(document);
    json_object_put(tools);

    rv_buf_clear(&text);
    rv_buf_puts(&text, "{\"openapi\":\"3.1.0\",\"paths\":{\"/a\":{}");
    for (int i = 0; i <= RV_OPENAPI_MAX_OPERATIONS; i++)
        rv_buf_printf(&text, ",\"/%d\":{\"get\":{}}", i);
    rv_buf_puts(&text, "}}");
    ck_assert_int_eq(rv_openapi_read(rv_buf_str(&text), "api", &document, NULL), 0);
    ck_assert_int_eq(rv_openapi_build_tools(document, &how, &tools, NULL), RV_E_LIMIT);
    json_object_put(document);
    rv_buf_fini(&text);
}
END_TEST

TCase *tools_case(void)
{
    TCase *tc = tcase_create("tools");

    tcase_add_test(tc, an_operation_becomes_a_tool);
    tcase_add_loop_test(tc, what_a_call_may_do_follows_from_its_method, 0, RV_COUNT(by_method));
    tcase_add_loop_test(tc, one_bad_operation_is_named_and_does_not_sink_the_rest, 0, RV_COUNT(refused));
    tcase_add_loop_test(tc, schemas_become_json_schema, 0, RV_COUNT(schemas));
    tcase_add_loop_test(tc, a_document_cannot_send_calls_elsewhere, 0, RV_COUNT(addresses));
    tcase_add_loop_test(tc, only_documents_of_version_3_are_read, 0, RV_COUNT(documents));
    tcase_add_test(tc, large_documents_are_bounded);
    return tc;
}
