/* Rows that a name refers to: rows of the index of names (keys.c), messages by their keys, rows by their ids. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/search/search_internal.h"

struct hit {
    struct rv_key_hit h;
    char *own; /* its texts */
};
struct hits {
    struct hit *list; /* owned */
    size_t n, cap;
};

static int add_hit(struct hits *l, struct rv_key_hit h, rv_err **err)
{
    const struct rv_row_texts texts = {
        .texts = {&h.tenant, &h.user, &h.key, &h.id}, .n_texts = 4, .strs = {&h.summary}, .n_strs = 1};

    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].h.kind == h.kind && l->list[i].h.row == h.row)
            return 0;
    if (!rv_has_room(&l->list, &l->cap, l->n + 1, sizeof *l->list))
        return RV_FAIL(err, RV_E_NOMEM, "look up a key");
    char *own = store_pack(&texts);
    if (!own)
        return RV_FAIL(err, RV_E_NOMEM, "look up a key");
    l->list[l->n++] = (struct hit){.h = h, .own = own};
    return 0;
}

static int take_key(struct hits *l, rv_sql_stmt *stmt, rv_err **err)
{
    bool lacked = false;
    struct rv_key_hit h = {.kind = rv_kind_find(sql_str_at(stmt, 0)),
                           .row = sql_int_at(stmt, 1),
                           .tenant = sql_text_at(stmt, 2, &lacked),
                           .user = sql_text_at(stmt, 3, &lacked),
                           .key = sql_text_at(stmt, 4, &lacked),
                           .id = sql_text_at(stmt, 5, &lacked),
                           .summary = sql_str_at(stmt, 6),
                           .updated_us = sql_int_at(stmt, 7)};

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "look up a key");
    /* A kind that a later version has; or a row of no tenant of a kind that is not shared. */
    if (!h.kind || !h.tenant || !h.user || !h.key || !h.id || (!*h.tenant && !h.kind->is_shared))
        return 0;
    return add_hit(l, h, err);
}

static int find_keys(struct sql_store *st, enum sql_id how, const struct rv_store_scope *scope, const char *key,
                     struct hits *l, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, how);
    int rc;

    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, scope->user);
    store_sql_text(stmt, 3, key);
    while ((rc = sql_step(stmt, "look up a key", err)) == 1) {
        rc = take_key(l, stmt, err);
        if (rc < 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

/* "session-<id>-msg-<n>" */
static int find_message(struct sql_store *st, const struct rv_store_scope *scope, rv_str text, const char *key,
                        struct hits *l, rv_err **err)
{
    char session[RV_STORE_MAX_ID + 1];
    rv_str part;
    int64_t seq = 0;
    bool is_cut = false, lacked = false;

    if (!rv_message_key_read(text, &part, &seq, &is_cut) || is_cut || part.len == 0 || part.len > RV_STORE_MAX_ID)
        return 0;
    snprintf(session, sizeof session, "%.*s", RV_STR_ARG(part));
    rv_sql_stmt *stmt = sql_use(st, SQL_MESSAGE_BY_SEQ);
    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, scope->user);
    store_sql_text(stmt, 3, session);
    sql_int(stmt, 4, seq);
    int rc = sql_step(stmt, "look up a message", err);
    if (rc == 1) {
        const struct rv_key_hit h = {.kind = rv_kind_find(RV_STR_LIT("messages")),
                                     .row = sql_int_at(stmt, 0),
                                     .id = sql_text_at(stmt, 1, &lacked),
                                     .tenant = sql_text_at(stmt, 2, &lacked),
                                     .user = sql_text_at(stmt, 3, &lacked),
                                     .key = key,
                                     .summary = {"", 0},
                                     .updated_us = sql_int_at(stmt, 4)};
        rc = lacked || !h.id || !h.tenant || !h.user ? RV_FAIL(err, RV_E_NOMEM, "look up a message")
                                                     : add_hit(l, h, err);
    }
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int store_key_compare(const struct rv_key_hit *a, const struct rv_key_hit *b)
{
    bool a_is_shared = !*a->user, b_is_shared = !*b->user;

    if (a_is_shared != b_is_shared)
        return a_is_shared ? 1 : -1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->updated_us != b->updated_us)
        return a->updated_us > b->updated_us ? -1 : 1;
    int by_user = strcmp(a->user, b->user), by_id = strcmp(a->id, b->id);
    if (by_user != 0 || by_id != 0)
        return by_user != 0 ? by_user : by_id;
    return strcmp(b->tenant, a->tenant);
}

static int compare(const void *one, const void *two)
{
    const struct hit *a = one, *b = two;

    return store_key_compare(&a->h, &b->h);
}

/* An earlier one has the name for that kind and owner. */
static bool is_hidden(const struct hits *l, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (l->list[i].h.kind == l->list[at].h.kind && strcmp(l->list[i].h.user, l->list[at].h.user) == 0 &&
            strcmp(l->list[i].h.tenant, l->list[at].h.tenant) == 0 && strcmp(l->list[i].h.key, l->list[at].h.key) == 0)
            return true;
    return false;
}

static int tell_hits(struct hits *l, int (*each)(void *self, const struct rv_key_hit *hit, rv_err **err), void *self,
                     rv_err **err)
{
    int rc = 0;

    if (l->n > 0)
        qsort(l->list, l->n, sizeof *l->list, compare);
    for (size_t i = 0; i < l->n && rc == 0; i++)
        if (!is_hidden(l, i))
            rc = each(self, &l->list[i].h, err);
    return rc < 0 ? rc : 0;
}

/* The text as an id: a UUID in lower case, any other as it is. */
static bool write_id(rv_str text, char out[RV_STORE_MAX_ID + 1])
{
    if (rv_uuid_read(text, out))
        return true;
    if (text.len == 0 || text.len > RV_STORE_MAX_ID || memchr(text.ptr, 0, text.len))
        return false;
    memcpy(out, text.ptr, text.len);
    out[text.len] = 0;
    return true;
}

static int look_up(struct sql_store *st, const struct rv_store_scope *scope, rv_str text, struct hits *l, rv_err **err)
{
    char id[RV_STORE_MAX_ID + 1];
    rv_buf key = RV_BUF_INIT(RV_ENTITY_MAX_KEY);

    rv_match_write_key(text, &key);
    int rc = rv_buf_check(&key, "key", err);
    if (rc == 0 && key.len > 0)
        rc = find_keys(st, SQL_KEY_HITS, scope, rv_buf_cstr(&key), l, err);
    if (rc == 0 && l->n == 0 && write_id(rv_str_trim(text), id))
        rc = find_keys(st, SQL_KEY_HITS_OF_ID, scope, id, l, err);
    if (rc == 0 && l->n == 0)
        rc = find_message(st, scope, rv_str_trim(text), rv_buf_cstr(&key), l, err);
    rv_buf_fini(&key);
    return rc;
}

int rv_store_lookup(rv_store *s, const struct rv_store_scope *scope, rv_str key,
                    int (*each)(void *self, const struct rv_key_hit *hit, rv_err **err), void *self, rv_err **err)
{
    struct rv_store_scope sc;
    struct hits l = {0};
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0)
        rc = store_check_bytes("key", key, RV_ENTITY_MAX_NAME, err);
    if ((rc = store_enter_read(s, rc, "lookup", err)) != 0)
        return rc;
    rc = look_up(s->sql, &sc, key, &l, err);
    if (rc == 0)
        rc = tell_hits(&l, each, self, err);
    for (size_t i = 0; i < l.n; i++)
        free(l.list[i].own);
    free(l.list);
    return store_leave_read(s, rc, err);
}

int rv_store_rebuild_keys(rv_store *s, int64_t *n, rv_err **err)
{
    int64_t total = 0;
    int rc = store_enter_write(s, 0, "rebuild keys", err);

    if (rc != 0)
        return rc;
    do
        rc = store_keys_rebuild(s->sql, &total, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n)
        *n = total;
    return rc;
}
