#include "tests/unit/httpd/world.h"
#include "coreengine/http/http_internal.h"
#include "tests/unit/httpd/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_GOT      ((size_t)64 << 20)
#define QUIET_ROUNDS 4
#define STILL_ROUNDS 30 /* of a millisecond each */

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
    const struct rv_httpd_request *req = rv_httpd_exchange_request(x);

    plan->data = w;
    plan->free_data = free_data;
    if (is_at(req, "hello"))
        plan->route = "/hello";
    if (is_at(req, "large"))
        plan->max_body = (size_t)10 << 20;
    if (is_at(req, "small"))
        plan->max_body = 10;
    if (is_at(req, "stopped")) /* a drain whose deadline passes while a head is looked at */
        rv_httpd_drain(w->server, 0, NULL, NULL), rv_httpd_tick(w->server);
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
    const struct rv_httpd_request *req = rv_httpd_exchange_request(x);
    RV_AUTO(rv_buf_fini) rv_buf b = RV_BUF_INIT(MAX_GOT);

    ck_assert_ptr_eq(req->data, w);
    if (is_at(req, "hello")) {
        rv_httpd_reply(x, &(struct rv_httpd_answer){.status = 200,
                                                    .type = "text/plain",
                                                    .body = RV_STR_LIT("hello"),
                                                    .run_id = req->method == RV_METHOD_POST ? RV_STR_LIT("run_1")
                                                                                            : RV_STR_LIT("")});
    } else if (is_at(req, "drop_last")) { /* the last stream */
        rv_httpd_drop(w->x);
        reply_text(x, RV_STR_LIT("dropped"));
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

    rv_buf_printf(&w->access, "%s %s %d %d %s%s%s\n", line->method, line->route, line->status, (int)line->bytes_in,
                  line->was_cut ? "cut" : "whole", line->run_id[0] ? " " : "", line->run_id);
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

static struct rv_conn *conn_of(struct world *w, int port)
{
    struct sockaddr_in peer = {0};
    int len = sizeof peer;

    for (struct rv_conn *c = w->server->conns; c; c = c->next, len = sizeof peer)
        if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&peer, &len) == 0 && ntohs(peer.sin_port) == port)
            return c;
    return NULL;
}

/* True if nothing is on its way between a client and the server, or the client has something to read. *trace changes as
 * long as there is progress. */
static bool is_settled(struct world *w, const struct client *c, uint64_t *trace)
{
    const struct rv_conn *conn = conn_of(w, c->port);
    int unread = 0, fd = -1, at_hand = 0;

    if (!conn)
        return c->is_over || socket_has_ended(c->fd);
    (void)uv_fileno((const uv_handle_t *)&conn->tcp, &fd);
    uint64_t at_server = socket_received(fd, &unread), at_client = socket_received(c->fd, &at_hand);
    *trace += at_server * 31 + at_client * 7 + (uint64_t)unread;
    return at_server >= c->n_sent && unread == 0 && (at_hand > 0 || at_client >= socket_sent(fd)) &&
           (!conn->is_shut || socket_has_ended(c->fd));
}

static bool all_settled(struct world *w, uint64_t *trace)
{
    bool is_quiet = true;

    *trace = 0;
    for (size_t i = 0; i < RV_COUNT(w->clients); i++)
        if (w->clients[i] && !is_settled(w, w->clients[i], trace))
            is_quiet = false;
    for (const struct rv_conn *c = w->server->conns; c; c = c->next)
        (*trace)++;
    return is_quiet;
}

/* Something for the loop of the server, or a millisecond: how much of what a peer sent is still on its way tells
 * nothing. */
static void await_event(struct world *w)
{
    (void)poll(&(struct pollfd){.fd = uv_backend_fd(&w->loop), .events = POLLIN}, 1, 1);
}

void world_run(struct world *w)
{
    uint64_t before = 0, now = 0;

    for (int quiet = 0, still = 0; quiet < QUIET_ROUNDS && still < STILL_ROUNDS;) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        if (!w->server || all_settled(w, &now)) {
            quiet++;
            continue;
        }
        quiet = 0;
        still = now == before ? still + 1 : 0; /* a client that does not read, or a server that does not */
        before = now;
        await_event(w);
    }
}

void world_pass(struct world *w, int64_t us)
{
    w->clock.us += us;
    rv_httpd_tick(w->server);
    world_run(w);
}

/* --- clients --- */

void client_open(struct world *w, struct client *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)w->port)}, own;
    socklen_t len = sizeof own;
    struct rv_httpd_counts counts;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *c = (struct client){.w = w, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    rv_buf_init(&c->got, MAX_GOT);
    ck_assert_int_ge(c->fd, 0);
    ck_assert_int_eq(setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0); /* pieces go at once */
    ck_assert_int_eq(connect(c->fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(getsockname(c->fd, (struct sockaddr *)&own, &len), 0);
    c->port = ntohs(own.sin_port);
    size_t i = 0;
    while (w->clients[i])
        i++;
    w->clients[i] = c;
    rv_httpd_copy_counts(w->server, &counts);
    uint64_t before = counts.accepted;
    for (int n = 0; n < 5000 && counts.accepted == before; n++) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        rv_httpd_copy_counts(w->server, &counts);
        if (counts.accepted == before)
            await_event(w);
    }
    world_run(w);
}

/* False: nothing came. */
static bool take(struct client *c)
{
    char room[65536];
    ssize_t n = c->is_over ? 0 : recv(c->fd, room, sizeof room, 0);

    c->is_reset = c->is_reset || (n < 0 && errno == ECONNRESET);
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
        c->n_sent += (uint64_t)n;
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
    struct world *w = c->w;

    for (size_t i = 0; i < RV_COUNT(w->clients); i++)
        if (w->clients[i] == c)
            w->clients[i] = NULL;
    close(c->fd);
    rv_buf_fini(&c->got);
    for (int n = 0; n < 5000 && w->server && conn_of(w, c->port); n++) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        if (conn_of(w, c->port))
            await_event(w);
    }
    world_run(w);
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
