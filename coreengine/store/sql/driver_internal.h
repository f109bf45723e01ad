/* A driver: the functions by which sql.c and the handle reach a database. */
#ifndef RV_STORE_SQL_DRIVER_INTERNAL_H
#define RV_STORE_SQL_DRIVER_INTERNAL_H

#include "coreengine/store/sql/sql_internal.h"

struct rv_report;        /* upkeep.c */
struct rv_asking_rows;   /* ask.c */
struct rv_store_version; /* upkeep.h */
struct sql_rows;

/* Operations that differ between databases. Codes and errors are the store's. */
struct sql_driver {
    const char *name;    /* static */
    bool has_one_writer; /* while one transaction writes, all others wait */
    void (*close)(struct sql_store *st);
    void (*set_wait)(struct sql_store *st, int64_t ms);
    void (*defer_sync)(struct sql_store *st,
                       bool defers); /* as rv_store_defer_sync(); NULL: a commit never waits less */
    rv_sql_stmt *(*use)(struct sql_store *st, enum sql_id id);
    rv_sql_stmt *(*prepare)(struct sql_store *st, const rv_buf *sql); /* NULL: no memory */
    void (*finish)(rv_sql_stmt *stmt);                                /* of prepare() */
    void (*reset)(rv_sql_stmt *stmt);
    int (*step)(rv_sql_stmt *stmt, const char *what, rv_err **err); /* as sql_step() */
    int (*run)(rv_sql_stmt *stmt, enum sql_wants wants, int64_t *out, const char *what, rv_err **err);
    /* Column i from 0 as that type; out stays as it is for null. *lacked: no memory for it. */
    void (*column)(const rv_sql_stmt *stmt, int i, enum sql_type type, struct sql_value *out, bool *lacked);
    rv_sql_stmt *(*use_rows)(struct sql_store *st, enum sql_id id); /* as sql_use_rows(); so the next two */
    int (*add_row)(const struct sql_rows *rows, rv_err **err);
    int (*end_rows)(const struct sql_rows *rows, int rc, rv_err **err);
    /* Transactions, as the functions of these names. */
    int (*begin_read)(struct sql_store *st, bool *began, rv_err **err);
    void (*end_read)(struct sql_store *st, bool began);
    int (*begin_write)(struct sql_store *st, const char *what, rv_err **err);
    int (*end_write)(struct sql_store *st, int rc, const char *what, rv_err **err);
    int (*begin_part)(struct sql_store *st, rv_err **err);
    int (*end_part)(struct sql_store *st, int rc, rv_err **err);
    int (*begin)(struct sql_store *st, rv_err **err);
    int (*commit)(struct sql_store *st, rv_err **err);
    void (*rollback)(struct sql_store *st);
    bool (*again)(struct sql_store *st); /* as sql_again(); NULL: never */
    /* As sql_tell(), rv_store_listen() and rv_store_was_notified(); NULL: the database tells nothing. */
    void (*tell)(struct sql_store *st);
    void (*may_be_lost)(struct sql_store *st); /* as sql_may_be_lost(); NULL: does nothing */
    int (*listen)(struct sql_store *st, int *fd, rv_err **err);
    bool (*heard)(struct sql_store *st);
    /* A statement of others, see search.h. */
    int (*ask)(struct sql_store *st, const struct rv_store_scope *scope, struct rv_asking_rows *rows, rv_err **err);
    /* Upkeep. */
    int schema;                                           /* the version of the tables */
    int64_t (*size)(struct sql_store *st);                /* bytes that it takes; 0: not known */
    int (*give_back)(struct sql_store *st, rv_err **err); /* space that deleted rows took, to the system */
    int (*scrub)(struct sql_store *st, rv_err **err);     /* overwrite what deleted rows left; NULL: it cannot */
    int (*backup)(struct sql_store *st, const char *path, rv_err **err); /* NULL: by a copy of the rows */
    /* Copying. */
    bool reads_pages;                                      /* rows come in pages that are kept in memory */
    bool refuses_bytes;                                    /* of a text: NUL, and what is not UTF-8 */
    int (*be_patient)(struct sql_store *st, rv_err **err); /* the open transaction may take as long as it needs */
    /* After a table was copied: new values of its generated column `key` (NULL: it has none) start after the copied
     * ones, and the planner gets statistics, without which the first statements are slow. NULL: nothing to do. */
    int (*end_table)(struct sql_store *st, const char *table, const char *key, rv_err **err);
    /* Complain about what only this database can tell, within the transaction of the check. */
    int (*check)(struct sql_store *st, struct rv_report *report, rv_err **err);
    /* The last statement failed because of damage that the check reports: its text. NULL: for another reason. */
    const char *(*damage)(struct sql_store *st);
};

/** Between two short transactions of long work, so that others have their turn (upkeep.c). */
void store_upkeep_pause(const struct sql_store *st);

/** 1: a schema of that version has to come forward to the current one, 0: it is current. RV_E_VERSION: the program is
 * too old for it, or it may only be read. */
RV_MUST_CHECK int sql_compare(const struct sql_store *st, int64_t version, int current, bool read_only, rv_err **err);

#endif
