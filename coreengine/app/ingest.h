/* Reads files into the store: each file becomes a row of `files`, its text is cut into chunks that are rows of
 * `resources`, links between pages become edges, and a moment says that it was read.
 *
 * What a file's rows are follows from its path, so a file that was read before is changed, not added again, and one
 * whose content is the same is passed over. All rows of a file are one transaction: after a crash the
 * same call goes on. */
#ifndef RV_APP_INGEST_H
#define RV_APP_INGEST_H

#include "coreengine/app/app.h"
#include "coreengine/store/entities.h"

#define RV_INGEST_MAX_FILE  ((size_t)8 << 20) /* bytes; a longer text is a database, or a mistake */
#define RV_INGEST_MAX_DEPTH 64                /* folders within each other */
#define RV_INGEST_MAX_FILES 1000000           /* of one call */
#define RV_INGEST_SUMMARY   300               /* characters of the moment's summary */

enum rv_ingest_outcome {
    RV_INGEST_ADDED,
    RV_INGEST_CHANGED,
    RV_INGEST_UNCHANGED,
    RV_INGEST_FAILED,
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
/** "added", "changed", "unchanged", "failed". */
const char *rv_ingest_outcome_text(enum rv_ingest_outcome outcome);

#endif
