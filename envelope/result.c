/* What a caller gets at the end: the final response and the result dict. */
#include "envelope/envelope_internal.h"

#include <string.h>

static bool is_pending(const rv_envelope *env, enum rv_interrupt_kind kind)
{
    return rv_envelope_has_interrupt(env) && rv_env_interrupt(env)->kind == kind;
}

bool rv_envelope_was_denied(const rv_envelope *env)
{
    const struct rv_stored_interrupt *it = rv_env_interrupt(env);
    const char *decision = NULL;
    bool approved = true;

    if (!env->f.terminated || env->f.terminal_reason != RV_REASON_USER_CANCELLED || env->f.interrupt_pending ||
        !it->exists || !it->response)
        return false;
    if (it->kind == RV_INTERRUPT_CONFIRMATION)
        return rv_json_get_bool(it->response, "approved", &approved) && !approved;
    return it->kind == RV_INTERRUPT_AGENT_REVIEW && rv_json_get_text(it->response, "decision", &decision) &&
           strcmp(decision, "reject") == 0;
}

bool rv_envelope_final_response(const rv_envelope *env, const struct rv_response_place *place, rv_str *out)
{
    const struct rv_stored_interrupt *it = rv_env_interrupt(env);
    const char *key = place && place->output_key ? place->output_key : "integration";
    const char *field = place && place->field ? place->field : "final_response";
    json_object *output;
    json_object *value = NULL;

    if (is_pending(env, RV_INTERRUPT_CLARIFICATION) && it->question.len > 0) {
        *out = rv_text_str(&it->question);
        return true;
    }
    if ((is_pending(env, RV_INTERRUPT_CONFIRMATION) || is_pending(env, RV_INTERRUPT_AGENT_REVIEW)) &&
        it->message.len > 0) {
        *out = rv_text_str(&it->message);
        return true;
    }
    if (rv_envelope_was_denied(env))
        return false;
    output = rv_envelope_output(env, rv_str_of(key), NULL);
    if (!output || !json_object_object_get_ex(output, field, &value) || !json_object_is_type(value, json_type_string))
        return false;
    *out = rv_json_str(value);
    return true;
}

static void write_interrupt(const rv_envelope *env, rv_jw *w)
{
    const struct rv_stored_interrupt *it = rv_env_interrupt(env);

    if (!it->exists)
        return;
    rv_jw_key(w, "interrupt");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_interrupt_kind_text(it->kind));
    rv_jw_key(w, "id");
    rv_text_write(&it->id, w);
    rv_jw_key(w, "question");
    rv_text_write(&it->question, w);
    rv_jw_key(w, "message");
    rv_text_write(&it->message, w);
    rv_jw_key(w, "created_at");
    rv_time_write(it->created_at_us, w);
    rv_jw_obj_end(w);
    if (it->kind == RV_INTERRUPT_CLARIFICATION) {
        rv_jw_kv_bool(w, "clarification_needed", env->f.interrupt_pending);
        rv_jw_key(w, "clarification_question");
        rv_text_write(&it->question, w);
    } else if (it->kind == RV_INTERRUPT_CONFIRMATION) {
        rv_jw_kv_bool(w, "confirmation_needed", env->f.interrupt_pending);
        rv_jw_key(w, "confirmation_message");
        rv_text_write(&it->message, w);
        rv_jw_key(w, "confirmation_id");
        rv_text_write(&it->id, w);
    }
}

static void write_outputs(const rv_envelope *env, rv_jw *w)
{
    struct rv_cursor c = rv_cursor_on(env, RV_MAP_OUTPUTS);
    const struct rv_entry *e;

    if (rv_envelope_n_outputs(env) == 0)
        return;
    rv_jw_key(w, "outputs");
    rv_jw_obj(w);
    while ((e = rv_cursor_next(&c)) != NULL)
        rv_jw_kv_value(w, e->name->text, e->value);
    rv_jw_obj_end(w);
}

void rv_envelope_write_result(const rv_envelope *env, const struct rv_response_place *place, rv_buf *b)
{
    const struct rv_envelope_fields *f = &env->f;
    rv_str response = {NULL, 0};
    rv_jw w = rv_jw_on(b);

    rv_jw_obj(&w);
    rv_jw_kv_str(&w, "envelope_id", rv_text_str(&env->text[RV_TEXT_ENVELOPE_ID]));
    rv_jw_kv_str(&w, "request_id", rv_text_str(&env->text[RV_TEXT_REQUEST_ID]));
    rv_jw_kv_str(&w, "user_id", rv_text_str(&env->text[RV_TEXT_USER_ID]));
    rv_jw_kv_str(&w, "session_id", rv_text_str(&env->text[RV_TEXT_SESSION_ID]));
    rv_jw_kv_text(&w, "current_stage", f->current_stage);
    rv_jw_kv_bool(&w, "terminated", f->terminated);
    rv_jw_key(&w, "termination_reason");
    rv_text_write(&env->text[RV_TEXT_TERMINATION], &w);
    rv_jw_kv_text(&w, "terminal_reason", rv_reason_text(f->terminal_reason));
    rv_jw_kv_text(&w, "reason_class", rv_reason_class_text(rv_reason_class_for(f->terminal_reason)));
    if (rv_envelope_failure(env) != RV_FAILURE_NONE)
        rv_jw_kv_text(&w, "code", rv_failure_text(rv_envelope_failure(env)));
    rv_jw_kv_text(&w, "status", rv_run_status_text(f->status));
    if (!rv_envelope_final_response(env, place, &response))
        response = (rv_str){NULL, 0};
    rv_jw_key(&w, "response");
    if (response.ptr)
        rv_jw_str(&w, response);
    else
        rv_jw_null(&w);
    rv_jw_kv_bool(&w, "interrupt_pending", f->interrupt_pending);
    rv_jw_kv_int(&w, "iteration", f->iteration);
    rv_jw_kv_int(&w, "llm_call_count", f->llm_call_count);
    rv_jw_kv_int(&w, "processing_time_ms", rv_envelope_processing_ms(env));
    if (!rv_usage_is_zero(&env->f.usage)) {
        rv_jw_key(&w, "usage");
        rv_usage_write_json(&env->f.usage, &w);
    }
    rv_jw_key(&w, "errors");
    rv_errors_write(env, &w);
    write_outputs(env, &w);
    write_interrupt(env, &w);
    rv_jw_obj_end(&w);
}
