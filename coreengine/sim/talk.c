/* Tools that a model asks for: mostly those it was offered, with arguments that fit; at times others, or none that can
 * be read. Its output may come as such a call, too. */
#include "coreengine/sim/sim_internal.h"

#include <stdio.h>
#include <string.h>

#define MAX_AT_ONCE   4
#define IN_TEN_ASKS   4 /* of ten replies that could ask for tools */
#define IN_TEN_AGENT  9 /* tools on a list that are passed over for ask_agent */
#define IN_TEN_OUTPUT 2 /* of ten that are to fit a schema */

struct asking {
    struct sim_seed *s;
    const struct rv_effect *e;
    json_object *tools, *output; /* of the request; may be NULL */
    struct sim_rng *r;
    rv_jw w;
    size_t n; /* calls so far */
};

static const char *name_of(const struct asking *a)
{
    const struct rv_agent *stage = &a->s->subject->pipeline->agents[a->e->stage];

    return a->e->origin ? a->e->origin->agent : stage->declared.doc ? stage->declared.doc->name : stage->name;
}

static int write_arguments(struct asking *a, const char *name, json_object *schema, rv_buf *text, rv_err **err)
{
    static const char *const wrong[] = {"{\"n\":", "[1]", "", "{\"unasked\":true}"};
    json_object *v = NULL;
    uint32_t how = sim_below(a->r, 12);
    bool fits = false;

    if (how > 0 && how <= RV_COUNT(wrong)) {
        rv_buf_puts(text, wrong[how - 1]);
        return rv_buf_check(text, "arguments", err);
    }
    if (strcmp(name, SIM_ASK_AGENT) == 0)
        return sim_ask_arguments(a->s, name_of(a), a->r, text, err);
    int rc = schema ? sim_value(schema, NULL, a->r, &v, &fits, err) : 0;
    if (rc == 0 && json_object_is_type(v, json_type_object))
        rv_json_write(v, text);
    else if (rc == 0)
        rv_buf_puts(text, "{}");
    json_object_put(v);
    return rc < 0 ? rc : rv_buf_check(text, "arguments", err);
}

/* Most providers count, some make ids that are one of a kind, some repeat them, some have none. */
static void put_id(struct asking *a, char *id, size_t size)
{
    uint32_t how = sim_below(a->r, 12);

    if (how == 11)
        id[0] = '\0';
    else if (how >= 9)
        snprintf(id, size, "ask:0");
    else if (how >= 6)
        snprintf(id, size, "toolu_%08x", sim_below(a->r, UINT32_MAX));
    else
        snprintf(id, size, "call_%zu", a->n + 1);
}

static int write_call(struct asking *a, const char *name, json_object *schema, rv_err **err)
{
    rv_buf arguments = RV_BUF_INIT(SIM_MAX_TEXT);
    char id[24];

    put_id(a, id, sizeof id);
    int rc = write_arguments(a, name, schema, &arguments, err);
    rv_jw_obj(&a->w);
    rv_jw_kv_text(&a->w, "id", id);
    rv_jw_kv_text(&a->w, "name", name);
    rv_jw_kv_str(&a->w, "arguments", (rv_str){rv_buf_cstr(&arguments), arguments.len});
    rv_jw_obj_end(&a->w);
    rv_buf_fini(&arguments);
    a->n++;
    return rc;
}

/* One of them; a stage that may ask agents mostly does. */
static json_object *choose(struct asking *a)
{
    size_t n = json_object_array_length(a->tools);
    const char *name = NULL;

    for (size_t i = 0; i < n && !a->e->origin && !a->r->is_plain && sim_below(a->r, 10) < IN_TEN_AGENT; i++) {
        json_object *tool = json_object_array_get_idx(a->tools, i);
        if (rv_json_get_text(tool, "name", &name) && strcmp(name, SIM_ASK_AGENT) == 0)
            return tool;
    }
    return json_object_array_get_idx(a->tools, sim_below(a->r, (uint32_t)n));
}

static int call_tool(struct asking *a, rv_err **err)
{
    json_object *tool = choose(a);
    const char *name = "";

    RV_IGNORE(!rv_json_get_text(tool, "name", &name), "every tool has one");
    if (sim_below(a->r, 12) == 11)
        name = "no_such_tool";
    return write_call(a, name, rv_json_get_obj(tool, "parameters"), err);
}

int sim_tool_calls(struct sim_seed *s, const struct rv_effect *e, json_object *request, struct sim_rng *r,
                   struct sim_outcome *o, rv_err **err)
{
    struct asking a = {
        s, e, rv_json_get_arr(request, "tools"), rv_json_get_obj(request, "output"), r, rv_jw_on(&o->calls), 0};
    bool hands_over = a.output && !r->is_plain && sim_below(r, 10) < IN_TEN_OUTPUT;
    bool asks = a.tools && json_object_array_length(a.tools) > 0 && sim_below(r, 10) < IN_TEN_ASKS;
    int rc = 0;

    if (!asks && !hands_over)
        return 0;
    rv_jw_arr(&a.w);
    for (size_t i = 0, n = asks ? 1 + sim_below(r, MAX_AT_ONCE) : 0; rc == 0 && i < n; i++)
        rc = call_tool(&a, err);
    if (rc == 0 && hands_over)
        rc = write_call(&a, RV_OUTPUT_TOOL, rv_json_get_obj(a.output, "schema"), err);
    rv_jw_arr_end(&a.w);
    if (rc == 0)
        rc = rv_buf_check(&o->calls, "tool calls", err);
    o->llm.tool_calls = rv_buf_str(&o->calls);
    o->llm.finish = RV_FINISH_TOOL_CALLS;
    return rc;
}
