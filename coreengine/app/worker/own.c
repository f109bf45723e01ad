/* Tasks that a worker handles by itself, unless a handler is given for their type:
 *
 *   notify     a reminder comes due: written to the store at once
 *   dreaming   of a user and a dreamer: a run (coreengine/app/dreaming.h); without a dreamer, or for all users of the
 *              tenant: one such task for each
 *   webhook    a run ended, or waits: told to a receiver (hook.c)
 *   summary    a chunk of a session: a run of the agent that writes its summary (summary.c)
 *
 * A task may be taken up again after its work was done and before the store was told: nothing is done twice then. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/dreaming/dreaming_internal.h"
#include "coreengine/app/memory.h"
#include "coreengine/app/past.h"
#include "coreengine/app/worker/hook_internal.h"
#include "coreengine/base/limit.h"

#define MAX_USERS 100 /* of one notice */

/* --- payloads: programs and people wrote them --- */

int rv_work_refuse(struct work_job *j, rv_err **err, const char *text)
{
    j->end = WORK_FATAL;
    return RV_FAIL(err, RV_E_INVALID, "%s", text);
}

static int read_payload(struct work_job *j, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TASK_MAX_JSON, .what = "payload of a task"};
    int rc = rv_json_parse(j->task.payload, &opts, &j->asked, err);

    if (rc == 0 && !json_object_is_type(j->asked, json_type_object))
        rc = rv_work_refuse(j, err, "the payload of a task is an object");
    if (rc < 0)
        j->end = WORK_FATAL;
    return rc;
}

int rv_work_text_of(struct work_job *j, const char *key, const char **out, rv_err **err)
{
    *out = NULL;
    if (!json_object_object_get_ex(j->asked, key, NULL) || rv_json_get_text(j->asked, key, out))
        return 0;
    j->end = WORK_FATAL;
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" of the payload is not a string", key);
}

const char *rv_work_script(const struct work_taker *t, const struct work_job *j)
{
    for (size_t i = 0; i < t->opts->n_scripts; i++)
        if (strcmp(t->opts->scripts[i].type, j->task.type) == 0)
            return t->opts->scripts[i].target;
    return NULL;
}

/* --- notify --- */

static int tell_user(struct work_taker *t, struct work_job *j, const struct rv_app_notice *notice, const char *user,
                     rv_jw *w, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, user};
    char moment[RV_STORE_MAX_ID + 1], session[RV_STORE_MAX_ID + 1];
    int rc = rv_app_notify(t->store, &scope, notice, moment, session, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(w);
    rv_jw_kv_text(w, "user_id", user);
    rv_jw_kv_text(w, "moment_id", moment);
    rv_jw_kv_text(w, "session_id", session);
    rv_jw_obj_end(w);
    return 0;
}

/* A task of a user reaches no other user. */
static int tell_users(struct work_taker *t, struct work_job *j, const struct rv_app_notice *notice, rv_jw *w,
                      rv_err **err)
{
    json_object *users = rv_json_get_arr(j->asked, "user_ids");
    size_t n = users ? json_object_array_length(users) : 0;
    int rc = 0;

    if (n > MAX_USERS)
        return rv_work_refuse(j, err, "\"user_ids\" of the payload names more than " RV_LIMIT_TEXT(MAX_USERS) " users");
    if (!users && !j->task.user[0])
        return rv_work_refuse(j, err, "the payload needs \"user_ids\", a list of users");
    if (!users)
        return tell_user(t, j, notice, j->task.user, w, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *user = json_object_array_get_idx(users, i);
        if (!json_object_is_type(user, json_type_string) || json_object_get_string_len(user) < 1 ||
            json_object_get_string_len(user) > RV_STORE_MAX_ID)
            return rv_work_refuse(j, err, "\"user_ids\" of the payload is not a list of users");
        if (j->task.user[0] && strcmp(json_object_get_string(user), j->task.user) != 0)
            return rv_work_refuse(j, err, "\"user_ids\" of the payload names another user than that of the task");
        rc = tell_user(t, j, notice, json_object_get_string(user), w, err);
    }
    return rc;
}

static int notify(struct work_taker *t, struct work_job *j, rv_err **err)
{
    struct rv_app_notice notice = {.key = j->task.id, .now_us = rv_app_now_us(), .rand = rv_rand_system()};
    rv_jw w = rv_jw_on(&j->result);
    int rc = rv_work_text_of(j, "title", &notice.title, err);

    if (rc == 0)
        rc = rv_work_text_of(j, "body", &notice.body, err);
    if (rc == 0 && (!notice.title || !notice.title[0]))
        rc = rv_work_refuse(j, err, "the payload needs \"title\", a text");
    notice.body = notice.body ? notice.body : "";
    notice.data = rv_json_get_obj(j->asked, "data");
    if (rc < 0)
        return rc;
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "ok");
    rv_jw_key(&w, "notified");
    rv_jw_arr(&w);
    rc = tell_users(t, j, &notice, &w, err);
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    if (rc == 0)
        j->end = WORK_DONE;
    return rc;
}

/* --- dreaming --- */

static int read_date(struct work_job *j, rv_err **err)
{
    const char *date;
    char whole[32];
    int rc = rv_work_text_of(j, "date", &date, err);

    j->dream.day_us = j->task.created_us;
    if (rc < 0 || !date)
        return rc;
    snprintf(whole, sizeof whole, "%.10sT00:00:00Z", date);
    if (strlen(date) == 10 && rv_time_parse(rv_str_of(whole), &j->dream.day_us, NULL) == 0)
        return 0;
    return rv_work_refuse(j, err, "\"date\" of the payload is not a day such as 2026-02-24");
}

static int read_dream(const struct work_taker *t, struct work_job *j, rv_err **err)
{
    json_object *days = NULL;
    int rc = rv_work_text_of(j, "agent", &j->dream.agent, err);

    if (rc == 0)
        rc = read_date(j, err);
    if (rc == 0 && j->dream.agent && !rv_agentdoc_is_name(rv_str_of(j->dream.agent)))
        rc = rv_work_refuse(j, err, "\"agent\" of the payload is not the name of an agent");
    j->dream.days = RV_DREAM_DAYS;
    if (rc == 0 && json_object_object_get_ex(j->asked, "days", &days) &&
        (!rv_json_get_int(j->asked, "days", &j->dream.days) || j->dream.days < 1 || j->dream.days > RV_DREAM_MAX_DAYS))
        rc = rv_work_refuse(j, err, "\"days\" of the payload is not a number from 1 to 366");
    if (rc == 0 && rv_json_get_bool(j->asked, "again", &j->dream.again) && j->dream.again)
        j->dream.salt = j->task.id; /* this task dreams once, however often it is taken up */
    j->dream.again = false;
    j->dream.script = rv_work_script(t, j);
    return rc;
}

/* One task for each dreamer, and for each user if all are meant. */
static int spread(struct work_taker *t, struct work_job *j, bool all, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, all ? NULL : j->task.user};
    struct rv_dream_queued done;
    rv_jw w = rv_jw_on(&j->result);
    int rc = rv_app_dream_enqueue(t->store, &scope, &j->dream, rv_app_now_us(), &done, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "ok");
    rv_jw_kv_int(&w, "queued", done.n_new);
    rv_jw_kv_int(&w, "queued_before", done.n_old);
    rv_jw_obj_end(&w);
    j->end = WORK_DONE;
    return 0;
}

/* Either it is done by others, or it needs a run: j->end stays WORK_RUNS. */
static int dream(struct work_taker *t, struct work_job *j, rv_err **err)
{
    bool all = false;
    int rc = read_dream(t, j, err);

    if (rc < 0)
        return rc;
    RV_IGNORE(!rv_json_get_bool(j->asked, "all_users", &all), "left out: only the task's own");
    if (!j->task.user[0] && !all)
        return rv_work_refuse(j, err, "skipped_no_user: the task has no user, and its payload does not say all_users");
    return !j->task.user[0] || !j->dream.agent ? spread(t, j, !j->task.user[0], err) : 0;
}

static int make_dream(struct work_taker *t, struct work_job *j, const char *id, rv_err **err)
{
    struct rv_app_loaded loaded = {0};
    struct rv_app app = j->app;
    struct rv_app_run run = {.app = &app, .loaded = &loaded, .mode = RV_UNSET, .store = t->store};
    rv_envelope *env = NULL;
    app.scope.user = j->task.user;
    int rc = rv_app_run_prepare(&run, err);

    if (rc == 0)
        rc = rv_app_dream_keep(&run, &j->dream, id, &loaded, &env, err);
    if (rc == RV_E_QUOTA)
        j->limits.again_us = run.state->limits.again_us;
    rv_envelope_free(env);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return rc;
}

static void take_dream(struct work_job *j, enum rv_run_status status, const rv_envelope *env)
{
    json_object *o = NULL;

    rv_app_dream_result(j->run, &j->dream, status, env, &j->result);
    if (j->result.rc == 0 && rv_json_parse(rv_buf_str(&j->result), NULL, &o, NULL) == 0) {
        rv_buf_clear(&j->result);
        rv_work_take_object(j, o);
    } else {
        rv_work_not_done(j, "the result of the dreaming cannot be read");
    }
    json_object_put(o);
}

/* --- which --- */

static const struct work_handler own[] = {
    {.type = RV_DREAM_TASK, .own = dream, .dreams = true, .make = make_dream, .result = take_dream},
    {.type = RV_NOTIFY_TASK, .own = notify},
    {.type = RV_WEBHOOK_TASK, .own = rv_work_hook_make},
    {.type = RV_SUMMARY_TASK,
     .own = rv_work_summarise,
     .make = rv_work_summary_make,
     .result = rv_work_summary_result,
     .keep = rv_work_summary_keep},
};

const struct work_handler *rv_work_own_handler(const char *type)
{
    for (size_t i = 0; i < RV_COUNT(own); i++)
        if (strcmp(own[i].type, type) == 0)
            return &own[i];
    return NULL;
}

int rv_work_own(struct work_taker *t, struct work_job *j, rv_err **err)
{
    int rc = read_payload(j, err);

    return rc == 0 ? j->handler->own(t, j, err) : rc;
}
