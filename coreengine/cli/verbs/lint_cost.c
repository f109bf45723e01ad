/* What lint says about money: what a run can cost at most, or what is missing to know it. */
#include "coreengine/cli/verbs/lint_cost.h"

#include "coreengine/cli/cli.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MICRO   1000000
#define MAX_WHY 512

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
    rv_cli_write_count(b, bound->max_calls);
    rv_buf_printf(b, " model call%s, %sat most ", bound->max_calls == 1 ? "" : "s",
                  bound->max_calls == 1 ? "" : "each ");
    if (bound->attempts > 1)
        rv_buf_printf(b, "%" PRId64 " requests of ", bound->attempts);
    rv_cli_write_count(b, bound->request_size);
    rv_buf_puts(b, bound->is_window ? " tokens" : " bytes");
    rv_buf_puts(b, bound->attempts > 1 ? " and replies of " : " of request and ");
    rv_cli_write_count(b, bound->reply_tokens);
    rv_buf_puts(b, bound->attempts > 1 ? " tokens" : " tokens of reply");
    if (bound->has_fallbacks)
        rv_buf_puts(b, ", fallbacks besides");
}

void rv_lint_cost_text(const struct rv_llm_bound *bound, rv_buf *b)
{
    char text[RV_CLI_MAX_MONEY], why[MAX_WHY];
    const char *hint = NULL;

    if (bound->state != RV_LLM_BOUND_PROVED) {
        why_not(bound, why, &hint);
        rv_buf_printf(b, "  cost: not bounded: %s; %s\n", why, hint);
        return;
    }
    if (!bound->role && !bound->is_budget)
        return;
    rv_buf_printf(b, "  cost: at most %s", rv_cli_money(bound->cost_micro_usd, text));
    if (bound->is_budget) {
        rv_buf_puts(b, ", which is the budget of the run, with its answers and resumes");
    } else {
        rv_buf_puts(b, " (");
        add_calls(bound, b);
        rv_buf_puts(b, "); each resume after a crash can repeat the calls under way");
    }
    rv_buf_putc(b, '\n');
}

void rv_lint_cost_json(const struct rv_llm_bound *bound, rv_jw *w)
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

bool rv_lint_max_cost(const char *text, double *out)
{
    json_object *value = NULL;
    bool is_good = rv_json_parse(rv_str_of(text), NULL, &value, NULL) == 0 && rv_json_is_number(value) &&
                   json_object_get_double(value) >= 0;

    if (is_good)
        *out = json_object_get_double(value);
    json_object_put(value);
    return is_good;
}

bool rv_lint_cost_check(const struct rv_pipeline *p, const struct rv_llm_bound *bound, double max_usd,
                        rv_findings *findings)
{
    struct rv_src src = {p->file, 1, 1};
    char text[RV_CLI_MAX_MONEY], why[MAX_WHY];
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
        "a run can cost %s, which is more than --max-cost allows", rv_cli_money(bound->cost_micro_usd, text));
    return true;
}
