/* Turns that wait for a person. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/turns/room.h"

/* Whose words are the answer changes nothing else. */
static const struct {
    const char *stage, *answer;
} voices[] = {{", child_text: child", "this"}, {"", "I conclude"}};
static struct scene gate;

#define UP_TO_THE_GATE(mark)                                                                                           \
    "user" mark " ask\n"                                                                                               \
    "assistant[parent]" mark " One moment.\n"                                                                          \
    "tool_call[parent]" mark " {\"name\":\"action\",\"id\":\"o\",\"arguments\":{}}\n"                                  \
    "tool_response[parent]" mark " {\"_action_event\":true,\"action_type\":\"observation\",\"status\":\"success\","    \
    "\"payload\":{\"session_name\":\"Cats\"}} {\"name\":\"action\",\"id\":\"o\"}\n"                                    \
    "tool_call[parent]" mark " {\"name\":\"action\",\"id\":\"d\",\"arguments\":{}}\n"                                  \
    "tool_response[parent]" mark " {\"_action_event\":true,\"action_type\":\"complete\",\"status\":\"success\"} "      \
    "{\"name\":\"action\",\"id\":\"d\"}\n"                                                                             \
    "tool_call[parent]" mark " {\"name\":\"ask_agent\",\"id\":\"a\",\"arguments\":{\"agent_name\":\"child\","          \
    "\"input_text\":\"what?\"}}\n"                                                                                     \
    "assistant<a[child] this\n"                                                                                        \
    "tool_response[parent]" mark " {\"status\":\"success\",\"output\":\"this\",\"text_response\":\"this\","            \
    "\"agent_schema\":\"child\",\"input_text\":\"what?\",\"is_structured_output\":false,\"chained_tool_result\":null}" \
    " "                                                                                                                \
    "{\"name\":\"ask_agent\",\"id\":\"a\"}\n"                                                                          \
    "tool_call[parent]" mark " {\"name\":\"wipe\",\"id\":\"w\",\"arguments\":{}}\n"

/* In whose words the answer is. */
static struct room *waiting(const char *stage)
{
    gate = *room_scene("a gate");
    gate.stage = stage;
    struct room *r = room_new(&gate, NULL);

    room_start(r);
    room_go(r);
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_INTERRUPTED);
    char *rows = room_rows(r);
    ck_assert_str_eq(rows, ""); /* the turn is not over */
    free(rows);
    return r;
}

static void check_session(struct room *r)
{
    const struct rv_store_scope all = {0};
    struct rv_session_row row = {0};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_get_session(r->store, &all, r->conversation.context.session_id, &row, &err), 0);
    ck_assert_str_eq(row.name, "Cats");
    ck_assert_msg(strstr(row.metadata.ptr, "\"state\":\"idle\",\"target\":\"complete\""), "%.*s",
                  RV_STR_ARG(row.metadata));
    rv_session_row_fini(&row);
}

START_TEST(calls_of_the_client_have_their_results_whatever_order_they_were_made_in)
{
    struct room *r = room_new(room_scene("tools of the client"), NULL);

    room_start(r);
    room_go(r);
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_INTERRUPTED);
    room_approve(r);
    room_go(r);
    char *rows = room_rows(r);
    ck_assert_str_eq(rows, "user ask\nassistant[parent] Look.\n"
                           "tool_call[parent] {\"name\":\"show_map\",\"id\":\"c1\",\"arguments\":{}}\n"
                           "tool_response[parent] {\"result\":\"made\"} {\"name\":\"show_map\",\"id\":\"c1\"}\n"
                           "tool_call[parent] {\"name\":\"put\",\"id\":\"c2\",\"arguments\":{}}\n"
                           "tool_response[parent] {\"v\":1} {\"name\":\"put\",\"id\":\"c2\"}\n"
                           "tool_call[parent] {\"name\":\"locate\",\"id\":\"c3\",\"arguments\":{}}\n"
                           "tool_response[parent] {\"result\":\"made\"} {\"name\":\"locate\",\"id\":\"c3\"}\n"
                           "user And now?\nassistant[parent] Done.\n");
    free(rows);
    room_check_replay(r);
    room_free(r);
}
END_TEST

START_TEST(what_was_said_before_the_pause_is_kept_with_the_turn)
{
    struct room *r = waiting(voices[_i].stage);
    char want[2000];

    room_approve(r);
    room_go(r);
    char *rows = room_rows(r);
    snprintf(want, sizeof want,
             "%stool_response[parent] {\"wiped\":1} {\"name\":\"wipe\",\"id\":\"w\"}\nassistant[parent] %s\n",
             UP_TO_THE_GATE(""), voices[_i].answer);
    ck_assert_str_eq(rows, want);
    free(rows);
    char *columns = room_columns(r);
    ck_assert_ptr_nonnull(strstr(columns, "in 121 out 16 "));
    free(columns);
    check_session(r);
    room_check_replay(r);
    room_free(r);
}
END_TEST

START_TEST(a_death_behind_the_pause_changes_nothing)
{
    char want[80];

    for (int answers = 0; answers < 2; answers++) {
        struct room *r = waiting(voices[_i].stage);
        room_approve(r);
        if (answers > 0) /* else the tool was under way, and nobody knows whether it ran */
            ck_assert(room_answer(r));
        room_die(r);
        if (answers > 0) {
            room_go(r);
            char *rows = room_rows(r);
            snprintf(want, sizeof want, "\nassistant[parent] %s\n", voices[_i].answer);
            ck_assert_ptr_nonnull(strstr(rows, want));
            free(rows);
            check_session(r);
        } else {
            ck_assert_int_eq(rv_run_status(r->run), RV_RUN_INTERRUPTED);
        }
        ck_assert_uint_le(r->n_performed, 1);
        room_check_replay(r);
        room_free(r);
    }
}
END_TEST

/* Proves p8.W25 */
START_TEST(a_turn_that_is_cancelled_while_it_waits_is_kept) /* p8 W23, W25 */
{
    struct room *r = waiting("");

    room_cancel(r, "");
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_CANCELLED);
    char *rows = room_rows(r);
    ck_assert_str_eq(rows, UP_TO_THE_GATE("(cancelled)") "assistant[parent](cancelled) this\n");
    free(rows);
    check_session(r);
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* A person is asked before the output may be used; then the stage works again. */
START_TEST(a_chain_waits_for_the_person_that_is_asked_first)
{
    struct room *r = room_new(room_scene("a chain behind a question"), NULL);

    room_start(r);
    room_go(r);
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(r->n_performed, 0);
    room_approve(r);
    room_go(r);
    ck_assert_uint_eq(r->n_performed, 1);
    room_check_replay(r);
    room_free(r);
}
END_TEST

Suite *pauses_suite(void)
{
    Suite *s = suite_create("pauses");
    TCase *tc = tcase_create("pauses");

    tcase_add_test(tc, calls_of_the_client_have_their_results_whatever_order_they_were_made_in);
    tcase_add_loop_test(tc, what_was_said_before_the_pause_is_kept_with_the_turn, 0, RV_COUNT(voices));
    tcase_add_loop_test(tc, a_death_behind_the_pause_changes_nothing, 0, RV_COUNT(voices));
    tcase_add_test(tc, a_turn_that_is_cancelled_while_it_waits_is_kept);
    tcase_add_test(tc, a_chain_waits_for_the_person_that_is_asked_first);
    suite_add_tcase(s, tc);
    return s;
}
