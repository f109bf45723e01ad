/* Entities for fronts: rows from lines of JSON and from files, rows for people and programs, figures that they give. */
#ifndef RV_APP_ENTITIES_H
#define RV_APP_ENTITIES_H

#include <stdio.h>

#include "coreengine/app/workspace.h"
#include "coreengine/store/store.h"

/* --- Rows --- */
#define RV_APP_MAX_LINE (RV_ENTITY_MAX_BYTES + RV_ENTITY_MAX_BYTES / 2) /* bytes of one row as JSON */

struct rv_app_put_lines {
    rv_store *store; /* borrowed */
    struct rv_store_scope scope;
    const char *kind;   /* borrowed for the call */
    bool is_tenantless; /* as struct rv_entities_put */
    /** For each line with a row, in order: the row as it is now, or why it could not be written (borrowed; row NULL).
     * Not 0: it ends there, and that is passed on. */
    int (*on_row)(void *self, int64_t line, json_object *row, const rv_err *why, rv_err **err);
    void *self; /* borrowed for the call */
};
/** Write each line of `in`, which is one JSON object, as a row; empty lines are passed over. A row that cannot be
 * written leaves the others as they are. Rows are committed some hundred at a time. *n_failed: lines that were refused.
 *  RV_E_INVALID: the kind; RV_E_IO: the store, or `in` cannot be read. */
RV_MUST_CHECK int rv_app_put_lines(const struct rv_app_put_lines *opts, FILE *in, int64_t *n_failed, rv_err **err);

/** All rows that a word means: what a lookup finds, in its order; a message by its key. kind NULL: of any kind; else
 * also a row of that kind by its id. An array of {entity_type, data}, the caller's. RV_E_NOT_FOUND: none. */
RV_MUST_CHECK int rv_app_entities_show(rv_store *store, const struct rv_store_scope *scope, const char *kind,
                                       const char *word, json_object **out, rv_err **err);

/** A value of a column as a person writes it: a text, or JSON where the column is not a text. column must be one of the
 *  kind's. *out may be NULL: null. RV_E_INVALID. */
RV_MUST_CHECK int rv_app_entity_parse_value(const char *kind, const char *column, const char *text, json_object **out,
                                            rv_err **err);

/* --- Reads files into the store: each file becomes a row of `files`, its text is cut into chunks that are rows of
 * `resources`, links between pages become edges, and a moment says that it was read.
 *
 * What a file's rows are follows from its path, so a file that was read before is changed, not added again, and one
 * whose content is the same is passed over. All rows of a file are one transaction: after a crash the
 * same call goes on. --- */
#define RV_INGEST_MAX_FILE  ((size_t)8 << 20) /* bytes; a longer text is a database, or a mistake */
#define RV_INGEST_MAX_DEPTH 64                /* folders within each other: deeper ones are a mistake */
#define RV_INGEST_MAX_FILES 1000000           /* of one call: their paths are in memory */
#define RV_INGEST_SUMMARY   300               /* characters of the moment's summary */

enum rv_ingest_outcome {
    RV_INGEST_ADDED,
    RV_INGEST_CHANGED,
    RV_INGEST_UNCHANGED,
    RV_INGEST_FAILED,
    RV_INGEST_MISSING, /* a file of a named folder that was read before and was deleted; its rows are there */
    RV_INGEST_PRUNED,  /* the same, and its rows were deleted */
    RV_INGEST_N,
};
/* What it points to is borrowed for the call. */
struct rv_ingested {
    const char *path; /* as it was found, borrowed for the call */
    const char *name; /* of its row; NULL if it failed */
    const char *id;   /* the same */
    enum rv_ingest_outcome outcome;
    size_t n_chunks;
    const rv_err *why; /* it failed; borrowed */
};
struct rv_ingest_counts {
    int64_t files[RV_INGEST_N];
    int64_t n_chunks, n_bytes; /* of files that were written */
    int64_t n_passed_over;     /* files in folders whose suffix is none of those that are read */
};
/* What it points to is borrowed for the call. */
struct rv_app_ingest {
    rv_store *store;             /* borrowed */
    struct rv_store_scope scope; /* user NULL or "": the rows belong to no user, every user finds them */
    const char *const *paths;    /* files, whatever their suffix, and folders with all below them */
    size_t n_paths;
    size_t chunk_chars, overlap; /* characters; 0 and 0: RV_CHUNK_CHARS, RV_CHUNK_OVERLAP */
    const char *session;         /* that the uploads belong to, made if it is not there; NULL: each has its own */
    bool again;                  /* also files that did not change */
    bool prune;                  /* delete the rows of files that are not in the named folders any more */
    /** After each file. Not 0: it ends there, and that is passed on. */
    int (*on_file)(void *self, const struct rv_ingested *file, rv_err **err);
    void *self;
};
/** A file that cannot be read or kept is told to on_file and counted; the others are kept all the same.
 *  @return RV_E_INVALID (sizes of chunks), RV_E_LIMIT (RV_INGEST_MAX_FILES), RV_E_NOMEM, and what on_file gave; a store
 *  that cannot be written ends it with its code (RV_E_IO, RV_E_TIMEOUT, RV_E_DENIED) */
RV_MUST_CHECK int rv_app_ingest(const struct rv_app_ingest *opts, struct rv_ingest_counts *out, rv_err **err);
/** A text that a client sent, as if it were a file of that path below a folder of the client's own ("notes/today.md":
 *  no "..", no "/" in front): its address is upload:///PATH. opts: its paths are passed over, on_file gets it. Errors
 *  as above, and those of the text. */
RV_MUST_CHECK int rv_app_ingest_text(const struct rv_app_ingest *opts, const char *path, rv_str text, rv_err **err);
/** Delete a file with its chunks. RV_E_NOT_FOUND, RV_E_DENIED. */
RV_MUST_CHECK int rv_app_delete_file(rv_store *store, const struct rv_store_scope *scope, const char *id,
                                     int64_t now_us, rv_err **err);
/** "added", "changed", "unchanged", "failed", "missing", "pruned". */
const char *rv_ingest_outcome_text(enum rv_ingest_outcome outcome);

/* --- Figures that the rows of a store give: statements of our own over the rows that a scope sees --- */
#define RV_APP_MAX_SELECT 10000 /* rows: they are read within one call */

/** Carry out a statement of the subset of docs/reference/rem.md. *out: an array of objects, the caller's, of at most
 *  RV_APP_MAX_SELECT rows. *has_more: the statement has further rows; has_more NULL: that is RV_E_LIMIT. RV_E_INVALID,
 *  RV_E_TIMEOUT, RV_E_LIMIT, RV_E_IO, RV_E_NOMEM. */
RV_MUST_CHECK int rv_app_select(rv_store *store, const struct rv_store_scope *scope, rv_str sql, json_object **out,
                                bool *has_more, rv_err **err);

/* usage_by.c: what answers took */
struct rv_app_usage_by {
    bool user, agent, model;    /* by which it is grouped; none: one row for all */
    int64_t since_us, until_us; /* when the answers were made: from, and before; 0: any */
};
/** Read "user,agent,model" or some of the words. RV_E_INVALID names the word. */
RV_MUST_CHECK int rv_app_usage_by_parse(const char *words, struct rv_app_usage_by *out, rv_err **err);
/** Answers of agents that the store has: an array of {user_id?, agent_name?, model?, answers, input_tokens,
 *  output_tokens, latency_ms}, sorted, the caller's. Sums of tokens and of time. */
RV_MUST_CHECK int rv_app_build_usage(rv_store *store, const struct rv_store_scope *scope,
                                     const struct rv_app_usage_by *by, json_object **out, rv_err **err);

#endif
