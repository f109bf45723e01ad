/* A program around the library: load a pipeline, run it, print the answer. docs/how-to/embed-the-library.md */
#include <stdio.h>

#include "coreengine/engine/engine.h"

struct host {
    rv_findings *findings;
    struct rv_pipeline *pipeline;
    rv_plugins *plugins;
    rv_engine *engine;
    rv_exec *run;
};

/* Everything wrong with the pipeline or its capabilities is a finding; the caller prints them. */
static int load(struct host *h, const char *path, rv_err **err)
{
    char **dirs = NULL;
    size_t n_dirs = 0;

    h->findings = rv_findings_new();
    int rc = h->findings ? rv_pipeline_load(path, h->findings, &h->pipeline, err) : RV_E_NOMEM;
    if (rc < 0 || !h->pipeline)
        return rc;
    rc = rv_plugins_path_new(NULL, 0, h->pipeline->dir, &dirs, &n_dirs, err);
    if (rc == 0) {
        struct rv_plugins_opts opts = {
            .dirs = (const char *const *)dirs, .n_dirs = n_dirs, .base_dir = h->pipeline->dir};
        rc = rv_plugins_new(&opts, &h->plugins, err);
    }
    rv_plugins_path_free(dirs);
    if (rc == 0)
        rc = rv_plugins_load_all(h->plugins, h->pipeline, h->findings, err);
    if (rc == 0) {
        struct rv_known_names names = rv_plugins_names(h->plugins);
        rv_pipeline_check_names(h->pipeline, &names, h->findings);
    }
    return rc;
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    (void)self;
    if (e->emit == RV_EMIT_STAGE_COMPLETED)
        fprintf(stderr, "%.*s\n", RV_STR_ARG(line));
}

static int run(struct host *h, const char *input, rv_err **err)
{
    struct rv_envelope_seed seed = {.raw_input = rv_str_of(input)};
    struct rv_engine_opts engine_opts = {.workers = 2};
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct rv_clock clock = rv_clock_system();
    rv_envelope *env = NULL;
    rv_str answer;

    int rc = rv_envelope_new(&seed, rv_rand_system(), clock.now_us(clock.self), &env, err);
    if (rc == 0)
        rc = rv_engine_new(&engine_opts, &h->engine, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    opts.pipeline = h->pipeline;
    opts.plugins = h->plugins;
    opts.observer.on_event = on_event;
    rc = rv_engine_start(h->engine, &opts, env, NULL, &h->run, err); /* takes env */
    if (rc == 0)
        rc = rv_engine_wait(h->engine, h->run, err);
    if (rc < 0)
        return rc;
    printf("%s", rv_run_status_text(rv_exec_status(h->run)));
    if (rv_envelope_find_final_response(rv_exec_envelope(h->run), &h->pipeline->response, &answer))
        printf(": %.*s", RV_STR_ARG(answer));
    putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    struct host h = {0};
    rv_err *err = NULL;

    if (argc < 2) {
        fprintf(stderr, "usage: %s PIPELINE [INPUT]\n", argv[0]);
        return 2;
    }
    rv_buf text = RV_BUF_INIT(1 << 20);
    int rc = load(&h, argv[1], &err);
    if (rc == 0 && rv_findings_n_errors(h.findings) == 0)
        rc = run(&h, argc > 2 ? argv[2] : "", &err);
    else if (rc == 0)
        rc = RV_E_INVALID;
    if (err)
        rv_err_write_text(err, false, &text);
    else if (rc < 0)
        rv_findings_write_text(h.findings, false, &text);
    fputs(rv_buf_cstr(&text), stderr);
    rv_buf_fini(&text);
    rv_exec_free(h.run);
    rv_engine_free(h.engine);
    rv_plugins_free(h.plugins);
    rv_pipeline_free(h.pipeline);
    rv_findings_free(h.findings);
    rv_err_free(err);
    return rc < 0;
}
