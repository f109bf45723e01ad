/* What the tests of entities share: rows as text in and out. */
#ifndef RV_TESTS_STORE_ENTITIES_H
#define RV_TESTS_STORE_ENTITIES_H

#include "coreengine/conversation/conversation.h"
#include "tests/contract/store/world.h"

/** A tree of that text. */
json_object *tree(const char *json);
/** Write one row; the caller's. */
json_object *put_one(struct world *w, const struct rv_store_scope *scope, const char *kind, const char *row,
                     int64_t now_us);
/** The same with whatever code. */
int try_put(struct world *w, const struct rv_store_scope *scope, const char *kind, const char *row, int64_t now_us);
/** The member of a row as JSON text, borrowed until the next call. */
const char *member(json_object *row, const char *name);
/** "kind:name/user ..." of what a lookup finds. */
void looks_up(struct world *w, const struct rv_store_scope *scope, const char *key, const char *want, int line);
#define LOOKS_UP(scope, key, want) looks_up(w, (scope), (key), (want), __LINE__)
/** Names of what a find gives, in order. */
void finds_names(struct world *w, const struct rv_store_scope *scope, const char *kind,
                 const struct rv_entity_filter *filter, const char *want, int line);
#define FINDS_NAMES(scope, kind, filter, want) finds_names(w, (scope), (kind), (filter), (want), __LINE__)

extern const struct rv_store_scope ada, bob, unowned, elsewhere; /* elsewhere: ada of another tenant */

#endif
