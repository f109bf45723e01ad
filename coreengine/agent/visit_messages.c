/* The conversation of a model stage within one visit: messages after the prompt, the tools it offers, and both while
 * the stage waits for a person. Every call of a model's turn gets its result, in order, before anything else is said:
 * all providers insist on that. */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

#define ERROR_MAX ((size_t)64 << 10) /* of the message of an error result */
#define TYPE_MAX  200                /* of its type: a tool may have made it up */
#define KEPT_MAX  ((size_t)64 << 20)

void rv_messages_drop_new_calls(struct model_progress *t)
{
    json_object_put(t->new_calls);
    t->new_calls = NULL;
}

void rv_messages_fini(struct model_progress *t)
{
    free(t->prompt);
    json_object_put(t->messages);
    json_object_put(t->ids);
    json_object_put(t->offered);
    rv_schema_free(t->schema);
    rv_buf_fini(&t->visible);
    json_object_put(t->child_rows);
    json_object_put(t->final_calls);
    json_object_put(t->new_calls);
}

/* --- tools on offer --- */

/* As the agent's list has them; all there are are sorted, which is the catalog's order. Old runs sort both. */
static bool is_sorted(const rv_visit *v)
{
    return v->shared->rules < RV_RULES_2 || !v->agent->tools.allowed.is_set;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What the agent may call by name: its whitelist, or all there are. The caller's. */
static int names_on_offer(const rv_visit *v, const char ***out, size_t *n, rv_err **err)
{
    const struct rv_catalog *catalog = &v->shared->catalog;
    const struct rv_str_list *listed = &v->agent->tools.allowed;

    *n = listed->is_set ? listed->n : 0;
    while (!listed->is_set && catalog->tool_name && catalog->tool_name(catalog->self, *n))
        ++*n;
    const char **names = calloc(*n + 1, sizeof *names);
    if (!names)
        return RV_FAIL(err, RV_E_NOMEM, "list the tools of agent \"%s\"", v->agent->name);
    for (size_t i = 0; i < *n; i++)
        names[i] = listed->is_set ? listed->items[i] : catalog->tool_name(catalog->self, i);
    if (is_sorted(v))
        qsort(names, *n, sizeof *names, by_name);
    *out = names;
    return 0;
}

static int describe_ask(json_object *tool, rv_err **err)
{
    json_object *schema = NULL;
    int rc = rv_json_parse(rv_str_of(rv_tool_ask_agent_schema), NULL, &schema, err);

    return rc < 0 ? rc : rv_json_set_take(tool, "parameters", schema, err);
}

static int describe_tool(const struct rv_tool_info *info, json_object *list, rv_err **err)
{
    json_object *tool = json_object_new_object();
    int rc = rv_json_push_take(list, tool, err);

    if (rc == 0)
        rc = rv_json_set_text(tool, "name", info->name, err);
    if (rc == 0 && info->description && info->description[0])
        rc = rv_json_set_text(tool, "description", info->description, err);
    if (rc < 0)
        return rc;
    if (info->input_json)
        return rv_json_set_ref(tool, "parameters", info->input_json, err);
    if (strcmp(info->name, RV_ASK_AGENT) == 0)
        return describe_ask(tool, err);
    json_object *any = json_object_new_object();
    rc = rv_json_set_take(tool, "parameters", any, err);
    return rc == 0 ? rv_json_set_text(any, "type", "object", err) : rc;
}

static bool is_new(const char *const *names, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(names[k], names[i]) == 0)
            return false;
    return true;
}

static int look_up(rv_visit *v, rv_err **err)
{
    const char **names = NULL;
    size_t n = 0;

    v->model.offered = json_object_new_array();
    if (!v->model.offered)
        return RV_FAIL(err, RV_E_NOMEM, "list the tools of agent \"%s\"", v->agent->name);
    if (!v->agent->has_tools)
        return 0;
    int rc = names_on_offer(v, &names, &n, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rv_str name = rv_str_of(names[i]);
        const struct rv_tool_info *info = rv_visit_tool(v, name);
        if (info && is_new(names, i) &&
            rv_tool_allowed(v->agent->tools.access, &v->agent->tools.allowed, name, info, NULL))
            rc = describe_tool(info, v->model.offered, err);
    }
    free(names);
    return rc;
}

int rv_messages_offered(rv_visit *v, json_object **offered, rv_err **err)
{
    int rc = v->model.offered ? 0 : look_up(v, err);

    *offered = rc == 0 && json_object_array_length(v->model.offered) > 0 ? v->model.offered : NULL;
    return rc;
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

int rv_messages_add_reply(rv_visit *v, const struct rv_event *ev, json_object *calls, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_LLM_MAX_REPLY,
                                      .refuse_big_ints = rv_visit_refuses_big_ints(v),
                                      .what = "what a provider wants back"};
    json_object *message = NULL, *opaque = NULL;
    bool has_text = rv_str_trim(ev->reply).len > 0;

    if (!has_text && !calls && ev->llm.opaque.len == 0)
        return 0; /* it said nothing, and providers take no turn without anything in it */
    int rc = calls ? rv_messages_tell_apart(v, calls, err) : 0;
    rv_messages_drop_new_calls(&v->model);
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

int rv_messages_add_user(rv_visit *v, rv_str text, rv_err **err)
{
    json_object *message = NULL;
    int rc = new_message(v, "user", &message, err);

    return rc == 0 ? rv_json_set_str(message, "content", text, err) : rc;
}

int rv_messages_add_result(rv_visit *v, rv_str id, rv_str name, rv_str content, bool is_error, rv_err **err)
{
    json_object *message = NULL;
    int rc = new_message(v, "tool", &message, err);

    if (rc == 0)
        rc = rv_json_set_str(message, "tool_call_id", id, err);
    if (rc == 0)
        rc = rv_json_set_str(message, "name", name, err);
    if (rc == 0)
        rc = rv_json_set_str(message, "content", content, err);
    return rc == 0 && is_error ? rv_json_set_bool(message, "is_error", true, err) : rc;
}

void rv_messages_write_error(const char *type, const char *text, rv_buf *out)
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

    return rv_json_get_text(entry, "tool", &tool) && strcmp(tool, RV_ASK_AGENT) == 0 && rv_json_get_obj(entry, "data");
}

void rv_messages_write_result(json_object *entry, rv_buf *out, bool *is_error)
{
    const char *status = NULL, *type = "ToolError", *text = "it failed";
    json_object *error = rv_json_get_obj(entry, "error"), *data = NULL;

    *is_error = !rv_json_get_text(entry, "status", &status) || strcmp(status, "success") != 0;
    if (!*is_error || says_itself(entry)) {
        json_object_object_get_ex(entry, "data", &data);
        rv_json_write(data, out);
        if (out->rc != RV_E_LIMIT)
            return;
        *is_error = true;
        type = "ToolError";
        text = "the result is too long to be shown: ask for less";
    } else if (error) {
        RV_IGNORE(!rv_json_get_text(error, "type", &type), "else the default");
        RV_IGNORE(!rv_json_get_text(error, "message", &text), "else the default");
    }
    rv_buf_clear(out);
    rv_messages_write_error(type, text, out);
}
