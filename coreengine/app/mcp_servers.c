/* MCP servers of a pipeline: their tools when it is loaded, and as a part of what its bundle keeps. */
#include "coreengine/app/mcp.h"

#include "coreengine/app/app_internal.h"

#include <stdlib.h>
#include <string.h>

/* Files that stages run do not start servers of their own: the outer file shows all that is started. */
static void check_inner(const struct rv_app_loaded *l)
{
    size_t n = 0;
    struct rv_pipeline *const *inner = rv_pipeline_inner(l->pipeline, &n);

    for (size_t i = 0; i < n; i++) {
        size_t s = 0;
        while (s < inner[i]->n_mcp_servers && rv_pipeline_find_mcp_server(l->pipeline, inner[i]->mcp_servers[s].name))
            s++;
        if (s < inner[i]->n_mcp_servers)
            rv_findings_add_as(l->findings, RV_SEVERITY_WARNING, "mcp_inner", &inner[i]->mcp_servers[s].src,
                               "name them in the outer pipeline",
                               "the MCP servers of a pipeline that a stage runs are not started");
    }
}

/* A run that begins without a server, or without some of its tools, says so. */
static int note_missing(const struct rv_app *app, struct rv_app_loaded *l, size_t first, rv_err **err)
{
    for (size_t i = first; i < rv_findings_n(l->findings); i++) {
        struct rv_finding f = rv_findings_at(l->findings, i);
        if (f.severity != RV_SEVERITY_WARNING)
            continue;
        if (!l->missing && !(l->missing = rv_findings_new()))
            return RV_FAIL(err, RV_E_NOMEM, "ask MCP servers for their tools");
        rv_findings_add_as(l->missing, f.severity, f.code, &f.src, f.hint, "%s", f.text);
        RV_LOG(app->log, WARN, "mcp.missing", RV_F_TEXT("pipeline", l->pipeline->name), RV_F_TEXT("text", f.text));
    }
    return l->missing ? rv_findings_check(l->missing, err) : 0;
}

static int open_tools(const struct rv_app *app, struct rv_app_loaded *l, const struct rv_mcp_tools_opts *how,
                      rv_err **err)
{
    struct rv_mcp_tools_opts opts = *how;
    RV_AUTO(rv_buf_fini) rv_buf state = RV_BUF_INIT(4096);

    check_inner(l);
    if (l->pipeline->n_mcp_servers == 0)
        return 0;
    opts.pipeline = l->pipeline;
    opts.http = app_mcp_http;
    opts.log = app->log;
    opts.until = app->until;
    opts.kept = opts.approve.text ? NULL : app->mcp; /* a person looks at what the server says now */
    opts.findings = l->findings;
    int rc = opts.connects ? app_mcp_state(&state, err) : 0;
    opts.state = state.len ? rv_buf_cstr(&state) : NULL;
    size_t first = rv_findings_n(l->findings);
    if (rc == 0)
        rc = rv_mcp_tools_new(&opts, &l->mcp, err);
    return rc == 0 && opts.connects && !opts.approve.text ? note_missing(app, l, first, err) : rc;
}

static bool calls_servers(const struct rv_app_loaded *l, const struct rv_pipeline *p)
{
    const struct rv_catalog plugins = rv_plugins_catalog(l->plugins);

    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        if (!a->tools.allowed.is_set && a->tools.access != RV_UNSET && a->tools.access != RV_ACCESS_NONE)
            return true;
        for (size_t t = 0; t < a->tools.allowed.n; t++) {
            rv_str name = rv_str_of(rv_agent_callee(a, a->tools.allowed.items[t]));
            if (!app_plays_tool(l, name) && !plugins.tool(plugins.self, name))
                return true;
        }
    }
    return false;
}

bool rv_app_mcp_is_needed(const struct rv_app_loaded *l)
{
    size_t n = 0;
    struct rv_pipeline *const *inner = rv_pipeline_inner(l->pipeline, &n);
    bool needs = calls_servers(l, l->pipeline);

    for (size_t i = 0; i < n && !needs; i++)
        needs = calls_servers(l, inner[i]);
    return needs;
}

int rv_app_mcp_open(const struct rv_app *app, struct rv_app_loaded *l, bool connects, rv_err **err)
{
    return open_tools(app, l, &(struct rv_mcp_tools_opts){.connects = connects}, err);
}

int rv_app_mcp_approve(const struct rv_app *app, struct rv_app_loaded *l, const char *server, bool is_yes, rv_buf *text,
                       rv_err **err)
{
    return open_tools(
        app, l,
        &(struct rv_mcp_tools_opts){.connects = true, .approve = {.text = text, .server = server, .is_yes = is_yes}},
        err);
}

int app_mcp_reopen(const struct rv_app *app, struct rv_app_loaded *l, rv_err **err)
{
    return open_tools(app, l, &(struct rv_mcp_tools_opts){.is_called = true, .lists = rv_bundle_mcp(l->bundle)}, err);
}

static bool is_listed(const struct rv_app_loaded *l, size_t server)
{
    return l->mcp && rv_mcp_catalog_has_server(rv_mcp_tools_catalog(l->mcp), l->pipeline->mcp_servers[server].name);
}

const char *app_mcp_find_unlisted(const struct rv_app_loaded *l, const char *tool)
{
    const char *first = NULL;

    for (size_t i = 0; i < l->pipeline->n_mcp_servers; i++) {
        const char *name = l->pipeline->mcp_servers[i].name;
        size_t len = strlen(name);
        if (tool && strncmp(tool, name, len) == 0 && tool[len] == '.')
            return is_listed(l, i) ? NULL : name;
        if (!first && !is_listed(l, i))
            first = name;
    }
    return first;
}

/* --- one catalog --- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int app_tools_init(struct rv_app_tools *t, const struct rv_app_loaded *l, rv_err **err)
{
    size_t n = 0, n_mcp = 0;
    const char *const *of_servers = NULL;

    *t = (struct rv_app_tools){.plugins = rv_plugins_catalog(l->plugins), .known = rv_plugins_names(l->plugins)};
    t->mcp = l->mcp ? rv_mcp_tools_catalog(l->mcp) : NULL;
    const char *const *of_plugins = t->known.list(t->known.self, RV_NAME_TOOL, &n);
    if (t->mcp)
        of_servers = rv_mcp_catalog_names(t->mcp, &n_mcp);
    t->names = calloc(n + n_mcp + 1, sizeof *t->names);
    if (!t->names)
        return RV_FAIL(err, RV_E_NOMEM, "list the tools of a pipeline");
    for (size_t i = 0; i < n; i++)
        t->names[t->n_names++] = of_plugins[i];
    for (size_t i = 0; i < n_mcp; i++)
        t->names[t->n_names++] = of_servers[i];
    qsort(t->names, t->n_names, sizeof *t->names, by_text);
    return 0;
}

static const struct rv_tool_info *find_tool(void *self, rv_str name)
{
    const struct rv_app_tools *t = self;
    const struct rv_tool_info *info = t->plugins.tool(t->plugins.self, name);

    if (!info && t->mcp && !rv_mcp_catalog_find(t->mcp, name, &info))
        return NULL;
    return info;
}

static const struct rv_entry_info *find_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    const struct rv_app_tools *t = self;

    return t->plugins.entry(t->plugins.self, kind, name);
}

static const rv_template *find_prompt(void *self, rv_str key)
{
    const struct rv_app_tools *t = self;

    return t->plugins.prompt(t->plugins.self, key);
}

struct rv_catalog app_tools_catalog(const struct rv_app_tools *t)
{
    return (struct rv_catalog){
        .tool = find_tool, .entry = find_entry, .prompt = find_prompt, .self = (void *)(uintptr_t)t};
}

static const char *const *list_names(void *self, enum rv_name_kind kind, size_t *n)
{
    const struct rv_app_tools *t = self;

    if (kind != RV_NAME_TOOL)
        return t->known.list(t->known.self, kind, n);
    *n = t->n_names;
    return t->names;
}

struct rv_known_names app_tools_names(const struct rv_app_tools *t)
{
    return (struct rv_known_names){.list = list_names, .self = (void *)(uintptr_t)t};
}

void app_tools_fini(struct rv_app_tools *t)
{
    free(t->names);
    *t = (struct rv_app_tools){0};
}
