/* Pins of servers in files of the state directory: a file for each server, replaced as a whole. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/mcp/mcp.h"
#include "coreengine/tools/mcp/mcptools_internal.h"

#define MAX_PINS ((size_t)32 << 20) /* bytes of a file: all definitions of a server */

void rv_mcp_write_state_path(const char *folder, const char *kind, const struct rv_mcp_server_config *s, rv_buf *out)
{
    struct rv_hash h;
    char hex[RV_HASH_MAX];

    rv_hash_init(&h);
    rv_hash_add(&h, rv_str_of(s->url)); /* another server by the same name has a file of its own */
    rv_hash_add(&h, rv_str_of(s->openapi));
    for (size_t i = 0; i < s->command.n; i++)
        rv_hash_add(&h, (rv_str){s->command.items[i], strlen(s->command.items[i]) + 1});
    rv_hash_finish_hex(&h, hex);
    rv_buf_printf(out, "%s/%s/%s-%.16s.json", folder, kind, s->name, hex);
}

/* Pins that cannot be read are not as if there were none: then all tools would be new, and approved at first sight. */
static int check_pins(json_object *pins, rv_err **err)
{
    json_object *tools = NULL;

    if (!json_object_is_type(pins, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "it must be an object, not %s", rv_json_type_text(pins));
    if (!json_object_object_get_ex(pins, "tools", &tools))
        return 0;
    if (!json_object_is_type(tools, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "\"tools\" must be an object, not %s", rv_json_type_text(tools));
    json_object_object_foreach (tools, name, tool)
        if (!json_object_is_type(tool, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "tool \"%.200s\" must be an object, not %s", name,
                           rv_json_type_text(tool));
    return 0;
}

static int read_pins(const char *path, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_PINS, .what = "file of pins"};
    rv_buf text = RV_BUF_INIT(MAX_PINS);
    rv_err *why = NULL;
    int rc = rv_file_read(path, &text, &why);

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(why);
        *out = json_object_new_object();
        return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "read pins");
    }
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, out, &why);
    if (rc == 0 && (rc = check_pins(*out, &why)) < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    rv_buf_fini(&text);
    if (rc < 0) {
        RV_FAIL(err, rc, "pins in \"%s\"", path);
        rv_err_add_causes(err, why);
        rv_err_set_hint(err, "restore the file, or delete it: then all tools of this server are new");
    }
    return rc;
}

static int write_pins(const char *path, json_object *pins, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(MAX_PINS);

    rv_json_write_pretty(pins, &text);
    rv_buf_putc(&text, '\n');
    int rc = rv_buf_check(&text, "pins", err);
    if (rc == 0)
        rc = rv_file_make_folders(path, err);
    return rc == 0 ? rv_file_write(path, rv_buf_str(&text), err) : rc;
}

static void warn(const struct rv_mcp_tools_opts *o, const struct rv_mcp_server_config *s, const char *name, bool is_new)
{
    rv_findings_add_as(o->findings, RV_SEVERITY_WARNING, "mcp_pin", &s->src,
                       "look at it with `reeve mcp approve`, and approve it there",
                       is_new ? "tool \"%s\" of MCP server \"%s\" is not offered: it was not approved yet"
                              : "tool \"%s\" of MCP server \"%s\" is not offered: it has changed since it was approved",
                       name, s->name);
}

static void show(json_object *pins, json_object *tool, const char *server, const char *name, rv_buf *out)
{
    rv_buf_printf(out, "%s.%s: %s\n", server, name, rv_mcp_pin_look(pins, tool) == RV_MCP_PIN_NEW ? "new" : "changed");
    rv_mcp_pin_diff(pins, tool, out);
}

int mcptools_mcp_pins_filter(const struct rv_mcp_tools_opts *o, const struct rv_mcp_server_config *s,
                             json_object *tools, json_object **approved, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(4096);
    json_object *pins = NULL, *out = json_object_new_array();
    bool is_changed = false,
         approves = o->approve.text && (!o->approve.server || strcmp(o->approve.server, s->name) == 0);

    rv_mcp_write_state_path(o->state, "pins", s, &path);
    int rc = out ? rv_buf_check(&path, "path of pins", err) : RV_FAIL(err, RV_E_NOMEM, "check pins");
    if (rc == 0)
        rc = read_pins(rv_buf_cstr(&path), &pins, err);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(tools); i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        const char *name = NULL;
        bool is_tool = json_object_is_type(tool, json_type_object) && rv_json_get_text(tool, "name", &name) &&
                       !json_object_object_get_ex(tool, RV_MCP_REFUSED, NULL);
        enum rv_mcp_pin pin =
            is_tool ? rv_mcp_pin_look(pins, tool) : RV_MCP_PIN_SAME; /* what is not a tool is left out later */
        bool is_first = pin == RV_MCP_PIN_NEW && s->pin != RV_MCP_PINS_STRICT;
        if (pin != RV_MCP_PIN_SAME && !is_first && approves)
            show(pins, tool, s->name, name, o->approve.text);
        if (is_first || (pin != RV_MCP_PIN_SAME && approves && o->approve.is_yes)) {
            rc = rv_mcp_pin_set(pins, tool, err);
            is_changed = true;
        } else if (pin != RV_MCP_PIN_SAME) {
            if (!approves)
                warn(o, s, name, pin == RV_MCP_PIN_NEW);
            continue;
        }
        if (rc == 0)
            rc = rv_json_push_ref(out, tool, err);
    }
    if (rc == 0 && is_changed)
        rc = write_pins(rv_buf_cstr(&path), pins, err);
    json_object_put(pins);
    if (rc < 0) {
        json_object_put(out);
        return rc;
    }
    *approved = out;
    return 0;
}
