/* hello: the smallest complete capability. One tool, one hook, one mock, and the table that names them. */
#include <reeve/capability.h>

#define MAX_NAME_BYTES 400 /* 100 characters, as the schema below says */

/* The host has checked args against input_schema. */
static int greet(void *self, struct rv_cap_call *call)
{
    struct rv_cap_out out = RV_CAP_OUT;
    char name[MAX_NAME_BYTES + 1];

    (void)self;
    if (rv_cap_str(rv_cap_get(call->args, "name"), name, sizeof name) < 0)
        return call->fail(call, "ValidationError", "name has to be a text");
    rv_cap_put_strf(&out, "text", "Hello, %s!", name);
    return rv_cap_reply(call, &out);
}

/* A post_process hook replaces the output of its stage. */
static int greet_user(void *self, struct rv_cap_call *call)
{
    (void)self;
    if (call->cancelled(call)) /* the place to stop early in long work */
        return call->fail(call, "CancelledError", "the caller does not wait any more");
    return call->reply(call, "{\"output\": {\"final_response\": \"Hello!\"}}");
}

static int canned(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{\"final_response\": \"Hello from a mock.\"}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "greet", RV_CAP_JSON({
         "description" : "Greet a person by name.",
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
