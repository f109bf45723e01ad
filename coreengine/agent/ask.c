/* The question that a stage puts with its key `ask`, once its output is stored, and how the stage goes on with the
 * answer: the answer joins the output, and routing follows. The stage is not visited again. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <string.h>

#define ASK RV_ASK /* kind of suspended work */

/* --- asking --- */

/* The failure of a template or an expression is the stage's; the place is in its chain. */
static int fail(rv_visit *v, const char *type, const char *what, rv_err *cause, rv_err **err)
{
    int rc = RV_WRAP(&cause, rv_err_code(cause), "%s of agent \"%s\"", what, v->agent->name);

    RV_IGNORE(rc, "the chain carries it");
    return visit_fail_cause(v, type, cause, err);
}

static int write_question(rv_visit *v, rv_buf *out, rv_err **err)
{
    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, v->output, true);
    rv_err *cause = NULL;

    rv_stage_scope_set_place(&values, &v->place);
    scope.is_older = v->shared->rules < RV_RULES_9;
    int rc = rv_template_render(v->agent->ask.question, &scope, out, &cause);
    if (rc == 0)
        rc = rv_buf_check(out, "question", &cause);
    rv_stage_scope_fini(&values);
    return rc < 0 ? fail(v, rv_error_template, "the question", cause, err) : 0;
}

/* *out is the caller's: NULL is null. */
static int shown_value(rv_visit *v, json_object **out, rv_err **err)
{
    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, v->output, false);
    json_object *value = NULL;
    rv_err *cause = NULL;

    *out = NULL;
    rv_stage_scope_set_place(&values, &v->place);
    int rc = v->agent->ask.show ? rv_expr_eval(v->agent->ask.show, &scope, &value, &cause) : 0;
    if (rc == 0)
        rc = rv_json_dup(v->agent->ask.show ? value : v->output, out, &cause);
    json_object_put(value);
    rv_stage_scope_fini(&values);
    return rc < 0 ? fail(v, rv_error_expression, "ask.show", cause, err) : 0;
}

static int set_options(const struct rv_agent_ask *ask, json_object *data, rv_err **err)
{
    json_object *options;
    int rc = 0;

    if (ask->any_text)
        return rv_json_set_text(data, RV_ASK_OPTIONS, RV_CHOICE_TEXT, err);
    options = json_object_new_array();
    if (!options)
        return RV_FAIL(err, RV_E_NOMEM, "ask a person");
    for (size_t i = 0; rv_ask_option_at(ask, i) && rc == 0; i++)
        rc = rv_json_push_take(options, json_object_new_string(rv_ask_option_at(ask, i)), err);
    if (rc == 0)
        return rv_json_set_take(data, RV_ASK_OPTIONS, options, err);
    json_object_put(options);
    return rc;
}

int agent_question_show(json_object *data, json_object *shown, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_QUESTION_MAX_SHOWN);

    rv_json_write(shown, &text);
    int rc = text.rc;
    rv_buf_fini(&text);
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "ask a person");
    return rc < 0 ? 0 : rv_json_set_ref(data, RV_ASK_SHOWN, shown, err);
}

static int write_tool_question(const rv_visit *v, const char *text, json_object *arguments, rv_buf *message,
                               rv_err **err)
{
    struct rv_scope scope = rv_scope_of_object(arguments);
    rv_template *t = NULL;
    rv_err *cause = NULL;

    scope.is_older = v->shared->rules < RV_RULES_9;
    int rc = rv_template_compile(rv_str_of(text), NULL, &t, &cause);
    if (rc == 0)
        rc = rv_template_render(t, &scope, message, &cause);
    if (rc == 0)
        rc = rv_buf_check(message, "question", &cause);
    rv_template_free(t);
    bool no_memory = rv_err_is(cause, RV_E_NOMEM);
    rv_err_free(cause);
    if (no_memory)
        return RV_FAIL(err, RV_E_NOMEM, "ask about a call");
    if (rc < 0) { /* what the model wrote lacks a name, or is too long: the general question does */
        rv_buf_fini(message);
        *message = RV_BUF_INIT(RV_QUESTION_MAX_BYTES);
    }
    return 0;
}

int agent_question_of_tool(const rv_visit *v, const struct rv_tool_info *info, json_object *arguments, rv_buf *message,
                           json_object *data, rv_err **err)
{
    const char *text = NULL, *show = NULL;
    json_object *shown = NULL;
    bool is_map = json_object_is_type(info->confirm, json_type_object);

    int rc = is_map && rv_json_get_text(info->confirm, "question", &text)
                 ? write_tool_question(v, text, arguments, message, err)
                 : 0;
    if (rc == 0 && is_map && rv_json_get_text(info->confirm, "show", &show) &&
        json_object_object_get_ex(arguments, show, &shown))
        rc = agent_question_show(data, shown, err);
    return rc;
}

/* {ask, stage, options, output_key, shown} */
static int describe(rv_visit *v, json_object *shown, json_object *data, rv_err **err)
{
    int rc = RV_SET(data, err, RV_M_BOOL(RV_ASK, true), RV_M_TEXT("stage", v->agent->name));

    if (rc == 0)
        rc = set_options(&v->agent->ask, data, err);
    if (rc == 0)
        rc = rv_json_set_text(data, "output_key", v->agent->output.key, err);
    return rc == 0 ? agent_question_show(data, shown, err) : rc;
}

/* What it takes to go on with the answer. */
static int suspend(rv_visit *v, const char *id, rv_err **err)
{
    json_object *kept = json_object_new_object();
    int rc = RV_SET(kept, err, RV_M_TEXT("kind", ASK), RV_M_TEXT("interrupt_id", id),
                    RV_M_TEXT("outcome", rv_outcome_text(v->result.outcome)));

    if (rc == 0)
        rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), kept, err);
    json_object_put(kept);
    return rc;
}

static int raise(rv_visit *v, rv_str question, json_object *shown, rv_err **err)
{
    const struct rv_agent_ask *ask = &v->agent->ask;
    json_object *data = json_object_new_object();
    char id[RV_ID_MAX];

    int rc = data ? describe(v, shown, data, err) : RV_FAIL(err, RV_E_NOMEM, "ask a person");
    if (rc == 0)
        rc = visit_raise_for(
            v,
            &(struct visit_question){.kind = ask->any_text ? RV_INTERRUPT_CLARIFICATION : RV_INTERRUPT_CONFIRMATION,
                                     .text = question,
                                     .data = data,
                                     .ttl_us = ask->expires_seconds * RV_US_PER_S},
            id, err);
    if (rc == 0)
        rc = suspend(v, id, err);
    json_object_put(data);
    return rc;
}

int visit_ask(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf question = RV_BUF_INIT(RV_QUESTION_MAX_BYTES);
    json_object *shown = NULL;

    v->stored = false; /* the output is final, whatever becomes of the question */
    int rc = write_question(v, &question, err);
    if (rc == 0 && v->phase != PHASE_FAILED)
        rc = shown_value(v, &shown, err);
    if (rc == 0 && v->phase != PHASE_FAILED)
        rc = raise(v, rv_buf_str(&question), shown, err);
    if (rc == 0 && v->phase != PHASE_FAILED) {
        v->asks = true;
        rc = visit_stay(v, out, err);
    }
    json_object_put(shown);
    rv_buf_fini(&question);
    return rc;
}

/* --- the answer --- */

static json_object *kept_of(const struct rv_visit_shared *shared, int stage, const rv_envelope *env)
{
    return shared->pipeline->agents[stage].ask.question ? visit_kept(shared, stage, env, ASK) : NULL;
}

bool visit_is_ask(const struct rv_visit_shared *shared, int stage, const rv_envelope *env)
{
    return kept_of(shared, stage, env) != NULL;
}

bool rv_visit_goes_on(const struct rv_visit_shared *shared, int stage, const rv_envelope *env)
{
    json_object *kept = kept_of(shared, stage, env);

    return kept && rv_json_get_obj(kept, "answer");
}

int rv_visit_on_answer(const struct rv_visit_shared *shared, rv_envelope *env, rv_err **err)
{
    const struct rv_interrupt in = rv_envelope_interrupt(env);
    const char *name = NULL, *id = NULL;
    json_object *with = NULL;

    if (!json_object_is_type(in.data, json_type_object) || !rv_json_get_text(in.data, "stage", &name) || !in.response)
        return 0; /* not raised here: the stage is visited again */
    int stage = rv_pipeline_find_stage(shared->pipeline, rv_str_of(name));
    json_object *kept = stage >= 0 ? kept_of(shared, stage, env) : NULL;
    if (!kept || !rv_json_get_text(kept, "interrupt_id", &id) || strcmp(id, in.id) != 0)
        return 0;
    int rc = rv_json_dup(kept, &with, err);
    if (rc == 0)
        rc = rv_json_set_ref(with, "answer", in.response, err);
    if (rc == 0)
        rc = rv_envelope_set_suspended(env, rv_str_of(name), with, err);
    json_object_put(with);
    return rc;
}

static const struct rv_answer_route *find_route(const struct rv_agent *agent, const char *choice)
{
    for (size_t i = 0; i < agent->ask.n_routes; i++)
        if (strcmp(agent->ask.routes[i].choice, choice) == 0)
            return &agent->ask.routes[i];
    return NULL;
}

/* The stored output, and in it `answer: {choice, text}`. */
static int take_output(rv_visit *v, const char *choice, rv_str text, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output.key);
    json_object *stored = rv_envelope_output(v->env, key, NULL), *answer = json_object_new_object();

    int rc = RV_SET(answer, err, RV_M_TEXT("choice", choice), RV_M_STR("text", text.ptr ? text : RV_STR_LIT("")));
    if (rc == 0 && json_object_is_type(stored, json_type_object))
        rc = rv_json_dup(stored, &v->output, err);
    else if (rc == 0 && !(v->output = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "go on after a question");
    if (rc == 0)
        rc = rv_json_set_ref(v->output, "answer", answer, err);
    json_object_put(answer);
    return rc == 0 ? rv_envelope_set_output(v->env, key, v->output, err) : rc;
}

static int go_on(rv_visit *v, json_object *answer, struct rv_effects *out, rv_err **err)
{
    json_object *text = NULL;
    const char *choice = rv_json_text_or(answer, "choice", "");

    bool expired = rv_json_bool_or(answer, "expired", false);
    bool cancelled = rv_json_bool_or(answer, "cancelled", false);
    json_object_object_get_ex(answer, "text", &text);
    const struct rv_answer_route *route = find_route(v->agent, choice);
    if ((expired || cancelled) && !route) {
        v->output = json_object_get(rv_envelope_output(v->env, rv_str_of(v->agent->output.key), NULL));
        if (cancelled)
            return visit_fail_cancelled(v, rv_json_str(text), err);
        return rv_visit_fail(v, rv_error_timeout, err, "no one answered the question of stage \"%s\" within %lld s",
                             v->agent->name, (long long)v->agent->ask.expires_seconds);
    }
    int rc = take_output(v, choice, rv_json_str(text), err);
    if (rc < 0)
        return rc;
    v->phase = PHASE_ROUTE;
    v->choice = route ? route->choice : NULL;
    if (!route || !v->route)
        return 0;
    v->routed_to = route->target;
    v->routed_by = RV_ROUTE_ANSWER;
    return visit_finish(v, out, err);
}

int visit_go_on(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_str name = rv_str_of(v->agent->name);
    json_object *kept = json_object_get(kept_of(v->shared, v->agent->index, v->env));
    const char *outcome = NULL;

    v->goes_on = true;
    v->n_interrupts = 1; /* the one that was answered */
    v->visit_no = rv_envelope_visits(v->env, name);
    v->result.outcome = RV_OUTCOME_SUCCESS;
    if (rv_json_get_text(kept, "outcome", &outcome))
        RV_IGNORE(rv_outcome_of(rv_str_of(outcome), &v->result.outcome, NULL), "it was written here");
    int rc = rv_envelope_set_suspended(v->env, name, NULL, err);
    if (rc == 0)
        rc = go_on(v, rv_json_get_obj(kept, "answer"), out, err);
    json_object_put(kept);
    return rc;
}
