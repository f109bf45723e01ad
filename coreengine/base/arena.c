/* Arena: blocks in a list, allocation by bumping, freed all at once. */
#include "coreengine/base/base_internal.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* A loaded pipeline takes a handful; a larger request gets a block of its own. */
#define BLOCK_BYTES ((size_t)8 << 10)

struct block {
    struct block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

struct rv_arena {
    struct block *head; /* owned list; the first one is being filled */
    size_t total, max;  /* bytes handed out, and their ceiling */
};

rv_arena *rv_arena_new(size_t max_bytes)
{
    rv_arena *a = calloc(1, sizeof *a);

    if (a)
        a->max = max_bytes;
    return a;
}

void rv_arena_free(rv_arena *a)
{
    struct block *b, *next;

    if (!a)
        return;
    for (b = a->head; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

void *rv_arena_alloc(rv_arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    struct block *b = a->head;
    void *p;

    if (size == 0)
        size = 1; /* distinct pointers */
    if (size > a->max || size > SIZE_MAX - sizeof(struct block) - align)
        return NULL;
    size = (size + align - 1) / align * align;
    if (size > a->max - a->total)
        return NULL;
    if (!b || size > b->size - b->used) {
        size_t want = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        struct block *fresh = calloc(1, sizeof *fresh + want);
        if (!fresh)
            return NULL;
        fresh->size = want;
        if (b && want > BLOCK_BYTES) { /* full from the start: the present block goes on being filled */
            fresh->next = b->next;
            b->next = fresh;
        } else {
            fresh->next = b;
            a->head = fresh;
        }
        b = fresh;
    }
    p = b->bytes + b->used;
    b->used += size;
    a->total += size;
    return p;
}

char *rv_arena_dup(rv_arena *a, rv_str s)
{
    char *copy = s.len < SIZE_MAX ? rv_arena_alloc(a, s.len + 1) : NULL;

    if (copy && s.len)
        memcpy(copy, s.ptr, s.len);
    return copy;
}
