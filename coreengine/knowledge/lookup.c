/* LOOKUP: whole rows by their names, in the order of the keys. A key is the name of an entity, an id, the id of a
 * session as it is, or the key of a message ("session-ID-msg-N"); what none of these finds is tried as another spelling
 * of a session's id. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/knowledge/knowledge_internal.h"

#include "coreengine/base/base.h"
#include "coreengine/match/match.h"

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
    if (rc < 0)
        rv_err_pass(err, cause);
    else
        rv_err_free(cause);
    return rc;
}

/* The same, {entity_type, data}; data is taken. */
static int add_row_take(struct asking *a, const char *kind, json_object *data, rv_err **err)
{
    json_object *result = json_object_new_object();
    int rc = result ? rv_json_set_text(result, "entity_type", kind, err) : RV_FAIL(err, RV_E_NOMEM, "add a result");

    if (rc < 0) {
        json_object_put(data);
        json_object_put(result);
        return rc;
    }
    rc = rv_json_set_take(result, "data", data, err);
    if (rc == 0)
        return knowledge_asking_add_take(a, result, NULL, err);
    json_object_put(result);
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
    rc = add_row_take(a, "sessions", json_object_get(row), err);
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
    return add_row_take(a, at->kind->name, row, err);
}

/* --- sessions and messages whose keys are spelled in another way than they were given: the index of names has the
 * names of sessions and not their ids, so the ids of the scope's sessions are compared one by one --- */

/* Keys of messages are cut where they would be too long, and then do not say of which session they are. No session that
 * a store keeps has an id that long. */
#define LONGEST_KEY (sizeof "session-" - 1 + RV_STORE_MAX_ID + sizeof "-msg-" - 1 + sizeof "9223372036854775807")
static_assert(LONGEST_KEY < RV_MESSAGE_MAX_KEY, "keys of messages name their session");

struct alike {
    rv_buf wanted; /* that spelling of the key */
    int64_t seq;   /* of the message that it names; 0: none */
    char **ids;    /* of sessions; owned */
    size_t n, cap;
};

static bool is_alike(const struct alike *l, const char *name)
{
    rv_buf spelt = RV_BUF_INIT(4 * LONGEST_KEY);

    rv_match_write_key(rv_str_of(name), &spelt);
    bool same = spelt.rc == 0 && rv_str_eq(rv_buf_str(&spelt), rv_buf_str(&l->wanted));
    rv_buf_fini(&spelt);
    return same;
}

static bool has_message(const struct alike *l, const char *session)
{
    char key[RV_MESSAGE_MAX_KEY];

    if (l->seq == 0)
        return false;
    rv_message_make_key(session, l->seq, key);
    return is_alike(l, key);
}

static int take_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    struct alike *l = self;

    if (!is_alike(l, row->id) && !has_message(l, row->id))
        return 0;
    if (!rv_has_room(&l->ids, &l->cap, l->n + 1, sizeof *l->ids))
        return RV_FAIL(err, RV_E_NOMEM, "look up a key");
    l->ids[l->n] = rv_str_dup(rv_str_of(row->id));
    if (!l->ids[l->n])
        return RV_FAIL(err, RV_E_NOMEM, "look up a key");
    l->n++;
    return 0;
}

struct named {
    const char *kind; /* NULL: nothing was found */
    int64_t row;
};

static int take_place(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    (void)err;
    *(struct named *)self = (struct named){hit->kind->name, hit->row};
    return RV_STORE_ENOUGH;
}

static int add_spelt(struct asking *a, int rc, const char *kind, json_object *row, rv_err *cause, rv_err **err)
{
    return rc == 0 ? add_row_take(a, kind, row, err) : passed(rc, cause, err);
}

static int add_message(struct asking *a, const char *session, int64_t seq, rv_err **err)
{
    char key[RV_MESSAGE_MAX_KEY];
    struct named at = {NULL, 0};
    json_object *row = NULL;
    rv_err *cause = NULL;

    rv_message_make_key(session, seq, key);
    int rc = rv_store_lookup(a->store, a->scope, rv_str_of(key), take_place, &at, err);
    if (rc < 0 || !at.kind)
        return rc < 0 ? rc : 0;
    rc = rv_store_load_entity(a->store, a->scope, at.kind, at.row, &row, &cause);
    return add_spelt(a, rc, at.kind, row, cause, err);
}

static int add_spelt_session(struct asking *a, const char *session, rv_err **err)
{
    json_object *row = NULL;
    rv_err *cause = NULL;
    int rc = rv_store_get_entity(a->store, a->scope, "sessions", session, &row, &cause);

    return add_spelt(a, rc, "sessions", row, cause, err);
}

static int find_spelt(struct asking *a, struct alike *l, rv_err **err)
{
    static const struct rv_session_filter all = {0};
    int rc = rv_store_list_sessions(a->store, a->scope, &all, take_session, l, err);

    for (size_t i = 0; i < l->n && rc == 0; i++) {
        if (has_message(l, l->ids[i]))
            rc = add_message(a, l->ids[i], l->seq, err);
        if (rc == 0 && is_alike(l, l->ids[i]))
            rc = add_spelt_session(a, l->ids[i], err);
    }
    return rc;
}

static int look_up_alike(struct asking *a, rv_str key, rv_err **err)
{
    struct alike l = {.wanted = RV_BUF_INIT(4 * LONGEST_KEY)};
    bool is_cut = false;
    rv_str session;
    int rc = 0;

    rv_match_write_key(key, &l.wanted);
    if (l.wanted.rc == RV_E_NOMEM)
        rc = RV_FAIL(err, RV_E_NOMEM, "look up a key");
    if (rc == 0 && l.wanted.rc == 0 && l.wanted.len > 0) { /* a longer key cannot exist */
        if (!rv_message_key_read(rv_buf_str(&l.wanted), &session, &l.seq, &is_cut) || is_cut)
            l.seq = 0;
        rc = find_spelt(a, &l, err);
    }
    while (l.n > 0)
        free(l.ids[--l.n]);
    free(l.ids);
    rv_buf_fini(&l.wanted);
    return rc;
}

/* --- all keys --- */

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
        rc = look_up_alike(a, key, err);
    return rc;
}

int knowledge_asking_look_up(struct asking *a, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < a->q->n_keys && rc == 0 && !a->is_truncated; i++) {
        char *text = rv_str_dup(a->q->keys[i]);
        rc = text ? look_up(a, a->q->keys[i], text, err) : RV_FAIL(err, RV_E_NOMEM, "look up a key");
        free(text);
    }
    return rc;
}
