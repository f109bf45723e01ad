/* Writing rows of entities: who may write which row, exactly the columns that were given, and the index of names in the
 * same transaction. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/entities/entities_internal.h"

/* --- What there is --- */

/* The row of that id that is to be changed. */
struct present {
    bool is_there;
    int64_t key;
    char user[RV_STORE_MAX_ID + 1];
    json_object *fields, *metadata, *tags, *edges; /* owned */
    char *name, *level;                            /* owned; NULL: none */
    bool sealed[RV_KIND_MAX_NAMES];                /* encrypted fields that stay as they are kept */
};

static void present_fini(struct present *p)
{
    json_object_put(p->fields);
    json_object_put(p->metadata);
    json_object_put(p->tags);
    json_object_put(p->edges);
    free(p->name);
    free(p->level);
    *p = (struct present){0};
}

static int dup_text(rv_str text, char **out)
{
    *out = text.ptr ? rv_str_dup(text) : NULL;
    return text.ptr && !*out ? RV_E_NOMEM : 0;
}

/* In place; a text that is neither a list nor an object stays a text, which is read as what it contains. A sealed one
 * is not opened: it is written as it is. */
static int decrypt_fields(struct sql_store *st, const struct rv_kind *kind, const struct rv_place *at,
                          struct present *p, rv_err **err)
{
    json_object *fields = p->fields;
    int rc = 0;

    for (size_t i = 0; i < RV_KIND_MAX_NAMES && kind->encrypted[i] && rc == 0; i++) {
        rv_buf text = RV_BUF_INIT(2 * RV_ENTITY_MAX_BYTES);
        json_object *v = NULL;
        if (json_object_object_get_ex(fields, kind->encrypted[i], &v) && json_object_is_type(v, json_type_string)) {
            p->sealed[i] = store_secret_is_sealed(rv_json_str(v));
            if (!p->sealed[i])
                rc = store_secret_read(st, at, kind->encrypted[i], rv_json_str(v), &text, err);
            if (rc == 0 && !p->sealed[i])
                rc = rv_json_set_str(fields, kind->encrypted[i], rv_buf_str(&text), err);
        }
        rv_buf_fini(&text);
    }
    return rc;
}

/* A row of SAME_ENTITY. */
static int take_present(rv_sql_stmt *stmt, const struct rv_store_scope *scope, const struct rv_entity_given *g,
                        struct present *p, rv_err **err)
{
    bool lacked = false;
    rv_str metadata;

    p->is_there = true;
    p->key = sql_int_at(stmt, 0);
    rv_str user = sql_str_at(stmt, 1);
    snprintf(p->user, sizeof p->user, "%.*s", RV_STR_ARG(user));
    p->fields = entity_parse(sql_str_at(stmt, 3), json_type_object, &lacked);
    struct rv_place at = entity_place(g->kind, scope->tenant, p->user, g->id);
    at.is_engines = true; /* what stays as it is is encrypted once more */
    const struct rv_entity_kept now = {.at = &at, .fields = p->fields, .metadata = sql_str_at(stmt, 4)};
    int rc = entity_open_shown(stmt->st, g->kind, &now, g->columns, err);
    if (rc == 0)
        rc = store_secret_at(stmt, 4, &at, "metadata", &metadata, err);
    if (rc == 0 && p->fields)
        rc = decrypt_fields(stmt->st, g->kind, &at, p, err);
    if (rc < 0)
        return rc;
    p->metadata = entity_parse(metadata, json_type_object, &lacked);
    p->tags = entity_parse(sql_str_at(stmt, 5), json_type_array, &lacked);
    p->edges = entity_parse(sql_str_at(stmt, 6), json_type_array, &lacked);
    if (lacked || dup_text(sql_str_at(stmt, 2), &p->name) < 0 || dup_text(sql_str_at(stmt, 7), &p->level) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "read a row");
    return 0;
}

/* An operator means the row of that owner; when none is named, the only one. */
static int choose(const struct rv_store_scope *scope, const struct rv_entity_given *g, const char *owner,
                  rv_sql_stmt *stmt, struct present *p, rv_err **err)
{
    bool is_named = g->user != NULL;
    size_t n = 0;
    int rc;

    while ((rc = sql_step(stmt, "look for a row", err)) == 1) {
        rv_str user = sql_str_at(stmt, 1);
        n++;
        if (scope->user && !rv_str_is(user, owner))
            return entity_fail_shared(err); /* their own would have come before */
        if (is_named && !rv_str_is(user, owner))
            continue;
        if (p->is_there) {
            RV_FAIL(err, RV_E_INVALID, "several users have a row \"%s\" of %s", g->id, g->kind->name);
            rv_err_set_hint(err, "say whose it is with user_id");
            return RV_E_INVALID;
        }
        rc = take_present(stmt, scope, g, p, err);
        if (rc < 0 || is_named)
            return rc;
    }
    if (rc == 0 && n > 0 && !p->is_there)
        rc = RV_FAIL(err, RV_E_EXISTS, "row \"%s\" of %s belongs to another user", g->id, g->kind->name);
    return rc;
}

static int look(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_given *g,
                const char *owner, struct present *p, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_SAME_ENTITY);

    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, g->kind->name);
    store_sql_text(stmt, 3, g->id);
    store_sql_text(stmt, 4, scope->user);
    int rc = choose(scope, g, owner, stmt, p, err);
    sql_done(stmt);
    return rc;
}

/* --- What it becomes --- */

/* The text of a column: what was given (null: none), else what is there. */
static const char *word_of(const struct rv_entity_given *g, const char *column, const char *present)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(g->columns, column, &v))
        return present;
    return v ? json_object_get_string(v) : NULL;
}

static void write_common(const struct rv_entity_given *g, const char *column, json_object *present, const char *empty,
                         rv_buf *out)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(g->columns, column, &v))
        v = present;
    if (v)
        rv_json_write(v, out);
    else
        rv_buf_puts(out, empty);
}

static json_object *field_of(const struct rv_entity_given *g, const struct present *p, const char *name)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(g->columns, name, &v) && p->fields)
        json_object_object_get_ex(p->fields, name, &v);
    return v;
}

/* Is the column copied in its kept form, because it is sealed and the caller gave no new value? */
static bool stays_sealed(const struct rv_entity_given *g, const struct present *p, const char *name)
{
    for (size_t i = 0; i < RV_KIND_MAX_NAMES && g->kind->encrypted[i]; i++)
        if (p->sealed[i] && strcmp(g->kind->encrypted[i], name) == 0)
            return !json_object_object_get_ex(g->columns, name, NULL);
    return false;
}

static bool has_sealed(const struct rv_entity_given *g, const struct present *p)
{
    for (size_t i = 0; i < RV_KIND_MAX_NAMES && g->kind->encrypted[i]; i++)
        if (stays_sealed(g, p, g->kind->encrypted[i]))
            return true;
    return false;
}

/* A text as it is, other values as JSON. */
static int write_secret(struct sql_store *st, const struct rv_place *at, const char *name, json_object *v, rv_jw *w,
                        rv_err **err)
{
    rv_buf json = RV_BUF_INIT(RV_ENTITY_MAX_BYTES), kept = RV_BUF_INIT(2 * RV_ENTITY_MAX_BYTES);
    bool is_text = json_object_is_type(v, json_type_string);

    if (!is_text)
        rv_json_write(v, &json);
    int rc = rv_buf_check(&json, name, err);
    if (rc == 0)
        rc = store_secret_write(st, at, name, is_text ? rv_json_str(v) : rv_buf_str(&json), &kept, err);
    if (rc == 0 && (is_text || store_secret_is(rv_buf_str(&kept))))
        rv_jw_kv_str(w, name, rv_buf_str(&kept));
    else if (rc == 0)
        rv_jw_kv_value(w, name, v);
    rv_buf_fini(&json);
    rv_buf_fini(&kept);
    return rc;
}

/* In the order of the kind's columns, so that equal rows have equal bytes. */
static int write_fields(struct sql_store *st, const struct rv_place *at, const struct rv_entity_given *g,
                        const struct present *p, rv_buf *out, rv_err **err)
{
    rv_jw w = rv_jw_on(out);
    int rc = 0;

    rv_jw_obj(&w);
    for (size_t i = 0; i < g->kind->n_fields && rc == 0; i++) {
        const char *name = g->kind->fields[i].name;
        json_object *v = strcmp(name, "name") == 0 ? NULL : field_of(g, p, name);
        if (v && store_kind_encrypts(g->kind, name) && !stays_sealed(g, p, name))
            rc = write_secret(st, at, name, v, &w, err);
        else if (v)
            rv_jw_kv_value(&w, name, v);
    }
    rv_jw_obj_end(&w);
    return rc;
}

static const char *about_of(const struct rv_entity_given *g, const struct present *p)
{
    static const char of_metadata[] = "metadata.";
    const char *name = g->kind->about, *text = NULL;
    json_object *v = NULL;

    if (!name)
        return NULL;
    if (strncmp(name, of_metadata, sizeof of_metadata - 1) != 0) {
        v = field_of(g, p, name);
        return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
    }
    if (!json_object_object_get_ex(g->columns, "metadata", &v))
        v = p->metadata;
    if (!v || !rv_json_get_text(v, name + sizeof of_metadata - 1, &text) || strlen(text) > RV_ENTITY_MAX_NAME)
        return NULL;
    return text;
}

struct texts {
    rv_buf fields, metadata, tags, edges;
};

static void texts_fini(struct texts *t)
{
    rv_buf_fini(&t->fields);
    rv_buf_fini(&t->metadata);
    rv_buf_fini(&t->tags);
    rv_buf_fini(&t->edges);
}

static int make_texts(struct sql_store *st, const struct rv_place *at, const struct rv_entity_given *g,
                      const struct present *p, struct texts *t, rv_err **err)
{
    *t = (struct texts){.fields = RV_BUF_INIT(2 * RV_ENTITY_MAX_BYTES),
                        .metadata = RV_BUF_INIT(RV_STORE_MAX_META),
                        .tags = RV_BUF_INIT(RV_STORE_MAX_META),
                        .edges = RV_BUF_INIT(RV_STORE_MAX_META)};
    int rc = write_fields(st, at, g, p, &t->fields, err);
    write_common(g, "metadata", p->metadata, "{}", &t->metadata);
    write_common(g, "tags", p->tags, "[]", &t->tags);
    write_common(g, "graph_edges", p->edges, "[]", &t->edges);
    if (rc == 0)
        rc = rv_buf_check(&t->fields, "columns of the row", err);
    if (rc == 0)
        rc = rv_buf_check(&t->metadata, "metadata", err);
    if (rc == 0)
        rc = rv_buf_check(&t->tags, "tags", err);
    return rc < 0 ? rc : rv_buf_check(&t->edges, "graph_edges", err);
}

/* whose: the tenant and the owner of the row. */
static int write_row(struct sql_store *st, const struct rv_store_scope *whose, const struct rv_entity_given *g,
                     struct present *p, int64_t now_us, rv_err **err)
{
    const struct rv_place at = entity_place(g->kind, whose->tenant, whose->user, g->id);
    const char *level = NULL;
    struct texts t;
    int rc = make_texts(st, &at, g, p, &t, err);

    if (rc == 0)
        rc = vault_level(st, whose->tenant, g->kind->name, &level, err);
    if (has_sealed(g, p))
        level = rv_encryption_mode_text(RV_ENCRYPTION_SEALED);
    if (rc == 0) {
        rv_sql_stmt *stmt = sql_use(st, p->is_there ? SQL_SET_ENTITY : SQL_ADD_ENTITY);
        if (p->is_there) {
            sql_int(stmt, 1, p->key);
        } else {
            store_sql_text(stmt, 1, g->id);
            store_sql_text(stmt, 2, g->kind->name);
            store_sql_text(stmt, 3, whose->tenant);
            store_sql_text(stmt, 4, whose->user);
        }
        store_sql_text(stmt, 5, word_of(g, "name", p->name));
        store_sql_text(stmt, 6, about_of(g, p));
        store_sql_text(stmt, 7, rv_buf_cstr(&t.fields));
        store_secret_bind(stmt, 8, SQL_TEXT, &at, "metadata", rv_buf_str(&t.metadata));
        store_sql_text(stmt, 9, rv_buf_cstr(&t.tags));
        store_sql_text(stmt, 10, rv_buf_cstr(&t.edges));
        store_sql_text(stmt, 11, level ? level : word_of(g, "encryption_level", p->level));
        sql_int(stmt, 12, now_us);
        rc = p->is_there ? sql_run(stmt, "write a row", err) : sql_run_new(stmt, &p->key, "write a row", err);
    }
    texts_fini(&t);
    return rc;
}

/* The whole row goes to the index, and, where it is wanted, to the caller. */
static int put_row(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_given *g,
                   int64_t now_us, json_object *out, rv_err **err)
{
    bool names_itself = strcmp(g->kind->name, "users") == 0;
    const char *owner = g->user ? g->user : scope->user ? scope->user : names_itself ? g->id : "";
    struct present p = {0};
    json_object *whole = NULL;

    int rc = look(st, scope, g, owner, &p, err);
    if (rc == 0 && p.is_there)
        owner = p.user;
    if (rc == 0)
        rc = entity_check_version(st, g->kind, p.is_there ? p.key : 0, g->version, g->is_stale, err);
    if (rc == 0)
        rc = write_row(st, &(const struct rv_store_scope){.tenant = scope->tenant, .user = owner}, g, &p, now_us, err);
    if (rc == 0 && (g->kind->is_indexed || out))
        rc = entity_at(st, g->kind, p.key, &whole, err);
    if (rc == 0)
        rc = store_keys_put_row(st, &(struct rv_owned_row){g->kind, p.key, scope->tenant, owner}, whole, now_us, err);
    if (rc == 0 && out)
        rc = rv_json_push_ref(out, whole, err);
    json_object_put(whole);
    present_fini(&p);
    return rc;
}

int entity_put(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_given *g,
               int64_t now_us, json_object *out, rv_err **err)
{
    return put_row(st, scope, g, now_us, out, err);
}

static int put_rows(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entities_put *put,
                    const struct rv_entity_given *given, json_object *out, rv_err **err)
{
    size_t n = put->n_rows;
    int rc = sql_begin_part(st, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = put_row(st, scope, &given[i], put->now_us, out, err);
        if (rc < 0 && n > 1)
            RV_WRAP(err, rc, "row %zu of %zu", i + 1, n);
    }
    return sql_end_part(st, rc, err);
}

static void make_ids(struct rv_entity_given *given, size_t n, struct rv_rand rand)
{
    for (size_t i = 0; i < n; i++)
        if (!given[i].id[0])
            rv_uuid_make(rand, given[i].id);
}

static int check_put(const struct rv_entities_put *put, const struct rv_store_scope *scope,
                     struct rv_entity_given *given, rv_err **err)
{
    const struct rv_kind *kind = NULL;
    int rc = store_check_time("the time", put->now_us, err);

    if (rc == 0)
        rc = rv_kind_of(rv_str_of(put->kind), &kind, err);
    if (rc == 0 && kind->place != RV_PLACE_ENTITIES)
        rc = entity_fail_place(kind, err);
    if (rc == 0 && put->is_tenantless && scope->user)
        rc = RV_FAIL(err, RV_E_DENIED, "only an operator writes rows of every tenant");
    for (size_t i = 0; i < put->n_rows && rc == 0; i++) {
        rc = entity_check(kind, scope, put->rows[i], &given[i], err);
        given[i].version = put->versions ? put->versions[i] : NULL;
        given[i].is_stale = put->is_stale;
        if (rc < 0 && put->n_rows > 1)
            RV_WRAP(err, rc, "row %zu of %zu", i + 1, put->n_rows);
    }
    return rc;
}

static int put_checked(rv_store *s, const struct rv_store_scope *scope, const struct rv_entities_put *put,
                       struct rv_entity_given *given, json_object **out, rv_err **err)
{
    json_object *rows = NULL;
    int rc;

    make_ids(given, put->n_rows, put->rand.fill ? put->rand : rv_rand_system());
    do {
        json_object_put(rows);
        rows = out ? json_object_new_array() : NULL;
        rc = out && !rows ? RV_FAIL(err, RV_E_NOMEM, "write rows") : put_rows(s->sql, scope, put, given, rows, err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && out)
        *out = rows;
    else
        json_object_put(rows);
    return rc;
}

int rv_store_put_entities(rv_store *s, const struct rv_store_scope *scope, const struct rv_entities_put *put,
                          json_object **out, rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_entity_given *given = calloc(put->n_rows + 1, sizeof *given);
    int rc = given ? store_check_scope(scope, &sc, err) : RV_FAIL(err, RV_E_NOMEM, "write rows");

    if (rc == 0)
        rc = check_put(put, &sc, given, err);
    if (rc == 0 && put->is_tenantless)
        sc.tenant = "";
    rc = store_enter_write(s, rc, "put entities", err);
    if (rc == 0)
        rc = put_checked(s, &sc, put, given, out, err);
    for (size_t i = 0; given && i < put->n_rows; i++)
        entity_given_fini(&given[i]);
    free(given);
    return rc;
}

/* --- Deleting --- */

static int delete_row(struct sql_store *st, const struct rv_kind *kind, int64_t key, int64_t now_us, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_DELETE_ENTITY);

    sql_int(stmt, 1, key);
    sql_int(stmt, 2, now_us);
    int rc = sql_run(stmt, "delete a row", err);
    return rc < 0 ? rc : store_keys_drop(st, kind->name, key, err);
}

static int delete_one(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_change *c,
                      rv_err **err)
{
    struct rv_entity_found found;

    st->as_kept = true; /* what goes need not be decrypted: it may be damaged, or its key lost */
    int rc = entity_see(st, scope, c->kind, c->id, &found, err);
    st->as_kept = false;
    if (rc == 0)
        rc = entity_check_owner(scope, found.tenant, found.user, err);
    if (rc == 0)
        rc = delete_row(st, c->kind, found.key, c->now_us, err);
    json_object_put(found.row);
    return rc;
}

/* Do `one` to a row of the table entities, in a write. */
static int change_one(rv_store *s, const struct rv_store_scope *scope, const struct rv_entity_target *at,
                      const char *what,
                      int (*one)(struct sql_store *st, const struct rv_store_scope *scope,
                                 const struct rv_entity_change *c, rv_err **err),
                      rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_entity_change c;
    int rc = entity_check_change(scope, at, &sc, &c, err);

    if (rc == 0 && c.kind->place != RV_PLACE_ENTITIES)
        rc = entity_fail_place(c.kind, err);
    if ((rc = store_enter_write(s, rc, what, err)) != 0)
        return rc;
    do
        rc = one(s->sql, &sc, &c, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_delete_entity(rv_store *s, const struct rv_store_scope *scope, const struct rv_entity_target *at,
                           rv_err **err)
{
    return change_one(s, scope, at, "delete entity", delete_one, err);
}

/* --- Dates --- */

static int redate_one(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_change *c,
                      rv_err **err)
{
    struct rv_entity_found found;
    json_object *whole = NULL;
    int rc = entity_see(st, scope, c->kind, c->id, &found, err);

    if (rc == 0)
        rc = entity_check_owner(scope, found.tenant, found.user, err);
    if (rc == 0) {
        rv_sql_stmt *stmt = sql_use(st, SQL_REDATE_ENTITY);
        sql_int(stmt, 1, found.key);
        sql_int(stmt, 2, c->now_us);
        rc = sql_run(stmt, "date a row", err);
    }
    if (rc == 0) /* searches order by the date */
        rc = entity_at(st, c->kind, found.key, &whole, err);
    if (rc == 0)
        rc = store_keys_put_row(st, &(struct rv_owned_row){c->kind, found.key, found.tenant, found.user}, whole,
                                c->now_us, err);
    json_object_put(whole);
    json_object_put(found.row);
    return rc;
}

int rv_store_redate_entity(rv_store *s, const struct rv_store_scope *scope, const struct rv_entity_target *at,
                           rv_err **err)
{
    return change_one(s, scope, at, "date entity", redate_one, err);
}

/* --- Deleting by name --- */

#define AT_ONCE 100 /* rows of one name that are deleted between two looks */

static int delete_some(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_change *c,
                       size_t *n, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_NAMED_ENTITIES);
    int64_t keys[AT_ONCE];
    int rc;

    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, c->kind->name);
    store_sql_text(stmt, 3, c->id);
    store_sql_text(stmt, 4, scope->user);
    *n = 0;
    while (*n < AT_ONCE && (rc = sql_step(stmt, "look for rows", err)) == 1)
        keys[(*n)++] = sql_int_at(stmt, 0);
    sql_done(stmt);
    for (size_t i = 0; i < *n && rc >= 0; i++)
        rc = delete_row(st, c->kind, keys[i], c->now_us, err);
    return rc < 0 ? rc : 0;
}

static int delete_named(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_change *c,
                        int64_t *total, rv_err **err)
{
    size_t n = 0;
    int rc;

    *total = 0;
    do {
        rc = delete_some(st, scope, c, &n, err);
        *total += (int64_t)n;
    } while (rc == 0 && n == AT_ONCE);
    if (rc == 0 && *total == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "no row of %s is called \"%s\"", c->kind->name, c->id);
    return rc;
}

int rv_store_delete_entities_named(rv_store *s, const struct rv_store_scope *scope, const struct rv_entity_target *at,
                                   int64_t *n, rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_entity_change c;
    int64_t total = 0;
    const struct rv_entity_target any = {.kind = at->kind, .id = "-", .now_us = at->now_us};
    int rc = entity_check_change(scope, &any, &sc, &c, err);

    if (rc == 0)
        rc = store_check_text("name", at->id, RV_ENTITY_MAX_NAME, err);
    if (rc == 0 && c.kind->place != RV_PLACE_ENTITIES)
        rc = entity_fail_place(c.kind, err);
    c.id = at->id;
    if ((rc = store_enter_write(s, rc, "delete entities named", err)) != 0)
        return rc;
    do
        rc = delete_named(s->sql, &sc, &c, &total, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n)
        *n = total;
    return rc;
}
