/* Tasks: a call whose run takes long, which its client asks for by an id. A task is nothing but its run: its id names
 * the run, and the store knows the rest, so that a task outlives the session, the connection and the process. What a
 * client may see of a run is decided by its scope, each time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/app/rows.h"
#include "coreengine/base/base.h"

#define DOMAIN   "tasks/" /* of the mark in an id: not the name of a tool */
#define POLL_MS  1000     /* that a client waits between two questions: more often tells people nothing new */
#define MAX_OPEN 64       /* questions of one task that are told at once: more than a person answers in one form */

/* --- ids: RUN:KIND TOOL:MARK --- */

static const char letters[] = {
    [OFFER_QUERY] = 'q', [OFFER_ANSWER] = 'r', [OFFER_PIPELINE] = 'p', [OFFER_TOOL] = 't', [OFFER_AGENT] = 'a'};
RV_EACH_HAS_ROW(letters, N_OFFERS);

void app_mcp_task_kind(enum offer_kind kind, const char *tool, char *out)
{
    snprintf(out, MCP_MAX_NAME + 2, "%c%s", letters[kind], tool);
}

static int write_id(const struct mcp_task *t, rv_buf *out, rv_err **err)
{
    char name[MCP_MAX_NAME + 2];

    app_mcp_task_kind(t->kind, t->tool, name);
    app_mcp_state_write(DOMAIN, t->run, name, out);
    return rv_buf_check(out, "id of a task", err);
}

static bool read_kind(const char *name, struct mcp_task *out)
{
    for (size_t i = OFFER_ANSWER; i < RV_COUNT(letters) && strlen(name) <= MCP_MAX_NAME + 1; i++) /* never a query */
        if (name[0] == letters[i]) {
            out->kind = (enum offer_kind)i;
            memcpy(out->tool, name + 1, strlen(name));
            return true;
        }
    return false;
}

int app_mcp_task_read(rv_str id, struct mcp_task *out, rv_err **err)
{
    char name[RV_STORE_MAX_ID + 1];

    *out = (struct mcp_task){.kind = OFFER_QUERY};
    int rc = app_mcp_state_read(id, DOMAIN, out->run, name,
                                RV_CODE_ONLY("every id that it refuses is told to the client as an unknown task"));
    if (rc == 0 && read_kind(name, out))
        return 0;
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "find a task");
    return RV_FAIL(err, RV_E_NOT_FOUND, "unknown task: its run is not there, or it is of another user");
}

/* --- questions --- */

struct open_ids {
    char items[MAX_OPEN][RV_STORE_MAX_ID + 1];
    size_t n;
};

static int take_id(void *self, const struct rv_pending *p, rv_err **err)
{
    struct open_ids *ids = self;

    (void)err;
    if (ids->n < MAX_OPEN)
        snprintf(ids->items[ids->n++], RV_STORE_MAX_ID + 1, "%s", p->id);
    return 0;
}

static int take_open(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    return take_id(self, &(struct rv_pending){.id = row->id}, err);
}

/* The questions that wait for an answer, without those whose answer is queued. A run that takes one of several answers
 * still has the other questions. */
static int list_open(const struct rv_app_mcp_at *at, const struct rv_run_row *row, struct open_ids *out, rv_err **err)
{
    const struct rv_interrupt_filter filter = {.run = row->id, .open_only = true};
    size_t n = 0;
    int rc = 0;

    if (row->status == RV_RUN_INTERRUPTED)
        rc = rv_store_list_pending(at->sources->store, &at->app->scope, row->id, take_id, out, err);
    else if (row->status == RV_RUN_RUNNING)
        rc = rv_store_list_interrupts(at->sources->store, &at->app->scope, &filter, take_open, out, err);
    for (size_t i = 0; i < out->n && rc == 0; i++) {
        bool is_queued = false;
        rc = app_mcp_question_is_answered(at, row, out->items[i], &is_queued, err);
        if (rc == 0 && !is_queued)
            memmove(out->items[n++], out->items[i], sizeof out->items[i]);
    }
    out->n = n;
    return rc;
}

/* One of them as a request of the client's, by its id. A question that a form cannot answer is left out. */
static int write_question(const struct rv_app_mcp_at *at, const struct rv_run_row *row, const char *id,
                          json_object *requests, rv_err **err)
{
    struct rv_app_question q = {.n = 0};
    struct rv_json_build b = {.err = err};
    json_object *form = NULL;
    rv_err *why = NULL;

    b.rc = app_mcp_question_of(at, row, id, &q, &why);
    bool is_over =
        b.rc == RV_E_STATE || b.rc == RV_E_TIMEOUT || b.rc == RV_E_NOT_FOUND; /* answered or expired by now */
    if (b.rc == 0)
        b.rc = app_mcp_form_of(&q, &form, &why);
    if (b.rc < 0)
        b.rc = is_over ? 0 : RV_FAIL(err, b.rc, "a question of run \"%s\": %s", row->id, rv_err_text(why));
    if (form && b.rc == 0) {
        json_object *one = rv_json_build(&b, requests, id, json_object_new_object());
        rv_json_build_text(&b, one, "method", "elicitation/create");
        json_object *params = rv_json_build(&b, one, "params", b.rc < 0 ? NULL : json_object_new_object());
        rv_json_build_text(&b, params, "mode", "form");
        rv_json_build_text(&b, params, "message", rv_buf_cstr(&q.text));
        rv_json_build(&b, params, "requestedSchema", b.rc < 0 ? NULL : json_object_get(form));
    }
    rv_err_free(why);
    json_object_put(form);
    rv_app_question_fini(&q);
    return b.rc;
}

static int write_questions(const struct rv_app_mcp_at *at, const struct rv_run_row *row, const struct open_ids *open,
                           json_object *task, rv_err **err)
{
    json_object *requests = json_object_new_object();
    int rc = requests ? 0 : RV_FAIL(err, RV_E_NOMEM, "describe a task");

    for (size_t i = 0; i < open->n && rc == 0; i++)
        rc = write_question(at, row, open->items[i], requests, err);
    if (rc == 0 && json_object_object_length(requests) > 0)
        return rv_json_set_take(task, "inputRequests", requests, err);
    json_object_put(requests);
    return rc;
}

/* --- the state of its run --- */

/* Its result; of a run with a failure that nothing caught, an error as the call would have had it. */
static int write_end(const struct rv_app_mcp_at *at, const struct mcp_task *t, json_object *task, rv_err **err)
{
    const struct mcp_about about = {
        .tool = t->tool, .run = t->run, .scope = &at->app->scope, .now_us = rv_app_now_us()};
    struct rv_json_build b = {.err = err};
    struct rv_replayed r = {0};
    struct rv_app_past past;
    json_object *result = NULL;

    b.rc = rv_app_past_open(at->sources->store, &at->app->scope, t->run, &past, err);
    if (b.rc < 0)
        return b.rc;
    b.rc = rv_app_past_replay(at->sources->store, &past, NULL, &r, err);
    if (b.rc == 0)
        b.rc = app_mcp_result_of_run(&about,
                                     &(const struct mcp_ended){t->kind == OFFER_ANSWER ? OFFER_PIPELINE : t->kind,
                                                               past.row.status, rv_app_past_pipeline(&past),
                                                               rv_run_envelope(r.run)},
                                     &result, err);
    if (b.rc == 0 && past.row.status == RV_RUN_FAILED) {
        json_object *said = json_object_array_get_idx(rv_json_get_arr(result, "content"), 0);
        json_object *error = rv_json_build(&b, task, "error", json_object_new_object());
        rv_json_build_int(&b, error, "code", RV_MCP_INTERNAL_ERROR);
        rv_json_build_text(&b, error, "message", rv_json_text_or(said, "text", "the run failed"));
        json_object_put(result);
    } else if (b.rc == 0) {
        rv_json_build(&b, task, "result", result);
    }
    rv_replayed_fini(&r);
    rv_app_past_fini(&past);
    return b.rc;
}

static const char *status_of(const struct rv_run_row *row, const struct open_ids *open)
{
    if (row->cancel_requested || row->status == RV_RUN_CANCELLED)
        return "cancelled"; /* for the client it is over, and stays so whatever the run still does */
    if (row->status == RV_RUN_FAILED)
        return "failed";
    if (rv_run_status_is_final(row->status))
        return "completed";
    return open->n > 0 ? "input_required" : "working";
}

/* The members that every task has. Runs are kept as the operator says, so their tasks have no end of their own. */
static int write_task(const struct mcp_task *t, const struct rv_run_row *row, const char *status, json_object *task,
                      rv_err **err)
{
    rv_buf id = RV_BUF_INIT(3 * RV_STORE_MAX_ID);
    struct rv_json_build b = {err, write_id(t, &id, err)};

    rv_json_build_text(&b, task, "taskId", rv_buf_cstr(&id));
    rv_json_build_text(&b, task, "status", status);
    if (strcmp(status, "input_required") == 0)
        rv_json_build_text(&b, task, "statusMessage", "the run waits for an answer");
    else if (strcmp(status, "working") == 0 && row->stage && row->stage[0])
        rv_json_build_text(&b, task, "statusMessage", row->stage);
    rv_app_build_time(&b, task, "createdAt", row->created_us);
    rv_app_build_time(&b, task, "lastUpdatedAt", row->updated_us);
    if (b.rc == 0)
        b.rc = rv_json_set_null(task, "ttlMs", err);
    rv_json_build_int(&b, task, "pollIntervalMs", POLL_MS);
    rv_buf_fini(&id);
    return b.rc;
}

/* What a description has beside the status. */
enum shown { SHOWS_QUESTIONS = 1, SHOWS_END = 2 };

static int describe(const struct rv_app_mcp_at *at, const struct mcp_task *t, const struct rv_run_row *row,
                    unsigned shown, json_object *task, rv_err **err)
{
    struct open_ids open = {.n = 0};
    int rc = list_open(at, row, &open, err);

    if (rc < 0)
        return rc;
    const char *status = status_of(row, &open);
    rc = write_task(t, row, status, task, err);
    if (rc == 0 && strcmp(status, "input_required") == 0 && (shown & SHOWS_QUESTIONS))
        rc = write_questions(at, row, &open, task, err);
    if (rc == 0 && (shown & SHOWS_END) && (strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0))
        rc = write_end(at, t, task, err);
    return rc;
}

/* --- requests of clients --- */

/* Answers by the ids of questions. One that does not wait for an answer is passed over. */
static int update(const struct rv_app_mcp_at *at, const struct rv_run_row *row, json_object *responses, rv_err **err)
{
    struct open_ids open = {.n = 0};
    int rc = list_open(at, row, &open, err);

    for (size_t i = 0; i < open.n && rc == 0; i++) {
        json_object *answer = rv_json_get_obj(responses, open.items[i]), *action = NULL;
        struct mcp_started done = {.result = NULL};
        if (!answer)
            continue;
        json_object_object_get_ex(answer, "action", &action);
        rv_str word = rv_json_str(action);
        rc = app_mcp_enqueue_answer(at,
                                    &(const struct mcp_reply){.run = row->id,
                                                              .interrupt = open.items[i],
                                                              .action = rv_str_is(word, "accept")    ? RV_MCP_ACCEPT
                                                                        : rv_str_is(word, "decline") ? RV_MCP_DECLINE
                                                                                                     : RV_MCP_CANCEL,
                                                              .content = rv_json_get_obj(answer, "content")},
                                    &done, err);
    }
    return rc;
}

/* A task that is there. All is borrowed. */
struct found_task {
    const struct mcp_task *task;
    struct rv_run_row *row;
    bool can_ask; /* the client can be asked what the run asks */
};

static int perform(const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, struct found_task found,
                   json_object *out, rv_err **err)
{
    const struct mcp_task *t = found.task;
    struct rv_run_row *row = found.row;

    if (o->want == RV_MCP_WANT_CALL_TOOL) {
        int rc = rv_json_set_text(out, "resultType", "task", err);
        return rc < 0 ? rc : write_task(t, row, "working", out, err);
    }
    if (o->want == RV_MCP_WANT_GET_TASK || o->want == RV_MCP_WANT_LIST_TASKS)
        return describe(at, t, row,
                        (found.can_ask ? SHOWS_QUESTIONS : 0) | (o->want == RV_MCP_WANT_GET_TASK ? SHOWS_END : 0), out,
                        err);
    if (o->want == RV_MCP_WANT_UPDATE_TASK)
        return update(at, row, rv_json_get_obj(o->params, "inputResponses"), err);
    if (rv_run_status_is_final(row->status))
        return o->tasks == RV_MCP_TASK_MUST ? RV_FAIL(err, RV_E_STATE, "the task is over") : 0;
    app_mcp_cancel_run(at, t->run);
    return o->tasks == RV_MCP_TASK_MUST ? write_task(t, row, "cancelled", out, err) : 0;
}

int app_mcp_task_do(const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, const struct mcp_task *t,
                    bool can_ask, json_object **out, rv_err **err)
{
    struct rv_run_row row;
    rv_err *why = NULL;

    if (!app_mcp_may(at, t->kind == OFFER_AGENT ? RV_APP_MCP_CHAT : RV_APP_MCP_RUNS))
        return RV_FAIL(err, RV_E_NOT_FOUND, "unknown task: its run is not there, or it is of another user");
    int rc = rv_store_get_run(at->sources->store, &at->app->scope, t->run, &row, &why);

    if (rc < 0) /* also one of another user: as if it did not exist */
        rc = rc == RV_E_NOT_FOUND ? RV_FAIL(err, rc, "unknown task: its run is not there, or it is of another user")
                                  : RV_FAIL(err, rc, "find a task: %s", rv_err_text(why));
    rv_err_free(why);
    if (rc < 0)
        return rc;
    json_object *task = json_object_new_object();
    rc = task ? perform(at, o, (struct found_task){t, &row, can_ask}, task, err)
              : RV_FAIL(err, RV_E_NOMEM, "describe a task");
    if (rc < 0)
        json_object_put(task);
    else
        *out = task;
    rv_run_row_fini(&row);
    return rc;
}

/* --- the list --- */

/* Ids of runs; the store is not asked for anything else while it lists them. */
struct page {
    int64_t first, n_seen;
    char (*runs)[RV_STORE_MAX_ID + 1];
    size_t n;
};

static int take_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct page *p = self;

    (void)err;
    if (p->n_seen++ >= p->first && p->n < RV_MCP_PAGE)
        snprintf(p->runs[p->n++], RV_STORE_MAX_ID + 1, "%s", row->id);
    return 0;
}

static int take_kind(void *self, const struct rv_record *r, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .max_depth = RV_STATE_MAX_DEPTH};
    struct mcp_task *task = self;
    json_object *body = NULL;
    int rc = rv_json_parse(r->body, &opts, &body, err);

    if (rc == 0 && !read_kind(rv_json_text_or(body, "task", ""), task))
        task->run[0] = '\0'; /* the run of something else that has such an id */
    json_object_put(body);
    return rc;
}

/* One of them; a run that was deleted meanwhile, or that the client may not use, is left out. */
static int list_task(const struct rv_app_mcp_at *at, const char *run, json_object *list, rv_err **err)
{
    const struct rv_mcp_order brief = {.want = RV_MCP_WANT_LIST_TASKS};
    struct mcp_task task = {.kind = OFFER_QUERY};
    json_object *made = NULL;
    rv_err *why = NULL;

    snprintf(task.run, sizeof task.run, "%s", run);
    int rc = rv_store_read(at->sources->store, &at->app->scope, &(struct rv_record_range){run, 1, 1}, take_kind, &task,
                           &why);
    if (rc == 0 && task.run[0] && task.kind != OFFER_QUERY)
        rc = app_mcp_task_do(at, &brief, &task, false, &made, &why);
    if (rc == RV_E_NOT_FOUND)
        rc = 0;
    else if (rc < 0)
        rc = RV_FAIL(err, rc, "list tasks: %s", rv_err_text(why));
    rv_err_free(why);
    return made ? rv_json_push_take(list, made, err) : rc;
}

int app_mcp_tasks_list(const struct rv_app_mcp_at *at, int64_t first, json_object *list, int64_t *next, rv_err **err)
{
    const struct rv_run_filter filter = {.id_prefix = MCP_TASK_RUNS, .limit = first + RV_MCP_PAGE + 1};
    struct page page = {.first = first, .runs = calloc(RV_MCP_PAGE, sizeof *page.runs)};
    int rc = page.runs ? 0 : RV_FAIL(err, RV_E_NOMEM, "list tasks");

    if (rc == 0)
        rc = rv_store_list_runs(at->sources->store, &at->app->scope, &filter, take_run, &page, err);
    for (size_t i = 0; i < page.n && rc == 0; i++)
        rc = list_task(at, page.runs[i], list, err);
    *next = rc == 0 && page.n_seen > first + RV_MCP_PAGE ? first + RV_MCP_PAGE : 0;
    free(page.runs);
    return rc;
}
