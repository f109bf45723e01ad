/* Stages that need an output which no way of a run makes before their first visit: it is made later, or in a branch
 * that runs at the same time. Told only where it is certain: the text has no word for a missing value, and nothing but
 * stages makes outputs. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/lint_internal.h"

#define MAX_STEPS                                                                                                      \
    ((size_t)20 << 20) /* arcs that are followed in all: below 0.1 s; larger pipelines are not looked at */

struct order {
    const struct lint_arcs *arcs;
    const int64_t *entries; /* 0: a run begins there */
    rv_findings *findings;
    bool *before; /* owned; what can be visited before the stage at hand, and leads to it */
    bool *leads;  /* owned; what leads to it */
    int *queue;   /* owned */
    int stage;
    bool is_known; /* before is of the stage at hand */
};

static size_t n_nodes(const struct order *o)
{
    return o->arcs->p->n_agents + 1;
}

/* A branch that ends is merged at the join of its group, or of the group around it. */
static int target_of(const struct order *o, const struct lint_arc *arc)
{
    const struct rv_pipeline *p = o->arcs->p;
    int fork = p->has_groups ? p->agents[arc->from].level.fork : -1;

    if (arc->to < (int)p->n_agents)
        return arc->to;
    while (fork >= 0 && p->agents[fork].routing.join_of < 0)
        fork = p->agents[fork].level.fork;
    return fork >= 0 ? p->agents[fork].routing.join_of : arc->to;
}

static int node_of(const struct order *o, const struct lint_arc *arc, bool forward)
{
    return forward ? target_of(o, arc) : arc->from;
}

/* Spreads what is in the queue along the arcs, but not beyond the stage at hand. Each step looks at all arcs:
 * pipelines have some dozens. */
static void spread(struct order *o, bool *seen, size_t tail, bool forward)
{
    for (size_t head = 0; head < tail; head++) {
        int node = o->queue[head];

        for (size_t i = 0; i < o->arcs->n; i++) {
            const struct lint_arc *arc = &o->arcs->items[i];
            int next = node_of(o, arc, forward);

            if (node_of(o, arc, !forward) != node || seen[next] || next == o->stage)
                continue;
            seen[next] = true;
            o->queue[tail++] = next;
        }
    }
}

static void find_before(struct order *o)
{
    size_t tail = 0;

    if (o->is_known)
        return;
    o->is_known = true;
    memset(o->before, 0, n_nodes(o) * sizeof *o->before);
    memset(o->leads, 0, n_nodes(o) * sizeof *o->leads);
    for (size_t i = 0; i + 1 < n_nodes(o); i++)
        if (o->entries[i] == 0 && (int)i != o->stage) {
            o->before[i] = true;
            o->queue[tail++] = (int)i;
        }
    spread(o, o->before, tail, true);
    o->queue[0] = o->stage;
    spread(o, o->leads, 1, false);
}

/* Can a stage have made it when the stage at hand is visited for the first time? NULL in maker: no stage makes it. */
static bool is_made(struct order *o, rv_str key, const char **maker)
{
    const struct rv_pipeline *p = o->arcs->p;

    *maker = NULL;
    for (size_t i = 0; i < p->n_agents; i++) {
        if (!rv_str_is(key, p->agents[i].output.key))
            continue;
        find_before(o);
        if (o->before[i] && o->leads[i])
            return true;
        *maker = p->agents[i].name;
    }
    return false;
}

static void check_key(struct order *o, const char *what, rv_str key, struct rv_src src)
{
    const struct rv_agent *a = &o->arcs->p->agents[o->stage];
    const char *maker;

    if (is_made(o, key, &maker) || !maker)
        return;
    rv_findings_add_as(o->findings, RV_SEVERITY_WARNING, "read_before_made", &src,
                       "lead to it first, or write a default: {{name | default \"...\"}}, {{#name}}...{{/name}} or "
                       "has(outputs.name)",
                       "stage \"%s\": %s reads the output \"%.*s\", and stage \"%s\", which makes it, is never visited "
                       "before: the first visit of \"%s\" fails",
                       a->name, what, RV_STR_ARG(rv_utf8_cut(key, RV_MAX_STAGE_NAME)), maker, a->name);
}

/* --- Texts --- */

static void check_prompt(struct order *o, const char *what, const char *name)
{
    const struct rv_prompt_config *prompt = rv_pipeline_find_prompt(o->arcs->p, rv_str_of(name));

    for (size_t i = 0; prompt && prompt->compiled && i < rv_template_n_placeholders(prompt->compiled); i++) {
        struct rv_placeholder ph = rv_template_placeholder_at(prompt->compiled, i);
        bool by_root = !rv_str_is(ph.root, "outputs");

        if (ph.is_test || ph.is_inside || !ph.root.ptr || (by_root && rv_prompt_has_root(ph.root)))
            continue;
        if (prompt->indent > 0 && ph.src.line > prompt->src.line)
            ph.src.col += prompt->indent;
        check_key(o, what, by_root ? ph.root : ph.field, ph.src);
    }
}

/* Only a path: other expressions may ask whether there is a value. */
static void check_expr(struct order *o, const char *what, const rv_expr *e)
{
    rv_str text = e ? rv_str_trim(rv_str_of(rv_expr_text(e))) : (rv_str){NULL, 0};
    struct rv_placeholder ph;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'))
            return;
    }
    if (text.len == 0 || rv_expr_n_names(e) != 1)
        return;
    ph = rv_expr_name_at(e, 0);
    if (rv_str_is(ph.root, "outputs") && ph.field.ptr && !ph.is_test)
        check_key(o, what, ph.field, ph.src);
}

static void check_built(struct order *o, const char *what, const struct rv_built *b)
{
    if (b && b->kind == RV_BUILT_EXPR)
        check_expr(o, what, b->expr);
    for (size_t i = 0; b && (b->kind == RV_BUILT_MAP || b->kind == RV_BUILT_LIST) && i < b->n; i++)
        check_built(o, what, &b->items[i]);
}

static void check_stage(struct order *o)
{
    const struct rv_agent *a = &o->arcs->p->agents[o->stage];

    o->is_known = false;
    check_expr(o, "for_each", a->each.list);
    if (a->each.list || a->hooks.mock_handler[0]) /* perhaps there is no element, or another one does the work */
        return;
    if (a->has_llm && a->model.prompt_key[0])
        check_prompt(o, "its prompt", a->model.prompt_key);
    if (a->has_llm && a->model.system_key[0])
        check_prompt(o, "its system text", a->model.system_key);
    check_built(o, "set", a->set);
    check_built(o, "inputs", a->inner.inputs);
}

/* Hooks may write outputs of any name, and an answer can lead to a stage that no arc leads to. */
static bool is_certain(const struct rv_pipeline *p)
{
    const char *const resume[] = {p->clarification_resume_stage, p->confirmation_resume_stage,
                                  p->agent_review_resume_stage, p->agent_review_reject_stage};

    for (size_t i = 0; i < RV_COUNT(resume); i++)
        if (resume[i] && resume[i][0])
            return false;
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].hooks.pre_process[0] || p->agents[i].hooks.post_process[0])
            return false;
    return true;
}

int lint_order(const struct lint_arcs *arcs, const int64_t *hops, rv_findings *findings, rv_err **err)
{
    struct order o = {.arcs = arcs, .entries = hops, .findings = findings};
    size_t n = n_nodes(&o);
    int rc = 0;

    if (!is_certain(arcs->p) || n * n > MAX_STEPS / (arcs->n + 1))
        return 0;
    o.before = calloc(n, sizeof *o.before);
    o.leads = calloc(n, sizeof *o.leads);
    o.queue = calloc(n, sizeof *o.queue);
    if (!o.before || !o.leads || !o.queue)
        rc = RV_FAIL(err, RV_E_NOMEM, "order the stages of a pipeline");
    for (o.stage = 0; rc == 0 && o.stage + 1 < (int)n; o.stage++)
        if (hops[o.stage] >= 0)
            check_stage(&o);
    free(o.before);
    free(o.leads);
    free(o.queue);
    return rc;
}
