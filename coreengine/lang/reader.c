/* libyaml's events to a tree. One pass, one level of recursion per level of nesting (capped), children gathered on a
 * scratch stack until their number is known. What can be skipped is reported and skipped; limits end the reading. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/yaml_internal.h"

/* --- Anchors --- */

/* Index of a new anchor, RV_E_LIMIT or RV_E_NOMEM. */
static int anchors_open(struct rv_anchors *anchors, rv_arena *arena, rv_str name)
{
    struct rv_anchor *a;

    if (!anchors->items)
        anchors->items = calloc(RV_YAML_MAX_ALIASES, sizeof *anchors->items);
    if (!anchors->items)
        return RV_E_NOMEM;
    if (anchors->n == RV_YAML_MAX_ALIASES)
        return RV_E_LIMIT;
    a = &anchors->items[anchors->n];
    a->name = (rv_str){rv_arena_dup(arena, name), name.len};
    if (!a->name.ptr)
        return RV_E_NOMEM;
    return (int)anchors->n++;
}

static void anchors_close(struct rv_anchors *anchors, int index, struct rv_node *node, size_t n_nodes, int height)
{
    struct rv_anchor *a = &anchors->items[index];

    a->node = node;
    a->n_nodes = n_nodes;
    a->height = height;
}

/* NULL: none */
static const struct rv_anchor *anchors_find(const struct rv_anchors *anchors, rv_str name)
{
    for (size_t i = anchors->n; i > 0; i--)
        if (rv_str_eq(anchors->items[i - 1].name, name))
            return &anchors->items[i - 1];
    return NULL;
}

static void anchors_fini(struct rv_anchors *anchors)
{
    free(anchors->items);
}

/* --- Nodes --- */

struct reader {
    yaml_parser_t parser;
    rv_str text;
    struct rv_yaml *doc;
    rv_findings *findings;
    struct rv_node **stack; /* owned; children of the open collections */
    size_t n_stack, cap_stack;
    struct rv_anchors anchors;
    size_t n_aliases, n_nodes;
    int line;      /* cursor for block scalars: a line ... */
    size_t offset; /* ... and where it starts */
    struct rv_yaml_flow flow;
    bool stopped; /* a limit or syntax fault ended the reading; it is a finding already */
    int rc;       /* RV_E_NOMEM */
};

static struct rv_src place(const struct reader *r, const yaml_mark_t *mark)
{
    return (struct rv_src){r->doc->name, (int)mark->line + 1, (int)mark->column + 1};
}

static bool ended(const struct reader *r)
{
    return r->stopped || r->rc < 0;
}

static void out_of_memory(struct reader *r)
{
    r->rc = RV_E_NOMEM;
}

static void stop(struct reader *r, const struct rv_src *src, const char *hint, const char *text, size_t limit)
{
    rv_findings_add(r->findings, RV_SEVERITY_CRITICAL, src, hint, "%s (the limit is %zu)", text, limit);
    r->stopped = true;
}

static bool next_event(struct reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return true;
    if (r->parser.error == YAML_MEMORY_ERROR) {
        out_of_memory(r);
        return false;
    }
    lang_yaml_add_syntax(&r->parser, r->text, &r->flow, r->doc->name, r->findings);
    r->stopped = true;
    return false;
}

static bool push(struct reader *r, struct rv_node *node)
{
    if (r->n_stack == r->cap_stack) {
        size_t cap = r->cap_stack ? r->cap_stack * 2 : 256;
        struct rv_node **grown = realloc(r->stack, cap * sizeof *grown);
        if (!grown) {
            out_of_memory(r);
            return false;
        }
        r->stack = grown;
        r->cap_stack = cap;
    }
    r->stack[r->n_stack++] = node;
    return true;
}

static struct rv_node *new_node(struct reader *r, const yaml_event_t *event, int depth)
{
    struct rv_src src = place(r, &event->start_mark);
    struct rv_node *node;

    if (depth > RV_YAML_MAX_DEPTH) {
        stop(r, &src, NULL, "the file is nested too deeply", RV_YAML_MAX_DEPTH);
        return NULL;
    }
    if (++r->n_nodes > RV_YAML_MAX_NODES) {
        stop(r, &src, NULL, "the file has too many values", RV_YAML_MAX_NODES);
        return NULL;
    }
    node = rv_arena_alloc(r->doc->arena, sizeof *node);
    if (!node) {
        out_of_memory(r);
        return NULL;
    }
    node->src = src;
    node->text = RV_STR_LIT("");
    return node;
}

static void refuse_tag(struct reader *r, const yaml_char_t *tag, const struct rv_src *src)
{
    if (tag)
        rv_findings_add(r->findings, RV_SEVERITY_ERROR, src, "leave it out: types follow from how a value is written",
                        "the tag \"%s\" is not supported", (const char *)tag);
}

/* Index of the new anchor, or -1: the value has none, or reading ends. */
static int open_anchor(struct reader *r, const yaml_char_t *name, const struct rv_src *src)
{
    int index;

    if (!name)
        return -1;
    index = anchors_open(&r->anchors, r->doc->arena, rv_str_of((const char *)name));
    if (index == RV_E_LIMIT)
        stop(r, src, NULL, "the file has too many anchors", RV_YAML_MAX_ALIASES);
    else if (index < 0)
        out_of_memory(r);
    return index;
}

static struct rv_node *read_alias(struct reader *r, const yaml_event_t *event, int depth, int *height)
{
    struct rv_src src = place(r, &event->start_mark);
    const char *name = (const char *)event->data.alias.anchor;
    const struct rv_anchor *a = anchors_find(&r->anchors, rv_str_of(name));

    if (++r->n_aliases > RV_YAML_MAX_ALIASES) {
        stop(r, &src, NULL, "the file has too many aliases", RV_YAML_MAX_ALIASES);
        return NULL;
    }
    if (!a || !a->node) {
        rv_findings_add(
            r->findings, RV_SEVERITY_ERROR, &src,
            a ? "write the value out, or refer to an anchor whose value ends above"
              : "an anchor is written \"&name\" before the value, above its first use",
            a ? "the alias \"*%s\" stands inside the value it refers to" : "no anchor \"&%s\" for this alias", name);
        return new_node(r, event, depth);
    }
    *height = a->height;
    r->n_nodes += a->n_nodes;
    if (depth + a->height - 1 > RV_YAML_MAX_DEPTH) {
        stop(r, &src, NULL, "aliases make the file nested too deeply", RV_YAML_MAX_DEPTH);
        return NULL;
    }
    if (r->n_nodes > RV_YAML_MAX_NODES) {
        stop(r, &src, NULL, "aliases make the file too large", RV_YAML_MAX_NODES);
        return NULL;
    }
    return a->node;
}

/* Columns that the file's lines of a block scalar are indented by. */
static int block_indent(struct reader *r, const struct rv_node *node)
{
    size_t at;
    int inner = 0;
    int outer = 0;

    lang_yaml_seek_line(r->text, node->src.line + 1, &r->line, &r->offset);
    at = r->offset;
    for (size_t i = 0; i < node->text.len && (node->text.ptr[i] == '\n' || node->text.ptr[i] == ' '); i++)
        inner = node->text.ptr[i] == '\n' ? 0 : inner + 1;
    for (; at < r->text.len && strchr(" \r\n", r->text.ptr[at]); at++)
        outer = r->text.ptr[at] == ' ' ? outer + 1 : 0;
    return outer > inner ? outer - inner : 0;
}

static struct rv_node *read_scalar(struct reader *r, const yaml_event_t *event, int depth)
{
    yaml_scalar_style_t style = event->data.scalar.style;
    struct rv_node *node = new_node(r, event, depth);

    if (!node)
        return NULL;
    refuse_tag(r, event->data.scalar.tag, &node->src);
    node->text.len = event->data.scalar.length;
    node->text.ptr = rv_arena_dup(r->doc->arena, (rv_str){(const char *)event->data.scalar.value, node->text.len});
    if (!node->text.ptr) {
        out_of_memory(r);
        return NULL;
    }
    if (memchr(node->text.ptr, 0, node->text.len)) {
        rv_findings_add(r->findings, RV_SEVERITY_ERROR, &node->src, NULL, "the string has a NUL character");
        node->text.len = strlen(node->text.ptr);
    }
    if (style == YAML_PLAIN_SCALAR_STYLE) {
        lang_scalar_resolve(node);
        return node;
    }
    node->kind = RV_NODE_STR;
    node->is_quoted = style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    node->is_block = !node->is_quoted;
    if (node->is_block)
        node->indent = block_indent(r, node);
    return node;
}

static struct rv_node **take_children(struct reader *r, size_t base, size_t stride, size_t first, size_t n)
{
    struct rv_node **list = rv_arena_alloc(r->doc->arena, (n > 0 ? n : 1) * sizeof *list);

    if (!list) {
        out_of_memory(r);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        list[i] = r->stack[base + i * stride + first];
    return list;
}

static struct rv_node *read_node(struct reader *r, const yaml_event_t *event, int depth, int *height);

static void read_list(struct reader *r, struct rv_node *list, int depth, int *height)
{
    size_t base = r->n_stack;

    while (!ended(r)) {
        yaml_event_t event;
        struct rv_node *item;
        int below = 1;

        if (!next_event(r, &event))
            break;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            break;
        }
        item = read_node(r, &event, depth + 1, &below);
        yaml_event_delete(&event);
        if (!item || !push(r, item))
            break;
        if (below + 1 > *height)
            *height = below + 1;
    }
    if (ended(r))
        return;
    list->kind = RV_NODE_LIST;
    list->n = r->n_stack - base;
    list->items = take_children(r, base, 1, 0, list->n);
    r->n_stack = base;
}

/* A key as a string, or NULL: it is none (a finding says so), or reading ends. */
static struct rv_node *read_key(struct reader *r, const yaml_event_t *event, int depth)
{
    int height = 1;
    struct rv_node *key = read_node(r, event, depth, &height);

    if (!key)
        return NULL;
    if (event->type == YAML_ALIAS_EVENT) {
        rv_findings_add(r->findings, RV_SEVERITY_ERROR, &key->src, NULL, "an alias cannot be a key");
        return NULL;
    }
    if (key->kind == RV_NODE_LIST || key->kind == RV_NODE_MAP) {
        rv_findings_add(r->findings, RV_SEVERITY_ERROR, &key->src,
                        key->kind == RV_NODE_MAP ? "put a value that begins with a template in quotes: \"{{name}}\""
                                                 : NULL,
                        "%s cannot be a key", lang_node_kind_phrase(key->kind));
        return NULL;
    }
    if (!key->is_quoted && rv_str_is(key->text, "<<")) {
        rv_findings_add(r->findings, RV_SEVERITY_ERROR, &key->src,
                        "write the keys out, or use an alias for a whole value",
                        "merge keys (\"<<\") are not supported");
        return NULL;
    }
    if (!key->is_quoted && key->text.len == 0) {
        rv_findings_add(r->findings, RV_SEVERITY_ERROR, &key->src, NULL, "a key is missing before \":\"");
        return NULL;
    }
    key->kind = RV_NODE_STR; /* `1:` and `true:` are the keys "1" and "true" */
    return key;
}

/* Keep the first of equal keys. Pairs stand on the stack from base. */
static void refuse_duplicates(struct reader *r, size_t base)
{
    rv_index seen = {NULL, 0, 0};
    size_t kept = base;

    for (size_t i = base; i < r->n_stack && !ended(r); i += 2) {
        struct rv_node *key = r->stack[i];
        int rc = rv_index_add(&seen, key->text, (int)((kept - base) / 2));

        if (rc == RV_E_NOMEM) {
            out_of_memory(r);
        } else if (rc < 0) {
            const struct rv_node *first = r->stack[base + (size_t)rv_index_get(&seen, key->text) * 2];
            rv_findings_add(r->findings, RV_SEVERITY_ERROR, &key->src, "remove one of them",
                            "the key \"%s\" is here twice; the first one is on line %d", key->text.ptr,
                            first->src.line);
        } else {
            r->stack[kept] = key;
            r->stack[kept + 1] = r->stack[i + 1];
            kept += 2;
        }
    }
    rv_index_fini(&seen);
    r->n_stack = kept;
}

static void read_map(struct reader *r, struct rv_node *map, int depth, int *height)
{
    size_t base = r->n_stack;

    while (!ended(r)) {
        yaml_event_t event;
        struct rv_node *key;
        struct rv_node *value;
        int below = 1;

        if (!next_event(r, &event))
            break;
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            break;
        }
        key = read_key(r, &event, depth + 1);
        yaml_event_delete(&event);
        if (ended(r) || !next_event(r, &event))
            break;
        value = read_node(r, &event, depth + 1, &below);
        yaml_event_delete(&event);
        if (!value)
            break;
        if (below + 1 > *height)
            *height = below + 1;
        if (key && !(push(r, key) && push(r, value)))
            break;
    }
    if (!ended(r))
        refuse_duplicates(r, base);
    if (ended(r))
        return;
    map->kind = RV_NODE_MAP;
    map->n = (r->n_stack - base) / 2;
    map->keys = take_children(r, base, 2, 0, map->n);
    map->items = map->keys ? take_children(r, base, 2, 1, map->n) : NULL;
    r->n_stack = base;
}

static void read_children(struct reader *r, const yaml_event_t *event, struct rv_node *node, int depth, int *height)
{
    bool is_map = event->type == YAML_MAPPING_START_EVENT;
    struct rv_yaml_flow outer = r->flow;

    r->flow.is_open = is_map ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                             : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    r->flow.is_map = is_map;
    r->flow.src = node->src;
    (is_map ? read_map : read_list)(r, node, depth, height);
    r->flow = outer;
}

/* The value that begins with event, or NULL when reading ends. *height: the number of its levels, at least 1. */
static struct rv_node *read_node(struct reader *r, const yaml_event_t *event, int depth, int *height)
{
    size_t n_before = r->n_nodes;
    struct rv_node *node = NULL;
    const yaml_char_t *name = NULL;
    bool is_map = event->type == YAML_MAPPING_START_EVENT;
    int anchor;

    *height = 1;
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(r, event, depth, height);
    if (event->type == YAML_SCALAR_EVENT)
        name = event->data.scalar.anchor;
    else
        name = is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    {
        struct rv_src src = place(r, &event->start_mark);
        anchor = open_anchor(r, name, &src);
    }
    if (ended(r))
        return NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        node = read_scalar(r, event, depth);
    } else {
        node = new_node(r, event, depth);
        if (node) {
            refuse_tag(r, is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag, &node->src);
            read_children(r, event, node, depth, height);
        }
    }
    if (ended(r))
        return NULL;
    if (anchor >= 0)
        anchors_close(&r->anchors, anchor, node, r->n_nodes - n_before, *height);
    return node;
}

static void read_stream(struct reader *r)
{
    bool more = true;

    while (more && !ended(r)) {
        yaml_event_t event;
        struct rv_src src;
        int height = 1;

        if (!next_event(r, &event))
            return;
        src = place(r, &event.start_mark);
        switch (event.type) {
        case YAML_STREAM_END_EVENT:
        case YAML_NO_EVENT:
            more = false;
            break;
        case YAML_DOCUMENT_START_EVENT:
            if (r->doc->root) {
                rv_findings_add(r->findings, RV_SEVERITY_ERROR, &src, "remove the \"---\" and what follows",
                                "the file has a second document");
                more = false;
            }
            break;
        case YAML_ALIAS_EVENT:
        case YAML_SCALAR_EVENT:
        case YAML_SEQUENCE_START_EVENT:
        case YAML_MAPPING_START_EVENT:
            r->doc->root = read_node(r, &event, 1, &height);
            break;
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
            break;
        }
        yaml_event_delete(&event);
    }
}

int lang_yaml_read_nodes(struct rv_yaml *doc, rv_str text, rv_findings *findings, bool *is_whole)
{
    struct reader r = {.text = text, .doc = doc, .findings = findings, .line = 1};

    if (!yaml_parser_initialize(&r.parser))
        return RV_E_NOMEM;
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.len > 0 ? text.ptr : ""), text.len);
    read_stream(&r);
    yaml_parser_delete(&r.parser);
    free(r.stack);
    anchors_fini(&r.anchors);
    *is_whole = !r.stopped;
    return r.rc;
}
