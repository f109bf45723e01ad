/* The HTTP server with many clients: bench_httpd CLIENTS SECONDS
 * Memory of a connection that is silent, that has asked once, that has a stream; processor time of a request, and of an
 * event to every stream. The clients are a process of their own, on plain sockets. Prints one line of JSON. */
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/http/http.h"

#define MAX_CLIENTS 18000
#define EVENT_BYTES 200
#define PERIOD_MS   100

static uv_loop_t loop;
static rv_httpd *server;
static rv_httpd_exchange *streams[MAX_CLIENTS];
static size_t n_clients, n_streams, n_gone;
static int64_t n_events;
static char data[EVENT_BYTES + 1];

/* --- measuring --- */

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static long rss_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    char line[200];

    if (!f || !fgets(line, sizeof line, f) || !strchr(line, ' '))
        die("/proc/self/statm");
    (void)fclose(f);
    return strtol(strchr(line, ' '), NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024); /* the second number */
}

static int64_t cpu_us(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000) + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

/* --- the server --- */

static void on_gone(void *self, rv_httpd_exchange *x, enum rv_gone why)
{
    (void)self, (void)why;
    for (size_t i = 0; i < n_streams; i++)
        if (streams[i] == x)
            streams[i] = NULL;
    n_gone++;
    rv_httpd_drop(x);
}

static void on_request(void *self, rv_httpd_exchange *x)
{
    const struct rv_httpd_watch watch = {.on_gone = on_gone, .self = self};

    if (!rv_str_is(rv_httpd_exchange_request(x)->path, "/events")) {
        rv_httpd_reply(x,
                       &(struct rv_httpd_answer){
                           .status = 200, .type = "text/plain", .body = RV_STR_LIT("hello"), .owner = RV_BODY_STATIC});
        return;
    }
    rv_httpd_watch(x, &watch);
    rv_httpd_begin_events(x, NULL, 0);
    streams[n_streams++] = x;
}

static void listen_at(int *port)
{
    struct rv_httpd_opts opts = RV_HTTPD_OPTS_INIT;
    const struct rv_httpd_listen at = {.address = "127.0.0.1"};
    rv_err *err = NULL;

    opts.loop = &loop;
    opts.handler.on_request = on_request;
    opts.limits.max_per_peer = 0;
    opts.limits.head_us = opts.limits.keep_alive_us = INT64_C(3600000000);
    opts.limits.max_connections = MAX_CLIENTS + 10;
    uv_loop_init(&loop);
    if (rv_httpd_new(&opts, &server, &err) < 0 || rv_httpd_listen(server, &at, port, &err) < 0) {
        (void)fprintf(stderr, "%s\n", rv_err_text(err));
        exit(1);
    }
}

/* --- the clients: a process that obeys letters on its standard input --- */

static int fds[MAX_CLIENTS];

static void connect_all(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    for (size_t i = 0; i < n_clients; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (fds[i] < 0 || connect(fds[i], (struct sockaddr *)&at, sizeof at) < 0)
            die("connect");
    }
}

static void send_all(const char *text)
{
    for (size_t i = 0; i < n_clients; i++)
        if (send(fds[i], text, strlen(text), MSG_NOSIGNAL) < 0)
            die("send");
}

static void read_all(int epoll, char *room, size_t size)
{
    struct epoll_event ready[512];
    int n = epoll_wait(epoll, ready, 512, 10);

    for (int i = 0; i < n; i++)
        if (recv(ready[i].data.fd, room, size, MSG_DONTWAIT) == 0)
            epoll_ctl(epoll, EPOLL_CTL_DEL, ready[i].data.fd, NULL);
}

static _Noreturn void be_clients(int port, int orders, int reports)
{
    static char room[65536];
    int epoll = epoll_create1(0);
    char order = 0;

    connect_all(port);
    for (size_t i = 0; i < n_clients; i++)
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){.events = EPOLLIN, .data.fd = fds[i]});
    (void)!write(reports, "c", 1);
    for (;;) {
        struct pollfd p = {.fd = orders, .events = POLLIN};
        read_all(epoll, room, sizeof room);
        if (poll(&p, 1, 0) != 1)
            continue;
        if (read(orders, &order, 1) != 1)
            exit(0);
        send_all(order == 'h' ? "GET /hello HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
                              : "GET /events HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: "
                                "text/event-stream\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n");
        (void)!write(reports, "s", 1);
    }
}

/* Runs the loop until the clients have reported and `is_there` says so. */
static void run_until(bool (*is_there)(void))
{
    while (!is_there())
        uv_run(&loop, UV_RUN_ONCE);
}

static struct rv_httpd_counts counts(void)
{
    struct rv_httpd_counts c;

    rv_httpd_copy_counts(server, &c);
    return c;
}

static bool all_connected(void)
{
    return counts().connections == n_clients;
}

static bool all_answered(void)
{
    return counts().requests == n_clients && counts().exchanges == 0;
}

static bool all_streaming(void)
{
    return n_streams == n_clients;
}

static void on_tick(uv_timer_t *timer)
{
    struct rv_httpd_event ev = {.data = {data, EVENT_BYTES}};
    char id[24];

    (void)timer;
    ev.id = (rv_str){id, (size_t)snprintf(id, sizeof id, "%lld", (long long)n_events)};
    for (size_t i = 0; i < n_streams; i++)
        if (streams[i]) {
            rv_httpd_send_event(streams[i], &ev);
            n_events++;
        }
}

static void on_end(uv_timer_t *timer)
{
    (void)timer;
    uv_stop(&loop);
}

int main(int argc, char **argv)
{
    int port = 0, orders[2], reports[2];
    uv_timer_t tick, end;

    if (argc < 3 || (n_clients = strtoul(argv[1], NULL, 10)) > MAX_CLIENTS)
        return 1;
    uint64_t seconds = strtoul(argv[2], NULL, 10);
    struct rlimit files = {20000, 20000};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)signal(SIGPIPE, SIG_IGN);
    memset(data, 'x', EVENT_BYTES);
    listen_at(&port);
    if (pipe(orders) < 0 || pipe(reports) < 0)
        die("pipe");
    pid_t child = fork();
    if (child == 0) {
        close(orders[1]);
        be_clients(port, orders[0], reports[1]);
    }
    long before = rss_kb();
    run_until(all_connected);
    long silent = rss_kb();
    int64_t cpu = cpu_us();
    (void)!write(orders[1], "h", 1);
    run_until(all_answered);
    int64_t request_ns = (cpu_us() - cpu) * 1000 / (int64_t)n_clients;
    long idle = rss_kb();
    (void)!write(orders[1], "e", 1);
    run_until(all_streaming);
    long streaming = rss_kb();
    uv_timer_init(&loop, &tick);
    uv_timer_init(&loop, &end);
    cpu = cpu_us();
    uint64_t begin = uv_hrtime();
    uv_timer_start(&tick, on_tick, PERIOD_MS, PERIOD_MS);
    uv_timer_start(&end, on_end, seconds * 1000, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    double took_s = (double)(uv_hrtime() - begin) / 1e9;
    printf("{\"clients\":%zu,\"silent_bytes\":%ld,\"idle_bytes\":%ld,\"stream_bytes\":%ld,\"request_ns\":%lld,"
           "\"events\":%lld,\"events_per_s\":%.0f,\"event_ns\":%lld,\"after_bytes\":%ld,\"gone\":%zu}\n",
           n_clients, (silent - before) * 1024 / (long)n_clients, (idle - before) * 1024 / (long)n_clients,
           (streaming - before) * 1024 / (long)n_clients, (long long)request_ns, (long long)n_events,
           (double)n_events / took_s, (long long)((cpu_us() - cpu) * 1000 / (n_events > 0 ? n_events : 1)),
           (rss_kb() - before) * 1024 / (long)n_clients, n_gone);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    return 0;
}
