/* A test for a table of cases: one test for each case, with the values of the case in the place of {{case.NAME}}. */
#include <stdio.h>
#include <string.h>

#include "config/tests_internal.h"
#include "coreengine/lang/table.h"

#define MAX_NODES ((size_t)1 << 20) /* that the cases of one pipeline come to */

/* One expansion. */
struct expansion {
    struct rv_key_reader *r;     /* of the test */
    json_object *scope;          /* {case: {...}} */
    int number;                  /* of the case, from 1 */
    const struct rv_node *cases; /* stay as they are */
    size_t *n_nodes;
    bool failed; /* a finding was made, or memory is short */
};

static struct rv_node *copy(struct expansion *x, const struct rv_node *node);

static bool has_case(rv_str text)
{
    return text.len > 0 && memmem(text.ptr, text.len, "{{case.", 7);
}

static void complain(struct expansion *x, const struct rv_node *node, rv_err *err)
{
    if (rv_err_code(err) == RV_E_NOMEM) {
        x->r->rc = RV_E_NOMEM;
    } else {
        RV_IGNORE(RV_WRAP(&err, rv_err_code(err), "test \"%s\", case %d", x->r->owner_name ? x->r->owner_name : "",
                          x->number),
                  "it is a finding");
        rv_findings_add_text_err(x->r->findings, RV_SEVERITY_ERROR, node, err);
    }
    rv_err_free(err);
    x->failed = true;
}

/* The value of a text that is nothing but {{case.NAME}}; false: it is another text. */
static bool whole_value(const struct expansion *x, const rv_template *t, rv_str text, json_object **out)
{
    rv_str trimmed = rv_str_trim(text);

    if (rv_template_n_placeholders(t) != 1 || trimmed.len < 4 || memcmp(trimmed.ptr, "{{", 2) != 0 ||
        memchr(trimmed.ptr, '|', trimmed.len) ||
        memmem(trimmed.ptr, trimmed.len, "}}", 2) != trimmed.ptr + trimmed.len - 2)
        return false;
    struct rv_placeholder name = rv_template_placeholder(t, 0);
    char key[256];
    snprintf(key, sizeof key, "%.*s", RV_STR_ARG(name.field));
    return !name.member.ptr && json_object_object_get_ex(rv_json_get_obj(x->scope, "case"), key, out);
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
        rv_keys_finding(x->r, RV_SEVERITY_ERROR, &node->src, NULL, "its cases come to more than %zu values", MAX_NODES);
        x->failed = true;
        return NULL;
    }
    if (node != x->cases && (node->kind == RV_NODE_LIST || node->kind == RV_NODE_MAP))
        return copy_children(x, node);
    if (node->kind == RV_NODE_STR && has_case(node->text))
        return filled(x, node);
    return (struct rv_node *)node; /* never changed */
}

/* --- the cases --- */

static bool read_file(struct rv_key_reader *r, const struct rv_node *node, struct rv_table *out)
{
    struct rv_loader *l = rv_loader_of(r);
    const char *path = rv_loader_path(l, node->text);
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
            rv_keys_wrong_type(r, node->items[i], "cases", "a list of maps");
        else
            rv_keys_json(r, node->items[i], &row);
        if (row && rv_json_push_take(rows, row, NULL) < 0)
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

/* The test of one case, without the key `cases`. NULL: failed. */
static const struct rv_node *expand(struct expansion *x, const struct rv_node *test, json_object *row,
                                    const struct rv_src *src)
{
    json_object *scope = json_object_new_object();
    struct rv_node *out = NULL;

    if (!scope || rv_json_set_ref(scope, "case", row, NULL) < 0) {
        x->r->rc = RV_E_NOMEM;
    } else {
        x->scope = scope;
        out = copy(x, test);
    }
    json_object_put(scope);
    if (out && src)
        out->src = *src;
    return x->failed || x->r->rc < 0 ? NULL : out;
}

static void add(struct rv_key_reader *r, struct rv_test_nodes *out, const struct rv_node *node, int number,
                bool is_named)
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
    out->items[out->n++] = (struct rv_test_node){node, number, is_named};
}

void rv_read_test_cases(struct rv_key_reader *r, const struct rv_node *test, struct rv_test_nodes *out)
{
    const struct rv_node *cases = rv_node_get(test, "cases");
    const struct rv_node *name = rv_node_get(test, "name");
    bool is_named = name && name->kind == RV_NODE_STR && has_case(name->text);
    struct rv_table table = {0};
    bool ok;

    if (!cases) {
        add(r, out, test, 0, false);
        return;
    }
    if (rv_loader_of(r)->opts->file) /* of a run that goes on: its tests are not run */
        return;
    if (cases->kind == RV_NODE_LIST) {
        ok = read_list(r, cases, &table);
    } else if (cases->kind == RV_NODE_STR && cases->text.len > 0) {
        ok = read_file(r, cases, &table);
    } else {
        rv_keys_wrong_type(r, cases, "cases", "a list of maps, or the path of a table");
        return;
    }
    size_t n = ok ? json_object_array_length(table.rows) : 0;
    if (ok && n == 0)
        rv_keys_finding(r, RV_SEVERITY_WARNING, &cases->src, NULL, "it has no cases, so nothing is tested");
    for (size_t i = 0; i < n && r->rc == 0; i++) {
        struct expansion x = {.r = r, .number = (int)i + 1, .cases = cases, .n_nodes = &out->n_values};
        const struct rv_src *src = cases->kind == RV_NODE_LIST ? &cases->items[i]->src : NULL;
        const struct rv_node *one = expand(&x, test, json_object_array_get_idx(table.rows, i), src);
        if (!one)
            break;
        add(r, out, one, (int)i + 1, is_named);
    }
    rv_table_fini(&table);
}
