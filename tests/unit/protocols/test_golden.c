/* Scripts in all protocols against what was reviewed once; and what no script of a few lines can show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/kit.h"
#include "tests/unit/protocols/play.h"
#include "tests/unit/protocols/suites.h"

#define FOLDER RV_SOURCE_DIR "/tests/unit/protocols/scripts/"

static const char *const scripts[] = {"remlight", "delegation", "structured", "client-tool",
                                      "question", "failure",    "hidden",     "guarded"};
static const char *const protocols[] = {
    "ag-ui", "ag-ui-0", "openai", "openai-responses", "remlight", "openai+whole", "openai-responses+whole"};

static void read_script(const char *name, rv_buf *script)
{
    char path[512];

    snprintf(path, sizeof path, FOLDER "%s.jsonl", name);
    ck_assert_int_eq(rv_file_read(path, script, NULL), 0);
}

START_TEST(a_script_is_told_as_it_was_reviewed)
{
    const char *name = scripts[(size_t)_i / RV_COUNT(protocols)],
               *protocol = protocols[(size_t)_i % RV_COUNT(protocols)];
    rv_buf script = RV_BUF_INIT((size_t)1 << 20), out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_err *err = NULL;
    char golden[256];

    read_script(name, &script);
    int rc = play(rv_buf_str(&script), protocol, false, &out, &err);
    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
    rv_buf_puts(&out, strchr(protocol, '+') ? "\n" : "");
    snprintf(golden, sizeof golden, "protocols/%s.%s.txt", name, protocol);
    ck_assert(rv_kit_golden(golden, rv_buf_cstr(&out)));
    rv_buf_fini(&script);
    rv_buf_fini(&out);
}
END_TEST

/* --- our own reader of that protocol --- */

static void read_wire(const char *name, struct rv_llm_reply *reply)
{
    const struct rv_wire_target target = {.wire = RV_WIRE_OPENAI, .provider = "reeve", .model = "m"};
    rv_buf script = RV_BUF_INIT((size_t)1 << 20), out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_wire_reader *r = NULL;

    read_script(name, &script);
    ck_assert_int_eq(play(rv_buf_str(&script), "openai", true, &out, NULL), 0);
    ck_assert_int_eq(rv_wire_reader_new(&target, RV_STR_LIT("text/event-stream"), NULL, NULL, &r, NULL), 0);
    for (size_t at = 0; at < out.len; at += 7)
        ck_assert_int_eq(rv_wire_read(r, (rv_str){out.ptr + at, out.len - at < 7 ? out.len - at : 7}, NULL), 0);
    ck_assert_int_eq(rv_wire_end(r, NULL, RV_LLM_ERROR_PROTOCOL, reply, NULL), 0);
    rv_wire_reader_free(r);
    rv_buf_fini(&script);
    rv_buf_fini(&out);
}

START_TEST(our_own_reader_gets_the_text_the_calls_and_the_usage_back)
{
    struct rv_llm_reply reply;

    read_wire("client-tool", &reply);
    ck_assert(!reply.failed);
    ck_assert_str_eq(rv_buf_cstr(&reply.text), "Choose.");
    ck_assert_str_eq(rv_buf_cstr(&reply.tool_calls),
                     "[{\"id\":\"call_1\",\"name\":\"pick\",\"arguments\":\"{\\\"n\\\":1}\"},"
                     "{\"id\":\"call_2\",\"name\":\"pick\",\"arguments\":\"{\\\"n\\\":2}\"}]");
    ck_assert_int_eq(reply.answer.finish, RV_FINISH_TOOL_CALLS);
    ck_assert(reply.answer.has_usage && reply.answer.usage.input_tokens == 3);
    rv_llm_reply_fini(&reply);

    read_wire("delegation", &reply);
    ck_assert_str_eq(rv_buf_cstr(&reply.text),
                     "I ask.\n\nAt six.\n\nBring a coat."); /* what was said is not repeated */
    rv_llm_reply_fini(&reply);

    read_wire("failure", &reply);
    ck_assert(reply.failed);
    rv_llm_reply_fini(&reply);
}
END_TEST

START_TEST(a_call_that_went_back_to_the_model_is_not_for_the_client_to_make)
{
    static const char *const flat[] = {"openai", "openai+whole", "openai-responses", "openai-responses+whole"};
    rv_buf script = RV_BUF_INIT((size_t)1 << 20), out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    struct rv_llm_reply reply;

    read_wire("refused", &reply);
    ck_assert_str_eq(rv_buf_cstr(&reply.text), "It cannot be picked.");
    ck_assert_uint_eq(reply.tool_calls.len, 0);
    ck_assert_int_eq(reply.answer.finish, RV_FINISH_STOP);
    rv_llm_reply_fini(&reply);
    read_script("refused", &script);
    for (size_t i = 0; i < RV_COUNT(flat); i++) {
        rv_buf_clear(&out);
        ck_assert_int_eq(play(rv_buf_str(&script), flat[i], false, &out, NULL), 0);
        ck_assert_msg(!strstr(rv_buf_cstr(&out), "call_1"), "%s: %s", flat[i], rv_buf_cstr(&out));
    }
    rv_buf_fini(&script);
    rv_buf_fini(&out);
}
END_TEST

/* --- long texts --- */

/* Of the texts within "delta" or "content": their bytes together, and the longest block. */
static size_t count_text(rv_str out, size_t *longest)
{
    size_t sum = 0;

    *longest = 0;
    for (rv_str rest = out; rest.len > 0;) {
        const char *end = memmem(rest.ptr, rest.len, "\n\n", 2);
        size_t n = end ? (size_t)(end - rest.ptr) + 2 : rest.len;
        const char *text = memmem(rest.ptr, n, "abcdefghij", 10);
        const char *quote = text ? memchr(text, '"', n - (size_t)(text - rest.ptr)) : NULL;
        const char *open = text;
        while (open && open[-1] != '"')
            open--;
        sum += quote ? (size_t)(quote - open) : 0;
        *longest = n > *longest ? n : *longest;
        rest = (rv_str){rest.ptr + n, rest.len - n};
    }
    return sum;
}

START_TEST(a_long_piece_is_split_and_not_cut)
{
    static const char script[] =
        "{\"run_id\":\"r\"}\n{\"type\":\"stage_started\",\"stage\":\"s\",\"visit\":1}\n"
        "{\"type\":\"llm_call_start\",\"stage\":\"s\",\"visit\":1,\"call_id\":1}\n"
        "{\"type\":\"long\",\"stage\":\"s\",\"bytes\":3000000}\n{\"type\":\"end\",\"status\":\"completed\"}\n";
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    size_t longest = 0;

    ck_assert_int_eq(play(RV_STR_LIT(script), protocols[_i], false, &out, NULL), 0);
    ck_assert_uint_eq(count_text(rv_buf_str(&out), &longest), 3000000);
    ck_assert_uint_lt(longest, 1000000);
    rv_buf_fini(&out);
}
END_TEST

/* --- failures and ends --- */

static rv_protocol *new_protocol(enum rv_protocol_kind kind)
{
    const struct rv_protocol_opts opts = {.kind = kind, .run_id = "r", .session_id = "s", .child_text = RV_UNSET};
    rv_protocol *p = NULL;

    ck_assert_int_eq(rv_protocol_new(&opts, &p, NULL), 0);
    return p;
}

/* A piece of text, as a line of deltas. */
#define DELTA(text)                                                                                                    \
    RV_STR_LIT("{\"type\":\"delta\",\"kind\":\"text\",\"stage\":\"s\",\"call_id\":1,\"text\":\"" text "\"}")

START_TEST(nothing_comes_behind_the_end)
{
    const struct rv_protocol_end end = {.status = RV_RUN_COMPLETED, .finish = RV_UNSET, .text = RV_STR_LIT("hi")};
    rv_protocol *p = new_protocol((enum rv_protocol_kind)_i);
    const rv_str d = DELTA("late");
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);

    ck_assert_int_eq(rv_protocol_begin(p, NULL, &out, NULL), 0);
    ck_assert_int_eq(rv_protocol_end(p, NULL, &end, &out, NULL), 0);
    ck_assert(rv_protocol_has_ended(p));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&out), "hi"));
    size_t len = out.len;
    ck_assert_int_eq(rv_protocol_on_event(p, NULL, d, &out, NULL), 0);
    ck_assert_int_eq(rv_protocol_on_event(p, NULL, RV_STR_LIT("{\"type\":\"custom\",\"name\":\"x\"}"), &out, NULL), 0);
    ck_assert_int_eq(rv_protocol_end(p, NULL, &end, &out, NULL), 0);
    ck_assert_uint_eq(out.len, len);
    rv_protocol_free(p);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(a_stream_that_broke_is_ended_as_failed)
{
    const struct rv_protocol_end end = {.status = RV_RUN_COMPLETED, .finish = RV_UNSET, .text = RV_STR_LIT("hi")};
    rv_protocol *p = new_protocol((enum rv_protocol_kind)_i);
    const rv_str d = DELTA("words \xff that are none");
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_protocol_begin(p, NULL, &out, NULL), 0);
    size_t len = out.len;
    ck_assert_int_eq(rv_protocol_on_event(p, NULL, d, &out, &err), RV_E_INVALID);
    rv_err_free(err);
    ck_assert_uint_eq(out.len, len);
    ck_assert_int_eq(rv_protocol_end(p, NULL, &end, &out, NULL), 0);
    ck_assert(strstr(rv_buf_cstr(&out), "error") || strstr(rv_buf_cstr(&out), "RUN_ERROR"));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&out), "RUN_FINISHED"));
    rv_protocol_free(p);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(only_the_last_block_of_a_call_has_its_id)
{
    const rv_str d = DELTA("hi");
    const struct rv_protocol_at at = {.id = "r.7"}, odd = {.id = "a b"};
    rv_protocol *p = new_protocol(RV_PROTOCOL_AGUI);
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);

    ck_assert_int_eq(rv_protocol_begin(p, NULL, &out, NULL), 0);
    rv_buf_clear(&out);
    ck_assert_int_eq(rv_protocol_on_event(p, &at, d, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out),
                     "data: {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"r-1\",\"role\":\"assistant\"}\n\n"
                     "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"r-1\",\"delta\":\"hi\"}\nid: r.7\n\n");
    rv_buf_clear(&out);
    ck_assert_int_eq(rv_protocol_on_event(p, &odd, d, &out, NULL), 0);
    ck_assert_ptr_null(strstr(rv_buf_cstr(&out), "id: "));
    rv_protocol_free(p);
    rv_buf_fini(&out);
}
END_TEST

static int whole_result(void *self, int64_t call_id, rv_buf *out, rv_err **err)
{
    (void)self;
    (void)err;
    rv_buf_printf(out, "{\"whole\":%lld}", (long long)call_id);
    return 0;
}

START_TEST(a_long_result_is_asked_for)
{
    const struct rv_protocol_opts opts = {.kind = RV_PROTOCOL_AGUI,
                                          .run_id = "r",
                                          .session_id = "s",
                                          .child_text = RV_UNSET,
                                          .whole_result = whole_result};
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_protocol *p = NULL;

    ck_assert_int_eq(rv_protocol_new(&opts, &p, NULL), 0);
    ck_assert_int_eq(rv_protocol_begin(p, NULL, &out, NULL), 0);
    rv_buf_clear(&out);
    ck_assert_int_eq(
        rv_protocol_on_event(p, NULL,
                             RV_STR_LIT("{\"type\":\"tool_result\",\"stage\":\"s\",\"visit\":1,\"tool\":\"t\","
                                        "\"step_id\":\"c\",\"result_preview\":\"{\",\"result_ref\":{\"call_id\":5}}"),
                             &out, NULL),
        0);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&out), "{\\\"whole\\\":5}"));
    rv_protocol_free(p);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(a_call_of_an_earlier_stream_only_has_its_result)
{
    static const char *const known[] = {"call_1"};
    const struct rv_protocol_opts opts = {.kind = RV_PROTOCOL_AGUI,
                                          .run_id = "r",
                                          .session_id = "s",
                                          .child_text = RV_UNSET,
                                          .known_calls = known,
                                          .n_known_calls = 1};
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_protocol *p = NULL;

    ck_assert_int_eq(rv_protocol_new(&opts, &p, NULL), 0);
    ck_assert_int_eq(rv_protocol_begin(p, NULL, &out, NULL), 0);
    rv_buf_clear(&out);
    ck_assert_int_eq(
        rv_protocol_on_event(p, NULL,
                             RV_STR_LIT("{\"type\":\"tool_call_start\",\"stage\":\"s\",\"visit\":2,\"tool\":\"t\","
                                        "\"step_id\":\"call_1\",\"arguments\":{\"a\":1}}"),
                             &out, NULL),
        0);
    ck_assert_uint_eq(out.len, 0);
    ck_assert_int_eq(
        rv_protocol_on_event(p, NULL,
                             RV_STR_LIT("{\"type\":\"tool_result\",\"stage\":\"s\",\"visit\":2,\"tool\":\"t\","
                                        "\"step_id\":\"call_1\",\"status\":\"success\",\"result\":1}"),
                             &out, NULL),
        0);
    ck_assert_str_eq(rv_buf_cstr(&out),
                     "data: {\"type\":\"TOOL_CALL_RESULT\",\"messageId\":\"r-call_1-result\",\"toolCallId\":"
                     "\"call_1\",\"content\":\"1\",\"role\":\"tool\"}\n\n");
    rv_protocol_free(p);
    rv_buf_fini(&out);
}
END_TEST

static const char *const before[] = {
    "{\"type\":\"stage_started\",\"stage\":\"s\",\"visit\":1}",
    "{\"type\":\"llm_call_start\",\"stage\":\"s\",\"visit\":1,\"call_id\":1,\"model\":\"m\"}",
    "{\"type\":\"delta\",\"kind\":\"text\",\"stage\":\"s\",\"call_id\":1,\"text\":\"I delete.\"}",
    ("{\"type\":\"delta\",\"kind\":\"tool_call_start\",\"stage\":\"s\",\"call_id\":1,\"index\":0,\"id\":\"c1\","
     "\"name\":\"rm\"}"),
    "{\"type\":\"llm_result\",\"stage\":\"s\",\"visit\":1,\"call_id\":1,\"status\":\"success\",\"input_tokens\":5}",
    "{\"type\":\"stage_completed\",\"stage\":\"s\",\"visit\":1,\"status\":\"skipped\"}",
    "{\"type\":\"interrupt_pending\",\"kind\":\"confirmation\",\"id\":\"int_1\",\"question\":\"May it?\"}",
};
static const char *const behind[] = {
    "{\"type\":\"stage_started\",\"stage\":\"s\",\"visit\":2}",
    "{\"type\":\"tool_call_start\",\"stage\":\"s\",\"visit\":2,\"tool\":\"rm\",\"step_id\":\"c1\",\"arguments\":{}}",
    ("{\"type\":\"tool_result\",\"stage\":\"s\",\"visit\":2,\"tool\":\"rm\",\"step_id\":\"c1\",\"status\":\"success\","
     "\"result\":1}"),
    "{\"type\":\"llm_call_start\",\"stage\":\"s\",\"visit\":2,\"call_id\":3,\"model\":\"m\"}",
    "{\"type\":\"delta\",\"kind\":\"text\",\"stage\":\"s\",\"call_id\":3,\"text\":\"Done.\"}",
};

static void tell(rv_protocol *p, const char *const *lines, size_t n, rv_buf *out)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(rv_protocol_on_event(p, NULL, rv_str_of(lines[i]), out, NULL), 0);
}

/* 0: another encoder is told what was before; 1: the same one goes on. */
START_TEST(a_run_that_goes_on_is_told_from_there)
{
    const struct rv_protocol_opts opts = {
        .kind = RV_PROTOCOL_AGUI, .run_id = "r", .session_id = "s", .child_text = RV_UNSET};
    const struct rv_protocol_end end = {.status = RV_RUN_COMPLETED, .finish = RV_UNSET};
    const struct rv_protocol_end waits = {.status = RV_RUN_INTERRUPTED, .finish = RV_UNSET};
    rv_protocol *p = new_protocol(RV_PROTOCOL_AGUI);
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);

    if (_i == 1)
        ck_assert_int_eq(rv_protocol_begin(p, NULL, &out, NULL), 0);
    tell(p, before, RV_COUNT(before), &out);
    if (_i == 0) {
        ck_assert_uint_eq(out.len, 0);
        ck_assert_int_eq(rv_protocol_begin(p, NULL, &out, NULL), 0);
    } else {
        ck_assert_int_eq(rv_protocol_begin_again(p, &opts, NULL, &out, NULL), RV_E_STATE);
        ck_assert_int_eq(rv_protocol_end(p, NULL, &waits, &out, NULL), 0);
        ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&out), "\"outcome\":{\"type\":\"interrupt\""));
        ck_assert_ptr_null(strstr(rv_buf_cstr(&out), "TOOL_CALL_RESULT"));
        rv_buf_clear(&out);
        ck_assert_int_eq(rv_protocol_begin_again(p, &opts, NULL, &out, NULL), 0);
    }
    tell(p, behind, RV_COUNT(behind), &out);
    ck_assert_int_eq(rv_protocol_end(p, NULL, &end, &out, NULL), 0);
    ck_assert_str_eq(
        rv_buf_cstr(&out),
        "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"s\",\"runId\":\"r\",\"protocolVersion\":\"1.0\"}\n\n"
        "data: {\"type\":\"TOOL_CALL_RESULT\",\"messageId\":\"r-c1-result\",\"toolCallId\":\"c1\",\"content\":\"1\","
        "\"role\":\"tool\"}\n\n"
        "data: {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"r-3\",\"role\":\"assistant\"}\n\n"
        "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"r-3\",\"delta\":\"Done.\"}\n\n"
        "data: {\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"r-3\"}\n\n"
        "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"s\",\"runId\":\"r\",\"outcome\":{\"type\":\"success\"}}\n\n");
    rv_protocol_free(p);
    rv_buf_fini(&out);
}
END_TEST

static const struct {
    enum rv_protocol_family family;
    struct rv_protocol_fault fault;
    const char *want;
} faults[] = {
    {RV_FAMILY_PROBLEM,
     {.status = 404, .detail = "no such run"},
     "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,\"detail\":\"no such "
     "run\",\"code\":\"not_found\","
     "\"error\":{\"message\":\"no such run\",\"type\":\"not_found_error\",\"param\":null,\"code\":\"not_found\"}}"},
    {RV_FAMILY_OPENAI,
     {.status = 400, .param = "messages[0].role", .detail = "must be user", .request_id = "req_1"},
     "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"detail\":\"must be user\",\"code\":"
     "\"invalid_argument\",\"request_id\":\"req_1\",\"error\":{\"message\":\"must be user\",\"type\":"
     "\"invalid_request_error\",\"param\":\"messages[0].role\",\"code\":\"invalid_argument\"}}"},
    {RV_FAMILY_P8,
     {.status = 418, .code = "quota_exceeded"},
     "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":418,\"detail\":\"Bad Request\",\"code\":"
     "\"quota_exceeded\",\"error\":{\"message\":\"Bad "
     "Request\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":"
     "\"quota_exceeded\"}}"},
    {RV_FAMILY_PROBLEM,
     {.status = 421, .code = "misdirected_request", .detail = "not of this host"},
     "{\"type\":\"about:blank\",\"title\":\"Misdirected Request\",\"status\":421,\"detail\":\"not of this host\","
     "\"code\":\"misdirected_request\",\"error\":{\"message\":\"not of this host\",\"type\":"
     "\"invalid_request_error\",\"param\":null,\"code\":\"misdirected_request\"}}"},
};

START_TEST(a_refusal_serves_all_readers)
{
    rv_buf out = RV_BUF_INIT(4096);

    rv_protocol_fault_write(faults[_i].family, &faults[_i].fault, &out);
    ck_assert_str_eq(rv_buf_cstr(&out), faults[_i].want);
    ck_assert_str_eq(rv_protocol_fault_type(faults[_i].family),
                     faults[_i].family == RV_FAMILY_PROBLEM ? "application/problem+json" : "application/json");
    rv_buf_fini(&out);
}
END_TEST

START_TEST(the_detail_of_p8_may_be_an_object)
{
    rv_buf out = RV_BUF_INIT(4096);
    json_object *details = NULL;

    ck_assert_int_eq(
        rv_json_parse(RV_STR_LIT("{\"error\":\"chat_token_quota_exceeded\",\"used\":5}"), NULL, &details, NULL), 0);
    const struct rv_protocol_fault fault = {.status = 429, .details = details, .detail = "used up"};
    rv_protocol_fault_write(RV_FAMILY_P8, &fault, &out);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&out), "\"detail\":{\"error\":\"chat_token_quota_exceeded\",\"used\":5}"));
    rv_buf_clear(&out);
    rv_protocol_fault_write(RV_FAMILY_PROBLEM, &fault, &out);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&out), "\"detail\":\"used up\""));
    ck_assert_int_eq(rv_protocol_status(RV_E_QUOTA), 429);
    ck_assert_int_eq(rv_protocol_status(RV_E_INTERNAL), 500);
    ck_assert_int_eq(rv_protocol_status(RV_E_DISK), 507);
    ck_assert_int_eq(rv_protocol_status(RV_E_FILES), 503);
    ck_assert_int_eq(rv_protocol_status(RV_E_THREADS), 503);
    json_object_put(details);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(ag_ui_has_no_whole_answers)
{
    const struct rv_protocol_opts opts = {.kind = RV_PROTOCOL_AGUI, .is_whole = true, .run_id = "r", .session_id = "s"};
    rv_protocol *p = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_protocol_new(&opts, &p, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), "the protocol ag-ui has no whole answers: ask for a stream");
    rv_err_free(err);
}
END_TEST

TCase *golden_case(void)
{
    TCase *c = tcase_create("golden");

    tcase_add_loop_test(c, a_script_is_told_as_it_was_reviewed, 0, RV_COUNT(scripts) * RV_COUNT(protocols));
    tcase_add_test(c, our_own_reader_gets_the_text_the_calls_and_the_usage_back);
    tcase_add_test(c, a_call_that_went_back_to_the_model_is_not_for_the_client_to_make);
    tcase_add_loop_test(c, a_long_piece_is_split_and_not_cut, 0, 3);
    tcase_add_loop_test(c, nothing_comes_behind_the_end, 0, RV_N_PROTOCOLS);
    tcase_add_loop_test(c, a_stream_that_broke_is_ended_as_failed, 0, RV_N_PROTOCOLS);
    tcase_add_test(c, only_the_last_block_of_a_call_has_its_id);
    tcase_add_test(c, a_long_result_is_asked_for);
    tcase_add_test(c, a_call_of_an_earlier_stream_only_has_its_result);
    tcase_add_loop_test(c, a_run_that_goes_on_is_told_from_there, 0, 2);
    tcase_add_loop_test(c, a_refusal_serves_all_readers, 0, RV_COUNT(faults));
    tcase_add_test(c, the_detail_of_p8_may_be_an_object);
    tcase_add_test(c, ag_ui_has_no_whole_answers);
    return c;
}
