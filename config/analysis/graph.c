/* From a pipeline to nodes and labelled edges, and the choice of a format. Sequential pipelines show their routes,
 * parallel ones what waits for what. */
#include <stdio.h>
#include <string.h>

#include "config/analysis/graph_internal.h"

/* --- Text for other programs to lay out: Mermaid and Graphviz --- */

/* Mermaid reads entities without the ampersand inside quoted labels. */
static void put_mermaid(rv_buf *b, const char *text)
{
    for (const char *c = text; *c; c++) {
        switch (*c) {
        case '"':
            rv_buf_puts(b, "#quot;");
            break;
        case '#':
            rv_buf_puts(b, "#35;");
            break;
        case '&':
            rv_buf_puts(b, "#amp;");
            break;
        case '<':
            rv_buf_puts(b, "#lt;");
            break;
        case '>':
            rv_buf_puts(b, "#gt;");
            break;
        case '`': /* would start Markdown */
            rv_buf_puts(b, "#96;");
            break;
        case '\n':
            rv_buf_puts(b, "<br/>");
            break;
        default:
            rv_buf_putc(b, *c);
        }
    }
}

static void graph_write_mermaid(const struct graph *g, rv_buf *b)
{
    static const char *const classes[] = {[GRAPH_LLM] = "llm",
                                          [GRAPH_TOOLS] = "tools",
                                          [GRAPH_SERVICE] = "service",
                                          [GRAPH_END] = "stop",
                                          [GRAPH_ASK] = "ask"};
    RV_EACH_HAS_ROW(classes, GRAPH_N_NODE_KINDS);
    static const char *const open[] = {[GRAPH_LLM] = "[\"",
                                       [GRAPH_TOOLS] = "[[\"",
                                       [GRAPH_SERVICE] = "(\"",
                                       [GRAPH_END] = "([\"",
                                       [GRAPH_ASK] = "{{\""};
    RV_EACH_HAS_ROW(open, GRAPH_N_NODE_KINDS);
    static const char *const close[] = {[GRAPH_LLM] = "\"]",
                                        [GRAPH_TOOLS] = "\"]]",
                                        [GRAPH_SERVICE] = "\")",
                                        [GRAPH_END] = "\"])",
                                        [GRAPH_ASK] = "\"}}"};
    RV_EACH_HAS_ROW(close, GRAPH_N_NODE_KINDS);

    rv_buf_puts(b, "flowchart TD\n");
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct graph_node *node = &g->nodes[i];

        if (!node->shown)
            continue;
        rv_buf_printf(b, "    n%zu%s", i, open[node->kind]);
        put_mermaid(b, node->name);
        if (node->mark[0])
            rv_buf_puts(b, "<br/><small>");
        put_mermaid(b, node->mark);
        if (node->mark[0])
            rv_buf_puts(b, "</small>");
        rv_buf_printf(b, "%s:::%s\n", close[node->kind], classes[node->kind]);
    }
    for (size_t i = 0; i < g->n_edges; i++) {
        const struct graph_edge *e = &g->edges[i];

        rv_buf_printf(b, "    n%d %s", e->from,
                      e->kind == GRAPH_BRANCH   ? "==>"
                      : lint_graph_is_dashed(e) ? "-.->"
                                                : "-->");
        if (e->label[0]) {
            rv_buf_puts(b, "|\"");
            put_mermaid(b, e->label);
            rv_buf_puts(b, "\"|");
        }
        rv_buf_printf(b, " n%d\n", e->to);
    }
    rv_buf_puts(b, "    classDef llm fill:#ede9fe,stroke:#7c3aed,color:#1e1b4b\n"
                   "    classDef tools fill:#ccfbf1,stroke:#0d9488,color:#042f2e\n"
                   "    classDef service fill:#f1f5f9,stroke:#64748b,color:#0f172a\n"
                   "    classDef stop fill:#334155,stroke:#334155,color:#f8fafc\n"
                   "    classDef ask fill:#fef3c7,stroke:#d97706,color:#451a03\n");
}

static void put_dot(rv_buf *b, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\n') {
            rv_buf_puts(b, "\\n");
            continue;
        }
        if (*c == '"' || *c == '\\')
            rv_buf_putc(b, '\\');
        rv_buf_putc(b, *c);
    }
}

static void graph_write_dot(const struct graph *g, rv_buf *b)
{
    static const char *const styles[] = {
        [GRAPH_LLM] = "shape=box, style=\"rounded,filled\", fillcolor=\"#ede9fe\", color=\"#7c3aed\"",
        [GRAPH_TOOLS] = "shape=box, style=\"rounded,filled\", fillcolor=\"#ccfbf1\", color=\"#0d9488\"",
        [GRAPH_SERVICE] = "shape=box, style=\"rounded,filled\", fillcolor=\"#f1f5f9\", color=\"#64748b\"",
        [GRAPH_END] = "shape=oval, style=filled, fillcolor=\"#334155\", fontcolor=\"#f8fafc\"",
        [GRAPH_ASK] = "shape=hexagon, style=filled, fillcolor=\"#fef3c7\", color=\"#d97706\"",
    };
    RV_EACH_HAS_ROW(styles, GRAPH_N_NODE_KINDS);

    rv_buf_puts(b, "digraph pipeline {\n    label=\"");
    put_dot(b, g->title);
    rv_buf_puts(b, "\";\n    labelloc=t;\n    node [fontname=\"sans-serif\"];\n    edge [fontname=\"monospace\", "
                   "fontsize=10];\n");
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct graph_node *node = &g->nodes[i];

        if (!node->shown)
            continue;
        rv_buf_printf(b, "    n%zu [label=\"", i);
        put_dot(b, node->name);
        if (node->mark[0])
            rv_buf_puts(b, "\\n[");
        put_dot(b, node->mark);
        if (node->mark[0])
            rv_buf_putc(b, ']');
        rv_buf_printf(b, "\", %s];\n", styles[node->kind]);
    }
    for (size_t i = 0; i < g->n_edges; i++) {
        const struct graph_edge *e = &g->edges[i];

        rv_buf_printf(b, "    n%d -> n%d [label=\"", e->from, e->to);
        put_dot(b, e->label);
        rv_buf_printf(b, "\"%s];\n",
                      e->kind == GRAPH_BRANCH   ? ", style=bold"
                      : lint_graph_is_dashed(e) ? ", style=dashed"
                                                : "");
    }
    rv_buf_puts(b, "}\n");
}

/* --- From a pipeline to nodes --- */

size_t lint_graph_width(const char *text)
{
    return rv_utf8_count(rv_str_of(text));
}

/* At most RV_GRAPH_MAX_NAME characters, control characters shown as '?': names come from a file that may be hostile,
 * and this is printed on terminals. */
static const char *safe_text(struct graph *g, const char *text)
{
    size_t len = strlen(text), end = rv_utf8_first((rv_str){text, len}, RV_GRAPH_MAX_NAME).len;
    char *copy;

    copy = rv_arena_alloc(g->arena, end + 4);
    if (!copy)
        return NULL;
    memcpy(copy, text, end);
    for (size_t i = 0; i < end; i++) {
        size_t n = rv_utf8_reorders(copy + i, end - i) ? 3 : rv_utf8_control(copy + i, end - i);
        for (size_t k = n; k > 0; k--)
            copy[i + k - 1] = '?';
    }
    memcpy(copy + end, end < len ? "..." : "", end < len ? 4 : 1);
    return copy;
}

static const char *rule_label(struct graph *g, const struct rv_rule *rule)
{
    rv_buf text = RV_BUF_INIT(1 << 16);
    const char *label;

    if (rule->when)
        rv_buf_puts(&text, rv_expr_text(rule->when));
    else {
        rv_buf_printf(&text, "%s = ", rule->condition ? rule->condition : "");
        rv_json_write(rule->value, &text);
    }
    label = text.rc == RV_E_NOMEM ? NULL : safe_text(g, rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return label;
}

static const char *join_label(struct graph *g, const char *a, const char *between, const char *b)
{
    size_t size = strlen(a) + strlen(between) + strlen(b) + 1;
    char *text = rv_arena_alloc(g->arena, size);

    if (text)
        snprintf(text, size, "%s%s%s", a, between, b);
    return text;
}

static const char *with_limit(struct graph *g, const char *label, int from, int to)
{
    char text[48];

    for (size_t i = 0; i < g->p->n_edge_limits; i++) {
        const struct rv_edge_limit *limit = &g->p->edge_limits[i];

        if (limit->from != from || limit->to != to)
            continue;
        snprintf(text, sizeof(text), "(max %lld)", (long long)limit->max_count);
        return join_label(g, label, label[0] ? " " : "", text);
    }
    return label;
}

/* -1: it has none. */
static int node_of_target(const struct graph *g, int target)
{
    if (target >= 0)
        return (size_t)target < g->n_stages ? target : -1;
    switch ((enum rv_target)target) {
    case RV_TARGET_END:
        return (int)g->n_stages;
    case RV_TARGET_CLARIFICATION:
        return (int)g->n_stages + 1;
    case RV_TARGET_CONFIRMATION:
        return (int)g->n_stages + 2;
    case RV_TARGET_NONE:
    case RV_TARGET_UNKNOWN:
    case RV_TARGET_LIST: /* its branches have edges of their own */
        break;
    }
    return -1;
}

static int add_edge(struct graph *g, bool merge, struct graph_edge edge)
{
    if (!edge.label)
        return RV_E_NOMEM;
    if (edge.to < 0)
        return 0;
    g->nodes[edge.to].shown = true;
    for (size_t i = g->n_edges; merge && i > 0 && g->edges[i - 1].from == edge.from; i--) {
        struct graph_edge *old = &g->edges[i - 1];

        if (old->to != edge.to || old->kind != edge.kind)
            continue;
        old->label = join_label(g, old->label, "\n", edge.label);
        return old->label ? 0 : RV_E_NOMEM;
    }
    g->edges[g->n_edges++] = edge;
    return 0;
}

/* The branches of a list, each with its condition. label: when the list is taken; "" always. */
static int add_branches(struct graph *g, bool merge, const struct rv_route *route, const char *label)
{
    const struct rv_branches *list = lint_route_branches(g->p, route);
    int rc = 0;

    for (size_t i = 0; i < list->n && rc == 0; i++) {
        const struct rv_branch_target *one = &list->items[i];
        const char *when = one->when ? safe_text(g, rv_expr_text(one->when)) : "";
        struct graph_edge edge = {route->from, node_of_target(g, one->target), GRAPH_BRANCH, NULL};

        if (when)
            edge.label = join_label(g, when[0] ? "branch if " : "branch", "", when);
        if (edge.label && label[0])
            edge.label = join_label(g, label, ": ", edge.label);
        if (edge.label)
            edge.label = with_limit(g, edge.label, edge.from, edge.to);
        rc = add_edge(g, merge, edge);
    }
    return rc;
}

/* Where the choices of a person lead. */
static int add_answers(struct graph *g, bool merge, const struct rv_agent *a)
{
    int rc = 0;

    for (size_t i = 0; i < a->ask.n_routes && rc == 0; i++) {
        const char *choice = safe_text(g, a->ask.routes[i].choice);
        struct graph_edge edge = {a->index, node_of_target(g, a->ask.routes[i].target), GRAPH_ANSWER, NULL};

        if (choice)
            edge.label = join_label(g, "answer ", "", choice);
        if (edge.label)
            edge.label = with_limit(g, edge.label, edge.from, edge.to);
        rc = add_edge(g, merge, edge);
    }
    return rc;
}

static int add_route(struct graph *g, bool merge, const struct rv_route *route)
{
    const struct rv_agent *a = &g->p->agents[route->from];
    struct graph_edge edge = {route->from, node_of_target(g, route->to), GRAPH_FLOW, ""};

    if (route->fate == RV_WAY_REPEATED || route->fate == RV_WAY_CUT_OFF || route->kind == RV_WAY_FUNCTION ||
        route->kind == RV_WAY_APPROVED)
        return 0;
    if (route->kind == RV_WAY_RULE)
        edge.label = rule_label(g, &a->routing.rules[route->rule]);
    else if (route->kind == RV_WAY_DEFAULT && (a->routing.n_rules > 0 || a->routing.function[0]))
        edge.label = "otherwise";
    else if (route->kind == RV_WAY_ERROR) {
        edge.kind = GRAPH_ERROR;
        edge.label = "error";
    }
    if (route->to == RV_TARGET_LIST)
        return edge.label ? add_branches(g, merge, route, edge.label) : RV_E_NOMEM;
    if (edge.label)
        edge.label = with_limit(g, edge.label, edge.from, edge.to);
    return add_edge(g, merge, edge);
}

/* From the confirmation, where a yes to each of the asking stages leads. */
static int add_approved(struct graph *g, bool merge, const struct rv_routes *routes)
{
    size_t n = 0;
    int rc = 0;

    for (size_t i = 0; i < routes->n; i++)
        n += routes->items[i].kind == RV_WAY_APPROVED;
    for (size_t i = 0; i < routes->n && rc == 0; i++) {
        const struct rv_route *route = &routes->items[i];
        const char *name;

        if (route->kind != RV_WAY_APPROVED)
            continue;
        name = n > 1 ? safe_text(g, g->p->agents[route->from].name) : "";
        if (!name)
            return RV_E_NOMEM;
        const struct rv_branches *list = lint_route_branches(g->p, route);
        const char *label = join_label(g, "yes", name[0] ? " to " : "", name);
        int from = node_of_target(g, RV_TARGET_CONFIRMATION);

        for (size_t k = 0; k < list->n && rc == 0; k++)
            rc = add_edge(g, merge,
                          (struct graph_edge){from, node_of_target(g, list->items[k].target), GRAPH_ANSWER, label});
        if (route->to != RV_TARGET_LIST)
            rc = add_edge(g, merge, (struct graph_edge){from, node_of_target(g, route->to), GRAPH_ANSWER, label});
    }
    return rc;
}

static int add_sequential(struct graph *g, bool merge)
{
    struct rv_routes routes = {NULL, 0, NULL};
    const char *const resumes[] = {g->p->clarification_resume_stage, g->p->confirmation_resume_stage};
    int rc = lint_routes_build(g->p, &routes,
                               RV_CODE_ONLY("it fails without memory only, and that code goes on to the caller"));

    if (rc < 0)
        return rc;
    g->edges =
        rv_arena_alloc(g->arena, (lint_routes_most_ways(g->p, &routes) + RV_COUNT(resumes) + 1) * sizeof(*g->edges));
    if (!g->edges)
        rc = RV_E_NOMEM;
    for (size_t s = 0; s < g->n_stages && rc == 0; s++) {
        for (size_t i = routes.start[s]; i < routes.start[s + 1] && rc == 0; i++)
            rc = add_route(g, merge, &routes.items[i]);
        if (rc == 0)
            rc = add_answers(g, merge, &g->p->agents[s]);
    }
    for (size_t i = 0; i < RV_COUNT(resumes) && rc == 0; i++) {
        size_t node = g->n_stages + 1 + i;

        for (size_t s = 0; s < g->n_stages && rc == 0 && g->nodes[node].shown && resumes[i][0]; s++) {
            if (strcmp(g->p->agents[s].name, resumes[i]) == 0)
                rc = add_edge(g, merge, (struct graph_edge){(int)node, (int)s, GRAPH_ANSWER, "answer"});
        }
    }
    if (rc == 0)
        rc = add_approved(g, merge, &routes);
    lint_routes_fini(&routes);
    return rc;
}

/* What stage s waits for. Edges are wanted by `from`, so the caller asks for one `from` after the other. */
static int add_dependents(struct graph *g, int from)
{
    size_t n = 0;
    const int *dependents = rv_pipeline_dependents(g->p, from, &n);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct rv_agent *a = &g->p->agents[dependents[i]];
        bool is_required = false;

        for (size_t j = 0; j < a->order.required.n; j++)
            is_required |= a->order.required_index[j] == from;
        rc = add_edge(
            g, false,
            (struct graph_edge){from, a->index, is_required ? GRAPH_FLOW : GRAPH_AFTER, is_required ? "" : "after"});
    }
    if (rc == 0 && g->p->agents[from].routing.error_target >= 0)
        rc = add_edge(g, false,
                      (struct graph_edge){from, g->p->agents[from].routing.error_target, GRAPH_ERROR, "error"});
    return rc;
}

static int add_parallel(struct graph *g)
{
    size_t max = g->n_stages + 1, n = 0;
    int rc = 0;

    for (size_t s = 0; s < g->n_stages; s++) {
        rv_pipeline_dependents(g->p, (int)s, &n);
        max += n;
    }
    g->edges = rv_arena_alloc(g->arena, max * sizeof(*g->edges));
    if (!g->edges)
        return RV_E_NOMEM;
    for (size_t s = 0; s < g->n_stages && rc == 0; s++)
        rc = add_dependents(g, (int)s);
    return rc;
}

static const char *work_of(const struct rv_agent *a)
{
    if (a->set)
        return "set";
    if (a->inner.file && a->inner.file[0])
        return "pipeline";
    if (a->has_llm)
        return a->declared.doc ? "agent" : "llm";
    return a->has_tools ? "tools" : "service";
}

static void put_join(const struct rv_agent_join *join, rv_buf *b)
{
    if (join->wait == RV_WAIT_ALL)
        rv_buf_puts(b, join->failures == RV_FAILURES_FAST      ? "join all, fast, "
                       : join->failures == RV_FAILURES_COLLECT ? "join all, collect, "
                                                               : "join all, ");
    else if (join->wait == RV_WAIT_ANY)
        rv_buf_puts(b, "join any, ");
    else if (join->wait == RV_WAIT_COUNT && join->count == 1)
        rv_buf_puts(b, "join first, ");
    else if (join->wait == RV_WAIT_COUNT)
        rv_buf_printf(b, "join %lld, ", (long long)join->count);
}

/* What stands beside the name: "join all, llm, max 3", "pipeline parts/check.yaml". */
static void put_mark(const struct graph *g, const struct rv_agent *a, const char *file, const char *chained, rv_buf *b)
{
    bool is_parallel = g->p->default_run_mode == RV_MODE_PARALLEL;

    put_join(&a->join, b);
    rv_buf_puts(b, work_of(a));
    if (file[0])
        rv_buf_printf(b, " %s", file);
    if (a->hooks.mock && a->hooks.mock_handler[0])
        rv_buf_puts(b, ", mock");
    if (a->each.list)
        rv_buf_printf(b, ", each of %lld", (long long)a->each.max_items);
    if (a->limits.max_visits > 0)
        rv_buf_printf(b, ", max %lld", (long long)a->limits.max_visits);
    if (a->order.required.n > 1 && a->order.join == RV_JOIN_ANY && is_parallel)
        rv_buf_puts(b, ", any");
    if (a->routing.function[0] && !is_parallel)
        rv_buf_puts(b, ", routed");
    if (chained[0])
        rv_buf_printf(b, ", then %s", chained);
    if (a->ask.question)
        rv_buf_puts(b, ", asks");
}

static int set_stage(struct graph *g, size_t i)
{
    const struct rv_agent *a = &g->p->agents[i];
    struct graph_node *node = &g->nodes[i];
    const char *chained = a->tools.chained && a->tools.chained[0] ? safe_text(g, a->tools.chained) : "";
    const char *file = a->inner.file && a->inner.file[0] ? safe_text(g, a->inner.file) : "";
    rv_buf mark = RV_BUF_INIT(1 << 10);

    if (!chained || !file)
        return RV_E_NOMEM;
    node->kind = a->has_llm ? GRAPH_LLM : a->has_tools ? GRAPH_TOOLS : GRAPH_SERVICE;
    node->shown = true;
    node->name = safe_text(g, a->name);
    put_mark(g, a, file, chained, &mark);
    node->mark = mark.rc == 0 ? rv_arena_dup(g->arena, rv_buf_str(&mark)) : NULL;
    rv_buf_fini(&mark);
    return node->name && node->mark ? 0 : RV_E_NOMEM;
}

static int build(struct graph *g, bool merge)
{
    static const struct graph_node pseudo[] = {
        {GRAPH_END, "end", "", false}, {GRAPH_ASK, "clarification", "", false}, {GRAPH_ASK, "confirmation", "", false}};

    g->title = safe_text(g, g->p->name);
    g->nodes = rv_arena_alloc(g->arena, g->n_nodes * sizeof(*g->nodes));
    if (!g->title || !g->nodes)
        return RV_E_NOMEM;
    memcpy(g->nodes + g->n_stages, pseudo, sizeof(pseudo));
    for (size_t i = 0; i < g->n_stages; i++) {
        if (set_stage(g, i) < 0)
            return RV_E_NOMEM;
    }
    return g->p->default_run_mode == RV_MODE_PARALLEL ? add_parallel(g) : add_sequential(g, merge);
}

static void graph_fini(struct graph *g)
{
    rv_arena_free(g->arena);
    *g = (struct graph){0};
}

/* merge: edges with the same ends and kind become one. RV_E_NOMEM. */
static int graph_init(const struct rv_pipeline *p, bool merge, struct graph *out)
{
    struct graph g = {.arena = rv_arena_new(RV_GRAPH_MAX_BYTES), .p = p, .n_stages = p->n_agents};
    int rc = RV_E_NOMEM;

    g.n_nodes = g.n_stages + 3;
    if (g.arena)
        rc = build(&g, merge);
    if (rc < 0)
        graph_fini(&g);
    else
        *out = g;
    return rc;
}

void rv_pipeline_write_graph(const struct rv_pipeline *p, enum rv_graph_format format, rv_buf *b)
{
    struct graph g = {0};
    int rc = graph_init(p, format != RV_GRAPH_ASCII, &g);

    if (rc == 0) {
        switch (format) {
        case RV_GRAPH_ASCII:
            rc = lint_graph_write_ascii(&g, b);
            break;
        case RV_GRAPH_MERMAID:
            graph_write_mermaid(&g, b);
            break;
        case RV_GRAPH_DOT:
            graph_write_dot(&g, b);
            break;
        case RV_GRAPH_SVG:
            rc = lint_graph_write_svg(&g, b);
            break;
        case RV_GRAPH_JSON:
            rc = lint_graph_write_json(&g, b);
            break;
        case RV_N_GRAPH_FORMATS:
            break;
        }
        graph_fini(&g);
    }
    if (rc < 0 && b->rc == 0)
        b->rc = rc;
}
