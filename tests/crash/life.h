/* The life of one run in a store of its own: begun, killed where its plan says, recovered, answered, ended; and what
 * is to be said of it afterwards. */
#ifndef RV_TESTS_CRASH_LIFE_H
#define RV_TESTS_CRASH_LIFE_H

#include "tests/crash/process.h"
#include "tests/kit/kit.h"

#define LIFE_MAX_DEATHS 3

struct setting {
    const char *reeve, *shim, *capabilities, *pipeline, *script;
    const char *aside;                    /* another pipeline, whose run is there to be deleted */
    const struct rv_kit_postgres *server; /* for the stores; NULL: they are files */
};

/* What the uninterrupted life left. */
struct verdict {
    json_object *state;     /* owned; of the end, without what depends on time */
    char *effects;          /* owned; the outside world, lines "tool<TAB>key<TAB>what" */
    json_object *artifacts; /* owned; as the store lists them */
};
void verdict_fini(struct verdict *v);
/** Is this life as good as that one? Else why is told. */
bool verdict_agrees(const struct verdict *life, const struct verdict *model, rv_buf *why);
/** Does the outside world have such a line? */
bool effects_have(const char *effects, const char *tool, const char *key, const char *what);

struct life {
    const struct setting *setting;
    struct death deaths[LIFE_MAX_DEATHS]; /* of its processes, in order; at 0: counts only */
    size_t n_deaths;
    bool collects; /* its second process is a gc that deletes another run */
    /* Told by life_live(). */
    size_t n_processes; /* that changed the store */
    size_t n_killed;
    long counts[LIFE_MAX_DEATHS]; /* operations of each that ended by itself; else -1 */
    size_t n_unknown;             /* questions whether a call had happened */
    size_t n_half_made;           /* stores in which nothing could be read yet */
    struct verdict verdict;
};
/** False: it did not come to its end, or did and something is wrong with what it left; why is told. */
bool life_live(struct life *life, rv_buf *why);

#endif
