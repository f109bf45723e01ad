/* Tools of every effect class. Each leaves what it does in one file, the outside world of the crash tests, as one line
 * "tool<TAB>key<TAB>what": so whoever looks there can tell what really happened, how often, and under which key. */
#include <reeve/capability.h>

#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_TEXT 200
#define MAX_LINE 1024
#ifndef APPEND_LINE_IS /* what it says of itself; a test of the tests lets it lie */
#define APPEND_LINE_IS "non_idempotent"
#endif
#define MAX_WAIT_MS 600000 /* what waits longer hangs */
#define SLICE_MS    10

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

/* Until the file WORLD.go is there, or the call, if there is one, is cancelled: that is asked for now and then. */
static void wait_for_gate(const struct rv_cap_call *call)
{
    char gate[4096], folder[4096], events[4096];
    struct pollfd p = {.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .events = POLLIN};

    snprintf(gate, sizeof gate, "%s.go", world_path());
    snprintf(folder, sizeof folder, "%s", gate);
    if (p.fd < 0 || inotify_add_watch(p.fd, dirname(folder), IN_CREATE | IN_MOVED_TO) < 0)
        abort();
    for (int slices = 0;
         slices < MAX_WAIT_MS / SLICE_MS && access(gate, F_OK) != 0 && !(call && call->cancelled(call));) {
        slices += poll(&p, 1, SLICE_MS) == 0;
        while (read(p.fd, events, sizeof events) > 0)
            continue;
    }
    close(p.fd);
}

/* The same, but first it begins and waits. */
static int wait_and_act(void *self, struct rv_cap_call *call)
{
    leave_mark(call, "begins");
    wait_for_gate(call);
    return act(self, call);
}

static void end_this_thread(int number)
{
    (void)number;
    syscall(SYS_exit, 0);
}

/* What happens late, when its process counts as killed. text "thread": the first thread of the process ends, as that of
 * a killed process does while another thread is stuck in a system call. "child": the code of the call goes on in a
 * child that is not killed with the process. */
static int outlive(void *self, struct rv_cap_call *call)
{
    char text[MAX_TEXT + 1], gate[4096];

    text_of(call->args, text);
    if (strcmp(text, "thread") == 0) {
        const struct sigaction end = {.sa_handler = end_this_thread};
        sigaction(SIGUSR1, &end, NULL);
        syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);
    } else if (fork() != 0) {
        for (;;)
            pause();
    }
    snprintf(gate, sizeof gate, "%s.began", world_path()); /* beside it: the probe takes a line for the effect */
    close(open(gate, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    wait_for_gate(NULL);
    act(self, call);
    return kill(getpid(), SIGKILL);
}

static int is_done(const char *tool, const char *key)
{
    char line[MAX_LINE];
    int n = snprintf(line, sizeof line, "%s\t%s\t", tool, key), found = 0;
    int fd = open(world_path(), O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    char *world = malloc((size_t)size + 1);
    ssize_t got = fd < 0 || !world ? -1 : pread(fd, world, (size_t)size, 0);

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
    "\"properties\": {\"text\": {\"type\": \"string\", \"maxLength\": 200}}}}"

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "read_counter",
     "{\"description\": \"Look at something.\", \"risk\": \"read_only\", \"effect\": \"safe\", " TAKES_TEXT, act},
    {RV_CAP_TOOL, "set_flag",
     "{\"description\": \"Set something.\", \"risk\": \"write\", \"effect\": \"idempotent\", \"output_schema\": "
     "{\"type\": \"object\", \"x-artifact-type\": \"flag\"}, " TAKES_TEXT,
     act},
    {RV_CAP_TOOL, "append_line",
     "{\"description\": \"Add something.\", \"risk\": \"write\", \"effect\": \"" APPEND_LINE_IS "\", " TAKES_TEXT, act},
    {RV_CAP_TOOL, "append_probed",
     "{\"description\": \"Add something that can be looked up.\", \"risk\": \"write\", \"effect\": "
     "\"non_idempotent\", " TAKES_TEXT,
     act},
    {RV_CAP_PROBE, "append_probed", "{\"description\": \"Look it up.\", \"timeout_ms\": 5000}", probe},
    {RV_CAP_TOOL, "launch",
     "{\"description\": \"What a person has to allow.\", \"risk\": \"destructive\", \"effect\": "
     "\"non_idempotent\", " TAKES_TEXT,
     act},
    {RV_CAP_TOOL, "wait_and_set",
     "{\"description\": \"Set something when a file is there.\", \"risk\": \"write\", \"effect\": "
     "\"idempotent\", " TAKES_TEXT,
     wait_and_act},
    {RV_CAP_TOOL, "wait_and_append",
     "{\"description\": \"Add something when a file is there.\", \"risk\": \"write\", \"effect\": "
     "\"non_idempotent\", " TAKES_TEXT,
     wait_and_act},
    {RV_CAP_TOOL, "outlive",
     "{\"description\": \"Add something after the process has ended.\", \"risk\": \"write\", \"effect\": "
     "\"non_idempotent\", " TAKES_TEXT,
     outlive},
    {RV_CAP_PROBE, "outlive", "{\"description\": \"Look it up.\", \"timeout_ms\": 5000}", probe},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "effects", .version = "1", .description = "Effects that a test can count.", .entries = entries)
