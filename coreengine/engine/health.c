/* The health of an engine's tools, and the breaker that stops calls of a tool that only fails.
 *
 * A tool that says "there is no such file" or "these arguments are wrong" works: only other failures count against it.
 */
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine_internal.h"

#define MAX_TOOLS 10000 /* records; later tools are not watched */

int rv_tool_watch(rv_engine *e, const char *tool)
{
    int at = rv_index_get(&e->tool_index, rv_str_of(tool));

    if (at >= 0 || e->n_tools == MAX_TOOLS)
        return at;
    if (e->n_tools == e->cap_tools) {
        size_t cap = e->cap_tools ? e->cap_tools * 2 : 4;
        struct tool_record *tools = realloc(e->tools, cap * sizeof *tools);
        if (!tools)
            return -1;
        e->tools = tools;
        e->cap_tools = cap;
    }
    struct tool_record *r = &e->tools[e->n_tools];
    *r = (struct tool_record){.name = rv_str_dup(rv_str_of(tool))};
    if (!r->name || rv_index_add(&e->tool_index, rv_str_of(r->name), (int)e->n_tools) < 0) {
        free(r->name);
        return -1;
    }
    return (int)e->n_tools++;
}

bool rv_tool_is_blocked(const rv_engine *e, int health)
{
    return health >= 0 && rv_tool_breaker_open(&e->tools[health].health, rv_engine_now_us(e));
}

static int add_blocked(const rv_exec *x, const char *name, json_object **list, rv_err **err)
{
    const struct rv_tool_found found = rv_tool_set_find(&x->tools.set, rv_str_of(name));

    if (!found.info || (found.source && found.source->is_engines)) /* of another run */
        return 0;
    if (!*list && !(*list = json_object_new_array()))
        return RV_FAIL(err, RV_E_NOMEM, "list blocked tools");
    return rv_json_push_take(*list, json_object_new_string(name), err);
}

int rv_tools_blocked(const rv_exec *x, json_object **out, rv_err **err)
{
    const rv_engine *e = x->engine;
    int rc = 0;

    *out = NULL;
    if (!rv_run_minds_breakers(x->run) || rv_engine_now_us(e) > e->blocked_until_us)
        return 0;
    for (size_t i = 0; i < e->n_tools && rc == 0; i++)
        if (rv_tool_is_blocked(e, (int)i))
            rc = add_blocked(x, e->tools[i].name, out, err);
    if (rc == 0)
        return 0;
    json_object_put(*out);
    *out = NULL;
    return rc;
}

/* Of a call that failed, or whose reply says that it did. */
static void note_error(struct rv_tool_health *h, const struct call *c)
{
    json_object *standard = c->failed ? NULL : rv_tool_reported_error(rv_buf_str(&c->text));
    json_object *error = rv_json_get_obj(standard, "error");
    const char *type = c->error_type[0] ? c->error_type : "ExecutionError", *message = "";

    if (error) {
        type = "ToolError";
        RV_IGNORE(!rv_json_get_text(error, "error_type", &type), "left out means ToolError");
        RV_IGNORE(!rv_json_get_text(error, "message", &message), "left out means none");
    }
    rv_tool_health_note_error(h, rv_str_of(type), c->failed ? rv_buf_str(&c->text) : rv_str_of(message));
    json_object_put(standard);
}

void rv_tool_note(struct call *c)
{
    rv_engine *e = c->x->engine;
    int64_t now = rv_engine_now_us(e);
    bool ok = c->failed ? rv_tool_is_callers_fault(c->error_type) : !c->reports_error;

    if (c->health < 0)
        return;
    struct rv_tool_health *h = &e->tools[c->health].health;
    rv_tool_health_record(h, now, ok, (now - c->started_us) / 1000);
    if (!ok)
        note_error(h, c);
    if (!ok && rv_tool_breaker_open(h, now))
        e->blocked_until_us = now + RV_BREAKER_WINDOW_US;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct tool_record *const *)a)->name, (*(struct tool_record *const *)b)->name);
}

void rv_engine_write_health(const rv_engine *e, rv_jw *w)
{
    struct tool_record **sorted = calloc(e->n_tools + 1, sizeof(struct tool_record *));

    if (!sorted) {
        w->out->rc = RV_E_NOMEM;
        return;
    }
    for (size_t i = 0; i < e->n_tools; i++)
        sorted[i] = &e->tools[i];
    qsort(sorted, e->n_tools, sizeof(struct tool_record *), by_name);
    rv_jw_arr(w);
    for (size_t i = 0; i < e->n_tools; i++) {
        const struct rv_tool_health *h = &sorted[i]->health;
        rv_jw_obj(w);
        rv_jw_kv_text(w, "tool", sorted[i]->name);
        rv_jw_kv_text(w, "status", rv_health_text(rv_tool_health_status(h)));
        rv_jw_key(w, "success_rate");
        rv_jw_double(w, rv_tool_health_success_rate(h));
        rv_jw_kv_int(w, "calls", (int64_t)h->n);
        rv_jw_kv_bool(w, "breaker_open", rv_tool_breaker_open(h, rv_engine_now_us(e)));
        rv_jw_key(w, "errors");
        rv_tool_health_write_errors(h, w);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
    free(sorted);
}
