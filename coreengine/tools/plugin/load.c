/* From a name to an open capability. Each step of a load is undone in reverse order when a later one fails, and the set
 * changes only at the very end, where nothing can fail any more.
 *
 * The shared object itself is opened in the engine's process for a capability that shares it, and in the child for one
 * that does not. */
#include "coreengine/base/base.h"
#include "coreengine/tools/plugin/plugin_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPEN_ERROR_SIZE 1024 /* bytes that open() may write its reason into */

/* --- the shared object: opened with dlopen(), asked for its descriptor, told to open and to close --- */

/* dlopen() tells why in text only, and running out of memory has to keep its code. glibc gives no reason at all for two
 * of those failures: a text that ends where the reason should follow, for a file that was there a moment ago. */
static bool is_out_of_memory(const char *why)
{
    static const char *const always[] = {"out of memory", "Cannot allocate memory", "cannot create shared object"};
    static const char bare[] = "cannot open shared object file";
    size_t len = strlen(why);

    for (size_t i = 0; i < RV_COUNT(always); i++)
        if (strstr(why, always[i]))
            return true;
    return len >= sizeof bare - 1 && strcmp(why + len - (sizeof bare - 1), bare) == 0;
}

static int fail_dl(const char *path, rv_err **err)
{
    const char *why = dlerror();
    int rc;

    if (!why || is_out_of_memory(why))
        rc = RV_FAIL(err, RV_E_NOMEM, "open \"%s\"", path);
    else
        rc = RV_FAIL(err, RV_E_PLUGIN, "\"%s\" is not a capability that can be loaded: %s", path, why);
    rv_err_set_hint(err,
                    "build it as a shared object of this machine; `reeve new capability NAME` writes one that builds");
    dlerror(); /* lets go of the text */
    return rc;
}

static int fail_static(const char *path, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_PLUGIN, "\"%s\" is a shared object, which a static binary cannot load", path);

    rv_err_set_hint(err,
                    "use the package reeve, or one of the capabilities that are part of this binary: `reeve inspect`");
    return rc;
}

static _Thread_local volatile struct rv_plugin_mark mark; /* whose code runs on this thread just now */
static pid_t program; /* which ends when a capability ends it; a process that one has made is its own affair */

struct rv_plugin_mark plugin_mark(const char *path, const char *entry)
{
    const struct rv_plugin_mark before = mark;

    mark.path = NULL; /* a crash between two of these lines names no wrong pair */
    mark.entry = entry;
    mark.path = path;
    return before;
}

/* A capability that aborts, crashes or exits ends the process: it is named, by what a handler may call. */
static void tell_whose_code_ran(void)
{
    static const char hint[] = "\n  hint: leave it out or mend it; with `isolation: process` it only ends a process of "
                               "its own\n";
    const char *path = mark.path, *entry = mark.entry;
    const char *const parts[] = {"reeve: the capability \"",
                                 path,
                                 "\" ended reeve while ",
                                 entry ? "its entry \"" : "it was loaded",
                                 entry ? entry : "",
                                 entry ? "\" was called" : "",
                                 hint};

    for (size_t i = 0; path && getpid() == program && i < RV_COUNT(parts); i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
}

static void on_crash(int number)
{
    tell_whose_code_ran();
    signal(number, SIG_DFL);
    raise(number);
}

/* exit(0) of a capability would say that all went well. */
static void on_exit_of_process(void)
{
    if (!mark.path || getpid() != program)
        return;
    tell_whose_code_ran();
    _exit(EXIT_FAILURE);
}

/* Where a sanitizer, or the program that this is part of, has handlers of its own, those stay. */
void rv_plugins_report_crashes(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const struct sigaction names = {.sa_handler = on_crash};
    struct sigaction before;

    program = getpid();
    if (atexit(on_exit_of_process) != 0)
        return; /* memory is short: the process says so elsewhere */
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &names, NULL);
}

static int call_entry_point(struct rv_plugin *pl, const struct rv_cap_desc **out, rv_err **err)
{
    const struct rv_cap_desc *(*entry_point)(void);
    const size_t len = sizeof RV_LINKED_FOLDER - 1;
    const struct rv_capability_linked *linked =
        strncmp(pl->path, RV_LINKED_FOLDER, len) == 0 ? plugin_linked(pl->path + len) : NULL;
    void *symbol;

    if (linked) {
        *out = linked->entry_point();
        return 0;
    }
    if (RV_IS_STATIC)
        return fail_static(pl->path, err);
    pl->handle = dlopen(pl->path, RTLD_NOW | RTLD_LOCAL);
    if (!pl->handle)
        return fail_dl(pl->path, err);
    symbol = dlsym(pl->handle, "rv_capability");
    if (!symbol) {
        int rc = RV_FAIL(err, RV_E_PLUGIN, "\"%s\" has no function rv_capability()", pl->path);
        rv_err_set_hint(err, "define it with RV_CAPABILITY() of capability.h");
        return rc;
    }
    memcpy(&entry_point, &symbol, sizeof entry_point); /* ISO C has no cast from object to function pointers */
    *out = entry_point();
    return 0;
}

int plugin_fetch(struct rv_plugin *pl, const struct rv_cap_desc **out, rv_err **err)
{
    const struct rv_plugin_mark before = plugin_mark(pl->path, NULL);
    int rc = call_entry_point(pl, out, err);
    plugin_mark(before.path, before.entry);
    return rc;
}

static int call_open(struct rv_plugin *pl, const char *config, char why[OPEN_ERROR_SIZE])
{
    const struct rv_plugin_mark before = plugin_mark(pl->path, NULL);
    int rc = pl->desc.open ? pl->desc.open(&pl->host, config, &pl->self, why, OPEN_ERROR_SIZE) : 0;
    plugin_mark(before.path, before.entry);
    return rc;
}

int plugin_open(struct rv_plugin *pl, const char *base_dir, const char *config, rv_err **err)
{
    char why[OPEN_ERROR_SIZE] = "";

    pl->host = (struct rv_cap_host){
        .size = sizeof pl->host, .abi = RV_CAP_ABI, .engine_version = rv_version(), .base_dir = base_dir};
    plugin_late_offer(&pl->host);
    if (call_open(pl, config, why) != 0) {
        why[sizeof why - 1] = '\0'; /* the function may have filled the whole buffer */
        int rc = RV_FAIL(err, RV_E_PLUGIN, "it failed to open: %s", *why ? why : "it does not say why");
        if (!*why)
            rv_err_set_hint(err, "its function open() gets a buffer for the reason");
        return rc;
    }
    pl->is_open = true;
    return 0;
}

static void entries_fini(struct rv_plugin *pl)
{
    for (size_t i = 0; i < pl->n_entries; i++) {
        struct rv_plugin_entry *e = &pl->entries[i];
        rv_template_free(e->prompt);
        rv_schema_free(e->input);
        rv_schema_free(e->output);
        free(e->info.sees.items);
        free(e->services.items);
        json_object_put(e->spec);
        free(e->name);
    }
    free(pl->entries);
    pl->entries = NULL;
    pl->n_entries = 0;
}

void plugin_free(struct rv_plugin *pl)
{
    if (!pl)
        return;
    if (pl->is_open && pl->desc.close) {
        const struct rv_plugin_mark before = plugin_mark(pl->path, "close");
        pl->desc.close(pl->self);
        plugin_mark(before.path, before.entry);
    }
    bool may_run = plugin_late_close(pl); /* a thread that has not answered would return to code that is gone */
    if (may_run)
        RV_LOG(pl->log, WARN, "capability.late", RV_F_TEXT("capability", pl->name));
    plugin_isolated_free(pl->isolated);
    plugin_logging_fini(pl);
    plugin_agents_fini(pl);
    entries_fini(pl);
    rv_schema_free(pl->config_schema);
    json_object_put(pl->config_schema_json);
    free(pl->description);
    free(pl->version);
    free(pl->name);
    free(pl->path);
    if (pl->handle && !may_run)
        dlclose(pl->handle);
    plugin_key_free(pl->key); /* which has the folder that it was opened with */
    free(pl);
}

/* --- a set of capabilities --- */

int rv_plugins_new(const struct rv_plugins_opts *opts, rv_plugins **out, rv_err **err)
{
    rv_plugins *p = calloc(1, sizeof *p);
    int rc;

    if (!p)
        return RV_FAIL(err, RV_E_NOMEM, "make a set of capabilities");
    p->log = opts->log;
    p->pool = opts->pool;
    p->base_dir = rv_str_dup(rv_str_of(opts->base_dir && *opts->base_dir ? opts->base_dir : "."));
    p->host_program = opts->host_program ? rv_str_dup(rv_str_of(opts->host_program)) : NULL;
    p->dirs = calloc(opts->n_dirs + 1, sizeof *p->dirs);
    if (!p->base_dir || !p->dirs || (opts->host_program && !p->host_program))
        goto nomem;
    for (; p->n_dirs < opts->n_dirs; p->n_dirs++) {
        p->dirs[p->n_dirs] = rv_str_dup(rv_str_of(opts->dirs[p->n_dirs]));
        if (!p->dirs[p->n_dirs])
            goto nomem;
    }
    rc = plugin_names_build(p, NULL, &p->names, err);
    if (rc < 0) {
        rv_plugins_free(p);
        return rc;
    }
    *out = p;
    return 0;
nomem:
    rv_plugins_free(p);
    return RV_FAIL(err, RV_E_NOMEM, "make a set of capabilities");
}

/* This set uses it no more. */
static void let_go(struct rv_plugins *p, struct rv_plugin *pl)
{
    if (pl->key)
        plugin_pool_return(p->pool, pl);
    else
        plugin_free(pl);
}

void rv_plugins_free(rv_plugins *p)
{
    if (!p)
        return;
    plugin_names_fini(&p->names);
    while (p->n_loaded > 0) /* last opened, first closed */
        let_go(p, p->loaded[--p->n_loaded]);
    free(p->loaded);
    rv_plugins_path_free(p->dirs);
    free(p->host_program);
    free(p->base_dir);
    free(p);
}

/* A capability is called what its file is called, so that a name on the path finds what it says. */
static int check_own_name(const struct rv_plugin *pl, rv_err **err)
{
    const char *slash = strrchr(pl->path, '/');
    rv_str stem = rv_str_of(slash ? slash + 1 : pl->path);

    if (stem.len > 3 && strcmp(stem.ptr + stem.len - 3, ".so") == 0)
        stem.len -= 3;
    if (rv_str_is(stem, pl->name))
        return 0;
    return RV_FAIL(err, RV_E_PLUGIN, "it calls itself \"%s\" but its file is \"%s\"", pl->name, pl->path);
}

static int check_not_loaded(const struct rv_plugins *p, const struct rv_plugin *pl, rv_err **err)
{
    for (size_t i = 0; i < p->n_loaded; i++)
        if (strcmp(p->loaded[i]->name, pl->name) == 0)
            return RV_FAIL(err, RV_E_EXISTS, "it is loaded already, from \"%s\"", p->loaded[i]->path);
    if (p->n_loaded >= RV_PLUGIN_MAX_LOADED)
        return RV_FAIL(err, RV_E_LIMIT, "%d capabilities are loaded already", RV_PLUGIN_MAX_LOADED);
    return 0;
}

/* The configuration as the plugin gets it: checked, with the defaults of its schema. */
static int config_text(const struct rv_plugin *pl, json_object *given, rv_buf *out, rv_err **err)
{
    json_object *config = NULL;
    int rc;

    if (given && !json_object_is_type(given, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "its configuration is not a map but %s", rv_json_type_text(given));
    if (!pl->config_schema && given && json_object_object_length(given) > 0)
        return RV_FAIL(err, RV_E_INVALID, "it takes no configuration");
    if (given) {
        rc = rv_json_dup(given, &config, err);
        if (rc < 0)
            return rc;
    } else if (!(config = json_object_new_object())) {
        return RV_FAIL(err, RV_E_NOMEM, "prepare the configuration of a capability");
    }
    rc = 0;
    if (pl->config_schema) {
        rc = rv_schema_fill_defaults(pl->config_schema, config, err);
        if (rc == 0)
            rc = rv_schema_check(pl->config_schema, config, err);
        if (rc < 0)
            rc = RV_WRAP(err, rc, "its configuration");
    }
    if (rc == 0) {
        rv_json_write(config, out);
        rc = rv_buf_check(out, "configuration of a capability", err);
    }
    json_object_put(config);
    return rc;
}

static void identify(struct rv_plugin *pl, const char *base_dir, rv_str config)
{
    struct rv_hash h;

    rv_hash_init(&h);
    rv_hash_add(&h, (rv_str){pl->path, strlen(pl->path) + 1});
    rv_hash_add(&h, (rv_str){base_dir, strlen(base_dir) + 1});
    rv_hash_add(&h, config);
    rv_hash_finish_hex(&h, pl->identity);
}

static int open_plugin(const struct rv_plugins *p, struct rv_plugin *pl, json_object *given, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf config = RV_BUF_INIT(RV_PLUGIN_MAX_CONFIG);
    const char *base_dir = pl->key ? plugin_key_base_dir(pl->key) : p->base_dir;
    int rc = config_text(pl, given, &config, err);

    if (rc < 0)
        return rc;
    identify(pl, base_dir, rv_buf_str(&config));
    return pl->isolated ? plugin_isolated_open(pl->isolated, &config, err)
                        : plugin_open(pl, base_dir, rv_buf_cstr(&config), err);
}

/* The descriptor: from the shared object, or from the process that has it instead. */
static int fetch(const struct rv_plugins *p, const struct rv_capability_config *which, struct rv_plugin *pl,
                 const struct rv_cap_desc **out, rv_err **err)
{
    return which->isolation == RV_ISOLATION_PROCESS ? plugin_isolated_fetch(p, which, pl, out, err)
                                                    : plugin_fetch(pl, out, err);
}

static int reserve_place(struct rv_plugins *p, rv_err **err)
{
    struct rv_plugin **loaded = realloc(p->loaded, (p->n_loaded + 1) * sizeof *loaded);

    if (!loaded)
        return RV_FAIL(err, RV_E_NOMEM, "make room for a capability");
    p->loaded = loaded;
    return 0;
}

/* The capability at path, read but not open yet. */
static int read_new(const struct rv_plugins *p, const struct rv_capability_config *which, char *path,
                    struct rv_plugin_key *key, struct rv_plugin **out, rv_err **err)
{
    const struct rv_cap_desc *desc = NULL;
    struct rv_plugin *pl = calloc(1, sizeof *pl);
    int rc;

    if (!pl) {
        free(path);
        plugin_key_free(key);
        return RV_FAIL(err, RV_E_NOMEM, "load capability \"%s\"", which->name);
    }
    pl->path = path;
    pl->key = key;
    pl->log = p->log;
    pl->logging = plugin_logging_new();
    if (!pl->logging)
        rc = RV_FAIL(err, RV_E_NOMEM, "keep count of log lines");
    else if ((rc = fetch(p, which, pl, &desc, err)) == 0 && (rc = plugin_check_desc(desc, pl, err)) == 0 &&
             (rc = check_own_name(pl, err)) == 0 && (rc = check_not_loaded(p, pl, err)) == 0)
        rc = plugin_check_entries(pl, err);
    if (rc < 0)
        plugin_free(pl);
    else
        *out = pl;
    return rc;
}

/* Among the others of the set: nothing can fail after it was opened. */
static int join(struct rv_plugins *p, const struct rv_capability_config *which, struct rv_plugin *pl, bool is_open,
                rv_err **err)
{
    struct rv_plugin_names names;
    int rc;

    if ((rc = check_not_loaded(p, pl, err)) < 0 || (rc = plugin_check_agents(p, pl, err)) < 0 ||
        (rc = reserve_place(p, err)) < 0 || (rc = plugin_names_build(p, pl, &names, err)) < 0)
        return rc;
    rc = is_open ? 0 : open_plugin(p, pl, which->config, err);
    if (rc < 0) {
        plugin_names_fini(&names);
        return rc;
    }
    p->loaded[p->n_loaded++] = pl;
    plugin_names_fini(&p->names);
    p->names = names;
    return 0;
}

static int load_shared(struct rv_plugins *p, const struct rv_capability_config *which, struct rv_plugin *pl,
                       rv_err **err)
{
    int rc = join(p, which, pl, true, err);

    if (rc < 0)
        plugin_pool_return(p->pool, pl);
    return rc;
}

static int load(struct rv_plugins *p, const struct rv_capability_config *which, rv_err **err)
{
    struct rv_plugin *pl = NULL;
    struct rv_plugin_key *key = NULL;
    char *path = NULL;

    int rc = plugin_locate(p, which->name, &path, err);
    if (rc == 0 && p->pool && which->isolation != RV_ISOLATION_PROCESS)
        rc = plugin_pool_take(p, which, path, &key, &pl, err);
    if (rc < 0 || pl) {
        free(path);
        return rc < 0 ? rc : load_shared(p, which, pl, err);
    }
    rc = read_new(p, which, path, key, &pl, err);
    if (rc < 0)
        return rc;
    rc = join(p, which, pl, false, err);
    if (rc < 0) {
        plugin_free(pl);
        return rc;
    }
    if (pl->key)
        plugin_pool_put(p->pool, pl);
    RV_LOG(p->log, DEBUG, "capability.load", RV_F_TEXT("name", pl->name), RV_F_TEXT("path", pl->path),
           RV_F_I64("entries", pl->n_rows));
    return 0;
}

int rv_plugins_load(rv_plugins *p, const struct rv_capability_config *which, rv_err **err)
{
    int rc = load(p, which, err);

    return rc < 0 ? RV_WRAP_AT(err, &which->src, rc, "load capability \"%s\"", which->name) : 0;
}

int rv_plugins_load_all(rv_plugins *p, const struct rv_pipeline *pipeline, rv_findings *findings, rv_err **err)
{
    for (size_t i = 0; i < pipeline->n_capabilities; i++) {
        const struct rv_capability_config *which = &pipeline->capabilities[i];
        rv_err *why = NULL;
        int rc = which->name[0] ? rv_plugins_load(p, which, &why) : 0; /* else reading it made a finding */

        if (rc == RV_E_NOMEM) {
            rv_err_free(why);
            return RV_FAIL(err, RV_E_NOMEM, "load capability \"%s\"", which->name);
        }
        if (rc < 0)
            rv_findings_add_err(findings, RV_SEVERITY_ERROR, &which->src, why);
        rv_err_free(why);
    }
    return rv_findings_check(findings, err);
}

bool rv_plugins_loaded_at(const rv_plugins *p, size_t i, const char **name, const char **version)
{
    if (i >= p->n_loaded)
        return false;
    *name = p->loaded[i]->name;
    *version = p->loaded[i]->version;
    return true;
}

int rv_plugins_read_version(rv_plugins *p, const char *name, rv_buf *version, rv_err **err)
{
    const struct rv_capability_config which = {.name = name, .isolation = RV_ISOLATION_PROCESS};
    const struct rv_cap_desc *desc = NULL;
    struct rv_plugin *pl = calloc(1, sizeof *pl);

    if (!pl)
        return RV_FAIL(err, RV_E_NOMEM, "look at capability \"%s\"", name);
    pl->log = p->log;
    pl->logging = plugin_logging_new();
    int rc = pl->logging ? plugin_locate(p, name, &pl->path, err) : RV_FAIL(err, RV_E_NOMEM, "keep count of log lines");
    if (rc == 0)
        rc = fetch(p, &which, pl, &desc, err);
    if (rc == 0)
        rc = plugin_check_desc(desc, pl, err);
    if (rc == 0)
        rv_buf_puts(version, pl->version);
    plugin_free(pl);
    return rc < 0 ? RV_WRAP(err, rc, "look at capability \"%s\"", name) : rv_buf_check(version, "version", err);
}
