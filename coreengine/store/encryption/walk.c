/* Brings each text to what its tenant's mode and key are now, and finds keys that nothing needs any more.
 *
 * Rows are rewritten a few in a transaction. A walk that ends early leaves rows under the former key, which decrypts
 * them; the next walk passes over those that are done. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/encryption/texts_internal.h"
#include "coreengine/store/sql/driver_internal.h"

#define AT_ONCE  50               /* rows of one transaction */
#define MAX_USED ((size_t)100000) /* keys in use that are noted: in memory, some 5 MB */

/* --- Rewriting --- */

struct rewriting {
    struct rv_encryption_walked walked;
    bool row_is_sealed; /* the row in hand has a sealed text */
};

static struct rewriting *rewriting_of(const struct rv_texts_walk *w)
{
    return w->self;
}

static struct rv_encryption_walked *out_of(const struct rv_texts_walk *w)
{
    return &rewriting_of(w)->walked;
}

static int bind_value(struct rv_texts_walk *w, const struct rv_texts_row *r, size_t i, rv_sql_stmt *stmt,
                      int64_t now_us, rv_err **err)
{
    char hash[RV_HASH_MAX];
    int64_t blob = 0;
    int rc = 0;

    if (!r->has_blob) {
        sql_str(stmt, 3 + (int)i, r->has_text[i] ? rv_buf_str(&r->texts[i]) : (rv_str){NULL, 0});
        return 0;
    }
    rv_hash_format(rv_buf_str(&r->texts[i]), hash);
    rc = store_blob_key(w->st, rv_buf_str(&r->texts[i]), hash, now_us, &blob, err);
    sql_str(stmt, 3 + (int)i, (rv_str){NULL, 0});
    sql_int(stmt, 3 + RV_MAX_TEXTS, blob);
    return rc;
}

/* What the row's encryption_level is to be; NULL: nothing, as in a table that has none. */
static int level_of(struct rv_texts_walk *w, const struct rv_texts_row *r, const char **out, rv_err **err)
{
    const struct rv_texts_table *t = r->table;
    const char *kind = strcmp(t->name, "entities") == 0 ? r->ids[2] : t->name;

    *out = NULL;
    int rc = t->has_level ? vault_level(w->st, r->tenant, kind, out, err) : 0;
    if (t->has_level && rewriting_of(w)->row_is_sealed)
        *out = rv_encryption_mode_text(RV_ENCRYPTION_SEALED);
    return rc;
}

static int update(struct rv_texts_walk *w, const struct rv_texts_row *r, const char *level, int64_t now_us,
                  rv_err **err)
{
    const struct rv_texts_table *t = r->table;
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);
    int rc = 0;

    rv_buf_printf(&sql, "UPDATE %s SET ", t->name);
    for (int i = 0; i < RV_MAX_TEXTS && t->columns[i].name; i++)
        rv_buf_printf(&sql, "%s%s = ?%d", i ? ", " : "", t->columns[i].name, 3 + i);
    if (r->has_blob)
        rv_buf_printf(&sql, ", blob = ?%d", 3 + RV_MAX_TEXTS);
    if (t->has_level)
        rv_buf_printf(&sql, ", encryption_level = ?%d", 4 + RV_MAX_TEXTS);
    rv_buf_printf(&sql, " WHERE %s", t->where);
    rv_sql_stmt *stmt = sql_prepare(w->st, &sql);
    rv_buf_fini(&sql);
    sql_int(stmt, 1, r->key);
    if (t->second_is_text)
        store_sql_text(stmt, 2, r->second_text);
    else
        sql_int(stmt, 2, r->second);
    for (size_t i = 0; i < RV_MAX_TEXTS && t->columns[i].name && rc == 0; i++) {
        struct sql_value v = {.type = t->columns[i].type, .bytes = rv_buf_str(&r->texts[i])};
        v.bytes.ptr = r->has_text[i] ? rv_buf_cstr(&r->texts[i]) : NULL;
        if (t->columns[i].of == OF_VALUE)
            rc = bind_value(w, r, i, stmt, now_us, err);
        else
            sql_bind(stmt, 3 + (int)i, v);
    }
    if (t->has_level)
        store_sql_text(stmt, 4 + RV_MAX_TEXTS, level);
    if (rc == 0)
        rc = sql_run(stmt, "write a row", err);
    sql_finish(stmt);
    return rc;
}

/* Only plain texts of a row are in the indexes. */
static int index_row(struct sql_store *st, const struct rv_texts_row *r, rv_err **err)
{
    const char *name = strcmp(r->table->name, "entities") == 0 ? r->ids[2] : r->table->name;
    const struct rv_kind *kind = rv_kind_find(rv_str_of(name));
    json_object *whole = NULL, *updated = NULL;
    rv_err *why = NULL;
    int64_t us = 0;

    if (!r->table->is_indexed || !kind || !kind->is_indexed)
        return 0;
    int rc = entity_at(st, kind, r->key, &whole, &why);
    if (rc == RV_E_NOT_FOUND) { /* deleted: it is in no index */
        rv_err_free(why);
        return 0;
    }
    if (rc < 0) {
        rv_err_pass(err, why);
        return rc;
    }
    const char *column = kind->place == RV_PLACE_SESSIONS ? "created_at" : "updated_at";
    if (json_object_object_get_ex(whole, column, &updated))
        rc = rv_time_parse(rv_json_str(updated), &us, err);
    if (rc == 0)
        rc = store_keys_put_row(st, &(struct rv_owned_row){kind, r->key, r->tenant, r->ids[0]}, whole, us, err);
    json_object_put(whole);
    return rc;
}

/* A sealed text comes back as it is when its private key is not given: it stays. */
static int rewrite(struct rv_texts_walk *w, const struct rv_place *at, const char *column, rv_buf *text, bool *changed,
                   rv_err **err)
{
    rv_buf plain = RV_BUF_INIT(text->max), kept = RV_BUF_INIT(text->max);
    int rc = store_secret_read(w->st, at, column, rv_buf_str(text), &plain, err);
    bool is_locked =
        rc == 0 && store_secret_is_sealed(rv_buf_str(text)) && rv_str_eq(rv_buf_str(&plain), rv_buf_str(text));

    if (rc == 0 && !is_locked)
        rc = store_secret_write(w->st, at, column, rv_buf_str(&plain), &kept, err);
    if (rc == 0 && !is_locked) {
        rv_buf swapped = *text;
        *text = kept;
        kept = swapped;
        *changed = true;
        out_of(w)->rewritten++;
    }
    out_of(w)->locked += is_locked;
    if (plain.ptr)
        rv_wipe(plain.ptr, plain.cap);
    rv_buf_fini(&plain);
    rv_buf_fini(&kept);
    return rc;
}

static int rewrite_text(struct rv_texts_walk *w, const struct rv_place *at, const char *column, rv_buf *text,
                        bool *changed, rv_err **err)
{
    bool is_current = false;
    int rc = store_secret_is_current(w->st, at, column, rv_buf_str(text), &is_current, err);

    out_of(w)->texts++;
    if (rc == 0 && !is_current)
        rc = rewrite(w, at, column, text, changed, err);
    rewriting_of(w)->row_is_sealed |= store_secret_is_sealed(rv_buf_str(text));
    return rc;
}

/* The next row behind *r, which it becomes. 1: there was one. */
static int rewrite_next(struct rv_texts_walk *w, struct rv_texts_row *r, int64_t now_us, rv_err **err)
{
    rv_sql_stmt *stmt = store_texts_page(w, r, 1, true);
    int rc = sql_step(stmt, "read a row", err);
    bool found = rc == 1;
    const char *level = NULL;

    if (found)
        rc = store_texts_take(stmt, r, err);
    sql_finish(stmt);
    if (rc < 0 || !found)
        return rc;
    rewriting_of(w)->row_is_sealed = false;
    rc = store_texts_visit(w, r, err);
    if (rc == 0)
        rc = level_of(w, r, &level, err);
    if (rc == 0 && strcmp(level ? level : "", r->level) != 0) /* the indexes go by it */
        r->changed = true;
    if (rc == 0 && r->changed)
        rc = update(w, r, level, now_us, err);
    if (rc == 0 && r->changed)
        rc = index_row(w->st, r, err);
    return rc < 0 ? rc : 1;
}

static int rewrite_some(struct rv_texts_walk *w, struct rv_texts_row *r, int64_t now_us, rv_err **err)
{
    int rc = 1;

    for (int i = 0; i < AT_ONCE && rc == 1; i++)
        rc = rewrite_next(w, r, now_us, err);
    return rc;
}

/* Where a transaction begins, so that it can begin again. */
struct mark {
    int64_t key, second;
    struct rv_encryption_walked walked;
    char second_text[RV_STORE_MAX_ID + 1];
};

static int rewrite_table(rv_store *s, struct rv_texts_walk *w, const struct rv_texts_table *t, int64_t now_us,
                         rv_err **err)
{
    struct mark mark = {0};
    struct rv_texts_row r;
    int rc, more = 1;

    store_texts_row_init(&r, t);
    do {
        if ((rc = store_enter_write(s, 0, "encrypt", err)) != 0)
            break;
        mark = (struct mark){.key = r.key, .second = r.second, .walked = *out_of(w)};
        snprintf(mark.second_text, sizeof mark.second_text, "%s", r.second_text);
        do {
            r.key = mark.key;
            r.second = mark.second;
            snprintf(r.second_text, sizeof r.second_text, "%s", mark.second_text);
            *out_of(w) = mark.walked;
            rc = more = rewrite_some(w, &r, now_us, err);
            rc = rc > 0 ? 0 : rc;
        } while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
        if (rc == 0 && more == 1)
            store_upkeep_pause(s->sql);
    } while (rc == 0 && more == 1);
    store_texts_row_fini(&r);
    return rc < 0 ? RV_WRAP(err, rc, "rewrite %s", t->name) : rc;
}

int rv_store_encrypt(rv_store *s, const char *tenant, int64_t now_us, struct rv_encryption_walked *out, rv_err **err)
{
    struct rewriting got = {.row_is_sealed = false};
    struct rv_texts_walk w = {.st = s->sql, .visit = rewrite_text, .tenant = tenant, .self = &got};
    int rc = tenant ? store_check_id("tenant", tenant, err) : 0;

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if (rc == 0 && s->in_group)
        rc = RV_FAIL(err, RV_E_STATE, "store \"%s\": not before the group is committed", s->url);
    for (size_t i = 0; i < store_n_texts_tables && rc == 0; i++)
        rc = rewrite_table(s, &w, &store_texts_tables[i], now_us, err);
    if (rc == 0 && s->sql->driver->scrub && (rc = s->sql->driver->scrub(s->sql, err)) < 0)
        RV_WRAP(err, rc, "all rows are rewritten, and their former bytes are still in the file");
    *out = got.walked;
    return rc;
}

/* --- Keys that nothing needs --- */

struct used {
    char (*at)[RV_ENCRYPTION_ID];
    size_t n, cap;
};

static int note_key(struct rv_texts_walk *w, const struct rv_place *at, const char *column, rv_buf *text, bool *changed,
                    rv_err **err)
{
    struct used *u = w->self;
    char id[RV_ENCRYPTION_ID];

    (void)at;
    (void)column;
    (void)changed;
    store_secret_key(rv_buf_str(text), id);
    if (!*id)
        return 0;
    for (size_t i = u->n; i-- > 0;)
        if (strcmp(u->at[i], id) == 0)
            return 0;
    if (u->n >= MAX_USED || !rv_has_room(&u->at, &u->cap, u->n + 1, sizeof *u->at))
        return RV_FAIL(err, RV_E_NOMEM, "list keys in use");
    memcpy(u->at[u->n++], id, sizeof id);
    return 0;
}

struct unneeded {
    const struct used *used;
    int64_t before_us;
    char (*ids)[RV_ENCRYPTION_ID];
    size_t n, cap;
};

static int note_unneeded(void *self, const struct rv_tenant_key *key, rv_err **err)
{
    struct unneeded *u = self;

    if (strcmp(key->status, "retired") != 0 || key->retired_us >= u->before_us)
        return 0;
    for (size_t i = 0; i < u->used->n; i++)
        if (strcmp(u->used->at[i], key->id) == 0)
            return 0;
    if (!rv_has_room(&u->ids, &u->cap, u->n + 1, sizeof *u->ids))
        return RV_FAIL(err, RV_E_NOMEM, "list keys");
    snprintf(u->ids[u->n++], RV_ENCRYPTION_ID, "%s", key->id);
    return 0;
}

static int drop_keys(struct sql_store *st, const struct unneeded *u, rv_err **err)
{
    int rc = sql_run(sql_use(st, SQL_COUNT_ENCRYPTION), "drop keys", err);

    for (size_t i = 0; i < u->n && rc == 0; i++) {
        rv_sql_stmt *stmt = sql_use(st, SQL_DROP_TENANT_KEY);
        store_sql_text(stmt, 1, u->ids[i]);
        rc = sql_run(stmt, "drop a key", err);
    }
    return rc;
}

static int list_used(rv_store *s, struct rv_texts_walk *w, rv_err **err)
{
    int rc = store_enter_read(s, 0, "list used keys", err);
    bool began = false;

    if (rc != 0)
        return rc;
    rc = sql_begin_read(s->sql, &began, err);
    if (rc == 0)
        rc = store_texts_read(w, err);
    sql_end_read(s->sql, began);
    return store_leave_read(s, rc, err);
}

int rv_store_prune_tenant_keys(rv_store *s, int64_t retired_before_us, int64_t *n, rv_err **err)
{
    struct used used = {0};
    struct rv_texts_walk w = {.st = s->sql, .visit = note_key, .self = &used};
    struct unneeded u = {.used = &used, .before_us = retired_before_us};
    int rc = list_used(s, &w, err);

    if (rc == 0)
        rc = rv_store_list_tenant_keys(s, NULL, note_unneeded, &u, err);
    if (rc == 0 && u.n > 0 && (rc = store_enter_write(s, 0, "prune tenant keys", err)) == 0) {
        do
            rc = drop_keys(s->sql, &u, err);
        while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
    }
    if (rc == 0)
        *n = (int64_t)u.n;
    free(used.at);
    free(u.ids);
    return rc;
}
