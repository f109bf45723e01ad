/* References of schemas: each must point into the document. Cycles are allowed: an output can be a tree. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define OLD_PLACE "#/definitions/"
#define NEW_PLACE "#/$defs/"

/* The next part of a JSON pointer, which begins with its slash, with ~1 and ~0 decoded; NULL: out of memory. */
static const char *next_part(struct rv_agentdoc_reading *r, rv_str *pointer)
{
    char *part = rv_arena_dup(r->keys.arena, *pointer);
    size_t i = 1;
    size_t n = 0;

    if (!part) {
        r->keys.rc = RV_E_NOMEM;
        return NULL;
    }
    for (; i < pointer->len && pointer->ptr[i] != '/'; i++) {
        char c = pointer->ptr[i];
        if (c == '~' && i + 1 < pointer->len && (pointer->ptr[i + 1] == '0' || pointer->ptr[i + 1] == '1'))
            c = pointer->ptr[++i] == '0' ? '~' : '/';
        part[n++] = c;
    }
    part[n] = 0;
    *pointer = (rv_str){pointer->ptr + i, pointer->len - i};
    return part;
}

static const struct rv_node *child_of(const struct rv_node *node, const char *part)
{
    size_t i = 0;

    if (node->kind == RV_NODE_MAP)
        return rv_node_get(node, part);
    if (node->kind != RV_NODE_LIST || !part[0])
        return NULL;
    for (; *part >= '0' && *part <= '9' && i < node->n; part++)
        i = i * 10 + (size_t)(*part - '0');
    return *part == 0 && i < node->n ? node->items[i] : NULL;
}

/* Whether "#..." leads to something. */
static bool leads_somewhere(struct rv_agentdoc_reading *r, rv_str ref)
{
    rv_str pointer = {ref.ptr + 1, ref.len - 1};
    const struct rv_node *at;
    const char *part;

    if (pointer.len == 0)
        return true; /* the whole output */
    if (pointer.ptr[0] != '/')
        return false;
    part = next_part(r, &pointer);
    if (!part)
        return true;
    if (strcmp(part, "properties") == 0)
        at = r->properties;
    else if (strcmp(part, "$defs") == 0 || (r->has_definitions && strcmp(part, "definitions") == 0))
        at = r->defs;
    else
        return false;
    if (pointer.len == 0)
        return false; /* a map of schemas, and none itself */
    while (at && pointer.len > 0) {
        part = next_part(r, &pointer);
        if (!part)
            return true;
        at = child_of(at, part);
    }
    return at && (at->kind == RV_NODE_MAP || at->kind == RV_NODE_BOOL);
}

static void rewrite(struct rv_agentdoc_reading *r, struct rv_node *ref)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_TREE);
    char *copy = NULL;

    rv_buf_puts(&text, NEW_PLACE);
    rv_buf_puts(&text, ref->text.ptr + strlen(OLD_PLACE));
    if (text.rc == 0)
        copy = rv_arena_dup(r->keys.arena, rv_buf_str(&text));
    if (copy)
        ref->text = (rv_str){copy, text.len};
    else
        r->keys.rc = RV_E_NOMEM;
    rv_buf_fini(&text);
}

/* The definition that was probably meant. */
static void unresolved(struct rv_agentdoc_reading *r, const struct rv_node *ref)
{
    const char *slash = strrchr(ref->text.ptr, '/');
    size_t n = r->defs && r->defs->kind == RV_NODE_MAP ? r->defs->n : 0;
    const char **names = rv_agentdoc_room(r, n, sizeof *names);
    const char *near;

    if (!names)
        return;
    for (size_t i = 0; i < n; i++)
        names[i] = r->defs->keys[i]->text.ptr;
    near = rv_nearest(rv_str_of(slash ? slash + 1 : ref->text.ptr), names, n);
    if (near)
        near = rv_agentdoc_listed(r, NEW_PLACE, &near, 1);
    rv_agentdoc_near(r, RV_SEVERITY_ERROR, &ref->src, near,
                     n > 0 ? "references begin with \"" NEW_PLACE "\""
                           : "there are no $defs: write the schema in place of the reference",
                     "the reference \"%.80s\" leads nowhere in this document", ref->text.ptr);
}

void rv_agentdoc_check_ref(struct rv_agentdoc_reading *r, struct rv_node *ref)
{
    if (ref->text.len == 0 || ref->text.ptr[0] != '#' || !leads_somewhere(r, ref->text))
        unresolved(r, ref);
    else if (r->has_definitions && strncmp(ref->text.ptr, OLD_PLACE, strlen(OLD_PLACE)) == 0)
        rewrite(r, ref);
}
