/* An MCP server that does nothing but answer, so that what is left is the client's: mcp_stub TOOLS on standard input
 * and output, mcp_stub TOOLS http on a port of this machine, which it prints. It trusts its client. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_REQUEST ((size_t)64 << 10)

static char *tools; /* the array of tools/list */

static void make_tools(int n)
{
    size_t size = 64 + (size_t)n * 300, at = 0;

    tools = malloc(size);
    if (!tools)
        exit(1);
    at += (size_t)snprintf(tools + at, size - at, "[");
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(tools + at, size - at,
                               "%s{\"name\":\"tool_%d\",\"description\":\"Does the thing number %d.\",\"inputSchema\":"
                               "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},\"n\":{\"type\":"
                               "\"integer\"}}},\"annotations\":{\"readOnlyHint\":true}}",
                               i ? "," : "", i, i);
    snprintf(tools + at, size - at, "]");
}

/* The length of the answer to a message; 0: it is a notification. */
static size_t answer(const char *message, char *out, size_t max, bool *is_refused)
{
    const char *id = strstr(message, "\"id\":");
    int n = 0;

    *is_refused = false;
    if (!id)
        return 0;
    int len = (int)strspn(id + 5, "0123456789");
    if (strstr(message, "\"tools/call\""))
        n = snprintf(
            out, max,
            "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}", len,
            id + 5);
    else if (strstr(message, "\"tools/list\""))
        n = snprintf(out, max, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"tools\":%s}}", len, id + 5, tools);
    else if (strstr(message, "\"initialize\""))
        n = snprintf(out, max,
                     "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":"
                     "{\"tools\":{}},\"serverInfo\":{\"name\":\"stub\",\"version\":\"1\"}}}",
                     len, id + 5);
    else {
        *is_refused = true;
        n = snprintf(out, max, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-32601,\"message\":\"no\"}}", len,
                     id + 5);
    }
    return (size_t)n;
}

static void write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k <= 0)
            return;
        p += k;
        n -= (size_t)k;
    }
}

static void serve_pipe(char *out, size_t max)
{
    static char line[MAX_REQUEST];
    bool is_refused;

    while (fgets(line, sizeof line, stdin)) {
        size_t n = answer(line, out, max - 1, &is_refused);
        if (n) {
            out[n] = '\n';
            write_all(STDOUT_FILENO, out, n + 1);
        }
    }
}

struct connection {
    int fd;
    size_t max;
};

/* One request after the other, each with a Content-Length where it has a body. */
static void *serve_connection(void *self)
{
    struct connection *c = self;
    char *in = malloc(MAX_REQUEST + 1), *out = malloc(c->max), *body = malloc(c->max);
    size_t n = 0;
    bool is_refused;

    for (;;) {
        char *end = NULL, *length;
        size_t whole = 0;
        while (in && out && body) {
            in[n] = '\0';
            end = strstr(in, "\r\n\r\n");
            length = end ? strcasestr(in, "content-length:") : NULL;
            whole = end ? (size_t)(end + 4 - in) + (length && length < end ? strtoul(length + 15, NULL, 10) : 0) : 0;
            if (end && n >= whole)
                break;
            ssize_t k = n < MAX_REQUEST ? read(c->fd, in + n, MAX_REQUEST - n) : 0;
            if (k <= 0)
                goto gone;
            n += (size_t)k;
        }
        if (!end)
            goto gone;
        char after = in[whole];
        in[whole] = '\0';
        size_t len = in[0] == 'P' ? answer(end + 4, body, c->max, &is_refused) : 0;
        const char *status = in[0] != 'P' ? "405 No" : !len ? "202 Accepted" : is_refused ? "400 Bad" : "200 OK";
        int head = snprintf(out, c->max, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                            status, len);
        memcpy(out + head, body, len);
        write_all(c->fd, out, (size_t)head + len);
        in[whole] = after;
        memmove(in, in + whole, n - whole);
        n -= whole;
    }
gone:
    close(c->fd);
    free(in);
    free(out);
    free(body);
    free(c);
    return NULL;
}

static int serve_http(size_t max)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 128) < 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) < 0)
        return 1;
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        struct connection *c = malloc(sizeof *c);
        pthread_t thread;
        if (!c)
            return 1;
        *c = (struct connection){accept(listener, NULL, NULL), max};
        if (c->fd < 0 || pthread_create(&thread, NULL, serve_connection, c) != 0)
            return 1;
        pthread_detach(thread);
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;

    if (n < 1 || n > 10000) {
        fprintf(stderr, "usage: mcp_stub TOOLS [http]\n");
        return 2;
    }
    make_tools(n);
    size_t max = strlen(tools) + 1024;
    if (argc > 2)
        return serve_http(max);
    char *out = malloc(max);
    if (!out)
        return 1;
    serve_pipe(out, max);
    free(out);
    free(tools);
    return 0;
}
