/* What an answer over streamable HTTP means: its status, its kind, its messages, and how it ended.
 *
 * A request has one response, the message with its id. A stream may carry other messages before it; what comes after it
 * is not waited for. */
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/mcp/http.h"
#include "coreengine/mcp/mcp.h"

void rv_mcp_answer_init(struct rv_mcp_answer *a, int64_t id, bool is_stream, void (*on_message)(void *, rv_str json),
                        void *self)
{
    *a = (struct rv_mcp_answer){.id = id, .is_stream = is_stream, .on_message = on_message, .self = self};
    a->body = RV_MCP_BODY_NONE;
    rv_buf_init(&a->text, RV_MCP_MAX_MESSAGE);
}

void rv_mcp_answer_fini(struct rv_mcp_answer *a)
{
    rv_sse_free(a->events);
    a->events = NULL;
    rv_buf_fini(&a->text);
}

/* The media type without its parameters. */
static bool is_type(rv_str content_type, const char *type)
{
    const char *end = rv_str_find(content_type, ';');
    rv_str bare = rv_str_trim((rv_str){content_type.ptr, end ? (size_t)(end - content_type.ptr) : content_type.len});

    return rv_mcp_is_same_word(bare, rv_str_of(type));
}

/* Does a message answer the request? The session reads it once more; here only its id counts. */
static int is_response(rv_str json, int64_t id, bool *out, rv_err **err)
{
    struct rv_mcp_message m;

    int rc = rv_mcp_read(json, &m, NULL,
                         RV_CODE_ONLY("the session reads the message once more and reports what is wrong with it"));
    *out = rc == 0 && (m.kind == RV_MCP_RESULT || m.kind == RV_MCP_ERROR) && rv_json_is_int(m.id) &&
           json_object_get_int64(m.id) == id;
    rv_mcp_message_fini(&m);
    return rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "read an answer") : 0;
}

static int hand_over(struct rv_mcp_answer *a, rv_str json, rv_err **err)
{
    int rc = a->id && !a->is_answered ? is_response(json, a->id, &a->is_answered, err) : 0;

    if (rc == 0)
        a->on_message(a->self, json);
    return rc;
}

static int on_event(void *self, const struct rv_sse_event *ev, rv_err **err)
{
    bool is_message = ev->data.len && (ev->name.len == 0 || rv_str_is(ev->name, "message"));

    return is_message ? hand_over(self, ev->data, err) : 0;
}

static enum rv_mcp_body body_of(const struct rv_mcp_answer *a, const struct rv_mcp_head *head)
{
    if (head->status < 200 || head->status > 299)
        return RV_MCP_BODY_FAILURE;
    if (is_type(head->content_type, "text/event-stream"))
        return RV_MCP_BODY_EVENTS;
    if (a->id && !a->is_stream && head->status != 202 && is_type(head->content_type, "application/json"))
        return RV_MCP_BODY_JSON;
    return RV_MCP_BODY_NONE;
}

int rv_mcp_answer_on_head(struct rv_mcp_answer *a, const struct rv_mcp_head *head, rv_err **err)
{
    rv_buf word = RV_BUF_INIT(64);

    a->head = *head;
    a->head.content_type = a->head.challenge = (rv_str){NULL, 0};
    a->body = body_of(a, head);
    a->is_insufficient = head->status == 403 && rv_mcp_challenge_read(head->challenge, "error", &word) &&
                         rv_str_is(rv_buf_str(&word), "insufficient_scope");
    bool is_short = word.rc == RV_E_NOMEM; /* of memory */
    rv_buf_fini(&word);
    rv_buf_clear(&a->text);
    a->is_enough = false;
    if (a->body == RV_MCP_BODY_NONE && !is_type(head->content_type, "application/json"))
        rv_buf_add_str(&a->text, rv_utf8_cut(head->content_type, 100)); /* for what is said about it */
    if (is_short || a->text.rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read an answer");
    if (a->body != RV_MCP_BODY_EVENTS)
        return 0;
    rv_sse_free(a->events); /* of a stream that continues: its last id was sent, and the new one has its own */
    a->events = rv_sse_new(RV_MCP_MAX_MESSAGE, on_event, a);
    return a->events ? 0 : RV_FAIL(err, RV_E_NOMEM, "read an answer");
}

static int read_events(struct rv_mcp_answer *a, rv_str bytes, rv_err **err)
{
    a->n_bytes += bytes.len;
    if (a->id && a->n_bytes > RV_MCP_MAX_STREAM) /* the server's own stream has no end, and keeps nothing */
        return RV_FAIL(err, RV_E_LIMIT, "the answer is larger than %zu bytes", RV_MCP_MAX_STREAM);
    return rv_sse_read(a->events, bytes, err);
}

int rv_mcp_answer_read(struct rv_mcp_answer *a, rv_str bytes, rv_err **err)
{
    switch (a->body) {
    case RV_MCP_BODY_EVENTS:
        return read_events(a, bytes, err);
    case RV_MCP_BODY_JSON:
        rv_buf_add_str(&a->text, bytes);
        return rv_buf_check(&a->text, "an answer", err);
    case RV_MCP_BODY_FAILURE: /* its beginning says what is wrong */
        if (a->text.len < RV_MCP_MAX_FAILURE) {
            size_t room = RV_MCP_MAX_FAILURE - a->text.len;
            rv_buf_add(&a->text, bytes.ptr, bytes.len < room ? bytes.len : room);
        }
        a->is_enough = a->text.len >= RV_MCP_MAX_FAILURE;
        return rv_buf_check(&a->text, "an answer", err);
    case RV_MCP_BODY_NONE: /* a short one is read to its end */
        a->n_bytes += bytes.len;
        a->is_enough = a->n_bytes >= RV_MCP_MAX_FAILURE;
        return 0;
    }
    return 0;
}

/* --- how it ended --- */

static enum rv_mcp_verdict fail(struct rv_mcp_failure *out, enum rv_mcp_fault fault, const rv_buf *text)
{
    out->fault = fault;
    out->text = rv_buf_cstr(text);
    return RV_MCP_FAILED;
}

/* The server refused before it looked at the message. */
static bool is_refusal(int status)
{
    static const int refusals[] = {401, 403, 405, 406, 407, 411, 413, 414, 415, 421, 429, 431};

    for (size_t i = 0; i < RV_COUNT(refusals); i++)
        if (refusals[i] == status)
            return true;
    return status >= 300 && status < 400;
}

bool rv_mcp_is_busy(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static enum rv_mcp_verdict fail_by_status(const struct rv_mcp_answer *a, rv_buf *text, struct rv_mcp_failure *out)
{
    int status = a->head.status;

    out->status = status;
    out->body = rv_buf_str(&a->text);
    out->is_unsent = is_refusal(status);
    out->retryable = rv_mcp_is_busy(status);
    if (status == 401) {
        rv_buf_puts(text, "the server wants a token that is valid (HTTP 401)");
        return fail(out, RV_MCP_FAULT_UNAUTHORIZED, text);
    }
    if (a->is_insufficient) {
        rv_buf_puts(text, "the token does not have a scope that the server wants for this (HTTP 403)");
        return fail(out, RV_MCP_FAULT_UNAUTHORIZED, text);
    }
    if (status == 404 && a->head.has_session && !a->head.is_modern) {
        out->is_unsent = true;
        rv_buf_puts(text, "the server does not know the session any more (HTTP 404)");
        return fail(out, RV_MCP_FAULT_SESSION_EXPIRED, text);
    }
    rv_buf_printf(text, "the server answered with HTTP %d", status);
    return fail(out, RV_MCP_FAULT_HTTP_STATUS, text);
}

static enum rv_mcp_verdict end_of_events(struct rv_mcp_answer *a, bool cut, rv_buf *text, struct rv_mcp_failure *out)
{
    if (a->is_answered)
        return RV_MCP_OVER;
    if (!a->head.is_modern && (a->is_stream || rv_sse_last_id(a->events).len))
        return RV_MCP_CONTINUE;
    rv_buf_puts(text, cut ? "the connection broke before the response came" : "the stream ended without the response");
    return fail(out, RV_MCP_FAULT_CONNECTION_LOST, text);
}

static enum rv_mcp_verdict end_of_json(struct rv_mcp_answer *a, bool cut, rv_buf *text, struct rv_mcp_failure *out)
{
    if (cut) {
        rv_buf_puts(text, "the connection broke before the response was complete");
        return fail(out, RV_MCP_FAULT_CONNECTION_LOST, text);
    }
    if (hand_over(a, rv_buf_str(&a->text), RV_CODE_ONLY("the failure of the answer says it in words below")) < 0) {
        rv_buf_puts(text, "no memory for an answer");
        return fail(out, RV_MCP_FAULT_LOCAL, text);
    }
    if (a->is_answered)
        return RV_MCP_OVER;
    rv_buf_puts(text, "the server answered with something else than the response to the request");
    return fail(out, RV_MCP_FAULT_BAD_MESSAGE, text);
}

enum rv_mcp_verdict rv_mcp_answer_end(struct rv_mcp_answer *a, bool cut, rv_buf *text, struct rv_mcp_failure *out)
{
    *out = (struct rv_mcp_failure){.status = a->head.status};
    switch (a->body) {
    case RV_MCP_BODY_FAILURE:
        return fail_by_status(a, text, out);
    case RV_MCP_BODY_EVENTS:
        return end_of_events(a, cut, text, out);
    case RV_MCP_BODY_JSON:
        return end_of_json(a, cut, text, out);
    case RV_MCP_BODY_NONE:
        break;
    }
    if (!a->id && !a->is_stream) /* a notification is accepted with any status of success */
        return RV_MCP_OVER;
    if (a->is_answered)
        return RV_MCP_OVER;
    if (a->head.status == 202 || a->head.status == 204)
        rv_buf_printf(text, "the server accepted the request without answering it (HTTP %d)", a->head.status);
    else
        rv_buf_printf(text, "the server answered with the content type \"%s\"", rv_buf_cstr(&a->text));
    return fail(out, RV_MCP_FAULT_BAD_MESSAGE, text);
}

/* --- challenges --- */

/* A token or a quoted string at *p. */
static bool read_word(const char **p, const char *end, rv_buf *out)
{
    const char *at = *p, *from = at;

    if (at < end && *at == '"') {
        for (at++; at < end && *at != '"'; at++) {
            at += *at == '\\' && at + 1 < end;
            rv_buf_putc(out, *at);
        }
        *p = at < end ? at + 1 : end;
        return at < end;
    }
    while (at < end && !strchr(" \t,=\"", *at) && *at)
        at++;
    rv_buf_add(out, from, (size_t)(at - from));
    *p = at;
    return at > from;
}

static void skip(const char **p, const char *end, const char *which)
{
    while (*p < end && **p && strchr(which, **p))
        ++*p;
}

/* A word with "=" behind it is a parameter, of the scheme that came last; one without is a scheme. */
bool rv_mcp_challenge_read(rv_str value, const char *name, rv_buf *out)
{
    RV_AUTO(rv_buf_fini) rv_buf word = RV_BUF_INIT(RV_MCP_MAX_HEADER);
    bool is_bearer = false;

    if (value.len == 0) /* no header */
        return false;
    for (const char *p = value.ptr, *end = p + value.len;;) {
        rv_buf_clear(&word);
        skip(&p, end, " \t,");
        if (p >= end || !read_word(&p, end, &word) || word.rc < 0) {
            out->rc = word.rc == RV_E_NOMEM ? word.rc : out->rc;
            return false;
        }
        skip(&p, end, " \t");
        if (p >= end || *p != '=') {
            is_bearer = rv_mcp_is_same_word(rv_buf_str(&word), RV_STR_LIT("Bearer"));
            continue;
        }
        p++;
        skip(&p, end, " \t=");
        bool is_it = is_bearer && rv_mcp_is_same_word(rv_buf_str(&word), rv_str_of(name));
        rv_buf_clear(&word);
        RV_IGNORE(!read_word(&p, end, &word), "an empty value, or one without its closing quote, is the last one");
        if (word.rc < 0) {
            out->rc = word.rc == RV_E_NOMEM ? word.rc : out->rc;
            return false;
        }
        if (is_it) {
            rv_buf_add_str(out, rv_buf_str(&word));
            return out->rc == 0;
        }
    }
}
