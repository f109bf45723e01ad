/* What a reader says of a body, as a few lines of text that tests compare:
 *
 *   text Hello             a delta: text, thinking
 *   start 0 call_7 find    a tool call starts, its arguments, its end
 *   arguments 0 {"a":1}
 *   end 0
 *   usage 61 14            input, output; then, where they are not 0, cached=, written=, reasoning=
 *   finish stop
 *   = Hello                the reply: its text
 *   calls [...]            if there are any
 *   opaque {...}
 *   usage 61 14
 *   ! overloaded retryable billed: why     in place of "finish ..." when it failed */
#ifndef RV_TESTS_WIRE_HEAR_H
#define RV_TESTS_WIRE_HEAR_H

#include "coreengine/model/wire/wire_internal.h"

struct hear {
    const struct rv_wire_target *target;
    const char *content_type; /* NULL: text/event-stream */
    size_t first, step;       /* the first piece, and all others; 0: the rest at once */
    bool no_short_way;
    bool only_reply; /* no deltas */
    const char *why; /* what cut the body; NULL: nothing */
    enum rv_llm_error kind;
};
/** free() it. Fails the test when the reader fails. */
char *hear(const struct hear *h, rv_str body);
/** The line feeds of text replaced by end; free() it. */
char *with_line_ends(const char *text, const char *end);
/** Compares and frees got; shows where it differs. */
void same_text(const char *what, char *got, const char *want);

#endif
