/* What each status and error of the vendors becomes (sections 1.6 and 3.5 of their protocols, and the vectors for
 * retries): its kind, and how often it was asked. */
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

#define OPENAI_ERROR(code)    "{\"error\":{\"message\":\"no luck\",\"type\":\"x\",\"param\":null,\"code\":" code "}}"
#define ANTHROPIC_ERROR(type) "{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"no luck\"}}"

static const struct {
    const char *id, *provider;
    struct answer answer;
    int kind; /* -1: it is answered in the end */
    size_t n_sent;
} cases[] = {
    {"400", "openai", {.status = 400}, RV_LLM_ERROR_BAD_REQUEST, 1},
    {"400 context",
     "openai",
     {.status = 400, .body = OPENAI_ERROR("\"context_length_exceeded\"")},
     RV_LLM_ERROR_CONTEXT_TOO_LONG,
     1},
    {"401", "openai", {.status = 401}, RV_LLM_ERROR_AUTH, 1},
    {"403", "openai", {.status = 403}, RV_LLM_ERROR_AUTH, 1},
    {"404", "openai", {.status = 404}, RV_LLM_ERROR_BAD_REQUEST, 1},
    {"408", "openai", {.status = 408}, RV_LLM_ERROR_TIMEOUT, 3},
    {"409", "openai", {.status = 409}, RV_LLM_ERROR_OVERLOADED, 3},
    {"413", "openai", {.status = 413}, RV_LLM_ERROR_CONTEXT_TOO_LONG, 1},
    {"422", "openai", {.status = 422}, RV_LLM_ERROR_BAD_REQUEST, 1},
    {"429", "openai", {.status = 429}, RV_LLM_ERROR_RATE_LIMITED, 3},
    {"429 quota",
     "openai",
     {.status = 429, .body = OPENAI_ERROR("\"insufficient_quota\"")},
     RV_LLM_ERROR_RATE_LIMITED,
     1},
    {"429 quota, and a header that asks to try again",
     "openai",
     {.status = 429, .body = OPENAI_ERROR("\"insufficient_quota\""), .headers = "x-should-retry: true"},
     RV_LLM_ERROR_RATE_LIMITED,
     1},
    {"500", "openai", {.status = 500}, RV_LLM_ERROR_OVERLOADED, 3},
    {"502 of a proxy",
     "openai",
     {.status = 502, .type = "text/html", .body = "<html><h1>Bad Gateway</h1>"},
     RV_LLM_ERROR_OVERLOADED,
     3},
    {"503", "openai", {.status = 503}, RV_LLM_ERROR_OVERLOADED, 3},
    {"504", "openai", {.status = 504}, RV_LLM_ERROR_TIMEOUT, 3},
    {"529", "openai", {.status = 529}, RV_LLM_ERROR_OVERLOADED, 3},
    {"599", "openai", {.status = 599}, RV_LLM_ERROR_OVERLOADED, 3},
    {"400, and a header that asks to try again",
     "openai",
     {.status = 400, .headers = "x-should-retry: true"},
     RV_LLM_ERROR_BAD_REQUEST,
     3},
    {"503, and a header that forbids it",
     "openai",
     {.status = 503, .headers = "x-should-retry: false"},
     RV_LLM_ERROR_OVERLOADED,
     1},
    {"an unknown word in that header",
     "openai",
     {.status = 400, .headers = "x-should-retry: maybe"},
     RV_LLM_ERROR_BAD_REQUEST,
     1},
    {"301", "openai", {.status = 301, .headers = "location: http://other/v1?k=1"}, RV_LLM_ERROR_PROTOCOL, 1},
    {"anthropic 400",
     "anthropic",
     {.status = 400, .body = ANTHROPIC_ERROR("invalid_request_error")},
     RV_LLM_ERROR_BAD_REQUEST,
     1},
    {"anthropic 401",
     "anthropic",
     {.status = 401, .body = ANTHROPIC_ERROR("authentication_error")},
     RV_LLM_ERROR_AUTH,
     1},
    {"anthropic 402",
     "anthropic",
     {.status = 402, .body = ANTHROPIC_ERROR("billing_error")},
     RV_LLM_ERROR_RATE_LIMITED,
     1},
    {"anthropic 403", "anthropic", {.status = 403, .body = ANTHROPIC_ERROR("permission_error")}, RV_LLM_ERROR_AUTH, 1},
    {"anthropic 404",
     "anthropic",
     {.status = 404, .body = ANTHROPIC_ERROR("not_found_error")},
     RV_LLM_ERROR_BAD_REQUEST,
     1},
    {"anthropic 413",
     "anthropic",
     {.status = 413, .body = ANTHROPIC_ERROR("request_too_large")},
     RV_LLM_ERROR_CONTEXT_TOO_LONG,
     1},
    {"anthropic 429",
     "anthropic",
     {.status = 429, .body = ANTHROPIC_ERROR("rate_limit_error"), .headers = "retry-after: 1"},
     RV_LLM_ERROR_RATE_LIMITED,
     3},
    {"anthropic 429 for money",
     "anthropic",
     {.status = 429,
      .body = "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"no\",\"details\":"
              "{\"error_code\":\"enforced_spend_limit_reached\"}}}"},
     RV_LLM_ERROR_RATE_LIMITED,
     1},
    {"anthropic 500", "anthropic", {.status = 500, .body = ANTHROPIC_ERROR("api_error")}, RV_LLM_ERROR_OVERLOADED, 3},
    {"anthropic 504", "anthropic", {.status = 504, .body = ANTHROPIC_ERROR("timeout_error")}, RV_LLM_ERROR_TIMEOUT, 3},
    {"anthropic 529",
     "anthropic",
     {.status = 529, .body = ANTHROPIC_ERROR("overloaded_error")},
     RV_LLM_ERROR_OVERLOADED,
     3},
    {"an error object under a good status",
     "openai",
     {.status = 200, .body = "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\"}}\n\n"},
     RV_LLM_ERROR_OVERLOADED,
     3},
    {"an empty stream", "openai", {.status = 200, .body = ""}, RV_LLM_ERROR_PROTOCOL, 3},
    {"a web page under a good status",
     "openai",
     {.status = 200, .type = "text/html", .body = "<html>Log in</html>"},
     RV_LLM_ERROR_PROTOCOL,
     3},
    {"refused", "openai", {.fault = RV_HTTP_UNREACHABLE}, RV_LLM_ERROR_CONNECTION, 3},
    {"not even started", "openai", {.is_refused = true}, RV_LLM_ERROR_CONNECTION, 3},
    {"cut before an answer", "openai", {.fault = RV_HTTP_CUT, .was_sent = true}, RV_LLM_ERROR_CONNECTION, 3},
    {"no time to connect", "openai", {.fault = RV_HTTP_CONNECT_TIME}, RV_LLM_ERROR_TIMEOUT, 3},
    {"no first byte", "openai", {.fault = RV_HTTP_FIRST_BYTE_TIME, .was_sent = true}, RV_LLM_ERROR_TIMEOUT, 3},
    {"silence", "openai", {.fault = RV_HTTP_IDLE_TIME, .was_sent = true}, RV_LLM_ERROR_TIMEOUT, 3},
    {"no HTTP", "openai", {.fault = RV_HTTP_BAD_ANSWER, .was_sent = true}, RV_LLM_ERROR_PROTOCOL, 3},
    {"an end without a beginning", "openai", {.fault = RV_HTTP_OK, .was_sent = true}, RV_LLM_ERROR_PROTOCOL, 3},
    {"our own fault", "openai", {.fault = RV_HTTP_LOCAL}, RV_LLM_ERROR_CONNECTION, 3},
    {"cut in the text of an error",
     "openai",
     {.status = 503, .body = "{\"err", .fault = RV_HTTP_CUT},
     RV_LLM_ERROR_OVERLOADED,
     3},
    {"too large",
     "openai",
     {.status = 200, .body = ": nothing\n\n", .fault = RV_HTTP_TOO_LARGE},
     RV_LLM_ERROR_PROTOCOL,
     1},
    {"all is well", "openai", {.status = 200}, -1, 1},
    {"cut after the end mark", "openai", {.status = 200, .fault = RV_HTTP_CUT}, -1, 1},
    {"silent after the end mark", "openai", {.status = 200, .fault = RV_HTTP_IDLE_TIME}, -1, 1},
};

/* Proves 12.2/status */
START_TEST(each_answer_has_its_kind_and_number_of_attempts)
{
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", cases[_i].provider, "some-model", NULL);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &cases[_i].answer, 1);
    const struct rv_llm_reply *r = rv_exchange_reply(x);
    ck_assert_msg(r->failed == (cases[_i].kind >= 0), "%s: %s", cases[_i].id, world_error(x));
    ck_assert_msg(r->answer.error_kind == cases[_i].kind, "%s: kind %d, %s", cases[_i].id, r->answer.error_kind,
                  world_error(x));
    ck_assert_msg(w.n_sent == cases[_i].n_sent, "%s: sent %zu times", cases[_i].id, w.n_sent);
    ck_assert_int_eq(r->answer.attempts, (int64_t)w.n_sent);
    if (r->failed)
        ck_assert_msg(r->error.len > 0 && rv_utf8_valid(rv_buf_str(&r->error), NULL), "%s", cases[_i].id);
    else
        ck_assert_str_eq(rv_buf_cstr(&r->text), "Hello");
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

static const struct {
    const char *id, *provider, *options;
    struct answer answer;
    const char *want;
} texts[] = {
    {"status, words, attempts, request id",
     "openai",
     NULL,
     {.status = 429, .headers = "x-request-id: req_7"},
     "openai some-model at api.openai.com answered with status 429: no luck (x), after 3 attempts (request id req_7)"},
    {"the other vendor's id",
     "anthropic",
     NULL,
     {.status = 401, .headers = "request-id: req_8", .body = ANTHROPIC_ERROR("authentication_error")},
     "anthropic some-model at api.anthropic.com answered with status 401: no luck (request id req_8)"},
    {"a redirection",
     "openai",
     "{'base_url':'http://h:81/v1'}",
     {.status = 308, .headers = "location: https://h/v1/x?key=1", .body = ""},
     "openai some-model at h:81 answered with status 308 (application/json) and no text; it points to https://h/v1/x, "
     "but redirections are not followed"},
    {"connect",
     "openai",
     "{'connect_timeout_ms':250,'max_attempts':1}",
     {.fault = RV_HTTP_CONNECT_TIME},
     "openai some-model at api.openai.com: no connection within 250 ms (connect_timeout_ms of the role)"},
    {"first byte",
     "openai",
     "{'first_byte_timeout_ms':251,'max_attempts':1}",
     {.fault = RV_HTTP_FIRST_BYTE_TIME},
     "openai some-model at api.openai.com: no answer within 251 ms (first_byte_timeout_ms of the role)"},
    {"silence in a stream",
     "openai",
     "{'idle_timeout_ms':252}",
     {.status = 200, .body = HALF, .fault = RV_HTTP_IDLE_TIME},
     "openai some-model at api.openai.com: nothing more came for 252 ms (idle_timeout_ms of the role); not repeated: a "
     "part of the answer had come already"},
    {"unreachable",
     "openai",
     "{'max_attempts':2}",
     {.fault = RV_HTTP_UNREACHABLE},
     "openai some-model at api.openai.com: the other side is gone, after 2 attempts"},
    {"the host is said once",
     "openai",
     "{'max_attempts':1}",
     {.fault = RV_HTTP_CUT, .text = "api.openai.com: reset"},
     "openai some-model at api.openai.com: reset"},
    {"with its port, too",
     "openai",
     "{'max_attempts':1}",
     {.fault = RV_HTTP_CUT, .text = "api.openai.com:443: reset"},
     "openai some-model at api.openai.com: reset"},
    {"another host is kept",
     "openai",
     "{'max_attempts':1}",
     {.fault = RV_HTTP_CUT, .text = "api.openai.community: x"},
     "openai some-model at api.openai.com: api.openai.community: x"},
    {"a text of the host alone",
     "openai",
     "{'max_attempts':1}",
     {.fault = RV_HTTP_CUT, .text = "api.openai.com: "},
     "openai some-model at api.openai.com: api.openai.com: "},
    {"not started",
     "openai",
     "{'max_attempts':1}",
     {.is_refused = true},
     "openai some-model at api.openai.com: no descriptor is left"},
    {"no key",
     "groq",
     NULL,
     {.status = 200},
     "groq some-model at api.groq.com: there is no API key for the provider \"groq\" (set GROQ_API_KEY, or write "
     "api_key: ${env:NAME} in the role's entry of models)"},
    {"no such provider",
     "opnai",
     NULL,
     {.status = 200},
     "opnai some-model: unknown provider \"opnai\" (did you mean \"openai\"?)"},
};

START_TEST(errors_say_who_where_what_and_how_often)
{
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", texts[_i].provider, "some-model", texts[_i].options);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &texts[_i].answer, 1);
    ck_assert_str_eq(world_error(x), texts[_i].want);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_role_without_a_model_is_its_reply)
{
    struct world w;
    struct rv_exchange_opts opts;
    rv_exchange *x;

    world_init(&w);
    opts = world_opts(&w, "judge");
    x = world_exchange(&w, &opts);
    world_drive(&w, x, NULL, 0);
    ck_assert_str_eq(world_error(x), "there is no model for the role \"judge\"");
    ck_assert_str_eq(rv_exchange_role(x), "judge");
    ck_assert_int_eq(rv_exchange_reply(x)->answer.error_kind, RV_LLM_ERROR_BAD_REQUEST);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

TCase *statuses_case(void)
{
    TCase *tc = tcase_create("statuses");

    tcase_add_loop_test(tc, each_answer_has_its_kind_and_number_of_attempts, 0, (int)RV_COUNT(cases));
    tcase_add_loop_test(tc, errors_say_who_where_what_and_how_often, 0, (int)RV_COUNT(texts));
    tcase_add_test(tc, a_role_without_a_model_is_its_reply);
    return tc;
}
