/* The compiled form of a JSON Schema, shared by the schema files only. */
#ifndef RV_SCHEMA_INTERNAL_H
#define RV_SCHEMA_INTERNAL_H

#include "coreengine/lang/lang.h"
#include "coreengine/tools/tools.h"

#define RV_SCHEMA_MAX_NODES   10000 /* schemas of one document: a search for cycles calls itself */
#define RV_SCHEMA_MAX_DEPTH   64 /* nesting of a schema document: the compiler calls itself; people write ten levels */
#define RV_SCHEMA_MAX_BYTES   ((size_t)16 << 20) /* memory of one compiled schema: RV_SCHEMA_MAX_NODES of 1.6 KB */
#define RV_SCHEMA_MAX_FAULTS  20   /* in one error: a model mends the first ones first; others are counted */
#define RV_SCHEMA_MAX_TEXT    3500 /* of all listed faults: an error's text ends at 4096 bytes */
#define RV_SCHEMA_MAX_NESTING 1000 /* of one check; a recursive schema follows its value down */
#define RV_SCHEMA_MAX_STEPS   ((size_t)4 << 20) /* of one check; alternatives of alternatives grow exponentially */

enum rv_schema_type {
    RV_SCHEMA_NULL = 1,
    RV_SCHEMA_BOOLEAN = 2,
    RV_SCHEMA_INTEGER = 4,
    RV_SCHEMA_NUMBER = 8,
    RV_SCHEMA_STRING = 16,
    RV_SCHEMA_ARRAY = 32,
    RV_SCHEMA_OBJECT = 64,
};

struct rv_schema_node;
/* Nodes and the list live in the arena of the schema. */
struct rv_schema_list {
    struct rv_schema_node **items;
    size_t n;
};
struct rv_schema_range {
    size_t min, max; /* max is SIZE_MAX when there is none */
};

/* A format of strings that is checked. What it points to is static. */
struct rv_schema_format {
    const char *name;
    bool (*fits)(rv_str text);
    const char *example;
};
const struct rv_schema_format *tools_schema_format_of(rv_str name); /* NULL: of that name none is */

/* What an object has to have when it has a property: the keywords dependentRequired, dependentSchemas, dependencies. It
 * lives in the arena of the schema; required is borrowed from its source. */
struct rv_schema_dependent {
    const char *name;
    json_object *required;         /* array of strings, NULL: absent */
    struct rv_schema_node *schema; /* for the whole object, NULL: absent */
    struct rv_schema_dependent *next;
};
/* It lives in the arena of the schema. */
struct rv_schema_pattern_property {
    rv_pattern *pattern; /* the schema's */
    struct rv_schema_node *schema;
    struct rv_schema_pattern_property *next;
};

/* One schema. Everything here lives in the arena or is borrowed from the document; constant once compiled, so any
 * thread may check with it. */
struct rv_schema_node {
    const char *pointer; /* place in the document */
    bool is_never;       /* the schema `false` */
    unsigned types;      /* of enum rv_schema_type; 0: any */
    struct rv_schema_range length, items_range, properties_range, contains_range;
    bool unique_items, has_const, has_default;
    json_object *minimum, *maximum, *exclusive_minimum, *exclusive_maximum, *multiple_of; /* NULL: absent */
    json_object *const_value, *default_value;
    json_object *enum_values;         /* array, NULL: absent */
    json_object *required;            /* array of strings, NULL: absent */
    json_object *property_names;      /* object with the property names as keys, NULL: absent */
    struct rv_schema_list properties; /* in the order of property_names */
    struct rv_schema_list prefix_items, all_of, any_of, one_of;
    struct rv_schema_pattern_property *pattern_properties;
    struct rv_schema_dependent *dependents;
    rv_pattern *pattern; /* the schema's; NULL: absent */
    /* NULL: absent */
    struct rv_schema_node *additional, *items, *not_schema, *contains, *names, *if_schema, *then_schema, *else_schema;
    struct rv_schema_node *unevaluated_properties, *unevaluated_items, *additional_items;
    bool items_is_list;                    /* `items` had schemas by position, as older drafts have it */
    const char *base;                      /* pointer of the schema at which a reference "#..." begins */
    const char *id, *anchor;               /* NULL: absent */
    const char *title, *ref;               /* NULL: absent */
    const struct rv_schema_format *format; /* NULL: absent, or one that is not checked */
    struct rv_schema_node *target;         /* of ref */
    unsigned char mark;                    /* of the search for cycles */
};

struct rv_schema {
    json_object *document;       /* a reference; owned: a reference of its own */
    rv_arena *arena;             /* owned; dies with the schema */
    const char *what;            /* in the arena */
    struct rv_schema_node *root; /* in the arena */
    rv_pattern **patterns;       /* owned, with the list */
    size_t n_patterns, cap_patterns;
};

/* Where a schema is wrong. */
struct tools_schema_mistake {
    rv_buf pointer; /* JSON pointer; empty: the root */
    bool is_key;    /* the keyword itself is not known, not its value */
};
/** rv_schema_compile(), and the place of what is wrong. */
RV_MUST_CHECK int tools_schema_compile_at(json_object *schema, const char *what, struct tools_schema_mistake *fault,
                                          rv_schema **out, rv_err **err);

/* While compiling. What it points to is borrowed while the schema is compiled. */
struct rv_schema_compiler {
    rv_schema *schema;
    struct rv_schema_node **nodes; /* owned */
    size_t n_nodes, cap_nodes;
    rv_index by_pointer;                /* owned; pointer -> index into nodes */
    const char *base;                   /* of the schema that is being compiled */
    bool is_foreign;                    /* of another program: what is not known here is a note */
    struct tools_schema_mistake *fault; /* borrowed; NULL: its place is not wanted */
    rv_err **err;
};

/** Fails with "what: pointer: text". */
#define RV_SCHEMA_FAIL(c, at, ...) tools_schema_fail((c), (at), __VA_ARGS__)
int tools_schema_fail(struct rv_schema_compiler *c, const char *at, const char *fmt, ...) RV_PRINTF(3, 4);
int tools_schema_nomem(struct rv_schema_compiler *c);

/** Compile the document's root into c->schema->root; references are left open. */
RV_MUST_CHECK int tools_schema_compile_root(struct rv_schema_compiler *c);

/* --- numbers --- */
bool tools_schema_is_integral(json_object *v); /* 1.0 is, too */
int tools_schema_number_cmp(json_object *a, json_object *b);
bool tools_schema_is_multiple(json_object *v, json_object *of);

/** Tells whether two items are equal. *steps counts down; 0 means that it gave up. RV_E_NOMEM or 0. */
RV_MUST_CHECK int tools_schema_find_equal(json_object *array, size_t *steps, bool *found, size_t pair[2]);

/* --- checking --- */
/* Where the check is in the value: a chain of frames on the stack. What it points to is borrowed for the check. */
struct rv_schema_path {
    const struct rv_schema_path *up; /* NULL: the top */
    const char *key;                 /* NULL: an array's item */
    size_t i;
    int depth;
};
struct rv_schema_check {
    rv_buf text;     /* faults so far, joined */
    size_t n_faults; /* of the loud run */
    size_t n_listed;
    size_t steps;   /* left */
    unsigned quiet; /* > 0: a question only; ends at the first fault and writes nothing */
    int deepest;    /* depth of the deepest fault; tells which alternative came nearest */
    int nesting;
    int rc;                                  /* sticky: RV_E_LIMIT, RV_E_NOMEM */
    const struct rv_schema_partial *partial; /* NULL: faults become one text; borrowed */
    const struct rv_schema_path *fault_at;   /* of the fault that was begun; borrowed */
    struct rv_schema_fault fault;            /* its kind, name and properties, for the caller */
    rv_err *failed;                          /* of rc, when a pattern failed; owned */
};
/** Tells whether v fits; faults go into c. */
bool tools_schema_check_node(struct rv_schema_check *c, const struct rv_schema_node *n, json_object *v,
                             const struct rv_schema_path *at);
/** Does v fit? Faults are not listed. */
bool tools_schema_fits(struct rv_schema_check *c, const struct rv_schema_node *n, json_object *v,
                       const struct rv_schema_path *at);
/** Does the text match? false, too, when c->rc says that it failed. */
bool tools_schema_matches(struct rv_schema_check *c, const rv_pattern *p, rv_str text);
/** Does patternProperties have a pattern for this name? */
bool tools_schema_has_pattern_for(struct rv_schema_check *c, const struct rv_schema_node *n, const char *name);
/** contains, propertyNames, patternProperties, dependentRequired, dependentSchemas, if. */
bool tools_schema_check_applied(struct rv_schema_check *c, const struct rv_schema_node *n, json_object *v,
                                const struct rv_schema_path *at);
/** unevaluatedItems, unevaluatedProperties: what no other keyword of n has looked at. v fits all of those. */
bool tools_schema_check_unevaluated(struct rv_schema_check *c, const struct rv_schema_node *n, json_object *v,
                                    const struct rv_schema_path *at);
/** $ref, allOf, anyOf, oneOf, not. */
bool tools_schema_check_combined(struct rv_schema_check *c, const struct rv_schema_node *n, json_object *v,
                                 const struct rv_schema_path *at);
/** Hand the fault that was begun to the caller. */
void tools_schema_report(struct rv_schema_check *c, rv_buf *line);
/** Why the check could not be finished. */
RV_MUST_CHECK int tools_schema_unfinished(const rv_schema *s, const struct rv_schema_check *c, rv_err **err);
/** Does v hold a value that is not known yet? */
bool tools_schema_has_hole(struct rv_schema_check *c, json_object *v);
unsigned tools_schema_types_of(json_object *v); /* all that fit: 1 is an integer and a number */

/** Notes a fault. True when its text is wanted: the caller writes on into *line and ends with tools_schema_end_fault().
 */
bool tools_schema_begin_fault(struct rv_schema_check *c, const struct rv_schema_path *at, rv_buf *line);
/* These return false, so that a check reads "return tools_schema_end_fault(...)". */
bool tools_schema_end_fault(struct rv_schema_check *c, rv_buf *line);
bool tools_schema_fault_found(struct rv_schema_check *c, rv_buf *line,
                              json_object *v); /* adds ", found ..." and ends */

/* Texts. */
void tools_schema_write_types(unsigned types, rv_buf *b); /* string or null */
void tools_schema_write_expected(const struct rv_schema_node *n,
                                 rv_buf *b); /* what a schema asks for, in a few words */

#endif
