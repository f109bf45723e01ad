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
/* In its one spelling. */
static void write_parent(const struct rv_trace_context *c, char out[56])
{
    memcpy(out, "00-", 3);
    rv_hex(c->trace, sizeof c->trace, out + 3);
    out[35] = '-';
    rv_hex(c->span, sizeof c->span, out + 36);
    out[52] = '-';
    rv_hex(&c->flags, 1, out + 53);
    out[55] = '\0';
}

START_TEST(a_parent_is_read_or_refused)
{
    struct rv_trace_context c;
    char text[56] = "";

    ck_assert_int_eq(rv_traceparent_read(rv_str_of(parents[_i].text), &c), parents[_i].out != NULL);
    ck_assert_int_eq(rv_trace_is_set(&c), parents[_i].out != NULL);
    if (parents[_i].out) {
        write_parent(&c, text);
        ck_assert_str_eq(text, parents[_i].out);
    }
}
END_TEST

START_TEST(a_new_trace_is_read_back)
{
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 1);
    struct rv_trace_context a, b;
    char text[56];

    for (int i = 0; i < 100; i++) {
        rv_trace_begin(rand, &a);
        write_parent(&a, text);
        ck_assert(rv_traceparent_read(rv_str_of(text), &b));
        ck_assert_int_eq(memcmp(&a, &b, sizeof a), 0);
    }
}
END_TEST

TCase *context_case(void)
{
    TCase *tc = tcase_create("context");

    tcase_add_loop_test(tc, a_parent_is_read_or_refused, 0, RV_COUNT(parents));
    tcase_add_test(tc, a_new_trace_is_read_back);
    return tc;
}
