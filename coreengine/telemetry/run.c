/* Spans of a run, made of its events: the run, visits of stages, agents that are asked, calls of models and tools. A
 * span is found by what its events say; one that begins has a key, and ends with the event that has the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/telemetry/telemetry_internal.h"

#define MAX_KEY 1024

struct open_span {
    char *key; /* owned */
    struct rv_span *span;
};
struct rv_run_trace {
    struct rv_run_trace_opts opts;
    char *run;              /* owned; NULL: unknown */
    struct open_span *open; /* owned; the run is the first one */
    size_t n, cap;
    int64_t n_dropped;
};

int rv_run_trace_new(const struct rv_run_trace_opts *opts, rv_run_trace **out, rv_err **err)
{
    rv_run_trace *t = calloc(1, sizeof *t);

    if (t && opts->run && !(t->run = rv_str_dup(rv_str_of(opts->run)))) {
        free(t);
        t = NULL;
    }
    if (!t)
        return RV_FAIL(err, RV_E_NOMEM, "trace a run");
    t->opts = *opts;
    *out = t;
    return 0;
}

void rv_run_trace_free(rv_run_trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++) {
        rv_span_free(t->open[i].span);
        free(t->open[i].key);
    }
    free(t->open);
    free(t->run);
    free(t);
}

int64_t rv_run_trace_dropped(const rv_run_trace *t)
{
    return t->n_dropped;
}

/* --- keys --- */

/* "s|path|stage|visit": a visit; an agent that it asked, and a tool, have an id behind that. */
static const char *visit_key(json_object *e, char kind, const char *id, char out[MAX_KEY])
{
    snprintf(out, MAX_KEY, "%c|%.300s|%.300s|%lld|%.300s", kind, rv_event_text(e, "path"), rv_event_text(e, "stage"),
             (long long)rv_event_int(e, "visit"), id);
    return out;
}

static const char *call_key(json_object *e, char out[MAX_KEY])
{
    snprintf(out, MAX_KEY, "l|%.300s|%lld", rv_event_text(e, "path"), (long long)rv_event_int(e, "call_id"));
    return out;
}

static struct open_span *find(const rv_run_trace *t, const char *key)
{
    for (size_t i = t->n; i > 0; i--) /* what began last ends first */
        if (strcmp(t->open[i - 1].key, key) == 0)
            return &t->open[i - 1];
    return NULL;
}

/* The span that an event of a visit happens within: the agent that was asked, the stage, or the run. */
static struct open_span *owner_of(const rv_run_trace *t, json_object *e)
{
    const char *by = rv_event_text(e, "parent_tool_call_id");
    char key[MAX_KEY];
    struct open_span *o = *by ? find(t, visit_key(e, 'a', by, key)) : NULL;

    if (!o)
        o = find(t, visit_key(e, 's', "", key));
    return o ? o : t->n > 0 ? &t->open[0] : NULL;
}

/* --- beginning and ending --- */

static void set_ids(const rv_run_trace *t, const struct open_span *parent, struct rv_span *s)
{
    const struct rv_trace_context *above = parent ? &parent->span->id : &t->opts.parent;
    struct rv_trace_context fresh;

    rv_trace_begin(t->opts.rand, &fresh);
    s->id = fresh;
    if (!rv_trace_is_set(above)) {
        if (t->run)
            rv_trace_of_run(t->run, s->id.trace);
        return;
    }
    memcpy(s->id.trace, above->trace, sizeof s->id.trace);
    memcpy(s->parent, above->span, sizeof s->parent);
    s->id.flags = above->flags;
    s->parent_is_remote = !parent && t->opts.parent_is_remote;
}

/* NULL: there is no room, or no memory. */
static struct rv_span *begin(rv_run_trace *t, const char *key, const struct open_span *parent, const char *name,
                             enum rv_span_kind kind, int64_t time_us)
{
    struct rv_span *s = NULL;
    char *copy = NULL;
    size_t at = parent ? (size_t)(parent - t->open) : 0;

    if (t->n < RV_TRACE_MAX_OPEN && rv_has_room(&t->open, &t->cap, t->n + 1, sizeof *t->open) &&
        rv_span_new(name, kind, &s, NULL) == 0 && (copy = rv_str_dup(rv_str_of(key)))) {
        set_ids(t, parent ? &t->open[at] : NULL, s); /* the list may have moved */
        s->start_us = time_us;
        t->open[t->n++] = (struct open_span){.key = copy, .span = s};
        return s;
    }
    rv_span_free(s);
    t->n_dropped++;
    return NULL;
}

static void end(rv_run_trace *t, struct open_span *o, int64_t time_us)
{
    struct open_span over = *o;

    memmove(o, o + 1, (size_t)(t->open + t->n - o - 1) * sizeof *o);
    t->n--;
    over.span->end_us = time_us < over.span->start_us ? over.span->start_us : time_us;
    free(over.key);
    t->opts.ended(t->opts.self, over.span);
}

/* --- what events say --- */

static void set_text(struct rv_span *s, const char *key, json_object *e, const char *member)
{
    const char *text = rv_event_text(e, member);

    if (*text)
        rv_span_text(s, key, rv_str_of(text));
}

static void set_int(struct rv_span *s, const char *key, json_object *e, const char *member)
{
    if (json_object_object_get_ex(e, member, NULL))
        rv_span_int(s, key, rv_event_int(e, member));
}

static void name_of(char *out, size_t size, const char *operation, const char *subject)
{
    snprintf(out, size, "%s%s%.200s", operation, *subject ? " " : "", subject);
}

static void begin_run(rv_run_trace *t, json_object *e, int64_t time_us)
{
    const char *pipeline = rv_event_text(e, "pipeline");
    char name[300];

    name_of(name, sizeof name, "invoke_workflow", pipeline);
    struct rv_span *s = t->n == 0 ? begin(t, "", NULL, name, RV_SPAN_INTERNAL, time_us) : NULL;
    if (!s)
        return;
    s->link = t->opts.link;
    rv_span_text(s, "gen_ai.operation.name", RV_STR_LIT("invoke_workflow"));
    rv_span_text(s, "gen_ai.workflow.name", rv_str_of(pipeline));
    set_text(s, "gen_ai.conversation.id", e, "session_id");
    if (t->run)
        rv_span_text(s, "reeve.run.id", rv_str_of(t->run));
}

static void begin_stage(rv_run_trace *t, json_object *e, int64_t time_us)
{
    char key[MAX_KEY], name[300];

    name_of(name, sizeof name, "reeve.stage", rv_event_text(e, "stage"));
    struct rv_span *s =
        begin(t, visit_key(e, 's', "", key), t->n > 0 ? &t->open[0] : NULL, name, RV_SPAN_INTERNAL, time_us);
    if (!s)
        return;
    set_text(s, "reeve.stage.name", e, "stage");
    set_int(s, "reeve.stage.visit", e, "visit");
    set_text(s, "reeve.stage.path", e, "path");
}

static void begin_agent(rv_run_trace *t, json_object *e, int64_t time_us)
{
    const char *agent = rv_event_text(e, "agent"), *by = rv_event_text(e, "parent_tool_call_id");
    char key[MAX_KEY], name[300];
    struct open_span *parent = find(t, visit_key(e, 't', by, key));

    name_of(name, sizeof name, "invoke_agent", agent);
    if (!parent)
        parent = find(t, visit_key(e, 's', "", key));
    struct rv_span *s = begin(t, visit_key(e, 'a', by, key),
                              parent     ? parent
                              : t->n > 0 ? &t->open[0]
                                         : NULL,
                              name, RV_SPAN_INTERNAL, time_us);
    if (!s)
        return;
    rv_span_text(s, "gen_ai.operation.name", RV_STR_LIT("invoke_agent"));
    rv_span_text(s, "gen_ai.agent.name", rv_str_of(agent));
}

static void begin_model(rv_run_trace *t, json_object *e, int64_t time_us)
{
    const char *spec = rv_event_text(e, "model");
    struct model_name model = rv_model_name(spec);
    char key[MAX_KEY], name[300], subject[220];

    if (find(t, call_key(e, key))) /* another attempt of the same call */
        return;
    snprintf(subject, sizeof subject, "%.*s", RV_STR_ARG(rv_utf8_cut(model.model, 200)));
    name_of(name, sizeof name, "chat", *subject ? subject : rv_event_text(e, "role"));
    struct rv_span *s = begin(t, key, owner_of(t, e), name, RV_SPAN_CLIENT, time_us);
    if (!s)
        return;
    rv_span_text(s, "gen_ai.operation.name", RV_STR_LIT("chat"));
    rv_span_text(s, "gen_ai.provider.name", model.provider);
    if (model.model.len > 0)
        rv_span_text(s, "gen_ai.request.model", model.model);
    set_text(s, "reeve.model.role", e, "role");
}

static void begin_tool(rv_run_trace *t, json_object *e, int64_t time_us)
{
    const char *tool = rv_event_text(e, "tool"), *id = rv_event_text(e, "step_id");
    char key[MAX_KEY], name[300];

    if (find(t, visit_key(e, 't', id, key)))
        return;
    name_of(name, sizeof name, "execute_tool", tool);
    struct rv_span *s = begin(t, key, owner_of(t, e), name, RV_SPAN_INTERNAL, time_us);
    if (!s)
        return;
    rv_span_text(s, "gen_ai.operation.name", RV_STR_LIT("execute_tool"));
    rv_span_text(s, "gen_ai.tool.name", rv_str_of(tool));
    rv_span_text(s, "gen_ai.tool.type", RV_STR_LIT("function"));
    if (*id)
        rv_span_text(s, "gen_ai.tool.call.id", rv_str_of(id));
}

/* Why it failed, without words of models and tools: those may say anything. */
static void note_end(struct rv_span *s, json_object *e)
{
    const char *status = rv_event_text(e, "status"), *type = rv_event_text(e, "error_kind");

    if (strcmp(status, "error") != 0 && strcmp(status, "failed") != 0)
        return;
    if (!*type)
        type = rv_event_text(e, "code");
    if (!*type)
        type = rv_event_text(e, "error_type");
    rv_span_fail(s, type, NULL);
}

static void note_usage(const rv_run_trace *t, struct rv_span *s, json_object *usage)
{
    bool is_draft = t->opts.names == RV_SEMCONV_DRAFT;

    set_int(s, "gen_ai.usage.input_tokens", usage, "input_tokens");
    set_int(s, "gen_ai.usage.output_tokens", usage, "output_tokens");
    set_int(s, "gen_ai.usage.cache_read.input_tokens", usage, "cached_tokens");
    set_int(s, is_draft ? "gen_ai.usage.cache_write.input_tokens" : "gen_ai.usage.cache_creation.input_tokens", usage,
            "cache_write_tokens");
    set_int(s, "gen_ai.usage.reasoning.output_tokens", usage, "reasoning_tokens");
}

static void end_model(rv_run_trace *t, struct open_span *o, json_object *e, int64_t time_us)
{
    struct rv_span *s = o->span;
    char reason[80];

    note_end(s, e);
    note_usage(t, s, e);
    snprintf(reason, sizeof reason, "%.70s\n", rv_event_text(e, "finish_reason"));
    if (reason[0] != '\n')
        rv_span_list(s, "gen_ai.response.finish_reasons", rv_str_of(reason));
    if (json_object_object_get_ex(e, "first_token_ms", NULL))
        rv_span_double(s, "gen_ai.response.time_to_first_chunk", (double)rv_event_int(e, "first_token_ms") / 1000);
    set_int(s, "reeve.model.attempts", e, "attempts");
    set_int(s, "reeve.cost_micro_usd", e, "cost_micro_usd");
    end(t, o, time_us);
}

static void end_visit(rv_run_trace *t, struct open_span *o, json_object *e, int64_t time_us)
{
    json_object *usage = rv_json_get_obj(e, "usage");

    note_end(o->span, e);
    if (usage)
        note_usage(t, o->span, usage);
    set_text(o->span, "reeve.outcome", e, "outcome");
    end(t, o, time_us);
}

/* What is still open was cut off by the end of the run. */
static void end_run(rv_run_trace *t, json_object *e, int64_t time_us)
{
    if (t->n == 0)
        return;
    while (t->n > 1) {
        rv_span_fail(t->open[t->n - 1].span, "cancelled", NULL);
        end(t, &t->open[t->n - 1], time_us);
    }
    set_text(t->open[0].span, "reeve.run.status", e, "status");
    set_text(t->open[0].span, "reeve.run.terminal_reason", e, "terminal_reason");
    note_end(t->open[0].span, e);
    if (rv_json_get_obj(e, "usage"))
        note_usage(t, t->open[0].span, rv_json_get_obj(e, "usage"));
    end(t, &t->open[0], time_us);
}

static void take_end(rv_run_trace *t, const char *type, json_object *e, int64_t time_us)
{
    struct open_span *o = NULL;
    char key[MAX_KEY];

    if (strcmp(type, "llm_result") == 0) {
        if ((o = find(t, call_key(e, key))))
            end_model(t, o, e, time_us);
    } else if (strcmp(type, "tool_result") == 0) {
        if ((o = find(t, visit_key(e, 't', rv_event_text(e, "step_id"), key)))) {
            note_end(o->span, e);
            end(t, o, time_us);
        }
    } else if (strcmp(type, "agent_completed") == 0) {
        if ((o = find(t, visit_key(e, 'a', rv_event_text(e, "parent_tool_call_id"), key))))
            end_visit(t, o, e, time_us);
    } else if (strcmp(type, "stage_completed") == 0) {
        if ((o = find(t, visit_key(e, 's', "", key))))
            end_visit(t, o, e, time_us);
    } else if (strcmp(type, "done") == 0) {
        end_run(t, e, time_us);
    }
}

void rv_run_trace_event(rv_run_trace *t, rv_str line)
{
    static const struct {
        const char *type;
        void (*begin)(rv_run_trace *t, json_object *e, int64_t time_us);
    } begins[] = {{"pipeline_started", begin_run},
                  {"stage_started", begin_stage},
                  {"agent_started", begin_agent},
                  {"llm_call_start", begin_model},
                  {"tool_call_start", begin_tool}};
    const char *type = NULL;
    int64_t time_us = 0;
    json_object *e = rv_event_read(line, &type, &time_us);

    if (!e) {
        t->n_dropped++;
        return;
    }
    size_t i = 0;
    while (i < RV_COUNT(begins) && strcmp(begins[i].type, type) != 0)
        i++;
    if (i < RV_COUNT(begins))
        begins[i].begin(t, e, time_us);
    else
        take_end(t, type, e, time_us);
    json_object_put(e);
}

void rv_run_trace_end(rv_run_trace *t, int64_t now_us)
{
    while (t->n > 0) {
        rv_span_fail(t->open[t->n - 1].span, "cancelled", NULL);
        end(t, &t->open[t->n - 1], now_us);
    }
}
