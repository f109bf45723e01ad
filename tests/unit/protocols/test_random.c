/* Random turns through each encoder, judged by rules that are written a second time. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/kit/kit.h"
#include "tests/unit/protocols/judge.h"
#include "tests/unit/protocols/play.h"
#include "tests/unit/protocols/suites.h"

#define SEEDS      150
#define SOAK_SEEDS 20000

static bool judge(int kind, rv_str stream, const struct gen *g, rv_buf *why)
{
    switch ((enum rv_protocol_kind)kind) {
    case RV_PROTOCOL_AGUI:
        return judge_agui(stream, g, why);
    case RV_PROTOCOL_AGUI_OLD:
        return judge_agui_old(stream, g, why);
    case RV_PROTOCOL_OPENAI:
        return judge_chunks(stream, g, false, why);
    case RV_PROTOCOL_REMLIGHT:
        return judge_chunks(stream, g, true, why);
    case RV_PROTOCOL_RESPONSES:
        return judge_responses(stream, g, why);
    case RV_N_PROTOCOLS:
        break;
    }
    return false;
}

START_TEST(any_turn_is_a_good_stream)
{
    uint64_t n = getenv("REEVE_SOAK") ? SOAK_SEEDS : SEEDS;
    const char *from = getenv("PROTOCOLS_SEED");

    for (uint64_t seed = from ? strtoull(from, NULL, 10) : 1; n-- > 0; seed++) {
        rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT), why = RV_BUF_INIT((size_t)1 << 20);
        rv_err *err = NULL;
        struct gen g;
        gen_make(seed, &g);
        int rc = play(rv_buf_str(&g.script), rv_protocol_text((enum rv_protocol_kind)_i), seed % 2 == 0, &out, &err);
        ck_assert_msg(rc == 0, "seed %llu: %s", (unsigned long long)seed, rv_err_text(err));
        ck_assert_msg(judge(_i, rv_buf_str(&out), &g, &why), "%s, PROTOCOLS_SEED=%llu: %s",
                      rv_protocol_text((enum rv_protocol_kind)_i), (unsigned long long)seed, rv_buf_cstr(&why));
        rv_buf_fini(&out);
        rv_buf_fini(&why);
        gen_fini(&g);
    }
}
END_TEST

START_TEST(the_same_turn_gives_the_same_bytes)
{
    rv_buf one = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT), two = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    struct gen g;

    gen_make(7, &g);
    ck_assert_int_eq(play(rv_buf_str(&g.script), rv_protocol_text((enum rv_protocol_kind)_i), true, &one, NULL), 0);
    ck_assert_int_eq(play(rv_buf_str(&g.script), rv_protocol_text((enum rv_protocol_kind)_i), true, &two, NULL), 0);
    ck_assert(one.len > 0 && rv_str_eq(rv_buf_str(&one), rv_buf_str(&two)));
    gen_fini(&g);
    rv_buf_fini(&one);
    rv_buf_fini(&two);
}
END_TEST

TCase *random_case(void)
{
    TCase *c = tcase_create("random");

    tcase_add_loop_test(c, any_turn_is_a_good_stream, 0, RV_N_PROTOCOLS);
    tcase_add_loop_test(c, the_same_turn_gives_the_same_bytes, 0, RV_N_PROTOCOLS);
    return c;
}
