/* OTLP over HTTP as JSON: ids in hexadecimal, 64-bit numbers as texts, enumerations as numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/telemetry/telemetry_internal.h"

#define SCOPE           "reeve"
#define FLAG_HAS_REMOTE 0x100 /* the next bit says something */
#define FLAG_REMOTE     0x200 /* of OTLP: the parent is in another process */
#define MAX_SAID        500 /* bytes of what a collector says: one record of the log has it, and its beginning tells */
#define CUMULATIVE      2   /* of OTLP: sums since the start */

static void kv_hex(rv_jw *w, const char *key, const unsigned char *bytes, size_t n)
{
    char text[33];

    rv_hex_make(bytes, n, text);
    text[2 * n] = 0;
    rv_jw_kv_text(w, key, text);
}

static void kv_long(rv_jw *w, const char *key, int64_t n)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, n);
    rv_jw_kv_text(w, key, text);
}

static void kv_nanos(rv_jw *w, const char *key, int64_t us)
{
    kv_long(w, key, us > 0 && us < INT64_MAX / 1000 ? us * 1000 : 0);
}

static void kv_double(rv_jw *w, const char *key, double d)
{
    rv_jw_key(w, key);
    rv_jw_double(w, d);
}

/* --- attributes --- */

static void begin_attr(rv_jw *w, const char *key)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "key", key);
    rv_jw_key(w, "value");
    rv_jw_obj(w);
}

static void end_attr(rv_jw *w)
{
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

static void write_text_attr(rv_jw *w, const char *key, rv_str text)
{
    begin_attr(w, key);
    rv_jw_kv_str(w, "stringValue", text);
    end_attr(w);
}

static void write_list(rv_jw *w, rv_str text)
{
    rv_jw_key(w, "arrayValue");
    rv_jw_obj(w);
    rv_jw_key(w, "values");
    rv_jw_arr(w);
    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t n = end ? (size_t)(end - text.ptr) : text.len, used = end ? n + 1 : n;
        rv_jw_obj(w);
        rv_jw_kv_str(w, "stringValue", (rv_str){text.ptr, n});
        rv_jw_obj_end(w);
        text = (rv_str){text.ptr + used, text.len - used};
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static void write_attr(rv_jw *w, const struct rv_attr *a)
{
    begin_attr(w, a->key);
    switch (a->kind) {
    case RV_ATTR_TEXT:
        rv_jw_kv_str(w, "stringValue", a->text);
        break;
    case RV_ATTR_INT:
        kv_long(w, "intValue", a->number);
        break;
    case RV_ATTR_DOUBLE:
        kv_double(w, "doubleValue", a->real);
        break;
    case RV_ATTR_LIST:
        write_list(w, a->text);
        break;
    }
    end_attr(w);
}

static void write_resource(const struct rv_otlp_resource *r, rv_jw *w)
{
    const char *const attrs[][2] = {{"service.name", r->service},
                                    {"service.version", r->version},
                                    {"service.instance.id", r->instance},
                                    {"deployment.environment.name", r->environment}};

    rv_jw_key(w, "resource");
    rv_jw_obj(w);
    rv_jw_key(w, "attributes");
    rv_jw_arr(w);
    for (size_t i = 0; i < RV_COUNT(attrs); i++)
        if (attrs[i][1])
            write_text_attr(w, attrs[i][0], rv_str_of(attrs[i][1]));
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

/* Everything before and after the list of one resource and one scope. */
static rv_jw begin_list(const struct rv_otlp_resource *r, const char *outer, const char *inner, const char *list,
                        rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_key(&w, outer);
    rv_jw_arr(&w);
    rv_jw_obj(&w);
    write_resource(r, &w);
    rv_jw_key(&w, inner);
    rv_jw_arr(&w);
    rv_jw_obj(&w);
    rv_jw_key(&w, "scope");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "name", SCOPE);
    rv_jw_kv_text(&w, "version", REEVE_VERSION);
    rv_jw_obj_end(&w);
    rv_jw_key(&w, list);
    rv_jw_arr(&w);
    return w;
}

static void end_list(rv_jw *w)
{
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

/* --- spans --- */

static void write_link(const struct rv_trace_context *link, rv_jw *w)
{
    rv_jw_key(w, "links");
    rv_jw_arr(w);
    rv_jw_obj(w);
    kv_hex(w, "traceId", link->trace, sizeof link->trace);
    kv_hex(w, "spanId", link->span, sizeof link->span);
    rv_jw_kv_int(w, "flags", link->flags | FLAG_HAS_REMOTE | FLAG_REMOTE);
    rv_jw_obj_end(w);
    rv_jw_arr_end(w);
}

static void write_span(const struct rv_span *s, rv_jw *w)
{
    static const unsigned char none[8];

    rv_jw_obj(w);
    kv_hex(w, "traceId", s->id.trace, sizeof s->id.trace);
    kv_hex(w, "spanId", s->id.span, sizeof s->id.span);
    if (memcmp(s->parent, none, sizeof none) != 0)
        kv_hex(w, "parentSpanId", s->parent, sizeof s->parent);
    rv_jw_kv_int(w, "flags", s->id.flags | FLAG_HAS_REMOTE | (s->parent_is_remote ? FLAG_REMOTE : 0));
    rv_jw_kv_text(w, "name", s->name);
    rv_jw_kv_int(w, "kind", (int64_t)s->kind);
    kv_nanos(w, "startTimeUnixNano", s->start_us);
    kv_nanos(w, "endTimeUnixNano", s->end_us);
    rv_jw_key(w, "attributes");
    rv_jw_arr(w);
    for (size_t i = 0; i < s->n_attrs; i++)
        write_attr(w, &s->attrs[i]);
    rv_jw_arr_end(w);
    if (s->n_dropped > 0)
        rv_jw_kv_int(w, "droppedAttributesCount", (int64_t)s->n_dropped);
    if (rv_trace_is_set(&s->link))
        write_link(&s->link, w);
    rv_jw_key(w, "status");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "code", s->is_error ? 2 : 0);
    if (s->message)
        rv_jw_kv_text(w, "message", s->message);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

void rv_otlp_write_spans(const struct rv_otlp_resource *r, struct rv_span *const *spans, size_t n, rv_buf *out)
{
    rv_jw w = begin_list(r, "resourceSpans", "scopeSpans", "spans", out);

    for (size_t i = 0; i < n; i++)
        write_span(spans[i], &w);
    end_list(&w);
}

/* --- metrics --- */

/* The names of labels have points here: gen_ai_request_model is gen_ai.request.model, error_type is error.type. */
static void write_labels(const struct metric_kind *kind, const struct series *s, rv_jw *w)
{
    static const char *const dotted[][2] = {{"gen_ai_operation_name", "gen_ai.operation.name"},
                                            {"gen_ai_provider_name", "gen_ai.provider.name"},
                                            {"gen_ai_request_model", "gen_ai.request.model"},
                                            {"gen_ai_token_type", "gen_ai.token.type"},
                                            {"gen_ai_token_modality", "gen_ai.token.modality"},
                                            {"error_type", "error.type"},
                                            {"http_request_method", "http.request.method"},
                                            {"http_route", "http.route"},
                                            {"http_response_status_code", "http.response.status_code"}};

    rv_jw_key(w, "attributes");
    rv_jw_arr(w);
    for (size_t i = 0; i < telemetry_metric_n_labels(kind); i++) {
        rv_str label = telemetry_metric_label(kind, i);
        const char *value = telemetry_metric_value(s, i), *name = NULL;
        char own[64];
        for (size_t k = 0; k < RV_COUNT(dotted) && !name; k++)
            name = rv_str_is(label, dotted[k][0]) ? dotted[k][1] : NULL;
        snprintf(own, sizeof own, "%.*s", RV_STR_ARG(label));
        if (*value)
            write_text_attr(w, name ? name : own, rv_str_of(value));
    }
    rv_jw_arr_end(w);
}

static void write_point(const struct metric_kind *kind, const struct series *s, int64_t start_us, int64_t now_us,
                        rv_jw *w)
{
    rv_jw_obj(w);
    write_labels(kind, s, w);
    kv_nanos(w, "startTimeUnixNano", start_us);
    kv_nanos(w, "timeUnixNano", now_us);
    if (!kind->bounds) {
        kv_double(w, "asDouble", s->sum);
        rv_jw_obj_end(w);
        return;
    }
    kv_long(w, "count", (int64_t)s->count);
    kv_double(w, "sum", s->sum);
    rv_jw_key(w, "bucketCounts");
    rv_jw_arr(w);
    for (size_t i = 0; i <= kind->n_bounds; i++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, s->buckets[i]);
        rv_jw_text(w, text);
    }
    rv_jw_arr_end(w);
    rv_jw_key(w, "explicitBounds");
    rv_jw_arr(w);
    for (size_t i = 0; i < kind->n_bounds; i++)
        rv_jw_double(w, kind->bounds[i]);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_otlp_write_metrics(const struct rv_otlp_resource *r, const rv_metrics *m, int64_t now_us, rv_buf *out)
{
    rv_jw w = begin_list(r, "resourceMetrics", "scopeMetrics", "metrics", out);

    for (size_t k = 0; k < RV_N_METRICS; k++) {
        const struct metric_kind *kind = &telemetry_metric_kinds[k];
        if (m->of[k].n == 0)
            continue;
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "name", kind->name);
        rv_jw_kv_text(&w, "description", kind->help);
        rv_jw_kv_text(&w, "unit", kind->unit);
        rv_jw_key(&w, kind->bounds ? "histogram" : "sum");
        rv_jw_obj(&w);
        rv_jw_kv_int(&w, "aggregationTemporality", CUMULATIVE);
        if (!kind->bounds)
            rv_jw_kv_bool(&w, "isMonotonic", true);
        rv_jw_key(&w, "dataPoints");
        rv_jw_arr(&w);
        for (size_t i = 0; i < m->of[k].n; i++)
            write_point(kind, &m->of[k].series[i], m->start_us, now_us, &w);
        rv_jw_arr_end(&w);
        rv_jw_obj_end(&w);
        rv_jw_obj_end(&w);
    }
    end_list(&w);
}

/* --- answers --- */

/* --- addresses --- */

/* Bytes up to the query, without the slashes at the end of the path. */
static size_t path_end(const char *url)
{
    size_t n = strcspn(url, "?#");

    while (n > 0 && url[n - 1] == '/')
        n--;
    return n;
}

void rv_otlp_write_url(const char *collector, const char *path, rv_buf *out)
{
    const char *query = collector + strcspn(collector, "?#");

    rv_buf_printf(out, "%.*s%s", (int)path_end(collector), collector, path);
    if (*query == '?')
        rv_buf_add(out, query, strcspn(query, "#"));
}

void rv_otlp_write_shown_url(const char *collector, rv_buf *out)
{
    const char *scheme_end = strstr(collector, "://");
    const char *host = scheme_end ? scheme_end + 3 : collector;
    const char *end = collector + path_end(collector), *stop = host + strcspn(host, "/?#");

    rv_buf_add(out, collector, (size_t)(host - collector));
    for (const char *p = host; p < stop; p++)
        if (*p == '@') /* a password may have one */
            host = p + 1;
    rv_buf_add(out, host, end > host ? (size_t)(end - host) : 0);
}

/* --- answers --- */

bool rv_otlp_needs_retry(int status, rv_str retry_after, int64_t *wait_us)
{
    int64_t s = 0;

    *wait_us = 0;
    if (status != 0 && status != 429 && status != 502 && status != 503 && status != 504)
        return false; /* 0: there was no answer */
    for (size_t i = 0; i < retry_after.len; i++) {
        if (!rv_is_digit(retry_after.ptr[i]))
            return true; /* a date: the caller's own pause */
        s = s > 3600 ? s : s * 10 + retry_after.ptr[i] - '0';
    }
    *wait_us = (s > 3600 ? 3600 : s) * RV_US_PER_S;
    return true;
}

/* Numbers of 64 bits are texts in OTLP, and numbers with some collectors. */
static int64_t count_of(json_object *from, const char *key)
{
    const char *text;
    int64_t n = 0;

    if (rv_json_get_text(from, key, &text))
        n = strtoll(text, NULL, 10);
    else if (!rv_json_get_int(from, key, &n))
        n = 0;
    return n < 0 ? 0 : n < INT32_MAX ? n : INT32_MAX; /* two of them are added */
}

int64_t rv_otlp_read_answer(rv_str body, rv_buf *says)
{
    const char *text = NULL;
    json_object *root = NULL;
    rv_err *err = NULL;
    int64_t n = 0;

    if (rv_json_try_parse(body, NULL, &root, &err) < 0) { /* without memory only */
        rv_err_free(err);
        return 0;
    }
    json_object *partial = root ? rv_json_get_obj(root, "partialSuccess") : NULL;
    if (partial) {
        n = count_of(partial, "rejectedSpans") + count_of(partial, "rejectedDataPoints");
        body = rv_json_get_text(partial, "errorMessage", &text) ? rv_str_of(text) : RV_STR_LIT("");
    } else if (root && rv_json_get_text(root, "message", &text)) {
        body = rv_str_of(text);
    }
    if (rv_utf8_valid(body, NULL)) /* not a message in protobuf */
        rv_buf_add_str(says, rv_utf8_cut(rv_str_trim(body), MAX_SAID));
    json_object_put(root);
    return n;
}
