/* The conversation that a client of OpenAI brings, as rows of a new session: what its agent is told of then is what the
 * client has, with the calls of tools and what came of them. */
#include <string.h>

#include "coreengine/server/chats_internal.h"

static void add_row(struct rv_turn *turn, const char *type, rv_str content, rv_str calls, rv_str metadata)
{
    char id[RV_UUID_MAX];

    rv_uuid_make(rv_rand_system(), id);
    const struct rv_message m = {.id = id,
                                 .type = type,
                                 .has_content = content.ptr != NULL,
                                 .content = content,
                                 .tool_calls = calls,
                                 .metadata = metadata,
                                 .token_count = RV_UNSET,
                                 .input_tokens = RV_UNSET,
                                 .output_tokens = RV_UNSET,
                                 .cost_micro_usd = RV_UNSET,
                                 .latency_ms = RV_UNSET};
    rv_turn_add(turn, &m);
}

/* levels: of a row around it. *out NULL: a row cannot have it as JSON. RV_E_NOMEM only. */
static int parse(rv_str text, int levels, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_depth = RV_ROW_MAX_DEPTH - levels};

    return rv_json_try_parse(text, &opts, out, err);
}

/* {name, id, arguments}; with_arguments false: of the row of its result. */
static int write_call(json_object *call, const char *id, bool with_arguments, rv_buf *out, rv_err **err)
{
    rv_str text = rv_json_member_str(call, "arguments");
    json_object *arguments = NULL;
    rv_jw w = rv_jw_on(out);

    int rc = with_arguments ? parse(text, 1, &arguments, err) : 0;
    if (rc < 0)
        return rc;
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "name", rv_json_text_or(call, "name", ""));
    rv_jw_kv_text(&w, "id", rv_json_text_or(call, id, ""));
    if (with_arguments)
        rv_jw_key(&w, "arguments");
    if (with_arguments && json_object_is_type(arguments, json_type_object)) {
        rv_jw_value(&w, arguments);
    } else if (with_arguments) {
        rv_jw_obj(&w);
        if (!arguments && text.len > 0)
            rv_jw_kv_str(&w, "raw", text);
        rv_jw_obj_end(&w);
    }
    rv_jw_obj_end(&w);
    json_object_put(arguments);
    return rv_buf_check(out, "a call of a conversation", err);
}

/* What is not an object becomes one, as results of tools are objects. */
static int write_result(rv_str text, rv_buf *out, rv_err **err)
{
    json_object *value = NULL;
    rv_jw w = rv_jw_on(out);

    int rc = parse(text, 1, &value, err);
    if (rc < 0)
        return rc;
    if (json_object_is_type(value, json_type_object)) {
        rv_jw_value(&w, value);
    } else {
        rv_jw_obj(&w);
        if (value)
            rv_jw_kv_value(&w, "result", value);
        else
            rv_jw_kv_str(&w, "result", text);
        rv_jw_obj_end(&w);
    }
    json_object_put(value);
    return rv_buf_check(out, "a result of a conversation", err);
}

static int add_call(struct rv_turn *turn, json_object *call, json_object *result, rv_err **err)
{
    rv_buf calls = RV_BUF_INIT(RV_REQUEST_MAX_BYTES * 2), text = RV_BUF_INIT(RV_REQUEST_MAX_BYTES * 2);

    int rc = write_call(call, "id", true, &calls, err);
    if (rc == 0)
        add_row(turn, "tool_call", (rv_str){NULL, 0}, rv_buf_str(&calls), (rv_str){NULL, 0});
    rv_buf_clear(&calls);
    if (rc == 0)
        rc = write_call(result, "tool_call_id", false, &calls, err);
    if (rc == 0)
        rc = write_result(rv_json_member_str(result, "content"), &text, err);
    if (rc == 0)
        add_row(turn, "tool_response", rv_buf_str(&text), rv_buf_str(&calls), (rv_str){NULL, 0});
    rv_buf_fini(&calls);
    rv_buf_fini(&text);
    return rc;
}

/* The message there, and the results of its calls, which follow it one by one. *at: the last of them. */
static int add_message(struct rv_turn *turn, json_object *history, size_t *at, rv_err **err)
{
    json_object *message = json_object_array_get_idx(history, *at), *calls = rv_json_get_arr(message, "tool_calls");
    const char *role = rv_json_text_or(message, "role", "");
    rv_str text = rv_json_member_str(message, "content");
    size_t n = calls ? json_object_array_length(calls) : 0;
    bool is_answer = strcmp(role, "assistant") == 0;
    int rc = 0;

    if (text.len > 0 && (is_answer || strcmp(role, "user") == 0))
        add_row(turn, is_answer ? "assistant" : "user", text, (rv_str){NULL, 0},
                n > 0 ? RV_STR_LIT("{\"before_calls\":true}") : (rv_str){NULL, 0});
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_call(turn, json_object_array_get_idx(calls, i), json_object_array_get_idx(history, ++*at), err);
    return rc;
}

int srv_chat_keep_history(struct srv_call *c, const struct srv_turn_ask *a, rv_err **err)
{
    struct rv_turn *turn = rv_turn_new(RV_REQUEST_MAX_BYTES * 2);
    int rc = 0;

    if (!turn)
        return RV_FAIL(err, RV_E_NOMEM, "keep a conversation");
    for (size_t i = 0; i < json_object_array_length(a->req.history) && rc == 0; i++)
        rc = add_message(turn, a->req.history, &i, err);
    turn->session = a->session;
    const struct rv_store_scope owner = {c->app.scope.tenant, c->who.user};
    const struct rv_session_row fresh = {.id = a->session,
                                         .tenant = owner.tenant ? owner.tenant : RV_STORE_TENANT,
                                         .user = owner.user,
                                         .agent_name = a->agent,
                                         .created_us = srv_now_us()};
    if (rc == 0)
        rc = rv_turn_check(turn, err);
    if (rc == 0)
        rc = rv_store_ensure_session(c->store, &fresh, NULL, err);
    if (rc == 0)
        rc = rv_store_add_messages(c->store, &owner, turn, srv_now_us(), err);
    rv_turn_free(turn);
    return rc;
}
