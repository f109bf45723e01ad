/* Pieces of answers as lines of --events. */
#include "coreengine/cli/cli.h"

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
