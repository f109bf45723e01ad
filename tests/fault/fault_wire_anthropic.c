/* Every allocation of the Anthropic and Ollama wires and of embeddings fails once: no crash, no leak, RV_E_NOMEM. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define DATA(json) "data: " json "\n\n"

static const struct rv_wire_target anthropic = {.wire = RV_WIRE_ANTHROPIC, .provider = "anthropic", .model = "m"};
static const struct rv_wire_target ollama = {.wire = RV_WIRE_OLLAMA, .provider = "ollama", .model = "m"};
static const struct rv_wire_target openai = {.wire = RV_WIRE_OPENAI, .provider = "openai", .model = "m"};

/* What the scenarios read; made before any allocation fails. */
static json_object *requests[4];

static const char events[] = DATA("{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}") DATA(
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"a\"}}")
    DATA("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"b\"}}")
        DATA("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":"
             "\"s\"}}") DATA("{\"type\":\"content_block_stop\",\"index\":0}")
            DATA("{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"redacted_thinking\","
                 "\"data\":\"d\"}}") DATA("{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":"
                                          "\"text\",\"text\":\"t\"}}")
                DATA("{\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":\"tool_use\",\"id\":"
                     "\"i\",\"name\":\"f\"}}") DATA("{\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":"
                                                    "\"input_json_delta\",\"partial_json\":\"{}\"}}")
                    DATA("{\"type\":\"content_block_stop\",\"index\":3}")
                        DATA("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_"
                             "tokens\":3}}") DATA("{\"type\":\"message_stop\"}");

static const char broken[] = DATA("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}");

static const char message[] = "{\"content\":[{\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"f\",\"input\":{\"x\":[1]}}]"
                              ",\"stop_reason\":\"tool_use\"}";

static const char lines[] =
    "{\"message\":{\"content\":\"x\",\"thinking\":\"y\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
    "\"arguments\":{\"x\":1}}}]}}\n{\"done\":true,\"eval_count\":3}\n";

static int write_to(const struct rv_wire_target *t)
{
    rv_err *err = NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(requests); i++) {
        rv_buf body = RV_BUF_INIT((size_t)1 << 20);
        rc = rv_wire_write_request(t, requests[i], &body, &err);
        rv_buf_fini(&body);
    }
    rv_err_free(err);
    return rc;
}

static int write_anthropic(void)
{
    return write_to(&anthropic);
}

static int write_ollama(void)
{
    return write_to(&ollama);
}

static int read_one(const struct rv_wire_target *t, const char *type, const char *body, bool fails)
{
    struct rv_llm_reply reply;
    rv_wire_reader *r = NULL;
    rv_err *err = NULL;
    int rc = rv_wire_reader_new(t, rv_str_of(type), NULL, NULL, &r, &err);

    if (rc == 0)
        rc = rv_wire_read(r, rv_str_of(body), &err);
    if (rc == 0) {
        rc = rv_wire_end(r, NULL, RV_LLM_ERROR_CONNECTION, &reply, &err);
        if (rc == 0 && reply.failed != fails)
            rc = RV_E_INTERNAL;
        if (rc != RV_E_NOMEM)
            rv_llm_reply_fini(&reply);
    }
    rv_wire_reader_free(r);
    rv_err_free(err);
    return rc;
}

static int read_anthropic(void)
{
    int rc = read_one(&anthropic, "text/event-stream", events, false);

    if (rc == 0)
        rc = read_one(&anthropic, "text/event-stream", broken, true);
    return rc == 0 ? read_one(&anthropic, "application/json", message, false) : rc;
}

static int read_ollama(void)
{
    int rc = read_one(&ollama, "application/x-ndjson", lines, false);

    return rc == 0 ? read_one(&ollama, "application/x-ndjson", "{\"error\":\"m\"}\n", true) : rc;
}

static int embed(void)
{
    const rv_str texts[] = {RV_STR_LIT("a"), RV_STR_LIT("b")};
    rv_buf body = RV_BUF_INIT(1000);
    struct rv_embeddings e = {0};
    rv_err *err = NULL;
    int rc = rv_wire_embed_write_request(&openai, texts, 2, 3, &body, &err);

    if (rc == 0)
        rc = rv_wire_embed_read(&openai, RV_STR_LIT("{\"data\":[{\"embedding\":[1]},{\"embedding\":\"AAAAPw==\"}]}"), 2,
                                &e, &err);
    rv_embeddings_fini(&e);
    if (rc == 0) {
        rc = rv_wire_embed_read(&ollama, RV_STR_LIT("{\"error\":\"m\"}"), 2, &e, &err);
        rc = rc == RV_E_PROVIDER && rv_err_code(err) == RV_E_PROVIDER ? 0 : RV_E_NOMEM;
    }
    rv_buf_fini(&body);
    rv_err_free(err);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"requests to Anthropic", write_anthropic},
                                                     {"requests to Ollama", write_ollama},
                                                     {"answers of Anthropic", read_anthropic},
                                                     {"answers of Ollama", read_ollama},
                                                     {"embeddings", embed}};

static json_object *request_via(const char *via)
{
    rv_buf text = RV_BUF_INIT(10000);
    json_object *made;

    rv_buf_printf(
        &text,
        "{'prompt':'p','system':'s','history':[{'role':'system','content':'x'},{'role':'user','content':'x'}],"
        "'turns':[{'role':'assistant','content':'c','tool_calls':[{'id':'a','name':'f','arguments':'[7]'}],"
        "'opaque':{'provider':'anthropic','blocks':[{'type':'thinking','thinking':'t','signature':'s'}]}},"
        "{'role':'tool','tool_call_id':'a','name':'f','content':'r','is_error':true}],"
        "'options':{'num_predict':5,'temperature':0.5},'tools':[{'name':'f','description':'d'},"
        "{'name':'g','parameters':{'type':'object','properties':{'a':{'$ref':'#/$defs/x'}},'$defs':{'x':{}}}}],"
        "'output':{'name':'o','via':'%s','schema':{'type':'object','description':'d','properties':{'a':{},"
        "'b':{'$ref':'#/$defs/"
        "x'},'c':{'enum':[1,null]}},'$defs':{'x':{'anyOf':[{'type':'null'},{'type':'string'}]}}}}}",
        via);
    made = rv_kit_json(rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return made;
}

START_TEST(every_allocation_may_fail)
{
    requests[0] = request_via("native");
    requests[1] = request_via("tool");
    requests[2] = request_via("prompt");
    requests[3] = rv_kit_json("{'prompt':'p','history':[{'role':'assistant','tool_calls':[{'id':'a','name':'f',"
                              "'arguments':'{}'}]},{'role':'tool','tool_call_id':'a','name':'f','content':'r'}]}");
    rv_fault_each(&scenarios[_i], 10);
    for (size_t i = 0; i < RV_COUNT(requests); i++)
        json_object_put(requests[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_wire_anthropic");
    TCase *tc = tcase_create("fault");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, (int)RV_COUNT(scenarios));
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
