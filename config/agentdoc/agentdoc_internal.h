/* Shared by the files of agentdoc only. */
#ifndef RV_AGENTDOC_INTERNAL_H
#define RV_AGENTDOC_INTERNAL_H

#include "config/agentdoc/agentdoc.h"

#define RV_AGENTDOC_MAX_TREE ((size_t)4 << 20) /* of a document's texts, aliases written out: they multiply it */
#define RV_AGENTDOC_MAX_KEY  512               /* bytes of one key, anywhere: messages quote it as a whole */

/* A document and what its texts live in. */
struct rv_agentdoc_owner {
    struct rv_agentdoc doc; /* first: rv_agentdoc_free() finds the owner by it */
    rv_arena *arena;        /* owned */
    rv_yaml *yaml;          /* owned; NULL: the tree was made from JSON and lives in the arena */
};

/* One key of the flat document, wherever it was written. What it points to is borrowed from the document; row is
 * static. */
struct rv_agentdoc_field {
    const struct rv_node *key, *value;
    const struct rv_agentdoc_key *row; /* NULL: not a key of ours, or one that is only kept */
};
/* A document that is being read. All nodes are borrowed from its tree. */
struct rv_agentdoc_reading {
    struct rv_key_reader keys;        /* arena, findings, how messages begin */
    struct rv_agentdoc *doc;          /* borrowed from its owner */
    struct rv_agentdoc_field *fields; /* in the arena */
    size_t n_fields, max_fields;
    const struct rv_node *resources; /* NULL: none */
    const struct rv_node *properties, *required, *defs, *additional, *chained_map;
    bool has_definitions; /* the document says `definitions`: references to them are rewritten */
    bool has_override_temperature, has_override_max_iterations;
};

enum rv_agentdoc_key_kind { RV_AGENTDOC_TEXT, RV_AGENTDOC_BOOL, RV_AGENTDOC_INT, RV_AGENTDOC_CUSTOM };
/* One row reads, writes, checks and documents a key. What it points to is static. */
struct rv_agentdoc_key {
    const char *name;
    enum rv_agentdoc_key_kind kind;
    bool null_is_unset;
    size_t offset;     /* TEXT, BOOL, INT: where it goes */
    int64_t min, max;  /* INT; max 0: there is none */
    int64_t unset;     /* INT: the value that is not written */
    size_t src_offset; /* struct rv_src that receives the value's place; 0: none */
    size_t tree;       /* CUSTOM: the node of struct rv_agentdoc_reading that is written as it was given; 0: none */
    json_type empty;   /* tree: written when there is no node; json_type_null: nothing is */
    /* CUSTOM; NULL: the node is kept at `tree` */
    void (*read)(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field);
    void (*write)(const struct rv_agentdoc *d, rv_jw *w); /* CUSTOM: key and value, or nothing; NULL: nothing */
    const char *schema;                                   /* of the value, as JSON */
    const char *type, *default_text, *forms, *meaning;    /* for the reference */
};
const struct rv_agentdoc_key *agentdoc_keys(size_t *n);
const struct rv_agentdoc_key *agentdoc_key_of(rv_str name); /* NULL: none */
/** The nearest key of the table, or NULL. */
const char *agentdoc_nearest_key(rv_str name);
#define RV_AGENTDOC_LIMITS 5 /* rows of the table of a document's `limits` */
/* What it points to is static. */
struct rv_agentdoc_limit_key {
    const char *name;
    size_t offset; /* in struct rv_agentdoc_limits */
    const char *meaning;
};
extern const struct rv_agentdoc_limit_key agentdoc_limit_keys[RV_AGENTDOC_LIMITS];

/** rv_agentdoc_read() of a flat document that is a value already. */
RV_MUST_CHECK int agentdoc_of_value(json_object *flat, const char *name, struct rv_agentdoc **out, rv_err **err);
/** Which form it has, and its keys as fields of the flat one. */
void agentdoc_gather(struct rv_agentdoc_reading *r, const struct rv_node *root);

/* Values of any kind that stands for the wanted one (sheet p8 1.1). False: a finding says why not. */
bool agentdoc_text(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char **out);
bool agentdoc_bool(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, bool *out);
bool agentdoc_int(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, int64_t min,
                  int64_t *out);
bool agentdoc_number(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, double *out);
/** A name (rv_agentdoc_is_name). */
bool agentdoc_word(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char **out);
/** A text as a number: as Python's float() takes it, without underscores, "inf" and "nan". RV_E_INVALID, RV_E_NOMEM. */
int agentdoc_text_number(rv_str text, double *out);
/** A finding whose hint is `did you mean "near"?`, or `otherwise` when nothing is near (NULL: no hint then). */
void agentdoc_near(struct rv_agentdoc_reading *r, enum rv_severity severity, const struct rv_src *src, const char *near,
                   const char *otherwise, const char *fmt, ...) RV_PRINTF(6, 7);
/** "intro a, b, c"; NULL: r->keys.rc says it. */
const char *agentdoc_listed(struct rv_agentdoc_reading *r, const char *intro, const char *const *names, size_t n);
void *agentdoc_room(struct rv_agentdoc_reading *r, size_t n, size_t size); /* NULL: r->keys.rc says it */

void agentdoc_read_tools(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field);
/** `resources`, behind the tools. */
void agentdoc_read_resources(struct rv_agentdoc_reading *r);
/* For both of them. */
/** The value of a key; NULL: absent or null. */
const struct rv_node *agentdoc_set(const struct rv_node *map, const char *key);
void agentdoc_read_limits(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field);
void agentdoc_read_routing(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field);
void agentdoc_read_chained_map(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field);
void agentdoc_read_model(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field);

/** properties, required and $defs: every schema has the shape of one, every reference leads somewhere. */
void agentdoc_check_schema(struct rv_agentdoc_reading *r);

/** The whole flat document as a tree; properties, required, defs and chained_map borrow from it. */
RV_MUST_CHECK int agentdoc_flatten(struct rv_agentdoc_reading *r, rv_err **err);

/** Write a value as Python's str() does, with the strings in it as repr() does. */
void agentdoc_python_str(json_object *v, rv_buf *out);

#endif
