/* The runner's standard output, for files of the runner that are compiled into tests. */
#include "coreengine/cli/cli.h"

#include <stdio.h>

bool cli_out_now(rv_str text)
{
    bool written = fwrite(text.ptr, 1, text.len, stdout) == text.len;

    return fflush(stdout) == 0 && written;
}
