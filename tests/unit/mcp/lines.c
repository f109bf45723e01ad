/* Lines out of bytes: the same lines however the bytes are cut. */
#include "coreengine/mcp/mcp.h"

#include "tests/unit/mcp/suites.h"

/* What came, one line each: its text in brackets, or "!" for one that was too long. */
static int note(void *self, rv_str line, bool is_whole, rv_err **err)
{
    rv_buf *seen = self;

    if (rv_str_is(line, "stop"))
        return RV_FAIL(err, RV_E_STATE, "stopped");
    rv_buf_putc(seen, is_whole ? '[' : '!');
    rv_buf_add_str(seen, line);
    if (is_whole)
        rv_buf_putc(seen, ']');
    return 0;
}

static void expect(const char *bytes, size_t max, const char *want)
{
    rv_buf seen = RV_BUF_INIT(1000);

    for (size_t step = 1; step <= strlen(bytes) + 1; step++) {
        struct rv_mcp_lines lines;
        rv_mcp_lines_init(&lines, max, note, &seen);
        for (size_t at = 0; at < strlen(bytes); at += step) {
            size_t left = strlen(bytes) - at;
            ck_assert_int_eq(rv_mcp_lines_read(&lines, (rv_str){bytes + at, left < step ? left : step}, NULL), 0);
        }
        ck_assert_int_eq(rv_mcp_lines_end(&lines, NULL), 0);
        ck_assert_str_eq(rv_buf_cstr(&seen), want);
        rv_mcp_lines_fini(&lines);
        rv_buf_clear(&seen);
    }
    rv_buf_fini(&seen);
}

static const struct {
    const char *bytes;
    size_t max;
    const char *want;
} cases[] = {
    {"", 10, ""},
    {"a", 10, "[a]"},
    {"a\nbc\n", 10, "[a][bc]"},
    {"a\r\nb\r", 10, "[a][b]"},
    {"\n\r\n  \n\t\r\na\n\n", 10, "[a]"},
    {"a\rb\n", 10, "[a\rb]"},
    {"12345\n1234\n", 4, "![1234]"},
    {"1234\r\n1234\r\n", 4, "[1234][1234]"},
    {"12345\r\n1\n", 4, "![1]"},
    {"123456789012345678901234567890", 4, "!"},
    {"123456789\n\n123456789\nx", 4, "!![x]"},
};

START_TEST(cuts_lines_wherever_reads_end)
{
    expect(cases[_i].bytes, cases[_i].max, cases[_i].want);
}
END_TEST

/* Random texts of a few letters, line ends and blanks: cut at random places they give what they give in one piece. */
START_TEST(any_cut_gives_the_same_lines)
{
    static const char alphabet[] = "ab\n\n\r {}";
    uint32_t x = (uint32_t)_i * 2654435761u + 1;
    char text[200];

    for (size_t i = 0; i < sizeof text; i++) {
        x = x * 1664525u + 1013904223u;
        text[i] = alphabet[(x >> 16) % (sizeof alphabet - 1)];
    }
    rv_buf whole = RV_BUF_INIT(2000), pieces = RV_BUF_INIT(2000);
    struct rv_mcp_lines lines;
    rv_mcp_lines_init(&lines, 12, note, &whole);
    ck_assert_int_eq(rv_mcp_lines_read(&lines, (rv_str){text, sizeof text}, NULL), 0);
    ck_assert_int_eq(rv_mcp_lines_end(&lines, NULL), 0);
    rv_mcp_lines_fini(&lines);
    rv_mcp_lines_init(&lines, 12, note, &pieces);
    for (size_t at = 0, n; at < sizeof text; at += n) {
        x = x * 1664525u + 1013904223u;
        n = (x >> 16) % 9;
        n = n < sizeof text - at ? n : sizeof text - at;
        ck_assert_int_eq(rv_mcp_lines_read(&lines, (rv_str){text + at, n}, NULL), 0);
    }
    ck_assert_int_eq(rv_mcp_lines_end(&lines, NULL), 0);
    rv_mcp_lines_fini(&lines);
    ck_assert_str_eq(rv_buf_cstr(&pieces), rv_buf_cstr(&whole));
    rv_buf_fini(&whole);
    rv_buf_fini(&pieces);
}
END_TEST

START_TEST(passes_up_what_the_callback_says)
{
    rv_buf seen = RV_BUF_INIT(100);
    struct rv_mcp_lines lines;
    rv_err *err = NULL;

    rv_mcp_lines_init(&lines, 10, note, &seen);
    ck_assert_int_eq(rv_mcp_lines_read(&lines, RV_STR_LIT("a\nst"), NULL), 0);
    ck_assert_int_eq(rv_mcp_lines_read(&lines, RV_STR_LIT("op\nb\n"), &err), RV_E_STATE);
    ck_assert_str_eq(rv_err_text(err), "stopped");
    ck_assert_str_eq(rv_buf_cstr(&seen), "[a]");
    rv_err_free(err);
    rv_mcp_lines_fini(&lines);
    rv_buf_fini(&seen);
}
END_TEST

TCase *lines_case(void)
{
    TCase *tc = tcase_create("lines");

    tcase_add_loop_test(tc, cuts_lines_wherever_reads_end, 0, (int)RV_COUNT(cases));
    tcase_add_loop_test(tc, any_cut_gives_the_same_lines, 0, 200);
    tcase_add_test(tc, passes_up_what_the_callback_says);
    return tc;
}
