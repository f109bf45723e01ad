/* How long comparing texts takes: products of vectors, a search of many, trigrams, keys, embeddings.
 *
 * bench_match [ROWS [DIMS]] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "coreengine/match/match.h"

#define TEXT                                                                                                           \
    "The engine passes an envelope, the state of a run, through stages that a file declares. Each stage reads what "   \
    "the "                                                                                                             \
    "stages before it have written, and its outcome decides which stage is next."

static volatile float sink;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say(const char *what, double seconds, size_t n)
{
    printf("%-44s %10.3f us each, %zu times\n", what, seconds / (double)n * 1e6, n);
}

static void die(void)
{
    fprintf(stderr, "bench_match: out of memory\n");
    exit(1);
}

static void bench_texts(void)
{
    float v[RV_EMBED_NGRAM_DIMS];
    enum { N = 2000 };
    double start = now_s();

    for (int i = 0; i < N; i++) {
        struct rv_grams g;
        if (rv_grams_build(RV_STR_LIT(TEXT), &g, NULL) < 0)
            die();
        sink = (float)g.n;
        rv_grams_fini(&g);
    }
    say("trigrams of 190 characters", now_s() - start, N);
    struct rv_grams a, b;
    if (rv_grams_build(RV_STR_LIT(TEXT), &a, NULL) < 0 ||
        rv_grams_build(RV_STR_LIT("which stage is next"), &b, NULL) < 0)
        die();
    start = now_s();
    for (int i = 0; i < N * 10; i++)
        sink = rv_grams_similarity(a.at, a.n, b.at, b.n);
    say("similarity of two sets", now_s() - start, N * 10);
    rv_grams_fini(&a);
    rv_grams_fini(&b);
    start = now_s();
    for (int i = 0; i < N; i++)
        if (rv_embed_text(RV_STR_LIT(RV_EMBED_NGRAM), RV_STR_LIT(TEXT), RV_EMBED_NGRAM_DIMS, v, NULL) < 0)
            die();
    say("hash-ngram of 190 characters", now_s() - start, N);
    rv_buf key = RV_BUF_INIT(1000);
    start = now_s();
    for (int i = 0; i < N * 10; i++) {
        rv_buf_clear(&key);
        rv_match_write_key(RV_STR_LIT("Test (v2.0) \u2014 final!"), &key);
    }
    say("key of 20 characters", now_s() - start, N * 10);
    rv_buf_fini(&key);
}

static void bench_vectors(size_t rows, size_t dims)
{
    float *v = calloc(dims, sizeof *v);
    rv_matrix *m = rv_matrix_new(dims);
    struct rv_vector_hit hits[10];
    uint64_t state = 1;
    size_t row, n;

    if (!v || !m)
        die();
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < dims; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            v[i] = (float)(state >> 40) * 0x1p-23f - 1;
        }
        if (rv_matrix_add(m, v, &row, NULL) < 0)
            die();
    }
    double start = now_s();
    for (int i = 0; i < 100000; i++)
        sink = rv_vector_dot(v, v, dims);
    say("product", now_s() - start, 100000);
    struct rv_vector_query query = {.vector = v, .limit = 10, .min_score = 0.3};
    for (int round = 0; round < 2; round++) {
        start = now_s();
        for (int i = 0; i < 10; i++)
            if (rv_matrix_search(m, &query, hits, &n, NULL) < 0)
                die();
        say(round ? "search" : "search, the first with the making of copies", now_s() - start, 10);
    }
    rv_matrix_free(m);
    free(v);
}

int main(int argc, char **argv)
{
    size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000, dims = argc > 2 ? strtoul(argv[2], NULL, 10) : 384;

    if (rows == 0 || dims == 0 || dims > RV_VECTOR_MAX_DIMS) {
        fprintf(stderr, "usage: bench_match [ROWS [DIMS]]\n");
        return 2;
    }
    printf("%zu rows of %zu dimensions\n", rows, dims);
    bench_texts();
    bench_vectors(rows, dims);
    return 0;
}
