/* What is proved of a pipeline: how far a run can go, and what it can cost at most, or what is missing to know it. */
#include "coreengine/app/check.h"

#include "coreengine/app/rows.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MICRO   1000000 /* millionths of a dollar */
#define MAX_WHY 512     /* bytes of a reason: names of RV_MAX_STAGE_NAME fit; longer ones are cut in it */

static void why_not(const struct rv_llm_bound *bound, char out[MAX_WHY], const char **hint)
{
    if (bound->state == RV_LLM_BOUND_NO_PRICE) {
        snprintf(out, MAX_WHY, "what model \"%.200s\" costs is not known", bound->role);
        *hint = "say it, in US dollars for a million tokens: price: {input: 0.4, output: 1.6}";
    } else {
        snprintf(out, MAX_WHY, "how long a request to model \"%.200s\" can be is not known", bound->role);
        *hint = "give it max_request_bytes, or the pipeline a budget";
    }
}

static void add_calls(const struct rv_llm_bound *bound, rv_buf *b)
{
    rv_app_write_count(b, bound->max_calls);
    rv_buf_printf(b, " model call%s, %sat most ", bound->max_calls == 1 ? "" : "s",
                  bound->max_calls == 1 ? "" : "each ");
    if (bound->attempts > 1)
        rv_buf_printf(b, "%" PRId64 " requests of ", bound->attempts);
    rv_app_write_count(b, bound->request_size);
    rv_buf_puts(b, bound->is_window ? " tokens" : " bytes");
    rv_buf_puts(b, bound->attempts > 1 ? " and replies of " : " of request and ");
    rv_app_write_count(b, bound->reply_tokens);
    rv_buf_puts(b, bound->attempts > 1 ? " tokens" : " tokens of reply");
    if (bound->has_fallbacks)
        rv_buf_puts(b, ", fallbacks besides");
}

void rv_app_write_cost(const struct rv_llm_bound *bound, rv_buf *b)
{
    char text[RV_APP_MAX_MONEY], why[MAX_WHY];
    const char *hint = NULL;

    if (bound->state != RV_LLM_BOUND_PROVED) {
        why_not(bound, why, &hint);
        rv_buf_printf(b, "  cost: not bounded: %s; %s\n", why, hint);
        return;
    }
    if (!bound->role && !bound->is_budget)
        return;
    rv_buf_printf(b, "  cost: at most %s", rv_app_format_money(bound->cost_micro_usd, text));
    if (bound->is_budget) {
        rv_buf_puts(b, ", which is the budget of the run, with its answers and resumes");
    } else {
        rv_buf_puts(b, " (");
        add_calls(bound, b);
        rv_buf_puts(b, "); each resume after a crash can repeat the calls under way");
    }
    rv_buf_putc(b, '\n');
}

static void cost_json(const struct rv_llm_bound *bound, rv_jw *w)
{
    char why[MAX_WHY];
    const char *hint = NULL;

    rv_jw_key(w, "max_cost_micro_usd");
    if (bound->state == RV_LLM_BOUND_PROVED && bound->cost_micro_usd < INT64_MAX) {
        rv_jw_int(w, bound->cost_micro_usd);
        rv_jw_kv_bool(w, "max_cost_is_budget", bound->is_budget);
        return;
    }
    rv_jw_null(w);
    if (bound->state != RV_LLM_BOUND_PROVED) {
        why_not(bound, why, &hint);
        rv_jw_kv_text(w, "max_cost_missing", why);
    }
}

bool rv_app_cost_check(const struct rv_pipeline *p, const struct rv_llm_bound *bound, double max_usd, const char *limit,
                       rv_findings *findings)
{
    struct rv_src src = {p->file, 1, 1};
    char text[RV_APP_MAX_MONEY], why[MAX_WHY];
    const char *hint = NULL;

    if (bound->state != RV_LLM_BOUND_PROVED) {
        why_not(bound, why, &hint);
        rv_findings_add(findings, RV_SEVERITY_ERROR, &src, hint, "what a run costs has no bound: %s", why);
        return true;
    }
    if ((double)bound->cost_micro_usd <= max_usd * MICRO * (1 + 4 * DBL_EPSILON)) /* 0.57 is a little less */
        return false;
    rv_findings_add(
        findings, RV_SEVERITY_ERROR, &src, "give it a budget, or lower max_llm_calls, max_tokens or max_request_bytes",
        "a run can cost %s, which is more than %s allows", rv_app_format_money(bound->cost_micro_usd, text), limit);
    return true;
}

int rv_app_prove(const struct rv_pipeline *p, int64_t answers, struct rv_app_proved *out, rv_err **err)
{
    int mode = p->default_run_mode == RV_MODE_PARALLEL ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL;
    int rc = rv_pipeline_prove(p, (enum rv_run_mode)mode, &out->part, err);

    if (rc < 0)
        return rc;
    out->answers = rv_pipeline_max_answers(p);
    out->answers = answers < out->answers ? answers : out->answers;
    out->whole = rv_proof_with_answers(p, &out->part, out->answers);
    rv_llm_prove_cost(p, out->whole.max_llm_calls, &out->cost);
    return 0;
}

void rv_app_proved_write(const struct rv_pipeline *p, const struct rv_app_proved *proved, rv_jw *w)
{
    const struct rv_proof *proof = &proved->part;

    rv_jw_key(w, "bounds");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "max_visits", proof->max_visits);
    rv_jw_kv_bool(w, "max_visits_exact", proof->visits_exact);
    rv_jw_kv_int(w, "max_mocked_visits", proof->max_mocked_visits);
    rv_jw_kv_int(w, "max_llm_calls", proof->max_llm_calls);
    rv_jw_kv_bool(w, "max_llm_calls_exact", proof->llm_exact);
    rv_jw_kv_int(w, "max_questions", proof->max_questions);
    rv_jw_key(w, "visits_path");
    rv_jw_arr(w);
    for (size_t i = 0; i < proof->n_visits_path; i++)
        rv_jw_text(w, p->agents[proof->visits_path[i]].name);
    rv_jw_arr_end(w);
    rv_jw_key(w, "llm_path");
    rv_jw_arr(w);
    for (size_t i = 0; i < proof->n_llm_path; i++)
        rv_jw_text(w, p->agents[proof->llm_path[i]].name);
    rv_jw_arr_end(w);
    rv_jw_kv_int(w, "answers", proved->answers);
    rv_jw_kv_int(w, "max_visits_with_answers", proved->whole.max_visits);
    rv_jw_kv_int(w, "max_llm_calls_with_answers", proved->whole.max_llm_calls);
    cost_json(&proved->cost, w);
    rv_jw_obj_end(w);
}
