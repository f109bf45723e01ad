/* Strings of arguments as templates, one test a rule. */
#include <stdio.h>

#include "coreengine/base/base.h"
#include "coreengine/plan/plan.h"
#include "tests/unit/plan/plan_suites.h"

static void show_ref(const struct rv_plan_ref *ref, rv_buf *out)
{
    rv_buf_printf(out, "<%zu", ref->call);
    for (const struct rv_plan_accessor *a = ref->path; a; a = a->next)
        if (a->kind == RV_ACCESSOR_INDEX)
            rv_buf_printf(out, " [%zu]", a->index);
        else
            rv_buf_printf(out, a->kind == RV_ACCESSOR_KEY ? " '%s'" : " %s", a->key.ptr);
    rv_buf_puts(out, ">");
}

/* The pieces of a string: text as it is, references in angle brackets, a whole one behind "=", or the fault. */
static void expect(const char *text, const char *want)
{
    rv_arena *arena = rv_arena_new(1 << 20);
    rv_buf got = RV_BUF_INIT(10000);
    struct rv_plan_argument t;

    ck_assert_int_eq(rv_plan_argument_read(rv_str_of(text), arena, &t, NULL), 0);
    rv_buf_puts(&got, t.fault ? rv_plan_error_text(t.fault) : t.whole ? "=" : "");
    for (const struct rv_plan_piece *p = t.first; p; p = p->next)
        if (p->ref)
            show_ref(p->ref, &got);
        else
            rv_buf_add_str(&got, p->text);
    ck_assert_str_eq(rv_buf_cstr(&got), want);
    rv_buf_fini(&got);
    rv_arena_free(arena);
}

#define INVALID  "invalid_template_syntax"
#define EMBEDDED "embedded_reference"

/* Proves plan.T1 */
START_TEST(t1_whole_references)
{
    expect("$0.output.id", "=<0 id>");
    expect("$2.output.a.b", "=<2 a b>");
    expect("$x.output.v", INVALID);
    expect("$missing.output.v", INVALID);
    expect("$-1.output.v", INVALID);
    expect("$.output.v", INVALID);
    expect("$x.output", INVALID);
    expect("$x.output[0]", INVALID);
    expect("$2147483647.output", "=<2147483647>");
    expect("$2147483648.output", INVALID);
    expect("$99999999999999999999.output.id", INVALID);
    expect("$\xd9\xa3.output.id", INVALID); /* a digit, but not of ASCII */
}
END_TEST

/* Proves plan.T1 */
START_TEST(t1_prices_and_prose_are_text)
{
    expect("$5 costs more than .output. things", "$5 costs more than .output. things");
    expect("$5", "$5");
    expect("$", "$");
    expect("", "");
    expect("$0.outputs", "$0.outputs");
    expect("$a.b.output.c", "$a.b.output.c");
    expect("$0.output and more", "$0.output and more");
    expect("costs $0.output", "costs $0.output");
}
END_TEST

/* Proves plan.T2 */
START_TEST(t2_the_whole_output)
{
    expect("$0.output", "=<0>");
    expect("${0.output}", "=<0>");
}
END_TEST

/* Proves plan.T3 */
START_TEST(t3_accessors)
{
    expect("$0.output.items.0.id", "=<0 items 0 id>");
    expect("$0.output.items[0].id", "=<0 items [0] id>");
    expect("$0.output[\"key.with.dots\"][\"q\\\"]\"]", "=<0 'key.with.dots' 'q\"]'>");
    expect("$0.output.\xc3\xa9-_1", "=<0 \xc3\xa9-_1>");
    expect("$0.output[\"a\\u0041\"]", "=<0 'aA'>");
    expect("$0.output[\"\\ud800\"]", INVALID);
    expect("$0.output[\"a", INVALID);
    expect("$0.output[]", INVALID);
    expect("$0.output[-1]", INVALID);
    expect("$0.output[ 1]", INVALID);
}
END_TEST

/* Proves plan.T4 */
START_TEST(t4_embedded_references)
{
    expect("See ${0.output.id}, ${1.output[2]}!", "See <0 id>, <1 [2]>!");
    expect("${0.output.a}${0.output.b}", "<0 a><0 b>");
    expect("${HOME} ${1} ${} $", "${HOME} ${1} ${} $");
    expect("${0.output.a", INVALID);
    expect("x ${0.output.} y", INVALID);
    expect("x ${0.outputs} y", INVALID);
    expect("x ${2147483648.output} y", INVALID);
}
END_TEST

/* Proves plan.T5 */
START_TEST(t5_bare_references_never_reach_a_tool)
{
    expect("See $0.output.id", EMBEDDED);
    expect("See $0.output[", EMBEDDED);
    expect("$0.output.id and more", EMBEDDED);
    expect("$0.output.id, $1.output.id", EMBEDDED);
    expect("$0.output.id)", EMBEDDED);
    expect("$0.output..id", INVALID);
    expect("$0.output.id.", INVALID);
    expect("$0.output.a[x]", INVALID);
    expect("$0.output.", INVALID);
    expect("${0.output.a} and $0.output.b", EMBEDDED);
}
END_TEST

/* Proves plan.T6 */
START_TEST(t6_escapes)
{
    expect("$$0.output.id", "$0.output.id");
    expect("$$x.output.v", "$x.output.v");
    expect("$${0.output.id}", "${0.output.id}");
    expect("a $$0.output.id b $${1.output.c}", "a $0.output.id b ${1.output.c}");
    expect("$$$0.output.id", "$$0.output.id");
    expect("$$$${0.output.id}", "$$${0.output.id}");
    expect("$$0.output.id then ${1.output.a}", "$0.output.id then <1 a>");
    expect("$${0.output[\"$1.output.a\"]}", "${0.output[\"$1.output.a\"]}");
    expect("$$ $$5 $${HOME} $$", "$$ $$5 $${HOME} $$");
}
END_TEST

/* Proves plan.T8 */
START_TEST(t8_leading_zeros)
{
    expect("$00.output.id", "=<0 id>");
    expect("${0000000000001.output}", "=<1>");
}
END_TEST

/* Proves plan.T9 */
START_TEST(t9_many_references)
{
    rv_arena *arena = rv_arena_new(1 << 20);
    rv_buf text = RV_BUF_INIT(10000);
    struct rv_plan_argument t;

    for (int i = 0; i < RV_PLAN_MAX_REFS; i++)
        rv_buf_puts(&text, "${0.output}");
    ck_assert_int_eq(rv_plan_argument_read(rv_buf_str(&text), arena, &t, NULL), 0);
    ck_assert_uint_eq(t.n_refs, RV_PLAN_MAX_REFS);
    ck_assert_int_eq(t.fault, RV_PLAN_ERROR_NONE);
    rv_buf_puts(&text, "${0.output}");
    ck_assert_int_eq(rv_plan_argument_read(rv_buf_str(&text), arena, &t, NULL), 0);
    ck_assert_int_eq(t.fault, RV_PLAN_ERROR_TOO_MANY_REFERENCES);
    rv_buf_fini(&text);
    rv_arena_free(arena);
}
END_TEST

TCase *argument_case(void)
{
    TCase *tc = tcase_create("argument");

    tcase_add_test(tc, t1_whole_references);
    tcase_add_test(tc, t1_prices_and_prose_are_text);
    tcase_add_test(tc, t2_the_whole_output);
    tcase_add_test(tc, t3_accessors);
    tcase_add_test(tc, t4_embedded_references);
    tcase_add_test(tc, t5_bare_references_never_reach_a_tool);
    tcase_add_test(tc, t6_escapes);
    tcase_add_test(tc, t8_leading_zeros);
    tcase_add_test(tc, t9_many_references);
    return tc;
}
