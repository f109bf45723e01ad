/* Dreamings as tasks: whose dreamers there are, and which users did something. */
#include "coreengine/app/dreaming/dreaming_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_USERS   1000000 /* of one call: their ids are kept in memory */
#define USERS_ONCE  100     /* whose tasks one transaction adds: other writers have their turn between two */
#define MAX_PAYLOAD 4096    /* bytes of a task's payload: some ids and numbers */

/* --- the dreamers of a tenant --- */

static int take_tenant(void *self, json_object *row, rv_err **err)
{
    json_object **out = self, *list = NULL, *metadata = rv_json_get_obj(row, "metadata");
    size_t n;

    if (!metadata || !json_object_object_get_ex(metadata, "dreamer_agents", &list))
        return 0;
    n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : SIZE_MAX;
    if (n > RV_DREAM_MAX_AGENTS)
        return RV_FAIL(err, RV_E_INVALID, "dreamer_agents of tenant \"%s\" is not a list of at most %d names of agents",
                       dream_text(row, "name"), RV_DREAM_MAX_AGENTS);
    for (size_t i = 0; i < n; i++) {
        json_object *name = json_object_array_get_idx(list, i);
        if (!json_object_is_type(name, json_type_string) ||
            !rv_agentdoc_is_name((rv_str){json_object_get_string(name), (size_t)json_object_get_string_len(name)}))
            return RV_FAIL(err, RV_E_INVALID, "dreamer_agents of tenant \"%s\": item %zu is not the name of an agent",
                           dream_text(row, "name"), i + 1);
    }
    json_object_put(*out);
    *out = json_object_get(list);
    return RV_STORE_ENOUGH;
}

int rv_app_dream_find_agents(rv_store *store, const struct rv_store_scope *scope, json_object **out, rv_err **err)
{
    const char *tenant = scope->tenant ? scope->tenant : RV_STORE_TENANT;
    const struct rv_store_scope all = {.tenant = tenant};
    const struct rv_entity_filter filter = {.name = tenant};
    json_object *list = NULL;
    const bool reveals = rv_store_reveal(store, true); /* their names are in its metadata */
    int rc = rv_store_find_entities(store, &all, &(const struct rv_entities_of){"tenants", &filter}, take_tenant, &list,
                                    err);

    rv_store_reveal(store, reveals);
    if (rc == 0 && (!list || json_object_array_length(list) == 0)) {
        json_object_put(list);
        list = json_object_new_array();
        rc = list ? rv_json_push_take(list, json_object_new_string(RV_DREAM_AGENT), err)
                  : RV_FAIL(err, RV_E_NOMEM, "list dreamers");
    }
    if (rc < 0)
        json_object_put(list);
    else
        *out = list;
    return rc;
}

/* --- users who did something --- */

struct users {
    char **items; /* owned, each once */
    size_t n, cap;
    rv_index places; /* of the items, which it borrows */
};

static int add_user(struct users *u, const char *user, rv_err **err)
{
    if (!user[0] || rv_index_get(&u->places, rv_str_of(user)) >= 0)
        return 0;
    if (u->n == MAX_USERS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d users did something", MAX_USERS);
    if (!rv_has_room(&u->items, &u->cap, u->n + 1, sizeof *u->items) || !(u->items[u->n] = rv_str_dup(rv_str_of(user))))
        return RV_FAIL(err, RV_E_NOMEM, "list users");
    u->n++;
    return rv_index_add(&u->places, rv_str_of(u->items[u->n - 1]), (int)u->n) == 0
               ? 0
               : RV_FAIL(err, RV_E_NOMEM, "list users");
}

static int take_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    return strcmp(row->mode, RV_DREAM_MODE) == 0 ? 0 : add_user(self, row->user, err);
}

static int take_row(void *self, json_object *row, rv_err **err)
{
    return add_user(self, dream_text(row, "user_id"), err);
}

static int find_users(rv_store *store, const struct rv_store_scope *tenant, int64_t since_us, struct users *u,
                      rv_err **err)
{
    const struct rv_session_filter sessions = {.since_us = since_us};
    const struct rv_entity_filter files = {.since_us = since_us, .limit = RV_ENTITY_ALL};
    int rc = rv_store_list_sessions(store, tenant, &sessions, take_session, u, err);

    return rc == 0 ? rv_store_find_entities(store, tenant, &(const struct rv_entities_of){"files", &files}, take_row, u,
                                            err)
                   : rc;
}

/* --- tasks --- */

/* Tasks of dreaming that are queued, for whom, and their counts. Borrowed. */
struct queueing {
    const struct rv_app_dream *dream;
    const struct users *users;
    json_object *agents; /* names, where dream has none */
    int64_t now_us;
    struct rv_dream_queued *out;
};

static int add_task(rv_store *store, const struct rv_store_scope *scope, const struct queueing *q, const char *agent,
                    rv_err **err)
{
    const struct rv_app_dream *dream = q->dream;
    rv_buf payload = RV_BUF_INIT(MAX_PAYLOAD);
    rv_jw w = rv_jw_on(&payload);
    char id[RV_ID_MAX], day[RV_TIME_MAX], key[RV_TIME_MAX + RV_AGENTDOC_MAX_NAME + 1];
    const char *need = "capability:" RV_APP_BUILT_IN; /* gathers, and keeps */
    struct rv_enqueued done = {.is_new = false};

    _Static_assert(sizeof key <= RV_STORE_MAX_ID, "a key has room for the longest name of an agent");
    if (!rv_agentdoc_is_name(rv_str_of(agent)))
        return RV_FAIL(err, RV_E_INVALID, "\"%.200s\" is not the name of an agent", agent);
    rv_time_format(dream->day_us, day);
    day[10] = '\0';
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "agent", agent);
    rv_jw_kv_text(&w, "date", day);
    rv_jw_kv_int(&w, "days", dream->days ? dream->days : RV_DREAM_DAYS);
    if (dream->again)
        rv_jw_kv_bool(&w, "again", true);
    rv_jw_obj_end(&w);
    snprintf(key, sizeof key, "%s/%s", day, agent);
    rv_id_make(rv_rand_system(), "task_", id);
    const struct rv_new_task task = {.id = id,
                                     .tenant = scope->tenant,
                                     .user = scope->user,
                                     .type = RV_DREAM_TASK,
                                     .key = key,
                                     .needs = &need,
                                     .n_needs = 1,
                                     .payload = rv_buf_str(&payload),
                                     .max_retries = RV_UNSET,
                                     .now_us = q->now_us};
    int rc = rv_buf_check(&payload, "payload", err);
    if (rc == 0)
        rc = rv_store_enqueue(store, &task, &done, err);
    q->out->n_new += rc == 0 && done.is_new;
    q->out->n_old += rc == 0 && !done.is_new;
    rv_buf_fini(&payload);
    return rc;
}

static int add_tasks(rv_store *store, const struct rv_store_scope *scope, const struct queueing *q, rv_err **err)
{
    int rc = 0;

    if (q->dream->agent)
        return add_task(store, scope, q, q->dream->agent, err);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(q->agents); i++)
        rc = add_task(store, scope, q, json_object_get_string(json_object_array_get_idx(q->agents, i)), err);
    return rc;
}

/* Those of some users, all or none. */
static int enqueue_some(rv_store *store, const struct rv_store_scope *scope, const struct queueing *q, size_t from,
                        size_t to, rv_err **err)
{
    const struct rv_dream_queued before = *q->out;
    int rc;

    do {
        *q->out = before;
        rc = rv_store_begin(store, err);
        if (rc < 0)
            continue;
        for (size_t i = from; rc == 0 && i < to; i++) {
            const struct rv_store_scope one = {scope->tenant, q->users->items[i]};
            rc = add_tasks(store, &one, q, err);
        }
        rc = rv_store_end(store, rc, err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc;
}

/* What an earlier call added is not added again, so a call that failed on the way can be repeated. */
static int enqueue(rv_store *store, const struct rv_store_scope *scope, const struct queueing *q, rv_err **err)
{
    int rc = 0;

    *q->out = (struct rv_dream_queued){0};
    for (size_t from = 0, to; rc == 0 && from < q->users->n; from = to) {
        to = q->users->n - from > USERS_ONCE ? from + USERS_ONCE : q->users->n;
        rc = enqueue_some(store, scope, q, from, to, err);
    }
    return rc;
}

int rv_app_dream_enqueue(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_dream *dream,
                         int64_t now_us, struct rv_dream_queued *out, rv_err **err)
{
    const struct rv_store_scope tenant = {.tenant = scope->tenant};
    struct users users = {.items = NULL};
    json_object *agents = NULL;
    int rc = rv_app_dream_find_agents(store, scope, &agents, err);

    if (rc == 0 && scope->user)
        rc = dream_check_user(scope, err);
    if (rc == 0 && scope->user)
        rc = add_user(&users, scope->user, err);
    if (rc == 0 && !scope->user)
        rc = find_users(store, &tenant, now_us - (dream->days ? dream->days : RV_DREAM_DAYS) * RV_US_PER_DAY, &users,
                        err);
    if (rc == 0)
        rc = enqueue(store, scope, &(struct queueing){dream, &users, agents, now_us, out}, err);
    for (size_t i = 0; i < users.n; i++)
        free(users.items[i]);
    free(users.items);
    rv_index_fini(&users.places);
    json_object_put(agents);
    return rc;
}
