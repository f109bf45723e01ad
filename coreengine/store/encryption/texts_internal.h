/* The list of texts that may be encrypted, and a walk over them. encryption/walk.c rewrites them, encryption/check.c
 * tries to decrypt them. */
#ifndef RV_STORE_ENCRYPTION_TEXTS_INTERNAL_H
#define RV_STORE_ENCRYPTION_TEXTS_INTERNAL_H

#include "coreengine/store/entities/entities_internal.h"

#define RV_MAX_TEXTS 3  /* of one row: no table has more encrypted columns */
#define RV_MAX_LEVEL 16 /* bytes of the name of a mode: "platform", "disabled" */

enum column_of { OF_TEXT = 1, OF_FIELDS, OF_VALUE }; /* fields: members of a JSON object; value: maybe a blob */
/* What it points to is static. */
struct rv_texts_column {
    const char *name;
    enum sql_type type;
    enum column_of of;
};
/* What it points to is static. */
struct rv_texts_table {
    const char *name;
    const char *select; /* key, second key, tenant, three ids, seq, texts, level if it has one; up to WHERE */
    const char *keys;   /* columns by which the rows are ordered: one, or two */
    const char *locks;  /* the table whose row is locked */
    const char *where;  /* of an update */
    const char *tenant;
    bool second_is_text, has_level, is_indexed;
    struct rv_texts_column columns[RV_MAX_TEXTS];
};

extern const struct rv_texts_table store_texts_tables[];
extern const size_t store_n_texts_tables;

struct rv_texts_row {
    const struct rv_texts_table *table; /* static */
    int64_t key, second, seq;
    char second_text[RV_STORE_MAX_ID + 1], tenant[RV_STORE_MAX_ID + 1], ids[3][RV_STORE_MAX_ID + 1];
    char level[RV_MAX_LEVEL]; /* of a table that has one: as it is kept; "": none */
    bool has_blob, has_text[RV_MAX_TEXTS], changed;
    rv_buf texts[RV_MAX_TEXTS]; /* before, as they are kept; afterwards as they will be kept */
};

/* A function for each text: gets it as it is kept, and may give another one in its place. */
struct rv_texts_walk;
typedef int rv_texts_visit_fn(struct rv_texts_walk *w, const struct rv_place *at, const char *column, rv_buf *text,
                              bool *changed, rv_err **err);
/* What it points to is borrowed for the walk. */
struct rv_texts_walk {
    struct sql_store *st;
    rv_texts_visit_fn *visit;
    const char *tenant; /* NULL: all */
    void *self;         /* of visit */
};

void store_texts_row_init(struct rv_texts_row *r, const struct rv_texts_table *t);
void store_texts_row_fini(struct rv_texts_row *r);
/** The statement that reads rows behind that one, which may be locked; sql_finish() it. */
rv_sql_stmt *store_texts_page(struct rv_texts_walk *w, const struct rv_texts_row *after, int64_t limit, bool locks);
/** Take the row of a statement; visit each of its texts. */
RV_MUST_CHECK int store_texts_take(rv_sql_stmt *stmt, struct rv_texts_row *r, rv_err **err);
RV_MUST_CHECK int store_texts_visit(struct rv_texts_walk *w, struct rv_texts_row *r, rv_err **err);
/** All texts, which stay as they are. */
RV_MUST_CHECK int store_texts_read(struct rv_texts_walk *w, rv_err **err);

#endif
