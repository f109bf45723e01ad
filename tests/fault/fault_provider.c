/* Every allocation of the provider module fails once, in exchanges of several kinds: no crash, no leak, and the failure
 * is told, by the code or by the reply. */
#include <check.h>
#include <string.h>

#include "coreengine/model/provider/provider.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define START_US INT64_C(1790000000000000)
#define MAX_ASKS 100

static const char hello[] = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n"
                            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
                            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}\n\n"
                            "data: [DONE]\n\n";
static const char limited[] = "{\"error\":{\"message\":\"slow down\",\"type\":\"x\",\"code\":null}}";

struct answer {
    int status; /* 0: no head comes */
    const char *type, *body;
    enum rv_http_fault fault;
};
static const struct answer answers[][4] = {
    {{200, "text/event-stream", hello, RV_HTTP_OK}},
    {{429, "application/json", limited, RV_HTTP_OK},
     {502, "text/html", "<html>", RV_HTTP_OK},
     {0, NULL, NULL, RV_HTTP_FIRST_BYTE_TIME},
     {200, "text/event-stream", hello, RV_HTTP_OK}},
    {{401, "application/json", limited, RV_HTTP_OK}, {0, NULL, NULL, RV_HTTP_UNREACHABLE}},
    {{200, "text/event-stream", ": ping\n\n", RV_HTTP_CUT}, {200, "text/html", "<html>", RV_HTTP_OK}},
    {{503, "application/json", limited, RV_HTTP_OK},
     {503, "application/json", limited, RV_HTTP_OK},
     {503, "application/json", limited, RV_HTTP_OK},
     {503, "application/json", limited, RV_HTTP_OK}},
};
static struct rv_model_config models[3];
static const struct rv_model_config *fallbacks[2] = {&models[1], &models[2]};
static const struct rv_pipeline pipeline = {.models = models, .n_models = 3};
static json_object *request;

static const char *get_env(void *self, const char *name)
{
    (void)self;
    return strcmp(name, "OPENAI_API_KEY") == 0 ? "sk-0123456789" : NULL;
}

static int feed(rv_exchange *x, const struct answer *a, int64_t now_us)
{
    struct rv_http_head head = {.status = a->status, .content_type = rv_str_of(a->type), .n_headers = 1};
    struct rv_http_end end = {.fault = a->fault, .was_sent = true, .text = "it broke"};
    rv_err *err = NULL;
    int rc = 0;

    head.headers[0].name = RV_STR_LIT("x-request-id");
    head.headers[0].value = RV_STR_LIT("req_1");
    if (a->status)
        rc = rv_exchange_on_head(x, &head, now_us, &err);
    if (rc == 0 && a->status)
        rc = rv_exchange_on_body(x, rv_str_of(a->body), now_us, &err);
    if (rc == 0)
        rc = rv_exchange_on_end(x, &end, now_us + 1, &err);
    if (rc == 0 && err) /* what was told is told by the code too */
        rc = RV_E_INTERNAL;
    rv_err_free(err);
    return rc;
}

static int drive(rv_exchange *x, const struct answer *list)
{
    int64_t now_us = START_US, at_us;
    size_t n_sent = 0;
    int rc = 0;

    for (int i = 0; i < MAX_ASKS; i++) {
        switch (rv_exchange_next(x, now_us, &at_us)) {
        case RV_EXCHANGE_DONE:
            if (strstr(rv_buf_cstr(&rv_exchange_reply(x)->error), "no memory left"))
                return RV_E_NOMEM;
            if (rc == 0 && rv_exchange_reply(x)->failed && !rv_exchange_reply(x)->error.len)
                return RV_E_INTERNAL; /* a failure always has a text */
            return rc;
        case RV_EXCHANGE_WAIT:
            if (at_us == INT64_MAX)
                return RV_E_STATE;
            now_us = at_us;
            break;
        case RV_EXCHANGE_SEND:
            rc = feed(x, &list[n_sent < 4 ? n_sent : 3], now_us);
            n_sent++;
            if (rc < 0 && rc != RV_E_NOMEM)
                return rc;
            break;
        }
    }
    return RV_E_STATE;
}

static int exchange(size_t i)
{
    struct rv_exchange_opts opts = {.pipeline = &pipeline, .role = "default", .request = request, .now_us = START_US};
    rv_providers *p = rv_providers_new((struct rv_provider_env){get_env, NULL});
    rv_exchange *x = NULL;
    rv_err *err = NULL;
    int rc = p ? 0 : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_exchange_new(p, &opts, &x, &err);
    if (rc == 0)
        rc = drive(x, answers[i]);
    rv_exchange_free(x);
    rv_providers_free(p);
    rv_err_free(err);
    return rc;
}

static int embed(size_t i)
{
    struct rv_provider_env env = {get_env, NULL};
    struct rv_embed_target t;
    rv_err *err = NULL;
    int rc = rv_provider_find_embed_target(env, "openai", "m", models[0].options, &t, &err);

    (void)i;
    if (rc == 0)
        rv_embed_target_fini(&t);
    rv_err_free(err);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(size_t i);
    size_t i;
} scenarios[] = {
    {"an answer", exchange, 0},      {"repeats", exchange, 1}, {"fallbacks that fail", exchange, 2},
    {"broken streams", exchange, 3}, {"embeddings", embed, 0}, {"a breaker that opens", exchange, 4},
};

START_TEST(any_failing_allocation_is_told_without_a_leak)
{
    size_t n;

    request = rv_kit_json("{'role':'default','prompt':'Hi','options':{'num_predict':100},'output_mode':'text'}");
    models[0] = (struct rv_model_config){.role = "default", .provider = "openai", .model = "m"};
    models[0].options = rv_kit_json("{'headers':{'X-A':'b'},'max_attempts':6}");
    models[0].fallback.n = 2;
    models[0].fallback_models = fallbacks;
    models[1] = (struct rv_model_config){.role = "b", .provider = "azure", .model = "n", .has_temperature = true};
    models[1].options = rv_kit_json("{'api_key':'0123456789','base_url':'http://h'}");
    models[2] = (struct rv_model_config){.role = "c", .provider = "groq"}; /* no model */
    ck_assert_int_eq(scenarios[_i].run(scenarios[_i].i), 0);
    for (n = 0;; n++) {
        int rc;
        rv_fault_arm(n);
        rc = scenarios[_i].run(scenarios[_i].i);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM, "%s: allocation %zu: %s", scenarios[_i].name, n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "%s: allocation %zu leaks", scenarios[_i].name, n);
    }
    ck_assert(n > 10 || !rv_fault_works());
    for (size_t i = 0; i < RV_COUNT(models); i++)
        json_object_put(models[i].options);
    json_object_put(request);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_provider");
    TCase *tc = tcase_create("fault");

    tcase_add_loop_test(tc, any_failing_allocation_is_told_without_a_leak, 0, (int)RV_COUNT(scenarios));
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
