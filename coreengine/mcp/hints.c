/* What a tool does, as far as a server is believed: the file counts first, then a trusted server's annotations. Of any
 * other server the stricter of annotation and default holds: it can make a tool more dangerous, never safer. */
#include "coreengine/mcp/tools.h"

/* The default of each hint is its stricter value. */
static bool hint(json_object *annotations, bool is_trusted, const char *key, bool strict)
{
    bool said = strict;

    return is_trusted && rv_json_get_bool(annotations, key, &said) ? said : strict;
}

struct rv_mcp_hints rv_mcp_hints_of(json_object *annotations, bool is_trusted, const struct rv_mcp_tool_config *own)
{
    struct rv_mcp_hints h = {.read_only = hint(annotations, is_trusted, "readOnlyHint", false),
                             .destructive = hint(annotations, is_trusted, "destructiveHint", true),
                             .idempotent = hint(annotations, is_trusted, "idempotentHint", false),
                             .open_world = hint(annotations, is_trusted, "openWorldHint", true)};
    bool said;

    h.says_destructive = rv_json_get_bool(annotations, "destructiveHint", &said) && said;
    if (own && own->has_read_only)
        h.read_only = own->read_only;
    if (own && own->has_destructive)
        h.destructive = h.says_destructive = own->destructive;
    if (own && own->has_idempotent)
        h.idempotent = own->idempotent;
    if (h.read_only) /* the other two mean nothing then */
        h.destructive = false;
    return h;
}

bool rv_mcp_must_confirm(enum rv_mcp_confirm policy, const struct rv_mcp_hints *hints)
{
    switch (policy) {
    case RV_MCP_CONFIRM_NEVER:
        return false;
    case RV_MCP_CONFIRM_DECLARED:
        return hints->says_destructive && !hints->read_only;
    case RV_MCP_CONFIRM_DESTRUCTIVE:
        return hints->destructive && !hints->read_only;
    case RV_MCP_CONFIRM_WRITES:
        return !hints->read_only;
    case RV_MCP_CONFIRM_ALWAYS:
    case RV_N_MCP_CONFIRMS:
        break;
    }
    return true;
}
