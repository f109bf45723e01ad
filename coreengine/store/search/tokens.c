/* The search data of rows: trigrams of the key and the summary, words of the name and the embedded field, and, for a
 * provider that needs no server, the vector. Written in the transaction of the row. */
#include <endian.h>
#include <stdlib.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/search/search_internal.h"
#include "coreengine/store/sql/driver_internal.h"

#define MAX_BLOB     ((size_t)16 << 20) /* bytes of a key or vector: as RV_ENTITY_MAX_BYTES */
#define EMBEDDING    "embedding"        /* the provider, in the table "about" */
#define PAGE_VECTORS 500                /* that are looked at in one request */

/* --- The provider --- */

bool rv_embedding_is_local(const char *provider)
{
    return strcmp(provider, RV_EMBED_NGRAM) == 0 || strcmp(provider, RV_EMBED_LOCAL) == 0;
}

static int read_provider(struct sql_store *st, rv_buf *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_ABOUT);

    store_sql_text(stmt, 1, EMBEDDING);
    int rc = sql_step(stmt, "read the provider of embeddings", err);
    if (rc == 1)
        rv_buf_add_str(out, sql_str_at(stmt, 0));
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int store_tokens_provider(struct sql_store *st, bool again, const char **out, rv_err **err)
{
    rv_buf name = RV_BUF_INIT(RV_EMBED_MAX_NAME);
    int rc = 0;

    if (!st->embeds || again) {
        rc = read_provider(st, &name, err);
        if (rc == 0 && name.len == 0)
            rv_buf_puts(&name, RV_EMBED_NGRAM);
        if (rc == 0)
            rc = rv_buf_check(&name, "provider of embeddings", err);
        char *copy = rc == 0 ? rv_str_dup(rv_buf_str(&name)) : NULL;
        if (rc == 0 && !copy)
            rc = RV_FAIL(err, RV_E_NOMEM, "read the provider of embeddings");
        if (rc == 0) {
            free(st->embeds);
            st->embeds = copy;
        }
        rv_buf_fini(&name);
    }
    if (rc == 0)
        *out = st->embeds;
    return rc;
}

/* --- Texts of a row --- */

static rv_str text_of(json_object *whole, const char *column)
{
    json_object *v = NULL;

    json_object_object_get_ex(whole, column, &v);
    return json_object_is_type(v, json_type_string) ? rv_json_str(v) : (rv_str){"", 0};
}

static rv_str embedded_of(const struct rv_kind *kind, json_object *whole)
{
    if (!kind->embedded || (store_kind_encrypts(kind, kind->embedded) && vault_is_ciphertext(whole)))
        return (rv_str){"", 0};
    return text_of(whole, kind->embedded);
}

rv_str store_tokens_text(const struct rv_kind *kind, json_object *whole, char hash[RV_HASH_MAX])
{
    rv_str text = rv_utf8_cut(embedded_of(kind, whole), RV_EMBED_MAX_TEXT);

    hash[0] = 0;
    if (rv_str_trim(text).len == 0)
        return (rv_str){"", 0};
    rv_hash_format(text, hash);
    return text;
}

/* --- Tokens as bytes --- */

static void put_number(rv_buf *out, uint32_t n)
{
    uint32_t bytes = htole32(n);

    rv_buf_add(out, &bytes, sizeof bytes);
}

static int write_grams(rv_str text, rv_buf *out, rv_err **err)
{
    struct rv_grams grams;
    int rc = rv_grams_build(rv_utf8_cut(text, RV_MATCH_MAX_TEXT), &grams, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < grams.n; i++)
        put_number(out, grams.at[i]);
    rv_grams_fini(&grams);
    return 0;
}

uint32_t store_word_hash(rv_str word)
{
    uint32_t h = UINT32_C(0x811c9dc5);

    for (size_t i = 0; i < word.len; i++)
        h = (h ^ (unsigned char)word.ptr[i]) * UINT32_C(0x01000193);
    return h ^ h >> 15;
}

/* Words of the name and of the text; one that both have is there twice, and counts for both. */
static int write_words(rv_str text, rv_buf *out, int64_t *n, rv_err **err)
{
    struct rv_terms terms;
    int rc = rv_terms_build(rv_utf8_cut(text, RV_MATCH_MAX_TEXT), &terms, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < terms.n; i++) {
        put_number(out, store_word_hash(terms.at[i].text));
        rv_buf_putc(out, (char)(terms.at[i].count > 255 ? 255 : terms.at[i].count));
    }
    *n += (int64_t)terms.length;
    rv_terms_fini(&terms);
    return 0;
}

struct tokens {
    rv_buf key, summary, words;
    int64_t n_words;
    char hash[RV_HASH_MAX];
    rv_str text; /* to embed; borrowed from the row */
};

static int make(const struct rv_found_by *row, struct tokens *t, rv_err **err)
{
    const struct rv_kind *kind = row->kind;
    json_object *whole = row->whole;
    rv_str key = row->key, summary = row->summary;

    t->text = store_tokens_text(kind, whole, t->hash);
    int rc = write_grams(key, &t->key, err);
    if (rc == 0 && !rv_str_eq(key, summary))
        rc = write_grams(summary, &t->summary, err);
    if (rc == 0 && kind->embedded)
        rc = write_words(text_of(whole, "name"), &t->words, &t->n_words, err);
    if (rc == 0 && kind->embedded)
        rc = write_words(embedded_of(kind, whole), &t->words, &t->n_words, err);
    if (rc == 0)
        rc = rv_buf_check(&t->key, "trigrams", err);
    if (rc == 0)
        rc = rv_buf_check(&t->summary, "trigrams", err);
    return rc < 0 ? rc : rv_buf_check(&t->words, "words", err);
}

/* --- Writing --- */

static int count(struct sql_store *st, rv_err **err)
{
    return st->driver->has_one_writer ? sql_run(sql_use(st, SQL_COUNT_TOKENS), "count a change", err) : 0;
}

static void bind_bytes(rv_sql_stmt *stmt, int i, const rv_buf *bytes)
{
    sql_bind(stmt, i, (struct sql_value){.type = SQL_BLOB, .bytes = rv_buf_str(bytes)});
}

static int write(struct sql_store *st, const struct rv_kind *kind, int64_t row, json_object *whole,
                 const struct tokens *t, rv_err **err)
{
    json_object *category = NULL;
    int64_t created_us = 0;
    int rc = count(st, err);

    if (rc == 0)
        rc = rv_time_parse(text_of(whole, "created_at"), &created_us, err);
    if (rc < 0)
        return rc;
    json_object_object_get_ex(whole, "category", &category);
    rv_sql_stmt *stmt = sql_use(st, SQL_SET_TOKENS);
    store_sql_text(stmt, 1, kind->name);
    sql_int(stmt, 2, row);
    sql_bind(stmt, 3, (struct sql_value){.type = SQL_TEXT, .bytes = text_of(whole, "tenant_id")});
    sql_bind(stmt, 4, (struct sql_value){.type = SQL_TEXT, .bytes = text_of(whole, "user_id")});
    sql_bind(stmt, 5, (struct sql_value){.type = SQL_TEXT, .bytes = text_of(whole, "id")});
    store_sql_text(stmt, 6, json_object_is_type(category, json_type_string) ? json_object_get_string(category) : NULL);
    sql_int(stmt, 7, created_us);
    store_sql_text(stmt, 8, t->hash);
    sql_int(stmt, 9, t->n_words);
    bind_bytes(stmt, 10, &t->key);
    bind_bytes(stmt, 11, &t->summary);
    bind_bytes(stmt, 12, &t->words);
    return sql_run(stmt, "write what a row is found by", err);
}

int store_tokens_touch(struct sql_store *st, const char *kind, int64_t row, rv_err **err)
{
    int rc = count(st, err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_TOUCH_TOKENS);
    store_sql_text(stmt, 1, kind);
    sql_int(stmt, 2, row);
    return sql_run(stmt, "note a change", err);
}

static int run_of_row(struct sql_store *st, enum sql_id id, const char *kind, int64_t row, const char *what,
                      rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, id);

    store_sql_text(stmt, 1, kind);
    sql_int(stmt, 2, row);
    return sql_run(stmt, what, err);
}

int store_tokens_drop(struct sql_store *st, const char *kind, int64_t row, rv_err **err)
{
    int rc = count(st, err);

    /* The queue first: a process that keeps the vector now holds its row of the queue, and is waited for. */
    if (rc == 0)
        rc = run_of_row(st, SQL_UNQUEUE_EMBEDDING, kind, row, "drop vectors", err);
    if (rc == 0)
        rc = run_of_row(st, SQL_DROP_TOKENS, kind, row, "drop what a row is found by", err);
    return rc < 0 ? rc : run_of_row(st, SQL_DROP_VECTORS, kind, row, "drop vectors", err);
}

int store_tokens_drop_all(struct sql_store *st, rv_err **err)
{
    return sql_run(sql_use(st, SQL_DROP_ALL_TOKENS), "drop what rows are found by", err);
}

int store_tokens_copy_provider(struct sql_store *from, struct sql_store *to, rv_err **err)
{
    const char *provider = NULL;
    int rc = store_tokens_provider(from, true, &provider, err);

    if (rc < 0 || strcmp(provider, RV_EMBED_NGRAM) == 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(to, SQL_SET_ABOUT);
    store_sql_text(stmt, 1, EMBEDDING);
    store_sql_text(stmt, 2, provider);
    return sql_run(stmt, "set the provider of embeddings", err);
}

/* --- Vectors --- */

int store_vector_keep(struct sql_store *st, const struct rv_embedded_row *of, const struct rv_vector *vector,
                      int64_t now_us, rv_err **err)
{
    size_t dims = vector->dims;
    uint32_t *bytes = calloc(dims + 1, sizeof *bytes);

    if (!bytes)
        return RV_FAIL(err, RV_E_NOMEM, "keep a vector");
    memcpy(bytes, vector->values, dims * sizeof *bytes);
    for (size_t i = 0; i < dims; i++)
        bytes[i] = htole32(bytes[i]);
    rv_sql_stmt *stmt = sql_use(st, SQL_SET_VECTOR);
    store_sql_text(stmt, 1, of->kind);
    sql_int(stmt, 2, of->row);
    store_sql_text(stmt, 3, vector->provider);
    sql_int(stmt, 4, (int64_t)dims);
    store_sql_text(stmt, 5, of->hash);
    sql_blob(stmt, 6, bytes, dims * sizeof *bytes);
    sql_int(stmt, 7, now_us);
    int rc = sql_run(stmt, "keep a vector", err);
    free(bytes);
    return rc;
}

static size_t dims_of(const char *provider)
{
    return strcmp(provider, RV_EMBED_NGRAM) == 0 ? RV_EMBED_NGRAM_DIMS : RV_EMBED_LOCAL_DIMS;
}

static int embed(struct sql_store *st, const struct rv_key_source *k, const char *provider, const struct tokens *t,
                 rv_err **err)
{
    size_t dims = dims_of(provider);
    float *vector = calloc(dims, sizeof *vector);
    int rc = vector ? rv_embed_text(rv_str_of(provider), t->text, dims, vector, err)
                    : RV_FAIL(err, RV_E_NOMEM, "embed a row");

    if (rc == 0)
        rc = store_vector_keep(st, &(struct rv_embedded_row){k->kind, k->row, t->hash},
                               &(struct rv_vector){provider, vector, dims}, k->updated_us, err);
    free(vector);
    return rc;
}

static int has_vector(struct sql_store *st, const struct rv_key_source *k, const char *provider, const char *hash,
                      bool *has, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_VECTOR_HASH);

    store_sql_text(stmt, 1, k->kind);
    sql_int(stmt, 2, k->row);
    store_sql_text(stmt, 3, provider);
    int rc = sql_step(stmt, "look for a vector", err);
    *has = rc == 1 && rv_str_is(sql_str_at(stmt, 0), hash);
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int queue(struct sql_store *st, const struct rv_key_source *k, json_object *whole, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_QUEUE_EMBEDDING);

    store_sql_text(stmt, 1, k->kind);
    sql_int(stmt, 2, k->row);
    sql_bind(stmt, 3, (struct sql_value){.type = SQL_TEXT, .bytes = text_of(whole, "tenant_id")});
    sql_int(stmt, 4, k->updated_us);
    return sql_run(stmt, "queue a row for embedding", err);
}

static int keep_vector(struct sql_store *st, const struct rv_key_source *k, json_object *whole, const struct tokens *t,
                       rv_err **err)
{
    const char *provider = NULL;
    bool has = false;

    int rc = 0;
    if (!t->hash[0]) { /* the queue first, as in store_tokens_drop() */
        rc = run_of_row(st, SQL_UNQUEUE_EMBEDDING, k->kind, k->row, "drop vectors", err);
        return rc < 0 ? rc : run_of_row(st, SQL_DROP_VECTORS, k->kind, k->row, "drop vectors", err);
    }
    rc = store_tokens_provider(st, false, &provider, err);
    if (rc == 0)
        rc = has_vector(st, k, provider, t->hash, &has, err);
    if (rc < 0 || has)
        return rc;
    return rv_embedding_is_local(provider) ? embed(st, k, provider, t, err) : queue(st, k, whole, err);
}

int store_tokens_put(struct sql_store *st, const struct rv_key_source *k, rv_str key, rv_str summary, rv_err **err)
{
    const struct rv_kind *kind = rv_kind_find(rv_str_of(k->kind));
    struct tokens t = {.key = RV_BUF_INIT(MAX_BLOB), .summary = RV_BUF_INIT(MAX_BLOB), .words = RV_BUF_INIT(MAX_BLOB)};
    int rc = make(&(struct rv_found_by){kind, k->whole, key, summary}, &t, err);

    if (rc == 0 && kind->embedded)
        rc = keep_vector(st, k, k->whole, &t, err);
    if (rc == 0)
        rc = write(st, kind, k->row, k->whole, &t, err);
    rv_buf_fini(&t.key);
    rv_buf_fini(&t.summary);
    rv_buf_fini(&t.words);
    return rc;
}

/* --- Comparing and mending --- */

bool store_vector_is_whole(rv_str bytes, int64_t dims)
{
    if (dims < 1 || dims > RV_VECTOR_MAX_DIMS || bytes.len != (size_t)dims * sizeof(float))
        return false;
    for (size_t i = 0; i < bytes.len; i += sizeof(float)) {
        uint32_t bits;
        memcpy(&bits, bytes.ptr + i, sizeof bits);
        if ((le32toh(bits) & UINT32_C(0x7f800000)) == UINT32_C(0x7f800000)) /* not finite */
            return false;
    }
    return true;
}

static bool is_text_at(rv_sql_stmt *stmt, int i, rv_str want)
{
    return rv_str_eq(sql_str_at(stmt, i), want);
}

/* Of a provider that needs no server: the bytes that its vector has. */
static int make_bytes(const char *provider, rv_str text, rv_buf *out, rv_err **err)
{
    size_t dims = dims_of(provider);
    float *vector = calloc(dims, sizeof *vector);
    int rc =
        vector ? rv_embed_text(rv_str_of(provider), text, dims, vector, err) : RV_FAIL(err, RV_E_NOMEM, "embed a row");

    for (size_t i = 0; rc == 0 && i < dims; i++) {
        uint32_t bits;
        memcpy(&bits, &vector[i], sizeof bits);
        put_number(out, bits);
    }
    free(vector);
    return rc < 0 ? rc : rv_buf_check(out, "vector", err);
}

static int compare_vector(const struct tokens *t, const char *provider, rv_sql_stmt *kept, const char **what,
                          rv_err **err)
{
    rv_buf bytes = RV_BUF_INIT(MAX_BLOB);
    int rc = 0;

    if (!is_text_at(kept, 12, rv_str_of(t->hash))) {
        if (sql_int_at(kept, 14) == 0)
            *what = "has neither a vector nor a place in the queue of vectors";
        return 0;
    }
    if (rv_embedding_is_local(provider)) {
        rc = make_bytes(provider, t->text, &bytes, err);
        if (rc == 0 && !is_text_at(kept, 13, rv_buf_str(&bytes)))
            *what = "has a vector that its text does not have";
    }
    rv_buf_fini(&bytes);
    return rc;
}

static bool has_owner(json_object *whole, rv_sql_stmt *kept)
{
    int64_t created_us = 0;

    return is_text_at(kept, 1, text_of(whole, "tenant_id")) && is_text_at(kept, 2, text_of(whole, "user_id")) &&
           is_text_at(kept, 3, text_of(whole, "id")) && is_text_at(kept, 4, text_of(whole, "category")) &&
           rv_time_read(text_of(whole, "created_at"), &created_us) && sql_int_at(kept, 5) == created_us;
}

int store_tokens_compare(const struct rv_found_by *row, const char *provider, rv_sql_stmt *kept, const char **what,
                         rv_err **err)
{
    struct tokens t = {.key = RV_BUF_INIT(MAX_BLOB), .summary = RV_BUF_INIT(MAX_BLOB), .words = RV_BUF_INIT(MAX_BLOB)};
    int rc = make(row, &t, err);

    *what = NULL;
    if (rc == 0) {
        if (!has_owner(row->whole, kept))
            *what = "is found as that of another owner, id, category or time";
        else if (!is_text_at(kept, 11, row->summary))
            *what = "has another summary in the index of names";
        else if (!is_text_at(kept, 8, rv_buf_str(&t.key)) || !is_text_at(kept, 9, rv_buf_str(&t.summary)))
            *what = "is found by other trigrams than it has";
        else if (!is_text_at(kept, 10, rv_buf_str(&t.words)) || sql_int_at(kept, 7) != t.n_words)
            *what = "is found by other words than it has";
        else if (!is_text_at(kept, 6, rv_str_of(t.hash)))
            *what = "has another hash than its embedded text";
        else if (t.hash[0])
            rc = compare_vector(&t, provider, kept, what, err);
    }
    rv_buf_fini(&t.key);
    rv_buf_fini(&t.summary);
    rv_buf_fini(&t.words);
    return rc;
}

/* The vectors behind *after that are not vectors: up to n of them, and how many were looked at. */
static int list_broken(struct sql_store *st, int64_t *after, int64_t *broken, size_t *n, size_t *n_seen, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_VECTOR_PAGE);
    int rc;

    sql_int(stmt, 1, *after);
    sql_int(stmt, 2, PAGE_VECTORS);
    *n = *n_seen = 0;
    while ((rc = sql_step(stmt, "look at vectors", err)) == 1 && *n_seen < PAGE_VECTORS) {
        ++*n_seen;
        *after = sql_int_at(stmt, 0);
        if (!store_vector_is_whole(sql_str_at(stmt, 2), sql_int_at(stmt, 1)))
            broken[(*n)++] = *after;
    }
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int store_vectors_mend(struct sql_store *st, rv_err **err)
{
    int64_t broken[PAGE_VECTORS], after = 0;
    size_t n, n_seen;
    const char *provider = NULL;
    int rc;

    do {
        rc = list_broken(st, &after, broken, &n, &n_seen, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            rv_sql_stmt *stmt = sql_use(st, SQL_DROP_VECTOR);
            sql_int(stmt, 1, broken[i]);
            rc = sql_run(stmt, "drop a vector", err);
        }
    } while (rc == 0 && n_seen == PAGE_VECTORS);
    if (rc == 0)
        rc = store_tokens_provider(st, false, &provider, err);
    if (rc < 0 || !rv_embedding_is_local(provider))
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_DROP_VECTORS_OF); /* they are made again with the tokens */
    store_sql_text(stmt, 1, provider);
    return sql_run(stmt, "drop vectors", err);
}

int store_vectors_drop_lost(struct sql_store *st, rv_err **err)
{
    int rc = sql_run(sql_use(st, SQL_DROP_LOST_VECTORS), "drop vectors", err);

    return rc < 0 ? rc : sql_run(sql_use(st, SQL_DROP_LOST_EMBEDDINGS), "drop places in the queue", err);
}
