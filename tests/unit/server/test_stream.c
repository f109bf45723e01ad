/* What a stream counts as waiting for its client: bytes on their way to the loop, and those that its connection has not
 * sent. Messages are opened here instead of by loops, and the connection is played (--wrap). */
#include <stdlib.h>

#include "coreengine/server/server_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/server/suites.h"

#define KB    ((size_t)1024)
#define LIMIT (64 * KB)

size_t __wrap_rv_httpd_write(rv_httpd_exchange *x, rv_str bytes);
void __wrap_rv_httpd_watch(rv_httpd_exchange *x, const struct rv_httpd_watch *watch);

void __wrap_rv_httpd_drop(rv_httpd_exchange *x);
void __wrap_rv_httpd_end(rv_httpd_exchange *x);
void __wrap_rv_httpd_begin_events(rv_httpd_exchange *x, const struct rv_httpd_answer *answer, int retry_ms);
char *__real_rv_str_dup(rv_str s);
char *__wrap_rv_str_dup(rv_str s);

static struct rv_httpd_watch watched;
static size_t fails_at, n_dropped, n_begun,
    n_fields;      /* fails_at: which copy of a text finds no memory, from 1; 0: none */
static bool sends; /* the connection sends at once what is written */
static size_t unsent, n_drains, n_written, n_ended;

size_t __wrap_rv_httpd_write(rv_httpd_exchange *x, rv_str bytes)
{
    (void)x;
    n_written += bytes.len;
    unsent += sends ? 0 : bytes.len;
    return unsent;
}

void __wrap_rv_httpd_watch(rv_httpd_exchange *x, const struct rv_httpd_watch *watch)
{
    (void)x;
    watched = *watch;
}

void __wrap_rv_httpd_drop(rv_httpd_exchange *x)
{
    (void)x;
    n_dropped++;
}

void __wrap_rv_httpd_end(rv_httpd_exchange *x)
{
    (void)x;
    n_ended++;
}

void __wrap_rv_httpd_begin_events(rv_httpd_exchange *x, const struct rv_httpd_answer *answer, int retry_ms)
{
    (void)x;
    (void)retry_ms;
    n_begun++;
    n_fields = answer->n_fields;
}

char *__wrap_rv_str_dup(rv_str s)
{
    return fails_at > 0 && --fails_at == 0 ? NULL : __real_rv_str_dup(s);
}

static void on_drain(void *self)
{
    (void)self;
    n_drains++;
}

/* A loop whose messages wait until they are opened. */
static void make_loop(struct srv_loop *loop)
{
    *loop = (struct srv_loop){.is_closed = true};
    loop->end = &loop->first;
    pthread_mutex_init(&loop->lock, NULL);
}

static void open_first(struct srv_loop *loop)
{
    struct srv_message *m = loop->first;

    loop->first = m->next;
    if (!loop->first)
        loop->end = &loop->first;
    m->open(m);
}

static void write_kb(struct srv_stream *st, size_t kb)
{
    rv_buf bytes = RV_BUF_INIT(1 << 20);

    for (size_t i = 0; i < kb * KB; i++)
        rv_buf_putc(&bytes, 'x');
    srv_stream_write(st, &bytes);
    rv_buf_fini(&bytes);
}

struct played {
    struct srv_server server;
    struct srv_loop producer;
    struct srv_call *call;
    struct srv_stream *st;
};

static void set_up(struct played *p)
{
    sends = false;
    unsent = n_drains = n_written = n_ended = 0;
    fails_at = n_dropped = n_begun = n_fields = 0;
    *p = (struct played){.call = calloc(1, sizeof *p->call)};
    ck_assert_ptr_nonnull(p->call);
    make_loop(&p->server.server_loop);
    make_loop(&p->producer);
    p->call->server = &p->server;
    p->st = srv_stream_new(p->call, &p->producer);
    ck_assert_ptr_nonnull(p->st);
    p->st->on_drain = on_drain;
}

static void tear_down(struct played *p)
{
    p->st->call = NULL; /* its exchange has ended */
    srv_stream_end(p->st);
    srv_loop_read(&p->server.server_loop);
    srv_loop_read(&p->producer);
    free(p->st->spare);
    free(p->st); /* the loop's reference */
    free(p->call);
}

START_TEST(what_is_queued_counts_until_it_is_sent)
{
    struct played p;

    set_up(&p);
    write_kb(p.st, 40);
    ck_assert(!srv_stream_is_full(p.st, LIMIT));
    write_kb(p.st, 40);
    ck_assert(srv_stream_is_full(p.st, LIMIT));
    open_first(&p.server.server_loop); /* 40 KB wait in the connection, and 40 are on their way */
    ck_assert(srv_stream_is_full(p.st, LIMIT));
    open_first(&p.server.server_loop);
    ck_assert(srv_stream_is_full(p.st, LIMIT));
    unsent = 0;
    write_kb(p.st, 80);
    watched.on_drain(watched.self, NULL); /* the connection has sent all that it was given */
    srv_loop_read(&p.producer);
    ck_assert_uint_eq(n_drains, 1);
    ck_assert(srv_stream_is_full(p.st, LIMIT));
    tear_down(&p);
}
END_TEST

START_TEST(a_producer_that_waits_is_told_when_all_was_sent_at_once)
{
    struct played p;

    set_up(&p);
    sends = true;
    write_kb(p.st, 10);
    open_first(&p.server.server_loop);
    srv_loop_read(&p.producer);
    ck_assert_uint_eq(n_drains, 0); /* no producer waits */
    write_kb(p.st, 40);
    write_kb(p.st, 40);
    ck_assert(srv_stream_is_full(p.st, LIMIT));
    open_first(&p.server.server_loop);
    srv_loop_read(&p.producer);
    ck_assert_uint_eq(n_drains, 0);
    open_first(&p.server.server_loop);
    srv_loop_read(&p.producer);
    ck_assert_uint_eq(n_drains, 1); /* the connection has no on_drain of its own then */
    ck_assert(!srv_stream_is_full(p.st, LIMIT));
    tear_down(&p);
}
END_TEST

/* It gets all, and the end behind it, in pieces that its connection has room for. */
START_TEST(a_client_that_reads_slowly_is_not_dropped)
{
    struct played p;

    set_up(&p);
    srv_stream_begin(p.st);
    for (int i = 0; i < 10; i++)
        write_kb(p.st, 100);
    srv_stream_end(p.st);
    srv_loop_read(&p.server.server_loop);
    for (size_t i = 1; i <= 10; i++) {
        ck_assert_uint_eq(n_written, i * 100 * KB);
        ck_assert_uint_eq(n_ended, 0);
        unsent = 0;
        watched.on_drain(watched.self, NULL);
    }
    ck_assert_uint_eq(n_ended, 1);
    ck_assert_uint_eq(n_dropped, 0);
    ck_assert_ptr_null(p.producer.first); /* which may be gone */
}
END_TEST

/* Nor does it lose what was written before its run broke: the cut comes when its connection has sent that. */
START_TEST(a_client_that_reads_slowly_gets_all_before_the_cut)
{
    rv_err *err = NULL;
    struct played p;

    set_up(&p);
    srv_stream_begin(p.st);
    for (int i = 0; i < 3; i++)
        write_kb(p.st, i < 2 ? 100 : 10);
    int rc = _i == 0 ? RV_FAIL(&err, RV_E_IO, "it broke") : 0;
    if (rc < 0)
        srv_stream_fail(p.st, rc, err);
    else
        srv_stream_answer(p.st, 500, "text/plain", &(rv_buf){0});
    srv_loop_read(&p.server.server_loop);
    ck_assert_uint_eq(n_written, 100 * KB);
    ck_assert_uint_eq(n_dropped, 0);
    for (size_t i = 0; i < 2; i++) { /* the last 10 KB fit beside those before, and are not sent yet */
        unsent = 0;
        watched.on_drain(watched.self, NULL);
        ck_assert_uint_eq(n_written, (i == 0 ? 200 : 210) * KB);
        ck_assert_uint_eq(n_dropped, 0);
    }
    unsent = 0;
    watched.on_drain(watched.self, NULL);
    ck_assert_uint_eq(n_dropped, 1);
    ck_assert_uint_eq(n_ended, 0);
    ck_assert_ptr_null(p.producer.first);
}
END_TEST

/* What waits goes with its exchange; and more than any answer has is not kept. */
START_TEST(what_waits_for_a_client_has_an_end)
{
    struct played p;

    set_up(&p);
    srv_stream_begin(p.st);
    for (int i = 0; i < (_i == 0 ? 3 : 200); i++)
        write_kb(p.st, 100);
    srv_loop_read(&p.server.server_loop);
    ck_assert_uint_eq(n_dropped, (size_t)_i);
    if (_i == 0)
        watched.on_gone(watched.self, NULL, RV_GONE_LEFT);
    ck_assert_uint_eq(n_written, 100 * KB);
    ck_assert_uint_eq(p.st->queued, 0);
    srv_stream_end(p.st);
    srv_loop_read(&p.server.server_loop);
    srv_loop_read(&p.producer);
}
END_TEST

/* Each field is copied for its way to the loop, and there for the answer. */
START_TEST(a_stream_does_not_begin_without_a_field_of_its_head)
{
    struct played p;

    set_up(&p);
    fails_at = (size_t)_i;
    srv_stream_field(p.st, "X-Run-Id", "run_1");
    srv_stream_field(p.st, "X-Session-Id", "session_1");
    srv_stream_begin(p.st);
    srv_loop_read(&p.server.server_loop);
    ck_assert_uint_eq(n_begun, _i == 0 ? 1 : 0);
    ck_assert_uint_eq(n_fields, _i == 0 ? 2 : 0);
    ck_assert_uint_eq(n_dropped, _i == 0 ? 0 : 1);
    fails_at = 0;
    if (_i == 0) /* a failure frees the call */
        watched.on_gone(watched.self, NULL, RV_GONE_LEFT);
    srv_stream_end(p.st);
    srv_loop_read(&p.server.server_loop);
    srv_loop_read(&p.producer); /* what it was told has a reference */
}
END_TEST

TCase *stream_case(void)
{
    TCase *tc = tcase_create("stream");

    tcase_add_test(tc, what_is_queued_counts_until_it_is_sent);
    tcase_add_test(tc, a_producer_that_waits_is_told_when_all_was_sent_at_once);
    tcase_add_test(tc, a_client_that_reads_slowly_is_not_dropped);
    tcase_add_loop_test(tc, a_client_that_reads_slowly_gets_all_before_the_cut, 0, 2);
    tcase_add_loop_test(tc, what_waits_for_a_client_has_an_end, 0, 2);
    tcase_add_loop_test(tc, a_stream_does_not_begin_without_a_field_of_its_head, 0, 5);
    return tc;
}
