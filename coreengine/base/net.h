/* What is spoken on the net, without speaking it: addresses, frames, media types, statuses of HTTP. */
#ifndef RV_BASE_NET_H
#define RV_BASE_NET_H

#include <stdbool.h>

#include "coreengine/base/buf.h"

/* --- Addresses of the internet in one form: 16 bytes, IPv4 as mapped into IPv6 (::ffff:a.b.c.d). --- */
struct sockaddr;

#define RV_ADDRESS_MAX 48 /* bytes of one as text, with its NUL */

struct rv_address {
    unsigned char bytes[16];
};

struct rv_address rv_address_of_v4(const unsigned char v4[4]);
/** False: it is neither of IPv4 nor of IPv6; *out is zeroed. */
bool rv_address_read(const struct sockaddr *address, struct rv_address *out);
bool rv_address_is_v4(const struct rv_address *a);       /* bytes[12] to [15] are it */
bool rv_address_is_loopback(const struct rv_address *a); /* 127.0.0.0/8, ::1 */
/** Where packets to it go: behind 64:ff9b::/96 (NAT64) the IPv4 address in its end, else the address itself. Not for a
 * client's own address: what it says about itself must not make it local. */
struct rv_address rv_address_target(const struct rv_address *a);
void rv_address_write(const struct rv_address *a, char out[RV_ADDRESS_MAX]);

/* --- Frames out of bytes that may be cut anywhere: server-sent events, and lines of JSON.
 *
 * Pure: bytes in, events or lines out. Limits count the same bytes however they come: a line, and the data of one
 * event. --- */
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

/* --- Media types: of attachments, and of parts of an answer --- */
#define RV_MEDIA_TYPE_MAX 127 /* bytes, by RFC 6838 */

/** TYPE/SUBTYPE by RFC 6838, without parameters. */
bool rv_is_media_type(rv_str s);

/* --- HTTP statuses in words: for status lines and for the titles of problem documents --- */
/** "Not Found" for 404; NULL: the status is not listed. Static. */
const char *rv_http_reason(int status);

#endif
