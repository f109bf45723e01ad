/* Tools of every effect class. Each leaves what it does in one file, the outside world of the crash tests, as one line
 * "tool<TAB>key<TAB>what": so whoever looks there can tell what really happened, how often, and under which key. */
#include <reeve/capability.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_TEXT  200
#define MAX_LINE  1024
#define MAX_WORLD (1 << 20)

static const char *world_path(void)
{
    const char *path = getenv("REEVE_CRASH_EFFECTS");

    return path ? path : "/dev/null";
}

/* The string under "text": the schema below allows nothing in it that would need escaping. */
static void text_of(const char *args, char out[MAX_TEXT + 1])
{
    const char *from = strstr(args, "\"text\""), *to;

    out[0] = '\0';
    from = from ? strchr(from + 6, '"') : NULL;
    to = from ? strchr(from + 1, '"') : NULL;
    if (to && to - from - 1 <= MAX_TEXT)
        snprintf(out, MAX_TEXT + 1, "%.*s", (int)(to - from - 1), from + 1);
}

/* One write, so that it happens or does not. */
static int leave_mark(const struct rv_cap_call *call, const char *text)
{
    char line[MAX_LINE];
    int n = snprintf(line, sizeof line, "%s\t%s\t%s\n", call->name, call->idempotency_key, text);
    int fd = open(world_path(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ssize_t put = fd < 0 ? -1 : write(fd, line, (size_t)n);

    if (fd >= 0)
        close(fd);
    return put == n;
}

/* The tool's effect, and an answer that depends on its arguments alone. */
static int act(void *self, struct rv_cap_call *call)
{
    char text[MAX_TEXT + 1], reply[MAX_TEXT + 64];

    (void)self;
    text_of(call->args, text);
    if (!leave_mark(call, text))
        return call->fail(call, "ExecutionError", "the outside world can not be reached");
    snprintf(reply, sizeof reply, "{\"did\": \"%s\"}", text);
    return call->reply(call, reply);
}

/* The same, slowly: begins, waits for args.ms, and then it has happened. */
static int act_slowly(void *self, struct rv_cap_call *call)
{
    const char *at = strstr(call->args, "\"ms\":");
    long ms = at ? strtol(at + 5, NULL, 10) : 0;

    leave_mark(call, "begins");
    for (; ms > 0 && !call->cancelled(call); ms -= 10)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    return act(self, call);
}

static int is_done(const char *tool, const char *key)
{
    char line[MAX_LINE];
    int n = snprintf(line, sizeof line, "%s\t%s\t", tool, key), found = 0;
    char *world = malloc(MAX_WORLD);
    int fd = open(world_path(), O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 || !world ? -1 : read(fd, world, MAX_WORLD - 1);

    if (got >= 0) {
        world[got] = '\0';
        for (const char *at = world; (at = strstr(at, line)) && !found; at += n)
            found = at == world || at[-1] == '\n';
    }
    if (fd >= 0)
        close(fd);
    free(world);
    return found;
}

static int probe(void *self, struct rv_cap_call *call)
{
    char text[MAX_TEXT + 1], reply[MAX_TEXT + 64];

    (void)self;
    if (!call->idempotency_key[0])
        return call->reply(call, "{}");
    if (!is_done(call->name, call->idempotency_key))
        return call->reply(call, "{\"happened\": false}");
    text_of(call->args, text);
    snprintf(reply, sizeof reply, "{\"happened\": true, \"result\": {\"did\": \"%s\"}}", text);
    return call->reply(call, reply);
}

#define TAKES_TEXT                                                                                                     \
    "\"input_schema\": {\"type\": \"object\", \"required\": [\"text\"], \"additionalProperties\": false, "             \
    "\"properties\": {\"text\": {\"type\": \"string\", \"maxLength\": 200}, \"ms\": {\"type\": \"integer\"}}}}"

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "read_counter",
     "{\"description\": \"Look at something.\", \"risk\": \"read_only\", \"effect\": \"safe\", " TAKES_TEXT, act},
    {RV_CAP_TOOL, "set_flag",
     "{\"description\": \"Set something.\", \"risk\": \"write\", \"effect\": \"idempotent\", " TAKES_TEXT, act},
    {RV_CAP_TOOL, "append_line",
     "{\"description\": \"Add something.\", \"risk\": \"write\", \"effect\": \"non_idempotent\", " TAKES_TEXT, act},
    {RV_CAP_TOOL, "append_probed",
     "{\"description\": \"Add something that can be looked up.\", \"risk\": \"write\", \"effect\": "
     "\"non_idempotent\", " TAKES_TEXT,
     act},
    {RV_CAP_PROBE, "append_probed", "{\"description\": \"Look it up.\", \"timeout_ms\": 5000}", probe},
    {RV_CAP_TOOL, "launch",
     "{\"description\": \"What a person has to allow.\", \"risk\": \"destructive\", \"effect\": "
     "\"non_idempotent\", " TAKES_TEXT,
     act},
    {RV_CAP_TOOL, "append_slowly",
     "{\"description\": \"Add something after a while.\", \"risk\": \"write\", \"effect\": \"idempotent\", " TAKES_TEXT,
     act_slowly},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "effects", .version = "1", .description = "Effects that a test can count.", .entries = entries)
