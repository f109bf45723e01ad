/* The state dict: its rows, which writing, loading and patching share, and the writer; and the result dict. */
#include <stddef.h>
#include <string.h>

#include "envelope/envelope_internal.h"

#define FIELD(member) offsetof(struct rv_envelope_fields, member)

/* The order here is the order in the text. */
static const struct rv_row rows[] = {
    {"envelope_id", RV_ROW_TEXT, RV_TEXT_ENVELOPE_ID, RV_PATCH_SAME},
    {"request_id", RV_ROW_TEXT, RV_TEXT_REQUEST_ID, RV_PATCH_SAME},
    {"user_id", RV_ROW_TEXT, RV_TEXT_USER_ID, RV_PATCH_SAME},
    {"session_id", RV_ROW_TEXT, RV_TEXT_SESSION_ID, RV_PATCH_SAME},
    {"raw_input", RV_ROW_TEXT, RV_TEXT_RAW_INPUT, RV_PATCH_SET},
    {"received_at", RV_ROW_TIME, FIELD(received_at_us), RV_PATCH_SET},
    {"outputs", RV_ROW_OUTPUTS, RV_MAP_OUTPUTS, RV_PATCH_MERGE},
    {"current_stage", RV_ROW_STAGE, 0, RV_PATCH_SET},
    {"stage_order", RV_ROW_TEXTS, RV_LIST_STAGE_ORDER, RV_PATCH_SET},
    {"iteration", RV_ROW_COUNT, FIELD(iteration), RV_PATCH_SAME},
    {"max_iterations", RV_ROW_COUNT, FIELD(max_iterations), RV_PATCH_SET},
    {"active_stages", RV_ROW_SET, RV_MAP_ACTIVE, RV_PATCH_SET},
    {"completed_stage_set", RV_ROW_SET, RV_MAP_COMPLETED, RV_PATCH_SET},
    {"failed_stages", RV_ROW_TEXT_MAP, RV_MAP_FAILED, RV_PATCH_SET},
    {"parallel_mode", RV_ROW_BOOL, FIELD(parallel_mode), RV_PATCH_SET},
    {"llm_call_count", RV_ROW_COUNT, FIELD(llm_call_count), RV_PATCH_SAME},
    {"max_llm_calls", RV_ROW_COUNT, FIELD(max_llm_calls), RV_PATCH_SET},
    {"agent_hop_count", RV_ROW_COUNT, FIELD(agent_hop_count), RV_PATCH_SAME},
    {"max_agent_hops", RV_ROW_COUNT, FIELD(max_agent_hops), RV_PATCH_SET},
    {"terminal_reason", RV_ROW_REASON, 0, RV_PATCH_SET},
    {"terminated", RV_ROW_BOOL, FIELD(terminated), RV_PATCH_SET},
    {"termination_reason", RV_ROW_TEXT_NULL, RV_TEXT_TERMINATION, RV_PATCH_SET},
    {"interrupt_pending", RV_ROW_BOOL, FIELD(interrupt_pending), RV_PATCH_SET},
    {"interrupt", RV_ROW_INTERRUPT, 0, RV_PATCH_SET},
    {"completed_stages", RV_ROW_OBJECTS, RV_LIST_COMPLETED_STAGES, RV_PATCH_SET},
    {"current_stage_number", RV_ROW_COUNT, FIELD(current_stage_number), RV_PATCH_SET},
    {"max_stages", RV_ROW_COUNT, FIELD(max_stages), RV_PATCH_SET},
    {"all_goals", RV_ROW_TEXTS, RV_LIST_ALL_GOALS, RV_PATCH_SET},
    {"remaining_goals", RV_ROW_TEXTS, RV_LIST_REMAINING_GOALS, RV_PATCH_SET},
    {"goal_completion_status", RV_ROW_TEXT_MAP, RV_MAP_GOALS, RV_PATCH_SET},
    {"prior_plans", RV_ROW_OBJECTS, RV_LIST_PRIOR_PLANS, RV_PATCH_SET},
    {"loop_feedback", RV_ROW_TEXTS, RV_LIST_FEEDBACK, RV_PATCH_SET},
    {"processing_history", RV_ROW_RECORDS, 0, RV_PATCH_SAME},
    {"errors", RV_ROW_ERRORS, RV_LIST_ERRORS, RV_PATCH_SET},
    {"created_at", RV_ROW_TIME, FIELD(created_at_us), RV_PATCH_SET},
    {"completed_at", RV_ROW_TIME_NULL, FIELD(completed_at_us), RV_PATCH_SET},
    {"metadata", RV_ROW_VALUES, RV_MAP_METADATA, RV_PATCH_MERGE},
    {"edge_traversals", RV_ROW_EDGES, RV_MAP_EDGES, RV_PATCH_SAME},
    {"status", RV_ROW_STATUS, 0, RV_PATCH_SET},
    {"state", RV_ROW_VALUES, RV_MAP_STATE, RV_PATCH_MERGE},
    {"stage_visits", RV_ROW_COUNTS, RV_MAP_VISITS, RV_PATCH_SAME},
    {"suspended", RV_ROW_WORK, RV_MAP_SUSPENDED, RV_PATCH_SET},
    {"replans", RV_ROW_COUNTS, RV_MAP_REPLANS, RV_PATCH_SAME},
    {"rejections", RV_ROW_COUNTS, RV_MAP_REJECTIONS, RV_PATCH_SAME},
    {"caught", RV_ROW_WORK, RV_MAP_CAUGHT, RV_PATCH_SET},
    {"usage", RV_ROW_USAGE, 0, RV_PATCH_SAME},
    {"branches", RV_ROW_BRANCHES, 0, RV_PATCH_SAME},
    {"interrupts", RV_ROW_INTERRUPTS, 0, RV_PATCH_SAME},
    {"withdrawn", RV_ROW_WITHDRAWN, 0, RV_PATCH_SAME},
};
_Static_assert(RV_COUNT(rows) < RV_STATE_MAX_KEYS, "a bit per row, and state_version");

size_t rv_envelope_collect_state_keys(const char *keys[RV_STATE_MAX_KEYS])
{
    size_t n = 0;

    keys[n++] = "state_version";
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        keys[n++] = rows[i].key;
    return n;
}

const struct rv_row *env_state_rows(size_t *n)
{
    *n = RV_COUNT(rows);
    return rows;
}

static void write_map(const rv_envelope *env, const struct rv_row *row, rv_jw *w)
{
    enum rv_map_id id = (enum rv_map_id)row->at;
    struct rv_cursor c = env_cursor_on(env, id);
    const struct rv_entry *e;

    rv_jw_obj(w);
    while ((e = env_cursor_next(&c)) != NULL) {
        rv_jw_key_str(w, (rv_str){e->name->text, e->name->len});
        if (row->kind == RV_ROW_SET)
            rv_jw_bool(w, true);
        else if (row->kind == RV_ROW_COUNTS)
            rv_jw_int(w, env_count(env, id, e->name, NULL));
        else
            rv_jw_value(w, e->value);
    }
    rv_jw_obj_end(w);
}

static void write_edges(const rv_envelope *env, rv_jw *w)
{
    struct rv_cursor c = env_cursor_on(env, RV_MAP_EDGES);
    const struct rv_entry *e;

    rv_jw_arr(w);
    while ((e = env_cursor_next(&c)) != NULL) {
        rv_jw_obj(w);
        rv_jw_kv_text(w, "from", e->name->text);
        rv_jw_kv_text(w, "to", e->to->text);
        rv_jw_kv_int(w, "count", env_count(env, RV_MAP_EDGES, e->name, e->to));
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_errors_of(const rv_envelope *env, rv_jw *w)
{
    json_object *list = env->list[RV_LIST_ERRORS];

    if (env->parent)
        write_errors_of(env->parent, w);
    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        rv_jw_value(w, json_object_array_get_idx(list, i));
}

/* through a fork */
static void errors_write(const rv_envelope *env, rv_jw *w)
{
    rv_jw_arr(w);
    write_errors_of(env, w);
    rv_jw_arr_end(w);
}

/* Those of kept branches as well, in the order in which they will be joined. */
static void write_all_errors(const rv_envelope *env, rv_jw *w)
{
    rv_jw_arr(w);
    write_errors_of(env, w);
    for (size_t i = 1; i < env_n_kept(env); i++) {
        json_object *list = rv_json_get_arr(env_kept_at(env, i), "errors");
        for (size_t k = 0; list && k < json_object_array_length(list); k++)
            rv_jw_value(w, json_object_array_get_idx(list, k));
    }
    rv_jw_arr_end(w);
}

static void write_records(const rv_envelope *env, rv_jw *w)
{
    size_t n = rv_envelope_n_records(env);

    rv_jw_arr(w);
    for (size_t i = 0; i < n; i++) {
        const struct rv_record *r = env_record(env, i);

        rv_jw_obj(w);
        rv_jw_kv_text(w, "agent", r->agent->text);
        rv_jw_kv_int(w, "stage_order", r->stage_order);
        rv_jw_key(w, "started_at");
        env_time_write(r->started_at_us, w);
        if (r->completed_at_us != 0) {
            rv_jw_key(w, "completed_at");
            env_time_write(r->completed_at_us, w);
        }
        rv_jw_kv_int(w, "duration_ms", r->duration_ms);
        rv_jw_kv_text(w, "status", rv_history_status_text(r->status));
        if (r->error.ptr)
            rv_jw_kv_str(w, "error", env_text_str(&r->error));
        rv_jw_kv_int(w, "llm_calls", r->llm_calls);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static const void *field(const rv_envelope *env, const struct rv_row *row)
{
    return (const char *)&env->f + row->at;
}

static int64_t int_field(const rv_envelope *env, const struct rv_row *row)
{
    int64_t value;

    memcpy(&value, field(env, row), sizeof value);
    return value;
}

static bool bool_field(const rv_envelope *env, const struct rv_row *row)
{
    bool value;

    memcpy(&value, field(env, row), sizeof value);
    return value;
}

static void write_time_or_null(int64_t us, rv_jw *w)
{
    if (us == 0)
        rv_jw_null(w);
    else
        env_time_write(us, w);
}

static void write_open_interrupt(const rv_envelope *env, rv_jw *w)
{
    const struct rv_stored_interrupt *it = env_interrupt(env);

    if (it->exists)
        env_interrupt_write(it, (rv_str){NULL, 0}, w);
    else
        rv_jw_null(w);
}

/* A list that is kept as JSON. */
static json_object *list_of(const rv_envelope *env, const struct rv_row *row)
{
    if (row->kind == RV_ROW_BRANCHES)
        return env->branches;
    return row->kind == RV_ROW_WITHDRAWN ? env->withdrawn : env_list(env, (enum rv_list_id)row->at);
}

static void write_row(const rv_envelope *env, const struct rv_row *row, rv_jw *w)
{
    switch (row->kind) {
    case RV_ROW_TEXT:
    case RV_ROW_TEXT_NULL:
        env_text_write(&env->text[row->at], w);
        break;
    case RV_ROW_COUNT:
        rv_jw_int(w, int_field(env, row));
        break;
    case RV_ROW_TIME:
        env_time_write(int_field(env, row), w);
        break;
    case RV_ROW_TIME_NULL:
        write_time_or_null(int_field(env, row), w);
        break;
    case RV_ROW_BOOL:
        rv_jw_bool(w, bool_field(env, row));
        break;
    case RV_ROW_REASON:
        rv_jw_text(w, rv_reason_text(env->f.terminal_reason));
        break;
    case RV_ROW_STATUS:
        rv_jw_text(w, rv_run_status_text(env->f.status));
        break;
    case RV_ROW_STAGE:
        rv_jw_text(w, env->f.current_stage);
        break;
    case RV_ROW_OUTPUTS:
    case RV_ROW_VALUES:
    case RV_ROW_WORK:
    case RV_ROW_SET:
    case RV_ROW_TEXT_MAP:
    case RV_ROW_COUNTS:
        write_map(env, row, w);
        break;
    case RV_ROW_EDGES:
        write_edges(env, w);
        break;
    case RV_ROW_TEXTS:
    case RV_ROW_OBJECTS:
    case RV_ROW_BRANCHES:
    case RV_ROW_WITHDRAWN:
        rv_jw_value(w, list_of(env, row));
        break;
    case RV_ROW_ERRORS:
        errors_write(env, w);
        break;
    case RV_ROW_RECORDS:
        write_records(env, w);
        break;
    case RV_ROW_INTERRUPT:
        write_open_interrupt(env, w);
        break;
    case RV_ROW_USAGE:
        rv_usage_write_json(&env->f.usage, w);
        break;
    case RV_ROW_INTERRUPTS:
        env_interrupts_write(env, w);
        break;
    }
}

/* What need not be written to see that it says nothing; the rest is looked at as text. */
static bool is_blank(const rv_envelope *env, const struct rv_row *row)
{
    switch (row->kind) {
    case RV_ROW_TEXT:
    case RV_ROW_TEXT_NULL:
        return !env->text[row->at].ptr;
    case RV_ROW_COUNT:
    case RV_ROW_TIME_NULL:
        return int_field(env, row) == 0;
    case RV_ROW_BOOL:
        return !bool_field(env, row);
    case RV_ROW_OUTPUTS:
    case RV_ROW_VALUES:
    case RV_ROW_WORK:
    case RV_ROW_SET:
    case RV_ROW_TEXT_MAP:
    case RV_ROW_COUNTS:
        return env_size(env, (enum rv_map_id)row->at) == 0;
    case RV_ROW_EDGES:
        return env_size(env, RV_MAP_EDGES) == 0;
    case RV_ROW_TEXTS:
    case RV_ROW_OBJECTS:
        return json_object_array_length(env_list(env, (enum rv_list_id)row->at)) == 0;
    case RV_ROW_RECORDS:
        return rv_envelope_n_records(env) == 0;
    case RV_ROW_INTERRUPT:
        return !env_interrupt(env)->exists;
    case RV_ROW_USAGE:
        return rv_usage_is_zero(&env->f.usage);
    case RV_ROW_INTERRUPTS: /* other rows have them */
        return true;
    case RV_ROW_TIME:
    case RV_ROW_REASON:
    case RV_ROW_STATUS:
    case RV_ROW_STAGE:
    case RV_ROW_ERRORS:
    case RV_ROW_BRANCHES:
    case RV_ROW_WITHDRAWN:
        break;
    }
    return false;
}

/* What an absent key means, too, and always will. */
static bool says_nothing(rv_str value)
{
    return rv_str_is(value, "{}") || rv_str_is(value, "[]") || rv_str_is(value, "null") || rv_str_is(value, "false") ||
           rv_str_is(value, "0");
}

void rv_envelope_write_lean_state(const rv_envelope *env, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "state_version", RV_STATE_VERSION);
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        size_t before = b->len;
        if (is_blank(env, &rows[i]))
            continue;
        rv_jw_key(&w, rows[i].key);
        size_t value_at = b->len;
        write_row(env, &rows[i], &w);
        if (b->rc == 0 && says_nothing((rv_str){b->ptr + value_at, b->len - value_at}))
            rv_buf_truncate(b, before);
    }
    rv_jw_obj_end(&w);
}

/* Rows that younger engines added: only there when they say something. */
static bool is_left_out(const rv_envelope *env, const struct rv_row *row)
{
    if (row->kind == RV_ROW_USAGE)
        return rv_usage_is_zero(&env->f.usage);
    if (row->kind == RV_ROW_BRANCHES)
        return !env->branches;
    if (row->kind == RV_ROW_INTERRUPTS)
        return !env->branches || !rv_envelope_has_interrupt(env);
    if (row->kind == RV_ROW_WITHDRAWN)
        return !env->withdrawn;
    bool counts_loops = row->kind == RV_ROW_COUNTS && row->at != RV_MAP_VISITS;
    bool is_caught = row->kind == RV_ROW_WORK && row->at == RV_MAP_CAUGHT;
    return (counts_loops || is_caught) && env_size(env, (enum rv_map_id)row->at) == 0;
}

void rv_envelope_write_state(const rv_envelope *env, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "state_version", RV_STATE_VERSION);
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        if (is_left_out(env, &rows[i]))
            continue;
        rv_jw_key(&w, rows[i].key);
        write_row(env, &rows[i], &w);
    }
    rv_jw_obj_end(&w);
}

/* --- What a caller gets at the end: the final response and the result dict --- */

static bool is_pending(const rv_envelope *env, enum rv_interrupt_kind kind)
{
    return rv_envelope_has_interrupt(env) && env_interrupt(env)->kind == kind;
}

bool rv_envelope_was_denied(const rv_envelope *env)
{
    const struct rv_stored_interrupt *it = env_interrupt(env);
    const char *decision = NULL;
    bool approved = true;

    if (!env->f.terminated || env->f.terminal_reason != RV_REASON_USER_CANCELLED || env->f.interrupt_pending ||
        !it->exists || !it->response)
        return false;
    if (rv_interrupt_is_ask(it->data)) /* a no is a choice among others */
        return false;
    if (it->kind == RV_INTERRUPT_CONFIRMATION)
        return rv_json_get_bool(it->response, "approved", &approved) && !approved;
    return it->kind == RV_INTERRUPT_AGENT_REVIEW && rv_json_get_text(it->response, "decision", &decision) &&
           strcmp(decision, "reject") == 0;
}

bool rv_envelope_find_final_response(const rv_envelope *env, const struct rv_response_place *place, rv_str *out)
{
    const struct rv_stored_interrupt *it = env_interrupt(env);
    const char *key = place && place->output_key ? place->output_key : "integration";
    const char *field = place && place->field ? place->field : "final_response";
    json_object *output;
    json_object *value = NULL;

    if (is_pending(env, RV_INTERRUPT_CLARIFICATION) && it->question.len > 0) {
        *out = env_text_str(&it->question);
        return true;
    }
    if ((is_pending(env, RV_INTERRUPT_CONFIRMATION) || is_pending(env, RV_INTERRUPT_AGENT_REVIEW)) &&
        it->message.len > 0) {
        *out = env_text_str(&it->message);
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
    const struct rv_stored_interrupt *it = env_interrupt(env);

    if (!it->exists)
        return;
    rv_jw_key(w, "interrupt");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_interrupt_kind_text(it->kind));
    rv_jw_key(w, "id");
    env_text_write(&it->id, w);
    rv_jw_key(w, "question");
    env_text_write(&it->question, w);
    rv_jw_key(w, "message");
    env_text_write(&it->message, w);
    rv_jw_key(w, "created_at");
    env_time_write(it->created_at_us, w);
    rv_jw_obj_end(w);
    if (it->kind == RV_INTERRUPT_CLARIFICATION) {
        rv_jw_kv_bool(w, "clarification_needed", env->f.interrupt_pending);
        rv_jw_key(w, "clarification_question");
        env_text_write(&it->question, w);
    } else if (it->kind == RV_INTERRUPT_CONFIRMATION) {
        rv_jw_kv_bool(w, "confirmation_needed", env->f.interrupt_pending);
        rv_jw_key(w, "confirmation_message");
        env_text_write(&it->message, w);
        rv_jw_key(w, "confirmation_id");
        env_text_write(&it->id, w);
    }
}

static void write_outputs(const rv_envelope *env, rv_jw *w)
{
    struct rv_cursor c = env_cursor_on(env, RV_MAP_OUTPUTS);
    const struct rv_entry *e;

    if (rv_envelope_n_outputs(env) == 0)
        return;
    rv_jw_key(w, "outputs");
    rv_jw_obj(w);
    while ((e = env_cursor_next(&c)) != NULL)
        rv_jw_kv_value(w, e->name->text, e->value);
    rv_jw_obj_end(w);
}

void rv_envelope_write_result(const rv_envelope *env, const struct rv_response_place *place, rv_buf *b)
{
    const struct rv_envelope_fields *f = &env->f;
    struct rv_envelope_used used = rv_envelope_used(env);
    rv_str response = {NULL, 0};
    rv_jw w = rv_jw_on(b);

    rv_jw_obj(&w);
    rv_jw_kv_str(&w, "envelope_id", env_text_str(&env->text[RV_TEXT_ENVELOPE_ID]));
    rv_jw_kv_str(&w, "request_id", env_text_str(&env->text[RV_TEXT_REQUEST_ID]));
    rv_jw_kv_str(&w, "user_id", env_text_str(&env->text[RV_TEXT_USER_ID]));
    rv_jw_kv_str(&w, "session_id", env_text_str(&env->text[RV_TEXT_SESSION_ID]));
    rv_jw_kv_text(&w, "current_stage", f->current_stage);
    rv_jw_kv_bool(&w, "terminated", f->terminated);
    rv_jw_key(&w, "termination_reason");
    env_text_write(&env->text[RV_TEXT_TERMINATION], &w);
    rv_jw_kv_text(&w, "terminal_reason", rv_reason_text(f->terminal_reason));
    rv_jw_kv_text(&w, "reason_class", rv_reason_class_text(rv_reason_class_for(f->terminal_reason)));
    if (rv_envelope_failure(env, NULL) != RV_FAILURE_NONE)
        rv_jw_kv_text(&w, "code", rv_failure_text(rv_envelope_failure(env, NULL)));
    rv_jw_kv_text(&w, "status", rv_run_status_text(f->status));
    if (!rv_envelope_find_final_response(env, place, &response))
        response = (rv_str){NULL, 0};
    rv_jw_key(&w, "response");
    if (response.ptr)
        rv_jw_str(&w, response);
    else
        rv_jw_null(&w);
    rv_jw_kv_bool(&w, "interrupt_pending", f->interrupt_pending);
    rv_jw_kv_int(&w, "iteration", used.iterations);
    rv_jw_kv_int(&w, "llm_call_count", used.llm_calls);
    rv_jw_kv_int(&w, "processing_time_ms", rv_envelope_processing_ms(env));
    if (!rv_usage_is_zero(&used.usage)) {
        rv_jw_key(&w, "usage");
        rv_usage_write_json(&used.usage, &w);
    }
    rv_jw_key(&w, "errors");
    write_all_errors(env, &w);
    write_outputs(env, &w);
    write_interrupt(env, &w);
    if (rv_envelope_has_interrupt(env)) {
        rv_jw_key(&w, "interrupts");
        env_interrupts_write(env, &w);
    }
    rv_jw_obj_end(&w);
}
