/* Calls of a tool of an MCP server, one after the other: bench_mcp STUB CALLS stdio|http
 *
 * The same messages go to the same server twice: by plain reads and writes (the server's own time, and the kernel's),
 * and through a connection of reeve. The difference is what a call costs more. The medians are compared. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coreengine/tools/mcp/http/http.h"
#include "coreengine/tools/mcp/mcp.h"

#define MAX_CALLS 100000
#define CALL                                                                                                           \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/"                                                                \
    "call\",\"params\":{\"name\":\"tool_0\",\"arguments\":{\"text\":\"x\"}}}"

static int64_t took_ns[MAX_CALLS];

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_mcp: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t median(size_t n)
{
    qsort(took_ns, n, sizeof took_ns[0], by_value);
    return took_ns[n / 2];
}

/* --- the server by itself --- */

struct child {
    pid_t pid;
    int in, out;
};

static struct child start(const char *stub, const char *mode)
{
    int to[2], from[2];
    struct child c;

    if (pipe(to) < 0 || pipe(from) < 0 || (c.pid = fork()) < 0)
        die("start the server");
    if (c.pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execl(stub, stub, "1", mode, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    c.in = to[1];
    c.out = from[0];
    return c;
}

static void stop(struct child *c)
{
    close(c->in);
    close(c->out);
    kill(c->pid, SIGTERM);
    waitpid(c->pid, NULL, 0);
}

/* One request, and its whole answer, which fits into one read. */
static void exchange(int to, int from, const char *bytes, size_t n)
{
    char answer[4096];

    if (write(to, bytes, n) != (ssize_t)n || read(from, answer, sizeof answer) <= 0)
        die("talk to the server");
}

static int64_t plain_pipe(const char *stub, size_t n)
{
    struct child c = start(stub, NULL);

    for (size_t i = 0; i < n; i++) {
        int64_t from = now_ns();
        exchange(c.in, c.out, CALL "\n", sizeof CALL);
        took_ns[i] = now_ns() - from;
    }
    stop(&c);
    return median(n);
}

static int port_of(const struct child *c)
{
    char text[20] = "";

    if (read(c->out, text, sizeof text - 1) <= 0)
        die("read the port");
    return (int)strtol(text, NULL, 10);
}

static int64_t plain_http(int port, size_t n)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[1024];
    int len = snprintf(request, sizeof request,
                       "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                       "Accept: application/json, text/event-stream\r\nContent-Length: %zu\r\n\r\n%s",
                       sizeof CALL - 1, CALL);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        die("connect");
    for (size_t i = 0; i < n; i++) {
        int64_t from = now_ns();
        exchange(fd, fd, request, (size_t)len);
        took_ns[i] = now_ns() - from;
    }
    close(fd);
    return median(n);
}

/* --- the same through reeve --- */

static int open_web(void *self, const struct rv_mcp_server_config *s, struct uv_loop_s *loop,
                    const struct rv_mcp_link_user *user, struct rv_mcp_link *out, rv_err **err)
{
    const struct rv_mcp_web_opts opts = {.loop = loop, .url = s->url, .user = *user};

    (void)self;
    return rv_mcp_web_open(&opts, out, err);
}

struct call {
    struct rv_mcp_call call;
    bool is_over;
};

static void on_done(struct rv_mcp_call *c, const struct rv_mcp_out *out)
{
    if (!out->result) {
        fprintf(stderr, "bench_mcp: %s\n", out->trouble.text);
        exit(1);
    }
    ((struct call *)c)->is_over = true;
}

static int64_t through_reeve(const struct rv_mcp_server_config *server, size_t n, int64_t *total_ns)
{
    const struct rv_mcp_pool_opts opts = {.servers = server, .n_servers = 1, .http = {.open = open_web}};
    json_object *params = json_object_new_object(), *arguments = json_object_new_object();
    rv_mcp_pool *pool = NULL;
    int64_t begun = 0;

    if (rv_json_set_text(params, "name", "tool_0", NULL) < 0 || rv_json_set_text(arguments, "text", "x", NULL) < 0 ||
        rv_json_set_take(params, "arguments", arguments, NULL) < 0 || rv_mcp_pool_new(&opts, &pool, NULL) < 0)
        die("open a pool");
    for (size_t i = 0; i <= n; i++) { /* the first one opens the connection */
        const struct rv_mcp_ask ask = {
            .method = "tools/call", .params = params, .timeout_us = 10000000, .wants_progress = true};
        struct call c = {.call = {.done = on_done}};
        int64_t from = now_ns();
        begun = i == 1 ? from : begun;
        if (rv_mcp_pool_ask(pool, server, &ask, &c.call, NULL) < 0)
            die("call a tool");
        while (!c.is_over)
            rv_mcp_pool_wait(pool, 1000000);
        if (i > 0)
            took_ns[i - 1] = now_ns() - from;
    }
    *total_ns = now_ns() - begun;
    rv_mcp_pool_free(pool);
    json_object_put(params);
    return median(n);
}

int main(int argc, char **argv)
{
    size_t n = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    int64_t plain_ns, reeve_ns, total_ns;

    if (n < 1 || n > MAX_CALLS) {
        fprintf(stderr, "usage: bench_mcp STUB CALLS stdio|http\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(argv[3], "http") == 0) {
        struct child c = start(argv[1], "http");
        char url[60];
        int port = port_of(&c);
        snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp", port);
        const struct rv_mcp_server_config server = {.name = "stub", .url = url, .has_url = true, .timeout_ms = 10000};
        plain_ns = plain_http(port, n);
        reeve_ns = through_reeve(&server, n, &total_ns);
        stop(&c);
    } else {
        const char *command[] = {argv[1], "1"};
        const struct rv_mcp_server_config server = {
            .name = "stub", .url = "", .command = {.items = command, .n = 2, .is_set = true}, .timeout_ms = 10000};
        plain_ns = plain_pipe(argv[1], n);
        reeve_ns = through_reeve(&server, n, &total_ns);
    }
    printf("{\"calls\":%zu,\"server_us\":%.1f,\"call_us\":%.1f,\"added_us\":%.1f,\"total_ms\":%.1f}\n", n,
           (double)plain_ns / 1000, (double)reeve_ns / 1000, (double)(reeve_ns - plain_ns) / 1000,
           (double)total_ns / 1000000);
    return 0;
}
