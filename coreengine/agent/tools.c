/* The order of steps: the plan of a tool stage, or the calls that a model's reply asked for (rules 6.1, 6.2). A failing
 * step is a result; it does not fail the stage. Results that are meant for the observer, marked with `_action_event`,
 * are actions: they become an event, never text. An observation may name the session, and an agent may say that it is
 * done or gives up. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TYPE       64  /* bytes of an action's type: a model fills it; a longer one is an error of the call */
#define MAX_NAME_CHARS 120 /* of what a session is called, as the tool `action` has it */

static int bad_marker(rv_visit *v, size_t index, const char *what, struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1024);

    rv_buf_printf(&text, "tool \"%.*s\" gave an action that is none: %s",
                  RV_STR_ARG(rv_utf8_cut(agent_step_tool(v, index), 200)), what);
    int rc = rv_buf_check(&text, "a warning", err);
    if (rc == 0)
        rv_visit_emit(v, out, RV_EMIT_WARNING, RV_M_STR("message", rv_buf_str(&text)));
    rv_buf_fini(&text);
    return rc;
}

/* --- observations: their members are checked, whichever tool sends them --- */

/* What a session may be called: one line that says something. */
static bool is_name(json_object *value)
{
    rv_str text = rv_json_str(value);

    if (!json_object_is_type(value, json_type_string) || rv_str_trim(text).len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < ' ' || c == 0x7f)
            return false;
    }
    return rv_utf8_count(text) <= MAX_NAME_CHARS;
}

static bool is_number_within(json_object *value, double most)
{
    double n = json_object_get_double(value);

    return rv_json_is_number(value) && n >= 0 && n <= most;
}

static bool is_risk_level(json_object *value)
{
    static const char *const words[] = {"low", "moderate", "high", "critical"};

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(rv_json_str(value), words[i]))
            return true;
    return false;
}

/* What is wrong with it, or NULL. */
static const char *observation_fault(json_object *payload)
{
    json_object *part = NULL;

    if (!payload)
        return NULL;
    if (json_object_object_get_ex(payload, "confidence", &part) && part && !is_number_within(part, 1))
        return "confidence must be a number from 0 to 1";
    if (json_object_object_get_ex(payload, "risk_score", &part) && part &&
        !(rv_json_is_int(part) && is_number_within(part, 100)))
        return "risk_score must be a whole number from 0 to 100";
    if (json_object_object_get_ex(payload, "risk_level", &part) && part && !is_risk_level(part))
        return "risk_level must be low, moderate, high or critical";
    if (json_object_object_get_ex(payload, "session_name", &part) && part && !is_name(part))
        return "session_name must be one line of 1 to 120 characters";
    return NULL;
}

static void tell(rv_visit *v, size_t index, const char *type, json_object *payload, struct rv_effects *out)
{
    char scratch[48];

    rv_visit_emit(v, out, RV_EMIT_ACTION, RV_M_TEXT("action_type", type), RV_M_OF(OBJECT, "payload", payload),
                  RV_M_STR("tool", agent_step_tool(v, index)),
                  RV_M_STR("tool_call_id", agent_step_id(v, index, scratch, sizeof scratch)));
}

/* Only the stage's own agent may name the session. */
static int name_session(rv_visit *v, json_object *payload, rv_err **err)
{
    json_object *name = NULL;

    if (!payload || v->shared->origin || !json_object_object_get_ex(payload, "session_name", &name))
        return 0;
    rv_str text = rv_str_trim(rv_json_str(name));
    if (text.len == 0) /* null */
        return 0;
    free(v->session_name);
    v->session_name = rv_str_dup(text);
    return v->session_name ? 0 : RV_FAIL(err, RV_E_NOMEM, "name a session");
}

static void end_routing(rv_visit *v, const char *type, json_object *payload)
{
    const char *why = "";

    if (v->shared->origin)
        return;
    if (strcmp(type, "complete") == 0)
        rv_routing_complete(&v->routing);
    if (strcmp(type, "escalate") == 0) {
        if (!payload || !rv_json_get_text(payload, "reason", &why))
            why = "";
        rv_routing_escalate(&v->routing, why);
    }
}

/* A result may be an action: then it is told to observers, and may name the session or end a routing. */
static int act_on(rv_visit *v, size_t index, json_object *entry, struct rv_effects *out, rv_err **err)
{
    json_object *data = rv_json_get_obj(entry, "data"), *payload = NULL;
    const char *type = NULL;
    bool is_action = false;

    if (!data || !rv_json_get_bool(data, "_action_event", &is_action) || !is_action)
        return 0;
    if (!rv_json_get_text(data, "action_type", &type) || !type[0] || strlen(type) > MAX_TYPE)
        return bad_marker(v, index, "action_type must be a short text", out, err);
    if (json_object_object_get_ex(data, "payload", &payload) && payload &&
        !json_object_is_type(payload, json_type_object))
        return bad_marker(v, index, "payload must be an object", out, err);
    bool observes = strcmp(type, "observation") == 0;
    const char *fault = observes ? observation_fault(payload) : NULL;
    if (fault)
        return bad_marker(v, index, fault, out, err);
    if (observes && v->agent->declared.doc && v->agent->declared.doc->observation_mode == RV_OBSERVATION_DISABLED)
        return 0; /* observations of such an agent emit no event */
    tell(v, index, type, payload, out);
    end_routing(v, type, payload);
    return observes ? name_session(v, payload, err) : 0;
}

/* Were hooks before a tool to look at the arguments, and the call came to its end before they did? They may have what
 * is not for people. */
static bool is_unseen(const rv_visit *v, size_t index)
{
    const struct tool_progress *t = &v->tools;
    bool is_pending = index - t->at < t->n_pending;
    enum hook_side side = is_pending ? t->pending[index - t->at].hooks.side : t->hooks.side;

    return v->shared->rules >= RV_RULES_10 && v->agent->hooks.before_tool.n > 0 && side == HOOKS_NOT_ASKED;
}

static void tell_result(rv_visit *v, size_t index, json_object *entry, int64_t call_id, struct rv_effects *out)
{
    const char *status = NULL, *type = NULL, *text = NULL;
    char scratch[48];
    enum rv_failure code;
    json_object *data = NULL;

    if (!rv_json_get_text(entry, "status", &status) || strcmp(status, "success") != 0)
        v->tools.all_succeeded = false;
    int64_t ms = rv_json_int_or(entry, "execution_time_ms", 0);
    v->tools.total_ms += ms;
    json_object *error = rv_json_get_obj(entry, "error");
    bool has_type = error && rv_json_get_text(error, "type", &type);
    bool has_text = error && rv_json_get_text(error, "message", &text);
    json_object_object_get_ex(entry, "data", &data);
    if (!v->event_code || rv_failure_of(rv_str_of(v->event_code), &code, NULL) < 0)
        code = agent_failure_of_tool(type);
    v->event_code = NULL; /* the next step is another call */
    const char *code_text = has_type ? visit_code_text(v, code) : NULL;
    bool by_client = v->tools.client && agent_client_tool(v, agent_step_tool(v, index));
    bool hides = !by_client && is_unseen(v, index);
    rv_visit_emit(v, out, RV_EMIT_TOOL_RESULT, RV_M_IF(call_id, RV_M_INT("call_id", call_id)),
                  RV_M_STR("tool", agent_step_tool(v, index)),
                  RV_M_STR("step_id", agent_step_id(v, index, scratch, sizeof scratch)), RV_M_TEXT("status", status),
                  RV_M_INT("execution_time_ms", ms), RV_M_IF(by_client, RV_M_BOOL("client", true)),
                  RV_M_IF(has_type, RV_M_TEXT("error_type", type)), RV_M_IF(code_text, RV_M_TEXT("code", code_text)),
                  RV_M_IF(has_text, RV_M_PREVIEW("error", rv_str_of(text))),
                  RV_M_IF(!hides, RV_M_ARGUMENTS(v, agent_step_parameters(v, index))), RV_M_RESULT(v, data, call_id));
}

int agent_step_ended(rv_visit *v, size_t index, json_object *entry, int64_t call_id, struct rv_effects *out,
                     rv_err **err)
{
    int rc = act_on(v, index, entry, out, err);

    if (v->planned)
        planned_ended(v, index, entry);
    if (rc == 0)
        tell_result(v, index, entry, call_id, out);
    return rc == 0 && v->planned ? planned_tell_artifact(v, index, entry, call_id, out, err) : rc;
}

void visit_tools_fini(struct tool_progress *t)
{
    json_object_put(t->steps);
    json_object_put(t->results);
    json_object_put(t->stated);
    json_object_put(t->denial);
    json_object_put(t->input);
    json_object_put(t->client);
    json_object_put(t->client_text);
    for (size_t i = 0; i < t->n_pending; i++) {
        json_object_put(t->pending[i].entry);
        agent_child_free(t->pending[i].child);
        agent_tool_hooks_fini(&t->pending[i].hooks);
    }
    free(t->pending);
    agent_tool_hooks_fini(&t->hooks);
}

static void clear(struct tool_progress *t)
{
    visit_tools_fini(t);
    *t = (struct tool_progress){0};
}

/* Find the plan's steps; a plan that is absent has none. */
static int begin_plan(rv_visit *v, rv_err **err)
{
    json_object *steps = visit_plan(v);
    int64_t limit = v->shared->pipeline->execution.max_plan_steps;

    v->tools.all_succeeded = true;
    v->tools.results = json_object_new_array();
    if (!v->tools.results)
        return RV_FAIL(err, RV_E_NOMEM, "begin tool stage \"%s\"", v->agent->name);
    if (steps && !json_object_is_type(steps, json_type_array))
        return rv_visit_fail(v, rv_error_processing, err,
                             "agent \"%s\": `steps` of output \"%s\" must be a list, found %s", v->agent->name,
                             v->agent->tools.plan_from, rv_json_type_text(steps));
    if (steps && (int64_t)json_object_array_length(steps) > limit)
        return rv_visit_fail(v, rv_error_processing, err,
                             "agent \"%s\": the plan has %zu steps, execution.max_plan_steps allows %lld",
                             v->agent->name, json_object_array_length(steps), (long long)limit);
    v->tools.steps = steps ? json_object_get(steps) : json_object_new_array();
    return v->tools.steps ? 0 : RV_FAIL(err, RV_E_NOMEM, "begin tool stage \"%s\"", v->agent->name);
}

/* Takes entry: what the step at hand came to. The next one is due. */
static int step_ended(rv_visit *v, json_object *entry, struct rv_effects *out, rv_err **err)
{
    int rc = rv_json_push_take(v->tools.results, entry, err);

    if (rc < 0)
        return rc;
    rc = agent_step_ended(v, v->tools.at, entry, v->last_call, out, err);
    if (rc < 0)
        return rc;
    agent_tool_hooks_fini(&v->tools.hooks);
    json_object_put(v->tools.input);
    v->tools.input = NULL;
    v->tools.at++;
    v->tools.approved = false;
    v->tools.key_visit = 0;
    v->tools.call_started_us = 0;
    v->attempt = 1;
    v->last_call = 0;
    return 0;
}

int agent_tools_count_bad(rv_visit *v, const char *why, rv_err **err)
{
    bool untold =
        v->model.bad_before == 0 && v->agent->limits.max_bad_calls > 0; /* of the first ones it learns in any case */

    if (v->planned || !v->model.acting || ++v->model.bad_calls <= v->agent->limits.max_bad_calls || untold)
        return 0;
    return rv_visit_fail(v, rv_error_limit, err,
                         "agent \"%s\": the model asked for %lld tool calls that %s be made, max_bad_calls is "
                         "%lld: raise it, or tell "
                         "the model what there is; the last: %s",
                         v->agent->name, (long long)v->model.bad_calls, visit_cannot(v),
                         (long long)v->agent->limits.max_bad_calls, why);
}

static int bad_step(rv_visit *v, const struct step_judgement *j, struct rv_effects *out, rv_err **err)
{
    json_object *entry = NULL;
    int rc = agent_step_error(
        v, v->tools.at,
        &(struct step_failure){.type = j->error_type, .message = rv_buf_str(&j->text), .recoverable = j->recoverable},
        &entry, err);

    if (rc == 0 && v->planned)
        rc = planned_set_code(v, entry, NULL, false, err);
    if (rc == 0)
        rc = step_ended(v, entry, out, err);
    else
        json_object_put(entry);
    if (rc < 0 || j->verdict == STEP_IS_BLOCKED) /* that is not the model's fault */
        return rc;
    return agent_tools_count_bad(v, rv_buf_cstr(&j->text), err);
}

static int run_step(rv_visit *v, const struct rv_tool_info *info, struct rv_effects *out, rv_err **err)
{
    int64_t call_id = 0;

    if (v->attempt == 1)
        v->tools.call_started_us = v->tools.called_us = v->now_us;
    return agent_step_call(v, &(const struct step_call){v->tools.at, v->attempt, info}, &call_id, out, err);
}

/* A call that a person would have to confirm, where there is no one to ask. */
static int deny(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    json_object *entry = NULL;
    int rc = planned_deny(v, v->tools.at, "the call needs a confirmation, and the stage has no one who gives it",
                          &entry, err);

    return rc < 0 ? rc : step_ended(v, entry, out, err);
}

/* The step of a plan at hand has its values, or is over. */
static int prepare(rv_visit *v, bool *is_over, struct rv_effects *out, rv_err **err)
{
    json_object *entry = NULL;
    bool waits = false;
    int rc = planned_skip(v, v->tools.at, &waits, &entry, err);

    *is_over = rc == 0 && entry;
    if (*is_over) {
        v->tools.at++;
        return rv_json_push_take(v->tools.results, entry, err);
    }
    if (rc == 0)
        rc = planned_prepare(v, v->tools.at, &entry, err);
    *is_over = rc == 0 && entry;
    return *is_over ? step_ended(v, entry, out, err) : rc;
}

static int try_step(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    struct step_judgement j;
    size_t at = v->tools.at, n_begun = 0;
    bool is_over = false;

    bool may_overlap = v->attempt == 1 && v->tools.hooks.side == HOOKS_NOT_ASKED && !v->tools.approved &&
                       (v->model.acting || agent_step_asks_agent(v, at));
    size_t overlap = v->planned && may_overlap ? planned_overlap(v) : 0;
    if (overlap > 1)
        return agent_pending_begin_planned(v, overlap, out, err);
    int rc = v->planned ? prepare(v, &is_over, out, err) : 0;
    if (rc < 0 || is_over)
        return rc;
    rc = may_overlap ? agent_pending_begin(v, &n_begun, out, err) : 0;
    if (rc < 0 || n_begun > 0)
        return rc;
    rc = agent_step_judge(v, at, &j, err);
    if (rc < 0)
        return rc;
    if (j.verdict == STEP_IS_BAD || j.verdict == STEP_IS_BLOCKED) {
        rc = bad_step(v, &j, out, err);
    } else if (j.verdict == STEP_IS_CLIENTS) {
        rc = agent_client_calls_wait(v, out, err);
    } else if (v->tools.hooks.side == HOOKS_NOT_ASKED && v->agent->hooks.before_tool.n > 0) {
        rc = agent_step_hooks_before(v, at, &v->tools.hooks, out, err); /* a person approves what hooks have left */
    } else if (j.verdict == STEP_ASKS && !v->tools.approved && v->planned &&
               v->agent->planning.confirmer == RV_CONFIRMER_NONE) {
        rc = deny(v, out, err);
    } else if (j.verdict == STEP_ASKS && !v->tools.approved) {
        rc = visit_suspend(v, j.info, out, err);
    } else {
        rc = run_step(v, j.info, out, err);
    }
    rv_buf_fini(&j.text);
    return rc;
}

/* The calls of the last reply were made: their results become messages, and the model is asked again. */
static int return_results(rv_visit *v, rv_err **err)
{
    size_t n = json_object_array_length(v->tools.steps);
    json_object *reply = json_object_array_get_idx(v->model.messages, json_object_array_length(v->model.messages) - 1);
    json_object *calls = rv_json_get_arr(reply, "tool_calls");
    int rc = 0;

    for (size_t k = 0; k < n && rc == 0; k++) {
        size_t i = agent_step_of_call(v, json_object_array_get_idx(calls, k), k);
        rv_buf content = RV_BUF_INIT(RV_MESSAGES_RESULT_MAX);
        char scratch[48];
        bool is_error = false;

        agent_messages_write_result(json_object_array_get_idx(v->tools.results, i), &content, &is_error);
        rc = rv_buf_check(&content, "tool result", err);
        if (rc == 0)
            rc = agent_messages_add_result(v, agent_step_id(v, i, scratch, sizeof scratch), agent_step_tool(v, i),
                                           rv_buf_str(&content), is_error, err);
        rv_buf_fini(&content);
    }
    if (rc == 0)
        rc = agent_client_calls_over(v, err);
    v->model.steps_before += n;
    v->model.acting = false;
    clear(&v->tools);
    v->attempt = 1;
    return rc;
}

/* The steps of a plan are over. */
static int executed(rv_visit *v, rv_err **err)
{
    int rc = planned_executed(v, err);

    clear(&v->tools);
    return rc;
}

static int tools_output(rv_visit *v, rv_err **err)
{
    json_object *obj = json_object_new_object();
    int rc = RV_SET(obj, err, RV_M_OF(VALUE, "results", v->tools.results), RV_M_INT("total_time_ms", v->tools.total_ms),
                    RV_M_BOOL("all_succeeded", v->tools.all_succeeded));

    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    v->output = obj;
    v->phase = PHASE_CHECK;
    return 0;
}

/* A person refused the call at hand: the model is told with their words. */
static int take_denial(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *words = NULL, *entry = NULL;

    json_object_object_get_ex(v->tools.denial, "text", &words);
    rv_str said = rv_str_trim(rv_json_str(words));
    rv_buf_printf(&text, "a person refused the call of tool \"%.*s\"%s%.*s",
                  RV_STR_ARG(rv_utf8_cut(agent_step_tool(v, v->tools.at), 200)), said.len ? ": " : "",
                  RV_STR_ARG(said));
    json_object_put(v->tools.denial);
    v->tools.denial = NULL;
    int rc = rv_buf_check(&text, "why a call is refused", err);
    if (rc == 0)
        rc =
            v->planned
                ? planned_deny(v, v->tools.at, rv_buf_cstr(&text), &entry, err)
                : agent_step_error(v, v->tools.at,
                                   &(struct step_failure){.type = rv_error_access_denied, .message = rv_buf_str(&text)},
                                   &entry, err);
    rv_buf_fini(&text);
    return rc < 0 ? rc : step_ended(v, entry, out, err);
}

static int take_review(rv_visit *v, struct rv_effects *out, rv_err **err); /* below: it ends like a reply */
static int take_client(rv_visit *v, struct rv_effects *out, rv_err **err); /* the same */

int visit_tools(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    if (!v->tools.steps)
        rc = begin_plan(v, err);
    v->phase = v->phase == PHASE_BACKOFF ? PHASE_MAIN : v->phase;
    while (rc == 0 && v->phase == PHASE_MAIN && !v->waiting_for) {
        if (v->tools.at >= json_object_array_length(v->tools.steps))
            return v->planned ? executed(v, err) : v->model.acting ? return_results(v, err) : tools_output(v, err);
        if (v->now_us >= v->deadline_us)
            return rv_visit_fail(v, rv_error_timeout, err, "stage \"%s\" ran out of time before step %zu",
                                 v->agent->name, v->tools.at);
        rc = v->tools.denial                  ? take_denial(v, out, err)
             : agent_input_open(v)            ? agent_input_ask(v, out, err)
             : v->tools.review != REVIEW_NONE ? take_review(v, out, err)
             : v->tools.client                ? take_client(v, out, err)
                                              : try_step(v, out, err);
    }
    return rc;
}

/* Hooks have looked at what the step at hand came to. */
static int entry_is_final(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    json_object *entry = v->tools.hooks.entry, *error = rv_json_get_obj(entry, "error");
    bool is_refused = v->tools.hooks.is_refused;
    const char *why = "";

    v->tools.hooks.entry = NULL;
    v->last_call = v->tools.hooks.call_id;
    int rc = step_ended(v, entry, out, err);
    if (rc < 0 || !is_refused)
        return rc;
    RV_IGNORE(!error || !rv_json_get_text(error, "message", &why), "absent: empty"); /* the results have the entry */
    return agent_tools_count_bad(v, why, err);
}

/* Takes entry: what the call at hand came to. */
static int call_ended(rv_visit *v, json_object *entry, struct rv_effects *out, rv_err **err)
{
    struct tool_hooks *h = &v->tools.hooks;

    if (v->agent->hooks.after_tool.n == 0)
        return step_ended(v, entry, out, err);
    return agent_step_hooks_after(v, v->tools.at, h, (struct step_end){entry, v->last_call}, out, err);
}

int visit_tool_hook_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    struct tool_hooks *h = &v->tools.hooks;
    int rc = agent_step_hooks_on(v, v->tools.at, h, ev, out, err);

    return rc == 0 && v->phase != PHASE_FAILED && h->side == HOOKS_DONE ? entry_is_final(v, out, err) : rc;
}

static int step_answered(rv_visit *v, const struct rv_event *ev, int64_t ms, struct rv_effects *out, rv_err **err)
{
    json_object *entry = NULL;
    int rc = agent_step_entry(v, v->tools.at, ev, ms, &entry, err);

    return rc < 0 ? rc : call_ended(v, entry, out, err);
}

/* The decision of a review about the call at hand replaces its answer. */
static int take_review(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf reply = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    int review = v->tools.review;
    rv_str tool = rv_utf8_cut(agent_step_tool(v, v->tools.at), 200);

    v->tools.review = REVIEW_NONE;
    v->tools.call_started_us = v->now_us; /* perhaps in another life */
    if (review == REVIEW_ASK)
        return visit_ask_outcome(v, out, err);
    if (review == REVIEW_FAIL)
        return rv_visit_fail(v, rv_error_tool, err,
                             "agent \"%s\": nobody knows whether tool \"%.*s\" ran, and the review gave it up",
                             v->agent->name, RV_STR_ARG(tool));
    if (v->tools.stated)
        rv_json_write(v->tools.stated, &reply);
    else
        rv_buf_puts(&reply, "{}");
    struct rv_event told = {.kind = RV_EVENT_TOOL_DONE, .reply = rv_buf_str(&reply)};
    int rc = rv_buf_check(&reply, "tool result", err);
    if (rc == 0)
        rc = step_answered(v, &told, 0, out, err);
    rv_buf_fini(&reply);
    return rc;
}

/* The step at hand has its result from the client. */
static int take_client(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf reply = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct rv_event told;

    v->tools.call_started_us = v->now_us;
    int rc = agent_client_call_take(v, &reply, &told, err);
    if (rc == 0)
        rc = step_answered(v, &told, 0, out, err);
    rv_buf_fini(&reply);
    return rc;
}

int visit_tool_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int64_t ms = (v->now_us - v->tools.call_started_us) / RV_US_PER_MS, retries = 0;

    if (ev->unknown && v->planned && v->agent->planning.confirmer == RV_CONFIRMER_NONE) {
        json_object *entry = NULL;
        int made = planned_unknown(v, v->tools.at, ms, &entry, err);
        return made < 0 ? made : call_ended(v, entry, out, err);
    }
    if (ev->unknown)
        return visit_ask_outcome(v, out, err);
    if (ev->asks) {
        json_object *entry = NULL;
        int asked = agent_input_asked(v, ev, ms, &entry, out, err);
        return asked < 0 || !entry ? asked : call_ended(v, entry, out, err);
    }
    if (agent_step_may_repeat(v, v->tools.at, ev, &retries)) {
        char *why = rv_str_dup(ev->error);
        if (!why)
            return RV_FAIL(err, RV_E_NOMEM, "repeat a call of stage \"%s\"", v->agent->name);
        bool again = visit_retry(v, retries, false, why, out);
        free(why);
        if (again)
            return 0;
    }
    return step_answered(v, ev, ms, out, err);
}
