/* Calls into capabilities around the main phase: hooks, mocks, policies and routing functions: what they are shown of
 * the envelope, and what their answers may change. An answer is data: it is parsed, checked and applied here, and can
 * at worst fail the stage. */
#include "coreengine/agent/agent_internal.h"
#include "envelope/envelope.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

static void write_interrupt(const rv_visit *v, rv_jw *w)
{
    struct rv_interrupt in = rv_envelope_interrupt(v->env);

    rv_jw_key(w, "interrupt");
    if (!in.exists) {
        rv_jw_null(w);
        return;
    }
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_interrupt_kind_text(in.kind));
    rv_jw_kv_text(w, "id", in.id);
    rv_jw_kv_text(w, "question", in.question);
    rv_jw_kv_text(w, "message", in.message);
    rv_jw_kv_value(w, "data", in.data);
    rv_jw_kv_value(w, "response", in.response);
    rv_jw_obj_end(w);
}

typedef json_object *(*map_get)(const rv_envelope *env, rv_str key, bool *found);

/* "outputs.plan", "metadata.x", "state.y": single members, gathered under their map. */
static void write_members(const rv_visit *v, const struct rv_str_list *sees, const char *map, map_get get, rv_jw *w)
{
    size_t len = strlen(map);
    bool open = false;

    for (size_t i = 0; i < sees->n; i++) {
        const char *item = sees->items[i];
        if (strncmp(item, map, len) != 0 || item[len] != '.')
            continue;
        bool found;
        json_object *value = get(v->env, rv_str_of(item + len + 1), &found);
        if (!open) {
            rv_jw_key(w, map);
            rv_jw_obj(w);
            open = true;
        }
        if (found)
            rv_jw_kv_value(w, item + len + 1, value);
    }
    if (open)
        rv_jw_obj_end(w);
}

static bool wants(const struct rv_str_list *sees, const char *part)
{
    if (!sees || !sees->is_set)
        return true;
    for (size_t i = 0; i < sees->n; i++)
        if (strcmp(sees->items[i], part) == 0)
            return true;
    return false;
}

void agent_hooks_write_view(const rv_visit *v, const struct rv_str_list *sees, rv_jw *w)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(v->env);

    rv_jw_obj(w);
    if (wants(sees, "ids")) {
        rv_jw_kv_text(w, "envelope_id", f->envelope_id);
        rv_jw_kv_text(w, "request_id", f->request_id);
        rv_jw_kv_text(w, "user_id", f->user_id);
        rv_jw_kv_text(w, "session_id", f->session_id);
    }
    if (wants(sees, "raw_input"))
        rv_jw_kv_str(w, "raw_input", (rv_str){f->raw_input, f->raw_input_len});
    if (wants(sees, "iteration"))
        rv_jw_kv_int(w, "iteration", f->iteration);
    if (wants(sees, "counters")) {
        rv_jw_kv_int(w, "llm_call_count", f->llm_call_count);
        rv_jw_kv_int(w, "agent_hop_count", f->agent_hop_count);
    }
    if (wants(sees, "outputs")) {
        rv_jw_key(w, "outputs");
        rv_envelope_write_outputs(v->env, w);
    } else {
        write_members(v, sees, "outputs", rv_envelope_output, w);
    }
    if (wants(sees, "metadata")) {
        rv_jw_key(w, "metadata");
        rv_envelope_write_metadata(v->env, w);
    } else {
        write_members(v, sees, "metadata", rv_envelope_metadata, w);
    }
    if (wants(sees, "state")) {
        rv_jw_key(w, "state");
        rv_envelope_write_state_values(v->env, w);
    } else {
        write_members(v, sees, "state", rv_envelope_state_value, w);
    }
    if (wants(sees, "loop_feedback"))
        rv_jw_kv_value(w, "loop_feedback", rv_envelope_feedback(v->env));
    if (wants(sees, "prior_plans"))
        rv_jw_kv_value(w, "prior_plans", rv_envelope_prior_plans(v->env));
    if (wants(sees, "interrupt"))
        write_interrupt(v, w);
    rv_jw_obj_end(w);
}

#define SCRIPT_ENTRY "script" /* the mock of a scripted stage: answers {output, raise} instead of a bare output */

/* An entry of a capability that is asked. Borrowed. */
struct asked_entry {
    enum rv_name_kind kind;
    const char *hook; /* of HOOK: which of them */
    const char *name;
    const struct rv_str_list *sees; /* NULL: what the entry declares */
};
static int ask(rv_visit *v, const struct asked_entry *entry, json_object *output, struct rv_effects *out, rv_err **err)
{
    const struct rv_entry_info *info =
        v->shared->catalog.entry(v->shared->catalog.self, entry->kind, rv_str_of(entry->name));
    rv_buf request = RV_BUF_INIT(4 * RV_JSON_MAX_BYTES);
    rv_jw w = rv_jw_on(&request);

    rv_jw_obj(&w);
    if (entry->hook)
        rv_jw_kv_text(&w, "hook", entry->hook);
    rv_jw_kv_text(&w, "stage", v->agent->name);
    rv_jw_kv_int(&w, "visit", v->visit_no);
    rv_jw_key(&w, "envelope");
    agent_hooks_write_view(v, entry->sees ? entry->sees : info ? &info->sees : NULL, &w);
    if (output)
        rv_jw_kv_value(&w, "output", output);
    rv_jw_obj_end(&w);
    v->attempt = 1; /* whatever the main phase needed */
    struct visit_call call = {.kind = RV_EFFECT_CALL_HOOK,
                              .entry = entry->kind,
                              .name = entry->name,
                              .timeout_ms = info ? info->timeout_ms : 0};
    return agent_visit_call(v, &call, &request, out, err);
}

int visit_pre(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    if (v->resumed || !v->agent->hooks.pre_process[0]) {
        v->phase = PHASE_MAIN;
        return 0;
    }
    return ask(
        v,
        &(const struct asked_entry){.kind = RV_NAME_HOOK, .hook = "pre_process", .name = v->agent->hooks.pre_process},
        NULL, out, err);
}

static bool is_scripted(const rv_visit *v)
{
    return v->shared->scripted_stages && v->shared->scripted_stages[v->agent->index];
}

int visit_mock(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    /* A script that looks for no text is shown nothing that grows with the run. */
    const char *parts[] = {"ids", "raw_input", "iteration", "counters"};
    const struct rv_str_list blind = {.items = parts, .n = RV_COUNT(parts), .is_set = true};
    bool scripted = is_scripted(v);
    const struct asked_entry entry = {.kind = RV_NAME_MOCK,
                                      .name = scripted ? SCRIPT_ENTRY : v->agent->hooks.mock_handler,
                                      .sees = scripted && rv_visit_root(v->shared)->is_script_blind ? &blind : NULL};

    return ask(v, &entry, NULL, out, err);
}

int visit_policy(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    if (!v->agent->has_policies || v->policy_at >= v->agent->hooks.policies.n) {
        v->phase = PHASE_STORE;
        return 0;
    }
    return ask(
        v, &(const struct asked_entry){.kind = RV_NAME_POLICY, .name = v->agent->hooks.policies.items[v->policy_at]},
        v->output, out, err);
}

int visit_post(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    if (!v->agent->hooks.post_process[0]) {
        v->phase = PHASE_CHAIN;
        return 0;
    }
    return ask(
        v,
        &(const struct asked_entry){.kind = RV_NAME_HOOK, .hook = "post_process", .name = v->agent->hooks.post_process},
        v->output, out, err);
}

int visit_route(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    if (!v->route)
        return visit_finish(v, out, err);
    if (v->agent->routing.function[0] && v->routed_to == RV_TARGET_NONE)
        return ask(v, &(const struct asked_entry){.kind = RV_NAME_ROUTE, .name = v->agent->routing.function}, v->output,
                   out, err);

    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, v->output, false);
    rv_stage_scope_set_place(&values, &v->place);
    rv_err *cause = NULL;
    struct rv_routed routed = {v->routed_to, v->routed_by, -1};
    int rc = rv_route(v->agent, v->output, &scope, &routed, &cause);
    v->routed_to = routed.target;
    v->routed_by = routed.by;
    v->routed_rule = routed.rule;
    rv_stage_scope_fini(&values);
    if (rc < 0)
        return visit_fail_cause(v, v->shared->rules >= RV_RULES_4 ? rv_error_expression : rv_error_processing, cause,
                                err);
    return visit_finish(v, out, err);
}

/* --- answers --- */

static int patch_envelope(rv_visit *v, json_object *reply, rv_err **err)
{
    json_object *partial = NULL;

    if (!json_object_object_get_ex(reply, "envelope", &partial) || !partial)
        return 0;
    int rc = rv_envelope_patch(v->env, partial, err);
    return rc < 0 ? RV_WRAP(err, rc, "the envelope it answered %s be used", visit_cannot(v)) : 0;
}

/* Replace the visit's output; adds a reference. */
static void set_output(rv_visit *v, json_object *output)
{
    json_object_get(output);
    json_object_put(v->output);
    v->output = output;
}

/* A misspelt member would be a change that vanishes. */
static int check_hook_keys(json_object *reply, rv_err **err)
{
    static const char *const known[] = {"envelope", "output"};

    if (!reply)
        return 0;
    json_object_object_foreach (reply, name, value) {
        (void)value;
        if (strcmp(name, known[0]) == 0 || strcmp(name, known[1]) == 0)
            continue;
        const char *near = rv_nearest(rv_str_of(name), known, RV_COUNT(known));
        return RV_FAIL(err, RV_E_INVALID, "it answered \"%.60s\", which is neither envelope nor output%s%s%s", name,
                       near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    }
    return 0;
}

static int hook_reply(rv_visit *v, json_object *reply, rv_err **err)
{
    json_object *output = NULL;
    bool is_post = v->phase == PHASE_POST, found;
    rv_str key = rv_str_of(v->agent->output.key);

    int rc = check_hook_keys(reply, err);
    if (rc < 0)
        return rc;
    if (json_object_object_get_ex(reply, "output", &output) && output) { /* all of the answer counts, or nothing */
        if (!is_post)
            return RV_FAIL(err, RV_E_INVALID, "it answered an output before there is one");
        if (!json_object_is_type(output, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "its output is no object but of type %s", rv_json_type_text(output));
    }
    rc = patch_envelope(v, reply, err);
    if (rc == 0 && output)
        rc = rv_envelope_set_output(v->env, key, output, err);
    if (rc < 0)
        return rc;
    if (is_post) { /* the stored value counts, whether or not the hook stored it */
        output = rv_envelope_output(v->env, key, &found);
        if (found && output != v->output)
            set_output(v, output);
    }
    v->phase = is_post ? PHASE_CHAIN : PHASE_MAIN;
    return 0;
}

static int raise_scripted(rv_visit *v, json_object *raise, rv_err **err)
{
    enum rv_interrupt_kind kind;
    const char *text = NULL;
    char id[RV_ID_MAX];

    if (!rv_json_get_text(raise, "kind", &text))
        return RV_FAIL(err, RV_E_INVALID, "`raise` of a script needs a kind");
    int rc = rv_interrupt_kind_of(rv_str_of(text), &kind, err);
    if (rc < 0)
        return rc;
    if (!rv_json_get_text(raise, "question", &text) && !rv_json_get_text(raise, "message", &text))
        text = "";
    return visit_raise(v, kind, rv_str_of(text), rv_json_get_obj(raise, "data"), id, err);
}

static int mock_reply(rv_visit *v, json_object *reply, rv_err **err)
{
    json_object *output = reply, *raise = NULL;

    if (is_scripted(v)) {
        output = rv_json_get_obj(reply, "output");
        if (json_object_object_get_ex(reply, "raise", &raise) && raise) {
            int rc = raise_scripted(v, raise, err);
            if (rc < 0)
                return rc;
        }
    }
    if (output) {
        set_output(v, output);
    } else {
        v->output = json_object_new_object();
        if (!v->output)
            return RV_FAIL(err, RV_E_NOMEM, "make a mock output");
    }
    v->phase = PHASE_CHECK;
    return 0;
}

static int remember_confirmation(rv_visit *v, json_object *reply, rv_err **err)
{
    const char *message = NULL;

    if (!rv_json_get_text(reply, "question", &message) && !rv_json_get_text(reply, "message", &message) &&
        !rv_json_get_text(reply, "reason", &message))
        message = "a policy asks for confirmation";
    free(v->confirm_message);
    v->confirm_message = rv_str_dup(rv_str_of(message));
    if (!v->confirm_message)
        return RV_FAIL(err, RV_E_NOMEM, "keep a policy's message");
    json_object *show = NULL;
    v->has_confirm_show = json_object_object_get_ex(reply, "show", &show);
    json_object_put(v->confirm_show);
    v->confirm_show = json_object_get(show);
    v->phase = PHASE_STORE; /* first non-allow wins */
    return 0;
}

/* Did a person approve what this policy wanted confirmed? Another policy's question is another question. */
static bool is_approved(const rv_visit *v, const char *policy)
{
    size_t n = v->approved_policies ? json_object_array_length(v->approved_policies) : 0;

    for (size_t i = 0; i < n; i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(v->approved_policies, i)), policy))
            return true;
    return false;
}

static int policy_reply(rv_visit *v, json_object *reply, rv_err **err)
{
    const char *name = v->agent->hooks.policies.items[v->policy_at], *decision = NULL, *reason = NULL;

    if (!rv_json_get_text(reply, "decision", &decision))
        return rv_visit_fail(v, rv_error_policy, err, "policy \"%s\" answered no decision", name);
    if (strcmp(decision, "allow") == 0) {
        v->policy_at++;
        return 0;
    }
    if (strcmp(decision, "confirm") == 0) {
        if (!is_approved(v, name))
            return remember_confirmation(v, reply, err);
        v->policy_at++; /* as good as allow */
        return 0;
    }
    if (strcmp(decision, "deny") != 0)
        return rv_visit_fail(v, rv_error_policy, err,
                             "policy \"%s\" answered decision \"%.*s\": allow, deny and confirm are known", name,
                             RV_STR_ARG(rv_utf8_cut(rv_str_of(decision), 60)));
    if (!rv_json_get_text(reply, "reason", &reason) && !rv_json_get_text(reply, "message", &reason))
        reason = "no reason given";
    return rv_visit_fail_as(v, RV_FAILURE_POLICY_DENIED, rv_error_policy, err, "policy \"%s\" denied it: %s", name,
                            reason);
}

static int route_by_default(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    bool has_default = v->agent->routing.default_target != RV_TARGET_NONE;

    v->routed_to = has_default ? v->agent->routing.default_target : RV_TARGET_END;
    v->routed_by = has_default ? RV_ROUTE_DEFAULT : RV_ROUTE_NO_MATCH;
    return visit_finish(v, out, err);
}

/* The routing function chose what is not a target. */
static int route_nowhere(rv_visit *v, const char *next, struct rv_effects *out, rv_err **err)
{
    bool strict = v->shared->rules < RV_RULES_2 || v->shared->pipeline->execution.strict_transition_validation;

    v->routed_to = RV_TARGET_NONE;
    if (strict)
        return rv_visit_fail(v, rv_error_processing, err, "routing function \"%s\" chose \"%.*s\", which is no stage",
                             v->agent->routing.function, RV_STR_ARG(rv_utf8_cut(rv_str_of(next), 100)));
    rv_visit_emit(v, out, RV_EMIT_WARNING,
                  RV_M_TEXT("message", "the routing function chose a target that does not exist: the default decides"),
                  RV_M_PREVIEW("target", rv_str_of(next)));
    return route_by_default(v, out, err);
}

/* Loading has seen all other ways of a stage: they stay among the stages of their group, or lead to its join. */
static bool leaves_its_group(const rv_visit *v, int to)
{
    const struct rv_pipeline *p = v->shared->pipeline;
    int fork = v->agent->level.fork;

    if (!p->has_groups || to < 0)
        return false;
    if (p->agents[to].join.wait != RV_WAIT_NOT)
        return fork < 0 || p->agents[fork].routing.join_of != to;
    return p->agents[to].level.fork != fork;
}

static int route_reply(rv_visit *v, json_object *reply, struct rv_effects *out, rv_err **err)
{
    const char *next = NULL, *why = NULL;

    v->breaks = v->shared->rules >= RV_RULES_2 && rv_json_get_text(reply, "break", &why);
    if (v->breaks || rv_json_get_text(reply, "terminate", &why)) {
        v->end_text = why;
        v->result.outcome = RV_OUTCOME_TERMINATE;
        v->routed_to = RV_TARGET_END;
    } else if (rv_json_get_text(reply, "next", &next)) {
        v->routed_to = rv_pipeline_find_target(v->shared->pipeline, rv_str_of(next));
        if (v->routed_to == RV_TARGET_UNKNOWN || v->routed_to == RV_TARGET_NONE)
            return route_nowhere(v, next, out, err);
        if (leaves_its_group(v, v->routed_to)) {
            v->routed_to = RV_TARGET_NONE;
            return rv_visit_fail(v, rv_error_processing, err,
                                 "routing function \"%s\" chose \"%.*s\", which stands in another group of branches",
                                 v->agent->routing.function, RV_STR_ARG(rv_utf8_cut(rv_str_of(next), 100)));
        }
    } else { /* no opinion */
        return route_by_default(v, out, err);
    }
    v->routed_by = RV_ROUTE_FUNCTION;
    return visit_finish(v, out, err);
}

/* Who is asked in this phase, for messages. */
static const char *asked(const rv_visit *v)
{
    switch (v->phase) {
    case PHASE_PRE:
        return v->agent->hooks.pre_process;
    case PHASE_POST:
        return v->agent->hooks.post_process;
    case PHASE_POLICY:
        return v->agent->hooks.policies.items[v->policy_at];
    case PHASE_ROUTE:
        return v->agent->routing.function;
    case PHASE_MAIN:
    case PHASE_BACKOFF:
    case PHASE_CHECK:
    case PHASE_STORE:
    case PHASE_CHAIN:
    case PHASE_SETTLE:
    case PHASE_ASK:
    case PHASE_FAILED:
    case PHASE_DONE:
        break;
    }
    return is_scripted(v) ? "the script" : v->agent->hooks.mock_handler;
}

static const char *phase_kind(const rv_visit *v)
{
    return v->phase == PHASE_POLICY  ? "policy"
           : v->phase == PHASE_ROUTE ? "routing function"
           : v->phase == PHASE_MAIN  ? "mock"
                                     : "hook";
}

static const char *phase_error(const rv_visit *v)
{
    return v->phase == PHASE_POLICY ? rv_error_policy : v->phase == PHASE_MAIN ? rv_error_processing : rv_error_hook;
}

/* A mock plays failures of the stage: NONE leaves the code to the type. */
static enum rv_failure hook_failure(const rv_visit *v, const struct rv_event *ev)
{
    enum rv_failure code = agent_event_failure(ev);

    if (v->phase == PHASE_MAIN && !ev->code)
        return RV_FAILURE_NONE;
    return v->phase == PHASE_POLICY && code == RV_FAILURE_HOOK_FAILED ? RV_FAILURE_POLICY_FAILED : code;
}

int visit_hook_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    const struct rv_json_opts opts = {.refuse_big_ints = visit_refuses_big_ints(v), .what = "answer of a capability"};
    json_object *reply = NULL;
    rv_err *cause = NULL;
    int rc = 0;

    if (ev->failed) {
        bool timeout = rv_error_is(ev->error_type, rv_error_timeout);
        const char *type = timeout ? ev->error_type : phase_error(v);
        if (v->phase == PHASE_MAIN && ev->error_type)
            type = ev->error_type; /* a mock may play any failure of the stage */
        /* Of the phase that fails: the failure ends it. */
        const char *kind = phase_kind(v), *name = asked(v);
        rc = rv_visit_fail_as(v, hook_failure(v, ev), type, err, "%s \"%s\" of agent \"%s\" failed: %.*s", kind, name,
                              v->agent->name, RV_STR_ARG(ev->error));
        if (rc == 0)
            visit_fail_by(v, ev, "%s \"%s\" of agent \"%s\" failed", kind, name, v->agent->name);
        return rc;
    }
    if (rv_str_trim(ev->reply).len) { /* no bytes: nothing to change (W26) */
        rc = rv_json_parse(ev->reply, &opts, &reply, &cause);
        if (rc == 0 && reply && !json_object_is_type(reply, json_type_object))
            rc = RV_FAIL(&cause, RV_E_INVALID, "it answered a value of type %s, not an object",
                         rv_json_type_text(reply));
    }
    if (rc == 0) {
        if (v->phase == PHASE_POLICY)
            rc = policy_reply(v, reply, err);
        else if (v->phase == PHASE_ROUTE)
            rc = route_reply(v, reply, out, err);
        else if (v->phase == PHASE_MAIN)
            rc = mock_reply(v, reply, &cause);
        else
            rc = hook_reply(v, reply, &cause);
    }
    if (cause) {
        const char *type = phase_error(v);
        rc = RV_WRAP(&cause, rv_err_code(cause), "%s \"%s\" of agent \"%s\"", phase_kind(v), asked(v), v->agent->name);
        RV_IGNORE(rc, "the chain carries it");
        rc = visit_fail_cause(v, type, cause, err);
    }
    json_object_put(reply);
    return rc;
}
