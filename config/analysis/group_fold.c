/* A list of branches, folded together branch by branch into what its join sees: satisfied, not satisfied, or stopped.
 *
 * Which outcomes count is the join's row in the table of joins: `all` asks whether one failed, `any` whether one
 * arrived, a number how many arrived or can arrive no more. Branches that are cancelled are stopped ones. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/group_internal.h"

struct rv_group_fold {
    const struct rv_group_space *space;
    const struct rv_agent_join *join; /* NULL: the group has none */
    size_t n_branches, n_counts, cap;
    /* Tables, one row of space->n each, in one block */
    int64_t *block;
    int64_t *stop, *open, *best_open; /* all are stopped; all first visits so far; the most of those */
    int64_t *good, *bad;              /* no failure (`any`: an arrival), and the contrary */
    int64_t *mixed, *scratch, *over;
    int64_t *arrived, *gone; /* COUNT: rows by how many have arrived, or ended or failed */
};

#define FIXED_ROWS 8

struct rv_group_fold *rv_group_fold_new(const struct rv_group_space *s, size_t max_branches)
{
    struct rv_group_fold *f = calloc(1, sizeof *f);
    size_t n = (size_t)s->n;

    if (!f)
        return NULL;
    f->space = s;
    f->cap = max_branches + 2;
    f->block = calloc((FIXED_ROWS + 2 * f->cap) * n, sizeof *f->block);
    if (!f->block) {
        free(f);
        return NULL;
    }
    int64_t **rows[FIXED_ROWS] = {&f->stop, &f->open,  &f->best_open, &f->good,
                                  &f->bad,  &f->mixed, &f->scratch,   &f->over};
    for (size_t i = 0; i < FIXED_ROWS; i++)
        *rows[i] = f->block + i * n;
    f->arrived = f->block + FIXED_ROWS * n;
    f->gone = f->arrived + f->cap * n;
    return f;
}

void rv_group_fold_free(struct rv_group_fold *f)
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

int64_t rv_group_fold_cost(const struct rv_agent_join *join, size_t n_branches)
{
    int64_t n = (int64_t)n_branches, count = join && join->wait == RV_WAIT_COUNT ? join->count : 0;

    if (!join || join->wait != RV_WAIT_COUNT)
        return 4 * n;
    count = count < n ? count : n;
    return 2 * n * (n + 2); /* rows of `arrived` and of `gone` together, two convolutions each */
}

void rv_group_fold_begin(struct rv_group_fold *f, const struct rv_agent_join *join, size_t n_branches)
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
    for (size_t k = 0; is_count(f) && k <= n_branches - wanted(f) + 1; k++)
        fill(f, f->gone + k * (size_t)f->space->n, k == 0 ? 0 : -1);
}

/* row = row * with, or: other * by; NULL: no such case. */
static void advance(struct rv_group_fold *f, int64_t *row, const int64_t *with, const int64_t *other, const int64_t *by)
{
    fill(f, f->scratch, -1);
    if (with)
        rv_group_convolve(f->space, row, with, f->scratch);
    if (other)
        rv_group_convolve(f->space, other, by, f->scratch);
    memcpy(row, f->scratch, (size_t)f->space->n * sizeof *row);
}

/* The larger of two tables, into `out`. */
static const int64_t *larger(const struct rv_group_fold *f, const int64_t *a, const int64_t *b, int64_t *out)
{
    for (int64_t i = 0; i < f->space->n; i++)
        out[i] = a[i] > b[i] ? a[i] : b[i];
    return out;
}

static void add_counts(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    size_t n = (size_t)f->space->n, n_gone = f->n_branches - wanted(f) + 1;
    const int64_t *over = larger(f, b->of[RV_GROUP_ENDS], b->of[RV_GROUP_FAILS], f->over);

    for (size_t k = wanted(f) + 1; k-- > 0;)
        advance(f, f->arrived + k * n, b->of[RV_GROUP_STOPS], k > 0 ? f->arrived + (k - 1) * n : NULL,
                b->of[RV_GROUP_ARRIVES]);
    for (size_t k = n_gone + 1; k-- > 0;)
        advance(f, f->gone + k * n, b->of[RV_GROUP_STOPS], k > 0 ? f->gone + (k - 1) * n : NULL, over);
}

static void add_any(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    const int64_t *gone = larger(f, b->of[RV_GROUP_ENDS], b->of[RV_GROUP_FAILS], f->over);
    const int64_t *each = larger(f, gone, b->of[RV_GROUP_ARRIVES], f->mixed);

    advance(f, f->good, each, f->bad, b->of[RV_GROUP_ARRIVES]);
    advance(f, f->bad, gone, NULL, NULL);
}

static void add_all(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    const int64_t *fine = larger(f, b->of[RV_GROUP_ARRIVES], b->of[RV_GROUP_ENDS], f->over);
    const int64_t *each = larger(f, fine, b->of[RV_GROUP_FAILS], f->mixed);
    int failures = f->join ? f->join->failures : RV_FAILURES_DRAIN;

    if (failures == RV_FAILURES_COLLECT) {
        advance(f, f->good, each, NULL, NULL);
        return;
    }
    if (failures == RV_FAILURES_FAST) /* what is alive at the first failure is cancelled */
        advance(f, f->bad, b->of[RV_GROUP_STOPS], f->stop, b->of[RV_GROUP_FAILS]);
    else
        advance(f, f->bad, each, f->good, b->of[RV_GROUP_FAILS]);
    advance(f, f->good, fine, NULL, NULL);
}

/* All first visits begin before a branch goes on: a bound at one of them ends the run there. */
static void open_branch(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    fill(f, f->scratch, -1);
    rv_group_convolve(f->space, f->open, b->first, f->scratch);
    for (int64_t i = 0; b->may_be_left_out && i < f->space->n; i++)
        rv_group_max(&f->scratch[i], f->open[i]);
    for (int64_t i = 0; i < f->space->n; i++) {
        f->open[i] = f->scratch[i];
        rv_group_max(&f->best_open[i], f->open[i]);
    }
}

void rv_group_fold_add(struct rv_group_fold *f, const struct rv_group_branch_tables *b)
{
    open_branch(f, b);
    if (is_count(f))
        add_counts(f, b);
    else if (f->join && f->join->wait == RV_WAIT_ANY)
        add_any(f, b);
    else
        add_all(f, b);
    advance(f, f->stop, b->of[RV_GROUP_STOPS], NULL, NULL);
}

void rv_group_fold_end(struct rv_group_fold *f, struct rv_group_settled *out)
{
    size_t n = (size_t)f->space->n, bytes = n * sizeof *out->ok;

    memcpy(out->ok, is_count(f) ? f->arrived + wanted(f) * n : f->good, bytes);
    memcpy(out->bad, is_count(f) ? f->gone + (f->n_branches - wanted(f) + 1) * n : f->bad, bytes);
    memcpy(out->stop, f->stop, bytes);
    memcpy(out->open, f->open, bytes);
    memcpy(out->opening, f->best_open, bytes);
}
