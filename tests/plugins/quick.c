/* Entries that say they never block: `where` tells on which thread it runs, `keep_still` is a hook that has nothing to
 * say, and `sit` breaks its word: it sleeps. args: {"ms": n}. */
#include <reeve/capability.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int where(void *self, struct rv_cap_call *call)
{
    char text[64];

    (void)self;
    snprintf(text, sizeof text, "{\"thread\": \"%llu\"}", (unsigned long long)pthread_self());
    return call->reply(call, text);
}

static int keep_still(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{}");
}

static int sit(void *self, struct rv_cap_call *call)
{
    struct timespec left;
    int64_t ms = 100;

    (void)self;
    rv_cap_int(rv_cap_get(call->args, "ms"), &ms);
    left = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
    return call->reply(call, "{}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "where", RV_CAP_JSON({"risk" : "read_only", "blocking" : false}), where},
    {RV_CAP_TOOL, "elsewhere", RV_CAP_JSON({"risk" : "read_only", "blocking" : true}), where},
    {RV_CAP_TOOL, "sit", RV_CAP_JSON({"risk" : "read_only", "blocking" : false}), sit},
    {RV_CAP_HOOK, "keep_still", RV_CAP_JSON({"blocking" : false}), keep_still},
    {RV_CAP_HOOK, "keep_still_aside", RV_CAP_JSON({"description" : "The same on a worker."}), keep_still},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "quick", .version = "1", .description = "Answers at once.", .entries = entries)
