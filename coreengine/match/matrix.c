/* A matrix of vectors, searched for the rows nearest to a query. Small ones are compared row by row. From
 * RV_MATRIX_COARSE_ROWS on each row has a copy of 8-bit numbers, a quarter of the bytes: an estimate from these, with
 * the most that rounding can have changed, says which rows can be among the nearest, and only those are compared
 * exactly. So the answer is the same as without the copies. */
#include <math.h>
#include <stdlib.h>

#include "coreengine/match/vectors_internal.h"

#define STEPS 127  /* an 8-bit number is -127 to 127 */
#define SLACK 1e-5 /* more than the rounding of the arithmetic itself comes to with RV_VECTOR_MAX_DIMS */

/* A vector of length 1 as scale * codes, up to a difference of length `off`. */
struct coarse {
    double scale, off;
};

struct rv_matrix {
    size_t dims, n, cap;
    float *values;         /* n rows; owned */
    double *lengths;       /* of each row; 0: of zeros, or removed; owned */
    int8_t *codes;         /* of the first n_coarse rows; owned */
    struct coarse *coarse; /* owned */
    size_t n_coarse, coarse_cap;
};

rv_matrix *rv_matrix_new(size_t dims)
{
    rv_matrix *m = dims >= 1 && dims <= RV_VECTOR_MAX_DIMS ? calloc(1, sizeof *m) : NULL;

    if (m)
        m->dims = dims;
    return m;
}

void rv_matrix_free(rv_matrix *m)
{
    if (!m)
        return;
    free(m->values);
    free(m->lengths);
    free(m->codes);
    free(m->coarse);
    free(m);
}

size_t rv_matrix_dims(const rv_matrix *m)
{
    return m->dims;
}

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_NOMEM, "keep vectors");
}

/* --- 8-bit copies --- */

/* `unit` is 1 / length of v, which is not 0. */
static struct coarse encode(const float *v, double unit, size_t dims, int8_t *codes)
{
    double largest = 0, off = 0;

    for (size_t i = 0; i < dims; i++) {
        double x = fabs((double)v[i] * unit);
        largest = x > largest ? x : largest;
    }
    double scale = largest / STEPS;
    for (size_t i = 0; i < dims; i++) {
        double x = (double)v[i] * unit;
        codes[i] = (int8_t)floor(x / scale + 0.5);
        double difference = x - codes[i] * scale;
        off += difference * difference;
    }
    return (struct coarse){scale, sqrt(off)};
}

static void encode_row(rv_matrix *m, size_t row)
{
    int8_t *codes = m->codes + row * m->dims;

    if (m->lengths[row] > 0)
        m->coarse[row] = encode(m->values + row * m->dims, 1 / m->lengths[row], m->dims, codes);
    else
        memset(codes, 0, m->dims);
}

/* Copies of the rows that have none yet. */
static int encode_rows(rv_matrix *m, rv_err **err)
{
    if (m->coarse_cap < m->n) {
        int8_t *codes = realloc(m->codes, m->cap * m->dims);
        if (!codes)
            return no_memory(err);
        m->codes = codes;
        struct coarse *coarse = reallocarray(m->coarse, m->cap, sizeof *coarse);
        if (!coarse)
            return no_memory(err);
        m->coarse = coarse;
        m->coarse_cap = m->cap;
    }
    for (; m->n_coarse < m->n; m->n_coarse++)
        encode_row(m, m->n_coarse);
    return 0;
}

/* --- rows --- */

static int check(const float *v, size_t dims, rv_err **err)
{
    return rv_vector_is_finite(v, dims) ? 0 : RV_FAIL(err, RV_E_INVALID, "a vector has an element that is not finite");
}

int rv_matrix_add(rv_matrix *m, const float *v, size_t *row, rv_err **err)
{
    size_t cap = m->cap ? m->cap * 2 : 64;
    int rc = check(v, m->dims, err);

    if (rc < 0)
        return rc;
    if (m->n == m->cap) {
        float *values =
            cap > SIZE_MAX / sizeof *values / m->dims ? NULL : realloc(m->values, cap * m->dims * sizeof *values);
        if (!values)
            return no_memory(err);
        m->values = values;
        double *lengths = reallocarray(m->lengths, cap, sizeof *lengths);
        if (!lengths)
            return no_memory(err);
        m->lengths = lengths;
        m->cap = cap;
    }
    memcpy(m->values + m->n * m->dims, v, m->dims * sizeof *v);
    m->lengths[m->n] = match_vector_length(v, m->dims);
    *row = m->n++;
    return 0;
}

void rv_matrix_remove(rv_matrix *m, size_t row)
{
    m->lengths[row] = 0;
}

/* --- the best so far: a heap with the worst of them on top --- */

struct best {
    const struct rv_vector_query *query;
    struct rv_vector_hit *at;
    size_t n;
};

/* Whether a comes before b. */
static bool is_before(const struct rv_vector_query *q, const struct rv_vector_hit *a, const struct rv_vector_hit *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    int order = q->order ? q->order(q->self, a->row, b->row) : 0;
    return order != 0 ? order < 0 : a->row < b->row;
}

static void sink(struct best *b, size_t i, struct rv_vector_hit hit)
{
    for (size_t child; (child = 2 * i + 1) < b->n; i = child) {
        if (child + 1 < b->n && is_before(b->query, &b->at[child], &b->at[child + 1]))
            child++;
        if (!is_before(b->query, &hit, &b->at[child]))
            break;
        b->at[i] = b->at[child];
    }
    b->at[i] = hit;
}

static void offer(struct best *b, struct rv_vector_hit hit)
{
    if (b->n == b->query->limit) {
        if (b->n > 0 && is_before(b->query, &hit, &b->at[0]))
            sink(b, 0, hit);
        return;
    }
    size_t i = b->n++;
    for (; i > 0 && is_before(b->query, &b->at[(i - 1) / 2], &hit); i = (i - 1) / 2)
        b->at[i] = b->at[(i - 1) / 2];
    b->at[i] = hit;
}

static void sort(struct best *b)
{
    size_t n = b->n;

    while (b->n > 1) {
        struct rv_vector_hit worst = b->at[0], last = b->at[--b->n];
        sink(b, 0, last);
        b->at[b->n] = worst;
    }
    b->n = n;
}

/* --- searching --- */

struct search {
    const rv_matrix *m;
    const struct rv_vector_query *query;
    double length; /* of the query */
    struct best best;
};

static bool is_searched(const struct search *s, size_t row)
{
    const struct rv_vector_query *q = s->query;

    return s->m->lengths[row] > 0 && (!q->rows || (q->rows[row / 64] >> row % 64 & 1)) &&
           (!q->admit || q->admit(q->self, row));
}

static void compare_row(struct search *s, size_t row)
{
    const rv_matrix *m = s->m;
    double score =
        match_vector_cosine_of(s->query->vector, s->length, m->values + row * m->dims, m->lengths[row], m->dims);

    if (score >= s->query->min_score)
        offer(&s->best, (struct rv_vector_hit){row, score});
}

static void compare_all(struct search *s)
{
    for (size_t row = 0; row < s->m->n; row++)
        if (is_searched(s, row))
            compare_row(s, row);
}

/* What is known of a row from its copy: the least and the most that its score can be. */
struct range {
    size_t row;
    double least, most;
};

static double estimate(const struct search *s, const int8_t *codes, struct coarse query, size_t row, double *error)
{
    const rv_matrix *m = s->m;
    struct coarse c = m->coarse[row];

    *error = c.off + query.off * (1 + c.off) + SLACK;
    return match_vector_dot_bytes(codes, m->codes + row * m->dims, m->dims) * c.scale * query.scale;
}

/* The least score of the worst of the `limit` rows that are surely good: a row that stays below it is not a hit. */
static double bound_of(struct search *s, const struct range *ranges, size_t n)
{
    const struct rv_vector_query by_row = {.limit = s->query->limit};
    struct best least = {&by_row, s->best.at, 0};

    for (size_t i = 0; i < n; i++)
        offer(&least, (struct rv_vector_hit){ranges[i].row, ranges[i].least});
    return least.n == s->query->limit && least.n > 0 ? least.at[0].score : -2;
}

static int compare_coarsely(struct search *s, rv_err **err)
{
    const rv_matrix *m = s->m;
    struct range *ranges = reallocarray(NULL, m->n, sizeof *ranges);
    int8_t *codes = calloc(m->dims, 1);
    size_t n = 0;

    if (!ranges || !codes) {
        free(ranges);
        free(codes);
        return no_memory(err);
    }
    struct coarse query = encode(s->query->vector, 1 / s->length, m->dims, codes);
    for (size_t row = 0; row < m->n; row++) {
        if (!is_searched(s, row))
            continue;
        double error, about = estimate(s, codes, query, row, &error);
        if (about + error >= s->query->min_score)
            ranges[n++] = (struct range){row, about - error, about + error};
    }
    double bound = bound_of(s, ranges, n);
    for (size_t i = 0; i < n; i++)
        if (ranges[i].most >= bound)
            compare_row(s, ranges[i].row);
    free(ranges);
    free(codes);
    return 0;
}

int rv_matrix_search(rv_matrix *m, const struct rv_vector_query *query, struct rv_vector_hit *hits, size_t *n,
                     rv_err **err)
{
    struct search s = {m, query, match_vector_length(query->vector, m->dims), {query, hits, 0}};
    int rc = check(query->vector, m->dims, err);

    if (rc < 0)
        return rc;
    if (s.length > 0 && query->limit > 0) {
        if (m->n < RV_MATRIX_COARSE_ROWS)
            compare_all(&s);
        else if ((rc = encode_rows(m, err)) == 0)
            rc = compare_coarsely(&s, err);
    }
    if (rc < 0)
        return rc;
    sort(&s.best);
    *n = s.best.n;
    return 0;
}
