#include "tests/unit/engine/talks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

#define LOG ((size_t)16 << 20)

static void must(int rc, rv_err *err, const char *what)
{
    char *text = rc < 0 ? rv_kit_err_take(err) : NULL;
    ck_assert_msg(rc == 0, "%s: %s", what, text);
}

/* --- all --- */

void talks_init(struct talks *a, const struct plan *plan, size_t n_plan)
{
    talks_init_logged(a, plan, n_plan, NULL);
}

void talks_init_logged(struct talks *a, const struct plan *plan, size_t n_plan, rv_log *log)
{
    static const char *const dirs[] = {HOSTILE_DIR, CAPABILITY_DIR};
    const struct rv_plugins_opts plugins = {dirs, RV_COUNT(dirs), RV_SOURCE_DIR, NULL, REEVE_PROGRAM, NULL};
    const struct rv_engine_opts opts = {.workers = 2, .log = log};
    rv_err *err = NULL;

    memset(a, 0, sizeof *a);
    model_server_start(&a->server, plan, n_plan);
    must(rv_plugins_new(&plugins, &a->plugins, &err), err, "plugins");
    must(rv_engine_new(&opts, &a->engine, &err), err, "engine");
}

void talks_fini(struct talks *a)
{
    bool settled = !a->engine || rv_engine_settle(a->engine, HANGS_MS);

    rv_engine_free(a->engine);
    ck_assert(settled);
    rv_plugins_free(a->plugins);
    for (size_t i = 0; i < a->n_pipelines; i++)
        rv_pipeline_free(a->pipelines[i]);
    model_server_stop(&a->server);
}

static const struct rv_pipeline *load_in(struct talks *a, const char *dir, const char *text)
{
    rv_findings *f = rv_findings_new();
    rv_buf said = RV_BUF_INIT(1 << 16);
    rv_err *err = NULL;

    ck_assert_uint_lt(a->n_pipelines, MAX_PIPELINES);
    must(rv_pipeline_parse(rv_str_of(text), "p.yaml", dir, f, &a->pipelines[a->n_pipelines], &err), err, "pipeline");
    rv_findings_write_text(f, false, &said);
    ck_assert_msg(rv_findings_n_errors(f) == 0, "%s", rv_buf_cstr(&said));
    rv_findings_free(f);
    rv_buf_fini(&said);
    return a->pipelines[a->n_pipelines++];
}

static const struct rv_pipeline *load(struct talks *a, const char *text)
{
    return load_in(a, ".", text);
}

char *talks_text(const struct talks *a, const struct asking *how)
{
    rv_buf text = RV_BUF_INIT(1 << 12);

    rv_buf_printf(&text,
                  "name: talk\nexecution: {%s}\nmodels:\n  default: {model: \"openai:m\", base_url: "
                  "\"http://127.0.0.1:%d/v1\", proxy: \"\"%s%s}\n"
                  "agents: [{name: ask, has_llm: true, model_role: default, output_mode: text%s%s}]\n",
                  how->execution ? how->execution : "", a->server.port, how->role ? ", " : "",
                  how->role ? how->role : "", how->stage ? ", " : "", how->stage ? how->stage : "");
    return rv_buf_steal(&text, NULL);
}

const struct rv_pipeline *talks_asking(struct talks *a, const struct asking *how)
{
    char *text = talks_text(a, how);
    const struct rv_pipeline *p = load(a, text);

    free(text);
    return p;
}

const struct rv_pipeline *talks_budget_within(struct talks *a, const struct asking *how)
{
    char *dir = rv_kit_tmpdir(), path[600], *text = talks_text(a, how);
    rv_buf inner = RV_BUF_INIT(1 << 12);

    snprintf(path, sizeof path, "%s/inner.yaml", dir);
    rv_buf_printf(&inner, "%sbudget: {usd: 1}\n", text);
    rv_kit_write(path, rv_buf_cstr(&inner));
    const struct rv_pipeline *p = load_in(a, dir, "name: outer\nagents: [{name: sub, pipeline: inner.yaml}]\n");
    rv_buf_fini(&inner);
    free(text);
    rv_kit_tmpdir_remove(dir);
    return p;
}

const struct rv_pipeline *talks_capability(struct talks *a, const char *name, bool is_isolated, const char *model,
                                           const char *execution)
{
    const struct rv_capability_config which = {
        .name = name, .isolation = is_isolated ? RV_ISOLATION_PROCESS : RV_ISOLATION_NONE, .src = {"p.yaml", 1, 1}};
    char text[512];
    rv_err *err = NULL;

    must(rv_plugins_load(a->plugins, &which, &err), err, name);
    snprintf(text, sizeof text,
             "name: talk\nexecution: {%s}\nmodels: {default: %s}\n"
             "agents: [{name: ask, has_llm: true, model_role: default, output_mode: text}]\n",
             execution, model);
    return load(a, text);
}

const struct rv_pipeline *talks_picture(struct talks *a, const char *name, const char *model)
{
    const struct rv_capability_config which = {.name = name, .src = {"p.yaml", 1, 1}};
    char text[512];
    rv_err *err = NULL;

    must(rv_plugins_load(a->plugins, &which, &err), err, name);
    snprintf(text, sizeof text,
             "name: talk\nmodels: {default: \"%s\"}\nagents:\n  - {name: ask, has_llm: true, model_role: default, "
             "output_mode: text, attachments: [\"'https://x/kea.png'\"]}\n",
             model);
    return load(a, text);
}

/* --- one --- */

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
#define X(name, text, meaning) [RV_LLM_DELTA_##name] = text,
    static const char *const kinds[] = {RV_LLM_DELTAS(X)};
#undef X
    struct talk *t = self;

    (void)from;
    if (d->kind == RV_LLM_DELTA_TEXT) {
        rv_buf_printf(&t->heard, "<%.*s>", RV_STR_ARG(d->text));
        if (++t->n_pieces == t->cancel_at)
            rv_exec_cancel(t->exec);
    } else {
        rv_buf_printf(&t->heard, "[%s]", kinds[d->kind]);
    }
    return !t->holds;
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    static const char type[] = "\"type\":\"";
    struct talk *t = self;

    (void)e;
    const char *at = memmem(line.ptr, line.len, type, sizeof type - 1);
    ck_assert_ptr_nonnull(at);
    at += sizeof type - 1;
    rv_buf_printf(&t->heard, "{%.*s}", (int)strcspn(at, "\""), at);
    rv_buf_add_str(&t->events, line);
    rv_buf_putc(&t->events, '\n');
}

static void on_payload(void *self, int64_t call_id, const char *provider, rv_str body)
{
    struct talk *t = self;

    (void)call_id;
    ck_assert_msg(strcmp(provider, "openai") == 0 || rv_provider_is_capability(provider), "%s", provider);
    t->n_payloads++;
    rv_buf_add_str(&t->payloads, body);
    rv_buf_putc(&t->payloads, '\n');
}

static void on_input(void *self, const struct rv_event *ev)
{
    struct talk *t = self;

    if (ev->kind == RV_EVENT_LLM_DONE)
        t->may_be_billed = ev->llm.may_be_billed;
}

void talk_begin(struct talks *a, struct talk *t, const struct rv_pipeline *pipeline)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_err *err = NULL;

    t->heard = RV_BUF_INIT(LOG);
    t->events = RV_BUF_INIT(LOG);
    t->payloads = RV_BUF_INIT(LOG);
    opts.pipeline = pipeline;
    opts.plugins = a->plugins;
    opts.observer.on_delta = on_delta;
    opts.observer.on_event = on_event;
    opts.on_payload = on_payload;
    opts.on_input = on_input;
    opts.self = opts.observer.self = t;
    rv_envelope *env = world_envelope("what is it?", rv_engine_now_us(a->engine));
    must(rv_engine_start(a->engine, &opts, env, NULL, &t->exec, &err), err, "start");
}

const char *talk_end(struct talks *a, struct talk *t)
{
    rv_err *err = NULL;

    must(rv_engine_wait(a->engine, t->exec, &err), err, "wait");
    return rv_run_status_text(rv_exec_status(t->exec));
}

const char *talk_whole(struct talks *a, struct talk *t, const struct rv_pipeline *pipeline)
{
    talk_begin(a, t, pipeline);
    return talk_end(a, t);
}

void talk_fini(struct talk *t)
{
    rv_exec_free(t->exec);
    rv_buf_fini(&t->heard);
    rv_buf_fini(&t->events);
    rv_buf_fini(&t->payloads);
}

const char *talk_event(const struct talk *t, const char *type, char *line, size_t size)
{
    char mark[64];
    const char *found = NULL;

    snprintf(mark, sizeof mark, "\"type\":\"%s\"", type);
    for (const char *at = rv_buf_cstr(&t->events); *at; at += strcspn(at, "\n") + 1) {
        const char *here = strstr(at, mark);
        if (here && (size_t)(here - at) < strcspn(at, "\n"))
            found = at;
    }
    ck_assert_msg(found != NULL, "no %s in %s", type, rv_buf_cstr(&t->events));
    snprintf(line, size, "%.*s", (int)strcspn(found, "\n"), found);
    return line;
}

/* --- the engine meanwhile --- */

/* A run of its own, which only waits. */
void engine_let_pass(rv_engine *e, int ms)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_findings *f = rv_findings_new();
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "script.yaml"), script[80];
    struct rv_pipeline *pipeline = NULL;
    rv_script *pause = NULL;
    rv_exec *x = NULL;
    rv_err *err = NULL;

    snprintf(script, sizeof script, "stages: {a: [{output: {}, delay_ms: %d}]}", ms);
    rv_kit_write(path, script);
    must(rv_script_read(path, f, &pause, &err), err, "script");
    must(rv_pipeline_parse(RV_STR_LIT("name: pause\nagents: [{name: a}]"), "p.yaml", ".", f, &pipeline, &err), err,
         "pause");
    opts.pipeline = pipeline;
    opts.script = pause;
    must(rv_engine_start(e, &opts, world_envelope("x", rv_engine_now_us(e)), NULL, &x, &err), err, "pause");
    must(rv_engine_wait(e, x, &err), err, "pause");
    rv_exec_free(x);
    rv_pipeline_free(pipeline);
    rv_script_free(pause);
    rv_findings_free(f);
    free(path);
    rv_kit_tmpdir_remove(dir);
}

void engine_until(rv_engine *e, const size_t *n, size_t at_least)
{
    while (*n < at_least) /* as long as it takes; Check ends what hangs */
        engine_let_pass(e, 2);
}
