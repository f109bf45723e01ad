/* Actions: results of tools that are meant for the observer, marked with `_action_event`. They become an event, never
 * text. An observation may name the session, and an agent may say that it is done or gives up. */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TYPE       64
#define MAX_NAME_CHARS 120 /* of what a session is called, as the tool `action` has it */

static int bad_marker(rv_visit *v, size_t index, const char *what, struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1024);
    rv_jw w;

    rv_buf_printf(&text, "tool \"%.*s\" gave an action that is none: %s",
                  RV_STR_ARG(rv_utf8_cut(rv_step_tool(v, index), 200)), what);
    int rc = rv_buf_check(&text, "a warning", err);
    if (rc == 0 && rv_emit_begin(v->shared, out, RV_EMIT_WARNING, v->agent->index, v->visit_no, v->now_us, &w)) {
        rv_jw_kv_str(&w, "message", rv_buf_str(&text));
        rv_emit_end(out, &w);
    }
    rv_buf_fini(&text);
    return rc;
}

/* --- observations: what is said of them has to make sense, whatever tool says it --- */

/* What a session may be called: one line that says something. */
static bool is_name(json_object *value)
{
    rv_str text = rv_json_str(value);
    size_t chars = 0;

    if (!json_object_is_type(value, json_type_string) || rv_str_trim(text).len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < ' ' || c == 0x7f)
            return false;
        chars += (c & 0xc0) != 0x80;
    }
    return chars <= MAX_NAME_CHARS;
}

static bool is_number_within(json_object *value, double most)
{
    double n = json_object_get_double(value);

    return rv_json_is_number(value) && n >= 0 && n <= most;
}

static bool is_risk_level(json_object *value)
{
    static const char *const words[] = {"low", "moderate", "high", "critical"};

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(rv_json_str(value), words[i]))
            return true;
    return false;
}

/* What is wrong with it, or NULL. */
static const char *observation_fault(json_object *payload)
{
    json_object *part = NULL;

    if (!payload)
        return NULL;
    if (json_object_object_get_ex(payload, "confidence", &part) && part && !is_number_within(part, 1))
        return "confidence must be a number from 0 to 1";
    if (json_object_object_get_ex(payload, "risk_score", &part) && part &&
        !(rv_json_is_int(part) && is_number_within(part, 100)))
        return "risk_score must be a whole number from 0 to 100";
    if (json_object_object_get_ex(payload, "risk_level", &part) && part && !is_risk_level(part))
        return "risk_level must be low, moderate, high or critical";
    if (json_object_object_get_ex(payload, "session_name", &part) && part && !is_name(part))
        return "session_name must be one line of 1 to 120 characters";
    return NULL;
}

static void tell(rv_visit *v, size_t index, const char *type, json_object *payload, struct rv_effects *out)
{
    char scratch[48];
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, RV_EMIT_ACTION, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_text(&w, "action_type", type);
    rv_jw_key(&w, "payload");
    if (payload) {
        rv_jw_value(&w, payload);
    } else {
        rv_jw_obj(&w);
        rv_jw_obj_end(&w);
    }
    rv_jw_kv_str(&w, "tool", rv_step_tool(v, index));
    rv_jw_kv_str(&w, "tool_call_id", rv_step_id(v, index, scratch, sizeof scratch));
    rv_emit_end(out, &w);
}

/* Only the stage's own agent speaks for the session. */
static int name_session(rv_visit *v, json_object *payload, rv_err **err)
{
    json_object *name = NULL;

    if (!payload || v->shared->origin || !json_object_object_get_ex(payload, "session_name", &name))
        return 0;
    rv_str text = rv_str_trim(rv_json_str(name));
    if (text.len == 0) /* null */
        return 0;
    free(v->session_name);
    v->session_name = rv_str_dup(text);
    return v->session_name ? 0 : RV_FAIL(err, RV_E_NOMEM, "name a session");
}

static void end_routing(rv_visit *v, const char *type, json_object *payload)
{
    const char *why = "";

    if (v->shared->origin)
        return;
    if (strcmp(type, "complete") == 0)
        rv_routing_complete(&v->routing);
    if (strcmp(type, "escalate") == 0) {
        if (!payload || !rv_json_get_text(payload, "reason", &why))
            why = "";
        rv_routing_escalate(&v->routing, why);
    }
}

int rv_visit_action(rv_visit *v, size_t index, json_object *entry, struct rv_effects *out, rv_err **err)
{
    json_object *data = rv_json_get_obj(entry, "data"), *payload = NULL;
    const char *type = NULL;
    bool is_action = false;

    if (!data || !rv_json_get_bool(data, "_action_event", &is_action) || !is_action)
        return 0;
    if (!rv_json_get_text(data, "action_type", &type) || !type[0] || strlen(type) > MAX_TYPE)
        return bad_marker(v, index, "action_type must be a short text", out, err);
    if (json_object_object_get_ex(data, "payload", &payload) && payload &&
        !json_object_is_type(payload, json_type_object))
        return bad_marker(v, index, "payload must be an object", out, err);
    bool observes = strcmp(type, "observation") == 0;
    const char *fault = observes ? observation_fault(payload) : NULL;
    if (fault)
        return bad_marker(v, index, fault, out, err);
    if (observes && v->agent->declared.doc && v->agent->declared.doc->observation_mode == RV_OBSERVATION_DISABLED)
        return 0; /* observations of such an agent emit no event */
    tell(v, index, type, payload, out);
    end_routing(v, type, payload);
    return observes ? name_session(v, payload, err) : 0;
}
