/* Any text as SQL: it is refused with a code and a place, or both databases get a text, which is the same each time and
 * has neither comments nor a second statement. */
#include <stdlib.h>

#include "coreengine/rem/rem.h"
#include "tests/kit/fuzz.h"

/* Outside of quotes there is no semicolon and no comment. */
static void check_text(rv_str text)
{
    char quote = 0;

    require(text.len > 0);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i], next = i + 1 < text.len ? text.ptr[i + 1] : 0;
        if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else
            require(c != ';' && c != '\0' && !(c == '-' && next == '-') && !(c == '/' && next == '*'));
    }
    require(!quote);
}

static void check(rv_str text, enum rv_rem_policy policy, enum rv_rem_backend backend)
{
    struct rv_rem_sql_opts opts = {.policy = policy, .backend = backend, .may_explain = true};
    struct rv_rem_sql sql, again;
    struct rv_rem_fault fault;
    rv_err *err = NULL;
    int rc;

    opts.tables = rv_rem_tables(&opts.n_tables);
    rc = rv_rem_write_sql(text, &opts, &sql, &fault, &err);
    require((rc == 0) == (err == NULL) && (rc == 0) == (fault.code == RV_REM_OK) && rc != RV_E_NOMEM);
    require(rc == 0 || (fault.line > 0 && fault.col > 0 && rv_err_text(err)[0]));
    rv_err_free(err);
    if (rc < 0)
        return;
    if (policy == RV_REM_STRICT)
        check_text(sql.text);
    require(rv_rem_write_sql(text, &opts, &again, NULL, NULL) == 0 && rv_str_eq(sql.text, again.text));
    rv_rem_sql_fini(&again);
    rv_rem_sql_fini(&sql);
}

RV_FUZZ_TARGET(rem_sql)
{
    rv_str text = {(const char *)data, size};

    check(text, RV_REM_STRICT, RV_REM_SQLITE);
    check(text, RV_REM_STRICT, RV_REM_POSTGRES);
    check(text, RV_REM_COMPAT, RV_REM_SQLITE);
    return 0;
}
