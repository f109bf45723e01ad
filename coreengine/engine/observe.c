/* What observers are told: events and, as records, the log; pieces of models' answers, which never reach the core, as
 * it receives the whole answer; and the end of a run that breaks. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/engine/services_internal.h"

#define MAX_WHY ((size_t)64 << 10) /* bytes of an error in a log record: a chain of errors has a few thousand */
/* bytes of the events that tell the end of a run; without memory for them the host learns the end all the same */
#define MAX_LINE    ((size_t)512 << 10)
#define MAX_READ    ((size_t)64 << 10) /* bytes of an event line that is read: a larger one is mostly text */
#define MAX_MEMBERS 8 /* of an event that its log record has: the longest row of the table below has five */
#define MAX_PLACE   (PATH_MAX + 32) /* bytes of FILE:LINE:COLUMN */

/* --- pieces --- */

/* The call is one of a declared agent whose answer is an object: the observer receives the whole object when it fits
 * its schema, and before it no pieces of text or of the call that hands over the output. */
static bool is_structured(const struct call *c)
{
    const struct rv_agent *a = c->pipeline && c->stage >= 0 ? &c->pipeline->agents[c->agent] : NULL;

    return a && a->declared.doc && a->output.schema;
}

static bool is_of_call(const struct rv_llm_delta *d)
{
    return d->kind == RV_LLM_DELTA_TOOL_START || d->kind == RV_LLM_DELTA_TOOL_ARGUMENTS ||
           d->kind == RV_LLM_DELTA_TOOL_END;
}

/* Is it a piece of the call by which the model hands over its output? */
static bool hands_over(struct call *c, const struct rv_llm_delta *d)
{
    if (!is_of_call(d) || d->index >= RV_LLM_MAX_TOOL_CALLS)
        return false;
    uint64_t *word = &c->output_calls[d->index / 64], bit = UINT64_C(1) << (d->index % 64);
    if (d->kind == RV_LLM_DELTA_TOOL_START)
        *word = rv_str_is(d->name, RV_OUTPUT_TOOL) ? *word | bit : *word & ~bit;
    return *word & bit;
}

/* The calls of a reply get the ids that events will have for them: the core names them by the same rule when the reply
 * is complete. A reply that starts again (another attempt) starts from the same ids. */
static int name_start(struct call *c, const struct rv_llm_delta *d, rv_buf *name)
{
    char *id = rv_str_dup(d->id);
    int rc = id ? 0 : RV_E_NOMEM;

    if (c->taken && d->index < c->n_named) {
        json_object_put(c->taken);
        c->taken = NULL;
    }
    if (rc == 0 && !c->taken) {
        c->n_named = 0;
        if (!c->ids)
            rc = (c->taken = json_object_new_object()) ? 0 : RV_E_NOMEM;
        else if (json_object_deep_copy(c->ids, &c->taken, NULL) < 0)
            rc = RV_E_NOMEM;
    }
    if (rc == 0)
        rc = rv_call_write_name(
            c->taken, c->ids_upto, c->origin, id, name,
            RV_CODE_ONLY("it fails without memory only; then the name of the provider stands for it"));
    c->n_named = d->index + 1;
    free(id);
    return rc;
}

/* Without memory for its name a call is told as its provider named it: the run is about to end for the same want. */
static bool tell_watcher(struct call *c, const struct rv_delta_from *from, const struct rv_llm_delta *d,
                         bool is_internal)
{
    const struct rv_exec_opts *o = &c->x->opts;
    struct rv_llm_delta told = *d;
    rv_buf name = RV_BUF_INIT(0);

    if (d->kind == RV_LLM_DELTA_TOOL_START && name_start(c, d, &name) == 0 && name.len > 0)
        told.id = rv_buf_str(&name);
    bool goes_on = is_internal || o->observer.on_delta(o->observer.self, from, &told);
    rv_buf_fini(&name);
    return goes_on;
}

bool engine_delta_tell(struct call *c, const struct rv_llm_delta *d)
{
    const struct rv_exec_opts *o = &c->x->opts;
    const struct rv_delta_from from = {c->stage, c->call_id, c->origin, is_of_call(d) ? c->mutes_calls : c->is_muted};
    bool is_internal = is_structured(c) && (d->kind == RV_LLM_DELTA_TEXT || hands_over(c, d));

    c->told_text = c->told_text || d->kind == RV_LLM_DELTA_TEXT;
    if (d->kind == RV_LLM_DELTA_TEXT && o->journal)
        rv_buf_add_str(&c->heard, d->text);
    if (o->on_piece)
        o->on_piece(o->self, &from, d);
    return !o->observer.on_delta || tell_watcher(c, &from, d, is_internal);
}

/* The output of a structured agent is one piece of text for observers, its whole object; that of a delegated agent is
 * not shown. */
static void tell_output(rv_exec *x, const struct rv_effect *e)
{
    const struct rv_delta_from from = {e->stage, e->call_id, e->origin, false};
    const struct rv_llm_delta d = {.kind = RV_LLM_DELTA_TEXT, .text = {e->request, e->request_len}};

    if (e->request && !e->origin && x->opts.observer.on_delta)
        RV_IGNORE(!x->opts.observer.on_delta(x->opts.observer.self, &from, &d),
                  "there is no stream to hold: everything is here");
}

static rv_str member(json_object *call, const char *key)
{
    json_object *part = NULL;

    json_object_object_get_ex(call, key, &part);
    return rv_json_str(part);
}

static void tell(struct call *c, const struct rv_llm_delta *d)
{
    RV_IGNORE(!engine_delta_tell(c, d), "there is no stream to hold: everything is here");
}

static void tell_calls(struct call *c)
{
    const struct rv_json_opts opts = {.max_bytes = 4 * RV_LLM_MAX_REPLY, .what = "tool calls"};
    json_object *calls = NULL;

    if (rv_json_parse(c->answer.tool_calls, &opts, &calls, RV_CODE_ONLY("the core says what is wrong with them")) < 0)
        return;
    size_t n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
    for (size_t i = 0; i < n; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        rv_str arguments = member(call, "arguments");
        tell(c,
             &(struct rv_llm_delta){
                 .kind = RV_LLM_DELTA_TOOL_START, .index = i, .id = member(call, "id"), .name = member(call, "name")});
        if (arguments.len)
            tell(c, &(struct rv_llm_delta){.kind = RV_LLM_DELTA_TOOL_ARGUMENTS, .index = i, .text = arguments});
        tell(c, &(struct rv_llm_delta){.kind = RV_LLM_DELTA_TOOL_END, .index = i});
    }
    json_object_put(calls);
}

void engine_delta_tell_rest(struct call *c)
{
    rv_str text = rv_buf_str(&c->text);

    if ((!c->x->opts.observer.on_delta && !c->x->opts.on_piece) || c->model ||
        c->failed) /* the wire has passed on all parts itself */
        return;
    if (!c->told_text && text.len && rv_utf8_valid(text, NULL))
        tell(c, &(struct rv_llm_delta){.kind = RV_LLM_DELTA_TEXT, .text = text});
    if (c->answer.tool_calls.len)
        tell_calls(c);
    if (c->answer.has_usage)
        tell(c, &(struct rv_llm_delta){.kind = RV_LLM_DELTA_USAGE, .usage = c->answer.usage});
    if (c->answer.finish >= 0)
        tell(c, &(struct rv_llm_delta){.kind = RV_LLM_DELTA_FINISH, .finish = c->answer.finish});
}

void engine_delta_piece(struct call *c, bool is_thinking, rv_str text)
{
    if (!is_thinking) { /* kept for the case that the call fails */
        if (c->partial.max == 0)
            c->partial = RV_BUF_INIT(RV_LLM_MAX_REPLY);
        rv_buf_add_str(&c->partial, text);
    }
    tell(c, &(struct rv_llm_delta){.kind = is_thinking ? RV_LLM_DELTA_THINKING : RV_LLM_DELTA_TEXT, .text = text});
}

/* --- the end of a run that goes no further, because its journal refused a step or memory is short: observers are told
 * with the same two events that end every run. No journal has them, so they have no number --- */

void rv_engine_write_unkept_end(enum rv_emit_kind kind, const rv_envelope *env, const struct rv_envelope_used *used,
                                int64_t now_us, const rv_err *why, rv_buf *line)
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
    rv_jw_kv_buf(&w, "error", &text);
    rv_buf_fini(&text);
    rv_jw_kv_text(&w, "code", rv_code_text(rv_err_code(why)));
    if (kind == RV_EMIT_DONE && f) {
        rv_jw_kv_int(&w, "stage_visits", used->hops);
        rv_jw_kv_int(&w, "llm_calls", used->llm_calls);
        if (!rv_usage_is_zero(&used->usage)) {
            rv_jw_key(&w, "usage");
            rv_usage_write_json(&used->usage, &w);
        }
    }
    rv_jw_obj_end(&w);
}

void rv_exec_tell_end(rv_exec *x, const rv_err *err)
{
    static const enum rv_emit_kind kinds[] = {RV_EMIT_ERROR, RV_EMIT_DONE};
    const rv_envelope *env = x->run ? rv_run_envelope(x->run) : NULL;
    const struct rv_envelope_used used = env ? rv_run_used(x->run) : (struct rv_envelope_used){0};
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    if (x->is_end_told)
        return;
    RV_LOG(x->log, WARN, "run.stop", RV_F_ERR("error", err));
    x->is_end_told = true;
    if (!x->opts.observer.on_event)
        return;
    for (size_t i = 0; i < RV_COUNT(kinds); i++) {
        const struct rv_effect e = {.kind = RV_EFFECT_EMIT, .emit = kinds[i], .stage = -1};
        rv_buf_clear(&line);
        rv_engine_write_unkept_end(kinds[i], env, &used, x->last_us, err, &line);
        x->opts.observer.on_event(x->opts.observer.self, &e,
                                  line.rc == 0 ? rv_buf_str(&line) : RV_STR_LIT("{\"type\":\"done\"}"));
    }
    rv_buf_fini(&line);
}

/* --- events --- */

/* The record of each kind of event: its name, its level and the members of the event that it repeats. Level info tells
 * the story of a run, debug adds the calls of its stages. The text of an error is told by the stage that failed; the
 * run repeats its code alone. Nothing here is an error record: the caller reports a failed run, once. Outputs, replies
 * and arguments are left out; at level trace the record has the whole line. */
#define RECORD(event, level, ...)                                                                                      \
    {                                                                                                                  \
        event, RV_LOG_##level,                                                                                         \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define RECORD_PIPELINE_STARTED RECORD("run.start", INFO, "mode", "resumed", "session_id")
#define RECORD_STAGE_STARTED    RECORD("stage.start", DEBUG, NULL)
#define RECORD_LLM_CALL_START   RECORD("model.start", DEBUG, "call_id", "role", "model", "attempt")
#define RECORD_LLM_RESULT                                                                                              \
    RECORD("model.finish", DEBUG, "call_id", "status", "finish_reason", "answered_by", "attempts", "latency_ms",       \
           "error_kind", "error")
#define RECORD_TOOL_CALL_START RECORD("tool.start", DEBUG, "call_id", "tool")
#define RECORD_TOOL_RESULT                                                                                             \
    RECORD("tool.finish", DEBUG, "call_id", "tool", "status", "execution_time_ms", "error_type", "error")
#define RECORD_ARTIFACT RECORD("artifact.make", DEBUG, "call_id", "tool", "artifact_id", "artifact_type", "bytes")
#define RECORD_RETRY    RECORD("call.retry", WARN, "attempt", "repair", "wait_ms", "error")
#define RECORD_STAGE_COMPLETED                                                                                         \
    RECORD("stage.finish", INFO, "status", "outcome", "next_stage", "duration_ms", "error_type", "error")
#define RECORD_ROUTING_DECISION  RECORD("route.choose", DEBUG, "to", "reason")
#define RECORD_STAGE_SKIPPED     RECORD("stage.skip", INFO, "reason")
#define RECORD_ITERATION         RECORD("run.iterate", DEBUG, "iteration")
#define RECORD_BATCH             RECORD("batch.start", DEBUG, NULL)
#define RECORD_BRANCH_STARTED    RECORD("branch.start", DEBUG, NULL)
#define RECORD_BRANCH_ENDED      RECORD("branch.finish", INFO, "end", "error_type", "error")
#define RECORD_GROUP_SETTLED     RECORD("group.settle", DEBUG, "from", "join", "satisfied")
#define RECORD_INTERRUPT_PENDING RECORD("run.ask", INFO, "stage", "kind", "id", "expires_at")
#define RECORD_ACTION            RECORD("action.report", DEBUG, NULL)
#define RECORD_AGENT_STARTED     RECORD("agent.start", DEBUG, "depth")
#define RECORD_AGENT_COMPLETED   RECORD("agent.finish", INFO, "depth", "status", "duration_ms", "error")
#define RECORD_CUSTOM            RECORD("event.publish", DEBUG, "capability", "name")
#define RECORD_TOOL_PROGRESS     RECORD("tool.progress", DEBUG, "call_id", "tool", "message")
#define RECORD_WARNING           RECORD("run.warn", WARN, "message")
#define RECORD_ERROR             RECORD("run.fail", DEBUG, "error", "code")
#define RECORD_DONE              RECORD("run.finish", INFO, "status", "terminal_reason", "stage_visits", "llm_calls", "code")

/* A kind without a record of its own does not compile. */
static const struct {
    const char *event;
    enum rv_log_level level;
    const char *members[MAX_MEMBERS];
} records[] = {
#define X(kind, type, meaning) [RV_EMIT_##kind] = RECORD_##kind,
    RV_EMITS(X)
#undef X
};

bool engine_observes(const rv_exec *x)
{
    return x->subscribers || x->opts.observer.on_event || x->opts.observer.on_delta || x->opts.on_effect ||
           rv_log_is_on(x->engine->opts.log, RV_LOG_WARN);
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

/* Where the file has the stage of a record that tells an error. */
static bool place_of(const rv_exec *x, const struct rv_effect *e, json_object *members, char place[MAX_PLACE])
{
    json_object *error = NULL;

    if (e->stage < 0 || !json_object_object_get_ex(members, "error", &error) || !error)
        return false;
    const struct rv_src *src = &x->opts.pipeline->agents[e->stage].places.stage;
    return src->file && src->line > 0 &&
           snprintf(place, MAX_PLACE, "%s:%d:%d", src->file, src->line, src->col) < MAX_PLACE;
}

static void record(const rv_exec *x, const struct rv_effect *e, rv_str line)
{
    rv_log *log = x->log;
    static const char *const whose[MAX_MEMBERS] = {"path", "agent"};
    struct rv_field fields[6 + MAX_MEMBERS];
    char place[MAX_PLACE];
    json_object *members = NULL;
    size_t n = 0;

    if (!rv_log_is_on(log, records[e->emit].level))
        return;
    if (e->stage >= 0) {
        fields[n++] = RV_F_TEXT("stage", x->opts.pipeline->agents[e->stage].name);
        fields[n++] = RV_F_I64("visit", e->visit);
    }
    if (line.len <= MAX_READ &&
        rv_json_parse(line, NULL, &members,
                      RV_CODE_ONLY("the record is written without members; at the level trace it has the line")) == 0) {
        n += copy_members(members, whose, fields + n);
        n += copy_members(members, records[e->emit].members, fields + n);
    }
    if (place_of(x, e, members, place))
        fields[n++] = RV_F_TEXT("place", place);
    if (rv_log_is_on(log, RV_LOG_TRACE))
        fields[n++] = RV_F_STR("line", line);
    rv_log_write(log, records[e->emit].level, records[e->emit].event, fields, n);
    json_object_put(members);
}

void engine_observe(rv_exec *x, const struct rv_effect *e)
{
    rv_str line = rv_effect_text(&x->effects, e);

    record(x, e, line);
    x->is_end_told = e->emit == RV_EMIT_DONE;
    tell_output(x, e);
    if (x->opts.observer.on_event)
        x->opts.observer.on_event(x->opts.observer.self, e, line);
    if (x->subscribers)
        engine_subscribers_tell(x, e->emit, line);
}

void engine_observe_unkept(rv_exec *x, enum rv_emit_kind kind, rv_str line)
{
    const struct rv_effect e = {.kind = RV_EFFECT_EMIT, .emit = kind, .stage = -1};

    record(x, &e, line);
    if (x->opts.observer.on_event)
        x->opts.observer.on_event(x->opts.observer.self, &e, line);
    if (x->subscribers)
        engine_subscribers_tell(x, e.emit, line);
}

void engine_observe_bounds(rv_exec *x)
{
    struct rv_bound_use bounds[RV_RUN_BOUNDS];
    size_t n = rv_log_is_on(x->log, RV_LOG_WARN) && x->run ? rv_run_collect_bounds(x->run, bounds) : 0;

    for (size_t i = 0; i < n; i++) {
        const struct rv_bound_use *b = &bounds[i];
        if (x->near & 1u << i || b->limit <= 0 || b->used < b->limit - b->limit / 5)
            continue;
        x->near |= 1u << i;
        RV_LOG(x->log, WARN, "bound.near", RV_F_TEXT("bound", b->bound), RV_F_I64("used", b->used),
               RV_F_I64("limit", b->limit));
    }
}
