/* One step of a tool stage, or one tool call of a model: what is decided before its tool may run, the call, and what
 * its answer becomes (rules 6.1, 6.2, W32 to W38). Which step comes when is the business of tools.c and pending.c. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAME 200 /* bytes of a tool's name in an error: a model may have made it up */

static json_object *step_of(const rv_visit *v, size_t index)
{
    return json_object_array_get_idx(v->tools.steps, index);
}

json_object *visit_plan(const rv_visit *v)
{
    json_object *plan = rv_envelope_output(v->env, rv_str_of(v->agent->tools.plan_from), NULL), *steps = NULL;

    if (json_object_is_type(plan, json_type_object))
        json_object_object_get_ex(plan, "steps", &steps);
    return steps;
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

rv_str agent_step_id(const rv_visit *v, size_t index, char *scratch, size_t size)
{
    json_object *id = NULL;
    json_object *step = step_of(v, index);

    if (json_object_is_type(step, json_type_object) && json_object_object_get_ex(step, "step_id", &id) &&
        json_object_is_type(id, json_type_string))
        return rv_json_str(id);
    return numbered_step(index, scratch, size);
}

size_t agent_step_of_call(const rv_visit *v, json_object *call, size_t index)
{
    size_t n = v->tools.steps ? json_object_array_length(v->tools.steps) : 0;
    json_object *id = NULL;
    char scratch[48];

    json_object_object_get_ex(call, "id", &id);
    for (size_t i = 0; v->n_client_tools > 0 && i < n; i++)
        if (rv_str_eq(agent_step_id(v, i, scratch, sizeof scratch), rv_json_str(id)))
            return i;
    return index;
}

rv_str agent_step_tool(const rv_visit *v, size_t index)
{
    json_object *tool = NULL;
    json_object *step = step_of(v, index);
    if (json_object_is_type(step, json_type_object))
        json_object_object_get_ex(step, "tool", &tool);
    return rv_json_str(tool);
}

/* What hooks have made of the arguments of a step under way; NULL: nothing. */
static json_object *changed_parameters(const rv_visit *v, size_t index)
{
    const struct tool_progress *t = &v->tools;

    if (index - t->at < t->n_pending)
        return t->pending[index - t->at].hooks.arguments;
    return index == t->at ? t->hooks.arguments : NULL;
}

json_object *agent_step_parameters(const rv_visit *v, size_t index)
{
    json_object *changed = changed_parameters(v, index);

    if (changed)
        return changed;
    return rv_json_get_obj(step_of(v, index), "parameters");
}

bool agent_step_asks_agent(const rv_visit *v, size_t index)
{
    return rv_str_is(agent_step_tool(v, index), RV_TOOL_ASK_AGENT);
}

bool agent_tools_have_keys(const rv_visit *v)
{
    const struct rv_execution_config *x = &v->shared->pipeline->execution;

    return v->shared->rules < RV_RULES_2 || (x->enable_idempotency && x->enforce_idempotency_for_tools);
}

/* The same for every attempt, another one for every step of every visit: the hash keeps apart what was cut off. */
void agent_step_write_key(const rv_visit *v, size_t index, int64_t since_us, rv_buf *key)
{
    const char *id = rv_envelope_fields(v->env)->envelope_id, *name = v->agent->name;
    uint64_t h = visit_identity(v);
    int64_t renewals = (v->now_us - since_us) / (v->shared->pipeline->execution.idempotency_ttl_ms * RV_US_PER_MS);

    rv_buf_printf(key, "%.*s/%.*s/%016llx/%lld/%zu", RV_STR_ARG(rv_utf8_cut(rv_str_of(id), 40)),
                  RV_STR_ARG(rv_utf8_cut(rv_str_of(name), 40)), (unsigned long long)h,
                  (long long)(v->tools.key_visit ? v->tools.key_visit : v->visit_no), v->model.steps_before + index);
    /* An attempt after its time has another one; what a person lets happen again keeps the key that they were shown. */
    if (renewals > 0 && !v->tools.key_visit && v->shared->rules >= RV_RULES_2)
        rv_buf_printf(key, "/r%lld", (long long)renewals);
}

/* --- before the call --- */

/* What is wrong with the shape of a step, or NULL. */
static const char *step_fault(const rv_visit *v, size_t index)
{
    json_object *step = step_of(v, index), *part = NULL;
    const char *fault = NULL;

    if (!json_object_is_type(step, json_type_object))
        return "the step is no object";
    if (v->model.acting && rv_json_get_text(step, "fault", &fault)) /* of the arguments that a model wrote */
        return fault;
    if (!json_object_object_get_ex(step, "tool", &part))
        return "the step names no tool";
    if (!json_object_is_type(part, json_type_string) || rv_json_str(part).len == 0)
        return "the step's tool is no text";
    bool must_be_object = v->model.acting || v->shared->rules < RV_RULES_2; /* a plan's count as {} else */
    if (must_be_object && json_object_object_get_ex(step, "parameters", &part) && part &&
        !json_object_is_type(part, json_type_object))
        return "the step's parameters are no object";
    return NULL;
}

static void bad(struct step_judgement *j, const char *type, bool recoverable, const char *fmt, ...) RV_PRINTF(4, 5);
static void bad(struct step_judgement *j, const char *type, bool recoverable, const char *fmt, ...)
{
    va_list ap;

    j->verdict = STEP_IS_BAD;
    j->error_type = type;
    j->recoverable = recoverable;
    va_start(ap, fmt);
    rv_buf_vprintf(&j->text, fmt, ap);
    va_end(ap);
}

static int check_parameters(const rv_visit *v, size_t index, const struct rv_tool_info *info,
                            struct step_judgement *out, rv_err **err)
{
    json_object *params = agent_step_parameters(v, index), *empty = NULL;
    rv_err *cause = NULL;

    if (!info->input)
        return 0;
    if (!params && !(params = empty = json_object_new_object()))
        return RV_FAIL(err, RV_E_NOMEM, "check tool parameters");
    int rc = rv_schema_check(info->input, params, &cause);
    json_object_put(empty);
    bool no_memory = rv_err_is(cause, RV_E_NOMEM);
    if (rc < 0 && !no_memory)
        bad(out, rv_error_validation, true, "parameters of tool \"%.*s\": %s", RV_STR_ARG(agent_step_tool(v, index)),
            rv_err_text(cause));
    rv_err_free(cause);
    return no_memory ? RV_FAIL(err, RV_E_NOMEM, "check tool parameters") : 0;
}

/* A model that is told what there is finds the right name by itself. */
static void list_offered(const rv_visit *v, const char *intro, struct step_judgement *out)
{
    json_object *offered = v->model.offered;

    for (size_t i = 0; v->model.acting && offered && i < json_object_array_length(offered); i++) {
        const char *name = rv_json_text_or(json_object_array_get_idx(offered, i), "name", "");
        rv_buf_printf(&out->text, "%s\"%s\"", i ? ", " : intro, name);
    }
}

static void unknown_tool(const rv_visit *v, rv_str tool, struct step_judgement *out)
{
    bad(out, rv_error_not_found, false, "tool not found: \"%.*s\"", RV_STR_ARG(rv_utf8_cut(tool, MAX_NAME)));
    list_offered(v, "; there are ", out);
}

/* Tells whether the agent may call that tool, if it exists. An agent without access is not told which tools exist, but
 * a model knows its tools. */
static void judge_name(const rv_visit *v, rv_str tool, const struct rv_tool_info *info, struct step_judgement *out)
{
    const char *why = NULL;
    bool allowed = rv_tool_is_allowed(v->agent->tools.access, &v->agent->tools.allowed, tool, info, &why);

    if (allowed && !v->agent->tools.allowed.is_set && rv_str_is(tool, RV_TOOL_ASK_AGENT)) {
        allowed = false; /* nor is it offered: agents that may ask others list the tool by name */
        why = "allowed_tools does not list it";
    }

    if (!info && (allowed || v->model.acting)) {
        unknown_tool(v, tool, out);
    } else if (!allowed) {
        bad(out, rv_error_access_denied, false, "access denied: agent \"%s\" may not call tool \"%.*s\": %s",
            v->agent->name, RV_STR_ARG(rv_utf8_cut(tool, MAX_NAME)), why);
        if (v->shared->rules >= RV_RULES_2)
            list_offered(v, "; it may call ", out);
    }
}

bool agent_tool_is_refused(const rv_visit *v, rv_str tool, rv_buf *why)
{
    json_object *blocked = rv_visit_root(v->shared)->blocked;
    bool is_listed = false;

    for (size_t i = 0; blocked && i < json_object_array_length(blocked) && !is_listed; i++)
        is_listed = rv_str_eq(rv_json_str(json_object_array_get_idx(blocked, i)), tool);
    if (is_listed)
        rv_buf_printf(why, "tool \"%.*s\" is blocked: it failed %d times within %d s",
                      RV_STR_ARG(rv_utf8_cut(tool, MAX_NAME)), RV_BREAKER_ERRORS,
                      (int)(RV_BREAKER_WINDOW_US / RV_US_PER_S));
    return is_listed;
}

/* The tool that is called. */
static rv_str callee_of(const rv_visit *v, rv_str tool)
{
    return agent_resource_tool(v, tool) ? RV_STR_LIT(RV_TOOL_READ_RESOURCE) : tool;
}

int agent_step_judge(const rv_visit *v, size_t index, struct step_judgement *out, rv_err **err)
{
    const char *fault = step_fault(v, index);
    rv_str tool = agent_step_tool(v, index);
    const struct rv_tool_info *info = fault ? NULL : visit_tool(v, tool);

    *out = (struct step_judgement){.verdict = STEP_RUNS, .text = RV_BUF_INIT(RV_JSON_MAX_BYTES)};
    if (fault)
        bad(out, v->model.acting ? rv_error_validation : rv_error_invalid_step, false, "step %zu %s be run: %s", index,
            visit_cannot(v), fault);
    else if (!agent_client_tool(v, tool))
        judge_name(v, tool, info, out);
    int rc = out->verdict == STEP_RUNS ? check_parameters(v, index, info, out, err) : 0;
    rv_str word;
    if (rc == 0 && out->verdict == STEP_RUNS && agent_resource_lacks(v, tool, &word))
        bad(out, rv_error_validation, false, "Error: %.*s not available in context", RV_STR_ARG(word));
    if (rc == 0 && out->verdict == STEP_RUNS && agent_tool_is_refused(v, callee_of(v, tool), &out->text)) {
        out->verdict = STEP_IS_BLOCKED;
        out->error_type = rv_error_tool;
        out->recoverable = true;
    }
    if (rc == 0)
        rc = rv_buf_check(&out->text, "tool error", err);
    if (rc < 0) {
        rv_buf_fini(&out->text);
        return rc;
    }
    out->info = info;
    if (out->verdict == STEP_RUNS && agent_client_tool(v, tool)) {
        out->verdict = STEP_IS_CLIENTS;
        return 0;
    }
    bool is_gated = v->shared->pipeline->execution.require_confirmation_for_destructive && info &&
                    rv_risk_needs_confirmation(rv_tool_risk(info));
    bool asks = out->verdict == STEP_RUNS && (v->planned ? planned_confirms(v, info) : is_gated || info->confirm);
    if (asks)
        out->verdict = STEP_ASKS;
    return 0;
}

/* --- the call --- */

/* The time that a call of the tool has: its own, but no more than is left to the plan. */
static int64_t planned_timeout_ms(const rv_visit *v, const struct rv_tool_info *info)
{
    int64_t ms = info->timeout_ms > 0 ? info->timeout_ms : v->agent->planning.call_timeout_ms;
    int64_t left = (v->planned->until_us - v->now_us + 999) / 1000;

    return left < ms ? (left > 0 ? left : 1) : ms;
}

int agent_step_call(rv_visit *v, const struct step_call *which, int64_t *call_id, struct rv_effects *out, rv_err **err)
{
    const struct rv_tool_info *info = which->info;
    size_t index = which->index;
    rv_buf request = RV_BUF_INIT(RV_JSON_MAX_BYTES), key = RV_BUF_INIT(RV_KEY_MAX);
    json_object *params = agent_step_parameters(v, index);
    const struct rv_execution_config *x = &v->shared->pipeline->execution;
    char scratch[48];

    *call_id = 0;
    bool reads = agent_resource_request(v, agent_step_tool(v, index), params, &request);
    if (!reads && params)
        rv_json_write(params, &request);
    else if (!reads)
        rv_buf_puts(&request, "{}");
    const struct pending_call *f = v->tools.n_pending > 0 ? &v->tools.pending[index - v->tools.at] : NULL;
    agent_step_write_key(v, index, f ? f->started_us : v->tools.called_us, &key);
    int rc = rv_buf_check(&key, "idempotency key", err);
    if (rc < 0) {
        rv_buf_fini(&request);
        rv_buf_fini(&key);
        return rc;
    }
    struct visit_call call = {
        .kind = RV_EFFECT_CALL_TOOL,
        .copy_name = callee_of(v, agent_step_tool(v, index)),
        .timeout_ms = v->planned             ? planned_timeout_ms(v, info)
                      : info->timeout_ms > 0 ? info->timeout_ms
                                             : x->tool_timeout_ms,
        .effect_class = rv_tool_effect(info),
        .key = agent_tools_have_keys(v) ? rv_buf_cstr(&key) : NULL,
        .attempt = which->attempt,
    };
    v->waiting_for = 0; /* others may be under way: this one may end the visit */
    rc = agent_visit_call(v, &call, &request, out, err);
    bool asked = rc == 0 && v->waiting_for;
    if (asked && index == v->tools.at && !f)
        rc = agent_input_write(v, &out->items[out->n - 1].about, &out->items[out->n - 1].about_len, err);
    if (rc < 0) {
        rv_buf_fini(&key);
        return rc;
    }
    const struct rv_effect *e = asked ? &out->items[out->n - 1] : NULL;
    rv_str sent = asked ? (rv_str){e->request, e->request_len} : (rv_str){NULL, 0};
    if (asked)
        *call_id = v->waiting_for;
    if (asked)
        rv_visit_emit(
            v, out, RV_EMIT_TOOL_CALL_START, RV_M_INT("call_id", *call_id), RV_M_STR("tool", agent_step_tool(v, index)),
            RV_M_STR("step_id", agent_step_id(v, index, scratch, sizeof scratch)),
            RV_M_INT("step_number", (int64_t)index + 1),
            RV_M_INT("total_steps", (int64_t)json_object_array_length(v->tools.steps)),
            RV_M_INT("attempt", which->attempt), RV_M_PREVIEW("params_preview", sent), RV_M_ARGUMENTS(v, params));
    rv_buf_fini(&key);
    return rc;
}

bool agent_step_may_repeat(const rv_visit *v, size_t index, const struct rv_event *ev, int64_t *max_retries)
{
    const struct rv_tool_info *info = visit_tool(v, agent_step_tool(v, index));
    bool may_help = ev->retryable || rv_error_is(ev->error_type, rv_error_timeout);
    int64_t cap = v->shared->pipeline->execution.max_tool_retries;

    *max_retries = v->agent->limits.max_retries < cap ? v->agent->limits.max_retries : cap;
    return ev->failed && may_help && info && rv_tool_effect(info) != RV_EFFECT_NON_IDEMPOTENT;
}

/* --- the answer --- */

static int entry_of(rv_visit *v, size_t index, struct rv_step_result *r, json_object **out, rv_err **err)
{
    char scratch[48];

    r->step_id = agent_step_id(v, index, scratch, sizeof scratch);
    r->tool = agent_step_tool(v, index);
    r->parameters = json_object_is_type(step_of(v, index), json_type_object) ? agent_step_parameters(v, index) : NULL;
    return rv_tool_build_step_result(r, out, err);
}

int agent_step_error(rv_visit *v, size_t index, const struct step_failure *why, json_object **out, rv_err **err)
{
    struct rv_step_result r = {.execution_ms = why->ms,
                               .error_type = why->type,
                               .error_message = why->message,
                               .recoverable = why->recoverable};
    return entry_of(v, index, &r, out, err);
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

static int check_data(const struct rv_tool_info *info, json_object *standard, rv_err **cause)
{
    json_object *data = NULL;

    json_object_object_get_ex(standard, "data", &data);
    int rc = rv_schema_check(info->output, data, cause);
    return rc < 0 && rc != RV_E_NOMEM ? RV_WRAP(cause, rc, "result of tool \"%s\"", info->name) : rc;
}

/* The entry of a call of a plan that was made. has_output: value is the output, whatever its type. Frees the entry if
 * that fails. */
static int mark(const rv_visit *v, json_object **entry, bool has_output, json_object *value, const char *code,
                rv_err **err)
{
    int rc = planned_set_code(v, *entry, code, true, err);

    if (rc == 0 && has_output && !json_object_is_type(value, json_type_object))
        rc = rv_json_set_ref(*entry, PLANNED_OUTPUT, value, err);
    if (rc < 0) {
        json_object_put(*entry);
        *entry = NULL;
    }
    return rc;
}

/* Tells whether what a tool replied has the form of a result of `tools/call`: content of typed blocks, and no key that
 * such results do not have. */
static bool has_form_of_result(json_object *raw)
{
    static const char *const keys[] = {"content", "structuredContent", "isError", "_meta", "resultType"};
    json_object *content = json_object_is_type(raw, json_type_object) ? rv_json_get_arr(raw, "content") : NULL;

    if (!content || !agent_hooks_know_keys(raw, keys, RV_COUNT(keys)))
        return false;
    for (size_t i = 0; i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i);
        const char *type = NULL;
        if (!json_object_is_type(block, json_type_object) || !rv_json_get_text(block, "type", &type))
            return false;
    }
    return true;
}

static int good_entry(rv_visit *v, size_t index, rv_str reply, int64_t ms, json_object **out, rv_err **err)
{
    const struct rv_tool_info *info = visit_tool(v, agent_step_tool(v, index));
    const struct rv_json_opts opts = {.refuse_big_ints = visit_refuses_big_ints(v), .what = "tool result"};
    json_object *raw = NULL, *standard = NULL, *value = NULL;
    const char *status = NULL, *type = rv_error_execution, *code = NULL;
    rv_err *cause = NULL;

    int rc = rv_json_parse(reply, &opts, &raw, &cause);
    bool is_result = rc == 0 && v->planned && has_form_of_result(raw);
    if (rc == 0)
        rc = is_result ? planned_read_result(info, raw, &standard, &value, &code, &cause)
                       : rv_tool_result_normalize(raw, &standard, &cause);
    bool success = rc == 0 && rv_json_get_text(standard, "status", &status) && strcmp(status, "success") == 0;
    if (success && !is_result)
        rc = unwrap_data(raw, standard, &cause);
    if (rc == 0 && success && !is_result && info && info->output) {
        rc = check_data(info, standard, &cause);
        type = rv_error_validation;
        code = rc < 0 ? "output_schema_violation" : NULL;
    }
    if (rc == 0) {
        struct rv_step_result r = {.execution_ms = ms,
                                   .standard = standard,
                                   /* a plan refers to data */
                                   .has_content = !v->planned && v->shared->rules >= RV_RULES_4};
        rc = entry_of(v, index, &r, out, err);
    } else if (rv_err_is(cause, RV_E_NOMEM)) {
        rv_err_free(cause);
        rc = RV_FAIL(err, RV_E_NOMEM, "read a tool result");
    } else {
        /* not RV_E_NOMEM */
        rc = agent_step_error(v, index, &(struct step_failure){type, rv_str_of(rv_err_text(cause)), false, ms}, out,
                              err);
        rv_err_free(cause);
    }
    if (rc == 0 && v->planned)
        rc = mark(v, out, success && is_result, value, code, err);
    if (rc == 0 && v->planned && (rc = planned_find_artifact(v, index, raw, is_result, *out, err)) < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    json_object_put(raw);
    json_object_put(standard);
    json_object_put(value);
    return rc;
}

int agent_step_entry(rv_visit *v, size_t index, const struct rv_event *ev, int64_t ms, json_object **out, rv_err **err)
{
    if (!ev->failed)
        return good_entry(v, index, ev->reply, ms, out, err);
    int rc = agent_step_error(v, index,
                              &(struct step_failure){.type = ev->error_type ? ev->error_type : rv_error_execution,
                                                     .message = ev->error,
                                                     .recoverable = ev->retryable,
                                                     .ms = ms},
                              out, err);
    return rc == 0 && v->planned ? mark(v, out, false, NULL, NULL, err) : rc;
}
