/* Products and the matrix: equal bits by every way, and the same hits with and without 8-bit copies. */
#include <math.h>
#include <stdlib.h>

#include "coreengine/match/vectors_internal.h"
#include "tests/unit/match/suites.h"

static double cosine(const float *a, const float *b, size_t dims)
{
    return match_vector_cosine_of(a, match_vector_length(a, dims), b, match_vector_length(b, dims), dims);
}

static void fill(struct numbers *r, float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (float)((double)(next_number(r) >> 11) * 0x1p-52 - 1);
}

/* Element by element, as vectors.h says it. */
static float dot_scalar(const float *a, const float *b, size_t dims)
{
    float s[16] = {0};

    for (size_t i = 0; i < dims; i++) {
        volatile float product = a[i] * b[i]; /* rounded */
        s[i % 16] += product;
    }
    for (int width = 8; width > 2; width /= 2)
        for (int i = 0; i < width; i++)
            s[i] += s[i + width];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* Registers of any width, and element by element: the same bits. */
START_TEST(products_are_the_same_by_every_way)
{
    struct numbers r = {9};
    float a[1600], b[1600];

    for (size_t dims = 0; dims <= 1600; dims += dims < 70 ? 1 : 97)
        for (int i = 0; i < 20; i++) {
            fill(&r, a, dims);
            fill(&r, b, dims);
            float scalar = dot_scalar(a, b, dims), wide = rv_vector_dot(a, b, dims),
                  portable = match_vector_dot_portable(a, b, dims);
            double exact = 0;
            for (size_t k = 0; k < dims; k++)
                exact += (double)a[k] * (double)b[k];
            ck_assert_mem_eq(&scalar, &wide, sizeof wide);
            ck_assert_mem_eq(&scalar, &portable, sizeof wide);
            ck_assert(fabs((double)wide - exact) < 1e-4);
        }
}
END_TEST

START_TEST(products_of_bytes_are_exact)
{
    static int8_t a[RV_VECTOR_MAX_DIMS], b[RV_VECTOR_MAX_DIMS];
    struct numbers r = {3};
    int64_t sum = 0;

    for (size_t i = 0; i < RV_VECTOR_MAX_DIMS; i++) {
        a[i] = (int8_t)((int)next_below(&r, 255) - 127);
        b[i] = (int8_t)((int)next_below(&r, 255) - 127);
        sum += a[i] * b[i];
        if (i % 61 == 0)
            ck_assert_int_eq(match_vector_dot_bytes(a, b, i + 1), sum);
    }
    memset(a, 127, sizeof a);
    ck_assert_int_eq(match_vector_dot_bytes(a, a, RV_VECTOR_MAX_DIMS), 127 * 127 * RV_VECTOR_MAX_DIMS);
}
END_TEST

/* 10.2
 * Proves p8-data.10.2: A score is the cosine; vectors of zeros match nothing */
START_TEST(cosines_are_cosines)
{
    static const float x[] = {3, 4}, y[] = {-4, 3}, z[] = {0, 0}, minus[] = {-6, -8};

    ck_assert(cosine(x, x, 2) == 1);
    ck_assert(cosine(x, y, 2) == 0);
    ck_assert(cosine(x, minus, 2) == -1);
    ck_assert(cosine(x, z, 2) == 0);
}
END_TEST

static rv_matrix *matrix_of(const float *values, size_t n, size_t dims)
{
    rv_matrix *m = rv_matrix_new(dims);
    size_t row;

    ck_assert_ptr_nonnull(m);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(rv_matrix_add(m, values + i * dims, &row, NULL), 0);
        ck_assert_uint_eq(row, i);
    }
    return m;
}

static size_t search(rv_matrix *m, const struct rv_vector_query *q, struct rv_vector_hit *hits)
{
    size_t n = 99;

    ck_assert_int_eq(rv_matrix_search(m, q, hits, &n, NULL), 0);
    return n;
}

START_TEST(the_nearest_come_first)
{
    static const float values[] = {1, 0, 0, 1, 1, 1, -1, 0, 0, 0, 2, 2.1f};
    static const float query[] = {1, 1};
    rv_matrix *m = matrix_of(values, 6, 2);
    struct rv_vector_query q = {.vector = query, .limit = 10, .min_score = 0.5};
    struct rv_vector_hit hits[10];

    ck_assert_uint_eq(search(m, &q, hits), 4); /* not the one of zeros, not the opposite one */
    ck_assert_uint_eq(hits[0].row, 2);
    ck_assert_uint_eq(hits[1].row, 5);
    ck_assert(hits[2].row == 0 && hits[3].row == 1 && hits[2].score == hits[3].score);
    q.limit = 1;
    ck_assert(search(m, &q, hits) == 1 && hits[0].row == 2);
    q.limit = 0;
    ck_assert_uint_eq(search(m, &q, hits), 0);
    rv_matrix_free(m);
}
END_TEST

static int newer_first(void *self, size_t a, size_t b)
{
    const int *created = self;

    return (created[a] < created[b]) - (created[a] > created[b]);
}

static bool is_odd(void *self, size_t row)
{
    (void)self;
    return row % 2 == 1;
}

/* 10.2: ties by the keys of the caller */
START_TEST(equal_scores_are_ordered_by_the_caller)
{
    static const float values[] = {1, 0, 1, 0, 1, 0, 1, 0}, query[] = {1, 0};
    int created[] = {1, 4, 4, 2};
    rv_matrix *m = matrix_of(values, 4, 2);
    struct rv_vector_query q = {.vector = query, .limit = 3, .order = newer_first, .self = created};
    struct rv_vector_hit hits[4];

    ck_assert_uint_eq(search(m, &q, hits), 3);
    ck_assert(hits[0].row == 1 && hits[1].row == 2 && hits[2].row == 3);
    rv_matrix_free(m);
}
END_TEST

START_TEST(rows_are_filtered_removed_and_replaced)
{
    static const float values[] = {1, 0, 1, 0, 1, 0, 1, 0}, query[] = {1, 0};
    const uint64_t rows[] = {0x7};
    rv_matrix *m = matrix_of(values, 4, 2);
    struct rv_vector_query q = {.vector = query, .limit = 4, .min_score = 0.1, .rows = rows};
    struct rv_vector_hit hits[4];

    ck_assert_uint_eq(search(m, &q, hits), 3);
    q.admit = is_odd;
    ck_assert(search(m, &q, hits) == 1 && hits[0].row == 1);
    q = (struct rv_vector_query){.vector = query, .limit = 4, .min_score = 0.1};
    rv_matrix_remove(m, 0);
    ck_assert_uint_eq(search(m, &q, hits), 3);
    ck_assert_uint_ne(hits[0].row, 0);
    rv_matrix_free(m);
}
END_TEST

START_TEST(numbers_that_are_none_are_refused)
{
    const float bad[] = {1, NAN}, worse[] = {INFINITY, 0}, good[] = {1, 0};
    rv_matrix *m = rv_matrix_new(2);
    struct rv_vector_query q = {.vector = bad, .limit = 1};
    struct rv_vector_hit hit;
    size_t n;

    ck_assert_int_eq(rv_matrix_add(m, bad, &n, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_matrix_add(m, worse, &n, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_matrix_add(m, good, &n, NULL), 0);
    ck_assert_int_eq(rv_matrix_search(m, &q, &hit, &n, NULL), RV_E_INVALID);
    rv_matrix_free(m);
    ck_assert_ptr_null(rv_matrix_new(0));
    ck_assert_ptr_null(rv_matrix_new(RV_VECTOR_MAX_DIMS + 1));
}
END_TEST

/* Groups of rows that are near one another, some equal, some of zeros, of all lengths. */
static void fill_groups(struct numbers *r, float *values, size_t n, size_t dims)
{
    for (size_t row = 0; row < n; row++) {
        float *v = values + row * dims;
        if (row > 50 && next_below(r, 4) > 0) {
            const float *from = values + next_below(r, 50) * dims;
            float off = (float)next_below(r, 4) * 0.02f;
            for (size_t i = 0; i < dims; i++)
                v[i] = from[i] + off * (float)((double)(next_number(r) >> 11) * 0x1p-52 - 1);
        } else {
            fill(r, v, dims);
        }
        float factor = next_below(r, 100) ? (float)ldexp(1, (int)next_below(r, 40) - 20) : 0;
        for (size_t i = 0; i < dims; i++)
            v[i] *= factor;
    }
}

static int compare_hits(const void *a, const void *b)
{
    const struct rv_vector_hit *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

START_TEST(copies_of_8_bits_change_no_hit)
{
    enum { N = RV_MATRIX_COARSE_ROWS + 500, DIMS = 24 };
    struct numbers r = {_i + 1};
    float *values = calloc((size_t)N * DIMS, sizeof *values);
    struct rv_vector_hit *all = calloc(N, sizeof *all), *hits = calloc(N, sizeof *hits);

    fill_groups(&r, values, N, DIMS);
    rv_matrix *m = matrix_of(values, N, DIMS);
    for (int i = 0; i < 6; i++) {
        const float *query = values + next_below(&r, N) * DIMS;
        struct rv_vector_query q = {
            .vector = query, .limit = i == 0 ? N : 1 + next_below(&r, 60), .min_score = i < 2 ? -1 : 0.3};
        size_t n_all = 0;
        for (size_t row = 0; row < N; row++) {
            double score = cosine(query, values + row * DIMS, DIMS);
            if (score >= q.min_score && match_vector_length(values + row * DIMS, DIMS) > 0)
                all[n_all++] = (struct rv_vector_hit){row, score};
        }
        qsort(all, n_all, sizeof *all, compare_hits);
        if (match_vector_length(query, DIMS) == 0)
            n_all = 0;
        size_t n = search(m, &q, hits);
        ck_assert_uint_eq(n, n_all < q.limit ? n_all : q.limit);
        for (size_t k = 0; k < n; k++)
            ck_assert(hits[k].row == all[k].row && hits[k].score == all[k].score);
        size_t changed = next_below(&r, N); /* copies follow their rows */
        rv_matrix_remove(m, changed);
        memset(values + changed * DIMS, 0, DIMS * sizeof *values);
    }
    rv_matrix_free(m);
    free(values);
    free(all);
    free(hits);
}
END_TEST

TCase *vectors_case(void)
{
    TCase *c = tcase_create("vectors");

    tcase_add_test(c, products_are_the_same_by_every_way);
    tcase_add_test(c, products_of_bytes_are_exact);
    tcase_add_test(c, cosines_are_cosines);
    tcase_add_test(c, the_nearest_come_first);
    tcase_add_test(c, equal_scores_are_ordered_by_the_caller);
    tcase_add_test(c, rows_are_filtered_removed_and_replaced);
    tcase_add_test(c, numbers_that_are_none_are_refused);
    tcase_add_loop_test(c, copies_of_8_bits_change_no_hit, 0, 3);
    return c;
}
