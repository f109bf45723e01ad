/* Uses a function that is nowhere. */
#include <reeve/capability.h>

int function_of_nobody(void);

static int run(void *self, struct rv_cap_call *call)
{
    (void)self;
    return function_of_nobody() ? 1 : call->reply(call, "{}");
}

static const struct rv_cap_entry entries[] = {{RV_CAP_TOOL, "entry", "{}", run}, RV_CAP_END};

RV_CAPABILITY(.name = DEFAULT_NAME, .entries = entries)
