/* reeve sim: drive a pipeline through thousands of made-up runs, with faults. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORKERS    64                 /* threads: no machine of a developer has more cores; more is an error */
#define MAX_TEXT_BYTES ((size_t)64 << 20) /* of a report: it is in memory until the last seed */

static void show_progress(void *self, int64_t done, int64_t total)
{
    (void)self;
    cli_say("\r\033[K%lld of %lld seeds%s", (long long)done, (long long)total, done < total ? "" : "\r\033[K");
}

struct request {
    struct rv_sim_opts opts;
    const char *path, *script, *faults;
    int64_t workers;
    bool json;
};

static int read_request(struct rv_cli *cli, struct request *q, rv_err **err)
{
    const char *mode = cli_value(cli, "mode");
    enum rv_run_mode which = RV_MODE_UNSET;
    int64_t seed = 0;

    *q = (struct request){.opts = RV_SIM_OPTS_INIT,
                          .path = cli->words[0],
                          .script = cli_value(cli, "script"),
                          .faults = cli_value(cli, "faults"),
                          .workers = sysconf(_SC_NPROCESSORS_ONLN),
                          .json = cli_flag(cli, "json")};
    q->opts.first_seed = 1;
    q->opts.use_mocks = cli_flag(cli, "mock");
    int rc = cli_int(cli, "seeds", 1, INT64_C(1) << 32, &q->opts.n_seeds, err);
    if (rc == 0)
        rc = cli_int(cli, "workers", 1, MAX_WORKERS, &q->workers, err);
    if (rc == 0)
        rc = cli_int(cli, "seed", 0, INT64_MAX, &seed, err);
    if (rc == 0 && q->faults)
        rc = rv_sim_faults_of(rv_str_of(q->faults), &q->opts.faults, err);
    if (rc == 0 && mode)
        rc = rv_run_mode_of(rv_str_of(mode), &which, err);
    if (rc < 0)
        return rc;
    if (mode)
        q->opts.mode = which;
    if (cli_value(cli, "seed")) {
        q->opts.first_seed = (uint64_t)seed;
        q->opts.n_seeds = 1;
        q->opts.trace = true;
    }
    q->workers = q->workers < 1 ? 1 : q->workers > MAX_WORKERS ? MAX_WORKERS : q->workers;
    if (q->workers > q->opts.n_seeds)
        q->workers = q->opts.n_seeds;
    return 0;
}

/* How to see it again. */
static void write_repeat(const struct request *q, const struct rv_sim_report *r, rv_buf *b)
{
    rv_buf_printf(b, "\nagain: reeve sim %s --seed %llu", q->path, (unsigned long long)r->failure.seed);
    if (q->faults)
        rv_buf_printf(b, " --faults %s", q->faults);
    if (q->script)
        rv_buf_printf(b, " --script %s", q->script);
    if (q->opts.use_mocks)
        rv_buf_puts(b, " --mock");
    if (q->opts.mode != RV_UNSET)
        rv_buf_printf(b, " --mode %s", rv_run_mode_text((enum rv_run_mode)q->opts.mode));
    rv_buf_putc(b, '\n');
}

static int print_report(const struct request *q, const struct rv_sim_report *r, rv_err **err)
{
    const struct rv_pipeline *p = q->opts.subjects[0].pipeline;
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);

    if (q->json) {
        rv_sim_report_write_json(r, p, &w);
        rv_buf_putc(&text, '\n');
    } else {
        rv_sim_report_write_text(r, p, &text);
        if (r->has_failure)
            write_repeat(q, r, &text);
    }
    int rc = cli_print(0, &text, err);
    return rc == 0 && r->has_failure ? RV_EXIT_FAILED : rc;
}

static int simulate(struct rv_cli *cli, struct request *q, struct rv_app_subject *owns, struct rv_sim_subject *subjects,
                    rv_err **err)
{
    struct rv_sim_report report;

    for (int64_t i = 0; i < q->workers; i++) {
        int rc = rv_app_subject_load(&cli->app, q->path, q->script, &owns[i], &subjects[i], err);
        if (rc < 0)
            return rc;
        if (i == 0 && !cli_sound(cli, &owns[0].loaded, false))
            return RV_EXIT_USAGE;
        if (!subjects[i].pipeline)
            return RV_FAIL(err, RV_E_STATE, "\"%s\" changed while it was read", q->path);
    }
    q->opts.subjects = subjects;
    q->opts.n_subjects = (size_t)q->workers;
    if (cli->err_tty)
        q->opts.progress = show_progress;
    int rc = rv_sim_run(&q->opts, &report, err);
    if (rc < 0)
        return rc;
    rc = print_report(q, &report, err);
    rv_sim_report_fini(&report);
    return rc;
}

static int sim(struct rv_cli *cli, rv_err **err)
{
    struct rv_sim_subject subjects[MAX_WORKERS] = {{.pipeline = NULL}};
    struct rv_app_subject *owns = calloc(MAX_WORKERS, sizeof *owns);
    struct request q;

    if (!owns)
        return RV_FAIL(err, RV_E_NOMEM, "begin a simulation");
    int rc = read_request(cli, &q, err);
    if (rc == 0)
        rc = simulate(cli, &q, owns, subjects, err);
    for (size_t i = 0; i < MAX_WORKERS; i++)
        rv_app_subject_fini(&owns[i]);
    free(owns);
    return rc;
}

static const struct rv_cli_option sim_options[] = {
    {"seeds", 'n', "N", "number of runs to simulate (default 1000)", NULL, false},
    {"seed", 's', "S", "run only this seed and print it step by step", NULL, false},
    {"faults", 0, "LIST", "faults to inject: all, none, or a list such as crash,tool-error", NULL, false},
    {"script", 0, "FILE", "use the entries of this script as answers of models, stages and tools", "FILE", false},
    {"mode", 0, "MODE", "run mode, in place of the pipeline's", "sequential parallel", false},
    {"mock", 0, NULL, "use mock handlers in all stages that have one", NULL, false},
    {"workers", 'w', "N", "number of threads (default: one per core)", NULL, false},
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
};

const struct rv_cli_verb verb_sim = {
    .name = "sim",
    .args = "PIPELINE",
    .summary = "simulate a pipeline with random answers, faults and crashes",
    .text =
        "Runs the pipeline many times in simulated time, without models and without capabilities. Generated answers\n"
        "fit the pipeline; models and tools fail, people answer late, and the process crashes at any point and is\n"
        "recovered. The simulation checks that bounds hold, that no call is repeated that must not be, that every run\n"
        "ends or waits, and that the journal replays to the same bytes.\n"
        "\n"
        "One seed is one run. The same seeds give the same hash on any build and with any number of workers. A seed\n"
        "that finds a violation is reduced to the faults that matter and printed step by step; the exit status is\n"
        "then 1.",
    .examples = "reeve sim pipelines/loop.yaml                               # 1000 seeds, all faults\n"
                "reeve sim pipelines/confirm.yaml --seeds 100000 --faults crash,person\n"
                "reeve sim pipelines/loop.yaml --seed 17                     # one run, step by step",
    RV_CLI_OPTIONS(sim_options),
    .groups = {&cli_of_pipelines},
    .excludes = "seed seeds",
    RV_CLI_ONE_WORD,
    .run = sim,
};
