/* Two definitions of a tool, a line each: a change that counts has something to show, and what was approved is the
 * same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/fuzz.h"

static json_object *read_object(const uint8_t *data, size_t size)
{
    json_object *out = NULL;

    if (rv_json_parse((rv_str){(const char *)data, size}, NULL, &out, NULL) == 0 &&
        json_object_is_type(out, json_type_object))
        return out;
    json_object_put(out);
    return NULL;
}

static void compare(json_object *a, json_object *b)
{
    json_object *pins = json_object_new_object();
    rv_buf diff = RV_BUF_INIT((size_t)8 << 20);

    int rc = rv_mcp_pin_set(pins, a, NULL);
    require(rc == 0 || rc == RV_E_INVALID);
    if (rc == 0)
        require(rv_mcp_pin_look(pins, a) == RV_MCP_PIN_SAME);
    enum rv_mcp_pin look = rv_mcp_pin_look(pins, b);
    rv_mcp_pin_diff(pins, b, &diff);
    require(look != RV_MCP_PIN_CHANGED || diff.len > 0);
    if (rv_mcp_pin_set(pins, b, NULL) == 0)
        require(rv_mcp_pin_look(pins, b) == RV_MCP_PIN_SAME);
    rv_buf_fini(&diff);
    json_object_put(pins);
}

RV_FUZZ_TARGET(mcp_pins)
{
    const uint8_t *stop = size ? memchr(data, '\n', size) : NULL;
    size_t n = stop ? (size_t)(stop - data) : size;
    json_object *a = read_object(data, n), *b = stop ? read_object(stop + 1, size - n - 1) : NULL;

    if (a && b)
        compare(a, b);
    json_object_put(a);
    json_object_put(b);
    return 0;
}
