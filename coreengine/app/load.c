/* A pipeline with its capabilities, script and declared agents, and everything that is wrong with them, in one pass. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/mcp.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DIRS  2   /* with documents of agents: the pipeline's schema_dir and this machine's */
#define SETTLE_MS 100 /* for calls that look at their cancellation; the others must not hold up the exit */

/* --- declared agents --- */

bool rv_app_has_agents(const struct rv_pipeline *p)
{
    size_t n;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n);

    for (size_t i = 0; i < n; i++)
        if (rv_app_has_agents(inner[i]))
            return true;
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].declared.name && p->agents[i].declared.name[0])
            return true;
    return false;
}

/* A store that does not exist has no agents. The store of the run is created: its agents are registered there. */
static int open_store(const struct rv_app *app, const struct rv_app_load_opts *opts, rv_store **out, rv_err **err)
{
    if (opts->keeps)
        return rv_app_store_open(app, RV_APP_STORE_MAKE, out, err);
    return app->store ? rv_app_store_open(app, RV_APP_STORE_READ, out, err) : 0;
}

static int open_agents(const struct rv_app *app, const struct rv_app_load_opts *opts, struct rv_app_loaded *l,
                       rv_err **err)
{
    const char *dirs[MAX_DIRS], *dir = NULL;
    rv_store *store = opts->store;
    size_t n = 0;

    if (!rv_app_has_agents(l->pipeline))
        return 0;
    l->tenant = app->scope.tenant;
    int rc = rv_app_find_schema_dir(app, &dir, err);
    if (rc == 0 && !store) {
        rc = open_store(app, opts, &l->agent_store, err);
        store = l->agent_store;
    }
    if (rc < 0)
        return rc;
    if (l->pipeline->schema_dir && l->pipeline->schema_dir[0])
        dirs[n++] = l->pipeline->schema_dir;
    if (dir)
        dirs[n++] = dir;
    const struct rv_agents_opts from = {.store = store,
                                        .plugins = l->plugins,
                                        .dirs = dirs,
                                        .n_dirs = n,
                                        .registers = opts->keeps,
                                        .obeys_env = true,
                                        .log = app->log};
    return rv_agents_new(&from, &l->agents, err);
}

/* --- binding --- */

struct finder {
    const struct rv_app *app;
    struct rv_app_loaded *l;
    struct rv_store_scope scope;
};

static bool is_listed(const struct rv_pipeline *p, const char *capability)
{
    for (size_t i = 0; i < p->n_capabilities; i++)
        if (strcmp(p->capabilities[i].name, capability) == 0)
            return true;
    return false;
}

/* The agents that are always at hand on a command line are a pipeline's only when it says so. */
static void hint_built_in(const struct finder *f, const char *name, rv_err **err)
{
    const char *agent, *capability;
    rv_plugins *plugins = NULL;
    rv_str document;

    if (is_listed(f->l->pipeline, RV_APP_BUILT_IN) ||
        rv_app_open_built_in(f->app, f->l->pipeline->dir, NULL, &plugins,
                             RV_CODE_ONLY("a hint on an error that is reported: without the list it has no hint")) < 0)
        return;
    for (size_t i = 0; rv_plugins_agent_at(plugins, i, &agent, &document, &capability); i++)
        if (strcmp(agent, name) == 0)
            rv_err_set_hint(err, "the capability \"%s\" has it: add %s to capabilities", capability, capability);
    rv_plugins_free(plugins);
}

static int find(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    struct finder *f = self;
    struct rv_agents_found found;

    int rc = rv_agents_find(f->l->agents, &f->scope, name, &found, err);
    if (rc == RV_E_NOT_FOUND)
        hint_built_in(f, name, err);
    if (rc < 0)
        return rc;
    *text = found.text;
    *place = found.place;
    return 0;
}

static int bind_agents(const struct rv_app *app, const struct rv_app_load_opts *opts, struct rv_app_loaded *l,
                       rv_err **err)
{
    struct finder f = {app, l, app->scope};
    const struct rv_agent_source source = {find, &f};

    if (!rv_app_has_agents(l->pipeline))
        return 0;
    int rc = open_agents(app, opts, l, err);
    return rc < 0 ? rc : rv_pipeline_bind_agents(l->own, &source, l->findings, err);
}

/* --- while the run goes on --- */

int rv_app_find_agent(void *self, const struct rv_context *context, const char *name, rv_buf *text, rv_err **err)
{
    struct rv_app_loaded *l = self;
    const struct rv_store_scope scope = {.tenant = l->tenant ? l->tenant : context->tenant_id,
                                         .user = context->user_id ? context->user_id : ""};
    struct rv_agents_found found;

    int rc = rv_agents_find(l->agents, &scope, name, &found, err);
    if (rc < 0)
        return rc;
    rv_buf_add_str(text, found.text);
    return rv_buf_check(text, "document of an agent", err);
}

/* --- the pipeline --- */

/* With a script a capability may be missing: what only it has is then either scripted or reported as unknown. */
static int add_as_warnings(rv_findings *to, const rv_findings *from, rv_err **err)
{
    for (size_t i = 0; i < rv_findings_n(from); i++) {
        struct rv_finding f = rv_findings_at(from, i);
        rv_findings_add_as(to, RV_SEVERITY_WARNING, f.code, &f.src, f.hint, "%s", f.text);
    }
    return rv_findings_check(to, err);
}

static int open_plugins(const struct rv_app *app, struct rv_app_loaded *l, bool scripted, rv_err **err)
{
    char **dirs = NULL;
    size_t n_dirs = 0;
    rv_findings *found = rv_findings_new();
    int rc = found ? 0 : RV_FAIL(err, RV_E_NOMEM, "open capabilities");

    if (rc == 0)
        rc = rv_plugins_path_new(app->capability_dirs, app->n_capability_dirs, l->pipeline->dir, &dirs, &n_dirs, err);
    if (rc == 0) {
        struct rv_plugins_opts opts = {.dirs = (const char *const *)dirs,
                                       .n_dirs = n_dirs,
                                       .base_dir = l->pipeline->dir,
                                       .log = app->log,
                                       .host_program = app->host_program,
                                       .pool = app->pool};
        rc = rv_plugins_new(&opts, &l->plugins, err);
    }
    size_t n_inner = 0, n_before = rv_findings_n_errors(l->findings);
    if (rc == 0)
        rc = rv_plugins_load_all(l->plugins, l->pipeline, scripted ? found : l->findings, err);
    struct rv_pipeline *const *inner = rv_pipeline_inner(l->pipeline, &n_inner);
    for (size_t i = 0; i < n_inner && rc == 0; i++)
        rc = rv_plugins_load_all(l->plugins, inner[i], scripted ? found : l->findings, err);
    l->is_partial = rv_findings_n_errors(l->findings) > n_before;
    if (rc == 0 && scripted)
        rc = add_as_warnings(l->findings, found, err);
    if (rc == 0 && scripted && !l->missing && !(l->missing = rv_findings_new()))
        rc = RV_FAIL(err, RV_E_NOMEM, "open capabilities");
    if (rc == 0 && scripted)
        rc = add_as_warnings(l->missing, found, err);
    rv_plugins_path_free(dirs);
    rv_findings_free(found);
    return rc;
}

/* What is registered or built in, plus what the script plays: its tools, and any provider. */
struct known {
    struct rv_known_names plugins;
    const char **tools; /* sorted, as lists of names are */
    size_t n_tools;
    const char **providers;
    size_t n_providers;
    const char **hooks;
    size_t n_hooks;
};

static const char *const *list_known(void *self, enum rv_name_kind kind, size_t *n)
{
    struct known *k = self;
    if (kind == RV_NAME_TOOL) {
        *n = k->n_tools;
        return k->tools;
    }
    if (kind == RV_NAME_PROVIDER) {
        *n = k->n_providers;
        return k->providers;
    }
    if (kind == RV_NAME_HOOK) {
        *n = k->n_hooks;
        return k->hooks;
    }
    return k->plugins.list(k->plugins.self, kind, n);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_scripted(const struct rv_app_loaded *l)
{
    if (l->script)
        return true;
    for (size_t i = 0; l->test_scripts && i < l->pipeline->n_tests; i++)
        if (l->test_scripts[i])
            return true;
    return false;
}

bool app_plays_tool(const struct rv_app_loaded *l, rv_str tool)
{
    if (l->script && rv_script_has_tool(l->script, tool))
        return true;
    for (size_t i = 0; l->test_scripts && i < l->pipeline->n_tests; i++)
        if (l->test_scripts[i] && rv_script_has_tool(l->test_scripts[i], tool))
            return true;
    return false;
}

static bool plays_hook(const struct rv_app_loaded *l, const char *hook, const char *stage)
{
    if (l->script && rv_script_has_hook(l->script, rv_str_of(hook), stage))
        return true;
    for (size_t i = 0; l->test_scripts && i < l->pipeline->n_tests; i++)
        if (l->test_scripts[i] && rv_script_has_hook(l->test_scripts[i], rv_str_of(hook), stage))
            return true;
    return false;
}

/* The hooks of the capabilities, and those of the stages that a script plays there. */
static int know_hooks(const struct rv_app_loaded *l, const struct rv_pipeline *p, struct known *k, rv_err **err)
{
    size_t n = 0, n_named = 0;
    const char *const *plugged = k->plugins.list(k->plugins.self, RV_NAME_HOOK, &n);

    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent_hooks *h = &p->agents[i].hooks;
        n_named += 2 + h->before_model.n + h->after_model.n + h->before_tool.n + h->after_tool.n;
    }
    k->hooks = calloc(n + n_named + 1, sizeof *k->hooks);
    if (!k->hooks)
        return RV_FAIL(err, RV_E_NOMEM, "check names");
    for (size_t i = 0; i < n; i++)
        k->hooks[k->n_hooks++] = plugged[i];
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent_hooks *h = &p->agents[i].hooks;
        const char *const around[] = {h->pre_process, h->post_process};
        const struct rv_str_list *const lists[] = {&h->before_model, &h->after_model, &h->before_tool, &h->after_tool};
        for (size_t a = 0; a < RV_COUNT(around); a++)
            if (around[a][0] && plays_hook(l, around[a], p->agents[i].name))
                k->hooks[k->n_hooks++] = around[a];
        for (size_t s = 0; s < RV_COUNT(lists); s++)
            for (size_t t = 0; t < lists[s]->n; t++)
                if (plays_hook(l, lists[s]->items[t], p->agents[i].name))
                    k->hooks[k->n_hooks++] = lists[s]->items[t];
    }
    qsort(k->hooks, k->n_hooks, sizeof *k->hooks, by_text);
    return 0;
}

static bool is_known_tool(const struct known *k, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(k->tools[i], name) == 0)
            return true;
    return strcmp(name, RV_TOOL_ASK_AGENT) == 0;
}

/* Names that a server may have whose list is not at hand: they cannot be checked, and pass with a warning. */
static void let_unlisted_pass(const struct rv_app_loaded *l, const struct rv_pipeline *p, struct known *k)
{
    size_t n = k->n_tools;

    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        for (size_t t = 0; t < a->tools.allowed.n; t++) {
            const char *name = rv_agent_callee(a, a->tools.allowed.items[t]);
            const char *server = is_known_tool(k, n, name) ? NULL : app_mcp_find_unlisted(l, name);
            if (!server)
                continue;
            k->tools[k->n_tools++] = name;
            rv_findings_add_as(l->findings, RV_SEVERITY_WARNING, "mcp_unlisted", &a->tools.allowed.srcs[t],
                               "keep its list with `reeve mcp tools PIPELINE --write`, or play the tool by a script",
                               "agent \"%s\": tool \"%s\" is not checked: the tools of MCP server \"%s\" are not known "
                               "here",
                               a->name, name, server);
        }
    }
}

static int check_names(struct rv_app_loaded *l, struct rv_pipeline *p, rv_err **err)
{
    bool scripted = is_scripted(l);
    struct known k = {.plugins = rv_plugins_names(l->plugins)};
    size_t n = 0, n_listed = 0, n_built_in = 0, n_plugged = 0, n_mcp = 0;
    const char *const *of_servers = l->mcp ? rv_mcp_catalog_names(rv_mcp_tools_catalog(l->mcp), &n_mcp) : NULL;
    const char *const *tools = k.plugins.list(k.plugins.self, RV_NAME_TOOL, &n);
    const char *const *plugged = k.plugins.list(k.plugins.self, RV_NAME_PROVIDER, &n_plugged);
    const struct rv_provider_info *built_in = rv_provider_list(&n_built_in);

    for (size_t i = 0; i < p->n_agents; i++)
        n_listed += p->agents[i].tools.allowed.n;
    k.tools = calloc(n + n_mcp + 2 * n_listed + 1, sizeof *k.tools);
    k.providers = calloc(p->n_models + n_built_in + n_plugged + 1, sizeof *k.providers);
    if (!k.tools || !k.providers) {
        free(k.tools);
        free(k.providers);
        return RV_FAIL(err, RV_E_NOMEM, "check names");
    }
    k.providers[k.n_providers++] = "scripted";
    for (size_t i = 0; i < n_built_in; i++)
        k.providers[k.n_providers++] = built_in[i].name;
    for (size_t i = 0; i < n_plugged; i++)
        k.providers[k.n_providers++] = plugged[i];
    for (size_t i = 0; scripted && i < p->n_models; i++)
        k.providers[k.n_providers++] = p->models[i].provider;
    qsort(k.providers, k.n_providers, sizeof *k.providers, by_text);
    for (size_t i = 0; i < n; i++)
        k.tools[k.n_tools++] = tools[i];
    for (size_t i = 0; i < n_mcp; i++)
        k.tools[k.n_tools++] = of_servers[i];
    for (size_t i = 0; scripted && i < p->n_agents; i++) {
        const struct rv_str_list *list = &p->agents[i].tools.allowed;
        for (size_t t = 0; t < list->n; t++)
            if (app_plays_tool(l, rv_str_of(rv_agent_callee(&p->agents[i], list->items[t]))))
                k.tools[k.n_tools++] = rv_agent_callee(&p->agents[i], list->items[t]);
    }
    let_unlisted_pass(l, p, &k);
    qsort(k.tools, k.n_tools, sizeof *k.tools, by_text);
    int rc = know_hooks(l, p, &k, err);
    if (rc == 0)
        rv_pipeline_check_names(p, &(struct rv_known_names){list_known, &k, l->is_partial}, l->findings);
    free(k.tools);
    free(k.providers);
    free(k.hooks);
    return rc;
}

static int load_script(struct rv_app_loaded *l, const char *path, rv_err **err)
{
    return path ? rv_script_read(path, l->findings, &l->script, err) : 0;
}

/* Once declared agents are bound: only then it is known what they may call, and whom they may ask. */
static void check_test_scripts(const struct rv_app_loaded *l)
{
    for (size_t i = 0; l->test_scripts && i < l->pipeline->n_tests; i++)
        if (l->test_scripts[i])
            rv_script_check(l->test_scripts[i], l->pipeline, l->findings);
}

/* One test's script, from its file or its place in the pipeline. A file that cannot be read is a finding there. */
static int load_test_script(struct rv_app_loaded *l, const struct rv_test_config *test, rv_script **out, rv_err **err)
{
    rv_err *fault = NULL;
    int rc = 0;

    if (test->inline_script)
        rc = rv_script_read_node(test->inline_script, l->findings, out, &fault);
    else if (test->script)
        rc = rv_script_read(test->script, l->findings, out, &fault);
    if (rc == RV_E_NOMEM) {
        rv_err_pass(err, fault);
        return rc;
    }
    if (rc < 0)
        rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, &test->script_src, fault);
    rv_err_free(fault);
    return 0;
}

static int read_test_scripts(struct rv_app_loaded *l, rv_err **err)
{
    int rc = 0;

    l->test_scripts = calloc(l->pipeline->n_tests + 1, sizeof(rv_script *));
    if (!l->test_scripts)
        return RV_FAIL(err, RV_E_NOMEM, "read the scripts of the tests");
    for (size_t i = 0; rc == 0 && i < l->pipeline->n_tests; i++)
        rc = load_test_script(l, &l->pipeline->tests[i], &l->test_scripts[i], err);
    return rc;
}

int rv_app_load_test_scripts(struct rv_app_loaded *l, rv_err **err)
{
    int rc = read_test_scripts(l, err);

    if (rc == 0)
        check_test_scripts(l);
    return rc;
}

/* The level that the file gives, unless the caller keeps its own. */
static void set_log_level(const struct rv_app *app, const struct rv_pipeline *p)
{
    char word[16];
    size_t n = 0;
    enum rv_log_level level;

    if (app->keeps_log_level || !p->execution.has_log_level)
        return;
    for (const char *c = p->execution.log_level; *c && n + 1 < sizeof word; c++) /* TRACE to OFF */
        word[n++] = (char)(*c | 0x20);
    word[n] = '\0';
    if (rv_log_level_of(rv_str_of(word), &level,
                        RV_CODE_ONLY("loading has refused words that are not levels, with their place")) == 0)
        rv_log_set_level(app->log, level);
}

/* Names and schemas of one file. */
static int check_with_plugins(struct rv_app_loaded *l, struct rv_pipeline *p, rv_err **err)
{
    int rc = check_names(l, p, err);

    if (rc == 0)
        rc = rv_schema_check_pipeline(p, l->findings, err);
    if (rc == 0) {
        struct rv_catalog plugins = rv_plugins_catalog(l->plugins);
        rv_tools_check_chains(p, &plugins, l->findings);
    }
    return rc;
}

/* All that a pipeline needs to be checked. */
static int complete(const struct rv_app *app, const struct rv_app_load_opts *opts, struct rv_app_loaded *l,
                    rv_err **err)
{
    int rc = load_script(l, opts->script, err);

    if (rc == 0 && opts->tests)
        rc = read_test_scripts(l, err);
    if (rc == 0)
        rc = open_plugins(app, l, opts->script || is_scripted(l), err);
    if (rc == 0)
        rc = bind_agents(app, opts, l, err);
    if (rc == 0)
        rc = rv_app_mcp_open(app, l, opts->connects && rv_app_mcp_is_needed(l), err);
    if (rc == 0)
        check_test_scripts(l);
    if (rc == 0 && l->script)
        rv_script_check(l->script, l->pipeline, l->findings);
    if (rc == 0)
        rc = check_with_plugins(l, l->own, err);
    size_t n = 0;
    struct rv_pipeline *const *inner = rv_pipeline_inner(l->own, &n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = check_with_plugins(l, inner[i], err);
        l->own->is_sound = l->own->is_sound && inner[i]->is_sound;
    }
    return rc;
}

/* What a capability lacks matters only as far as its agents are needed, and then binding says so. */
static int complete_plain(const struct rv_app *app, const struct rv_app_load_opts *opts, struct rv_app_loaded *l,
                          rv_err **err)
{
    if (!rv_app_has_agents(l->pipeline))
        return 0;
    int rc = open_plugins(app, l, true, err);
    return rc == 0 ? bind_agents(app, opts, l, err) : rc;
}

static int parse(const char *path, const struct rv_app_load_opts *opts, struct rv_app_loaded *l, rv_err **err)
{
    const struct rv_pipeline_opts from = {.model = opts->model, .place = opts->place};
    if (opts->text.ptr)
        return rv_pipeline_parse(opts->text, path, opts->dir ? opts->dir : ".", l->findings, &l->own, err);
    return rv_pipeline_load_with(path, &from, l->findings, &l->own, err);
}

static int load(const struct rv_app *app, const char *path, const struct rv_app_load_opts *opts, bool plain,
                struct rv_app_loaded *out, rv_err **err)
{
    memset(out, 0, sizeof *out);
    out->findings = rv_findings_new();
    int rc = out->findings ? app_check_model(opts->model, err) : RV_FAIL(err, RV_E_NOMEM, "load pipeline \"%s\"", path);
    if (rc == 0)
        rc = parse(path, opts, out, err);
    out->pipeline = out->own;
    if (rc == 0 && out->pipeline) {
        set_log_level(app, out->pipeline);
        rc = plain ? complete_plain(app, opts, out, err) : complete(app, opts, out, err);
    }
    if (rc == 0)
        rc = rv_findings_check(out->findings, err);
    if (rc == 0 && opts->model && out->pipeline)
        rc = app_check_replaced(out->pipeline, opts->model, err);
    if (rc < 0) {
        rv_app_loaded_fini(out);
        return rc;
    }
    rv_findings_sort(out->findings);
    return 0;
}

int rv_app_load(const struct rv_app *app, const char *path, const struct rv_app_load_opts *opts,
                struct rv_app_loaded *out, rv_err **err)
{
    return load(app, path, opts, false, out, err);
}

int rv_app_load_plain(const struct rv_app *app, const char *path, const struct rv_app_load_opts *opts,
                      struct rv_app_loaded *out, rv_err **err)
{
    return load(app, path, opts, true, out, err);
}

int app_load_bundle(const struct rv_app *app, const struct rv_app_load_opts *opts, rv_bundle *bundle, bool calls,
                    struct rv_app_loaded *out, rv_err **err)
{
    memset(out, 0, sizeof *out);
    out->bundle = bundle;
    out->pipeline = rv_bundle_pipeline(bundle);
    out->script = rv_bundle_script(bundle);
    out->findings = rv_findings_new();
    set_log_level(app, out->pipeline);
    int rc = out->findings ? 0 : RV_FAIL(err, RV_E_NOMEM, "open a bundle");
    if (rc == 0 && calls)
        rc = open_plugins(app, out, out->script != NULL, err);
    if (rc == 0 && calls)
        rc = app_mcp_reopen(app, out, err);
    if (rc == 0 && calls)
        rc = open_agents(app, opts, out, err); /* its own are in it, but they may ask others */
    if (rc == 0)
        rc = rv_findings_check(out->findings, err);
    if (rc < 0)
        rv_app_loaded_fini(out);
    return rc;
}

void rv_app_engine_free(struct rv_app_loaded *l, rv_engine *e)
{
    if (!e)
        return;
    l->plugins_busy |= !rv_engine_settle(e, SETTLE_MS);
    rv_engine_free(e);
}

void rv_app_loaded_fini(struct rv_app_loaded *l)
{
    for (size_t i = 0; l->pipeline && l->test_scripts && i < l->pipeline->n_tests; i++)
        rv_script_free(l->test_scripts[i]);
    free(l->test_scripts);
    rv_mcp_tools_free(l->mcp); /* it borrows from the pipeline */
    if (l->bundle) {
        rv_bundle_free(l->bundle);
    } else {
        rv_script_free(l->script);
        rv_pipeline_free(l->own);
    }
    rv_agents_free(l->agents);
    rv_store_close(l->agent_store);
    if (!l->plugins_busy)
        rv_plugins_free(l->plugins);
    rv_findings_free(l->findings);
    rv_findings_free(l->missing);
    memset(l, 0, sizeof *l);
}
