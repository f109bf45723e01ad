/* reeve inspect: what capabilities offer, without running any of it; and the process that has the code of one with
 * `isolation: process`. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT_BYTES ((size_t)16 << 20) /* of a state that is printed: a person reads it */

/* As a plan writes references to them, without the number of the call. */
static void write_fields(json_object *fields, rv_buf *b)
{
    for (size_t i = 0; fields && i < json_object_array_length(fields); i++) {
        json_object *field = json_object_array_get_idx(fields, i);
        rv_buf_printf(b, "      output.%-15s %s\n", rv_json_text_or(field, "path", ""),
                      rv_json_text_or(field, "type", ""));
    }
}

static void write_entry(json_object *entry, rv_buf *b)
{
    static const char *const details[] = {"risk", "effect", "category"};

    rv_buf_printf(b, "    %-24s %s\n", rv_json_text_or(entry, "name", ""), rv_json_text_or(entry, "description", ""));
    bool any = false;
    for (size_t i = 0; i < RV_COUNT(details); i++) {
        const char *value = rv_json_text_or(entry, details[i], "");
        if (value[0]) {
            rv_buf_printf(b, "%s%s %s", any ? ", " : "      ", details[i], value);
            any = true;
        }
    }
    if (any)
        rv_buf_putc(b, '\n');
    json_object *tools = rv_json_get_arr(entry, "tools"); /* of an agent */
    for (size_t i = 0; tools && i < json_object_array_length(tools); i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(tools, i));
        rv_buf_printf(b, "%s%s%s", i ? ", " : "      tools ", name,
                      i + 1 == json_object_array_length(tools) ? "\n" : "");
    }
    json_object *schema = rv_json_get_obj(entry, "input_schema");
    json_object *properties = schema ? rv_json_get_obj(schema, "properties") : NULL;
    if (properties) {
        json_object_object_foreach (properties, key, prop) {
            bool known = json_object_is_type(prop, json_type_object);
            rv_buf_printf(b, "      %-22s %s %s\n", key, known ? rv_json_text_or(prop, "type", "") : "",
                          known ? rv_json_text_or(prop, "description", "") : "");
        }
    }
    write_fields(rv_json_get_arr(entry, "output_fields"), b);
}

/* What it says of itself, which may be anything. */
static void write_capability(json_object *cap, bool color, rv_buf *out)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_buf *b = &text;

    rv_buf_printf(out, "%s%s%s", color ? "\033[1m" : "", rv_json_text_or(cap, "name", ""), color ? "\033[0m" : "");
    rv_buf_printf(b, " %s  %s\n  %s\n", rv_json_text_or(cap, "version", ""), rv_json_text_or(cap, "description", ""),
                  rv_json_text_or(cap, "path", ""));
    json_object_object_foreach (cap, key, list) {
        if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) == 0)
            continue;
        rv_buf_printf(b, "  %s\n", key);
        for (size_t i = 0; i < json_object_array_length(list); i++) {
            json_object *entry = json_object_array_get_idx(list, i);
            if (json_object_is_type(entry, json_type_object))
                write_entry(entry, b);
        }
    }
    rv_buf_putc(b, '\n');
    cli_write_safe(rv_buf_str(b), out);
}

static void write_attachments(json_object *list, rv_buf *b)
{
    size_t n = list ? json_object_array_length(list) : 0;

    rv_buf_puts(b, "  attached ");
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(b, "%s%s", i > 0 ? ", " : "", json_object_get_string(json_object_array_get_idx(list, i)));
    rv_buf_puts(b, n > 0 ? "\n" : "nothing\n");
}

static void write_provider(json_object *p, bool color, rv_buf *b)
{
    const char *address = rv_json_text_or(p, "base_url", ""), *key = rv_json_text_or(p, "key_env", "");

    rv_buf_printf(b, "%s%s%s  %s\n", color ? "\033[1m" : "", rv_json_text_or(p, "name", ""), color ? "\033[0m" : "",
                  rv_json_text_or(p, "description", ""));
    if (rv_json_text_or(p, "capability", "")[0]) {
        rv_buf_printf(b, "  of the capability %s\n", rv_json_text_or(p, "capability", ""));
        return;
    }
    rv_buf_printf(b, "  address  %s", address[0] ? address : "none of its own");
    if (rv_json_text_or(p, "base_url_env", "")[0])
        rv_buf_printf(b, "; %s or base_url says another", rv_json_text_or(p, "base_url_env", ""));
    bool needs_key = rv_json_bool_or(p, "needs_key", false);
    rv_buf_printf(b, "\n  key      %s%s\n", key[0] ? key : "none",
                  key[0] && !needs_key ? ", if the server wants one" : "");
    write_attachments(rv_json_get_arr(p, "attachments"), b);
}

static int print_list(struct rv_cli *cli, rv_plugins *plugins, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    bool providers = cli_flag(cli, "providers"), color = cli->out_color;
    json_object *list = NULL;

    int rc = providers ? rv_app_build_providers(plugins, &list, err) : rv_app_build_capabilities(plugins, &list, err);
    if (rc == 0 && cli_flag(cli, "json")) {
        rv_json_write(list, &text);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        for (size_t i = 0; i < json_object_array_length(list); i++)
            (providers ? write_provider : write_capability)(json_object_array_get_idx(list, i), color, &text);
        if (providers)
            rv_buf_printf(&text, "%sscripted%s  Answers from a script; any model\n", color ? "\033[1m" : "",
                          color ? "\033[0m" : "");
    }
    json_object_put(list);
    return cli_print(rc, &text, err);
}

/* --- --check --- */

static void write_rule(json_object *rule, bool color, rv_buf *b)
{
    json_object *findings = rv_json_get_arr(rule, "findings");
    int64_t checked = rv_json_int_or(rule, "checked", 0), kept = rv_json_int_or(rule, "kept", 0);
    bool is_error = rv_json_bool_or(rule, "is_error", false);
    const char *word = kept == checked ? "ok" : is_error ? "broken" : "advice";
    const char *paint = !color ? "" : kept == checked ? "\033[32m" : is_error ? "\033[31m" : "\033[33m";
    rv_buf_printf(b, "  %s%-7s%s%3lld/%-3lld %-16s %s\n", paint, word, color ? "\033[0m" : "", (long long)kept,
                  (long long)checked, rv_json_text_or(rule, "rule", ""), rv_json_text_or(rule, "text", ""));
    for (size_t i = 0; findings && i < json_object_array_length(findings); i++) {
        json_object *one = json_object_array_get_idx(findings, i);
        const char *entry = rv_json_text_or(one, "entry", "");
        rv_buf_printf(b, "          %s%s%s\n", entry, *entry ? ": " : "", rv_json_text_or(one, "text", ""));
    }
    if (kept < checked)
        rv_buf_printf(b, "          hint: %s\n", rv_json_text_or(rule, "hint", ""));
}

static void write_check(json_object *report, bool color, rv_buf *b)
{
    json_object *rules = rv_json_get_arr(report, "rules");
    int64_t score = rv_json_int_or(report, "score", 0);
    bool ok = rv_json_bool_or(report, "ok", false);
    const char *version = rv_json_text_or(report, "version", "");
    rv_buf_printf(b, "%s%s%s: %s, score %lld of 100\n", rv_json_text_or(report, "capability", ""), *version ? " " : "",
                  version, ok ? "ok" : "broken", (long long)score);
    for (size_t i = 0; rules && i < json_object_array_length(rules); i++)
        write_rule(json_object_array_get_idx(rules, i), color, b);
}

/* One capability; its report is appended as JSON, or as text. */
static int check_one(struct rv_cli *cli, const struct rv_plugins_opts *opts, const char *name, rv_buf *text, bool *ok,
                     rv_err **err)
{
    rv_buf json = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&json);
    json_object *report = NULL;

    int rc = rv_app_conform(opts, name, &w, ok, err);
    if (rc == 0)
        rc = rv_buf_check(&json, "report", err);
    if (rc == 0 && cli_flag(cli, "json")) {
        rv_buf_add_str(text, rv_buf_str(&json));
    } else if (rc == 0) {
        rc = rv_json_parse(rv_buf_str(&json), NULL, &report, err);
        if (rc == 0)
            write_check(report, cli->out_color, text);
    }
    json_object_put(report);
    rv_buf_fini(&json);
    return rc;
}

static int check(struct rv_cli *cli, const struct rv_plugins_opts *opts, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    bool json = cli_flag(cli, "json");
    int status = RV_EXIT_COMPLETED, rc = 0;
    char **names = NULL;
    size_t n = 0;

    if (cli->n_words == 0)
        rc = rv_plugins_find_available(opts->dirs, opts->n_dirs, &names, &n, err);
    else
        n = cli->n_words;
    if (json)
        rv_buf_putc(&text, '[');
    for (size_t i = 0; i < n && rc == 0; i++) {
        bool ok = false;
        rv_err *fault = NULL;
        if (json && i > 0)
            rv_buf_putc(&text, ',');
        if (check_one(cli, opts, names ? names[i] : cli->words[i], &text, &ok, &fault) < 0)
            status = cli_report(cli, fault);
        else if (!ok)
            status = RV_EXIT_USAGE;
    }
    if (json)
        rv_buf_puts(&text, "]\n");
    rv_plugins_path_free(names);
    rc = cli_print(rc, &text, err);
    return rc < 0 ? rc : status;
}

/* Load what was asked for, or all that is on the path; capabilities that fail to load are reported, and the others
 * shown. */
static int inspect_names(struct rv_cli *cli, rv_plugins *plugins, char **dirs, size_t n_dirs, rv_err **err)
{
    char **names = NULL;
    size_t n = 0;
    int status = RV_EXIT_COMPLETED;

    int rc = cli->n_words ? 0 : rv_plugins_find_available((const char *const *)dirs, n_dirs, &names, &n, err);
    if (rc < 0)
        return rc;
    if (cli->n_words == 0 && n == 0 && !cli_flag(cli, "providers")) {
        cli_say("no capability found in:\n");
        for (size_t i = 0; i < n_dirs; i++)
            cli_say("  %s\n", dirs[i]);
    }
    for (size_t i = 0; i < (cli->n_words ? cli->n_words : n); i++) {
        const struct rv_capability_config which = {.name = cli->n_words ? cli->words[i] : names[i]};
        rv_err *fault = NULL;
        if (rv_plugins_load(plugins, &which, &fault) < 0)
            status = cli_report(cli, fault);
    }
    rv_plugins_path_free(names);
    rc = print_list(cli, plugins, err);
    return rc < 0 ? rc : status;
}

static int inspect(struct rv_cli *cli, rv_err **err)
{
    char **dirs = NULL;
    size_t n_dirs = 0;
    rv_plugins *plugins = NULL;

    if (cli_flag(cli, "providers") && (cli->n_words > 0 || cli_flag(cli, "check")))
        return cli_usage(cli, err, "--providers takes no capability and no --check");
    int rc = rv_plugins_path_new(cli->app.capability_dirs, cli->app.n_capability_dirs, NULL, &dirs, &n_dirs, err);
    if (rc == 0) {
        struct rv_plugins_opts opts = {
            .dirs = (const char *const *)dirs, .n_dirs = n_dirs, .base_dir = ".", .log = cli->app.log};
        if (cli_flag(cli, "check")) {
            rc = check(cli, &opts, err);
        } else {
            rc = rv_plugins_new(&opts, &plugins, err);
            if (rc == 0)
                rc = inspect_names(cli, plugins, dirs, n_dirs, err);
        }
    }
    rv_plugins_free(plugins);
    rv_plugins_path_free(dirs);
    return rc;
}

/* The other side of `isolation: process`. */
static int host(struct rv_cli *cli, rv_err **err)
{
    char *end = NULL;
    long fd = strtol(cli->words[0], &end, 10);

    if (*end || fd < 3 || fd > 1024 || fcntl((int)fd, F_GETFD) < 0)
        return cli_usage(cli, err, "\"%s\" is not a socket of an engine", cli->words[0]);
    return rv_plugin_serve((int)fd);
}

static const struct rv_cli_option inspect_options[] = {
    {"json", 'j', NULL, "print JSON, with complete schemas", NULL, false},
    {"check", 0, NULL, "check that each capability follows the rules of the SDK; calls tools that only read", NULL,
     false},
    {"providers", 0, NULL, "list model providers instead, with their addresses and environment variables", NULL, false},
};

const struct rv_cli_verb verb_inspect = {
    .name = "inspect",
    .args = "[CAPABILITY...]",
    .summary = "list capabilities, what they provide, and model providers",
    .text =
        "CAPABILITY is a name on the capability path or the path of a .so file; without one, all capabilities on the\n"
        "path are listed with their tools, hooks, policies, mocks, routing functions, providers, prompts and agents.\n"
        "No function of them is called, but by --check: it says of each rule of the SDK how often it was kept, what "
        "to\n"
        "do, and a score. It runs the capability in a process of its own and calls the tools whose effect is `safe`, "
        "with\n"
        "arguments made up from their schemas. Exit status 2: a rule is broken that is not only advice. --providers "
        "lists all model providers, built in or from capabilities: the\n"
        "words before the colon in `model: provider:model`.",
    .examples = "reeve inspect\nreeve inspect files --json\nreeve inspect hello --check\nreeve inspect --providers",
    RV_CLI_OPTIONS(inspect_options),
    .max_words = 64,
    .run = inspect,
};

const struct rv_cli_verb verb_capability_host = {
    .name = "capability-host",
    .args = "FD",
    .summary = "run the code of one capability for another process",
    .text = "The other side of `isolation: process`; the engine starts it.",
    .examples = "",
    RV_CLI_ONE_WORD,
    .run = host,
    .hidden = true,
};
