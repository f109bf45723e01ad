/* The list of texts that may be encrypted: each table, how its rows are read, where their texts are. */
#include "coreengine/store/encryption/texts_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define N_BEFORE 7 /* columns of a statement before the texts */

const struct rv_texts_table store_texts_tables[] = {
    {"sessions",
     "SELECT t.key, CAST(0 AS BIGINT), t.tenant_id, t.user_id, t.id, NULL, CAST(0 AS BIGINT), t.description, "
     "t.metadata, t.encryption_level FROM sessions t",
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
     "t.metadata, t.encryption_level FROM messages t"
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
     "SELECT t.key, CAST(0 AS BIGINT), t.tenant_id, t.user_id, t.id, t.kind, CAST(0 AS BIGINT), t.fields, t.metadata, "
     "t.encryption_level FROM entities t",
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
    {"stream_parts",
     "SELECT t.stream, t.n, s.tenant, s.id, NULL, NULL, t.n, t.body FROM stream_parts t JOIN streams s ON s.key = "
     "t.stream",
     "t.stream, t.n",
     "t",
     "stream = ?1 AND n = ?2",
     "s.tenant",
     false,
     false,
     false,
     {{"body", SQL_STR, OF_TEXT}}},
    {"webhooks",
     "SELECT t.run, t.n, r.tenant, r.id, NULL, NULL, t.n + 1, t.secret FROM webhooks t JOIN runs r ON r.key = t.run",
     "t.run, t.n",
     "t",
     "run = ?1 AND n = ?2",
     "r.tenant",
     false,
     false,
     false,
     {{"secret", SQL_STR, OF_TEXT}}},
};

const size_t store_n_texts_tables = RV_COUNT(store_texts_tables);

/* --- One row --- */

void store_texts_row_init(struct rv_texts_row *r, const struct rv_texts_table *t)
{
    *r = (struct rv_texts_row){.table = t};
    for (size_t i = 0; i < RV_MAX_TEXTS; i++)
        r->texts[i] = RV_BUF_INIT(2 * RV_STORE_MAX_VALUE);
}

void store_texts_row_fini(struct rv_texts_row *r)
{
    for (size_t i = 0; i < RV_MAX_TEXTS; i++)
        rv_buf_fini(&r->texts[i]);
}

static void take_word(rv_sql_stmt *stmt, int i, size_t room, char *out)
{
    rv_str text = sql_is_null(stmt, i) ? (rv_str){"", 0} : sql_str_at(stmt, i);

    snprintf(out, room, "%.*s", RV_STR_ARG(text));
}

static void keep_id(rv_sql_stmt *stmt, int i, char out[RV_STORE_MAX_ID + 1])
{
    take_word(stmt, i, RV_STORE_MAX_ID + 1, out);
}

int store_texts_take(rv_sql_stmt *stmt, struct rv_texts_row *r, rv_err **err)
{
    const struct rv_texts_table *t = r->table;
    int rc = 0, n_texts = 0;

    r->key = sql_int_at(stmt, 0);
    if (t->second_is_text)
        keep_id(stmt, 1, r->second_text);
    else
        r->second = sql_int_at(stmt, 1);
    keep_id(stmt, 2, r->tenant);
    for (int i = 0; i < 3; i++)
        keep_id(stmt, 3 + i, r->ids[i]);
    r->seq = sql_int_at(stmt, 6);
    r->changed = false;
    for (int i = 0; i < RV_MAX_TEXTS && t->columns[i].name && rc == 0; i++) {
        rv_str text = sql_str_at(stmt, N_BEFORE + i);
        rv_buf_clear(&r->texts[i]);
        r->has_text[i] = text.ptr != NULL;
        rv_buf_add_str(&r->texts[i], text);
        rc = rv_buf_check(&r->texts[i], "an encrypted text", err);
        if (t->columns[i].of == OF_VALUE)
            r->has_blob = !sql_is_null(stmt, N_BEFORE + i + 1);
        n_texts++;
    }
    if (t->has_level && rc == 0)
        take_word(stmt, N_BEFORE + n_texts, sizeof r->level, r->level);
    return rc;
}

static struct rv_place place_of(const struct rv_texts_row *r, const struct rv_texts_column *c)
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

/* A plain list or object stands there as JSON, everything else as a text. */
static int set_member(const struct rv_kind *kind, json_object *fields, const char *name, rv_str text, rv_err **err)
{
    const struct rv_kind_field *f = rv_kind_find_field(kind, rv_str_of(name));
    json_object *v = NULL;

    if (!f || f->type == RV_KIND_TEXT || store_secret_is(text))
        return rv_json_set_str(fields, name, text, err);
    int rc = rv_json_parse(text, NULL, &v, err);
    return rc < 0 ? rc : rv_json_set_take(fields, name, v, err);
}

/* Each encrypted member of the JSON text of an entity's columns. */
static int visit_fields(struct rv_texts_walk *w, const struct rv_place *at, rv_buf *text, bool *changed, rv_err **err)
{
    const struct rv_kind *kind = rv_kind_find(rv_str_of(at->table));
    bool lacked = false, any = false;
    json_object *fields = entity_parse(rv_buf_str(text), json_type_object, &lacked);
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

int store_texts_visit(struct rv_texts_walk *w, struct rv_texts_row *r, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < RV_MAX_TEXTS && r->table->columns[i].name && rc == 0; i++) {
        const struct rv_texts_column *c = &r->table->columns[i];
        const struct rv_place at = place_of(r, c);
        if (!r->has_text[i])
            continue;
        rc = c->of == OF_FIELDS ? visit_fields(w, &at, &r->texts[i], &r->changed, err)
                                : w->visit(w, &at, c->name, &r->texts[i], &r->changed, err);
    }
    return rc;
}

rv_sql_stmt *store_texts_page(struct rv_texts_walk *w, const struct rv_texts_row *after, int64_t limit, bool locks)
{
    const struct rv_texts_table *t = after->table;
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);

    bool has_two = strchr(t->keys, ',') != NULL;
    rv_buf_printf(&sql, "%s WHERE (%s) > %s", t->select, t->keys, has_two ? "(?1, ?2)" : "?1 AND 0 <= ?2");
    rv_buf_printf(&sql, " AND (?3 IS NULL OR %s = ?3) ORDER BY %s LIMIT ?4", t->tenant, t->keys);
    if (locks)
        rv_buf_printf(&sql, " /*! FOR UPDATE OF %s */", t->locks);
    rv_sql_stmt *stmt = sql_prepare(w->st, &sql);
    rv_buf_fini(&sql);
    sql_int(stmt, 1, after->key);
    if (t->second_is_text)
        store_sql_text(stmt, 2, after->second_text);
    else
        sql_int(stmt, 2, after->second);
    store_sql_text(stmt, 3, w->tenant);
    sql_int(stmt, 4, limit);
    return stmt;
}

/* --- Reading --- */

static int walk_table(struct rv_texts_walk *w, const struct rv_texts_table *t, rv_err **err)
{
    struct rv_texts_row r;
    int rc;

    store_texts_row_init(&r, t);
    rv_sql_stmt *stmt = store_texts_page(w, &r, INT64_MAX, false);
    while ((rc = sql_step(stmt, "read rows", err)) == 1) {
        rc = store_texts_take(stmt, &r, err);
        if (rc == 0)
            rc = store_texts_visit(w, &r, err);
        if (rc < 0)
            break;
    }
    sql_finish(stmt);
    store_texts_row_fini(&r);
    return rc;
}

int store_texts_read(struct rv_texts_walk *w, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < store_n_texts_tables && rc == 0; i++)
        rc = walk_table(w, &store_texts_tables[i], err);
    return rc;
}
