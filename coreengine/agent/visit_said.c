/* What people are shown of a turn, which is what is kept of it: the words of the agent and, in their place or beside
 * them, those of the agents that it asked. Parts are kept apart by a blank line. */
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

void rv_said_own(rv_visit *v, rv_str text)
{
    if (v->agent->doc && !v->talk.is_muted && rv_utf8_valid(text, NULL))
        add(v, text);
}

void rv_said_partial(rv_visit *v)
{
    rv_said_own(v, rv_buf_str(&v->partial));
    rv_buf_clear(&v->partial);
}

void rv_said_child(rv_visit *v, rv_str text, bool failed)
{
    if (v->agent->child_text == RV_CHILD_TEXT_PARENT || rv_str_trim(text).len == 0)
        return;
    add(v, text);
    v->talk.is_muted = v->agent->child_text == RV_CHILD_TEXT_CHILD && !failed && !v->agent->child_text_resets;
}
