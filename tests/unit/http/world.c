#include "world.h"

#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "tests/kit/kit.h"

#define MAX_BODY ((size_t)64 << 20)

static uint64_t stands_at_ns; /* 0: time passes */

/* In place of libuv's, which its own timers do not ask: limits are tried without waiting for them, on a busy machine
 * too. */
uint64_t uv_hrtime(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return stands_at_ns ? stands_at_ns : (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void time_stands(void)
{
    stands_at_ns = uv_hrtime();
}

void time_passes(int64_t us)
{
    stands_at_ns += (uint64_t)us * 1000;
}

void world_init(struct world *w)
{
    rv_err *err = NULL;

    signal(SIGPIPE, SIG_IGN); /* libuv's writes, of the server */
    memset(w, 0, sizeof *w);
    ck_assert_int_eq(uv_loop_init(&w->loop), 0);
    server_start(&w->server, &w->loop);
    ck_assert_int_eq(rv_http_new(&(struct rv_http_opts){.loop = &w->loop}, &w->http, &err), 0);
}

void world_fini(struct world *w)
{
    stands_at_ns = 0;
    rv_http_free(w->http);
    server_stop(&w->server);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&w->loop), 0);
}

struct rv_http_request get(struct world *w, const char *path)
{
    static _Thread_local char url[200];

    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", w->server.port, path);
    return (struct rv_http_request){.method = "GET", .url = url, .proxy = ""};
}

static void on_head(void *self, const struct rv_http_head *head)
{
    struct call *c = self;
    size_t len = 0;

    ck_assert_uint_eq(c->n_ends, 0);
    c->n_heads++;
    uv_stop(&c->w->loop); /* or it may sleep before whoever waits for this looks again */
    c->status = head->status;
    c->n_headers = head->n_headers;
    snprintf(c->content_type, sizeof c->content_type, "%.*s", RV_STR_ARG(head->content_type));
    for (size_t i = 0; i < head->n_headers && len < sizeof c->headers; i++)
        len += (size_t)snprintf(c->headers + len, sizeof c->headers - len, "%.*s=%.*s;",
                                RV_STR_ARG(head->headers[i].name), RV_STR_ARG(head->headers[i].value));
    if (c->on_head)
        c->on_head(c);
}

static bool on_body(void *self, rv_str bytes)
{
    struct call *c = self;

    ck_assert_uint_eq(c->n_heads, 1);
    ck_assert_uint_eq(c->n_ends, 0);
    ck_assert_uint_gt(bytes.len, 0);
    rv_buf_add_str(&c->body, bytes);
    c->n_parts++;
    uv_stop(&c->w->loop);
    if (c->on_body)
        c->on_body(c);
    ck_assert(!c->is_held);
    c->is_held = c->hold_after > 0 && c->n_parts >= c->hold_after;
    return !c->is_held;
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct call *c = self;

    ck_assert_uint_eq(c->n_ends++, 0);
    c->end = *end;
    snprintf(c->text, sizeof c->text, "%s", end->text);
    c->end.text = c->text;
    ck_assert_int_eq(end->fault == RV_HTTP_OK, end->text[0] == '\0');
    ck_assert(!c->is_held || end->fault != RV_HTTP_OK);
    c->w->n_open--;
    uv_stop(&c->w->loop);
    if (c->on_end)
        c->on_end(c);
    c->handle = NULL;
}

void begin(struct world *w, struct call *c, const struct rv_http_request *req)
{
    struct rv_http_events events = {on_head, on_body, on_end, c};
    rv_err *err = NULL;

    c->w = w;
    c->body.max = MAX_BODY;
    int rc = rv_http_start(w->http, req, &events, &c->handle, &err);
    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
    ck_assert_uint_eq(c->n_heads + c->n_parts + c->n_ends, 0); /* never from within */
    w->n_open++;
}

void run_until(struct world *w, const size_t *n, size_t at_least)
{
    while (*n < at_least)
        uv_run(&w->loop, UV_RUN_ONCE);
}

/* Bytes that a socket of the loop has sent and the other end has not taken yet, or has got and not read. */
static void count_unread(uv_handle_t *handle, void *n)
{
    int fd, waiting;

    if (uv_fileno(handle, &fd) == 0 && ioctl(fd, SIOCOUTQ, &waiting) == 0)
        *(int *)n += waiting;
    if (uv_fileno(handle, &fd) == 0 && ioctl(fd, SIOCINQ, &waiting) == 0)
        *(int *)n += waiting;
}

void run_until_read(struct world *w)
{
    int n;

    do {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        n = 0;
        uv_walk(&w->loop, count_unread, &n);
    } while (n > 0);
}

void run_all(struct world *w)
{
    while (w->n_open > 0)
        uv_run(&w->loop, UV_RUN_ONCE);
}

void fetch(struct world *w, struct call *c, const struct rv_http_request *req)
{
    begin(w, c, req);
    run_all(w);
}

void fetch_answer(struct world *w, struct call *c, const char *answer, enum after_answer after)
{
    struct rv_http_request req = get(w, "/");

    w->server.answer = rv_str_of(answer);
    w->server.after = after;
    fetch(w, c, &req);
}

void call_fini(struct call *c)
{
    rv_buf_fini(&c->body);
}

void resume(struct call *c)
{
    c->is_held = false;
    rv_http_resume(c->handle);
}

void cancel(struct call *c)
{
    rv_http_cancel(c->handle);
    c->handle = NULL;
    c->w->n_open--;
}
