/* Reads lines [schema, value, ...] and answers one line for each: a 0 or 1 for each value, or "E" and why the schema
 * does not load. */
#include <stdio.h>

#include "coreengine/tools/tools.h"
#include "tests/conformance/judge.h"

void judge(json_object *row)
{
    rv_schema *s = NULL;
    rv_err *err = NULL;
    int rc = rv_schema_compile(json_object_array_get_idx(row, 0), "a type", &s, &err);

    for (size_t i = 1; rc == 0 && i < json_object_array_length(row); i++) {
        int fits = rv_schema_check(s, json_object_array_get_idx(row, i), NULL);
        putchar(fits == 0 ? '1' : fits == RV_E_INVALID ? '0' : '?');
    }
    if (rc < 0)
        printf("E%s", rv_err_text(err));
    putchar('\n');
    rv_err_free(err);
    rv_schema_free(s);
}
