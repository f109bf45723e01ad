/* The table of an agent's keys. config/build.c makes an agent of them; what needs other stages is checked later. */
#include <stddef.h>
#include <stdio.h>

#include "config/config_internal.h"

#define AT(member) offsetof(struct rv_agent, member)

static const struct rv_term output_modes[] = {
    [RV_OUTPUT_JSON] = {"json", "the object found in the reply"},
    [RV_OUTPUT_TEXT] = {"text", "the whole reply, under the field \"response\""},
};
RV_EACH_HAS_ROW(output_modes, RV_N_OUTPUT_MODES);
static const struct rv_term_list output_mode_list = {"output_mode", "output mode", output_modes,
                                                     RV_COUNT(output_modes)};

static const struct rv_term output_vias[] = {
    [RV_OUTPUT_VIA_AUTO] = {"auto", "the best that the provider can do"},
    [RV_OUTPUT_VIA_NATIVE] = {"native", "the provider holds the model to the schema"},
    [RV_OUTPUT_VIA_TOOL] = {"tool", "the model hands the output to a tool"},
    [RV_OUTPUT_VIA_PROMPT] = {"prompt", "the prompt says what the output must be"},
};
RV_EACH_HAS_ROW(output_vias, RV_N_VIAS);
const struct rv_term_list rv_output_vias = {"output_via", "way to structured output", output_vias,
                                            RV_COUNT(output_vias)};

static const struct rv_term tool_choices[] = {
    [RV_CHOICE_OF_MODEL] = {"auto", "the model decides whether it calls tools"},
    [RV_CHOICE_REQUIRED] = {"required", "the first reply of a visit calls at least one"},
};
RV_EACH_HAS_ROW(tool_choices, RV_N_TOOL_CHOICES);
static const struct rv_term_list tool_choice_list = {"tool_choice", "choice of tool calls", tool_choices,
                                                     RV_COUNT(tool_choices)};

#define LIMIT(key, text)                                                                                               \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_INT, .offset = offsetof(struct rv_llm_limits, key), .min = 1, .doc = text         \
    }
static const struct rv_key limit_keys[] = {
    LIMIT(request_limit, "Requests to the model; looked at before each."),
    LIMIT(tool_calls_limit, "Tool calls; looked at before the calls of a reply are made."),
    LIMIT(input_tokens_limit, "Tokens of input; looked at after each reply, like the two below."),
    LIMIT(output_tokens_limit, "Tokens of output."),
    LIMIT(total_tokens_limit, "Tokens of both."),
};

/* A list of names, or a map from name to bool in which only `true` allows. */
static void read_allowed_tools(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_str_list *out = target;
    struct rv_loader *l = config_loader_of(r);

    if (node->kind == RV_NODE_LIST) {
        rv_keys_read_str_list(r, node, "allowed_tools", out);
        return;
    }
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, "allowed_tools", "a list of names or a map from name to true or false");
        return;
    }
    out->items = config_loader_array(l, node->n, sizeof *out->items);
    out->srcs = config_loader_array(l, node->n, sizeof *out->srcs);
    if (!out->items || !out->srcs)
        return;
    out->is_set = true;
    for (size_t i = 0; i < node->n; i++) {
        if (node->items[i]->kind != RV_NODE_BOOL) {
            char label[128];
            snprintf(label, sizeof label, "allowed_tools.%.80s", node->keys[i]->text.ptr);
            rv_keys_add_wrong_type(r, node->items[i], label, "a boolean");
        } else if (node->items[i]->i64) {
            out->items[out->n] = node->keys[i]->text.ptr;
            out->srcs[out->n++] = node->keys[i]->src;
        }
    }
}

/* Unset is neither: then the document says it. */
static void read_structured(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    if (node->kind == RV_NODE_BOOL)
        *(int *)target = node->i64 != 0;
    else
        rv_keys_add_wrong_type(r, node, "structured_output", "a boolean");
}

/* One name or a list of names. */
static void read_hooks(struct rv_key_reader *r, const struct rv_node *node, const char *key, struct rv_str_list *out)
{
    struct rv_loader *l = config_loader_of(r);

    if (node->kind == RV_NODE_LIST) {
        rv_keys_read_str_list(r, node, key, out);
    } else if (node->kind == RV_NODE_STR) {
        out->items = config_loader_array(l, 1, sizeof *out->items);
        out->srcs = config_loader_array(l, 1, sizeof *out->srcs);
        if (!out->items || !out->srcs)
            return;
        out->is_set = true;
        out->items[0] = node->text.ptr;
        out->srcs[out->n++] = node->src;
    } else {
        rv_keys_add_wrong_type(r, node, key, "the name of a hook or a list of names");
    }
    for (size_t i = 0; i < out->n; i++)
        if (!out->items[i][0])
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &out->srcs[i], "write capability.name",
                                "%s: the name of a hook is empty", key);
}

#define READ_HOOKS(key)                                                                                                \
    static void read_##key(struct rv_key_reader *r, const struct rv_node *node, void *target)                          \
    {                                                                                                                  \
        read_hooks(r, node, #key, target);                                                                             \
    }
READ_HOOKS(before_model)
READ_HOOKS(after_model)
READ_HOOKS(before_tool)
READ_HOOKS(after_tool)
#define HOOKS(key, text)                                                                                               \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_CUSTOM, .offset = AT(hooks.key), .read = read_##key,                              \
        .schema = "{\"anyOf\":[{\"type\":\"string\",\"minLength\":1},"                                                 \
                  "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1}}]}",                            \
        .doc = text                                                                                                    \
    }

#define CHILD_TEXT_TERM(n, t, m) [RV_CHILD_TEXT_##n] = {t, m},
static const struct rv_term child_texts[] = {RV_CHILD_TEXTS(CHILD_TEXT_TERM)};
const struct rv_term_list config_child_text_list = {"child_text", "choice of what is heard", child_texts,
                                                    RV_COUNT(child_texts)};

#define MAX_SECONDS 31536000 /* a year: longer waits are mistakes */

static const struct rv_key agent_keys[] = {
    {.name = "name",
     .type = RV_KEY_STR,
     .offset = AT(name),
     .src_offset = AT(places.name),
     .doc = "The stage's name; unique. Required, unless agent is given: then it is that name."},
    {.name = "agent",
     .type = RV_KEY_STR,
     .offset = AT(declared.name),
     .src_offset = AT(places.agent),
     .doc = "A declared agent: the stage is what its document says, and calls a model. Keys of the stage win over it."},
    {.name = "structured_output",
     .type = RV_KEY_CUSTOM,
     .offset = AT(declared.structured),
     .read = read_structured,
     .schema = "{\"type\":\"boolean\"}",
     .doc = "With agent: true or false: whether the output has the shape of the document's properties; unset: as it "
            "says."},
    {.name = "joins_session",
     .type = RV_KEY_BOOL,
     .offset = AT(session.joins),
     .default_text = "true",
     .doc = "With agent: the conversation of the session is told to the model, and this turn is kept in it."},
    {.name = "child_text",
     .type = RV_KEY_TERM,
     .offset = AT(session.child_text),
     .terms = &config_child_text_list,
     .doc = "Whose words people are shown, and which are kept as the answer, when the agent asks another one "
            "(ask_agent); unset: as its document says, else the pipeline, else final."},
    {.name = "child_text_resets",
     .type = RV_KEY_BOOL,
     .offset = AT(session.child_text_resets),
     .default_text = "false",
     .doc = "With child_text child: the asking agent is heard again once the asked one is done."},
    {.name = "stage_order",
     .type = RV_KEY_INT,
     .offset = AT(order.stage_order),
     .min = -1e9,
     .max = 1e9,
     .default_text = "0",
     .doc = "Position: lower runs first, the lowest is the entry; equal ones keep the order of the file."},
    {.name = "requires",
     .type = RV_KEY_STR_LIST,
     .offset = AT(order.required),
     .doc = "Stages that must have completed before this one starts (parallel mode)."},
    {.name = "after",
     .type = RV_KEY_STR_LIST,
     .offset = AT(order.after),
     .doc = "Stages that must have come to an end before this one starts, well or not (parallel mode)."},
    {.name = "join_strategy",
     .type = RV_KEY_TERM,
     .offset = AT(order.join),
     .term_list = "join",
     .default_text = "\"all\"",
     .doc = "Whether all of requires must have completed, or any one."},
    {.name = "has_llm",
     .type = RV_KEY_BOOL,
     .offset = AT(has_llm),
     .default_text = "false",
     .doc = "The stage calls a model; with agent it always does."},
    {.name = "has_tools",
     .type = RV_KEY_BOOL,
     .offset = AT(has_tools),
     .default_text = "false",
     .doc = "The stage has tools: with has_llm the model may call them, else it runs the steps of a plan."},
    {.name = "has_policies",
     .type = RV_KEY_BOOL,
     .offset = AT(has_policies),
     .src_offset = AT(places.has_policies),
     .default_text = "false",
     .doc = "The stage asks its policies before its output is stored, and has at least one."},
    {.name = "tool_access",
     .type = RV_KEY_TERM,
     .offset = AT(tools.access),
     .term_list = "tool_access",
     .doc = "Which tools, by their risk; unset: those of allowed_tools, or none. A model is offered these only."},
    {.name = "allowed_tools",
     .type = RV_KEY_CUSTOM,
     .offset = AT(tools.allowed),
     .read = read_allowed_tools,
     .schema = "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
               "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}}]}",
     .doc = "Names of tools, or a map from name to true or false; narrows tool_access. An empty list allows none. "
            "With agent: in place of the document's tools. A model that may use ask_agent asks other agents."},
    {.name = "client_tools",
     .type = RV_KEY_CUSTOM,
     .offset = AT(tools.client),
     .src_offset = AT(tools.client_src),
     .read = config_read_client_tools,
     .schema = "{\"type\":\"array\",\"maxItems\":128,\"items\":{\"$ref\":\"#/$defs/client_tool\"}}",
     .doc = "With a model: tools that the client of the run calls itself. The model is offered them beside the "
            "others; a call of one makes the run wait for its result."},
    {.name = "tool_choice",
     .type = RV_KEY_TERM,
     .offset = AT(model.tool_choice),
     .terms = &tool_choice_list,
     .default_text = "\"auto\"",
     .doc = "With a model that has tools: whether it has to call one."},
    {.name = "model_role",
     .type = RV_KEY_STR,
     .offset = AT(model.role),
     .src_offset = AT(places.model_role),
     .doc = "A role of models; required with has_llm. With agent: in place of the document's model."},
    {.name = "prompt_key",
     .type = RV_KEY_STR,
     .offset = AT(model.prompt_key),
     .src_offset = AT(places.prompt_key),
     .doc =
         "A key of prompts, or a prompt of a capability. With agent: what it is asked; unset: the input of the run."},
    {.name = "system_key",
     .type = RV_KEY_STR,
     .offset = AT(model.system_key),
     .src_offset = AT(places.system_key),
     .doc = "The system prompt: a key of prompts, or a prompt of a capability. Not with agent, whose document is one."},
    {.name = "examples",
     .type = RV_KEY_CUSTOM,
     .offset = AT(model.examples),
     .src_offset = AT(places.examples),
     .read = config_read_examples,
     .schema = "{\"type\":\"array\",\"maxItems\":64,\"items\":{\"$ref\":\"#/$defs/example\"}}",
     .doc = "Questions with the answers that are wanted, told to the model in each request before the history and the "
            "prompt. Not kept in the session."},
    {.name = "attachments",
     .type = RV_KEY_CUSTOM,
     .offset = AT(model.attachments),
     .src_offset = AT(places.attachments),
     .read = config_read_attachments,
     .schema = "{\"type\":\"array\",\"maxItems\":32,\"items\":{\"type\":\"string\",\"minLength\":1}}",
     .doc =
         "Images and files that belong to the prompt: expressions over outputs, envelope, metadata, state, interrupt "
         "and models. Each gives a URL (https: or data:), {url, type} or {data, media_type, name}, a list of these, "
         "or null for none."},
    {.name = "temperature",
     .type = RV_KEY_FLOAT,
     .offset = AT(model.temperature),
     .min = 0,
     .max = 2,
     .is_set_offset = AT(model.has_temperature),
     .is_null_offset = AT(model.no_temperature),
     .doc = "Passed to the model when given; 0 counts as given. null: none is sent, whatever the model's entry or the "
            "document says."},
    {.name = "max_tokens",
     .type = RV_KEY_INT,
     .offset = AT(model.max_tokens),
     .min = 1,
     .max = 1e8,
     .is_set_offset = AT(model.has_max_tokens),
     .doc = "Longest reply; unset: the model's own setting, else 2000."},
    {.name = "output_key",
     .type = RV_KEY_STR,
     .offset = AT(output.key),
     .src_offset = AT(places.output_key),
     .doc = "Where the output is stored; unset: under the stage's name."},
    {.name = "output_mode",
     .type = RV_KEY_TERM,
     .offset = AT(output.mode),
     .terms = &output_mode_list,
     .default_text = "\"json\"",
     .doc = "How a model's reply is used."},
    {.name = "output_schema",
     .type = RV_KEY_CUSTOM,
     .offset = AT(output.schema),
     .src_offset = AT(places.output_schema),
     .read = config_read_output_schema,
     .schema = "{\"type\":\"object\"}",
     .doc = "JSON Schema that the output of a model must fit, of type object; or {file: path} for one in a file."},
    {.name = "output_via",
     .type = RV_KEY_TERM,
     .offset = AT(output.via),
     .src_offset = AT(places.output_via),
     .terms = &rv_output_vias,
     .default_text = "\"auto\"",
     .doc = "How the model is made to answer by output_schema."},
    {.name = "max_repairs",
     .type = RV_KEY_INT,
     .offset = AT(limits.max_repairs),
     .min = 0,
     .max = 10,
     .default_text = "1",
     .doc = "How often a model is told what was wrong with its output and asked again, in one visit."},
    {.name = "required_output_fields",
     .type = RV_KEY_STR_LIST,
     .offset = AT(output.required_fields),
     .doc = "Top-level fields the output must have; null counts as there."},
    {.name = "routing_rules",
     .type = RV_KEY_CUSTOM,
     .offset = AT(routing.rules),
     .read = config_read_rules,
     .schema = "{\"type\":\"array\",\"maxItems\":256,\"items\":{\"$ref\":\"#/$defs/rule\"}}",
     .doc = "Where to go next; the first rule that matches decides."},
    {.name = "default_next",
     .type = RV_KEY_CUSTOM,
     .offset = AT(routing.default_next),
     .src_offset = AT(places.default_next),
     .read = config_read_default_next,
     .schema = "{\"anyOf\":[{\"type\":\"string\"}," RV_TARGET_LIST_SCHEMA "]}",
     .doc = "Where to go when no rule matches; unset: end. A list goes on at several stages at once."},
    {.name = "error_next",
     .type = RV_KEY_CUSTOM,
     .offset = AT(routing.error_next),
     .src_offset = AT(places.error_next),
     .read = config_read_error_next,
     .schema = "{\"type\":\"string\"}",
     .doc = "Where to go when the stage fails; unset: the run fails."},
    {.name = "join",
     .type = RV_KEY_CUSTOM,
     .offset = AT(join),
     .read = config_read_join,
     .schema =
         "{\"anyOf\":[{\"enum\":[\"all\",\"any\",\"first\"]},{\"type\":\"integer\",\"minimum\":1,\"maximum\":256},"
         "{\"$ref\":\"#/$defs/join\"}]}",
     .doc = "The branches of a group meet here: all, any, first, how many have to arrive, or a map."},
    {.name = "for_each",
     .type = RV_KEY_CUSTOM,
     .offset = AT(each),
     .read = config_read_for_each,
     .schema = "{\"type\":\"string\"}",
     .doc = "An expression that gives a list: the stage does its work for each element, which is `item` there."},
    {.name = "max_items",
     .type = RV_KEY_INT,
     .offset = AT(each.max_items),
     .src_offset = AT(each.max_items_src),
     .min = 1,
     .max = RV_EACH_MAX_ITEMS,
     .doc = "With for_each, required: the longest list; a longer one fails the stage."},
    {.name = "max_parallel",
     .type = RV_KEY_INT,
     .offset = AT(each.max_parallel),
     .src_offset = AT(each.max_parallel_src),
     .min = 1,
     .max = RV_EACH_MAX_PARALLEL,
     .default_text = "8",
     .doc = "With for_each: how many elements are worked on at once."},
    {.name = "on_item_error",
     .type = RV_KEY_TERM,
     .offset = AT(each.on_error),
     .src_offset = AT(each.on_error_src),
     .terms = &config_item_error_list,
     .default_text = "\"fail\"",
     .doc = "With for_each: what a failed element does."},
    {.name = "pipeline",
     .type = RV_KEY_STR,
     .offset = AT(inner.file),
     .src_offset = AT(inner.src),
     .doc = "A pipeline file that runs as the work of this stage, relative to this file's folder."},
    {.name = "inputs",
     .type = RV_KEY_CUSTOM,
     .offset = AT(inner.inputs),
     .read = config_read_inner_inputs,
     .schema = "{\"type\":\"object\"}",
     .doc = "With pipeline: map of expressions; their values are `inputs` inside."},
    {.name = "outputs",
     .type = RV_KEY_CUSTOM,
     .offset = AT(inner.outputs),
     .read = config_read_inner_outputs,
     .schema = "{\"type\":\"object\"}",
     .doc = "With pipeline: map of expressions over its end, which becomes the output; unset: all its outputs."},
    {.name = "set",
     .type = RV_KEY_CUSTOM,
     .offset = AT(set),
     .read = config_read_set,
     .schema = "{\"type\":\"object\"}",
     .doc = "The output, built without a call: a text is an expression, other scalars are constants, lists and maps "
            "are gone through."},
    {.name = "ask",
     .type = RV_KEY_CUSTOM,
     .offset = AT(ask),
     .read = config_read_ask,
     .schema = "{\"$ref\":\"#/$defs/ask\"}",
     .doc = "A question for a person, put when the output is stored; the answer is `answer` in the output."},
    {.name = "on_answer",
     .type = RV_KEY_CUSTOM,
     .offset = AT(ask.routes),
     .read = config_read_on_answer,
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\",\"minLength\":1}}",
     .doc = "With ask: map from a choice, or timeout, to the stage that follows; other choices go by the rules."},
    {.name = "on_denied",
     .type = RV_KEY_TERM,
     .offset = AT(on_denied),
     .src_offset = AT(on_denied_src),
     .terms = &config_on_denied_list,
     .default_text = "\"end_run\"",
     .doc = "What follows when a person refuses a tool call that the model asked for."},
    {.name = "routing_function",
     .type = RV_KEY_STR,
     .offset = AT(routing.function),
     .src_offset = AT(places.routing_function),
     .doc = "A routing function of a capability, as capability.name."},
    {.name = "timeout_seconds",
     .type = RV_KEY_INT,
     .offset = AT(limits.timeout_seconds),
     .min = 0,
     .max = MAX_SECONDS,
     .default_text = "0",
     .doc = "Deadline of one visit; 0: the pipeline's default_timeout_seconds."},
    {.name = "max_retries",
     .type = RV_KEY_INT,
     .offset = AT(limits.max_retries),
     .min = 0,
     .max = 100,
     .default_text = "0",
     .doc = "Further attempts after a failure that may pass."},
    {.name = "max_rounds",
     .type = RV_KEY_INT,
     .offset = AT(limits.max_rounds),
     .min = 1,
     .max = 1000,
     .default_text = "10",
     .doc = "Replies of one visit that call tools. With agent: as many as it may make requests, unless given."},
    {.name = "max_bad_calls",
     .type = RV_KEY_INT,
     .offset = AT(limits.max_bad_calls),
     .min = 0,
     .max = 100,
     .default_text = "3",
     .doc = "Tool calls of one visit that cannot be made, and are answered with what is wrong with them."},
    {.name = "max_context_tokens",
     .type = RV_KEY_INT,
     .offset = AT(limits.max_context_tokens),
     .min = 1,
     .max = 1e9,
     .doc =
         "Longest request to the model, estimated as a quarter of the characters of its messages; the oldest messages "
         "are left out until it fits. Unset: no limit."},
    {.name = "limits",
     .type = RV_KEY_MAP,
     .offset = AT(limits.llm),
     .keys = limit_keys,
     .n_keys = RV_COUNT(limit_keys),
     .doc = "Limits of one visit of a model stage; each is unset unless given. With agent: as its document says, "
            "else 15 requests and 80000 tokens in all."},
    {.name = "strategy",
     .type = RV_KEY_TERM,
     .offset = AT(planning.strategy),
     .src_offset = AT(planning.strategy_src),
     .terms = &config_strategy_list,
     .default_text = "\"auto\"",
     .doc = "With a model that has tools: how a visit comes to its tool calls."},
    {.name = "plan",
     .type = RV_KEY_MAP,
     .offset = AT(planning),
     .src_offset = AT(planning.plan_src),
     .keys = config_plan_keys,
     .n_keys = RV_N_PLAN_KEYS,
     .doc = "With strategy planned: what a plan may be."},
    {.name = "execute",
     .type = RV_KEY_MAP,
     .offset = AT(planning),
     .src_offset = AT(planning.execute_src),
     .keys = config_execute_keys,
     .n_keys = RV_N_EXECUTE_KEYS,
     .doc = "With strategy planned: how the calls of a plan are made."},
    {.name = "respond",
     .type = RV_KEY_MAP,
     .offset = AT(planning),
     .src_offset = AT(planning.respond_src),
     .keys = config_respond_keys,
     .n_keys = RV_N_RESPOND_KEYS,
     .doc = "With strategy planned: what the model that answers is shown of the results."},
    {.name = "max_visits",
     .type = RV_KEY_INT,
     .offset = AT(limits.max_visits),
     .min = 1,
     .max = 1e9,
     .doc = "How often a run may visit the stage; unset: as often as the bounds of the pipeline allow."},
    {.name = "plan_from",
     .type = RV_KEY_STR,
     .offset = AT(tools.plan_from),
     .src_offset = AT(places.plan_from),
     .default_text = "\"plan\"",
     .doc = "Output key that has the plan of a tool stage."},
    {.name = "policies",
     .type = RV_KEY_STR_LIST,
     .offset = AT(hooks.policies),
     .doc = "Policies of capabilities, as capability.name, asked in this order."},
    {.name = "pre_process",
     .type = RV_KEY_STR,
     .offset = AT(hooks.pre_process),
     .src_offset = AT(places.pre_process),
     .doc = "Hook that runs before the stage, as capability.name."},
    {.name = "post_process",
     .type = RV_KEY_STR,
     .offset = AT(hooks.post_process),
     .src_offset = AT(places.post_process),
     .doc = "Hook that runs after the output is stored, as capability.name."},
    HOOKS(before_model,
          "Hook, or list of hooks, as capability.name, that sees each request before the model is asked: it "
          "may change it, answer it, or block it."),
    HOOKS(after_model, "Hook, or list of hooks, that sees each reply of the model: it may change or block it."),
    HOOKS(before_tool,
          "Hook, or list of hooks, that sees each tool call before it is made: it may change its arguments, "
          "answer it, or block it."),
    HOOKS(after_tool, "Hook, or list of hooks, that sees the result of each tool call: it may change or block it."),
    {.name = "mock_handler",
     .type = RV_KEY_STR,
     .offset = AT(hooks.mock_handler),
     .src_offset = AT(places.mock_handler),
     .doc = "Stands in for the stage's work when mock is on, as capability.name."},
    {.name = "mock",
     .type = RV_KEY_BOOL,
     .offset = AT(hooks.mock),
     .default_text = "false",
     .doc = "Use mock_handler, if there is one."},
};
const struct rv_key_table config_agent_table = {
    "agent", "An agent: one stage of the pipeline", agent_keys, RV_COUNT(agent_keys),
    "\"anyOf\":[{\"required\":[\"name\"]},{\"required\":[\"agent\"]}],\"properties\":{\"name\":{\"minLength\":1},"
    "\"agent\":{\"pattern\":\"^[A-Za-z0-9_][A-Za-z0-9_.-]*$\",\"maxLength\":128}}"};
