/* The words of a look, the order of its rows, and it as JSON. */
#include "coreengine/app/top/top_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const sorts[] = {
    [RV_APP_TOP_BY_STATE] = "state",   [RV_APP_TOP_BY_AGE] = "age",     [RV_APP_TOP_BY_COST] = "cost",
    [RV_APP_TOP_BY_TOKENS] = "tokens", [RV_APP_TOP_BY_CALLS] = "calls", [RV_APP_TOP_BY_PIPELINE] = "pipeline",
};
RV_EACH_HAS_ROW(sorts, RV_N_APP_TOP_SORTS);

const char *rv_app_top_sort_text(enum rv_app_top_sort sort)
{
    return sorts[sort];
}

static const char *wait_text(enum rv_app_top_wait wait)
{
    static const char *const words[] = {
        [RV_APP_TOP_NOTHING] = "",    [RV_APP_TOP_WORKER] = "worker", [RV_APP_TOP_MODEL] = "model",
        [RV_APP_TOP_TOOL] = "tool",   [RV_APP_TOP_HOOK] = "hook",     [RV_APP_TOP_ANSWER] = "answer",
        [RV_APP_TOP_OWNER] = "owner",
    };
    RV_EACH_HAS_ROW(words, RV_N_APP_TOP_WAITS);
    return words[wait];
}

/* --- order --- */

static int64_t tokens_of(const struct rv_app_top_row *r)
{
    return r->used.input_tokens + r->used.output_tokens;
}

static int by_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* The oldest first, and no two runs are equal. */
static int by_age(const void *a, const void *b)
{
    const struct rv_app_top_row *x = a, *y = b;
    int order = by_number(x->created_us, y->created_us);

    return order ? order : strcmp(x->id, y->id);
}

static int rank_of(enum rv_run_status status)
{
    return status == RV_RUN_INTERRUPTED ? 0 : status == RV_RUN_RUNNING ? 1 : 2;
}

static int by_state(const void *a, const void *b)
{
    const struct rv_app_top_row *x = a, *y = b;
    int order = rank_of(x->status) - rank_of(y->status);

    return order ? order : by_age(a, b);
}

static int by_cost(const void *a, const void *b)
{
    const struct rv_app_top_row *x = a, *y = b;
    int order = by_number(y->used.cost_micro_usd, x->used.cost_micro_usd);

    return order ? order : by_age(a, b);
}

static int by_tokens(const void *a, const void *b)
{
    int order = by_number(tokens_of(b), tokens_of(a));

    return order ? order : by_age(a, b);
}

static int by_calls(const void *a, const void *b)
{
    const struct rv_app_top_row *x = a, *y = b;
    int order = by_number(y->llm_calls, x->llm_calls);

    return order ? order : by_age(a, b);
}

static int by_pipeline(const void *a, const void *b)
{
    const struct rv_app_top_row *x = a, *y = b;
    int order = strcmp(x->pipeline, y->pipeline);

    return order ? order : by_age(a, b);
}

void top_sort(struct rv_app_top_row *rows, size_t n, enum rv_app_top_sort sort)
{
    static int (*const orders[])(const void *, const void *) = {
        [RV_APP_TOP_BY_STATE] = by_state,   [RV_APP_TOP_BY_AGE] = by_age,     [RV_APP_TOP_BY_COST] = by_cost,
        [RV_APP_TOP_BY_TOKENS] = by_tokens, [RV_APP_TOP_BY_CALLS] = by_calls, [RV_APP_TOP_BY_PIPELINE] = by_pipeline,
    };

    if (n > 0)
        qsort(rows, n, sizeof *rows, orders[sort]);
}

/* --- JSON --- */

static void write_time(rv_jw *w, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    if (us <= 0)
        return;
    rv_time_format(us, text);
    rv_jw_kv_text(w, key, text);
}

static void write_wait(const struct rv_app_top_row *r, rv_jw *w)
{
    if (r->waits == RV_APP_TOP_NOTHING)
        return;
    rv_jw_key(w, "waits_for");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", wait_text(r->waits));
    if (r->name[0])
        rv_jw_kv_text(w, "name", r->name);
    if (r->text[0])
        rv_jw_kv_text(w, "text", r->text);
    if (r->n > 0)
        rv_jw_kv_int(w, "count", (int64_t)r->n);
    write_time(w, "since", r->since_us);
    write_time(w, "expires_at", r->expires_us);
    rv_jw_obj_end(w);
}

static void write_used(int64_t llm_calls, const struct rv_usage *used, rv_jw *w)
{
    rv_jw_kv_int(w, "llm_calls", llm_calls);
    rv_jw_kv_int(w, "input_tokens", used->input_tokens);
    rv_jw_kv_int(w, "output_tokens", used->output_tokens);
    rv_jw_kv_int(w, "cost_micro_usd", used->cost_micro_usd);
}

static void write_row(const struct rv_app_top_row *r, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", r->id);
    rv_jw_kv_text(w, "pipeline", r->pipeline);
    rv_jw_kv_text(w, "status", rv_run_status_text(r->status));
    rv_jw_kv_text(w, "stage", r->stage);
    rv_jw_kv_text(w, "user", r->user);
    rv_jw_kv_text(w, "session", r->session);
    write_time(w, "created_at", r->created_us);
    write_time(w, "updated_at", r->updated_us);
    if (r->cancel_requested)
        rv_jw_kv_bool(w, "cancel_requested", true);
    write_wait(r, w);
    if (r->is_damaged)
        rv_jw_kv_bool(w, "damaged", true);
    if (r->is_read)
        write_used(r->llm_calls, &r->used, w);
    rv_jw_obj_end(w);
}

void rv_app_top_write(const struct rv_app_top_snapshot *look, rv_jw *w)
{
    rv_jw_obj(w);
    write_time(w, "at", look->now_us);
    rv_jw_kv_int(w, "running", (int64_t)look->n_running);
    rv_jw_kv_int(w, "ready", (int64_t)look->n_ready);
    rv_jw_kv_int(w, "waiting", (int64_t)look->n_waiting);
    rv_jw_kv_bool(w, "more", look->more);
    write_used(look->llm_calls, &look->used, w);
    rv_jw_key(w, "rates");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "span_ms", look->rates.span_us / RV_US_PER_MS);
    rv_jw_kv_int(w, "runs_ended", look->rates.n_ended);
    rv_jw_kv_int(w, "tokens", look->rates.tokens);
    rv_jw_kv_int(w, "cost_micro_usd", look->rates.cost_micro_usd);
    if (look->rates.is_partial)
        rv_jw_kv_bool(w, "partial", true);
    rv_jw_obj_end(w);
    rv_jw_key(w, "runs");
    rv_jw_arr(w);
    for (size_t i = 0; i < look->n; i++)
        write_row(&look->rows[i], w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}
