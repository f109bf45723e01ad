/* Every allocation of an expression's and a template's life fails once: the code is RV_E_NOMEM and nothing leaks. */
#include <check.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char *const vars[] = {"output", "state"};

static int expression(json_object *obj, const char *text)
{
    struct rv_scope scope = rv_scope_of_object(obj);
    struct rv_src src = {"p.yaml", 1, 1};
    json_object *result = NULL;
    rv_expr *e = NULL;
    rv_err *err = NULL;
    int rc = rv_expr_compile(rv_str_of(text), &src, vars, RV_COUNT(vars), &e, &err);

    if (rc == 0)
        rc = rv_expr_eval(e, &scope, &result, &err);
    if ((rc == 0) != (err == NULL)) /* no ck_assert here: it allocates too */
        rc = RV_E_INTERNAL;
    json_object_put(result);
    rv_expr_free(e);
    rv_err_free(err);
    return rc;
}

static int rendering(json_object *obj, const char *text)
{
    struct rv_scope scope = rv_scope_of_object(obj);
    struct rv_src src = {"p.md", 1, 1};
    RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(10000);
    rv_template *t = NULL;
    rv_err *err = NULL;
    int rc = rv_template_compile(rv_str_of(text), &src, &t, &err);

    if (rc == 0)
        rc = rv_template_render(t, &scope, &out, &err);
    if ((rc == 0) != (err == NULL)) /* no ck_assert here: it allocates too */
        rc = RV_E_INTERNAL;
    rv_template_free(t);
    rv_err_free(err);
    return rc;
}

static int pattern(json_object *obj, const char *text)
{
    rv_pattern *p = NULL;
    rv_err *err = NULL;
    bool found = false;
    int rc = rv_pattern_new(rv_str_of(text), &p, &err);

    (void)obj;
    if (rc == 0)
        rc = rv_pattern_test(p, RV_STR_LIT("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), NULL, &found, &err);
    if ((rc == 0) != (err == NULL)) /* no ck_assert here: it allocates too */
        rc = RV_E_INTERNAL;
    rv_pattern_free(p);
    rv_err_free(err);
    return rc;
}

static int layout(json_object *obj, const char *text)
{
    RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    rv_findings *findings = rv_findings_new();
    rv_err *err = NULL;

    (void)obj;
    if (!findings)
        return RV_E_NOMEM;
    int rc = rv_yaml_format(rv_str_of(text), "x.yaml", findings, &out, &err);
    if ((rc == 0) != (err == NULL) || (rc == 0) != (out.len > 0)) /* no ck_assert here: it allocates too */
        rc = RV_E_INTERNAL;
    rv_findings_free(findings);
    rv_err_free(err);
    return rc;
}

/* want: what comes out when all allocations succeed. A failing one may also be one that only served the message. */
static const struct {
    int (*run)(json_object *obj, const char *text);
    const char *text;
    int want;
} scenarios[] = {
    {expression, "output.n < 5 && output.l.exists(x, x == 2)", 0},
    {expression, "[{'a': output.l, 'b': [1.5, 'x' + 'y', true, null, 7u, type(1)]}] + output.l.map(x, string(x))", 0},
    {expression, "{'a': {'b': [1, 2, 3].filter(x, x > 1)}}", 0},
    {pattern, "^[a-z\\s]+$", 0},
    {pattern, "(a|b)*c\\1", 0},
    {pattern, "^(a+)+$", RV_E_LIMIT},
    {pattern, "a++", RV_E_PARSE},
    {pattern, "(?<=a*)", RV_E_PARSE},
    {expression, "'ab'.matches('^a') && !'ab'.matches('b' + '$ ')", 0},
    {expression, "'ab'.matches('(' + 'a')", RV_E_INVALID},
    {expression, "output.nn", RV_E_NOT_FOUND},
    {expression, "outptu", RV_E_NOT_FOUND},
    {expression, "1 + 'a'", RV_E_INVALID},
    {expression, "int('x' + 'y')", RV_E_INVALID},
    {rendering,
     "{{#output.l}}{{. | json}}{{/output.l}}{{x.y | default \"none\" | truncate 2}}{{output.l | join \", \"}}", 0},
    {rendering, "a {{output.n}} b {{output}} \\{{ c {{state.s}} {{output.l.1}} {{state}} {{state}} {{state}} {{state}}",
     0},
    {rendering, "{{output.nn}}", RV_E_NOT_FOUND},
    {rendering, "{{output", RV_E_PARSE},
    {layout, "a:\n- &x {b : 1}  # c\n- *x\nd: |+\n    e\n\nf: \"g\n  h\"\n", 0},
    {layout, " a: 1\n --- b: 2\n", RV_E_INVALID},
};

START_TEST(any_allocation_may_fail)
{
    json_object *obj = rv_kit_json("{'output': {'n': 3, 'l': [1, 2]}, 'state': {'s': 'text'}}");
    size_t n;

    ck_assert_int_eq(scenarios[_i].run(obj, scenarios[_i].text), scenarios[_i].want);
    for (n = 0;; n++) {
        int rc;

        rv_fault_arm(n);
        rc = scenarios[_i].run(obj, scenarios[_i].text);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, scenarios[_i].want);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || (scenarios[_i].want < 0 && rc == scenarios[_i].want), "allocation %zu: %d", n,
                      rc);
        ck_assert_int_eq(rv_fault_balance(), 0);
    }
    ck_assert(n > 0 || !rv_fault_works());
    json_object_put(obj);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_expr");
    TCase *tc = tcase_create("expr");

    tcase_add_loop_test(tc, any_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
