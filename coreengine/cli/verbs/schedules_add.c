/* reeve schedules add: a pipeline, or a task of any type, at a time or again and again. */
#include "coreengine/app/schedules.h"
#include "coreengine/app/work.h"
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>

#define MAX_LABELS 16 /* --label of one command; more is an error */

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

    int rc = rv_cli_state(cli, &state, err);
    if (rc == 0)
        rc = rv_cli_load_state(cli, state, &env, err); /* as each firing will load it */
    if (rc == 0)
        rc = rv_cli_run_opts(cli, loaded, &run, err);
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
    const struct rv_app_load_opts opts = {.script = rv_cli_value(cli, "script"), .connects = true, .keeps = true};
    struct rv_app_loaded loaded;

    int rc = rv_app_load(&cli->app, cli->words[1], &opts, &loaded, err);
    if (rc < 0)
        return rc;
    bool sound = rv_cli_sound(cli, &loaded, false);
    if (sound) {
        rc = rv_app_check(&loaded, rv_cli_flag(cli, "mock"), err); /* nothing is kept that cannot work */
        sound = rc == 0 && rv_cli_sound(cli, &loaded, false);
    }
    if (rc == 0 && sound)
        rc = add_runs(cli, &loaded, s, id, err);
    rv_app_loaded_fini(&loaded);
    return rc == 0 && !sound ? RV_EXIT_USAGE : rc;
}

/* --- other tasks --- */

static int read_payload(const struct rv_cli *cli, rv_buf *out, rv_err **err)
{
    const char *given = rv_cli_value(cli, "payload"), *file = rv_cli_value(cli, "payload-file");

    if (!given && !file)
        return 0;
    int rc = rv_cli_read_text(given, file, out, err);
    if (rc == 0)
        rc = rv_buf_check(out, "payload", err);
    return rc < 0 ? RV_WRAP(err, rc, "read the payload") : 0;
}

static int add_tasks(struct rv_cli *cli, const char *type, const struct rv_app_schedule *s, char id[RV_ID_MAX],
                     rv_err **err)
{
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    int64_t retries = RV_UNSET;

    int rc = rv_cli_int(cli, "retries", 0, RV_TASK_MAX_RETRIES, &retries, err);
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
    bool is_task = rv_cli_value(cli, "type") != NULL;

    if (!rv_cli_value(cli, "cron") && !rv_cli_value(cli, "at"))
        return rv_cli_usage(cli, err, "say when: --cron \"0 9 * * MON-FRI\" or --at 2030-12-24T18:00");
    if (is_task && cli->n_words > 1)
        return rv_cli_usage(cli, err, "\"%s\" and --type exclude each other: a schedule has a pipeline or a type",
                            cli->words[1]);
    if (!is_task && cli->n_words < 2)
        return rv_cli_usage(cli, err, "say what is to be queued: a PIPELINE, or --type TYPE");
    for (size_t i = 0; !is_task && i < RV_COUNT(of_tasks); i++)
        if (rv_cli_flag(cli, of_tasks[i]))
            return rv_cli_usage(cli, err, "--%s needs --type", of_tasks[i]);
    for (size_t i = 0; is_task && i < RV_COUNT(of_runs); i++)
        if (rv_cli_flag(cli, of_runs[i]))
            return rv_cli_usage(cli, err, "--%s is for runs of a pipeline; tasks have --payload", of_runs[i]);
    return 0;
}

static int add(struct rv_cli *cli, rv_err **err)
{
    const char *labels[MAX_LABELS], *type = rv_cli_value(cli, "type"), *user = cli->app.scope.user;
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_ID + 2);
    struct rv_app_schedule s = {
        .name = cli->words[0],
        .when = {.cron = rv_cli_value(cli, "cron"), .at = rv_cli_value(cli, "at"), .zone = rv_cli_value(cli, "zone")},
        .labels = labels,
        .user = user && user[0] ? user : NULL};
    struct rv_app_times times;
    char id[RV_ID_MAX] = "";

    int rc = rv_cli_values(cli, "label", labels, RV_COUNT(labels), &s.n_labels, err);
    if (rc == 0)
        rc = check_words(cli, err);
    if (rc == 0)
        rc = rv_cli_int(cli, "priority", -RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY, &s.priority, err);
    if (rc == 0)
        rc = rv_app_times_open(&s.when, rv_app_now_us(), &times, err); /* before a file is read, or a store made */
    if (rc < 0)
        return rc;
    rv_app_times_fini(&times);
    rc = type ? add_tasks(cli, type, &s, id, err) : add_pipeline(cli, &s, id, err);
    if (rc != 0)
        return rc;
    rv_buf_printf(&text, "%s\n", id);
    return rv_cli_print(0, &text, err);
}

const struct rv_cli_verb rv_verb_schedules_add = {
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
    .groups = {&rv_cli_of_places, &rv_cli_of_commits},
    .excludes = "cron at; payload payload-file; input input-file",
    .min_words = 1,
    .max_words = 2,
    .run = add,
};
