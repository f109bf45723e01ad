/* Roles of models: their fallbacks, which are other models and come to an end, and the roles that agent documents add.
 */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"
#include "config/models_internal.h"

/* --- Fallbacks --- */

bool config_is_dropped_role(const struct rv_pipeline *p, const char *role)
{
    for (size_t i = 0; i < p->internal->n_chosen_models; i++)
        if (!p->internal->chosen_models[i].provider && strcmp(p->internal->chosen_models[i].role, role) == 0)
            return true;
    return false;
}

static void unknown_role(struct rv_loader *l, const struct rv_model_config *m, size_t at)
{
    const char **roles = config_loader_array(l, l->p->n_models, sizeof *roles);
    char hint[RV_HINT_MAX];

    if (!roles)
        return;
    for (size_t i = 0; i < l->p->n_models; i++)
        roles[i] = l->p->models[i].role;
    config_name_hint(l->findings, rv_str_of(m->fallback.items[at]), "roles", roles, l->p->n_models, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &m->fallback.srcs[at], hint,
                    "model \"%s\": fallback names \"%s\", which is not a role of models", m->role,
                    m->fallback.items[at]);
}

/* An optional role that is left out is left out here too. */
static void resolve(struct rv_loader *l, struct rv_model_config *m)
{
    struct rv_str_list *list = &m->fallback;
    size_t kept = 0;

    m->fallback_models = config_loader_array(l, list->n, sizeof *m->fallback_models);
    for (size_t i = 0; i < list->n && l->rc == 0; i++) {
        const struct rv_model_config *other = rv_pipeline_find_model(l->p, rv_str_of(list->items[i]));

        if (other == m) {
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &list->srcs[i], NULL,
                            "model \"%s\": it cannot be its own fallback", m->role);
        } else if (other) {
            if (config_is_of_capability(other) && !config_is_of_capability(m))
                rv_findings_add(l->findings, RV_SEVERITY_WARNING, &list->srcs[i],
                                "leave it out; error_next of a stage can lead to one that asks it",
                                "model \"%s\": its fallback \"%s\" is not asked: a capability answers for it", m->role,
                                other->role);
            list->items[kept] = list->items[i];
            list->srcs[kept] = list->srcs[i];
            m->fallback_models[kept++] = other;
        } else if (!config_is_dropped_role(l->p, list->items[i])) {
            unknown_role(l, m, i);
        }
    }
    list->n = kept;
}

enum mark { NEW, OPEN, DONE };

/* Depth first; RV_MAX_MODELS bounds the depth. */
static void find_circle(struct rv_loader *l, const struct rv_model_config *m, enum mark *marks)
{
    enum mark *mark = &marks[m - l->p->models];

    if (*mark != NEW)
        return;
    *mark = OPEN;
    for (size_t i = 0; i < m->fallback.n; i++) {
        const struct rv_model_config *other = m->fallback_models[i];

        if (marks[other - l->p->models] == OPEN)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &m->fallback.srcs[i], "leave one of them out",
                            "model \"%s\": its fallback \"%s\" leads back to it", m->role, other->role);
        else
            find_circle(l, other, marks);
    }
    *mark = DONE;
}

void config_resolve_fallbacks(struct rv_loader *l)
{
    enum mark *marks = config_loader_array(l, l->p->n_models, sizeof *marks);

    for (size_t i = 0; i < l->p->n_models && l->rc == 0; i++)
        resolve(l, &l->p->models[i]);
    for (size_t i = 0; i < l->p->n_models && l->rc == 0; i++)
        find_circle(l, &l->p->models[i], marks);
}

/* --- Models that agent documents name: roles of their own, beside those of the pipeline --- */

#define ROLE_PREFIX "agent:"

/* Fallbacks are models of the same list. */
static const struct rv_model_config **moved_fallbacks(struct rv_loader *l, const struct rv_model_config *m,
                                                      const struct rv_model_config *from,
                                                      const struct rv_model_config *to)
{
    const struct rv_model_config **list = config_loader_array(l, m->fallback.n, sizeof *list);

    for (size_t i = 0; list && i < m->fallback.n; i++)
        list[i] = to + (m->fallback_models[i] - from);
    return list;
}

void config_reserve_models(struct rv_loader *l, const struct rv_pipeline *from, size_t n_more)
{
    const struct rv_pipeline_internal *old = from->internal;
    struct rv_pipeline_internal *internal = l->p->internal;
    struct rv_model_config *models = config_loader_array(l, from->n_models + n_more, sizeof *models);
    struct rv_written *written = config_loader_array(l, from->n_models + n_more, sizeof *written);
    struct rv_chosen_model *chosen = config_loader_array(l, old->n_chosen_models + n_more, sizeof *chosen);

    if (!models || !written || !chosen)
        return;
    for (size_t i = 0; i < from->n_models; i++) {
        models[i] = from->models[i];
        written[i] = old->models[i];
        if (models[i].fallback.n > 0)
            models[i].fallback_models = moved_fallbacks(l, &from->models[i], from->models, models);
    }
    for (size_t i = 0; i < old->n_chosen_models; i++)
        chosen[i] = old->chosen_models[i];
    if (l->rc < 0)
        return;
    l->p->models = models;
    l->p->n_models = from->n_models;
    internal->models = written;
    internal->chosen_models = chosen;
    internal->n_chosen_models = old->n_chosen_models;
    internal->has_models = old->has_models;
}

/* A price that the pipeline was made with stays, or a replay would reckon otherwise. The pipeline of an asked agent
 * takes that of the same model under another role, else the built-in one; any other pipeline asks all tables. */
static void set_price(struct rv_loader *l, struct rv_model_config *m)
{
    const struct rv_pipeline_internal *internal = l->p->internal;
    struct rv_chosen_model found = {.role = NULL};

    for (size_t i = 0; i < internal->n_given_models; i++)
        if (strcmp(internal->given_models[i].role, m->role) == 0)
            found = internal->given_models[i];
    for (size_t i = 0; internal->borrows_models && i < l->p->n_models && !found.has_price; i++) {
        const struct rv_model_config *other = &l->p->models[i];

        if (other != m && other->has_price && strcmp(other->provider, m->provider) == 0 &&
            strcmp(other->model, m->model) == 0)
            found = (struct rv_chosen_model){
                .has_price = true, .price = other->price, .max_input_tokens = other->max_input_tokens};
    }
    if (internal->borrows_models && !found.has_price)
        config_prices_find_built_in(l, m->provider, m->model, &found);
    else if (!internal->borrows_models && !internal->given_models)
        config_prices_find(l, m->provider, m->model, &found);
    m->max_input_tokens = found.max_input_tokens;
    m->has_price = m->price_from_table = found.has_price;
    m->price = found.price;
}

static void note_chosen(struct rv_loader *l, const struct rv_model_config *m)
{
    struct rv_pipeline_internal *internal = l->p->internal;

    if (m->has_price || m->max_input_tokens > 0 || m->is_replaced)
        internal->chosen_models[internal->n_chosen_models++] = (struct rv_chosen_model){
            .role = m->role,
            .provider = m->provider,
            .model = m->model,
            .has_price = m->has_price,
            .price = m->has_price ? m->price : (struct rv_price){.cached = RV_UNSET, .cache_write = RV_UNSET},
            .max_input_tokens = m->max_input_tokens,
            .replaces = m->is_replaced,
        };
}

static const char *role_of(struct rv_loader *l, const char *agent)
{
    size_t size = sizeof ROLE_PREFIX + strlen(agent);
    char *role = rv_arena_alloc(l->arena, size);

    if (role)
        snprintf(role, size, ROLE_PREFIX "%s", agent);
    else
        l->rc = RV_E_NOMEM;
    return role;
}

/* A role that the file has wins: so its author can say more of the model than a document can. One that another document
 * of the name left behind does not. */
static struct rv_model_config *find_or_add(struct rv_loader *l, const char *role, const char *provider,
                                           const char *model, bool *is_done)
{
    struct rv_pipeline *p = l->p;

    for (size_t i = 0; i < p->n_models; i++) {
        struct rv_model_config *m = &p->models[i];

        if (strcmp(m->role, role) != 0)
            continue;
        *is_done = p->internal->models[i].node || (strcmp(m->provider, provider) == 0 && strcmp(m->model, model) == 0);
        return m;
    }
    *is_done = false;
    p->internal->models[p->n_models] = (struct rv_written){0};
    return &p->models[p->n_models++];
}

/* What the caller chose in the place of a document's model: now, or when the pipeline was made first. */
static bool find_replacement(const struct rv_pipeline_internal *internal, const char *role, rv_str *provider,
                             const char **model)
{
    for (size_t i = 0; i < internal->n_given_models; i++)
        if (internal->given_models[i].replaces && strcmp(internal->given_models[i].role, role) == 0) {
            *provider = rv_str_of(internal->given_models[i].provider);
            *model = internal->given_models[i].model;
            return true;
        }
    if (!internal->model || internal->given_models)
        return false;
    config_split_model(internal->model, provider, model);
    return true;
}

const char *config_declare_model(struct rv_loader *l, const char *agent, const struct rv_agentdoc *doc)
{
    const char *role = role_of(l, agent), *model;
    struct rv_model_config *m;
    bool is_done = false;
    rv_str name;

    config_split_model(doc->model, &name, &model);
    bool is_replaced = role && find_replacement(l->p->internal, role, &name, &model);
    char *provider = rv_arena_dup(l->arena, name);
    if (!provider)
        l->rc = RV_E_NOMEM;
    if (l->rc < 0)
        return NULL;
    m = find_or_add(l, role, provider, model, &is_done);
    if (is_done)
        return m->role;
    *m = (struct rv_model_config){
        .role = role, .provider = provider, .model = model, .is_replaced = is_replaced, .src = doc->model_src};
    set_price(l, m);
    note_chosen(l, m);
    return l->rc < 0 ? NULL : role;
}
