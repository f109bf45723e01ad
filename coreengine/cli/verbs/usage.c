/* reeve usage: what users and tenants may use, and have used. */
#include <limits.h>

#include "coreengine/app/app.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#define MAX_CELL ((size_t)512)      /* bytes of one cell: an id of RV_STORE_MAX_ID and its escapes */
#define MAX_TEXT ((size_t)64 << 20) /* bytes of the JSON array: RV_APP_MAX_SELECT rows */

static const struct rv_cli_option usage_options[] = {
    {"json", 'j', NULL, "print a JSON array of objects", NULL, false},
    {"quotas", 0, "FILE", RV_CLI_QUOTAS_DOC, "FILE", false},
    {"by", 0, "WORDS", "what answers took, by user, agent and model, or some of these, as a JSON array", NULL, false},
    {"since", 0, "TIME", "with --by: answers from this time on, e.g. 2030-12-24T18:00:00Z", NULL, false},
};
static const struct rv_cli_column columns[] = {
    {"WHO", 30, false}, {"QUOTA", 0, false}, {"USED", 0, true},   {"RESERVED", 0, true},
    {"LIMIT", 0, true}, {"LEFT", 0, true},   {"PLAN", 20, false}, {"ENDS", 0, false},
};

struct listing {
    const struct rv_cli *cli;
    const char *tenant;
    rv_cli_table *table; /* owned */
    rv_jw w;
    size_t n;
};

static int64_t left_of(const struct rv_app_usage *row)
{
    int64_t left = row->limit - row->used - row->reserved;

    return left > 0 ? left : 0;
}

/* Dollars keep their point; other amounts have their thousands marked. */
static void add_amount(struct listing *l, enum rv_quota_kind kind, int64_t amount)
{
    rv_buf cell = RV_BUF_INIT(MAX_CELL);

    if (kind == RV_QUOTA_COST) {
        rv_quota_write_amount(kind, amount, &cell);
        cli_table_add(l->table, rv_buf_str(&cell));
    } else {
        cli_table_add_int(l->table, amount);
    }
    rv_buf_fini(&cell);
}

static void add_row(struct listing *l, const struct rv_app_usage *row)
{
    rv_buf cell = RV_BUF_INIT(MAX_CELL);

    if (row->is_tenants)
        rv_buf_printf(&cell, "tenant %s", l->tenant);
    else
        rv_buf_puts(&cell, row->user[0] ? row->user : "(no user)");
    cli_table_add(l->table, rv_buf_str(&cell));
    rv_buf_clear(&cell);
    rv_buf_printf(&cell, "%s / %s%s", rv_quota_kind_text(row->kind), row->is_rate ? "last " : "",
                  rv_quota_span_text(row->span));
    cli_table_add(l->table, rv_buf_str(&cell));
    add_amount(l, row->kind, row->used);
    add_amount(l, row->kind, row->reserved);
    if (row->limit > 0) {
        add_amount(l, row->kind, row->limit);
        add_amount(l, row->kind, left_of(row));
    } else {
        cli_table_add_text(l->table, NULL);
        cli_table_add_text(l->table, NULL);
    }
    cli_table_add_text(l->table, row->plan);
    rv_buf_clear(&cell);
    if (row->end_us > 0)
        cli_write_moment(&cell, row->end_us);
    cli_table_add_text(l->table, row->end_us > 0 ? rv_buf_cstr(&cell) : NULL);
    rv_buf_fini(&cell);
}

static void write_row(struct listing *l, const struct rv_app_usage *row)
{
    char time[RV_TIME_MAX];

    rv_jw_obj(&l->w);
    rv_jw_kv_text(&l->w, "tenant", l->tenant);
    rv_jw_kv_text(&l->w, "whose", row->is_tenants ? "tenant" : "user");
    if (!row->is_tenants)
        rv_jw_kv_text(&l->w, "user", row->user);
    rv_jw_kv_text(&l->w, "kind", row->is_rate ? "rate" : "quota");
    rv_jw_kv_text(&l->w, "quota", row->kind == RV_QUOTA_COST ? "cost_micro_usd" : rv_quota_kind_text(row->kind));
    rv_jw_kv_text(&l->w, "span", rv_quota_span_text(row->span));
    rv_jw_kv_int(&l->w, "used", row->used);
    rv_jw_kv_int(&l->w, "reserved", row->reserved);
    if (row->limit > 0) {
        rv_jw_kv_int(&l->w, "limit", row->limit);
        rv_jw_kv_int(&l->w, "left", left_of(row));
        rv_jw_kv_text(&l->w, "plan", row->plan);
    }
    if (row->end_us > 0) {
        rv_time_format(row->end_us, time);
        rv_jw_kv_text(&l->w, "ends_at", time);
    }
    rv_jw_obj_end(&l->w);
}

static void each(void *self, const struct rv_app_usage *row)
{
    struct listing *l = self;

    l->n++;
    if (cli_flag(l->cli, "json"))
        write_row(l, row);
    else
        add_row(l, row);
}

/* All faults of the file are told. RV_E_INVALID has the first. */
static int open_quotas(const struct rv_cli *cli, rv_quotas **out, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(PATH_MAX);
    rv_findings *findings = rv_findings_new();
    int rc = findings ? rv_app_find_quotas_path(&cli->app, &path, err) : RV_FAIL(err, RV_E_NOMEM, "read quotas");

    if (rc == 0 && path.len > 0)
        rc = rv_quotas_read(rv_buf_cstr(&path), findings, out, err);
    if (rc == 0 && rv_findings_n_errors(findings) > 1)
        cli_say_findings(cli, findings);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    rv_findings_free(findings);
    rv_buf_fini(&path);
    return rc;
}

static int answers(struct rv_cli *cli, rv_err **err)
{
    const char *since = cli_value(cli, "since");
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct rv_app_usage_by by;
    json_object *rows = NULL;
    int rc = rv_app_usage_by_parse(cli_value(cli, "by"), &by, err);

    if (rc == 0 && since)
        rc = rv_time_parse(rv_str_of(since), &by.since_us, err);
    if (rc == 0 && cli->store)
        rc = rv_app_build_usage(cli->store, &cli->app.scope, &by, &rows, err);
    if (rows)
        rv_json_write_pretty(rows, &text);
    else
        rv_buf_puts(&text, "[]");
    rv_buf_putc(&text, '\n');
    json_object_put(rows);
    return cli_print(rc, &text, err);
}

static int usage(struct rv_cli *cli, rv_err **err)
{
    if (cli_value(cli, "by"))
        return answers(cli, err);
    const struct rv_store_scope *scope = &cli->app.scope;
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct listing l = {.cli = cli, .tenant = scope->tenant ? scope->tenant : RV_STORE_TENANT, .w = rv_jw_on(&text)};
    bool as_json = cli_flag(cli, "json");
    rv_quotas *quotas = NULL;

    int rc = open_quotas(cli, &quotas, err);
    if (rc == 0 && !as_json && !(l.table = cli_table_new(columns, RV_COUNT(columns))))
        rc = RV_FAIL(err, RV_E_NOMEM, "list what was used");
    if (as_json)
        rv_jw_arr(&l.w);
    if (rc == 0)
        rc = rv_app_list_usage(&(const struct rv_app_usage_of){quotas, cli->store, scope, rv_app_now_us()}, each, &l,
                               err);
    if (as_json)
        rv_jw_arr_end(&l.w);
    if (as_json)
        rv_buf_puts(&text, "\n");
    else if (rc == 0 && l.n > 0)
        rc = cli_table_write(l.table, cli->out_color, &text, err);
    else if (rc == 0)
        cli_say(quotas ? "nothing is used, and no plan has limits for it\n"
                       : "there are no quotas, and nothing is used\n");
    cli_table_free(l.table);
    rv_quotas_free(quotas);
    return cli_print(rc, &text, err);
}

const struct rv_cli_verb verb_usage = {
    .name = "usage",
    .args = "",
    .summary = "show what users and tenants used of their quotas",
    .text =
        "Lists the limits of the tenant, of each user that the file of quotas names, and of each user that used\n"
        "something, with what is used of them and what is reserved for model calls under way. Amounts of a period\n"
        "begin at 0 when it ends, in UTC; a rate counts a window that moves. docs/reference/quotas.md describes the\n"
        "file.",
    .examples = "reeve usage\n"
                "reeve usage --user ann --json\n"
                "reeve usage --tenant acme\n"
                "reeve usage --by agent,model",
    RV_CLI_OPTIONS(usage_options),
    .groups = {&cli_of_stores},
    .excludes = "by quotas",
    .needs = "since by",
    .store = RV_CLI_READS_IF_ANY,
    .run = usage,
};
