/* What the judges of MCP call by name on a server. `slow_compute` takes {"seconds": n} and three seconds more, so that
 * such a call is long also on a machine where every call is slow; 0 is at once. */
#include <reeve/capability.h>

#include <time.h>

#define MORE_MS 3000

static int say(struct rv_cap_call *call, const char *text)
{
    struct rv_cap_out out = RV_CAP_OUT;

    rv_cap_begin(&out, "content", '[');
    rv_cap_begin(&out, NULL, '{');
    rv_cap_put_str(&out, "type", "text");
    rv_cap_put_str(&out, "text", text);
    rv_cap_end(&out);
    rv_cap_end(&out);
    return rv_cap_reply(call, &out);
}

static int greet(void *self, struct rv_cap_call *call)
{
    char name[200], text[300];

    (void)self;
    if (rv_cap_str(rv_cap_get(call->args, "name"), name, sizeof name) < 0)
        return call->fail(call, "ValidationError", "name has to be a text");
    snprintf(text, sizeof text, "Hello, %s!", name);
    return say(call, text);
}

/* False: the call was cancelled meanwhile. */
static int wait_for(struct rv_cap_call *call, int64_t ms)
{
    const struct timespec rest = {0, 10 * 1000000};

    for (; ms > 0 && !call->cancelled(call); ms -= 10)
        nanosleep(&rest, NULL);
    return ms <= 0;
}

static int slow_compute(void *self, struct rv_cap_call *call)
{
    int64_t seconds = 0;

    (void)self;
    rv_cap_int(rv_cap_get(call->args, "seconds"), &seconds);
    if (seconds > 0 && !wait_for(call, seconds * 1000 + MORE_MS))
        return call->fail(call, "CancelledError", "the caller does not wait any more");
    return say(call, "computed");
}

static int failing_job(void *self, struct rv_cap_call *call)
{
    (void)self;
    if (!wait_for(call, MORE_MS))
        return call->fail(call, "CancelledError", "the caller does not wait any more");
    return call->fail(call, "ExecutionError", "the job failed");
}

static int schema_tool(void *self, struct rv_cap_call *call)
{
    (void)self;
    return say(call, "it fits");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_TOOL, "greet", RV_CAP_JSON({
         "description" : "Greet by name.",
         "risk" : "read_only",
         "input_schema" : {
             "type" : "object",
             "required" : ["name"],
             "properties" : {"name" : {"type" : "string", "maxLength" : 100}}
         }
     }),
     greet},
    {RV_CAP_TOOL, "test_header", RV_CAP_JSON({
         "description" : "Repeat an argument in a header.",
         "risk" : "read_only",
         "input_schema" : {
             "type" : "object",
             "properties" : {
                 "region" : {"type" : "string", "x-mcp-header" : "Region"},
                 "count" : {"type" : "integer", "x-mcp-header" : "Count"}
             }
         }
     }),
     schema_tool},
    {RV_CAP_TOOL, "slow_compute", RV_CAP_JSON({
         "description" : "Take some seconds.",
         "risk" : "read_only",
         "timeout_ms" : 120000,
         "input_schema" : {
             "type" : "object",
             "properties" :
                 {"seconds" : {"type" : "integer", "minimum" : 0, "maximum" : 100}, "label" : {"type" : "string"}}
         }
     }),
     slow_compute},
    {RV_CAP_TOOL, "failing_job", RV_CAP_JSON({"description" : "Fail after a while.", "risk" : "read_only"}),
     failing_job},
    {RV_CAP_TOOL, "json_schema_2020_12_tool", RV_CAP_JSON({
         "description" : "Take arguments whose schema uses much of the dialect.",
         "risk" : "read_only",
         "input_schema" : {
             "$schema" : "https://json-schema.org/draft/2020-12/schema",
             "type" : "object",
             "$defs" : {
                 "address" : {
                     "$anchor" : "addressDef",
                     "type" : "object",
                     "properties" : {"street" : {"type" : "string"}, "city" : {"type" : "string"}}
                 }
             },
             "properties" : {
                 "name" : {"type" : "string"},
                 "address" : {"$ref" : "#/$defs/address"},
                 "contactMethod" : {"type" : "string", "enum" : [ "phone", "email" ]},
                 "phone" : {"type" : "string"},
                 "email" : {"type" : "string"}
             },
             "allOf" : [ {"anyOf" : [ {"required" : ["phone"]}, {"required" : ["email"]} ]} ],
             "if" : {"properties" : {"contactMethod" : {"const" : "phone"}}, "required" : ["contactMethod"]},
             "then" : {"required" : ["phone"]},
             "else" : {"required" : ["email"]},
             "additionalProperties" : false
         }
     }),
     schema_tool},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "judged", .version = "1.0.0", .description = "Tools that the judges of MCP call.",
              .entries = entries)
