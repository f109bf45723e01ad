/* Who is asked when a role can not answer. */
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

static const char too_long[] =
    "{\"error\":{\"message\":\"too long\",\"type\":\"x\",\"code\":\"context_length_exceeded\"}}";
static const char quota[] = "{\"error\":{\"message\":\"pay\",\"type\":\"x\",\"code\":\"insufficient_quota\"}}";
static const char filtered[] = "{\"error\":{\"message\":\"no\",\"type\":\"x\",\"code\":\"content_filter\"}}";

static const struct {
    const char *id, *options;
    struct answer first;
    size_t n_first; /* times the first role is asked */
    bool helps;
} cases[] = {
    {"rate limit", NULL, {.status = 429}, 3, true},
    {"quota", NULL, {.status = 429, .body = quota}, 1, true},
    {"overloaded", NULL, {.status = 529}, 3, true},
    {"timeout", NULL, {.fault = RV_HTTP_FIRST_BYTE_TIME, .was_sent = true}, 3, true},
    {"connection", "{'max_attempts':1}", {.fault = RV_HTTP_UNREACHABLE}, 1, true},
    {"protocol", NULL, {.status = 200, .body = ""}, 3, true},
    {"auth", NULL, {.status = 401}, 1, true},
    {"too long", NULL, {.status = 400, .body = too_long}, 1, true},
    {"filtered", NULL, {.status = 400, .body = filtered}, 1, true},
    {"bad request", NULL, {.status = 400}, 1, false},
};

/* Proves 12.3/fallback: Fallbacks are asked in order, where another may help */
START_TEST(another_role_answers_where_it_may_help)
{
    struct answer answers[] = {cases[_i].first, cases[_i].first, cases[_i].first, {.status = 200}};
    const struct answer *first = answers + 3 - cases[_i].n_first;
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", cases[_i].options);
    world_model(&w, "spare", "openai", "n", "{'base_url':'http://spare/v1'}");
    world_fallback(&w, "default", "spare", NULL);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, first, cases[_i].n_first + 1);
    const struct rv_llm_reply *r = rv_exchange_reply(x);
    ck_assert_msg(r->failed != cases[_i].helps, "%s: %s", cases[_i].id, world_error(x));
    ck_assert_uint_eq(w.n_sent, cases[_i].n_first + cases[_i].helps);
    ck_assert_int_eq(r->answer.attempts, (int64_t)w.n_sent);
    if (cases[_i].helps) {
        ck_assert_str_eq(w.urls[w.n_sent - 1], "http://spare/v1/chat/completions");
        ck_assert_ptr_nonnull(strstr(w.bodies[w.n_sent - 1], "\"model\":\"n\""));
        ck_assert_str_eq(r->answer.role, "spare");
        ck_assert_str_eq(rv_exchange_role(x), "spare");
    } else {
        ck_assert_ptr_null(r->answer.role);
        ck_assert_str_eq(rv_exchange_role(x), "default");
    }
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

/* Proves 12.3/fallback */
START_TEST(roles_are_asked_in_their_order_and_all_failures_are_told)
{
    struct answer answers[] = {{.status = 401}, {.fault = RV_HTTP_UNREACHABLE}, {.status = 529}};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_attempts':1}");
    world_model(&w, "b", "anthropic", "n", "{'max_attempts':1}");
    world_model(&w, "c", "ollama", "o", "{'max_attempts':1}");
    world_fallback(&w, "default", "b", "c");
    world_fallback(&w, "c", "default", NULL); /* not followed: no circles */
    x = world_exchange(&w, NULL);
    world_drive(&w, x, answers, 3);
    ck_assert_uint_eq(w.n_sent, 3);
    ck_assert_str_eq(world_error(x),
                     "ollama o at 127.0.0.1:11434 answered with status 529: no luck; it was asked as a fallback, for "
                     "role \"default\": openai m at api.openai.com answered with status 401: no luck (x); role \"b\": "
                     "anthropic n at api.anthropic.com: the other side is gone");
    ck_assert_str_eq(rv_exchange_role(x), "c");
    ck_assert_int_eq(rv_exchange_reply(x)->answer.error_kind, RV_LLM_ERROR_OVERLOADED);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_role_that_can_not_be_asked_hands_over_before_anything_is_sent)
{
    struct answer good = {.status = 200};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "groq", "m", NULL); /* no key */
    world_model(&w, "small", "openai", "s", NULL)->max_request_bytes = 10;
    world_model(&w, "large", "openai", "l", NULL)->max_request_bytes = 100000;
    world_fallback(&w, "default", "small", "large");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &good, 1);
    ck_assert_uint_eq(w.n_sent, 1);
    ck_assert(!rv_exchange_reply(x)->failed);
    ck_assert_str_eq(rv_exchange_role(x), "large");
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(too_long_a_request_is_told_with_both_figures)
{
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL)->max_request_bytes = 10;
    x = world_exchange(&w, NULL);
    world_drive(&w, x, NULL, 0);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.error_kind, RV_LLM_ERROR_CONTEXT_TOO_LONG);
    ck_assert_ptr_nonnull(strstr(world_error(x), "and max_request_bytes of the role is 10"));
    ck_assert(!rv_exchange_reply(x)->answer.may_be_billed);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_later_role_may_succeed_when_repeated_if_an_earlier_might)
{
    struct answer answers[] = {{.status = 503}, {.status = 401}};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_attempts':1}");
    world_model(&w, "b", "anthropic", "n", NULL);
    world_fallback(&w, "default", "b", NULL);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, answers, 2);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.error_kind, RV_LLM_ERROR_AUTH);
    ck_assert(rv_exchange_reply(x)->retryable);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_fallback_that_is_not_there_is_left_out)
{
    struct answer answers[] = {{.status = 401}, {.status = 200}};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    world_model(&w, "b", "openai", "n", NULL);
    world_fallback(&w, "default", "gone", "b");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, answers, 2);
    ck_assert_str_eq(rv_exchange_role(x), "b");
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_fallback_that_can_not_be_asked_hands_over)
{
    struct answer answers[] = {{.status = 401}, {.status = 200}};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    world_model(&w, "b", "hello.echo", "n", NULL); /* a capability's: not asked over HTTP */
    world_model(&w, "c", "openai", "o", NULL);
    world_fallback(&w, "default", "b", "c");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, answers, 2);
    ck_assert_uint_eq(w.n_sent, 2);
    ck_assert_str_eq(rv_exchange_role(x), "c");
    ck_assert(!rv_exchange_reply(x)->failed);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_fallback_is_asked_while_a_repeat_would_be_too_late)
{
    struct answer answers[] = {{.status = 429, .headers = "retry-after: 20"}, {.status = 200}};
    struct rv_exchange_opts opts;
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    world_model(&w, "b", "openai", "n", "{'base_url':'http://spare/v1'}");
    world_fallback(&w, "default", "b", NULL);
    opts = world_opts(&w, "default");
    opts.deadline_us = START_US + 5 * S;
    x = world_exchange(&w, &opts);
    world_drive(&w, x, answers, 2);
    ck_assert_uint_eq(w.n_sent, 2);
    ck_assert_int_eq(w.sent_at[1], START_US);
    ck_assert_str_eq(w.urls[1], "http://spare/v1/chat/completions");
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

static const struct {
    const char *id;
    bool asked_has_temperature;
    double asked_temperature, own_temperature; /* own < 0: none */
    int64_t own_max_tokens;                    /* 0: none */
    const char *options, *want;
} adapted[] = {
    {"nothing of its own", false, 0, -1, 0, "{'num_predict':100}", "{'num_predict':100}"},
    {"a lower limit", false, 0, -1, 40, "{'num_predict':100}", "{'num_predict':40}"},
    {"a higher limit", false, 0, -1, 400, "{'num_predict':100}", "{'num_predict':100}"},
    {"a temperature", false, 0, 0.5, 0, "{'num_predict':100}", "{'num_predict':100,'temperature':0.5}"},
    {"in place of the role's", true, 0.9, 0.5, 0, "{'temperature':0.9}", "{'temperature':0.5}"},
    {"not of the agent's", true, 0.9, 0.5, 0, "{'temperature':0.1}", "{'temperature':0.1}"},
    {"not of the agent's alone", false, 0, 0.5, 0, "{'temperature':0.1}", "{'temperature':0.1}"},
};

START_TEST(the_request_keeps_its_limits_when_another_role_is_asked)
{
    struct rv_model_config asked = {.has_temperature = adapted[_i].asked_has_temperature,
                                    .temperature = adapted[_i].asked_temperature};
    struct rv_model_config model = {.has_temperature = adapted[_i].own_temperature >= 0,
                                    .temperature = adapted[_i].own_temperature,
                                    .has_max_tokens = adapted[_i].own_max_tokens > 0,
                                    .max_tokens = adapted[_i].own_max_tokens};
    json_object *request = json_object_new_object(), *want = rv_kit_json(adapted[_i].want), *out = NULL, *kept = NULL;

    json_object_object_add(request, "prompt", json_object_new_string("Hi"));
    json_object_object_add(request, "options", rv_kit_json(adapted[_i].options));
    ck_assert_int_eq(rv_json_dup(request, &kept, NULL), 0);
    ck_assert_int_eq(provider_fallback_request(&asked, &model, request, &out, NULL), 0);
    ck_assert_msg(rv_json_equal(rv_json_get_obj(out, "options"), want), "%s", adapted[_i].id);
    ck_assert(json_object_object_length(out) == 2);
    ck_assert(rv_json_equal(request, kept)); /* it is borrowed */
    json_object_put(out);
    json_object_put(kept);
    json_object_put(want);
    json_object_put(request);
}
END_TEST

/* Asked and its request answered so often, then not allowed: neither a repetition nor a role follows. */
START_TEST(a_request_that_is_refused_is_the_last)
{
    static const struct answer busy = {.status = 503};
    const char *options = _i ? "{'max_attempts':1}" : "{'max_attempts':3}";
    struct world w;
    rv_exchange *x;
    int64_t at_us;

    world_init(&w);
    world_model(&w, "default", "openai", "m", options);
    world_model(&w, "b", "openai", "n", "{'base_url':'http://spare/v1'}");
    world_model(&w, "c", "openai", "o", "{'base_url':'http://third/v1'}");
    world_fallback(&w, "default", "b", "c");
    x = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(x, START_US, &at_us), RV_EXCHANGE_SEND);
    (void)rv_exchange_request(x);
    rv_exchange_refuse(x, "too late", START_US); /* it was taken */
    world_answer(&w, x, &busy);
    ck_assert_int_eq(rv_exchange_next(x, START_US + 10 * S, &at_us), RV_EXCHANGE_SEND);
    rv_exchange_refuse(x, "one is enough", START_US + 10 * S);
    ck_assert_int_eq(rv_exchange_next(x, START_US + 20 * S, &at_us), RV_EXCHANGE_DONE);
    const struct rv_llm_reply *r = rv_exchange_reply(x);
    ck_assert(r->failed);
    ck_assert_int_eq(r->answer.attempts, 1);
    ck_assert_ptr_nonnull(strstr(world_error(x), "one is enough"));
    ck_assert_ptr_nonnull(strstr(world_error(x), "status 503"));
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

TCase *fallback_case(void)
{
    TCase *tc = tcase_create("fallback");

    tcase_add_loop_test(tc, another_role_answers_where_it_may_help, 0, (int)RV_COUNT(cases));
    tcase_add_test(tc, roles_are_asked_in_their_order_and_all_failures_are_told);
    tcase_add_test(tc, a_role_that_can_not_be_asked_hands_over_before_anything_is_sent);
    tcase_add_test(tc, too_long_a_request_is_told_with_both_figures);
    tcase_add_test(tc, a_later_role_may_succeed_when_repeated_if_an_earlier_might);
    tcase_add_test(tc, a_fallback_that_is_not_there_is_left_out);
    tcase_add_test(tc, a_fallback_that_can_not_be_asked_hands_over);
    tcase_add_test(tc, a_fallback_is_asked_while_a_repeat_would_be_too_late);
    tcase_add_loop_test(tc, a_request_that_is_refused_is_the_last, 0, 2);
    tcase_add_loop_test(tc, the_request_keeps_its_limits_when_another_role_is_asked, 0, (int)RV_COUNT(adapted));
    return tc;
}
