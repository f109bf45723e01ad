/* Edges: what two entities have to do with each other, kept on the one that it begins at. */
#include <json-c/json_object.h>

#include "coreengine/match/match.h"
#include "coreengine/match/match_internal.h"

#define MAX_JSON_BYTES ((size_t)8 << 20) /* of edges that are a string: as RV_JSON_MAX_BYTES */

static double weight_of(json_object *edge)
{
    json_object *weight = NULL;

    if (!json_object_object_get_ex(edge, "weight", &weight) || !rv_json_is_number(weight))
        return 1;
    double w = json_object_get_double(weight);
    return w > 1 ? 1 : w < 0 ? 0 : w;
}

rv_str rv_edge_relation(json_object *edge)
{
    json_object *relation = NULL;
    rv_str text = {NULL, 0};

    if (json_object_object_get_ex(edge, "relation", &relation))
        text = rv_json_str(relation);
    return text.len > 0 ? text : RV_STR_LIT(RV_EDGE_RELATION);
}

static bool is_null_or(json_object *edge, const char *key, bool (*is_type)(json_object *))
{
    json_object *value = NULL;

    return !json_object_object_get_ex(edge, key, &value) || !value || is_type(value);
}

static bool is_edge(json_object *v)
{
    json_object *target = NULL;

    return json_object_is_type(v, json_type_object) && json_object_object_get_ex(v, "target", &target) &&
           rv_json_str(target).len > 0 && is_null_or(v, "relation", rv_json_is_text) &&
           is_null_or(v, "weight", rv_json_is_number);
}

/* What two edges have in common that are the same: the key of the target, and the relation. A target without a letter
 * is its own key. */
static int identity_of(json_object *edge, rv_buf *out, rv_err **err)
{
    json_object *target = NULL;

    json_object_object_get_ex(edge, "target", &target);
    rv_match_write_key(rv_json_str(target), out);
    if (out->len == 0)
        rv_buf_add_str(out, rv_json_str(target));
    rv_buf_putc(out, '\0');
    rv_buf_add_str(out, rv_edge_relation(edge));
    return rv_buf_check(out, "edge", err);
}

struct merge {
    json_object *out; /* owned */
    rv_index places;  /* from identities to places in out */
    rv_arena *arena;  /* of the identities */
};

/* The edge as it is kept: the same one, or a copy whose weight is within 0 and 1. */
static int kept_form(json_object *edge, json_object **out, rv_err **err)
{
    json_object *weight = NULL;
    double w = weight_of(edge);

    json_object_object_get_ex(edge, "weight", &weight);
    int rc = rv_json_dup(edge, out, err);
    if (rc == 0 && weight && json_object_get_double(weight) != w)
        rc = rv_json_set_take(*out, "weight", rv_json_new_double(w), err);
    if (rc < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return rc;
}

static int add_edge(struct merge *m, json_object *edge, rv_err **err)
{
    rv_buf identity = RV_BUF_INIT(RV_MATCH_MAX_TEXT * 8);
    json_object *kept = NULL;
    int rc = identity_of(edge, &identity, err), place = rc == 0 ? rv_index_get(&m->places, rv_buf_str(&identity)) : -1;

    if (rc == 0 && place >= 0) {
        if (weight_of(edge) > weight_of(json_object_array_get_idx(m->out, place)))
            rc = kept_form(edge, &kept, err);
        if (rc == 0 && kept && json_object_array_put_idx(m->out, place, kept) != 0) {
            json_object_put(kept);
            rc = RV_FAIL(err, RV_E_NOMEM, "merge edges");
        }
    } else if (rc == 0 && json_object_array_length(m->out) >= RV_EDGES_MAX) {
        rc = RV_FAIL(err, RV_E_LIMIT, "an entity has more than %d edges", RV_EDGES_MAX);
    } else if (rc == 0) {
        const char *text = rv_arena_dup(m->arena, rv_buf_str(&identity));
        place = (int)json_object_array_length(m->out);
        rc = text ? rv_index_add(&m->places, (rv_str){text, identity.len}, place) : RV_E_NOMEM;
        if (rc < 0)
            rc = RV_FAIL(err, rc, "merge edges");
        if (rc == 0)
            rc = kept_form(edge, &kept, err);
        if (rc == 0)
            rc = rv_json_push_take(m->out, kept, err);
    }
    rv_buf_fini(&identity);
    return rc;
}

static int add_edges(struct merge *m, json_object *edges, size_t *n_refused, rv_err **err)
{
    size_t n = edges ? json_object_array_length(edges) : 0;

    for (size_t i = 0; i < n; i++) {
        json_object *edge = json_object_array_get_idx(edges, i);
        int rc = is_edge(edge) ? add_edge(m, edge, err) : 0;
        if (rc < 0)
            return rc;
        *n_refused += !is_edge(edge);
    }
    return 0;
}

/* The array itself, or the one that a string contains; *out is a reference of the caller's, NULL for none. */
static int open_array(json_object *edges, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_JSON_BYTES, .what = "edges", .allow_duplicates = true};
    json_object *array = NULL;
    int rc = 0;

    if (rv_json_is_text(edges))
        rc = rv_json_parse(rv_json_str(edges), &opts, &array, err);
    else
        array = json_object_get(edges);
    if (rc == 0 && array && !json_object_is_type(array, json_type_array)) {
        rc = RV_FAIL(err, RV_E_INVALID, "edges must be a list, not %s", rv_json_type_text(array));
        json_object_put(array);
    }
    if (rc == 0)
        *out = array;
    return rc;
}

static int merge(json_object *existing, json_object *more, json_object **out, size_t *n_refused, rv_err **err)
{
    struct merge m = {json_object_new_array(), {NULL, 0, 0}, rv_arena_new((size_t)64 << 20)};
    size_t n_left_out = 0;
    int rc = m.out && m.arena ? 0 : RV_FAIL(err, RV_E_NOMEM, "merge edges");

    if (rc == 0)
        rc = add_edges(&m, existing, &n_left_out, err);
    n_left_out = 0;
    if (rc == 0)
        rc = add_edges(&m, more, &n_left_out, err);
    if (rc == 0) {
        *out = json_object_get(m.out);
        if (n_refused)
            *n_refused = n_left_out;
    }
    json_object_put(m.out);
    rv_index_fini(&m.places);
    rv_arena_free(m.arena);
    return rc;
}

int rv_edges_merge(json_object *existing, json_object *more, json_object **out, size_t *n_refused, rv_err **err)
{
    json_object *old = NULL, *new = NULL;
    int rc = open_array(existing, &old, err);

    if (rc == 0)
        rc = open_array(more, &new, err);
    if (rc == 0)
        rc = merge(old, new, out, n_refused, err);
    json_object_put(old);
    json_object_put(new);
    return rc;
}
