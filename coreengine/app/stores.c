/* Where stores are, and which run a word means; where agents are found: the store, a capability, a folder. */
#include "coreengine/app/app.h"
#include "coreengine/app/app_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_NAMED   8   /* runs that are listed when a word fits several */
#define MAX_NEAREST 500 /* newest runs that a mistyped id is compared with */

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* A relative folder would be another store in each directory. */
static const char *folder_from_environment(const char *name)
{
    const char *value = from_environment(name);
    return value && value[0] == '/' ? value : NULL;
}

int rv_app_state_folder(rv_buf *out, rv_err **err)
{
    const char *state = folder_from_environment("XDG_STATE_HOME"), *home = folder_from_environment("HOME");

    if (!state && !home)
        return RV_FAIL(err, RV_E_NOT_FOUND, "neither XDG_STATE_HOME nor HOME names a folder for runs");
    rv_buf_printf(out, "%s%s/reeve", state ? state : home, state ? "" : "/.local/state");
    return rv_buf_check(out, "path", err);
}

static int default_path(rv_buf *out, rv_err **err)
{
    int rc = rv_app_state_folder(out, err);

    if (rc < 0) {
        rv_err_hint(err, "name a store, or set REEVE_STORE");
        return rc;
    }
    rv_buf_puts(out, "/reeve.db");
    return rv_buf_check(out, "path", err);
}

static const char *named_store(const struct rv_app *app)
{
    return app->store ? app->store : from_environment("REEVE_STORE");
}

int rv_app_store_path(const struct rv_app *app, rv_buf *out, rv_err **err)
{
    const char *named = named_store(app);

    if (!named)
        return default_path(out, err);
    if (!named[0])
        return RV_FAIL(err, RV_E_INVALID, "the store needs the name of a file");
    rv_buf_puts(out, named);
    return rv_buf_check(out, "path", err);
}

static int sync_of(const struct rv_app *app, enum rv_store_sync *out, rv_err **err)
{
    static const char *const words[] = {
        [RV_STORE_SYNC_FULL] = "full", [RV_STORE_SYNC_NORMAL] = "normal", [RV_STORE_SYNC_OFF] = "off"};
    const char *word = app->sync ? app->sync : from_environment("REEVE_SYNC");

    *out = RV_STORE_SYNC_FULL;
    for (size_t i = 0; word && i < RV_COUNT(words); i++)
        if (strcmp(word, words[i]) == 0) {
            *out = (enum rv_store_sync)i;
            return 0;
        }
    if (!word)
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "invalid REEVE_SYNC \"%s\": use full, normal or off", word);
}

int rv_app_make_folders(const char *path, rv_err **err)
{
    char *copy = rv_str_dup(rv_str_of(path));
    int rc = copy ? 0 : RV_FAIL(err, RV_E_NOMEM, "make folders");

    for (char *c = copy ? strchr(copy + 1, '/') : NULL; rc == 0 && c; c = strchr(c + 1, '/')) {
        *c = '\0';
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            rc = RV_FAIL(err, RV_E_IO, "make folder \"%s\": %s", copy, strerror(errno));
        *c = '/';
    }
    free(copy);
    return rc;
}

static int no_store(const char *path, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "the store \"%s\" does not exist", path);
    rv_err_hint(err, "the first run creates it; REEVE_STORE names another store");
    return rc;
}

/* The first process that opens a store of an older version upgrades it, even if it only reads. False: it failed. */
static bool bring_forward(const char *path, const struct rv_store_opts *reading)
{
    struct rv_store_opts opts = *reading;
    rv_store *store = NULL;

    opts.read_only = false;
    if (rv_store_open(path, &opts, &store, NULL) < 0)
        return false;
    rv_store_close(store);
    return true;
}

int rv_app_store_open(const struct rv_app *app, enum rv_app_store_use use, rv_store **out, rv_err **err)
{
    struct rv_store_opts opts = {.read_only = use == RV_APP_STORE_READ, .must_exist = use != RV_APP_STORE_MAKE};
    rv_buf path = RV_BUF_INIT(4096);
    rv_err *cause = NULL;

    int rc = rv_app_store_path(app, &path, err);
    if (rc == 0)
        rc = sync_of(app, &opts.sync, err);
    if (rc == 0 && use == RV_APP_STORE_MAKE && !named_store(app))
        rc = rv_app_make_folders(rv_buf_cstr(&path), err);
    if (rc == 0) {
        RV_LOG(app->log, DEBUG, "store.open", RV_F_STR("url", rv_buf_str(&path)));
        rc = rv_store_open(rv_buf_cstr(&path), &opts, out, &cause);
        if (rc == RV_E_VERSION && opts.read_only && bring_forward(rv_buf_cstr(&path), &opts)) {
            rv_err_free(cause);
            cause = NULL;
            rc = rv_store_open(rv_buf_cstr(&path), &opts, out, &cause);
        }
        if (rc == RV_E_NOT_FOUND && opts.must_exist) {
            rv_err_free(cause);
            rc = no_store(rv_buf_cstr(&path), err);
        } else if (rc < 0) {
            *err = cause;
        }
    }
    rv_buf_fini(&path);
    return rc;
}

int rv_app_store_open_if_any(const struct rv_app *app, rv_store **out, rv_err **err)
{
    rv_err *cause = NULL;
    int rc = rv_app_store_open(app, RV_APP_STORE_READ, out, &cause);

    if (rc == RV_E_NOT_FOUND && !app->store) {
        rv_err_free(cause);
        *out = NULL;
        return 0;
    }
    if (rc < 0)
        *err = cause;
    return rc;
}

/* --- which run --- */

struct candidates {
    char ids[MAX_NEAREST][RV_STORE_MAX_ID + 1];
    size_t n, max;
};

static int collect(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct candidates *c = self;
    size_t len = strlen(row->id);

    (void)err;
    if (c->n < c->max && len <= RV_STORE_MAX_ID)
        memcpy(c->ids[c->n++], row->id, len + 1);
    return 0;
}

static int list_candidates(rv_store *store, const struct rv_store_scope *scope, const char *prefix, size_t max,
                           struct candidates **out, rv_err **err)
{
    struct rv_run_filter filter = {.id_prefix = prefix, .limit = (int64_t)max};
    struct candidates *c = calloc(1, sizeof *c);

    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "look for a run");
    c->max = max;
    int rc = rv_store_list_runs(store, scope, &filter, collect, c, err);
    if (rc < 0)
        free(c);
    else
        *out = c;
    return rc;
}

static int unknown_run(rv_store *store, const struct rv_store_scope *scope, const char *word, rv_err **err)
{
    struct candidates *c = NULL;
    const char *ids[MAX_NEAREST], *near;

    int rc = list_candidates(store, scope, NULL, MAX_NEAREST, &c, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < c->n; i++)
        ids[i] = c->ids[i];
    near = rv_nearest(rv_str_of(word), ids, c->n);
    rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown run \"%s\"", word);
    if (c->n == 0 && scope->user)
        rv_err_hint(err, "the store \"%s\" has no runs of user \"%s\"", rv_store_url(store), scope->user);
    else if (c->n == 0)
        rv_err_hint(err, "the store \"%s\" has no runs", rv_store_url(store));
    else if (near)
        rv_err_hint(err, "did you mean %s? `reeve runs` lists all", near);
    else
        rv_err_hint(err, "`reeve runs` lists all; \"last\" is the newest one");
    free(c);
    return rc;
}

static int ambiguous(const char *word, const struct candidates *c, rv_err **err)
{
    rv_buf names = RV_BUF_INIT((MAX_NAMED + 1) * (RV_STORE_MAX_ID + 2));
    size_t shown = c->n > MAX_NAMED ? MAX_NAMED : c->n;

    for (size_t i = 0; i < shown; i++)
        rv_buf_printf(&names, "%s%s", i ? ", " : "", c->ids[i]);
    int rc = RV_FAIL(err, RV_E_INVALID, "more than one run begins with \"%s\"", word);
    rv_err_hint(err, "newest first: %s%s", rv_buf_cstr(&names), c->n > shown ? ", ..." : "");
    rv_buf_fini(&names);
    return rc;
}

int rv_app_find_run(rv_store *store, const struct rv_store_scope *scope, const char *word, struct rv_run_row *out,
                    rv_err **err)
{
    struct candidates *c = NULL;
    rv_err *cause = NULL;
    bool newest = strcmp(word, "last") == 0;

    if (!newest) {
        int rc = rv_store_get_run(store, scope, word, out, &cause);
        if (rc != RV_E_NOT_FOUND) {
            if (rc < 0)
                *err = cause;
            return rc;
        }
        rv_err_free(cause);
    }
    int rc = list_candidates(store, scope, newest ? NULL : word, newest ? 1 : MAX_NAMED + 1, &c, err);
    if (rc < 0)
        return rc;
    if (c->n == 0 || !word[0])
        rc = unknown_run(store, scope, word, err);
    else if (c->n > 1)
        rc = ambiguous(word, c, err);
    else
        rc = rv_store_get_run(store, scope, c->ids[0], out, err);
    free(c);
    return rc;
}

/* --- agents --- */

int rv_app_schema_dir(const struct rv_app *app, const char **out, rv_err **err)
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

    int rc = rv_plugins_available((const char *const *)dirs, n_dirs, &names, &n, err);
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

    int rc = rv_plugins_path(app->capability_dirs, app->n_capability_dirs, base_dir, &dirs, &n_dirs, err);
    if (rc == 0) {
        struct rv_plugins_opts opts = {
            .dirs = (const char *const *)dirs, .n_dirs = n_dirs, .base_dir = base_dir, .log = app->log};
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

int rv_app_sources_open(const struct rv_app *app, enum rv_app_store_use use, struct rv_app_sources *out, rv_err **err)
{
    const char *dir = NULL;

    *out = (struct rv_app_sources){.scope = app->scope};
    int rc = rv_app_schema_dir(app, &dir, err);
    if (rc == 0)
        rc = open_store(app, use, &out->store, err);
    if (rc == 0)
        rc = rv_app_open_built_in(app, ".", app->capability, &out->plugins, err);
    if (rc == 0) {
        struct rv_agents_opts opts = {
            .store = out->store, .plugins = out->plugins, .dirs = &dir, .n_dirs = dir != NULL, .log = app->log};
        rc = rv_agents_new(&opts, &out->agents, err);
    }
    if (rc < 0)
        rv_app_sources_fini(out);
    return rc;
}

void rv_app_sources_fini(struct rv_app_sources *s)
{
    rv_agents_free(s->agents);
    rv_plugins_free(s->plugins);
    rv_store_close(s->store);
    memset(s, 0, sizeof *s);
}
