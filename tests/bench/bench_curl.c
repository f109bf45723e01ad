/* The same streams as bench_stream reads, through libcurl and libuv with nothing else: the least that can be done.
 * Lines are split and the text is looked for in them; nothing is checked, parsed or kept.
 *
 *   bench_curl PORT STREAMS PIECES EVERY_MS */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/bench/bench_kit.h"
#include "tests/bench/bench_tally.h"

#define MAX_LINE     1024
#define BUFFER_BYTES 16384L /* as the engine reads */

static const char body[] = "{\"model\":\"mock\",\"messages\":[{\"role\":\"user\",\"content\":\"Answer how are errors "
                           "made? in a few words.\"}],\"stream\":true,\"stream_options\":{\"include_usage\":true}}";
static const char content[] = "\"content\":\"";

struct stream {
    struct world *world;
    size_t number, n_line;
    char line[MAX_LINE]; /* the beginning of one */
};
struct world {
    struct tally *tally;
    uv_loop_t *loop;
    uv_timer_t curl_timer, starter;
    CURLM *multi;
    struct curl_slist *headers;
    struct stream *streams;
    size_t n_streams, n_started, n_over;
    bool is_paced;
    char url[128];
};

static void take_line(struct stream *s, const char *line, size_t n)
{
    const char *text = n > 5 && memcmp(line, "data:", 5) == 0 ? memmem(line, n, content, sizeof content - 1) : NULL;
    const char *end =
        text ? memchr(text + sizeof content - 1, '"', n - (size_t)(text + sizeof content - 1 - line)) : NULL;

    if (end)
        tally_take(s->world->tally, s->number, text + sizeof content - 1, (size_t)(end - text) - (sizeof content - 1));
}

static size_t on_body(char *bytes, size_t size, size_t n, void *self)
{
    struct stream *s = self;
    const char *p = bytes, *end = bytes + size * n;

    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((stop ? stop : end) - p);
        if (!stop || s->n_line > 0) {
            if (s->n_line + len > MAX_LINE)
                return 0;
            memcpy(s->line + s->n_line, p, len);
            s->n_line += len;
        }
        if (!stop)
            break;
        if (s->n_line > 0)
            take_line(s, s->line, s->n_line);
        else
            take_line(s, p, len);
        s->n_line = 0;
        p = stop + 1;
    }
    return size * n;
}

static void start(struct world *w, size_t number)
{
    CURL *easy = curl_easy_init();
    struct stream *s = &w->streams[number];

    *s = (struct stream){.world = w, .number = number};
    tally_ask(w->tally, number);
    if (!easy || curl_easy_setopt(easy, CURLOPT_URL, w->url) || curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body) ||
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, w->headers) || curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) ||
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES) ||
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_BYTES) ||
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) || curl_easy_setopt(easy, CURLOPT_WRITEDATA, s) ||
        curl_multi_add_handle(w->multi, easy))
        bench_die("a request can not be started", NULL);
}

/* --- libcurl on libuv --- */

static void act(struct world *w, curl_socket_t fd, int what)
{
    CURLMsg *msg;
    int n;

    curl_multi_socket_action(w->multi, fd, what, &n);
    while ((msg = curl_multi_info_read(w->multi, &n))) {
        CURL *easy = msg->easy_handle;
        if (msg->data.result != CURLE_OK)
            bench_die(curl_easy_strerror(msg->data.result), NULL);
        curl_multi_remove_handle(w->multi, easy);
        curl_easy_cleanup(easy);
        w->n_over++;
    }
}

static void on_curl_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int want_time(CURLM *multi, long ms, void *self)
{
    struct world *w = self;

    (void)multi;
    if (ms < 0)
        uv_timer_stop(&w->curl_timer);
    else
        uv_timer_start(&w->curl_timer, on_curl_timer, (uint64_t)ms, 0);
    return 0;
}

struct watch {
    uv_poll_t poll;
    struct world *world;
    curl_socket_t fd;
};

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    int what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) | (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);

    act(watch->world, watch->fd, status < 0 ? CURL_CSELECT_ERR : what);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *watched)
{
    struct world *w = self;
    struct watch *watch = watched;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch)
            uv_close((uv_handle_t *)&watch->poll, on_closed);
        return 0;
    }
    if (!watch) {
        watch = calloc(1, sizeof *watch);
        if (!watch || uv_poll_init(w->loop, &watch->poll, fd) < 0)
            bench_die("a socket can not be watched", NULL);
        watch->poll.data = watch;
        watch->world = w;
        watch->fd = fd;
        curl_multi_assign(w->multi, fd, watch);
    }
    uv_poll_start(&watch->poll, (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0),
                  on_poll);
    return 0;
}

/* --- the run --- */

static void on_start(uv_timer_t *timer)
{
    struct world *w = timer->data;

    while (w->n_started < w->n_streams && tally_wait_us(w->tally, w->n_started, w->is_paced) <= 0)
        start(w, w->n_started++);
    if (w->n_started == w->n_streams)
        uv_timer_stop(timer);
}

static void set_up(struct world *w)
{
    w->loop = uv_default_loop();
    w->multi = curl_multi_init();
    w->headers = curl_slist_append(curl_slist_append(NULL, "Content-Type: application/json"), "Expect:");
    w->curl_timer.data = w->starter.data = w;
    uv_timer_init(w->loop, &w->curl_timer);
    uv_timer_init(w->loop, &w->starter);
    curl_multi_setopt(w->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl_multi_setopt(w->multi, CURLMOPT_SOCKETDATA, w);
    curl_multi_setopt(w->multi, CURLMOPT_TIMERFUNCTION, want_time);
    curl_multi_setopt(w->multi, CURLMOPT_TIMERDATA, w);
    curl_multi_setopt(w->multi, CURLMOPT_MAXCONNECTS, (long)w->n_streams);
}

int main(int argc, char **argv)
{
    struct world w = {.n_streams = 0};

    if (argc != 5) {
        fprintf(stderr, "usage: bench_curl PORT STREAMS PIECES EVERY_MS\n");
        return 2;
    }
    w.n_streams = bench_number(argv[2], 1);
    w.is_paced = bench_number(argv[4], 0) > 0;
    w.tally = tally_new(w.n_streams, bench_number(argv[3], 1));
    w.streams = calloc(w.n_streams, sizeof *w.streams);
    if (!w.streams)
        bench_die("no memory", NULL);
    snprintf(w.url, sizeof w.url, "http://127.0.0.1:%s/%s/%s/v1/chat/completions", argv[1], argv[3], argv[4]);
    set_up(&w);
    start(&w, 0);
    while (w.n_over < 1)
        uv_run(w.loop, UV_RUN_ONCE);
    w.n_over = 0;
    tally_begin(w.tally);
    uv_timer_start(&w.starter, on_start, 0, 1);
    while (w.n_over < w.n_streams)
        uv_run(w.loop, UV_RUN_ONCE);
    return tally_print(w.tally, "libcurl", "alone") ? 0 : 1;
}
