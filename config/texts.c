/* Texts that loading compiles: conditions of routing rules, schemas of outputs, prompts. What needs other stages is
 * checked later. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/tests_internal.h"

/* --- Expressions and templates of stages --- */

struct rv_owned *config_loader_own(struct rv_loader *l)
{
    struct rv_owned *o = config_loader_array(l, 1, sizeof *o);

    if (o) {
        o->next = l->p->internal->owned;
        l->p->internal->owned = o;
    }
    return o;
}

/* A text was compiled, or not: that is a finding. Takes err. */
static void take_rc(struct rv_key_reader *r, const struct rv_node *node, const char *what, int rc, rv_err *err)
{
    if (rc == RV_E_NOMEM) {
        r->rc = rc;
    } else if (rc < 0) {
        if (what)
            rc = RV_WRAP(&err, rc, "%s \"%s\": %s", r->owner_kind, r->owner_name ? r->owner_name : "", what);
        rv_findings_add_text_err(r->findings, RV_SEVERITY_ERROR, node, err);
    }
    rv_err_free(err);
}

/* Prompts have these by their bare names, expressions below `envelope`. */
static void hint_envelope(rv_err **err)
{
    static const char *const names[] = {"raw_input", "user_id",       "session_id",
                                        "iteration", "loop_feedback", "prior_plans"};
    char text[64];

    for (size_t i = 0; i < RV_COUNT(names); i++) {
        snprintf(text, sizeof text, "unknown variable \"%s\"", names[i]);
        if (strstr(rv_err_text(*err), text))
            rv_err_set_hint(err, "in an expression it is envelope.%s", names[i]);
    }
}

/* What expressions can name at a place. */
static const char *const *variables_at(enum rv_text_place place, size_t *n)
{
    static const char *const of_stage[] = {"output", "outputs", "envelope", "metadata", "state", "interrupt",
                                           "models", "group",   "error",    "item",     "index", "inputs"};
    static const char *const of_test[] = {"response",  "outputs", "run",      "visited", "calls",
                                          "questions", "errors",  "metadata", "state"};
    size_t first = place == RV_TEXT_BEFORE_OUTPUT;

    if (place == RV_TEXT_OF_TEST) {
        *n = RV_COUNT(of_test);
        return of_test;
    }
    *n = RV_COUNT(of_stage) - first;
    return of_stage + first;
}

/* Have the names in an expression or a template (the other is NULL) of a stage checked with those of prompts. label:
 *  what it is of the stage, `rule 1: "when"`. */
static void note_text(struct rv_key_reader *r, const struct rv_node *node, const char *label, const rv_expr *expr,
                      const rv_template *template)
{
    struct rv_loader *l = config_loader_of(r);
    struct rv_noted_text *noted = config_loader_array(l, 1, sizeof *noted);
    char what[RV_MAX_STAGE_NAME + 96];

    snprintf(what, sizeof what, "%s \"%.*s\": %.60s", r->owner_kind, RV_MAX_STAGE_NAME,
             r->owner_name ? r->owner_name : "", label);
    if (!noted)
        return;
    *noted = (struct rv_noted_text){.what = rv_arena_dup(l->arena, rv_str_of(what)),
                                    .owner = strcmp(r->owner_kind, "agent") == 0 ? r->owner_name : NULL,
                                    .src = rv_node_text_src(node),
                                    .indent = node->is_block ? node->indent : 0,
                                    .expr = expr,
                                    .template = template,
                                    .next = l->noted};
    if (!noted->what)
        l->rc = RV_E_NOMEM;
    else
        l->noted = noted;
}

rv_expr *config_loader_expr(struct rv_key_reader *r, const struct rv_node *node, const char *what,
                            enum rv_text_place place)
{
    size_t n;
    const char *const *variables = variables_at(place, &n);
    struct rv_src src = rv_node_text_src(node);
    struct rv_owned *o = config_loader_own(config_loader_of(r));
    rv_err *err = NULL;

    if (!o)
        return NULL;
    int rc = rv_expr_compile(node->text, &src, variables, n, &o->expr, &err);
    if (rc == RV_E_NOT_FOUND && place != RV_TEXT_OF_TEST)
        hint_envelope(&err);
    take_rc(r, node, what, rc, err);
    if (o->expr && place != RV_TEXT_INSIDE)
        note_text(r, node, what, o->expr, NULL);
    return o->expr;
}

rv_template *config_loader_template(struct rv_key_reader *r, const struct rv_node *node, const char *what)
{
    struct rv_src src = rv_node_text_src(node);
    struct rv_owned *o = config_loader_own(config_loader_of(r));
    rv_err *err = NULL;

    if (!o)
        return NULL;
    int rc = rv_template_compile(node->text, &src, &o->template, &err);
    take_rc(r, node, what, rc, err);
    if (o->template && what)
        note_text(r, node, what, NULL, o->template);
    return o->template;
}

rv_expr *config_loader_condition(struct rv_key_reader *r, const struct rv_node *node, const char *what,
                                 enum rv_text_place place)
{
    rv_expr *e = config_loader_expr(r, node, what, place);
    struct rv_src src = rv_node_text_src(node);

    if (e && !rv_expr_may_be_bool(e))
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &src, "compare it with something: a condition is true or false",
                            "%s is never true or false", what);
    return e;
}

/* --- Routing rules --- */

/* A rule as it is written; which keys go together is decided afterwards. */
struct raw_rule {
    const char *condition, *when, *target_name;
    struct rv_branches branches;
    json_object *value;
    bool has_condition, has_value, has_when;
    struct rv_src target_src;
};
#define RULE(member) offsetof(struct raw_rule, member)

static void read_target(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct raw_rule *raw = (struct raw_rule *)((char *)target - RULE(target_name));

    config_read_targets(r, node, "target", &raw->target_name, &raw->branches);
    if (node->kind == RV_NODE_STR && !raw->target_name[0])
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%starget is required but empty", r->path);
}

static const struct rv_key rule_keys[] = {
    {"condition", RV_KEY_STR, RULE(condition), .is_set_offset = RULE(has_condition),
     .doc = "A top-level key of the stage's own output; the rule matches when it equals value."},
    {"value", RV_KEY_JSON, RULE(value), .is_set_offset = RULE(has_value), .schema = "true",
     .doc = "What the output's value is compared with, by type and value; 1 equals 1.0."},
    {"when", RV_KEY_STR, RULE(when), .is_set_offset = RULE(has_when),
     .doc =
         "An expression over output, outputs, envelope, metadata, state, interrupt and models; instead of condition."},
    {"target", RV_KEY_CUSTOM, RULE(target_name), .required = true, .src_offset = RULE(target_src), .read = read_target,
     .schema = "{\"anyOf\":[{\"type\":\"string\",\"minLength\":1}," RV_TARGET_LIST_SCHEMA "]}",
     .doc = "A stage, or end, clarification or confirmation; or a list of branches, as in default_next."},
};
const struct rv_key_table config_rule_table = {
    "rule", "A routing rule; the first that matches decides", rule_keys, RV_COUNT(rule_keys),
    "\"oneOf\":[{\"required\":[\"condition\",\"value\"],\"not\":{\"required\":[\"when\"]}},"
    "{\"required\":[\"when\"],\"not\":{\"anyOf\":[{\"required\":[\"condition\"]},{\"required\":[\"value\"]}]}}]"};

static void read_rule(struct rv_key_reader *r, const struct rv_node *node, size_t number, struct rv_rule *rule)
{
    struct raw_rule raw = {0};
    const char *outer = r->path;
    const struct rv_node *when = rv_node_get(node, "when");
    size_t n_errors = rv_findings_n_errors(r->findings);
    char label[32], path[48], what[48];

    snprintf(label, sizeof label, "rule %zu", number);
    snprintf(path, sizeof path, "routing_rules[%zu].", number - 1);
    r->path = path;
    rv_keys_read(r, node, rule_keys, RV_COUNT(rule_keys), &raw);
    r->path = outer;

    rule->src = node->src;
    rule->target_name = raw.target_name ? raw.target_name : "";
    rule->branches = raw.branches;
    rule->target_src = raw.target_src.line > 0 ? raw.target_src : node->src;
    rule->target = RV_TARGET_UNKNOWN;
    rule->condition = raw.has_condition ? raw.condition : NULL;
    rule->value = raw.value; /* the pipeline's now */
    snprintf(what, sizeof what, "%s: \"when\"", label);
    if (when && when->kind == RV_NODE_STR)
        rule->when = config_loader_condition(r, when, what, RV_TEXT_OF_STAGE);
    if (rv_findings_n_errors(r->findings) > n_errors)
        return; /* a mistyped key is not a missing one besides */
    if (raw.has_when && (raw.has_condition || raw.has_value))
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, "split it into two rules, or say both in \"when\"",
                            "%s has \"when\" and \"%s\"", label, raw.has_condition ? "condition" : "value");
    else if (!raw.has_when && !raw.has_condition)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src,
                            "write its target as default_next of the stage, which counts where no rule matches",
                            "%s has neither \"condition\" with \"value\" nor \"when\"", label);
    else if (!raw.has_when && !raw.has_value)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, "write \"value: null\" to compare with null",
                            "%s has \"condition\" but no \"value\"", label);
}

void config_read_rules(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent *a = (struct rv_agent *)((char *)target - offsetof(struct rv_agent, routing.rules));

    a->routing.rules = config_loader_items(
        r, node, "routing_rules", RV_LIST_OF("a list of rules", RV_MAX_RULES_PER_AGENT, sizeof *a->routing.rules),
        &a->routing.n_rules);
    for (size_t i = 0; i < a->routing.n_rules; i++)
        read_rule(r, node->items[i], i + 1, &a->routing.rules[i]);
}

/* --- Output schemas --- */

/* output_schema: a map, or a file next to the pipeline. What it may say is checked where schemas are known. */

/* The file is JSON, or YAML, which JSON is a part of. */
static void read_text(struct rv_key_reader *r, const char *path, rv_str text, struct rv_agent_output *out)
{
    struct rv_loader *l = config_loader_of(r);
    struct rv_owned *o = config_loader_own(l);
    const struct rv_node *root;

    if (!o)
        return;
    if (rv_yaml_parse(text, path, l->findings, &o->doc,
                      RV_CODE_ONLY("faults of the file are findings; the rest is want of memory")) < 0)
        l->rc = RV_E_NOMEM;
    root = o->doc ? rv_yaml_root(o->doc) : NULL;
    out->written = root;
    if (root && root->kind == RV_NODE_MAP)
        rv_keys_read_json(r, root, &out->schema);
    else if (o->doc)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &(struct rv_src){path, 1, 1}, NULL,
                            "output_schema must be a map, not %s",
                            root ? rv_node_kind_text(root->kind) : "an empty file");
}

void config_read_output_schema(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);
    struct rv_agent_output *out = (struct rv_agent_output *)((char *)target - offsetof(struct rv_agent_output, schema));
    const struct rv_node *file = rv_node_get(node, "file");
    rv_str text = {NULL, 0};
    const char *path;
    char what[RV_MAX_STAGE_NAME + 48];

    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, "output_schema", "a map");
    } else if (node->n == 1 && file) { /* no keyword of JSON Schema is called that */
        if (file->kind != RV_NODE_STR) {
            rv_keys_add_wrong_type(r, file, "output_schema.file", "a string");
            return;
        }
        snprintf(what, sizeof what, "agent \"%.*s\": output_schema", RV_MAX_STAGE_NAME,
                 r->owner_name ? r->owner_name : "");
        path = config_loader_path(l, file->text);
        if (path && config_loader_text_file(l, what, path, &file->src, &text))
            read_text(r, path, text, out);
    } else {
        out->written = node;
        rv_keys_read_json(r, node, &out->schema);
    }
}

/* --- Prompts: texts and files, compiled to templates --- */

struct raw_prompt {
    const char *unused; /* offset 0 */
    const char *file;
};

static const struct rv_key prompt_keys[] = {
    {"file", RV_KEY_STR, offsetof(struct raw_prompt, file), .required = true,
     .doc = "A text file, relative to the pipeline's folder."},
};
const struct rv_key_table config_prompt_table = {"prompt", "A prompt in a file", prompt_keys, RV_COUNT(prompt_keys),
                                                 NULL};

/* node: where the text stands; NULL for a file */
static void compile(struct rv_loader *l, rv_str text, const struct rv_node *node, struct rv_prompt_config *out)
{
    rv_err *err = NULL;
    int rc = rv_template_compile(text, &out->src, &out->compiled, &err);

    if (rc == RV_E_NOMEM) {
        l->rc = rc;
    } else if (rc < 0) {
        rc = RV_WRAP(&err, rc, "prompt \"%s\"", out->key);
        if (node)
            rv_findings_add_text_err(l->findings, RV_SEVERITY_ERROR, node, err);
        else
            rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, &out->src, err);
    }
    rv_err_free(err);
}

static void read_file(struct rv_key_reader *r, const struct rv_node *node, struct rv_prompt_config *out)
{
    struct rv_loader *l = config_loader_of(r);
    struct raw_prompt raw = {0};
    const struct rv_node *place = rv_node_get(node, "file");
    char what[160];
    rv_str text = {NULL, 0};

    rv_keys_read(r, node, prompt_keys, RV_COUNT(prompt_keys), &raw);
    if (!place || !raw.file || !raw.file[0])
        return;
    out->file = config_loader_path(l, rv_str_of(raw.file));
    snprintf(what, sizeof what, "prompt \"%.100s\"", out->key);
    if (!out->file || !config_loader_text_file(l, what, out->file, &place->src, &text))
        return;
    out->src = (struct rv_src){out->file, 1, 1};
    compile(l, text, NULL, out);
}

/* The prompts in the place of those of the section, for a test of a matrix; NULL: none. */
static const struct rv_node *other_prompts(const struct rv_loader *l)
{
    const struct rv_test_place *place = l->opts->place;
    const struct rv_node *tests = rv_node_get(l->root, "tests");

    if (!place || !place->prompts || !tests || tests->kind != RV_NODE_LIST || place->written >= tests->n)
        return NULL;
    return rv_node_get(rv_node_get(rv_node_get(tests->items[place->written], "matrix"), RV_TEST_AXIS_PROMPTS),
                       place->prompts);
}

void config_read_prompts(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);
    const struct rv_node *others = other_prompts(l);
    size_t n;

    (void)target;
    l->p->prompts = config_loader_items(r, node, "prompts",
                                        RV_MAP_OF("a map from key to text", RV_MAX_PROMPTS, sizeof *l->p->prompts), &n);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        struct rv_prompt_config *out = &l->p->prompts[i];
        const struct rv_node *other = rv_node_get(others, node->keys[i]->text.ptr);
        const struct rv_node *value = other ? other : node->items[i];
        struct rv_key_reader inner = {.arena = l->arena, .findings = l->findings, .owner_kind = "prompt", .user = l};

        l->p->n_prompts = i + 1;
        out->key = node->keys[i]->text.ptr;
        out->src = rv_node_text_src(value);
        out->key_src = node->keys[i]->src;
        inner.owner_name = out->key;
        if (value->kind == RV_NODE_STR) {
            out->indent = value->is_block ? value->indent : 0;
            compile(l, value->text, value, out);
        } else if (value->kind == RV_NODE_MAP) {
            read_file(&inner, value, out);
        } else {
            rv_keys_add_finding(&inner, RV_SEVERITY_ERROR, &value->src, "write {file: path} for a text file",
                                "must be a text or a map with \"file\", not %s", rv_node_kind_text(value->kind));
        }
        if (inner.rc < 0)
            l->rc = inner.rc;
    }
}
