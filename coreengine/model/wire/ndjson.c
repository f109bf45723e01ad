/* Lines of JSON out of bytes that may be cut anywhere. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/wire/wire.h"

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
