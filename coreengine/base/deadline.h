/* The end of a wait for a condition: of pthread_cond_timedwait() with CLOCK_MONOTONIC. */
#ifndef RV_BASE_DEADLINE_H
#define RV_BASE_DEADLINE_H

#include <stdint.h>
#include <time.h>

/** So many microseconds from now on, at most a day. */
struct timespec rv_deadline_in(int64_t us);

#endif
