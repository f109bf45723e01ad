/* reeve inspect: what capabilities offer, without running any of it. */
#include "coreengine/cli/verbs/verbs.h"
#include "coreengine/model/provider/provider.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT_BYTES ((size_t)16 << 20)

/* One capability by name or path, as a member of the set. */
static int load_one(rv_plugins *plugins, const char *name, rv_err **err)
{
    struct rv_capability_config which = {.name = name};
    return rv_plugins_load(plugins, &which, err);
}

static const char *text_of(json_object *obj, const char *key)
{
    const char *text = NULL;
    return rv_json_get_text(obj, key, &text) ? text : "";
}

static void write_entry(json_object *entry, rv_buf *b)
{
    static const char *const details[] = {"risk", "effect", "category"};

    rv_buf_printf(b, "    %-24s %s\n", text_of(entry, "name"), text_of(entry, "description"));
    bool any = false;
    for (size_t i = 0; i < RV_COUNT(details); i++) {
        const char *value = text_of(entry, details[i]);
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
    if (!properties)
        return;
    json_object_object_foreach (properties, key, prop) {
        bool known = json_object_is_type(prop, json_type_object);
        rv_buf_printf(b, "      %-22s %s %s\n", key, known ? text_of(prop, "type") : "",
                      known ? text_of(prop, "description") : "");
    }
}

static void write_capability(json_object *cap, bool color, rv_buf *b)
{
    rv_buf_printf(b, "%s%s%s %s  %s\n  %s\n", color ? "\033[1m" : "", text_of(cap, "name"), color ? "\033[0m" : "",
                  text_of(cap, "version"), text_of(cap, "description"), text_of(cap, "path"));
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
}

static int describe(rv_plugins *plugins, json_object **out, rv_err **err)
{
    rv_buf json = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&json);
    const struct rv_json_opts opts = {.max_bytes = MAX_TEXT_BYTES};

    rv_plugins_write_json(plugins, &w);
    int rc = rv_buf_check(&json, "list of capabilities", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&json), &opts, out, err);
    rv_buf_fini(&json);
    return rc;
}

static int print_all(struct rv_cli *cli, rv_plugins *plugins, bool as_json, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    json_object *list = NULL;

    int rc = describe(plugins, &list, err);
    for (size_t i = 0; rc == 0 && !as_json && i < json_object_array_length(list); i++)
        write_capability(json_object_array_get_idx(list, i), cli->out_color, &text);
    if (rc == 0 && as_json) {
        rv_json_write(list, &text);
        rv_buf_putc(&text, '\n');
    }
    if (rc == 0)
        rc = rv_buf_check(&text, "list of capabilities", err);
    if (rc == 0)
        rv_cli_out(rv_buf_str(&text));
    json_object_put(list);
    rv_buf_fini(&text);
    return rc;
}

/* --- providers of models --- */

static void write_provider_json(const struct rv_provider_info *p, rv_jw *w)
{
    static const char *const wires[RV_N_WIRES] = {
        [RV_WIRE_OPENAI] = "chat-completions", [RV_WIRE_ANTHROPIC] = "messages", [RV_WIRE_OLLAMA] = "ollama"};

    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", p->name);
    rv_jw_kv_text(w, "description", p->description);
    rv_jw_kv_text(w, "wire", wires[p->wire]);
    rv_jw_kv_text(w, "base_url", p->base_url);
    rv_jw_kv_text(w, "base_url_env", p->base_url_env);
    rv_jw_kv_text(w, "key_env", p->key_env);
    rv_jw_kv_bool(w, "needs_key", p->needs_key);
    rv_jw_obj_end(w);
}

static void write_provider(const struct rv_provider_info *p, bool color, rv_buf *b)
{
    rv_buf_printf(b, "%s%s%s  %s\n  address  %s", color ? "\033[1m" : "", p->name, color ? "\033[0m" : "",
                  p->description, p->base_url ? p->base_url : "none of its own");
    if (p->base_url_env)
        rv_buf_printf(b, "; %s or base_url says another", p->base_url_env);
    rv_buf_puts(b, "\n  key      ");
    if (p->key_env)
        rv_buf_printf(b, "%s%s\n", p->key_env, p->needs_key ? "" : ", if the server wants one");
    else
        rv_buf_puts(b, "none\n");
}

/* Those of a capability: their addresses and keys are in its configuration. */
static void write_brought(json_object *cap, bool color, rv_jw *w, rv_buf *b)
{
    json_object *list = rv_json_get_arr(cap, "providers");

    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        if (w) {
            rv_jw_obj(w);
            rv_jw_kv_text(w, "name", text_of(entry, "name"));
            rv_jw_kv_text(w, "description", text_of(entry, "description"));
            rv_jw_kv_text(w, "capability", text_of(cap, "name"));
            rv_jw_obj_end(w);
        } else {
            rv_buf_printf(b, "%s%s%s  %s\n  of the capability %s\n", color ? "\033[1m" : "", text_of(entry, "name"),
                          color ? "\033[0m" : "", text_of(entry, "description"), text_of(cap, "name"));
        }
    }
}

static int print_providers(struct rv_cli *cli, rv_plugins *plugins, bool as_json, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);
    json_object *caps = NULL;
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    int rc = describe(plugins, &caps, err);
    if (as_json)
        rv_jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        if (as_json)
            write_provider_json(&list[i], &w);
        else
            write_provider(&list[i], cli->out_color, &text);
    }
    for (size_t i = 0; rc == 0 && i < json_object_array_length(caps); i++)
        write_brought(json_object_array_get_idx(caps, i), cli->out_color, as_json ? &w : NULL, &text);
    if (as_json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    } else {
        rv_buf_printf(&text, "%sscripted%s  Answers from a script; any model\n", cli->out_color ? "\033[1m" : "",
                      cli->out_color ? "\033[0m" : "");
    }
    if (rc == 0)
        rc = rv_buf_check(&text, "list of providers", err);
    if (rc == 0)
        rv_cli_out(rv_buf_str(&text));
    json_object_put(caps);
    rv_buf_fini(&text);
    return rc;
}
/* Load what was asked for, or all that is on the path; capabilities that fail to load are reported, and the others
 * shown. */
static int inspect_names(struct rv_cli *cli, const struct rv_cli_args *args, rv_plugins *plugins, char **dirs,
                         size_t n_dirs)
{
    char **names = NULL;
    size_t n = 0;
    rv_err *err = NULL;
    int status = RV_EXIT_COMPLETED;

    if (args->n_words == 0 && rv_plugins_available((const char *const *)dirs, n_dirs, &names, &n, &err) < 0)
        return rv_cli_report(cli, err);
    if (args->n_words == 0 && n == 0 && !rv_cli_flag(args, "providers")) {
        rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
        rv_buf_puts(&text, "no capability found in:\n");
        for (size_t i = 0; i < n_dirs; i++)
            rv_buf_printf(&text, "  %s\n", dirs[i]);
        rv_cli_err(rv_buf_str(&text));
        rv_buf_fini(&text);
    }
    for (size_t i = 0; i < (args->n_words ? args->n_words : n); i++) {
        const char *name = args->n_words ? args->words[i] : names[i];
        err = NULL;
        if (load_one(plugins, name, &err) < 0)
            status = rv_cli_report(cli, err);
        else if (rv_cli_flag(args, "check"))
            rv_cli_err(RV_STR_LIT("ok: descriptor, entries, schemas and open\n"));
    }
    rv_plugins_path_free(names);
    err = NULL;
    bool as_json = rv_cli_flag(args, "json");
    int rc = rv_cli_flag(args, "providers") ? print_providers(cli, plugins, as_json, &err)
                                            : print_all(cli, plugins, as_json, &err);
    if (rc < 0)
        status = rv_cli_report(cli, err);
    return status;
}

static int inspect(struct rv_cli *cli, const struct rv_cli_args *args)
{
    char **dirs = NULL;
    size_t n_dirs = 0;
    rv_plugins *plugins = NULL;
    rv_err *err = NULL;
    int status;

    if (rv_cli_flag(args, "providers") && (args->n_words > 0 || rv_cli_flag(args, "check")))
        return rv_cli_usage(cli, args, "--providers takes no capability and no --check");
    int rc = rv_plugins_path(cli->app.capability_dirs, cli->app.n_capability_dirs, ".", &dirs, &n_dirs, &err);
    if (rc == 0) {
        struct rv_plugins_opts opts = {
            .dirs = (const char *const *)dirs, .n_dirs = n_dirs, .base_dir = ".", .log = cli->app.log};
        rc = rv_plugins_new(&opts, &plugins, &err);
    }
    status = rc < 0 ? rv_cli_report(cli, err) : inspect_names(cli, args, plugins, dirs, n_dirs);
    rv_plugins_free(plugins);
    rv_plugins_path_free(dirs);
    return status;
}

static const struct rv_cli_option inspect_options[] = {
    {"json", 'j', NULL, "print JSON, with complete schemas", NULL, false},
    {"check", 0, NULL, "check that each capability follows the rules of the SDK", NULL, false},
    {"providers", 0, NULL, "list model providers instead, with their addresses and environment variables", NULL, false},
};

const struct rv_cli_verb rv_verb_inspect = {
    .name = "inspect",
    .args = "[CAPABILITY...]",
    .summary = "list capabilities, what they provide, and model providers",
    .text =
        "CAPABILITY is a name on the capability path or the path of a .so file; without one, all capabilities on the\n"
        "path are listed with their tools, hooks, policies, mocks, routing functions, providers, prompts and agents.\n"
        "No function of them is called. --providers lists all model providers, built in or from capabilities: the\n"
        "words before the colon in `model: provider:model`.",
    .examples = "reeve inspect\nreeve inspect files --json\nreeve inspect hello --check\nreeve inspect --providers",
    .options = inspect_options,
    .n_options = RV_COUNT(inspect_options),
    .min_words = 0,
    .max_words = 64,
    .run = inspect,
};
