/* Spans of a run, made of its events: the run, visits of stages, agents that are asked, calls of models and tools. A
 * span is found by what its events say; one that begins has a key, and ends with the event that has the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/telemetry/telemetry_internal.h"

#define MAX_KEY 1024 /* bytes of the ids that name one span: three of 300 and a number */

struct open_span {
    char *key; /* owned */
    enum span_id id;
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
    snprintf(out, MAX_KEY, "%c|%.300s|%.300s|%lld|%.300s", kind, telemetry_event_text(e, "path"),
             telemetry_event_text(e, "stage"), (long long)telemetry_event_int(e, "visit"), id);
    return out;
}

static const char *call_key(json_object *e, char out[MAX_KEY])
{
    snprintf(out, MAX_KEY, "l|%.300s|%lld", telemetry_event_text(e, "path"),
             (long long)telemetry_event_int(e, "call_id"));
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
    const char *by = telemetry_event_text(e, "parent_tool_call_id");
    char key[MAX_KEY];
    struct open_span *o = *by ? find(t, visit_key(e, 'a', by, key)) : NULL;

    if (!o)
        o = find(t, visit_key(e, 's', "", key));
    return o ? o : t->n > 0 ? &t->open[0] : NULL;
}

/* --- attributes, by the table --- */

static void set_int(struct rv_span *s, const char *key, json_object *e, const char *member)
{
    if (json_object_object_get_ex(e, member, NULL))
        rv_span_set_int(s, key, telemetry_event_int(e, member));
}

static void set_text(struct rv_span *s, const char *key, rv_str text)
{
    if (text.len > 0)
        rv_span_set_text(s, key, text);
}

static void set_attr(const rv_run_trace *t, const struct attr_row *a, struct rv_span *s, json_object *e)
{
    const char *key = t->opts.names == RV_SEMCONV_DRAFT && a->draft[0] ? a->draft : a->key;
    json_object *usage = rv_json_get_obj(e, "usage"); /* of a visit or a run; of a call of a model it is the event */
    char line[80];

    switch (a->from) {
    case FROM_WORD:
        rv_span_set_text(s, key, rv_str_of(a->member));
        break;
    case FROM_RUN:
        set_text(s, key, rv_str_of(t->run ? t->run : ""));
        break;
    case FROM_PROVIDER:
        set_text(s, key,
                 telemetry_model_name(telemetry_event_text(e, "provider"), telemetry_event_text(e, "model")).provider);
        break;
    case FROM_MODEL:
        set_text(s, key,
                 telemetry_model_name(telemetry_event_text(e, "provider"), telemetry_event_text(e, "model")).model);
        break;
    case FROM_TEXT:
    case FROM_TEXT_AT_END:
        set_text(s, key, rv_str_of(telemetry_event_text(e, a->member)));
        break;
    case FROM_INT:
    case FROM_INT_AT_END:
        set_int(s, key, e, a->member);
        break;
    case FROM_USAGE:
        set_int(s, key, usage ? usage : e, a->member);
        break;
    case FROM_MS:
        if (json_object_object_get_ex(e, a->member, NULL))
            rv_span_set_double(s, key, (double)telemetry_event_int(e, a->member) / 1000);
        break;
    case FROM_LIST:
        snprintf(line, sizeof line, "%.70s\n", telemetry_event_text(e, a->member));
        if (line[0] != '\n')
            rv_span_add_line(s, key, rv_str_of(line));
        break;
    }
}

static void set_attrs(const rv_run_trace *t, enum span_id id, struct rv_span *s, json_object *e, bool begins)
{
    for (size_t i = 0; i < telemetry_n_attr_rows; i++) {
        const struct attr_row *a = &telemetry_attr_rows[i];
        if ((a->spans & 1u << id) && begins == (a->from < FROM_TEXT_AT_END))
            set_attr(t, a, s, e);
    }
}

/* --- beginning and ending --- */

/* e: the event that begins a call (is_call) or a visit, whose id its rows and requests know; NULL: any id. */
static void set_ids(const rv_run_trace *t, const struct open_span *parent, json_object *e, bool is_call,
                    struct rv_span *s)
{
    const struct rv_trace_context *above = parent ? &parent->span->id : &t->opts.parent;

    rv_trace_begin(t->opts.rand, &s->id);
    if (t->run && e && (!is_call || telemetry_event_int(e, "call_id") > 0))
        rv_trace_make_span_id(&(struct rv_trace_span){.run = t->run,
                                                      .call_id = is_call ? telemetry_event_int(e, "call_id") : 0,
                                                      .path = telemetry_event_text(e, "path"),
                                                      .stage = telemetry_event_text(e, "stage"),
                                                      .visit = telemetry_event_int(e, "visit"),
                                                      .asked_by = telemetry_event_text(e, "parent_tool_call_id")},
                              s->id.span);
    if (!rv_trace_is_set(above)) {
        if (t->run)
            rv_trace_of_run(t->run, NULL, s->id.trace);
        return;
    }
    memcpy(s->id.trace, above->trace, sizeof s->id.trace);
    memcpy(s->parent, above->span, sizeof s->parent);
    s->id.flags = above->flags;
    s->parent_is_remote = !parent && t->opts.parent_is_remote;
}

/* A span that begins. All is borrowed. */
struct opening {
    enum span_id id;
    const char *key;
    const struct open_span *parent;
    const char *subject; /* what is done or called */
};

/* NULL: there is no room, or no memory. */
static struct rv_span *begin(rv_run_trace *t, struct opening o, json_object *e, int64_t time_us)
{
    const struct span_row *row = &telemetry_span_rows[o.id];
    struct rv_span *s = NULL;
    char *copy = NULL, name[300];
    size_t at = o.parent ? (size_t)(o.parent - t->open) : 0;

    snprintf(name, sizeof name, "%s%s%.200s", row->operation, *o.subject ? " " : "", o.subject);
    if (t->n < RV_TRACE_MAX_OPEN && rv_has_room(&t->open, &t->cap, t->n + 1, sizeof *t->open) &&
        rv_span_new(name, row->kind, &s, RV_CODE_ONLY("it fails without memory only: the trace has a span less")) ==
            0 &&
        (copy = rv_str_dup(rv_str_of(o.key)))) {
        set_ids(t, o.parent ? &t->open[at] : NULL, o.id == SPAN_RUN ? NULL : e, o.id == SPAN_MODEL || o.id == SPAN_TOOL,
                s); /* the list may have moved */
        s->start_us = time_us;
        t->open[t->n++] = (struct open_span){.key = copy, .id = o.id, .span = s};
        set_attrs(t, o.id, s, e, true);
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

static void begin_run(rv_run_trace *t, json_object *e, int64_t time_us)
{
    struct rv_span *s =
        t->n == 0 ? begin(t, (struct opening){SPAN_RUN, "", NULL, telemetry_event_text(e, "pipeline")}, e, time_us)
                  : NULL;

    if (s)
        s->link = t->opts.link;
}

static void begin_stage(rv_run_trace *t, json_object *e, int64_t time_us)
{
    char key[MAX_KEY];

    begin(t,
          (struct opening){SPAN_STAGE, visit_key(e, 's', "", key), t->n > 0 ? &t->open[0] : NULL,
                           telemetry_event_text(e, "stage")},
          e, time_us);
}

static void begin_agent(rv_run_trace *t, json_object *e, int64_t time_us)
{
    const char *by = telemetry_event_text(e, "parent_tool_call_id");
    char key[MAX_KEY];
    struct open_span *parent = find(t, visit_key(e, 't', by, key));

    if (!parent)
        parent = find(t, visit_key(e, 's', "", key));
    if (!parent && t->n > 0)
        parent = &t->open[0];
    begin(t, (struct opening){SPAN_AGENT, visit_key(e, 'a', by, key), parent, telemetry_event_text(e, "agent")}, e,
          time_us);
}

static void begin_model(rv_run_trace *t, json_object *e, int64_t time_us)
{
    struct model_name model =
        telemetry_model_name(telemetry_event_text(e, "provider"), telemetry_event_text(e, "model"));
    char key[MAX_KEY], subject[220];

    if (find(t, call_key(e, key))) /* another attempt of the same call */
        return;
    snprintf(subject, sizeof subject, "%.*s", RV_STR_ARG(rv_utf8_cut(model.model, 200)));
    begin(t, (struct opening){SPAN_MODEL, key, owner_of(t, e), *subject ? subject : telemetry_event_text(e, "role")}, e,
          time_us);
}

static void begin_tool(rv_run_trace *t, json_object *e, int64_t time_us)
{
    char key[MAX_KEY];

    if (!find(t, visit_key(e, 't', telemetry_event_text(e, "step_id"), key)))
        begin(t, (struct opening){SPAN_TOOL, key, owner_of(t, e), telemetry_event_text(e, "tool")}, e, time_us);
}

/* Why it failed, without words of models and tools: those may say anything. */
static void note_end(struct rv_span *s, json_object *e)
{
    const char *status = telemetry_event_text(e, "status"), *type = telemetry_event_text(e, "error_kind");

    if (strcmp(status, "error") != 0 && strcmp(status, "failed") != 0)
        return;
    if (!*type)
        type = telemetry_event_text(e, "code");
    if (!*type)
        type = telemetry_event_text(e, "error_type");
    rv_span_fail(s, type, NULL);
}

static void end_with(rv_run_trace *t, struct open_span *o, json_object *e, int64_t time_us)
{
    if (!o)
        return;
    note_end(o->span, e);
    set_attrs(t, o->id, o->span, e, false);
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
    end_with(t, &t->open[0], e, time_us);
}

static void take_end(rv_run_trace *t, const char *type, json_object *e, int64_t time_us)
{
    char key[MAX_KEY];

    if (strcmp(type, "llm_result") == 0)
        end_with(t, find(t, call_key(e, key)), e, time_us);
    else if (strcmp(type, "tool_result") == 0)
        end_with(t, find(t, visit_key(e, 't', telemetry_event_text(e, "step_id"), key)), e, time_us);
    else if (strcmp(type, "agent_completed") == 0)
        end_with(t, find(t, visit_key(e, 'a', telemetry_event_text(e, "parent_tool_call_id"), key)), e, time_us);
    else if (strcmp(type, "stage_completed") == 0)
        end_with(t, find(t, visit_key(e, 's', "", key)), e, time_us);
    else if (strcmp(type, "done") == 0)
        end_run(t, e, time_us);
}

void rv_run_trace_add(rv_run_trace *t, json_object *e)
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

    if (!telemetry_event_is(e, &type, &time_us)) {
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
}

void rv_run_trace_end(rv_run_trace *t, int64_t now_us)
{
    while (t->n > 0) {
        rv_span_fail(t->open[t->n - 1].span, "cancelled", NULL);
        end(t, &t->open[t->n - 1], now_us);
    }
}
