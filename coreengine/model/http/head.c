/* The head of an answer, line by line as libcurl hands it over. Heads of 1xx answers come first and are skipped,
 * trailers come last and are ignored; both count towards the limits, so that neither can be endless. */
#include <string.h>

#include "coreengine/model/http/http_internal.h"

/* "HTTP/1.1 200 OK": the number, or -1. */
static int status_of(rv_str line)
{
    const char *space = memchr(line.ptr, ' ', line.len);

    if (!space || line.ptr + line.len - space < 4)
        return -1;
    int status = 0;
    for (int i = 1; i <= 3; i++) {
        if (space[i] < '0' || space[i] > '9')
            return -1;
        status = status * 10 + (space[i] - '0');
    }
    return status;
}

static bool refuse(struct rv_head_reader *r, const char *problem)
{
    r->problem = problem;
    return false;
}

static bool add_field(struct rv_head_reader *r, rv_str line)
{
    if (line.ptr[0] == ' ' || line.ptr[0] == '\t') { /* a value that goes on in the next line, as it used to be done */
        if (r->n_fields == 0)
            return refuse(r, "its head begins with half a header");
        rv_buf_truncate(&r->text, r->text.len - 1);
        rv_buf_putc(&r->text, ' ');
    } else if (++r->n_fields > RV_HTTP_MAX_HEADERS)
        return refuse(r, "it has too many headers");
    rv_buf_add_str(&r->text, rv_str_trim(line));
    rv_buf_putc(&r->text, '\n');
    return r->text.rc == 0 ? false : refuse(r, "no memory for its head");
}

bool rv_head_line(struct rv_head_reader *r, rv_str line)
{
    r->n_bytes += line.len;
    if (r->n_bytes > RV_HTTP_MAX_HEAD)
        return refuse(r, "its head is too large");
    while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
        line.len--;

    switch (r->phase) {
    case RV_HEAD_STATUS:
        if (line.len == 0)
            return false; /* the end of trailers to a 1xx answer, at worst */
        r->status = status_of(line);
        r->phase = RV_HEAD_FIELDS;
        return r->status < 100 ? refuse(r, "its first line has no status") : false;
    case RV_HEAD_FIELDS:
        if (line.len > 0)
            return add_field(r, line);
        r->phase = r->status < 200 ? RV_HEAD_STATUS : RV_HEAD_COMPLETE;
        if (r->phase == RV_HEAD_COMPLETE)
            return true;
        rv_buf_clear(&r->text);
        r->n_fields = 0;
        return false;
    case RV_HEAD_COMPLETE:
        return false;
    }
    return false;
}

/* The value of a header by its lower-case name; ptr NULL: it is not there. */
static rv_str header(const struct rv_http_head *head, const char *name)
{
    for (size_t i = 0; i < head->n_headers; i++)
        if (rv_str_is(head->headers[i].name, name))
            return head->headers[i].value;
    return (rv_str){NULL, 0};
}

void rv_head_read(struct rv_head_reader *r, struct rv_http_head *out)
{
    *out = (struct rv_http_head){.status = r->status};
    if (r->text.len == 0)
        return;
    char *at = r->text.ptr, *end = at + r->text.len;
    while (at < end && out->n_headers < RV_HTTP_MAX_HEADERS) {
        char *eol = memchr(at, '\n', (size_t)(end - at));
        char *colon = memchr(at, ':', (size_t)(eol - at));
        if (colon) {
            for (char *p = at; p < colon; p++)
                if (*p >= 'A' && *p <= 'Z')
                    *p = (char)(*p - 'A' + 'a');
            out->headers[out->n_headers].name = rv_str_trim((rv_str){at, (size_t)(colon - at)});
            out->headers[out->n_headers++].value = rv_str_trim((rv_str){colon + 1, (size_t)(eol - colon - 1)});
        }
        at = eol + 1;
    }
    out->content_type = header(out, "content-type");
}
