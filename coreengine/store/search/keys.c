/* The index of names, as the calls that write rows keep it in their transaction. It can be rebuilt from the rows at any
 * time, and the check of the store compares it with them. lookup.c reads it. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/search/search_internal.h"
#include "coreengine/store/sql/driver_internal.h"

#define SUMMARY_CHARS 500                             /* of a content that an index of names keeps */
#define MAX_SUMMARY   ((size_t)4 * SUMMARY_CHARS + 1) /* bytes: UTF-8 has at most four a character */
#define PAGE_ROWS     500                             /* of a rebuild, that are read before their keys are written */

/* --- Keeping it --- */

/* A summary without NUL bytes, which a database may not keep in a text. */
static void write_summary(rv_str summary, rv_buf *out)
{
    rv_str cut = rv_utf8_first(summary, SUMMARY_CHARS);

    for (size_t i = 0; i < cut.len; i++)
        rv_buf_putc(out, cut.ptr[i] ? cut.ptr[i] : ' ');
}

/* The normalised name, or the id where nothing is left. */
static int write_key(rv_str name, const char *id, rv_buf *out, rv_err **err)
{
    if (name.ptr)
        rv_match_write_key(name, out);
    if (out->len == 0)
        rv_buf_puts(out, id);
    return rv_buf_check(out, "key", err);
}

/* The whole row is read if the caller does not have it. */
static int put_tokens(struct sql_store *st, struct rv_key_source k, rv_str key, rv_str summary, rv_err **err)
{
    json_object *own = NULL;
    int rc = k.whole ? 0 : entity_at(st, rv_kind_find(rv_str_of(k.kind)), k.row, &own, err);

    if (own)
        k.whole = own;
    if (rc == 0)
        rc = store_tokens_put(st, &k, key, summary, err);
    json_object_put(own);
    return rc;
}

int store_keys_put(struct sql_store *st, const struct rv_key_source *k, rv_err **err)
{
    rv_buf key = RV_BUF_INIT(RV_ENTITY_MAX_KEY), summary = RV_BUF_INIT(MAX_SUMMARY);

    int rc = write_key(k->name, k->id, &key, err);
    write_summary(k->summary, &summary);
    if (rc == 0)
        rc = rv_buf_check(&summary, "summary", err);
    if (rc == 0) {
        rv_sql_stmt *stmt = sql_use(st, SQL_SET_KEY);
        store_sql_text(stmt, 1, k->kind);
        sql_int(stmt, 2, k->row);
        store_sql_text(stmt, 3, k->tenant);
        store_sql_text(stmt, 4, k->user);
        store_sql_text(stmt, 5, rv_buf_cstr(&key));
        store_sql_text(stmt, 6, k->id);
        store_sql_text(stmt, 7, rv_buf_cstr(&summary));
        sql_int(stmt, 8, k->updated_us);
        rc = sql_run(stmt, "write a key", err);
    }
    if (rc == 0)
        rc = put_tokens(st, *k, rv_buf_str(&key), rv_buf_str(&summary), err);
    rv_buf_fini(&key);
    rv_buf_fini(&summary);
    return rc;
}

int store_keys_put_session(struct sql_store *st, int64_t row, const struct rv_session_row *session, rv_err **err)
{
    enum rv_encryption_mode mode = RV_ENCRYPTION_NONE;
    int rc = vault_mode(st, session->tenant, &mode, err);
    bool is_described = mode < RV_ENCRYPTION_PLATFORM && session->description && *session->description;
    const struct rv_key_source k = {.kind = "sessions",
                                    .row = row,
                                    .tenant = session->tenant,
                                    .user = session->user,
                                    .id = session->id,
                                    .name = rv_str_of(session->name),
                                    .summary = rv_str_of(is_described ? session->description : session->name),
                                    .updated_us = session->created_us};
    return rc < 0 ? rc : store_keys_put(st, &k, err);
}

int store_keys_drop(struct sql_store *st, const char *kind, int64_t row, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_DROP_KEY);

    store_sql_text(stmt, 1, kind);
    sql_int(stmt, 2, row);
    int rc = sql_run(stmt, "drop a key", err);
    return rc < 0 ? rc : store_tokens_drop(st, kind, row, err);
}

/* The first field of the kind's rule that says something. An encrypted one is not copied. */
static rv_str summary_of(const struct rv_kind *kind, json_object *whole)
{
    for (size_t i = 0; i < RV_KIND_MAX_NAMES && kind->summary[i]; i++) {
        json_object *v = NULL;
        if (store_kind_encrypts(kind, kind->summary[i]) && vault_is_ciphertext(whole))
            continue;
        if (json_object_object_get_ex(whole, kind->summary[i], &v) && rv_json_str(v).len > 0)
            return rv_json_str(v);
    }
    return (rv_str){NULL, 0};
}

int store_keys_put_row(struct sql_store *st, const struct rv_owned_row *at, json_object *whole, int64_t updated_us,
                       rv_err **err)
{
    if (!at->kind->is_indexed)
        return 0;
    const struct rv_key_source k = {.kind = at->kind->name,
                                    .row = at->row,
                                    .tenant = at->tenant,
                                    .user = at->user,
                                    .id = rv_json_member_str(whole, "id").ptr,
                                    .name = rv_json_member_str(whole, "name"),
                                    .summary = summary_of(at->kind, whole),
                                    .updated_us = updated_us,
                                    .whole = whole};
    return store_keys_put(st, &k, err);
}

/* The time by which the newest row is found: of a session when it was created, however often it was continued. */
static int64_t time_of(const struct rv_kind *kind, json_object *whole)
{
    const char *column = kind->place == RV_PLACE_SESSIONS ? "created_at" : "updated_at";
    int64_t us = 0;

    return rv_time_read(rv_json_member_str(whole, column), &us) ? us : 0;
}

int store_keys_follow_session(struct sql_store *st, int64_t row, rv_err **err)
{
    const struct rv_kind *kind = rv_kind_find(RV_STR_LIT("sessions"));
    json_object *whole = NULL;
    int rc = entity_at(st, kind, row, &whole, err);

    if (rc == 0)
        rc = store_keys_put_row(st,
                                &(struct rv_owned_row){kind, row, rv_json_text_or(whole, "tenant_id", ""),
                                                       rv_json_text_or(whole, "user_id", "")},
                                whole, time_of(kind, whole), err);
    json_object_put(whole);
    return rc;
}

/* --- Rebuilding it --- */

/* Rows of a kind in the order of their numbers. */
struct page {
    json_object **rows; /* PAGE_ROWS; owned, as the rows are */
    int64_t *keys;      /* their numbers; owned */
    size_t n;
};

/* The rows behind row `after`: up to PAGE_ROWS of them. */
static int read_page(struct sql_store *st, const struct rv_kind *kind, int64_t after, struct page *p, rv_err **err)
{
    static const char *const froms[] = {[RV_PLACE_ENTITIES] = RV_SQL_ROWS_ENTITIES,
                                        [RV_PLACE_SESSIONS] = RV_SQL_ROWS_SESSIONS,
                                        [RV_PLACE_MESSAGES] = RV_SQL_ROWS_MESSAGES,
                                        [RV_PLACE_SCHEMAS] = RV_SQL_ROWS_SCHEMAS};
    RV_EACH_HAS_ROW(froms, RV_N_KIND_PLACES);
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);
    int rc;

    rv_buf_printf(&sql, "%s WHERE e.key > ?1 AND e.deleted_us IS NULL%s ORDER BY e.key LIMIT %d", froms[kind->place],
                  kind->place == RV_PLACE_ENTITIES ? " AND e.kind = ?2" : "", PAGE_ROWS);
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    sql_int(stmt, 1, after);
    if (kind->place == RV_PLACE_ENTITIES)
        store_sql_text(stmt, 2, kind->name);
    p->n = 0;
    while ((rc = sql_step(stmt, "read rows", err)) == 1 && p->n < PAGE_ROWS) {
        p->keys[p->n] = sql_int_at(stmt, 0);
        rc = entity_read(st, kind, stmt, &p->rows[p->n], err);
        if (rc < 0)
            break;
        p->n++;
    }
    sql_finish(stmt);
    return rc < 0 ? rc : 0;
}

static void drop_rows(struct page *p)
{
    for (size_t i = 0; i < p->n; i++)
        json_object_put(p->rows[i]);
}

static int write_page(struct sql_store *st, const struct rv_kind *kind, const struct page *p, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < p->n && rc == 0; i++) {
        rv_str tenant = rv_json_member_str(p->rows[i], "tenant_id"), user = rv_json_member_str(p->rows[i], "user_id");
        rc = store_keys_put_row(
            st, &(struct rv_owned_row){kind, p->keys[i], tenant.ptr ? tenant.ptr : "", user.ptr ? user.ptr : ""},
            p->rows[i], time_of(kind, p->rows[i]), err);
    }
    return rc;
}

static int index_kind(struct sql_store *st, const struct rv_kind *kind, struct page *p, int64_t *total, rv_err **err)
{
    int64_t after = 0;
    int rc;

    do {
        rc = read_page(st, kind, after, p, err);
        if (rc == 0 && p->n > 0) {
            after = p->keys[p->n - 1];
            *total += (int64_t)p->n;
            rc = write_page(st, kind, p, err);
        }
        drop_rows(p);
    } while (rc == 0 && p->n > 0);
    return rc;
}

/* --- Comparing it with the rows --- */

/* In a write transaction the row is locked, so that one of two processes does it. */
static int is_behind(struct sql_store *st, bool *behind, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_LOCK_SCHEMAS);

    store_sql_text(stmt, 1, "keys");
    int rc = sql_step(stmt, "look at the keys", err);
    *behind = rc == 1 && sql_int_at(stmt, 0) == 0;
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static void say(struct rv_report *r, const struct rv_kind *kind, json_object *whole, const char *what)
{
    rv_buf said = RV_BUF_INIT(2 * RV_ENTITY_MAX_KEY);

    rv_buf_printf(&said, "row \"%.*s\" of %s %s", RV_STR_ARG(rv_json_member_str(whole, "id")), kind->name, what);
    store_report_add_index(r, rv_buf_str(&said));
    rv_buf_fini(&said);
}

static int compare_row(struct rv_report *r, const struct rv_kind *kind, json_object *whole, const char *provider,
                       rv_sql_stmt *kept, rv_err **err)
{
    rv_buf key = RV_BUF_INIT(RV_ENTITY_MAX_KEY), summary = RV_BUF_INIT(MAX_SUMMARY);
    const char *what = NULL;
    int rc = write_key(rv_json_member_str(whole, "name"), rv_json_member_str(whole, "id").ptr, &key, err);

    write_summary(summary_of(kind, whole), &summary);
    if (rc == 0)
        rc = rv_buf_check(&summary, "summary", err);
    if (rc == 0)
        rc = store_tokens_compare(&(struct rv_found_by){kind, whole, rv_buf_str(&key), rv_buf_str(&summary)}, provider,
                                  kept, &what, err);
    if (rc == 0 && what)
        say(r, kind, whole, what);
    rv_buf_fini(&key);
    rv_buf_fini(&summary);
    return rc;
}

/* Both come in the order of their keys. */
static int compare_page(struct rv_report *r, const struct rv_kind *kind, const struct page *p, const char *provider,
                        rv_err **err)
{
    rv_sql_stmt *kept = sql_use(r->st, SQL_INDEX_PAGE);
    size_t i = 0;
    int rc;

    store_sql_text(kept, 1, kind->name);
    sql_int(kept, 2, p->keys[0] - 1);
    sql_int(kept, 3, p->keys[p->n - 1]);
    store_sql_text(kept, 4, provider);
    while ((rc = sql_step(kept, "check", err)) == 1) {
        int64_t row = sql_int_at(kept, 0);
        for (; i < p->n && p->keys[i] < row; i++)
            say(r, kind, p->rows[i], "is not in the index of words");
        if (i == p->n || p->keys[i] != row)
            continue; /* it has no row, which is looked for elsewhere */
        rc = compare_row(r, kind, p->rows[i++], provider, kept, err);
        if (rc < 0)
            break;
    }
    sql_done(kept);
    for (; rc == 0 && i < p->n; i++)
        say(r, kind, p->rows[i], "is not in the index of words");
    return rc;
}

static int compare_kind(struct rv_report *r, const struct rv_kind *kind, struct page *p, const char *provider,
                        rv_err **err)
{
    int64_t after = 0;
    int rc;

    do {
        rc = read_page(r->st, kind, after, p, err);
        if (rc == 0 && p->n > 0) {
            after = p->keys[p->n - 1];
            rc = compare_page(r, kind, p, provider, err);
        }
        drop_rows(p);
    } while (rc == 0 && p->n > 0 && !store_report_is_full(r));
    return rc;
}

int store_keys_compare(struct rv_report *r, rv_err **err)
{
    struct page p = {.rows = calloc(PAGE_ROWS, sizeof *p.rows), .keys = calloc(PAGE_ROWS, sizeof *p.keys)};
    const char *provider = NULL;
    bool behind = false;
    int rc = p.rows && p.keys ? is_behind(r->st, &behind, err) : RV_FAIL(err, RV_E_NOMEM, "check");

    if (rc == 0)
        rc = store_tokens_provider(r->st, true, &provider, err);
    for (size_t i = 0; i < rv_n_kinds && rc == 0 && !behind; i++)
        if (rv_kinds[i].is_indexed)
            rc = compare_kind(r, &rv_kinds[i], &p, provider, err);
    free(p.rows);
    free(p.keys);
    return rc;
}

static int set_current(struct sql_store *st, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_SET_COUNTER);

    store_sql_text(stmt, 1, "keys");
    sql_int(stmt, 2, 1);
    return sql_run(stmt, "note that keys are current", err);
}

int store_keys_rebuild(struct sql_store *st, int64_t *total, rv_err **err)
{
    struct page p = {.rows = calloc(PAGE_ROWS, sizeof *p.rows), .keys = calloc(PAGE_ROWS, sizeof *p.keys)};
    int rc = p.rows && p.keys ? 0 : RV_FAIL(err, RV_E_NOMEM, "rebuild keys");

    *total = 0;
    if (rc == 0 && st->driver->be_patient)
        rc = st->driver->be_patient(st, err);
    if (rc == 0)
        rc = sql_run(sql_use(st, SQL_DROP_KEYS), "rebuild keys", err);
    if (rc == 0)
        rc = store_tokens_drop_all(st, err);
    if (rc == 0)
        rc = store_vectors_mend(st, err);
    st->as_kept = true; /* nothing encrypted is in the index */
    for (size_t i = 0; i < rv_n_kinds && rc == 0; i++)
        if (rv_kinds[i].is_indexed)
            rc = index_kind(st, &rv_kinds[i], &p, total, err);
    st->as_kept = false;
    if (rc == 0)
        rc = store_vectors_drop_lost(st, err);
    if (rc == 0)
        rc = set_current(st, err);
    free(p.rows);
    free(p.keys);
    return rc;
}

static int try_catch_up(struct sql_store *st, rv_err **err)
{
    int64_t total;
    bool behind = false;
    int rc = sql_begin_write(st, "index names", err);

    if (rc < 0)
        return rc;
    rc = is_behind(st, &behind, err);
    if (rc == 0 && behind)
        rc = store_keys_rebuild(st, &total, err);
    return sql_end_write(st, rc, "index names", err);
}

int store_keys_catch_up(struct sql_store *st, rv_err **err)
{
    bool behind = false;
    int rc = is_behind(st, &behind, err);

    if (rc < 0 || !behind)
        return rc;
    do
        rc = try_catch_up(st, err);
    while (rc < 0 && sql_again(st, err));
    return rc;
}
