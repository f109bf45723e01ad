/* The calls and timers that are outstanding: a table that is only added to at its end, as ids rise. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

#define COMPACT_AT 32 /* entries that are over; fewer are not worth moving the others for */

static void forget(struct rv_effect *e)
{
    free(e->owned_name);
    free(e->request);
    free(e->key);
    json_object_put(e->ids);
    *e = (struct rv_effect){.kind = RV_EFFECT_CANCEL_CALL, .call_id = e->call_id, .stage = -1};
}

static void compact(struct open_calls *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->all.n; i++)
        if (o->all.items[i].kind != RV_EFFECT_CANCEL_CALL)
            o->all.items[n++] = o->all.items[i];
    o->all.n = n;
    o->n_over = 0;
}

int rv_open_calls_add(struct open_calls *o, struct rv_effect *from, int64_t now_us, rv_err **err)
{
    struct rv_effect *e = rv_effects_add(&o->all, from->kind);

    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "keep an open call");
    *e = *from;
    from->owned_name = from->request = from->key = NULL;
    from->ids = NULL;
    if (e->kind != RV_EFFECT_ARM_TIMER)
        e->at_us = now_us;
    return 0;
}

void rv_open_calls_end(struct open_calls *o, int64_t call_id)
{
    size_t low = 0, high = o->all.n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (o->all.items[mid].call_id < call_id)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == o->all.n || o->all.items[low].call_id != call_id || o->all.items[low].kind == RV_EFFECT_CANCEL_CALL)
        return;
    forget(&o->all.items[low]);
    o->n_over++;
    if (o->n_over >= COMPACT_AT && o->n_over > o->all.n / 2)
        compact(o);
}

void rv_open_calls_clear(struct open_calls *o)
{
    rv_effects_clear(&o->all);
    o->n_over = 0;
}

struct rv_effects rv_open_calls_steal(struct open_calls *o)
{
    compact(o);
    struct rv_effects all = o->all;
    *o = (struct open_calls){0};
    return all;
}
