/* A document of OpenAPI of any bytes: each tool has a name that a tool may have, and an operation that requests are
 * made of; a request that is made leaves neither the server nor the path of its operation. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/mcp/mcp.h"
#include "coreengine/openapi/openapi.h"
#include "tests/kit/fuzz.h"

/* Arguments that would like to be elsewhere. */
static json_object *arguments_of(json_object *tool)
{
    static const char *const values[] = {
        "\"..\"", "\"/../\"", "\"a\\r\\nb: c\"", "[\"&\",\"#\",{}]", "{\"?\":\"@evil.test\"}", "1.50", "null"};
    json_object *properties = rv_json_get_obj(rv_json_get_obj(tool, "inputSchema"), "properties");
    json_object *args = json_object_new_object();
    size_t i = 0;

    require(properties && args);
    json_object_object_foreach (properties, key, schema) {
        json_object *value = NULL;
        (void)schema;
        require(rv_json_parse(rv_str_of(values[i++ % RV_COUNT(values)]), NULL, &value, NULL) == 0);
        require(value ? rv_json_set_take(args, key, value, NULL) == 0 : rv_json_set_null(args, key, NULL) == 0);
    }
    return args;
}

static void call(json_object *tool, const struct rv_openapi_opts *how)
{
    struct rv_openapi_request r = {0};
    json_object *args = arguments_of(tool), *operation = NULL;

    require(json_object_object_get_ex(tool, RV_MCP_OPERATION, &operation));
    int rc = rv_openapi_build_request(operation, args, how, "k", &r, NULL);
    require(rc == 0 || rc == RV_E_INVALID || rc == RV_E_LIMIT);
    if (rc == 0) {
        require(strncmp(r.url, "https://api.test/", 17) == 0);
        size_t path = strcspn(r.url + 17, "?");
        require(!memmem(r.url + 16, path + 1, "/../", 4) && !strchr(r.url, '#') && !strchr(r.url, ' '));
        require(path < 2 || memcmp(r.url + 17 + path - 3, "/..", 3) != 0);
        for (size_t i = 0; i < r.headers.n; i++)
            require(!strpbrk(r.headers.lines[i], "\r\n"));
    }
    rv_openapi_request_fini(&r);
    json_object_put(args);
}

RV_FUZZ_TARGET(openapi)
{
    const struct rv_openapi_opts how = {.url = "", .document_url = "https://api.test/o.json"};
    json_object *document = NULL, *tools = NULL;
    const char *name = NULL;

    if (rv_openapi_read((rv_str){(const char *)data, size}, "document", &document, NULL) < 0)
        return 0;
    int rc = rv_openapi_build_tools(document, &how, &tools, NULL);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(tools); i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        require(rv_json_get_text(tool, "name", &name) && strlen(name) >= 1 && strlen(name) <= RV_MCP_MAX_TOOL_NAME);
        if (!json_object_object_get_ex(tool, RV_MCP_REFUSED, NULL))
            call(tool, &how);
    }
    json_object_put(document);
    json_object_put(tools);
    return 0;
}
