/* Tools that break one rule of a call each, and declare that they may be called at any time; CMakeLists.txt picks one.
 */
#include <reeve/capability.h>

#include <stdlib.h>
#include <time.h>

#define UNUSED __attribute__((unused)) static

UNUSED int twice(struct rv_cap_call *call)
{
    call->reply(call, "{}");
    return call->reply(call, "{}");
}

UNUSED int both(struct rv_cap_call *call)
{
    call->reply(call, "{}");
    return call->fail(call, "ExecutionError", "after all");
}

UNUSED int silent(struct rv_cap_call *call)
{
    (void)call;
    return 0;
}

UNUSED int mute(struct rv_cap_call *call)
{
    (void)call;
    return 7;
}

UNUSED int wordless(struct rv_cap_call *call)
{
    return call->fail(call, "ExecutionError", "");
}

UNUSED int garbage(struct rv_cap_call *call)
{
    return call->reply(call, "{\"a\": ");
}

UNUSED int list(struct rv_cap_call *call)
{
    return call->reply(call, "[]");
}

UNUSED int latin(struct rv_cap_call *call)
{
    return call->reply(call, "{\"a\": \"\xe9\"}");
}

UNUSED int other(struct rv_cap_call *call)
{
    return call->reply(call, "{\"text\": 7}");
}

UNUSED int dies(struct rv_cap_call *call)
{
    (void)call;
    abort();
}

UNUSED int leaves(struct rv_cap_call *call)
{
    (void)call;
    exit(0);
}

UNUSED int writes_to_null(struct rv_cap_call *call)
{
    volatile char *nowhere = (volatile char *)(uintptr_t)rv_cap_size(NULL);

    *nowhere = 1;
    return call->reply(call, "{}");
}

UNUSED int hangs(struct rv_cap_call *call)
{
    struct timespec day = {86400, 0};

    nanosleep(&day, NULL);
    return call->reply(call, "{}");
}

static int run(void *self, struct rv_cap_call *call)
{
    (void)self;
    return HOW(call);
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "entry",
     "{\"description\": \"Breaks a rule.\", \"risk\": \"read_only\", \"input_schema\": {\"type\": \"object\", "
     "\"additionalProperties\": false, \"required\": [\"n\"], \"properties\": {\"n\": {\"type\": \"integer\", "
     "\"minimum\": 3}}}, \"output_schema\": {\"type\": \"object\", \"properties\": {\"text\": {\"type\": "
     "\"string\"}}}}",
     run},
    RV_CAP_END,
};

RV_CAPABILITY(.name = DEFAULT_NAME, .version = "1", .description = "Breaks a rule.", .entries = entries)
