/* The `tests` section: what a test feeds in and what it expects. Running them is not done here. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config/config_internal.h"

/* Values are checked by these tables and then kept as JSON, because the test runner compares JSON. */
struct raw_expect {
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
const struct rv_key_table rv_test_error_table = {"test_error", "An expected error", error_keys, RV_COUNT(error_keys),
                                                 NULL};

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
};
const struct rv_key_table rv_test_expect_table = {"test_expect",
                                                  "What a test expects; keys that are left out are not compared",
                                                  expect_keys, RV_COUNT(expect_keys), NULL};

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
const struct rv_key_table rv_test_input_table = {"test_input", "What a test feeds in", input_keys, RV_COUNT(input_keys),
                                                 NULL};

static void read_checked_map(struct rv_key_reader *r, const struct rv_node *node, const char *key,
                             const struct rv_key_table *table, void *scratch, json_object **out)
{
    const char *outer = r->path;
    char path[16];

    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, key, "a map");
        return;
    }
    snprintf(path, sizeof path, "%s.", key);
    r->path = path;
    rv_keys_read(r, node, table->keys, table->n_keys, scratch);
    r->path = outer;
    rv_keys_json(r, node, out);
}

static void read_input(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct raw_input raw = {0};

    read_checked_map(r, node, "input", &rv_test_input_table, &raw, target);
}

static void read_expect(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct raw_expect raw = {0};

    read_checked_map(r, node, "expect", &rv_test_expect_table, &raw, target);
}

static void read_envelope(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    if (node->kind != RV_NODE_MAP)
        rv_keys_wrong_type(r, node, "envelope", "a map");
    else
        rv_keys_json(r, node, target);
}

#define AT(member) offsetof(struct rv_test_config, member)

/* A path, or the script itself. */
static void read_script(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_test_config *test = (struct rv_test_config *)((char *)target - AT(script));
    struct stat st;

    if (node->kind == RV_NODE_MAP) {
        test->inline_script = node;
        return;
    }
    if (node->kind != RV_NODE_STR || node->text.len == 0) {
        rv_keys_wrong_type(r, node, "script", "a path or a map");
        return;
    }
    test->script = rv_loader_path(rv_loader_of(r), node->text);
    if (test->script && !rv_loader_of(r)->opts->file && stat(test->script, &st) < 0)
        rv_keys_finding(r, RV_SEVERITY_WARNING, &node->src, "paths start at the pipeline's folder",
                        "the script \"%s\" cannot be found", test->script);
}

static const struct rv_key test_keys[] = {
    {"name", RV_KEY_STR, AT(name), .required = true, .doc = "What the test shows."},
    {"input", RV_KEY_CUSTOM, AT(input), .read = read_input, .schema = "{\"$ref\":\"#/$defs/test_input\"}",
     .doc = "What the run starts with."},
    {"envelope", RV_KEY_CUSTOM, AT(envelope), .read = read_envelope, .schema = "{\"type\":\"object\"}",
     .doc = "A partial state dict to start from."},
    {"script", RV_KEY_CUSTOM, AT(script), .src_offset = AT(script_src), .read = read_script,
     .schema = "{\"anyOf\":[{\"type\":\"string\",\"minLength\":1},{\"type\":\"object\"}]}",
     .doc = "What stands in for models, stages, tools, hooks and people: a file, or the script itself."},
    {"mode", RV_KEY_TERM, AT(mode), .term_list = "run_mode", .doc = "Run mode; unset: the pipeline's."},
    {"mock", RV_KEY_BOOL, AT(mock), .default_text = "false", .doc = "Use mock handlers."},
    {"without", RV_KEY_STR_LIST, AT(without),
     .doc = "Capabilities that the test does without where they cannot be loaded; any other that is missing fails it."},
    {"expect", RV_KEY_CUSTOM, AT(expect), .read = read_expect, .schema = "{\"$ref\":\"#/$defs/test_expect\"}",
     .doc = "What the run must come to."},
};
const struct rv_key_table rv_test_table = {"test", "A test of the pipeline", test_keys, RV_COUNT(test_keys), NULL};

void rv_read_tests(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = rv_loader_of(r);
    size_t n;

    (void)target;
    l->p->tests = rv_loader_items(r, node, RV_NODE_LIST, "tests", RV_MAX_TEST_CONFIGS, sizeof *l->p->tests, &n);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        struct rv_test_config *test = &l->p->tests[i];
        const struct rv_node *name = rv_node_get(node->items[i], "name");
        struct rv_key_reader inner = {.arena = l->arena, .findings = l->findings, .owner_kind = "test", .user = l};

        l->p->n_tests = i + 1;
        test->src = node->items[i]->src;
        inner.owner_name = name && name->kind == RV_NODE_STR ? name->text.ptr : NULL;
        rv_keys_read(&inner, node->items[i], test_keys, RV_COUNT(test_keys), test);
        if (!test->expect && !(test->expect = json_object_new_object()))
            l->rc = RV_E_NOMEM;
        if (inner.rc < 0)
            l->rc = inner.rc;
    }
}

/* --- Names in expectations, once all stages are known --- */

static void check_visited(struct rv_loader *l, const char *test, const struct rv_node *list)
{
    char hint[RV_HINT_MAX];

    for (size_t i = 0; list && list->kind == RV_NODE_LIST && i < list->n; i++) {
        const struct rv_node *item = list->items[i];
        if (item->kind != RV_NODE_STR || rv_pipeline_stage(l->p, item->text) >= 0)
            continue;
        rv_name_hint(l->findings, item->text, "stages", l->p->stage_names, l->p->n_agents, hint);
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &item->src, hint,
                        "test \"%s\": expect.visited names \"%s\", which is not a stage", test, item->text.ptr);
    }
}

/* What the chained tool of a stage answers is kept beside its output. */
static rv_str without_chained(rv_str key)
{
    const rv_str end = RV_STR_LIT("_chained");

    if (key.len > end.len && memcmp(key.ptr + key.len - end.len, end.ptr, end.len) == 0)
        key.len -= end.len;
    return key;
}

static void check_output(struct rv_loader *l, const char *test, const struct rv_node *map)
{
    for (size_t i = 0; map && map->kind == RV_NODE_MAP && i < map->n; i++) {
        const struct rv_node *key = map->keys[i];
        if (rv_index_get(&l->p->internal->output_index, key->text) < 0 &&
            rv_index_get(&l->p->internal->output_index, without_chained(key->text)) < 0)
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &key->src, NULL,
                            "test \"%s\": expect.output names \"%s\", which is not the output key of a stage", test,
                            key->text.ptr);
    }
}

static void check_errors(struct rv_loader *l, const char *test, const struct rv_node *list)
{
    char hint[RV_HINT_MAX];

    for (size_t i = 0; list && list->kind == RV_NODE_LIST && i < list->n; i++) {
        const struct rv_node *agent = rv_node_get(list->items[i], "agent");
        if (!agent || agent->kind != RV_NODE_STR || rv_pipeline_stage(l->p, agent->text) >= 0)
            continue;
        rv_name_hint(l->findings, agent->text, "stages", l->p->stage_names, l->p->n_agents, hint);
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &agent->src, hint,
                        "test \"%s\": expect.errors names \"%s\", which is not a stage", test, agent->text.ptr);
    }
}

static void check_without(struct rv_loader *l, const char *test, const struct rv_node *list)
{
    for (size_t i = 0; list && list->kind == RV_NODE_LIST && i < list->n; i++) {
        const struct rv_node *item = list->items[i];
        bool known = item->kind != RV_NODE_STR; /* reported as such */
        for (size_t c = 0; !known && c < l->p->n_capabilities; c++)
            known = rv_str_is(item->text, l->p->capabilities[c].name);
        if (!known)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &item->src, NULL,
                            "test \"%s\": without names \"%s\", which is not a capability of the pipeline", test,
                            item->text.ptr);
    }
}

void rv_check_tests(struct rv_loader *l)
{
    const struct rv_node *tests = rv_node_get(l->root, "tests");

    for (size_t i = 0; i < l->p->n_tests; i++) {
        const struct rv_node *expect = rv_node_get(tests->items[i], "expect");
        const char *name = l->p->tests[i].name;

        check_without(l, name, rv_node_get(tests->items[i], "without"));
        check_visited(l, name, rv_node_get(expect, "visited"));
        check_output(l, name, rv_node_get(expect, "output"));
        check_errors(l, name, rv_node_get(expect, "errors"));
    }
}
