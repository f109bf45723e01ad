/* Reads lines {"events": [line, ...], "draft": bool, "parent": traceparent or null} and answers each with what is
 * written of such a run: {"spans": OTLP, "metrics": OTLP, "text": Prometheus, "open": OpenMetrics, "dropped": n}. */
#include <stdio.h>

#include "coreengine/telemetry/telemetry.h"
#include "tests/conformance/judge.h"

#define MAX_SPANS 1000
#define MAX_TEXT  ((size_t)8 << 20)
#define NOW_US    INT64_C(1800000000000000)

struct collected {
    struct rv_span *spans[MAX_SPANS];
    size_t n;
};

static void keep(void *self, struct rv_span *span)
{
    struct collected *c = self;

    if (c->n < MAX_SPANS)
        c->spans[c->n++] = span;
    else
        rv_span_free(span);
}

static void write_all(const struct collected *c, const rv_metrics *m, int64_t dropped)
{
    const struct rv_otlp_resource resource = {.service = "reeve", .environment = "test"};
    rv_buf spans = RV_BUF_INIT(MAX_TEXT), metrics = RV_BUF_INIT(MAX_TEXT), text = RV_BUF_INIT(MAX_TEXT),
           open = RV_BUF_INIT(MAX_TEXT), out = RV_BUF_INIT(4 * MAX_TEXT);
    rv_jw w = rv_jw_on(&out);

    rv_otlp_write_spans(&resource, c->spans, c->n, &spans);
    rv_otlp_write_metrics(&resource, m, NOW_US, &metrics);
    rv_metrics_write_text(m, false, &text);
    rv_metrics_write_text(m, true, &open);
    rv_jw_obj(&w);
    rv_jw_key(&w, "spans");
    rv_jw_raw(&w, rv_buf_str(&spans));
    rv_jw_key(&w, "metrics");
    rv_jw_raw(&w, rv_buf_str(&metrics));
    rv_jw_kv_str(&w, "text", rv_buf_str(&text));
    rv_jw_kv_str(&w, "open", rv_buf_str(&open));
    rv_jw_kv_int(&w, "dropped", dropped);
    rv_jw_obj_end(&w);
    puts(rv_buf_cstr(&out));
    rv_buf_fini(&spans);
    rv_buf_fini(&metrics);
    rv_buf_fini(&text);
    rv_buf_fini(&open);
    rv_buf_fini(&out);
}

void judge(json_object *row)
{
    struct collected c = {.n = 0};
    struct rv_rand_state state;
    bool is_draft = false;
    const char *parent = NULL;
    rv_run_trace *trace = NULL;
    rv_metrics *metrics = NULL;

    rv_json_get_bool(row, "draft", &is_draft);
    struct rv_run_trace_opts opts = {.names = is_draft ? RV_SEMCONV_DRAFT : RV_SEMCONV_1_41,
                                     .rand = rv_rand_seeded(&state, 1),
                                     .run = "run_1",
                                     .ended = keep,
                                     .self = &c};
    if (rv_json_get_text(row, "parent", &parent))
        opts.parent_is_remote = rv_traceparent_read(rv_str_of(parent), &opts.parent);
    if (rv_run_trace_new(&opts, &trace, NULL) == 0 &&
        rv_metrics_new(opts.names, NOW_US - 1000000, &metrics, NULL) == 0) {
        const struct rv_metrics_run run = {.pipeline = "p \"q\" \\ \n", .model = "gemini:flash", .start_us = 1};
        json_object *events = rv_json_get_arr(row, "events");
        for (size_t i = 0; events && i < json_object_array_length(events); i++) {
            rv_str line = rv_json_str(json_object_array_get_idx(events, i));
            json_object *event = rv_telemetry_parse_event(line);
            rv_run_trace_add(trace, event);
            rv_metrics_add_event(metrics, &run, event);
            json_object_put(event);
        }
        write_all(&c, metrics, rv_run_trace_dropped(trace));
    }
    rv_run_trace_free(trace);
    rv_metrics_free(metrics);
    for (size_t i = 0; i < c.n; i++)
        rv_span_free(c.spans[i]);
}
