/* Where spans and metrics go, by the variables of OpenTelemetry and of p8. */
#include <string.h>

#include "coreengine/telemetry/telemetry.h"
#include "tests/unit/telemetry/suites.h"

#define P8   "P8_OTEL_ENABLED=true;"
#define HERE "http://localhost:4318"
static const struct {
    const char *variables; /* "NAME=VALUE;..." */
    const char *option;    /* --otlp */
    const char *url, *service, *environment;
    int64_t timeout_us;
} told[] = {
    {"", NULL, NULL, "reeve", NULL, 10000000},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a;OTEL_SERVICE_NAME=shop;OTEL_EXPORTER_OTLP_TIMEOUT=250;", NULL, "http://a",
     "shop", NULL, 250000},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a;", "http://b", "http://b", "reeve", NULL, 10000000},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a;", "", NULL, "reeve", NULL, 10000000},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=;", NULL, NULL, "reeve", NULL, 10000000},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a;OTEL_SDK_DISABLED=True;", NULL, NULL, "reeve", NULL, 10000000},
    {"OTEL_SDK_DISABLED=true;", "http://b", "http://b", "reeve", NULL, 10000000},
    {"OTEL_SDK_DISABLED=perhaps;OTEL_EXPORTER_OTLP_ENDPOINT=http://a;", NULL, "http://a", "reeve", NULL, 10000000},
    {P8, NULL, HERE, "p8-api", "production", 10000000},
    {"P8_OTEL_ENABLED=1;P8_OTEL_EXPORT_TIMEOUT=9;P8_OTEL_SERVICE_NAME=s;P8_OTEL_COLLECTOR_ENDPOINT=http://c;", NULL,
     "http://c", "s", "production", 9000},
    {P8 "P8_OTEL_PROTOCOL=http;P8_OTEL_INSECURE=false;P8_OTEL_COLLECTOR_ENDPOINT=https://c;", NULL, "https://c",
     "p8-api", "production", 10000000},
    {"P8_OTEL_ENABLED=false;P8_OTEL_COLLECTOR_ENDPOINT=http://c;P8_OTEL_PROTOCOL=grpc;", NULL, NULL, "reeve", NULL,
     10000000},
    {P8 "OTEL_SDK_DISABLED=true;", NULL, NULL, "reeve", NULL, 10000000},
    {P8 "P8_OTEL_EXPORT_TIMEOUT=9;OTEL_EXPORTER_OTLP_TIMEOUT=8;OTEL_SERVICE_NAME=o;", NULL, HERE, "o", "production",
     8000},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a;OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf;", NULL, "http://a", "reeve", NULL,
     10000000},
    {P8 "OTEL_EXPORTER_OTLP_ENDPOINT=http://a;P8_OTEL_PROTOCOL=grpc;", NULL, "http://a", "reeve", NULL, 10000000},
};
static const struct {
    const char *collector, *url, *shown;
} addresses[] = {
    {"http://c:4318", "http://c:4318/v1/traces", "http://c:4318"},
    {"https://c/otlp//", "https://c/otlp/v1/traces", "https://c/otlp"},
    {"https://c/otlp/?key=k/&a=b", "https://c/otlp/v1/traces?key=k/&a=b", "https://c/otlp"},
    {"https://c?key=k", "https://c/v1/traces?key=k", "https://c"},
    {"https://c/#part?", "https://c/v1/traces", "https://c"},
    {"https://u:p@q@c/@x?y@z", "https://u:p@q@c/@x/v1/traces?y@z", "https://c/@x"},
    {"u:p@c/x", "u:p@c/x/v1/traces", "c/x"},
    {"http://u:p@", "http://u:p@/v1/traces", "http://"},
    {"http://", "http:/v1/traces", "http://"},
};
static const struct {
    const char *variables, *says;
} wrong[] = {
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a;OTEL_EXPORTER_OTLP_PROTOCOL=grpc;",
     "OTEL_EXPORTER_OTLP_PROTOCOL \"grpc\" is not supported"},
    {P8 "P8_OTEL_PROTOCOL=grpc;", "P8_OTEL_PROTOCOL \"grpc\" is not supported"},
    {P8 "P8_OTEL_INSECURE=false;",
     "P8_OTEL_INSECURE is false, and P8_OTEL_COLLECTOR_ENDPOINT does not begin with https://"},
    {P8 "P8_OTEL_INSECURE=no;", "P8_OTEL_INSECURE must be true or false, not \"no\""},
    {"P8_OTEL_ENABLED=yes;", "P8_OTEL_ENABLED must be true or false, not \"yes\""},
    {P8 "P8_OTEL_EXPORT_TIMEOUT=10s;", "P8_OTEL_EXPORT_TIMEOUT must be milliseconds from 1 to 600000, not \"10s\""},
    {"OTEL_EXPORTER_OTLP_TIMEOUT=0;", "OTEL_EXPORTER_OTLP_TIMEOUT must be milliseconds from 1 to 600000, not \"0\""},
    {"OTEL_EXPORTER_OTLP_TIMEOUT=99999999999999999999;",
     "OTEL_EXPORTER_OTLP_TIMEOUT must be milliseconds from 1 to 600000, not \"99999999999999999999\""},
};

struct variables {
    const char *text;
};

static const char *get(void *self, const char *name)
{
    static char values[32][100]; /* texts stay, as those of an environment do */
    static size_t n;
    const struct variables *v = self;

    for (const char *p = v->text; *p; p = strchr(p, ';') + 1) {
        size_t len = strlen(name), n_value;
        if (strncmp(p, name, len) != 0 || p[len] != '=')
            continue;
        n_value = strcspn(p + len + 1, ";");
        char *value = values[n++ % RV_COUNT(values)];
        memcpy(value, p + len + 1, n_value);
        value[n_value] = '\0';
        return value;
    }
    return NULL;
}

START_TEST(variables_say_where_spans_go)
{
    struct variables v = {.text = told[_i].variables};
    struct rv_telemetry_settings s;

    ck_assert_int_eq(rv_telemetry_read(get, &v, told[_i].option, &s, NULL), 0);
    ck_assert_pstr_eq(s.url, told[_i].url);
    ck_assert_str_eq(s.service, told[_i].service);
    ck_assert_pstr_eq(s.environment, told[_i].environment);
    ck_assert_int_eq(s.timeout_us, told[_i].timeout_us);
}
END_TEST

START_TEST(paths_stand_before_a_query_and_secrets_are_not_shown)
{
    RV_AUTO(rv_buf_fini) rv_buf url = RV_BUF_INIT(1000);
    RV_AUTO(rv_buf_fini) rv_buf shown = RV_BUF_INIT(1000);

    rv_otlp_write_url(addresses[_i].collector, "/v1/traces", &url);
    rv_otlp_write_shown_url(addresses[_i].collector, &shown);
    ck_assert_str_eq(rv_buf_cstr(&url), addresses[_i].url);
    ck_assert_str_eq(rv_buf_cstr(&shown), addresses[_i].shown);
}
END_TEST

START_TEST(values_that_mean_nothing_are_refused)
{
    struct variables v = {.text = wrong[_i].variables};
    struct rv_telemetry_settings s;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_telemetry_read(get, &v, NULL, &s, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), wrong[_i].says);
    rv_err_free(err);
}
END_TEST

START_TEST(names_follow_what_is_asked_for)
{
    static const struct {
        const char *variables;
        enum rv_semconv names;
    } cases[] = {{"", RV_SEMCONV_1_41},
                 {"OTEL_SEMCONV_STABILITY_OPT_IN=http/dup, gen_ai_latest_experimental;", RV_SEMCONV_DRAFT},
                 {"OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest;", RV_SEMCONV_1_41}};

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        struct variables v = {.text = cases[i].variables};
        struct rv_telemetry_settings s;
        ck_assert_int_eq(rv_telemetry_read(get, &v, NULL, &s, NULL), 0);
        ck_assert_int_eq((int)s.names, (int)cases[i].names);
    }
}
END_TEST

TCase *settings_case(void)
{
    TCase *tc = tcase_create("settings");

    tcase_add_loop_test(tc, variables_say_where_spans_go, 0, RV_COUNT(told));
    tcase_add_loop_test(tc, paths_stand_before_a_query_and_secrets_are_not_shown, 0, RV_COUNT(addresses));
    tcase_add_loop_test(tc, values_that_mean_nothing_are_refused, 0, RV_COUNT(wrong));
    tcase_add_test(tc, names_follow_what_is_asked_for);
    return tc;
}
