/* Calls of tools and their results: whatever rows have of them, each call has its result right behind it. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/messages_internal.h"
#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

#define MAX_ROWS 10
#define NONE     "no result was recorded for this call"
#define F(id)    "{\"name\":\"f\",\"id\":\"" id "\"}"
#define G(id)    "{\"name\":\"g\",\"id\":\"" id "\"}"
#define F_NO_ID  "{\"name\":\"f\"}"
#define ARGS(a)  "{\"name\":\"f\",\"id\":\"c\",\"arguments\":" a "}"
#define LONG_ID  "01234567890123456789012345678901234567890" /* 41 bytes */
#define MAX_ID   "0123456789012345678901234567890123456789"

static const struct {
    const char *what;
    struct rv_message rows[MAX_ROWS];
    const char *want;
} cases[] = {
    /* order */
    {"one after the other",
     {CALL(F("a")), RESPONSE(F("a"), "1"), CALL(F("b")), RESPONSE(F("b"), "2")},
     "assistant + a:f{}\ntool a f 1\nassistant + b:f{}\ntool b f 2\n"},
    {"at once",
     {CALL(F("a")), CALL(G("b")), RESPONSE(F("a"), "1"), RESPONSE(G("b"), "2")},
     "assistant + a:f{} + b:g{}\ntool a f 1\ntool b g 2\n"},
    {"at once, the results in another order",
     {CALL(F("a")), CALL(G("b")), RESPONSE(G("b"), "2"), RESPONSE(F("a"), "1")},
     "assistant + a:f{} + b:g{}\ntool a f 1\ntool b g 2\n"},
    {"at once, then one more",
     {CALL(F("a")), CALL(G("b")), RESPONSE(G("b"), "2"), RESPONSE(F("a"), "1"), CALL(F("d")), RESPONSE(F("d"), "3")},
     "assistant + a:f{} + b:g{}\ntool a f 1\ntool b g 2\nassistant + d:f{}\ntool d f 3\n"},
    {"a text between call and result",
     {CALL(F("a")), ASSISTANT("hm"), RESPONSE(F("a"), "1")},
     "assistant hm + a:f{}\ntool a f 1\n"},
    {"calls at once, a text between their results",
     {CALL(F("a")), CALL(G("b")), RESPONSE(F("a"), "1"), ROW("system", "s"), RESPONSE(G("b"), "2")},
     "assistant + a:f{}\ntool a f 1\nsystem s\nassistant + b:g{}\ntool b g 2\n"},
    {"a text between calls",
     {CALL(F("a")), ASSISTANT("hm"), CALL(G("b")), RESPONSE(F("a"), "1"), RESPONSE(G("b"), "2")},
     "assistant hm + a:f{}\ntool a f 1\nassistant + b:g{}\ntool b g 2\n"},
    {"a turn between calls",
     {CALL(F("a")), USER(""), CALL(G("b"))},
     "assistant + a:f{}\ntool! a f " NONE "\nassistant + b:g{}\ntool! b g " NONE "\n"},
    /* what is missing */
    {"no result", {USER("u"), CALL(F("a")), USER("v")}, "user u\nassistant + a:f{}\ntool! a f " NONE "\nuser v\n"},
    {"no result of one of two",
     {CALL(F("a")), CALL(G("b")), RESPONSE(G("b"), "2")},
     "assistant + a:f{} + b:g{}\ntool! a f " NONE "\ntool b g 2\n"},
    {"no result of the newest of two",
     {CALL(F("a")), CALL(G("b")), RESPONSE(F("a"), "1")},
     "assistant + a:f{} + b:g{}\ntool a f 1\ntool! b g " NONE "\n"},
    {"remlight 14, rule 5: no call",
     {USER("u"), RESPONSE(F("a"), "1"), ASSISTANT("x")},
     "user u\nassistant + a:f{}\ntool a f 1\nassistant x\n"},
    {"several without calls are several pairs",
     {RESPONSE(F("a"), "1"), RESPONSE(G("b"), "2")},
     "assistant + a:f{}\ntool a f 1\nassistant + b:g{}\ntool b g 2\n"},
    {"a result belongs to a call of its own turn",
     {CALL(F("a")), USER("u"), RESPONSE(F("a"), "1")},
     "assistant + a:f{}\ntool! a f " NONE "\nuser u\nassistant + call_3:f{}\ntool call_3 f 1\n"},
    {"a blank word of a user begins a turn, too",
     {CALL(F("a")), USER(""), RESPONSE(F("a"), "1")},
     "assistant + a:f{}\ntool! a f " NONE "\nassistant + call_3:f{}\ntool call_3 f 1\n"},
    /* ids: remlight 14, rules 7 and 8 */
    {"no ids",
     {CALL(F_NO_ID), CALL(F_NO_ID), RESPONSE(F_NO_ID, "1"), RESPONSE(F_NO_ID, "2")},
     "assistant + call_1:f{} + call_2:f{}\ntool call_1 f 1\ntool call_2 f 2\n"},
    {"an id that is null or no text",
     {CALL("{\"id\":null,\"name\":null}"), RESPONSE("{\"id\":7,\"name\":[]}", "1")},
     "assistant + call_1:unknown_tool{}\ntool call_1 unknown_tool 1\n"},
    {"no id of the result",
     {CALL(F("a")), CALL(G("b")), RESPONSE(F_NO_ID, "1"), RESPONSE("{\"name\":\"g\"}", "2")},
     "assistant + a:f{} + b:g{}\ntool a f 1\ntool b g 2\n"},
    {"the same id in each turn",
     {USER("u"), CALL(F("a")), RESPONSE(F("a"), "1"), USER("v"), CALL(F("a")), RESPONSE(F("a"), "2")},
     "user u\nassistant + a:f{}\ntool a f 1\nuser v\nassistant + call_5:f{}\ntool call_5 f 2\n"},
    {"the same id at once",
     {CALL(F("a")), CALL(F("a")), RESPONSE(F("a"), "1"), RESPONSE(F("a"), "2")},
     "assistant + a:f{} + call_2:f{}\ntool a f 1\ntool call_2 f 2\n"},
    {"the same id for two tools",
     {CALL(F("a")), CALL(G("a")), RESPONSE(F("a"), "1")},
     "assistant + a:f{} + call_2:g{}\ntool a f 1\ntool! call_2 g " NONE "\n"},
    {"an id that was made up is somebody's",
     {CALL(F("call_2")), CALL(F_NO_ID), RESPONSE(F("call_2"), "1"), RESPONSE(F_NO_ID, "2")},
     "assistant + call_2:f{} + call_2_2:f{}\ntool call_2 f 1\ntool call_2_2 f 2\n"},
    {"the longest id",
     {CALL(F(MAX_ID)), RESPONSE(F(MAX_ID), "1")},
     "assistant + " MAX_ID ":f{}\ntool " MAX_ID " f 1\n"},
    {"an id that is too long",
     {CALL(F(LONG_ID)), RESPONSE(F(LONG_ID), "1")},
     "assistant + call_79f002c49e81eed01bf23ce1b4f74d3d:f{}\ntool call_79f002c49e81eed01bf23ce1b4f74d3d f 1\n"},
    {"ids that would be legal in the same way",
     {CALL(F("a b")), CALL(F("a_b")), RESPONSE(F("a_b"), "2"), RESPONSE(F("a b"), "1")},
     "assistant + call_c8687a08aa5d6ed2044328fa6a697ab8:f{} + a_b:f{}\n"
     "tool call_c8687a08aa5d6ed2044328fa6a697ab8 f 1\ntool a_b f 2\n"},
    /* names: remlight 14, rules 8 and 9 */
    {"the name is the result's", {CALL("{\"id\":\"a\"}"), RESPONSE(G("a"), "1")}, "assistant + a:g{}\ntool a g 1\n"},
    {"a name becomes legal",
     {CALL("{\"id\":\"a\",\"name\":\"x.y:\\u00e9\"}"), RESPONSE("{\"id\":\"a\"}", "1")},
     "assistant + a:x_y___{}\ntool a x_y___ 1\n"},
    /* arguments: remlight 14, rule 10; p8-agents 16 */
    {"an object",
     {CALL(ARGS(" { \"q\" : [ 1.50, \"x\" ] } ")), RESPONSE(F("c"), "1")},
     "assistant + c:f{\"q\":[1.50,\"x\"]}\ntool c f 1\n"},
    {"the text of one",
     {CALL(ARGS("\" {\\\"q\\\": 1} \"")), RESPONSE(F("c"), "1")},
     "assistant + c:f{\"q\":1}\ntool c f 1\n"},
    {"text that is no JSON",
     {CALL(ARGS("\"{q: 1\"")), RESPONSE(F("c"), "1")},
     "assistant + c:f{\"raw\":\"{q: 1\"}\ntool c f 1\n"},
    {"text of something else", {CALL(ARGS("\"[1]\"")), RESPONSE(F("c"), "1")}, "assistant + c:f{}\ntool c f 1\n"},
    {"something else", {CALL(ARGS("[1]")), RESPONSE(F("c"), "1")}, "assistant + c:f{}\ntool c f 1\n"},
    {"nothing", {CALL(ARGS("null")), RESPONSE(F("c"), "1")}, "assistant + c:f{}\ntool c f 1\n"},
    {"blank text", {CALL(ARGS("\" \"")), RESPONSE(F("c"), "1")}, "assistant + c:f{}\ntool c f 1\n"},
    {"equal keys", {CALL(ARGS("{\"q\":1,\"q\":2}")), RESPONSE(F("c"), "1")}, "assistant + c:f{\"q\":2}\ntool c f 1\n"},
    {"a call that can not be read",
     {CALL("{"), RESPONSE(F("c"), "1")},
     "assistant + call_1:unknown_tool{}\ntool! call_1 unknown_tool " NONE "\nassistant + c:f{}\ntool c f 1\n"},
    {"a call that says nothing",
     {CALL(""), RESPONSE("", "1")},
     "assistant + call_1:unknown_tool{}\ntool call_1 unknown_tool 1\n"},
    {"a call that is a list",
     {CALL("[1]"), RESPONSE("7", "1")},
     "assistant + call_1:unknown_tool{}\ntool call_1 unknown_tool 1\n"},
    /* results: remlight 14, rule 11 */
    {"empty", {CALL(F("a")), RESPONSE(F("a"), "")}, "assistant + a:f{}\ntool a f {}\n"},
    {"blank", {CALL(F("a")), RESPONSE(F("a"), " \n")}, "assistant + a:f{}\ntool a f {}\n"},
    {"null", {CALL(F("a")), {.type = "tool_response", .tool_calls = VIEW(F("a"))}}, "assistant + a:f{}\ntool a f {}\n"},
    {"no UTF-8", {CALL(F("a")), RESPONSE(F("a"), "x\xff")}, "assistant + a:f{}\ntool a f x\xef\xbf\xbd\n"},
    {"an error",
     {CALL(F("a")),
      {.type = "tool_response",
       .tool_calls = VIEW(F("a")),
       .has_content = true,
       .content = VIEW("bad"),
       .metadata = VIEW("{\"is_error\":true}")}},
     "assistant + a:f{}\ntool! a f bad\n"},
    {"metadata that can not be read",
     {CALL(F("a")),
      {.type = "tool_response",
       .tool_calls = VIEW(F("a")),
       .has_content = true,
       .content = VIEW("r"),
       .metadata = VIEW("{\"is_error\":")}},
     "assistant + a:f{}\ntool a f r\n"},
    /* both in one row: remlight 12 */
    {"one row",
     {USER("u"), TOOL("{\"tool_call_id\":\"a\",\"tool_name\":\"q:s\",\"tool_arguments\":{\"x\":1}}", "r"),
      ASSISTANT("x")},
     "user u\nassistant + a:q_s{\"x\":1}\ntool a q_s {\"raw\":\"r\"}\nassistant x\n"},
    {"several in a row",
     {USER("u"), TOOL("{\"tool_call_id\":\"a\",\"tool_name\":\"f\"}", "1"),
      TOOL("{\"tool_call_id\":\"b\",\"tool_name\":\"g\"}", "2")},
     "user u\nassistant + a:f{}\ntool a f 1\nassistant + b:g{}\ntool b g 2\n"},
    {"remlight 14, rule 3: behind what the assistant said",
     {ASSISTANT("x"), TOOL("{\"tool_call_id\":\"a\",\"tool_name\":\"f\"}", "1"),
      TOOL("{\"tool_call_id\":\"b\",\"tool_name\":\"g\"}", "2")},
     "assistant x + a:f{} + b:g{}\ntool a f 1\ntool b g 2\n"},
    {"remlight 14, rule 10: arguments out of the content",
     {TOOL("{\"tool_call_id\":\"a\",\"tool_name\":\"f\"}", "{\"q\":1}"),
      TOOL("{\"tool_call_id\":\"b\",\"tool_name\":\"f\",\"tool_arguments\":{}}", "{\"q\":2}"),
      TOOL("{\"tool_call_id\":\"c\",\"tool_name\":\"f\",\"tool_arguments\":null}", "{\"q\":3}"),
      TOOL("{\"tool_call_id\":\"d\",\"tool_name\":\"f\"}", "[1]")},
     "assistant + a:f{\"q\":1}\ntool a f {\"q\":1}\nassistant + b:f{}\ntool b f {\"q\":2}\n"
     "assistant + c:f{\"q\":3}\ntool c f {\"q\":3}\nassistant + d:f{}\ntool d f [1]\n"},
    {"remlight 14, rule 11: a result that is no JSON",
     {TOOL("{\"tool_call_id\":\"a\",\"tool_name\":\"f\"}", "say \"hi\""),
      TOOL("{\"tool_call_id\":\"b\",\"tool_name\":\"f\"}", " ")},
     "assistant + a:f{}\ntool a f {\"raw\":\"say \\\"hi\\\"\"}\nassistant + b:f{}\ntool b f {}\n"},
    {"the output of a structured agent is told once",
     {USER("u"), CALL("{\"id\":\"a\",\"name\":\"final_result\",\"arguments\":{\"x\":1}}"),
      RESPONSE("{\"id\":\"a\",\"name\":\"final_result\"}", "Final result processed."), ASSISTANT("{\"x\":1}")},
     "user u\nassistant {\"x\":1}\n"},
    {"one row that says nothing", {TOOL("", "")}, "assistant + call_1:unknown_tool{}\ntool call_1 unknown_tool {}\n"},
};
/* Proves remlight.14 */
START_TEST(each_call_has_its_result_behind_it)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    rv_buf got = RV_BUF_INIT(100000);
    json_object *messages = history_of(cases[_i].rows, count_rows(cases[_i].rows, MAX_ROWS), &o, false, NULL);

    write_messages(messages, &got);
    ck_assert_msg(strcmp(rv_buf_cstr(&got), cases[_i].want) == 0, "%s: %s", cases[_i].what, rv_buf_cstr(&got));
    json_object_put(messages);
    rv_buf_fini(&got);
}
END_TEST

/* More calls at once than the reply of a model may have are more than one message: the wires refuse them else. */
START_TEST(many_calls_at_once_are_several_messages)
{
    enum { N = 300 };
    static struct rv_message rows[2 * N];
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    json_object *messages;
    size_t n_calls = 0;

    o.max_tokens = RV_UNSET;
    for (size_t i = 0; i < N; i++) {
        rows[i] = (struct rv_message)CALL("{\"name\":\"f\"}");
        rows[N + i] = (struct rv_message)RESPONSE("{\"name\":\"f\"}", "r");
    }
    messages = history_of(rows, 2 * (size_t)N, &o, false, NULL);
    ck_assert_uint_eq(json_object_array_length(messages), N + 3);
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        json_object *calls = rv_json_get_arr(json_object_array_get_idx(messages, i), "tool_calls");
        n_calls += calls ? json_object_array_length(calls) : 0;
        ck_assert(!calls || json_object_array_length(calls) <= 128);
    }
    ck_assert_uint_eq(n_calls, N);
    json_object_put(messages);
}
END_TEST

/* remlight 19.5: what can not be shown says so. */
/* Proves remlight.19/5: Arguments and results apart; what is too long says so */
START_TEST(what_is_too_long_to_be_shown_says_so)
{
    enum { MAX = 1 << 20 };
    static char text[MAX + 2], call[MAX + 100];
    struct rv_message rows[] = {CALL(F("a")), RESPONSE(F("a"), "x"), CALL(F("b")), RESPONSE(F("b"), "x"),
                                CALL(""),     RESPONSE(F("c"), "x")};
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    rv_buf got = RV_BUF_INIT(4 * (size_t)MAX);
    json_object *messages;

    memset(text, 'y', sizeof text - 1);
    strncpy(call, "{\"name\":\"f\",\"id\":\"c\",\"arguments\":{\"q\":\"", 50);
    memset(call + strlen(call), 'z', MAX);
    memcpy(call + strlen(call), "\"}}", 4);
    rows[1].content = (rv_str){text, MAX};
    rows[3].content = (rv_str){text, MAX + 1};
    rows[4].tool_calls = rv_str_of(call);
    o.max_tokens = RV_UNSET;
    messages = history_of(rows, RV_COUNT(rows), &o, false, NULL);
    write_messages(messages, &got);
    ck_assert(strstr(rv_buf_cstr(&got), "assistant + a:f{}\ntool a f yyyy") == rv_buf_cstr(&got));
    ck_assert_str_eq(rv_buf_cstr(&got) + strlen("assistant + a:f{}\ntool a f \n") + MAX,
                     "assistant + b:f{}\ntool b f a result of 1048577 bytes was recorded; it is too long to be shown\n"
                     "assistant + c:f{\"not_shown\":\"these arguments are too long\"}\ntool c f x\n");
    json_object_put(messages);
    rv_buf_fini(&got);
}
END_TEST

TCase *calls_case(void)
{
    TCase *c = tcase_create("calls");

    tcase_add_loop_test(c, each_call_has_its_result_behind_it, 0, RV_COUNT(cases));
    tcase_add_test(c, many_calls_at_once_are_several_messages);
    tcase_add_test(c, what_is_too_long_to_be_shown_says_so);
    return c;
}
