/* Handlers of what a store remembers: the feed of a user's days, timelines of sessions, moments with their sessions,
 * what answers took. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"

static void answer(struct srv_call *c, int status, json_object *value)
{
    rv_jw w = srv_call_json(c, status);

    rv_jw_value(&w, value);
    json_object_put(value);
}

int srv_feed(struct srv_call *c, rv_err **err)
{
    struct rv_app_feed what = {.days = 7, .now_us = srv_now_us()};
    json_object *out = NULL;
    char *before;
    int rc = srv_call_dup_text(c, "before", &before, err);

    what.before_date = before;
    if (rc == 0)
        rc = srv_call_int(c, "days", 1, RV_APP_MAX_DAYS, &what.days, err);
    if (rc == 0)
        rc = srv_call_bool(c, "future", &what.include_future, err);
    if (rc == 0)
        rc = rv_app_feed(c->store, &c->app.scope, &what, &out, err);
    if (rc == 0)
        answer(c, 200, out);
    free(before);
    return rc;
}

int srv_session_timeline(struct srv_call *c, rv_err **err)
{
    json_object *out = NULL;
    int64_t limit = SRV_LIMIT;
    int rc = srv_call_int(c, "limit", 1, RV_APP_MAX_EVENTS, &limit, err);

    if (rc == 0)
        rc = rv_app_build_timeline(c->store, &c->app.scope, c->args[0], limit, &out, err);
    if (rc == 0)
        answer(c, 200, out);
    return rc;
}

static int write_row(void *self, json_object *row, rv_err **err)
{
    (void)err;
    rv_jw_value(self, row);
    return 0;
}

int srv_session_moments(struct srv_call *c, rv_err **err)
{
    struct rv_entity_filter filter = {.about = c->args[0], .limit = SRV_LIMIT};
    struct rv_session_row row;
    int rc = rv_store_get_session(c->store, &c->app.scope, c->args[0], &row, err);

    if (rc < 0)
        return rc;
    rv_session_row_fini(&row);
    rv_jw w = srv_call_json(c, 200);
    rv_jw_arr(&w);
    rc = srv_call_int(c, "limit", 1, SRV_MAX_LIMIT, &filter.limit, err);
    if (rc == 0)
        rc = srv_call_int(c, "offset", 0, INT64_MAX / 2, &filter.offset, err);
    if (rc == 0)
        rc = rv_store_find_entities(c->store, &c->app.scope, &(const struct rv_entities_of){"moments", &filter},
                                    write_row, &w, err);
    rv_jw_arr_end(&w);
    return rc;
}

/* A moment with the session in which it can be talked about; only a user has such sessions. */
int srv_moment_post(struct srv_call *c, rv_err **err)
{
    struct rv_app_moment_session what = {.moment = c->body, .now_us = srv_now_us(), .rand = rv_rand_system()};
    char session[RV_STORE_MAX_ID + 1];
    json_object *row = NULL;

    int rc = srv_body_text(c, "source_session_id", false, &what.session, err);
    if (rc == 0)
        rc = rv_app_put_moment(c->store, &c->app.scope, &what, session, &row, err);
    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 201);
    rv_jw_obj(&w);
    rv_jw_kv_value(&w, "moment", row);
    rv_jw_kv_text(&w, "session_id", session);
    rv_jw_obj_end(&w);
    json_object_put(row);
    return 0;
}

int srv_sessions_search(struct srv_call *c, rv_err **err)
{
    const struct rv_knowledge_embedder embedder = rv_app_make_embedder(&c->app);
    struct rv_app_session_search search = {.page = 1, .size = 20, .embedder = &embedder};
    json_object *out = NULL, *given = NULL, *tags = rv_json_get_arr(c->body, "tags");
    const char *texts[RV_ENTITY_MAX_TAGS], *since = NULL;
    int rc = srv_body_text(c, "name", false, &search.name, err);

    if (rc == 0)
        rc = srv_body_text(c, "query", false, &search.query, err);
    if (rc == 0)
        rc = srv_body_text(c, "agent", false, &search.agent, err);
    if (rc == 0)
        rc = srv_body_text(c, "since", false, &since, err);
    if (rc == 0)
        rc = srv_body_int(c, "page", INT64_MIN, INT64_MAX, &search.page, err);
    if (rc == 0)
        rc = srv_body_int(c, "page_size", INT64_MIN, INT64_MAX, &search.size, err);
    if (rc == 0 && json_object_object_get_ex(c->body, "tags", &given) && given && !tags)
        rc = RV_FAIL(err, RV_E_INVALID, "tags must be a list of texts");
    if (rc == 0 && tags && json_object_array_length(tags) > RV_COUNT(texts))
        rc = RV_FAIL(err, RV_E_LIMIT, "there are %zu tags, and at most %d fit", json_object_array_length(tags),
                     RV_ENTITY_MAX_TAGS);
    if (rc < 0)
        return rc;
    for (size_t i = 0; tags && i < json_object_array_length(tags); i++) {
        json_object *tag = json_object_array_get_idx(tags, i);
        if (!json_object_is_type(tag, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "tags must be a list of texts");
        texts[search.n_tags++] = json_object_get_string(tag);
    }
    search.tags = texts;
    if (since)
        rc = rv_time_parse(rv_str_of(since), &search.since_us, err);
    if (rc == 0)
        rc = rv_app_search_sessions(c->store, &c->app.scope, &search, &out, err);
    if (rc == 0)
        answer(c, 200, out);
    return rc;
}

/* --- what answers took --- */

static int read_time(const struct srv_call *c, const char *name, int64_t *out, rv_err **err)
{
    rv_str text;
    int rc = srv_call_query(c, name, &text) && text.len > 0 ? rv_time_parse(text, out, err) : 0;

    return rc < 0 ? RV_WRAP(err, rc, "the parameter \"%s\"", name) : 0;
}

int srv_usage_answers(struct srv_call *c, rv_err **err)
{
    struct rv_app_usage_by by;
    json_object *out = NULL;
    char *words;
    int rc = srv_call_dup_text(c, "by", &words, err);

    if (rc == 0)
        rc = rv_app_usage_by_parse(words ? words : "user,agent,model", &by, err);
    if (rc == 0)
        rc = read_time(c, "since", &by.since_us, err);
    if (rc == 0)
        rc = read_time(c, "until", &by.until_us, err);
    if (rc == 0)
        rc = rv_app_build_usage(c->store, &c->app.scope, &by, &out, err);
    if (rc == 0)
        answer(c, 200, out);
    free(words);
    return rc;
}

int srv_me(struct srv_call *c, rv_err **err)
{
    rv_buf scopes = RV_BUF_INIT(2000);
    rv_jw w = srv_call_json(c, 200);

    (void)err;
    rv_scopes_write(c->who.scopes, &scopes);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "level", rv_level_text(c->who.level));
    rv_jw_kv_text(&w, "tenant_id", c->who.tenant);
    rv_jw_kv_text(&w, "user_id", c->who.user[0] ? c->who.user : NULL);
    rv_jw_kv_text(&w, "name", c->who.name[0] ? c->who.name : NULL);
    rv_jw_kv_text(&w, "email", c->who.email[0] ? c->who.email : NULL);
    rv_jw_kv_buf(&w, "scopes", &scopes);
    rv_jw_obj_end(&w);
    rv_buf_fini(&scopes);
    return 0;
}
