/* What a task needs and a worker offers: labels, and capabilities by version. */
#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

static const struct {
    const char *offered, *needed;
    bool met;
} versions[] = {
    {"1.0.0", "1.0.0", true},
    {"1.2.0", "1.0.0", true},
    {"1.0.0", "1.2.0", false},
    {"2.0.0", "1.9.9", false},
    {"1.10.0", "1.9.0", true},
    {"1.9.0", "1.10.0", false},
    {"1", "1", true},
    {"1.0", "1", true},
    {"1", "1.0", true},
    {"1", "1.1", false},
    {"1.2.3", "1.2", true},
    {"0.3.0", "0.2.0", true},
    {"beta", "beta", true},
    {"beta", "alpha", false},
    {"1.0-rc1", "1.0", false},
    {"1.0", "1.0-rc1", false},
    {"1.0.0", NULL, true},
    {"", "1.0", false},
    {"99999999999999999999", "99999999999999999999", true},
};

START_TEST(a_capability_is_offered_in_this_major_version_or_a_later_minor_one)
{
    struct rv_needs offers = {NULL, 0}, needs = {NULL, 0};

    ck_assert_int_eq(rv_needs_add_capability(&offers, "files", versions[_i].offered, NULL), 0);
    ck_assert_int_eq(rv_needs_add_capability(&needs, "files", versions[_i].needed, NULL), 0);
    ck_assert_int_eq(rv_needs_are_met(&offers, needs.items[0]), versions[_i].met);
    rv_needs_fini(&needs);
    ck_assert_int_eq(rv_needs_add_capability(&needs, "file", versions[_i].needed, NULL), 0);
    ck_assert(!rv_needs_are_met(&offers, needs.items[0])); /* the beginning of a name is another name */
    rv_needs_fini(&needs);
    rv_needs_fini(&offers);
}
END_TEST

START_TEST(labels_are_equal_or_not)
{
    struct rv_needs offers = {NULL, 0};

    ck_assert_int_eq(rv_needs_add_label(&offers, "zone=eu", NULL), 0);
    ck_assert_int_eq(rv_needs_add_label(&offers, "gpu", NULL), 0);
    ck_assert_int_eq(rv_needs_add_label(&offers, "gpu", NULL), 0);
    ck_assert_uint_eq(offers.n, 2);
    ck_assert_str_eq(offers.items[0], "label:gpu"); /* sorted */
    ck_assert(rv_needs_are_met(&offers, "label:gpu"));
    ck_assert(!rv_needs_are_met(&offers, "label:gp"));
    ck_assert(!rv_needs_are_met(&offers, "label:gpu2"));
    ck_assert(!rv_needs_are_met(&offers, "capability:gpu"));
    ck_assert_int_eq(rv_needs_add_label(&offers, "", NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_needs_add_label(&offers, "two words", NULL), RV_E_INVALID);
    rv_needs_fini(&offers);
}
END_TEST

static const char *const broken[] = {"", "{}", "[1", "null"};

START_TEST(what_a_worker_says_is_read_again_and_damage_is_refused)
{
    struct rv_needs offers = {NULL, 0}, again;
    rv_buf text = RV_BUF_INIT(4096);
    rv_jw w = rv_jw_on(&text);

    ck_assert_int_eq(rv_needs_add_label(&offers, "gpu", NULL), 0);
    ck_assert_int_eq(rv_needs_add_capability(&offers, "files", "1.0.0", NULL), 0);
    rv_needs_write(&offers, &w);
    ck_assert_int_eq(rv_needs_read(rv_buf_str(&text), &again, NULL), 0);
    ck_assert_uint_eq(again.n, 2);
    ck_assert_str_eq(again.items[0], "capability:files@1.0.0");
    rv_needs_fini(&again);
    rv_needs_fini(&offers);
    rv_buf_fini(&text);
    for (size_t i = 0; i < RV_COUNT(broken); i++)
        ck_assert_int_lt(rv_needs_read(rv_str_of(broken[i]), &again, NULL), 0);
}
END_TEST

TCase *needs_case(void)
{
    TCase *tc = tcase_create("needs");

    tcase_add_loop_test(tc, a_capability_is_offered_in_this_major_version_or_a_later_minor_one, 0, RV_COUNT(versions));
    tcase_add_test(tc, labels_are_equal_or_not);
    tcase_add_test(tc, what_a_worker_says_is_read_again_and_damage_is_refused);
    return tc;
}
