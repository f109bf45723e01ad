/* Each allocation fails once while a document of a REST server becomes tools, a call a request and an answer a result.
 */
#include <stdlib.h>

#include "coreengine/mcp/mcp.h"
#include "coreengine/openapi/openapi.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

static const char document_text[] =
    "openapi: 3.0.3\n"
    "servers: [{url: '/v1'}]\n"
    "paths:\n"
    "  /a/{x}:\n"
    "    parameters: [{name: x, in: path, schema: {type: string, nullable: true, enum: [a]}}]\n"
    "    put:\n"
    "      parameters: [{name: q, in: query, description: d, schema: {$ref: '#/components/schemas/S'}},\n"
    "                   {name: X-H, in: header, schema: {}}]\n"
    "      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/S'}}}}\n"
    "      responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/S'}}}}}\n"
    "  /b: {get: {requestBody: {$ref: '#/no'}}}\n"
    "components: {schemas: {S: {type: object, required: [a], properties: {a: {minimum: 1, exclusiveMinimum: "
    "true}}}}}\n";

static int call(json_object *tool, const struct rv_openapi_opts *how)
{
    static const char text[] = "{\"x\":\"1\",\"q\":{\"a\":2},\"X-H\":\"h\",\"body\":{\"a\":3}}";
    struct rv_openapi_request r = {0};
    json_object *args = NULL, *operation = NULL;

    json_object_object_get_ex(tool, RV_MCP_OPERATION, &operation);
    int rc = rv_json_parse(rv_str_of(text), NULL, &args, NULL);
    if (rc == 0)
        rc = rv_openapi_build_request(operation, args, how, "k", &r, NULL);
    rv_openapi_request_fini(&r);
    json_object_put(args);
    return rc;
}

static int tools_and_calls(void)
{
    const struct rv_openapi_opts how = {.url = "", .document_url = "https://a.test/o.yaml"};
    json_object *document = NULL, *tools = NULL;

    int rc = rv_openapi_read(rv_str_of(document_text), "o.yaml", &document, NULL);
    if (rc == 0)
        rc = rv_openapi_build_tools(document, &how, &tools, NULL);
    if (rc == 0)
        rc = call(json_object_array_get_idx(tools, 0), &how);
    json_object_put(document);
    json_object_put(tools);
    return rc;
}

static int answers(void)
{
    static const struct rv_openapi_answer all[] = {
        {200, RV_STR_LIT("application/json"), RV_STR_LIT("{\"a\":[1]}"), "https://a.test"},
        {200, RV_STR_LIT("text/plain"), RV_STR_LIT("a"), "https://a.test"},
        {200, RV_STR_LIT("image/png"), RV_STR_LIT("a"), "https://a.test"},
        {200, RV_STR_LIT("a/b"), RV_STR_LIT("a"), "https://a.test"},
        {404, RV_STR_LIT(""), RV_STR_LIT("no"), "https://a.test"},
    };
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(all) && rc == 0; i++) {
        json_object *result = NULL;
        rc = rv_openapi_build_result(&all[i], &result, NULL);
        json_object_put(result);
    }
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"tools_and_calls", tools_and_calls}, {"answers", answers}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 20);
}
END_TEST

static TCase *openapi_case(void)
{
    TCase *tc = tcase_create("openapi");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, (int)RV_COUNT(scenarios));
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {openapi_case};

    return rv_kit_run_cases("fault_openapi", cases, RV_COUNT(cases));
}
