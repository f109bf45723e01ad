/* One process under test: started, waited for, its outputs kept; with the shim before it when it is to die. */
#ifndef RV_TESTS_CRASH_PROCESS_H
#define RV_TESTS_CRASH_PROCESS_H

#include <stdint.h>

/* Where a life takes place. */
struct rv_kit_postgres;
struct world {
    const char *dir; /* for what the processes print */
    char *store, *effects;
    const struct rv_kit_postgres *server; /* that has the store in a schema of its own; NULL: the store is a file */
    char schema[64];
    const char *shim;         /* path of the library */
    const char *capabilities; /* REEVE_CAPABILITY_PATH; may be NULL */
};
void world_init(struct world *w, const char *dir, const char *shim, const char *capabilities);
/** The store is a new schema of a server from now on. */
void world_move(struct world *w, const struct rv_kit_postgres *server);
void world_fini(struct world *w);

struct death {
    long at;         /* operation at which the process dies; 0: it does not, and counts */
    const char *how; /* see shim.c */
    uint64_t seed;
};
struct ending {
    int status;      /* of the exit, or minus the signal */
    char *out, *err; /* owned */
    long count;      /* operations, when it was counted and ended by itself; else -1 */
};
/** argv ends with NULL. death NULL: without the shim. A process that hangs is ended by SIGALRM. */
void process_run(const struct world *w, const char *const *argv, const struct death *death, struct ending *out);
void ending_fini(struct ending *e);

#endif
