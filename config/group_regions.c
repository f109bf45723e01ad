/* What the branches of a group can do before they meet: whether one can reach the join, and which outputs it can write.
 *
 * The stages of one level, with the group that each of them opens taken as a whole, are walked once for each list of
 * the stage that opened the level. A stage is entered for two different branches at most: a third one would add
 * nothing. */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

#define MAX_CONFLICTS 8 /* told of one list: a reader mends the first ones first */

struct region {
    struct rv_loader *l;
    struct rv_pipeline *p;
    /* Stages in the order of a walk down the levels: those inside the groups of a stage follow it. */
    int *order, *first, *end; /* first[s], end[s]: of order, the stages inside the groups that s opens */
    int *key;                 /* per stage: the first stage with the same output key */
    int *stack;
    size_t n_stack;
    /* Of the list that is looked at, by its number. */
    size_t list;
    size_t *seen;             /* per stage: the list that last came by */
    int (*by)[2];             /* per stage: two branches that reach it; -1: none */
    size_t *written;          /* per key: the list in which it was last written, or told */
    int *writer, *writer_way; /* per key: the stage, and its branch; -1 told already */
};

static const struct rv_agent *agent(const struct region *r, int stage)
{
    return &r->p->agents[stage];
}

/* --- Who can reach the join --- */

/* Where a stage hands its branch on within the level, one after another: by a single name, or through the groups that
 * it opens. */
struct onward {
    struct rv_way_cursor at;
    bool is_through;
};

static bool next_onward(const struct region *r, int stage, struct onward *o, int *to)
{
    const struct rv_agent *a = agent(r, stage);
    struct rv_group_way way;

    while (config_next_way(a, &o->at, &way)) {
        *to = way.to;
        if (way.to >= 0 && way.kind != RV_WAY_BRANCH)
            return true;
    }
    *to = a->routing.join_of;
    if (o->is_through || *to < 0)
        return false;
    o->is_through = true;
    return true;
}

static bool is_join(const struct region *r, int stage)
{
    return agent(r, stage)->join.wait != RV_WAIT_NOT;
}

/* The way ends the branch at the join of its own group; it does not where it comes out of a group inside. */
static bool leaves_level(const struct region *r, int from, int to)
{
    return is_join(r, to) && agent(r, from)->routing.join_of != to;
}

/* Backwards from the joins, along the ways turned around. */
static int mark_joining(struct region *r)
{
    size_t n = r->p->n_agents, total = 0;
    int *start = config_loader_array(r->l, n + 2, sizeof *start), *items;

    if (!start)
        return r->l->rc;
    for (int pass = 0; pass < 2; pass++) {
        items = pass == 1 ? config_loader_array(r->l, total, sizeof *items) : NULL;
        if (pass == 1 && !items)
            return r->l->rc;
        for (size_t i = 0; i < n; i++) {
            struct onward o = {{0}, false};
            int to;

            while (next_onward(r, (int)i, &o, &to)) {
                if (leaves_level(r, (int)i, to)) {
                    if (pass == 0 && !r->p->agents[i].level.can_join) {
                        r->p->agents[i].level.can_join = true;
                        r->stack[r->n_stack++] = (int)i;
                    }
                } else if (pass == 0) {
                    start[to + 2]++;
                    total++;
                } else {
                    items[start[to + 1]++] = (int)i;
                }
            }
        }
        for (size_t i = 0; pass == 0 && i < n; i++)
            start[i + 2] += start[i + 1];
    }
    while (r->n_stack > 0) {
        int at = r->stack[--r->n_stack];

        for (int k = start[at]; k < start[at + 1]; k++)
            if (!r->p->agents[items[k]].level.can_join) {
                r->p->agents[items[k]].level.can_join = true;
                r->stack[r->n_stack++] = items[k];
            }
    }
    return 0;
}

/* --- What is inside of what --- */

static int put_in_order(struct region *r)
{
    size_t n = r->p->n_agents, n_order = 0;
    int *next = config_loader_array(r->l, n, sizeof *next), *inner = config_loader_array(r->l, n, sizeof *inner),
        outer = -1;

    if (!next || !inner)
        return r->l->rc;
    for (size_t i = 0; i < n; i++)
        inner[i] = -1;
    for (size_t i = n; i-- > 0;) { /* lists of the stages of each level, in stage order */
        int fork = r->p->agents[i].level.fork, *head = fork >= 0 ? &inner[fork] : &outer;
        next[i] = *head;
        *head = (int)i;
    }
    for (int at = outer; at >= 0;) {
        r->order[n_order++] = at;
        r->first[at] = (int)n_order;
        if (inner[at] >= 0) {
            r->stack[r->n_stack++] = at;
            at = inner[at];
            continue;
        }
        r->end[at] = (int)n_order;
        while (next[at] < 0 && r->n_stack > 0) {
            at = r->stack[--r->n_stack];
            r->end[at] = (int)n_order;
        }
        at = next[at];
    }
    r->n_stack = 0;
    return 0;
}

static int find_keys(struct region *r)
{
    rv_index keys = {NULL, 0, 0};
    int rc = 0;

    for (size_t i = 0; i < r->p->n_agents && rc == 0; i++) {
        rv_str key = rv_str_of(r->p->agents[i].output.key);

        r->key[i] = (int)i;
        rc = rv_index_add(&keys, key, (int)i);
        if (rc == RV_E_EXISTS) {
            r->key[i] = rv_index_get(&keys, key);
            rc = 0;
        }
    }
    rv_index_fini(&keys);
    return r->l->rc = rc;
}

/* --- Lists --- */

static void reach(struct region *r, int stage, int branch)
{
    if (r->seen[stage] != r->list) {
        r->seen[stage] = r->list;
        r->by[stage][0] = branch;
        r->by[stage][1] = -1;
    } else if (r->by[stage][0] != branch && r->by[stage][1] < 0) {
        r->by[stage][1] = branch;
    } else {
        return;
    }
    r->stack[r->n_stack++] = stage;
    r->stack[r->n_stack++] = branch;
}

static void walk_list(struct region *r, const struct rv_branches *list)
{
    for (size_t i = list->n; i-- > 0;) /* the first is walked first */
        if (list->items[i].target >= 0)
            reach(r, list->items[i].target, (int)i);
    while (r->n_stack > 0) {
        int branch = r->stack[--r->n_stack], stage = r->stack[--r->n_stack], to;
        struct onward o = {{0}, false};

        while (next_onward(r, stage, &o, &to))
            if (!leaves_level(r, stage, to))
                reach(r, to, branch);
    }
}

struct group {
    const struct rv_agent *opener, *join; /* join NULL: there is none */
    const struct rv_branches *list;
    int n_told;
};

static bool is_merged(const struct group *g, const char *key)
{
    for (size_t i = 0; g->join && i < g->join->join.n_merges; i++)
        if (strcmp(g->join->join.merges[i].key, key) == 0)
            return true;
    return false;
}

/* Two stages that write a key, and the ways that lead to them. */
struct two_writers {
    int one, by_one, two, by_two;
};
static void tell_conflict(struct region *r, struct group *g, int key, const struct two_writers *by)
{
    const struct rv_branches *list = g->list;
    const char *name = agent(r, key)->output.key, *first = agent(r, by->one)->name, *second = agent(r, by->two)->name;
    char hint[RV_HINT_MAX], where[2 * RV_MAX_STAGE_NAME + 64];
    int later = by->by_one > by->by_two ? by->by_one : by->by_two,
        earlier = by->by_one > by->by_two ? by->by_two : by->by_one;

    if (g->n_told++ >= MAX_CONFLICTS)
        return;
    if (by->by_one > by->by_two) {
        const char *swap = first;
        first = second;
        second = swap;
    }
    if (by->one == by->two)
        snprintf(where, sizeof where, "both of them visit \"%s\"", first);
    else
        snprintf(where, sizeof where, "at \"%s\" and at \"%s\"", first, second);
    if (g->join)
        snprintf(
            hint, sizeof hint,
            "give the stages output keys of their own, or say how to merge: join: {merge: {%s: replace}} of \"%s\" "
            "(replace: the last in the list, append: all of them, merge_dict: their members)",
            name, g->join->name);
    else
        snprintf(hint, sizeof hint,
                 "give the stages output keys of their own, or let the branches meet at a join with merge: {%s: "
                 "replace}",
                 name);
    rv_findings_add_as(r->l->findings, RV_SEVERITY_ERROR, "write_conflict", &list->items[later].src, hint,
                       "stage \"%s\": the branches \"%s\" and \"%s\" can both write the output \"%s\" (%s), and %s%s%s",
                       g->opener->name, list->items[earlier].name, list->items[later].name, name, where,
                       g->join ? "the join \"" : "no join merges it", g->join ? g->join->name : "",
                       g->join ? "\" does not merge it" : "");
}

/* A stage inside of `top`, which these branches reach, writes its output. */
static void write_output(struct region *r, struct group *g, int stage, const int by[2])
{
    int key = r->key[stage];

    if (is_merged(g, agent(r, key)->output.key))
        return;
    if (r->written[key] != r->list) {
        r->written[key] = r->list;
        r->writer[key] = stage;
        r->writer_way[key] = by[0];
    }
    if (r->writer_way[key] < 0)
        return;
    int other = by[1] >= 0 && by[0] == r->writer_way[key] ? by[1] : by[0];
    if (other == r->writer_way[key])
        return;
    tell_conflict(r, g, key,
                  &(const struct two_writers){
                      .one = r->writer[key], .by_one = r->writer_way[key], .two = stage, .by_two = other});
    r->writer_way[key] = -1;
}

static void check_writes(struct region *r, struct group *g)
{
    const struct rv_agent *opener = g->opener;

    for (int i = r->first[opener->index]; i < r->end[opener->index]; i++) {
        int top = r->order[i];

        if (r->seen[top] == r->list && agent(r, top)->level.fork == opener->index) {
            write_output(r, g, top, r->by[top]);
            for (int k = r->first[top]; k < r->end[top]; k++)
                write_output(r, g, r->order[k], r->by[top]);
        }
        i = r->end[top] - 1 > i ? r->end[top] - 1 : i;
    }
}

/* So many have to arrive, and not that many can. */
static void check_count(struct region *r, const struct group *g)
{
    int64_t n = 0;
    char hint[RV_HINT_MAX];

    if (!g->join || g->join->join.wait != RV_WAIT_COUNT)
        return;
    for (size_t i = 0; i < g->list->n; i++)
        n += g->list->items[i].target >= 0 && agent(r, g->list->items[i].target)->level.can_join;
    if (n >= g->join->join.count)
        return;
    if (n > 0)
        snprintf(hint, sizeof hint, "write at most join: %lld, or let more branches route to \"%s\"", (long long)n,
                 g->join->name);
    else
        snprintf(hint, sizeof hint, "let a branch of this list route to \"%s\"", g->join->name);
    rv_findings_add_as(
        r->l->findings, RV_SEVERITY_ERROR, "join_impossible", &g->join->join.src, hint,
        "stage \"%s\": the join waits for %lld of the branches of \"%s\", and %lld of the list at %d:%d can "
        "reach it",
        g->join->name, (long long)g->join->join.count, g->opener->name, (long long)n, g->list->src.line,
        g->list->src.col);
}

static void check_list(struct region *r, const struct rv_agent *a, const struct rv_branches *list)
{
    struct group g = {a, a->routing.join_of >= 0 ? agent(r, a->routing.join_of) : NULL, list, 0};

    if (list->n == 0)
        return;
    check_count(r, &g);
    if (g.join && g.join->join.wait == RV_WAIT_COUNT && g.join->join.count == 1)
        return; /* one branch alone is merged */
    r->list++;
    walk_list(r, list);
    check_writes(r, &g);
}

void config_check_regions(struct rv_loader *l)
{
    size_t n = l->p->n_agents;
    struct region r = {
        .l = l,
        .p = l->p,
        .order = config_loader_array(l, n, sizeof *r.order),
        .first = config_loader_array(l, n, sizeof *r.first),
        .end = config_loader_array(l, n, sizeof *r.end),
        .key = config_loader_array(l, n, sizeof *r.key),
        .stack = config_loader_array(l, 4 * n, sizeof *r.stack),
        .seen = config_loader_array(l, n, sizeof *r.seen),
        .by = config_loader_array(l, n, sizeof *r.by),
        .written = config_loader_array(l, n, sizeof *r.written),
        .writer = config_loader_array(l, n, sizeof *r.writer),
        .writer_way = config_loader_array(l, n, sizeof *r.writer_way),
    };

    if (l->rc < 0 || mark_joining(&r) < 0 || put_in_order(&r) < 0 || find_keys(&r) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct rv_agent *a = &l->p->agents[i];

        for (size_t k = 0; k < a->routing.n_rules; k++)
            check_list(&r, a, &a->routing.rules[k].branches);
        check_list(&r, a, &a->routing.branches);
    }
}
