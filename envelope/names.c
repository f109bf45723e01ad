/* Interned names, one copy of each stage name and key, found by a seeded hash; and maps from them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope_internal.h"

#define MAX_QUOTED 64 /* bytes of an offending name that a message repeats: it stays on one line of a terminal */

static uint64_t hash_of(uint64_t seed, rv_str s)
{
    uint64_t h = seed ^ (s.len * RV_GOLDEN);
    size_t i = 0;

    for (; i + 8 <= s.len; i += 8) {
        uint64_t word;

        memcpy(&word, s.ptr + i, 8);
        h = (h ^ word) * RV_GOLDEN;
        h ^= h >> 29;
    }
    for (; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * RV_GOLDEN;
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

/* A fork hashes as its parent does, so one hash serves the tables of a whole family. A text has one name in it. */
static const struct rv_name *find_in_family(const rv_envelope *env, uint64_t hash, rv_str text)
{
    const struct rv_name *name = NULL;

    for (; env && !name; env = env->parent)
        name = find(&env->names, hash, text);
    return name;
}

/* The name that is asked for most: the current stage's. */
static bool is_stage(const rv_envelope *env, rv_str text)
{
    return env->stage && env->stage->len == text.len && text.len > 0 &&
           memcmp(env->stage->text, text.ptr, text.len) == 0;
}

const struct rv_name *env_name(const rv_envelope *env, rv_str text)
{
    return is_stage(env, text) ? env->stage : find_in_family(env, hash_of(env->names.seed, text), text);
}

const struct rv_name *env_name_like(const rv_envelope *env, const struct rv_name *name)
{
    return find_in_family(env, name->hash, (rv_str){name->text, name->len});
}

int env_intern(rv_envelope *env, rv_str text, const char *what, const struct rv_name **out, rv_err **err)
{
    if (is_stage(env, text)) {
        *out = env->stage;
        return 0;
    }
    uint64_t hash = hash_of(env->names.seed, text);
    struct rv_name *name;
    int rc;

    *out = find_in_family(env, hash, text);
    if (*out)
        return 0;
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

void env_names_fini(struct rv_names *names)
{
    for (size_t i = 0; i < names->cap; i++)
        free(names->slots[i]);
    free(names->slots);
    *names = (struct rv_names){0};
}

/* --- Maps from interned names to values or counts: insertion order, constant time, removal without allocation. Of a
 * small one the entries are compared one by one: most maps of a fork hold one or two. --- */

#define MIN_CAP 8 /* up to here there is no index: comparing 8 keys is as fast as hashing one */

static size_t home(const struct rv_map *m, const struct rv_name *name, const struct rv_name *to)
{
    uint64_t h = name->hash;

    if (to) {
        h = (h ^ to->hash << 1) * RV_GOLDEN;
        h ^= h >> 32;
    }
    return (size_t)h & (2 * m->cap - 1);
}

static void index_entry(struct rv_map *m, size_t i)
{
    if (!m->index)
        return;
    size_t mask = 2 * m->cap - 1;
    size_t at = home(m, m->entries[i].name, m->entries[i].to);

    while (m->index[at])
        at = (at + 1) & mask;
    m->index[at] = (uint32_t)(i + 1);
}

/* Move the entries that are not dead to `to` (which may be m->entries) and rebuild the index. */
static void pack(struct rv_map *m, struct rv_entry *to)
{
    size_t n = 0;

    if (m->index)
        memset(m->index, 0, 2 * m->cap * sizeof *m->index);
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].kind != RV_ENTRY_DEAD)
            to[n++] = m->entries[i];
    if (to != m->entries)
        free(m->entries);
    m->entries = to;
    m->n = n;
    m->n_dead = 0;
    for (size_t i = 0; i < n; i++)
        index_entry(m, i);
}

int map_reserve(struct rv_map *m, size_t extra, rv_err **err)
{
    size_t kept = m->n - m->n_dead;
    size_t cap = m->cap ? m->cap : MIN_CAP;
    struct rv_entry *entries;
    uint32_t *index = NULL;

    if (m->n + extra <= m->cap)
        return 0;
    if (m->n_dead >= m->cap / 2 && kept + extra <= m->cap) {
        pack(m, m->entries);
        return 0;
    }
    if (extra > RV_MAX_NAMES * 4 || kept + extra > RV_MAX_NAMES * 4)
        return RV_FAIL(err, RV_E_LIMIT, "more than %zu entries in one map of the envelope", RV_MAX_NAMES * 4);
    while (cap < kept + extra || cap == m->cap)
        cap *= 2;
    entries = malloc(cap * sizeof *entries);
    if (entries && cap > MIN_CAP)
        index = malloc(2 * cap * sizeof *index);
    if (!entries || (!index && cap > MIN_CAP)) {
        free(entries);
        free(index);
        return RV_FAIL(err, RV_E_NOMEM, "grow a map of the envelope");
    }
    free(m->index);
    m->index = index;
    m->cap = cap;
    pack(m, entries);
    return 0;
}

static struct rv_entry *find_by_scan(const struct rv_map *m, const struct rv_name *name, const struct rv_name *to)
{
    for (size_t i = 0; i < m->n; i++) {
        struct rv_entry *e = &m->entries[i];

        if (e->name == name && e->to == to && e->kind != RV_ENTRY_DEAD)
            return e;
    }
    return NULL;
}

struct rv_entry *env_map_find(const struct rv_map *m, const struct rv_name *name, const struct rv_name *to)
{
    if (m->n == m->n_dead)
        return NULL;
    if (!m->index)
        return find_by_scan(m, name, to);
    for (size_t at = home(m, name, to);; at = (at + 1) & (2 * m->cap - 1)) {
        struct rv_entry *e;

        if (!m->index[at])
            return NULL;
        e = &m->entries[m->index[at] - 1];
        if (e->name == name && e->to == to && e->kind != RV_ENTRY_DEAD)
            return e;
    }
}

struct rv_entry *map_put(struct rv_map *m, const struct rv_name *name, const struct rv_name *to)
{
    struct rv_entry *e = env_map_find(m, name, to);

    if (!e) {
        assert(m->n < m->cap);
        e = &m->entries[m->n];
        *e = (struct rv_entry){.name = name, .to = to, .kind = RV_ENTRY_GONE};
        index_entry(m, m->n++);
    }
    if (e->kind == RV_ENTRY_GONE) {
        e->kind = RV_ENTRY_LIVE;
        m->n_live++;
    }
    return e;
}

void map_put_ref(struct rv_map *m, const struct rv_name *name, json_object *value)
{
    struct rv_entry *e = map_put(m, name, NULL);
    json_object *old = e->value;

    e->value = json_object_get(value);
    json_object_put(old);
}

void map_drop(struct rv_map *m, struct rv_entry *e)
{
    if (!e)
        return;
    json_object_put(e->value);
    e->value = NULL;
    if (e->kind == RV_ENTRY_LIVE)
        m->n_live--;
    e->kind = RV_ENTRY_DEAD;
    m->n_dead++;
}

void map_hide(struct rv_map *m, const struct rv_name *name)
{
    struct rv_entry *e = map_put(m, name, NULL);

    json_object_put(e->value);
    e->value = NULL;
    e->kind = RV_ENTRY_GONE;
    m->n_live--;
}

void map_clear(struct rv_map *m)
{
    for (size_t i = 0; i < m->n; i++)
        json_object_put(m->entries[i].value);
    if (m->index)
        memset(m->index, 0, 2 * m->cap * sizeof *m->index);
    m->n = m->n_live = m->n_dead = 0;
}

void env_map_fini(struct rv_map *m)
{
    map_clear(m);
    free(m->entries);
    free(m->index);
    *m = (struct rv_map){0};
}
