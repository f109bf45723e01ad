/* Where runs and agents are kept: stores, and which of their runs a word means; agents of the store, a capability and a
 * folder; files of interrupted runs: {reeve_run: 1, rules, pipeline, script, state}. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/runfile.h"
#include "coreengine/store/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NAMED   8                  /* runs that are listed when a word fits several */
#define MAX_NEAREST 500                /* newest runs that a mistyped id is compared with */
#define MAX_RUNFILE ((size_t)64 << 20) /* bytes: a state may have as many (RV_STATE_MAX_BYTES) */

const char *rv_app_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* A relative folder would be another store in each directory. */
static const char *folder_from_environment(const char *name)
{
    const char *value = rv_app_env(name);
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

int rv_app_config_file(const char *name, rv_buf *out, rv_err **err)
{
    const char *config = folder_from_environment("XDG_CONFIG_HOME"), *home = folder_from_environment("HOME");

    if (!config && !home)
        return RV_FAIL(err, RV_E_NOT_FOUND, "neither XDG_CONFIG_HOME nor HOME names a folder for settings");
    rv_buf_printf(out, "%s%s/reeve/%s", config ? config : home, config ? "" : "/.config", name);
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
    return app->store ? app->store : rv_app_env("REEVE_STORE");
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
    const char *word = app->sync ? app->sync : rv_app_env("REEVE_SYNC");

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

/* The master keys and private keys that the environment names; NULL: none. The caller has a reference. */
static int keyring_of(rv_keyring **out, rv_err **err)
{
    const char *file = rv_app_env("REEVE_ENCRYPTION_KEY_FILE"), *text = rv_app_env("REEVE_ENCRYPTION_KEY");
    const char *private = rv_app_env("REEVE_PRIVATE_KEY_FILE");
    int rc = 0;

    *out = NULL;
    if (file && text)
        return RV_FAIL(err, RV_E_INVALID, "REEVE_ENCRYPTION_KEY_FILE and REEVE_ENCRYPTION_KEY are both set: use one");
    if (file)
        rc = rv_keyring_read_file(file, out, err);
    else if (text)
        rc = rv_keyring_read(rv_str_of(text), "REEVE_ENCRYPTION_KEY", out, err);
    return rc == 0 && private ? rv_keyring_add_private(out, private, err) : rc;
}

static int no_store(const char *path, rv_err **err)
{
    rv_buf shown = RV_BUF_INIT(4096);

    rv_store_show_url(path, &shown);
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "the store \"%s\" does not exist", rv_buf_cstr(&shown));
    rv_buf_fini(&shown);
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

static void log_store(const struct rv_app *app, const char *url)
{
    rv_buf shown = RV_BUF_INIT(4096);

    rv_store_show_url(url, &shown);
    RV_LOG(app->log, DEBUG, "store.open", RV_F_STR("url", rv_buf_str(&shown)));
    rv_buf_fini(&shown);
}

int rv_app_store_open(const struct rv_app *app, enum rv_app_store_use use, rv_store **out, rv_err **err)
{
    struct rv_store_opts opts = {.read_only = use == RV_APP_STORE_READ,
                                 .must_exist = use == RV_APP_STORE_READ || use == RV_APP_STORE_CHANGE,
                                 .takes_copy = use == RV_APP_STORE_FILL,
                                 .health = app->health};
    rv_buf path = RV_BUF_INIT(4096);
    rv_err *cause = NULL;

    int rc = rv_app_store_path(app, &path, err);
    if (rc == 0)
        rc = sync_of(app, &opts.sync, err);
    if (rc == 0 && use == RV_APP_STORE_MAKE && !named_store(app)) { /* a file */
        rc = rv_file_make_folders(rv_buf_cstr(&path), err);
        if (rc < 0)
            rc = RV_WRAP(err, rc, "open store \"%s\"", rv_buf_cstr(&path));
    }
    if (rc == 0)
        rc = keyring_of(&opts.ring, err);
    if (rc == 0) {
        log_store(app, rv_buf_cstr(&path));
        rc = rv_store_open(rv_buf_cstr(&path), &opts, out, &cause);
        if (rc == RV_E_VERSION && opts.read_only && bring_forward(rv_buf_cstr(&path), &opts)) {
            rv_err_free(cause);
            cause = NULL;
            rc = rv_store_open(rv_buf_cstr(&path), &opts, out, &cause);
        }
        if (rc == RV_E_NOT_FOUND && opts.must_exist && !rv_store_is_postgres(rv_buf_cstr(&path))) {
            rv_err_free(cause);
            rc = no_store(rv_buf_cstr(&path), err);
        } else if (rc < 0) {
            rv_err_pass(err, cause);
        } else {
            rv_err_free(cause);
        }
    }
    if (rc == RV_E_DENIED && err && !rv_err_hint_text(*err))
        rv_err_hint(err, "name another place for the store");
    rv_keyring_unref(opts.ring);
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
        rv_err_pass(err, cause);
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
                rv_err_pass(err, cause);
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
    int rc = rv_app_schema_dir(app, &dir, err);
    if (rc == 0)
        rc = open_store(app, use, &out->store, err);
    if (rc == 0)
        rc = rv_app_open_built_in(app, ".", app->capability, &out->plugins, err);
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
    int rc = rv_app_schema_dir(app, &dir, err);
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

int rv_app_register_agents(const struct rv_app *app, rv_store *store, rv_err **err)
{
    rv_plugins *plugins = NULL;
    rv_store *other = NULL;
    size_t n = 0;
    int rc = store ? rv_app_open_built_in(app, ".", app->capability, &plugins, err) : 0;

    if (rc == 0 && store)
        rc = register_in(app, store, plugins, false, &n, err);
    if (rc == 0 && n > 0 && rv_app_store_open(app, RV_APP_STORE_CHANGE, &other, NULL) == 0)
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

/* --- files of interrupted runs --- */

static int runfile_path(const char *id, rv_buf *out, rv_err **err)
{
    int rc = rv_app_state_folder(out, err);

    rv_buf_printf(out, "/runs/%s.json", id);
    return rc < 0 ? rc : rv_buf_check(out, "path", err);
}

int rv_runfile_path(const char *run, rv_buf *out, rv_err **err)
{
    if (strchr(run, '/') || access(run, R_OK) == 0) {
        rv_buf_puts(out, run);
        return rv_buf_check(out, "path", err);
    }
    int rc = runfile_path(run, out, err);
    if (rc == 0 && access(rv_buf_cstr(out), R_OK) != 0) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown run \"%s\": neither a file with this name nor \"%s\" exists", run,
                     rv_buf_cstr(out));
        rv_err_hint(err, "`reeve run` prints the file of an interrupted run");
    }
    return rc;
}

static void absolute(const char *path, char out[PATH_MAX])
{
    if (!realpath(path, out)) {
        strncpy(out, path, PATH_MAX - 1);
        out[PATH_MAX - 1] = '\0';
    }
}

/* Ids come from state files too, and become names of files. */
static int check_id(const char *id, rv_err **err)
{
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    if (n > 0 && n <= NAME_MAX - sizeof ".json" && !id[n] && id[0] != '.')
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "the envelope_id \"%s\" cannot be the name of a file", id);
}

int rv_runfile_default_path(const char *id, rv_buf *out, rv_err **err)
{
    int rc = check_id(id, err);
    if (rc == 0)
        rc = runfile_path(id, out, err);
    if (rc == 0)
        rc = rv_file_make_folders(rv_buf_cstr(out), err);
    return rc < 0 ? RV_WRAP(err, rc, "keep the run") : 0;
}

int rv_runfile_write(const char *path, const struct rv_runfile *run, rv_str state, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_RUNFILE);
    rv_jw w = rv_jw_on(&text);
    char full[PATH_MAX];

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "reeve_run", 1);
    rv_jw_kv_int(&w, "rules", run->rules == RV_RULES_NEWEST ? RV_RULES_LAST : run->rules);
    absolute(run->pipeline, full);
    rv_jw_kv_text(&w, "pipeline", full);
    if (run->script) {
        absolute(run->script, full);
        rv_jw_kv_text(&w, "script", full);
    }
    rv_jw_key(&w, "state");
    rv_jw_raw(&w, state);
    rv_jw_obj_end(&w);
    rv_buf_putc(&text, '\n');
    int rc = rv_buf_check(&text, "run file", err);
    if (rc == 0)
        rc = rv_file_write(path, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "keep the run") : 0;
}

int rv_runfile_claim(const char *path, int *fd, rv_err **err)
{
    struct stat opened, now;

    *fd = -1;
    if (stat(path, &now) == 0 && !S_ISREG(now.st_mode))
        return 0;
    int f = open(path, O_RDWR | O_CLOEXEC); /* for writing: what is answered is noted there */
    if (f < 0)
        return RV_FAIL_SYSTEM(err, errno, "open run file \"%s\"", path);
    bool busy = flock(f, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    /* a file that was replaced between open and lock was answered by the one who replaced it */
    if (!busy && fstat(f, &opened) == 0 && (stat(path, &now) < 0 || opened.st_ino != now.st_ino))
        busy = true;
    if (busy) {
        close(f);
        return RV_FAIL(err, RV_E_STATE, "another process is answering the run \"%s\"", path);
    }
    *fd = f;
    return 0;
}

int rv_runfile_read(const char *path, struct rv_runfile *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_RUNFILE);
    const struct rv_json_opts opts = {
        .max_bytes = MAX_RUNFILE, .max_depth = RV_STATE_MAX_DEPTH + 1, .what = "run file"};
    int64_t version = 0, rules = RV_RULES_1;

    memset(out, 0, sizeof *out);
    int rc = rv_file_read(path, &text, err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, &out->json, err);
    rv_buf_fini(&text);
    if (rc < 0)
        rc = RV_WRAP(err, rc, "read run \"%s\"", path);
    if (rc == 0 &&
        (!json_object_is_type(out->json, json_type_object) || !rv_json_get_int(out->json, "reeve_run", &version)))
        rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a run file", path);
    else if (rc == 0 && version != 1)
        rc = RV_FAIL(err, RV_E_VERSION, "run file \"%s\" has version %lld, this program reads 1", path,
                     (long long)version);
    else if (rc == 0 && (!rv_json_get_text(out->json, "pipeline", &out->pipeline) ||
                         !(out->state = rv_json_get_obj(out->json, "state"))))
        rc = RV_FAIL(err, RV_E_INVALID, "run file \"%s\" names no pipeline or holds no state", path);
    else if (rc == 0 && rv_json_get_int(out->json, "rules", &rules) && (rules < RV_RULES_1 || rules > RV_RULES_LAST))
        rc = RV_FAIL(err, RV_E_VERSION, "run file \"%s\" has version %lld of the rules, this program knows %d", path,
                     (long long)rules, RV_RULES_LAST);
    if (rc < 0) {
        rv_runfile_fini(out);
        return rc;
    }
    out->rules = (enum rv_rules)rules;
    if (!rv_json_get_text(out->json, "script", &out->script))
        out->script = NULL;
    return 0;
}

void rv_runfile_fini(struct rv_runfile *run)
{
    json_object_put(run->json);
    memset(run, 0, sizeof *run);
}
