/* reeve sim: drive a pipeline through thousands of made-up runs, with faults. */
#include "coreengine/cli/sources.h"
#include "coreengine/cli/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/sim/sim.h"

#define MAX_WORKERS    64
#define MAX_TEXT_BYTES ((size_t)64 << 20)

/* A pipeline as one thread has it: nothing is shared. */
struct own {
    struct rv_app_loaded loaded;
    struct rv_catalog plugins, *scripts; /* each script's tools on top of those before */
    const char **tools;                  /* all that are known */
    struct rv_sim_agent *agents;         /* that may be asked; their texts are owned */
    size_t n_agents;
    bool is_loaded;
};

static void own_fini(struct own *o)
{
    if (o->is_loaded)
        rv_app_loaded_fini(&o->loaded);
    free(o->scripts);
    free(o->tools);
    for (size_t i = 0; i < o->n_agents; i++) {
        free((char *)o->agents[i].name);
        free((char *)o->agents[i].document.ptr);
    }
    free(o->agents);
}

static int add_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                     rv_err **err)
{
    struct own *o = self;
    struct rv_sim_agent *agents = realloc(o->agents, (o->n_agents + 1) * sizeof *agents);

    (void)fault; /* one with faults is there, and can not be used */
    if (!agents)
        return RV_FAIL(err, RV_E_NOMEM, "list the agents that may be asked");
    o->agents = agents;
    struct rv_sim_agent *a = &o->agents[o->n_agents++];
    *a = (struct rv_sim_agent){.name = rv_str_dup(rv_str_of(name))};
    if (found->doc)
        a->document = (rv_str){rv_str_dup(found->text), found->text.len};
    return a->name && (a->document.ptr || !found->doc) ? 0
                                                       : RV_FAIL(err, RV_E_NOMEM, "list the agents that may be asked");
}

/* Agents that a run of this pipeline would find. */
static int list_agents(const struct rv_cli_args *args, struct own *o, struct rv_sim_subject *subject, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    int rc = o->loaded.agents ? rv_agents_list(o->loaded.agents, &scope, add_agent, o, err) : 0;

    subject->agents = o->agents;
    subject->n_agents = o->n_agents;
    return rc;
}

/* The names of all tools, borrowed; a name may come twice. */
static int list_tools(struct own *o, struct rv_sim_subject *subject, rv_err **err)
{
    const struct rv_app_loaded *l = &o->loaded;
    struct rv_known_names known = rv_plugins_names(l->plugins);
    size_t n_scripts = (l->test_scripts ? l->pipeline->n_tests : 0) + 1, n = 0;

    for (size_t i = 0; i <= n_scripts; i++) { /* the capabilities, the script, those of the tests */
        const rv_script *s = i == 1 ? l->script : i > 1 ? l->test_scripts[i - 2] : NULL;
        const char *const *names = NULL;
        size_t more = 0;
        if (i == 0)
            names = known.list(known.self, RV_NAME_TOOL, &more);
        else if (s)
            names = rv_script_tool_names(s, &more);
        const char **tools = realloc(o->tools, (n + more + 1) * sizeof *tools);
        if (!tools)
            return RV_FAIL(err, RV_E_NOMEM, "list the tools of pipeline \"%s\"", l->pipeline->name);
        o->tools = tools;
        for (size_t k = 0; k < more; k++)
            o->tools[n++] = names[k];
    }
    subject->tools = o->tools;
    subject->n_tools = n;
    return 0;
}

/* Without a script of its own the tools of the pipeline's tests are known, so that their schemas are. */
static int own_load(struct rv_cli *cli, const struct rv_cli_args *args, const char *path, const char *script,
                    struct own *o, struct rv_sim_subject *subject, rv_err **err)
{
    struct rv_app_loaded *l = &o->loaded;
    const struct rv_app_load_opts opts = {.script = script, .tests = !script};
    int rc = rv_app_load(&cli->app, path, &opts, l, err);

    if (rc < 0)
        return rc;
    o->is_loaded = true;
    if (!l->pipeline || rv_findings_n_errors(l->findings) > 0)
        return 0; /* told by whoever looks at the first */
    o->scripts = calloc(l->pipeline->n_tests + 2, sizeof *o->scripts);
    if (!o->scripts)
        return RV_FAIL(err, RV_E_NOMEM, "load pipeline \"%s\"", path);
    o->plugins = rv_plugins_catalog(l->plugins);
    const struct rv_catalog *top = &o->plugins;
    size_t n = 0;
    for (size_t i = 0; l->test_scripts && i < l->pipeline->n_tests; i++)
        if (l->test_scripts[i]) {
            o->scripts[n] = rv_script_catalog(l->test_scripts[i], top);
            top = &o->scripts[n++];
        }
    if (l->script) {
        o->scripts[n] = rv_script_catalog(l->script, top);
        top = &o->scripts[n];
    }
    *subject = (struct rv_sim_subject){.pipeline = l->pipeline, .catalog = top, .script = l->script};
    rc = list_tools(o, subject, err);
    return rc < 0 ? rc : list_agents(args, o, subject, err);
}

static void show_progress(void *self, int64_t done, int64_t total)
{
    rv_buf line = RV_BUF_INIT(128);

    (void)self;
    rv_buf_printf(&line, "\r\033[K%lld of %lld seeds%s", (long long)done, (long long)total,
                  done < total ? "" : "\r\033[K");
    rv_cli_err(rv_buf_str(&line));
    rv_buf_fini(&line);
}

struct request {
    const struct rv_cli_args *args;
    struct rv_sim_opts opts;
    const char *path, *script, *faults;
    int64_t workers;
    bool json;
};

static int read_request(struct rv_cli *cli, const struct rv_cli_args *args, struct request *q)
{
    const char *mode = rv_cli_value(args, "mode");
    int64_t seed = 0;
    rv_err *err = NULL;

    *q = (struct request){.args = args,
                          .opts = RV_SIM_OPTS_INIT,
                          .path = args->words[0],
                          .script = rv_cli_value(args, "script"),
                          .faults = rv_cli_value(args, "faults"),
                          .workers = sysconf(_SC_NPROCESSORS_ONLN),
                          .json = rv_cli_flag(args, "json")};
    q->opts.first_seed = 1;
    q->opts.use_mocks = rv_cli_flag(args, "mock");
    int rc = rv_cli_int(args, "seeds", 1, INT64_C(1) << 32, &q->opts.n_seeds, &err);
    if (rc == 0)
        rc = rv_cli_int(args, "workers", 1, MAX_WORKERS, &q->workers, &err);
    if (rc == 0)
        rc = rv_cli_int(args, "seed", 0, INT64_MAX, &seed, &err);
    if (rc == 0 && q->faults)
        rc = rv_sim_faults_of(rv_str_of(q->faults), &q->opts.faults, &err);
    if (rc < 0)
        return rv_cli_report(cli, err);
    if (mode)
        q->opts.mode = strcmp(mode, "parallel") == 0 ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL;
    if (rv_cli_value(args, "seed")) {
        if (rv_cli_value(args, "seeds"))
            return rv_cli_usage(cli, args, "--seed runs that one alone: --seeds does not go with it");
        q->opts.first_seed = (uint64_t)seed;
        q->opts.n_seeds = 1;
        q->opts.trace = true;
    }
    q->workers = q->workers < 1 ? 1 : q->workers > MAX_WORKERS ? MAX_WORKERS : q->workers;
    if (q->workers > q->opts.n_seeds)
        q->workers = q->opts.n_seeds;
    return RV_EXIT_COMPLETED;
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

static int print_report(struct rv_cli *cli, const struct request *q, const struct rv_sim_report *r)
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
    int status = rv_cli_print(cli, &text);
    return r->has_failure ? RV_EXIT_FAILED : status;
}

static int simulate(struct rv_cli *cli, struct request *q, struct own *owns, struct rv_sim_subject *subjects)
{
    struct rv_sim_report report;
    rv_err *err = NULL;

    for (int64_t i = 0; i < q->workers; i++) {
        if (own_load(cli, q->args, q->path, q->script, &owns[i], &subjects[i], &err) < 0)
            return rv_cli_report(cli, err);
        if (i == 0 && !rv_cli_sound(cli, &owns[0].loaded, false))
            return RV_EXIT_USAGE;
        if (!subjects[i].pipeline) {
            RV_IGNORE(RV_FAIL(&err, RV_E_STATE, "\"%s\" changed while it was read", q->path), "reported at once");
            return rv_cli_report(cli, err);
        }
    }
    q->opts.subjects = subjects;
    q->opts.n_subjects = (size_t)q->workers;
    if (cli->err_tty)
        q->opts.progress = show_progress;
    if (rv_sim_run(&q->opts, &report, &err) < 0)
        return rv_cli_report(cli, err);
    int status = print_report(cli, q, &report);
    rv_sim_report_fini(&report);
    return status;
}

static int sim(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct rv_sim_subject subjects[MAX_WORKERS] = {{.pipeline = NULL}};
    struct own *owns = calloc(MAX_WORKERS, sizeof *owns);
    struct request q;
    rv_err *err = NULL;

    if (!owns) {
        RV_IGNORE(RV_FAIL(&err, RV_E_NOMEM, "begin a simulation"), "reported at once");
        return rv_cli_report(cli, err);
    }
    int status = read_request(cli, args, &q);
    if (status == RV_EXIT_COMPLETED)
        status = simulate(cli, &q, owns, subjects);
    for (size_t i = 0; i < MAX_WORKERS; i++)
        own_fini(&owns[i]);
    free(owns);
    return status;
}

static const struct rv_cli_option sim_options[] = {
    {"seeds", 'n', "N", "runs to simulate (1000)", NULL, false},
    {"seed", 's', "S", "only this one, and tell step by step what happens", NULL, false},
    {"faults", 0, "LIST", "what may go wrong: all, none, or a list as crash,tool-error", NULL, false},
    {"script", 0, "FILE", "answers of models, stages and tools where it has entries", "FILE", false},
    {"mode", 0, "MODE", "sequential or parallel instead of the pipeline's", "sequential parallel", false},
    {"mock", 0, NULL, "stages with a mock handler are mocked", NULL, false},
    {"workers", 'w', "N", "threads (one per core)", NULL, false},
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
    RV_CLI_AGENT_OPTIONS,
};

const struct rv_cli_verb rv_verb_sim = {
    .name = "sim",
    .args = "PIPELINE",
    .summary = "simulate a pipeline with random answers, faults and crashes",
    .text =
        "Runs the pipeline again and again in simulated time, without models and without calling any capability. What\n"
        "they answer is made up to fit the pipeline; models and tools fail, people are late, and the process dies at\n"
        "any point and is recovered. Checked is that bounds hold, nothing is repeated that must not be, every run "
        "ends\n"
        "or waits, and the journal replays to the same bytes.\n"
        "\n"
        "One seed is one run. The same seeds give the same hash, on any build and with any number of workers. A seed\n"
        "that breaks something is cut down to what matters and told step by step; the exit status is 1 then.",
    .examples = "reeve sim pipelines/loop.yaml                               # 1000 seeds, all faults\n"
                "reeve sim pipelines/confirm.yaml --seeds 100000 --faults crash,person\n"
                "reeve sim pipelines/loop.yaml --seed 17                     # one run, step by step",
    .options = sim_options,
    .n_options = RV_COUNT(sim_options),
    .min_words = 1,
    .max_words = 1,
    .run = sim,
};
