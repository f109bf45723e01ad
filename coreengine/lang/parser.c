/* Tokens to a syntax tree, by recursive descent, loosest operator first. Parentheses and the tree itself are bounded by
 * RV_EXPR_MAX_DEPTH, so neither this file nor a walk of the tree can exhaust the stack. Chains of && and || become one
 * node, so their length does not add depth. */
#include <string.h>

#include "coreengine/lang/expr_internal.h"

static int parse_expr(struct rv_compile *c, struct rv_expr_node **out);

/* Does the token at hand stand behind the word "not"? */
static bool follows_not(const struct rv_compile *c)
{
    size_t at = c->tok.off;

    while (at > 0 && c->e->text[at - 1] == ' ')
        at--;
    return at >= 3 && at < c->tok.off && memcmp(c->e->text + at - 3, "not", 3) == 0 &&
           (at == 3 ||
            !(rv_is_letter(c->e->text[at - 4]) || rv_is_digit(c->e->text[at - 4]) || strchr("_.", c->e->text[at - 4])));
}

static int unexpected(struct rv_compile *c, const char *expected)
{
    static const char *const words[][2] = {{"and", "&&"}, {"or", "||"}, {"not", "!"}, {"is", "=="}};

    if (c->tok.kind == RV_TOK_END) {
        int rc = RV_EXPR_FAIL(c, c->tok.off, RV_E_PARSE, "unexpected end of the expression, expected %s", expected);
        if (strstr(expected, "conditional"))
            rv_err_set_hint(c->err, "write CONDITION ? VALUE : OTHER");
        else if (!strstr(expected, "field name")) /* that says it all */
            rv_err_set_hint(c->err, "each bracket has to be closed, and each operator needs a value behind it");
        return rc;
    }
    rv_str found = {c->e->text + c->tok.off, c->tok.len};
    int rc = RV_EXPR_FAIL(c, c->tok.off, RV_E_PARSE, "unexpected \"%.*s\", expected %s", RV_STR_ARG(found), expected);
    if (strstr(c->e->text, "{{"))
        rv_err_set_hint(c->err, "an expression stands without braces: output.x, not {{output.x}}");
    else if (follows_not(c))
        rv_err_set_hint(c->err, "\"not\" is written !");
    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(found, words[i][0]))
            rv_err_set_hint(c->err, "\"%s\" is written %s", words[i][0], words[i][1]);
    return rc;
}

static bool is_op(const struct rv_compile *c, enum rv_punct op)
{
    return c->tok.kind == RV_TOK_PUNCT && c->tok.op == op;
}

static int expect(struct rv_compile *c, enum rv_punct op, const char *expected)
{
    return is_op(c, op) ? lang_expr_next_token(c) : unexpected(c, expected);
}

static int too_deep(struct rv_compile *c, size_t off)
{
    return RV_EXPR_FAIL(c, off, RV_E_LIMIT, "expression is nested deeper than %d levels", RV_EXPR_MAX_DEPTH);
}

/* A node that points to token t; NULL when there is no memory, with the error made. */
static struct rv_expr_node *new_node(struct rv_compile *c, enum rv_expr_node_kind kind, const struct rv_token *t)
{
    struct rv_expr_node *n = rv_arena_alloc(c->e->arena, sizeof(*n));

    if (!n) {
        RV_IGNORE(RV_EXPR_FAIL(c, t->off, RV_E_NOMEM, "no memory for an expression"), "NULL tells the caller");
        return NULL;
    }
    n->kind = kind;
    n->depth = 1;
    n->op = t->op;
    n->off = t->off;
    n->len = t->len;
    return n;
}

/* After the children of n are set. */
static int set_depth(struct rv_compile *c, struct rv_expr_node *n)
{
    const struct rv_expr_node *kids[] = {n->a, n->b, n->c};

    for (size_t i = 0; i < RV_COUNT(kids); i++) {
        if (kids[i] && kids[i]->depth >= n->depth)
            n->depth = kids[i]->depth + 1;
    }
    for (const struct rv_expr_node *kid = n->items; kid; kid = kid->next) {
        if (kid->depth >= n->depth)
            n->depth = kid->depth + 1;
    }
    return n->depth > RV_EXPR_MAX_DEPTH ? too_deep(c, n->off) : 0;
}

static void append_item(struct rv_expr_node *n, struct rv_expr_node **last, struct rv_expr_node *item)
{
    if (*last)
        (*last)->next = item;
    else
        n->items = item;
    *last = item;
    n->n_items++;
}

/* Expressions separated by commas up to `close`, which is consumed; of a map: pairs. A comma may come last in list and
 * map literals. */
static int parse_items(struct rv_compile *c, struct rv_expr_node *n, enum rv_punct close, const char *expected)
{
    struct rv_expr_node *last = NULL, *item = NULL;
    int rc;

    while (!is_op(c, close)) {
        rc = parse_expr(c, &item);
        if (rc < 0)
            return rc;
        append_item(n, &last, item);
        if (n->kind == RV_EXPR_NODE_MAP) {
            if ((rc = expect(c, RV_OP_COLON, "\":\" after a map key")) < 0 || (rc = parse_expr(c, &item)) < 0)
                return rc;
            append_item(n, &last, item);
        }
        if (!is_op(c, RV_OP_COMMA))
            break;
        rc = lang_expr_next_token(c);
        if (rc < 0)
            return rc;
        if (is_op(c, close) && close == RV_OP_RPAREN)
            return unexpected(c, "an argument");
    }
    rc = expect(c, close, expected);
    return rc < 0 ? rc : set_depth(c, n);
}

/* Names that CEL keeps for the languages it is embedded in. */
static bool is_reserved(rv_str name)
{
    static const char *const words[] = {"as",       "break",  "const",  "continue", "else", "for",
                                        "function", "if",     "import", "let",      "loop", "namespace",
                                        "package",  "return", "var",    "void",     "while"};

    for (size_t i = 0; i < RV_COUNT(words); i++) {
        if (rv_str_is(name, words[i]))
            return true;
    }
    return false;
}

static int token_name(struct rv_compile *c, rv_str *out)
{
    char *name = rv_arena_dup(c->e->arena, (rv_str){c->e->text + c->tok.off, c->tok.len});

    if (!name)
        return RV_EXPR_FAIL(c, c->tok.off, RV_E_NOMEM, "no memory for an expression");
    *out = (rv_str){name, c->tok.len};
    return 0;
}

static int parse_name(struct rv_compile *c, struct rv_expr_node **out)
{
    struct rv_expr_node *n = new_node(c, RV_EXPR_NODE_NAME, &c->tok);
    int rc;

    if (!n)
        return RV_E_NOMEM;
    rc = token_name(c, &n->name);
    if (rc < 0)
        return rc;
    if (is_reserved(n->name))
        return RV_EXPR_FAIL(c, n->off, RV_E_PARSE, "\"%s\" is a reserved word", n->name.ptr);
    *out = n;
    rc = lang_expr_next_token(c);
    if (rc < 0 || !is_op(c, RV_OP_LPAREN))
        return rc;
    n->kind = RV_EXPR_NODE_CALL;
    rc = lang_expr_next_token(c);
    return rc < 0 ? rc : parse_items(c, n, RV_OP_RPAREN, "\",\" or \")\" after an argument");
}

static int parse_literal(struct rv_compile *c, bool negative, struct rv_expr_node **out)
{
    struct rv_expr_node *n = new_node(c, RV_EXPR_NODE_LITERAL, &c->tok);

    if (!n)
        return RV_E_NOMEM;
    n->value = c->tok.value;
    if (n->value.type == RV_T_INT && n->value.as.i == INT64_MIN && !negative)
        return RV_EXPR_FAIL(c, n->off, RV_E_PARSE, "integer \"%.*s\" does not fit int64", (int)n->len,
                            c->e->text + n->off);
    if (negative && n->value.type == RV_T_INT && n->value.as.i != INT64_MIN)
        n->value.as.i = -n->value.as.i;
    else if (negative && n->value.type == RV_T_DOUBLE)
        n->value.as.d = -n->value.as.d;
    *out = n;
    return lang_expr_next_token(c);
}

static int parse_primary(struct rv_compile *c, struct rv_expr_node **out)
{
    enum rv_punct close;
    int rc;

    if (c->tok.kind == RV_TOK_LITERAL)
        return parse_literal(c, false, out);
    if (c->tok.kind == RV_TOK_IDENT)
        return parse_name(c, out);
    if (is_op(c, RV_OP_LPAREN)) {
        if ((rc = lang_expr_next_token(c)) < 0 || (rc = parse_expr(c, out)) < 0)
            return rc;
        return expect(c, RV_OP_RPAREN, "\")\"");
    }
    if (is_op(c, RV_OP_LBRACKET) || is_op(c, RV_OP_LBRACE)) {
        close = c->tok.op == RV_OP_LBRACKET ? RV_OP_RBRACKET : RV_OP_RBRACE;
        *out = new_node(c, close == RV_OP_RBRACKET ? RV_EXPR_NODE_LIST : RV_EXPR_NODE_MAP, &c->tok);
        if (!*out)
            return RV_E_NOMEM;
        rc = lang_expr_next_token(c);
        if (rc < 0)
            return rc;
        return parse_items(c, *out, close,
                           close == RV_OP_RBRACKET ? "\",\" or \"]\" after a list element"
                                                   : "\",\" or \"}\" after a map value");
    }
    return unexpected(c, "a value");
}

/* .field, .method(...) or [index] behind `of`. */
static int parse_suffix(struct rv_compile *c, struct rv_expr_node *of, struct rv_expr_node **out)
{
    bool is_index = is_op(c, RV_OP_LBRACKET);
    struct rv_expr_node *n = new_node(c, is_index ? RV_EXPR_NODE_INDEX : RV_EXPR_NODE_SELECT, &c->tok);
    int rc;

    if (!n)
        return RV_E_NOMEM;
    rc = lang_expr_next_token(c);
    if (rc < 0)
        return rc;
    n->a = of;
    *out = n;
    if (is_index) {
        if ((rc = parse_expr(c, &n->b)) < 0 || (rc = expect(c, RV_OP_RBRACKET, "\"]\"")) < 0)
            return rc;
        return set_depth(c, n);
    }

    if (c->tok.kind != RV_TOK_IDENT)
        return unexpected(c, "a field name after \".\"; other names are written a[\"name\"]");
    n->off = c->tok.off;
    n->len = c->tok.len;
    if ((rc = token_name(c, &n->field)) < 0 || (rc = lang_expr_next_token(c)) < 0)
        return rc;
    if (!is_op(c, RV_OP_LPAREN))
        return set_depth(c, n);
    n->kind = RV_EXPR_NODE_CALL;
    n->name = n->field;
    rc = lang_expr_next_token(c);
    return rc < 0 ? rc : parse_items(c, n, RV_OP_RPAREN, "\",\" or \")\" after an argument");
}

static int parse_unary(struct rv_compile *c, struct rv_expr_node **out)
{
    struct rv_token ops[RV_EXPR_MAX_DEPTH];
    size_t n_ops = 0;
    struct rv_expr_node *n;
    int rc;

    while (is_op(c, RV_OP_NOT) || is_op(c, RV_OP_SUB)) {
        if (n_ops == RV_COUNT(ops))
            return too_deep(c, c->tok.off);
        ops[n_ops++] = c->tok;
        rc = lang_expr_next_token(c);
        if (rc < 0)
            return rc;
    }
    /* A minus directly before a number belongs to the literal: -2^63 has no positive counterpart. */
    if (n_ops > 0 && ops[n_ops - 1].op == RV_OP_SUB && c->tok.kind == RV_TOK_LITERAL &&
        (c->tok.value.type == RV_T_INT || c->tok.value.type == RV_T_DOUBLE)) {
        n_ops--;
        rc = parse_literal(c, true, out);
    } else {
        rc = parse_primary(c, out);
    }
    while (rc == 0 && (is_op(c, RV_OP_DOT) || is_op(c, RV_OP_LBRACKET)))
        rc = parse_suffix(c, *out, out);

    while (rc == 0 && n_ops > 0) {
        const struct rv_token *op = &ops[--n_ops];

        n = new_node(c, op->op == RV_OP_NOT ? RV_EXPR_NODE_NOT : RV_EXPR_NODE_NEGATE, op);
        if (!n)
            return RV_E_NOMEM;
        n->a = *out;
        *out = n;
        rc = set_depth(c, n);
    }
    return rc;
}

/* How tightly a binary operator binds; 0: none. && and || are not among them. */
static int tightness(const struct rv_compile *c)
{
    if (c->tok.kind != RV_TOK_PUNCT)
        return 0;
    if (is_op(c, RV_OP_MUL) || is_op(c, RV_OP_DIV) || is_op(c, RV_OP_MOD))
        return 3;
    if (is_op(c, RV_OP_ADD) || is_op(c, RV_OP_SUB))
        return 2;
    return c->tok.op <= RV_OP_GE || is_op(c, RV_OP_LT) || is_op(c, RV_OP_GT) || is_op(c, RV_OP_IN);
}

static int parse_binary(struct rv_compile *c, int at_least, struct rv_expr_node **out)
{
    int rc = at_least > 3 ? parse_unary(c, out) : parse_binary(c, at_least + 1, out);

    while (rc == 0 && at_least <= 3 && tightness(c) == at_least) {
        struct rv_expr_node *n = new_node(c, RV_EXPR_NODE_BINARY, &c->tok);

        if (!n)
            return RV_E_NOMEM;
        n->a = *out;
        if ((rc = lang_expr_next_token(c)) < 0 || (rc = parse_binary(c, at_least + 1, &n->b)) < 0)
            return rc;
        *out = n;
        rc = set_depth(c, n);
    }
    return rc;
}

static int parse_logical(struct rv_compile *c, enum rv_punct op, struct rv_expr_node **out)
{
    struct rv_expr_node *n = NULL, *last = NULL, *item = NULL;
    int rc;

    for (;;) {
        rc = op == RV_OP_OR ? parse_logical(c, RV_OP_AND, &item) : parse_binary(c, 1, &item);
        if (rc < 0)
            return rc;
        if (!n && !is_op(c, op)) {
            *out = item;
            return 0;
        }
        if (!n && !(n = new_node(c, op == RV_OP_OR ? RV_EXPR_NODE_OR : RV_EXPR_NODE_AND, &c->tok)))
            return RV_E_NOMEM;
        append_item(n, &last, item);
        if (!is_op(c, op))
            break;
        rc = lang_expr_next_token(c);
        if (rc < 0)
            return rc;
    }
    *out = n;
    return set_depth(c, n);
}

static int parse_cond(struct rv_compile *c, struct rv_expr_node **out)
{
    struct rv_expr_node *n;
    int rc = parse_logical(c, RV_OP_OR, out);

    if (rc < 0 || !is_op(c, RV_OP_QUESTION))
        return rc;
    n = new_node(c, RV_EXPR_NODE_COND, &c->tok);
    if (!n)
        return RV_E_NOMEM;
    n->a = *out;
    if ((rc = lang_expr_next_token(c)) < 0 || (rc = parse_logical(c, RV_OP_OR, &n->b)) < 0 ||
        (rc = expect(c, RV_OP_COLON, "\":\" of the conditional")) < 0 || (rc = parse_expr(c, &n->c)) < 0)
        return rc;
    *out = n;
    return set_depth(c, n);
}

static int parse_expr(struct rv_compile *c, struct rv_expr_node **out)
{
    int rc;

    if (c->nesting == RV_EXPR_MAX_DEPTH)
        return too_deep(c, c->tok.off);
    c->nesting++;
    rc = parse_cond(c, out);
    c->nesting--;
    return rc;
}

int lang_expr_parse(struct rv_compile *c, struct rv_expr_node **out)
{
    int rc;

    if ((rc = lang_expr_next_token(c)) < 0)
        return rc;
    if (c->tok.kind == RV_TOK_END) {
        rc = RV_EXPR_FAIL(c, 0, RV_E_PARSE, "empty expression");
        rv_err_set_hint(c->err, "write a condition, for example output.verdict == \"ok\", or true");
        return rc;
    }
    rc = parse_expr(c, out);
    if (rc == 0 && c->tok.kind != RV_TOK_END)
        return unexpected(c, "an operator or the end");
    return rc;
}
