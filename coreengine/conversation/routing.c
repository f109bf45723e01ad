/* Which agent serves the next message of a session: the state that the session keeps, and what changes it. Who chooses
 * an agent (the classifier) is not here. */
#include "coreengine/conversation/context.h"

#include <string.h>

static const char *const states[] = {
#define TEXT(n, text, meaning) text,
    RV_ROUTING_STATES(TEXT)
#undef TEXT
};

/* For readers of the state; nothing here is interpreted, least of all what a session hands back. */
static const char transitions[] =
    "{\"executing\":{\"on_complete\":\"idle\",\"on_escalate\":\"escalated\",\"on_max_turns\":"
    "\"re-evaluate\"},\"idle\":{\"on_message\":\"executing\"},\"escalated\":{\"on_resolve\":"
    "\"idle\"}}";

/* Another text is taken for IDLE. */
static enum rv_routing_state state_of(rv_str text)
{
    for (int i = 0; i < RV_N_ROUTING_STATES; i++)
        if (rv_str_is(text, states[i]))
            return (enum rv_routing_state)i;
    return RV_ROUTING_IDLE;
}

static void set_name(char out[RV_ROUTING_MAX_NAME], const char *text)
{
    rv_str cut = rv_utf8_cut(rv_str_of(text), RV_ROUTING_MAX_NAME - 1);

    if (cut.len > 0)
        memmove(out, cut.ptr, cut.len); /* one name of the state may become another */
    out[cut.len] = '\0';
}

static bool is_used_up(const struct rv_routing *r)
{
    return r->turn_count >= r->max_turns;
}

bool rv_routing_needs_classification(const struct rv_routing *r)
{
    return r->state == RV_ROUTING_IDLE || r->state == RV_ROUTING_REEVALUATE ||
           (r->state == RV_ROUTING_EXECUTING && is_used_up(r));
}

void rv_routing_activate(struct rv_routing *r, const char *agent, int64_t max_turns)
{
    set_name(r->active_agent, agent && agent[0] ? agent : r->fallback);
    r->state = RV_ROUTING_EXECUTING;
    r->turn_count = 0;
    if (max_turns > 0)
        r->max_turns = max_turns;
}

void rv_routing_increment(struct rv_routing *r)
{
    if (r->turn_count < INT64_MAX)
        r->turn_count++;
    /* An escalation ends when a person resolves it, however long that takes. */
    if (is_used_up(r) && r->state != RV_ROUTING_ESCALATED)
        r->state = RV_ROUTING_REEVALUATE;
}

void rv_routing_complete(struct rv_routing *r)
{
    r->state = RV_ROUTING_IDLE;
    set_name(r->active_agent, r->fallback);
}

void rv_routing_escalate(struct rv_routing *r, const char *why)
{
    bool is_first = r->state != RV_ROUTING_ESCALATED;

    if ((why && why[0]) || is_first) /* the fallback that gives up, too, says nothing new */
        set_name(r->escalation, why && why[0] ? why : r->active_agent);
    set_name(r->active_agent, r->fallback);
    r->state = RV_ROUTING_ESCALATED;
}

void rv_routing_resolve(struct rv_routing *r)
{
    if (r->state != RV_ROUTING_ESCALATED)
        return;
    r->escalation[0] = '\0';
    rv_routing_complete(r);
}

static void write_name(rv_jw *w, const char *key, const char *name)
{
    rv_jw_kv_text(w, key, name[0] ? name : NULL);
}

void rv_routing_write_json(const struct rv_routing *r, rv_jw *w)
{
    rv_jw_obj(w);
    write_name(w, "active_agent", r->active_agent);
    rv_jw_kv_text(w, "state", states[r->state]);
    rv_jw_kv_text(w, "target", "complete");
    rv_jw_kv_int(w, "turn_count", r->turn_count);
    rv_jw_kv_int(w, "max_turns", r->max_turns);
    write_name(w, "fallback", r->fallback);
    write_name(w, "escalation", r->escalation);
    write_name(w, "delegation", "");
    rv_jw_key(w, "transitions");
    rv_jw_raw(w, RV_STR_LIT(transitions));
    rv_jw_obj_end(w);
}

/* A value that is not a name (another type, empty, too long, with a NUL) leaves the old value. */
static void read_name(json_object *json, const char *key, char out[RV_ROUTING_MAX_NAME])
{
    json_object *v = NULL;
    rv_str text;

    if (!json_object_object_get_ex(json, key, &v))
        return;
    text = rv_json_str(v);
    if (text.len > 0 && text.len < RV_ROUTING_MAX_NAME && !memchr(text.ptr, 0, text.len) && rv_utf8_valid(text, NULL))
        set_name(out, text.ptr);
}

static void read_count(json_object *json, const char *key, int64_t *out)
{
    int64_t n;

    if (rv_json_get_int(json, key, &n) && n >= 0)
        *out = n;
}

void rv_routing_read_json(json_object *json, struct rv_routing *out)
{
    json_object *v = NULL;

    *out = RV_ROUTING_INIT;
    if (!json_object_is_type(json, json_type_object))
        return;
    read_name(json, "active_agent", out->active_agent);
    read_name(json, "fallback", out->fallback);
    read_name(json, "escalation", out->escalation);
    read_count(json, "turn_count", &out->turn_count);
    read_count(json, "max_turns", &out->max_turns);
    if (json_object_object_get_ex(json, "state", &v))
        out->state = state_of(rv_json_str(v));
}
