/* Ids of blocks of a chat's stream, as clients send them back: which are one, and what they say. */
#include <stdint.h>

#include "coreengine/server/view_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/server/suites.h"

static const struct {
    const char *text;
    bool is_one;
    struct srv_cursor want;
} cursors[] = {
    {"1-17", true, {1, 17, SIZE_MAX}},
    {"2-3.1", true, {2, 3, 1}},
    {"1-0", true, {1, 0, SIZE_MAX}},
    {"", false, {0}},
    {"17", false, {0}},
    {"-17", false, {0}},
    {"1-", false, {0}},
    {"1-2.", false, {0}},
    {"1-2.3.4", false, {0}},
    {"1.2", false, {0}},
    {"1-99999999999999999999", false, {0}},
    {" 1-2", false, {0}},
};

START_TEST(cursors_are_read)
{
    struct srv_cursor c = {0};
    bool is_one = srv_cursor_read(rv_str_of(cursors[_i].text), &c);

    ck_assert_int_eq(is_one, cursors[_i].is_one);
    if (is_one)
        ck_assert(c.ordinal == cursors[_i].want.ordinal && c.line == cursors[_i].want.line &&
                  c.blocks == cursors[_i].want.blocks);
}
END_TEST

/* Ids of the streams of a run, and back. */
START_TEST(streams_have_ordinals)
{
    char id[SRV_STREAM_ID];

    srv_stream_id("run", _i, id);
    ck_assert_str_eq(id, _i == 1 ? "run" : _i == 2 ? "run~2" : "run~3");
    ck_assert_int_eq(srv_stream_ordinal(id), _i);
}
END_TEST

TCase *view_case(void)
{
    TCase *c = tcase_create("view");

    tcase_add_loop_test(c, cursors_are_read, 0, RV_COUNT(cursors));
    tcase_add_loop_test(c, streams_have_ordinals, 1, 4);
    return c;
}
