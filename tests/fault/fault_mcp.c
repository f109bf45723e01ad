/* Each allocation fails once while messages of MCP are read and written: no crash, no leak, and the code says no
 * memory. */
#include "coreengine/mcp/lines.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

static int read_message(rv_str text, int want)
{
    struct rv_mcp_message m;
    int rc = rv_mcp_read(text, &m, NULL, NULL);

    rv_mcp_message_fini(&m);
    return rc == want ? 0 : rc;
}

static int on_line(void *self, rv_str line, bool is_whole, rv_err **err)
{
    (void)self;
    (void)err;
    return is_whole ? read_message(line, 0) : 0;
}

static int messages_on_lines(void)
{
    static const char bytes[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"a\",\"params\":{\"n\":[1.10]}}\r\n"
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"m\"}}\nlonger than the limit "
        "longer than the limit longer than the limit longer than the limit\n";
    struct rv_mcp_lines lines;
    int rc = 0;

    rv_mcp_lines_init(&lines, 70, on_line, NULL);
    for (size_t at = 0; rc == 0 && at + 1 < sizeof bytes; at++)
        rc = rv_mcp_lines_read(&lines, (rv_str){bytes + at, 1}, NULL);
    rv_mcp_lines_fini(&lines);
    return rc;
}

static int refused(void)
{
    int rc = read_message(RV_STR_LIT("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}"), RV_E_INVALID);

    return rc < 0 ? rc : read_message(RV_STR_LIT("{\"jsonrpc\":"), RV_E_INVALID);
}

static int written(void)
{
    rv_buf b = RV_BUF_INIT(1000);
    int rc = rv_mcp_write_request(1, "ping", NULL, &b, NULL);

    if (rc == 0)
        rc = rv_mcp_write_error(NULL, RV_MCP_PARSE_ERROR, "why", NULL, &b, NULL);
    rv_buf_fini(&b);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {
    {"messages_on_lines", messages_on_lines}, {"refused", refused}, {"written", written}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 1);
}
END_TEST

static TCase *mcp_case(void)
{
    TCase *tc = tcase_create("mcp");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, (int)RV_COUNT(scenarios));
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {mcp_case};

    return rv_kit_run_cases("fault_mcp", cases, RV_COUNT(cases));
}
