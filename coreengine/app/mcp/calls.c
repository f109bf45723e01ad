/* Calls of tools: done at once, as a job on another thread, or begun as a run that the client waits for; and the tasks
 * that they become. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/base/base.h"

/* --- tasks --- */

int app_mcp_give_task(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o,
                      const struct mcp_task *task, rv_err **err)
{
    json_object *result = NULL;
    rv_err *why = NULL;
    int rc = app_mcp_task_do(at, o, task, rv_mcp_server_can_ask(m->session, o->call), &result, &why);

    rc = rc < 0 ? app_mcp_fail(m, at, o->call, why, err) : app_mcp_give_and_put(m, o->call, result, err);
    rv_err_free(why);
    return rc;
}

int app_mcp_refuse(rv_app_mcp *m, int64_t call, int code, json_object *result, rv_err **err)
{
    json_object *said = json_object_array_get_idx(rv_json_get_arr(result, "content"), 0);
    int rc = rv_mcp_server_fail(
        m->session, call,
        &(const struct rv_mcp_server_error){.code = code, .text = rv_json_text_or(said, "text", "the call failed")},
        m->out, err);

    json_object_put(result);
    return rc;
}

int app_mcp_on_task(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, rv_err **err)
{
    json_object *id = NULL;
    struct mcp_task task;
    rv_err *why = NULL;

    json_object_object_get_ex(o->params, "taskId", &id);
    int rc = app_mcp_task_read(rv_json_str(id), &task, &why);
    if (rc < 0)
        rc = app_mcp_fail(m, at, o->call, why, err);
    else if (o->want == RV_MCP_WANT_TASK_RESULT)
        rc = app_mcp_watch(m, o, &task, "", err);
    else
        rc = app_mcp_give_task(m, at, o, &task, err);
    rv_err_free(why);
    return rc;
}

/* --- what a call has become --- */

/* started: of which the result is taken. */
static int give_started(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o,
                        const struct offer *offer, struct mcp_started *started, rv_err **err)
{
    struct mcp_task task = {.kind = offer->kind};
    json_object *result = started->result;

    started->result = NULL;
    if (started->is_mismatch)
        return rv_mcp_server_fail(
            m->session, o->call,
            &(const struct rv_mcp_server_error){.code = RV_MCP_HEADER_MISMATCH,
                                                .text = "a header Mcp-Param-* is not the argument that it repeats"},
            m->out, err);
    if (started->is_unknown)
        return rv_mcp_server_fail(
            m->session, o->call,
            &(const struct rv_mcp_server_error){
                .code = RV_MCP_INVALID_PARAMS,
                .text = "the pipeline is not offered as that: see the lists of tools, prompts and resources"},
            m->out, err);
    if (started->needs_task)
        return rv_mcp_server_needs_task(m->session, o->call, m->out, err);
    if (result) /* it failed before a run began: there is neither a task nor a document */
        return (o->tasks == RV_MCP_TASK_MUST && offer->kind != OFFER_QUERY) || o->want != RV_MCP_WANT_CALL_TOOL
                   ? app_mcp_refuse(m, o->call, RV_MCP_INVALID_PARAMS, result, err)
                   : app_mcp_give_and_put(m, o->call, result, err);
    snprintf(task.tool, sizeof task.tool, "%s", offer->name);
    memcpy(task.run, started->run, sizeof task.run);
    return o->tasks == RV_MCP_TASK_MUST ? app_mcp_give_task(m, at, o, &task, err)
                                        : app_mcp_watch(m, o, &task, started->answered, err);
}

/* --- jobs --- */

struct rv_app_mcp_job {
    struct rv_app_mcp_job *next; /* of its client */
    struct app_mcp_job_place place;
    const struct rv_app_mcp_opts *opts;
    int64_t call;
    enum rv_mcp_want want;
    enum rv_mcp_tasking tasks;
    bool takes_tasks;
    struct offer offer;  /* owned */
    json_object *params; /* owned: a tree belongs to one thread */
    char *trace;         /* owned; NULL: none */
    bool trusts_trace;
    atomic_bool is_stopped;
    struct mcp_started started;
    rv_err *why; /* owned; NULL: it has begun, or was not done */
    bool is_done;
};

static void free_job(struct rv_app_mcp_job *job)
{
    app_mcp_offer_fini(&job->offer);
    json_object_put(job->params);
    free(job->trace);
    json_object_put(job->started.result);
    rv_err_free(job->why);
    free(job);
}

/* offer is moved there. */
static int make_job(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, struct offer *offer,
                    rv_err **err)
{
    struct rv_app_mcp_job *job = calloc(1, sizeof *job);

    if (!job)
        return RV_FAIL(err, RV_E_NOMEM, "start a call");
    int rc = rv_json_dup(o->params, &job->params, err);
    if (rc == 0 && at->trace && !(job->trace = rv_str_dup(rv_str_of(at->trace))))
        rc = RV_FAIL(err, RV_E_NOMEM, "start a call");
    if (rc < 0) {
        free_job(job);
        return rc;
    }
    job->opts = m->opts;
    job->call = o->call;
    job->want = o->want;
    job->tasks = o->tasks;
    job->takes_tasks = rv_mcp_server_takes_tasks(m->session, o->call);
    job->trusts_trace = at->trusts_trace;
    job->offer = *offer;
    *offer = (struct offer){.kind = offer->kind};
    atomic_init(&job->is_stopped, false);
    job->next = m->jobs;
    m->jobs = job;
    *at->job = job;
    return 0;
}

/* The call has ended, or what the caller waits until has come. */
struct until {
    const struct rv_app_mcp_job *job; /* borrowed */
    struct rv_mcp_until outer;
};
static bool is_over(const void *self)
{
    const struct until *u = self;

    return atomic_load(&u->job->is_stopped) || (u->outer.is_over && u->outer.is_over(u->outer.self));
}

void rv_app_mcp_job_do(rv_app_mcp_job *job, const struct rv_app_mcp_at *at)
{
    const struct until until = {job, at->app->until};
    const struct mcp_call call = {.params = job->params,
                                  .may_wait = true,
                                  .is_task = job->tasks == RV_MCP_TASK_MUST,
                                  .takes_tasks = job->takes_tasks};
    struct rv_app app = *at->app;
    struct rv_app_mcp_at here = *at;

    if (atomic_load(&job->is_stopped))
        return;
    app.until = (struct rv_mcp_until){is_over, &until};
    here.app = &app;
    here.trace = job->trace;
    here.trusts_trace = job->trusts_trace;
    job->is_done = app_mcp_start(job->opts, &here, &job->offer, call, &job->started, &job->why) == 0;
}

void rv_app_mcp_job_fail(rv_app_mcp_job *job, rv_err *why)
{
    job->why = why;
}

bool rv_app_mcp_job_is_query(const rv_app_mcp_job *job)
{
    return job->offer.kind == OFFER_QUERY;
}

struct app_mcp_job_place *app_mcp_job_place(struct rv_app_mcp_job *job)
{
    return &job->place;
}

void app_mcp_job_stop(struct rv_app_mcp_job *job)
{
    atomic_store(&job->is_stopped, true);
}

void app_mcp_stop_jobs(rv_app_mcp *m, int64_t call)
{
    for (struct rv_app_mcp_job *job = m->jobs; job; job = job->next)
        if (call == 0 || job->call == call)
            app_mcp_job_stop(job);
}

int rv_app_mcp_finish(rv_app_mcp *m, const struct rv_app_mcp_at *at, rv_app_mcp_job *job, struct rv_mcp_orders *out,
                      rv_err **err)
{
    const struct rv_mcp_order o = {.want = job->want, .call = job->call, .tasks = job->tasks, .params = job->params};
    struct rv_app_mcp_job **p = &m->jobs;
    int rc = 0;

    while (*p != job)
        p = &(*p)->next;
    *p = job->next;
    m->out = out;
    if (atomic_load(&job->is_stopped) || !rv_mcp_server_has_call(m->session, job->call)) {
        if (job->started.run[0])
            app_mcp_cancel_run(at, job->started.run);
    } else if (job->is_done) {
        rc = give_started(m, at, &o, &job->offer, &job->started, err);
    } else {
        rc = app_mcp_fail(m, at, job->call, job->why, err);
    }
    m->out = NULL;
    free_job(job);
    return rc;
}

/* --- the beginning --- */

static int call_offer(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, struct offer *offer,
                      rv_err **err)
{
    const struct mcp_call call = {.params = o->params,
                                  .may_wait = !at->job,
                                  .is_task = o->tasks == RV_MCP_TASK_MUST,
                                  .takes_tasks = rv_mcp_server_takes_tasks(m->session, o->call)};
    struct mcp_started started = {.result = NULL};
    rv_err *why = NULL;
    int rc = app_mcp_start(m->opts, at, offer, call, &started, &why);

    if (rc < 0)
        rc = app_mcp_fail(m, at, o->call, why, err);
    else if (started.waits)
        rc = make_job(m, at, o, offer, err);
    else
        rc = give_started(m, at, o, offer, &started, err);
    rv_err_free(why);
    return rc;
}

int app_mcp_call_tool(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o, rv_err **err)
{
    struct offer offer = {.name = NULL};
    rv_err *why = NULL;
    int rc = app_mcp_find_offer(m->opts, at, o->params, &offer, &why);

    rc = rc < 0 ? app_mcp_fail(m, at, o->call, why, err) : call_offer(m, at, o, &offer, err);
    rv_err_free(why);
    app_mcp_offer_fini(&offer);
    return rc;
}

/* The request is a call whose arguments are those of the run; what else it has (an address, answers) stays. */
int app_mcp_run_document(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o,
                         struct mcp_document *d, rv_err **err)
{
    struct rv_mcp_order as_call = *o;
    int rc = rv_json_dup(o->params, &as_call.params, err);

    if (rc == 0)
        rc = rv_json_set_ref(as_call.params, "arguments", d->arguments, err);
    if (rc == 0)
        rc = call_offer(m, at, &as_call, &d->offer, err);
    if (as_call.params != o->params)
        json_object_put(as_call.params);
    return rc;
}
