/* What a server may know of this side without asking a person: what the client can do, and the folders that the
 * pipeline names as roots. The list does not change while a connection is open, so no notification is declared. */
#include "coreengine/mcp/client_internal.h"

json_object *mcp_capabilities(const rv_mcp_client *c, bool is_modern)
{
    struct rv_json_build b = {0};
    json_object *all = json_object_new_object();
    json_object *form = all && c->elicits ? rv_json_build(&b, all, "elicitation", json_object_new_object()) : NULL;

    if (form)
        rv_json_build(&b, form, "form", json_object_new_object());
    if (all && is_modern) {
        json_object *extensions = rv_json_build(&b, all, "extensions", json_object_new_object());
        rv_json_build(&b, extensions, "io.modelcontextprotocol/tasks", b.rc < 0 ? NULL : json_object_new_object());
    }
    if (all && c->roots)
        rv_json_build(&b, all, "roots", json_object_new_object());
    if (all && c->max_samples > 0)
        rv_json_build(&b, all, "sampling", json_object_new_object());
    if (b.rc == 0)
        return all;
    json_object_put(all);
    return NULL;
}

int mcp_write_roots(const rv_mcp_client *c, json_object **out, rv_err **err)
{
    json_object *to = json_object_new_object();

    if (!to)
        return RV_FAIL(err, RV_E_NOMEM, "answer an MCP server");
    int rc = rv_json_set_ref(to, "roots", c->roots, err);
    if (rc < 0)
        json_object_put(to);
    else
        *out = to;
    return rc;
}

int mcp_add_roots(const rv_mcp_client *c, json_object *keys, json_object *responses, rv_err **err)
{
    json_object *roots = NULL;
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(keys) && rc == 0; i++) {
        rc = mcp_write_roots(c, &roots, err);
        if (rc == 0)
            rc = rv_json_set_take(responses, json_object_get_string(json_object_array_get_idx(keys, i)), roots, err);
    }
    return rc;
}
