/* @NAME@: a capability for reeve. One tool, two hooks, and the table that names them.
 *
 * It needs only <reeve/capability.h>: rv_cap_get() and rv_cap_str() read JSON, rv_cap_put_...() write it. For a
 * capability that answers instead of a model, see RV_CAP_PROVIDER in that header. */
#include <reeve/capability.h>

#define MAX_NAME 320 /* bytes of a name: 80 characters, as the schema below says */

/* The tool. The host has checked args against input_schema. */
static int greet(void *self, struct rv_cap_call *call)
{
    struct rv_cap_out out = RV_CAP_OUT;
    char name[MAX_NAME + 1];

    (void)self;
    if (rv_cap_str(rv_cap_get(call->args, "name"), name, sizeof name) <= 0)
        return call->fail(call, "ValidationError", "the name is empty");
    rv_cap_put_strf(&out, "text", "Hello, %s!", name);
    return rv_cap_reply(call, &out);
}

/* A post_process hook replaces the output of its stage. This one plans one step for the tool stage that follows. */
static int plan(void *self, struct rv_cap_call *call)
{
    struct rv_cap_out out = RV_CAP_OUT;

    (void)self;
    rv_cap_begin(&out, "output", '{');
    rv_cap_begin(&out, "steps", '[');
    rv_cap_begin(&out, NULL, '{');
    rv_cap_put_str(&out, "tool", "@IDENT@_greet");
    rv_cap_begin(&out, "parameters", '{');
    rv_cap_put_json(&out, "name", rv_cap_get(call->args, "envelope.raw_input"));
    return rv_cap_reply(call, &out); /* closes the open objects and arrays */
}

/* Makes the answer of the run from the result of the tool. */
static int answer(void *self, struct rv_cap_call *call)
{
    const char *text = rv_cap_get(call->args, "envelope.outputs.greet.results.0.data.text");
    struct rv_cap_out out = RV_CAP_OUT;

    (void)self;
    rv_cap_begin(&out, "output", '{');
    rv_cap_put_json(&out, "final_response", text ? text : "\"Please give a name.\"");
    return rv_cap_reply(call, &out);
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "@IDENT@_greet", RV_CAP_JSON({
         "description" : "Greet a person by name.",
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
