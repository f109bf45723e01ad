/* Connections to servers: opened when they are needed, closed when they are idle, opened again after they ended. */
#include "coreengine/tools/mcp/mcp.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/base/loop.h"
#include "coreengine/tools/mcp/mcptools_internal.h"

#define IDLE_US        (5 * RV_US_PER_MIN)  /* without a call: then the connection is closed */
#define BACKOFF_US     (100 * RV_US_PER_MS) /* before a server that ended is started again: doubled each time */
#define MAX_BACKOFF_US (10 * RV_US_PER_S)   /* ten seconds between two starts: one that ends at once costs little */
#define END_US         (10 * RV_US_PER_S)   /* for all servers to end: their graces and some to spare */
#define MAX_TURNS      10 /* of the loop: handles that were closed are gone after one or two; more is a fault of ours */

struct mcp_connection {
    rv_mcp_pool *pool;
    const struct rv_mcp_server_config *server;
    rv_mcp_client *client; /* NULL: none; owned */
    struct rv_mcp_link link;
    struct rv_mcp_call *calls; /* under way, in no order */
    enum rv_mcp_era era;       /* as it was found out */
    int64_t open_at_us;        /* not before; then the link is opened */
    int64_t idle_at_us;
    int n_failed; /* connections that ended without a call that succeeded */
    bool is_pumping, is_broken;
    rv_err *why; /* it broke; owned */
};
struct rv_mcp_pool {
    uv_loop_t loop;
    uv_timer_t timer;
    struct rv_mcp_outer *outer;         /* NULL: it runs by rv_mcp_pool_wait(); owned */
    pthread_t thread;                   /* that attached it */
    struct mcp_connection *connections; /* owned */
    const struct rv_mcp_server_config *servers;
    size_t n_servers;
    struct rv_mcp_http_transport http;
    rv_mcp_lists *kept;
    rv_log *log;
    int n_links;   /* that are not closed yet */
    bool is_ended; /* frees itself when they are */
};

static void pump(struct mcp_connection *c);
static void set_timer(rv_mcp_pool *p);

static int64_t pool_now_us(const rv_mcp_pool *p)
{
    (void)p;
    return (int64_t)(uv_hrtime() / 1000);
}

/* --- links --- */

static void on_link_closed(void *arg)
{
    rv_mcp_pool *p = arg;

    p->n_links--;
}

/* rc and err, which is taken, as a function of the client gave them. */
static void note(struct mcp_connection *c, int rc, rv_err *err)
{
    if (rc < 0 && !c->is_broken) {
        c->is_broken = true;
        c->why = err;
    } else {
        rv_err_free(err);
    }
}

static void on_message(void *self, rv_str json)
{
    struct mcp_connection *c = self;
    rv_err *err = NULL;

    if (!c->client)
        return;
    int rc = rv_mcp_client_on_message(c->client, json, &err);
    note(c, rc, err);
    pump(c);
}

static void on_failed(void *self, int64_t id, const struct rv_mcp_failure *failure)
{
    struct mcp_connection *c = self;
    rv_err *err = NULL;

    if (!c->client)
        return;
    int rc = rv_mcp_client_on_failure(c->client, id, failure, pool_now_us(c->pool), &err);
    note(c, rc, err);
    pump(c);
}

static void on_noise(void *self, bool is_error_output, rv_str line)
{
    struct mcp_connection *c = self;
    bool is_text = rv_utf8_valid(line, NULL);

    if (is_error_output)
        RV_LOG(c->pool->log, DEBUG, "mcp.stderr", RV_F_TEXT("server", c->server->name),
               RV_F_STR("line", is_text ? line : RV_STR_LIT("(not UTF-8)")));
    else
        RV_LOG(c->pool->log, WARN, "mcp.not_a_message", RV_F_TEXT("server", c->server->name),
               RV_F_STR("line", is_text ? line : RV_STR_LIT("(not UTF-8)")));
}

/* Roots may have gone since the client was made, which is told without them: such a server is not started. */
static int check_roots(const struct rv_mcp_server_config *server, rv_err **err)
{
    json_object *roots = NULL;
    int rc = server->roots.is_set ? mcptools_mcp_roots(server, &roots, err) : 0;

    json_object_put(roots);
    return rc;
}

static int open_link(struct mcp_connection *c, rv_err **err)
{
    rv_mcp_pool *p = c->pool;
    const struct rv_mcp_link_user user = {on_message, on_failed, on_noise, c};

    int rc = check_roots(c->server, err);
    if (rc < 0)
        return rc;
    if (c->server->command.is_set) {
        const struct rv_mcp_stdio how = {.loop = &p->loop, .server = c->server, .user = user};
        return mcptools_mcp_stdio_open(&how, &c->link, err);
    }
    if (!p->http.open)
        return RV_FAIL(err, RV_E_NOT_FOUND, "MCP server \"%s\": servers over HTTP cannot be reached from here",
                       c->server->name);
    return p->http.open(p->http.self, c->server, &p->loop, &user, &c->link, err);
}

/* The client is told why, and ends all asks with it. */
static void fail_client(struct mcp_connection *c, const char *text)
{
    const struct rv_mcp_failure f = {
        .fault = RV_MCP_FAULT_NO_CONNECTION, .text = text[0] ? text : "no memory", .is_unsent = true};
    rv_err *err = NULL;

    int rc = rv_mcp_client_on_failure(c->client, 0, &f, pool_now_us(c->pool), &err);
    note(c, rc, err);
}

static void try_open(struct mcp_connection *c)
{
    rv_buf text = RV_BUF_INIT(2048);
    rv_err *err = NULL;

    if (c->link.ops || pool_now_us(c->pool) < c->open_at_us)
        return;
    if (open_link(c, &err) == 0) {
        c->pool->n_links++;
        RV_LOG(c->pool->log, DEBUG, "mcp.open", RV_F_TEXT("server", c->server->name),
               RV_F_TEXT("transport", c->link.ops->name));
        return;
    }
    rv_err_write_chain(err, &text);
    fail_client(c, text.len ? rv_buf_cstr(&text) : "no memory");
    rv_buf_fini(&text);
    rv_err_free(err);
}

/* --- a connection --- */

static int64_t backoff(int n_failed)
{
    int64_t us = BACKOFF_US;

    for (int i = 1; i < n_failed && us < MAX_BACKOFF_US; i++)
        us *= 2;
    return n_failed == 0 ? 0 : us < MAX_BACKOFF_US ? us : MAX_BACKOFF_US;
}

static void close_connection(struct mcp_connection *c)
{
    rv_mcp_link_close(&c->link, on_link_closed, c->pool);
    rv_mcp_client_free(c->client);
    c->client = NULL;
    c->is_broken = false;
    rv_err_free(c->why);
    c->why = NULL;
}

static int begin(struct mcp_connection *c, rv_err **err)
{
    json_object *roots = NULL;
    int rc = c->server->roots.is_set
                 ? mcptools_mcp_roots(
                       c->server, &roots,
                       RV_CODE_ONLY("open_link() reports a root that is missing; want of memory is told below"))
                 : 0;
    const struct rv_mcp_client_opts opts = {.server = c->server->name,
                                            .era = c->era,
                                            .elicits = c->server->elicitation,
                                            .max_samples = rv_mcp_samples(c->server) ? c->server->max_samplings : 0,
                                            .roots = roots,
                                            .is_http = !c->server->command.is_set,
                                            .handshake_us = c->server->timeout_ms * RV_US_PER_MS};

    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for connections to MCP servers");
    /* a root that is not there: open_link() says so */
    rc = rv_mcp_client_new(&opts, pool_now_us(c->pool), &c->client, err);
    json_object_put(roots);
    return rc;
}

static struct rv_mcp_call *call_of(const struct mcp_connection *c, int64_t ask)
{
    struct rv_mcp_call *call = c->calls;

    while (call && call->ask != ask)
        call = call->next;
    return call;
}

static void unlink_call(struct rv_mcp_call *call)
{
    struct rv_mcp_call **at = &call->connection->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    call->next = NULL;
    call->connection = NULL;
}

static void send_out(struct mcp_connection *c, const struct rv_mcp_send *m)
{
    rv_err *err = NULL;

    if (!c->link.ops)
        return;
    int rc = rv_mcp_link_send(&c->link, m, &err);
    if (rc < 0 && m->id) { /* a request that is not on its way ends */
        const struct rv_mcp_failure f = {.fault = RV_MCP_FAULT_LOCAL, .text = rv_err_text(err), .is_unsent = true};
        rv_err *why = NULL;
        rc = rv_mcp_client_on_failure(c->client, m->id, &f, pool_now_us(c->pool), &why);
        note(c, rc, why);
    } else if (rc == RV_E_NOMEM) { /* the server would wait for it until its time is over */
        note(c, rc, err);
        err = NULL;
    }
    rv_err_free(err);
}

static void sampled(struct mcp_connection *c, int64_t ask, int64_t sample, json_object *result, const char *why)
{
    rv_err *err = NULL;

    if (!c->client)
        return;
    int rc = rv_mcp_client_answer_sample(c->client, ask, sample, result, why, &err);
    note(c, rc, err);
}

static void tell_sample(struct mcp_connection *c, const struct rv_mcp_out *out)
{
    struct rv_mcp_call *call = call_of(c, out->ask);

    if (call && call->sample)
        call->sample(call, out);
    else
        sampled(c, out->ask, out->id, NULL, "no run is under way that asks a model");
}

static void tell(struct mcp_connection *c, const struct rv_mcp_out *out)
{
    struct rv_mcp_call *call;

    switch (out->kind) {
    case RV_MCP_OUT_SEND:
        send_out(c, &out->send);
        return;
    case RV_MCP_OUT_FORGET:
        if (c->link.ops)
            rv_mcp_link_cancel(&c->link, out->id);
        return;
    case RV_MCP_OUT_READY:
        c->era = rv_mcp_client_era(c->client);
        RV_LOG(c->pool->log, DEBUG, "mcp.ready", RV_F_TEXT("server", c->server->name),
               RV_F_TEXT("version", rv_mcp_version_text(rv_mcp_client_version(c->client))));
        return;
    case RV_MCP_OUT_DONE:
        if (out->result)
            c->n_failed = 0;
        call = call_of(c, out->ask);
        if (call) {
            unlink_call(call);
            call->done(call, out);
        }
        return;
    case RV_MCP_OUT_PROGRESS:
        call = call_of(c, out->ask);
        if (call && call->progress)
            call->progress(call, out);
        return;
    case RV_MCP_OUT_SAMPLE:
        tell_sample(c, out);
        return;
    case RV_MCP_OUT_CHANGED:
        RV_LOG(c->pool->log, INFO, "mcp.tools_changed", RV_F_TEXT("server", c->server->name));
        if (c->pool->kept)
            mcptools_lists_drop(c->pool->kept, c->server);
        return;
    case RV_MCP_OUT_NOTE:
        RV_LOG(c->pool->log, WARN, "mcp.note", RV_F_TEXT("server", c->server->name), RV_F_TEXT("text", out->text));
        return;
    case RV_MCP_OUT_DEAD:
        RV_LOG(c->pool->log, WARN, "mcp.ended", RV_F_TEXT("server", c->server->name),
               RV_F_TEXT("code", out->trouble.code), RV_F_TEXT("text", out->trouble.text));
        return;
    }
}

/* The client failed, and tells nothing more. why: its error; NULL: memory was short. */
static void give_up_all(struct mcp_connection *c, const rv_err *why)
{
    rv_buf text = RV_BUF_INIT(2048);
    struct rv_mcp_out out = {.kind = RV_MCP_OUT_DONE, .trouble = {.code = rv_mcp_fault_code(RV_MCP_FAULT_LOCAL)}};

    rv_err_write_chain(why, &text);
    out.trouble.text = text.len ? rv_buf_cstr(&text) : "no memory for a connection to an MCP server";
    while (c->calls) {
        struct rv_mcp_call *call = c->calls;
        unlink_call(call);
        call->done(call, &out);
    }
    rv_buf_fini(&text);
}

/* Does all that the client has to be done. A callback may ask or cancel: what follows is done here, too. */
static void pump(struct mcp_connection *c)
{
    const struct rv_mcp_out *out;

    if (c->is_pumping || !c->client)
        return;
    c->is_pumping = true;
    try_open(c);
    while ((c->link.ops || rv_mcp_client_is_dead(c->client)) && (out = rv_mcp_client_next(c->client)) != NULL)
        tell(c, out);
    c->idle_at_us = c->calls ? RV_NEVER : pool_now_us(c->pool) + IDLE_US;
    bool is_over = rv_mcp_client_is_dead(c->client) || c->is_broken;
    if (is_over) {
        c->n_failed++;
        c->open_at_us = pool_now_us(c->pool) + backoff(c->n_failed);
        rv_err *why = c->why;
        c->why = NULL;
        close_connection(c);
        give_up_all(c, why); /* none, unless the client failed; they may begin again at once */
        rv_err_free(why);
    }
    c->is_pumping = false;
    if (c->client && is_over)
        pump(c);
    set_timer(c->pool);
}

static void tick(struct mcp_connection *c, int64_t now_us)
{
    rv_err *err = NULL;

    if (!c->client)
        return;
    if (now_us >= c->idle_at_us && !c->calls) {
        close_connection(c);
        return;
    }
    int rc = rv_mcp_client_tick(c->client, now_us, &err);
    note(c, rc, err);
    pump(c);
}

static void on_timer(uv_timer_t *t)
{
    rv_mcp_pool *p = t->data;
    int64_t now_us = pool_now_us(p);

    for (size_t i = 0; i < p->n_servers; i++)
        tick(&p->connections[i], now_us);
    set_timer(p);
}

static void set_timer(rv_mcp_pool *p)
{
    int64_t due = RV_NEVER, now_us = pool_now_us(p);

    for (size_t i = 0; i < p->n_servers && !p->is_ended; i++) {
        const struct mcp_connection *c = &p->connections[i];
        if (!c->client)
            continue;
        int64_t of_client = rv_mcp_client_due_us(c->client);
        due = of_client < due ? of_client : due;
        if (!c->link.ops)
            due = c->open_at_us < due ? c->open_at_us : due;
        else if (!c->calls)
            due = c->idle_at_us < due ? c->idle_at_us : due;
    }
    if (due == RV_NEVER)
        uv_timer_stop(&p->timer);
    else
        uv_timer_start(&p->timer, on_timer, due <= now_us ? 0 : (uint64_t)((due - now_us + 999) / 1000), 0);
}

/* --- calls --- */

int rv_mcp_pool_ask(rv_mcp_pool *p, const struct rv_mcp_server_config *server, const struct rv_mcp_ask *ask,
                    struct rv_mcp_call *call, rv_err **err)
{
    struct mcp_connection *c = &p->connections[server - p->servers];

    assert(!call->connection);
    int rc = c->client ? 0 : begin(c, err);
    if (rc == 0)
        rc = rv_mcp_client_ask(c->client, ask, pool_now_us(p), &call->ask, err);
    if (rc < 0)
        return rc;
    call->connection = c;
    call->next = c->calls;
    c->calls = call;
    c->idle_at_us = RV_NEVER;
    /* no callback from here: the loop does the rest */
    uv_timer_start(&p->timer, on_timer, 0, 0);
    if (p->outer)
        mcptools_mcp_outer_wake(p->outer);
    return 0;
}

void rv_mcp_pool_answer_sample(struct rv_mcp_call *call, int64_t sample, json_object *result, const char *why)
{
    struct mcp_connection *c = call->connection;

    if (!c)
        return;
    sampled(c, call->ask, sample, result, why);
    uv_timer_start(&c->pool->timer, on_timer, 0, 0);
    if (c->pool->outer)
        mcptools_mcp_outer_wake(c->pool->outer);
}

void rv_mcp_pool_cancel(struct rv_mcp_call *call)
{
    struct mcp_connection *c = call->connection;
    rv_err *err = NULL;

    if (!c)
        return;
    unlink_call(call);
    int rc = c->client ? rv_mcp_client_give_up(c->client, call->ask, &err) : 0;
    note(c, rc, err);
    uv_timer_start(&c->pool->timer, on_timer, 0, 0);
    if (c->pool->outer)
        mcptools_mcp_outer_wake(c->pool->outer);
}

void rv_mcp_pool_wait(rv_mcp_pool *p, int64_t max_us)
{
    uint64_t max_ms = max_us > 0 ? (uint64_t)((max_us + 999) / 1000) : 0;

    assert(!p->outer);
    if (!uv_is_active((uv_handle_t *)&p->timer) || uv_timer_get_due_in(&p->timer) > max_ms)
        uv_timer_start(&p->timer, on_timer, max_ms, 0);
    uv_run(&p->loop, UV_RUN_ONCE);
}

const rv_mcp_client *rv_mcp_pool_client(const rv_mcp_pool *p, const struct rv_mcp_server_config *server)
{
    return p->connections[server - p->servers].client;
}

/* --- the whole --- */

int rv_mcp_pool_new(const struct rv_mcp_pool_opts *opts, rv_mcp_pool **out, rv_err **err)
{
    rv_mcp_pool *p = calloc(1, sizeof *p);

    if (p)
        p->connections = calloc(opts->n_servers + 1, sizeof *p->connections);
    if (!p || !p->connections) {
        free(p);
        return RV_FAIL(err, RV_E_NOMEM, "no memory for connections to MCP servers");
    }
    int rc = rv_loop_init(&p->loop, err);
    if (rc < 0) {
        free(p->connections);
        free(p);
        return RV_WRAP(err, rc, "connections to MCP servers");
    }
    uv_timer_init(&p->loop, &p->timer); /* does not fail */
    p->timer.data = p;
    p->servers = opts->servers;
    p->n_servers = opts->n_servers;
    p->http = opts->http;
    p->kept = opts->kept;
    p->log = opts->log;
    for (size_t i = 0; i < p->n_servers; i++)
        p->connections[i] = (struct mcp_connection){.pool = p, .server = &opts->servers[i]};
    *out = p;
    return 0;
}

static void destroy(rv_mcp_pool *p)
{
    mcptools_mcp_outer_free(p->outer);
    uv_close((uv_handle_t *)&p->timer, NULL);
    int rc = uv_loop_close(&p->loop);
    for (int i = 1; i < MAX_TURNS && rc == UV_EBUSY; i++) {
        uv_run(&p->loop, UV_RUN_NOWAIT);
        rc = uv_loop_close(&p->loop);
    }
    if (rc == UV_EBUSY) { /* a handle, such as that of a server that does not end, points into it */
        RV_LOG(p->log, ERROR, "mcp.not_closed", RV_F_I64("left", p->n_links));
        return;
    }
    free(p->connections);
    free(p);
}

static bool turn(void *self)
{
    rv_mcp_pool *p = self;
    bool has_calls = false;

    if (p->is_ended && p->n_links == 0) {
        destroy(p);
        return false;
    }
    for (size_t i = 0; i < p->n_servers; i++)
        has_calls = has_calls || p->connections[i].calls;
    return has_calls || p->is_ended;
}

/* What was cancelled a moment ago: the servers are told before they are left. */
static void say_the_rest(struct mcp_connection *c)
{
    const struct rv_mcp_out *out;

    while (c->client && c->link.ops && (out = rv_mcp_client_next(c->client)) != NULL)
        if (out->kind == RV_MCP_OUT_SEND)
            send_out(c, &out->send);
}

int rv_mcp_pool_attach(rv_mcp_pool *p, struct uv_loop_s *loop, rv_err **err)
{
    if (p->outer && mcptools_mcp_outer_loop(p->outer) == loop)
        return 0;
    rv_mcp_pool_detach(p);
    p->thread = pthread_self();
    return mcptools_mcp_outer_new(&p->loop, loop, turn, p, &p->outer, err);
}

void rv_mcp_pool_detach(rv_mcp_pool *p)
{
    mcptools_mcp_outer_free(p->outer);
    p->outer = NULL;
}

void rv_mcp_pool_free(rv_mcp_pool *p)
{
    if (!p)
        return;
    assert(!p->outer ||
           pthread_equal(p->thread, pthread_self())); /* handles of another thread's loop would be closed */
    for (size_t i = 0; i < p->n_servers; i++) {
        assert(!p->connections[i].calls);
        say_the_rest(&p->connections[i]);
        close_connection(&p->connections[i]);
    }
    uv_timer_stop(&p->timer);
    p->is_ended = true;
    if (p->outer && p->n_links > 0) {
        mcptools_mcp_outer_wake(p->outer);
        return;
    }
    int64_t until_us = pool_now_us(p) + END_US;
    while (p->n_links > 0 && pool_now_us(p) < until_us)
        uv_run(&p->loop, UV_RUN_ONCE);
    destroy(p);
}
