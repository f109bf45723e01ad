/* A chat with all that it needs: capabilities, script, store, agents, engine. */
#include "coreengine/app/chat.h"

#include <stdlib.h>
#include <string.h>

/* --- capabilities and script --- */

static bool is_open(const struct rv_app_chat *c, const char *name)
{
    for (size_t i = 0; i < c->n_capabilities; i++)
        if (strcmp(c->capabilities[i], name) == 0)
            return true;
    return false;
}

/* The agents that are always at hand, as far as they can be found. */
static int open_built_in(struct rv_app_chat *c, rv_err **err)
{
    const char *agent, *capability;
    rv_str document;
    bool none = false;

    for (size_t i = 0; i < c->n_wanted; i++)
        none = none || !c->wanted[i][0];
    int rc = rv_app_open_built_in(c->app, ".", none ? "" : NULL, &c->loaded.plugins, err);
    if (rc == 0 && rv_plugins_agent(c->loaded.plugins, 0, &agent, &document, &capability))
        c->capabilities[c->n_capabilities++] = RV_APP_BUILT_IN;
    return rc;
}

static int open_capabilities(struct rv_app_chat *c, rv_err **err)
{
    c->capabilities = calloc(c->n_wanted + 1, sizeof *c->capabilities);
    int rc = c->capabilities ? open_built_in(c, err) : RV_FAIL(err, RV_E_NOMEM, "open capabilities");
    for (size_t i = 0; rc == 0 && i < c->n_wanted; i++) {
        const char *name = c->wanted[i];
        const struct rv_capability_config which = {.name = name};
        if (!name[0] || is_open(c, name))
            continue;
        rc = rv_plugins_load(c->loaded.plugins, &which, err);
        if (rc == 0)
            c->capabilities[c->n_capabilities++] = name;
    }
    return rc;
}

static int open_script(struct rv_app_chat *c, rv_err **err)
{
    if (!c->script)
        return 0;
    c->loaded.findings = rv_findings_new();
    if (!c->loaded.findings)
        return RV_FAIL(err, RV_E_NOMEM, "read a script");
    int rc = rv_script_read(c->script, c->loaded.findings, &c->loaded.script, err);
    if (rc < 0 || c->loaded.script)
        return rc;
    const struct rv_finding f = rv_findings_at(c->loaded.findings, 0);
    rc = RV_FAIL_AT(err, &f.src, RV_E_INVALID, "%s", f.text);
    if (f.hint)
        rv_err_hint(err, "%s", f.hint);
    return rc;
}

/* --- store, agents, engine --- */

static int open_store(struct rv_app_chat *c, rv_err **err)
{
    const struct rv_store_opts memory = {.sync = RV_STORE_SYNC_OFF};

    if (c->app->no_store)
        return rv_store_open("memory:", &memory, &c->store, err);
    int rc = rv_app_store_open(c->app, RV_APP_STORE_MAKE, &c->store, err);
    c->store_failed = rc < 0;
    return rc;
}

static int open_agents(struct rv_app_chat *c, rv_err **err)
{
    const char *dir = NULL;
    int rc = rv_app_schema_dir(c->app, &dir, err);
    const struct rv_agents_opts opts = {.store = c->store,
                                        .plugins = c->loaded.plugins,
                                        .dirs = &dir,
                                        .n_dirs = dir != NULL,
                                        .registers = true,
                                        .is_unkept = c->app->no_store,
                                        .log = c->app->log};

    return rc == 0 ? rv_agents_new(&opts, &c->agents, err) : rc;
}

static int open_engine(struct rv_app_chat *c, rv_err **err)
{
    rv_owner_name(c->owner);
    const struct rv_engine_opts opts = {.log = c->app->log, .loop = c->loop, .store = c->store, .owner = c->owner};

    return rv_engine_new(&opts, &c->engine, err);
}

/* --- the chat --- */

int rv_app_chat_open(struct rv_app_chat *c, rv_err **err)
{
    int rc = rv_chat_settings_read(&c->settings, err);

    if (rc == 0)
        rc = open_script(c, err);
    if (rc == 0)
        rc = open_capabilities(c, err);
    if (rc == 0)
        rc = open_store(c, err);
    if (rc == 0)
        rc = open_agents(c, err);
    return rc == 0 ? open_engine(c, err) : rc;
}

int rv_app_chat_enter(struct rv_app_chat *c, const char *session, const char *agent, rv_err **err)
{
    struct rv_chat_opts opts = c->opts;
    rv_chat *chat = NULL;

    opts.engine = c->engine;
    opts.store = c->store;
    opts.owner = c->owner;
    opts.plugins = c->loaded.plugins;
    opts.agents = c->agents;
    opts.script = c->loaded.script;
    opts.settings = c->settings;
    opts.agent = agent;
    opts.capabilities = c->capabilities;
    opts.n_capabilities = c->n_capabilities;
    opts.context.user_id = c->app->scope.user;
    opts.context.tenant_id = c->app->scope.tenant;
    opts.context.session_id = session;
    if (!opts.context.client_id)
        opts.context.client_id = c->app->client;
    int rc = rv_chat_new(&opts, &chat, err);
    if (rc < 0)
        return rc;
    rv_chat_free(c->chat);
    c->chat = chat;
    return 0;
}

void rv_app_chat_close(struct rv_app_chat *c)
{
    rv_chat_free(c->chat);
    rv_app_engine_free(&c->loaded, c->engine);
    rv_agents_free(c->agents);
    rv_app_loaded_fini(&c->loaded);
    rv_store_close(c->store);
    free(c->capabilities);
}
