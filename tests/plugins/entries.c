/* Faults of the list of entries; CMakeLists.txt picks one by a definition. */
#include <reeve/capability.h>

#include <stddef.h>

#ifndef ENTRY_SIZE
#define ENTRY_SIZE sizeof(struct rv_cap_entry)
#endif
#ifndef KIND
#define KIND RV_CAP_TOOL
#endif
#ifndef NAME
#define NAME "entry"
#endif
#ifndef SPEC
#define SPEC "{}"
#endif
#ifndef FN
#define FN answer
#endif

__attribute__((unused)) static int answer(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{}");
}

__attribute__((unused)) static const struct rv_cap_entry entries[] = {
#ifdef ENDLESS
    [0 ... RV_CAP_MAX_ENTRIES] = {RV_CAP_TOOL, "entry", "{}", answer},
#else
    {KIND, NAME, SPEC, FN},
#ifdef TWICE
    {KIND, NAME, SPEC, FN},
#endif
#ifdef WITH_TOOL
    {RV_CAP_TOOL, NAME, "{}", FN},
#endif
    RV_CAP_END,
#endif
};

#ifdef NO_ENTRIES
#define ENTRIES NULL
#else
#define ENTRIES entries
#endif

const struct rv_cap_desc *rv_capability(void)
{
    static const struct rv_cap_desc desc = {.size = sizeof(struct rv_cap_desc),
                                            .abi = RV_CAP_ABI,
                                            .entry_size = ENTRY_SIZE,
                                            .name = DEFAULT_NAME,
                                            .entries = ENTRIES};
    return &desc;
}
