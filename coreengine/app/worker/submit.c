/* Into the queue: a new run and its task in one transaction, a run of the store that is to go on, the answer to a
 * question. An answer is kept in the task until a worker tells the run: only who performs the calls that follow from
 * it may journal it, since a call that is in the journal counts as begun. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/worker/worker_internal.h"

#define MAX_KEY     ((size_t)64 << 10) /* bytes that a task's key is hashed from: ids and a client's key */
#define N_RANDOM    11                 /* digits that an id has room for behind "env_" and the hash of its key */
#define ASK_KEPT_US RV_US_PER_HOUR     /* how long a request has its name: clients wait for some minutes */

/* --- payloads --- */

static void write_text(rv_jw *w, const char *key, rv_str text)
{
    if (text.ptr)
        rv_jw_kv_str(w, key, text);
}

static void write_answer(const struct rv_response *r, rv_jw *w)
{
    rv_jw_key(w, "answer");
    rv_jw_obj(w);
    write_text(w, "interrupt", r->interrupt_id);
    write_text(w, "text", r->text);
    write_text(w, "choice", r->choice);
    write_text(w, "decision", r->decision);
    if (r->has_approved)
        rv_jw_kv_bool(w, "approved", r->approved);
    if (r->cancelled)
        rv_jw_kv_bool(w, "cancelled", true);
    if (r->data)
        rv_jw_kv_value(w, "data", r->data);
    if (r->arguments)
        rv_jw_kv_value(w, "arguments", r->arguments);
    rv_jw_obj_end(w);
}

static void write_payload(const char *run, const struct rv_response *answer, const struct rv_app_submit *opts,
                          rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "run", run);
    if (answer)
        write_answer(answer, &w);
    if (opts && opts->trace) {
        rv_jw_kv_text(&w, "trace", opts->trace);
        rv_jw_kv_bool(&w, "trusts_trace", opts->trusts_trace);
    }
    rv_jw_obj_end(&w);
}

int app_work_read_payload(rv_str payload, struct rv_work_payload *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TASK_MAX_JSON, .what = "payload of a task"};
    json_object *answer;

    *out = (struct rv_work_payload){.run = NULL};
    int rc = rv_json_parse(payload, &opts, &out->json, err);
    if (rc < 0)
        return rc;
    if (!json_object_is_type(out->json, json_type_object) || !rv_json_get_text(out->json, "run", &out->run)) {
        app_work_payload_fini(out);
        return RV_FAIL(err, RV_E_INVALID, "the payload of a task of type \"%s\" needs \"run\", the id of a run",
                       RV_TASK_OF_RUN);
    }
    out->trace = rv_json_text_or(out->json, "trace", out->trace);
    out->trusts_trace = rv_json_bool_or(out->json, "trusts_trace", out->trusts_trace);
    answer = rv_json_get_obj(out->json, "answer");
    out->has_answer = answer != NULL;
    if (answer) {
        out->answer = (struct rv_response){.interrupt_id = rv_json_member_str(answer, "interrupt"),
                                           .text = rv_json_member_str(answer, "text"),
                                           .choice = rv_json_member_str(answer, "choice"),
                                           .decision = rv_json_member_str(answer, "decision"),
                                           .data = rv_json_get_obj(answer, "data"),
                                           .arguments = rv_json_get_obj(answer, "arguments")};
        out->answer.cancelled = rv_json_bool_or(answer, "cancelled", out->answer.cancelled);
        out->answer.has_approved = rv_json_get_bool(answer, "approved", &out->answer.approved);
    }
    return 0;
}

void app_work_payload_fini(struct rv_work_payload *p)
{
    json_object_put(p->json);
    *p = (struct rv_work_payload){.run = NULL};
}

/* --- tasks --- */

struct item { /* a task that is to be; all borrowed */
    const char *run, *tenant, *user, *key;
    const struct rv_needs *needs;
    const struct rv_response *answer; /* NULL: none */
    const struct rv_app_submit *how;  /* NULL: it was submitted before */
    int64_t priority, due_us, now_us;
};

static int enqueue(rv_store *store, const struct item *item, struct rv_enqueued *out, rv_err **err)
{
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    char id[RV_ID_MAX];
    struct rv_new_task task = {.id = id,
                               .tenant = item->tenant,
                               .user = item->user && item->user[0] ? item->user : NULL,
                               .type = RV_TASK_OF_RUN,
                               .key = item->key,
                               .needs = (const char *const *)item->needs->items,
                               .n_needs = item->needs->n,
                               .priority = item->priority,
                               .max_retries = RV_TASK_MAX_RETRIES, /* a run has bounds of its own */
                               .scheduled_us = item->due_us,
                               .now_us = item->now_us};

    rv_id_make(rv_rand_system(), "task_", id);
    write_payload(item->run, item->answer, item->how, &payload);
    int rc = rv_buf_check(&payload, "payload of a task", err);
    task.payload = rv_buf_str(&payload);
    if (rc == 0)
        rc = rv_store_enqueue(store, &task, out, err);
    rv_buf_fini(&payload);
    return rc;
}

/* --- new runs --- */

/* Without pieces nothing is written in it: it has the name of the request, and is deleted when that has no use. */
static int add_stream(rv_store *store, const struct rv_run_row *run, const struct rv_app_submit *opts, rv_err **err)
{
    char id[RV_APP_STREAM_ID];
    const struct rv_stream_row row = {.id = id,
                                      .run = run->id,
                                      .tenant = run->tenant,
                                      .user = run->user,
                                      .ask = opts->ask,
                                      .replaces = true,
                                      .owner = RV_APP_STREAM_NOBODY,
                                      .created_us = rv_app_now_us()};

    rv_app_stream_of_run(run->id, id);
    int rc = rv_store_add_stream(store, &row, err);
    return rc < 0 || opts->keeps_deltas ? rc
                                        : rv_store_end_stream(store, id, row.owner, row.created_us + ASK_KEPT_US, err);
}

/* In a group, which the caller ends. */
static int keep_and_enqueue(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_submit *opts,
                            const struct rv_needs *needs, rv_err **err)
{
    const struct rv_store_scope scope = {run->app->scope.tenant, NULL};
    struct rv_enqueued task;
    struct rv_run_row row;

    int rc = app_run_keep_in_group(run, env, err);
    if (rc == 0)
        rc = rv_store_get_run(run->store, &scope, rv_envelope_fields(env)->envelope_id, &row, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < opts->n_webhooks && rc == 0; i++)
        rc = rv_store_add_webhook(run->store, &scope, row.id, (int64_t)i, &opts->webhooks[i], err);
    const struct item item = {.run = row.id,
                              .tenant = row.tenant,
                              .user = row.user,
                              .key = row.id,
                              .needs = needs,
                              .how = opts,
                              .priority = opts->priority,
                              .due_us = opts->due_us,
                              .now_us = rv_app_now_us()};
    if (rc == 0 && (opts->keeps_deltas || opts->ask))
        rc = add_stream(run->store, &row, opts, err);
    if (rc == 0)
        rc = enqueue(run->store, &item, &task, err);
    rv_run_row_fini(&row);
    return rc;
}

#define OF_REQUEST 0 /* in place of a number: a request has one run */
#define OF_RUNS    1 /* the key of runs that follow each other */

/* How the ids of the runs with that key begin. user: whose key it is. */
static int prefix_of_key(const struct rv_app_run *run, const char *user, const char *key, int of,
                         char prefix[RV_ID_MAX], rv_err **err)
{
    const char *tenant = run->app->scope.tenant;
    rv_buf text = RV_BUF_INIT(MAX_KEY);
    rv_jw w = rv_jw_on(&text);
    char hash[RV_HASH_MAX];

    rv_jw_arr(&w);
    rv_jw_text(&w, tenant ? tenant : RV_STORE_TENANT);
    rv_jw_text(&w, user ? user : "");
    rv_jw_text(&w, key);
    rv_jw_int(&w, of);
    rv_jw_arr_end(&w);
    int rc = rv_buf_check(&text, "key of a run", err);
    if (rc == 0) {
        rv_hash_format(rv_buf_str(&text), hash);
        snprintf(prefix, RV_ID_MAX, "env_%.16s", hash);
    }
    rv_buf_fini(&text);
    return rc;
}

/* Rows and idempotency keys are named after the run: one that took the id of a run that was deleted would have those
 * of that run, and its effects would count as done. */
static void make_id(const char *prefix, char out[RV_STORE_MAX_ID + 1])
{
    char digits[RV_ID_MAX];

    rv_id_make(rv_rand_system(), "", digits);
    snprintf(out, RV_STORE_MAX_ID + 1, "%s%.*s", prefix, N_RANDOM, digits);
}

/* Under the id that out has. */
static int submit_named(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_submit *opts,
                        const struct rv_needs *needs, struct rv_app_submitted *out, rv_err **err)
{
    rv_envelope *named = NULL;

    int rc = app_state_as(env, out->run, &named, err);
    if (rc == 0)
        rc = keep_and_enqueue(run, named, opts, needs, err);
    rv_envelope_free(named);
    out->is_new = true;
    return rc;
}

static int take_id(void *self, const struct rv_run_row *row, rv_err **err)
{
    char *id = self;

    (void)err;
    snprintf(id, RV_STORE_MAX_ID + 1, "%s", row->id);
    return 0;
}

/* In a group, in which no other can make such a run: its id, which is "" when none is there. */
static int find_run(const struct rv_app_run *run, const char *prefix, unsigned statuses, char id[RV_STORE_MAX_ID + 1],
                    rv_err **err)
{
    const struct rv_store_scope scope = {run->app->scope.tenant, NULL};
    const struct rv_run_filter filter = {.id_prefix = prefix, .statuses = statuses, .limit = 1};
    int rc = rv_store_hold_name(run->store, prefix, err);

    id[0] = '\0';
    return rc < 0 ? rc : rv_store_list_runs(run->store, &scope, &filter, take_id, id, err);
}

/* In a group: the run with that key that has not ended, or a new one. */
static int submit_once(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_submit *opts,
                       const struct rv_needs *needs, struct rv_app_submitted *out, rv_err **err)
{
    char prefix[RV_ID_MAX];
    unsigned open = 0;

    for (unsigned i = 0; i < RV_N_RUN; i++)
        open |= rv_run_status_is_final((enum rv_run_status)i) ? 0 : 1u << i;
    out->is_new = false;
    int rc = prefix_of_key(run, rv_envelope_fields(env)->user_id, opts->key, OF_RUNS, prefix, err);
    if (rc == 0)
        rc = find_run(run, prefix, open, out->run, err);
    if (rc < 0 || out->run[0])
        return rc;
    make_id(prefix, out->run);
    return submit_named(run, env, opts, needs, out, err);
}

static int compare_request(void *self, const struct rv_record *r, rv_err **err)
{
    const struct rv_json_opts how = {.max_bytes = RV_STORE_MAX_BODY, .what = "the beginning of a run"};
    const struct rv_app_submit *opts = self;
    json_object *body = NULL;
    int rc = rv_json_parse(r->body, &how, &body, err);

    if (rc == 0 && strcmp(rv_json_text_or(body, "request", ""), opts->request) != 0) {
        rc = RV_FAIL(err, RV_E_STATE, "the key was used for another request");
        rv_err_set_hint(err, "send a key of its own with each request, and the same key and body with a repetition");
    }
    json_object_put(body);
    return rc;
}

/* In a group: the run of that request, in whatever status, or a new one. */
static int submit_request(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_submit *opts,
                          const struct rv_needs *needs, struct rv_app_submitted *out, rv_err **err)
{
    const struct rv_store_scope scope = {run->app->scope.tenant, NULL};
    const struct rv_record_range first = {out->run, 1, 1};
    char prefix[RV_ID_MAX];
    int rc = prefix_of_key(run, run->app->scope.user, opts->key, OF_REQUEST, prefix, err);

    if (rc == 0)
        rc = find_run(run, prefix, 0, out->run, err);
    out->is_new = rc == 0 && !out->run[0];
    if (out->is_new) {
        make_id(prefix, out->run);
        return submit_named(run, env, opts, needs, out, err);
    }
    return rc < 0 ? rc : rv_store_read(run->store, &scope, &first, compare_request, (void *)opts, err);
}

/* 1: the run is there; 0: it is not. */
static int is_kept(const struct rv_app_run *run, const char *id, rv_err **err)
{
    const struct rv_store_scope scope = {run->app->scope.tenant, NULL};
    struct rv_run_row row;
    rv_err *why = NULL;
    int rc = rv_store_get_run(run->store, &scope, id, &row, &why);

    if (rc < 0 && rc != RV_E_NOT_FOUND)
        return rv_err_pass(err, why);
    rv_err_free(why);
    if (rc == 0)
        rv_run_row_fini(&row);
    return rc == 0;
}

/* In a group. 1: there is a run of the request with that name; 0: there is none. */
static int find_asked(struct rv_app_run *run, const rv_envelope *env, const char *ask, struct rv_app_submitted *out,
                      rv_err **err)
{
    const struct rv_store_scope scope = {run->app->scope.tenant, rv_envelope_fields(env)->user_id};
    struct rv_stream_row row;
    rv_err *why = NULL;
    int rc = rv_store_find_stream(run->store, &scope, ask, &row, &why);

    if (rc < 0 && rc != RV_E_NOT_FOUND)
        return rv_err_pass(err, why);
    rv_err_free(why);
    if (rc < 0)
        return 0;
    snprintf(out->run, sizeof out->run, "%s", row.run);
    rv_stream_row_fini(&row);
    return is_kept(run, out->run, err);
}

static int submit(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_submit *opts,
                  const struct rv_needs *needs, struct rv_app_submitted *out, rv_err **err)
{
    if (opts->key && opts->request)
        return submit_request(run, env, opts, needs, out, err);
    if (opts->key)
        return submit_once(run, env, opts, needs, out, err);
    if (opts->ask && opts->repeats) {
        out->is_new = false;
        int found = find_asked(run, env, opts->ask, out, err);
        if (found != 0)
            return found < 0 ? found : 0;
    }
    out->is_new = true;
    snprintf(out->run, sizeof out->run, "%s", rv_envelope_fields(env)->envelope_id);
    return keep_and_enqueue(run, env, opts, needs, err);
}

/* One transaction, repeated when another one conflicted, or the connection to the server broke. */
static int submit_whole(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_submit *opts,
                        const struct rv_needs *needs, struct rv_app_submitted *out, rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(run->store, err);
        if (rc == 0)
            rc = rv_store_end(run->store, submit(run, env, opts, needs, out, err), err);
        if (rc < 0) { /* of the run that was not made */
            rv_journal_free(run->journal);
            run->journal = NULL;
        }
    } while (rc < 0 && rv_store_wait_again(run->store, err));
    return rc;
}

int rv_app_submit(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_submit *opts,
                  struct rv_app_submitted *out, rv_err **err)
{
    struct rv_needs needs = {NULL, 0};

    run->owner[0] = '\0'; /* it belongs to no process yet */
    run->request = opts->request;
    int rc = rv_needs_build(run->loaded, &needs, err);
    for (size_t i = 0; rc == 0 && i < opts->n_labels; i++)
        rc = rv_needs_add_label(&needs, opts->labels[i], err);
    if (rc == 0)
        rc = submit_whole(run, env, opts, &needs, out, err);
    rv_needs_fini(&needs);
    out->again_us = rc == RV_E_QUOTA ? run->state->limits.again_us : 0;
    return rc < 0 ? RV_WRAP(err, rc, "submit the run") : 0;
}

/* --- runs of the store --- */

struct class_search {
    int64_t id;
    struct rv_needs *needs;
    bool is_found;
};

static int take_class(void *self, const struct rv_task_class *c, rv_err **err)
{
    struct class_search *s = self;
    int rc = 0;

    if (c->id != s->id)
        return 0;
    s->is_found = true;
    for (size_t i = 0; rc == 0 && i < c->n_needs; i++)
        rc = app_needs_add(s->needs, c->needs[i], err);
    return rc;
}

static int take_first(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)err;
    *(int64_t *)self = row->class_id;
    return 0;
}

/* What it needed when it was submitted; of a run that was not, the capabilities that its pipeline names. */
static int needs_of_run(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                        struct rv_needs *out, rv_err **err)
{
    const struct rv_store_scope all = {scope->tenant, NULL};
    const struct rv_task_filter filter = {.type = RV_TASK_OF_RUN, .key = row->id, .limit = 1};
    struct class_search search = {.id = -1, .needs = out};
    struct rv_app_past past;

    int rc = rv_store_list_tasks(store, &all, &filter, take_first, &search.id, err);
    if (rc == 0 && search.id >= 0)
        rc = rv_store_list_classes(store, take_class, &search, err);
    if (rc < 0 || search.is_found)
        return rc;
    rc = rv_app_past_open(store, scope, row->id, &past, err);
    if (rc < 0)
        return rc;
    const struct rv_pipeline *p = rv_app_past_pipeline(&past);
    bool is_scripted = rv_bundle_script(past.bundle) != NULL; /* which may stand in for all of them */
    for (size_t i = 0; rc == 0 && !is_scripted && i < p->n_capabilities; i++)
        if (!strchr(p->capabilities[i].name, '/'))
            rc = rv_needs_add_capability(out, p->capabilities[i].name, NULL, err);
    rv_app_past_fini(&past);
    return rc;
}

int app_work_enqueue_row(rv_store *store, const struct rv_run_row *row, const struct rv_response *answer,
                         int64_t due_us, bool *is_new, rv_err **err)
{
    const struct rv_store_scope scope = {row->tenant, NULL};
    rv_buf key = RV_BUF_INIT(RV_STORE_MAX_ID);
    struct rv_needs needs = {NULL, 0};
    struct rv_enqueued out;

    rv_buf_puts(&key, row->id);
    if (answer) /* beside a task that just ends because the run waits */
        rv_buf_printf(&key, "/%.*s", RV_STR_ARG(answer->interrupt_id));
    int rc = rv_buf_check(&key, "key of a task", err);
    if (rc == 0)
        rc = needs_of_run(store, &scope, row, &needs, err);
    const struct item item = {.run = row->id,
                              .tenant = row->tenant,
                              .user = row->user,
                              .key = rv_buf_cstr(&key),
                              .needs = &needs,
                              .answer = answer,
                              .due_us = due_us,
                              .now_us = rv_app_now_us()};
    if (rc == 0)
        rc = enqueue(store, &item, &out, err);
    if (rc == 0 && is_new)
        *is_new = out.is_new;
    rv_needs_fini(&needs);
    rv_buf_fini(&key);
    return rc < 0 ? RV_WRAP(err, rc, "queue run \"%s\"", row->id) : 0;
}

int rv_app_fail_cancelled(rv_err **err)
{
    return RV_FAIL(err, RV_E_STATE, "the run is to be cancelled, so it takes no answer any more");
}

int rv_app_enqueue_cancel(rv_store *store, const struct rv_store_scope *scope, const char *run, rv_err **err)
{
    struct rv_run_row row;

    int rc = rv_store_request_cancel(store, scope, run, rv_app_now_us(), err);
    if (rc == 0) /* read behind the request: who drives the run until then sees it, or has given the run up */
        rc = rv_store_get_run(store, scope, run, &row, err);
    if (rc < 0)
        return rc;
    bool is_driven = row.owner && row.status != RV_RUN_INTERRUPTED;
    if (!is_driven && !rv_run_status_is_final(row.status))
        rc = app_work_enqueue_row(store, &row, NULL, 0, NULL, err);
    rv_run_row_fini(&row);
    return rc;
}

int rv_app_enqueue(rv_store *store, const struct rv_store_scope *scope, const char *run,
                   const struct rv_response *answer, bool *is_new, rv_err **err)
{
    struct rv_run_row row;

    int rc = rv_store_get_run(store, scope, run, &row, err);
    if (rc < 0)
        return rc;
    rc = app_work_enqueue_row(store, &row, answer, 0, is_new, err);
    rv_run_row_fini(&row);
    return rc;
}
