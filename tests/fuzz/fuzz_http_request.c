/* Any bytes as a request: what is understood does not depend on how they were cut, and keeps its promises. */
#include <stdlib.h>

#include "coreengine/http/http_internal.h"
#include "tests/kit/fuzz.h"

#define MAX_BODY ((size_t)1 << 10) /* small, so that the limit is met too */

static const struct rv_httpd_limits limits = {.max_head = 2048, .max_fields = 16, .max_target = 512};

static void check_text(rv_str s)
{
    require(rv_utf8_valid(s, NULL) && (s.len == 0 || !memchr(s.ptr, '\0', s.len)));
}

static void check_head(const struct rv_head *h)
{
    const struct rv_httpd_request *req = &h->req;

    require(req->host.len > 0 && req->path.len > 0 && req->path.ptr[0] == '/' && req->n_fields <= limits.max_fields);
    require(!h->is_chunked || (h->length == 0 && !h->is_1_0));
    for (size_t i = 0; i < req->n_segments; i++) {
        check_text(req->segments[i]);
        require(!rv_str_is(req->segments[i], ".") && !rv_str_is(req->segments[i], ".."));
        require(req->segments[i].len > 0 || i + 1 == req->n_segments);
    }
    for (size_t i = 0; i < req->n_query; i++) {
        check_text(req->query[i].name);
        check_text(req->query[i].value);
    }
    for (size_t i = 0; i < req->n_fields; i++) {
        require(httpd_is_token(req->fields[i].name));
        for (size_t j = 0; j < req->fields[i].value.len; j++)
            require(!strchr("\r\n", req->fields[i].value.ptr[j]));
    }
}

static void put_fields(rv_buf *log, const struct rv_httpd_field *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(log, "%.*s=%.*s\n", RV_STR_ARG(f[i].name), RV_STR_ARG(f[i].value));
}

static void read_body(struct rv_head *h, const llhttp_t *parser, rv_str rest, size_t step, rv_buf *log)
{
    struct rv_body b = {.parser = *parser, .is_chunked = h->is_chunked, .bytes = RV_BUF_INIT(MAX_BODY)};
    struct rv_httpd_fault why = {0};
    size_t used = 0, total = 0;
    int rc = 0;

    while (rc == 0 && rest.len > 0) {
        rc = httpd_body_read(&b, (rv_str){rest.ptr, step < rest.len ? step : rest.len}, &used, &why);
        rest = (rv_str){rest.ptr + used, rest.len - used};
        total += used;
    }
    require(b.bytes.len <= MAX_BODY && (rc != 1 || h->is_chunked || b.bytes.len == h->length));
    /* Where a body is refused, and how far it was read until then, may depend on the pieces. */
    rv_buf_printf(log, "body %d %zu", rc, rc == 1 ? total : 0);
    if (rc == 1)
        rv_buf_add_str(log, rv_buf_str(&b.bytes));
    rv_buf_fini(&b.bytes);
}

static void read_request(rv_str bytes, size_t step, rv_buf *log)
{
    struct rv_head_scan scan = {0};
    struct rv_httpd_fault why = {0};
    struct rv_head h;
    llhttp_t parser;
    ptrdiff_t n = 0;

    for (size_t len = 0; n == 0 && len < bytes.len;) {
        len = step < bytes.len - len ? len + step : bytes.len;
        n = httpd_head_scan(&scan, &limits, (rv_str){bytes.ptr, len}, &why);
    }
    if (n <= 0 || !httpd_head_read((rv_str){bytes.ptr, (size_t)n}, &scan, &limits, &h, &parser, &why)) {
        /* Which of two faults is met first may depend on the pieces, not whether there is one. */
        rv_buf_printf(log, "%s\n", n == 0 ? "more" : "refused");
        return;
    }
    check_head(&h);
    rv_buf_printf(log, "%d %.*s %.*s %d%d%d %llu\n", (int)h.req.method, RV_STR_ARG(h.req.host), RV_STR_ARG(h.req.path),
                  h.is_1_0, h.wants_close, h.wants_continue, (unsigned long long)h.length);
    put_fields(log, h.req.query, h.req.n_query);
    put_fields(log, h.req.fields, h.req.n_fields);
    if (h.is_chunked || h.length > 0)
        read_body(&h, &parser, (rv_str){bytes.ptr + n, bytes.len - (size_t)n}, step, log);
    free(h.block);
}

RV_FUZZ_TARGET(http_request)
{
    rv_buf at_once = RV_BUF_INIT(SIZE_MAX / 2), in_pieces = RV_BUF_INIT(SIZE_MAX / 2);
    size_t steps[2] = {1, 0};

    if (size == 0)
        return 0;
    rv_str bytes = {(const char *)data + 1, size - 1};
    steps[1] = (size_t)data[0] + 1;
    read_request(bytes, SIZE_MAX / 2, &at_once);
    for (size_t i = 0; i < RV_COUNT(steps); i++) {
        rv_buf_clear(&in_pieces);
        read_request(bytes, steps[i], &in_pieces);
        require(rv_str_eq(rv_buf_str(&at_once), rv_buf_str(&in_pieces)));
    }
    rv_buf_fini(&at_once);
    rv_buf_fini(&in_pieces);
    return 0;
}
