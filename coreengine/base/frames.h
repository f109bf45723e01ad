/* Frames out of bytes that may be cut anywhere: server-sent events, and lines of JSON.
 *
 * Pure: bytes in, events or lines out. Limits count the same bytes however they come: a line, and the data of one
 * event. */
#ifndef RV_BASE_FRAMES_H
#define RV_BASE_FRAMES_H

#include "coreengine/base/buf.h"

#define RV_SSE_MAX_ID 1024 /* bytes of an event's id; a longer one would not fit into the header of a request */

struct rv_sse_event {
    rv_str name; /* of `event:`; empty: none. An event whose name is longer than 256 bytes is passed over */
    rv_str data; /* lines joined by line feeds */
};
/** Return 0, or a negative code that stops the reading and is passed up. */
typedef int (*rv_sse_fn)(void *self, const struct rv_sse_event *ev, rv_err **err);
typedef struct rv_sse rv_sse;
rv_sse *rv_sse_new(size_t max_event, rv_sse_fn on_event, void *self); /* NULL: no memory */
/** RV_E_LIMIT (an event above max_event), RV_E_NOMEM, or what on_event returned. An unfinished event at the end of the
 * stream is dropped, as the standard has it: just free the reader. */
RV_MUST_CHECK int rv_sse_read(rv_sse *s, rv_str bytes, rv_err **err);
/** The id that a client sends as Last-Event-ID to continue after the last complete event, which may be one without
 * data. Empty: none. An id that cannot be sent (too long, or with a control character) is passed over, as the standard
 * has it for one with NUL: the one before it stays. Valid until the next read. */
rv_str rv_sse_last_id(const rv_sse *s);
/** The last `retry:` of the stream: the time to wait before it is opened again. -1: none. */
int64_t rv_sse_retry_ms(const rv_sse *s);
void rv_sse_free(rv_sse *s);

typedef int (*rv_ndjson_fn)(void *self, rv_str line, rv_err **err); /* without its end; never blank */
typedef struct rv_ndjson rv_ndjson;
rv_ndjson *rv_ndjson_new(size_t max_line, rv_ndjson_fn on_line, void *self);
/** Bytes, cut anywhere; each line that ends in them is passed on. RV_E_LIMIT: a line is longer than max_line;
 * RV_E_NOMEM; what on_line returned. */
RV_MUST_CHECK int rv_ndjson_read(rv_ndjson *n, rv_str bytes, rv_err **err);
RV_MUST_CHECK int rv_ndjson_end(rv_ndjson *n, rv_err **err); /* hands over a last line without an end */
void rv_ndjson_free(rv_ndjson *n);

#endif
