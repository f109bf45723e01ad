/* libcurl's verdicts as faults, and the sentence for people. It names the host and the reason, never a header, a path
 * or a query: those may hold keys. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coreengine/model/http/http_internal.h"

/* What libcurl says when the other side talks, but not HTTP. */
static bool is_bad_answer(CURLcode code)
{
    static const CURLcode codes[] = {CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING,
                                     CURLE_WRITE_ERROR, CURLE_FILESIZE_EXCEEDED};

    for (size_t i = 0; i < RV_COUNT(codes); i++)
        if (code == codes[i])
            return true;
    return false;
}

static bool is_local(CURLcode code)
{
    static const CURLcode codes[] = {CURLE_FAILED_INIT,          CURLE_NOT_BUILT_IN,         CURLE_OUT_OF_MEMORY,
                                     CURLE_ABORTED_BY_CALLBACK,  CURLE_UNKNOWN_OPTION,       CURLE_URL_MALFORMAT,
                                     CURLE_SETOPT_OPTION_SYNTAX, CURLE_SSL_CACERT_BADFILE,   CURLE_READ_ERROR,
                                     CURLE_RECURSIVE_API_CALL,   CURLE_UNRECOVERABLE_POLL,   CURLE_UNSUPPORTED_PROTOCOL,
                                     CURLE_SSL_ENGINE_NOTFOUND,  CURLE_BAD_FUNCTION_ARGUMENT};

    for (size_t i = 0; i < RV_COUNT(codes); i++)
        if (code == codes[i])
            return true;
    return false;
}

bool rv_http_is_scarce(int os_error)
{
    return os_error == EMFILE || os_error == ENFILE || os_error == ENOBUFS || os_error == ENOMEM;
}

enum rv_http_fault rv_http_fault_of(const rv_http_call *c)
{
    bool was_sent = c->sent_us != 0;

    if (c->fault != RV_HTTP_OK)
        return c->fault;
    if (c->code == CURLE_OK) /* libcurl takes a head for complete when the connection ends in it */
        return c->head.phase == RV_HEAD_COMPLETE ? RV_HTTP_OK : RV_HTTP_CUT;
    if (was_sent && is_bad_answer(c->code))
        return RV_HTTP_BAD_ANSWER;
    /* libcurl gives up on one endless header line by running out of the memory that it allows itself. */
    if (c->code == CURLE_OUT_OF_MEMORY && c->answer_us && c->head.phase != RV_HEAD_COMPLETE)
        return RV_HTTP_BAD_ANSWER;
    if (is_local(c->code))
        return RV_HTTP_LOCAL;
    if (was_sent)
        return RV_HTTP_CUT;
    return c->code == CURLE_OPERATION_TIMEDOUT ? RV_HTTP_CONNECT_TIME : RV_HTTP_UNREACHABLE;
}

static const char *reason_of(const rv_http_call *c)
{
    if (c->reason)
        return c->reason;
    if (rv_http_is_scarce(c->os_error))
        return strerror(c->os_error);
    if (c->code == CURLE_OK)
        return "it ended in the head of the answer";
    return c->error[0] ? c->error : c->h->curl->easy_strerror(c->code);
}

static void no_control_characters(char *text)
{
    for (size_t left = strlen(text); left > 0; text++, left--)
        for (size_t n = rv_utf8_control(text, left); n > 0; n--)
            text[n - 1] = ' ';
}

void rv_http_fault_text(const rv_http_call *c, enum rv_http_fault fault, char out[RV_HTTP_TEXT_MAX])
{
    const size_t max = RV_HTTP_TEXT_MAX;

    out[0] = '\0';
    switch (fault) {
    case RV_HTTP_OK:
        break;
    case RV_HTTP_UNREACHABLE:
        snprintf(out, max, "%s: no connection: %s", c->origin, reason_of(c));
        break;
    case RV_HTTP_CUT:
        snprintf(out, max, "%s: the connection broke: %s", c->origin, reason_of(c));
        break;
    case RV_HTTP_CONNECT_TIME:
        snprintf(out, max, "%s: no connection within %" PRId64 " ms: %s", c->origin, c->connect_us / 1000,
                 reason_of(c));
        break;
    case RV_HTTP_FIRST_BYTE_TIME:
        snprintf(out, max, "%s: no answer within %" PRId64 " ms", c->origin, c->first_byte_us / 1000);
        break;
    case RV_HTTP_IDLE_TIME:
        snprintf(out, max, "%s: silent for %" PRId64 " ms in the middle of the answer", c->origin, c->idle_us / 1000);
        break;
    case RV_HTTP_TOTAL_TIME:
        snprintf(out, max, "%s: not done within %" PRId64 " ms", c->origin, c->total_us / 1000);
        break;
    case RV_HTTP_TOO_LARGE:
        snprintf(out, max, "%s: the answer is larger than %zu bytes", c->origin, c->max_body);
        break;
    case RV_HTTP_BAD_ANSWER:
        snprintf(out, max, "%s: the answer is not valid HTTP: %s", c->origin, reason_of(c));
        break;
    case RV_HTTP_LOCAL:
        snprintf(out, max, "%s: not possible here: %s", c->origin, reason_of(c));
        break;
    }
    no_control_characters(out);
}
