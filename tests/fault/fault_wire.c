/* Every allocation of the wires fails once, as a request is written, an answer read or a fault understood: no crash, no
 * leak, RV_E_NOMEM. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/model/wire/wire_internal.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define DATA(json) "data: " json "\n\n"

static const struct rv_wire_target target = {.wire = RV_WIRE_OPENAI, .provider = "openai", .model = "gpt-x"};

/* What the scenarios read; made before any allocation fails. */
static json_object *request, *by_tool, *by_prompt;

static const char stream[] = DATA("{\"choices\":[{\"delta\":{\"content\":\"He\\u006clo\"}}]}")
    DATA("{\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}],\"usage\":{\"prompt_tokens\":3}}") DATA(
        "{\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}")
        DATA("{\"choices\":[{\"delta\":{\"content\":\"\\ude00\"}}]}") DATA(
            "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
            "\"arguments\":\"{\\\"x\\\":\"}}]}}]}")
            DATA("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}}]}")
                DATA("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"g\",\"arguments\":{}}}]}}]}")
                    DATA("{\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}") "data: [DONE]\n\n";

static const char broken[] = DATA("{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}")
    DATA("{\"error\":{\"message\":\"m\",\"code\":\"server_error\"}}");

static const char whole[] = "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}";

static int write_one(json_object *what)
{
    rv_buf body = RV_BUF_INIT((size_t)1 << 20);
    rv_err *err = NULL;
    int rc = rv_wire_write_request(&target, what, &body, &err);

    rv_buf_fini(&body);
    rv_err_free(err);
    return rc;
}

static int write_requests(void)
{
    int rc = write_one(request);

    if (rc == 0)
        rc = write_one(by_tool);
    return rc == 0 ? write_one(by_prompt) : rc;
}

static int read_one(const char *type, const char *body, size_t step, bool fails)
{
    struct rv_llm_reply reply;
    rv_wire_reader *r = NULL;
    rv_err *err = NULL;
    rv_str bytes = rv_str_of(body);
    int rc = rv_wire_reader_new(&target, rv_str_of(type), NULL, NULL, &r, &err);

    for (size_t at = 0; rc == 0 && at < bytes.len; at += step)
        rc = rv_wire_read(r, (rv_str){bytes.ptr + at, step < bytes.len - at ? step : bytes.len - at}, &err);
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

static int read_streams(void)
{
    int rc = read_one("text/event-stream", stream, 100, false);

    if (rc == 0)
        rc = read_one("text/event-stream", broken, 10, true);
    if (rc == 0)
        rc = read_one("application/json", whole, 10, false);
    if (rc == 0)
        rc = read_one("application/json", "{", 10, true);
    if (rc == 0)
        rc = read_one("application/x-ndjson", "[]", 1, true);
    return rc == 0 ? read_one("text/html", "<html>", 10, true) : rc;
}

static int read_fault_of(const char *body)
{
    struct rv_llm_reply reply;
    rv_err *err = NULL;
    int rc = rv_wire_read_fault(&target, 429, RV_STR_LIT("text/html"), rv_str_of(body), &reply, &err);

    if (rc == 0)
        rv_llm_reply_fini(&reply);
    rv_err_free(err);
    return rc;
}

static int read_faults(void)
{
    int rc = read_fault_of("{\"error\":{\"message\":\"m\",\"code\":\"insufficient_quota\"}}");

    if (rc == 0)
        rc = read_fault_of("[{\"error\":\"m\"}]");
    return rc == 0 ? read_fault_of("<html>") : rc;
}

static const struct rv_fault_scenario scenarios[] = {
    {"requests", write_requests}, {"streams", read_streams}, {"faults", read_faults}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 10);
}
END_TEST

static json_object *request_via(const char *via)
{
    rv_buf text = RV_BUF_INIT(10000);
    json_object *made;

    rv_buf_printf(
        &text,
        "{'prompt':'p','system':'s','history':[{'role':'user','content':'x'}],"
        "'turns':[{'role':'assistant','tool_calls':[{'id':'a','name':'f','arguments':'{}'}]},"
        "{'role':'tool','tool_call_id':'a','name':'f','content':'r'}],"
        "'options':{'num_predict':5,'temperature':0.5},"
        "'tools':[{'name':'f','description':'d','parameters':{'type':'object'}}],"
        "'output':{'name':'o','via':'%s','schema':{'type':'object','description':'d','properties':{"
        "'a':{'type':'string','minLength':1},'b':{'$ref':'#/$defs/x'},'c':{'type':'array','items':{'const':1}},"
        "'d':{'anyOf':[{'type':'null'}]},'e':{'enum':[1]}},'$defs':{'x':{'type':'object','properties':{}}}}}}",
        via);
    made = rv_kit_json(rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return made;
}

int main(void)
{
    static const char *const vias[] = {"native", "tool", "prompt"};
    json_object **into[] = {&request, &by_tool, &by_prompt};
    Suite *s = suite_create("fault_wire");
    TCase *c = tcase_create("loops");

    for (size_t i = 0; i < RV_COUNT(vias); i++)
        *into[i] = request_via(vias[i]);
    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(s, c);
    int rc = rv_kit_run(s);
    for (size_t i = 0; i < RV_COUNT(into); i++)
        json_object_put(*into[i]);
    return rc;
}
