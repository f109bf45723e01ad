/* Stages: in order with their names resolved, looked up, which may start (rule 4.5), who waits for whom (rule 4.4). */
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

static bool has_state(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage,
                      enum rv_stage_state state)
{
    return stage >= 0 && (size_t)stage < p->n_agents && states[stage] == state;
}

static bool requires_met(const struct rv_pipeline *p, const enum rv_stage_state *states, const struct rv_agent *a)
{
    bool any = a->order.join == RV_JOIN_ANY;

    if (a->order.required.n == 0)
        return true;
    for (size_t i = 0; i < a->order.required.n; i++) {
        if (has_state(p, states, a->order.required_index[i], RV_STAGE_COMPLETED) == any)
            return any;
    }
    return !any;
}

/* `after` orders and does not depend: whatever has come to an end, well or not, is satisfied. */
static bool after_met(const struct rv_pipeline *p, const enum rv_stage_state *states, const struct rv_agent *a)
{
    for (size_t i = 0; i < a->order.after.n; i++) {
        int stage = a->order.after_index[i];

        if (!has_state(p, states, stage, RV_STAGE_COMPLETED) && !has_state(p, states, stage, RV_STAGE_FAILED) &&
            !has_state(p, states, stage, RV_STAGE_SKIPPED))
            return false;
    }
    return true;
}

void config_pipeline_mark_fallbacks(struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        p->agents[i].routing.on_failure_only = false;
    for (size_t i = 0; i < p->n_agents; i++) {
        int to = p->agents[i].routing.error_target;

        if (to > 0 && (size_t)to != i)
            p->agents[to].routing.on_failure_only =
                p->agents[to].order.required.n == 0 && p->agents[to].order.after.n == 0;
    }
    for (size_t i = 0; i < p->n_agents; i++) { /* what a rule names, too, is a stage like others */
        const struct rv_agent *a = &p->agents[i];

        if (a->routing.default_target >= 0 && a->routing.default_target != (int)i)
            p->agents[a->routing.default_target].routing.on_failure_only = false;
        for (size_t r = 0; r < a->routing.n_rules; r++)
            if (a->routing.rules[r].target >= 0 && a->routing.rules[r].target != (int)i)
                p->agents[a->routing.rules[r].target].routing.on_failure_only = false;
    }
}

/* Has one of the stages whose error_next it is failed? */
static bool is_called_for(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].routing.error_target == stage && states[i] == RV_STAGE_FAILED)
            return true;
    return false;
}

bool rv_stage_has_what_it_needs(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage)
{
    return has_state(p, states, stage, RV_STAGE_WAITING) && requires_met(p, states, &p->agents[stage]) &&
           after_met(p, states, &p->agents[stage]);
}

static bool is_ready(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage)
{
    return rv_stage_has_what_it_needs(p, states, stage) &&
           (!p->agents[stage].routing.on_failure_only || is_called_for(p, states, stage));
}

size_t rv_pipeline_collect_ready(const struct rv_pipeline *p, const enum rv_stage_state *states, int *out)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_agents; i++) {
        if (is_ready(p, states, (int)i))
            out[n++] = (int)i;
    }
    return n;
}

/* One pass over every dependency. Without `items` it counts, else it writes; a stage that names another one twice
 * counts once, which `seen` tells: the last stage that was recorded for each. */
static void each_dependency(const struct rv_pipeline *p, size_t *count, int *seen, int *items)
{
    for (size_t s = 0; s < p->n_agents; s++)
        seen[s] = -1;
    for (size_t s = 0; s < p->n_agents; s++) {
        const struct rv_agent *a = &p->agents[s];

        for (size_t i = 0; i < a->order.required.n + a->order.after.n; i++) {
            int on =
                i < a->order.required.n ? a->order.required_index[i] : a->order.after_index[i - a->order.required.n];

            if (on < 0 || (size_t)on >= p->n_agents || seen[on] == (int)s)
                continue;
            seen[on] = (int)s;
            if (items)
                items[count[on]] = (int)s;
            count[on]++;
        }
    }
}

static int build_links(const struct rv_pipeline *p, struct rv_links *out, rv_err **err)
{
    struct rv_links links = {NULL, NULL};
    size_t n = p->n_agents, total = 0;
    size_t *next = calloc(n + 1, sizeof(*next));
    int *seen = calloc(n + 1, sizeof(*seen));
    int rc = 0;

    links.start = calloc(n + 1, sizeof(*links.start));
    if (!next || !seen || !links.start)
        goto no_memory;
    each_dependency(p, next, seen, NULL);
    for (size_t s = 0; s < n; s++) {
        links.start[s] = total;
        total += next[s];
        next[s] = links.start[s];
    }
    links.start[n] = total;
    links.items = calloc(total + 1, sizeof(*links.items));
    if (!links.items)
        goto no_memory;
    each_dependency(p, next, seen, links.items);
    *out = links;
    links = (struct rv_links){NULL, NULL};
    goto done;

no_memory:
    rc = RV_FAIL(err, RV_E_NOMEM, "list the dependents of each stage");
done:
    config_links_fini(&links);
    free(next);
    free(seen);
    return rc;
}

void config_links_fini(struct rv_links *links)
{
    free(links->items);
    free(links->start);
    *links = (struct rv_links){NULL, NULL};
}

int config_pipeline_link(struct rv_pipeline *p, rv_err **err)
{
    config_links_fini(&p->internal->links);
    return build_links(p, &p->internal->links, err);
}

const int *rv_pipeline_dependents(const struct rv_pipeline *p, int stage, size_t *n)
{
    const struct rv_links *links = &p->internal->links;

    *n = 0;
    if (stage < 0 || (size_t)stage >= p->n_agents || !links->start)
        return NULL;
    *n = links->start[stage + 1] - links->start[stage];
    return links->items + links->start[stage];
}

/* --- Looking things up --- */

int rv_pipeline_find_stage(const struct rv_pipeline *p, rv_str name)
{
    return rv_index_get(&p->stage_index, name);
}

static const struct {
    const char *name;
    int target;
} special_targets[] = {
    {"end", RV_TARGET_END},
    {"clarification", RV_TARGET_CLARIFICATION},
    {"confirmation", RV_TARGET_CONFIRMATION},
};

int rv_pipeline_find_target(const struct rv_pipeline *p, rv_str name)
{
    int stage;

    if (name.len == 0)
        return RV_TARGET_NONE;
    for (size_t i = 0; i < RV_COUNT(special_targets); i++)
        if (rv_str_is(name, special_targets[i].name))
            return special_targets[i].target;
    stage = rv_pipeline_find_stage(p, name);
    return stage >= 0 ? stage : RV_TARGET_UNKNOWN;
}

const char *rv_pipeline_target_name(const struct rv_pipeline *p, int target)
{
    if (target >= 0 && (size_t)target < p->n_agents)
        return p->stage_names[target];
    for (size_t i = 0; i < RV_COUNT(special_targets); i++)
        if (special_targets[i].target == target)
            return special_targets[i].name;
    return "";
}

int rv_agent_approved_target(const struct rv_agent *a)
{
    bool goes_on = a->routing.default_target != RV_TARGET_NONE && a->routing.default_target != RV_TARGET_CONFIRMATION;

    return goes_on ? a->routing.default_target : RV_TARGET_END;
}

const char *rv_pipeline_approved_name(const struct rv_pipeline *p, const struct rv_agent *a)
{
    return p->confirmation_resume_stage[0] ? p->confirmation_resume_stage
                                           : rv_pipeline_target_name(p, rv_agent_approved_target(a));
}

int rv_pipeline_edge_limit_at(const struct rv_pipeline *p, int from, int to)
{
    int pair[2] = {from, to};

    return rv_index_get(&p->internal->edges, (rv_str){(const char *)pair, sizeof pair});
}

int64_t rv_pipeline_edge_limit(const struct rv_pipeline *p, int from, int to)
{
    int i = rv_pipeline_edge_limit_at(p, from, to);

    return i >= 0 ? p->edge_limits[i].max_count : 0;
}

const struct rv_model_config *rv_pipeline_find_model(const struct rv_pipeline *p, rv_str role)
{
    for (size_t i = 0; i < p->n_models; i++)
        if (rv_str_is(role, p->models[i].role))
            return &p->models[i];
    return NULL;
}

const struct rv_prompt_config *rv_pipeline_find_prompt(const struct rv_pipeline *p, rv_str key)
{
    for (size_t i = 0; i < p->n_prompts; i++)
        if (rv_str_is(key, p->prompts[i].key))
            return &p->prompts[i];
    return NULL;
}

rv_str rv_pipeline_text(const struct rv_pipeline *p)
{
    return p->internal->text;
}

const struct rv_text_file *rv_pipeline_files(const struct rv_pipeline *p, size_t *n)
{
    *n = p->internal->n_files;
    return p->internal->files;
}

const struct rv_chosen_model *rv_pipeline_chosen_models(const struct rv_pipeline *p, size_t *n)
{
    *n = p->internal->n_chosen_models;
    return p->internal->chosen_models;
}

struct rv_reset_rules rv_pipeline_reset_rules(const struct rv_pipeline *p)
{
    struct rv_reset_rules rules = {0};

    /* A list that is set keeps its array even when it is empty: NULL means the defaults. */
    if (p->retry_archive.is_set) {
        rules.retry_archive = p->retry_archive.items;
        rules.n_retry_archive = p->retry_archive.n;
    }
    if (p->retry_clear.is_set) {
        rules.retry_clear = p->retry_clear.items;
        rules.n_retry_clear = p->retry_clear.n;
    }
    if (p->stage_reset.is_set) {
        rules.stage_reset = p->stage_reset.items;
        rules.n_stage_reset = p->stage_reset.n;
    }
    return rules;
}

int rv_agent_child_text_kind(const struct rv_pipeline *p, const struct rv_agent *a)
{
    if (a->session.child_text != RV_UNSET)
        return a->session.child_text;
    return a->declared.doc && a->declared.doc->child_text != RV_UNSET ? a->declared.doc->child_text : p->child_text;
}

bool rv_pipeline_has_models(const struct rv_pipeline *p)
{
    return p->internal->has_models;
}

const struct rv_node *rv_pipeline_written_model(const struct rv_pipeline *p, size_t model)
{
    return p->internal->models ? p->internal->models[model].node : NULL;
}

/* --- After reading --- */

/* Stages in order, names to indices, values that depend on other keys. Finds nothing but double names.
 */

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
            report_double(l, &p->agents[rv_pipeline_find_stage(p, rv_str_of(a->name))], a);
        else if (rc < 0)
            l->rc = rc;
    }
}

static int *resolve_list(struct rv_loader *l, const struct rv_str_list *list)
{
    int *indices = config_loader_array(l, list->n, sizeof *indices);

    for (size_t i = 0; indices && i < list->n; i++)
        indices[i] = rv_pipeline_find_stage(l->p, rv_str_of(list->items[i]));
    return indices;
}

static int state_merge_of(const struct rv_pipeline *p, const char *output_key)
{
    for (size_t i = 0; i < p->n_state_fields; i++)
        if (strcmp(p->state_fields[i].key, output_key) == 0)
            return p->state_fields[i].merge;
    return RV_UNSET;
}

static void resolve_branches(const struct rv_pipeline *p, const struct rv_branches *branches)
{
    for (size_t i = 0; i < branches->n; i++)
        if (branches->items[i].name[0])
            branches->items[i].target = rv_pipeline_find_target(p, rv_str_of(branches->items[i].name));
}

static int rule_target(const struct rv_pipeline *p, const struct rv_rule *rule)
{
    if (rule->branches.is_list)
        return RV_TARGET_LIST;
    return rule->target_name[0] ? rv_pipeline_find_target(p, rv_str_of(rule->target_name)) : RV_TARGET_UNKNOWN;
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
    a->routing.default_target =
        a->routing.branches.is_list ? RV_TARGET_LIST : rv_pipeline_find_target(p, rv_str_of(a->routing.default_next));
    resolve_branches(p, &a->routing.branches);
    a->routing.error_target = rv_pipeline_find_target(p, rv_str_of(a->routing.error_next));
    for (size_t i = 0; i < a->routing.n_rules; i++) {
        a->routing.rules[i].target = rule_target(p, &a->routing.rules[i]);
        resolve_branches(p, &a->routing.rules[i].branches);
    }
    for (size_t i = 0; i < a->ask.n_routes; i++)
        if (a->ask.routes[i].target_name[0])
            a->ask.routes[i].target = rv_pipeline_find_target(p, rv_str_of(a->ask.routes[i].target_name));
    a->order.required_index = resolve_list(l, &a->order.required);
    a->order.after_index = resolve_list(l, &a->order.after);
}

static void collect_targets(struct rv_loader *l)
{
    struct rv_pipeline_internal *internal = l->p->internal;
    static const char *const special[] = {"end", "clarification", "confirmation"};

    internal->target_names = config_loader_array(l, l->p->n_agents + RV_COUNT(special), sizeof(char *));
    if (!internal->target_names)
        return;
    for (size_t i = 0; i < l->p->n_agents; i++)
        internal->target_names[internal->n_target_names++] = l->p->stage_names[i];
    for (size_t i = 0; i < RV_COUNT(special); i++)
        internal->target_names[internal->n_target_names++] = special[i];
}

/* Agents in the order in which they stand in the pipeline now; their index is still that of the file. */
static void keep_nodes(struct rv_loader *l)
{
    const struct rv_node *list = rv_node_get(l->root, "agents");
    const struct rv_node **nodes;

    if (!list || list->kind != RV_NODE_LIST || list->n != l->p->n_agents)
        return;
    l->p->internal->agent_nodes = nodes = config_loader_array(l, list->n, sizeof *nodes);
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
    const struct rv_agent **places = config_loader_array(l, p->n_agents, sizeof *places);
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
    sorted = config_loader_array(l, p->n_agents, sizeof *sorted);
    for (size_t i = 0; sorted && i < p->n_agents; i++)
        sorted[i] = *places[i];
    if (sorted)
        p->agents = sorted;
}

void config_finish_agents(struct rv_loader *l)
{
    struct rv_pipeline *p = l->p;

    sort_agents(l);
    if (l->rc < 0)
        return;
    keep_nodes(l);
    p->stage_names = config_loader_array(l, p->n_agents, sizeof *p->stage_names);
    if (!p->stage_names || l->rc < 0)
        return;
    index_stages(l);
    finish_pipeline(p);
    for (size_t i = 0; i < p->n_agents && l->rc == 0; i++)
        finish_agent(l, &p->agents[i]);
    if (l->rc == 0)
        config_pipeline_mark_fallbacks(p);
    if (l->rc == 0)
        collect_targets(l);
}
