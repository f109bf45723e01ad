/* The login's own loop: a port on this machine that a browser is sent to, and the flow for a token beside it.
 *
 * Only the loopback address is listened to, on a port that the system chooses. What comes there is not believed: it has
 * to carry the state of this login, and anything else is answered and forgotten. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "coreengine/base/loop.h"
#include "coreengine/tools/mcp/http/http.h"

#define CALLBACK   "/callback"
#define MAX_HEAD   ((size_t)16 << 10) /* bytes of the browser's request: with the cookies of localhost */
#define MAX_GUESTS 32                 /* connections in one login: a browser opens a few */
#define GUEST_MS   10000              /* to send a request: a browser that keeps a connection ready opens another one */
#define MAX_WORDS  16                 /* of the browser's command: a person writes it */

struct login {
    struct rv_mcp_login login; /* first */
    const struct rv_mcp_login_opts *opts;
    uv_loop_t loop;
    uv_tcp_t port;
    uv_timer_t timer;
    rv_http *http;              /* owned */
    rv_egress *egress;          /* owned */
    rv_mcp_tokens *tokens;      /* owned */
    struct guest *first, *last; /* that are open, in the order of coming */
    int n_guests;
    bool is_over;
    rv_err *problem; /* owned */
};

/* One connection of a browser. */
struct guest {
    uv_tcp_t tcp; /* first */
    uv_timer_t timer;
    uv_write_t write;
    struct login *l;
    struct guest *prev, *next;
    int n_handles; /* that are not closed */
    rv_buf head;
    char chunk[4096];
    bool is_answered;
};

static void end(struct login *l, rv_err *problem)
{
    if (l->is_over)
        rv_err_free(problem);
    else
        l->problem = problem;
    l->is_over = true;
    uv_stop(&l->loop);
}

/* --- the browser's request --- */

static void on_guest_closed(uv_handle_t *h)
{
    struct guest *g = h->data;

    if (--g->n_handles > 0)
        return;
    rv_buf_fini(&g->head);
    free(g);
}

static void close_guest(struct guest *g)
{
    struct login *l = g->l;

    if (uv_is_closing((uv_handle_t *)&g->tcp))
        return;
    *(g->prev ? &g->prev->next : &l->first) = g->next;
    *(g->next ? &g->next->prev : &l->last) = g->prev;
    l->n_guests--;
    uv_close((uv_handle_t *)&g->tcp, on_guest_closed);
    uv_close((uv_handle_t *)&g->timer, on_guest_closed);
}

static void on_guest_late(uv_timer_t *t)
{
    close_guest(t->data);
}

static void on_written(uv_write_t *w, int status)
{
    (void)status;
    close_guest(w->data);
}

static void say(struct guest *g, bool is_good)
{
    static char good[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
                         "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\r\n"
                         "reeve has the answer. This window can be closed.\n";
    static char bad[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
                        "Cache-Control: no-store\r\n\r\nThis does not belong to the login.\n";
    uv_buf_t buf = is_good ? uv_buf_init(good, sizeof good - 1) : uv_buf_init(bad, sizeof bad - 1);

    g->is_answered = true;
    g->write.data = g;
    if (uv_write(&g->write, (uv_stream_t *)&g->tcp, &buf, 1, on_written) < 0)
        close_guest(g);
}

/* "GET /callback?code=... HTTP/1.1": the query; ptr NULL: it is another request. */
static rv_str query_of(const rv_buf *head)
{
    static const char start[] = "GET " CALLBACK "?";
    size_t n = sizeof start - 1;
    const char *stop =
        head->len > n && memcmp(head->ptr, start, n) == 0 ? memchr(head->ptr + n, ' ', head->len - n) : NULL;

    return stop ? (rv_str){head->ptr + n, (size_t)(stop - head->ptr) - n} : (rv_str){NULL, 0};
}

static void take(struct guest *g)
{
    struct login *l = g->l;
    rv_str query = query_of(&g->head);
    rv_err *problem = NULL;

    int rc = query.ptr ? rv_mcp_tokens_on_redirect(l->tokens, query, &problem) : RV_E_INVALID;
    say(g, rc == 0 || rc == RV_E_DENIED);
    if (rc == 0 || rc == RV_E_INVALID || rc == RV_E_STATE)
        rv_err_free(problem);
    else
        end(l, problem);
}

static void on_alloc(uv_handle_t *h, size_t wanted, uv_buf_t *buf)
{
    struct guest *g = (struct guest *)h;

    (void)wanted;
    *buf = uv_buf_init(g->chunk, sizeof g->chunk);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct guest *g = (struct guest *)s;

    if (n < 0) {
        close_guest(g);
        return;
    }
    if (g->is_answered)
        return;
    rv_buf_add(&g->head, buf->base, (size_t)n);
    if (g->head.rc < 0)
        close_guest(g);
    else if (g->head.len && strstr(rv_buf_cstr(&g->head), "\r\n\r\n"))
        take(g);
}

static void add_guest(struct login *l, struct guest *g)
{
    g->l = l;
    g->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = g;
    l->last = g;
    if (++l->n_guests > MAX_GUESTS)
        close_guest(l->first);
}

/* Every connection is accepted: libuv reports no further one before. Of too many the oldest goes, since the one with
 * the answer may be the last. */
static void on_guest(uv_stream_t *port, int status)
{
    struct login *l = port->data;
    struct guest *g = status == 0 ? calloc(1, sizeof *g) : NULL;

    if (!g)
        return;
    g->tcp.data = g->timer.data = g;
    rv_buf_init(&g->head, MAX_HEAD);
    if (uv_tcp_init(&l->loop, &g->tcp) < 0) {
        free(g);
        return;
    }
    RV_IGNORE(uv_timer_init(&l->loop, &g->timer), "it never fails");
    g->n_handles = 2;
    add_guest(l, g);
    if (uv_accept(port, (uv_stream_t *)&g->tcp) < 0 || uv_timer_start(&g->timer, on_guest_late, GUEST_MS, 0) < 0 ||
        uv_read_start((uv_stream_t *)&g->tcp, on_alloc, on_read) < 0)
        close_guest(g);
}

/* --- the person --- */

static void on_browser_closed(uv_handle_t *h)
{
    free(h);
}

static void on_browser_exit(uv_process_t *p, int64_t status, int signal)
{
    (void)status, (void)signal;
    uv_close((uv_handle_t *)p, on_browser_closed);
}

/* The words of the command, without a shell, and the address. */
static int start_browser(struct login *l, const char *url, rv_err **err)
{
    char *words[MAX_WORDS + 2] = {NULL}, *copy = rv_str_dup(rv_str_of(l->opts->browser)), *rest = copy, *word;
    uv_stdio_container_t none[3] = {{.flags = UV_IGNORE}, {.flags = UV_IGNORE}, {.flags = UV_IGNORE}};
    uv_process_t *p = calloc(1, sizeof *p);
    size_t n = 0;
    int rc = copy && p ? 0 : RV_FAIL(err, RV_E_NOMEM, "start the browser");

    while (rc == 0 && (word = strtok_r(n ? NULL : copy, " ", &rest)) && n < MAX_WORDS)
        words[n++] = word;
    words[n] = rc == 0 ? rv_str_dup(rv_str_of(url)) : NULL;
    if (rc == 0 && (n == 0 || !words[n]))
        rc = RV_FAIL(err, n ? RV_E_NOMEM : RV_E_INVALID, "the command for the browser is empty");
    if (rc == 0) {
        const uv_process_options_t how = {
            .file = words[0], .args = words, .exit_cb = on_browser_exit, .stdio = none, .stdio_count = 3};
        int status = uv_spawn(&l->loop, p, &how);
        if (status < 0) {
            rc = RV_FAIL(err, RV_E_IO, "the browser \"%s\" cannot be started: %s", words[0], uv_strerror(status));
            uv_close((uv_handle_t *)p, on_browser_closed);
        }
        p = NULL;
    }
    free(words[n]);
    free(copy);
    free(p);
    return rc;
}

static void on_ask(struct rv_mcp_login *login, const char *url)
{
    struct login *l = (struct login *)login;
    rv_err *problem = NULL;

    l->opts->show(l->opts->self, url);
    if (l->opts->browser && start_browser(l, url, &problem) < 0)
        end(l, problem);
}

static void on_done(struct rv_mcp_login *login, rv_err *problem)
{
    end((struct login *)login, problem);
}

static void on_timer(uv_timer_t *t)
{
    rv_err *problem = NULL;

    RV_IGNORE(RV_FAIL(&problem, RV_E_TIMEOUT, "no answer came for the login"), "it is handed on");
    end(t->data, problem);
}

/* --- its life --- */

static int listen_here(struct login *l, char uri[64], rv_err **err)
{
    struct sockaddr_in address;
    int len = sizeof address;

    if (uv_tcp_init(&l->loop, &l->port) < 0)
        return RV_FAIL(err, RV_E_IO, "no port for the answer of a browser");
    l->port.data = l;
    if (uv_ip4_addr("127.0.0.1", 0, &address) < 0 || uv_tcp_bind(&l->port, (const struct sockaddr *)&address, 0) < 0 ||
        uv_listen((uv_stream_t *)&l->port, 8, on_guest) < 0 ||
        uv_tcp_getsockname(&l->port, (struct sockaddr *)&address, &len) < 0)
        return RV_FAIL(err, RV_E_IO, "no port for the answer of a browser");
    snprintf(uri, 64, "http://127.0.0.1:%d" CALLBACK, ntohs(address.sin_port));
    return 0;
}

static int begin(struct login *l, rv_err **err)
{
    struct rv_mcp_tokens_opts how = {.ca_file = l->opts->ca_file,
                                     .file = l->opts->auth->file,
                                     .config = l->opts->auth->config,
                                     .clock = rv_clock_system(),
                                     .rand = rv_rand_system()};
    char uri[64];
    int rc = listen_here(l, uri, err);

    if (rc == 0)
        rc = rv_mcp_web_make_egress(l->opts->url, l->opts->allowed, &l->egress, err);
    if (rc == 0)
        rc = rv_http_new(&(struct rv_http_opts){.loop = &l->loop}, &l->http, err);
    if (rc < 0)
        return rc;
    how.http = l->http;
    how.egress = l->egress;
    how.config.resource = l->opts->url;
    how.config.redirect_uri = uri;
    rc = rv_mcp_tokens_new(&how, &l->tokens, err);
    if (rc == 0 && uv_timer_init(&l->loop, &l->timer) == 0) {
        l->timer.data = l;
        RV_IGNORE(uv_timer_start(&l->timer, on_timer, (uint64_t)l->opts->max_us / RV_US_PER_MS, 0),
                  "the timer is open");
    }
    return rc == 0 ? rv_mcp_tokens_login(l->tokens, &l->login, err) : rc;
}

static void close_handle(uv_handle_t *h, void *arg)
{
    struct login *l = arg;

    if (uv_is_closing(h))
        return;
    if (h == (uv_handle_t *)&l->port || h == (uv_handle_t *)&l->timer)
        uv_close(h, NULL);
    else if (h->type == UV_TCP)
        close_guest((struct guest *)h);
    else if (h->type == UV_PROCESS)
        uv_close(h, on_browser_closed);
}

int rv_mcp_login(const struct rv_mcp_login_opts *opts, rv_err **err)
{
    struct login l = {.login = {on_ask, on_done}, .opts = opts};

    int rc = rv_loop_init(&l.loop, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "begin a login");
    rc = begin(&l, err);
    while (rc == 0 && !l.is_over)
        uv_run(&l.loop, UV_RUN_ONCE);
    for (int i = 0; rc == 0 && i < 3; i++) /* the page that the browser shows */
        uv_run(&l.loop, UV_RUN_NOWAIT);
    rv_mcp_tokens_free(l.tokens);
    rv_http_free(l.http);
    uv_walk(&l.loop, close_handle, &l);
    uv_run(&l.loop, UV_RUN_DEFAULT);
    RV_IGNORE(uv_loop_close(&l.loop), "all handles were closed");
    rv_egress_free(l.egress);
    if (rc == 0 && l.problem) {
        rc = rv_err_code(l.problem);
        rv_err_pass(err, l.problem);
    }
    return rc;
}
