/* What the core says it does, held against what it may do: numbers of events and calls, visits, edges, bounds. Counted
 * here a second time, from the events alone. */
#include "coreengine/sim/sim_internal.h"
#include "envelope/envelope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sim_watch_init(struct sim_watch *w, const struct rv_pipeline *p, rv_err **err)
{
    size_t n = p->n_agents ? p->n_agents : 1;

    *w = (struct sim_watch){.next_seq = 1, .from = -1, .to = -1};
    w->visits = calloc(n, sizeof *w->visits);
    w->is_open = calloc(n, sizeof *w->is_open);
    w->edges = calloc(n, n * sizeof *w->edges);
    return w->visits && w->is_open && w->edges ? 0 : RV_FAIL(err, RV_E_NOMEM, "watch a run");
}

void sim_watch_fini(struct sim_watch *w)
{
    free(w->visits);
    free(w->is_open);
    free(w->edges);
    free(w->open);
    sim_asked_fini(w);
    *w = (struct sim_watch){0};
}

/* --- calls that are open --- */

static int opened(struct sim_watch *w, const struct sim_open *o, rv_err **err)
{
    if (!rv_has_room(&w->open, &w->cap_open, w->n_open + 1, sizeof *w->open))
        return RV_FAIL(err, RV_E_NOMEM, "watch a call");
    w->open[w->n_open++] = *o;
    return 0;
}

static void closed(struct sim_watch *w, int64_t call_id)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n_open; i++)
        if (w->open[i].call_id != call_id)
            w->open[n++] = w->open[i];
    w->n_open = n;
}

/* The most that a model call can cost, whether its role or one of the fallbacks answers it. */
static int worst_cost(struct sim_seed *s, const struct rv_effect *e, int64_t *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = e->request_len + 1, .what = "model request"};
    const struct rv_pipeline *p = e->pipeline ? e->pipeline : s->subject->pipeline;
    const struct rv_model_config *m = rv_pipeline_find_model(p, rv_str_of(e->name));
    int64_t bytes = (int64_t)e->request_len, tokens = 0;
    json_object *request = NULL;

    if (e->kind != RV_EFFECT_CALL_LLM || !s->subject->pipeline->has_budget || !m)
        return 0;
    int rc = rv_json_parse((rv_str){e->request, e->request_len}, &opts, &request, err);
    if (rc < 0)
        return rc;
    tokens = rv_json_int_or(rv_json_get_obj(request, "options"), "num_predict", 0);
    json_object_put(request);
    *out = rv_llm_worst_cost(m->has_price ? &m->price : NULL, bytes, tokens);
    for (size_t i = 0; m->fallback_models && i < m->fallback.n; i++) {
        const struct rv_model_config *f = m->fallback_models[i];
        int64_t cost = rv_llm_worst_cost(f->has_price ? &f->price : NULL, bytes, tokens);
        *out = cost > *out ? cost : *out;
    }
    return 0;
}

static int call(struct sim_seed *s, const struct rv_effect *e, rv_err **err)
{
    struct sim_watch *w = &s->watch;
    struct sim_open open = {.call_id = e->call_id};

    if (e->call_id <= w->last_call_id)
        sim_break(s, RV_SIM_KEEPS_EVENTS, "call %lld comes after call %lld", (long long)e->call_id,
                  (long long)w->last_call_id);
    w->last_call_id = e->call_id;
    if (e->kind != RV_EFFECT_ARM_TIMER && (e->stage < 0 || !w->is_open[e->stage]))
        sim_break(s, RV_SIM_KEEPS_EVENTS, "a call is made for stage \"%s\", which has not begun",
                  sim_stage_name(s, e->stage));
    if (e->kind == RV_EFFECT_CALL_LLM && ++w->n_llm > s->subject->pipeline->max_llm_calls)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "%lld model calls, max_llm_calls is %lld", (long long)w->n_llm,
                  (long long)s->subject->pipeline->max_llm_calls);
    struct sim_key *k = e->key ? sim_world_find(&s->world, e->key) : NULL;
    if (k)
        k->asked_us = s->last_event_us;
    int rc = worst_cost(s, e, &open.worst_micro_usd, err);
    if (rc == 0)
        rc = sim_asked_call(s, e, &open.asked, err);
    return rc < 0 ? rc : opened(w, &open, err);
}

/* --- bounds --- */

/* The edge that led here counts once the stage begins: a run that stops at a limit has counted it, too. */
static void edge_taken(struct sim_seed *s, int stage)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    struct sim_watch *w = &s->watch;
    bool led = w->to == stage && w->from >= 0;

    if (led) {
        int64_t used = ++w->edges[(size_t)w->from * p->n_agents + (size_t)stage];
        int64_t limit = rv_pipeline_edge_limit(p, w->from, stage);
        if (limit > 0 && used > limit)
            sim_break(s, RV_SIM_KEEPS_BOUNDS, "edge %s -> %s is taken for the %lld. time, its limit is %lld",
                      p->agents[w->from].name, p->agents[stage].name, (long long)used, (long long)limit);
        if (stage <= w->from && ++w->n_loops > p->max_iterations)
            sim_break(s, RV_SIM_KEEPS_BOUNDS, "the run loops back for the %lld. time, max_iterations is %lld",
                      (long long)w->n_loops, (long long)p->max_iterations);
    }
    w->to = w->from = -1;
}

static void count_visit(struct sim_seed *s)
{
    int64_t limit = s->subject->pipeline->max_agent_hops;

    if (++s->watch.n_visits > limit)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "%lld stage visits, max_agent_hops is %lld", (long long)s->watch.n_visits,
                  (long long)limit);
}

static void stage_started(struct sim_seed *s, const struct rv_effect *e)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    struct sim_watch *w = &s->watch;
    const struct rv_agent *a = &p->agents[e->stage];

    if (e->label || e->index >= 0) { /* within a visit: of the run's bounds it takes a visit, and no edge leads there */
        if (!w->is_open[e->stage])
            sim_break(s, RV_SIM_KEEPS_EVENTS, "work of stage \"%s\" begins, which has not begun", a->name);
        count_visit(s);
        return;
    }
    if (w->is_open[e->stage] && !e->path)
        sim_break(s, RV_SIM_KEEPS_EVENTS, "stage \"%s\" begins and has not ended before", a->name);
    w->is_open[e->stage] = true;
    w->visits[e->stage]++;
    if (e->visit != w->visits[e->stage] && !e->path) /* branches number their own visits */
        sim_break(s, RV_SIM_KEEPS_EVENTS, "visit %lld of stage \"%s\" is numbered %lld", (long long)w->visits[e->stage],
                  a->name, (long long)e->visit);
    count_visit(s);
    if (a->limits.max_visits > 0 && w->visits[e->stage] > a->limits.max_visits + w->n_answers)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "stage \"%s\" is visited %lld times, its max_visits is %lld", a->name,
                  (long long)w->visits[e->stage], (long long)a->limits.max_visits);
    edge_taken(s, e->stage);
    sim_places_hit(s->tally, RV_SIM_STAGE, e->stage, -1);
}

/* What was proven of the pipeline holds for a run without a pause. */
static void check_proof(struct sim_seed *s)
{
    const struct sim_watch *w = &s->watch;
    int64_t visits = s->scripted || s->opts->use_mocks ? s->proof->max_mocked_visits : s->proof->max_visits;

    if (w->n_answers > 0)
        return;
    if (w->n_visits > visits)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "%lld stage visits, proven were at most %lld", (long long)w->n_visits,
                  (long long)visits);
    if (w->n_llm > s->proof->max_llm_calls)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "%lld model calls, proven were at most %lld", (long long)w->n_llm,
                  (long long)s->proof->max_llm_calls);
}

/* --- events --- */

json_object *sim_watch_parse(struct sim_seed *s, const struct rv_effect *e)
{
    const struct rv_json_opts opts = {.max_bytes = SIM_MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *line = NULL;

    int rc = rv_json_parse(rv_effect_text(&s->fx, e), &opts, &line,
                           RV_CODE_ONLY("an event that is not JSON breaks a promise; the tape keeps want of memory"));
    if (rc == RV_E_NOMEM)
        s->tape.rc = rc;
    else if (rc < 0)
        sim_break(s, RV_SIM_KEEPS_EVENTS, "an event is not JSON");
    return line;
}

static void routed(struct sim_seed *s, const struct rv_effect *e)
{
    /* Only the routes that are places of a pipeline. */
    static const enum rv_sim_place_kind kinds[RV_ROUTE_ERROR + 1] = {[RV_ROUTE_RULE] = RV_SIM_RULE,
                                                                     [RV_ROUTE_FUNCTION] = RV_SIM_FUNCTION,
                                                                     [RV_ROUTE_DEFAULT] = RV_SIM_DEFAULT,
                                                                     [RV_ROUTE_NO_MATCH] = RV_SIM_NO_MATCH,
                                                                     [RV_ROUTE_ERROR] = RV_SIM_ERROR_ROUTE};
    json_object *line = sim_watch_parse(s, e);

    const char *to = rv_json_text_or(line, "to", "");
    const char *reason = rv_json_text_or(line, "reason", "");
    int64_t rule = rv_json_int_or(line, "rule", -1);
    s->watch.from = e->stage;
    s->watch.to = rv_pipeline_find_stage(s->subject->pipeline, rv_str_of(to));
    for (size_t by = 0; by < RV_COUNT(kinds); by++)
        if (strcmp(rv_route_by_text((enum rv_route_by)by), reason) == 0)
            sim_places_hit(s->tally, kinds[by], e->stage, rule);
    json_object_put(line);
}

static void asked(struct sim_seed *s, const struct rv_effect *e)
{
    json_object *line = sim_watch_parse(s, e);
    const char *id = rv_json_text_or(line, "id", "");

    for (size_t i = 0; i < s->n_answered; i++)
        if (strcmp(s->answered[i], id) == 0)
            sim_break(s, RV_SIM_KEEPS_ANSWERS, "interrupt %s was answered and is asked again", id);
    json_object_put(line);
}

/* The usage of a model call, or of one whose outcome is unknown. */
static void paid(struct sim_seed *s, const struct rv_effect *e)
{
    json_object *json = sim_watch_parse(s, e);

    if (!json)
        return;
    const struct rv_usage used = {.input_tokens = sim_number(json, "input_tokens"),
                                  .output_tokens = sim_number(json, "output_tokens"),
                                  .cost_micro_usd = sim_number(json, "cost_micro_usd")};
    rv_usage_add(&s->watch.told, &used);
    sim_asked_told(s, e, &used);
    json_object_put(json);
}

static void emitted(struct sim_seed *s, const struct rv_effect *e)
{
    struct sim_watch *w = &s->watch;
    rv_str line = rv_effect_text(&s->fx, e);
    char want[48];
    int n = snprintf(want, sizeof want, "{\"seq\":%lld,", (long long)w->next_seq);

    if (line.len < (size_t)n || memcmp(line.ptr, want, (size_t)n) != 0)
        sim_break(s, RV_SIM_KEEPS_EVENTS, "event %lld is numbered %.*s", (long long)w->next_seq,
                  (int)(line.len < 24 ? line.len : 24), line.ptr);
    w->next_seq++;
    if (w->is_done)
        sim_break(s, RV_SIM_KEEPS_EVENTS, "event %s comes after done", rv_emit_text(e->emit));
    w->has_begun = w->has_begun || e->emit == RV_EMIT_PIPELINE_STARTED;
    if (!w->has_begun && e->emit != RV_EMIT_ERROR && e->emit != RV_EMIT_DONE &&
        !(w->ends_waiting && e->emit == RV_EMIT_BRANCH_ENDED))
        sim_break(s, RV_SIM_KEEPS_EVENTS, "event %s comes before the run begins", rv_emit_text(e->emit));
    if (e->emit == RV_EMIT_STAGE_STARTED) {
        stage_started(s, e);
    } else if ((e->emit == RV_EMIT_STAGE_COMPLETED || e->emit == RV_EMIT_ROUTING_DECISION) &&
               (e->label || e->index >= 0)) {
        if (!w->is_open[e->stage])
            sim_break(s, RV_SIM_KEEPS_EVENTS, "work of stage \"%s\" ends after it", sim_stage_name(s, e->stage));
    } else if (e->emit == RV_EMIT_STAGE_COMPLETED) {
        if (!w->is_open[e->stage] && !e->path) /* branches may visit one stage at the same time */
            sim_break(s, RV_SIM_KEEPS_EVENTS, "stage \"%s\" ends and has not begun", sim_stage_name(s, e->stage));
        w->is_open[e->stage] = false;
    } else if (e->emit == RV_EMIT_ROUTING_DECISION) {
        routed(s, e);
    } else if (e->emit == RV_EMIT_INTERRUPT_PENDING) {
        asked(s, e);
    } else if (e->emit == RV_EMIT_LLM_RESULT || e->emit == RV_EMIT_WARNING) {
        paid(s, e);
    } else if (e->emit == RV_EMIT_DONE) {
        w->is_done = true;
    }
}

/* What was spent is what observers were told. */
static void check_usage(struct sim_seed *s)
{
    const struct rv_envelope_used used = rv_run_used(s->run);
    const struct rv_usage *u = &used.usage, *told = &s->watch.told;

    if (u->cost_micro_usd != told->cost_micro_usd)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "the events say that model calls cost %lld micro-USD, the envelope %lld",
                  (long long)told->cost_micro_usd, (long long)u->cost_micro_usd);
    if (u->input_tokens != told->input_tokens || u->output_tokens != told->output_tokens)
        sim_break(s, RV_SIM_KEEPS_BOUNDS,
                  "the events say that model calls took %lld + %lld tokens, the envelope %lld + %lld",
                  (long long)told->input_tokens, (long long)told->output_tokens, (long long)u->input_tokens,
                  (long long)u->output_tokens);
}

/* Whatever the calls under way come to, the budget holds. */
static void check_budget(struct sim_seed *s)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    const struct sim_watch *w = &s->watch;
    int64_t most = w->told.cost_micro_usd;

    for (size_t i = 0; i < w->n_open; i++)
        if (__builtin_add_overflow(most, w->open[i].worst_micro_usd, &most))
            most = INT64_MAX;
    if (p->has_budget && most > p->budget_micro_usd)
        sim_break(s, RV_SIM_KEEPS_BOUNDS,
                  "model calls have cost %lld micro-USD, with those under way it can be %lld, and the budget is %lld",
                  (long long)w->told.cost_micro_usd, (long long)most, (long long)p->budget_micro_usd);
}

/* The envelope has counted what was seen, and has what its stages came up with. */
static void check_envelope(struct sim_seed *s)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    const rv_envelope *env = rv_run_envelope(s->run);
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_envelope_used used = rv_run_used(s->run);
    bool found = true;

    if (used.hops != s->watch.n_visits)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "%lld stage visits, and the envelope counts %lld",
                  (long long)s->watch.n_visits, (long long)used.hops);
    if (used.llm_calls < s->watch.n_llm)
        sim_break(s, RV_SIM_KEEPS_BOUNDS, "%lld model calls, and the envelope counts %lld", (long long)s->watch.n_llm,
                  (long long)used.llm_calls);
    for (size_t i = 0; i < p->n_agents && f->parallel_mode; i++) { /* in loops outputs are cleared */
        if (!rv_envelope_is_completed(env, rv_str_of(p->agents[i].name)))
            continue;
        RV_IGNORE(!rv_envelope_output(env, rv_str_of(p->agents[i].output.key), &found), "an output may be null");
        if (!found)
            sim_break(s, RV_SIM_KEEPS_OUTPUTS, "stage \"%s\" is completed, and its output \"%s\" is not there",
                      p->agents[i].name, p->agents[i].output.key);
    }
}

static void finished(struct sim_seed *s, size_t at)
{
    struct sim_watch *w = &s->watch;

    w->n_open = 0;
    w->to = w->from = -1;
    if (at + 1 != s->fx.n)
        sim_break(s, RV_SIM_KEEPS_EVENTS, "something follows the end of the run");
    if (!w->is_done)
        sim_break(s, RV_SIM_KEEPS_EVENTS, "the run ends without the event done");
    for (size_t i = 0; i < s->subject->pipeline->n_agents; i++)
        if (w->is_open[i])
            sim_break(s, RV_SIM_KEEPS_EVENTS, "the run ends, and stage \"%s\" has not", sim_stage_name(s, (int)i));
    check_envelope(s);
    check_usage(s);
}

int sim_watch_step(struct sim_seed *s, const struct rv_event *ev, rv_err **err)
{
    struct sim_watch *w = &s->watch;
    int rc = 0;

    if (ev->kind == RV_EVENT_RECOVER)
        sim_asked_recovered(w, ev->now_us - w->last_us);
    w->last_us = ev->now_us;
    w->ends_waiting = ev->kind == RV_EVENT_CANCEL && w->is_done;
    if (ev->kind == RV_EVENT_START || ev->kind == RV_EVENT_ANSWER || w->ends_waiting) {
        w->is_done = w->has_begun = false;
        w->n_answers += ev->kind == RV_EVENT_ANSWER;
    }
    closed(w, ev->call_id);
    for (size_t i = 0; i < s->fx.n && rc == 0 && !s->is_broken; i++) {
        const struct rv_effect *e = &s->fx.items[i];
        switch (e->kind) {
        case RV_EFFECT_CALL_LLM:
        case RV_EFFECT_CALL_TOOL:
        case RV_EFFECT_CALL_HOOK:
        case RV_EFFECT_ARM_TIMER:
            rc = call(s, e, err);
            break;
        case RV_EFFECT_CANCEL_CALL:
            closed(w, e->call_id);
            break;
        case RV_EFFECT_EMIT:
            rc = sim_asked_event(s, i, err);
            if (rc == 0)
                emitted(s, e);
            break;
        case RV_EFFECT_SAVE:
        case RV_EFFECT_KEEP:
        case RV_EFFECT_ARTIFACT:
            break;
        case RV_EFFECT_FINISH:
            finished(s, i);
            break;
        }
    }
    if (rc == 0 && !s->is_broken) {
        sim_asked_step_ended(s);
        check_budget(s);
        check_proof(s);
    }
    return rc;
}

void sim_watch_recovered(struct sim_seed *s, const struct rv_effects *open)
{
    const struct sim_watch *w = &s->watch;

    for (size_t i = 0; i < w->n_open && !s->is_broken; i++)
        if (i >= open->n || open->items[i].call_id != w->open[i].call_id)
            sim_break(s, RV_SIM_KEEPS_REPLAY, "call %lld has no answer in the journal, and recovery does not know it",
                      (long long)w->open[i].call_id);
    if (open->n > w->n_open && !s->is_broken)
        sim_break(s, RV_SIM_KEEPS_NO_REPEAT, "recovery takes %zu calls for open, there are %zu", open->n, w->n_open);
}
