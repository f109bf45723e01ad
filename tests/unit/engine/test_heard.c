/* The partial answers that a cancelled run is told. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

#define N_CALLS 3

static const struct {
    const char *said; /* of each call, 40 times */
    size_t max;       /* of the event */
    const char *end;  /* of each text */
    bool is_whole;
} rows[] = {
    {"hello ", 1024, "hello ", true},
    {"hello ", 600, "\u2026", false},
    {"\u00e4\u00f6", 400, "\u2026", false},
    {"\x01", 600, "\x01\u2026", false}, /* a byte that takes six in JSON */
};

START_TEST(partial_answers_that_exceed_the_limit_are_cut_with_a_mark)
{
    struct call calls[N_CALLS] = {{0}};
    rv_buf out = RV_BUF_INIT(rows[_i].max);
    json_object *list = NULL;

    for (size_t i = 0; i < N_CALLS; i++) {
        struct call *c = &calls[i];
        c->kind = CALL_ANSWER;
        c->event = RV_EVENT_LLM_DONE;
        c->call_id = (int64_t)i + 1;
        c->next = i + 1 < N_CALLS ? c + 1 : NULL;
        c->heard = RV_BUF_INIT(4096);
        for (size_t k = 0; k < 40; k++)
            rv_buf_puts(&c->heard, rows[_i].said);
    }
    engine_heard_write(calls, &out);
    ck_assert_int_eq(out.rc, 0);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&out), NULL, &list, NULL), 0);
    ck_assert_uint_eq(json_object_array_length(list), N_CALLS);
    for (size_t i = 0; i < N_CALLS; i++) {
        json_object *text = NULL;
        json_object_object_get_ex(json_object_array_get_idx(list, i), "text", &text);
        rv_str got = rv_json_str(text);
        size_t n_end = strlen(rows[_i].end);
        ck_assert(got.len > n_end && memcmp(got.ptr + got.len - n_end, rows[_i].end, n_end) == 0);
        ck_assert(rv_utf8_valid(got, NULL));
        ck_assert_int_eq(got.len == calls[i].heard.len, rows[_i].is_whole);
        rv_buf_fini(&calls[i].heard);
    }
    json_object_put(list);
    rv_buf_fini(&out);
}
END_TEST

Suite *heard_suite(void)
{
    Suite *s = suite_create("heard");
    TCase *tc = tcase_create("core");

    tcase_add_loop_test(tc, partial_answers_that_exceed_the_limit_are_cut_with_a_mark, 0, RV_COUNT(rows));
    suite_add_tcase(s, tc);
    return s;
}
