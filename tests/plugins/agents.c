/* Agents between entries of other kinds: what is called must be found at its place all the same. */
#include <reeve/capability.h>

static int first(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{\"tool\": \"first\"}");
}

static int last(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{\"tool\": \"last\"}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_AGENT, "plain_agent", "type: object\nname: plain-agent\ndescription: |\n  You answer.\n\n  Briefly.\n",
     NULL},
    {RV_CAP_TOOL, "first", "{}", first},
    {RV_CAP_AGENT, "as_json",
     "{\"type\": \"object\", \"name\": \"as_json\", \"version\": \"2.1.0\", \"short_description\": \"Extracts.\","
     " \"description\": \"You extract.\", \"properties\": {\"title\": {\"type\": \"string\"}},"
     " \"structured_output\": true, \"chained_tool\": \"first\", \"model\": \"openai:gpt-4.1-mini\","
     " \"tools\": [{\"name\": \"first\"}, {\"name\": \"last\"}]}",
     NULL},
    {RV_CAP_PROMPT, "ask", "{\"text\": \"Ask {{raw_input}}\"}", NULL},
    {RV_CAP_TOOL, "last", "{}", last},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "agents", .version = "1", .description = "Agents between other entries.", .entries = entries)
