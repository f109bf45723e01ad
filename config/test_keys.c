/* What a test feeds in and what it expects: values that are compared, expressions over the end of the run, schemas of
 * outputs, tool calls, a text that the response is like. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/tests_internal.h"

#define MAX_ASSERTIONS 100   /* of one key of one test */
#define MAX_VOTES      99    /* each is paid for */
#define MAX_NEAR       1e300 /* a number whose distance to another is still finite */

/* --- that --- */

static void read_one(struct rv_key_reader *r, const struct rv_node *node, const char *what, struct rv_test_config *test)
{
    if (node->kind != RV_NODE_STR) {
        rv_keys_wrong_type(r, node, what, "an expression, or a list of expressions");
        return;
    }
    rv_expr *e = config_loader_condition(r, node, what, RV_TEXT_OF_TEST);
    if (e)
        test->that[test->n_that++] = e;
}

static void read_that_of(struct rv_key_reader *r, const struct rv_node *node, struct rv_test_config *test)
{
    bool is_list = node->kind == RV_NODE_LIST;
    size_t n = is_list ? node->n : 1;
    const char *outer = r->path;
    char what[48];

    if (n > MAX_ASSERTIONS) {
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, NULL,
                        "expect.that has %zu expressions, at most %d are allowed", n, MAX_ASSERTIONS);
        return;
    }
    test->that = config_loader_array(config_loader_of(r), n + 1, sizeof(rv_expr *));
    r->path = NULL;
    for (size_t i = 0; test->that && i < n; i++) {
        snprintf(what, sizeof what, is_list ? "expect.that[%zu]" : "expect.that", i);
        read_one(r, is_list ? node->items[i] : node, what, test);
    }
    r->path = outer;
}

/* --- schema --- */

static void read_schemas_of(struct rv_key_reader *r, const struct rv_node *node, struct rv_test_config *test)
{
    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, "schema", "a map from output key to a JSON Schema");
        return;
    }
    test->schemas = config_loader_array(config_loader_of(r), node->n + 1, sizeof *test->schemas);
    for (size_t i = 0; test->schemas && i < node->n; i++) {
        struct rv_test_schema *s = &test->schemas[test->n_schemas++];
        struct rv_owned *o = config_loader_own(config_loader_of(r));
        *s = (struct rv_test_schema){.output_key = node->keys[i]->text.ptr, .src = node->items[i]->src};
        if (o)
            rv_keys_json(r, node->items[i], &o->value);
        s->schema = o ? o->value : NULL;
    }
}

/* --- tool_calls: kept as JSON, as all that is compared with JSON --- */

struct raw_call {
    const char *tool, *stage;
};
static void read_arguments(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP)
        rv_keys_wrong_type(r, node, "arguments", "a map of the arguments that matter");
}

static const struct rv_key call_keys[] = {
    {"tool", RV_KEY_STR, offsetof(struct raw_call, tool), .required = true, .doc = "The tool that is called."},
    {"stage", RV_KEY_STR, offsetof(struct raw_call, stage), .doc = "The stage that calls it."},
    {"arguments", RV_KEY_CUSTOM, 0, .read = read_arguments, .schema = "{\"type\":\"object\"}",
     .doc = "Arguments that must be part of the call's."},
};
const struct rv_key_table config_test_call_table = {"test_call", "An expected tool call", call_keys,
                                                    RV_COUNT(call_keys), NULL};

static void read_calls(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    const char *outer = r->path;
    char path[48];

    (void)target;
    if (node->kind != RV_NODE_LIST) {
        rv_keys_wrong_type(r, node, "tool_calls", "a list of maps");
        return;
    }
    for (size_t i = 0; i < node->n; i++) {
        struct raw_call raw = {0};
        snprintf(path, sizeof path, "expect.tool_calls[%zu].", i);
        r->path = path;
        rv_keys_read(r, node->items[i], call_keys, RV_COUNT(call_keys), &raw);
    }
    r->path = outer;
}

/* --- similar --- */

struct raw_similar {
    const char *to;
    double at_least;
};
static const struct rv_key similar_keys[] = {
    {"to", RV_KEY_STR, offsetof(struct raw_similar, to), .required = true, .doc = "The text."},
    {"at_least", RV_KEY_FLOAT, offsetof(struct raw_similar, at_least), .min = 0, .max = 1, .default_text = "0.6",
     .doc = "The part of their trigrams that both texts have."},
};
const struct rv_key_table config_test_similar_table = {"test_similar", "A text that the response is like", similar_keys,
                                                       RV_COUNT(similar_keys), NULL};

static void read_similar_of(struct rv_key_reader *r, const struct rv_node *node, struct rv_test_config *test)
{
    struct raw_similar raw = {0};
    const char *outer = r->path;

    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, "similar", "a map");
        return;
    }
    r->path = "expect.similar.";
    rv_keys_read(r, node, similar_keys, RV_COUNT(similar_keys), &raw);
    r->path = outer;
    test->similar_to = raw.to;
    test->similar_at_least = raw.at_least;
}

/* --- near --- */

static const struct rv_key near_keys[] = {
    {"to", RV_KEY_FLOAT, offsetof(struct rv_test_near, to), .min = -MAX_NEAR, .max = MAX_NEAR, .required = true,
     .doc = "The number."},
    {"within", RV_KEY_FLOAT, offsetof(struct rv_test_near, within), .min = 0, .max = MAX_NEAR, .required = true,
     .doc = "How far from it the value may be."},
};
const struct rv_key_table config_test_near_table = {"test_near", "A number that a value is near to", near_keys,
                                                    RV_COUNT(near_keys), NULL};

static void read_near_of(struct rv_key_reader *r, const struct rv_node *node, struct rv_test_config *test)
{
    const char *outer = r->path;

    if (node->kind != RV_NODE_MAP || node->n > MAX_ASSERTIONS) {
        rv_keys_wrong_type(r, node, "near", "a map from at most 100 expressions to {to, within}");
        return;
    }
    test->near = config_loader_array(config_loader_of(r), node->n + 1, sizeof *test->near);
    for (size_t i = 0; test->near && i < node->n; i++) {
        struct rv_test_near *near = &test->near[test->n_near];
        r->path = NULL;
        near->value = config_loader_expr(r, node->keys[i], "expect.near", RV_TEXT_OF_TEST);
        r->path = "expect.near.";
        if (node->items[i]->kind == RV_NODE_MAP)
            rv_keys_read(r, node->items[i], near_keys, RV_COUNT(near_keys), near);
        else
            rv_keys_not_a_map(r, node->items[i], node->keys[i]->text.ptr, near_keys[0].name);
        test->n_near += near->value != NULL;
    }
    r->path = outer;
}

/* --- judge --- */

#define JUDGE(member) offsetof(struct rv_test_judge, member)
static const struct rv_key judge_keys[] = {
    {"model", RV_KEY_STR, JUDGE(model), .src_offset = JUDGE(model_src), .required = true,
     .doc = "The model that judges: a role of `models`, or provider:model."},
    {"rubric", RV_KEY_STR, JUDGE(rubric), .required = true, .doc = "What the response has to be like."},
    {"votes", RV_KEY_INT, JUDGE(votes), .min = 1, .max = MAX_VOTES, .default_text = "1",
     .doc = "How often it is asked; more than half of the votes must be for the response."},
    {"threshold", RV_KEY_FLOAT, JUDGE(threshold), .min = 0, .max = 1, .default_text = "0.5",
     .doc = "The score, from 0 to 1, from which on a vote is for the response."},
    {"max_cost_usd", RV_KEY_FLOAT, JUDGE(max_cost_usd), .min = 0, .max = RV_MAX_USD,
     .is_set_offset = JUDGE(has_max_cost), .doc = "What all votes together may cost; the model needs a price then."},
    {"max_tokens", RV_KEY_INT, JUDGE(max_tokens), .min = 1, .max = 1e12,
     .doc = "No further vote once all votes together took so many tokens."},
};
const struct rv_key_table config_test_judge_table = {"test_judge", "A model that scores the response", judge_keys,
                                                     RV_COUNT(judge_keys), NULL};

static void read_judge_of(struct rv_key_reader *r, const struct rv_node *node, struct rv_test_config *test)
{
    const char *outer = r->path;

    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, "judge", "a map");
        return;
    }
    r->path = "expect.judge.";
    rv_keys_read(r, node, judge_keys, RV_COUNT(judge_keys), &test->judge);
    r->path = outer;
}

/* --- all of `expect` --- */

/* Values are checked by these tables and then kept as JSON, because the test runner compares JSON. */
struct raw_expect {
    struct rv_test_config *test; /* gets what is not compared as JSON */
    int status, terminal_reason, interrupt;
    int64_t llm_calls, iteration, max_duration_ms;
    const char *response;
    struct rv_str_list visited, questions;
};
#define EXPECT(member) offsetof(struct raw_expect, member)

struct raw_error {
    const char *agent, *contains;
};
static const struct rv_key error_keys[] = {
    {"agent", RV_KEY_STR, offsetof(struct raw_error, agent), .doc = "The stage that failed."},
    {"contains", RV_KEY_STR, offsetof(struct raw_error, contains), .doc = "A part of the error's text."},
};
const struct rv_key_table config_test_error_table = {"test_error", "An expected error", error_keys,
                                                     RV_COUNT(error_keys), NULL};

static void read_output(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP)
        rv_keys_wrong_type(r, node, "output", "a map from output key to the fields that matter");
}

static void read_contains(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_str_list list = {0};

    (void)target;
    if (node->kind == RV_NODE_LIST)
        rv_keys_str_list(r, node, "response_contains", &list);
    else if (node->kind != RV_NODE_STR)
        rv_keys_wrong_type(r, node, "response_contains", "a string or a list of strings");
}

static void read_errors(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    const char *outer = r->path;

    (void)target;
    if (node->kind == RV_NODE_INT && node->i64 >= 0)
        return;
    if (node->kind != RV_NODE_LIST) {
        rv_keys_wrong_type(r, node, "errors", "a count or a list of maps");
        return;
    }
    for (size_t i = 0; i < node->n; i++) {
        struct raw_error raw = {0};
        char path[48];
        snprintf(path, sizeof path, "expect.errors[%zu].", i);
        r->path = path;
        rv_keys_read(r, node->items[i], error_keys, RV_COUNT(error_keys), &raw);
    }
    r->path = outer;
}

/* A row whose value goes to the test itself. */
#define READ_OF_TEST(key)                                                                                              \
    static void read_##key(struct rv_key_reader *r, const struct rv_node *node, void *target)                          \
    {                                                                                                                  \
        read_##key##_of(r, node, *(struct rv_test_config **)target);                                                   \
    }
READ_OF_TEST(that)
READ_OF_TEST(schemas)
READ_OF_TEST(similar)
READ_OF_TEST(near)
READ_OF_TEST(judge)

static const struct rv_key expect_keys[] = {
    {"status", RV_KEY_TERM, EXPECT(status), .term_list = "run_status", .doc = "What the run comes to."},
    {"terminal_reason", RV_KEY_TERM, EXPECT(terminal_reason), .term_list = "reason", .doc = "Why it ended."},
    {"visited", RV_KEY_STR_LIST, EXPECT(visited), .doc = "Every stage visit, in order."},
    {"output", RV_KEY_CUSTOM, EXPECT(status), .read = read_output, .schema = "{\"type\":\"object\"}",
     .doc = "Map from output key to a value that must be part of the output."},
    {"response", RV_KEY_STR, EXPECT(response), .doc = "The final response, exactly."},
    {"response_contains", RV_KEY_CUSTOM, EXPECT(response), .read = read_contains,
     .schema = "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}",
     .doc = "A part of the final response, or several."},
    {"interrupt", RV_KEY_TERM, EXPECT(interrupt), .term_list = "interrupt_kind",
     .doc = "Kind of the interrupt that is pending at the end."},
    {"questions", RV_KEY_STR_LIST, EXPECT(questions),
     .doc = "Question or message of every interrupt, in the order they are raised."},
    {"errors", RV_KEY_CUSTOM, EXPECT(status), .read = read_errors,
     .schema = "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":0},"
               "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/test_error\"}}]}",
     .doc = "How many errors were recorded, or which."},
    {"llm_calls", RV_KEY_INT, EXPECT(llm_calls), .min = 0, .max = 1e9, .doc = "Model calls of the whole run."},
    {"iteration", RV_KEY_INT, EXPECT(iteration), .min = 0, .max = 1e9, .doc = "Loop-backs of the whole run."},
    {"max_duration_ms", RV_KEY_INT, EXPECT(max_duration_ms), .min = 1, .max = 1e9,
     .doc = "The run takes no longer, in the test's own time."},
    {"tool_calls", RV_KEY_CUSTOM, EXPECT(status), .read = read_calls,
     .schema = "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/test_call\"}}",
     .doc = "Every tool call, in the order in which they begin."},
    {"schema", RV_KEY_CUSTOM, EXPECT(test), .read = read_schemas,
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"type\":[\"object\",\"boolean\"]}}",
     .doc = "Map from output key to the JSON Schema that the output fits."},
    {"similar", RV_KEY_CUSTOM, EXPECT(test), .read = read_similar, .schema = "{\"$ref\":\"#/$defs/test_similar\"}",
     .doc = "A text that the response is like, compared by trigrams."},
    {"near", RV_KEY_CUSTOM, EXPECT(test), .read = read_near,
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/$defs/test_near\"}}",
     .doc = "Map from an expression to a number that its value is near to."},
    {"judge", RV_KEY_CUSTOM, EXPECT(test), .read = read_judge, .schema = "{\"$ref\":\"#/$defs/test_judge\"}",
     .doc = "A model that scores the response by a rubric."},
    {"that", RV_KEY_CUSTOM, EXPECT(test), .read = read_that,
     .schema = "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}",
     .doc = "An expression that is true at the end, or several."},
};
const struct rv_key_table config_test_expect_table = {"test_expect",
                                                      "What a test expects; keys that are left out are not compared",
                                                      expect_keys, RV_COUNT(expect_keys), NULL};

/* --- input --- */

struct raw_input {
    const char *raw_input, *user_id, *session_id;
};

static void read_metadata(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP)
        rv_keys_wrong_type(r, node, "metadata", "a map");
}

static const struct rv_key input_keys[] = {
    {"raw_input", RV_KEY_STR, offsetof(struct raw_input, raw_input), .doc = "What the user says."},
    {"user_id", RV_KEY_STR, offsetof(struct raw_input, user_id), .doc = "Who says it."},
    {"session_id", RV_KEY_STR, offsetof(struct raw_input, session_id), .doc = "The conversation it belongs to."},
    {"metadata", RV_KEY_CUSTOM, 0, .read = read_metadata, .schema = "{\"type\":\"object\"}",
     .doc = "Metadata of the envelope."},
};
const struct rv_key_table config_test_input_table = {"test_input", "What a test feeds in", input_keys,
                                                     RV_COUNT(input_keys), NULL};

static void read_checked_map(struct rv_key_reader *r, const struct rv_node *node, const char *key,
                             const struct rv_key_table *table, void *scratch, json_object **out)
{
    const char *outer = r->path;
    char path[16];

    if (node->kind != RV_NODE_MAP) {
        rv_keys_not_a_map(r, node, key, table->keys[0].name);
        return;
    }
    snprintf(path, sizeof path, "%s.", key);
    r->path = path;
    rv_keys_read(r, node, table->keys, table->n_keys, scratch);
    r->path = outer;
    rv_keys_json(r, node, out);
}

void config_read_test_input(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct raw_input raw = {0};

    read_checked_map(r, node, "input", &config_test_input_table, &raw, target);
}

void config_read_test_expect(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct raw_expect raw = {.test =
                                 (struct rv_test_config *)((char *)target - offsetof(struct rv_test_config, expect))};

    read_checked_map(r, node, "expect", &config_test_expect_table, &raw, target);
}
