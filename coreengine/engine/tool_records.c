/* Records of tools by their keys, a bounded number of them: a new one takes the place of those not used for longest. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/engine/health_internal.h"

const struct tool_record *engine_tool_records_find(const struct tool_records *r, const char *key)
{
    int at = rv_index_get(&r->index, rv_str_of(key));

    return at < 0 ? NULL : r->items[at];
}

static void free_record(struct tool_record *t)
{
    if (t)
        free(t->name);
    free(t);
}

static int by_use(const void *a, const void *b)
{
    uint64_t x = (*(struct tool_record *const *)a)->used, y = (*(struct tool_record *const *)b)->used;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* Drop the half that was not used for longest. An index cannot forget a key: it is made again. False: no memory, and
 * all are dropped. */
static bool drop_half(struct tool_records *r)
{
    size_t kept = r->n / 2;
    bool ok = true;

    qsort(r->items, r->n, sizeof(struct tool_record *), by_use);
    while (r->n > kept)
        free_record(r->items[--r->n]);
    rv_index_fini(&r->index);
    for (size_t i = 0; i < r->n && ok; i++)
        ok = rv_index_add(&r->index, rv_str_of(r->items[i]->key), (int)i) == 0;
    if (!ok)
        engine_tool_records_fini(r);
    return ok;
}

struct tool_record *engine_tool_records_take(struct tool_records *r, const char *key, const char *name)
{
    int at = rv_index_get(&r->index, rv_str_of(key));

    if (at >= 0) {
        r->items[at]->used = ++r->n_uses;
        return r->items[at];
    }
    if (r->n >= RV_ENGINE_MAX_TOOLS && !drop_half(r))
        return NULL;
    struct tool_record *t = calloc(1, sizeof *t);
    if (!t || !(t->name = rv_str_dup(rv_str_of(name))) ||
        !rv_has_room(&r->items, &r->cap, r->n + 1, sizeof *r->items)) {
        free_record(t);
        return NULL;
    }
    snprintf(t->key, sizeof t->key, "%s", key);
    t->used = ++r->n_uses;
    if (rv_index_add(&r->index, rv_str_of(t->key), (int)r->n) < 0) {
        free_record(t);
        return NULL;
    }
    r->items[r->n++] = t;
    return t;
}

void engine_tool_records_fini(struct tool_records *r)
{
    for (size_t i = 0; i < r->n; i++)
        free_record(r->items[i]);
    free(r->items);
    rv_index_fini(&r->index);
    *r = (struct tool_records){.n_uses = r->n_uses};
}
