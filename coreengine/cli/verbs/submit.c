/* reeve submit: a run for the queue. */
#include "coreengine/app/app.h"
#include "coreengine/calendar/calendar.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LABELS RV_TASK_MAX_NEEDS /* --label of one command; more is an error */

static const struct rv_cli_option submit_options[] = {
    {"input", 'i', "TEXT", "the input; - reads it from standard input", NULL, false},
    {"input-file", 0, "FILE", "read the input from a file; - is standard input", "FILE", false},
    {"envelope", 0, "FILE", "start at the first stage with the outputs and counters of a (partial) state", "FILE",
     false},
    {"set", 0, "PATH=VALUE", "set a part of the initial state, e.g. metadata.lang=en", NULL, true},
    {"user", 'u', "ID", "user whose run it is (default REEVE_USER)", NULL, false},
    {"session", 0, "ID", "session that the run belongs to", NULL, false},
    {"mode", 0, "MODE", "run one stage at a time, or all ready stages at once", "sequential parallel", false},
    {"script", 's', "FILE", "answers for models, stages, tools and people", "FILE", false},
    {"mock", 'm', NULL, "use mock handlers in all stages that have one", NULL, false},
    {"quotas", 0, "FILE", RV_CLI_QUOTAS_DOC, "FILE", false},
    {"label", 'l', "WORD", "label that its worker must have, e.g. gpu", NULL, true},
    {"priority", 'p', "N", "greater is sooner, among the work of one tenant (default 0)", NULL, false},
    {"at", 0, "TIME", "not before this time, e.g. 2026-12-24T18:00 or 2026-12-24T18:00:00+01:00", NULL, false},
    {"zone", 0, "NAME", "time zone of an --at without an offset, e.g. Europe/Berlin (default UTC)", NULL, false},
    {"delay", 0, "DURATION", "not before that long from now, e.g. 90s, 15min, 12h", NULL, false},
    {"key", 0, "TEXT", "if a run that was submitted with this key has not ended, mean that one and make no new one",
     NULL, false},
    {"wait", 'w', NULL, "wait until the run is over, or waits for an answer; print what `reeve run` prints", NULL,
     false},
    {"json", 'j', NULL, "with --wait: print the result as one JSON object", NULL, false},
    {"state", 0, NULL, "with --wait: print the whole state as one JSON object", NULL, false},
    {"events", 'e', NULL, "with --wait: print each event as a line of JSON instead of the answer", NULL, false},
};

static int read_at(const char *at, const char *zone_name, int64_t *out, rv_err **err)
{
    const rv_zone *zone = rv_zone_utc();
    const struct rv_src in_at = {"--at", 1, 1};
    struct rv_when when = {0};
    rv_zones *zones = rv_zones_new(NULL);

    if (!zones)
        return RV_FAIL(err, RV_E_NOMEM, "read a time zone");
    int rc = zone_name ? rv_zones_get(zones, rv_str_of(zone_name), &zone, err) : 0;
    if (rc == 0)
        rc = rv_when_parse(rv_str_of(at), zone, rv_app_now_us(), &in_at, &when, err);
    rv_zones_free(zones);
    if (rc == 0)
        *out = when.us;
    return rc;
}

static int read_due(const struct rv_cli *cli, int64_t *out, rv_err **err)
{
    const char *at = cli_value(cli, "at"), *delay = cli_value(cli, "delay");
    int64_t us = 0;
    int rc = 0;

    if (at) {
        return read_at(at, cli_value(cli, "zone"), out, err);
    }
    if (delay)
        rc = cli_parse_duration(delay, &us, err);
    if (rc == 0)
        *out = delay ? rv_app_now_us() + us : 0;
    return rc < 0 ? RV_WRAP(err, rc, "read --delay") : 0;
}

/* --- waiting for it --- */

static int conclude(struct rv_cli *cli, rv_store *store, const struct rv_app_past *p, rv_err **err)
{
    struct rv_replayed r = {0};

    int rc = rv_app_past_replay(store, p, NULL, &r, err);
    if (rc < 0)
        return rc;
    const rv_envelope *env = rv_run_envelope(r.run);
    rc = cli_print_result(cli, rv_app_past_pipeline(p), p->row.status, env, err);
    if (rc == 0 && p->row.status == RV_RUN_INTERRUPTED)
        cli_say_pending(cli, env, store, p->row.id);
    cli_explain_end(cli, rv_app_past_pipeline(p), p->row.status, env, NULL);
    rv_replayed_fini(&r);
    return rc < 0 ? rc : cli_exit_of(p->row.status);
}

static int wait_for(struct rv_cli *cli, rv_store *store, const char *run, rv_err **err)
{
    struct rv_app_past p = {0};

    int rc = rv_app_past_open(store, &cli->app.scope, run, &p, err);
    if (rc == 0)
        rc = cli_follow(store, &p, RV_CLI_UNTIL_WAITS, cli_flag(cli, "events"), err);
    if (rc == 0)
        rc = conclude(cli, store, &p, err);
    rv_app_past_fini(&p);
    return rc;
}

/* --- submitting --- */

static int submit_env(struct rv_cli *cli, struct rv_app_run *run, const rv_envelope *env, rv_err **err)
{
    const char *labels[MAX_LABELS];
    struct rv_app_submit how = {.key = cli_value(cli, "key"), .labels = labels};
    struct rv_app_submitted out;
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_ID + 2);

    if (how.key && how.key[0] == '\0')
        return RV_FAIL(err, RV_E_INVALID, "--key is empty: name what must not be done twice, or leave it out");
    int rc = cli_values(cli, "label", labels, RV_COUNT(labels), &how.n_labels, err);
    if (rc == 0)
        rc = cli_int(cli, "priority", -RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY, &how.priority, err);
    if (rc == 0)
        rc = read_due(cli, &how.due_us, err);
    if (rc == 0)
        rc = rv_app_run_open(run, err);
    if (rc == 0)
        rc = rv_app_submit(run, env, &how, &out, err);
    if (rc < 0)
        return rc;
    if (!out.is_new)
        cli_say("run %s was submitted with this key before\n", out.run);
    if (cli_flag(cli, "wait")) {
        if (out.is_new)
            cli_say("run %s\n", out.run);
        return wait_for(cli, run->store, out.run, err);
    }
    rv_buf_printf(&text, "%s\n", out.run);
    return cli_print(0, &text, err);
}

static int submit_loaded(struct rv_cli *cli, struct rv_app_loaded *loaded, rv_err **err)
{
    struct rv_app_run run = {0};
    rv_envelope *env = NULL;

    if (!cli_sound(cli, loaded, false))
        return RV_EXIT_USAGE;
    int rc = rv_app_check(loaded, cli_flag(cli, "mock"), err); /* nothing is kept of a run that cannot work */
    if (rc == 0 && !cli_sound(cli, loaded, false))
        return RV_EXIT_USAGE;
    if (rc == 0)
        rc = cli_envelope(cli, &env, err);
    if (rc == 0)
        rc = cli_run_opts(cli, loaded, &run, err);
    if (rc == 0)
        rc = submit_env(cli, &run, env, err);
    rv_envelope_free(env);
    rv_app_run_fini(&run);
    return rc;
}

static int submit(struct rv_cli *cli, rv_err **err)
{
    const struct rv_app_load_opts opts = {.script = cli_value(cli, "script"), .connects = true, .keeps = true};
    struct rv_app_loaded loaded;

    int rc = rv_app_load(&cli->app, cli->words[0], &opts, &loaded, err);
    if (rc < 0)
        return rc;
    rc = submit_loaded(cli, &loaded, err);
    rv_app_loaded_fini(&loaded);
    return rc;
}

const struct rv_cli_verb verb_submit = {
    .name = "submit",
    .args = "PIPELINE",
    .summary = "queue a run for a worker",
    .text =
        "Keeps a new run in the store, puts it into the queue and prints its id; a process of `reeve worker` runs it, "
        "on\n"
        "any machine that shares the store. The run needs a worker that has its labels, and the capabilities of the\n"
        "pipeline in the same major version, not older. `reeve runs show` says what a queued run waits for,\n"
        "`reeve runs cancel` ends it. With --wait the exit status is that of the run, as of `reeve run`.",
    .examples = "reeve submit pipelines/hooks.yaml --input hi\n"
                "reeve submit pipelines/hooks.yaml --input hi --wait   # as `reeve run`, but a worker does it\n"
                "reeve submit pipelines/hooks.yaml --input hi --label gpu --priority 5 --delay 15min",
    RV_CLI_OPTIONS(submit_options),
    .groups = {&cli_of_places, &cli_of_commits},
    .excludes = "json state events; at delay",
    .needs = "json wait; state wait; events wait",
    RV_CLI_ONE_WORD,
    .outlives_reader = true,
    .run = submit,
};
