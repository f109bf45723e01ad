/* A server that keeps failing is left alone, tried by one exchange after a while, and trusted again. */
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

static const struct answer good = {.status = 200}, bad = {.status = 503};

/* One call with one attempt; true: it was sent. */
static bool call(struct world *w, const struct answer *a)
{
    struct rv_exchange_opts opts = world_opts(w, "default");
    rv_exchange *x = world_exchange(w, &opts);
    bool was_sent;

    world_drive(w, x, a, 1);
    was_sent = w->n_sent > 0;
    if (!was_sent) {
        ck_assert_int_eq(rv_exchange_reply(x)->answer.error_kind, RV_LLM_ERROR_OVERLOADED);
        ck_assert_ptr_nonnull(strstr(world_error(x), " requests there failed ("));
        ck_assert(rv_exchange_reply(x)->retryable && !rv_exchange_reply(x)->answer.may_be_billed);
    }
    rv_exchange_free(x);
    return was_sent;
}

static void start(struct world *w)
{
    world_init(w);
    world_model(w, "default", "openai", "m", "{'max_attempts':1}");
}

static void fail_times(struct world *w, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert(call(w, &bad));
}

/* Proves 12.3/breaker: Five failures in a row within 30 s open the breaker for 10 s; then one tries */
START_TEST(five_failures_in_a_row_open_it)
{
    struct world w;

    start(&w);
    fail_times(&w, 4);
    ck_assert(call(&w, &good));
    fail_times(&w, 5);
    ck_assert(!call(&w, &good));
    w.now_us += 10 * S - 1;
    ck_assert(!call(&w, &good));
    world_fini(&w);
}
END_TEST

START_TEST(the_text_says_how_many_failed_and_for_how_long)
{
    struct world w;
    rv_exchange *x;

    start(&w);
    fail_times(&w, 5);
    w.now_us += 2500 * MS;
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &good, 1);
    ck_assert_str_eq(world_error(x), "openai m at api.openai.com: the last 5 requests there failed (overloaded): it is "
                                     "left alone for another 7500 ms");
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(failures_further_apart_do_not)
{
    struct world w;

    start(&w);
    for (int i = 0; i < 20; i++) {
        ck_assert(call(&w, &bad));
        w.now_us += 7500001; /* four of these are more than 30 s */
    }
    world_fini(&w);
}
END_TEST

static const struct {
    const char *id;
    struct answer answer;
    bool counts;
} kinds[] = {
    {"503", {.status = 503}, true},
    {"529", {.status = 529}, true},
    {"unreachable", {.fault = RV_HTTP_UNREACHABLE}, true},
    {"cut", {.fault = RV_HTTP_CUT, .was_sent = true}, true},
    {"cut in the answer", {.status = 200, .body = HALF, .fault = RV_HTTP_CUT}, true},
    {"no first byte", {.fault = RV_HTTP_FIRST_BYTE_TIME, .was_sent = true}, true},
    {"no connection in time", {.fault = RV_HTTP_CONNECT_TIME}, true},
    {"our own deadline", {.fault = RV_HTTP_TOTAL_TIME, .was_sent = true}, false},
    {"our own fault", {.fault = RV_HTTP_LOCAL}, false},
    {"429", {.status = 429}, false},
    {"400", {.status = 400}, false},
    {"401", {.status = 401}, false},
    {"nonsense", {.status = 200, .body = ""}, false},
};

START_TEST(only_what_speaks_against_the_server_counts)
{
    struct world w;

    start(&w);
    for (int i = 0; i < 5; i++)
        ck_assert(call(&w, &kinds[_i].answer));
    ck_assert_msg(call(&w, &good) != kinds[_i].counts, "%s", kinds[_i].id);
    world_fini(&w);
}
END_TEST

/* Proves 12.3/breaker */
START_TEST(one_probe_decides)
{
    struct world w;
    rv_exchange *probe;
    int64_t at;

    start(&w);
    fail_times(&w, 5);
    w.now_us += 10 * S;
    probe = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(probe, w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert(!call(&w, &good)); /* one is enough */
    world_answer(&w, probe, &bad);
    rv_exchange_free(probe);
    ck_assert(!call(&w, &good)); /* ten seconds more */
    w.now_us += 10 * S;
    probe = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(probe, w.now_us, &at), RV_EXCHANGE_SEND);
    world_answer(&w, probe, &good);
    rv_exchange_free(probe);
    fail_times(&w, 5); /* all forgiven: it takes five again */
    ck_assert(!call(&w, &good));
    world_fini(&w);
}
END_TEST

START_TEST(a_probe_that_is_given_up_leaves_room_for_another)
{
    struct world w;
    rv_exchange *probe;
    int64_t at;

    start(&w);
    fail_times(&w, 5);
    w.now_us += 10 * S;
    probe = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(probe, w.now_us, &at), RV_EXCHANGE_SEND);
    rv_exchange_free(probe);
    ck_assert(call(&w, &good));
    ck_assert(call(&w, &good));
    world_fini(&w);
}
END_TEST

START_TEST(an_open_breaker_leads_to_the_fallback)
{
    struct world w;
    rv_exchange *x;

    start(&w);
    world_model(&w, "spare", "anthropic", "n", NULL);
    fail_times(&w, 5);
    world_fallback(&w, "default", "spare", NULL);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &bad, 1);
    ck_assert_str_eq(w.urls[0], "https://api.anthropic.com/v1/messages");
    ck_assert_ptr_nonnull(strstr(world_error(x), "role \"default\": openai m at api.openai.com: the last 5 requests"));
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_repeat_that_is_refused_tells_what_the_last_attempt_failed_of)
{
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_attempts':10}");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &bad, 1);
    ck_assert_uint_eq(w.n_sent, 5);
    ck_assert_ptr_nonnull(strstr(world_error(x), "status 503: no luck (x), after 5 attempts; not repeated: the last 5 "
                                                 "requests there failed (overloaded): it is left alone for another"));
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(addresses_and_keys_have_breakers_of_their_own)
{
    struct world w;

    start(&w);
    fail_times(&w, 5);
    ck_assert(!call(&w, &good));
    json_object_object_add(w.models[0].options, "api_key", json_object_new_string("another"));
    ck_assert(call(&w, &good));
    json_object_object_add(w.models[0].options, "base_url", json_object_new_string("http://h/v1"));
    ck_assert(call(&w, &good));
    world_fini(&w);
}
END_TEST

START_TEST(failures_are_counted_until_it_opens)
{
    struct world w;
    rv_exchange *x;
    int64_t at;

    start(&w);
    fail_times(&w, 4);
    x = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_SEND);
    const struct rv_gate *g = w.providers->gates;
    ck_assert_int_eq(g->in_flight, 1);
    ck_assert_int_eq(g->breaker.n_failures, 4);
    ck_assert(!g->breaker.is_open);
    world_answer(&w, x, &bad);
    ck_assert_int_eq(g->in_flight, 0);
    ck_assert_int_eq(g->n_waiting, 0);
    ck_assert_int_eq(g->breaker.n_failures, 5);
    ck_assert(g->breaker.is_open);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

TCase *breaker_case(void)
{
    TCase *tc = tcase_create("breaker");

    tcase_add_test(tc, five_failures_in_a_row_open_it);
    tcase_add_test(tc, the_text_says_how_many_failed_and_for_how_long);
    tcase_add_test(tc, failures_further_apart_do_not);
    tcase_add_loop_test(tc, only_what_speaks_against_the_server_counts, 0, (int)RV_COUNT(kinds));
    tcase_add_test(tc, one_probe_decides);
    tcase_add_test(tc, a_probe_that_is_given_up_leaves_room_for_another);
    tcase_add_test(tc, an_open_breaker_leads_to_the_fallback);
    tcase_add_test(tc, a_repeat_that_is_refused_tells_what_the_last_attempt_failed_of);
    tcase_add_test(tc, addresses_and_keys_have_breakers_of_their_own);
    tcase_add_test(tc, failures_are_counted_until_it_opens);
    return tc;
}
