/* What can be said of lists of targets and of joins without following them: what stands in a list, the words of a join,
 * and keys that do not go with either. */
#include <stdio.h>

#include "config/config_internal.h"

struct lists {
    struct rv_loader *l;
    struct rv_pipeline *p;
    size_t *seen; /* per stage: the last list that names it, counted from 1 */
    size_t n;
};

static void find(struct lists *c, const char *code, const struct rv_src *src, const char *hint, const char *text)
{
    rv_findings_add_as(c->l->findings, RV_SEVERITY_ERROR, code, src, hint, "%s", text);
}

static void check_list(struct lists *c, const struct rv_agent *a, const struct rv_branches *list)
{
    char text[RV_HINT_MAX];

    c->n++;
    for (size_t i = 0; i < list->n; i++) {
        const struct rv_branch_target *one = &list->items[i];

        if (one->target >= 0 && c->seen[one->target] == c->n) {
            snprintf(text, sizeof text, "stage \"%s\": the list has the branch \"%s\" twice", a->name, one->name);
            find(c, "duplicate_branch", &one->src,
                 "name each stage once; for_each does the work of a stage for each element of a list", text);
        }
        if (one->target >= 0)
            c->seen[one->target] = c->n;
        if (one->target == RV_TARGET_END || one->target == RV_TARGET_CLARIFICATION ||
            one->target == RV_TARGET_CONFIRMATION) {
            snprintf(text, sizeof text, "stage \"%s\": the branch \"%s\" is not a stage", a->name, one->name);
            find(c, "bad_branch", &one->src,
                 one->target != RV_TARGET_END ? "name a stage whose rule has this target"
                 : list->n == 1               ? "write end in place of the list: each name in a list opens a branch"
                                              : "leave it out: a branch that has nothing to do is not named",
                 text);
        }
    }
}

static void check_merges(struct lists *c, const struct rv_agent *a)
{
    for (size_t i = 0; i < a->join.n_merges; i++)
        if (rv_index_get(&c->p->internal->output_index, rv_str_of(a->join.merges[i].key)) < 0)
            rv_findings_add(c->l->findings, RV_SEVERITY_WARNING, &a->join.merges[i].src, NULL,
                            "stage \"%s\": join.merge names \"%s\", which is not the output key of a stage", a->name,
                            a->join.merges[i].key);
}

static void check_lists(struct lists *c)
{
    for (size_t i = 0; i < c->p->n_agents; i++) {
        const struct rv_agent *a = &c->p->agents[i];

        check_list(c, a, &a->routing.branches);
        for (size_t r = 0; r < a->routing.n_rules; r++)
            check_list(c, a, &a->routing.rules[r].branches);
        check_merges(c, a);
        if (a->join.wait != RV_WAIT_NOT && a->join.failures != RV_FAILURES_DRAIN && a->join.wait != RV_WAIT_ALL)
            rv_findings_add_as(c->l->findings, RV_SEVERITY_ERROR, "bad_join", &a->join.failures_src,
                               "write `wait: all`, or leave failures out",
                               "stage \"%s\": failures is for joins that wait for all branches", a->name);
    }
}

/* Lists and joins do not mix with dependencies. */
static void check_modes(struct lists *c)
{
    static const char hint[] = "put the stages with dependencies into a pipeline of their own, and run it by a stage "
                               "with the key pipeline";
    const struct rv_node *mode = rv_node_get(c->l->root, "default_run_mode");

    if (c->p->default_run_mode == RV_MODE_PARALLEL && mode)
        find(c, "mixed_modes", &mode->src, "leave it out: a list of targets runs its branches side by side",
             "default_run_mode is parallel, and the pipeline has lists of targets or joins");
    for (size_t i = 0; i < c->p->n_agents; i++) {
        const struct rv_agent *a = &c->p->agents[i];
        const struct rv_str_list *list = a->order.required.n > 0 ? &a->order.required : &a->order.after;
        char text[RV_HINT_MAX];

        if (list->n == 0)
            continue;
        snprintf(text, sizeof text, "stage \"%s\": %s does not go with lists of targets and joins", a->name,
                 list == &a->order.required ? "requires" : "after");
        find(c, "mixed_modes", &list->srcs[0], hint, text);
        return; /* once is enough */
    }
}

void config_check_lists(struct rv_loader *l)
{
    struct lists c = {.l = l, .p = l->p, .seen = config_loader_array(l, l->p->n_agents, sizeof *c.seen)};

    if (!c.seen)
        return;
    check_lists(&c);
    check_modes(&c);
}
