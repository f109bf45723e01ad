/* What a verb lists: a table for people, or for programs a JSON array or one word a line. */
#include "coreengine/cli/cli.h"
#include "coreengine/cli/show/table_internal.h"

#define SHOWN_BY_DEFAULT 50 /* rows of a table */

int cli_list_begin(struct rv_cli *cli, struct rv_cli_list *l, const struct rv_cli_column *columns, size_t n_columns,
                   rv_err **err)
{
    bool json = cli_flag(cli, "json");
    int rc = 0;

    l->text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    l->w = rv_jw_on(&l->text);
    l->json = json ? &l->w : NULL;
    l->now_us = rv_app_now_us();
    if (json)
        rv_jw_arr(&l->w);
    else if (!l->words || !cli_flag(cli, l->words))
        rc = (l->table = cli_table_new(columns, n_columns)) ? 0 : RV_FAIL(err, RV_E_NOMEM, "list %s", l->what);
    if (rc < 0 || !l->is_cut)
        return rc;
    l->limit = l->table ? SHOWN_BY_DEFAULT : 0;
    rc = cli_int(cli, "limit", 0, 1000000, &l->limit, err);
    l->read = rc == 0 && l->limit ? l->limit + 1 : 0;
    return rc;
}

bool cli_list_takes(struct rv_cli_list *l)
{
    l->more = l->limit && l->n == l->limit;
    l->n += !l->more;
    return !l->more;
}

int cli_list_end(struct rv_cli *cli, struct rv_cli_list *l, int rc, rv_err **err)
{
    bool is_table = l->table != NULL;

    if (l->json) {
        rv_jw_arr_end(&l->w);
        rv_buf_putc(&l->text, '\n');
    } else if (rc == 0 && is_table) {
        rc = cli_table_write(l->table, cli->out_color, &l->text, err);
    }
    cli_table_free(l->table);
    rc = cli_print(rc, &l->text, err);
    if (rc == 0 && l->n == 0 && is_table)
        cli_say("no %s found\n", l->what);
    if (rc == 0 && l->more && !cli_value(cli, "limit"))
        cli_say("there are more; --limit 0 shows all\n");
    return rc;
}
