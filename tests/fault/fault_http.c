/* Every allocation of a client's life fails once, ours and libcurl's: there is an error or an answer, no crash, no
 * leak. The server is another thread, whose allocations are not counted; the loop is made before, because libuv gives
 * up the process where it can not grow its tables. */
#include <arpa/inet.h>
#include <check.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/model/http/http.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static uv_loop_t loop;
static int listener;
static char url[60];

static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";

static void *serve(void *unused)
{
    char in[4096];

    for (;;) {
        int fd = accept(listener, NULL, NULL);
        while (fd >= 0 && read(fd, in, sizeof in) > 0) /* a small request is one read */
            if (write(fd, answer, sizeof answer - 1) < 0)
                break;
        if (fd >= 0)
            close(fd);
    }
    return unused;
}

struct outcome {
    bool is_over, is_hello;
    enum rv_http_fault fault;
};

static void on_head(void *self, const struct rv_http_head *head)
{
    (void)self, (void)head;
}

static bool on_body(void *self, rv_str bytes)
{
    struct outcome *o = self;

    o->is_hello = o->is_hello || rv_str_is(bytes, "hello");
    return true;
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct outcome *o = self;

    o->is_over = true;
    o->fault = end->fault;
    uv_stop(&loop);
}

static const char *const headers[] = {"Content-Type: text/plain", "X-Key: secret"};

static int request(rv_http *http, struct outcome *o, rv_err **err)
{
    struct rv_http_events events = {on_head, on_body, on_end, o};
    struct rv_http_request req = {.method = "POST",
                                  .url = url,
                                  .headers = headers,
                                  .n_headers = RV_COUNT(headers),
                                  .body = RV_STR_LIT("body"),
                                  .connect_us = 2000000,
                                  .first_byte_us = 2000000,
                                  .total_us = 2000000,
                                  .proxy = ""};
    rv_http_call *call;
    int rc = rv_http_start(http, &req, &events, &call, err);

    while (rc == 0 && !o->is_over)
        uv_run(&loop, UV_RUN_ONCE);
    return rc;
}

/* Two requests, the second over the first one's connection. */
static int scenario(struct outcome o[2])
{
    rv_http *http = NULL;
    rv_err *err = NULL;
    int rc = rv_http_new(&(struct rv_http_opts){.loop = &loop}, &http, &err);

    for (int i = 0; i < 2 && rc == 0; i++)
        rc = request(http, &o[i], &err);
    if ((rc == 0) != (err == NULL)) /* no ck_assert here: it allocates too */
        rc = RV_E_INTERNAL;
    rv_http_free(http);
    rv_err_free(err);
    return rc;
}

static bool is_fine(const struct outcome *o)
{
    return o->is_over && o->fault == RV_HTTP_OK && o->is_hello;
}

START_TEST(any_allocation_may_fail)
{
    struct outcome first[2] = {{0}};
    size_t n, n_failed = 0;

    ck_assert_int_eq(scenario(first), 0); /* opens libcurl */
    ck_assert(is_fine(&first[0]) && is_fine(&first[1]));
    for (n = 0;; n++) {
        struct outcome o[2] = {{0}};

        rv_fault_arm(n);
        int rc = scenario(o);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            ck_assert(is_fine(&o[0]) && is_fine(&o[1]));
            break;
        }
        ck_assert_msg(rc == 0 || rc == RV_E_NOMEM, "allocation %zu: %d", n, rc);
        for (int i = 0; i < 2 && rc == 0; i++)
            ck_assert_msg(o[i].is_over && (o[i].fault != RV_HTTP_OK || o[i].is_hello), "allocation %zu", n);
        n_failed += rc < 0 || o[0].fault != RV_HTTP_OK || o[1].fault != RV_HTTP_OK;
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
    }
    ck_assert_uint_eq(n_failed, n); /* none is one that could be done without */
    ck_assert(!rv_fault_works() || n >= 8);
}
END_TEST

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *p);

static char *uncounted_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = __libc_malloc(size);

    return copy ? memcpy(copy, text, size) : NULL;
}

/* Who comes first says what libcurl allocates with. */
static void set_allocator_of_libcurl(void)
{
    __typeof__(curl_global_init_mem) *init;
    void *lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    ck_assert_ptr_nonnull(lib);
    void *symbol = dlsym(lib, "curl_global_init_mem");
    ck_assert_ptr_nonnull(symbol);
    memcpy(&init, &symbol, sizeof init);
    ck_assert_int_eq(
        init(CURL_GLOBAL_DEFAULT, __libc_malloc, __libc_free, __libc_realloc, uncounted_strdup, __libc_calloc),
        CURLE_OK);
}

static void set_up(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    pthread_t thread;

    set_allocator_of_libcurl();
    signal(SIGPIPE, SIG_IGN); /* the server's writes */
    listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
    pthread_detach(thread); /* ends with the process */
}

int main(void)
{
    Suite *suite = suite_create("fault_http");
    TCase *tc = tcase_create("http");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, any_allocation_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
