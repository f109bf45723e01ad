/* How often names did something of late. A name has one number, the time when all that it did will have been made up
 * for at its rate; it may be ahead of now by one minute's worth. Memory is fixed: a name has a few places where it may
 * be, and the one of them that was quiet for longest gives way. Where names go is drawn at the start, so that callers
 * cannot choose names that push out others. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/identity/identity_internal.h"

#include "coreengine/base/base.h"

#define N_SETS 2048 /* of slots: 16,384 names are counted in constant memory */
#define N_WAYS 8    /* slots of one set: a new name gets the one that is free first */

struct slot {
    uint64_t name; /* a hash; 0: free */
    int64_t until_us;
};
struct rv_rates {
    unsigned char seed[16];
    pthread_mutex_t lock; /* guards the sets of slots; leaf */
    struct slot sets[N_SETS][N_WAYS];
};

int identity_rates_new(struct rv_rand rand, rv_rates **out, rv_err **err)
{
    rv_rates *r = calloc(1, sizeof *r);

    if (!r)
        return RV_FAIL(err, RV_E_NOMEM, "make room for rates");
    pthread_mutex_init(&r->lock, NULL);
    rand.fill(rand.self, r->seed, sizeof r->seed);
    *out = r;
    return 0;
}

void identity_rates_free(rv_rates *r)
{
    if (r)
        pthread_mutex_destroy(&r->lock);
    free(r);
}

static uint64_t hash_of(const rv_rates *r, const char *kind, const char *name)
{
    char hex[RV_HASH_MAX];
    struct rv_hash h;
    uint64_t value = 0;

    rv_hash_init(&h);
    rv_hash_add(&h, (rv_str){(const char *)r->seed, sizeof r->seed});
    rv_hash_add(&h, (rv_str){kind, strlen(kind) + 1});
    rv_hash_add(&h, rv_str_of(name));
    rv_hash_finish_hex(&h, hex);
    for (int i = 0; i < 16; i++)
        value = value << 4 | (uint64_t)rv_hex_digit(hex[i]);
    return value ? value : 1;
}

/* Where the name is, or may be put: the place of its set that is free first. */
static struct slot *slot_of(rv_rates *r, uint64_t name)
{
    struct slot *set = r->sets[name % N_SETS], *best = set;

    for (int i = 0; i < N_WAYS; i++) {
        if (set[i].name == name)
            return &set[i];
        if (set[i].until_us < best->until_us)
            best = &set[i];
    }
    return best;
}

static int64_t ask_slot(rv_rates *r, uint64_t hash, int64_t per_minute, int64_t now_us, bool counts)
{
    struct slot *s = slot_of(r, hash);
    int64_t step = RV_US_PER_MIN / per_minute, until = s->name == hash ? s->until_us : 0;

    if (until < now_us)
        until = now_us;
    if (until > now_us + RV_US_PER_MIN) /* the clock went back, or the limit changed */
        until = now_us + RV_US_PER_MIN;
    int64_t wait = until + step - now_us - step * per_minute;
    if (wait > 0)
        return wait;
    if (counts)
        *s = (struct slot){hash, until + step};
    return 0;
}

static int64_t ask(rv_rates *r, const char *kind, const char *name, int64_t per_minute, int64_t now_us, bool counts)
{
    uint64_t hash = hash_of(r, kind, name);

    pthread_mutex_lock(&r->lock);
    int64_t wait = ask_slot(r, hash, per_minute, now_us, counts);
    pthread_mutex_unlock(&r->lock);
    return wait;
}

int64_t identity_rates_take(rv_rates *r, const char *kind, const char *name, int64_t per_minute, int64_t now_us)
{
    return ask(r, kind, name, per_minute, now_us, true);
}

int64_t identity_rates_look(rv_rates *r, const char *kind, const char *name, int64_t per_minute, int64_t now_us)
{
    return ask(r, kind, name, per_minute, now_us, false);
}
