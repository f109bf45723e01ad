/* How a visit ends: routing, rows, history and events of one that is done (5.8, 5.9), the question for a person that it
 * stops at, and where an error leads (5.7, 7.5). */
#include "coreengine/agent/agent_internal.h"
#include "envelope/envelope.h"

#include <string.h>

static int64_t duration_ms(const rv_visit *v)
{
    return (v->now_us - v->started_us) / RV_US_PER_MS;
}

/* A stage with a model counts a call even if it failed before one (rule 5.2); an agent that was asked counts those
 * that it made. */
static int64_t counted_llm_calls(const rv_visit *v)
{
    if (v->shared->origin && v->shared->rules >= RV_RULES_9)
        return v->llm_calls;
    bool is_first = v->llm_path && !v->resumed && !v->model.hooks.has_answered; /* what goes on was counted before */
    return is_first && v->llm_calls == 0 ? 1 : v->llm_calls;
}

/* next: the stage that follows; NULL: none. */
static void emit_completed(rv_visit *v, const char *status, const char *next, struct rv_effects *out)
{
    bool failed = v->error_text != NULL;
    const char *code = visit_code_text(v, v->code);

    if (v->goes_on) /* told when the visit ended with the question */
        return;

    rv_visit_emit(v, out, v->shared->origin ? RV_EMIT_AGENT_COMPLETED : RV_EMIT_STAGE_COMPLETED,
                  RV_M_TEXT("status", status), RV_M_TEXT("outcome", rv_outcome_text(v->result.outcome)),
                  RV_M_TEXT("output_key", v->agent->output.key), RV_M_OF(VALUE, "output", failed ? NULL : v->output),
                  RV_M_TEXT("next_stage", next), RV_M_INT("duration_ms", duration_ms(v)),
                  RV_M_INT("llm_calls", counted_llm_calls(v)),
                  RV_M_IF(!rv_usage_is_zero(&v->model.usage), RV_M_USAGE("usage", &v->model.usage)),
                  RV_M_IF(failed, RV_M_TEXT("error_type", v->error_type)),
                  RV_M_IF(failed && code, RV_M_TEXT("code", code)), RV_M_IF(failed, RV_M_TEXT("error", v->error_text)));
}

static void emit_decision(rv_visit *v, int to, enum rv_route_by by, struct rv_effects *out)
{
    const struct rv_rule *rule = by == RV_ROUTE_RULE ? &v->agent->routing.rules[v->routed_rule] : NULL;

    bool is_list = to == RV_TARGET_LIST;

    rv_visit_emit(v, out, RV_EMIT_ROUTING_DECISION, RV_M_TEXT("from", v->agent->name),
                  RV_M_TEXT("to", is_list ? NULL : rv_pipeline_target_name(v->shared->pipeline, to)),
                  RV_M_IF(is_list, RV_M_OF(VALUE, "branches", v->chosen)), RV_M_TEXT("reason", rv_route_by_text(by)),
                  RV_M_IF(rule, RV_M_INT("rule", v->routed_rule)),
                  RV_M_IF(by == RV_ROUTE_ANSWER, RV_M_TEXT("choice", v->choice)),
                  RV_M_IF(v->goes_on && v->error_text, RV_M_TEXT("error", v->error_text)),
                  RV_M_IF(rule, RV_M_TEXT("condition", rule->when ? rv_expr_text(rule->when) : rule->condition)));
}

/* Is it to go on when a person has answered? Then its turn is not over. An agent that was asked never goes on. */
static bool is_suspended(const rv_visit *v)
{
    return v->result.end == RV_VISIT_STAYED && !v->shared->origin && !v->asks &&
           rv_envelope_suspended(v->env, rv_str_of(v->agent->name));
}

static enum rv_turn_status turn_status(const rv_visit *v)
{
    if (v->shared->origin && v->result.end == RV_VISIT_STAYED)
        return RV_TURN_FAILED;
    if (!v->error_text)
        return RV_TURN_COMPLETED;
    return rv_error_is(v->error_type, rv_error_cancelled) ? RV_TURN_CANCELLED : RV_TURN_FAILED;
}

/* Rows and history of a visit that is over. */
static int record(rv_visit *v, enum rv_history_status status, struct rv_effects *out, rv_err **err)
{
    if (v->goes_on) { /* both were written when the visit ended with the question */
        v->phase = PHASE_DONE;
        return 0;
    }
    if (!is_suspended(v)) {
        int rc = visit_keep_rows(v, turn_status(v), out, err);
        if (rc == 0 && turn_status(v) == RV_TURN_COMPLETED && !v->is_list)
            rc = agent_visible_output(v, out, err);
        if (rc < 0)
            return rc;
    }
    struct rv_record_end end = {
        .status = status,
        .error = v->error_text ? rv_str_of(v->error_text) : (rv_str){NULL, 0},
        .llm_calls = counted_llm_calls(v),
        .duration_ms = duration_ms(v),
    };
    v->phase = PHASE_DONE;
    if (v->result.end != RV_VISIT_STAYED && !v->shared->origin) {
        int rc = rv_envelope_set_caught(v->env, rv_str_of(v->agent->name), NULL, err);
        if (rc < 0)
            return rc;
    }
    return rv_envelope_record_complete(v->env, rv_str_of(v->agent->name), &end, v->now_us, err);
}

static void find_feedback(rv_visit *v)
{
    json_object *text = NULL;
    if (json_object_is_type(v->output, json_type_object) && json_object_object_get_ex(v->output, "feedback", &text) &&
        json_object_is_type(text, json_type_string))
        v->result.feedback = text;
}

/* Outcome terminate takes effect after routing, so that a stage that cannot be routed fails instead. */
static int end_run(rv_visit *v, rv_err **err)
{
    const char *why = v->end_text ? v->end_text : agent_output_text(v->output, "reason", NULL);
    bool breaks = v->breaks;

    if (v->shared->rules >= RV_RULES_2 && !v->end_text && json_object_is_type(v->output, json_type_object))
        breaks = rv_json_bool_or(v->output, "break", breaks);
    return rv_envelope_terminate(v->env, rv_str_of(why ? why : "a stage ended the run"),
                                 breaks ? RV_REASON_BREAK : RV_REASON_COMPLETED, v->now_us, err);
}

static enum rv_history_status ok_status(const rv_visit *v)
{
    return v->result.outcome == RV_OUTCOME_SKIP ? RV_HISTORY_SKIPPED : RV_HISTORY_SUCCESS;
}

int visit_stay(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    v->result.end = RV_VISIT_STAYED;
    v->result.next = v->agent->index;
    find_feedback(v);
    int rc = rv_envelope_set_stage(v->env, rv_str_of(v->agent->name), err);
    if (rc == 0)
        rc = record(v, ok_status(v), out, err);
    if (rc == 0)
        emit_completed(v, rv_history_status_text(ok_status(v)), v->agent->name, out);
    return rc;
}

#define POLICY         "policy"
#define SHOWN_BYTES    ((size_t)1000)      /* of the output, in the text of a question */
#define DATA_BYTES     ((size_t)256 << 10) /* of the output, in the data of a question */
#define MAX_TEXT_BYTES RV_JSON_MAX_BYTES
/* of an output as JSON: its texts may be four times as long with escapes; a longer one fails the visit */
#define MAX_OUTPUT_BYTES ((size_t)256 << 20)

/* An interrupt of the stage, and where a policy asks, what it takes to go on after the answer. data: borrowed, or
 * NULL. */
static int raise_interrupt(rv_visit *v, enum rv_interrupt_kind kind, const char *text, json_object *data, rv_err **err)
{
    char id[RV_ID_MAX];
    int rc = visit_raise(v, kind, rv_str_of(text), data, id, err);
    if (rc < 0 || !v->confirm_message)
        return rc;
    json_object *kept = json_object_new_object(); /* so that the policy is not asked forever */
    rc = RV_SET(kept, err, RV_M_TEXT("kind", POLICY), RV_M_TEXT("interrupt_id", id),
                RV_M_TEXT("policy", v->agent->hooks.policies.items[v->policy_at]),
                RV_M_IF(v->approved_policies, RV_M_OF(VALUE, "approved", v->approved_policies)));
    if (rc == 0)
        rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), kept, err);
    json_object_put(kept);
    return rc;
}

/* Since rules 2 a question names its stage and shows what it is about. */
static bool says_more(const rv_visit *v)
{
    return v->shared->rules >= RV_RULES_2;
}

/* The output as a person reads it: the text where that is all there is, else JSON. */
static int write_output(json_object *output, rv_buf *out, rv_err **err)
{
    json_object *text = NULL;

    if (json_object_object_length(output) == 1 && json_object_object_get_ex(output, "response", &text) &&
        json_object_is_type(text, json_type_string))
        rv_buf_add_str(out, rv_json_str(text));
    else
        rv_json_write(output, out);
    return rv_buf_check(out, "output", err);
}

/* {stage, output, next?}: what a question is about, and, where a route raised it, the stage that a yes leads to. */
static int describe(const rv_visit *v, enum rv_outcome kind, rv_str output, json_object *data, rv_err **err)
{
    int rc = rv_json_set_text(data, "stage", v->agent->name, err);

    if (rc == 0 && output.len <= DATA_BYTES)
        rc = rv_json_set_ref(data, "output", v->output, err);
    else if (rc == 0)
        rc = rv_json_set_text(data, "output_key", v->agent->output.key, err);
    if (rc == 0 && kind == RV_OUTCOME_CONFIRM && v->has_confirm_show)
        rc = agent_question_show(data, v->confirm_show, err);
    if (rc == 0 && kind == RV_OUTCOME_CONFIRM && v->routed_to == RV_TARGET_CONFIRMATION)
        rc = rv_json_set_text(data, RV_ASKED_NEXT, rv_pipeline_approved_name(v->shared->pipeline, v->agent), err);
    return rc;
}

static void write_question(const rv_visit *v, enum rv_outcome kind, rv_str output, rv_buf *text)
{
    rv_str head = rv_utf8_cut(output, SHOWN_BYTES);

    rv_buf_printf(text,
                  kind == RV_OUTCOME_CLARIFY ? "stage \"%s\" needs more information to go on; its output: %.*s%s"
                                             : "stage \"%s\" asks: may the run go on with this output? %.*s%s",
                  v->agent->name, RV_STR_ARG(head), head.len < output.len ? "..." : "");
}

static int ask_more(rv_visit *v, enum rv_outcome kind, const char *text, rv_err **err)
{
    rv_buf output = RV_BUF_INIT(MAX_OUTPUT_BYTES), question = RV_BUF_INIT(MAX_TEXT_BYTES);
    json_object *data = json_object_new_object();
    int rc = data ? write_output(v->output, &output, err) : RV_FAIL(err, RV_E_NOMEM, "ask a person");

    if (rc == 0)
        rc = describe(v, kind, rv_buf_str(&output), data, err);
    if (rc == 0 && !text) {
        write_question(v, kind, rv_buf_str(&output), &question);
        rc = rv_buf_check(&question, "question", err);
        text = rv_buf_cstr(&question);
    }
    if (rc == 0)
        rc = raise_interrupt(v, kind == RV_OUTCOME_CLARIFY ? RV_INTERRUPT_CLARIFICATION : RV_INTERRUPT_CONFIRMATION,
                             text, data, err);
    json_object_put(data);
    rv_buf_fini(&question);
    rv_buf_fini(&output);
    return rc;
}

static int ask(rv_visit *v, enum rv_outcome kind, rv_err **err)
{
    bool clarifies = kind == RV_OUTCOME_CLARIFY;
    const char *text = clarifies            ? agent_output_text(v->output, "clarification_question", "question")
                       : v->confirm_message ? v->confirm_message
                                            : agent_output_text(v->output, "confirmation_message", "message");

    if (says_more(v))
        return ask_more(v, kind, text, err);
    if (!text)
        text = clarifies ? "more information is needed to go on" : "may the run go on?";
    return raise_interrupt(v, clarifies ? RV_INTERRUPT_CLARIFICATION : RV_INTERRUPT_CONFIRMATION, text, NULL, err);
}

int agent_end_ask(rv_visit *v, enum rv_outcome kind, struct rv_effects *out, rv_err **err)
{
    int rc = ask(v, kind, err);

    return rc < 0 ? rc : visit_stay(v, out, err);
}

int agent_end_approved(rv_visit *v, int to, struct rv_effects *out, rv_err **err)
{
    emit_decision(v, to, v->agent->routing.default_target == to ? RV_ROUTE_DEFAULT : RV_ROUTE_NO_MATCH, out);
    return to == RV_TARGET_CLARIFICATION ? ask(v, RV_OUTCOME_CLARIFY, err) : 0;
}

/* error_next leads to a person: ask about the failure. kind: CLARIFICATION or CONFIRMATION. */
static int ask_after_failure(rv_visit *v, enum rv_interrupt_kind kind, rv_err **err)
{
    rv_buf question = RV_BUF_INIT(MAX_TEXT_BYTES);
    json_object *data = NULL;

    if (!says_more(v))
        return raise_interrupt(v, kind, v->error_text, NULL, err);
    rv_buf_printf(&question, "stage \"%s\" failed: %s; %s", v->agent->name, v->error_text,
                  kind == RV_INTERRUPT_CONFIRMATION ? "visit it again?"
                                                    : "what should it know when it is visited again?");
    int rc = rv_buf_check(&question, "question", err);
    if (rc == 0 && !(data = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "ask a person");
    if (rc == 0)
        rc = rv_json_set_text(data, "stage", v->agent->name, err);
    if (rc == 0)
        rc = raise_interrupt(v, kind, rv_buf_cstr(&question), data, err);
    json_object_put(data);
    rv_buf_fini(&question);
    return rc;
}

/* Outcome partial, or the results of a tool stage of which some failed and some did not. */
static bool is_partial(const rv_visit *v)
{
    json_object *results =
        json_object_is_type(v->output, json_type_object) ? rv_json_get_arr(v->output, "results") : NULL;
    size_t n = results ? json_object_array_length(results) : 0, n_good = 0;

    if (v->result.outcome == RV_OUTCOME_PARTIAL)
        return true;
    if (!v->agent->has_tools || v->agent->has_llm || v->is_list)
        return false;
    for (size_t i = 0; i < n; i++) {
        json_object *entry = json_object_array_get_idx(results, i);
        const char *status = NULL;
        n_good += json_object_is_type(entry, json_type_object) && rv_json_get_text(entry, "status", &status) &&
                  strcmp(status, rv_tool_status_text(RV_TOOL_STATUS_SUCCESS)) == 0;
    }
    return n_good > 0 && n_good < n;
}

/* Once routed: a partial result does not lead back where the pipeline does not want that. */
static void keep_partial(rv_visit *v)
{
    int to = v->agent->routing.default_target;

    if (v->shared->rules < RV_RULES_2 || v->shared->pipeline->execution.replan_on_partial_success || v->routed_to < 0 ||
        v->routed_to > v->agent->index || !is_partial(v))
        return;
    bool goes_on = to > v->agent->index || to == RV_TARGET_CLARIFICATION || to == RV_TARGET_CONFIRMATION ||
                   to == RV_TARGET_LIST; /* lists lead forward */
    v->routed_to = goes_on ? to : RV_TARGET_END;
    v->routed_by = goes_on ? RV_ROUTE_DEFAULT : RV_ROUTE_NO_MATCH;
}

int visit_finish(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    if (v->route && v->routed_by != RV_ROUTE_ANSWER)
        keep_partial(v);
    if (v->result.outcome == RV_OUTCOME_TERMINATE) {
        rc = end_run(v, err);
        if (rc < 0)
            return rc;
    } else if (v->route && (v->routed_to == RV_TARGET_CLARIFICATION || v->routed_to == RV_TARGET_CONFIRMATION)) {
        v->result.outcome = v->routed_to == RV_TARGET_CLARIFICATION ? RV_OUTCOME_CLARIFY : RV_OUTCOME_CONFIRM;
        rc = agent_end_ask(v, v->result.outcome, out, err);
        if (rc == 0)
            emit_decision(v, v->routed_to, v->routed_by, out);
        return rc;
    } else if (v->route && v->routed_to == RV_TARGET_LIST) {
        rc = visit_choose_branches(v, err);
        if (rc < 0 || v->phase == PHASE_FAILED)
            return rc;
    }
    v->result.end = RV_VISIT_OK;
    v->result.output = v->output;
    v->result.next = v->route ? v->routed_to : RV_TARGET_NONE;
    find_feedback(v);
    bool is_stage = v->routed_to >= 0 || v->routed_to == RV_TARGET_END; /* else: terminated where it stands */
    const char *next = v->route && is_stage ? rv_pipeline_target_name(v->shared->pipeline, v->routed_to) : NULL;
    if (next)
        rc = rv_envelope_set_stage(v->env, rv_str_of(next), err);
    if (rc == 0)
        rc = record(v, ok_status(v), out, err);
    if (rc < 0)
        return rc;
    emit_completed(v, rv_history_status_text(ok_status(v)), next, out);
    if (v->route)
        emit_decision(v, v->routed_to, v->routed_by, out);
    return 0;
}

/* Rule 7.5: the termination reason of an unrouted failure. Failures of the model are its call, its reply, and fields it
 * left out; a prompt that cannot be made, or an error that the output itself states, is the stage's. */
static enum rv_reason reason_of(const rv_visit *v, const char *type, enum visit_phase phase)
{
    if (v->bound != RV_REASON_NONE)
        return v->bound;
    if (v->given_reason != RV_REASON_NONE)
        return v->given_reason;
    if (rv_error_is(type, rv_error_policy))
        return RV_REASON_POLICY;
    if (rv_error_is(type, rv_error_cancelled))
        return RV_REASON_USER_CANCELLED;
    static const struct {
        const char *type;
        enum rv_reason reason;
    } own[] = {
        {rv_error_expression, RV_REASON_EXPRESSION},
        {rv_error_template, RV_REASON_TEMPLATE},
        {rv_error_join, RV_REASON_JOIN},
    };
    for (size_t i = 0; i < RV_COUNT(own) && v->shared->rules >= RV_RULES_4; i++)
        if (strcmp(type, own[i].type) == 0)
            return own[i].reason;
    bool in_call = (phase == PHASE_MAIN || phase == PHASE_BACKOFF) && !rv_error_is(type, rv_error_processing);
    return v->llm_path && (in_call || v->lacks_field) ? RV_REASON_LLM_FAILED : RV_REASON_TOOL_FAILED;
}

static int restore_output(rv_visit *v, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output.key);

    if (!v->stored)
        return 0;
    v->stored = false;
    return v->had_previous ? rv_envelope_set_output(v->env, key, v->previous, err)
                           : rv_envelope_remove_output(v->env, key, err);
}

/* The handler sees it as `error`. */
static int keep_error(rv_visit *v, int handler, rv_err **err)
{
    rv_buf stage = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *error;
    int rc;

    if (handler < 0 || v->shared->origin || v->shared->rules < RV_RULES_4)
        return 0;
    rv_buf_puts(&stage, v->agent->name);
    if (v->error_stage)
        rv_buf_printf(&stage, "/%s", v->error_stage);
    error = json_object_new_object();
    rc = rv_buf_check(&stage, "the stage of an error", err);
    if (rc == 0)
        rc = RV_SET(error, err, RV_M_STR("stage", rv_buf_str(&stage)), RV_M_TEXT("code", v->error_type),
                    RV_M_TEXT("text", v->error_text), RV_M_INT("attempt", v->attempt));
    rv_buf_fini(&stage);
    if (rc == 0)
        rc = rv_envelope_set_caught(v->env, rv_str_of(rv_pipeline_target_name(v->shared->pipeline, handler)), error,
                                    err);
    json_object_put(error);
    return rc;
}

/* A rule looks at an output that is stored; where none of them can be decided it stays for the handler to see. */
static bool keeps_output(const rv_visit *v, enum visit_phase failed_in)
{
    return failed_in == PHASE_CHAIN || (failed_in == PHASE_ROUTE && v->shared->rules >= RV_RULES_4 &&
                                        rv_error_is(v->error_type, rv_error_expression));
}

/* No error_next leads on from a bound of a run. By the older rules a stage could catch what its own call ran into. */
static bool is_bound_hard(const rv_visit *v)
{
    return v->shared->rules >= RV_RULES_4 || v->is_bound_hard || visit_is_element(v) || v->bound_of != v->shared;
}

int visit_failed(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const char *type = v->error_type;
    enum visit_phase failed_in = v->failed_in;
    rv_str name = rv_str_of(v->agent->name), text = rv_str_of(v->error_text);
    int to = v->agent->routing.error_target;
    bool cancelled = rv_error_is(type, rv_error_cancelled);

    if (v->model.new_calls) { /* they become rows, with the reason why they were not made */
        int named = agent_messages_tell_apart(v, v->model.new_calls, err);
        if (named < 0)
            return named;
    }
    rv_err_free(rv_visit_root(v->shared)->failure);
    rv_visit_root(v->shared)->failure = v->failure;
    v->failure = NULL;
    v->result.end = RV_VISIT_FAILED;
    v->result.outcome = RV_OUTCOME_ERROR;
    v->result.error_text = v->error_text;
    v->result.error_type = type;
    v->result.code = v->code;
    v->result.attempt = v->attempt;
    v->result.reason = v->place.failed ? v->place.failed->reason : reason_of(v, type, failed_in);
    agent_visible_partial(v);
    v->result.error_type = type;
    v->result.error_stage = v->error_stage;
    v->result.code = v->code;
    v->result.attempt = v->attempt;
    v->result.is_given = v->given_reason != RV_REASON_NONE;
    v->result.bound_of = is_bound_hard(v) ? v->bound_of : NULL;
    v->result.next = cancelled || visit_is_element(v) || v->result.bound_of ? RV_TARGET_NONE : to;
    int rc = keeps_output(v, failed_in) ? 0 : restore_output(v, err);
    if (rc == 0)
        rc = rv_envelope_add_error(v->env,
                                   &(const struct rv_error_entry){
                                       name, text, type, v->shared->rules >= RV_RULES_3 ? v->code : RV_FAILURE_NONE},
                                   v->now_us, err);
    if (rc == 0)
        rc = record(v, RV_HISTORY_ERROR, out, err);
    if (rc == 0)
        rc = keep_error(v, v->result.next, err);
    const char *next = v->result.next == RV_TARGET_NONE ? NULL : rv_pipeline_target_name(v->shared->pipeline, to);
    if (rc == 0)
        emit_completed(v, "error", next, out);
    if (rc < 0 || v->result.next == RV_TARGET_NONE)
        return rc;
    if (v->route)
        emit_decision(v, to, RV_ROUTE_ERROR, out);
    if (to == RV_TARGET_CLARIFICATION || to == RV_TARGET_CONFIRMATION) {
        enum rv_interrupt_kind kind =
            to == RV_TARGET_CLARIFICATION ? RV_INTERRUPT_CLARIFICATION : RV_INTERRUPT_CONFIRMATION;
        v->result.end = RV_VISIT_STAYED;
        v->result.next = v->agent->index;
        return ask_after_failure(v, kind, err);
    }
    return v->route ? rv_envelope_set_stage(v->env, rv_str_of(next), err) : 0;
}
