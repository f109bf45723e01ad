/* Tools that take their time and never ask whether anybody still waits. args: {"ms": n}, at most 1000 seconds.
 * `hesitate` and `dither` are quick and may have happened: it is their probes that are slow. The one of `dither` says
 * that it will not be. `meet` waits until {"n": N} calls of it are under way at once in one process, 2 by default;
 * `gather` until two calls have come to a file. args: {"at": "path"} */
#include <reeve/capability.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void sleep_through(const struct rv_cap_call *call)
{
    struct timespec left;
    int64_t ms = 1000;

    if (rv_cap_int(rv_cap_get(call->args, "ms"), &ms) != 0 &&
        rv_cap_int(rv_cap_get(call->args, "arguments.ms"), &ms) != 0)     /* of a probe */
        rv_cap_int(rv_cap_get(call->args, "envelope.outputs.p.ms"), &ms); /* of a hook: what stage p said */
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
    char begun[512] = "", until[512] = "";

    (void)self;
    rv_cap_str(rv_cap_get(call->args, "envelope.outputs.p.begun"), begun, sizeof begun);
    rv_cap_str(rv_cap_get(call->args, "envelope.outputs.p.until"), until, sizeof until);
    if (begun[0])
        close(open(begun, O_WRONLY | O_CLOEXEC));
    if (until[0]) /* a pipe: waits until its other end is opened */
        close(open(until, O_RDONLY | O_CLOEXEC));
    else
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
    {RV_CAP_TOOL, "hesitate", RV_CAP_JSON({"risk" : "write"}), hesitate},
    {RV_CAP_PROBE, "hesitate", RV_CAP_JSON({"description" : "Takes as long."}), probe_hesitate},
    {RV_CAP_TOOL, "dither", RV_CAP_JSON({"risk" : "write"}), hesitate},
    {RV_CAP_PROBE, "dither", RV_CAP_JSON({"timeout_ms" : 1000}), probe_hesitate},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "slow", .version = "1", .description = "Takes its time.", .entries = entries)
