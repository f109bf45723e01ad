/* Keys of stages that plan their tool calls, and of what tests assert: seen in the reports of tests. */
#include "tests/unit/keys/rows.h"

/* The report has the output, the calls, the time and how it ended. */
#define REPORT "test t.yaml --json"
#define A_CALL "{tool_name: list_files, arguments: {}}"
#define TWO    "{tool_calls: [{name: __planning__, arguments: {type: tool_calls, calls: [" A_CALL ", " A_CALL "]}}]}"
#define ONE    "{tool_calls: [{name: __planning__, arguments: {type: tool_calls, calls: [" A_CALL "]}}]}"
#define WRITES                                                                                                         \
    "{tool_calls: [{name: __planning__, arguments: {type: tool_calls, calls: [{tool_name: write_file, arguments: "     \
    "{path: x, text: y}}]}}]}"
#define BAD       "{tool_calls: [{name: __planning__, arguments: {type: nothing}}]}"
#define WELL      "{result: {files: [], note: 0123456789012345678901234567890123456789-tail}, delay_ms: 5000}"
#define WITH_META "{result: {content: [], structuredContent: {files: [], total: 0}, _meta: {k: {artifact_id: p-1}}}}"
#define PLANNED(keys, replies, results)                                                                                \
    "name: t\nmodels: {r: scripted}\ncapabilities: [{name: files, config: {roots: [.]}}]\nmax_llm_calls: 9\n"          \
    "agents: [{name: a, has_llm: true, model_role: r, has_tools: true, tool_access: all, output_mode: text, " keys     \
    "}]\ntests: [{name: one, script: {models: {a: [" replies ", {text: done}]}, tools: {list_files: [" results         \
    "], write_file: [{result: {}}]}}, expect: {llm_calls: 99, max_duration_ms: 1, output: {a: 0}}}]\n"
#define PLAN(keys, replies, results) PLANNED("strategy: planned, " keys, replies, results)
#define STAGE                                                                                                          \
    "name: t\nmodels: {r: scripted}\ncapabilities: [hello]\nagents: [{name: a, has_llm: true, model_role: r, "         \
    "has_tools: true, tool_access: all, output_mode: text}]\nresponse: {output_key: a, field: response}\n"
#define EXPECT(keys)                                                                                                   \
    STAGE "tests: [{name: one, script: {models: {a: [{tool_calls: [{name: greet, arguments: {name: x}}]}, {text: "     \
          "hello}]}}, expect: {" keys "}}]\n"

static const struct key_row rows[] = {
    {"pipeline.artifacts", "{provenance_key: k}", "{}", "artifacts: @\n" PLAN("", ONE, WITH_META), .with = REPORT},
    {"pipeline.artifacts.provenance_key", "k", "z", "artifacts: {provenance_key: @}\n" PLAN("", ONE, WITH_META),
     .with = REPORT},
    {"agent.strategy", "planned", "standard", PLANNED("strategy: @", ONE, WELL), .with = REPORT},
    {"agent.plan", "{max_calls: 1}", "{}", PLAN("plan: @", TWO, WELL), .with = REPORT},
    {"agent.plan.max_calls", "1", "2", PLAN("plan: {max_calls: @}", TWO, WELL), .with = REPORT},
    {"agent.plan.max_repairs", "0", "1", PLAN("plan: {max_repairs: @}", BAD ", " ONE, WELL), .with = REPORT},
    {"agent.plan.max_replans", "0", "1", PLAN("plan: {max_replans: @}", ONE ", " ONE, "{error: no}, " WELL),
     .with = REPORT},
    {"agent.plan.accept_native_calls", "true", "false",
     PLAN("plan: {accept_native_calls: @}", "{tool_calls: [{name: list_files, arguments: {}}]}", WELL), .with = REPORT},
    {"agent.plan.unschematized", "reject", "defer",
     "name: t\nmodels: {r: scripted}\ncapabilities: [hello]\nagents: [{name: a, has_llm: true, model_role: r, "
     "has_tools: true, tool_access: all, output_mode: text, strategy: planned, plan: {unschematized: @}}]\n"
     "tests: [{name: one, script: {tools: {plain: [{result: {v: x}}]}, models: {a: [{tool_calls: [{name: __planning__, "
     "arguments: {type: tool_calls, calls: [{tool_name: plain, arguments: {}}, {tool_name: greet, arguments: {name: "
     "$0.output.v}}]}}]}, {text: done}]}}, expect: {output: {a: 0}}}]\n",
     .with = REPORT},
    {"agent.execute", "{max_total_ms: 1000}", "{}", PLAN("execute: @", ONE, WELL), .with = REPORT},
    {"agent.execute.parallelism", "1", "2", PLAN("execute: {parallelism: @}", TWO, WELL), .with = REPORT},
    {"agent.execute.max_total_ms", "1000", "100000", PLAN("execute: {max_total_ms: @}", ONE, WELL), .with = REPORT},
    {"agent.execute.call_timeout_ms", "1000", "100000", PLAN("execute: {call_timeout_ms: @}", ONE, WELL),
     .with = REPORT},
    {"agent.execute.confirm", "never", "always", PLAN("execute: {confirm: @}", ONE, WELL), .with = REPORT},
    {"agent.execute.confirmer", "none", "person", PLAN("execute: {confirm: always, confirmer: @}", WRITES, WELL),
     .with = REPORT},
    {"agent.respond", "{max_output_bytes: 16}", "{}",
     PLAN("respond: @", ONE ", {contains: 789-tail, text: whole}", WELL), .with = REPORT},
    {"agent.respond.max_output_bytes", "16", "20000",
     PLAN("respond: {max_output_bytes: @}", ONE ", {contains: 789-tail, text: whole}", WELL), .with = REPORT},
    {"agent.respond.max_summary_bytes", "256", "20000",
     PLAN(
         "respond: {max_summary_bytes: @}", ONE ", {contains: 789-tail, text: whole}",
         "{result: {files: "
         "[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,"
         " bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
         "bbbbb,"
         " cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc], note: 0789-tail}}"),
     .with = REPORT},

    {"test.cases", "[{n: hello}]", "[{n: other}]",
     STAGE "tests: [{name: one, cases: @, script: {models: {a: [{text: hello}]}}, expect: {response: '{{case.n}}'}}]\n",
     .with = REPORT},
    {"test.matrix", "{n: [hello]}", "{n: [hello, other]}",
     STAGE
     "tests: [{name: one, matrix: @, script: {models: {a: [{text: hello}]}}, expect: {response: '{{matrix.n}}'}}]\n",
     .with = REPORT},
    {"test_expect.tool_calls", "[]", "[{tool: greet}]", EXPECT("tool_calls: @"), .with = REPORT},
    {"test_expect.schema", "{a: {required: [response]}}", "{a: {required: [m]}}", EXPECT("schema: @"), .with = REPORT},
    {"test_expect.similar", "{to: hello}", "{to: other}", EXPECT("similar: @"), .with = REPORT},
    {"test_expect.that", "response == 'hello'", "response == 'x'", EXPECT("that: @"), .with = REPORT},
    {"test_call.tool", "greet", "other", EXPECT("tool_calls: [{tool: @}]"), .with = REPORT},
    {"test_call.stage", "a", "b", EXPECT("tool_calls: [{tool: greet, stage: @}]"), .with = REPORT},
    {"test_call.arguments", "{name: x}", "{name: y}", EXPECT("tool_calls: [{tool: greet, arguments: @}]"),
     .with = REPORT},
    {"test_expect.near", "{size(response): {to: 5, within: 0}}", "{size(response): {to: 6, within: 0}}",
     EXPECT("near: @"), .with = REPORT},
    {"test_near.to", "4", "3", EXPECT("near: {size(response): {to: @, within: 1}}"), .with = REPORT},
    {"test_near.within", "1", "0.5", EXPECT("near: {size(response): {to: 4, within: @}}"), .with = REPORT},
    {"test_similar.to", "hello", "other", EXPECT("similar: {to: @}"), .with = REPORT},
    {"test_similar.at_least", "0.1", "0.9", EXPECT("similar: {to: hell, at_least: @}"), .with = REPORT},
};

const struct key_rows key_rows_plans = {rows, RV_COUNT(rows), key_tell_command};
