/* Markdown on a terminal, of any bytes: the same comes out however they are cut; no control character gets through but
 * line ends, tabs and the looks that are written here; the output is UTF-8. */
#include "coreengine/cli/markdown/markdown_internal.h"
#include "tests/kit/fuzz.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OUT ((size_t)64 << 20)

static void write_text(bool styled, rv_str text, size_t piece, rv_buf *out)
{
    rv_cli_md *md = cli_md_new(styled, 40);

    require(md != NULL);
    for (size_t i = 0, n; i < text.len; i += n) {
        n = text.len - i < piece ? text.len - i : piece;
        cli_md_add(md, (rv_str){text.ptr + i, n}, out);
    }
    cli_md_flush(md, out);
    cli_md_free(md);
}

/* Bytes of a look, "ESC [ 0 ... m"; 0: it is none. */
static size_t look_at(const char *at)
{
    size_t n = strncmp(at, "\033[0", 3) == 0 ? 3 + strspn(at + 3, "0123456789;") : 0;

    return n > 0 && at[n] == 'm' ? n + 1 : 0;
}

static void check(bool styled, const rv_buf *out)
{
    require(out->rc == 0 && rv_utf8_valid(rv_buf_str(out), NULL));
    for (size_t i = 0; i < out->len;) {
        size_t look = styled ? look_at(out->ptr + i) : 0;
        require(look || out->ptr[i] == '\n' || out->ptr[i] == '\t' || !rv_utf8_control(out->ptr + i, out->len - i));
        i += look ? look : 1;
    }
}

RV_FUZZ_TARGET(markdown)
{
    rv_str text = {(const char *)data, size};

    for (int styled = 0; styled < 2; styled++) {
        rv_buf whole = RV_BUF_INIT(MAX_OUT), cut = RV_BUF_INIT(MAX_OUT);
        write_text(styled, text, SIZE_MAX, &whole);
        write_text(styled, text, size > 0 ? 1 + data[0] % 5 : 1, &cut);
        require(rv_str_eq(rv_buf_str(&whole), rv_buf_str(&cut)));
        check(styled, &whole);
        rv_buf_fini(&whole);
        rv_buf_fini(&cut);
    }
    return 0;
}
