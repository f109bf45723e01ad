/* reeve agents prompt: what a model is told by an agent, layer by layer, without asking one. */
#include "coreengine/app/chat.h"
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/sources.h"
#include "coreengine/cli/verbs/verbs.h"
#include "coreengine/conversation/context.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TEXT_BYTES ((size_t)64 << 20)

struct layers {
    const struct rv_cli_args *args;
    struct rv_app_sources *sources;
    const struct rv_agentdoc *doc;
    int structured; /* RV_UNSET: as the document says */
    rv_buf *out;
};

static int write_output_schema(const struct layers *l, rv_err **err)
{
    json_object *schema = NULL;

    int rc = rv_agentdoc_output_schema(l->doc, l->structured, &schema, err);
    if (rc < 0)
        return rc;
    if (!schema) {
        rc = RV_FAIL(err, RV_E_STATE, "agent \"%s\" answers with text: its output has no schema", l->doc->name);
        if (l->doc->properties)
            rv_err_hint(err, "--structured prints the schema that it would have");
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
    const char *id = rv_cli_value(l->args, "session");

    if (!id)
        return 0;
    if (!l->sources->store)
        return RV_FAIL(err, RV_E_NOT_FOUND, "unknown session \"%s\": the store does not exist yet", id);
    int rc = rv_store_get_session(l->sources->store, &l->sources->scope, id, row, err);
    if (rc == 0 && row->metadata.len)
        rc = rv_json_parse(row->metadata, NULL, metadata, err);
    return rc;
}

static int write_history(const struct layers *l, const struct rv_conversation *c, rv_err **err)
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
    const struct rv_conversation c = {
        .context = {.user_id = l->sources->scope.user,
                    .tenant_id = l->sources->scope.tenant ? l->sources->scope.tenant : RV_STORE_TENANT,
                    .session_id = session.id,
                    .agent_schema_uri = l->doc->name},
        .session_name = session.name,
        .session_metadata = metadata,
        .upto_seq = session.n_messages,
        .zone_minutes = rv_cli_zone_minutes(),
        .history_opts = rv_chat_history_opts(&settings, l->doc)};
    if (rc == 0) {
        write_heading(l, "system prompt: of the agent");
        rc = rv_agentdoc_prompt(l->doc, l->structured, l->out, err);
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
    json_object_put(metadata);
    rv_session_row_fini(&session);
    return rc;
}

static int write_layers(const struct rv_cli *cli, const struct layers *l, rv_err **err)
{
    if (rv_cli_flag(l->args, "output-schema"))
        return write_output_schema(l, err);
    if (rv_cli_flag(l->args, "all"))
        return write_all(l, err);
    int rc = rv_agentdoc_prompt(l->doc, l->structured, l->out, err);
    if (rc == 0 && cli->out_tty) /* elsewhere it is the prompt, byte for byte */
        rv_buf_putc(l->out, '\n');
    return rc;
}

static int prompt(struct rv_cli *cli, const struct rv_cli_args *args)
{
    bool on = rv_cli_flag(args, "structured"), off = rv_cli_flag(args, "no-structured");
    bool all = rv_cli_flag(args, "all");
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_app_sources sources;
    struct rv_agents_found found;
    rv_err *err = NULL;

    if (on && off)
        return rv_cli_usage(cli, args, "--structured and --no-structured exclude each other");
    if (all && rv_cli_flag(args, "output-schema"))
        return rv_cli_usage(cli, args, "--all and --output-schema exclude each other");
    if (!all && rv_cli_value(args, "session"))
        return rv_cli_usage(cli, args, "--session needs --all");
    if (rv_app_sources_open(&cli->app, RV_APP_STORE_READ, &sources, &err) < 0)
        return rv_cli_report(cli, err);
    int rc = rv_agents_find(sources.agents, &sources.scope, args->words[0], &found, &err);
    if (rc == 0) {
        struct layers l = {.args = args,
                           .sources = &sources,
                           .doc = found.doc,
                           .structured = on    ? 1
                                         : off ? 0
                                               : RV_UNSET,
                           .out = &text};
        rc = write_layers(cli, &l, &err);
    }
    rv_app_sources_fini(&sources);
    if (rc == 0)
        return rv_cli_print(cli, &text);
    rv_buf_fini(&text);
    return rv_cli_report(cli, err);
}

static const struct rv_cli_option options[] = {
    {"structured", 0, NULL, "print the prompt for structured output", NULL, false},
    {"no-structured", 0, NULL, "print the prompt for text output", NULL, false},
    {"output-schema", 0, NULL, "print the JSON Schema of the output instead", NULL, false},
    {"all", 'a', NULL, "print all three layers, with headings", NULL, false},
    {"session", 0, "ID", "with --all: the session whose history is printed", NULL, false},
    RV_CLI_SOURCES_OPTIONS,
};

const struct rv_cli_verb rv_verb_agents_prompt = {
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
    .options = options,
    .n_options = RV_COUNT(options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_agents,
    .run = prompt,
};
