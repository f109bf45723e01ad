/* Any bytes as lines, cut by their own first byte: the same lines as in one piece, none with a line feed or too long.
 */
#include <stdlib.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/fuzz.h"

#define MAX_LINE 40 /* short, so that inputs cross it */

static int note(void *self, rv_str line, bool is_whole, rv_err **err)
{
    rv_buf *seen = self;

    (void)err;
    require(line.len <= MAX_LINE && (line.len > 0) == is_whole);
    require(!is_whole || !memchr(line.ptr, '\n', line.len));
    rv_buf_putc(seen, is_whole ? '[' : '!');
    rv_buf_add_str(seen, line);
    return 0;
}

static void run(rv_str bytes, size_t step, rv_buf *seen)
{
    struct rv_mcp_lines lines;

    rv_mcp_lines_init(&lines, MAX_LINE, note, seen);
    for (; bytes.len > 0; bytes.ptr += step, bytes.len -= step) {
        step = step < bytes.len ? step : bytes.len;
        require(rv_mcp_lines_read(&lines, (rv_str){bytes.ptr, step}, NULL) == 0);
    }
    require(rv_mcp_lines_end(&lines, NULL) == 0);
    rv_mcp_lines_fini(&lines);
}

RV_FUZZ_TARGET(mcp_lines)
{
    rv_buf whole = RV_BUF_INIT(2 * size + 10), pieces = RV_BUF_INIT(2 * size + 10);

    if (size == 0)
        return 0;
    run((rv_str){(const char *)data + 1, size - 1}, size, &whole);
    run((rv_str){(const char *)data + 1, size - 1}, (size_t)data[0] % 16 + 1, &pieces);
    require(rv_str_eq(rv_buf_str(&whole), rv_buf_str(&pieces)));
    rv_buf_fini(&whole);
    rv_buf_fini(&pieces);
    return 0;
}
