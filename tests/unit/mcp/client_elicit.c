/* Servers that ask a person in the middle of a call: what they may ask, and how the answer gets to them. */
#include "tests/unit/mcp/peer.h"

#include <stdio.h>

#define FORM    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}"
#define REQUEST "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"who?\",\"requestedSchema\":" FORM "}}"
#define ANSWERS                                                                                                        \
    "{\"round\":2,\"state\":\"s\",\"answers\":[{\"round\":1,\"key\":\"a\",\"message\":\"who?\",\"schema\":" FORM       \
    ",\"action\":\"accept\",\"content\":{\"name\":\"x\"}},{\"round\":2,\"key\":\"b\",\"message\":\"how?\","            \
    "\"schema\":" FORM ",\"action\":\"decline\"}]}"

static json_object *json(const char *text)
{
    json_object *value = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &value, NULL), 0);
    return value;
}

static void begin(struct peer *p, enum rv_mcp_era era, bool elicits)
{
    const struct rv_mcp_client_opts opts = {.server = "s", .era = era, .elicits = elicits};

    *p = (struct peer){.now_us = SECOND};
    ck_assert_int_eq(rv_mcp_client_new(&opts, p->now_us, &p->client, NULL), 0);
    peer_drain(p);
}

static void be_ready(struct peer *p, enum rv_mcp_era era)
{
    begin(p, era, true);
    peer_answer(p, era == RV_MCP_ERA_LEGACY ? INITIALIZED : DISCOVERED);
    ck_assert_int_eq(p->n_ready, 1);
}

static void ask(struct peer *p, const char *method, const char *input, bool is_repeatable)
{
    json_object *params = json("{\"name\":\"t\"}"), *given = input ? json(input) : NULL;
    const struct rv_mcp_ask a = {.method = method, .params = params, .input = given, .is_repeatable = is_repeatable};
    int64_t id;

    ck_assert_int_eq(rv_mcp_client_ask(p->client, &a, p->now_us, &id, NULL), 0);
    json_object_put(params);
    json_object_put(given);
    peer_drain(p);
}

START_TEST(forms_are_declared_where_the_file_allows_them)
{
    struct peer p;
    bool elicits = _i & 1;

    begin(&p, _i & 2 ? RV_MCP_ERA_LEGACY : RV_MCP_ERA_MODERN, elicits);
    ck_assert_int_eq(strstr(p.sent, "\"elicitation\":{\"form\":{}}") != NULL, elicits);
    peer_end(&p);
}
END_TEST

/* --- 2026-07-28 --- */

static const struct {
    const char *requests;
    const char *asks; /* NULL: the call fails */
} inputs[] = {
    {"{\"a\":" REQUEST "}", "[{\"key\":\"a\",\"message\":\"who?\",\"schema\":" FORM "}]"},
    {"{\"a\":" REQUEST ",\"b\":" REQUEST "}", "\"key\":\"b\""},
    {"{\"a\":{\"method\":\"elicitation/"
     "create\",\"params\":{\"mode\":\"form\",\"message\":\"m\",\"requestedSchema\":" FORM "}}}",
     "\"key\":\"a\""},
    {"{\"a\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"message\":\"m\",\"url\":\"https://a\","
     "\"elicitationId\":\"1\"}}}",
     NULL},
    {"{\"a\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":7,\"message\":\"m\",\"requestedSchema\":" FORM
     "}}}",
     NULL},
    {"{\"a\":{\"method\":\"sampling/createMessage\",\"params\":{}}}", NULL},
    {"{\"a\":" REQUEST ",\"b\":{\"method\":\"roots/list\"}}", NULL},
    {"{\"a\":7}", NULL},
    {"{\"a\":{\"method\":\"elicitation/create\"}}", NULL},
    {"{\"a\":{\"method\":\"elicitation/"
     "create\",\"params\":{\"message\":\"m\",\"requestedSchema\":{\"type\":\"array\"}}}}",
     NULL},
    {"{\"a\":{\"method\":\"elicitation/create\",\"params\":{\"message\":7,\"requestedSchema\":" FORM "}}}", NULL},
    {"{\"1\":" REQUEST ",\"2\":" REQUEST ",\"3\":" REQUEST ",\"4\":" REQUEST ",\"5\":" REQUEST ",\"6\":" REQUEST
     ",\"7\":" REQUEST ",\"8\":" REQUEST ",\"9\":" REQUEST "}",
     NULL},
};
START_TEST(a_call_ends_with_what_a_person_is_asked)
{
    char result[4000];
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN);
    ask(&p, "tools/call", NULL, false);
    snprintf(result, sizeof result, "{\"resultType\":\"input_required\",\"inputRequests\":%s,\"requestState\":\"s\"}",
             inputs[_i].requests);
    peer_answer(&p, result);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_int_eq(p.asks, inputs[_i].asks != NULL);
    ck_assert_str_eq(p.code, inputs[_i].asks ? "" : "input_required");
    if (inputs[_i].asks) {
        ck_assert_ptr_nonnull(strstr(p.result, inputs[_i].asks));
        ck_assert_ptr_nonnull(strstr(p.result, "\"state\":\"s\""));
    }
    peer_end(&p);
}
END_TEST

START_TEST(the_answers_of_the_last_round_go_with_the_state)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN);
    ask(&p, "tools/call", ANSWERS, false);
    ck_assert_ptr_nonnull(strstr(p.sent, "\"inputResponses\":{\"b\":{\"action\":\"decline\"}},\"requestState\":\"s\""));
    ck_assert_ptr_null(strstr(p.sent, "\"round\""));
    peer_answer(&p, "{\"resultType\":\"input_required\",\"requestState\":\"later\"}"); /* it only wants it again */
    ck_assert_ptr_nonnull(strstr(p.sent, "\"requestState\":\"later\""));
    ck_assert_ptr_null(strstr(p.sent, "inputResponses"));
    peer_end(&p);
}
END_TEST

/* --- earlier revisions --- */

static void elicit(struct peer *p, const char *message)
{
    peer_say(p,
             "{\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"%s\","
             "\"requestedSchema\":" FORM "}}",
             message);
}

START_TEST(a_call_that_may_be_repeated_is_withdrawn_and_gets_its_answer_when_it_is_made_again)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_LEGACY);
    ask(&p, "tools/call", NULL, true);
    elicit(&p, "who?");
    ck_assert_str_eq(p.method, "notifications/cancelled"); /* the question itself is moot with its call */
    ck_assert_int_eq(p.n_forgotten, 1);
    ck_assert(p.asks && p.n_done == 1);
    ck_assert_ptr_nonnull(strstr(p.result, "\"message\":\"who?\""));
    ask(&p, "tools/call", ANSWERS, true);
    ck_assert_ptr_null(strstr(p.sent, "inputResponses")); /* which this server does not know */
    elicit(&p, "who?");
    ck_assert_str_eq(
        p.sent, "{\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"result\":{\"action\":\"accept\",\"content\":{\"name\":\"x\"}}}");
    elicit(&p, "how?");
    ck_assert_str_eq(p.sent, "{\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"result\":{\"action\":\"decline\"}}");
    ck_assert_int_eq(p.n_done, 1);
    elicit(&p, "something new?");
    ck_assert(p.asks && p.n_done == 2);
    peer_end(&p);
}
END_TEST

START_TEST(a_call_that_must_not_be_repeated_goes_on_without_an_answer)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_LEGACY);
    ask(&p, "tools/call", NULL, false);
    elicit(&p, "who?");
    ck_assert_str_eq(p.sent, "{\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"result\":{\"action\":\"cancel\"}}");
    ck_assert_int_eq(p.n_done, 0);
    peer_answer(&p, "{\"content\":[]}");
    ck_assert(p.n_done == 1 && !p.asks);
    peer_end(&p);
}
END_TEST

START_TEST(a_question_that_belongs_to_no_one_call_is_refused)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_LEGACY);
    elicit(&p, "who?");
    ck_assert_ptr_nonnull(strstr(p.sent, "-32600"));
    ask(&p, "tools/list", NULL, true);
    elicit(&p, "who?");
    ck_assert_ptr_nonnull(strstr(p.sent, "-32600"));
    ask(&p, "tools/call", NULL, true);
    ask(&p, "tools/call", NULL, true);
    elicit(&p, "who?");
    ck_assert_ptr_nonnull(strstr(p.sent, "-32600"));
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\","
                 "\"message\":\"m\",\"url\":\"https://a\",\"elicitationId\":\"1\"}}");
    ck_assert_ptr_nonnull(strstr(p.sent, "-32602"));
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"method\":\"elicitation/create\"}");
    ck_assert_ptr_nonnull(strstr(p.sent, "-32602"));
    ck_assert_int_eq(p.n_done, 0);
    peer_end(&p);
}
END_TEST

START_TEST(without_the_declaration_no_one_is_asked)
{
    struct peer p;

    peer_be_legacy(&p);
    ask(&p, "tools/call", NULL, true);
    elicit(&p, "who?");
    ck_assert_ptr_nonnull(strstr(p.sent, "-32601"));
    ck_assert_int_eq(p.n_done, 0);
    peer_end(&p);
}
END_TEST

TCase *client_elicit_case(void)
{
    TCase *tc = tcase_create("client_elicit");

    tcase_add_loop_test(tc, forms_are_declared_where_the_file_allows_them, 0, 4);
    tcase_add_loop_test(tc, a_call_ends_with_what_a_person_is_asked, 0, RV_COUNT(inputs));
    tcase_add_test(tc, the_answers_of_the_last_round_go_with_the_state);
    tcase_add_test(tc, a_call_that_may_be_repeated_is_withdrawn_and_gets_its_answer_when_it_is_made_again);
    tcase_add_test(tc, a_call_that_must_not_be_repeated_goes_on_without_an_answer);
    tcase_add_test(tc, a_question_that_belongs_to_no_one_call_is_refused);
    tcase_add_test(tc, without_the_declaration_no_one_is_asked);
    return tc;
}
