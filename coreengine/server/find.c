/* POST /KIND/search: rows of a kind by meaning, by tags, by columns and by time, as REMLight searches its scenarios. */

#include <string.h>

#include <json-c/linkhash.h>
#include <strings.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/store/store.h"

#define LEAST_ALIKE 0.3 /* cosine below which texts have nothing in common */
#define MAX_FOUND   100 /* by meaning: less alike ones are noise to a person */
#define MAX_COLUMNS 32  /* of a kind, that a misspelt one is compared with: kinds have fewer */

struct search {
    struct srv_call *c;
    const struct rv_kind *kind;
    json_object *tags; /* of the body; NULL: any */
    bool any_tag;
    const char *name; /* a part of the name; NULL: any */
    int64_t after_us, before_us, limit, offset, n;
    rv_jw w;
};

static bool has_tag(json_object *tags, json_object *tag)
{
    for (size_t i = 0; tags && i < json_object_array_length(tags); i++)
        if (rv_json_equal(json_object_array_get_idx(tags, i), tag))
            return true;
    return false;
}

static bool fits_tags(const struct search *s, json_object *row)
{
    size_t n = s->tags ? json_object_array_length(s->tags) : 0, n_had = 0;

    for (size_t i = 0; i < n; i++)
        n_had += has_tag(rv_json_get_arr(row, "tags"), json_object_array_get_idx(s->tags, i));
    return n == 0 || (s->any_tag ? n_had > 0 : n_had == n);
}

/* ASCII letters in any case. */
static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; strlen(text) >= n; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return false;
}

/* Members of the body that are columns of the kind are conditions. */
static bool fits_columns(const struct search *s, json_object *row)
{
    json_object_object_foreach (s->c->body, key, value) {
        json_object *have = NULL;
        if (value && strcmp(key, "name") != 0 && rv_kind_find_field(s->kind, rv_str_of(key)) &&
            (!json_object_object_get_ex(row, key, &have) || !rv_json_equal(have, value)))
            return false;
    }
    return true;
}

static bool fits(const struct search *s, json_object *row)
{
    const char *name = "", *text = NULL;
    int64_t made_us = 0;

    if (s->name && (!rv_json_get_text(row, "name", &name) || !contains(name, s->name)))
        return false;
    if (!rv_json_get_text(row, "created_at", &text) || !rv_time_read(rv_str_of(text), &made_us))
        made_us = 0;
    return (!s->after_us || made_us >= s->after_us) && (!s->before_us || made_us <= s->before_us) &&
           fits_tags(s, row) && fits_columns(s, row);
}

static int take(struct search *s, json_object *row, json_object *similarity, rv_err **err)
{
    if (!fits(s, row) || s->n++ < s->offset || s->n - s->offset > s->limit)
        return 0;
    int rc = rv_json_set_ref(row, "similarity", similarity, err);
    if (rc == 0)
        rv_jw_value(&s->w, row);
    return rc;
}

static int take_row(void *self, json_object *row, rv_err **err)
{
    return take(self, row, NULL, err);
}

static int by_meaning(struct search *s, const char *text, rv_err **err)
{
    const struct rv_knowledge_embedder embedder = rv_app_make_embedder(&s->c->app);
    const struct rv_knowledge_search query = {.text = rv_str_of(text),
                                              .table = rv_str_of(s->kind->name),
                                              .min_similarity = LEAST_ALIKE,
                                              .limit = MAX_FOUND,
                                              .embedder = &embedder};
    json_object *found = NULL;
    int rc = s->kind->embedded ? rv_knowledge_search(s->c->store, &s->c->app.scope, &query, &found, NULL, err)
                               : RV_FAIL(err, RV_E_INVALID, "rows of %s are not searched by meaning", s->kind->name);

    for (size_t i = 0; rc == 0 && i < json_object_array_length(found); i++) {
        json_object *hit = json_object_array_get_idx(found, i), *score = NULL;
        json_object_object_get_ex(hit, "similarity_score", &score);
        rc = take(s, rv_json_get_obj(hit, "data"), score, err);
    }
    json_object_put(found);
    return rc;
}

static int read_time(struct srv_call *c, const char *key, int64_t *out, rv_err **err)
{
    const char *text = NULL;
    int rc = srv_body_text(c, key, false, &text, err);

    return rc == 0 && text ? rv_time_parse(rv_str_of(text), out, err) : rc;
}

static int read_search(struct search *s, rv_err **err)
{
    json_object *body = s->c->body;
    const char *match = NULL;
    int rc = read_time(s->c, "created_after", &s->after_us, err);

    if (rc == 0)
        rc = read_time(s->c, "created_before", &s->before_us, err);
    s->tags = rv_json_get_arr(body, "tags");
    if (rc == 0)
        rc = srv_body_text(s->c, "tag_match", false, &match, err);
    s->any_tag = match && strcmp(match, "any") == 0;
    if (rc == 0)
        rc = srv_body_text(s->c, "name_contains", false, &s->name, err);
    if (rc == 0 && json_object_object_get_ex(body, "limit", NULL) &&
        (!rv_json_get_int(body, "limit", &s->limit) || s->limit < 1 || s->limit > SRV_MAX_LIMIT))
        rc = RV_FAIL(err, RV_E_INVALID, "limit must be a whole number from 1 to %d", SRV_MAX_LIMIT);
    if (rc == 0 && json_object_object_get_ex(body, "offset", NULL) &&
        (!rv_json_get_int(body, "offset", &s->offset) || s->offset < 0))
        rc = RV_FAIL(err, RV_E_INVALID, "offset must be a whole number from 0");
    return rc;
}

/* A condition that is misspelt would be met by every row. */
static int check_members(const struct search *s, rv_err **err)
{
    static const char *const others[] = {"query",         "tags",           "tag_match", "name_contains",
                                         "created_after", "created_before", "limit",     "offset"};
    const char *names[RV_COUNT(others) + MAX_COLUMNS];
    size_t n = RV_COUNT(others);

    memcpy(names, others, sizeof others);
    for (size_t i = 0; i < s->kind->n_fields && n < RV_COUNT(names); i++)
        names[n++] = s->kind->fields[i].name;
    json_object_object_foreach (s->c->body, key, unused) {
        bool is_known = rv_kind_find_field(s->kind, rv_str_of(key)) != NULL;
        (void)unused;
        for (size_t i = 0; i < RV_COUNT(others); i++)
            is_known = is_known || strcmp(key, others[i]) == 0;
        if (is_known)
            continue;
        const char *nearest = rv_nearest(rv_str_of(key), names, n);
        int rc =
            RV_FAIL(err, RV_E_INVALID, "the body has an unknown member \"%.*s\", which is not a column of %s either",
                    RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 64)), s->kind->name);
        if (nearest)
            rv_err_set_hint(err, "did you mean \"%s\"?", nearest);
        else
            rv_err_set_hint(err, "its columns are in docs/reference/entities.md");
        return rc;
    }
    return 0;
}

int srv_rows_search(struct srv_call *c, rv_err **err)
{
    struct search s = {.c = c, .limit = 20};
    const struct rv_entity_filter all = {.limit = RV_ENTITY_ALL};
    const char *text = NULL;
    int rc = srv_kind_of(c, &s.kind, err);

    if (rc == 0)
        rc = check_members(&s, err);
    if (rc == 0)
        rc = read_search(&s, err);
    if (rc == 0)
        rc = srv_body_text(c, "query", false, &text, err);
    if (rc < 0)
        return rc;
    s.w = srv_call_json(c, 200);
    rv_jw_obj(&s.w);
    rv_jw_key(&s.w, "results");
    rv_jw_arr(&s.w);
    if (text && text[0])
        rc = by_meaning(&s, text, err);
    else
        rc = rv_store_find_entities(c->store, &c->app.scope, &(const struct rv_entities_of){s.kind->name, &all},
                                    take_row, &s, err);
    rv_jw_arr_end(&s.w);
    rv_jw_kv_int(&s.w, "total", s.n);
    rv_jw_obj_end(&s.w);
    return rc;
}
