/* The text of an agent that users are shown, and how it becomes rows.
 *
 * What is kept as the answer of a turn: the text of the agent and, as child_text says, in its place or beside it, that
 * of the agents that it asked. With child_text final theirs is the answer only while it writes none itself. Parts are
 * kept apart by a blank line. The answer of a structured agent is its object, once and as a whole; its text is kept
 * beside it.
 *
 * Text that stands before calls of tools is a row in front of them, the rest of what users were shown is the answer.
 * Which text was shown is known from `visible`, where the parts stand in their order and apart from each other; a run
 * of older rules has all this text in its answer. */
#include "coreengine/agent/rows_internal.h"
#include "coreengine/agent/tools_internal.h"

#include <string.h>

/* No value was chosen: runs of the older rules have the default of their time. */
static enum rv_child_text child_text_of(const rv_visit *v)
{
    bool is_old = v->shared->rules < RV_RULES_2;
    int how = is_old ? v->agent->session.child_text : rv_agent_child_text_kind(v->shared->pipeline, v->agent);

    if (how == RV_UNSET)
        how = is_old ? RV_CHILD_TEXT_CHILD : RV_CHILD_TEXT_FINAL;
    return (enum rv_child_text)how;
}

void agent_visible_init(struct model_progress *t)
{
    t->visible = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);
    t->answer_at = SIZE_MAX;
    t->finish = RV_UNSET;
}

static void add(rv_visit *v, rv_str text)
{
    rv_str part = rv_str_trim(text);

    if (part.len == 0)
        return;
    if (v->model.visible.len > 0)
        rv_buf_puts(&v->model.visible, "\n\n");
    rv_buf_add_str(&v->model.visible, v->model.visible.len > 0 ? part : text);
}

/* Without calls it is a structured agent's output itself, or a try at it. */
static bool is_shown(const rv_visit *v, rv_str text, bool has_calls)
{
    bool is_output = v->agent->output.schema && !has_calls;
    bool is_plan = v->planned && v->planned->part == PLANNED_PLAN;

    return v->agent->declared.doc && !is_output && !is_plan && !v->model.is_hidden && rv_utf8_valid(text, NULL);
}

void agent_visible_own(rv_visit *v, rv_str text, bool has_calls)
{
    if (!is_shown(v, text, has_calls))
        return;
    if (v->model.answer_at < v->model.visible.len && rv_str_trim(text).len > 0) { /* its own text is the answer */
        rv_buf_truncate(&v->model.visible, v->model.answer_at);
        v->model.answer_at = SIZE_MAX;
    }
    add(v, text);
}

/* An answer that broke off concludes nothing: the text of the asked agents stays. */
void agent_visible_partial(rv_visit *v)
{
    if (is_shown(v, rv_buf_str(&v->partial), false))
        add(v, rv_buf_str(&v->partial));
    rv_buf_clear(&v->partial);
}

void agent_visible_child(rv_visit *v, const rv_visit *child, bool failed)
{
    enum rv_child_text how = child_text_of(v);
    rv_str text = rv_buf_str(&child->model.visible);

    if (v->agent->output.schema || child->agent->output.schema || how == RV_CHILD_TEXT_PARENT ||
        rv_str_trim(text).len == 0)
        return;
    if (how == RV_CHILD_TEXT_FINAL && v->model.answer_at == SIZE_MAX)
        v->model.answer_at = v->model.visible.len;
    add(v, text);
    v->model.is_hidden = how == RV_CHILD_TEXT_CHILD && !failed && !v->agent->session.child_text_resets;
}

bool agent_visible_is_hidden(const rv_visit *v)
{
    return v->shared->rules >= RV_RULES_2 && v->agent->declared.doc && (v->model.is_hidden || v->shared->is_hidden);
}

bool agent_visible_hides_child(const rv_visit *v)
{
    return v->shared->is_hidden || child_text_of(v) == RV_CHILD_TEXT_PARENT;
}

/* Its id is unique among those of the calls: no provider gives such ids, and an agent that was asked more than once was
 * asked by different calls. */
static int output_id(const rv_visit *v, rv_buf *id, rv_err **err)
{
    const struct rv_origin *o = v->shared->origin;

    rv_buf_printf(id, "%s_structured_output", v->agent->declared.doc->name);
    if (o)
        rv_buf_printf(id, "_%s", o->parent_tool_call_id);
    return rv_buf_check(id, "the id of an output", err);
}

int agent_visible_output(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf id = RV_BUF_INIT(RV_JSON_MAX_BYTES), text = RV_BUF_INIT(RV_EFFECTS_MAX_TEXT);

    if (!v->agent->declared.doc || !v->agent->output.schema || !v->output || v->told_output)
        return 0;
    v->told_output = true;
    int rc = output_id(v, &id, err);
    struct rv_effect *e =
        rc < 0 ? NULL
               : rv_visit_emit(v, out, RV_EMIT_TOOL_RESULT, RV_M_TEXT("tool", v->agent->declared.doc->name),
                               RV_M_STR("step_id", rv_buf_str(&id)), RV_M_TEXT("status", "success"),
                               RV_M_BOOL("structured", true), RV_M_OF(VALUE, "result", visit_answer(v)));
    rv_buf_fini(&id);
    if (!e)
        return rc;
    rv_json_write(visit_answer(v), &text);
    rc = rv_buf_check(&text, "the output of an agent", err);
    e->call_id = v->model.call_id;
    e->request = rv_buf_steal(&text, &e->request_len);
    rv_buf_fini(&text);
    return rc;
}

#define BLANK_LINE "\n\n" /* between the parts */

/* The text of a message of the model that asks for tools; empty: it has none. */
static rv_str text_before_calls(const rv_visit *v, size_t at)
{
    json_object *message = json_object_array_get_idx(v->model.messages, at), *part = NULL;

    if (!rv_json_get_arr(message, "tool_calls") || !json_object_object_get_ex(message, "content", &part))
        return (rv_str){NULL, 0};
    return rv_str_trim(rv_json_str(part));
}

static bool is_apart(rv_str visible, size_t at)
{
    return at == visible.len || (visible.len - at >= 2 && memcmp(visible.ptr + at, BLANK_LINE, 2) == 0);
}

/* Where it stands as a part of its own; false: it was not shown. */
static bool find_part(rv_str visible, size_t from, rv_str part, size_t *at)
{
    for (size_t i = from; part.len > 0 && i + part.len <= visible.len; i++) {
        bool begins = i == 0 || rv_str_trim((rv_str){visible.ptr, i}).len == 0 ||
                      (i >= 2 && memcmp(visible.ptr + i - 2, BLANK_LINE, 2) == 0);
        if (begins && memcmp(visible.ptr + i, part.ptr, part.len) == 0) {
            size_t end = i + part.len;
            while (end < visible.len && !is_apart(visible, end) && rv_str_trim((rv_str){visible.ptr + end, 1}).len == 0)
                end++;
            if (is_apart(visible, end)) {
                *at = i;
                return true;
            }
        }
    }
    return false;
}

static bool tells_apart(const rv_visit *v)
{
    return v->shared->rules >= RV_RULES_2 && !v->agent->output.schema && v->model.messages;
}

void agent_row_before_calls(struct rows *r, size_t turn)
{
    rv_str visible = rv_buf_str(&r->v->model.visible), part;
    size_t at = 0;

    if (!tells_apart(r->v) || !find_part(visible, r->visible_at, part = text_before_calls(r->v, turn), &at))
        return;
    r->visible_at = at + part.len;
    agent_row_begin(r, RV_MESSAGE_ASSISTANT, r->v->now_us);
    agent_row_content(r, part);
    rv_jw *w = agent_row_json(r, &r->metadata);
    rv_jw_kv_bool(w, "before_calls", true); /* it is not the answer */
    rv_jw_obj_end(w);
    agent_row_end(r);
}

static void add_part(rv_buf *out, rv_str text)
{
    rv_str part = rv_str_trim(text);

    if (part.len == 0)
        return;
    if (out->len > 0)
        rv_buf_puts(out, BLANK_LINE);
    rv_buf_add_str(out, part);
}

void agent_rows_answer(const rv_visit *v, rv_buf *out)
{
    rv_str visible = rv_buf_str(&v->model.visible);
    size_t from = 0, n = v->model.messages ? json_object_array_length(v->model.messages) : 0;

    for (size_t i = 0; tells_apart(v) && i < n; i++) {
        rv_str part = text_before_calls(v, i);
        size_t at = 0;
        if (!find_part(visible, from, part, &at))
            continue;
        add_part(out, (rv_str){visible.ptr + from, at - from});
        from = at + part.len;
    }
    if (from == 0)
        rv_buf_add_str(out, visible);
    else
        add_part(out, (rv_str){visible.ptr + from, visible.len - from});
}
