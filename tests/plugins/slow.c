/* Tools that take their time and never ask whether anybody still waits. args: {"ms": n}, at most ten seconds.
 * `hesitate` and `dither` are quick and may have happened: it is their probes that are slow. The one of `dither` says
 * that it will not be. */
#include <reeve/capability.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void sleep_through(const struct rv_cap_call *call)
{
    const char *at = strstr(call->args, "\"ms\":");
    long ms = at ? strtol(at + 5, NULL, 10) : 1000;
    struct timespec left;

    if (ms < 0 || ms > 10000)
        ms = 10000;
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

static int doze_hook(void *self, struct rv_cap_call *call)
{
    (void)self;
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
    {RV_CAP_HOOK, "doze", RV_CAP_JSON({"description" : "The same as a hook."}), doze_hook},
    {RV_CAP_TOOL, "hesitate", RV_CAP_JSON({"risk" : "write"}), hesitate},
    {RV_CAP_PROBE, "hesitate", RV_CAP_JSON({"description" : "Takes as long."}), probe_hesitate},
    {RV_CAP_TOOL, "dither", RV_CAP_JSON({"risk" : "write"}), hesitate},
    {RV_CAP_PROBE, "dither", RV_CAP_JSON({"timeout_ms" : 50}), probe_hesitate},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "slow", .version = "1", .description = "Takes its time.", .entries = entries)
