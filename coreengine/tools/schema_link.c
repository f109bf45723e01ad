/* References of a compiled schema: "#" or "#/..." to any schema of the same document. A chain of references (and of
 * allOf, anyOf, oneOf, not, which look at the same value) that leads back to itself would never end and is refused;
 * recursion through properties or items is fine, because the value ends. */
#include "coreengine/tools/schema_internal.h"

#include <string.h>

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch = (char)(ch | 0x20);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* The pointer of a "#..." reference, percent escapes undone; in the arena. It begins at the schema with the next $id.
 */
static char *pointer_of_ref(struct rv_schema_compiler *c, const struct rv_schema_node *n)
{
    size_t n_base = strlen(n->base), len = strlen(n->ref + 1);
    char *whole = rv_arena_alloc(c->schema->arena, n_base + len + 1);
    char *from, *to;

    if (!whole)
        return NULL;
    memcpy(whole, n->base, n_base);
    memcpy(whole + n_base, n->ref + 1, len);
    from = to = whole + n_base;
    while (*from) {
        int hi = from[0] == '%' ? hex_digit(from[1]) : -1;
        int lo = hi >= 0 ? hex_digit(from[2]) : -1;
        if (lo >= 0 && (hi || lo)) {
            *to++ = (char)(hi * 16 + lo);
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return whole;
}

static void hint_nearest(struct rv_schema_compiler *c, const char *pointer)
{
    const char *best = NULL;
    size_t i;

    /* One candidate at a time keeps this free of memory; the last good one is as good as any. */
    for (i = 0; i < c->n_nodes; i++) {
        const char *candidates[2] = {c->nodes[i]->pointer, best};
        const char *near = rv_nearest(rv_str_of(pointer), candidates, best ? 2 : 1);
        if (near)
            best = near;
    }
    if (best)
        rv_err_hint(c->err, "did you mean \"#%s\"?", best);
}

/* The schema whose $id or $anchor the reference names. NULL: none. */
static struct rv_schema_node *named(struct rv_schema_compiler *c, const struct rv_schema_node *n)
{
    bool is_anchor = n->ref[0] == '#' && n->ref[1] && n->ref[1] != '/';
    size_t len = strlen(n->ref);

    if (!is_anchor && n->ref[0] == '#')
        return NULL;
    if (len > 1 && n->ref[len - 1] == '#')
        len--;
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct rv_schema_node *other = c->nodes[i];
        if (is_anchor ? other->anchor && strcmp(other->anchor, n->ref + 1) == 0 && strcmp(other->base, n->base) == 0
                      : other->id && rv_str_is((rv_str){n->ref, len}, other->id))
            return other;
    }
    return NULL;
}

static int resolve(struct rv_schema_compiler *c, struct rv_schema_node *n)
{
    const char *pointer;
    int i;

    n->target = named(c, n);
    if (n->target)
        return 0;
    if (n->ref[0] != '#') {
        int rc = RV_SCHEMA_FAIL(c, n->pointer, "$ref \"%s\" leads out of the document", n->ref);
        rv_err_hint(c->err, "references look like \"#/$defs/name\"");
        return rc;
    }
    pointer = pointer_of_ref(c, n);
    if (!pointer)
        return rv_schema_nomem(c);
    i = rv_index_get(&c->by_pointer, rv_str_of(pointer));
    if (i < 0) {
        int rc = RV_SCHEMA_FAIL(c, n->pointer, "$ref \"%s\" leads to no schema", n->ref);
        hint_nearest(c, pointer);
        return rc;
    }
    n->target = c->nodes[i];
    return 0;
}

static int find_cycle(struct rv_schema_compiler *c, struct rv_schema_node *n);

static int find_cycle_in(struct rv_schema_compiler *c, const struct rv_schema_list *list)
{
    size_t i;

    for (i = 0; i < list->n; i++) {
        int rc = find_cycle(c, list->items[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Depth first over the edges that keep the value. The recursion is bounded by RV_SCHEMA_MAX_NODES small frames. */
static int find_cycle(struct rv_schema_compiler *c, struct rv_schema_node *n)
{
    int rc = 0;

    if (n->mark == MARK_DONE)
        return 0;
    if (n->mark == MARK_OPEN)
        return RV_SCHEMA_FAIL(c, n->pointer, "refers to itself without end");
    n->mark = MARK_OPEN;
    if (n->target)
        rc = find_cycle(c, n->target);
    struct rv_schema_node *const same[] = {n->not_schema, n->if_schema, n->then_schema, n->else_schema};
    for (size_t i = 0; rc == 0 && i < RV_COUNT(same); i++)
        rc = same[i] ? find_cycle(c, same[i]) : 0;
    for (const struct rv_schema_dependent *d = n->dependents; rc == 0 && d; d = d->next)
        rc = d->schema ? find_cycle(c, d->schema) : 0;
    if (rc == 0)
        rc = find_cycle_in(c, &n->all_of);
    if (rc == 0)
        rc = find_cycle_in(c, &n->any_of);
    if (rc == 0)
        rc = find_cycle_in(c, &n->one_of);
    n->mark = MARK_DONE;
    return rc;
}

int rv_schema_link(struct rv_schema_compiler *c)
{
    size_t i;
    int rc;

    for (i = 0; i < c->n_nodes; i++) {
        if (!c->nodes[i]->ref)
            continue;
        rc = resolve(c, c->nodes[i]);
        if (rc < 0)
            return rc;
    }
    for (i = 0; i < c->n_nodes; i++) {
        rc = find_cycle(c, c->nodes[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}
