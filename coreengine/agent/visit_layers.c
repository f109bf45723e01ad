/* What stands before the prompt of a declared agent: its system prompt, the instructions of this request, and what was
 * said before. The same for every provider and every turn. */
#include "coreengine/agent/agent_internal.h"

#define MAX_INSTRUCTIONS ((size_t)256 << 10)

/* Who asks, where no conversation says it. */
static struct rv_conversation stand_in(const rv_visit *v)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(v->env);

    return (struct rv_conversation){
        .context = {.user_id = rv_envelope_user(v->env), .tenant_id = "default", .session_id = f->session_id}};
}

static bool wants_history(const rv_visit *v, const struct rv_conversation *c)
{
    bool joins = v->agent->session.joins || v->shared->origin; /* one that is asked sees what the asking one sees */

    return c && c->history && joins && v->agent->declared.doc->context_token_budget >= 0 &&
           json_object_array_length(c->history) > 0;
}

int rv_visit_write_layers(const rv_visit *v, rv_jw *w, rv_err **err)
{
    const struct rv_conversation *c = v->shared->conversation;
    const struct rv_conversation made = c ? (struct rv_conversation){0} : stand_in(v);
    rv_buf text = RV_BUF_INIT(MAX_INSTRUCTIONS);

    if (!v->agent->declared.doc)
        return 0;
    /* What stands in a request also decides what it can cost at most. */
    bool can_look_up = v->shared->rules < RV_RULES_2 || rv_agentdoc_names_tool(v->agent->declared.doc, RV_LOOKUP_TOOL);
    rv_instructions_write(c ? c : &made, v->agent->declared.doc->name, can_look_up, v->started_us, &text);
    int rc = rv_buf_check(&text, "instructions", err);
    if (rc == 0) {
        if (v->agent->model.system[0])
            rv_jw_kv_text(w, "system", v->agent->model.system);
        rv_jw_kv_str(w, "instructions", rv_buf_str(&text));
        if (wants_history(v, c))
            rv_jw_kv_value(w, "history", c->history);
    }
    rv_buf_fini(&text);
    return rc;
}
