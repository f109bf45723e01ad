/* What is told to monitoring: spans and metrics of runs, made of their observable events, and the formats that
 * collectors read. Pure: no I/O and no clock; sending is the caller's.
 *
 *   events of a run --> rv_run_trace --> finished spans --> rv_otlp_write_spans()
 *                   \-> rv_metrics   ------------------> rv_otlp_write_metrics(), rv_metrics_write_text()
 *
 * Prompts, replies, arguments and results are in none of these. */
#ifndef RV_TELEMETRY_H
#define RV_TELEMETRY_H

#include "coreengine/base/base.h"

/* --- Trace context: headers of W3C, and ids that follow from the run --- */

#define RV_TRACE_SAMPLED 0x01 /* of W3C Trace Context */

struct rv_trace_context {
    unsigned char trace[16], span[8]; /* all zero: there is none */
    unsigned char flags;              /* RV_TRACE_SAMPLED */
};
bool rv_trace_is_set(const struct rv_trace_context *c);
/** A new trace, sampled, with an id for its first span. */
void rv_trace_begin(struct rv_rand rand, struct rv_trace_context *out);
#define RV_TRACEPARENT_MAX 56  /* with the NUL */
#define RV_TRACESTATE_MAX  512 /* bytes, as W3C trace context has it */
/** One header value. Of the flags only "sampled" is kept. false: it is malformed; *out is all zero. */
bool rv_traceparent_read(rv_str text, struct rv_trace_context *out);
void rv_traceparent_write(const struct rv_trace_context *c, char out[RV_TRACEPARENT_MAX]);
/** May that tracestate be passed on? A broken or longer one is dropped as a whole. */
bool rv_tracestate_is_valid(rv_str text);

/* Members of the metadata of a run: what its caller said, if the caller is trusted with the trace. */
#define RV_TRACE_PARENT "traceparent"
#define RV_TRACE_STATE  "tracestate"

/** The trace of a run: that of its caller (what RV_TRACE_PARENT has; NULL: none), else one that follows from its id. */
void rv_trace_of_run(const char *run, const char *caller, unsigned char trace[16]);
/* A span of a run, by what its rows, its events and its requests know: its id follows from that. Texts are borrowed for
 * the call. */
struct rv_trace_span {
    const char *run;   /* id of the envelope */
    int64_t call_id;   /* a call of a model or a tool; else 0, and a visit is meant: */
    const char *path;  /* of a branch; NULL or "": none */
    const char *stage; /* as its events name it */
    int64_t visit;
    const char *asked_by; /* of an agent that was asked: id of the call; NULL or "": the stage */
};
void rv_trace_make_span_id(const struct rv_trace_span *s, unsigned char span[8]);

/* What a request that a run makes says about its trace. */
struct rv_trace_headers {
    char parent[RV_TRACEPARENT_MAX];
    const char *state; /* borrowed from what was given; NULL: there is none */
};
/** For a request of a call. caller, state: as RV_TRACE_PARENT and RV_TRACE_STATE have them; NULL: none. is_exported:
 * the call has a span that a collector is told of, which becomes the parent. false: the request says nothing. */
bool rv_trace_make_headers(const char *run, int64_t call_id, const char *caller, const char *state, bool is_exported,
                           struct rv_trace_headers *out);

/* --- Spans --- */

/* Names of attributes: of the last release of the conventions, or of their newest draft. */
enum rv_semconv { RV_SEMCONV_1_41, RV_SEMCONV_DRAFT };

enum rv_attr_kind { RV_ATTR_TEXT, RV_ATTR_INT, RV_ATTR_DOUBLE, RV_ATTR_LIST };
struct rv_attr {
    const char *key; /* static */
    enum rv_attr_kind kind;
    rv_str text; /* of a list: its texts, each with a line end behind it */
    int64_t number;
    double real;
};
enum rv_span_kind { RV_SPAN_INTERNAL = 1, RV_SPAN_SERVER, RV_SPAN_CLIENT }; /* as OTLP numbers them */
#define RV_SPAN_MAX_ATTRS 32                                                /* of one span: ours have a dozen */
#define RV_SPAN_MAX_TEXT  1024 /* bytes, cut between characters: a value is for filters, not for reading */
struct rv_span {
    struct rv_trace_context id;
    unsigned char parent[8]; /* all zero: a root */
    bool parent_is_remote;
    const char *name; /* owned, as all texts, by the span */
    enum rv_span_kind kind;
    int64_t start_us, end_us;
    struct rv_attr attrs[RV_SPAN_MAX_ATTRS];
    size_t n_attrs, n_dropped;
    bool is_error;
    const char *message;          /* of an error; NULL: none; borrowed for the call that gets it */
    struct rv_trace_context link; /* of a caller that is not trusted with the trace itself; all zero: none */
    rv_arena *arena;              /* owned */
};
/** A span of that name, without ids and times. */
RV_MUST_CHECK int rv_span_new(const char *name, enum rv_span_kind kind, struct rv_span **out, rv_err **err);
void rv_span_free(struct rv_span *s);
/* Set an attribute, once for each key. What does not fit is counted in n_dropped. key is borrowed: a literal. */
void rv_span_set_text(struct rv_span *s, const char *key, rv_str text);
void rv_span_set_int(struct rv_span *s, const char *key, int64_t number);
void rv_span_set_double(struct rv_span *s, const char *key, double number);
/** text: each item with a line end behind it. */
void rv_span_add_line(struct rv_span *s, const char *key, rv_str text);
/** It failed: error.type, and what people are told (may be NULL). */
void rv_span_fail(struct rv_span *s, const char *type, const char *message);

/* Spans of one run. One thread. */
typedef struct rv_run_trace rv_run_trace;
#define RV_TRACE_MAX_OPEN 4096 /* open spans of one run; further ones are left out: they are in memory */
struct rv_run_trace_opts {
    enum rv_semconv names;
    struct rv_trace_context parent; /* of the caller; all zero: a new trace */
    bool parent_is_remote;
    struct rv_trace_context link; /* see struct rv_span */
    struct rv_rand rand;          /* of ids */
    const char *run;              /* id; copied; NULL: unknown */
    /** A span ended. Taken. */
    void (*ended)(void *self, struct rv_span *span);
    void *self; /* borrowed; outlives the trace */
};
/** opts is copied, what it points to but `run` is borrowed for the life of the trace. RV_E_NOMEM. */
RV_MUST_CHECK int rv_run_trace_new(const struct rv_run_trace_opts *opts, rv_run_trace **out, rv_err **err);
/** Spans that are still open are dropped, unless rv_run_trace_end() was called. */
void rv_run_trace_free(rv_run_trace *t);
/** A line of docs/reference/events.md, read once for spans and metrics. NULL: it is not JSON. The caller puts it. */
json_object *rv_telemetry_parse_event(rv_str line);
/** An observable event. Never fails: what is none (NULL, too), or cannot be kept, is counted. */
void rv_run_trace_add(rv_run_trace *t, json_object *event);
/** The run does not go on in this process: open spans end now, with the error type "cancelled". */
void rv_run_trace_end(rv_run_trace *t, int64_t now_us);
/** Events and spans that were left out. */
int64_t rv_run_trace_dropped(const rv_run_trace *t);

/* --- Metrics --- */

/* One list: constant, name (UCUM unit apart), unit, buckets (0: a counter), labels, help. */
#define RV_METRICS(X)                                                                                                  \
    X(PIPELINES, "reeve.pipeline.executions", "", NONE, "pipeline status", "Runs that ended, or stopped to wait.")     \
    X(STAGES, "reeve.agent.executions", "", NONE, "agent status", "Visits of stages that ended.")                      \
    X(MODEL_CALLS, "reeve.llm.calls", "", NONE, "provider model status", "Calls of models.")                           \
    X(TOOL_CALLS, "reeve.tool.calls", "", NONE, "tool status", "Calls of tools.")                                      \
    X(PIPELINE_TIME, "reeve.pipeline.duration", "s", COARSE, "pipeline", "Time of runs.")                              \
    X(STAGE_TIME, "reeve.agent.duration", "s", FINE, "agent", "Time of visits of stages.")                             \
    X(MODEL_TIME, "reeve.llm.duration", "s", COARSE, "provider model", "Time of calls of models, retries included.")   \
    X(TOOL_TIME, "reeve.tool.duration", "s", FINE, "tool", "Time of calls of tools.")                                  \
    X(GENAI_TIME, "gen_ai.client.operation.duration", "s", GENAI,                                                      \
      "gen_ai_operation_name gen_ai_provider_name "                                                                    \
      "gen_ai_request_model error_type",                                                                               \
      "Time of operations of models.")                                                                                 \
    X(GENAI_TOKENS, "gen_ai.client.token.usage", "{token}", TOKENS,                                                    \
      "gen_ai_operation_name gen_ai_provider_name "                                                                    \
      "gen_ai_request_model gen_ai_token_type",                                                                        \
      "Tokens of calls of models.")                                                                                    \
    X(GENAI_FIRST, "gen_ai.client.operation.time_to_first_chunk", "s", GENAI,                                          \
      "gen_ai_provider_name "                                                                                          \
      "gen_ai_request_model",                                                                                          \
      "Time until the first piece of an answer.")                                                                      \
    X(GENAI_INPUT, "gen_ai.client.inference.usage.input_tokens", "{token}", NONE,                                      \
      "gen_ai_provider_name "                                                                                          \
      "gen_ai_request_model gen_ai_token_modality",                                                                    \
      "Input tokens.")                                                                                                 \
    X(GENAI_OUTPUT, "gen_ai.client.inference.usage.output_tokens", "{token}", NONE,                                    \
      "gen_ai_provider_name "                                                                                          \
      "gen_ai_request_model gen_ai_token_modality",                                                                    \
      "Output tokens.")                                                                                                \
    X(GENAI_INFERENCE, "gen_ai.client.inference.duration", "s", GENAI,                                                 \
      "gen_ai_provider_name gen_ai_request_model "                                                                     \
      "error_type",                                                                                                    \
      "Time of inferences.")                                                                                           \
    X(HTTP_TIME, "http.server.request.duration", "s", HTTP,                                                            \
      "http_request_method http_route "                                                                                \
      "http_response_status_code",                                                                                     \
      "Time of requests of clients.")
enum rv_metric {
#define X(name, text, unit, buckets, labels, help) RV_METRIC_##name,
    RV_METRICS(X)
#undef X
        RV_N_METRICS
};
#define RV_METRIC_MAX_LABELS 4   /* of one series: each multiplies the series */
#define RV_METRIC_MAX_SERIES 200 /* of one metric; further label values are counted as "other" */
#define RV_METRIC_MAX_VALUE  128 /* bytes of a label's value: it is repeated with each point */

typedef struct rv_metrics rv_metrics; /* one thread */
RV_MUST_CHECK int rv_metrics_new(enum rv_semconv names, int64_t now_us, rv_metrics **out, rv_err **err);
void rv_metrics_free(rv_metrics *m);
/** Add to a counter (amount >= 0), or observe a value of a histogram. labels: as many as it has, in the order of the
 * list; NULL: "". Never labels that name users, sessions or runs. Not a finite number: nothing happens. */
void rv_metrics_add(rv_metrics *m, enum rv_metric metric, const char *const *labels, double amount);
/* What an event does not tell, and events before it did. Texts are borrowed for the call. */
struct rv_metrics_run {
    const char *pipeline; /* name */
    const char *model;    /* of an llm_result: what llm_call_start of the same call_id said; NULL: nothing */
    int64_t start_us;     /* time of pipeline_started; 0: unknown */
};
/** Count what an event tells; event as rv_run_trace_add(). */
void rv_metrics_add_event(rv_metrics *m, const struct rv_metrics_run *run, json_object *event);

/* --- Settings: variables OTEL_* and P8_OTEL_* --- */

/* Texts are borrowed from the environment, or static. */
struct rv_telemetry_settings {
    const char *url;         /* of the collector, without /v1/traces; NULL: none */
    const char *headers;     /* of its requests, as OTEL_EXPORTER_OTLP_HEADERS has them; NULL: none */
    const char *service;     /* never NULL */
    const char *environment; /* NULL: not said */
    enum rv_semconv names;
    int64_t timeout_us; /* of one request */
};
/** get: the value of a variable, NULL: not set; texts are borrowed from it. url: what the command line says; NULL:
 * nothing, "": no collector. RV_E_INVALID: a value that is malformed or not supported. */
RV_MUST_CHECK int rv_telemetry_read(const char *(*get)(void *self, const char *name), void *self, const char *url,
                                    struct rv_telemetry_settings *out, rv_err **err);

/** docs/reference/telemetry.md: settings, spans and metrics, from their tables. */
void rv_telemetry_write_reference(rv_buf *out);

/* --- Formats --- */

/* Texts are borrowed for the call. */
struct rv_otlp_resource {
    const char *service, *version, *environment; /* version, environment may be NULL */
    const char *instance;                        /* of this process; may be NULL */
};
/** Append where requests with that path go: it stands behind the collector's own path, before its query. */
void rv_otlp_write_url(const char *collector, const char *path, rv_buf *out);
/** Append the address of a collector as it may be shown: without user, password and query. */
void rv_otlp_write_shown_url(const char *collector, rv_buf *out);
/** Append the body of POST /v1/traces. */
void rv_otlp_write_spans(const struct rv_otlp_resource *r, struct rv_span *const *spans, size_t n, rv_buf *out);
/** Append the body of POST /v1/metrics: sums since the start. */
void rv_otlp_write_metrics(const struct rv_otlp_resource *r, const rv_metrics *m, int64_t now_us, rv_buf *out);
/** What a collector answered: whether to send it again, and when (us; 0: not said). retry_after: its header, or empty.
 */
bool rv_otlp_needs_retry(int status, rv_str retry_after, int64_t *wait_us);
/** Append what the body of an answer says, in one text of at most 500 bytes. Returns how many spans, or points of
 * metrics, it refuses: an answer with 200 may refuse a part. */
int64_t rv_otlp_read_answer(rv_str body, rv_buf *says);

#define RV_PROMETHEUS_TYPE  "text/plain; version=0.0.4; charset=utf-8"
#define RV_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
/** Whether a header Accept asks for OpenMetrics. */
bool rv_metrics_wants_open(rv_str accept);
/** Append all metrics as text, for Prometheus or (is_open) as OpenMetrics. */
void rv_metrics_write_text(const rv_metrics *m, bool is_open, rv_buf *out);

#endif
