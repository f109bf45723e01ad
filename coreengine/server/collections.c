/* Handlers of the sessions of a collection: listed, put in, taken out, exported with their messages. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"

#define KIND         "collections"
#define MAX_SESSIONS 10000 /* of one collection: their ids are in one row, which is read and written as a whole */

/* --- putting in and taking out --- */

struct change {
    json_object *add; /* array of ids; NULL: none */
    const char *remove;
    int64_t n; /* how many were added or removed */
};

static int check_session(struct srv_call *c, const char *id, rv_err **err)
{
    struct rv_session_row row;
    int rc = rv_store_get_session(c->store, &c->app.scope, id, &row, err);

    if (rc == 0)
        rv_session_row_fini(&row);
    return rc;
}

static int note_id(rv_index *ix, json_object *id, rv_err **err)
{
    return rv_index_add(ix, rv_json_str(id), 0) == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "change a collection") : 0;
}

/* Those that are not there yet, each once. */
static int add_ids(struct srv_call *c, json_object *list, json_object *ids, int64_t *n, rv_err **err)
{
    rv_index there = {0};
    size_t n_there = json_object_array_length(ids), n_list = json_object_array_length(list);
    int rc = 0;

    for (size_t i = 0; i < n_there && rc == 0; i++)
        rc = note_id(&there, json_object_array_get_idx(ids, i), err);
    for (size_t i = 0; i < n_list && rc == 0; i++) {
        json_object *id = json_object_array_get_idx(list, i);
        if (!json_object_is_type(id, json_type_string))
            rc = RV_FAIL(err, RV_E_INVALID, "session_ids must be a list of ids of sessions");
        else if (rv_index_get(&there, rv_json_str(id)) >= 0)
            continue;
        else if (json_object_array_length(ids) >= MAX_SESSIONS)
            rc = RV_FAIL(err, RV_E_LIMIT, "a collection has at most %d sessions", MAX_SESSIONS);
        else
            rc = check_session(c, json_object_get_string(id), err);
        if (rc == 0)
            rc = note_id(&there, id, err);
        if (rc == 0)
            rc = rv_json_push_ref(ids, id, err);
        ++*n;
    }
    rv_index_fini(&there);
    return rc;
}

static int merge(struct srv_call *c, const struct change *how, json_object *old, json_object *ids, int64_t *n,
                 rv_err **err)
{
    int rc = 0;

    *n = 0;
    for (size_t i = 0; old && i < json_object_array_length(old) && rc == 0; i++) {
        json_object *id = json_object_array_get_idx(old, i);
        if (how->remove && rv_str_is(rv_json_str(id), how->remove))
            ++*n;
        else
            rc = rv_json_push_ref(ids, id, err);
    }
    return rc < 0 || !how->add ? rc : add_ids(c, how->add, ids, n, err);
}

/* In a group. */
static int change(struct srv_call *c, const char *collection, struct change *how, rv_err **err)
{
    json_object *old = NULL, *row = json_object_new_object(), *ids = json_object_new_array();
    const char *user = NULL;
    int rc = row && ids ? rv_store_get_entity(c->store, &c->app.scope, KIND, collection, &old, err)
                        : RV_FAIL(err, RV_E_NOMEM, "change a collection");

    if (rc == 0)
        rc = merge(c, how, rv_json_get_arr(old, "session_ids"), ids, &how->n, err);
    if (rc == 0)
        rc = rv_json_set_text(row, "id", collection, err);
    if (rc == 0 && rv_json_get_text(old, "user_id", &user))
        rc = rv_json_set_text(row, "user_id", user, err);
    if (rc == 0)
        rc = rv_json_set_ref(row, "session_ids", ids, err);
    const struct rv_entities_put put = {.kind = KIND, .rows = &row, .n_rows = 1, .now_us = srv_now_us()};
    if (rc == 0 && how->n > 0)
        rc = rv_store_put_entities(c->store, &c->app.scope, &put, NULL, err);
    json_object_put(old);
    json_object_put(row);
    json_object_put(ids);
    return rc;
}

static int change_whole(struct srv_call *c, const char *collection, struct change *how, rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(c->store, err);
        if (rc == 0)
            rc = rv_store_end(c->store, change(c, collection, how, err), err);
    } while (rc < 0 && rv_store_wait_again(c->store, err));
    return rc;
}

int srv_collection_put(struct srv_call *c, const char *collection, json_object *sessions, int64_t *n_added,
                       rv_err **err)
{
    struct change how = {.add = sessions};
    int rc = change_whole(c, collection, &how, err);

    if (rc == 0)
        *n_added = how.n;
    return rc;
}

static int add(struct srv_call *c, json_object *sessions, rv_err **err)
{
    int64_t n = 0;
    int rc = srv_collection_put(c, c->args[0], sessions, &n, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "collection_id", c->args[0]);
    rv_jw_kv_int(&w, "added", n);
    rv_jw_obj_end(&w);
    return 0;
}

int srv_collection_add(struct srv_call *c, rv_err **err)
{
    json_object *given = rv_json_get_arr(c->body, "session_ids"), *one = json_object_new_array();
    const char *id = NULL;
    int rc = one ? 0 : RV_FAIL(err, RV_E_NOMEM, "add a session");

    if (rc == 0 && !given && rv_json_get_text(c->body, "session_id", &id))
        rc = rv_json_push_take(one, json_object_new_string(id), err);
    else if (rc == 0 && !given)
        rc = RV_FAIL(err, RV_E_INVALID, "the body needs \"session_id\" or \"session_ids\"");
    if (rc == 0)
        rc = add(c, given ? given : one, err);
    json_object_put(one);
    return rc;
}

static int take_id(void *self, const struct rv_session_row *row, rv_err **err)
{
    return rv_json_push_take(self, json_object_new_string(row->id), err);
}

int srv_collection_add_found(struct srv_call *c, rv_err **err)
{
    struct rv_session_filter filter = {.limit = MAX_SESSIONS};
    json_object *ids = json_object_new_array();
    const char *since = NULL, *text = NULL;
    int rc = ids ? 0 : RV_FAIL(err, RV_E_NOMEM, "add sessions");

    if (rc == 0)
        rc = srv_body_text(c, "agent_name", false, &filter.agent_name, err);
    if (rc == 0)
        rc = srv_body_text(c, "name_contains", false, &filter.name_contains, err);
    if (rc == 0)
        rc = srv_body_text(c, "search", false, &text, err);
    if (rc == 0)
        rc = srv_body_text(c, "updated_after", false, &since, err);
    if (rc == 0 && since)
        rc = rv_time_parse(rv_str_of(since), &filter.since_us, err);
    if (rc == 0)
        rc = srv_body_int(c, "limit", 1, MAX_SESSIONS, &filter.limit, err);
    if (rc == 0)
        rc = text ? rv_app_grep_sessions(c->store, &c->app.scope,
                                         &(const struct rv_session_grep){.filter = &filter, .text = text}, take_id, ids,
                                         err)
                  : rv_store_list_sessions(c->store, &c->app.scope, &filter, take_id, ids, err);
    if (rc == 0)
        rc = add(c, ids, err);
    json_object_put(ids);
    return rc;
}

int srv_collection_remove(struct srv_call *c, rv_err **err)
{
    struct change how = {.remove = c->args[1]};
    int rc = change_whole(c, c->args[0], &how, err);

    if (rc == 0 && how.n == 0) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the session \"%.200s\" is not in the collection", c->args[1]);
        rv_err_set_hint(err, "GET /collections/{id}/sessions lists those that are");
    }
    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_raw(&w, RV_STR_LIT("{\"deleted\":true}"));
    return 0;
}

/* --- reading --- */

struct messages {
    const char *session;
    rv_jw *w;
};

static int write_message(void *self, const struct rv_message *m, rv_err **err)
{
    const struct messages *l = self;

    (void)err;
    rv_app_message_write(l->session, m, l->w);
    return 0;
}

/* A session that was deleted, or that the caller does not see, is passed over. */
static int write_session(struct srv_call *c, const char *id, bool with_messages, rv_jw *w, rv_err **err)
{
    const struct rv_message_filter all = {.with_children = true};
    struct messages list = {id, w};
    struct rv_session_row row;
    rv_err *why = NULL;
    int rc = rv_store_get_session(c->store, &c->app.scope, id, &row, &why);

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(why);
        return 0;
    }
    if (rc < 0) {
        rv_err_pass(err, why);
        return rc;
    }
    if (with_messages) {
        rv_jw_obj(w);
        rv_jw_kv_text(w, "session_id", id);
        rv_jw_kv_text(w, "name", row.name);
        rv_jw_key(w, "session");
    }
    rv_app_session_write(&row, w);
    rv_session_row_fini(&row);
    if (with_messages) {
        rv_jw_key(w, "messages");
        rv_jw_arr(w);
        rc = rv_store_read_messages(c->store, &c->app.scope, &(const struct rv_messages_of){id, &all}, write_message,
                                    &list, err);
        rv_jw_arr_end(w);
        rv_jw_obj_end(w);
    }
    return rc < 0 ? rc : 0;
}

/* Which sessions of a collection are written. */
struct session_page {
    int64_t offset, limit;
    bool with_messages;
};
static int write_sessions(struct srv_call *c, json_object *row, const struct session_page *page, rv_jw *w, rv_err **err)
{
    json_object *ids = rv_json_get_arr(row, "session_ids");
    int64_t n = ids ? (int64_t)json_object_array_length(ids) : 0;
    int rc = 0;

    rv_jw_arr(w);
    for (int64_t i = page->offset; i < n && i - page->offset < page->limit && rc == 0; i++)
        rc = write_session(c, json_object_get_string(json_object_array_get_idx(ids, (size_t)i)), page->with_messages, w,
                           err);
    rv_jw_arr_end(w);
    return rc;
}

int srv_collection_sessions(struct srv_call *c, rv_err **err)
{
    int64_t limit = SRV_LIMIT, offset = 0;
    json_object *row = NULL;
    int rc = srv_call_int(c, "limit", 1, SRV_MAX_LIMIT, &limit, err);

    if (rc == 0)
        rc = srv_call_int(c, "offset", 0, INT64_MAX / 2, &offset, err);
    if (rc == 0)
        rc = rv_store_get_entity(c->store, &c->app.scope, KIND, c->args[0], &row, err);
    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rc = write_sessions(c, row, &(const struct session_page){.offset = offset, .limit = limit, .with_messages = false},
                        &w, err);
    json_object_put(row);
    return rc;
}

int srv_collection_export(struct srv_call *c, rv_err **err)
{
    char time[RV_TIME_MAX];
    json_object *row = NULL;
    int rc = rv_store_get_entity(c->store, &c->app.scope, KIND, c->args[0], &row, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_obj(&w);
    rv_jw_kv_value(&w, "collection", row);
    rv_jw_key(&w, "sessions");
    rc = write_sessions(c, row, &(const struct session_page){.offset = 0, .limit = MAX_SESSIONS, .with_messages = true},
                        &w, err);
    rv_time_format(srv_now_us(), time);
    rv_jw_kv_text(&w, "exported_at", time);
    rv_jw_obj_end(&w);
    json_object_put(row);
    srv_call_field(c, "Content-Disposition", "attachment; filename=\"collection.json\"");
    return rc;
}
