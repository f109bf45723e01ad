/* traceparent: each rule with what breaks it. */
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

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
static const struct {
    const char *text;
    bool is_valid;
} states[] = {
    {"a=1", true},
    {"congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", true},
    {"tenant@sys-tem=v w", true},
    {" a=1 ,\tb=2 ", true},
    {"a=" X64 X64 X64 X64, true},
    {"a=" X64 X64 X64 X64 "x", false},
    {"a=1,b=" X64 X64 X64 X64 ",c=" X64 X64 X64 X64, false}, /* together too long */
    {"a=1,a2=2,a3=3,a4=4,a5=5,a6=6,a7=7,a8=8,a9=9,b=1,b2=2,b3=3,b4=4,b5=5,b6=6,b7=7,b8=8,b9=9,"
     "c=1,c2=2,c3=3,c4=4,c5=5,c6=6,c7=7,c8=8,c9=9,d=1,d2=2,d3=3,d4=4,d5=5",
     true},
    {"a=1,a2=2,a3=3,a4=4,a5=5,a6=6,a7=7,a8=8,a9=9,b=1,b2=2,b3=3,b4=4,b5=5,b6=6,b7=7,b8=8,b9=9,"
     "c=1,c2=2,c3=3,c4=4,c5=5,c6=6,c7=7,c8=8,c9=9,d=1,d2=2,d3=3,d4=4,d5=5,d6=6",
     false},
    {"", false},
    {"a", false},
    {"=1", false},
    {"a=", false},
    {"A=1", false},
    {"@a=1", false},
    {"a=1,", false},
    {"a=1,,b=2", false},
    {"a=b=c", false},
    {"a=\xc3\xa4", false},
    {"a=1\r\nx: y", false},
};

START_TEST(a_state_is_passed_on_or_dropped_as_a_whole)
{
    ck_assert_int_eq(rv_tracestate_is_valid(rv_str_of(states[_i].text)), states[_i].is_valid);
}
END_TEST

START_TEST(requests_name_the_trace_of_their_run)
{
    static const struct rv_trace_span call = {.run = "run_1", .call_id = 3};
    const char *const caller = "00-" TRACE "-" SPAN "-01", *const unsampled = "00-" TRACE "-" SPAN "-00";
    struct rv_trace_headers h;
    struct rv_trace_context c;
    unsigned char span[8], trace[16];

    ck_assert(!rv_trace_make_headers("run_1", 3, NULL, "a=1", false, &h)); /* no one else knows the run */
    ck_assert(!rv_trace_make_headers("run_1", 3, "nonsense", "a=1", false, &h));
    ck_assert(rv_trace_make_headers("run_1", 3, caller, "a=1", false, &h)); /* passed on */
    ck_assert_str_eq(h.parent, caller);
    ck_assert_str_eq(h.state, "a=1");
    ck_assert(rv_trace_make_headers("run_1", 3, unsampled, "a", true, &h));
    ck_assert_ptr_null(h.state);
    ck_assert(rv_traceparent_read(rv_str_of(h.parent), &c));
    rv_trace_make_span_id(&call, span);
    ck_assert_int_eq(memcmp(c.span, span, sizeof span), 0);
    ck_assert_int_eq(c.flags, 0);
    rv_trace_of_run("run_1", caller, trace);
    ck_assert_int_eq(memcmp(c.trace, trace, sizeof trace), 0);
    ck_assert(rv_trace_make_headers("run_1", 3, NULL, "a=1", true, &h)); /* a trace of its own */
    ck_assert_ptr_null(h.state);
    ck_assert(rv_traceparent_read(rv_str_of(h.parent), &c));
    rv_trace_of_run("run_1", NULL, trace);
    ck_assert_int_eq(memcmp(c.trace, trace, sizeof trace), 0);
    ck_assert_int_eq(c.flags, RV_TRACE_SAMPLED);
}
END_TEST

/* Each part of a key counts, and one cannot become another. */
START_TEST(ids_of_spans_differ)
{
    static const struct rv_trace_span spans[] = {
        {.run = "r", .call_id = 1},
        {.run = "r", .call_id = 2},
        {.run = "s", .call_id = 1},
        {.run = "r", .stage = "a", .visit = 1},
        {.run = "r", .stage = "a", .visit = 2},
        {.run = "r", .stage = "b", .visit = 1},
        {.run = "r", .path = "a", .stage = "b", .visit = 1},
        {.run = "r", .stage = "a", .visit = 1, .asked_by = "c"},
        {.run = "r", .path = "c", .stage = "a", .visit = 1},
    };
    unsigned char ids[RV_COUNT(spans)][8];

    for (size_t i = 0; i < RV_COUNT(spans); i++) {
        rv_trace_make_span_id(&spans[i], ids[i]);
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(memcmp(ids[i], ids[k], sizeof ids[i]) != 0, "%zu and %zu", i, k);
    }
}
END_TEST

TCase *context_case(void)
{
    TCase *tc = tcase_create("context");

    tcase_add_loop_test(tc, a_state_is_passed_on_or_dropped_as_a_whole, 0, RV_COUNT(states));
    tcase_add_test(tc, requests_name_the_trace_of_their_run);
    tcase_add_test(tc, ids_of_spans_differ);
    tcase_add_loop_test(tc, a_parent_is_read_or_refused, 0, RV_COUNT(parents));
    tcase_add_test(tc, a_new_trace_is_read_back);
    return tc;
}
