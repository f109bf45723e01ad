/* Every bound: what is at it passes, what is above it is RV_E_LIMIT and not a crash or a long wait. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "expr_suites.h"
#include "tests/kit/kit.h"

/* `n` times `open`, `middle`, `n` times `close`. */
static int compile_nested(const char *open, const char *middle, const char *close, size_t n)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(1 << 20);
    rv_expr *e = NULL;
    int rc;

    for (size_t i = 0; i < n; i++)
        rv_buf_puts(&text, open);
    rv_buf_puts(&text, middle);
    for (size_t i = 0; i < n; i++)
        rv_buf_puts(&text, close);
    rc = rv_expr_compile(rv_buf_str(&text), NULL, NULL, 0, &e, NULL);
    rv_expr_free(e);
    return rc;
}

static const struct {
    const char *open, *middle, *close;
    size_t fits, too_many;
} nests[] = {
    {"(", "1", ")", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
    {"[", "1", "]", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
    {"{1:", "1", "}", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
    {"size([", "1", "])", (RV_EXPR_MAX_DEPTH - 1) / 2, RV_EXPR_MAX_DEPTH / 2},
    {"!", "true", "", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
    {"!", "true", "", 1, 4000},
    {"", "1", "+1", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
    {"", "a", ".b", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH + 1},
    {"", "a", "[0]", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
    {"true ? 1 : ", "1", "", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
    {"true && (", "true", ")", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
    {"l.map(x, ", "x", ")", RV_EXPR_MAX_DEPTH - 1, RV_EXPR_MAX_DEPTH},
};

/* Proves 10/expressions */
START_TEST(nesting_is_bounded)
{
    ck_assert_int_eq(compile_nested(nests[_i].open, nests[_i].middle, nests[_i].close, nests[_i].fits), 0);
    ck_assert_int_eq(compile_nested(nests[_i].open, nests[_i].middle, nests[_i].close, nests[_i].too_many), RV_E_LIMIT);
}
END_TEST

START_TEST(length_of_a_chain_is_no_depth)
{
    ck_assert_int_eq(compile_nested("a||", "a", "", 1000), 0);
    ck_assert_int_eq(compile_nested("a&&", "a", "||b", 500), 0);
    ck_assert_int_eq(compile_nested("[", "1", ",1", 1), RV_E_PARSE);
}
END_TEST

START_TEST(text_size_is_bounded)
{
    char *text = malloc(RV_EXPR_MAX_BYTES + 1);
    rv_expr *e = NULL;

    ck_assert_ptr_nonnull(text);
    memset(text, ' ', RV_EXPR_MAX_BYTES + 1);
    text[0] = '1';
    ck_assert_int_eq(rv_expr_compile((rv_str){text, RV_EXPR_MAX_BYTES}, NULL, NULL, 0, &e, NULL), 0);
    rv_expr_free(e);
    e = NULL;
    ck_assert_int_eq(rv_expr_compile((rv_str){text, RV_EXPR_MAX_BYTES + 1}, NULL, NULL, 0, &e, NULL), RV_E_LIMIT);
    ck_assert_ptr_null(e);
    free(text);
}
END_TEST

static const struct {
    const char *expr;
    int rc;
} works[] = {
    {"l.map(a, a)", 0},
    {"l.map(a, l.map(b, b))", 0},
    {"l.map(a, l.map(b, l.map(c, c)))", RV_E_LIMIT},
    {"l.all(a, l.all(b, l.all(c, l.all(d, l.all(e, true)))))", RV_E_LIMIT},
    /* the bound is not an error that || forgets */
    {"l.all(a, l.all(b, l.all(c, true))) || true", RV_E_LIMIT},
    {"l.exists(z, l.all(a, l.all(b, l.all(c, true))))", RV_E_LIMIT},
    /* looking at much data is work too */
    {"l.all(a, l.all(b, l == l))", RV_E_LIMIT},
    {"l.all(a, l.all(b, !s.contains('y')))", RV_E_LIMIT},
    {"l.all(a, l.all(b, size(s) > 0))", RV_E_LIMIT},
    {"l.all(a, l.all(b, r != s))", RV_E_LIMIT},
    {"l.all(a, l.all(b, !(s in m)))", RV_E_LIMIT},
    {"l.all(a, l.all(b, r > s))", RV_E_LIMIT},
    {"l.all(a, l.all(b, s + 'a' < s + 'b'))", RV_E_LIMIT},
    /* and what is built is counted in bytes */
    {"[s + s + s + s + s + s + s + s].map(x, x + x + x + x + x + x + x + x)", RV_E_LIMIT},
    {"l.map(a, s + s)", RV_E_LIMIT},
    {"l.map(a, l + l + l + l + l + l + l + l + l + l + l)", RV_E_LIMIT},
};

/* Proves 10/expressions */
START_TEST(work_and_memory_are_bounded)
{
    json_object *obj = rv_kit_json("{}"), *list = json_object_new_array(), *result = NULL;
    char *filler = calloc(1, 20001);
    struct rv_scope scope = rv_scope_of_object(obj);
    rv_expr *e = NULL;
    rv_err *err = NULL;
    int rc;

    ck_assert_ptr_nonnull(filler);
    memset(filler, 'x', 20000);
    for (int i = 0; i < 100; i++)
        json_object_array_add(list, json_object_new_int(i));
    json_object_object_add(obj, "l", list);
    json_object_object_add(obj, "s", json_object_new_string(filler));
    filler[19999] = 'y';
    json_object_object_add(obj, "r", json_object_new_string(filler));
    json_object_object_add(obj, "m", json_object_new_object());
    ck_assert_int_eq(rv_expr_compile(rv_str_of(works[_i].expr), NULL, NULL, 0, &e, NULL), 0);
    rc = rv_expr_eval(e, &scope, &result, &err);
    ck_assert_msg(rc == works[_i].rc, "%s: %d %s", works[_i].expr, rc, rv_err_text(err));
    rv_err_free(err);
    rv_expr_free(e);
    json_object_put(result);
    json_object_put(obj);
    free(filler);
}
END_TEST

TCase *limits_case(void)
{
    TCase *tc = tcase_create("limits");

    tcase_add_loop_test(tc, nesting_is_bounded, 0, RV_COUNT(nests));
    tcase_add_test(tc, length_of_a_chain_is_no_depth);
    tcase_add_test(tc, text_size_is_bounded);
    tcase_add_loop_test(tc, work_and_memory_are_bounded, 0, RV_COUNT(works));
    return tc;
}
