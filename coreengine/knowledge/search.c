/* SEARCH: rows of one table by the vector of a text, by its words, or by both. */
#include "coreengine/knowledge/knowledge.h"
#include "coreengine/match/match.h"
#include "coreengine/store/store.h"

#include <stdio.h>
#include <stdlib.h>

#define FUSED_LEAST 50 /* rows of each list that are fused, at least; else four times the limit */

static int is_gone(int rc, rv_err *why, rv_err **err)
{
    if (rc != RV_E_NOT_FOUND) {
        rv_err_pass(err, why);
        return rc;
    }
    rv_err_free(why);
    return rc == RV_E_NOT_FOUND ? 0 : rc;
}

/* The row of a hit; *out stays NULL if another process has deleted it meanwhile. */
static int load_hit(rv_store *s, const struct rv_store_scope *scope, const struct rv_search_hit *hit, json_object **out,
                    rv_err **err)
{
    rv_err *why = NULL;
    int rc = rv_store_load_entity(s, scope, hit->kind->name, hit->row, out, &why);

    return rc < 0 ? is_gone(rc, why, err) : 0;
}

/* --- One search --- */

struct search {
    rv_store *s;
    const struct rv_store_scope *scope;
    const struct rv_knowledge_search *query;
    struct rv_search_rows rows;
    char *table;                     /* owned */
    float *vector;                   /* owned; of the query */
    rv_buf provider;                 /* of the store, when the query names none */
    json_object *results, *warnings; /* owned */
};

static int warn(struct search *q, const char *text, rv_err **err)
{
    return rv_json_push_take(q->warnings, json_object_new_string(text), err);
}

/* --- The vector of the query --- */

static int embed_here(struct search *q, rv_err **err)
{
    bool is_ngram = strcmp(q->rows.provider, RV_EMBED_NGRAM) == 0;

    q->rows.dims = is_ngram ? RV_EMBED_NGRAM_DIMS : RV_EMBED_LOCAL_DIMS;
    q->vector = calloc(q->rows.dims, sizeof *q->vector);
    if (!q->vector)
        return RV_FAIL(err, RV_E_NOMEM, "embed a query");
    return rv_embed_text(rv_str_of(q->rows.provider), q->query->text, q->rows.dims, q->vector, err);
}

/* Words decide when the provider fails. */
static int embed_there(struct search *q, rv_err **err)
{
    const struct rv_knowledge_embedder *e = q->query->embedder;
    rv_buf text = RV_BUF_INIT(2000);
    struct rv_knowledge_vectors made = {NULL, 0};
    rv_err *why = NULL;
    int rc = e ? e->embed(e->self, q->rows.provider, &q->query->text, 1, &made, &why)
               : RV_FAIL(&why, RV_E_STATE, "no request may be made here");

    if (rc < 0) {
        rv_buf_printf(&text, "\"%s\" embeds nothing now, the rows are ranked by their words: ", q->rows.provider);
        rv_err_write_chain(why, &text);
        rc = warn(q, rv_buf_cstr(&text), err);
    } else {
        q->vector = made.values;
        q->rows.dims = made.dims;
    }
    rv_err_free(why);
    rv_buf_fini(&text);
    return rc;
}

static int make_vector(struct search *q, rv_err **err)
{
    int rc = 0;

    if (!q->query->provider) {
        rc = rv_store_read_embedding_provider(q->s, &q->provider, err);
        q->rows.provider = rv_buf_cstr(&q->provider);
    }
    if (rc == 0)
        rc = rv_embedding_is_local(q->rows.provider) ? embed_here(q, err) : embed_there(q, err);
    q->rows.vector = q->vector;
    return rc;
}

/* --- Results --- */

/* A row and its scores; match NULL: by its vector, as SEARCH has always said it. */
struct result {
    struct rv_search_hit hit;
    const char *match;
    bool has_score;
    double rank_score; /* 0: none */
};

static int add(struct search *q, const struct result *r, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *row = NULL;
    int rc = load_hit(q->s, q->scope, &r->hit, &row, err);

    if (rc < 0 || !row)
        return rc;
    json_object *element = rv_json_build(&b, q->results, NULL, json_object_new_object());
    rv_json_build_text(&b, element, "entity_type", r->hit.kind->name);
    if (r->has_score)
        rv_json_build(&b, element, "similarity_score", rv_json_new_double(r->hit.score));
    else if (b.rc == 0)
        b.rc = rv_json_set_null(element, "similarity_score", err);
    if (r->match)
        rv_json_build_text(&b, element, "match", r->match);
    if (r->rank_score > 0)
        rv_json_build(&b, element, "rank_score", rv_json_new_double(r->rank_score));
    rv_json_build(&b, element, "data", row);
    return b.rc;
}

static int add_all(struct search *q, const struct rv_search_hits *hits, const char *match, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < hits->n && rc == 0; i++)
        rc = add(q, &(struct result){.hit = hits->at[i], .match = match, .has_score = true}, err);
    return rc;
}

/* --- Ways to rank --- */

static int by_words(struct search *q, rv_err **err)
{
    struct rv_search_hits hits;
    int rc = rv_store_search_words(q->s, q->scope, &q->rows, q->query->text, &hits, err);

    if (rc == 0)
        rc = add_all(q, &hits, "lexical", err);
    rv_search_hits_fini(&hits);
    return rc;
}

static int warn_of_size(struct search *q, const struct rv_search_hits *hits, rv_err **err)
{
    char text[200];

    if (hits->n_rows <= RV_SEARCH_SLOW_ROWS)
        return 0;
    snprintf(text, sizeof text, "%s has %zu rows with vectors: each search compares all of them", q->table,
             hits->n_rows);
    return warn(q, text, err);
}

static int by_vectors(struct search *q, rv_err **err)
{
    struct rv_search_hits hits;
    int rc = rv_store_search_vectors(q->s, q->scope, &q->rows, &hits, err);

    if (rc == 0)
        rc = warn_of_size(q, &hits, err);
    if (rc == 0)
        rc = hits.n_rows == 0 ? by_words(q, err) : add_all(q, &hits, NULL, err);
    rv_search_hits_fini(&hits);
    return rc;
}

/* The rows of two lists, each once: those of the first one, then those that only the second one has. */
struct both {
    struct result *at;      /* owned */
    size_t *first, *second; /* the lists, as numbers of rows; owned */
    size_t n;
};

static bool is_same(const struct rv_search_hit *a, const struct rv_search_hit *b)
{
    return a->kind == b->kind && a->row == b->row;
}

static int unite(const struct rv_search_hits *vectors, const struct rv_search_hits *words, struct both *u, rv_err **err)
{
    size_t room = vectors->n + words->n + 1;

    u->at = calloc(room, sizeof *u->at);
    u->first = calloc(room, sizeof *u->first);
    u->second = calloc(room, sizeof *u->second);
    if (!u->at || !u->first || !u->second)
        return RV_FAIL(err, RV_E_NOMEM, "search");
    for (; u->n < vectors->n; u->n++) {
        u->at[u->n] = (struct result){.hit = vectors->at[u->n], .match = "vector", .has_score = true};
        u->first[u->n] = u->n;
    }
    for (size_t i = 0; i < words->n; i++) {
        size_t k = 0;
        while (k < vectors->n && !is_same(&vectors->at[k], &words->at[i]))
            k++;
        if (k < vectors->n)
            u->at[k].match = "both";
        else
            u->at[k = u->n++] = (struct result){.hit = words->at[i], .match = "lexical"};
        u->second[i] = k;
    }
    return 0;
}

static int add_fused(struct search *q, struct both *u, const struct rv_search_hits *vectors,
                     const struct rv_search_hits *words, rv_err **err)
{
    const struct rv_ranking lists[] = {{u->first, vectors->n}, {u->second, words->n}};
    struct rv_fused *fused = calloc(u->n + 1, sizeof *fused);
    size_t n = 0;
    int rc = fused ? rv_fuse_ranks(lists, RV_COUNT(lists), u->n, fused, &n, err) : RV_FAIL(err, RV_E_NOMEM, "search");

    for (size_t i = 0; i < n && i < q->query->limit && rc == 0; i++) {
        u->at[fused[i].item].rank_score = fused[i].score;
        rc = add(q, &u->at[fused[i].item], err);
    }
    free(fused);
    return rc;
}

static int by_both(struct search *q, rv_err **err)
{
    struct rv_search_hits vectors = {0}, words = {0};
    struct both u = {0};
    size_t wide = q->query->limit * 4 < FUSED_LEAST ? FUSED_LEAST : q->query->limit * 4;

    q->rows.limit = wide < RV_SEARCH_MAX_LIMIT ? wide : RV_SEARCH_MAX_LIMIT;
    int rc = q->vector ? rv_store_search_vectors(q->s, q->scope, &q->rows, &vectors, err) : 0;
    if (rc == 0)
        rc = warn_of_size(q, &vectors, err);
    if (rc == 0)
        rc = rv_store_search_words(q->s, q->scope, &q->rows, q->query->text, &words, err);
    if (rc == 0)
        rc = unite(&vectors, &words, &u, err);
    if (rc == 0)
        rc = add_fused(q, &u, &vectors, &words, err);
    free(u.at);
    free(u.first);
    free(u.second);
    rv_search_hits_fini(&vectors);
    rv_search_hits_fini(&words);
    return rc;
}

static int search(struct search *q, rv_err **err)
{
    int rc = q->query->rank == RV_RANK_LEXICAL ? 0 : make_vector(q, err);

    if (rc < 0)
        return rc;
    switch (q->query->rank) {
    case RV_RANK_COSINE:
        return q->vector ? by_vectors(q, err) : by_words(q, err);
    case RV_RANK_HYBRID:
        return by_both(q, err);
    case RV_RANK_LEXICAL:
        return by_words(q, err);
    }
    return rc;
}

int rv_knowledge_search(rv_store *s, const struct rv_store_scope *scope, const struct rv_knowledge_search *query,
                        json_object **out, json_object **warnings, rv_err **err)
{
    struct search q = {.s = s,
                       .scope = scope,
                       .query = query,
                       .provider = RV_BUF_INIT(RV_EMBED_MAX_NAME),
                       .table = rv_str_dup(query->table),
                       .results = json_object_new_array(),
                       .warnings = json_object_new_array()};
    int rc = q.table && q.results && q.warnings ? 0 : RV_FAIL(err, RV_E_NOMEM, "search");

    q.rows = (struct rv_search_rows){.kind = q.table,
                                     .category = query->category,
                                     .limit = query->limit,
                                     .provider = query->provider,
                                     .min_score = query->min_similarity};
    if (rc == 0 && query->text.len > RV_SEARCH_MAX_TEXT)
        rc = RV_FAIL(err, RV_E_LIMIT, "a text of %zu bytes is too long to search for (at most %zu)", query->text.len,
                     RV_SEARCH_MAX_TEXT);
    if (rc == 0)
        rc = search(&q, err);
    free(q.table);
    free(q.vector);
    rv_buf_fini(&q.provider);
    if (rc == 0 && warnings)
        *warnings = json_object_get(q.warnings);
    if (rc == 0)
        *out = json_object_get(q.results);
    json_object_put(q.warnings);
    json_object_put(q.results);
    return rc;
}

/* --- FUZZY: rows of all kinds whose key or summary is spelled like a text --- */

#define MAX_SUMMARY ((size_t)2048) /* bytes of a row's summary in a result: a model reads up to 200 rows */

static int set_from(json_object *data, const char *name, json_object *row, rv_err **err)
{
    json_object *v = NULL;

    json_object_object_get_ex(row, name, &v);
    return rv_json_set_ref(data, name, v, err);
}

static int fill(json_object *data, const struct rv_search_hit *hit, json_object *row, rv_str key, rv_str summary,
                rv_err **err)
{
    int rc = set_from(data, "id", row, err);

    if (rc == 0)
        rc = rv_json_set_str(data, "key", key, err);
    if (rc == 0)
        rc = rv_json_set_text(data, "type", hit->kind->name, err);
    if (rc == 0)
        rc = rv_json_set_str(data, "summary", summary, err);
    if (rc == 0)
        rc = set_from(data, "metadata", row, err);
    return rc < 0 ? rc : set_from(data, "graph_edges", row, err);
}

static int add_name(json_object *list, const struct rv_search_hit *hit, json_object *row, rv_str key, rv_str summary,
                    rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *element = rv_json_build(&b, list, NULL, json_object_new_object());

    rv_json_build_text(&b, element, "entity_type", hit->kind->name);
    rv_json_build(&b, element, "similarity_score", rv_json_new_double(hit->score));
    json_object *data = rv_json_build(&b, element, "data", json_object_new_object());
    return b.rc < 0 ? b.rc : fill(data, hit, row, key, summary, err);
}

static int add_hit(rv_store *s, const struct rv_store_scope *scope, const struct rv_search_hit *hit, json_object *list,
                   rv_err **err)
{
    rv_buf key = RV_BUF_INIT(RV_ENTITY_MAX_KEY), summary = RV_BUF_INIT(MAX_SUMMARY);
    json_object *row = NULL;
    rv_err *why = NULL;
    int rc = load_hit(s, scope, hit, &row, err);

    if (row) {
        rc = rv_store_read_key(s, scope, hit, &key, &summary, &why);
        rc = rc == 0 ? add_name(list, hit, row, rv_buf_str(&key), rv_buf_str(&summary), err) : is_gone(rc, why, err);
    }
    json_object_put(row);
    rv_buf_fini(&key);
    rv_buf_fini(&summary);
    return rc;
}

int rv_knowledge_search_fuzzy(rv_store *s, const struct rv_store_scope *scope, const struct rv_knowledge_fuzzy *query,
                              json_object **out, rv_err **err)
{
    struct rv_search_hits hits = {0};
    json_object *list = NULL;
    int rc = rv_store_search_names(s, scope, &(struct rv_name_search){query->text, query->threshold, query->limit},
                                   &hits, err);

    if (rc == 0 && !(list = json_object_new_array()))
        rc = RV_FAIL(err, RV_E_NOMEM, "search names");
    for (size_t i = 0; i < hits.n && rc == 0; i++)
        rc = add_hit(s, scope, &hits.at[i], list, err);
    rv_search_hits_fini(&hits);
    if (rc == 0)
        *out = list;
    else
        json_object_put(list);
    return rc;
}
