/* Any lines as what a client sends to a session: each request has one answer or became a call, a notification has none,
 * and all that is written are messages. */
#include <stdlib.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/fuzz.h"

static void check(rv_mcp_server *s, const struct rv_mcp_message *m, struct rv_mcp_orders *orders)
{
    size_t n_sent = 0, n_done = 0;

    for (size_t i = 0; i < orders->n; i++) {
        const struct rv_mcp_order *o = &orders->items[i];
        struct rv_mcp_message sent;
        n_sent += o->kind == RV_MCP_SEND;
        n_done += o->kind == RV_MCP_DO;
        require(o->kind != RV_MCP_DO || rv_mcp_server_has_call(s, o->call));
        if (o->kind != RV_MCP_SEND)
            continue;
        require(rv_mcp_read(rv_buf_str(&o->bytes), &sent, NULL, NULL) == 0);
        require(sent.kind == RV_MCP_RESULT || sent.kind == RV_MCP_ERROR);
        require(!m || rv_json_equal(sent.id, m->id));
        rv_mcp_message_fini(&sent);
    }
    require(!m || n_sent + n_done == (m->kind == RV_MCP_REQUEST));
    require(m || (n_sent == 1 && n_done == 0));
}

/* Of the calls that began every other one gets its result, so that ids come free. */
static void go_on(rv_mcp_server *s, struct rv_mcp_orders *orders)
{
    json_object *result = json_object_new_object();
    struct rv_mcp_orders more = {NULL, 0, 0};

    for (size_t i = 0; i < orders->n; i++)
        if (orders->items[i].kind == RV_MCP_DO && orders->items[i].call % 2 == 0)
            require(rv_mcp_server_give(s, orders->items[i].call, result, &more, NULL) == 0 && more.n > 0);
    json_object_put(result);
    rv_mcp_orders_fini(&more);
}

static int on_line(void *self, rv_str line, bool is_whole, rv_err **err)
{
    struct rv_mcp_orders orders = {NULL, 0, 0};
    struct rv_mcp_message m;

    if (!is_whole)
        return 0;
    bool is_message = rv_mcp_read(line, &m, NULL, NULL) == 0;
    int rc = rv_mcp_server_read(self, line, &orders, err);
    require(rc == 0);
    check(self, is_message ? &m : NULL, &orders);
    go_on(self, &orders);
    rv_mcp_message_fini(&m);
    rv_mcp_orders_fini(&orders);
    return rc;
}

RV_FUZZ_TARGET(mcp_server)
{
    struct rv_mcp_server_opts opts = {.name = "reeve", .version = "1"};
    struct rv_mcp_lines lines;
    rv_mcp_server *s = NULL;

    opts.is_modern = size > 0 && data[0] == 'm';
    require(rv_mcp_server_new(&opts, &s, NULL) == 0);
    rv_mcp_lines_init(&lines, (size_t)64 << 10, on_line, s);
    require(rv_mcp_lines_read(&lines, (rv_str){(const char *)data, size}, NULL) == 0);
    require(rv_mcp_lines_end(&lines, NULL) == 0);
    rv_mcp_lines_fini(&lines);
    rv_mcp_server_free(s);
    return 0;
}
