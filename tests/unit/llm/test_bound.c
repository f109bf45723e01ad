/* The proof of what a run can cost. A token of input is a byte at least, and HIDDEN of them nobody sees. */
#include "coreengine/model/llm/llm.h"

#include <stdlib.h>

#include "tests/kit/kit.h"
#include "tests/unit/llm/suites.h"

#define HIDDEN   1024 /* as in money.c */
#define PRICE    "price: {input: 1, output: 2}"
#define ATTACHED "agents:\n  - {name: s, has_llm: true, model_role: a, attachments: [metadata.picture]}\n"
#define STAGE    "agents:\n  - {name: s, has_llm: true, model_role: a}\n"

static const struct {
    const char *text;
    enum rv_llm_bound_state state;
    int64_t calls, cost; /* micro-USD; a price of 1 USD for a million tokens is 1 for a token */
    const char *role;
    bool is_budget;
} cases[] = {
    {"models: {a: {model: 'p:m', " PRICE ", max_request_bytes: 5000, max_attempts: 1}}\n" STAGE, RV_LLM_BOUND_PROVED,
     10, 10 * (5000 + HIDDEN + 2 * 2000), "a", false},
    /* every attempt may be charged for, and there are three unless said */
    {"models: {a: {model: 'p:m', " PRICE ", max_request_bytes: 5000}}\n" STAGE, RV_LLM_BOUND_PROVED, 10,
     10 * 3 * (5000 + HIDDEN + 2 * 2000), "a", false},
    /* with a budget nothing is repeated that was charged for, and it may be the lower bound */
    {"budget: {usd: 1}\nmodels: {a: {model: 'p:m', " PRICE ", max_request_bytes: 5000}}\n" STAGE, RV_LLM_BOUND_PROVED,
     10, 10 * (5000 + HIDDEN + 2 * 2000), "a", false},
    {"budget: {usd: 0.01}\nmodels: {a: {model: 'p:m', " PRICE ", max_request_bytes: 5000}}\n" STAGE,
     RV_LLM_BOUND_PROVED, 10, 10000, "a", true},
    {"budget: {usd: 0.01}\nmodels: {a: {model: 'p:m', " PRICE "}}\n" STAGE, RV_LLM_BOUND_PROVED, 10, 10000, "a", true},
    /* the longest reply: of the stage, of the model, or 2000 */
    {"models: {a: {model: 'p:m', " PRICE ", max_request_bytes: 1, max_attempts: 1, max_tokens: 7}}\n" STAGE,
     RV_LLM_BOUND_PROVED, 1, 1 + HIDDEN + 2 * 7, "a", false},
    {"models: {a: {model: 'p:m', " PRICE ", max_request_bytes: 1, max_attempts: 1, max_tokens: 7}}\n"
     "agents:\n  - {name: s, has_llm: true, model_role: a, max_tokens: 9}\n",
     RV_LLM_BOUND_PROVED, 1, 1 + HIDDEN + 2 * 9, "a", false},
    /* the dearest of two stages */
    {"models: {a: {model: 'p:m', " PRICE ", max_request_bytes: 1, max_attempts: 1}, b: {model: 'p:m', max_attempts: 1, "
     "price: {input: 3, cache_write: 4, output: 0}, max_request_bytes: 5000}}\n"
     "agents:\n  - {name: s, has_llm: true, model_role: b}\n  - {name: t, has_llm: true, model_role: a}\n",
     RV_LLM_BOUND_PROVED, 2, 2 * 4 * (5000 + HIDDEN), "b", false},
    /* a call may be charged for by the model and each of its fallbacks; with a budget by one of them */
    {"models: {a: {model: 'p:m', " PRICE ", max_request_bytes: 1, max_attempts: 1, fallback: [b]}, b: {model: 'p:m', "
     "max_attempts: 2, price: {input: 5, output: 0}, max_request_bytes: 1, fallback: [c]}, c: 'p:m'}\n" STAGE,
     RV_LLM_BOUND_PROVED, 1, (1 + HIDDEN + 2 * 2000) + 2 * 5 * (1 + HIDDEN), "b", false},
    {"budget: {usd: 1}\nmodels: {a: {model: 'p:m', " PRICE ", max_request_bytes: 1, fallback: [b]}, b: {model: 'p:m', "
     "price: {input: 5, output: 0}, max_request_bytes: 1}}\n" STAGE,
     RV_LLM_BOUND_PROVED, 1, 5 * (1 + HIDDEN), "b", false},
    /* what a model can take in bounds a request, if that is less */
    {"models: {a: {model: 'openai:gpt-4o', max_attempts: 1}}\n" STAGE, RV_LLM_BOUND_PROVED, 1,
     (128000 + HIDDEN) * 5 / 2 + 20000, "a", false},
    {"models: {a: {model: 'openai:gpt-4o', max_attempts: 1, max_request_bytes: 128001}}\n" STAGE, RV_LLM_BOUND_PROVED,
     1, (128000 + HIDDEN) * 5 / 2 + 20000, "a", false},
    /* the bytes of pictures do not tell their tokens: only the window bounds a request with attachments */
    {"models: {a: {model: 'openai:gpt-4o', max_attempts: 1, max_request_bytes: 5}}\n" ATTACHED, RV_LLM_BOUND_PROVED, 1,
     (128000 + HIDDEN) * 5 / 2 + 20000, "a", false},
    {"models: {a: {model: 'p:m', " PRICE ", max_request_bytes: 5000}}\n" ATTACHED, RV_LLM_BOUND_NO_LENGTH, 1, 0, "a",
     false},
    /* what is missing */
    {"models: {a: 'p:m'}\n" STAGE, RV_LLM_BOUND_NO_PRICE, 1, 0, "a", false},
    {"models: {a: {model: 'p:m', " PRICE "}}\n" STAGE, RV_LLM_BOUND_NO_LENGTH, 1, 0, "a", false},
    {"models: {a: {model: 'p:m', " PRICE ", max_request_bytes: 1, fallback: [b]}, b: 'p:m'}\n" STAGE,
     RV_LLM_BOUND_NO_PRICE, 1, 0, "b", false},
    /* what costs nothing */
    {"models: {a: 'p:m'}\n" STAGE, RV_LLM_BOUND_PROVED, 0, 0, NULL, false},
    {"models: {a: scripted}\n" STAGE, RV_LLM_BOUND_PROVED, 5, 0, NULL, false},
    {"models: {a: 'ollama:m'}\n" STAGE, RV_LLM_BOUND_PROVED, 5, 0, "a", false},
    {"models: {a: 'p:m'}\nagents:\n  - {name: s, has_llm: true, model_role: a, mock: true, mock_handler: c.m}\n",
     RV_LLM_BOUND_PROVED, 5, 0, NULL, false},
    {"models: {a: {model: scripted, " PRICE ", max_request_bytes: 1}}\n" STAGE, RV_LLM_BOUND_PROVED, 1,
     1 + HIDDEN + 2 * 2000, "a", false},
    {"models: {a: {model: 'p:m', max_request_bytes: 1000000000, price: {input: 1000000, output: 1000000}}}\n" STAGE,
     RV_LLM_BOUND_PROVED, INT64_MAX, INT64_MAX, "a", false},
};

/* Proves 12.4/proof: `lint` proves the most that a run can cost, or says what is missing */
START_TEST(a_run_costs_no_more_than_all_its_calls_at_their_worst)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    struct rv_llm_bound bound;
    rv_buf text = RV_BUF_INIT(1 << 16);

    rv_buf_printf(&text, "name: x\n%s", cases[_i].text);
    ck_assert_int_eq(rv_pipeline_parse(rv_buf_str(&text), "t.yaml", ".", findings, &p, NULL), 0);
    ck_assert(p && p->is_sound);
    rv_llm_prove_cost(p, cases[_i].calls, &bound);
    ck_assert_int_eq(bound.state, cases[_i].state);
    if (bound.state == RV_LLM_BOUND_PROVED)
        ck_assert_int_eq(bound.cost_micro_usd, cases[_i].cost);
    ck_assert_pstr_eq(bound.role, cases[_i].role);
    ck_assert_int_eq(bound.is_budget, cases[_i].is_budget);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    rv_buf_fini(&text);
}
END_TEST

TCase *bound_case(void)
{
    TCase *tc = tcase_create("bound");

    tcase_add_loop_test(tc, a_run_costs_no_more_than_all_its_calls_at_their_worst, 0, RV_COUNT(cases));
    return tc;
}
