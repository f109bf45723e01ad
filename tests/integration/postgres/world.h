/* What the tests of PostgreSQL share: a store in a schema of its own, and what is in it. */
#ifndef RV_TESTS_POSTGRES_WORLD_H
#define RV_TESTS_POSTGRES_WORLD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"

#define T0 INT64_C(1700000000000000)

struct world {
    const struct rv_kit_postgres *server;
    char *url;   /* of the schema */
    rv_store *s; /* a handle on it, past any proxy */
    char bundle[RV_STORE_HASH_MAX];
    rv_err *err;
};
/** server NULL: the program's. */
void world_open(struct world *w, const struct rv_kit_postgres *server);
void world_close(struct world *w);
/** Open by another address: the URL with "host" replaced. */
rv_store *world_by(struct world *w, const char *folder, const struct rv_store_opts *opts);

void must_ok(struct world *w, int rc, const char *what, int line);
/** The code, and a link of the chain that says part; a hint of the chain that says hint (NULL: any). */
void must_fail(struct world *w, int rc, int code, const char *part, const char *hint, int line);
#define OK(call)                      must_ok(w, (call), #call, __LINE__)
#define FAILS(code, part, hint, call) must_fail(w, (call), (code), (part), (hint), __LINE__)

extern const struct rv_store_scope operator_scope;

/** A run of user "u" in session "s", owned by "A", with one record. */
int world_create(struct world *w, rv_store *s, const char *id, rv_err **err);
/** Append n records behind record `seq` of the run. */
int world_append(rv_store *s, const char *run, int64_t fence, int64_t seq, int n, rv_err **err);
/** How many records a run has, checked to be 1, 2, 3, ... with their own texts; -1: there is no run. */
int64_t world_count(struct world *w, const char *run);

Suite *lost_suite(void);
Suite *server_suite(void);
Suite *values_suite(void);
Suite *address_suite(void);
Suite *schema_suite(void);
Suite *listen_suite(void);

#endif
