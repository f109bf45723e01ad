/* reeve tasks: the list, what people do with tasks (retry, cancel, delete old ones), and the shares of tenants. */
#include "coreengine/app/app.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#define PRUNE_BATCH 500 /* deleted in one transaction, so that others get their turn */
#define NOTE_CHARS  60  /* columns of a note; the rest is cut */

/* --- list, dead --- */

/* What it waits for, who holds it, or why it failed. */
static void write_note(const struct rv_task_row *row, int64_t now_us, rv_buf *b)
{
    if (row->cancel_requested)
        rv_buf_puts(b, "to be cancelled; ");
    if (row->status == RV_TASK_PROCESSING) {
        rv_buf_puts(b, row->worker);
    } else if (row->status == RV_TASK_WAITING) {
        rv_buf_puts(b, row->scheduled_us > now_us ? "due in " : "due");
        if (row->scheduled_us > now_us)
            cli_write_age(b, row->scheduled_us - now_us);
    }
    if (row->error && row->status != RV_TASK_COMPLETED && row->status != RV_TASK_PROCESSING) {
        rv_buf_puts(b, row->status == RV_TASK_WAITING ? ": " : "");
        cli_write_preview(rv_str_of(row->error), 2 * NOTE_CHARS, b);
    }
}

static void add_row(struct rv_cli_list *l, const struct rv_task_row *row)
{
    rv_buf age = RV_BUF_INIT(64), note = RV_BUF_INIT(4096), retries = RV_BUF_INIT(64);

    cli_write_age(&age, l->now_us - row->created_us);
    rv_buf_printf(&retries, "%lld/%lld", (long long)row->retry_count, (long long)row->max_retries);
    write_note(row, l->now_us, &note);
    cli_table_add_text(l->table, row->id);
    cli_table_add_text(l->table, row->type);
    cli_table_add_text(l->table, rv_task_status_text(row->status));
    cli_table_add_text(l->table, row->tier);
    cli_table_add(l->table, rv_buf_str(&retries));
    cli_table_add(l->table, rv_buf_str(&age));
    cli_table_add_text(l->table, note.len > 0 ? rv_buf_cstr(&note) : NULL);
    rv_buf_fini(&age);
    rv_buf_fini(&note);
    rv_buf_fini(&retries);
}

static int take_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    struct rv_cli_list *l = self;

    (void)err;
    if (!cli_list_takes(l))
        return 0;
    if (l->table)
        add_row(l, row);
    else if (l->json)
        rv_app_task_write(row, l->json);
    else
        rv_buf_printf(&l->text, "%s\n", row->id);
    return 0;
}

static int read_statuses(struct rv_cli *cli, unsigned *out, rv_err **err)
{
    const char *word;

    for (size_t i = 0; (word = cli_nth(cli, "status", i)); i++) {
        enum rv_task_status status;
        int rc = rv_task_status_of(rv_str_of(word), &status, err);
        if (rc < 0)
            return rc;
        *out |= 1u << status;
    }
    return 0;
}

static int read_list(struct rv_cli *cli, unsigned statuses, struct rv_cli_list *l, rv_err **err)
{
    struct rv_task_filter filter = {.statuses = statuses,
                                    .type = cli_value(cli, "type"),
                                    .key = cli_value(cli, "key"),
                                    .worker = cli_value(cli, "worker"),
                                    .limit = l->read};
    int rc = statuses ? 0 : read_statuses(cli, &filter.statuses, err);

    return rc == 0 && cli->store ? rv_store_list_tasks(cli->store, &cli->app.scope, &filter, take_task, l, err) : rc;
}

/* statuses 0: those that the command line names. */
static int list_tasks(struct rv_cli *cli, unsigned statuses, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"TASK", 0, false},   {"TYPE", 24, false}, {"STATUS", 0, false},        {"TIER", 0, false},
        {"RETRIES", 0, true}, {"AGE", 0, false},   {"NOTE", NOTE_CHARS, false},
    };
    struct rv_cli_list l = {.what = "tasks", .words = "ids", .is_cut = true};
    int rc = cli_list_begin(cli, &l, columns, RV_COUNT(columns), err);

    if (rc == 0)
        rc = read_list(cli, statuses, &l, err);
    return cli_list_end(cli, &l, rc, err);
}

static int list(struct rv_cli *cli, rv_err **err)
{
    return list_tasks(cli, 0, err);
}

static int dead(struct rv_cli *cli, rv_err **err)
{
    return list_tasks(cli, 1u << RV_TASK_FAILED, err);
}

/* --- retry, cancel --- */

/* Change one task, and say so. */
typedef int change_fn(struct rv_cli *cli, const struct rv_task_row *row, rv_buf *said, rv_err **err);

static int each_word(struct rv_cli *cli, change_fn *change, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = 0;

    for (size_t i = 0; i < cli->n_words && rc == 0; i++) {
        struct rv_task_row row = {0};
        rc = rv_app_find_task(cli->store, &cli->app.scope, cli->words[i], &row, err);
        if (rc == 0)
            rc = change(cli, &row, &said, err);
        rv_task_row_fini(&row);
    }
    if (said.len > 0) /* also of those before the one that failed */
        cli_out(rv_buf_str(&said));
    rv_buf_fini(&said);
    return rc;
}

static int retry_one(struct rv_cli *cli, const struct rv_task_row *row, rv_buf *said, rv_err **err)
{
    int rc = rv_store_retry_task(cli->store, &cli->app.scope, row->id, rv_app_now_us(), err);

    if (rc == 0)
        rv_buf_printf(said, "task %s is pending again\n", row->id);
    return rc;
}

static int retry(struct rv_cli *cli, rv_err **err)
{
    return each_word(cli, retry_one, err);
}

static int cancel_one(struct rv_cli *cli, const struct rv_task_row *row, rv_buf *said, rv_err **err)
{
    enum rv_task_status now_is = RV_TASK_CANCELLED;
    int rc = rv_store_cancel_task(cli->store, &cli->app.scope, row->id, rv_app_now_us(), &now_is, err);

    if (rc == 0 && now_is == RV_TASK_CANCELLED)
        rv_buf_printf(said, "task %s is cancelled\n", row->id);
    else if (rc == 0)
        rv_buf_printf(said, "task %s: its worker %s is asked to cancel it\n", row->id, row->worker ? row->worker : "");
    return rc;
}

static int cancel(struct rv_cli *cli, rv_err **err)
{
    return each_word(cli, cancel_one, err);
}

/* --- prune --- */

int cli_read_age(const struct rv_cli *cli, int64_t *out_us, rv_err **err)
{
    const char *age = cli_value(cli, "older-than");
    int64_t us = 0, now_us = rv_app_now_us();

    if (!age)
        return cli_usage(cli, err, "say how old: --older-than 30d");
    int rc = cli_parse_duration(age, &us, err);
    *out_us = us < now_us ? now_us - us : 0;
    return rc;
}

static int prune(struct rv_cli *cli, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(200);
    int64_t before_us = 0, n = PRUNE_BATCH, all = 0, n_schedules = 0;
    int rc = cli_read_age(cli, &before_us, err);

    if (rc != 0)
        return rc;
    while (rc == 0 && n == PRUNE_BATCH) {
        rc = rv_store_prune_tasks(cli->store, before_us, PRUNE_BATCH, &n, err);
        all += rc == 0 ? n : 0;
    }
    if (rc == 0)
        rc = rv_store_prune_schedules(cli->store, before_us, &n_schedules, err);
    rv_buf_printf(&said, "%lld task%s deleted\n", (long long)all, all == 1 ? "" : "s");
    if (n_schedules > 0)
        rv_buf_printf(&said, "%lld schedule%s that had ended deleted\n", (long long)n_schedules,
                      n_schedules == 1 ? "" : "s");
    return cli_print(rc, &said, err);
}

/* --- lanes --- */

struct lanes {
    rv_cli_table *table; /* NULL: JSON; owned */
    rv_jw *json;
    int64_t n;
};

static int take_lane(void *self, const struct rv_task_lane *lane, rv_err **err)
{
    struct lanes *l = self;

    (void)err;
    l->n++;
    if (l->json) {
        rv_app_lane_write(lane, l->json);
        return 0;
    }
    cli_table_add_text(l->table, lane->tenant);
    cli_table_add_int(l->table, lane->class_id);
    cli_table_add_text(l->table, lane->tier);
    cli_table_add_int(l->table, lane->n_pending);
    cli_table_add_int(l->table, lane->n_processing);
    cli_table_add_int(l->table, lane->share.weight);
    if (lane->share.cap > 0)
        cli_table_add_int(l->table, lane->share.cap);
    else
        cli_table_add_text(l->table, NULL);
    return 0;
}

static int set_share(struct rv_cli *cli, rv_err **err)
{
    struct rv_task_share share = {.weight = 1};
    int rc = cli_int(cli, "weight", 1, RV_TASK_MAX_WEIGHT, &share.weight, err);

    if (rc == 0)
        rc = cli_int(cli, "cap", 0, 1000000, &share.cap, err);
    return rc < 0 ? rc : rv_store_set_share(cli->store, cli->app.scope.tenant, &share, err);
}

static int share(struct rv_cli *cli, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(1000);
    int rc;

    if (!cli_value(cli, "weight") && !cli_value(cli, "cap"))
        return cli_usage(cli, err, "nothing to change: give --weight or --cap");
    rc = set_share(cli, err);
    rv_buf_printf(&said, "the share of tenant %s is changed\n",
                  cli->app.scope.tenant ? cli->app.scope.tenant : RV_STORE_TENANT);
    return cli_print(rc, &said, err);
}

static int lanes(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"TENANT", 40, false}, {"CLASS", 0, true},      {"TIER", 0, false},
                                                   {"PENDING", 0, true},  {"PROCESSING", 0, true}, {"WEIGHT", 0, true},
                                                   {"CAP", 0, true}};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);
    struct lanes l = {.json = cli_flag(cli, "json") ? &w : NULL};
    int rc = 0;

    if (!l.json && !(l.table = cli_table_new(columns, RV_COUNT(columns))))
        rc = RV_FAIL(err, RV_E_NOMEM, "list lanes");
    if (l.json)
        rv_jw_arr(&w);
    if (rc == 0 && cli->store)
        rc = rv_store_list_lanes(cli->store, cli->app.scope.tenant, take_lane, &l, err);
    if (l.json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        rc = cli_table_write(l.table, cli->out_color, &text, err);
    }
    rc = cli_print(rc, &text, err);
    if (rc == 0 && l.n == 0 && l.table)
        cli_say("no tasks yet\n");
    cli_table_free(l.table);
    return rc;
}

/* --- The table --- */

#define STATUSES "waiting pending processing completed failed cancelled"

static const struct rv_cli_option list_options[] = {
    {"status", 0, "STATUS", "only tasks with this status; may be given more than once", STATUSES, true},
    {"type", 't', "TYPE", "only tasks of this type, such as run", NULL, false},
    {"key", 0, "KEY", "only tasks with this idempotency key", NULL, false},
    {"worker", 'w', "NAME", "only tasks that this worker is processing", NULL, false},
    {"limit", 'l', "N", "number of tasks to list, newest first; 0: all (default 50; all with --json and --ids)", NULL,
     false},
    {"json", 'j', NULL, "print a JSON array of tasks", NULL, false},
    {"ids", 0, NULL, "print ids only, one a line", NULL, false},
};
static const struct rv_cli_option dead_options[] = {
    {"type", 't', "TYPE", "only tasks of this type, such as run", NULL, false},
    {"limit", 'l', "N", "number of tasks to list, newest first; 0: all (default 50; all with --json and --ids)", NULL,
     false},
    {"json", 'j', NULL, "print a JSON array of tasks", NULL, false},
    {"ids", 0, NULL, "print ids only, one a line", NULL, false},
};
static const struct rv_cli_option prune_options[] = {
    {"older-than", 0, "AGE", "only tasks that ended longer ago than this: 90s, 15min, 12h, 30d, 4w", NULL, false},
};
static const struct rv_cli_option lanes_options[] = {
    {"json", 'j', NULL, "print a JSON array of lanes", NULL, false},
};
static const struct rv_cli_option share_options[] = {
    {"weight", 0, "N", "share of the workers, 1 to 1000: twice the weight, twice as many tasks (default 1)", NULL,
     false},
    {"cap", 0, "N", "number of tasks that a lane of the tenant may have in progress at once (default 0: no limit)",
     NULL, false},
};

static const struct rv_cli_verb list_verb = {
    .name = "tasks list",
    .args = "",
    .summary = "list tasks, newest first",
    .text =
        "Prints a table: id, type, status, tier, retries used and allowed, age, and a note: the worker of a task in\n"
        "progress, when a waiting task is due, the error of a failed one.",
    .examples = "reeve tasks\n"
                "reeve tasks list --status pending --status processing\n"
                "reeve tasks list --json | jq -r '.[] | select(.retry_count > 0) | .id'",
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_stores},
    .excludes = "json ids",
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};
static const struct rv_cli_verb dead_verb = {
    .name = "tasks dead",
    .args = "",
    .summary = "list dead letters: tasks whose attempts all failed",
    .text = "`reeve tasks show` shows the errors of each attempt, `reeve tasks retry` puts a task back into the queue.",
    .examples = "reeve tasks dead\n"
                "reeve tasks dead --type run --ids | xargs -r reeve tasks retry",
    RV_CLI_OPTIONS(dead_options),
    .groups = {&cli_of_stores},
    .excludes = "json ids",
    .store = RV_CLI_READS_IF_ANY,
    .run = dead,
};
static const struct rv_cli_verb retry_verb = {
    .name = "tasks retry",
    .args = "TASK...",
    .summary = "put failed or cancelled tasks back into the queue",
    .text = "The task is pending at once and has all its retries again. A unique prefix of an id is enough.",
    .examples = "reeve tasks retry task_8f14e45fceea167a",
    .groups = {&cli_of_stores, &cli_of_commits},
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .takes = &cli_takes_tasks,
    .store = RV_CLI_CHANGES,
    .run = retry,
};
static const struct rv_cli_verb cancel_verb = {
    .name = "tasks cancel",
    .args = "TASK...",
    .summary = "cancel tasks",
    .text = "A waiting or pending task is cancelled at once. The worker of a task in progress is asked to stop; the\n"
            "task is cancelled when it does. A unique prefix of an id is enough.",
    .examples = "reeve tasks cancel task_8f14e45fceea167a",
    .groups = {&cli_of_stores, &cli_of_commits},
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .takes = &cli_takes_tasks,
    .store = RV_CLI_CHANGES,
    .run = cancel,
};
static const struct rv_cli_verb prune_verb = {
    .name = "tasks prune",
    .args = "",
    .summary = "delete tasks that ended long ago",
    .text = "Deletes completed, failed and cancelled tasks of all tenants, with their events, in small batches, and "
            "schedules\n"
            "that have ended. Runs are kept; `reeve gc` deletes those.",
    .examples = "reeve tasks prune --older-than 30d",
    RV_CLI_OPTIONS(prune_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .run = prune,
};
static const struct rv_cli_verb lanes_verb = {
    .name = "tasks lanes",
    .args = "",
    .summary = "show how many tasks of a tenant wait and are in progress",
    .text = "A lane holds the tasks of one tenant with the same tier and needs. Workers take tasks from the lanes in\n"
            "turn, by weight.",
    .examples = "reeve tasks lanes --tenant acme",
    RV_CLI_OPTIONS(lanes_options),
    .groups = {&cli_of_stores},
    .store = RV_CLI_READS_IF_ANY,
    .run = lanes,
};
static const struct rv_cli_verb share_verb = {
    .name = "tasks share",
    .args = "",
    .summary = "set the share of the workers that a tenant gets",
    .text =
        "Changes the weight and the cap of all lanes of the tenant, present and future. An option that is not given\n"
        "is set to its default.",
    .examples = "reeve tasks share --tenant acme --weight 3 --cap 20",
    RV_CLI_OPTIONS(share_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .run = share,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb,   &verb_tasks_show, &verb_tasks_add, &dead_verb,  &retry_verb,
    &cancel_verb, &lanes_verb,      &share_verb,     &prune_verb, NULL};

const struct rv_cli_verb verb_tasks = {
    .name = "tasks",
    .args = "VERB",
    .summary = "list, inspect and manage the queue of tasks",
    .text = "Work that waits for a worker is a task of the store: a run, a scheduled job. With --user (or REEVE_USER)\n"
            "only the tasks of that user are visible.",
    .examples = "reeve tasks                        # newest first\n"
                "reeve tasks show TASK              # what happened to it\n"
                "reeve tasks dead                   # those that failed for good",
    .subs = subs,
};
