/* Any text as a table of each kind: it is read or refused with a reason, and what is read has a line for each row. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/fuzz.h"

/* Names of columns and values are written and read as they were. */
static void write_again(const struct rv_table *t)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT((size_t)64 << 20);
    const struct rv_json_opts opts = {.max_bytes = (size_t)64 << 20, .max_depth = 1000};
    json_object *again = NULL;

    rv_json_write(t->rows, &text);
    require(rv_buf_check(&text, "rows", NULL) == 0);
    require(rv_json_parse(rv_buf_str(&text), &opts, &again, NULL) == 0 && rv_json_equal(t->rows, again));
    json_object_put(again);
}

RV_FUZZ_TARGET(table)
{
    static const char *const names[] = {"t.csv", "t.jsonl", "t.yaml"};

    for (size_t k = 0; k < RV_COUNT(names); k++) {
        struct rv_table t = {0};
        rv_err *err = NULL;
        int rc = rv_table_parse((rv_str){(const char *)data, size}, names[k], &t, &err);

        require((rc == 0) == (err == NULL));
        if (rc == 0) {
            size_t n = json_object_array_length(t.rows);
            require(n <= RV_TABLE_MAX_ROWS);
            for (size_t i = 0; i < n; i++)
                require(t.lines[i] > 0 && json_object_is_type(json_object_array_get_idx(t.rows, i), json_type_object));
            write_again(&t);
            rv_table_fini(&t);
        }
        rv_err_free(err);
    }
    return 0;
}
