/* Random graphs as pipeline files. Groups are planned first: which stage opens the group that a stage belongs to, and
 * where its branches meet; then each stage is given targets that fit the plan. */
#include "tests/unit/graphs/graphs.h"

#include <stdio.h>

uint64_t dice_throw(struct dice *d)
{
    uint64_t z = (d->state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int dice_pick(struct dice *d, int n)
{
    return (int)(dice_throw(d) % (uint64_t)n);
}

bool dice_chance(struct dice *d, int percent)
{
    return dice_pick(d, 100) < percent;
}

struct plan {
    struct dice *d;
    const struct graph_kinds *kinds;
    rv_buf *b;
    int n, context[GRAPH_MAX_STAGES], join_of[GRAPH_MAX_STAGES], shortest[GRAPH_MAX_STAGES];
    bool is_join[GRAPH_MAX_STAGES], is_fork[GRAPH_MAX_STAGES], must_join[GRAPH_MAX_STAGES];
};

static void make_plan(struct plan *p)
{
    int n_forks = 0;

    p->n = 3 + dice_pick(p->d, GRAPH_MAX_STAGES - 2);
    for (int s = 0; s < p->n; s++) {
        p->context[s] = p->join_of[s] = -1;
        p->shortest[s] = GRAPH_MAX_STAGES;
        int fork = s > 0 ? dice_pick(p->d, s) : -1;
        if (p->kinds->lists && s > 0 && dice_chance(p->d, 65) && !p->is_join[fork] &&
            (p->is_fork[fork] || n_forks < 3)) {
            n_forks += !p->is_fork[fork];
            p->is_fork[fork] = true;
            p->context[s] = fork;
        } else if (s > 1 && dice_chance(p->d, 30)) {
            p->context[s] = p->context[dice_pick(p->d, s)];
        }
        for (int f = 0; f < s; f++) {
            if (!p->is_fork[f] || p->join_of[f] >= 0 || p->context[s] != p->context[f] || !dice_chance(p->d, 60))
                continue;
            p->join_of[f] = s;
            p->is_join[s] = true;
            break;
        }
    }
}

/* The first branch of a group leads to its join, so that the join has a group. */
static void settle_joins(struct plan *p)
{
    for (int f = 0; f < p->n; f++) {
        int join = p->join_of[f], first = f + 1;

        while (first < p->n && (p->context[first] != f || p->is_join[first]))
            first++;
        if (join >= 0 && first < join) {
            p->must_join[first] = true;
        } else if (join >= 0) {
            p->is_join[join] = false;
            p->join_of[f] = -1;
        }
    }
}

static const char *pick_target(struct plan *p, int from, char text[16])
{
    int targets[3 * GRAPH_MAX_STAGES], n = 0, fork = p->context[from], at;

    for (int s = 0; s < p->n; s++) /* without a join nothing could merge what two branches write */
        if (!p->is_join[s] && p->context[s] == fork && (s == from || fork < 0 || p->join_of[fork] >= 0) &&
            (s > from || dice_chance(p->d, 40)))
            targets[n++] = s;
    if (fork >= 0 && p->join_of[fork] > from)
        for (int i = 0; i < 4; i++)
            targets[n++] = p->join_of[fork];
    targets[n++] = -1;
    at = targets[dice_pick(p->d, n)];
    if (at < 0)
        return "end";
    snprintf(text, 16, "s%d", at);
    return text;
}

/* The list that a fork leads to; false: no stage of its group comes after it. */
static bool write_list(struct plan *p, int fork)
{
    int first[GRAPH_MAX_STAGES], n = 0;

    for (int s = fork + 1; s < p->n; s++)
        if (p->context[s] == fork && !p->is_join[s])
            first[n++] = s;
    while (n > 4 || (n > 1 && dice_chance(p->d, 15))) {
        int out = 1 + dice_pick(p->d, --n);
        for (int i = out; i < n; i++)
            first[i] = first[i + 1];
    }
    if (n == 0)
        return false;
    if (n < p->shortest[fork])
        p->shortest[fork] = n;
    for (int i = 0; i < n; i++) {
        int at = dice_chance(p->d, 20) ? dice_pick(p->d, n) : i, kept = first[i]; /* not always in stage order */
        first[i] = first[at];
        first[at] = kept;
    }
    rv_buf_putc(p->b, '[');
    for (int i = 0; i < n; i++) {
        rv_buf_puts(p->b, i ? ", " : "");
        if (dice_chance(p->d, 20))
            rv_buf_printf(p->b, "{target: s%d, when: '%s'}", first[i],
                          dice_chance(p->d, 80) ? "output.v > 1" : "output.v");
        else
            rv_buf_printf(p->b, "s%d", first[i]);
    }
    rv_buf_putc(p->b, ']');
    return true;
}

static void write_work(struct plan *p, int s)
{
    int kind = dice_pick(p->d, 10);

    if (kind < 5)
        rv_buf_printf(p->b, "    has_llm: true\n    model_role: r\n    prompt_key: p\n    max_retries: %d\n",
                      dice_pick(p->d, 2));
    else if (kind < 7)
        rv_buf_puts(p->b, "    pre_process: x.pre\n");
    else
        rv_buf_printf(p->b, "    set: {v: %s, w: {x: [%d]}}\n",
                      dice_chance(p->d, 60)   ? "envelope.iteration"
                      : dice_chance(p->d, 70) ? "3"
                                              : "outputs.s0.v + 1",
                      s);
    if (kind < 7 && p->kinds->for_each && dice_chance(p->d, 20)) {
        static const char *const policies[] = {"fail", "skip", "collect"};
        rv_buf_printf(p->b, "    for_each: '%s'\n    max_items: 3\n    max_parallel: %d\n    on_item_error: %s\n",
                      dice_chance(p->d, 80)   ? "[1, 2, 3]"
                      : dice_chance(p->d, 50) ? "[]"
                                              : "[1, 2, 3, 4]",
                      1 + dice_pick(p->d, 3), policies[dice_pick(p->d, 3)]);
    } else if (p->kinds->asks && dice_chance(p->d, 15)) {
        char text[16];
        rv_buf_puts(p->b, "    ask: {question: 'Go on?'}\n");
        if (dice_chance(p->d, 70))
            rv_buf_printf(p->b, "    on_answer: {'yes': %s}\n", pick_target(p, s, text));
    }
}

static void write_routes(struct plan *p, int s)
{
    char text[16];
    bool forks = p->is_fork[s];
    size_t before = p->b->len;

    if (forks && dice_chance(p->d, 30)) {
        rv_buf_puts(p->b, "    routing_rules:\n      - {condition: v, value: 1, target: ");
        forks = write_list(p, s);
        rv_buf_puts(p->b, forks ? "}\n" : "end}\n");
        rv_buf_printf(p->b, "    default_next: %s\n", pick_target(p, s, text));
    } else if (forks) {
        rv_buf_puts(p->b, "    default_next: ");
        forks = write_list(p, s);
        rv_buf_puts(p->b, forks ? "\n" : "end\n");
    }
    if (p->b->len == before) {
        if (p->must_join[s])
            rv_buf_printf(p->b, "    default_next: s%d\n", p->join_of[p->context[s]]);
        else
            rv_buf_printf(p->b, "    default_next: %s\n", pick_target(p, s, text));
        if (dice_chance(p->d, 50)) {
            rv_buf_printf(p->b, "    routing_rules:\n      - {condition: v, value: %d, target: %s}\n",
                          dice_pick(p->d, 4), pick_target(p, s, text));
            if (dice_chance(p->d, 30))
                rv_buf_printf(p->b, "      - {when: '%s', target: %s}\n",
                              dice_chance(p->d, 80) ? "output.v >= 2" : "output.u.t == 1", pick_target(p, s, text));
        }
    }
    if (dice_chance(p->d, 40))
        rv_buf_printf(p->b, "    error_next: %s\n", pick_target(p, s, text));
    if (dice_chance(p->d, 25))
        rv_buf_printf(p->b, "    max_visits: %d\n", 1 + dice_pick(p->d, 3));
}

/* Every key that a branch can write has a way of merging. */
static void write_join(struct plan *p, int s)
{
    static const char *const merges[] = {"replace", "append", "merge_dict"}, *const failures[] = {"drain", "fast",
                                                                                                  "collect"};
    int shortest = GRAPH_MAX_STAGES, kind = dice_pick(p->d, 8);

    for (int f = 0; f < p->n; f++)
        if (p->join_of[f] == s && p->shortest[f] < shortest)
            shortest = p->shortest[f];
    if (kind < 5)
        rv_buf_printf(p->b, "    join: {wait: all, failures: %s", failures[kind == 4 ? 1 : kind / 2 * 2]);
    else if (kind < 7)
        rv_buf_puts(p->b, "    join: {wait: any");
    else
        rv_buf_printf(p->b, "    join: {wait: %d",
                      shortest > 1 && shortest < GRAPH_MAX_STAGES ? 1 + dice_pick(p->d, 2) : 1);
    rv_buf_puts(p->b, ", merge: {");
    for (int i = 0; i < p->n; i++)
        rv_buf_printf(p->b, "%ss%d: %s", i ? ", " : "", i, merges[dice_pick(p->d, 3)]);
    rv_buf_puts(p->b, "}}\n");
}

void graph_write(struct dice *d, const struct graph_kinds *kinds, rv_buf *yaml)
{
    struct plan p = {.d = d, .kinds = kinds, .b = yaml};

    rv_buf_clear(yaml);
    make_plan(&p);
    settle_joins(&p);
    rv_buf_printf(yaml,
                  "name: t\nmodels: {r: scripted}\nmax_iterations: %d\nmax_llm_calls: %d\nmax_agent_hops: %d\n"
                  "prompts: {p: 'look at {{outputs}} again {{iteration}}'}\n",
                  1 + dice_pick(d, 3), dice_chance(d, 30) ? 1 + dice_pick(d, 8) : 60,
                  dice_chance(d, 30) ? 2 + dice_pick(d, 12) : 80);
    if (dice_chance(d, 25)) {
        int from = dice_pick(d, p.n), to = dice_pick(d, p.n);
        rv_buf_printf(yaml, "edge_limits:\n  - {from: s%d, to: s%d, max_count: %d}\n", from, to, 1 + dice_pick(d, 2));
    }
    rv_buf_puts(yaml, "agents:\n");
    for (int s = 0; s < p.n; s++) {
        rv_buf_printf(yaml, "  - name: s%d\n", s);
        write_work(&p, s);
        write_routes(&p, s);
        if (p.is_join[s])
            write_join(&p, s);
    }
}
