/* Tool calls of one reply that run side by side: those in a row that are safe and need nobody's approval. Their results
 * are taken in the order of the calls, whoever answers first. */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

/* May the step run beside others? */
static int is_eligible(const rv_visit *v, size_t index, bool *yes, rv_err **err)
{
    struct step_judgement j;
    int rc = rv_step_judge(v, index, &j, err);

    *yes = rc == 0 && j.verdict == STEP_RUNS && rv_tool_effect(j.info) == RV_EFFECT_SAFE;
    if (rc == 0)
        rv_buf_fini(&j.text);
    return rc;
}

static int count_eligible(const rv_visit *v, size_t *n, rv_err **err)
{
    size_t steps = json_object_array_length(v->tools.steps);
    bool yes = true;
    int rc = 0;

    *n = 0;
    while (rc == 0 && v->tools.at + *n < steps) {
        rc = is_eligible(v, v->tools.at + *n, &yes, err);
        if (!yes)
            break;
        ++*n;
    }
    return rc;
}

/* A step has its entry, which f owns. */
static int ended(rv_visit *v, struct flight *f, int64_t call_id, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + (size_t)(f - v->tools.flights);

    v->tools.n_answered++;
    int rc = rv_visit_action(v, step, f->entry, out, err);
    if (rc == 0)
        rv_step_tell(v, step, f->entry, call_id, out);
    return rc;
}

/* May that agent be asked? If not, that is what the call comes to. */
static int check_ask(rv_visit *v, size_t i, bool *refused, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + i;
    rv_buf why = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct ask ask;

    *refused = !rv_ask_allowed(v, rv_step_parameters(v, step), &ask, &why);
    int rc = rv_buf_check(&why, "a refusal", err);
    if (rc == 0 && *refused)
        rc = rv_child_refuse(v, step, rv_buf_cstr(&why), &v->tools.flights[i].entry, err);
    rv_buf_fini(&why);
    return rc == 0 && *refused ? ended(v, &v->tools.flights[i], 0, out, err) : rc;
}

/* Before another attempt: has the breaker of its tool opened since the last one? That is what the call comes to. */
static int check_breaker(rv_visit *v, size_t i, bool *refused, struct rv_effects *out, rv_err **err)
{
    struct flight *f = &v->tools.flights[i];
    size_t step = v->tools.at + i;
    rv_buf why = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    *refused = rv_tool_is_refused(v, rv_step_tool(v, step), &why);
    int rc = rv_buf_check(&why, "a refusal", err);
    if (rc == 0 && *refused)
        rc = rv_step_error(v, step, "ToolError", rv_buf_str(&why), true, (v->now_us - f->started_us) / 1000, &f->entry,
                           err);
    rv_buf_fini(&why);
    if (rc < 0 || !*refused)
        return rc;
    f->call_id = 0;
    return ended(v, f, 0, out, err);
}

static int take_off(rv_visit *v, size_t i, struct rv_effects *out, rv_err **err)
{
    struct flight *f = &v->tools.flights[i];
    const struct rv_tool_info *info = rv_visit_tool(v, rv_step_tool(v, v->tools.at + i));

    f->waits = false;
    v->waiting_for = FLYING;
    if (f->attempt > 1) {
        bool refused = false;
        int checked = check_breaker(v, i, &refused, out, err);
        if (checked < 0 || refused)
            return checked;
    }
    if (rv_step_asks_agent(v, v->tools.at + i)) {
        bool refused = false;
        int checked = check_ask(v, i, &refused, out, err);
        if (checked < 0 || refused)
            return checked;
    }
    int rc = rv_step_call(v, v->tools.at + i, f->attempt, info, &f->call_id, out, err);
    if (rc == 0 && f->call_id) /* else the visit ended instead, and with it the others */
        v->waiting_for = FLYING;
    return rc;
}

/* All have answered: the entries follow in the order of the calls. */
static int land(rv_visit *v, rv_err **err)
{
    struct tool_progress *t = &v->tools;
    int rc = 0;

    for (size_t i = 0; i < t->n_flights && rc == 0; i++) {
        json_object *entry = t->flights[i].entry;
        t->flights[i].entry = NULL;
        rc = rv_json_push_take(t->results, entry, err);
    }
    t->at += t->n_flights;
    free(t->flights);
    t->flights = NULL;
    t->n_flights = t->n_answered = 0;
    t->approved = false; /* that was said of the step at hand */
    t->key_visit = 0;
    v->waiting_for = 0;
    v->last_call = 0;
    v->attempt = 1;
    return rc;
}

int rv_flights_begin(rv_visit *v, size_t *n, struct rv_effects *out, rv_err **err)
{
    struct tool_progress *t = &v->tools;
    size_t eligible = 0;

    *n = 0;
    int rc = count_eligible(v, &eligible, err);
    if (rc == 0 && eligible > 1 && !v->talk.acting)
        eligible = 1; /* the steps of a plan follow each other */
    if (rc < 0 || eligible == 0 || (eligible == 1 && !rv_step_asks_agent(v, t->at)))
        return rc;
    t->flights = calloc(eligible, sizeof *t->flights);
    if (!t->flights)
        return RV_FAIL(err, RV_E_NOMEM, "call the tools of agent \"%s\"", v->agent->name);
    *n = t->n_flights = eligible;
    t->n_answered = 0;
    for (size_t i = 0; i < eligible && rc == 0 && v->phase == PHASE_MAIN; i++) {
        t->flights[i].attempt = 1;
        t->flights[i].started_us = v->now_us;
        rc = take_off(v, i, out, err);
    }
    return rc == 0 && t->n_flights > 0 && t->n_answered == t->n_flights ? land(v, err) : rc;
}

static struct flight *find(const rv_visit *v, int64_t call_id)
{
    for (size_t i = 0; i < v->tools.n_flights; i++) {
        struct flight *f = &v->tools.flights[i];
        if (f->call_id == call_id || (f->child && rv_child_waits_for(f->child, call_id)))
            return f;
    }
    return NULL;
}

bool rv_flights_wait_for(const rv_visit *v, int64_t call_id)
{
    return v->waiting_for == FLYING && call_id != 0 && find(v, call_id);
}

/* The agent that was asked is done. */
static int child_ended(rv_visit *v, struct flight *f, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + (size_t)(f - v->tools.flights);
    int rc = rv_child_end(v, step, f->child, (v->now_us - f->started_us) / 1000, &f->entry, err);

    rv_child_free(f->child);
    f->child = NULL;
    return rc == 0 ? ended(v, f, 0, out, err) : rc;
}

/* There is no such agent, or none that can be used. */
static int not_found(rv_visit *v, size_t step, rv_str why, json_object **entry, rv_err **err)
{
    char *text = rv_str_dup(why);

    if (!text)
        return RV_FAIL(err, RV_E_NOMEM, "ask an agent");
    int rc = rv_child_refuse(v, step, text, entry, err);
    free(text);
    return rc;
}

static int answered(rv_visit *v, struct flight *f, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + (size_t)(f - v->tools.flights);
    int64_t retries = 0, call_id = f->call_id;

    if (rv_step_may_repeat(v, step, ev, &retries) && f->attempt <= retries) {
        char *why = rv_str_dup(ev->error);
        if (!why)
            return RV_FAIL(err, RV_E_NOMEM, "repeat a call of stage \"%s\"", v->agent->name);
        f->call_id = rv_visit_back_off(v, f->attempt, why, out);
        f->waits = f->call_id != 0;
        free(why);
        f->attempt += f->waits;
        if (f->waits)
            return 0;
    }
    f->call_id = 0;
    int rc = 0;
    if (rv_step_asks_agent(v, step) && !ev->failed)
        rc = rv_child_begin(v, step, ev->reply, &f->child, &f->entry, out, err);
    if (rc == 0 && f->child)
        return rv_child_is_done(f->child) ? child_ended(v, f, out, err) : 0;
    if (rc == 0 && rv_step_asks_agent(v, step) && ev->failed)
        rc = not_found(v, step, ev->error, &f->entry, err);
    if (rc == 0 && !f->entry)
        rc = rv_step_entry(v, step, ev, (v->now_us - f->started_us) / 1000, &f->entry, err);
    return rc == 0 ? ended(v, f, call_id, out, err) : rc;
}

static int on_child(rv_visit *v, struct flight *f, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int rc = rv_child_on(f->child, ev, out, err);

    return rc == 0 && rv_child_is_done(f->child) ? child_ended(v, f, out, err) : rc;
}

int rv_flights_on(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    struct flight *f = find(v, ev->call_id);
    enum rv_event_kind fits = f->waits ? RV_EVENT_TIMER : RV_EVENT_TOOL_DONE;
    int rc;

    if (!f->child && ev->kind != fits)
        return RV_FAIL(err, RV_E_STATE, "call %lld of stage \"%s\" can not end this way", (long long)ev->call_id,
                       v->agent->name);
    if (f->child)
        rc = on_child(v, f, ev, out, err);
    else
        rc = f->waits ? take_off(v, (size_t)(f - v->tools.flights), out, err) : answered(v, f, ev, out, err);
    bool all = v->tools.n_flights > 0 && v->tools.n_answered == v->tools.n_flights;
    return rc == 0 && all && v->phase != PHASE_DONE ? land(v, err) : rc;
}

int rv_flights_recover(rv_visit *v, int64_t gap_us, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < v->tools.n_flights && rc == 0; i++) {
        struct flight *f = &v->tools.flights[i];
        f->started_us += gap_us;
        if (!f->child)
            continue;
        rc = rv_child_recover(f->child, gap_us, out, err);
        if (rc == 0 && rv_child_is_done(f->child))
            rc = child_ended(v, f, out, err);
    }
    bool all = v->tools.n_flights > 0 && v->tools.n_answered == v->tools.n_flights;
    return rc == 0 && all ? land(v, err) : rc;
}

int rv_flights_cancel(rv_visit *v, json_object *partials, struct rv_effects *out, rv_err **err)
{
    for (size_t i = 0; i < v->tools.n_flights; i++) {
        struct flight *f = &v->tools.flights[i];
        if (f->child) {
            int rc = rv_child_cancel(f->child, "the agent that asked was ended", partials, v->now_us, out, err);
            if (rc == 0)
                rc = rv_child_give_up(v, v->tools.at + i, f->child, err);
            rv_child_free(f->child);
            f->child = NULL;
            if (rc < 0)
                return rc;
        }
        if (!f->call_id)
            continue;
        struct rv_effect *e = rv_effects_add(out, RV_EFFECT_CANCEL_CALL);
        if (!e)
            return RV_FAIL(err, RV_E_NOMEM, "cancel stage \"%s\"", v->agent->name);
        e->call_id = f->call_id;
        e->stage = rv_visit_stage_of(v);
        f->call_id = 0;
    }
    return 0;
}
