/* The queue of what will happen, a binary heap that knows where each item is. */
#include <stdlib.h>

#include "coreengine/engine/engine_internal.h"

static bool before(const struct call *a, const struct call *b)
{
    if (a->due_us != b->due_us)
        return a->due_us < b->due_us;
    if (a->call_id != b->call_id)
        return a->call_id < b->call_id;
    return a->x->number < b->x->number;
}

static void put(struct due_queue *q, size_t at, struct call *c)
{
    q->items[at] = c;
    c->heap_at = at;
}

static void up(struct due_queue *q, size_t at)
{
    struct call *c = q->items[at];

    while (at > 0 && before(c, q->items[(at - 1) / 2])) {
        put(q, at, q->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(q, at, c);
}

static void down(struct due_queue *q, size_t at)
{
    struct call *c = q->items[at];

    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < q->n && before(q->items[child + 1], q->items[child]))
            child++;
        if (child >= q->n || !before(q->items[child], c))
            break;
        put(q, at, q->items[child]);
        at = child;
    }
    put(q, at, c);
}

int rv_due_push(struct due_queue *q, struct call *c)
{
    if (q->n == q->cap) {
        size_t cap = q->cap ? q->cap * 2 : 16;
        struct call **items = realloc(q->items, cap * sizeof(struct call *));
        if (!items)
            return RV_E_NOMEM;
        q->items = items;
        q->cap = cap;
    }
    put(q, q->n++, c);
    up(q, q->n - 1);
    return 0;
}

struct call *rv_due_top(const struct due_queue *q)
{
    return q->n ? q->items[0] : NULL;
}

void rv_due_moved(struct due_queue *q, struct call *c)
{
    up(q, c->heap_at);
    down(q, c->heap_at);
}

void rv_due_remove(struct due_queue *q, struct call *c)
{
    size_t at = c->heap_at;
    struct call *last = q->items[--q->n];

    if (last == c)
        return;
    put(q, at, last);
    rv_due_moved(q, last);
}

void rv_due_fini(struct due_queue *q)
{
    free(q->items);
    *q = (struct due_queue){NULL, 0, 0};
}
