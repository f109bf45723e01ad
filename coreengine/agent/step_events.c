/* Events of tool calls: that one begins, and what it came to. */
#include <string.h>

#include "coreengine/agent/agent_internal.h"

#define MAX_RESULT ((size_t)16 << 10) /* bytes of a result that stand in its event */

/* A long one is named: the journal has it, in the record of the call's answer. */
static void write_result(json_object *result, int64_t call_id, rv_jw *w, struct rv_effects *out)
{
    rv_buf text = RV_BUF_INIT(RV_EFFECTS_MAX_TEXT);
    char sha256[RV_HASH_MAX];

    rv_json_write(result, &text);
    if (text.rc < 0) {
        out->rc = text.rc == RV_E_NOMEM ? RV_E_NOMEM : out->rc;
    } else if (text.len <= MAX_RESULT) {
        rv_jw_key(w, "result");
        rv_jw_raw(w, rv_buf_str(&text));
    } else {
        rv_visit_preview(w, "result_preview", rv_buf_str(&text));
        rv_hash_of(rv_buf_str(&text), sha256);
        rv_jw_key(w, "result_ref");
        rv_jw_obj(w);
        if (call_id)
            rv_jw_kv_int(w, "call_id", call_id);
        rv_jw_kv_int(w, "bytes", (int64_t)text.len);
        rv_jw_kv_text(w, "sha256", sha256);
        rv_jw_obj_end(w);
    }
    rv_buf_fini(&text);
}

static void write_arguments(json_object *arguments, rv_jw *w)
{
    rv_jw_key(w, "arguments");
    if (arguments) {
        rv_jw_value(w, arguments);
    } else {
        rv_jw_obj(w);
        rv_jw_obj_end(w);
    }
}

void rv_step_write_values(const rv_visit *v, json_object *arguments, json_object *result, int64_t call_id, rv_jw *w,
                          struct rv_effects *out)
{
    if (v->shared->rules < RV_RULES_2)
        return;
    write_arguments(arguments, w);
    if (result)
        write_result(result, call_id, w, out);
}

void rv_step_tell_start(rv_visit *v, size_t index, int64_t attempt, int64_t call_id, rv_str sent,
                        struct rv_effects *out)
{
    char scratch[48];
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, RV_EMIT_TOOL_CALL_START, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_int(&w, "call_id", call_id);
    rv_jw_kv_str(&w, "tool", rv_step_tool(v, index));
    rv_jw_kv_str(&w, "step_id", rv_step_id(v, index, scratch, sizeof scratch));
    rv_jw_kv_int(&w, "step_number", (int64_t)index + 1);
    rv_jw_kv_int(&w, "total_steps", (int64_t)json_object_array_length(v->tools.steps));
    rv_jw_kv_int(&w, "attempt", attempt);
    rv_visit_preview(&w, "params_preview", sent);
    rv_step_write_values(v, rv_step_parameters(v, index), NULL, 0, &w, out);
    rv_emit_end(out, &w);
}

void rv_step_tell(rv_visit *v, size_t index, json_object *entry, int64_t call_id, struct rv_effects *out)
{
    const char *status = NULL, *text = NULL;
    char scratch[48];
    enum rv_failure code;
    json_object *data = NULL;
    int64_t ms = 0;
    rv_jw w;

    if (!rv_json_get_text(entry, "status", &status) || strcmp(status, "success") != 0)
        v->tools.all_succeeded = false;
    RV_IGNORE(!rv_json_get_int(entry, "execution_time_ms", &ms), "it has one");
    v->tools.total_ms += ms;
    if (!rv_emit_begin(v->shared, out, RV_EMIT_TOOL_RESULT, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    if (call_id)
        rv_jw_kv_int(&w, "call_id", call_id);
    rv_jw_kv_str(&w, "tool", rv_step_tool(v, index));
    rv_jw_kv_str(&w, "step_id", rv_step_id(v, index, scratch, sizeof scratch));
    rv_jw_kv_text(&w, "status", status);
    rv_jw_kv_int(&w, "execution_time_ms", ms);
    json_object *error = rv_json_get_obj(entry, "error");
    if (error && rv_json_get_text(error, "type", &text)) {
        rv_jw_kv_text(&w, "error_type", text);
        if (!v->event_code || rv_failure_of(rv_str_of(v->event_code), &code, NULL) < 0)
            code = rv_failure_of_tool(text);
        rv_visit_write_code(v, code, &w);
    }
    v->event_code = NULL; /* the next step is another call */
    if (error && rv_json_get_text(error, "message", &text))
        rv_visit_preview(&w, "error", rv_str_of(text));
    json_object_object_get_ex(entry, "data", &data);
    rv_step_write_values(v, rv_step_parameters(v, index), data, call_id, &w, out);
    rv_emit_end(out, &w);
}
