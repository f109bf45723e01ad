/* Who may call what: the access level of the agent, then its whitelist. What is not allowed is denied. */
#include "coreengine/tools/tools_internal.h"

static bool is_listed(const struct rv_str_list *list, rv_str name)
{
    size_t i;

    for (i = 0; i < list->n; i++)
        if (rv_str_is(name, list->items[i]))
            return true;
    return false;
}

static bool reads_only(enum rv_risk risk)
{
    return risk == RV_RISK_READ_ONLY || risk == RV_RISK_LOW;
}

static bool destroys_nothing(enum rv_risk risk)
{
    return reads_only(risk) || risk == RV_RISK_WRITE || risk == RV_RISK_MEDIUM;
}

/* NULL: the level alone has nothing against it. */
static const char *objection(int access, bool has_whitelist, const struct rv_tool_info *info)
{
    switch ((enum rv_tool_access)access) {
    case RV_ACCESS_ALL:
        return NULL;
    case RV_ACCESS_READ:
        return !info || reads_only(rv_tool_risk(info)) ? NULL : "tool_access is read and the tool does more than read";
    case RV_ACCESS_WRITE:
        return !info || destroys_nothing(rv_tool_risk(info)) ? NULL : "tool_access is write and the tool may destroy";
    case RV_ACCESS_UNSET:
        return has_whitelist ? NULL : "neither tool_access nor allowed_tools is set";
    case RV_ACCESS_NONE:
    case RV_N_ACCESS:
        break;
    }
    return "tool_access is none";
}

bool rv_tool_allowed(int access, const struct rv_str_list *whitelist, rv_str name, const struct rv_tool_info *info,
                     const char **why)
{
    bool has_whitelist = whitelist && whitelist->is_set;
    const char *denial = objection(access, has_whitelist, info);

    if (!denial && has_whitelist && !is_listed(whitelist, name))
        denial = "allowed_tools does not list it";
    if (why)
        *why = denial;
    return !denial;
}
