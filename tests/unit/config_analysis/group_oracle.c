#include "tests/unit/config_analysis/group_oracle.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BRANCHES 24
#define MAX_LIMITS   8
#define MAX_STATES   ((size_t)1 << 18)

enum state_of { FREE, VISITS, VISITS_UNMET, ASKS, WAITS, ARRIVED, ENDED, FAILED };
struct branch {
    int8_t state, stage, opener, place; /* opener: the branch whose group it is in, -1: the main branch */
    int8_t fork;                        /* WAITS: the stage that opened the group */
};
/* A moment of a run. All bytes are compared, so there is no room between the members. */
struct moment {
    struct branch branches[MAX_BRANCHES];
    uint8_t visited[GROUP_ORACLE_STAGES], uses[MAX_LIMITS];
    uint8_t visits, calls, loops, questions;
};
struct search {
    const struct rv_pipeline *p;
    bool mocked, is_reached[GROUP_ORACLE_STAGES];
    int join_of[GROUP_ORACLE_STAGES], fork_of[GROUP_ORACLE_STAGES];
    struct moment *seen; /* a hash table */
    bool *is_used;
    size_t n_seen;
    struct group_oracle_answer best;
};

static void go_on(struct search *s, const struct moment *m);

static bool is_join(const struct search *s, int stage)
{
    return s->p->agents[stage].join.wait != RV_WAIT_NOT;
}

/* --- Where branches meet --- */

/* Marks what can be reached, and which join the branches of each fork route to. */
static void look(struct search *s, int stage, int fork, const int *outer);

static void look_at(struct search *s, int to, int fork, const int *outer)
{
    if (to < 0)
        return;
    if (!is_join(s, to)) {
        look(s, to, fork, outer);
        return;
    }
    ck_assert_int_ge(fork, 0);
    s->join_of[fork] = to;
    look(s, to, outer[fork], outer);
}

static void look_at_list(struct search *s, int from, const struct rv_branches *list, const int *outer)
{
    int inner[GROUP_ORACLE_STAGES];

    memcpy(inner, outer, sizeof inner);
    for (size_t i = 0; i < list->n; i++)
        look(s, list->items[i].target, from, inner);
}

static void look(struct search *s, int stage, int fork, const int *outer)
{
    const struct rv_agent *a = &s->p->agents[stage];
    int inner[GROUP_ORACLE_STAGES];

    if (s->is_reached[stage])
        return;
    s->is_reached[stage] = true;
    s->fork_of[stage] = fork;
    memcpy(inner, outer, sizeof inner);
    inner[stage] = fork; /* the group that is open where this stage opens one */
    if (a->routing.default_target == RV_TARGET_LIST)
        look_at_list(s, stage, &a->routing.branches, inner);
    else
        look_at(s, a->routing.default_target, fork, inner);
    for (size_t i = 0; i < a->routing.n_rules; i++) {
        if (a->routing.rules[i].target == RV_TARGET_LIST)
            look_at_list(s, stage, &a->routing.rules[i].branches, inner);
        else
            look_at(s, a->routing.rules[i].target, fork, inner);
    }
    look_at(s, a->routing.error_target, fork, inner);
    for (size_t i = 0; i < a->ask.n_routes; i++)
        look_at(s, a->ask.routes[i].target, fork, inner);
}

/* --- Bounds --- */

static bool calls_model(const struct search *s, int stage)
{
    return s->p->agents[stage].has_llm && !s->mocked;
}

static void note(struct search *s, const struct moment *m)
{
    if (m->visits > s->best.visits)
        s->best.visits = m->visits;
    if (m->calls > s->best.calls)
        s->best.calls = m->calls;
    if (m->questions > s->best.questions)
        s->best.questions = m->questions;
}

/* False: the bound ends the run. */
static bool take_visit(struct search *s, struct moment *m)
{
    if (m->visits >= s->p->max_agent_hops)
        return false;
    m->visits++;
    note(s, m);
    return true;
}

static bool take_call(struct search *s, struct moment *m)
{
    if (m->calls >= s->p->max_llm_calls)
        return false;
    m->calls++;
    note(s, m);
    return true;
}

static bool take_edge(struct search *s, struct moment *m, int from, int to)
{
    for (size_t i = 0; i < s->p->n_edge_limits; i++) {
        const struct rv_edge_limit *l = &s->p->edge_limits[i];

        if (l->from == from && l->to == to && ++m->uses[i] > l->max_count)
            return false;
    }
    return true;
}

/* The visit begins, with its work or without; elements of a list are all done in it. */
static bool begin(struct search *s, struct moment *m, int branch, int stage, bool is_unmet)
{
    const struct rv_agent *a = &s->p->agents[stage];

    if (a->limits.max_visits > 0 && m->visited[stage] >= a->limits.max_visits)
        return false;
    if (calls_model(s, stage) && !is_unmet && m->calls >= s->p->max_llm_calls)
        return false;
    if (!take_visit(s, m))
        return false;
    if (a->limits.max_visits > 0)
        m->visited[stage]++;
    if (calls_model(s, stage) && !is_unmet && !take_call(s, m))
        return false;
    for (int64_t i = 0; a->each.list && !is_unmet && i < a->each.max_items; i++)
        if (!take_visit(s, m))
            return false;
    m->branches[branch].state = is_unmet ? VISITS_UNMET : VISITS;
    m->branches[branch].stage = (int8_t)stage;
    return true;
}

/* --- Groups --- */

static void forget(struct moment *m, int opener)
{
    for (int i = 0; i < MAX_BRANCHES; i++) {
        if (m->branches[i].state == FREE || m->branches[i].opener != opener)
            continue;
        forget(m, i);
        memset(&m->branches[i], 0, sizeof m->branches[i]);
    }
}

struct counts {
    int n, arrived, ended, failed;
};

static struct counts count(const struct moment *m, int opener)
{
    struct counts c = {0, 0, 0, 0};

    for (int i = 0; i < MAX_BRANCHES; i++) {
        if (m->branches[i].state == FREE || m->branches[i].opener != opener)
            continue;
        c.n++;
        c.arrived += m->branches[i].state == ARRIVED;
        c.ended += m->branches[i].state == ENDED;
        c.failed += m->branches[i].state == FAILED;
    }
    return c;
}

/* graph 4: is it settled, and is the join satisfied? */
static bool is_settled(const struct rv_agent_join *join, struct counts c, bool *satisfied)
{
    int over = c.arrived + c.ended + c.failed;

    *satisfied = c.failed == 0;
    if (!join)
        return over == c.n;
    switch (join->wait) {
    case RV_WAIT_ALL:
        *satisfied = c.failed == 0 || join->failures == RV_FAILURES_COLLECT;
        return over == c.n || (join->failures == RV_FAILURES_FAST && c.failed > 0);
    case RV_WAIT_ANY:
        *satisfied = c.arrived > 0;
        return over == c.n;
    case RV_WAIT_NOT:
    case RV_WAIT_COUNT:
        break;
    }
    *satisfied = c.arrived >= join->count;
    return *satisfied || c.n - c.ended - c.failed < join->count;
}

/* A branch of the group is over, or it has just been opened. The run goes on from there; m is used up. */
static void settle(struct search *s, struct moment *m, int opener)
{
    struct branch *b = &m->branches[opener];
    int join = s->join_of[b->fork];
    bool satisfied;

    if (!is_settled(join >= 0 ? &s->p->agents[join].join : NULL, count(m, opener), &satisfied)) {
        go_on(s, m);
        return;
    }
    forget(m, opener);
    if (join >= 0) {
        if (begin(s, m, opener, join, !satisfied))
            go_on(s, m);
        return;
    }
    b->state = satisfied ? ENDED : FAILED;
    if (b->opener >= 0)
        settle(s, m, b->opener);
}

static void end_branch(struct search *s, struct moment *m, int branch, enum state_of how)
{
    m->branches[branch].state = (int8_t)how;
    if (m->branches[branch].opener >= 0)
        settle(s, m, m->branches[branch].opener);
}

static int free_branch(const struct moment *m)
{
    for (int i = 0; i < MAX_BRANCHES; i++)
        if (m->branches[i].state == FREE)
            return i;
    ck_abort_msg("too many branches");
    return -1;
}

/* Every choice of which `when` are false. */
static void open_group(struct search *s, const struct moment *before, int branch, const struct rv_branches *list)
{
    for (unsigned misses = 0; misses < 1u << list->n; misses++) {
        struct moment m = *before;
        int from = m.branches[branch].stage;
        bool goes_on = true, is_choice = true;

        for (size_t i = 0; i < list->n; i++)
            is_choice = is_choice && (list->items[i].when || !(misses >> i & 1));
        m.branches[branch].state = WAITS;
        m.branches[branch].fork = (int8_t)from;
        for (size_t i = 0; i < list->n && is_choice && goes_on; i++) {
            int at = free_branch(&m), to = list->items[i].target;

            m.branches[at] = (struct branch){ENDED, (int8_t)to, (int8_t)branch, (int8_t)i, 0};
            if (!(misses >> i & 1))
                goes_on = take_edge(s, &m, from, to) && begin(s, &m, at, to, false);
        }
        if (is_choice && goes_on)
            settle(s, &m, branch);
    }
}

/* --- Ways to leave a stage --- */

static void take(struct search *s, const struct moment *before, int branch, int to, const struct rv_branches *list)
{
    struct moment m = *before;
    int from = m.branches[branch].stage;

    if (to == RV_TARGET_LIST) {
        open_group(s, &m, branch, list);
        return;
    }
    if (to < 0) {
        end_branch(s, &m, branch, ENDED);
        return;
    }
    if (!take_edge(s, &m, from, to))
        return;
    if (is_join(s, to)) {
        end_branch(s, &m, branch, ARRIVED);
        return;
    }
    if (to <= from && (!s->p->execution.enable_loop_back || m.loops++ >= s->p->max_iterations))
        return;
    if (begin(s, &m, branch, to, false))
        go_on(s, &m);
}

static void leave_failed(struct search *s, const struct moment *before, int branch)
{
    const struct rv_agent *a = &s->p->agents[before->branches[branch].stage];
    struct moment m = *before;

    if (a->routing.error_target == RV_TARGET_NONE)
        end_branch(s, &m, branch, FAILED);
    else
        take(s, &m, branch, a->routing.error_target, NULL);
}

/* The output is stored, and no question is open. */
static void route(struct search *s, const struct moment *m, int branch)
{
    const struct rv_agent *a = &s->p->agents[m->branches[branch].stage];

    for (size_t i = 0; i < a->routing.n_rules; i++)
        take(s, m, branch, a->routing.rules[i].target, &a->routing.rules[i].branches);
    take(s, m, branch, a->routing.default_target, &a->routing.branches);
    leave_failed(s, m, branch);
}

static void answer(struct search *s, const struct moment *m, int branch)
{
    const struct rv_agent *a = &s->p->agents[m->branches[branch].stage];
    bool yes = false, no = false;

    for (size_t i = 0; i < a->ask.n_routes; i++) {
        take(s, m, branch, a->ask.routes[i].target, NULL);
        yes = yes || strcmp(a->ask.routes[i].choice, "yes") == 0;
        no = no || strcmp(a->ask.routes[i].choice, "no") == 0;
    }
    if (yes && no)
        leave_failed(s, m, branch);
    else
        route(s, m, branch);
}

/* The work is done. */
static void succeed(struct search *s, const struct moment *before, int branch)
{
    const struct rv_agent *a = &s->p->agents[before->branches[branch].stage];
    struct moment m = *before;

    if (!a->ask.question) {
        route(s, &m, branch);
        return;
    }
    m.questions++;
    m.branches[branch].state = ASKS;
    note(s, &m);
    go_on(s, &m);
}

static void leave(struct search *s, const struct moment *before, int branch)
{
    int stage = before->branches[branch].stage;
    const struct rv_agent *a = &s->p->agents[stage];
    struct moment m = *before;

    if (m.branches[branch].state == VISITS_UNMET) {
        leave_failed(s, &m, branch);
        return;
    }
    if (m.branches[branch].state == ASKS) {
        answer(s, &m, branch);
        return;
    }
    if (calls_model(s, stage)) {
        m.calls--; /* it fails before its first call */
        leave_failed(s, &m, branch);
        m = *before;
    }
    for (int64_t k = 0; k <= (calls_model(s, stage) ? a->limits.max_retries : 0); k++) {
        if (k > 0 && !take_call(s, &m))
            break;
        succeed(s, &m, branch);
        leave_failed(s, &m, branch);
    }
}

/* --- Every order --- */

static bool is_new(struct search *s, const struct moment *m)
{
    const unsigned char *bytes = (const unsigned char *)m;
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < sizeof *m; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    for (size_t at = hash % (2 * MAX_STATES);; at = (at + 1) % (2 * MAX_STATES)) {
        if (!s->is_used[at]) {
            s->is_used[at] = true;
            s->seen[at] = *m;
            s->n_seen++;
            return true;
        }
        if (memcmp(&s->seen[at], m, sizeof *m) == 0)
            return false;
    }
}

static void go_on(struct search *s, const struct moment *m)
{
    if (s->n_seen >= MAX_STATES) {
        s->best.is_whole = false;
        return;
    }
    if (!is_new(s, m))
        return;
    for (int i = 0; i < MAX_BRANCHES; i++)
        if (m->branches[i].state >= VISITS && m->branches[i].state <= ASKS)
            leave(s, m, i);
}

static void look_at_all(struct search *s)
{
    int outer[GROUP_ORACLE_STAGES];

    ck_assert_uint_le(s->p->n_agents, GROUP_ORACLE_STAGES);
    for (int i = 0; i < GROUP_ORACLE_STAGES; i++)
        s->join_of[i] = s->fork_of[i] = outer[i] = -1;
    look(s, 0, -1, outer);
}

void group_oracle_levels(struct rv_pipeline *p)
{
    struct search s = {.p = p};

    look_at_all(&s);
    for (size_t i = 0; i < p->n_agents; i++) {
        struct rv_agent *a = &p->agents[i];

        a->level = (struct rv_agent_level){.fork = s.fork_of[i], .is_reached = s.is_reached[i]};
        for (int at = s.fork_of[i]; at >= 0; at = s.fork_of[at])
            a->level.depth++;
        a->routing.join_of = s.join_of[i] >= 0 ? s.join_of[i] : RV_TARGET_NONE;
    }
}

struct group_oracle_answer group_oracle(const struct rv_pipeline *p, bool mocked)
{
    static struct moment *seen;
    static bool *is_used;
    struct search s = {.p = p, .mocked = mocked, .best.is_whole = true};
    struct moment m = {.visits = 0};

    ck_assert_uint_le(p->n_edge_limits, MAX_LIMITS);
    if (!seen) { /* one table for all: making it takes longer than most searches */
        seen = malloc(2 * MAX_STATES * sizeof *seen);
        is_used = malloc(2 * MAX_STATES * sizeof *is_used);
        ck_assert(seen && is_used);
    }
    s.seen = seen;
    s.is_used = is_used;
    memset(is_used, 0, 2 * MAX_STATES * sizeof *is_used);
    look_at_all(&s);
    m.branches[0].opener = -1;
    if (begin(&s, &m, 0, 0, false))
        go_on(&s, &m);
    return s.best;
}
