/* Turns that are cancelled. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/turns/room.h"

static struct room *begun(const struct scene *s, size_t n_answers)
{
    struct room *r = room_new(s, NULL);

    room_start(r);
    for (size_t i = 0; i < n_answers; i++)
        ck_assert(room_answer(r));
    return r;
}

/* For words that people are shown: not for a plan. */
static bool asks_model(const struct room *r, const char *who)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].kind == RV_EFFECT_CALL_LLM && strcmp(r->calls[i].who, who) == 0 &&
            !strstr(r->calls[i].request, "\"tools\":[{\"name\":\"__planning__\""))
            return true;
    return false;
}

/* A turn is there once, all of it marked, and every response stands behind its call. */
static void check_rows(const struct room *r, const char *rows, bool was_kept)
{
    const char *name = r->scene->name;
    size_t n_user = room_count(rows, "user ask\n") + room_count(rows, "user(cancelled) ask\n");
    size_t n_calls = room_count(rows, "tool_call[") + room_count(rows, "tool_call<");
    size_t n_responses = room_count(rows, "tool_response[") + room_count(rows, "tool_response<");

    ck_assert_msg(n_user == !r->scene->forgets, "%s:\n%s", name, rows);
    ck_assert_msg(n_responses <= n_calls, "%s:\n%s", name, rows);
    if (!was_kept && !r->scene->forgets) {
        ck_assert_msg(strncmp(rows, "user(cancelled) ask\n", 20) == 0, "%s:\n%s", name, rows);
        ck_assert_msg(room_count(rows, "assistant[parent](cancelled)") >= 1, "%s:\n%s", name, rows);
    }
}

/* Proves p8.W25 */
START_TEST(whenever_it_happens_the_rows_are_whole) /* p8 W25 */
{
    const struct scene *s = room_scene_at(_i);
    struct room *calm = begun(s, 0);

    room_go(calm);
    for (size_t step = rv_kit_stride(16), i = (size_t)_i % step; i + 1 < calm->n_steps; i += step) {
        struct room *r = begun(s, i);
        bool was_kept = r->n_keeps > 0, parent_speaks = asks_model(r, "parent");
        room_cancel(r, "so fa");
        ck_assert(r->finished);
        ck_assert_int_eq(rv_run_status(r->run), RV_RUN_CANCELLED);
        char *rows = room_rows(r);
        check_rows(r, rows, was_kept);
        ck_assert_uint_le(r->n_keeps, 1 + was_kept);
        if (strstr(s->parent, "structured_output")) /* pieces of data are shown to nobody */
            ck_assert_msg(!strstr(strstr(rows, "assistant[parent]"), "so fa"), "%s:\n%s", s->name, rows);
        else if (parent_speaks && s->lines[0].to && !strstr(rows, "assistant<"))
            ck_assert_msg(s->forgets || strstr(strstr(rows, "assistant[parent]"), "so fa"), "%s:\n%s", s->name, rows);
        room_check_replay(r);
        free(rows);
        room_free(r);
    }
    room_free(calm);
}
END_TEST

/* Proves p8.W25: A turn that is cancelled keeps what was seen of it, marked
 * Proves remlight.19/18: What had come is kept, with a status */
START_TEST(what_was_seen_is_kept)
{
    const struct scene *s = room_scene_at(_i);
    size_t n = s->cancelled ? json_object_array_length(s->cancelled) : 0;

    for (size_t i = 0; i < n; i++) {
        json_object *c = json_object_array_get_idx(s->cancelled, i);
        int64_t after = 0;
        const char *partial = "", *want = "";
        ck_assert(rv_json_get_int(c, "after", &after) && rv_json_get_text(c, "partial", &partial) &&
                  rv_json_get_text(c, "rows", &want));
        struct room *r = begun(s, (size_t)after);
        room_cancel(r, partial);
        char *rows = room_rows(r);
        ck_assert_str_eq(rows, want);
        free(rows);
        room_check_replay(r);
        room_free(r);
    }
}
END_TEST

/* Proves p8.W36 */
START_TEST(the_output_outlives_a_cancelled_chain)
{
    struct room *r = begun(room_scene("a chain"), 1);

    room_cancel(r, "");
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_CANCELLED);
    ck_assert_str_eq(room_output(r, "outputs.parent"), "{\"name\":\"ada\"}");
    room_free(r);
}
END_TEST

START_TEST(a_partial_of_another_call_is_nobodys)
{
    struct room *r = begun(room_scene("plain"), 0);
    const struct rv_event ev = {.kind = RV_EVENT_CANCEL,
                                .now_us = r->now_us,
                                .reply =
                                    RV_STR_LIT("[1,{\"call_id\":77,\"text\":\"x\"},{\"call_id\":1},{\"text\":\"y\"}]")};
    rv_err *err = NULL;

    ck_assert_int_eq(room_step(r, &ev, &err), 0);
    char *rows = room_rows(r);
    ck_assert_str_eq(rows, "user(cancelled) ask\nassistant[parent](cancelled) \n");
    free(rows);
    room_free(r);
}
END_TEST

Suite *cancel_suite(void)
{
    Suite *s = suite_create("cancel");
    TCase *tc = tcase_create("cancel");

    tcase_add_loop_test(tc, whenever_it_happens_the_rows_are_whole, 0, room_count_scenes());
    tcase_add_loop_test(tc, what_was_seen_is_kept, 0, room_count_scenes());
    tcase_add_test(tc, the_output_outlives_a_cancelled_chain);
    tcase_add_test(tc, a_partial_of_another_call_is_nobodys);
    suite_add_tcase(s, tc);
    return s;
}
