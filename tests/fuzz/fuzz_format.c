/* Any bytes as a YAML file: what can be loaded is laid out, or refused; a layout says the same and stays as it is. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/fuzz.h"

static int format(rv_str text, rv_buf *out, size_t *n_errors)
{
    rv_findings *findings = rv_findings_new();
    rv_err *err = NULL;

    require(findings != NULL);
    int rc = rv_yaml_format(text, "fuzz.yaml", findings, out, &err);
    *n_errors = rv_findings_n_errors(findings);
    require((rc < 0) == (err != NULL) && (rc == 0 || rc == RV_E_INVALID || rc == RV_E_LIMIT));
    rv_err_free(err);
    rv_findings_free(findings);
    return rc;
}

RV_FUZZ_TARGET(format)
{
    rv_str text = {size > 0 ? (const char *)data : "", size};
    rv_buf once = RV_BUF_INIT(RV_YAML_MAX_BYTES), twice = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    size_t n_errors = 0;

    int rc = format(text, &once, &n_errors);
    require(once.len == 0 || (rc == 0 && n_errors == 0));
    if (rc == 0 && n_errors == 0) {
        require(format(rv_buf_str(&once), &twice, &n_errors) == 0 && n_errors == 0);
        require(rv_str_eq(rv_buf_str(&once), rv_buf_str(&twice)));
    }
    rv_buf_fini(&once);
    rv_buf_fini(&twice);
    return 0;
}
