/* What is done while the connection breaks, for test_lost.c. */
#ifndef RV_TESTS_POSTGRES_LOST_H
#define RV_TESTS_POSTGRES_LOST_H

#include "tests/integration/postgres/proxy.h"
#include "tests/integration/postgres/world.h"

struct scene {
    struct world world;
    struct proxy *proxy;
    rv_store *s; /* by the proxy */
    int n;       /* the write to be done, from 1 */
};
/* A kind of write: made ready past the proxy, done by it, checked past it. */
struct kind {
    const char *name;
    void (*make)(struct scene *sc);
    int (*write)(struct scene *sc, rv_err **err);
    void (*check)(struct scene *sc);
};
enum { N_APP_KINDS = 3 };
extern const struct kind app_kinds[N_APP_KINDS]; /* groups of the application */

void name_of(char name[20], const char *kind, int n);
void no_more(struct scene *sc);
void make_session(struct scene *sc);            /* "session1" and so on, of user "u" */
int do_session(struct scene *sc, rv_err **err); /* two messages in it */

#endif
