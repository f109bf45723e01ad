/* Tools that take their time and never ask whether anybody still waits. args: {"ms": n}, at most 1000 seconds, or
 * {"until": "path"}: until the other end of that pipe is opened. `hesitate`, `dither` and `falter` are quick and may
 * have happened: it is their probes that are slow. Those of `dither` and `falter` have time limits of their own, one
 * that is far and one that is near. `meet` waits until {"n": N} calls of it are under way at once in one process, 2 by
 * default; `gather` until two calls have come to a file. args: {"at": "path"} */
#include <reeve/capability.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Where the value may be in the arguments: of a tool, of a probe, of a hook (what stage p said). */
#define PLACES(name) name, "arguments." name, "envelope.outputs.p." name

static void sleep_through(const struct rv_cap_call *call)
{
    static const char *const pipes[] = {PLACES("until")}, *const numbers[] = {PLACES("ms")};
    char until[512] = "";
    struct timespec left;
    int64_t ms = 1000;

    for (size_t i = 0; i < sizeof pipes / sizeof *pipes && !until[0]; i++)
        rv_cap_str(rv_cap_get(call->args, pipes[i]), until, sizeof until);
    if (until[0]) {
        close(open(until, O_RDONLY | O_CLOEXEC));
        return;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (rv_cap_int(rv_cap_get(call->args, numbers[i]), &ms) == 0)
            break;
    if (ms < 0 || ms > 1000000)
        ms = 1000000;
    left = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
}

static int doze(void *self, struct rv_cap_call *call)
{
    (void)self;
    sleep_through(call);
    return call->reply(call, "{\"slept\": true}");
}

static int meet(void *self, struct rv_cap_call *call)
{
    static atomic_int n_there;
    const struct timespec rest = {0, 1000000};
    int64_t n = 2;

    (void)self;
    rv_cap_int(rv_cap_get(call->args, "n"), &n);
    atomic_fetch_add(&n_there, 1);
    while (atomic_load(&n_there) < n && !call->cancelled(call))
        nanosleep(&rest, NULL);
    return call->reply(call, "{\"met\": true}");
}

static int gather(void *self, struct rv_cap_call *call)
{
    const struct timespec rest = {0, 1000000};
    struct stat there = {.st_size = 2};
    char path[512];

    (void)self;
    rv_cap_str(rv_cap_get(call->args, "at"), path, sizeof path);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1)
        return call->fail(call, "ExecutionError", "there is no such place");
    while (fstat(fd, &there) == 0 && there.st_size < 2 && !call->cancelled(call))
        nanosleep(&rest, NULL);
    close(fd);
    return call->reply(call, "{\"met\": true}");
}

/* envelope.outputs.p.begun: a pipe that it opens when it begins. */
static int doze_hook(void *self, struct rv_cap_call *call)
{
    char begun[512] = "";

    (void)self;
    rv_cap_str(rv_cap_get(call->args, "envelope.outputs.p.begun"), begun, sizeof begun);
    if (begun[0])
        close(open(begun, O_WRONLY | O_CLOEXEC));
    sleep_through(call);
    return call->reply(call, "{}");
}

static int hesitate(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{\"from\": \"tool\"}");
}

static int probe_hesitate(void *self, struct rv_cap_call *call)
{
    (void)self;
    sleep_through(call);
    return call->reply(call, "{\"happened\": false}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "doze", RV_CAP_JSON({"description" : "Sleep and ignore every deadline.", "risk" : "read_only"}),
     doze},
    {RV_CAP_TOOL, "meet", RV_CAP_JSON({"risk" : "read_only"}), meet},
    {RV_CAP_TOOL, "gather", RV_CAP_JSON({"risk" : "read_only"}), gather},
    {RV_CAP_HOOK, "doze", RV_CAP_JSON({"description" : "The same as a hook."}), doze_hook},
    {RV_CAP_MOCK, "hasty", RV_CAP_JSON({"timeout_ms" : 50}), doze_hook},
    {RV_CAP_TOOL, "hesitate", RV_CAP_JSON({"risk" : "write"}), hesitate},
    {RV_CAP_PROBE, "hesitate", RV_CAP_JSON({"description" : "Takes as long."}), probe_hesitate},
    {RV_CAP_TOOL, "dither", RV_CAP_JSON({"risk" : "write"}), hesitate},
    {RV_CAP_PROBE, "dither", RV_CAP_JSON({"timeout_ms" : 600000}), probe_hesitate},
    {RV_CAP_TOOL, "falter", RV_CAP_JSON({"risk" : "write"}), hesitate},
    {RV_CAP_PROBE, "falter", RV_CAP_JSON({"timeout_ms" : 50}), probe_hesitate},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "slow", .version = "1", .description = "Takes its time.", .entries = entries)
