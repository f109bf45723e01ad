/* Any text as an expression: it compiles or is refused with a place, and what compiles ends with a value or an error.
 */
#include <stdlib.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/fuzz.h"

static const char sample[] =
    "{\"output\": {\"confidence\": 0.3, \"verdict\": \"loop_back\", \"n\": 3, \"none\": null, \"steps\": [{\"ok\": "
    "true}]},"
    " \"outputs\": {\"plan\": {\"a\": [1, 2.5, \"x\", null, [], {}]}}, \"envelope\": {\"iteration\": 2},"
    " \"metadata\": {}, \"state\": {\"l\": [3, 1, 2], \"s\": \"h\\u00e9llo\", \"big\": 18446744073709551615},"
    " \"interrupt\": null}";
static const char *const vars[] = {"output", "outputs", "envelope", "metadata", "state", "interrupt"};

static json_object *scope_object(void)
{
    static json_object *obj; /* one for all inputs: an evaluation must not change it */

    if (!obj)
        require(rv_json_parse(RV_STR_LIT(sample), NULL, &obj, NULL) == 0);
    return obj;
}

static void evaluate(const rv_expr *e)
{
    struct rv_scope scope = rv_scope_of_object(scope_object());
    json_object *result = NULL, *again = NULL;
    rv_err *err = NULL;
    bool yes = false;
    int rc = rv_expr_eval(e, &scope, &result, &err);

    require((rc == 0) == (err == NULL));
    require(rc == 0 || rv_err_src(err).line > 0);
    if (rc == 0) {
        RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(64 << 20);

        rv_json_write(result, &text);
        require(rv_buf_check(&text, "result", NULL) == 0);
        require(rv_expr_eval(e, &scope, &again, NULL) == 0 && rv_json_equal(result, again));
        if (rv_expr_test(e, &scope, &yes, NULL) == 0)
            require(rv_expr_may_be_bool(e) && json_object_get_boolean(result) == yes);
    }
    json_object_put(result);
    json_object_put(again);
    rv_err_free(err);
}

RV_FUZZ_TARGET(expr)
{
    rv_str text = {(const char *)data, size};
    struct rv_src src = {"fuzz.yaml", 1, 1};
    rv_err *err = NULL;
    rv_expr *e = NULL;

    if (size == 0)
        text.ptr = "";
    if (rv_expr_compile(text, &src, vars, RV_COUNT(vars), &e, &err) == 0) {
        for (size_t i = 0; i < rv_expr_n_names(e); i++) {
            struct rv_placeholder name = rv_expr_name_at(e, i);
            require(name.root.len > 0 && name.field.ptr && name.src.line > 0);
        }
        evaluate(e);
        rv_expr_free(e);
        return 0;
    }
    require(err && rv_err_text(err)[0] && rv_err_src(err).line > 0);
    rv_err_free(err);
    if (rv_expr_compile(text, NULL, NULL, 0, &e, NULL) == 0)
        evaluate(e);
    rv_expr_free(e);
    return 0;
}
