/* A script of lines played through an encoder. The first line has the options: {protocol, run_id, session_id, ...};
 * then come events and deltas as in docs/reference/events.md, {"type":"question", ...} is an open question, and the
 * last line is {"type":"end", "status", ...}. */
#ifndef RV_TESTS_PROTOCOLS_PLAY_H
#define RV_TESTS_PROTOCOLS_PLAY_H

#include "coreengine/protocols/protocols.h"

/** Appends what the client is sent. protocol NULL: as the script says; else its name, "+whole" behind it for one
 * answer. with_ids: each line gives its number as the id of what it tells. RV_E_INVALID: a line cannot be read. */
RV_MUST_CHECK int play(rv_str script, const char *protocol, bool with_ids, rv_buf *out, rv_err **err);

#endif
