/* The link: a session of a legacy server, its stream, and the timer for streams that continue and reads that wait. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/mcp/mcp.h"
#include "coreengine/tools/mcp/http/web_internal.h"

#define MAX_REPLIES 64   /* under way: a server may ask without end; what it asks for beyond that gets no answer */
#define STREAM_MS   2000 /* that a server has to open its stream; some send no head before the first event */
#define GRACE_MS    2000 /* that a server has to take what was cancelled before the close, then for the session's end */

uint64_t web_now(const struct web *w)
{
    return uv_now(w->loop);
}

static void web_free(struct web *w)
{
    void (*closed)(void *arg) = w->closed;
    void *arg = w->closed_arg;

    rv_mcp_tokens_free(w->tokens);
    if (w->http)
        rv_http_free(w->http);
    rv_egress_free(w->egress);
    rv_mcp_headers_fini(&w->configured);
    free(w->url);
    free(w->ca_file);
    free(w);
    if (closed)
        closed(arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    web_free(handle->data);
}

/* From the loop: the client of HTTP must not be freed in a callback of its own. */
static void on_end_of_all(uv_timer_t *timer)
{
    struct web *w = timer->data;

    rv_mcp_tokens_free(w->tokens);
    w->tokens = NULL;
    rv_http_free(w->http);
    w->http = NULL;
    uv_close((uv_handle_t *)timer, on_timer_closed);
}

/* but_cancels: what cancels something, and is on its way, stays. */
static void drop_all(struct web *w, bool but_cancels)
{
    struct exchange *next;

    for (struct exchange *x = w->exchanges; x; x = next) {
        next = x->next;
        if (!x->is_over && !(but_cancels && x->is_cancel && x->call))
            web_exchange_drop(x);
    }
}

static void set_timer(struct web *w, void (*then)(uv_timer_t *timer), uint64_t ms)
{
    RV_IGNORE(uv_timer_start(&w->timer, then, ms, 0), "the timer is open");
}

static void on_grace_over(uv_timer_t *timer)
{
    drop_all(timer->data, false);
}

static void end_session(struct web *w)
{
    struct exchange *x = w->session[0] && !w->has_left ? web_exchange_new(w, 0) : NULL;

    w->has_left = true;
    if (!x)
        return;
    x->is_end = true;
    set_timer(w, on_grace_over, GRACE_MS);
    if (web_exchange_start(
            x, RV_CODE_ONLY("a farewell: a server that does not hear it ends the session by its own time")) < 0)
        web_exchange_drop(x);
}

void web_settle(struct web *w)
{
    if (!w->is_closing || w->n_exchanges > 0)
        return;
    end_session(w);
    if (w->n_exchanges == 0)
        set_timer(w, on_end_of_all, 0);
}

/* --- streams that continue --- */

static void on_timer(uv_timer_t *timer)
{
    struct web *w = timer->data;
    uint64_t now = web_now(w);

    w->is_walking = true; /* one that cannot go on is told, and the user may close them all */
    for (struct exchange *x = w->exchanges; x; x = x->next)
        if (!x->is_over && (x->is_held || (x->due_ms && x->due_ms <= now)))
            web_exchange_resume(x);
    w->is_walking = false;
    web_sweep(w);
    if (!w->is_closing)
        web_arm(w);
}

void web_arm(struct web *w)
{
    uint64_t due = 0, now = web_now(w);

    if (w->is_closing)
        return;
    for (const struct exchange *x = w->exchanges; x; x = x->next) {
        uint64_t at = x->is_held ? now + 1 : x->due_ms;
        due = at && (!due || at < due) ? at : due;
    }
    RV_IGNORE(due ? uv_timer_start(&w->timer, on_timer, due > now ? due - now : 0, 0) : uv_timer_stop(&w->timer),
              "the timer is open");
}

void web_open_stream(struct web *w)
{
    struct exchange *x = w->is_closing ? NULL : web_exchange_new(w, 0);

    if (!x)
        return;
    x->is_stream = true;
    if (web_exchange_start(x, RV_CODE_ONLY("the stream is an extra: requests have their answers without it")) < 0)
        web_exchange_drop(x);
}

/* --- what the session asks for --- */

/* The session begins again: the stream of the one before is of no use. */
static void drop_streams(struct web *w)
{
    struct exchange *next;

    for (struct exchange *x = w->exchanges; x; x = next) {
        next = x->next;
        if (x->is_stream && !x->id && !x->is_over)
            web_exchange_drop(x);
    }
}

static int copy_message(struct exchange *x, const struct rv_mcp_send *m, rv_err **err)
{
    struct web *w = x->w;

    x->is_modern = m->is_modern;
    x->is_reply = !m->method;
    x->is_first = m->method && strcmp(m->method, "initialize") == 0;
    x->is_cancel =
        m->method && (strcmp(m->method, "notifications/cancelled") == 0 || strcmp(m->method, "tasks/cancel") == 0);
    x->opens_stream = !m->is_modern && m->method && strcmp(m->method, "notifications/initialized") == 0;
    if (x->is_first)
        w->session[0] = '\0';
    else
        snprintf(w->version, sizeof w->version, "%s", m->version ? m->version : "");
    x->body = rv_str_dup(m->body);
    x->body_len = m->body.len;
    if (!x->body)
        return RV_FAIL(err, RV_E_NOMEM, "send a message");
    return rv_mcp_headers_build(m, w->session, &x->headers, err);
}

/* Answers to requests of the server, which may make as many as it likes: calls must find a place beside them. */
static bool is_flooded(const struct web *w)
{
    size_t n = 0;

    for (const struct exchange *x = w->exchanges; x; x = x->next)
        n += x->is_reply;
    return n >= MAX_REPLIES;
}

static int web_send(void *self, const struct rv_mcp_send *m, rv_err **err)
{
    struct web *w = self;

    if (w->n_exchanges >= RV_MCP_MAX_REQUESTS)
        return RV_FAIL(err, RV_E_LIMIT, "%d requests are under way", RV_MCP_MAX_REQUESTS);
    if (!m->method && is_flooded(w))
        return RV_FAIL(err, RV_E_LIMIT, "%d answers to requests of the server are under way", MAX_REPLIES);
    if (m->body.len > RV_MCP_MAX_MESSAGE)
        return RV_FAIL(err, RV_E_LIMIT, "the message is larger than %zu bytes", RV_MCP_MAX_MESSAGE);
    if (m->method && strcmp(m->method, "initialize") == 0) {
        drop_streams(w);
        w->stream_ms = 0;
    }
    struct exchange *x = web_exchange_new(w, m->id);
    if (!x)
        return RV_FAIL(err, RV_E_NOMEM, "send a message");
    int rc = copy_message(x, m, err);
    if (rc == 0 && m->id && w->stream_ms > web_now(w)) {
        x->waits_for_stream = true;
        x->due_ms = w->stream_ms;
        web_arm(w);
        return 0;
    }
    if (rc == 0)
        rc = web_exchange_start(x, err);
    if (rc < 0)
        web_exchange_drop(x);
    else if (x->opens_stream && w->awaits_stream)
        w->stream_ms = web_now(w) + STREAM_MS;
    return rc;
}

static void web_cancel(void *self, int64_t id)
{
    struct web *w = self;

    for (struct exchange *x = w->exchanges; x; x = x->next)
        if (x->id == id && !x->is_over) {
            web_exchange_drop(x);
            return;
        }
}

static void web_close(void *self, void (*closed)(void *arg), void *arg)
{
    struct web *w = self;

    w->closed = closed;
    w->closed_arg = arg;
    drop_all(w, true);
    set_timer(w, on_grace_over, GRACE_MS);
    w->is_closing = true;
    web_settle(w);
}

/* --- how it begins --- */

static const struct rv_mcp_link_ops web_ops = {"http", web_send, web_cancel, web_close};

static int add_header(struct web *w, const char *line, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf name = RV_BUF_INIT(RV_MCP_MAX_HEADER);
    const char *colon = strchr(line, ':');

    rv_buf_add(&name, line, colon ? (size_t)(colon - line) : 0);
    return rv_mcp_headers_add(&w->configured, rv_buf_cstr(&name), rv_str_trim(rv_str_of(colon ? colon + 1 : "")), err);
}

static int open_tokens(struct web *w, const struct rv_mcp_web_auth *auth, rv_err **err)
{
    struct rv_mcp_tokens_opts opts = {.http = w->http,
                                      .egress = w->egress,
                                      .ca_file = w->ca_file,
                                      .file = auth->file,
                                      .config = auth->config,
                                      .clock = rv_clock_system(),
                                      .rand = rv_rand_system()};

    opts.config.resource = w->url;
    return rv_mcp_tokens_new(&opts, &w->tokens, err);
}

static int fill_in(struct web *w, const struct rv_mcp_web_opts *opts, rv_err **err)
{
    const struct rv_http_opts http = {.loop = opts->loop, .runs_on = true, .log = opts->log};
    struct rv_mcp_url parts;

    if (!rv_mcp_url_read(rv_str_of(opts->url), &parts))
        return RV_FAIL(err, RV_E_INVALID, "the address of the server is not one of http:// or https://");
    if (parts.has_user)
        return RV_FAIL(err, RV_E_DENIED, "the address of the server has a user or a password in it");
    w->url = rv_str_dup(rv_str_of(opts->url));
    w->ca_file = opts->ca_file ? rv_str_dup(rv_str_of(opts->ca_file)) : NULL;
    int rc = w->url && (w->ca_file || !opts->ca_file) ? 0 : RV_FAIL(err, RV_E_NOMEM, "open a link");
    for (size_t i = 0; i < opts->n_headers && rc == 0; i++)
        rc = add_header(w, opts->headers[i], err);
    if (rc == 0)
        rc = rv_mcp_web_make_egress(opts->url, opts->allowed, &w->egress, err);
    if (rc == 0)
        rc = rv_http_new(&http, &w->http, err);
    return rc == 0 && opts->auth ? open_tokens(w, opts->auth, err) : rc;
}

int rv_mcp_web_open(const struct rv_mcp_web_opts *opts, struct rv_mcp_link *out, rv_err **err)
{
    struct web *w = calloc(1, sizeof *w);

    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "open a link");
    w->loop = opts->loop;
    w->user = opts->user;
    w->awaits_stream = opts->awaits_stream;
    int rc = fill_in(w, opts, err);
    if (rc == 0 && uv_timer_init(opts->loop, &w->timer) != 0)
        rc = RV_FAIL(err, RV_E_IO, "open a link");
    if (rc < 0) {
        web_free(w);
        return rc;
    }
    w->timer.data = w;
    *out = (struct rv_mcp_link){&web_ops, w};
    return 0;
}

int rv_mcp_web_make_egress(const char *url, const char *allowed, rv_egress **out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf list = RV_BUF_INIT((size_t)64 << 10);
    struct rv_mcp_url parts;

    if (!rv_mcp_url_read(rv_str_of(url), &parts))
        return RV_FAIL(err, RV_E_INVALID, "the address of the server is not one of http:// or https://");
    rv_buf_puts(&list, allowed ? allowed : "");
    if (rv_mcp_url_is_literal(&parts))
        rv_buf_printf(&list, "%s%.*s:%d", list.len ? ", " : "", RV_STR_ARG(parts.host), parts.port);
    int rc = rv_buf_check(&list, "the policy for addresses", err);
    return rc < 0 ? rc : rv_egress_new(rv_buf_cstr(&list), out, err);
}
