/* Cached answers. The asking user is part of the key: a user's own agent is not visible to others. */
#include "coreengine/app/agents/agents_internal.h"

#include <stdlib.h>
#include <string.h>

void rv_agents_entry_fini(struct rv_agents_entry *agent)
{
    rv_agentdoc_free(agent->doc);
    free(agent->text);
    free(agent->place);
    *agent = (struct rv_agents_entry){.text = NULL};
}

static void kept_free(struct rv_agents_kept *kept)
{
    if (!kept)
        return;
    rv_agents_entry_fini(&kept->agent);
    free(kept->name);
    free(kept->tenant);
    free(kept->user);
    free(kept);
}

void rv_agents_clear(struct rv_agents_cache *c)
{
    for (size_t i = 0; i < c->n; i++)
        kept_free(c->items[i]);
    c->n = 0;
}

static void drop(struct rv_agents_cache *c, size_t at)
{
    kept_free(c->items[at]);
    c->n--;
    memmove(&c->items[at], &c->items[at + 1], (c->n - at) * sizeof *c->items);
}

static const char *tenant_of(const struct rv_store_scope *scope)
{
    return scope->tenant ? scope->tenant : RV_STORE_TENANT;
}

static bool is_for(const struct rv_agents_kept *kept, const struct rv_store_scope *scope, const char *name)
{
    if (strcmp(kept->name, name) != 0 || strcmp(kept->tenant, tenant_of(scope)) != 0)
        return false;
    return kept->user && scope->user ? strcmp(kept->user, scope->user) == 0 : !kept->user && !scope->user;
}

const struct rv_agents_entry *rv_agents_recall(struct rv_agents_cache *c, const struct rv_store_scope *scope,
                                               const char *name, int64_t now_us)
{
    for (size_t i = 0; i < c->n; i++) {
        if (!is_for(c->items[i], scope, name))
            continue;
        if (now_us < c->items[i]->until_us)
            return &c->items[i]->agent;
        drop(c, i);
        return NULL;
    }
    return NULL;
}

int rv_agents_keep(struct rv_agents_cache *c, const struct rv_store_scope *scope, const char *name, int64_t until_us,
                   struct rv_agents_entry *agent, const struct rv_agents_entry **out, rv_err **err)
{
    struct rv_agents_kept *kept = calloc(1, sizeof *kept);

    if (kept) {
        kept->name = rv_str_dup(rv_str_of(name));
        kept->tenant = rv_str_dup(rv_str_of(tenant_of(scope)));
        kept->user = scope->user ? rv_str_dup(rv_str_of(scope->user)) : NULL;
    }
    if (!kept || !kept->name || !kept->tenant || (scope->user && !kept->user)) {
        kept_free(kept);
        rv_agents_entry_fini(agent);
        return RV_FAIL(err, RV_E_NOMEM, "keep agent \"%s\"", name);
    }
    kept->agent = *agent;
    *agent = (struct rv_agents_entry){.text = NULL};
    kept->until_us = until_us;
    if (c->n == RV_AGENTS_MAX_CACHE)
        drop(c, 0);
    c->items[c->n++] = kept;
    *out = &kept->agent;
    return 0;
}
