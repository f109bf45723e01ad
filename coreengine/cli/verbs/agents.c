/* reeve agents list, show, prompt: the agents, one of them as its document, and what a model is told by it. */
#include "coreengine/app/app.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"
#include "coreengine/conversation/conversation.h"

#include <string.h>

#define MAX_TEXT_BYTES ((size_t)64 << 20) /* of all documents that are printed: 256 of RV_AGENTDOC_MAX_BYTES */

/* --- where an agent was found --- */

void cli_write_source(const struct rv_agents_found *found, rv_buf *b)
{
    static const struct {
        const char *source, *text;
    } texts[] = {{"store", "in the store"}, {"built-in", "built in, by"}, {"file", "in the file"}};
    const char *text = found->source;

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        if (strcmp(found->source, texts[i].source) == 0)
            text = texts[i].text;
    rv_buf_puts(b, text);
    if (found->place && found->place[0] && strcmp(found->source, "store") != 0) {
        rv_buf_putc(b, ' ');
        cli_write_word(found->place, b);
    }
}

static void write_hidden(const char *name, const struct rv_agents_found *found, const char *hidden, rv_buf *b)
{
    rv_buf_puts(b, "warning: agent ");
    cli_write_word(name, b);
    rv_buf_puts(b, " is the one ");
    cli_write_source(found, b);
    rv_buf_puts(b, "; it hides the one in the file ");
    cli_write_word(hidden, b);
    rv_buf_puts(b, "\n  hint: give that one another name, or put it into the store with `reeve agents put`\n");
}

void cli_warn_hidden(const rv_agents *agents, const char *name, const struct rv_agents_found *found)
{
    const char *hidden = rv_agents_hidden(agents, name, found);
    rv_buf text = RV_BUF_INIT(16384);

    if (hidden)
        write_hidden(name, found, hidden, &text);
    cli_say_text(&text);
}

/* --- list --- */

struct listing {
    const struct rv_app_sources *sources;
    rv_buf *warnings;
    rv_cli_table *table; /* owned */
    rv_jw *json;         /* NULL: as a table */
    rv_buf *names;       /* names only; NULL: not asked for */
    size_t n;
};

static void add_tools(rv_cli_table *t, const struct rv_agentdoc *doc)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);

    for (size_t i = 0; i < doc->n_tools; i++)
        rv_buf_printf(&text, "%s%s", i ? ", " : "", doc->tools[i].name);
    cli_table_add(t, doc->n_tools ? rv_buf_str(&text) : RV_STR_LIT("-"));
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

    cli_table_add_text(t, name);
    cli_table_add_text(t, doc ? rv_app_agent_mode(doc) : "faulty");
    cli_table_add_text(t, doc ? doc->model : NULL);
    cli_table_add_text(t, found->source);
    if (doc)
        add_tools(t, doc);
    else
        cli_table_add_text(t, fault_text(fault));
}

static int take_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                      rv_err **err)
{
    struct listing *l = self;
    const char *hidden = rv_agents_hidden(l->sources->agents, name, found);

    (void)err;
    l->n++;
    if (hidden)
        write_hidden(name, found, hidden, l->warnings);
    if (l->json)
        rv_app_agent_write(name, found, hidden, fault, l->json);
    else if (l->names)
        rv_buf_printf(l->names, "%s\n", name);
    else
        add_row(l->table, name, found, fault);
    return 0;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"AGENT", 40, false}, {"MODE", 0, false}, {"MODEL", 40, false}, {"SOURCE", 0, false}, {"TOOLS", 80, false}};
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES), warnings = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);
    bool json = cli_flag(cli, "json"), names = cli_flag(cli, "names");
    struct rv_app_sources sources = {0};
    struct listing l = {.sources = &sources,
                        .warnings = &warnings,
                        .table = cli_table_new(columns, RV_COUNT(columns)),
                        .json = json ? &w : NULL,
                        .names = names ? &text : NULL};

    int rc = l.table ? rv_app_sources_open(&cli->app, RV_APP_STORE_READ, &sources, err)
                     : RV_FAIL(err, RV_E_NOMEM, "list agents");
    if (json)
        rv_jw_arr(&w);
    if (rc == 0)
        rc = rv_agents_list(sources.agents, &sources.scope, take_agent, &l, err);
    if (json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0 && !names) {
        rc = cli_table_write(l.table, cli->out_color, &text, err);
    }
    rc = cli_print(rc, &text, err);
    if (rc == 0)
        cli_err(rv_buf_str(&warnings));
    if (rc == 0 && l.n == 0 && !json && !names)
        cli_say("no agents found: add one with `reeve agents put FILE` or --schema-dir DIR\n");
    rv_buf_fini(&warnings);
    cli_table_free(l.table);
    rv_app_sources_fini(&sources);
    return rc;
}

/* --- show --- */

static void write_head(const struct rv_agents_found *found, rv_buf *b)
{
    const struct rv_agentdoc *doc = found->doc;

    rv_buf_printf(b, "# %s: ", doc->name);
    cli_write_source(found, b);
    rv_buf_printf(b, "; %s, model %s, %zu tool%s\n", rv_app_agent_mode(doc), doc->model ? doc->model : "as asked for",
                  doc->n_tools, doc->n_tools == 1 ? "" : "s");
}

/* The agent that the command names; what is found is of the sources. */
static int find_named(struct rv_cli *cli, struct rv_app_sources *sources, struct rv_agents_found *found, rv_err **err)
{
    int rc = rv_app_sources_open(&cli->app, RV_APP_STORE_READ, sources, err);

    if (rc < 0)
        return rc;
    rc = rv_agents_find(sources->agents, &sources->scope, cli->words[0], found, err);
    if (rc < 0)
        rv_app_sources_fini(sources);
    return rc;
}

static int show(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_app_sources sources;
    struct rv_agents_found found;

    int rc = find_named(cli, &sources, &found, err);
    if (rc < 0)
        return rc;
    if (cli_flag(cli, "json")) {
        rv_jw w = rv_jw_on(&text);
        rv_agentdoc_write_json(found.doc, &w);
        rv_buf_putc(&text, '\n');
    } else {
        if (!cli_flag(cli, "yaml"))
            write_head(&found, &text);
        rv_agentdoc_write_yaml(found.doc, &text);
    }
    cli_warn_hidden(sources.agents, cli->words[0], &found);
    rv_app_sources_fini(&sources);
    return cli_print(rc, &text, err);
}

/* --- prompt: what a model is told, layer by layer, without asking one --- */

struct layers {
    const struct rv_cli *cli;
    struct rv_app_sources *sources;
    const struct rv_agentdoc *doc;
    int structured; /* RV_UNSET: as the document says */
    rv_buf *out;
};

static int write_output_schema(const struct layers *l, rv_err **err)
{
    json_object *schema = NULL;

    int rc = rv_agentdoc_build_output_schema(l->doc, l->structured, &schema, err);
    if (rc < 0)
        return rc;
    if (!schema) {
        rc = RV_FAIL(err, RV_E_STATE, "agent \"%s\" answers with text: its output has no schema", l->doc->name);
        if (l->doc->properties)
            rv_err_set_hint(err, "--structured prints the schema that it would have");
        return rc;
    }
    rv_json_write_pretty(schema, l->out);
    rv_buf_putc(l->out, '\n');
    json_object_put(schema);
    return 0;
}

/* --- the third layer --- */

static void write_heading(const struct layers *l, const char *text)
{
    rv_buf_printf(l->out, "=== %s ===\n", text);
}

static int read_session(const struct layers *l, struct rv_session_row *row, json_object **metadata, rv_err **err)
{
    const char *id = cli_value(l->cli, "session");

    if (!id)
        return 0;
    if (!l->sources->store)
        return RV_FAIL(err, RV_E_NOT_FOUND, "unknown session \"%s\": the store does not exist yet", id);
    int rc = rv_store_get_session(l->sources->store, &l->sources->scope, id, row, err);
    if (rc == 0 && row->metadata.len)
        rc = rv_json_parse(row->metadata, NULL, metadata, err);
    return rc;
}

static int write_history(const struct layers *l, struct rv_conversation *c, rv_err **err)
{
    char hash[RV_HASH_MAX];
    json_object *history = NULL;

    if (!c->context.session_id) {
        rv_buf_puts(l->out, "none: no session is named (--session)\n");
        return 0;
    }
    int rc = rv_journal_read_history(l->sources->store, &l->sources->scope, c, &history, hash, err);
    if (rc == 0 && history)
        rv_json_write_pretty(history, l->out);
    else if (rc == 0)
        rv_buf_puts(l->out, "none: the session has no messages");
    rv_buf_putc(l->out, '\n');
    json_object_put(history);
    return rc;
}

static int write_all(const struct layers *l, rv_err **err)
{
    struct rv_session_row session = {0};
    struct rv_chat_settings settings = {0};
    json_object *metadata = NULL;

    int rc = rv_chat_settings_read(&settings, err);
    if (rc == 0)
        rc = read_session(l, &session, &metadata, err);
    struct rv_conversation c = {
        .context = {.user_id = l->sources->scope.user,
                    .tenant_id = l->sources->scope.tenant ? l->sources->scope.tenant : RV_STORE_TENANT,
                    .session_id = session.id,
                    .agent_schema_uri = l->doc->name},
        .session_name = session.name,
        .session_metadata = metadata,
        .upto_seq = session.n_messages,
        .zone_minutes = cli_zone_minutes(),
        .history_opts = rv_chat_history_opts(&settings, l->doc)};
    if (rc == 0)
        rc = rv_chat_choose_moment_opts(&settings, l->doc, &c.moment_opts, err);
    if (rc == 0) {
        write_heading(l, "system prompt: of the agent");
        rc = rv_agentdoc_write_prompt(l->doc, l->structured, l->out, err);
    }
    if (rc == 0) {
        rv_buf_putc(l->out, '\n');
        write_heading(l, "instructions: of one request");
        rv_instructions_write(&c, l->doc->name, rv_agentdoc_names_tool(l->doc, RV_LOOKUP_TOOL), rv_app_now_us(),
                              l->out);
        rv_buf_putc(l->out, '\n');
        write_heading(l, "history: of the session");
        rc = write_history(l, &c, err);
    }
    json_object_put(c.moments);
    json_object_put(metadata);
    rv_session_row_fini(&session);
    return rc;
}

static int write_layers(const struct layers *l, rv_err **err)
{
    if (cli_flag(l->cli, "output-schema"))
        return write_output_schema(l, err);
    if (cli_flag(l->cli, "all"))
        return write_all(l, err);
    int rc = rv_agentdoc_write_prompt(l->doc, l->structured, l->out, err);
    if (rc == 0 && l->cli->out_tty) /* elsewhere it is the prompt, byte for byte */
        rv_buf_putc(l->out, '\n');
    return rc;
}

static int prompt(struct rv_cli *cli, rv_err **err)
{
    bool on = cli_flag(cli, "structured"), off = cli_flag(cli, "no-structured");
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_app_sources sources;
    struct rv_agents_found found;

    int rc = find_named(cli, &sources, &found, err);
    if (rc < 0)
        return rc;
    const struct layers l = {
        .cli = cli, .sources = &sources, .doc = found.doc, .structured = on || off ? on : RV_UNSET, .out = &text};
    rc = write_layers(&l, err);
    rv_app_sources_fini(&sources);
    return cli_print(rc, &text, err);
}

/* --- the table --- */

static const struct rv_cli_option list_options[] = {
    {"json", 'j', NULL, "print a JSON array of objects", NULL, false},
    {"names", 0, NULL, "print names only, one a line", NULL, false},
};
static const struct rv_cli_option show_options[] = {
    {"json", 'j', NULL, "print only the flat document, as JSON", NULL, false},
    {"yaml", 'y', NULL, "print only the flat document, as YAML", NULL, false},
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
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_agents, &cli_of_stores},
    .excludes = "json names",
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
    RV_CLI_OPTIONS(show_options),
    .groups = {&cli_of_agents, &cli_of_stores},
    .excludes = "json yaml",
    RV_CLI_ONE_WORD,
    .takes = &cli_takes_agents,
    .run = show,
};

static const struct rv_cli_option prompt_options[] = {
    {"structured", 0, NULL, "print the prompt for structured output", NULL, false},
    {"no-structured", 0, NULL, "print the prompt for text output", NULL, false},
    {"output-schema", 0, NULL, "print the JSON Schema of the output instead", NULL, false},
    {"all", 'a', NULL, "print all three layers, with headings", NULL, false},
    {"session", 0, "ID", "with --all: the session whose history is printed", NULL, false},
};

static const struct rv_cli_verb prompt_verb = {
    .name = "agents prompt",
    .args = "NAME",
    .summary = "print the prompt of an agent",
    .text =
        "Prints the first layer of the prompt, byte for byte as it is sent to a model: description, system prompt,\n"
        "notes on tools and the thinking structure. --all adds what each request adds (date, user, session) and the\n"
        "history of the session. No model is asked.",
    .examples = "reeve agents prompt general\n"
                "reeve agents prompt general --all --user ada\n"
                "reeve agents prompt dreaming-agent --output-schema",
    RV_CLI_OPTIONS(prompt_options),
    .groups = {&cli_of_agents, &cli_of_stores},
    .excludes = "structured no-structured; all output-schema",
    .needs = "session all",
    RV_CLI_ONE_WORD,
    .takes = &cli_takes_agents,
    .run = prompt,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb, &show_verb, &verb_agents_put, &verb_agents_validate, &verb_agents_delete, &prompt_verb, NULL,
};

const struct rv_cli_verb verb_agents = {
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
