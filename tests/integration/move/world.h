/* What the tests of copies share: stores of both kinds, and rows of every kind in them. */
#ifndef RV_TESTS_MOVE_WORLD_H
#define RV_TESTS_MOVE_WORLD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"

#define T0 INT64_C(1700000000000000)

struct world {
    char *dir;
    int n; /* names that were given */
    rv_err *err;
};
void world_open(struct world *w);
void world_close(struct world *w);

enum kind { FILE_STORE, DATABASE };
#define N_KINDS 2
/** The URL of a store that does not exist yet; free() it. */
char *world_url(struct world *w, enum kind kind);
rv_store *world_store(struct world *w, const char *url, bool takes_copy);
/** Copy by URLs; opts may be NULL. */
int world_copy(struct world *w, const char *from, const char *to, const struct rv_store_copy_opts *opts,
               struct rv_store_copied *out);

void must_ok(struct world *w, int rc, const char *what, int line);
/** The code, and a link of the chain that says part. Forgets the error. */
void must_fail(struct world *w, int rc, int code, const char *part, int line);
#define OK(call)                must_ok(w, (call), #call, __LINE__)
#define FAILS(code, part, call) must_fail(w, (call), (code), (part), __LINE__)

/** Run SQL on a file that is not open. */
void world_sql(const char *path, const char *sql);
/* fill.c */
/** Add rows of every table to a file, with the smallest, largest and strangest values that its columns take. */
void fill_strangely(const char *path);
/** Add a number of runs with that many records each, some values of which are blobs. */
void fill_plainly(const char *path, int n_runs, int n_records);

Suite *copy_suite(void);
Suite *refusals_suite(void);
Suite *killed_suite(void);

#endif
