/* After reading: stages in order, names to indices, values that depend on other keys. Finds nothing but double names.
 */
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

static int by_stage_order(const void *left, const void *right)
{
    const struct rv_agent *a = *(const struct rv_agent *const *)left;
    const struct rv_agent *b = *(const struct rv_agent *const *)right;

    if (a->order.stage_order != b->order.stage_order)
        return a->order.stage_order < b->order.stage_order ? -1 : 1;
    return a->index < b->index ? -1 : 1; /* the file's order breaks ties */
}

static void report_double(struct rv_loader *l, const struct rv_agent *a, const struct rv_agent *b)
{
    bool is_later = b->places.name.line > a->places.name.line ||
                    (b->places.name.line == a->places.name.line && b->places.name.col > a->places.name.col);
    const struct rv_agent *first = is_later ? a : b;
    const struct rv_agent *second = is_later ? b : a;

    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &second->places.name, "give each agent a name of its own",
                    "duplicate agent name \"%s\"; the first one is on line %d", second->name, first->places.name.line);
}

static void index_stages(struct rv_loader *l)
{
    struct rv_pipeline *p = l->p;

    for (size_t i = 0; i < p->n_agents && l->rc == 0; i++) {
        struct rv_agent *a = &p->agents[i];
        int rc;

        a->index = (int)i;
        p->stage_names[i] = a->name;
        if (!a->name[0])
            continue;
        rc = rv_index_add(&p->stage_index, rv_str_of(a->name), (int)i);
        if (rc == RV_E_EXISTS)
            report_double(l, &p->agents[rv_pipeline_stage(p, rv_str_of(a->name))], a);
        else if (rc < 0)
            l->rc = rc;
    }
}

static int *resolve_list(struct rv_loader *l, const struct rv_str_list *list)
{
    int *indices = rv_loader_array(l, list->n, sizeof *indices);

    for (size_t i = 0; indices && i < list->n; i++)
        indices[i] = rv_pipeline_stage(l->p, rv_str_of(list->items[i]));
    return indices;
}

static int state_merge_of(const struct rv_pipeline *p, const char *output_key)
{
    for (size_t i = 0; i < p->n_state_fields; i++)
        if (strcmp(p->state_fields[i].key, output_key) == 0)
            return p->state_fields[i].merge;
    return RV_UNSET;
}

static void finish_agent(struct rv_loader *l, struct rv_agent *a)
{
    struct rv_pipeline *p = l->p;

    if (!a->output.key[0])
        a->output.key = a->name;
    if (!a->tools.plan_from[0])
        a->tools.plan_from = "plan";
    if (a->limits.timeout_seconds == 0)
        a->limits.timeout_seconds = p->default_timeout_seconds;
    a->hooks.mock = a->hooks.mock || p->mock;
    a->output.state_merge = state_merge_of(p, a->output.key);
    a->routing.default_target = rv_pipeline_target(p, rv_str_of(a->routing.default_next));
    a->routing.error_target = rv_pipeline_target(p, rv_str_of(a->routing.error_next));
    for (size_t i = 0; i < a->routing.n_rules; i++)
        a->routing.rules[i].target = a->routing.rules[i].target_name[0]
                                         ? rv_pipeline_target(p, rv_str_of(a->routing.rules[i].target_name))
                                         : RV_TARGET_UNKNOWN;
    a->order.requires_index = resolve_list(l, &a->order.requires);
    a->order.after_index = resolve_list(l, &a->order.after);
}

static void collect_targets(struct rv_loader *l)
{
    struct rv_pipeline_private *private = l->p->private;
    static const char *const special[] = {"end", "clarification", "confirmation"};

    private->target_names = rv_loader_array(l, l->p->n_agents + RV_COUNT(special), sizeof(char *));
    if (!private->target_names)
        return;
    for (size_t i = 0; i < l->p->n_agents; i++)
    private->target_names[private->n_target_names++] = l->p->stage_names[i];
    for (size_t i = 0; i < RV_COUNT(special); i++)
    private->target_names[private->n_target_names++] = special[i];
}

/* Agents in the order in which they stand in the pipeline now; their index is still that of the file. */
static void keep_nodes(struct rv_loader *l)
{
    const struct rv_node *list = rv_node_get(l->root, "agents");
    const struct rv_node **nodes;

    if (!list || list->kind != RV_NODE_LIST || list->n != l->p->n_agents)
        return;
    l->p->private->agent_nodes = nodes = rv_loader_array(l, list->n, sizeof *nodes);
    for (size_t i = 0; nodes && i < list->n; i++)
        nodes[i] = list->items[l->p->agents[i].index];
}

static void finish_pipeline(struct rv_pipeline *p)
{
    if (p->response.output_key && !p->response.output_key[0])
        p->response.output_key = NULL;
    if (p->response.field && !p->response.field[0])
        p->response.field = NULL;
}

/* By their places, since agents are large: most files have them in order already. */
static void sort_agents(struct rv_loader *l)
{
    struct rv_pipeline *p = l->p;
    const struct rv_agent **places = rv_loader_array(l, p->n_agents, sizeof *places);
    struct rv_agent *sorted;
    bool in_order = true;

    for (size_t i = 0; places && i < p->n_agents; i++) {
        p->agents[i].index = (int)i;
        places[i] = &p->agents[i];
        in_order = in_order && (i == 0 || by_stage_order(&places[i - 1], &places[i]) < 0);
    }
    if (!places || in_order)
        return;
    qsort(places, p->n_agents, sizeof *places, by_stage_order);
    sorted = rv_loader_array(l, p->n_agents, sizeof *sorted);
    for (size_t i = 0; sorted && i < p->n_agents; i++)
        sorted[i] = *places[i];
    if (sorted)
        p->agents = sorted;
}

void rv_finish_agents(struct rv_loader *l)
{
    struct rv_pipeline *p = l->p;

    sort_agents(l);
    if (l->rc < 0)
        return;
    keep_nodes(l);
    p->stage_names = rv_loader_array(l, p->n_agents, sizeof *p->stage_names);
    if (!p->stage_names || l->rc < 0)
        return;
    index_stages(l);
    finish_pipeline(p);
    for (size_t i = 0; i < p->n_agents && l->rc == 0; i++)
        finish_agent(l, &p->agents[i]);
    if (l->rc == 0)
        rv_pipeline_mark_fallbacks(p);
    if (l->rc == 0)
        collect_targets(l);
}
