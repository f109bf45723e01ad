/* Catalogs: names, definitions, and that they stay. */
#include "tests/contract/tools/world.h"

/* Proves 6.3/list: Names are listed sorted */
START_TEST(the_names_are_sorted_and_each_has_a_definition)
{
    struct world w;
    size_t n = 0;

    world_open(&w, _i);
    const char *const *names = w.s->ops->names(w.s->self, &n);
    ck_assert_msg((n == 0) == w.impl->by_name_only, "%s: %zu names", w.impl->name, n);
    for (size_t i = 0; i < n; i++) {
        const struct rv_tool_info *info = w.s->ops->find(w.s->self, rv_str_of(names[i]));
        ck_assert_msg(i == 0 || strcmp(names[i - 1], names[i]) < 0, "%s before %s", names[i - 1], names[i]);
        ck_assert_msg(info, "%s: nothing is known of \"%s\"", w.impl->name, names[i]);
        ck_assert_str_eq(info->name, names[i]);
        ck_assert(!info->input == !info->input_json);
        ck_assert(!info->output == !info->output_json);
        ck_assert(info->timeout_ms >= 0);
    }
    world_close(&w);
}
END_TEST

START_TEST(a_definition_stays_where_it_is)
{
    struct world w;
    struct seen seen;

    world_open(&w, _i);
    const struct rv_tool_info *info = w.s->ops->find(w.s->self, rv_str_of(w.impl->good));
    ck_assert_ptr_nonnull(info);
    must_call(&w, &seen, w.impl->good, w.impl->good_args);
    await(&w, &seen);
    ck_assert_ptr_eq(w.s->ops->find(w.s->self, rv_str_of(w.impl->good)), info);
    world_close(&w);
}
END_TEST

START_TEST(an_unknown_name_has_no_definition)
{
    static const char *const unknown[] = {"", "nothing", "good ", "GOOD"};
    struct world w;

    world_open(&w, _i);
    for (size_t i = 0; i < RV_COUNT(unknown); i++)
        ck_assert_ptr_null(w.s->ops->find(w.s->self, rv_str_of(unknown[i])));
    ck_assert_ptr_null(w.s->ops->find(w.s->self, (rv_str){"good\0x", 6}));
    world_close(&w);
}
END_TEST

START_TEST(a_tool_that_has_gone_keeps_its_definition_and_fails)
{
    struct world w;
    struct seen seen;
    size_t n = 0;

    world_open(&w, n_source_impls - 1);
    const struct rv_tool_info *info = w.s->ops->find(w.s->self, RV_STR_LIT("fades"));
    w.later.offers_fades = false;
    ck_assert_str_eq(info->name, "fades");
    w.s->ops->names(w.s->self, &n);
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(call_tool(&w, &seen, "fades", RV_STR_LIT("{}"), NULL), RV_E_NOT_FOUND);
    world_close(&w);
}
END_TEST

Suite *catalog_suite(void)
{
    Suite *s = suite_create("catalog");
    TCase *tc = tcase_create("catalog");

    ADD(tc, the_names_are_sorted_and_each_has_a_definition);
    ADD(tc, a_definition_stays_where_it_is);
    ADD(tc, an_unknown_name_has_no_definition);
    tcase_add_test(tc, a_tool_that_has_gone_keeps_its_definition_and_fails);
    suite_add_tcase(s, tc);
    return s;
}
