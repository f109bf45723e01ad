/* What can be known before any value is: names are resolved to variables, macro slots, type names, functions and
 * macros, and every node gets the set of types its value may have. An operation whose sets do not meet is an error now.
 */
#include <stdio.h>
#include <string.h>

#include "coreengine/lang/expr_internal.h"

#define MAX_LISTED 12 /* names that a hint lists: two lines of a terminal */

static int check(struct rv_compile *c, struct rv_expr_node *n);

/* "int", "int or double", ...: the types of a small set, for messages. */
static const char *types_text(unsigned types, char *buf, size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (int t = 0; t < RV_N_TYPES && len < size; t++) {
        if (types & RV_TBIT(t))
            len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? " or " : "", lang_type_text((enum rv_type)t));
    }
    return buf;
}

static int no_overload(struct rv_compile *c, const struct rv_expr_node *n, const struct rv_expr_node *a,
                       const struct rv_expr_node *b)
{
    char left[96], right[96];
    int rc;

    types_text(a->types, left, sizeof(left));
    if (!b)
        return RV_EXPR_FAIL(c, n->off, RV_E_INVALID, "\"%.*s\" does not take %s", (int)n->len, c->e->text + n->off,
                            left);
    rc = RV_EXPR_FAIL(c, n->off, RV_E_INVALID, "\"%.*s\" does not take %s and %s", (int)n->len, c->e->text + n->off,
                      left, types_text(b->types, right, sizeof(right)));
    if (a->types != b->types && !(a->types & ~RV_M_NUMBER) && !(b->types & ~RV_M_NUMBER))
        rv_err_set_hint(c->err, "numbers are not converted by themselves: write int(x), uint(x) or double(x)");
    else if (a->types != b->types && strchr("<>=!+-*/%", c->e->text[n->off]))
        rv_err_set_hint(c->err, "both sides need types that fit; int(x), double(x) and string(x) convert");
    return rc;
}

static void hint_names(struct rv_compile *c, rv_str name, const char *kind, const char *const *names, size_t n)
{
    /* of other languages */
    static const char *const words[][2] = {{"True", "true"},  {"False", "false"}, {"None", "null"},
                                           {"nil", "null"},   {"len", "size"},    {"length", "size"},
                                           {"count", "size"}, {"str", "string"},  {"float", "double"}};
    const char *near = rv_nearest(name, names, n);
    char list[256] = "";
    size_t len = 0;

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(name, words[i][0])) {
            rv_err_set_hint(c->err, "\"%s\" is written %s here", words[i][0], words[i][1]);
            return;
        }
    if (near) {
        rv_err_set_hint(c->err, "did you mean \"%s\"?", near);
        return;
    }
    for (size_t i = 0; i < n && i < MAX_LISTED && len < sizeof(list); i++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", names[i]);
    rv_err_set_hint(c->err, "%s here: %s%s", kind, list, n > MAX_LISTED ? ", ..." : "");
}

/* --- Names ------------------------------------------------------------------------------------------------------- */

static int check_name(struct rv_compile *c, struct rv_expr_node *n)
{
    bool is_declared = false;
    enum rv_type type;
    int rc;

    for (size_t i = c->n_scope; i-- > 0;) {
        if (rv_str_eq(c->scope[i], n->name)) {
            n->kind = RV_EXPR_NODE_SLOT;
            n->slot = i;
            n->types = RV_M_ANY;
            return 0;
        }
    }
    for (size_t i = 0; i < c->n_vars && !is_declared; i++)
        is_declared = rv_str_is(n->name, c->vars[i]);
    type = lang_type_named(n->name);
    if (!is_declared && type != RV_N_TYPES) {
        n->kind = RV_EXPR_NODE_LITERAL;
        n->value = (struct rv_value){.type = RV_T_TYPE, .as.t = type};
        n->types = RV_M_TYPE;
        return 0;
    }
    n->kind = RV_EXPR_NODE_VAR;
    n->types = RV_M_ANY & ~RV_M_TYPE;
    n->next_var = c->e->vars;
    c->e->vars = n;
    if (is_declared || c->n_vars == 0)
        return 0;
    rc = RV_EXPR_FAIL(c, n->off, RV_E_NOT_FOUND, "unknown variable \"%s\"", n->name.ptr);
    if (lang_function_find(n->name, false))
        rv_err_set_hint(c->err, "%s is a function: write %s(...)", n->name.ptr, n->name.ptr);
    else
        hint_names(c, n->name, "variables", c->vars, c->n_vars);
    return rc;
}

/* n names a member of a variable: n->name and n->field are set. */
static void note_name(struct rv_compile *c, struct rv_expr_node *n)
{
    if (c->e->last_name)
        c->e->last_name->next_name = n;
    else
        c->e->names = n;
    c->e->last_name = n;
    c->e->n_names++;
}

/* a.b and a["b"] of a variable ask the scope for the member, so that it need not build the whole. */
static void fuse_field(struct rv_compile *c, struct rv_expr_node *n, rv_str field)
{
    n->kind = RV_EXPR_NODE_VAR_FIELD;
    n->name = n->a->name;
    n->field = field;
    n->types = RV_M_ANY & ~RV_M_TYPE;
    note_name(c, n);
}

/* "b" in a, "c" in a.b: a constant that is looked for. */
static void note_search(struct rv_compile *c, struct rv_expr_node *what, struct rv_expr_node *in)
{
    if (what->kind != RV_EXPR_NODE_LITERAL || what->value.type != RV_T_STRING)
        return;
    if (in->kind == RV_EXPR_NODE_VAR) {
        what->name = in->name;
        what->field = what->value.as.s;
        what->is_test = true;
        note_name(c, what);
    } else if (in->kind == RV_EXPR_NODE_VAR_FIELD) {
        in->member = what->value.as.s;
        in->is_test = true;
    }
}

static int check_select(struct rv_compile *c, struct rv_expr_node *n)
{
    int rc = check(c, n->a);

    if (rc < 0)
        return rc;
    if (!(n->a->types & RV_M_MAP))
        return no_overload(c, n, n->a, NULL);
    n->types = RV_M_ANY;
    if (n->a->kind == RV_EXPR_NODE_VAR)
        fuse_field(c, n, n->field);
    else if (n->a->kind == RV_EXPR_NODE_VAR_FIELD)
        n->a->member = n->field;
    return 0;
}

static int check_index(struct rv_compile *c, struct rv_expr_node *n)
{
    unsigned keys;
    int rc;

    if ((rc = check(c, n->a)) < 0 || (rc = check(c, n->b)) < 0)
        return rc;
    keys = (n->a->types & RV_M_LIST ? RV_M_NUMBER : 0) |
           (n->a->types & RV_M_MAP ? RV_M_NUMBER | RV_M_BOOL | RV_M_STRING : 0);
    if (!(n->b->types & keys))
        return no_overload(c, n, n->a, keys ? n->b : NULL);
    n->types = RV_M_ANY;
    if (n->b->kind == RV_EXPR_NODE_LITERAL && n->b->value.type == RV_T_STRING) {
        if (n->a->kind == RV_EXPR_NODE_VAR)
            fuse_field(c, n, n->b->value.as.s);
        else if (n->a->kind == RV_EXPR_NODE_VAR_FIELD)
            n->a->member = n->b->value.as.s;
    }
    return 0;
}

/* --- Operators -----------------------------------------------------------------------------------------------------
 */

static int check_binary(struct rv_compile *c, struct rv_expr_node *n)
{
    unsigned a, b;
    int rc;

    if ((rc = check(c, n->a)) < 0 || (rc = check(c, n->b)) < 0)
        return rc;
    a = n->a->types;
    b = n->b->types;
    n->types = RV_M_BOOL;
    if (n->op == RV_OP_EQ || n->op == RV_OP_NE)
        return 0;
    if (n->op == RV_OP_IN) {
        note_search(c, n->a, n->b);
        return b & (RV_M_LIST | RV_M_MAP) ? 0 : no_overload(c, n, n->a, n->b);
    }
    if (n->op == RV_OP_LT || n->op == RV_OP_LE || n->op == RV_OP_GT || n->op == RV_OP_GE) {
        if ((a & b & (RV_M_STRING | RV_M_BOOL)) || ((a & RV_M_NUMBER) && (b & RV_M_NUMBER)))
            return 0;
        return no_overload(c, n, n->a, n->b);
    }
    n->types = a & b & (RV_M_NUMBER | (n->op == RV_OP_ADD ? RV_M_STRING | RV_M_LIST : 0));
    if (n->op == RV_OP_MOD)
        n->types &= ~RV_M_DOUBLE;
    return n->types ? 0 : no_overload(c, n, n->a, n->b);
}

static int check_unary(struct rv_compile *c, struct rv_expr_node *n)
{
    int rc = check(c, n->a);

    if (rc < 0)
        return rc;
    n->types = n->a->types & (n->kind == RV_EXPR_NODE_NOT ? RV_M_BOOL : RV_M_INT | RV_M_DOUBLE);
    return n->types ? 0 : no_overload(c, n, n->a, NULL);
}

static int check_items(struct rv_compile *c, struct rv_expr_node *n)
{
    bool is_key = true;

    for (struct rv_expr_node *item = n->items; item; item = item->next, is_key = !is_key) {
        int rc = check(c, item);

        if (rc < 0)
            return rc;
        if ((n->kind == RV_EXPR_NODE_AND || n->kind == RV_EXPR_NODE_OR) && !(item->types & RV_M_BOOL))
            return no_overload(c, n, item, NULL);
        if (n->kind == RV_EXPR_NODE_MAP && is_key && !(item->types & (RV_M_BOOL | RV_M_INT | RV_M_UINT | RV_M_STRING)))
            return RV_EXPR_FAIL(c, item->off, RV_E_INVALID, "a map key must be a bool, int, uint or string");
    }
    return 0;
}

static int check_cond(struct rv_compile *c, struct rv_expr_node *n)
{
    int rc;

    if ((rc = check(c, n->a)) < 0 || (rc = check(c, n->b)) < 0 || (rc = check(c, n->c)) < 0)
        return rc;
    n->types = n->b->types | n->c->types;
    return n->a->types & RV_M_BOOL ? 0 : no_overload(c, n, n->a, NULL);
}

/* --- Calls ---------------------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    enum rv_macro macro;
    unsigned result;
} macros[] = {
    {"all", RV_MACRO_ALL, RV_M_BOOL},
    {"exists", RV_MACRO_EXISTS, RV_M_BOOL},
    {"exists_one", RV_MACRO_EXISTS_ONE, RV_M_BOOL},
    {"filter", RV_MACRO_FILTER, RV_M_LIST},
    {"map", RV_MACRO_MAP, RV_M_LIST},
};

static int check_macro(struct rv_compile *c, struct rv_expr_node *n, size_t m)
{
    bool is_map = macros[m].macro == RV_MACRO_MAP;
    struct rv_expr_node *var = n->items, *body;
    int rc;

    if (n->n_items != 2 && !(is_map && n->n_items == 3))
        return RV_EXPR_FAIL(c, n->off, RV_E_INVALID, "%s() takes %s: a variable name and what to do with it",
                            macros[m].name, is_map ? "2 or 3 arguments" : "2 arguments");
    if (var->kind != RV_EXPR_NODE_NAME) {
        rc = RV_EXPR_FAIL(c, var->off, RV_E_INVALID, "the first argument of %s() must be a plain name", macros[m].name);
        rv_err_set_hint(c->err, "for example output.items.%s(x, x > 1)", macros[m].name);
        return rc;
    }
    if ((rc = check(c, n->a)) < 0)
        return rc;
    if (!(n->a->types & (RV_M_LIST | RV_M_MAP)))
        return no_overload(c, n, n->a, NULL);
    /* A macro adds a level to the tree, so the tree's depth bounds the slots too. */
    n->slot = c->n_scope;
    c->scope[c->n_scope++] = var->name;
    for (body = var->next; body && rc == 0; body = body->next)
        rc = check(c, body);
    c->n_scope--;
    if (rc < 0)
        return rc;

    body = var->next;
    n->kind = RV_EXPR_NODE_MACRO;
    n->macro = macros[m].macro;
    n->types = macros[m].result;
    n->b = is_map && n->n_items == 2 ? NULL : body;
    n->c = !is_map ? NULL : body && n->n_items == 3 ? body->next : body;
    if (n->b && !(n->b->types & RV_M_BOOL))
        return RV_EXPR_FAIL(c, n->b->off, RV_E_INVALID, "the condition of %s() must be a bool", macros[m].name);
    return 0;
}

static int check_has(struct rv_compile *c, struct rv_expr_node *n)
{
    int rc;

    if (n->n_items != 1 || n->items->kind != RV_EXPR_NODE_SELECT)
        return RV_EXPR_FAIL(c, n->off, RV_E_INVALID,
                            "has() takes one argument of the form a.b (for other keys: \"key\" in a)");
    rc = check(c, n->items);
    n->kind = RV_EXPR_NODE_HAS;
    n->a = n->items;
    n->types = RV_M_BOOL;
    struct rv_expr_node *name = n->a->kind == RV_EXPR_NODE_SELECT ? n->a->a : n->a;
    if (rc == 0 && name->kind == RV_EXPR_NODE_VAR_FIELD)
        name->is_test = true;
    return rc;
}

static int unknown_function(struct rv_compile *c, const struct rv_expr_node *n)
{
    static const char *const absent[] = {"bytes", "timestamp", "duration"};
    const char *names[64], *name;
    size_t n_names = 0;
    int rc;

    for (size_t i = 0; i < RV_COUNT(absent); i++) {
        if (!rv_str_is(n->name, absent[i]))
            continue;
        return RV_EXPR_FAIL(c, n->off, RV_E_NOT_FOUND, "%s() is not part of this subset of CEL", n->name.ptr);
    }
    rc = RV_EXPR_FAIL(c, n->off, RV_E_NOT_FOUND, "unknown %s \"%s\"", n->a ? "method" : "function", n->name.ptr);
    if (lang_function_find(n->name, !n->a)) {
        rv_err_set_hint(c->err, n->a ? "write %s(x)" : "write x.%s(...)", n->name.ptr);
        return rc;
    }
    for (size_t i = 0; i < RV_COUNT(macros); i++)
        names[n_names++] = macros[i].name;
    names[n_names++] = "has";
    for (size_t i = 0; (name = lang_function_name(i)) && n_names < RV_COUNT(names); i++) {
        if (strcmp(names[n_names - 1], name) != 0)
            names[n_names++] = name;
    }
    hint_names(c, n->name, "functions", names, n_names);
    return rc;
}

/* A pattern that is written out is compiled once, now. */
static int check_pattern(struct rv_compile *c, struct rv_expr_node *n)
{
    const struct rv_expr_node *arg = n->a ? n->items : n->items->next;
    rv_err *why = NULL;
    int rc;

    if (arg->kind != RV_EXPR_NODE_LITERAL || arg->value.type != RV_T_STRING)
        return 0;
    rc = rv_pattern_new(arg->value.as.s, &n->pattern, &why);
    if (rc == 0) {
        n->next_pattern = c->e->patterns;
        c->e->patterns = n;
    } else if (rv_err_is(why, RV_E_NOMEM)) {
        rc = RV_EXPR_FAIL(c, arg->off, RV_E_NOMEM, "no memory for an expression");
    } else {
        rc = RV_EXPR_FAIL(c, arg->off, RV_E_INVALID, "%s", rv_err_text(why));
        if (rv_err_hint_text(why))
            rv_err_set_hint(c->err, "%s", rv_err_hint_text(why));
    }
    rv_err_free(why);
    return rc;
}

static int check_call(struct rv_compile *c, struct rv_expr_node *n)
{
    size_t n_args = n->n_items + (n->a ? 1 : 0), i = 0;
    char taken[96], given[96];
    int rc;

    for (size_t m = 0; m < RV_COUNT(macros); m++) {
        if (!rv_str_is(n->name, macros[m].name))
            continue;
        if (n->a)
            return check_macro(c, n, m);
        return RV_EXPR_FAIL(c, n->off, RV_E_INVALID, "%s() is called on a list or map: x.%s(...)", macros[m].name,
                            macros[m].name);
    }
    if (rv_str_is(n->name, "has") && !n->a)
        return check_has(c, n);
    n->fn = lang_function_find(n->name, n->a != NULL);
    if (!n->fn)
        return unknown_function(c, n);
    if (n_args != n->fn->n_args) {
        size_t n_taken = n->fn->n_args - n->fn->is_method;
        rc = RV_EXPR_FAIL(c, n->off, RV_E_INVALID, "%s() takes %zu argument%s, not %zu", n->fn->name, n_taken,
                          n_taken == 1 ? "" : "s", n->n_items);
        rv_err_set_hint(c->err, "write it as %s%s(%s)", n->fn->is_method ? "x." : "", n->fn->name,
                        n_taken == 0   ? ""
                        : n_taken == 1 ? "a"
                                       : "a, b");
        return rc;
    }
    for (struct rv_expr_node *arg = n->a ? n->a : n->items; arg; arg = arg == n->a ? n->items : arg->next, i++) {
        rc = check(c, arg);
        if (rc < 0)
            return rc;
        if (!(arg->types & n->fn->args[i]))
            return RV_EXPR_FAIL(c, arg->off, RV_E_INVALID, "%s() takes %s here, not %s", n->fn->name,
                                types_text(n->fn->args[i], taken, sizeof(taken)),
                                types_text(arg->types, given, sizeof(given)));
    }
    n->types = n->fn->result;
    return rv_str_is(n->name, "matches") ? check_pattern(c, n) : 0;
}

static int check(struct rv_compile *c, struct rv_expr_node *n)
{
    switch (n->kind) {
    case RV_EXPR_NODE_LITERAL:
        n->types = RV_TBIT(n->value.type);
        return 0;
    case RV_EXPR_NODE_NAME:
        return check_name(c, n);
    case RV_EXPR_NODE_SELECT:
        return check_select(c, n);
    case RV_EXPR_NODE_INDEX:
        return check_index(c, n);
    case RV_EXPR_NODE_NOT:
    case RV_EXPR_NODE_NEGATE:
        return check_unary(c, n);
    case RV_EXPR_NODE_BINARY:
        return check_binary(c, n);
    case RV_EXPR_NODE_AND:
    case RV_EXPR_NODE_OR:
        n->types = RV_M_BOOL;
        return check_items(c, n);
    case RV_EXPR_NODE_COND:
        return check_cond(c, n);
    case RV_EXPR_NODE_LIST:
        n->types = RV_M_LIST;
        return check_items(c, n);
    case RV_EXPR_NODE_MAP:
        n->types = RV_M_MAP;
        return check_items(c, n);
    case RV_EXPR_NODE_CALL:
        return check_call(c, n);
    case RV_EXPR_NODE_VAR:
    case RV_EXPR_NODE_VAR_FIELD:
    case RV_EXPR_NODE_SLOT:
    case RV_EXPR_NODE_HAS:
    case RV_EXPR_NODE_MACRO:
        return 0; /* made by this pass, and no node is visited twice */
    }
    return 0;
}

int lang_expr_check(struct rv_compile *c, struct rv_expr_node *n)
{
    return check(c, n);
}
