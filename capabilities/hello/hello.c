/* hello: the smallest complete capability. One tool, one hook, one mock, and the table that names them. */
#include <reeve/capability.h>

#include <string.h>

#define MAX_NAME       100  /* characters, as the schema below says */
#define MAX_NAME_BYTES 1200 /* each is at most twelve bytes of JSON text */

/* The host has checked args against input_schema: {"name": "..."} with a string of at most MAX_NAME characters. The
 * name is JSON text already, quotes included, so it goes back as it came. Larger tools read args with a JSON library.
 */
static int greet(void *self, struct rv_cap_call *call)
{
    const char *colon = strchr(call->args, ':'), *from = colon ? strchr(colon, '"') : NULL, *to = from;
    char reply[MAX_NAME_BYTES + 64];

    (void)self;
    while (to && *++to && *to != '"')
        if (*to == '\\' && *++to == '\0')
            break;
    if (!to || *to != '"')
        return call->fail(call, "ValidationError", "name is missing");
    if (to - from - 1 > MAX_NAME_BYTES)
        return rv_cap_failf(call, "ValidationError", "name is longer than %d characters", MAX_NAME);
    snprintf(reply, sizeof reply, "{\"text\": \"Hello, %.*s!\"}", (int)(to - from - 1), from + 1);
    return call->reply(call, reply);
}

/* A post_process hook replaces the output of its stage. */
static int greet_user(void *self, struct rv_cap_call *call)
{
    (void)self;
    if (call->cancelled(call)) /* the place to stop early in long work */
        return call->fail(call, "CancelledError", "nobody waits any more");
    return call->reply(call, "{\"output\": {\"final_response\": \"Hello!\"}}");
}

static int canned(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{\"final_response\": \"Hello from a mock.\"}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "greet", RV_CAP_JSON({
         "description" : "Greet somebody by name.",
         "risk" : "read_only",
         "category" : "standalone",
         "input_schema" : {
             "type" : "object",
             "required" : ["name"],
             "additionalProperties" : false,
             "properties" : {"name" : {"type" : "string", "minLength" : 1, "maxLength" : 100}}
         },
         "output_schema" : {"type" : "object", "required" : ["text"], "properties" : {"text" : {"type" : "string"}}}
     }),
     greet},
    {RV_CAP_HOOK, "greet_user", RV_CAP_JSON({"description" : "Answer any input with a greeting.", "sees" : []}),
     greet_user},
    {RV_CAP_MOCK, "canned", RV_CAP_JSON({"description" : "A stand-in for a stage that answers.", "sees" : []}), canned},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "hello", .version = "1.0.0", .description = "A greeting, and a template for capabilities.",
              .entries = entries)
