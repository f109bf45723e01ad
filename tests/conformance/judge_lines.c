/* The program around a judge: reads the lines, and ends with 1 at one that is not JSON. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/conformance/judge.h"

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    while ((n = getline(&line, &cap, stdin)) > 0) {
        json_object *row = NULL;
        if (rv_json_parse((rv_str){line, (size_t)n}, NULL, &row, NULL) < 0)
            return 1;
        judge(row);
        json_object_put(row);
    }
    free(line);
    return 0;
}
