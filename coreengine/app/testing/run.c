/* One test: an envelope made from its input, a run with its script, the state at the end. */
#include "coreengine/app/services.h"
#include "coreengine/app/testing/testing_internal.h"
#include "envelope/envelope.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEEDS 1000 /* of one run: more than the votes of a judge */

bool rv_test_has_passed(const struct rv_test_report *r)
{
    return rv_test_rate_holds(&r->rate);
}

static bool run_passed(const struct rv_test_report *r)
{
    return json_object_array_length(r->failures) == 0;
}

void rv_test_report_fini(struct rv_test_report *r)
{
    json_object_put(r->failures);
    json_object_put(r->visited);
    json_object_put(r->calls);
    json_object_put(r->events);
    json_object_put(r->questions);
    json_object_put(r->errors);
    json_object_put(r->state);
    json_object_put(r->judge);
    free(r->cassette);
    memset(r, 0, sizeof *r);
}

struct observer {
    const struct rv_pipeline *pipeline;
    int64_t number; /* of the run, from 1 */
    struct rv_test_report *report;
    rv_coverage *coverage;
    struct rv_test_recent recent;
    struct rv_cassette cassette; /* of a live test */
    json_object *skipped;        /* stages that never ran, though the history has a record of them; owned */
    rv_engine *engine;           /* owned; NULL: it never came so far */
    rv_exec *exec;               /* owned; NULL: it never began */
    rv_err *err;                 /* the first failure; taken by the caller */
    int rc;
};

static int note_question(struct observer *o, rv_str line, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = TEST_MAX_LINE, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *event = NULL;
    const char *text = NULL;

    int rc = rv_json_parse(line, &opts, &event, err);
    if (rc == 0) {
        if (!rv_json_get_text(event, "question", &text) && !rv_json_get_text(event, "message", &text))
            text = "";
        rc = rv_json_push_take(o->report->questions, json_object_new_string(text), err);
    }
    json_object_put(event);
    return rc;
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct observer *o = self;

    if (o->cassette.recorder)
        rv_recorder_note_event(o->cassette.recorder, e, line);
    if (o->rc < 0)
        return;
    app_test_recent_note(&o->recent, e, line);
    if (e->emit == RV_EMIT_INTERRUPT_PENDING)
        o->rc = note_question(o, line, &o->err);
    else if (e->emit == RV_EMIT_TOOL_CALL_START || e->emit == RV_EMIT_TOOL_RESULT)
        o->rc = app_test_note_call(o->report, e, line, &o->err);
    else if (e->emit == RV_EMIT_STAGE_SKIPPED)
        o->rc = rv_json_push_take(o->skipped, json_object_new_int(e->stage), &o->err);
    if (o->coverage)
        rv_coverage_note_event(o->coverage, e, line);
}

/* A failure that the model or the way to it may not have the next time; it is not worth a cassette. */
static bool model_failed(const struct rv_test_report *r)
{
    for (size_t i = 0; i < json_object_array_length(r->errors); i++) {
        const char *type = rv_json_text_or(json_object_array_get_idx(r->errors, i), "type", "");
        if (rv_error_is(type, rv_error_llm) || rv_error_is(type, rv_error_timeout))
            return true;
    }
    return false;
}

/* The run is over: keep what was recorded, or see whether the cassette had all that was asked. */
static int end_cassette(struct observer *o, rv_err **err)
{
    struct rv_cassette *c = &o->cassette;
    rv_buf text = RV_BUF_INIT(1 << 16);

    if (c->recorder) {
        bool is_whole =
            o->report->status != RV_RUN_CANCELLED && !model_failed(o->report) && !app_judge_failed(o->report);
        o->report->was_recorded = is_whole;
        return is_whole ? app_cassette_write(c, err) : 0;
    }
    if (!c->script || rv_script_n_holes(c->script) == 0)
        return 0;
    rv_buf_printf(&text,
                  "the cassette \"%s\" does not have the requests that the test makes now; record it again with "
                  "--live --record all",
                  rv_buf_cstr(&c->path));
    int rc = rv_buf_check(&text, "failure of a test", err);
    if (rc == 0)
        rc = app_test_complain(o->report, "/cassette", rv_buf_cstr(&text), err);
    rv_buf_fini(&text);
    return rc;
}

/* The state a test starts from: its `envelope`, with `input` on top. */
static int starting_state(const struct rv_test_config *test, json_object **out, rv_err **err)
{
    json_object *state = NULL;
    int rc = test->envelope ? rv_json_dup(test->envelope, &state, err) : 0;

    if (rc == 0 && !state && !(state = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "make an envelope");
    if (rc == 0 && test->input) {
        json_object_object_foreach (test->input, key, value) {
            rc = rv_json_set_ref(state, key, value, err);
            if (rc < 0)
                break;
        }
    }
    if (rc < 0)
        json_object_put(state);
    else
        *out = state;
    return rc;
}

static int load_envelope(const struct rv_test_config *test, int64_t number, rv_envelope **out, rv_err **err)
{
    struct rv_rand_state seed;
    json_object *state = NULL;

    int rc = starting_state(test, &state, err);
    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_seeded(&seed, RV_TEST_SEED + (uint64_t)number - 1), RV_TEST_START_US, out,
                              err);
    json_object_put(state);
    return rc;
}

static int gather_from(json_object *from, const char *key, json_object *to, rv_err **err)
{
    json_object *list = rv_json_get_arr(from, key);
    size_t n = list ? json_object_array_length(list) : 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = rv_json_push_ref(to, json_object_array_get_idx(list, i), err);
    return rc;
}

int app_test_gather(json_object *state, const char *key, json_object **out, rv_err **err)
{
    bool waits = strcmp(rv_json_text_or(state, "status", ""), rv_run_status_text(RV_RUN_INTERRUPTED)) == 0;
    json_object *all = json_object_new_array(), *branches = rv_json_get_arr(state, "branches");
    size_t n = branches && waits ? json_object_array_length(branches) : 0;
    int rc = all ? gather_from(state, key, all, err) : RV_FAIL(err, RV_E_NOMEM, "read the end of a test");

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = gather_from(rv_json_get_obj(json_object_array_get_idx(branches, i), "own"), key, all, err);
    if (rc < 0)
        json_object_put(all);
    else
        *out = all;
    return rc;
}

static bool never_ran(const json_object *skipped, int stage)
{
    for (size_t i = 0; i < json_object_array_length(skipped); i++)
        if (json_object_get_int(json_object_array_get_idx(skipped, i)) == stage)
            return true;
    return false;
}

/* Visits in the order of the history, without what was there before the run. */
static int list_visits(const struct rv_pipeline *p, struct observer *o, size_t n_before, rv_err **err)
{
    json_object *history = NULL;
    int rc = app_test_gather(o->report->state, "processing_history", &history, err);
    size_t n = rc == 0 ? json_object_array_length(history) : 0;

    for (size_t i = n_before; rc == 0 && i < n; i++) {
        json_object *record = json_object_array_get_idx(history, i);
        const char *agent = rv_json_text_or(record, "agent", "");
        const char *status = rv_json_text_or(record, "status", "");
        if (strcmp(status, "skipped") == 0 && never_ran(o->skipped, rv_pipeline_find_stage(p, rv_str_of(agent))))
            continue;
        rc = rv_json_push_take(o->report->visited, json_object_new_string(agent), err);
    }
    json_object_put(history);
    return rc;
}

/* A failure as people look for it: which stage, what kind, and where the stage stands. */
static int add_failure(const struct rv_pipeline *p, json_object *error, struct rv_test_report *r, rv_err **err)
{
    const char *code = NULL;
    json_object *entry = json_object_new_object();
    int rc = entry ? 0 : RV_FAIL(err, RV_E_NOMEM, "report a failed stage");

    const char *agent = rv_json_text_or(error, "agent", "");
    const char *type = rv_json_text_or(error, "error_type", "");
    const char *text = rv_json_text_or(error, "error", "");
    int stage = rv_pipeline_find_stage(p, rv_str_of(agent));
    if (rc == 0)
        rc = rv_json_set_text(entry, "stage", agent, err);
    if (rc == 0)
        rc = rv_json_set_text(entry, "type", type, err);
    if (rc == 0)
        rc = rv_json_set_text(entry, "text", text, err);
    if (rc == 0 && rv_json_get_text(error, "code", &code))
        rc = rv_json_set_text(entry, "code", code, err);
    if (rc == 0 && stage >= 0 && rv_utf8_valid(rv_str_of(p->file), NULL)) /* it is written as JSON */
        rc = rv_json_set_text(entry, "file", p->file, err);
    if (rc == 0 && stage >= 0)
        rc = rv_json_set_int(entry, "line", p->agents[stage].places.name.line, err);
    if (rc == 0)
        return rv_json_push_take(r->errors, entry, err);
    json_object_put(entry);
    return rc;
}

/* What failed in the run, and what ended it if that was no failure of a stage (a bound, a person). */
static int list_failures(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    json_object *errors = NULL;
    const char *last = NULL, *reason = NULL;

    int rc = app_test_gather(r->state, "errors", &errors, err);
    size_t n = rc == 0 ? json_object_array_length(errors) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_failure(p, json_object_array_get_idx(errors, i), r, err);
    if (rc < 0 || !f->terminated) {
        json_object_put(errors);
        return rc;
    }
    r->code = rv_reason_text(f->terminal_reason);
    RV_IGNORE(n == 0 || !rv_json_get_text(json_object_array_get_idx(errors, n - 1), "error", &last),
              "NULL: it has no error");
    if (rv_json_get_text(r->state, "termination_reason", &reason) && (!last || strcmp(last, reason) != 0))
        r->ended_by = reason;
    json_object_put(errors);
    return 0;
}

int app_test_read_state(const rv_envelope *env, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = TEST_MAX_LINE, .max_depth = RV_STATE_MAX_DEPTH};
    rv_buf text = RV_BUF_INIT(TEST_MAX_LINE);

    rv_envelope_write_state(env, &text);
    int rc = rv_buf_check(&text, "state", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, out, err);
    rv_buf_fini(&text);
    return rc;
}

static int read_end(const struct rv_pipeline *p, const rv_envelope *env, struct observer *o, size_t n_before,
                    rv_err **err)
{
    int rc = app_test_read_state(env, &o->report->state, err);

    o->report->cost_micro_usd = rv_envelope_used(env).usage.cost_micro_usd;
    if (rc == 0)
        rc = list_visits(p, o, n_before, err);
    if (rc == 0)
        rc = list_failures(p, env, o->report, err);
    return rc == 0 ? app_test_compare(p, env, o->report, err) : rc;
}

/* A run that failed has nothing to judge, and is not worth a vote. */
static int ask_judge(const struct rv_app_loaded *l, rv_engine *engine, rv_script *script, const rv_envelope *env,
                     struct observer *o, rv_err **err)
{
    const struct rv_judge_place place = {.engine = engine,
                                         .script = script,
                                         .cassette = &o->cassette,
                                         .seed = RV_TEST_SEED + (uint64_t)o->number * MAX_SEEDS};
    rv_str response = {NULL, 0};

    if (!rv_envelope_find_final_response(env, &l->pipeline->response, &response))
        response = (rv_str){NULL, 0};
    return app_test_ask_judge(l, &place, response, o->report, err);
}

/* A pause that the test begins with is answered like one that comes up on the way. */
static int first_answer(const rv_envelope *env, rv_script *script, struct rv_response *out, bool *found, rv_err **err)
{
    bool waits = rv_envelope_has_interrupt(env) && script;
    int rc = waits ? rv_script_on_wait(script, env, NULL, err) : 0;

    *found = waits && rc == 0 && rv_script_answer(script, out, NULL);
    return rc;
}

static int run(const struct rv_app *app, struct rv_app_loaded *l, size_t i, struct observer *o,
               const struct rv_exec_services *services, rv_err **err)
{
    const struct rv_test_config *test = &l->pipeline->tests[i];
    bool is_recorded = o->cassette.recorder != NULL;
    struct rv_engine_opts opts = {.workers = is_recorded ? 0 : 1,
                                  .virtual_time = !is_recorded,
                                  .virtual_start_us = RV_TEST_START_US,
                                  .handle_signals = is_recorded,
                                  .log = app->log};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    struct rv_response response;
    rv_envelope *env = NULL;

    x.pipeline = l->pipeline;
    x.plugins = l->plugins;
    x.script = o->cassette.script ? o->cassette.script : l->test_scripts[i];
    x.mcp = l->mcp;
    x.services = services;
    x.mode = test->mode;
    x.use_mocks = test->mock;
    x.answer_from_script = x.script != NULL;
    x.observer.on_event = on_event;
    x.observer.self = o;
    if (l->agents) {
        x.find_agent = rv_app_find_agent;
        x.find_self = l;
    }
    if (x.script) {
        rv_script_rewind(x.script);
        rv_script_leave_models(x.script, false);
    }
    if (is_recorded)
        app_cassette_record(&o->cassette, &x);
    int rc = rv_engine_new(&opts, &o->engine, err);
    if (rc == 0)
        rc = load_envelope(test, o->number, &env, err);
    if (rc < 0)
        return rc;
    size_t n_before = rv_envelope_n_records(env);
    bool resumes;
    if ((rc = first_answer(env, x.script, &response, &resumes, err)) < 0)
        return rc;
    o->cassette.engine = o->engine;
    int64_t start_us = rv_engine_now_us(o->engine);
    rc = rv_engine_start(o->engine, &x, env, resumes ? &response : NULL, &o->exec, err);
    if (rc == 0)
        rc = rv_engine_wait(o->engine, o->exec, err);
    if (rc == 0 && (rc = o->rc) < 0) {
        rv_err_pass(err, o->err);
        o->err = NULL;
    }
    if (rc < 0)
        return rc;
    o->report->status = rv_exec_status(o->exec);
    o->report->duration_ms = (rv_engine_now_us(o->engine) - start_us) / RV_US_PER_MS;
    if (is_recorded)
        rv_recorder_end_run(o->cassette.recorder);
    rc = read_end(l->pipeline, rv_exec_envelope(o->exec), o, n_before, err);
    if (rc == 0 && test->judge.rubric)
        rc = ask_judge(l, o->engine, x.script, rv_exec_envelope(o->exec), o, err);
    return rc == 0 ? end_cassette(o, err) : rc;
}

static bool does_without(const struct rv_pipeline *p, const struct rv_test_config *test, const struct rv_src *at)
{
    for (size_t i = 0; i < p->n_capabilities; i++) {
        const struct rv_capability_config *c = &p->capabilities[i];
        if (c->src.line != at->line || c->src.col != at->col)
            continue;
        for (size_t k = 0; k < test->without.n; k++)
            if (strcmp(test->without.items[k], c->name) == 0)
                return true;
    }
    return false;
}

/* A script may play what a capability does; that the capability is there is part of what a test shows. */
static int complain_of_missing(const struct rv_app_loaded *l, struct rv_test_report *out, rv_err **err)
{
    size_t n = l->missing ? rv_findings_n(l->missing) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        struct rv_finding f = rv_findings_at(l->missing, i);
        rv_buf text = RV_BUF_INIT(1 << 16);
        if (does_without(l->pipeline, out->test, &f.src))
            continue;
        rv_buf_printf(&text, "%s:%d:%d: %s", f.src.file ? f.src.file : l->pipeline->file, f.src.line, f.src.col,
                      f.text);
        rc = rv_buf_check(&text, "what a test lacks", err);
        if (rc == 0)
            rc = app_test_complain(out, "/capabilities", rv_buf_cstr(&text), err);
        rv_buf_fini(&text);
    }
    return rc;
}

static int begin_report(const struct rv_test_config *test, struct rv_test_report *out, rv_err **err)
{
    *out = (struct rv_test_report){.test = test,
                                   .failures = json_object_new_array(),
                                   .visited = json_object_new_array(),
                                   .calls = json_object_new_array(),
                                   .events = json_object_new_array(),
                                   .questions = json_object_new_array(),
                                   .errors = json_object_new_array()};
    if (out->failures && out->errors && out->visited && out->calls && out->events && out->questions)
        return 0;
    return RV_FAIL(err, RV_E_NOMEM, "run test \"%s\"", test->name);
}

/* The test could not be run: that is its result. Takes the error. */
static int report_error(const struct rv_app *app, struct rv_test_report *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    rv_err_write_text(*err, app->debug, &text);
    rv_str trimmed = rv_str_trim(rv_buf_str(&text));
    rv_buf_truncate(&text, trimmed.len);
    rv_err_free(rv_err_steal(err));
    int rc = app_test_complain(out, "", rv_buf_cstr(&text), err);
    rv_buf_fini(&text);
    return rc;
}

/* One of the runs of a test. */
struct one_run {
    size_t i;       /* of the test */
    int64_t number; /* from 1 */
};

static int run_once(const struct rv_app *app, struct rv_app_loaded *l, struct one_run which,
                    const struct rv_test_opts *opts, struct rv_test_report *out, rv_err **err)
{
    struct observer o = {
        .number = which.number, .report = out, .coverage = opts->coverage, .skipped = json_object_new_array()};
    rv_app_scratch *scratch = rv_app_scratch_new();
    struct rv_app_services services;
    struct rv_app_loaded variant = {0};
    int rc = 0;

    if (!scratch) {
        json_object_put(o.skipped);
        return RV_FAIL(err, RV_E_NOMEM, "run a test");
    }
    rv_app_services_init_scratch(&services, app, scratch);
    rc = begin_report(&l->pipeline->tests[which.i], out, err);
    if (rc == 0 && !o.skipped)
        rc = RV_FAIL(err, RV_E_NOMEM, "run test \"%s\"", out->test->name);
    if (rc == 0)
        rc = app_test_load_variant(app, l, out->test, opts, &variant, err);
    if (rc > 0) {
        l = &variant;
        rc = 0;
    }
    o.pipeline = l->pipeline;
    if (rc == 0)
        rc = complain_of_missing(l, out, err);
    if (rc == 0 && opts->is_live)
        rc = app_cassette_open(l, which.i, opts, which.number, &o.cassette, err);
    if (rc == 0)
        rc = run(app, l, which.i, &o, &services.exec, err);
    if (rc == 0 && !run_passed(out))
        rc = app_test_recent_list(&o.recent, out->events, err);
    if (rc < 0 && rc != RV_E_NOMEM)
        rc = report_error(app, out, err);
    rv_exec_free(o.exec);
    rv_app_engine_free(l, o.engine);
    if (!l->plugins_busy) /* else a call that hangs may still be asking */
        rv_app_scratch_free(scratch);
    if (o.cassette.script || out->was_recorded)
        out->cassette = rv_buf_steal(&o.cassette.path, NULL);
    app_cassette_fini(&o.cassette);
    rv_app_loaded_fini(&variant);
    rv_err_free(o.err);
    app_test_recent_fini(&o.recent);
    json_object_put(o.skipped);
    if (rc < 0)
        rv_test_report_fini(out);
    return rc;
}

int rv_test_run(const struct rv_app *app, struct rv_app_loaded *l, size_t i, const struct rv_test_opts *opts,
                struct rv_test_report *out, rv_err **err)
{
    const struct rv_test_config *test = &l->pipeline->tests[i];
    struct rv_test_rate rate = {.min = test->has_min_pass_rate   ? test->min_pass_rate
                                       : opts->has_min_pass_rate ? opts->min_pass_rate
                                                                 : 1};
    struct rv_test_report all = {0};
    size_t n_recorded = 0, n_played = 0;
    int64_t micro_usd = 0, judge_micro_usd = 0, n_judge_calls = 0;

    do {
        struct rv_test_report one;
        int rc = run_once(app, l, (struct one_run){i, rate.n + 1}, opts, &one, err);
        if (rc < 0) {
            rv_test_report_fini(&all);
            return rc;
        }
        bool is_shown = rate.n == rate.n_passed; /* no run before it failed */
        rate.n++;
        rate.n_passed += run_passed(&one);
        n_recorded += one.was_recorded;
        n_played += one.cassette && !one.was_recorded;
        micro_usd += one.cost_micro_usd;
        judge_micro_usd += one.judge_micro_usd;
        n_judge_calls += one.n_judge_calls;
        if (is_shown) {
            rv_test_report_fini(&all);
            all = one;
        } else {
            rv_test_report_fini(&one);
        }
    } while (rate.n < opts->repeat && all.status != RV_RUN_CANCELLED);
    all.rate = rate;
    all.cost_micro_usd = micro_usd;
    all.judge_micro_usd = judge_micro_usd;
    all.n_judge_calls = n_judge_calls;
    all.n_recorded = n_recorded;
    all.n_played = n_played;
    *out = all;
    return 0;
}
