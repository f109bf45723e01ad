/* reeve doctor: what is there on this machine, and what is missing. */
#include "coreengine/cli/doctor/doctor.h"
#include "coreengine/cli/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capabilities/sdk/capability.h"

#define MAX_TEXT_BYTES ((size_t)4 << 20)

static const struct {
    const char *text, *mark, *color;
} levels[] = {
    [RV_CHECK_OK] = {"ok", "ok  ", "\033[32m"},
    [RV_CHECK_NOTE] = {"note", "note", "\033[33m"},
    [RV_CHECK_BAD] = {"bad", "bad ", "\033[31m"},
};

void rv_checkup_line(struct rv_checkup *c, enum rv_check_level level, const char *what, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    va_list ap;

    c->n_bad += level == RV_CHECK_BAD;
    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    rv_buf_printf(&c->text, "%s%s%s %-18s %s\n", c->color ? levels[level].color : "", levels[level].mark,
                  c->color ? "\033[0m" : "", what, rv_buf_cstr(&text));
    rv_jw_obj(&c->checks);
    rv_jw_kv_text(&c->checks, "level", levels[level].text);
    rv_jw_kv_text(&c->checks, "what", what);
    rv_jw_kv_str(&c->checks, "text", rv_buf_str(&text));
    rv_jw_obj_end(&c->checks);
    if (text.rc < 0 && c->text.rc == 0)
        c->text.rc = text.rc;
    rv_buf_fini(&text);
}

static void check_capabilities(struct rv_cli *cli, struct rv_checkup *c)
{
    char **dirs = NULL, **names = NULL;
    size_t n_dirs = 0, n = 0;
    rv_err *err = NULL;

    int rc = rv_plugins_path(cli->app.capability_dirs, cli->app.n_capability_dirs, ".", &dirs, &n_dirs, &err);
    if (rc == 0)
        rc = rv_plugins_available((const char *const *)dirs, n_dirs, &names, &n, &err);
    if (rc < 0) {
        rv_checkup_line(c, RV_CHECK_BAD, "capabilities", "%s", rv_err_text(err));
    } else if (n == 0) {
        rv_checkup_line(c, RV_CHECK_NOTE, "capabilities", "none on the path; `reeve inspect` lists the folders");
    } else {
        rv_buf list = RV_BUF_INIT(MAX_TEXT_BYTES);
        for (size_t i = 0; i < n; i++)
            rv_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
        rv_checkup_line(c, RV_CHECK_OK, "capabilities", "%s", rv_buf_cstr(&list));
        rv_buf_fini(&list);
    }
    rv_err_free(err);
    rv_plugins_path_free(names);
    rv_plugins_path_free(dirs);
}

/* Can it be written, or, as long as it is not there, made? Gives errno, or 0. */
static int folder_fault(const char *path)
{
    rv_buf at = RV_BUF_INIT(MAX_TEXT_BYTES);
    int fault;

    rv_buf_puts(&at, path);
    while ((fault = access(rv_buf_cstr(&at), W_OK | X_OK) == 0 ? 0 : errno) == ENOENT && at.len > 1) {
        size_t len = at.len - 1;
        while (len > 1 && at.ptr[len] != '/')
            len--;
        rv_buf_truncate(&at, len);
    }
    rv_buf_fini(&at);
    return fault;
}

static void check_new_store(const char *path, struct rv_checkup *c)
{
    char *folder = rv_str_dup(rv_str_of(path));
    char *slash = folder ? strrchr(folder, '/') : NULL;

    if (slash)
        slash[slash == folder] = '\0';
    bool named = getenv("REEVE_STORE") && getenv("REEVE_STORE")[0]; /* its folders are not made */
    const char *where = slash ? folder : ".";
    int fault = !folder ? ENOMEM : !named ? folder_fault(where) : access(where, W_OK | X_OK) == 0 ? 0 : errno;
    if (fault)
        rv_checkup_line(c, RV_CHECK_BAD, "store", "cannot create %s (%s): runs need --store FILE or --no-store", path,
                        strerror(fault));
    else
        rv_checkup_line(c, RV_CHECK_OK, "store", "%s (does not exist yet: the first run creates it)", path);
    free(folder);
}

static int count_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct rv_store_stats *stats = self;

    (void)err;
    stats->runs++;
    stats->pending += row->n_pending;
    return 0;
}

/* Only rows that the user of the command line may see. */
static int count_runs(const struct rv_cli_args *args, rv_store *store, struct rv_store_stats *out, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    const struct rv_run_filter all = {0};

    return scope.user || scope.tenant ? rv_store_list_runs(store, &scope, &all, count_run, out, err)
                                      : rv_store_stats(store, out, err);
}

static void check_store(const struct rv_cli *cli, const struct rv_cli_args *args, struct rv_checkup *c)
{
    rv_buf path = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_store_stats stats = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;

    int rc = rv_app_store_path(&cli->app, &path, &err);
    if (rc < 0) {
        rv_checkup_line(c, RV_CHECK_BAD, "store", "%s: runs need --store FILE or --no-store", rv_err_text(err));
        rv_err_free(err);
        rv_buf_fini(&path);
        return;
    }
    rc = rv_app_store_open(&cli->app, RV_APP_STORE_READ, &store, &err);
    if (rc == 0)
        rc = count_runs(args, store, &stats, &err);
    if (rc == RV_E_NOT_FOUND)
        check_new_store(rv_buf_cstr(&path), c);
    else if (rc < 0)
        rv_checkup_line(c, RV_CHECK_BAD, "store", "%s", rv_err_text(rv_err_cause(err) ? rv_err_cause(err) : err));
    else if (access(rv_buf_cstr(&path), W_OK) != 0)
        rv_checkup_line(c, RV_CHECK_BAD, "store", "%s can be read, but not written: %s", rv_buf_cstr(&path),
                        strerror(errno));
    else
        rv_checkup_line(c, RV_CHECK_OK, "store", "%s: %lld runs, %lld wait for an answer", rv_buf_cstr(&path),
                        (long long)stats.runs, (long long)stats.pending);
    rv_err_free(err);
    rv_store_close(store);
    rv_buf_fini(&path);
}

static void check_tools(struct rv_checkup *c)
{
    static const char *const programs[] = {"cc", "cmake", "pkg-config"};
    const char *path = getenv("PATH");

    for (size_t i = 0; i < RV_COUNT(programs); i++) {
        bool found = false;
        for (const char *p = path ? path : ""; *p && !found;) {
            size_t n = strcspn(p, ":");
            rv_buf full = RV_BUF_INIT(4096);
            rv_buf_printf(&full, "%.*s/%s", (int)n, p, programs[i]);
            found = access(rv_buf_cstr(&full), X_OK) == 0;
            rv_buf_fini(&full);
            p += n + (p[n] == ':');
        }
        if (found)
            rv_checkup_line(c, RV_CHECK_OK, programs[i], "found (needed to build capabilities)");
        else
            rv_checkup_line(c, RV_CHECK_NOTE, programs[i], "not found: only needed to build capabilities");
    }
}

static int print_json(const struct rv_cli *cli, struct rv_checkup *c, const struct rv_app_models *m)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);

    rv_jw_obj(&w);
    rv_jw_kv_bool(&w, "ok", c->n_bad == 0);
    rv_app_models_write(m, &w);
    rv_jw_arr_end(&c->checks);
    rv_jw_key(&w, "checks");
    rv_jw_raw(&w, rv_buf_str(&c->json));
    rv_jw_obj_end(&w);
    rv_buf_putc(&text, '\n');
    if (c->json.rc < 0)
        text.rc = c->json.rc;
    return rv_cli_print(cli, &text);
}

/* Only what a script needs: a model to ask, or why there is none. */
static int print_model(const struct rv_cli *cli, const struct rv_app_models *m)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    const char *model = rv_app_models_best(m);

    if (model) {
        rv_buf_printf(&text, "%s\n", model);
        return rv_cli_print(cli, &text);
    }
    rv_buf_printf(&text, "no model is at hand: %s\n%s", rv_app_models_why_none(m), rv_doctor_ways);
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
    return RV_EXIT_FAILED;
}

static int doctor(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct rv_checkup c = {
        .text = RV_BUF_INIT(MAX_TEXT_BYTES), .json = RV_BUF_INIT(MAX_TEXT_BYTES), .color = cli->out_color};
    struct rv_app_models *m = NULL;
    rv_err *err = NULL;
    int status;

    if (rv_cli_flag(args, "json") && rv_cli_flag(args, "model"))
        return rv_cli_usage(cli, args, "--json and --model exclude each other");
    if (rv_app_models_find(&cli->app, &m, &err) < 0)
        return rv_cli_report(cli, err);
    if (rv_cli_flag(args, "model")) {
        status = print_model(cli, m);
        rv_app_models_free(m);
        return status;
    }
    c.checks = rv_jw_on(&c.json);
    rv_jw_arr(&c.checks);
    rv_checkup_line(&c, RV_CHECK_OK, "reeve", "%s, capability ABI %d", RV_VERSION, RV_CAP_ABI);
    check_capabilities(cli, &c);
    check_store(cli, args, &c);
    check_tools(&c);
    rv_doctor_models_check(m, &c);
    status = rv_cli_flag(args, "json") ? print_json(cli, &c, m) : rv_cli_print(cli, &c.text);
    rv_app_models_free(m);
    rv_buf_fini(&c.text);
    rv_buf_fini(&c.json);
    return status ? status : c.n_bad ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

static const struct rv_cli_option doctor_options[] = {
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
    {"model", 'm', NULL, "print only an available model, as provider:model; exit status 1 if there is none", NULL,
     false},
};

const struct rv_cli_verb rv_verb_doctor = {
    .name = "doctor",
    .args = "",
    .summary = "check the environment",
    .text =
        "Prints what reeve finds on this machine: capabilities, the store of runs, the tools that build capabilities,\n"
        "and models: keys in the environment (their names, never their values) and the models of servers on this\n"
        "machine. Remote servers are not contacted, and keys are not tried. Exit status 1 if reeve would not work; a\n"
        "missing model is not an error.",
    .examples =
        "reeve doctor\n"
        "REEVE_MODEL=$(reeve doctor --model) reeve run pipelines/ask-docs.yaml --input \"how are errors made?\"",
    .options = doctor_options,
    .n_options = RV_COUNT(doctor_options),
    .run = doctor,
};
