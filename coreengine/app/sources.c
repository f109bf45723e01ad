/* Where documents of agents come from: the store, capabilities and a folder; and their registration in a store. */
#include "coreengine/app/app_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int rv_app_find_schema_dir(const struct rv_app *app, const char **out, rv_err **err)
{
    const char *dir = app->schema_dir;
    struct stat st;

    if (dir && dir[0] && (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)))
        return RV_FAIL(err, RV_E_NOT_FOUND, "schema_dir: the folder \"%s\" does not exist", dir);
    if (!dir)
        dir = getenv("P8_SCHEMA_DIR");
    *out = dir && dir[0] ? dir : NULL;
    return 0;
}

static int open_store(const struct rv_app *app, enum rv_app_store_use use, rv_store **out, rv_err **err)
{
    if (app->no_store)
        return use == RV_APP_STORE_READ ? 0 : RV_FAIL(err, RV_E_INVALID, "no_store excludes changes");
    return use == RV_APP_STORE_READ ? rv_app_store_open_if_any(app, out, err) : rv_app_store_open(app, use, out, err);
}

static bool is_there(char **names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Is the capability of agents that are always at hand on the path? */
static int find_built_in(char **dirs, size_t n_dirs, bool *found, rv_err **err)
{
    char **names = NULL;
    size_t n = 0;

    int rc = rv_plugins_find_available((const char *const *)dirs, n_dirs, &names, &n, err);
    *found = rc == 0 && is_there(names, n, RV_APP_BUILT_IN);
    rv_plugins_path_free(names);
    return rc;
}

int rv_app_open_built_in(const struct rv_app *app, const char *base_dir, const char *name, rv_plugins **out,
                         rv_err **err)
{
    struct rv_capability_config which = {.name = name ? name : RV_APP_BUILT_IN};
    rv_plugins *plugins = NULL;
    char **dirs = NULL;
    size_t n_dirs = 0;
    bool wanted = which.name[0];

    int rc = rv_plugins_path_new(app->capability_dirs, app->n_capability_dirs, base_dir, &dirs, &n_dirs, err);
    if (rc == 0) {
        struct rv_plugins_opts opts = {.dirs = (const char *const *)dirs,
                                       .n_dirs = n_dirs,
                                       .base_dir = base_dir ? base_dir : ".",
                                       .log = app->log};
        rc = rv_plugins_new(&opts, &plugins, err);
    }
    if (rc == 0 && !name)
        rc = find_built_in(dirs, n_dirs, &wanted, err);
    if (rc == 0 && wanted)
        rc = rv_plugins_load(plugins, &which, err);
    rv_plugins_path_free(dirs);
    if (rc < 0)
        rv_plugins_free(plugins);
    else
        *out = plugins;
    return rc;
}

static int open_more(const struct rv_app *app, rv_plugins *plugins, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < app->n_more_capabilities && rc == 0; i++) {
        const struct rv_capability_config which = {.name = app->more_capabilities[i]};
        if (which.name[0] && strcmp(which.name, RV_APP_BUILT_IN) != 0)
            rc = rv_plugins_load(plugins, &which, err);
    }
    return rc;
}

int rv_app_sources_open(const struct rv_app *app, enum rv_app_store_use use, struct rv_app_sources *out, rv_err **err)
{
    const char *dir = NULL;

    *out = (struct rv_app_sources){.scope = app->scope};
    int rc = rv_app_find_schema_dir(app, &dir, err);
    if (rc == 0)
        rc = open_store(app, use, &out->store, err);
    if (rc == 0)
        rc = rv_app_open_built_in(app, NULL, app->capability, &out->plugins, err);
    if (rc == 0)
        rc = open_more(app, out->plugins, err);
    if (rc == 0) {
        struct rv_agents_opts opts = {
            .store = out->store, .plugins = out->plugins, .dirs = &dir, .n_dirs = dir != NULL, .log = app->log};
        rc = rv_agents_new(&opts, &out->agents, err);
    }
    if (rc < 0)
        rv_app_sources_fini(out);
    return rc;
}

/* store: borrowed. *n: agents whose rows are not as they should be, or were not. */
static int register_in(const struct rv_app *app, rv_store *store, rv_plugins *plugins, bool writes, size_t *n,
                       rv_err **err)
{
    const char *dir = NULL;
    rv_agents *agents = NULL;
    int rc = rv_app_find_schema_dir(app, &dir, err);
    const struct rv_agents_opts opts = {
        .store = store, .plugins = plugins, .dirs = &dir, .n_dirs = dir != NULL, .registers = writes, .log = app->log};

    *n = 0;
    if (rc == 0)
        rc = rv_agents_new(&opts, &agents, err);
    if (rc == 0)
        rc = rv_agents_register(agents, &app->scope, n, err);
    rv_agents_free(agents);
    return rc;
}

/* *out stays NULL where a reader may not write, or cannot just now: then the rows are written another time. */
static int open_to_write(const struct rv_app *app, rv_store **out, rv_err **err)
{
    rv_err *cause = NULL;
    int rc = rv_app_store_open(app, RV_APP_STORE_CHANGE, out, &cause);

    if (rc == RV_E_DENIED || rc == RV_E_UNAVAILABLE) {
        rv_err_free(cause);
        return 0;
    }
    return rv_err_pass(err, cause);
}

int rv_app_register_agents(const struct rv_app *app, rv_store *store, rv_err **err)
{
    rv_plugins *plugins = NULL;
    rv_store *other = NULL;
    size_t n = 0;
    int rc = store ? rv_app_open_built_in(app, NULL, app->capability, &plugins, err) : 0;

    if (rc == 0 && store)
        rc = register_in(app, store, plugins, false, &n, err);
    if (rc == 0 && n > 0)
        rc = open_to_write(app, &other, err);
    if (rc == 0 && other)
        rc = register_in(app, other, plugins, true, &n, err);
    rv_store_close(other);
    rv_plugins_free(plugins);
    return rc;
}

void rv_app_sources_fini(struct rv_app_sources *s)
{
    rv_agents_free(s->agents);
    rv_plugins_free(s->plugins);
    rv_store_close(s->store);
    memset(s, 0, sizeof *s);
}
