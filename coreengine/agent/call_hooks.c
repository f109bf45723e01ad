/* Hooks around the calls of a visit: asking one, and reading what it answers. The answer is one object:
 *
 *     {action: "continue"} or {}              the call goes on as it is
 *     {action: "replace", <what is shown>}    it goes on with that in place of what was shown
 *     {action: "answer", <a result>}          before a call: that is its result, and the call is not made
 *     {action: "block", reason}               it is not made, or its result is not used
 *
 * The name of the second member depends on the place, see `places`. Anything else fails the visit. */
#include "coreengine/agent/agent_internal.h"
#include "envelope/envelope.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_SHOWN  (2 * AGENT_MAX_REQUEST) /* bytes that one hook is shown: a request with its escapes */
#define MAX_REASON 2000                    /* bytes of a reason, in an error: half of what an error's text holds */

/* The members by which a hook gives a value; NULL: that action is not there. */
static const struct {
    const char *hook, *replaces, *answers;
} places[] = {
    [BEFORE_MODEL] = {"before_model", "request", "reply"},
    [AFTER_MODEL] = {"after_model", "reply", NULL},
    [BEFORE_TOOL] = {"before_tool", "arguments", "result"},
    [AFTER_TOOL] = {"after_tool", "result", NULL},
};
RV_EACH_HAS_ROW(places, N_HOOK_PLACES);

const struct rv_str_list *agent_hooks_of(const rv_visit *v, enum hook_place place)
{
    const struct rv_agent_hooks *hooks = &v->agent->hooks;

    switch (place) {
    case BEFORE_MODEL:
        return &hooks->before_model;
    case AFTER_MODEL:
        return &hooks->after_model;
    case BEFORE_TOOL:
        return &hooks->before_tool;
    case AFTER_TOOL:
    case N_HOOK_PLACES:
        break;
    }
    return &hooks->after_tool;
}

int agent_hooks_ask(rv_visit *v, enum hook_place place, size_t at, json_object *shown, struct rv_effects *out,
                    rv_err **err)
{
    const char *entry = agent_hooks_of(v, place)->items[at];
    const struct rv_entry_info *info =
        v->shared->catalog.entry(v->shared->catalog.self, RV_NAME_HOOK, rv_str_of(entry));
    struct visit_call call = {.kind = RV_EFFECT_CALL_HOOK,
                              .entry = RV_NAME_HOOK,
                              .name = entry,
                              .timeout_ms = info ? info->timeout_ms : 0,
                              .attempt = 1};
    rv_buf request = RV_BUF_INIT(MAX_SHOWN);
    rv_jw w = rv_jw_on(&request);
    int64_t last = v->last_call;

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "hook", places[place].hook);
    rv_jw_kv_text(&w, "stage", v->agent->name);
    rv_jw_kv_int(&w, "visit", v->visit_no);
    rv_jw_key(&w, "envelope");
    agent_hooks_write_view(v, info ? &info->sees : NULL, &w);
    json_object_object_foreach (shown, name, value)
        rv_jw_kv_value(&w, name, value);
    rv_jw_obj_end(&w);
    v->waiting_for = 0;
    int rc = agent_visit_call(v, &call, &request, out, err);
    v->last_call = last; /* events name the call that the hook looks at */
    return rc;
}

static int unknown_member(enum hook_place place, const char *name, const char *member, rv_err **cause)
{
    const char *const known[] = {"action", member ? member : "action"};
    const char *near = rv_nearest(rv_str_of(name), known, RV_COUNT(known));

    return RV_FAIL(cause, RV_E_INVALID, "%s: it answered \"%.*s\", which is neither action%s%s%s%s%s",
                   places[place].hook, RV_STR_ARG(rv_utf8_cut(rv_str_of(name), 60)), member ? " nor " : "",
                   member ? member : "", near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* The answer has the action and the member that goes with it, and nothing else. */
static int check_members(enum hook_place place, json_object *json, const char *action, const char *member,
                         rv_err **cause)
{
    json_object_object_foreach (json, name, value) {
        (void)value;
        if (strcmp(name, "action") != 0 && (!member || strcmp(name, member) != 0))
            return unknown_member(place, name, member, cause);
    }
    if (member && !json_object_object_get_ex(json, member, NULL))
        return RV_FAIL(cause, RV_E_INVALID, "%s: action \"%s\" needs a member \"%s\"", places[place].hook, action,
                       member);
    return 0;
}

static int read_value(enum hook_place place, const char *action, const char *member, struct hook_answer *out,
                      rv_err **cause)
{
    int rc = check_members(place, out->json, action, member, cause);

    if (rc < 0)
        return rc;
    json_object_object_get_ex(out->json, member, &out->value);
    if (!json_object_is_type(out->value, json_type_object))
        return RV_FAIL(cause, RV_E_INVALID, "%s: its %s must be an object, not %s", places[place].hook, member,
                       rv_json_type_text(out->value));
    return 0;
}

static int read_reason(enum hook_place place, struct hook_answer *out, rv_err **cause)
{
    json_object *reason = NULL;
    int rc = check_members(place, out->json, "block", "reason", cause);

    if (rc < 0)
        return rc;
    json_object_object_get_ex(out->json, "reason", &reason);
    out->reason = rv_utf8_cut(rv_str_trim(rv_json_str(reason)), MAX_REASON);
    if (out->reason.len == 0)
        return RV_FAIL(cause, RV_E_INVALID, "%s: its reason must be a text that says why", places[place].hook);
    return 0;
}

static int read_action(enum hook_place place, struct hook_answer *out, rv_err **cause)
{
    const char *action = NULL;

    if (json_object_object_length(out->json) == 0)
        return 0;
    if (!rv_json_get_text(out->json, "action", &action)) {
        json_object_object_foreach (out->json, name, value) {
            (void)value;
            if (strcmp(name, "action") != 0)
                return unknown_member(place, name, NULL, cause);
        }
        return RV_FAIL(cause, RV_E_INVALID, "%s: its action must be a text", places[place].hook);
    }
    if (strcmp(action, "continue") == 0)
        return check_members(place, out->json, action, NULL, cause);
    if (strcmp(action, "replace") == 0) {
        out->action = HOOK_REPLACES;
        return read_value(place, action, places[place].replaces, out, cause);
    }
    if (strcmp(action, "block") == 0) {
        out->action = HOOK_BLOCKS;
        return read_reason(place, out, cause);
    }
    if (strcmp(action, "answer") == 0 && places[place].answers) {
        out->action = HOOK_ANSWERS;
        return read_value(place, action, places[place].answers, out, cause);
    }
    return RV_FAIL(cause, RV_E_INVALID, "%s: it answered action \"%.*s\": continue, replace, %sblock are known",
                   places[place].hook, RV_STR_ARG(rv_utf8_cut(rv_str_of(action), 60)),
                   places[place].answers ? "answer, " : "");
}

int agent_hooks_fail(rv_visit *v, enum hook_place place, size_t at, rv_err *cause, rv_err **err)
{
    int rc = RV_WRAP(&cause, rv_err_code(cause), "hook \"%s\" of agent \"%s\"", agent_hooks_of(v, place)->items[at],
                     v->agent->name);

    RV_IGNORE(rc, "the chain carries it");
    return visit_fail_cause(v, rv_error_hook, cause, err);
}

int agent_hooks_read(rv_visit *v, enum hook_place place, size_t at, const struct rv_event *ev, struct hook_answer *out,
                     rv_err **err)
{
    const struct rv_json_opts opts = {.what = "answer of a capability"};
    rv_err *cause = NULL;

    *out = (struct hook_answer){.action = HOOK_CONTINUES};
    if (ev->failed) {
        bool timeout = rv_error_is(ev->error_type, rv_error_timeout);
        return rv_visit_fail(v, timeout ? ev->error_type : rv_error_hook, err,
                             "hook \"%s\" of agent \"%s\" failed: %.*s", agent_hooks_of(v, place)->items[at],
                             v->agent->name, RV_STR_ARG(ev->error));
    }
    if (rv_str_trim(ev->reply).len == 0)
        return 1; /* no bytes: nothing to change (W26) */
    int read = rv_json_parse(ev->reply, &opts, &out->json, &cause);
    if (read == 0 && out->json && !json_object_is_type(out->json, json_type_object))
        read = RV_FAIL(&cause, RV_E_INVALID, "it answered a value of type %s, not an object",
                       rv_json_type_text(out->json));
    if (read == 0 && out->json)
        read = read_action(place, out, &cause);
    if (read == 0)
        return 1;
    json_object_put(out->json);
    *out = (struct hook_answer){.action = HOOK_CONTINUES};
    return agent_hooks_fail(v, place, at, cause, err);
}
