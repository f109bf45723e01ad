/* Everything that is loaded, as JSON for `inspect` and for editors. */
#include "coreengine/tools/plugin/plugin_internal.h"

static const struct {
    const char *key;
    enum rv_name_kind kind;
} groups[] = {
    {"tools", RV_NAME_TOOL},   {"hooks", RV_NAME_HOOK},         {"policies", RV_NAME_POLICY},
    {"mocks", RV_NAME_MOCK},   {"routes", RV_NAME_ROUTE},       {"prompts", RV_NAME_PROMPT},
    {"probes", RV_NAME_PROBE}, {"providers", RV_NAME_PROVIDER},
};

static void write_tool(const struct rv_plugin_entry *e, rv_jw *w)
{
    const struct rv_tool_info *tool = &e->tool;

    rv_jw_kv_text(w, "risk", rv_risk_text(rv_tool_risk(tool)));
    rv_jw_kv_text(w, "effect", rv_effect_class_text(rv_tool_effect(tool)));
    if (tool->category != RV_UNSET)
        rv_jw_kv_text(w, "category", rv_tool_category_text((enum rv_tool_category)tool->category));
    if (tool->timeout_ms)
        rv_jw_kv_int(w, "timeout_ms", tool->timeout_ms);
    if (tool->input_json)
        rv_jw_kv_value(w, "input_schema", tool->input_json);
    if (tool->output_json)
        rv_jw_kv_value(w, "output_schema", tool->output_json);
}

static void write_entry(const struct rv_plugin_entry *e, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", e->name);
    rv_jw_kv_text(w, "description", e->description);
    if (e->never_blocks)
        rv_jw_kv_bool(w, "blocking", false);
    if (e->kind == RV_NAME_TOOL) {
        write_tool(e, w);
    } else if (e->kind == RV_NAME_PROMPT) {
        rv_jw_kv_text(w, "text", e->prompt_text);
    } else {
        if (e->info.sees.is_set) {
            rv_jw_key(w, "sees");
            rv_jw_arr(w);
            for (size_t i = 0; i < e->info.sees.n; i++)
                rv_jw_text(w, e->info.sees.items[i]);
            rv_jw_arr_end(w);
        }
        if (e->info.timeout_ms)
            rv_jw_kv_int(w, "timeout_ms", e->info.timeout_ms);
    }
    rv_jw_obj_end(w);
}

static void write_capability(const struct rv_plugin *pl, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", pl->name);
    rv_jw_kv_text(w, "version", pl->version);
    rv_jw_kv_text(w, "description", pl->description);
    rv_jw_kv_text(w, "path", pl->path);
    rv_jw_kv_int(w, "abi", pl->desc.abi);
    rv_jw_kv_value(w, "config_schema", pl->config_schema_json);
    for (size_t g = 0; g < RV_COUNT(groups); g++) {
        rv_jw_key(w, groups[g].key);
        rv_jw_arr(w);
        for (size_t i = 0; i < pl->n_entries; i++)
            if (pl->entries[i].kind == groups[g].kind)
                write_entry(&pl->entries[i], w);
        rv_jw_arr_end(w);
    }
    rv_plugin_write_agents(pl, w);
    rv_jw_obj_end(w);
}

void rv_plugins_write_json(rv_plugins *p, rv_jw *w)
{
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_loaded; i++)
        write_capability(p->loaded[i], w);
    rv_jw_arr_end(w);
}
