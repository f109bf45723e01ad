/* A server for clients that others have made: prints its port and runs until its standard input ends. With arguments,
 * over TLS: CERTIFICATE KEY. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "coreengine/http/http.h"

#define MAX_STREAMS 64

static uv_loop_t loop;
static rv_httpd *server;
static struct counter {
    rv_httpd_exchange *x; /* NULL: free */
    int n;
} counters[MAX_STREAMS];

static void on_head(void *self, rv_httpd_exchange *x, struct rv_httpd_plan *plan)
{
    (void)self, (void)x;
    plan->max_body = (size_t)10 << 20;
}

static void on_gone(void *self, rv_httpd_exchange *x, enum rv_gone why)
{
    (void)why;
    ((struct counter *)self)->x = NULL;
    rv_httpd_drop(x);
}

/* Ten events for each stream, one a turn. */
static void on_tick(uv_timer_t *timer)
{
    (void)timer;
    for (size_t i = 0; i < MAX_STREAMS; i++) {
        struct counter *c = &counters[i];
        char data[32], id[16];
        if (!c->x)
            continue;
        struct rv_httpd_event ev = {.data = {data, (size_t)snprintf(data, sizeof data, "{\"n\":%d}", c->n)},
                                    .id = {id, (size_t)snprintf(id, sizeof id, "%d", c->n)}};
        rv_httpd_send_event(c->x, &ev);
        if (++c->n == 10) {
            rv_httpd_end(c->x);
            c->x = NULL;
        }
    }
}

static void begin_events(rv_httpd_exchange *x)
{
    size_t i = 0;

    while (i < MAX_STREAMS && counters[i].x)
        i++;
    if (i == MAX_STREAMS) {
        rv_httpd_drop(x);
        return;
    }
    counters[i] = (struct counter){.x = x};
    rv_httpd_watch(x, &(struct rv_httpd_watch){.on_gone = on_gone, .self = &counters[i]});
    rv_httpd_begin_events(x, NULL, 100);
}

static void on_request(void *self, rv_httpd_exchange *x)
{
    const struct rv_httpd_request *req = rv_httpd_exchange_request(x);
    rv_str what = req->n_segments > 0 ? req->segments[0] : (rv_str){"", 0};
    struct rv_httpd_answer a = {.status = 200, .type = "application/octet-stream", .body = req->body};

    (void)self;
    if (rv_str_is(what, "events")) {
        begin_events(x);
    } else if (rv_str_is(what, "stream")) {
        rv_httpd_begin(x, &a);
        rv_httpd_write(x, RV_STR_LIT("-"));
        rv_httpd_end(x);
    } else if (rv_str_is(what, "none")) {
        a = (struct rv_httpd_answer){.status = 204};
        rv_httpd_reply(x, &a);
    } else if (rv_str_is(what, "segment") && req->n_segments == 2) {
        a.body = req->segments[1];
        rv_httpd_reply(x, &a);
    } else {
        rv_httpd_reply(x, &a); /* the body */
    }
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *out)
{
    static char room[64];

    (void)handle, (void)size;
    *out = uv_buf_init(room, sizeof room);
}

static void on_done(void *self)
{
    (void)self;
    uv_stop(&loop);
}

static void on_input(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    (void)stream, (void)buf;
    if (n < 0)
        rv_httpd_drain(server, 1000000, on_done, NULL);
}

int main(int argc, char **argv)
{
    struct rv_httpd_opts opts = RV_HTTPD_OPTS_INIT;
    struct rv_httpd_listen at = {.address = "127.0.0.1"};
    uv_timer_t timer;
    uv_pipe_t input;
    rv_err *err = NULL;
    int port = 0;

    if (argc == 3) {
        at.certificate = argv[1];
        at.key = argv[2];
    }
    (void)signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    opts.loop = &loop;
    opts.handler.on_head = on_head;
    opts.handler.on_request = on_request;
    if (rv_httpd_new(&opts, &server, &err) < 0 || rv_httpd_listen(server, &at, &port, &err) < 0) {
        (void)fprintf(stderr, "%s\n", rv_err_text(err));
        return 1;
    }
    printf("%d\n", port);
    (void)fflush(stdout);
    uv_pipe_init(&loop, &input, 0);
    uv_pipe_open(&input, 0);
    uv_read_start((uv_stream_t *)&input, on_room, on_input);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, on_tick, 1, 1);
    uv_run(&loop, UV_RUN_DEFAULT);
    rv_httpd_free(server);
    return 0;
}
