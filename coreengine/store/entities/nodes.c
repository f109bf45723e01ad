/* Reading the rows that many names mean with one statement, for walks over edges. The order of a lookup decides which
 * row a name means when it has several. */
#include "coreengine/store/entities.h"

#include <stdlib.h>
#include <string.h>

#include "coreengine/store/entities/entities_internal.h"

/* bytes: each byte of a key may be escaped as \u00xx */
#define MAX_KEYS_JSON ((size_t)RV_NODES_MAX * (6 * RV_ENTITY_MAX_NAME + 3) + 3)
#define N_BEFORE      8 /* columns of RV_SQL_NODES before metadata and edges of entities, sessions, schemas */

struct nodes {
    rv_index keys; /* to the place in the list */
    struct found {
        struct rv_key_node node;
        char *own; /* its texts; NULL: nothing was found */
    } * list;
    size_t n;
};

static void drop(struct nodes *l)
{
    for (size_t i = 0; l->list && i < l->n; i++)
        free(l->list[i].own);
    free(l->list);
    rv_index_fini(&l->keys);
}

static int index_keys(struct nodes *l, const rv_str *keys, size_t n, rv_err **err)
{
    int rc = 0;

    l->list = calloc(n, sizeof *l->list);
    l->n = n;
    for (size_t i = 0; i < n && rc == 0 && l->list; i++)
        rc = rv_index_add(&l->keys, keys[i], (int)i);
    if (rc == RV_E_EXISTS)
        return RV_FAIL(err, rc, "a key is there twice");
    return rc < 0 || !l->list ? RV_FAIL(err, RV_E_NOMEM, "read rows of keys") : 0;
}

/* Metadata and edges are in the table of the kind; of the others they are null. */
static rv_str part(const rv_sql_stmt *stmt, int at)
{
    for (int i = at; i < at + 6; i += 2)
        if (!sql_is_null(stmt, i))
            return sql_str_at(stmt, i);
    return (rv_str){"", 0};
}

static int read_metadata(rv_sql_stmt *stmt, const struct rv_key_hit *h, rv_str *out, rv_err **err)
{
    const struct rv_place at = entity_place(h->kind, h->tenant, h->user, h->id);
    int i = N_BEFORE;

    while (i < N_BEFORE + 4 && sql_is_null(stmt, i))
        i += 2;
    int rc = store_secret_json_at(stmt, i, &at, "metadata", out, err);
    if (rc == 0 && !out->ptr)
        *out = RV_STR_LIT("");
    return rc;
}

static int keep(struct found *at, const struct rv_key_node *node, rv_err **err)
{
    struct rv_key_node copy = *node;
    const struct rv_row_texts texts = {.texts = {&copy.hit.tenant, &copy.hit.user, &copy.hit.key, &copy.hit.id},
                                       .n_texts = 4,
                                       .strs = {&copy.hit.summary, &copy.metadata, &copy.edges},
                                       .n_strs = 3};
    char *own = store_pack(&texts);

    if (!own)
        return RV_FAIL(err, RV_E_NOMEM, "read rows of keys");
    free(at->own);
    *at = (struct found){copy, own};
    return 0;
}

static int take(struct nodes *l, rv_sql_stmt *stmt, rv_err **err)
{
    bool lacked = false;
    struct rv_key_node node = {.hit = {.kind = rv_kind_find(sql_str_at(stmt, 0)),
                                       .row = sql_int_at(stmt, 1),
                                       .tenant = sql_text_at(stmt, 2, &lacked),
                                       .user = sql_text_at(stmt, 3, &lacked),
                                       .key = sql_text_at(stmt, 4, &lacked),
                                       .id = sql_text_at(stmt, 5, &lacked),
                                       .summary = sql_str_at(stmt, 6),
                                       .updated_us = sql_int_at(stmt, 7)},
                               .edges = part(stmt, N_BEFORE + 1)};
    const struct rv_key_hit *h = &node.hit;

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read rows of keys");
    if (!h->kind || !h->tenant || !h->user || !h->key || !h->id || (!*h->tenant && !h->kind->is_shared))
        return 0; /* as a lookup does */
    int at = rv_index_get(&l->keys, rv_str_of(h->key));
    if (at < 0 || (l->list[at].own && store_key_compare(&l->list[at].node.hit, h) <= 0))
        return 0;
    int rc = read_metadata(stmt, h, &node.metadata, err);
    return rc < 0 ? rc : keep(&l->list[at], &node, err);
}

static int read_rows(struct sql_store *st, const struct rv_store_scope *scope, const rv_buf *json, struct nodes *l,
                     rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_NODES);
    int rc;

    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, scope->user);
    store_sql_text(stmt, 3, rv_buf_cstr(json));
    while ((rc = sql_step(stmt, "read rows of keys", err)) == 1)
        if ((rc = take(l, stmt, err)) < 0)
            break;
    sql_done(stmt);
    return rc;
}

static int check_keys(const rv_str *keys, size_t n, rv_err **err)
{
    int rc = n >= 1 && n <= RV_NODES_MAX ? 0 : RV_FAIL(err, RV_E_LIMIT, "%zu keys: at most %d", n, RV_NODES_MAX);

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = store_check_bytes("key", keys[i], RV_ENTITY_MAX_NAME, err);
    return rc;
}

static int write_keys(const rv_str *keys, size_t n, rv_buf *json, rv_err **err)
{
    rv_jw w = rv_jw_on(json);

    rv_jw_arr(&w);
    for (size_t i = 0; i < n; i++)
        rv_jw_str(&w, keys[i]);
    rv_jw_arr_end(&w);
    return rv_buf_check(json, "keys", err);
}

int rv_store_read_nodes(rv_store *s, const struct rv_store_scope *scope, const struct rv_node_keys *keys,
                        int (*each)(void *self, const struct rv_key_node *node, rv_err **err), void *self, rv_err **err)
{
    struct rv_store_scope sc;
    struct nodes l = {.n = 0};
    rv_buf json = RV_BUF_INIT(MAX_KEYS_JSON);
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0)
        rc = check_keys(keys->keys, keys->n_keys, err);
    if ((rc = store_enter_read(s, rc, "read nodes", err)) != 0)
        return rc;
    rc = index_keys(&l, keys->keys, keys->n_keys, err);
    if (rc == 0)
        rc = write_keys(keys->keys, keys->n_keys, &json, err);
    if (rc == 0)
        rc = read_rows(s->sql, &sc, &json, &l, err);
    for (size_t i = 0; i < l.n && rc == 0; i++)
        if (l.list[i].own)
            rc = each(self, &l.list[i].node, err);
    drop(&l);
    rv_buf_fini(&json);
    return store_leave_read(s, rc < 0 ? rc : 0, err);
}
