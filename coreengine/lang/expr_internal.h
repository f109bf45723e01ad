/* Shared by the files of this folder: tokens, the syntax tree, values, and the state of one compilation or evaluation.
 *
 * The way through: parser.c turns text into nodes (with lexer.c), check.c resolves names and rejects what can never
 * work, eval.c walks the nodes. A type is a bit, and a node carries the set of types its value may have, so "can this
 * ever work" is one AND. */
#ifndef RV_EXPR_INTERNAL_H
#define RV_EXPR_INTERNAL_H

#include "coreengine/lang/lang.h"

/* Temporaries of one evaluation: joined strings, lists that a macro builds. */
#define RV_EXPR_MAX_MEMORY ((size_t)1 << 20)
/* Bytes that one step of work may look at; longer strings cost more steps. A text of 8 MiB can be searched three times.
 */
#define RV_EXPR_BYTES_PER_STEP 256 /* of a text that is copied or compared: one step of work */
/* Walking two values side by side; readers cap trees at 256, an expression adds at most its own depth. */
#define RV_EXPR_MAX_VALUE_DEPTH 512

/* --- Values ------------------------------------------------------------------------------------------------------ */
#define RV_TYPES(X)                                                                                                    \
    X(NULL, "null_type")                                                                                               \
    X(BOOL, "bool")                                                                                                    \
    X(INT, "int")                                                                                                      \
    X(UINT, "uint")                                                                                                    \
    X(DOUBLE, "double")                                                                                                \
    X(STRING, "string")                                                                                                \
    X(LIST, "list")                                                                                                    \
    X(MAP, "map")                                                                                                      \
    X(TYPE, "type")

enum rv_type {
#define X(name, text) RV_T_##name,
    RV_TYPES(X)
#undef X
        RV_N_TYPES
};
#define RV_TBIT(t)  (1u << (t))
#define RV_M_BOOL   RV_TBIT(RV_T_BOOL)
#define RV_M_INT    RV_TBIT(RV_T_INT)
#define RV_M_UINT   RV_TBIT(RV_T_UINT)
#define RV_M_DOUBLE RV_TBIT(RV_T_DOUBLE)
#define RV_M_STRING RV_TBIT(RV_T_STRING)
#define RV_M_LIST   RV_TBIT(RV_T_LIST)
#define RV_M_MAP    RV_TBIT(RV_T_MAP)
#define RV_M_TYPE   RV_TBIT(RV_T_TYPE)
#define RV_M_NUMBER (RV_M_INT | RV_M_UINT | RV_M_DOUBLE)
#define RV_M_ANY    (RV_TBIT(RV_N_TYPES) - 1) /* a bit for each type */
/** "int", "string", ... Static. */
const char *lang_type_text(enum rv_type t);
/** The type of that name, or RV_N_TYPES. */
enum rv_type lang_type_named(rv_str name);

/* Passed by value. Strings have a NUL after their last byte (json-c wants its keys so). A list or map is either a
 * borrowed json-c tree or items in the arena of the evaluation; a map's items are key, value, key, value. */
struct rv_value {
    enum rv_type type;
    bool is_json; /* list and map: `json` is set, not `items` */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        rv_str s;
        enum rv_type t;
        json_object *json;
        struct {
            struct rv_value *ptr;
            size_t n; /* list: items; map: pairs */
        } items;
    } as;
};

/* --- Syntax tree ---------------------------------------------------------------------------------------------------
 */
enum rv_token_kind {
    RV_TOK_END,
    RV_TOK_IDENT,
    RV_TOK_LITERAL, /* number or string; the value is in the token */
    RV_TOK_PUNCT,   /* `op` tells which */
};

/* Operators and punctuation; two-character ones before their prefixes, as the lexer tries them in this order. */
#define RV_PUNCTS(X)                                                                                                   \
    X(EQ, "==")                                                                                                        \
    X(NE, "!=")                                                                                                        \
    X(LE, "<=")                                                                                                        \
    X(GE, ">=")                                                                                                        \
    X(AND, "&&")                                                                                                       \
    X(OR, "||")                                                                                                        \
    X(LT, "<")                                                                                                         \
    X(GT, ">")                                                                                                         \
    X(ADD, "+")                                                                                                        \
    X(SUB, "-")                                                                                                        \
    X(MUL, "*")                                                                                                        \
    X(DIV, "/")                                                                                                        \
    X(MOD, "%")                                                                                                        \
    X(NOT, "!")                                                                                                        \
    X(QUESTION, "?")                                                                                                   \
    X(COLON, ":")                                                                                                      \
    X(COMMA, ",")                                                                                                      \
    X(DOT, ".")                                                                                                        \
    X(LPAREN, "(")                                                                                                     \
    X(RPAREN, ")")                                                                                                     \
    X(LBRACKET, "[")                                                                                                   \
    X(RBRACKET, "]")                                                                                                   \
    X(LBRACE, "{")                                                                                                     \
    X(RBRACE, "}")                                                                                                     \
    X(IN, "in")

enum rv_punct {
#define X(name, text) RV_OP_##name,
    RV_PUNCTS(X)
#undef X
        RV_N_PUNCTS
};

struct rv_token {
    enum rv_token_kind kind;
    enum rv_punct op;
    size_t off, len;
    struct rv_value value;
};

enum rv_expr_node_kind {
    RV_EXPR_NODE_LITERAL,   /* value */
    RV_EXPR_NODE_NAME,      /* name, before check.c */
    RV_EXPR_NODE_VAR,       /* name */
    RV_EXPR_NODE_VAR_FIELD, /* name and field: one lookup */
    RV_EXPR_NODE_SLOT,      /* slot: the variable of a macro */
    RV_EXPR_NODE_SELECT,    /* a . field */
    RV_EXPR_NODE_INDEX,     /* a [ b ] */
    RV_EXPR_NODE_HAS,       /* a is a SELECT or VAR_FIELD */
    RV_EXPR_NODE_NOT,       /* a */
    RV_EXPR_NODE_NEGATE,    /* a */
    RV_EXPR_NODE_BINARY,    /* a op b */
    RV_EXPR_NODE_AND,       /* items */
    RV_EXPR_NODE_OR,        /* items */
    RV_EXPR_NODE_COND,      /* a ? b : c */
    RV_EXPR_NODE_LIST,      /* items */
    RV_EXPR_NODE_MAP,       /* items: key, value, key, value */
    RV_EXPR_NODE_CALL,      /* name, items; a is the receiver or NULL; fn after check.c */
    RV_EXPR_NODE_MACRO,     /* macro, slot; a: range, b: predicate (NULL for 2-argument map), c: what map yields */
};

enum rv_macro { RV_MACRO_ALL, RV_MACRO_EXISTS, RV_MACRO_EXISTS_ONE, RV_MACRO_FILTER, RV_MACRO_MAP };

struct rv_function;
/* Nodes live in the arena of their expression, as all that they point to, but patterns. */
struct rv_expr_node {
    enum rv_expr_node_kind kind;
    enum rv_punct op;
    enum rv_macro macro;
    int depth;      /* 1 for a leaf */
    unsigned types; /* set of RV_TBIT the value may have; filled by check.c */
    size_t slot;
    size_t off, len; /* the token that a message points to */
    rv_str name, field;
    struct rv_value value;
    struct rv_expr_node *a, *b, *c;
    struct rv_expr_node *items, *next; /* a list of children, and the link within such a list */
    size_t n_items;
    const struct rv_function *fn;
    rv_pattern *pattern;               /* of matches() with a literal; NULL: it is made when it is needed */
    struct rv_expr_node *next_pattern; /* the next node that owns one */
    rv_str member; /* of a VAR_FIELD: what is read of that field by a constant name; ptr NULL: nothing */
    bool is_test;  /* what it names last may be missing */
    struct rv_expr_node *next_var;  /* the next node that is a variable */
    struct rv_expr_node *next_name; /* the next node that names a member of a variable */
};

struct rv_expr {
    rv_arena *arena; /* owned, and with it everything below, nodes included */
    char *text;      /* in the arena, as all here */
    size_t len;
    struct rv_src start; /* of text; .file in the arena */
    struct rv_expr_node *root;
    struct rv_expr_node *patterns;          /* nodes that own a pattern */
    struct rv_expr_node *vars;              /* nodes that are variables, the last first */
    struct rv_expr_node *names, *last_name; /* nodes that name a member of a variable, as they were found */
    size_t n_names;
};

/* --- Compilation ---------------------------------------------------------------------------------------------------
 */
/* A text that is being compiled. What it points to is borrowed. */
struct rv_compile {
    rv_expr *e; /* borrowed */
    const char *const *vars;
    size_t n_vars;
    rv_err **err;
    struct rv_src at; /* scratch of RV_EXPR_FAIL */
    size_t pos;       /* the lexer's offset */
    int nesting;      /* the parser's recursion */
    struct rv_token tok;
    rv_str scope[RV_EXPR_MAX_DEPTH]; /* names of the macro variables in sight, by slot */
    size_t n_scope;
    char scratch[RV_EXPR_MAX_BYTES]; /* a string literal while it is decoded */
};
/** Where byte `off` of text is, when the text begins at start. */
struct rv_src lang_text_place(rv_str text, const struct rv_src *start, size_t off);
struct rv_src lang_expr_place(const rv_expr *e, size_t off);
#define RV_EXPR_FAIL(c, off, code, ...)                                                                                \
    ((c)->at = lang_expr_place((c)->e, (off)), RV_FAIL_AT((c)->err, &(c)->at, (code), __VA_ARGS__))

/** Read the next token into c->tok. */
RV_MUST_CHECK int lang_expr_next_token(struct rv_compile *c);
RV_MUST_CHECK int lang_expr_parse(struct rv_compile *c, struct rv_expr_node **out);
/** Resolve names and macros in place, fill in types. */
RV_MUST_CHECK int lang_expr_check(struct rv_compile *c, struct rv_expr_node *n);

/* --- Evaluation ----------------------------------------------------------------------------------------------------
 */
/* Failures inside an expression are cheap records, because && and || drop many of them; only one that reaches the top
 * becomes an rv_err. */
enum rv_fault {
    RV_FAULT_NONE,
    RV_FAULT_NO_KEY,     /* a: the map, b: the key */
    RV_FAULT_NO_VALUE,   /* the variable node->name has no value, or no member node->field */
    RV_FAULT_NO_ELEMENT, /* a: the list, b: the index */
    RV_FAULT_TYPE,       /* no such overload: a */
    RV_FAULT_TYPES,      /* no such overload: a and b */
    RV_FAULT_OVERFLOW,
    RV_FAULT_DIV_ZERO,
    RV_FAULT_CONVERT,       /* a: what could not become `text` */
    RV_FAULT_DUPLICATE_KEY, /* b: the key */
    /* These end the evaluation, whatever && and || say. */
    RV_FAULT_WORK,
    RV_FAULT_MEMORY,
    RV_FAULT_DEPTH,
    RV_FAULT_NOMEM,
    RV_FAULT_SCOPE, /* the scope failed; *err is already set */
};
#define RV_FAULT_IS_FATAL(f) ((f) >= RV_FAULT_WORK)

struct rv_fault_record {
    enum rv_fault kind;
    const struct rv_expr_node *node; /* borrowed from the expression */
    struct rv_value a, b;
    rv_str text;
};

struct rv_eval { /* all but arena is borrowed */
    const rv_expr *e;
    const struct rv_scope *scope;
    rv_err **err;
    rv_arena *arena; /* made when first needed; owned */
    size_t memory, work;
    int scope_rc; /* with RV_FAULT_SCOPE */
    struct rv_fault_record fault;
    struct rv_value slots[RV_EXPR_MAX_DEPTH];
};

/* All of these return 0, or -1 with ev->fault set. */
int lang_ev_run(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out);
int lang_ev_fault(struct rv_eval *ev, enum rv_fault kind, const struct rv_expr_node *n);
int lang_ev_fault_types(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a,
                        const struct rv_value *b);
/** Count work: `steps` plus what `bytes` cost. */
int lang_ev_work(struct rv_eval *ev, const struct rv_expr_node *n, size_t steps, size_t bytes);
void *lang_ev_alloc(struct rv_eval *ev, const struct rv_expr_node *n, size_t size); /* NULL: fault set */

/* Containers, whichever way they are stored. */
struct rv_value lang_value_of_json(json_object *v);
size_t lang_value_size(const struct rv_value *v); /* of a list or map */
struct rv_value lang_value_at(const struct rv_value *list, size_t i);
/** Walks a map: start with *pos NULL; false at the end. */
bool lang_value_next_pair(const struct rv_value *map, const void **pos, struct rv_value *key, struct rv_value *val);
/** Sets *found; a number finds an equal number of another type. */
int lang_value_find(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *map,
                    const struct rv_value *key, struct rv_value *out, bool *found);
int lang_value_equal(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a,
                     const struct rv_value *b, int depth, bool *out);
/** -1, 0, 1, or 2 when a NaN is involved. Both are numbers. */
int lang_value_compare_numbers(const struct rv_value *a, const struct rv_value *b);
/** The JSON of v; JSON parts of the scope are shared, not copied. */
int lang_value_to_json(struct rv_eval *ev, const struct rv_value *v, int depth, json_object **out);
/** a op b for + - * / % */
int lang_ev_arith(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a, const struct rv_value *b,
                  struct rv_value *out);
int lang_ev_negate(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a, struct rv_value *out);

/* --- Functions -----------------------------------------------------------------------------------------------------
 */
#define RV_FN_MAX_ARGS 2 /* of a function of the expression language: none in the table has more */
/* What it points to is static. */
struct rv_function {
    const char *name;
    size_t n_args;                 /* receiver included */
    unsigned args[RV_FN_MAX_ARGS]; /* types it takes */
    unsigned result;
    bool is_method; /* the receiver is the first argument */
    int (*call)(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *args, struct rv_value *out);
};
/** NULL if there is none. */
const struct rv_function *lang_function_find(rv_str name, bool is_method);
/** The i-th function's name, NULL at the end (a name may come twice). */
const char *lang_function_name(size_t i);

#endif
