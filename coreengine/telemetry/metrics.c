/* Metrics: counters and histograms with a bounded number of series, fed by events. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/telemetry/telemetry_internal.h"

static const double buckets_COARSE[] = {0.1, 0.5, 1, 2, 5, 10, 30, 60};
static const double buckets_FINE[] = {0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10};
static const double buckets_GENAI[] = {0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                       1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
static const double buckets_TOKENS[] = {1,     4,     16,     64,      256,     1024,     4096,
                                        16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864};
static const double buckets_HTTP[] = {0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10};
#define buckets_NONE NULL
#define N_OF_NONE    0 /* a counter has no buckets */
#define N_OF_COARSE  RV_COUNT(buckets_COARSE)
#define N_OF_FINE    RV_COUNT(buckets_FINE)
#define N_OF_GENAI   RV_COUNT(buckets_GENAI)
#define N_OF_TOKENS  RV_COUNT(buckets_TOKENS)
#define N_OF_HTTP    RV_COUNT(buckets_HTTP)

const struct metric_kind telemetry_metric_kinds[RV_N_METRICS] = {
#define X(id, text, u, b, l, h)                                                                                        \
    {.name = (text), .unit = (u), .labels = (l), .help = (h), .bounds = buckets_##b, .n_bounds = N_OF_##b},
    RV_METRICS(X)
#undef X
};

#define OTHER "other" /* the value of labels of series for which there is no room */

/* --- series --- */

size_t telemetry_metric_n_labels(const struct metric_kind *kind)
{
    size_t n = kind->labels[0] != 0;

    for (const char *p = kind->labels; *p; p++)
        n += *p == ' ';
    return n;
}

rv_str telemetry_metric_label(const struct metric_kind *kind, size_t i)
{
    const char *p = kind->labels;

    for (; i > 0; i--)
        p = strchr(p, ' ') + 1;
    return (rv_str){p, strcspn(p, " ")};
}

const char *telemetry_metric_value(const struct series *s, size_t i)
{
    const char *p = s->values;

    for (; i > 0; i--)
        p += strlen(p) + 1;
    return p;
}

int rv_metrics_new(enum rv_semconv names, int64_t now_us, rv_metrics **out, rv_err **err)
{
    rv_metrics *m = calloc(1, sizeof *m);

    if (!m)
        return RV_FAIL(err, RV_E_NOMEM, "make room for metrics");
    m->names = names;
    m->start_us = now_us;
    *out = m;
    return 0;
}

void rv_metrics_free(rv_metrics *m)
{
    for (size_t k = 0; m && k < RV_N_METRICS; k++) {
        for (size_t i = 0; i < m->of[k].n; i++)
            free(m->of[k].series[i].values);
        free(m->of[k].series);
    }
    free(m);
}

/* The values of all labels, each with a NUL behind it, in a buffer that has room. */
static size_t pack(const struct metric_kind *kind, const char *const *labels, char *out)
{
    size_t n = 0, n_labels = telemetry_metric_n_labels(kind);

    for (size_t i = 0; i < n_labels; i++) {
        rv_str value = rv_utf8_cut(rv_str_of(labels ? labels[i] : OTHER), RV_METRIC_MAX_VALUE);
        if (!rv_utf8_valid(value, NULL))
            value = RV_STR_LIT(OTHER);
        if (value.len > 0)
            memcpy(out + n, value.ptr, value.len);
        n += value.len;
        out[n++] = 0;
    }
    return n;
}

static struct series *find(rv_metrics *m, enum rv_metric metric, const char *values, size_t n)
{
    for (size_t i = 0; i < m->of[metric].n; i++) {
        struct series *s = &m->of[metric].series[i];
        const char *last = telemetry_metric_value(s, telemetry_metric_n_labels(&telemetry_metric_kinds[metric]));
        if ((size_t)(last - s->values) == n && memcmp(s->values, values, n) == 0)
            return s;
    }
    return NULL;
}

/* NULL: no memory. labels NULL: the series for all that have no other. */
static struct series *series_of(rv_metrics *m, enum rv_metric metric, const char *const *labels)
{
    const struct metric_kind *kind = &telemetry_metric_kinds[metric];
    char values[RV_METRIC_MAX_LABELS * (RV_METRIC_MAX_VALUE + 1) + 1];
    size_t n = pack(kind, labels, values);
    struct series *s = find(m, metric, values, n);

    if (s)
        return s;
    if (labels && m->of[metric].n >= RV_METRIC_MAX_SERIES - 1)
        return series_of(m, metric, NULL);
    if (!rv_has_room(&m->of[metric].series, &m->of[metric].cap, m->of[metric].n + 1, sizeof *s))
        return NULL;
    char *copy = malloc(n + 1);
    if (!copy)
        return NULL;
    memcpy(copy, values, n);
    copy[n] = 0;
    s = &m->of[metric].series[m->of[metric].n++];
    *s = (struct series){.values = copy};
    return s;
}

void rv_metrics_add(rv_metrics *m, enum rv_metric metric, const char *const *labels, double amount)
{
    const struct metric_kind *kind = &telemetry_metric_kinds[metric];
    struct series *s = isfinite(amount) && amount >= 0 ? series_of(m, metric, labels) : NULL;
    size_t at = 0;

    if (!s) /* a count is lost rather than a run */
        return;
    s->sum += amount;
    s->count++;
    while (at < kind->n_bounds && amount > kind->bounds[at])
        at++;
    s->buckets[at]++;
}

/* --- events --- */

#define ADD(m, metric, amount, ...) rv_metrics_add((m), (metric), (const char *const[]){__VA_ARGS__}, (amount))

static double seconds(json_object *event, const char *member)
{
    return (double)telemetry_event_int(event, member) / 1000;
}

static void count_tokens(rv_metrics *m, json_object *event, const char *provider, const char *model)
{
    int64_t input = telemetry_event_int(event, "input_tokens"), output = telemetry_event_int(event, "output_tokens");

    if (!json_object_object_get_ex(event, "input_tokens", NULL))
        return;
    if (m->names == RV_SEMCONV_DRAFT) {
        ADD(m, RV_METRIC_GENAI_INPUT, (double)input, provider, model, "unknown");
        ADD(m, RV_METRIC_GENAI_OUTPUT, (double)output, provider, model, "unknown");
        return;
    }
    ADD(m, RV_METRIC_GENAI_TOKENS, (double)input, "chat", provider, model, "input");
    ADD(m, RV_METRIC_GENAI_TOKENS, (double)output, "chat", provider, model, "output");
}

/* What the result of a call says; the model is told by its start. */
static void count_model(rv_metrics *m, json_object *event, const char *spec)
{
    const char *status = telemetry_event_text(event, "status"), *error = telemetry_event_text(event, "error_kind");
    struct model_name name = telemetry_model_name("", spec);
    char provider[RV_METRIC_MAX_VALUE], model[RV_METRIC_MAX_VALUE];
    bool failed = strcmp(status, "success") != 0, is_timed = json_object_object_get_ex(event, "latency_ms", NULL);

    snprintf(provider, sizeof provider, "%.*s", RV_STR_ARG(rv_utf8_cut(name.provider, sizeof provider - 1)));
    snprintf(model, sizeof model, "%.*s", RV_STR_ARG(rv_utf8_cut(name.model, sizeof model - 1)));
    error = !failed ? "" : *error ? error : "_OTHER";
    ADD(m, RV_METRIC_MODEL_CALLS, 1, provider, model, status);
    count_tokens(m, event, provider, model);
    if (!is_timed)
        return;
    ADD(m, RV_METRIC_MODEL_TIME, seconds(event, "latency_ms"), provider, model);
    if (m->names == RV_SEMCONV_DRAFT)
        ADD(m, RV_METRIC_GENAI_INFERENCE, seconds(event, "latency_ms"), provider, model, error);
    else
        ADD(m, RV_METRIC_GENAI_TIME, seconds(event, "latency_ms"), "chat", provider, model, error);
    if (m->names == RV_SEMCONV_1_41 && json_object_object_get_ex(event, "first_token_ms", NULL))
        ADD(m, RV_METRIC_GENAI_FIRST, seconds(event, "first_token_ms"), provider, model);
}

void rv_metrics_add_event(rv_metrics *m, const struct rv_metrics_run *run, json_object *event)
{
    const char *type = NULL;
    int64_t time_us = 0;

    if (!telemetry_event_is(event, &type, &time_us))
        return;
    const char *status = telemetry_event_text(event, "status"), *tool = telemetry_event_text(event, "tool");
    if (strcmp(type, "llm_result") == 0) {
        count_model(m, event, run->model);
    } else if (strcmp(type, "tool_result") == 0 && !json_object_object_get_ex(event, "structured", NULL)) {
        ADD(m, RV_METRIC_TOOL_CALLS, 1, tool, status);
        if (json_object_object_get_ex(event, "execution_time_ms", NULL))
            ADD(m, RV_METRIC_TOOL_TIME, seconds(event, "execution_time_ms"), tool);
    } else if (strcmp(type, "stage_completed") == 0 || strcmp(type, "agent_completed") == 0) {
        const char *agent = telemetry_event_text(event, *type == 's' ? "stage" : "agent");
        ADD(m, RV_METRIC_STAGES, 1, agent, status);
        ADD(m, RV_METRIC_STAGE_TIME, seconds(event, "duration_ms"), agent);
    } else if (strcmp(type, "done") == 0) {
        ADD(m, RV_METRIC_PIPELINES, 1, run->pipeline, status);
        if (run->start_us > 0 && time_us >= run->start_us)
            ADD(m, RV_METRIC_PIPELINE_TIME, (double)(time_us - run->start_us) / 1e6, run->pipeline);
    }
}
