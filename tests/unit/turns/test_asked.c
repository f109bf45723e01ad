/* What an agent that was asked may and may not do to the turn that asked it. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/turns/room.h"

#define ASK(id, agent, text) id " ask_agent {\"agent_name\":\"" agent "\",\"input_text\":\"" text "\"}"

/* Another one is still at work when the asking visit runs out of time. */
START_TEST(who_is_at_work_when_time_is_up_is_ended_and_kept)
{
    struct room *r = room_new(room_scene("late"), NULL);

    room_start(r);
    for (int i = 0; i < 3; i++)
        ck_assert(room_answer(r));
    ck_assert_uint_eq(r->n_calls, 2); /* a timer, and the child's model */
    ck_assert_int_eq(r->calls[0].kind, RV_EFFECT_ARM_TIMER);
    r->now_us += 5000000;
    ck_assert(room_answer(r));
    ck_assert(r->finished);
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_FAILED);
    char *rows = room_rows(r);
    ck_assert_msg(strstr(rows, "assistant<a[child](cancelled) \n"), "%s", rows);
    ck_assert_uint_eq(room_count(rv_buf_cstr(&r->events), "\"type\":\"agent_completed\""), 1);
    ck_assert_msg(strstr(rv_buf_cstr(&r->events), "agent_completed") <
                      strstr(rv_buf_cstr(&r->events), "stage_completed"),
                  "%s", rv_buf_cstr(&r->events));
    free(rows);
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* Only the stage's own agent speaks for the session, and only it is told where the routing stands. */
START_TEST(the_session_is_not_an_asked_agents)
{
    const struct rv_store_scope all = {0};
    struct rv_session_row row = {0};
    struct room *r = room_new(room_scene("not its own"), NULL);
    rv_err *err = NULL;

    room_start(r);
    ck_assert_ptr_nonnull(strstr(r->calls[0].request, "outing"));
    ck_assert(room_answer(r));
    ck_assert(room_answer(r));
    ck_assert_str_eq(r->calls[0].who, "child");
    ck_assert_ptr_null(strstr(r->calls[0].request, "outing"));
    ck_assert_ptr_null(strstr(r->calls[0].request, "\"history\""));
    room_go(r);
    ck_assert_int_eq(rv_store_get_session(r->store, &all, r->conversation.context.session_id, &row, &err), 0);
    ck_assert_str_ne(row.name, "Mine");
    ck_assert_msg(strstr(row.metadata.ptr, "\"state\":\"executing\""), "%.*s", RV_STR_ARG(row.metadata));
    ck_assert_uint_eq(room_count(rv_buf_cstr(&r->events), "\"type\":\"action\""), 2); /* people are told all the same */
    rv_session_row_fini(&row);
    room_free(r);
}
END_TEST

START_TEST(time_in_which_nobody_worked_does_not_count)
{
    struct room *r = room_new(room_scene("a long night"), NULL);

    room_start(r);
    ck_assert(room_answer(r));
    ck_assert(room_answer(r));
    r->gap_us = INT64_C(3600000000);
    room_die(r);
    room_go(r);
    char *rows = room_rows(r);
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_COMPLETED);
    ck_assert_msg(strstr(rows, "generation failed: too slow") && !strstr(rows, "timed out after"), "%s", rows);
    free(rows);
    room_check_replay(r);
    room_free(r);
}
END_TEST

START_TEST(a_chained_call_has_a_key_of_its_own)
{
    const struct rv_store_opts so = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;
    char *keys[2] = {NULL, NULL};

    ck_assert_int_eq(rv_store_open("memory:", &so, &store, &err), 0);
    for (int turn = 0; turn < 2; turn++) {
        struct room *r = room_new(room_scene("a chain that must not happen twice"), store);
        room_start(r);
        ck_assert(room_answer(r));
        ck_assert_str_eq(r->calls[0].name, "send");
        keys[turn] = rv_str_dup(rv_str_of(r->calls[0].key));
        ck_assert_uint_eq(strlen(keys[turn]), RV_UUID_MAX - 1);
        room_go(r);
        char *rows = room_rows(r);
        ck_assert_uint_eq(room_count(rows, keys[turn]), 2); /* the id of the call in its rows */
        free(rows);
        room_free(r);
    }
    ck_assert_str_ne(keys[0], keys[1]);
    free(keys[0]);
    free(keys[1]);
    rv_store_close(store);
}
END_TEST

/* The process dies while the chained tool is called: nobody knows whether it ran, and the output stands. */
START_TEST(a_chain_whose_end_nobody_knows_loses_nothing)
{
    struct room *r = room_new(room_scene("a chain that must not happen twice"), NULL);

    room_start(r);
    ck_assert(room_answer(r));
    room_die(r);
    ck_assert(r->finished);
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_COMPLETED);
    ck_assert_str_eq(room_output(r, "outputs.parent"), "{\"name\":\"ada\"}");
    ck_assert_str_eq(room_output(r, "outputs.parent_chained.status"), "\"error\"");
    char *rows = room_rows(r);
    ck_assert_uint_eq(room_count(rows, "user ask\n"), 1);
    ck_assert_uint_eq(room_count(rows, "assistant[parent]"), 1);
    ck_assert_msg(strstr(rows, "nobody knows whether the tool ran"), "%s", rows);
    free(rows);
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* Two stages ask the same agent by calls of the same id: what it does for each is its own, and all of it is kept. */
START_TEST(an_agent_that_two_stages_ask_is_two)
{
    static const struct scene s = {.name = "two stages",
                                   .stage = ", default_next: other}\n  - {name: other, agent: other",
                                   .parent = "tools: [ask_agent]\n",
                                   .agents = {"other", "tools: [ask_agent]\n", "child", "tools: [send]\n"},
                                   .lines = {{.to = "parent", .text = "", .calls = ASK("call_1", "child", "x")},
                                             {.to = "child", .text = "", .calls = "call_1 send {}"},
                                             {.to = "send", .text = "{}"},
                                             {.to = "child", .text = "sent"},
                                             {.to = "parent", .text = "done"},
                                             {.to = "parent", .text = "", .calls = ASK("call_1", "child", "x")},
                                             {.to = "child", .text = "", .calls = "call_1 send {}"},
                                             {.to = "send", .text = "{}"},
                                             {.to = "child", .text = "sent"},
                                             {.to = "parent", .text = "done"}}};
    struct room *r = room_new(&s, NULL);

    room_start(r);
    room_go(r);
    ck_assert_int_eq(rv_run_status(r->run), RV_RUN_COMPLETED);
    ck_assert_uint_eq(r->n_performed, 2); /* with a key each, or the second is taken for a repeat */
    char *rows = room_rows(r);
    ck_assert_uint_eq(room_count(rows, "[child]"), 6);
    free(rows);
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* Two agents are asked, and the provider of both counts its calls from 0: rows and events still tell their calls apart.
 * An id that is not counted stays. */
START_TEST(counted_ids_of_two_agents_differ)
{
    static const struct scene s = {
        .name = "counted ids",
        .parent = "tools: [ask_agent]\n",
        .agents = {"child", "tools: [send]\n"},
        .lines = {{.to = "parent", .text = "", .calls = ASK("functions.ask_agent:0", "child", "x")},
                  {.to = "child", .text = "", .calls = "functions.send:0 send {}"},
                  {.to = "send", .text = "{}"},
                  {.to = "child", .text = "", .calls = "toolu_1be941e5 send {}"},
                  {.to = "send", .text = "{}"},
                  {.to = "child", .text = "sent"},
                  {.to = "parent", .text = "done"}}};
    struct room *r = room_new(&s, NULL);

    room_start(r);
    room_go(r);
    char *rows = room_rows(r);
    ck_assert_msg(room_count(rows, "\"id\":\"functions.ask_agent:0\"") == 2 &&
                      room_count(rows, "\"id\":\"functions.ask_agent:0_1\"") == 2 &&
                      room_count(rows, "\"id\":\"toolu_1be941e5\"") == 2 && !strstr(rows, "functions.send:0"),
                  "%s", rows);
    free(rows);
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* Some providers have no ids: a call gets one, and by it those of the agent that it asks. */
START_TEST(a_call_without_an_id_gets_one)
{
    struct room *r = room_new(room_scene("no ids"), NULL);

    room_start(r);
    room_go(r);
    char *rows = room_rows(r);
    ck_assert_msg(!strstr(rows, "\"id\":\"\""), "%s", rows);
    ck_assert_msg(room_count(rows, "\"id\":\"call_1\"") == 2 && room_count(rows, "\"id\":\"call_2\"") == 2 &&
                      room_count(rows, "\"id\":\"call_2_1\"") == 2,
                  "%s", rows);
    free(rows);
    room_check_replay(r);
    room_free(r);
}
END_TEST

Suite *asked_suite(void)
{
    Suite *s = suite_create("asked");
    TCase *tc = tcase_create("asked");

    tcase_add_test(tc, who_is_at_work_when_time_is_up_is_ended_and_kept);
    tcase_add_test(tc, the_session_is_not_an_asked_agents);
    tcase_add_test(tc, time_in_which_nobody_worked_does_not_count);
    tcase_add_test(tc, a_chained_call_has_a_key_of_its_own);
    tcase_add_test(tc, a_chain_whose_end_nobody_knows_loses_nothing);
    tcase_add_test(tc, an_agent_that_two_stages_ask_is_two);
    tcase_add_test(tc, counted_ids_of_two_agents_differ);
    tcase_add_test(tc, a_call_without_an_id_gets_one);
    suite_add_tcase(s, tc);
    return s;
}
