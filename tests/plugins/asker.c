/* Asks for services. `ask` asks for what its arguments say, as often as they say: {"times": 3, "service": "...",
 * "args": {...}}, and replies with the last answer; a failed ask is its own failure. The others each break a rule of
 * asking, or try to. */
#include <reeve/capability.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOOL(name) static int name(__attribute__((unused)) void *self, struct rv_cap_call *call)

TOOL(ask)
{
    const char *args = rv_cap_get(call->args, "args"), *answer = NULL;
    char name[128];
    char *copy = args ? strndup(args, rv_cap_size(args)) : strdup("{}");
    int64_t times = 1;

    rv_cap_str(rv_cap_get(call->args, "service"), name, sizeof name);
    rv_cap_int(rv_cap_get(call->args, "times"), &times);
    for (int64_t i = 0; i < times; i++)
        if (call->ask(call, name, copy, &answer) != 0) {
            free(copy);
            return call->fail_as_asked(call);
        }
    free(copy);
    return call->reply(call, answer);
}

/* The answer of a failed ask, as it is. */
TOOL(tell_failure)
{
    const char *answer = NULL;

    if (call->ask(call, "http.gte", "{}", &answer) == 0)
        return call->reply(call, "{}");
    return call->reply(call, answer);
}

TOOL(ask_large)
{
    size_t n = (size_t)2 << 20;
    char *text = malloc(n + 1);
    const char *answer = NULL;
    int rc;

    memset(text, ' ', n);
    text[n] = '\0';
    rc = call->ask(call, "engine.tools", text, &answer);
    free(text);
    return rc ? call->fail_as_asked(call) : call->reply(call, answer);
}

TOOL(ask_null)
{
    if (call->ask(call, NULL, NULL, NULL) == 0)
        return call->reply(call, "{}");
    return call->fail_as_asked(call);
}

TOOL(ask_after_reply)
{
    const char *answer = "";
    int rc = call->reply(call, "{\"ok\": true}");

    if (call->ask(call, "engine.tools", NULL, &answer) == 0 || !strstr(answer, "has its answer"))
        return 7;
    return rc;
}

TOOL(fail_unasked)
{
    return call->fail_as_asked(call);
}

/* Two answers are alive at once. */
TOOL(ask_two)
{
    const char *one = NULL, *two = NULL;
    char text[256];

    if (call->ask(call, "engine.health", NULL, &one) != 0 || call->ask(call, "engine.tools", NULL, &two) != 0)
        return call->fail_as_asked(call);
    snprintf(text, sizeof text, "{\"one\": %.80s, \"two\": %.80s}", one, two);
    return call->reply(call, text);
}

/* Waits to be cancelled, then asks. */
TOOL(ask_cancelled)
{
    const char *answer = NULL;

    while (!call->cancelled(call))
        usleep(1000);
    if (call->ask(call, "engine.tools", NULL, &answer) == 0)
        return call->reply(call, "{\"answered\": true}");
    return call->fail_as_asked(call);
}

/* In a process of its own: a message of the host's, written past the host. */
static void forge(const char *head, size_t body)
{
    unsigned int lengths[2] = {(unsigned int)strlen(head), (unsigned int)body};
    char *text = calloc(1, body + 1);

    memset(text, ' ', body);
    if (write(3, lengths, sizeof lengths) < 0 || write(3, head, strlen(head)) < 0 || write(3, text, body) < 0)
        _exit(1);
    free(text);
}

TOOL(forge_unknown)
{
    forge("{\"ask\": \"http.gte\"}", 2);
    pause();
    return call->reply(call, "{}");
}

TOOL(forge_undeclared)
{
    forge("{\"ask\": \"tasks.add\"}", 2);
    pause();
    return call->reply(call, "{}");
}

TOOL(forge_large)
{
    forge("{\"ask\": \"engine.tools\"}", (size_t)7 << 20);
    pause();
    return call->reply(call, "{}");
}

TOOL(forge_flood)
{
    char answer[4096];

    for (int i = 0; i < 100000; i++) {
        forge("{\"ask\": \"engine.tools\"}", 2);
        if (read(3, answer, sizeof answer) <= 0) /* one that does not read is cut off by the time of its call */
            break;
    }
    return call->reply(call, "{}");
}

TOOL(forge_after_reply)
{
    static const char reply[] = "{\"replies\": 1, \"failures\": 0, \"returned\": 0}",
                      more[] = "{\"ask\": \"engine.tools\"}";
    struct {
        unsigned int lengths[2];
        char text[sizeof reply - 1 + 2];
    } first = {{sizeof reply - 1, 2}, ""};
    char both[sizeof first + 8 + sizeof more];
    unsigned int lengths[2] = {sizeof more - 1, 0};

    memcpy(first.text, reply, sizeof reply - 1);
    memcpy(first.text + sizeof reply - 1, "{}", 2);
    memcpy(both, first.lengths, 8);
    memcpy(both + 8, first.text, sizeof first.text);
    memcpy(both + 8 + sizeof first.text, lengths, 8);
    memcpy(both + 16 + sizeof first.text, more, sizeof more - 1);
    if (write(3, both, 16 + sizeof first.text + sizeof more - 1) < 0) /* at once: it is there when the engine looks */
        _exit(1);
    pause();
    return call->reply(call, "{}");
}

#define SAFE(name)                                                                                                     \
    {                                                                                                                  \
        RV_CAP_TOOL, #name, RV_CAP_JSON({"risk" : "read_only", "services" : [ "engine.health", "engine.tools" ]}),     \
            name                                                                                                       \
    }

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "ask", RV_CAP_JSON({
         "risk" : "write",
         "effect" : "non_idempotent",
         "services" : [
             "engine.health", "engine.tools", "events.publish", "http.get", "http.request", "schedules.add",
             "schedules.cancel", "schedules.list", "tasks.add"
         ]
     }),
     ask},
    {RV_CAP_TOOL, "ask_undeclared", RV_CAP_JSON({"risk" : "read_only"}), ask},
    SAFE(tell_failure),
    SAFE(ask_large),
    SAFE(ask_null),
    SAFE(ask_after_reply),
    SAFE(fail_unasked),
    SAFE(ask_two),
    SAFE(ask_cancelled),
    SAFE(forge_unknown),
    SAFE(forge_undeclared),
    SAFE(forge_large),
    SAFE(forge_flood),
    SAFE(forge_after_reply),
    RV_CAP_END,
};

RV_CAPABILITY(.name = "asker", .version = "1", .description = "Asks the engine.", .entries = entries)
