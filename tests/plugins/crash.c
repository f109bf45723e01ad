/* A tool that takes its process with it. Only for hosts that run plugins in a process of their own. */
#include <reeve/capability.h>

#include <signal.h>

static int die(void *self, struct rv_cap_call *call)
{
    (void)self;
    (void)call;
    return raise(SIGSEGV);
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "die", RV_CAP_JSON({"description" : "Crash."}), die},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "crash", .version = "1", .description = "Dies when it is called.", .entries = entries)
