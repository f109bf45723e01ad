/* Tasks that a worker handles by itself, unless a handler is given for their type:
 *
 *   notify     a reminder comes due: written to the store at once
 *   dreaming   of a user and a dreamer: a run (coreengine/app/memory.h); without a dreamer, or for all users of the
 *              tenant: one such task for each
 *   webhook    a run ended, or waits: told to a receiver (hook.c)
 *   summary    a chunk of a session: a run of the agent that writes its summary
 *
 * A task may be taken up again after its work was done and before the store was told: nothing is done twice then. */
#include "coreengine/app/dreaming/dreaming_internal.h"
#include "coreengine/app/memory.h"
#include "coreengine/app/past.h"
#include "coreengine/app/worker/hook_internal.h"
#include "coreengine/app/worker/worker_internal.h"
#include "coreengine/base/base.h"

#include <stdio.h>
#include <string.h>

static int refuse(struct work_job *j, rv_err **err, const char *text);
static const char *script_of(const struct work_taker *t, const struct work_job *j);
static int text_of(struct work_job *j, const char *key, const char **out, rv_err **err);

/* --- summaries: an agent writes that of a chunk. Its run is made and driven as that of any task; its words are kept in
 * the transaction that completes the task, so a worker that dies before has changed nothing, and the next one finds the
 * run and does not ask the model again --- */

#define STAGE "summary"
/* bytes of what a task of ours hands to a model or keeps: a conversation's part */
#define MAX_TEXT ((size_t)4 << 20)
/* bytes of the pipeline that is written for one task: it is a template of ours with a few names */
#define MAX_PIPELINE ((size_t)4 << 10)
#define MAX_SAID     ((size_t)256 << 10) /* bytes of what a task of ours says: a quarter of RV_TASK_MAX_JSON */

/* --- before the run --- */

static int skip(struct work_job *j, const char *why)
{
    rv_jw w = rv_jw_on(&j->result);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "ok");
    rv_jw_kv_text(&w, "skipped", why);
    rv_jw_obj_end(&w);
    j->end = WORK_DONE;
    return 0;
}

static int read_names(struct work_job *j, rv_err **err)
{
    struct work_summary *s = &j->summary;
    int rc = text_of(j, "moment", &s->moment, err);

    if (rc == 0)
        rc = text_of(j, "agent", &s->agent, err);
    if (rc == 0 && (!s->moment || !s->moment[0]))
        rc = refuse(j, err, "the payload needs \"moment\", the id of a chunk");
    if (rc == 0 && (!s->agent || !rv_agentdoc_is_name(rv_str_of(s->agent))))
        rc = refuse(j, err, "the payload needs \"agent\", the name of an agent");
    return rc;
}

static int write_summary(struct work_taker *t, struct work_job *j, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, j->task.user};
    struct work_summary *s = &j->summary;
    rv_err *cause = NULL;
    int rc = read_names(j, err);

    if (rc < 0)
        return rc;
    rv_buf_fini(&s->text);
    s->text = RV_BUF_INIT(MAX_TEXT);
    s->hash[0] = '\0';
    rc = rv_app_read_chunk(t->store, &scope, s->moment, &s->text, s->hash, &cause);
    if (rc == RV_E_NOT_FOUND) { /* deleted since */
        rv_err_free(cause);
        return skip(j, "the chunk is gone");
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    return rc == 0 && s->text.len == 0 ? skip(j, "the chunk has no words") : rc;
}

/* --- its run --- */

static int load(struct rv_app_run *run, const char *script, const char *agent, struct rv_app_loaded *loaded,
                rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_PIPELINE);
    struct rv_app_load_opts opts = {.script = script, .keeps = true, .store = run->store};

    rv_buf_printf(&text,
                  "name: summary\n"
                  "description: Writes the summary of a part of a conversation.\n"
                  "models:\n"
                  "  default: {model: \"${env:REEVE_MODEL}\", optional: true}\n"
                  "max_llm_calls: 4\n"
                  "agents:\n"
                  "  - {name: " STAGE ", agent: \"%s\", default_next: end}\n", /* 123 is a name */
                  agent);
    opts.text = rv_buf_str(&text);
    int rc = rv_buf_check(&text, "pipeline", err);
    if (rc == 0)
        rc = rv_app_load(run->app, "summary", &opts, loaded, err);
    if (rc == 0)
        rc = app_check_all(loaded, false, err);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "summarise with agent \"%s\"", agent) : 0;
}

static int envelope_of(const struct work_job *j, const char *id, rv_envelope **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *state = json_object_new_object();

    if (!state)
        return RV_FAIL(err, RV_E_NOMEM, "begin to summarise");
    rv_json_build_text(&b, state, "envelope_id", id);
    if (j->task.user[0])
        rv_json_build_text(&b, state, "user_id", j->task.user);
    rv_json_build_text(&b, state, "raw_input", rv_buf_cstr(&j->summary.text));
    json_object *metadata = rv_json_build(&b, state, "metadata", json_object_new_object());
    rv_json_build_text(&b, metadata, "moment", j->summary.moment);
    rv_json_build_text(&b, metadata, "text_hash", j->summary.hash);
    int rc = b.rc == 0 ? rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), out, err) : b.rc;
    json_object_put(state);
    return rc;
}

static int summary_make(struct work_taker *t, struct work_job *j, const char *id, rv_err **err)
{
    const struct rv_app_begin begin = {.limits = &j->limits, .counts = RV_QUOTA_TASKS};
    struct rv_app_loaded loaded = {0};
    struct rv_app app = j->app;
    struct rv_app_run run = {.app = &app, .loaded = &loaded, .mode = RV_UNSET, .store = t->store};
    rv_envelope *env = NULL;
    app.scope.user = j->task.user;
    int rc = app_run_prepare(&run, err);

    if (rc == 0)
        rc = load(&run, script_of(t, j), j->summary.agent, &loaded, err);
    if (rc == 0)
        rc = envelope_of(j, id, &env, err);
    if (rc == 0)
        rc = app_keep(&run, env, &begin, err);
    rv_journal_free(run.journal);
    run.journal = NULL;
    rv_envelope_free(env);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return rc;
}

/* --- after it --- */

/* A structured answer has its summary in the member of that name; every other one is the summary. */
static const char *said_of(const rv_envelope *env)
{
    json_object *output = rv_envelope_output(env, RV_STR_LIT(STAGE), NULL);
    const char *text = NULL;

    if (json_object_is_type(output, json_type_string))
        return json_object_get_string(output);
    return output && (rv_json_get_text(output, "summary", &text) || rv_json_get_text(output, "response", &text)) ? text
                                                                                                                 : "";
}

static void summary_result(struct work_job *j, enum rv_run_status status, const rv_envelope *env)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    json_object *hash = rv_envelope_metadata(env, RV_STR_LIT("text_hash"), NULL);
    struct work_summary *s = &j->summary;
    const char *said = said_of(env);
    rv_jw w = rv_jw_on(&j->result);

    rv_buf_fini(&s->said);
    s->said = RV_BUF_INIT(MAX_SAID);
    if (status != RV_RUN_COMPLETED) {
        app_work_not_done(j, f->termination_reason ? f->termination_reason : rv_run_status_text(status));
        return;
    }
    if (rv_str_trim(rv_str_of(said)).len == 0) {
        app_work_not_done(j, "the agent wrote no summary");
        return;
    }
    snprintf(s->hash, sizeof s->hash, "%s", hash ? json_object_get_string(hash) : "");
    rv_buf_puts(&s->said, said);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "ok");
    rv_jw_kv_text(&w, "run", j->run);
    rv_jw_kv_text(&w, "moment", s->moment);
    rv_jw_kv_int(&w, "io_tokens", f->usage.input_tokens + f->usage.output_tokens);
    rv_jw_obj_end(&w);
    j->end = WORK_DONE;
    if (s->said.rc < 0)
        app_work_not_done(j, "the summary is too long");
}

static int summary_keep(rv_store *store, const struct work_job *j, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, j->task.user};
    struct rv_app_summary what = {
        .moment = j->summary.moment, .agent = j->summary.agent, .run = j->run, .now_us = rv_app_now_us()};

    if (!j->run[0]) /* it was skipped */
        return 0;
    if (j->summary.said.len == 0)
        return RV_FAIL(err, RV_E_STATE, "the run of the summary goes on elsewhere");
    memcpy(what.hash, j->summary.hash, sizeof what.hash);
    return rv_app_put_summary(store, &scope, &what, rv_buf_str(&j->summary.said), err);
}

#define MAX_USERS 100 /* of one notice: each gets a row of his own in the same step */

/* --- payloads: programs and people wrote them --- */

static int refuse(struct work_job *j, rv_err **err, const char *text)
{
    j->end = WORK_FATAL;
    return RV_FAIL(err, RV_E_INVALID, "%s", text);
}

static int read_payload(struct work_job *j, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TASK_MAX_JSON, .what = "payload of a task"};
    int rc = rv_json_parse(j->task.payload, &opts, &j->asked, err);

    if (rc == 0 && !json_object_is_type(j->asked, json_type_object))
        rc = refuse(j, err, "the payload of a task is an object");
    if (rc < 0)
        j->end = WORK_FATAL;
    return rc;
}

/* A text of the payload; NULL: it is not there. RV_E_INVALID and WORK_FATAL: it is something else. */
static int text_of(struct work_job *j, const char *key, const char **out, rv_err **err)
{
    *out = NULL;
    if (!json_object_object_get_ex(j->asked, key, NULL) || rv_json_get_text(j->asked, key, out))
        return 0;
    j->end = WORK_FATAL;
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" of the payload is not a string", key);
}

/* The file that answers for the models of the task; NULL: none does. */
static const char *script_of(const struct work_taker *t, const struct work_job *j)
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
        return refuse(j, err, "\"user_ids\" of the payload names more than " RV_LIMIT_TEXT(MAX_USERS) " users");
    if (!users && !j->task.user[0])
        return refuse(j, err, "the payload needs \"user_ids\", a list of users");
    if (!users)
        return tell_user(t, j, notice, j->task.user, w, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *user = json_object_array_get_idx(users, i);
        if (!json_object_is_type(user, json_type_string) || json_object_get_string_len(user) < 1 ||
            json_object_get_string_len(user) > RV_STORE_MAX_ID)
            return refuse(j, err, "\"user_ids\" of the payload is not a list of users");
        if (j->task.user[0] && strcmp(json_object_get_string(user), j->task.user) != 0)
            return refuse(j, err, "\"user_ids\" of the payload names another user than that of the task");
        rc = tell_user(t, j, notice, json_object_get_string(user), w, err);
    }
    return rc;
}

static int notify(struct work_taker *t, struct work_job *j, rv_err **err)
{
    struct rv_app_notice notice = {.key = j->task.id, .now_us = rv_app_now_us(), .rand = rv_rand_system()};
    rv_jw w = rv_jw_on(&j->result);
    int rc = text_of(j, "title", &notice.title, err);

    if (rc == 0)
        rc = text_of(j, "body", &notice.body, err);
    if (rc == 0 && (!notice.title || !notice.title[0]))
        rc = refuse(j, err, "the payload needs \"title\", a text");
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
    int rc = text_of(j, "date", &date, err);

    j->dream.day_us = j->task.created_us;
    if (rc < 0 || !date || rv_day_parse(rv_str_of(date), &j->dream.day_us))
        return rc;
    return refuse(j, err, "\"date\" of the payload is not a day such as 2026-02-24");
}

static int read_dream(const struct work_taker *t, struct work_job *j, rv_err **err)
{
    json_object *days = NULL;
    int rc = text_of(j, "agent", &j->dream.agent, err);

    if (rc == 0)
        rc = read_date(j, err);
    if (rc == 0 && j->dream.agent && !rv_agentdoc_is_name(rv_str_of(j->dream.agent)))
        rc = refuse(j, err, "\"agent\" of the payload is not the name of an agent");
    j->dream.days = RV_DREAM_DAYS;
    if (rc == 0 && json_object_object_get_ex(j->asked, "days", &days) &&
        (!rv_json_get_int(j->asked, "days", &j->dream.days) || j->dream.days < 1 || j->dream.days > RV_DREAM_MAX_DAYS))
        rc = refuse(j, err, "\"days\" of the payload is not a number from 1 to " RV_LIMIT_TEXT(RV_DREAM_MAX_DAYS));
    if (rc == 0 && rv_json_get_bool(j->asked, "again", &j->dream.again) && j->dream.again)
        j->dream.salt = j->task.id; /* this task dreams once, however often it is taken up */
    j->dream.again = false;
    j->dream.script = script_of(t, j);
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
    int rc = read_dream(t, j, err);

    if (rc < 0)
        return rc;
    bool all = rv_json_bool_or(j->asked, "all_users", false);
    if (!j->task.user[0] && !all)
        return refuse(j, err, "skipped_no_user: the task has no user, and its payload does not say all_users");
    return !j->task.user[0] || !j->dream.agent ? spread(t, j, !j->task.user[0], err) : 0;
}

static int make_dream(struct work_taker *t, struct work_job *j, const char *id, rv_err **err)
{
    struct rv_app_loaded loaded = {0};
    struct rv_app app = j->app;
    struct rv_app_run run = {.app = &app, .loaded = &loaded, .mode = RV_UNSET, .store = t->store};
    rv_envelope *env = NULL;
    app.scope.user = j->task.user;
    int rc = app_run_prepare(&run, err);

    if (rc == 0)
        rc = app_dream_keep(&run, &j->dream, id, &loaded, &env, err);
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

    app_dream_result(j->run, &j->dream, status, env, &j->result);
    int rc = j->result.rc < 0 ? j->result.rc
                              : rv_json_parse(rv_buf_str(&j->result), NULL, &o,
                                              RV_CODE_ONLY("the task is told below why its result is missing"));
    if (rc == 0) {
        rv_buf_clear(&j->result);
        app_work_take_object(j, o);
    } else {
        app_work_not_done(j, rc == RV_E_NOMEM ? "no memory to read the result of the dreaming"
                                              : "the result of the dreaming cannot be read");
    }
    json_object_put(o);
}

/* --- which --- */

static const struct work_handler own[] = {
    {.type = RV_DREAM_TASK, .own = dream, .dreams = true, .make = make_dream, .result = take_dream},
    {.type = RV_NOTIFY_TASK, .own = notify},
    {.type = RV_WEBHOOK_TASK, .own = app_work_hook_make},
    {.type = RV_SUMMARY_TASK,
     .own = write_summary,
     .make = summary_make,
     .result = summary_result,
     .keep = summary_keep},
};

const struct work_handler *app_work_own_handler(const char *type)
{
    for (size_t i = 0; i < RV_COUNT(own); i++)
        if (strcmp(own[i].type, type) == 0)
            return &own[i];
    return NULL;
}

int app_work_own(struct work_taker *t, struct work_job *j, rv_err **err)
{
    int rc = read_payload(j, err);

    return rc == 0 ? j->handler->own(t, j, err) : rc;
}
