/* The variables that say where spans and metrics go. OTEL_* are those of the OpenTelemetry specification; P8_OTEL_*
 * those of programs that reeve replaces, with their names and defaults. An OTEL_* variable goes before its P8_OTEL_*
 * one. */
#include <string.h>
#include <strings.h>

#include "coreengine/telemetry/telemetry_internal.h"

#define MAX_TIMEOUT_MS INT64_C(600000) /* ten minutes: a process waits for a batch at its end; more is an error */

const struct setting_row telemetry_variables[] = {
    [SET_DISABLED] = {"OTEL_SDK_DISABLED", "false", "`true`: nothing is sent, unless `--otlp` is given"},
    [SET_URL] = {"OTEL_EXPORTER_OTLP_ENDPOINT", "", "address of the collector, when there is no `--otlp`"},
    [SET_HEADERS] = {"OTEL_EXPORTER_OTLP_HEADERS", "",
                     "headers of its requests: `name=value,name=value`, values percent-encoded; at most 15"},
    [SET_PROTOCOL] = {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json",
                      "what is sent is JSON over HTTP, also where this is `http/protobuf`; others are refused"},
    [SET_TIMEOUT] = {"OTEL_EXPORTER_OTLP_TIMEOUT", "10000", "milliseconds that a request may take; at most 600000"},
    [SET_SERVICE] = {"OTEL_SERVICE_NAME", "reeve", "`service.name`"},
    [SET_NAMES] = {"OTEL_SEMCONV_STABILITY_OPT_IN", "",
                   "a list; with `gen_ai_latest_experimental` in it, names are those of the newest draft"},
    [SET_P8_ENABLED] = {"P8_OTEL_ENABLED", "false",
                        "`true`: send to `P8_OTEL_COLLECTOR_ENDPOINT` when nothing above names a collector; then "
                        "`deployment.environment.name` is `production`"},
    [SET_P8_SERVICE] = {"P8_OTEL_SERVICE_NAME", "p8-api", "`service.name` then"},
    [SET_P8_URL] = {"P8_OTEL_COLLECTOR_ENDPOINT", "http://localhost:4318", "address of the collector then"},
    [SET_P8_PROTOCOL] = {"P8_OTEL_PROTOCOL", "http", "only `http`; others are refused"},
    [SET_P8_TIMEOUT] = {"P8_OTEL_EXPORT_TIMEOUT", "10000", "milliseconds that a request may take then"},
    [SET_P8_INSECURE] = {"P8_OTEL_INSECURE", "true", "`false`: an address without TLS is refused"},
};
RV_EACH_HAS_ROW(telemetry_variables, N_SETTINGS);

static enum rv_semconv names_of(const char *opt_in)
{
    rv_str rest = rv_str_of(opt_in);

    while (rest.len > 0) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        rv_str word = {rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len};
        if (rv_str_is(rv_str_trim(word), "gen_ai_latest_experimental"))
            return RV_SEMCONV_DRAFT;
        size_t used = comma ? word.len + 1 : word.len;
        rest = (rv_str){rest.ptr + used, rest.len - used};
    }
    return RV_SEMCONV_1_41;
}

struct variables {
    const char *(*get)(void *self, const char *name);
    void *self;
};

/* NULL: not set; "" counts as not set. */
static const char *value_of(const struct variables *v, enum setting s)
{
    const char *text = v->get(v->self, telemetry_variables[s].name);

    return text && text[0] ? text : NULL;
}

static const char *value_or_usual(const struct variables *v, enum setting s)
{
    const char *text = value_of(v, s);

    return text ? text : telemetry_variables[s].usual;
}

static int read_bool(const struct variables *v, enum setting s, bool *out, rv_err **err)
{
    const char *text = value_or_usual(v, s);

    *out = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *out || strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0
               ? 0
               : RV_FAIL(err, RV_E_INVALID, "%s must be true or false, not \"%.60s\"", telemetry_variables[s].name,
                         text);
}

static int read_timeout(const struct variables *v, enum setting s, int64_t *out_us, rv_err **err)
{
    const char *text = value_or_usual(v, s), *p = text;
    int64_t ms = 0;

    for (; rv_is_digit(*p) && ms <= MAX_TIMEOUT_MS; p++)
        ms = ms * 10 + (*p - '0');
    if (*p || ms < 1 || ms > MAX_TIMEOUT_MS)
        return RV_FAIL(err, RV_E_INVALID, "%s must be milliseconds from 1 to %lld, not \"%.60s\"",
                       telemetry_variables[s].name, (long long)MAX_TIMEOUT_MS, text);
    *out_us = ms * 1000;
    return 0;
}

static int read_p8(const struct variables *v, struct rv_telemetry_settings *out, rv_err **err)
{
    const char *protocol = value_or_usual(v, SET_P8_PROTOCOL);
    bool may_be_plain = true;

    out->url = value_or_usual(v, SET_P8_URL);
    out->environment = "production";
    if (!value_of(v, SET_SERVICE))
        out->service = value_or_usual(v, SET_P8_SERVICE);
    if (strcmp(protocol, "http") != 0) {
        int rc = RV_FAIL(err, RV_E_INVALID, "P8_OTEL_PROTOCOL \"%.60s\" is not supported", protocol);
        rv_err_set_hint(err, "set it to http, with the address of the collector's HTTP port");
        return rc;
    }
    int rc = read_bool(v, SET_P8_INSECURE, &may_be_plain, err);
    if (rc == 0 && !may_be_plain && strncasecmp(out->url, "https://", 8) != 0)
        rc = RV_FAIL(err, RV_E_INVALID,
                     "P8_OTEL_INSECURE is false, and P8_OTEL_COLLECTOR_ENDPOINT does not begin with https://");
    return rc < 0 || value_of(v, SET_TIMEOUT) ? rc : read_timeout(v, SET_P8_TIMEOUT, &out->timeout_us, err);
}

/* Receivers that take Protobuf over HTTP take JSON, too. */
static int check_protocol(const struct variables *v, rv_err **err)
{
    const char *protocol = value_or_usual(v, SET_PROTOCOL);

    if (strcmp(protocol, "http/json") == 0 || strcmp(protocol, "http/protobuf") == 0)
        return 0;
    int rc = RV_FAIL(err, RV_E_INVALID, "OTEL_EXPORTER_OTLP_PROTOCOL \"%.60s\" is not supported", protocol);
    rv_err_set_hint(err, "set it to http/json, and OTEL_EXPORTER_OTLP_ENDPOINT to the collector's HTTP port");
    return rc;
}

int rv_telemetry_read(const char *(*get)(void *self, const char *name), void *self, const char *url,
                      struct rv_telemetry_settings *out, rv_err **err)
{
    const struct variables v = {get, self};
    const char *disabled = value_of(&v, SET_DISABLED); /* what is not "true" is false, says the specification */
    struct rv_telemetry_settings s = {.headers = value_of(&v, SET_HEADERS),
                                      .service = value_or_usual(&v, SET_SERVICE),
                                      .names = names_of(value_of(&v, SET_NAMES))};
    bool is_off = disabled && strcasecmp(disabled, "true") == 0, p8_enabled = false;

    int rc = read_timeout(&v, SET_TIMEOUT, &s.timeout_us, err);
    if (rc == 0)
        rc = read_bool(&v, SET_P8_ENABLED, &p8_enabled, err);
    if (rc < 0)
        return rc;
    if (url)
        s.url = url[0] ? url : NULL; /* "" overrides the variables */
    else if (!is_off && value_of(&v, SET_URL)) {
        s.url = value_of(&v, SET_URL);
        rc = check_protocol(&v, err);
    } else if (!is_off && p8_enabled)
        rc = read_p8(&v, &s, err);
    if (rc == 0)
        *out = s;
    return rc;
}
