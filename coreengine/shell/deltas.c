/* Pieces of what models say, on their way to whoever watches. They never reach the core: the answer does, as a whole.
 */
#include "coreengine/shell/shell_internal.h"

bool rv_delta_tell(struct call *c, const struct rv_llm_delta *d)
{
    const struct rv_exec_opts *o = &c->x->opts;

    const struct rv_delta_from from = {c->stage, c->call_id, c->origin};

    c->told_text = c->told_text || d->kind == RV_LLM_DELTA_TEXT;
    if (d->kind == RV_LLM_DELTA_TEXT && o->journal)
        rv_buf_add_str(&c->heard, d->text);
    return !o->on_delta || o->on_delta(o->self, &from, d);
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

    if (!c->x->opts.on_delta || c->model || c->failed) /* a wire tells everything itself */
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
