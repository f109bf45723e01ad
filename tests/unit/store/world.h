/* What the tests of the SQLite store share: a folder, a file in it, ways to break both. */
#ifndef RV_TESTS_STORE_FILE_WORLD_H
#define RV_TESTS_STORE_FILE_WORLD_H

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store.h"
#include "tests/kit/kit.h"

#define T0 INT64_C(1700000000000000)

struct world {
    char *dir, *path; /* of the file */
    rv_store *s;
    char bundle[RV_STORE_HASH_MAX];
    rv_err *err;
};
/** A folder, and a store in it with a run "r1" of user "u", owned by "A", that has n records with values of 2,000 bytes
 *  each. n negative: the folder alone. */
void world_open(struct world *w, int64_t n);
/** The second half of that, in a folder that was changed meanwhile. */
void world_begin(struct world *w, int64_t n);
void world_close(struct world *w); /* the store, if it is still open, and the folder */

int world_store(struct world *w, const char *path, const struct rv_store_opts *opts, rv_store **out);
/** Append one record to r1. value_len: of bytes that no other record has. */
int world_append(struct world *w, rv_store *s, int64_t seq, size_t value_len);
/** How many records of r1 can be read; negative: the code. */
int64_t world_count(struct world *w, rv_store *s);

void must_ok(struct world *w, int rc, const char *what, int line);
/** The code, and a link of the chain that says part, and (unless NULL) a hint that does. Forgets the error. */
void must_fail(struct world *w, int rc, int code, const char *part, const char *hint, int line);
#define OK(call)                      must_ok(w, (call), #call, __LINE__)
#define FAILS(code, part, hint, call) must_fail(w, (call), (code), (part), (hint), __LINE__)

/** The bytes of a file, and a file of those bytes. */
rv_buf world_read(const char *path);
void world_write(const char *path, rv_str bytes);
/** Run SQL on the file, with a connection of its own. */
void world_sql(const char *path, const char *sql);
/** Do as an ordinary user would: the super-user may write everywhere. The folder becomes that user's. */
void world_drop_root(struct world *w);
void world_regain_root(void);

Suite *file_suite(void);
Suite *schema_suite(void);
Suite *damage_suite(void);
Suite *disk_suite(void);
Suite *locks_suite(void);
Suite *sessions_suite(void);
Suite *tasks_suite(void);
Suite *memory_suite(void);
Suite *writer_suite(void);
Suite *power_suite(void);

extern const struct rv_store_scope operator_scope;
extern const struct rv_store_opts quick; /* nothing is synced, and locks are waited for 50 ms */

#endif
