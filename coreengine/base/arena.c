/* Arena: blocks in a list, allocation by bumping, freed all at once. */
#include "coreengine/base/base_internal.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Each block is twice as large as the one before: many arenas stay small, and a loaded pipeline takes a handful of the
 * largest. A larger request gets a block of its own. */
#define FIRST_BLOCK ((size_t)512)
#define BLOCK_BYTES ((size_t)8 << 10)

struct block {
    struct block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

struct rv_arena {
    struct block *head; /* owned list; the first one is being filled */
    size_t total, max;  /* bytes handed out, and their ceiling */
    size_t next_block;  /* bytes of the next one */
};

rv_arena *rv_arena_new(size_t max_bytes)
{
    rv_arena *a = calloc(1, sizeof *a);

    if (a)
        *a = (rv_arena){.max = max_bytes, .next_block = FIRST_BLOCK};
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
        bool is_own = size > BLOCK_BYTES;
        while (a->next_block < size && a->next_block < BLOCK_BYTES)
            a->next_block *= 2;
        size_t want = is_own ? size : a->next_block;
        struct block *fresh = calloc(1, sizeof *fresh + want);
        if (!fresh)
            return NULL;
        fresh->size = want;
        if (!is_own && a->next_block < BLOCK_BYTES)
            a->next_block *= 2;
        if (b && is_own) { /* full from the start: the present block goes on being filled */
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
