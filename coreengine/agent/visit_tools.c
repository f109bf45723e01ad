/* The main phase of a tool stage: the steps of a plan, in order, each with access control, validation, the confirmation
 * gate and a normalised result (rules 6.1, 6.2, W32 to W38). A failing step is a result; it does not fail the stage. */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

void rv_visit_tools_fini(struct tool_progress *t)
{
    json_object_put(t->steps);
    json_object_put(t->results);
    json_object_put(t->said);
}

/* The steps of the stage's plan as it stands, or NULL. */
json_object *rv_visit_plan(const rv_visit *v)
{
    json_object *plan = rv_envelope_output(v->env, rv_str_of(v->agent->plan_from), NULL), *steps = NULL;

    if (json_object_is_type(plan, json_type_object))
        json_object_object_get_ex(plan, "steps", &steps);
    return steps;
}

static json_object *step_now(const rv_visit *v)
{
    return json_object_array_get_idx(v->tools.steps, v->tools.at);
}

/* "step_<index>", written without memory: a result must not fail for want of a name. */
static rv_str numbered_step(size_t index, char *out, size_t size)
{
    size_t at = size;

    do
        out[--at] = (char)('0' + index % 10);
    while ((index /= 10) > 0);
    at -= 5;
    memcpy(out + at, "step_", 5);
    return (rv_str){out + at, size - at};
}

static rv_str step_id(rv_visit *v)
{
    json_object *id = NULL;
    json_object *step = step_now(v);

    if (json_object_is_type(step, json_type_object) && json_object_object_get_ex(step, "step_id", &id) &&
        json_object_is_type(id, json_type_string))
        return rv_json_str(id);
    return numbered_step(v->tools.at, v->tools.step_id, sizeof v->tools.step_id);
}

static rv_str step_tool(const rv_visit *v)
{
    json_object *tool = NULL;
    json_object *step = step_now(v);
    if (json_object_is_type(step, json_type_object))
        json_object_object_get_ex(step, "tool", &tool);
    return rv_json_str(tool);
}

static json_object *step_parameters(const rv_visit *v)
{
    return rv_json_get_obj(step_now(v), "parameters");
}

/* What is wrong with the shape of a step, or NULL. */
static const char *step_fault(const rv_visit *v)
{
    json_object *step = step_now(v), *part = NULL;

    if (!json_object_is_type(step, json_type_object))
        return "the step is no object";
    if (!json_object_object_get_ex(step, "tool", &part))
        return "the step names no tool";
    if (!json_object_is_type(part, json_type_string) || rv_json_str(part).len == 0)
        return "the step's tool is no text";
    if (json_object_object_get_ex(step, "parameters", &part) && part && !json_object_is_type(part, json_type_object))
        return "the step's parameters are no object";
    return NULL;
}

/* Append one entry to the results and tell observers. */
static int add_result(rv_visit *v, struct rv_step_result *r, struct rv_effects *out, rv_err **err)
{
    json_object *entry = NULL;
    const char *status = NULL;
    rv_jw w;

    r->step_id = step_id(v);
    r->tool = step_tool(v);
    r->parameters = json_object_is_type(step_now(v), json_type_object) ? step_parameters(v) : NULL;
    int rc = rv_tool_step_result(r, &entry, err);
    if (rc < 0)
        return rc;
    rc = rv_json_push_take(v->tools.results, entry, err);
    if (rc < 0)
        return rc;
    if (!rv_json_get_text(entry, "status", &status) || strcmp(status, "success") != 0)
        v->tools.all_succeeded = false;
    v->tools.total_ms += r->execution_ms;

    if (rv_emit_begin(v->shared, out, RV_EMIT_TOOL_RESULT, v->agent->index, v->visit_no, v->now_us, &w)) {
        if (v->last_call)
            rv_jw_kv_int(&w, "call_id", v->last_call);
        rv_jw_kv_str(&w, "tool", r->tool);
        rv_jw_kv_str(&w, "step_id", r->step_id);
        rv_jw_kv_text(&w, "status", status);
        rv_jw_kv_int(&w, "execution_time_ms", r->execution_ms);
        json_object *error = rv_json_get_obj(entry, "error");
        const char *text = NULL;
        if (error && rv_json_get_text(error, "type", &text))
            rv_jw_kv_text(&w, "error_type", text);
        if (error && rv_json_get_text(error, "message", &text))
            rv_visit_preview(&w, "error", rv_str_of(text));
        rv_emit_end(out, &w);
    }
    v->tools.at++;
    v->tools.approved = false;
    v->tools.key_visit = 0;
    v->attempt = 1;
    v->last_call = 0;
    return 0;
}

static int step_error(rv_visit *v, const char *type, rv_str message, bool recoverable, int64_t ms,
                      struct rv_effects *out, rv_err **err)
{
    struct rv_step_result r = {
        .execution_ms = ms, .error_type = type, .error_message = message, .recoverable = recoverable};
    return add_result(v, &r, out, err);
}

static int step_error_text(rv_visit *v, const char *type, bool recoverable, struct rv_effects *out, rv_err **err,
                           const char *fmt, ...) RV_PRINTF(6, 7);
static int step_error_text(rv_visit *v, const char *type, bool recoverable, struct rv_effects *out, rv_err **err,
                           const char *fmt, ...)
{
    rv_buf line = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    va_list ap;

    va_start(ap, fmt);
    rv_buf_vprintf(&line, fmt, ap);
    va_end(ap);
    int rc = rv_buf_check(&line, "tool error", err);
    if (rc == 0)
        rc = step_error(v, type, rv_buf_str(&line), recoverable, 0, out, err);
    rv_buf_fini(&line);
    return rc;
}

/* Find the plan's steps; a plan that is absent has none. */
static int begin_plan(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    json_object *steps = rv_visit_plan(v);
    int64_t limit = v->shared->pipeline->execution.max_plan_steps;

    v->tools.all_succeeded = true;
    v->tools.results = json_object_new_array();
    if (!v->tools.results)
        return RV_FAIL(err, RV_E_NOMEM, "begin tool stage \"%s\"", v->agent->name);
    if (steps && !json_object_is_type(steps, json_type_array))
        return rv_visit_fail(v, out, "ProcessingError", err,
                             "agent \"%s\": `steps` of output \"%s\" must be a list, found %s", v->agent->name,
                             v->agent->plan_from, rv_json_type_text(steps));
    if (steps && (int64_t)json_object_array_length(steps) > limit)
        return rv_visit_fail(v, out, "ProcessingError", err,
                             "agent \"%s\": the plan has %zu steps, execution.max_plan_steps allows %lld",
                             v->agent->name, json_object_array_length(steps), (long long)limit);
    v->tools.steps = steps ? json_object_get(steps) : json_object_new_array();
    return v->tools.steps ? 0 : RV_FAIL(err, RV_E_NOMEM, "begin tool stage \"%s\"", v->agent->name);
}

/* The same for every attempt, another one for every step of every visit: the hash keeps apart what was cut off. */
static void write_key(const rv_visit *v, rv_buf *key)
{
    const char *id = rv_envelope_fields(v->env)->envelope_id, *name = v->agent->name;
    uint64_t h = rv_visit_hash(rv_visit_hash(RV_VISIT_HASH_INIT, id), name);

    rv_buf_printf(key, "%.*s/%.*s/%016llx/%lld/%zu", RV_STR_ARG(rv_utf8_cut(rv_str_of(id), 40)),
                  RV_STR_ARG(rv_utf8_cut(rv_str_of(name), 40)), (unsigned long long)h,
                  (long long)(v->tools.key_visit ? v->tools.key_visit : v->visit_no), v->tools.at);
}

static int call_tool(rv_visit *v, rv_str tool, const struct rv_tool_info *info, struct rv_effects *out, rv_err **err)
{
    rv_buf request = RV_BUF_INIT(RV_JSON_MAX_BYTES), key = RV_BUF_INIT(RV_KEY_MAX);
    json_object *params = step_parameters(v);
    const struct rv_execution_config *x = &v->shared->pipeline->execution;
    rv_jw w;

    if (params)
        rv_json_write(params, &request);
    else
        rv_buf_puts(&request, "{}");
    write_key(v, &key);
    int rc = rv_buf_check(&key, "idempotency key", err);
    if (rc < 0) {
        rv_buf_fini(&request);
        rv_buf_fini(&key);
        return rc;
    }
    struct visit_call call = {
        .kind = RV_EFFECT_CALL_TOOL,
        .copy_name = tool,
        .timeout_ms = info->timeout_ms > 0 ? info->timeout_ms : x->tool_timeout_ms,
        .effect_class = rv_tool_effect(info),
        .key = rv_buf_cstr(&key),
    };
    if (v->attempt == 1)
        v->tools.call_started_us = v->tools.called_us = v->now_us;
    rc = rv_visit_call(v, &call, &request, out, err);
    bool asked = rc == 0 && v->waiting_for;
    const struct rv_effect *e = asked ? &out->items[out->n - 1] : NULL;
    rv_str sent = asked ? (rv_str){e->request, e->request_len} : (rv_str){NULL, 0};
    if (asked && rv_emit_begin(v->shared, out, RV_EMIT_TOOL_CALL_START, v->agent->index, v->visit_no, v->now_us, &w)) {
        rv_jw_kv_int(&w, "call_id", v->waiting_for);
        rv_jw_kv_str(&w, "tool", tool);
        rv_jw_kv_str(&w, "step_id", step_id(v));
        rv_jw_kv_int(&w, "step_number", (int64_t)v->tools.at + 1);
        rv_jw_kv_int(&w, "total_steps", (int64_t)json_object_array_length(v->tools.steps));
        rv_jw_kv_int(&w, "attempt", v->attempt);
        rv_visit_preview(&w, "params_preview", sent);
        rv_emit_end(out, &w);
    }
    rv_buf_fini(&key);
    return rc;
}

/* Everything that is decided before a tool may run. */
static int try_step(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const char *fault = step_fault(v), *why = NULL;
    rv_str tool = step_tool(v);

    if (fault)
        return step_error_text(v, "InvalidStep", false, out, err, "step %zu can not be run: %s", v->tools.at, fault);
    const struct rv_tool_info *info = v->shared->catalog.tool(v->shared->catalog.self, tool);
    if (!rv_tool_allowed(v->agent->tool_access, &v->agent->allowed_tools, tool, info, &why))
        return step_error_text(v, "AccessDenied", false, out, err,
                               "access denied: agent \"%s\" may not call tool \"%.*s\": %s", v->agent->name,
                               RV_STR_ARG(tool), why);
    if (!info)
        return step_error_text(v, "NotFoundError", false, out, err, "tool not found: \"%.*s\"", RV_STR_ARG(tool));
    if (info->input) {
        rv_err *cause = NULL;
        json_object *params = step_parameters(v), *empty = NULL;
        if (!params && !(params = empty = json_object_new_object()))
            return RV_FAIL(err, RV_E_NOMEM, "check tool parameters");
        int rc = rv_schema_check(info->input, params, &cause);
        json_object_put(empty);
        if (rc == RV_E_NOMEM) {
            rv_err_free(cause);
            return RV_FAIL(err, RV_E_NOMEM, "check tool parameters");
        }
        if (rc < 0) {
            rc = step_error_text(v, "ValidationError", true, out, err, "parameters of tool \"%.*s\": %s",
                                 RV_STR_ARG(tool), rv_err_text(cause));
            rv_err_free(cause);
            return rc;
        }
    }
    if (v->shared->pipeline->execution.require_confirmation_for_destructive &&
        rv_risk_needs_confirmation(rv_tool_risk(info)) && !v->tools.approved)
        return rv_visit_suspend(v, &(struct visit_step){step_id(v), tool, step_parameters(v), rv_tool_risk(info)}, out,
                                err);
    return call_tool(v, tool, info, out, err);
}

static int tools_output(rv_visit *v, rv_err **err)
{
    json_object *obj = json_object_new_object();
    int rc = obj ? 0 : RV_FAIL(err, RV_E_NOMEM, "make the output of a tool stage");

    if (rc == 0)
        rc = rv_json_set_ref(obj, "results", v->tools.results, err);
    if (rc == 0)
        rc = rv_json_set_int(obj, "total_time_ms", v->tools.total_ms, err);
    if (rc == 0)
        rc = rv_json_set_bool(obj, "all_succeeded", v->tools.all_succeeded, err);
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    v->output = obj;
    v->phase = PHASE_CHECK;
    return 0;
}

static int take_word(rv_visit *v, struct rv_effects *out, rv_err **err); /* below: it ends like a reply */

int rv_visit_tools(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    if (!v->tools.steps)
        rc = begin_plan(v, out, err);
    v->phase = v->phase == PHASE_BACKOFF ? PHASE_MAIN : v->phase;
    while (rc == 0 && v->phase == PHASE_MAIN && !v->waiting_for) {
        if (v->tools.at >= json_object_array_length(v->tools.steps))
            return tools_output(v, err);
        if (v->now_us >= v->deadline_us)
            return rv_visit_fail(v, out, "TimeoutError", err, "stage \"%s\" ran out of time before step %zu",
                                 v->agent->name, v->tools.at);
        rc = v->tools.word != WORD_NONE ? take_word(v, out, err) : try_step(v, out, err);
    }
    return rc;
}

/* The data of a step is the result's own `data` member if it has one, else the whole result (rule 6.1, W35). */
static int unwrap_data(json_object *raw, json_object *standard, rv_err **err)
{
    json_object *data = NULL;

    if (!json_object_is_type(raw, json_type_object) || !json_object_object_get_ex(raw, "data", &data))
        return 0;
    if (json_object_is_type(data, json_type_object))
        return rv_json_set_ref(standard, "data", data, err);
    json_object *wrapped = json_object_new_object();
    if (!wrapped)
        return RV_FAIL(err, RV_E_NOMEM, "wrap tool data");
    int rc = rv_json_set_ref(wrapped, "value", data, err);
    if (rc < 0) {
        json_object_put(wrapped);
        return rc;
    }
    return rv_json_set_take(standard, "data", wrapped, err);
}

static int good_reply(rv_visit *v, const struct rv_event *ev, int64_t ms, struct rv_effects *out, rv_err **err)
{
    const struct rv_tool_info *info = v->shared->catalog.tool(v->shared->catalog.self, step_tool(v));
    const struct rv_json_opts opts = {.what = "tool result"};
    json_object *raw = NULL, *standard = NULL;
    rv_err *cause = NULL;
    const char *status = NULL;

    int rc = rv_json_parse(ev->reply, &opts, &raw, &cause);
    if (rc == 0)
        rc = rv_tool_result_normalize(raw, &standard, &cause);
    if (rc < 0) {
        json_object_put(raw);
        bool fatal = rc == RV_E_NOMEM;
        rc = fatal ? RV_FAIL(err, RV_E_NOMEM, "read a tool result")
                   : step_error(v, "ExecutionError", rv_str_of(rv_err_text(cause)), false, ms, out, err);
        rv_err_free(cause);
        return rc;
    }
    bool success = rv_json_get_text(standard, "status", &status) && strcmp(status, "success") == 0;
    if (success)
        rc = unwrap_data(raw, standard, err);
    if (rc == 0 && success && info && info->output) {
        json_object *data = NULL;
        json_object_object_get_ex(standard, "data", &data);
        rc = rv_schema_check(info->output, data, &cause);
        if (rc < 0 && rc != RV_E_NOMEM)
            rc = step_error_text(v, "ValidationError", false, out, err, "result of tool \"%s\": %s", info->name,
                                 rv_err_text(cause));
        else if (rc == 0)
            goto accept;
        else
            rc = RV_FAIL(err, RV_E_NOMEM, "check a tool result");
        rv_err_free(cause);
    } else if (rc == 0) {
    accept:;
        struct rv_step_result r = {.execution_ms = ms, .standard = standard};
        rc = add_result(v, &r, out, err);
    }
    json_object_put(raw);
    json_object_put(standard);
    return rc;
}

static int ask_outcome(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const struct visit_step step = {.id = step_id(v), .tool = step_tool(v), .parameters = step_parameters(v)};
    rv_buf key = RV_BUF_INIT(RV_KEY_MAX);

    write_key(v, &key);
    int rc = rv_buf_check(&key, "idempotency key", err);
    if (rc == 0)
        rc = rv_visit_ask_outcome(v, &step, rv_buf_cstr(&key), out, err);
    rv_buf_fini(&key);
    return rc;
}

/* What a person said of the call at hand stands in for its answer. */
static int take_word(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf reply = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    int word = v->tools.word;
    rv_str tool = rv_utf8_cut(step_tool(v), 200);

    v->tools.word = WORD_NONE;
    if (word == WORD_ASK)
        return ask_outcome(v, out, err);
    if (word == WORD_FAIL)
        return rv_visit_fail(v, out, "ToolError", err,
                             "agent \"%s\": nobody knows whether tool \"%.*s\" ran, and the review gave it up",
                             v->agent->name, RV_STR_ARG(tool));
    if (v->tools.said)
        rv_json_write(v->tools.said, &reply);
    else
        rv_buf_puts(&reply, "{}");
    struct rv_event told = {.kind = RV_EVENT_TOOL_DONE, .reply = rv_buf_str(&reply)};
    int rc = rv_buf_check(&reply, "tool result", err);
    if (rc == 0)
        rc = good_reply(v, &told, 0, out, err);
    rv_buf_fini(&reply);
    return rc;
}

int rv_visit_tool_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int64_t ms = (v->now_us - v->tools.call_started_us) / 1000;

    if (ev->unknown)
        return ask_outcome(v, out, err);
    if (!ev->failed)
        return good_reply(v, ev, ms, out, err);
    const char *type = ev->error_type ? ev->error_type : "ExecutionError";
    const struct rv_tool_info *info = v->shared->catalog.tool(v->shared->catalog.self, step_tool(v));
    bool may_help = ev->retryable || strcmp(type, "TimeoutError") == 0;
    int64_t cap = v->shared->pipeline->execution.max_tool_retries;
    int64_t retries = v->agent->max_retries < cap ? v->agent->max_retries : cap;
    if (may_help && info && rv_tool_effect(info) != RV_EFFECT_NON_IDEMPOTENT) {
        char *why = rv_str_dup(ev->error);
        bool again = why && rv_visit_retry(v, retries, false, why, out);
        free(why);
        if (again)
            return 0;
    }
    return step_error(v, type, ev->error, ev->retryable, ms, out, err);
}
