/* Keys of an agent document, told by a chat of three messages: every request of a model, every call of a tool, the
 * words that people are shown, and the rows that are kept. A document that is refused tells why. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store.h"
#include "tests/unit/chat/world.h"
#include "tests/unit/keys/rows.h"

#define SESSION "5a0f7c1e-0000-4000-8000-000000000001"

static const char usual_script[] =
    "models:\n  parent: [{text: lead, usage: {input_tokens: 60, output_tokens: 60}}]\n  child: [{text: help}]\n"
    "  desk: [{json: {agent: parent}}]\n  front: [{json: {agent: parent}}]\n";
static const char child[] = "type: object\nname: child\ndescription: You help.\n";
static const char desk[] = "type: object\nname: desk\ndescription: You route.\nstructured_output: true\n"
                           "properties: {agent: {type: string}}\nrouting: {agents: [parent, child], fallback: child}\n";

static void on_effect(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    rv_buf *told = self;

    (void)all;
    if (e->kind == RV_EFFECT_EMIT && e->emit == RV_EMIT_ACTION)
        rv_buf_puts(told, "action\n");
    if (e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL)
        rv_buf_printf(told, "call %s %s\n", e->name, e->request);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    rv_buf *told = self;

    (void)from;
    if (d->kind == RV_LLM_DELTA_TEXT)
        rv_buf_printf(told, "shown %.*s\n", RV_STR_ARG(d->text));
    return true;
}

/* What stands between `head` and `end` is not the same twice. */
static void mask(char *text, const char *head, const char *end)
{
    while ((text = strstr(text, head))) {
        text += strlen(head);
        memset(text, 'T', strcspn(text, end));
    }
}

static int tell_summariser(void *self, json_object *row, rv_err **err)
{
    const char *name = "";

    (void)err;
    if (rv_json_get_text(rv_json_get_obj(row, "metadata"), "summariser", &name))
        rv_buf_printf(self, "summary by %s\n", name);
    return 0;
}

static void tell_summarisers(struct world *w, rv_buf *told)
{
    const struct rv_store_scope alice = {NULL, "alice"};
    const struct rv_entity_filter all = {.limit = 100};

    ck_assert_int_eq(rv_store_find_entities(w->store, &alice, &(const struct rv_entities_of){"moments", &all},
                                            tell_summariser, told, NULL),
                     0);
}

static char *tell(const struct key_row *row, const char *variant)
{
    static const char *const said[] = {"the first message is long enough to be cut off where there is little room",
                                       "second", "third"};
    char *text = key_text(row->text, variant);
    const char *const files[] = {"parent.yaml", text, "child.yaml", child, "desk.yaml", desk, NULL};
    rv_buf told = RV_BUF_INIT((size_t)16 << 20);
    struct rv_chat_opts watcher = {.on_effect = on_effect, .on_delta = on_delta, .self = &told};
    struct rv_chat_turn turn;
    struct world w;
    rv_err *err = NULL;

    world_init(&w, row->state ? row->state : usual_script, files);
    world_chat(&w, "child", SESSION, "alice");
    w.opts.agent = row->with ? row->with : "parent";
    w.opts.on_effect = watcher.on_effect;
    w.opts.on_delta = watcher.on_delta;
    w.opts.self = watcher.self;
    w.opts.on_event = NULL;
    w.opts.on_piece = NULL;
    json_object *tools = NULL; /* that a client brings along */
    if (strcmp(row->key, "agentdoc.client_tools") == 0)
        tools = w.opts.request.client_tools = rv_kit_json("[{\"name\":\"show\"}]");
    rv_chat_free(w.chat);
    w.chat = NULL;
    int rc = rv_chat_new(&w.opts, &w.chat, &err);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(said); i++) {
        rc = rv_chat_send(w.chat, rv_str_of(said[i]), NULL, &turn, &err);
        if (rc == 0)
            rv_buf_printf(&told, "status %d of %s: %s\n", (int)turn.status, turn.agent ? turn.agent : "",
                          turn.error ? turn.error : "");
    }
    if (rc < 0)
        rv_buf_printf(&told, "refused: %s\n", rv_err_text(err));
    rv_err_free(err);
    if (w.chat) {
        char *rows = world_rows(&w, true);
        rv_buf_puts(&told, rows);
        free(rows);
        tell_summarisers(&w, &told);
    }
    world_fini(&w);
    json_object_put(tools);
    free(text);
    char *out = rv_buf_steal(&told, NULL);
    mask(out, "Date: ", "U");     /* the clock of the machine */
    mask(out, "\"id\":\"", "\""); /* the run's id may be in it */
    mask(out, "\"tool_call_id\":\"", "\"");
    return out;
}

#define HEAD              "type: object\nname: parent\ndescription: You lead.\n"
#define DOC(key)          HEAD key ": @\n"
#define SHAPED            HEAD "structured_output: true\nproperties: {n: {type: integer}, m: {type: string}}\n"
#define TOOLS             HEAD "tools: [{name: ask_agent}, {name: action}]\n"
#define NOTED(key, value) HEAD "tools: [{name: action, " key ": " value "}]\n"
#define JSON              "models: {parent: [{json: {n: 1, m: x}}], child: [{text: help}]}\n"
#define PIECE             "a reply that is so long that the next request has only its two ends, unless it is one of the newest; "
#define LONG                                                                                                           \
    "models: {parent: [{text: '" PIECE PIECE PIECE PIECE PIECE PIECE PIECE PIECE PIECE PIECE PIECE PIECE "'}]}\n"
#define SAVES "models: {parent: [{json: {n: 1, m: x}}]}\ntools: {save: [{result: {saved: 1}}]}\n"
#define CALLS                                                                                                          \
    "models:\n  parent:\n    - tool_calls: [{id: c1, name: action, arguments: {type: observation, payload: "           \
    "{confidence: 0.5}}}]\n      usage: {input_tokens: 60, output_tokens: 60}\n    - {text: lead, usage: "             \
    "{input_tokens: 60, output_tokens: 60}}\n"
#define TWICE                                                                                                          \
    "models:\n  parent:\n    - tool_calls: [{id: c1, name: action, arguments: {type: x}}, {id: c2, name: action, "     \
    "arguments: {type: y}}]\n    - {text: lead}\n"
#define ASKS                                                                                                           \
    "models:\n  parent:\n    - {text: before, tool_calls: [{id: c1, name: ask_agent, arguments: {agent_name: child, "  \
    "input_text: x}}]}\n    - {text: after}\n  child: [{text: help}]\n"

static const struct key_row rows[] = {
    {"agentdoc.type", "object", "array", "type: @\nname: parent\ndescription: d\n"},
    {"agentdoc.description", "one", "two", "type: object\nname: parent\ndescription: @\n"},
    {"agentdoc.properties", "{n: {type: integer}}", "{m: {type: integer}}",
     HEAD "structured_output: true\nproperties: @\n"},
    {"agentdoc.required", "[n]", "[m]", SHAPED "required: @\n"},
    {"agentdoc.name", "parent", "other", "type: object\nname: @\ndescription: d\n"},
    {"agentdoc.short_description", "one", "two", DOC("short_description"), .with = "desk"},
    {"agentdoc.structured_output", "true", "false", HEAD "properties: {n: {type: integer}}\nstructured_output: @\n"},
    {"agentdoc.tools", "[action]", "[]", DOC("tools")},
    {"agentdoc.tools.name", "action", "ask_agent", HEAD "tools: [{name: @}]\n"},
    {"agentdoc.tools.server", "local", "elsewhere", NOTED("server", "@")},
    {"agentdoc.tools.mcp_server", "local", "elsewhere", NOTED("mcp_server", "@")},
    {"agentdoc.tools.description", "one", "two", NOTED("description", "@")},
    {"agentdoc.tools.uri", "'rem://one'", "null", NOTED("uri", "@")},
    {"agentdoc.model", "'openai:a'", "'openai:b'", DOC("model")},
    {"agentdoc.temperature", "0.1", "0.2", DOC("temperature")},
    {"agentdoc.max_iterations", "1", "2", TOOLS "max_iterations: @\n", .state = CALLS},
    {"agentdoc.limits", "{request_limit: 1}", "{request_limit: 2}", TOOLS "limits: @\n", .state = CALLS},
    {"agentdoc.limits.request_limit", "1", "2", TOOLS "limits: {request_limit: @}\n", .state = CALLS},
    {"agentdoc.limits.tool_calls_limit", "1", "2", TOOLS "limits: {tool_calls_limit: @}\n", .state = TWICE},
    {"agentdoc.limits.input_tokens_limit", "5", "500", TOOLS "limits: {input_tokens_limit: @}\n", .state = CALLS},
    {"agentdoc.limits.output_tokens_limit", "5", "500", TOOLS "limits: {output_tokens_limit: @}\n", .state = CALLS},
    {"agentdoc.limits.total_tokens_limit", "5", "500", TOOLS "limits: {total_tokens_limit: @}\n", .state = CALLS},
    {"agentdoc.routing_enabled", "true", "false", DOC("routing_enabled"), .with = "desk"},
    {"agentdoc.routing_max_turns", "1", "9", DOC("routing_max_turns"), .with = "desk"},
    {"agentdoc.system_prompt", "one", "two", DOC("system_prompt")},
    {"agentdoc.override_model", "'openai:a'", "'openai:b'", DOC("override_model")},
    {"agentdoc.override_temperature", "0.1", "0.2", HEAD "temperature: 0.5\noverride_temperature: @\n"},
    {"agentdoc.override_max_iterations", "1", "2", TOOLS "max_iterations: 5\noverride_max_iterations: @\n",
     .state = CALLS},
    {"agentdoc.max_tokens", "5", "6", DOC("max_tokens")},
    {"agentdoc.context_token_budget", "1", "1000", HEAD "always_include_last_messages: 0\ncontext_token_budget: @\n"},
    {"agentdoc.history", "none", "null", DOC("history")},
    {"agentdoc.replay", "synthesise", "skip", HEAD "tools: [{name: action}]\nreplay: @\n", .state = CALLS},
    {"agentdoc.child_text", "child", "parent", TOOLS "child_text: @\n", .state = ASKS},
    {"agentdoc.routing", "{agents: [child]}", "null", SHAPED "routing: @\n",
     .state = "models: {parent: [{json: {agent: child}}], child: [{text: help}]}\n"},
    {"agentdoc.routing.agents", "[child]", "[desk, general]", SHAPED "routing: {fallback: child, agents: @}\n",
     .state = "models: {parent: [{json: {agent: child}}], child: [{text: help}], general: [{text: x}]}\n"},
    {"agentdoc.routing.fallback", "child", "general", SHAPED "routing: {agents: [desk], fallback: @}\n",
     .state = "models: {parent: [{json: {agent: nobody}}], child: [{text: help}], general: [{text: x}]}\n"},
    {"agentdoc.$defs", "integer", "string",
     HEAD "structured_output: true\nproperties: {n: {$ref: '#/$defs/N'}}\n$defs: {N: {type: @}}\n"},
    {"agentdoc.definitions", "integer", "string",
     HEAD "structured_output: true\nproperties: {n: {$ref: '#/$defs/N'}}\ndefinitions: {N: {type: @}}\n"},
    {"agentdoc.additionalProperties", "true", "false", SHAPED "additionalProperties: @\n",
     .state = "models: {parent: [{json: {n: 1, m: x, o: y}}]}\n"},
    {"agentdoc.client_tools", "true", "false", DOC("client_tools")},
    {"agentdoc.chained_tool", "save", "null", SHAPED "chained_tool: @\n", .state = SAVES},
    {"agentdoc.chained_map", "{n: a}", "{n: b}", SHAPED "chained_tool: save\nchained_map: @\n", .state = SAVES},
    {"agentdoc.always_include_last_messages", "0", "9", DOC("always_include_last_messages"), .state = LONG},
    {"agentdoc.compaction", "shorten", "none", HEAD "always_include_last_messages: 0\ncompaction: @\n", .state = LONG},
    {"agentdoc.moment_token_threshold", "50", "100000", DOC("moment_token_threshold"), .state = LONG},
    {"agentdoc.moment_max_inject", "0", "3", HEAD "moment_token_threshold: 50\nmoment_max_inject: @\n", .state = LONG},
    {"agentdoc.moment_max_tokens", "1", "1500", HEAD "moment_token_threshold: 50\nmoment_max_tokens: @\n",
     .state = LONG},
    {"agentdoc.moment_summariser", "scribe", "child", HEAD "moment_token_threshold: 50\nmoment_summariser: @\n",
     .state = LONG},
    {"agentdoc.observation_mode", "sync", "disabled", TOOLS "observation_mode: @\n", .state = CALLS},
    {"agentdoc.resources", "[{name: one, uri: 'rem://one'}]", "[]", DOC("resources")},
};

const struct key_rows key_rows_agents = {rows, RV_COUNT(rows), tell};
