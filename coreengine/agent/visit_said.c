/* What people are shown of a turn, which is what is kept of it: the words of the agent and, in their place or beside
 * them, those of the agents that it asked. Parts are kept apart by a blank line. Of a structured agent it is its
 * object, once and as a whole; its words are kept beside it. */
#include "coreengine/agent/agent_internal.h"

void rv_said_init(struct talk *t)
{
    t->said = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);
    t->finish = RV_UNSET;
}

static void add(rv_visit *v, rv_str text)
{
    rv_str words = rv_str_trim(text);

    if (words.len == 0)
        return;
    if (v->talk.said.len > 0)
        rv_buf_puts(&v->talk.said, "\n\n");
    rv_buf_add_str(&v->talk.said, v->talk.said.len > 0 ? words : text);
}

/* Without calls it is a structured agent's output itself, or a try at it. */
void rv_said_own(rv_visit *v, rv_str text, bool has_calls)
{
    bool is_output = v->agent->output_schema && !has_calls;

    if (v->agent->doc && !is_output && !v->talk.is_muted && rv_utf8_valid(text, NULL))
        add(v, text);
}

void rv_said_partial(rv_visit *v)
{
    rv_said_own(v, rv_buf_str(&v->partial), false);
    rv_buf_clear(&v->partial);
}

void rv_said_child(rv_visit *v, rv_str text, bool failed)
{
    if (v->agent->output_schema || v->agent->child_text == RV_CHILD_TEXT_PARENT || rv_str_trim(text).len == 0)
        return;
    add(v, text);
    v->talk.is_muted = v->agent->child_text == RV_CHILD_TEXT_CHILD && !failed && !v->agent->child_text_resets;
}

/* Its id is one of a kind among those of the calls: no provider gives such ones, and whoever was asked more than once
 * was asked by different calls. */
static int output_id(const rv_visit *v, rv_buf *id, rv_err **err)
{
    const struct rv_origin *o = v->shared->origin;

    rv_buf_printf(id, "%s_structured_output", v->agent->doc->name);
    if (o)
        rv_buf_printf(id, "_%s", o->parent_tool_call_id);
    return rv_buf_check(id, "the id of an output", err);
}

static void emit_output(rv_visit *v, rv_str id, rv_buf *text, struct rv_effects *out)
{
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, RV_EMIT_TOOL_RESULT, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_text(&w, "tool", v->agent->doc->name);
    rv_jw_kv_str(&w, "step_id", id);
    rv_jw_kv_text(&w, "status", "success");
    rv_jw_kv_bool(&w, "structured", true);
    rv_jw_kv_value(&w, "result", v->output);
    rv_emit_end(out, &w);
    struct rv_effect *e = &out->items[out->n - 1];
    e->call_id = v->talk.call_id;
    e->request = rv_buf_steal(text, &e->request_len);
    if (!e->request)
        out->rc = RV_E_NOMEM;
}

int rv_said_output(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf id = RV_BUF_INIT(RV_JSON_MAX_BYTES), text = RV_BUF_INIT(RV_EFFECTS_MAX_TEXT);

    if (!v->agent->doc || !v->agent->output_schema || !v->output || v->told_output)
        return 0;
    v->told_output = true;
    rv_json_write(v->output, &text);
    int rc = rv_buf_check(&text, "the output of an agent", err);
    if (rc == 0)
        rc = output_id(v, &id, err);
    if (rc == 0)
        emit_output(v, rv_buf_str(&id), &text, out);
    rv_buf_fini(&id);
    rv_buf_fini(&text);
    return rc;
}
