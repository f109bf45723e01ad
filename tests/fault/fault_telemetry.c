/* Each allocation of spans and metrics fails once: no crash, no leak. What cannot be kept is left out, never the run.
 */
#include <stdlib.h>

#include "coreengine/telemetry/telemetry.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

#define TIME   ",\"time\":\"2023-11-14T22:13:20Z\""
#define VISIT  ",\"stage\":\"a\",\"visit\":1"
#define BUFFER ((size_t)1 << 20)

static const char *const lines[] = {
    "{\"type\":\"pipeline_started\"" TIME ",\"pipeline\":\"p\"}",
    "{\"type\":\"stage_started\"" TIME VISIT "}",
    "{\"type\":\"llm_call_start\"" TIME VISIT ",\"call_id\":1,\"model\":\"a:b\"}",
    "{\"type\":\"llm_result\"" TIME VISIT
    ",\"call_id\":1,\"status\":\"error\",\"error_kind\":\"k\",\"input_tokens\":1}",
    "{\"type\":\"stage_completed\"" TIME VISIT ",\"status\":\"success\",\"duration_ms\":1}",
    "{\"type\":\"done\"" TIME ",\"status\":\"completed\"}",
};

struct told {
    rv_buf text;
    size_t n;
};

static void ended(void *self, struct rv_span *span)
{
    const struct rv_otlp_resource r = {.service = "s"};
    struct told *t = self;

    t->n++;
    rv_otlp_write_spans(&r, &span, 1, &t->text);
    rv_span_free(span);
}

static int trace(void)
{
    struct told told = {.text = RV_BUF_INIT(BUFFER)};
    struct rv_rand_state state;
    const struct rv_run_trace_opts opts = {
        .rand = rv_rand_seeded(&state, 1), .run = "r", .ended = ended, .self = &told};
    rv_run_trace *t = NULL;

    int rc = rv_run_trace_new(&opts, &t, NULL);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(lines); i++) {
        json_object *event = rv_telemetry_parse_event(rv_str_of(lines[i]));
        rv_run_trace_add(t, event);
        json_object_put(event);
    }
    if (rc == 0 && (told.n < 3 || told.text.rc < 0 || rv_run_trace_dropped(t) > 0))
        rc = RV_E_NOMEM;
    rv_run_trace_free(t);
    rv_buf_fini(&told.text);
    return rc;
}

static int count(void)
{
    const struct rv_metrics_run run = {.pipeline = "p", .model = "a:b", .start_us = 1};
    const struct rv_otlp_resource r = {.service = "s"};
    rv_buf text = RV_BUF_INIT(BUFFER), otlp = RV_BUF_INIT(BUFFER);
    rv_metrics *m = NULL;

    int rc = rv_metrics_new(RV_SEMCONV_1_41, 0, &m, NULL);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(lines); i++) {
        json_object *event = rv_telemetry_parse_event(rv_str_of(lines[i]));
        rv_metrics_add_event(m, &run, event);
        json_object_put(event);
    }
    if (rc == 0) {
        rv_metrics_write_text(m, false, &text);
        rv_otlp_write_metrics(&r, m, 1, &otlp);
    }
    rv_metrics_free(m);
    rv_buf_fini(&text);
    rv_buf_fini(&otlp);
    return rc;
}

/* Attributes that found no memory are only counted, so a failure need not show. */
START_TEST(spans_and_metrics_survive_each_failure)
{
    int (*const scenarios[])(void) = {trace, count};
    bool fired = true;

    ck_assert_int_eq(scenarios[_i](), 0);
    for (size_t n = 0; fired; n++) {
        rv_fault_arm(n);
        int rc = scenarios[_i]();
        fired = rv_fault_disarm();
        ck_assert_msg(rc == 0 || (fired && rc == RV_E_NOMEM), "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0 || !rv_fault_works(), "allocation %zu leaks", n);
        ck_assert(fired || n > 20 || !rv_fault_works());
    }
}
END_TEST

static TCase *telemetry_case(void)
{
    TCase *tc = tcase_create("telemetry");

    tcase_add_loop_test(tc, spans_and_metrics_survive_each_failure, 0, 2);
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {telemetry_case};

    return rv_kit_run_cases("fault telemetry", cases, RV_COUNT(cases));
}
