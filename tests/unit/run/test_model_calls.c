/* Every way in which a visit asks a model again, all at once: models that fail, write nonsense, call tools, pause, do
 * not fit the schema, contradict themselves and plan what cannot be done. Whatever they say, a run makes no more model
 * calls than the proof says, and for some pipelines it makes as many; and a pipeline that cannot ask does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/analysis/analysis.h"
#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define SEEDS 4

static const char inner[] = "name: i\nmodels: {m: scripted}\nagents:\n"
                            "  - {name: x, has_llm: true, model_role: m, max_retries: 1}\n";

struct model {
    struct rv_rand_state state;
    struct rv_rand rand;
    int mood;              /* what it likes to say most */
    int n_reached;         /* runs that made as many calls as was proved */
    int n_twice;           /* of these, with a stage that was asked again since it contradicted itself */
    int n_asked, n_silent; /* runs that wait for a person, and runs of pipelines that cannot ask */
};

static int pick(struct model *m, int n)
{
    return (int)rv_rand_below(m->rand, (uint64_t)n);
}

static bool chance(struct model *m, int percent)
{
    return pick(m, 100) < percent;
}

/* --- pipelines --- */

static void write_output(struct model *m, rv_buf *b)
{
    static const char *const schemas[] = {
        "{type: object, required: [v]}",
        "{type: object, properties: {v: {type: integer}, outcome: {type: string}}, required: [v]}",
        ("{type: object, properties: {v: {}, outcome: {enum: [success, loop_back]}, verdict: {enum: [proceed]}},"
         " additionalProperties: false}"),
        "{type: object, properties: {v: {}, outcome: {enum: [success, skip]}, verdict: {}}}",
        "{type: object, properties: {v: {}, outcome: {}}, additionalProperties: false}",
    };

    if (chance(m, 25)) {
        rv_buf_puts(b, "    output_mode: text\n");
    } else if (chance(m, 50)) {
        int max_repairs = pick(m, 3); /* apart: arguments are drawn in another order by another compiler */
        rv_buf_printf(b, "    output_schema: %s\n    max_repairs: %d\n", schemas[pick(m, RV_COUNT(schemas))],
                      max_repairs);
    }
}

static void write_tools(struct model *m, rv_buf *b)
{
    int max_bad_calls = pick(m, 3);

    rv_buf_printf(b, "    has_tools: true\n    tool_access: all\n    max_rounds: %d\n    max_bad_calls: %d\n",
                  1 + pick(m, 3), max_bad_calls);
    if (chance(m, 30)) {
        int max_replans = pick(m, 3);
        rv_buf_printf(b, "    strategy: planned\n    plan: {max_repairs: %d, max_replans: %d}\n", pick(m, 3),
                      max_replans);
    }
}

static void write_stage(struct model *m, rv_buf *b, int stage, int n)
{
    rv_buf_printf(b, "  - name: s%d\n", stage);
    if (chance(m, 10)) {
        rv_buf_printf(b, "    set: {v: 1, %s}\n", chance(m, 30) ? "outcome: \"'clarify'\"" : "w: 2");
    } else if (chance(m, 15)) {
        rv_buf_puts(b, "    pipeline: inner.yaml\n");
        if (chance(m, 70))
            rv_buf_puts(b, "    outputs: {outcome: \"'loop_back'\", verdict: \"'proceed'\"}\n");
    } else {
        rv_buf_printf(b, "    has_llm: true\n    model_role: r\n    max_retries: %d\n", pick(m, 3));
        write_output(m, b);
        if (chance(m, 40))
            write_tools(m, b);
        if (chance(m, 15))
            rv_buf_printf(b, "    limits: {request_limit: %d}\n", 1 + pick(m, 4));
        if (chance(m, 15))
            rv_buf_puts(b, "    before_model: x.bm\n    after_model: x.am\n");
    }
    if (chance(m, 10))
        rv_buf_puts(b, "    for_each: '[1, 2]'\n    max_items: 2\n");
    if (chance(m, 20))
        rv_buf_puts(b, "    error_next: s0\n    max_visits: 2\n");
    if (stage + 1 < n)
        rv_buf_printf(b, "    default_next: s%d\n", stage + 1);
}

static void write_pipeline(struct model *m, rv_buf *b)
{
    int n = 1 + pick(m, 2);

    rv_buf_clear(b);
    rv_buf_puts(b, "name: t\nmodels: {r: scripted}\nmax_llm_calls: 400\nmax_agent_hops: 40\nmax_iterations: 1\n");
    int max_retries = 1 + pick(m, 3);
    rv_buf_printf(b, "execution: {meta_validation_enabled: %s, max_llm_retries: %d}\nagents:\n",
                  chance(m, 85) ? "true" : "false", max_retries);
    for (int s = 0; s < n; s++)
        write_stage(m, b, s, n);
}

/* --- what the model says --- */

static const struct drive_said said[] = {
    {NULL, "{'v':1,'outcome':'loop_back','verdict':'proceed'}", NULL, NULL, false, 0},
    {NULL, "?:busy", NULL, NULL, false, 0},
    {NULL, "no object", NULL, NULL, false, 0},
    {NULL, "{'w':1}", NULL, NULL, false, 0},
    {NULL, "", "c1 read {}", NULL, false, 0},
    {NULL, "", "c1 nothing {}", NULL, false, 0},
    {NULL, "so far", NULL, "{'finish_reason':'pause'}", false, 0},
    {NULL, "", "c1 final_result {'w':1}", NULL, false, 0},
    {NULL, "", "c1 final_result {'v':1,'outcome':'loop_back','verdict':'proceed'}", NULL, false, 0},
    {NULL, "",
     "c1 __planning__ {'type':'tool_calls','calls':[{'tool_name':'read','arguments':{},'on_failure':'continue'}]}",
     NULL, false, 0},
    {NULL, "", "c1 __planning__ {'type':'tool_calls','calls':[{'tool_name':'nothing','arguments':{}}]}", NULL, false,
     0},
    {NULL, "{'v':1}", NULL, NULL, false, 0},
    {NULL, "{'v':1,'outcome':'confirm'}", NULL, NULL, false, 0},
    {NULL, "{'v':1,'confidence':0.01,'clarification_question':'which?'}", NULL, NULL, false, 0},
};

/* Mostly what it likes, else anything. */
static bool say(struct drive *d, const struct drive_call *c, struct drive_said *out)
{
    struct model *m = d->answer_self;

    *out = said[0];
    if (c->kind == RV_EFFECT_CALL_TOOL)
        out->reply = chance(m, 60) ? "!E:no" : "{}";
    else if (c->kind == RV_EFFECT_CALL_HOOK)
        out->reply = chance(m, 80)                  ? ""
                     : strcmp(c->name, "x.bm") == 0 ? "{'action':'answer','reply':{'output':{'v':3}}}"
                                                    : "{'action':'replace','reply':{'output':{'w':2}}}";
    else
        *out = said[chance(m, 45) ? (m->mood + c->attempt) % (int)RV_COUNT(said) : pick(m, RV_COUNT(said))];
    return true;
}

static const struct drive_tool tools[] = {{"read", RV_RISK_READ_ONLY, NULL, NULL, 0}};

static void check_one(struct model *m, const char *yaml)
{
    json_object *files = json_object_new_object();
    struct rv_proof proof = {0};

    json_object_object_add(files, "inner.yaml", json_object_new_string(inner));
    struct drive *d = drive_new_of(yaml, files, tools, RV_COUNT(tools));
    json_object_put(files);
    d->opts.saves = RV_SAVES_NONE;
    d->say = say;
    d->answer_self = m;
    drive_envelope(d, NULL);
    ck_assert_int_eq(rv_pipeline_prove(d->p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    drive_run(d);
    ck_assert_msg((int64_t)d->n_llm <= proof.max_llm_calls, "%zu model calls, %d proved for\n%s\n%s", d->n_llm,
                  (int)proof.max_llm_calls, yaml, drive_story(d));
    ck_assert_int_le((int64_t)d->n_visits, proof.max_visits);
    bool asked = rv_run_status(d->run) == RV_RUN_INTERRUPTED;
    ck_assert_msg(!asked || rv_pipeline_max_answers(d->p) > 0, "it asks, and cannot:\n%s\n%s", yaml, drive_story(d));
    m->n_asked += asked;
    m->n_silent += rv_pipeline_max_answers(d->p) == 0;
    m->n_reached += (int64_t)d->n_llm == proof.max_llm_calls;
    m->n_twice += (int64_t)d->n_llm == proof.max_llm_calls && strstr(rv_buf_cstr(&d->lines), "contradicts its outcome");
    rv_proof_fini(&proof);
    drive_free(d);
}

START_TEST(no_model_makes_more_calls_than_are_proved)
{
    struct model m = {0};
    rv_buf yaml = RV_BUF_INIT(1 << 16);
    int n = rv_kit_sample(200, 10000);

    m.rand = rv_rand_seeded(&m.state, 4100u + (uint64_t)_i);
    for (int i = 0; i < n; i++) {
        write_pipeline(&m, &yaml);
        ck_assert_int_eq(rv_buf_check(&yaml, "yaml", NULL), 0);
        for (m.mood = 0; m.mood < (int)RV_COUNT(said); m.mood += 1 + pick(&m, 4))
            check_one(&m, rv_buf_cstr(&yaml));
    }
    ck_assert_msg(m.n_reached > n / 10 && m.n_twice >= n / 100 && m.n_asked > n / 10 && m.n_silent > n / 10,
                  "%d as many as proved, %d of them asked twice; %d wait, %d cannot ask", m.n_reached, m.n_twice,
                  m.n_asked, m.n_silent);
    rv_buf_fini(&yaml);
}
END_TEST

TCase *model_calls_case(void)
{
    TCase *tc = tcase_create("model_calls");

    tcase_add_loop_test(tc, no_model_makes_more_calls_than_are_proved, 0, SEEDS);
    return tc;
}
