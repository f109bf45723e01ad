/* Agents that ask agents. */
#include "tests/unit/chat/world.h"

#include <stdlib.h>
#include <string.h>

#define PARENT "type: object\nname: parent\ndescription: You ask.\ntools: [{name: ask_agent}, {name: action}]\n"

/* Proves p8.13: `ask_agent`: parameters, results, failures as results
 * Proves p8.W19: What an asked agent does says its name, depth and call */
START_TEST(a_child_streams_and_its_words_are_kept) /* remlight 8, 10; p8 13 */
{
    const char *files[] = {"parent.yaml", PARENT, NULL};
    struct world w;
    world_init(
        &w,
        "models:\n"
        "  parent:\n"
        "    - text: One moment.\n"
        "      tool_calls: [{id: a1, name: ask_agent, arguments: {agent_name: sample-agent, input_text: what?}}]\n"
        "      usage: {input_tokens: 10, output_tokens: 2}\n"
        "    - {text: It said so., usage: {input_tokens: 30, output_tokens: 4}}\n"
        "  sample-agent:\n"
        "    - {chunks: [\"the \", \"answer\"], usage: {input_tokens: 100, output_tokens: 20}}\n",
        files);
    world_chat(&w, "parent", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "ask it");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    char *rows = world_rows(&w, true);
    ck_assert_str_eq(rows, "user ask it\n"
                           "assistant[parent] One moment.\n"
                           "tool_call[parent] {\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":"
                           "\"sample-agent\",\"input_text\":\"what?\"}}\n"
                           "assistant<a1[sample-agent] the answer\n"
                           "tool_response[parent] {\"status\":\"success\",\"output\":\"the answer\",\"text_response\":"
                           "\"the answer\",\"agent_schema\":\"sample-agent\",\"input_text\":\"what?\","
                           "\"is_structured_output\":false,"
                           "\"chained_tool_result\":null} {\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
                           "assistant[parent] It said so.\n");
    free(rows);
    ck_assert_msg(rv_str_is(t.text, "One moment.\n\nIt said so."), "%.*s", RV_STR_ARG(t.text));
    ck_assert_str_eq(rv_buf_cstr(&w.deltas), "One moment.|sample-agentthe |sample-agentanswer|It said so.|");
    ck_assert_int_eq(t.usage.input_tokens, 140); /* p8 W14 */
    char *events = world_events(&w, "agent_completed");
    ck_assert_ptr_nonnull(strstr(events, "\"agent\":\"sample-agent\",\"depth\":1,\"parent_tool_call_id\":\"a1\""));
    free(events);
    world_fini(&w);
}
END_TEST

/* A chat may choose whose words count, and the next one of the session again. */
#define SESSION "5a0f7c1e-0000-4000-8000-000000000001"

START_TEST(a_request_says_whose_words_count)
{
    static const struct {
        const char *word, *text;
    } requests[] = {{NULL, "I conclude 1"},
                    {"child", "answer 2"},
                    {"both", "answer 3\n\nI conclude 3"},
                    {"parent", "I conclude 4"},
                    {NULL, "I conclude 5"}};
    const char *files[] = {"parent.yaml", PARENT, NULL};
    rv_buf script = RV_BUF_INIT(1 << 16);
    rv_chat *other = NULL;
    struct world w;
    rv_err *err = NULL;

    rv_buf_puts(&script, "models:\n  parent:\n");
    for (int i = 1; i <= (int)RV_COUNT(requests); i++)
        rv_buf_printf(&script,
                      "    - {text: '', tool_calls: [{id: a%d, name: ask_agent, arguments: {agent_name: sample-agent, "
                      "input_text: what?}}]}\n    - {text: I conclude %d}\n",
                      i, i);
    rv_buf_puts(&script, "  sample-agent:\n");
    for (int i = 1; i <= (int)RV_COUNT(requests); i++)
        rv_buf_printf(&script, "    - {text: answer %d}\n", i);
    world_init(&w, rv_buf_cstr(&script), files);
    world_chat(&w, "parent", SESSION, "alice");
    for (size_t i = 0; i < RV_COUNT(requests); i++) {
        w.opts.child_text = requests[i].word;
        world_watch(&w, &w.opts);
        struct rv_chat_turn t = world_say(&w, "ask it");
        ck_assert_msg(rv_str_is(t.text, requests[i].text), "%.*s", RV_STR_ARG(t.text));
    }
    w.opts.child_text = "kid";
    ck_assert_int_eq(rv_chat_new(&w.opts, &other, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), "child_text \"kid\" is not a choice");
    rv_err_free(err);
    world_fini(&w);
    rv_buf_fini(&script);
}
END_TEST

/* Proves p8.W18: Depth, repeats and time of asking have an end */
START_TEST(ping_pong_ends_by_depth) /* p8 W18 */
{
    const char *files[] = {"ping.yaml", "type: object\nname: ping\ndescription: d\ntools: [ask_agent]\n", "pong.yaml",
                           "type: object\nname: pong\ndescription: d\ntools: [ask_agent]\n", NULL};
    struct world w;
    world_init(
        &w,
        "repeat: true\n"
        "models:\n"
        "  - {stage: ping, contains: cannot be asked, text: I give up}\n"
        "  - {stage: pong, contains: cannot be asked, text: too deep}\n"
        "  - {stage: ping, contains: text_response, text: back}\n" /* used once each: it answers twice */
        "  - {stage: ping, contains: text_response, text: back}\n"
        "  - {stage: pong, contains: text_response, text: back}\n"
        "  - {stage: ping, tool_calls: [{id: x, name: ask_agent, arguments: {agent_name: pong, input_text: go}}]}\n"
        "  - {stage: pong, tool_calls: [{id: y, name: ask_agent, arguments: {agent_name: ping, input_text: go}}]}\n",
        files);
    world_chat(&w, "ping", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "start");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    char *rows = world_rows(&w, true);
    ck_assert_msg(strstr(rows, "agents already ask each other 3 deep (ping > pong > ping > pong), and "
                               "max_delegation_depth is 3") != NULL,
                  "%s", rows);
    free(rows);
    world_fini(&w);
}
END_TEST

/* Proves p8.13 */
START_TEST(an_unknown_agent_is_a_result)
{
    const char *files[] = {"parent.yaml", PARENT, NULL};
    struct world w;
    world_init(&w,
               "models:\n"
               "  parent:\n"
               "    - tool_calls: [{id: a1, name: ask_agent, arguments: {agent_name: nobody, input_text: what?}}]\n"
               "    - {text: I could not}\n",
               files);
    world_chat(&w, "parent", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "ask it");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    char *rows = world_rows(&w, true);
    ck_assert_msg(strstr(rows,
                         "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"nobody\","
                         "\"error\":\"Agent 'nobody' not found\"") != NULL,
                  "%s", rows);
    free(rows);
    world_fini(&w);
}
END_TEST

static const struct {
    const char *document, *why;
} unfit[] = {
    {"tools: [nowhere]\n", "it names tool \\\"nowhere\\\", which nothing has"},
    {"tools: [{name: action, server: weather}]\n", "tool \\\"action\\\": no server \\\"weather\\\" is configured"},
};

START_TEST(an_agent_that_lacks_a_tool_is_not_asked) /* p8 W11, W12 */
{
    rv_buf child = RV_BUF_INIT(1000);
    struct world w;

    rv_buf_printf(&child, "type: object\nname: child\ndescription: d\n%s", unfit[_i].document);
    const char *files[] = {"parent.yaml", PARENT, "child.yaml", rv_buf_cstr(&child), NULL};
    world_init(&w,
               "models:\n"
               "  parent:\n"
               "    - tool_calls: [{id: a1, name: ask_agent, arguments: {agent_name: child, input_text: what?}}]\n"
               "    - {text: I could not}\n"
               "  child: [{text: never}]\n",
               files);
    world_chat(&w, "parent", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "ask it");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    char *rows = world_rows(&w, true);
    ck_assert_msg(strstr(rows, unfit[_i].why) && !strstr(rows, "never"), "%s", rows);
    free(rows);
    world_fini(&w);
    rv_buf_fini(&child);
}
END_TEST

START_TEST(what_an_agent_answered_is_kept_when_nobody_says_a_word) /* remlight 10.9 */
{
    const char *files[] = {"parent.yaml", PARENT, "child.yaml",
                           "type: object\nname: child\ndescription: d\nstructured_output: true\n"
                           "properties: {n: {type: integer}}\n",
                           NULL};
    struct world w;
    world_init(&w,
               "models:\n"
               "  parent:\n"
               "    - tool_calls: [{id: a1, name: ask_agent, arguments: {agent_name: child, input_text: what?}}]\n"
               "    - {text: \"\"}\n"
               "  child: [{json: {n: 4}}]\n",
               files);
    world_chat(&w, "parent", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "ask it");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_str_eq(t.text.ptr, "{\"n\":4}");
    world_fini(&w);
}
END_TEST

static void note_requests(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    rv_buf *b = self;

    (void)all;
    if (e->kind == RV_EFFECT_CALL_LLM && e->origin)
        rv_buf_add(b, e->request, e->request_len);
}

/* Proves remlight.19/10: An asked agent is not told of the turn under way
 * Proves remlight.19/12: Nobody is one user: who is not named has sessions, history and asked agents as everybody
 * else */
START_TEST(a_child_sees_what_was_said_before_unless_it_is_not_to) /* remlight 8 step 4; 19 rows 10, 12 */
{
    static const struct {
        const char *history, *user;
        bool sees;
    } cases[] = {{"", "alice", true}, {"", NULL, true}, {"history: none\n", "alice", false}};

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        rv_buf child = RV_BUF_INIT(1000), requests = RV_BUF_INIT((size_t)1 << 20);
        struct world w;

        rv_buf_printf(&child, "type: object\nname: child\ndescription: d\n%s", cases[i].history);
        const char *files[] = {"parent.yaml", PARENT, "child.yaml", rv_buf_cstr(&child), NULL};
        world_init(&w,
                   "models:\n"
                   "  parent:\n"
                   "    - {text: blue}\n"
                   "    - tool_calls: [{id: a, name: ask_agent, arguments: {agent_name: child, input_text: what?}}]\n"
                   "    - {text: fine}\n"
                   "  child: [{text: well}]\n",
                   files);
        world_chat(&w, "parent", NULL, cases[i].user);
        world_watch(&w, &(struct rv_chat_opts){.on_effect = note_requests, .self = &requests});
        world_say(&w, "my colour is mauve");
        world_say(&w, "ask it");
        bool sees = strstr(rv_buf_cstr(&requests), "my colour is mauve") != NULL;
        ck_assert_int_eq(sees, cases[i].sees);
        ck_assert_ptr_null(strstr(rv_buf_cstr(&requests), "ask it")); /* nor the turn under way */
        world_fini(&w);
        rv_buf_fini(&requests);
        rv_buf_fini(&child);
    }
}
END_TEST

Suite *delegation_suite(void)
{
    Suite *s = suite_create("delegation");
    TCase *tc = tcase_create("delegation");

    tcase_add_test(tc, a_child_streams_and_its_words_are_kept);
    tcase_add_test(tc, a_request_says_whose_words_count);
    tcase_add_test(tc, ping_pong_ends_by_depth);
    tcase_add_test(tc, an_unknown_agent_is_a_result);
    tcase_add_test(tc, a_child_sees_what_was_said_before_unless_it_is_not_to);
    tcase_add_loop_test(tc, an_agent_that_lacks_a_tool_is_not_asked, 0, (int)RV_COUNT(unfit));
    tcase_add_test(tc, what_an_agent_answered_is_kept_when_nobody_says_a_word);
    suite_add_tcase(s, tc);
    return s;
}
