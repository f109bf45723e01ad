/* Declared agents of a pipeline: where they are looked for, and that its stages become what their documents say. */
#include "coreengine/app/app_internal.h"

#include <string.h>

#define MAX_DIRS 2

bool rv_app_has_agents(const struct rv_pipeline *p)
{
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

int rv_app_open_agents(const struct rv_app *app, const struct rv_app_load_opts *opts, struct rv_app_loaded *l,
                       rv_err **err)
{
    const char *dirs[MAX_DIRS], *dir = NULL;
    rv_store *store = opts->store;
    size_t n = 0;

    if (!rv_app_has_agents(l->pipeline))
        return 0;
    l->tenant = app->scope.tenant;
    int rc = rv_app_schema_dir(app, &dir, err);
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
        rv_app_open_built_in(f->app, f->l->pipeline->dir, NULL, &plugins, NULL) < 0)
        return;
    for (size_t i = 0; rv_plugins_agent(plugins, i, &agent, &document, &capability); i++)
        if (strcmp(agent, name) == 0)
            rv_err_hint(err, "the capability \"%s\" has it: add %s to capabilities", capability, capability);
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

int rv_app_bind_agents(const struct rv_app *app, const struct rv_app_load_opts *opts, struct rv_app_loaded *l,
                       rv_err **err)
{
    struct finder f = {app, l, app->scope};
    const struct rv_agent_source source = {find, &f};

    if (!rv_app_has_agents(l->pipeline))
        return 0;
    int rc = rv_app_open_agents(app, opts, l, err);
    return rc < 0 ? rc : rv_pipeline_bind_agents(l->own, &source, l->findings, err);
}

/* --- while the run goes on --- */

int rv_app_find_agent(void *self, const struct rv_context *who, const char *name, rv_buf *text, rv_err **err)
{
    struct rv_app_loaded *l = self;
    const struct rv_store_scope scope = {.tenant = l->tenant ? l->tenant : who->tenant_id,
                                         .user = who->user_id ? who->user_id : ""};
    struct rv_agents_found found;

    int rc = rv_agents_find(l->agents, &scope, name, &found, err);
    if (rc < 0)
        return rc;
    rv_buf_add_str(text, found.text);
    return rv_buf_check(text, "document of an agent", err);
}
