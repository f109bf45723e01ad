/* The server: listening, the one timer and the work that waits for the loop, draining, the end. */
#include "coreengine/http/http_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define BACKLOG      4096        /* connections that wait to be accepted: the kernel's own ceiling today (somaxconn) */
#define FLUSH_US     RV_US_PER_S /* after the deadline of a drain, for the last bytes */
#define ACCEPT_US    (100 * RV_US_PER_MS) /* until a connection that could not be taken is tried again */
#define MAX_TIMER_MS UINT64_C(60000)      /* a minute: the timer looks again then */

/* --- the loop --- */

static bool owes_accept(const rv_httpd *s)
{
    for (const struct rv_listener *l = s->listeners; l; l = l->next)
        if (l->owes_accept)
            return true;
    return false;
}

static int64_t next_us(const rv_httpd *s)
{
    int64_t next = httpd_wheel_next_us(s->wheel), retry = httpd_now(s) + ACCEPT_US;

    if (s->is_draining && s->conns && s->deadline_us < next)
        next = s->deadline_us;
    return owes_accept(s) && retry < next ? retry : next;
}

static void on_timer(uv_timer_t *timer)
{
    rv_httpd *s = timer->data;

    s->timer_us = RV_NEVER;
    rv_httpd_tick(s);
}

void httpd_arm(rv_httpd *s)
{
    int64_t next = next_us(s), now = httpd_now(s);
    uint64_t ms = next <= now ? 0 : (uint64_t)(next - now + 999) / 1000;

    if (s->is_freed || next >= s->timer_us)
        return; /* it comes in time, and looks again */
    s->timer_us = next;
    uv_update_time(s->loop);
    uv_timer_start(&s->timer, on_timer, ms < MAX_TIMER_MS ? ms : MAX_TIMER_MS, 0);
}

static void close_broken(rv_httpd *s)
{
    while (s->broken) {
        struct rv_conn *c = s->broken;
        s->broken = c->broken_next;
        httpd_conn_close(c, RV_GONE_LEFT);
    }
}

static void work(rv_httpd *s)
{
    close_broken(s);
    httpd_exchange_tell_all(s);
    if (!s->todo && !s->broken)
        uv_idle_stop(&s->idle);
    if (s->is_draining && !s->conns && s->done) {
        void (*done)(void *self) = s->done;
        s->done = NULL;
        done(s->done_self);
    }
}

static void on_idle(uv_idle_t *idle)
{
    work(idle->data);
}

void httpd_look(rv_httpd *s)
{
    if (!s->is_freed)
        uv_idle_start(&s->idle, on_idle); /* nothing happens if it runs */
}

/* --- making --- */

static int check_limits(const struct rv_httpd_limits *l, rv_err **err)
{
    if (l->max_head < 256 || l->max_head > (size_t)1 << 20)
        return RV_FAIL(err, RV_E_INVALID, "limit of the head of a request: 256 bytes to 1 MiB");
    if (l->max_fields < 1 || l->max_fields > 1000)
        return RV_FAIL(err, RV_E_INVALID, "limit of the fields of a request: 1 to 1000");
    if (l->max_target < 1 || l->max_connections < 1 || l->send_buffer < 0)
        return RV_FAIL(err, RV_E_INVALID, "limits of the target and of connections: at least 1");
    if (l->head_us <= 0 || l->keep_alive_us <= 0 || l->body_grace_us < 0 || l->stall_us < 0 || l->heartbeat_us < 0)
        return RV_FAIL(err, RV_E_INVALID, "a limit of time is negative, or 0 where there has to be one");
    return 0;
}

static void free_memory(rv_httpd *s)
{
    for (size_t i = 0; s->hosts && i < s->o.n_hosts; i++)
        free(s->hosts[i]);
    free(s->hosts);
    free(s->wheel);
    httpd_peers_free(s->peers);
    free(s->read_room);
    tls_room_free(s->tls_room);
    free(s);
}

static bool copy_hosts(rv_httpd *s, const struct rv_httpd_opts *opts)
{
    s->hosts = calloc(opts->n_hosts + 1, sizeof *s->hosts);
    for (size_t i = 0; s->hosts && i < opts->n_hosts; i++)
        if (!(s->hosts[i] = rv_str_dup(rv_str_of(opts->hosts[i]))))
            return false;
    s->o.hosts = NULL;
    return s->hosts != NULL;
}

static void fill_in(rv_httpd *s, const struct rv_httpd_opts *opts)
{
    s->o = *opts;
    s->loop = opts->loop;
    s->todo_end = &s->todo;
    s->timer_us = RV_NEVER;
    if (!s->o.clock.now_us)
        s->o.clock = rv_clock_system();
    if (!s->o.rand.fill)
        s->o.rand = rv_rand_system();
}

int rv_httpd_new(const struct rv_httpd_opts *opts, rv_httpd **out, rv_err **err)
{
    int rc = check_limits(&opts->limits, err);
    if (rc < 0)
        return rc;
    rv_httpd *s = calloc(1, sizeof *s);
    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "make a server");
    fill_in(s, opts);
    s->wheel = malloc(sizeof *s->wheel);
    s->peers = httpd_peers_new(rv_rand_u64(s->o.rand));
    s->read_room = malloc(RV_HTTPD_READ_BYTES);
    if (!copy_hosts(s, opts) || !s->wheel || !s->peers || !s->read_room) {
        free_memory(s);
        return RV_FAIL(err, RV_E_NOMEM, "make a server");
    }
    httpd_wheel_init(s->wheel, httpd_now(s));
    uv_timer_init(s->loop, &s->timer);
    uv_idle_init(s->loop, &s->idle);
    s->timer.data = s->idle.data = s;
    s->n_handles = 2;
    *out = s;
    return 0;
}

/* --- the end --- */

static void free_listener(struct rv_listener *l)
{
    tls_ctx_free(l->tls_ctx);
    free(l->certificate);
    free(l->key);
    free(l);
}

/* Nothing of the loop is left: listeners are freed here, because connections point to theirs. */
static void free_all(rv_httpd *s)
{
    while (s->listeners) {
        struct rv_listener *next = s->listeners->next;
        free_listener(s->listeners);
        s->listeners = next;
    }
    free_memory(s);
}

void httpd_handle_closed(rv_httpd *s)
{
    if (--s->n_handles == 0 && s->is_freed && !s->is_freeing)
        free_all(s);
}

static void on_handle_closed(uv_handle_t *handle)
{
    httpd_handle_closed(handle->data);
}

static void on_listener_closed(uv_handle_t *handle)
{
    httpd_handle_closed(((struct rv_listener *)handle->data)->s);
}

/* Of a listener that could not listen. */
static void on_refused_closed(uv_handle_t *handle)
{
    rv_httpd *s = ((struct rv_listener *)handle->data)->s;

    free_listener(handle->data);
    httpd_handle_closed(s);
}

static void stop_listening(rv_httpd *s)
{
    for (struct rv_listener *l = s->listeners; l; l = l->next) {
        if (l->is_open)
            uv_close((uv_handle_t *)&l->tcp, on_listener_closed);
        l->is_open = l->owes_accept = false;
    }
}

void rv_httpd_free(rv_httpd *s)
{
    if (!s)
        return;
    s->done = NULL;
    s->is_freeing = true;
    stop_listening(s);
    for (struct rv_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        httpd_conn_close(c, RV_GONE_STOPPED);
    }
    s->broken = NULL;
    while (s->todo)
        httpd_exchange_tell_all(s);
    s->is_freed = true;
    while (s->exchanges) {
        rv_httpd_exchange *x = s->exchanges;
        s->exchanges = x->next;
        httpd_exchange_orphan(x);
    }
    uv_close((uv_handle_t *)&s->timer, on_handle_closed);
    uv_close((uv_handle_t *)&s->idle, on_handle_closed);
    for (int i = 0; !s->o.runs_on && s->n_handles > 0 && i < 1000; i++)
        uv_run(s->loop, UV_RUN_NOWAIT);
    s->is_freeing = false;
    if (s->n_handles == 0)
        free_all(s);
}

/* --- listening --- */

/* Has the connection that was just taken the last descriptor? libuv would close the next one without a word. */
static bool is_short(rv_httpd *s, const uv_tcp_t *taken)
{
    uv_os_fd_t fd;
    int spare = uv_fileno((const uv_handle_t *)taken, &fd) == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    bool is = spare < 0 && (errno == EMFILE || errno == ENFILE);

    if (spare >= 0)
        close(spare);
    if (is && !s->is_short)
        RV_LOG(s->o.log, ERROR, "http.no_descriptors", RV_F_I64("connections", (int64_t)s->counts.connections));
    s->is_short = is;
    return is;
}

const struct rv_httpd_fault *httpd_unwelcome(rv_httpd *s, const uv_tcp_t *taken, struct rv_address *peer)
{
    static const struct rv_httpd_fault drains = {503, "draining", "the server is about to stop; ask again"},
                                       is_full = {503, "too_many_connections",
                                                  "the server has all the connections that it may have: ask again "
                                                  "later"},
                                       no_files = {503, "no_descriptors",
                                                   "the server cannot open more files and connections now: ask again "
                                                   "later"},
                                       no_memory = {503, "no_memory",
                                                    "the server has no memory for a further connection now: ask again "
                                                    "later"},
                                       is_greedy = {429, "too_many_connections",
                                                    "this address has all the connections that it may have: close "
                                                    "some, or send further requests on one of them"};

    if (s->is_draining)
        return &drains;
    if (s->counts.connections >= s->o.limits.max_connections)
        return &is_full;
    if (is_short(s, taken))
        return &no_files;
    bool is_proxy = s->o.handler.is_proxy && s->o.handler.is_proxy(s->o.handler.self, peer);
    int rc = httpd_peers_add(s->peers, peer, is_proxy ? 0 : s->o.limits.max_per_peer);
    return rc == RV_E_NOMEM ? &no_memory : rc < 0 ? &is_greedy : NULL;
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct rv_listener *l = stream->data;

    if (status == 0)
        httpd_conn_accept(l);
}

static int fail_uv(int rc, rv_err **err)
{
    int code = rc == UV_EADDRINUSE                         ? RV_E_EXISTS
               : rc == UV_EINVAL || rc == UV_EADDRNOTAVAIL ? RV_E_INVALID
                                                           : rv_code_of_system(rc);

    RV_FAIL(err, code, "%s", uv_strerror(rc));
    if (rc == UV_EMFILE || rc == UV_ENFILE)
        rv_err_set_hint(err, "raise `ulimit -n`, the largest number of open files of a process");
    return code;
}

static int address_of(const struct rv_httpd_listen *at, struct sockaddr_storage *out, rv_err **err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)out;

    memset(out, 0, sizeof *out);
    if (at->port < 0 || at->port > 65535)
        return RV_FAIL(err, RV_E_INVALID, "invalid port %d: use 1 to 65535, or 0 for any", at->port);
    if (uv_ip4_addr(at->address, at->port, v4) == 0 || uv_ip6_addr(at->address, at->port, v6) == 0)
        return 0;
    RV_FAIL(err, RV_E_INVALID, "invalid address \"%s\"", at->address);
    rv_err_set_hint(err, "use a numeric address such as 127.0.0.1 (this machine only), 0.0.0.0 or ::");
    return RV_E_INVALID;
}

static int open_socket(struct rv_listener *l, const struct sockaddr_storage *address, int *port, rv_err **err)
{
    struct sockaddr_storage bound;
    int len = sizeof bound;
    int rc = uv_tcp_bind(&l->tcp, (const struct sockaddr *)address, 0);

    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&l->tcp, BACKLOG, on_connection);
    if (rc == 0)
        rc = uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&bound, &len);
    if (rc < 0)
        return fail_uv(rc, err);
    *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)(void *)&bound)->sin_port);
    return 0;
}

static int set_up_tls(struct rv_listener *l, const struct rv_httpd_listen *at, rv_err **err)
{
    rv_httpd *s = l->s;

    if (!at->certificate)
        return 0;
    if (!at->key)
        return RV_FAIL(err, RV_E_INVALID, "a certificate needs a key: name the file of its private key, too");
    l->certificate = rv_str_dup(rv_str_of(at->certificate));
    l->key = rv_str_dup(rv_str_of(at->key));
    if (!s->tls_room)
        s->tls_room = tls_room_new();
    if (!l->certificate || !l->key || !s->tls_room)
        return RV_FAIL(err, RV_E_NOMEM, "listen at %s", at->address);
    return tls_ctx_new(l->certificate, l->key, &l->tls_ctx, err);
}

int rv_httpd_listen(rv_httpd *s, const struct rv_httpd_listen *at, int *port, rv_err **err)
{
    struct sockaddr_storage address;
    int rc = address_of(at, &address, err);
    if (rc < 0)
        return rc;
    struct rv_listener *l = calloc(1, sizeof *l);
    if (!l)
        return RV_FAIL(err, RV_E_NOMEM, "listen at %s", at->address);
    struct rv_address own;
    l->s = s;
    l->is_loopback = rv_address_read((struct sockaddr *)&address, &own) && rv_address_is_loopback(&own);
    rc = set_up_tls(l, at, err);
    if (rc < 0) {
        free_listener(l);
        return rc;
    }
    RV_IGNORE(uv_tcp_init(s->loop, &l->tcp), "it fails by its flags alone, and has none");
    l->tcp.data = l;
    s->n_handles++;
    rc = open_socket(l, &address, port, err);
    if (rc < 0) {
        uv_close((uv_handle_t *)&l->tcp, on_refused_closed);
        return rc;
    }
    l->is_open = true;
    l->next = s->listeners;
    s->listeners = l;
    return 0;
}

int rv_httpd_reload(rv_httpd *s, rv_err **err)
{
    for (struct rv_listener *l = s->listeners; l; l = l->next) {
        struct rv_tls_ctx *fresh = NULL;
        if (!l->tls_ctx)
            continue;
        int rc = tls_ctx_new(l->certificate, l->key, &fresh, err);
        if (rc < 0)
            return rc;
        tls_ctx_free(l->tls_ctx);
        l->tls_ctx = fresh;
    }
    return 0;
}

/* --- draining and time --- */

void rv_httpd_drain(rv_httpd *s, int64_t grace_us, void (*done)(void *self), void *self)
{
    s->deadline_us = httpd_now(s) + grace_us;
    if (s->is_draining) {
        httpd_arm(s);
        return;
    }
    s->is_draining = true;
    s->done = done;
    s->done_self = self;
    stop_listening(s);
    for (struct rv_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        if (c->state == RV_CONN_HEAD && !c->has_spoken && c->is_used)
            httpd_conn_close(c, RV_GONE_STOPPED);
    }
    for (rv_httpd_exchange *x = s->exchanges; x; x = x->next)
        httpd_exchange_note(x, RV_NOTE_STOP);
    httpd_arm(s);
    httpd_look(s);
}

/* The deadline of a drain: a last word to everyone, and soon the end. */
static void end_all(rv_httpd *s)
{
    bool is_last = s->is_past_deadline;

    s->is_past_deadline = true;
    s->deadline_us = is_last ? RV_NEVER : httpd_now(s) + FLUSH_US;
    for (struct rv_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        if (is_last || c->state == RV_CONN_HEAD)
            httpd_conn_close(c, RV_GONE_STOPPED);
        else if (c->state == RV_CONN_BODY || c->state == RV_CONN_ANSWER)
            httpd_conn_stop(c);
    }
}

void rv_httpd_tick(rv_httpd *s)
{
    int64_t now = httpd_now(s);
    struct rv_wheel_entry *e;

    while ((e = httpd_wheel_pop(s->wheel, now)))
        httpd_conn_tick((struct rv_conn *)(void *)((char *)e - offsetof(struct rv_conn, clock)), now);
    for (struct rv_listener *l = s->listeners; l; l = l->next)
        if (l->owes_accept)
            httpd_conn_accept(l);
    if (s->is_draining && s->conns && now >= s->deadline_us)
        end_all(s);
    work(s);
    httpd_arm(s);
}

void rv_httpd_copy_counts(const rv_httpd *s, struct rv_httpd_counts *out)
{
    *out = s->counts;
}
