/* The public calls on expressions: compile, look, evaluate. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/expr_internal.h"

/* Nodes are the bulk: one per token at most, and an expression has at most one token a byte. */
#define MAX_COMPILED (RV_EXPR_MAX_BYTES * (sizeof(struct rv_node) + 64) + 65536)

struct rv_src rv_text_place(rv_str text, const struct rv_src *start, size_t off)
{
    struct rv_src at = start ? *start : (struct rv_src){NULL, 1, 1};

    if (at.line == 0) /* unknown where the text begins: unknown where this is */
        return at;
    for (size_t i = 0; i < off && i < text.len; i++) {
        if (text.ptr[i] == '\n') {
            at.line++;
            at.col = 1;
        } else if (((unsigned char)text.ptr[i] & 0xc0) != 0x80) { /* columns count characters */
            at.col++;
        }
    }
    return at;
}

struct rv_src rv_expr_place(const rv_expr *e, size_t off)
{
    return rv_text_place((rv_str){e->text, e->len}, &e->start, off);
}

void rv_expr_free(rv_expr *e)
{
    if (!e)
        return;
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
        at = rv_text_place(text, src, bad);
        return RV_FAIL_AT(err, &at, RV_E_PARSE, "expression is not valid UTF-8");
    }
    c.e = calloc(1, sizeof(*c.e));
    if (!c.e)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for an expression");
    if ((rc = set_text(c.e, text, src, err)) < 0 || (rc = rv_expr_parse(&c, &c.e->root)) < 0 ||
        (rc = rv_expr_check(&c, c.e->root)) < 0) {
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
    rc = rv_ev_run(&ev, e->root, &v);
    if (rc == 0)
        rc = rv_value_to_json(&ev, &v, 0, &result);
    if (rc < 0)
        rc = rv_ev_report(&ev);
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
    rc = rv_ev_run(&ev, e->root, &v);
    if (rc < 0) {
        rc = rv_ev_report(&ev);
    } else if (v.type != RV_T_BOOL) {
        at = rv_expr_place(e, 0);
        rc = RV_FAIL_AT(err, &at, RV_E_INVALID, "expression gives %s, not bool", rv_type_text(v.type));
    } else {
        *out = v.as.b;
    }
    rv_arena_free(ev.arena);
    return rc;
}
