/* Text to index: open addressing, linear probing, at most three quarters full, powers of two. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base_internal.h"

#define FIRST_SLOTS 16 /* a power of two */

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
    uint64_t h = rv_fnv_add(RV_FNV_START, key);

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

/* --- "Did you mean": edit distance with swaps, case ignored --- */

#define MAX_NAME 64 /* bytes: longer names are not typed by hand, and the time grows with the square */

/* Insertions, deletions, replacements and swaps of neighbours each count one. */
static unsigned distance(rv_str a, rv_str b)
{
    unsigned rows[3][MAX_NAME + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    size_t i, j;

    for (j = 0; j <= b.len; j++)
        above[j] = (unsigned)j;
    for (i = 1; i <= a.len; i++) {
        unsigned *spare = before;
        row[0] = (unsigned)i;
        for (j = 1; j <= b.len; j++) {
            bool same = rv_ascii_lower(a.ptr[i - 1]) == rv_ascii_lower(b.ptr[j - 1]);
            unsigned d = above[j - 1] + (same ? 0 : 1);
            if (above[j] + 1 < d)
                d = above[j] + 1;
            if (row[j - 1] + 1 < d)
                d = row[j - 1] + 1;
            if (i > 1 && j > 1 && rv_ascii_lower(a.ptr[i - 1]) == rv_ascii_lower(b.ptr[j - 2]) &&
                rv_ascii_lower(a.ptr[i - 2]) == rv_ascii_lower(b.ptr[j - 1]) && before[j - 2] + 1 < d)
                d = before[j - 2] + 1;
            row[j] = d;
        }
        before = above;
        above = row;
        row = spare;
    }
    return above[b.len];
}

const char *rv_nearest(rv_str name, const char *const *names, size_t n)
{
    const char *best = NULL;
    unsigned best_distance = 0;
    size_t i;

    if (name.len == 0 || name.len > MAX_NAME)
        return NULL;
    for (i = 0; i < n; i++) {
        rv_str candidate = rv_str_of(names[i]);
        size_t longer = candidate.len > name.len ? candidate.len : name.len;
        size_t limit = (longer + 1) / 3; /* a third of the letters may be wrong; beyond that it is another word */
        unsigned d;
        if (candidate.len == 0 || candidate.len > MAX_NAME)
            continue;
        d = distance(name, candidate);
        if (d <= limit && (!best || d < best_distance)) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}
