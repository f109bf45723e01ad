/* Messages on a pipe: bytes that may be cut anywhere become lines, one message each.
 *
 * A line ends in a line feed; a carriage return before it is removed, and blank lines are skipped. A line above the
 * limit is reported once, and reading continues with the next line: a peer that sent too much is told so, not
 * disconnected. */
#ifndef RV_MCP_LINES_H
#define RV_MCP_LINES_H

#include "coreengine/mcp/message.h"

#define RV_MCP_MAX_LINE RV_MCP_MAX_MESSAGE /* bytes without the end of the line */

/** is_whole false: the line is longer than the limit, and `line` is empty. A negative code stops the reading and is
 *  passed up. */
typedef int (*rv_mcp_line_fn)(void *self, rv_str line, bool is_whole, rv_err **err);

struct rv_mcp_lines {
    size_t max_line;
    rv_buf line;   /* the beginning of a line whose end has not come yet */
    bool is_whole; /* false: that line is above the limit, and its rest is skipped */
    rv_mcp_line_fn on_line;
    void *self; /* borrowed */
};
void rv_mcp_lines_init(struct rv_mcp_lines *lines, size_t max_line, rv_mcp_line_fn on_line, void *self);
void rv_mcp_lines_fini(struct rv_mcp_lines *lines);
/** Call on_line for each line that ends in these bytes. RV_E_NOMEM, or what on_line returned; the rest is then lost. */
RV_MUST_CHECK int rv_mcp_lines_read(struct rv_mcp_lines *lines, rv_str bytes, rv_err **err);
/** The bytes are over: hands over a last line without an end. */
RV_MUST_CHECK int rv_mcp_lines_end(struct rv_mcp_lines *lines, rv_err **err);

#endif
