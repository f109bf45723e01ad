/* The keys by which a stage opens a group of branches, joins one, works through a list, runs another pipeline, builds
 * its output from expressions, and asks a person. What needs other stages is checked later. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

#define MAX_BRANCHES    256
#define MAX_BUILT_DEPTH 32
#define MAX_CHOICE      64 /* bytes: choices stand on buttons and in one line of a terminal */
#define MAX_SECONDS     31536000

/* --- Lists of targets --- */

struct raw_branch {
    const char *name, *when;
    struct rv_src name_src;
};
static const struct rv_key branch_keys[] = {
    {"target", RV_KEY_STR, offsetof(struct raw_branch, name), .required = true,
     .src_offset = offsetof(struct raw_branch, name_src), .doc = "A stage: the first of the branch."},
    {"when", RV_KEY_STR, offsetof(struct raw_branch, when),
     .doc = "An expression; where it is false the branch is not begun and counts as ended."},
};
const struct rv_key_table rv_branch_table = {"branch", "A branch of a list of targets", branch_keys,
                                             RV_COUNT(branch_keys), NULL};

static void read_branch(struct rv_key_reader *r, const struct rv_node *node, const char *key, size_t i,
                        struct rv_branch_target *out)
{
    char label[64];
    const char *outer = r->path;

    snprintf(label, sizeof label, "%s[%zu]", key, i);
    out->src = node->src;
    out->target = RV_TARGET_UNKNOWN;
    out->name = "";
    if (node->kind == RV_NODE_STR) {
        out->name = node->text.ptr;
        if (!out->name[0])
            rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, "write the name of a stage", "%s is empty", label);
        return;
    }
    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, label, "the name of a stage or {target: NAME, when: EXPRESSION}");
        return;
    }
    struct raw_branch raw = {0};
    char path[72];
    snprintf(path, sizeof path, "%s.", label);
    r->path = path;
    rv_keys_read(r, node, branch_keys, RV_COUNT(branch_keys), &raw);
    r->path = outer;
    out->name = raw.name ? raw.name : "";
    if (raw.name_src.line > 0)
        out->src = raw.name_src;
    const struct rv_node *when = rv_node_get(node, "when");
    snprintf(path, sizeof path, "%s.when", label);
    if (when && when->kind == RV_NODE_STR)
        out->when = rv_loader_condition(r, when, path, RV_TEXT_OF_STAGE);
}

void rv_read_targets(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char **name,
                     struct rv_branches *out)
{
    *name = "";
    if (node->kind == RV_NODE_STR) {
        *name = node->text.ptr;
        return;
    }
    if (node->kind != RV_NODE_LIST) {
        rv_keys_wrong_type(r, node, key, "the name of a stage or a list of branches");
        return;
    }
    out->items = rv_loader_items(r, node, "a list", key, MAX_BRANCHES, sizeof *out->items, &out->n);
    out->is_list = true;
    out->src = node->src;
    rv_loader_of(r)->p->has_groups = true;
    if (node->n == 0) {
        const char *code = r->code;
        r->code = "empty_list";
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, "name at least one stage, or write end in place of the list",
                        "%s is an empty list", key);
        r->code = code;
    }
    for (size_t i = 0; i < out->n; i++)
        read_branch(r, node->items[i], key, i, &out->items[i]);
}

void rv_read_default_next(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_routing *routing =
        (struct rv_agent_routing *)((char *)target - offsetof(struct rv_agent_routing, default_next));

    rv_read_targets(r, node, "default_next", &routing->default_next, &routing->branches);
}

/* One name. A list would have to be joined, and what goes on after a failure or an answer is one branch. */
static void one_target(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char **name)
{
    if (node->kind == RV_NODE_STR) {
        *name = node->text.ptr;
        return;
    }
    if (node->kind != RV_NODE_LIST) {
        rv_keys_wrong_type(r, node, key, "the name of a stage");
        return;
    }
    const char *code = r->code;
    r->code = "bad_branch";
    rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src,
                    "name one stage, and let the default_next of that stage be the list",
                    "%s is a list of branches: only default_next and the target of a rule can be one", key);
    r->code = code;
}

void rv_read_error_next(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    one_target(r, node, "error_next", target);
}

/* --- Joins --- */

static const struct rv_term failures[] = {
    [RV_FAILURES_DRAIN] = {"drain", "the other branches finish; then the join fails"},
    [RV_FAILURES_FAST] = {"fast", "the first failure cancels the other branches, and the join fails"},
    [RV_FAILURES_COLLECT] = {"collect", "the join goes on; the failures are in group.failed"},
};
static const struct rv_term_list join_failures_list = {"failures", "way to treat failed branches", failures,
                                                       RV_COUNT(failures)};

static const struct rv_term merges[] = {
    [RV_MERGE_REPLACE] = {"replace", "the new value stands"},
    [RV_MERGE_APPEND] = {"append", "the new value goes to the end of a list"},
    [RV_MERGE_DICT] = {"merge_dict", "the new value's keys are set in the old one"},
};
const struct rv_term_list rv_merge_list = {"merge", "way to merge", merges, RV_COUNT(merges)};

static void read_merges(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_join *join = (struct rv_agent_join *)((char *)target - offsetof(struct rv_agent_join, merges));
    size_t n;

    join->merges =
        rv_loader_items(r, node, "a map from key to a way of merging", "merge", 1024, sizeof *join->merges, &n);
    for (size_t i = 0; i < n; i++) {
        const struct rv_node *value = node->items[i];
        char key[192];
        int how = RV_UNSET;

        snprintf(key, sizeof key, "merge.%.128s", node->keys[i]->text.ptr);
        for (size_t k = 0; value->kind == RV_NODE_STR && k < rv_merge_list.n; k++)
            if (rv_str_is(value->text, rv_merge_list.terms[k].text))
                how = (int)k;
        if (how == RV_UNSET) {
            rv_keys_wrong_type(r, value, key, "replace, append or merge_dict");
            continue;
        }
        join->merges[join->n_merges++] = (struct rv_join_merge){node->keys[i]->text.ptr, how, node->keys[i]->src};
    }
}

static void read_wait(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    static const struct {
        const char *word;
        int wait;
        int64_t count;
    } words[] = {{"all", RV_WAIT_ALL, 0}, {"any", RV_WAIT_ANY, 0}, {"first", RV_WAIT_COUNT, 1}};
    struct rv_agent_join *join = (struct rv_agent_join *)((char *)target - offsetof(struct rv_agent_join, wait));

    join->wait_src = node->src;
    for (size_t i = 0; node->kind == RV_NODE_STR && i < RV_COUNT(words); i++)
        if (rv_str_is(node->text, words[i].word)) {
            join->wait = words[i].wait;
            join->count = words[i].count;
            return;
        }
    if (node->kind == RV_NODE_INT && node->i64 >= 1 && node->i64 <= MAX_BRANCHES) {
        join->wait = RV_WAIT_COUNT;
        join->count = node->i64;
        return;
    }
    const char *quote = node->kind == RV_NODE_STR ? "\"" : "";
    rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, "write all, any, first, or how many branches have to arrive",
                    "join must be all, any, first, a number from 1 to %d, or a map with `wait`, not %s %s%.*s%s",
                    MAX_BRANCHES, rv_node_kind_text(node->kind), quote, RV_STR_ARG(rv_utf8_cut(node->text, 60)), quote);
}

static const struct rv_key join_keys[] = {
    {"wait", RV_KEY_CUSTOM, offsetof(struct rv_agent_join, wait), .read = read_wait,
     .schema = "{\"anyOf\":[{\"enum\":[\"all\",\"any\",\"first\"]},{\"type\":\"integer\",\"minimum\":1,"
               "\"maximum\":256}]}",
     .default_text = NULL,
     .doc = "all: every branch is over; any: the same, and one must have arrived; first or a "
            "number: so many have arrived, the others are cancelled. Unset: all."},
    {"failures", RV_KEY_TERM, offsetof(struct rv_agent_join, failures), .terms = &join_failures_list,
     .default_text = "\"drain\"", .src_offset = offsetof(struct rv_agent_join, failures_src),
     .doc = "With all: what a failed branch does to the group."},
    {"merge", RV_KEY_CUSTOM, offsetof(struct rv_agent_join, merges), .read = read_merges,
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"enum\":[\"replace\",\"append\",\"merge_dict\"]}}",
     .doc = "Map from an output key that several branches write to the way of merging, in the order of the list."},
};
const struct rv_key_table rv_join_table = {"join", "A join: where the branches of a group meet", join_keys,
                                           RV_COUNT(join_keys), NULL};

void rv_read_join(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_join *join = target;
    const char *outer = r->path, *code = r->code;

    join->src = node->src;
    join->wait = RV_WAIT_ALL;
    r->code = "bad_join";
    if (node->kind == RV_NODE_MAP) {
        r->path = "join.";
        rv_keys_read(r, node, join_keys, RV_COUNT(join_keys), join);
        r->path = outer;
    } else {
        read_wait(r, node, &join->wait);
    }
    r->code = code;
}

/* --- Lists of values --- */

static const struct rv_term item_errors[] = {
    [RV_ITEM_FAIL] = {"fail", "the stage fails; elements under way finish, no further one starts"},
    [RV_ITEM_SKIP] = {"skip", "the results leave it out"},
    [RV_ITEM_COLLECT] = {"collect", "the results have null in its place"},
};
const struct rv_term_list rv_item_error_list = {"on_item_error", "way to treat a failed element", item_errors,
                                                RV_COUNT(item_errors)};

void rv_read_for_each(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_each *each = target;

    each->src = node->src;
    if (node->kind == RV_NODE_STR)
        each->list = rv_loader_expr(r, node, "for_each", RV_TEXT_OF_STAGE);
    else
        rv_keys_wrong_type(r, node, "for_each", "an expression that gives a list");
}

/* --- Values that are built --- */

/* is_inside: its expressions see the outputs of an inner pipeline. */
static void build(struct rv_key_reader *r, const struct rv_node *node, const char *what, bool is_inside, int depth,
                  struct rv_built *out)
{
    struct rv_loader *l = rv_loader_of(r);

    out->node = node;
    if (depth > MAX_BUILT_DEPTH) {
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s is nested deeper than %d levels", what,
                        MAX_BUILT_DEPTH);
        return;
    }
    if (node->kind == RV_NODE_STR) {
        out->kind = RV_BUILT_EXPR;
        out->expr = rv_loader_expr(r, node, what, is_inside ? RV_TEXT_INSIDE : RV_TEXT_OF_STAGE);
        return;
    }
    if (node->kind == RV_NODE_LIST || node->kind == RV_NODE_MAP) {
        out->kind = node->kind == RV_NODE_LIST ? RV_BUILT_LIST : RV_BUILT_MAP;
        out->items = rv_loader_array(l, node->n, sizeof *out->items);
        out->keys = node->kind == RV_NODE_MAP ? rv_loader_array(l, node->n, sizeof *out->keys) : NULL;
        if (!out->items || (node->kind == RV_NODE_MAP && !out->keys))
            return;
        out->n = node->n;
        for (size_t i = 0; i < node->n; i++) {
            char label[192];
            if (out->keys) {
                out->keys[i] = node->keys[i]->text.ptr;
                snprintf(label, sizeof label, "%.100s.%.80s", what, out->keys[i]);
            } else {
                snprintf(label, sizeof label, "%.100s[%zu]", what, i);
            }
            build(r, node->items[i], label, is_inside, depth + 1, &out->items[i]);
        }
        return;
    }
    out->kind = RV_BUILT_CONST;
    struct rv_owned *o = rv_loader_own(l);
    if (!o)
        return;
    rv_keys_json(r, node, &o->value);
    out->value = o->value;
}

static struct rv_built *built_map(struct rv_key_reader *r, const struct rv_node *node, const char *key, bool is_inside)
{
    struct rv_built *out;

    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, key, "a map of expressions");
        return NULL;
    }
    out = rv_loader_array(rv_loader_of(r), 1, sizeof *out);
    if (out)
        build(r, node, key, is_inside, 0, out);
    return out;
}

void rv_read_set(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent *a = (struct rv_agent *)((char *)target - offsetof(struct rv_agent, set));

    a->set_src = node->src;
    a->set = built_map(r, node, "set", false);
}

void rv_read_inner_inputs(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_inner *inner = (struct rv_agent_inner *)((char *)target - offsetof(struct rv_agent_inner, inputs));

    inner->inputs_src = node->src;
    inner->inputs = built_map(r, node, "inputs", false);
}

void rv_read_inner_outputs(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_inner *inner = (struct rv_agent_inner *)((char *)target - offsetof(struct rv_agent_inner, outputs));

    inner->outputs_src = node->src;
    inner->outputs = built_map(r, node, "outputs", true);
}

/* --- Questions --- */

const char *rv_ask_option(const struct rv_agent_ask *ask, size_t i)
{
    static const char *const yes_no[] = {RV_CHOICE_YES, RV_CHOICE_NO};

    if (!ask->options.is_set)
        return i < RV_COUNT(yes_no) ? yes_no[i] : NULL;
    return i < ask->options.n ? ask->options.items[i] : NULL;
}

static void read_question(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_ask *ask = target;

    if (node->kind == RV_NODE_STR && node->text.len > 0)
        ask->question = rv_loader_template(r, node, NULL);
    else
        rv_keys_wrong_type(r, node, "question", "a text for the person who is asked");
}

static void read_show(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    if (node->kind == RV_NODE_STR)
        *(rv_expr **)target = rv_loader_expr(r, node, "ask.show", RV_TEXT_OF_STAGE);
    else
        rv_keys_wrong_type(r, node, "show", "an expression");
}

static bool is_choice(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return len > 0 && len <= MAX_CHOICE;
}

static void read_options(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_ask *ask = (struct rv_agent_ask *)((char *)target - offsetof(struct rv_agent_ask, options));

    if (node->kind == RV_NODE_STR && rv_str_is(node->text, RV_CHOICE_TEXT)) {
        ask->any_text = true;
        return;
    }
    if (node->kind != RV_NODE_LIST || node->n == 0 || node->n > RV_ASK_MAX_OPTIONS) {
        rv_keys_wrong_type(r, node, "options", "text, or a list of 1 to 64 choices");
        return;
    }
    rv_keys_str_list(r, node, "options", &ask->options);
    for (size_t i = 0; i < ask->options.n; i++) {
        const char *choice = ask->options.items[i];
        if (!is_choice(choice))
            rv_keys_finding(r, RV_SEVERITY_ERROR, &ask->options.srcs[i], NULL,
                            "a choice must be a text of 1 to %d bytes in one line", MAX_CHOICE);
        for (size_t k = 0; k < i; k++)
            if (strcmp(choice, ask->options.items[k]) == 0)
                rv_keys_finding(r, RV_SEVERITY_ERROR, &ask->options.srcs[i], "leave one of them out",
                                "options has \"%s\" twice", choice);
    }
}

static const struct rv_key ask_keys[] = {
    {"question", RV_KEY_CUSTOM, offsetof(struct rv_agent_ask, question), .required = true, .read = read_question,
     .schema = "{\"type\":\"string\",\"minLength\":1}", .doc = "The text for the person; may have {{name}} in it."},
    {"show", RV_KEY_CUSTOM, offsetof(struct rv_agent_ask, show), .read = read_show, .schema = "{\"type\":\"string\"}",
     .doc = "An expression: what the person is shown with the question; unset: the stage's output."},
    {"options", RV_KEY_CUSTOM, offsetof(struct rv_agent_ask, options), .read = read_options,
     .schema = "{\"anyOf\":[{\"const\":\"text\"},{\"type\":\"array\",\"minItems\":1,\"maxItems\":64,\"uniqueItems\":"
               "true,\"items\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64}}]}",
     .doc = "The choices; unset: yes and no. text: any text is taken, as the choice text."},
    {"expires_seconds", RV_KEY_INT, offsetof(struct rv_agent_ask, expires_seconds), .min = 1, .max = MAX_SECONDS,
     .doc = "After so long the choice is timeout; unset: the question never expires."},
};
const struct rv_key_table rv_ask_table = {"ask", "A question of a stage", ask_keys, RV_COUNT(ask_keys), NULL};

void rv_read_ask(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_ask *ask = target;
    const char *outer = r->path;

    ask->src = node->src;
    r->path = "ask.";
    rv_keys_read(r, node, ask_keys, RV_COUNT(ask_keys), ask);
    r->path = outer;
}

void rv_read_on_answer(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_ask *ask = (struct rv_agent_ask *)((char *)target - offsetof(struct rv_agent_ask, routes));
    size_t n;

    ask->on_answer_src = node->src;
    ask->routes = rv_loader_items(r, node, "a map from choice to stage", "on_answer", RV_ASK_MAX_OPTIONS + 1,
                                  sizeof *ask->routes, &n);
    for (size_t i = 0; i < n; i++) {
        struct rv_answer_route *route = &ask->routes[ask->n_routes++];
        const struct rv_node *value = node->items[i];
        char key[128];

        *route =
            (struct rv_answer_route){node->keys[i]->text.ptr, "", RV_TARGET_UNKNOWN, value->src, node->keys[i]->src};
        snprintf(key, sizeof key, "on_answer.%.80s", route->choice);
        if (value->kind == RV_NODE_STR && value->text.len == 0)
            rv_keys_wrong_type(r, value, key, "the name of one stage, or end");
        else
            one_target(r, value, key, &route->target_name);
    }
}

static const struct rv_term on_denied[] = {
    [RV_DENIED_END_RUN] = {"end_run", "the run ends"},
    [RV_DENIED_TELL_MODEL] = {"tell_model", "the model is told, with the person's words, and goes on"},
};
const struct rv_term_list rv_on_denied_list = {"on_denied", "way to treat a refused tool call", on_denied,
                                               RV_COUNT(on_denied)};
