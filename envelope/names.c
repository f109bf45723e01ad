/* Interned names: one copy of each stage name and key, found by a seeded hash. */
#include "envelope/envelope_internal.h"

#include <stdlib.h>
#include <string.h>

#define MIX        UINT64_C(0x9E3779B97F4A7C15)
#define MAX_QUOTED 64 /* bytes of an offending name that a message repeats */

static uint64_t hash_of(uint64_t seed, rv_str s)
{
    uint64_t h = seed ^ (s.len * MIX);
    size_t i = 0;

    for (; i + 8 <= s.len; i += 8) {
        uint64_t word;

        memcpy(&word, s.ptr + i, 8);
        h = (h ^ word) * MIX;
        h ^= h >> 29;
    }
    for (; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * MIX;
    return h ^ h >> 32;
}

static const struct rv_name *find(const struct rv_names *names, uint64_t hash, rv_str s)
{
    if (names->cap == 0)
        return NULL;
    for (size_t i = hash & (names->cap - 1);; i = (i + 1) & (names->cap - 1)) {
        const struct rv_name *name = names->slots[i];

        if (!name)
            return NULL;
        if (name->hash == hash && name->len == s.len && (s.len == 0 || memcmp(name->text, s.ptr, s.len) == 0))
            return name;
    }
}

static void place(struct rv_name **slots, size_t cap, struct rv_name *name)
{
    size_t i = name->hash & (cap - 1);

    while (slots[i])
        i = (i + 1) & (cap - 1);
    slots[i] = name;
}

static int make_room(struct rv_names *names, rv_err **err)
{
    size_t cap = names->cap ? names->cap * 2 : 32;
    struct rv_name **slots;

    if (names->n >= RV_MAX_NAMES)
        return RV_FAIL(err, RV_E_LIMIT, "more than %zu different names and keys in one envelope", RV_MAX_NAMES);
    if ((names->n + 1) * 2 <= names->cap)
        return 0;
    slots = calloc(cap, sizeof *slots);
    if (!slots)
        return RV_FAIL(err, RV_E_NOMEM, "grow the name table");
    for (size_t i = 0; i < names->cap; i++)
        if (names->slots[i])
            place(slots, cap, names->slots[i]);
    free(names->slots);
    names->slots = slots;
    names->cap = cap;
    return 0;
}

/* The seed of a whole family: a fork hashes as its parent does, so one hash serves both tables. */
static uint64_t seed_of(const rv_envelope *env)
{
    return env->parent ? env->parent->names.seed : env->names.seed;
}

static const struct rv_name *find_in_family(const rv_envelope *env, uint64_t hash, rv_str text)
{
    const struct rv_name *name = env->parent ? find(&env->parent->names, hash, text) : NULL;

    return name ? name : find(&env->names, hash, text);
}

const struct rv_name *rv_env_name(const rv_envelope *env, rv_str text)
{
    return find_in_family(env, hash_of(seed_of(env), text), text);
}

int rv_env_intern(rv_envelope *env, rv_str text, const char *what, const struct rv_name **out, rv_err **err)
{
    uint64_t hash = hash_of(seed_of(env), text);
    const struct rv_name *known = find_in_family(env, hash, text);
    struct rv_name *name;
    int rc;

    if (known) {
        *out = known;
        return 0;
    }
    if (text.len > 0 && (memchr(text.ptr, 0, text.len) || !rv_utf8_valid(text, NULL))) {
        rv_str quoted = rv_utf8_cut(text, MAX_QUOTED);

        return RV_FAIL(err, RV_E_INVALID, "%s \"%.*s\" is not UTF-8 text without NUL", what, RV_STR_ARG(quoted));
    }
    rc = make_room(&env->names, err);
    if (rc < 0)
        return rc;
    name = malloc(sizeof *name + text.len + 1);
    if (!name)
        return RV_FAIL(err, RV_E_NOMEM, "keep %s", what);
    name->hash = hash;
    name->len = text.len;
    if (text.len > 0)
        memcpy(name->text, text.ptr, text.len);
    name->text[text.len] = '\0';
    place(env->names.slots, env->names.cap, name);
    env->names.n++;
    *out = name;
    return 0;
}

void rv_names_fini(struct rv_names *names)
{
    for (size_t i = 0; i < names->cap; i++)
        free(names->slots[i]);
    free(names->slots);
    *names = (struct rv_names){0};
}
