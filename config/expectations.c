/* The `tests` section: its tests, and the names in what they expect. Running them is not done here. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/tests_internal.h"

#define AT(member) offsetof(struct rv_test_config, member)

static void read_envelope(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    if (node->kind != RV_NODE_MAP)
        rv_keys_add_wrong_type(r, node, "envelope", "a map");
    else
        rv_keys_read_json(r, node, target);
}

/* A path, or the script itself. */
static void read_script(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_test_config *test = (struct rv_test_config *)((char *)target - AT(script));

    if (node->kind == RV_NODE_MAP) {
        test->inline_script = node;
        return;
    }
    if (node->kind != RV_NODE_STR || node->text.len == 0) {
        rv_keys_add_wrong_type(r, node, "script", "a path or a map");
        return;
    }
    test->script = config_loader_path(config_loader_of(r), node->text); /* the tests read it, and fail with its error */
}

/* `cases` and `matrix` are read before all other keys (test_cases.c). */
static void read_cases(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)r;
    (void)node;
    (void)target;
}

static const struct rv_key test_keys[] = {
    {"name", RV_KEY_STR, AT(name), .required = true, .doc = "What the test shows."},
    {"input", RV_KEY_CUSTOM, AT(input), .read = config_read_test_input, .schema = "{\"$ref\":\"#/$defs/test_input\"}",
     .doc = "What the run starts with."},
    {"envelope", RV_KEY_CUSTOM, AT(envelope), .read = read_envelope, .schema = "{\"type\":\"object\"}",
     .doc = "A partial state dict to start from."},
    {"script", RV_KEY_CUSTOM, AT(script), .src_offset = AT(script_src), .read = read_script,
     .schema = "{\"anyOf\":[{\"type\":\"string\",\"minLength\":1},{\"type\":\"object\"}]}",
     .doc = "What stands in for models, stages, tools, hooks and people: a file, or the script itself."},
    {"mode", RV_KEY_TERM, AT(mode), .term_list = "run_mode", .doc = "Run mode; unset: the pipeline's."},
    {"mock", RV_KEY_BOOL, AT(mock), .default_text = "false", .doc = "Use mock handlers."},
    {"min_pass_rate", RV_KEY_FLOAT, AT(min_pass_rate), .min = 0, .max = 1, .is_set_offset = AT(has_min_pass_rate),
     .doc = "With `reeve test --repeat`: the part of its runs that must pass; unset: that of --min-pass-rate, else 1."},
    {"without", RV_KEY_STR_LIST, AT(without),
     .doc = "Capabilities that the test does without where they cannot be loaded; any other that is missing fails it."},
    {"cases", RV_KEY_CUSTOM, AT(input), .read = read_cases,
     .schema =
         "{\"anyOf\":[{\"type\":\"string\",\"minLength\":1},{\"type\":\"array\",\"items\":{\"type\":\"object\"}}]}",
     .doc =
         "A list of maps, or the path of a table: the test is run once for each row, with its values in the place of "
         "{{case.NAME}}."},
    {"matrix", RV_KEY_CUSTOM, AT(input), .read = read_cases,
     .schema = "{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":8,\"additionalProperties\":{\"anyOf\":["
               "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":[\"string\",\"number\",\"boolean\"]}},"
               "{\"type\":\"object\",\"minProperties\":1}]}}",
     .doc = "A map from axis to values: the test is run once for each combination, with its values in the place of "
            "{{matrix.AXIS}}. The axis `model` names models to ask, the axis `prompts` other prompts."},
    {"expect", RV_KEY_CUSTOM, AT(expect), .read = config_read_test_expect,
     .schema = "{\"$ref\":\"#/$defs/test_expect\"}", .doc = "What the run must come to."},
};
const struct rv_key_table config_test_table = {"test", "A test of the pipeline", test_keys, RV_COUNT(test_keys), NULL};

#define LABEL_BYTES 40 /* of a value in the name of a test */

/* "model=openai:gpt-4.1-mini"; a long value is cut, and then its number tells it apart. */
static void write_label(const struct rv_test_axis_label *label, rv_buf *b)
{
    rv_str all = rv_str_of(label->label), head = rv_utf8_cut(all, LABEL_BYTES);

    rv_buf_printf(b, "%s=%.*s", label->axis, RV_STR_ARG(head));
    if (head.len < all.len)
        rv_buf_printf(b, "... (%zu)", label->number);
}

/* "NAME [3, model=MODEL]", unless the name has something of the case and of the matrix. */
static const char *full_name(struct rv_loader *l, const struct rv_test_node *t, const char *name)
{
    bool has_number = t->place.number > 0 && !t->is_named, has_labels = t->place.n_labels > 0 && !t->place.is_named;
    rv_buf text = RV_BUF_INIT(RV_TEMPLATE_MAX_OUTPUT);

    if (!has_number && !has_labels)
        return name;
    rv_buf_printf(&text, "%s [", name);
    if (has_number)
        rv_buf_printf(&text, "%d%s", t->place.number, has_labels ? ", " : "");
    for (size_t i = 0; has_labels && i < t->place.n_labels; i++) {
        rv_buf_puts(&text, i ? ", " : "");
        write_label(&t->place.labels[i], &text);
    }
    rv_buf_puts(&text, "]");
    const char *out = text.rc < 0 ? NULL : rv_arena_dup(l->arena, rv_buf_str(&text));
    rv_buf_fini(&text);
    if (!out)
        l->rc = RV_E_NOMEM;
    return out ? out : name;
}

static const struct rv_key_word *words_of(const struct rv_key *keys)
{
    return keys == test_keys ? config_test_words : keys == config_test_expect_table.keys ? config_expect_words : NULL;
}

static struct rv_key_reader reader_of(struct rv_loader *l, const struct rv_node *test)
{
    const struct rv_node *name = rv_node_get(test, "name");

    return (struct rv_key_reader){.arena = l->arena,
                                  .findings = l->findings,
                                  .owner_kind = "test",
                                  .owner_name = name && name->kind == RV_NODE_STR ? name->text.ptr : NULL,
                                  .user = l,
                                  .words = words_of,
                                  .page = "pipelines"};
}

static void read_test(struct rv_loader *l, const struct rv_test_node *t, struct rv_test_config *test)
{
    struct rv_key_reader r = reader_of(l, t->node);

    test->src = t->node->src;
    test->node = t->node;
    rv_keys_read(&r, t->node, test_keys, RV_COUNT(test_keys), test);
    test->place = t->place;
    if (test->name)
        test->name = full_name(l, t, test->name);
    if (!test->expect && !(test->expect = json_object_new_object()))
        l->rc = RV_E_NOMEM;
    if (r.rc < 0)
        l->rc = r.rc;
}

static void read_entry(struct rv_loader *l, const struct rv_node *node, size_t written, struct rv_test_nodes *nodes)
{
    struct rv_key_reader r = reader_of(l, node);

    config_read_test_cases(&r, node, written, nodes);
    if (r.rc < 0)
        l->rc = r.rc;
}

void config_read_tests(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);
    struct rv_test_nodes nodes = {0};

    (void)target;
    if (node->kind != RV_NODE_LIST) {
        rv_keys_add_wrong_type(r, node, "tests", "a list of maps with a name");
        return;
    }
    for (size_t i = 0; i < node->n && l->rc == 0; i++)
        read_entry(l, node->items[i], i, &nodes);
    if (nodes.n > RV_MAX_TEST_CONFIGS) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "tests has %zu entries (the limit is %d)", nodes.n,
                            RV_MAX_TEST_CONFIGS);
        return;
    }
    l->p->tests = config_loader_array(l, nodes.n, sizeof *l->p->tests);
    for (size_t i = 0; i < nodes.n && l->rc == 0; i++) {
        l->p->n_tests = i + 1;
        read_test(l, &nodes.items[i], &l->p->tests[i]);
    }
}

/* --- Names in expectations, once all stages are known --- */

static void check_visited(struct rv_loader *l, const char *test, const struct rv_node *list)
{
    char hint[RV_HINT_MAX];

    for (size_t i = 0; list && list->kind == RV_NODE_LIST && i < list->n; i++) {
        const struct rv_node *item = list->items[i];
        if (item->kind != RV_NODE_STR || rv_pipeline_find_stage(l->p, item->text) >= 0)
            continue;
        config_name_hint(l->findings, item->text, "stages", l->p->stage_names, l->p->n_agents, hint);
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

static void check_outputs(struct rv_loader *l, const char *test, const char *key, const struct rv_node *map)
{
    for (size_t i = 0; map && map->kind == RV_NODE_MAP && i < map->n; i++) {
        const struct rv_node *name = map->keys[i];
        if (rv_index_get(&l->p->internal->output_index, name->text) < 0 &&
            rv_index_get(&l->p->internal->output_index, without_chained(name->text)) < 0)
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &name->src, NULL,
                            "test \"%s\": expect.%s names \"%s\", which is not the output key of a stage", test, key,
                            name->text.ptr);
    }
}

/* The member of each item of a list that names a stage. */
static void check_stages(struct rv_loader *l, const char *test, const char *key, const struct rv_node *list,
                         const char *member)
{
    char hint[RV_HINT_MAX];

    for (size_t i = 0; list && list->kind == RV_NODE_LIST && i < list->n; i++) {
        const struct rv_node *stage = rv_node_get(list->items[i], member);
        if (!stage || stage->kind != RV_NODE_STR || rv_pipeline_find_stage(l->p, stage->text) >= 0)
            continue;
        config_name_hint(l->findings, stage->text, "stages", l->p->stage_names, l->p->n_agents, hint);
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &stage->src, hint,
                        "test \"%s\": expect.%s names \"%s\", which is not a stage", test, key, stage->text.ptr);
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

static void check_judge(struct rv_loader *l, const char *test, const struct rv_test_judge *judge)
{
    if (!judge->rubric || !judge->model || strchr(judge->model, ':') ||
        rv_pipeline_find_model(l->p, rv_str_of(judge->model)))
        return;
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &judge->model_src,
                    "name a role of models, or provider:model, for example openai:gpt-4.1-mini",
                    "test \"%s\": expect.judge.model names \"%s\", which is not a role of models", test, judge->model);
}

/* What the axis `prompts` replaces has to be there. */
static void check_prompts(struct rv_loader *l, const char *test, const struct rv_node *sets)
{
    const char **names = config_loader_array(l, l->p->n_prompts + 1, sizeof *names);
    char hint[RV_HINT_MAX];

    for (size_t i = 0; names && i < l->p->n_prompts; i++)
        names[i] = l->p->prompts[i].key;
    for (size_t i = 0; names && sets->kind == RV_NODE_MAP && i < sets->n; i++) {
        const struct rv_node *set = sets->items[i];
        for (size_t k = 0; set->kind == RV_NODE_MAP && k < set->n; k++) {
            const struct rv_node *key = set->keys[k];
            if (rv_pipeline_find_prompt(l->p, key->text))
                continue;
            config_name_hint(l->findings, key->text, "prompts", names, l->p->n_prompts, hint);
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &key->src, hint,
                            "test \"%s\": matrix.prompts names \"%s\", which is not a prompt of the pipeline", test,
                            key->text.ptr);
        }
    }
}

/* An empty list is compared, as of `visited`; these say nothing then. */
static bool says_nothing(const char *key, json_object *v)
{
    static const char *const keys[] = {"output", "response_contains", "schema", "near", "that"};

    for (size_t i = 0; i < RV_COUNT(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return (json_object_is_type(v, json_type_object) && json_object_object_length(v) == 0) ||
                   (json_object_is_type(v, json_type_array) && json_object_array_length(v) == 0);
    return false;
}

static void check_compares(struct rv_loader *l, const struct rv_test_config *test, const struct rv_node *expect)
{
    const char *name = test->place.name ? test->place.name : test->name;

    if (expect && expect->kind != RV_NODE_MAP)
        return; /* reported as such */
    json_object_object_foreach (test->expect, key, v)
        if (!says_nothing(key, v))
            return;
    rv_findings_add_as(l->findings, RV_SEVERITY_WARNING, RV_TEST_COMPARES_NOTHING, expect ? &expect->src : &test->src,
                       "say what the run must come to, for example `expect: {status: completed}`",
                       "test \"%s\" compares nothing: %s", name ? name : "",
                       expect ? "its `expect` has nothing to compare" : "it has no `expect`");
}

/* Once for all its combinations, which have the same node. */
static bool is_first_of_entry(const struct rv_loader *l, size_t i)
{
    return i == 0 || l->p->tests[i - 1].place.written != l->p->tests[i].place.written;
}

void config_check_tests(struct rv_loader *l)
{
    for (size_t i = 0; i < l->p->n_tests; i++) {
        const struct rv_node *node = l->p->tests[i].node, *expect = rv_node_get(node, "expect");
        const char *name = l->p->tests[i].name;

        const struct rv_node *prompts = rv_node_get(rv_node_get(node, "matrix"), RV_TEST_AXIS_PROMPTS);

        if (is_first_of_entry(l, i))
            check_compares(l, &l->p->tests[i], expect);
        if (prompts && is_first_of_entry(l, i))
            check_prompts(l, l->p->tests[i].place.name, prompts);
        check_without(l, name, rv_node_get(node, "without"));
        check_visited(l, name, rv_node_get(expect, "visited"));
        check_outputs(l, name, "output", rv_node_get(expect, "output"));
        check_outputs(l, name, "schema", rv_node_get(expect, "schema"));
        check_stages(l, name, "errors", rv_node_get(expect, "errors"), "agent");
        check_judge(l, name, &l->p->tests[i].judge);
        check_stages(l, name, "tool_calls", rv_node_get(expect, "tool_calls"), "stage");
    }
}
