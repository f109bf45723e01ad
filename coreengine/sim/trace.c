/* What happens in a simulated run, in plain words, a line each; which faults come up, and which invariant breaks. */
#include "coreengine/sim/sim_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *sim_stage_name(const struct sim_seed *s, int stage)
{
    return stage >= 0 && (size_t)stage < s->subject->pipeline->n_agents ? s->subject->pipeline->agents[stage].name
                                                                        : "(none)";
}

static void put_who(const struct sim_seed *s, const struct rv_effect *e, const struct rv_origin *o, rv_buf *b)
{
    if (!o) {
        rv_buf_puts(b, sim_stage_name(s, e->stage));
        return;
    }
    put_who(s, e, o->parent, b);
    rv_buf_printf(b, " > %s", o->agent);
}

char *sim_who(const struct sim_seed *s, const struct rv_effect *e)
{
    rv_buf b = RV_BUF_INIT(SIM_MAX_TEXT);

    put_who(s, e, e->origin, &b);
    char *who = b.rc == 0 ? rv_buf_steal(&b, NULL) : NULL;
    rv_buf_fini(&b);
    return who;
}

/* One line, cut, without control characters. */
static void put_short(rv_buf *b, rv_str text)
{
    rv_str head = rv_utf8_cut(text, SIM_SHOWN);

    for (size_t i = 0; i < head.len; i++) {
        size_t control = rv_utf8_control(head.ptr + i, head.len - i);
        bool broken = head.ptr[i] & 0x80 && !rv_utf8_valid(head, NULL);
        rv_buf_putc(b, control || broken ? ' ' : head.ptr[i]);
        i += control > 1;
    }
    if (head.len < text.len)
        rv_buf_puts(b, "...");
}

static void begin_line(struct sim_seed *s)
{
    int64_t ms = (s->now_us - SIM_T0_US) / 1000;

    rv_buf_printf(s->trace, "%7lld.%03lld s  ", (long long)(ms / 1000), (long long)(ms % 1000));
}

void sim_say(struct sim_seed *s, const char *fmt, ...)
{
    rv_buf line = RV_BUF_INIT(SIM_MAX_TRACE);
    va_list ap;

    if (!s->trace)
        return;
    va_start(ap, fmt);
    rv_buf_vprintf(&line, fmt, ap);
    va_end(ap);
    begin_line(s);
    for (size_t i = 0; i < line.len; i++)
        rv_buf_putc(s->trace, line.ptr[i] == '\n' ? ' ' : line.ptr[i]);
    rv_buf_putc(s->trace, '\n');
    rv_buf_fini(&line);
}

static void say_answer(const struct rv_event *ev, rv_buf *b)
{
    const struct rv_response *r = &ev->response;

    rv_buf_puts(b, "a person answers");
    if (r->interrupt_id.ptr)
        rv_buf_printf(b, " %.*s:", RV_STR_ARG(r->interrupt_id));
    if (r->has_approved)
        rv_buf_puts(b, r->approved ? " approved" : " denied");
    if (r->decision.ptr)
        rv_buf_printf(b, " %.*s", RV_STR_ARG(r->decision));
    if (r->text.ptr)
        rv_buf_printf(b, " \"%.*s\"", RV_STR_ARG(r->text));
}

static void say_done(const struct rv_event *ev, const struct sim_call *c, rv_buf *b)
{
    const char *who = ev->kind == RV_EVENT_LLM_DONE    ? "the model"
                      : ev->kind == RV_EVENT_TOOL_DONE ? "the tool"
                                                       : "the hook";

    if (!c) {
        rv_buf_printf(b, ev->unknown ? "the outcome of call %lld is unknown" : "its probe says: call %lld happened",
                      (long long)ev->call_id);
        return;
    }
    rv_buf_printf(b, "%s %s, call %lld of %s, visit %lld, ", who, c->name, (long long)ev->call_id, c->who ? c->who : "",
                  (long long)c->visit);
    if (ev->failed) {
        rv_buf_printf(b, "fails with %s%s: ", ev->error_type ? ev->error_type : "an error",
                      ev->retryable ? " (may be repeated)" : "");
        put_short(b, ev->error);
    } else {
        rv_buf_puts(b, "answers ");
        put_short(b, ev->reply);
    }
}

void sim_say_event(struct sim_seed *s, const struct rv_event *ev, const struct sim_call *c)
{
    rv_buf b = RV_BUF_INIT(SIM_MAX_TRACE);

    if (!s->trace)
        return;
    switch (ev->kind) {
    case RV_EVENT_START:
        rv_buf_puts(&b, "the run is started");
        break;
    case RV_EVENT_LLM_DONE:
    case RV_EVENT_TOOL_DONE:
    case RV_EVENT_HOOK_DONE:
        say_done(ev, c, &b);
        break;
    case RV_EVENT_TIMER:
        rv_buf_printf(&b, "timer %lld: the wait is over", (long long)ev->call_id);
        break;
    case RV_EVENT_ANSWER:
        say_answer(ev, &b);
        break;
    case RV_EVENT_CANCEL:
        rv_buf_puts(&b, "the run is cancelled");
        break;
    case RV_EVENT_RECOVER:
        rv_buf_puts(&b, "the run goes on in another process");
        break;
    }
    sim_say(s, "%s", rv_buf_cstr(&b));
    rv_buf_fini(&b);
}

static void say_call(struct sim_seed *s, const struct rv_effect *e)
{
    const char *what = e->kind == RV_EFFECT_CALL_LLM    ? "model"
                       : e->kind == RV_EFFECT_CALL_TOOL ? "tool"
                                                        : rv_name_kind_text(e->entry);
    char *who = sim_who(s, e);

    if (e->kind == RV_EFFECT_CALL_TOOL)
        sim_say(s, "    call %lld: tool %s (%s), stage %s, visit %lld, attempt %lld, key %s, %.*s",
                (long long)e->call_id, e->name, rv_effect_class_text((enum rv_effect_class)e->effect_class),
                who ? who : "", (long long)e->visit, (long long)e->attempt, e->key ? e->key : "(none)",
                RV_STR_ARG(rv_utf8_cut((rv_str){e->request, e->request_len}, SIM_SHOWN)));
    else
        sim_say(s, "    call %lld: %s %s, stage %s, visit %lld, attempt %lld", (long long)e->call_id, what, e->name,
                who ? who : "", (long long)e->visit, (long long)e->attempt);
    free(who);
}

const char *sim_text(json_object *line, const char *key)
{
    const char *text = NULL;
    return rv_json_get_text(line, key, &text) ? text : "";
}

int64_t sim_number(json_object *line, const char *key)
{
    int64_t n = 0;
    return line && rv_json_get_int(line, key, &n) ? n : 0;
}

static void put_text(rv_buf *b, json_object *line, const char *before, const char *key)
{
    if (!sim_text(line, key)[0])
        return;
    rv_buf_puts(b, before);
    put_short(b, rv_str_of(sim_text(line, key)));
}

static void put_completed(json_object *line, rv_buf *b)
{
    json_object *output = NULL;
    rv_buf text = RV_BUF_INIT(SIM_MAX_TEXT);

    if (sim_text(line, "agent")[0])
        rv_buf_printf(b, "agent %s, asked by call %s, ends: %s", sim_text(line, "agent"),
                      sim_text(line, "parent_tool_call_id"), sim_text(line, "status"));
    else
        rv_buf_printf(b, "stage %s ends: %s", sim_text(line, "stage"), sim_text(line, "status"));
    put_text(b, line, ", ", "error");
    if (json_object_object_get_ex(line, "output", &output) && output) {
        rv_json_write(output, &text);
        rv_buf_puts(b, ", ");
        put_short(b, rv_buf_str(&text));
    }
    rv_buf_fini(&text);
}

static void put_decision(json_object *line, rv_buf *b)
{
    json_object *list = rv_json_get_arr(line, "branches");

    rv_buf_printf(b, "%s -> %s", sim_text(line, "from"), list ? "" : sim_text(line, "to"));
    if (list)
        rv_json_write(list, b);
    rv_buf_printf(b, " (%s)", sim_text(line, "reason"));
}

static void put_tool_result(json_object *line, rv_buf *b)
{
    rv_buf_printf(b, "step %s, tool %s: %s", sim_text(line, "step_id"), sim_text(line, "tool"),
                  sim_text(line, "status"));
    put_text(b, line, ", ", "error");
}

static void put_question(json_object *line, rv_buf *b)
{
    rv_buf_printf(b, "stage %s asks, %s %s", sim_text(line, "stage"), sim_text(line, "kind"), sim_text(line, "id"));
    put_text(b, line, ": ", "question");
    put_text(b, line, ": ", "message");
}

static void put_branches(enum rv_emit_kind kind, json_object *line, rv_buf *b)
{
    if (kind == RV_EMIT_BRANCH_STARTED) {
        rv_buf_printf(b, "branch %s begins", sim_text(line, "path"));
    } else if (kind == RV_EMIT_BRANCH_ENDED) {
        rv_buf_printf(b, "branch %s: %s", sim_text(line, "path"), sim_text(line, "end"));
        put_text(b, line, ", ", "error");
    } else {
        rv_buf_printf(b, "the group of %s is settled", sim_text(line, "from"));
        put_text(b, line, ", join ", "join");
    }
}

/* False: the calls say it already. */
static bool put_emit(enum rv_emit_kind kind, json_object *line, rv_buf *b)
{
    switch (kind) {
    case RV_EMIT_STAGE_STARTED:
        rv_buf_printf(b, "stage %s begins, visit %lld", sim_text(line, "stage"), (long long)sim_number(line, "visit"));
        return true;
    case RV_EMIT_AGENT_STARTED:
        rv_buf_printf(b, "agent %s begins, asked by call %s, %lld deep", sim_text(line, "agent"),
                      sim_text(line, "parent_tool_call_id"), (long long)sim_number(line, "depth"));
        return true;
    case RV_EMIT_STAGE_COMPLETED:
    case RV_EMIT_AGENT_COMPLETED:
        put_completed(line, b);
        return true;
    case RV_EMIT_ROUTING_DECISION:
        put_decision(line, b);
        return true;
    case RV_EMIT_ITERATION:
        rv_buf_printf(b, "loop back %lld", (long long)sim_number(line, "iteration"));
        return true;
    case RV_EMIT_RETRY:
        rv_buf_printf(b, "attempt %lld failed", (long long)sim_number(line, "attempt"));
        put_text(b, line, ": ", "error");
        return true;
    case RV_EMIT_TOOL_RESULT:
        put_tool_result(line, b);
        return true;
    case RV_EMIT_INTERRUPT_PENDING:
        put_question(line, b);
        return true;
    case RV_EMIT_BRANCH_STARTED:
    case RV_EMIT_BRANCH_ENDED:
    case RV_EMIT_GROUP_SETTLED:
        put_branches(kind, line, b);
        return true;
    case RV_EMIT_STAGE_SKIPPED:
        rv_buf_printf(b, "stage %s is skipped", sim_text(line, "stage"));
        return true;
    case RV_EMIT_DONE:
        rv_buf_printf(b, "the run is %s", sim_text(line, "status"));
        put_text(b, line, ": ", "termination_reason");
        return true;
    case RV_EMIT_WARNING:
        put_text(b, line, "warning: ", "message");
        return true;
    case RV_EMIT_ARTIFACT:
    case RV_EMIT_ACTION:
    case RV_EMIT_CUSTOM:
    case RV_EMIT_TOOL_PROGRESS:
    case RV_EMIT_PIPELINE_STARTED:
    case RV_EMIT_LLM_CALL_START:
    case RV_EMIT_LLM_RESULT:
    case RV_EMIT_TOOL_CALL_START:
    case RV_EMIT_BATCH:
    case RV_EMIT_ERROR:
    case RV_N_EMITS:
        break;
    }
    return false;
}

static void say_emit(struct sim_seed *s, const struct rv_effect *e)
{
    const struct rv_json_opts opts = {.max_bytes = SIM_MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *line = NULL;
    rv_buf b = RV_BUF_INIT(SIM_MAX_TRACE);

    if (rv_json_parse(rv_effect_text(&s->fx, e), &opts, &line,
                      RV_CODE_ONLY("a line for people: sim_watch_parse() judges the event")) == 0 &&
        put_emit(e->emit, line, &b))
        sim_say(s, "    %s", rv_buf_cstr(&b));
    json_object_put(line);
    rv_buf_fini(&b);
}

void sim_say_effects(struct sim_seed *s)
{
    for (size_t i = 0; s->trace && i < s->fx.n; i++) {
        const struct rv_effect *e = &s->fx.items[i];
        switch (e->kind) {
        case RV_EFFECT_CALL_LLM:
        case RV_EFFECT_CALL_TOOL:
        case RV_EFFECT_CALL_HOOK:
            say_call(s, e);
            break;
        case RV_EFFECT_CANCEL_CALL:
            sim_say(s, "    call %lld is cancelled", (long long)e->call_id);
            break;
        case RV_EFFECT_ARM_TIMER:
            sim_say(s, "    timer %lld of stage %s: wait %lld ms", (long long)e->call_id, sim_stage_name(s, e->stage),
                    (long long)((e->at_us - s->now_us) / RV_US_PER_MS));
            break;
        case RV_EFFECT_EMIT:
            say_emit(s, e);
            break;
        case RV_EFFECT_SAVE:
        case RV_EFFECT_KEEP:
        case RV_EFFECT_ARTIFACT:
        case RV_EFFECT_FINISH:
            break;
        }
    }
}

/* --- faults, and what breaks --- */

void sim_break(struct sim_seed *s, enum rv_sim_invariant inv, const char *fmt, ...)
{
    va_list ap;

    if (s->is_broken)
        return;
    s->is_broken = true;
    s->invariant = inv;
    va_start(ap, fmt);
    rv_buf_vprintf(&s->broken, fmt, ap);
    va_end(ap);
    sim_say(s, "BROKEN: %s", rv_buf_cstr(&s->broken));
}

int sim_unexpected(struct sim_seed *s, enum rv_sim_invariant inv, int rc, const char *what, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(SIM_MAX_BROKEN / 2);

    if (rc == RV_E_NOMEM)
        return rc;
    for (const rv_err *link = *err; link; link = rv_err_cause(link))
        rv_buf_printf(&text, ": %s", rv_err_text(link));
    sim_break(s, inv, "%s%s", what, rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_err_free(rv_err_steal(err));
    return 0;
}

void sim_injected(struct sim_seed *s, enum rv_sim_fault fault)
{
    s->tally->faults[fault]++;
}

size_t sim_inject(struct sim_seed *s, const enum rv_sim_fault *kinds, size_t n)
{
    uint32_t rates[SIM_MAX_KINDS];

    assert(n <= SIM_MAX_KINDS);
    for (size_t i = 0; i < n; i++)
        rates[i] = s->rates[kinds[i]];
    size_t fault = sim_pick(&s->tape, rates, n);
    if (fault)
        sim_injected(s, kinds[fault - 1]);
    return fault;
}
