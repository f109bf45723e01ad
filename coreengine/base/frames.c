/* Frames out of bytes that may be cut anywhere: server-sent events, and lines of JSON.
 *
 * A line that lies whole in what was handed in is looked at where it is; only one that is cut is copied. So the limit
 * counts the same bytes however they come: a line, and the data of one event. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/net.h"

/* --- server-sent events --- */

#define MAX_NAME 256 /* of an event's name; no kind of event that is read here has a longer one */

struct rv_sse {
    size_t max_event;
    rv_sse_fn on_event;
    void *self;
    rv_buf line; /* the beginning of a line whose end is still to come */
    rv_buf data, name;
    rv_buf id, last_id; /* of the event that is read; of the last complete one */
    int64_t retry_ms;   /* -1: none was sent */
    bool has_data;      /* one `data:` was there, if only an empty one */
    bool is_unknown;    /* the name of the event is too long for any that is read here */
    bool skip_lf;       /* the last byte was a carriage return: a line feed belongs to it */
    bool has_started;   /* the first line is over; only that one may open with a byte order mark */
};

rv_sse *rv_sse_new(size_t max_event, rv_sse_fn on_event, void *self)
{
    rv_sse *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->max_event = max_event;
    s->on_event = on_event;
    s->self = self;
    rv_buf_init(&s->line, max_event);
    rv_buf_init(&s->data, max_event);
    rv_buf_init(&s->name, MAX_NAME);
    rv_buf_init(&s->id, RV_SSE_MAX_ID);
    rv_buf_init(&s->last_id, RV_SSE_MAX_ID);
    s->retry_ms = -1;
    return s;
}

void rv_sse_free(rv_sse *s)
{
    if (!s)
        return;
    rv_buf_fini(&s->line);
    rv_buf_fini(&s->data);
    rv_buf_fini(&s->name);
    rv_buf_fini(&s->id);
    rv_buf_fini(&s->last_id);
    free(s);
}

rv_str rv_sse_last_id(const rv_sse *s)
{
    return rv_buf_str(&s->last_id);
}

int64_t rv_sse_retry_ms(const rv_sse *s)
{
    return s->retry_ms;
}

static int too_long(const rv_sse *s, rv_err **err)
{
    return RV_FAIL(err, RV_E_LIMIT, "a server-sent event is longer than %zu bytes", s->max_event);
}

static int check(const rv_sse *s, const rv_buf *b, rv_err **err)
{
    return b->rc == RV_E_LIMIT ? too_long(s, err) : rv_buf_check(b, "a server-sent event", err);
}

static int dispatch(rv_sse *s, rv_err **err)
{
    struct rv_sse_event ev = {rv_buf_str(&s->name), rv_buf_str(&s->data)};
    int rc;

    rv_buf_clear(&s->last_id);
    rv_buf_add_str(&s->last_id, rv_buf_str(&s->id));
    rc = check(s, &s->last_id, err);
    if (rc == 0 && s->has_data && !s->is_unknown)
        rc = s->on_event(s->self, &ev, err);
    rv_buf_clear(&s->name);
    rv_buf_clear(&s->data);
    s->has_data = s->is_unknown = false;
    return rc;
}

/* An id is sent back in a header. */
static bool is_id(rv_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7F)
            return false;
    return value.len <= RV_SSE_MAX_ID;
}

static int64_t read_retry(rv_str value)
{
    int64_t ms = 0;

    for (size_t i = 0; i < value.len; i++)
        ms = rv_is_digit(value.ptr[i]) && ms >= 0 && ms < INT64_C(1) << 40 ? ms * 10 + value.ptr[i] - '0' : -1;
    return value.len ? ms : -1;
}

static int read_field(rv_sse *s, rv_str field, rv_str value, rv_err **err)
{
    if (rv_str_is(field, "data")) {
        if (s->has_data)
            rv_buf_putc(&s->data, '\n');
        s->has_data = true;
        rv_buf_add_str(&s->data, value);
        return check(s, &s->data, err);
    }
    if (rv_str_is(field, "event")) {
        rv_buf_clear(&s->name);
        s->is_unknown = value.len > MAX_NAME;
        rv_buf_add_str(&s->name, s->is_unknown ? (rv_str){NULL, 0} : value);
        return check(s, &s->name, err);
    }
    if (rv_str_is(field, "id") && is_id(value)) { /* another leaves the one before it in place */
        rv_buf_clear(&s->id);
        rv_buf_add_str(&s->id, value);
        return check(s, &s->id, err);
    }
    if (rv_str_is(field, "retry") && read_retry(value) >= 0)
        s->retry_ms = read_retry(value);
    return 0; /* other fields may be new */
}

static int read_line(rv_sse *s, rv_str line, rv_err **err)
{
    const char *colon;
    rv_str field = line, value = {NULL, 0};

    if (line.len > s->max_event)
        return too_long(s, err);
    if (!s->has_started) {
        s->has_started = true;
        field = line = rv_utf8_unmark(line);
    }
    if (line.len == 0)
        return dispatch(s, err);
    colon = memchr(line.ptr, ':', line.len);
    if (colon == line.ptr)
        return 0; /* a comment, often only to keep the connection alive */
    if (colon) {
        field.len = (size_t)(colon - line.ptr);
        value = (rv_str){colon + 1, line.len - field.len - 1};
        if (value.len && value.ptr[0] == ' ') {
            value.ptr++;
            value.len--;
        }
    }
    return read_field(s, field, value, err);
}

/* Where the line ends that begins at p; NULL: not in these bytes. *lf: the next line feed, or the end of the bytes, as
 * it was found for a line before; it is looked for once, not again for each of a thousand lines before it. */
static const char *find_end(const char *p, const char *end, const char **lf)
{
    const char *cr;

    if (*lf < p) {
        *lf = memchr(p, '\n', (size_t)(end - p));
        if (!*lf)
            *lf = end;
    }
    cr = memchr(p, '\r', (size_t)(*lf - p));
    if (cr)
        return cr;
    return *lf < end ? *lf : NULL;
}

int rv_sse_read(rv_sse *s, rv_str bytes, rv_err **err)
{
    const char *p = bytes.ptr, *end = p + bytes.len, *stop, *lf;
    rv_str line;
    int rc;

    if (p == end)
        return 0;
    lf = memchr(p, '\n', bytes.len);
    if (!lf)
        lf = end;
    while (p < end) {
        if (s->skip_lf) {
            s->skip_lf = false;
            if (*p == '\n') {
                p++;
                continue;
            }
        }
        stop = find_end(p, end, &lf);
        line = (rv_str){p, (size_t)((stop ? stop : end) - p)};
        if (!stop || s->line.len) {
            rv_buf_add_str(&s->line, line);
            rc = check(s, &s->line, err);
            if (rc < 0 || !stop)
                return rc;
            line = rv_buf_str(&s->line);
        }
        s->skip_lf = *stop == '\r';
        p = stop + 1;
        rc = read_line(s, line, err);
        rv_buf_clear(&s->line);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- lines of JSON --- */

struct rv_ndjson {
    size_t max_line;
    rv_ndjson_fn on_line;
    void *self;
    rv_buf line; /* the beginning of a line whose end is still to come */
};

rv_ndjson *rv_ndjson_new(size_t max_line, rv_ndjson_fn on_line, void *self)
{
    rv_ndjson *n = calloc(1, sizeof *n);

    if (!n)
        return NULL;
    n->max_line = max_line;
    n->on_line = on_line;
    n->self = self;
    rv_buf_init(&n->line, max_line);
    return n;
}

void rv_ndjson_free(rv_ndjson *n)
{
    if (!n)
        return;
    rv_buf_fini(&n->line);
    free(n);
}

static int hand_over(rv_ndjson *n, rv_str line, rv_err **err)
{
    if (line.len > n->max_line)
        return RV_FAIL(err, RV_E_LIMIT, "a line is longer than %zu bytes", n->max_line);
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    return rv_str_trim(line).len ? n->on_line(n->self, line, err) : 0;
}

static int keep(rv_ndjson *n, rv_str piece, rv_err **err)
{
    rv_buf_add_str(&n->line, piece);
    if (n->line.rc == RV_E_LIMIT)
        return RV_FAIL(err, RV_E_LIMIT, "a line is longer than %zu bytes", n->max_line);
    return rv_buf_check(&n->line, "a line", err);
}

int rv_ndjson_read(rv_ndjson *n, rv_str bytes, rv_err **err)
{
    const char *p = bytes.ptr, *end = p + bytes.len, *stop;
    rv_str line;
    int rc;

    while (p < end) {
        stop = memchr(p, '\n', (size_t)(end - p));
        line = (rv_str){p, (size_t)((stop ? stop : end) - p)};
        if (!stop || n->line.len) {
            rc = keep(n, line, err);
            if (rc < 0 || !stop)
                return rc;
            line = rv_buf_str(&n->line);
        }
        p = stop + 1;
        rc = hand_over(n, line, err);
        rv_buf_clear(&n->line);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int rv_ndjson_end(rv_ndjson *n, rv_err **err)
{
    int rc = hand_over(n, rv_buf_str(&n->line), err);

    rv_buf_clear(&n->line);
    return rc;
}
