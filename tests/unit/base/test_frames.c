/* Server-sent events: whatever the lines end in and wherever the bytes are cut, the events are the same. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "tests/unit/base/suites.h"

static const struct {
    const char *what, *body, *want; /* want: [name|data] for each event */
} streams[] = {
    {"one event", "data: hello\n\n", "[|hello]"},
    {"a name", "event: ping\ndata: {}\n\n", "[ping|{}]"},
    {"several data lines", "data: a\ndata: b\ndata:\ndata: c\n\n", "[|a\nb\n\nc]"},
    {"no space, or two", "data:a\n\ndata:  b\n\n", "[|a][| b]"},
    {"comments", ": keep-alive\n\n:\ndata: x\n: in between\n\n", "[|x]"},
    {"a byte order mark",
     "\xEF\xBB\xBF"
     "data: x\n\n",
     "[|x]"},
    {"a mark that is no first",
     "data: x\n\n\xEF\xBB\xBF"
     "data: y\n\n",
     "[|x]"},
    {"fields that mean nothing here", "id: 7\nretry: 10\nfoo: bar\ndata\ndata: x\n\n", "[|\nx]"},
    {"a name without data", "event: ping\n\ndata: x\n\n", "[|x]"},
    {"empty data", "data:\n\ndata: \n\n", "[|][|]"},
    {"an unfinished event", "data: a\n\ndata: b\n", "[|a]"},
    {"an unfinished line", "data: a\n\ndata: b", "[|a]"},
    {"blank lines", "\n\n\ndata: a\n\n\n\n", "[|a]"},
    {"the last name counts", "event: a\nevent: b\ndata: x\n\n", "[b|x]"},
    {"a colon in the value", "data: {\"a\":\"b: c\"}\n\n", "[|{\"a\":\"b: c\"}]"},
    {"nothing", "", ""},
};

static int keep(void *self, const struct rv_sse_event *ev, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    rv_buf_printf(b, "[%.*s|", RV_STR_ARG(ev->name));
    rv_buf_add_str(b, ev->data);
    rv_buf_putc(b, ']');
    return 0;
}

static char *events_of(rv_str body, size_t first, size_t step)
{
    rv_buf b = RV_BUF_INIT(SIZE_MAX / 2);
    rv_sse *s = rv_sse_new(1000, keep, &b);
    rv_err *err = NULL;
    size_t at = 0;

    while (at < body.len) {
        size_t n = at == 0 && first ? first : step;
        if (n > body.len - at)
            n = body.len - at;
        ck_assert_int_eq(rv_sse_read(s, (rv_str){body.ptr + at, n}, &err), 0);
        at += n;
    }
    rv_sse_free(s);
    return rv_buf_steal(&b, NULL);
}

static char *with_line_ends(const char *text, const char *end)
{
    rv_buf b = RV_BUF_INIT(SIZE_MAX / 2);

    for (const char *p = text; *p; p++)
        if (*p == '\n')
            rv_buf_puts(&b, end);
        else
            rv_buf_putc(&b, *p);
    return rv_buf_steal(&b, NULL);
}

static void same_text(const char *what, char *got, const char *want)
{
    ck_assert_ptr_nonnull(got);
    ck_assert_msg(strcmp(got, want) == 0, "%s\n--- want\n%s\n--- got\n%s\n---", what, want, got);
    free(got);
}

/* Proves 12.2/sse: Comments, pings, a byte order mark, several data lines, unknown events and members */
START_TEST(events_do_not_depend_on_line_ends_or_cuts)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};

    for (size_t e = 0; e < RV_COUNT(ends); e++) {
        char *body = with_line_ends(streams[_i].body, ends[e]);
        rv_str bytes = rv_str_of(body);
        for (size_t cut = 0; cut <= bytes.len; cut++)
            same_text(streams[_i].what, events_of(bytes, cut, SIZE_MAX), streams[_i].want);
        same_text(streams[_i].what, events_of(bytes, 0, 1), streams[_i].want);
        free(body);
    }
}
END_TEST

START_TEST(an_event_above_the_limit_is_refused_however_it_comes)
{
    static const char *const bodies[] = {"data: 0123456789\n\n", "data: 012\ndata: 345\ndata: 678\n\n", ": 0123456789",
                                         "0123456789ab: x\n"};

    for (size_t step = 1; step < 20; step += 18) {
        rv_str body = rv_str_of(bodies[_i]);
        rv_buf b = RV_BUF_INIT(1000);
        rv_sse *s = rv_sse_new(10, keep, &b);
        rv_err *err = NULL;
        int rc = 0;
        for (size_t at = 0; rc == 0 && at < body.len; at += step)
            rc = rv_sse_read(s, (rv_str){body.ptr + at, step < body.len - at ? step : body.len - at}, &err);
        ck_assert_int_eq(rc, RV_E_LIMIT);
        ck_assert_str_eq(rv_err_text(err), "a server-sent event is longer than 10 bytes");
        ck_assert_uint_eq(b.len, 0);
        rv_err_free(err);
        rv_sse_free(s);
        rv_buf_fini(&b);
    }
}
END_TEST

static const struct {
    const char *body, *id;
    int64_t retry_ms;
} places[] = {
    {"data: x\n\n", "", -1},
    {"id: 7\nretry: 1500\ndata: x\n\n", "7", 1500},
    {"id: 7\n\n", "7", -1},                     /* an event without data primes the id */
    {"id: 7\n\nid: 8\n", "7", -1},              /* the second one is not complete */
    {"id: 7\ndata: x\n\ndata: y\n\n", "7", -1}, /* it stays */
    {"id: 7\n\nid\n\n", "", -1},                /* and can be taken back */
    {"id: 7\n\nid: a\x01\n\n", "7", -1},        /* not for a header: passed over */
    {"id: 7\nid: a\x7f\n\n", "7", -1},
    {"retry: 10\nretry: 1e3\nretry:\nretry: -5\n", "", 10},
    {"retry: 99999999999999999999\n", "", -1},
};

START_TEST(a_stream_tells_where_to_continue_and_when)
{
    rv_str body = rv_str_of(places[_i].body);

    for (size_t step = 1; step < 100; step += 98) {
        rv_buf b = RV_BUF_INIT(1000);
        rv_sse *s = rv_sse_new(100, keep, &b);
        for (size_t at = 0; at < body.len; at += step)
            ck_assert_int_eq(rv_sse_read(s, (rv_str){body.ptr + at, step < body.len - at ? step : body.len - at}, NULL),
                             0);
        ck_assert(rv_str_is(rv_sse_last_id(s), places[_i].id));
        ck_assert_int_eq(rv_sse_retry_ms(s), places[_i].retry_ms);
        rv_sse_free(s);
        rv_buf_fini(&b);
    }
}
END_TEST

START_TEST(an_id_that_cannot_be_sent_leaves_the_one_before_it)
{
    rv_buf body = RV_BUF_INIT(4000), b = RV_BUF_INIT(10);
    rv_sse *s = rv_sse_new(4000, keep, &b);

    rv_buf_puts(&body, "id: 7\n\nid: ");
    for (int i = 0; i <= RV_SSE_MAX_ID; i++)
        rv_buf_putc(&body, 'a');
    rv_buf_puts(&body, "\n\n");
    ck_assert_int_eq(rv_sse_read(s, rv_buf_str(&body), NULL), 0);
    ck_assert(rv_str_is(rv_sse_last_id(s), "7"));
    ck_assert_int_eq(rv_sse_read(s, RV_STR_LIT("id: 8\0\n\n"), NULL), 0); /* NUL: so the standard */
    ck_assert(rv_str_is(rv_sse_last_id(s), "7"));
    ck_assert_int_eq(rv_sse_read(s, RV_STR_LIT("id: 9\n\n"), NULL), 0);
    ck_assert(rv_str_is(rv_sse_last_id(s), "9"));
    rv_sse_free(s);
    rv_buf_fini(&body);
}
END_TEST

START_TEST(an_event_with_a_name_that_is_too_long_is_not_one_without_a_name)
{
    rv_buf body = RV_BUF_INIT(4000), b = RV_BUF_INIT(1000);
    rv_sse *s = rv_sse_new(4000, keep, &b);
    char name[258];

    memset(name, 'a', sizeof name);
    for (size_t n = sizeof name - 1; n >= sizeof name - 2; n--)
        rv_buf_printf(&body, "event: %.*s\ndata: %zu\n\n", (int)n, name, n);
    rv_buf_printf(&body, "event: %.*s\nevent: b\ndata: last name\n\ndata: none\n\n", (int)sizeof name, name);
    ck_assert_int_eq(rv_sse_read(s, rv_buf_str(&body), NULL), 0);
    ck_assert_ptr_null(strstr(rv_buf_cstr(&b), "257"));
    ck_assert_msg(strstr(rv_buf_cstr(&b), "256]") && strstr(rv_buf_cstr(&b), "[b|last name][|none]"), "%s",
                  rv_buf_cstr(&b));
    rv_sse_free(s);
    rv_buf_fini(&body);
    rv_buf_fini(&b);
}
END_TEST

static int refuse(void *self, const struct rv_sse_event *ev, rv_err **err)
{
    int *n = self;

    (void)ev;
    ++*n;
    return RV_FAIL(err, RV_E_STATE, "no more");
}

START_TEST(what_the_listener_returns_stops_the_reading)
{
    int n = 0;
    rv_sse *s = rv_sse_new(100, refuse, &n);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_sse_read(s, rv_str_of("data: a\n\ndata: b\n\n"), &err), RV_E_STATE);
    ck_assert_int_eq(n, 1);
    rv_err_free(err);
    rv_sse_free(s);
}
END_TEST

static const struct {
    const char *what, *body, *want;
} line_streams[] = {
    {"lines", "{\"a\":1}\n{\"b\":2}\n", "[{\"a\":1}][{\"b\":2}]"},
    {"blank ones", "\n \n{}\n\t\n", "[{}]"},
    {"no end at the end", "{\"a\":1}\n{\"b\":2}", "[{\"a\":1}][{\"b\":2}]"},
    {"blanks at the end", "{}\n  ", "[{}]"},
    {"nothing", "", ""},
};

static int keep_line(void *self, rv_str line, rv_err **err)
{
    (void)err;
    rv_buf_putc(self, '[');
    rv_buf_add_str(self, line);
    rv_buf_putc(self, ']');
    return 0;
}

static char *lines_of(rv_str body, size_t first, size_t step)
{
    rv_buf b = RV_BUF_INIT(SIZE_MAX / 2);
    rv_ndjson *n = rv_ndjson_new(100, keep_line, &b);
    size_t at = 0;

    while (at < body.len) {
        size_t size = at == 0 && first ? first : step;
        if (size > body.len - at)
            size = body.len - at;
        ck_assert_int_eq(rv_ndjson_read(n, (rv_str){body.ptr + at, size}, NULL), 0);
        at += size;
    }
    ck_assert_int_eq(rv_ndjson_end(n, NULL), 0);
    rv_ndjson_free(n);
    return rv_buf_steal(&b, NULL);
}

START_TEST(lines_do_not_depend_on_their_ends_or_cuts)
{
    static const char *const ends[] = {"\n", "\r\n"};

    for (size_t e = 0; e < RV_COUNT(ends); e++) {
        char *body = with_line_ends(line_streams[_i].body, ends[e]);
        rv_str bytes = rv_str_of(body);
        for (size_t cut = 0; cut <= bytes.len; cut++)
            same_text(line_streams[_i].what, lines_of(bytes, cut, SIZE_MAX), line_streams[_i].want);
        same_text(line_streams[_i].what, lines_of(bytes, 0, 1), line_streams[_i].want);
        free(body);
    }
}
END_TEST

START_TEST(a_line_above_the_limit_is_refused_however_it_comes)
{
    for (size_t step = 1; step < 20; step += 18) {
        rv_str body = RV_STR_LIT("{\"a\":12345678}\n");
        rv_buf b = RV_BUF_INIT(1000);
        rv_ndjson *n = rv_ndjson_new(10, keep_line, &b);
        rv_err *err = NULL;
        int rc = 0;
        for (size_t at = 0; rc == 0 && at < body.len; at += step)
            rc = rv_ndjson_read(n, (rv_str){body.ptr + at, step < body.len - at ? step : body.len - at}, &err);
        ck_assert_int_eq(rc, RV_E_LIMIT);
        ck_assert_uint_eq(b.len, 0);
        rv_err_free(err);
        rv_ndjson_free(n);
        rv_buf_fini(&b);
    }
}
END_TEST

TCase *frames_case(void)
{
    TCase *c = tcase_create("frames");

    tcase_add_loop_test(c, events_do_not_depend_on_line_ends_or_cuts, 0, RV_COUNT(streams));
    tcase_add_loop_test(c, an_event_above_the_limit_is_refused_however_it_comes, 0, 4);
    tcase_add_loop_test(c, a_stream_tells_where_to_continue_and_when, 0, RV_COUNT(places));
    tcase_add_test(c, an_id_that_cannot_be_sent_leaves_the_one_before_it);
    tcase_add_test(c, an_event_with_a_name_that_is_too_long_is_not_one_without_a_name);
    tcase_add_test(c, what_the_listener_returns_stops_the_reading);
    tcase_add_loop_test(c, lines_do_not_depend_on_their_ends_or_cuts, 0, RV_COUNT(line_streams));
    tcase_add_test(c, a_line_above_the_limit_is_refused_however_it_comes);
    return c;
}
