/* Observable events on their way out: to the caller's callbacks and, as records, to the log. */
#include "coreengine/shell/shell_internal.h"

/* Events of stages help to find a fault, those of runs help to operate them. This file logs no error record: the caller
 * reports a failed run, once. */
static enum rv_log_level level_of(enum rv_emit_kind kind)
{
    switch (kind) {
    case RV_EMIT_PIPELINE_STARTED:
    case RV_EMIT_INTERRUPT_PENDING:
    case RV_EMIT_ERROR:
    case RV_EMIT_DONE:
        return RV_LOG_INFO;
    case RV_EMIT_WARNING:
    case RV_EMIT_RETRY:
        return RV_LOG_WARN;
    case RV_EMIT_STAGE_STARTED:
    case RV_EMIT_LLM_CALL_START:
    case RV_EMIT_LLM_RESULT:
    case RV_EMIT_TOOL_CALL_START:
    case RV_EMIT_TOOL_RESULT:
    case RV_EMIT_ACTION:
    case RV_EMIT_AGENT_STARTED:
    case RV_EMIT_AGENT_COMPLETED:
    case RV_EMIT_STAGE_COMPLETED:
    case RV_EMIT_ROUTING_DECISION:
    case RV_EMIT_STAGE_SKIPPED:
    case RV_EMIT_ITERATION:
    case RV_EMIT_BATCH:
    case RV_N_EMITS:
        break;
    }
    return RV_LOG_DEBUG;
}

bool rv_observes(const rv_exec *x)
{
    return x->opts.observer.on_event || x->opts.observer.on_delta || x->opts.on_effect ||
           rv_log_on(x->engine->opts.log, RV_LOG_WARN);
}

/* A record says what happened where, without outputs and replies; at trace level it contains the whole line.
 */
static void record(const rv_exec *x, const struct rv_effect *e, rv_str line)
{
    rv_log *log = x->engine->opts.log;
    enum rv_log_level level = level_of(e->emit);
    struct rv_field fields[5];
    size_t n = 0;

    if (!rv_log_on(log, level))
        return;
    fields[n++] = RV_F_TEXT("run_id", rv_envelope_fields(rv_run_envelope(x->run))->envelope_id);
    fields[n++] = RV_F_TEXT("pipeline", x->opts.pipeline->name);
    if (e->stage >= 0) {
        fields[n++] = RV_F_TEXT("stage", x->opts.pipeline->agents[e->stage].name);
        fields[n++] = RV_F_I64("visit", e->visit);
    }
    if (rv_log_on(log, RV_LOG_TRACE))
        fields[n++] = RV_F_STR("line", line);
    rv_log_write(log, level, rv_emit_text(e->emit), fields, n);
}

void rv_observe(rv_exec *x, const struct rv_effect *e)
{
    rv_str line = rv_effect_text(&x->effects, e);

    record(x, e, line);
    x->is_end_told = e->emit == RV_EMIT_DONE;
    rv_delta_tell_output(x, e);
    if (x->opts.observer.on_event)
        x->opts.observer.on_event(x->opts.observer.self, e, line);
}
