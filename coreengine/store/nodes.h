/* The part of the store for walks over edges: many names at once, with the edges of what they mean. */
#ifndef RV_STORE_NODES_H
#define RV_STORE_NODES_H

#include "coreengine/store/entities.h"

/* The row that a name refers to in a scope: the first one that rv_store_lookup() gives. */
struct rv_key_node {
    struct rv_key_hit hit;
    rv_str metadata, edges; /* JSON as it is kept: an object, a list; empty: none */
};
#define RV_NODES_MAX 1000 /* keys of one call */
/** Read what normalised keys mean, in one statement. Only names are looked at; UUIDs and keys of messages are for
 * rv_store_lookup(). Keys that mean nothing to the scope are passed over.
 *  @param keys  1..RV_NODES_MAX, each at most RV_ENTITY_MAX_NAME bytes, none twice
 *  @param each  borrows node; in the order of the keys. It returns 0, RV_STORE_ENOUGH to end well, or a code that is
 *               passed on */
RV_MUST_CHECK int rv_store_read_nodes(rv_store *s, const struct rv_store_scope *scope, const rv_str *keys,
                                      size_t n_keys,
                                      int (*each)(void *self, const struct rv_key_node *node, rv_err **err), void *self,
                                      rv_err **err);

#endif
