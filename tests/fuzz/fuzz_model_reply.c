/* What a model says to a stage that has tools, an output schema and a budget: replies of arbitrary bytes, one a line,
 * in the shape of tool calls, text or what a provider wants back. Whatever it says, the run ends or waits for a person,
 * the model's next request has a result for each call it made, in order, and the money is accounted for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/run/run_internal.h"
#include "tests/kit/catalog.h"
#include "tests/kit/fuzz.h"

#define MAX_STEPS 400
#define PIPELINE                                                                                                       \
    "name: t\nbudget: {usd: 0.1}\nmodels: {r: {model: 'openai:x', price: {input: 1, output: 2}}}\nagents:\n"           \
    "  - {name: a, has_llm: true, model_role: r, has_tools: true, tool_access: all, max_retries: 1, max_rounds: 4, "   \
    "max_tokens: 50, output_schema: {type: object, required: [v], properties: {v: {type: integer}, w: {type: "         \
    "string}}}}\n"

static struct rv_pipeline *pipeline;
static rv_schema *schema;
static struct rv_tool_info tools[] = {
    {.name = "read", .description = "", .category = RV_UNSET, .risk = RV_RISK_READ_ONLY, .effect = RV_UNSET},
    {.name = "put", .description = "", .category = RV_UNSET, .risk = RV_RISK_WRITE, .effect = RV_UNSET},
    {.name = "wipe", .description = "", .category = RV_UNSET, .risk = RV_RISK_DESTRUCTIVE, .effect = RV_UNSET},
};

static const char *tool_name(void *self, size_t i)
{
    (void)self;
    return i < RV_COUNT(tools) ? tools[i].name : NULL;
}

static struct rv_kit_tools known = {tools, RV_COUNT(tools)};
static const struct rv_catalog catalog = {.tool = rv_kit_find_tool,
                                          .entry = rv_kit_no_entry,
                                          .prompt = rv_kit_no_prompt,
                                          .tool_name = tool_name,
                                          .self = &known};

static void begin(void)
{
    rv_findings *findings = rv_findings_new();
    json_object *input = NULL;

    require(rv_pipeline_parse(RV_STR_LIT(PIPELINE), "t.yaml", ".", findings, &pipeline, NULL) == 0);
    require(pipeline && pipeline->is_sound);
    require(rv_json_parse(RV_STR_LIT("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}"), NULL,
                          &input, NULL) == 0);
    require(rv_schema_compile(input, "read", &schema, NULL) == 0);
    tools[0].input = schema;
    tools[0].input_json = input;
    rv_findings_free(findings);
}

/* --- what is asked --- */

struct talk {
    rv_str left; /* of the input */
    struct rv_effects fx;
    struct asked {
        int64_t id;
        enum rv_effect_kind kind;
    } asked[MAX_STEPS];
    size_t n_asked, next;
    bool over;
};

static const char *text_in(json_object *turn, const char *key)
{
    const char *text = NULL;
    return rv_json_get_text(turn, key, &text) ? text : "";
}

static void look_at_request(rv_str request)
{
    const struct rv_json_opts opts = {.max_bytes = (size_t)256 << 20};
    json_object *json = NULL;

    require(rv_json_parse(request, &opts, &json, NULL) == 0);
    json_object *turns = rv_json_get_arr(json, "turns");
    size_t n = turns ? json_object_array_length(turns) : 0;
    for (size_t i = 0; i < n;) {
        json_object *turn = json_object_array_get_idx(turns, i++), *calls = rv_json_get_arr(turn, "tool_calls");
        require(strcmp(text_in(turn, "role"), "tool") != 0);
        for (size_t j = 0; calls && j < json_object_array_length(calls); j++) {
            json_object *result = json_object_array_get_idx(turns, i++);
            require(i <= n && strcmp(text_in(result, "role"), "tool") == 0);
            require(strcmp(text_in(result, "tool_call_id"), text_in(json_object_array_get_idx(calls, j), "id")) == 0);
        }
    }
    json_object_put(json);
}

static void take(struct talk *t)
{
    for (size_t i = 0; i < t->fx.n; i++) {
        const struct rv_effect *e = &t->fx.items[i];
        if (e->kind == RV_EFFECT_CALL_LLM)
            look_at_request((rv_str){e->request, e->request_len});
        if (e->kind <= RV_EFFECT_CALL_HOOK || e->kind == RV_EFFECT_ARM_TIMER) {
            require(t->n_asked < MAX_STEPS);
            t->asked[t->n_asked++] = (struct asked){e->call_id, e->kind};
        }
        t->over = t->over || e->kind == RV_EFFECT_FINISH;
    }
    rv_effects_clear(&t->fx);
}

/* --- what is said --- */

static rv_str next_line(struct talk *t)
{
    const char *end = t->left.len ? memchr(t->left.ptr, '\n', t->left.len) : NULL;
    rv_str line = {t->left.ptr, end ? (size_t)(end - t->left.ptr) : t->left.len};
    size_t used = line.len + (end != NULL);

    t->left = (rv_str){t->left.ptr + used, t->left.len - used};
    return line;
}

/* The first byte of a line says what the rest is. */
static void say(struct talk *t, struct rv_event *ev)
{
    ev->llm = RV_LLM_ANSWER_NONE;
    for (rv_str line = next_line(t); line.len > 0; line = next_line(t)) {
        rv_str rest = {line.ptr + 1, line.len - 1};
        switch (line.ptr[0]) {
        case 'c':
            ev->llm.tool_calls = rest;
            break;
        case 'o':
            ev->llm.opaque = rest;
            break;
        case 'f':
            ev->llm.finish = rest.len ? rest.ptr[0] % RV_N_FINISH : RV_UNSET;
            ev->llm.finish = ev->llm.finish < 0 ? RV_UNSET : ev->llm.finish;
            break;
        case 'u':
            ev->llm.has_usage = true;
            ev->llm.usage.input_tokens = (int64_t)rest.len;
            break;
        case 'e':
            ev->failed = true;
            ev->retryable = rest.len % 2;
            ev->llm.may_be_billed = rest.len % 3 == 0;
            ev->error = rest;
            break;
        default:
            ev->reply = line;
        }
    }
}

static void answer(rv_run *run, struct talk *t)
{
    const struct asked *a = &t->asked[t->next++];
    struct rv_event ev = {.now_us = (int64_t)t->next * 1000, .call_id = a->id, .reply = RV_STR_LIT("{}")};

    if (a->kind == RV_EFFECT_ARM_TIMER) {
        ev.kind = RV_EVENT_TIMER;
    } else if (a->kind == RV_EFFECT_CALL_TOOL) {
        ev.kind = RV_EVENT_TOOL_DONE;
        ev.reply = t->left.len % 3 ? RV_STR_LIT("{}") : next_line(t);
    } else {
        ev.kind = RV_EVENT_LLM_DONE;
        say(t, &ev);
    }
    require(rv_run_step(run, &ev, &t->fx, NULL) == 0);
    take(t);
}

RV_FUZZ_TARGET(model_reply)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("hi")};
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = 1};
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    struct talk t = {.left = {(const char *)data, size}};
    struct rv_rand_state state;
    rv_envelope *env = NULL;
    rv_run *run = NULL;

    if (!pipeline)
        begin();
    require(rv_envelope_new(&seed, rv_rand_seeded(&state, 3), 1, &env, NULL) == 0);
    require(rv_run_new(pipeline, &catalog, &opts, env, &run, NULL) == 0);
    for (int pauses = 0; pauses < 5; pauses++) {
        require(rv_run_step(run, &ev, &t.fx, NULL) == 0);
        take(&t);
        while (!t.over && t.next < t.n_asked)
            answer(run, &t);
        require(t.over && run->shared.reserved_micro_usd == 0);
        require(run->shared.spent_micro_usd == rv_envelope_fields(run->env)->usage.cost_micro_usd);
        if (rv_run_status(run) != RV_RUN_INTERRUPTED)
            break;
        t.over = false;
        ev = (struct rv_event){.kind = RV_EVENT_ANSWER,
                               .now_us = (int64_t)t.next * 1000,
                               .response = {.has_approved = true, .approved = t.left.len % 5 != 1}};
    }
    rv_effects_fini(&t.fx);
    rv_run_free(run);
    return 0;
}
