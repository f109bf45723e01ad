/* Text to index: open addressing, linear probing, at most three quarters full, powers of two. */
#include "coreengine/base/base_internal.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 16

struct rv_index_slot {
    const char *key; /* borrowed; NULL: free */
    size_t len;
    uint64_t hash;
    int value;
};

/* FNV-1a with a final mix: the low bits choose the slot. Keys are names from config, which is size-capped, so
 * crafted collisions cost a bounded load time and nothing later. */
static uint64_t hash_of(rv_str key)
{
    uint64_t h = 0xcbf29ce484222325u;
    size_t i;

    for (i = 0; i < key.len; i++) {
        h ^= (unsigned char)key.ptr[i];
        h *= 0x100000001b3u;
    }
    return h ^ (h >> 32);
}

/* The slot that holds key, or the free one where it belongs. */
static struct rv_index_slot *probe(struct rv_index_slot *slots, size_t cap, rv_str key, uint64_t hash)
{
    size_t i = (size_t)hash & (cap - 1);

    while (slots[i].key) {
        if (slots[i].hash == hash && slots[i].len == key.len && memcmp(slots[i].key, key.ptr, key.len) == 0)
            break;
        i = (i + 1) & (cap - 1);
    }
    return &slots[i];
}

static int grow(rv_index *ix)
{
    size_t cap = ix->cap ? ix->cap * 2 : FIRST_SLOTS;
    struct rv_index_slot *slots;
    size_t i;

    if (cap > SIZE_MAX / sizeof *slots)
        return RV_E_NOMEM;
    slots = calloc(cap, sizeof *slots);
    if (!slots)
        return RV_E_NOMEM;
    for (i = 0; i < ix->cap; i++) {
        const struct rv_index_slot *old = &ix->slots[i];
        if (old->key)
            *probe(slots, cap, (rv_str){old->key, old->len}, old->hash) = *old;
    }
    free(ix->slots);
    ix->slots = slots;
    ix->cap = cap;
    return 0;
}

int rv_index_add(rv_index *ix, rv_str key, int value)
{
    uint64_t hash;
    struct rv_index_slot *slot;

    if (!key.ptr)
        key = RV_STR_LIT(""); /* NULL marks a free slot */
    hash = hash_of(key);
    if (ix->n >= ix->cap - ix->cap / 4 && grow(ix) < 0)
        return RV_E_NOMEM;
    slot = probe(ix->slots, ix->cap, key, hash);
    if (slot->key)
        return RV_E_EXISTS;
    *slot = (struct rv_index_slot){key.ptr, key.len, hash, value};
    ix->n++;
    return 0;
}

int rv_index_get(const rv_index *ix, rv_str key)
{
    const struct rv_index_slot *slot;

    if (ix->n == 0)
        return -1;
    if (!key.ptr)
        key = RV_STR_LIT("");
    slot = probe(ix->slots, ix->cap, key, hash_of(key));
    return slot->key ? slot->value : -1;
}

void rv_index_fini(rv_index *ix)
{
    free(ix->slots);
    *ix = (rv_index){NULL, 0, 0};
}
