/* The bodies of requests, compared with tests/golden/wire: one request, said on each wire, to targets that differ. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/kit.h"
#include "tests/unit/wire/suites.h"

static const struct {
    const char *golden;  /* of each wire: tests/golden/wire/<wire>/<golden>.json */
    const char *request; /* tests/golden/wire/requests/<request>.json; NULL: the same name */
    struct rv_wire_target target;
    const char *extra; /* NULL: none */
    bool on_anthropic_only;
} bodies[] = {
    {.golden = "plain"},
    {.golden = "conversation"},
    {.golden = "layers"},   /* p8 W8: instructions stand right behind the system prompt, whatever the history holds */
    {.golden = "examples"}, /* behind the system texts, before what was said */
    {.golden = "images"},
    {.golden = "images-alone"},
    {.golden = "tools"},
    {.golden = "tools-references"}, /* of which Ollama reads none */
    {.golden = "tools-of-before"},  /* an agent without tools after one with some */
    {.golden = "required"},
    {.golden = "no-tools"},
    {.golden = "output-auto"},
    {.golden = "output-open"},
    {.golden = "output-map"},
    {.golden = "output-tool"},
    {.golden = "output-references"}, /* of which Ollama reads none */
    {.golden = "output-endless"},
    {.golden = "output-ambiguous"},
    {.golden = "output-prompt"},
    {.golden = "output-without-native", .request = "output-auto", .target = {.no_native_output = true}},
    {.golden = "output-without-tools",
     .request = "output-auto",
     .target = {.no_native_output = true, .no_tools = true}},
    {.golden = "documents", .on_anthropic_only = true}, /* Ollama takes no files */
    {.golden = "one-call", .request = "required", .target = {.no_parallel_calls = true}},
    {.golden = "one-call-auto", .request = "tools", .target = {.no_parallel_calls = true}},
    {.golden = "no-sampling", .request = "required", .target = {.no_sampling = true}},
    {.golden = "extra-thinking",
     .request = "required",
     .extra = "{'thinking':{'type':'enabled','budget_tokens':1024},'think':true,'max_tokens':9000,'temperature':1,"
              "'options':{'num_ctx':9,'top_k':3}}"},
    {.golden = "extra-effort",
     .request = "output-auto",
     .extra = "{'output_config':{'effort':'low'},'metadata':null,'model':'other','keep_alive':'5m'}"},
};

static const struct {
    const char *name;
    enum rv_wire_kind wire;
} wires[] = {{"anthropic", RV_WIRE_ANTHROPIC}, {"ollama", RV_WIRE_OLLAMA}};

/* Proves 12.2/bodies: Requests are those of golden files, and of the vendors' own types
 * Proves p8.W8: The instructions stand right behind the system prompt, whatever the history holds, on every wire
 * Proves 10/format, 12.1/via, p8.4.2 */
START_TEST(bodies_are_as_in_the_golden_files)
{
    const char *name = bodies[_i].golden, *request_name = bodies[_i].request ? bodies[_i].request : name;
    char path[128];
    char *text;
    json_object *request, *extra = bodies[_i].extra ? rv_kit_json(bodies[_i].extra) : NULL;

    snprintf(path, sizeof path, "tests/golden/wire/requests/%s.json", request_name);
    text = rv_kit_read(path);
    request = rv_kit_json(text);
    free(text);
    for (size_t i = 0; i < (bodies[_i].on_anthropic_only ? 1 : RV_COUNT(wires)); i++) {
        struct rv_wire_target t = bodies[_i].target;
        rv_buf body = RV_BUF_INIT(1 << 20), pretty = RV_BUF_INIT(1 << 20);
        rv_err *err = NULL;
        json_object *json;

        t.wire = wires[i].wire;
        t.provider = wires[i].name;
        t.model = "m-1";
        t.extra_body = extra;
        ck_assert_msg(rv_wire_write_request(&t, request, &body, &err) == 0, "%s: %s", name, rv_err_text(err));
        json = rv_kit_json(rv_buf_cstr(&body));
        rv_json_write_pretty(json, &pretty);
        rv_buf_putc(&pretty, '\n');
        snprintf(path, sizeof path, "wire/%s/%s.json", wires[i].name, name);
        ck_assert(rv_kit_golden(path, rv_buf_cstr(&pretty)));
        json_object_put(json);
        rv_buf_fini(&body);
        rv_buf_fini(&pretty);
    }
    json_object_put(request);
    json_object_put(extra);
}
END_TEST

static const struct {
    const char *what, *request, *want;
} refused[] = {
    {"a call without a result",
     "{'prompt':'x','turns':[{'role':'assistant','tool_calls':[{'id':'a','name':'f','arguments':'{}'}]}]}",
     "the tool call \"a\" of the history has no result right after it"},
    {"a text before the result",
     "{'prompt':'x','turns':[{'role':'assistant','tool_calls':[{'id':'a','name':'f','arguments':'{}'}]},{'role':'user',"
     "'content':'y'},{'role':'tool','tool_call_id':'a','name':'f','content':'z'}]}",
     "the tool call \"a\" of the history has no result right after it"},
    {"a result twice",
     "{'prompt':'x','turns':[{'role':'assistant','tool_calls':[{'id':'a','name':'f','arguments':'{}'}]},{'role':'tool',"
     "'tool_call_id':'a','name':'f','content':'z'},{'role':'tool','tool_call_id':'a','name':'f','content':'z'}]}",
     "a tool message answers \"a\", and no call before it has that id"},
    {"a role", "{'prompt':'x','turns':[{'role':'narrator','content':'y'}]}", "\"narrator\" is not a role of a message"},
    {"a call", "{'prompt':'x','turns':[{'role':'assistant','tool_calls':[7]}]}",
     "a tool call of the history is not an object"},
    {"a tool", "{'prompt':'x','tools':[7]}", "tool 1 of the request is not an object"},
    {"an image of another type",
     "{'prompt':'x','attachments':[{'type':'image','data':'AAAA','media_type':'image/bmp'}]}",
     "attachment 1 is of type image/bmp, and anthropic takes images of type image/jpeg, image/png, image/gif and "
     "image/webp"},
    {"a file of another type", "{'prompt':'x','attachments':[{'type':'file','data':'AAAA','media_type':'text/csv'}]}",
     "attachment 1 is of type text/csv, and anthropic takes files of type application/pdf and text/plain"},
    {"a text by its address",
     "{'prompt':'x','attachments':[{'type':'file','url':'https://x','media_type':'text/plain'}]}",
     "attachment 1 is of type text/plain, and anthropic takes files by URL of type application/pdf"},
    {"bytes as a text", "{'prompt':'x','attachments':[{'type':'file','data':'/w==','media_type':'text/plain'}]}",
     "an attachment of type text/plain is not UTF-8"},
    {"what is no base64", "{'prompt':'x','attachments':[{'type':'file','data':'a.b.','media_type':'text/plain'}]}",
     "the data of an attachment is not base64"},
    {"a list as input", "{'prompt':'x','tools':[{'name':'f','parameters':{'type':'array'}}]}",
     "tool \"f\": its input is not of type \"object\""},
};

START_TEST(what_anthropic_would_refuse_is_not_sent)
{
    const struct rv_wire_target t = {.wire = RV_WIRE_ANTHROPIC, .provider = "anthropic", .model = "m"};
    json_object *request = rv_kit_json(refused[_i].request);
    rv_buf body = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;

    ck_assert_msg(rv_wire_write_request(&t, request, &body, &err) == RV_E_INVALID, "%s", refused[_i].what);
    ck_assert_str_eq(rv_err_text(err), refused[_i].want);
    rv_err_free(err);
    rv_buf_fini(&body);
    json_object_put(request);
}
END_TEST

TCase *bodies_case(void)
{
    TCase *tc = tcase_create("bodies");

    tcase_add_loop_test(tc, bodies_are_as_in_the_golden_files, 0, RV_COUNT(bodies));
    tcase_add_loop_test(tc, what_anthropic_would_refuse_is_not_sent, 0, RV_COUNT(refused));
    return tc;
}
