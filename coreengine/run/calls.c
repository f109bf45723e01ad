/* Which branch waits for a call or a timer: a table by its id, so that the answer to one of thousands of calls finds
 * its branch at once. Entries come and go with the effects that ask for
 * calls and cancel them; a run without groups has none, as its main branch is the only one. */
#include <stdlib.h>

#include "coreengine/run/run_internal.h"

#define FIRST_CAP 64 /* calls: a power of two, like all that follow; a run seldom has more */

/* Ids that follow each other are spread: neighbours would make one long chain, which each removal walks along. */
static size_t home(const struct call_table *t, int64_t id)
{
    return (size_t)(((uint64_t)id * RV_GOLDEN) >> 32) & (t->cap - 1);
}

/* The place of the entry with that id, or the free one where it would stand. */
static size_t place_of(const struct call_table *t, int64_t id)
{
    size_t at = home(t, id);

    while (t->items[at].branch && t->items[at].id != id)
        at = (at + 1) & (t->cap - 1);
    return at;
}

static int grow(struct call_table *t, rv_err **err)
{
    struct call_table wide = {.cap = t->cap ? 2 * t->cap : FIRST_CAP, .n = t->n};

    wide.items = calloc(wide.cap, sizeof *wide.items);
    if (!wide.items)
        return RV_FAIL(err, RV_E_NOMEM, "note a call");
    for (size_t i = 0; i < t->cap; i++)
        if (t->items[i].branch)
            wide.items[place_of(&wide, t->items[i].id)] = t->items[i];
    free(t->items);
    *t = wide;
    return 0;
}

static int add(struct call_table *t, int64_t id, struct branch *b, rv_err **err)
{
    int rc = 2 * (t->n + 1) > t->cap ? grow(t, err) : 0;

    if (rc < 0)
        return rc;
    size_t at = place_of(t, id);
    t->n += !t->items[at].branch;
    b->n_calls += !t->items[at].branch;
    t->items[at].id = id;
    t->items[at].branch = b;
    return 0;
}

/* Entries behind it move up, so that each is found from its home on. */
static void take_out(struct call_table *t, int64_t id)
{
    size_t at = t->cap ? place_of(t, id) : 0, next = at;

    if (!t->cap || !t->items[at].branch)
        return;
    t->items[at].branch->n_calls--;
    t->n--;
    for (;;) {
        next = (next + 1) & (t->cap - 1);
        if (!t->items[next].branch)
            break;
        size_t from = home(t, t->items[next].id);
        if (((next - from) & (t->cap - 1)) < ((next - at) & (t->cap - 1)))
            continue; /* it stands between its home and the gap: it stays */
        t->items[at] = t->items[next];
        at = next;
    }
    t->items[at].branch = NULL;
}

int run_calls_note(rv_run *run, struct branch *b, const struct rv_effects *out, size_t from, rv_err **err)
{
    int rc = 0;

    for (size_t i = from; i < out->n && rc == 0 && run->totals.is_on; i++) {
        const struct rv_effect *e = &out->items[i];

        if (e->kind == RV_EFFECT_CANCEL_CALL)
            take_out(&run->calls, e->call_id);
        else if (e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL || e->kind == RV_EFFECT_CALL_HOOK ||
                 e->kind == RV_EFFECT_ARM_TIMER)
            rc = add(&run->calls, e->call_id, b, err);
    }
    return rc;
}

struct branch *run_calls_branch(rv_run *run, int64_t call_id)
{
    struct branch *b = &run->main;

    if (run->totals.is_on) {
        const struct call_table *t = &run->calls;
        b = t->cap ? t->items[place_of(t, call_id)].branch : NULL;
    }
    return b && b->work && run_work_waits_for(b->work, call_id) ? b : NULL;
}

void run_calls_answered(rv_run *run, int64_t call_id)
{
    take_out(&run->calls, call_id);
}

/* Only of a branch that is freed with calls that no one cancelled: of a run that could not end. */
void run_calls_forget(rv_run *run, struct branch *b)
{
    for (size_t i = 0; b->n_calls > 0 && i < run->calls.cap; i++)
        while (run->calls.items[i].branch == b)
            take_out(&run->calls, run->calls.items[i].id);
}

void run_calls_fini(struct call_table *t)
{
    free(t->items);
    *t = (struct call_table){0};
}
