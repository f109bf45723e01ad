/* The timeline of a session: its messages and moments by time, the newest of them. */
#include "coreengine/app/memory.h"

#include "coreengine/base/base.h"

#include <stdlib.h>
#include <string.h>

struct event {
    int64_t at_us;
    int64_t order;     /* of those of one time */
    json_object *json; /* owned */
};
struct timeline {
    struct event *events; /* owned */
    size_t n, cap;
    const char *user; /* whose moments count */
    int64_t limit;
};

static int add_event(struct timeline *t, struct rv_json_build *b, int64_t at_us, json_object *json)
{
    if (b->rc < 0 || !rv_has_room(&t->events, &t->cap, t->n + 1, sizeof *t->events)) {
        json_object_put(json);
        return b->rc < 0 ? b->rc : RV_FAIL(b->err, RV_E_NOMEM, "tell a timeline");
    }
    t->events[t->n] = (struct event){at_us, (int64_t)t->n, json};
    t->n++;
    return 0;
}

static json_object *parsed(struct rv_json_build *b, rv_str text)
{
    json_object *v = NULL;

    if (b->rc == 0 && text.len > 0)
        b->rc = rv_json_try_parse(text, NULL, &v, b->err);
    return v;
}

static void put_or_null(struct rv_json_build *b, json_object *to, const char *key, json_object *value)
{
    if (value)
        rv_json_build(b, to, key, value);
    else if (b->rc == 0)
        b->rc = rv_json_set_null(to, key, b->err);
}

static void put_text(struct rv_json_build *b, json_object *to, const char *key, const char *text)
{
    if (b->rc == 0)
        b->rc = rv_json_set_text(to, key, text, b->err);
}

static json_object *new_event(struct rv_json_build *b, const char *type, const char *id, int64_t at_us)
{
    json_object *e = json_object_new_object();
    char time[RV_TIME_MAX];

    if (!e) {
        b->rc = RV_FAIL(b->err, RV_E_NOMEM, "tell a timeline");
        return NULL;
    }
    rv_time_format(at_us, time);
    put_text(b, e, "event_type", type);
    put_text(b, e, "event_id", id);
    put_text(b, e, "event_timestamp", time);
    return e;
}

static int take_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *e = new_event(&b, "message", m->id, m->created_us), *metadata;

    if (!e)
        return b.rc;
    put_text(&b, e, "name_or_type", m->type);
    if (m->has_content)
        rv_json_build(&b, e, "content_or_summary",
                      json_object_new_string_len(m->content.ptr ? m->content.ptr : "", (int)m->content.len));
    else
        put_or_null(&b, e, "content_or_summary", NULL);
    put_text(&b, e, "encryption_level", m->encryption_level);
    metadata = rv_json_build(&b, e, "metadata", json_object_new_object());
    rv_json_build_int(&b, metadata, "token_count", m->token_count);
    put_or_null(&b, metadata, "tool_calls", parsed(&b, m->tool_calls));
    put_text(&b, metadata, "agent_name", m->agent_name);
    put_text(&b, metadata, "model", m->model);
    return add_event(self, &b, m->created_us, e);
}

static json_object *copy_of(struct rv_json_build *b, json_object *row, const char *key)
{
    json_object *v = NULL, *copy = NULL;

    if (b->rc == 0 && json_object_object_get_ex(row, key, &v))
        b->rc = rv_json_dup(v, &copy, b->err);
    return copy;
}

static int take_moment(void *self, json_object *row, rv_err **err)
{
    struct timeline *t = self;
    struct rv_json_build b = {.err = err};
    const char *user = rv_json_text_or(row, "user_id", NULL), *starts = rv_json_text_or(row, "starts_timestamp", NULL);
    json_object *e, *metadata;
    int64_t at_us = 0;

    if (strcmp(user ? user : "", t->user) != 0) /* a session of that id of another user */
        return 0;
    if (!rv_time_read(rv_str_of(starts ? starts : rv_json_text_or(row, "created_at", NULL)), &at_us))
        return 0;
    e = new_event(&b, "moment", rv_json_text_or(row, "id", NULL), at_us);
    if (!e)
        return b.rc;
    put_text(&b, e, "name_or_type", rv_json_text_or(row, "moment_type", NULL));
    put_or_null(&b, e, "content_or_summary", copy_of(&b, row, "summary"));
    put_or_null(&b, e, "encryption_level", copy_of(&b, row, "encryption_level"));
    metadata = rv_json_build(&b, e, "metadata", json_object_new_object());
    put_text(&b, metadata, "name", rv_json_text_or(row, "name", NULL));
    put_text(&b, metadata, "ends_timestamp", rv_json_text_or(row, "ends_timestamp", NULL));
    put_or_null(&b, metadata, "previous_moment_keys", copy_of(&b, row, "previous_moment_keys"));
    put_or_null(&b, metadata, "moment_metadata", copy_of(&b, row, "metadata"));
    return add_event(t, &b, at_us, e);
}

static int by_time(const void *one, const void *two)
{
    const struct event *a = one, *b = two;

    return a->at_us != b->at_us ? (a->at_us > b->at_us) - (a->at_us < b->at_us)
                                : (a->order > b->order) - (a->order < b->order);
}

/* Messages come newest first: those of one time keep the order of the session. */
static void turn_orders(struct timeline *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->events[i].order = -t->events[i].order;
}

static int read_all(rv_store *store, const struct rv_store_scope *owner, const char *session, struct timeline *t,
                    rv_err **err)
{
    const struct rv_message_filter newest = {.newest_first = true, .limit = t->limit};
    const struct rv_entity_filter about = {.about = session, .limit = RV_ENTITY_MAX_FIND};

    int rc =
        rv_store_read_messages(store, owner, &(const struct rv_messages_of){session, &newest}, take_message, t, err);
    turn_orders(t);
    return rc < 0 ? rc
                  : rv_store_find_entities(store, owner, &(const struct rv_entities_of){"moments", &about}, take_moment,
                                           t, err);
}

static int tell(struct timeline *t, json_object **out, rv_err **err)
{
    json_object *list = json_object_new_array();
    size_t from = t->n > (size_t)t->limit ? t->n - (size_t)t->limit : 0;
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "tell a timeline");

    if (t->n > 0)
        qsort(t->events, t->n, sizeof *t->events, by_time);
    for (size_t i = from; i < t->n && rc == 0; i++)
        rc = rv_json_push_ref(list, t->events[i].json, err);
    if (rc == 0)
        *out = list;
    else
        json_object_put(list);
    return rc;
}

int rv_app_build_timeline(rv_store *store, const struct rv_store_scope *scope, const char *session, int64_t limit,
                          json_object **out, rv_err **err)
{
    struct rv_session_row row = {0};
    struct timeline t = {.limit = limit};

    if (limit < 1 || limit > RV_APP_MAX_EVENTS)
        return RV_FAIL(err, RV_E_INVALID, "a timeline has from 1 to %d events, not %lld", RV_APP_MAX_EVENTS,
                       (long long)limit);
    int rc = rv_store_get_session(store, scope, session, &row, err);
    if (rc < 0)
        return rc;
    const struct rv_store_scope owner = {row.tenant, row.user};
    t.user = row.user;
    rc = read_all(store, &owner, session, &t, err);
    if (rc == 0)
        rc = tell(&t, out, err);
    for (size_t i = 0; i < t.n; i++)
        json_object_put(t.events[i].json);
    free(t.events);
    rv_session_row_fini(&row);
    return rc;
}
