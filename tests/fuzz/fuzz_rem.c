/* Any text as a query: it is refused with a code and a place, or it is one of the modes; a mode word never becomes SQL.
 */
#include <stdlib.h>

#include "coreengine/rem/rem.h"
#include "tests/kit/fuzz.h"

static bool begins_with_mode(rv_str text)
{
    text = rv_str_trim(text);
    for (int m = 0; m < RV_REM_SQL; m++) {
        const char *word = rv_rem_mode_text((enum rv_rem_mode)m);
        size_t n = strlen(word);
        if (text.len >= n && strncasecmp(text.ptr, word, n) == 0 &&
            (text.len == n || memchr(" \t\r\n", text.ptr[n], 4)))
            return true;
    }
    return false;
}

RV_FUZZ_TARGET(rem)
{
    rv_str text = {(const char *)data, size};

    for (int natural = RV_REM_NATURAL_REJECT; natural <= RV_REM_NATURAL_SQL; natural++) {
        struct rv_rem_opts opts = {.natural = (enum rv_rem_natural)natural};
        struct rv_rem_fault fault;
        struct rv_rem_query q;
        rv_err *err = NULL;
        opts.tables = rv_rem_tables(&opts.n_tables);
        int rc = rv_rem_parse(text, &opts, &q, &fault, &err);
        require((rc == 0) == (err == NULL) && (rc == 0) == (fault.code == RV_REM_OK));
        require(rc == 0 || (fault.line > 0 && fault.col > 0 && rv_err_text(err)[0]));
        rv_err_free(err);
        if (rc < 0)
            continue;
        require(q.mode != RV_REM_SQL || (q.sql.len && !begins_with_mode(text)));
        require(q.mode != RV_REM_LOOKUP || (q.n_keys > 0 && q.n_keys <= RV_REM_MAX_KEYS));
        require(q.limit >= 1 && q.limit <= RV_REM_MAX_LIMIT && q.depth >= 0 && q.depth <= RV_REM_MAX_DEPTH);
        require(q.threshold >= 0 && q.threshold <= 1 && q.min_similarity >= 0 && q.min_similarity <= 1);
        rv_rem_query_fini(&q);
    }
    return 0;
}
