/* Waiting for other processes that write. SQLite has no queue: the process that asks first when the lock is free gets
 * it. So each process asks at random times, and the longer it has waited, the more often: the oldest of many waiting
 * processes goes first as a rule, and no process waits much longer than the others. */
#include <time.h>

#include "coreengine/store/sqlite_internal.h"

#define MS INT64_C(1000000) /* in nanoseconds */

/* How long to sleep between two questions. A write takes about a millisecond on an idle disk. */
static const struct pace {
    int64_t upto_ms, step_ns; /* from half the step to one and a half */
} paces[] = {{20, 2 * MS}, {1000, 16 * MS}, {4000, 8 * MS}, {INT64_MAX, 3 * MS}};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * MS + t.tv_nsec;
}

/* SQLite asks whether to try again; n times it has for this lock. */
int rv_sql_wait_turn(void *self, int n)
{
    struct sql_store *st = self;
    const struct pace *pace = paces;
    int64_t now = now_ns();

    if (n == 0)
        st->waits_since_ns = now;
    int64_t waited_ms = (now - st->waits_since_ns) / MS;
    int64_t left_ms = (st->wait_ms > 0 ? st->wait_ms : st->busy_ms) - waited_ms;
    if (left_ms <= 0)
        return 0;
    while (waited_ms >= pace->upto_ms)
        pace++;
    int64_t ns = pace->step_ns / 2 + (int64_t)rv_rand_below(rv_rand_system(), (uint64_t)pace->step_ns);
    if (ns > left_ms * MS)
        ns = left_ms * MS;
    nanosleep(&(struct timespec){.tv_sec = ns / (1000 * MS), .tv_nsec = ns % (1000 * MS)}, NULL);
    return 1;
}

void rv_sql_set_wait(void *self, int64_t ms)
{
    struct sql_store *st = self;

    st->wait_ms = ms;
}
