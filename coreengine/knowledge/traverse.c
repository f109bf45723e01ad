/* TRAVERSE: from a row along its edges, breadth first, one level at a time. All edges of a level are gathered and put
 * in order, heaviest first, then the names that they lead to are read together; so what a limit leaves out is what is
 * farther away, or weighs less. A name means the first row that a lookup gives for it; one that the scope does not see
 * is as if it did not exist, and nothing behind it is reached through it. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/knowledge/knowledge_internal.h"
#include "coreengine/match/match.h"
#include "coreengine/store/store.h"

#define MAX_MEMORY ((size_t)128 << 20) /* bytes of one walk: MAX_KEYS and the names of all rows are less */
#define MAX_KEYS   ((size_t)32 << 20)  /* bytes of names behind edges: a quarter of MAX_MEMORY */
#define MAX_EDGES  100000 /* of one level that are looked at: as the rows behind them, they are in memory */
#define BATCH      250    /* names that are read together */
#define NO_PARENT  (-1)   /* the step is the start */
#define IS_MISSING (RV_KNOWLEDGE_MAX_ROWS + 1) /* in the index of names: it means nothing */

/* An entity that was reached. */
struct node {
    const struct rv_kind *kind;
    int64_t row;
    char *key, *id;      /* owned */
    json_object *record; /* {summary, metadata}, or the whole row; NULL: gone meanwhile */
    json_object *edges;  /* a list; NULL: none, or not needed */
};
/* A row of the result. */
struct step {
    int node, parent; /* parent: of the steps; NO_PARENT: the start */
    int64_t depth;
    json_object *relation; /* borrowed from the edges of the parent; NULL: it has none */
    double weight;
};
/* An edge of the level. */
struct edge {
    rv_str key; /* in the arena */
    int parent, order;
    json_object *relation;
    double weight;
};
struct walk {
    struct asking *a;
    rv_arena *memory;   /* of the names; owned */
    size_t n_bytes;     /* of the names that edges lead to */
    rv_index names;     /* to nodes, or IS_MISSING */
    struct node *nodes; /* RV_KNOWLEDGE_MAX_ROWS; owned */
    struct step *steps; /* RV_KNOWLEDGE_MAX_ROWS; owned */
    bool *is_taken;     /* for each node: a step has it */
    int n_nodes, n_steps;
    struct edge *edges; /* of the level */
    size_t n_edges, cap_edges;
    bool is_full, wants_edges; /* wants_edges: of nodes that are read now */
};

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_NOMEM, "follow edges");
}

/* --- Nodes --- */

/* JSON of the store; what it cannot be read as is as if it were not there. */
static int read_json(rv_str text, json_type type, json_object **out, rv_err **err)
{
    static const struct rv_json_opts opts = {.max_bytes = RV_ENTITY_MAX_BYTES, .allow_duplicates = true};
    *out = NULL;
    int rc = text.len > 0 ? rv_json_try_parse(text, &opts, out, err) : 0;

    if (!json_object_is_type(*out, type)) {
        json_object_put(*out);
        *out = NULL;
    }
    return rc;
}

static int make_record(const struct rv_key_node *n, json_object **out, rv_err **err)
{
    json_object *record = json_object_new_object(), *metadata = NULL;
    int rc = record ? read_json(n->metadata, json_type_object, &metadata, err) : no_memory(err);

    if (rc == 0)
        rc = n->hit.summary.len > 0 ? rv_json_set_str(record, "summary", n->hit.summary, err)
                                    : rv_json_set_null(record, "summary", err);
    if (rc == 0 && !metadata)
        metadata = json_object_new_object();
    if (rc == 0)
        rc = rv_json_set_take(record, "metadata", metadata, err);
    else
        json_object_put(metadata);
    if (rc == 0)
        *out = record;
    else
        json_object_put(record);
    return rc;
}

static int add_name(struct walk *w, rv_str key, int node, rv_err **err)
{
    char *own = rv_arena_dup(w->memory, key);
    int rc = own ? rv_index_add(&w->names, (rv_str){own, key.len}, node) : RV_E_NOMEM;

    return rc == RV_E_NOMEM ? no_memory(err) : 0; /* it may have two names: its own, and its id */
}

static int take_node(void *self, const struct rv_key_node *n, rv_err **err)
{
    struct walk *w = self;
    struct node *at = &w->nodes[w->n_nodes];
    const struct rv_key_hit *h = &n->hit;
    int rc = 0;

    int known = rv_index_get(&w->names, rv_str_of(h->key));
    if (known >= 0 && known != IS_MISSING)
        return 0;
    if (w->n_nodes == RV_KNOWLEDGE_MAX_ROWS) {
        w->is_full = true;
        return RV_STORE_ENOUGH;
    }
    *at = (struct node){.kind = h->kind, .row = h->row, .key = rv_str_dup(rv_str_of(h->key))};
    at->id = rv_str_dup(rv_str_of(h->id));
    w->n_nodes++;
    if (!at->key || !at->id)
        return no_memory(err);
    if (!w->a->q->load)
        rc = make_record(n, &at->record, err);
    if (rc == 0 && w->wants_edges)
        rc = read_json(n->edges, json_type_array, &at->edges, err);
    return rc < 0 ? rc : add_name(w, rv_str_of(at->key), w->n_nodes - 1, err);
}

/* --- Targets other than names: UUIDs, keys of messages --- */

struct first {
    struct rv_key_node node;
    char *key, *id;
    rv_buf summary;
    bool is_there, lacked;
};

static int take_first(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    struct first *f = self;

    (void)err;
    f->is_there = true;
    f->node.hit = *hit;
    f->key = rv_str_dup(rv_str_of(hit->key));
    f->id = rv_str_dup(rv_str_of(hit->id));
    rv_buf_add_str(&f->summary, hit->summary);
    f->lacked = !f->key || !f->id || f->summary.rc < 0;
    return RV_STORE_ENOUGH;
}

static int load(struct walk *w, const struct rv_kind *kind, int64_t row, json_object **out, rv_err **err)
{
    rv_err *cause = NULL;
    int rc = rv_store_load_entity(w->a->store, w->a->scope, kind->name, row, out, &cause);

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        *out = NULL;
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    else
        rv_err_free(cause);
    return rc;
}

static void write_member(json_object *row, const char *name, rv_buf *out)
{
    json_object *v = NULL;

    if (json_object_object_get_ex(row, name, &v) && v)
        rv_json_write(v, out);
}

static int take_loaded(struct walk *w, struct first *f, rv_err **err)
{
    rv_buf metadata = RV_BUF_INIT(RV_ENTITY_MAX_BYTES), edges = RV_BUF_INIT(RV_ENTITY_MAX_BYTES);
    json_object *row = NULL;
    int rc = load(w, f->node.hit.kind, f->node.hit.row, &row, err);

    if (rc == 0 && row) {
        write_member(row, "metadata", &metadata);
        write_member(row, "graph_edges", &edges);
        rc = rv_buf_check(&metadata, "the metadata of a node", err);
        if (rc == 0)
            rc = rv_buf_check(&edges, "the edges of a node", err);
        f->node.hit.key = f->key;
        f->node.hit.id = f->id;
        f->node.hit.summary = rv_buf_str(&f->summary);
        f->node.metadata = rv_buf_str(&metadata);
        f->node.edges = rv_buf_str(&edges);
        if (rc == 0)
            rc = take_node(w, &f->node, err);
    }
    json_object_put(row);
    rv_buf_fini(&metadata);
    rv_buf_fini(&edges);
    return rc < 0 ? rc : 0;
}

/* Look it up as LOOKUP does. The name is in the index afterwards, whatever it means. */
static int look_up(struct walk *w, rv_str key, rv_err **err)
{
    struct first f = {.summary = RV_BUF_INIT(1 << 16)};
    int rc = rv_store_lookup(w->a->store, w->a->scope, key, take_first, &f, err);

    if (rc >= 0)
        rc = f.lacked ? no_memory(err) : f.is_there ? take_loaded(w, &f, err) : 0;
    if (rc == 0) {
        int node = f.is_there ? rv_index_get(&w->names, rv_str_of(f.key)) : -1;
        if (!w->is_full)
            rc = add_name(w, key, node >= 0 ? node : IS_MISSING, err);
    }
    free(f.key);
    free(f.id);
    rv_buf_fini(&f.summary);
    return rc;
}

/* 8-4-4-4-12, or "session-": the index of names does not have all of these. */
static bool may_be_other(rv_str key)
{
    return (key.len == 36 && key.ptr[8] == '-' && key.ptr[13] == '-' && key.ptr[18] == '-' && key.ptr[23] == '-') ||
           (key.len > 8 && memcmp(key.ptr, "session-", 8) == 0);
}

/* --- Edges --- */

static int add_edge(struct walk *w, int parent, json_object *edge, rv_err **err)
{
    json_object *relation = NULL, *weight = NULL, *target = NULL;
    rv_buf key = RV_BUF_INIT(4 * RV_ENTITY_MAX_NAME);
    const struct rv_rem_query *q = w->a->q;
    int rc = 0;

    json_object_object_get_ex(edge, "target", &target);
    json_object_object_get_ex(edge, "relation", &relation);
    json_object_object_get_ex(edge, "weight", &weight);
    if (!json_object_is_type(relation, json_type_string))
        relation = NULL;
    if (q->rel_type.ptr && !(relation && rv_str_eq(rv_json_str(relation), q->rel_type)))
        return 0;
    rv_match_write_key(rv_json_str(target), &key);
    if (key.rc == RV_E_NOMEM)
        rc = no_memory(err);
    else if (key.rc == 0 && key.len > 0 && key.len <= RV_ENTITY_MAX_NAME) {
        char *own = rv_arena_dup(w->memory, rv_buf_str(&key));
        w->n_bytes += key.len + 16;
        if (!own || !rv_has_room(&w->edges, &w->cap_edges, w->n_edges + 1, sizeof *w->edges))
            rc = no_memory(err);
        else {
            size_t i = w->n_edges++;
            w->edges[i] = (struct edge){.key = {own, key.len},
                                        .parent = parent,
                                        .order = (int)i,
                                        .relation = relation,
                                        .weight = rv_json_is_number(weight) ? json_object_get_double(weight) : 1.0};
        }
    }
    rv_buf_fini(&key);
    return rc;
}

static int heavier_first(const void *one, const void *two)
{
    const struct edge *a = one, *b = two;

    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int gather(struct walk *w, int first, int end, rv_err **err)
{
    int rc = 0;

    w->n_edges = 0;
    for (int i = first; i < end && rc == 0; i++) {
        json_object *edges = w->nodes[w->steps[i].node].edges;
        for (size_t k = 0; edges && k < json_object_array_length(edges) && rc == 0; k++) {
            json_object *edge = json_object_array_get_idx(edges, k);
            if (w->n_edges == MAX_EDGES || w->n_bytes > MAX_KEYS)
                w->a->is_truncated = true;
            else if (json_object_is_type(edge, json_type_object))
                rc = add_edge(w, i, edge, err);
        }
    }
    if (w->n_edges > 0)
        qsort(w->edges, w->n_edges, sizeof *w->edges, heavier_first);
    return rc;
}

/* --- Steps --- */

static bool is_in_path(const struct walk *w, int step, int node)
{
    for (; step != NO_PARENT; step = w->steps[step].parent)
        if (w->steps[step].node == node)
            return true;
    return false;
}

/* A step to a node, unless it is there already. */
static void add_step(struct walk *w, const struct edge *e, int64_t depth, int node)
{
    int parent = e ? e->parent : NO_PARENT;

    if (w->a->q->paths ? is_in_path(w, parent, node) : w->is_taken[node])
        return;
    if (w->n_steps == RV_KNOWLEDGE_MAX_ROWS) {
        w->is_full = true;
        return;
    }
    w->is_taken[node] = true;
    w->steps[w->n_steps++] = (struct step){.node = node,
                                           .parent = parent,
                                           .depth = depth,
                                           .relation = e ? e->relation : NULL,
                                           .weight = e ? e->weight : 1.0};
}

/* Read the names of the edges from `first` on that are not known yet, as many as go together. *end: edges before it
 * have known names. */
static int read_names(struct walk *w, size_t first, size_t *end, rv_err **err)
{
    rv_index fresh = {NULL, 0, 0};
    rv_str keys[BATCH];
    size_t n = 0, i;
    int rc = 0;

    for (i = first; i < w->n_edges && n < BATCH && rc == 0; i++) {
        if (rv_index_get(&w->names, w->edges[i].key) >= 0)
            continue;
        rc = rv_index_add(&fresh, w->edges[i].key, 0);
        if (rc == 0)
            keys[n++] = w->edges[i].key;
        else if (rc == RV_E_EXISTS)
            rc = 0;
        else
            rc = no_memory(err);
    }
    *end = i;
    rv_index_fini(&fresh);
    if (rc == 0 && n > 0)
        rc = rv_store_read_nodes(w->a->store, w->a->scope, &(const struct rv_node_keys){.keys = keys, .n_keys = n},
                                 take_node, w, err);
    for (size_t k = 0; k < n && rc == 0 && !w->is_full; k++) {
        if (rv_index_get(&w->names, keys[k]) >= 0)
            continue;
        rc = may_be_other(keys[k]) ? look_up(w, keys[k], err) : add_name(w, keys[k], IS_MISSING, err);
    }
    return rc;
}

/* A name that could not be read since there was no room for one more node is not known: the walk is full then. */
static int take_level(struct walk *w, int64_t depth, rv_err **err)
{
    size_t end = 0;
    int rc = 0;

    for (size_t i = 0; i < w->n_edges && rc == 0 && !(w->is_full && i == end); i++) {
        if (i == end)
            rc = read_names(w, i, &end, err);
        int node = rc == 0 ? rv_index_get(&w->names, w->edges[i].key) : -1;
        if (node >= 0 && node != IS_MISSING)
            add_step(w, &w->edges[i], depth, node);
    }
    return rc;
}

static int start(struct walk *w, rv_err **err)
{
    rv_buf key = RV_BUF_INIT(4 * RV_ENTITY_MAX_NAME);
    rv_str text = rv_str_trim(w->a->q->text);
    int rc = 0, node = -1;

    w->wants_edges = w->a->q->depth > 0;
    if (text.len > RV_ENTITY_MAX_NAME)
        return 0;
    rv_match_write_key(text, &key);
    if (key.rc == RV_E_NOMEM)
        rc = no_memory(err);
    if (rc == 0 && key.rc == 0 && key.len > 0 && key.len <= RV_ENTITY_MAX_NAME)
        rc = rv_store_read_nodes(w->a->store, w->a->scope,
                                 &(const struct rv_node_keys){.keys = (rv_str[]){rv_buf_str(&key)}, .n_keys = 1},
                                 take_node, w, err);
    if (rc == 0 && w->n_nodes == 0)
        rc = look_up(w, text, err);
    if (rc == 0)
        node = w->n_nodes > 0 ? 0 : -1;
    if (node == 0)
        add_step(w, NULL, 0, node);
    rv_buf_fini(&key);
    return rc;
}

/* --- The result --- */

static int set_path(struct walk *w, int step, json_object *row, rv_err **err)
{
    const char *keys[RV_REM_MAX_DEPTH + 1];
    size_t n = 0;
    json_object *path = json_object_new_array();
    int rc = path ? 0 : no_memory(err);

    for (; step != NO_PARENT; step = w->steps[step].parent)
        keys[n++] = w->nodes[w->steps[step].node].key;
    while (n > 0 && rc == 0)
        rc = rv_json_push_take(path, json_object_new_string(keys[--n]), err);
    if (rc == 0)
        return rv_json_set_take(row, "path", path, err);
    json_object_put(path);
    return rc;
}

static int set_all(struct walk *w, int step, json_object *row, rv_err **err)
{
    const struct step *s = &w->steps[step];
    struct node *n = &w->nodes[s->node];
    int rc = 0;

    if (w->a->q->load && !n->record)
        rc = load(w, n->kind, n->row, &n->record, err);
    if (rc == 0)
        rc = rv_json_set_int(row, "depth", s->depth, err);
    if (rc == 0)
        rc = rv_json_set_text(row, "entity_key", n->key, err);
    if (rc == 0)
        rc = rv_json_set_text(row, "entity_type", n->kind->name, err);
    if (rc == 0)
        rc = rv_json_set_text(row, "entity_id", n->id, err);
    if (rc == 0)
        rc = rv_json_set_ref(row, "rel_type", s->relation, err);
    if (rc == 0)
        rc = rv_json_set_take(row, "rel_weight", rv_json_new_double(s->weight), err);
    if (rc == 0)
        rc = set_path(w, step, row, err);
    return rc < 0 ? rc : rv_json_set_ref(row, "entity_record", n->record, err);
}

static int write_steps(struct walk *w, rv_err **err)
{
    int rc = 0;

    for (int i = 0; i < w->n_steps && rc == 0 && !(i > 0 && w->a->is_truncated && w->a->bytes == 0); i++) {
        json_object *row = json_object_new_object();
        bool is_full = false;
        rc = row ? set_all(w, i, row, err) : no_memory(err);
        if (rc == 0)
            rc = knowledge_asking_add_take(w->a, row, &is_full, err);
        else
            json_object_put(row);
        if (is_full)
            break;
    }
    return rc;
}

static int walk(struct walk *w, rv_err **err)
{
    int first = 0, end, rc = start(w, err);
    bool is_cut;

    for (int64_t depth = 1; rc == 0 && depth <= w->a->q->depth && first < w->n_steps && !w->is_full; depth++) {
        end = w->n_steps;
        w->wants_edges = depth < w->a->q->depth;
        rc = gather(w, first, end, err);
        if (rc == 0)
            rc = take_level(w, depth, err);
        first = end;
    }
    if (rc < 0)
        return rc;
    is_cut = w->is_full || w->a->is_truncated;
    w->a->is_truncated = false; /* rows that were found are shown */
    rc = write_steps(w, err);
    w->a->is_truncated = w->a->is_truncated || is_cut;
    return rc;
}

int knowledge_asking_traverse(struct asking *a, rv_err **err)
{
    struct walk w = {.a = a, .memory = rv_arena_new(MAX_MEMORY)};
    int rc;

    w.nodes = calloc(RV_KNOWLEDGE_MAX_ROWS, sizeof *w.nodes);
    w.steps = calloc(RV_KNOWLEDGE_MAX_ROWS, sizeof *w.steps);
    w.is_taken = calloc(RV_KNOWLEDGE_MAX_ROWS, sizeof *w.is_taken);
    rc = w.memory && w.nodes && w.steps && w.is_taken ? walk(&w, err) : no_memory(err);
    for (int i = 0; i < w.n_nodes; i++) {
        free(w.nodes[i].key);
        free(w.nodes[i].id);
        json_object_put(w.nodes[i].record);
        json_object_put(w.nodes[i].edges);
    }
    rv_index_fini(&w.names);
    rv_arena_free(w.memory);
    free(w.edges);
    free(w.nodes);
    free(w.steps);
    free(w.is_taken);
    return rc;
}
