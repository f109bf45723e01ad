/* Events with deltas between them: what each order of lines and events becomes, and that each id is followed by the
 * same bytes, however the lines are grouped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/pieces_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/server/suites.h"

#define N_EVENTS 5

static void add_events(struct srv_pieces *p, int64_t upto)
{
    char line[64];

    for (int64_t seq = 1; seq <= upto; seq++) {
        snprintf(line, sizeof line, "{\"seq\":%lld}", (long long)seq);
        ck_assert_int_eq(srv_pieces_event(p, seq, rv_str_of(line), NULL), 0);
    }
}

static void tell(struct srv_piece_cursor from, bool is_lines, const char *text, rv_buf *out)
{
    struct srv_pieces *p = srv_pieces_new(&from, is_lines);
    const struct rv_stream_part part = {.n = 1, .first = 1, .lines = rv_str_of(text)};

    ck_assert_ptr_nonnull(p);
    add_events(p, N_EVENTS);
    ck_assert_int_eq(srv_pieces_lines(p, &part, out, NULL), 0);
    ck_assert_int_eq(srv_pieces_flush(p, out, NULL), 0);
    srv_pieces_free(p);
}

static const struct {
    const char *lines, *want; /* as lines of JSON */
} rows[] = {
    {"", "1 2 3 4 5"},
    {"1\n2\n{\"a\":1}\n{\"b\":1}\n3\n", "1 2 2.1 2.2 3 4 5"},
    {"again 0\n1\n3\n{\"a\":1}\n", "1 2 3 3.1 4 5"},
    {"2\n{\"a\":1}\nagain 4\n{\"a\":1}\n5\n", "1 2 2.1 3 4 4.1 4.2 5"},
    {"2\nagain 3\n{\"a\":1}\nagain 3\nagain 3\n", "1 2 3 3.1 3.2 4 5"},
    {"{}\n1\n", "1 2 3 4 5"},
};

/* The ids of what was told: {"seq":N} has N, {"cursor":"N.M" has N.M. */
static void ids_of(const char *text, rv_buf *out)
{
    static const char *const starts[] = {"{\"seq\":", "{\"cursor\":\""};

    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        size_t n = 0;
        if (out->len > 0)
            rv_buf_putc(out, ' ');
        for (size_t i = 0; i < RV_COUNT(starts) && n == 0; i++) {
            size_t skip = strlen(starts[i]);
            if (strncmp(line, starts[i], skip) == 0 && (n = strspn(line + skip, "0123456789.")) > 0)
                rv_buf_add(out, line + skip, n);
        }
        if (n == 0)
            rv_buf_puts(out, "?");
    }
}

START_TEST(lines_become_ids)
{
    rv_buf out = RV_BUF_INIT(4096), ids = RV_BUF_INIT(4096);

    tell((struct srv_piece_cursor){0, 0}, true, rows[_i].lines, &out);
    ids_of(rv_buf_cstr(&out), &ids);
    ck_assert_str_eq(rv_buf_cstr(&ids), rows[_i].want);
    rv_buf_fini(&out);
    rv_buf_fini(&ids);
}
END_TEST

/* Behind each id comes what was behind it in the whole. */
START_TEST(each_id_is_gone_on_from)
{
    rv_buf whole = RV_BUF_INIT(4096);

    tell((struct srv_piece_cursor){0, 0}, false, rows[_i].lines, &whole);
    for (const char *at = strstr(rv_buf_cstr(&whole), "\nid: "); at; at = strstr(at + 1, "\nid: ")) {
        const char *end = strstr(at + 5, "\n\n");
        struct srv_piece_cursor cursor;
        rv_buf rest = RV_BUF_INIT(4096);
        ck_assert(srv_piece_cursor_read((rv_str){at + 5, (size_t)(end - at - 5)}, &cursor));
        tell(cursor, false, rows[_i].lines, &rest);
        ck_assert_str_eq(rv_buf_cstr(&rest), end + 2);
        rv_buf_fini(&rest);
    }
    rv_buf_fini(&whole);
}
END_TEST

START_TEST(a_line_waits_for_its_event)
{
    const struct srv_piece_cursor from = {0, 0};
    struct srv_pieces *p = srv_pieces_new(&from, true);
    const struct rv_stream_part part = {.n = 1, .first = 1, .lines = RV_STR_LIT("1\n{\"a\":1}\n3\n{\"b\":1}\n")};
    rv_buf out = RV_BUF_INIT(4096);

    add_events(p, 2);
    ck_assert_int_eq(srv_pieces_lines(p, &part, &out, NULL), 1);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"seq\":1}\n{\"cursor\":\"1.1\",\"a\":1}\n");
    add_events(p, 3);
    rv_buf_clear(&out);
    ck_assert_int_eq(srv_pieces_lines(p, &part, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"seq\":2}\n{\"seq\":3}\n{\"cursor\":\"3.1\",\"b\":1}\n");
    rv_buf_fini(&out);
    srv_pieces_free(p);
}
END_TEST

static const struct {
    const char *text;
    int64_t seq, piece; /* seq -1: it is not one */
} cursors[] = {{"17", 17, 0}, {"17.2", 17, 2}, {"0", 0, 0},   {"", -1, 0},      {".", -1, 0},
               {"1.", -1, 0}, {".1", -1, 0},   {"-1", -1, 0}, {"1.2.3", -1, 0}, {"99999999999999999999", -1, 0}};

START_TEST(cursors_are_read)
{
    struct srv_piece_cursor c = {0, 0};
    bool is_one = srv_piece_cursor_read(rv_str_of(cursors[_i].text), &c);

    ck_assert_int_eq(is_one, cursors[_i].seq >= 0);
    ck_assert(!is_one || (c.seq == cursors[_i].seq && c.piece == cursors[_i].piece));
}
END_TEST

TCase *pieces_case(void)
{
    TCase *c = tcase_create("pieces");

    tcase_add_loop_test(c, lines_become_ids, 0, RV_COUNT(rows));
    tcase_add_loop_test(c, each_id_is_gone_on_from, 0, RV_COUNT(rows));
    tcase_add_test(c, a_line_waits_for_its_event);
    tcase_add_loop_test(c, cursors_are_read, 0, RV_COUNT(cursors));
    return c;
}
