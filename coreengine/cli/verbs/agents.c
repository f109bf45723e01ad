/* reeve agents: which there are, and one of them as its document. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/show/table.h"
#include "coreengine/cli/sources.h"
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>

#define MAX_TEXT_BYTES ((size_t)64 << 20)

static const char *mode_of(const struct rv_agentdoc *doc)
{
    return rv_agentdoc_is_structured(doc, RV_UNSET) ? "structured" : "conversational";
}

/* --- list --- */

struct listing {
    const struct rv_app_sources *sources;
    rv_buf *warnings;
    rv_cli_table *table;
    rv_jw *json;   /* NULL: as a table */
    rv_buf *names; /* names only; NULL: not asked for */
    size_t n;
};

static void add_tools(rv_cli_table *t, const struct rv_agentdoc *doc)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);

    for (size_t i = 0; i < doc->n_tools; i++)
        rv_buf_printf(&text, "%s%s", i ? ", " : "", doc->tools[i].name);
    rv_cli_table_add(t, doc->n_tools ? rv_buf_str(&text) : RV_STR_LIT("-"));
    rv_buf_fini(&text);
}

/* What is wrong itself, without where it was met. */
static const char *fault_text(const rv_err *fault)
{
    while (fault && rv_err_cause(fault))
        fault = rv_err_cause(fault);
    return fault ? rv_err_text(fault) : NULL;
}

static void add_row(rv_cli_table *t, const char *name, const struct rv_agents_found *found, const rv_err *fault)
{
    const struct rv_agentdoc *doc = found->doc;

    rv_cli_table_add_text(t, name);
    rv_cli_table_add_text(t, doc ? mode_of(doc) : "faulty");
    rv_cli_table_add_text(t, doc ? doc->model : NULL);
    rv_cli_table_add_text(t, found->source);
    if (doc)
        add_tools(t, doc);
    else
        rv_cli_table_add_text(t, fault_text(fault));
}

static void write_row(rv_jw *w, const char *name, const struct rv_agents_found *found, const char *hidden,
                      const rv_err *fault)
{
    const struct rv_agentdoc *doc = found->doc;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", name);
    rv_jw_kv_bool(w, "valid", doc != NULL);
    rv_jw_kv_text(w, "source", found->source);
    rv_jw_kv_text(w, "place", found->place);
    if (hidden)
        rv_jw_kv_text(w, "hides", hidden);
    if (doc) {
        rv_jw_kv_text(w, "mode", mode_of(doc));
        rv_jw_kv_text(w, "model", doc->model);
        rv_jw_kv_text(w, "version", doc->version);
        rv_jw_kv_text(w, "description", doc->short_description ? doc->short_description : doc->description);
        rv_jw_key(w, "tools");
        rv_jw_arr(w);
        for (size_t i = 0; i < doc->n_tools; i++)
            rv_jw_text(w, doc->tools[i].name);
        rv_jw_arr_end(w);
        rv_jw_kv_text(w, "kind", doc->kind);
        rv_jw_kv_text(w, "author", doc->author);
        rv_jw_key(w, "tags");
        rv_jw_arr(w);
        for (size_t i = 0; i < doc->tags.n; i++)
            rv_jw_text(w, doc->tags.items[i]);
        rv_jw_arr_end(w);
    } else if (fault) {
        rv_jw_key(w, "error");
        rv_err_write_json(fault, w);
    }
    rv_jw_obj_end(w);
}

static int take_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                      rv_err **err)
{
    struct listing *l = self;
    const char *hidden = rv_agents_hidden(l->sources->agents, name, found);

    (void)err;
    l->n++;
    if (hidden)
        rv_cli_write_hidden(name, found, hidden, l->warnings);
    if (l->json)
        write_row(l->json, name, found, hidden, fault);
    else if (l->names)
        rv_buf_printf(l->names, "%s\n", name);
    else
        add_row(l->table, name, found, fault);
    return 0;
}

static int list(struct rv_cli *cli, const struct rv_cli_args *args)
{
    static const struct rv_cli_column columns[] = {
        {"AGENT", 40, false}, {"MODE", 0, false}, {"MODEL", 40, false}, {"SOURCE", 0, false}, {"TOOLS", 80, false}};
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);
    bool json = rv_cli_flag(args, "json"), names = rv_cli_flag(args, "names");
    struct listing l = {
        .table = rv_cli_table_new(columns, RV_COUNT(columns)), .json = json ? &w : NULL, .names = names ? &text : NULL};
    struct rv_app_sources sources = {0};
    rv_buf warnings = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_err *err = NULL;
    int status;

    l.sources = &sources;
    l.warnings = &warnings;
    if (json && names) {
        rv_cli_table_free(l.table);
        return rv_cli_usage(cli, args, "--json and --names exclude each other");
    }
    int rc = l.table ? rv_app_sources_open(&cli->app, RV_APP_STORE_READ, &sources, &err)
                     : RV_FAIL(&err, RV_E_NOMEM, "list agents");
    if (json)
        rv_jw_arr(&w);
    if (rc == 0)
        rc = rv_agents_list(sources.agents, &sources.scope, take_agent, &l, &err);
    if (json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0 && !names) {
        rc = rv_cli_table_write(l.table, cli->out_color, &text, &err);
    }
    if (rc < 0) {
        rv_buf_fini(&text);
        status = rv_cli_report(cli, err);
    } else {
        status = rv_cli_print(cli, &text);
        rv_cli_err(rv_buf_str(&warnings));
        if (l.n == 0 && !json && !names)
            rv_cli_err(RV_STR_LIT("no agents found: add one with `reeve agents put FILE` or --schema-dir DIR\n"));
    }
    rv_buf_fini(&warnings);
    rv_cli_table_free(l.table);
    rv_app_sources_fini(&sources);
    return status;
}

/* --- show --- */

static void write_head(const struct rv_agents_found *found, rv_buf *b)
{
    const struct rv_agentdoc *doc = found->doc;

    rv_buf_printf(b, "# %s: ", doc->name);
    rv_cli_write_source(found, b);
    rv_buf_printf(b, "; %s, model %s, %zu tool%s\n", mode_of(doc), doc->model ? doc->model : "as asked for",
                  doc->n_tools, doc->n_tools == 1 ? "" : "s");
}

static int show(struct rv_cli *cli, const struct rv_cli_args *args)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    bool json = rv_cli_flag(args, "json"), yaml = rv_cli_flag(args, "yaml");
    struct rv_app_sources sources;
    struct rv_agents_found found;
    rv_err *err = NULL;

    if (json && yaml)
        return rv_cli_usage(cli, args, "--json and --yaml exclude each other");
    if (rv_app_sources_open(&cli->app, RV_APP_STORE_READ, &sources, &err) < 0)
        return rv_cli_report(cli, err);
    int rc = rv_agents_find(sources.agents, &sources.scope, args->words[0], &found, &err);
    if (rc == 0 && json) {
        rv_jw w = rv_jw_on(&text);
        rv_agentdoc_write_json(found.doc, &w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        if (!yaml)
            write_head(&found, &text);
        rv_agentdoc_write_yaml(found.doc, &text);
    }
    if (rc == 0)
        rv_cli_warn_hidden(sources.agents, args->words[0], &found);
    rv_app_sources_fini(&sources);
    if (rc == 0)
        return rv_cli_print(cli, &text);
    rv_buf_fini(&text);
    return rv_cli_report(cli, err);
}

static const struct rv_cli_option list_options[] = {
    {"json", 'j', NULL, "print a JSON array of objects", NULL, false},
    {"names", 0, NULL, "print names only, one a line", NULL, false},
    RV_CLI_SOURCES_OPTIONS,
};
static const struct rv_cli_option show_options[] = {
    {"json", 'j', NULL, "print only the flat document, as JSON", NULL, false},
    {"yaml", 'y', NULL, "print only the flat document, as YAML", NULL, false},
    RV_CLI_SOURCES_OPTIONS,
};

static const struct rv_cli_verb list_verb = {
    .name = "agents list",
    .args = "",
    .summary = "list agents and where they come from",
    .text =
        "Lists each agent once, as a run would find it: the store comes first, then built-in agents, then the folder.\n"
        "A document with errors is listed with its errors.",
    .examples = "reeve agents\n"
                "reeve agents list --schema-dir agents --no-store\n"
                "reeve agents list --json | jq -r '.[] | select(.mode == \"structured\") | .name'",
    .options = list_options,
    .n_options = RV_COUNT(list_options),
    .run = list,
};
static const struct rv_cli_verb show_verb = {
    .name = "agents show",
    .args = "NAME",
    .summary = "show the document of an agent in its flat form",
    .text = "Prints where the agent comes from and its document with every key at its normal place, regardless of the\n"
            "form in which it was written.",
    .examples = "reeve agents show general\n"
                "reeve agents show general --yaml > general.yaml",
    .options = show_options,
    .n_options = RV_COUNT(show_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_agents,
    .run = show,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb,
    &show_verb,
    &rv_verb_agents_put,
    &rv_verb_agents_validate,
    &rv_verb_agents_delete,
    &rv_verb_agents_prompt,
    NULL,
};

const struct rv_cli_verb rv_verb_agents = {
    .name = "agents",
    .args = "VERB",
    .summary = "list, inspect and change declared agents",
    .text =
        "An agent is a document that declares a prompt, tools, an output and limits. The store keeps the agents that\n"
        "users put there; capabilities and folders provide others.",
    .examples = "reeve agents                          # all of them\n"
                "reeve agents validate agent.yaml\n"
                "reeve agents put agent.yaml           # for everybody\n"
                "reeve agents prompt general --all     # what a model is told",
    .subs = subs,
};
