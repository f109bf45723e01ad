/* A list of branches, folded together branch by branch into what its join sees: satisfied, not satisfied, or stopped.
 *
 * Which outcomes count is the join's row in the table of joins: `all` asks whether one failed, `any` whether one
 * arrived, a number how many arrived or can arrive no more. Branches that are cancelled are stopped ones. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/group_internal.h"

/* --- vectors of allowances, laid out as mixed-radix numbers, and the sum of two tables over them --- */

void lint_group_space_set(struct rv_group_space *s)
{
    s->n = 1;
    s->pairs = 1;
    for (int d = s->n_dims - 1; d >= 0; d--) {
        int64_t size = s->dims[d].size;

        s->dims[d].stride = s->n;
        s->n = lint_sat_mul(s->n, size);
        s->pairs = lint_sat_mul(s->pairs, size < INT32_MAX ? size * (size + 1) / 2 : INT64_MAX);
    }
}

static void convolve_dim(const struct rv_group_space *s, int dim, const int64_t *f, const int64_t *g, int64_t *out)
{
    int64_t size, stride;

    if (dim == s->n_dims) {
        if (*f >= 0 && *g >= 0)
            lint_group_max(out, lint_sat_add(*f, *g));
        return;
    }
    size = s->dims[dim].size;
    stride = s->dims[dim].stride;
    for (int64_t i = 0; i < size; i++)
        for (int64_t k = 0; k < size - i; k++)
            convolve_dim(s, dim + 1, f + i * stride, g + k * stride, out + (i + k) * stride);
}

/* out[a] = the most of f[b] + g[a - b], or what it was; negative numbers: impossible. */
static void convolve(const struct rv_group_space *s, const int64_t *f, const int64_t *g, int64_t *out)
{
    convolve_dim(s, 0, f, g, out);
}

/* --- the fold --- */

struct rv_group_fold {
    const struct rv_group_space *space;
    const struct rv_agent_join *join; /* NULL: the group has none */
    size_t n_branches, n_counts, cap;
    /* Tables, one row of space->n each, in one block */
    int64_t *block;                   /* owned */
    int64_t *stop, *open, *best_open; /* all are stopped; all first visits so far; the most of those */
    int64_t *good, *bad;              /* no failure (`any`: an arrival), and the contrary */
    int64_t *mixed, *scratch, *over, *stops;
    /* COUNT: rows by how many have arrived; have ended or failed, at least one of them in a visit, or all of them left
     * out; were left out, with nothing but first visits of the others. */
    int64_t *arrived, *gone, *missing, *missing_first;
};

#define FIXED_ROWS 9 /* arrays of the block besides the counts: see the list where it is divided */
#define COUNTS     4 /* arrays of rows by a count */

struct rv_group_fold *lint_group_fold_new(const struct rv_group_space *s, size_t max_branches)
{
    struct rv_group_fold *f = calloc(1, sizeof *f);
    size_t n = (size_t)s->n;

    if (!f)
        return NULL;
    f->space = s;
    f->cap = max_branches + 2;
    f->block = calloc((FIXED_ROWS + COUNTS * f->cap) * n, sizeof *f->block);
    if (!f->block) {
        free(f);
        return NULL;
    }
    int64_t **rows[FIXED_ROWS] = {&f->stop,  &f->open,    &f->best_open, &f->good, &f->bad,
                                  &f->mixed, &f->scratch, &f->over,      &f->stops};
    for (size_t i = 0; i < FIXED_ROWS; i++)
        *rows[i] = f->block + i * n;
    f->arrived = f->block + FIXED_ROWS * n;
    f->gone = f->arrived + f->cap * n;
    f->missing = f->gone + f->cap * n;
    f->missing_first = f->missing + f->cap * n;
    return f;
}

void lint_group_fold_free(struct rv_group_fold *f)
{
    if (f)
        free(f->block);
    free(f);
}

static void fill(const struct rv_group_fold *f, int64_t *row, int64_t value)
{
    for (int64_t i = 0; i < f->space->n; i++)
        row[i] = value;
}

static bool is_count(const struct rv_group_fold *f)
{
    return f->join && f->join->wait == RV_WAIT_COUNT;
}

static size_t wanted(const struct rv_group_fold *f)
{
    int64_t count = f->join->count < 1 ? 1 : f->join->count;

    return (uint64_t)count < f->n_branches ? (size_t)count : f->n_branches;
}

int64_t lint_group_fold_cost(const struct rv_agent_join *join, size_t n_branches)
{
    int64_t n = (int64_t)n_branches, count = join && join->wait == RV_WAIT_COUNT ? join->count : 0;

    if (!join || join->wait != RV_WAIT_COUNT)
        return 4 * n;
    count = count < n ? count : n;
    return n * (2 * (count + 1) + 5 * (n - count + 2)); /* convolutions of the rows */
}

void lint_group_fold_begin(struct rv_group_fold *f, const struct rv_agent_join *join, size_t n_branches)
{
    f->join = join && join->wait != RV_WAIT_NOT ? join : NULL;
    f->n_branches = n_branches;
    f->n_counts = 0;
    fill(f, f->stop, 0);
    fill(f, f->open, 0);
    fill(f, f->best_open, 0);
    fill(f, f->good, join && join->wait == RV_WAIT_ANY ? -1 : 0);
    fill(f, f->bad, join && join->wait == RV_WAIT_ANY ? 0 : -1);
    for (size_t k = 0; is_count(f) && k <= wanted(f); k++)
        fill(f, f->arrived + k * (size_t)f->space->n, k == 0 ? 0 : -1);
    for (size_t k = 0; is_count(f) && k <= n_branches - wanted(f) + 1; k++) {
        fill(f, f->gone + k * (size_t)f->space->n, -1);
        fill(f, f->missing + k * (size_t)f->space->n, k == 0 ? 0 : -1);
        fill(f, f->missing_first + k * (size_t)f->space->n, k == 0 ? 0 : -1);
    }
}

/* row = row * with, or: other * by; NULL: no such case. */
static void advance(struct rv_group_fold *f, int64_t *row, const int64_t *with, const int64_t *other, const int64_t *by)
{
    fill(f, f->scratch, -1);
    if (with)
        convolve(f->space, row, with, f->scratch);
    if (other)
        convolve(f->space, other, by, f->scratch);
    memcpy(row, f->scratch, (size_t)f->space->n * sizeof *row);
}

/* The larger of two tables, into `out`, which is returned. */
static const int64_t *larger(const struct rv_group_fold *f, const int64_t *a, const int64_t *b, int64_t *out)
{
    for (int64_t i = 0; i < f->space->n; i++)
        out[i] = a[i] > b[i] ? a[i] : b[i];
    return out;
}

/* A branch that is left out has ended without a visit. */
static void or_left_out(const struct rv_group_fold *f, const struct rv_group_branch_tables *b, int64_t *row)
{
    for (int64_t i = 0; b->may_be_left_out && i < f->space->n; i++)
        lint_group_max(&row[i], 0);
}

/* The rows of branches that ended or failed. One that is left out has ended before the others go on: if such ones alone
 * settle the group, the others made their first visits and no more. */
static void add_gone(struct rv_group_fold *f, const struct rv_group_branch_tables *b, const int64_t *over)
{
    const struct rv_group_space *s = f->space;
    const int64_t *stops = b->of[RV_GROUP_STOPS];
    size_t n = (size_t)s->n, most = f->n_branches - wanted(f) + 1, bytes = n * sizeof *over;

    for (size_t k = most + 1; k-- > 0;) {
        int64_t *gone = f->gone + k * n, *missing = f->missing + k * n, *first = f->missing_first + k * n;

        fill(f, f->scratch, -1);
        convolve(s, gone, stops, f->scratch);
        if (k > 0) {
            convolve(s, gone - n, over, f->scratch);
            convolve(s, missing - n, over, f->scratch);
            for (size_t i = 0; b->may_be_left_out && i < n; i++)
                lint_group_max(&f->scratch[i], (gone - n)[i]);
        }
        memcpy(gone, f->scratch, bytes);
        advance(f, missing, stops, NULL, NULL);
        fill(f, f->scratch, -1);
        convolve(s, first, b->first, f->scratch);
        for (size_t i = 0; b->may_be_left_out && i < n; i++) {
            if (k > 0)
                lint_group_max(&missing[i], (missing - n)[i]);
            if (k > 0)
                lint_group_max(&f->scratch[i], (first - n)[i]);
            if (k == most)
                lint_group_max(&f->scratch[i], first[i]);
        }
        memcpy(first, f->scratch, bytes);
    }
}

static void add_counts(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    size_t n = (size_t)f->space->n;

    for (size_t k = wanted(f) + 1; k-- > 0;)
        advance(f, f->arrived + k * n, f->stops, k > 0 ? f->arrived + (k - 1) * n : NULL, b->of[RV_GROUP_ARRIVES]);
    add_gone(f, b, larger(f, b->of[RV_GROUP_ENDS], b->of[RV_GROUP_FAILS], f->over));
}

static void add_any(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    larger(f, b->of[RV_GROUP_ENDS], b->of[RV_GROUP_FAILS], f->over);
    or_left_out(f, b, f->over);
    const int64_t *gone = f->over;
    const int64_t *each = larger(f, gone, b->of[RV_GROUP_ARRIVES], f->mixed);

    advance(f, f->good, each, f->bad, b->of[RV_GROUP_ARRIVES]);
    advance(f, f->bad, gone, NULL, NULL);
}

static void add_all(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    larger(f, b->of[RV_GROUP_ARRIVES], b->of[RV_GROUP_ENDS], f->over);
    or_left_out(f, b, f->over);
    const int64_t *fine = f->over;
    const int64_t *each = larger(f, fine, b->of[RV_GROUP_FAILS], f->mixed);
    int failures = f->join ? f->join->failures : RV_FAILURES_DRAIN;

    if (failures == RV_FAILURES_COLLECT) {
        advance(f, f->good, each, NULL, NULL);
        return;
    }
    if (failures == RV_FAILURES_FAST) /* what is alive at the first failure is cancelled */
        advance(f, f->bad, f->stops, f->stop, b->of[RV_GROUP_FAILS]);
    else
        advance(f, f->bad, each, f->good, b->of[RV_GROUP_FAILS]);
    advance(f, f->good, fine, NULL, NULL);
}

/* All first visits begin before a branch goes on: a bound at one of them ends the run there. */
static void open_branch(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    fill(f, f->scratch, -1);
    convolve(f->space, f->open, b->first, f->scratch);
    for (int64_t i = 0; b->may_be_left_out && i < f->space->n; i++)
        lint_group_max(&f->scratch[i], f->open[i]);
    for (int64_t i = 0; i < f->space->n; i++) {
        f->open[i] = f->scratch[i];
        lint_group_max(&f->best_open[i], f->open[i]);
    }
}

void lint_group_fold_add(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    open_branch(f, b);
    memcpy(f->stops, b->of[RV_GROUP_STOPS], (size_t)f->space->n * sizeof *f->stops);
    or_left_out(f, b, f->stops);
    if (is_count(f))
        add_counts(f, b);
    else if (f->join && f->join->wait == RV_WAIT_ANY)
        add_any(f, b);
    else
        add_all(f, b);
    advance(f, f->stop, f->stops, NULL, NULL);
}

void lint_group_fold_end(struct rv_group_fold *f, struct rv_group_settled *out)
{
    size_t n = (size_t)f->space->n, bytes = n * sizeof *out->ok;

    memcpy(out->ok, is_count(f) ? f->arrived + wanted(f) * n : f->good, bytes);
    if (is_count(f)) {
        size_t most = f->n_branches - wanted(f) + 1;
        larger(f, f->gone + most * n, f->missing_first + most * n, out->bad);
    } else {
        memcpy(out->bad, f->bad, bytes);
    }
    memcpy(out->stop, f->stop, bytes);
    memcpy(out->open, f->open, bytes);
    memcpy(out->opening, f->best_open, bytes);
}
