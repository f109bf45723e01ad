/* Shared by the files of the module: metrics as they are kept, names of providers, events as they are read. */
#ifndef RV_TELEMETRY_INTERNAL_H
#define RV_TELEMETRY_INTERNAL_H

#include "coreengine/telemetry/telemetry.h"

#define RV_METRIC_MAX_BUCKETS 14

/* What is the same of all series of a metric. */
struct metric_kind {
    const char *name, *unit, *labels, *help;
    const double *bounds; /* NULL: a counter */
    size_t n_bounds;
};
extern const struct metric_kind rv_metric_kinds[RV_N_METRICS];

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
size_t rv_metric_n_labels(const struct metric_kind *kind);
/** The i-th label of a kind: its name, and the value of a series. */
rv_str rv_metric_label(const struct metric_kind *kind, size_t i);
const char *rv_metric_value(const struct series *s, size_t i);

/* The provider and the model of "provider:model". */
struct model_name {
    rv_str provider; /* as the conventions call it; "_OTHER": unknown */
    rv_str model;    /* empty: unknown */
};
struct model_name rv_model_name(const char *model);

/** An event line as a tree: NULL when it is none; *time_us is its time. The caller puts it. */
json_object *rv_event_read(rv_str line, const char **type, int64_t *time_us);
const char *rv_event_text(json_object *event, const char *member); /* "" when there is none */
int64_t rv_event_int(json_object *event, const char *member);      /* 0 when there is none */

/* --- context.c --- */
/** The trace id of a run that no caller traces: the first 16 bytes of the SHA-256 of its id, as its rows have it. */
void rv_trace_of_run(const char *run_id, unsigned char trace[16]);

#endif
