/* Bodies of requests, byte for byte. A file NAME.request.json has {target, request}; NAME.json beside it has the body.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

static bool is_set(json_object *target, const char *key)
{
    bool value = false;

    return rv_json_get_bool(target, key, &value) && value;
}

/* Borrows from the tree. */
static struct rv_wire_target target_of(json_object *target)
{
    struct rv_wire_target t = {.wire = RV_WIRE_OPENAI,
                               .provider = "openai",
                               .model = "gpt-x",
                               .old_max_tokens = is_set(target, "old_max_tokens"),
                               .developer_role = is_set(target, "developer_role"),
                               .no_stream_usage = is_set(target, "no_stream_usage"),
                               .no_parallel_calls = is_set(target, "no_parallel_calls"),
                               .no_sampling = is_set(target, "no_sampling"),
                               .no_tools = is_set(target, "no_tools"),
                               .no_native_output = is_set(target, "no_native_output"),
                               .no_strict_output = is_set(target, "no_strict_output"),
                               .no_images = is_set(target, "no_images"),
                               .no_files = is_set(target, "no_files"),
                               .extra_body = rv_json_get_obj(target, "extra_body")};

    return t;
}

static const char *const goldens[] = {
    "text",
    "conversation",
    "layers", /* p8 W8 */
    "examples",
    "attachments",
    "attachments_asked",
    "tools",
    "output_strict",
    "output_not_strict",
    "output_no_strict",
    "output_tool",
    "output_prompt",
    "output_auto_tool",
    "sampling",
    "extra_body",
    "old_server",
};

/* Proves 12.1/via: By the provider's own mode, a tool or words, whichever it can; in each the answer is checked
 * here
 * Proves p8.4.2: A request: the model behind its provider, tools and the output tool in one list, the output tool
 * forced, a limit of tokens, usage asked for
 * Proves 10/format, 12.2/bodies, p8.W8 */
START_TEST(a_request_has_this_body)
{
    char name[100], *text;
    json_object *file = NULL;
    struct rv_wire_target t;
    rv_buf body = RV_BUF_INIT((size_t)1 << 20);
    rv_err *err = NULL;

    (void)snprintf(name, sizeof name, RV_SOURCE_DIR "/tests/golden/wire/openai/%s.request.json", goldens[_i]);
    text = rv_kit_read(name);
    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &file, &err), 0);
    t = target_of(rv_json_get_obj(file, "target"));
    ck_assert_int_eq(rv_wire_write_request(&t, rv_json_get_obj(file, "request"), &body, &err), 0);
    rv_buf_putc(&body, '\n');
    (void)snprintf(name, sizeof name, "wire/openai/%s.json", goldens[_i]);
    ck_assert(rv_kit_golden(name, rv_buf_cstr(&body)));
    rv_buf_fini(&body);
    json_object_put(file);
    free(text);
}
END_TEST

static const struct {
    const char *target, *request, *want;
} refusals[] = {
    {"{'no_tools':true}", "{'prompt':'x','tools':[{'name':'f'}]}", "model \"gpt-x\" cannot call tools"},
    {"{'no_tools':true}", "{'prompt':'x','output':{'name':'o','schema':{},'via':'tool'}}",
     "model \"gpt-x\" cannot hand over output by a tool: it cannot call tools"},
    {"{'no_native_output':true}", "{'prompt':'x','output':{'name':'o','schema':{},'via':'native'}}",
     "model \"gpt-x\" has no mode for structured output"},
    {"{}", "{'prompt':'x','output':{'name':'o','schema':{},'via':'post'}}",
     "\"post\" is not a way to ask for structured output"},
    {"{}", "{'prompt':'x','output':{'name':'o','schema':{},'via':7}}", "\"via\" of the output is not a text"},
    {"{}", "{'prompt':'x','output':{'name':'o'}}", "the output has no schema"},
    {"{}", "{'prompt':'x','output':{'name':'o','schema':{'type':'array'},'via':'tool'}}",
     "a tool can only hand over output that is an object: its schema is not of type \"object\""},
    {"{}", "{'prompt':'x','attachments':[{'type':'file','url':'https://x/y.pdf'}]}",
     "attachment 1 is a file by its URL, and openai takes files only as data"},
    {"{'no_files':true}",
     "{'prompt':'x','attachments':[{'type':'image','url':'https://x/y.png'},{'type':'file','data':'AAAA','media_type':"
     "'application/pdf'}]}",
     "attachment 2 is a file, and model \"gpt-x\" of openai takes no files"},
    {"{'no_images':true}", "{'prompt':'x','attachments':[{'type':'image','url':'https://x/y.png'}]}",
     "attachment 1 is an image, and model \"gpt-x\" of openai takes no images"},
    {"{}", "{'prompt':'x','attachments':[7]}", "attachment 1 of the request is malformed"},
    {"{}", "{'prompt':'x','attachments':[{'type':'image','data':'AAAA'}]}", "attachment 1 of the request is malformed"},
    {"{}", "{'prompt':'x','attachments':[{'type':'image'}]}", "attachment 1 of the request is malformed"},
    {"{}", "{'prompt':'x','attachments':[{'type':'sound','url':'https://x'}]}",
     "attachment 1 of the request is malformed"},
    {"{}", "{'prompt':'x','history':[{'content':'y'}]}", "message 1 of \"history\" has no role"},
    {"{}", "{'prompt':'x','turns':[7]}", "message 1 of \"turns\" has no role"},
    {"{}", "{'prompt':'x','turns':[{'role':'assistant','tool_calls':[7]}]}",
     "a tool call of the conversation is not an object"},
    {"{}", "{'prompt':'x','tools':[7]}", "a tool of the request is not an object"},
};

START_TEST(what_can_not_be_said_is_refused)
{
    json_object *target = rv_kit_json(refusals[_i].target), *request = rv_kit_json(refusals[_i].request);
    struct rv_wire_target t = target_of(target);
    rv_buf body = RV_BUF_INIT((size_t)1 << 20);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_wire_write_request(&t, request, &body, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), refusals[_i].want);
    rv_err_free(err);
    rv_buf_fini(&body);
    json_object_put(request);
    json_object_put(target);
}
END_TEST

START_TEST(a_body_has_a_ceiling)
{
    json_object *request = rv_kit_json("{'prompt':'0123456789012345678901234567890123456789'}");
    struct rv_wire_target t = target_of(NULL);
    rv_buf body = RV_BUF_INIT(50);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_wire_write_request(&t, request, &body, &err), RV_E_LIMIT);
    rv_err_free(err);
    rv_buf_fini(&body);
    json_object_put(request);
}
END_TEST

START_TEST(each_wire_has_its_path)
{
    ck_assert_str_eq(rv_wire_path(RV_WIRE_OPENAI), "/chat/completions");
    ck_assert_str_eq(rv_wire_path(RV_WIRE_ANTHROPIC), "/v1/messages");
    ck_assert_str_eq(rv_wire_path(RV_WIRE_OLLAMA), "/api/chat");
}
END_TEST

TCase *openai_request_case(void)
{
    TCase *c = tcase_create("openai_request");

    tcase_add_loop_test(c, a_request_has_this_body, 0, RV_COUNT(goldens));
    tcase_add_loop_test(c, what_can_not_be_said_is_refused, 0, RV_COUNT(refusals));
    tcase_add_test(c, a_body_has_a_ceiling);
    tcase_add_test(c, each_wire_has_its_path);
    return c;
}
