/* Spans of runs, and what is written of them. tests/conformance/telemetry has others read it. */
#include <stdio.h>
#include <string.h>

#include "coreengine/telemetry/telemetry.h"
#include "tests/unit/telemetry/suites.h"

#define TIME(us) "\"time\":\"2023-11-14T22:13:20." us "Z\""

struct told {
    struct rv_rand_state state;
    rv_run_trace *trace;
    rv_buf text; /* "name[ error] start-end" of each span, in microseconds */
    struct rv_span *last;
};

static void ended(void *self, struct rv_span *span)
{
    struct told *t = self;

    rv_buf_printf(&t->text, "%s%s %lld-%lld\n", span->name, span->is_error ? " error" : "",
                  (long long)(span->start_us - INT64_C(1700000000000000)),
                  (long long)(span->end_us - INT64_C(1700000000000000)));
    rv_span_free(t->last);
    t->last = span;
}

static void told_open(struct told *t, enum rv_semconv names)
{
    *t = (struct told){.text = RV_BUF_INIT(1 << 20)};
    const struct rv_run_trace_opts opts = {
        .names = names, .rand = rv_rand_seeded(&t->state, 1), .run = "run_1", .ended = ended, .self = t};
    ck_assert_int_eq(rv_run_trace_new(&opts, &t->trace, NULL), 0);
}

static void tell(struct told *t, const char *line)
{
    json_object *event = rv_telemetry_parse_event(rv_str_of(line));

    rv_run_trace_add(t->trace, event);
    json_object_put(event);
}

static void told_close(struct told *t)
{
    rv_run_trace_free(t->trace);
    rv_span_free(t->last);
    rv_buf_fini(&t->text);
}

#define BEGIN_RUN   "{\"type\":\"pipeline_started\"," TIME("000001") ",\"pipeline\":\"p\",\"session_id\":\"s\"}"
#define BEGIN_STAGE "{\"type\":\"stage_started\"," TIME("000002") ",\"stage\":\"a\",\"visit\":1}"
#define BEGIN_MODEL                                                                                                    \
    "{\"type\":\"llm_call_start\"," TIME("000003") ",\"stage\":\"a\",\"visit\":1,\"call_id\":7,\"role\":\"r\","        \
                                                   "\"model\":\"mistral:large\"}"
#define END_MODEL                                                                                                      \
    "{\"type\":\"llm_result\"," TIME("000009") ",\"stage\":\"a\",\"visit\":1,\"call_id\":7,\"status\":\"success\","    \
                                               "\"finish_reason\":\"stop\",\"input_tokens\":3}"

/* Proves 8.3/spans: Trace spans of a run and of each stage */
START_TEST(a_run_that_goes_no_further_ends_its_spans)
{
    struct told told, *t = &told;

    told_open(t, RV_SEMCONV_1_41);
    tell(t, BEGIN_RUN);
    tell(t, BEGIN_STAGE);
    tell(t, BEGIN_MODEL);
    ck_assert(rv_trace_is_set(&(struct rv_trace_context){.trace = {1}, .span = {1}}));
    rv_run_trace_end(t->trace, INT64_C(1700000000000005));
    ck_assert_str_eq(rv_buf_cstr(&t->text),
                     "chat large error 3-5\nreeve.stage a error 2-5\ninvoke_workflow p error 1-5\n");
    told_close(t);
}
END_TEST

START_TEST(a_run_without_a_caller_has_the_trace_of_its_rows)
{
    struct told told, *t = &told;
    char want[RV_HASH_MAX], got[33];

    told_open(t, RV_SEMCONV_1_41);
    tell(t, BEGIN_RUN);
    tell(t, BEGIN_STAGE);
    rv_run_trace_end(t->trace, INT64_C(1700000000000005));
    rv_hash_format(RV_STR_LIT("run_1"), want);
    want[32] = '\0';
    rv_hex_make(t->last->id.trace, sizeof t->last->id.trace, got);
    got[32] = '\0';
    ck_assert_str_eq(got, want);
    told_close(t);
}
END_TEST

/* Rows and requests make the same ids from what they know. */
START_TEST(ids_of_visits_and_calls_follow_from_the_run)
{
    static const struct rv_trace_span call = {.run = "run_1", .call_id = 7};
    static const struct rv_trace_span visit = {.run = "run_1", .stage = "a", .visit = 1};
    struct told told, *t = &told;
    unsigned char want[8];

    told_open(t, RV_SEMCONV_1_41);
    tell(t, BEGIN_RUN);
    tell(t, BEGIN_STAGE);
    tell(t, BEGIN_MODEL);
    tell(t, END_MODEL);
    rv_trace_make_span_id(&call, want);
    ck_assert_int_eq(memcmp(t->last->id.span, want, sizeof want), 0);
    tell(t, "{\"type\":\"stage_completed\"," TIME("000010") ",\"stage\":\"a\",\"visit\":1}");
    rv_trace_make_span_id(&visit, want);
    ck_assert_int_eq(memcmp(t->last->id.span, want, sizeof want), 0);
    told_close(t);
}
END_TEST

START_TEST(lines_that_are_no_events_are_counted)
{
    static const char *const lines[] = {"",
                                        "x",
                                        "[]",
                                        "{}",
                                        "{\"type\":\"done\"}",
                                        "{\"type\":7,\"time\":\"x\"}",
                                        "{\"type\":\"done\",\"time\":\"yesterday\"}"};
    struct told told, *t = &told;

    told_open(t, RV_SEMCONV_1_41);
    for (size_t i = 0; i < RV_COUNT(lines); i++)
        tell(t, lines[i]);
    ck_assert_int_eq(rv_run_trace_dropped(t->trace), RV_COUNT(lines));
    tell(t, END_MODEL); /* of a call that did not begin */
    tell(t, "{\"type\":\"done\"," TIME("000001") "}");
    ck_assert_str_eq(rv_buf_cstr(&t->text), "");
    told_close(t);
}
END_TEST

START_TEST(spans_that_are_open_are_bounded)
{
    struct told told, *t = &told;
    char line[300];

    told_open(t, RV_SEMCONV_1_41);
    tell(t, BEGIN_RUN);
    for (int i = 0; i < RV_TRACE_MAX_OPEN + 5; i++) {
        snprintf(line, sizeof line, "{\"type\":\"stage_started\"," TIME("000002") ",\"stage\":\"s%d\",\"visit\":1}", i);
        tell(t, line);
    }
    ck_assert_int_eq(rv_run_trace_dropped(t->trace), 6);
    told_close(t); /* what is open goes with it */
}
END_TEST

START_TEST(a_span_is_written_as_collectors_read_it)
{
    struct told told, *t = &told;
    const struct rv_otlp_resource r = {.service = "svc", .version = "1", .instance = "i"};
    rv_buf out = RV_BUF_INIT(10000);

    told_open(t, RV_SEMCONV_1_41);
    tell(t, BEGIN_RUN);
    tell(t, BEGIN_STAGE);
    tell(t, BEGIN_MODEL);
    tell(t, END_MODEL);
    rv_otlp_write_spans(&r, &t->last, 1, &out);
    const char *text = rv_buf_cstr(&out);
    static const char *const parts[] = {
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":"
        "\"svc\"}}",
        "\"name\":\"chat large\",\"kind\":3,\"startTimeUnixNano\":\"1700000000000003000\",\"endTimeUnixNano\":"
        "\"1700000000000009000\"",
        "{\"key\":\"gen_ai.provider.name\",\"value\":{\"stringValue\":\"mistral_ai\"}}",
        "{\"key\":\"gen_ai.response.finish_reasons\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":\"stop\"}]"
        "}}}",
        "{\"key\":\"gen_ai.usage.input_tokens\",\"value\":{\"intValue\":\"3\"}}",
        "\"status\":{\"code\":0}}]}]}]}",
        "\"flags\":257"};
    for (size_t i = 0; i < RV_COUNT(parts); i++)
        ck_assert_msg(strstr(text, parts[i]), "%s is not in %s", parts[i], text);
    rv_buf_fini(&out);
    told_close(t);
}
END_TEST

START_TEST(attributes_are_bounded)
{
    static char keys[RV_SPAN_MAX_ATTRS + 2][8];
    char text[3000];
    struct rv_span *s = NULL;

    ck_assert_int_eq(rv_span_new("n", RV_SPAN_INTERNAL, &s, NULL), 0);
    for (int i = 0; i < RV_SPAN_MAX_ATTRS + 2; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        rv_span_set_int(s, keys[i], i);
    }
    ck_assert_uint_eq(s->n_attrs, RV_SPAN_MAX_ATTRS);
    ck_assert_uint_eq(s->n_dropped, 2);
    memset(text, 'x', sizeof text);
    text[RV_SPAN_MAX_TEXT - 1] = '\xc3'; /* a character that the cut would go through */
    text[RV_SPAN_MAX_TEXT] = '\xa4';
    rv_span_set_text(s, "k0", (rv_str){text, sizeof text});
    ck_assert_uint_eq(s->attrs[0].text.len, RV_SPAN_MAX_TEXT - 1);
    rv_span_set_text(s, "k0", RV_STR_LIT("\xff"));
    ck_assert_uint_eq(s->n_dropped, 3);
    rv_span_set_double(s, "k1", 1.0 / 0.0);
    ck_assert_int_eq((int)s->attrs[1].kind, RV_ATTR_INT);
    rv_span_free(s);
}
END_TEST

static const struct {
    int status;
    const char *after;
    bool again;
    int64_t wait_us;
} answers[] = {
    {200, "", false, 0},
    {400, "5", false, 0},
    {0, "", true, 0},
    {429, "5", true, 5000000},
    {503, "", true, 0},
    {503, "Wed, 1", true, 0},
    {500, "", false, 0},
    {502, "0", true, 0},
    {504, "99999999999999999999", true, INT64_C(3600000000)},
    {503, "3601", true, INT64_C(3600000000)},
    {503, "86400", true, INT64_C(3600000000)},
    {503, "99999x", true, 0},
};
START_TEST(what_a_collector_answers_says_whether_to_repeat)
{
    int64_t wait = -1;

    ck_assert_int_eq(rv_otlp_needs_retry(answers[_i].status, rv_str_of(answers[_i].after), &wait), answers[_i].again);
    ck_assert_int_eq(wait, answers[_i].wait_us);
}
END_TEST

static const struct {
    const char *body, *says;
    int64_t n;
} said[] = {
    {"", "", 0},
    {"{}", "{}", 0},
    {"{\"partialSuccess\": {}}", "", 0},
    {"{\"partialSuccess\": {\"rejectedSpans\": \"3\", \"errorMessage\": \"too old\"}}", "too old", 3},
    {"{\"partialSuccess\": {\"rejectedDataPoints\": 2}}", "", 2},
    {"{\"partialSuccess\": {\"rejectedSpans\": \"-1\"}}", "", 0},
    {"{\"partialSuccess\": {\"rejectedSpans\": \"9223372036854775807\", \"rejectedDataPoints\": 9223372036854775807}}",
     "", INT64_C(2) * INT32_MAX},
    {"{\"code\": 3, \"message\": \"bad token\"}", "bad token", 0},
    {"{\"message\": 3}", "{\"message\": 3}", 0},
    {" no route\n", "no route", 0},
    {"\x08\x03\x12\xff", "", 0},
};
START_TEST(what_a_collector_says_is_read)
{
    RV_AUTO(rv_buf_fini) rv_buf says = RV_BUF_INIT(1000);

    ck_assert_int_eq(rv_otlp_read_answer(rv_str_of(said[_i].body), &says), said[_i].n);
    ck_assert_str_eq(rv_buf_cstr(&says), said[_i].says);
}
END_TEST

TCase *spans_case(void)
{
    TCase *tc = tcase_create("spans");

    tcase_add_test(tc, a_run_that_goes_no_further_ends_its_spans);
    tcase_add_test(tc, a_run_without_a_caller_has_the_trace_of_its_rows);
    tcase_add_test(tc, ids_of_visits_and_calls_follow_from_the_run);
    tcase_add_test(tc, lines_that_are_no_events_are_counted);
    tcase_add_test(tc, spans_that_are_open_are_bounded);
    tcase_add_test(tc, a_span_is_written_as_collectors_read_it);
    tcase_add_test(tc, attributes_are_bounded);
    tcase_add_loop_test(tc, what_a_collector_answers_says_whether_to_repeat, 0, RV_COUNT(answers));
    tcase_add_loop_test(tc, what_a_collector_says_is_read, 0, RV_COUNT(said));
    return tc;
}
