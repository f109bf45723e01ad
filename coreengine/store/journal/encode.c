/* Records as text: what a journal is written in. decode.c reads it back; docs/reference/journal.md describes it. */
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

static const char *const kind_texts[RV_N_RECORD_KINDS] = {[RV_RECORD_NONE] = "unknown",
#define X(name, text, meaning) [RV_RECORD_##name] = text,
                                                          RV_RECORDS(X)
#undef X
};

const char *rv_record_kind_text(int kind)
{
    return kind > RV_RECORD_NONE && kind < RV_N_RECORD_KINDS ? kind_texts[kind] : kind_texts[RV_RECORD_NONE];
}

/* A clock may be wrong: what is written can be read. */
static int64_t a_time(int64_t us)
{
    return us < 0 ? 0 : us > RV_JOURNAL_MAX_US ? RV_JOURNAL_MAX_US : us;
}

void rv_record_put_begin(const struct rv_journal_begin *b, const struct rv_pipeline *p, int64_t now_us, rv_buf *body)
{
    bool any = false;
    rv_jw w = rv_jw_on(body);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "v", RV_JOURNAL_VERSION);
    rv_jw_kv_text(&w, "engine", RV_VERSION);
    rv_jw_kv_int(&w, "rules", b->rules == RV_RULES_NEWEST ? RV_RULES_LAST : b->rules);
    rv_jw_kv_int(&w, "now_us", a_time(now_us));
    if (b->mode != RV_UNSET)
        rv_jw_kv_text(&w, "mode", rv_run_mode_text((enum rv_run_mode)b->mode));
    if (b->continues)
        rv_jw_kv_bool(&w, "continues", true);
    if (b->use_mocks)
        rv_jw_kv_bool(&w, "mock", true);
    if (b->has_script)
        rv_jw_kv_bool(&w, "script", true);
    if (b->answers_from_script)
        rv_jw_kv_bool(&w, "answers", true);
    if (b->max_parallel > 0)
        rv_jw_kv_int(&w, "max_parallel", b->max_parallel < INT64_MAX ? (int64_t)b->max_parallel : INT64_MAX);
    for (size_t i = 0; b->scripted && i < p->n_agents; i++) {
        if (!b->scripted[i])
            continue;
        if (!any) {
            rv_jw_key(&w, "scripted");
            rv_jw_arr(&w);
        }
        any = true;
        rv_jw_text(&w, p->agents[i].name);
    }
    if (any)
        rv_jw_arr_end(&w);
    if (b->script_at)
        rv_jw_kv_value(&w, "script_at", b->script_at);
    if (b->conversation) {
        rv_jw_key(&w, "conversation");
        rv_conversation_write_json(b->conversation, &w);
    }
    rv_jw_obj_end(&w);
}

/* --- events --- */

/* A store keeps text. Bytes that are none (of a capability that failed oddly) must not stop the run. */
static void put_hex(rv_str bytes, rv_buf *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.len; i++) {
        rv_buf_putc(out, digits[(unsigned char)bytes.ptr[i] >> 4]);
        rv_buf_putc(out, digits[bytes.ptr[i] & 15]);
    }
}

rv_str rv_record_put_event(const struct rv_event *ev, rv_buf *body, rv_buf *value)
{
    struct rv_event written = *ev;
    rv_jw w = rv_jw_on(body);

    written.now_us = a_time(ev->now_us);
    rv_jw_obj(&w);
    rv_str text = rv_event_write_members(&written, &w);
    if (ev->kind == RV_EVENT_ANSWER) {
        rv_jw v = rv_jw_on(value);
        rv_response_write_json(&ev->response, &v);
        text = rv_buf_str(value);
    } else if (ev->kind != RV_EVENT_CANCEL && text.len && !rv_utf8_valid(text, NULL)) {
        rv_jw_kv_bool(&w, "hex", true);
        put_hex(text, value);
        text = rv_buf_str(value);
    }
    rv_jw_obj_end(&w);
    return text.len ? text : (rv_str){NULL, 0};
}

/* --- calls --- */

bool rv_effect_is_call(const struct rv_effect *e)
{
    return e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL || e->kind == RV_EFFECT_CALL_HOOK;
}

const char *rv_effect_do_text(const struct rv_effect *e)
{
    if (e->kind == RV_EFFECT_CALL_LLM)
        return "llm";
    if (e->kind == RV_EFFECT_CALL_TOOL)
        return "tool";
    switch (e->entry) {
    case RV_NAME_POLICY:
        return "policy";
    case RV_NAME_MOCK:
        return "mock";
    case RV_NAME_ROUTE:
        return "route";
    case RV_NAME_HOOK:
    case RV_NAME_TOOL:
    case RV_NAME_PROMPT:
    case RV_NAME_PROVIDER:
    case RV_NAME_PROBE:
    case RV_N_NAME_KINDS:
        break;
    }
    return "hook";
}

rv_str rv_stage_label(const rv_envelope *env, int stage)
{
    json_object *order = rv_envelope_stage_order(env);

    if (stage < 0 || !order || (size_t)stage >= json_object_array_length(order))
        return (rv_str){NULL, 0};
    return rv_json_str(json_object_array_get_idx(order, (size_t)stage));
}

void rv_record_put_started(const struct rv_effect *e, const rv_envelope *env, rv_buf *body)
{
    rv_str stage = rv_stage_label(env, e->stage);
    rv_jw w = rv_jw_on(body);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "call_id", e->call_id);
    rv_jw_kv_text(&w, "do", rv_effect_do_text(e));
    rv_jw_kv_text(&w, "name", e->name);
    if (stage.ptr)
        rv_jw_kv_str(&w, "stage", stage);
    rv_jw_kv_int(&w, "visit", e->visit);
    rv_jw_kv_int(&w, "attempt", e->attempt);
    if (e->origin) {
        rv_jw_kv_text(&w, "agent", e->origin->agent);
        rv_jw_kv_text(&w, "parent_tool_call_id", e->origin->parent_tool_call_id);
    }
    if (e->kind == RV_EFFECT_CALL_TOOL) {
        rv_jw_kv_text(&w, "class", rv_effect_class_text((enum rv_effect_class)e->effect_class));
    }
    if (e->key)
        rv_jw_kv_text(&w, "key", e->key);
    rv_jw_obj_end(&w);
}

void rv_record_put_owner(const char *owner, int64_t fence, int64_t now_us, rv_buf *body)
{
    rv_jw w = rv_jw_on(body);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "owner", owner);
    rv_jw_kv_int(&w, "fence", fence);
    rv_jw_kv_int(&w, "now_us", a_time(now_us));
    rv_jw_obj_end(&w);
}
