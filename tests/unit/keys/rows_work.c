/* Keys of a stage that works through a list, builds its output, runs another pipeline, begins branches, or joins them.
 */
#include <stdlib.h>

#include "tests/unit/keys/rows.h"

#define HEAD "name: t\nmodels: {r: scripted}\n"
#define LIST "{name: l, set: {v: \"[1, 2, 3]\"}, default_next: a}"
#define EACH(keys)                                                                                                     \
    HEAD "agents: [" LIST ", {name: a, stage_order: 1, has_llm: true, model_role: r, prompt_key: p, " keys "}]\n"      \
         "prompts: {p: 'about {{item}}'}\n"
#define SUB(keys) "name: t\nagents: [{name: a, " keys "}]\n"
#define INNER     "name: i\ninputs: [w]\nagents: [{name: x, set: {v: inputs.w, k: 2}}]\n"
/* Branches that both write the output `o`. */
#define GROUP(targets, join)                                                                                           \
    HEAD "agents: [{name: l, default_next: [" targets "]}, {name: a, " LLM ", default_next: m}, {name: b, " LLM        \
         ", default_next: m}, {name: m, join: " join "}]\n"
#define LLM "has_llm: true, model_role: r, output_key: o"
#define SLOW_B                                                                                                         \
    {                                                                                                                  \
        "llm:b", "{'n':2}", true, 1000                                                                                 \
    }
#define FAILED_A                                                                                                       \
    {                                                                                                                  \
        "llm:a", "!:no", false, 0                                                                                      \
    }

static const struct key_row rows[] = {
    {"agent.set", "{v: 1}", "{v: 2}", "name: t\nagents: [{name: a, set: @}]\n"},
    {"agent.for_each", "outputs.l.v", "'[7]'", EACH("for_each: @, max_items: 9")},
    {"agent.max_items", "2", "3", EACH("for_each: outputs.l.v, max_items: @")},
    {"agent.max_parallel", "1", "3", EACH("for_each: outputs.l.v, max_items: 9, max_parallel: @")},
    {"agent.on_item_error",
     "skip",
     "collect",
     EACH("for_each: outputs.l.v, max_items: 9, on_item_error: @"),
     {{"llm:a", "!:no", false, 0}}},
    {"agent.pipeline", "inner.yaml", "other.yaml", SUB("pipeline: @, inputs: {w: \"1\"}"), .file = INNER},
    {"agent.inputs", "{w: \"1\"}", "{w: \"2\"}", SUB("pipeline: inner.yaml, inputs: @"), .file = INNER},
    {"agent.outputs", "{v: outputs.x.v}", "{v: outputs.x.k}",
     SUB("pipeline: inner.yaml, inputs: {w: \"1\"}, outputs: @"), .file = INNER},
    {"agent.join", "{merge: {o: append}}", "{wait: first, merge: {o: append}}", GROUP("a, b", "@"), {SLOW_B}},
    {"join.wait", "all", "first", GROUP("a, b", "{wait: @, merge: {o: append}}"), {SLOW_B}},
    {"join.failures", "drain", "collect", GROUP("a, b", "{failures: @, merge: {o: append}}"), {FAILED_A, SLOW_B}},
    {"join.merge", "{o: append}", "{o: replace}", GROUP("a, b", "{merge: @}"), {SLOW_B}},
    {"branch.target", "a", "b", GROUP("{target: @}", "all")},
    {"branch.when", "1 == 1", "1 == 2", GROUP("{target: a, when: @}, b", "{merge: {o: append}}")},
};

const struct key_rows key_rows_work = {rows, RV_COUNT(rows), key_tell_run};

/* What only loading looks at. */
static char *tell_findings(const struct key_row *row, const char *variant)
{
    rv_findings *findings = rv_findings_new();
    char *yaml = key_text(row->text, variant);
    rv_buf all = RV_BUF_INIT(DRIVE_MAX_TEXT);
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(yaml), "test.yaml", ".", findings, &p, NULL), 0);
    rv_findings_write_text(findings, false, &all);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    free(yaml);
    return rv_buf_steal(&all, NULL);
}

static const struct key_row declared[] = {
    {"pipeline.inputs", "[]", "[w]",
     HEAD
     "inputs: @\nagents: [{name: a, has_llm: true, model_role: r, prompt_key: p}]\nprompts: {p: '{{inputs.w}}'}\n"},
};

const struct key_rows key_rows_declared = {declared, RV_COUNT(declared), tell_findings};
