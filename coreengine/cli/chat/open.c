/* A chat with all that it needs, from the command line: capabilities, script, store, agents, engine. */
#include "coreengine/cli/chat/chat.h"
#include "coreengine/cli/sources.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *environment(void *self, const char *name)
{
    const char *value = getenv(name);

    (void)self;
    return value && value[0] ? value : NULL;
}

/* --- capabilities and script --- */

static bool is_open(const struct rv_cli_chat *c, const char *name)
{
    for (size_t i = 0; i < c->n_capabilities; i++)
        if (strcmp(c->capabilities[i], name) == 0)
            return true;
    return false;
}

/* The agents that are always at hand, as far as they can be found. */
static int open_built_in(struct rv_cli_chat *c, rv_err **err)
{
    const char *agent, *capability, *name;
    rv_str document;
    bool none = false;

    for (size_t i = 0; (name = rv_cli_nth(c->args, "capability", i)); i++)
        none = none || !name[0];
    int rc = rv_app_open_built_in(&c->cli->app, ".", none ? "" : NULL, &c->loaded.plugins, err);
    if (rc == 0 && rv_plugins_agent(c->loaded.plugins, 0, &agent, &document, &capability))
        c->capabilities[c->n_capabilities++] = RV_APP_BUILT_IN;
    return rc;
}

static int open_capabilities(struct rv_cli_chat *c, rv_err **err)
{
    const char *name;

    c->capabilities = calloc(RV_CLI_MAX_ARGS + 1, sizeof *c->capabilities);
    int rc = c->capabilities ? open_built_in(c, err) : RV_FAIL(err, RV_E_NOMEM, "open capabilities");
    for (size_t i = 0; rc == 0 && (name = rv_cli_nth(c->args, "capability", i)); i++) {
        const struct rv_capability_config which = {.name = name};
        if (!name[0] || is_open(c, name))
            continue;
        rc = rv_plugins_load(c->loaded.plugins, &which, err);
        if (rc == 0)
            c->capabilities[c->n_capabilities++] = name;
    }
    return rc;
}

static int open_script(struct rv_cli_chat *c, rv_err **err)
{
    const char *path = rv_cli_value(c->args, "script");

    if (!path)
        return 0;
    c->loaded.findings = rv_findings_new();
    if (!c->loaded.findings)
        return RV_FAIL(err, RV_E_NOMEM, "read a script");
    int rc = rv_script_read(path, c->loaded.findings, &c->loaded.script, err);
    if (rc < 0 || c->loaded.script)
        return rc;
    const struct rv_finding f = rv_findings_at(c->loaded.findings, 0);
    rc = RV_FAIL_AT(err, &f.src, RV_E_INVALID, "%s", f.text);
    if (f.hint)
        rv_err_hint(err, "%s", f.hint);
    return rc;
}

/* --- store, agents, engine --- */

static int open_store(struct rv_cli_chat *c, rv_err **err)
{
    const struct rv_store_opts memory = {.sync = RV_STORE_SYNC_OFF};

    if (rv_cli_flag(c->args, "no-store"))
        return rv_store_open("memory:", &memory, &c->store, err);
    int rc = rv_app_store_open(&c->cli->app, RV_APP_STORE_MAKE, &c->store, err);
    if (rc < 0)
        rv_err_hint(err, "--no-store talks without keeping anything");
    return rc;
}

static int open_agents(struct rv_cli_chat *c, rv_err **err)
{
    const char *dir = NULL;
    int rc = rv_app_schema_dir(&c->cli->app, &dir, err);
    const struct rv_agents_opts opts = {.store = c->store,
                                        .plugins = c->loaded.plugins,
                                        .dirs = &dir,
                                        .n_dirs = dir != NULL,
                                        .registers = true,
                                        .is_unkept = rv_cli_flag(c->args, "no-store"),
                                        .log = c->cli->app.log};

    return rc == 0 ? rv_agents_new(&opts, &c->agents, err) : rc;
}

static int open_engine(struct rv_cli_chat *c, rv_err **err)
{
    rv_owner_name(c->owner);
    const struct rv_engine_opts opts = {.log = c->cli->app.log, .store = c->store, .owner = c->owner};
    int rc = rv_engine_new(&opts, &c->engine, err);

    return rc == 0 ? rv_chat_signals_watch(c->engine, err) : rc;
}

/* --- the chat --- */

struct rv_store_scope rv_cli_chat_scope(const struct rv_cli_chat *c)
{
    struct rv_store_scope scope = rv_cli_scope(c->args);

    if (!scope.user)
        scope.user = "";
    return scope;
}

int rv_cli_chat_enter(struct rv_cli_chat *c, const char *session, const char *agent, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(c->args);
    struct rv_chat_opts opts = {.engine = c->engine,
                                .store = c->store,
                                .owner = c->owner,
                                .plugins = c->loaded.plugins,
                                .agents = c->agents,
                                .script = c->loaded.script,
                                .settings = c->settings,
                                .agent = agent,
                                .model = rv_cli_value(c->args, "model"),
                                .child_text = rv_cli_value(c->args, "child-text"),
                                .capabilities = c->capabilities,
                                .n_capabilities = c->n_capabilities,
                                .sections = c->sections,
                                .zone_minutes = rv_cli_zone_minutes(),
                                .session_name = rv_cli_value(c->args, "session-name"),
                                .session_type = rv_cli_value(c->args, "session-type")};
    const char *client = rv_cli_value(c->args, "client-id");
    rv_chat *chat = NULL;

    opts.context = (struct rv_context){.user_id = scope.user,
                                       .tenant_id = scope.tenant,
                                       .session_id = session,
                                       .is_eval = rv_cli_flag(c->args, "eval"),
                                       .client_id = client && client[0] ? client : "cli",
                                       .user_name = rv_cli_value(c->args, "user-name"),
                                       .user_email = rv_cli_value(c->args, "user-email")};
    while (opts.n_sections < RV_COUNT(c->sections) &&
           (c->sections[opts.n_sections] = rv_cli_nth(c->args, "instruction", opts.n_sections)))
        opts.n_sections++;
    rv_cli_chat_watch(c, &opts);
    int rc = rv_chat_new(&opts, &chat, err);
    if (rc < 0)
        return rc;
    rv_chat_free(c->chat);
    c->chat = chat;
    const struct rv_store_scope own = rv_cli_chat_scope(c);
    struct rv_agents_found found;
    if (rv_agents_find(c->agents, &own, rv_chat_agent(chat), &found, NULL) == 0)
        rv_cli_warn_hidden(c->agents, rv_chat_agent(chat), &found);
    return 0;
}

int rv_cli_chat_open(struct rv_cli_chat *c, const char *session, rv_err **err)
{
    int rc = rv_chat_settings_read(environment, NULL, &c->settings, err);

    if (rc == 0)
        rc = open_script(c, err);
    if (rc == 0)
        rc = open_capabilities(c, err);
    if (rc == 0)
        rc = open_store(c, err);
    if (rc == 0)
        rc = open_agents(c, err);
    if (rc == 0)
        rc = open_engine(c, err);
    if (rc == 0)
        rc = rv_cli_chat_enter(c, session, rv_cli_value(c->args, "agent"), err);
    if (rc == 0 && rv_cli_flag(c->args, "leave"))
        rc = rv_chat_leave(c->chat, err);
    return rc;
}

void rv_cli_chat_close(struct rv_cli_chat *c)
{
    rv_chat_signals_unwatch();
    rv_chat_free(c->chat);
    rv_app_engine_free(&c->loaded, c->engine);
    rv_agents_free(c->agents);
    rv_app_loaded_fini(&c->loaded);
    rv_store_close(c->store);
    rv_chat_show_free(c->show);
    rv_recorder_free(c->recorder);
    free(c->capabilities);
}
