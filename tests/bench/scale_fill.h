/* A large store, made quickly: rows as many runs leave them behind, added by a few statements. */
#ifndef RV_TESTS_BENCH_SCALE_FILL_H
#define RV_TESTS_BENCH_SCALE_FILL_H

#include "coreengine/store/store_internal.h"

#define SCALE_T0      INT64_C(1700000000000000) /* when the first run began; the others each a millisecond later */
#define SCALE_TENANTS 1000                      /* "tenant0" and so on; each second run is of the default one */
#define SCALE_BODY    330                       /* bytes of a record; each fifth has a value of 600 beside it */

/** Open the tables' driver past the front of the store. Dies on failure, as all here do. */
struct sql_store *scale_open(const char *url);
/** Make a store of that many runs with so many records each. Of 1,000 runs one is running and ten wait with a question;
 *  each has a task, of which one in fifty is pending and one in two hundred waits for its time, in lanes of 1,000
 *  tenants; each ten share a session with four messages; each fourth has a blob. says: progress on stderr. */
void scale_fill(const char *url, int64_t n_runs, int64_t n_records, bool says);
/** Run one statement that gives no rows, in a transaction of its own. */
void scale_run(struct sql_store *st, const char *sql);

#endif
