/* Tools with a probe each: the three right answers, and wrong ones. `die` and `hang` are only for hosts that run
 * plugins in a process of their own. */
#include <reeve/capability.h>

#include <stdlib.h>
#include <unistd.h>

static int tool(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{\"from\": \"tool\"}");
}

#define PROBE(name) static int name(__attribute__((unused)) void *self, struct rv_cap_call *call)
#define SAYS(name, text)                                                                                               \
    PROBE(name)                                                                                                        \
    {                                                                                                                  \
        return call->reply(call, text);                                                                                \
    }

SAYS(happened, "{\"happened\": true, \"result\": {\"line\": 7}}")
SAYS(did_not, "{\"happened\": false}")
SAYS(can_not_tell, "{}")
SAYS(empty_result, "{\"happened\": true, \"result\": {}}")
SAYS(no_result, "{\"happened\": true}")
SAYS(null_result, "{\"happened\": true, \"result\": null}")
SAYS(list_result, "{\"happened\": true, \"result\": []}")
SAYS(result_of_nothing, "{\"happened\": false, \"result\": {}}")
SAYS(result_alone, "{\"result\": {}}")
SAYS(word, "{\"happened\": \"yes\"}")
SAYS(null_word, "{\"happened\": null}")
SAYS(other_member, "{\"hapened\": true}")
SAYS(garbage, "{\"happened\": tru")
SAYS(not_object, "[true]")

PROBE(silent)
{
    (void)call;
    return 0;
}

PROBE(fails)
{
    return call->fail(call, "ExecutionError", "the log can not be read");
}

/* What it was asked, and that it is asked by the name of the tool. */
PROBE(echoes)
{
    char text[1024];

    snprintf(text, sizeof text, "{\"happened\": true, \"result\": {\"name\": \"%s\", \"key\": \"%s\", \"args\": %s}}",
             call->name, call->idempotency_key, call->args);
    return call->reply(call, text);
}

PROBE(die)
{
    (void)call;
    abort();
}

PROBE(hang)
{
    while (pause() < 0)
        continue;
    return call->reply(call, "{}");
}

/* Probes may stand before and after their tools. */
#define ROW(name)                                                                                                      \
    {RV_CAP_PROBE, #name, "{\"timeout_ms\": 500}", name},                                                              \
    {                                                                                                                  \
        RV_CAP_TOOL, #name, "{}", tool                                                                                 \
    }
static const struct rv_cap_entry entries[] = {
    ROW(happened),
    ROW(did_not),
    ROW(can_not_tell),
    ROW(empty_result),
    ROW(no_result),
    ROW(null_result),
    ROW(list_result),
    ROW(result_of_nothing),
    ROW(result_alone),
    ROW(word),
    ROW(null_word),
    ROW(other_member),
    ROW(garbage),
    ROW(not_object),
    ROW(silent),
    ROW(fails),
    ROW(die),
    ROW(hang),
    {RV_CAP_TOOL, "echoes", "{}", tool},
    {RV_CAP_PROBE, "echoes", "{\"description\": \"Says what it was asked.\"}", echoes},
    {RV_CAP_TOOL, "unprobed", "{}", tool},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "probes", .version = "1", .description = "Probes of every kind.", .entries = entries)
