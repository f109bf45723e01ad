/* Takes what a process has and gives nothing back: memory until there is none, descriptors until there is none, and the
 * ways of ending a process that are no crash. Only for hosts that run plugins in a process of their own. */
#include <reeve/capability.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TOOL(name) static int name(__attribute__((unused)) void *self, struct rv_cap_call *call)
#define PIECE      ((size_t)1 << 20)
#define MOST       1024 /* pieces: a host without a limit has to survive this test too */

static void *eaten[MOST]; /* of a test: so that nothing can say it was not used */

TOOL(eat_memory)
{
    size_t n = 0;

    while (n < MOST && (eaten[n] = malloc(PIECE))) {
        memset(eaten[n], 1, PIECE);
        n++;
    }
    if (n == MOST)
        return call->reply(call, "{\"limit\": false}");
    return call->fail(call, "ExecutionError", "out of memory");
}

TOOL(eat_memory_and_die)
{
    for (size_t n = 0; n < MOST; n++) {
        eaten[n] = malloc(PIECE);
        if (!eaten[n])
            abort();
        memset(eaten[n], 1, PIECE);
    }
    return call->reply(call, "{\"limit\": false}");
}

TOOL(leak_descriptors)
{
    for (int n = 0; n < 100000; n++)
        if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
            return call->fail(call, "ExecutionError", "too many open files");
    return call->reply(call, "{\"limit\": false}");
}

/* What the system gives its process. */
TOOL(limits)
{
    struct rlimit memory, files;
    char text[128];

    if (getrlimit(RLIMIT_AS, &memory) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
        return call->fail(call, "ExecutionError", "no limits");
    snprintf(text, sizeof text, "{\"memory_of_process\": %ld, \"files_of_process\": %ld}", (long)memory.rlim_cur,
             (long)files.rlim_cur);
    return call->reply(call, text);
}

TOOL(leave)
{
    (void)call;
    exit(0);
}

TOOL(abort_now)
{
    (void)call;
    abort();
}

/* Close every descriptor, the host's socket among them, and stay. */
TOOL(close_all)
{
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    pause();
    return call->reply(call, "{}");
}

/* Write into every descriptor what the engine does not expect. */
TOOL(forge)
{
    static const char junk[] = "\377\377\377\377\377\377\377\377 this is no message";

    for (int fd = 3; fd < 64; fd++)
        if (write(fd, junk, sizeof junk) < 0)
            continue;
    pause();
    return call->reply(call, "{}");
}

TOOL(wait_for_cancel)
{
    while (!call->cancelled(call))
        usleep(1000);
    return call->reply(call, "{\"cancelled\": true}");
}

TOOL(hang)
{
    while (pause() < 0)
        continue;
    return call->reply(call, "{}");
}

TOOL(where)
{
    char text[64];

    snprintf(text, sizeof text, "{\"pid\": %ld}", (long)getpid());
    return call->reply(call, text);
}

/* Needs both of what the others eat. */
TOOL(healthy)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    void *piece = malloc(PIECE);
    int good = fd >= 0 && piece;

    free(piece);
    if (fd >= 0)
        close(fd);
    return good ? call->reply(call, "{\"ok\": true}") : call->fail(call, "ExecutionError", "nothing is left");
}

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        RV_CAP_TOOL, #name, "{}", name                                                                                 \
    }
static const struct rv_cap_entry entries[] = {
    ROW(eat_memory),
    ROW(eat_memory_and_die),
    ROW(leak_descriptors),
    ROW(limits),
    ROW(leave),
    ROW(abort_now),
    ROW(close_all),
    ROW(forge),
    ROW(wait_for_cancel),
    ROW(hang),
    ROW(where),
    ROW(healthy),
    RV_CAP_END,
};

RV_CAPABILITY(.name = "greedy", .version = "1", .description = "Gives nothing back.", .entries = entries)
