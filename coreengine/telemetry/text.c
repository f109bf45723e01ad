/* Metrics as text, for Prometheus (0.0.4) and as OpenMetrics (1.0.0). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/telemetry/telemetry_internal.h"

bool rv_metrics_wants_open(rv_str accept)
{
    static const char wanted[] = "application/openmetrics-text";

    for (size_t i = 0; i + strlen(wanted) <= accept.len; i++)
        if (memcmp(accept.ptr + i, wanted, strlen(wanted)) == 0)
            return true;
    return false;
}

/* Points become underscores, the unit of time stands at the end. */
void telemetry_metric_write_name(const struct metric_kind *kind, rv_buf *out)
{
    for (const char *p = kind->name; *p; p++)
        rv_buf_putc(out, *p == '.' ? '_' : *p);
    if (strcmp(kind->unit, "s") == 0)
        rv_buf_puts(out, "_seconds");
}

static void write_escaped(const char *text, bool quotes, rv_buf *out)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\n')
            rv_buf_puts(out, "\\n");
        else if (*p == '\\' || (quotes && *p == '"'))
            rv_buf_printf(out, "\\%c", *p);
        else
            rv_buf_putc(out, *p);
    }
}

/* The shortest digits that give the number back. */
static void write_number(double d, rv_buf *out)
{
    char text[32];

    if (isnan(d) || isinf(d)) {
        rv_buf_puts(out, isnan(d) ? "NaN" : d > 0 ? "+Inf" : "-Inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        rv_format(text, sizeof text, "%.*g", digits, d);
        if (rv_number_read(text, NULL) == d)
            break;
    }
    rv_buf_puts(out, text);
}

/* le NULL: no bucket. */
static void write_labels(const struct metric_kind *kind, const struct series *s, const char *le, rv_buf *out)
{
    size_t n = telemetry_metric_n_labels(kind);

    if (n == 0 && !le)
        return;
    rv_buf_putc(out, '{');
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(out, "%s%.*s=\"", i ? "," : "", RV_STR_ARG(telemetry_metric_label(kind, i)));
        write_escaped(telemetry_metric_value(s, i), true, out);
        rv_buf_putc(out, '"');
    }
    if (le)
        rv_buf_printf(out, "%sle=\"%s\"", n ? "," : "", le);
    rv_buf_putc(out, '}');
}

static void write_line(const struct metric_kind *kind, const char *suffix, const struct series *s, const char *le,
                       double value, rv_buf *out)
{
    telemetry_metric_write_name(kind, out);
    rv_buf_puts(out, suffix);
    write_labels(kind, s, le, out);
    rv_buf_putc(out, ' ');
    write_number(value, out);
    rv_buf_putc(out, '\n');
}

static void write_histogram(const struct metric_kind *kind, const struct series *s, bool is_open, rv_buf *out)
{
    uint64_t sum = 0;

    for (size_t i = 0; i <= kind->n_bounds; i++) {
        rv_buf le = RV_BUF_INIT(40);
        sum += s->buckets[i];
        if (i == kind->n_bounds)
            rv_buf_puts(&le, "+Inf");
        else
            write_number(kind->bounds[i], &le);
        if (is_open && i < kind->n_bounds && !strpbrk(rv_buf_cstr(&le), ".e")) /* floats there */
            rv_buf_puts(&le, ".0");
        write_line(kind, "_bucket", s, rv_buf_cstr(&le), (double)sum, out);
        rv_buf_fini(&le);
    }
    write_line(kind, "_sum", s, NULL, s->sum, out);
    write_line(kind, "_count", s, NULL, (double)s->count, out);
}

static void write_family(const rv_metrics *m, size_t k, bool is_open, rv_buf *out)
{
    const struct metric_kind *kind = &telemetry_metric_kinds[k];
    bool is_counter = !kind->bounds;
    const char *end = is_counter && !is_open ? "_total" : "";

    rv_buf_puts(out, "# HELP ");
    telemetry_metric_write_name(kind, out);
    rv_buf_printf(out, "%s ", end);
    write_escaped(kind->help, is_open, out);
    rv_buf_puts(out, "\n# TYPE ");
    telemetry_metric_write_name(kind, out);
    rv_buf_printf(out, "%s %s\n", end, is_counter ? "counter" : "histogram");
    for (size_t i = 0; i < m->of[k].n; i++)
        if (is_counter)
            write_line(kind, "_total", &m->of[k].series[i], NULL, m->of[k].series[i].sum, out);
        else
            write_histogram(kind, &m->of[k].series[i], is_open, out);
}

void rv_metrics_write_text(const rv_metrics *m, bool is_open, rv_buf *out)
{
    for (size_t k = 0; k < RV_N_METRICS; k++)
        if (m->of[k].n > 0)
            write_family(m, k, is_open, out);
    if (is_open)
        rv_buf_puts(out, "# EOF\n");
}
