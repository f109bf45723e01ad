/* Messages of JSON-RPC: what is one, what is not, and with which code the other side is told. */
#include "coreengine/mcp/mcp.h"

#include "tests/unit/mcp/suites.h"

static const struct {
    const char *text;
    enum rv_mcp_kind kind;
    const char *id; /* as JSON */
} sound[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", RV_MCP_REQUEST, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"\",\"params\":{}}", RV_MCP_REQUEST, "\"\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"method\":\"a\",\"x\":[]}", RV_MCP_REQUEST,
     "-9223372036854775808"},
    {" {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"} ", RV_MCP_NOTIFICATION, "null"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0000b\",\"result\":{}}", RV_MCP_RESULT, "\"a\\u0000b\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"no\"}}", RV_MCP_ERROR, "2"},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"\",\"data\":null}}", RV_MCP_ERROR, "null"},
    {"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":2147483647,\"message\":\"m\"}}", RV_MCP_ERROR, "null"},
};

START_TEST(reads_each_kind_of_message)
{
    struct rv_mcp_message m;
    rv_buf id = RV_BUF_INIT(100);
    int code = 7;

    ck_assert_int_eq(rv_mcp_read(rv_str_of(sound[_i].text), &m, &code, NULL), 0);
    ck_assert_int_eq(m.kind, sound[_i].kind);
    ck_assert_int_eq(code, 7);
    rv_json_write(m.id, &id);
    ck_assert_str_eq(rv_buf_cstr(&id), sound[_i].id);
    ck_assert((m.method != NULL) == (m.kind == RV_MCP_REQUEST || m.kind == RV_MCP_NOTIFICATION));
    ck_assert((m.text != NULL) == (m.kind == RV_MCP_ERROR));
    rv_buf_fini(&id);
    rv_mcp_message_fini(&m);
    ck_assert_ptr_null(m.root);
}
END_TEST

#define LOST "\xef\xbf\xbd"

/* What a text is for JSON, and as it is read. */
static const struct {
    const char *json, *text;
} halves[] = {
    {"cut \\ud83d", "cut " LOST},
    {"\\uDE00 and \\ud83d\\ude00", LOST " and \xf0\x9f\x98\x80"},
    {"\\ud83d\\ud83d\\ude00\\ude00", LOST "\xf0\x9f\x98\x80" LOST},
    {"\\\\ud83d \\ud83d\\n", "\\ud83d " LOST "\n"},
    {"\\\\\\ud83d\\u0041", "\\" LOST "A"},
    {"\\ud83dx\\ud83d", LOST "x" LOST},
};

START_TEST(reads_half_a_character_as_a_lost_one)
{
    rv_buf text = RV_BUF_INIT(1000);
    struct rv_mcp_message m;
    const char *read = "";

    rv_buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"%s\"}}", halves[_i].json);
    ck_assert_int_eq(rv_mcp_read(rv_buf_str(&text), &m, NULL, NULL), 0);
    ck_assert(rv_json_get_text(m.result, "text", &read));
    ck_assert_str_eq(read, halves[_i].text);
    rv_mcp_message_fini(&m);
    rv_buf_fini(&text);
}
END_TEST

static const struct {
    const char *text;
    int code;
    const char *id, *says; /* the id that the answer can have, as JSON; a part of the reason */
} broken[] = {
    {"", -32700, "null", "the message"},
    {"{", -32700, "null", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud83", -32700, "null", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud83d\\q\"}", -32700, "null", "column 42"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"} {}", -32700, "null", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"a\"}", -32700, "null", ""},
    {"null", -32600, "null", "object"},
    {"7", -32600, "null", "object"},
    {"[]", -32600, "null", "batches"},
    {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, "null", "batches"},
    {"{}", -32600, "null", "jsonrpc"},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", -32600, "1", "jsonrpc"},
    {"{\"jsonrpc\":2.0,\"id\":\"x\",\"method\":\"a\"}", -32600, "\"x\"", "jsonrpc"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", -32600, "1", "method"},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", -32600, "null", "id"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", -32600, "null", "id"},
    {"{\"jsonrpc\":\"2.0\",\"id\":9223372036854775808,\"method\":\"a\"}", -32600, "null", "id"},
    {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"a\"}", -32600, "null", "id"},
    {"{\"jsonrpc\":\"2.0\",\"id\":true,\"result\":{}}", -32600, "null", "id"},
    {"{\"jsonrpc\":\"2.0\",\"result\":{}}", -32600, "null", "id"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", -32600, "1", "method"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", -32600, "1", "method"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\\u0000ng\"}", -32600, "1", "method"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}", -32600, "1", "params"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":null}", -32600, "1", "params"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"result\":{}}", -32600, "1", "answer"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"error\":null}", -32600, "1", "answer"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}", -32600, "1", "either"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}", -32600, "1", "result"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", -32600, "1", "result"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"x\"}", -32600, "1", "error"},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{\"code\":1,\"message\":\"\"}}", -32600, "null", "id"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":2147483648,\"message\":\"\"}}", -32600, "1", "code"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1.0,\"message\":\"\"}}", -32600, "1", "code"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}", -32600, "1", "message"},
};

START_TEST(says_why_bytes_are_not_a_message)
{
    struct rv_mcp_message m;
    rv_buf text = RV_BUF_INIT(1000);
    rv_err *err = NULL;
    int code = 0;

    ck_assert_int_eq(rv_mcp_read(rv_str_of(broken[_i].text), &m, &code, &err), RV_E_INVALID);
    ck_assert_int_eq(code, broken[_i].code);
    rv_err_write_chain(err, &text);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), broken[_i].says));
    rv_buf_clear(&text);
    rv_json_write(m.id, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), broken[_i].id);
    ck_assert_ptr_null(m.method);
    rv_buf_fini(&text);
    rv_err_free(err);
    rv_mcp_message_fini(&m);
}
END_TEST

/* `n` times `what` between two ends. */
static void surround(rv_buf *b, const char *before, const char *what, size_t n, const char *after)
{
    rv_buf_puts(b, before);
    for (size_t i = 0; i < n; i++)
        rv_buf_puts(b, what);
    rv_buf_puts(b, after);
    ck_assert_int_eq(b->rc, 0);
}

static int read_code(const rv_buf *b)
{
    struct rv_mcp_message m;
    int code = 0, rc = rv_mcp_read(rv_buf_str(b), &m, &code, NULL);

    rv_mcp_message_fini(&m);
    return rc < 0 ? code : rc;
}

START_TEST(bounds_ids_depth_and_size)
{
    rv_buf b = RV_BUF_INIT(RV_MCP_MAX_MESSAGE + 100);
    const char *end = "\",\"method\":\"a\"}";

    surround(&b, "{\"jsonrpc\":\"2.0\",\"id\":\"", "x", RV_MCP_MAX_ID, end);
    ck_assert_int_eq(read_code(&b), 0);
    rv_buf_clear(&b);
    surround(&b, "{\"jsonrpc\":\"2.0\",\"id\":\"", "x", RV_MCP_MAX_ID + 1, end);
    ck_assert_int_eq(read_code(&b), RV_MCP_INVALID_REQUEST);

    rv_buf_clear(&b);
    surround(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"a\":", "[", RV_MCP_MAX_DEPTH - 2, "1");
    surround(&b, "", "]", RV_MCP_MAX_DEPTH - 2, "}}");
    ck_assert_int_eq(read_code(&b), 0);
    rv_buf_clear(&b);
    surround(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"a\":", "[", RV_MCP_MAX_DEPTH - 1, "1");
    surround(&b, "", "]", RV_MCP_MAX_DEPTH - 1, "}}");
    ck_assert_int_eq(read_code(&b), RV_MCP_INVALID_REQUEST);

    rv_buf_clear(&b);
    surround(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"a\"", " ", RV_MCP_MAX_MESSAGE - 30, "}");
    ck_assert_uint_eq(b.len, RV_MCP_MAX_MESSAGE);
    ck_assert_int_eq(read_code(&b), 0);
    rv_buf_puts(&b, " ");
    ck_assert_int_eq(read_code(&b), RV_MCP_INVALID_REQUEST);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(writes_what_it_reads)
{
    rv_buf b = RV_BUF_INIT(1000);
    json_object *value = NULL;
    struct rv_mcp_message m;

    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("{\"a\":\"\\n\\u2028\"}"), NULL, &value, NULL), 0);
    ck_assert_int_eq(rv_mcp_write_request(INT64_MIN, "tools/call", value, &b, NULL), 0);
    ck_assert_ptr_null(strchr(rv_buf_cstr(&b), '\n'));
    ck_assert_int_eq(rv_mcp_read(rv_buf_str(&b), &m, NULL, NULL), 0);
    ck_assert_int_eq(m.kind, RV_MCP_REQUEST);
    ck_assert_str_eq(m.method, "tools/call");
    ck_assert(rv_json_equal(m.params, value));

    rv_buf_clear(&b);
    ck_assert_int_eq(rv_mcp_write_result(m.id, NULL, &b, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&b), "{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"result\":{}}");
    rv_buf_clear(&b);
    ck_assert_int_eq(rv_mcp_write_result(m.id, value, &b, NULL), 0);
    rv_mcp_message_fini(&m);
    ck_assert_int_eq(rv_mcp_read(rv_buf_str(&b), &m, NULL, NULL), 0);
    ck_assert(rv_json_equal(m.result, value));
    rv_mcp_message_fini(&m);

    rv_buf_clear(&b);
    ck_assert_int_eq(rv_mcp_write_error(NULL, RV_MCP_PARSE_ERROR, "why", value, &b, NULL), 0);
    ck_assert_int_eq(rv_mcp_read(rv_buf_str(&b), &m, NULL, NULL), 0);
    ck_assert_int_eq(m.code, -32700);
    ck_assert_str_eq(m.text, "why");
    ck_assert(rv_json_equal(m.data, value));
    rv_mcp_message_fini(&m);

    rv_buf_clear(&b);
    ck_assert_int_eq(rv_mcp_write_notification("notifications/progress", NULL, &b, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&b), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}");
    rv_buf_fini(&b);
    b = RV_BUF_INIT(5);
    ck_assert_int_eq(rv_mcp_write_request(1, "a", NULL, &b, NULL), RV_E_LIMIT);
    rv_buf_fini(&b);
    json_object_put(value);
}
END_TEST

START_TEST(names_its_revisions)
{
    for (int v = RV_MCP_2024_11_05; v <= RV_MCP_2026_07_28; v++)
        ck_assert_int_eq(rv_mcp_version_of(rv_str_of(rv_mcp_version_text((enum rv_mcp_version)v))), v);
    ck_assert_int_eq(rv_mcp_version_of(RV_STR_LIT("")), RV_UNSET);
    ck_assert_int_eq(rv_mcp_version_of(RV_STR_LIT("2025-11-2")), RV_UNSET);
}
END_TEST

TCase *message_case(void)
{
    TCase *tc = tcase_create("message");

    tcase_add_loop_test(tc, reads_each_kind_of_message, 0, (int)RV_COUNT(sound));
    tcase_add_loop_test(tc, reads_half_a_character_as_a_lost_one, 0, (int)RV_COUNT(halves));
    tcase_add_loop_test(tc, says_why_bytes_are_not_a_message, 0, (int)RV_COUNT(broken));
    tcase_add_test(tc, bounds_ids_depth_and_size);
    tcase_add_test(tc, writes_what_it_reads);
    tcase_add_test(tc, names_its_revisions);
    return tc;
}
