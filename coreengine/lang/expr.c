/* The public calls on expressions: compile, look, evaluate. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/expr_internal.h"

/* --- From the record of a failed evaluation to an error for people: what, where, and what may have been meant --- */

#define MAX_KEYS   64 /* of a map that are compared with a mistyped one: only for a hint */
#define MAX_QUOTED 80 /* bytes of a value that a message shows: a line of a terminal */

#define FAIL(ev, code, ...)                                                                                            \
    ((at) = lang_expr_place((ev)->e, (ev)->fault.node->off), RV_FAIL_AT((ev)->err, &at, (code), __VA_ARGS__))

static void hint_key(struct rv_eval *ev, const struct rv_value *map, rv_str key)
{
    const char *names[MAX_KEYS], *near;
    struct rv_value name, unused;
    const void *pos = NULL;
    size_t n = 0;

    while (n < MAX_KEYS && lang_value_next_pair(map, &pos, &name, &unused)) {
        if (name.type == RV_T_STRING)
            names[n++] = name.as.s.ptr;
    }
    near = rv_nearest(key, names, n);
    if (near)
        rv_err_set_hint(ev->err, "did you mean \"%s\"?", near);
}

static void value_text(const struct rv_value *v, rv_buf *b)
{
    rv_str s;

    switch (v->type) {
    case RV_T_NULL:
        rv_buf_puts(b, "null");
        return;
    case RV_T_BOOL:
        rv_buf_puts(b, v->as.b ? "true" : "false");
        return;
    case RV_T_INT:
        rv_buf_printf(b, "%lld", (long long)v->as.i);
        return;
    case RV_T_UINT:
        rv_buf_printf(b, "%lluu", (unsigned long long)v->as.u);
        return;
    case RV_T_DOUBLE:
        rv_buf_printf(b, "%.17g", v->as.d);
        return;
    case RV_T_STRING:
        s = rv_utf8_cut(v->as.s, MAX_QUOTED);
        rv_buf_printf(b, "\"%.*s\"%s", RV_STR_ARG(s), s.len < v->as.s.len ? "..." : "");
        return;
    case RV_T_LIST:
    case RV_T_MAP:
    case RV_T_TYPE:
    case RV_N_TYPES:
        break;
    }
    rv_buf_printf(b, "a value of type %s", lang_type_text(v->type));
}

/* A variable, or the member of one, that the scope does not have. Only now the whole variable is asked for. */
static int report_no_value(struct rv_eval *ev)
{
    const struct rv_expr_node *n = ev->fault.node;
    json_object *whole = NULL;
    struct rv_value v;
    bool found = false;
    struct rv_src at;
    int rc = 0;

    if (n->kind == RV_EXPR_NODE_VAR_FIELD)
        rc = ev->scope->lookup(ev->scope->self, n->name, (rv_str){NULL, 0}, &whole, &found, ev->err);
    if (rc < 0)
        return rc;
    if (!found)
        return FAIL(ev, RV_E_NOT_FOUND, "variable \"%s\" has no value here", n->name.ptr);
    v = lang_value_of_json(whole);
    if (v.type != RV_T_MAP)
        return FAIL(ev, RV_E_INVALID, "\"%s\" is of type %s and has no member \"%.*s\"", n->name.ptr,
                    lang_type_text(v.type), RV_STR_ARG(n->field));
    rc = FAIL(ev, RV_E_NOT_FOUND, "no such key \"%.*s\" in \"%s\"", RV_STR_ARG(n->field), n->name.ptr);
    hint_key(ev, &v, n->field);
    return rc;
}

static int report_types(struct rv_eval *ev)
{
    const struct rv_fault_record *f = &ev->fault;
    const char *token = ev->e->text + f->node->off;
    int len = (int)f->node->len, rc;
    struct rv_src at;

    if (f->kind == RV_FAULT_TYPE)
        return FAIL(ev, RV_E_INVALID, "no such overload: \"%.*s\" does not take %s", len, token,
                    lang_type_text(f->a.type));
    rc = FAIL(ev, RV_E_INVALID, "no such overload: \"%.*s\" does not take %s and %s", len, token,
              lang_type_text(f->a.type), lang_type_text(f->b.type));
    if (f->a.type != f->b.type && (RV_TBIT(f->a.type) & RV_M_NUMBER) && (RV_TBIT(f->b.type) & RV_M_NUMBER))
        rv_err_set_hint(ev->err, "numbers are not converted by themselves: write int(x), uint(x) or double(x)");
    return rc;
}

/* Faults whose message shows a value. */
static int report_value(struct rv_eval *ev)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT((size_t)4 * MAX_QUOTED);
    const struct rv_fault_record *f = &ev->fault;
    struct rv_src at;
    int rc;

    value_text(f->kind == RV_FAULT_CONVERT ? &f->a : &f->b, &text);
    if (text.rc == RV_E_NOMEM) /* without the value the message would be another one, and runs keep messages */
        return FAIL(ev, RV_E_NOMEM, "no memory to say what is wrong with an expression");
    if (f->kind == RV_FAULT_CONVERT)
        return FAIL(ev, RV_E_INVALID, "%s can not become %.*s", rv_buf_cstr(&text), RV_STR_ARG(f->text));
    if (f->kind == RV_FAULT_DUPLICATE_KEY)
        return FAIL(ev, RV_E_INVALID, "map key %s comes twice", rv_buf_cstr(&text));
    if (f->kind == RV_FAULT_NO_ELEMENT)
        return FAIL(ev, RV_E_NOT_FOUND, "no element %s in a list of %zu", rv_buf_cstr(&text), lang_value_size(&f->a));
    rc = FAIL(ev, RV_E_NOT_FOUND, "no such key %s", rv_buf_cstr(&text));
    if (f->b.type == RV_T_STRING)
        hint_key(ev, &f->a, f->b.as.s);
    return rc;
}

/* Turn the recorded fault into *err. */
static int report(struct rv_eval *ev)
{
    struct rv_src at;

    switch (ev->fault.kind) {
    case RV_FAULT_NO_VALUE:
        return report_no_value(ev);
    case RV_FAULT_TYPE:
    case RV_FAULT_TYPES:
        return report_types(ev);
    case RV_FAULT_NO_KEY:
    case RV_FAULT_NO_ELEMENT:
    case RV_FAULT_CONVERT:
    case RV_FAULT_DUPLICATE_KEY:
        return report_value(ev);
    case RV_FAULT_OVERFLOW:
        return FAIL(ev, RV_E_INVALID, "integer overflow in \"%.*s\"", (int)ev->fault.node->len,
                    ev->e->text + ev->fault.node->off);
    case RV_FAULT_DIV_ZERO:
        return FAIL(ev, RV_E_INVALID, "division by zero");
    case RV_FAULT_WORK:
        return FAIL(ev, RV_E_LIMIT, "expression takes more than %d steps", RV_EXPR_MAX_WORK);
    case RV_FAULT_MEMORY:
        return FAIL(ev, RV_E_LIMIT, "expression builds more than %zu bytes", RV_EXPR_MAX_MEMORY);
    case RV_FAULT_DEPTH:
        return FAIL(ev, RV_E_LIMIT, "value is nested deeper than %d levels", RV_EXPR_MAX_VALUE_DEPTH);
    case RV_FAULT_NOMEM:
        return FAIL(ev, RV_E_NOMEM, "no memory to evaluate an expression");
    case RV_FAULT_SCOPE:
        return ev->scope_rc;
    case RV_FAULT_NONE:
        break;
    }
    return 0;
}

/* --- Compiling and evaluating --- */

/* Nodes are the bulk: one per token at most, and an expression has at most one token a byte. */
#define MAX_COMPILED (RV_EXPR_MAX_BYTES * (sizeof(struct rv_expr_node) + 64) + 65536)

struct rv_src lang_text_place(rv_str text, const struct rv_src *start, size_t off)
{
    struct rv_src at = start ? *start : (struct rv_src){NULL, 1, 1};

    if (at.line == 0) /* unknown where the text begins: unknown where this is */
        return at;
    for (size_t i = 0; i < off && i < text.len; i++) {
        if (text.ptr[i] == '\n') {
            at.line++;
            at.col = 1;
        } else if (!rv_utf8_continues(text.ptr[i])) { /* columns count characters */
            at.col++;
        }
    }
    return at;
}

struct rv_src lang_expr_place(const rv_expr *e, size_t off)
{
    return lang_text_place((rv_str){e->text, e->len}, &e->start, off);
}

/* --- What it names --- */

bool rv_expr_has_variable(const rv_expr *e, const char *name, struct rv_src *src)
{
    const struct rv_expr_node *first = NULL;

    for (const struct rv_expr_node *n = e->vars; n; n = n->next_var)
        if (rv_str_is(n->name, name) && (!first || n->off < first->off))
            first = n;
    if (first && src)
        *src = lang_expr_place(e, first->off);
    return first != NULL;
}

size_t rv_expr_n_names(const rv_expr *e)
{
    return e->n_names;
}

static bool is_same_name(const struct rv_expr_node *a, const struct rv_expr_node *b)
{
    return rv_str_eq(a->name, b->name) && rv_str_eq(a->field, b->field) && !a->member.ptr == !b->member.ptr &&
           rv_str_eq(a->member, b->member);
}

struct rv_placeholder rv_expr_name_at(const rv_expr *e, size_t i)
{
    const struct rv_expr_node *n = e->names;
    bool is_test = false;

    while (i-- > 0)
        n = n->next_name;
    for (const struct rv_expr_node *other = e->names; other && !is_test; other = other->next_name)
        is_test = other->is_test && is_same_name(n, other);
    return (struct rv_placeholder){.root = n->name,
                                   .field = n->field,
                                   .member = n->member,
                                   .is_test = is_test,
                                   .src = lang_expr_place(e, n->b ? n->b->off : n->off)}; /* a["b"] */
}

void rv_expr_free(rv_expr *e)
{
    if (!e)
        return;
    for (struct rv_expr_node *n = e->patterns; n; n = n->next_pattern)
        rv_pattern_free(n->pattern);
    rv_arena_free(e->arena);
    free(e);
}

const char *rv_expr_text(const rv_expr *e)
{
    return e->text;
}

bool rv_expr_may_be_bool(const rv_expr *e)
{
    return (e->root->types & RV_M_BOOL) != 0;
}

static int set_text(rv_expr *e, rv_str text, const struct rv_src *src, rv_err **err)
{
    e->arena = rv_arena_new(MAX_COMPILED);
    e->text = e->arena ? rv_arena_dup(e->arena, text) : NULL;
    e->len = text.len;
    e->start = src ? *src : (struct rv_src){NULL, 1, 1};
    if (src && src->file && e->arena)
        e->start.file = rv_arena_dup(e->arena, rv_str_of(src->file));
    if (!e->text || (src && src->file && !e->start.file))
        return RV_FAIL(err, RV_E_NOMEM, "no memory for an expression");
    return 0;
}

int rv_expr_compile(rv_str text, const struct rv_src *src, const char *const *vars, size_t n_vars, rv_expr **out,
                    rv_err **err)
{
    struct rv_compile c = {.vars = vars, .n_vars = n_vars, .err = err};
    struct rv_src at;
    size_t bad;
    int rc;

    if (text.len > RV_EXPR_MAX_BYTES)
        return RV_FAIL_AT(err, src, RV_E_LIMIT, "expression has %zu bytes, the limit is %d", text.len,
                          RV_EXPR_MAX_BYTES);
    if (!rv_utf8_valid(text, &bad)) {
        at = lang_text_place(text, src, bad);
        return RV_FAIL_AT(err, &at, RV_E_PARSE, "expression is not valid UTF-8");
    }
    c.e = calloc(1, sizeof(*c.e));
    if (!c.e)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for an expression");
    if ((rc = set_text(c.e, text, src, err)) < 0 || (rc = lang_expr_parse(&c, &c.e->root)) < 0 ||
        (rc = lang_expr_check(&c, c.e->root)) < 0) {
        rv_expr_free(c.e);
        return rc;
    }
    *out = c.e;
    return 0;
}

static void start(struct rv_eval *ev, const rv_expr *e, const struct rv_scope *scope, rv_err **err)
{
    /* Not the slots: 800 bytes that a macro writes before it reads. */
    ev->e = e;
    ev->scope = scope;
    ev->err = err;
    ev->arena = NULL;
    ev->memory = ev->work = 0;
    ev->scope_rc = 0;
    ev->fault.kind = RV_FAULT_NONE;
}

int rv_expr_eval(const rv_expr *e, const struct rv_scope *scope, json_object **out, rv_err **err)
{
    struct rv_eval ev;
    struct rv_value v;
    json_object *result = NULL;
    int rc;

    start(&ev, e, scope, err);
    rc = lang_ev_run(&ev, e->root, &v);
    if (rc == 0)
        rc = lang_value_to_json(&ev, &v, 0, &result);
    if (rc < 0)
        rc = report(&ev);
    else
        *out = result;
    rv_arena_free(ev.arena);
    return rc;
}

int rv_expr_test(const rv_expr *e, const struct rv_scope *scope, bool *out, rv_err **err)
{
    struct rv_eval ev;
    struct rv_value v;
    struct rv_src at;
    int rc;

    start(&ev, e, scope, err);
    rc = lang_ev_run(&ev, e->root, &v);
    if (rc < 0) {
        rc = report(&ev);
    } else if (v.type != RV_T_BOOL) {
        at = lang_expr_place(e, 0);
        rc = RV_FAIL_AT(err, &at, RV_E_INVALID, "expression gives %s, not bool", lang_type_text(v.type));
    } else {
        *out = v.as.b;
    }
    rv_arena_free(ev.arena);
    return rc;
}
