#include "tests/unit/engine/model_server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "tests/kit/kit.h"

#define MAX_IN   ((size_t)4 << 20)
#define PADDING  8000 /* bytes of a comment in each numbered piece */
#define PATIENCE 600  /* seconds; what takes longer hangs */

struct link {
    uv_tcp_t tcp; /* first: a handle of it is the link */
    uv_timer_t timer;
    struct model_server *s;
    struct link *prev, *next;
    int n_handles;
    const struct plan *plan; /* of the request under way; NULL: none is */
    size_t n_numbered;       /* written so far */
    rv_buf in;
    char chunk[65536];
};

struct job {
    uv_write_t req; /* first */
    struct link *l;
    char *bytes;
    size_t len;
};

/* --- counting --- */

static void count(struct model_server *s, size_t *n, size_t by)
{
    pthread_mutex_lock(&s->lock);
    *n += by;
    if (s->n_now > s->n_peak)
        s->n_peak = s->n_now;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

size_t model_server_count(struct model_server *s, const size_t *n)
{
    pthread_mutex_lock(&s->lock);
    size_t now = *n;
    pthread_mutex_unlock(&s->lock);
    return now;
}

void model_server_go_on(struct model_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->goes_on = true;
    pthread_mutex_unlock(&s->lock);
}

bool model_server_is_down_to(struct model_server *s, const size_t *n, size_t at_most)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    pthread_mutex_lock(&s->lock);
    while (*n > at_most && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    bool is_so = *n <= at_most;
    pthread_mutex_unlock(&s->lock);
    return is_so;
}

/* --- one connection --- */

static void request_over(struct link *l)
{
    if (l->plan)
        count(l->s, &l->s->n_now, (size_t)-1);
    l->plan = NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct link *l = handle->data;

    if (--l->n_handles > 0)
        return;
    count(l->s, &l->s->n_open, (size_t)-1);
    rv_buf_fini(&l->in);
    free(l);
}

static void close_link(struct link *l)
{
    if (uv_is_closing((uv_handle_t *)&l->tcp))
        return;
    request_over(l);
    if (l->prev)
        l->prev->next = l->next;
    else
        l->s->links = l->next;
    if (l->next)
        l->next->prev = l->prev;
    uv_close((uv_handle_t *)&l->tcp, on_closed);
    uv_close((uv_handle_t *)&l->timer, on_closed);
}

static void on_written(uv_write_t *req, int status);

/* Takes bytes. */
static void send_bytes(struct link *l, char *bytes, size_t len)
{
    uv_buf_t buf = uv_buf_init(bytes, (unsigned)len);
    struct job *job = calloc(1, sizeof *job);

    if (!job || !bytes)
        rv_kit_die("no memory");
    *job = (struct job){.l = l, .bytes = bytes, .len = len};
    if (uv_write(&job->req, (uv_stream_t *)&l->tcp, &buf, 1, on_written) < 0)
        rv_kit_die("uv_write");
}

static void send_numbered(struct link *l)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    size_t len;

    if (l->n_numbered < l->plan->n_numbered) {
        rv_buf_printf(&b, ": %*s\n" PIECE("%zu "), PADDING, "", l->n_numbered++);
    } else {
        l->n_numbered++;
        rv_buf_puts(&b, THE_END);
    }
    char *bytes = rv_buf_steal(&b, &len);
    send_bytes(l, bytes, len);
}

static void on_written(uv_write_t *req, int status)
{
    struct job *job = (struct job *)req;
    struct link *l = job->l;
    size_t len = job->len;

    free(job->bytes);
    free(job);
    if (uv_is_closing((uv_handle_t *)&l->tcp))
        return;
    if (status < 0) {
        close_link(l);
        return;
    }
    count(l->s, &l->s->n_written, len);
    if (l->plan->n_numbered && l->n_numbered <= l->plan->n_numbered)
        send_numbered(l);
    else if (l->plan->n_numbered)
        close_link(l);
    else if (!l->plan->hangs)
        request_over(l); /* the connection may be used again */
}

static bool goes_on(struct model_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool is_so = s->goes_on;
    pthread_mutex_unlock(&s->lock);
    return is_so;
}

static void answer(uv_timer_t *timer)
{
    struct link *l = timer->data;
    const struct plan *p = l->plan;
    rv_buf b = RV_BUF_INIT(MAX_IN);
    size_t len;

    if (!p->status)
        return;
    if (p->waits && !goes_on(l->s)) {
        uv_timer_start(timer, answer, 2, 0);
        return;
    }
    rv_buf_printf(&b, "HTTP/1.1 %d X\r\n%s", p->status, p->headers ? p->headers : "");
    if (p->status == 200)
        rv_buf_puts(&b, "Content-Type: text/event-stream\r\n");
    if (!p->hangs && !p->n_numbered)
        rv_buf_printf(&b, "Content-Length: %zu\r\n", p->body ? strlen(p->body) : 0);
    rv_buf_printf(&b, "\r\n%s", p->body ? p->body : "");
    char *bytes = rv_buf_steal(&b, &len);
    send_bytes(l, bytes, len);
}

static size_t content_length(const char *head, size_t len)
{
    static const char name[] = "\r\ncontent-length:";

    for (size_t i = 0; i + sizeof name <= len; i++)
        if (strncasecmp(head + i, name, sizeof name - 1) == 0)
            return strtoul(head + i + sizeof name - 1, NULL, 10);
    return 0;
}

static void take_request(struct link *l, const char *head, size_t n_head, const char *body, size_t len)
{
    struct model_server *s = l->s;

    pthread_mutex_lock(&s->lock);
    size_t i = s->n_requests < s->n_plan ? s->n_requests : s->n_plan - 1;
    rv_buf_add(&s->bodies, body, len);
    rv_buf_putc(&s->bodies, '\n');
    rv_buf_add(&s->heads, head, n_head);
    pthread_mutex_unlock(&s->lock);
    l->plan = &s->plan[i];
    l->n_numbered = 0;
    count(s, &s->n_requests, 1);
    count(s, &s->n_now, 1);
    uv_timer_start(&l->timer, answer, s->plan[i].delay_ms, 0);
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
    struct link *l = handle->data;

    (void)wanted;
    *buf = uv_buf_init(l->chunk, sizeof l->chunk);
}

static void on_data(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct link *l = stream->data;

    if (n < 0) {
        close_link(l);
        return;
    }
    rv_buf_add(&l->in, buf->base, (size_t)n);
    const char *end = strstr(rv_buf_cstr(&l->in), "\r\n\r\n");
    if (!end)
        return;
    size_t head = (size_t)(end - l->in.ptr) + 4, body = content_length(l->in.ptr, head);
    if (l->in.len < head + body)
        return;
    take_request(l, l->in.ptr, head, l->in.ptr + head, body);
    rv_buf_clear(&l->in);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct model_server *s = listener->data;
    struct link *l = calloc(1, sizeof *l);

    if (!l || status < 0)
        rv_kit_die("accept: %s", status < 0 ? uv_strerror(status) : "no memory");
    l->s = s;
    l->in = RV_BUF_INIT(MAX_IN);
    l->n_handles = 2;
    l->tcp.data = l->timer.data = l;
    uv_tcp_init(&s->loop, &l->tcp);
    uv_timer_init(&s->loop, &l->timer);
    count(s, &s->n_connections, 1);
    count(s, &s->n_open, 1);
    l->next = s->links;
    if (s->links)
        s->links->prev = l;
    s->links = l;
    if (uv_accept(listener, (uv_stream_t *)&l->tcp) < 0)
        close_link(l);
    else
        uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_data);
}

/* --- the thread --- */

static void on_stop(uv_async_t *async)
{
    struct model_server *s = async->data;

    while (s->links)
        close_link(s->links);
    uv_close((uv_handle_t *)&s->listener, NULL);
    uv_close((uv_handle_t *)async, NULL);
}

static void *serve(void *self)
{
    struct model_server *s = self;
    sigset_t pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); /* whoever asked may be gone; the other threads are to live without this */
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    return NULL;
}

void model_server_start(struct model_server *s, const struct plan *plan, size_t n_plan)
{
    struct sockaddr_in address;
    int len = sizeof address;

    *s = (struct model_server){.plan = plan,
                               .n_plan = n_plan,
                               .bodies = RV_BUF_INIT((size_t)16 << 20),
                               .heads = RV_BUF_INIT((size_t)16 << 20)};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    uv_loop_init(&s->loop);
    uv_tcp_init(&s->loop, &s->listener);
    uv_async_init(&s->loop, &s->stop, on_stop);
    s->listener.data = s->stop.data = s;
    if (uv_ip4_addr("127.0.0.1", 0, &address) < 0 ||
        uv_tcp_bind(&s->listener, (const struct sockaddr *)&address, 0) < 0 ||
        uv_listen((uv_stream_t *)&s->listener, 1024, on_connection) < 0 ||
        uv_tcp_getsockname(&s->listener, (struct sockaddr *)&address, &len) < 0)
        rv_kit_die("no port for the test's server");
    s->port = ntohs(address.sin_port);
    if (pthread_create(&s->thread, NULL, serve, s) != 0)
        rv_kit_die("no thread for the test's server");
}

void model_server_stop(struct model_server *s)
{
    uv_async_send(&s->stop);
    pthread_join(s->thread, NULL);
    if (uv_loop_close(&s->loop) != 0)
        rv_kit_die("the test's server has not closed everything");
    rv_buf_fini(&s->bodies);
    rv_buf_fini(&s->heads);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
}
