/* The first line as a pattern, the rest as text: it compiles or is refused with a reason, and a match ends. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/fuzz.h"

RV_FUZZ_TARGET(pattern)
{
    const char *all = size ? (const char *)data : "";
    const char *end = size ? memchr(all, '\n', size) : NULL;
    rv_str pattern = {all, end ? (size_t)(end - all) : size};
    rv_str text = end ? (rv_str){end + 1, size - pattern.len - 1} : RV_STR_LIT("");
    size_t steps = 1 << 20;
    rv_pattern *p = NULL;
    rv_err *err = NULL;
    bool found;

    if (rv_pattern_new(pattern, &p, &err) == 0) {
        int rc = rv_pattern_test(p, text, &steps, &found, &err);
        require(rc == 0 || rc == RV_E_LIMIT || rc == RV_E_INVALID);
        require((rc == 0) == (err == NULL));
    } else {
        require(err && !p && rv_err_text(err)[0]);
    }
    rv_err_free(err);
    rv_pattern_free(p);
    return 0;
}
