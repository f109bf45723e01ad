/* A subscriber of an event that there is not. */
#include <reeve/capability.h>

static int hears(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_SUBSCRIBER, "deaf", RV_CAP_JSON({"events" : ["stage_complete"]}), hears},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "deaf", .version = "1.0.0", .description = "a wrong name", .entries = entries)
