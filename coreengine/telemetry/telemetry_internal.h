/* Shared by the files of the module: metrics as they are kept, names of providers, events as they are read. */
#ifndef RV_TELEMETRY_INTERNAL_H
#define RV_TELEMETRY_INTERNAL_H

#include "coreengine/telemetry/telemetry.h"

#define RV_METRIC_MAX_BUCKETS 14 /* of one histogram: bounds are fixed */

/* What is the same of all series of a metric. What it points to is static. */
struct metric_kind {
    const char *name, *unit, *labels, *help;
    const double *bounds; /* NULL: a counter */
    size_t n_bounds;
};
extern const struct metric_kind telemetry_metric_kinds[RV_N_METRICS];

struct series {
    char *values; /* owned: the values of the labels, each with a NUL behind it */
    double sum;   /* of a counter: what was counted */
    uint64_t count, buckets[RV_METRIC_MAX_BUCKETS + 1];
};
struct rv_metrics {
    enum rv_semconv names;
    int64_t start_us;
    struct {
        struct series *series; /* owned */
        size_t n, cap;
    } of[RV_N_METRICS];
};
size_t telemetry_metric_n_labels(const struct metric_kind *kind);
/** The i-th label of a kind: its name, and the value of a series. */
rv_str telemetry_metric_label(const struct metric_kind *kind, size_t i);
const char *telemetry_metric_value(const struct series *s, size_t i);
/** Its name in text: with underscores, and the unit of time. */
void telemetry_metric_write_name(const struct metric_kind *kind, rv_buf *out);

struct model_name {
    rv_str provider; /* as the conventions call it; "_OTHER": unknown */
    rv_str model;    /* empty: unknown */
};
/** provider "": both are in model, "provider:model". */
struct model_name telemetry_model_name(const char *provider, const char *model);

/** Is it an event? Then its type and its time. */
bool telemetry_event_is(json_object *event, const char **type, int64_t *time_us);
const char *telemetry_event_text(json_object *event, const char *member); /* "" when there is none */
int64_t telemetry_event_int(json_object *event, const char *member);      /* 0 when there is none */

/* --- spans.c: what spans there are, and which attributes they have --- */
enum span_id { SPAN_RUN, SPAN_STAGE, SPAN_AGENT, SPAN_MODEL, SPAN_TOOL, N_SPANS };
/* What it points to is static. */
struct span_row {
    const char *operation; /* its name begins with this */
    const char *subject;   /* and ends with that, in words */
    enum rv_span_kind kind;
    const char *what; /* of the page of spans */
};
extern const struct span_row telemetry_span_rows[]; /* N_SPANS of them */

/* Where a value comes from: of the event that begins a span, */
enum attr_from {
    FROM_WORD,     /* `member` itself */
    FROM_RUN,      /* the id of the run */
    FROM_PROVIDER, /* both of the start of a call of a model */
    FROM_MODEL,
    FROM_TEXT,
    FROM_INT,
    FROM_TEXT_AT_END, /* and, from here on, of the one that ends it */
    FROM_INT_AT_END,
    FROM_USAGE, /* a number of its object "usage", or of the event */
    FROM_MS,    /* written in seconds */
    FROM_LIST,  /* of one text */
};
/* What it points to is static. */
struct attr_row {
    unsigned spans; /* bits of enum span_id */
    const char *key;
    const char *draft; /* its name in the newest draft of the conventions; "": the same */
    enum attr_from from;
    const char *member; /* of the event */
    const char *what;
};
extern const struct attr_row telemetry_attr_rows[];
extern const size_t telemetry_n_attr_rows;

/* --- settings.c --- */
enum setting {
    SET_DISABLED,
    SET_URL,
    SET_HEADERS,
    SET_PROTOCOL,
    SET_TIMEOUT,
    SET_SERVICE,
    SET_NAMES,
    SET_P8_ENABLED,
    SET_P8_SERVICE,
    SET_P8_URL,
    SET_P8_PROTOCOL,
    SET_P8_TIMEOUT,
    SET_P8_INSECURE,
    N_SETTINGS
};
/* What it points to is static. */
struct setting_row {
    const char *name, *usual, *what; /* usual "": none */
};
extern const struct setting_row telemetry_variables[]; /* N_SETTINGS of them */

#endif
