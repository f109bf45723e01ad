/* Random graphs as pipeline files. Groups are planned first: which stage opens the group that a stage belongs to, and
 * where its branches meet; then each stage is given targets that fit the plan. */
#include "tests/unit/graphs/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    int n, max, n_inner; /* inner pipelines that a stage may run; max: stages */
    bool is_inner;       /* it is one itself */
    int context[GRAPH_MAX_STAGES], join_of[GRAPH_MAX_STAGES], shortest[GRAPH_MAX_STAGES];
    bool is_join[GRAPH_MAX_STAGES], is_fork[GRAPH_MAX_STAGES], must_join[GRAPH_MAX_STAGES];
};

static void make_plan(struct plan *p)
{
    int n_forks = 0;

    p->n = 3 + dice_pick(p->d, p->max - 2);
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
    if (n == 0 || dice_chance(p->d, 60))
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

static void write_inner(struct plan *p, bool in_list)
{
    static const char *const inputs[] = {"1", "outputs.s0.v", "envelope.iteration", "envelope.raw_input"};

    rv_buf_printf(p->b, "    pipeline: in%d.yaml\n    inputs: {x: '%s'}\n", dice_pick(p->d, p->n_inner),
                  in_list ? "item" : inputs[dice_pick(p->d, 4)]);
    if (dice_chance(p->d, 60))
        rv_buf_printf(p->b, "    outputs: {v: %s, w: inputs.x}\n",
                      dice_chance(p->d, 70)   ? "envelope.iteration"
                      : dice_chance(p->d, 50) ? "'\"s1\" in outputs ? 2 : 1'"
                                              : "outputs.s1.v");
}

static void write_work(struct plan *p, int s)
{
    int kind = dice_pick(p->d, 10);
    bool in_list = kind < 7 && p->kinds->for_each && dice_chance(p->d, 20);

    if (p->n_inner > 0 && kind < 7 && dice_chance(p->d, p->is_inner ? 15 : 30))
        write_inner(p, in_list);
    else if (kind < 5)
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
    if (in_list) {
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

static void write_bounds(struct plan *p)
{
    struct dice *d = p->d;

    rv_buf_printf(p->b, "models: {r: scripted}\nmax_iterations: %d\n", 1 + dice_pick(d, 3));
    if (p->is_inner)
        rv_buf_printf(p->b,
                      "max_llm_calls: %d\nmax_agent_hops: %d\ninputs: [x]\n"
                      "prompts: {p: 'look at {{outputs}} again {{iteration}} for {{inputs.x}}'}\n",
                      dice_chance(d, 20) ? 1 + dice_pick(d, 4) : 20, dice_chance(d, 20) ? 2 + dice_pick(d, 6) : 30);
    else
        rv_buf_printf(p->b,
                      "max_llm_calls: %d\nmax_agent_hops: %d\n"
                      "prompts: {p: 'look at {{outputs}} again {{iteration}}'}\n",
                      dice_chance(d, 30) ? 1 + dice_pick(d, 8)
                      : p->n_inner > 0   ? 200
                                         : 60,
                      dice_chance(d, 30) ? 2 + dice_pick(d, 12)
                      : p->n_inner > 0   ? 300
                                         : 80);
    if (dice_chance(d, 25)) {
        int from = dice_pick(d, p->n), to = dice_pick(d, p->n);
        rv_buf_printf(p->b, "edge_limits:\n  - {from: s%d, to: s%d, max_count: %d}\n", from, to, 1 + dice_pick(d, 2));
    }
}

static void write_one(struct plan p, const char *name)
{
    make_plan(&p);
    settle_joins(&p);
    rv_buf_printf(p.b, "name: %s\n", name);
    write_bounds(&p);
    rv_buf_puts(p.b, "agents:\n");
    for (int s = 0; s < p.n; s++) {
        rv_buf_printf(p.b, "  - name: s%d\n", s);
        write_work(&p, s);
        write_routes(&p, s);
        if (p.is_join[s])
            write_join(&p, s);
    }
}

void graph_write(struct dice *d, const struct graph_kinds *kinds, struct graph *out)
{
    static const char *const names[GRAPH_MAX_INNER] = {"in0", "in1"};
    rv_buf all = RV_BUF_INIT(1 << 18);

    *out = (struct graph){.yaml = RV_BUF_INIT(1 << 16)};
    for (int n = kinds->inner ? 1 + dice_pick(d, GRAPH_MAX_INNER) : 0; out->n_inner < n; out->n_inner++) {
        rv_buf *b = &out->inner[out->n_inner];
        *b = RV_BUF_INIT(1 << 16);
        write_one((struct plan){.d = d, .kinds = kinds, .b = b, .max = 5, .n_inner = out->n_inner, .is_inner = true},
                  names[out->n_inner]);
    }
    write_one((struct plan){.d = d, .kinds = kinds, .b = &out->yaml, .max = GRAPH_MAX_STAGES, .n_inner = out->n_inner},
              "t");
    rv_buf_puts(&all, rv_buf_cstr(&out->yaml));
    for (int i = 0; i < out->n_inner; i++)
        rv_buf_printf(&all, "--- in%d.yaml\n%s", i, rv_buf_cstr(&out->inner[i]));
    if (rv_buf_check(&all, "graph", NULL) < 0)
        rv_kit_die("a graph is too long");
    out->story = rv_buf_steal(&all, NULL);
}

void graph_fini(struct graph *g)
{
    rv_buf_fini(&g->yaml);
    for (int i = 0; i < g->n_inner; i++)
        rv_buf_fini(&g->inner[i]);
    free(g->story);
    *g = (struct graph){.story = NULL};
}

static bool inner_file(void *self, const char *path, rv_str *out)
{
    const struct graph *g = self;
    int i = strncmp(path, "in", 2) == 0 && strcmp(path + 3, ".yaml") == 0 ? path[2] - '0' : -1;

    if (i < 0 || i >= g->n_inner)
        return false;
    *out = rv_buf_str(&g->inner[i]);
    return true;
}

struct rv_pipeline *graph_load(const struct graph *g, rv_findings *findings)
{
    const struct rv_pipeline_opts opts = {.file = inner_file, .self = (void *)(uintptr_t)g};
    struct rv_pipeline *p = NULL;

    if (rv_pipeline_parse_with(&(const struct rv_pipeline_source){rv_buf_str(&g->yaml), "graph.yaml", "."}, &opts,
                               findings, &p, NULL) < 0)
        rv_kit_die("not read:\n%s", g->story);
    if (p && p->is_sound)
        return p;
    rv_pipeline_free(p);
    return NULL;
}
