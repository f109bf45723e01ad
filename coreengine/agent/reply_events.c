/* Events of a model's reply: that it came and what it took, that it was cut off, that it is asked for again. */
#include "coreengine/agent/reply_internal.h"

#define MAX_MUTED ((size_t)64 << 10) /* bytes of muted text in its event */

static void write_calls(json_object *calls, rv_jw *w)
{
    rv_jw_key(w, "tool_calls");
    rv_jw_arr(w);
    for (size_t i = 0; i < json_object_array_length(calls); i++) {
        json_object *name = NULL;
        json_object_object_get_ex(json_object_array_get_idx(calls, i), "name", &name);
        rv_jw_str(w, rv_json_str(name));
    }
    rv_jw_arr_end(w);
}

/* Words that people are not shown: this is where they can be read. */
static void write_muted(rv_str text, rv_jw *w)
{
    rv_jw_kv_bool(w, "muted", true);
    if (rv_str_trim(text).len > 0 && rv_utf8_valid(text, NULL))
        rv_jw_kv_str(w, "muted_text", rv_utf8_cut(text, MAX_MUTED));
}

static void write_answer(const struct rv_llm_answer *a, bool failed, rv_jw *w)
{
    if (!failed && a->finish >= 0)
        rv_jw_kv_text(w, "finish_reason", rv_finish_reason_text((enum rv_finish_reason)a->finish));
    if (a->role)
        rv_jw_kv_text(w, "answered_by", a->role);
    if (a->has_usage) {
        rv_jw_kv_int(w, "input_tokens", a->usage.input_tokens);
        rv_jw_kv_int(w, "output_tokens", a->usage.output_tokens);
        if (a->usage.cached_tokens)
            rv_jw_kv_int(w, "cached_tokens", a->usage.cached_tokens);
        if (a->usage.reasoning_tokens)
            rv_jw_kv_int(w, "reasoning_tokens", a->usage.reasoning_tokens);
    }
    if (a->latency_us > 0)
        rv_jw_kv_int(w, "latency_ms", a->latency_us / 1000);
    if (a->first_token_us > 0)
        rv_jw_kv_int(w, "first_token_ms", a->first_token_us / 1000);
    if (a->attempts > 1)
        rv_jw_kv_int(w, "attempts", a->attempts);
}

void rv_reply_emit(rv_visit *v, const struct rv_event *ev, json_object *calls, int64_t spent_before,
                   struct rv_effects *out)
{
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, RV_EMIT_LLM_RESULT, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_int(&w, "call_id", ev->call_id);
    rv_jw_kv_text(&w, "status", ev->failed ? "error" : "success");
    if (ev->failed) {
        rv_jw_kv_text(&w, "error_type", ev->error_type ? ev->error_type : "LLMError");
        if (ev->llm.error_kind >= 0)
            rv_jw_kv_text(&w, "error_kind", rv_llm_error_text((enum rv_llm_error)ev->llm.error_kind));
        rv_visit_write_code(v, rv_event_failure(ev), &w);
        rv_jw_kv_str(&w, "error", ev->error);
        if (ev->reply.len && rv_utf8_valid(ev->reply, NULL))
            rv_visit_preview(&w, "partial", ev->reply);
    } else {
        rv_jw_kv_int(&w, "bytes", (int64_t)ev->reply.len);
        if (rv_utf8_valid(ev->reply, NULL))
            rv_visit_preview(&w, "preview", ev->reply);
        if (rv_visible_is_muted(v))
            write_muted(ev->reply, &w);
        if (calls && json_object_array_length(calls) > 0)
            write_calls(calls, &w);
    }
    write_answer(&ev->llm, ev->failed, &w);
    if (v->model.usage.cost_micro_usd > spent_before)
        rv_jw_kv_int(&w, "cost_micro_usd", v->model.usage.cost_micro_usd - spent_before);
    rv_emit_end(out, &w);
}

static void emit_warning(rv_visit *v, const char *text, struct rv_effects *out)
{
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, RV_EMIT_WARNING, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_text(&w, "message", text);
    rv_emit_end(out, &w);
}

void rv_reply_warn_of_cut(rv_visit *v, const struct rv_event *ev, struct rv_effects *out)
{
    if (ev->llm.finish == RV_FINISH_LENGTH)
        emit_warning(v, "the reply was cut off at its longest: raise max_tokens", out);
}

void rv_reply_emit_repair(rv_visit *v, const char *why, struct rv_effects *out)
{
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, RV_EMIT_RETRY, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_int(&w, "repair", v->model.repairs);
    rv_jw_kv_int(&w, "wait_ms", 0);
    rv_jw_kv_text(&w, "error", why);
    rv_emit_end(out, &w);
}
