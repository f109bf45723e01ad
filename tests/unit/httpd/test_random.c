/* Requests with bytes changed, removed, doubled and cut: the server answers each connection with whole answers or
 * closes it, and goes on. Nothing depends on how the bytes were cut into pieces. */
#include "tests/unit/httpd/world.h"

#include <stdlib.h>

static struct world w;
static struct rv_rand_state state;

static void setup(void)
{
    world_init(&w);
    world_listen(&w);
}

static void teardown(void)
{
    world_fini(&w);
}

static const char *const seeds[] = {
    "GET /hello?a=b&c=%20 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
    "POST /x/%C3%A4 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello",
    "PUT /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\nx\r\n0\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: 127.0.0.1:80\r\nConnection: close, x\r\nX-Request-Id: abc\r\n\r\n",
    "POST /small HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
};
static const char *const words[] = {"\r\n",        "\n",
                                    "\r",          "\0",
                                    ":",           " ",
                                    "\t",          "chunked",
                                    "0\r\n",       ",",
                                    "%00",         "..",
                                    "HTTP/1.1",    "Content-Length: 1\r\n",
                                    "Host: a\r\n", "\x80",
                                    "ffff",        "Transfer-Encoding: chunked\r\n",
                                    "\r\n\r\n"};

static void mutate(struct rv_rand r, rv_buf *b)
{
    for (uint64_t n = rv_rand_below(r, 4); n > 0 && b->len > 0; n--) {
        size_t at = rv_rand_below(r, b->len);
        const char *word = words[rv_rand_below(r, RV_COUNT(words))];
        size_t len = word[0] ? strlen(word) : 1;
        switch (rv_rand_below(r, 4)) {
        case 0:
            b->ptr[at] = (char)rv_rand_u64(r);
            break;
        case 1:
            memmove(b->ptr + at, b->ptr + at + 1, b->len - at - 1);
            rv_buf_truncate(b, b->len - 1);
            break;
        case 2:
            rv_buf_add(b, word, len);
            memmove(b->ptr + at + len, b->ptr + at, b->len - len - at);
            memcpy(b->ptr + at, word, len);
            break;
        default:
            rv_buf_truncate(b, at);
        }
    }
}

/* What comes back; ids and the like are the same in every server of this seed. */
static char *play(const rv_buf *b, size_t step)
{
    struct client c;

    world_fini(&w);
    world_init(&w);
    world_listen(&w);
    client_open(&w, &c);
    for (size_t at = 0; at < b->len && !c.is_over; at += step)
        client_send(&c, (rv_str){b->ptr + at, step < b->len - at ? step : b->len - at});
    world_pass(&w, 100000000); /* no patience is left */
    client_look(&c);
    ck_assert(c.is_over);
    char *got = strndup(c.got.ptr ? c.got.ptr : "", c.got.len);
    client_close(&c);
    return got;
}

/* Only the first final answer: what follows on the same connection may differ, because bytes that come during an answer
 * are not read as a request. */
static void cut_to_first(char *got)
{
    char *p = got;

    while (strncmp(p, "HTTP/1.1 100", 12) == 0)
        p += strlen("HTTP/1.1 100 Continue\r\n\r\n");
    memmove(got, p, strlen(p) + 1);
    const char *length = strstr(got, "Content-Length: ");
    size_t n = (size_t)(body_of(got) - got) + (length ? strtoul(length + 16, NULL, 10) : 0);
    if (got[0] && n < strlen(got))
        got[n] = '\0';
    if ((p = strstr(got, "Connection: close\r\n")))
        memmove(p, p + 19, strlen(p + 19) + 1);
}

START_TEST(answers_or_closes_whatever_comes)
{
    struct rv_rand r = rv_rand_seeded(&state, 11 + (uint64_t)_i);

    for (int i = 0; i < rv_kit_sample(24, 4000); i++) {
        RV_AUTO(rv_buf_fini) rv_buf b = RV_BUF_INIT(1 << 20);
        for (uint64_t n = 1 + rv_rand_below(r, 2); n > 0; n--)
            rv_buf_puts(&b, seeds[rv_rand_below(r, RV_COUNT(seeds))]);
        mutate(r, &b);
        char *whole = play(&b, b.len + 1), *bits = play(&b, 1 + rv_rand_below(r, 3));
        cut_to_first(whole);
        cut_to_first(bits);
        ck_assert_msg(strcmp(whole, bits) == 0, "%.*s\n--- at once:\n%s\n--- in pieces:\n%s",
                      RV_STR_ARG(rv_buf_str(&b)), whole, bits);
        free(whole);
        free(bits);
    }
}
END_TEST

TCase *random_case(void)
{
    TCase *tc = tcase_create("random");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, answers_or_closes_whatever_comes, 0, 4);
    return tc;
}
