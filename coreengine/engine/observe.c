/* Observable events on their way out: to the caller's callbacks and, as records, to the log. */
#include "coreengine/engine/engine_internal.h"

#define MAX_READ    ((size_t)64 << 10) /* bytes of an event line whose members are copied into a record */
#define MAX_MEMBERS 6

/* The record of each kind of event: its name, its level and the members of the event that it repeats. Level info tells
 * the story of a run, debug adds the calls of its stages. Nothing here is an error record: the caller reports a failed
 * run, once. Outputs, replies and arguments are left out; at level trace the record has the whole line. */
static const struct {
    const char *event;
    enum rv_log_level level;
    const char *members[MAX_MEMBERS];
} records[RV_N_EMITS] = {
    [RV_EMIT_PIPELINE_STARTED] = {"run.start", RV_LOG_INFO, {"mode", "resumed"}},
    [RV_EMIT_STAGE_STARTED] = {"stage.start", RV_LOG_DEBUG, {NULL}},
    [RV_EMIT_LLM_CALL_START] = {"model.start", RV_LOG_DEBUG, {"call_id", "role", "model", "attempt"}},
    [RV_EMIT_LLM_RESULT] = {"model.finish",
                            RV_LOG_DEBUG,
                            {"call_id", "status", "finish_reason", "latency_ms", "error_kind", "error"}},
    [RV_EMIT_TOOL_CALL_START] = {"tool.start", RV_LOG_DEBUG, {"call_id", "tool"}},
    [RV_EMIT_TOOL_RESULT] = {"tool.finish",
                             RV_LOG_DEBUG,
                             {"call_id", "tool", "status", "execution_time_ms", "error_type", "error"}},
    [RV_EMIT_RETRY] = {"call.retry", RV_LOG_WARN, {"attempt", "repair", "wait_ms", "error"}},
    [RV_EMIT_STAGE_COMPLETED] = {"stage.finish",
                                 RV_LOG_INFO,
                                 {"status", "outcome", "next_stage", "duration_ms", "error_type", "error"}},
    [RV_EMIT_ROUTING_DECISION] = {"route.choose", RV_LOG_DEBUG, {"to", "reason"}},
    [RV_EMIT_STAGE_SKIPPED] = {"stage.skip", RV_LOG_INFO, {"reason"}},
    [RV_EMIT_ITERATION] = {"run.iterate", RV_LOG_DEBUG, {"iteration"}},
    [RV_EMIT_BATCH] = {"batch.start", RV_LOG_DEBUG, {NULL}},
    [RV_EMIT_INTERRUPT_PENDING] = {"run.ask", RV_LOG_INFO, {"kind", "id"}},
    [RV_EMIT_ACTION] = {"action.report", RV_LOG_DEBUG, {NULL}},
    [RV_EMIT_AGENT_STARTED] = {"agent.start", RV_LOG_DEBUG, {"agent", "depth"}},
    [RV_EMIT_AGENT_COMPLETED] = {"agent.finish", RV_LOG_DEBUG, {"agent", "status", "duration_ms", "error"}},
    [RV_EMIT_WARNING] = {"run.warn", RV_LOG_WARN, {"message"}},
    [RV_EMIT_ERROR] = {"run.fail", RV_LOG_DEBUG, {"error"}}, /* run.finish repeats the error */
    [RV_EMIT_DONE] = {"run.finish", RV_LOG_INFO, {"status", "terminal_reason", "stage_visits", "llm_calls", "error"}},
};

bool rv_observes(const rv_exec *x)
{
    return x->opts.observer.on_event || x->opts.observer.on_delta || x->opts.on_effect ||
           rv_log_on(x->engine->opts.log, RV_LOG_WARN);
}

/* Texts, numbers and booleans; a member that is absent or null has no field. */
static size_t copy_members(json_object *of, const char *const *names, struct rv_field *fields)
{
    size_t n = 0;

    for (size_t i = 0; i < MAX_MEMBERS && names[i]; i++) {
        json_object *value = NULL;
        if (!json_object_object_get_ex(of, names[i], &value))
            continue;
        if (json_object_is_type(value, json_type_string))
            fields[n++] = RV_F_STR(names[i], rv_json_str(value));
        else if (json_object_is_type(value, json_type_int))
            fields[n++] = RV_F_I64(names[i], json_object_get_int64(value));
        else if (json_object_is_type(value, json_type_boolean))
            fields[n++] = RV_F_BOOL(names[i], json_object_get_boolean(value));
    }
    return n;
}

static void record(const rv_exec *x, const struct rv_effect *e, rv_str line)
{
    rv_log *log = x->engine->opts.log;
    struct rv_field fields[5 + MAX_MEMBERS];
    json_object *members = NULL;
    size_t n = 0;

    if (!rv_log_on(log, records[e->emit].level))
        return;
    fields[n++] = RV_F_TEXT("run_id", rv_envelope_fields(rv_run_envelope(x->run))->envelope_id);
    fields[n++] = RV_F_TEXT("pipeline", x->opts.pipeline->name);
    if (e->stage >= 0) {
        fields[n++] = RV_F_TEXT("stage", x->opts.pipeline->agents[e->stage].name);
        fields[n++] = RV_F_I64("visit", e->visit);
    }
    if (line.len <= MAX_READ && rv_json_parse(line, NULL, &members, NULL) == 0)
        n += copy_members(members, records[e->emit].members, fields + n);
    if (rv_log_on(log, RV_LOG_TRACE))
        fields[n++] = RV_F_STR("line", line);
    rv_log_write(log, records[e->emit].level, records[e->emit].event, fields, n);
    json_object_put(members);
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
