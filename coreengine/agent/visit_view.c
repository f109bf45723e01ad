/* What a hook, policy, mock or routing function is shown of the envelope: the parts it asked for, or all of them. */
#include "coreengine/agent/agent_internal.h"

#include <string.h>

static void write_interrupt(const rv_visit *v, rv_jw *w)
{
    struct rv_interrupt in = rv_envelope_interrupt(v->env);

    rv_jw_key(w, "interrupt");
    if (!in.exists) {
        rv_jw_null(w);
        return;
    }
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_interrupt_kind_text(in.kind));
    rv_jw_kv_text(w, "id", in.id);
    rv_jw_kv_text(w, "question", in.question);
    rv_jw_kv_text(w, "message", in.message);
    rv_jw_kv_value(w, "data", in.data);
    rv_jw_kv_value(w, "response", in.response);
    rv_jw_obj_end(w);
}

typedef json_object *(*map_get)(const rv_envelope *env, rv_str key, bool *found);

/* "outputs.plan", "metadata.x", "state.y": single members, gathered under their map. */
static void write_members(const rv_visit *v, const struct rv_str_list *sees, const char *map, map_get get, rv_jw *w)
{
    size_t len = strlen(map);
    bool open = false;

    for (size_t i = 0; i < sees->n; i++) {
        const char *item = sees->items[i];
        if (strncmp(item, map, len) != 0 || item[len] != '.')
            continue;
        bool found;
        json_object *value = get(v->env, rv_str_of(item + len + 1), &found);
        if (!open) {
            rv_jw_key(w, map);
            rv_jw_obj(w);
            open = true;
        }
        if (found)
            rv_jw_kv_value(w, item + len + 1, value);
    }
    if (open)
        rv_jw_obj_end(w);
}

static bool wants(const struct rv_str_list *sees, const char *part)
{
    if (!sees || !sees->is_set)
        return true;
    for (size_t i = 0; i < sees->n; i++)
        if (strcmp(sees->items[i], part) == 0)
            return true;
    return false;
}

void rv_visit_write_view(const rv_visit *v, const struct rv_str_list *sees, rv_jw *w)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(v->env);

    rv_jw_obj(w);
    if (wants(sees, "ids")) {
        rv_jw_kv_text(w, "envelope_id", f->envelope_id);
        rv_jw_kv_text(w, "request_id", f->request_id);
        rv_jw_kv_text(w, "user_id", f->user_id);
        rv_jw_kv_text(w, "session_id", f->session_id);
    }
    if (wants(sees, "raw_input"))
        rv_jw_kv_str(w, "raw_input", (rv_str){f->raw_input, f->raw_input_len});
    if (wants(sees, "iteration"))
        rv_jw_kv_int(w, "iteration", f->iteration);
    if (wants(sees, "counters")) {
        rv_jw_kv_int(w, "llm_call_count", f->llm_call_count);
        rv_jw_kv_int(w, "agent_hop_count", f->agent_hop_count);
    }
    if (wants(sees, "outputs")) {
        rv_jw_key(w, "outputs");
        rv_envelope_write_outputs(v->env, w);
    } else {
        write_members(v, sees, "outputs", rv_envelope_output, w);
    }
    if (wants(sees, "metadata")) {
        rv_jw_key(w, "metadata");
        rv_envelope_write_metadata(v->env, w);
    } else {
        write_members(v, sees, "metadata", rv_envelope_metadata, w);
    }
    if (wants(sees, "state")) {
        rv_jw_key(w, "state");
        rv_envelope_write_state_values(v->env, w);
    } else {
        write_members(v, sees, "state", rv_envelope_state_value, w);
    }
    if (wants(sees, "loop_feedback"))
        rv_jw_kv_value(w, "loop_feedback", rv_envelope_feedback(v->env));
    if (wants(sees, "prior_plans"))
        rv_jw_kv_value(w, "prior_plans", rv_envelope_prior_plans(v->env));
    if (wants(sees, "interrupt"))
        write_interrupt(v, w);
    rv_jw_obj_end(w);
}
