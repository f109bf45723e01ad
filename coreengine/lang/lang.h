/* The languages of pipeline files: expressions and templates, patterns, tables of cases. yaml.h: YAML with places, and
 * tables of keys. */
#ifndef RV_LANG_LANG_H
#define RV_LANG_LANG_H

#include "coreengine/base/base.h"
#include "coreengine/lang/yaml.h"

/* Text that looks at values: `when` expressions (a subset of CEL) and prompt templates ({{name}}, {{a.b}}).
 *
 * Both are compiled once, with positions, and evaluated against a scope. Both are pure, always end, and are bounded in
 * size, depth and work. Neither copies what it reads: values are borrowed json-c trees of the caller's thread. */

/* Where names get their values. Looked up lazily, so offering a large scope costs nothing. */
struct rv_scope {
    /** Find variable `name`, or, when field.ptr is not NULL, its direct member `field` (so `outputs.plan` never builds
     *  all outputs). *out is borrowed and must stay valid until the evaluation ends; NULL with *found true is null.
     *  @return 0 (also when not found: *found is false), or a failure that ends the evaluation */
    int (*lookup)(void *self, rv_str name, rv_str field, json_object **out, bool *found, rv_err **err);
    void *self;    /* borrowed */
    bool is_older; /* filters of templates in front of `default` get the text "null" where there is no value */
};
/** A scope over one JSON object: its keys are the variables. obj is borrowed. */
struct rv_scope rv_scope_of_object(json_object *obj);

/* A name that a template or an expression looks up. */
struct rv_placeholder {
    rv_str path;       /* "a.b.c", borrowed; of an expression ptr NULL */
    rv_str root;       /* "a" */
    rv_str field;      /* "b", or ptr NULL */
    rv_str member;     /* "c", or ptr NULL */
    bool is_test;      /* its last part may be missing: has(a.b), "b" in a, a section, a placeholder with a default */
    bool is_inside;    /* of a template: in a section, which may stand for nothing */
    struct rv_src src; /* file as given at compile; line and column of the "{{", of an expression those of the name */
};

/* --- Expressions ------------------------------------------------------------------------------------------------
 * Literals (int, uint, double, string with CEL escapes, bool, null, list, map), == != < <= > >= && || ! ?: + - * / %,
 * `in`, member access a.b and a["b"], indexing, has(a.b), size(), contains() startsWith() endsWith() as methods,
 * matches() with a pattern of ECMA-262 (see below), int() uint() double() string() bool() type() dyn(), and the macros
 * all exists exists_one filter map.
 * Semantics are CEL's: no implicit conversion, integer overflow and division by zero are errors, && and || absorb an
 * error when the other side decides, numbers compare across types. See docs/reference/expressions.md. */
#define RV_EXPR_MAX_BYTES 4096   /* one expression: people do not read longer ones */
#define RV_EXPR_MAX_DEPTH 32     /* nesting of the syntax tree: the reader calls itself */
#define RV_EXPR_MAX_WORK  100000 /* evaluation steps: nested macros end within milliseconds */

typedef struct rv_expr rv_expr;

/** Compile. vars names the variables that exist (n may be 0: any name is accepted).
 *  @param src place of the text's first byte, for messages; may be NULL
 *  @return 0; RV_E_PARSE (position and what was expected), RV_E_NOT_FOUND (unknown variable or function, with the
 *          nearest name), RV_E_INVALID (operand types that can never fit), RV_E_LIMIT, RV_E_NOMEM */
RV_MUST_CHECK int rv_expr_compile(rv_str text, const struct rv_src *src, const char *const *vars, size_t n_vars,
                                  rv_expr **out, rv_err **err);
void rv_expr_free(rv_expr *e);
const char *rv_expr_text(const rv_expr *e); /* the source, borrowed */
/** Tells whether the expression looks at a variable; src, which may be NULL, gets the first place. */
bool rv_expr_has_variable(const rv_expr *e, const char *name, struct rv_src *src);
/** The members of variables that it names, in the order of the text: outputs.plan.goal, outputs["plan"]["goal"] and
 *  "goal" in outputs.plan have the root "outputs", the field "plan" and the member "goal". A name that the expression
 *  also tests for is a test wherever it stands. */
size_t rv_expr_n_names(const rv_expr *e);
struct rv_placeholder rv_expr_name_at(const rv_expr *e, size_t i);
/** False if the result is certainly no boolean: as a condition it could only fail, and that is known at load. */
bool rv_expr_may_be_bool(const rv_expr *e);
/** Evaluate to any value; *out is the caller's (NULL: null) and may share parts with the scope, so it is for reading.
 *  RV_E_NOT_FOUND (no such variable, key, element), RV_E_INVALID (types, overflow, conversion), RV_E_LIMIT, RV_E_NOMEM,
 *  or what the scope failed with. Errors say where in the expression. */
RV_MUST_CHECK int rv_expr_eval(const rv_expr *e, const struct rv_scope *scope, json_object **out, rv_err **err);
/** Evaluate to a boolean; any other type is RV_E_INVALID. Not thread-safe per scope, but one rv_expr may be shared. */
RV_MUST_CHECK int rv_expr_test(const rv_expr *e, const struct rv_scope *scope, bool *out, rv_err **err);

/* --- Templates --------------------------------------------------------------------------------------------------
 * "{{name}}" and "{{a.b.0.c}}" (a number indexes an array; blanks inside the braces are allowed) are replaced; strings
 * verbatim, everything else as compact JSON. Filters may follow: {{a | default "none" | truncate 80}}. A section
 * {{#path}}...{{/path}} is rendered for each item of a list, or once for any other value that is there, {{^path}} when
 * there is none; inside, {{.}} and {{.a.b}} are of the item. "\{{" is a literal "{{". Any other brace stays as it is,
 * so JSON samples need no escaping; so does what looks like a tag and is none (rv_template_foreign_at() tells).
 * Inserted text is not expanded again. docs/reference/templates.md. */
#define RV_TEMPLATE_MAX_BYTES  ((size_t)1 << 20) /* of its text: a prompt is for a model's context */
#define RV_TEMPLATE_MAX_OUTPUT ((size_t)8 << 20) /* bytes of what it renders: lists in it multiply it */

typedef struct rv_template rv_template;

/** src: place of the first byte, may be NULL.
 *  RV_E_PARSE ("{{" with a name but without "}}", a filter that is none), RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_template_compile(rv_str text, const struct rv_src *src, rv_template **out, rv_err **err);
void rv_template_free(rv_template *t);
rv_str rv_template_text(const rv_template *t); /* the source, borrowed */

size_t rv_template_n_placeholders(const rv_template *t);
struct rv_placeholder rv_template_placeholder_at(const rv_template *t, size_t i);
/* Text that looks like a tag of this or of another template language, and is rendered as it stands. */
struct rv_foreign {
    rv_str text; /* its beginning, borrowed */
    struct rv_src src;
};
#define RV_TEMPLATE_MAX_FOREIGN 8 /* that are told: a reader mends the first ones first */
#define RV_TEMPLATE_NAMES                                                                                              \
    "names in placeholders have a-z, A-Z, 0-9, _ and -: give what makes the value an output_key of these"
size_t rv_template_n_foreign(const rv_template *t);
struct rv_foreign rv_template_foreign_at(const rv_template *t, size_t i);
/** Append the rendered text to out (its ceiling applies too). A name without a value is RV_E_NOT_FOUND: the message has
 *  the path, its place and the nearest thing that exists when the scope can tell. RV_E_LIMIT: the text or the work is
 * too large. */
RV_MUST_CHECK int rv_template_render(const rv_template *t, const struct rv_scope *scope, rv_buf *out, rv_err **err);

/* Regular expressions as JSON Schema means them: ECMA-262 with its flag u. PCRE2 matches them.
 *
 * The text of a pattern is translated, since the two differ where it is easy to miss: `$` is the end of the text only,
 * `.` leaves out four line ends, `\s` takes Unicode's blanks, `\d` and `\w` are ASCII, `\u` gives a character. What
 * only PCRE2 has (inline flags, atomic groups, possessive repeats, recursion, verbs) is an error.
 * docs/reference/schemas.md lists what differs from ECMA-262.
 *
 * A match is bounded: RV_PATTERN_STEPS and four more for each byte of the text, however the pattern is written. A step
 * is an item of the pattern tried at a place of the text; skipped text counts an eighth of a step a byte. The number
 * depends on the pattern and the text only, never on time. A compiled pattern is constant: any thread may match. */

#define RV_PATTERN_MAX_BYTES 4096 /* of its text: as an expression, in which it stands */
/* of one match, and four for each byte; then RV_E_LIMIT: a pattern may need exponential time */
#define RV_PATTERN_STEPS 100000

typedef struct rv_pattern rv_pattern;

/** Compile. RV_E_PARSE: not a pattern (the message says where, counted in bytes from 1), RV_E_LIMIT: too long or too
 *  large, RV_E_NOMEM. text is UTF-8. */
RV_MUST_CHECK int rv_pattern_new(rv_str text, rv_pattern **out, rv_err **err);
/** The pattern in quotes, for messages; of a long one the beginning. Borrowed. */
const char *rv_pattern_text(const rv_pattern *p);
void rv_pattern_free(rv_pattern *p); /* NULL is fine */
/** Tells in *out whether the pattern matches anywhere in text. *steps is what the caller can spend on all its matches,
 *  and goes down; NULL: no such limit. RV_E_LIMIT: it takes more steps than allowed; RV_E_INVALID: the text is not
 * UTF-8; RV_E_NOMEM. */
RV_MUST_CHECK int rv_pattern_test(const rv_pattern *p, rv_str text, size_t *steps, bool *out, rv_err **err);

/* Tables: rows of named values in a file.
 *
 * - `.csv`: RFC 4180, the names in the first line. A cell without quotes that is a number, true or false has that
 * value; every other cell is a text.
 * - `.jsonl`, `.ndjson`: an object a line; empty lines are passed over.
 * - `.yaml`, `.yml`, `.json`: a list of maps. */

#define RV_TABLE_MAX_BYTES   ((size_t)8 << 20) /* of a file: it is in memory with the tests that are made from it */
#define RV_TABLE_MAX_ROWS    10000             /* of a CSV file of cases: each is a test */
#define RV_TABLE_MAX_COLUMNS 256               /* of a CSV file of cases: more is generated by mistake */

struct rv_table {
    json_object *rows; /* array of objects; owned */
    int *lines;        /* of each row, the line that it begins in; owned */
};

/** Read text; its kind follows from the end of name, which messages call the file.
 *  @param out written on success; rv_table_fini() it
 *  @return 0; RV_E_PARSE, RV_E_INVALID (a row that is not a map, two equal names) with file, line and column;
 * RV_E_LIMIT; RV_E_NOT_FOUND: no such kind of file; RV_E_NOMEM */
RV_MUST_CHECK int rv_table_parse(rv_str text, const char *name, struct rv_table *out, rv_err **err);
void rv_table_fini(struct rv_table *t);

/* Keys of other tools, for readers that have no table of keys; struct rv_key_reader.words is for those that have one.
 */

/** What to write in the place of the key; "_", "-" and capitals make no difference. NULL: nothing is known. */
const char *rv_key_word_says(const struct rv_key_word *words, rv_str key);

#endif
