/* reeve schedules: adding them (a pipeline, or a task of any type, at a time or again and again), the list, and ending
 * them. */
#include "coreengine/app/app.h"

#include <string.h>

#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

/* --- add --- */

#define MAX_LABELS RV_TASK_MAX_NEEDS /* --label of one command; more is an error */

static const struct rv_cli_option add_options[] = {
    {"cron", 0, "EXPR", "fire again and again: minute hour day month weekday, or @hourly, @daily, @weekly, ...", NULL,
     false},
    {"at", 0, "TIME", "fire once, e.g. 2030-12-24T18:00 or 2030-12-24T18:00:00+01:00", NULL, false},
    {"zone", 0, "NAME", "time zone, e.g. Europe/Berlin (default UTC)", NULL, false},
    {"input", 'i', "TEXT", "the input of each run; - reads it from standard input, now", NULL, false},
    {"input-file", 0, "FILE", "read the input from a file, now; - is standard input", "FILE", false},
    {"envelope", 0, "FILE", "start each run at the first stage with the outputs and counters of a (partial) state",
     "FILE", false},
    {"set", 0, "PATH=VALUE", "set a part of the initial state, e.g. metadata.lang=en", NULL, true},
    {"user", 'u', "ID", "user whose runs or tasks they are (default REEVE_USER)", NULL, false},
    {"session", 0, "ID", "session that the runs belong to", NULL, false},
    {"mode", 0, "MODE", "run one stage at a time, or all ready stages at once", "sequential parallel", false},
    {"script", 's', "FILE", "answers for models, stages, tools and people", "FILE", false},
    {"mock", 'm', NULL, "use mock handlers in all stages that have one", NULL, false},
    {"type", 't', "TYPE", "queue a task of this type instead of a run", NULL, false},
    {"payload", 0, "JSON", "with --type: JSON object that the handler gets (default {}); - reads standard input", NULL,
     false},
    {"payload-file", 0, "FILE", "with --type: read the payload from a file, now", "FILE", false},
    {"retries", 0, "N", "with --type: attempts after the first one, when it fails (default 3)", NULL, false},
    {"label", 'l', "WORD", "label that the worker must have, e.g. gpu", NULL, true},
    {"priority", 'p', "N", "greater is sooner, among the work of one tenant (default 0)", NULL, false},
};

/* --- runs --- */

static int add_runs(struct rv_cli *cli, struct rv_app_loaded *loaded, const struct rv_app_schedule *s,
                    char id[RV_ID_MAX], rv_err **err)
{
    struct rv_app_run run = {0};
    json_object *state = NULL;
    rv_envelope *env = NULL;

    int rc = cli_state(cli, &state, err);
    if (rc == 0)
        rc = cli_load_state(cli, state, &env, err); /* as each firing will load it */
    if (rc == 0)
        rc = cli_run_opts(cli, loaded, &run, err);
    if (rc == 0)
        rc = rv_app_run_open(&run, err);
    if (rc == 0)
        rc = rv_app_schedule_runs(&run, state, s, id, err);
    rv_envelope_free(env);
    json_object_put(state);
    rv_app_run_fini(&run);
    return rc;
}

static int add_pipeline(struct rv_cli *cli, const struct rv_app_schedule *s, char id[RV_ID_MAX], rv_err **err)
{
    const struct rv_app_load_opts opts = {.script = cli_value(cli, "script"), .connects = true, .keeps = true};
    struct rv_app_loaded loaded;

    int rc = rv_app_load(&cli->app, cli->words[1], &opts, &loaded, err);
    if (rc < 0)
        return rc;
    bool sound = cli_sound(cli, &loaded, false);
    if (sound) {
        rc = rv_app_check(&loaded, cli_flag(cli, "mock"), err); /* nothing is kept that cannot work */
        sound = rc == 0 && cli_sound(cli, &loaded, false);
    }
    if (rc == 0 && sound)
        rc = add_runs(cli, &loaded, s, id, err);
    rv_app_loaded_fini(&loaded);
    return rc == 0 && !sound ? RV_EXIT_USAGE : rc;
}

/* --- other tasks --- */

static int read_payload(const struct rv_cli *cli, rv_buf *out, rv_err **err)
{
    const char *given = cli_value(cli, "payload"), *file = cli_value(cli, "payload-file");

    if (!given && !file)
        return 0;
    int rc = cli_read_text(given, file, out, err);
    if (rc == 0)
        rc = rv_buf_check(out, "payload", err);
    return rc < 0 ? RV_WRAP(err, rc, "read the payload") : 0;
}

static int add_tasks(struct rv_cli *cli, const char *type, const struct rv_app_schedule *s, char id[RV_ID_MAX],
                     rv_err **err)
{
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    int64_t retries = RV_UNSET;

    int rc = cli_int(cli, "retries", 0, RV_TASK_MAX_RETRIES, &retries, err);
    if (rc == 0)
        rc = read_payload(cli, &payload, err);
    if (rc == 0)
        rc = rv_app_store_open(&cli->app, RV_APP_STORE_MAKE, &cli->store, err);
    if (rc == 0)
        rc = rv_app_schedule_tasks(&cli->app, cli->store,
                                   &(struct rv_app_scheduled_task){type, rv_buf_str(&payload), retries}, s, id, err);
    rv_buf_fini(&payload);
    return rc;
}

/* --- both --- */

/* What belongs to the one and not to the other. */
static int check_words(const struct rv_cli *cli, rv_err **err)
{
    static const char *const of_tasks[] = {"payload", "payload-file", "retries"}, *const of_runs[] = {
                                                                                      "input",    "input-file",
                                                                                      "envelope", "set",
                                                                                      "session",  "mode",
                                                                                      "script",   "mock"};
    bool is_task = cli_value(cli, "type") != NULL;

    if (!cli_value(cli, "cron") && !cli_value(cli, "at"))
        return cli_usage(cli, err, "say when: --cron \"0 9 * * MON-FRI\" or --at 2030-12-24T18:00");
    if (is_task && cli->n_words > 1)
        return cli_usage(cli, err, "\"%s\" and --type exclude each other: a schedule has a pipeline or a type",
                         cli->words[1]);
    if (!is_task && cli->n_words < 2)
        return cli_usage(cli, err, "say what is to be queued: a PIPELINE, or --type TYPE");
    for (size_t i = 0; !is_task && i < RV_COUNT(of_tasks); i++)
        if (cli_flag(cli, of_tasks[i]))
            return cli_usage(cli, err, "--%s needs --type", of_tasks[i]);
    for (size_t i = 0; is_task && i < RV_COUNT(of_runs); i++)
        if (cli_flag(cli, of_runs[i]))
            return cli_usage(cli, err, "--%s is for runs of a pipeline; tasks have --payload", of_runs[i]);
    return 0;
}

static int add(struct rv_cli *cli, rv_err **err)
{
    const char *labels[MAX_LABELS], *type = cli_value(cli, "type"), *user = cli->app.scope.user;
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_ID + 2);
    struct rv_app_schedule s = {
        .name = cli->words[0],
        .when = {.cron = cli_value(cli, "cron"), .at = cli_value(cli, "at"), .zone = cli_value(cli, "zone")},
        .labels = labels,
        .user = user && user[0] ? user : NULL};
    struct rv_app_times times;
    char id[RV_ID_MAX] = "";

    int rc = cli_values(cli, "label", labels, RV_COUNT(labels), &s.n_labels, err);
    if (rc == 0)
        rc = check_words(cli, err);
    if (rc == 0)
        rc = cli_int(cli, "priority", -RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY, &s.priority, err);
    if (rc == 0)
        rc = rv_app_times_open(&s.when, rv_app_now_us(), &times, err); /* before a file is read, or a store made */
    if (rc < 0)
        return rc;
    rv_app_times_fini(&times);
    rc = type ? add_tasks(cli, type, &s, id, err) : add_pipeline(cli, &s, id, err);
    if (rc != 0)
        return rc;
    rv_buf_printf(&text, "%s\n", id);
    return cli_print(0, &text, err);
}

static const struct rv_cli_verb add_verb = {
    .name = "schedules add",
    .args = "NAME [PIPELINE]",
    .summary = "queue a pipeline or a task at set times, once or repeatedly",
    .text =
        "Prints the id of the schedule. Workers fire it: each firing queues a run of the pipeline, as `reeve submit`\n"
        "does, or a task of a type, as `reeve tasks add` does. The pipeline, its input and other files are read now;\n"
        "change them, and add the schedule again. A firing that was missed because no worker ran is made up for once,\n"
        "if it is less than 24 hours late.",
    .examples =
        "reeve schedules add greet pipelines/hooks.yaml --input hi --cron '0 9 * * MON-FRI' --zone Europe/Berlin\n"
        "reeve schedules add eve pipelines/hooks.yaml --input hi --at 2030-12-24T18:00\n"
        "reeve schedules add news --type news --payload '{\"input\": \"today\"}' --cron @daily --user ada",
    RV_CLI_OPTIONS(add_options),
    .groups = {&cli_of_places, &cli_of_commits},
    .excludes = "cron at; payload payload-file; input input-file",
    .min_words = 1,
    .max_words = 2,
    .run = add,
};

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
        cli_table_add_text(l->list.table, NULL);
        return;
    }
    if (rv_zones_get(l->zones, rv_str_of(row->zone), &zone,
                     RV_CODE_ONLY("a zone that is unknown here: the time is shown as UTC, and says so")) < 0)
        zone = rv_zone_utc(); /* `show` says that its zone is unknown */
    rv_zone_format(zone, us, text);
    cli_table_add_text(l->list.table, text);
}

static void add_row(struct listing *l, const struct rv_schedule_row *row)
{
    rv_buf note = RV_BUF_INIT(RV_TASK_MAX_ERROR + 100);

    if (row->error)
        cli_write_preview(rv_str_of(row->error), 120, &note);
    else if (row->next_us == 0)
        rv_buf_puts(&note, "ended");
    cli_table_add_text(l->list.table, row->name);
    cli_table_add_text(l->list.table, row->expr);
    cli_table_add_text(l->list.table, row->zone);
    cli_table_add_text(l->list.table, row->bundle ? row->pipeline : row->type);
    cli_table_add_int(l->list.table, row->n_fired);
    write_time(l, row, row->last_us);
    write_time(l, row, row->next_us);
    cli_table_add_text(l->list.table, note.len > 0 ? rv_buf_cstr(&note) : NULL);
    rv_buf_fini(&note);
}

static int take_schedule(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    struct listing *l = self;

    if (!cli_list_takes(&l->list))
        return 0;
    if (l->list.json)
        return rv_app_schedule_write(&(const struct rv_app_schedule_view){.row = row}, l->list.json, err);
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
    int rc = cli_list_begin(cli, &l.list, columns, RV_COUNT(columns), err);

    if (rc == 0 && l.list.table && !(l.zones = rv_zones_new(NULL)))
        rc = RV_FAIL(err, RV_E_NOMEM, "list schedules");
    if (rc == 0 && cli->store)
        rc = rv_store_list_schedules(cli->store, &cli->app.scope, take_schedule, &l, err);
    rc = cli_list_end(cli, &l.list, rc, err);
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
        rc = cli_find_schedule(cli, cli->words[i], &row, err);
        if (rc == 0)
            rc = rv_store_delete_schedule(cli->store, &cli->app.scope, cli->words[i], err);
        if (rc == 0)
            rv_buf_printf(&said, "schedule %s is cancelled\n", row.name);
        rv_schedule_row_fini(&row);
    }
    if (said.len > 0) /* also of those before the one that failed */
        cli_out(rv_buf_str(&said));
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
    .groups = {&cli_of_stores},
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
    .groups = {&cli_of_stores, &cli_of_commits},
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .takes = &cli_takes_schedules,
    .store = RV_CLI_CHANGES,
    .run = cancel,
};

static const struct rv_cli_verb *const subs[] = {&list_verb,           &add_verb,    &verb_schedules_show,
                                                 &verb_schedules_next, &cancel_verb, NULL};

const struct rv_cli_verb verb_schedules = {
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
