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

void httpd_wheel_init(struct rv_wheel *w, int64_t now_us)
{
    *w = (struct rv_wheel){.tick = tick_of(now_us)};
    w->due.prev = w->due.next = &w->due;
    for (size_t i = 0; i < RV_WHEEL_SLOTS; i++)
        w->slots[i].prev = w->slots[i].next = &w->slots[i];
}

static void append(struct rv_wheel_entry *head, struct rv_wheel_entry *e)
{
    e->prev = head->prev;
    e->next = head;
    e->prev->next = e->next->prev = e;
}

void httpd_wheel_remove(struct rv_wheel *w, struct rv_wheel_entry *e)
{
    if (!e->next)
        return;
    e->prev->next = e->next;
    e->next->prev = e->prev;
    if (e->next == e->prev && e->next != &w->due) { /* only the head of the ring is left */
        size_t slot = (size_t)(e->next - w->slots);
        w->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    }
    e->prev = e->next = NULL;
}

void httpd_wheel_set(struct rv_wheel *w, struct rv_wheel_entry *e, int64_t due_us)
{
    httpd_wheel_remove(w, e);
    e->due_us = due_us;
    if (due_us == RV_NEVER)
        return;
    int64_t tick = tick_of(due_us);
    size_t slot = slot_of(tick > w->tick ? tick : w->tick);
    append(&w->slots[slot], e);
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

/* Those of the slot that are due; entries of a later round stay. */
static void collect(struct rv_wheel *w, struct rv_wheel_entry *head, int64_t now_us)
{
    struct rv_wheel_entry *next;

    for (struct rv_wheel_entry *e = head->next; e != head; e = next) {
        next = e->next;
        if (e->due_us > now_us)
            continue;
        httpd_wheel_remove(w, e);
        append(&w->due, e);
    }
}

static struct rv_wheel_entry *take_due(struct rv_wheel *w)
{
    struct rv_wheel_entry *e = w->due.next;

    if (e == &w->due)
        return NULL;
    httpd_wheel_remove(w, e);
    return e;
}

struct rv_wheel_entry *httpd_wheel_pop(struct rv_wheel *w, int64_t now_us)
{
    int64_t last = tick_of(now_us);
    struct rv_wheel_entry *first = take_due(w);

    if (first)
        return first;

    if (last - w->tick >= RV_WHEEL_SLOTS) /* a round that was slept through: each slot once */
        w->tick = last - RV_WHEEL_SLOTS + 1;
    for (;;) {
        size_t n = distance(w, w->tick);
        if (n == RV_WHEEL_SLOTS || (int64_t)n > last - w->tick)
            break;
        w->tick += (int64_t)n;
        collect(w, &w->slots[slot_of(w->tick)], now_us);
        if ((first = take_due(w)))
            return first;
        if (w->tick == last)
            return NULL;
        w->tick++;
    }
    w->tick = last > w->tick ? last : w->tick;
    return NULL;
}

int64_t httpd_wheel_next_us(const struct rv_wheel *w)
{
    size_t n = distance(w, w->tick);

    if (w->due.next != &w->due)
        return w->tick * RV_WHEEL_TICK_US;
    return n == RV_WHEEL_SLOTS ? RV_NEVER : (w->tick + (int64_t)n + 1) * RV_WHEEL_TICK_US;
}
