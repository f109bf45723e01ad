/* A model that streams as fast as it is asked to: the other side of the benches of streams.
 *
 *   mock_llm PORT_FILE
 *
 * Speaks Chat Completions and Messages on a port of the loopback that it writes into PORT_FILE (NUMBER and a line end),
 * until it is killed. The address of a request says what is sent: POST /PIECES/EVERY_MS/v1/chat/completions, or
 * /PIECES/EVERY_MS/v1/messages, streams so many pieces, one every EVERY_MS milliseconds by the clock (late ones do not
 * move those behind them), or as fast as they are taken with EVERY_MS 0. Each piece has a text of 40 bytes, "ASKED SENT
 * ", both nanoseconds of the monotonic clock, which is the same for all processes: when the request was complete, and
 * when the piece was sent. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <uv.h>

#define MAX_REQUEST  16384
#define MAX_EVERY_MS 8192
#define AT_ONCE      32   /* pieces a write when there is no pace */
#define PIECE_MAX    512  /* bytes with their frame */
#define SPREAD       619  /* odd: first pieces of neighbours are not due in the same millisecond */
#define BACKLOG      4096 /* all clients may come at once */

/* What a protocol has around the text of a piece, and around all pieces. */
struct words {
    const char *start, *before, *after, *end;
};
struct peer {
    uv_tcp_t tcp;
    const struct words *words;
    bool has_begun;
    struct peer *next, **slot; /* of those that are due in the same millisecond; slot NULL: it waits for nothing */
    char request[MAX_REQUEST];
    size_t n_request;
    unsigned long left, every_ms; /* pieces, and milliseconds between them */
    uint64_t asked_ns;
};
struct parcel {
    uv_write_t write;
    struct peer *peer;
    size_t n;
    char bytes[];
};

static struct peer *due[MAX_EVERY_MS]; /* a wheel: by the millisecond */
static uint64_t clock_ms;              /* of the wheel */
static unsigned long n_asked;

static void die(const char *what)
{
    fprintf(stderr, "mock_llm: %s\n", what);
    exit(1);
}

static void wait_until(struct peer *p, uint64_t ms)
{
    p->slot = &due[ms % MAX_EVERY_MS];
    p->next = *p->slot;
    *p->slot = p;
}

static void on_closed(uv_handle_t *handle)
{
    struct peer *p = handle->data;

    for (struct peer **at = p->slot; at && *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    free(p);
}

static void drop(struct peer *p)
{
    p->left = 0;
    if (!uv_is_closing((uv_handle_t *)&p->tcp))
        uv_close((uv_handle_t *)&p->tcp, on_closed);
}

/* --- what is said --- */

#define CHUNK                                                                                                          \
    "data: {\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"created\":1750000000,"               \
    "\"model\":\"mock\",\"system_fingerprint\":null,\"choices\":["

static const struct words openai = {
    .start = "",
    .before = CHUNK "{\"index\":0,\"delta\":{\"content\":\"",
    .after = "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
    .end = CHUNK "{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" CHUNK
                 "],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":12,\"total_tokens\":21}}\n\ndata: [DONE]\n\n",
};
static const struct words anthropic = {
    .start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_0123456789\",\"type\":"
             "\"message\",\"role\":\"assistant\",\"model\":\"mock\",\"content\":[],\"stop_reason\":null,"
             "\"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n"
             "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":"
             "{\"type\":\"text\",\"text\":\"\"}}\n\n",
    .before = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
              "\"text_delta\",\"text\":\"",
    .after = "\"}}\n\n",
    .end = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
           "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\","
           "\"stop_sequence\":null},\"usage\":{\"output_tokens\":12}}\n\n"
           "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
};

static size_t add_framed(char *to, const char *text, size_t n)
{
    size_t at = (size_t)snprintf(to, PIECE_MAX, "%zx\r\n", n);

    memcpy(to + at, text, n);
    memcpy(to + at + n, "\r\n", 2);
    return at + n + 2;
}

static size_t add_piece(char *to, const struct peer *p)
{
    char text[PIECE_MAX];
    int n = snprintf(text, sizeof text, "%s%019llu %019llu %s", p->words->before, (unsigned long long)p->asked_ns,
                     (unsigned long long)uv_hrtime(), p->words->after);
    return add_framed(to, text, (size_t)n);
}

static size_t add_end(char *to, const struct peer *p)
{
    size_t at = add_framed(to, p->words->end, strlen(p->words->end));
    memcpy(to + at, "0\r\n\r\n", 5);
    return at + 5;
}

static void stream(struct peer *p);

static void on_written(uv_write_t *write, int status)
{
    struct parcel *parcel = write->data;
    struct peer *p = parcel->peer;

    free(parcel);
    if (status == 0 && p->left > 0 && p->every_ms == 0)
        stream(p);
}

/* The next pieces, and the end after the last. */
static void stream(struct peer *p)
{
    unsigned long n = p->every_ms ? 1 : p->left < AT_ONCE ? p->left : AT_ONCE;
    struct parcel *parcel = malloc(sizeof *parcel + (n + 6) * PIECE_MAX);

    if (!parcel)
        die("no memory");
    *parcel = (struct parcel){.peer = p};
    if (!p->has_begun && p->words->start[0])
        parcel->n += add_framed(parcel->bytes, p->words->start, strlen(p->words->start));
    p->has_begun = true;
    for (unsigned long i = 0; i < n; i++)
        parcel->n += add_piece(parcel->bytes + parcel->n, p);
    p->left -= n;
    if (p->left == 0)
        parcel->n += add_end(parcel->bytes + parcel->n, p);
    uv_buf_t buf = uv_buf_init(parcel->bytes, (unsigned)parcel->n);
    parcel->write.data = parcel;
    if (uv_write(&parcel->write, (uv_stream_t *)&p->tcp, &buf, 1, on_written) < 0) {
        free(parcel);
        drop(p);
    }
}

static void on_tick(uv_timer_t *timer)
{
    uint64_t now_ms = uv_hrtime() / 1000000;

    (void)timer;
    while (clock_ms < now_ms) {
        struct peer *p = due[++clock_ms % MAX_EVERY_MS];
        due[clock_ms % MAX_EVERY_MS] = NULL;
        for (struct peer *next; p; p = next) {
            next = p->next;
            p->slot = NULL;
            if (p->left > 0) /* else it is gone */
                stream(p);
            if (p->left > 0)
                wait_until(p, clock_ms + p->every_ms);
        }
    }
}

/* --- what is asked --- */

static void answer(struct peer *p, const char *path)
{
    static char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    uv_buf_t buf = uv_buf_init(head, sizeof head - 1);
    char *end;

    p->asked_ns = uv_hrtime();
    p->has_begun = false;
    p->left = strtoul(path + 1, &end, 10);
    p->every_ms = *end == '/' ? strtoul(end + 1, &end, 10) : MAX_EVERY_MS;
    if (p->left < 1 || p->every_ms >= MAX_EVERY_MS || *end != '/')
        die("the path of a request is not /PIECES/EVERY_MS/v1/...");
    p->words = strncmp(end, "/v1/messages", 12) == 0 ? &anthropic : &openai;
    if (uv_try_write((uv_stream_t *)&p->tcp, &buf, 1) != (int)buf.len) {
        drop(p);
        return;
    }
    if (p->every_ms)
        wait_until(p, clock_ms + 1 + n_asked++ * SPREAD % p->every_ms);
    else
        stream(p);
}

static void read_request(struct peer *p)
{
    size_t n_body = 0;

    p->request[p->n_request] = '\0';
    char *end = strstr(p->request, "\r\n\r\n"), *path = strchr(p->request, ' ');
    if (!end || !path)
        return;
    for (char *line = p->request; line < end; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, "content-length:", 15) == 0)
            n_body = strtoul(line + 15, NULL, 10);
    if (p->n_request < (size_t)(end + 4 - p->request) + n_body)
        return;
    p->n_request = 0;
    answer(p, path + 1);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
    struct peer *p = handle->data;

    (void)wanted;
    *buf = uv_buf_init(p->request + p->n_request, (unsigned)(MAX_REQUEST - 1 - p->n_request));
}

static void on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *buf)
{
    struct peer *p = tcp->data;

    (void)buf;
    if (n == UV_ENOBUFS)
        die("a request is too large");
    if (n < 0) {
        drop(p);
        return;
    }
    p->n_request += (size_t)n;
    read_request(p);
}

static void on_connection(uv_stream_t *server, int status)
{
    struct peer *p = calloc(1, sizeof *p);

    if (!p || status < 0 || uv_tcp_init(server->loop, &p->tcp) < 0)
        die("no connection can be taken");
    p->tcp.data = p;
    if (uv_accept(server, (uv_stream_t *)&p->tcp) < 0)
        die("no connection can be taken: raise `ulimit -n`");
    uv_tcp_nodelay(&p->tcp, 1);
    uv_read_start((uv_stream_t *)&p->tcp, on_room, on_read);
}

static void write_port(const char *path, const uv_tcp_t *server)
{
    struct sockaddr_storage name;
    int len = sizeof name;
    FILE *f = fopen(path, "we");

    if (!f || uv_tcp_getsockname(server, (struct sockaddr *)&name, &len) < 0)
        die("the port can not be written");
    fprintf(f, "%d\n", ntohs(((struct sockaddr_in *)&name)->sin_port));
    fclose(f);
}

int main(int argc, char **argv)
{
    static uv_tcp_t server;
    static uv_timer_t tick;
    struct sockaddr_in address;
    struct rlimit files;
    uv_loop_t *loop = uv_default_loop();

    if (argc != 2) {
        fprintf(stderr, "usage: mock_llm PORT_FILE\n");
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files); /* else accepting says so */
    }
    clock_ms = uv_hrtime() / 1000000;
    uv_timer_init(loop, &tick);
    uv_timer_start(&tick, on_tick, 1, 1);
    uv_ip4_addr("127.0.0.1", 0, &address);
    if (uv_tcp_init(loop, &server) < 0 || uv_tcp_bind(&server, (struct sockaddr *)&address, 0) < 0 ||
        uv_listen((uv_stream_t *)&server, BACKLOG, on_connection) < 0)
        die("no port can be listened on");
    write_port(argv[1], &server);
    return uv_run(loop, UV_RUN_DEFAULT);
}
