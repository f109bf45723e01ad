/* The indexes of a handle, and how they follow the rows: before each search those that changed since are read. An index
 * that mostly has dead docs, or whose reading failed half-way, is dropped and read again. */
#include "coreengine/store/search/search_internal.h"
#include "coreengine/store/sql/driver_internal.h"

#include <endian.h>
#include <stdlib.h>

/* --- an index: the rows themselves (docs), lists of those that have a trigram or a word, or a matrix of their vectors.
 * A row that changes gets a new doc and its old one is dead; the matrix alone has one for each row --- */

/* --- Maps --- */

static size_t place_of(const struct rv_number_map *m, uint64_t key)
{
    uint64_t h = key * RV_GOLDEN;
    size_t at = (size_t)(h >> 32) & (m->cap - 1);

    while (m->keys[at] != 0 && m->keys[at] != key + 1)
        at = (at + 1) & (m->cap - 1);
    return at;
}

static void map_fini(struct rv_number_map *m)
{
    free(m->keys);
    free(m->values);
    *m = (struct rv_number_map){0};
}

static bool grow(struct rv_number_map *m)
{
    struct rv_number_map more = {.cap = m->cap ? 2 * m->cap : 256};

    more.keys = calloc(more.cap, sizeof *more.keys);
    more.values = calloc(more.cap, sizeof *more.values);
    if (!more.keys || !more.values) {
        map_fini(&more);
        return false;
    }
    for (size_t i = 0; i < m->cap; i++)
        if (m->keys[i] != 0) {
            size_t at = place_of(&more, m->keys[i] - 1);
            more.keys[at] = m->keys[i];
            more.values[at] = m->values[i];
        }
    more.n = m->n;
    map_fini(m);
    *m = more;
    return true;
}

/* The place of a key's value, made with UINT32_MAX if it is new; NULL: no memory. Valid until the next call. */
static uint32_t *map_at(struct rv_number_map *m, uint64_t key)
{
    if (2 * (m->n + 1) > m->cap && !grow(m))
        return NULL;
    size_t at = place_of(m, key);
    if (m->keys[at] == 0) {
        m->keys[at] = key + 1;
        m->values[at] = UINT32_MAX;
        m->n++;
    }
    return &m->values[at];
}

static const uint32_t *map_find(const struct rv_number_map *m, uint64_t key)
{
    if (m->cap == 0)
        return NULL;
    size_t at = place_of(m, key);
    return m->keys[at] == 0 ? NULL : &m->values[at];
}

/* --- Texts --- */

static uint64_t hash_of(rv_str text)
{
    return rv_fnv_add(RV_FNV_START, text) >> 1; /* room behind it for those that share it */
}

uint32_t store_doc_text(struct rv_search_index *x, rv_str text, bool make)
{
    uint64_t h = hash_of(text);

    if (text.len == 0)
        return 0;
    for (;; h++) {
        const uint32_t *known = map_find(&x->texts, h);
        if (known && rv_str_is(text, x->names[*known - 1]))
            return *known;
        if (known)
            continue;
        if (!make || !rv_has_room(&x->names, &x->names_cap, x->n_names + 1, sizeof *x->names))
            return UINT32_MAX;
        x->names[x->n_names] = rv_str_dup(text);
        uint32_t *number = x->names[x->n_names] ? map_at(&x->texts, h) : NULL;
        if (!number) {
            free(x->names[x->n_names]);
            return UINT32_MAX;
        }
        return *number = (uint32_t)++x->n_names;
    }
}

/* --- Docs --- */

static uint64_t row_key(const struct rv_kind *kind, int64_t row)
{
    return (uint64_t)(kind - rv_kinds) << 56 | ((uint64_t)row & ((UINT64_C(1) << 56) - 1));
}

static void remove_doc(struct rv_search_index *x, const struct rv_kind *kind, int64_t row)
{
    const uint32_t *at = map_find(&x->rows, row_key(kind, row));

    if (!at || *at == UINT32_MAX || x->docs[*at].is_dead)
        return;
    x->docs[*at].is_dead = true;
    x->n_dead++;
    if (x->matrix)
        rv_matrix_remove(x->matrix, *at);
}

/* Add a doc; it replaces the one of that row. */
static int add_doc(struct rv_search_index *x, const struct rv_index_doc *doc, size_t *at, rv_err **err)
{
    remove_doc(x, doc->kind, doc->row);
    if (x->n >= RV_INDEX_MAX_DOCS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %zu rows cannot be searched", RV_INDEX_MAX_DOCS);
    uint32_t *place = map_at(&x->rows, row_key(doc->kind, doc->row));
    if (!place || !rv_has_room(&x->docs, &x->cap, x->n + 1, sizeof *x->docs))
        return RV_FAIL(err, RV_E_NOMEM, "keep rows for searching");
    *place = (uint32_t)x->n;
    x->docs[x->n] = *doc;
    *at = x->n++;
    return 0;
}

/* --- Lists --- */

static int post_doc(struct rv_search_index *x, uint32_t term, uint32_t posting, rv_err **err)
{
    uint32_t *at = map_at(&x->terms, term);

    if (at && *at == UINT32_MAX && rv_has_room(&x->lists, &x->lists_cap, x->n_lists + 1, sizeof *x->lists)) {
        x->lists[x->n_lists] = (struct rv_posting_list){0};
        *at = (uint32_t)x->n_lists++;
    }
    if (!at || *at == UINT32_MAX)
        return RV_FAIL(err, RV_E_NOMEM, "keep words for searching");
    struct rv_posting_list *list = &x->lists[*at];
    if (list->n == list->cap) {
        uint32_t cap = list->cap < 4 ? 4 : list->cap + list->cap / 2;
        uint32_t *more = reallocarray(list->at, cap, sizeof *more);
        if (!more)
            return RV_FAIL(err, RV_E_NOMEM, "keep words for searching");
        list->at = more;
        list->cap = cap;
    }
    list->at[list->n++] = posting;
    return 0;
}

const struct rv_posting_list *store_doc_list(const struct rv_search_index *x, uint32_t term)
{
    static const struct rv_posting_list none = {0};
    const uint32_t *at = map_find(&x->terms, term);

    return at && *at != UINT32_MAX ? &x->lists[*at] : &none;
}

static void index_free(struct rv_search_index *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n; i++)
        free(x->docs[i].id);
    for (size_t i = 0; i < x->n_names; i++)
        free(x->names[i]);
    for (size_t i = 0; i < x->n_lists; i++)
        free(x->lists[i].at);
    free(x->docs);
    free(x->names);
    free(x->lists);
    free(x->tenant);
    free(x->provider);
    free(x->owner);
    map_fini(&x->rows);
    map_fini(&x->texts);
    map_fini(&x->terms);
    rv_matrix_free(x->matrix);
    free(x);
}

#define MAX_INDEXES 256 /* three for each user and table that is searched, and ownerless ones: some 80 users */
#define MAX_DOCS    ((size_t)400000) /* of all indexes together, if there is more than one: protects memory */
#define FEW_DEAD    1000 /* removed rows in an index: above it, and above a quarter of all, the index is made again */

struct rv_search_cache {
    struct rv_search_index *at[MAX_INDEXES]; /* owned */
    size_t n;
    int64_t n_searches;
};

void store_search_cache_free(struct rv_search_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        index_free(c->at[i]);
    free(c);
}

static void drop(struct rv_search_cache *c, size_t i)
{
    index_free(c->at[i]);
    c->at[i] = c->at[--c->n];
}

/* --- Rows that changed --- */

static uint32_t number_at(rv_str bytes, size_t at)
{
    uint32_t n;

    memcpy(&n, bytes.ptr + at, sizeof n);
    return le32toh(n);
}

static int add_grams(struct rv_search_index *x, size_t doc, unsigned which, rv_str grams, rv_err **err)
{
    int rc = 0;

    x->docs[doc].size[which] = (uint32_t)(grams.len / 4);
    for (size_t i = 0; i + 4 <= grams.len && rc == 0; i += 4)
        rc = post_doc(x, number_at(grams, i), (uint32_t)doc << 1 | which, err);
    return rc;
}

static int add_words(struct rv_search_index *x, size_t doc, int64_t n_words, rv_str words, rv_err **err)
{
    int rc = 0;

    x->docs[doc].size[0] = n_words > UINT32_MAX ? UINT32_MAX : (uint32_t)n_words;
    for (size_t i = 0; i + 5 <= words.len && rc == 0; i += 5)
        rc = post_doc(x, number_at(words, i), (uint32_t)doc << 8 | (unsigned char)words.ptr[i + 4], err);
    return rc;
}

/* A vector of other dimensions than those before it matches nothing: its provider has changed them. */
static int add_vector(struct rv_search_index *x, size_t doc, int64_t dims, rv_str bytes, rv_err **err)
{
    size_t row = 0;
    float *v = NULL;

    if (!x->matrix && !(x->matrix = rv_matrix_new((size_t)dims)))
        return RV_FAIL(err, RV_E_NOMEM, "keep vectors");
    uint32_t *numbers = calloc(rv_matrix_dims(x->matrix), sizeof *numbers);
    if (!numbers)
        return RV_FAIL(err, RV_E_NOMEM, "keep vectors");
    bool fits = rv_matrix_dims(x->matrix) == (size_t)dims;
    for (size_t i = 0; fits && i < (size_t)dims; i++)
        numbers[i] = number_at(bytes, 4 * i);
    v = (float *)numbers;
    fits = fits && rv_vector_is_finite(v, (size_t)dims);
    int rc = rv_matrix_add(x->matrix, v, &row, err);
    free(numbers);
    if (rc == 0 && (!fits || row != doc))
        rv_matrix_remove(x->matrix, row);
    return rc;
}

static int add_content(struct rv_search_index *x, size_t doc, rv_sql_stmt *stmt, rv_err **err)
{
    int rc = 0;

    switch (x->of) {
    case RV_INDEX_NAMES:
        rc = add_grams(x, doc, 0, sql_value_at(stmt, 8, SQL_BLOB).bytes, err);
        return rc < 0 ? rc : add_grams(x, doc, 1, sql_value_at(stmt, 9, SQL_BLOB).bytes, err);
    case RV_INDEX_WORDS:
        return add_words(x, doc, sql_int_at(stmt, 8), sql_value_at(stmt, 9, SQL_BLOB).bytes, err);
    case RV_INDEX_VECTORS:
        return add_vector(x, doc, sql_int_at(stmt, 8), sql_value_at(stmt, 9, SQL_BLOB).bytes, err);
    case RV_N_INDEXES:
        break;
    }
    return rc;
}

/* A row that cannot be found by this index is not in it. */
static bool has_content(const struct rv_search_index *x, rv_sql_stmt *stmt)
{
    int64_t n = x->of == RV_INDEX_NAMES ? 1 : sql_int_at(stmt, 8);

    if (x->of != RV_INDEX_VECTORS)
        return n > 0;
    return n >= 1 && n <= RV_VECTOR_MAX_DIMS && sql_value_at(stmt, 9, SQL_BLOB).bytes.len == (size_t)n * 4;
}

static int take_row(struct rv_search_index *x, rv_sql_stmt *stmt, rv_err **err)
{
    struct rv_index_doc doc = {.kind = rv_kind_find(sql_str_at(stmt, 0)), .row = sql_int_at(stmt, 1)};
    size_t at = 0;

    if (!doc.kind) /* of a later version */
        return 0;
    if (sql_int_at(stmt, 7) != 0 || !has_content(x, stmt)) {
        remove_doc(x, doc.kind, doc.row);
        return 0;
    }
    if (sql_str_at(stmt, 2).len == 0 && !doc.kind->is_shared)
        return 0;
    doc.category = store_doc_text(x, sql_str_at(stmt, 5), true);
    doc.created_us = sql_int_at(stmt, 6);
    doc.id = rv_str_dup(sql_str_at(stmt, 4));
    if (!doc.id || doc.category == UINT32_MAX) {
        free(doc.id);
        return RV_FAIL(err, RV_E_NOMEM, "keep rows for searching");
    }
    int rc = add_doc(x, &doc, &at, err);
    if (rc < 0) {
        free(doc.id);
        return rc;
    }
    return add_content(x, at, stmt, err);
}

static int read_mark(struct sql_store *st, int64_t *mark, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_TOKENS_MARK);
    int rc = sql_step(stmt, "look for changes", err);

    if (rc == 1)
        *mark = sql_int_at(stmt, 0);
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static rv_sql_stmt *changes_of(struct sql_store *st, const struct rv_search_index *x)
{
    static const enum sql_id all[] = {
        [RV_INDEX_NAMES] = SQL_NAME_TOKENS, [RV_INDEX_WORDS] = SQL_WORD_TOKENS, [RV_INDEX_VECTORS] = SQL_VECTOR_TOKENS};
    RV_EACH_HAS_ROW(all, RV_N_INDEXES);
    static const enum sql_id owned[] = {[RV_INDEX_NAMES] = SQL_NAME_TOKENS_OF,
                                        [RV_INDEX_WORDS] = SQL_WORD_TOKENS_OF,
                                        [RV_INDEX_VECTORS] = SQL_VECTOR_TOKENS_OF};
    RV_EACH_HAS_ROW(owned, RV_N_INDEXES);
    rv_sql_stmt *stmt = sql_use(st, (x->owner ? owned : all)[x->of]);
    int n = 2;

    store_sql_text(stmt, 1, x->tenant);
    sql_int(stmt, 2, x->since);
    if (x->owner)
        store_sql_text(stmt, ++n, x->owner);
    if (x->of != RV_INDEX_NAMES)
        store_sql_text(stmt, ++n, x->kind->name);
    if (x->of == RV_INDEX_VECTORS)
        store_sql_text(stmt, ++n, x->provider);
    return stmt;
}

/* The mark is read first: what changes meanwhile is read again. The owner of a row never changes. */
static int refresh(struct sql_store *st, struct rv_search_index *x, rv_err **err)
{
    int64_t mark = 0;
    int rc = read_mark(st, &mark, err);

    if (rc < 0 || (mark == x->since && st->driver->has_one_writer))
        return rc;
    rv_sql_stmt *stmt = changes_of(st, x);
    while ((rc = sql_step(stmt, "read what changed", err)) == 1) {
        rc = take_row(x, stmt, err);
        if (rc < 0)
            break;
    }
    sql_done(stmt);
    if (rc == 0)
        x->since = mark;
    return rc;
}

/* --- The indexes of a handle --- */

/* The key of an index; members as those of the index. */
struct wanted {
    enum rv_index_of of;
    const char *tenant, *owner, *provider;
    const struct rv_kind *kind;
};

static bool is_same(const struct rv_search_index *x, const struct wanted *w)
{
    return x->of == w->of && x->kind == w->kind && strcmp(x->tenant, w->tenant) == 0 &&
           strcmp(x->provider, w->provider) == 0 && !x->owner == !w->owner &&
           (!x->owner || strcmp(x->owner, w->owner) == 0);
}

static struct rv_search_index *make(const struct wanted *w)
{
    struct rv_search_index *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->of = w->of;
    x->kind = w->kind;
    x->tenant = rv_str_dup(rv_str_of(w->tenant));
    x->provider = rv_str_dup(rv_str_of(w->provider));
    x->owner = w->owner ? rv_str_dup(rv_str_of(w->owner)) : NULL;
    if (x->tenant && x->provider && !x->owner == !w->owner)
        return x;
    index_free(x);
    return NULL;
}

/* The index that was used longest ago, of those that this search does not use; c->n: it uses all. */
static size_t oldest(const struct rv_search_cache *c)
{
    size_t i = c->n;

    for (size_t k = 0; k < c->n; k++)
        if (c->at[k]->used < c->n_searches && (i == c->n || c->at[k]->used < c->at[i]->used))
            i = k;
    return i;
}

static void make_room(struct rv_search_cache *c)
{
    size_t n_docs = 0, i;

    for (i = 0; i < c->n; i++)
        n_docs += c->at[i]->n;
    while ((c->n >= MAX_INDEXES || n_docs > MAX_DOCS) && (i = oldest(c)) < c->n) {
        n_docs -= c->at[i]->n;
        drop(c, i);
    }
}

static int get(rv_store *s, const struct wanted *w, struct rv_search_index **out, rv_err **err)
{
    struct rv_search_cache *c = s->searched;
    size_t i = 0;

    while (i < c->n && !is_same(c->at[i], w))
        i++;
    if (i < c->n && c->at[i]->n_dead > FEW_DEAD && c->at[i]->n_dead > c->at[i]->n / 4) {
        drop(c, i);
        i = c->n;
    }
    if (i == c->n) {
        make_room(c);
        i = c->n;
        if (!(c->at[i] = make(w)))
            return RV_FAIL(err, RV_E_NOMEM, "search");
        c->n++;
    }
    c->at[i]->used = c->n_searches;
    int rc = refresh(s->sql, c->at[i], err);
    if (rc < 0)
        drop(c, i);
    else
        *out = c->at[i];
    return rc;
}

int store_search_indexes_get(rv_store *s, const struct rv_store_scope *scope, const struct rv_index_key *key,
                             struct rv_search_indexes *out, rv_err **err)
{
    const char *owners[] = {scope->user, ""};
    struct wanted w = {
        .of = key->of, .tenant = scope->tenant, .provider = key->provider ? key->provider : "", .kind = key->kind};
    size_t n = scope->user && *scope->user ? 2 : 1;

    *out = (struct rv_search_indexes){0};
    if (!s->searched && !(s->searched = calloc(1, sizeof *s->searched)))
        return RV_FAIL(err, RV_E_NOMEM, "search");
    s->searched->n_searches++;
    for (size_t i = 0; i < n; i++) {
        w.owner = owners[i];
        int rc = get(s, &w, &out->at[i], err);
        if (rc < 0)
            return rc;
        out->n++;
    }
    return 0;
}
