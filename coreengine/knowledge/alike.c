/* Sessions and messages whose keys are spelled in another way than they were given. The index of names has the names of
 * sessions and not their ids, so the ids of the scope's sessions are compared one by one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/knowledge/knowledge_internal.h"
#include "coreengine/match/match.h"

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

    rv_match_key(rv_str_of(name), &spelt);
    bool same = spelt.rc == 0 && rv_str_eq(rv_buf_str(&spelt), rv_buf_str(&l->wanted));
    rv_buf_fini(&spelt);
    return same;
}

static bool has_message(const struct alike *l, const char *session)
{
    char key[RV_MESSAGE_MAX_KEY];

    if (l->seq == 0)
        return false;
    rv_message_key(session, l->seq, key);
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

struct place {
    const char *kind; /* NULL: nothing was found */
    int64_t row;
};

static int take_place(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    (void)err;
    *(struct place *)self = (struct place){hit->kind->name, hit->row};
    return RV_STORE_ENOUGH;
}

static int add(struct asking *a, int rc, const char *kind, json_object *row, rv_err *cause, rv_err **err)
{
    if (rc == 0)
        return rv_asking_add_row_take(a, kind, row, err);
    if (rc != RV_E_NOT_FOUND && err) {
        *err = cause;
        return rc;
    }
    rv_err_free(cause);
    return rc == RV_E_NOT_FOUND ? 0 : rc;
}

static int add_message(struct asking *a, const char *session, int64_t seq, rv_err **err)
{
    char key[RV_MESSAGE_MAX_KEY];
    struct place at = {NULL, 0};
    json_object *row = NULL;
    rv_err *cause = NULL;

    rv_message_key(session, seq, key);
    int rc = rv_store_lookup(a->store, a->scope, rv_str_of(key), take_place, &at, err);
    if (rc < 0 || !at.kind)
        return rc < 0 ? rc : 0;
    rc = rv_store_load_entity(a->store, a->scope, at.kind, at.row, &row, &cause);
    return add(a, rc, at.kind, row, cause, err);
}

static int add_session(struct asking *a, const char *session, rv_err **err)
{
    json_object *row = NULL;
    rv_err *cause = NULL;
    int rc = rv_store_get_entity(a->store, a->scope, "sessions", session, &row, &cause);

    return add(a, rc, "sessions", row, cause, err);
}

static int find(struct asking *a, struct alike *l, rv_err **err)
{
    static const struct rv_session_filter all = {0};
    int rc = rv_store_list_sessions(a->store, a->scope, &all, take_session, l, err);

    for (size_t i = 0; i < l->n && rc == 0; i++) {
        if (has_message(l, l->ids[i]))
            rc = add_message(a, l->ids[i], l->seq, err);
        if (rc == 0 && is_alike(l, l->ids[i]))
            rc = add_session(a, l->ids[i], err);
    }
    return rc;
}

int rv_asking_look_up_alike(struct asking *a, rv_str key, rv_err **err)
{
    struct alike l = {.wanted = RV_BUF_INIT(4 * LONGEST_KEY)};
    bool is_cut = false;
    rv_str session;
    int rc = 0;

    rv_match_key(key, &l.wanted);
    if (l.wanted.rc == RV_E_NOMEM)
        rc = RV_FAIL(err, RV_E_NOMEM, "look up a key");
    if (rc == 0 && l.wanted.rc == 0 && l.wanted.len > 0) { /* a longer key cannot exist */
        if (!rv_message_key_read(rv_buf_str(&l.wanted), &session, &l.seq, &is_cut) || is_cut)
            l.seq = 0;
        rc = find(a, &l, err);
    }
    while (l.n > 0)
        free(l.ids[--l.n]);
    free(l.ids);
    rv_buf_fini(&l.wanted);
    return rc;
}
