/* Passes pieces of models' answers to the observer. Pieces never reach the core: it receives the whole answer.
 */
#include <stdlib.h>

#include "coreengine/engine/engine_internal.h"

/* The call is one of a declared agent whose answer is an object: the observer receives the whole object when it fits
 * its schema, and before it no pieces of text or of the call that hands over the output. */
static bool is_structured(const struct call *c)
{
    const struct rv_agent *a = c->pipeline && c->stage >= 0 ? &c->pipeline->agents[c->origin ? 0 : c->stage] : NULL;

    return a && a->declared.doc && a->output.schema;
}

/* Is it a piece of the call by which the model hands over its output? */
static bool hands_over(struct call *c, const struct rv_llm_delta *d)
{
    bool is_call = d->kind == RV_LLM_DELTA_TOOL_START || d->kind == RV_LLM_DELTA_TOOL_ARGUMENTS ||
                   d->kind == RV_LLM_DELTA_TOOL_END;

    if (!is_call || d->index >= RV_LLM_MAX_TOOL_CALLS)
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
        rc = rv_call_name(c->taken, c->ids_upto, c->origin, id, name, NULL);
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

bool rv_delta_tell(struct call *c, const struct rv_llm_delta *d)
{
    const struct rv_exec_opts *o = &c->x->opts;
    const struct rv_delta_from from = {c->stage, c->call_id, c->origin, c->is_muted};
    bool is_internal = is_structured(c) && (d->kind == RV_LLM_DELTA_TEXT || hands_over(c, d));

    c->told_text = c->told_text || d->kind == RV_LLM_DELTA_TEXT;
    if (d->kind == RV_LLM_DELTA_TEXT && o->journal)
        rv_buf_add_str(&c->heard, d->text);
    if (o->on_piece)
        o->on_piece(o->self, &from, d);
    return !o->observer.on_delta || tell_watcher(c, &from, d, is_internal);
}

void rv_delta_tell_output(rv_exec *x, const struct rv_effect *e)
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
    RV_IGNORE(!rv_delta_tell(c, d), "there is no stream to hold: everything is here");
}

static void tell_calls(struct call *c)
{
    const struct rv_json_opts opts = {.max_bytes = 4 * RV_LLM_MAX_REPLY, .what = "tool calls"};
    json_object *calls = NULL;

    if (rv_json_parse(c->answer.tool_calls, &opts, &calls, NULL) < 0) /* the core says what is wrong with them */
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

void rv_delta_tell_rest(struct call *c)
{
    rv_str text = rv_buf_str(&c->text);

    if ((!c->x->opts.observer.on_delta && !c->x->opts.on_piece) || c->model ||
        c->failed) /* a wire tells everything itself */
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

void rv_delta_piece(const struct piece *p)
{
    struct call *c = p->job->call;

    if (!c)
        return;
    if (!p->is_thinking) { /* kept for the case that the call fails */
        if (c->partial.max == 0)
            c->partial = RV_BUF_INIT(RV_LLM_MAX_REPLY);
        rv_buf_add(&c->partial, p->text, p->len);
    }
    tell(c, &(struct rv_llm_delta){.kind = p->is_thinking ? RV_LLM_DELTA_THINKING : RV_LLM_DELTA_TEXT,
                                   .text = {p->text, p->len}});
}
