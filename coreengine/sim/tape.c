/* Decisions: every random choice of a seed goes through one tape, so that a run can be repeated with some of them taken
 * back. Zero is always the plain choice: nothing fails, the first of a list, at once. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

#define TAPE_MAX ((size_t)1 << 22) /* decisions of one seed; a run is cut by its steps long before */

void sim_tape_init(struct sim_tape *t, uint64_t seed)
{
    *t = (struct sim_tape){0};
    t->rand = rv_rand_seeded(&t->state, seed);
}

void sim_tape_fini(struct sim_tape *t)
{
    free(t->items);
    memset(t, 0, sizeof *t);
}

void sim_tape_replay(struct sim_tape *t, const uint32_t *script, size_t n)
{
    t->script = script;
    t->n_script = n;
    t->is_replay = true;
}

/* Note what was decided: a replay with other decisions before may ask for other things, and this is what it came to. */
static void note(struct sim_tape *t, uint32_t v)
{
    if (t->n < TAPE_MAX && rv_has_room(&t->items, &t->cap, t->n + 1, sizeof *t->items))
        t->items[t->n++] = v;
    else
        t->rc = RV_E_NOMEM;
}

static uint32_t scripted(const struct sim_tape *t)
{
    return t->n < t->n_script ? t->script[t->n] : 0;
}

uint32_t sim_draw(struct sim_tape *t, uint32_t n)
{
    uint32_t v = t->is_replay ? scripted(t) % n : (uint32_t)rv_rand_below(t->rand, n);
    note(t, v);
    return v;
}

uint32_t sim_bits(struct sim_tape *t)
{
    uint32_t v = t->is_replay ? scripted(t) : (uint32_t)rv_rand_u64(t->rand);
    note(t, v);
    return v;
}

size_t sim_pick(struct sim_tape *t, const uint32_t *per_mille, size_t n)
{
    size_t at = 0;

    if (t->is_replay) {
        at = scripted(t) % (n + 1);
        if (at > 0 && per_mille[at - 1] == 0)
            at = 0;
    } else {
        uint64_t r = rv_rand_below(t->rand, 1000);
        for (size_t i = 0; i < n && at == 0; i++) {
            if (r < per_mille[i])
                at = i + 1;
            else
                r -= per_mille[i];
        }
    }
    note(t, (uint32_t)at);
    return at;
}

bool sim_chance(struct sim_tape *t, uint32_t per_mille)
{
    return sim_pick(t, &per_mille, 1) == 1;
}
