/* The order of steps: the plan of a tool stage, or the calls that a model's reply asked for (rules 6.1, 6.2). A failing
 * step is a result; it does not fail the stage. */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

void rv_visit_tools_fini(struct tool_progress *t)
{
    json_object_put(t->steps);
    json_object_put(t->results);
    json_object_put(t->stated);
    for (size_t i = 0; i < t->n_pending; i++) {
        json_object_put(t->pending[i].entry);
        rv_child_free(t->pending[i].child);
    }
    free(t->pending);
}

static void clear(struct tool_progress *t)
{
    rv_visit_tools_fini(t);
    *t = (struct tool_progress){0};
}

/* Find the plan's steps; a plan that is absent has none. */
static int begin_plan(rv_visit *v, rv_err **err)
{
    json_object *steps = rv_visit_plan(v);
    int64_t limit = v->shared->pipeline->execution.max_plan_steps;

    v->tools.all_succeeded = true;
    v->tools.results = json_object_new_array();
    if (!v->tools.results)
        return RV_FAIL(err, RV_E_NOMEM, "begin tool stage \"%s\"", v->agent->name);
    if (steps && !json_object_is_type(steps, json_type_array))
        return rv_visit_fail(v, "ProcessingError", err,
                             "agent \"%s\": `steps` of output \"%s\" must be a list, found %s", v->agent->name,
                             v->agent->tools.plan_from, rv_json_type_text(steps));
    if (steps && (int64_t)json_object_array_length(steps) > limit)
        return rv_visit_fail(v, "ProcessingError", err,
                             "agent \"%s\": the plan has %zu steps, execution.max_plan_steps allows %lld",
                             v->agent->name, json_object_array_length(steps), (long long)limit);
    v->tools.steps = steps ? json_object_get(steps) : json_object_new_array();
    return v->tools.steps ? 0 : RV_FAIL(err, RV_E_NOMEM, "begin tool stage \"%s\"", v->agent->name);
}

/* Takes entry: what the step at hand came to. The next one is due. */
static int step_ended(rv_visit *v, json_object *entry, struct rv_effects *out, rv_err **err)
{
    int rc = rv_json_push_take(v->tools.results, entry, err);

    if (rc < 0)
        return rc;
    rc = rv_visit_action(v, v->tools.at, entry, out, err);
    if (rc < 0)
        return rc;
    rv_step_tell(v, v->tools.at, entry, v->last_call, out);
    v->tools.at++;
    v->tools.approved = false;
    v->tools.key_visit = 0;
    v->tools.call_started_us = 0;
    v->attempt = 1;
    v->last_call = 0;
    return 0;
}

/* The step cannot be run. A model that repeats such calls is stopped. */
static int bad_step(rv_visit *v, const struct step_judgement *j, struct rv_effects *out, rv_err **err)
{
    json_object *entry = NULL;
    int rc = rv_step_error(v, v->tools.at, j->error_type, rv_buf_str(&j->text), j->recoverable, 0, &entry, err);

    if (rc == 0)
        rc = step_ended(v, entry, out, err);
    if (rc < 0 || !v->model.acting || j->verdict == STEP_IS_BLOCKED) /* that is not the model's fault */
        return rc;
    bool untold =
        v->model.bad_before == 0 && v->agent->limits.max_bad_calls > 0; /* of the first ones it learns in any case */
    if (++v->model.bad_calls <= v->agent->limits.max_bad_calls || untold)
        return rc;
    return rv_visit_fail(v, "LimitError", err,
                         "agent \"%s\": the model asked for %lld tool calls that can not be made, max_bad_calls is "
                         "%lld: raise it, or tell "
                         "the model what there is; the last: %s",
                         v->agent->name, (long long)v->model.bad_calls, (long long)v->agent->limits.max_bad_calls,
                         rv_buf_cstr(&j->text));
}

static int run_step(rv_visit *v, const struct rv_tool_info *info, struct rv_effects *out, rv_err **err)
{
    int64_t call_id = 0;

    if (v->attempt == 1)
        v->tools.call_started_us = v->tools.called_us = v->now_us;
    return rv_step_call(v, v->tools.at, v->attempt, info, &call_id, out, err);
}

static int try_step(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    struct step_judgement j;
    char scratch[48];
    size_t at = v->tools.at, n_begun = 0;

    bool may_fly = v->attempt == 1 && (v->model.acting || rv_step_asks_agent(v, at));
    int rc = may_fly ? rv_pending_begin(v, &n_begun, out, err) : 0;
    if (rc < 0 || n_begun > 0)
        return rc;
    rc = rv_step_judge(v, at, &j, err);
    if (rc < 0)
        return rc;
    if (j.verdict == STEP_IS_BAD || j.verdict == STEP_IS_BLOCKED) {
        rc = bad_step(v, &j, out, err);
    } else if (j.verdict == STEP_ASKS && !v->tools.approved) {
        const struct visit_step step = {rv_step_id(v, at, scratch, sizeof scratch), rv_step_tool(v, at),
                                        rv_step_parameters(v, at), rv_tool_risk(j.info)};
        rc = rv_visit_suspend(v, &step, out, err);
    } else {
        rc = run_step(v, j.info, out, err);
    }
    rv_buf_fini(&j.text);
    return rc;
}

/* The calls of the last reply were made: their results become messages, and the model is asked again. */
static int return_results(rv_visit *v, rv_err **err)
{
    size_t n = json_object_array_length(v->tools.steps);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        rv_buf content = RV_BUF_INIT(RV_MESSAGES_RESULT_MAX);
        char scratch[48];
        bool is_error = false;

        rv_messages_write_result(json_object_array_get_idx(v->tools.results, i), &content, &is_error);
        rc = rv_buf_check(&content, "tool result", err);
        if (rc == 0)
            rc = rv_messages_add_result(v, rv_step_id(v, i, scratch, sizeof scratch), rv_step_tool(v, i),
                                        rv_buf_str(&content), is_error, err);
        rv_buf_fini(&content);
    }
    v->model.steps_before += n;
    v->model.acting = false;
    clear(&v->tools);
    v->attempt = 1;
    return rc;
}

static int tools_output(rv_visit *v, rv_err **err)
{
    json_object *obj = json_object_new_object();
    int rc = obj ? 0 : RV_FAIL(err, RV_E_NOMEM, "make the output of a tool stage");

    if (rc == 0)
        rc = rv_json_set_ref(obj, "results", v->tools.results, err);
    if (rc == 0)
        rc = rv_json_set_int(obj, "total_time_ms", v->tools.total_ms, err);
    if (rc == 0)
        rc = rv_json_set_bool(obj, "all_succeeded", v->tools.all_succeeded, err);
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    v->output = obj;
    v->phase = PHASE_CHECK;
    return 0;
}

static int take_word(rv_visit *v, struct rv_effects *out, rv_err **err); /* below: it ends like a reply */

int rv_visit_tools(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    if (!v->tools.steps)
        rc = begin_plan(v, err);
    v->phase = v->phase == PHASE_BACKOFF ? PHASE_MAIN : v->phase;
    while (rc == 0 && v->phase == PHASE_MAIN && !v->waiting_for) {
        if (v->tools.at >= json_object_array_length(v->tools.steps))
            return v->model.acting ? return_results(v, err) : tools_output(v, err);
        if (v->now_us >= v->deadline_us)
            return rv_visit_fail(v, "TimeoutError", err, "stage \"%s\" ran out of time before step %zu", v->agent->name,
                                 v->tools.at);
        rc = v->tools.word != WORD_NONE ? take_word(v, out, err) : try_step(v, out, err);
    }
    return rc;
}

static int ask_outcome(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    char scratch[48];
    size_t at = v->tools.at;
    const struct visit_step step = {.id = rv_step_id(v, at, scratch, sizeof scratch),
                                    .tool = rv_step_tool(v, at),
                                    .parameters = rv_step_parameters(v, at)};
    rv_buf key = RV_BUF_INIT(RV_KEY_MAX);

    rv_step_write_key(v, at, v->now_us, &key); /* such a call was not tried twice */
    int rc = rv_buf_check(&key, "idempotency key", err);
    if (rc == 0)
        rc = rv_visit_ask_outcome(v, &step, rv_tools_have_keys(v) ? rv_buf_cstr(&key) : NULL, out, err);
    rv_buf_fini(&key);
    return rc;
}

static int step_answered(rv_visit *v, const struct rv_event *ev, int64_t ms, struct rv_effects *out, rv_err **err)
{
    json_object *entry = NULL;
    int rc = rv_step_entry(v, v->tools.at, ev, ms, &entry, err);

    return rc < 0 ? rc : step_ended(v, entry, out, err);
}

/* What a person said of the call at hand stands in for its answer. */
static int take_word(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf reply = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    int word = v->tools.word;
    rv_str tool = rv_utf8_cut(rv_step_tool(v, v->tools.at), 200);

    v->tools.word = WORD_NONE;
    v->tools.call_started_us = v->now_us; /* perhaps in another life */
    if (word == WORD_ASK)
        return ask_outcome(v, out, err);
    if (word == WORD_FAIL)
        return rv_visit_fail(v, "ToolError", err,
                             "agent \"%s\": nobody knows whether tool \"%.*s\" ran, and the review gave it up",
                             v->agent->name, RV_STR_ARG(tool));
    if (v->tools.stated)
        rv_json_write(v->tools.stated, &reply);
    else
        rv_buf_puts(&reply, "{}");
    struct rv_event told = {.kind = RV_EVENT_TOOL_DONE, .reply = rv_buf_str(&reply)};
    int rc = rv_buf_check(&reply, "tool result", err);
    if (rc == 0)
        rc = step_answered(v, &told, 0, out, err);
    rv_buf_fini(&reply);
    return rc;
}

int rv_visit_tool_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int64_t ms = (v->now_us - v->tools.call_started_us) / 1000, retries = 0;

    if (ev->unknown)
        return ask_outcome(v, out, err);
    if (rv_step_may_repeat(v, v->tools.at, ev, &retries)) {
        char *why = rv_str_dup(ev->error);
        if (!why)
            return RV_FAIL(err, RV_E_NOMEM, "repeat a call of stage \"%s\"", v->agent->name);
        bool again = rv_visit_retry(v, retries, false, why, out);
        free(why);
        if (again)
            return 0;
    }
    return step_answered(v, ev, ms, out, err);
}
