/* What handlers ask of a request, and its answer: errors in the form that its clients read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/body_internal.h"

#define MAX_KEY 200 /* bytes of an Idempotency-Key: clients use UUIDs, and RV_STREAM_MAX_ASK holds it */

int64_t srv_now_us(void)
{
    return rv_app_now_us();
}

/* --- what handlers ask of a request --- */

int srv_call_dup_header(const struct srv_call *c, const char *name, char **out, rv_err **err)
{
    rv_str value;

    *out = NULL;
    if (!rv_httpd_find_field(c->req, name, &value, NULL) || value.len == 0)
        return 0;
    *out = rv_str_dup(value);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the header %s", name);
}

int srv_call_key(const struct srv_call *c, const char *session, char **key, char hash[RV_HASH_MAX], rv_err **err)
{
    struct rv_hash h;
    int rc = srv_call_dup_header(c, "idempotency-key", key, err);

    rv_hash_init(&h);
    rv_hash_add(&h, rv_str_of(c->route->path));
    rv_hash_add(&h, rv_str_of(session));
    rv_hash_add(&h, c->req->body);
    rv_hash_finish_hex(&h, hash);
    if (rc == 0 && *key && strlen(*key) > MAX_KEY) {
        rc = RV_FAIL(err, RV_E_INVALID, "Idempotency-Key has at most %d bytes", MAX_KEY);
        free(*key);
        *key = NULL;
    }
    return rc;
}

int srv_call_dup_arg(const struct srv_call *c, size_t i, char **out, rv_err **err)
{
    *out = rv_str_dup(rv_str_of(c->args[i]));
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the path of a request");
}

int srv_body_text(const struct srv_call *c, const char *key, bool is_needed, const char **out, rv_err **err)
{
    json_object *value = NULL;

    *out = NULL;
    json_object_object_get_ex(c->body, key, &value);
    if (value && !rv_json_get_text(c->body, key, out))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" must be a text", key);
    return *out || !is_needed ? 0 : RV_FAIL(err, RV_E_INVALID, "the body needs \"%s\"", key);
}

int srv_body_int(const struct srv_call *c, const char *key, int64_t least, int64_t most, int64_t *inout, rv_err **err)
{
    int64_t n = 0;

    if (!json_object_object_get_ex(c->body, key, NULL))
        return 0;
    if (!rv_json_get_int(c->body, key, &n) || n < least || n > most)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" must be a whole number from %lld to %lld", key, (long long)least,
                       (long long)most);
    *inout = n;
    return 0;
}

int srv_body_bool(const struct srv_call *c, const char *key, bool *inout, rv_err **err)
{
    if (!json_object_object_get_ex(c->body, key, NULL) || rv_json_get_bool(c->body, key, inout))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" must be true or false", key);
}

bool srv_call_query(const struct srv_call *c, const char *name, rv_str *out)
{
    return rv_httpd_find_query(c->req, name, out);
}

int srv_call_dup_text(const struct srv_call *c, const char *name, char **out, rv_err **err)
{
    rv_str value;

    *out = NULL;
    if (!srv_call_query(c, name, &value) || value.len == 0)
        return 0;
    *out = rv_str_dup(value);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the parameter %s", name);
}

int srv_call_bool(const struct srv_call *c, const char *name, bool *inout, rv_err **err)
{
    rv_str value;

    if (!srv_call_query(c, name, &value))
        return 0;
    *inout = rv_str_is(value, "true") || rv_str_is(value, "1");
    if (*inout || rv_str_is(value, "false") || rv_str_is(value, "0"))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "the parameter \"%s\" must be true or false (or 1, 0)", name);
}

int srv_call_int(const struct srv_call *c, const char *name, int64_t least, int64_t most, int64_t *inout, rv_err **err)
{
    char text[24], *end;
    rv_str value;

    if (!srv_call_query(c, name, &value))
        return 0;
    bool fits = value.len > 0 && value.len < sizeof text && (rv_is_digit(value.ptr[0]) || value.ptr[0] == '-');
    memcpy(text, fits ? value.ptr : "", fits ? value.len : 0);
    text[fits ? value.len : 0] = '\0';
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!fits || errno || *end || n < least || n > most)
        return RV_FAIL(err, RV_E_INVALID, "the parameter \"%s\" must be a whole number from %" PRId64 " to %" PRId64,
                       name, least, most);
    *inout = n;
    return 0;
}

/* An answer without it would be another one. Where an error is told already, its answer goes without. */
static void fail_field(struct srv_call *c, const char *name, const char *why)
{
    if (c->rc == 0 && !c->is_refused)
        c->rc = RV_FAIL(&c->err, RV_E_INTERNAL, "answer with the header %s: %s", name, why);
    else
        RV_LOG(c->server->app.log, ERROR, "request.failed", RV_F_TEXT("request_id", c->req->id),
               RV_F_TEXT("route", c->route ? c->route->path : ""), RV_F_TEXT("error", why));
}

void srv_call_field(struct srv_call *c, const char *name, const char *value)
{
    if (c->n_fields >= SRV_MAX_FIELDS) {
        fail_field(c, name, "it has as many headers as fit");
        return;
    }
    for (const unsigned char *p = (const unsigned char *)value; *p; p++)
        if (*p < ' ' || *p == 127) {
            fail_field(c, name, "its value has a control character");
            return;
        }
    char *copy = rv_str_dup(rv_str_of(value));
    if (copy)
        c->fields[c->n_fields++] = (struct rv_httpd_field){rv_str_of(name), rv_str_of(copy)};
    else if (c->out.rc == 0)
        c->out.rc = RV_E_NOMEM; /* an answer without it would be another one */
}

void srv_call_field_buf(struct srv_call *c, const char *name, const rv_buf *value)
{
    if (value->rc == 0)
        srv_call_field(c, name, rv_buf_cstr(value));
    else if (c->out.rc == 0)
        c->out.rc = value->rc;
}

rv_jw srv_call_json(struct srv_call *c, int status)
{
    c->status = status;
    c->type = "application/json";
    return rv_jw_on(&c->out);
}

/* --- the answer --- */

void srv_call_fault(struct srv_call *c, int status, const char *code, const char *detail)
{
    enum rv_protocol_family family = c->route ? c->route->family : RV_FAMILY_PROBLEM;
    const struct rv_protocol_fault fault = {.status = status,
                                            .code = code,
                                            .param = c->param[0] ? c->param : NULL,
                                            .detail = detail,
                                            .details = c->details,
                                            .request_id = c->req->id};

    c->status = status;
    c->type = rv_protocol_fault_type(family);
    rv_buf_clear(&c->out);
    rv_protocol_fault_write(family, &fault, &c->out);
}

static void write_refusal(struct srv_call *c)
{
    char text[24];

    if (c->refusal->authenticate[0])
        srv_call_field(c, "WWW-Authenticate", c->refusal->authenticate);
    if (c->refusal->retry_us > 0) {
        snprintf(text, sizeof text, "%" PRId64, rv_refusal_retry_s(c->refusal));
        srv_call_field(c, "Retry-After", text);
    }
    srv_call_fault(c, c->refusal->status, c->refusal->code, c->refusal->detail);
}

/* What the machine lacks may come back; a client is told that, and no more. NULL: a fault of another kind. */
static const char *lack_of(int rc)
{
    switch ((enum rv_code)rc) { /* without default: a new code is told here, if the machine lacks something */
    case RV_E_DISK:
        return "the disk of the server is full: ask again when its operator has made room";
    case RV_E_FILES:
        return "the server cannot open more files and connections now: ask again later";
    case RV_E_THREADS:
        return "the server cannot start more threads now: ask again later";
    case RV_E_UNAVAILABLE:
        return "the server or its store is not available now: ask again later";
    case RV_E_INVALID:
    case RV_E_PARSE:
    case RV_E_LIMIT:
    case RV_E_NOT_FOUND:
    case RV_E_EXISTS:
    case RV_E_STATE:
    case RV_E_DENIED:
    case RV_E_TIMEOUT:
    case RV_E_CANCELLED:
    case RV_E_QUOTA:
    case RV_E_VERSION:
    case RV_E_NOMEM:
    case RV_E_IO:
    case RV_E_PROVIDER:
    case RV_E_TOOL:
    case RV_E_PLUGIN:
    case RV_E_INTERNAL:
        break;
    }
    return NULL;
}

/* What an error says to a client: faults of ours and of the machine stay in the log. */
static void write_error(struct srv_call *c)
{
    int status = rv_protocol_status(c->rc);
    rv_buf text = RV_BUF_INIT(16 << 10);

    if (status >= 500) {
        RV_LOG(c->server->app.log, ERROR, "request.failed", RV_F_TEXT("request_id", c->req->id),
               RV_F_TEXT("route", c->route->path), RV_F_ERR("error", c->err));
        const char *lack = lack_of(c->rc);
        rv_buf_printf(&text, "%s; its log has the reason, with the id of the request",
                      lack ? lack : "the server could not do this");
        if (lack)
            srv_call_field(c, "Retry-After", SRV_RETRY_S);
    } else {
        rv_err_write_chain(c->err, &text);
        if (rv_err_hint_text(c->err))
            rv_buf_printf(&text, " (%s)", rv_err_hint_text(c->err));
    }
    if (status == 409)
        srv_call_field(c, "x-should-retry", "false");
    srv_call_fault(c, status, c->code ? c->code : rv_code_text(c->rc), rv_buf_cstr(&text));
    rv_buf_fini(&text);
}

void srv_call_free(struct srv_call *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_args; i++)
        free(c->args[i]);
    free(c->user);
    for (size_t i = 0; i < c->n_fields; i++)
        free((void *)(uintptr_t)c->fields[i].value.ptr);
    if (c->made && c->free_made)
        c->free_made(c->made);
    json_object_put(c->body);
    json_object_put(c->details);
    rv_err_free(c->err);
    rv_buf_fini(&c->out);
    free(c->refusal);
    free(c);
}

rv_str srv_call_run(const struct srv_call *c)
{
    if (c->run_id[0])
        return rv_str_of(c->run_id);
    if (c->n_args > 0 && c->route && strncmp(c->route->path, "/runs/{id}", strlen("/runs/{id}")) == 0)
        return rv_str_of(c->args[0]);
    for (size_t i = 0; i < c->n_fields; i++)
        if (rv_str_is(c->fields[i].name, "X-Run-Id"))
            return c->fields[i].value;
    return (rv_str){NULL, 0};
}

void srv_call_reply(struct srv_call *c)
{
    if (c->is_refused)
        write_refusal(c);
    else if (c->rc == 0 && c->out.rc < 0)
        c->rc = rv_buf_check(&c->out, "the answer", &c->err);
    if (!c->is_refused && c->rc < 0)
        write_error(c);
    const struct rv_httpd_answer answer = {.status = c->status ? c->status : 204,
                                           .type = c->out.len > 0 || c->fixed.len > 0 ? c->type : NULL,
                                           .fields = c->fields,
                                           .n_fields = c->n_fields,
                                           .body = c->fixed.len > 0 ? c->fixed : rv_buf_str(&c->out),
                                           .owner = c->fixed.len > 0 ? RV_BODY_STATIC : RV_BODY_BORROWED,
                                           .run_id = srv_call_run(c)};
    rv_httpd_reply(c->x, &answer);
    srv_call_free(c);
}
