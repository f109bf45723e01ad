/* Servers of tools on the pool's loop: one of MCP as a link without a transport, and one by REST over loopback. */
#include <stdio.h>
#include <uv.h>

#include "coreengine/http/http.h"
#include "coreengine/tools/rest/rest.h"
#include "tests/contract/tools/world.h"

#define MAX_QUEUE 64
#define WAIT_US   INT64_C(10000)

/* --- MCP --- */

/* Answers come from the loop, never from inside send. */
struct peer {
    struct rv_mcp_link_user user;
    uv_async_t wake;
    struct {
        int64_t id;
        char *text; /* owned */
    } queue[MAX_QUEUE];
    size_t n;
    bool is_closing;
    void (*closed)(void *arg);
    void *arg;
};

static const char tools_text[] = "{\"tools\":[{\"name\":\"good\",\"inputSchema\":{\"type\":\"object\"}},"
                                 "{\"name\":\"fails\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"slow\","
                                 "\"inputSchema\":{\"type\":\"object\"}}]}";

/* NULL: no answer comes. */
static const char *result_of(const struct rv_mcp_send *m)
{
    rv_str method = rv_str_of(m->method), name = rv_str_of(m->name ? m->name : "");

    if (rv_str_is(method, "server/discover"))
        return "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},\"ttlMs\":0,"
               "\"cacheScope\":\"private\"}";
    if (rv_str_is(method, "tools/list"))
        return tools_text;
    if (rv_str_is(name, "slow"))
        return NULL;
    return rv_str_is(name, "good") ? "{\"content\":[],\"structuredContent\":{\"ok\":true}}"
                                   : "{\"content\":[{\"type\":\"text\",\"text\":\"no such thing\"}],\"isError\":true}";
}

static int peer_send(void *self, const struct rv_mcp_send *m, rv_err **err)
{
    const char *result = m->method ? result_of(m) : NULL;
    rv_buf text = RV_BUF_INIT(4096);
    struct peer *p = self;

    if (m->id == 0 || !result)
        return 0;
    if (p->n == MAX_QUEUE)
        return RV_FAIL(err, RV_E_LIMIT, "too many requests");
    rv_buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", (long long)m->id, result);
    p->queue[p->n].id = m->id;
    p->queue[p->n++].text = rv_buf_steal(&text, NULL);
    uv_async_send(&p->wake);
    return 0;
}

static void take(struct peer *p, size_t i)
{
    free(p->queue[i].text);
    p->queue[i] = p->queue[--p->n];
}

static void peer_cancel(void *self, int64_t id)
{
    struct peer *p = self;

    for (size_t i = 0; i < p->n; i++)
        if (p->queue[i].id == id)
            take(p, i--);
}

static void on_wake(uv_async_t *wake)
{
    struct peer *p = wake->data;

    while (p->n > 0 && !p->is_closing) {
        char *text = p->queue[0].text;
        p->queue[0].text = NULL;
        take(p, 0);
        p->user.message(p->user.self, rv_str_of(text));
        free(text);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct peer *p = handle->data;

    while (p->n > 0)
        take(p, 0);
    if (p->closed)
        p->closed(p->arg);
    free(p);
}

static void peer_close(void *self, void (*closed)(void *arg), void *arg)
{
    struct peer *p = self;

    p->is_closing = true;
    p->closed = closed;
    p->arg = arg;
    uv_close((uv_handle_t *)&p->wake, on_closed);
}

static const struct rv_mcp_link_ops peer_ops = {"peer", peer_send, peer_cancel, peer_close};

static int peer_open(void *self, const struct rv_mcp_server_config *server, uv_loop_t *loop,
                     const struct rv_mcp_link_user *user, struct rv_mcp_link *out, rv_err **err)
{
    struct peer *p = calloc(1, sizeof *p);

    (void)self;
    (void)server;
    (void)err;
    ck_assert_ptr_nonnull(p);
    p->user = *user;
    ck_assert_int_eq(uv_async_init(loop, &p->wake, on_wake), 0);
    p->wake.data = p;
    *out = (struct rv_mcp_link){&peer_ops, p};
    return 0;
}

/* --- REST --- */

static void on_request(void *self, rv_httpd_exchange *x)
{
    const struct rv_httpd_request *req = rv_httpd_exchange_request(x);
    struct world *w = self;

    if (rv_str_is(req->path, "/slow")) { /* no client gets an answer */
        ck_assert_uint_lt(w->n_unanswered, RV_COUNT(w->unanswered));
        w->unanswered[w->n_unanswered++] = x;
        return;
    }
    bool is_good = rv_str_is(req->path, "/good");
    const struct rv_httpd_answer answer = {.status = is_good ? 200 : 404,
                                           .type = "application/json",
                                           .body = is_good ? RV_STR_LIT("{\"ok\":true}") : RV_STR_LIT("{}")};
    rv_httpd_reply(x, &answer);
}

static int rest_open(void *self, const struct rv_mcp_server_config *server, uv_loop_t *loop,
                     const struct rv_mcp_link_user *user, struct rv_mcp_link *out, rv_err **err)
{
    struct rv_httpd_opts http = RV_HTTPD_OPTS_INIT;
    struct world *w = self;
    char url[64];
    int port = 0;

    http.loop = loop;
    http.handler.on_request = on_request;
    http.handler.self = w;
    ck_assert_ptr_null(w->httpd);
    ck_assert_int_eq(rv_httpd_new(&http, &w->httpd, NULL), 0);
    ck_assert_int_eq(rv_httpd_listen(w->httpd, &(struct rv_httpd_listen){.address = "127.0.0.1"}, &port, NULL), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    const struct rv_rest_opts opts = {
        .loop = loop, .document = server->openapi, .url = url, .allowed = "127.0.0.0/8", .user = *user};
    return rv_rest_open(&opts, out, err);
}

/* --- both --- */

static void open_source(struct world *w, const char *server, struct rv_mcp_http_transport http)
{
    rv_buf yaml = RV_BUF_INIT(4096);

    w->dir = rv_kit_tmpdir();
    w->findings = rv_findings_new();
    rv_buf_printf(&yaml, "name: p\nmcp_servers: {srv: {%s}}\nagents: [{name: a}]\n", server);
    char *document = rv_kit_path(w->dir, "api.json");
    rv_kit_write(document, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"t\",\"version\":\"1\"},\"paths\":{"
                           "\"/good\":{\"get\":{\"operationId\":\"good\",\"responses\":{}}},"
                           "\"/fails\":{\"get\":{\"operationId\":\"fails\",\"responses\":{}}},"
                           "\"/slow\":{\"get\":{\"operationId\":\"slow\",\"responses\":{}}}}}");
    free(document);
    ck_assert_int_eq(rv_pipeline_parse(rv_buf_str(&yaml), "p.yaml", w->dir, w->findings, &w->pipeline, NULL), 0);
    rv_buf_fini(&yaml);
    const struct rv_mcp_tools_opts opts = {
        .pipeline = w->pipeline, .connects = true, .is_called = true, .http = http, .findings = w->findings};
    ck_assert_int_eq(rv_mcp_tools_new(&opts, &w->mcp, NULL), 0);
    ck_assert_msg(rv_findings_n(w->findings) == 0, "%s", rv_findings_at(w->findings, 0).text);
    w->of_servers = rv_mcp_tools_source(w->mcp, NULL);
    w->s = &w->of_servers;
}

void peers_open_mcp(struct world *w)
{
    open_source(w, "url: 'http://x/'", (struct rv_mcp_http_transport){peer_open, w});
}

void peers_open_rest(struct world *w)
{
    open_source(w, "openapi: api.json", (struct rv_mcp_http_transport){rest_open, w});
}

void peers_turn(struct world *w)
{
    rv_mcp_pool_wait(rv_mcp_tools_pool(w->mcp), WAIT_US);
}

void peers_close(struct world *w)
{
    for (size_t i = 0; i < w->n_unanswered; i++)
        rv_httpd_drop(w->unanswered[i]);
    rv_httpd_free(w->httpd);
    rv_mcp_tools_free(w->mcp);
    rv_pipeline_free(w->pipeline);
    rv_findings_free(w->findings);
    if (w->dir)
        rv_kit_tmpdir_remove(w->dir);
}
