#include "tests/unit/engine/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/kit/kit.h"

#define START_US 1700000000000000
#define NO_EVENT 99
#define LINES    ((size_t)64 << 20)

static void must(int rc, rv_err *err, const char *what)
{
    char *text = rc < 0 ? rv_kit_err_take(err) : NULL;
    ck_assert_msg(rc == 0, "%s: %s", what, text);
}

static void must_be_clean(rv_findings *f, const char *what)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    rv_findings_write_text(f, false, &text);
    ck_assert_msg(rv_findings_n_errors(f) == 0, "%s:\n%s", what, rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_findings_free(f);
}

static void load_script(struct world *w, const char *text)
{
    rv_findings *f = rv_findings_new();
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "script.yaml");
    rv_err *err = NULL;

    rv_kit_write(path, text);
    must(rv_script_read(path, f, &w->script, &err), err, "script");
    must_be_clean(f, "script");
    free(path);
    rv_kit_tmpdir_remove(dir);
}

static void load_capabilities(struct world *w, const char *const *names)
{
    static const char *const dirs[] = {HOSTILE_DIR, CAPABILITY_DIR};
    const struct rv_plugins_opts opts = {dirs, RV_COUNT(dirs), RV_SOURCE_DIR, NULL, NULL, NULL};
    rv_err *err = NULL;

    if (!names)
        return;
    must(rv_plugins_new(&opts, &w->plugins, &err), err, "plugins");
    for (size_t i = 0; names[i]; i++) {
        struct rv_capability_config which = {.name = names[i], .src = {"p.yaml", 1, 1}};
        if (strcmp(names[i], "files") == 0)
            which.config = rv_kit_json("{'roots': ['coreengine/base']}");
        must(rv_plugins_load(w->plugins, &which, &err), err, names[i]);
        json_object_put(which.config);
    }
}

void world_load(struct world *w, const char *pipeline, const char *script, const char *const *capabilities)
{
    rv_findings *f = rv_findings_new();
    rv_err *err = NULL;

    *w = (struct world){.spoils = RV_UNSET,
                        .events = RV_BUF_INIT(LINES),
                        .effects = RV_BUF_INIT(LINES),
                        .inputs = RV_BUF_INIT(LINES),
                        .deltas = RV_BUF_INIT(LINES),
                        .pieces = RV_BUF_INIT(LINES),
                        .states = RV_BUF_INIT(LINES)};
    must(rv_pipeline_parse(rv_str_of(pipeline), "p.yaml", ".", f, &w->pipeline, &err), err, "pipeline");
    must_be_clean(f, "pipeline");
    load_capabilities(w, capabilities);
    if (script)
        load_script(w, script);
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct world *w = self;
    (void)e;
    rv_buf_add_str(&w->events, line);
    rv_buf_putc(&w->events, '\n');
}

static void on_effect(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    struct world *w = self;
    rv_jw jw = rv_jw_on(&w->effects);
    rv_effect_write_json(all, e, &jw);
    rv_buf_putc(&w->effects, '\n');
}

static void on_input(void *self, const struct rv_event *ev)
{
    struct world *w = self;
    rv_jw jw = rv_jw_on(&w->inputs);
    rv_event_write_json(ev, &jw);
    rv_buf_putc(&w->inputs, '\n');
    if (w->spoils == (int)ev->kind)
        ((struct rv_event *)(uintptr_t)ev)->kind = (enum rv_event_kind)NO_EVENT; /* a fault of the engine */
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct world *w = self;

    if (d->kind == RV_LLM_DELTA_TEXT)
        rv_buf_printf(&w->deltas, "%d@%lld %.*s\n", from->stage, (long long)world_elapsed_ms(w), RV_STR_ARG(d->text));
    else if (d->kind == RV_LLM_DELTA_TOOL_START)
        rv_buf_printf(&w->pieces, "%.*s ", RV_STR_ARG(d->id));
    return true;
}

static void on_state(void *self, rv_str state)
{
    struct world *w = self;
    rv_buf_add_str(&w->states, state);
    rv_buf_putc(&w->states, '\n');
}

rv_envelope *world_envelope(const char *input, int64_t now_us)
{
    const struct rv_envelope_seed seed = {.raw_input = rv_str_of(input), .user_id = rv_str_of("ada")};
    struct rv_rand_state state;
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    must(rv_envelope_new(&seed, rv_rand_seeded(&state, 7), now_us, &env, &err), err, "envelope");
    return env;
}

static struct rv_exec_opts ready(struct world *w, const struct how *how)
{
    const struct rv_engine_opts opts = {.workers = how->workers ? how->workers : 2,
                                        .worker_idle_ms = how->worker_idle_ms,
                                        .virtual_time = !how->real_time,
                                        .virtual_start_us = how->start_us ? how->start_us : START_US,
                                        .clock = how->clock,
                                        .log = how->log,
                                        .store = how->store,
                                        .owner = "test/1",
                                        .lease_us = how->lease_us,
                                        .traces = how->traces};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    rv_err *err = NULL;

    must(rv_engine_new(&opts, &w->engine, &err), err, "engine");
    w->started_us = rv_engine_now_us(w->engine);
    x.pipeline = w->pipeline;
    x.plugins = w->plugins;
    x.script = w->script;
    x.mode = how->mode - 1;
    x.use_mocks = how->use_mocks;
    x.answer_from_script = !how->no_answers;
    x.saves = how->saves ? RV_SAVES_EACH : RV_SAVES_NONE;
    x.max_parallel = how->max_parallel;
    x.quotas = how->quotas;
    x.services = how->services;
    x.conversation = how->conversation;
    x.observer.on_event = on_event;
    x.on_effect = on_effect;
    x.on_input = on_input;
    x.observer.on_delta = on_delta;
    x.on_state = on_state;
    x.self = x.observer.self = w;
    return x;
}

static int keep(struct world *w, const struct how *how, const rv_envelope *env, rv_err **err)
{
    struct rv_journal_start start = {.pipeline = w->pipeline, .env = env, .owner = "test/1"};
    char hash[RV_STORE_HASH_MAX];
    bool flags[64] = {false};

    int rc = rv_store_put_blob(how->store, RV_STR_LIT("{}"), hash, err);
    if (rc < 0)
        return rc;
    start.bundle = hash;
    start.now_us = w->started_us;
    start.lease_us = how->lease_us;
    start.begin = (struct rv_journal_begin){.mode = how->mode - 1,
                                            .use_mocks = how->use_mocks,
                                            .has_script = w->script != NULL,
                                            .answers_from_script = w->script && !how->no_answers,
                                            .is_script_blind = rv_script_is_blind(w->script),
                                            .max_parallel = RV_ENGINE_MAX_PARALLEL,
                                            .conversation = how->conversation};
    if (w->script) {
        rv_script_mark_stages(w->script, w->pipeline, flags);
        start.begin.scripted = flags;
    }
    return rv_journal_create(how->store, &start, &w->journal, err);
}

int world_try_start(struct world *w, const struct how *how, const char *input, rv_err **err)
{
    struct rv_exec_opts x = ready(w, how);
    rv_envelope *env = world_envelope(input, w->started_us);

    if (how->plan)
        must(rv_envelope_set_output(env, RV_STR_LIT("plan"), how->plan, NULL), NULL, "a plan");
    int rc = how->store ? keep(w, how, env, err) : 0;
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    x.journal = w->journal;
    return rv_engine_start(w->engine, &x, env, NULL, &w->exec, err);
}

void world_start(struct world *w, const struct how *how, const char *input)
{
    rv_err *err = NULL;

    must(world_try_start(w, how, input, &err), err, "start");
}

int world_continue(struct world *w, const struct how *how, const char *run, const struct rv_response *response,
                   rv_err **err)
{
    const struct rv_store_scope all = {NULL, NULL};
    struct rv_exec_opts x = ready(w, how);

    int rc = rv_journal_open(how->store, &all, run, &(struct rv_journal_claim){"test/1", w->started_us, how->lease_us},
                             &w->journal, err);
    x.journal = w->journal;
    if (rc == 0)
        rc = how->cancels ? rv_engine_continue_cancel(w->engine, &x, &all, &w->exec, err)
                          : rv_engine_continue(w->engine, &x, &all, response, &w->exec, err);
    return rc;
}

void world_run(struct world *w, const struct how *how, const char *pipeline, const char *script)
{
    rv_err *err = NULL;

    world_load(w, pipeline, script, how->capabilities);
    world_start(w, how, "what is it?");
    must(rv_engine_wait(w->engine, w->exec, &err), err, "wait");
}

static int break_at(void *self, const char *point, rv_err **err)
{
    struct breaker *b = self;

    if (strncmp(point, b->points, strlen(b->points)) != 0 || b->seen++ != b->at)
        return 0;
    b->fired = true;
    snprintf(b->where, sizeof b->where, "%s", point);
    return RV_FAIL(err, b->rc ? b->rc : RV_E_IO, "the process dies at %s", point);
}

void world_break(rv_store *store, struct breaker *b)
{
    rv_store_set_faults(store, (struct rv_store_faults){b ? break_at : NULL, b});
}

void world_die(const struct how *how, const char *pipeline, const char *script, int n)
{
    struct breaker b = {.points = "append", .at = 2 * n - 2}; /* each has a point before and one after */
    struct world w;

    world_load(&w, pipeline, script, how->capabilities);
    world_break(how->store, &b);
    world_start(&w, how, "what is it?");
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), RV_E_IO);
    ck_assert(b.fired);
    world_break(how->store, NULL);
    world_fini(&w);
}

const char *world_run_id(void)
{
    static char id[64];
    rv_envelope *env = world_envelope("what is it?", 0);

    snprintf(id, sizeof id, "%s", rv_envelope_fields(env)->envelope_id);
    rv_envelope_free(env);
    return id;
}

char *world_essence(const rv_envelope *env)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    json_object *outputs = NULL;

    ck_assert_int_eq(rv_envelope_build_outputs(env, &outputs, NULL), 0);
    rv_buf_printf(&b, "%s %lld %s ", rv_run_status_text(rv_envelope_fields(env)->status),
                  (long long)rv_envelope_fields(env)->agent_hop_count,
                  rv_envelope_fields(env)->termination_reason ? rv_envelope_fields(env)->termination_reason : "");
    rv_json_write(outputs, &b);
    json_object_put(outputs);
    return rv_buf_steal(&b, NULL);
}

void world_fini(struct world *w)
{
    bool settled = true;

    rv_exec_free(w->exec);
    if (w->engine)
        settled = rv_engine_settle(w->engine, HANGS_MS);
    rv_engine_free(w->engine);
    ck_assert(settled);
    rv_journal_free(w->journal);
    rv_plugins_free(w->plugins);
    rv_script_free(w->script);
    rv_pipeline_free(w->pipeline);
    rv_buf_fini(&w->events);
    rv_buf_fini(&w->effects);
    rv_buf_fini(&w->inputs);
    rv_buf_fini(&w->deltas);
    rv_buf_fini(&w->pieces);
    rv_buf_fini(&w->states);
}

char *world_state(const struct world *w)
{
    rv_buf b = RV_BUF_INIT(LINES);

    rv_envelope_write_state(rv_exec_envelope(w->exec), &b);
    ck_assert_int_eq(b.rc, 0);
    return rv_buf_steal(&b, NULL);
}

const char *world_status(const struct world *w)
{
    return rv_run_status_text(rv_exec_status(w->exec));
}

char *world_output(const struct world *w, const char *key)
{
    bool found = false;
    json_object *v = rv_envelope_output(rv_exec_envelope(w->exec), rv_str_of(key), &found);

    return found ? rv_kit_text(v) : rv_str_dup(rv_str_of("absent"));
}

char *world_visited(const struct world *w)
{
    static const char mark[] = "\"type\":\"stage_started\"", name[] = "\"stage\":\"";
    rv_buf b = RV_BUF_INIT(LINES);

    for (const char *at = strstr(rv_buf_cstr(&w->events), mark); at; at = strstr(at + 1, mark)) {
        const char *from = strstr(at, name) + strlen(name);
        if (b.len)
            rv_buf_putc(&b, ' ');
        rv_buf_add(&b, from, strcspn(from, "\""));
    }
    if (!b.len)
        rv_buf_puts(&b, "");
    return rv_buf_steal(&b, NULL);
}

void gate_init(struct gate *g)
{
    *g = (struct gate){.dir = rv_kit_tmpdir(), .fd = -1};
    g->path = rv_kit_path(g->dir, "gate");
    ck_assert_int_eq(mkfifo(g->path, 0600), 0);
}

void gate_open(struct gate *g)
{
    g->fd = open(g->path, O_RDWR | O_CLOEXEC); /* stays open for those that have not come to it yet */
    ck_assert_int_ge(g->fd, 0);
}

void gate_fini(struct gate *g)
{
    if (g->fd >= 0)
        close(g->fd);
    free(g->path);
    rv_kit_tmpdir_remove(g->dir);
}

int64_t world_elapsed_ms(const struct world *w)
{
    return (rv_engine_now_us(w->engine) - w->started_us) / 1000;
}

char *world_event(const struct world *w, const char *a, const char *b)
{
    const char *line = rv_buf_cstr(&w->events);

    while (*line) {
        size_t len = strcspn(line, "\n");
        if (memmem(line, len, a, strlen(a)) && memmem(line, len, b, strlen(b)))
            return rv_str_dup((rv_str){line, len});
        line += len + 1;
    }
    return NULL;
}
