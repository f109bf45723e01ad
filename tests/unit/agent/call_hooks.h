/* What the tests of hooks around calls begin with: a stage with a model, or with a model and three tools. */
#ifndef RV_TESTS_AGENT_CALL_HOOKS_H
#define RV_TESTS_AGENT_CALL_HOOKS_H

#include "tests/kit/drive.h"

#define FIRST "{'envelope_id':'env_1','raw_input':'what is it?'}"
#define MODEL                                                                                                          \
    "name: t\nmodels: {r: {model: 'openai:gpt-x', price: {input: 1, output: 1}}}\nbudget: {usd: 1}\nagents:\n"         \
    "  - name: a\n    has_llm: true\n    model_role: r\n    output_mode: text\n    "
#define TOOLS MODEL "has_tools: true\n    tool_access: all\n    "

#define CALL_HOOKS_TOOLS 3 /* read, put and wipe */
extern const struct drive_tool call_hooks_tools[CALL_HOOKS_TOOLS];

/** A run of the pipeline, with the envelope FIRST and the tools. */
struct drive *call_hooks_start(const char *yaml);
/** The n-th request to a model; fails the test if there is none. */
const struct drive_call *call_hooks_asked(const struct drive *d, size_t n);

#endif
