/* LOOKUP: whole rows by their names, in the order of the keys. A key is the name of an entity, an id, the id of a
 * session as it is, or the key of a message ("session-ID-msg-N"); what none of these finds is tried as another spelling
 * of a session's id. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/knowledge/knowledge_internal.h"

#include "coreengine/base/json_text.h"

#define MAX_HITS 64 /* of one key: rows of all kinds and, for an operator, of all users */

struct place {
    const struct rv_kind *kind;
    int64_t row;
};
struct hits {
    struct place list[MAX_HITS];
    size_t n;
    bool is_cut;
};

static int take_hit(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    struct hits *l = self;

    (void)err;
    if (l->n == MAX_HITS)
        l->is_cut = true;
    else
        l->list[l->n++] = (struct place){hit->kind, hit->row};
    return 0;
}

/* A row that is gone by now adds nothing. */
static int passed(int rc, rv_err *cause, rv_err **err)
{
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0 && err)
        *err = cause;
    else
        rv_err_free(cause);
    return rc;
}

/* The session that is called exactly that; *id (owned) tells the hits of the index apart from it. */
static int add_session(struct asking *a, const char *key, json_object **out, rv_err **err)
{
    json_object *row = NULL;
    rv_err *cause = NULL;
    int rc = rv_store_get_entity(a->store, a->scope, "sessions", key, &row, &cause);

    *out = NULL;
    if (rc < 0)
        return passed(rc, cause, err);
    rc = rv_asking_add_row_take(a, "sessions", json_object_get(row), err);
    *out = row;
    return rc;
}

static int add_hit(struct asking *a, const struct place *at, json_object *session, rv_err **err)
{
    json_object *row = NULL;
    rv_err *cause = NULL;
    int rc = rv_store_load_entity(a->store, a->scope, at->kind->name, at->row, &row, &cause);

    if (rc < 0)
        return passed(rc, cause, err);
    if (session && strcmp(at->kind->name, "sessions") == 0 &&
        strcmp(rv_json_text_or(row, "id", ""), rv_json_text_or(session, "id", "")) == 0 &&
        strcmp(rv_json_text_or(row, "user_id", ""), rv_json_text_or(session, "user_id", "")) == 0) {
        json_object_put(row);
        return 0;
    }
    return rv_asking_add_row_take(a, at->kind->name, row, err);
}

static int look_up(struct asking *a, rv_str key, const char *text, rv_err **err)
{
    size_t before = json_object_array_length(a->results);
    struct hits hits = {.n = 0};
    json_object *session = NULL;
    int rc = 0;

    if (key.len > RV_ENTITY_MAX_NAME) /* nothing is called so */
        return 0;
    if (key.len <= RV_STORE_MAX_ID)
        rc = add_session(a, text, &session, err);
    if (rc == 0)
        rc = rv_store_lookup(a->store, a->scope, key, take_hit, &hits, err);
    for (size_t i = 0; i < hits.n && rc == 0; i++)
        rc = add_hit(a, &hits.list[i], session, err);
    json_object_put(session);
    a->is_truncated = a->is_truncated || hits.is_cut;
    if (rc == 0 && json_object_array_length(a->results) == before && !a->is_truncated)
        rc = rv_asking_look_up_alike(a, key, err);
    return rc;
}

int rv_asking_look_up(struct asking *a, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < a->q->n_keys && rc == 0 && !a->is_truncated; i++) {
        char *text = rv_str_dup(a->q->keys[i]);
        rc = text ? look_up(a, a->q->keys[i], text, err) : RV_FAIL(err, RV_E_NOMEM, "look up a key");
        free(text);
    }
    return rc;
}
