/* Fallbacks: from roles to models, which are others and come to an end. */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

/* --- Fallbacks --- */

bool rv_is_dropped_role(const struct rv_pipeline *p, const char *role)
{
    for (size_t i = 0; i < p->private->n_chosen_models; i++)
        if (!p->private->chosen_models[i].provider && strcmp(p->private->chosen_models[i].role, role) == 0)
            return true;
    return false;
}

static void unknown_role(struct rv_loader *l, const struct rv_model_config *m, size_t at)
{
    const char **roles = rv_loader_array(l, l->p->n_models, sizeof *roles);
    char hint[RV_HINT_MAX];

    if (!roles)
        return;
    for (size_t i = 0; i < l->p->n_models; i++)
        roles[i] = l->p->models[i].role;
    rv_name_hint(l->findings, rv_str_of(m->fallback.items[at]), "roles", roles, l->p->n_models, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &m->fallback.srcs[at], hint,
                    "model \"%s\": fallback names \"%s\", which is no role of models", m->role, m->fallback.items[at]);
}

/* An optional role that is left out is left out here too. */
static void resolve(struct rv_loader *l, struct rv_model_config *m)
{
    struct rv_str_list *list = &m->fallback;
    size_t kept = 0;

    m->fallback_models = rv_loader_array(l, list->n, sizeof *m->fallback_models);
    for (size_t i = 0; i < list->n && l->rc == 0; i++) {
        const struct rv_model_config *other = rv_pipeline_model(l->p, rv_str_of(list->items[i]));

        if (other == m) {
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &list->srcs[i], NULL,
                            "model \"%s\": it can not be its own fallback", m->role);
        } else if (other) {
            list->items[kept] = list->items[i];
            list->srcs[kept] = list->srcs[i];
            m->fallback_models[kept++] = other;
        } else if (!rv_is_dropped_role(l->p, list->items[i])) {
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

void rv_resolve_fallbacks(struct rv_loader *l)
{
    enum mark *marks = rv_loader_array(l, l->p->n_models, sizeof *marks);

    for (size_t i = 0; i < l->p->n_models && l->rc == 0; i++)
        resolve(l, &l->p->models[i]);
    for (size_t i = 0; i < l->p->n_models && l->rc == 0; i++)
        find_circle(l, &l->p->models[i], marks);
}
