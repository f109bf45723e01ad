/* What is said and done in turns of one agent, and the rows that are kept of it; and how any scene is found. */
#include <string.h>

#include "tests/unit/turns/scenes.h"

static const struct scene alone[] = {
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
    /* Proves remlight.9: Calls and results in the order of the model, matched by id
     * Proves remlight.19/3: Results belong to calls by their ids */
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
    /* Proves remlight.19/3 */
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
    /* Proves p8.W7 */
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
    /* Proves p8.17 */
    {.name = "a chain",
     .parent = SHAPE "chained_tool: put\n",
     .lines = {{.to = "parent", .text = "{\"name\":\"ada\"}"}, {.to = "put", .text = "{\"saved\":1}"}},
     .rows = "user ask\nassistant[parent] {\"name\":\"ada\"}\n"
             "tool_call[parent] " CALLED("put", "%C",
                                         "{\"name\":\"ada\"}") "tool_response[parent] {\"saved\":1}" OF("put", "%C")},
    /* Proves p8.W36 */
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
    /* Proves p8.W13, remlight.7 */
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
    /* Proves p8.W23 */
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

int room_count_scenes(void)
{
    return (int)(RV_COUNT(alone) + room_n_asked_scenes);
}

const struct scene *room_scene_at(int i)
{
    size_t at = (size_t)i;

    return at < RV_COUNT(alone) ? &alone[at] : &room_asked_scenes[at - RV_COUNT(alone)];
}

const struct scene *room_scene(const char *name)
{
    for (int i = 0; i < room_count_scenes(); i++)
        if (strcmp(room_scene_at(i)->name, name) == 0)
            return room_scene_at(i);
    rv_kit_die("no scene \"%s\"", name);
}
