/* A visit fails: the error is recorded and the phase becomes PHASE_FAILED; end_failure.c does what follows from it. */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>

int rv_visit_fail(rv_visit *v, const char *type, rv_err **err, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    va_list ap;

    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    free(v->error_text);
    v->error_text = rv_buf_steal(&text, NULL);
    rv_buf_fini(&text);
    if (!v->error_text)
        return RV_FAIL(err, RV_E_NOMEM, "report the failure of stage \"%s\"", v->agent->name);
    v->error_type = type;
    v->failed_in = v->phase;
    v->phase = PHASE_FAILED;
    return 0;
}

int rv_visit_fail_cause(rv_visit *v, const char *type, rv_err *cause, rv_err **err)
{
    if (rv_err_is(cause, RV_E_NOMEM)) {
        if (err)
            *err = cause;
        else
            rv_err_free(cause);
        return RV_E_NOMEM;
    }
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct rv_src place = {NULL, 0, 0};
    for (const rv_err *link = cause; link; link = rv_err_cause(link)) {
        struct rv_src src = rv_err_src(link);
        if (link != cause)
            rv_buf_puts(&text, ": ");
        rv_buf_puts(&text, rv_err_text(link));
        if (src.file)
            place = src;
    }
    if (place.file)
        rv_buf_printf(&text, " (%s:%d:%d)", place.file, place.line, place.col);
    int rc = rv_buf_check(&text, "error text", err);
    if (rc == 0)
        rc = rv_visit_fail(v, type, err, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_err_free(cause);
    return rc;
}
