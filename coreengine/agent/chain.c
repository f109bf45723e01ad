/* The chained tool: receives the output of a structured agent, once, without asking the model again. The output is kept
 * whatever the tool does: a tool that is missing, fails or answers nonsense gives a separate result. */
#include "coreengine/agent/tools_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define CHAINED "_chained" /* its result is the output under the agent's output_key with this behind it */

/* With a map, members that it does not name and that the tool does not take are not for the tool. */
static bool is_left_out(const rv_visit *v, const struct rv_tool_info *info, const char *key)
{
    json_object *map = v->agent->tools.chained_map, *takes;
    bool more = true;

    if (v->shared->rules < RV_RULES_4 || !map || !info || !info->input_json ||
        json_object_object_get_ex(map, key, NULL))
        return false;
    takes = rv_json_get_obj(info->input_json, "properties");
    return rv_json_get_bool(info->input_json, "additionalProperties", &more) && !more &&
           !(takes && json_object_object_get_ex(takes, key, NULL));
}

/* A copy of the output with the members that chained_map names under the tool's names; the caller's. A null goes along
 * unless the tool's schema says that the parameter may be left out and may not be null. */
static int arguments(const rv_visit *v, const struct rv_tool_info *info, json_object **out, rv_err **err)
{
    json_object *map = v->agent->tools.chained_map, *args = NULL, *given = NULL;
    int rc = rv_json_dup(visit_answer(v), &given, err);

    if (rc < 0)
        return rc;
    args = json_object_new_object();
    rc = args ? 0 : RV_FAIL(err, RV_E_NOMEM, "call a chained tool");
    json_object_object_foreach (given, key, value) {
        const char *to = key;
        if (is_left_out(v, info, key))
            continue;
        if (rc == 0 && map && !rv_json_get_text(map, key, &to))
            to = key;
        if (rc == 0)
            rc = rv_json_set_ref(args, to, value, err);
    }
    json_object_put(given);
    if (rc == 0 && info && info->input_json)
        agent_output_drop_nulls(info->input_json, args);
    if (rc < 0) {
        json_object_put(args);
        return rc;
    }
    *out = args;
    return 0;
}

/* Its result is there: kept with the rows and the outputs. Takes result. */
static int settle(rv_visit *v, json_object *result, struct rv_effects *out, rv_err **err)
{
    char id[RV_UUID_MAX];
    rv_buf key = RV_BUF_INIT(4096);

    v->chained = result;
    v->phase = PHASE_SETTLE;
    visit_uuid(v, "chained_call", 0, id);
    rv_buf_printf(&key, "%s%s", v->agent->output.key, CHAINED);
    int rc = rv_buf_check(&key, "an output key", err);
    if (rc == 0)
        rc = rv_envelope_set_output(v->env, rv_buf_str(&key), result, err);
    rv_buf_fini(&key);
    if (rc == 0)
        rc = visit_keep_chain(v, id, out, err);
    if (rc == 0) {
        const char *status = "success", *text = NULL;
        if (!rv_json_get_text(result, "status", &status))
            status = "success";
        bool has_error = rv_json_get_text(result, "error", &text);
        rv_visit_emit(v, out, RV_EMIT_TOOL_RESULT, RV_M_IF(v->last_call, RV_M_INT("call_id", v->last_call)),
                      RV_M_TEXT("tool", v->agent->tools.chained), RV_M_TEXT("step_id", id), RV_M_TEXT("status", status),
                      RV_M_BOOL("chained", true), RV_M_IF(has_error, RV_M_PREVIEW("error", rv_str_of(text))),
                      RV_M_ARGUMENTS(v, visit_answer(v)), RV_M_RESULT(v, result, v->last_call));
    }
    return rc;
}

static int make_error(const char *why, json_object **out, rv_err **err)
{
    json_object *result = json_object_new_object();
    int rc = result ? rv_json_set_text(result, "status", "error", err) : RV_FAIL(err, RV_E_NOMEM, "end a chained call");

    if (rc == 0)
        rc = rv_json_set_text(result, "error", why, err);
    if (rc < 0) {
        json_object_put(result);
        return rc;
    }
    *out = result;
    return 0;
}

static int failed(rv_visit *v, const char *why, struct rv_effects *out, rv_err **err)
{
    json_object *result = NULL;
    int rc = make_error(why, &result, err);

    v->last_call = v->chain_call;
    return rc < 0 ? rc : settle(v, result, out, err);
}

/* May it be called with that? Else why says it. */
static int check(const rv_visit *v, const struct rv_tool_info *info, json_object *args, rv_buf *why, rv_err **err)
{
    rv_err *cause = NULL;

    if (!info) {
        rv_buf_printf(why, "there is no tool \"%s\"", v->agent->tools.chained);
        return 0;
    }
    bool is_gated = v->shared->pipeline->execution.require_confirmation_for_destructive &&
                    rv_risk_needs_confirmation(rv_tool_risk(info));
    if (is_gated || (info->confirm && v->shared->rules >= RV_RULES_10)) {
        rv_buf_printf(why, "tool \"%s\" needs a person's approval, which a chained call %s ask for",
                      v->agent->tools.chained, visit_cannot(v));
        return 0;
    }
    if (agent_tool_is_refused(v, rv_str_of(v->agent->tools.chained), why))
        return 0;
    int rc = info->input ? rv_schema_check(info->input, args, &cause) : 0;
    if (rc < 0 && !rv_err_is(cause, RV_E_NOMEM))
        rv_buf_printf(why, "the output does not fit tool \"%s\": %s", v->agent->tools.chained, rv_err_text(cause));
    bool no_memory = rc < 0 && rv_err_is(cause, RV_E_NOMEM);
    rv_err_free(cause);
    return no_memory ? RV_FAIL(err, RV_E_NOMEM, "check a chained call") : 0;
}

static int call_tool(rv_visit *v, const struct rv_tool_info *info, json_object *args, struct rv_effects *out,
                     rv_err **err)
{
    const struct rv_execution_config *x = &v->shared->pipeline->execution;
    rv_buf request = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    char id[RV_UUID_MAX];

    rv_json_write(args, &request);
    visit_uuid(v, "chained_call", 0, id); /* the key: once, however often it is tried */
    v->attempt = 1;
    const struct visit_call call = {.kind = RV_EFFECT_CALL_TOOL,
                                    .copy_name = rv_str_of(v->agent->tools.chained),
                                    .timeout_ms = info->timeout_ms > 0 ? info->timeout_ms : x->tool_timeout_ms,
                                    .effect_class = rv_tool_effect(info),
                                    .key = agent_tools_have_keys(v) ? id : NULL};
    int rc = agent_visit_call(v, &call, &request, out, err);
    if (rc < 0 || !v->waiting_for)
        return rc;
    v->chain_call = v->waiting_for;
    rv_visit_emit(v, out, RV_EMIT_TOOL_CALL_START, RV_M_INT("call_id", v->waiting_for),
                  RV_M_TEXT("tool", v->agent->tools.chained), RV_M_TEXT("step_id", id), RV_M_BOOL("chained", true),
                  RV_M_ARGUMENTS(v, args));
    return 0;
}

/* --- hooks around it --- */

static int show_call(rv_visit *v, json_object *shown, rv_err **err)
{
    const struct tool_hooks *h = &v->chain_hooks;
    char id[RV_UUID_MAX];

    visit_uuid(v, "chained_call", 0, id);
    int rc = rv_json_set_text(shown, "tool", v->agent->tools.chained, err);
    if (rc == 0)
        rc = rv_json_set_text(shown, "step_id", id, err);
    if (rc == 0)
        rc = rv_json_set_ref(shown, "arguments", h->arguments, err);
    if (rc == 0 && h->side == HOOKS_AFTER)
        rc = rv_json_set_ref(shown, "result", h->entry, err);
    return rc;
}

/* The next hook of this side, or what follows when all have looked. */
static int go_on(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    struct tool_hooks *h = &v->chain_hooks;
    enum hook_place place = h->side == HOOKS_BEFORE ? BEFORE_TOOL : AFTER_TOOL;

    if (h->at < agent_hooks_of(v, place)->n) {
        json_object *shown = json_object_new_object();
        int rc = shown ? show_call(v, shown, err) : RV_FAIL(err, RV_E_NOMEM, "show a call to a hook");
        if (rc == 0)
            rc = agent_hooks_ask(v, place, h->at, shown, out, err);
        json_object_put(shown);
        return rc;
    }
    if (place == BEFORE_TOOL) {
        h->side = HOOKS_PASSED;
        return call_tool(v, visit_tool(v, rv_str_of(v->agent->tools.chained)), h->arguments, out, err);
    }
    json_object *result = h->entry;
    h->entry = NULL;
    h->side = HOOKS_DONE;
    return settle(v, result, out, err);
}

/* Takes result: what the call came to. */
static int came(rv_visit *v, json_object *result, struct rv_effects *out, rv_err **err)
{
    struct tool_hooks *h = &v->chain_hooks;

    json_object_put(h->entry);
    h->entry = result;
    h->side = HOOKS_AFTER;
    h->at = 0;
    return go_on(v, out, err);
}

static int replace_arguments(rv_visit *v, json_object *arguments, rv_err **err)
{
    struct tool_hooks *h = &v->chain_hooks;
    const struct rv_tool_info *info = visit_tool(v, rv_str_of(v->agent->tools.chained));
    rv_err *cause = NULL;
    int rc = info->input ? rv_schema_check(info->input, arguments, &cause) : 0;

    if (rc < 0) {
        rc = RV_WRAP(&cause, rc, "its arguments do not fit tool \"%s\"", v->agent->tools.chained);
        RV_IGNORE(rc, "the chain carries it");
        return agent_hooks_fail(v, BEFORE_TOOL, h->at, cause, err);
    }
    json_object_put(h->arguments);
    h->arguments = json_object_get(arguments);
    return 0;
}

static int blocked(rv_visit *v, enum hook_place place, rv_str reason, struct rv_effects *out, rv_err **err)
{
    rv_buf why = RV_BUF_INIT(8192);

    rv_buf_printf(&why, "hook \"%.200s\" blocked it: %.*s", agent_hooks_of(v, place)->items[v->chain_hooks.at],
                  RV_STR_ARG(reason));
    int rc = rv_buf_check(&why, "why a call is blocked", err);
    if (rc == 0)
        rc = failed(v, rv_buf_cstr(&why), out, err);
    rv_buf_fini(&why);
    return rc;
}

int visit_chain_hook_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    struct tool_hooks *h = &v->chain_hooks;
    enum hook_place place = h->side == HOOKS_BEFORE ? BEFORE_TOOL : AFTER_TOOL;
    struct hook_answer answer;
    int rc = agent_hooks_read(v, place, h->at, ev, &answer, err);

    if (rc <= 0)
        return rc;
    rc = 0;
    v->last_call = v->chain_call;
    if (answer.action == HOOK_BLOCKS) {
        rc = blocked(v, place, answer.reason, out, err);
    } else if (answer.action == HOOK_ANSWERS) {
        rc = came(v, json_object_get(answer.value), out, err);
    } else {
        if (answer.action == HOOK_REPLACES && place == BEFORE_TOOL) {
            rc = replace_arguments(v, answer.value, err);
        } else if (answer.action == HOOK_REPLACES) {
            json_object_put(h->entry);
            h->entry = json_object_get(answer.value);
        }
        h->at++;
        if (rc == 0 && v->phase != PHASE_FAILED)
            rc = go_on(v, out, err);
    }
    json_object_put(answer.json);
    return rc;
}

int visit_chain(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf why = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *args = NULL;

    v->phase = PHASE_SETTLE;
    if (v->confirm_message || v->result.outcome == RV_OUTCOME_CLARIFY || v->result.outcome == RV_OUTCOME_CONFIRM)
        return 0; /* a person is asked first, and then the stage works again */
    if (!v->agent->tools.chained[0] || !v->agent->output.schema ||
        !json_object_is_type(visit_answer(v), json_type_object))
        return 0;
    const struct rv_tool_info *info = visit_tool(v, rv_str_of(v->agent->tools.chained));
    v->phase = PHASE_CHAIN;
    int rc = visit_keep_rows(v, RV_TURN_COMPLETED, out, err); /* first: the output outlives whatever happens now */
    if (rc == 0)
        rc = agent_visible_output(v, out, err);
    if (rc == 0)
        rc = arguments(v, info, &args, err);
    if (rc == 0)
        rc = check(v, info, args, &why, err);
    if (rc == 0 && why.len == 0 && v->now_us >= v->deadline_us)
        rv_buf_printf(&why, "no time was left to call tool \"%s\"", v->agent->tools.chained);
    if (rc == 0)
        rc = rv_buf_check(&why, "why a tool is not called", err);
    if (rc == 0 && why.len == 0) {
        v->chain_hooks.side = HOOKS_BEFORE;
        v->chain_hooks.arguments = json_object_get(args);
        rc = go_on(v, out, err);
    } else if (rc == 0) {
        rc = failed(v, rv_buf_cstr(&why), out, err);
    }
    json_object_put(args);
    rv_buf_fini(&why);
    return rc;
}

int visit_chain_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    const struct rv_json_opts opts = {.refuse_big_ints = visit_refuses_big_ints(v), .what = "tool result"};
    json_object *result = NULL, *held = NULL;
    rv_err *cause = NULL;
    rv_buf why = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    v->last_call = v->chain_call;
    if (ev->unknown)
        rv_buf_puts(&why, "nobody knows whether the tool ran: the engine died while it was called");
    else if (ev->failed)
        rv_buf_add_str(&why, ev->error);
    else if (ev->asks)
        rv_buf_puts(&why, "the tool asks a person before it can answer, which a chained call does not wait for");
    if (why.rc == 0 && why.len == 0 && rv_json_parse(ev->reply, &opts, &result, &cause) < 0)
        rv_buf_puts(&why, rv_err_text(cause));
    int rc = rv_err_is(cause, RV_E_NOMEM) ? RV_FAIL(err, RV_E_NOMEM, "read a chained result")
                                          : rv_buf_check(&why, "a chained failure", err);
    rv_err_free(cause);
    if (rc == 0 && why.len > 0) {
        rc = make_error(rv_buf_cstr(&why), &result, err);
        if (rc == 0)
            rc = came(v, result, out, err);
    } else if (rc == 0 && json_object_is_type(result, json_type_object)) {
        rc = came(v, result, out, err);
    } else if (rc == 0) { /* anything else is put into an object */
        held = json_object_new_object();
        rc = held ? rv_json_set_ref(held, "result", result, err) : RV_FAIL(err, RV_E_NOMEM, "end a chained call");
        json_object_put(result);
        if (rc == 0)
            rc = came(v, held, out, err);
        else
            json_object_put(held);
    }
    rv_buf_fini(&why);
    return rc;
}
