/* Servers that ask a model: declared where the caller gives completions, counted, and answered when they are there. */
#include "coreengine/mcp/mcp.h"
#include "tests/unit/mcp/peer.h"

#define ASK             "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}]}"
#define WANTS(requests) "{\"resultType\":\"input_required\",\"requestState\":\"s\",\"inputRequests\":" requests "}"
#define ONE             "{\"method\":\"sampling/createMessage\",\"params\":" ASK "}"
#define FORM                                                                                                           \
    "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"who?\",\"requestedSchema\":{\"type\":\"object\"}}}"

static json_object *json(const char *text)
{
    json_object *value = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &value, NULL), 0);
    return value;
}

static void begin(struct peer *p, enum rv_mcp_era era, int64_t max)
{
    const struct rv_mcp_client_opts opts = {.server = "s", .era = era, .max_samples = max, .elicits = true};

    *p = (struct peer){.now_us = SECOND};
    ck_assert_int_eq(rv_mcp_client_new(&opts, p->now_us, &p->client, NULL), 0);
    peer_drain(p);
}

static void be_ready(struct peer *p, enum rv_mcp_era era, int64_t max)
{
    begin(p, era, max);
    peer_answer(p, era == RV_MCP_ERA_LEGACY ? INITIALIZED : DISCOVERED);
    ck_assert_int_eq(p->n_ready, 1);
    peer_call(p);
}

static void ask(struct peer *p, const char *id)
{
    rv_buf text = RV_BUF_INIT(4096);

    rv_buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"sampling/createMessage\",\"params\":" ASK "}",
                  id);
    peer_say_of(p, rv_buf_cstr(&text));
    rv_buf_fini(&text);
}

static void answer(struct peer *p, int64_t sample, const char *text, const char *why)
{
    json_object *result = NULL;

    if (text)
        ck_assert_int_eq(rv_mcp_sampling_build_result(text, "m", &result, NULL), 0);
    ck_assert_int_eq(rv_mcp_client_answer_sample(p->client, p->sample_ask, sample, result, why, NULL), 0);
    json_object_put(result);
    peer_drain(p);
}

#define SAID(text)                                                                                                     \
    "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"" text                                          \
    "\"},\"model\":\"m\",\"stopReason\":\"endTurn\"}"

START_TEST(completions_are_declared_where_they_are_given)
{
    struct peer p;

    begin(&p, _i & 2 ? RV_MCP_ERA_LEGACY : RV_MCP_ERA_MODERN, _i & 1);
    ck_assert_int_eq(strstr(p.sent, "\"sampling\":{}") != NULL, _i & 1);
    peer_end(&p);
}
END_TEST

START_TEST(an_earlier_server_gets_the_completion_while_its_call_is_open)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_LEGACY, 2);
    ask(&p, "\"a\"");
    ask(&p, "7");
    ck_assert_int_eq(p.n_samples, 2);
    answer(&p, 2, "two", NULL); /* in any order */
    ck_assert_str_eq(p.sent, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":" SAID("two") "}");
    answer(&p, 1, NULL, "no money");
    ck_assert_str_eq(p.sent, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-1,\"message\":\"no money\"}}");
    int n_sent = p.n_sent;
    answer(&p, 1, "again", NULL); /* once is enough */
    ck_assert_int_eq(p.n_sent, n_sent);
    ask(&p, "8"); /* more than one call may have */
    ck_assert_int_eq(p.n_samples, 2);
    ck_assert_ptr_nonnull(strstr(p.sent, "\"code\":-1"));
    ck_assert_int_eq(p.n_done, 0);
    peer_answer(&p, "{\"content\":[]}"); /* the call is over: what comes later is dropped */
    ck_assert_int_eq(p.n_done, 1);
    answer(&p, 1, "late", NULL);
    ck_assert_int_eq(p.n_sent, n_sent + 1);
    peer_end(&p);
}
END_TEST

START_TEST(without_a_call_or_the_key_an_earlier_server_is_refused)
{
    struct peer p;

    begin(&p, RV_MCP_ERA_LEGACY, _i ? 0 : 2);
    peer_answer(&p, INITIALIZED);
    ask(&p, "1");
    ck_assert_ptr_nonnull(strstr(p.sent, _i ? "-32601" : "-32600"));
    ck_assert_int_eq(p.n_samples, 0);
    peer_end(&p);
}
END_TEST

START_TEST(a_call_is_sent_again_when_all_completions_are_there)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN, 3);
    peer_answer(&p, WANTS("{\"a\":" ONE ",\"b\":" ONE "}"));
    ck_assert_int_eq(p.n_samples, 2);
    int n_sent = p.n_sent;
    answer(&p, 2, "to b", NULL);
    ck_assert_int_eq(p.n_sent, n_sent);
    answer(&p, 1, "to a", NULL);
    ck_assert_ptr_nonnull(
        strstr(p.sent, "\"inputResponses\":{\"b\":" SAID("to b") ",\"a\":" SAID("to a") "},\"requestState\":\"s\""));
    peer_answer(&p, WANTS("{\"a\":" ONE ",\"b\":" ONE "}")); /* four of three */
    ck_assert_str_eq(p.code, "input_required");
    peer_end(&p);
}
END_TEST

START_TEST(a_call_without_its_completion_fails)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN, 3);
    peer_answer(&p, WANTS("{\"a\":" ONE "}"));
    answer(&p, 1, NULL, "the budget is spent");
    ck_assert_str_eq(p.code, "input_required");
    ck_assert_ptr_nonnull(strstr(p.text, "the budget is spent"));
    ck_assert(!p.is_unsent); /* the server has begun */
    peer_end(&p);
}
END_TEST

START_TEST(a_form_beside_a_completion_is_refused)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN, 3);
    peer_answer(&p, WANTS("{\"a\":" ONE ",\"b\":" FORM "}"));
    ck_assert_str_eq(p.code, "input_required");
    ck_assert_int_eq(p.n_samples, 0);
    peer_end(&p);
}
END_TEST

START_TEST(a_limit_of_time_holds_while_a_model_is_asked)
{
    struct peer p;

    be_ready(&p, RV_MCP_ERA_MODERN, 3);
    int64_t id = peer_ask_for(&p, "tools/call", "{\"name\":\"t\"}", NULL, SECOND);
    (void)id;
    peer_answer(&p, WANTS("{\"a\":" ONE "}"));
    peer_wait_until(&p, p.now_us + 2 * SECOND);
    ck_assert_str_eq(p.code, "timed_out");
    ck_assert(!p.is_unsent);
    peer_end(&p);
}
END_TEST

static const struct {
    const char *params, *want; /* want: the prompt, or "!": a part of the error */
} prompts[] = {
    {ASK, "hi"},
    {"{\"systemPrompt\":\"Be "
     "brief.\",\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}]}",
     "Be brief.\n\nhi"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":"
     "\"b\"}]},"
     "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"c\"}}]}",
     "User: a\nb\n\nAssistant: c"},
    {"{}", "!1 to 100 messages"},
    {"{\"messages\":[]}", "!1 to 100 messages"},
    {"{\"messages\":[7]}", "!no role"},
    {"{\"messages\":[{\"role\":\"system\",\"content\":{\"type\":\"text\",\"text\":\"x\"}}]}", "!no role"},
    {"{\"messages\":[{\"role\":\"user\"}]}", "!no content"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":null}]}", "!not text"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"image\",\"data\":\"AA\",\"mimeType\":\"image/png\"}}]}",
     "!not text"},
    {"{\"tools\":[],\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}]}", "!no tools"},
};

START_TEST(what_a_server_asks_is_one_prompt_of_texts)
{
    json_object *params = json(prompts[_i].params);
    rv_buf got = RV_BUF_INIT(RV_MCP_MAX_PROMPT);
    rv_err *err = NULL;

    int rc = rv_mcp_sampling_write_prompt(params, &got, &err);
    if (prompts[_i].want[0] == '!') {
        ck_assert_int_eq(rc, RV_E_INVALID);
        ck_assert_msg(strstr(rv_err_text(err), prompts[_i].want + 1) != NULL, "%s", rv_err_text(err));
    } else {
        ck_assert_int_eq(rc, 0);
        ck_assert_str_eq(rv_buf_cstr(&got), prompts[_i].want);
    }
    rv_err_free(err);
    rv_buf_fini(&got);
    json_object_put(params);
}
END_TEST

TCase *client_sample_case(void)
{
    TCase *tc = tcase_create("client_sample");

    tcase_add_loop_test(tc, completions_are_declared_where_they_are_given, 0, 4);
    tcase_add_test(tc, an_earlier_server_gets_the_completion_while_its_call_is_open);
    tcase_add_loop_test(tc, without_a_call_or_the_key_an_earlier_server_is_refused, 0, 2);
    tcase_add_test(tc, a_call_is_sent_again_when_all_completions_are_there);
    tcase_add_test(tc, a_call_without_its_completion_fails);
    tcase_add_test(tc, a_form_beside_a_completion_is_refused);
    tcase_add_test(tc, a_limit_of_time_holds_while_a_model_is_asked);
    tcase_add_loop_test(tc, what_a_server_asks_is_one_prompt_of_texts, 0, RV_COUNT(prompts));
    return tc;
}
