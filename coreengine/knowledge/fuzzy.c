/* FUZZY: rows of all kinds whose key or summary is spelled like a text. */
#include "coreengine/knowledge/search_internal.h"

#define MAX_KEY     ((size_t)8 * RV_ENTITY_MAX_NAME)
#define MAX_SUMMARY ((size_t)2048)

static int set_from(json_object *data, const char *name, json_object *row, rv_err **err)
{
    json_object *v = NULL;

    json_object_object_get_ex(row, name, &v);
    return rv_json_set_ref(data, name, v, err);
}

static int fill(json_object *data, const struct rv_search_hit *hit, json_object *row, rv_str key, rv_str summary,
                rv_err **err)
{
    int rc = set_from(data, "id", row, err);

    if (rc == 0)
        rc = rv_json_set_str(data, "key", key, err);
    if (rc == 0)
        rc = rv_json_set_text(data, "type", hit->kind->name, err);
    if (rc == 0)
        rc = rv_json_set_str(data, "summary", summary, err);
    if (rc == 0)
        rc = set_from(data, "metadata", row, err);
    return rc < 0 ? rc : set_from(data, "graph_edges", row, err);
}

static int add(json_object *list, const struct rv_search_hit *hit, json_object *row, rv_str key, rv_str summary,
               rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *element = rv_json_build(&b, list, NULL, json_object_new_object());

    rv_json_build_text(&b, element, "entity_type", hit->kind->name);
    rv_json_build(&b, element, "similarity_score", rv_json_double(hit->score));
    json_object *data = rv_json_build(&b, element, "data", json_object_new_object());
    return b.rc < 0 ? b.rc : fill(data, hit, row, key, summary, err);
}

static int add_hit(rv_store *s, const struct rv_store_scope *scope, const struct rv_search_hit *hit, json_object *list,
                   rv_err **err)
{
    rv_buf key = RV_BUF_INIT(MAX_KEY), summary = RV_BUF_INIT(MAX_SUMMARY);
    json_object *row = NULL;
    rv_err *why = NULL;
    int rc = rv_hit_load(s, scope, hit, &row, err);

    if (row) {
        rc = rv_store_read_key(s, scope, hit, &key, &summary, &why);
        rc = rc == 0 ? add(list, hit, row, rv_buf_str(&key), rv_buf_str(&summary), err) : rv_hit_is_gone(rc, why, err);
    }
    json_object_put(row);
    rv_buf_fini(&key);
    rv_buf_fini(&summary);
    return rc;
}

int rv_knowledge_fuzzy(rv_store *s, const struct rv_store_scope *scope, const struct rv_knowledge_fuzzy *query,
                       json_object **out, rv_err **err)
{
    struct rv_search_hits hits = {0};
    json_object *list = NULL;
    int rc = rv_store_search_names(s, scope, &(struct rv_name_search){query->text, query->threshold, query->limit},
                                   &hits, err);

    if (rc == 0 && !(list = json_object_new_array()))
        rc = RV_FAIL(err, RV_E_NOMEM, "search names");
    for (size_t i = 0; i < hits.n && rc == 0; i++)
        rc = add_hit(s, scope, &hits.at[i], list, err);
    rv_search_hits_fini(&hits);
    if (rc == 0)
        *out = list;
    else
        json_object_put(list);
    return rc;
}
