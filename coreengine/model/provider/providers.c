/* What all exchanges of a process share: the gates. */
#include "coreengine/model/provider/provider_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

rv_providers *rv_providers_new(struct rv_provider_env env)
{
    rv_providers *p = calloc(1, sizeof *p);

    if (p)
        p->env = env;
    return p;
}

void rv_providers_free(rv_providers *p)
{
    if (!p)
        return;
    while (p->gates) {
        struct rv_gate *next = p->gates->next;
        assert(!p->gates->in_flight && !p->gates->first);
        free(p->gates);
        p->gates = next;
    }
    free(p);
}

struct rv_gate *rv_providers_gate(rv_providers *p, const struct rv_endpoint *e)
{
    struct rv_gate *g;

    for (g = p->gates; g; g = g->next) /* as many as there are addresses: few */
        if (strcmp(g->id, e->gate) == 0)
            return g;
    g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    memcpy(g->id, e->gate, sizeof g->id);
    g->next = p->gates;
    p->gates = g;
    return g;
}
