/* Lines of --events that the engine does not write: pieces of answers, and the end of a run that never began. */
#include "coreengine/cli/cli.h"

#define MAX_WHY ((size_t)64 << 10)

void rv_cli_write_delta(const struct rv_pipeline *pipeline, const struct rv_delta_from *from,
                        const struct rv_llm_delta *d, rv_buf *line)
{
    rv_jw w = rv_jw_on(line);

    rv_llm_delta_write(d, &w);
    if (pipeline)
        rv_jw_kv_text(&w, "stage", pipeline->agents[from->stage].name);
    if (from->origin) {
        rv_jw_kv_text(&w, "agent", from->origin->agent);
        rv_jw_kv_int(&w, "depth", from->origin->depth);
        rv_jw_kv_text(&w, "parent_tool_call_id", from->origin->parent_tool_call_id);
    }
    rv_jw_kv_int(&w, "call_id", from->call_id);
    if (from->is_muted && (d->kind == RV_LLM_DELTA_TEXT || d->kind == RV_LLM_DELTA_THINKING))
        rv_jw_kv_bool(&w, "muted", true);
    rv_jw_obj_end(&w);
    rv_buf_putc(line, '\n');
}

bool rv_cli_tell_end(const rv_envelope *env, const rv_err *err)
{
    static const enum rv_emit_kind kinds[] = {RV_EMIT_ERROR, RV_EMIT_DONE};
    rv_buf line = RV_BUF_INIT(4 * MAX_WHY);
    struct rv_clock clock = rv_clock_system();

    for (size_t i = 0; i < RV_COUNT(kinds); i++) {
        rv_broken_end_write(kinds[i], env, clock.now_us(clock.self), err, &line);
        rv_buf_putc(&line, '\n');
    }
    bool ok = rv_cli_out_now(rv_buf_str(&line));
    rv_buf_fini(&line);
    return ok;
}
