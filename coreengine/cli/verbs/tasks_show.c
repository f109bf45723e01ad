/* reeve tasks show: one task, and what happened to it. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

static void put_json(rv_buf *b, const char *label, rv_str json)
{
    if (!json.ptr || json.len == 0)
        return;
    rv_buf_printf(b, "%-*s", RV_CLI_LABEL, label);
    cli_write_lines(json, b);
    rv_buf_putc(b, '\n');
}

static void write_task(const struct rv_task_row *row, rv_buf *b)
{
    cli_put_line(b, "task", row->id);
    cli_put_line(b, "type", row->type);
    rv_buf_printf(b, "%-*s%s%s\n", RV_CLI_LABEL, "status", rv_task_status_text(row->status),
                  row->cancel_requested ? ", to be cancelled" : "");
    cli_put_line(b, "tenant", row->tenant);
    cli_put_line(b, "user", row->user);
    cli_put_line(b, "tier", row->tier);
    cli_put_line(b, "key", row->key);
    if (row->priority != 0)
        rv_buf_printf(b, "%-*s%lld\n", RV_CLI_LABEL, "priority", (long long)row->priority);
    rv_buf_printf(b, "%-*s%lld, retries %lld of %lld\n", RV_CLI_LABEL, "attempts", (long long)row->attempt,
                  (long long)row->retry_count, (long long)row->max_retries);
    cli_put_moment(b, "created", row->created_us);
    if (!rv_task_status_is_final(row->status))
        cli_put_moment(b, "due", row->scheduled_us);
    cli_put_moment(b, "started", row->started_us);
    cli_put_moment(b, "ended", row->completed_us);
    cli_put_line(b, "worker", row->worker);
    cli_put_moment(b, "lease until", row->lease_until_us);
    cli_put_line(b, "error", row->error);
    put_json(b, "payload", row->payload);
    put_json(b, "result", row->result);
}

static int write_event(void *self, const struct rv_task_event *e, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    if (e->seq == 1)
        rv_buf_puts(b, "\nevents\n");
    rv_buf_puts(b, "  ");
    cli_write_moment(b, e->at_us);
    rv_buf_printf(b, "  %s", e->kind);
    if (e->attempt > 0)
        rv_buf_printf(b, ", attempt %lld", (long long)e->attempt);
    if (e->worker) {
        rv_buf_puts(b, " of ");
        cli_write_safe(rv_str_of(e->worker), b);
    }
    if (e->retry > 0)
        rv_buf_printf(b, ", retry %lld of %lld", (long long)e->retry, (long long)e->max_retries);
    if (e->next_us > 0) {
        rv_buf_puts(b, ", next attempt ");
        cli_write_moment(b, e->next_us);
    }
    if (e->text) {
        rv_buf_puts(b, ": ");
        cli_write_lines(rv_str_of(e->text), b);
    }
    rv_buf_putc(b, '\n');
    return 0;
}

static int show(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);
    struct rv_task_row row = {0};
    int rc = rv_app_find_task(cli->store, &cli->app.scope, cli->words[0], &row, err);

    if (rc == 0 && cli_flag(cli, "json")) {
        rc = rv_app_task_write_whole(cli->store, &cli->app.scope, &row, &w, err);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        write_task(&row, &text);
        rc = rv_store_list_task_events(cli->store, &cli->app.scope, row.id, write_event, &text, err);
    }
    rv_task_row_fini(&row);
    return cli_print(rc, &text, err);
}

static const struct rv_cli_option options[] = {
    {"json", 'j', NULL, "print a JSON object with the events of the task", NULL, false},
};

const struct rv_cli_verb verb_tasks_show = {
    .name = "tasks show",
    .args = "TASK",
    .summary = "show a task and what happened to it",
    .text = "Prints its payload, its result or error, its worker, and its events: each attempt, retry and recovery.\n"
            "A unique prefix of the id is enough.",
    .examples = "reeve tasks show task_8f14\n"
                "reeve tasks show task_8f14 --json | jq '.events[] | select(.event == \"retrying\")'",
    RV_CLI_OPTIONS(options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .takes = &cli_takes_tasks,
    .store = RV_CLI_READS,
    .run = show,
};
