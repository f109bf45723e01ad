/* Keys whose effect is seen from the command line: tests and their verdicts, files, capabilities, prices, what a run
 * answers, declared agents of a stage, and agents that ask each other. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/kit/kit.h"
#include "tests/unit/keys/rows.h"

#define ASK "agents: [{name: a, stage_order: 1, has_llm: true, model_role: r"
#define R   "name: t\nmodels: {r: scripted}\n"
#define TEST                                                                                                           \
    R ASK ", default_next: b}, {name: b, stage_order: 2, has_llm: true, model_role: r}]\n"                             \
          "response: {output_key: b, field: x}\n"
#define SAYS         "script: {models: {a: [{json: {n: 1}}], b: [{json: {x: hello, n: 2}}]}}"
#define ONE(keys)    TEST "tests: [{name: one, " keys "}]\n"
#define EXPECT(keys) ONE(SAYS ", expect: {" keys "}")
#define JUDGED(keys)                                                                                                   \
    "name: t\nmodels: {r: {model: scripted, price: {input: 1, output: 1}}}\n" ASK                                      \
    "}]\nresponse: {output_key: a, field: x}\ntests: [{name: one, script: {models: {a: [{json: {x: hello}}], "         \
    "expect.judge: [{contains: is long, json: {score: 0, reason: no}}, {json: {score: 0.7, reason: why}, usage: "      \
    "{input_tokens: 10, output_tokens: 2}}]}}, expect: {" keys "}}]\n"
#define INPUT(keys)                                                                                                    \
    R ASK ", prompt_key: p}]\nprompts: {p: '{{raw_input}} {{user_id}} {{session_id}} {{metadata}}'}\n"                 \
          "tests: [{name: one, input: {" keys                                                                          \
          "}, script: {models: {a: [{contains: wanted, json: {}}]}}, expect: {status: completed}}]\n"
#define PRICE(keys, usage)                                                                                             \
    "name: t\nbudget: {usd: 0.95}\nmodels: {r: {model: 'openai:gpt-x', max_tokens: 10, price: {" keys "}}}\n" ASK      \
    ", default_next: b, max_tokens: 100}, {name: b, stage_order: 2, has_llm: true, model_role: r, max_tokens: 100}]\n" \
    "tests: [{name: one, script: {models: {a: [{json: {}, usage: {" usage                                              \
    "}}], b: [{json: {}}]}}, expect: {status: completed}}]\n"
#define DECLARED(keys)                                                                                                 \
    R "capabilities: [p8]\nschema_dir: agents\nagents: [{agent: parent, name: a, model_role: r, " keys "}]\n"
#define CALLED(keys, replies)                                                                                          \
    R "capabilities: [hello]\n" ASK ", has_tools: true, tool_access: all, output_mode: text, " keys                    \
      "}]\ntests: [{name: one, script: {models: {a: [" replies ", {text: x}]}}, expect: {status: completed}}]\n"
#define CALLS(keys)                                                                                                    \
    CALLED(keys, "{tool_calls: [{name: greet, arguments: {name: x}}], usage: {input_tokens: 50, output_tokens: 50}}")
#define DELEGATED(key, child)                                                                                          \
    "execution: {" key                                                                                                 \
    ": @}\n" DECLARED("stage_order: 1") "tests: [{name: one, script: {models: {a: [{tool_calls: [{name: ask_agent, "   \
                                        "arguments: {agent_name: child, "                                              \
                                        "input_text: x}}], usage: {input_tokens: 50, output_tokens: 50}}, {json: {n: " \
                                        "1}}], child: [{text: help, " child                                            \
                                        "}]}}, expect: {status: completed, max_duration_ms: 20000}}]\n"
#define LISTED(key) "type: object\nname: t\ndescription: d\n" key ": @\n"
#define LIMITED(key)                                                                                                   \
    "name: t\ncapabilities: [{path: " TEST_PLUGIN_DIR "/greedy.so, isolation: process, limits: {" key ": @}}]\n"       \
    "agents: [{name: a, has_tools: true, tool_access: all}]\n"
#define GOALS(reset)                                                                                                   \
    "{\"state\": {\"outputs\": {\"plan\": {\"n\": 1}, \"critic\": {\"n\": 2}}, \"all_goals\": [\"x\", \"y\"], "        \
    "\"remaining_goals\": [\"x\", \"y\"]}, \"satisfied\": [\"x\"], \"pipeline\": {\"name\": \"t\", \"agents\": "       \
    "[{\"name\": "                                                                                                     \
    "\"a\"}], \"stage_reset\": " reset "}}"
#define LIMIT(key, few)                                                                                                \
    {                                                                                                                  \
        "agent.limits." key, few, "1000", CALLS("limits: {" key ": @}"), .with = VERDICT                               \
    }
/* In a folder of its own, where ./set makes the files that commands share. */
char *key_tell_command(const struct key_row *row, const char *variant)
{
    static const char parent[] = "type: object\nname: parent\ndescription: You lead.\ntools: [ask_agent, action]\n"
                                 "properties: {n: {type: integer}}\n",
                      child[] = "type: object\nname: child\ndescription: You help.\ntools: [ask_agent]\n",
                      script[] = "models:\n  a:\n    - tool_calls: [{id: c1, name: ask_agent, arguments: {agent_name: "
                                 "child, input_text: x}}]\n    - {text: '{\"n\": 1}'}\n"
                                 "  child:\n    - tool_calls: [{id: c2, name: ask_agent, arguments: {agent_name: "
                                 "child, input_text: y}}]\n    - {text: help}\n";
    char *dir = rv_kit_tmpdir(), *text = key_text(row->text, variant);
    const char *const files[][2] = {{"t.yaml", text},   {"agents_parent.yaml", parent}, {"agents_child.yaml", child},
                                    {"s.yaml", script}, {"one.txt", "one {{x}}"},       {"two.txt", "two"}};
    rv_buf command = RV_BUF_INIT((size_t)1 << 20), out = RV_BUF_INIT((size_t)4 << 20);
    char bytes[4096];
    size_t n;

    for (size_t i = 0; i < RV_COUNT(files); i++) {
        char *path = rv_kit_path(dir, files[i][0]);
        rv_kit_write(path, files[i][1]);
        free(path);
    }
    rv_buf_printf(&command,
                  "cd '%s' && mkdir agents && mv agents_parent.yaml agents/parent.yaml && mv agents_child.yaml "
                  "agents/child.yaml && REEVE_STORE= REEVE_CAPABILITY_PATH='%s' HOME=. XDG_STATE_HOME=. '%s' %s 2>&1",
                  dir, CAPABILITY_DIR, REEVE_PROGRAM, row->with);
    FILE *f = popen(rv_buf_cstr(&command), "r");
    if (!f)
        rv_kit_die("no pipe");
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0)
        rv_buf_add_str(&out, (rv_str){bytes, n});
    int status = pclose(f);
    rv_buf_printf(&out, "exit %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    rv_buf_fini(&command);
    rv_kit_tmpdir_remove(dir);
    free(text);
    return rv_buf_steal(&out, NULL);
}

#define VERDICT "test t.yaml"
#define LINT    "lint t.yaml"
#define RUN     "run t.yaml --script s.yaml --no-store --input hi"
#define ASKS    RUN
#define LIST    "agents list --no-store --json --capability '' --schema-dir ."
#define LIMITS                                                                                                         \
    "run t.yaml --no-store --quiet --state --set 'outputs.plan={\"steps\": [{\"tool\": \"limits\"}]}' | "              \
    "grep -o '\"[a-z]*_of_process\":[^,}]*'"

static const struct key_row rows[] = {
    /* what a test says, and its verdict */
    {"pipeline.tests", "[]", "[{name: one, " SAYS "}]", TEST "tests: @\n", .with = VERDICT},
    {"test.name", "one", "two", TEST "tests: [{name: @, " SAYS "}]\n", .with = VERDICT},
    {"test.input", "{raw_input: wanted}", "{raw_input: other}",
     R ASK ", prompt_key: p}]\nprompts: {p: '{{raw_input}}'}\n"
           "tests: [{name: one, input: @, script: {models: {a: [{contains: wanted, json: {}}]}}, expect: {status: "
           "completed}}]\n",
     .with = VERDICT},
    {"test.envelope", "{}", "{outputs: {o: {v: 1}}}", ONE(SAYS ", envelope: @, expect: {output: {o: {v: 1}}}"),
     .with = VERDICT},
    {"test.script", "{models: {a: [{json: {n: 1}}], b: [{json: {}}]}}",
     "{models: {a: [{json: {n: 2}}], b: [{json: {}}]}}", ONE("script: @, expect: {output: {a: {n: 1}}}"),
     .with = VERDICT},
    {"test.mode", "sequential", "parallel",
     R ASK ", requires: [b]}, {name: b, stage_order: 2}]\ntests: [{name: one, mode: @, script: {models: {a: [{json: "
           "{}}]}}, expect: {visited: [b, a]}}]\n",
     .with = VERDICT},
    {"test.mock", "true", "false",
     "name: t\ncapabilities: [hello]\nmodels: {r: scripted}\n" ASK
     ", mock_handler: hello.canned}]\ntests: [{name: one, "
     "mock: @, script: {models: {}}, expect: {status: completed}}]\n",
     .with = VERDICT},
    {"test.min_pass_rate", "0", "0.5", ONE(SAYS ", min_pass_rate: @, expect: {status: failed}"), .with = VERDICT},
    {"test_expect.judge", "{model: r, rubric: x}", "{model: r, rubric: x, threshold: 0.9}", JUDGED("judge: @"),
     .with = VERDICT},
    {"test_judge.model", "r", "'openai:none'", JUDGED("judge: {model: @, rubric: x}"), .with = VERDICT},
    {"test_judge.rubric", "is short", "is long", JUDGED("judge: {model: r, rubric: @}"), .with = VERDICT},
    {"test_judge.votes", "1", "3", JUDGED("judge: {model: r, rubric: is long, votes: @}"), .with = VERDICT},
    {"test_judge.threshold", "0.6", "0.8", JUDGED("judge: {model: r, rubric: x, threshold: @}"), .with = VERDICT},
    {"test_judge.max_cost_usd", "1", "0", JUDGED("judge: {model: r, rubric: x, max_cost_usd: @}"), .with = VERDICT},
    {"test_judge.max_tokens", "1000", "5", JUDGED("judge: {model: r, rubric: x, votes: 3, max_tokens: @}"),
     .with = VERDICT},
    {"test.without", "[]", "[nowhere]", "capabilities: [nowhere]\n" ONE(SAYS ", without: @"), .with = VERDICT},
    {"test.expect", "{status: completed}", "{status: failed}", ONE(SAYS ", expect: @"), .with = VERDICT},
    {"test_input.raw_input", "wanted", "other", INPUT("raw_input: @"), .with = VERDICT},
    {"test_input.user_id", "wanted", "other", INPUT("user_id: @"), .with = VERDICT},
    {"test_input.session_id", "wanted", "other", INPUT("session_id: @"), .with = VERDICT},
    {"test_input.metadata", "{k: wanted}", "{k: other}", INPUT("metadata: @"), .with = VERDICT},
    {"test_expect.status", "completed", "failed", EXPECT("status: @"), .with = VERDICT},
    {"test_expect.terminal_reason", "completed", "user_cancelled", EXPECT("terminal_reason: @"), .with = VERDICT},
    {"test_expect.visited", "[a, b]", "[b, a]", EXPECT("visited: @"), .with = VERDICT},
    {"test_expect.output", "{a: {n: 1}}", "{a: {n: 2}}", EXPECT("output: @"), .with = VERDICT},
    {"test_expect.response", "hello", "other", EXPECT("response: @"), .with = VERDICT},
    {"test_expect.response_contains", "ell", "other", EXPECT("response_contains: @"), .with = VERDICT},
    {"test_expect.interrupt", "clarification", "confirmation", EXPECT("interrupt: @"), .with = VERDICT},
    {"test_expect.questions", "[]", "[q]", EXPECT("questions: @"), .with = VERDICT},
    {"test_expect.errors", "0", "1", EXPECT("errors: @"), .with = VERDICT},
    {"test_expect.llm_calls", "2", "1", EXPECT("llm_calls: @"), .with = VERDICT},
    {"test_expect.iteration", "0", "1", EXPECT("iteration: @"), .with = VERDICT},
    {"test_expect.max_duration_ms", "1", "100000",
     ONE("script: {models: {a: [{json: {}, delay_ms: 50}], b: [{json: {}}]}}, expect: {max_duration_ms: @}"),
     .with = VERDICT},
    {"test_error.agent", "a", "b",
     ONE("script: {models: {a: [{error: {kind: auth}}]}}, expect: {errors: [{agent: @}]}"), .with = VERDICT},
    {"test_error.contains", "a", "zebra",
     ONE("script: {models: {a: [{error: {kind: auth}}]}}, expect: {errors: [{contains: @}]}"), .with = VERDICT},
    {"pipeline.response", "{output_key: a, field: n}", "{output_key: b, field: x}",
     R ASK "}]\nresponse: @\ntests: [{name: one, script: {models: {a: [{json: {n: hi}}]}}, expect: {response: hi}}]\n",
     .with = VERDICT},
    {"pipeline.response.output_key", "a", "b",
     R ASK "}]\nresponse: {output_key: @, field: n}\ntests: [{name: one, script: {models: {a: [{json: {n: hi}}]}}, "
           "expect: {response: hi}}]\n",
     .with = VERDICT},
    {"pipeline.response.field", "n", "m",
     R ASK "}]\nresponse: {output_key: a, field: @}\ntests: [{name: one, script: {models: {a: [{json: {n: hi}}]}}, "
           "expect: {response: hi}}]\n",
     .with = VERDICT},
    {"agent.max_rounds", "1", "5",
     CALLED("max_rounds: @", "{tool_calls: [{name: greet, arguments: {name: x}}]}, "
                             "{tool_calls: [{name: greet, arguments: {name: y}}]}"),
     .with = VERDICT},
    {"agent.max_bad_calls", "0", "3", CALLED("max_bad_calls: @", "{tool_calls: [{name: nothing, arguments: {}}]}"),
     .with = VERDICT},
    {"agent.limits", "{request_limit: 1}", "{}", CALLS("limits: @"), .with = VERDICT},
    LIMIT("request_limit", "1"),
    LIMIT("input_tokens_limit", "1"),
    LIMIT("output_tokens_limit", "1"),
    LIMIT("total_tokens_limit", "1"),
    {"agent.limits.tool_calls_limit", "1", "2",
     CALLED("limits: {tool_calls_limit: @}", "{tool_calls: [{name: greet, arguments: {name: x}}, {name: greet, "
                                             "arguments: {name: y}}]}"),
     .with = VERDICT},
    /* files and capabilities */
    {"prompt.file", "one.txt", "two.txt", R ASK ", prompt_key: p}]\nprompts: {p: {file: @}}\n", .with = LINT},
    {"pipeline.capabilities", "[hello]", "[]",
     "capabilities: @\n" R "agents: [{name: a, stage_order: 1, pre_process: hello.greet_user}]\n", .with = LINT},
    {"capability.name", "hello", "guard",
     R "capabilities: [{name: @}]\nagents: [{name: a, stage_order: 1, pre_process: hello.greet_user}]\n", .with = LINT},
    {"capability.path", CAPABILITY_DIR "/hello.so", CAPABILITY_DIR "/guard.so",
     R "capabilities: [{path: @}]\nagents: [{name: a, stage_order: 1, pre_process: hello.greet_user}]\n", .with = LINT},
    {"capability.config", "{roots: [.]}", "{roots: [nowhere]}",
     R "capabilities: [{name: files, config: @}]\n" ASK "}]\n", .with = LINT},
    {"capability.isolation", "none", "process",
     R "capabilities: [{name: hello, isolation: @, limits: {open_files: 32}}]\n" ASK "}]\n", .with = LINT},
    {"capability.limits", "{open_files: 32}", "null",
     R "capabilities: [{name: hello, isolation: none, limits: @}]\n" ASK "}]\n", .with = LINT},
    {"capability.limits.memory_mb", "1000", "2000", LIMITED("memory_mb"), .with = LIMITS},
    {"capability.limits.open_files", "32", "64", LIMITED("open_files"), .with = LIMITS},
    /* what a run can cost */
    {"model.price", "{input: 1, output: 1}", "{input: 1, output: 900}",
     "name: t\nmodels: {r: {model: 'openai:gpt-x', max_tokens: 1000, max_request_bytes: 1000, price: @}}\n" ASK "}]\n",
     .with = LINT " --max-cost 0.5"},
    {"price.input", "1", "900", PRICE("output: 1, input: @", "input_tokens: 1000"), .with = VERDICT},
    {"price.output", "1", "900", PRICE("input: 1, output: @", "output_tokens: 1000"), .with = VERDICT},
    {"price.cached", "0", "900", PRICE("input: 1, output: 1, cached: @", "input_tokens: 1000, cached_tokens: 1000"),
     .with = VERDICT},
    {"price.cache_write", "0", "900",
     PRICE("input: 1, output: 1, cache_write: @", "input_tokens: 1000, cache_write_tokens: 1000"), .with = VERDICT},
    {"model.optional", "true", "false",
     "name: t\nmodels: {r: {model: '${env:NOT_SET_HERE}', optional: @}}\nagents: [{name: a, stage_order: 1}]\n",
     .with = LINT},
    /* the log, goals, and what is there for people */
    {"execution.log_level", "OFF", "DEBUG", "execution: {log_level: @}\n" DECLARED("stage_order: 1"),
     .with = RUN " 2>&1 >/dev/null | grep -c -w DEBUG"},
    {"pipeline.stage_reset", "[\"plan\"]", "[\"critic\"]", GOALS("@"),
     .with = "fn advance_stage <t.yaml | grep -o '\"outputs\":{[^}]*}'"},
    {"pipeline.description", "one", "two", R "description: @\n" ASK "}]\n", .with = "explain t.yaml"},
    {"agentdoc.kind", "one", "two", LISTED("kind"), .with = LIST},
    {"agentdoc.version", "one", "two", LISTED("version"), .with = LIST},
    {"agentdoc.tags", "[one]", "[two]", LISTED("tags"), .with = LIST},
    {"agentdoc.author", "one", "two", LISTED("author"), .with = LIST},
    /* declared agents */
    {"execution.delegation_timeout", "5", "100", DELEGATED("delegation_timeout", "delay_ms: 50000"), .with = VERDICT},
    {"execution.agent_request_limit", "1", "2", DELEGATED("agent_request_limit", "delay_ms: 1"), .with = VERDICT},
    {"execution.agent_token_limit", "1", "1000", DELEGATED("agent_token_limit", "delay_ms: 1"), .with = VERDICT},
    {"agent.joins_session", "true", "false", DECLARED("joins_session: @"),
     .with = "run t.yaml --script s.yaml --store runs.db --session s1 --input hi; '" REEVE_PROGRAM
             "' sessions messages s1 --store runs.db | grep -o '\"message_type\":[^,]*'"},
    {"pipeline.schema_dir", "agents", "other", R "schema_dir: @\nagents: [{agent: parent, model_role: r}]\n",
     .with = LINT},
    {"agent.agent", "parent", "nobody",
     R "capabilities: [p8]\nschema_dir: agents\nagents: [{agent: @, name: a, model_role: r}]\n", .with = LINT},
    {"agent.structured_output", "true", "false", DECLARED("structured_output: @"), .with = RUN},
    {"pipeline.max_delegation_depth", "0", "3", "max_delegation_depth: @\n" DECLARED("stage_order: 1"),
     .with = ASKS " --events | grep tool_result | grep -o '\"result\".*'"},
    {"pipeline.max_delegation_repeats", "1", "3", "max_delegation_repeats: @\n" DECLARED("stage_order: 1"),
     .with = ASKS " --events | grep -o 'type\":\"[a-z_]*'"},
    {"pipeline.child_text", "child", "parent", "child_text: @\n" DECLARED("stage_order: 1"),
     .with = ASKS " --events --deltas | grep -o '\"type\":\"[a-z_]*delta\".*text.*'"},
    {"agent.child_text", "child", "parent", DECLARED("child_text: @"),
     .with = ASKS " --events --deltas | grep -o '\"type\":\"[a-z_]*delta\".*text.*'"},
    {"agent.child_text_resets", "true", "false", DECLARED("child_text: child, child_text_resets: @"),
     .with = ASKS " --events --deltas | grep -o '\"type\":\"[a-z_]*delta\".*text.*'"},
};

const struct key_rows key_rows_commands = {rows, RV_COUNT(rows), key_tell_command};
