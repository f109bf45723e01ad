/* Turns in which agents ask agents: the rows that are kept, and whose words are the answer. */
#include "tests/unit/turns/scenes.h"

/* The parent asks the child, which says "this"; then the parent says `last`. The parent's row has `answer`. */
#define ONE_QUESTION(last, answer)                                                                                     \
    .agents = {"child", PLAIN},                                                                                        \
    .lines = {{.to = "parent", .text = "", .calls = ASK("a1", "child", "what?")},                                      \
              {.to = "child", .text = "this"},                                                                         \
              {.to = "parent", .text = last}},                                                                         \
    .rows =                                                                                                            \
        "user ask\n"                                                                                                   \
        "tool_call[parent] " ASKED("a1", "child", "what?") "assistant<a1[child] this\n"                                \
                                                           "tool_response[parent] " SAID("child", "what?", "this")     \
                                                               OF("ask_agent", "a1") "assistant[parent] " answer "\n"

const struct scene room_asked_scenes[] = {
    /* Proves p8.16 */
    {.name = "the sequence of the reference", /* p8 16 */
     .stage = ", child_text: child",
     .parent = TOOLS,
     .agents = {"child", PLAIN},
     .lines = {{.to = "parent", .text = "", .calls = "c1 read {}"},
               {.to = "read", .text = "{\"v\":1}"},
               {.to = "parent", .text = "", .calls = ASK("c2", "child", "what?")},
               {.to = "child", .text = "this"},
               {.to = "parent", .text = "as I said"}},
     .rows =
         "user ask\n"
         "tool_call[parent] {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{}}\n"
         "tool_response[parent] {\"v\":1} {\"name\":\"read\",\"id\":\"c1\"}\n"
         "tool_call[parent] "
         "{\"name\":\"ask_agent\",\"id\":\"c2\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?\"}}\n"
         "assistant<c2[child] this\n"
         "tool_response[parent] "
         "{\"status\":\"success\",\"output\":\"this\",\"text_response\":\"this\",\"agent_schema\":\"child\",\"input_"
         "text\":\"what?\",\"is_structured_output\":false,\"chained_tool_result\":null} "
         "{\"name\":\"ask_agent\",\"id\":\"c2\"}\n"
         "assistant[parent] this\n"},
    {.name = "a child with tools",
     .stage = ", child_text: child",
     .parent = TOOLS,
     .agents = {"child", "tools: [read, put]\n"},
     .lines = {{.to = "parent", .text = "Wait.", .calls = ASK("a1", "child", "what?"), .in = 10, .out = 2},
               {.to = "child", .text = "I read.", .calls = "c1 read {} | c2 put {}", .in = 100, .out = 20},
               {.to = "read", .text = "{\"v\":1}"},
               {.to = "put", .text = "{\"v\":2}"},
               {.to = "child", .text = "this", .in = 200, .out = 30},
               {.to = "parent", .text = "as I said", .in = 40, .out = 5}},
     .rows =
         "user ask\n"
         "assistant[parent] Wait.\n"
         "tool_call[parent] "
         "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?\"}}\n"
         "assistant<a1[child] I read.\n"
         "tool_call<a1[child] {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{}}\n"
         "tool_response<a1[child] {\"v\":1} {\"name\":\"read\",\"id\":\"c1\"}\n"
         "tool_call<a1[child] {\"name\":\"put\",\"id\":\"c2\",\"arguments\":{}}\n"
         "tool_response<a1[child] {\"v\":2} {\"name\":\"put\",\"id\":\"c2\"}\n"
         "assistant<a1[child] this\n"
         "tool_response[parent] {\"status\":\"success\",\"output\":\"this\",\"text_response\":\"I "
         "read.\\n\\nthis\",\"agent_schema\":\"child\",\"input_text\":\"what?\",\"is_structured_output\":false,"
         "\"chained_tool_result\":null} {\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
         "assistant[parent] I read.\n"
         "\n"
         "this\n"},
    /* Proves remlight.9 */
    {.name = "children side by side, and a tool",
     .stage = ", child_text: child",
     .parent = TOOLS,
     .agents = {"one", "tools: [read]\n", "two", PLAIN},
     .last_first = true,
     .lines = {{.to = "parent", .text = "", .calls = ASK("a1", "one", "x") " | r1 look {} | " ASK("a2", "two", "y")},
               {.to = "look", .text = "{\"v\":1}"},
               {.to = "one", .text = "", .calls = "c1 read {}"},
               {.to = "read", .text = "{\"v\":2}"},
               {.to = "two", .text = "the second"},
               {.to = "one", .text = "the first"},
               {.to = "parent", .text = "both"}},
     .rows = "user ask\n"
             "tool_call[parent] "
             "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"one\",\"input_text\":\"x\"}}\n"
             "tool_call<a1[one] {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{}}\n"
             "tool_response<a1[one] {\"v\":2} {\"name\":\"read\",\"id\":\"c1\"}\n"
             "assistant<a1[one] the first\n"
             "tool_response[parent] {\"status\":\"success\",\"output\":\"the first\",\"text_response\":\"the "
             "first\",\"agent_schema\":\"one\",\"input_text\":\"x\",\"is_structured_output\":false,\"chained_tool_"
             "result\":null} {\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
             "tool_call[parent] {\"name\":\"look\",\"id\":\"r1\",\"arguments\":{}}\n"
             "tool_response[parent] {\"v\":1} {\"name\":\"look\",\"id\":\"r1\"}\n"
             "tool_call[parent] "
             "{\"name\":\"ask_agent\",\"id\":\"a2\",\"arguments\":{\"agent_name\":\"two\",\"input_text\":\"y\"}}\n"
             "assistant<a2[two] the second\n"
             "tool_response[parent] {\"status\":\"success\",\"output\":\"the second\",\"text_response\":\"the "
             "second\",\"agent_schema\":\"two\",\"input_text\":\"y\",\"is_structured_output\":false,\"chained_tool_"
             "result\":null} {\"name\":\"ask_agent\",\"id\":\"a2\"}\n"
             "assistant[parent] the second\n"
             "\n"
             "the first\n"},
    {.name = "three deep",
     .stage = ", child_text: child",
     .parent = TOOLS,
     .agents = {"one", "tools: [ask_agent]\n", "two", "tools: [ask_agent]\n", "three", "tools: [put]\n"},
     .lines = {{.to = "parent", .text = "", .calls = ASK("a", "one", "1")},
               {.to = "one", .text = "", .calls = ASK("a", "two", "2")},
               {.to = "two", .text = "", .calls = ASK("a", "three", "3")},
               {.to = "three", .text = "", .calls = "c put {}"},
               {.to = "put", .text = "{\"v\":1}"},
               {.to = "three", .text = "deep"},
               {.to = "two", .text = "less"},
               {.to = "one", .text = "little"},
               {.to = "parent", .text = "top"}},
     .rows = "user ask\n"
             "tool_call[parent] "
             "{\"name\":\"ask_agent\",\"id\":\"a\",\"arguments\":{\"agent_name\":\"one\",\"input_text\":\"1\"}}\n"
             "tool_call<a[one] "
             "{\"name\":\"ask_agent\",\"id\":\"a_1\",\"arguments\":{\"agent_name\":\"two\",\"input_text\":\"2\"}}\n"
             "tool_call<a_1[two] "
             "{\"name\":\"ask_agent\",\"id\":\"a_1_1\",\"arguments\":{\"agent_name\":\"three\",\"input_text\":\"3\"}}\n"
             "tool_call<a_1_1[three] {\"name\":\"put\",\"id\":\"c\",\"arguments\":{}}\n"
             "tool_response<a_1_1[three] {\"v\":1} {\"name\":\"put\",\"id\":\"c\"}\n"
             "assistant<a_1_1[three] deep\n"
             "tool_response<a_1[two] "
             "{\"status\":\"success\",\"output\":\"deep\",\"text_response\":\"deep\",\"agent_schema\":\"three\","
             "\"input_text\":\"3\",\"is_structured_output\":false,\"chained_tool_result\":null} "
             "{\"name\":\"ask_agent\",\"id\":\"a_1_1\"}\n"
             "assistant<a_1[two] deep\n"
             "tool_response<a[one] "
             "{\"status\":\"success\",\"output\":\"less\",\"text_response\":\"deep\",\"agent_schema\":\"two\",\"input_"
             "text\":\"2\",\"is_structured_output\":false,\"chained_tool_result\":null} "
             "{\"name\":\"ask_agent\",\"id\":\"a_1\"}\n"
             "assistant<a[one] deep\n"
             "tool_response[parent] "
             "{\"status\":\"success\",\"output\":\"little\",\"text_response\":\"deep\",\"agent_schema\":\"one\","
             "\"input_text\":\"1\",\"is_structured_output\":false,\"chained_tool_result\":null} "
             "{\"name\":\"ask_agent\",\"id\":\"a\"}\n"
             "assistant[parent] deep\n"},
    {.name = "children that count their calls, as who asked does",
     .stage = ", child_text: child",
     .parent = TOOLS,
     .agents = {"one", "tools: [put]\n", "two", "tools: [put]\n"},
     .lines = {{.to = "parent", .text = "", .calls = ASK("call_1", "one", "1")},
               {.to = "one", .text = "", .calls = "call_1 put {}"},
               {.to = "put", .text = "{\"v\":1}"},
               {.to = "one", .text = "", .calls = "call_1 put {}"},
               {.to = "put", .text = "{\"v\":2}"},
               {.to = "one", .text = "uno"},
               {.to = "parent", .text = "", .calls = ASK("call_1", "two", "2")},
               {.to = "two", .text = "", .calls = "call_2 put {}"},
               {.to = "put", .text = "{\"v\":3}"},
               {.to = "two", .text = "due"},
               {.to = "parent", .text = "top"}},
     .rows = "user ask\n"
             "tool_call[parent] "
             "{\"name\":\"ask_agent\",\"id\":\"call_1\",\"arguments\":{\"agent_name\":\"one\",\"input_text\":\"1\"}}\n"
             "tool_call<call_1[one] {\"name\":\"put\",\"id\":\"call_1_1\",\"arguments\":{}}\n"
             "tool_response<call_1[one] {\"v\":1} {\"name\":\"put\",\"id\":\"call_1_1\"}\n"
             "tool_call<call_1[one] {\"name\":\"put\",\"id\":\"call_1_2\",\"arguments\":{}}\n"
             "tool_response<call_1[one] {\"v\":2} {\"name\":\"put\",\"id\":\"call_1_2\"}\n"
             "assistant<call_1[one] uno\n"
             "tool_response[parent] "
             "{\"status\":\"success\",\"output\":\"uno\",\"text_response\":\"uno\",\"agent_schema\":\"one\",\"input_"
             "text\":\"1\",\"is_structured_output\":false,\"chained_tool_result\":null} "
             "{\"name\":\"ask_agent\",\"id\":\"call_1\"}\n"
             "tool_call[parent] "
             "{\"name\":\"ask_agent\",\"id\":\"call_2\",\"arguments\":{\"agent_name\":\"two\",\"input_text\":\"2\"}}\n"
             "tool_call<call_2[two] {\"name\":\"put\",\"id\":\"call_2_1\",\"arguments\":{}}\n"
             "tool_response<call_2[two] {\"v\":3} {\"name\":\"put\",\"id\":\"call_2_1\"}\n"
             "assistant<call_2[two] due\n"
             "tool_response[parent] "
             "{\"status\":\"success\",\"output\":\"due\",\"text_response\":\"due\",\"agent_schema\":\"two\",\"input_"
             "text\":\"2\",\"is_structured_output\":false,\"chained_tool_result\":null} "
             "{\"name\":\"ask_agent\",\"id\":\"call_2\"}\n"
             "assistant[parent] uno\n"
             "\n"
             "due\n"},
    /* Proves remlight.8: All parameters of `ask_agent`; timeouts, another user, an agent that needs a person are
     * errors as results */
    {.name = "too deep, too often, unknown, for another",
     .stage = ", child_text: child",
     .keys = "max_delegation_depth: 1\n",
     .parent = TOOLS,
     .agents = {"one", "tools: [ask_agent]\n"},
     .lines = {{.to = "parent",
                .text = "",
                .calls = ASK("a", "one", "1") " | " ASK("b", "nobody", "2") " | " ASK(
                    "c", "parent",
                    "3") " | d ask_agent {\"agent_name\":\"one\",\"input_text\":\"4\",\"user_id\":\"bob\"}"},
               {.to = "one", .text = "", .calls = ASK("e", "one", "5")},
               {.to = "one", .text = "alone"},
               {.to = "parent", .text = "well"},
               {.to = "parent", .text = "well"}},
     .rows =
         "user ask\n"
         "tool_call[parent] "
         "{\"name\":\"ask_agent\",\"id\":\"a\",\"arguments\":{\"agent_name\":\"one\",\"input_text\":\"1\"}}\n"
         "tool_call<a[one] "
         "{\"name\":\"ask_agent\",\"id\":\"e\",\"arguments\":{\"agent_name\":\"one\",\"input_text\":\"5\"}}\n"
         "tool_response<a[one] "
         "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"one\",\"error\":\"agent "
         "\\\"one\\\" can not be asked: agents already ask each other 1 deep (parent > one), and max_delegation_depth "
         "is 1: answer yourself\"} {\"name\":\"ask_agent\",\"id\":\"e\"}\n"
         "assistant<a[one] alone\n"
         "tool_response[parent] "
         "{\"status\":\"success\",\"output\":\"alone\",\"text_response\":\"alone\",\"agent_schema\":\"one\",\"input_"
         "text\":\"1\",\"is_structured_output\":false,\"chained_tool_result\":null} "
         "{\"name\":\"ask_agent\",\"id\":\"a\"}\n"
         "tool_call[parent] "
         "{\"name\":\"ask_agent\",\"id\":\"b\",\"arguments\":{\"agent_name\":\"nobody\",\"input_text\":\"2\"}}\n"
         "tool_response[parent] "
         "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"nobody\",\"error\":\"there "
         "is no agent \\\"nobody\\\"\"} {\"name\":\"ask_agent\",\"id\":\"b\"}\n"
         "tool_call[parent] "
         "{\"name\":\"ask_agent\",\"id\":\"c\",\"arguments\":{\"agent_name\":\"parent\",\"input_text\":\"3\"}}\n"
         "assistant<c[parent] well\n"
         "tool_response[parent] "
         "{\"status\":\"success\",\"output\":\"well\",\"text_response\":\"well\",\"agent_schema\":\"parent\",\"input_"
         "text\":\"3\",\"is_structured_output\":false,\"chained_tool_result\":null} "
         "{\"name\":\"ask_agent\",\"id\":\"c\"}\n"
         "tool_call[parent] "
         "{\"name\":\"ask_agent\",\"id\":\"d\",\"arguments\":{\"agent_name\":\"one\",\"input_text\":\"4\",\"user_id\":"
         "\"bob\"}}\n"
         "tool_response[parent] "
         "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"one\",\"error\":\"user_id "
         "can not name another user than the one who asks: leave it out\"} {\"name\":\"ask_agent\",\"id\":\"d\"}\n"
         "assistant[parent] well\n"
         "\n"
         "alone\n"},
    /* Proves remlight.10 */
    {.name = "a child that fails",
     .stage = ", child_text: child",
     .parent = TOOLS,
     .agents = {"child", PLAIN},
     .lines = {{.to = "parent", .text = "", .calls = ASK("a1", "child", "what?")},
               {.to = "child", .text = "half of", .fails = "LLMError:no key"},
               {.to = "parent", .text = "I say it"}},
     .rows = "user ask\n"
             "tool_call[parent] " ASKED("a1", "child",
                                        "what?") "assistant<a1[child](failed) half of\n"
                                                 "tool_response[parent] " REFUSED(
                                                     "child", "agent \\\"child\\\": generation failed: no key")
                                                     OF("ask_agent", "a1") "assistant[parent] half of\n\nI say it\n"},
    /* Proves remlight.19/17: An agent that is out of time is cancelled, and says so
     * Proves remlight.8 */
    {.name = "a child that takes too long",
     .stage = ", child_text: child",
     .parent = TOOLS,
     .agents = {"child", PLAIN},
     .lines = {{.to = "parent",
                .text = "",
                .calls = "a1 ask_agent {\"agent_name\":\"child\",\"input_text\":\"what?\",\"timeout_seconds\":2}"},
               {.to = "child", .text = "late", .takes_us = 3000000},
               {.to = "parent", .text = "I say it"}},
     .rows = "user ask\n"
             "tool_call[parent] "
             "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?"
             "\",\"timeout_seconds\":2}}\n"
             "assistant<a1[child](failed) late\n"
             "tool_response[parent] "
             "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"child\",\"error\":"
             "\"Agent 'child' timed out after 2s\"} {\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
             "assistant[parent] late\n"
             "\n"
             "I say it\n"},
    /* Proves remlight.8 */
    {.name = "a child that needs a person",
     .parent = TOOLS,
     .agents = {"child", "tools: [wipe]\n"},
     .lines = {{.to = "parent", .text = "", .calls = ASK("a1", "child", "what?")},
               {.to = "child", .text = "", .calls = "w wipe {}"},
               {.to = "parent", .text = "I say it"}},
     .rows = "user ask\n"
             "tool_call[parent] "
             "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?"
             "\"}}\n"
             "tool_call<a1[child](failed) {\"name\":\"wipe\",\"id\":\"w\",\"arguments\":{}}\n"
             "assistant<a1[child](failed) \n"
             "tool_response[parent] "
             "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"child\",\"error\":"
             "\"agent \\\"child\\\" needs a person, and an agent that was asked can not wait for one: tool "
             "\\\"wipe\\\" is destructive: may it run with these parameters?\"} "
             "{\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
             "assistant[parent] I say it\n"},
    /* Proves remlight.19/2: A structured child's result is delivered
     * Proves p8.13, p8.W35, remlight.10 */
    {.name = "a child with an output",
     .parent = TOOLS,
     .agents = {"child", SHAPE "chained_tool: put\n"},
     .lines = {{.to = "parent", .text = "", .calls = ASK("a1", "child", "what?")},
               {.to = "child", .text = "", .calls = "f final_result {\"name\":\"ada\"}"},
               {.to = "put", .text = "{\"saved\":1}"},
               {.to = "parent", .text = "it is ada"}},
     .rows = "user ask\n"
             "tool_call[parent] "
             "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?"
             "\"}}\n"
             "tool_call<a1[child] {\"name\":\"final_result\",\"id\":\"f\",\"arguments\":{\"name\":\"ada\"}}\n"
             "tool_response<a1[child] Final result processed. {\"name\":\"final_result\",\"id\":\"f\"}\n"
             "assistant<a1[child] {\"name\":\"ada\"}\n"
             "tool_call<a1[child] {\"name\":\"put\",\"id\":\"%C\",\"arguments\":{\"name\":\"ada\"}}\n"
             "tool_response<a1[child] {\"saved\":1} {\"name\":\"put\",\"id\":\"%C\"}\n"
             "tool_response[parent] "
             "{\"status\":\"success\",\"output\":{\"name\":\"ada\"},\"text_response\":\"{\\\"name\\\":\\\"ada\\\"}"
             "\",\"agent_schema\":\"child\",\"input_text\":\"what?\",\"is_structured_output\":true,\"chained_tool_"
             "result\":{\"saved\":1}} "
             "{\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
             "assistant[parent] it is ada\n"},
    {.name = "the parent concludes",
     .parent = TOOLS,
     .agents = {"child", PLAIN},
     .lines = {{.to = "parent", .text = "I ask twice.", .calls = ASK("a1", "child", "one?")},
               {.to = "child", .text = "first"},
               {.to = "parent", .text = "", .calls = ASK("a2", "child", "two?")},
               {.to = "child", .text = "second"},
               {.to = "parent", .text = "Both agree."}},
     .rows = "user ask\n"
             "assistant[parent] I ask twice.\n"
             "tool_call[parent] " ASKED(
                 "a1", "child", "one?") "assistant<a1[child] first\n"
                                        "tool_response[parent] " SAID("child", "one?", "first")
                                            OF("ask_agent", "a1") "tool_call[parent] " ASKED(
                                                "a2", "child",
                                                "two?") "assistant<a2[child] second\n"
                                                        "tool_response[parent] " SAID("child", "two?", "second")
                                                            OF("ask_agent", "a2") "assistant[parent] Both agree.\n"},
    {.name = "the parent leaves the word to the child",
     .parent = TOOLS,
     .agents = {"child", PLAIN},
     .lines = {{.to = "parent", .text = "I ask.", .calls = ASK("a1", "child", "what?")},
               {.to = "child", .text = "this"},
               {.to = "parent", .text = "  "}},
     .rows = "user ask\n"
             "assistant[parent] I ask.\n"
             "tool_call[parent] " ASKED("a1", "child", "what?") "assistant<a1[child] this\n"
                                                                "tool_response[parent] " SAID("child", "what?", "this")
                                                                    OF("ask_agent", "a1") "assistant[parent] this\n"},
    {.name = "the parent concludes in a run of the older rules",
     .rules = RV_RULES_1,
     .parent = TOOLS,
     .agents = {"child", PLAIN},
     .lines = {{.to = "parent", .text = "", .calls = ASK("a1", "child", "what?")},
               {.to = "child", .text = "this"},
               {.to = "parent", .text = "not heard"}},
     .rows = "user ask\n"
             "tool_call[parent] " ASKED(
                 "a1", "child",
                 "what?") "assistant<a1[child] this\n"
                          "tool_response[parent] "
                          "{\"status\":\"success\",\"output\":\"this\",\"text_response\":\"this\",\"agent_schema\":"
                          "\"child\",\"is_structured_output\":false,\"chained_tool_result\":null}" OF(
                              "ask_agent", "a1") "assistant[parent] this\n"},
    {.name = "the document says who is heard, and the stage over it",
     .keys = "child_text: parent\n",
     .parent = TOOLS "child_text: child\n",
     ONE_QUESTION("not heard", "this")},
    {.name = "the pipeline says who is heard",
     .keys = "child_text: both\n",
     .parent = TOOLS,
     ONE_QUESTION("it said this", "this\n\nit said this")},
    /* Proves remlight.19/4: Who is heard is chosen by the stage
     * Proves p8.W24 */
    {.name = "the parent is heard",
     .stage = ", child_text: parent",
     .parent = TOOLS,
     ONE_QUESTION("it said this", "it said this")},
    /* Proves remlight.19/26, remlight.19/4 */
    {.name = "both are heard",
     .stage = ", child_text: both",
     .parent = TOOLS,
     ONE_QUESTION("it said this", "this\n\nit said this")},
    /* Proves p8.W24, remlight.19/4 */
    {.name = "the parent is heard again",
     .stage = ", child_text: child, child_text_resets: true",
     .parent = TOOLS,
     ONE_QUESTION("it said this", "this\n\nit said this")},
};
const size_t room_n_asked_scenes = RV_COUNT(room_asked_scenes);
