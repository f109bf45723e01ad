/* Calls that a server made tasks of: the client asks for the task until it is over, within the time that the call has,
 * and cancels it when no one waits any more. For the caller it is one call, whose result comes late.
 *
 * In 2026-07-28 the server decides, and the end of a task has its result. In 2025-11-25 the client asks for a task,
 * which it does for tools that need one, and then for the result; a task that asks a person does so while it is asked
 * for. */
#include "coreengine/mcp/client_internal.h"

#include <json-c/linkhash.h>

#define POLL_US     (500 * RV_US_PER_MS) /* when the server does not say */
#define MIN_POLL_US (100 * RV_US_PER_MS) /* a server that wants more is asked in vain most times */
#define MAX_POLL_US (10 * RV_US_PER_S)   /* ten seconds: a result that is there should not wait for much longer */
#define MAX_TASK_ID 512                  /* bytes: it goes into a header of each question */

static int invalid(rv_mcp_client *c, struct rv_mcp_open *o, const char *text, rv_err **err)
{
    return mcp_end_failed(c, o, &(struct rv_mcp_trouble){.code = "invalid_answer", .text = text}, err);
}

static int64_t interval_of(json_object *task)
{
    int64_t ms = 0;

    if ((!rv_json_get_int(task, "pollIntervalMs", &ms) && !rv_json_get_int(task, "pollInterval", &ms)) || ms <= 0)
        return POLL_US;
    if (ms >= MAX_POLL_US / 1000)
        return MAX_POLL_US;
    return ms * 1000 < MIN_POLL_US ? MIN_POLL_US : ms * 1000;
}

/* Its id as the parameter of a request. */
static int params_of(json_object *task, json_object **out, rv_err **err)
{
    json_object *params = json_object_new_object();

    if (!params)
        return RV_FAIL(err, RV_E_NOMEM, "ask an MCP server for a task");
    int rc = rv_json_set_ref(params, "taskId", task, err);
    if (rc < 0)
        json_object_put(params);
    else
        *out = params;
    return rc;
}

/* What a server of 2025-11-25 says of its tasks; NULL: nothing. */
static json_object *tasks_of(const rv_mcp_client *c)
{
    return c->version == RV_MCP_2025_11_25 ? rv_json_get_obj(rv_json_get_obj(c->answer, "capabilities"), "tasks")
                                           : NULL;
}

int mcp_task_wish(const rv_mcp_client *c, struct rv_mcp_open *o, json_object *params, rv_err **err)
{
    json_object *tools = rv_json_get_obj(rv_json_get_obj(tasks_of(c), "requests"), "tools");

    o->asked_for_task = o->needs_task && !o->task && rv_json_get_obj(tools, "call") != NULL;
    return o->asked_for_task ? rv_json_set_take(params, "task", json_object_new_object(), err) : 0;
}

static int poll_later(struct rv_mcp_open *o, json_object *task)
{
    o->id = 0;
    o->poll_us = interval_of(task);
    o->poll_at_us = RV_MCP_POLL_SOON;
    return 0;
}

int mcp_task_begun(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, rv_err **err)
{
    json_object *id = NULL, *params = NULL;

    json_object_object_get_ex(result, "taskId", &id);
    rv_str text = rv_json_str(id);
    if (strcmp(o->method, "tools/call") != 0)
        return invalid(c, o, "resultType task does not fit the request", err);
    if (text.len == 0 || text.len > MAX_TASK_ID || memchr(text.ptr, '\0', text.len))
        return invalid(c, o, "taskId is not a text of 1 to 512 bytes", err);
    int rc = params_of(id, &params, err);
    if (rc < 0)
        return rc;
    json_object_put(o->params);
    json_object_put(o->headers); /* those of the call's arguments do not belong to these questions */
    json_object_put(o->state);
    json_object_put(o->responses);
    o->headers = o->state = o->responses = NULL;
    if (c->era == RV_MCP_ERA_MODERN) { /* a server of the era before asks for it once more */
        json_object_put(o->input);
        o->input = NULL;
    }
    o->params = params;
    o->task = json_object_get(id);
    o->method = "tasks/get";
    o->token = o->wants_progress && c->era == RV_MCP_ERA_LEGACY ? o->id : 0; /* it stays that of the call */
    o->wants_progress = false;
    return poll_later(o, result); /* no request is on its way */
}

static int failed(rv_mcp_client *c, struct rv_mcp_open *o, json_object *task, rv_err **err)
{
    json_object *error = rv_json_get_obj(task, "error");
    const char *said = NULL;
    int64_t code = 0;

    if (!rv_json_get_text(error, "message", &said) || !rv_json_get_int(error, "code", &code) || code < INT32_MIN ||
        code > INT32_MAX)
        return invalid(c, o, "a task that failed has no error", err);
    return mcp_refused(c, o, (int)code, said, err);
}

static int refuse_input(rv_mcp_client *c, struct rv_mcp_open *o, rv_err **err)
{
    int rc = mcp_task_cancel(c, o, err);

    return rc < 0 ? rc
                  : mcp_end_failed(c, o,
                                   &(struct rv_mcp_trouble){.code = "input_required",
                                                            .text = "the task asks for input that was not declared, "
                                                                    "that is not a form for a person, or for too "
                                                                    "much"},
                                   err);
}

/* Answers that are known without a person. */
static int answer_roots(rv_mcp_client *c, struct rv_mcp_open *o, json_object *keys, rv_err **err)
{
    if (++o->n_rounds > RV_MCP_MAX_ROUNDS)
        return invalid(c, o, "a task asks for the roots again and again", err);
    json_object_put(o->responses);
    o->responses = json_object_new_object();
    if (!o->responses)
        return RV_FAIL(err, RV_E_NOMEM, "answer an MCP server");
    int rc = mcp_add_roots(c, keys, o->responses, err);
    if (rc < 0)
        return rc;
    json_object_put(o->input); /* it was answered before */
    o->input = NULL;
    o->method = "tasks/update";
    return mcp_send_open(c, o, err);
}

/* Was that request answered with what the caller gave? */
static bool is_answered(const struct rv_mcp_open *o, const char *key)
{
    json_object *answers = o->input ? rv_json_get_arr(o->input, "answers") : NULL;
    size_t n = answers ? json_object_array_length(answers) : 0;
    int64_t round = 0, of = 0;
    const char *text = NULL;

    RV_IGNORE(o->input && !rv_json_get_int(o->input, "round", &round), "absent: 0");
    for (size_t i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(answers, i);
        if (rv_json_get_int(one, "round", &of) && of == round && rv_json_get_text(one, "key", &text) &&
            strcmp(text, key) == 0)
            return true;
    }
    return false;
}

/* Of 2026-07-28. The call ends with what a person is asked, and the task goes on; when the call is made again with the
 * answers, they are sent to the task (mcp_task_resume()). */
static int asks(rv_mcp_client *c, struct rv_mcp_open *o, json_object *task, rv_err **err)
{
    json_object *requests = rv_json_get_obj(task, "inputRequests");
    struct rv_mcp_wanted w = {0};

    if (c->era == RV_MCP_ERA_LEGACY || !requests || json_object_object_length(requests) == 0)
        return refuse_input(c, o, err);
    json_object_object_foreach (requests, key, request) {
        (void)request;
        if (is_answered(o, key))
            return poll_later(o, task); /* the server has not looked at the answer yet */
    }
    int rc = mcp_read_requests(c, requests, &w, err);
    if (rc == 0 && (w.is_refused || json_object_object_length(w.samples) > 0))
        rc = refuse_input(c, o, err);
    else if (rc == 0 && json_object_array_length(w.forms) > 0)
        rc = mcp_ask_person(c, o, &w, NULL, err);
    else if (rc == 0)
        rc = answer_roots(c, o, w.roots, err);
    mcp_wanted_fini(&w);
    return rc;
}

int mcp_task_resume(const rv_mcp_client *c, struct rv_mcp_open *o, rv_err **err)
{
    json_object *state = o->input ? rv_json_get_obj(o->input, "state") : NULL, *task = NULL, *params = NULL;

    if (o->task || c->era != RV_MCP_ERA_MODERN || !state || !json_object_object_get_ex(state, "task", &task))
        return 0;
    int rc = params_of(task, &params, err);
    if (rc < 0)
        return rc;
    json_object_put(o->params);
    json_object_put(o->headers);
    o->headers = NULL;
    o->params = params;
    o->task = json_object_get(task);
    o->method = "tasks/update";
    o->wants_progress = false;
    return 0;
}

/* Of 2025-11-25: the result is asked for when it is there, or when the server wants to ask a person meanwhile. 1: the
 * status says anything else. */
static int legacy_told(rv_mcp_client *c, struct rv_mcp_open *o, json_object *task, const char *status, rv_err **err)
{
    bool is_over = strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0;

    if (strcmp(o->method, "tasks/result") == 0)
        return mcp_end_ok(c, o, json_object_get(task), err);
    if (!is_over && !(strcmp(status, "input_required") == 0 && c->elicits))
        return 1;
    o->method = "tasks/result";
    return mcp_send_open(c, o, err);
}

int mcp_task_told(rv_mcp_client *c, struct rv_mcp_open *o, json_object *task, rv_err **err)
{
    const char *status = "";
    bool has_status = rv_json_get_text(task, "status", &status);

    if (c->era == RV_MCP_ERA_LEGACY) {
        int rc = legacy_told(c, o, task, status, err);
        if (rc <= 0)
            return rc;
    }
    if (strcmp(o->method, "tasks/update") == 0) { /* it says nothing of the task */
        json_object_put(o->responses);
        o->responses = NULL;
        o->method = "tasks/get";
        return poll_later(o, task);
    }
    if (!has_status)
        return invalid(c, o, "a task has no status", err);
    if (strcmp(status, "completed") == 0) {
        json_object *result = rv_json_get_obj(task, "result");
        return result ? mcp_end_ok(c, o, json_object_get(result), err)
                      : invalid(c, o, "a task that completed has no result", err);
    }
    if (strcmp(status, "failed") == 0)
        return failed(c, o, task, err);
    if (strcmp(status, "cancelled") == 0)
        return mcp_end_failed(
            c, o, &(struct rv_mcp_trouble){.code = "rejected", .text = "the server cancelled the task"}, err);
    if (strcmp(status, "input_required") == 0)
        return asks(c, o, task, err);
    if (strcmp(status, "working") != 0)
        return invalid(c, o, "a task has an unknown status", err);
    return poll_later(o, task);
}

int mcp_task_tick(rv_mcp_client *c, struct rv_mcp_open *o, int64_t now_us, rv_err **err)
{
    if (!o->task || c->phase != RV_MCP_READY || o->id)
        return 0;
    if (o->poll_at_us == RV_MCP_POLL_SOON)
        o->poll_at_us = now_us + o->poll_us;
    if (now_us < o->poll_at_us)
        return 0;
    o->poll_at_us = RV_NEVER;
    return mcp_send_open(c, o, err);
}

int mcp_task_cancel(rv_mcp_client *c, const struct rv_mcp_open *o, rv_err **err)
{
    bool is_modern = c->era == RV_MCP_ERA_MODERN;
    json_object *params = NULL, *meta = NULL;

    if (!is_modern && !rv_json_get_obj(tasks_of(c), "cancel"))
        return 0; /* the server cannot: the task ends by itself */
    int rc = params_of(o->task, &params, err);
    if (rc == 0 && is_modern) {
        meta = json_object_new_object();
        rc = meta ? mcp_add_meta(c, meta, c->version, err) : RV_FAIL(err, RV_E_NOMEM, "cancel a task of an MCP server");
        if (rc == 0) {
            rc = rv_json_set_take(params, "_meta", meta, err);
            meta = NULL;
        }
    }
    if (rc == 0) /* its answer changes nothing */
        rc = mcp_put_request(c,
                             &(struct mcp_request){.id = ++c->last_id,
                                                   .method = "tasks/cancel",
                                                   .params = params,
                                                   .is_modern = is_modern,
                                                   .version = c->version},
                             err);
    json_object_put(params);
    json_object_put(meta);
    return rc;
}
