/* Tools that say by whom they were called. */
#include <reeve/capability.h>

#include <stddef.h>

static int whoami(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, call->context);
}

static int fails(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->fail(call, "ExecutionError", call->context);
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "whoami", "{\"description\":\"d\",\"risk\":\"read_only\"}", whoami},
    {RV_CAP_TOOL, "whoami_write", "{\"description\":\"d\",\"risk\":\"write\"}", whoami},
    {RV_CAP_TOOL, "whoami_fails", "{\"description\":\"d\",\"risk\":\"write\"}", fails},
    RV_CAP_END,
};

const struct rv_cap_desc *rv_capability(void)
{
    static const struct rv_cap_desc desc = {.size = sizeof(struct rv_cap_desc),
                                            .abi = RV_CAP_ABI,
                                            .entry_size = sizeof(struct rv_cap_entry),
                                            .name = DEFAULT_NAME,
                                            .entries = entries};
    return &desc;
}
