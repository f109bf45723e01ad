/* The part of the store for entities: their kinds, rows of all kinds, and the index of their names.
 *
 * A row travels as a JSON object with all columns of its kind, in their order: id, tenant_id, user_id, the kind's own,
 * metadata, tags, graph_edges, encryption_level, created_at, updated_at, deleted_at (null).
 *
 * A scope (handle.h) sees rows of its tenant: with user NULL (an operator) those of all users, with a name that user's
 * and those without an owner, with "" only those without an owner. It also sees rows without a tenant, get() of every
 * kind, find() never, and a lookup where the kind is shared. A user changes only rows of their own; rows without an
 * owner are changed by an operator or by scopes with user "". What a scope does not see is RV_E_NOT_FOUND, and no call
 * tells whether it exists: another user may have a row of the same id, and neither can find out.
 *
 * Rows of messages, sessions and schemas are read here like others; they are written by the calls of sessions.h and
 * documents.h, all but their metadata (sessions only) and edges. */
#ifndef RV_STORE_ENTITIES_H
#define RV_STORE_ENTITIES_H

#include "coreengine/store/handle.h"

/* --- Kinds: which columns their rows have, by what they are identified and found, and where the rows are. A new kind
 * is one row of the table in entities/kinds.c; `reeve docs reference entities` prints it. --- */
enum rv_kind_type {
    RV_KIND_TEXT,
    RV_KIND_INT,
    RV_KIND_REAL,
    RV_KIND_BOOL,
    RV_KIND_TIME,    /* RFC 3339 in, "YYYY-MM-DDTHH:MM:SS.ffffff+00:00" out */
    RV_KIND_ID,      /* of another row: a UUID, or what a session is called */
    RV_KIND_OBJECT,  /* a JSON object */
    RV_KIND_TEXTS,   /* a list of texts */
    RV_KIND_OBJECTS, /* a list of JSON objects */
    RV_N_KIND_TYPES
};

/* What it points to is static. */
struct rv_kind_field {
    const char *name;
    enum rv_kind_type type;
    const char *fallback;    /* JSON: what a row without it shows; NULL: null, or [] for a list */
    const char *words;       /* legal texts, blank-separated; NULL: any */
    int64_t least, greatest; /* of numbers; both 0: any */
};

/* Where the rows of a kind are: `entities` has those of all kinds without a table of their own. */
enum rv_kind_place { RV_PLACE_ENTITIES, RV_PLACE_SESSIONS, RV_PLACE_MESSAGES, RV_PLACE_SCHEMAS, RV_N_KIND_PLACES };

#define RV_KIND_MAX_NAMES 3 /* fields of one kind that are encrypted, or that name a row: no kind has more */
/* What it points to is static. */
struct rv_kind {
    const char *name, *doc;
    enum rv_kind_place place;
    const struct rv_kind_field *fields; /* the columns between user_id and metadata, in the order of a row */
    size_t n_fields;
    const char *keys[RV_KIND_MAX_NAMES];      /* the id follows from the first that is set; none: it is random */
    const char *embedded;                     /* the field whose words are searched; NULL: none */
    const char *encrypted[RV_KIND_MAX_NAMES]; /* fields that may be ciphertext */
    const char *matched;                      /* the one that is encrypted so that equal texts are equal; NULL: none */
    const char *summary[RV_KIND_MAX_NAMES];   /* of the key index: the first one that is not empty */
    const char *about; /* the field that says what a row belongs to, "metadata.x" for a member; NULL: none */
    bool is_indexed;   /* LOOKUP finds it by its name */
    bool is_sealed;    /* the mode "sealed" seals its encrypted fields, which reeve has no need to read */
    bool is_shared;    /* rows without a tenant are there for every tenant */
};
/* In the order in which a lookup lists hits. */
extern const struct rv_kind rv_kinds[];
extern const size_t rv_n_kinds;

/** NULL: there is none. */
const struct rv_kind *rv_kind_find(rv_str name);
/** The same, or RV_E_INVALID that names the nearest one. */
RV_MUST_CHECK int rv_kind_of(rv_str name, const struct rv_kind **out, rv_err **err);
/** NULL: there is none. */
const struct rv_kind_field *rv_kind_find_field(const struct rv_kind *kind, rv_str name);
/** docs/reference/entities.md: the columns of all kinds, ids, keys. */
void rv_kinds_write_reference(rv_buf *b);

/* --- Rows --- */
#define RV_ENTITY_MAX_BYTES ((size_t)16 << 20)               /* of a row's own columns, as JSON: it is read whole */
#define RV_ENTITY_MAX_NAME  1024                             /* bytes: it is a key of indexes */
#define RV_ENTITY_MAX_KEY   ((size_t)8 * RV_ENTITY_MAX_NAME) /* bytes of a normalised name: characters may grow */
#define RV_ENTITY_MAX_TAGS  256                              /* of one row: they are read with it */
#define RV_ENTITY_MAX_TAG   200                              /* bytes: it is a word, and a key of an index */
#define RV_ENTITY_MAX_EDGES 1000                             /* of one row; a traversal reads them all */
#define RV_ENTITY_MAX_FIND  10000                            /* rows of one find: the store is busy meanwhile */
#define RV_ENTITY_ALL       (-1)                             /* rows of one find: all */

/* --- Versions --- */
/* What a row says, as one word: two states of a row that differ in more than updated_at have different ones. Who has
 * read a row and writes what follows from it gives the version that was read: when another has changed the row
 * meanwhile, nothing is written (RV_E_STATE), and the caller reads again. "": no row that is not deleted. */
#define RV_ENTITY_VERSION_MAX 33
/** The version of a row as rv_store_get_entity() gives it. */
RV_MUST_CHECK int rv_entity_make_version(json_object *row, char out[RV_ENTITY_VERSION_MAX], rv_err **err);

/* --- Writing --- */
/* What it points to is borrowed for the call. */
struct rv_entities_put {
    const char *kind;
    json_object *const *rows; /* objects of columns, borrowed */
    size_t n_rows;
    int64_t now_us;
    struct rv_rand rand; /* for ids of rows that have no key; fill NULL: the kernel's */
    bool is_tenantless;  /* the rows have no tenant: every tenant has them, if the kind is shared. Operators only */
    const char *const *versions; /* of each row what it has to have, NULL: any; NULL: any of all */
    bool *is_stale; /* out, set where a row has another version: not each RV_E_STATE is that; may be NULL */
};
/** Write rows, all or none. A row whose id its owner has is changed, and comes back if it was deleted; any other is
 *  added. Exactly the columns that are given are set (null: back to what a row without it shows); created_at never
 *  moves. Without an id it follows from the kind's key (p8-data 1.2). Columns that the store sets (tenant_id,
 *  created_at, updated_at, deleted_at) may be there, as in a row that was read, and are passed over.
 *  @param out may be NULL; else an array of the whole rows in the order given, owned by the caller
 *  @return RV_E_INVALID (names the row, the column and what it should be), RV_E_LIMIT, RV_E_DENIED (not the caller's:
 *  user_id of another user, or a row without an owner), RV_E_EXISTS (an operator gave the id of another owner's row),
 * RV_E_STATE (a row has another version) */
RV_MUST_CHECK int rv_store_put_entities(rv_store *s, const struct rv_store_scope *scope,
                                        const struct rv_entities_put *put, json_object **out, rv_err **err);
/* Which row is changed, and when. Borrowed for the call. */
struct rv_entity_target {
    const char *kind;
    const char *id; /* of rv_store_delete_entities_named(): the name */
    int64_t now_us;
};
/** Mark a row as deleted; nothing finds it any more, until it is written again. RV_E_NOT_FOUND; RV_E_DENIED. */
RV_MUST_CHECK int rv_store_delete_entity(rv_store *s, const struct rv_store_scope *scope,
                                         const struct rv_entity_target *at, rv_err **err);
/** Make it a row of now: created_at and updated_at become now_us. For what happens again, such as a reminder.
 *  RV_E_NOT_FOUND; RV_E_DENIED. */
RV_MUST_CHECK int rv_store_redate_entity(rv_store *s, const struct rv_store_scope *scope,
                                         const struct rv_entity_target *at, rv_err **err);
/** Delete all rows of that name (bytes) that the caller may delete, as rv_store_delete_entity(). *n (may be NULL): how
 * many. RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_store_delete_entities_named(rv_store *s, const struct rv_store_scope *scope,
                                                 const struct rv_entity_target *at, int64_t *n, rv_err **err);
/* A change of metadata. Borrowed for the call. */
struct rv_metadata_change {
    json_object *members;      /* these are set, whole; an object or NULL */
    const char *const *remove; /* then these are taken out */
    size_t n_remove;
    const char *version; /* that the row has to have; NULL: any */
    bool *is_stale;      /* out, as of struct rv_entities_put */
};
/** Change the metadata of a row; one transaction. *out (may be NULL): the new metadata, owned. RV_E_NOT_FOUND;
 * RV_E_DENIED; RV_E_LIMIT; RV_E_STATE: the row has another version. */
RV_MUST_CHECK int rv_store_merge_metadata(rv_store *s, const struct rv_store_scope *scope,
                                          const struct rv_entity_target *at, const struct rv_metadata_change *change,
                                          json_object **out, rv_err **err);
/** Merge edges (an array of objects) into those of a row, as p8-data 16 says; one transaction. *n_edges (may be NULL):
 *  how many it has then. RV_E_NOT_FOUND; RV_E_DENIED; RV_E_INVALID; RV_E_LIMIT. */
RV_MUST_CHECK int rv_store_merge_edges(rv_store *s, const struct rv_store_scope *scope,
                                       const struct rv_entity_target *at, json_object *edges, int64_t *n_edges,
                                       rv_err **err);

/* --- Reading --- */
/** One row; *out is the caller's. A row of the user is preferred to one without an owner. RV_E_NOT_FOUND; RV_E_INVALID:
 * several users have that id, and an operator has to say whose is meant. */
RV_MUST_CHECK int rv_store_get_entity(rv_store *s, const struct rv_store_scope *scope, const char *kind, const char *id,
                                      json_object **out, rv_err **err);
/** The same by the row's number in the table of its kind, as a lookup or a search gives it. */
RV_MUST_CHECK int rv_store_load_entity(rv_store *s, const struct rv_store_scope *scope, const char *kind, int64_t row,
                                       json_object **out, rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_entity_where {
    const char *column;
    json_object *value; /* equal to that; NULL: null */
};
/* What it points to is borrowed for the call. */
struct rv_entity_filter {
    const char *name, *about; /* NULL: any. about: see struct rv_kind */
    const char *const *tags;  /* all of them */
    size_t n_tags;
    const struct rv_entity_where *where; /* all of them */
    size_t n_where;
    const struct rv_entity_where *lists; /* list columns that contain that value, such as topic_tags: all of them */
    size_t n_lists;
    int64_t since_us, until_us; /* created, both inclusive; 0: any */
    int64_t offset, limit;      /* limit 0: 50; RV_ENTITY_ALL: no limit, and `each` ends the walk */
};
/* Borrowed for the call. */
struct rv_entities_of {
    const char *kind;
    const struct rv_entity_filter *filter; /* NULL: all, 50 of them */
};
/** Live rows of the scope's tenant, newest first (then by id, then by owner). each borrows row; it returns 0,
 *  RV_STORE_ENOUGH to end well, or a code that is passed on. RV_E_INVALID: no such column. */
RV_MUST_CHECK int rv_store_find_entities(rv_store *s, const struct rv_store_scope *scope,
                                         const struct rv_entities_of *of,
                                         int (*each)(void *self, json_object *row, rv_err **err), void *self,
                                         rv_err **err);

/* --- The index of names --- */
/* Texts are borrowed for the call that gets it; kind is static. */
struct rv_key_hit {
    const struct rv_kind *kind;
    int64_t row;               /* in the table of its kind; rv_store_load_entity() */
    const char *tenant, *user; /* "": none */
    const char *key;           /* normalised */
    const char *id;            /* of the entity */
    rv_str summary;            /* at most 500 characters; may be empty */
    int64_t updated_us;
};
/** Rows that the name refers to, for this caller: own rows before shared ones, kinds in the order of rv_kinds, newest
 * first; one row for each kind and owner. Where nothing has the name: an entity by its id, else message n of a session
 * by "session-<session>-msg-<n>" (rv_message_make_key(), its own kind). It is not an error to find nothing. each
 * borrows hit. */
RV_MUST_CHECK int rv_store_lookup(rv_store *s, const struct rv_store_scope *scope, rv_str key,
                                  int (*each)(void *self, const struct rv_key_hit *hit, rv_err **err), void *self,
                                  rv_err **err);
/** Rebuild the index from the rows. *n (may be NULL): its rows. */
RV_MUST_CHECK int rv_store_rebuild_keys(rv_store *s, int64_t *n, rv_err **err);

/* --- Walks over edges: many names at once, with the edges of what they mean --- */
/* The row that a name refers to in a scope: the first one that rv_store_lookup() gives. */
struct rv_key_node {
    struct rv_key_hit hit;
    rv_str metadata, edges; /* JSON as it is kept: an object, a list; empty: none */
};
#define RV_NODES_MAX 1000 /* keys of one call: they are one parameter of a statement */
/* Keys of the nodes that are read. Borrowed for the call. */
struct rv_node_keys {
    const rv_str *keys; /* normalised, each at most RV_ENTITY_MAX_NAME bytes, none twice */
    size_t n_keys;      /* 1..RV_NODES_MAX */
};
/** Read what normalised keys mean, in one statement. Only names are looked at; UUIDs and keys of messages are for
 * rv_store_lookup(). Keys that mean nothing to the scope are passed over.
 *  @param each  borrows node; in the order of the keys. It returns 0, RV_STORE_ENOUGH to end well, or a code that is
 *               passed on */
RV_MUST_CHECK int rv_store_read_nodes(rv_store *s, const struct rv_store_scope *scope, const struct rv_node_keys *keys,
                                      int (*each)(void *self, const struct rv_key_node *node, rv_err **err), void *self,
                                      rv_err **err);

#endif
