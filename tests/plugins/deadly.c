/* Ends or keeps its process before it takes calls; CMakeLists.txt picks where. Only for hosts that run plugins in a
 * process of their own. */
#include <reeve/capability.h>

#include <stdlib.h>

static int answer(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{}");
}

__attribute__((unused)) static int die(const struct rv_cap_host *host, const char *config, void **self, char *error,
                                       uint32_t error_size)
{
    (void)host;
    (void)config;
    (void)self;
    (void)error;
    (void)error_size;
    abort();
}

#ifdef IN_CONSTRUCTOR
__attribute__((constructor)) static void at_once(void)
{
    abort();
}
#endif

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "answer", "{}", answer},
    RV_CAP_END,
};

RV_CAPABILITY(.name = DEFAULT_NAME, .version = "1", .description = "Dies early.", .entries = entries
#ifndef IN_CONSTRUCTOR
              ,
              .open = die
#endif
)
