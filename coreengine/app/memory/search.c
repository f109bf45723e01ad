/* Sessions by name, agent, tags and time, or by what they are about, a page at a time. What a session is about say its
 * name, its description and its moments: three lists, which are fused by reciprocal rank. */
#include "coreengine/app/memory.h"
#include "coreengine/base/base.h"
#include "coreengine/match/match.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define N_ALIKE     2      /* sessions and moments */
#define ALIKE_LIMIT 100    /* sessions and moments that SEARCH finds: half of the rows that REM returns at most */
#define LEAST_ALIKE 0.3    /* cosine */
#define NO_SCORE    (-2.0) /* below every cosine */

struct searching {
    const struct rv_app_session_search *s;
    rv_store *store;
    const struct rv_store_scope *scope;
    json_object *results; /* owned */
    int64_t total;
    /* With a query: */
    json_object *alike[N_ALIKE]; /* results of SEARCH: descriptions of sessions, summaries of moments; owned */
    json_object *found;          /* rows of sessions in any of the lists, newest first; owned */
};

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return n == 0;
}

/* Sessions are their owner's: here rows without an owner are not everybody's. */
static bool fits(const struct searching *s, json_object *row)
{
    int64_t updated_us = 0;

    if (s->scope->user && strcmp(rv_json_text_or(row, "user_id", ""), s->scope->user) != 0)
        return false;
    if (s->s->name && !contains(rv_json_text_or(row, "name", ""), s->s->name))
        return false;
    if (s->s->agent && strcasecmp(rv_json_text_or(row, "agent_name", ""), s->s->agent) != 0)
        return false;
    return s->s->since_us == 0 || (rv_time_read(rv_str_of(rv_json_text_or(row, "updated_at", "")), &updated_us) &&
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

/* --- by what they are about --- */

/* The session of a hit, which is a row of a session or of a moment; a moment of another user is not about it. */
static bool is_of(json_object *hit, json_object *session)
{
    json_object *row = rv_json_get_obj(hit, "data");
    bool is_moment = strcmp(rv_json_text_or(hit, "entity_type", ""), "moments") == 0;
    const char *user = rv_json_text_or(row, "user_id", "");

    if (strcmp(rv_json_text_or(row, is_moment ? "source_session_id" : "id", ""), rv_json_text_or(session, "id", "")) !=
        0)
        return false;
    return (is_moment && !*user) || strcmp(user, rv_json_text_or(session, "user_id", "")) == 0;
}

static bool is_named(const struct searching *s, json_object *session)
{
    return contains(rv_json_text_or(session, "name", ""), s->s->query);
}

static int take_alike(void *self, json_object *row, rv_err **err)
{
    struct searching *s = self;
    bool is_one = false;

    if (!fits(s, row))
        return 0;
    is_one = is_named(s, row);
    for (size_t k = 0; k < N_ALIKE && !is_one; k++)
        for (size_t i = 0; i < json_object_array_length(s->alike[k]) && !is_one; i++)
            is_one = is_of(json_object_array_get_idx(s->alike[k], i), row);
    return is_one ? rv_json_push_ref(s->found, row, err) : 0;
}

static int search_alike(struct searching *s, const struct rv_entity_filter *filter, rv_err **err)
{
    static const char *const kinds[N_ALIKE] = {"sessions", "moments"};
    int rc = 0;

    for (size_t k = 0; k < N_ALIKE && rc == 0; k++) {
        const struct rv_knowledge_search query = {.text = rv_str_of(s->s->query),
                                                  .table = rv_str_of(kinds[k]),
                                                  .min_similarity = LEAST_ALIKE,
                                                  .limit = ALIKE_LIMIT,
                                                  .rank = RV_RANK_HYBRID,
                                                  .embedder = s->s->embedder};
        rc = rv_knowledge_search(s->store, s->scope, &query, &s->alike[k], NULL, err);
    }
    return rc == 0 ? rv_store_find_entities(s->store, s->scope, &(const struct rv_entities_of){"sessions", filter},
                                            take_alike, s, err)
                   : rc;
}

/* Numbers of found sessions in the order of a list, and the best cosine of each. */
struct lists {
    size_t *items[N_ALIKE + 1]; /* owned */
    size_t n[N_ALIKE + 1];
    double *scores;         /* owned */
    struct rv_fused *fused; /* owned */
    size_t n_fused;
};

static bool has_item(const struct lists *l, size_t k, size_t item)
{
    for (size_t i = 0; i < l->n[k]; i++)
        if (l->items[k][i] == item)
            return true;
    return false;
}

static void list_hits(const struct searching *s, struct lists *l, size_t k)
{
    size_t n_found = json_object_array_length(s->found);

    for (size_t i = 0; i < json_object_array_length(s->alike[k]); i++) {
        json_object *hit = json_object_array_get_idx(s->alike[k], i), *score = NULL;
        size_t at = 0;
        while (at < n_found && !is_of(hit, json_object_array_get_idx(s->found, at)))
            at++;
        if (at == n_found)
            continue;
        if (!has_item(l, k, at))
            l->items[k][l->n[k]++] = at;
        json_object_object_get_ex(hit, "similarity_score", &score);
        if (score && json_object_get_double(score) > l->scores[at])
            l->scores[at] = json_object_get_double(score);
    }
}

static int make_lists(const struct searching *s, struct lists *l, rv_err **err)
{
    size_t n = json_object_array_length(s->found);
    struct rv_ranking lists[RV_COUNT(l->items)];

    l->scores = calloc(n + 1, sizeof *l->scores);
    l->fused = calloc(n + 1, sizeof *l->fused);
    bool has_room = l->scores && l->fused;
    for (size_t k = 0; k < RV_COUNT(l->items) && has_room; k++)
        has_room = (l->items[k] = calloc(n + 1, sizeof *l->items[k])) != NULL;
    if (!has_room)
        return RV_FAIL(err, RV_E_NOMEM, "search sessions");
    for (size_t i = 0; i < n; i++) {
        l->scores[i] = NO_SCORE;
        if (is_named(s, json_object_array_get_idx(s->found, i)))
            l->items[N_ALIKE][l->n[N_ALIKE]++] = i;
    }
    for (size_t k = 0; k < N_ALIKE; k++)
        list_hits(s, l, k);
    for (size_t k = 0; k < RV_COUNT(lists); k++)
        lists[k] = (struct rv_ranking){l->items[k], l->n[k]};
    return rv_fuse_ranks(lists, RV_COUNT(lists), n, l->fused, &l->n_fused, err);
}

static int take_page(struct searching *s, const struct lists *l, rv_err **err)
{
    size_t from = (size_t)((s->s->page - 1) * s->s->size), to = from + (size_t)s->s->size;
    int rc = 0;

    s->total = (int64_t)l->n_fused;
    for (size_t i = from; i < l->n_fused && i < to && rc == 0; i++) {
        json_object *row = json_object_array_get_idx(s->found, l->fused[i].item);
        double score = l->scores[l->fused[i].item];
        if (score > NO_SCORE)
            rc = rv_json_set_take(row, "similarity", rv_json_new_double(score), err);
        if (rc == 0)
            rc = rv_json_push_ref(s->results, row, err);
    }
    return rc;
}

static int by_query(struct searching *s, const struct rv_entity_filter *filter, rv_err **err)
{
    struct lists l = {.n_fused = 0};

    s->found = json_object_new_array();
    int rc = s->found ? search_alike(s, filter, err) : RV_FAIL(err, RV_E_NOMEM, "search sessions");
    if (rc == 0)
        rc = make_lists(s, &l, err);
    if (rc == 0)
        rc = take_page(s, &l, err);
    for (size_t k = 0; k < RV_COUNT(l.items); k++)
        free(l.items[k]);
    for (size_t k = 0; k < N_ALIKE; k++)
        json_object_put(s->alike[k]);
    free(l.scores);
    free(l.fused);
    json_object_put(s->found);
    return rc;
}

/* --- a page of them --- */

static int add_counts(const struct searching *s, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(s->results) && rc == 0; i++) {
        json_object *row = json_object_array_get_idx(s->results, i);
        const struct rv_store_scope owner = {s->scope->tenant, rv_json_text_or(row, "user_id", "")};
        struct rv_session_row session = {0};
        rc = rv_store_get_session(s->store, &owner, rv_json_text_or(row, "id", ""), &session, err);
        if (rc == 0)
            rc = rv_json_set_int(row, "message_count", session.n_messages, err);
        if (rc == 0 && !json_object_object_get_ex(row, "similarity", NULL))
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
    const struct rv_entity_filter filter = {.tags = search->tags, .n_tags = search->n_tags, .limit = RV_ENTITY_ALL};
    struct searching s = {.s = search, .store = store, .scope = scope};

    if (search->page < 1 || search->page > RV_ENTITY_MAX_FIND || search->size < 1 || search->size > 100)
        return RV_FAIL(err, RV_E_INVALID, "page %lld of %lld: pages begin with 1, and have from 1 to 100 sessions",
                       (long long)search->page, (long long)search->size);
    s.results = json_object_new_array();
    int rc = s.results ? 0 : RV_FAIL(err, RV_E_NOMEM, "search sessions");
    if (rc == 0)
        rc = search->query && *search->query
                 ? by_query(&s, &filter, err)
                 : rv_store_find_entities(store, scope, &(const struct rv_entities_of){"sessions", &filter}, take, &s,
                                          err);
    if (rc == 0)
        rc = add_counts(&s, err);
    if (rc == 0)
        rc = page_of(&s, out, err);
    json_object_put(s.results);
    return rc;
}
