/* What the tests of schedules share, beside tasks.h. */
#ifndef RV_TESTS_STORE_SCHEDULES_H
#define RV_TESTS_STORE_SCHEDULES_H

#include "tests/contract/store/tasks.h"

/** A schedule that queues tasks of type "news" in the default tenant: its id is "sched_" and the name, it fires next at
 *  that second. id is where the id goes. */
struct rv_schedule_row new_schedule(char id[80], const char *name, int64_t second);
void add_schedule(struct world *w, const char *name, int64_t second);
/** Fire a schedule of the default tenant for `second` as it stands at `expected`, and move it to `next` (0: it ends).
 *  The task's id is "NAME@SECOND". 1: fired; 0: another process was faster; else the code. */
int fire(struct world *w, rv_store *s, const char *name, int64_t expected, int64_t second, int64_t next);
/** "next 60 look 60 last 0 fired 0 skipped 0 [error]" in seconds after T0, of a schedule of the default tenant. */
void schedule_is(struct world *w, const char *name, const char *text, int line);
#define SCHEDULE(name, text) schedule_is(w, (name), (text), __LINE__)
/** "60=a@60 0..30=skipped: why": planned, or since..planned, newest first. */
void firings_are(struct world *w, const char *name, int64_t limit, const char *text, int line);
#define FIRINGS(name, limit, text) firings_are(w, (name), (limit), (text), __LINE__)
/** Names of what is due, in order. */
void due_is(struct world *w, int64_t second, int64_t max, const char *names, int line);
#define DUE(second, max, names) due_is(w, (second), (max), (names), __LINE__)
int see_due(void *self, const struct rv_due_schedule *due, rv_err **err);
int see_schedule(void *self, const struct rv_schedule_row *row, rv_err **err);

/* One call of each kind, for the fault points: of a schedule "due" that fires at second 5, and a new one. */
void furnish_schedules(struct world *w);
/** Writes what changes of a row into a buffer. */
int picture_schedule(void *self, const struct rv_schedule_row *row, rv_err **err);
int do_add_schedule(struct world *w);
int do_get_schedule(struct world *w);
int do_list_schedules(struct world *w);
int do_list_due_schedules(struct world *w);
int do_list_firings(struct world *w);
int do_fire_schedule(struct world *w);
int do_postpone_schedule(struct world *w);
int do_change_schedule(struct world *w);
int do_delete_schedule(struct world *w);
int do_prune_schedules(struct world *w);

#endif
