/* Any bytes as a stream of events or of lines: what comes out does not depend on how they were cut. */
#include <stdlib.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/fuzz.h"

#define MAX_PIECE 64 /* small, so that the limit is met too */

static int on_event(void *self, const struct rv_sse_event *ev, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    if (ev->data.len > MAX_PIECE)
        abort();
    rv_buf_putc(b, 'e');
    rv_buf_add_str(b, ev->name);
    rv_buf_putc(b, '\0');
    rv_buf_add_str(b, ev->data);
    return 0;
}

static int on_line(void *self, rv_str line, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    if (line.len == 0 || line.len > MAX_PIECE)
        abort();
    rv_buf_putc(b, 'l');
    rv_buf_add_str(b, line);
    return 0;
}

/* Both readers over the bytes in pieces of that size; how each ended goes into the log. */
static void read_all(rv_str bytes, size_t step, rv_buf *log)
{
    rv_sse *s = rv_sse_new(MAX_PIECE, on_event, log);
    rv_ndjson *n = rv_ndjson_new(MAX_PIECE, on_line, log);
    int rc = s ? 0 : RV_E_NOMEM;

    for (size_t at = 0; rc == 0 && at < bytes.len; at += step)
        rc = rv_sse_read(s, (rv_str){bytes.ptr + at, step < bytes.len - at ? step : bytes.len - at}, NULL);
    rv_buf_printf(log, "sse %d\n", rc);
    rc = n ? 0 : RV_E_NOMEM;
    for (size_t at = 0; rc == 0 && at < bytes.len; at += step)
        rc = rv_ndjson_read(n, (rv_str){bytes.ptr + at, step < bytes.len - at ? step : bytes.len - at}, NULL);
    if (rc == 0)
        rc = rv_ndjson_end(n, NULL);
    rv_buf_printf(log, "lines %d\n", rc);
    rv_sse_free(s);
    rv_ndjson_free(n);
}

RV_FUZZ_TARGET(wire_sse)
{
    rv_buf at_once = RV_BUF_INIT(SIZE_MAX / 2), in_pieces = RV_BUF_INIT(SIZE_MAX / 2);
    rv_str bytes;
    size_t steps[2] = {1, 0};

    if (size == 0)
        return 0;
    bytes = (rv_str){(const char *)data + 1, size - 1};
    steps[1] = (size_t)data[0] + 1;
    read_all(bytes, SIZE_MAX / 2, &at_once);
    for (size_t i = 0; i < RV_COUNT(steps); i++) {
        rv_buf_clear(&in_pieces);
        read_all(bytes, steps[i], &in_pieces);
        if (!rv_str_eq(rv_buf_str(&at_once), rv_buf_str(&in_pieces)))
            abort();
    }
    rv_buf_fini(&at_once);
    rv_buf_fini(&in_pieces);
    return 0;
}
