/* Tool calls of one reply that run side by side: consecutive ones that are safe and need no approval. Their results are
 * taken in the order of the calls, not in the order of the answers. */
#include "coreengine/agent/model_internal.h"
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

/* May the step run beside others? */
static int is_eligible(const rv_visit *v, size_t index, bool *yes, rv_err **err)
{
    struct step_judgement j;
    int rc = agent_step_judge(v, index, &j, err);

    *yes = rc == 0 && j.verdict == STEP_RUNS && rv_tool_effect(j.info) == RV_EFFECT_SAFE && !j.info->may_ask;
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

/* A step has its entry, which the call owns. */
static int ended(rv_visit *v, struct pending_call *call, int64_t call_id, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + (size_t)(call - v->tools.pending);

    v->tools.n_answered++;
    return agent_step_ended(v, step, call->entry, call_id, out, err);
}

/* May that agent be asked? If not, that is what the call comes to. */
static int check_ask(rv_visit *v, size_t i, bool *refused, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + i;
    rv_buf why = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct ask ask;

    *refused = !agent_ask_allowed(v, agent_step_parameters(v, step), &ask, &why);
    int rc = rv_buf_check(&why, "a refusal", err);
    if (rc == 0 && *refused)
        rc = agent_child_refuse(v, step, rv_buf_cstr(&why), &v->tools.pending[i].entry, err);
    rv_buf_fini(&why);
    return rc == 0 && *refused ? ended(v, &v->tools.pending[i], 0, out, err) : rc;
}

/* Before another attempt: has the breaker of its tool opened since the last one? That is what the call comes to. */
static int check_breaker(rv_visit *v, size_t i, bool *refused, struct rv_effects *out, rv_err **err)
{
    struct pending_call *call = &v->tools.pending[i];
    size_t step = v->tools.at + i;
    rv_buf why = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    *refused = agent_tool_is_refused(v, agent_step_tool(v, step), &why);
    int rc = rv_buf_check(&why, "a refusal", err);
    if (rc == 0 && *refused)
        rc = agent_step_error(v, step,
                              &(struct step_failure){.type = rv_error_tool,
                                                     .message = rv_buf_str(&why),
                                                     .recoverable = true,
                                                     .ms = (v->now_us - call->started_us) / RV_US_PER_MS},
                              &call->entry, err);
    if (rc == 0 && *refused)
        rc = planned_code(v, call->entry, "tool_blocked", err);
    rv_buf_fini(&why);
    if (rc < 0 || !*refused)
        return rc;
    call->call_id = 0;
    return ended(v, call, 0, out, err);
}

static bool asks_hook(const struct pending_call *call)
{
    return call->hooks.side == HOOKS_BEFORE || call->hooks.side == HOOKS_AFTER;
}

static int start_call(rv_visit *v, size_t i, struct rv_effects *out, rv_err **err);

/* The entry that hooks have left. */
static int entry_is_final(rv_visit *v, struct pending_call *call, struct rv_effects *out, rv_err **err)
{
    json_object *error;
    const char *why = "";

    call->call_id = 0;
    call->entry = call->hooks.entry;
    call->hooks.entry = NULL;
    int rc = ended(v, call, call->hooks.call_id, out, err);
    if (rc < 0 || !call->hooks.is_refused)
        return rc;
    error = rv_json_get_obj(call->entry, "error");
    RV_IGNORE(!error || !rv_json_get_text(error, "message", &why), "absent: empty");
    return agent_tools_count_bad(v, why, err);
}

/* Goes on where the hooks of a call leave it. rc: of asking them or of what they said. */
static int hooks_asked(rv_visit *v, struct pending_call *call, int rc, struct rv_effects *out, rv_err **err)
{
    if (rc < 0 || v->phase == PHASE_FAILED) /* the visit ended instead, and with it the others */
        return rc;
    if (asks_hook(call)) {
        call->call_id = v->waiting_for;
        v->waiting_for = PENDING_CALLS;
        return 0;
    }
    v->waiting_for = PENDING_CALLS;
    return call->hooks.side == HOOKS_PASSED ? start_call(v, (size_t)(call - v->tools.pending), out, err)
                                            : entry_is_final(v, call, out, err);
}

/* What the call came to is call->entry: hooks look at it. */
static int call_ended(rv_visit *v, struct pending_call *call, int64_t call_id, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + (size_t)(call - v->tools.pending);
    json_object *entry = call->entry;

    if (v->agent->hooks.after_tool.n == 0)
        return ended(v, call, call_id, out, err);
    call->entry = NULL;
    return hooks_asked(
        v, call, agent_step_hooks_after(v, step, &call->hooks, (struct step_end){entry, call_id}, out, err), out, err);
}

static int start_call(rv_visit *v, size_t i, struct rv_effects *out, rv_err **err)
{
    struct pending_call *call = &v->tools.pending[i];
    const struct rv_tool_info *info = visit_tool(v, agent_step_tool(v, v->tools.at + i));

    call->waits = false;
    v->waiting_for = PENDING_CALLS;
    if (call->hooks.side == HOOKS_NOT_ASKED && v->agent->hooks.before_tool.n > 0)
        return hooks_asked(v, call, agent_step_hooks_before(v, v->tools.at + i, &call->hooks, out, err), out, err);
    if (call->attempt > 1) {
        bool refused = false;
        int checked = check_breaker(v, i, &refused, out, err);
        if (checked < 0 || refused)
            return checked;
    }
    if (agent_step_asks_agent(v, v->tools.at + i)) {
        bool refused = false;
        int checked = check_ask(v, i, &refused, out, err);
        if (checked < 0 || refused)
            return checked;
    }
    if (call->attempt == 1)
        call->started_us = v->now_us; /* hooks before it have looked */
    int rc =
        agent_step_call(v, &(const struct step_call){v->tools.at + i, call->attempt, info}, &call->call_id, out, err);
    if (rc == 0 && call->call_id) /* else the visit ended instead, and with it the others */
        v->waiting_for = PENDING_CALLS;
    return rc;
}

/* All have answered: the entries follow in the order of the calls. */
static int complete(rv_visit *v, rv_err **err)
{
    struct tool_progress *t = &v->tools;
    int rc = 0;

    for (size_t i = 0; i < t->n_pending && rc == 0; i++) {
        json_object *entry = t->pending[i].entry;
        t->pending[i].entry = NULL;
        rc = rv_json_push_take(t->results, entry, err);
    }
    for (size_t i = 0; i < t->n_pending; i++)
        agent_tool_hooks_fini(&t->pending[i].hooks);
    t->at += t->n_pending;
    free(t->pending);
    t->pending = NULL;
    t->n_pending = t->n_answered = 0;
    t->approved = false; /* the approval was for the step at hand */
    t->key_visit = 0;
    v->waiting_for = 0;
    v->last_call = 0;
    v->attempt = 1;
    return rc;
}

int agent_pending_begin(rv_visit *v, size_t *n, struct rv_effects *out, rv_err **err)
{
    struct tool_progress *t = &v->tools;
    size_t eligible = 0;

    *n = 0;
    int rc = count_eligible(v, &eligible, err);
    if (rc == 0 && eligible > 1 && (!v->model.acting || v->planned))
        eligible = 1; /* the steps of a plan follow each other */
    if (rc < 0 || eligible == 0 || (eligible == 1 && !agent_step_asks_agent(v, t->at)))
        return rc;
    t->pending = calloc(eligible, sizeof *t->pending);
    if (!t->pending)
        return RV_FAIL(err, RV_E_NOMEM, "call the tools of agent \"%s\"", v->agent->name);
    *n = t->n_pending = eligible;
    t->n_answered = 0;
    for (size_t i = 0; i < eligible && rc == 0 && v->phase == PHASE_MAIN; i++) {
        t->pending[i].attempt = 1;
        t->pending[i].started_us = v->now_us;
        t->pending[i].begun = true;
        rc = start_call(v, i, out, err);
    }
    return rc == 0 && t->n_pending > 0 && t->n_answered == t->n_pending ? complete(v, err) : rc;
}

/* --- calls of a plan, which may need each other --- */

static size_t n_running(const struct tool_progress *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_pending; i++)
        n += t->pending[i].begun && !t->pending[i].entry;
    return n;
}

/* It may not be made: that is what the call comes to. */
static int refuse(rv_visit *v, struct pending_call *call, const struct step_judgement *j, struct rv_effects *out,
                  rv_err **err)
{
    size_t step = v->tools.at + (size_t)(call - v->tools.pending);
    json_object *entry = NULL;
    int rc = agent_step_error(
        v, step,
        &(struct step_failure){.type = j->error_type, .message = rv_buf_str(&j->text), .recoverable = j->recoverable},
        &entry, err);

    call->entry = entry;
    if (rc == 0)
        rc = planned_set_code(v, entry, NULL, false, err);
    return rc == 0 ? ended(v, call, 0, out, err) : rc;
}

static int begin_call(rv_visit *v, struct pending_call *call, struct rv_effects *out, rv_err **err)
{
    size_t i = (size_t)(call - v->tools.pending), step = v->tools.at + i;
    struct step_judgement j;
    int rc = planned_prepare(v, step, &call->entry, err);

    if (rc < 0)
        return rc;
    if (call->entry)
        return ended(v, call, 0, out, err);
    rc = agent_step_judge(v, step, &j, err);
    if (rc < 0)
        return rc;
    call->started_us = v->now_us;
    rc = j.verdict == STEP_RUNS ? start_call(v, i, out, err) : refuse(v, call, &j, out, err);
    rv_buf_fini(&j.text);
    return rc;
}

/* Begin it, or find that it will not be made. *moved: either was so. */
static int begin_if_ready(rv_visit *v, struct pending_call *call, bool *moved, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + (size_t)(call - v->tools.pending);
    bool waits = false;
    int rc = planned_skip(v, step, &waits, &call->entry, err);

    if (rc == 0 && call->entry)
        v->tools.n_answered++;
    else if (rc < 0 || waits || n_running(&v->tools) >= (size_t)v->agent->planning.parallelism)
        return rc;
    call->begun = *moved = true;
    return call->entry ? 0 : begin_call(v, call, out, err);
}

/* Begin what can begin now. */
static int begin_ready(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    struct tool_progress *t = &v->tools;
    bool moved = v->planned != NULL;
    int rc = 0;

    while (moved && rc == 0) {
        moved = false;
        for (size_t i = 0; i < t->n_pending && rc == 0 && v->phase == PHASE_MAIN; i++)
            if (!t->pending[i].begun)
                rc = begin_if_ready(v, &t->pending[i], &moved, out, err);
    }
    return rc;
}

int agent_pending_begin_planned(rv_visit *v, size_t n, struct rv_effects *out, rv_err **err)
{
    struct tool_progress *t = &v->tools;

    t->pending = calloc(n, sizeof *t->pending);
    if (!t->pending)
        return RV_FAIL(err, RV_E_NOMEM, "call the tools of agent \"%s\"", v->agent->name);
    t->n_pending = n;
    t->n_answered = 0;
    for (size_t i = 0; i < n; i++)
        t->pending[i].attempt = 1;
    int rc = begin_ready(v, out, err);
    return rc == 0 && v->phase == PHASE_MAIN && t->n_answered == t->n_pending ? complete(v, err) : rc;
}

/* --- answers --- */

static struct pending_call *find(const rv_visit *v, int64_t call_id)
{
    for (size_t i = 0; i < v->tools.n_pending; i++) {
        struct pending_call *call = &v->tools.pending[i];
        if (call->call_id == call_id || (call->child && rv_visit_waits_for(call->child->visit, call_id)))
            return call;
    }
    return NULL;
}

bool agent_pending_wait_for(const rv_visit *v, int64_t call_id)
{
    return v->waiting_for == PENDING_CALLS && call_id != 0 && find(v, call_id);
}

/* The agent that was asked is done. */
static int child_ended(rv_visit *v, struct pending_call *call, struct rv_effects *out, rv_err **err)
{
    size_t step = v->tools.at + (size_t)(call - v->tools.pending);
    int rc = agent_child_end(v, step, call->child, (v->now_us - call->started_us) / RV_US_PER_MS, &call->entry, err);

    agent_child_free(call->child);
    call->child = NULL;
    return rc == 0 ? call_ended(v, call, 0, out, err) : rc;
}

/* There is no such agent, or none that can be used. */
static int not_found(rv_visit *v, size_t step, rv_str why, json_object **entry, rv_err **err)
{
    char *text = rv_str_dup(why);

    if (!text)
        return RV_FAIL(err, RV_E_NOMEM, "ask an agent");
    int rc = agent_child_refuse(v, step, text, entry, err);
    free(text);
    return rc;
}

static int answered(rv_visit *v, struct pending_call *call, const struct rv_event *ev, struct rv_effects *out,
                    rv_err **err)
{
    size_t step = v->tools.at + (size_t)(call - v->tools.pending);
    int64_t retries = 0, call_id = call->call_id;

    money_count_asked(v, ev);
    if (agent_step_may_repeat(v, step, ev, &retries) && call->attempt <= retries) {
        char *why = rv_str_dup(ev->error);
        if (!why)
            return RV_FAIL(err, RV_E_NOMEM, "repeat a call of stage \"%s\"", v->agent->name);
        call->call_id = visit_back_off(v, call->attempt, why, out);
        call->waits = call->call_id != 0;
        free(why);
        call->attempt += call->waits;
        if (call->waits)
            return 0;
    }
    call->call_id = 0;
    int rc = 0;
    if (agent_step_asks_agent(v, step) && !ev->failed && !ev->asks) {
        struct child_begun begun = {call->child, call->entry};
        rc = agent_child_begin(v, step, ev->reply, &begun, out, err);
        call->child = begun.child;
        call->entry = begun.entry;
    }
    if (rc == 0 && call->child)
        return rv_visit_is_done(call->child->visit) ? child_ended(v, call, out, err) : 0;
    if (rc == 0 && ev->asks) {
        rc = agent_step_error(
            v, step,
            &(struct step_failure){
                .type = rv_error_tool,
                .message = RV_STR_LIT("the tool asks a person, who is not asked while other calls are under way"),
                .ms = (v->now_us - call->started_us) / RV_US_PER_MS},
            &call->entry, err);
        if (rc == 0)
            rc = planned_code(v, call->entry, "tool_error", err);
    }
    if (rc == 0 && agent_step_asks_agent(v, step) && ev->failed)
        rc = not_found(v, step, ev->error, &call->entry, err);
    if (rc == 0 && !call->entry)
        rc = agent_step_entry(v, step, ev, (v->now_us - call->started_us) / RV_US_PER_MS, &call->entry, err);
    return rc == 0 ? call_ended(v, call, call_id, out, err) : rc;
}

static int hook_answered(rv_visit *v, struct pending_call *call, const struct rv_event *ev, struct rv_effects *out,
                         rv_err **err)
{
    size_t step = v->tools.at + (size_t)(call - v->tools.pending);

    call->call_id = 0;
    return hooks_asked(v, call, agent_step_hooks_on(v, step, &call->hooks, ev, out, err), out, err);
}

static int on_child(rv_visit *v, struct pending_call *call, const struct rv_event *ev, struct rv_effects *out,
                    rv_err **err)
{
    int rc = rv_visit_step(call->child->visit, ev, out, err);

    return rc == 0 && rv_visit_is_done(call->child->visit) ? child_ended(v, call, out, err) : rc;
}

int agent_pending_on(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    struct pending_call *call = find(v, ev->call_id);
    enum rv_event_kind fits = asks_hook(call) ? RV_EVENT_HOOK_DONE : call->waits ? RV_EVENT_TIMER : RV_EVENT_TOOL_DONE;
    int rc;

    if (!call->child && ev->kind != fits)
        return RV_FAIL(err, RV_E_STATE, "call %lld of stage \"%s\" cannot end this way", (long long)ev->call_id,
                       v->agent->name);
    if (call->child)
        rc = on_child(v, call, ev, out, err);
    else if (asks_hook(call))
        rc = hook_answered(v, call, ev, out, err);
    else
        rc = call->waits ? start_call(v, (size_t)(call - v->tools.pending), out, err) : answered(v, call, ev, out, err);
    if (rc == 0)
        rc = begin_ready(v, out, err);
    bool all = v->tools.n_pending > 0 && v->tools.n_answered == v->tools.n_pending;
    return rc == 0 && all && v->phase == PHASE_MAIN ? complete(v, err) : rc;
}

int agent_pending_recover(rv_visit *v, int64_t gap_us, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < v->tools.n_pending && rc == 0; i++) {
        struct pending_call *call = &v->tools.pending[i];
        call->started_us += gap_us;
        if (!call->child)
            continue;
        rc = agent_child_recover(call->child, gap_us, out, err);
        if (rc == 0 && rv_visit_is_done(call->child->visit))
            rc = child_ended(v, call, out, err);
    }
    if (rc == 0)
        rc = begin_ready(v, out, err);
    bool all = v->tools.n_pending > 0 && v->tools.n_answered == v->tools.n_pending;
    return rc == 0 && all ? complete(v, err) : rc;
}

int agent_pending_cancel(rv_visit *v, json_object *partials, struct rv_effects *out, rv_err **err)
{
    for (size_t i = 0; i < v->tools.n_pending; i++) {
        struct pending_call *call = &v->tools.pending[i];
        if (call->child) {
            int rc = agent_child_give_up(v, v->tools.at + i, call->child, partials, out, err);
            agent_child_free(call->child);
            call->child = NULL;
            if (rc < 0)
                return rc;
        }
        if (!call->call_id)
            continue;
        struct rv_effect *e = rv_effects_add(out, RV_EFFECT_CANCEL_CALL);
        if (!e)
            return RV_FAIL(err, RV_E_NOMEM, "cancel stage \"%s\"", v->agent->name);
        e->call_id = call->call_id;
        e->stage = visit_stage(v);
        call->call_id = 0;
    }
    return 0;
}
