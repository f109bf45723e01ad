/* MCP servers as people look at them: what their tools are, what a call gives, lists kept in files. */
#include "coreengine/app/mcp.h"

#include <stdlib.h>
#include <string.h>

#define MAX_KEPT ((size_t)16 << 20) /* bytes of a kept list: as one message of a server, RV_MCP_MAX_MESSAGE */
#define WAIT_US  RV_US_PER_S        /* between two looks whether the answer is there */

static int write_file(const char *path, json_object *lists, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_KEPT);

    rv_json_write_pretty(lists, &text);
    rv_buf_putc(&text, '\n');
    int rc = rv_buf_check(&text, "list of MCP tools", err);
    if (rc == 0)
        rc = rv_file_write(path, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

int rv_app_mcp_keep(struct rv_app_loaded *l, size_t *n, rv_err **err)
{
    int rc = 0;

    *n = 0;
    for (size_t i = 0; i < l->pipeline->n_mcp_servers && rc == 0; i++) {
        const struct rv_mcp_server_config *s = &l->pipeline->mcp_servers[i];
        json_object *lists = NULL;
        if (!rv_mcp_catalog_has_server(rv_mcp_tools_catalog(l->mcp), s->name))
            continue;
        if (!s->catalog[0]) {
            rv_findings_add_as(l->findings, RV_SEVERITY_WARNING, "mcp_catalog", &s->src,
                               "add catalog: mcp/NAME.json to it", "MCP server \"%s\" names no file for its list",
                               s->name);
            continue;
        }
        rc = rv_mcp_catalog_write(rv_mcp_tools_catalog(l->mcp), s->name, &lists, err);
        if (rc == 0)
            rc = write_file(s->catalog, lists, err);
        json_object_put(lists);
        *n += rc == 0;
    }
    return rc;
}

void rv_app_mcp_write_tool(const struct rv_mcp_tool *t, bool with_schemas, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", t->info.name);
    if (t->bare.name)
        rv_jw_kv_text(w, "short_name", t->bare.name);
    rv_jw_kv_text(w, "server", t->server->name);
    rv_jw_kv_text(w, "description", t->info.description);
    rv_jw_kv_bool(w, "read_only", t->hints.read_only);
    rv_jw_kv_bool(w, "destructive", t->hints.destructive);
    rv_jw_kv_bool(w, "idempotent", t->hints.idempotent);
    rv_jw_kv_bool(w, "open_world", t->hints.open_world);
    rv_jw_kv_text(w, "risk", rv_risk_text(rv_tool_risk(&t->info)));
    rv_jw_kv_text(w, "effect", rv_effect_class_text(rv_tool_effect(&t->info)));
    rv_jw_kv_bool(w, "confirmed", t->info.confirm != NULL);
    rv_jw_kv_int(w, "timeout_ms", t->info.timeout_ms);
    if (with_schemas)
        rv_jw_kv_value(w, "definition", t->definition);
    rv_jw_obj_end(w);
}

struct waiting {
    struct rv_tool_call call;
    rv_buf *text;
    bool is_over, failed;
};

static void on_done(struct rv_tool_call *c, struct rv_tool_reply *reply)
{
    struct waiting *w = (struct waiting *)((char *)c - offsetof(struct waiting, call));

    w->is_over = true;
    w->failed = reply->failed || reply->asks;
    if (reply->asks)
        rv_buf_puts(w->text,
                    "the tool asks a person before it can answer: call it in a run, which waits for the answer");
    else
        rv_buf_add_str(w->text, rv_buf_str(&reply->text));
}

int rv_app_mcp_fail_unknown(const struct rv_app_loaded *l, const char *tool, rv_err **err)
{
    size_t n = 0;
    const char *const *names = rv_mcp_catalog_names(rv_mcp_tools_catalog(l->mcp), &n);
    const char *near = n > 0 ? rv_nearest(rv_str_of(tool), names, n) : NULL;
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "no MCP server of the pipeline has tool \"%s\"", tool);

    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"? `reeve mcp tools` lists all", near);
    else
        rv_err_set_hint(err, "`reeve mcp tools` lists those that there are");
    return rc;
}

int rv_app_mcp_call(struct rv_app_loaded *l, const char *tool, rv_str args, rv_buf *text, bool *failed, rv_err **err)
{
    const struct rv_json_opts opts = {.what = "arguments"};
    struct rv_tool_source source = rv_mcp_tools_source(l->mcp, NULL);
    const struct rv_tool_info *info = NULL;
    json_object *value = NULL;
    struct waiting w = {.text = text};

    if (!rv_mcp_catalog_find(rv_mcp_tools_catalog(l->mcp), rv_str_of(tool), &info))
        return rv_app_mcp_fail_unknown(l, tool, err);
    int rc = rv_json_parse(args, &opts, &value, err);
    if (rc == 0)
        rc = rv_schema_check(info->input, value, err);
    json_object_put(value);
    if (rc < 0)
        return RV_WRAP(err, rc, "arguments of tool \"%s\"", tool);
    w.call = (struct rv_tool_call){.tool = tool,
                                   .args = args,
                                   .stage = "",
                                   .agent = "",
                                   .key = "",
                                   .timeout_ms = info->timeout_ms,
                                   .done = on_done};
    rc = rv_tool_source_call(&source, &w.call, err);
    while (rc == 0 && !w.is_over)
        rv_mcp_pool_wait(rv_mcp_tools_pool(l->mcp), WAIT_US);
    rv_tool_source_close(&source);
    *failed = w.failed;
    return rc < 0 ? rc : rv_buf_check(text, "answer of an MCP tool", err);
}
