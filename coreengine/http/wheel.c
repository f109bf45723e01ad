/* Entries by time, for many connections with one timer of the loop: a ring of slots of an eighth of a second each. An
 * entry that is due later than the ring is long stays in its slot for another round. No I/O. */
#include "coreengine/http/http_internal.h"

static int64_t tick_of(int64_t us)
{
    return us / RV_WHEEL_TICK_US;
}

static size_t slot_of(int64_t tick)
{
    return (size_t)((uint64_t)tick % RV_WHEEL_SLOTS);
}

void rv_wheel_init(struct rv_wheel *w, int64_t now_us)
{
    *w = (struct rv_wheel){.tick = tick_of(now_us)};
    for (size_t i = 0; i < RV_WHEEL_SLOTS; i++)
        w->slots[i].prev = w->slots[i].next = &w->slots[i];
}

void rv_wheel_remove(struct rv_wheel *w, struct rv_wheel_entry *e)
{
    if (!e->next)
        return;
    e->prev->next = e->next;
    e->next->prev = e->prev;
    if (e->next == e->prev) { /* only the head of the ring is left */
        size_t slot = (size_t)(e->next - w->slots);
        w->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    }
    e->prev = e->next = NULL;
}

void rv_wheel_set(struct rv_wheel *w, struct rv_wheel_entry *e, int64_t due_us)
{
    rv_wheel_remove(w, e);
    e->due_us = due_us;
    if (due_us == RV_HTTPD_NEVER)
        return;
    int64_t tick = tick_of(due_us);
    size_t slot = slot_of(tick > w->tick ? tick : w->tick);
    struct rv_wheel_entry *head = &w->slots[slot];
    e->prev = head->prev;
    e->next = head;
    e->prev->next = e->next->prev = e;
    w->used[slot / 64] |= UINT64_C(1) << slot % 64;
}

/* The first slot from `tick` on that is not empty, as a distance; RV_WHEEL_SLOTS: none. */
static size_t distance(const struct rv_wheel *w, int64_t tick)
{
    size_t slot = slot_of(tick);

    for (size_t n = 0; n < RV_WHEEL_SLOTS;) {
        size_t at = (slot + n) % RV_WHEEL_SLOTS;
        uint64_t bits = w->used[at / 64] >> at % 64;
        if (bits)
            return n + (size_t)__builtin_ctzll(bits);
        n += 64 - at % 64;
    }
    return RV_WHEEL_SLOTS;
}

struct rv_wheel_entry *rv_wheel_pop(struct rv_wheel *w, int64_t now_us)
{
    int64_t last = tick_of(now_us);

    if (last - w->tick >= RV_WHEEL_SLOTS) /* a round that was slept through: each slot once */
        w->tick = last - RV_WHEEL_SLOTS + 1;
    for (;;) {
        size_t n = distance(w, w->tick);
        if (n == RV_WHEEL_SLOTS || (int64_t)n > last - w->tick)
            break;
        w->tick += (int64_t)n;
        struct rv_wheel_entry *head = &w->slots[slot_of(w->tick)];
        for (struct rv_wheel_entry *e = head->next; e != head; e = e->next)
            if (e->due_us <= now_us) {
                rv_wheel_remove(w, e);
                return e;
            }
        if (w->tick == last)
            return NULL;
        w->tick++;
    }
    w->tick = last > w->tick ? last : w->tick;
    return NULL;
}

int64_t rv_wheel_next_us(const struct rv_wheel *w)
{
    size_t n = distance(w, w->tick);

    return n == RV_WHEEL_SLOTS ? RV_HTTPD_NEVER : (w->tick + (int64_t)n + 1) * RV_WHEEL_TICK_US;
}
