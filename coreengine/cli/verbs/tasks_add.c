/* reeve tasks add: a task of any type, for the handlers of workers. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

static const struct rv_cli_option add_options[] = {
    {"payload", 0, "JSON", "JSON object that the handler gets (default {}); - reads it from standard input", NULL,
     false},
    {"payload-file", 0, "FILE", "read the payload from a file", "FILE", false},
    {"label", 'l', "WORD", "label that its worker must have, e.g. gpu", NULL, true},
    {"priority", 'p', "N", "greater is sooner, among the work of one tenant (default 0)", NULL, false},
    {"delay", 0, "DURATION", "not before that long from now, e.g. 90s, 15min, 12h", NULL, false},
    {"retries", 0, "N", "attempts after the first one, when it fails (default 3)", NULL, false},
    {"key", 0, "TEXT", "if a task of this type with this key waits or is in progress, mean that one", NULL, false},
};

static int read_needs(const struct rv_cli *cli, struct rv_needs *out, rv_err **err)
{
    const char *label;
    int rc = 0;

    for (size_t i = 0; rc == 0 && (label = cli_nth(cli, "label", i)); i++)
        rc = rv_needs_add_label(out, label, err);
    return rc;
}

static int read_numbers(const struct rv_cli *cli, struct rv_new_task *task, rv_err **err)
{
    const char *delay = cli_value(cli, "delay");
    int64_t us = 0;

    int rc = cli_int(cli, "priority", -RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY, &task->priority, err);
    if (rc == 0)
        rc = cli_int(cli, "retries", 0, RV_TASK_MAX_RETRIES, &task->max_retries, err);
    if (rc == 0 && delay) {
        rc = cli_parse_duration(delay, &us, err);
        if (rc < 0)
            return RV_WRAP(err, rc, "read --delay");
    }
    task->scheduled_us = delay ? task->now_us + us : 0;
    return rc;
}

static int add(struct rv_cli *cli, rv_err **err)
{
    const struct rv_store_scope *scope = &cli->app.scope;
    const char *given = cli_value(cli, "payload"), *file = cli_value(cli, "payload-file");
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON), text = RV_BUF_INIT(RV_STORE_MAX_ID + 2);
    struct rv_needs needs = {NULL, 0};
    struct rv_enqueued out;
    char id[RV_ID_MAX];
    struct rv_new_task task = {.id = id,
                               .tenant = scope->tenant,
                               .user = scope->user && scope->user[0] ? scope->user : NULL,
                               .type = cli->words[0],
                               .key = cli_value(cli, "key"),
                               .max_retries = RV_UNSET,
                               .now_us = rv_app_now_us()};

    if (strcmp(task.type, RV_TASK_OF_RUN) == 0)
        return cli_usage(cli, err, "tasks of type \"%s\" are runs: `reeve submit PIPELINE` queues one", RV_TASK_OF_RUN);
    rv_id_make(rv_rand_system(), "task_", id);
    int rc = read_numbers(cli, &task, err);
    if (rc == 0)
        rc = read_needs(cli, &needs, err);
    if (rc == 0 && (given || file)) {
        rc = cli_read_text(given, file, &payload, err);
        if (rc == 0)
            rc = rv_buf_check(&payload, "payload", err);
        if (rc < 0)
            rc = RV_WRAP(err, rc, "read the payload");
    }
    task.payload = rv_buf_str(&payload);
    task.needs = (const char *const *)needs.items;
    task.n_needs = needs.n;
    if (rc == 0)
        rc = rv_app_store_open(&cli->app, RV_APP_STORE_MAKE, &cli->store, err);
    if (rc == 0)
        rc = rv_store_enqueue(cli->store, &task, &out, err);
    if (rc == 0 && !out.is_new)
        cli_say("task %s was added with this key before\n", out.id);
    if (rc == 0)
        rv_buf_printf(&text, "%s\n", out.id);
    rv_needs_fini(&needs);
    rv_buf_fini(&payload);
    return cli_print(rc, &text, err);
}

const struct rv_cli_verb verb_tasks_add = {
    .name = "tasks add",
    .args = "TYPE",
    .summary = "queue a task for the handlers of workers",
    .text =
        "Prints the id of the task. A worker that was started with `--handler TYPE=...` does it: with a pipeline, "
        "which\n"
        "gets the payload as its metadata and the member `input` (else the whole payload as text) as its input, or "
        "with\n"
        "a tool of a capability, which gets the payload as its parameters. The result of the task is the response of\n"
        "the pipeline or the result of the tool. A failed attempt is repeated after 30 seconds, 2 minutes, 8 minutes.",
    .examples = "reeve tasks add news --payload '{\"input\": \"today\"}' --user ada\n"
                "reeve tasks add backup --key nightly --delay 2h",
    RV_CLI_OPTIONS(add_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .excludes = "payload payload-file",
    RV_CLI_ONE_WORD,
    .run = add,
};
