/* What is told and kept of agents whose answer is an object, and of answers that are not what they seem. */
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

/* --- the call that was refused --- */

static const struct {
    struct scene scene;
    const char *says;
    size_t n_errors; /* calls with an error behind them */
} refused[] = {
    {{.name = "more calls than may be made",
      .parent = "tools: [read, send]\nlimits: {tool_calls_limit: 1}\n",
      .lines = {{.to = "parent", .text = "I look.", .calls = "a read {\"q\":1} | b send {}"}}},
     "{\"error\":{\"type\":\"LimitError\",\"message\":\"agent \\\"parent\\\": the model has called 0 tools and asks for "
     "2 more, "
     "limits.tool_calls_limit is 1: raise it, or offer fewer tools\"}} {\"name\":\"send\",\"id\":\"b\"}\n"
     "assistant[parent](failed) I look.\n",
     2},
    {{.name = "rounds",
      .stage = ", max_rounds: 1",
      .parent = "tools: [read, look]\n",
      .lines = {{.to = "parent", .text = "", .calls = "a read {}"},
                {.to = "read", .text = "{}"},
                {.to = "parent", .text = "", .calls = "a read {} | c look {}"}}},
     "max_rounds is 1",
     2},
    {{.name = "tokens",
      .parent = "tools: [read, look]\nlimits: {total_tokens_limit: 10}\n",
      .lines = {{.to = "parent", .text = "", .calls = "a read {} | b look {}", .in = 9, .out = 9}}},
     "limits.total_tokens_limit allows 10",
     2},
    {{.name = "calls that can not be made",
      .stage = ", max_bad_calls: 1",
      .parent = "tools: [read, look]\n",
      .lines = {{.to = "parent", .text = "", .calls = "a no {}"},
                {.to = "parent", .text = "", .calls = "b no {} | c read {} | d look {}"}}},
     "max_bad_calls is 1",
     4},
    {{.name = "nothing is offered",
      .stage = ", max_retries: 0",
      .parent = "\n",
      .lines = {{.to = "parent", .text = "", .calls = "a read {}"}}},
     "the stage offers none",
     1},
    {{.name = "time",
      .stage = ", timeout_seconds: 2",
      .parent = "tools: [send, put]\n",
      .lines = {{.to = "parent", .text = "", .calls = "a send {} | b send {} | c send {}"},
                {.to = "send", .text = "{}", .takes_us = 3000000}}},
     "ran out of time",
     2},
    {{.name = "a refusal by an asked agent's limit",
      .parent = "tools: [ask_agent]\n",
      .agents = {"child", "tools: [read]\nlimits: {tool_calls_limit: 1}\n"},
      .lines = {{.to = "parent", .text = "", .calls = "a ask_agent {\"agent_name\":\"child\",\"input_text\":\"x\"}"},
                {.to = "child", .text = "", .calls = "b read {} | c read {}"},
                {.to = "parent", .text = "alone"}}},
     "limits.tool_calls_limit is 1",
     3},
};

START_TEST(each_call_that_nobody_makes_has_its_error) /* p8 W2, W23 */
{
    struct room *r = play(&refused[_i].scene);
    char *rows = room_rows(r), *columns = room_columns(r);
    size_t n_calls = room_count(rows, "tool_call[") + room_count(rows, "tool_call<");
    size_t n_responses = room_count(rows, "tool_response[") + room_count(rows, "tool_response<");
    ck_assert_msg(n_calls == n_responses, "%s:\n%s", refused[_i].scene.name, rows);
    ck_assert_msg(strstr(rows, refused[_i].says), "%s:\n%s", refused[_i].scene.name, rows);
    ck_assert_msg(room_count(columns, "\"is_error\":true") == refused[_i].n_errors, "%s:\n%s", refused[_i].scene.name,
                  columns);
    free(rows);
    free(columns);
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* --- the answer that was cut off --- */

START_TEST(a_cut_off_answer_says_so)
{
    static const struct scene s = {.name = "an answer that was cut off",
                                   .parent = "\n",
                                   .lines = {{.to = "parent", .text = "once upon a", .is_cut = true}}};
    struct room *cut = play(&s), *whole = play(room_scene("plain"));
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

Suite *objects_suite(void)
{
    Suite *s = suite_create("objects");
    TCase *tc = tcase_create("objects");

    tcase_set_timeout(tc, 20);
    tcase_add_loop_test(tc, each_call_that_nobody_makes_has_its_error, 0, RV_COUNT(refused));
    tcase_add_test(tc, a_cut_off_answer_says_so);
    suite_add_tcase(s, tc);
    return s;
}
