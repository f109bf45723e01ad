#include "server.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/kit/kit.h"

struct link {
    uv_tcp_t tcp; /* first: a handle of it is the link */
    struct server *s;
    struct link *prev, *next;
    rv_buf in;
    char chunk[65536];
};

struct job {
    uv_write_t req; /* first */
    struct link *l;
    size_t len;
    bool is_last;
};

static void on_closed(uv_handle_t *handle)
{
    struct link *l = (struct link *)handle;

    l->s->n_open--;
    rv_buf_fini(&l->in);
    free(l);
}

static void close_link(struct link *l)
{
    struct server *s = l->s;

    if (uv_is_closing((uv_handle_t *)&l->tcp))
        return;
    if (l->prev)
        l->prev->next = l->next;
    else
        s->links = l->next;
    if (l->next)
        l->next->prev = l->prev;
    uv_close((uv_handle_t *)&l->tcp, on_closed);
}

static void send_bytes(struct link *l, rv_str bytes);

static void on_written(uv_write_t *req, int status)
{
    struct job *job = (struct job *)req;
    struct link *l = job->l;
    struct server *s = l->s;
    size_t len = job->len;

    free(job);
    if (uv_is_closing((uv_handle_t *)&l->tcp))
        return;
    if (status < 0) {
        close_link(l);
        return;
    }
    s->n_written += len;
    if (s->after == CLOSE)
        close_link(l);
    else if (s->after == ENDLESS)
        send_bytes(l, s->more);
    if (s->on_written)
        s->on_written(s);
}

static void send_bytes(struct link *l, rv_str bytes)
{
    uv_buf_t buf = uv_buf_init((char *)bytes.ptr, (unsigned)bytes.len);
    struct job *job = calloc(1, sizeof *job);

    if (!job)
        rv_kit_die("no memory");
    job->l = l;
    job->len = bytes.len;
    if (uv_write(&job->req, (uv_stream_t *)&l->tcp, &buf, 1, on_written) < 0)
        rv_kit_die("uv_write");
}

static size_t content_length(rv_str head)
{
    static const char name[] = "\r\ncontent-length:";

    for (size_t i = 0; i + sizeof name <= head.len; i++)
        if (strncasecmp(head.ptr + i, name, sizeof name - 1) == 0)
            return strtoul(head.ptr + i + sizeof name - 1, NULL, 10);
    return 0;
}

/* Length of the first whole request in `in`, or 0. */
static size_t whole_request(const rv_buf *in)
{
    const char *end = in->len ? strstr(in->ptr, "\r\n\r\n") : NULL;

    if (!end)
        return 0;
    size_t head = (size_t)(end - in->ptr) + 4;
    size_t all = head + content_length((rv_str){in->ptr, head});
    return in->len >= all ? all : 0;
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
    struct link *l = (struct link *)handle;

    (void)wanted;
    *buf = uv_buf_init(l->chunk, sizeof l->chunk);
}

static void on_data(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct link *l = (struct link *)stream;
    struct server *s = l->s;
    size_t len;

    if (n < 0) {
        close_link(l);
        return;
    }
    s->n_read += (size_t)n;
    rv_buf_add(&l->in, buf->base, (size_t)n);
    while ((len = whole_request(&l->in)) > 0) {
        rv_buf_clear(&s->last);
        rv_buf_add(&s->last, l->in.ptr, len);
        memmove(l->in.ptr, l->in.ptr + len, l->in.len - len);
        rv_buf_truncate(&l->in, l->in.len - len);
        s->n_requests++;
        if (s->choose)
            s->answer = s->choose(s);
        if (s->answer.len > 0)
            send_bytes(l, s->answer);
        else if (s->after == CLOSE)
            close_link(l);
    }
    if (s->on_read)
        s->on_read(s);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *s = listener->data;
    struct link *l = calloc(1, sizeof *l);

    if (!l || status < 0)
        rv_kit_die("accept: %s", status < 0 ? uv_strerror(status) : "no memory");
    l->s = s;
    l->in = RV_BUF_INIT((size_t)16 << 20);
    uv_tcp_init(s->loop, &l->tcp);
    s->n_open++;
    if (uv_accept(listener, (uv_stream_t *)&l->tcp) < 0) {
        uv_close((uv_handle_t *)&l->tcp, on_closed);
        return;
    }
    l->next = s->links;
    if (s->links)
        s->links->prev = l;
    s->links = l;
    s->n_connections++;
    uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_data);
}

void server_start(struct server *s, uv_loop_t *loop)
{
    struct sockaddr_in address;
    int len = sizeof address;

    *s = (struct server){.loop = loop, .last = RV_BUF_INIT((size_t)16 << 20)};
    uv_tcp_init(loop, &s->listener);
    s->listener.data = s;
    if (uv_ip4_addr("127.0.0.1", 0, &address) < 0 ||
        uv_tcp_bind(&s->listener, (const struct sockaddr *)&address, 0) < 0 ||
        uv_listen((uv_stream_t *)&s->listener, 1024, on_connection) < 0 ||
        uv_tcp_getsockname(&s->listener, (struct sockaddr *)&address, &len) < 0)
        rv_kit_die("no port for the test's server");
    s->port = ntohs(address.sin_port);
}

void server_hang_up(struct server *s)
{
    while (s->links)
        close_link(s->links);
}

void server_stop_listening(struct server *s)
{
    if (!uv_is_closing((uv_handle_t *)&s->listener))
        uv_close((uv_handle_t *)&s->listener, NULL);
}

void server_stop(struct server *s)
{
    server_hang_up(s);
    server_stop_listening(s);
    rv_buf_fini(&s->last);
}

void server_write(struct server *s, const char *text)
{
    for (struct link *l = s->links; l; l = l->next)
        send_bytes(l, rv_str_of(text));
}
