/* protocols_play PROTOCOL [ids] < SCRIPT: the bytes that a client is sent, on standard output. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/protocols/play.h"

int main(int argc, char **argv)
{
    rv_buf script = RV_BUF_INIT((size_t)256 << 20), out = RV_BUF_INIT((size_t)256 << 20), text = RV_BUF_INIT(65536);
    rv_err *err = NULL;

    int rc = rv_file_read("-", &script, &err);
    if (rc == 0)
        rc = play(rv_buf_str(&script), argc > 1 ? argv[1] : NULL, argc > 2, &out, &err);
    fwrite(rv_buf_cstr(&out), 1, out.len, stdout);
    if (rc < 0) {
        rv_err_write_text(err, true, &text);
        fputs(rv_buf_cstr(&text), stderr);
    }
    rv_err_free(err);
    rv_buf_fini(&script);
    rv_buf_fini(&out);
    rv_buf_fini(&text);
    return rc < 0;
}
