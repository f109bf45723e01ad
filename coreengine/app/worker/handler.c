/* Tasks of other types than `run`: each is done by a run of the pipeline that handles its type, or of one made for the
 * tool that does. So it survives a crash as every run does: the worker that claims the task next goes on with the same
 * run. An attempt after one that failed gets a run of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/dreaming/dreaming_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/worker/worker_internal.h"

#define MAX_ATTEMPTS 1000 /* runs of one task that are looked at: each is read; RV_TASK_MAX_RETRIES is a tenth */
#define MAX_NAME     RV_PLAN_MAX_TOOL_NAME /* bytes of a capability's or a tool's name */
#define OUTPUT       "result"

/* --- handlers --- */

static bool is_name(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && (rv_is_letter(text[i]) || rv_is_digit(text[i]) || text[i] == '_' || text[i] == '-'))
        i++;
    return len > 0 && len <= MAX_NAME && i == len;
}

/* "capability:tool": NULL when it is a file. */
static const char *tool_of(const char *target)
{
    const char *colon = strchr(target, ':');

    return colon && is_name(target, (size_t)(colon - target)) && is_name(colon + 1, strlen(colon + 1)) ? colon + 1
                                                                                                       : NULL;
}

static int load(const struct rv_app *app, const struct rv_worker_handler *given, struct work_handler *h, rv_err **err)
{
    struct rv_app_load_opts opts = {.keeps = true};
    rv_buf text = RV_BUF_INIT(1024);
    const char *path = given->target;

    h->type = given->type;
    h->tool = tool_of(given->target);
    if (h->tool) {
        rv_buf_printf(&text,
                      "name: task\ncapabilities: [%.*s]\nagents:\n"
                      "  - {name: call, has_tools: true, tool_access: all, output_key: " OUTPUT "}\n",
                      (int)(h->tool - 1 - given->target), given->target);
        opts.text = rv_buf_str(&text);
    }
    int rc = rv_buf_check(&text, "pipeline", err);
    if (rc == 0)
        rc = rv_app_load(app, path, &opts, &h->loaded, err);
    if (rc == 0)
        rc = app_check_all(&h->loaded, false, err);
    if (rc == 0 && h->tool) {
        struct rv_catalog c = rv_plugins_catalog(h->loaded.plugins);
        if (!c.tool(c.self, rv_str_of(h->tool)))
            rc = RV_FAIL(err, RV_E_NOT_FOUND, "the capability has no tool \"%s\"", h->tool);
    }
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "handler \"%s=%s\"", given->type, given->target) : 0;
}

int app_work_handlers_load(const struct rv_app *app, const struct rv_worker_handler *given, size_t n,
                           struct work_handler **out, rv_err **err)
{
    struct work_handler *list = calloc(n + 1, sizeof *list);
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "load the handlers");

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (strcmp(given[i].type, RV_TASK_OF_RUN) == 0)
            rc = RV_FAIL(err, RV_E_INVALID, "tasks of type \"%s\" are runs and have no handler", RV_TASK_OF_RUN);
        for (size_t k = 0; rc == 0 && k < i; k++)
            if (strcmp(given[k].type, given[i].type) == 0)
                rc = RV_FAIL(err, RV_E_INVALID, "two handlers for type \"%s\"", given[i].type);
        if (rc == 0)
            rc = load(app, &given[i], &list[i], err);
    }
    if (rc < 0)
        app_work_handlers_free(list, n);
    else
        *out = list;
    return rc;
}

void app_work_handlers_free(struct work_handler *handlers, size_t n)
{
    for (size_t i = 0; handlers && i < n; i++)
        rv_app_loaded_fini(&handlers[i].loaded);
    free(handlers);
}

/* --- its run --- */

static int set_plan(const struct work_handler *h, json_object *payload, json_object *state, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *outputs = rv_json_build(&b, state, "outputs", json_object_new_object());
    json_object *plan = b.rc == 0 ? rv_json_build(&b, outputs, "plan", json_object_new_object()) : NULL;
    json_object *steps = b.rc == 0 ? rv_json_build(&b, plan, "steps", json_object_new_array()) : NULL;
    json_object *step = b.rc == 0 ? rv_json_build(&b, steps, NULL, json_object_new_object()) : NULL;

    if (b.rc == 0)
        rv_json_build_text(&b, step, "tool", h->tool);
    return b.rc < 0 ? b.rc : rv_json_set_ref(step, "parameters", payload, err);
}

/* What the run begins with: the member `input` of the payload, or the whole payload as text, and the payload as
 * metadata. */
static int state_of(const struct work_job *j, const char *id, json_object *payload, json_object *state, rv_err **err)
{
    const char *input = NULL;
    json_object *metadata = NULL;
    struct rv_json_build b = {.err = err};

    rv_json_build_text(&b, state, "envelope_id", id);
    if (j->task.user[0])
        rv_json_build_text(&b, state, "user_id", j->task.user);
    if (b.rc < 0)
        return b.rc;
    int rc = rv_json_get_text(payload, "input", &input) ? rv_json_set_text(state, "raw_input", input, err)
                                                        : rv_json_set_str(state, "raw_input", j->task.payload, err);
    if (rc == 0)
        rc = rv_json_dup(payload, &metadata, err);
    if (rc == 0)
        rc = rv_json_set_take(state, "metadata", metadata, err);
    if (rc < 0)
        return rc;
    json_object *task = rv_json_build(&b, metadata, "task", json_object_new_object());
    rv_json_build_text(&b, task, "id", j->task.id);
    rv_json_build_text(&b, task, "type", j->task.type);
    rv_json_build_int(&b, task, "attempt", j->task.attempt);
    if (b.rc < 0)
        return b.rc;
    return j->handler->tool ? set_plan(j->handler, payload, state, err) : 0;
}

static int envelope_of(const struct work_job *j, const char *id, rv_envelope **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TASK_MAX_JSON, .what = "payload of a task"};
    json_object *payload = NULL, *state = json_object_new_object();
    int rc =
        state ? rv_json_parse(j->task.payload, &opts, &payload, err) : RV_FAIL(err, RV_E_NOMEM, "begin with a task");

    if (rc == 0 && !json_object_is_type(payload, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "the payload of a task is an object");
    if (rc == 0)
        rc = state_of(j, id, payload, state, err);
    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), out, err);
    json_object_put(payload);
    json_object_put(state);
    return rc;
}

static int make_run(struct work_taker *t, struct work_job *j, const char *id, rv_err **err)
{
    const struct rv_app_begin begin = {.limits = &j->limits, .counts = RV_QUOTA_TASKS};
    struct rv_app_run run = {.app = &j->app,
                             .loaded = (struct rv_app_loaded *)(uintptr_t)&j->handler->loaded,
                             .mode = RV_UNSET,
                             .store = t->store};
    rv_envelope *env = NULL;

    int rc = envelope_of(j, id, &env, err);
    if (rc < 0)
        j->end = WORK_FATAL;
    if (rc == 0)
        rc = app_keep(&run, env, &begin, err);
    rv_journal_free(run.journal);
    rv_envelope_free(env);
    return rc;
}

/* The run was over, and the worker died before it completed the task. */
static int read_result(rv_store *store, struct work_job *j, rv_err **err)
{
    struct rv_app_past past;
    struct rv_replayed r = {0};

    int rc = rv_app_past_open(store, &j->app.scope, j->run, &past, err);
    if (rc < 0)
        return rc;
    rc = rv_app_past_replay(store, &past, NULL, &r, err);
    if (rc == 0) {
        app_work_handler_result(j, rv_run_status(r.run), rv_run_envelope(r.run));
        rv_replayed_fini(&r);
    }
    rv_app_past_fini(&past);
    return rc;
}

/* The id of the run of the n-th attempt. */
static int name_run(struct work_job *j, int n, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, j->task.user};

    if (j->handler->dreams)
        return app_dream_id(&scope, &j->dream, n, j->run, err);
    int len = n == 1 ? snprintf(j->run, sizeof j->run, RV_WORK_JOB_PREFIX "%s", j->task.id)
                     : snprintf(j->run, sizeof j->run, RV_WORK_JOB_PREFIX "%s.%d", j->task.id, n);
    return len < 0 || len >= (int)sizeof j->run
               ? RV_FAIL(err, RV_E_LIMIT, "the id of the task is too long for the id of a run")
               : 0;
}

int app_work_handler_run(struct work_taker *t, struct work_job *j, struct rv_run_row *out, rv_err **err)
{
    for (int n = 1; n <= MAX_ATTEMPTS; n++) {
        rv_err *why = NULL;
        int rc = name_run(j, n, err);
        if (rc < 0) {
            j->end = WORK_FATAL;
            return rc;
        }
        rc = rv_store_get_run(t->store, &j->app.scope, j->run, out, &why);
        if (rc == RV_E_NOT_FOUND) {
            rv_err_free(why);
            rc = j->handler->make ? j->handler->make(t, j, j->run, err) : make_run(t, j, j->run, err);
            return rc < 0 ? rc : rv_store_get_run(t->store, &j->app.scope, j->run, out, err);
        }
        if (rc < 0) {
            rv_err_pass(err, why);
            return rc;
        }
        bool is_empty = false;
        if (out->status == RV_RUN_COMPLETED && j->handler->dreams)
            rc = app_dream_is_empty(t->store, &j->app.scope, j->run, &is_empty, err);
        if (rc < 0)
            return rc;
        if (out->status == RV_RUN_COMPLETED && !is_empty)
            return read_result(t->store, j, err);
        if (!rv_run_status_is_final(out->status))
            return 0;
        rv_run_row_fini(out); /* an earlier attempt, which failed */
    }
    j->end = WORK_FATAL;
    return RV_FAIL(err, RV_E_LIMIT, "more than %d runs of one task", MAX_ATTEMPTS);
}

void app_work_find_end(rv_store *store, struct work_job *j)
{
    struct rv_run_row row;
    rv_err *err = NULL;

    j->waits = true; /* perhaps: the store knows */
    if (!j->handler) {
        app_work_done(j, "went on in a process of its own");
        return;
    }
    int rc = rv_store_get_run(store, &j->app.scope, j->run, &row, &err);
    if (rc == 0) {
        if (rv_run_status_is_final(row.status))
            rc = read_result(store, j, &err);
        else if (row.status == RV_RUN_INTERRUPTED)
            app_work_done(j, rv_run_status_text(row.status));
        else
            j->end = WORK_BACK; /* the next one goes on with it */
        rv_run_row_fini(&row);
    }
    if (rc < 0)
        app_work_fail(j, app_work_end_of(j, rc), err);
}

/* --- its result --- */

/* What a handler says: an object whose status is not "ok" is a failure. */
void app_work_take_object(struct work_job *j, json_object *o)
{
    const char *status = NULL;
    json_object *v = NULL;

    if (json_object_object_get_ex(o, "status", &v) &&
        (!rv_json_get_text(o, "status", &status) || strcmp(status, "ok") != 0)) {
        app_work_not_done(j, status ? status : "the status of its result is not a text");
        return;
    }
    rv_json_write(o, &j->result);
    j->end = WORK_DONE;
}

static void take_tool_result(struct work_job *j, const rv_envelope *env)
{
    json_object *outputs = NULL, *error;
    const char *message = NULL;

    if (rv_envelope_build_outputs(env, &outputs, RV_CODE_ONLY("it fails without memory only, which the task is told")) <
        0) {
        app_work_not_done(j, "no memory to read the result of the tool");
        return;
    }
    json_object *list = rv_json_get_arr(rv_json_get_obj(outputs, OUTPUT), "results");
    json_object *first = list ? json_object_array_get_idx(list, 0) : NULL;
    json_object *data = first ? rv_json_get_obj(first, "data") : NULL;
    error = first ? rv_json_get_obj(first, "error") : NULL;
    if (error && rv_json_get_text(error, "message", &message))
        app_work_not_done(j, message);
    else if (data)
        app_work_take_object(j, data);
    else
        app_work_done(j, rv_run_status_text(RV_RUN_COMPLETED));
    json_object_put(outputs);
}

static void take_response(struct work_job *j, rv_str response)
{
    json_object *o = NULL;
    rv_jw w = rv_jw_on(&j->result);

    int rc = rv_json_parse(response, NULL, &o,
                           RV_CODE_ONLY("text that is not JSON is the result; want of memory is told to the task"));
    if (rc == RV_E_NOMEM) {
        app_work_not_done(j, "no memory to read the response of the run");
    } else if (rc == 0 && json_object_is_type(o, json_type_object)) {
        app_work_take_object(j, o);
    } else {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "status", "ok");
        rv_jw_kv_text(&w, "run", j->run);
        rv_jw_kv_str(&w, "response", response);
        rv_jw_obj_end(&w);
        j->end = WORK_DONE;
    }
    json_object_put(o);
}

void app_work_handler_result(struct work_job *j, enum rv_run_status status, const rv_envelope *env)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    rv_str response;

    rv_buf_clear(&j->result);
    if (j->handler->result) {
        j->handler->result(j, status, env);
        return;
    }
    if (!rv_app_has_answer(status, env)) {
        app_work_not_done(j, f->termination_reason ? f->termination_reason : rv_run_status_text(status));
        return;
    }
    if (j->handler->tool)
        take_tool_result(j, env);
    else if (rv_envelope_find_final_response(env, &j->handler->loaded.pipeline->response, &response))
        take_response(j, response);
    else
        app_work_done(j, rv_run_status_text(status));
    if (j->end == WORK_DONE && j->result.rc < 0)
        app_work_not_done(j, "the result is too long for a task");
}
