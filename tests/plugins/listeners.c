/* Subscribers: one that hears everything, one that hears of ends, and some that fail, talk nonsense, block or die, when
 * the environment says so. LISTEN_FILE is where they write. */
#include <reeve/capability.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The type of the event, after a word. */
static void note(const char *word, const struct rv_cap_call *call)
{
    const char *path = getenv("LISTEN_FILE");
    FILE *f = path ? fopen(path, "a") : NULL;
    char type[128];

    if (!f)
        return;
    rv_cap_str(rv_cap_get(call->args, "type"), type, sizeof type);
    fprintf(f, "%s %s\n", word, type);
    fclose(f);
}

static int hears(void *self, struct rv_cap_call *call)
{
    (void)self;
    note(call->name, call);
    return call->reply(call, "{}");
}

static int fails(void *self, struct rv_cap_call *call)
{
    (void)self;
    note("fails", call);
    return call->fail(call, "ExecutionError", "it does not want to hear that");
}

static int garbage(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "[not JSON");
}

static int blocks(void *self, struct rv_cap_call *call)
{
    const struct timespec moment = {.tv_nsec = 10000000};

    (void)self;
    note("blocks", call);
    while (getenv("LISTEN_BLOCKS") && !call->cancelled(call))
        nanosleep(&moment, NULL);
    return call->reply(call, "{}");
}

/* Has it the time that it declares? */
static int patient(void *self, struct rv_cap_call *call)
{
    (void)self;
    note(call->timeout_ms > 10000 && call->timeout_ms <= 20000 ? "patient" : "hurried", call);
    return call->reply(call, "{}");
}

static int dies(void *self, struct rv_cap_call *call)
{
    (void)self;
    if (getenv("LISTEN_DIES"))
        abort();
    return call->reply(call, "{}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_SUBSCRIBER, "all", "{}", hears},
    {RV_CAP_SUBSCRIBER, "ends", RV_CAP_JSON({"events" : [ "stage_completed", "done" ]}), hears},
    {RV_CAP_SUBSCRIBER, "fails", RV_CAP_JSON({"events" : ["stage_started"]}), fails},
    {RV_CAP_SUBSCRIBER, "garbage", RV_CAP_JSON({"events" : ["done"]}), garbage},
    {RV_CAP_SUBSCRIBER, "blocks", RV_CAP_JSON({"events" : [ "pipeline_started", "done" ], "timeout_ms" : 1000}),
     blocks},
    {RV_CAP_SUBSCRIBER, "patient", RV_CAP_JSON({"events" : ["done"], "timeout_ms" : 20000}), patient},
    {RV_CAP_SUBSCRIBER, "dies", RV_CAP_JSON({"events" : ["done"]}), dies},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "listeners", .version = "1.0.0", .description = "subscribers", .entries = entries)
