/* Sessions by name, agent, tags and time, a page at a time. */
#include "coreengine/app/memory.h"

#include <string.h>
#include <strings.h>

struct searching {
    const struct rv_app_session_search *s;
    rv_store *store;
    const struct rv_store_scope *scope;
    json_object *results;
    int64_t total;
};

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return n == 0;
}

static const char *text_of(json_object *row, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(row, key, &text) ? text : "";
}

/* Sessions are their owner's: here rows without an owner are not everybody's. */
static bool fits(const struct searching *s, json_object *row)
{
    int64_t updated_us = 0;

    if (s->scope->user && strcmp(text_of(row, "user_id"), s->scope->user) != 0)
        return false;
    if (s->s->name && !contains(text_of(row, "name"), s->s->name))
        return false;
    if (s->s->agent && strcasecmp(text_of(row, "agent_name"), s->s->agent) != 0)
        return false;
    return s->s->since_us == 0 || (rv_time_parse(rv_str_of(text_of(row, "updated_at")), &updated_us, NULL) == 0 &&
                                   updated_us >= s->s->since_us);
}

static int take(void *self, json_object *row, rv_err **err)
{
    struct searching *s = self;
    int64_t from = (s->s->page - 1) * s->s->size;

    if (!fits(s, row) || s->total++ < from || s->total > from + s->s->size)
        return 0;
    return rv_json_push_ref(s->results, row, err);
}

static int add_counts(const struct searching *s, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(s->results) && rc == 0; i++) {
        json_object *row = json_object_array_get_idx(s->results, i);
        const struct rv_store_scope owner = {s->scope->tenant, text_of(row, "user_id")};
        struct rv_session_row session = {0};
        rc = rv_store_get_session(s->store, &owner, text_of(row, "id"), &session, err);
        if (rc == 0)
            rc = rv_json_set_int(row, "message_count", session.n_messages, err);
        if (rc == 0)
            rc = rv_json_set_null(row, "similarity", err);
        rv_session_row_fini(&session);
    }
    return rc;
}

static int page_of(const struct searching *s, json_object **out, rv_err **err)
{
    json_object *page = json_object_new_object();
    int rc = page ? rv_json_set_ref(page, "results", s->results, err) : RV_FAIL(err, RV_E_NOMEM, "search sessions");

    if (rc == 0)
        rc = rv_json_set_int(page, "page", s->s->page, err);
    if (rc == 0)
        rc = rv_json_set_int(page, "size", s->s->size, err);
    if (rc == 0)
        rc = rv_json_set_int(page, "total", s->total, err);
    if (rc == 0)
        *out = page;
    else
        json_object_put(page);
    return rc;
}

int rv_app_search_sessions(rv_store *store, const struct rv_store_scope *scope,
                           const struct rv_app_session_search *search, json_object **out, rv_err **err)
{
    const struct rv_entity_filter filter = {
        .tags = search->tags, .n_tags = search->n_tags, .limit = RV_ENTITY_MAX_FIND};
    struct searching s = {.s = search, .store = store, .scope = scope};

    if (search->page < 1 || search->page > RV_ENTITY_MAX_FIND || search->size < 1 || search->size > 100)
        return RV_FAIL(err, RV_E_INVALID, "page %lld of %lld: pages begin with 1, and have from 1 to 100 sessions",
                       (long long)search->page, (long long)search->size);
    s.results = json_object_new_array();
    int rc = s.results ? rv_store_find_entities(store, scope, "sessions", &filter, take, &s, err)
                       : RV_FAIL(err, RV_E_NOMEM, "search sessions");
    if (rc == 0)
        rc = add_counts(&s, err);
    if (rc == 0)
        rc = page_of(&s, out, err);
    json_object_put(s.results);
    return rc;
}
