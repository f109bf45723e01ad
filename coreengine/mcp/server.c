/* What a client says: its era, its methods, and the answers that need nothing from outside. */
#include <json-c/linkhash.h>
#include <stdlib.h>

#include "coreengine/mcp/server_internal.h"

#define MAX_SAID 200 /* bytes of a client's own words in the text of an error: they come back to it, a line or two */

#define INFO 1 /* in levels */
static const char *const levels[] = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

int rv_mcp_server_new(const struct rv_mcp_server_opts *opts, rv_mcp_server **out, rv_err **err)
{
    rv_mcp_server *s = calloc(1, sizeof *s);

    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "begin a session of MCP");
    s->opts = *opts;
    s->level = MCP_LOG_NONE;
    *out = s;
    return 0;
}

void rv_mcp_server_free(rv_mcp_server *s)
{
    while (s && s->n_calls > 0)
        mcp_end_call(s, &s->calls[0]);
    free(s);
}

/* --- answers at once --- */

struct asking {
    rv_mcp_server *s;
    const struct rv_mcp_message *m;
    struct rv_mcp_orders *orders;
    bool is_modern;
    bool can_ask;
    bool takes_tasks; /* of a modern request: it declares the extension */
};

static int refuse(const struct asking *a, int code, const char *text, json_object *data, rv_err **err)
{
    return rv_mcp_server_refuse(a->m->id, &(const struct rv_mcp_server_error){.code = code, .text = text, .data = data},
                                a->orders, err);
}

static int invalid(const struct asking *a, const char *text, rv_err **err)
{
    return refuse(a, RV_MCP_INVALID_PARAMS, text, NULL, err);
}

/* The extension of the newest revision, or what the one before had of its own. */
static void write_tasks(const struct asking *a, struct rv_json_build *b, json_object *all)
{
    static const char *const path[] = {"requests", "tools", "call"};
    json_object *to;

    if (a->is_modern) {
        to = rv_json_build(b, all, "extensions", b->rc < 0 ? NULL : json_object_new_object());
        rv_json_build(b, to, MCP_TASKS, b->rc < 0 ? NULL : json_object_new_object());
    } else if (a->s->version >= RV_MCP_2025_11_25) {
        to = rv_json_build(b, all, "tasks", b->rc < 0 ? NULL : json_object_new_object());
        rv_json_build(b, to, "list", b->rc < 0 ? NULL : json_object_new_object());
        rv_json_build(b, to, "cancel", b->rc < 0 ? NULL : json_object_new_object());
        for (size_t i = 0; i < RV_COUNT(path); i++)
            to = rv_json_build(b, to, path[i], b->rc < 0 ? NULL : json_object_new_object());
    }
}

/* Everything that the server may be asked for. Clients are not told when a list changes. */
static void write_capabilities(const struct asking *a, struct rv_json_build *b, json_object *to)
{
    static const char *const names[] = {"tools", "resources", "prompts", "completions", "logging"};
    json_object *all = rv_json_build(b, to, "capabilities", json_object_new_object());

    for (size_t i = 0; i < RV_COUNT(names) - a->is_modern; i++) /* logging is the last one */
        rv_json_build(b, all, names[i], b->rc < 0 ? NULL : json_object_new_object());
    write_tasks(a, b, all);
    if (a->s->opts.instructions)
        rv_json_build_text(b, to, "instructions", a->s->opts.instructions);
}

static bool can_ask(json_object *capabilities)
{
    json_object *elicitation = rv_json_get_obj(capabilities, "elicitation");

    return elicitation && (json_object_object_length(elicitation) == 0 || rv_json_get_obj(elicitation, "form"));
}

/* Build an answer and send it. */
static int answer(const struct asking *a,
                  void (*write)(const struct asking *a, struct rv_json_build *b, json_object *to), rv_err **err)
{
    json_object *result = json_object_new_object();
    struct rv_json_build b = {err, result ? 0 : RV_FAIL(err, RV_E_NOMEM, "answer a request of MCP")};

    if (write && b.rc == 0)
        write(a, &b, result);
    int rc = b.rc < 0 ? b.rc : mcp_answer(a->m->id, result, a->orders, err);
    json_object_put(result);
    return rc;
}

static void write_handshake(const struct asking *a, struct rv_json_build *b, json_object *to)
{
    rv_json_build_text(b, to, "protocolVersion", rv_mcp_version_text(a->s->version));
    write_capabilities(a, b, to);
    mcp_server_info(a->s, b, to, "serverInfo");
}

static int initialize(const struct asking *a, rv_err **err)
{
    rv_mcp_server *s = a->s;
    json_object *p = a->m->params, *version = rv_json_member(p, "protocolVersion");

    if (s->version)
        return refuse(a, RV_MCP_INVALID_REQUEST, "the session is initialized already", NULL, err);
    if (!rv_json_is_text(version))
        return invalid(a, "\"protocolVersion\" is not text", err);
    if (!rv_json_get_obj(p, "capabilities"))
        return invalid(a, "\"capabilities\" is not an object", err);
    int v = rv_mcp_version_of(rv_json_str(version));
    bool is_served = v >= 0 && v <= RV_MCP_NEWEST_LEGACY && !(s->opts.is_http && v == RV_MCP_2024_11_05);
    s->version =
        is_served ? (enum rv_mcp_version)v : RV_MCP_NEWEST_LEGACY; /* the client leaves if it does not know that one */
    s->can_ask = s->version >= RV_MCP_2025_06_18 && can_ask(rv_json_get_obj(p, "capabilities"));
    return answer(a, write_handshake, err);
}

static void write_discovery(const struct asking *a, struct rv_json_build *b, json_object *to)
{
    json_object *versions = rv_json_build(b, to, "supportedVersions", json_object_new_array());

    rv_json_build(b, versions, NULL, b->rc < 0 ? NULL : json_object_new_string(rv_mcp_version_text(RV_MCP_2026_07_28)));
    write_capabilities(a, b, to);
    rv_json_build_int(b, to, "ttlMs", 0);
    rv_json_build_text(b, to, "cacheScope", "private");
    mcp_mark_modern(a->s, b, to, "complete");
}

static int discover(const struct asking *a, rv_err **err)
{
    return answer(a, write_discovery, err);
}

static int ping(const struct asking *a, rv_err **err)
{
    return answer(a, NULL, err);
}

static int set_level(const struct asking *a, rv_err **err)
{
    json_object *level = rv_json_member(a->m->params, "level");

    for (size_t i = 0; i < RV_COUNT(levels); i++)
        if (rv_str_is(rv_json_str(level), levels[i])) {
            a->s->level = (int)i;
            return answer(a, NULL, err);
        }
    return invalid(a, "\"level\" is not a level of logs", err);
}

/* --- methods --- */

/* Why the parameters are not what the method takes; NULL: they are. */
static const char *check_tool(json_object *p)
{
    json_object *arguments = NULL;

    if (!rv_json_is_text(rv_json_member(p, "name")))
        return "\"name\" is not text";
    if (json_object_object_get_ex(p, "arguments", &arguments) && !json_object_is_type(arguments, json_type_object))
        return "\"arguments\" is not an object";
    return NULL;
}

static const char *check_task(json_object *p)
{
    return rv_json_is_text(rv_json_member(p, "taskId")) ? NULL : "\"taskId\" is not text";
}

static const char *check_update(json_object *p)
{
    return rv_json_get_obj(p, "inputResponses") ? check_task(p) : "\"inputResponses\" is not an object";
}

static const char *check_uri(json_object *p)
{
    return rv_json_is_text(rv_json_member(p, "uri")) ? NULL : "\"uri\" is not text";
}

static const char *check_prompt(json_object *p)
{
    json_object *arguments = NULL;

    if (!rv_json_is_text(rv_json_member(p, "name")))
        return "\"name\" is not text";
    if (!json_object_object_get_ex(p, "arguments", &arguments))
        return NULL;
    if (!json_object_is_type(arguments, json_type_object))
        return "\"arguments\" is not an object";
    json_object_object_foreach (arguments, key, value) {
        (void)key;
        if (!rv_json_is_text(value))
            return "an argument of a prompt is not text";
    }
    return NULL;
}

static const char *check_completion(json_object *p)
{
    json_object *argument = rv_json_get_obj(p, "argument");
    rv_str type = rv_json_str(rv_json_member(rv_json_get_obj(p, "ref"), "type"));

    if (!rv_str_is(type, "ref/prompt") && !rv_str_is(type, "ref/resource"))
        return "\"ref\" is not a prompt or a resource";
    return rv_json_is_text(rv_json_member(argument, "name")) && rv_json_is_text(rv_json_member(argument, "value"))
               ? NULL
               : "\"argument\" does not have a name and a value";
}

enum era { LEGACY = 1, MODERN = 2, BOTH = LEGACY | MODERN };
static const struct method {
    const char *name;
    enum era eras;
    int (*answer)(const struct asking *a, rv_err **err); /* at once; NULL: it is a call */
    enum rv_mcp_want want;
    const char *(*check)(json_object *params); /* NULL: it takes nothing, or a cursor */
    bool is_of_tasks;                          /* for clients that know them */
} methods[] = {
    {.name = "initialize", .eras = LEGACY, .answer = initialize},
    {.name = "ping", .eras = LEGACY, .answer = ping},
    {.name = "logging/setLevel", .eras = LEGACY, .answer = set_level},
    {.name = "server/discover", .eras = MODERN, .answer = discover},
    {.name = "tools/list", .eras = BOTH, .want = RV_MCP_WANT_LIST_TOOLS},
    {.name = "tools/call", .eras = BOTH, .want = RV_MCP_WANT_CALL_TOOL, .check = check_tool},
    {.name = "resources/list", .eras = BOTH, .want = RV_MCP_WANT_LIST_RESOURCES},
    {.name = "resources/templates/list", .eras = BOTH, .want = RV_MCP_WANT_LIST_TEMPLATES},
    {.name = "resources/read", .eras = BOTH, .want = RV_MCP_WANT_READ_RESOURCE, .check = check_uri},
    {.name = "prompts/list", .eras = BOTH, .want = RV_MCP_WANT_LIST_PROMPTS},
    {.name = "prompts/get", .eras = BOTH, .want = RV_MCP_WANT_GET_PROMPT, .check = check_prompt},
    {.name = "completion/complete", .eras = BOTH, .want = RV_MCP_WANT_COMPLETE, .check = check_completion},
    {.name = "tasks/list", .eras = LEGACY, .want = RV_MCP_WANT_LIST_TASKS, .is_of_tasks = true},
    {.name = "tasks/get", .eras = BOTH, .want = RV_MCP_WANT_GET_TASK, .check = check_task, .is_of_tasks = true},
    {.name = "tasks/update",
     .eras = MODERN,
     .want = RV_MCP_WANT_UPDATE_TASK,
     .check = check_update,
     .is_of_tasks = true},
    {.name = "tasks/cancel", .eras = BOTH, .want = RV_MCP_WANT_CANCEL_TASK, .check = check_task, .is_of_tasks = true},
    {.name = "tasks/result", .eras = LEGACY, .want = RV_MCP_WANT_TASK_RESULT, .check = check_task, .is_of_tasks = true},
};

static const struct method *find_method(const rv_mcp_server *s, const char *name, bool is_modern)
{
    bool has_tasks = is_modern || s->version == RV_MCP_UNKNOWN_VERSION || s->version >= RV_MCP_2025_11_25;

    for (size_t i = 0; i < RV_COUNT(methods); i++)
        if (strcmp(methods[i].name, name) == 0 && methods[i].eras & (is_modern ? MODERN : LEGACY) &&
            (has_tasks || !methods[i].is_of_tasks))
            return &methods[i];
    return NULL;
}

/* --- calls --- */

/* A cursor is the number of entries before it. False: it is not one of ours. */
static bool read_cursor(json_object *params, int64_t *out)
{
    json_object *cursor = NULL;
    int64_t n = 0;

    *out = 0;
    if (!json_object_object_get_ex(params, "cursor", &cursor))
        return true;
    rv_str text = rv_json_str(cursor);
    if (text.len == 0 || text.len > 12)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!rv_is_digit(text.ptr[i]))
            return false;
        n = n * 10 + (text.ptr[i] - '0');
    }
    *out = n;
    return n > 0;
}

static bool is_busy(const rv_mcp_server *s, json_object *id)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (rv_json_equal(s->calls[i].id, id))
            return true;
    return false;
}

/* A legacy client asks for a task with the parameter `task`, a modern one leaves it to the server. */
static enum rv_mcp_tasking tasking_of(const struct asking *a, const struct method *method)
{
    if (a->is_modern)
        return a->takes_tasks ? RV_MCP_TASK_MAY : RV_MCP_TASK_NEVER;
    return method->is_of_tasks || (a->s->version >= RV_MCP_2025_11_25 && rv_json_get_obj(a->m->params, "task") != NULL)
               ? RV_MCP_TASK_MUST
               : RV_MCP_TASK_NEVER;
}

static int begin_call(const struct asking *a, const struct method *method, rv_err **err)
{
    rv_mcp_server *s = a->s;
    json_object *token = rv_json_member(rv_json_get_obj(a->m->params, "_meta"), "progressToken");
    struct mcp_call c = {.want = method->want, .can_ask = a->can_ask, .progress = -1};

    if (!method->check && !read_cursor(a->m->params, &c.first))
        return invalid(a, "\"cursor\" is not one of this list", err);
    if (s->n_calls == RV_MCP_MAX_CALLS)
        return refuse(a, RV_MCP_INTERNAL_ERROR, "too many requests at once: wait for an answer", NULL, err);
    struct rv_mcp_order *order = mcp_order_new(a->orders, RV_MCP_DO, s->last_call + 1, err);
    if (!order)
        return RV_E_NOMEM;
    c.n = ++s->last_call;
    c.id = json_object_get(a->m->id);
    c.version = a->is_modern ? RV_MCP_2026_07_28 : s->version;
    if (rv_json_is_text(token) || rv_json_is_int(token))
        c.token = json_object_get(token);
    if (method->want == RV_MCP_WANT_TASK_RESULT)
        c.task = json_object_get(rv_json_member(a->m->params, "taskId"));
    s->calls[s->n_calls++] = c;
    order->want = method->want;
    order->first = c.first;
    order->tasks = tasking_of(a, method);
    s->calls[s->n_calls - 1].takes_tasks = order->tasks != RV_MCP_TASK_NEVER || c.version < RV_MCP_2025_11_25;
    order->params = json_object_get(a->m->params);
    return 0;
}

/* --- eras --- */

static int unsupported(const struct asking *a, json_object *requested, rv_err **err)
{
    json_object *data = json_object_new_object();
    struct rv_json_build b = {err, data ? 0 : RV_FAIL(err, RV_E_NOMEM, "answer a request of MCP")};
    json_object *list = rv_json_build(&b, data, "supported", b.rc < 0 ? NULL : json_object_new_array());

    rv_json_build(&b, list, NULL, b.rc < 0 ? NULL : json_object_new_string(rv_mcp_version_text(RV_MCP_2026_07_28)));
    rv_json_build(&b, data, "requested", json_object_get(requested));
    int rc = b.rc < 0 ? b.rc : refuse(a, RV_MCP_UNSUPPORTED_VERSION, "this revision is not supported", data, err);
    json_object_put(data);
    return rc;
}

/* Look at what a modern request says of itself. *ok false: it was refused. */
static int check_modern(struct asking *a, bool *ok, rv_err **err)
{
    json_object *meta = rv_json_get_obj(a->m->params, "_meta"), *version = rv_json_member(meta, MCP_META_VERSION);
    json_object *capabilities = rv_json_get_obj(meta, MCP_META_CAPABILITIES);

    *ok = false;
    if (!rv_json_is_text(version))
        return invalid(a, "\"_meta\" does not have \"" MCP_META_VERSION "\"", err);
    if (rv_mcp_version_of(rv_json_str(version)) != RV_MCP_2026_07_28)
        return unsupported(a, version, err);
    if (!capabilities)
        return invalid(a, "\"_meta\" does not have \"" MCP_META_CAPABILITIES "\"", err);
    a->can_ask = can_ask(capabilities);
    a->takes_tasks = rv_json_get_obj(rv_json_get_obj(capabilities, "extensions"), MCP_TASKS) != NULL;
    *ok = true;
    return 0;
}

json_object *mcp_tasks_wanted(struct rv_json_build *b)
{
    static const char *const path[] = {"requiredCapabilities", "extensions", MCP_TASKS};
    json_object *data = json_object_new_object(), *to = data;

    if (!data)
        b->rc = RV_FAIL(b->err, RV_E_NOMEM, "answer a request of MCP");
    for (size_t i = 0; i < RV_COUNT(path); i++)
        to = rv_json_build(b, to, path[i], b->rc < 0 ? NULL : json_object_new_object());
    return data;
}

/* The method is of an extension that the request does not declare. */
static int missing_tasks(const struct asking *a, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *data = mcp_tasks_wanted(&b);
    int rc = b.rc < 0
                 ? b.rc
                 : refuse(a, RV_MCP_MISSING_CAPABILITY, "the client does not declare \"" MCP_TASKS "\"", data, err);

    json_object_put(data);
    return rc;
}

/* Before `initialize` a request may be of either era. */
static bool is_modern(const rv_mcp_server *s, const struct rv_mcp_message *m)
{
    if (s->opts.is_modern || s->version)
        return s->opts.is_modern;
    return strcmp(m->method, "server/discover") == 0 ||
           rv_json_member(rv_json_get_obj(m->params, "_meta"), MCP_META_VERSION) != NULL;
}

static int take_request(rv_mcp_server *s, const struct rv_mcp_message *m, struct rv_mcp_orders *orders, rv_err **err)
{
    struct asking a = {.s = s, .m = m, .orders = orders, .is_modern = is_modern(s, m), .can_ask = s->can_ask};
    const struct method *method = find_method(s, m->method, a.is_modern);
    bool ok = true;
    int rc = 0;

    if (is_busy(s, m->id))
        return refuse(&a, RV_MCP_INVALID_REQUEST, "a request with this id is not answered yet", NULL, err);
    if (a.is_modern)
        rc = check_modern(&a, &ok, err);
    if (rc < 0 || !ok)
        return rc;
    if (!method) {
        rv_buf text = RV_BUF_INIT(MAX_SAID + 100);
        rv_buf_printf(&text, "there is no method \"%.*s\"", RV_STR_ARG(rv_utf8_cut(rv_str_of(m->method), MAX_SAID)));
        rc = rv_buf_check(&text, "an answer", err);
        if (rc == 0)
            rc = refuse(&a, RV_MCP_METHOD_NOT_FOUND, rv_buf_cstr(&text), NULL, err);
        rv_buf_fini(&text);
        return rc;
    }
    if (!a.is_modern && !s->version && method->answer != initialize && method->answer != ping)
        return refuse(&a, RV_MCP_INVALID_REQUEST, "the session is not initialized: send \"initialize\" first", NULL,
                      err);
    if (method->answer)
        return method->answer(&a, err);
    if (a.is_modern && method->is_of_tasks && !a.takes_tasks)
        return missing_tasks(&a, err);
    const char *fault = method->check ? method->check(m->params) : NULL;
    return fault ? invalid(&a, fault, err) : begin_call(&a, method, err);
}

/* --- notifications and answers --- */

static int take_notification(rv_mcp_server *s, const struct rv_mcp_message *m, struct rv_mcp_orders *orders,
                             rv_err **err)
{
    json_object *id = rv_json_member(m->params, "requestId");

    if (strcmp(m->method, "notifications/cancelled") != 0)
        return 0; /* of the others none changes anything here */
    for (size_t i = 0; id && i < s->n_calls; i++)
        if (rv_json_equal(s->calls[i].id, id)) {
            struct rv_mcp_order *order = mcp_order_new(orders, RV_MCP_STOP, s->calls[i].n, err);
            if (!order)
                return RV_E_NOMEM;
            mcp_end_call(s, &s->calls[i]);
            return 0;
        }
    return 0; /* its answer is on its way */
}

/* The answer to a question of ours. An error counts as no answer. */
static int take_answer(rv_mcp_server *s, const struct rv_mcp_message *m, struct rv_mcp_orders *orders, rv_err **err)
{
    rv_str action = m->kind == RV_MCP_RESULT ? rv_json_member_str(m->result, "action") : (rv_str){NULL, 0};

    for (size_t i = 0; i < s->n_calls && rv_json_is_int(m->id); i++) {
        struct mcp_call *c = &s->calls[i];
        if (!c->asked || c->asked != json_object_get_int64(m->id))
            continue;
        struct rv_mcp_order *order = mcp_order_new(orders, RV_MCP_ANSWERED, c->n, err);
        if (!order)
            return RV_E_NOMEM;
        c->asked = 0;
        order->action = rv_str_is(action, "accept")    ? RV_MCP_ACCEPT
                        : rv_str_is(action, "decline") ? RV_MCP_DECLINE
                                                       : RV_MCP_CANCEL;
        order->content = order->action == RV_MCP_ACCEPT ? json_object_get(rv_json_get_obj(m->result, "content")) : NULL;
        return 0;
    }
    return 0;
}

int rv_mcp_server_receive(rv_mcp_server *s, const struct rv_mcp_message *m, struct rv_mcp_orders *orders, rv_err **err)
{
    switch (m->kind) {
    case RV_MCP_REQUEST:
        return take_request(s, m, orders, err);
    case RV_MCP_NOTIFICATION:
        return take_notification(s, m, orders, err);
    case RV_MCP_RESULT:
    case RV_MCP_ERROR:
        return take_answer(s, m, orders, err);
    }
    return RV_FAIL(err, RV_E_INTERNAL, "a message of an unknown kind");
}

int rv_mcp_server_read(rv_mcp_server *s, rv_str bytes, struct rv_mcp_orders *orders, rv_err **err)
{
    struct rv_mcp_message m;
    rv_err *why = NULL;
    int code = 0, rc = rv_mcp_read(bytes, &m, &code, &why);

    if (rc == 0) {
        rc = rv_mcp_server_receive(s, &m, orders, err);
    } else if (rc == RV_E_INVALID) {
        rv_buf text = RV_BUF_INIT(4 << 10);
        rv_err_write_chain(why, &text);
        rc = rv_buf_check(&text, "an answer", err);
        if (rc == 0)
            rc = rv_mcp_server_refuse(
                m.id, &(const struct rv_mcp_server_error){.code = code, .text = rv_buf_cstr(&text)}, orders, err);
        rv_buf_fini(&text);
    } else {
        rc = RV_FAIL(err, rc, "read a message of MCP");
    }
    rv_err_free(why);
    rv_mcp_message_fini(&m);
    return rc;
}

int rv_mcp_server_log(rv_mcp_server *s, int64_t call, json_object *data, struct rv_mcp_orders *orders, rv_err **err)
{
    struct mcp_call *c = mcp_find_call(s, call);
    json_object *params = NULL;

    if (!c || c->version == RV_MCP_2026_07_28 || s->level == MCP_LOG_NONE || s->level > INFO)
        return 0;
    struct rv_json_build b = {err,
                              (params = json_object_new_object()) ? 0 : RV_FAIL(err, RV_E_NOMEM, "log to a client")};
    rv_json_build_text(&b, params, "level", levels[INFO]);
    rv_json_build_text(&b, params, "logger", s->opts.name);
    rv_json_build(&b, params, "data", b.rc < 0 ? NULL : json_object_get(data));
    struct rv_mcp_order *order = b.rc < 0 ? NULL : mcp_order_new(orders, RV_MCP_SEND, call, err);
    int rc = b.rc < 0 ? b.rc : order ? 0 : RV_E_NOMEM;
    if (rc == 0)
        rc = rv_mcp_write_notification("notifications/message", params, &order->bytes, err);
    json_object_put(params);
    return rc;
}
