/* Servers that ask for roots: declared where the file names folders, answered at once, refused otherwise. */
#include "tests/unit/mcp/peer.h"

#define ROOTS "[{\"uri\":\"file:///srv\",\"name\":\"srv\"}]"
#define FORM                                                                                                           \
    "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"who?\",\"requestedSchema\":{\"type\":\"object\"}}}"
#define LIST "{\"method\":\"roots/list\"}"

static json_object *json(const char *text)
{
    json_object *value = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &value, NULL), 0);
    return value;
}

static void begin(struct peer *p, enum rv_mcp_era era, const char *roots, bool elicits)
{
    json_object *given = roots ? json(roots) : NULL;
    const struct rv_mcp_client_opts opts = {.server = "s", .era = era, .elicits = elicits, .roots = given};

    *p = (struct peer){.now_us = SECOND};
    ck_assert_int_eq(rv_mcp_client_new(&opts, p->now_us, &p->client, NULL), 0);
    json_object_put(given);
    peer_drain(p);
}

static void be_ready(struct peer *p, enum rv_mcp_era era, const char *roots, bool elicits)
{
    begin(p, era, roots, elicits);
    peer_answer(p, era == RV_MCP_ERA_LEGACY ? INITIALIZED : DISCOVERED);
    ck_assert_int_eq(p->n_ready, 1);
}

static void call(struct peer *p, const char *input)
{
    json_object *params = json("{\"name\":\"t\"}"), *given = input ? json(input) : NULL;
    int64_t id;

    ck_assert_int_eq(rv_mcp_client_ask(p->client,
                                       &(struct rv_mcp_ask){.method = "tools/call", .params = params, .input = given},
                                       p->now_us, &id, NULL),
                     0);
    json_object_put(params);
    json_object_put(given);
    peer_drain(p);
}

START_TEST(roots_are_declared_where_the_file_names_folders)
{
    struct peer p;
    bool has_roots = _i & 1;

    begin(&p, _i & 2 ? RV_MCP_ERA_LEGACY : RV_MCP_ERA_MODERN, has_roots ? "[]" : NULL, false);
    ck_assert_int_eq(strstr(p.sent, "\"roots\":{}") != NULL, has_roots);
    peer_end(&p);
}
END_TEST

START_TEST(an_earlier_server_gets_the_folders_or_a_refusal)
{
    static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"roots/list\"}";
    struct peer p;

    be_ready(&p, RV_MCP_ERA_LEGACY, _i ? ROOTS : NULL, false);
    peer_say_of(&p, ask);
    if (_i)
        ck_assert_str_eq(p.sent, "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":{\"roots\":" ROOTS "}}");
    else
        ck_assert_ptr_nonnull(strstr(p.sent, "-32601"));
    peer_end(&p);
}
END_TEST

#define WANTS(requests) "{\"resultType\":\"input_required\",\"requestState\":\"s\",\"inputRequests\":" requests "}"

START_TEST(a_call_is_sent_again_with_the_folders_and_not_without_end)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN, ROOTS, false);
    call(&p, NULL);
    for (int i = 0; i < RV_MCP_MAX_ROUNDS; i++) {
        peer_answer(&p, WANTS("{\"a\":" LIST ",\"b\":" LIST "}"));
        ck_assert_ptr_nonnull(strstr(p.sent, "\"inputResponses\":{\"a\":{\"roots\":" ROOTS "},\"b\":{\"roots\":" ROOTS
                                             "}},\"requestState\":\"s\""));
        ck_assert_int_eq(p.n_done, 0);
    }
    peer_answer(&p, WANTS("{\"a\":" LIST "}"));
    ck_assert_str_eq(p.code, "invalid_answer");
    peer_end(&p);
}
END_TEST

START_TEST(what_was_answered_is_not_sent_again_with_a_later_state)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN, ROOTS, false);
    call(&p, NULL);
    peer_answer(&p, WANTS("{\"a\":" LIST "}"));
    peer_answer(&p, "{\"resultType\":\"input_required\",\"requestState\":\"later\"}");
    ck_assert_ptr_nonnull(strstr(p.sent, "\"requestState\":\"later\""));
    ck_assert_ptr_null(strstr(p.sent, "inputResponses"));
    peer_end(&p);
}
END_TEST

/* The folders wait with the form, and go with its answer. */
START_TEST(folders_go_with_the_answer_of_a_person)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN, ROOTS, true);
    call(&p, NULL);
    peer_answer(&p, WANTS("{\"r\":" LIST ",\"f\":" FORM "}"));
    ck_assert(p.asks && p.n_done == 1);
    ck_assert_ptr_nonnull(strstr(p.result, "\"state\":{\"state\":\"s\",\"roots\":[\"r\"]}"));
    ck_assert_ptr_null(strstr(p.result, "\"key\":\"r\""));
    call(&p, "{\"round\":1,\"state\":{\"state\":\"s\",\"roots\":[\"r\"]},\"answers\":[{\"round\":1,\"key\":\"f\","
             "\"message\":\"who?\",\"schema\":{},\"action\":\"decline\"}]}");
    ck_assert_ptr_nonnull(strstr(p.sent, "\"inputResponses\":{\"f\":{\"action\":\"decline\"},\"r\":{\"roots\":" ROOTS
                                         "}},\"requestState\":\"s\""));
    peer_end(&p);
}
END_TEST

static const struct {
    const char *requests;
    bool elicits;
} refused[] = {
    {WANTS("{\"f\":" FORM ",\"r\":" LIST "}"), false},
    {WANTS("{\"r\":" LIST ",\"m\":{\"method\":\"sampling/createMessage\"}}"), true},
    {WANTS("{\"r\":[\"roots/list\"]}"), true},
    {WANTS("{\"r\":{\"method\":7}}"), true},
    {WANTS("{\"1\":" LIST ",\"2\":" LIST ",\"3\":" LIST ",\"4\":" LIST ",\"5\":" LIST ",\"6\":" LIST ",\"7\":" LIST
           ",\"8\":" LIST ",\"9\":" LIST "}"),
     true},
};
START_TEST(what_is_not_declared_beside_them_fails_the_call)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN, ROOTS, refused[_i].elicits);
    call(&p, NULL);
    peer_answer(&p, refused[_i].requests);
    ck_assert_str_eq(p.code, "input_required");
    peer_end(&p);
}
END_TEST

TCase *client_roots_case(void)
{
    TCase *tc = tcase_create("client_roots");

    tcase_add_loop_test(tc, roots_are_declared_where_the_file_names_folders, 0, 4);
    tcase_add_loop_test(tc, an_earlier_server_gets_the_folders_or_a_refusal, 0, 2);
    tcase_add_test(tc, a_call_is_sent_again_with_the_folders_and_not_without_end);
    tcase_add_test(tc, what_was_answered_is_not_sent_again_with_a_later_state);
    tcase_add_test(tc, folders_go_with_the_answer_of_a_person);
    tcase_add_loop_test(tc, what_is_not_declared_beside_them_fails_the_call, 0, RV_COUNT(refused));
    return tc;
}
