/* The events of a run with the pieces of its model calls: see pieces.c. */
#ifndef RV_SERVER_PIECES_INTERNAL_H
#define RV_SERVER_PIECES_INTERNAL_H

#include "coreengine/base/base.h"
#include "coreengine/store/store.h"

struct srv_piece_cursor { /* what the client has: events up to seq, and that many pieces behind it */
    int64_t seq, piece;
};
/** "17" or "17.2". */
bool srv_piece_cursor_read(rv_str text, struct srv_piece_cursor *out);

struct srv_pieces;
/** is_lines: lines of JSON, else server-sent events. NULL: no memory. */
struct srv_pieces *srv_pieces_new(const struct srv_piece_cursor *from, bool is_lines);
void srv_pieces_free(struct srv_pieces *p);
/** An event of the journal, in order; one that is known changes nothing. */
RV_MUST_CHECK int srv_pieces_event(struct srv_pieces *p, int64_t seq, rv_str line, rv_err **err);
/** The next lines of the run's stream; those that were read are passed over. What the client is sent is appended. 1: a
 * line needs an event that is not known yet; hand the lines over again when it is. */
RV_MUST_CHECK int srv_pieces_lines(struct srv_pieces *p, const struct rv_stream_part *part, rv_buf *out, rv_err **err);
/** No process writes lines: the events that are known are told. */
RV_MUST_CHECK int srv_pieces_flush(struct srv_pieces *p, rv_buf *out, rv_err **err);

#endif
