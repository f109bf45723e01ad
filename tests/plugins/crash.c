/* Tools that take their process with them: one always, for hosts that run plugins in a process of their own; one while
 * there is the file that REEVE_CRASH_WHILE names; one by exit(0). And one that has a process of its own do its work. */
#include <reeve/capability.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int die(void *self, struct rv_cap_call *call)
{
    (void)self;
    (void)call;
    return raise(SIGSEGV);
}

static int stumble(void *self, struct rv_cap_call *call)
{
    const char *file = getenv("REEVE_CRASH_WHILE");

    if (!file || access(file, F_OK) != 0)
        return call->reply(call, "{\"ok\": true}");
    return die(self, call);
}

static int leave(void *self, struct rv_cap_call *call)
{
    (void)self;
    (void)call;
    exit(0);
}

static int delegate(void *self, struct rv_cap_call *call)
{
    int status = 0;
    pid_t child = fork();

    (void)self;
    if (child == 0)
        exit(0);
    bool is_done = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    return is_done ? call->reply(call, "{\"ok\": true}") : call->fail(call, "ExecutionError", "its process failed");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "die", RV_CAP_JSON({"description" : "Crash."}), die},
    {RV_CAP_TOOL, "stumble", RV_CAP_JSON({"description" : "Crash, or not.", "risk" : "read_only", "effect" : "safe"}),
     stumble},
    {RV_CAP_TOOL, "leave", RV_CAP_JSON({"description" : "Exit.", "risk" : "read_only"}), leave},
    {RV_CAP_TOOL, "delegate", RV_CAP_JSON({"description" : "Work in a child.", "risk" : "read_only"}), delegate},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "crash", .version = "1", .description = "Dies when it is called.", .entries = entries)
