/* The end of a run that goes no further, because its journal refused a step or memory is short: who watches is told
 * with the same two events that end every run. No journal has them, so they have no number. */
#include "coreengine/engine/engine_internal.h"

#define MAX_WHY  ((size_t)64 << 10)
#define MAX_LINE ((size_t)512 << 10)

void rv_broken_end_write(enum rv_emit_kind kind, const rv_envelope *env, int64_t now_us, const rv_err *why,
                         rv_buf *line)
{
    const struct rv_envelope_fields *f = env ? rv_envelope_fields(env) : NULL;
    rv_buf text = RV_BUF_INIT(MAX_WHY);
    rv_jw w = rv_jw_on(line);
    char time[RV_TIME_MAX];

    rv_time_format(now_us, time);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "type", rv_emit_text(kind));
    rv_jw_kv_text(&w, "time", time);
    rv_jw_kv_bool(&w, "kept", false);
    rv_jw_kv_text(&w, "stage", kind == RV_EMIT_DONE ? "__end__" : f ? f->current_stage : NULL);
    if (kind == RV_EMIT_DONE) {
        rv_jw_kv_text(&w, "status", rv_run_status_text(RV_RUN_FAILED));
        rv_jw_kv_bool(&w, "terminated", f && f->terminated);
        rv_jw_kv_text(&w, "terminal_reason", NULL);
        rv_jw_kv_text(&w, "termination_reason", NULL);
    }
    rv_err_write_chain(why, &text);
    rv_jw_kv_text(&w, "error", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_jw_kv_text(&w, "code", rv_code_text(rv_err_code(why)));
    if (kind == RV_EMIT_DONE && f) {
        rv_jw_kv_int(&w, "stage_visits", f->agent_hop_count);
        rv_jw_kv_int(&w, "llm_calls", f->llm_call_count);
        if (!rv_usage_is_zero(&f->usage)) {
            rv_jw_key(&w, "usage");
            rv_usage_write_json(&f->usage, &w);
        }
    }
    rv_jw_obj_end(&w);
}

void rv_exec_tell_end(rv_exec *x, const rv_err *err)
{
    static const enum rv_emit_kind kinds[] = {RV_EMIT_ERROR, RV_EMIT_DONE};
    const rv_envelope *env = rv_exec_envelope(x);
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    if (x->is_end_told)
        return;
    RV_LOG(x->engine->opts.log, WARN, "run.stop", RV_F_TEXT("run_id", env ? rv_envelope_fields(env)->envelope_id : ""),
           RV_F_ERR("error", err));
    x->is_end_told = true;
    if (!x->opts.observer.on_event)
        return;
    for (size_t i = 0; i < RV_COUNT(kinds); i++) {
        const struct rv_effect e = {.kind = RV_EFFECT_EMIT, .emit = kinds[i], .stage = -1};
        rv_buf_clear(&line);
        rv_broken_end_write(kinds[i], env, x->last_us, err, &line);
        x->opts.observer.on_event(x->opts.observer.self, &e,
                                  line.rc == 0 ? rv_buf_str(&line) : RV_STR_LIT("{\"type\":\"done\"}"));
    }
    rv_buf_fini(&line);
}
