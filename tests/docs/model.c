/* docs_model COMMAND...: runs a command with models at hand that cost nothing. A server on loopback speaks the three
 * wires; the variables that providers look at point to it. So a page can be typed as a reader with a key would.
 *
 * Every model repeats the last line that it is told, word by word. One whose name begins with "busy" is overloaded, and
 * a key with "wrong" in it is refused. */
#include <arpa/inet.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_REQUEST (1 << 20)
#define MAX_LINE    4096

enum wire { OPENAI, ANTHROPIC, OLLAMA };

struct request {
    char bytes[MAX_REQUEST + 1];
    size_t len;
    const char *body;
};

static bool is_complete(struct request *r)
{
    const char *end, *length;

    r->bytes[r->len] = '\0';
    end = strstr(r->bytes, "\r\n\r\n");
    if (!end)
        return false;
    r->body = end + 4;
    length = strcasestr(r->bytes, "\r\ncontent-length:");
    size_t want = length && length < end ? strtoul(length + strlen("\r\ncontent-length:"), NULL, 10) : 0;
    return r->len >= (size_t)(r->body - r->bytes) + want;
}

static bool receive(int fd, struct request *r)
{
    r->len = 0;
    while (r->len < MAX_REQUEST) {
        ssize_t n = recv(fd, r->bytes + r->len, MAX_REQUEST - r->len, 0);
        if (n <= 0)
            return false;
        r->len += (size_t)n;
        if (is_complete(r))
            return true;
    }
    return false;
}

static void say(int fd, const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static void answer_head(int fd, const char *status, const char *type)
{
    char head[256];

    snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: %s\r\nConnection: close\r\n\r\n", status, type);
    say(fd, head);
}

/* --- what it was told --- */

static const char *text_of(json_object *content)
{
    json_object *part;

    if (json_object_is_type(content, json_type_array) && json_object_array_length(content) > 0) {
        part = json_object_array_get_idx(content, json_object_array_length(content) - 1);
        content = json_object_object_get(part, "text");
    }
    return json_object_is_type(content, json_type_string) ? json_object_get_string(content) : "";
}

static void last_line(json_object *body, char out[MAX_LINE])
{
    json_object *messages = json_object_object_get(body, "messages");
    size_t n = json_object_is_type(messages, json_type_array) ? json_object_array_length(messages) : 0;
    json_object *last = n ? json_object_array_get_idx(messages, n - 1) : NULL;
    const char *text = last ? text_of(json_object_object_get(last, "content")) : "", *line;
    size_t len = strlen(text);

    while (len > 0 && text[len - 1] == '\n')
        len--;
    for (line = text + len; line > text && line[-1] != '\n'; line--)
        continue;
    snprintf(out, MAX_LINE, "%.*s", (int)(len - (size_t)(line - text)), line);
}

static int words_in(const char *text)
{
    int n = 0;

    while (*text) {
        text += strspn(text, " ");
        n += *text != '\0';
        text += strcspn(text, " ");
    }
    return n;
}

/* --- what it says --- */

/* One piece of an answer: the text between two others that are the wire's. */
static void say_piece(int fd, const char *before, const char *text, size_t len, const char *after)
{
    char piece[MAX_LINE];
    json_object *string;

    snprintf(piece, sizeof piece, "%.*s", (int)len, text);
    string = json_object_new_string(piece);
    say(fd, before);
    say(fd, json_object_to_json_string_ext(string, JSON_C_TO_STRING_NOSLASHESCAPE));
    say(fd, after);
    json_object_put(string);
}

static void say_words(int fd, const char *text, const char *before, const char *after)
{
    while (*text) {
        size_t len = strcspn(text, " ");
        len += strspn(text + len, " ");
        say_piece(fd, before, text, len, after);
        text += len;
    }
}

static void say_formatted(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say_formatted(int fd, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    say(fd, text);
}

static void answer_openai(int fd, const char *text, int input)
{
    answer_head(fd, "200 OK", "text/event-stream");
    say_words(fd, text, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":", "}}]}\n\n");
    say(fd, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    say_formatted(fd, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\n", input,
                  words_in(text));
    say(fd, "data: [DONE]\n\n");
}

static void answer_anthropic(int fd, const char *text, int input)
{
    answer_head(fd, "200 OK", "text/event-stream");
    say_formatted(
        fd,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":"
        "\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d}}}"
        "\n\n",
        input, 1);
    say(fd, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
            "\"type\":\"text\",\"text\":\"\"}}\n\n");
    say_words(fd, text,
              "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
              "\"text_delta\",\"text\":",
              "}}\n\n");
    say(fd, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n");
    say_formatted(fd,
                  "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
                  "\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d}}\n\n",
                  input, words_in(text));
    say(fd, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void answer_ollama(int fd, const char *text, int input)
{
    answer_head(fd, "200 OK", "application/x-ndjson");
    say_words(fd, text, "{\"message\":{\"role\":\"assistant\",\"content\":", "},\"done\":false}\n");
    say_formatted(fd,
                  "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\","
                  "\"prompt_eval_count\":%d,\"eval_count\":%d}\n",
                  input, words_in(text));
}

static void refuse(int fd, const char *status, const char *type, const char *message)
{
    char body[512];

    answer_head(fd, status, "application/json");
    snprintf(body, sizeof body, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":\"%s\"}}", type, message);
    say(fd, body);
}

/* The models that are there, as each of the wires lists them. */
static void list(int fd)
{
    answer_head(fd, "200 OK", "application/json");
    say(fd, "{\"version\":\"0.0.0\",\"object\":\"list\",\"data\":[{\"id\":\"qwen3:4b\",\"object\":\"model\"}],"
            "\"models\":[{\"name\":\"qwen3:4b\",\"model\":\"qwen3:4b\"}]}");
}

static void answer(int fd, const struct request *r)
{
    const char *path = strchr(r->bytes, ' ') ? strchr(r->bytes, ' ') + 1 : "";
    json_object *body = json_tokener_parse(r->body), *model;
    char line[MAX_LINE];

    if (strncmp(r->bytes, "GET ", 4) == 0) {
        list(fd);
        return;
    }
    last_line(body, line);
    model = json_object_object_get(body, "model");
    if (memmem(r->bytes, (size_t)(r->body - r->bytes), "wrong", 5))
        refuse(fd, "401 Unauthorized", "authentication_error", "Incorrect API key provided.");
    else if (model && strncmp(json_object_get_string(model), "busy", 4) == 0)
        refuse(fd, "503 Service Unavailable", "overloaded_error", "Overloaded");
    else if (strncmp(path, "/v1/messages", 12) == 0)
        answer_anthropic(fd, line, words_in(r->body));
    else if (strncmp(path, "/api/chat", 9) == 0)
        answer_ollama(fd, line, words_in(r->body));
    else
        answer_openai(fd, line, words_in(r->body));
    json_object_put(body);
}

static void serve(int listener)
{
    static struct request request;

    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        if (receive(fd, &request))
            answer(fd, &request);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
}

static void point_to(int port)
{
    static const struct {
        const char *name, *before, *after;
    } variables[] = {{"OPENAI_BASE_URL", "http://", "/v1"},
                     {"ANTHROPIC_BASE_URL", "http://", ""},
                     {"OLLAMA_HOST", "", ""},
                     {"SERVER_URL", "http://", "/v1"}};
    static const char *const others[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"};
    char value[64];

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        snprintf(value, sizeof value, "%s127.0.0.1:%d%s", variables[i].before, port, variables[i].after);
        setenv(variables[i].name, value, 1);
    }
    setenv("OPENAI_API_KEY", "key-of-openai", 1);
    setenv("ANTHROPIC_API_KEY", "key-of-anthropic", 1);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        unsetenv(others[i]);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    pid_t parent = getpid();
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (argc < 2 || listener < 0 || bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 64) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0) {
        perror("docs_model");
        return 2;
    }
    if (fork() == 0) { /* gone with the command, which keeps this process' number */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
            return 2;
        serve(listener);
    }
    point_to(ntohs(address.sin_port));
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 2;
}
