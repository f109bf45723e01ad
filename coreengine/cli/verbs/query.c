/* reeve query: what the knowledge in a store says, one question of a command line, of each line of a pipe, or at a
 * prompt. */
#include "coreengine/app/app.h"
#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"
#include "coreengine/knowledge/knowledge.h"

#include <string.h>
#include <unistd.h>

enum form { FORM_JSON, FORM_TABLE, FORM_LINES };

static enum form form_of(const struct rv_cli *cli)
{
    const char *format = cli_value(cli, "format");

    if (cli_flag(cli, "json"))
        return FORM_JSON;
    if (!format)
        return cli->out_tty ? FORM_TABLE : FORM_JSON;
    return strcmp(format, "table") == 0 ? FORM_TABLE : strcmp(format, "lines") == 0 ? FORM_LINES : FORM_JSON;
}

/* --- the answer --- */

static int write_answer(json_object *answer, enum form form, rv_buf *text, rv_err **err)
{
    json_object *results = rv_json_get_arr(answer, "results");

    if (form == FORM_TABLE)
        return cli_query_write_table(results, text, err);
    if (form == FORM_JSON) {
        rv_json_write_pretty(results, text);
        rv_buf_putc(text, '\n');
        return 0;
    }
    for (size_t i = 0; i < json_object_array_length(results); i++) {
        rv_json_write(json_object_array_get_idx(results, i), text);
        rv_buf_putc(text, '\n');
    }
    return 0;
}

static void say_remarks(json_object *answer)
{
    json_object *warnings = rv_json_get_arr(answer, "warnings");
    bool is_truncated = false;

    for (size_t i = 0; i < json_object_array_length(warnings); i++)
        cli_say("warning: %.*s\n", RV_STR_ARG(rv_json_str(json_object_array_get_idx(warnings, i))));
    if (rv_json_get_bool(answer, "truncated", &is_truncated) && is_truncated)
        cli_say("truncated: a limit left results out\n");
}

static int ask(struct rv_cli *cli, rv_str text, json_object **out, struct rv_knowledge_fault *fault, rv_err **err)
{
    struct rv_app_query with;
    int rc = rv_app_query_init(&cli->app, &with, err);

    if (rc < 0 && fault)
        *fault = (struct rv_knowledge_fault){NULL, 0, 0};
    return rc < 0 ? rc
                  : rv_knowledge_query(cli->store, &cli->app.scope,
                                       &(const struct rv_knowledge_query){text, &with.opts}, out, fault, err);
}

static int ask_once(struct rv_cli *cli, rv_str query, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    json_object *answer = NULL;
    int rc = ask(cli, query, &answer, NULL, err);

    if (rc < 0)
        return rc;
    rc = write_answer(answer, form_of(cli), &text, err);
    rc = cli_print(rc, &text, err);
    if (rc == 0)
        say_remarks(answer);
    json_object_put(answer);
    return rc;
}

/* --- lines of a pipe: each gives one line of JSON --- */

static void write_failure(const struct rv_knowledge_fault *fault, const rv_err *err, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_obj(&w);
    rv_jw_key(&w, "fault");
    rv_jw_text(&w, fault->word);
    rv_jw_key(&w, "error");
    rv_err_write_json(err, &w);
    rv_jw_obj_end(&w);
}

static int ask_line(struct rv_cli *cli, rv_str query, bool *failed, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    struct rv_knowledge_fault fault;
    json_object *answer = NULL;
    rv_err *why = NULL;
    int rc = ask(cli, query, &answer, &fault, &why);

    if (rc == 0) {
        rv_json_write(answer, &text);
    } else {
        *failed = true;
        write_failure(&fault, why, &text);
    }
    rv_buf_putc(&text, '\n');
    rv_err_free(why);
    json_object_put(answer);
    rc = rv_buf_check(&text, "answer", err);
    if (rc == 0 && !cli_out_now(rv_buf_str(&text)))
        rc = RV_E_CANCELLED;
    rv_buf_fini(&text);
    return rc;
}

/* --- a prompt --- */

static void ask_person(struct rv_cli *cli, rv_str query)
{
    rv_err *err = NULL;

    if (ask_once(cli, query, &err) < 0)
        RV_IGNORE(cli_report(cli, err), "the next query is independent of this one");
    RV_IGNORE(cli_flush(0, false), "a full disk shows at the end");
}

static bool is_end(rv_str line)
{
    return rv_str_is(line, "exit") || rv_str_is(line, "quit") || rv_str_is(line, "\\q");
}

static int ask_lines(struct rv_cli *cli, bool prompts, rv_err **err)
{
    struct rv_chat_lines lines;
    bool failed = false;
    rv_err *why = NULL;
    rv_str line;
    int rc;

    cli_chat_lines_init(&lines);
    if (prompts)
        cli_say("LOOKUP KEY, TRAVERSE KEY, SEARCH TEXT, FUZZY TEXT or SELECT ...; exit ends\n");
    for (;;) {
        if (prompts)
            cli_say("query> ");
        rc = cli_chat_lines_next(&lines, &line, &why);
        if (rc <= 0)
            break;
        line = rv_str_trim(line);
        if (line.len == 0)
            continue;
        if (prompts && is_end(line))
            break;
        rc = 0;
        if (prompts)
            ask_person(cli, line);
        else if ((rc = ask_line(cli, line, &failed, &why)) < 0)
            break;
    }
    cli_chat_lines_fini(&lines);
    if (prompts && rc == 0)
        cli_say("\n");
    if (rc < 0 && rc != RV_E_CANCELLED) {
        rv_err_pass(err, why);
        return rc;
    }
    rv_err_free(why);
    return failed ? RV_EXIT_FAILED : 0;
}

static int query(struct rv_cli *cli, rv_err **err)
{
    if (cli->n_words == 0 && !isatty(STDIN_FILENO))
        return cli_usage(cli, err, "no query is given: write one, or - to read one from each line of standard input");
    int rc = rv_app_register_agents(&cli->app, cli->store, err);
    if (rc < 0)
        return rc;
    if (cli->n_words == 0)
        return ask_lines(cli, true, err);
    if (strcmp(cli->words[0], "-") == 0)
        return ask_lines(cli, false, err);
    return ask_once(cli, rv_str_of(cli->words[0]), err);
}

static const struct rv_cli_option options[] = {
    {"format", 'f', "FORMAT",
     "output: a list, a table, a line for each result (default table on a terminal, else json)", "json table lines",
     false},
    {"json", 0, NULL, "the same as --format json", NULL, false},
};

const struct rv_cli_verb verb_query = {
    .name = "query",
    .args = "[QUERY | -]",
    .summary = "query the knowledge in a store",
    .text = "LOOKUP KEY[, KEY...] prints whole rows by their names, ids, or the key that a shortened message names\n"
            "(session-ID-msg-N). TRAVERSE KEY [DEPTH n] [TYPE relation] [LOAD] [PATHS] follows the edges of a row. "
            "SELECT ...\n"
            "reads tables such as moments, resources and messages. Rows that do not exist, and rows of other users, "
            "are left\n"
            "out. Without a query a prompt asks for one; with - each line of standard input is a query, and gives a "
            "line of\n"
            "JSON. The reference of the REM dialect has the rest.",
    .examples = "reeve query \"LOOKUP session-2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2-msg-7\" | jq -r '.[].data.content'\n"
                "reeve query \"LOOKUP general, sample-agent\" --format table\n"
                "reeve query \"TRAVERSE project-atlas DEPTH 2 TYPE links_to\" --user ada\n"
                "echo \"LOOKUP general\" | reeve query - | jq .results",
    RV_CLI_OPTIONS(options),
    .groups = {&cli_of_stores},
    .excludes = "format json",
    .max_words = 1,
    .store = RV_CLI_READS,
    .run = query,
};
