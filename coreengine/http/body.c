/* The body of a request: what its Content-Length or its chunks hold, within limits. llhttp decodes it. No I/O.
 *
 * llhttp takes a lone LF for the end of the last chunk, passes trailers on as if they were fields, and has no limits
 * for the extensions of chunks: these are refused here. */
#include "coreengine/http/http_internal.h"

#define MAX_FRAMING ((size_t)64 << 10) /* bytes of chunk heads beyond 8 a byte: else all may be heads */

static int stop(struct rv_body *b, int status, const char *code, const char *detail)
{
    if (b->why.status == 0)
        b->why = (struct rv_httpd_fault){status, code, detail};
    return -1;
}

static int on_bytes(llhttp_t *p, const char *at, size_t len)
{
    struct rv_body *b = p->data;

    rv_buf_add(&b->bytes, at, len);
    if (b->bytes.rc == RV_E_LIMIT)
        return stop(b, 413, "body_too_large", "the body of the request is too large");
    if (b->bytes.rc != 0)
        return stop(b, 500, "no_memory", "the server is out of memory");
    return 0;
}

static int on_trailer(llhttp_t *p, const char *at, size_t len)
{
    (void)at, (void)len;
    return stop(p->data, 400, "bad_request", "fields behind the body are not allowed");
}

static int on_end(llhttp_t *p)
{
    struct rv_body *b = p->data;

    b->is_complete = true;
    return HPE_PAUSED; /* what follows is not ours */
}

static const llhttp_settings_t settings = {
    .on_body = on_bytes, .on_header_field = on_trailer, .on_header_value = on_trailer, .on_message_complete = on_end};

static void keep_tail(struct rv_body *b, rv_str bytes)
{
    size_t n = bytes.len < sizeof b->tail ? bytes.len : sizeof b->tail;

    memmove(b->tail, b->tail + n, sizeof b->tail - n);
    memcpy(b->tail + sizeof b->tail - n, bytes.ptr + bytes.len - n, n);
}

static bool refuse(struct rv_body *b, const char *detail)
{
    return stop(b, 400, "bad_request", detail) == 0;
}

static bool is_framing_right(struct rv_body *b)
{
    if (!b->is_chunked)
        return true;
    if (b->n_raw > b->bytes.len && b->n_raw - b->bytes.len > MAX_FRAMING + 8 * b->bytes.len)
        return refuse(b, "the chunks of the body say more about themselves than they hold");
    if (b->is_complete && memcmp(b->tail, "\r\n\r\n", sizeof b->tail) != 0)
        return refuse(b, "the last chunk does not end in two line ends");
    return true;
}

int httpd_body_read(struct rv_body *b, rv_str bytes, size_t *used, struct rv_httpd_fault *why)
{
    b->parser.settings = (void *)&settings;
    b->parser.data = b;
    llhttp_errno_t rc = llhttp_execute(&b->parser, bytes.ptr, bytes.len);
    *used = rc == HPE_OK ? bytes.len : (size_t)(llhttp_get_error_pos(&b->parser) - bytes.ptr);
    if (rc == HPE_OK || b->is_complete) {
        b->n_raw += *used;
        if (*used > 0)
            keep_tail(b, (rv_str){bytes.ptr, *used});
        if (is_framing_right(b))
            return b->is_complete ? 1 : 0;
    }
    RV_IGNORE(refuse(b, "the chunks of the body are not well-formed"), "what the callbacks said comes first");
    *why = b->why;
    return -1;
}
