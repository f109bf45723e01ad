/* Arrays that live in an arena. */
#ifndef RV_APP_GROW_H
#define RV_APP_GROW_H

#include <string.h>

#include "coreengine/base/buf.h"

/** Room for one more of n items of `size` bytes: the items themselves, or a copy of twice the room, and *cap with it.
 * NULL: no memory. */
static inline void *rv_app_grow(rv_arena *arena, const void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return (void *)(uintptr_t)items;
    size_t wanted = *cap ? *cap * 2 : 64;
    void *more = rv_arena_alloc(arena, wanted * size);
    if (!more)
        return NULL;
    if (n)
        memcpy(more, items, n * size);
    *cap = wanted;
    return more;
}

#endif
