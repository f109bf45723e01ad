/* Changing a part of a row, in whichever table it is: its metadata, its edges; and who may change which row. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/match/match.h"
#include "coreengine/store/entities/entities_internal.h"

/* --- Who may --- */

int entity_fail_shared(rv_err **err)
{
    RV_FAIL(err, RV_E_DENIED, "the row has no owner: a user cannot change it");
    rv_err_set_hint(err, "write it without a user, or give no id, for a row of one's own");
    return RV_E_DENIED;
}

int entity_fail_place(const struct rv_kind *kind, rv_err **err)
{
    RV_FAIL(err, RV_E_INVALID, "rows of %s are not written as entities", kind->name);
    rv_err_set_hint(err, kind->place == RV_PLACE_SCHEMAS ? "`reeve agents put` writes agents"
                                                         : "conversations write them: `reeve chat`, `reeve sessions`");
    return RV_E_INVALID;
}

/* Whether the scope, which sees it, may change it. */
int entity_check_owner(const struct rv_store_scope *scope, const char *tenant, const char *user, rv_err **err)
{
    if (scope->user && strcmp(scope->user, user) != 0)
        return entity_fail_shared(err);
    return *tenant || !scope->user ? 0 : entity_fail_shared(err);
}

int entity_check_change(const struct rv_store_scope *scope, const struct rv_entity_target *at,
                        struct rv_store_scope *sc, struct rv_entity_change *c, rv_err **err)
{
    int rc = store_check_scope(scope, sc, err);

    *c = (struct rv_entity_change){.id = at->id, .now_us = at->now_us};
    if (rc == 0)
        rc = rv_kind_of(rv_str_of(at->kind), &c->kind, err);
    if (rc == 0)
        rc = store_check_id("id", at->id, err);
    return rc < 0 ? rc : store_check_time("the time", at->now_us, err);
}

/* --- Metadata, edges: a column of a row in whichever table --- */

/* json NULL: it stays. */
static int set_column(struct sql_store *st, const struct rv_entity_change *c, const struct rv_entity_found *found,
                      const char *column, const rv_buf *json, rv_err **err)
{
    static const char *const tables[] = {[RV_PLACE_ENTITIES] = "entities",
                                         [RV_PLACE_SESSIONS] = "sessions",
                                         [RV_PLACE_MESSAGES] = "messages",
                                         [RV_PLACE_SCHEMAS] = "schemas"};
    RV_EACH_HAS_ROW(tables, RV_N_KIND_PLACES);
    const struct rv_kind *kind = c->kind;
    const struct rv_place at = entity_place(kind, found->tenant, found->user, c->id);
    bool is_secret = strcmp(column, "metadata") == 0 && kind->place != RV_PLACE_SCHEMAS;
    rv_buf sql = RV_BUF_INIT(1000);

    rv_buf_printf(&sql, "UPDATE %s SET %s = %s, updated_us = ?3 WHERE key = ?1", tables[kind->place], column,
                  json ? "?2" : column);
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    sql_int(stmt, 1, found->key);
    if (json && is_secret) /* bytes in sessions */
        store_secret_bind(stmt, 2, kind->place == RV_PLACE_SESSIONS ? SQL_STR : SQL_TEXT, &at, column,
                          rv_buf_str(json));
    else if (json)
        store_sql_text(stmt, 2, rv_buf_cstr(json));
    sql_int(stmt, 3, c->now_us);
    int rc = sql_run(stmt, "write a row", err);
    sql_finish(stmt);
    return rc;
}

/* The row, which no other transaction changes until the end of this one: it is written first, which locks it where a
 * database has several writers, and read then. */
static int see_to_change(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_change *c,
                         const char *column, struct rv_entity_found *found, rv_err **err)
{
    const bool reveals = st->reveals;
    int rc = entity_see(st, scope, c->kind, c->id, found, err);

    if (rc == 0)
        rc = entity_check_owner(scope, found->tenant, found->user, err);
    if (rc == 0)
        rc = set_column(st, c, found, column, NULL, err);
    json_object_put(found->row);
    found->row = NULL;
    if (rc == 0)
        rc = entity_check_version(st, c->kind, found->key, c->version, c->is_stale, err);
    st->reveals = true; /* members that do not change are encrypted again */
    if (rc == 0)
        rc = entity_at(st, c->kind, found->key, &found->row, err);
    st->reveals = reveals;
    return rc;
}

static int check_place(const struct rv_kind *kind, rv_err **err)
{
    return kind->place == RV_PLACE_MESSAGES ? entity_fail_place(kind, err) : 0;
}

/* `becomes` is where the new JSON text goes. */
static int merge_metadata(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_change *c,
                          const struct rv_metadata_change *change, rv_buf *becomes, rv_err **err)
{
    struct rv_entity_found found;
    rv_buf old = RV_BUF_INIT(2 * RV_STORE_MAX_META);
    int rc = see_to_change(st, scope, c, "metadata", &found, err);

    if (rc == 0) {
        rv_json_write(rv_json_get_obj(found.row, "metadata"), &old);
        rc = rv_buf_check(&old, "metadata", err);
    }
    rv_buf_clear(becomes);
    if (rc == 0)
        rc = store_merge(rv_buf_str(&old), change->members, change->remove, change->n_remove, becomes, err);
    if (rc == 0)
        rc = set_column(st, c, &found, "metadata", becomes, err);
    json_object_put(found.row);
    rv_buf_fini(&old);
    return rc;
}

int rv_store_merge_metadata(rv_store *s, const struct rv_store_scope *scope, const struct rv_entity_target *at,
                            const struct rv_metadata_change *change, json_object **out, rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_entity_change c;
    rv_buf becomes = RV_BUF_INIT(RV_STORE_MAX_META);
    bool lacked = false;
    int rc = entity_check_change(scope, at, &sc, &c, err);

    c.version = change->version;
    c.is_stale = change->is_stale;
    if (rc == 0)
        rc = check_place(c.kind, err);
    if (rc == 0)
        rc = store_check_members("patch", change->members, err);
    if (rc == 0 && change->n_remove > 0 && !change->remove)
        rc = RV_FAIL(err, RV_E_INVALID, "%zu members to remove and none given", change->n_remove);
    if ((rc = store_enter_write(s, rc, "merge metadata", err)) != 0)
        return rc;
    do {
        rc = sql_begin_part(s->sql, err);
        if (rc == 0)
            rc = sql_end_part(s->sql, merge_metadata(s->sql, &sc, &c, change, &becomes, err), err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && out && !(*out = entity_parse(rv_buf_str(&becomes), json_type_object, &lacked)))
        rc = RV_FAIL(err, RV_E_NOMEM, "read metadata");
    rv_buf_fini(&becomes);
    return rc;
}

static int merge_edges(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_entity_change *c,
                       json_object *edges, int64_t *n, rv_err **err)
{
    struct rv_entity_found found;
    json_object *merged = NULL;
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_META);
    int rc = see_to_change(st, scope, c, "graph_edges", &found, err);

    if (rc == 0)
        rc = rv_edges_merge(rv_json_get_arr(found.row, "graph_edges"), edges, &merged, NULL, err);
    if (rc == 0) {
        *n = (int64_t)json_object_array_length(merged);
        if (*n > RV_ENTITY_MAX_EDGES)
            rc = RV_FAIL(err, RV_E_LIMIT, "row \"%s\" of %s would have %lld edges, more than %d", c->id, c->kind->name,
                         (long long)*n, RV_ENTITY_MAX_EDGES);
    }
    if (rc == 0) {
        rv_json_write(merged, &text);
        rc = rv_buf_check(&text, "graph_edges", err);
    }
    if (rc == 0)
        rc = set_column(st, c, &found, "graph_edges", &text, err);
    json_object_put(merged);
    json_object_put(found.row);
    rv_buf_fini(&text);
    return rc;
}

int rv_store_merge_edges(rv_store *s, const struct rv_store_scope *scope, const struct rv_entity_target *at,
                         json_object *edges, int64_t *n_edges, rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_entity_change c;
    int64_t n = 0;
    int rc = entity_check_change(scope, at, &sc, &c, err);

    if (rc == 0)
        rc = check_place(c.kind, err);
    if (rc == 0)
        rc = entity_check_edges(edges, err);
    if ((rc = store_enter_write(s, rc, "merge edges", err)) != 0)
        return rc;
    do {
        rc = sql_begin_part(s->sql, err);
        if (rc == 0)
            rc = sql_end_part(s->sql, merge_edges(s->sql, &sc, &c, edges, &n, err), err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n_edges)
        *n_edges = n;
    return rc;
}
