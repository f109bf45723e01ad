/* Lines out of bytes. A line that lies whole in the bytes of one call is handed over where it is; only one that is cut
 * is copied, so the limit is the same for both. */
#include "coreengine/mcp/mcp.h"

void rv_mcp_lines_init(struct rv_mcp_lines *lines, size_t max_line, rv_mcp_line_fn on_line, void *self)
{
    *lines = (struct rv_mcp_lines){.max_line = max_line, .is_whole = true, .on_line = on_line, .self = self};
    rv_buf_init(&lines->line, max_line + 1); /* the carriage return does not count */
}

void rv_mcp_lines_fini(struct rv_mcp_lines *lines)
{
    rv_buf_fini(&lines->line);
}

/* Add to the line that is cut. Once it is too long, none of its bytes are kept. */
static int keep(struct rv_mcp_lines *lines, rv_str piece, rv_err **err)
{
    if (!lines->is_whole)
        return 0;
    if (piece.len > lines->line.max - lines->line.len) {
        lines->is_whole = false;
        rv_buf_fini(&lines->line);
        rv_buf_init(&lines->line, lines->max_line + 1);
        return 0;
    }
    rv_buf_add_str(&lines->line, piece);
    return rv_buf_check(&lines->line, "a line", err);
}

static int hand_over(struct rv_mcp_lines *lines, rv_str line, rv_err **err)
{
    bool is_whole = lines->is_whole;

    lines->is_whole = true;
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (!is_whole || line.len > lines->max_line)
        return lines->on_line(lines->self, (rv_str){NULL, 0}, false, err);
    return rv_str_trim(line).len ? lines->on_line(lines->self, line, true, err) : 0;
}

int rv_mcp_lines_read(struct rv_mcp_lines *lines, rv_str bytes, rv_err **err)
{
    while (bytes.len > 0) {
        const char *stop = memchr(bytes.ptr, '\n', bytes.len);
        rv_str line = {bytes.ptr, stop ? (size_t)(stop - bytes.ptr) : bytes.len};
        bool is_cut = !stop || lines->line.len > 0 || !lines->is_whole;
        int rc = is_cut ? keep(lines, line, err) : 0;
        if (rc < 0 || !stop)
            return rc;
        rc = hand_over(lines, is_cut ? rv_buf_str(&lines->line) : line, err);
        rv_buf_clear(&lines->line);
        if (rc < 0)
            return rc;
        bytes = (rv_str){stop + 1, bytes.len - line.len - 1};
    }
    return 0;
}

int rv_mcp_lines_end(struct rv_mcp_lines *lines, rv_err **err)
{
    int rc = hand_over(lines, rv_buf_str(&lines->line), err);

    rv_buf_clear(&lines->line);
    return rc;
}
