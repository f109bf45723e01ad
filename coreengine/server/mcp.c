/* /mcp: one message of a client a request. Legacy clients have a session, which `initialize` begins and DELETE ends;
 * requests of 2026-07-28 stand for themselves, and their headers repeat what their bodies say. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/server/mcp_internal.h"

#define JSON        "application/json"
#define MAX_DECODED 4096 /* bytes of a header's value in base64: half of RV_MCP_MAX_HEADER */

/* A call that goes on behind the handler. */
struct going {
    struct srv_mcp_session *session;
    int64_t call;
};

/* --- answers --- */

/* The status that goes with the error of a request that never became a call. */
static int status_of(int code, bool is_modern)
{
    if (code == 0 || (!is_modern && code != RV_MCP_INVALID_REQUEST))
        return 200;
    return code == RV_MCP_METHOD_NOT_FOUND ? 404 : 400;
}

static void set_body(struct srv_call *c, int status, rv_str body)
{
    c->status = status;
    c->type = JSON;
    rv_buf_clear(&c->out);
    rv_buf_add_str(&c->out, body);
}

static int refuse(struct srv_call *c, int status, json_object *id, int code, const char *text, rv_err **err)
{
    c->status = status;
    c->type = JSON;
    rv_buf_clear(&c->out);
    return rv_mcp_write_error(id, code, text, NULL, &c->out, err);
}

/* --- headers --- */

static bool names_type(const char *list, const char *type)
{
    return strcasestr(list, type) != NULL;
}

/* A client has to take both forms of an answer. */
static int accepts_both(const struct srv_call *c, bool *out, rv_err **err)
{
    char *accept;
    int rc = srv_call_dup_header(c, "accept", &accept, err);

    *out =
        !accept || names_type(accept, "*/*") || (names_type(accept, JSON) && names_type(accept, "text/event-stream"));
    free(accept);
    return rc;
}

static int sends_json(const struct srv_call *c, bool *out, rv_err **err)
{
    size_t n = sizeof JSON - 1;
    char *type = NULL;
    int rc = srv_call_dup_header(c, "content-type", &type, err);

    if (rc == 0)
        *out = type && strncasecmp(type, JSON, n) == 0 && (type[n] == '\0' || type[n] == ';' || type[n] == ' ');
    free(type);
    return rc;
}

/* "=?base64?...?=" stands for what it encodes; any other value is itself. False: it is malformed. */
static bool decode_value(rv_str value, rv_buf *out)
{
    static const char head[] = "=?base64?", tail[] = "?=";
    size_t nh = sizeof head - 1, nt = sizeof tail - 1;

    if (value.len < nh + nt || memcmp(value.ptr, head, nh) != 0 || memcmp(value.ptr + value.len - nt, tail, nt) != 0) {
        rv_buf_add_str(out, value);
        return out->rc == 0;
    }
    return rv_base64_read((rv_str){value.ptr + nh, value.len - nh - nt}, out) && out->rc == 0 &&
           rv_utf8_valid(rv_buf_str(out), NULL);
}

/* *rc: RV_E_NOMEM, when it cannot be told. */
static bool header_says(const struct srv_call *c, const char *name, rv_str want, int *rc)
{
    rv_buf text = RV_BUF_INIT(MAX_DECODED);
    size_t n = 0;
    rv_str value;
    bool yes = rv_httpd_find_field(c->req, name, &value, &n) && decode_value(value, &text) &&
               rv_str_eq(rv_buf_str(&text), want);

    *rc = text.rc == RV_E_NOMEM ? RV_E_NOMEM : *rc;
    rv_buf_fini(&text);
    return yes;
}

static bool is_of_task(const char *method)
{
    return strcmp(method, "tasks/get") == 0 || strcmp(method, "tasks/update") == 0 ||
           strcmp(method, "tasks/cancel") == 0;
}

/* The member of the parameters that Mcp-Name repeats; NULL: the method has none. */
static const char *name_key(const char *method)
{
    return strcmp(method, "resources/read") == 0                                     ? "uri"
           : strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0 ? "name"
           : is_of_task(method)                                                      ? "taskId"
                                                                                     : NULL;
}

/* Why the headers of a modern request do not fit its body; NULL: they do. *rc as header_says() has it. */
static const char *check_headers(const struct srv_call *c, const struct rv_mcp_message *m, int *rc)
{
    rv_str said =
        rv_json_str(rv_json_member(rv_json_get_obj(m->params, "_meta"), "io.modelcontextprotocol/protocolVersion"));
    const char *key = name_key(m->method);
    rv_str version;

    if (!rv_httpd_find_field(c->req, "mcp-protocol-version", &version, NULL))
        return "the header MCP-Protocol-Version is missing";
    if (m->kind == RV_MCP_REQUEST && said.len > 0 && !rv_str_eq(version, said))
        return "the header MCP-Protocol-Version is not the revision of the body";
    if (!header_says(c, "mcp-method", rv_str_of(m->method), rc))
        return "the header Mcp-Method is not the method of the body";
    if (key && json_object_is_type(rv_json_member(m->params, key), json_type_string) &&
        !header_says(c, "mcp-name", rv_json_member_str(m->params, key), rc))
        return "the header Mcp-Name is not the name of the body";
    return NULL;
}

/* --- who may do what --- */

static bool may(void *self, enum rv_app_mcp_right right)
{
    static const enum rv_api_scope scopes[] = {[RV_APP_MCP_RUNS] = RV_SCOPE_RUNS_WRITE,
                                               [RV_APP_MCP_CHAT] = RV_SCOPE_CHAT,
                                               [RV_APP_MCP_DATA] = RV_SCOPE_DATA_READ,
                                               [RV_APP_MCP_SESSIONS] = RV_SCOPE_SESSIONS_READ};
    RV_EACH_HAS_ROW(scopes, RV_N_APP_MCP_RIGHTS);
    struct srv_call *c = self;

    return rv_identity_needs(&c->who, scopes[right], c->refusal) == 0;
}

static bool param_header(void *self, const char *name, rv_buf *out)
{
    const struct srv_call *c = self;
    rv_str value;
    size_t n = 0;

    return rv_httpd_find_field(c->req, name, &value, &n) && decode_value(value, out);
}

static struct rv_app_mcp_at at_of(struct srv_call *c)
{
    return (struct rv_app_mcp_at){
        .app = &c->app, .sources = &c->handles->sources, .worker = c->server->worker_stop, .may = may, .self = c};
}

/* --- a message --- */

static void free_going(void *made)
{
    struct going *g = made;

    if (g->session)
        srv_mcp_stream_lost(g->session, g->call);
    free(g);
}

/* What is told of other calls goes into their streams. The answer of this request; NULL: it has none yet. */
static const struct rv_mcp_order *sort_out(struct srv_mcp_session *session, const struct rv_mcp_orders *out)
{
    const struct rv_mcp_order *own = NULL;

    for (size_t i = 0; i < out->n; i++)
        if (!srv_mcp_stream_add(session, &out->items[i]))
            own = &out->items[i];
    return own;
}

/* What the client is told at once, or the beginning of a stream. */
static int give(struct srv_call *c, struct srv_mcp_session *session, const struct rv_mcp_order *o, int64_t call,
                rv_err **err)
{
    struct going *g;

    if (o) {
        bool is_denied = c->refusal && c->refusal->status == 403 &&
                         (o->code == RV_MCP_INVALID_PARAMS || o->code == RV_MCP_RESOURCE_NOT_FOUND);
        c->is_refused = is_denied; /* it may exist, but not for this key */
        bool is_refused = !o->call || o->code == RV_MCP_HEADER_MISMATCH;
        set_body(c, !is_refused ? 200 : status_of(o->code, session->is_modern), rv_buf_str(&o->bytes));
        return 0;
    }
    g = calloc(1, sizeof *g);
    if (!g)
        return RV_FAIL(err, RV_E_NOMEM, "answer a client");
    g->call = call;
    int rc = srv_mcp_stream_new(session, g->call, err);
    if (rc < 0) {
        free(g);
        return rc;
    }
    g->session = session;
    c->made = g;
    c->free_made = free_going;
    return 0;
}

/* In a turn, which is given up while a query waits. *at->job: a call that other threads begin; NULL: none. */
static int perform(struct srv_call *c, struct srv_mcp_session *session, struct rv_app_mcp_at *at,
                   const struct rv_mcp_message *m, struct rv_mcp_orders *out, rv_err **err)
{
    rv_app_mcp_job **job = at->job;
    int rc = rv_app_mcp_receive(session->client, at, m, out, err);
    int64_t call = rv_app_mcp_last_call(session->client); /* of others there may be new ones afterwards */

    at->job = NULL;
    if (*job && (rc < 0 || rv_app_mcp_job_is_query(*job))) {
        if (rc == 0) {
            srv_mcp_session_leave(session);
            rv_app_mcp_job_do(*job, at);
            srv_mcp_session_enter(session);
        }
        int finished = rv_app_mcp_finish(session->client, at, *job, out, rc < 0 ? NULL : err);
        rc = rc < 0 ? rc : finished;
        *job = NULL;
    }
    pthread_mutex_lock(&session->lock);
    const struct rv_mcp_order *own = rc == 0 ? sort_out(session, out) : NULL;
    if (rc == 0 && m->kind != RV_MCP_REQUEST)
        c->status = 202;
    else if (rc == 0)
        rc = give(c, session, own, call, err);
    pthread_mutex_unlock(&session->lock);
    return rc;
}

/* The client's reference of the session is taken. */
static int take(struct srv_call *c, struct srv_mcp_session *session, const struct rv_mcp_message *m, rv_err **err)
{
    struct rv_app_mcp_at at = at_of(c);
    struct rv_mcp_orders out = {NULL, 0, 0};
    rv_app_mcp_job *job = NULL;
    char *trace = NULL;
    struct srv_trace caller = srv_watch_trace(c);
    int rc = srv_call_dup_header(c, "traceparent", &trace, err);

    at.trace = rv_trace_is_set(&caller.caller) ? trace : NULL;
    at.trusts_trace = caller.is_trusted;
    at.header = session->is_modern ? param_header : NULL;
    at.job = &job;
    srv_mcp_session_enter(session);
    if (rc == 0)
        rc = perform(c, session, &at, m, &out, err);
    srv_mcp_session_leave(session);
    if (job)
        srv_mcp_job_add(session, job);
    rv_mcp_orders_fini(&out);
    free(trace);
    if (!c->made)
        srv_mcp_session_unref(session);
    return rc;
}

/* --- legacy --- */

static int begin_session(struct srv_call *c, const struct rv_mcp_message *m, rv_err **err)
{
    struct srv_mcp_session *session = NULL;
    int rc = srv_mcp_session_new(c->server->mcps, c, true, &session, err);

    if (rc < 0)
        return rc;
    srv_call_field(c, "Mcp-Session-Id", session->id);
    if (c->out.rc < 0) { /* no client could ask for it */
        srv_mcp_session_end(session);
        srv_mcp_session_unref(session);
        return RV_FAIL(err, RV_E_NOMEM, "begin a session of MCP");
    }
    return take(c, session, m, err);
}

static struct srv_mcp_session *find_session(struct srv_call *c, json_object *id, int *rc, rv_err **err)
{
    char *given;
    *rc = srv_call_dup_header(c, "mcp-session-id", &given, err);
    if (*rc < 0)
        return NULL;
    struct srv_mcp_session *session = given ? srv_mcp_session_find(c->server->mcps, c, given) : NULL;

    if (!given)
        *rc = refuse(c, 400, id, RV_MCP_INVALID_REQUEST, "the header Mcp-Session-Id is missing: initialize first", err);
    else if (!session)
        *rc = refuse(c, 404, id, RV_MCP_INVALID_REQUEST, "there is no such session: initialize again", err);
    free(given);
    return session;
}

static int post_legacy(struct srv_call *c, const struct rv_mcp_message *m, rv_err **err)
{
    rv_str version;
    int rc = 0;

    if (rv_httpd_find_field(c->req, "mcp-protocol-version", &version, NULL)) {
        int v = rv_mcp_version_of(version);
        if (v < 0 || v > RV_MCP_NEWEST_LEGACY)
            return refuse(c, 400, m->id, RV_MCP_INVALID_REQUEST, "MCP-Protocol-Version is not a supported revision",
                          err);
    }
    if (m->kind == RV_MCP_REQUEST && strcmp(m->method, "initialize") == 0)
        return begin_session(c, m, err);
    struct srv_mcp_session *session = find_session(c, m->id, &rc, err);
    return session ? take(c, session, m, err) : rc;
}

/* --- modern --- */

static int post_modern(struct srv_call *c, const struct rv_mcp_message *m, rv_err **err)
{
    struct srv_mcp_session *session = NULL;

    if (m->kind == RV_MCP_NOTIFICATION) {
        c->status = 202; /* none of them means anything between requests */
        return 0;
    }
    if (m->kind != RV_MCP_REQUEST)
        return refuse(c, 400, NULL, RV_MCP_INVALID_REQUEST, "a client of this revision sends no answers", err);
    int rc = 0;
    const char *fault = check_headers(c, m, &rc);
    if (rc < 0)
        return RV_FAIL(err, rc, "read the headers of a message of MCP");
    if (fault)
        return refuse(c, 400, m->id, RV_MCP_HEADER_MISMATCH, fault, err);
    rc = srv_mcp_session_new(c->server->mcps, c, false, &session, err);
    return rc < 0 ? rc : take(c, session, m, err);
}

static bool is_modern(const struct srv_call *c, const struct rv_mcp_message *m)
{
    rv_str version;

    if (rv_httpd_find_field(c->req, "mcp-protocol-version", &version, NULL) &&
        rv_str_is(version, rv_mcp_version_text(RV_MCP_2026_07_28)))
        return true;
    if (rv_httpd_find_field(c->req, "mcp-session-id", &version, NULL))
        return false;
    return m->method && strcmp(m->method, "initialize") != 0 &&
           rv_json_member(rv_json_get_obj(m->params, "_meta"), "io.modelcontextprotocol/protocolVersion") != NULL;
}

/* --- the handlers --- */

int srv_mcp_post(struct srv_call *c, rv_err **err)
{
    struct rv_mcp_message m;
    rv_err *why = NULL;
    int code = 0;
    bool is_json = false, takes_both = false;
    int rc = sends_json(c, &is_json, err);

    if (rc == 0)
        rc = accepts_both(c, &takes_both, err);
    if (rc < 0)
        return rc;
    if (!is_json)
        return refuse(c, 400, NULL, RV_MCP_INVALID_REQUEST, "Content-Type must be application/json", err);
    if (!takes_both)
        return refuse(c, 400, NULL, RV_MCP_INVALID_REQUEST, "Accept must have application/json and text/event-stream",
                      err);
    rc = rv_mcp_read(c->req->body, &m, &code, &why);
    if (rc == 0) {
        rc = is_modern(c, &m) ? post_modern(c, &m, err) : post_legacy(c, &m, err);
    } else if (rc == RV_E_INVALID) {
        rv_buf text = RV_BUF_INIT(4096);
        rv_err_write_chain(why, &text);
        rc = refuse(c, 400, m.id, code, rv_buf_cstr(&text), err);
        rv_buf_fini(&text);
    } else {
        rc = RV_FAIL(err, rc, "read a message of MCP");
    }
    rv_err_free(why);
    rv_mcp_message_fini(&m);
    return rc;
}

void srv_mcp_begin(struct srv_call *c)
{
    struct going *g = c->made;
    struct srv_mcp_session *session = g->session;

    g->session = NULL; /* its reference goes with the stream */
    srv_mcp_stream_begin(c, session, g->call);
}

int srv_mcp_tools(struct srv_call *c, rv_err **err)
{
    const struct rv_app_mcp_at at = at_of(c);
    json_object *list = json_object_new_array();
    int rc =
        list ? rv_app_mcp_add_tools(&c->server->mcps->offer, &at, list, err) : RV_FAIL(err, RV_E_NOMEM, "list tools");

    if (rc == 0) {
        rv_jw w = srv_call_json(c, 200);
        rv_jw_value(&w, list);
    }
    json_object_put(list);
    return rc;
}

int srv_mcp_delete(struct srv_call *c, rv_err **err)
{
    rv_str version;
    int rc = 0;

    if (rv_httpd_find_field(c->req, "mcp-protocol-version", &version, NULL) &&
        rv_str_is(version, rv_mcp_version_text(RV_MCP_2026_07_28))) {
        srv_call_field(c, "Allow", "POST");
        return refuse(c, 405, NULL, RV_MCP_INVALID_REQUEST, "this revision has no sessions", err);
    }
    struct srv_mcp_session *session = find_session(c, NULL, &rc, err);
    if (!session)
        return rc;
    srv_mcp_session_end(session);
    srv_mcp_session_unref(session);
    rv_jw w = srv_call_json(c, 200);
    rv_jw_raw(&w, RV_STR_LIT("{\"deleted\":true}"));
    return 0;
}
