/* The driver. Checked in every run that it drives: call ids and seq rise without gaps, `done` comes once and last,
 * FINISH is the last effect and comes once, a stage's start precedes all else of it, every tool call that a model asked
 * for is followed by its result in order when the model is asked again, money is neither lost nor overspent, and the
 * state that a run ends with loads back byte-identical. */
#include "tests/kit/drive.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/run/run_internal.h"

static struct rv_rand_state seed_state;

static struct rv_rand seeded(void)
{
    return rv_rand_seeded(&seed_state, 7);
}

/* --- catalog --- */

static const struct rv_tool_info *find_tool(void *self, rv_str name)
{
    struct drive *d = self;

    for (size_t i = 0; i < d->n_tools; i++)
        if (rv_str_is(name, d->tools[i].name) && !(d->lost && strcmp(d->lost, d->tools[i].name) == 0))
            return &d->tools[i];
    return NULL;
}

static const struct rv_entry_info *find_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    struct drive *d = self;

    (void)kind;
    (void)name;
    return d->has_entry ? &d->entry : NULL;
}

/* Every tool twice, as a catalog made of two others may have it. */
static const char *tool_name(void *self, size_t i)
{
    struct drive *d = self;

    return i < 2 * d->n_tools ? d->tools[i % d->n_tools].name : NULL;
}

static const rv_template *find_prompt(void *self, rv_str key)
{
    (void)self;
    (void)key;
    return NULL;
}

static const rv_schema *compile(struct drive *d, const char *text)
{
    if (!text)
        return NULL;
    d->documents[d->n_schemas] = rv_kit_json(text);
    if (rv_schema_compile(d->documents[d->n_schemas], "test", &d->schemas[d->n_schemas], NULL) < 0)
        rv_kit_die("bad schema %s", text);
    return d->schemas[d->n_schemas++];
}

/* --- making and freeing --- */

struct drive *drive_new(const char *yaml, const struct drive_tool *tools, size_t n_tools)
{
    return drive_new_of(yaml, NULL, tools, n_tools);
}

static bool file_of(void *self, const char *path, rv_str *out)
{
    json_object *text = NULL;

    if (!json_object_object_get_ex(self, path, &text))
        return false;
    *out = rv_json_str(text);
    return true;
}

struct drive *drive_new_of(const char *yaml, json_object *files, const struct drive_tool *tools, size_t n_tools)
{
    const struct rv_pipeline_opts given = {.file = files ? file_of : NULL, .self = files};
    struct drive *d = calloc(1, sizeof *d);
    rv_err *err = NULL;

    if (!d || n_tools > DRIVE_MAX_TOOLS)
        rv_kit_die("no driver");
    d->findings = rv_findings_new();
    d->effects = d->events = d->lines = d->artifacts = RV_BUF_INIT(DRIVE_MAX_TEXT);
    d->catalog = (struct rv_catalog){
        .tool = find_tool, .entry = find_entry, .prompt = find_prompt, .self = d, .tool_name = tool_name};
    d->opts = RV_RUN_OPTS_INIT;
    d->opts.saves = RV_SAVES_EACH;
    d->now_us = DRIVE_T0;
    d->keep = true;
    if (rv_pipeline_parse_with(&(const struct rv_pipeline_source){rv_str_of(yaml), "test.yaml", "."}, &given,
                               d->findings, &d->p, &err) < 0)
        rv_kit_die("%s", rv_err_text(err));
    if (!d->p || !d->p->is_sound) {
        rv_buf b = RV_BUF_INIT(DRIVE_MAX_TEXT);
        rv_findings_write_text(d->findings, false, &b);
        rv_kit_die("%s\nin:\n%s", rv_buf_cstr(&b), yaml);
    }
    for (size_t i = 0; i < n_tools; i++) {
        d->tools[i] = (struct rv_tool_info){.name = tools[i].name,
                                            .description = "",
                                            .category = RV_UNSET,
                                            .risk = tools[i].risk,
                                            .effect = RV_UNSET,
                                            .timeout_ms = tools[i].timeout_ms};
        d->tools[i].input = compile(d, tools[i].input);
        if (tools[i].input)
            d->tools[i].input_json = d->documents[d->n_schemas - 1];
        d->tools[i].output = compile(d, tools[i].output);
        if (tools[i].output)
            d->tools[i].output_json = d->documents[d->n_schemas - 1];
    }
    d->n_tools = n_tools;
    d->open = calloc(d->p->n_agents + 1, sizeof *d->open);
    return d;
}

void drive_tool_destroys(struct drive *d, const char *name)
{
    d->has_changed = true;
    for (size_t i = 0; i < d->n_tools; i++)
        if (strcmp(d->tools[i].name, name) == 0)
            d->tools[i].risk = RV_RISK_DESTRUCTIVE;
}

void drive_forget_calls(struct drive *d)
{
    for (size_t i = 0; i < d->n_calls; i++) {
        free(d->calls[i].name);
        free(d->calls[i].request);
        free(d->calls[i].key);
    }
    free(d->calls);
    d->calls = NULL;
    d->n_calls = 0;
}

void drive_free(struct drive *d)
{
    drive_forget_calls(d);
    rv_run_free(d->run);
    rv_envelope_free(d->env);
    rv_effects_fini(&d->fx);
    rv_pipeline_free(d->p);
    rv_findings_free(d->findings);
    for (size_t i = 0; i < d->n_schemas; i++) {
        rv_schema_free(d->schemas[i]);
        json_object_put(d->documents[i]);
    }
    rv_buf_fini(&d->effects);
    rv_buf_fini(&d->events);
    rv_buf_fini(&d->lines);
    rv_buf_fini(&d->artifacts);
    free(d->answers);
    free(d->used);
    free(d->open);
    free(d->last_save);
    free(d->first);
    free(d);
}

void drive_envelope(struct drive *d, const char *state)
{
    rv_err *err = NULL;
    int rc;

    rv_envelope_free(d->env);
    d->env = NULL;
    if (state) {
        json_object *json = rv_kit_json(state);
        rc = rv_envelope_load(json, seeded(), DRIVE_T0, &d->env, &err);
        json_object_put(json);
    } else {
        const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("what is it?"), .user_id = RV_STR_LIT("ada")};
        rc = rv_envelope_new(&seed, seeded(), DRIVE_T0, &d->env, &err);
    }
    if (rc < 0)
        rv_kit_die("%s", rv_err_text(err));
}

char *drive_dump(const rv_envelope *env)
{
    rv_buf b = RV_BUF_INIT(DRIVE_MAX_TEXT);

    rv_envelope_write_state(env, &b);
    if (rv_buf_check(&b, "state", NULL) < 0)
        rv_kit_die("the state can not be written");
    return rv_buf_steal(&b, NULL);
}

/* --- taking effects in --- */

static const char *text_in(json_object *message, const char *key)
{
    const char *text = NULL;
    return rv_json_get_text(message, key, &text) ? text : "";
}

/* What all providers insist on: the calls of a turn are answered next, in order and nothing between, no result stands
 * alone, and no turn is empty. */
static void check_turns(json_object *request)
{
    json_object *turns = rv_json_get_arr(request, "turns");
    size_t n = turns ? json_object_array_length(turns) : 0;

    for (size_t i = 0; i < n;) {
        json_object *turn = json_object_array_get_idx(turns, i++), *calls = rv_json_get_arr(turn, "tool_calls");
        const char *role = text_in(turn, "role");
        bool speaks = strcmp(role, "assistant") == 0;
        ck_assert_msg(speaks || strcmp(role, "user") == 0, "turn %zu of %s", i, json_object_to_json_string(turns));
        ck_assert(calls || text_in(turn, "content")[0] || rv_json_get_obj(turn, "opaque"));
        ck_assert(speaks || !calls);
        for (size_t j = 0; calls && j < json_object_array_length(calls); j++) {
            json_object *call = json_object_array_get_idx(calls, j), *result = json_object_array_get_idx(turns, i++);
            ck_assert_msg(i <= n && strcmp(text_in(result, "role"), "tool") == 0 &&
                              strcmp(text_in(result, "tool_call_id"), text_in(call, "id")) == 0 &&
                              strcmp(text_in(result, "name"), text_in(call, "name")) == 0,
                          "call %zu has no result in %s", j, json_object_to_json_string(turns));
            ck_assert_msg(text_in(result, "content")[0], "an empty result: %s", json_object_to_json_string(turns));
        }
    }
}

/* The same key is for the same call: of another attempt, or made again after a person's word. */
static void check_key(const struct drive *d, const struct rv_effect *e)
{
    for (size_t i = d->n_calls > 64 ? d->n_calls - 64 : 0; e->key && i < d->n_calls; i++) {
        const struct drive_call *c = &d->calls[i];
        if (c->key && strcmp(c->key, e->key) == 0)
            ck_assert_msg(c->stage == e->stage && strcmp(c->name, e->name) == 0 && strcmp(c->request, e->request) == 0,
                          "call %d has the key of call %d: %s", (int)e->call_id, (int)c->call_id, e->key);
    }
}

static void add_call(struct drive *d, const struct rv_effect *e)
{
    ck_assert_int_eq(e->call_id, d->last_call_id + 1);
    check_key(d, e);
    d->last_call_id = e->call_id;
    if (d->n_calls % 64 == 0) {
        d->calls = realloc(d->calls, (d->n_calls + 64) * sizeof *d->calls);
        if (!d->calls || d->n_calls >= DRIVE_MAX_CALLS)
            rv_kit_die("too many calls");
    }
    d->calls[d->n_calls++] = (struct drive_call){
        .call_id = e->call_id,
        .due_us = e->kind == RV_EFFECT_ARM_TIMER ? e->at_us : -1,
        .attempt = e->attempt,
        .visit = e->visit,
        .deadline_us = e->deadline_us,
        .kind = e->kind,
        .entry = e->entry,
        .stage = e->stage,
        .name = e->name ? rv_str_dup(rv_str_of(e->name)) : NULL,
        .request = e->request ? rv_str_dup((rv_str){e->request, e->request_len}) : NULL,
        .key = e->key ? rv_str_dup(rv_str_of(e->key)) : NULL,
    };
    if (e->kind != RV_EFFECT_ARM_TIMER) {
        json_object *json = NULL;
        const struct rv_json_opts opts = {.max_bytes = DRIVE_MAX_TEXT, .max_depth = 300};
        ck_assert_msg(rv_json_parse((rv_str){e->request, e->request_len}, &opts, &json, NULL) == 0, "%s", e->request);
        if (e->kind == RV_EFFECT_CALL_LLM)
            check_turns(json);
        json_object_put(json);
        ck_assert_int_gt(e->deadline_us, d->now_us);
    }
    d->n_llm += e->kind == RV_EFFECT_CALL_LLM;
}

static void cancel_call(struct drive *d, int64_t call_id)
{
    for (size_t i = 0; i < d->n_calls; i++)
        if (d->calls[i].call_id == call_id) {
            ck_assert_msg(!d->calls[i].over, "call %d is cancelled after its end", (int)call_id);
            d->calls[i].over = true;
            d->n_cancelled++;
            return;
        }
    ck_abort_msg("call %d is cancelled but was not made", (int)call_id);
}

/* A visit's lines stand between its start and its completion; its decision follows the completion at once. That of
 * one that a person approved comes first after the answer. */
static void check_order(struct drive *d, const struct rv_effect *e, rv_str line)
{
    bool is_open = e->stage >= 0 && d->open[e->stage], fits = true;

    if (e->stage >= 0 && (e->label || e->index >= 0)) { /* within the visit of a stage with a list or a pipeline */
        ck_assert_msg(is_open, "out of order: %.*s", RV_STR_ARG(line));
        return;
    }
    if (e->stage >= 0 && e->emit == RV_EMIT_STAGE_STARTED)
        fits = !is_open;
    else if (e->stage >= 0 && e->emit == RV_EMIT_ROUTING_DECISION)
        fits = !is_open && (d->completed == e->stage || d->began);
    else if (e->stage >= 0 && e->emit == RV_EMIT_STAGE_SKIPPED)
        fits = !is_open;
    else if (e->stage >= 0)
        fits = is_open;
    ck_assert_msg(fits, "out of order: %.*s", RV_STR_ARG(line));
    if (e->emit == RV_EMIT_STAGE_STARTED)
        d->open[e->stage] = true;
    if (e->emit == RV_EMIT_STAGE_COMPLETED)
        d->open[e->stage] = false;
    d->began = e->emit == RV_EMIT_PIPELINE_STARTED;
    d->completed = e->emit == RV_EMIT_STAGE_COMPLETED ? e->stage : -1;
    for (size_t i = 0; e->emit == RV_EMIT_DONE && i < d->p->n_agents; i++)
        ck_assert_msg(!d->open[i], "stage %zu was started and never completed", i);
}

static void take_line(struct drive *d, const struct rv_effect *e)
{
    rv_str line = rv_effect_text(&d->fx, e);
    rv_buf want = RV_BUF_INIT(100);

    rv_buf_printf(&want, "{\"seq\":%lld,\"type\":\"%s\",", (long long)++d->next_seq, rv_emit_text(e->emit));
    ck_assert_msg(line.len > want.len && memcmp(line.ptr, rv_buf_cstr(&want), want.len) == 0, "%.*s, wanted %s",
                  RV_STR_ARG(line), rv_buf_cstr(&want));
    rv_buf_fini(&want);
    ck_assert_msg(d->n_done == 0, "after done: %.*s", RV_STR_ARG(line));
    d->n_done += e->emit == RV_EMIT_DONE;
    d->n_visits += e->emit == RV_EMIT_STAGE_STARTED;
    check_order(d, e, line);
    if (d->keep) {
        rv_buf_add_str(&d->lines, line);
        rv_buf_putc(&d->lines, '\n');
    }
}

/* Nothing is set aside after the end, and what the run spent is what its state says, within the budget. */
static void check_money(const struct drive *d)
{
    const struct rv_visit_shared *s = &d->run->shared;

    ck_assert_int_eq(s->reserved_micro_usd, 0);
    ck_assert_int_eq(s->spent_micro_usd, rv_run_used(d->run).usage.cost_micro_usd);
    if (d->p->has_budget && !d->overruns)
        ck_assert_int_le(s->spent_micro_usd, d->p->budget_micro_usd);
}

/* Branches that wait count in the run, and in its state. */
static void check_used(const struct drive *d, const rv_envelope *loaded)
{
    const struct totals *t = &d->run->totals;
    const struct rv_envelope_used used = rv_run_used(d->run), again = rv_envelope_used(loaded);

    ck_assert_int_eq(used.hops, again.hops);
    ck_assert_int_eq(used.llm_calls, again.llm_calls);
    ck_assert_int_eq(used.iterations, again.iterations);
    ck_assert_int_eq(used.usage.cost_micro_usd, again.usage.cost_micro_usd);
    ck_assert_int_eq(used.usage.input_tokens, again.usage.input_tokens);
    if (!d->run->main.opened)
        return;
    ck_assert_int_eq(used.hops, t->visits);
    ck_assert_int_eq(used.llm_calls, t->llm_calls);
    ck_assert_int_eq(used.iterations, t->iterations);
}

static void check_end(struct drive *d)
{
    const rv_envelope *env = rv_run_envelope(d->run);
    char *dump = drive_dump(env), *again;
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *json = NULL;
    rv_envelope *loaded = NULL;
    rv_err *err = NULL;

    ck_assert(rv_run_is_finished(d->run));
    for (size_t i = 0; i < d->n_calls; i++)
        ck_assert_msg(d->calls[i].over, "call %d is under way after the end", (int)d->calls[i].call_id);
    check_money(d);
    if (d->opts.emits)
        ck_assert_uint_eq(d->n_done, 1);
    if (d->opts.saves)
        ck_assert_str_eq(d->last_save, dump); /* W43: what was saved last is what the run ended with */
    ck_assert_int_eq(rv_json_parse(rv_str_of(dump), &opts, &json, NULL), 0);
    if (rv_envelope_load(json, seeded(), d->now_us + 5, &loaded, &err) < 0)
        ck_abort_msg("%s: %s", rv_err_text(err), dump);
    again = drive_dump(loaded);
    ck_assert_str_eq(again, dump);
    check_used(d, loaded);
    free(again);
    free(dump);
    json_object_put(json);
    rv_envelope_free(loaded);
}

static void take_effects(struct drive *d)
{
    for (size_t i = 0; i < d->fx.n; i++) {
        const struct rv_effect *e = &d->fx.items[i];

        ck_assert_msg(d->n_finish == 0, "an effect after FINISH");
        if (d->keep) {
            rv_jw w = rv_jw_on(&d->effects);
            rv_effect_write_json(&d->fx, e, &w);
            rv_buf_putc(&d->effects, '\n');
            ck_assert_int_eq(rv_buf_check(&d->effects, "effects", NULL), 0);
        }
        switch (e->kind) {
        case RV_EFFECT_CALL_LLM:
        case RV_EFFECT_CALL_TOOL:
        case RV_EFFECT_CALL_HOOK:
        case RV_EFFECT_ARM_TIMER:
            add_call(d, e);
            break;
        case RV_EFFECT_CANCEL_CALL:
            cancel_call(d, e->call_id);
            break;
        case RV_EFFECT_EMIT:
            take_line(d, e);
            break;
        case RV_EFFECT_SAVE:
            d->n_saves++;
            d->save_bytes += e->request_len;
            free(d->last_save);
            d->last_save = rv_str_dup((rv_str){e->request, e->request_len});
            break;
        case RV_EFFECT_KEEP:
            break;
        case RV_EFFECT_ARTIFACT:
            rv_buf_add(&d->artifacts, e->about, e->about_len);
            rv_buf_putc(&d->artifacts, '\n');
            break;
        case RV_EFFECT_FINISH:
            d->n_finish++;
            d->finished = true;
            ck_assert_int_eq(e->status, rv_run_status(d->run));
            break;
        }
    }
    rv_effects_clear(&d->fx);
    if (d->n_finish)
        check_end(d);
}

int drive_step(struct drive *d, const struct rv_event *ev, rv_err **err)
{
    bool goes_on = d->finished && rv_run_status(d->run) == RV_RUN_INTERRUPTED &&
                   (ev->kind == RV_EVENT_ANSWER || ev->kind == RV_EVENT_CANCEL);
    bool was_finished = d->finished && !goes_on;

    if (ev->now_us > d->now_us)
        d->now_us = ev->now_us;
    if (!d->run) {
        if (!d->env)
            drive_envelope(d, NULL);
        rv_envelope *env = d->env;
        d->env = NULL;
        free(d->first);
        d->first = drive_dump(env);
        ck_assert_int_eq(rv_run_new(d->p, &d->catalog, &d->opts, env, &d->run, NULL), 0);
    }
    for (size_t i = d->n_calls; ev->call_id && i-- > 0;)
        if (d->calls[i].call_id == ev->call_id) {
            d->calls[i].over = true;
            break;
        }
    struct rv_event given = *ev;
    if (!given.blocked)
        given.blocked = d->blocked;
    ev = &given;
    int rc = rv_run_step(d->run, ev, &d->fx, err);
    if (rc < 0) {
        ck_assert_uint_eq(d->fx.n, 0);
        return rc;
    }
    if (goes_on) {
        d->finished = false;
        d->n_done = d->n_finish = 0;
    }
    if (was_finished)
        ck_assert_uint_eq(d->fx.n, 0);
    else if (d->keep && rv_utf8_valid(ev->reply, NULL) && rv_utf8_valid(ev->error, NULL)) {
        rv_jw w = rv_jw_on(&d->events);
        rv_event_write_json(ev, &w);
        rv_buf_putc(&d->events, '\n');
        ck_assert_int_eq(rv_buf_check(&d->events, "events", NULL), 0);
    }
    if (!was_finished)
        take_effects(d);
    return rc;
}

void drive_must_step(struct drive *d, const struct rv_event *ev)
{
    rv_err *err = NULL;

    if (drive_step(d, ev, &err) < 0) {
        char *text = rv_kit_err_take(err);
        ck_abort_msg("step failed: %s", text);
    }
}
