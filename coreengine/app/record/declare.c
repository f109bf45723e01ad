/* Tools that a recording declares: each with its risk and schema, so that the script asks a person and checks arguments
 * as the run did. */
#include "coreengine/app/record/record_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

static int declare(json_object *tools, const struct rv_tool_info *info, rv_err **err)
{
    enum rv_risk risk = rv_tool_risk(info);
    json_object *tool;

    if (json_object_object_get_ex(tools, info->name, NULL))
        return 0;
    tool = json_object_new_object();
    int rc = rv_json_set_take(tools, info->name, tool, err);
    if (rc == 0 && info->description && info->description[0])
        rc = rv_json_set_text(tool, "description", info->description, err);
    if (rc == 0 && risk != RV_RISK_READ_ONLY)
        rc = rv_json_set_text(tool, "risk", rv_risk_text(risk), err);
    if (rc == 0 && info->effect != RV_UNSET)
        rc = rv_json_set_text(tool, "effect", rv_effect_class_text((enum rv_effect_class)info->effect), err);
    if (rc == 0)
        rc = app_record_add_copy(tool, "requires_confirmation", info->confirm, err);
    return rc == 0 ? app_record_add_copy(tool, "input_schema", info->input_json, err) : rc;
}

static int declare_all(json_object *tools, const struct rv_pipeline *p, const struct rv_catalog *c, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        const struct rv_str_list *allowed = &a->tools.allowed;
        const char *name;
        for (size_t t = 0; rc == 0 && a->has_tools; t++) {
            if (allowed->is_set)
                name = t < allowed->n ? allowed->items[t] : NULL;
            else
                name = c->tool_name ? c->tool_name(c->self, t) : NULL;
            if (!name)
                break;
            name = rv_agent_callee(a, name);
            const struct rv_tool_info *info = c->tool(c->self, rv_str_of(name));
            if (info && (allowed->is_set || rv_tool_is_allowed(a->tools.access, allowed, rv_str_of(name), info, NULL)))
                rc = declare(tools, info, err);
        }
    }
    return rc;
}

static bool asks_agents(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        for (size_t t = 0; p->agents[i].has_tools && t < p->agents[i].tools.allowed.n; t++)
            if (strcmp(p->agents[i].tools.allowed.items[t], RV_TOOL_ASK_AGENT) == 0)
                return true;
    return false;
}

/* Agents that are asked have tools that no stage names. */
static int declare_known(json_object *tools, const struct rv_catalog *c, rv_err **err)
{
    const char *name;
    int rc = 0;

    for (size_t i = 0; rc == 0 && c->tool_name && (name = c->tool_name(c->self, i)); i++) {
        const struct rv_tool_info *info = c->tool(c->self, rv_str_of(name));
        rc = info ? declare(tools, info, err) : 0;
    }
    return rc;
}

int app_record_declare(json_object *tools, const struct rv_pipeline *p, const struct rv_catalog *c, rv_err **err)
{
    int rc = declare_all(tools, p, c, err);

    return rc == 0 && asks_agents(p) ? declare_known(tools, c, err) : rc;
}

int app_record_join_tools(json_object *declared, json_object *tools, rv_err **err)
{
    int rc = 0;

    json_object_object_foreach (declared, name, tool) {
        json_object *calls = rv_json_get_arr(tools, name);
        if (rc == 0 && calls)
            rc = rv_json_set_ref(tool, "calls", calls, err);
        else if (rc == 0)
            rc = rv_json_set_take(tool, "calls", json_object_new_array(), err);
        if (rc == 0)
            rc = rv_json_set_ref(tools, name, tool, err);
    }
    return rc;
}
