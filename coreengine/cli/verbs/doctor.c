/* reeve doctor: what is there on this machine, and what is missing. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capabilities/sdk/capability.h"

#define MAX_TEXT_BYTES ((size_t)4 << 20) /* of the report: a person reads some screens */
#define SHOWN_MODELS   3                 /* of one server; the others are counted */

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_BAD, N_LEVELS };
struct checkup {
    rv_buf text, json;
    rv_jw checks; /* on json: an array of {level, what, text} */
    bool color;
    int n_bad;
};

static const struct {
    const char *text, *mark, *color;
} levels[] = {
    [LEVEL_OK] = {"ok", "ok  ", "\033[32m"},
    [LEVEL_NOTE] = {"note", "note", "\033[33m"},
    [LEVEL_BAD] = {"bad", "bad ", "\033[31m"},
};
RV_EACH_HAS_ROW(levels, N_LEVELS);

static void line(struct checkup *c, enum level level, const char *what, const char *fmt, ...) RV_PRINTF(4, 5);
static void line(struct checkup *c, enum level level, const char *what, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    va_list ap;

    c->n_bad += level == LEVEL_BAD;
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

static void check_capabilities(struct rv_cli *cli, struct checkup *c)
{
    char **dirs = NULL, **names = NULL;
    size_t n_dirs = 0, n = 0;
    rv_err *err = NULL;

    int rc = rv_plugins_path_new(cli->app.capability_dirs, cli->app.n_capability_dirs, NULL, &dirs, &n_dirs, &err);
    if (rc == 0)
        rc = rv_plugins_find_available((const char *const *)dirs, n_dirs, &names, &n, &err);
    if (rc < 0) {
        line(c, LEVEL_BAD, "capabilities", "%s", rv_err_text(err));
    } else if (n == 0) {
        line(c, LEVEL_NOTE, "capabilities", "none on the path; `reeve inspect` lists the folders");
    } else {
        rv_buf list = RV_BUF_INIT(MAX_TEXT_BYTES);
        for (size_t i = 0; i < n; i++)
            rv_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
        line(c, LEVEL_OK, "capabilities", "%s", rv_buf_cstr(&list));
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

static void check_new_store(const char *path, struct checkup *c)
{
    char *folder = rv_str_dup(rv_str_of(path));
    char *slash = folder ? strrchr(folder, '/') : NULL;

    if (slash)
        slash[slash == folder] = '\0';
    bool named = getenv("REEVE_STORE") && getenv("REEVE_STORE")[0]; /* its folders are not made */
    const char *where = slash ? folder : ".";
    int fault = !folder ? ENOMEM : !named ? folder_fault(where) : access(where, W_OK | X_OK) == 0 ? 0 : errno;
    if (fault)
        line(c, LEVEL_BAD, "store", "cannot create %s (%s): runs need --store FILE or --no-store", path,
             strerror(fault));
    else
        line(c, LEVEL_OK, "store", "%s (does not exist yet: the first run creates it)", path);
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
static int count_runs(const struct rv_cli *cli, rv_store *store, struct rv_store_stats *out, rv_err **err)
{
    const struct rv_store_scope scope = cli->app.scope;
    const struct rv_run_filter all = {0};

    return scope.user || scope.tenant ? rv_store_list_runs(store, &scope, &all, count_run, out, err)
                                      : rv_store_read_stats(store, out, err);
}

/* Whether the role may write, only writing shows. */
static void show_server_store(const char *url, int rc, const struct rv_store_stats *stats, const rv_err *err,
                              struct checkup *c)
{
    rv_buf shown = RV_BUF_INIT(MAX_TEXT_BYTES);
    const rv_err *cause = err && rv_err_cause(err) ? rv_err_cause(err) : err;

    rv_store_show_url(url, &shown);
    if (rc == 0)
        line(c, LEVEL_OK, "store", "%s: %lld run%s, %lld wait%s for an answer", rv_buf_cstr(&shown),
             (long long)stats->runs, cli_plural(stats->runs), (long long)stats->pending,
             stats->pending == 1 ? "s" : "");
    else
        line(c, rc == RV_E_NOT_FOUND ? LEVEL_NOTE : LEVEL_BAD, "store", "%s", rv_err_text(cause));
    rv_buf_fini(&shown);
}

static const char *file_of(const char *url)
{
    return strncmp(url, "sqlite:", strlen("sqlite:")) == 0 ? url + strlen("sqlite:") : url;
}

static void check_store(const struct rv_cli *cli, struct checkup *c)
{
    rv_buf path = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_store_stats stats = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;

    int rc = rv_app_find_store_path(&cli->app, &path, &err);
    if (rc < 0) {
        line(c, LEVEL_BAD, "store", "%s: runs need --store FILE or --no-store", rv_err_text(err));
        rv_err_free(err);
        rv_buf_fini(&path);
        return;
    }
    rc = rv_app_store_open(&cli->app, RV_APP_STORE_READ, &store, &err);
    if (rc == 0)
        rc = count_runs(cli, store, &stats, &err);
    if (rv_store_is_postgres(rv_buf_cstr(&path)))
        show_server_store(rv_buf_cstr(&path), rc, &stats, err, c);
    else if (rc == RV_E_NOT_FOUND)
        check_new_store(file_of(rv_buf_cstr(&path)), c);
    else if (rc < 0)
        line(c, LEVEL_BAD, "store", "%s", rv_err_text(rv_err_cause(err) ? rv_err_cause(err) : err));
    else if (!rv_store_is_memory(store) && access(file_of(rv_buf_cstr(&path)), W_OK) != 0)
        line(c, LEVEL_BAD, "store", "%s can be read, but not written: %s", rv_buf_cstr(&path), strerror(errno));
    else
        line(c, LEVEL_OK, "store", "%s: %lld run%s, %lld wait%s for an answer", rv_buf_cstr(&path),
             (long long)stats.runs, cli_plural(stats.runs), (long long)stats.pending, stats.pending == 1 ? "s" : "");
    rv_err_free(err);
    rv_store_close(store);
    rv_buf_fini(&path);
}

static void check_tools(struct checkup *c)
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
            line(c, LEVEL_OK, programs[i], "found (needed to build capabilities)");
        else
            line(c, LEVEL_NOTE, programs[i], "not found: only needed to build capabilities");
    }
}

/* --- models. No value of a variable is shown: it may be a secret. --- */

static const char ways[] =
    "  1. a key: export OPENAI_API_KEY=... (from platform.openai.com/api-keys) or ANTHROPIC_API_KEY=... (from\n"
    "     console.anthropic.com); `reeve inspect --providers` lists all others\n"
    "  2. a model on this machine with Ollama (ollama.com/download): ollama pull qwen3:4b\n"
    "  3. the same with llama.cpp: llama-server -hf ggml-org/gemma-3-1b-it-GGUF --port 8080; or any server that is\n"
    "     compatible with OpenAI's, by OPENAI_BASE_URL\n";

static void show_server(const struct rv_app_server *s, struct checkup *c)
{
    rv_buf models = RV_BUF_INIT(MAX_TEXT_BYTES);

    for (size_t i = 0; i < s->n_models && i < SHOWN_MODELS; i++)
        rv_buf_printf(&models, "%s%s", i ? ", " : "", s->models[i]);
    if (s->n_models > SHOWN_MODELS)
        rv_buf_printf(&models, " and %zu more", s->n_models - SHOWN_MODELS);
    if (s->problem)
        line(c, LEVEL_NOTE, "model server", "%s: %s", s->address, s->problem);
    else
        line(c, s->n_models ? LEVEL_OK : LEVEL_NOTE, "model server", "%s (%s): %s", s->address, s->provider->name,
             s->n_models ? rv_buf_cstr(&models) : "no models installed");
    rv_buf_fini(&models);
}

static void show_variables(struct checkup *c)
{
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    for (size_t i = 0; i < n; i++) {
        if (rv_app_variable(list[i].key_env))
            line(c, LEVEL_OK, "model key", "%s is set: %s", list[i].key_env, list[i].name);
        if (rv_app_variable(list[i].base_url_env))
            line(c, LEVEL_OK, "model address", "%s is set: %s is asked there", list[i].base_url_env, list[i].name);
    }
}

static void show_none(const struct rv_app_models *m, struct checkup *c)
{
    line(c, LEVEL_NOTE, "model", "none is at hand: %s", rv_app_models_why_none(m));
    rv_buf_printf(&c->text, "  scripts and mocks need none; three ways to get one:\n%s", ways);
}

static void check_models(const struct rv_app_models *m, struct checkup *c)
{
    if (m->http_err.len)
        line(c, m->has_key ? LEVEL_BAD : LEVEL_NOTE, "http", "%s", rv_buf_cstr(&m->http_err));
    else
        line(c, LEVEL_OK, "http", "%s", rv_buf_cstr(&m->http));
    show_variables(c);
    for (size_t i = 0; i < m->n_servers; i++)
        if (m->servers[i].answers)
            show_server(&m->servers[i], c);
    if (m->model.len)
        line(c, LEVEL_OK, "model", "%s is at hand", rv_buf_cstr(&m->model));
    else
        show_none(m, c);
}

/* --- the verb --- */

static int print_json(struct checkup *c, const struct rv_app_models *m, rv_err **err)
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
    return cli_print(0, &text, err);
}

/* Only what a script needs: a model to ask, or why there is none. */
static int print_model(const struct rv_app_models *m, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    const char *model = rv_app_models_best(m);

    if (!model) {
        cli_say("no model is at hand: %s\n%s", rv_app_models_why_none(m), ways);
        return RV_EXIT_FAILED;
    }
    rv_buf_printf(&text, "%s\n", model);
    return cli_print(0, &text, err);
}

static int check_all(struct rv_cli *cli, const struct rv_app_models *m, rv_err **err)
{
    struct checkup c = {
        .text = RV_BUF_INIT(MAX_TEXT_BYTES), .json = RV_BUF_INIT(MAX_TEXT_BYTES), .color = cli->out_color};

    c.checks = rv_jw_on(&c.json);
    rv_jw_arr(&c.checks);
    line(&c, LEVEL_OK, "reeve", "%s, capability ABI %d", rv_version(), RV_CAP_ABI);
    if (RV_IS_STATIC)
        line(&c, LEVEL_NOTE, "static binary", "loads no capabilities from files, and has no stores of PostgreSQL");
    check_capabilities(cli, &c);
    check_store(cli, &c);
    check_tools(&c);
    check_models(m, &c);
    int rc = cli_flag(cli, "json") ? print_json(&c, m, err) : cli_print(0, &c.text, err);
    rv_buf_fini(&c.text);
    rv_buf_fini(&c.json);
    return rc < 0 ? rc : c.n_bad ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

static int doctor(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_models *m = NULL;

    int rc = rv_app_models_find(&cli->app, &m, err);
    if (rc < 0)
        return rc;
    rc = cli_flag(cli, "model") ? print_model(m, err) : check_all(cli, m, err);
    rv_app_models_free(m);
    return rc;
}

static const struct rv_cli_option doctor_options[] = {
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
    {"model", 'm', NULL, "print only an available model, as provider:model; exit status 1 if there is none", NULL,
     false},
};

const struct rv_cli_verb verb_doctor = {
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
    RV_CLI_OPTIONS(doctor_options),
    .excludes = "json model",
    .run = doctor,
};
