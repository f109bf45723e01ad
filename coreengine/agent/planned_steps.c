/* The steps of a plan: their references become values when they are due, a failure halts those that follow it, and each
 * failure has a code. Access, hooks, the call, its journal and its result are those of any step (step.c, tools.c). */
#include "coreengine/agent/tools_internal.h"

#include <stdlib.h>

#include "coreengine/plan/plan.h"
#include "envelope/envelope.h"

#define MAX_WHY ((size_t)64 << 10) /* bytes of the reason of a failed step: a model reads it; the rest is cut */

static json_object *step_at(const rv_visit *v, size_t index)
{
    return json_object_array_get_idx(v->tools.steps, index);
}

/* What the step has come to; NULL: nothing yet. */
static json_object *entry_at(const rv_visit *v, size_t index)
{
    const struct tool_progress *t = &v->tools;

    if (index < json_object_array_length(t->results))
        return json_object_array_get_idx(t->results, index);
    return index >= t->at && index - t->at < t->n_pending ? t->pending[index - t->at].entry : NULL;
}

/* --- its arguments --- */

/* The outputs of all calls before it, of earlier plans first. */
static int list_outputs(const rv_visit *v, size_t index, struct rv_plan_step_output **out, size_t *n, rv_err **err)
{
    size_t before = json_object_array_length(v->planned->results);

    *n = before + index;
    *out = calloc(*n + 1, sizeof **out);
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "resolve the arguments of a call");
    for (size_t i = 0; i < *n; i++) {
        json_object *entry = i < before ? json_object_array_get_idx(v->planned->results, i) : entry_at(v, i - before);
        (*out)[i] = (struct rv_plan_step_output){.usable = planned_is_good(entry),
                                                 .value = planned_output_of(entry),
                                                 .artifact_id = planned_artifact_id(entry)};
    }
    return 0;
}

/* The entry of a step that fails with that code, before or in place of its call. */
static int fail_step(rv_visit *v, size_t index, struct step_failure why, const char *code, json_object **entry,
                     rv_err **err)
{
    json_object *made = NULL;

    why.message = rv_utf8_cut(why.message, MAX_WHY);
    int rc = agent_step_error(v, index, &why, &made, err);
    if (rc == 0)
        rc = planned_set_code(v, made, code, false, err);
    if (rc < 0)
        json_object_put(made);
    else
        *entry = made;
    return rc;
}

static int unresolved(rv_visit *v, size_t index, const struct rv_plan_resolution *r, json_object **entry, rv_err **err)
{
    rv_buf why = RV_BUF_INIT(MAX_WHY);

    rv_buf_printf(&why, "argument \"%s\": \"%s\": %s", r->argument ? r->argument : "", r->text ? r->text : "",
                  r->reason ? r->reason : "it cannot be resolved");
    int rc = why.rc == RV_E_NOMEM ? rv_buf_check(&why, "why a call is not made", err) : 0;
    if (rc == 0)
        rc = fail_step(v, index, (struct step_failure){.type = rv_error_validation, .message = rv_buf_str(&why)},
                       r->code, entry, err);
    rv_buf_fini(&why);
    return rc;
}

/* The arguments as they are sent: the step has them, and so have the rows of the turn. */
static int keep_arguments(rv_visit *v, json_object *step, json_object *arguments, rv_err **err)
{
    json_object *copy = NULL;
    int rc = rv_json_dup(arguments, &copy, err); /* what was resolved shares values with outputs */

    if (rc == 0)
        rc = rv_json_set_take(step, "parameters", copy, err);
    if (rc < 0 || !v->agent->declared.doc)
        return rc;
    if (!v->model.arguments && !(v->model.arguments = json_object_new_object()))
        return RV_FAIL(err, RV_E_NOMEM, "keep the arguments of a tool call");
    return rv_json_set_ref(v->model.arguments, json_object_get_string(json_object_object_get(step, "step_id")), copy,
                           err);
}

/* Has an earlier plan made that call, with success? One that only reads may be made again. */
static bool is_done(const rv_visit *v, size_t index)
{
    const struct rv_tool_info *info = visit_tool(v, agent_step_tool(v, index));
    json_object *arguments = rv_json_get_obj(step_at(v, index), "parameters");
    const struct planned *p = v->planned;

    for (size_t i = 0; i < json_object_array_length(p->results); i++) {
        json_object *step = json_object_array_get_idx(p->steps, i);
        const char *tool = "";
        if (planned_is_good(json_object_array_get_idx(p->results, i)) && rv_json_get_text(step, "tool", &tool) &&
            rv_str_is(agent_step_tool(v, index), tool) && rv_json_equal(rv_json_get_obj(step, "parameters"), arguments))
            return info && rv_tool_effect(info) != RV_EFFECT_SAFE;
    }
    return false;
}

int planned_prepare(rv_visit *v, size_t index, json_object **entry, rv_err **err)
{
    json_object *step = step_at(v, index), *template = rv_json_get_obj(step, PLANNED_TEMPLATE);
    struct rv_plan_step_output *outputs = NULL;
    struct rv_plan_resolution resolved = {0};
    size_t n = 0;

    *entry = NULL;
    if (rv_json_get_obj(step, "parameters")) /* it waited for a person */
        return 0;
    if (v->now_us >= v->planned->until_us)
        return fail_step(
            v, index,
            (struct step_failure){
                .type = rv_error_timeout,
                .message = RV_STR_LIT("the time of all calls (execute.max_total_ms) was over before this one")},
            "budget_exhausted", entry, err);
    int rc = list_outputs(v, index, &outputs, &n, err);
    if (rc == 0)
        rc = rv_plan_resolve(template, outputs, n, &resolved, err);
    if (rc == 0 && resolved.arguments)
        rc = keep_arguments(v, step, resolved.arguments, err);
    if (rc == 0 && resolved.arguments && is_done(v, index))
        rc = fail_step(
            v, index,
            (struct step_failure){
                .type = rv_error_validation,
                .message = RV_STR_LIT("this call succeeded before, with these arguments: it is not made again")},
            "repeated_call", entry, err);
    else if (rc == 0 && !resolved.arguments)
        rc = unresolved(v, index, &resolved, entry, err);
    rv_plan_resolution_fini(&resolved);
    free(outputs);
    return rc;
}

/* --- whether it is made --- */

static bool continues(const rv_visit *v, size_t index)
{
    const char *word = "";

    return rv_json_get_text(step_at(v, index), PLANNED_ON_FAILURE, &word) && strcmp(word, "continue") == 0;
}

/* The first call that it needs and that has not succeeded; NULL: there is none. *waits: one has not ended. */
static bool lacks_needed(const rv_visit *v, size_t index, bool *waits, size_t *needed)
{
    json_object *needs = rv_json_get_arr(step_at(v, index), PLANNED_NEEDS);
    size_t n = needs ? json_object_array_length(needs) : 0;

    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)json_object_get_int64(json_object_array_get_idx(needs, i));
        json_object *entry = entry_at(v, at);
        *waits |= !entry;
        if (entry && !planned_is_good(entry)) {
            *needed = at;
            return true;
        }
    }
    return false;
}

static int skip(const rv_visit *v, size_t index, const char *why, json_object **entry, rv_err **err)
{
    json_object *step = step_at(v, index), *made = json_object_new_object();
    int rc = RV_SET(made, err, RV_M_OF(VALUE, "step_id", json_object_object_get(step, "step_id")),
                    RV_M_OF(VALUE, "tool", json_object_object_get(step, "tool")), RV_M_TEXT("status", PLANNED_SKIPPED),
                    RV_M_TEXT(PLANNED_REASON, why), RV_M_INT("execution_time_ms", 0));

    if (rc < 0)
        json_object_put(made);
    else
        *entry = made;
    return rc;
}

int planned_skip(const rv_visit *v, size_t index, bool *waits, json_object **entry, rv_err **err)
{
    rv_buf why = RV_BUF_INIT(128);
    size_t needed = 0;

    *entry = NULL;
    *waits = false;
    if (v->planned->halted)
        return skip(v, index, "an earlier call failed", entry, err);
    if (!lacks_needed(v, index, waits, &needed))
        return 0;
    rv_buf_printf(&why, "it needs call %zu, which did not succeed",
                  json_object_array_length(v->planned->results) + needed);
    int rc = rv_buf_check(&why, "why a call is skipped", err);
    if (rc == 0)
        rc = skip(v, index, rv_buf_cstr(&why), entry, err);
    rv_buf_fini(&why);
    return rc;
}

int planned_deny(rv_visit *v, size_t index, const char *why, json_object **entry, rv_err **err)
{
    return fail_step(v, index, (struct step_failure){.type = rv_error_access_denied, .message = rv_str_of(why)},
                     "confirmation_denied", entry, err);
}

int planned_unknown(rv_visit *v, size_t index, int64_t ms, json_object **entry, rv_err **err)
{
    return fail_step(v, index,
                     (struct step_failure){
                         .type = rv_error_tool,
                         .message = RV_STR_LIT(
                             "reeve stopped while the tool was called: it is unknown whether the call happened, and "
                             "it is not made again"),
                         .ms = ms},
                     "outcome_unknown", entry, err);
}

/* --- the order --- */

void planned_ended(rv_visit *v, size_t index, json_object *entry)
{
    if (!planned_is_good(entry) && !continues(v, index))
        v->planned->halted = true;
}

size_t planned_overlap(const rv_visit *v)
{
    size_t n = json_object_array_length(v->tools.steps), at = v->tools.at;

    if (v->agent->planning.parallelism < 2)
        return 0;
    while (at < n) {
        const struct rv_tool_info *info = visit_tool(v, agent_step_tool(v, at));
        bool is_alone = info && info->may_ask && v->shared->rules >= RV_RULES_6;
        if (!info || rv_tool_effect(info) != RV_EFFECT_SAFE || is_alone || planned_confirms(v, info))
            break;
        at++;
    }
    return at - v->tools.at;
}

/* The rows of the turn have a result for each call. */
static int add_results(rv_visit *v, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(v->tools.steps) && rc == 0; i++) {
        json_object *entry = json_object_array_get_idx(v->tools.results, i);
        rv_buf content = RV_BUF_INIT(RV_MESSAGES_RESULT_MAX);
        const char *why = "";
        char scratch[48];
        bool is_error = true;

        if (rv_json_get_text(entry, PLANNED_REASON, &why))
            agent_messages_write_error("Skipped", why, &content);
        else
            agent_messages_write_result(entry, &content, &is_error);
        rc = rv_buf_check(&content, "tool result", err);
        if (rc == 0)
            rc = agent_messages_add_result(v, agent_step_id(v, i, scratch, sizeof scratch), agent_step_tool(v, i),
                                           rv_buf_str(&content), is_error, err);
        rv_buf_fini(&content);
    }
    return rc;
}

/* The steps join those of earlier plans. */
static int join(struct planned *p, json_object *steps, json_object *results, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(steps) && rc == 0; i++) {
        rc = rv_json_push_ref(p->steps, json_object_array_get_idx(steps, i), err);
        if (rc == 0)
            rc = rv_json_push_ref(p->results, json_object_array_get_idx(results, i), err);
    }
    return rc;
}

static bool all_succeeded(json_object *results)
{
    for (size_t i = 0; i < json_object_array_length(results); i++)
        if (!planned_is_good(json_object_array_get_idx(results, i)))
            return false;
    return true;
}

static int plan_again(rv_visit *v, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(2 * PLANNED_MAX_MESSAGE);
    int rc = planned_write_results(v, &text, err);
    size_t n = json_object_array_length(v->planned->results);

    planned_forget_brief(v->planned); /* it says how calls are numbered */
    v->planned->part = PLANNED_PLAN;
    v->planned->replans++;
    v->planned->repairs = 0;
    rv_buf_printf(&text,
                  "A call failed. Plan again: call " RV_PLAN_TOOL
                  " with the calls that are still to be made, or answer "
                  "directly. The results above stand: they are those of the calls 0 to %zu, and the first new call is "
                  "call %zu. A call that succeeded is not made again.",
                  n - 1, n);
    if (rc == 0)
        rc = rv_buf_check(&text, "results of a plan", err);
    if (rc == 0)
        rc = agent_planned_say(v, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

int planned_executed(rv_visit *v, rv_err **err)
{
    bool good = all_succeeded(v->tools.results);
    int rc = add_results(v, err);

    if (rc == 0)
        rc = join(v->planned, v->tools.steps, v->tools.results, err);
    v->model.steps_before += json_object_array_length(v->tools.steps);
    v->model.acting = false;
    v->attempt = 1;
    if (rc < 0)
        return rc;
    return !good && v->planned->replans < v->agent->planning.max_replans ? plan_again(v, err)
                                                                         : planned_ask_response(v, err);
}
