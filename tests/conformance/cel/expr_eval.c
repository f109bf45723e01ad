/* Our side of the comparison: one {"expr": text, "vars": object} a line in, one {"ok": ..., "result" | "error": ...} a
 * line out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"

#define MAX_LINE ((size_t)1 << 20)

static void answer(json_object *request, rv_jw *w, rv_err **err)
{
    json_object *vars = rv_json_get_obj(request, "vars"), *text = NULL, *result = NULL;
    struct rv_scope scope = rv_scope_of_object(vars);
    rv_expr *e = NULL;
    int rc;

    json_object_object_get_ex(request, "expr", &text);
    rc = rv_expr_compile(rv_json_str(text), NULL, NULL, 0, &e, err);
    if (rc == 0)
        rc = rv_expr_eval(e, &scope, &result, err);
    rv_jw_obj(w);
    rv_jw_kv_bool(w, "ok", rc == 0);
    if (rc == 0)
        rv_jw_kv_value(w, "result", result);
    else
        rv_jw_kv_text(w, "error", rv_err_text(*err));
    rv_jw_obj_end(w);
    json_object_put(result);
    rv_expr_free(e);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int rc = 0;

    while (rc == 0 && (len = getline(&line, &cap, stdin)) > 0) {
        RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(MAX_LINE);
        rv_jw w = rv_jw_on(&out);
        json_object *request = NULL;
        rv_err *err = NULL;

        rc = rv_json_parse((rv_str){line, (size_t)len}, NULL, &request, &err);
        if (rc == 0)
            answer(request, &w, &err);
        puts(rc == 0 ? rv_buf_cstr(&out) : rv_err_text(err));
        json_object_put(request);
        rv_err_free(err);
    }
    free(line);
    return rc < 0;
}
