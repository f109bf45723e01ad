/* Each allocation of an encoder and of a reader of requests fails once: no crash, no leak, and no stream with a hole.
 */
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/protocols.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"
#include "tests/unit/protocols/play.h"

/* Agents that speak at once, one repeats what another said, a call of the client, a question. */
static const char script[] =
    "{\"run_id\":\"r\",\"session_id\":\"s\",\"usage\":true,\"events\":true,\"metadata\":true,\"steps\":true,\"client_"
    "tools\":[\"pick\"]}\n"
    "{\"type\":\"stage_started\",\"stage\":\"a\",\"visit\":1}\n"
    "{\"type\":\"llm_call_start\",\"stage\":\"a\",\"visit\":1,\"call_id\":1,\"model\":\"m\"}\n"
    "{\"type\":\"delta\",\"kind\":\"thinking\",\"stage\":\"a\",\"call_id\":1,\"text\":\"hm\"}\n"
    "{\"type\":\"delta\",\"kind\":\"text\",\"stage\":\"a\",\"call_id\":1,\"text\":\"alpha \"}\n"
    "{\"type\":\"delta\",\"kind\":\"tool_call_start\",\"stage\":\"a\",\"call_id\":1,\"index\":0,\"id\":\"c1\",\"name\":"
    "\"ask_agent\"}\n"
    "{\"type\":\"delta\",\"kind\":\"tool_call_arguments\",\"stage\":\"a\",\"call_id\":1,\"index\":0,\"text\":\"{}\"}\n"
    "{\"type\":\"llm_result\",\"stage\":\"a\",\"visit\":1,\"call_id\":1,\"status\":\"success\",\"input_tokens\":1,"
    "\"output_tokens\":1}\n"
    "{\"type\":\"agent_started\",\"stage\":\"a\",\"visit\":1,\"agent\":\"b\",\"depth\":1,\"parent_tool_call_id\":"
    "\"c1\"}\n"
    "{\"type\":\"llm_call_start\",\"stage\":\"a\",\"visit\":1,\"agent\":\"b\",\"depth\":1,\"parent_tool_call_id\":"
    "\"c1\",\"call_id\":2,\"model\":\"n\"}\n"
    "{\"type\":\"delta\",\"kind\":\"text\",\"stage\":\"a\",\"agent\":\"b\",\"depth\":1,\"parent_tool_call_id\":\"c1\","
    "\"call_id\":2,\"text\":\"beta\"}\n"
    "{\"type\":\"llm_result\",\"stage\":\"a\",\"visit\":1,\"agent\":\"b\",\"depth\":1,\"parent_tool_call_id\":\"c1\","
    "\"call_id\":2,\"status\":\"success\"}\n"
    "{\"type\":\"tool_result\",\"stage\":\"a\",\"visit\":1,\"tool\":\"ask_agent\",\"step_id\":\"c1\",\"status\":"
    "\"success\",\"result\":{\"text_response\":\"beta\"}}\n"
    "{\"type\":\"stage_completed\",\"stage\":\"a\",\"visit\":1,\"status\":\"skipped\"}\n"
    "{\"type\":\"stage_started\",\"stage\":\"a\",\"visit\":2}\n"
    "{\"type\":\"action\",\"stage\":\"a\",\"visit\":1,\"action_type\":\"observation\",\"payload\":{\"confidence\":1}}\n"
    "{\"type\":\"tool_result\",\"stage\":\"a\",\"visit\":1,\"tool\":\"a\",\"step_id\":\"o\",\"structured\":true,"
    "\"result\":{\"x\":1}}\n"
    "{\"type\":\"llm_call_start\",\"stage\":\"a\",\"visit\":1,\"call_id\":3,\"model\":\"m\"}\n"
    "{\"type\":\"delta\",\"kind\":\"text\",\"stage\":\"a\",\"call_id\":3,\"text\":\"gamma\"}\n"
    "{\"type\":\"delta\",\"kind\":\"tool_call_start\",\"stage\":\"a\",\"call_id\":3,\"index\":0,\"id\":\"c2\",\"name\":"
    "\"pick\"}\n"
    "{\"type\":\"llm_result\",\"stage\":\"a\",\"visit\":1,\"call_id\":3,\"status\":\"success\"}\n"
    "{\"type\":\"question\",\"id\":\"q\",\"kind\":\"clarification\",\"question\":\"delta?\"}\n"
    "{\"type\":\"end\",\"status\":\"interrupted\",\"text\":\"omega\"}\n";

static const char *protocol;

/* The flat protocols may tell more when memory is short, never less. */
static int tell(void)
{
    static const char *const words[] = {"alpha", "beta", "gamma", "delta?"};
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);

    int rc = play(RV_STR_LIT(script), protocol, true, &out, NULL);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(words); i++)
        if (!strstr(rv_buf_cstr(&out), words[i]))
            rc = RV_E_INTERNAL;
    if (rc == 0 && strstr(rv_buf_cstr(&out), "\"raw\"")) /* arguments that are an object are not told as a text */
        rc = RV_E_INTERNAL;
    rv_buf_fini(&out);
    return rc;
}

START_TEST(any_allocation_of_a_stream_may_fail)
{
    size_t failed = 0;

    protocol = rv_protocol_text((enum rv_protocol_kind)_i);
    ck_assert_int_eq(tell(), 0);
    for (size_t n = 0;; n++) {
        rv_fault_arm(n);
        int rc = tell();
        if (!rv_fault_disarm())
            break;
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_int_eq(rv_fault_balance(), 0);
        failed += rc == RV_E_NOMEM;
    }
    if (rv_fault_works())
        ck_assert_uint_gt(failed, 100);
}
END_TEST

/* After a failure the stream is ended all the same. */
static int end_all_the_same(void)
{
    const struct rv_protocol_opts opts = {.kind = RV_PROTOCOL_AGUI, .run_id = "r", .session_id = "s"};
    const struct rv_protocol_end end = {.status = RV_RUN_COMPLETED, .finish = RV_UNSET};
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_protocol *p = NULL;

    int rc = rv_protocol_new(&opts, &p, NULL);
    if (rc == 0)
        rc = rv_protocol_begin(p, NULL, &out, NULL);
    if (rc == 0)
        rc = rv_protocol_on_event(p, NULL, RV_STR_LIT("{\"type\":\"stage_started\",\"stage\":\"a\",\"visit\":1}"), &out,
                                  NULL);
    bool broke = rc < 0;
    int last = p ? rv_protocol_end(p, NULL, &end, &out, NULL) : 0;
    if (broke && p && (last < 0 || !strstr(rv_buf_cstr(&out), "RUN_ERROR")))
        rc = RV_E_INTERNAL;
    rc = rc == 0 ? last : rc;
    rv_protocol_free(p);
    rv_buf_fini(&out);
    return rc;
}

static int read(enum rv_protocol_kind kind, const char *body)
{
    char path[RV_REQUEST_MAX_PATH];
    struct rv_request r;

    int rc = rv_request_read(kind, rv_str_of(body), &r, path, NULL);
    if (rc == 0)
        rv_request_fini(&r);
    return rc;
}

static int read_agui(void)
{
    return read(RV_PROTOCOL_AGUI, "{\"threadId\":\"t\",\"tools\":[{\"name\":\"a\"}],\"resume\":[{\"interruptId\":\"i\","
                                  "\"status\":\"resolved\",\"payload\":"
                                  "{\"text\":\"x\"}}],\"messages\":[{\"id\":\"1\",\"role\":\"tool\",\"toolCallId\":"
                                  "\"c\",\"content\":\"r\"},{\"id\":\"2\","
                                  "\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"},{\"type\":"
                                  "\"image\",\"source\":{\"type\":\"data\","
                                  "\"value\":\"aGk=\",\"mimeType\":\"image/png\"}}]}]}");
}

static int read_openai(void)
{
    return read(RV_PROTOCOL_OPENAI,
                "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],\"messages\":[{"
                "\"role\":\"system\","
                "\"content\":\"s\"},{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
                "\"function\":{\"name\":\"f\"}}]},"
                "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"},{\"role\":\"user\",\"content\":\"q\"}]}");
}

static int read_responses(void)
{
    return read(RV_PROTOCOL_RESPONSES,
                "{\"instructions\":\"i\",\"input\":[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\"},"
                "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"r\"}]}");
}

static const struct rv_fault_scenario scenarios[] = {
    {"end", end_all_the_same}, {"ag-ui", read_agui}, {"openai", read_openai}, {"responses", read_responses}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 5);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_protocols");
    TCase *c = tcase_create("loops");

    tcase_add_loop_test(c, any_allocation_of_a_stream_may_fail, 0, RV_N_PROTOCOLS);
    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
