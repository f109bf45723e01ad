/* Servers of PostgreSQL for tests: a private one of its own for each test program, without a password and without
 * waiting for the disk, that ends with the program. Needs Debian's package "postgresql". */
#ifndef RV_TESTS_KIT_POSTGRES_H
#define RV_TESTS_KIT_POSTGRES_H

#include <stdbool.h>
#include <sys/types.h>

struct rv_kit_postgres {
    char *dir;       /* of its data and its socket */
    char *url;       /* "postgres:///postgres?host=...&user=reeve" */
    char socket[64]; /* the path of its socket */
    pid_t pid;       /* of the postmaster, a child; 0: stopped */
    bool waits_for_disk;
};
/** Make a cluster, and start a server on it. */
void rv_kit_postgres_start(struct rv_kit_postgres *pg);
/** The same files once more, after _stop. As _start: returns when it answers. */
void rv_kit_postgres_restart(struct rv_kit_postgres *pg);
/** SIGTERM waits for clients, SIGINT ends them, SIGQUIT leaves recovery to the next start, SIGKILL is a crash (its
 * children are killed, too). Returns when it is gone. */
void rv_kit_postgres_stop(struct rv_kit_postgres *pg, int signal);
/** Stop it and delete its files. */
void rv_kit_postgres_end(struct rv_kit_postgres *pg);

/** One for the whole program: call this in main(), before Check forks. It ends with the program. */
const struct rv_kit_postgres *rv_kit_postgres(void);
/** The URL of a schema that no other test of the program uses; free() it. */
char *rv_kit_postgres_url(const struct rv_kit_postgres *pg);
/** The test that had this URL has passed and closed its stores: empty the schema, so that another test may get it,
 * which is faster than making its tables. A store with the schema "fresh" must have been opened before. */
void rv_kit_postgres_reuse(const struct rv_kit_postgres *pg, const char *url);
/** Run SQL as the superuser with psql, and return what it prints ("|" between columns, without headers); free() it. */
char *rv_kit_postgres_sql(const struct rv_kit_postgres *pg, const char *sql);

#endif
