/* Allocations of a server fail, one of each request, whichever of its threads makes them: a chat, the stream of that
 * turn again, and the events of its run. The client gets the whole answer, an error or a closed connection, never a
 * connection that hangs; and the next request is served. The client allocates nothing. A sample of the allocations;
 * with REEVE_SOAK each of them. */
#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coreengine/server/server.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define MAX_ANSWER ((size_t)256 << 10)
#define MAX_HEAD   1024
#define SILENCE_MS 30000 /* then it hangs */
#define N_ROUNDS   100   /* of each request, in a sample */
#define N_WARM     8

static const char body[] =
    "{\"model\":\"mock\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"Good morning.\"}]}";

struct served {
    pthread_t thread;
    struct rv_app app;
    struct rv_server_opts opts;
    atomic_int port;
    int rc;
};
struct answer {
    char text[MAX_ANSWER + 1];
    size_t n;
    bool is_silent;
};
static struct answer got, first;

/* --- the server --- */

static void on_ready(void *self, const char *url)
{
    atomic_store(&((struct served *)self)->port, (int)strtol(strrchr(url, ':') + 1, NULL, 10));
}

static void *serve(void *self)
{
    struct served *s = self;
    int64_t n_left = 0;
    rv_err *err = NULL;

    s->rc = rv_server_run(&s->opts, &n_left, &err);
    if (s->rc < 0)
        fprintf(stderr, "serve: %s\n", rv_err_text(err));
    rv_err_free(err);
    if (atomic_load(&s->port) == 0)
        atomic_store(&s->port, -1);
    return NULL;
}

/* --- the client --- */

static int connect_to(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        rv_kit_die("connect");
    return fd;
}

static void ask(int port, const char *request, struct answer *out)
{
    int fd = connect_to(port);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n = 1;

    out->n = 0;
    out->is_silent = false;
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
        n = 0;
    while (n > 0 && out->n < MAX_ANSWER && !out->is_silent) {
        out->is_silent = poll(&p, 1, SILENCE_MS) == 0;
        n = out->is_silent ? 0 : recv(fd, out->text + out->n, MAX_ANSWER - out->n, 0);
        out->n += n > 0 ? (size_t)n : 0;
    }
    out->text[out->n] = '\0';
    close(fd);
}

static void write_get(int port, const char *path, char to[MAX_HEAD])
{
    snprintf(to, MAX_HEAD, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", path, port);
}

static void write_chat(int port, char to[MAX_HEAD])
{
    snprintf(to, MAX_HEAD,
             "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
             "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             port, sizeof body - 1, body);
}

/* --- what an answer says --- */

static bool is_ok(const struct answer *a)
{
    return strncmp(a->text, "HTTP/1.1 200 ", 13) == 0;
}

/* The last chunk of a body came. */
static bool is_whole(const struct answer *a)
{
    return is_ok(a) && a->n > 7 && strcmp(a->text + a->n - 7, "\r\n0\r\n\r\n") == 0;
}

static bool has_text(const struct answer *a)
{
    return is_whole(a) && strstr(a->text, "Good") && strstr(a->text, " morning") && strstr(a->text, "data: [DONE]");
}

static void read_run(const struct answer *a, char run[100])
{
    const char *at = strcasestr(a->text, "x-run-id: ");

    ck_assert_ptr_nonnull(at);
    size_t n = strcspn(at + 10, "\r\n");
    ck_assert_uint_lt(n, 100);
    memcpy(run, at + 10, n);
    run[n] = '\0';
}

/* --- the rounds --- */

struct kind {
    const char *name;
    void (*check)(const char *name, size_t at, bool fired);
    char request[MAX_HEAD];
};

static void check_end(const char *name, size_t at)
{
    ck_assert_msg(!got.is_silent, "%s, allocation %zu: the connection hangs behind %zu bytes: %s", name, at, got.n,
                  got.text);
    ck_assert_msg(got.n == 0 || strncmp(got.text, "HTTP/1.1 ", 9) == 0, "%s, allocation %zu: %s", name, at, got.text);
}

static void check_chat(const char *name, size_t at, bool fired)
{
    check_end(name, at);
    ck_assert_msg(fired || has_text(&got), "%s, allocation %zu: %s", name, at, got.text);
    ck_assert_msg(!is_whole(&got) || strstr(got.text, "data: [DONE]"),
                  "%s, allocation %zu: a stream that broke ends as if it were whole: %s", name, at, got.text);
}

/* Of a body in chunks: what is said, in place. */
static const char *said(struct answer *a)
{
    char *from = strstr(a->text, "\r\n\r\n"), *to, *begin;

    if (!from)
        return "";
    to = begin = from += 4;
    for (unsigned long n; (n = strtoul(from, &from, 16)) > 0 && from[0] == '\r'; from += n + 2) {
        from += 2;
        if (n + 2 > (size_t)(a->text + a->n - from)) /* it was cut */
            break;
        memmove(to, from, n);
        to += n;
    }
    *to = '\0';
    return begin;
}

/* The bytes of a stream are the same each time: what came is the beginning of them, and its client comes back. */
static void check_same(const char *name, size_t at, bool fired)
{
    static struct answer whole;
    bool is_begun = is_ok(&got), was_whole = is_whole(&got);

    check_end(name, at);
    ck_assert_msg(fired || is_whole(&got), "%s, allocation %zu: %s", name, at, got.text);
    whole = first;
    const char *has = said(&got), *all = said(&whole);
    if (is_begun)
        ck_assert_msg(fired ? strncmp(has, all, strlen(has)) == 0 : strcmp(has, all) == 0,
                      "%s, allocation %zu: %s is not of %s", name, at, has, all);
    ck_assert_msg(!was_whole || strcmp(has, all) == 0,
                  "%s, allocation %zu: a stream that broke ends as if it were whole: %s", name, at, has);
}

static void rounds(struct served *s, const struct kind *kind)
{
    int port = atomic_load(&s->port);
    size_t n_fired = 0, n_cut = 0;
    char chat[MAX_HEAD];

    rv_fault_arm_all(SIZE_MAX);
    ask(port, kind->request, &got);
    RV_IGNORE(rv_fault_disarm(), "it does not fire");
    size_t n = rv_fault_count(), step = getenv("REEVE_SOAK") ? 1 : n / N_ROUNDS + 1;
    first = got;
    kind->check(kind->name, 0, false);
    write_chat(port, chat);
    for (size_t at = 0; at < n; at += step) {
        rv_fault_arm_all(at);
        ask(port, kind->request, &got);
        bool fired = rv_fault_disarm();
        kind->check(kind->name, at, fired);
        n_fired += fired;
        n_cut += fired && !is_ok(&got);
        ask(port, chat, &got);
        ck_assert_msg(has_text(&got), "%s, behind allocation %zu: %s", kind->name, at, got.text);
    }
    ck_assert_msg(!rv_fault_works() || (n_fired > 2 && n_cut > 0), "%s: %zu of %zu", kind->name, n_fired, n);
}

START_TEST(a_request_ends_whichever_allocation_fails)
{
    static struct served s;
    static struct kind kinds[] = {{.name = "chat", .check = check_chat},
                                  {.name = "stream", .check = check_same},
                                  {.name = "events", .check = check_same}};
    char *dir = rv_kit_tmpdir(), *store = rv_kit_path(dir, "served.db"), *script = rv_kit_path(dir, "script.txt");
    char *agent = rv_kit_path(dir, "mock.yaml");
    char run[100], path[200];

    rv_kit_write(agent, "kind: agent\nname: mock\ndescription: Answer.\nmodel: scripted:any\n");
    rv_kit_write(script, "models:\n  mock:\n    - {chunks: [Good, ' morning']}\n");
    s.app = (struct rv_app){.store = store, .sync = "off", .schema_dir = dir, .capability = "", .quotas = ""};
    s.opts = (struct rv_server_opts){.app = &s.app,
                                     .identity = RV_IDENTITY_OPTS_INIT,
                                     .listen = "127.0.0.1:0",
                                     .script = script,
                                     .no_worker = true,
                                     .on_ready = on_ready,
                                     .self = &s};
    ck_assert_int_eq(pthread_create(&s.thread, NULL, serve, &s), 0);
    while (atomic_load(&s.port) == 0)
        sched_yield();
    int port = atomic_load(&s.port);
    ck_assert_int_gt(port, 0);
    write_chat(port, kinds[0].request);
    for (int i = 0; i < N_WARM; i++) { /* what a thread sets up at its first request */
        ask(port, kinds[0].request, &got);
        ck_assert_msg(has_text(&got), "%s", got.text);
    }
    read_run(&got, run);
    snprintf(path, sizeof path, "/runs/%s/stream", run);
    write_get(port, path, kinds[1].request);
    snprintf(path, sizeof path, "/runs/%s/events?deltas=true", run);
    write_get(port, path, kinds[2].request);
    rounds(&s, &kinds[_i]);
    kill(getpid(), SIGTERM);
    pthread_join(s.thread, NULL);
    ck_assert_int_eq(s.rc, 0);
    free(store);
    free(script);
    free(agent);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_served");
    TCase *tc = tcase_create("served");

    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, a_request_ends_whichever_allocation_fails, 0, 3);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
