/* Metrics: series, their bounds, and the two forms of text. */
#include <math.h>
#include <stdio.h>

#include "coreengine/telemetry/telemetry.h"
#include "tests/unit/telemetry/suites.h"

static void tell(rv_metrics *m, const struct rv_metrics_run *run, const char *line)
{
    json_object *event = rv_telemetry_parse_event(rv_str_of(line));

    rv_metrics_add_event(m, run, event);
    json_object_put(event);
}

static rv_metrics *open_metrics(void)
{
    rv_metrics *m = NULL;

    ck_assert_int_eq(rv_metrics_new(RV_SEMCONV_1_41, 1000000, &m, NULL), 0);
    return m;
}

/* Proves 8.3/histograms: Histograms of durations with fixed buckets */
START_TEST(text_is_what_prometheus_reads)
{
    const char *const labels[] = {"a \"b\" \\\n", "success"}, *const agent[] = {"x"};
    rv_buf plain = RV_BUF_INIT(10000), open = RV_BUF_INIT(10000);
    rv_metrics *m = open_metrics();

    rv_metrics_write_text(m, false, &plain);
    ck_assert_str_eq(rv_buf_cstr(&plain), "");
    rv_metrics_add(m, RV_METRIC_PIPELINES, labels, 1);
    rv_metrics_add(m, RV_METRIC_PIPELINES, labels, 2);
    rv_metrics_add(m, RV_METRIC_STAGE_TIME, agent, 0.05); /* a bound belongs to its bucket */
    rv_metrics_add(m, RV_METRIC_STAGE_TIME, agent, 99);
    rv_metrics_write_text(m, false, &plain);
    rv_metrics_write_text(m, true, &open);
    ck_assert_str_eq(rv_buf_cstr(&plain),
                     "# HELP reeve_pipeline_executions_total Runs that ended, or stopped to wait.\n"
                     "# TYPE reeve_pipeline_executions_total counter\n"
                     "reeve_pipeline_executions_total{pipeline=\"a \\\"b\\\" \\\\\\n\",status=\"success\"} 3\n"
                     "# HELP reeve_agent_duration_seconds Time of visits of stages.\n"
                     "# TYPE reeve_agent_duration_seconds histogram\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"0.01\"} 0\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"0.05\"} 1\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"0.1\"} 1\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"0.5\"} 1\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"1\"} 1\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"2\"} 1\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"5\"} 1\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"10\"} 1\n"
                     "reeve_agent_duration_seconds_bucket{agent=\"x\",le=\"+Inf\"} 2\n"
                     "reeve_agent_duration_seconds_sum{agent=\"x\"} 99.05\n"
                     "reeve_agent_duration_seconds_count{agent=\"x\"} 2\n");
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&open), "# TYPE reeve_pipeline_executions counter\n"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&open), "\nreeve_pipeline_executions_total{"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&open), "le=\"10.0\"} 1\n"));
    ck_assert_str_eq(rv_buf_cstr(&open) + open.len - 6, "# EOF\n");
    rv_buf_fini(&plain);
    rv_buf_fini(&open);
    rv_metrics_free(m);
}
END_TEST

START_TEST(series_are_bounded_and_no_count_is_lost)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_metrics *m = open_metrics();
    char name[300], last[80];
    int lines = 0;

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "tool %d", i);
        rv_metrics_add(m, RV_METRIC_TOOL_CALLS, (const char *const[]){name, "success"}, 1);
    }
    rv_metrics_write_text(m, false, &text);
    for (const char *p = rv_buf_cstr(&text); (p = strchr(p, '\n')); p++)
        lines++;
    ck_assert_int_eq(lines, RV_METRIC_MAX_SERIES + 2);
    snprintf(last, sizeof last, "{tool=\"other\",status=\"other\"} %d\n", 1000 - (RV_METRIC_MAX_SERIES - 1));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), last));
    rv_metrics_free(m);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(what_is_not_a_count_changes_nothing)
{
    const char *const labels[] = {"p", "s"}, *const odd[] = {"\xff", NULL};
    rv_buf text = RV_BUF_INIT(10000);
    rv_metrics *m = open_metrics();

    rv_metrics_add(m, RV_METRIC_PIPELINES, labels, NAN);
    rv_metrics_add(m, RV_METRIC_PIPELINES, labels, INFINITY);
    rv_metrics_add(m, RV_METRIC_PIPELINES, labels, -1);
    tell(m, &(struct rv_metrics_run){.pipeline = "p"}, "not an event");
    rv_metrics_write_text(m, false, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), "");
    rv_metrics_add(m, RV_METRIC_PIPELINES, odd, 1);
    rv_metrics_write_text(m, false, &text);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "{pipeline=\"other\",status=\"\"} 1\n"));
    rv_metrics_free(m);
    rv_buf_fini(&text);
}
END_TEST

static const struct {
    const char *line, *part;
    enum rv_semconv names;
} told[] = {
    {"{\"type\":\"done\",\"time\":\"1970-01-01T00:00:03.500000Z\",\"status\":\"completed\"}",
     "reeve_pipeline_duration_seconds_sum{pipeline=\"p\"} 1.5\n", RV_SEMCONV_1_41},
    {"{\"type\":\"llm_result\",\"time\":\"1970-01-01T00:00:03Z\",\"status\":\"error\",\"error_kind\":\"rate_limited\","
     "\"latency_ms\":20}",
     "gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"openai\","
     "gen_ai_request_model=\"gpt\",error_type=\"rate_limited\"} 1\n",
     RV_SEMCONV_1_41},
    {"{\"type\":\"llm_result\",\"time\":\"1970-01-01T00:00:03Z\",\"status\":\"success\",\"input_tokens\":5,"
     "\"output_tokens\":2}",
     "gen_ai_client_token_usage_sum{gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"openai\","
     "gen_ai_request_model=\"gpt\",gen_ai_token_type=\"output\"} 2\n",
     RV_SEMCONV_1_41},
    {"{\"type\":\"llm_result\",\"time\":\"1970-01-01T00:00:03Z\",\"status\":\"success\",\"input_tokens\":5,"
     "\"output_tokens\":2}",
     "gen_ai_client_inference_usage_input_tokens_total{gen_ai_provider_name=\"openai\",gen_ai_request_model=\"gpt\","
     "gen_ai_token_modality=\"unknown\"} 5\n",
     RV_SEMCONV_DRAFT},
    {"{\"type\":\"tool_result\",\"time\":\"1970-01-01T00:00:03Z\",\"status\":\"success\",\"tool\":\"t\","
     "\"execution_time_ms\":70}",
     "reeve_tool_duration_seconds_sum{tool=\"t\"} 0.07\n", RV_SEMCONV_1_41},
    {"{\"type\":\"agent_completed\",\"time\":\"1970-01-01T00:00:03Z\",\"status\":\"success\",\"stage\":\"s\","
     "\"agent\":\"a\",\"duration_ms\":5}",
     "reeve_agent_executions_total{agent=\"a\",status=\"success\"} 1\n", RV_SEMCONV_1_41},
};
/* Proves 8.3/counters: Counters of pipelines, agents and model calls, with labels */
START_TEST(events_are_counted)
{
    const struct rv_metrics_run run = {.pipeline = "p", .model = "openai:gpt", .start_us = 2000000};
    rv_buf text = RV_BUF_INIT(100000);
    rv_metrics *m = NULL;

    ck_assert_int_eq(rv_metrics_new(told[_i].names, 0, &m, NULL), 0);
    tell(m, &run, told[_i].line);
    rv_metrics_write_text(m, false, &text);
    ck_assert_msg(strstr(rv_buf_cstr(&text), told[_i].part), "%s", rv_buf_cstr(&text));
    rv_metrics_free(m);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(openmetrics_only_when_it_is_asked_for)
{
    ck_assert(rv_metrics_wants_open(RV_STR_LIT("application/openmetrics-text; version=1.0.0,text/plain;q=0.5")));
    ck_assert(!rv_metrics_wants_open(RV_STR_LIT("text/plain, */*")));
    ck_assert(!rv_metrics_wants_open(RV_STR_LIT("")));
}
END_TEST

TCase *metrics_case(void)
{
    TCase *tc = tcase_create("metrics");

    tcase_add_test(tc, text_is_what_prometheus_reads);
    tcase_add_test(tc, series_are_bounded_and_no_count_is_lost);
    tcase_add_test(tc, what_is_not_a_count_changes_nothing);
    tcase_add_loop_test(tc, events_are_counted, 0, RV_COUNT(told));
    tcase_add_test(tc, openmetrics_only_when_it_is_asked_for);
    return tc;
}
