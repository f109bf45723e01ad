/* Shared by the files of entities: entities/columns.c checks what is given, entities.c writes, entities/rows.c reads
 * rows, entities/read.c finds them, search/keys.c keeps the index of names, search/lookup.c asks it. */
#ifndef RV_STORE_ENTITIES_INTERNAL_H
#define RV_STORE_ENTITIES_INTERNAL_H

#include "coreengine/conversation/conversation.h"
#include "coreengine/match/match.h"
#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/entities.h"
#include "coreengine/store/store_internal.h"

/* --- entities/columns.c --- */
/* A row that was given, checked: values as they are kept. */
struct rv_entity_given {
    const struct rv_kind *kind; /* static */
    char id[RV_UUID_MAX];       /* given, or following from a key */
    bool is_id_given;           /* by the caller: other owners may have it */
    const char *user;           /* borrowed from the row; NULL: not given */
    const char *version;        /* that it has to have, borrowed; NULL: any */
    bool *is_stale;             /* out, borrowed: it has another one; may be NULL */
    json_object
        *columns; /* owned: the kind's columns and metadata, tags, graph_edges, encryption_level; null is NULL */
};
RV_MUST_CHECK int entity_check(const struct rv_kind *kind, const struct rv_store_scope *scope, json_object *row,
                               struct rv_entity_given *out, rv_err **err);
void entity_given_fini(struct rv_entity_given *g);
RV_MUST_CHECK int entity_check_edges(json_object *edges, rv_err **err);
/** The column or one that every kind has. RV_E_INVALID. */
RV_MUST_CHECK int entity_check_column(const struct rv_kind *kind, const char *column, rv_err **err);
/** A time as rows have it. */
void entity_time(int64_t us, char out[RV_TIME_MAX]);

/* --- entities.c --- */
/** Write a checked row that has an id, in the transaction of the caller. out (an array; may be NULL) gets the row. */
RV_MUST_CHECK int entity_put(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_given *g,
                             int64_t now_us, json_object *out, rv_err **err);

/* --- entities/rows.c --- */
/** Where the texts of a row are, unless it is a message. */
struct rv_place entity_place(const struct rv_kind *kind, const char *tenant, const char *user, const char *id);
/** The statement that reads a row by its key, bound. */
rv_sql_stmt *entity_use(struct sql_store *st, const struct rv_kind *kind, int64_t row);
/** A row of RV_SQL_ROWS_*, as it travels. out is the caller's. */
RV_MUST_CHECK int entity_read(struct sql_store *st, const struct rv_kind *kind, rv_sql_stmt *stmt, json_object **out,
                              rv_err **err);
/* What a row that is changed has, as it is kept. Borrowed for the call. */
struct rv_entity_kept {
    const struct rv_place *at;
    json_object *fields;
    rv_str metadata;
};
/** Where the columns that a caller gave have ciphertext that readers of the row were shown: what the row has now is
 * taken out, so that it stays, and what it had before is decrypted. */
RV_MUST_CHECK int entity_open_shown(struct sql_store *st, const struct rv_kind *kind, const struct rv_entity_kept *kept,
                                    json_object *columns, rv_err **err);
/** JSON of a column: of that type, one level of wrapping in a string taken off; else NULL. */
json_object *entity_parse(rv_str text, json_type type, bool *lacked);
/** By key, whatever the scope. RV_E_NOT_FOUND. */
RV_MUST_CHECK int entity_at(struct sql_store *st, const struct rv_kind *kind, int64_t row, json_object **out,
                            rv_err **err);
/** Of a row that is locked: RV_E_STATE when it has another version than `version` (NULL: any), which is_stale, if
 * given, gets to know. row 0: there is none. */
RV_MUST_CHECK int entity_check_version(struct sql_store *st, const struct rv_kind *kind, int64_t row,
                                       const char *version, bool *is_stale, rv_err **err);

/* --- entities/read.c --- */
/** A live row that a scope sees: what a change needs to know. */
struct rv_entity_found {
    int64_t key;
    char user[RV_STORE_MAX_ID + 1], tenant[RV_STORE_MAX_ID + 1];
    json_object *row; /* owned */
};
RV_MUST_CHECK int entity_see(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_kind *kind,
                             const char *id, struct rv_entity_found *out, rv_err **err);

/* --- entities/change.c --- */
struct rv_entity_change {
    const struct rv_kind *kind; /* static */
    const char *id;             /* borrowed */
    int64_t now_us;
    const char *version; /* that the row has to have, borrowed; NULL: any */
    bool *is_stale;      /* out, borrowed: it has another one; may be NULL */
};
RV_MUST_CHECK int entity_check_change(const struct rv_store_scope *scope, const struct rv_entity_target *at,
                                      struct rv_store_scope *sc, struct rv_entity_change *c, rv_err **err);
/** RV_E_DENIED: the scope sees a row of that owner and may not change it. */
RV_MUST_CHECK int entity_check_owner(const struct rv_store_scope *scope, const char *tenant, const char *user,
                                     rv_err **err);
int entity_fail_shared(rv_err **err);
/** RV_E_INVALID: other calls write rows of that kind. */
int entity_fail_place(const struct rv_kind *kind, rv_err **err);

/* --- search/keys.c --- */
/* A row of any kind as the index has it. Call it in the transaction that writes the row. Texts are borrowed for the
 * call. */
struct rv_key_source {
    const char *kind;
    int64_t row;
    const char *tenant, *user, *id;
    rv_str name, summary; /* ptr NULL: none; a summary is cut */
    int64_t updated_us;
    json_object *whole; /* borrowed: the row, as entity_read() gives it; NULL: it is read when it is needed */
};
RV_MUST_CHECK int store_keys_put(struct sql_store *st, const struct rv_key_source *k, rv_err **err);
RV_MUST_CHECK int store_keys_drop(struct sql_store *st, const char *kind, int64_t row, rv_err **err);
/** The same for the whole row, as entity_read() gives it; of a kind without an index nothing. */
struct rv_owned_row {           /* a row in the table of its kind, and whose it is */
    const struct rv_kind *kind; /* static */
    int64_t row;
    const char *tenant, *user; /* borrowed */
};
RV_MUST_CHECK int store_keys_put_row(struct sql_store *st, const struct rv_owned_row *at, json_object *whole,
                                     int64_t updated_us, rv_err **err);
/** The same for a new session, and for one that got another name or a description. */
RV_MUST_CHECK int store_keys_put_session(struct sql_store *st, int64_t row, const struct rv_session_row *session,
                                         rv_err **err);
RV_MUST_CHECK int store_keys_follow_session(struct sql_store *st, int64_t row, rv_err **err);
/** Fill the index of a store that came from an older version, when that was not done yet. */
RV_MUST_CHECK int store_keys_rebuild(struct sql_store *st, int64_t *total, rv_err **err); /* a part of a write */
/** Report rows that are found by something else than what they say, within a read transaction. */
RV_MUST_CHECK int store_keys_compare(struct rv_report *r, rv_err **err);
RV_MUST_CHECK int store_keys_catch_up(struct sql_store *st, rv_err **err);

/* --- versions.c --- */
/* A version of a schema. Borrowed for the call. */
struct rv_version_text {
    const char *operation; /* insert, update, delete */
    rv_str content, json_schema;
};
/** A version of a schema that was written: nothing when the last one has the same content and json_schema and nothing
 * else happened to it. In the transaction that writes the schema, behind it ("delete": before). */
RV_MUST_CHECK int store_versions_keep(struct sql_store *st, int64_t schema, const struct rv_version_text *version,
                                      int64_t now_us, rv_err **err);

/* --- search/lookup.c --- */
/** The order of a lookup: own before shared, kinds in their order, newest first; what is left is decided by the ids. */
int store_key_compare(const struct rv_key_hit *a, const struct rv_key_hit *b);

#endif
