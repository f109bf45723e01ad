/* The tools that models of a run could call, as a script declares them: played without their capabilities, models are
 * offered the same, and arguments are held against the same schemas. */
#include "coreengine/app/record/record_internal.h"

#include <json-c/linkhash.h>

static int declare(json_object *tools, const struct rv_tool_info *info, rv_err **err)
{
    enum rv_risk risk = rv_tool_risk(info);
    json_object *tool, *schema = NULL;

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
    if (rc == 0 && info->input_json) {
        rc = rv_json_dup(info->input_json, &schema, err);
        if (rc == 0)
            rc = rv_json_set_take(tool, "input_schema", schema, err);
    }
    return rc;
}

int rv_record_declare(json_object *tools, const struct rv_pipeline *p, const struct rv_catalog *c, rv_err **err)
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
            const struct rv_tool_info *info = c->tool(c->self, rv_str_of(name));
            if (info && (allowed->is_set || rv_tool_allowed(a->tools.access, allowed, rv_str_of(name), info, NULL)))
                rc = declare(tools, info, err);
        }
    }
    return rc;
}

int rv_record_join(json_object *declared, json_object *tools, rv_err **err)
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
