/* Pins: which members of a definition count, and what a person is shown of a change. */
#include <json-c/linkhash.h>
#include <string.h>

#include "coreengine/mcp/tools.h"

#define MAX_TEXT ((size_t)1 << 20) /* bytes of one definition as lines: a person compares them */

/* What a model is told, what it decides by, and what a call of a REST server does. Titles and icons are for people
 * only. */
static const char *const members[] = {"name",         "description", "inputSchema",
                                      "outputSchema", "annotations", RV_MCP_OPERATION};

static json_object *pinned(json_object *pins, json_object *definition)
{
    json_object *tools = rv_json_get_obj(pins, "tools");
    const char *name = NULL;

    return tools && rv_json_get_text(definition, "name", &name) ? rv_json_get_obj(tools, name) : NULL;
}

enum rv_mcp_pin rv_mcp_pin_look(json_object *pins, json_object *definition)
{
    json_object *before = pinned(pins, definition);

    if (!before)
        return RV_MCP_PIN_NEW;
    for (size_t i = 0; i < RV_COUNT(members); i++) {
        json_object *a = NULL, *b = NULL;
        bool has_a = json_object_object_get_ex(before, members[i], &a);
        bool has_b = json_object_object_get_ex(definition, members[i], &b);
        if (has_a != has_b || !rv_json_equal(a, b))
            return RV_MCP_PIN_CHANGED;
    }
    return RV_MCP_PIN_SAME;
}

int rv_mcp_pin_set(json_object *pins, json_object *definition, rv_err **err)
{
    json_object *tools = rv_json_get_obj(pins, "tools"), *kept, *member = NULL;
    const char *name = NULL;
    int rc = 0;

    if (!rv_json_get_text(definition, "name", &name))
        return RV_FAIL(err, RV_E_INVALID, "the tool has no name");
    if (!tools) {
        tools = json_object_new_object();
        rc = rv_json_set_take(pins, "tools", tools, err);
    }
    kept = rc == 0 ? json_object_new_object() : NULL;
    if (rc == 0 && !kept)
        rc = RV_FAIL(err, RV_E_NOMEM, "pin a tool");
    for (size_t i = 0; i < RV_COUNT(members) && rc == 0; i++)
        if (json_object_object_get_ex(definition, members[i], &member))
            rc = rv_json_set_ref(kept, members[i], member, err);
    if (rc < 0) {
        json_object_put(kept);
        return rc;
    }
    return rv_json_set_take(tools, name, kept, err);
}

/* --- what differs --- */

static size_t line_length(rv_str text)
{
    const char *end = rv_str_find(text, '\n');

    return end ? (size_t)(end - text.ptr) + 1 : text.len;
}

static void put_lines(rv_str text, char mark, rv_buf *out)
{
    while (text.len) {
        size_t n = line_length(text);
        rv_buf_printf(out, "%c ", mark);
        rv_buf_add(out, text.ptr, n);
        if (text.ptr[n - 1] != '\n')
            rv_buf_putc(out, '\n');
        text = (rv_str){text.ptr + n, text.len - n};
    }
}

/* The lines that both begin with, and those that both end with, are left out. */
static void put_difference(rv_str a, rv_str b, rv_buf *out)
{
    while (a.len && b.len) {
        size_t n = line_length(a);
        if (n != line_length(b) || memcmp(a.ptr, b.ptr, n) != 0)
            break;
        a = (rv_str){a.ptr + n, a.len - n};
        b = (rv_str){b.ptr + n, b.len - n};
    }
    size_t same = 0, whole = 0;
    while (same < a.len && same < b.len && a.ptr[a.len - 1 - same] == b.ptr[b.len - 1 - same]) {
        same++;
        bool starts = same == a.len || same == b.len || a.ptr[a.len - 1 - same] == '\n';
        if (starts && a.ptr[a.len - same] != '\n')
            whole = same;
    }
    put_lines((rv_str){a.ptr, a.len - whole}, '-', out);
    put_lines((rv_str){b.ptr, b.len - whole}, '+', out);
}

void rv_mcp_pin_diff(json_object *pins, json_object *definition, rv_buf *out)
{
    json_object *before = pinned(pins, definition);

    for (size_t i = 0; i < RV_COUNT(members); i++) {
        RV_AUTO(rv_buf_fini) rv_buf was = RV_BUF_INIT(MAX_TEXT), is = RV_BUF_INIT(MAX_TEXT);
        json_object *a = NULL, *b = NULL;
        if (before && json_object_object_get_ex(before, members[i], &a))
            rv_json_write_pretty(a, &was);
        if (json_object_object_get_ex(definition, members[i], &b))
            rv_json_write_pretty(b, &is);
        if (was.rc < 0 || is.rc < 0) { /* a change that is not shown must not look like none */
            if (was.rc == RV_E_NOMEM || is.rc == RV_E_NOMEM)
                out->rc = RV_E_NOMEM;
            if (!rv_json_equal(a, b))
                rv_buf_printf(out, "%s:\n+ (more than %zu bytes, not shown)\n", members[i], MAX_TEXT);
            continue;
        }
        if (rv_str_eq(rv_buf_str(&was), rv_buf_str(&is)))
            continue;
        rv_buf_printf(out, "%s:\n", members[i]);
        put_difference(rv_buf_str(&was), rv_buf_str(&is), out);
    }
}
