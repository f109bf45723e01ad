/* @NAME@: a capability for reeve. One tool, two hooks, and the table that names them.
 *
 * Only <reeve/capability.h> is needed. JSON text comes in and goes out; a capability that does more than this one reads
 * it with a JSON library. RV_CAP_PROVIDER in the header is for capabilities that answer for a model. */
#include <reeve/capability.h>

#include <string.h>

#define MAX_NAME 1000 /* bytes of a name as JSON text */

/* The string under "key": its JSON text without the quotes, still escaped, so it can be written back as it is. A key
 * cannot be mistaken for text inside a string: quotes in there are escaped. Returns the length, or -1. */
static int json_text(const char *json, const char *key, const char **text)
{
    char pattern[64];
    const char *p, *from;

    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    p = strstr(json, pattern);
    if (!p)
        return -1;
    p += strlen(pattern);
    p += strspn(p, " \t\r\n");
    if (*p != '"')
        return -1;
    for (from = ++p; *p && *p != '"'; p++)
        if (*p == '\\' && *++p == '\0')
            return -1;
    if (*p != '"' || p - from > MAX_NAME)
        return -1;
    *text = from;
    return (int)(p - from);
}

/* The tool. The host has checked args against input_schema. */
static int greet(void *self, struct rv_cap_call *call)
{
    const char *name;
    char reply[MAX_NAME + 64];
    int len = json_text(call->args, "name", &name);

    (void)self;
    if (len <= 0)
        return call->fail(call, "ValidationError", "there is nobody to greet");
    snprintf(reply, sizeof reply, "{\"text\": \"Hello, %.*s!\"}", len, name);
    return call->reply(call, reply);
}

/* A post_process hook replaces the output of its stage. This one plans one step for the tool stage that follows. */
static int plan(void *self, struct rv_cap_call *call)
{
    const char *name;
    char reply[MAX_NAME + 128];
    int len = json_text(call->args, "raw_input", &name);

    (void)self;
    if (len < 0)
        return call->fail(call, "ValidationError", "the input is too long to be a name");
    snprintf(reply, sizeof reply,
             "{\"output\": {\"steps\": [{\"tool\": \"@IDENT@_greet\", \"parameters\": {\"name\": \"%.*s\"}}]}}", len,
             name);
    return call->reply(call, reply);
}

/* Makes the answer of the run from what the tool said. */
static int answer(void *self, struct rv_cap_call *call)
{
    const char *text;
    char reply[MAX_NAME + 128];
    int len = json_text(call->args, "text", &text);

    (void)self;
    if (len < 0)
        return call->reply(call, "{\"output\": {\"final_response\": \"I do not know whom to greet.\"}}");
    snprintf(reply, sizeof reply, "{\"output\": {\"final_response\": \"%.*s\"}}", len, text);
    return call->reply(call, reply);
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "@IDENT@_greet", RV_CAP_JSON({
         "description" : "Greet somebody by name.",
         "risk" : "read_only",
         "category" : "standalone",
         "input_schema" : {
             "type" : "object",
             "required" : ["name"],
             "additionalProperties" : false,
             "properties" : {"name" : {"type" : "string", "maxLength" : 80}}
         },
         "output_schema" : {"type" : "object", "required" : ["text"], "properties" : {"text" : {"type" : "string"}}}
     }),
     greet},
    {RV_CAP_HOOK, "plan", RV_CAP_JSON({"description" : "Plan a greeting for the input.", "sees" : ["raw_input"]}),
     plan},
    {RV_CAP_HOOK, "answer", RV_CAP_JSON({"description" : "Answer with the greeting.", "sees" : ["outputs.greet"]}),
     answer},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "@NAME@", .version = "0.1.0", .description = "Greets by name.", .entries = entries)
