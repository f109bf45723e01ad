#include "tests/unit/httpd/world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_GOT      ((size_t)64 << 20)
#define QUIET_ROUNDS 4

/* --- the handler --- */

static void on_drain(void *self, rv_httpd_exchange *x)
{
    struct world *w = self;

    (void)x;
    rv_buf_puts(&w->told, "drain ");
}

static void on_gone(void *self, rv_httpd_exchange *x, enum rv_gone why)
{
    static const char *const names[] = {"left", "slow", "stopped", "failed"};
    struct world *w = self;

    rv_buf_printf(&w->told, "gone:%s ", names[why]);
    if (!w->ends_on_gone)
        return;
    rv_httpd_drop(x);
    if (w->x == x)
        w->x = NULL;
}

static void on_stop(void *self, rv_httpd_exchange *x)
{
    struct world *w = self;

    rv_buf_puts(&w->told, "stop ");
    w->stopping[w->n_stopping++ % RV_COUNT(w->stopping)] = x;
    if (w->ends_on_stop)
        rv_httpd_end(x);
}

static void free_data(void *data)
{
    ((struct world *)data)->n_freed++;
}

static bool is_at(const struct rv_httpd_request *req, const char *name)
{
    return req->n_segments > 0 && rv_str_is(req->segments[0], name);
}

static void on_head(void *self, rv_httpd_exchange *x, struct rv_httpd_plan *plan)
{
    struct world *w = self;
    const struct rv_httpd_request *req = rv_httpd_request_of(x);

    plan->data = w;
    plan->free_data = free_data;
    if (is_at(req, "hello"))
        plan->route = "/hello";
    if (is_at(req, "large"))
        plan->max_body = (size_t)10 << 20;
    if (is_at(req, "small"))
        plan->max_body = 10;
    if (is_at(req, "denied")) {
        struct rv_httpd_field f = {RV_STR_LIT("WWW-Authenticate"), RV_STR_LIT("Bearer realm=\"reeve\"")};
        struct rv_httpd_answer a = {
            .status = 401, .type = "text/plain", .fields = &f, .n_fields = 1, .body = RV_STR_LIT("who?")};
        rv_httpd_reply(x, &a);
    }
}

static void put_fields(rv_buf *b, const char *kind, const struct rv_httpd_field *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(b, "%s %.*s=%.*s\n", kind, RV_STR_ARG(f[i].name), RV_STR_ARG(f[i].value));
}

/* All that is known of a request. */
static void describe(const struct rv_httpd_request *req, rv_buf *b)
{
    rv_buf_printf(b, "%s %.*s\nhost %.*s\npeer %s tls %d id %s\n", rv_method_text(req->method), RV_STR_ARG(req->path),
                  RV_STR_ARG(req->host), req->peer, req->is_tls, req->id);
    for (size_t i = 0; i < req->n_segments; i++)
        rv_buf_printf(b, "segment %.*s\n", RV_STR_ARG(req->segments[i]));
    put_fields(b, "query", req->query, req->n_query);
    put_fields(b, "field", req->fields, req->n_fields);
    rv_buf_printf(b, "body %zu %.*s", req->body.len, RV_STR_ARG(req->body));
    ck_assert_int_eq(req->body.ptr[req->body.len], '\0');
}

static void reply_text(rv_httpd_exchange *x, rv_str text)
{
    struct rv_httpd_answer a = {.status = 200, .type = "text/plain", .body = text};

    rv_httpd_reply(x, &a);
}

static void reply_bad(rv_httpd_exchange *x, rv_str what)
{
    struct rv_httpd_field f = {RV_STR_LIT("X-A"), RV_STR_LIT("b\r\nSet-Cookie: c")};
    struct rv_httpd_answer a = {.status = 200, .fields = &f, .n_fields = 1};

    if (rv_str_is(what, "name"))
        f = (struct rv_httpd_field){RV_STR_LIT("X A"), RV_STR_LIT("b")};
    if (rv_str_is(what, "own"))
        f = (struct rv_httpd_field){RV_STR_LIT("content-Length"), RV_STR_LIT("3")};
    if (rv_str_is(what, "status"))
        a = (struct rv_httpd_answer){.status = 101};
    if (rv_str_is(what, "body"))
        a = (struct rv_httpd_answer){.status = 204, .body = RV_STR_LIT("x")};
    if (rv_str_is(what, "type"))
        a = (struct rv_httpd_answer){.status = 200, .type = "a\nb"};
    rv_httpd_reply(x, &a);
}

static void reply_bytes(rv_httpd_exchange *x, rv_str count, enum rv_body_owner owner)
{
    size_t n = (size_t)strtoul(count.ptr, NULL, 10);
    char *bytes = malloc(n + 1);
    struct rv_httpd_answer a = {.status = 200, .body = {bytes, n}, .owner = owner};

    memset(bytes, 'x', n);
    rv_httpd_reply(x, &a);
    if (owner == RV_BODY_BORROWED)
        free(bytes);
}

static void on_request(void *self, rv_httpd_exchange *x)
{
    const struct rv_httpd_watch watch = {on_drain, on_gone, on_stop, self};
    struct world *w = self;
    const struct rv_httpd_request *req = rv_httpd_request_of(x);
    RV_AUTO(rv_buf_fini) rv_buf b = RV_BUF_INIT(MAX_GOT);

    ck_assert_ptr_eq(req->data, w);
    if (is_at(req, "hello")) {
        reply_text(x, RV_STR_LIT("hello"));
    } else if (is_at(req, "later") || is_at(req, "stream") || is_at(req, "events")) {
        rv_httpd_watch(x, &watch);
        w->x = x;
        if (is_at(req, "stream"))
            rv_httpd_begin(x, &(struct rv_httpd_answer){.status = 200, .type = "text/plain"});
        if (is_at(req, "events"))
            rv_httpd_begin_events(x, NULL, req->n_query > 0 ? 2000 : 0);
    } else if (is_at(req, "drop")) {
        rv_httpd_drop(x);
    } else if (is_at(req, "none")) {
        rv_httpd_reply(x, &(struct rv_httpd_answer){.status = 204});
    } else if (is_at(req, "bad")) {
        reply_bad(x, req->segments[1]);
    } else if (is_at(req, "bytes") || is_at(req, "taken")) {
        reply_bytes(x, req->segments[1], is_at(req, "taken") ? RV_BODY_TAKEN : RV_BODY_BORROWED);
    } else {
        describe(req, &b);
        reply_text(x, rv_buf_str(&b));
    }
}

static void on_access(void *self, const struct rv_httpd_access *line)
{
    struct world *w = self;

    rv_buf_printf(&w->access, "%s %s %d %d %s\n", line->method, line->route, line->status, (int)line->bytes_in,
                  line->was_cut ? "cut" : "whole");
}

/* --- the world --- */

void world_init(struct world *w)
{
    *w = (struct world){.clock = {1700000000000000}, .ends_on_gone = true};
    rv_kit_log_init(&w->log, RV_LOG_WARN, RV_LOG_JSON);
    rv_buf_init(&w->told, MAX_GOT);
    rv_buf_init(&w->access, MAX_GOT);
    ck_assert_int_eq(uv_loop_init(&w->loop), 0);
    w->opts = (struct rv_httpd_opts)RV_HTTPD_OPTS_INIT;
    w->opts.loop = &w->loop;
    w->opts.clock = rv_kit_clock(&w->clock);
    w->opts.rand = rv_rand_seeded(&w->rand, 1);
    w->opts.log = w->log.log;
    w->opts.handler =
        (struct rv_httpd_handler){.on_head = on_head, .on_request = on_request, .on_access = on_access, .self = w};
}

void world_listen(struct world *w)
{
    const struct rv_httpd_listen at = {.address = "127.0.0.1"};

    ck_assert_int_eq(rv_httpd_new(&w->opts, &w->server, NULL), 0);
    ck_assert_int_eq(rv_httpd_listen(w->server, &at, &w->port, NULL), 0);
}

void world_fini(struct world *w)
{
    rv_httpd_free(w->server);
    ck_assert_int_eq(uv_loop_close(&w->loop), 0);
    rv_buf_fini(&w->told);
    rv_buf_fini(&w->access);
    rv_kit_log_fini(&w->log);
}

void world_run(struct world *w)
{
    /* What is written to a socket of this machine can be read at once: a few rounds without news are the end. */
    for (int i = 0; i < QUIET_ROUNDS; i++)
        uv_run(&w->loop, UV_RUN_NOWAIT);
}

void world_pass(struct world *w, int64_t us)
{
    w->clock.us += us;
    rv_httpd_tend(w->server);
    world_run(w);
}

/* --- clients --- */

void client_open(struct world *w, struct client *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)w->port)};

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *c = (struct client){.w = w, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    rv_buf_init(&c->got, MAX_GOT);
    ck_assert_int_ge(c->fd, 0);
    ck_assert_int_eq(setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0); /* pieces go at once */
    ck_assert_int_eq(connect(c->fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
    world_run(w);
}

/* False: nothing came. */
static bool take(struct client *c)
{
    char room[65536];
    ssize_t n = c->is_over ? 0 : recv(c->fd, room, sizeof room, 0);

    if (n > 0)
        rv_buf_add(&c->got, room, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        c->is_over = true;
    return n > 0;
}

void client_look(struct client *c)
{
    do
        world_run(c->w);
    while (take(c));
}

void client_send(struct client *c, rv_str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(c->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            break;
        n = n < 0 ? 0 : n;
        bytes = (rv_str){bytes.ptr + n, bytes.len - (size_t)n};
        world_run(c->w);
    }
    client_look(c);
}

void client_text(struct client *c, const char *text)
{
    client_send(c, rv_str_of(text));
}

void client_close(struct client *c)
{
    close(c->fd);
    rv_buf_fini(&c->got);
    world_run(c->w);
}

char *world_ask(struct world *w, rv_str request)
{
    struct client c;

    client_open(w, &c);
    client_send(&c, request);
    char *got = strdup(rv_buf_cstr(&c.got));
    client_close(&c);
    return got;
}

int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");

    return end ? end + 4 : "";
}

size_t n_answers(const char *got)
{
    size_t n = 0;

    for (const char *p = got; (p = strstr(p, "HTTP/1.1 ")); p++)
        n += strtol(p + 9, NULL, 10) >= 200;
    return n;
}
