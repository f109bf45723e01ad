/* The front of the store for sessions and their messages; see store.c. */
#include "coreengine/store/front_internal.h"

int rv_store_ensure_session(rv_store *s, const struct rv_session_row *fresh, struct rv_session_row *out, rv_err **err)
{
    char name[RV_STORE_NAME_ROOM];
    struct rv_session_row given, got = {0};
    int rc = rv_store_check_session(fresh, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "ensure session");
    given = *fresh;
    rv_store_session_name(given.id, name);
    given.name = given.name ? given.name : name;
    given.mode = given.mode ? given.mode : "chat";
    given.status = given.status ? given.status : rv_session_status_text(RV_SESSION_ACTIVE);
    given.metadata = given.metadata.len > 0 ? given.metadata : RV_STR_LIT("{}");
    given.updated_us = given.created_us;
    given.total_tokens = given.n_messages = 0;
    given.own = NULL;
    RV_STORE_ENTER(rv_store_enter_write, s, "ensure_session", err);
    rc = rv_store_leave(s, s->ops->ensure_session(s->self, &given, out ? &got : NULL, err), "ensure_session.done", err);
    if (rc == 0 && out)
        *out = got;
    else
        rv_session_row_fini(&got);
    return rc;
}

int rv_store_get_session(rv_store *s, const struct rv_store_scope *scope, const char *id, struct rv_session_row *out,
                         rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_session_row row = {0};
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("session id", id, err)) < 0)
        return RV_WRAP(err, rc, "get session");
    RV_STORE_ENTER(rv_store_enter, s, "get_session", err);
    rc = rv_store_leave(s, s->ops->get_session(s->self, &sc, id, &row, err), "get_session.done", err);
    if (rc == 0)
        *out = row;
    else
        rv_session_row_fini(&row);
    return rc;
}

int rv_store_change_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                            const struct rv_session_change *change, rv_err **err)
{
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("session id", id, err)) < 0 ||
        (rc = rv_store_check_change(change, err)) < 0)
        return RV_WRAP(err, rc, "change session");
    RV_STORE_ENTER(rv_store_enter_write, s, "change_session", err);
    return rv_store_leave(s, s->ops->change_session(s->self, &sc, id, change, err), "change_session.done", err);
}

int rv_store_list_sessions(rv_store *s, const struct rv_store_scope *scope, const struct rv_session_filter *filter,
                           int (*each)(void *self, const struct rv_session_row *row, rv_err **err), void *self,
                           rv_err **err)
{
    static const struct rv_session_filter all = {0};
    struct rv_store_scope sc;
    int rc;

    if (!filter)
        filter = &all;
    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_sessions(filter, err)) < 0)
        return RV_WRAP(err, rc, "list sessions");
    RV_STORE_ENTER(rv_store_enter, s, "list_sessions", err);
    s->is_walking = true;
    rc = s->ops->list_sessions(s->self, &sc, filter, each, self, err);
    s->is_walking = false;
    return rv_store_leave(s, rc, "list_sessions.done", err);
}

int rv_store_delete_session(rv_store *s, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                            rv_err **err)
{
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("session id", id, err)) < 0 ||
        (rc = rv_store_check_time("the time", now_us, err)) < 0)
        return RV_WRAP(err, rc, "delete session");
    RV_STORE_ENTER(rv_store_enter_write, s, "delete_session", err);
    return rv_store_leave(s, s->ops->delete_session(s->self, &sc, id, now_us, err), "delete_session.done", err);
}

int rv_store_delete_message(rv_store *s, const struct rv_store_scope *scope, const char *session, int64_t seq,
                            int64_t now_us, rv_err **err)
{
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("session id", session, err)) < 0 ||
        (rc = rv_store_check_time("the time", now_us, err)) < 0)
        return RV_WRAP(err, rc, "delete message");
    RV_STORE_ENTER(rv_store_enter_write, s, "delete_message", err);
    return rv_store_leave(s, s->ops->delete_message(s->self, &sc, session, seq, now_us, err), "delete_message.done",
                          err);
}

int rv_store_read_messages(rv_store *s, const struct rv_store_scope *scope, const char *session,
                           const struct rv_message_filter *filter,
                           int (*each)(void *self, const struct rv_message *m, rv_err **err), void *self, rv_err **err)
{
    struct rv_message_filter given = filter ? *filter : (struct rv_message_filter){0};
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("session id", session, err)) < 0 ||
        (rc = rv_store_check_messages(&given, err)) < 0)
        return RV_WRAP(err, rc, "read messages");
    if (given.upto_seq == 0)
        given.upto_seq = INT64_MAX;
    RV_STORE_ENTER(rv_store_enter, s, "read_messages", err);
    s->is_walking = true;
    rc = s->ops->read_messages(s->self, &sc, session, &given, each, self, err);
    s->is_walking = false;
    return rv_store_leave(s, rc == RV_STORE_ENOUGH ? 0 : rc, "read_messages.done", err);
}

int rv_store_add_messages(rv_store *s, const struct rv_store_scope *scope, const struct rv_turn *turn, int64_t now_us,
                          rv_err **err)
{
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_turn(turn, err)) < 0 ||
        (rc = rv_store_check_time("the time", now_us, err)) < 0)
        return RV_WRAP(err, rc, "add messages");
    RV_STORE_ENTER(rv_store_enter_write, s, "add_messages", err);
    return rv_store_leave(s, s->ops->add_messages(s->self, &sc, turn, now_us, err), "add_messages.done", err);
}
