/* What a server may answer, and how it arrives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "world.h"

static struct world w;

static void set_up(void)
{
    world_init(&w);
}

static void tear_down(void)
{
    world_fini(&w);
}

static const struct {
    const char *answer;
    enum after_answer after;
    int status;
    const char *content_type, *headers, *body;
} cases[] = {
    {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello", KEEP, 200, "text/plain",
     "content-type=text/plain;content-length=5;", "hello"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", KEEP, 200, "",
     "transfer-encoding=chunked;", "hello"},
    {"HTTP/1.1 200 OK\r\n\r\nuntil the end", CLOSE, 200, "", "", "until the end"},
    {"HTTP/1.0 200 OK\r\nX-A:  spaces  \r\n\r\nold", CLOSE, 200, "", "x-a=spaces;", "old"},
    {"HTTP/1.1 204 No Content\r\n\r\n", KEEP, 204, "", "", ""},
    {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", KEEP, 200, "", "content-length=0;", ""},
    {"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\n{}", KEEP, 429, "",
     "retry-after=3;content-length=2;", "{}"},
    {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", KEEP, 302, "",
     "location=http://127.0.0.1:1/;content-length=0;", ""},
    /* 1xx answers are passed over, their headers too */
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-A: early\r\n\r\n"
     "HTTP/1.1 200 OK\r\nX-A: late\r\nContent-Length: 1\r\n\r\n.",
     KEEP, 200, "", "x-a=late;content-length=1;", "."},
    /* trailers are no headers */
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n0\r\nX-After: 1\r\n\r\n", KEEP, 200, "",
     "transfer-encoding=chunked;", "."},
    /* names in lower case, equal names apart, folded values joined */
    {"HTTP/1.1 200 OK\r\nX-MiXeD: A\r\nx-mixed: b\r\nX-Fold: one\r\n  two\r\nX-None:\r\nContent-Length: 0\r\n\r\n",
     KEEP, 200, "", "x-mixed=A;x-mixed=b;x-fold=one two;x-none=;content-length=0;", ""},
    /* "hi there\n", stored by gzip */
    {NULL, KEEP, 200, "", NULL, "hi there\n"},
};

static const char gzipped[] = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 32\r\n\r\n"
                              "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" /* header */
                              "\x01\x09\x00\xf6\xff"                     /* last block, 9 bytes as they are */
                              "hi there\n"
                              "\xb6\x0b\x88\x9b\x09\x00\x00\x00";

START_TEST(an_answer_arrives_as_sent)
{
    struct call c = {0};
    struct rv_http_request req = get(&w, "/");

    w.server.answer = cases[_i].answer ? rv_str_of(cases[_i].answer) : RV_STR_LIT(gzipped);
    w.server.after = cases[_i].after;
    fetch(&w, &c, &req);
    ck_assert_msg(c.end.fault == RV_HTTP_OK, "%d: %s", c.end.fault, c.text);
    ck_assert_int_eq(c.status, cases[_i].status);
    ck_assert_str_eq(c.content_type, cases[_i].content_type);
    if (cases[_i].headers)
        ck_assert_str_eq(c.headers, cases[_i].headers);
    ck_assert_str_eq(rv_buf_cstr(&c.body), cases[_i].body);
    ck_assert_uint_eq(c.n_heads, 1);
    ck_assert(c.end.was_sent);
    ck_assert_int_gt(c.end.connect_us, 0);
    ck_assert_int_ge(c.end.first_byte_us, c.end.connect_us);
    ck_assert_int_ge(c.end.total_us, c.end.first_byte_us);
    call_fini(&c);
}
END_TEST

START_TEST(parts_come_as_they_are_sent)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none");
    begin(&w, &c, &req);
    run_until(&w, &c.body.len, 3); /* in however many segments */
    ck_assert_str_eq(rv_buf_cstr(&c.body), "one");
    server_write(&w.server, "two");
    run_all(&w);
    ck_assert_str_eq(rv_buf_cstr(&c.body), "onetwo");
    call_fini(&c);
}
END_TEST

START_TEST(an_answer_to_head_has_no_body)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    req.method = "HEAD";
    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    fetch(&w, &c, &req);
    ck_assert_int_eq(c.end.fault, RV_HTTP_OK);
    ck_assert_uint_eq(c.body.len, 0);
}
END_TEST

/* A head of n headers, and one of n bytes in all. */
static void add_many(rv_buf *answer, size_t n)
{
    rv_buf_puts(answer, "HTTP/1.1 200 OK\r\n");
    for (size_t i = 1; i < n; i++)
        rv_buf_printf(answer, "X-%zu: %zu\r\n", i, i);
    rv_buf_puts(answer, "Content-Length: 0\r\n\r\n");
}

static void add_large(rv_buf *answer, size_t n)
{
    rv_buf_puts(answer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
    for (int i = 1; i <= 4; i++) {
        rv_buf_puts(answer, "X-A: ");
        while (answer->len < n * (size_t)i / 4 - 4)
            rv_buf_putc(answer, 'a');
        rv_buf_puts(answer, "\r\n");
    }
    rv_buf_puts(answer, "\r\n");
}

static void add_trailers(rv_buf *answer, size_t n)
{
    rv_buf_puts(answer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n0\r\n");
    while (answer->len < n)
        rv_buf_puts(answer, "X-A: 0123456789\r\n");
    rv_buf_puts(answer, "\r\n");
}

static void add_interim(rv_buf *answer, size_t n)
{
    while (answer->len < n)
        rv_buf_puts(answer, "HTTP/1.1 100 Continue\r\n\r\n");
    rv_buf_puts(answer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

static void add_line(rv_buf *answer, size_t n)
{
    rv_buf_puts(answer, "HTTP/1.1 200 OK\r\nX-A: ");
    while (answer->len < n)
        rv_buf_putc(answer, 'a');
    rv_buf_puts(answer, "\r\nContent-Length: 0\r\n\r\n");
}

static const struct {
    void (*add)(rv_buf *answer, size_t n);
    size_t n;
    enum rv_http_fault fault;
} heads[] = {
    {add_many, RV_HTTP_MAX_HEADERS, RV_HTTP_OK},
    {add_many, RV_HTTP_MAX_HEADERS + 1, RV_HTTP_BAD_ANSWER},
    {add_large, RV_HTTP_MAX_HEAD, RV_HTTP_OK},
    {add_large, RV_HTTP_MAX_HEAD + 1, RV_HTTP_BAD_ANSWER},
    {add_trailers, RV_HTTP_MAX_HEAD - 64, RV_HTTP_OK},
    {add_trailers, 4 * RV_HTTP_MAX_HEAD, RV_HTTP_BAD_ANSWER},
    {add_interim, RV_HTTP_MAX_HEAD / 2, RV_HTTP_OK},
    {add_interim, 4 * RV_HTTP_MAX_HEAD, RV_HTTP_BAD_ANSWER},
    {add_line, RV_HTTP_MAX_HEAD / 2, RV_HTTP_OK},
    {add_line, 2 * RV_HTTP_MAX_HEAD, RV_HTTP_BAD_ANSWER},
    {add_line, 64 * RV_HTTP_MAX_HEAD, RV_HTTP_BAD_ANSWER},
};

START_TEST(heads_are_bounded)
{
    RV_AUTO(rv_buf_fini) rv_buf answer = RV_BUF_INIT(128 * RV_HTTP_MAX_HEAD);
    struct call c = {0};

    heads[_i].add(&answer, heads[_i].n);
    fetch_answer(&w, &c, rv_buf_cstr(&answer), KEEP);
    ck_assert_msg(c.end.fault == heads[_i].fault, "%d: %s", c.end.fault, c.text);
    ck_assert(c.end.was_sent);
    call_fini(&c);
}
END_TEST

/* 20 MB of zeros in about 20 KB. */
static char *make_bomb(rv_buf *answer)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "bomb.gz");
    RV_AUTO(rv_buf_fini) rv_buf bytes = RV_BUF_INIT(1 << 20);
    char command[400];

    snprintf(command, sizeof command, "head -c 20000000 /dev/zero | gzip -9 >'%s'", path);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(rv_file_read(path, &bytes, NULL), 0);
    rv_buf_printf(answer, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", bytes.len);
    rv_buf_add_str(answer, rv_buf_str(&bytes));
    free(path);
    return dir;
}

static const struct {
    size_t max_body;
    enum rv_http_fault fault;
} sizes[] = {{1000, RV_HTTP_TOO_LARGE}, {19999999, RV_HTTP_TOO_LARGE}, {20000000, RV_HTTP_OK}, {0, RV_HTTP_OK}};

/* Proves 12.2/bounds */
START_TEST(a_body_is_bounded_by_what_it_unpacks_to)
{
    RV_AUTO(rv_buf_fini) rv_buf answer = RV_BUF_INIT(1 << 20);
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};
    char *dir = make_bomb(&answer);

    req.max_body = sizes[_i].max_body;
    w.server.answer = rv_buf_str(&answer);
    fetch(&w, &c, &req);
    ck_assert_msg(c.end.fault == sizes[_i].fault, "%d: %s", c.end.fault, c.text);
    ck_assert_uint_le(c.body.len, req.max_body ? req.max_body : 20000000);
    if (sizes[_i].fault == RV_HTTP_TOO_LARGE)
        ck_assert_ptr_nonnull(strstr(c.text, "the answer is larger than "));
    call_fini(&c);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static void resume_at_once(uv_timer_t *timer)
{
    struct call *c = timer->data;

    c->hold_after = 0;
    resume(c);
}

/* What libcurl unpacks while its reader is not ready is bounded by what it had read. */
START_TEST(a_held_body_that_unpacks_to_too_much_is_refused_later)
{
    RV_AUTO(rv_buf_fini) rv_buf answer = RV_BUF_INIT(1 << 20);
    struct rv_http_request req = get(&w, "/");
    struct call c = {.hold_after = 1};
    char *dir = make_bomb(&answer);
    static uv_timer_t timer; /* it is closed by the loop, later */

    req.max_body = 100000;
    w.server.answer = rv_buf_str(&answer);
    uv_timer_init(&w.loop, &timer);
    timer.data = &c;
    begin(&w, &c, &req);
    run_until(&w, &c.n_parts, 1);
    uv_timer_start(&timer, resume_at_once, 0, 0);
    run_all(&w);
    uv_close((uv_handle_t *)&timer, NULL);
    ck_assert_int_eq(c.end.fault, RV_HTTP_TOO_LARGE);
    ck_assert_uint_le(c.body.len, req.max_body);
    call_fini(&c);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

TCase *answers_case(void)
{
    TCase *tc = tcase_create("answers");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, an_answer_arrives_as_sent, 0, RV_COUNT(cases));
    tcase_add_test(tc, parts_come_as_they_are_sent);
    tcase_add_test(tc, an_answer_to_head_has_no_body);
    tcase_add_loop_test(tc, heads_are_bounded, 0, RV_COUNT(heads));
    tcase_add_loop_test(tc, a_body_is_bounded_by_what_it_unpacks_to, 0, RV_COUNT(sizes));
    tcase_add_test(tc, a_held_body_that_unpacks_to_too_much_is_refused_later);
    return tc;
}
