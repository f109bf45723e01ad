/* Which groups of branches are open at each stage, and the join of each group.
 *
 * A list of targets opens a group, a stage with `join` closes the innermost one. The level of a stage is the stack of
 * stages whose groups are open there; since each of them has one level, too, the innermost is enough. One pass in stage
 * order gives each stage the level of the first way that leads there. Every other way has to bring the same one: then
 * groups nest like parentheses, and no join waits for a branch that cannot come. */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

#define NO_STAGE (-1) /* no group is open */

/* --- Levels --- */

/* What is known of one stage. */
struct mark {
    bool is_set, is_queued, is_done;
    bool is_vague;                    /* something is wrong at or before it: what follows from that is not said again */
    struct rv_group_way first, other; /* the way that gave it its level; the first that brought another one */
    int other_fork;
    bool has_other, is_told;
};

struct levels {
    struct rv_loader *l;
    struct rv_pipeline *p;
    struct mark *marks;
    int *stack; /* stages before the one that the pass is at, which only a way back leads to */
    size_t n_stack;
    int at;        /* the stage that the pass is at */
    bool is_guess; /* the stages that are looked at now cannot be reached */
};

static struct rv_agent *agent(const struct levels *v, int stage)
{
    return &v->p->agents[stage];
}

static void find(struct levels *v, const char *code, const struct rv_src *src, const char *hint, const char *text)
{
    rv_findings_add_as(v->l->findings, RV_SEVERITY_ERROR, code, src, hint, "%s", text);
}

static bool is_join(const struct levels *v, int stage)
{
    return v->p->agents[stage].join.wait != RV_WAIT_NOT;
}

static int depth_of(const struct levels *v, int fork)
{
    return fork < 0 ? 0 : v->p->agents[fork].level.depth + 1;
}

/* The groups of `outer` are all among those of `inner`. */
static bool is_around(const struct levels *v, int outer, int inner)
{
    while (depth_of(v, inner) > depth_of(v, outer))
        inner = agent(v, inner)->level.fork;
    return inner == outer;
}

static bool says_nothing(const struct levels *v, const struct rv_group_way *way)
{
    return v->is_guess || v->marks[way->from].is_vague || v->marks[way->to].is_vague;
}

static void set_level(struct levels *v, const struct rv_group_way *way, int fork)
{
    struct mark *m = &v->marks[way->to];
    struct rv_agent *a = agent(v, way->to);

    m->is_set = true;
    m->first = *way;
    m->is_vague = m->is_vague || (way->from != way->to && v->marks[way->from].is_vague);
    a->level.fork = fork;
    a->level.depth = depth_of(v, fork);
    a->level.is_reached = !v->is_guess;
}

/* The stage is looked at later in the pass; one that the pass has gone by, next. */
static void queue(struct levels *v, int stage)
{
    if (stage < v->at && !v->marks[stage].is_done && !v->marks[stage].is_queued) {
        v->marks[stage].is_queued = true;
        v->stack[v->n_stack++] = stage;
    }
}

/* A way leads to a stage where these groups are open. */
static void arrive(struct levels *v, const struct rv_group_way *way, int fork)
{
    struct mark *m = &v->marks[way->to];

    if (!m->is_set) {
        set_level(v, way, fork);
    } else if (agent(v, way->to)->level.fork != fork && !m->has_other && !says_nothing(v, way)) {
        m->has_other = m->is_vague = true; /* a second way of that kind is told with the first, see tell() */
        m->other = *way;
        m->other_fork = fork;
    }
    queue(v, way->to);
}

static void join_backwards(struct levels *v, const struct rv_group_way *way)
{
    const char *from = agent(v, way->from)->name, *to = agent(v, way->to)->name;
    char text[RV_HINT_MAX], hint[RV_HINT_MAX];

    if (way->from == way->to)
        snprintf(text, sizeof text, "stage \"%s\": a join cannot route to itself", from);
    else
        snprintf(text, sizeof text, "stage \"%s\": it routes to the join \"%s\", which comes before it in stage order",
                 from, to);
    snprintf(hint, sizeof hint, "a join comes after its branches: move \"%s\" behind \"%s\", or raise its stage_order",
             to, from);
    find(v, "join_backwards", &way->src, way->from == way->to ? "route to a later stage, or to end" : hint, text);
    v->marks[way->to].is_vague = true;
}

static void two_joins(struct levels *v, const struct rv_group_way *way, int fork)
{
    const char *first = agent(v, agent(v, fork)->routing.join_of)->name;
    char text[RV_HINT_MAX], hint[RV_HINT_MAX];

    snprintf(text, sizeof text,
             "stage \"%s\": it routes to the join \"%s\", and the branches of \"%s\" meet at the join \"%s\" already",
             agent(v, way->from)->name, agent(v, way->to)->name, agent(v, fork)->name, first);
    snprintf(hint, sizeof hint, "all lists of a stage share one join: route to \"%s\", or to end", first);
    find(v, "two_joins", &way->src, hint, text);
}

/* A stage whose groups meet at that join; -1: none is known. */
static int opener_of(const struct levels *v, int join)
{
    for (size_t i = 0; i < v->p->n_agents; i++)
        if (v->p->agents[i].routing.join_of == join)
            return (int)i;
    return -1;
}

static void no_group(struct levels *v, const struct rv_group_way *way)
{
    const char *name = agent(v, way->to)->name;
    int opener = way->to <= way->from ? opener_of(v, way->to) : -1;
    char text[RV_HINT_MAX], hint[RV_HINT_MAX];

    snprintf(text, sizeof text, "stage \"%s\": it routes to the join \"%s\", and no group is open there",
             agent(v, way->from)->name, name);
    if (opener >= 0)
        snprintf(hint, sizeof hint, "loop back to \"%s\", which opens its group again", agent(v, opener)->name);
    else
        snprintf(hint, sizeof hint,
                 "route to the join only from branches of a list; from here, name a stage behind the join");
    find(v, "join_without_group", &way->src, hint, text);
}

/* A branch leads to a join: it closes the group of `fork`. */
static void arrive_at_join(struct levels *v, const struct rv_group_way *way, int fork)
{
    bool silent = says_nothing(v, way);

    if (fork < 0) {
        if (!silent)
            no_group(v, way);
        v->marks[way->to].is_vague = true;
        if (!v->marks[way->to].is_set)
            set_level(v, way, fork);
        queue(v, way->to);
        return;
    }
    if (way->to <= way->from && !silent)
        join_backwards(v, way);
    struct rv_agent *opener = agent(v, fork);
    if (opener->routing.join_of == RV_TARGET_NONE)
        opener->routing.join_of = way->to;
    arrive(v, way, opener->level.fork);
}

static void branch(struct levels *v, const struct rv_group_way *way)
{
    const char *from = agent(v, way->from)->name, *to = agent(v, way->to)->name;
    char text[RV_HINT_MAX];

    if (is_join(v, way->to)) {
        snprintf(text, sizeof text, "stage \"%s\": the branch \"%s\" is a join: branches meet there, none begins there",
                 from, to);
        find(v, "bad_branch", &way->src, "name the first stage of a branch, and let that route to the join", text);
        v->marks[way->to].is_vague = true;
        return;
    }
    if (way->to <= way->from) {
        snprintf(text, sizeof text, "stage \"%s\": the branch \"%s\" %s", from, to,
                 way->to == way->from ? "is the stage itself" : "comes before it in stage order");
        find(v, "fork_backwards", &way->src, "a list names later stages: loop back by a single name instead of a list",
             text);
        v->marks[way->to].is_vague = true;
        return;
    }
    if (depth_of(v, way->from) > RV_MAX_GROUP_DEPTH)
        return; /* said of the stage */
    arrive(v, way, way->from);
}

static void follow(struct levels *v, const struct rv_group_way *way)
{
    int fork = agent(v, way->from)->level.fork;

    if (way->to < 0)
        return;
    if (way->kind == RV_WAY_BRANCH)
        branch(v, way);
    else if (is_join(v, way->to))
        arrive_at_join(v, way, fork);
    else
        arrive(v, way, fork);
}

static void too_deep(struct levels *v, const struct rv_agent *a)
{
    char text[RV_HINT_MAX];

    snprintf(text, sizeof text, "stage \"%s\": groups are nested deeper than %d levels here", a->name,
             RV_MAX_GROUP_DEPTH);
    rv_findings_add(v->l->findings, RV_SEVERITY_ERROR, &a->places.name,
                    "join inner groups earlier, or put them into a pipeline of their own", "%s", text);
}

static bool opens_group(const struct rv_agent *a)
{
    for (size_t i = 0; i < a->routing.n_rules; i++)
        if (a->routing.rules[i].target == RV_TARGET_LIST)
            return true;
    return a->routing.default_target == RV_TARGET_LIST;
}

static void look_at(struct levels *v, int stage)
{
    const struct rv_agent *a = agent(v, stage);
    struct rv_way_cursor at = {0};
    struct rv_group_way way;

    v->marks[stage].is_done = true;
    if (a->level.depth == RV_MAX_GROUP_DEPTH && opens_group(a)) {
        too_deep(v, a);
        return;
    }
    while (config_next_way(a, &at, &way))
        follow(v, &way);
}

static void begin_at(struct levels *v, int stage)
{
    const struct rv_group_way start = {stage, stage, RV_WAY_ONE, agent(v, stage)->places.name};

    set_level(v, &start, NO_STAGE);
}

/* One pass in stage order. */
static void walk(struct levels *v)
{
    for (int i = 0; i < (int)v->p->n_agents; i++) {
        v->at = i;
        if (v->is_guess && !v->marks[i].is_set && !is_join(v, i))
            begin_at(v, i);
        if (v->marks[i].is_set && !v->marks[i].is_done)
            look_at(v, i);
        while (v->n_stack > 0) {
            int stage = v->stack[--v->n_stack];
            if (!v->marks[stage].is_done)
                look_at(v, stage);
        }
    }
}

/* --- What was found --- */

static void group_text(const struct levels *v, int fork, char *out, size_t size)
{
    if (fork < 0)
        snprintf(out, size, "outside of all groups");
    else
        snprintf(out, size, "in a group of \"%s\"", agent(v, fork)->name);
}

/* Of two ways to one stage, the one that has to change: a branch that leads out of its group, or a way from outside
 * into a group. */
static bool leads_into_group(const struct levels *v, int stage, const struct rv_group_way *inner, int inner_fork)
{
    int join = agent(v, inner_fork)->routing.join_of;

    return inner->kind == RV_WAY_BRANCH || (stage > inner_fork && join >= 0 && stage < join);
}

static void mixed_hint(const struct levels *v, const struct rv_group_way *wrong, int fork, bool is_into,
                       char out[RV_HINT_MAX])
{
    int join = fork >= 0 ? agent(v, fork)->routing.join_of : RV_TARGET_NONE;
    const char *opener = fork >= 0 ? agent(v, fork)->name : "", *meets = join >= 0 ? agent(v, join)->name : NULL;

    if (is_into)
        snprintf(out, RV_HINT_MAX, "route to \"%s\" instead, which opens its group again", opener);
    else if (wrong->kind == RV_WAY_BY_ERROR)
        snprintf(out, RV_HINT_MAX, "let error_next name a stage of the same branch, %s%s%s",
                 meets ? "the join \"" : "or ", meets ? meets : "end", meets ? "\", or end" : "");
    else if (wrong->to <= fork)
        snprintf(out, RV_HINT_MAX, "a loop goes around the whole group: loop back from %s%s%s",
                 meets ? "the join \"" : "a join of the group", meets ? meets : "",
                 meets ? "\" or from a stage behind it" : "");
    else if (meets)
        snprintf(out, RV_HINT_MAX, "route to the join \"%s\" and on from there, or end the branch with end", meets);
    else
        snprintf(out, RV_HINT_MAX, "join the branches of \"%s\" first, or end the branch with end", opener);
}

/* Where a stage belongs that ways of different levels lead to. */
struct verdict {
    const struct rv_group_way *right; /* a way that may stay */
    int fork;                         /* of that way */
    bool is_into;                     /* the others come from outside of the group */
};

static struct verdict judge(const struct levels *v, const struct mark *m, int stage)
{
    int fork = agent(v, stage)->level.fork;
    const struct verdict first = {&m->first, fork, true}, other = {&m->other, m->other_fork, true};
    struct verdict out = first;

    if (is_around(v, m->other_fork, fork)) /* the first way is the inner one */
        out = leads_into_group(v, stage, &m->first, fork) ? first : other;
    else if (is_around(v, fork, m->other_fork))
        out = leads_into_group(v, stage, &m->other, m->other_fork) ? other : first;
    out.is_into = is_around(v, out.right == &m->first ? m->other_fork : fork, out.fork);
    return out;
}

static void mixed(struct levels *v, const struct verdict *is, const struct rv_group_way *wrong, int fork)
{
    char text[RV_HINT_MAX], hint[RV_HINT_MAX], here[RV_MAX_STAGE_NAME + 32], there[RV_MAX_STAGE_NAME + 32];
    char other[2 * RV_MAX_STAGE_NAME + 96];
    const char *name = agent(v, wrong->to)->name;

    group_text(v, fork, here, sizeof here);
    group_text(v, is->fork, there, sizeof there);
    if (is->right->from == is->right->to && is->fork < 0)
        snprintf(other, sizeof other, "the run begins there");
    else
        snprintf(other, sizeof other, "\"%s\" routes there %s (%d:%d)", agent(v, is->right->from)->name, there,
                 is->right->src.line, is->right->src.col);
    snprintf(text, sizeof text, "stage \"%s\": it routes to \"%s\" %s, and %s", agent(v, wrong->from)->name, name, here,
             other);
    if (is->is_into && is_around(v, fork, is->fork))
        mixed_hint(v, wrong, is->fork, true, hint);
    else if (is_around(v, is->fork, fork))
        mixed_hint(v, wrong, fork, false, hint);
    else
        snprintf(hint, sizeof hint, "give each group a stage of its own, or join both groups before \"%s\"", name);
    find(v, "mixed_context", &wrong->src, hint, text);
}

/* The group that a way to a join closes. */
static int closed_by(const struct levels *v, const struct rv_group_way *way)
{
    return agent(v, way->from)->level.fork;
}

static void unclosed(struct levels *v, const struct mark *m, int stage)
{
    bool first_is_inner = depth_of(v, agent(v, stage)->level.fork) > depth_of(v, m->other_fork);
    const struct rv_group_way *inner = first_is_inner ? &m->first : &m->other;
    const struct rv_group_way *outer = first_is_inner ? &m->other : &m->first;
    const char *open = agent(v, closed_by(v, inner))->name, *join = agent(v, stage)->name;
    char text[RV_HINT_MAX], hint[RV_HINT_MAX];

    snprintf(
        text, sizeof text,
        "stage \"%s\": it routes to the join \"%s\" with the group of \"%s\" open, and \"%s\" routes there with the "
        "group of \"%s\" open (%d:%d)",
        agent(v, inner->from)->name, join, open, agent(v, outer->from)->name, agent(v, closed_by(v, outer))->name,
        outer->src.line, outer->src.col);
    int own = agent(v, closed_by(v, inner))->routing.join_of;
    if (own >= 0 && own != stage)
        snprintf(hint, sizeof hint, "a join closes one level: route to \"%s\", where the branches of \"%s\" meet",
                 agent(v, own)->name, open);
    else
        snprintf(hint, sizeof hint,
                 "a join closes one level: give the branches of \"%s\" a join of their own that routes on to \"%s\"",
                 open, join);
    find(v, "unclosed_group", &inner->src, hint, text);
}

/* Where a join closes a group of its own level that another one closes. With another level it is unclosed(). */
static void tell_second_join(struct levels *v, const struct rv_group_way *way)
{
    int fork = closed_by(v, way);

    if (fork >= 0 && agent(v, fork)->routing.join_of >= 0 && agent(v, fork)->routing.join_of != way->to &&
        !v->marks[way->to].has_other)
        two_joins(v, way, fork);
}

/* Each way from that stage that brings another level than its end has. */
static void tell_ways(struct levels *v, int stage)
{
    struct rv_way_cursor at = {0};
    struct rv_group_way way;

    while (config_next_way(agent(v, stage), &at, &way)) {
        const struct mark *m = way.to >= 0 ? &v->marks[way.to] : NULL;
        int fork = way.kind == RV_WAY_BRANCH ? stage : agent(v, stage)->level.fork;

        if (m && is_join(v, way.to) && way.kind != RV_WAY_BRANCH)
            tell_second_join(v, &way);
        if (!m || !m->has_other || is_join(v, way.to))
            continue;
        struct verdict is = judge(v, m, way.to);
        if (fork == is.fork)
            continue;
        mixed(v, &is, &way, fork);
        v->marks[way.to].is_told = true;
    }
}

/* The level of the stage is what it will be when what is wrong has been put right. */
static bool is_sure(const struct levels *v, int stage)
{
    const struct mark *m = &v->marks[stage];

    if (m->has_other && !is_join(v, stage))
        return judge(v, m, stage).fork == agent(v, stage)->level.fork;
    return !m->is_vague;
}

static void tell(struct levels *v)
{
    for (size_t i = 0; i < v->p->n_agents; i++) {
        if (v->marks[i].has_other && is_join(v, (int)i))
            unclosed(v, &v->marks[i], (int)i);
        if (v->marks[i].is_set && is_sure(v, (int)i))
            tell_ways(v, (int)i);
    }
    for (size_t i = 0; i < v->p->n_agents; i++) {
        const struct mark *m = &v->marks[i];

        if (!m->has_other || m->is_told || is_join(v, (int)i))
            continue;
        struct verdict is = judge(v, m, (int)i);
        if (is.right == &m->first)
            mixed(v, &is, &m->other, m->other_fork);
        else
            mixed(v, &is, &m->first, agent(v, (int)i)->level.fork);
    }
}

static void lone_join(struct levels *v, const struct rv_agent *a)
{
    char text[RV_HINT_MAX];

    snprintf(text, sizeof text, "stage \"%s\": %s", a->name,
             a->index == 0 ? "the run begins here, and a join cannot be the first stage"
                           : "no branch routes to this join");
    find(v, "join_without_group", &a->join.src,
         a->index == 0 ? "begin with a stage whose default_next is a list"
                       : "let the branches of a list route here, or leave join out",
         text);
    v->marks[a->index].is_vague = true;
}

/* Stages that only a question leads back to, by a key of the whole pipeline. */
static void check_resume(struct levels *v)
{
    static const char *const keys[] = {"clarification_resume_stage", "confirmation_resume_stage",
                                       "agent_review_resume_stage", "agent_review_reject_stage"};

    for (size_t i = 0; i < RV_COUNT(keys); i++) {
        const struct rv_node *node = rv_node_get(v->l->root, keys[i]);
        int stage = node && node->kind == RV_NODE_STR ? rv_pipeline_find_stage(v->p, node->text) : -1;
        char text[RV_HINT_MAX];

        if (stage < 0 || !v->marks[stage].is_set || (agent(v, stage)->level.fork < 0 && !is_join(v, stage)))
            continue;
        snprintf(text, sizeof text, "%s names \"%s\", which is %s", keys[i], agent(v, stage)->name,
                 is_join(v, stage) ? "a join" : "visited inside a group only");
        find(v, "mixed_context", &node->src,
             "questions outside of groups go on at a stage outside of groups: name such a stage, or leave the key out",
             text);
    }
}

/* --- The whole pipeline --- */

static bool has_joins(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].join.wait != RV_WAIT_NOT)
            return true;
    return false;
}

static bool knows_targets(const struct rv_pipeline *p)
{
    struct rv_group_way way;

    for (size_t i = 0; i < p->n_agents; i++) {
        struct rv_way_cursor at = {0};

        while (config_next_way(&p->agents[i], &at, &way))
            if (way.to == RV_TARGET_UNKNOWN)
                return false;
    }
    return true;
}

static void find_levels(struct levels *v)
{
    size_t n = v->p->n_agents;

    if (is_join(v, 0))
        lone_join(v, agent(v, 0));
    begin_at(v, 0);
    walk(v);
    for (size_t i = 1; i < n; i++)
        if (!v->marks[i].is_set && !v->marks[i].is_vague && is_join(v, (int)i))
            lone_join(v, agent(v, (int)i));
    tell(v);
    check_resume(v);
    v->is_guess = true; /* for a run that is begun at a stage to which no route leads */
    walk(v);
}

/* A key of a stage that was meant to be `join`: that is said, and what would follow from it is not. */
static bool has_mistyped_join(const struct rv_loader *l)
{
    static const char *const join[] = {"join"};
    const struct rv_node *agents = rv_node_get(l->root, "agents");

    for (size_t i = 0; agents && agents->kind == RV_NODE_LIST && i < agents->n; i++) {
        const struct rv_node *agent = agents->items[i];

        for (size_t k = 0; agent->kind == RV_NODE_MAP && k < agent->n; k++) {
            rv_str key = agent->keys[k]->text;
            size_t known = 0;

            while (known < config_agent_table.n_keys && !rv_str_is(key, config_agent_table.keys[known].name))
                known++;
            if (known == config_agent_table.n_keys && rv_nearest(key, join, 1))
                return true;
        }
    }
    return false;
}

void config_check_groups(struct rv_loader *l)
{
    struct levels v = {.l = l, .p = l->p};
    size_t n = l->p->n_agents, n_before = rv_findings_n_errors(l->findings);

    for (size_t i = 0; i < n; i++) {
        l->p->agents[i].routing.join_of = RV_TARGET_NONE;
        l->p->agents[i].level = (struct rv_agent_level){.fork = NO_STAGE};
    }
    if (n == 0 || (!l->p->has_groups && !has_joins(l->p)) || has_mistyped_join(l))
        return;
    v.marks = config_loader_array(l, n, sizeof *v.marks);
    v.stack = config_loader_array(l, n, sizeof *v.stack);
    if (!v.marks || !v.stack)
        return;
    config_check_lists(l);
    if (!knows_targets(l->p))
        return;
    find_levels(&v);
    if (rv_findings_n_errors(l->findings) == n_before)
        config_check_regions(l);
}
