#include "tests/unit/config_analysis/oracle.h"

#include <check.h>
#include <string.h>

struct ways { /* where a visit can lead: sets of stages as bits */
    unsigned by_output, by_error;
};
struct search {
    const struct world *w;
    enum oracle_view view;
    struct ways ways[ORACLE_STAGES];
    int64_t visits[ORACLE_STAGES], uses[ORACLE_STAGES][ORACLE_STAGES];
    struct oracle_answer best;
};

static unsigned bit(int target)
{
    return target >= 0 ? 1u << target : 0;
}

/* One output: values of the keys x and y (0: absent), and the truth of the expressions "output.a" and "state.b". */
struct output {
    int x, y;
    bool a, b;
};

static bool matches(const struct rv_rule *rule, const struct output *out)
{
    int have;

    if (rule->when) {
        const char *text = rv_expr_text(rule->when);

        return strcmp(text, "true") == 0 || (strcmp(text, "output.a") == 0 ? out->a : out->b);
    }
    have = rule->condition[0] == 'x' ? out->x : out->y;
    return have != 0 && have == (int)json_object_get_double(rule->value);
}

static int route(const struct rv_agent *a, const struct output *out)
{
    for (size_t i = 0; i < a->routing.n_rules; i++) {
        if (matches(&a->routing.rules[i], out))
            return a->routing.rules[i].target;
    }
    return a->routing.default_target;
}

static struct ways find_ways(const struct search *s, int stage)
{
    const struct rv_agent *a = &s->w->agents[stage];
    struct ways ways = {0, bit(a->routing.error_target)};

    if (a->routing.function[0]) {
        bool free = s->view == ORACLE_ANYTHING || s->view == ORACLE_MOCKED;

        ways.by_output = free ? (1u << s->w->p.n_agents) - 1 : 0;
        return ways;
    }
    for (int i = 0; i < 4 * 4 * 4; i++) {
        struct output out = {i & 3, i >> 2 & 3, i >> 4 & 1, i >> 5 & 1};

        if ((s->view == ORACLE_SURE_TRUE && !out.b) || (s->view == ORACLE_SURE_FALSE && out.b))
            continue;
        ways.by_output |= bit(route(a, &out));
    }
    return ways;
}

static bool calls_model(const struct search *s, int stage)
{
    const struct rv_agent *a = &s->w->agents[stage];

    return a->has_llm && !(a->hooks.mock && a->hooks.mock_handler[0]) && s->view != ORACLE_MOCKED;
}

static int64_t retries_of(const struct world *w, int stage)
{
    int64_t own = w->agents[stage].limits.max_retries, cap = w->p.execution.max_llm_retries;

    return own < cap ? own : cap;
}

static int64_t limit_of(const struct world *w, int from, int to)
{
    for (size_t i = 0; i < w->p.n_edge_limits; i++) {
        if (w->limits[i].from == from && w->limits[i].to == to)
            return w->limits[i].max_count;
    }
    return 0;
}

struct position {
    int stage;
    int64_t hops, calls, iteration;
};

static void arrive(struct search *s, struct position at);

static void leave(struct search *s, struct position at, int to)
{
    const struct rv_pipeline *p = &s->w->p;
    int64_t limit = limit_of(s->w, at.stage, to), own = p->agents[to].limits.max_visits;
    int from = at.stage;

    if (to <= from) {
        at.iteration++;
        if (at.iteration > p->max_iterations || !p->execution.enable_loop_back)
            return;
    }
    if ((limit > 0 && s->uses[from][to] >= limit) || (own > 0 && s->visits[to] >= own))
        return;
    s->uses[from][to]++;
    at.stage = to;
    arrive(s, at);
    s->uses[from][to]--;
}

static void leave_all(struct search *s, struct position at, unsigned to)
{
    for (int i = 0; i < (int)s->w->p.n_agents; i++) {
        if (to >> i & 1)
            leave(s, at, i);
    }
}

static void arrive(struct search *s, struct position at)
{
    const struct rv_pipeline *p = &s->w->p;
    const struct rv_agent *a = &p->agents[at.stage];
    struct ways ways = s->ways[at.stage];
    bool calls = calls_model(s, at.stage), early;

    if (at.hops >= p->max_agent_hops || (calls && at.calls >= p->max_llm_calls))
        return;
    at.hops++;
    s->visits[at.stage]++;
    if (at.hops > s->best.visits)
        s->best.visits = at.hops;
    early = s->view == ORACLE_ANYTHING || a->hooks.pre_process[0];
    if (!calls) {
        leave_all(s, at, ways.by_output | ways.by_error);
    } else {
        if (early)
            leave_all(s, at, ways.by_error);
        if (a->hooks.before_model.n > 0) /* it answers in place of the model */
            leave_all(s, at, ways.by_output | ways.by_error);
        for (int64_t k = 0; k <= retries_of(s->w, at.stage) && at.calls < p->max_llm_calls; k++) {
            at.calls++;
            if (at.calls > s->best.calls)
                s->best.calls = at.calls;
            leave_all(s, at, ways.by_output | ways.by_error);
        }
    }
    s->visits[at.stage]--;
}

struct oracle_answer oracle_sequential(const struct world *w, enum oracle_view view)
{
    struct search s = {.w = w, .view = view};

    ck_assert_uint_le(w->p.n_agents, ORACLE_STAGES);
    for (int i = 0; i < (int)w->p.n_agents; i++)
        s.ways[i] = find_ways(&s, i);
    if (w->p.n_agents > 0)
        arrive(&s, (struct position){0});
    return s.best;
}

/* --- Parallel --- */
struct batches {
    const struct world *w;
    bool mocked;
    struct oracle_answer best;
};
struct moment {
    enum rv_stage_state states[ORACLE_STAGES];
    unsigned forced; /* stages an error route has made ready */
    int64_t hops, calls;
};

static void next_batch(struct batches *b, const struct moment *m);

/* The stages of `started` from `stage` on: each one succeeds, or fails where an error route catches it. */
static void settle(struct batches *b, const struct moment *m, unsigned started, int stage, bool stop)
{
    const struct rv_agent *a = &b->w->agents[stage];
    struct moment next = *m;
    bool calls;

    if (stage == (int)b->w->p.n_agents) {
        if (!stop)
            next_batch(b, m);
        return;
    }
    if (!(started >> stage & 1)) {
        settle(b, m, started, stage + 1, stop);
        return;
    }
    calls = a->has_llm && !(a->hooks.mock && a->hooks.mock_handler[0]) && !b->mocked;
    int64_t least = calls && a->hooks.before_model.n > 0 ? -1 : 0;             /* -1: it is not made */
    for (int64_t k = least; k <= (calls ? retries_of(b->w, stage) : 0); k++) { /* the first call was reserved */
        if (k > 0 && m->calls + k > b->w->p.max_llm_calls)
            break;
        next.calls = m->calls + k;
        if (next.calls > b->best.calls)
            b->best.calls = next.calls;
        next.states[stage] = RV_STAGE_COMPLETED;
        next.forced = m->forced;
        settle(b, &next, started, stage + 1, stop);
        if (a->routing.error_target >= 0) {
            next.states[stage] = RV_STAGE_FAILED;
            next.forced = m->forced | bit(a->routing.error_target);
            settle(b, &next, started, stage + 1, stop);
        }
    }
}

static void next_batch(struct batches *b, const struct moment *m)
{
    struct moment next = *m;
    unsigned started = 0;
    bool stop = false;
    int ready[ORACLE_STAGES];
    size_t n_ready = rv_pipeline_collect_ready(&b->w->p, m->states, ready), at = 0;

    for (int s = 0; s < (int)b->w->p.n_agents; s++) {
        const struct rv_agent *a = &b->w->agents[s];
        bool is_ready = at < n_ready && ready[at] == s;
        bool calls = a->has_llm && !(a->hooks.mock && a->hooks.mock_handler[0]) && !b->mocked;
        bool is_forced = m->states[s] == RV_STAGE_WAITING && m->forced >> s & 1;

        at += is_ready;
        if (!is_forced && !is_ready)
            continue;
        if (next.hops >= b->w->p.max_agent_hops || (calls && next.calls >= b->w->p.max_llm_calls)) {
            stop = true;
            continue;
        }
        next.hops++;
        next.calls += calls;
        started |= 1u << s;
    }
    if (next.hops > b->best.visits)
        b->best.visits = next.hops;
    if (next.calls > b->best.calls)
        b->best.calls = next.calls;
    if (started != 0)
        settle(b, &next, started, 0, stop);
}

struct oracle_answer oracle_parallel(const struct world *w, bool mocked)
{
    struct batches b = {.w = w, .mocked = mocked};

    ck_assert_uint_le(w->p.n_agents, ORACLE_STAGES);
    next_batch(&b, &(struct moment){.forced = 0});
    return b.best;
}
