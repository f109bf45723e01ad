/* Which questions a scope is asked: never for more than the expression or template needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "expr_suites.h"
#include "tests/kit/kit.h"

/* Writes each question down as "name.field " or "name ". */
struct spy {
    json_object *vars;
    char asked[256];
    bool fails;
};

static int spy_lookup(void *self, rv_str name, rv_str field, json_object **out, bool *found, rv_err **err)
{
    struct spy *spy = self;
    struct rv_scope inner = rv_scope_of_object(spy->vars);
    size_t len = strlen(spy->asked);

    snprintf(spy->asked + len, sizeof(spy->asked) - len, "%.*s%s%.*s ", RV_STR_ARG(name), field.ptr ? "." : "",
             (int)field.len, field.ptr ? field.ptr : "");
    if (spy->fails)
        return RV_FAIL(err, RV_E_IO, "the store is away");
    return inner.lookup(inner.self, name, field, out, found, err);
}

static const struct {
    const char *expr, *asked;
} questions[] = {
    {"outputs.plan.steps == 1", "outputs.plan "},
    {"outputs['plan'].steps == 1", "outputs.plan "},
    {"has(outputs.plan)", "outputs.plan "},
    {"has(outputs.nope)", "outputs.nope "},
    {"outputs.nope == 1 || true", "outputs.nope "},
    {"outputs['pl' + 'an'].steps == 1", "outputs "},
    {"'plan' in outputs", "outputs "},
    {"false && outputs.plan.steps == 1", ""},
    {"true ? 1 : outputs", ""},
};

START_TEST(expression_asks_only_for_what_it_reads)
{
    struct spy spy = {.vars = rv_kit_json("{'outputs': {'plan': {'steps': 1}}}")};
    struct rv_scope scope = {.lookup = spy_lookup, .self = &spy};
    json_object *result = NULL;
    rv_expr *e = NULL;

    ck_assert_int_eq(rv_expr_compile(rv_str_of(questions[_i].expr), NULL, NULL, 0, &e, NULL), 0);
    ck_assert_int_eq(rv_expr_eval(e, &scope, &result, NULL), 0);
    ck_assert_str_eq(spy.asked, questions[_i].asked);
    json_object_put(result);
    rv_expr_free(e);
    json_object_put(spy.vars);
}
END_TEST

START_TEST(template_asks_only_for_what_it_shows)
{
    struct spy spy = {.vars = rv_kit_json("{'outputs': {'plan': {'steps': [1]}}, 'l': [5]}")};
    struct rv_scope scope = {.lookup = spy_lookup, .self = &spy};
    RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(100);
    rv_template *t = NULL;

    ck_assert_int_eq(rv_template_compile(RV_STR_LIT("{{outputs.plan.steps.0}} {{l.0}} {{l}}"), NULL, &t, NULL), 0);
    ck_assert_int_eq(rv_template_render(t, &scope, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "1 5 [5]");
    ck_assert_str_eq(spy.asked, "outputs.plan l l ");
    rv_template_free(t);
    json_object_put(spy.vars);
}
END_TEST

static const char *const fatal[] = {"x == 1 || true", "true && x", "[1].exists(i, x == i) || true", "has(x.y)", "x"};

START_TEST(failure_of_the_scope_ends_the_evaluation)
{
    struct spy spy = {.fails = true};
    struct rv_scope scope = {.lookup = spy_lookup, .self = &spy};
    json_object *result = NULL;
    rv_expr *e = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_expr_compile(rv_str_of(fatal[_i]), NULL, NULL, 0, &e, NULL), 0);
    ck_assert_int_eq(rv_expr_eval(e, &scope, &result, &err), RV_E_IO);
    ck_assert_str_eq(rv_err_text(err), "the store is away");
    rv_err_free(err);
    rv_expr_free(e);
}
END_TEST

START_TEST(scope_of_no_object_is_empty)
{
    json_object *arr = json_object_new_array(), *out = NULL;
    json_object *const objs[] = {NULL, arr};
    bool found = true;

    for (size_t i = 0; i < RV_COUNT(objs); i++) {
        struct rv_scope scope = rv_scope_of_object(objs[i]);

        ck_assert_int_eq(scope.lookup(scope.self, RV_STR_LIT("a"), (rv_str){NULL, 0}, &out, &found, NULL), 0);
        ck_assert(!found);
    }
    json_object_put(arr);
}
END_TEST

TCase *scope_case(void)
{
    TCase *tc = tcase_create("scope");

    tcase_add_loop_test(tc, expression_asks_only_for_what_it_reads, 0, RV_COUNT(questions));
    tcase_add_test(tc, template_asks_only_for_what_it_shows);
    tcase_add_loop_test(tc, failure_of_the_scope_ends_the_evaluation, 0, RV_COUNT(fatal));
    tcase_add_test(tc, scope_of_no_object_is_empty);
    return tc;
}
