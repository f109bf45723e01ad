/* The run that the tests of hooks around calls begin with. */
#include "tests/unit/agent/call_hooks.h"

#include <check.h>

const struct drive_tool call_hooks_tools[CALL_HOOKS_TOOLS] = {
    {"read", RV_RISK_READ_ONLY, "{'type':'object','properties':{'n':{'type':'integer'}},'additionalProperties':false}",
     NULL, 0},
    {"put", RV_RISK_WRITE, NULL, "{'type':'object','required':['n']}", 0},
    {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
};

struct drive *call_hooks_start(const char *yaml)
{
    struct drive *d = drive_new(yaml, call_hooks_tools, CALL_HOOKS_TOOLS);

    drive_envelope(d, FIRST);
    return d;
}

const struct drive_call *call_hooks_asked(const struct drive *d, size_t n)
{
    const struct drive_call *c = drive_call_at(d, RV_EFFECT_CALL_LLM, n);
    ck_assert_msg(c != NULL, "the model was not asked %zu times", n + 1);
    return c;
}
