/* One attempt: sends a request and turns the response into a reply. */
#include "coreengine/model/provider/provider_internal.h"

#include <inttypes.h>
#include <string.h>

#define MAX_TYPE 256 /* bytes of a content type that are kept: RV_MEDIA_TYPE_MAX, and a parameter */

static bool is_good(int status)
{
    return status >= 200 && status < 300;
}

void provider_attempt_fini(rv_exchange *x)
{
    rv_wire_reader_free(x->reader);
    x->reader = NULL;
    rv_buf_fini(&x->error_body);
    rv_buf_fini(&x->content_type);
}

void provider_attempt_start(rv_exchange *x)
{
    const struct rv_call_options *call = &x->endpoint.call;

    provider_attempt_fini(x);
    rv_buf_init(&x->error_body, RV_WIRE_MAX_ERROR);
    rv_buf_init(&x->content_type, MAX_TYPE);
    x->hints = (struct rv_hints){.retry_after_us = -1, .should_retry = -1};
    x->status = 0;
    x->was_local = x->attempt_may_be_billed = false;
    x->is_taken = false;
    if (x->attempts == 0)
        x->sent_us = x->now_us;
    x->first_token_us = 0;
    x->attempts++;
    x->role_attempts++;
    x->http = (struct rv_http_request){
        .method = "POST",
        .url = x->endpoint.url,
        .headers = x->endpoint.headers,
        .n_headers = x->endpoint.n_headers,
        .body = rv_buf_str(&x->body),
        .connect_us = call->connect_us,
        .first_byte_us = call->first_byte_us,
        .idle_us = call->idle_us,
        .total_us = x->opts.deadline_us ? x->opts.deadline_us - x->now_us : 0,
        .ca_file = call->ca_file,
        .proxy = call->proxy,
    };
}

/* Counters are totals and may be told twice; everything else is a piece of the answer. */
static void take_delta(void *self, const struct rv_llm_delta *d)
{
    rv_exchange *x = self;

    if (d->kind != RV_LLM_DELTA_USAGE)
        x->has_begun = true;
    if (d->kind != RV_LLM_DELTA_USAGE && d->kind != RV_LLM_DELTA_FINISH && !x->first_token_us)
        x->first_token_us = x->now_us > x->sent_us ? x->now_us - x->sent_us : 1; /* 0 is "not measured" */
    if (x->opts.on_delta)
        x->opts.on_delta(x->opts.self, d);
}

int provider_attempt_head(rv_exchange *x, const struct rv_http_head *head, rv_err **err)
{
    x->status = head->status;
    provider_hints_read(head, x->now_us, x->endpoint.call.max_retry_wait_us, &x->hints);
    rv_buf_add(&x->content_type, head->content_type.ptr,
               head->content_type.len < MAX_TYPE ? head->content_type.len : MAX_TYPE);
    if (x->content_type.rc == RV_E_NOMEM)
        return rv_buf_check(&x->content_type, "an answer's content type", err);
    if (!is_good(head->status))
        return 0;
    int rc = rv_wire_reader_new(&x->endpoint.target, head->content_type, take_delta, x, &x->reader, err);
    if (rc == 0)
        rv_wire_reader_set_tool_names(x->reader, x->tool_names);
    return rc;
}

int provider_attempt_body(rv_exchange *x, rv_str bytes, rv_err **err)
{
    size_t room;

    if (x->reader)
        return rv_wire_read(x->reader, bytes, err);
    room = RV_WIRE_MAX_ERROR - x->error_body.len; /* for a broken answer, the beginning is enough */
    rv_buf_add(&x->error_body, bytes.ptr, bytes.len < room ? bytes.len : room);
    return x->error_body.rc == RV_E_NOMEM ? rv_buf_check(&x->error_body, "an answer", err) : 0;
}

static enum rv_llm_error kind_of(enum rv_http_fault fault)
{
    switch (fault) {
    case RV_HTTP_UNREACHABLE:
    case RV_HTTP_CUT:
    case RV_HTTP_LOCAL:
        return RV_LLM_ERROR_CONNECTION;
    case RV_HTTP_CONNECT_TIME:
    case RV_HTTP_FIRST_BYTE_TIME:
    case RV_HTTP_IDLE_TIME:
    case RV_HTTP_TOTAL_TIME:
        return RV_LLM_ERROR_TIMEOUT;
    case RV_HTTP_OK: /* it ended before a head: no HTTP */
    case RV_HTTP_TOO_LARGE:
    case RV_HTTP_BAD_ANSWER:
        break;
    }
    return RV_LLM_ERROR_PROTOCOL;
}

/* The transport names the host first, and so does the text that this one becomes a part of. */
static const char *without_host(const rv_exchange *x, const char *text)
{
    size_t n = strlen(x->endpoint.host);
    const char *rest = text + n;

    if (strncmp(text, x->endpoint.host, n) != 0)
        return text;
    if (rest[0] == ':' && rest[1] != ' ')
        rest += 1 + strspn(rest + 1, "0123456789");
    return rest[0] == ':' && rest[1] == ' ' && rest[2] ? rest + 2 : text;
}

static void say_why(const rv_exchange *x, const struct rv_http_end *end, rv_buf *why)
{
    const char *text = end->text && end->text[0] ? without_host(x, end->text) : NULL;

    switch (end->fault) {
    case RV_HTTP_CONNECT_TIME:
        rv_buf_printf(why, "no connection within %" PRId64 " ms (connect_timeout_ms of the role)",
                      x->http.connect_us / RV_US_PER_MS);
        return;
    case RV_HTTP_FIRST_BYTE_TIME:
        rv_buf_printf(why, "no answer within %" PRId64 " ms (first_byte_timeout_ms of the role)",
                      x->http.first_byte_us / RV_US_PER_MS);
        return;
    case RV_HTTP_IDLE_TIME:
        rv_buf_printf(why, "nothing more came for %" PRId64 " ms (idle_timeout_ms of the role)",
                      x->http.idle_us / RV_US_PER_MS);
        return;
    case RV_HTTP_TOTAL_TIME:
        rv_buf_printf(why,
                      "not complete within the %" PRId64
                      " ms that were left (llm_timeout of execution, or timeout_seconds of the stage)",
                      x->http.total_us / RV_US_PER_MS);
        return;
    case RV_HTTP_UNREACHABLE:
        rv_buf_puts(why, text ? text : "no connection");
        return;
    case RV_HTTP_CUT:
        rv_buf_puts(why, text ? text : "the connection broke");
        return;
    case RV_HTTP_TOO_LARGE:
        rv_buf_puts(why, text ? text : "the answer is too large");
        return;
    case RV_HTTP_LOCAL:
        rv_buf_puts(why, text ? text : "the request could not be made");
        return;
    case RV_HTTP_OK:
    case RV_HTTP_BAD_ANSWER:
        break;
    }
    rv_buf_puts(why, text ? text : "the answer is not HTTP");
}

/* A used-up quota is rate_limited and not retryable: no header changes that. */
static void heed_hints(rv_exchange *x)
{
    struct rv_llm_reply *r = &x->reply;
    bool is_quota = r->answer.error_kind == RV_LLM_ERROR_RATE_LIMITED && !r->retryable;

    if (x->hints.should_retry >= 0 && !is_quota)
        r->retryable = x->hints.should_retry == 1;
    if (x->hints.retry_after_us > 0)
        r->answer.retry_after_us = x->hints.retry_after_us;
}

int provider_attempt_end(rv_exchange *x, const struct rv_http_end *end, rv_err **err)
{
    rv_buf why = RV_BUF_INIT(RV_WIRE_MAX_ERROR);
    bool good = is_good(x->status) && x->reader;
    int rc = 0;

    rv_llm_reply_fini(&x->reply);
    rv_llm_reply_init(&x->reply);
    x->was_local = end->fault == RV_HTTP_LOCAL || end->fault == RV_HTTP_TOTAL_TIME;
    say_why(x, end, &why);
    if (why.rc == RV_E_NOMEM) {
        rc = rv_buf_check(&why, "what cut an answer", err);
    } else if (good) {
        const char *cut = end->fault == RV_HTTP_OK ? NULL : rv_buf_cstr(&why);
        rc = rv_wire_end(x->reader, cut, kind_of(end->fault), &x->reply, err);
        if (end->fault == RV_HTTP_TOO_LARGE)
            x->reply.retryable = false; /* it would be as large again */
    } else if (x->status) {
        rc = rv_wire_read_fault(&x->endpoint.target, x->status, rv_buf_str(&x->content_type),
                                rv_buf_str(&x->error_body), &x->reply, err);
        if (rc == 0)
            heed_hints(x);
    } else {
        rv_llm_reply_fail(&x->reply, kind_of(end->fault), "%s", rv_buf_cstr(&why));
        if (end->refused_code == RV_E_FILES)
            x->reply.code = RV_FAILURE_NO_DESCRIPTORS;
    }
    rv_buf_fini(&why);
    if (rc < 0)
        return rc;
    x->reply.answer.first_token_us = x->first_token_us;
    x->attempt_may_be_billed =
        x->reply.failed && (good || (!x->status && end->was_sent) || x->reply.answer.may_be_billed);
    x->may_be_billed |= x->attempt_may_be_billed;
    return rv_buf_check(&x->reply.error, "what went wrong with a model", err);
}

bool rv_exchange_has_answer(const rv_exchange *x)
{
    return x->reader && rv_wire_is_done(x->reader);
}
