#include "tests/unit/openapi/suites.h"

json_object *openapi_document(const char *paths, const char *components)
{
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);

    rv_buf_printf(&text, "{'openapi':'3.1.0','info':{'title':'t','version':'1'},'paths':%s,'components':%s}", paths,
                  components[0] ? components : "{}");
    ck_assert_int_eq(text.rc, 0);
    json_object *document = rv_kit_json(rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return document;
}

json_object *openapi_tools(const char *paths, const char *components)
{
    json_object *document = openapi_document(paths, components), *tools = NULL;
    const struct rv_openapi_opts how = {.url = "https://api.test/v1", .document_url = ""};

    ck_assert_int_eq(rv_openapi_build_tools(document, &how, &tools, NULL), 0);
    json_object_put(document);
    return tools;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {tools_case, request_case, answer_case};

    return rv_kit_run_cases("openapi", cases, RV_COUNT(cases));
}
