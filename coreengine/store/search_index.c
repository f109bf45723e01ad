/* What a handle keeps in memory to search a tenant's rows: the rows themselves (docs), lists of those that have a
 * trigram or a word, or a matrix of their vectors. A row that changes gets a new doc and its old one is dead; the
 * matrix alone has one for each row. */
#include <stdlib.h>

#include "coreengine/store/search_internal.h"

/* --- Maps --- */

static size_t place_of(const struct rv_number_map *m, uint64_t key)
{
    uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);
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
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.ptr[i]) * UINT64_C(0x100000001b3);
    return h >> 1; /* room behind it for those that share it */
}

uint32_t rv_doc_text(struct rv_search_index *x, rv_str text, bool make)
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

void rv_doc_remove(struct rv_search_index *x, const struct rv_kind *kind, int64_t row)
{
    const uint32_t *at = map_find(&x->rows, row_key(kind, row));

    if (!at || *at == UINT32_MAX || x->docs[*at].is_dead)
        return;
    x->docs[*at].is_dead = true;
    x->n_dead++;
    if (x->matrix)
        rv_matrix_remove(x->matrix, *at);
}

int rv_doc_add(struct rv_search_index *x, const struct rv_index_doc *doc, size_t *at, rv_err **err)
{
    rv_doc_remove(x, doc->kind, doc->row);
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

int rv_doc_post(struct rv_search_index *x, uint32_t term, uint32_t posting, rv_err **err)
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

const struct rv_posting_list *rv_doc_list(const struct rv_search_index *x, uint32_t term)
{
    static const struct rv_posting_list none = {0};
    const uint32_t *at = map_find(&x->terms, term);

    return at && *at != UINT32_MAX ? &x->lists[*at] : &none;
}

void rv_search_index_free(struct rv_search_index *x)
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
