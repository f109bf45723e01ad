#include <stdlib.h>
#include <string.h>

#include "tests/conformance/rem/suites.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"
#include "tests/kit/suites.h"

struct rv_rem_sql_opts strict_options(enum rv_rem_backend backend)
{
    struct rv_rem_sql_opts opts = {.policy = RV_REM_STRICT, .backend = backend, .now_us = NOW_US};

    opts.tables = rv_rem_tables(&opts.n_tables);
    return opts;
}

void each_line(const char *name, void (*each)(void *self, char *line), void *self)
{
    char *path = rv_kit_path(RV_SOURCE_DIR "/tests/conformance/rem", name), *text = rv_kit_read(path), *next;

    for (char *line = text; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (line[0] && line[0] != '#')
            each(self, line);
    }
    free(text);
    free(path);
}

int main(void)
{
    static TCase *(*const cases[])(void) = {hostile_case, portable_case};

    rv_kit_postgres();
    return rv_kit_run_cases("rem_statements", cases, RV_COUNT(cases));
}
