/* The queue of rows whose vectors are made by a server: the provider, claims, and how each attempt ended. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/search/search_internal.h"

#define MAX_WHY ((size_t)500) /* bytes of an error that are kept: a row of a list shows its beginning */

/* --- The provider --- */

int rv_store_read_embedding_provider(rv_store *s, rv_buf *out, rv_err **err)
{
    const char *name = NULL;
    int rc = store_enter_read(s, 0, "embedding provider", err);

    if (rc != 0)
        return rc;
    rc = store_tokens_provider(s->sql, true, &name, err);
    if (rc == 0) {
        rv_buf_puts(out, name);
        rc = rv_buf_check(out, "provider of embeddings", err);
    }
    return store_leave_read(s, rc, err);
}

static int queue_all(struct sql_store *st, const char *provider, int64_t now_us, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_QUEUE_EMBEDDINGS);

    store_sql_text(stmt, 1, provider);
    sql_int(stmt, 2, now_us);
    return sql_run(stmt, "queue rows for embedding", err);
}

static int set_provider(struct sql_store *st, const char *provider, int64_t now_us, rv_err **err)
{
    const char *present = NULL;
    int rc = store_tokens_provider(st, true, &present, err);

    if (rc == 0 && strcmp(present, provider) != 0) {
        rc = sql_run(sql_use(st, SQL_REQUEUE_EMBEDDINGS), "queue rows for embedding", err);
        rv_sql_stmt *stmt = rc == 0 ? sql_use(st, SQL_SET_ABOUT) : NULL;
        if (rc == 0) {
            store_sql_text(stmt, 1, "embedding");
            store_sql_text(stmt, 2, provider);
            rc = sql_run(stmt, "set the provider of embeddings", err);
        }
    }
    return rc < 0 ? rc : queue_all(st, provider, now_us, err);
}

int rv_store_set_embedding_provider(rv_store *s, const char *provider, int64_t now_us, rv_err **err)
{
    int rc = store_check_text("provider", provider, RV_EMBED_MAX_NAME, err);

    if (rc == 0 && !*provider)
        rc = RV_FAIL(err, RV_E_INVALID, "the provider of embeddings is empty");
    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if ((rc = store_enter_write(s, rc, "set embedding provider", err)) != 0)
        return rc;
    do
        rc = set_provider(s->sql, provider, now_us, err);
    while (store_repeats(s, &rc, err));
    free(s->sql->embeds); /* the setting is read again at the next write */
    s->sql->embeds = NULL;
    return store_leave_write(s, rc, err);
}

/* --- Claiming --- */

void rv_embeddings_claimed_fini(struct rv_embeddings_claimed *list)
{
    for (size_t i = 0; i < list->n; i++)
        free((char *)list->at[i].text);
    free(list->at);
    *list = (struct rv_embeddings_claimed){0};
}

static int list_pending(struct sql_store *st, const char *provider, size_t limit, int64_t now_us,
                        struct rv_embeddings_claimed *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_PENDING_EMBEDDINGS);
    int rc;

    store_sql_text(stmt, 1, provider);
    sql_int(stmt, 2, now_us - RV_EMBED_LEASE_US);
    sql_int(stmt, 3, (int64_t)limit);
    while ((rc = sql_step(stmt, "look for rows to embed", err)) == 1 && out->n < limit) {
        struct rv_embedding *e = &out->at[out->n++];
        *e = (struct rv_embedding){.key = sql_int_at(stmt, 0),
                                   .kind = rv_kind_find(sql_str_at(stmt, 1)),
                                   .row = sql_int_at(stmt, 2),
                                   .attempts = (int)sql_int_at(stmt, 3) + 1,
                                   .claimed_us = now_us};
        rv_str hash = sql_str_at(stmt, 4), has = sql_str_at(stmt, 5);
        e->is_current = hash.len == 0 || rv_str_eq(hash, has);
    }
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int read_text(struct sql_store *st, struct rv_embedding *e, rv_err **err)
{
    json_object *whole = NULL;
    rv_err *why = NULL;
    int rc = e->kind && !e->is_current ? entity_at(st, e->kind, e->row, &whole, &why) : 0;
    rv_str text = {"", 0};

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(why);
        rc = 0;
    } else if (rc < 0) {
        rv_err_pass(err, why);
    }
    if (rc == 0 && whole)
        text = store_tokens_text(e->kind, whole, e->hash);
    if (rc == 0 && !(e->text = rv_str_dup(text)))
        rc = RV_FAIL(err, RV_E_NOMEM, "read a row to embed");
    json_object_put(whole);
    return rc;
}

static int claim_one(struct sql_store *st, struct rv_embedding *e, int64_t now_us, bool *got, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_CLAIM_EMBEDDING);
    int64_t n = 0;

    sql_int(stmt, 1, e->key);
    sql_int(stmt, 2, now_us);
    sql_int(stmt, 3, now_us - RV_EMBED_LEASE_US);
    int rc = sql_run_counted(stmt, &n, "claim a row to embed", err);
    *got = n == 1;
    return rc;
}

static int claim(struct sql_store *st, const char *provider, size_t limit, int64_t now_us,
                 struct rv_embeddings_claimed *out, rv_err **err)
{
    int rc = list_pending(st, provider, limit, now_us, out, err);
    size_t n = 0;

    for (size_t i = 0; i < out->n && rc == 0; i++) {
        bool got = false;
        rc = claim_one(st, &out->at[i], now_us, &got, err);
        if (rc == 0 && got)
            out->at[n++] = out->at[i];
    }
    out->n = n;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_text(st, &out->at[i], err);
    return rc;
}

int rv_store_claim_embeddings(rv_store *s, const char *provider, size_t limit, int64_t now_us,
                              struct rv_embeddings_claimed *out, rv_err **err)
{
    int rc = store_check_text("provider", provider, RV_EMBED_MAX_NAME, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if (rc == 0 && (limit < 1 || limit > RV_EMBED_MAX_BATCH))
        rc = RV_FAIL(err, RV_E_INVALID, "%zu rows at once: use 1 to %d", limit, RV_EMBED_MAX_BATCH);
    *out = (struct rv_embeddings_claimed){0};
    if (rc == 0 && !(out->at = calloc(limit, sizeof *out->at)))
        rc = RV_FAIL(err, RV_E_NOMEM, "claim rows to embed");
    if ((rc = store_enter_write(s, rc, "claim embeddings", err)) != 0) {
        rv_embeddings_claimed_fini(out);
        return rc;
    }
    do {
        for (size_t i = 0; i < out->n; i++)
            free((char *)out->at[i].text);
        memset(out->at, 0, limit * sizeof *out->at);
        out->n = 0;
        rc = claim(s->sql, provider, limit, now_us, out, err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc < 0)
        rv_embeddings_claimed_fini(out);
    return rc;
}

/* --- The end of an attempt --- */

/* *was_ours: the claim still held. It does not when the row was deleted or got another text, or its lease ended. */
static int take_off(struct sql_store *st, const struct rv_embedding *e, bool *was_ours, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_DONE_EMBEDDING);
    int64_t n = 0;

    sql_int(stmt, 1, e->key);
    sql_int(stmt, 2, e->attempts);
    sql_int(stmt, 3, e->claimed_us);
    int rc = sql_run_counted(stmt, &n, "take a row from the queue", err);
    *was_ours = n == 1;
    return rc;
}

/* Whether the row still has the text that was embedded. */
static int has_text(struct sql_store *st, const struct rv_embedding *e, bool *has, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_HAS_HASH);

    store_sql_text(stmt, 1, e->kind->name);
    sql_int(stmt, 2, e->row);
    store_sql_text(stmt, 3, e->hash);
    int rc = sql_step(stmt, "look at the text of a row", err);
    *has = rc == 1;
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

/* A row that got no text, an encrypted one, or one that has a vector, is not put into the queue again: the claim
 * holds, and its vector is that of another text. The tokens are written before they are read: where a database has
 * several writers, that waits for the one that changes the text. */
static int put_vector(struct sql_store *st, const struct rv_embedding *e, const struct rv_vector *vector,
                      int64_t now_us, rv_err **err)
{
    bool is_ours = false, has = false;
    int rc = take_off(st, e, &is_ours, err);

    if (rc < 0 || !is_ours)
        return rc;
    rc = store_tokens_touch(st, e->kind->name, e->row, err);
    if (rc == 0)
        rc = has_text(st, e, &has, err);
    if (rc < 0 || !has)
        return rc;
    return store_vector_keep(st, &(struct rv_embedded_row){e->kind->name, e->row, e->hash}, vector, now_us, err);
}

int rv_store_put_vector(rv_store *s, const struct rv_embedding *row, const struct rv_vector *vector, int64_t now_us,
                        rv_err **err)
{
    int rc = store_check_text("provider", vector->provider, RV_EMBED_MAX_NAME, err);

    if (rc == 0 && (vector->dims < 1 || vector->dims > RV_VECTOR_MAX_DIMS))
        rc = RV_FAIL(err, RV_E_INVALID, "a vector of %zu dimensions: use 1 to %d", vector->dims, RV_VECTOR_MAX_DIMS);
    if (rc == 0 && !rv_vector_is_finite(vector->values, vector->dims))
        rc = RV_FAIL(err, RV_E_INVALID, "a vector has an element that is not finite");
    if ((rc = store_enter_write(s, rc, "put vector", err)) != 0)
        return rc;
    do
        rc = put_vector(s->sql, row, vector, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_skip_embedding(rv_store *s, const struct rv_embedding *row, rv_err **err)
{
    bool was_ours;
    int rc = store_enter_write(s, 0, "skip embedding", err);

    if (rc != 0)
        return rc;
    do
        rc = take_off(s->sql, row, &was_ours, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int put_back(struct sql_store *st, const struct rv_embedding *e, const char *status, const char *why,
                    rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FAIL_EMBEDDING);

    sql_int(stmt, 1, e->key);
    sql_int(stmt, 2, e->attempts);
    store_sql_text(stmt, 3, status);
    store_sql_text(stmt, 4, why);
    sql_int(stmt, 5, e->claimed_us);
    return sql_run(stmt, "put a row back into the queue", err);
}

int rv_store_fail_embedding(rv_store *s, const struct rv_embedding *row, const char *why, bool *failed, rv_err **err)
{
    char *text = rv_str_dup(rv_utf8_cut(rv_str_of(why), MAX_WHY));
    int rc = text ? 0 : RV_FAIL(err, RV_E_NOMEM, "put a row back into the queue");

    bool is_last = row->attempts >= RV_EMBED_MAX_TRIES;
    rc = store_enter_write(s, rc, "fail embedding", err);
    if (rc == 0) {
        do
            rc = put_back(s->sql, row, is_last ? "failed" : "pending", text, err);
        while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
    }
    if (rc == 0)
        *failed = is_last;
    free(text);
    return rc;
}
