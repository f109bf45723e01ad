/* Filters: what makes two texts alike. Keys, trigrams, embeddings without a model, ranks. */
#include <stdlib.h>

#include "coreengine/app/fn/fn_internal.h"
#include "coreengine/match/match.h"

static int normalize_key(json_object *in, rv_jw *out, rv_err **err)
{
    rv_str id = app_fn_str(in, "id");
    rv_buf key = RV_BUF_INIT(RV_MATCH_MAX_TEXT * 4);

    rv_match_write_key(app_fn_str(in, "name"), &key);
    int rc = rv_buf_check(&key, "key", err);
    if (rc == 0)
        rv_jw_str(out, key.len == 0 && id.ptr ? id : rv_buf_str(&key));
    rv_buf_fini(&key);
    return rc;
}

static int trigram_similarity(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_grams a = {NULL, 0}, b = {NULL, 0};
    int rc = rv_grams_build(app_fn_str(in, "a"), &a, err);

    if (rc == 0)
        rc = rv_grams_build(app_fn_str(in, "b"), &b, err);
    if (rc == 0)
        rv_jw_double(out, rv_float_decimal(rv_grams_similarity(a.at, a.n, b.at, b.n)));
    rv_grams_fini(&a);
    rv_grams_fini(&b);
    return rc;
}

static int embed_text(json_object *in, rv_jw *out, rv_err **err)
{
    rv_str provider = app_fn_str(in, "provider");
    int64_t dims = 0;

    if (!provider.ptr)
        provider = RV_STR_LIT(RV_EMBED_NGRAM);
    if (!rv_json_get_int(in, "dims", &dims))
        dims = rv_str_is(provider, RV_EMBED_LOCAL) ? RV_EMBED_LOCAL_DIMS : RV_EMBED_NGRAM_DIMS;
    if (dims < 1 || dims > RV_VECTOR_MAX_DIMS)
        return RV_FAIL(err, RV_E_INVALID, "dims is %lld, not 1 to %d", (long long)dims, RV_VECTOR_MAX_DIMS);
    float *v = calloc((size_t)dims, sizeof *v);
    if (!v)
        return RV_FAIL(err, RV_E_NOMEM, "embed a text");
    int rc = rv_embed_text(provider, app_fn_str(in, "text"), (size_t)dims, v, err);
    if (rc == 0) {
        rv_jw_arr(out);
        for (int64_t i = 0; i < dims; i++)
            rv_jw_double(out, rv_float_decimal(v[i]));
        rv_jw_arr_end(out);
    }
    free(v);
    return rc;
}

/* --- ranks --- */

struct ranked {
    size_t index;
    double score;
};

static int better(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static void write_ranked(const struct rv_lexical_doc *docs, struct ranked *order, size_t n, rv_jw *out)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked){i, docs[i].score};
    if (n > 1)
        qsort(order, n, sizeof *order, better);
    rv_jw_arr(out);
    for (size_t i = 0; i < n && order[i].score > 0; i++) {
        rv_jw_obj(out);
        rv_jw_kv_int(out, "index", (int64_t)order[i].index);
        rv_jw_key(out, "score");
        rv_jw_double(out, order[i].score);
        rv_jw_obj_end(out);
    }
    rv_jw_arr_end(out);
}

static int rank_texts(const struct rv_terms *query, const char *const *texts, size_t n, rv_jw *out, rv_err **err)
{
    struct rv_terms *terms = calloc(n + 1, sizeof *terms);
    struct rv_lexical_doc *docs = calloc(n + 1, sizeof *docs);
    struct ranked *order = calloc(n + 1, sizeof *order);
    int rc = terms && docs && order ? 0 : RV_FAIL(err, RV_E_NOMEM, "rank texts");

    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = rv_terms_build(rv_str_of(texts[i]), &terms[i], err);
        docs[i].terms = &terms[i];
    }
    if (rc == 0) {
        rv_lexical_rank(query, docs, n);
        write_ranked(docs, order, n, out);
    }
    for (size_t i = 0; terms && i < n; i++)
        rv_terms_fini(&terms[i]);
    free(terms);
    free(docs);
    free(order);
    return rc;
}

static int lexical_rank(json_object *in, rv_jw *out, rv_err **err)
{
    const char **texts = NULL;
    struct rv_terms query = {NULL, 0, 0, NULL};
    size_t n = 0;

    int rc = app_fn_words(in, "texts", &texts, &n, err);
    if (rc == 0)
        rc = rv_terms_build(app_fn_str(in, "query"), &query, err);
    if (rc == 0)
        rc = rank_texts(&query, texts, n, out, err);
    rv_terms_fini(&query);
    free(texts);
    return rc;
}

/* Names of all lists get numbers in order of appearance, which is the order of equal scores. */
struct fusion {
    rv_index names;
    rv_str *texts;            /* by number; owned */
    size_t *items;            /* of all lists, one behind the other; owned */
    struct rv_ranking *lists; /* views of them; owned */
    struct rv_fused *fused;   /* owned */
    size_t n, n_items;
};

static int add_list(struct fusion *f, json_object *list, struct rv_ranking *out, rv_err **err)
{
    size_t *items = f->items + f->n_items, n = 0;

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *name = json_object_array_get_idx(list, i);
        if (!json_object_is_type(name, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "lists must have lists of strings, not %s", rv_json_type_text(name));
        int number = rv_index_get(&f->names, rv_json_str(name));
        if (number < 0) {
            int rc = rv_index_add(&f->names, rv_json_str(name), number = (int)f->n);
            if (rc < 0)
                return RV_FAIL(err, rc, "fuse ranks");
            f->texts[f->n++] = rv_json_str(name);
        }
        bool twice = false; /* the first place of a name counts */
        for (size_t k = 0; k < n && !twice; k++)
            twice = items[k] == (size_t)number;
        if (!twice)
            items[n++] = (size_t)number;
    }
    *out = (struct rv_ranking){items, n};
    f->n_items += n;
    return 0;
}

static int fuse_lists(struct fusion *f, json_object *lists, rv_jw *out, rv_err **err)
{
    size_t n_lists = json_object_array_length(lists), n = 0;

    for (size_t i = 0; i < n_lists; i++) {
        int rc = add_list(f, json_object_array_get_idx(lists, i), &f->lists[i], err);
        if (rc < 0)
            return rc;
    }
    int rc = rv_fuse_ranks(f->lists, n_lists, f->n, f->fused, &n, err);
    if (rc < 0)
        return rc;
    rv_jw_arr(out);
    for (size_t i = 0; i < n; i++) {
        rv_jw_obj(out);
        rv_jw_kv_str(out, "id", f->texts[f->fused[i].item]);
        rv_jw_key(out, "score");
        rv_jw_double(out, f->fused[i].score);
        rv_jw_obj_end(out);
    }
    rv_jw_arr_end(out);
    return 0;
}

static int count_names(json_object *lists, size_t *n, rv_err **err)
{
    *n = 0;
    for (size_t i = 0; i < json_object_array_length(lists); i++) {
        json_object *list = json_object_array_get_idx(lists, i);
        if (!json_object_is_type(list, json_type_array))
            return RV_FAIL(err, RV_E_INVALID, "lists must have lists of strings, not %s", rv_json_type_text(list));
        *n += json_object_array_length(list);
    }
    return *n <= RV_FN_MAX_WORDS ? 0
                                 : RV_FAIL(err, RV_E_LIMIT, "lists have %zu names (at most %d)", *n, RV_FN_MAX_WORDS);
}

static int fuse_ranks(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *lists = rv_json_get_arr(in, "lists");
    struct fusion f = {.n = 0};
    size_t n = 0;

    int rc = count_names(lists, &n, err);
    if (rc < 0)
        return rc;
    f.texts = calloc(n + 1, sizeof *f.texts);
    f.items = calloc(n + 1, sizeof *f.items);
    f.fused = calloc(n + 1, sizeof *f.fused);
    f.lists = calloc(json_object_array_length(lists) + 1, sizeof *f.lists);
    rc = f.texts && f.items && f.fused && f.lists ? fuse_lists(&f, lists, out, err)
                                                  : RV_FAIL(err, RV_E_NOMEM, "fuse ranks");
    rv_index_fini(&f.names);
    free(f.texts);
    free(f.items);
    free(f.fused);
    free(f.lists);
    return rc;
}

static const struct rv_fn items[] = {
    {"normalize_key", "{name: string, id?: word}", "string",
     "the key of a name, by which entities are looked up; `id` if nothing is left of the name", normalize_key},
    {"trigram_similarity", "{a: string, b: string}", "number", "how alike two texts are, 0 to 1, as FUZZY scores them",
     trigram_similarity},
    {"embed_text", "{text: string, provider?: word, dims?: int}", "list of numbers",
     "the vector of a text without a model: provider `hash-ngram` (default, 384 dimensions) or `local` (1536)",
     embed_text},
    {"lexical_rank", "{query: string, texts: words}", "list of {index: int, score: number}",
     "texts that have a word of the query, best first by BM25 over these texts", lexical_rank},
    {"fuse_ranks", "{lists: list}", "list of {id: string, score: number}",
     "lists of names, best first, made into one: the sum of 1 / (60 + rank)", fuse_ranks},
};
const struct rv_fn_group app_fn_group_text = {items, RV_COUNT(items)};
