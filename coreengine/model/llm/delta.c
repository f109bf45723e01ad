/* Pieces of an answer as observable events. */
#include "coreengine/model/llm/llm.h"

static const char *const texts[RV_N_LLM_DELTAS] = {
#define X(name, text, meaning) [RV_LLM_DELTA_##name] = text,
    RV_LLM_DELTAS(X)
#undef X
};

const char *rv_llm_delta_text(enum rv_llm_delta_kind kind)
{
    return (int)kind >= 0 && kind < RV_N_LLM_DELTAS ? texts[kind] : NULL;
}

void rv_llm_delta_write(const struct rv_llm_delta *d, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "delta");
    rv_jw_kv_text(w, "kind", rv_llm_delta_text(d->kind));
    switch (d->kind) {
    case RV_LLM_DELTA_TEXT:
    case RV_LLM_DELTA_THINKING:
        rv_jw_kv_str(w, "text", d->text);
        break;
    case RV_LLM_DELTA_TOOL_START:
        rv_jw_kv_int(w, "index", (int64_t)d->index);
        rv_jw_kv_str(w, "id", d->id);
        rv_jw_kv_str(w, "name", d->name);
        break;
    case RV_LLM_DELTA_TOOL_ARGUMENTS:
        rv_jw_kv_int(w, "index", (int64_t)d->index);
        rv_jw_kv_str(w, "text", d->text);
        break;
    case RV_LLM_DELTA_TOOL_END:
        rv_jw_kv_int(w, "index", (int64_t)d->index);
        break;
    case RV_LLM_DELTA_USAGE:
        rv_jw_key(w, "usage");
        rv_usage_write_json(&d->usage, w);
        break;
    case RV_LLM_DELTA_FINISH:
        rv_jw_kv_text(w, "finish_reason", rv_finish_reason_text((enum rv_finish_reason)d->finish));
        break;
    case RV_N_LLM_DELTAS:
        break;
    }
}
