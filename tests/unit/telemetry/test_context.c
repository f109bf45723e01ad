/* traceparent, tracestate and baggage: each rule with what breaks it. */
#include <stdio.h>

#include "coreengine/telemetry/telemetry.h"
#include "tests/unit/telemetry/suites.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static const struct {
    const char *text, *out; /* NULL: refused */
} parents[] = {
    {"00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
    {"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
    {"00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-01"}, /* other bits are not passed on */
    {"01-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
    {"fe-" TRACE "-" SPAN "-01-more", "00-" TRACE "-" SPAN "-01"},
    {"01-" TRACE "-" SPAN "-01more", NULL},
    {"00-" TRACE "-" SPAN "-01-more", NULL},
    {"00-" TRACE "-" SPAN "-01-", NULL},
    {"ff-" TRACE "-" SPAN "-01", NULL},
    {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", NULL},
    {"00-" TRACE "-B7AD6B7169203331-01", NULL},
    {"0G-" TRACE "-" SPAN "-01", NULL},
    {"00-" TRACE "-" SPAN "-0g", NULL},
    {"00-00000000000000000000000000000000-" SPAN "-01", NULL},
    {"00-" TRACE "-0000000000000000-01", NULL},
    {"00-" TRACE "-" SPAN "-0", NULL},
    {"00_" TRACE "-" SPAN "-01", NULL},
    {"00-" TRACE "_" SPAN "-01", NULL},
    {"00-" TRACE "-" SPAN "_01", NULL},
    {" 00-" TRACE "-" SPAN "-01", NULL},
    {"", NULL},
};
START_TEST(a_parent_is_read_or_refused)
{
    struct rv_trace_context c;
    char text[RV_TRACEPARENT_MAX] = "";

    ck_assert_int_eq(rv_traceparent_read(rv_str_of(parents[_i].text), &c), parents[_i].out != NULL);
    ck_assert_int_eq(rv_trace_is_set(&c), parents[_i].out != NULL);
    if (parents[_i].out) {
        rv_traceparent_write(&c, text);
        ck_assert_str_eq(text, parents[_i].out);
    }
}
END_TEST

START_TEST(a_new_trace_is_read_back)
{
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 1);
    struct rv_trace_context a, b;
    char text[RV_TRACEPARENT_MAX];

    for (int i = 0; i < 100; i++) {
        rv_trace_begin(rand, &a);
        rv_traceparent_write(&a, text);
        ck_assert(rv_traceparent_read(rv_str_of(text), &b));
        ck_assert_int_eq(memcmp(&a, &b, sizeof a), 0);
    }
}
END_TEST

static const struct {
    const char *text;
    bool ok;
} states[] = {
    {"a=1", true},
    {"a=1,b=2", true},
    {"a=1 , b=2,,", true},
    {"fw529a3039@dt=x", true},
    {"0a@sys=x", true},
    {"a_-*/=x y", true},
    {"", false},
    {",", false},
    {"a", false},
    {"A=1", false},
    {"0a=1", false},
    {"a=", false},
    {"a=1=2", false},
    {"a=1,a=2", false},
    {"a@0s=1", false},
    {"a@=1", false},
    {"a@fifteen-letters=1", false},
    {"a=\x01", false},
    {"a=1,b", false},
    {"a b=1", false},
};
START_TEST(a_state_is_passed_on_whole_or_not)
{
    ck_assert_int_eq(rv_tracestate_is_sound(rv_str_of(states[_i].text)), states[_i].ok);
}
END_TEST

START_TEST(a_state_has_limits)
{
    rv_buf b = RV_BUF_INIT(2000);

    for (int i = 0; i < 32; i++)
        rv_buf_printf(&b, "%sk%d=v", i ? "," : "", i);
    ck_assert(rv_tracestate_is_sound(rv_buf_str(&b)));
    rv_buf_puts(&b, ",one=more");
    ck_assert(!rv_tracestate_is_sound(rv_buf_str(&b)));
    rv_buf_clear(&b);
    rv_buf_printf(&b, "a=%0250d,b=%0250d", 1, 1);
    ck_assert(rv_tracestate_is_sound(rv_buf_str(&b)));
    rv_buf_puts(&b, ",c=12345");
    ck_assert_uint_eq(b.len, 513);
    ck_assert(!rv_tracestate_is_sound(rv_buf_str(&b)));
    rv_buf_clear(&b);
    rv_buf_printf(&b, "a=%0257d", 1);
    ck_assert(!rv_tracestate_is_sound(rv_buf_str(&b)));
    rv_buf_fini(&b);
}
END_TEST

static const struct {
    const char *text, *copy, *found; /* of the member "k"; NULL: none */
} baggages[] = {
    {"k=v", "k=v", "v"},
    {"k=v;p;q=1, b=2", "k=v;p;q=1,b=2", "v"},
    {" k = v%20w ", "k = v%20w", "v w"},
    {"k=%C3%A4", "k=%C3%A4", "\xc3\xa4"},
    {"k=%ff", "k=%ff", NULL}, /* not UTF-8 */
    {"k=%f", "", NULL},
    {"k", "", NULL},
    {"=v", "", NULL},
    {"k k=v", "", NULL},
    {"k=\"v\"", "", NULL},
    {"k=a b", "", NULL},
    {"k=", "k=", ""},
    {"bad,k=v", "k=v", "v"},
    {"k=v;\x01", "", NULL},
    {"", "", NULL},
};
START_TEST(baggage_is_copied_member_by_member)
{
    rv_buf copy = RV_BUF_INIT(1000), found = RV_BUF_INIT(1000);

    rv_baggage_copy(rv_str_of(baggages[_i].text), &copy);
    ck_assert_str_eq(rv_buf_cstr(&copy), baggages[_i].copy);
    ck_assert_int_eq(rv_baggage_find(rv_str_of(baggages[_i].text), "k", &found), baggages[_i].found != NULL);
    ck_assert_str_eq(rv_buf_cstr(&found), baggages[_i].found ? baggages[_i].found : "");
    rv_buf_fini(&copy);
    rv_buf_fini(&found);
}
END_TEST

START_TEST(baggage_has_limits)
{
    rv_buf b = RV_BUF_INIT(100000), copy = RV_BUF_INIT(100000);

    for (int i = 0; i < 70; i++)
        rv_buf_printf(&b, "k%d=v,", i);
    rv_baggage_copy(rv_buf_str(&b), &copy);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&copy), "k63=v"));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&copy), "k64=v"));
    rv_buf_clear(&b);
    rv_buf_clear(&copy);
    rv_buf_printf(&b, "a=%08000d,b=%0300d,c=1", 1, 1);
    rv_baggage_copy(rv_buf_str(&b), &copy);
    ck_assert_uint_eq(copy.len, 8002 + 4);
    ck_assert_str_eq(rv_buf_cstr(&copy) + 8002, ",c=1");
    rv_buf_fini(&b);
    rv_buf_fini(&copy);
}
END_TEST

TCase *context_case(void)
{
    TCase *tc = tcase_create("context");

    tcase_add_loop_test(tc, a_parent_is_read_or_refused, 0, RV_COUNT(parents));
    tcase_add_test(tc, a_new_trace_is_read_back);
    tcase_add_loop_test(tc, a_state_is_passed_on_whole_or_not, 0, RV_COUNT(states));
    tcase_add_test(tc, a_state_has_limits);
    tcase_add_loop_test(tc, baggage_is_copied_member_by_member, 0, RV_COUNT(baggages));
    tcase_add_test(tc, baggage_has_limits);
    return tc;
}
