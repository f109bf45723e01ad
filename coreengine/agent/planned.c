/* A visit that plans (`strategy: planned`): asking for the plan, and what a plan comes to. A direct answer ends the
 * visit; a sound plan becomes steps; a plan that is not sound is told to the model, which plans again or answers with
 * that. No tool runs before the whole plan was found sound. */
#include "coreengine/agent/tools_internal.h"

#include <stdlib.h>

#include "coreengine/plan/plan.h"
#include "envelope/envelope.h"

#define DESCRIPTION "Answer the user directly, or plan all tool calls that the answer needs. Call this once."
#define MAX_TOLD    ((size_t)256 << 10) /* of what is wrong with a plan, as the model reads it */

int planned_new(struct planned **out, rv_err **err)
{
    struct planned *p = calloc(1, sizeof *p);

    if (!p || !(p->steps = json_object_new_array()) || !(p->results = json_object_new_array())) {
        planned_free(p);
        return RV_FAIL(err, RV_E_NOMEM, "begin a stage that plans");
    }
    *out = p;
    return 0;
}

void planned_free(struct planned *p)
{
    if (!p)
        return;
    rv_plan_catalog_free(p->catalog);
    json_object_put(p->offered);
    free(p->brief);
    json_object_put(p->plan);
    json_object_put(p->errors);
    free(p->refusal);
    free(p->draft);
    json_object_put(p->steps);
    json_object_put(p->results);
    free(p);
}

/* --- what the model is offered and told --- */

static int make_catalog(rv_visit *v, rv_err **err)
{
    json_object *real = NULL;
    int rc = agent_tools_offered(v, &real, err);
    size_t n = rc == 0 && real ? json_object_array_length(real) : 0;
    struct rv_plan_tool *tools = calloc(n + 1, sizeof *tools);

    if (rc == 0 && !tools)
        rc = RV_FAIL(err, RV_E_NOMEM, "list the tools of a plan");
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *tool = json_object_array_get_idx(real, i);
        const char *name = rv_json_text_or(tool, "name", "");
        const char *description = rv_json_text_or(tool, "description", NULL);
        const struct rv_tool_info *info = visit_tool(v, rv_str_of(name));
        tools[i] = (struct rv_plan_tool){
            .name = name,
            .description = description,
            .input = rv_json_get_obj(tool, "parameters"),
            .output = info->output_json,
            .read_only = rv_tool_effect(info) == RV_EFFECT_SAFE,
            .destructive = rv_risk_needs_confirmation(rv_tool_risk(info)),
            .idempotent = rv_tool_effect(info) != RV_EFFECT_NON_IDEMPOTENT,
            .is_full = v->shared->rules >= RV_RULES_10,
        };
    }
    if (rc == 0)
        rc = rv_plan_catalog_new(tools, n, &v->planned->catalog, err);
    free(tools);
    return rc;
}

/* G5: is a schema with anyOf understood? Of servers elsewhere that speak the protocol of these providers it is not
 * known. Hooks and fallbacks choose among the models of the pipeline, so all of them count. */
static bool reads_any_of(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_models; i++) {
        const struct rv_model_config *m = &p->models[i];
        bool is_known = strcmp(m->provider, "openai") == 0 || strcmp(m->provider, "anthropic") == 0;
        if (!is_known || (m->options && json_object_object_get_ex(m->options, "base_url", NULL)))
            return false;
    }
    return p->n_models > 0;
}

static struct rv_planner_opts planner_opts(const rv_visit *v)
{
    return (struct rv_planner_opts){
        .max_calls = (size_t)v->agent->planning.max_calls,
        .any_of = v->shared->rules >= RV_RULES_5 && reads_any_of(v->shared->pipeline),
        .has_options = true,
        .defers = v->agent->planning.unschematized == RV_UNSCHEMATIZED_DEFER,
        .n_done = json_object_array_length(v->planned->results),
    };
}

static int make_brief(rv_visit *v, rv_err **err)
{
    const struct rv_planner_opts opts = planner_opts(v);
    rv_buf text = RV_BUF_INIT(RV_TEMPLATE_MAX_OUTPUT);

    rv_plan_write_brief(v->planned->catalog, &opts, &text);
    int rc = rv_buf_check(&text, "what a planner is told", err);
    if (rc == 0)
        v->planned->brief = rv_buf_steal(&text, &v->planned->brief_len);
    rv_buf_fini(&text);
    if (rc == 0 && !v->planned->brief)
        rc = RV_FAIL(err, RV_E_NOMEM, "ask for a plan");
    return rc;
}

static int make_offer(rv_visit *v, rv_err **err)
{
    const struct rv_planner_opts opts = planner_opts(v);
    json_object *list = json_object_new_array(), *tool = json_object_new_object(), *schema = NULL;
    int rc = list ? rv_json_push_take(list, tool, err) : RV_FAIL(err, RV_E_NOMEM, "offer a plan");

    if (!list)
        json_object_put(tool);
    if (rc == 0)
        rc = rv_plan_build_schema(v->planned->catalog, &opts, &schema, err);
    if (rc == 0)
        rc = RV_SET(tool, err, RV_M_TEXT("name", RV_PLAN_TOOL), RV_M_TEXT("description", DESCRIPTION));
    if (rc == 0)
        rc = rv_json_set_take(tool, "parameters", schema, err);
    else
        json_object_put(schema);
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    v->planned->offered = list;
    return 0;
}

void planned_forget_brief(struct planned *p)
{
    free(p->brief);
    json_object_put(p->offered);
    p->brief = NULL;
    p->offered = NULL;
}

int planned_offer(rv_visit *v, json_object **offered, rv_err **err)
{
    struct planned *p = v->planned;
    int rc = p->catalog ? 0 : make_catalog(v, err);

    if (rc == 0 && !p->brief)
        rc = make_brief(v, err);
    if (rc == 0 && !p->offered)
        rc = make_offer(v, err);
    *offered = rc == 0 && p->part == PLANNED_PLAN ? p->offered : NULL;
    return rc;
}

/* --- what a plan comes to --- */

/* Observers see the plan as the result of the planning tool. */
static void tell_plan(rv_visit *v, const char *status, json_object *result, struct rv_effects *out)
{
    struct planned *p = v->planned;
    bool failed = strcmp(status, "success") != 0;

    rv_visit_emit(v, out, RV_EMIT_TOOL_RESULT, RV_M_INT("call_id", v->model.call_id), RV_M_TEXT("tool", RV_PLAN_TOOL),
                  RV_M_TEXT("status", status), RV_M_BOOL("planned", true),
                  RV_M_IF(failed, RV_M_TEXT("error_type", rv_error_validation)),
                  RV_M_IF(failed, RV_M_PREVIEW("error", rv_str_of(p->refusal))), RV_M_OF(VALUE, "result", result));
}

/* A direct answer. With output_schema it has to fit; one that does not is written again by the call that answers. */
static int take_direct(rv_visit *v, rv_str content, rv_err **err)
{
    const struct rv_str_list *need = &v->agent->output.required_fields;
    rv_err *cause = NULL;

    if (!v->agent->output.schema) {
        v->planned->part = PLANNED_OVER;
        agent_visible_own(v, content, false);
        return planned_answer(v, content, err);
    }
    int rc = rv_extract_object(content, need->items, need->n, v->shared->rules, &v->output, &cause);
    if (rc == 0)
        rc = agent_output_check(v, v->output, &cause);
    bool no_memory = rv_err_is(cause, RV_E_NOMEM);
    rv_err_free(cause);
    if (rc == 0)
        return planned_end(v, err);
    json_object_put(v->output);
    v->output = NULL;
    if (no_memory || !(v->planned->draft = rv_str_dup(content)))
        return RV_FAIL(err, RV_E_NOMEM, "keep an answer");
    return planned_ask_response(v, err);
}

static int keep_errors(struct planned *p, const struct rv_plan_check *check, rv_err **err)
{
    rv_buf json = RV_BUF_INIT(RV_JSON_MAX_BYTES), text = RV_BUF_INIT(MAX_TOLD);
    const struct rv_json_opts opts = {.what = "errors of a plan"};
    json_object *errors = NULL;
    rv_jw w = rv_jw_on(&json);

    rv_jw_arr(&w);
    for (size_t i = 0; i < check->n_errors; i++)
        rv_plan_error_write_json(&check->errors[i], &w);
    rv_jw_arr_end(&w);
    rv_plan_check_write_text(check, &text);
    int rc = rv_buf_check(&json, "errors of a plan", err);
    if (rc == 0 && text.rc == RV_E_NOMEM)
        rc = rv_buf_check(&text, "errors of a plan", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&json), &opts, &errors, err);
    char *told = rc == 0 ? rv_str_dup(rv_buf_str(&text)) : NULL;
    if (rc == 0 && !told) {
        json_object_put(errors);
        rc = RV_FAIL(err, RV_E_NOMEM, "keep the errors of a plan");
    }
    rv_buf_fini(&json);
    rv_buf_fini(&text);
    if (rc < 0)
        return rc;
    json_object_put(p->errors);
    free(p->refusal);
    p->errors = errors;
    p->refusal = told;
    return 0;
}

/* The model is told, and plans again, or answers. */
static int refuse(rv_visit *v, const struct rv_plan_check *check, struct rv_effects *out, rv_err **err)
{
    struct planned *p = v->planned;
    rv_buf text = RV_BUF_INIT(2 * MAX_TOLD);
    int rc = keep_errors(p, check, err);

    if (rc < 0)
        return rc;
    tell_plan(v, "error", p->errors, out);
    if (p->repairs >= v->agent->planning.max_repairs)
        return planned_ask_response(v, err);
    p->repairs++;
    rv_visit_emit(v, out, RV_EMIT_RETRY, RV_M_INT("repair", p->repairs), RV_M_INT("wait_ms", 0),
                  RV_M_TEXT("error", p->refusal));
    if (json_object_array_length(p->results) > 0) /* a later round of planning */
        rc = planned_write_results(v, &text, err);
    rv_buf_printf(&text,
                  "%s\n\nNo tool was called. Call " RV_PLAN_TOOL " again, with a plan that has none of these faults.",
                  p->refusal);
    if (rc == 0)
        rc = rv_buf_check(&text, "a repair message", err);
    if (rc == 0)
        rc = agent_planned_say(v, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    v->attempt = 1;
    v->phase = PHASE_MAIN;
    return rc;
}

/* --- a sound plan --- */

static int add_needs(json_object *step, const struct rv_plan_needs *needs, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "begin a plan");

    for (size_t i = 0; i < needs->n && rc == 0; i++)
        rc = rv_json_push_take(list, json_object_new_int64((int64_t)needs->calls[i]), err);
    if (rc == 0)
        return rv_json_set_take(step, PLANNED_NEEDS, list, err);
    json_object_put(list);
    return rc;
}

static int add_step(rv_visit *v, const struct rv_plan_call *call, const struct rv_plan_tool *tool,
                    const struct rv_plan_needs *needs, json_object *id, rv_err **err)
{
    json_object *step = json_object_new_object();
    int rc = rv_json_push_take(v->tools.steps, step, err);

    if (rc == 0)
        rc = RV_SET(step, err, RV_M_OF(VALUE, "step_id", id), RV_M_TEXT("tool", tool->name),
                    RV_M_OF(VALUE, PLANNED_TEMPLATE, call->arguments),
                    RV_M_IF(call->continues, RV_M_TEXT(PLANNED_ON_FAILURE, "continue")));
    return rc == 0 ? add_needs(step, needs, err) : rc;
}

/* The calls as a reply has them: they are rows of the session, and get their ids so. */
static int list_calls(const struct rv_plan *plan, const struct rv_plan_check *check, json_object **out, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "begin a plan");

    for (size_t i = 0; i < plan->n_calls && rc == 0; i++) {
        json_object *call = json_object_new_object();
        rv_buf text = RV_BUF_INIT(2 * RV_PLAN_MAX_BYTES);
        rc = rv_json_push_take(list, call, err);
        rv_json_write(plan->calls[i].arguments, &text);
        if (rc == 0)
            rc = rv_buf_check(&text, "arguments of a plan", err);
        if (rc == 0)
            rc = RV_SET(call, err, RV_M_TEXT("id", ""), RV_M_TEXT("name", check->tools[i]->name),
                        RV_M_STR("arguments", rv_buf_str(&text)));
        rv_buf_fini(&text);
    }
    if (rc < 0)
        json_object_put(list);
    else
        *out = list;
    return rc;
}

/* {reasoning, calls: [{tool_name, arguments, on_failure?}]} */
static int describe(const struct rv_plan *plan, const struct rv_plan_check *check, json_object **out, rv_err **err)
{
    json_object *described = json_object_new_object(), *calls = json_object_new_array();
    int rc = described ? rv_json_set_str(described, "reasoning", plan->reasoning, err)
                       : RV_FAIL(err, RV_E_NOMEM, "keep a plan");

    if (rc == 0)
        rc = rv_json_set_take(described, "calls", calls, err);
    else
        json_object_put(calls);
    for (size_t i = 0; i < plan->n_calls && rc == 0; i++) {
        const struct rv_plan_call *call = &plan->calls[i];
        json_object *one = json_object_new_object();
        rc = rv_json_push_take(calls, one, err);
        if (rc == 0)
            rc = RV_SET(one, err, RV_M_TEXT("tool_name", check->tools[i]->name),
                        RV_M_OF(VALUE, "arguments", call->arguments),
                        RV_M_IF(call->continues, RV_M_TEXT(PLANNED_ON_FAILURE, "continue")));
    }
    if (rc < 0)
        json_object_put(described);
    else
        *out = described;
    return rc;
}

/* The plan becomes the one that is run, and nothing is left of those that were refused. */
static int keep_plan(struct planned *p, const struct rv_plan *plan, const struct rv_plan_check *check, rv_err **err)
{
    json_object *described = NULL;
    int rc = describe(plan, check, &described, err);

    if (rc < 0)
        return rc;
    json_object_put(p->plan);
    json_object_put(p->errors);
    free(p->refusal);
    p->plan = described;
    p->errors = NULL;
    p->refusal = NULL;
    return 0;
}

/* Its calls become the steps of the tool machine. */
static int accept(rv_visit *v, const struct rv_plan *plan, const struct rv_plan_check *check, struct rv_effects *out,
                  rv_err **err)
{
    const struct rv_event said = {.kind = RV_EVENT_LLM_DONE, .llm = RV_LLM_ANSWER_NONE};
    struct planned *p = v->planned;
    json_object *calls = NULL;

    int rc = money_count_tools(v, (int64_t)plan->n_calls, err);
    if (rc < 0 || v->phase == PHASE_FAILED)
        return rc;
    rc = keep_plan(p, plan, check, err);
    if (rc == 0)
        rc = list_calls(plan, check, &calls, err);
    if (rc == 0)
        rc = agent_messages_add_reply(v, &said, calls, err);
    if (rc == 0 && (!(v->tools.steps = json_object_new_array()) || !(v->tools.results = json_object_new_array())))
        rc = RV_FAIL(err, RV_E_NOMEM, "begin a plan");
    for (size_t i = 0; i < plan->n_calls && rc == 0; i++) {
        json_object *id = json_object_object_get(json_object_array_get_idx(calls, i), "id");
        rc = add_step(v, &plan->calls[i], check->tools[i], &check->needs[i], id, err);
    }
    json_object_put(calls);
    if (rc < 0)
        return rc;
    tell_plan(v, "success", p->plan, out);
    v->tools.all_succeeded = true;
    v->model.acting = true;
    v->attempt = 1;
    v->phase = PHASE_MAIN;
    if (p->replans == 0)
        p->until_us = v->now_us + v->agent->planning.max_total_ms * RV_US_PER_MS;
    p->part = PLANNED_EXECUTE;
    p->halted = false;
    return 0;
}

/* --- the reply --- */

/* Does the reply call tools itself, where only the planning tool may be called? */
static bool is_native(const rv_visit *v, json_object *calls)
{
    size_t n = calls && !v->agent->planning.accept_native_calls ? json_object_array_length(calls) : 0;

    for (size_t i = 0; i < n; i++) {
        const char *name = "";
        if (rv_json_get_text(json_object_array_get_idx(calls, i), "name", &name) && strcmp(name, RV_PLAN_TOOL) == 0)
            return false;
    }
    return n > 0;
}

static int read_plan(const rv_visit *v, const struct rv_event *ev, json_object *calls, struct rv_plan *plan,
                     rv_err **err)
{
    const struct rv_plan_reply reply = {
        .text = ev->reply,
        .calls = calls,
        .truncated = ev->llm.finish == RV_FINISH_LENGTH || ev->llm.finish == RV_FINISH_PAUSE,
    };

    if (!is_native(v, calls))
        return rv_plan_parse(&reply, (size_t)v->agent->planning.max_calls, plan, err);
    *plan = (struct rv_plan){
        .fault = RV_PLAN_ERROR_PLAN_MALFORMED,
        .reason = "type",
        .detail = rv_str_dup(RV_STR_LIT("the reply calls tools itself: call " RV_PLAN_TOOL " with the plan instead"))};
    return plan->detail ? 0 : RV_FAIL(err, RV_E_NOMEM, "read a plan");
}

/* The results of earlier plans, which a later one may refer to. */
static int list_done(const struct planned *p, struct rv_plan_done **out, size_t *n, rv_err **err)
{
    *n = json_object_array_length(p->results);
    *out = calloc(*n + 1, sizeof **out);
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "check a plan");
    for (size_t i = 0; i < *n; i++) {
        json_object *entry = json_object_array_get_idx(p->results, i);
        const char *tool = rv_json_text_or(json_object_array_get_idx(p->steps, i), "tool", "");
        (*out)[i] = (struct rv_plan_done){.tool = tool,
                                          .usable = planned_is_good(entry),
                                          .value = planned_output_of(entry),
                                          .artifact_id = planned_artifact_id(entry)};
    }
    return 0;
}

static int judge(rv_visit *v, const struct rv_plan *plan, struct rv_effects *out, rv_err **err)
{
    struct rv_plan_rules rules = {.defer_unschematized = v->agent->planning.unschematized == RV_UNSCHEMATIZED_DEFER};
    struct rv_plan_done *done = NULL;
    struct rv_plan_check check = {0};
    size_t n = 0;
    int rc = list_done(v->planned, &done, &n, err);

    rules.done = done;
    rules.n_done = n;
    if (rc == 0)
        rc = rv_plan_validate(plan, v->planned->catalog, &rules, &check, err);
    if (rc == 0)
        rc = check.n_errors > 0 ? refuse(v, &check, out, err) : accept(v, plan, &check, out, err);
    rv_plan_check_fini(&check);
    free(done);
    return rc;
}

int planned_take(rv_visit *v, const struct rv_event *ev, json_object *calls, struct rv_effects *out, rv_err **err)
{
    struct rv_plan plan = {0};
    int rc = read_plan(v, ev, calls, &plan, err);

    if (rc == 0 && plan.duplicate_keys)
        rv_visit_emit(v, out, RV_EMIT_WARNING,
                      RV_M_TEXT("message", "an object of the plan has two equal keys: the last one counts"));
    if (rc == 0 && plan.direct && !plan.fault)
        rc = take_direct(v, plan.content, err);
    else if (rc == 0)
        rc = judge(v, &plan, out, err);
    rv_plan_fini(&plan);
    return rc;
}
