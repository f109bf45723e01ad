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

static bool asks_model(const struct room *r, const char *who)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].kind == RV_EFFECT_CALL_LLM && strcmp(r->calls[i].who, who) == 0)
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
    for (size_t i = 0; i + 1 < calm->n_steps; i++) {
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

/* What people have seen when it is cancelled is what is kept, no more and no less. */
static const struct {
    const char *scene;
    size_t answers;
    const char *partial, *rows;
} cases[] = {
    {"plain", 0, "hel", "user(cancelled) ask\nassistant[parent](cancelled) hel\n"},
    {"plain", 0, "", "user(cancelled) ask\nassistant[parent](cancelled) \n"},
    {"tools side by side, one that fails", 1, "",
     "user(cancelled) ask\n"
     "assistant[parent](cancelled) I look.\n"
     "tool_call[parent](cancelled) {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{\"q\":1}}\n"
     "tool_call[parent](cancelled) {\"name\":\"look\",\"id\":\"c2\",\"arguments\":{}}\n"
     "assistant[parent](cancelled) \n"},
    {"tools side by side, one that fails", 2, "",
     "user(cancelled) ask\n"
     "assistant[parent](cancelled) I look.\n"
     "tool_call[parent](cancelled) {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{\"q\":1}}\n"
     "tool_response[parent](cancelled) {\"v\":1} {\"name\":\"read\",\"id\":\"c1\"}\n"
     "tool_call[parent](cancelled) {\"name\":\"look\",\"id\":\"c2\",\"arguments\":{}}\n"
     "assistant[parent](cancelled) \n"},
    {"tools side by side, one that fails", 3, "do",
     "user(cancelled) ask\n"
     "assistant[parent](cancelled) I look.\n"
     "tool_call[parent](cancelled) {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{\"q\":1}}\n"
     "tool_response[parent](cancelled) {\"v\":1} {\"name\":\"read\",\"id\":\"c1\"}\n"
     "tool_call[parent](cancelled) {\"name\":\"look\",\"id\":\"c2\",\"arguments\":{}}\n"
     "tool_response[parent](cancelled) {\"error\":{\"type\":\"ExecutionError\",\"message\":\"it is dark\"}} "
     "{\"name\":\"look\",\"id\":\"c2\"}\n"
     "assistant[parent](cancelled) do\n"},
    /* the child speaks: it is heard in place of its parent, and so it is kept */
    {"a child with tools", 2, "I re",
     "user(cancelled) ask\n"
     "assistant[parent](cancelled) Wait.\n"
     "tool_call[parent](cancelled) "
     "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?\"}}\n"
     "assistant<a1[child](cancelled) I re\n"
     "assistant[parent](cancelled) I re\n"},
    {"a child with tools", 3, "",
     "user(cancelled) ask\n"
     "assistant[parent](cancelled) Wait.\n"
     "tool_call[parent](cancelled) "
     "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?\"}}\n"
     "assistant<a1[child](cancelled) I read.\n"
     "tool_call<a1[child](cancelled) {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{}}\n"
     "tool_call<a1[child](cancelled) {\"name\":\"put\",\"id\":\"c2\",\"arguments\":{}}\n"
     "assistant<a1[child](cancelled) \n"
     "assistant[parent](cancelled) I read.\n"},
    /* between: the child is done, its parent speaks and is not heard */
    {"a child with tools", 6, "as I",
     "user(cancelled) ask\n"
     "assistant[parent](cancelled) Wait.\n"
     "tool_call[parent](cancelled) "
     "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?\"}}\n"
     "assistant<a1[child] I read.\n"
     "tool_call<a1[child] {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{}}\n"
     "tool_response<a1[child] {\"v\":1} {\"name\":\"read\",\"id\":\"c1\"}\n"
     "tool_call<a1[child] {\"name\":\"put\",\"id\":\"c2\",\"arguments\":{}}\n"
     "tool_response<a1[child] {\"v\":2} {\"name\":\"put\",\"id\":\"c2\"}\n"
     "assistant<a1[child] this\n"
     "tool_response[parent](cancelled) {\"status\":\"success\",\"output\":\"this\",\"text_response\":\"I "
     "read.\\n\\nthis\",\"agent_schema\":\"child\",\"input_text\":\"what?\",\"is_structured_output\":false,\"chained_"
     "tool_result\":null} {\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
     "assistant[parent](cancelled) I read.\n"
     "\n"
     "this\n"},
    /* only the parent is heard */
    {"the parent is heard", 2, "th",
     "user(cancelled) ask\n"
     "tool_call[parent](cancelled) {\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\","
     "\"input_text\":\"what?\"}}\n"
     "assistant<a1[child](cancelled) th\n"
     "assistant[parent](cancelled) \n"},
    /* both, and a part of the parent's */
    {"both are heard", 3, "it sa",
     "user(cancelled) ask\n"
     "tool_call[parent](cancelled) "
     "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?\"}}\n"
     "assistant<a1[child] this\n"
     "tool_response[parent](cancelled) "
     "{\"status\":\"success\",\"output\":\"this\",\"text_response\":\"this\",\"agent_schema\":\"child\",\"input_text\":"
     "\"what?\",\"is_structured_output\":false,\"chained_tool_result\":null} {\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
     "assistant[parent](cancelled) this\n"
     "\n"
     "it sa\n"},
    /* the output stands, whatever becomes of the tool behind it */
    {"a chain", 1, "", "user ask\nassistant[parent] {\"name\":\"ada\"}\n"},
};

/* Proves p8.W25: A turn that is cancelled keeps what was seen of it, marked
 * Proves remlight.19/18: What had come is kept, with a status */
START_TEST(what_was_seen_is_kept)
{
    struct room *r = begun(room_scene(cases[_i].scene), cases[_i].answers);

    room_cancel(r, cases[_i].partial);
    char *rows = room_rows(r);
    ck_assert_str_eq(rows, cases[_i].rows);
    free(rows);
    room_check_replay(r);
    room_free(r);
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
    tcase_add_loop_test(tc, what_was_seen_is_kept, 0, RV_COUNT(cases));
    tcase_add_test(tc, the_output_outlives_a_cancelled_chain);
    tcase_add_test(tc, a_partial_of_another_call_is_nobodys);
    suite_add_tcase(s, tc);
    return s;
}
