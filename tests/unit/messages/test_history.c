/* Which rows are shown, as what, and what is shortened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

#define MAX_ROWS 8
#define PAIR                                                                                                           \
    CALL("{\"name\":\"f\",\"id\":\"c\",\"arguments\":{\"q\":1}}"), RESPONSE("{\"name\":\"f\",\"id\":\"c\"}", "r")

#define FAILED(kind, text)                                                                                             \
    {                                                                                                                  \
        .type = (kind), .has_content = true, .content = VIEW(text), .token_count = RV_UNSET, .status = "failed"        \
    }

static const struct {
    const char *what;
    struct rv_message rows[MAX_ROWS];
    const char *want, *skipped; /* skipped NULL: the same */
} cases[] = {
    {"no rows", {{0}}, "", NULL},
    {"a turn", {USER("hi"), ASSISTANT("hello")}, "user hi\nassistant hello\n", NULL},
    {"p8-agents 10/11: system and memory are system, where they stand",
     {ROW("memory", "m"), USER("u"), ROW("system", "s"), ASSISTANT("a")},
     "system m\nuser u\nsystem s\nassistant a\n",
     NULL},
    {"p8-agents 10/11: an observation is a user's",
     {ROW("observation", "it rains")},
     "user [Observation] it rains\n",
     NULL},
    {"p8-agents 10/11: no type is a user's", {ROW("", "u"), ASSISTANT("a")}, "user u\nassistant a\n", NULL},
    {"thoughts, old results and unknown types are nobody's",
     {USER("u"), ROW("think", "t"), ROW("tool_result", "r"), ROW("Assistant", "x"), ROW("moment", "m"), ASSISTANT("a")},
     "user u\nassistant a\n",
     NULL},
    {"rows of delegated agents are the parent's affair",
     {USER("u"),
      {.type = "assistant", .has_content = true, .content = VIEW("child"), .parent_call_id = "c"},
      {.type = "tool_call", .tool_calls = VIEW("{\"name\":\"g\"}"), .parent_call_id = "c"},
      {.type = "user", .has_content = true, .content = VIEW("own"), .parent_call_id = ""}},
     "user u\nuser own\n",
     NULL},
    {"p8-data 5.4: nothing blank is shown",
     {USER(""),
      {.type = "user"},
      {.type = "assistant", .content = VIEW("not this")},
      ASSISTANT(" \n\t"),
      ROW("system", ""),
      ROW("observation", " "),
      USER("u")},
     "user u\n",
     NULL},
    {"the newest turn may be incomplete",
     {USER("u"), ASSISTANT("a"), USER("v")},
     "user u\nassistant a\nuser v\n",
     NULL},
    {"p8-data 5.4: an assistant may be the first", {ASSISTANT("a"), USER("u")}, "assistant a\nuser u\n", NULL},
    {"nobody is merged with a neighbour",
     {USER("u"), USER("v"), ASSISTANT("a"), ASSISTANT("b")},
     "user u\nuser v\nassistant a\nassistant b\n",
     NULL},
    {"what is no UTF-8 is replaced",
     {USER("a\xff\xc3(\xe6\xbc"), ASSISTANT("\x80\x80")},
     "user a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\nassistant \xef\xbf\xbd\n",
     NULL},
    {"a turn with a tool",
     {USER("u"), PAIR, ASSISTANT("a")},
     "user u\nassistant + c:f{\"q\":1}\ntool c f r\nassistant a\n",
     "user u\nassistant a\n"},
    {"rows that are not shown do not part calls from results",
     {USER("u"),
      CALL("{\"name\":\"f\",\"id\":\"c\"}"),
      ROW("think", "t"),
      {.type = "assistant", .has_content = true, .content = VIEW("child"), .parent_call_id = "c"},
      RESPONSE("{\"name\":\"f\",\"id\":\"c\"}", "r")},
     "user u\nassistant + c:f{}\ntool c f r\n",
     "user u\n"},
    {"remlight 14, rule 3: a call belongs to what was said before it",
     {USER("u"), ASSISTANT("I look."), PAIR, ASSISTANT("a")},
     "user u\nassistant I look. + c:f{\"q\":1}\ntool c f r\nassistant a\n",
     "user u\nassistant I look.\nassistant a\n"},
    {"a message that only failed is not sent again",
     {USER("u"), ASSISTANT("a"), FAILED("user", "v"), FAILED("assistant", ""), USER("w")},
     "user u\nassistant a\nuser w\n",
     NULL},
    {"a turn that failed in the middle of its answer is told",
     {USER("u"), ASSISTANT("a"), FAILED("user", "v"), FAILED("assistant", "par"), USER("w")},
     "user u\nassistant a\nuser v\nassistant par\nuser w\n",
     NULL},
    {"one that failed behind its calls, too",
     {FAILED("user", "v"),
      {.type = "tool_call", .tool_calls = VIEW("{\"name\":\"f\",\"id\":\"c\"}"), .status = "failed"},
      RESPONSE("{\"name\":\"f\",\"id\":\"c\"}", "r"),
      FAILED("assistant", ""),
      FAILED("user", "w")},
     "user v\nassistant + c:f{}\ntool c f r\n",
     "user v\n"},
    {"the calls of one do not speak for the next",
     {FAILED("user", "u"), FAILED("assistant", ""), FAILED("user", "v"), FAILED("assistant", "par")},
     "user v\nassistant par\n",
     NULL},
};

/* Proves p8.10: Types of rows, and what a model is told of each
 * Proves p8-data.5.4: Rows as messages; nothing blank
 * Proves p8-data.4.2 */
START_TEST(rows_become_messages)
{
    size_t n = count_rows(cases[_i].rows, MAX_ROWS);

    for (int policy = 0; policy < RV_N_REPLAY_POLICIES; policy++) {
        struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
        rv_buf got = RV_BUF_INIT(100000);
        const char *want = policy == RV_REPLAY_SKIP && cases[_i].skipped ? cases[_i].skipped : cases[_i].want;
        json_object *messages;

        o.policy = policy;
        messages = history_of(cases[_i].rows, n, &o, false, NULL);
        write_messages(messages, &got);
        ck_assert_msg(strcmp(rv_buf_cstr(&got), want) == 0, "%s: %s", cases[_i].what, rv_buf_cstr(&got));
        json_object_put(messages);
        rv_buf_fini(&got);
    }
}
END_TEST

/* A run that began with the first version is told what it was told then: the hash of it is in its journal. */
START_TEST(the_first_version_stays_as_it_was)
{
    static const struct rv_message rows[] = {
        FAILED("user", "u"),
        CALL("{\"id\":\"a\",\"name\":\"final_result\",\"arguments\":{\"x\":1}}"),
        RESPONSE("{\"id\":\"a\",\"name\":\"final_result\"}", "Final result processed."),
        ASSISTANT("{\"x\":1}"),
        TOOL("{\"tool_name\":\"f\",\"tool_call_id\":\"c\"}", "{\"q\":1}"),
        TOOL("{\"tool_name\":\"f\",\"tool_call_id\":\"d\"}", "r"),
    };
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    rv_buf got = RV_BUF_INIT(100000);

    o.version = RV_HISTORY_1;
    json_object *messages = history_of(rows, RV_COUNT(rows), &o, false, NULL);
    write_messages(messages, &got);
    ck_assert_str_eq(rv_buf_cstr(&got), "user u\nassistant + a:final_result{\"x\":1}\n"
                                        "tool a final_result Final result processed.\n"
                                        "assistant {\"x\":1} + c:f{} + d:f{}\ntool c f {\"q\":1}\ntool d f r\n");
    json_object_put(messages);
    rv_buf_fini(&got);
}
END_TEST

/* --- shortening: rows of 600 letters, the last of them the newest --- */

#define N_LONG 5
static const struct {
    const char *types[N_LONG];
    int64_t always_last;
    bool compress;
    int64_t keep;
    const char *want; /* s: short, l: as long as it was */
} shortened[] = {
    {{"assistant", "assistant", "assistant", "assistant", "assistant"}, 2, true, 200, "sssll"},
    {{"assistant", "assistant", "assistant", "assistant", "assistant"}, 0, true, 200, "sssss"},
    {{"assistant", "assistant", "assistant", "assistant", "assistant"}, 5, true, 200, "lllll"},
    {{"assistant", "assistant", "assistant", "assistant", "assistant"}, 0, false, 200, "lllll"},
    {{"assistant", "assistant", "assistant", "assistant", "assistant"}, 0, true, 300, "lllll"},
    {{"user", "assistant", "system", "memory", "observation"}, 0, true, 200, "lslll"},
    {{"assistant", "think", "unknown", "tool_result", "user"}, 2, true, 200, "ll"}, /* of those that are shown */
    {{"assistant", "think", "unknown", "tool_result", "user"}, 1, true, 200, "sl"},
};
/* Proves remlight.13 */
START_TEST(old_long_texts_of_assistants_are_shortened)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    struct rv_message rows[N_LONG] = {{0}};
    char text[601];
    json_object *messages;

    memset(text, 'x', 600);
    text[600] = '\0';
    for (size_t i = 0; i < N_LONG; i++)
        rows[i] = (struct rv_message){.type = shortened[_i].types[i],
                                      .has_content = true,
                                      .content = {text, 600},
                                      .token_count = RV_UNSET,
                                      .seq = (int64_t)i + 11};
    o.always_last = shortened[_i].always_last;
    o.compress = shortened[_i].compress;
    o.compress_keep = shortened[_i].keep;
    messages = history_of(rows, N_LONG, &o, false, NULL);
    ck_assert_uint_eq(json_object_array_length(messages), strlen(shortened[_i].want));
    for (size_t i = 0; shortened[_i].want[i]; i++) {
        const char *content = NULL;
        char marker[100];
        ck_assert(rv_json_get_text(json_object_array_get_idx(messages, i), "content", &content));
        snprintf(marker, sizeof marker, "[Message truncated - REM LOOKUP session-s-msg-%zu to recover", i + 11);
        ck_assert_int_eq(strstr(content, marker) != NULL, shortened[_i].want[i] == 's');
        ck_assert_int_eq(strlen(content) < 600, shortened[_i].want[i] == 's');
    }
    json_object_put(messages);
}
END_TEST

TCase *history_case(void)
{
    TCase *c = tcase_create("history");

    tcase_add_loop_test(c, rows_become_messages, 0, RV_COUNT(cases));
    tcase_add_test(c, the_first_version_stays_as_it_was);
    tcase_add_loop_test(c, old_long_texts_of_assistants_are_shortened, 0, RV_COUNT(shortened));
    return c;
}
