/* Ranking: rows by the spelling of their names, by words, by vectors, in indexes that have only what the scope sees.
 * Equal scores: the newest first, then by id. */
#include <math.h>
#include <stdlib.h>

#include "coreengine/store/search/search_internal.h"

void rv_search_hits_fini(struct rv_search_hits *hits)
{
    free(hits->at);
    *hits = (struct rv_search_hits){0};
}

/* --- What is searched --- */

#define ANY UINT32_MAX /* category: any */

/* An index, all rows of which the scope sees, and the category that is asked for. */
struct view {
    const struct rv_search_index *x;
    uint32_t category;
};

static struct view view_of(struct rv_search_index *x, rv_str category)
{
    struct view v = {.x = x, .category = ANY};

    if (category.ptr && x->kind && rv_kind_find_field(x->kind, RV_STR_LIT("category"))) {
        v.category = store_doc_text(x, category, false);
        if (v.category == UINT32_MAX || category.len == 0)
            v.category = ANY - 1; /* none has it */
    }
    return v;
}

static bool counts(const struct view *v, size_t i)
{
    const struct rv_index_doc *d = &v->x->docs[i];

    return !d->is_dead && (v->category == ANY || d->category == v->category);
}

/* --- The best --- */

struct found {
    const struct rv_index_doc *doc;
    double score;
};
struct founds {
    struct found *at; /* owned */
    size_t n, cap;
};

static int by_age(const struct rv_index_doc *p, const struct rv_index_doc *q)
{
    if (p->created_us != q->created_us)
        return p->created_us > q->created_us ? -1 : 1;
    int order = strcmp(p->id, q->id);
    if (order != 0)
        return order;
    if (p->kind != q->kind)
        return p->kind < q->kind ? -1 : 1;
    return (p->row > q->row) - (p->row < q->row);
}

static bool is_before(const struct found *a, const struct found *b)
{
    return a->score != b->score ? a->score > b->score : by_age(a->doc, b->doc) < 0;
}

/* A heap of at most cap, with the worst of them on top. */
static void offer(struct founds *f, struct found new)
{
    size_t i, child;

    if (f->n < f->cap) {
        for (i = f->n++; i > 0 && is_before(&f->at[(i - 1) / 2], &new); i = (i - 1) / 2)
            f->at[i] = f->at[(i - 1) / 2];
        f->at[i] = new;
        return;
    }
    if (f->n == 0 || !is_before(&new, &f->at[0]))
        return;
    for (i = 0; (child = 2 * i + 1) < f->n; i = child) {
        if (child + 1 < f->n && is_before(&f->at[child], &f->at[child + 1]))
            child++;
        if (!is_before(&new, &f->at[child]))
            break;
        f->at[i] = f->at[child];
    }
    f->at[i] = new;
}

/* The best ones in order, as hits. */
static int give(const struct founds *f, struct rv_search_hits *out, rv_err **err)
{
    struct rv_search_hit *hits = calloc(f->n + 1, sizeof *hits);

    if (!hits)
        return RV_FAIL(err, RV_E_NOMEM, "search");
    /* At most RV_SEARCH_MAX_LIMIT, and mostly ten: each goes to its place. */
    for (size_t i = 1; i < f->n; i++) {
        struct found x = f->at[i];
        size_t k = i;
        for (; k > 0 && is_before(&x, &f->at[k - 1]); k--)
            f->at[k] = f->at[k - 1];
        f->at[k] = x;
    }
    for (size_t i = 0; i < f->n; i++) {
        const struct rv_index_doc *d = f->at[i].doc;
        hits[i] = (struct rv_search_hit){.kind = d->kind, .row = d->row, .score = f->at[i].score};
    }
    out->at = hits;
    out->n = f->n;
    return 0;
}

/* --- Names --- */

static int rank_names(const struct rv_search_index *x, const struct rv_grams *query, double threshold,
                      struct founds *best, struct rv_search_hits *out, rv_err **err)
{
    uint32_t *shared = calloc(2 * x->n + 1, sizeof *shared); /* of key and summary of each doc */

    if (!shared)
        return RV_FAIL(err, RV_E_NOMEM, "search");
    for (size_t i = 0; i < query->n; i++) {
        const struct rv_posting_list *list = store_doc_list(x, query->at[i]);
        for (uint32_t k = 0; k < list->n; k++)
            shared[list->at[k]]++;
    }
    for (size_t i = 0; i < x->n; i++) {
        if ((shared[2 * i] == 0 && shared[2 * i + 1] == 0 && threshold > 0) || x->docs[i].is_dead)
            continue;
        float key = rv_grams_score(shared[2 * i], query->n, x->docs[i].size[0]);
        float summary = rv_grams_score(shared[2 * i + 1], query->n, x->docs[i].size[1]);
        float score = key > summary ? key : summary;
        if (score >= (float)threshold)
            offer(best, (struct found){&x->docs[i], rv_float_decimal(score)});
    }
    free(shared);
    out->n_rows += x->n - x->n_dead;
    return 0;
}

static int check(const struct rv_store_scope *scope, struct rv_store_scope *sc, rv_str text, double least, size_t limit,
                 rv_err **err)
{
    int rc = store_check_scope(scope, sc, err);

    if (rc == 0)
        rc = store_check_bytes("text", text, RV_SEARCH_MAX_TEXT, err);
    if (rc == 0 && (limit < 1 || limit > RV_SEARCH_MAX_LIMIT))
        rc = RV_FAIL(err, RV_E_INVALID, "a limit of %zu: use 1 to %d", limit, RV_SEARCH_MAX_LIMIT);
    if (rc == 0 && !(least >= 0 && least <= 1))
        rc = RV_FAIL(err, RV_E_INVALID, "a least score of %g: use 0 to 1", least);
    return rc;
}

static int begin(struct founds *best, size_t limit, rv_err **err)
{
    *best = (struct founds){.at = calloc(limit, sizeof *best->at), .cap = limit};
    return best->at ? 0 : RV_FAIL(err, RV_E_NOMEM, "search");
}

/* A group may be undone: an index that has its rows is not kept. */
static int leave(rv_store *s, int rc, struct rv_search_hits *out, rv_err **err)
{
    if (s->in_group) {
        store_search_cache_free(s->searched);
        s->searched = NULL;
    }
    rc = store_leave_read(s, rc, err);
    if (rc < 0)
        rv_search_hits_fini(out);
    return rc;
}

static int search_names(rv_store *s, const struct rv_store_scope *scope, const struct rv_name_search *q,
                        struct rv_search_hits *out, rv_err **err)
{
    struct rv_search_indexes in;
    struct founds best = {0};
    struct rv_grams query = {0};
    int rc = store_search_indexes_get(s, scope, &(const struct rv_index_key){.of = RV_INDEX_NAMES}, &in, err);

    if (rc == 0)
        rc = rv_grams_build(q->text, &query, err);
    if (rc == 0)
        rc = begin(&best, q->limit, err);
    for (size_t i = 0; i < in.n && rc == 0; i++)
        rc = rank_names(in.at[i], &query, q->threshold, &best, out, err);
    if (rc == 0)
        rc = give(&best, out, err);
    rv_grams_fini(&query);
    free(best.at);
    return rc;
}

int rv_store_search_names(rv_store *s, const struct rv_store_scope *scope, const struct rv_name_search *query,
                          struct rv_search_hits *out, rv_err **err)
{
    struct rv_store_scope sc;
    int rc = check(scope, &sc, query->text, query->threshold, query->limit, err);

    *out = (struct rv_search_hits){0};
    if ((rc = store_enter_read(s, rc, "search names", err)) != 0)
        return rc;
    return leave(s, search_names(s, &sc, query, out, err), out, err);
}

static int read_key(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_search_hit *hit,
                    rv_buf *key, rv_buf *summary, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_KEY_OF_ROW);

    store_sql_text(stmt, 1, hit->kind->name);
    sql_int(stmt, 2, hit->row);
    store_sql_text(stmt, 3, scope->tenant);
    store_sql_text(stmt, 4, scope->user);
    int rc = sql_step(stmt, "read a key", err);
    if (rc == 1) {
        rv_buf_add_str(key, sql_str_at(stmt, 0));
        rv_buf_add_str(summary, sql_str_at(stmt, 1));
        rc = rv_buf_check(key, "key", err);
        if (rc == 0)
            rc = rv_buf_check(summary, "summary", err);
    } else if (rc == 0) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "no key of row %lld of %s", (long long)hit->row, hit->kind->name);
    }
    sql_done(stmt);
    return rc;
}

int rv_store_read_key(rv_store *s, const struct rv_store_scope *scope, const struct rv_search_hit *hit, rv_buf *key,
                      rv_buf *summary, rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_enter_read(s, store_check_scope(scope, &sc, err), "read key", err);

    return rc != 0 ? rc : store_leave_read(s, read_key(s->sql, &sc, hit, key, summary, err), err);
}

/* --- Words --- */

struct tally {
    size_t n;       /* rows in scope that have words */
    double average; /* words of one */
};

static struct tally tally_of(const struct view *v, size_t n)
{
    struct tally t = {0};
    double total = 0;

    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < v[k].x->n; i++)
            if (counts(&v[k], i)) {
                t.n++;
                total += v[k].x->docs[i].size[0];
            }
    t.average = t.n > 0 ? total / (double)t.n : 0;
    return t;
}

/* The postings of a doc are together: a word that its name and its text have has two. */
static size_t count_with(const struct view *v, const struct rv_posting_list *list)
{
    size_t n = 0;

    for (uint32_t i = 0; i < list->n; i++)
        n += (i == 0 || list->at[i] >> 8 != list->at[i - 1] >> 8) && counts(v, list->at[i] >> 8);
    return n;
}

static void add_word(const struct view *v, const struct tally *t, const struct rv_posting_list *list, double rarity,
                     double *scores)
{
    for (uint32_t i = 0; i < list->n; i++) {
        size_t doc = list->at[i] >> 8;
        uint32_t count = list->at[i] & 0xff;
        if (i + 1 < list->n && list->at[i + 1] >> 8 == doc)
            count += list->at[++i] & 0xff;
        if (counts(v, doc))
            scores[doc] += rv_lexical_part(rarity, count, (double)v->x->docs[doc].size[0] / t->average);
    }
}

/* How rare a word is, and how long rows are, is counted over all views together. scores: one list for each view. */
static double score_words(const struct view *v, size_t n, const struct tally *t, const struct rv_terms *query,
                          double *const *scores)
{
    double most = 0;

    for (size_t i = 0; i < query->n; i++) {
        uint32_t word = store_word_hash(query->at[i].text);
        size_t n_with = 0;
        for (size_t k = 0; k < n; k++)
            n_with += count_with(&v[k], store_doc_list(v[k].x, word));
        double rarity = rv_lexical_rarity(t->n, n_with);
        most += rv_lexical_most(rarity);
        for (size_t k = 0; k < n && n_with > 0; k++)
            add_word(&v[k], t, store_doc_list(v[k].x, word), rarity, scores[k]);
    }
    return most;
}

static int rank_words(const struct view *v, size_t n, const struct rv_terms *query, struct founds *best,
                      struct rv_search_hits *out, rv_err **err)
{
    const struct tally t = tally_of(v, n);
    double *scores[2] = {NULL, NULL};
    int rc = 0;

    for (size_t k = 0; k < n && rc == 0; k++)
        if (!(scores[k] = calloc(v[k].x->n + 1, sizeof *scores[k])))
            rc = RV_FAIL(err, RV_E_NOMEM, "search");
    double most = rc == 0 ? score_words(v, n, &t, query, scores) : 0;
    for (size_t k = 0; k < n && rc == 0; k++)
        for (size_t i = 0; i < v[k].x->n; i++)
            if (scores[k][i] > 0)
                offer(best, (struct found){&v[k].x->docs[i], scores[k][i] / most});
    free(scores[0]);
    free(scores[1]);
    out->n_rows = t.n;
    return rc;
}

static int kind_of(const char *name, const struct rv_kind **kind, rv_err **err)
{
    int rc = rv_kind_of(rv_str_of(name), kind, err);

    if (rc == 0 && !(*kind)->embedded) {
        rc = RV_FAIL(err, RV_E_INVALID, "%s have no field that is searched", name);
        rv_err_set_hint(err, "FUZZY and LOOKUP find them by their names");
    }
    return rc;
}

static int search_words(const struct rv_search_indexes *in, const struct rv_search_rows *rows, rv_str text,
                        struct rv_search_hits *out, rv_err **err)
{
    struct founds best = {0};
    struct rv_terms query = {0};
    int rc = rv_terms_build(text, &query, err);

    if (rc == 0)
        rc = begin(&best, rows->limit, err);
    if (rc == 0) {
        struct view v[2];
        for (size_t i = 0; i < in->n; i++)
            v[i] = view_of(in->at[i], rows->category);
        rc = rank_words(v, in->n, &query, &best, out, err);
    }
    if (rc == 0)
        rc = give(&best, out, err);
    rv_terms_fini(&query);
    free(best.at);
    return rc;
}

int rv_store_search_words(rv_store *s, const struct rv_store_scope *scope, const struct rv_search_rows *rows,
                          rv_str text, struct rv_search_hits *out, rv_err **err)
{
    struct rv_search_indexes in;
    struct rv_store_scope sc;
    const struct rv_kind *kind = NULL;
    int rc = check(scope, &sc, text, 0, rows->limit, err);

    *out = (struct rv_search_hits){0};
    if (rc == 0)
        rc = kind_of(rows->kind, &kind, err);
    if ((rc = store_enter_read(s, rc, "search words", err)) != 0)
        return rc;
    rc = store_search_indexes_get(s, &sc, &(const struct rv_index_key){.of = RV_INDEX_WORDS, .kind = kind}, &in, err);
    return leave(s, rc != 0 ? rc : search_words(&in, rows, text, out, err), out, err);
}

/* --- Vectors --- */

static bool admit(void *self, size_t row)
{
    return counts(self, row);
}

static int order(void *self, size_t a, size_t b)
{
    const struct rv_index_doc *docs = ((const struct view *)self)->x->docs;

    return by_age(&docs[a], &docs[b]);
}

static int fail_dims(const struct rv_search_rows *rows, size_t has, rv_err **err)
{
    RV_FAIL(err, RV_E_INVALID, "the query has a vector of %zu dimensions, the rows of %s have %zu", rows->dims,
            rows->kind, has);
    rv_err_set_hint(err,
                    "name the model and its dimensions as they were when the rows were embedded, or embed them again");
    return RV_E_INVALID;
}

static int rank_vectors(struct view *v, const struct rv_search_rows *rows, struct founds *best, rv_err **err)
{
    struct rv_vector_hit *hits = calloc(rows->limit, sizeof *hits);
    const struct rv_vector_query query = {.vector = rows->vector,
                                          .limit = rows->limit,
                                          .min_score = rows->min_score,
                                          .admit = admit,
                                          .order = order,
                                          .self = v};
    size_t n = 0;
    int rc = hits ? rv_matrix_search(v->x->matrix, &query, hits, &n, err) : RV_FAIL(err, RV_E_NOMEM, "search");

    for (size_t i = 0; i < n; i++)
        offer(best, (struct found){&v->x->docs[hits[i].row], hits[i].score});
    free(hits);
    return rc;
}

static int search_vectors(rv_store *s, const struct rv_store_scope *scope, const struct rv_kind *kind,
                          const struct rv_search_rows *rows, struct rv_search_hits *out, rv_err **err)
{
    struct rv_search_indexes in;
    struct founds best = {0};
    int rc = store_search_indexes_get(
        s, scope, &(const struct rv_index_key){.of = RV_INDEX_VECTORS, .kind = kind, .provider = rows->provider}, &in,
        err);

    if (rc == 0)
        rc = begin(&best, rows->limit, err);
    for (size_t i = 0; i < in.n && rc == 0; i++) {
        struct rv_search_index *x = in.at[i];
        struct view v = view_of(x, rows->category);
        out->n_rows += x->n - x->n_dead;
        if (x->n == x->n_dead)
            continue;
        if (rv_matrix_dims(x->matrix) != rows->dims)
            rc = fail_dims(rows, rv_matrix_dims(x->matrix), err);
        else
            rc = rank_vectors(&v, rows, &best, err);
    }
    if (rc == 0)
        rc = give(&best, out, err);
    free(best.at);
    return rc;
}

int rv_store_search_vectors(rv_store *s, const struct rv_store_scope *scope, const struct rv_search_rows *rows,
                            struct rv_search_hits *out, rv_err **err)
{
    struct rv_store_scope sc;
    const struct rv_kind *kind = NULL;
    int rc = check(scope, &sc, (rv_str){"", 0}, rows->min_score, rows->limit, err);

    *out = (struct rv_search_hits){0};
    if (rc == 0)
        rc = kind_of(rows->kind, &kind, err);
    if (rc == 0)
        rc = store_check_text("provider", rows->provider, RV_EMBED_MAX_NAME, err);
    if (rc == 0 && (!rows->vector || rows->dims < 1 || rows->dims > RV_VECTOR_MAX_DIMS))
        rc = RV_FAIL(err, RV_E_INVALID, "a vector of %zu dimensions: use 1 to %d", rows->dims, RV_VECTOR_MAX_DIMS);
    if ((rc = store_enter_read(s, rc, "search vectors", err)) != 0)
        return rc;
    return leave(s, search_vectors(s, &sc, kind, rows, out, err), out, err);
}
