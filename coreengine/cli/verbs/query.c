/* reeve query: rows of the store by their keys. */
#include "coreengine/app/query.h"
#include "coreengine/cli/show/table.h"
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>

static int query(struct rv_cli *cli, rv_err **err)
{
    const char *format = rv_cli_value(cli, "format");
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    json_object *rows = NULL;
    struct rv_query q;

    int rc = rv_query_parse(rv_str_of(cli->words[0]), &q, err);
    if (rc < 0)
        return rc;
    rc = rv_query_look_up(cli->store, &cli->app.scope, &q, &rows, err);
    if (rc == 0 && format && strcmp(format, "table") == 0) {
        rc = rv_query_write_table(rows, &text, err);
    } else if (rc == 0) {
        rv_json_write_pretty(rows, &text);
        rv_buf_putc(&text, '\n');
    }
    json_object_put(rows);
    rv_query_fini(&q);
    return rv_cli_print(rc, &text, err);
}

static const struct rv_cli_option options[] = {
    {"format", 'f', "FORMAT", "output format (default json)", "json table", false},
};

const struct rv_cli_verb rv_verb_query = {
    .name = "query",
    .args = "QUERY",
    .summary = "look up rows of the store by their keys",
    .text =
        "LOOKUP KEY[, KEY...] prints whole rows in the order of the keys: a message by the key that a shortened\n"
        "message names (session-ID-msg-N), a session by its id, an agent by its name. A key that contains commas is\n"
        "quoted. If no row has exactly that key, case, blanks and punctuation are ignored. Rows that do not exist,\n"
        "and rows of other users, are left out.",
    .examples = "reeve query \"LOOKUP session-2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2-msg-7\" | jq -r '.[].data.content'\n"
                "reeve query \"LOOKUP general, sample-agent\" --format table",
    RV_CLI_OPTIONS(options),
    .groups = {&rv_cli_of_stores},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .run = query,
};
