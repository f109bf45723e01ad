/* What is said and done in turns, and the rows that are kept of it. */
#include <string.h>

#include "tests/unit/turns/room.h"

#define TOOLS                "tools: [ask_agent, read, look, put, send, wipe, action]\n"
#define PLAIN                "\n"
#define SHAPE                "structured_output: true\nproperties: {name: {type: string}, n: {type: integer}}\nrequired: [name]\n"
#define ASK(id, agent, text) id " ask_agent {\"agent_name\":\"" agent "\",\"input_text\":\"" text "\"}"
#define ASKED(id, agent, text)                                                                                         \
    "{\"name\":\"ask_agent\",\"id\":\"" id "\",\"arguments\":{\"agent_name\":\"" agent "\",\"input_text\":\"" text     \
    "\"}}\n"
#define CALLED(name, id, args) "{\"name\":\"" name "\",\"id\":\"" id "\",\"arguments\":" args "}\n"
#define OF(name, id)           " {\"name\":\"" name "\",\"id\":\"" id "\"}\n"
#define SAID(agent, text)                                                                                              \
    "{\"status\":\"success\",\"output\":\"" text "\",\"text_response\":\"" text "\",\"agent_schema\":\"" agent         \
    "\",\"is_structured_output\":false,\"chained_tool_result\":null}"
#define REFUSED(agent, why)                                                                                            \
    "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"" agent "\",\"error\":\"" why "\"}"
#define DONE   "Final result processed."
#define MISSED "Tool not executed - a final result was already processed."

const struct scene room_scenes[] = {
    {.name = "plain",
     .parent = TOOLS,
     .lines = {{.to = "parent", .text = "hello", .in = 3, .out = 1}},
     .rows = "user ask\nassistant[parent] hello\n"},
    {.name = "tools side by side, one that fails",
     .parent = TOOLS,
     .lines = {{.to = "parent", .text = "I look.", .calls = "c1 read {\"q\":1} | c2 look {}"},
               {.to = "read", .text = "{\"v\":1}"},
               {.to = "look", .text = "", .fails = "ExecutionError:it is dark"},
               {.to = "parent", .text = "done"}},
     .rows = "user ask\n"
             "assistant[parent] I look.\n"
             "tool_call[parent] {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{\"q\":1}}\n"
             "tool_response[parent] {\"v\":1} {\"name\":\"read\",\"id\":\"c1\"}\n"
             "tool_call[parent] {\"name\":\"look\",\"id\":\"c2\",\"arguments\":{}}\n"
             "tool_response[parent] {\"error\":{\"type\":\"ExecutionError\",\"message\":\"it is dark\"}} "
             "{\"name\":\"look\",\"id\":\"c2\"}\n"
             "assistant[parent] done\n"},
    {.name = "answers in another order",
     .parent = TOOLS,
     .last_first = true,
     .lines = {{.to = "parent", .text = "", .calls = "c1 read {} | c2 look {}"},
               {.to = "read", .text = "{\"v\":1}"},
               {.to = "look", .text = "{\"v\":2}"},
               {.to = "parent", .text = "done"}},
     .rows = "user ask\n"
             "tool_call[parent] " CALLED("read", "c1", "{}") "tool_response[parent] {\"v\":1}" OF(
                 "read",
                 "c1") "tool_call[parent] " CALLED("look", "c2",
                                                   "{}") "tool_response[parent] {\"v\":2}" OF("look",
                                                                                              "c2") "assistant[parent] "
                                                                                                    "done\n"},
    {.name = "arguments that are none, a tool that is none",
     .parent = TOOLS,
     .lines = {{.to = "parent", .text = "", .calls = "c1 read {oops | c2 nothing {} | c3 read [1]"},
               {.to = "parent", .text = "well"}},
     .rows = "user ask\n"
             "tool_call[parent] {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{\"raw\":\"{oops\"}}\n"
             "tool_response[parent] {\"error\":{\"type\":\"ValidationError\",\"message\":\"step 0 can not be run: "
             "arguments: line 1, column 2: expected a key in double quotes, found 'o'\"}} "
             "{\"name\":\"read\",\"id\":\"c1\"}\n"
             "tool_call[parent] {\"name\":\"nothing\",\"id\":\"c2\",\"arguments\":{}}\n"
             "tool_response[parent] {\"error\":{\"type\":\"NotFoundError\",\"message\":\"tool not found: "
             "\\\"nothing\\\"; there are \\\"ask_agent\\\", \\\"read\\\", \\\"look\\\", \\\"put\\\", "
             "\\\"send\\\", \\\"wipe\\\", \\\"action\\\"\"}} {\"name\":\"nothing\",\"id\":\"c2\"}\n"
             "tool_call[parent] {\"name\":\"read\",\"id\":\"c3\",\"arguments\":{}}\n"
             "tool_response[parent] {\"error\":{\"type\":\"ValidationError\",\"message\":\"step 2 can not be run: "
             "arguments must be an object, not array\"}} {\"name\":\"read\",\"id\":\"c3\"}\n"
             "assistant[parent] well\n"},
    {.name = "the same id twice",
     .parent = TOOLS,
     .lines = {{.to = "parent", .text = "", .calls = "call_1 read {}"},
               {.to = "read", .text = "{\"v\":1}"},
               {.to = "parent", .text = "", .calls = "call_1 look {}"},
               {.to = "look", .text = "{\"v\":2}"},
               {.to = "parent", .text = "done"}},
     .rows = "user ask\n"
             "tool_call[parent] " CALLED("read", "call_1", "{}") "tool_response[parent] {\"v\":1}" OF(
                 "read",
                 "call_1") "tool_call[parent] " CALLED("look", "call_2",
                                                       "{}") "tool_response[parent] {\"v\":2}" OF("look",
                                                                                                  "call_2") "assistant["
                                                                                                            "parent] "
                                                                                                            "done\n"},
    {.name = "an output by call, with an id that was there",
     .parent = TOOLS SHAPE,
     .lines = {{.to = "parent", .text = "", .calls = "call_1 read {}"},
               {.to = "read", .text = "{\"v\":1}"},
               {.to = "parent", .text = "", .calls = "call_1 final_result {\"name\":\"ada\"}"}},
     .rows = "user ask\n"
             "tool_call[parent] " CALLED("read", "call_1", "{}") "tool_response[parent] {\"v\":1}" OF(
                 "read", "call_1") "tool_call[parent] " CALLED("final_result", "call_2",
                                                               "{\"name\":\"ada\"}") "tool_response[parent] " DONE
                 OF("final_result", "call_2") "assistant[parent] {\"name\":\"ada\"}\n"},
    {.name = "an output by call, with others beside it",
     .parent = TOOLS SHAPE,
     .lines = {{.to = "parent", .text = "", .calls = "c1 read {} | c2 final_result {\"name\":\"ada\",\"n\":3}"}},
     .rows = "user ask\n"
             "tool_call[parent] " CALLED("read", "c1", "{}") "tool_response[parent] " MISSED OF(
                 "read", "c1") "tool_call[parent] " CALLED("final_result", "c2",
                                                           "{\"name\":\"ada\",\"n\":3}") "tool_response[parent] " DONE
                 OF("final_result", "c2") "assistant[parent] {\"name\":\"ada\",\"n\":3}\n"},
    {.name = "an output as JSON",
     .parent = SHAPE,
     .lines = {{.to = "parent", .text = "{\"name\": \"ada\"}"}},
     .rows = "user ask\nassistant[parent] {\"name\":\"ada\"}\n"},
    {.name = "an output that is repaired",
     .parent = SHAPE,
     .lines = {{.to = "parent", .text = "", .calls = "c1 final_result {\"n\":1}"},
               {.to = "parent", .text = "", .calls = "c2 final_result {\"name\":\"ada\"}"}},
     .rows = "user ask\n"
             "tool_call[parent] {\"name\":\"final_result\",\"id\":\"c1\",\"arguments\":{\"n\":1}}\n"
             "tool_response[parent] This does not fit the schema of the answer: output_schema: (root): missing "
             "required property \"name\". Correct it and answer again. {\"name\":\"final_result\",\"id\":\"c1\"}\n"
             "tool_call[parent] {\"name\":\"final_result\",\"id\":\"c2\",\"arguments\":{\"name\":\"ada\"}}\n"
             "tool_response[parent] Final result processed. {\"name\":\"final_result\",\"id\":\"c2\"}\n"
             "assistant[parent] {\"name\":\"ada\"}\n"},
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
             "\",\"agent_schema\":\"child\",\"is_structured_output\":true,\"chained_tool_result\":{\"saved\":1}} "
             "{\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
             "assistant[parent] it is ada\n"},
#include "tests/unit/turns/scenes_heard.inc"
    {.name = "a chain",
     .parent = SHAPE "chained_tool: put\n",
     .lines = {{.to = "parent", .text = "{\"name\":\"ada\"}"}, {.to = "put", .text = "{\"saved\":1}"}},
     .rows = "user ask\nassistant[parent] {\"name\":\"ada\"}\n"
             "tool_call[parent] " CALLED("put", "%C",
                                         "{\"name\":\"ada\"}") "tool_response[parent] {\"saved\":1}" OF("put", "%C")},
    {.name = "a chain that must not happen twice",
     .parent = SHAPE "chained_tool: send\n",
     .lines = {{.to = "parent", .text = "{\"name\":\"ada\"}"}, {.to = "send", .text = "{\"sent\":1}"}},
     .rows = "user ask\nassistant[parent] {\"name\":\"ada\"}\n"
             "tool_call[parent] " CALLED("send", "%C",
                                         "{\"name\":\"ada\"}") "tool_response[parent] {\"sent\":1}" OF("send", "%C")},
    {.name = "a chain that fails",
     .parent = SHAPE "chained_tool: put\n",
     .lines = {{.to = "parent", .text = "{\"name\":\"ada\"}"},
               {.to = "put", .text = "", .fails = "ExecutionError:disk on fire"}},
     .rows = "user ask\nassistant[parent] {\"name\":\"ada\"}\n"
             "tool_call[parent] " CALLED(
                 "put", "%C", "{\"name\":\"ada\"}") "tool_response[parent] {\"status\":\"error\",\"error\":\"disk "
                                                    "on fire\"}" OF("put", "%C")},
    {.name = "a chain of a tool that is none",
     .parent = SHAPE "chained_tool: nowhere\n",
     .lines = {{.to = "parent", .text = "{\"name\":\"ada\"}"}},
     .rows = "user ask\nassistant[parent] {\"name\":\"ada\"}\n"
             "tool_call[parent] " CALLED(
                 "nowhere", "%C", "{\"name\":\"ada\"}") "tool_response[parent] {\"status\":\"error\",\"error\":\"there "
                                                        "is no tool \\\"nowhere\\\"\"}" OF("nowhere", "%C")},
    {.name = "a chain that would destroy",
     .parent = SHAPE "chained_tool: wipe\n",
     .lines = {{.to = "parent", .text = "{\"name\":\"ada\"}"}},
     .rows = "user ask\nassistant[parent] {\"name\":\"ada\"}\n"
             "tool_call[parent] " CALLED(
                 "wipe", "%C", "{\"name\":\"ada\"}") "tool_response[parent] {\"status\":\"error\",\"error\":\"tool "
                                                     "\\\"wipe\\\" needs a person's approval, which a "
                                                     "chained call can not ask for\"}" OF("wipe", "%C")},
    {.name = "an observation, and the end of a routing",
     .parent = TOOLS,
     .routes = true,
     .lines = {{.to = "parent", .text = "", .calls = "o action {} | d action {}"},
               {.to = "action",
                .text = "{\"_action_event\":true,\"action_type\":\"observation\",\"status\":\"success\","
                        "\"payload\":{\"session_name\":\"Cats\"}}"},
               {.to = "action", .text = "{\"_action_event\":true,\"action_type\":\"complete\",\"status\":\"success\"}"},
               {.to = "parent", .text = "bye"}},
     .rows = "user ask\n"
             "tool_call[parent] {\"name\":\"action\",\"id\":\"o\",\"arguments\":{}}\n"
             "tool_response[parent] "
             "{\"_action_event\":true,\"action_type\":\"observation\",\"status\":\"success\",\"payload\":{"
             "\"session_name\":\"Cats\"}} {\"name\":\"action\",\"id\":\"o\"}\n"
             "tool_call[parent] {\"name\":\"action\",\"id\":\"d\",\"arguments\":{}}\n"
             "tool_response[parent] {\"_action_event\":true,\"action_type\":\"complete\",\"status\":\"success\"} "
             "{\"name\":\"action\",\"id\":\"d\"}\n"
             "assistant[parent] bye\n"},
    {.name = "a turn that fails",
     .parent = TOOLS,
     .lines = {{.to = "parent", .text = "I look.", .calls = "c1 read {}"},
               {.to = "read", .text = "{\"v\":1}"},
               {.to = "parent", .text = "half of", .fails = "LLMError:no"}},
     .rows = "user(failed) ask\n"
             "assistant[parent](failed) I look.\n"
             "tool_call[parent](failed) {\"name\":\"read\",\"id\":\"c1\",\"arguments\":{}}\n"
             "tool_response[parent](failed) {\"v\":1} {\"name\":\"read\",\"id\":\"c1\"}\n"
             "assistant[parent](failed) half of\n"},
    {.name = "nothing is kept",
     .parent = TOOLS,
     .agents = {"child", PLAIN},
     .forgets = true,
     .lines = {{.to = "parent", .text = "", .calls = ASK("a1", "child", "what?")},
               {.to = "child", .text = "this"},
               {.to = "parent", .text = "it said this"}},
     .rows = ""},
    {.name = "calls that are repeated",
     .stage = ", max_retries: 2",
     .parent = TOOLS,
     .agents = {"child", "tools: [send]\n"},
     .lines = {{.to = "parent", .text = "", .calls = ASK("a1", "child", "what?") " | r read {}"},
               {.to = "read", .text = "", .fails = "?ExecutionError:busy"},
               {.to = "child", .text = "", .fails = "?LLMError:overloaded"},
               {.to = "read", .text = "{\"v\":1}"},
               {.to = "child", .text = "", .calls = "s send {}"},
               {.to = "send", .text = "{\"sent\":1}"},
               {.to = "child", .text = "sent"},
               {.to = "parent", .text = "it is"}},
     .rows = NULL},
    {.name = "words before an output",
     .parent = TOOLS SHAPE,
     .agents = {"child", PLAIN},
     .lines = {{.to = "parent", .text = "I ask.", .calls = ASK("a1", "child", "what?")},
               {.to = "child", .text = "this"},
               {.to = "parent", .text = "So it is:", .calls = "f final_result {\"name\":\"ada\"}"}},
     .rows =
         "user ask\n"
         "tool_call[parent] "
         "{\"name\":\"ask_agent\",\"id\":\"a1\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"what?\"}}\n"
         "assistant<a1[child] this\n"
         "tool_response[parent] "
         "{\"status\":\"success\",\"output\":\"this\",\"text_response\":\"this\",\"agent_schema\":\"child\",\"input_"
         "text\":\"what?\",\"is_structured_output\":false,\"chained_tool_result\":null} "
         "{\"name\":\"ask_agent\",\"id\":\"a1\"}\n"
         "tool_call[parent] {\"name\":\"final_result\",\"id\":\"f\",\"arguments\":{\"name\":\"ada\"}}\n"
         "tool_response[parent] Final result processed. {\"name\":\"final_result\",\"id\":\"f\"}\n"
         "assistant[parent] {\"name\":\"ada\"}\n"},
    {.name = "an output with a null",
     .parent = SHAPE "chained_tool: put\n",
     .lines = {{.to = "parent", .text = "", .calls = "f final_result {\"name\":\"ada\",\"n\":null}"},
               {.to = "put", .text = "{\"saved\":1}"}},
     .rows =
         "user ask\n"
         "tool_call[parent] " CALLED("final_result", "f", "{\"name\":\"ada\",\"n\":null}") "tool_response[parent] " DONE
             OF("final_result",
                "f") "assistant[parent] {\"name\":\"ada\",\"n\":null}\n"
                     "tool_call[parent] " CALLED(
                         "put", "%C", "{\"name\":\"ada\",\"n\":null}") "tool_response[parent] {\"saved\":1}" OF("put",
                                                                                                                "%C")},
};
const size_t room_n_scenes = RV_COUNT(room_scenes);

const struct scene *room_scene(const char *name)
{
    for (size_t i = 0; i < room_n_scenes; i++)
        if (strcmp(room_scenes[i].name, name) == 0)
            return &room_scenes[i];
    rv_kit_die("no scene \"%s\"", name);
}
