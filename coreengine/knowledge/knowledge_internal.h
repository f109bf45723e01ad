/* Shared by the files of this module: a query under way, and what it found. */
#ifndef RV_KNOWLEDGE_INTERNAL_H
#define RV_KNOWLEDGE_INTERNAL_H

#include "coreengine/knowledge/knowledge.h"

enum knowledge_fault {
#define X(name, word, code, meaning) RV_KNOWLEDGE_##name,
    RV_KNOWLEDGE_FAULTS(X)
#undef X
};
const char *knowledge_asking_fault_text(enum knowledge_fault fault); /* results.c */

/* A query that is answered. All but results and warnings is borrowed. */
struct asking {
    rv_store *store;
    const struct rv_store_scope *scope;
    const struct rv_rem_query *q;
    const struct rv_knowledge_opts *opts;
    struct rv_knowledge_fault *fault;
    json_object *results, *warnings; /* lists; owned */
    size_t bytes;                    /* of the results as JSON */
    bool is_truncated;
};

/* --- results.c --- */
/** Add a result, which it takes on every path. *is_full (may be NULL): it did not fit, and no other will be taken. */
RV_MUST_CHECK int knowledge_asking_add_take(struct asking *a, json_object *result, bool *is_full, rv_err **err);
RV_MUST_CHECK int knowledge_asking_warn(struct asking *a, rv_str text, rv_err **err);

/* --- the modes --- */
RV_MUST_CHECK int knowledge_asking_look_up(struct asking *a, rv_err **err);
RV_MUST_CHECK int knowledge_asking_traverse(struct asking *a, rv_err **err);
RV_MUST_CHECK int knowledge_asking_sql(struct asking *a, rv_err **err);

#endif
