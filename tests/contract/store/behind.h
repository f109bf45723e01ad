/* The tables behind a store, for what its functions cannot do: damage, statistics, plans. */
#ifndef RV_TESTS_STORE_BEHIND_H
#define RV_TESTS_STORE_BEHIND_H

#include "tests/contract/store/world.h"

/** Run statements on the store's tables, with a connection of their own. A store in memory has no other connection:
 * nothing happens.
 * @return the rows as text, "|" between columns, a line for each; free() it */
char *world_sql(struct world *w, const char *sql);

#endif
