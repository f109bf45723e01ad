/* What is told and kept of agents whose answer is an object, and of answers that are not what they seem. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/turns/room.h"

static struct room *play(const struct scene *s)
{
    struct room *r = room_new(s, NULL);

    room_start(r);
    room_go(r);
    return r;
}

/* --- the event --- */

static const struct {
    const char *scene, *told, *before; /* told NULL: nothing is */
} outputs[] = {
    {"words before an output",
     "\"tool\":\"parent\",\"step_id\":\"parent_structured_output\",\"status\":\"success\",\"structured\":true,"
     "\"result\":{\"name\":\"ada\"}}",
     "\"stage_completed\""},
    {"an output as JSON", "\"step_id\":\"parent_structured_output\"", "\"stage_completed\""},
    {"an output that is repaired", "\"step_id\":\"parent_structured_output\"", "\"stage_completed\""},
    {"an output with a null", "\"result\":{\"name\":\"ada\",\"n\":null}", "\"chained\":true"},
    {"a child with an output",
     "\"agent\":\"child\",\"depth\":1,\"parent_tool_call_id\":\"a1\",\"tool\":\"child\","
     "\"step_id\":\"child_structured_output_a1\"",
     "\"chained\":true"},
    {"plain", NULL, NULL},
    {"a turn that fails", NULL, NULL},
    {"an output that never fits", NULL, NULL},
};

/* Proves remlight.5/top */
START_TEST(an_object_is_told_once_as_a_call_of_its_agent) /* remlight 5, 8 */
{
    struct room *r = play(room_scene(outputs[_i].scene));
    const char *events = rv_buf_cstr(&r->events);

    ck_assert_msg(room_count(events, "\"structured\":true") == (outputs[_i].told ? 1 : 0), "%s", events);
    ck_assert_msg(!strstr(events, "\"tool\":\"final_result\""), "%s", events);
    if (outputs[_i].told) {
        const char *at = strstr(events, outputs[_i].told);
        ck_assert_msg(at && strstr(at, outputs[_i].before), "%s", events);
    }
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* Proves p8.17/null: A null that the agent gave goes along, but where the tool's schema takes none */
START_TEST(a_chained_tool_gets_the_nulls_that_the_agent_gave) /* p8 17 */
{
    struct room *r = room_new(room_scene("an output with a null"), NULL);

    room_start(r);
    ck_assert(room_answer(r));
    ck_assert_uint_eq(r->n_calls, 1);
    ck_assert_str_eq(r->calls[0].name, "put");
    ck_assert_str_eq(r->calls[0].request, "{\"name\":\"ada\",\"n\":null}");
    room_go(r);
    ck_assert_str_eq(room_output(r, "outputs.parent"), "{\"name\":\"ada\",\"n\":null}");
    room_free(r);
}
END_TEST

START_TEST(no_more_words_are_kept_than_metadata_has_room_for)
{
    static char many[(80 << 10) + 1];
    const struct scene s = {.name = "many words",
                            .parent = "structured_output: true\nproperties: {name: {type: string}}\n",
                            .lines = {{.to = "parent", .text = many, .calls = "f final_result {\"name\":\"ada\"}"}}};
    memset(many, 1, sizeof many - 1); /* the longest when it is written */
    struct room *r = play(&s);
    char *columns = room_columns(r);
    ck_assert_uint_eq(room_count(columns, "\\u0001"), (size_t)64 << 10);
    free(columns);
    room_free(r);
}
END_TEST

/* --- the answer that was cut off --- */

START_TEST(a_cut_off_answer_says_so)
{
    struct room *cut = play(room_scene("an answer that was cut off")), *whole = play(room_scene("plain"));
    char *columns = room_columns(cut), *others = room_columns(whole);

    ck_assert_msg(room_count(columns, "\"finish_reason\":\"length\"") == 1, "%s", columns);
    ck_assert_msg(!strstr(others, "finish_reason"), "%s", others);
    ck_assert_msg(strstr(rv_buf_cstr(&cut->events), "the reply was cut off at its longest"), "%s",
                  rv_buf_cstr(&cut->events));
    room_check_replay(cut);
    free(columns);
    free(others);
    room_free(cut);
    room_free(whole);
}
END_TEST

/* The history does not tell the calls of the output tool; their rows are in the session all the same. */
START_TEST(calls_that_are_not_told_again_keep_their_ids)
{
    static const char *const names[] = {"without ids", "counted by the provider"};
    const struct rv_store_opts so = {0};
    const struct scene *s = room_scene(names[_i]);
    rv_store *store = NULL;
    char *rows = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open("memory:", &so, &store, &err), 0);
    for (int turn = 0; turn < 3; turn++) {
        struct room *r = room_new(s, store);
        room_start(r);
        room_go(r);
        room_check_replay(r);
        free(rows);
        rows = room_rows(r);
        room_free(r);
    }
    ck_assert_uint_eq(room_count(rows, "\"id\":\"call_"), 12);
    for (const char *at = rows; (at = strstr(at, "\"id\":\"call_")); at++) {
        char id[40];
        snprintf(id, sizeof id, "%.*s", (int)(strcspn(at + 6, "\"") + 7), at);
        ck_assert_msg(room_count(rows, id) == 2, "%s, %s:\n%s", s->name, id, rows); /* a call and its result */
    }
    free(rows);
    rv_store_close(store);
}
END_TEST

Suite *objects_suite(void)
{
    Suite *s = suite_create("objects");
    TCase *tc = tcase_create("objects");

    tcase_add_loop_test(tc, an_object_is_told_once_as_a_call_of_its_agent, 0, RV_COUNT(outputs));
    tcase_add_test(tc, no_more_words_are_kept_than_metadata_has_room_for);
    tcase_add_test(tc, a_chained_tool_gets_the_nulls_that_the_agent_gave);
    tcase_add_test(tc, a_cut_off_answer_says_so);
    tcase_add_loop_test(tc, calls_that_are_not_told_again_keep_their_ids, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
