/* The search for the heaviest run (see group_internal.h): which allowances are counted, the tables of the stages, from
 * inner regions to outer ones, and what a list adds to the stage that opens it. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/group_internal.h"

struct tables {
    const struct rv_group_search *search;
    const struct rv_group_graph *g;
    struct rv_group_space space;
    bool is_limited, is_small; /* is_small false: the search is too large without any dimension, too */
    bool has_loops;            /* false: they were left out; a walk ends where it loops back */
    int loop_dim, call_dim;
    int *limit_dim, *visit_dim; /* owned; by edge limit, by stage */
    int *slot, *unmet_slot;     /* owned; by stage: rows in `values` */
    int64_t *values;            /* owned; a block of outcomes and vectors for each slot */
    int64_t *settled;           /* owned; the rows of each list */
    int64_t *rows;              /* owned; of one branch */
    struct rv_group_fold *fold; /* owned */
};

/* --- Which allowances are counted --- */

struct candidate {
    int64_t size;
    int *dim; /* where its number goes */
    bool is_loop;
};

/* Loop-backs first: without them no stage has an end. */
static int smaller_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->is_loop != y->is_loop)
        return x->is_loop ? -1 : 1;
    return x->size != y->size ? (x->size < y->size ? -1 : 1) : 0;
}

static const struct rv_agent_join *join_of(const struct rv_group_graph *g, const struct rv_group_list *list)
{
    return list->join >= 0 ? &g->p->agents[list->join].join : NULL;
}

/* Steps of one search in that space, roughly. */
static int64_t steps(const struct rv_group_graph *g, const struct rv_group_space *s)
{
    int64_t all = lint_sat_mul(s->n, (int64_t)(g->n_order + g->n_arcs + g->n_branches));

    for (size_t i = 0; i < g->n_lists; i++) {
        int64_t cost = lint_group_fold_cost(join_of(g, &g->lists[i]), g->lists[i].n);

        all = lint_sat_add(all, lint_sat_mul(lint_sat_add(cost, 8), s->pairs));
    }
    return all;
}

static bool fits(const struct rv_group_graph *g, const struct rv_group_space *s)
{
    int64_t rows = (int64_t)(2 * g->n_order + 2 * g->n_lists + 2);

    return s->n <= RV_GROUP_MAX_VECTORS && lint_sat_mul(s->n, rows) <= RV_GROUP_MAX_CELLS &&
           steps(g, s) <= RV_GROUP_MAX_STEPS;
}

/* A limit that no run can reach needs no dimension. */
static void add_candidate(struct candidate *list, size_t *n, int64_t limit, int64_t most, int *dim, bool is_loop)
{
    if (limit > 0 && limit < most)
        list[(*n)++] = (struct candidate){lint_sat_add(limit, 1), dim, is_loop};
}

static size_t gather(struct tables *t, struct candidate *list)
{
    const struct rv_group_graph *g = t->g;
    int64_t once = g->n_lists == 0 ? g->loops + 1 : g->hops; /* visits of a stage; branches may share one */
    size_t n = 0;

    add_candidate(list, &n, g->loops, INT64_MAX, &t->loop_dim, true);
    if (t->search->counts_calls)
        add_candidate(list, &n, g->calls, g->hops, &t->call_dim, false);
    for (size_t s = 0; s < g->n; s++)
        if (g->context[s] != RV_CONTEXT_UNREACHED)
            add_candidate(list, &n, g->p->agents[s].limits.max_visits, once, &t->visit_dim[s], false);
    for (size_t i = 0; i < g->n_arcs; i++) {
        const struct rv_group_arc *arc = &g->arcs[i];

        if (arc->limit >= 0 && t->limit_dim[arc->limit] == RV_GROUP_NO_DIM) {
            t->limit_dim[arc->limit] = RV_GROUP_NO_DIM - 1; /* seen */
            add_candidate(list, &n, g->p->edge_limits[arc->limit].max_count, arc->is_loop ? g->loops : once,
                          &t->limit_dim[arc->limit], false);
        }
    }
    for (size_t i = 0; i < g->n_branches; i++) {
        int limit = g->branches[i].limit;

        if (limit >= 0 && t->limit_dim[limit] == RV_GROUP_NO_DIM) {
            t->limit_dim[limit] = RV_GROUP_NO_DIM - 1;
            add_candidate(list, &n, g->p->edge_limits[limit].max_count, once, &t->limit_dim[limit], false);
        }
    }
    for (size_t i = 0; i < g->p->n_edge_limits; i++)
        t->limit_dim[i] = RV_GROUP_NO_DIM;
    return n;
}

/* The smallest ones, as many as there is room for, but loop-backs before all others; they have the largest stride. */
static int choose_dims(struct tables *t, rv_err **err)
{
    const struct rv_group_graph *g = t->g;
    struct candidate *list = calloc(g->n + g->p->n_edge_limits + 3, sizeof *list);
    size_t n;

    if (!list)
        return RV_FAIL(err, RV_E_NOMEM, "choose what a proof counts");
    n = gather(t, list);
    if (n > 1)
        qsort(list, n, sizeof *list, smaller_first);
    t->has_loops = g->loops == 0;
    lint_group_space_set(&t->space);
    for (size_t i = 0; i < n; i++) {
        struct rv_group_space tried = t->space;

        t->is_limited = true;
        if (tried.n_dims == RV_COUNT(tried.dims))
            break;
        if (list[i].is_loop)
            memmove(tried.dims + 1, tried.dims, (size_t)tried.n_dims * sizeof *tried.dims);
        tried.dims[list[i].is_loop ? 0 : tried.n_dims].size = list[i].size;
        tried.n_dims++;
        lint_group_space_set(&tried);
        if (!fits(g, &tried)) {
            if (list[i].is_loop)
                continue;
            break;
        }
        t->space = tried;
        t->has_loops = t->has_loops || list[i].is_loop;
        t->is_limited = i + 1 < n || !t->has_loops;
    }
    /* Number them: loop-backs are 0, the others follow in the order they were taken. */
    size_t first = !t->has_loops; /* loop-backs were left out */
    for (int d = 0; d < t->space.n_dims; d++)
        *list[first + (size_t)d].dim = d;
    free(list);
    t->is_small = fits(g, &t->space);
    return 0;
}

/* --- Tables --- */

static int64_t *value_row(const struct tables *t, int slot, int outcome)
{
    return t->values + ((int64_t)slot * RV_N_GROUP_OUTCOMES + outcome) * t->space.n;
}

static struct rv_group_settled settled_rows(const struct tables *t, int list)
{
    int64_t n = t->space.n, *first = t->settled + (int64_t)list * RV_GROUP_SETTLED_ROWS * n;

    return (struct rv_group_settled){first, first + n, first + 2 * n, first + 3 * n, first + 4 * n};
}

static bool calls_model(const struct tables *t, int stage)
{
    return t->call_dim != RV_GROUP_NO_DIM && lint_agent_calls_model(&t->g->p->agents[stage]);
}

/* Whether a visit can begin with that much left, and what is left when it ends; -1: it cannot end that way. */
struct paid {
    int64_t weight;       /* -1: it cannot begin */
    int64_t after, early; /* early: it ends before a model is called */
};

/* A visit with a model needs a call to begin, but one that ends early gives it back. A branch may borrow it from what
 * its siblings or its join have not used yet, so in a group only the end counts, which can only raise the number. */
static struct paid visit(const struct tables *t, int stage, int64_t at)
{
    const struct rv_agent *a = &t->g->p->agents[stage];
    struct paid paid = {t->search->weights[stage], -1, -1};
    bool borrows = !t->search->only_sure && t->g->context[stage] != RV_CONTEXT_MAIN;
    int64_t left;

    if (!lint_group_take(&t->space, t->visit_dim[stage], &at))
        return (struct paid){-1, -1, -1};
    paid.early = paid.after = at;
    if (!calls_model(t, stage))
        return paid;
    left = lint_group_left(&t->space, t->call_dim, at);
    if (a->each.list) { /* elements may end early, too; without a call left only an empty list goes on */
        if (t->search->only_sure) {
            left = left < a->each.max_items ? left : a->each.max_items;
            paid.after -= left * t->space.dims[t->call_dim].stride;
            paid.weight = t->search->counts_visits ? 1 + left : paid.weight;
        } else if (left == 0 && !borrows && t->search->counts_visits) {
            paid.weight = 1;
        }
        return paid;
    }
    if (!lint_group_take(&t->space, t->call_dim, &paid.after)) {
        paid.after = -1;
        if (!borrows)
            paid.weight = -1;
    }
    return paid;
}

static void add_row(int64_t out[RV_N_GROUP_OUTCOMES], const struct tables *t, int slot, int64_t at, int64_t before)
{
    for (int o = 0; o < RV_N_GROUP_OUTCOMES; o++) {
        int64_t value = value_row(t, slot, o)[at];

        if (value >= 0)
            lint_group_max(&out[o], lint_sat_add(before, value));
    }
}

/* Where a group stands when the branches of a list begin, and the value until then. */
struct opened {
    int list;
    int64_t at, before;
};

/* The group is settled with some of what is left, and the join has the rest. */
static void add_join(int64_t out[RV_N_GROUP_OUTCOMES], const struct tables *t, const struct opened *o, int dim,
                     int64_t used)
{
    const struct rv_group_space *s = &t->space;

    if (dim < s->n_dims) {
        int64_t most = lint_group_left(s, dim, o->at);

        for (int64_t i = 0; i <= most; i++)
            add_join(out, t, o, dim + 1, used + i * s->dims[dim].stride);
        return;
    }
    struct rv_group_settled rows = settled_rows(t, o->list);
    int join = t->g->lists[o->list].join;

    if (rows.ok[used] >= 0)
        add_row(out, t, t->slot[join], o->at - used, lint_sat_add(o->before, rows.ok[used]));
    if (rows.bad[used] >= 0)
        add_row(out, t, t->unmet_slot[join], o->at - used, lint_sat_add(o->before, rows.bad[used]));
}

static void add_list(int64_t out[RV_N_GROUP_OUTCOMES], const struct tables *t, int list, int64_t at, int64_t before)
{
    struct rv_group_settled rows = settled_rows(t, list);
    const struct rv_group_list *l = &t->g->lists[list];

    lint_group_max(&out[RV_GROUP_STOPS], lint_sat_add(before, rows.opening[at]));
    if (t->g->context[l->from] == RV_CONTEXT_MAIN && rows.open[at] < 0)
        return; /* without siblings nothing can be borrowed when the first visits begin */
    if (rows.stop[at] >= 0)
        lint_group_max(&out[RV_GROUP_STOPS], lint_sat_add(before, rows.stop[at]));
    if (l->join >= 0) {
        add_join(out, t, &(const struct opened){list, at, before}, 0, 0);
        return;
    }
    if (rows.ok[at] >= 0)
        lint_group_max(&out[RV_GROUP_ENDS], lint_sat_add(before, rows.ok[at]));
    if (rows.bad[at] >= 0)
        lint_group_max(&out[RV_GROUP_FAILS], lint_sat_add(before, rows.bad[at]));
}

static void follow(int64_t out[RV_N_GROUP_OUTCOMES], const struct tables *t, const struct rv_group_arc *arc, int64_t at,
                   int64_t before)
{
    int limit = arc->limit >= 0 ? t->limit_dim[arc->limit] : RV_GROUP_NO_DIM;

    if (t->search->only_sure && !arc->is_likely)
        return;
    if (!lint_group_take(&t->space, limit, &at))
        return;
    switch (arc->kind) {
    case RV_ARC_STAGE:
        if (arc->is_loop && !t->has_loops) {
            for (int o = 0; o < RV_N_GROUP_OUTCOMES; o++)
                lint_group_max(&out[o], before);
            return;
        }
        if (arc->is_loop && (t->loop_dim == RV_GROUP_NO_DIM || !lint_group_take(&t->space, t->loop_dim, &at)))
            return;
        add_row(out, t, t->slot[arc->to], at, before);
        return;
    case RV_ARC_ARRIVE:
        lint_group_max(&out[RV_GROUP_ARRIVES], before);
        return;
    case RV_ARC_END:
        lint_group_max(&out[RV_GROUP_ENDS], before);
        return;
    case RV_ARC_LIST:
        add_list(out, t, arc->to, at, before);
        return;
    }
}

/* A join that is not satisfied: one visit without its work, and error_next. */
static void fill_unmet(struct tables *t, int stage, int64_t at)
{
    const struct rv_group_graph *g = t->g;
    int64_t out[RV_N_GROUP_OUTCOMES] = {-1, -1, -1, -1}, left = at, weight = t->search->counts_visits ? 1 : 0;

    if (!lint_group_take(&t->space, t->visit_dim[stage], &left))
        return;
    out[RV_GROUP_STOPS] = weight;
    if (g->p->agents[stage].routing.error_target == RV_TARGET_NONE)
        out[RV_GROUP_FAILS] = weight;
    for (size_t i = g->start[stage]; i < g->start[stage + 1]; i++)
        if (g->arcs[i].is_error)
            follow(out, t, &g->arcs[i], left, weight);
    for (int o = 0; o < RV_N_GROUP_OUTCOMES; o++)
        value_row(t, t->unmet_slot[stage], o)[at] = out[o];
}

static void fill_stage(struct tables *t, int stage, int64_t at)
{
    const struct rv_group_graph *g = t->g;
    const struct rv_agent *a = &g->p->agents[stage];
    int64_t out[RV_N_GROUP_OUTCOMES] = {-1, -1, -1, -1};
    struct paid paid = visit(t, stage, at);

    if (t->unmet_slot[stage] >= 0)
        fill_unmet(t, stage, at);
    if (paid.weight < 0)
        return;
    out[RV_GROUP_STOPS] = paid.weight;
    if (a->routing.error_target == RV_TARGET_NONE && !(t->search->only_sure && a->set))
        out[RV_GROUP_FAILS] = paid.weight;
    for (size_t i = g->start[stage]; i < g->start[stage + 1]; i++) {
        const struct rv_group_arc *arc = &g->arcs[i];
        bool skips = t->search->only_sure ? arc->skips_surely : arc->skips_call;
        int64_t left = skips ? paid.early : paid.after;

        if (left >= 0)
            follow(out, t, arc, left, paid.weight);
    }
    for (int o = 0; o < RV_N_GROUP_OUTCOMES; o++)
        value_row(t, t->slot[stage], o)[at] = out[o];
}

/* --- Lists --- */

/* First visits begin together, so each of them has its call. Where a bound ends the run then, they finish what they
 * have begun, and no question is put. */
static int64_t first_visit(const struct tables *t, int stage, int64_t at)
{
    struct paid paid = visit(t, stage, at);
    int64_t most = t->search->first_weights[stage];

    return paid.after < 0 ? -1 : most < paid.weight ? most : paid.weight;
}

static void fill_branch(struct tables *t, const struct rv_group_branch *b, struct rv_group_branch_tables *out)
{
    int limit = b->limit >= 0 ? t->limit_dim[b->limit] : RV_GROUP_NO_DIM;
    bool sure = t->search->only_sure, is_open = !sure || b->is_active, may_miss = sure ? !b->is_active : b->has_when;
    int64_t n = t->space.n, *first = t->rows + RV_N_GROUP_OUTCOMES * n;

    for (int64_t at = 0; at < n; at++) {
        int64_t left = at;
        bool begins = is_open && lint_group_take(&t->space, limit, &left);

        for (int o = 0; o < RV_N_GROUP_OUTCOMES; o++)
            t->rows[o * n + at] = begins ? value_row(t, t->slot[b->to], o)[left] : -1;
        first[at] = begins ? first_visit(t, b->to, left) : -1;
    }
    for (int o = 0; o < RV_N_GROUP_OUTCOMES; o++)
        out->of[o] = t->rows + o * n;
    out->first = first;
    out->may_be_left_out = may_miss;
}

static void fill_list(struct tables *t, int list)
{
    const struct rv_group_list *l = &t->g->lists[list];
    struct rv_group_settled rows = settled_rows(t, list);
    struct rv_group_branch_tables b;

    lint_group_fold_begin(t->fold, join_of(t->g, l), l->n);
    for (size_t i = 0; i < l->n; i++) {
        fill_branch(t, &t->g->branches[l->first + i], &b);
        lint_group_fold_add(t->fold, &b);
    }
    lint_group_fold_end(t->fold, &rows);
}

/* --- The order --- */

/* All regions of one depth: order[first .. last). */
static void fill_depth(struct tables *t, size_t first, size_t last)
{
    const struct rv_group_graph *g = t->g;
    int64_t layers = t->loop_dim == RV_GROUP_NO_DIM ? 1 : t->space.dims[t->loop_dim].size;
    int64_t size = t->space.n / layers;

    for (size_t i = first; i < last; i++)
        for (size_t k = g->start[g->order[i]]; k < g->start[g->order[i] + 1]; k++)
            if (g->arcs[k].kind == RV_ARC_LIST)
                fill_list(t, g->arcs[k].to);
    for (int64_t layer = 0; layer < layers; layer++)
        for (size_t i = first; i < last; i++)
            for (int64_t at = layer * size; at < (layer + 1) * size; at++)
                fill_stage(t, g->order[i], at);
}

static void fill_all(struct tables *t)
{
    const struct rv_group_graph *g = t->g;

    for (size_t first = 0, last; first < g->n_order; first = last) {
        last = first;
        while (last < g->n_order && g->depth[g->order[last]] == g->depth[g->order[first]])
            last++;
        fill_depth(t, first, last);
    }
}

static int allocate(struct tables *t, rv_err **err)
{
    const struct rv_group_graph *g = t->g;
    size_t n_slots = 0, longest = 0, n = (size_t)t->space.n;

    for (size_t i = 0; i < g->n_order; i++) {
        int stage = g->order[i];

        t->slot[stage] = (int)n_slots++;
        t->unmet_slot[stage] = g->p->agents[stage].join.wait != RV_WAIT_NOT ? (int)n_slots++ : -1;
    }
    for (size_t i = 0; i < g->n_lists; i++)
        longest = g->lists[i].n > longest ? g->lists[i].n : longest;
    t->values = malloc((n_slots * RV_N_GROUP_OUTCOMES * n + 1) * sizeof *t->values);
    t->settled = calloc(g->n_lists * RV_GROUP_SETTLED_ROWS * n + 1, sizeof *t->settled);
    t->rows = calloc((RV_N_GROUP_OUTCOMES + 1) * n, sizeof *t->rows);
    t->fold = lint_group_fold_new(&t->space, longest);
    if (!t->values || !t->settled || !t->rows || !t->fold)
        return RV_FAIL(err, RV_E_NOMEM, "search the heaviest run");
    for (size_t i = 0; i < n_slots * RV_N_GROUP_OUTCOMES * n; i++)
        t->values[i] = -1;
    return 0;
}

/* Where a walk begins; without loop-backs counted, each of them begins another one. */
static bool is_start(const struct tables *t, size_t stage)
{
    if (!t->has_loops)
        return t->g->context[stage] != RV_CONTEXT_UNREACHED;
    return t->g->entry[stage] && (stage == 0 || !t->search->only_sure);
}

int lint_group_search(const struct rv_group_search *search, struct rv_group_answer *out, rv_err **err)
{
    const struct rv_group_graph *g = search->g;
    struct tables t = {.search = search, .g = g, .loop_dim = RV_GROUP_NO_DIM, .call_dim = RV_GROUP_NO_DIM};
    int rc = 0;

    *out = (struct rv_group_answer){g->is_whole ? 0 : INT64_MAX, !g->is_whole};
    if (!g->is_whole || g->n_order == 0)
        return 0;
    t.limit_dim = calloc(g->p->n_edge_limits + 1, sizeof *t.limit_dim);
    t.visit_dim = calloc(g->n, sizeof *t.visit_dim);
    t.slot = calloc(g->n, sizeof *t.slot);
    t.unmet_slot = calloc(g->n, sizeof *t.unmet_slot);
    if (!t.limit_dim || !t.visit_dim || !t.slot || !t.unmet_slot) {
        rc = RV_FAIL(err, RV_E_NOMEM, "search the heaviest run");
        goto done;
    }
    for (size_t i = 0; i < g->p->n_edge_limits; i++)
        t.limit_dim[i] = RV_GROUP_NO_DIM;
    for (size_t s = 0; s < g->n; s++)
        t.visit_dim[s] = RV_GROUP_NO_DIM;
    rc = choose_dims(&t, err);
    if (rc == 0 && !t.is_small) {
        *out = (struct rv_group_answer){INT64_MAX, true};
        goto done;
    }
    if (rc == 0)
        rc = allocate(&t, err);
    if (rc < 0)
        goto done;
    fill_all(&t);
    for (size_t s = 0; s < g->n; s++)
        if (is_start(&t, s))
            lint_group_max(&out->best, value_row(&t, t.slot[s], RV_GROUP_STOPS)[t.space.n - 1]);
    if (!t.has_loops)
        out->best = lint_sat_mul(out->best, lint_sat_add(g->loops, 1));
    out->is_limited = t.is_limited;
done:
    free(t.limit_dim);
    free(t.visit_dim);
    free(t.slot);
    free(t.unmet_slot);
    free(t.values);
    free(t.settled);
    free(t.rows);
    lint_group_fold_free(t.fold);
    return rc;
}
