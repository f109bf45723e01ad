/* Shared by the files of coreengine/app/ingest: the files that paths stand for, a file as text, and its rows. */
#ifndef RV_APP_INGEST_INTERNAL_H
#define RV_APP_INGEST_INTERNAL_H

#include "coreengine/app/entities.h"
#include "coreengine/base/base.h"

/* walk.c */
struct ingest_file {
    char *path;  /* as it was found; owned */
    rv_err *why; /* it is known already that it cannot be read; owned */
};
struct ingest_files {
    struct ingest_file *at; /* owned; in folders by their names' bytes */
    size_t n, cap;
    int64_t n_passed_over;
};
/** All files that the paths stand for. What is wrong with one of them is kept with it. RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int app_ingest_find(const char *const *paths, size_t n, struct ingest_files *out, rv_err **err);
void app_ingest_files_fini(struct ingest_files *files);
/** NULL: not one of those that are read in folders. */
const char *app_ingest_mime(const char *path);

/* missing.c */
struct missing_file {
    char *id, *name; /* of its row; owned */
    char *uri;       /* memory of path; owned */
    char *path;      /* where it was; borrowed from uri */
};
struct ingest_missing {
    struct missing_file *at; /* owned */
    size_t n, cap;
};
/** Files with a row of the same owner that were read from below the folders among the paths, and are not there. */
RV_MUST_CHECK int app_ingest_missing(const struct rv_app_ingest *opts, struct ingest_missing *out, rv_err **err);
void app_ingest_missing_fini(struct ingest_missing *files);

/* page.c */
#define RV_INGEST_MAX_URI ((size_t)3 * 4096 + 100) /* bytes: a path of 4,096 with each byte escaped, and the scheme */
/** The address of an absolute path. */
void app_ingest_write_uri(const char *scheme, const char *real, rv_buf *out);
/* A file as it was read. */
struct page {
    const char *path;       /* borrowed */
    rv_buf uri;             /* file:///... of its real path */
    rv_buf text;            /* UTF-8 without NULs, without a byte order mark */
    char hash[RV_HASH_MAX]; /* of the text */
    const char *mime;       /* static */
    char id[37];            /* of its row in `files` */
    char *name;             /* owned; that no other file of the caller has */
    rv_buf folder;          /* that the file is in: the last name of its way; empty: none */
    size_t chunk_chars, overlap;
};
/** Read a file. RV_E_NOT_FOUND, RV_E_IO, RV_E_LIMIT (too long), RV_E_INVALID (not text), RV_E_NOMEM. */
RV_MUST_CHECK int app_page_read(const char *path, const char *user, struct page *out, rv_err **err);
/** A text that was sent. RV_E_INVALID (not text; the path), RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int app_page_sent(const char *path, rv_str text, const char *user, struct page *out, rv_err **err);
void app_page_fini(struct page *page);
/* Its rows, each an object of columns. */
struct page_rows {
    json_object *file, *moment; /* owned */
    json_object **chunks;       /* owned, and each of them */
    size_t n_chunks;
};
RV_MUST_CHECK int app_page_rows(const struct page *page, int64_t now_us, struct page_rows *out, rv_err **err);
void app_page_rows_fini(struct page_rows *rows);

#endif
