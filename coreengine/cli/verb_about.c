/* The verbs about reeve itself: doctor, version, docs. */
#include "coreengine/cli/fn.h"
#include "coreengine/cli/retention.h"
#include "coreengine/cli/verbs.h"

#include <errno.h>
#include <json-c/json_c_version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>
#include <yaml.h>

#include "capabilities/sdk/capability.h"

#define MAX_TEXT_BYTES ((size_t)4 << 20)

static int version(struct rv_cli *cli, const struct rv_cli_args *args)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);

    if (rv_cli_flag(args, "json")) {
        rv_jw w = rv_jw_on(&text);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "version", RV_VERSION);
        rv_jw_kv_int(&w, "capability_abi", RV_CAP_ABI);
        rv_jw_kv_int(&w, "state_version", 1);
        rv_jw_kv_text(&w, "compiler", __VERSION__);
        rv_jw_kv_text(&w, "json_c", json_c_version());
        rv_jw_kv_text(&w, "libyaml", yaml_get_version_string());
        rv_jw_kv_text(&w, "libuv", uv_version_string());
        rv_jw_key(&w, "providers");
        rv_jw_arr(&w);
        rv_jw_text(&w, "scripted");
        rv_jw_arr_end(&w);
        rv_jw_obj_end(&w);
        rv_buf_putc(&text, '\n');
    } else {
        rv_buf_printf(&text,
                      "reeve %s\ncapability ABI %d, state version 1, model providers: scripted\njson-c %s, libyaml %s, "
                      "libuv %s, compiler %s\n",
                      RV_VERSION, RV_CAP_ABI, json_c_version(), yaml_get_version_string(), uv_version_string(),
                      __VERSION__);
    }
    return rv_cli_print(cli, &text);
}

/* --- doctor --- */

struct checkup {
    rv_buf text;
    bool color;
    int n_bad;
};

static void line(struct checkup *c, int level, const char *what, const char *fmt, ...) RV_PRINTF(4, 5);
static void line(struct checkup *c, int level, const char *what, const char *fmt, ...)
{
    static const char *const marks[] = {"ok  ", "note", "bad "};
    static const char *const colors[] = {"\033[32m", "\033[33m", "\033[31m"};
    va_list ap;

    c->n_bad += level == 2;
    rv_buf_printf(&c->text, "%s%s%s %-18s ", c->color ? colors[level] : "", marks[level], c->color ? "\033[0m" : "",
                  what);
    va_start(ap, fmt);
    rv_buf_vprintf(&c->text, fmt, ap);
    va_end(ap);
    rv_buf_putc(&c->text, '\n');
}

static void check_capabilities(struct rv_cli *cli, struct checkup *c)
{
    char **dirs = NULL, **names = NULL;
    size_t n_dirs = 0, n = 0;
    rv_err *err = NULL;

    int rc = rv_plugins_path(cli->capability_dirs, cli->n_capability_dirs, ".", &dirs, &n_dirs, &err);
    if (rc == 0)
        rc = rv_plugins_available((const char *const *)dirs, n_dirs, &names, &n, &err);
    if (rc < 0) {
        line(c, 2, "capabilities", "%s", rv_err_text(err));
    } else if (n == 0) {
        line(c, 1, "capabilities", "none on the path; `reeve inspect` lists the folders");
    } else {
        rv_buf list = RV_BUF_INIT(MAX_TEXT_BYTES);
        for (size_t i = 0; i < n; i++)
            rv_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
        line(c, 0, "capabilities", "%s", rv_buf_cstr(&list));
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
        line(c, 2, "store", "%s can not be made (%s): runs need --store FILE or --no-store", path, strerror(fault));
    else
        line(c, 0, "store", "%s (there is none yet: the first run makes it)", path);
    free(folder);
}

static void check_store(const struct rv_cli *cli, const struct rv_cli_args *args, struct checkup *c)
{
    rv_buf path = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_store_stats stats = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;

    int rc = rv_cli_store_path(args, &path, &err);
    if (rc < 0) {
        line(c, 2, "store", "%s: runs need --store FILE or --no-store", rv_err_text(err));
        rv_err_free(err);
        rv_buf_fini(&path);
        return;
    }
    rc = rv_cli_store_open(cli, args, RV_CLI_STORE_READ, &store, &err);
    if (rc == 0)
        rc = rv_store_stats(store, &stats, &err);
    if (rc == RV_E_NOT_FOUND)
        check_new_store(rv_buf_cstr(&path), c);
    else if (rc < 0)
        line(c, 2, "store", "%s", rv_err_text(rv_err_cause(err) ? rv_err_cause(err) : err));
    else if (access(rv_buf_cstr(&path), W_OK) != 0)
        line(c, 2, "store", "%s can be read, but not written: %s", rv_buf_cstr(&path), strerror(errno));
    else
        line(c, 0, "store", "%s: %lld runs, %lld wait for an answer", rv_buf_cstr(&path), (long long)stats.runs,
             (long long)stats.pending);
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
            line(c, 0, programs[i], "found (needed to build capabilities)");
        else
            line(c, 1, programs[i], "not found: only needed to build capabilities");
    }
}

static int doctor(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct checkup c = {.text = RV_BUF_INIT(MAX_TEXT_BYTES), .color = cli->out_color};

    line(&c, 0, "reeve", "%s, capability ABI %d", RV_VERSION, RV_CAP_ABI);
    check_capabilities(cli, &c);
    check_store(cli, args, &c);
    check_tools(&c);
    line(&c, 1, "model providers", "this build has the scripted one: model stages answer from --script files or mocks");
    int status = rv_cli_print(cli, &c.text);
    return status ? status : c.n_bad ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

/* --- docs: pages made from the tables --- */

static void write_terms(rv_buf *b)
{
    size_t n;
    const struct rv_term_list *lists = rv_term_lists(&n);

    rv_buf_puts(
        b, "# Words\n\nGenerated by `reeve docs reference words`; do not edit. Every word that the engine reads or "
           "writes, by kind.\n");
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(b, "\n## %s\n\n| word | meaning |\n| --- | --- |\n", lists[i].kind);
        for (size_t t = 0; t < lists[i].n; t++)
            rv_buf_printf(b, "| `%s` | %s |\n", lists[i].terms[t].text, lists[i].terms[t].meaning);
    }
    rv_buf_puts(b, "\n## error code\n\n| code | meaning |\n| --- | --- |\n");
#define X(name, text, meaning) rv_buf_puts(b, "| `" text "` | " meaning " |\n");
    RV_CODES(X)
#undef X
    rv_buf_puts(b, "\n## event type\n\n| type | meaning |\n| --- | --- |\n");
#define X(name, text, meaning) rv_buf_puts(b, "| `" text "` | " meaning " |\n");
    RV_EMITS(X)
#undef X
}

static int docs(struct rv_cli *cli, const struct rv_cli_args *args)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    const char *what = args->words[0], *which = args->n_words > 1 ? args->words[1] : "";
    rv_err *err = NULL;

    if (strcmp(what, "man") == 0) {
        const struct rv_cli_verb *verb = which[0] ? rv_cli_find_verb(which, NULL) : NULL;
        if (which[0] && !verb)
            return rv_cli_usage(cli, args, "unknown verb \"%s\"", which);
        rv_cli_write_man(verb, &text);
    } else if (strcmp(what, "completion") == 0) {
        if (rv_cli_write_completion(rv_str_of(which), &text, &err) < 0)
            return rv_cli_report(cli, err);
    } else if (strcmp(what, "reference") == 0 && strcmp(which, "cli") == 0) {
        rv_cli_write_reference(&text);
    } else if (strcmp(what, "reference") == 0 && strcmp(which, "functions") == 0) {
        rv_fn_write_reference(&text);
    } else if (strcmp(what, "reference") == 0 && strcmp(which, "pipelines") == 0) {
        rv_pipeline_write_reference(&text);
    } else if (strcmp(what, "reference") == 0 && strcmp(which, "retention") == 0) {
        rv_retention_write_reference(&text);
    } else if (strcmp(what, "reference") == 0 && strcmp(which, "words") == 0) {
        write_terms(&text);
    } else if (strcmp(what, "verbs") == 0) {
        for (size_t i = 0; rv_cli_verbs[i]; i++)
            if (!rv_cli_verbs[i]->hidden)
                rv_buf_printf(&text, "%s\n", rv_cli_verbs[i]->name);
    } else {
        return rv_cli_usage(cli, args, "nothing is made for \"%s %s\"", what, which);
    }
    return rv_cli_print(cli, &text);
}

static const struct rv_cli_option version_options[] = {{"json", 'j', NULL, "as JSON", NULL, false}};

const struct rv_cli_verb rv_verb_version = {
    .name = "version",
    .args = "",
    .summary = "print version, ABI and features",
    .text = "Prints the version, the capability ABI, the state version, the model providers and the libraries.",
    .examples = "reeve version --json",
    .options = version_options,
    .n_options = RV_COUNT(version_options),
    .run = version,
};
const struct rv_cli_verb rv_verb_doctor = {
    .name = "doctor",
    .args = "",
    .summary = "check the environment",
    .text = "Says what reeve finds on this machine: capabilities, the store of runs, what is needed to build\n"
            "capabilities, model providers. Exit status 1 if something would keep it from working.",
    .examples = "reeve doctor",
    .run = doctor,
};
const struct rv_cli_verb rv_verb_docs = {
    .name = "docs",
    .args = "man [VERB]|completion SHELL|reference PAGE|verbs",
    .summary = "print man pages, shell completion and generated reference pages",
    .text = "Everything here is made from the tables that the program itself works by. Pages: cli, functions,\n"
            "pipelines, retention, words.",
    .examples = "reeve docs completion bash > /etc/bash_completion.d/reeve\nreeve docs man run | man -l -\n"
                "reeve docs reference cli > docs/reference/cli.md",
    .min_words = 1,
    .max_words = 2,
    .run = docs,
};
