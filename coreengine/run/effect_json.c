/* Effects as JSON: what a replay is compared by. */
#include "coreengine/run/run.h"

static const char *const kind_texts[] = {
    [RV_EFFECT_CALL_LLM] = "call_llm",   [RV_EFFECT_CALL_TOOL] = "call_tool",
    [RV_EFFECT_CALL_HOOK] = "call_hook", [RV_EFFECT_CANCEL_CALL] = "cancel_call",
    [RV_EFFECT_ARM_TIMER] = "arm_timer", [RV_EFFECT_EMIT] = "emit",
    [RV_EFFECT_SAVE] = "save",           [RV_EFFECT_KEEP] = "keep",
    [RV_EFFECT_FINISH] = "finish",
};

static void write_call(const struct rv_effect *e, rv_jw *w)
{
    if (e->kind == RV_EFFECT_CALL_HOOK)
        rv_jw_kv_text(w, "entry", rv_name_kind_text(e->entry));
    rv_jw_kv_text(w, "name", e->name);
    rv_jw_kv_int(w, "visit", e->visit);
    rv_jw_kv_int(w, "attempt", e->attempt);
    rv_jw_kv_int(w, "deadline_us", e->deadline_us);
    if (e->kind == RV_EFFECT_CALL_TOOL) {
        rv_jw_kv_text(w, "effect_class", rv_effect_class_text((enum rv_effect_class)e->effect_class));
        rv_jw_kv_text(w, "key", e->key);
    }
    rv_jw_key(w, "request");
    rv_jw_raw(w, (rv_str){e->request, e->request_len});
}

void rv_effect_write_json(const struct rv_effects *all, const struct rv_effect *e, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "effect", kind_texts[e->kind]);
    if (e->call_id)
        rv_jw_kv_int(w, "call_id", e->call_id);
    if (e->stage >= 0)
        rv_jw_kv_int(w, "stage", e->stage);
    switch (e->kind) {
    case RV_EFFECT_CALL_LLM:
    case RV_EFFECT_CALL_TOOL:
    case RV_EFFECT_CALL_HOOK:
        write_call(e, w);
        break;
    case RV_EFFECT_ARM_TIMER:
        rv_jw_kv_int(w, "at_us", e->at_us);
        break;
    case RV_EFFECT_EMIT:
        rv_jw_key(w, "line");
        rv_jw_raw(w, rv_effect_text(all, e));
        break;
    case RV_EFFECT_SAVE:
    case RV_EFFECT_KEEP:
        rv_jw_key(w, e->kind == RV_EFFECT_SAVE ? "state" : "turn");
        rv_jw_raw(w, (rv_str){e->request, e->request_len});
        break;
    case RV_EFFECT_FINISH:
        rv_jw_kv_text(w, "status", rv_run_status_text(e->status));
        break;
    case RV_EFFECT_CANCEL_CALL:
        break;
    }
    rv_jw_obj_end(w);
}
