/* Work at the queue of vectors: rows are claimed, their texts embedded in one call, the vectors kept. */
#include <stdlib.h>

#include "coreengine/knowledge/knowledge.h"
#include "coreengine/match/match.h"
#include "coreengine/store/store.h"

#define BATCH 20 /* texts of one request, unless told otherwise */

struct work {
    rv_store *s;
    const struct rv_knowledge_embed *how;
    rv_buf provider;
    struct rv_knowledge_embedded done;
    rv_err **why; /* of the last failure of the provider; NULL: not wanted */
};

static int64_t now_of(const struct work *w)
{
    return w->how->clock.now_us(w->how->clock.self);
}

static int embed_here(const char *provider, const rv_str *texts, size_t n, struct rv_knowledge_vectors *out,
                      rv_err **err)
{
    size_t each = strcmp(provider, RV_EMBED_NGRAM) == 0 ? RV_EMBED_NGRAM_DIMS : RV_EMBED_LOCAL_DIMS;
    float *rows = calloc(n * each, sizeof *rows);
    int rc = rows ? 0 : RV_FAIL(err, RV_E_NOMEM, "embed rows");

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = rv_embed_text(rv_str_of(provider), texts[i], each, rows + i * each, err);
    if (rc < 0) {
        free(rows);
        return rc;
    }
    *out = (struct rv_knowledge_vectors){rows, each};
    return 0;
}

static int embed(const struct work *w, const rv_str *texts, size_t n, struct rv_knowledge_vectors *out, rv_err **err)
{
    const char *provider = rv_buf_cstr(&w->provider);
    const struct rv_knowledge_embedder *e = w->how->embedder;

    if (rv_embedding_is_local(provider))
        return embed_here(provider, texts, n, out, err);
    return e->embed(e->self, provider, texts, n, out, err);
}

/* An attempt of each of the rows. */
static int fail_rows(struct work *w, const struct rv_embedding *const *rows, size_t n, rv_err *why, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(4000);
    int rc = 0;

    rv_err_write_chain(why, &text);
    for (size_t i = 0; i < n && rc == 0; i++) {
        bool failed = false;
        rc = rv_store_fail_embedding(w->s, rows[i], rv_buf_cstr(&text), &failed, err);
        w->done.failed += failed;
    }
    rv_buf_fini(&text);
    if (w->why) {
        rv_err_free(*w->why);
        *w->why = why;
    } else {
        rv_err_free(why);
    }
    return rc;
}

static int keep_rows(struct work *w, const struct rv_embedding *const *rows, size_t n, const float *values, size_t dims,
                     rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = rv_store_put_vector(w->s, rows[i], &(struct rv_vector){rv_buf_cstr(&w->provider), values + i * dims, dims},
                                 now_of(w), err);
        w->done.processed += rc == 0;
    }
    return rc;
}

/* Those that have a text that is new; the others are done with. */
static int choose(struct work *w, const struct rv_embeddings_claimed *claimed, const struct rv_embedding **rows,
                  rv_str *texts, size_t *n, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < claimed->n && rc == 0; i++) {
        const struct rv_embedding *e = &claimed->at[i];
        if (e->is_current || !*e->text) {
            rc = rv_store_skip_embedding(w->s, e, err);
            w->done.skipped += rc == 0;
            continue;
        }
        texts[*n] = rv_str_of(e->text);
        rows[(*n)++] = e;
    }
    return rc;
}

static int embed_batch(struct work *w, const struct rv_embeddings_claimed *claimed, bool *failed, rv_err **err)
{
    const struct rv_embedding *rows[RV_EMBED_MAX_BATCH];
    rv_str texts[RV_EMBED_MAX_BATCH];
    struct rv_knowledge_vectors made = {NULL, 0};
    rv_err *why = NULL;
    size_t n = 0;
    int rc = choose(w, claimed, rows, texts, &n, err);

    if (rc < 0 || n == 0)
        return rc;
    if (embed(w, texts, n, &made, &why) < 0) {
        *failed = true;
        return fail_rows(w, rows, n, why, err);
    }
    rc = keep_rows(w, rows, n, made.values, made.dims, err);
    free(made.values);
    return rc;
}

static size_t left_of(const struct work *w, size_t n_claimed)
{
    size_t batch = w->how->batch ? w->how->batch : BATCH;

    if (w->how->limit == 0)
        return batch;
    size_t left = n_claimed < w->how->limit ? w->how->limit - n_claimed : 0;
    return left < batch ? left : batch;
}

/* A provider that fails is not asked again at once: its rows wait for the next time. */
static int work(struct work *w, rv_err **err)
{
    size_t n_claimed = 0, n;
    bool failed = false;
    int rc = 0;

    while (rc == 0 && !failed && (n = left_of(w, n_claimed)) > 0) {
        struct rv_embeddings_claimed claimed;
        rc = rv_store_claim_embeddings(w->s, rv_buf_cstr(&w->provider), n, now_of(w), &claimed, err);
        bool is_empty = rc < 0 || claimed.n == 0;
        n_claimed += rc < 0 ? 0 : claimed.n;
        if (!is_empty)
            rc = embed_batch(w, &claimed, &failed, err);
        rv_embeddings_claimed_fini(&claimed);
        if (is_empty)
            break;
    }
    return rc;
}

int rv_knowledge_embed(rv_store *s, const struct rv_knowledge_embed *how, struct rv_knowledge_embedded *out,
                       rv_err **why, rv_err **err)
{
    struct work w = {.s = s, .how = how, .provider = RV_BUF_INIT(RV_EMBED_MAX_NAME), .why = why};
    int rc = 0;

    if (how->batch > RV_EMBED_MAX_BATCH)
        return RV_FAIL(err, RV_E_INVALID, "%zu texts in one call: use 1 to %d", how->batch, RV_EMBED_MAX_BATCH);
    if (why)
        *why = NULL;
    if (how->provider)
        rv_buf_puts(&w.provider, how->provider);
    else
        rc = rv_store_read_embedding_provider(s, &w.provider, err);
    if (rc == 0)
        rc = rv_buf_check(&w.provider, "provider of embeddings", err);
    if (rc == 0 && !rv_embedding_is_local(rv_buf_cstr(&w.provider)) && !how->embedder)
        rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is asked by requests, which cannot be made here",
                     rv_buf_cstr(&w.provider));
    /* Also when it is the same: rows that were written while another process had another one are queued. That reads
     * all rows. */
    if (rc == 0 && (how->provider || !how->is_again))
        rc = rv_store_set_embedding_provider(s, rv_buf_cstr(&w.provider), now_of(&w), err);
    if (rc == 0)
        rc = work(&w, err);
    if (rc == 0)
        *out = w.done;
    rv_buf_fini(&w.provider);
    return rc;
}
