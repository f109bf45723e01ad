/* reeve schedules: the list, and ending them. */
#include "coreengine/app/schedules.h"
#include "coreengine/app/past.h"
#include "coreengine/cli/show/table.h"
#include "coreengine/cli/verbs/verbs.h"

/* --- list --- */

struct listing {
    struct rv_cli_list list;
    rv_zones *zones; /* owned */
};

static void write_time(struct listing *l, const struct rv_schedule_row *row, int64_t us)
{
    const rv_zone *zone = rv_zone_utc();
    char text[RV_TIME_MAX];

    if (us == 0) {
        rv_cli_table_add_text(l->list.table, NULL);
        return;
    }
    if (rv_zones_get(l->zones, rv_str_of(row->zone), &zone, NULL) < 0)
        zone = rv_zone_utc(); /* `show` says that its zone is unknown */
    rv_zone_format(zone, us, text);
    rv_cli_table_add_text(l->list.table, text);
}

static void add_row(struct listing *l, const struct rv_schedule_row *row)
{
    rv_buf note = RV_BUF_INIT(RV_TASK_MAX_ERROR + 100);

    if (row->error)
        rv_cli_write_preview(rv_str_of(row->error), 120, &note);
    else if (row->next_us == 0)
        rv_buf_puts(&note, "ended");
    rv_cli_table_add_text(l->list.table, row->name);
    rv_cli_table_add_text(l->list.table, row->expr);
    rv_cli_table_add_text(l->list.table, row->zone);
    rv_cli_table_add_text(l->list.table, row->bundle ? row->pipeline : row->type);
    rv_cli_table_add_int(l->list.table, row->n_fired);
    write_time(l, row, row->last_us);
    write_time(l, row, row->next_us);
    rv_cli_table_add_text(l->list.table, note.len > 0 ? rv_buf_cstr(&note) : NULL);
    rv_buf_fini(&note);
}

static int take_schedule(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    struct listing *l = self;

    if (!rv_cli_list_takes(&l->list))
        return 0;
    if (l->list.json)
        return rv_app_schedule_json(&(const struct rv_app_schedule_view){.row = row}, l->list.json, err);
    if (l->list.table)
        add_row(l, row);
    else
        rv_buf_printf(&l->list.text, "%s\n", row->name);
    return 0;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"SCHEDULE", 40, false}, {"WHEN", 40, false}, {"ZONE", 0, false}, {"QUEUES", 24, false},
        {"FIRED", 0, true},      {"LAST", 0, false},  {"NEXT", 0, false}, {"NOTE", 60, false},
    };
    struct listing l = {.list = {.what = "schedules", .words = "names"}};
    int rc = rv_cli_list_begin(cli, &l.list, columns, RV_COUNT(columns), err);

    if (rc == 0 && l.list.table && !(l.zones = rv_zones_new(NULL)))
        rc = RV_FAIL(err, RV_E_NOMEM, "list schedules");
    if (rc == 0 && cli->store)
        rc = rv_store_list_schedules(cli->store, &cli->app.scope, take_schedule, &l, err);
    rc = rv_cli_list_end(cli, &l.list, rc, err);
    rv_zones_free(l.zones);
    return rc;
}

/* --- cancel --- */

static int cancel(struct rv_cli *cli, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = 0;

    for (size_t i = 0; i < cli->n_words && rc == 0; i++) {
        struct rv_schedule_row row = {0};
        rc = rv_cli_find_schedule(cli, cli->words[i], &row, err);
        if (rc == 0)
            rc = rv_store_delete_schedule(cli->store, &cli->app.scope, cli->words[i], err);
        if (rc == 0)
            rv_buf_printf(&said, "schedule %s is cancelled\n", row.name);
        rv_schedule_row_fini(&row);
    }
    if (said.len > 0) /* also of those before the one that failed */
        rv_cli_out(rv_buf_str(&said));
    rv_buf_fini(&said);
    return rc;
}

/* --- the table --- */

static const struct rv_cli_option list_options[] = {
    {"json", 'j', NULL, "print a JSON array of schedules", NULL, false},
    {"names", 0, NULL, "print names only, one a line", NULL, false},
};

static const struct rv_cli_verb list_verb = {
    .name = "schedules list",
    .args = "",
    .summary = "list schedules, the next to fire first",
    .text =
        "Prints a table: name, expression or time, time zone, the pipeline or the type of task that it queues, how\n"
        "often it has fired, the last and the next time on the clocks of its zone, and why it could not be fired.",
    .examples = "reeve schedules\n"
                "reeve schedules list --json | jq -r '.[] | select(.error) | .name'",
    RV_CLI_OPTIONS(list_options),
    .groups = {&rv_cli_of_stores},
    .excludes = "json names",
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};
static const struct rv_cli_verb cancel_verb = {
    .name = "schedules cancel",
    .args = "SCHEDULE...",
    .summary = "delete schedules",
    .text = "The schedule is deleted with the list of its firings, and its name is free. Runs and tasks that it has\n"
            "queued stay; `reeve runs cancel` and `reeve tasks cancel` end those. SCHEDULE is a name or an id.",
    .examples = "reeve schedules cancel greet",
    .groups = {&rv_cli_of_stores, &rv_cli_of_commits},
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .takes = &rv_cli_takes_schedules,
    .store = RV_CLI_CHANGES,
    .run = cancel,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb, &rv_verb_schedules_add, &rv_verb_schedules_show, &rv_verb_schedules_next, &cancel_verb, NULL};

const struct rv_cli_verb rv_verb_schedules = {
    .name = "schedules",
    .args = "VERB",
    .summary = "queue work at set times, once or repeatedly",
    .text = "A schedule queues a run of a pipeline, or a task, at a time or at each match of a cron expression. Any\n"
            "`reeve worker` fires what is due; each time is fired once, however many workers there are. With --user\n"
            "(or REEVE_USER) only the schedules of that user are visible.",
    .examples = "reeve schedules                        # the next to fire first\n"
                "reeve schedules next --cron '0 9 * * MON-FRI' --zone Europe/Berlin",
    .subs = subs,
};
