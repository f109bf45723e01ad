/* The life of the server: opened, drained, closed. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/app/app.h"
#include "coreengine/base/loop.h"
#include "coreengine/server/body_internal.h"
#include "coreengine/server/follow_internal.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/server/hands_internal.h"
#include "coreengine/server/mcp_internal.h"
#include "coreengine/server/page_internal.h"
#include "coreengine/server/view_internal.h"
#include "coreengine/server/worker_internal.h"

#define LAST_WORDS_US (10 * RV_US_PER_S) /* for the ends of turns that were cancelled */
#define MAX_NAMES     64 /* of --hosts: each request is compared with all; more is an error at the start */

struct life {
    struct srv_server s; /* the first member */
    uv_timer_t grace;
    bool has_loop;             /* with its handles */
    struct srv_worker *worker; /* NULL: it has none; owned */
    char url[128];
};

/* --- where it listens --- */

static int bad_address(const char *text, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_INVALID,
                     "--listen %s: write ADDRESS:PORT with a numeric address and a port from 0 to 65535", text);

    rv_err_set_hint(err, "for example 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080");
    return rc;
}

static int read_address(const char *text, char address[64], int *port, rv_err **err)
{
    const char *colon = strrchr(text, ':');
    unsigned char bytes[16];
    char *end = NULL;

    if (!colon || colon == text || !rv_is_digit(colon[1]))
        return bad_address(text, err);
    long n = strtol(colon + 1, &end, 10);
    size_t len = (size_t)(colon - text);
    bool is_six = text[0] == '[' && text[len - 1] == ']';
    const char *from = text + is_six;
    len -= is_six ? 2 : 0;
    if (*end || n < 0 || n > 65535 || len == 0 || len >= 64)
        return bad_address(text, err);
    memcpy(address, from, len);
    address[len] = '\0';
    if (inet_pton(is_six ? AF_INET6 : AF_INET, address, bytes) != 1)
        return bad_address(text, err);
    *port = (int)n;
    return 0;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* A client that can connect could do everything, so only clients on this machine may. */
static int check_open(struct srv_server *s, const char *address, rv_err **err)
{
    struct srv_handles *d;
    bool has_keys = false;

    int rc = srv_handles_take(s, &d, err);
    if (rc < 0)
        return rc;
    if (rv_store_is_memory(d->sources.store)) {
        rc = RV_FAIL(err, RV_E_INVALID,
                     "a server needs a store that several threads can open, and \"memory:\" is not one");
        rv_err_set_hint(err, "name a file or a database: --store FILE");
    }
    if (rc == 0)
        rc = rv_store_has_api_keys(d->sources.store, srv_now_us(), &has_keys, err);
    srv_handles_give(s, d);
    atomic_store(&s->is_locked, has_keys);
    if (rc < 0 || is_loopback(address) || !rv_auth_is_open(s->auth, has_keys))
        return rc;
    rc = RV_FAIL(err, RV_E_INVALID, "others can reach %s, and no authentication is set up", address);
    rv_err_set_hint(err,
                    "make a key with `reeve keys create`, name --jwks or --jwt-secret-file, or listen on 127.0.0.1");
    return rc;
}

static int hear(struct life *l, rv_err **err)
{
    struct srv_server *s = &l->s;
    const char *text = s->opts->listen ? s->opts->listen : RV_SERVER_LISTEN;
    char address[64];
    int port = 0;

    int rc = read_address(text, address, &port, err);
    if (rc == 0)
        rc = check_open(s, address, err);
    if (rc < 0)
        return rc;
    const struct rv_httpd_listen at = {
        .address = address, .port = port, .certificate = s->opts->certificate, .key = s->opts->key};
    rc = rv_httpd_listen(s->httpd, &at, &port, err);
    if (rc == RV_E_EXISTS)
        rv_err_set_hint(err,
                        "another process listens there: end it, or choose another port with --listen; port 0 is any "
                        "free one");
    if (rc < 0)
        return RV_WRAP(err, rc, "listen at %s", text);
    snprintf(l->url, sizeof l->url, strchr(address, ':') ? "http%s://[%s]:%d" : "http%s://%s:%d",
             s->opts->certificate ? "s" : "", address, port);
    return 0;
}

/* --- the end --- */

static void on_drained(void *self)
{
    struct life *l = self;

    uv_close((uv_handle_t *)&l->grace, NULL);
    for (size_t i = 0; i < RV_COUNT(l->s.signals); i++)
        uv_close((uv_handle_t *)&l->s.signals[i], NULL);
    srv_turns_drain(l->s.turns);
    srv_turns_stop(l->s.turns);
    srv_follows_stop(l->s.follows);
    srv_rejoins_stop(l->s.rejoins);
    srv_mcps_stop(l->s.mcps);
    srv_mcps_free(l->s.mcps);
    srv_rejoins_free(l->s.rejoins);
    srv_turns_free(l->s.turns);
    srv_follows_free(l->s.follows);
    l->s.turns = NULL;
    l->s.follows = NULL;
    l->s.rejoins = NULL;
    l->s.mcps = NULL;
    srv_loop_read(&l->s.server_loop);
    srv_loop_close(&l->s.server_loop);
    uv_stop(&l->s.loop); /* what is left goes with the HTTP server */
}

/* Turns that are still under way are cancelled; their clients are told a proper end. */
static void on_grace(uv_timer_t *timer)
{
    struct life *l = timer->data;

    atomic_store(&l->s.is_over, true);
    srv_turns_stop(l->s.turns);
}

static void drain(struct life *l)
{
    const struct rv_server_opts *o = l->s.opts;
    int64_t grace_us = rv_worker_grace_us(o->grace_us);

    atomic_store(&l->s.is_draining, true);
    if (o->say)
        o->say(o->self, "draining: nothing new is accepted");
    RV_LOG(l->s.app.log, INFO, "server.drain", RV_F_TEXT("url", l->url), RV_F_I64("grace_ms", grace_us / RV_US_PER_MS));
    srv_turns_drain(l->s.turns);
    srv_worker_stop(l->worker);
    uv_timer_start(&l->grace, on_grace, (uint64_t)(grace_us / RV_US_PER_MS), 0);
    rv_httpd_drain(l->s.httpd, grace_us + LAST_WORDS_US, on_drained, l);
}

static void read_certificates(struct life *l)
{
    const struct rv_server_opts *o = l->s.opts;
    char text[400];
    rv_err *err = NULL;

    int rc = rv_httpd_reload(l->s.httpd, &err);
    if (rc < 0)
        RV_LOG(l->s.app.log, ERROR, "certificates.not_read", RV_F_ERR("error", err));
    else
        RV_LOG(l->s.app.log, INFO, "certificates.read");
    snprintf(text, sizeof text, "%s%s", rc == 0 ? "certificates were read again" : "certificates stay as they were: ",
             rc == 0 ? "" : rv_err_text(err));
    rv_err_free(err);
    if (o->say)
        o->say(o->self, text);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct life *l = handle->data;

    if (number == SIGHUP) {
        read_certificates(l);
        return;
    }
    if (atomic_load(&l->s.is_draining))
        _exit(RV_EXIT_AT_ONCE); /* asked twice: what goes on is left as after a crash */
    drain(l);
}

/* --- the worker in this process --- */

struct fall {
    struct srv_message message;
    struct life *life;
};

static void on_fallen(struct srv_message *message)
{
    struct fall *f = (struct fall *)message;

    if (!atomic_load(&f->life->s.is_draining))
        drain(f->life);
    free(f);
}

static void on_worker_fallen(struct srv_server *s)
{
    struct fall *f = calloc(1, sizeof *f);

    if (!f)
        return; /* /readyz says it */
    f->message.open = on_fallen;
    f->life = (struct life *)s; /* its first member */
    srv_loop_post(&s->server_loop, &f->message);
}

/* --- the whole --- */

static int open_handles(struct life *l, rv_err **err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct srv_server *s = &l->s;
    int rc = rv_loop_init(&s->loop, err);

    if (rc < 0)
        return rc;
    rc = srv_loop_init(&s->server_loop, &s->loop, err);
    if (rc < 0) {
        RV_IGNORE(uv_loop_close(&s->loop), "nothing is open on it");
        return rc;
    }
    l->has_loop = true;
    uv_timer_init(&s->loop, &l->grace);
    l->grace.data = l;
    for (size_t i = 0; rc == 0 && i < RV_COUNT(s->signals); i++) {
        s->signals[i].data = l;
        rc = rv_signal_init(&s->loop, &s->signals[i], on_signal, numbers[i], err);
    }
    return rc;
}

/* Where it listens on this machine only, names of --hosts are its own, too: a proxy passes on the name that it has. */
struct own_names {
    char *list; /* owned */
    const char *names[MAX_NAMES];
    size_t n;
};

static int read_names(const struct rv_server_opts *o, struct own_names *out, rv_err **err)
{
    static const char *const here[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *listen = o->listen ? o->listen : RV_SERVER_LISTEN;
    char *rest = NULL;

    *out = (struct own_names){.n = 0};
    if (!o->identity.hosts || (strncmp(listen, "127.", 4) != 0 && strncmp(listen, "[::1]", 5) != 0))
        return 0;
    if (!(out->list = rv_str_dup(rv_str_of(o->identity.hosts))))
        return RV_FAIL(err, RV_E_NOMEM, "read --hosts");
    for (size_t i = 0; i < RV_COUNT(here); i++)
        out->names[out->n++] = here[i];
    for (char *name = strtok_r(out->list, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        char *colon = strrchr(name, ':');
        if (colon && name[strlen(name) - 1] != ']')
            *colon = '\0';
        if (out->n == MAX_NAMES)
            return RV_FAIL(err, RV_E_INVALID, "--hosts: more than %d names", MAX_NAMES - (int)RV_COUNT(here));
        out->names[out->n++] = name;
    }
    return 0;
}

static int make_httpd(struct srv_server *s, rv_err **err)
{
    struct rv_httpd_opts http = RV_HTTPD_OPTS_INIT;
    struct own_names own;

    http.loop = &s->loop;
    http.handler = srv_handler;
    http.handler.self = s;
    http.log = s->app.log;
    int rc = read_names(s->opts, &own, err);
    if (own.n > 0) {
        http.hosts = own.names;
        http.n_hosts = own.n;
    }
    if (rc == 0)
        rc = rv_httpd_new(&http, &s->httpd, err);
    free(own.list);
    return rc;
}

static int open_all(struct life *l, rv_err **err)
{
    struct srv_server *s = &l->s;

    int rc = srv_watch_new(s->opts, &s->watch, err);
    if (rc == 0)
        rc = srv_openapi_make(&s->openapi, err);
    if (rc == 0)
        rc = rv_auth_new(&s->opts->identity, srv_now_us(), &s->auth, err);
    if (rc == 0)
        rc = srv_hands_new(s, &s->hands, err);
    if (rc == 0)
        rc = make_httpd(s, err);
    if (rc == 0)
        rc = hear(l, err); /* a wrong address is told before anything else happens */
    const struct rv_app_streams_opts streams = {.app = &s->app, .kept_us = s->opts->kept_us};
    rv_owner_make_name(s->owner);
    if (rc == 0)
        rc = rv_app_streams_new(&streams, &s->streams, err);
    if (rc == 0)
        rc = srv_follows_new(s, &s->follows, err);
    if (rc == 0)
        rc = srv_rejoins_new(s, &s->rejoins, err);
    if (rc == 0)
        rc = srv_worker_new(s, on_worker_fallen, &l->worker, err);
    if (rc == 0)
        rc = srv_mcps_new(s, &s->mcps, err);
    if (rc == 0)
        rc = srv_turns_new(s, &s->turns, err);
    return rc < 0 ? rc : srv_worker_start(l->worker, err);
}

static void close_all(struct life *l, int rc)
{
    struct srv_server *s = &l->s;

    if (l->has_loop && rc < 0) { /* it never ran */
        uv_close((uv_handle_t *)&l->grace, NULL);
        for (size_t i = 0; i < RV_COUNT(s->signals); i++)
            if (s->signals[i].loop)
                uv_close((uv_handle_t *)&s->signals[i], NULL);
        if (s->rejoins)
            srv_rejoins_stop(s->rejoins);
        srv_rejoins_free(s->rejoins);
        if (s->mcps)
            srv_mcps_stop(s->mcps);
        srv_mcps_free(s->mcps);
        if (s->turns)
            srv_turns_drain(s->turns);
        srv_turns_free(s->turns);
        if (s->follows)
            srv_follows_stop(s->follows);
        srv_follows_free(s->follows);
        srv_loop_close(&s->server_loop);
    }
    rv_httpd_free(s->httpd);
    atomic_store(&s->is_over, true);
    srv_hands_free(s->hands);
    if (l->has_loop) {
        srv_loop_read(&s->server_loop);
        uv_run(&s->loop, UV_RUN_DEFAULT);
        RV_IGNORE(uv_loop_close(&s->loop), "all handles are closed");
    }
    rv_auth_free(s->auth);
    srv_document_free(s->openapi);
    srv_handles_close(s);
}

/* Before anything is made. */
static int check_opts(const struct rv_server_opts *o, rv_err **err)
{
    if (o->app->no_store)
        return RV_FAIL(err, RV_E_INVALID, "a server needs a store: leave --no-store out");
    int rc = rv_app_check_folder(o->pipelines, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "--pipelines");
    rc = rv_app_check_folder(o->scripts, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "--scripts");
    rc = o->model ? rv_chat_check_model(o->model, o->script != NULL, err) : 0;
    if (rc < 0)
        return RV_WRAP(err, rc, "--model");
    rc = o->webhook ? srv_webhook_check(o->webhook, o->webhook_secret, err) : 0;
    return rc < 0 ? RV_WRAP(err, rc, "--webhook %s", o->webhook) : 0;
}

int rv_server_run(const struct rv_server_opts *opts, int64_t *n_left, rv_err **err)
{
    for (size_t i = 0; i < srv_n_routes; i++)
        assert(!srv_routes[i].takes || srv_body_is_known(srv_routes[i].takes));
    struct life *l = calloc(1, sizeof *l);
    rv_err *worker_err = NULL;

    *n_left = 0;
    if (!l)
        return RV_FAIL(err, RV_E_NOMEM, "make a server");
    int bad = check_opts(opts, err);
    if (bad < 0) {
        free(l);
        return bad;
    }
    l->s.opts = opts;
    l->s.app = *opts->app;
    l->s.app.scope = (struct rv_store_scope){NULL, NULL};
    l->s.app.keeps_log_level = true;
    l->s.app.health = &l->s.health;
    if (!l->s.app.client)
        l->s.app.client = "api";
    pthread_mutex_init(&l->s.handles_lock, NULL);
    int rc = open_handles(l, err);
    if (rc == 0)
        rc = open_all(l, err);
    if (rc == 0) {
        if (opts->on_ready)
            opts->on_ready(opts->self, l->url);
        RV_LOG(l->s.app.log, INFO, "server.start", RV_F_TEXT("url", l->url), RV_F_TEXT("owner", l->s.owner));
        uv_run(&l->s.loop, UV_RUN_DEFAULT);
    }
    close_all(l, rc);
    int worker_rc = srv_worker_join(l->worker, n_left, &worker_err);
    srv_loop_read(&l->s.server_loop);
    if (*n_left == 0)
        rv_app_streams_free(l->s.streams);
    if (*n_left == 0)
        srv_watch_free(l->s.watch);
    if (rc == 0 && worker_rc < 0) {
        rc = worker_rc;
        rv_err_pass(err, worker_err);
        worker_err = NULL;
    }
    rv_err_free(worker_err);
    RV_LOG(opts->app->log, INFO, "server.stop", RV_F_TEXT("url", l->url), RV_F_I64("left", *n_left));
    free(l);
    return rc;
}
