/* Calls under way: orders about them, and what the shell gives for them. */
#include <inttypes.h>
#include <stdlib.h>

#include "coreengine/mcp/server_internal.h"

/* --- orders --- */

struct rv_mcp_order *mcp_order_new(struct rv_mcp_orders *orders, enum rv_mcp_order_kind kind, int64_t call,
                                   rv_err **err)
{
    if (!rv_has_room(&orders->items, &orders->cap, orders->n + 1, sizeof *orders->items)) {
        RV_IGNORE(RV_FAIL(err, RV_E_NOMEM, "answer a client of MCP"), "the caller returns the code");
        return NULL;
    }
    orders->items[orders->n] =
        (struct rv_mcp_order){.kind = kind, .call = call, .bytes = RV_BUF_INIT(4 * RV_MCP_MAX_MESSAGE)};
    return &orders->items[orders->n++];
}

void rv_mcp_orders_fini(struct rv_mcp_orders *orders)
{
    for (size_t i = 0; i < orders->n; i++) {
        rv_buf_fini(&orders->items[i].bytes);
        json_object_put(orders->items[i].params);
        json_object_put(orders->items[i].content);
    }
    free(orders->items);
    *orders = (struct rv_mcp_orders){NULL, 0, 0};
}

/* --- calls --- */

struct mcp_call *mcp_find_call(const rv_mcp_server *s, int64_t call)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i].n == call)
            return (struct mcp_call *)(uintptr_t)&s->calls[i];
    return NULL;
}

void mcp_end_call(rv_mcp_server *s, struct mcp_call *c)
{
    json_object_put(c->id);
    json_object_put(c->token);
    json_object_put(c->task);
    *c = s->calls[--s->n_calls];
    s->calls[s->n_calls] = (struct mcp_call){.n = 0};
}

int64_t rv_mcp_server_last_call(const rv_mcp_server *s)
{
    return s->last_call;
}

bool rv_mcp_server_has_call(const rv_mcp_server *s, int64_t call)
{
    return mcp_find_call(s, call) != NULL;
}

bool rv_mcp_server_listens(const rv_mcp_server *s, int64_t call)
{
    const struct mcp_call *c = mcp_find_call(s, call);

    return c && (c->token || s->level != MCP_LOG_NONE);
}

bool rv_mcp_server_takes_tasks(const rv_mcp_server *s, int64_t call)
{
    const struct mcp_call *c = mcp_find_call(s, call);

    return c && c->takes_tasks;
}

int rv_mcp_server_needs_task(rv_mcp_server *s, int64_t call, struct rv_mcp_orders *orders, rv_err **err)
{
    const struct mcp_call *c = mcp_find_call(s, call);
    struct rv_json_build b = {.err = err};

    if (!c)
        return 0;
    if (c->version != RV_MCP_2026_07_28)
        return rv_mcp_server_fail(s, call,
                                  &(const struct rv_mcp_server_error){.code = RV_MCP_METHOD_NOT_FOUND,
                                                                      .text = "this tool needs the parameter \"task\""},
                                  orders, err);
    json_object *data = mcp_tasks_wanted(&b);
    int rc = b.rc < 0 ? b.rc
                      : rv_mcp_server_fail(s, call,
                                           &(const struct rv_mcp_server_error){
                                               .code = RV_MCP_MISSING_CAPABILITY,
                                               .text = "this tool needs a client that declares \"" MCP_TASKS "\"",
                                               .data = data},
                                           orders, err);
    json_object_put(data);
    return rc;
}

bool rv_mcp_server_can_ask(const rv_mcp_server *s, int64_t call)
{
    const struct mcp_call *c = mcp_find_call(s, call);

    return c && c->can_ask;
}

/* --- answers --- */

int mcp_answer(json_object *id, json_object *result, struct rv_mcp_orders *orders, rv_err **err)
{
    struct rv_mcp_order *order = mcp_order_new(orders, RV_MCP_SEND, 0, err);

    if (!order)
        return RV_E_NOMEM;
    order->is_answer = true;
    return rv_mcp_write_result(id, result, &order->bytes, err);
}

static int refuse_at(int64_t call, json_object *id, const struct rv_mcp_server_error *why, struct rv_mcp_orders *orders,
                     rv_err **err)
{
    struct rv_mcp_order *order = mcp_order_new(orders, RV_MCP_SEND, call, err);

    if (!order)
        return RV_E_NOMEM;
    order->is_answer = true;
    order->code = why->code;
    return rv_mcp_write_error(id, why->code, why->text, why->data, &order->bytes, err);
}

int rv_mcp_server_refuse(json_object *id, const struct rv_mcp_server_error *why, struct rv_mcp_orders *orders,
                         rv_err **err)
{
    return refuse_at(0, id, why, orders, err);
}

int rv_mcp_server_fail(rv_mcp_server *s, int64_t call, const struct rv_mcp_server_error *why,
                       struct rv_mcp_orders *orders, rv_err **err)
{
    struct mcp_call *c = mcp_find_call(s, call);

    if (!c)
        return 0;
    int rc = refuse_at(call, c->id, why, orders, err);
    mcp_end_call(s, c);
    return rc;
}

int rv_mcp_server_refuse_resource(rv_mcp_server *s, int64_t call, const char *uri, struct rv_mcp_orders *orders,
                                  rv_err **err)
{
    struct mcp_call *c = mcp_find_call(s, call);
    json_object *data = c ? json_object_new_object() : NULL;

    if (!c)
        return 0;
    int rc = data ? rv_json_set_text(data, "uri", uri, err) : RV_FAIL(err, RV_E_NOMEM, "answer a client of MCP");
    if (rc == 0)
        rc = rv_mcp_server_fail(
            s, call,
            &(const struct rv_mcp_server_error){
                .code = c->version == RV_MCP_2026_07_28 ? RV_MCP_INVALID_PARAMS : RV_MCP_RESOURCE_NOT_FOUND,
                .text = "unknown resource; resources/templates/list has the forms of addresses",
                .data = data},
            orders, err);
    json_object_put(data);
    return rc;
}

int rv_mcp_server_give(rv_mcp_server *s, int64_t call, json_object *result, struct rv_mcp_orders *orders, rv_err **err)
{
    struct mcp_call *c = mcp_find_call(s, call);
    json_object *shaped = NULL;

    if (!c)
        return 0;
    int rc = mcp_shape(s, c, result, &shaped, err);
    if (rc < 0)
        return rc;
    struct rv_mcp_order *order = mcp_order_new(orders, RV_MCP_SEND, call, err);
    rc = order ? rv_mcp_write_result(c->id, shaped, &order->bytes, err) : RV_E_NOMEM;
    if (order)
        order->is_answer = true;
    json_object_put(shaped);
    mcp_end_call(s, c);
    return rc;
}

int rv_mcp_server_give_list(rv_mcp_server *s, int64_t call, json_object *entries, int64_t next,
                            struct rv_mcp_orders *orders, rv_err **err)
{
    /* Only the lists. */
    static const char *const keys[RV_N_MCP_WANTS] = {[RV_MCP_WANT_LIST_TOOLS] = "tools",
                                                     [RV_MCP_WANT_LIST_RESOURCES] = "resources",
                                                     [RV_MCP_WANT_LIST_TEMPLATES] = "resourceTemplates",
                                                     [RV_MCP_WANT_LIST_PROMPTS] = "prompts",
                                                     [RV_MCP_WANT_LIST_TASKS] = "tasks"};
    struct mcp_call *c = mcp_find_call(s, call);
    json_object *result = c ? json_object_new_object() : NULL;
    rv_buf cursor = RV_BUF_INIT(32);

    if (!c)
        return 0;
    int rc = result ? rv_json_set_ref(result, keys[c->want], entries, err)
                    : RV_FAIL(err, RV_E_NOMEM, "answer a client of MCP");
    if (rc == 0 && next > 0) {
        rv_buf_printf(&cursor, "%" PRId64, next);
        rc = rv_buf_check(&cursor, "a cursor", err);
        rc = rc == 0 ? rv_json_set_str(result, "nextCursor", rv_buf_str(&cursor), err) : rc;
        rv_buf_fini(&cursor);
    }
    if (rc == 0)
        rc = rv_mcp_server_give(s, call, result, orders, err);
    json_object_put(result);
    return rc;
}

/* --- what comes before the answer --- */

int rv_mcp_server_tell_progress(rv_mcp_server *s, int64_t call, const struct rv_mcp_progress *done,
                                struct rv_mcp_orders *orders, rv_err **err)
{
    struct mcp_call *c = mcp_find_call(s, call);

    if (!c || !c->token || done->n <= c->progress)
        return 0;
    json_object *params = json_object_new_object();
    struct rv_json_build b = {err, params ? 0 : RV_FAIL(err, RV_E_NOMEM, "tell a client of MCP")};
    rv_json_build(&b, params, "progressToken", b.rc < 0 ? NULL : json_object_get(c->token));
    rv_json_build_int(&b, params, "progress", done->n);
    if (done->total > 0)
        rv_json_build_int(&b, params, "total", done->total);
    if (done->text && c->version >= RV_MCP_2025_03_26)
        rv_json_build_text(&b, params, "message", done->text);
    struct rv_mcp_order *order = b.rc < 0 ? NULL : mcp_order_new(orders, RV_MCP_SEND, call, err);
    int rc = b.rc < 0 ? b.rc : order ? 0 : RV_E_NOMEM;
    if (rc == 0)
        rc = rv_mcp_write_notification("notifications/progress", params, &order->bytes, err);
    if (rc == 0)
        c->progress = done->n;
    json_object_put(params);
    return rc;
}

/* The request that a client shows as a form. */
static void write_form(const struct mcp_call *c, const struct rv_mcp_question *q, struct rv_json_build *b,
                       json_object *params)
{
    if (c->version >= RV_MCP_2025_11_25)
        rv_json_build_text(b, params, "mode", "form");
    rv_json_build_text(b, params, "message", q->message);
    rv_json_build(b, params, "requestedSchema", b->rc < 0 ? NULL : json_object_get(q->schema));
    mcp_mark_task(c, b, params);
}

static int ask_legacy(rv_mcp_server *s, struct mcp_call *c, const struct rv_mcp_question *q,
                      struct rv_mcp_orders *orders, rv_err **err)
{
    json_object *params = json_object_new_object();
    struct rv_json_build b = {err, params ? 0 : RV_FAIL(err, RV_E_NOMEM, "ask a client of MCP")};

    write_form(c, q, &b, params);
    struct rv_mcp_order *order = b.rc < 0 ? NULL : mcp_order_new(orders, RV_MCP_SEND, c->n, err);
    int rc = b.rc < 0 ? b.rc : order ? 0 : RV_E_NOMEM;
    if (rc == 0)
        rc = rv_mcp_write_request(++s->last_asked, "elicitation/create", params, &order->bytes, err);
    if (rc == 0)
        c->asked = s->last_asked;
    json_object_put(params);
    return rc;
}

int rv_mcp_server_ask(rv_mcp_server *s, int64_t call, const struct rv_mcp_question *q, struct rv_mcp_orders *orders,
                      rv_err **err)
{
    struct mcp_call *c = mcp_find_call(s, call);

    if (!c)
        return 0;
    if (c->version != RV_MCP_2026_07_28)
        return ask_legacy(s, c, q, orders, err);
    json_object *result = json_object_new_object();
    struct rv_json_build b = {err, result ? 0 : RV_FAIL(err, RV_E_NOMEM, "ask a client of MCP")};
    json_object *requests = rv_json_build(&b, result, "inputRequests", b.rc < 0 ? NULL : json_object_new_object());
    json_object *one = rv_json_build(&b, requests, q->key, b.rc < 0 ? NULL : json_object_new_object());
    rv_json_build_text(&b, one, "method", "elicitation/create");
    json_object *params = rv_json_build(&b, one, "params", b.rc < 0 ? NULL : json_object_new_object());
    write_form(c, q, &b, params);
    rv_json_build_text(&b, result, "requestState", q->state);
    mcp_mark_modern(s, &b, result, "input_required");
    struct rv_mcp_order *order = b.rc < 0 ? NULL : mcp_order_new(orders, RV_MCP_SEND, call, err);
    int rc = b.rc < 0 ? b.rc : order ? 0 : RV_E_NOMEM;
    if (rc == 0) {
        order->is_answer = true;
        rc = rv_mcp_write_result(c->id, result, &order->bytes, err);
    }
    json_object_put(result);
    mcp_end_call(s, c);
    return rc;
}
