/* A request, from its head on: its route, who asks, and the work on a thread of hands.c. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/body_internal.h"
#include "coreengine/server/hands_internal.h"
#include "coreengine/server/page_internal.h"

#define MAX_STRANGER ((size_t)16 << 10) /* bytes of a body without a key: a login is shorter */

static void put_field(void *self, const char *name, const char *value)
{
    srv_call_field(self, name, value);
}

static bool next_header(void *self, const char *name, size_t i, rv_str *out)
{
    const struct rv_httpd_request *req = self;
    size_t n = 0;

    for (size_t k = 0; k < req->n_fields; k++)
        if (rv_str_is(req->fields[k].name, name) && n++ == i) {
            *out = req->fields[k].value;
            return true;
        }
    return false;
}

struct rv_caller srv_caller_of(const struct rv_httpd_request *req)
{
    return (struct rv_caller){.header = next_header,
                              .self = (void *)(uintptr_t)req,
                              .peer = req->peer,
                              .method = rv_method_text(req->method),
                              .is_tls = req->is_tls};
}

/* --- the work, on a thread of hands.c --- */

static int judge(struct srv_call *c, rv_err **err)
{
    struct srv_server *s = c->server;
    const struct rv_caller caller = srv_caller_of(c->req);
    int64_t now_us = srv_now_us();

    int rc = rv_auth_identify(s->auth, &(struct rv_auth_with){c->store, now_us, s->app.log}, &caller, &c->who,
                              c->refusal, err);
    if (rc == 0)
        rc = rv_auth_note_request(s->auth, &c->who, now_us, c->refusal);
    if (rc == 0 && c->route->scope != SRV_KNOWN)
        rc = rv_identity_needs(&c->who, (enum rv_api_scope)c->route->scope, c->refusal);
    c->is_refused = rc == RV_E_DENIED;
    if (rc == 0)
        atomic_store(&s->is_locked, c->who.by != RV_BY_NOTHING);
    return rc;
}

static int read_body(struct srv_call *c, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_REQUEST_MAX_BYTES, .max_depth = RV_REQUEST_MAX_DEPTH, .what = "the body"};

    if (!c->route->takes || c->route->takes[0] == '-') /* the handler reads it */
        return 0;
    if (c->req->body.len == 0) {
        c->body = json_object_new_object();
        return c->body ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the body");
    }
    int rc = rv_json_parse(rv_utf8_unmark(c->req->body), &opts, &c->body, err);
    if (rc == 0 && !json_object_is_type(c->body, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "the body must be a JSON object, not of type %s", rv_json_type_text(c->body));
    return rc == 0 ? srv_body_check(c->route->takes, c->body, err) : rc;
}

/* An operator may say whose rows are meant, "" for those of none; a user may say no more than their own name. */
static int narrow(struct srv_call *c, rv_err **err)
{
    rv_str user;

    if (!srv_route_has_user(c->route) || !srv_call_query(c, "user", &user))
        return 0;
    if (!(c->user = rv_str_dup(user)))
        return RV_FAIL(err, RV_E_NOMEM, "read the parameter user");
    if (!c->app.scope.user)
        c->app.scope.user = c->user;
    else if (strcmp(c->app.scope.user, c->user) != 0)
        return RV_FAIL(err, RV_E_DENIED, "the parameter \"user\" names another user; leave it out for your own rows");
    return 0;
}

/* A route that tells whether the store can be reached, too. */
static int do_ask(struct srv_call *c, rv_err **err)
{
    rv_err *why = NULL;
    int rc = srv_handles_take(c->server, &c->handles, &why);

    if (rc < 0)
        RV_LOG(c->server->app.log, ERROR, "store.unreachable", RV_F_ERR("error", why));
    rv_err_free(why);
    c->store = rc == 0 ? c->handles->sources.store : NULL;
    rc = c->route->work(c, err);
    if (c->handles)
        srv_handles_give(c->server, c->handles);
    c->handles = NULL;
    c->store = NULL;
    return rc;
}

/* Asked while another server is waited for. */
static bool is_over(const void *self)
{
    struct srv_call *c = (void *)(uintptr_t)self;

    c->is_crowded = !srv_hands_wait(c->server->hands, c);
    return c->is_crowded || atomic_load(&c->server->is_over);
}

static int do_work(struct srv_call *c, rv_err **err)
{
    if (c->route->scope == SRV_ASKS)
        return do_ask(c, err);
    int rc = srv_handles_take(c->server, &c->handles, err);
    if (rc < 0)
        return rc;
    c->store = c->handles->sources.store;
    c->app = c->server->app;
    c->app.until = (struct rv_mcp_until){is_over, c};
    if (c->route->scope != SRV_LOGIN) {
        rc = judge(c, err);
        c->app.scope = rv_identity_scope(&c->who);
    }
    if (rc == 0)
        rc = srv_route_check_query(c->route, c->req, err);
    if (rc == 0)
        rc = narrow(c, err);
    if (rc == 0)
        rc = read_body(c, err);
    if (rc == 0)
        rc = c->route->work(c, err);
    srv_handles_give(c->server, c->handles);
    c->handles = NULL;
    c->store = NULL;
    return rc;
}

void srv_call_work(struct srv_call *c)
{
    c->rc = do_work(c, &c->err);
    if (c->rc < 0 && c->is_crowded) {
        rv_err_free(c->err);
        c->err = NULL;
        c->rc = RV_FAIL(&c->err, RV_E_UNAVAILABLE, "too many requests wait for servers of tools or of vectors");
    }
}

static void after_work(struct srv_message *worked)
{
    struct srv_call *c = (struct srv_call *)(void *)((char *)worked - offsetof(struct srv_call, worked));

    if (rv_httpd_is_gone(c->x)) {
        rv_httpd_drop(c->x);
        srv_call_free(c);
    } else if (c->rc == 0 && !c->is_refused && c->route->begin && c->status == 0) {
        c->route->begin(c);
    } else {
        srv_call_reply(c);
    }
}

/* --- what the HTTP server calls --- */

static struct srv_call *new_call(struct srv_server *s, rv_httpd_exchange *x, const struct srv_route *route)
{
    struct srv_call *c = calloc(1, sizeof *c);

    if (!c || !(c->refusal = calloc(1, sizeof *c->refusal))) {
        free(c);
        return NULL;
    }
    c->server = s;
    c->x = x;
    c->route = route;
    c->req = rv_httpd_exchange_request(x);
    rv_buf_init(&c->out, SRV_MAX_ANSWER);
    return c;
}

static void refuse(struct srv_call *c, unsigned allowed)
{
    rv_buf methods = RV_BUF_INIT(256);

    for (int m = 0; m < RV_N_METHODS; m++)
        if (allowed & 1u << m)
            rv_buf_printf(&methods, "%s%s", methods.len > 0 ? ", " : "", rv_method_text((enum rv_method)m));
    if (allowed) {
        srv_call_field_buf(c, "Allow", &methods);
        srv_call_fault(c, 405, "method_not_allowed",
                       "this path does not have this method; the header Allow says which");
    } else {
        srv_call_fault(c, 404, "not_found", "there is no such path; GET /openapi.json lists all of them");
    }
    rv_buf_fini(&methods);
    srv_call_reply(c);
}

static bool has_field(const struct rv_httpd_request *req, const char *name)
{
    rv_str value;

    return next_header((void *)(uintptr_t)req, name, 0, &value);
}

/* The server asks for a key, as far as it was seen last, and the request has nothing that could be one. */
static bool is_stranger(struct srv_server *s, const struct rv_httpd_request *req)
{
    return !rv_auth_is_open(s->auth, atomic_load(&s->is_locked)) && !has_field(req, "authorization") &&
           !has_field(req, "x-api-key") && !has_field(req, "cookie");
}

static bool has_body(const struct rv_httpd_request *req)
{
    rv_str length;

    return has_field(req, "transfer-encoding") ||
           (rv_httpd_find_field(req, "content-length", &length, NULL) && !rv_str_is(length, "0"));
}

/* A body that would be refused afterwards is not read: many of them could fill the memory for the bodies of others. A
 * request without a body is judged as any other, which tells the server, too, when it is open again. */
static void refuse_unread(struct srv_server *s, rv_httpd_exchange *x, const struct srv_route *route, unsigned allowed)
{
    const struct rv_caller caller = srv_caller_of(rv_httpd_exchange_request(x));
    const struct rv_credentials none = {.kind = RV_CREDENTIAL_NONE};
    const struct rv_evidence evidence = {.credentials = &none, .has_keys = true, .now_us = srv_now_us()};
    struct srv_call *c = new_call(s, x, route);

    if (!c) {
        rv_httpd_drop(x);
        return;
    }
    RV_IGNORE(rv_auth_put_cors(s->auth, &caller, put_field, c), "it is not a preflight, which is OPTIONS");
    if (!route) {
        refuse(c, allowed);
        return;
    }
    c->rc = rv_auth_verify(s->auth, &caller, &evidence, &c->who, c->refusal, &c->err);
    c->is_refused = c->rc == RV_E_DENIED;
    RV_LOG(s->app.log, WARN, "identity.refused", RV_F_I64("status", c->refusal->status),
           RV_F_TEXT("code", c->refusal->code), RV_F_TEXT("reason", c->refusal->reason), RV_F_TEXT("key_id", ""),
           RV_F_TEXT("peer", caller.peer));
    srv_call_reply(c);
}

static void on_head(void *self, rv_httpd_exchange *x, struct rv_httpd_plan *plan)
{
    struct srv_server *s = self;
    const struct rv_httpd_request *req = rv_httpd_exchange_request(x);
    rv_str args[SRV_MAX_ARGS];
    unsigned allowed = 0;
    size_t n = 0;
    const struct srv_route *route = srv_route_find(req->method, req->segments, req->n_segments, args, &n, &allowed);

    if (route) {
        plan->route = route->path;
        if (route->max_body)
            plan->max_body = route->max_body;
    }
    plan->data = n == 0 ? (void *)(uintptr_t)route : NULL; /* so that it is not looked for again */
    if (!has_body(req) || !is_stranger(s, req))
        return;
    bool is_for_all = req->method == RV_METHOD_OPTIONS ||
                      (route && (route->scope == SRV_OPEN || route->scope == SRV_ASKS || route->scope == SRV_LOGIN));
    plan->max_body = MAX_STRANGER;
    if (!is_for_all)
        refuse_unread(s, x, route, allowed);
}

static void on_request(void *self, rv_httpd_exchange *x)
{
    struct srv_server *s = self;
    const struct rv_httpd_request *req = rv_httpd_exchange_request(x);
    const struct rv_caller caller = srv_caller_of(req);
    rv_str args[SRV_MAX_ARGS];
    unsigned allowed = 0;
    size_t n = 0;
    const struct srv_route *route = req->data;
    if (!route)
        route = srv_route_find(req->method, req->segments, req->n_segments, args, &n, &allowed);
    struct srv_call *c = new_call(s, x, route);

    if (!c) {
        rv_httpd_drop(x);
        return;
    }
    if (rv_auth_put_cors(s->auth, &caller, put_field, c)) {
        c->status = 204;
        srv_call_reply(c);
        return;
    }
    if (!route) {
        refuse(c, allowed);
        return;
    }
    for (; c->n_args < n; c->n_args++)
        if (!(c->args[c->n_args] = rv_str_dup(args[c->n_args]))) {
            c->rc = RV_FAIL(&c->err, RV_E_NOMEM, "read the path of a request");
            srv_call_reply(c);
            return;
        }
    if (route->scope == SRV_OPEN) {
        c->rc = route->work(c, &c->err);
        srv_call_reply(c);
    } else if (atomic_load(&s->is_draining) && route->scope != SRV_ASKS) {
        c->is_refused = true;
        rv_refuse_drain(c->refusal, 5 * RV_US_PER_S);
        srv_call_reply(c);
    } else {
        c->worked.open = after_work;
        srv_hands_do(s->hands, c);
    }
}

static void on_refusal(void *self, const struct rv_httpd_refusal *why, rv_buf *body, const char **type)
{
    const struct rv_protocol_fault fault = {
        .status = why->status, .code = why->code, .detail = why->detail, .request_id = why->request_id};

    (void)self;
    *type = rv_protocol_fault_type(RV_FAMILY_PROBLEM);
    rv_protocol_fault_write(RV_FAMILY_PROBLEM, &fault, body);
}

static void on_access(void *self, const struct rv_httpd_access *a)
{
    const struct srv_server *s = self;

    srv_watch_request(s->watch, a);
    RV_LOG(s->opts->access, INFO, "http.request", RV_F_TEXT("method", a->method), RV_F_TEXT("route", a->route),
           RV_F_I64("status", a->status), RV_F_I64("took_us", a->took_us), RV_F_I64("bytes_in", (int64_t)a->bytes_in),
           RV_F_I64("bytes_out", (int64_t)a->bytes_out), RV_F_BOOL("cut", a->was_cut), RV_F_TEXT("peer", a->peer),
           RV_F_TEXT("request_id", a->request_id), RV_F_TEXT("run_id", a->run_id[0] ? a->run_id : NULL));
}

static bool is_proxy(void *self, const struct rv_address *peer)
{
    const struct srv_server *s = self;

    return rv_auth_has_proxy(s->auth, peer);
}

const struct rv_httpd_handler srv_handler = {.on_head = on_head,
                                             .on_request = on_request,
                                             .on_refusal = on_refusal,
                                             .on_access = on_access,
                                             .is_proxy = is_proxy};
