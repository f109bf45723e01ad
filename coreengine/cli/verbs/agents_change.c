/* reeve agents put, validate, delete. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

#define MAX_TEXT_BYTES ((size_t)64 << 20) /* of all documents that are printed: 256 of RV_AGENTDOC_MAX_BYTES */

/* Reads a file and what it is. *out NULL with 0: findings say why. text and findings are the caller's. */
static int read_document(const char *path, rv_buf *text, rv_findings **findings, struct rv_agentdoc **out, rv_err **err)
{
    *findings = rv_findings_new();
    int rc = *findings ? rv_file_read(path, text, err) : RV_FAIL(err, RV_E_NOMEM, "read an agent");

    if (rc == 0)
        rc = rv_agentdoc_parse(rv_buf_str(text), strcmp(path, "-") == 0 ? "standard input" : path, *findings, out, err);
    if (rc == 0)
        rc = rv_findings_check(*findings, err);
    if (rc < 0) {
        rv_agentdoc_free(*out);
        *out = NULL;
        return RV_WRAP(err, rc, "read agent \"%s\"", path);
    }
    rv_findings_sort(*findings);
    return 0;
}

/* --- validate --- */

static void write_verdict(const char *path, const struct rv_agentdoc *doc, rv_buf *b)
{
    rv_buf_printf(b, "%s: agent %s, %s, %zu tool%s\n", path, doc->name, rv_app_agent_mode(doc), doc->n_tools,
                  doc->n_tools == 1 ? "" : "s");
}

static void write_verdict_json(const char *path, const struct rv_agentdoc *doc, const rv_findings *findings, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_path(w, "file", path);
    rv_jw_kv_bool(w, "valid", doc != NULL);
    rv_jw_kv_text(w, "name", doc ? doc->name : NULL);
    rv_jw_key(w, "findings");
    rv_findings_write_json(findings, w);
    rv_jw_obj_end(w);
}

static int validate_one(struct rv_cli *cli, rv_plugins *plugins, const char *path, rv_jw *json, rv_buf *text)
{
    rv_buf source = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    struct rv_agentdoc *doc = NULL;
    rv_findings *findings = NULL;
    rv_err *err = NULL;
    int status = RV_EXIT_COMPLETED;

    int rc = read_document(path, &source, &findings, &doc, &err);
    if (rc == 0 && doc)
        rc = rv_agents_check(doc, findings, &err);
    if (rc == 0 && doc) {
        const struct rv_agents_found found = {doc, rv_buf_str(&source), "file", path};
        rc = rv_chat_check_agent(plugins, &found, findings, &err);
        rv_findings_sort(findings);
    }
    if (rc == 0 && doc && rv_findings_n_errors(findings) > 0) { /* it is an agent, but cannot be used */
        rv_agentdoc_free(doc);
        doc = NULL;
    }
    if (rc < 0) {
        status = cli_report(cli, err);
    } else {
        bool strict = cli_flag(cli, "strict") && rv_findings_n(findings);
        status = doc && !strict ? RV_EXIT_COMPLETED : RV_EXIT_USAGE;
        if (json)
            write_verdict_json(path, doc, findings, json);
        else
            cli_say_findings(cli, findings);
        if (doc && !json)
            write_verdict(path, doc, text);
    }
    rv_agentdoc_free(doc);
    rv_findings_free(findings);
    rv_buf_fini(&source);
    return status;
}

/* Those that a chat with the same options has. */
static int open_capabilities(const struct rv_cli *cli, rv_plugins **out, rv_err **err)
{
    const char *name;
    bool none = false;

    for (size_t i = 0; (name = cli_nth(cli, "capability", i)); i++)
        none = none || !name[0];
    int rc = rv_app_open_built_in(&cli->app, NULL, none ? "" : NULL, out, err);
    for (size_t i = 0; rc == 0 && (name = cli_nth(cli, "capability", i)); i++) {
        const struct rv_capability_config which = {.name = name};
        if (name[0] && strcmp(name, RV_APP_BUILT_IN) != 0)
            rc = rv_plugins_load(*out, &which, err);
    }
    if (rc < 0)
        rv_plugins_free(*out);
    return rc;
}

static int validate(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);
    bool json = cli_flag(cli, "json");
    int status = RV_EXIT_COMPLETED;
    rv_plugins *plugins = NULL;

    int rc = open_capabilities(cli, &plugins, err);
    if (rc < 0)
        return rc;
    if (json)
        rv_jw_arr(&w);
    for (size_t i = 0; i < cli->n_words; i++) {
        int one = validate_one(cli, plugins, cli->words[i], json ? &w : NULL, &text);
        status = one > status ? one : status;
    }
    if (json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    }
    rv_plugins_free(plugins);
    rv_buf said = RV_BUF_INIT(MAX_TEXT_BYTES);
    cli_write_said(rv_buf_str(&text), &said);
    rc = rv_buf_check(&text, "output", err);
    rv_buf_fini(&text);
    rc = cli_print(rc, &said, err);
    return rc < 0 ? rc : status;
}

/* --- put --- */

static int put_document(struct rv_cli *cli, const char *path, rv_str text, const char *name, rv_err **err)
{
    struct rv_app_sources sources;
    rv_buf said = RV_BUF_INIT(4096);
    bool changed = false;

    int rc = rv_app_sources_open(&cli->app, RV_APP_STORE_MAKE, &sources, err);
    if (rc < 0)
        return rc;
    bool own = sources.scope.user && sources.scope.user[0] && !cli_flag(cli, "shared");
    rc = rv_agents_put(sources.agents, &sources.scope,
                       &(const struct rv_agent_text){.user_own = own, .text = text, .file = path}, &changed, err);
    rv_buf_printf(&said, "agent %s %s, for %s%s\n", name, changed ? "is put" : "was there already",
                  own ? "user " : "everybody", own ? sources.scope.user : "");
    rv_app_sources_fini(&sources);
    return cli_print(rc, &said, err);
}

static int put(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    struct rv_agentdoc *doc = NULL;
    rv_findings *findings = NULL;

    int rc = read_document(cli->words[0], &text, &findings, &doc, err);
    if (rc == 0) {
        cli_say_findings(cli, findings);
        rc = doc ? put_document(cli, cli->words[0], rv_buf_str(&text), doc->name, err) : RV_EXIT_USAGE;
    }
    rv_agentdoc_free(doc);
    rv_findings_free(findings);
    rv_buf_fini(&text);
    return rc;
}

/* --- delete --- */

/* What the name means now: there may be one of everybody's, or one that is built in. */
static void say_what_is_left(struct rv_app_sources *sources, const char *name, rv_buf *b)
{
    struct rv_agents_found found;

    rv_agents_forget(sources->agents);
    if (rv_agents_find(sources->agents, &sources->scope, name, &found,
                       RV_CODE_ONLY("an addition to what was done: without it the line ends there")) == 0) {
        rv_buf_puts(b, "; its name now means the one ");
        cli_write_source(&found, b);
    }
}

/* The user has no agent of that name, but the one that all users share is stored. */
static void hint_at_shared(struct rv_app_sources *sources, const char *name, rv_err **err)
{
    struct rv_agents_found found;

    if (sources->scope.user &&
        rv_agents_find(sources->agents, &sources->scope, name, &found,
                       RV_CODE_ONLY("a hint on an error that is reported: without what remains it has no hint")) == 0 &&
        strcmp(found.source, "store") == 0)
        rv_err_set_hint(err, "the name refers to the one in the store that all users share: --shared deletes it");
}

static int delete_agent(struct rv_cli *cli, rv_err **err)
{
    const char *name = cli->words[0];
    struct rv_app_sources sources;
    rv_buf said = RV_BUF_INIT(8192);

    int rc = rv_app_sources_open(&cli->app, RV_APP_STORE_CHANGE, &sources, err);
    if (rc < 0)
        return rc;
    struct rv_store_scope whose = sources.scope;
    if (cli_flag(cli, "shared"))
        whose.user = NULL;
    rc = rv_agents_delete(sources.agents, &whose, name, err);
    if (rc == RV_E_NOT_FOUND) {
        hint_at_shared(&sources, name, err);
    } else if (rc == 0) {
        rv_buf_printf(&said, "agent %s is deleted", name);
        say_what_is_left(&sources, name, &said);
        rv_buf_putc(&said, '\n');
    }
    rv_app_sources_fini(&sources);
    return cli_print(rc, &said, err);
}

#define SHARED_OPTION(what)                                                                                            \
    {                                                                                                                  \
        "shared", 0, NULL, what " (as without --user)", NULL, false                                                    \
    }
static const struct rv_cli_option put_options[] = {SHARED_OPTION("store the agent for all users instead of one")};
static const struct rv_cli_option validate_options[] = {
    {"json", 'j', NULL, "print a JSON array of results with their findings", NULL, false},
    {"strict", 0, NULL, "treat warnings as errors", NULL, false},
    {"capability", 0, "NAME", "capability whose tools are available, in addition to p8 (\"\": without p8)", NULL, true},
};
static const struct rv_cli_option delete_options[] = {
    SHARED_OPTION("delete the shared agent instead of the user's own")};

const struct rv_cli_verb verb_agents_put = {
    .name = "agents put",
    .args = "FILE|-",
    .summary = "put an agent into the store",
    .text =
        "Checks the document first, as `reeve agents validate` does, but not whether its tools exist here: the "
        "process\n"
        "that uses the agent can have other capabilities. It replaces a stored agent of the same name and takes\n"
        "precedence over a built-in agent. With a user the agent belongs to that user only, otherwise to all users.",
    .examples = "reeve agents put agent.yaml\n"
                "reeve agents show general --yaml | sed s/^name:.*/name:\\ mine/ | reeve agents put - --user ada",
    RV_CLI_OPTIONS(put_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    RV_CLI_ONE_WORD,
    .run = put,
};
const struct rv_cli_verb verb_agents_validate = {
    .name = "agents validate",
    .args = "FILE...",
    .summary = "check agent documents",
    .text =
        "Reports all errors and probable mistakes of each document with their places. Tools that no capability has\n"
        "and chained tools that do not fit the output are errors, since a chat would refuse them. Exit status 2 if\n"
        "there is an error.",
    .examples = "reeve agents validate agents/*.yaml\n"
                "reeve agents validate agent.yaml --json | jq '.[].findings'",
    RV_CLI_OPTIONS(validate_options),
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .run = validate,
};
const struct rv_cli_verb verb_agents_delete = {
    .name = "agents delete",
    .args = "NAME",
    .summary = "delete an agent from the store",
    .text = "With a user it deletes that user's own agent, otherwise the shared one. Agents that are built in or in a\n"
            "folder cannot be deleted; after the deletion the name refers to them again.",
    .examples = "reeve agents delete mine --user ada",
    RV_CLI_OPTIONS(delete_options),
    .groups = {&cli_of_agents, &cli_of_stores, &cli_of_commits},
    RV_CLI_ONE_WORD,
    .takes = &cli_takes_agents,
    .run = delete_agent,
};
