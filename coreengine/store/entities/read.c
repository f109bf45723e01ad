/* Reading rows of entities: one, several by a filter, as JSON objects that have the same bytes whatever the database.
 * The database proposes rows by its indexes and by the bytes of their JSON; what a filter means is decided here. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/entities/entities_internal.h"

#define FIND_DEFAULT 50 /* rows, when the caller names no limit */

/* --- One row --- */

static const struct {
    enum sql_id by_id;
    const char *rows;
} places[] = {
    [RV_PLACE_ENTITIES] = {SQL_ENTITY_BY_ID, RV_SQL_ROWS_ENTITIES},
    [RV_PLACE_SESSIONS] = {SQL_SESSION_BY_ID, RV_SQL_ROWS_SESSIONS},
    [RV_PLACE_MESSAGES] = {SQL_MESSAGE_BY_ID, RV_SQL_ROWS_MESSAGES},
    [RV_PLACE_SCHEMAS] = {SQL_SCHEMA_BY_ID, RV_SQL_ROWS_SCHEMAS},
};
RV_EACH_HAS_ROW(places, RV_N_KIND_PLACES);

static rv_sql_stmt *use_id(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_kind *kind,
                           const char *id)
{
    rv_sql_stmt *stmt = sql_use(st, places[kind->place].by_id);

    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, scope->user);
    store_sql_text(stmt, 3, id);
    if (kind->place == RV_PLACE_ENTITIES)
        store_sql_text(stmt, 4, kind->name);
    return stmt;
}

static int fail_none(const struct rv_kind *kind, const char *id, rv_err **err)
{
    RV_FAIL(err, RV_E_NOT_FOUND, "no row \"%s\" of %s", id, kind->name);
    return RV_E_NOT_FOUND;
}

/* Whether an operator has to say whose row is meant: the next one is of the same tenant and of another owner. */
static int check_only(const struct rv_store_scope *scope, const struct rv_kind *kind, const char *id, rv_sql_stmt *stmt,
                      rv_err **err)
{
    char tenant[RV_STORE_MAX_ID + 1];

    if (scope->user)
        return 0;
    rv_str first = sql_str_at(stmt, 2);
    snprintf(tenant, sizeof tenant, "%.*s", RV_STR_ARG(first));
    int rc = sql_step(stmt, "look for a row", err);
    if (rc != 1 || !rv_str_is(sql_str_at(stmt, 2), tenant))
        return rc < 0 ? rc : 0;
    RV_FAIL(err, RV_E_INVALID, "several users have a row \"%s\" of %s", id, kind->name);
    rv_err_set_hint(err, RV_STORE_SAY_WHOSE);
    return RV_E_INVALID;
}

static void take_text(rv_str text, char out[RV_STORE_MAX_ID + 1])
{
    snprintf(out, RV_STORE_MAX_ID + 1, "%.*s", RV_STR_ARG(text));
}

int entity_see(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_kind *kind, const char *id,
               struct rv_entity_found *out, rv_err **err)
{
    rv_sql_stmt *stmt = use_id(st, scope, kind, id);
    int rc = sql_step(stmt, "look for a row", err);

    *out = (struct rv_entity_found){0};
    if (rc == 1) {
        out->key = sql_int_at(stmt, 0);
        take_text(sql_str_at(stmt, 2), out->tenant);
        take_text(sql_str_at(stmt, 3), out->user);
        rc = entity_read(st, kind, stmt, &out->row, err);
        if (rc == 0)
            rc = check_only(scope, kind, id, stmt, err);
    } else if (rc == 0) {
        rc = fail_none(kind, id, err);
    }
    sql_done(stmt);
    if (rc < 0) {
        json_object_put(out->row);
        out->row = NULL;
    }
    return rc;
}

static int check_one(const struct rv_store_scope *scope, const char *kind_name, struct rv_store_scope *sc,
                     const struct rv_kind **kind, rv_err **err)
{
    int rc = store_check_scope(scope, sc, err);

    return rc < 0 ? rc : rv_kind_of(rv_str_of(kind_name), kind, err);
}

int rv_store_get_entity(rv_store *s, const struct rv_store_scope *scope, const char *kind_name, const char *id,
                        json_object **out, rv_err **err)
{
    struct rv_store_scope sc;
    const struct rv_kind *kind = NULL;
    struct rv_entity_found found = {0};
    int rc = check_one(scope, kind_name, &sc, &kind, err);

    if (rc == 0)
        rc = store_check_id("id", id, err);
    if ((rc = store_enter_read(s, rc, "get entity", err)) != 0)
        return rc;
    rc = store_leave_read(s, entity_see(s->sql, &sc, kind, id, &found, err), err);
    if (rc == 0)
        *out = found.row;
    else
        json_object_put(found.row);
    return rc;
}

static bool sees(const struct rv_store_scope *scope, rv_str tenant, rv_str user)
{
    if (tenant.len > 0 && !rv_str_is(tenant, scope->tenant))
        return false;
    return !scope->user || user.len == 0 || rv_str_is(user, scope->user);
}

static int load(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_kind *kind, int64_t row,
                json_object **out, rv_err **err)
{
    rv_sql_stmt *stmt = entity_use(st, kind, row);
    int rc = sql_step(stmt, "read a row", err);

    if (rc == 1 && sees(scope, sql_str_at(stmt, 2), sql_str_at(stmt, 3)))
        rc = entity_read(st, kind, stmt, out, err);
    else if (rc >= 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "no row %lld of %s", (long long)row, kind->name);
    sql_done(stmt);
    return rc;
}

int rv_store_load_entity(rv_store *s, const struct rv_store_scope *scope, const char *kind_name, int64_t row,
                         json_object **out, rv_err **err)
{
    struct rv_store_scope sc;
    const struct rv_kind *kind = NULL;
    json_object *got = NULL;
    int rc = store_enter_read(s, check_one(scope, kind_name, &sc, &kind, err), "load entity", err);

    if (rc != 0)
        return rc;
    rc = store_leave_read(s, load(s->sql, &sc, kind, row, &got, err), err);
    if (rc == 0)
        *out = got;
    else
        json_object_put(got);
    return rc;
}

/* --- Several --- */

struct finding {
    const struct rv_kind *kind;
    const struct rv_store_scope *scope;
    const struct rv_entity_filter *f;
    rv_buf *marks; /* texts that the JSON of a row has, when its value fits; owned */
    bool *is_or;   /* of marks: it or the one before it; owned */
    size_t n_marks;
    const struct rv_entity_where *spelt;   /* the first condition on the matched column; NULL: none */
    rv_buf spellings[RV_SECRET_SPELLINGS]; /* its value, encrypted */
    size_t n_spellings;                    /* above RV_SECRET_SPELLINGS: too many, the rows decide */
};

static bool is_own(const struct rv_kind *kind, const char *column)
{
    return kind->place == RV_PLACE_ENTITIES && strcmp(column, "name") != 0 &&
           rv_kind_find_field(kind, rv_str_of(column)) != NULL;
}

/* "column":value as it stands in `fields`; of a list, the value. */
static void write_mark(const char *column, json_object *value, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    if (column) {
        rv_jw_str(&w, rv_str_of(column));
        rv_buf_putc(out, ':');
    }
    rv_json_write(value, out);
}

static bool is_matched(const struct finding *f, const struct rv_entity_where *where)
{
    return f->kind->matched && strcmp(f->kind->matched, where->column) == 0 &&
           json_object_is_type(where->value, json_type_string);
}

static int spell(struct sql_store *st, struct finding *f, rv_err **err)
{
    const struct rv_place at = {.tenant = f->scope->tenant, .table = f->kind->name};

    for (size_t i = 0; i < RV_SECRET_SPELLINGS; i++)
        rv_buf_init(&f->spellings[i], 2 * RV_ENTITY_MAX_BYTES);
    for (size_t i = 0; i < f->f->n_where; i++)
        if (is_matched(f, &f->f->where[i])) {
            f->spelt = &f->f->where[i];
            return store_secret_spellings(st, &(const struct rv_secret_cell){.at = &at, .column = f->kind->matched},
                                          rv_json_str(f->f->where[i].value), f->spellings, &f->n_spellings, err);
        }
    return 0;
}

static bool has_mark(const struct finding *f, const struct rv_entity_where *where)
{
    if (is_matched(f, where) && (where != f->spelt || f->n_spellings > RV_SECRET_SPELLINGS))
        return false; /* the rows decide */
    return is_own(f->kind, where->column) && json_object_is_type(where->value, json_type_string);
}

static int write_spellings(struct finding *f, const struct rv_entity_where *where, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < f->n_spellings && rc == 0; i++) {
        json_object *v = json_object_new_string_len(rv_buf_cstr(&f->spellings[i]), (int)f->spellings[i].len);
        rc = v ? 0 : RV_FAIL(err, RV_E_NOMEM, "find rows");
        if (v) {
            f->is_or[f->n_marks] = true;
            write_mark(where->column, v, &f->marks[f->n_marks++]);
        }
        json_object_put(v);
    }
    return rc;
}

static int write_marks(struct finding *f, rv_err **err)
{
    size_t max = f->f->n_tags + f->f->n_where + f->f->n_lists + RV_SECRET_SPELLINGS;
    int rc = 0;

    if (f->kind->place != RV_PLACE_ENTITIES || max == 0)
        return 0;
    f->marks = calloc(max, sizeof *f->marks);
    f->is_or = calloc(max, sizeof *f->is_or);
    if (!f->marks || !f->is_or)
        return RV_FAIL(err, RV_E_NOMEM, "find rows");
    for (size_t i = 0; i < max; i++)
        rv_buf_init(&f->marks[i], 2 * RV_ENTITY_MAX_BYTES);
    for (size_t i = 0; i < f->f->n_where && rc == 0; i++) {
        const struct rv_entity_where *where = &f->f->where[i];
        if (!has_mark(f, where))
            continue;
        write_mark(where->column, where->value, &f->marks[f->n_marks++]);
        if (where == f->spelt)
            rc = write_spellings(f, where, err);
    }
    for (size_t i = 0; i < f->f->n_lists; i++)
        if (has_mark(f, &f->f->lists[i]))
            write_mark(NULL, f->f->lists[i].value, &f->marks[f->n_marks++]);
    for (size_t i = 0; i < f->n_marks && rc == 0; i++)
        rc = rv_buf_check(&f->marks[i], "condition", err);
    return rc;
}

#define FIRST_MARK 10 /* number of the first argument that belongs to a condition */
/* At most as many as a statement has arguments for: the others are looked at in C alone. */
static size_t n_bound(const struct finding *f)
{
    size_t n = f->n_marks < RV_SQL_MAX_ARGS - FIRST_MARK ? f->n_marks : RV_SQL_MAX_ARGS - FIRST_MARK;

    while (n > 0 && n < f->n_marks && f->is_or[n]) /* alternatives stay together */
        n--;
    return n;
}

static void write_query(const struct finding *f, rv_buf *sql)
{
    rv_buf_puts(sql, places[f->kind->place].rows);
    rv_buf_puts(sql, " WHERE e.tenant_id = ?1 AND e.deleted_us IS NULL");
    if (f->kind->place == RV_PLACE_ENTITIES)
        rv_buf_puts(sql, " AND e.kind = ?2");
    if (f->scope->user)
        rv_buf_puts(sql, " AND e.user_id IN (?3, '')");
    if (f->f->name)
        rv_buf_puts(sql, " AND e.name = ?4");
    if (f->f->about)
        rv_buf_puts(sql, " AND e.about = ?5");
    if (f->f->since_us > 0)
        rv_buf_puts(sql, " AND e.created_us >= ?6");
    if (f->f->until_us > 0)
        rv_buf_puts(sql, " AND e.created_us <= ?7");
    for (size_t i = 0; i < n_bound(f); i++) {
        bool goes_on = i + 1 < n_bound(f) && f->is_or[i + 1];
        rv_buf_printf(sql, " %s instr(e.fields, ?%zu) > 0%s",
                      f->is_or[i] ? "OR"
                      : goes_on   ? "AND ("
                                  : "AND",
                      FIRST_MARK + i, f->is_or[i] && !goes_on ? ")" : "");
    }
    if (f->kind->place == RV_PLACE_MESSAGES)
        rv_buf_puts(sql, " ORDER BY e.created_us DESC, e.seq DESC, e.id, e.user_id");
    else if (f->kind->place == RV_PLACE_ENTITIES && f->f->name)
        /* A name has few rows: sorting them costs less than looking for them along the index by age. */
        rv_buf_puts(sql, " ORDER BY +e.created_us DESC, e.id, e.user_id");
    else
        rv_buf_puts(sql, " ORDER BY e.created_us DESC, e.id, e.user_id");
}

static void bind_query(const struct finding *f, rv_sql_stmt *stmt)
{
    store_sql_text(stmt, 1, f->scope->tenant);
    if (f->kind->place == RV_PLACE_ENTITIES)
        store_sql_text(stmt, 2, f->kind->name);
    if (f->scope->user)
        store_sql_text(stmt, 3, f->scope->user);
    if (f->f->name)
        store_sql_text(stmt, 4, f->f->name);
    if (f->f->about)
        store_sql_text(stmt, 5, f->f->about);
    if (f->f->since_us > 0)
        sql_int(stmt, 6, f->f->since_us);
    if (f->f->until_us > 0)
        sql_int(stmt, 7, f->f->until_us);
    for (size_t i = 0; i < n_bound(f); i++)
        store_sql_text(stmt, FIRST_MARK + (int)i, rv_buf_cstr(&f->marks[i]));
}

static bool contains(json_object *list, rv_str text)
{
    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        if (rv_str_eq(rv_json_str(json_object_array_get_idx(list, i)), text))
            return true;
    return false;
}

/* A client is shown the matched column as it is kept. */
static bool is_spelt_so(const struct finding *f, const struct rv_entity_where *where, json_object *v)
{
    for (size_t i = 0; i < f->n_spellings && f->n_spellings <= RV_SECRET_SPELLINGS; i++)
        if (where == f->spelt && json_object_is_type(v, json_type_string) &&
            rv_str_eq(rv_json_str(v), rv_buf_str(&f->spellings[i])))
            return true;
    return false;
}

static bool fits(const struct finding *f, json_object *row)
{
    json_object *tags = rv_json_get_arr(row, "tags"), *v = NULL;

    for (size_t i = 0; i < f->f->n_tags; i++)
        if (!contains(tags, rv_str_of(f->f->tags[i])))
            return false;
    for (size_t i = 0; i < f->f->n_where; i++)
        if (!json_object_object_get_ex(row, f->f->where[i].column, &v) ||
            (!rv_json_equal(v, f->f->where[i].value) && !is_spelt_so(f, &f->f->where[i], v)))
            return false;
    for (size_t i = 0; i < f->f->n_lists; i++) {
        json_object *list = rv_json_get_arr(row, f->f->lists[i].column);
        bool found = false;
        for (size_t k = 0; list && k < json_object_array_length(list) && !found; k++)
            found = rv_json_equal(json_object_array_get_idx(list, k), f->f->lists[i].value);
        if (!found)
            return false;
    }
    return true;
}

static int walk(struct sql_store *st, const struct finding *f, int (*each)(void *self, json_object *row, rv_err **err),
                void *self, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);
    int64_t skip = f->f->offset, left = f->f->limit > 0                ? f->f->limit
                                        : f->f->limit == RV_ENTITY_ALL ? INT64_MAX
                                                                       : FIND_DEFAULT;
    int rc = 1;

    write_query(f, &sql);
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    bind_query(f, stmt);
    while (left > 0 && (rc = sql_step(stmt, "find rows", err)) == 1) {
        json_object *row = NULL;
        rc = entity_read(st, f->kind, stmt, &row, err);
        if (rc == 0 && fits(f, row) && skip-- <= 0) {
            left--;
            rc = each(self, row, err);
        }
        json_object_put(row);
        if (rc != 0)
            break;
    }
    sql_finish(stmt);
    return rc < 0 ? rc : 0;
}

static int check_wheres(const struct rv_kind *kind, const struct rv_entity_where *list, size_t n, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = list[i].column ? entity_check_column(kind, list[i].column, err)
                            : RV_FAIL(err, RV_E_INVALID, "a condition names no column");
    return rc;
}

static int check_filter(const struct rv_kind *kind, const struct rv_entity_filter *f, rv_err **err)
{
    int rc = f->name ? store_check_text("name", f->name, RV_ENTITY_MAX_NAME, err) : 0;

    if (rc == 0 && f->about)
        rc = store_check_text("text about", f->about, RV_ENTITY_MAX_NAME, err);
    if (rc == 0 && (f->limit < RV_ENTITY_ALL || f->limit > RV_ENTITY_MAX_FIND || f->offset < 0))
        rc = RV_FAIL(err, RV_E_INVALID, "%lld rows from the %lldth: a limit is from 1 to %d", (long long)f->limit,
                     (long long)f->offset, RV_ENTITY_MAX_FIND);
    if (rc == 0 && f->name && !rv_kind_find_field(kind, RV_STR_LIT("name")))
        rc = RV_FAIL(err, RV_E_INVALID, "%s have no name", kind->name);
    if (rc == 0 && f->about && !kind->about)
        rc = RV_FAIL(err, RV_E_INVALID, "%s belong to nothing", kind->name);
    for (size_t i = 0; i < f->n_tags && rc == 0; i++)
        rc = store_check_text("tag", f->tags[i], RV_ENTITY_MAX_BYTES, err);
    if (rc == 0)
        rc = check_wheres(kind, f->where, f->n_where, err);
    return rc < 0 ? rc : check_wheres(kind, f->lists, f->n_lists, err);
}

int rv_store_find_entities(rv_store *s, const struct rv_store_scope *scope, const struct rv_entities_of *of,
                           int (*each)(void *self, json_object *row, rv_err **err), void *self, rv_err **err)
{
    static const struct rv_entity_filter all = {0};
    struct rv_store_scope sc;
    struct finding f = {.scope = &sc, .f = of->filter ? of->filter : &all};
    int rc = check_one(scope, of->kind, &sc, &f.kind, err);

    if (rc == 0)
        rc = check_filter(f.kind, f.f, err);
    if ((rc = store_enter_read(s, rc, "find entities", err)) != 0)
        return rc;
    rc = spell(s->sql, &f, err);
    if (rc == 0)
        rc = write_marks(&f, err);
    if (rc == 0)
        rc = walk(s->sql, &f, each, self, err);
    for (size_t i = 0; i < f.n_marks; i++)
        rv_buf_fini(&f.marks[i]);
    for (size_t i = 0; i < RV_SECRET_SPELLINGS; i++)
        rv_buf_fini(&f.spellings[i]);
    free(f.marks);
    free(f.is_or);
    return store_leave_read(s, rc, err);
}
