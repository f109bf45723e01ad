/* The conversation of a model stage within one visit: messages after the prompt, and the ids of the tool calls in them.
 * Every call of a model's turn gets its result, in order, before any other message: all providers insist on that.
 *
 * Results are told apart by the ids of their calls, so no two calls of a visit share one, nor do they share those of
 * the history. Providers that have none, and some that have, count each reply from the start again: an id that was
 * there before, or is empty, gets another name. Agents that were asked have their rows and events among those of who
 * asked, perhaps while others do: what is only counted is named after the call that asked, so that it does not depend
 * on who was quicker.
 *
 * A session also has calls that its history does not tell. Each call has a row, so a number above that of the newest
 * row is free in the whole session; a counted id up to that number may be taken. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNTED      "call" /* what a counted id begins with, before "_" and its number */
#define NUMBER_MAX   24     /* digits of any int64_t, sign and NUL */
#define SMALL_DIGITS 6      /* of a number that counts; those of random ids are longer, or stand beside letters */

static const char *id_of(json_object *call)
{
    json_object *id = NULL;

    json_object_object_get_ex(call, "id", &id);
    return json_object_is_type(id, json_type_string) ? json_object_get_string(id) : "";
}

static int note(json_object *taken, const char *id, rv_err **err)
{
    return rv_json_set_bool(taken, id, true, err);
}

/* Those of some messages; NULL: there are none. */
static int collect_from(struct model_progress *t, json_object *messages, rv_err **err)
{
    size_t n = messages ? json_object_array_length(messages) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *calls = rv_json_get_arr(json_object_array_get_idx(messages, i), "tool_calls");
        for (size_t k = 0; calls && k < json_object_array_length(calls) && rc == 0; k++)
            rc = note(t->ids, id_of(json_object_array_get_idx(calls, k)), err);
    }
    return rc;
}

/* The number up to which counted ids may be those of older rows of the session; 0: none, or the rules do not look. */
static int64_t ids_upto(const rv_visit *v)
{
    const struct rv_conversation *c = v->shared->conversation;

    return c && v->agent->declared.doc && v->shared->rules >= RV_RULES_2 ? c->upto_seq : 0;
}

int agent_messages_collect_ids(rv_visit *v, rv_err **err)
{
    const struct rv_conversation *c = v->shared->conversation;
    struct model_progress *t = &v->model;

    if (t->ids)
        return 0;
    t->ids_upto = ids_upto(v);
    t->ids = json_object_new_object();
    if (!t->ids)
        return RV_FAIL(err, RV_E_NOMEM, "keep a conversation");
    int rc = v->agent->declared.doc && c ? collect_from(t, c->history, err) : 0;
    return rc == 0 ? collect_from(t, t->messages, err) : rc;
}

static bool is_counted(const char *id)
{
    size_t n = strlen(COUNTED "_");

    return strncmp(id, COUNTED "_", n) == 0 && id[n] && id[n + strspn(id + n, "0123456789")] == '\0';
}

/* Does it end with a small number of its own, as "functions.look:0" does? */
static bool ends_counted(const char *id)
{
    size_t len = strlen(id), n = 0;

    while (n < len && rv_is_digit(id[len - n - 1]))
        n++;
    return n > 0 && n <= SMALL_DIGITS && (n == len || !rv_is_letter(id[len - n - 1]));
}

static bool is_of_older_row(int64_t upto, const char *id)
{
    errno = 0;
    long long n = strtoll(id + strlen(COUNTED "_"), NULL, 10);
    return errno == 0 && upto > 0 && n <= upto;
}

/* May another call of the session have that id, told or not? */
static bool is_ambiguous(const struct rv_origin *o, int64_t upto, const char *id)
{
    if (is_counted(id) && (o || is_of_older_row(upto, id)))
        return true;
    if (o && o->rules >= RV_RULES_5 && ends_counted(id))
        return true;
    for (; o; o = o->parent)
        if (strcmp(o->parent_tool_call_id, id) == 0)
            return true;
    return false;
}

static int make_name(json_object *taken, const struct rv_origin *origin, int64_t upto, rv_buf *out, rv_err **err)
{
    const char *prefix = origin ? origin->parent_tool_call_id : COUNTED;
    int64_t n = origin ? 0 : json_object_object_length(taken);

    if (!origin && n < upto)
        n = upto;
    *out = RV_BUF_INIT(strlen(prefix) + NUMBER_MAX);
    do {
        rv_buf_clear(out);
        rv_buf_printf(out, "%s_%" PRId64, prefix, ++n);
    } while (out->rc == 0 && json_object_object_get_ex(taken, rv_buf_cstr(out), NULL));
    return rv_buf_check(out, "id of a tool call", err);
}

int rv_call_write_name(json_object *taken, int64_t upto, const struct rv_origin *origin, const char *id, rv_buf *out,
                       rv_err **err)
{
    bool is_own = id[0] && !json_object_object_get_ex(taken, id, NULL) && !is_ambiguous(origin, upto, id);

    *out = RV_BUF_INIT(0);
    int rc = is_own ? 0 : make_name(taken, origin, upto, out, err);
    return rc == 0 ? note(taken, is_own ? id : rv_buf_cstr(out), err) : rc;
}

int agent_messages_tell_apart(rv_visit *v, json_object *calls, rv_err **err)
{
    int rc = agent_messages_collect_ids(v, err);

    for (size_t i = 0; i < json_object_array_length(calls) && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        rv_buf name;
        rc = rv_call_write_name(v->model.ids, v->model.ids_upto, v->shared->origin, id_of(call), &name, err);
        if (rc == 0 && name.len > 0)
            rc = rv_json_set_text(call, "id", rv_buf_cstr(&name), err);
        rv_buf_fini(&name);
    }
    return rc;
}

#define ERROR_MAX ((size_t)64 << 10) /* bytes of the message of an error result: a model reads it */
#define TYPE_MAX  200                /* of its type: a tool may have made it up */

void agent_messages_drop_new_calls(struct model_progress *t)
{
    json_object_put(t->new_calls);
    t->new_calls = NULL;
}

/* --- messages --- */

static int new_message(rv_visit *v, const char *role, json_object **out, rv_err **err)
{
    if (!v->model.messages && !(v->model.messages = json_object_new_array()))
        return RV_FAIL(err, RV_E_NOMEM, "keep a conversation");
    *out = json_object_new_object();
    int rc = rv_json_push_take(v->model.messages, *out, err);
    return rc == 0 ? rv_json_set_text(*out, "role", role, err) : rc;
}

int agent_messages_add_reply(rv_visit *v, const struct rv_event *ev, json_object *calls, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_LLM_MAX_REPLY,
                                      .refuse_big_ints = visit_refuses_big_ints(v),
                                      .what = "what a provider wants back"};
    json_object *message = NULL, *opaque = NULL;
    bool has_text = rv_str_trim(ev->reply).len > 0;

    if (!has_text && !calls && ev->llm.opaque.len == 0)
        return 0; /* an empty reply: providers refuse an empty message */
    int rc = calls ? agent_messages_tell_apart(v, calls, err) : 0;
    agent_messages_drop_new_calls(&v->model);
    if (rc == 0)
        rc = new_message(v, "assistant", &message, err);
    if (rc == 0 && has_text)
        rc = rv_json_set_str(message, "content", ev->reply, err);
    if (rc == 0 && calls)
        rc = rv_json_set_ref(message, "tool_calls", calls, err);
    if (rc < 0 || ev->llm.opaque.len == 0)
        return rc;
    rv_err *cause = NULL;
    rc = rv_json_parse(ev->llm.opaque, &opts, &opaque, &cause);
    bool no_memory = rv_err_is(cause, RV_E_NOMEM);
    rv_err_free(cause);
    if (no_memory)
        return RV_FAIL(err, RV_E_NOMEM, "keep a conversation");
    if (rc < 0 || !json_object_is_type(opaque, json_type_object)) { /* not what we ever wrote: the turn goes without */
        json_object_put(opaque);
        return 0;
    }
    return rv_json_set_take(message, "opaque", opaque, err);
}

int agent_messages_add_user(rv_visit *v, rv_str text, rv_err **err)
{
    json_object *message = NULL;
    int rc = new_message(v, "user", &message, err);

    return rc == 0 ? rv_json_set_str(message, "content", text, err) : rc;
}

int agent_messages_add_result(rv_visit *v, rv_str id, rv_str name, rv_str content, bool is_error, rv_err **err)
{
    json_object *message = NULL;
    int rc = new_message(v, "tool", &message, err);

    return rc < 0 ? rc
                  : RV_SET(message, err, RV_M_STR("tool_call_id", id), RV_M_STR("name", name),
                           RV_M_STR("content", content), RV_M_IF(is_error, RV_M_BOOL("is_error", true)));
}

void agent_messages_write_error(const char *type, const char *text, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);
    rv_str head = rv_utf8_cut(rv_str_of(text), ERROR_MAX);

    rv_jw_obj(&w);
    rv_jw_key(&w, "error");
    rv_jw_obj(&w);
    rv_jw_kv_str(&w, "type", rv_utf8_cut(rv_str_of(type), TYPE_MAX));
    rv_jw_kv_str(&w, "message", head);
    rv_jw_obj_end(&w);
    rv_jw_obj_end(&w);
}

/* An agent that was asked says what went wrong in its own shape. */
static bool says_itself(json_object *entry)
{
    const char *tool = NULL;

    return rv_json_get_text(entry, "tool", &tool) && strcmp(tool, RV_TOOL_ASK_AGENT) == 0 &&
           rv_json_get_obj(entry, "data");
}

void agent_messages_write_result(json_object *entry, rv_buf *out, bool *is_error)
{
    const char *status = NULL, *type = rv_error_tool, *text = "it failed";
    json_object *error = rv_json_get_obj(entry, "error"), *data = NULL, *content = rv_json_get_arr(entry, "content");

    *is_error = !rv_json_get_text(entry, "status", &status) || strcmp(status, "success") != 0;
    if (!*is_error || says_itself(entry)) {
        json_object_object_get_ex(entry, "data", &data);
        if (content)
            rv_tool_write_content(content, out);
        else
            rv_json_write(data, out);
        if (out->rc != RV_E_LIMIT)
            return;
        *is_error = true;
        type = rv_error_tool;
        text = "the result is too long to be shown: ask for less";
    } else if (error) {
        type = rv_json_text_or(error, "type", type);
        text = rv_json_text_or(error, "message", text);
    }
    rv_buf_clear(out);
    agent_messages_write_error(type, text, out);
}

/* --- the calls of a reply --- */

int agent_messages_read_calls(const struct rv_event *ev, json_object **out, rv_err **cause)
{
    const struct rv_json_opts opts = {.max_bytes = 4 * RV_LLM_MAX_REPLY, .what = "tool calls"};

    *out = NULL;
    if (ev->failed || ev->llm.tool_calls.len == 0)
        return 0;
    int rc = rv_json_parse(ev->llm.tool_calls, &opts, out, cause);
    size_t n = rc == 0 && json_object_is_type(*out, json_type_array) ? json_object_array_length(*out) : SIZE_MAX;
    bool good = n <= RV_LLM_MAX_TOOL_CALLS;
    for (size_t i = 0; good && i < n; i++) {
        json_object *call = json_object_array_get_idx(*out, i);
        good = json_object_is_type(call, json_type_object) && rv_json_is_text(rv_json_member(call, "id")) &&
               rv_json_is_text(rv_json_member(call, "name")) && rv_json_is_text(rv_json_member(call, "arguments"));
    }
    if (rc == 0 && !good)
        rc = RV_FAIL(cause, RV_E_PARSE, "the reply's tool calls are no list of at most %d {id, name, arguments}",
                     RV_LLM_MAX_TOOL_CALLS);
    if (rc < 0 || n == 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return rc;
}
