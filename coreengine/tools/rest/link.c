/* The link: messages of a session of MCP, answered on behalf of a REST server. Each message that wants an answer is an
 * exchange: answered at once, or by the HTTP request for the document or for a call. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "coreengine/mcp/mcp.h"
#include "coreengine/openapi/openapi.h"
#include "coreengine/tools/mcp/http/http.h"
#include "coreengine/tools/rest/rest.h"

#define MAX_EXCHANGES 256                /* of one link under way; a session asks for a few at a time */
#define CONNECT_US    (10 * RV_US_PER_S) /* ten seconds: a server that is there accepts at once */
#define SHOWN_BYTES   ((size_t)1000)     /* of the body of an answer that may be repeated */

/* One message of the session until its answer is given: at once, from the loop, or after an HTTP request. */
struct exchange {
    struct rest *r;
    struct exchange *next;
    int64_t id;
    bool is_document;          /* the request is for the document */
    bool is_ready;             /* the answer, or the failure, waits for the loop */
    bool is_over;              /* to be freed */
    rv_buf text;               /* ready: the message, or what failed */
    bool has_failed;           /* ready: text says why */
    enum rv_mcp_fault fault;   /* ready */
    bool is_unsent, retryable; /* ready */
    int status;                /* of the answer */
    struct rv_openapi_request request;
    rv_http_call *call; /* NULL: not under way */
    rv_buf body;
    char content_type[256];
    char *location; /* owned; of a redirect */
    bool is_short;  /* there is one, and no memory for it */
    int n_redirects;
};

struct rest {
    uv_loop_t *loop; /* borrowed */
    struct rv_mcp_link_user user;
    rv_http *http;                      /* owned, as all below */
    rv_egress *to_document, *to_server; /* to_document NULL: it is a file; owned */
    char *document, *url, *ca_file;     /* ca_file NULL: the system's; owned */
    json_object *headers;               /* configured; owned */
    struct rv_mcp_headers configured;   /* the same as lines */
    bool is_one_origin;                 /* the document is where the server is: it gets these headers, too */
    struct exchange *exchanges;
    size_t n_exchanges;
    uv_async_t wake; /* gives answers, and ends the link; not a timer, after which uv_run() once goes on to sleep */
    bool is_walking, is_closing, is_own; /* is_own: it is told who asks */
    void (*closed)(void *arg);
    void *closed_arg;
};

static int start(struct exchange *x, rv_err **err);

static bool is_address(const char *document)
{
    return strncmp(document, "http://", 7) == 0 || strncmp(document, "https://", 8) == 0;
}

static struct rv_openapi_opts how_of(const struct rest *r)
{
    return (struct rv_openapi_opts){
        .url = r->url, .document_url = r->to_document ? r->document : "", .headers = r->headers, .is_own = r->is_own};
}

/* --- exchanges --- */

static void settle(struct rest *r)
{
    if (r->is_closing && r->n_exchanges == 0)
        RV_IGNORE(uv_async_send(&r->wake), "the handle is open");
}

static struct exchange *exchange_new(struct rest *r, int64_t id)
{
    struct exchange *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->r = r;
    x->id = id;
    rv_buf_init(&x->text, RV_MCP_MAX_MESSAGE);
    rv_buf_init(&x->body, RV_JSON_MAX_BYTES);
    x->next = r->exchanges;
    r->exchanges = x;
    r->n_exchanges++;
    return x;
}

static void exchange_free(struct exchange *x)
{
    struct rest *r = x->r;

    for (struct exchange **at = &r->exchanges; *at; at = &(*at)->next)
        if (*at == x) {
            *at = x->next;
            break;
        }
    r->n_exchanges--;
    rv_openapi_request_fini(&x->request);
    rv_buf_fini(&x->text);
    rv_buf_fini(&x->body);
    free(x->location);
    free(x);
    settle(r);
}

static void drop(struct exchange *x)
{
    if (x->call)
        rv_http_cancel(x->call);
    x->call = NULL;
    x->is_over = true;
    if (!x->r->is_walking)
        exchange_free(x);
}

/* --- answers --- */

static void set_ready(struct exchange *x)
{
    x->is_ready = true;
    RV_IGNORE(uv_async_send(&x->r->wake), "the handle is open");
}

static void set_failed(struct exchange *x, enum rv_mcp_fault fault, rv_err *why)
{
    x->has_failed = true;
    x->fault = rv_err_is(why, RV_E_NOMEM) ? RV_MCP_FAULT_LOCAL : fault; /* a lack of ours, not of the server */
    rv_buf_clear(&x->text);
    rv_err_write_chain(why, &x->text);
    rv_err_free(why);
    set_ready(x);
}

static void set_result(struct exchange *x, json_object *result)
{
    rv_jw w = rv_jw_on(&x->text);
    rv_err *why = NULL;

    rv_buf_clear(&x->text);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "jsonrpc", "2.0");
    rv_jw_kv_int(&w, "id", x->id);
    rv_jw_kv_value(&w, "result", result);
    rv_jw_obj_end(&w);
    json_object_put(result);
    if (rv_buf_check(&x->text, "the answer of a REST server", &why) < 0)
        set_failed(x, RV_MCP_FAULT_TOO_LARGE, why);
    else
        set_ready(x);
}

static void list_operations(struct exchange *x, rv_str text)
{
    const struct rv_openapi_opts how = how_of(x->r);
    json_object *document = NULL, *tools = NULL, *result = NULL;
    rv_err *why = NULL;

    int rc = rv_openapi_read(text, x->r->document, &document, &why);
    if (rc == 0)
        rc = rv_openapi_build_tools(document, &how, &tools, &why);
    if (rc == 0) {
        result = json_object_new_object();
        rc = result ? rv_json_set_take(result, "tools", tools, &why) : RV_FAIL(&why, RV_E_NOMEM, "list operations");
        tools = result ? NULL : tools;
    }
    if (rc == 0) {
        set_result(x, result);
        result = NULL;
    } else {
        x->is_unsent = true;
        set_failed(x, RV_MCP_FAULT_BAD_MESSAGE, why);
    }
    json_object_put(document);
    json_object_put(tools);
    json_object_put(result);
}

/* --- HTTP: what comes in --- */

static void on_head(void *self, const struct rv_http_head *head)
{
    struct exchange *x = self;

    x->status = head->status;
    snprintf(x->content_type, sizeof x->content_type, "%.*s", RV_STR_ARG(head->content_type));
    free(x->location);
    rv_str location = rv_http_header(head, "location");
    x->location = location.ptr ? rv_str_dup(location) : NULL;
    x->is_short = location.ptr && !x->location;
}

static bool on_body(void *self, rv_str bytes)
{
    struct exchange *x = self;

    rv_buf_add_str(&x->body, bytes);
    return true;
}

/* --- HTTP: how it ends --- */

static void fail_by_end(struct exchange *x, const struct rv_http_end *end)
{
    x->has_failed = true;
    x->fault = rv_mcp_fault_of_http(end);
    x->is_unsent = !end->was_sent;
    x->retryable = x->fault == RV_MCP_FAULT_NO_CONNECTION || x->fault == RV_MCP_FAULT_CONNECTION_LOST;
    rv_buf_clear(&x->text);
    rv_buf_puts(&x->text, end->text);
    if (end->is_denied)
        rv_buf_puts(&x->text, RV_HTTP_ALLOW_NET);
    set_ready(x);
}

/* 1: it goes on at another address of the same origin. What changes something is not sent a second time. */
static int redirect(struct exchange *x, rv_err **err)
{
    bool is_read = rv_str_is(rv_str_of(x->request.method), "GET") || rv_str_is(rv_str_of(x->request.method), "HEAD");

    if (!rv_http_is_redirect(x->status) || (!is_read && x->status != 307 && x->status != 308))
        return 0;
    if (x->is_short)
        return RV_FAIL(err, RV_E_NOMEM, "follow a redirect");
    if (!x->location || x->location[0] == '\0')
        return 0;
    int rc = rv_mcp_web_follow_redirect(x->r->http, x->location, &x->n_redirects, &x->request.url, err);
    rv_buf_clear(&x->body);
    x->status = 0;
    if (rc == 0)
        rc = start(x, err);
    return rc < 0 ? rc : 1;
}

static void fail_by_status(struct exchange *x)
{
    rv_str body = rv_utf8_cut(rv_str_trim(rv_buf_str(&x->body)), SHOWN_BYTES);

    x->has_failed = true;
    x->fault = RV_MCP_FAULT_HTTP_STATUS;
    x->is_unsent = x->is_document;
    x->retryable = rv_mcp_is_busy(x->status);
    rv_buf_clear(&x->text);
    rv_buf_printf(&x->text, "HTTP status %d%s", x->status, x->is_document ? " for the OpenAPI document" : "");
    if (!x->is_document && body.len > 0 && rv_utf8_valid(body, NULL) && !memchr(body.ptr, '\0', body.len)) /* a text */
        rv_buf_printf(&x->text, ": %.*s", RV_STR_ARG(body));
    set_ready(x);
}

static void conclude(struct exchange *x)
{
    const struct rv_openapi_answer answer = {.status = x->status,
                                             .content_type = rv_str_of(x->content_type),
                                             .body = rv_buf_str(&x->body),
                                             .url = x->request.url};
    json_object *result = NULL;
    rv_err *why = NULL;

    if (rv_buf_check(&x->body, "the body of an answer", &why) < 0) {
        set_failed(x, RV_MCP_FAULT_LOCAL, why);
    } else if (rv_mcp_is_busy(x->status) || (x->is_document && (x->status < 200 || x->status > 299))) {
        fail_by_status(x);
    } else if (x->is_document) {
        list_operations(x, rv_buf_str(&x->body));
    } else if (rv_openapi_build_result(&answer, &result, &why) < 0) {
        set_failed(x, RV_MCP_FAULT_BAD_MESSAGE, why);
    } else {
        set_result(x, result);
    }
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct exchange *x = self;
    rv_err *why = NULL;

    x->call = NULL;
    int rc = end->fault == RV_HTTP_OK ? redirect(x, &why) : 0;
    if (rc < 0)
        set_failed(x, rc == RV_E_NOMEM ? RV_MCP_FAULT_LOCAL : RV_MCP_FAULT_HTTP_STATUS, why);
    else if (rc == 0 && end->fault == RV_HTTP_OK)
        conclude(x);
    else if (rc == 0)
        fail_by_end(x, end);
}

/* --- HTTP: how it begins --- */

static int start(struct exchange *x, rv_err **err)
{
    const struct rv_http_events events = {on_head, on_body, on_end, x};
    const struct rest *r = x->r;
    struct rv_mcp_headers headers = {.n = 0};
    struct rv_http_request req = {.method = x->request.method,
                                  .url = x->request.url,
                                  .body = rv_buf_str(&x->request.body),
                                  .connect_us = CONNECT_US,
                                  .max_body = RV_JSON_MAX_BYTES,
                                  .ca_file = r->ca_file,
                                  .egress = x->is_document ? r->to_document : r->to_server};

    int rc = rv_mcp_headers_copy(&x->request.headers, &headers, err);
    if (rc == 0 && (!x->is_document || r->is_one_origin))
        rc = rv_mcp_headers_copy(&r->configured, &headers, err);
    if (rc == 0) {
        req.headers = (const char *const *)headers.lines;
        req.n_headers = headers.n;
        rc = rv_http_start(r->http, &req, &events, &x->call, err);
    }
    rv_mcp_headers_fini(&headers);
    return rc;
}

/* --- messages --- */

static int discover(struct exchange *x, rv_err **err)
{
    rv_buf_printf(&x->text,
                  "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"supportedVersions\":[\"2026-07-28\"],"
                  "\"capabilities\":{\"tools\":{}},\"ttlMs\":0,\"cacheScope\":\"private\"}}",
                  (long long)x->id);
    set_ready(x);
    return rv_buf_check(&x->text, "an answer", err);
}

static int list(struct exchange *x, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_OPENAPI_MAX_BYTES);
    struct rest *r = x->r;
    rv_err *why = NULL;

    if (r->to_document) {
        x->is_document = true;
        x->request.method = rv_str_dup(RV_STR_LIT("GET"));
        x->request.url = rv_str_dup(rv_str_of(r->document));
        if (!x->request.method || !x->request.url)
            return RV_FAIL(err, RV_E_NOMEM, "fetch an OpenAPI document");
        return start(x, err);
    }
    x->is_unsent = true;
    if (rv_file_read(r->document, &text, &why) < 0)
        set_failed(x, RV_MCP_FAULT_NO_CONNECTION, why);
    else
        list_operations(x, rv_buf_str(&text));
    return 0;
}

/* The headers that say who asks, of a server that is the author's own. */
static int add_own_headers(struct exchange *x, json_object *headers, rv_err **err)
{
    int rc = 0;

    if (!headers)
        return 0;
    json_object_object_foreach (headers, name, value)
        if (rc == 0 && strncmp(name, "x-", 2) == 0)
            rc = rv_mcp_headers_add(&x->request.headers, name, rv_json_str(value), err);
    return rc;
}

static int refuse(struct exchange *x, rv_err *why, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_OPENAPI_MAX_ERROR);
    json_object *result = NULL;

    rv_err_write_chain(why, &text);
    rv_err_free(why);
    int rc = rv_openapi_build_result(&(struct rv_openapi_answer){.body = rv_buf_str(&text)}, &result, err);
    if (rc == 0)
        set_result(x, result);
    return rc;
}

static int call(struct exchange *x, json_object *params, json_object *own_headers, rv_err **err)
{
    const struct rv_openapi_opts how = how_of(x->r);
    json_object *meta = rv_json_get_obj(params, "_meta"), *args = rv_json_get_obj(params, "arguments");
    rv_err *why = NULL;
    const char *key = rv_json_text_or(meta, RV_MCP_KEY_META, "");

    int rc = args
                 ? rv_openapi_build_request(rv_json_get_obj(meta, RV_MCP_OPERATION), args, &how, key, &x->request, &why)
                 : RV_FAIL(&why, RV_E_INVALID, "the call has no arguments");
    if (rc == 0)
        rc = add_own_headers(x, own_headers, &why);
    if (rc == 0)
        rc = start(x, &why);
    if (rc == RV_E_INVALID || rc == RV_E_LIMIT || rc == RV_E_DENIED)
        return refuse(x, why, err); /* an argument that cannot be sent is a matter for the model */
    if (rc < 0)
        set_failed(x, RV_MCP_FAULT_LOCAL, why);
    return 0;
}

static int begin(struct exchange *x, const struct rv_mcp_send *m, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_MCP_MAX_MESSAGE, .what = "a message"};
    json_object *message = NULL;

    if (strcmp(m->method, "server/discover") == 0)
        return discover(x, err);
    if (strcmp(m->method, "tools/list") == 0)
        return list(x, err);
    if (strcmp(m->method, "tools/call") != 0)
        return RV_FAIL(err, RV_E_INVALID, "a REST server has no %s", m->method);
    int rc = rv_json_parse(m->body, &opts, &message, err);
    if (rc == 0)
        rc = call(x, rv_json_get_obj(message, "params"), m->headers, err);
    json_object_put(message);
    return rc;
}

static int rest_send(void *self, const struct rv_mcp_send *m, rv_err **err)
{
    struct rest *r = self;

    if (!m->id || !m->method) /* a notification: none means something to a REST server */
        return 0;
    if (r->n_exchanges >= MAX_EXCHANGES)
        return RV_FAIL(err, RV_E_LIMIT, "%d requests are under way", MAX_EXCHANGES);
    struct exchange *x = exchange_new(r, m->id);
    if (!x)
        return RV_FAIL(err, RV_E_NOMEM, "call a REST server");
    int rc = begin(x, m, err);
    if (rc < 0)
        drop(x);
    return rc;
}

static void rest_cancel(void *self, int64_t id)
{
    struct rest *r = self;

    for (struct exchange *x = r->exchanges; x; x = x->next)
        if (x->id == id && !x->is_over) {
            drop(x);
            return;
        }
}

static void rest_close(void *self, void (*closed)(void *arg), void *arg)
{
    struct rest *r = self;
    struct exchange *next;

    r->is_closing = true;
    r->closed = closed;
    r->closed_arg = arg;
    for (struct exchange *x = r->exchanges; x; x = next) {
        next = x->next;
        if (!x->is_over)
            drop(x);
    }
    settle(r);
}

/* --- the loop --- */

static void rest_free(struct rest *r)
{
    void (*closed)(void *arg) = r->closed;
    void *arg = r->closed_arg;

    if (r->http)
        rv_http_free(r->http);
    rv_egress_free(r->to_document);
    rv_egress_free(r->to_server);
    rv_mcp_headers_fini(&r->configured);
    json_object_put(r->headers);
    free(r->document);
    free(r->url);
    free(r->ca_file);
    free(r);
    if (closed)
        closed(arg);
}

static void on_closed(uv_handle_t *handle)
{
    rest_free(handle->data);
}

/* From the loop: the client of HTTP must not be freed in a callback of its own. */
static void end(struct rest *r)
{
    rv_http_free(r->http);
    r->http = NULL;
    uv_close((uv_handle_t *)&r->wake, on_closed);
}

static void give(struct exchange *x)
{
    struct rest *r = x->r;
    const struct rv_mcp_failure f = {.fault = x->fault,
                                     .status = x->status,
                                     .text = x->text.len ? rv_buf_cstr(&x->text) : "no memory",
                                     .is_unsent = x->is_unsent,
                                     .retryable = x->retryable};

    x->is_over = true;
    if (x->has_failed)
        r->user.failed(r->user.self, x->id, &f);
    else
        r->user.message(r->user.self, rv_buf_str(&x->text));
}

static void on_wake(uv_async_t *wake)
{
    struct rest *r = wake->data;
    struct exchange *next;

    r->is_walking = true; /* who is told may send, cancel and close */
    for (struct exchange *x = r->exchanges; x && !r->is_closing; x = x->next)
        if (x->is_ready && !x->is_over)
            give(x);
    r->is_walking = false;
    for (struct exchange *x = r->exchanges; x; x = next) {
        next = x->next;
        if (x->is_over)
            exchange_free(x);
    }
    if (r->is_closing && r->n_exchanges == 0)
        end(r);
}

/* --- how it begins --- */

static const struct rv_mcp_link_ops rest_ops = {"rest", rest_send, rest_cancel, rest_close};

static int add_headers(struct rest *r, json_object *headers, rv_err **err)
{
    if (!headers)
        return 0;
    int rc = rv_json_dup(headers, &r->headers, err);
    if (rc < 0)
        return rc;
    json_object_object_foreach (r->headers, name, value)
        if (rc == 0)
            rc = rv_mcp_headers_add(&r->configured, name, rv_json_str(value), err);
    return rc;
}

static int check_address(const char *url, const char *what, struct rv_mcp_url *out, rv_err **err)
{
    if (!rv_mcp_url_read(rv_str_of(url), out))
        return RV_FAIL(err, RV_E_INVALID, "the address of the %s is not one of http:// or https://", what);
    return out->has_user ? RV_FAIL(err, RV_E_DENIED, "the address of the %s has a user or a password in it", what) : 0;
}

static int fill_in(struct rest *r, const struct rv_rest_opts *opts, rv_err **err)
{
    const struct rv_http_opts http = {.loop = opts->loop, .runs_on = true};
    const char *there = opts->url[0] ? opts->url : opts->document;
    bool is_url = is_address(opts->document);
    struct rv_mcp_url server = {0}, document = {0};
    int rc = opts->url[0] ? check_address(opts->url, "server", &server, err) : 0;

    if (rc == 0 && is_url)
        rc = check_address(opts->document, "document", &document, err);
    if (rc < 0)
        return rc;
    r->is_one_origin = !opts->url[0] || (is_url && rv_mcp_url_has_same_origin(&server, &document));
    r->document = rv_str_dup(rv_str_of(opts->document));
    r->url = rv_str_dup(rv_str_of(opts->url));
    r->ca_file = opts->ca_file ? rv_str_dup(rv_str_of(opts->ca_file)) : NULL;
    rc = r->document && r->url && (r->ca_file || !opts->ca_file) ? 0 : RV_FAIL(err, RV_E_NOMEM, "open a link");
    if (rc == 0)
        rc = add_headers(r, opts->headers, err);
    if (rc == 0 && is_url)
        rc = rv_mcp_web_make_egress(opts->document, opts->allowed, &r->to_document, err);
    if (rc == 0)
        rc = is_address(there) ? rv_mcp_web_make_egress(there, opts->allowed, &r->to_server, err)
                               : rv_egress_new(opts->allowed, &r->to_server, err);
    return rc == 0 ? rv_http_new(&http, &r->http, err) : rc;
}

int rv_rest_open(const struct rv_rest_opts *opts, struct rv_mcp_link *out, rv_err **err)
{
    struct rest *r = calloc(1, sizeof *r);

    if (!r)
        return RV_FAIL(err, RV_E_NOMEM, "open a link");
    *r = (struct rest){.loop = opts->loop, .user = opts->user, .is_own = opts->is_own};
    int rc = fill_in(r, opts, err);
    if (rc == 0 && uv_async_init(opts->loop, &r->wake, on_wake) != 0)
        rc = RV_FAIL(err, RV_E_IO, "open a link");
    if (rc < 0) {
        rest_free(r);
        return rc;
    }
    r->wake.data = r;
    *out = (struct rv_mcp_link){&rest_ops, r};
    return 0;
}
