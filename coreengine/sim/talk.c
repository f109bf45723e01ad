/* Tools that a model asks for: mostly those it was offered, with arguments that fit; at times others, or none that can
 * be read. */
#include "coreengine/sim/sim_internal.h"

#include <stdio.h>

#define MAX_AT_ONCE 4
#define IN_TEN_ASKS 4 /* of ten replies that could ask for tools */

static int write_arguments(json_object *tool, struct sim_rng *r, rv_buf *text, rv_err **err)
{
    static const char *const wrong[] = {"{\"n\":", "[1]", "", "{\"unasked\":true}"};
    json_object *schema = rv_json_get_obj(tool, "parameters"), *v = NULL;
    uint32_t how = sim_below(r, 12);
    bool fits = false;

    if (how > 0 && how <= RV_COUNT(wrong)) {
        rv_buf_puts(text, wrong[how - 1]);
        return rv_buf_check(text, "arguments", err);
    }
    int rc = schema ? sim_value(schema, NULL, r, &v, &fits, err) : 0;
    if (rc == 0 && json_object_is_type(v, json_type_object))
        rv_json_write(v, text);
    else if (rc == 0)
        rv_buf_puts(text, "{}");
    json_object_put(v);
    return rc < 0 ? rc : rv_buf_check(text, "arguments", err);
}

static int write_call(json_object *tools, size_t i, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    size_t n = json_object_array_length(tools);
    json_object *tool = json_object_array_get_idx(tools, sim_below(r, (uint32_t)n));
    rv_buf arguments = RV_BUF_INIT(SIM_MAX_TEXT);
    const char *name = "";
    char id[24];

    RV_IGNORE(!rv_json_get_text(tool, "name", &name), "every tool has one");
    if (sim_below(r, 12) == 11)
        name = "no_such_tool";
    snprintf(id, sizeof id, "call_%zu", i + 1);
    int rc = write_arguments(tool, r, &arguments, err);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", id);
    rv_jw_kv_text(w, "name", name);
    rv_jw_kv_str(w, "arguments", (rv_str){rv_buf_cstr(&arguments), arguments.len});
    rv_jw_obj_end(w);
    rv_buf_fini(&arguments);
    return rc;
}

int sim_tool_calls(json_object *request, struct sim_rng *r, struct sim_outcome *o, rv_err **err)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    rv_jw w = rv_jw_on(&o->calls);
    int rc = 0;

    if (!tools || json_object_array_length(tools) == 0 || sim_below(r, 10) >= IN_TEN_ASKS)
        return 0;
    rv_jw_arr(&w);
    for (size_t i = 0, n = 1 + sim_below(r, MAX_AT_ONCE); rc == 0 && i < n; i++)
        rc = write_call(tools, i, r, &w, err);
    rv_jw_arr_end(&w);
    if (rc == 0)
        rc = rv_buf_check(&o->calls, "tool calls", err);
    o->llm.tool_calls = rv_buf_str(&o->calls);
    o->llm.finish = RV_FINISH_TOOL_CALLS;
    return rc;
}
