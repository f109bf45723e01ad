/* The walk over every text that may be encrypted: brings each to what its tenant's mode and key are now, checks that it
 * can be decrypted, finds keys that nothing needs any more. The table below is the list of what is encrypted.
 *
 * Rows are rewritten a few in a transaction. A walk that ends early leaves rows under the former key, which decrypts
 * them; the next walk passes over those that are done. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/entities_internal.h"
#include "coreengine/store/sql_driver_internal.h"

#define AT_ONCE   50 /* rows of one transaction */
#define MAX_SQL   4096
#define MAX_TEXTS 3
#define MAX_USED  ((size_t)100000) /* keys in use that are noted */
#define N_BEFORE  7                /* columns of a statement before the texts */

enum column_of { OF_TEXT = 1, OF_FIELDS, OF_VALUE }; /* fields: members of a JSON object; value: maybe a blob */
struct column {
    const char *name;
    enum sql_type type;
    enum column_of of;
};
struct table {
    const char *name;
    const char *select; /* key, second key, tenant, three ids, seq, texts; up to WHERE */
    const char *keys;   /* columns by which the rows are ordered: one, or two */
    const char *locks;  /* the table whose row is locked */
    const char *where;  /* of an update */
    const char *tenant;
    bool second_is_text, has_level, is_indexed;
    struct column columns[MAX_TEXTS];
};

static const struct table tables[] = {
    {"sessions",
     "SELECT t.key, CAST(0 AS BIGINT), t.tenant_id, t.user_id, t.id, NULL, CAST(0 AS BIGINT), t.description, "
     "t.metadata FROM sessions t",
     "t.key",
     "t",
     "key = ?1 AND 0 = ?2",
     "t.tenant_id",
     false,
     true,
     true,
     {{"description", SQL_TEXT, OF_TEXT}, {"metadata", SQL_STR, OF_TEXT}}},
    {"messages",
     "SELECT t.key, CAST(0 AS BIGINT), s.tenant_id, s.user_id, s.id, t.id, CAST(0 AS BIGINT), t.content, t.tool_calls, "
     "t.metadata FROM messages t"
     " JOIN sessions s ON s.key = t.session",
     "t.key",
     "t",
     "key = ?1 AND 0 = ?2",
     "s.tenant_id",
     false,
     true,
     false,
     {{"content", SQL_STR, OF_TEXT}, {"tool_calls", SQL_STR, OF_TEXT}, {"metadata", SQL_STR, OF_TEXT}}},
    {"entities",
     "SELECT t.key, CAST(0 AS BIGINT), t.tenant_id, t.user_id, t.id, t.kind, CAST(0 AS BIGINT), t.fields, t.metadata "
     "FROM entities t",
     "t.key",
     "t",
     "key = ?1 AND 0 = ?2",
     "t.tenant_id",
     false,
     true,
     true,
     {{"fields", SQL_TEXT, OF_FIELDS}, {"metadata", SQL_TEXT, OF_TEXT}}},
    {"records",
     "SELECT t.run, t.seq, r.tenant, r.id, NULL, NULL, t.seq, t.body, coalesce(b.data, t.value), t.blob FROM records t"
     " JOIN runs r ON r.key = t.run LEFT JOIN blobs b ON b.key = t.blob",
     "t.run, t.seq",
     "t",
     "run = ?1 AND seq = ?2",
     "r.tenant",
     false,
     false,
     false,
     {{"body", SQL_STR, OF_TEXT}, {"value", SQL_STR, OF_VALUE}}},
    {"pending",
     "SELECT t.run, t.n, r.tenant, r.id, t.id, NULL, CAST(0 AS BIGINT), t.text, t.body FROM pending t JOIN runs r ON "
     "r.key = t.run",
     "t.run, t.n",
     "t",
     "run = ?1 AND n = ?2",
     "r.tenant",
     false,
     false,
     false,
     {{"text", SQL_STR, OF_TEXT}, {"body", SQL_STR, OF_TEXT}}},
    {"interrupts",
     "SELECT t.run, t.id, t.tenant, r.id, t.id, NULL, CAST(0 AS BIGINT), t.text, t.reason FROM interrupts t JOIN runs "
     "r ON r.key = t.run",
     "t.run, t.id",
     "t",
     "run = ?1 AND id = ?2",
     "t.tenant",
     true,
     false,
     false,
     {{"text", SQL_STR, OF_TEXT}, {"reason", SQL_STR, OF_TEXT}}},
    {"snapshots",
     "SELECT t.run, CAST(0 AS BIGINT), r.tenant, r.id, NULL, NULL, t.seq, t.body FROM snapshots t JOIN runs r ON r.key "
     "= t.run",
     "t.run",
     "t",
     "run = ?1 AND 0 = ?2",
     "r.tenant",
     false,
     false,
     false,
     {{"body", SQL_BLOB, OF_TEXT}}},
    {"tasks",
     "SELECT t.key, CAST(0 AS BIGINT), t.tenant, t.id, NULL, NULL, CAST(0 AS BIGINT), t.payload, t.result, t.error "
     "FROM tasks t",
     "t.key",
     "t",
     "key = ?1 AND 0 = ?2",
     "t.tenant",
     false,
     false,
     false,
     {{"payload", SQL_STR, OF_TEXT}, {"result", SQL_STR, OF_TEXT}, {"error", SQL_TEXT, OF_TEXT}}},
    {"task_events",
     "SELECT t.task, t.seq, k.tenant, k.id, NULL, NULL, t.seq, t.text FROM task_events t JOIN tasks k ON k.key = "
     "t.task",
     "t.task, t.seq",
     "t",
     "task = ?1 AND seq = ?2",
     "k.tenant",
     false,
     false,
     false,
     {{"text", SQL_TEXT, OF_TEXT}}},
    {"schedules",
     "SELECT t.key, CAST(0 AS BIGINT), t.tenant, t.id, NULL, NULL, CAST(0 AS BIGINT), t.payload FROM schedules t",
     "t.key",
     "t",
     "key = ?1 AND 0 = ?2",
     "t.tenant",
     false,
     false,
     false,
     {{"payload", SQL_STR, OF_TEXT}}},
};

/* --- One row --- */

struct row {
    const struct table *table;
    int64_t key, second, seq;
    char second_text[RV_STORE_MAX_ID + 1], tenant[RV_STORE_MAX_ID + 1], ids[3][RV_STORE_MAX_ID + 1];
    bool has_blob, has_text[MAX_TEXTS], changed;
    rv_buf texts[MAX_TEXTS]; /* as they are kept, and then as they will be */
};

static void row_init(struct row *r, const struct table *t)
{
    *r = (struct row){.table = t};
    for (size_t i = 0; i < MAX_TEXTS; i++)
        r->texts[i] = RV_BUF_INIT(2 * RV_STORE_MAX_VALUE);
}

static void row_fini(struct row *r)
{
    for (size_t i = 0; i < MAX_TEXTS; i++)
        rv_buf_fini(&r->texts[i]);
}

static void keep_id(rv_sql_stmt *stmt, int i, char out[RV_STORE_MAX_ID + 1])
{
    rv_str text = rv_sql_is_null(stmt, i) ? (rv_str){"", 0} : rv_sql_str_at(stmt, i);

    snprintf(out, RV_STORE_MAX_ID + 1, "%.*s", RV_STR_ARG(text));
}

static int take_row(rv_sql_stmt *stmt, struct row *r, rv_err **err)
{
    const struct table *t = r->table;
    int rc = 0;

    r->key = rv_sql_int_at(stmt, 0);
    if (t->second_is_text)
        keep_id(stmt, 1, r->second_text);
    else
        r->second = rv_sql_int_at(stmt, 1);
    keep_id(stmt, 2, r->tenant);
    for (int i = 0; i < 3; i++)
        keep_id(stmt, 3 + i, r->ids[i]);
    r->seq = rv_sql_int_at(stmt, 6);
    r->changed = false;
    for (int i = 0; i < MAX_TEXTS && t->columns[i].name && rc == 0; i++) {
        rv_str text = rv_sql_str_at(stmt, N_BEFORE + i);
        rv_buf_clear(&r->texts[i]);
        r->has_text[i] = text.ptr != NULL;
        rv_buf_add_str(&r->texts[i], text);
        rc = rv_buf_check(&r->texts[i], "an encrypted text", err);
        if (t->columns[i].of == OF_VALUE)
            r->has_blob = !rv_sql_is_null(stmt, N_BEFORE + i + 1);
    }
    return rc;
}

static struct rv_place place_of(const struct row *r, const struct column *c)
{
    struct rv_place at = {.tenant = r->tenant, .table = r->table->name, .seq = r->seq, .is_engines = true};
    bool is_entity = strcmp(at.table, "entities") == 0;

    for (size_t i = 0; i < 3; i++)
        at.ids[i] = r->ids[i][0] ? r->ids[i] : NULL;
    if (is_entity) {
        at.table = r->ids[2];
        at.ids[2] = NULL;
    }
    if (strcmp(c->name, "reason") == 0) /* an answer need not name its question */
        at.ids[1] = NULL;
    return at;
}

/* What is done with each text: `text` as it is kept, and maybe another one. */
struct walk;
typedef int visit_fn(struct walk *w, const struct rv_place *at, const char *column, rv_buf *text, bool *changed,
                     rv_err **err);
struct walk {
    struct sql_store *st;
    visit_fn *visit;
    const char *tenant; /* NULL: all */
    struct rv_report *report;
    char (*used)[RV_ENCRYPTION_ID];
    size_t n_used, used_cap;
    struct rv_encryption_walked *out;
};

/* A plain list or object stands there as JSON, everything else as a text. */
static int set_member(const struct rv_kind *kind, json_object *fields, const char *name, rv_str text, rv_err **err)
{
    const struct rv_kind_field *f = rv_kind_field(kind, rv_str_of(name));
    json_object *v = NULL;

    if (!f || f->type == RV_KIND_TEXT || rv_secret_is(text))
        return rv_json_set_str(fields, name, text, err);
    int rc = rv_json_parse(text, NULL, &v, err);
    return rc < 0 ? rc : rv_json_set_take(fields, name, v, err);
}

/* Each encrypted member of the JSON text of an entity's columns. */
static int visit_fields(struct walk *w, const struct rv_place *at, rv_buf *text, bool *changed, rv_err **err)
{
    const struct rv_kind *kind = rv_kind_find(rv_str_of(at->table));
    bool lacked = false, any = false;
    json_object *fields = rv_entity_parse(rv_buf_str(text), json_type_object, &lacked);
    int rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "read a row") : 0;

    for (size_t i = 0; kind && fields && i < RV_KIND_MAX_NAMES && kind->encrypted[i] && rc == 0; i++) {
        rv_buf member = RV_BUF_INIT(2 * RV_ENTITY_MAX_BYTES);
        json_object *v = NULL;
        bool is_new = false;
        if (json_object_object_get_ex(fields, kind->encrypted[i], &v) && v) {
            bool is_text = json_object_is_type(v, json_type_string);
            if (is_text)
                rv_buf_add_str(&member, rv_json_str(v));
            else
                rv_json_write(v, &member);
            rc = rv_buf_check(&member, "a row", err);
            if (rc == 0)
                rc = w->visit(w, at, kind->encrypted[i], &member, &is_new, err);
        }
        if (rc == 0 && is_new)
            rc = set_member(kind, fields, kind->encrypted[i], rv_buf_str(&member), err);
        any = any || is_new;
        rv_buf_fini(&member);
    }
    if (rc == 0 && any) {
        rv_buf_clear(text);
        rv_json_write(fields, text);
        rc = rv_buf_check(text, "a row", err);
        *changed = true;
    }
    json_object_put(fields);
    return rc;
}

static int visit_row(struct walk *w, struct row *r, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < MAX_TEXTS && r->table->columns[i].name && rc == 0; i++) {
        const struct column *c = &r->table->columns[i];
        const struct rv_place at = place_of(r, c);
        if (!r->has_text[i])
            continue;
        rc = c->of == OF_FIELDS ? visit_fields(w, &at, &r->texts[i], &r->changed, err)
                                : w->visit(w, &at, c->name, &r->texts[i], &r->changed, err);
    }
    return rc;
}

/* --- Rewriting --- */

static int bind_value(struct walk *w, const struct row *r, size_t i, rv_sql_stmt *stmt, int64_t now_us, rv_err **err)
{
    char hash[RV_HASH_MAX];
    int64_t blob = 0;
    int rc = 0;

    if (!r->has_blob) {
        rv_sql_str(stmt, 3 + (int)i, r->has_text[i] ? rv_buf_str(&r->texts[i]) : (rv_str){NULL, 0});
        return 0;
    }
    rv_hash_of(rv_buf_str(&r->texts[i]), hash);
    rc = rv_blob_key(w->st, rv_buf_str(&r->texts[i]), hash, now_us, &blob, err);
    rv_sql_str(stmt, 3 + (int)i, (rv_str){NULL, 0});
    rv_sql_int(stmt, 3 + MAX_TEXTS, blob);
    return rc;
}

static int update(struct walk *w, const struct row *r, int64_t now_us, rv_err **err)
{
    const struct table *t = r->table;
    rv_buf sql = RV_BUF_INIT(MAX_SQL);
    const char *level = NULL;
    int rc = t->has_level ? rv_vault_level(w->st, r->tenant, &level, err) : 0;

    rv_buf_printf(&sql, "UPDATE %s SET ", t->name);
    for (int i = 0; i < MAX_TEXTS && t->columns[i].name; i++)
        rv_buf_printf(&sql, "%s%s = ?%d", i ? ", " : "", t->columns[i].name, 3 + i);
    if (r->has_blob)
        rv_buf_printf(&sql, ", blob = ?%d", 3 + MAX_TEXTS);
    if (t->has_level)
        rv_buf_printf(&sql, ", encryption_level = ?%d", 4 + MAX_TEXTS);
    rv_buf_printf(&sql, " WHERE %s", t->where);
    rv_sql_stmt *stmt = rv_sql_prepare(w->st, &sql);
    rv_buf_fini(&sql);
    rv_sql_int(stmt, 1, r->key);
    if (t->second_is_text)
        rv_sql_text(stmt, 2, r->second_text);
    else
        rv_sql_int(stmt, 2, r->second);
    for (size_t i = 0; i < MAX_TEXTS && t->columns[i].name && rc == 0; i++) {
        struct sql_value v = {.type = t->columns[i].type, .bytes = rv_buf_str(&r->texts[i])};
        v.bytes.ptr = r->has_text[i] ? rv_buf_cstr(&r->texts[i]) : NULL;
        if (t->columns[i].of == OF_VALUE)
            rc = bind_value(w, r, i, stmt, now_us, err);
        else
            rv_sql_bind(stmt, 3 + (int)i, v);
    }
    if (t->has_level)
        rv_sql_text(stmt, 4 + MAX_TEXTS, level);
    if (rc == 0)
        rc = rv_sql_run(stmt, "write a row", err);
    rv_sql_finish(stmt);
    return rc;
}

/* What the row is found by follows from what of it is plain. */
static int index_row(struct sql_store *st, const struct row *r, rv_err **err)
{
    const char *name = strcmp(r->table->name, "entities") == 0 ? r->ids[2] : r->table->name;
    const struct rv_kind *kind = rv_kind_find(rv_str_of(name));
    json_object *whole = NULL, *updated = NULL;
    rv_err *why = NULL;
    int64_t us = 0;

    if (!r->table->is_indexed || !kind || !kind->is_indexed)
        return 0;
    int rc = rv_entity_at(st, kind, r->key, &whole, &why);
    if (rc == RV_E_NOT_FOUND) { /* deleted: it is in no index */
        rv_err_free(why);
        return 0;
    }
    if (rc < 0) {
        *err = why;
        return rc;
    }
    const char *column = kind->place == RV_PLACE_SESSIONS ? "created_at" : "updated_at";
    if (json_object_object_get_ex(whole, column, &updated))
        rc = rv_time_parse(rv_json_str(updated), &us, err);
    if (rc == 0)
        rc = rv_keys_put_row(st, kind, r->key, r->tenant, r->ids[0], whole, us, err);
    json_object_put(whole);
    return rc;
}

static int rewrite_text(struct walk *w, const struct rv_place *at, const char *column, rv_buf *text, bool *changed,
                        rv_err **err)
{
    rv_buf plain = RV_BUF_INIT(text->max), kept = RV_BUF_INIT(text->max);
    char has[RV_ENCRYPTION_ID], wants[RV_ENCRYPTION_ID];

    w->out->texts++;
    rv_secret_key(rv_buf_str(text), has);
    int rc = rv_vault_key(w->st, at->tenant, wants, err);
    if (rc < 0 || strcmp(has, wants) == 0)
        return rc;
    rc = rv_secret_read(w->st, at, column, rv_buf_str(text), &plain, err);
    if (rc == 0)
        rc = rv_secret_write(w->st, at, column, rv_buf_str(&plain), &kept, err);
    if (rc == 0) {
        rv_buf swapped = *text;
        *text = kept;
        kept = swapped;
        *changed = true;
        w->out->rewritten++;
    }
    if (plain.ptr)
        rv_wipe(plain.ptr, plain.cap);
    rv_buf_fini(&plain);
    rv_buf_fini(&kept);
    return rc;
}

static rv_sql_stmt *begin_page(struct walk *w, const struct row *after, int64_t limit, bool locks)
{
    const struct table *t = after->table;
    rv_buf sql = RV_BUF_INIT(MAX_SQL);

    bool has_two = strchr(t->keys, ',') != NULL;
    rv_buf_printf(&sql, "%s WHERE (%s) > %s", t->select, t->keys, has_two ? "(?1, ?2)" : "?1 AND 0 <= ?2");
    rv_buf_printf(&sql, " AND (?3 IS NULL OR %s = ?3) ORDER BY %s LIMIT ?4", t->tenant, t->keys);
    if (locks)
        rv_buf_printf(&sql, " /*! FOR UPDATE OF %s */", t->locks);
    rv_sql_stmt *stmt = rv_sql_prepare(w->st, &sql);
    rv_buf_fini(&sql);
    rv_sql_int(stmt, 1, after->key);
    if (t->second_is_text)
        rv_sql_text(stmt, 2, after->second_text);
    else
        rv_sql_int(stmt, 2, after->second);
    rv_sql_text(stmt, 3, w->tenant);
    rv_sql_int(stmt, 4, limit);
    return stmt;
}

/* The next row behind *r, which it becomes. 1: there was one. */
static int rewrite_next(struct walk *w, struct row *r, int64_t now_us, rv_err **err)
{
    rv_sql_stmt *stmt = begin_page(w, r, 1, true);
    int rc = rv_sql_step(stmt, "read a row", err);
    bool found = rc == 1;

    if (found)
        rc = take_row(stmt, r, err);
    rv_sql_finish(stmt);
    if (rc < 0 || !found)
        return rc;
    rc = visit_row(w, r, err);
    if (rc == 0 && r->changed)
        rc = update(w, r, now_us, err);
    if (rc == 0 && r->changed)
        rc = index_row(w->st, r, err);
    return rc < 0 ? rc : 1;
}

static int rewrite_some(struct walk *w, struct row *r, int64_t now_us, rv_err **err)
{
    int rc = 1;

    for (int i = 0; i < AT_ONCE && rc == 1; i++)
        rc = rewrite_next(w, r, now_us, err);
    return rc;
}

/* Where a transaction begins, so that it can begin again. */
struct mark {
    int64_t key, second, texts, rewritten;
    char second_text[RV_STORE_MAX_ID + 1];
};

static int rewrite_table(rv_store *s, struct walk *w, const struct table *t, int64_t now_us, rv_err **err)
{
    struct mark mark = {0};
    struct row r;
    int rc, more = 1;

    row_init(&r, t);
    do {
        if ((rc = rv_store_enter_write(s, 0, "encrypt", err)) != 0)
            break;
        mark = (struct mark){.key = r.key, .second = r.second, .texts = w->out->texts, .rewritten = w->out->rewritten};
        snprintf(mark.second_text, sizeof mark.second_text, "%s", r.second_text);
        do {
            r.key = mark.key;
            r.second = mark.second;
            snprintf(r.second_text, sizeof r.second_text, "%s", mark.second_text);
            w->out->texts = mark.texts;
            w->out->rewritten = mark.rewritten;
            rc = more = rewrite_some(w, &r, now_us, err);
            rc = rc > 0 ? 0 : rc;
        } while (rv_store_repeats(s, &rc, err));
        rc = rv_store_leave_write(s, rc, err);
        if (rc == 0 && more == 1)
            rv_upkeep_pause(s->sql);
    } while (rc == 0 && more == 1);
    row_fini(&r);
    return rc < 0 ? RV_WRAP(err, rc, "rewrite %s", t->name) : rc;
}

int rv_store_encrypt(rv_store *s, const char *tenant, int64_t now_us, struct rv_encryption_walked *out, rv_err **err)
{
    struct rv_encryption_walked got = {0};
    struct walk w = {.st = s->sql, .visit = rewrite_text, .tenant = tenant, .out = &got};
    int rc = tenant ? rv_store_check_id("tenant", tenant, err) : 0;

    if (rc == 0)
        rc = rv_store_check_time("the time", now_us, err);
    if (rc == 0 && s->in_group)
        rc = RV_FAIL(err, RV_E_STATE, "store \"%s\": not before the group is committed", s->url);
    for (size_t i = 0; i < RV_COUNT(tables) && rc == 0; i++)
        rc = rewrite_table(s, &w, &tables[i], now_us, err);
    *out = got;
    return rc;
}

/* --- Reading --- */

static int walk_table(struct walk *w, const struct table *t, rv_err **err)
{
    struct row r;
    int rc;

    row_init(&r, t);
    rv_sql_stmt *stmt = begin_page(w, &r, INT64_MAX, false);
    while ((rc = rv_sql_step(stmt, "read rows", err)) == 1) {
        rc = take_row(stmt, &r, err);
        if (rc == 0)
            rc = visit_row(w, &r, err);
        if (rc < 0)
            break;
    }
    rv_sql_finish(stmt);
    row_fini(&r);
    return rc;
}

/* A text that does not decrypt is reported; without its key it is not known whether it would. */
static int check_text(struct walk *w, const struct rv_place *at, const char *column, rv_buf *text, bool *changed,
                      rv_err **err)
{
    rv_buf plain = RV_BUF_INIT(text->max);
    rv_err *why = NULL;
    int rc = 0;

    (void)changed;
    if (!rv_secret_is(rv_buf_str(text)) || rv_report_is_full(w->report))
        return 0;
    rc = rv_secret_read(w->st, at, column, rv_buf_str(text), &plain, &why);
    if (plain.ptr)
        rv_wipe(plain.ptr, plain.cap);
    rv_buf_fini(&plain);
    if (rc < 0 && rc != RV_E_NOMEM && rc != RV_E_DENIED) {
        const rv_err *last = why;
        while (rv_err_cause(last))
            last = rv_err_cause(last);
        rv_report_add(w->report, rv_str_of(rv_err_text(last)));
        rc = 0;
    }
    if (rc == RV_E_NOMEM)
        *err = why;
    else
        rv_err_free(why);
    return rc == RV_E_DENIED ? 0 : rc;
}

int rv_encryption_check(struct rv_report *report, rv_err **err)
{
    struct rv_encryption_walked got = {0};
    struct walk w = {.st = report->st, .visit = check_text, .report = report, .out = &got};
    bool is_used = false;

    rv_vault_look_again(report->st->vault);
    int rc = rv_vault_is_used(report->st, &is_used, err);
    for (size_t i = 0; i < RV_COUNT(tables) && rc == 0 && is_used; i++)
        rc = walk_table(&w, &tables[i], err);
    return rc;
}

/* --- Keys that nothing needs --- */

static int note_key(struct walk *w, const struct rv_place *at, const char *column, rv_buf *text, bool *changed,
                    rv_err **err)
{
    char id[RV_ENCRYPTION_ID];

    (void)at;
    (void)column;
    (void)changed;
    rv_secret_key(rv_buf_str(text), id);
    if (!*id)
        return 0;
    for (size_t i = w->n_used; i-- > 0;)
        if (strcmp(w->used[i], id) == 0)
            return 0;
    if (w->n_used >= MAX_USED || !rv_has_room(&w->used, &w->used_cap, w->n_used + 1, sizeof *w->used))
        return RV_FAIL(err, RV_E_NOMEM, "list keys in use");
    memcpy(w->used[w->n_used++], id, sizeof id);
    return 0;
}

struct unneeded {
    const struct walk *w;
    int64_t before_us;
    char (*ids)[RV_ENCRYPTION_ID];
    size_t n, cap;
};

static int note_unneeded(void *self, const struct rv_tenant_key *key, rv_err **err)
{
    struct unneeded *u = self;

    if (strcmp(key->status, "retired") != 0 || key->retired_us >= u->before_us)
        return 0;
    for (size_t i = 0; i < u->w->n_used; i++)
        if (strcmp(u->w->used[i], key->id) == 0)
            return 0;
    if (!rv_has_room(&u->ids, &u->cap, u->n + 1, sizeof *u->ids))
        return RV_FAIL(err, RV_E_NOMEM, "list keys");
    snprintf(u->ids[u->n++], RV_ENCRYPTION_ID, "%s", key->id);
    return 0;
}

static int drop_keys(struct sql_store *st, const struct unneeded *u, rv_err **err)
{
    int rc = rv_sql_run(rv_sql_use(st, SQL_COUNT_ENCRYPTION), "drop keys", err);

    for (size_t i = 0; i < u->n && rc == 0; i++) {
        rv_sql_stmt *stmt = rv_sql_use(st, SQL_DROP_TENANT_KEY);
        rv_sql_text(stmt, 1, u->ids[i]);
        rc = rv_sql_run(stmt, "drop a key", err);
    }
    return rc;
}

static int list_used(rv_store *s, struct walk *w, rv_err **err)
{
    int rc = rv_store_enter_read(s, 0, "list used keys", err);
    bool began = false;

    if (rc != 0)
        return rc;
    rc = rv_sql_begin_read(s->sql, &began, err);
    for (size_t i = 0; i < RV_COUNT(tables) && rc == 0; i++)
        rc = walk_table(w, &tables[i], err);
    rv_sql_end_read(s->sql, began);
    return rv_store_leave_read(s, rc, err);
}

int rv_store_prune_tenant_keys(rv_store *s, int64_t retired_before_us, int64_t *n, rv_err **err)
{
    struct rv_encryption_walked got = {0};
    struct walk w = {.st = s->sql, .visit = note_key, .out = &got};
    struct unneeded u = {.w = &w, .before_us = retired_before_us};
    int rc = list_used(s, &w, err);

    if (rc == 0)
        rc = rv_store_list_tenant_keys(s, NULL, note_unneeded, &u, err);
    if (rc == 0 && u.n > 0 && (rc = rv_store_enter_write(s, 0, "prune tenant keys", err)) == 0) {
        do
            rc = drop_keys(s->sql, &u, err);
        while (rv_store_repeats(s, &rc, err));
        rc = rv_store_leave_write(s, rc, err);
    }
    if (rc == 0)
        *n = (int64_t)u.n;
    free(w.used);
    free(u.ids);
    return rc;
}
