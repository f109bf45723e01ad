/* Tools that the client calls (`client_tools`): they are offered like others, but the engine does not answer their
 * calls. The calls of a reply that are the client's come after the others; then the stage waits with one question that
 * lists them all, and the answer has their results. A call without one was not made, which the model is told. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_US   RV_US_PER_DAY /* a client that comes back later begins another turn */
#define NOT_MADE  "the client did not make this call"
#define MAX_WORDS ((size_t)1 << 20) /* bytes of what a client says went wrong: a model reads them; the rest is cut */

#define STEP_IS_SEEN "is_seen" /* member of a step: hooks have left its parameters as they are */

/* --- waiting --- */

static int is_clients(const rv_visit *v, size_t index, bool *yes, rv_err **err)
{
    struct step_judgement j;
    int rc = agent_step_judge(v, index, &j, err);

    *yes = rc == 0 && j.verdict == STEP_IS_CLIENTS;
    if (rc == 0)
        rv_buf_fini(&j.text);
    return rc;
}

/* The step at hand goes behind the others. */
static int put_last(rv_visit *v, rv_err **err)
{
    json_object *steps = v->tools.steps;
    int rc = rv_json_push_ref(steps, json_object_array_get_idx(steps, v->tools.at), err);

    if (rc == 0)
        rv_json_cut(steps, v->tools.at, 1);
    return rc;
}

/* A call behind it that is made or refused here comes first. *moved false: all that are left are the client's. */
static int move_back(rv_visit *v, bool *moved, rv_err **err)
{
    json_object *steps = v->tools.steps;
    size_t n = json_object_array_length(steps);
    bool yes = true;
    int rc = 0;

    for (size_t i = v->tools.at + 1; i < n && yes && rc == 0; i++)
        rc = is_clients(v, i, &yes, err);
    *moved = rc == 0 && !yes;
    return *moved ? put_last(v, err) : rc;
}

static int list_call(rv_visit *v, size_t index, json_object *calls, struct rv_effects *out, rv_err **err)
{
    json_object *call = json_object_new_object(), *parameters = agent_step_parameters(v, index);
    char scratch[48];
    rv_str id = agent_step_id(v, index, scratch, sizeof scratch);
    int rc = rv_json_push_take(calls, call, err);

    if (rc == 0)
        rc = RV_SET(call, err, RV_M_STR("id", id), RV_M_STR("tool", agent_step_tool(v, index)));
    if (rc == 0)
        rc = parameters ? rv_json_set_ref(call, "parameters", parameters, err)
                        : rv_json_set_take(call, "parameters", json_object_new_object(), err);
    if (rc < 0)
        return rc;
    rv_visit_emit(v, out, RV_EMIT_TOOL_CALL_START, RV_M_STR("tool", agent_step_tool(v, index)), RV_M_STR("step_id", id),
                  RV_M_INT("step_number", (int64_t)index + 1),
                  RV_M_INT("total_steps", (int64_t)json_object_array_length(v->tools.steps)), RV_M_BOOL("client", true),
                  RV_M_ARGUMENTS(v, parameters));
    return 0;
}

static int ask_client(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    json_object *data = json_object_new_object(), *calls = json_object_new_array();
    size_t n = json_object_array_length(v->tools.steps);
    rv_buf message = RV_BUF_INIT(256);
    int rc = data && calls ? 0 : RV_FAIL(err, RV_E_NOMEM, "wait for a client");

    for (size_t i = v->tools.at; i < n && rc == 0; i++)
        rc = list_call(v, i, calls, out, err);
    if (rc == 0)
        rc = RV_SET(data, err, RV_M_TEXT("reason", RV_CLIENT_TOOLS), RV_M_TEXT("stage", v->agent->name),
                    RV_M_OF(VALUE, RV_CLIENT_CALLS, calls));
    rv_buf_printf(&message, "the client has to make %zu call%s", n - v->tools.at, n - v->tools.at == 1 ? "" : "s");
    if (rc == 0)
        rc = rv_buf_check(&message, "a question", err);
    if (rc == 0)
        rc = visit_pause(
            v,
            &(struct visit_question){
                .kind = RV_INTERRUPT_AGENT_REVIEW, .text = rv_buf_str(&message), .data = data, .ttl_us = WAIT_US},
            RV_CLIENT_TOOLS, out, err);
    json_object_put(calls);
    json_object_put(data);
    rv_buf_fini(&message);
    return rc;
}

/* Hooks before a tool look at one call after the other; the client is asked when they have looked at all. *looks false:
 * they have. */
static int look(rv_visit *v, bool *looks, struct rv_effects *out, rv_err **err)
{
    json_object *step = json_object_array_get_idx(v->tools.steps, v->tools.at);
    struct tool_hooks *h = &v->tools.hooks;

    *looks = v->agent->hooks.before_tool.n > 0 && v->shared->rules >= RV_RULES_10 &&
             !rv_json_bool_or(step, STEP_IS_SEEN, false);
    if (!*looks)
        return 0;
    if (h->side == HOOKS_NOT_ASKED)
        return agent_step_hooks_before(v, v->tools.at, h, out, err);
    int rc = h->arguments ? rv_json_set_ref(step, "parameters", h->arguments, err) : 0;
    if (rc == 0)
        rc = rv_json_set_bool(step, STEP_IS_SEEN, true, err);
    agent_tool_hooks_fini(h);
    return rc < 0 ? rc : put_last(v, err);
}

int agent_client_calls_wait(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    bool moved = false, looks = false;
    int rc = move_back(v, &moved, err);

    if (rc == 0 && !moved)
        rc = look(v, &looks, out, err);
    return rc < 0 || moved || looks ? rc : ask_client(v, out, err);
}

/* --- the results --- */

/* What is not an object becomes one, as results of tools are objects. */
static void write_reply(json_object *content, rv_buf *out)
{
    json_object *parsed = NULL;
    rv_jw w = rv_jw_on(out);

    if (json_object_is_type(content, json_type_string) &&
        rv_json_parse(rv_json_str(content), NULL, &parsed,
                      RV_CODE_ONLY("text that is not JSON is a result, too; want of memory is told below")) ==
            RV_E_NOMEM)
        out->rc = RV_E_NOMEM;
    json_object *value = parsed ? parsed : content;
    if (json_object_is_type(value, json_type_object)) {
        rv_jw_value(&w, value);
    } else {
        rv_jw_obj(&w);
        rv_jw_kv_value(&w, "result", value);
        rv_jw_obj_end(&w);
    }
    json_object_put(parsed);
}

int agent_client_call_take(rv_visit *v, rv_buf *reply, struct rv_event *told, rv_err **err)
{
    char scratch[48];
    rv_str id = agent_step_id(v, v->tools.at, scratch, sizeof scratch);
    json_object *result = NULL, *content = NULL;
    const char *error = NOT_MADE;
    char *key = rv_str_dup(id);

    if (!key)
        return RV_FAIL(err, RV_E_NOMEM, "take the results of a client");
    json_object_object_get_ex(v->tools.client, key, &result);
    free(key);
    if (json_object_is_type(result, json_type_object) && !rv_json_get_text(result, "error", &error) &&
        json_object_object_get_ex(result, "content", &content)) {
        write_reply(content, reply);
        *told = (struct rv_event){.kind = RV_EVENT_TOOL_DONE, .reply = rv_buf_str(reply)};
    } else {
        rv_buf_add_str(reply, rv_utf8_cut(rv_str_of(error), MAX_WORDS));
        *told = (struct rv_event){.kind = RV_EVENT_TOOL_DONE, .failed = true, .error_type = rv_error_tool};
        told->error = rv_buf_str(reply);
    }
    return rv_buf_check(reply, "the result of a client", err);
}

int agent_client_calls_over(rv_visit *v, rv_err **err)
{
    json_object *messages = v->model.messages;

    if (!v->tools.client_text)
        return 0;
    int rc = agent_messages_add_user(v, rv_json_str(v->tools.client_text), err);
    if (rc < 0)
        return rc;
    messages = v->model.messages;
    json_object *said = json_object_array_get_idx(messages, json_object_array_length(messages) - 1);
    return rv_json_set_bool(said, RV_MESSAGE_IS_NEW, true, err);
}
