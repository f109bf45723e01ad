/* YAML files as trees in which every node knows its place, and the findings about such files.
 *
 * The reader takes libyaml's events, decides scalar types by YAML 1.2 core rules (`no`, `012`, `1:30` are strings) and
 * refuses what configuration must not have: duplicate keys, tags, merge keys, aliases that refer to themselves,
 * expansion beyond the limits, more than one document. A tree and its texts live in one arena that dies with the
 * document. */
#ifndef RV_YAML_H
#define RV_YAML_H

#include "coreengine/base/base.h"
#include "envelope/envelope.h"

#define RV_YAML_MAX_BYTES   ((size_t)1 << 20) /* libyaml needs quadratic time on hostile nesting: cap the text first */
#define RV_YAML_MAX_DEPTH   64                /* levels; deeper input is an attack or a fault */
#define RV_YAML_MAX_NODES   200000            /* after alias expansion: aliases multiply */
#define RV_YAML_MAX_ALIASES 1000              /* anchors, and uses of them: they multiply what the file says */

enum rv_node_kind {
    RV_NODE_NULL,
    RV_NODE_BOOL,
    RV_NODE_INT,
    RV_NODE_FLOAT,
    RV_NODE_STR,
    RV_NODE_LIST,
    RV_NODE_MAP,
    RV_N_NODE_KINDS
};

/* Nodes live in the arena of their document, as all that they point to. */
struct rv_node {
    enum rv_node_kind kind;
    struct rv_src src;      /* of the first character; file is the document's name */
    rv_str text;            /* scalars: the text as written (strings: decoded), NUL-terminated */
    int64_t i64;            /* INT; BOOL as 0 or 1 */
    double f64;             /* FLOAT and INT */
    bool is_block;          /* STR written as a block scalar: its text starts on the line after src */
    bool is_quoted;         /* STR in quotes: its text starts one column after src */
    int indent;             /* is_block: columns that were taken off each line */
    size_t n;               /* LIST, MAP: number of children */
    struct rv_node **items; /* LIST: the items; MAP: the values */
    struct rv_node **keys;  /* MAP: the keys, always RV_NODE_STR */
};
const char *
rv_node_kind_text(enum rv_node_kind kind); /* "map", "list", "string", "integer", "number", "boolean", "null" */
const struct rv_node *rv_node_get(const struct rv_node *map, const char *key); /* NULL: absent or not a map */
/** Where the first character of a string's text stands, behind its quote or block header. */
struct rv_src rv_node_text_src(const struct rv_node *node);
/** A json-c tree of the node (numbers keep their text); *out is the caller's. RV_E_NOMEM, RV_E_INVALID (.inf, .nan). */
RV_MUST_CHECK int rv_node_build_json(const struct rv_node *node, json_object **out, rv_err **err);
/** A tree of a JSON value, in the arena: for the tables below. Every node has the place src. NULL: out of memory. */
struct rv_node *rv_node_of_json(json_object *v, const struct rv_src *src, rv_arena *arena);

/* --- Findings: everything that is wrong with a file, not only the first thing. --- */
struct rv_finding {
    enum rv_severity severity;
    struct rv_src src; /* file owned by the list */
    const char *text;  /* owned by the list */
    const char *hint;  /* owned; NULL: none */
    const char *code;  /* a word for this kind of mistake, static; NULL: it has none */
};
#define RV_FINDINGS_MAX 200 /* further ones are counted: a reader mends the first ones first */
typedef struct rv_findings rv_findings;
rv_findings *rv_findings_new(void); /* NULL on out of memory */
void rv_findings_free(rv_findings *f);
/** Add one. src may be NULL. Out of memory marks the list as failed (rv_findings_check). hint_fmt may be NULL. */
void rv_findings_add(rv_findings *f, enum rv_severity severity, const struct rv_src *src, const char *hint,
                     const char *fmt, ...) RV_PRINTF(5, 6);
/** The same with a code: one word, static. */
void rv_findings_add_as(rv_findings *f, enum rv_severity severity, const char *code, const struct rv_src *src,
                        const char *hint, const char *fmt, ...) RV_PRINTF(6, 7);
/** The code of findings that are added without one from here on; NULL: none. Static. */
void rv_findings_set_code(rv_findings *f, const char *code);
/** Add an rv_err as a finding (its text with causes, its place or else src, its hint). */
void rv_findings_add_err(rv_findings *f, enum rv_severity severity, const struct rv_src *src, const rv_err *err);
/** The same for an error about the text of a string node, whose places were counted from rv_node_text_src(): the lines
 * of a block scalar get back the columns that reading took off them. */
void rv_findings_add_text_err(rv_findings *f, enum rv_severity severity, const struct rv_node *node, const rv_err *err);
size_t rv_findings_n(const rv_findings *f);
size_t rv_findings_n_errors(const rv_findings *f); /* error and critical */
struct rv_finding rv_findings_at(const rv_findings *f, size_t i);
void rv_findings_sort(rv_findings *f); /* by file, line, column; stable */
/** RV_E_NOMEM if the list itself failed, else 0. */
RV_MUST_CHECK int rv_findings_check(const rv_findings *f, rv_err **err);
/** Sorts the list and makes its first error (not a warning) the error of the call, with place and hint. 0: no error. */
RV_MUST_CHECK int rv_findings_raise_first_error(rv_findings *f, rv_err **err);
/** "qa.yaml:14:12: error: unknown agent ...\n  hint: ...\n", one after another. */
void rv_findings_write_text(const rv_findings *f, bool color, rv_buf *b);
void rv_findings_write_json(const rv_findings *f,
                            rv_jw *w); /* array of {severity, file, line, column, message, hint, code?} */

/* --- Documents --- */
typedef struct rv_yaml rv_yaml;
/** Read text; name is what messages call the file. Syntax faults are findings (and *out may then be NULL with return
 * 0); only RV_E_NOMEM is an error of the call. */
RV_MUST_CHECK int rv_yaml_parse(rv_str text, const char *name, rv_findings *findings, rv_yaml **out, rv_err **err);
/** Read a file. RV_E_NOT_FOUND, RV_E_IO, RV_E_LIMIT besides. */
RV_MUST_CHECK int rv_yaml_read(const char *path, rv_findings *findings, rv_yaml **out, rv_err **err);
void rv_yaml_free(rv_yaml *doc);
const struct rv_node *rv_yaml_root(const rv_yaml *doc); /* NULL: the document is empty */

/** Lay out a file: levels of two columns, one blank between tokens, one line end at its end. Its lines, comments,
 * quotes, anchors, the order of keys and what it says stay; the same text laid out again does not change. Faults are
 * findings, and out stays empty. RV_E_NOMEM; RV_E_LIMIT: longer than a file may be; RV_E_INVALID: the layout would have
 * changed what the file says. */
RV_MUST_CHECK int rv_yaml_format(rv_str text, const char *name, rv_findings *findings, rv_buf *out, rv_err **err);

/* --- Table-driven reading of maps. One table parses, checks, defaults, documents and makes the JSON Schema. --- */
enum rv_key_type {
    RV_KEY_STR,      /* const char *       (arena text) */
    RV_KEY_BOOL,     /* bool */
    RV_KEY_INT,      /* int64_t, min..max */
    RV_KEY_FLOAT,    /* double, min..max; integers accepted */
    RV_KEY_TERM,     /* int or enum: index into the word list `terms` */
    RV_KEY_STR_LIST, /* struct rv_str_list */
    RV_KEY_JSON,     /* json_object * (owned by the struct's owner): any value */
    RV_KEY_CUSTOM,   /* `read` does it */
    RV_KEY_MAP,      /* a nested map with its own table `keys`, read into the same struct at `offset` */
};
struct rv_str_list {
    const char **items;  /* in the arena */
    struct rv_src *srcs; /* in the arena */
    size_t n;
    bool is_set; /* an empty list is not an absent one */
};
struct rv_key_reader; /* context of a read: arena, findings, owner */
struct rv_key {       /* a row of a table; what it points to is static */
    const char *name;
    enum rv_key_type type;
    size_t offset;
    bool required;
    double min, max;           /* INT, FLOAT; both 0: any number; max below min: min or more */
    const char *default_text;  /* as JSON; NULL: none; applied before reading */
    const char *doc;           /* one sentence for --explain, the schema and the reference page */
    const char *term_list;     /* TERM: name of the list (rv_term_lists) */
    const struct rv_key *keys; /* MAP */
    size_t n_keys;
    size_t is_null_offset; /* FLOAT: bool that becomes true when the value is null; 0: null is an error */
    size_t is_set_offset;  /* bool that becomes true when the key is present; 0: none (offset 0 is never a flag) */
    void (*read)(struct rv_key_reader *r, const struct rv_node *node, void *target); /* CUSTOM */
    const char *schema;               /* CUSTOM, JSON: JSON Schema of the value as text */
    size_t src_offset;                /* struct rv_src that receives the value's place; 0: none */
    const struct rv_term_list *terms; /* TERM: a list that rv_term_lists does not have; NULL: see term_list */
};
/* What users write who know another tool or another place in the file. Static. Lists end with a NULL. */
struct rv_key_word {
    const char *words; /* keys, in small letters without "_" and "-", with blanks between them */
    const char *says;  /* the hint */
};
/* What it points to is borrowed for the read. */
struct rv_key_reader {
    rv_arena *arena;
    rv_findings *findings;
    const char *owner_kind; /* for messages: "agent", "pipeline", "test" */
    const char *owner_name; /* NULL while unknown */
    void *user;             /* of the caller */
    const char *path;       /* what stands before a key in messages: "execution."; NULL: nothing */
    const char *code;       /* of all findings, static; NULL: none */
    const struct rv_key_word *(*words)(const struct rv_key *keys); /* for unknown keys of a table; NULL: none */
    const char *page; /* of `reeve docs reference`, static: it has all keys; NULL: none does */
    bool hide_values; /* values may be secrets: messages do not quote them */
    int rc;           /* sticky RV_E_NOMEM */
};
/** Read `map` into target by the table: unknown keys (with the nearest), wrong types, out of range, missing required
 * keys become findings. Defaults are set first; without one a STR is "", a TERM RV_UNSET and anything else untouched. A
 *  required STR must not be empty. */
void rv_keys_read(struct rv_key_reader *r, const struct rv_node *map, const struct rv_key *keys, size_t n_keys,
                  void *target);
/** `must be an integer, not string "x"` for a value of the wrong kind; for `read` functions. what: "an integer". */
void rv_keys_add_wrong_type(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char *what);
/** The same where a map is wanted; inner: a key that it may have, for the hint. */
void rv_keys_add_not_a_map(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char *inner);
/** A finding that begins with the reader's owner: `agent "plan": ...`. */
void rv_keys_add_finding(struct rv_key_reader *r, enum rv_severity severity, const struct rv_src *src, const char *hint,
                         const char *fmt, ...) RV_PRINTF(5, 6);
/** The strings of a list node as a list of the arena; items that are not strings become findings. */
void rv_keys_read_str_list(struct rv_key_reader *r, const struct rv_node *node, const char *key,
                           struct rv_str_list *out);
/** Any value as JSON. What is wrong is a finding, and *out stays as it was. */
void rv_keys_read_json(struct rv_key_reader *r, const struct rv_node *node, json_object **out);
/** The texts of a list as a member of an object that is being written. */
void rv_jw_kv_list(rv_jw *w, const char *key, const struct rv_str_list *list);
/** The properties object, `required` and additionalProperties:false of a table, as JSON Schema text. */
void rv_keys_write_schema(const struct rv_key *keys, size_t n_keys, rv_jw *w);
/** The same; other: a JSON Schema of what may stand in the place of any value. */
void rv_keys_write_schema_or(const struct rv_key *keys, size_t n_keys, const char *other, rv_jw *w);
/** A reference table in Markdown: key, type, default, meaning. */
void rv_keys_write_markdown(const struct rv_key *keys, size_t n_keys, rv_buf *b);

#endif
