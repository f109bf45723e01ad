/* Handlers that queue work: tasks, and schedules of tasks and of runs. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"

#define MAX_LABELS  RV_TASK_MAX_NEEDS
#define SHOWN_TIMES 5  /* next times of a schedule */
#define SHOWN_FIRED 10 /* last firings of a schedule */

static int labels_of(const struct srv_call *c, const char *labels[MAX_LABELS], size_t *n, rv_err **err)
{
    json_object *list = NULL;

    *n = 0;
    if (json_object_object_get_ex(c->body, "labels", &list) && !json_object_is_type(list, json_type_array))
        return RV_FAIL(err, RV_E_INVALID, "\"labels\" must be a list of at most %d texts", MAX_LABELS);
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object *label = json_object_array_get_idx(list, i);
        if (*n == MAX_LABELS || !json_object_is_type(label, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "\"labels\" must be a list of at most %d texts", MAX_LABELS);
        labels[(*n)++] = json_object_get_string(label);
    }
    return 0;
}

static int payload_of(const struct srv_call *c, rv_buf *out, rv_err **err)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(c->body, "payload", &value) || !value)
        return 0;
    if (!json_object_is_type(value, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "\"payload\" must be an object");
    rv_json_write(value, out);
    return rv_buf_check(out, "payload", err);
}

/* A user queues work for themselves; others may say for whom, "" for none. What *inout is stays when they do not. */
static int user_of(const struct srv_call *c, const char **inout, rv_err **err)
{
    const char *said = NULL;
    int rc = srv_body_text(c, "user_id", false, &said, err);
    const char *user = c->app.scope.user ? c->app.scope.user : said ? said : *inout;

    *inout = user && user[0] ? user : NULL;
    return rc;
}

/* What has a way of its own into the queue. */
static int check_type(const char *type, rv_err **err)
{
    if (strcmp(type, RV_TASK_OF_RUN) != 0)
        return 0;
    int rc = RV_FAIL(err, RV_E_INVALID, "tasks of type \"%s\" are not queued so", type);
    rv_err_set_hint(err, "POST /runs starts a run; a schedule with \"pipeline\" starts one again and again");
    return rc;
}

int srv_task_post(struct srv_call *c, rv_err **err)
{
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    const char *labels[MAX_LABELS], *due = NULL;
    struct rv_needs needs = {NULL, 0};
    struct rv_enqueued out;
    char id[RV_ID_MAX];
    size_t n_labels = 0;
    struct rv_new_task task = {
        .id = id, .tenant = c->app.scope.tenant, .max_retries = RV_UNSET, .now_us = srv_now_us()};

    rv_id_make(rv_rand_system(), "task_", id);
    int rc = srv_body_text(c, "type", true, &task.type, err);
    if (rc == 0)
        rc = user_of(c, &task.user, err);
    if (rc == 0)
        rc = check_type(task.type, err);
    if (rc == 0)
        rc = srv_body_text(c, "key", false, &task.key, err);
    if (rc == 0)
        rc = srv_body_text(c, "scheduled_at", false, &due, err);
    if (rc == 0 && due)
        rc = rv_time_parse(rv_str_of(due), &task.scheduled_us, err);
    if (rc == 0)
        rc = srv_body_int(c, "priority", -RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY, &task.priority, err);
    if (rc == 0)
        rc = srv_body_int(c, "max_retries", 0, RV_TASK_MAX_RETRIES, &task.max_retries, err);
    if (rc == 0)
        rc = labels_of(c, labels, &n_labels, err);
    for (size_t i = 0; i < n_labels && rc == 0; i++)
        rc = rv_needs_add_label(&needs, labels[i], err);
    if (rc == 0)
        rc = payload_of(c, &payload, err);
    task.payload = rv_buf_str(&payload);
    task.needs = (const char *const *)needs.items;
    task.n_needs = needs.n;
    if (rc == 0)
        rc = rv_store_enqueue(c->store, &task, &out, err);
    if (rc == 0) {
        rv_jw w = srv_call_json(c, out.is_new ? 201 : 200);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "id", out.id);
        rv_jw_kv_bool(&w, "is_new", out.is_new);
        rv_jw_obj_end(&w);
    }
    rv_needs_fini(&needs);
    rv_buf_fini(&payload);
    return rc;
}

/* --- schedules --- */

static int write_schedule(struct srv_call *c, const char *word, int status, rv_err **err)
{
    struct rv_schedule_row row;
    struct rv_app_times times = {0};
    json_object *firings = NULL;
    int rc = rv_store_get_schedule(c->store, &c->app.scope, word, &row, err);

    if (rc < 0)
        return rc;
    rc = rv_app_times_build(&row, NULL, &times,
                            RV_CODE_ONLY("times that are unknown here are left out; what may come back is told below"));
    bool has_times = rc == 0; /* its zone may be unknown here */
    if (rc == RV_E_NOMEM || rv_code_is_scarce(rc))
        rc = RV_FAIL(err, rc, "read the times of schedule \"%s\"", word);
    else
        rc = rv_app_build_firings(c->store, &c->app.scope, &row, SHOWN_FIRED, &firings, err);
    const struct rv_app_schedule_view view = {.row = &row,
                                              .times = has_times ? &times : NULL,
                                              .n_times = row.next_us > 0 ? SHOWN_TIMES : 0,
                                              .after_us = srv_now_us(),
                                              .firings = firings};
    if (rc == 0) {
        rv_jw w = srv_call_json(c, status);
        rc = rv_app_schedule_write(&view, &w, err);
    }
    json_object_put(firings);
    if (has_times)
        rv_app_times_fini(&times);
    rv_schedule_row_fini(&row);
    return rc;
}

int srv_schedule_show(struct srv_call *c, rv_err **err)
{
    return write_schedule(c, c->args[0], 200, err);
}

int srv_schedule_delete(struct srv_call *c, rv_err **err)
{
    int rc = rv_store_delete_schedule(c->store, &c->app.scope, c->args[0], err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_raw(&w, RV_STR_LIT("{\"deleted\":true}"));
    return 0;
}

static int read_schedule(struct srv_call *c, const char *labels[MAX_LABELS], struct rv_app_schedule *out, rv_err **err)
{
    int rc = srv_body_text(c, "cron", false, &out->when.cron, err);

    if (rc == 0)
        rc = srv_body_text(c, "at", false, &out->when.at, err);
    if (rc == 0)
        rc = srv_body_text(c, "zone", false, &out->when.zone, err);
    if (rc == 0 && !out->when.cron == !out->when.at)
        rc = RV_FAIL(err, RV_E_INVALID, "the body needs \"cron\" or \"at\", one of them");
    if (rc == 0)
        rc = srv_body_int(c, "priority", -RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY, &out->priority, err);
    if (rc == 0)
        rc = labels_of(c, labels, &out->n_labels, err);
    out->labels = labels;
    return rc == 0 ? user_of(c, &out->user, err) : rc;
}

/* A schedule that is to be, of tasks or (run) of runs. */
struct adding {
    struct srv_call *c;
    struct rv_app_schedule s;
    const char *type;
    rv_str payload;
    int64_t retries;
    struct rv_app_run *run; /* NULL: of tasks */
    json_object *state;     /* owned */
    bool replaces;          /* the one of that name */
    char id[RV_ID_MAX];
};

static int put(struct adding *a, rv_err **err)
{
    struct srv_call *c = a->c;
    rv_store *store = a->run ? a->run->store : c->store;
    int rc = a->replaces ? rv_store_delete_schedule(store, &c->app.scope, a->s.name, err) : 0;

    if (rc < 0)
        return rc;
    return a->run
               ? rv_app_schedule_runs(a->run, a->state, &a->s, a->id, err)
               : rv_app_schedule_tasks(&c->app, store, &(struct rv_app_scheduled_task){a->type, a->payload, a->retries},
                                       &a->s, a->id, err);
}

static int put_whole(struct adding *a, rv_err **err)
{
    rv_store *store = a->run ? a->run->store : a->c->store; /* of a run its own handle */
    int rc;

    do {
        rc = rv_store_begin(store, err);
        if (rc == 0)
            rc = rv_store_end(store, put(a, err), err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc;
}

static int add_tasks(struct adding *a, rv_err **err)
{
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    int rc = check_type(a->type, err);

    a->retries = RV_UNSET;
    if (rc == 0)
        rc = srv_body_int(a->c, "max_retries", 0, RV_TASK_MAX_RETRIES, &a->retries, err);
    if (rc == 0)
        rc = payload_of(a->c, &payload, err);
    a->payload = rv_buf_str(&payload);
    if (rc == 0)
        rc = put_whole(a, err);
    rv_buf_fini(&payload);
    return rc;
}

static int add_runs(struct adding *a, const char *pipeline, rv_err **err)
{
    struct srv_call *c = a->c;
    struct rv_app_loaded l;
    rv_envelope *env = NULL;
    int rc = srv_run_load(c, pipeline, &l, &a->state, err);

    if (rc < 0)
        return rc;
    struct rv_app_run run = {.app = &c->app, .loaded = &l, .mode = RV_UNSET, .store = c->store};
    a->run = &run;
    rc = srv_body_text(c, "session", false, &run.session, err);
    if (rc == 0 && run.session && !(a->s.user && a->s.user[0])) /* else its runs are of that user */
        rc = srv_session_check_owner(c, run.session, err);
    if (rc == 0)
        rc = srv_run_mode(c, &run.mode, err);
    if (rc == 0) /* as each firing will load it */
        rc = rv_envelope_load(a->state, rv_rand_system(), srv_now_us(), &env, err);
    if (rc == 0)
        rc = rv_app_check_user(&c->app.scope, rv_envelope_fields(env)->user_id, err);
    if (rc == 0)
        rc = rv_app_run_open(&run, err);
    if (rc == 0)
        rc = put_whole(a, err);
    rv_app_run_fini(&run);
    rv_envelope_free(env);
    json_object_put(a->state);
    rv_app_loaded_fini(&l);
    return rc;
}

/* before: in whose place it comes, and whose user it keeps; NULL: it is new. */
static int add(struct srv_call *c, const char *name, const struct rv_schedule_row *before, char id[RV_ID_MAX],
               rv_err **err)
{
    struct adding a = {.c = c, .s = {.name = name, .user = before ? before->user : NULL}, .replaces = before != NULL};
    const char *labels[MAX_LABELS], *pipeline = NULL;
    int rc = read_schedule(c, labels, &a.s, err);

    if (rc == 0)
        rc = srv_body_text(c, "pipeline", false, &pipeline, err);
    if (rc == 0)
        rc = srv_body_text(c, "type", false, &a.type, err);
    if (rc == 0 && !pipeline == !a.type)
        rc = RV_FAIL(err, RV_E_INVALID, "the body needs \"pipeline\", or the \"type\" of tasks");
    if (rc == 0)
        rc = pipeline ? add_runs(&a, pipeline, err) : add_tasks(&a, err);
    if (rc == 0)
        memcpy(id, a.id, sizeof a.id);
    return rc;
}

int srv_schedule_post(struct srv_call *c, rv_err **err)
{
    const char *name = NULL;
    char id[RV_ID_MAX] = "";
    int rc = srv_body_text(c, "name", true, &name, err);

    if (rc == 0)
        rc = add(c, name, NULL, id, err);
    return rc == 0 ? write_schedule(c, id, 201, err) : rc;
}

/* Another schedule of the same name and user; the list of its firings begins again. */
int srv_schedule_put(struct srv_call *c, rv_err **err)
{
    struct rv_schedule_row row;
    char id[RV_ID_MAX] = "";
    int rc = rv_store_get_schedule(c->store, &c->app.scope, c->args[0], &row, err);

    if (rc < 0)
        return rc;
    rc = add(c, row.name, &row, id, err);
    rv_schedule_row_fini(&row);
    return rc == 0 ? write_schedule(c, id, 200, err) : rc;
}

/* When, and how urgent; what it queues stays as it is. */
int srv_schedule_change(struct srv_call *c, rv_err **err)
{
    struct rv_app_when when = {NULL, NULL, NULL};
    int64_t priority = 0;
    bool has_priority = json_object_object_get_ex(c->body, "priority", NULL);
    int rc = srv_body_text(c, "cron", false, &when.cron, err);

    if (rc == 0)
        rc = srv_body_text(c, "at", false, &when.at, err);
    if (rc == 0)
        rc = srv_body_text(c, "zone", false, &when.zone, err);
    if (rc == 0 && when.cron && when.at)
        rc = RV_FAIL(err, RV_E_INVALID, "\"cron\" and \"at\" exclude each other");
    if (rc == 0)
        rc = srv_body_int(c, "priority", -RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY, &priority, err);
    if (rc == 0)
        rc = rv_app_change_schedule(c->store, &c->app.scope, c->args[0], &when, has_priority ? &priority : NULL, err);
    return rc == 0 ? write_schedule(c, c->args[0], 200, err) : rc;
}
