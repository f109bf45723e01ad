/* Results as each revision has them: older clients get data as text, the newest one more members. */
#include "coreengine/mcp/server_internal.h"

#include <json-c/linkhash.h>

#define LIST_TTL_MS 5000 /* a list may be reused for so long: files of pipelines change while the server goes on */

json_object *mcp_server_info(const rv_mcp_server *s, struct rv_json_build *b, json_object *to, const char *key)
{
    json_object *info = rv_json_build(b, to, key, b->rc < 0 ? NULL : json_object_new_object());

    rv_json_build_text(b, info, "name", s->opts.name);
    if (s->opts.title)
        rv_json_build_text(b, info, "title", s->opts.title);
    rv_json_build_text(b, info, "version", s->opts.version);
    return info;
}

void mcp_mark_modern(const rv_mcp_server *s, struct rv_json_build *b, json_object *result, const char *type)
{
    json_object *meta = rv_json_get_obj(result, "_meta");

    rv_json_build_text(b, result, "resultType", type);
    if (!meta)
        meta = rv_json_build(b, result, "_meta", b->rc < 0 ? NULL : json_object_new_object());
    mcp_server_info(s, b, meta, MCP_META_SERVER);
}

/* A copy of the object's members, without one. */
static json_object *copy_without(struct rv_json_build *b, json_object *object, const char *key)
{
    json_object *copy = json_object_new_object();

    if (!copy)
        b->rc = RV_FAIL(b->err, RV_E_NOMEM, "shape a result of MCP");
    json_object_object_foreach (object, name, value) {
        if (b->rc == 0 && (!key || strcmp(name, key) != 0))
            b->rc = rv_json_set_ref(copy, name, value, b->err);
    }
    return copy;
}

/* Clients before 2025-06-18 know text alone: the summary, a blank line, and the data in a fence. */
static void fold(struct rv_json_build *b, json_object *result, json_object *data)
{
    json_object *old = rv_json_get_arr(result, "content"), *list = json_object_new_array();
    json_object *first = old && json_object_array_length(old) > 0 ? json_object_array_get_idx(old, 0) : NULL;
    json_object *summary = NULL;
    rv_buf text = RV_BUF_INIT(2 * RV_MCP_MAX_MESSAGE);
    const char *type = NULL;

    bool has_text = rv_json_get_text(first, "type", &type) && strcmp(type, "text") == 0 &&
                    json_object_object_get_ex(first, "text", &summary);
    if (has_text) {
        rv_buf_add_str(&text, rv_json_str(summary));
        rv_buf_puts(&text, "\n\n");
    }
    rv_buf_puts(&text, "```json\n");
    rv_json_write_pretty(data, &text);
    rv_buf_puts(&text, "\n```");
    if (!list || (b->rc = rv_buf_check(&text, "a result of MCP", b->err)) < 0) {
        b->rc = list ? b->rc : RV_FAIL(b->err, RV_E_NOMEM, "shape a result of MCP");
        json_object_put(list);
        rv_buf_fini(&text);
        return;
    }
    rv_json_build(b, result, "content", list);
    json_object *block = rv_json_build(b, list, NULL, b->rc < 0 ? NULL : json_object_new_object());
    rv_json_build_text(b, block, "type", "text");
    rv_json_build(b, block, "text", b->rc < 0 ? NULL : json_object_new_string_len(rv_buf_cstr(&text), (int)text.len));
    for (size_t i = has_text ? 1 : 0; old && b->rc == 0 && i < json_object_array_length(old); i++)
        b->rc = rv_json_push_ref(list, json_object_array_get_idx(old, i), b->err);
    rv_buf_fini(&text);
}

/* Tools as a client before 2025-06-18 knows them. */
static void strip_tools(struct rv_json_build *b, json_object *result)
{
    json_object *old = rv_json_get_arr(result, "tools"), *list = json_object_new_array();

    old = json_object_get(old);
    rv_json_build(b, result, "tools", list);
    for (size_t i = 0; b->rc == 0 && i < json_object_array_length(old); i++) {
        json_object *tool = copy_without(b, json_object_array_get_idx(old, i), "outputSchema");
        if (b->rc == 0)
            json_object_object_del(tool, "title");
        if (b->rc == 0)
            rv_json_build(b, list, NULL, tool);
        else
            json_object_put(tool);
    }
    json_object_put(old);
}

/* --- tasks --- */

/* A task as 2025-11-25 names its members: its result, its questions and its error are asked for in another way. */
static json_object *legacy_task(struct rv_json_build *b, json_object *task)
{
    static const char *const names[][2] = {
        {"taskId", "taskId"},
        {"status", "status"},
        {"statusMessage", "statusMessage"},
        {"createdAt", "createdAt"},
        {"lastUpdatedAt", "lastUpdatedAt"},
        {"ttlMs", "ttl"},
        {"pollIntervalMs", "pollInterval"},
    };
    json_object *copy = json_object_new_object(), *value = NULL;

    if (!copy)
        b->rc = RV_FAIL(b->err, RV_E_NOMEM, "shape a result of MCP");
    for (size_t i = 0; i < RV_COUNT(names) && b->rc == 0; i++)
        if (json_object_object_get_ex(task, names[i][0], &value))
            b->rc = rv_json_set_ref(copy, names[i][1], value, b->err);
    return copy;
}

static void rename_tasks(struct rv_json_build *b, json_object *result)
{
    json_object *old = json_object_get(rv_json_get_arr(result, "tasks")), *list = json_object_new_array();

    rv_json_build(b, result, "tasks", list);
    for (size_t i = 0; b->rc == 0 && i < json_object_array_length(old); i++) {
        json_object *task = legacy_task(b, json_object_array_get_idx(old, i));
        if (b->rc == 0)
            rv_json_build(b, list, NULL, task);
        else
            json_object_put(task);
    }
    json_object_put(old);
}

/* *out NULL: it is not a task, or the client knows it as it is. */
static int shape_for_legacy(const struct mcp_call *c, json_object *result, json_object **out, rv_err **err)
{
    struct rv_json_build b = {err, 0};
    bool is_created = rv_str_is(rv_json_member_str(result, "resultType"), "task");

    *out = NULL;
    if (c->version == RV_MCP_2026_07_28 ||
        !(is_created || c->want == RV_MCP_WANT_GET_TASK || c->want == RV_MCP_WANT_CANCEL_TASK))
        return 0;
    json_object *task = legacy_task(&b, result);
    if (is_created && b.rc == 0) {
        json_object *whole = json_object_new_object();
        if (!whole)
            b.rc = RV_FAIL(err, RV_E_NOMEM, "shape a result of MCP");
        rv_json_build(&b, whole, "task", task);
        task = whole;
    }
    if (b.rc < 0)
        json_object_put(task);
    else
        *out = task;
    return b.rc;
}

static bool is_list(enum rv_mcp_want want)
{
    return want == RV_MCP_WANT_LIST_TOOLS || want == RV_MCP_WANT_LIST_RESOURCES || want == RV_MCP_WANT_LIST_TEMPLATES ||
           want == RV_MCP_WANT_LIST_PROMPTS;
}

int mcp_shape(const rv_mcp_server *s, const struct mcp_call *c, json_object *result, json_object **out, rv_err **err)
{
    struct rv_json_build b = {err, 0};
    bool is_old = c->version < RV_MCP_2025_06_18;
    json_object *data = NULL, *copy = NULL;

    int rc = shape_for_legacy(c, result, &copy, err);
    if (rc < 0 || copy) {
        *out = copy;
        return rc;
    }
    json_object_object_get_ex(result, "structuredContent", &data);
    copy = copy_without(&b, result, is_old ? "structuredContent" : NULL);
    if (b.rc == 0 && is_old && c->want == RV_MCP_WANT_CALL_TOOL && data)
        fold(&b, copy, data);
    if (b.rc == 0 && is_old && c->want == RV_MCP_WANT_LIST_TOOLS)
        strip_tools(&b, copy);
    if (b.rc == 0 && c->want == RV_MCP_WANT_LIST_TASKS) /* only legacy clients list them */
        rename_tasks(&b, copy);
    if (b.rc == 0 && c->version == RV_MCP_2026_07_28) {
        json_object *meta = rv_json_get_obj(copy, "_meta"); /* the caller's: it stays as it is */
        if (meta && (meta = copy_without(&b, meta, NULL)))
            rv_json_build(&b, copy, "_meta", meta);
        if (is_list(c->want) || c->want == RV_MCP_WANT_READ_RESOURCE) {
            rv_json_build_int(&b, copy, "ttlMs", is_list(c->want) ? LIST_TTL_MS : 0);
            rv_json_build_text(&b, copy, "cacheScope", "private");
        }
        bool is_task = rv_str_is(rv_json_member_str(result, "resultType"), "task");
        mcp_mark_modern(s, &b, copy, is_task ? "task" : "complete");
    }
    mcp_mark_task(c, &b, copy);
    if (b.rc < 0)
        json_object_put(copy);
    else
        *out = copy;
    return b.rc;
}
