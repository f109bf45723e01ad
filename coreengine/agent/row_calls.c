/* The calls of a turn as rows: finished calls with their results, calls of the current reply with the results that have
 * come so far, calls that were not made with the reason, and between them the rows of agents that were asked. */
#include "coreengine/agent/rows_internal.h"
#include "coreengine/agent/tools_internal.h"

#define FINAL_DONE   "Final result processed."
#define FINAL_MISSED "Tool not executed - a final result was already processed."
#define LEAN_MAX     ((size_t)4 << 10) /* of arguments and results of a large turn: their beginning tells enough */
#define LEAN_NOTE    "{\"note\":\"too long to be kept with its turn\"}"

/* The arguments as an object, parsed when the reply was read, or here if they were kept with a stage that waited or are
 * not as tools take them: for text that is not JSON {"raw": text}, for anything else {}. */
static int write_arguments(const struct rows *r, json_object *call, rv_jw *w, rv_err **err)
{
    const struct rv_json_opts opts = {
        .allow_duplicates = true, .refuse_big_ints = visit_refuses_big_ints(r->v), .what = "arguments"};
    json_object *value = NULL;
    rv_str text = agent_call_text(call, "arguments");
    rv_err *cause = NULL;

    json_object_object_get_ex(r->v->model.arguments, json_object_get_string(json_object_object_get(call, "id")),
                              &value);
    bool is_parsed = json_object_get(value) || rv_str_trim(text).len == 0;
    int rc = is_parsed ? 0 : rv_json_parse(text, &opts, &value, &cause);
    bool no_memory = rv_err_is(cause, RV_E_NOMEM);

    rv_err_free(cause);
    rv_jw_key(w, "arguments");
    if (r->is_lean && text.len > LEAN_MAX) {
        rv_jw_raw(w, RV_STR_LIT(LEAN_NOTE));
        rc = 0;
    } else if (rc == 0 && json_object_is_type(value, json_type_object)) {
        rc = agent_row_arguments(w, value, err);
    } else {
        rv_jw_obj(w);
        if (rc < 0)
            rv_jw_kv_str(w, "raw", text);
        rv_jw_obj_end(w);
        rc = 0;
    }
    json_object_put(value);
    return no_memory ? RV_FAIL(err, RV_E_NOMEM, "write the rows of a turn") : rc;
}

static int call_row(struct rows *r, json_object *call, rv_err **err)
{
    agent_row_begin(r, RV_MESSAGE_TOOL_CALL, r->v->now_us);
    rv_jw *w = agent_row_call(r, agent_call_text(call, "name"), agent_call_text(call, "id"));
    int rc = write_arguments(r, call, w, err);
    rv_jw_obj_end(w);
    agent_row_end(r);
    return rc;
}

void agent_row_response(struct rows *r, rv_str name, rv_str id, rv_str content, bool is_error)
{
    agent_row_begin(r, RV_MESSAGE_TOOL_RESPONSE, r->v->now_us);
    agent_row_content(r, r->is_lean && content.len > LEAN_MAX ? RV_STR_LIT(LEAN_NOTE) : content);
    rv_jw *w = agent_row_call(r, name, id);
    rv_jw_obj_end(w);
    if (is_error) {
        w = agent_row_json(r, &r->metadata);
        rv_jw_kv_bool(w, "is_error", true);
        rv_jw_obj_end(w);
    }
    agent_row_end(r);
}

static void response_row(struct rows *r, json_object *call, rv_str content, bool is_error)
{
    agent_row_response(r, agent_call_text(call, "name"), agent_call_text(call, "id"), content, is_error);
}

static json_object *tool_message(json_object *messages, size_t after, json_object *call)
{
    size_t n = json_object_array_length(messages);
    rv_str id = agent_call_text(call, "id");

    for (size_t i = after; i < n; i++) {
        json_object *m = json_object_array_get_idx(messages, i);
        if (!rv_str_is(agent_call_text(m, "role"), "tool"))
            break;
        if (rv_str_eq(agent_call_text(m, "tool_call_id"), id))
            return m;
    }
    return NULL;
}

/* What the step of the reply under way has come to so far; NULL: nothing. */
static json_object *entry_so_far(const rv_visit *v, size_t index)
{
    const struct tool_progress *t = &v->tools;

    if (!v->model.acting)
        return NULL;
    if (index < json_object_array_length(t->results))
        return json_object_array_get_idx(t->results, index);
    return t->pending && index >= t->at && index - t->at < t->n_pending ? t->pending[index - t->at].entry : NULL;
}

/* Tells whether that call of the current reply may have been made, whatever its outcome. */
static bool is_begun(const rv_visit *v, size_t index)
{
    const struct tool_progress *t = &v->tools;

    if (!v->model.acting)
        return true;
    return index < t->at + t->n_pending || (index == t->at && t->call_started_us > 0);
}

/* The call will not be made: the turn failed before it, and the row says why. */
static int refused_response(struct rows *r, json_object *call, rv_err **err)
{
    rv_buf content = RV_BUF_INIT(RV_MESSAGES_RESULT_MAX);

    agent_messages_write_error(r->v->error_type, r->v->error_text, &content);
    int rc = rv_buf_check(&content, "tool result", err);
    if (rc == 0)
        response_row(r, call, rv_buf_str(&content), true);
    rv_buf_fini(&content);
    return rc;
}

static int response_so_far(struct rows *r, json_object *call, size_t index, rv_err **err)
{
    json_object *entry = entry_so_far(r->v, index);
    rv_buf content = RV_BUF_INIT(RV_MESSAGES_RESULT_MAX);
    bool is_error = false;

    if (!entry)
        return r->status == RV_TURN_FAILED && r->v->error_text && !is_begun(r->v, index)
                   ? refused_response(r, call, err)
                   : 0;
    agent_messages_write_result(entry, &content, &is_error);
    int rc = rv_buf_check(&content, "tool result", err);
    if (rc == 0)
        response_row(r, call, rv_buf_str(&content), is_error);
    rv_buf_fini(&content);
    return rc;
}

/* The rows of the agent that the call asked. */
static void child_rows(struct rows *r, json_object *call)
{
    rv_str id = agent_call_text(call, "id");

    for (const struct child_rows *c = r->v->model.child_rows; c && !r->is_lean; c = c->next)
        if (rv_str_is(id, c->call_id))
            rv_turn_add_all(r->turn, c->rows);
}

/* What the person said along with the results of client tools. */
static bool is_said(json_object *message)
{
    bool is = false;

    return rv_json_get_bool(message, RV_MESSAGE_IS_NEW, &is) && is;
}

static int turn_rows(struct rows *r, size_t at, rv_err **err)
{
    json_object *messages = r->v->model.messages;
    json_object *calls = rv_json_get_arr(json_object_array_get_idx(messages, at), "tool_calls");
    size_t n = calls ? json_object_array_length(calls) : 0;
    int rc = 0;

    if (is_said(json_object_array_get_idx(messages, at))) {
        agent_row_begin(r, RV_MESSAGE_USER, r->v->now_us);
        agent_row_content(r, agent_call_text(json_object_array_get_idx(messages, at), "content"));
        agent_row_end(r);
        return 0;
    }
    agent_row_before_calls(r, at);
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(calls, i), *message = tool_message(messages, at + 1, call);
        bool is_error = false;
        rc = call_row(r, call, err);
        child_rows(r, call);
        if (rc == 0 && message) {
            is_error = rv_json_bool_or(message, "is_error", false);
            response_row(r, call, agent_call_text(message, "content"), is_error);
        } else if (rc == 0) {
            rc = response_so_far(r, call, agent_step_of_call(r->v, call, i), err);
        }
    }
    return rc;
}

int agent_rows_calls(struct rows *r, rv_err **err)
{
    const struct model_progress *t = &r->v->model;
    size_t n = t->messages ? json_object_array_length(t->messages) : 0;
    size_t n_final = t->final_calls ? json_object_array_length(t->final_calls) : 0;
    size_t n_new = t->new_calls ? json_object_array_length(t->new_calls) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = turn_rows(r, i, err);
    for (size_t i = 0; i < n_new && rc == 0; i++) {
        rc = call_row(r, json_object_array_get_idx(t->new_calls, i), err);
        if (rc == 0 && r->v->error_text)
            rc = refused_response(r, json_object_array_get_idx(t->new_calls, i), err);
    }
    for (size_t i = 0; i < n_final && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(t->final_calls, i);
        bool is_output = rv_str_is(agent_call_text(call, "name"), RV_OUTPUT_TOOL);
        rc = call_row(r, call, err);
        if (rc == 0)
            response_row(r, call, is_output ? RV_STR_LIT(FINAL_DONE) : RV_STR_LIT(FINAL_MISSED), false);
    }
    return rc;
}
