/* Reads lines [pattern, text, ...] and answers one line for each: a 0 or 1 for each text, or "E" and why it is refused.
 */
#include <stdio.h>

#include "coreengine/lang/lang.h"
#include "tests/conformance/judge.h"

void judge(json_object *row)
{
    rv_pattern *p = NULL;
    rv_err *err = NULL;
    int rc = rv_pattern_new(rv_json_str(json_object_array_get_idx(row, 0)), &p, &err);

    for (size_t i = 1; rc == 0 && i < json_object_array_length(row); i++) {
        bool found = false;
        rc = rv_pattern_test(p, rv_json_str(json_object_array_get_idx(row, i)), NULL, &found, &err);
        if (rc == 0)
            putchar(found ? '1' : '0');
    }
    if (rc < 0)
        printf("E%s", rv_err_text(err));
    putchar('\n');
    rv_err_free(err);
    rv_pattern_free(p);
}
