/* A capability that is built with each header that was published: it uses what its header has, in the way of that time,
 * and looks whether the host still has it in its place. */
#include <reeve/capability.h>

#include <stdio.h>
#include <string.h>

struct state {
    int64_t begin;
};

static int open_it(const struct rv_cap_host *host, const char *config, void **self, char *error, uint32_t error_size)
{
    static struct state state;

    if (host->size < sizeof *host || host->abi != RV_CAP_ABI || !host->engine_version[0] || !host->base_dir[0] ||
        strcmp(config, "{}") != 0) {
        snprintf(error, error_size, "the host is not as it was");
        return 1;
    }
    state.begin = 41;
    *self = &state;
    return 0;
}

static int answer(void *self, struct rv_cap_call *call)
{
    struct state *s = self;
    char text[300];

    if (call->size < sizeof *call || ++s->begin != 42 || strcmp(call->name, "answer") != 0 ||
        strcmp(call->stage, "work") != 0 || !call->run_id[0] || call->idempotency_key[0] == 0 || call->timeout_ms <= 0)
        return call->fail(call, "ExecutionError", "the call is not as it was");
    call->log(call, 1, "asked");
    if (call->cancelled(call))
        return call->fail(call, "ExecutionError", "it is cancelled");
#ifdef RV_CAP_MAX_ASKS
    const char *tools;
    if (call->ask(call, "engine.tools", "{}", &tools) != 0)
        return call->fail_as_asked(call);
    if (!strstr(tools, "\"answer\""))
        return call->fail(call, "ExecutionError", "the service is not as it was");
#endif
#ifdef RV_CAP_MAX_ATTACHMENTS
    uint32_t n = 7;
    if (call->attachments(call, &n) || n != 0)
        return call->fail(call, "ExecutionError", "there are attachments");
#endif
    snprintf(text, sizeof text, "{\"echo\": %.200s, \"begin\": %d}", call->args, (int)s->begin);
    s->begin--;
    return call->reply(call, text);
}

static int refuse(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->fail(call, "NotFoundError", "no leeks");
}

static int close_output(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{\"output\": {\"hooked\": true}}");
}

static const struct rv_cap_entry entries[] = {
#ifdef RV_CAP_MAX_ASKS
    {RV_CAP_TOOL, "answer", RV_CAP_JSON({"risk" : "read_only", "services" : ["engine.tools"]}), answer},
#else
    {RV_CAP_TOOL, "answer", RV_CAP_JSON({"risk" : "read_only"}), answer},
#endif
    {RV_CAP_TOOL, "refuse", RV_CAP_JSON({"risk" : "read_only"}), refuse},
    {RV_CAP_HOOK, "close_output", RV_CAP_JSON({"sees" : []}), close_output},
    {RV_CAP_PROMPT, "words", RV_CAP_JSON({"text" : "Hello {{raw_input}}"}), NULL},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "past", .version = "1.0.0", .description = "Of another time.", .entries = entries,
              .open = open_it)
