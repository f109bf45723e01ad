/* A test for a table of cases or a matrix: one test for each case and combination, with its values in the place of
 * {{case.NAME}} and {{matrix.AXIS}}. */
#include <stdio.h>
#include <string.h>

#include "config/tests_internal.h"
#include "coreengine/lang/lang.h"

#define MAX_AXES   8    /* of one matrix: its combinations multiply */
#define MAX_VALUES 1000 /* of one axis: rows of a table that people still read */
#define AXIS_MODEL "model"
#define MAX_NODES  ((size_t)1 << 20) /* that the cases of one pipeline come to: matrices multiply them in memory */

/* One expansion. */
struct expansion {
    struct rv_key_reader *r;      /* of the test */
    json_object *scope;           /* {case: {...}, matrix: {...}}; owned */
    int number;                   /* of the case, from 1 */
    const struct rv_node *cases;  /* stay as they are; NULL: none */
    const struct rv_node *matrix; /* as cases */
    size_t *n_nodes;
    bool failed; /* a finding was made, or memory is short */
};

static struct rv_node *copy(struct expansion *x, const struct rv_node *node);

static bool names(rv_str text, const char *root)
{
    return text.len > 0 && memmem(text.ptr, text.len, root, strlen(root));
}

static bool has_value(rv_str text)
{
    return names(text, "{{case.") || names(text, "{{matrix.");
}

static void complain(struct expansion *x, const struct rv_node *node, rv_err *err)
{
    if (rv_err_code(err) == RV_E_NOMEM) {
        x->r->rc = RV_E_NOMEM;
    } else {
        const char *name = x->r->owner_name ? x->r->owner_name : "";
        RV_IGNORE(x->number > 0 ? RV_WRAP(&err, rv_err_code(err), "test \"%s\", case %d", name, x->number)
                                : RV_WRAP(&err, rv_err_code(err), "test \"%s\"", name),
                  "it is a finding");
        rv_findings_add_text_err(x->r->findings, RV_SEVERITY_ERROR, node, err);
    }
    rv_err_free(err);
    x->failed = true;
}

/* The value of a text that is nothing but {{case.NAME}} or {{matrix.AXIS}}; false: it is another text. */
static bool whole_value(const struct expansion *x, const rv_template *t, rv_str text, json_object **out)
{
    rv_str trimmed = rv_str_trim(text);

    if (rv_template_n_placeholders(t) != 1 || trimmed.len < 4 || memcmp(trimmed.ptr, "{{", 2) != 0 ||
        memchr(trimmed.ptr, '|', trimmed.len) ||
        memmem(trimmed.ptr, trimmed.len, "}}", 2) != trimmed.ptr + trimmed.len - 2)
        return false;
    struct rv_placeholder name = rv_template_placeholder_at(t, 0);
    char root[16], key[256];
    snprintf(root, sizeof root, "%.*s", RV_STR_ARG(name.root));
    snprintf(key, sizeof key, "%.*s", RV_STR_ARG(name.field));
    return !name.member.ptr && json_object_object_get_ex(rv_json_get_obj(x->scope, root), key, out);
}

static struct rv_node *filled(struct expansion *x, const struct rv_node *node)
{
    struct rv_src src = rv_node_text_src(node);
    struct rv_scope scope = rv_scope_of_object(x->scope);
    rv_arena *arena = x->r->arena;
    rv_buf text = RV_BUF_INIT(RV_TEMPLATE_MAX_OUTPUT);
    struct rv_node *out = NULL;
    json_object *value = NULL;
    rv_template *t = NULL;
    rv_err *err = NULL;

    int rc = rv_template_compile(node->text, &src, &t, &err);
    if (rc == 0 && whole_value(x, t, node->text, &value)) {
        out = rv_node_of_json(value, &node->src, arena);
    } else if (rc == 0) {
        rc = rv_template_render(t, &scope, &text, &err);
        if (rc == 0)
            rc = rv_buf_check(&text, "text of a test", &err);
        out = rc == 0 ? rv_arena_alloc(arena, sizeof *out) : NULL;
        if (out) {
            *out = *node;
            out->text = (rv_str){rv_arena_dup(arena, rv_buf_str(&text)), text.len};
        }
    }
    if (rc < 0)
        complain(x, node, err);
    else if (!out || (out->kind == RV_NODE_STR && !out->text.ptr))
        x->r->rc = RV_E_NOMEM;
    rv_template_free(t);
    rv_buf_fini(&text);
    return out;
}

static struct rv_node *copy_children(struct expansion *x, const struct rv_node *node)
{
    struct rv_node *out = rv_arena_alloc(x->r->arena, sizeof *out);
    struct rv_node **items = rv_arena_alloc(x->r->arena, (node->n + 1) * sizeof *items);

    if (!out || !items) {
        x->r->rc = RV_E_NOMEM;
        return NULL;
    }
    *out = *node;
    out->items = items;
    for (size_t i = 0; i < node->n && x->r->rc == 0 && !x->failed; i++)
        items[i] = copy(x, node->items[i]);
    return out;
}

/* The node with the values of the case; what has none of them is shared. */
static struct rv_node *copy(struct expansion *x, const struct rv_node *node)
{
    if (++*x->n_nodes > MAX_NODES) {
        rv_keys_add_finding(x->r, RV_SEVERITY_ERROR, &node->src, NULL, "its cases come to more than %zu values",
                            MAX_NODES);
        x->failed = true;
        return NULL;
    }
    if (node != x->cases && node != x->matrix && (node->kind == RV_NODE_LIST || node->kind == RV_NODE_MAP))
        return copy_children(x, node);
    if (node->kind == RV_NODE_STR && node != x->cases && has_value(node->text))
        return filled(x, node);
    return (struct rv_node *)node; /* never changed */
}

/* --- the cases --- */

static bool read_file(struct rv_key_reader *r, const struct rv_node *node, struct rv_table *out)
{
    struct rv_loader *l = config_loader_of(r);
    const char *path = config_loader_path(l, node->text);
    rv_buf text = RV_BUF_INIT(RV_TABLE_MAX_BYTES + 1);
    rv_err *err = NULL;

    int rc = path ? rv_file_read(path, &text, &err) : RV_E_NOMEM;
    if (rc == 0)
        rc = rv_table_parse(rv_buf_str(&text), path, out, &err);
    rv_buf_fini(&text);
    if (rc == RV_E_NOMEM)
        r->rc = rc;
    else if (rc < 0)
        rv_findings_add_err(r->findings, RV_SEVERITY_ERROR, &node->src, err);
    rv_err_free(err);
    return rc == 0;
}

/* A list of maps in the file of the pipeline. */
static bool read_list(struct rv_key_reader *r, const struct rv_node *node, struct rv_table *out)
{
    json_object *rows = json_object_new_array();

    if (!rows)
        r->rc = RV_E_NOMEM;
    for (size_t i = 0; rows && i < node->n && r->rc == 0; i++) {
        json_object *row = NULL;
        if (node->items[i]->kind != RV_NODE_MAP)
            rv_keys_add_wrong_type(r, node->items[i], "cases", "a list of maps");
        else
            rv_keys_read_json(r, node->items[i], &row);
        if (row &&
            rv_json_push_take(rows, row, RV_CODE_ONLY("adding an item fails without memory only, which rc says")) < 0)
            r->rc = RV_E_NOMEM;
    }
    bool complete = rows && r->rc == 0 && json_object_array_length(rows) == node->n;
    if (!complete) {
        json_object_put(rows);
        return false;
    }
    *out = (struct rv_table){.rows = rows};
    return true;
}

/* --- the matrix --- */

struct axis {
    const char *name;
    const struct rv_node *values; /* a list of scalars, or a map from label to value */
};
struct axes {
    struct axis axes[MAX_AXES];
    size_t n;
    size_t n_combinations; /* 1 without a matrix */
};
/* A scalar is its own label. */
static bool read_scalars(struct rv_key_reader *r, const char *name, const struct rv_node *list)
{
    bool ok = true;

    for (size_t i = 0; i < list->n; i++) {
        const struct rv_node *item = list->items[i];
        if (item->kind == RV_NODE_LIST || item->kind == RV_NODE_MAP || item->kind == RV_NODE_NULL) {
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &item->src,
                                "give each value a label, in a map from label to value",
                                "matrix.%s is a list, and so has texts, numbers and booleans only", name);
            ok = false;
        }
        for (size_t k = 0; ok && k < i; k++) {
            if (!rv_str_eq(list->items[k]->text, item->text))
                continue;
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &item->src,
                                "write it once: --repeat runs each test several times",
                                "matrix.%s has the value \"%s\" twice", name, item->text.ptr);
            ok = false;
        }
    }
    return ok;
}

static bool read_models(struct rv_key_reader *r, const struct rv_node *values)
{
    bool ok = true;

    for (size_t i = 0; i < values->n; i++) {
        const struct rv_node *v = values->items[i];
        const char *colon = v->kind == RV_NODE_STR ? strchr(v->text.ptr, ':') : NULL;
        if ((colon && colon > v->text.ptr && colon[1]) || rv_str_is(v->text, "scripted"))
            continue;
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &v->src, "write provider:model, for example openai:gpt-4.1-mini",
                            "matrix.model has \"%s\", which is not a model", v->text.ptr ? v->text.ptr : "");
        ok = false;
    }
    return ok;
}

/* A text, or {file: PATH}; the loader of the variant compiles it again, in its place. */
static bool read_prompt(struct rv_key_reader *r, const struct rv_node *key, const struct rv_node *value)
{
    const struct rv_node *file = rv_node_get(value, "file");

    if (value->kind == RV_NODE_STR)
        return config_loader_template(r, value, NULL) != NULL;
    if (value->kind == RV_NODE_MAP && value->n == 1 && file && file->kind == RV_NODE_STR && file->text.len > 0)
        return true;
    rv_keys_add_finding(r, RV_SEVERITY_ERROR, &value->src, "write a text, or {file: path}",
                        "matrix.prompts: the prompt \"%s\" must be a text or a map with \"file\"", key->text.ptr);
    return false;
}

static bool read_prompts(struct rv_key_reader *r, const struct rv_node *values)
{
    const char *const hint = "write a map from label to prompts, such as {short: {answer: \"In a word: ...\"}}";
    bool ok = true;

    if (values->kind != RV_NODE_MAP) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &values->src, hint, "matrix.prompts must be a map");
        return false;
    }
    for (size_t i = 0; i < values->n; i++) {
        const struct rv_node *set = values->items[i];
        if (set->kind != RV_NODE_MAP) {
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &set->src, hint, "matrix.prompts.%s must be a map of prompts",
                                values->keys[i]->text.ptr);
            ok = false;
        }
        for (size_t k = 0; set->kind == RV_NODE_MAP && k < set->n; k++)
            ok = read_prompt(r, set->keys[k], set->items[k]) && ok;
    }
    return ok;
}

static bool read_axis(struct rv_key_reader *r, const char *name, const struct rv_node *values)
{
    if (values->kind != RV_NODE_LIST && values->kind != RV_NODE_MAP) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &values->src, NULL,
                            "matrix.%s must be a list of values, or a map from label to value", name);
        return false;
    }
    if (values->n == 0 || values->n > MAX_VALUES) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &values->src, "leave out an axis that has none",
                            "matrix.%s has %zu values (1 to %d are allowed)", name, values->n, MAX_VALUES);
        return false;
    }
    if (strcmp(name, RV_TEST_AXIS_PROMPTS) == 0)
        return read_prompts(r, values);
    bool ok = values->kind == RV_NODE_MAP || read_scalars(r, name, values);
    return ok && strcmp(name, AXIS_MODEL) == 0 ? read_models(r, values) : ok;
}

/* False: it has findings, or memory is short. node NULL: there is none, which is one combination. */
static bool read_matrix(struct rv_key_reader *r, const struct rv_node *node, struct axes *out)
{
    bool ok = true;

    *out = (struct axes){.n_combinations = 1};
    if (!node)
        return true;
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, "matrix", "a map from axis to values");
        return false;
    }
    if (node->n == 0 || node->n > MAX_AXES) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "matrix has %zu axes (1 to %d are allowed)",
                            node->n, MAX_AXES);
        return false;
    }
    for (size_t i = 0; i < node->n; i++) {
        out->axes[i] = (struct axis){node->keys[i]->text.ptr, node->items[i]};
        ok = read_axis(r, out->axes[i].name, node->items[i]) && ok;
        if (ok && (out->n_combinations *= node->items[i]->n) > RV_MAX_TEST_CONFIGS) {
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "matrix has more than %d combinations",
                                RV_MAX_TEST_CONFIGS);
            return false;
        }
    }
    out->n = node->n;
    return ok && r->rc == 0;
}

/* The value of an axis in a combination, its label, and its number from 1; the last axis changes first. */
static const struct rv_node *axis_at(const struct axes *axes, size_t combination, size_t axis, const char **label,
                                     size_t *number)
{
    for (size_t i = axes->n - 1; i > axis; i--)
        combination /= axes->axes[i].values->n;
    const struct rv_node *values = axes->axes[axis].values;
    size_t at = combination % values->n;

    *number = at + 1;
    *label = values->kind == RV_NODE_MAP ? values->keys[at]->text.ptr : values->items[at]->text.ptr;
    return values->items[at];
}

/* --- the tests of an entry --- */

/* Of one entry of the list `tests`. */
struct entry {
    struct rv_key_reader *r;
    const struct rv_node *test, *cases, *matrix; /* cases, matrix: NULL if it has none */
    struct axes axes;
    size_t written;   /* its number in the list, from 0 */
    const char *name; /* as it is written */
    bool is_named_by_case, is_named_by_matrix;
};

/* The labels of a combination, and its values for templates. RV_E_INVALID: a value has findings. */
static int place(const struct entry *e, size_t combination, struct rv_test_place *out, json_object *scope)
{
    struct rv_test_axis_label *labels = rv_arena_alloc(e->r->arena, (e->axes.n + 1) * sizeof *labels);
    json_object *values = json_object_new_object();
    int rc = rv_json_set_take(scope, "matrix", values,
                              RV_CODE_ONLY("setting a member fails without memory only, and rc is returned"));

    out->labels = labels;
    out->n_labels = e->axes.n;
    for (size_t i = 0; labels && rc == 0 && i < e->axes.n; i++) {
        const char *axis = e->axes.axes[i].name, *label;
        size_t number;
        const struct rv_node *value = axis_at(&e->axes, combination, i, &label, &number);
        json_object *json = NULL;

        labels[i] = (struct rv_test_axis_label){axis, label, number};
        if (strcmp(axis, AXIS_MODEL) == 0)
            out->model = value->text.ptr;
        if (strcmp(axis, RV_TEST_AXIS_PROMPTS) == 0) {
            out->prompts = label;
            rc = rv_json_set_text(values, axis, label,
                                  RV_CODE_ONLY("setting a member fails without memory only, and rc is returned"));
            continue;
        }
        rv_keys_read_json(e->r, value, &json);
        if (json)
            rc = rv_json_set_take(values, axis, json,
                                  RV_CODE_ONLY("setting a member fails without memory only, and rc is returned"));
        else
            rc = value->kind == RV_NODE_NULL
                     ? rv_json_set_null(values, axis,
                                        RV_CODE_ONLY("setting a member fails without memory only, and rc is returned"))
                     : RV_E_INVALID;
    }
    return labels ? rc : RV_E_NOMEM;
}

static void add(struct rv_key_reader *r, struct rv_test_nodes *out, const struct rv_test_node *node)
{
    if (out->n == out->cap) {
        size_t cap = out->cap * 2 + 16;
        struct rv_test_node *items = rv_arena_alloc(r->arena, cap * sizeof *items);
        if (!items) {
            r->rc = RV_E_NOMEM;
            return;
        }
        if (out->n)
            memcpy(items, out->items, out->n * sizeof *items);
        out->items = items;
        out->cap = cap;
    }
    out->items[out->n++] = *node;
}

/* One test. number: of its case, from 1; row: its values; 0 and NULL: it has no cases. False: it failed. */
static bool add_one(const struct entry *e, int number, json_object *row, size_t combination, struct rv_test_nodes *out)
{
    struct expansion x = {
        .r = e->r, .number = number, .cases = e->cases, .matrix = e->matrix, .n_nodes = &out->n_values};
    struct rv_test_node one = {
        .is_named = e->is_named_by_case,
        .place = {.written = e->written, .name = e->name, .number = number, .is_named = e->is_named_by_matrix}};
    struct rv_node *node = NULL;

    x.scope = json_object_new_object();
    int rc = x.scope ? 0 : RV_E_NOMEM;
    if (rc == 0 && row)
        rc = rv_json_set_ref(x.scope, "case", row,
                             RV_CODE_ONLY("setting a member fails without memory only, and rc is judged below"));
    if (rc == 0)
        rc = place(e, combination, &one.place, x.scope);
    if (rc == 0)
        node = copy(&x, e->test);
    json_object_put(x.scope);
    if (rc == RV_E_NOMEM)
        e->r->rc = rc;
    if (rc < 0 || x.failed || e->r->rc < 0)
        return false;
    if (row && e->cases->kind == RV_NODE_LIST)
        node->src = e->cases->items[number - 1]->src;
    one.node = node;
    add(e->r, out, &one);
    return e->r->rc == 0;
}

/* False: it has findings. *out stays empty without cases. */
static bool read_table(struct rv_key_reader *r, const struct rv_node *cases, struct rv_table *out)
{
    bool ok;

    if (!cases)
        return true;
    if (cases->kind == RV_NODE_LIST) {
        ok = read_list(r, cases, out);
    } else if (cases->kind == RV_NODE_STR && cases->text.len > 0) {
        ok = read_file(r, cases, out);
    } else {
        rv_keys_add_wrong_type(r, cases, "cases", "a list of maps, or the path of a table");
        return false;
    }
    if (ok && json_object_array_length(out->rows) == 0) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &cases->src, "give `cases` at least one row, or leave it out",
                            "its cases have no row, so nothing would be tested");
        return false;
    }
    return ok;
}

void config_read_test_cases(struct rv_key_reader *r, const struct rv_node *test, size_t written,
                            struct rv_test_nodes *out)
{
    const struct rv_node *name = rv_node_get(test, "name");
    rv_str text = name && name->kind == RV_NODE_STR ? name->text : (rv_str){NULL, 0};
    struct entry e = {.r = r,
                      .test = test,
                      .cases = rv_node_get(test, "cases"),
                      .matrix = rv_node_get(test, "matrix"),
                      .written = written,
                      .name = text.len > 0 ? text.ptr : "",
                      .is_named_by_case = names(text, "{{case."),
                      .is_named_by_matrix = names(text, "{{matrix.")};
    struct rv_table table = {0};

    if (!e.cases && !e.matrix) {
        const struct rv_test_node plain = {.node = test, .place = {.written = written}};
        add(r, out, &plain);
        return;
    }
    if (config_loader_of(r)->opts->file) /* of a run that goes on: its tests are not run */
        return;
    if (read_matrix(r, e.matrix, &e.axes) && read_table(r, e.cases, &table)) {
        size_t n = e.cases ? json_object_array_length(table.rows) : 1;
        if (e.matrix && n > RV_MAX_TEST_CONFIGS / e.axes.n_combinations) {
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &e.matrix->src, NULL,
                                "its %zu cases by %zu combinations are more than %d tests", n, e.axes.n_combinations,
                                RV_MAX_TEST_CONFIGS);
            n = 0;
        }
        for (size_t i = 0; i < n * e.axes.n_combinations; i++) {
            size_t at = i / e.axes.n_combinations;
            json_object *row = e.cases ? json_object_array_get_idx(table.rows, at) : NULL;
            if (!add_one(&e, row ? (int)at + 1 : 0, row, i % e.axes.n_combinations, out))
                break;
        }
    }
    rv_table_fini(&table);
}
