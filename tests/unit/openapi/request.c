/* Arguments to requests: where each goes, and what cannot be sent. */
#include "tests/unit/openapi/suites.h"

static json_object *operation(const char *method, const char *path, const char *parameters)
{
    rv_buf text = RV_BUF_INIT(4000);

    rv_buf_printf(&text, "{'method':'%s','path':'%s','parameters':%s}", method, path, parameters);
    json_object *o = rv_kit_json(rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return o;
}

#define P(argument, name, in, style, explode)                                                                          \
    "{'argument':'" argument "','name':'" name "','in':'" in "','style':'" style "','explode':" explode "}"

static const struct {
    const char *path, *parameters, *args, *want; /* want: the address after the server's, and headers */
} requests[] = {
    {"/a", "[]", "{}", "/a"},
    {"/a/{x}", "[" P("x", "x", "path", "plain", "false") "]", "{'x':'b/c d?#%2e'}", "/a/b%2Fc%20d%3F%23%252e"},
    {"/a/{x}.json", "[" P("x", "x", "path", "plain", "false") "]", "{'x':[1,2.50,true]}", "/a/1,2.50,true.json"},
    {"/a", "[" P("q", "q", "query", "plain", "true") "]", "{'q':['a','b&c'],'other':1}", "/a?q=a&q=b%26c"},
    {"/a", "[" P("q", "q", "query", "plain", "false") "]", "{'q':['a','b']}", "/a?q=a,b"},
    {"/a", "[" P("q", "q", "query", "plain", "true") "]", "{'q':{'x':1,'y':'z'}}", "/a?x=1&y=z"},
    {"/a", "[" P("q", "q", "query", "deep", "true") "]", "{'q':{'x':1}}", "/a?q%5Bx%5D=1"},
    {"/a", "[" P("q", "q", "query", "spaces", "false") "]", "{'q':[1,2]}", "/a?q=1%202"},
    {"/a", "[" P("q", "q", "query", "pipes", "false") "]", "{'q':[1,2]}", "/a?q=1%7C2"},
    {"/a", "[" P("q", "q", "query", "json", "false") "]", "{'q':{'x':[1]}}", "/a?q=%7B%22x%22%3A%5B1%5D%7D"},
    {"/a", "[" P("q", "q", "query", "plain", "true") "," P("r", "other", "query", "plain", "true") "]",
     "{'q':null,'r':9007199254740993}", "/a?other=9007199254740993"},
    {"/a", "[" P("h", "X-H", "header", "plain", "false") "]", "{'h':['a','b']}", "/a\nX-H: a,b"},
};

START_TEST(each_argument_goes_to_its_place)
{
    json_object *o = operation("GET", requests[_i].path, requests[_i].parameters),
                *args = rv_kit_json(requests[_i].args);
    const struct rv_openapi_opts how = {.url = "https://api.test/v1/", .document_url = ""};
    struct rv_openapi_request r = {0};
    rv_buf seen = RV_BUF_INIT(4000);

    ck_assert_int_eq(rv_openapi_build_request(o, args, &how, "k", &r, NULL), 0);
    ck_assert_int_eq(strncmp(r.url, "https://api.test/v1/", 20), 0);
    rv_buf_puts(&seen, r.url + 19);
    for (size_t i = 0; i < r.headers.n; i++)
        if (strncmp(r.headers.lines[i], "Accept", 6) != 0)
            rv_buf_printf(&seen, "\n%s", r.headers.lines[i]);
    ck_assert_str_eq(rv_buf_cstr(&seen), requests[_i].want);
    rv_buf_fini(&seen);
    rv_openapi_request_fini(&r);
    json_object_put(o);
    json_object_put(args);
}
END_TEST

/* Headers that are not a model's, also of a definition that was kept before the server was configured so. */
static const struct {
    const char *name;
    bool is_own, is_configured, is_sent;
} headers[] = {
    {"X-User-Id", true, false, false},      {"x-tenant-ID", true, false, false},    {"X_User_Id", true, false, false},
    {"X-Trace-Id", true, false, false},     {"Traceparent", true, false, false},    {"X-Region", true, false, true},
    {"X-User-Id", false, false, true},      {"X-Region", false, true, false},       {"x-region", true, true, false},
    {"X-User-Id-Of-It", true, false, true}, {"X-User-Identity", true, false, true},
};
START_TEST(a_model_does_not_say_who_asks)
{
    static const char parameter[] = "{'name':'%s','in':'header','required':true,'schema':{'type':'string'}}";
    json_object *more = rv_kit_json("{'X-Region':'eu'}"), *args = rv_kit_json("{'h':'a'}"), *tools = NULL;
    const struct rv_openapi_opts how = {.url = "https://api.test",
                                        .document_url = "",
                                        .headers = headers[_i].is_configured ? more : NULL,
                                        .is_own = headers[_i].is_own};
    rv_buf text = RV_BUF_INIT(4000), list = RV_BUF_INIT(4000);
    struct rv_openapi_request r = {0};

    rv_buf_printf(&list, "[{'argument':'h','name':'%s','in':'header','style':'plain','explode':false}]",
                  headers[_i].name);
    json_object *o = operation("GET", "/a", rv_buf_cstr(&list));
    ck_assert_int_eq(rv_openapi_build_request(o, args, &how, "", &r, NULL), 0);
    ck_assert_uint_eq(r.headers.n, headers[_i].is_sent ? 2 : 1);
    rv_openapi_request_fini(&r);

    rv_buf_clear(&list);
    rv_buf_printf(&list, parameter, headers[_i].name);
    rv_buf_printf(&text, "{'/a':{'get':{'parameters':[%s]}}}", rv_buf_cstr(&list));
    json_object *document = openapi_document(rv_buf_cstr(&text), "");
    ck_assert_int_eq(rv_openapi_build_tools(document, &how, &tools, NULL), 0);
    json_object *input = rv_json_get_obj(json_object_array_get_idx(tools, 0), "inputSchema");
    ck_assert_ptr_nonnull(input);
    json_object *properties = rv_json_get_obj(input, "properties");
    ck_assert_int_eq(properties && json_object_object_length(properties) > 0, headers[_i].is_sent);
    json_object_put(tools);
    json_object_put(document);
    json_object_put(o);
    json_object_put(more);
    json_object_put(args);
    rv_buf_fini(&list);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_body_is_json_and_a_change_has_a_key)
{
    json_object *o = operation("POST", "/a", "[" P("body", "application/json", "body", "json", "false") "]"),
                *args = rv_kit_json("{'body':{'b':1.10,'a':null}}");
    const struct rv_openapi_opts how = {.url = "https://api.test", .document_url = ""};
    struct rv_openapi_request r = {0};

    ck_assert_int_eq(rv_openapi_build_request(o, args, &how, "run:1", &r, NULL), 0);
    ck_assert_str_eq(r.method, "POST");
    ck_assert_str_eq(rv_buf_cstr(&r.body), "{\"b\":1.10,\"a\":null}");
    ck_assert_uint_eq(r.headers.n, 3);
    ck_assert_str_eq(r.headers.lines[0], "Content-Type: application/json");
    ck_assert_str_eq(r.headers.lines[2], "Idempotency-Key: run:1");
    rv_openapi_request_fini(&r);
    json_object_put(o);
    json_object_put(args);
}
END_TEST

#define PATH "[" P("x", "x", "path", "plain", "false") "]"

static const struct {
    const char *path, *parameters, *args, *why;
} refused[] = {
    {"/a/{x}", PATH, "{'x':'..'}", "would lead to another path"},
    {"/a/{x}", PATH, "{'x':'.'}", "would lead to another path"},
    {"/a/.{x}", PATH, "{'x':'.'}", "would lead to another path"},
    {"/a/{x}", PATH, "{'x':''}", "is empty"},
    {"/a/{x}", PATH, "{'x':null}", "null"},
    {"/a/{x}", PATH, "{}", "null"},
    {"/a/{x}", PATH, "{'x':[[1]]}", "list of lists"},
    {"/a/{y}", PATH, "{'x':'1'}", "not an argument"},
    {"/a", "[" P("h", "X-H", "header", "plain", "false") "]", "{'h':'a\\r\\nHost: evil'}", "argument \"h\""},
    {"/a", "[" P("h", "Authorization", "header", "plain", "false") "]", "{'h':'a'}", "list the tools"},
    {"/a", "[" P("h", "idempotency-key", "header", "plain", "false") "]", "{'h':'a'}", "list the tools"},
    {"/a", "[" P("h", "X: y", "header", "plain", "false") "]", "{'h':'a'}", "list the tools"},
    {"/a", "[" P("q", "q", "query", "plain", "true") "]", "{'q':[{}]}", "nested too deeply"},
    {"/../a", "[]", "{}", "list the tools"},
    {"a", "[]", "{}", "list the tools"},
    {"/a", "7", "{}", "list the tools"},
};

START_TEST(an_argument_reaches_no_other_place)
{
    json_object *o = operation("GET", refused[_i].path, refused[_i].parameters), *args = rv_kit_json(refused[_i].args);
    const struct rv_openapi_opts how = {.url = "https://api.test", .document_url = ""};
    struct rv_openapi_request r = {0};
    rv_buf text = RV_BUF_INIT(2000);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_openapi_build_request(o, args, &how, "", &r, &err), RV_E_INVALID);
    rv_err_write_chain(err, &text);
    ck_assert_msg(strstr(rv_buf_cstr(&text), refused[_i].why), "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_err_free(err);
    json_object_put(o);
    json_object_put(args);
}
END_TEST

/* A kept list that someone changed: the address in it counts only at the document's own. */
START_TEST(a_kept_address_is_checked_again)
{
    json_object *o = rv_kit_json("{'method':'GET','path':'/a','url':'https://a.test/v1','parameters':[]}"),
                *args = json_object_new_object();
    struct rv_openapi_opts how = {.url = "", .document_url = "https://a.test/o.json"};
    struct rv_openapi_request r = {0};

    ck_assert_int_eq(rv_openapi_build_request(o, args, &how, "", &r, NULL), 0);
    ck_assert_str_eq(r.url, "https://a.test/v1/a");
    rv_openapi_request_fini(&r);
    how.document_url = "https://b.test/o.json";
    ck_assert_int_eq(rv_openapi_build_request(o, args, &how, "", &r, NULL), RV_E_DENIED);
    how.document_url = "";
    ck_assert_int_eq(rv_openapi_build_request(o, args, &how, "", &r, NULL), RV_E_DENIED);
    json_object_put(o);
    json_object_put(args);
}
END_TEST

TCase *request_case(void)
{
    TCase *tc = tcase_create("request");

    tcase_add_loop_test(tc, each_argument_goes_to_its_place, 0, RV_COUNT(requests));
    tcase_add_loop_test(tc, a_model_does_not_say_who_asks, 0, RV_COUNT(headers));
    tcase_add_test(tc, a_body_is_json_and_a_change_has_a_key);
    tcase_add_loop_test(tc, an_argument_reaches_no_other_place, 0, RV_COUNT(refused));
    tcase_add_test(tc, a_kept_address_is_checked_again);
    return tc;
}
