/* The part of the store for agent documents ("schemas"), by name. One may be everybody's (user "") or one user's
 * own. */
#ifndef RV_STORE_DOCUMENTS_H
#define RV_STORE_DOCUMENTS_H

#include "coreengine/store/handle.h"

/* Texts are borrowed, or in the memory of `own`. */
struct rv_schema_row {
    const char *id; /* may be NULL when it is put: a UUID that follows from name and user. Once given it stays */
    const char *tenant, *user; /* when put, NULL: RV_STORE_TENANT, everybody's */
    const char *name, *kind, *version, *description;
    rv_str content;                   /* the prompt */
    rv_str json_schema;               /* the flat document, JSON */
    rv_str document;                  /* the text it was made from, byte for byte */
    const char *source;               /* "person", "built-in", "file": who put it */
    const char *place;                /* of a file, its path; of a built-in, its capability; NULL */
    char checksum[RV_STORE_HASH_MAX]; /* SHA-256 of document; given by the store */
    int64_t created_us, updated_us;
    char *own;
};
void rv_schema_row_fini(struct rv_schema_row *row);
enum rv_schema_put {
    RV_SCHEMA_PUT, /* a person's word: replaces what is there, and revives what was deleted */
    /* On first use, never a person's: only where there is none, or one that was registered too and now has another
     * checksum. What a person put stands, and when it was deleted, it stays deleted: nothing registers in its place.
     * What registered and was deleted registers again. */
    RV_SCHEMA_REGISTER,
};
/** *changed (may be NULL): something was written. RV_E_DENIED: the given id is that of another user's row; RV_E_EXISTS:
 *  of one with another kind or name. */
RV_MUST_CHECK int rv_store_put_schema(rv_store *s, const struct rv_schema_row *row, enum rv_schema_put mode,
                                      int64_t now_us, bool *changed, rv_err **err);
/** The user's own one of that kind and name, else everybody's (scope user "" or NULL: that). RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_store_find_schema(rv_store *s, const struct rv_store_scope *scope, const char *kind,
                                       const char *name, struct rv_schema_row *out, rv_err **err);
/** All that the scope sees (user NULL: of all users), by name, a user's own before everybody's. kind NULL: any. */
RV_MUST_CHECK int rv_store_list_schemas(rv_store *s, const struct rv_store_scope *scope, const char *kind,
                                        int (*each)(void *self, const struct rv_schema_row *row, rv_err **err),
                                        void *self, rv_err **err);
/** The user's own (scope user ""  or NULL: everybody's). RV_E_NOT_FOUND: there is none that may be deleted so. */
RV_MUST_CHECK int rv_store_delete_schema(rv_store *s, const struct rv_store_scope *scope, const char *kind,
                                         const char *name, int64_t now_us, rv_err **err);
/* What a schema was, each time when its content or its flat document changed, it was deleted, or came back. Texts are
 * borrowed for the call that gets it. */
struct rv_schema_version {
    const char *schema_id, *kind, *user;
    const char *operation;      /* "insert", "update", "delete" */
    const char *name, *version; /* version NULL: none */
    rv_str content, json_schema;
    const char *checksum; /* SHA-256 of content followed by json_schema */
    int64_t recorded_us;
};
/* What a schema is known by. Texts are borrowed for the call. */
struct rv_schema_key {
    const char *kind, *name;
};
/** The versions of the schemas that the scope sees by that kind and name, also of deleted ones: a user's own before
 * everybody's, oldest first. None: nothing was put since versions are kept. each borrows v. */
RV_MUST_CHECK int
rv_store_list_schema_versions(rv_store *s, const struct rv_store_scope *scope, const struct rv_schema_key *key,
                              int (*each)(void *self, const struct rv_schema_version *v, rv_err **err), void *self,
                              rv_err **err);
/** A number that differs from any earlier one after any change to schemas, by whatever process. What is read in a group
 *  that changed schemas holds only when the group is committed. */
RV_MUST_CHECK int rv_store_read_schemas_version(rv_store *s, int64_t *out, rv_err **err);

#endif
