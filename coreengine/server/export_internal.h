/* The sender of spans and metrics to a collector, for watch.c. */
#ifndef RV_SERVER_EXPORT_INTERNAL_H
#define RV_SERVER_EXPORT_INTERNAL_H

#include "coreengine/server/server_internal.h"
#include "coreengine/telemetry/telemetry.h"

struct srv_export;
struct srv_export_opts {
    struct rv_telemetry_settings to; /* url is not NULL; borrowed, as all */
    rv_log *log;                     /* borrowed */
    /** Append the metrics of now; on the thread of the sender. */
    void (*write_metrics)(void *self, const struct rv_otlp_resource *resource, rv_buf *out);
    void *self; /* borrowed */
};
/** RV_E_INVALID: not an address; what rv_http_new() says. */
RV_MUST_CHECK int srv_export_new(const struct srv_export_opts *opts, struct srv_export **out, rv_err **err);
/** Any thread; takes the span. Never waits. */
void srv_export_span(struct srv_export *e, struct rv_span *span);
/** Sends what is left, for five seconds at most. NULL is fine. */
void srv_export_free(struct srv_export *e);

#endif
