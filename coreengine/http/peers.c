/* Who is connected, and how often: a table of how many connections each address has. */
#include "coreengine/http/http_internal.h"

#include <stdlib.h>

#define N_BUCKETS 4096 /* lists of peers: some entries each at the most connections */

struct peer_count {
    struct peer_count *next;
    struct rv_address key; /* of an IPv6 address the first half: who has one address has 2^64 */
    size_t n;
};
struct rv_peers {
    uint64_t seed;                         /* of the hash, which clients must not guess */
    struct peer_count *buckets[N_BUCKETS]; /* owned */
};

struct rv_peers *httpd_peers_new(uint64_t seed)
{
    struct rv_peers *t = calloc(1, sizeof *t);

    if (t)
        t->seed = seed;
    return t;
}

void httpd_peers_free(struct rv_peers *t)
{
    for (size_t i = 0; t && i < N_BUCKETS; i++)
        while (t->buckets[i]) {
            struct peer_count *next = t->buckets[i]->next;
            free(t->buckets[i]);
            t->buckets[i] = next;
        }
    free(t);
}

static struct rv_address key_of(const struct rv_address *p)
{
    struct rv_address key = *p;

    if (!rv_address_is_v4(p))
        memset(key.bytes + 8, 0, 8);
    return key;
}

/* The place of the pointer to the entry of key, or where one is to be put. */
static struct peer_count **find(struct rv_peers *t, const struct rv_address *key)
{
    uint64_t h = rv_fnv_add(t->seed, (rv_str){(const char *)key->bytes, sizeof key->bytes});

    h ^= h >> 29;
    struct peer_count **at = &t->buckets[h % N_BUCKETS];
    while (*at && memcmp((*at)->key.bytes, key->bytes, sizeof key->bytes) != 0)
        at = &(*at)->next;
    return at;
}

int httpd_peers_add(struct rv_peers *t, const struct rv_address *p, size_t max)
{
    struct rv_address key = key_of(p);
    struct peer_count **at = find(t, &key);

    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at)
            return RV_E_NOMEM;
        (*at)->key = key;
    }
    if (max > 0 && (*at)->n >= max)
        return RV_E_LIMIT;
    (*at)->n++;
    return 0;
}

void httpd_peers_remove(struct rv_peers *t, const struct rv_address *p)
{
    struct rv_address key = key_of(p);
    struct peer_count **at = find(t, &key), *gone = *at;

    if (gone && --gone->n == 0) {
        *at = gone->next;
        free(gone);
    }
}
