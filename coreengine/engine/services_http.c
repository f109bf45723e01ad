/* The services http.get and http.request: requests that capabilities make through the engine, under the one policy for
 * addresses (coreengine/model/http/http.h). The variable REEVE_ALLOW_NET allows more than public addresses.
 *
 * GET and HEAD follow redirects; each new address is a new request and is looked at like the first one. What is sent to
 * another origin has none of the caller's headers, and a redirect from https to http is not followed but handed out. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/base/base.h"
#include "coreengine/engine/services_internal.h"

#define ALLOW_NET   "REEVE_ALLOW_NET"
#define MAX_URL     ((size_t)8 << 10) /* bytes: common servers refuse longer ones */
#define MAX_HEADERS 32                /* of a request: interfaces ask for a handful; more is an error of the call */
#define MAX_HEADER  ((size_t)8 << 10) /* bytes of one line: common servers refuse longer heads */
/* bytes of an answer at most, whatever max_bytes says: it is one text of a reply */
#define MAX_BODY      (INT64_C(4) << 20) /* bytes, whatever max_bytes says: as base64 within RV_SERVICE_MAX_ANSWER */
#define USUAL_BODY    (INT64_C(1) << 20) /* bytes of an answer, unless max_bytes says otherwise */
#define MAX_MS        INT64_C(60000)     /* a minute, whatever timeout_ms says: the call that asks waits meanwhile */
#define USUAL_MS      INT64_C(30000)     /* half a minute, unless timeout_ms says otherwise */
#define MAX_REDIRECTS 5  /* of a fetch: one for the scheme, one for the host, and some; more is an error of the call */
#define MAX_FETCHES   64 /* under way in one engine: each is a connection, with MAX_BODY in memory */

struct fetch {
    struct fetch *next;
    rv_engine *e;
    uint64_t id;
    rv_http_call *http; /* NULL: none is under way */
    char method[16];
    char *url;                  /* owned; the present one */
    char *headers[MAX_HEADERS]; /* owned */
    size_t n_headers;
    char *body; /* owned; NULL: none */
    size_t body_len;
    int64_t max_body, until_us; /* of the engine's clock */
    int n_redirects;
    int status;
    char *location;                /* owned; of a redirect */
    struct rv_trace_headers trace; /* of its call; is_traced: there is one, and it goes to the first origin only */
    char tracestate[RV_TRACESTATE_MAX + 1];
    bool is_traced;
    json_object *fields; /* owned; the headers of the answer */
    bool is_short;       /* there was no memory for one of them */
    rv_buf text;         /* its body */
};

static int64_t now_us(const rv_engine *e)
{
    return e->clock.now_us(e->clock.self);
}

static void fetch_free(struct fetch *f)
{
    struct fetch **at = &f->e->services->fetches;

    while (*at && *at != f)
        at = &(*at)->next;
    if (*at)
        *at = f->next;
    for (size_t i = 0; i < f->n_headers; i++)
        free(f->headers[i]);
    free(f->url);
    free(f->body);
    free(f->location);
    json_object_put(f->fields);
    rv_buf_fini(&f->text);
    free(f);
}

/* --- what is asked --- */

static int read_number(json_object *args, const char *key, int64_t most, int64_t *out, rv_err **err)
{
    if (!json_object_object_get_ex(args, key, NULL))
        return 0;
    if (!rv_json_get_int(args, key, out) || *out < 1 || *out > most)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not an integer between 1 and %lld", key, (long long)most);
    return 0;
}

static int read_method(struct fetch *f, json_object *args, bool any, rv_err **err)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    const char *method = "GET";
    size_t n = any ? RV_COUNT(methods) : 2, i = 0;

    if (json_object_object_get_ex(args, "method", NULL) && !rv_json_get_text(args, "method", &method))
        return RV_FAIL(err, RV_E_INVALID, "\"method\" is not a string");
    while (i < n && strcmp(methods[i], method) != 0)
        i++;
    if (i == n)
        return any ? RV_FAIL(err, RV_E_INVALID, "\"method\" is none of GET HEAD POST PUT PATCH DELETE OPTIONS")
                   : RV_FAIL(err, RV_E_INVALID, "\"method\" of http.get is neither GET nor HEAD: ask http.request");
    snprintf(f->method, sizeof f->method, "%s", method);
    return 0;
}

/* Headers that set the destination or the length of a request: the engine decides both. */
static bool is_engines(const char *name)
{
    static const char *const names[] = {
        "host", "content-length", "transfer-encoding", "connection",    "upgrade", "expect",
        "te",   "trailer",        "keep-alive",        "http2-settings"};

    for (size_t i = 0; i < RV_COUNT(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return strncasecmp(name, "proxy-", 6) == 0;
}

static int read_headers(struct fetch *f, json_object *args, rv_err **err)
{
    json_object *headers = NULL;

    if (!json_object_object_get_ex(args, "headers", &headers))
        return 0;
    if (!json_object_is_type(headers, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "\"headers\" is not an object but %s", rv_json_type_text(headers));
    json_object_object_foreach (headers, name, value) {
        rv_buf line = RV_BUF_INIT(MAX_HEADER);
        if (!json_object_is_type(value, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "header \"%.100s\" is not a string but %s", name,
                           rv_json_type_text(value));
        if (is_engines(name))
            return RV_FAIL(err, RV_E_DENIED, "header \"%.100s\" is set by the engine only", name);
        if (f->n_headers == MAX_HEADERS)
            return RV_FAIL(err, RV_E_LIMIT, "more than %d headers", MAX_HEADERS);
        rv_buf_printf(&line, "%s: ", name);
        rv_buf_add_str(&line, rv_json_str(value));
        int rc = rv_str_find(rv_buf_str(&line), '\0')
                     ? RV_FAIL(err, RV_E_INVALID, "header \"%.100s\" has a zero byte in it", name)
                     : rv_buf_check(&line, "header of a request", err);
        f->headers[f->n_headers] = rc == 0 ? rv_buf_steal(&line, NULL) : NULL;
        rv_buf_fini(&line);
        if (rc < 0)
            return rc;
        if (!f->headers[f->n_headers])
            return RV_FAIL(err, RV_E_NOMEM, "read the headers of a request");
        f->n_headers++;
    }
    return 0;
}

static int read_texts(struct fetch *f, json_object *args, rv_err **err)
{
    const char *url = NULL;
    json_object *body = NULL;

    if (!rv_json_get_text(args, "url", &url) || strlen(url) > MAX_URL)
        return RV_FAIL(err, RV_E_INVALID, "\"url\" is not a string of at most %zu bytes", MAX_URL);
    f->url = rv_str_dup(rv_str_of(url));
    if (json_object_object_get_ex(args, "body", &body)) {
        if (!json_object_is_type(body, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "\"body\" is not a string but %s", rv_json_type_text(body));
        f->body_len = rv_json_str(body).len;
        f->body = rv_str_dup(rv_json_str(body));
        if (!f->body)
            return RV_FAIL(err, RV_E_NOMEM, "keep a request");
    }
    return f->url ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep a request");
}

static int read_request(struct fetch *f, json_object *args, bool any, rv_err **err)
{
    static const char *const known[] = {"url", "method", "headers", "body", "max_bytes", "timeout_ms"};
    int64_t timeout_ms = USUAL_MS;
    int rc = rv_service_check_args(args, known, RV_COUNT(known), err);

    f->max_body = USUAL_BODY;
    if (rc == 0)
        rc = read_number(args, "max_bytes", MAX_BODY, &f->max_body, err);
    if (rc == 0)
        rc = read_number(args, "timeout_ms", MAX_MS, &timeout_ms, err);
    if (rc == 0)
        rc = read_method(f, args, any, err);
    if (rc == 0)
        rc = read_headers(f, args, err);
    if (rc == 0)
        rc = read_texts(f, args, err);
    f->until_us = now_us(f->e) + timeout_ms * RV_US_PER_MS;
    return rc;
}

/* --- what is answered --- */

static void put_base64(rv_str in, rv_jw *w)
{
    rv_buf out = RV_BUF_INIT((size_t)MAX_BODY * 2);

    rv_base64_write(in, &out);
    rv_jw_kv_str(w, "body_base64", rv_buf_str(&out));
    if (out.rc < 0)
        w->out->rc = out.rc;
    rv_buf_fini(&out);
}

static void write_answer(const struct fetch *f, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "status", f->status);
    rv_jw_kv_text(&w, "url", f->url);
    rv_jw_kv_value(&w, "headers", f->fields);
    rv_jw_kv_int(&w, "bytes", (int64_t)f->text.len);
    if (rv_utf8_valid(rv_buf_str(&f->text), NULL))
        rv_jw_kv_str(&w, "body", rv_buf_str(&f->text));
    else
        put_base64(rv_buf_str(&f->text), &w);
    rv_jw_obj_end(&w);
}

/* Frees f; takes why. */
static void finish(struct fetch *f, rv_err *why)
{
    rv_buf out = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER);
    rv_engine *e = f->e;
    uint64_t id = f->id;

    if (!why) {
        write_answer(f, &out);
        RV_IGNORE(rv_buf_check(&out, "answer of a request", &why), "the error says it");
    }
    fetch_free(f);
    engine_service_answer(e, id, &out, why);
    rv_buf_fini(&out);
}

static void on_head(void *self, const struct rv_http_head *head)
{
    struct fetch *f = self;

    f->status = head->status;
    json_object_put(f->fields);
    f->fields = json_object_new_object();
    f->is_short = !f->fields;
    for (size_t i = 0; f->fields && i < head->n_headers; i++) {
        rv_buf name = RV_BUF_INIT(RV_HTTP_MAX_HEAD), value = RV_BUF_INIT(RV_HTTP_MAX_HEAD);
        json_object *before = NULL;
        rv_buf_add_str(&name, head->headers[i].name);
        if (json_object_object_get_ex(f->fields, rv_buf_cstr(&name), &before)) /* as RFC 9110 joins them */
            rv_buf_printf(&value, "%s, ", json_object_get_string(before));
        rv_buf_add_str(&value, head->headers[i].value);
        f->is_short = f->is_short || name.rc == RV_E_NOMEM || value.rc == RV_E_NOMEM;
        if (rv_utf8_valid(rv_buf_str(&name), NULL) && rv_utf8_valid(rv_buf_str(&value), NULL))
            f->is_short = rv_json_set_take(f->fields, rv_buf_cstr(&name),
                                           json_object_new_string_len(rv_buf_cstr(&value), (int)value.len),
                                           RV_CODE_ONLY("it fails without memory only, which is_short says")) < 0 ||
                          f->is_short;
        if (rv_str_is(head->headers[i].name, "location")) {
            free(f->location);
            f->location = rv_str_dup(head->headers[i].value);
            f->is_short = f->is_short || !f->location;
        }
        rv_buf_fini(&name);
        rv_buf_fini(&value);
    }
}

static bool on_body(void *self, rv_str bytes)
{
    struct fetch *f = self;

    rv_buf_add_str(&f->text, bytes);
    return true;
}

static bool is_redirect(const struct fetch *f)
{
    return rv_http_is_redirect(f->status) && f->location &&
           (strcmp(f->method, "GET") == 0 || strcmp(f->method, "HEAD") == 0);
}

static int start(struct fetch *f, rv_err **err);

/* 1: there is nothing to follow. */
static int follow(struct fetch *f, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf url = RV_BUF_INIT(MAX_URL);
    struct rv_http_redirect kind = {0};

    if (!is_redirect(f))
        return 1;
    if (f->n_redirects++ == MAX_REDIRECTS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d redirects", MAX_REDIRECTS);
    int rc = rv_http_follow(f->e->http, f->url, f->location, &url, &kind, err);
    if (rc < 0)
        return rc;
    if (!kind.is_safe)
        return 1;
    free(f->url);
    f->url = rv_buf_steal(&url, NULL);
    for (size_t i = 0; !kind.same_origin && i < f->n_headers; i++)
        free(f->headers[i]);
    f->n_headers = kind.same_origin ? f->n_headers : 0;
    f->is_traced = f->is_traced && kind.same_origin;
    free(f->location);
    f->location = NULL;
    rv_buf_clear(&f->text);
    return f->url ? start(f, err) : RV_FAIL(err, RV_E_NOMEM, "follow a redirect");
}

static int code_of(const struct rv_http_end *end)
{
    bool is_time = end->fault == RV_HTTP_CONNECT_TIME || end->fault == RV_HTTP_FIRST_BYTE_TIME ||
                   end->fault == RV_HTTP_IDLE_TIME || end->fault == RV_HTTP_TOTAL_TIME;

    return end->is_denied                    ? RV_E_DENIED
           : is_time                         ? RV_E_TIMEOUT
           : end->fault == RV_HTTP_TOO_LARGE ? RV_E_LIMIT
                                             : RV_E_IO;
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct fetch *f = self;
    rv_err *why = NULL;
    int rc = 1;

    f->http = NULL;
    if (end->fault != RV_HTTP_OK) {
        rc = RV_FAIL(&why, code_of(end), "%s", end->text);
        if (end->is_denied)
            rv_err_set_hint(&why, "to allow it, set %s to HOST:PORT or a range of addresses", ALLOW_NET);
    } else {
        rc = f->is_short ? RV_FAIL(&why, RV_E_NOMEM, "read the headers of an answer")
                         : rv_buf_check(&f->text, "answer of a request", &why);
        if (rc == 0)
            rc = follow(f, &why);
    }
    if (rc != 0)
        finish(f, rc < 0 ? why : NULL);
}

static int start(struct fetch *f, rv_err **err)
{
    const struct rv_http_events events = {on_head, on_body, on_end, f};
    int64_t left_us = f->until_us - now_us(f->e);
    const char *lines[MAX_HEADERS + 2];
    char parent[RV_TRACE_LINE_MAX], state[RV_TRACE_LINE_MAX];
    size_t n = 0;
    struct rv_http_request req = {.method = f->method,
                                  .url = f->url,
                                  .headers = (const char *const *)f->headers,
                                  .n_headers = f->n_headers,
                                  .body = {f->body, f->body_len},
                                  .connect_us = left_us,
                                  .total_us = left_us,
                                  .max_body = (size_t)f->max_body,
                                  .egress = f->e->services->egress};

    if (left_us <= 0)
        return RV_FAIL(err, RV_E_TIMEOUT, "its redirects took too long");
    if (f->is_traced)
        n = engine_trace_lines(&f->trace, (const char *const *)f->headers, f->n_headers, lines, parent, state);
    if (n > 0) { /* no byte is sent before the policy has allowed the address: it is asked about each socket */
        req.headers = lines;
        req.n_headers = n;
    }
    return rv_http_start(f->e->http, &req, &events, &f->http, err);
}

/* --- the services --- */

static int ensure(rv_engine *e, rv_err **err)
{
    if (e->opts.virtual_time)
        return RV_FAIL(err, RV_E_STATE, "a request takes real time, and the time of this run is simulated");
    int rc = engine_http(e, err);
    if (rc == 0 && !e->services->egress)
        rc = rv_egress_new(engine_env(e, ALLOW_NET), &e->services->egress, err);
    return rc == RV_E_PARSE || rc == RV_E_LIMIT ? RV_WRAP(err, RV_E_STATE, "the variable %s", ALLOW_NET) : rc;
}

int engine_service_http(const struct service_call *c, rv_err **err)
{
    struct services *s = c->e->services;
    size_t n = 0;

    for (const struct fetch *f = s->fetches; f; f = f->next)
        n++;
    if (n == MAX_FETCHES)
        return RV_FAIL(err, RV_E_LIMIT, "%d requests are under way", MAX_FETCHES);
    int rc = ensure(c->e, err);
    if (rc < 0)
        return rc;
    struct fetch *f = calloc(1, sizeof *f);
    if (!f)
        return RV_FAIL(err, RV_E_NOMEM, "make a request");
    f->e = c->e;
    f->id = c->id;
    f->next = s->fetches;
    s->fetches = f;
    f->is_traced = exec_trace(c->x, c->ask->q.call_id, &f->trace);
    if (f->is_traced && f->trace.state) { /* the run may be over before its redirects are */
        snprintf(f->tracestate, sizeof f->tracestate, "%s", f->trace.state);
        f->trace.state = f->tracestate;
    }
    rc = read_request(f, c->args, strcmp(c->ask->q.service, "http.request") == 0, err);
    rv_buf_init(&f->text, (size_t)f->max_body);
    if (rc == 0)
        rc = start(f, err);
    if (rc < 0)
        fetch_free(f);
    return rc;
}

void engine_service_http_give_up(rv_engine *e, uint64_t id)
{
    for (struct fetch *f = e->services->fetches; f; f = f->next)
        if (f->id == id) {
            if (f->http)
                rv_http_cancel(f->http);
            fetch_free(f);
            return;
        }
}
