/* Whatever an envelope can be told, the state that it writes can be loaded: numbers at their borders, wrong clocks,
 * texts that are long, empty or no UTF-8, trees at the limit of depth. A verb may refuse; it must not write what no one
 * reads. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST 100000
#define OR_NOT(call)                                                                                                   \
    do {                                                                                                               \
        int or_not = (call);                                                                                           \
        ck_assert_msg(or_not == 0 || or_not == RV_E_INVALID || or_not == RV_E_STATE, "%d", or_not);                    \
    } while (0)

static const int64_t ints[] = {INT64_MIN,
                               INT64_MIN + 1,
                               -1,
                               0,
                               1,
                               INT64_C(9007199254740991),
                               INT64_C(9007199254740992),
                               INT64_C(4503599627370497),
                               INT64_C(253402300800000000),
                               INT64_C(1) << 60,
                               INT64_MAX - 1,
                               INT64_MAX};
static const char *const values[] = {
    "{}",
    "{\"n\":18446744073709551615,\"m\":-9223372036854775808}",
    "{\"n\":123456789012345678901234567890,\"m\":-9223372036854775809}",
    "{\"n\":-0.0,\"m\":1e-400,\"x\":1.7976931348623157e308}",
    "{\"\":\"\\u0000\\u0080\\u009f\\uffff\",\"\xc2\x85\":null}",
};
static const rv_str texts[] = {
    RV_STR_LIT(""),         RV_STR_LIT("a\0b"),         RV_STR_LIT("\xc2\x80\xc2\x9f\x01\x1b\x7f"),
    RV_STR_LIT("\xff\xfe"), RV_STR_LIT("\xe2\x82"),     RV_STR_LIT("\xf4\x8f\xbf\xbf \" \\ \n"),
    RV_STR_LIT("plain"),    RV_STR_LIT("\xed\xa0\x80"),
};

static int64_t an_int(struct rv_rand r)
{
    return ints[rv_rand_below(r, RV_COUNT(ints))];
}

static rv_str a_text(struct rv_rand r)
{
    static char longest[LONGEST];
    size_t i = rv_rand_below(r, RV_COUNT(texts) + 1);

    if (i < RV_COUNT(texts))
        return texts[i];
    memset(longest, 1, sizeof longest);
    return (rv_str){longest, sizeof longest};
}

/* As deep as a reply or a tool's answer can be. */
static json_object *deepest(void)
{
    rv_buf b = RV_BUF_INIT(4096);
    json_object *v = NULL;

    for (int i = 0; i < RV_JSON_MAX_DEPTH; i++)
        rv_buf_puts(&b, "{\"a\":");
    rv_buf_puts(&b, "1");
    for (int i = 0; i < RV_JSON_MAX_DEPTH; i++)
        rv_buf_puts(&b, "}");
    OK(rv_json_parse(rv_buf_str(&b), NULL, &v, NULL));
    rv_buf_fini(&b);
    return v;
}

static json_object *a_value(struct rv_rand r)
{
    json_object *v = NULL;
    size_t i = rv_rand_below(r, RV_COUNT(values) + 1);

    if (i == RV_COUNT(values))
        return deepest();
    OK(rv_json_parse(rv_str_of(values[i]), NULL, &v, NULL));
    return v;
}

static void change(rv_envelope *env, struct rv_rand r)
{
    const struct rv_record_end end = {(enum rv_history_status)rv_rand_below(r, RV_N_HISTORY), a_text(r), an_int(r),
                                      an_int(r)};
    const struct rv_usage usage = {.calls = an_int(r),
                                   .input_tokens = an_int(r),
                                   .output_tokens = an_int(r),
                                   .cached_tokens = an_int(r),
                                   .cache_write_tokens = an_int(r),
                                   .reasoning_tokens = an_int(r),
                                   .cost_micro_usd = an_int(r)};
    json_object *v = a_value(r);

    switch (rv_rand_below(r, 13)) {
    case 0:
        OR_NOT(rv_envelope_set_output(env, a_text(r), v, NULL));
        break;
    case 1:
        OR_NOT(rv_envelope_set_metadata(env, a_text(r), v, NULL));
        break;
    case 2:
        OR_NOT(rv_envelope_merge_state(env, a_text(r), (enum rv_merge_mode)rv_rand_below(r, 3), v, NULL));
        break;
    case 3:
        OR_NOT(rv_envelope_set_suspended(env, a_text(r), v, NULL));
        break;
    case 4:
        OR_NOT(rv_envelope_add_error(
            env, &(const struct rv_error_entry){a_text(r), a_text(r), "LLMError", RV_FAILURE_NONE}, an_int(r), NULL));
        break;
    case 5:
        OR_NOT(rv_envelope_set_stage(env, a_text(r), NULL));
        break;
    case 6:
        OR_NOT(rv_envelope_fail_stage(env, a_text(r), a_text(r), NULL));
        break;
    case 7:
        OR_NOT(rv_envelope_record_start(env, S("a"), an_int(r), an_int(r), NULL));
        break;
    case 8:
        OR_NOT(rv_envelope_record_complete(env, S("a"), &end, an_int(r), NULL));
        break;
    case 9:
        OR_NOT(rv_envelope_record_skipped(env, a_text(r), an_int(r), an_int(r), NULL));
        break;
    case 10:
        OR_NOT(rv_envelope_note_passage(env, a_text(r), a_text(r), NULL, NULL));
        break;
    case 11:
        OR_NOT(rv_envelope_increment_iteration(env, a_text(r), NULL, NULL));
        break;
    default:
        rv_envelope_add_usage(env, &usage);
        break;
    }
    json_object_put(v);
}

static void ask(rv_envelope *env, struct rv_rand r)
{
    json_object *data = a_value(r);
    const struct rv_interrupt_spec spec = {.kind = (enum rv_interrupt_kind)rv_rand_below(r, RV_N_INTERRUPT),
                                           .id = a_text(r),
                                           .question = a_text(r),
                                           .message = a_text(r),
                                           .data = data,
                                           .ttl_us = an_int(r),
                                           .replace = true};
    const struct rv_response answer = {.text = a_text(r), .decision = a_text(r), .data = data};

    OR_NOT(rv_envelope_raise(env, &spec, an_int(r), NULL));
    if (rv_rand_below(r, 2))
        OR_NOT(rv_envelope_resolve(env, &answer, an_int(r), NULL));
    json_object_put(data);
}

static rv_envelope *extreme_envelope(struct rv_rand r)
{
    const struct rv_envelope_seed given = {.raw_input = a_text(r), .session_id = a_text(r)};
    rv_envelope *env = NULL;

    if (rv_envelope_new(&given, r, an_int(r), &env, NULL) < 0)
        OK(rv_envelope_new(NULL, r, an_int(r), &env, NULL));
    for (size_t n = rv_rand_below(r, 30); n > 0; n--)
        change(env, r);
    if (rv_rand_below(r, 2))
        ask(env, r);
    if (rv_rand_below(r, 2))
        OR_NOT(rv_envelope_terminate(env, a_text(r), RV_REASON_COMPLETED, an_int(r), NULL));
    else
        rv_envelope_complete(env, an_int(r));
    rv_envelope_set_bounds(env, an_int(r), an_int(r), an_int(r));
    return env;
}

START_TEST(every_state_that_can_be_written_can_be_loaded)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, (uint64_t)_i);

    for (int n = 0, rounds = rv_kit_sample(100, 400); n < rounds; n++) {
        rv_envelope *env = extreme_envelope(r), *loaded = NULL;
        char *first = world_state(env), *second;
        json_object *json = NULL;
        rv_err *err = NULL;

        int rc = rv_json_parse(rv_str_of(first), &opts, &json, &err);
        if (rc == 0)
            rc = rv_envelope_load(json, world_rand(), T0, &loaded, &err);
        ck_assert_msg(rc == 0, "seed %d, round %d: %s", _i, n, rv_err_text(err));
        second = world_state(loaded);
        ck_assert_str_eq(first, second);
        OK(rv_envelope_restart(loaded, NULL)); /* and a new run can begin with it */
        free(first);
        free(second);
        json_object_put(json);
        rv_envelope_free(loaded);
        rv_envelope_free(env);
    }
}
END_TEST

TCase *state_extreme_case(void)
{
    TCase *tc = tcase_create("state_extreme");

    tcase_add_loop_test(tc, every_state_that_can_be_written_can_be_loaded, 0, 4);
    return tc;
}
