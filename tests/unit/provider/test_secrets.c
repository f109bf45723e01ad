/* Keys are nowhere to be seen: not in what failed, however it failed and whatever the server says, nor in what is shown
 * for diagnosis. */
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

#define HEADER_SECRET "hush-hush-hush"
#define PASSWORD      "pass-word-word"
#define PROXY_WORD    "word-of-the-proxy"
#define QUERY_WORD    "word-of-the-query"
#define FILL          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define ECHO_ALL      QUERY_WORD " and " KEY " and " HEADER_SECRET " and " PASSWORD " and " PROXY_WORD " twice " KEY KEY

static const struct {
    const char *id;
    struct answer answer;
} cases[] = {
    {"error body", {.status = 401, .body = "{\"error\":{\"message\":\"Incorrect API key: " ECHO_ALL "\"}}"}},
    {"web page", {.status = 502, .type = "text/html", .body = "<html>" ECHO_ALL "</html>"}},
    {"content type", {.status = 502, .type = "text/" KEY, .body = "x"}},
    {"good status", {.status = 200, .type = "text/plain", .body = ECHO_ALL}},
    {"error in a stream",
     {.status = 200, .body = "data: {\"error\":{\"message\":\"" ECHO_ALL "\",\"code\":\"" KEY "\"}}\n\n"}},
    {"request id", {.status = 500, .headers = "x-request-id: " KEY}},
    {"redirection", {.status = 301, .headers = "location: http://h/" KEY "?" KEY}},
    {"redirection to a user",
     {.status = 301, .headers = "location: http://" HEADER_SECRET ":" PASSWORD "@h/v1/chat/completions"}},
    {"redirection without a scheme", {.status = 301, .headers = "location: //me:" PASSWORD "@h/"}},
    {"half of it at a cut",
     {.status = 502, .type = "text/html", .body = FILL FILL FILL "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" KEY FILL}},
    {"some of it at a cut",
     {.status = 502,
      .type = "text/html",
      .body = FILL FILL FILL "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" KEY FILL}},
    {"half of it", {.status = 500, .body = "{\"error\":{\"message\":\"key sk-test-0123456 is wrong\"}}"}},
    {"unreachable", {.fault = RV_HTTP_UNREACHABLE}},
    {"first byte", {.fault = RV_HTTP_FIRST_BYTE_TIME, .was_sent = true}},
};
static const char *const secrets[] = {KEY, HEADER_SECRET, PASSWORD, PROXY_WORD, QUERY_WORD, "sk-test-0123456", "xsk-t"};

static void check_none(const char *id, const char *text)
{
    for (size_t i = 0; i < RV_COUNT(secrets); i++)
        ck_assert_msg(!strstr(text, secrets[i]), "%s: %s", id, text);
}

/* Proves 12.3/secrets: No text has a key in it, whatever a provider says; recordings neither
 * Proves p8.W39 */
START_TEST(no_text_has_a_secret)
{
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m",
                "{'base_url':'https://user:" PASSWORD "@h/v1?api-version=2024-10-21&token=" QUERY_WORD
                "','headers':{'X-Secret':"
                "'" HEADER_SECRET "'},'proxy':'http://me:" PROXY_WORD "@proxy:1'}");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &cases[_i].answer, 1);
    ck_assert(rv_exchange_reply(x)->failed);
    ck_assert_uint_ge(w.n_sent, 1);
    check_none(cases[_i].id, world_error(x));
    check_none(cases[_i].id, rv_buf_cstr(&w.retries));
    check_none(cases[_i].id, w.bodies[0]);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

/* Proves 12.3/secrets */
START_TEST(a_key_that_can_not_be_sent_is_not_shown_either)
{
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'api_key':'" KEY "\\n'}");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, NULL, 0);
    check_none("key", world_error(x));
    ck_assert_ptr_nonnull(strstr(world_error(x), "api_key cannot be sent"));
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(an_address_that_is_none_is_not_shown)
{
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'base_url':'user:" PASSWORD "@h/v1'}");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, NULL, 0);
    check_none("address", world_error(x));
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(any_bytes_become_text)
{
    struct answer a = {
        .status = 500, .type = "text/plain", .body = "a\xff\x1b[31m\xe2\x82 \xe2\x82\xac\xc3\xa9\xed\xa0\x80\n"};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m\xff", NULL);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &a, 1);
    ck_assert(rv_utf8_valid(rv_buf_str(&rv_exchange_reply(x)->error), NULL));
    for (const char *c = world_error(x); *c; c++)
        ck_assert((unsigned char)*c >= ' ');
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

TCase *secrets_case(void)
{
    TCase *tc = tcase_create("secrets");

    tcase_add_loop_test(tc, no_text_has_a_secret, 0, (int)RV_COUNT(cases));
    tcase_add_test(tc, a_key_that_can_not_be_sent_is_not_shown_either);
    tcase_add_test(tc, an_address_that_is_none_is_not_shown);
    tcase_add_test(tc, any_bytes_become_text);
    return tc;
}
