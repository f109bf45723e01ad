/* Work that waits for a person: a tool stage stopped before a step that needs approval, with the conversation of its
 * model, and what an approval opens when the stage is visited again (rule 6.1's gate, 5.10). */
#include "coreengine/agent/tools_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define KEPT_MAX   ((size_t)64 << 20) /* bytes of what a waiting visit keeps, as JSON; more fails the visit */
#define ROW_LEVELS 4 /* of a list of rows around the arguments of a call, which may be as deep as any JSON */

static const struct rv_json_opts usage_opts = {.what = "usage"};

/* Adds usage under key. */
static int keep_usage(json_object *kept, const char *key, const struct rv_usage *usage, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(KEPT_MAX);
    json_object *value = NULL;
    rv_jw w = rv_jw_on(&text);

    rv_usage_write_json(usage, &w);
    int rc = rv_buf_check(&text, "usage", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &usage_opts, &value, err);
    rv_buf_fini(&text);
    return rc == 0 ? rv_json_set_take(kept, key, value, err) : rc;
}

static int keep_counts(const struct model_progress *t, json_object *kept, rv_err **err)
{
    const struct {
        const char *key;
        int64_t n;
    } counts[] = {{"rounds", t->rounds},         {"repairs", t->repairs},   {"bad_calls", t->bad_calls},
                  {"tool_calls", t->tool_calls}, {"requests", t->requests}, {"steps_before", (int64_t)t->steps_before}};
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(counts) && rc == 0; i++)
        rc = rv_json_set_int(kept, counts[i].key, counts[i].n, err);
    return rc;
}

/* What actions changed of the session. */
static int keep_session(const rv_visit *v, json_object *kept, rv_err **err)
{
    json_object *routing = NULL;
    int rc = v->session_name ? rv_json_set_text(kept, "session_name", v->session_name, err) : 0;

    if (rc < 0 || !v->shared->conversation || !v->shared->conversation->has_routing)
        return rc;
    rc = rv_routing_build_value(&v->routing, &routing, err);
    return rc == 0 ? rv_json_set_take(kept, "routing", routing, err) : rc;
}

static int take_session(rv_visit *v, json_object *kept, rv_err **err)
{
    json_object *routing = rv_json_get_obj(kept, "routing");
    const char *name = NULL;

    if (routing)
        rv_routing_read_json(routing, &v->routing);
    if (!rv_json_get_text(kept, "session_name", &name))
        return 0;
    v->session_name = rv_str_dup(rv_str_of(name));
    return v->session_name ? 0 : RV_FAIL(err, RV_E_NOMEM, "go on with a conversation");
}

/* Adds the rows of agents that were asked, by their calls. */
static int keep_child_rows(json_object *kept, const struct child_rows *first, rv_err **err)
{
    json_object *all = json_object_new_object();
    int rc = rv_json_set_take(kept, "child_rows", all, err);

    for (const struct child_rows *c = first; c && rc == 0; c = c->next) {
        rv_buf text = RV_BUF_INIT(KEPT_MAX);
        rv_turn_write_rows(c->rows, &text);
        rc = rv_buf_check(&text, "the rows of an agent", err);
        if (rc == 0)
            rc = rv_json_set_str(all, c->call_id, rv_buf_str(&text), err);
        rv_buf_fini(&text);
    }
    return rc;
}

static int take_rows(struct model_progress *t, const char *call_id, rv_str text, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = KEPT_MAX, .max_depth = RV_JSON_MAX_DEPTH + ROW_LEVELS, .what = "the rows of an agent"};
    struct rv_turn *rows = rv_turn_new(RV_ROWS_MAX);
    rv_buf array = RV_BUF_INIT(KEPT_MAX);
    json_object *json = NULL;
    int rc = rows ? 0 : RV_FAIL(err, RV_E_NOMEM, "go on with a conversation");

    rv_buf_putc(&array, '[');
    rv_buf_add_str(&array, text);
    rv_buf_putc(&array, ']');
    if (rc == 0)
        rc = rv_buf_check(&array, "the rows of an agent", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&array), &opts, &json, err);
    if (rc == 0)
        rc = rv_turn_read_rows(json, rows, err);
    json_object_put(json);
    rv_buf_fini(&array);
    if (rc == 0)
        return agent_rows_keep_child(t, rv_str_of(call_id), rows, err);
    rv_turn_free(rows);
    return rc;
}

static int take_child_rows(struct model_progress *t, json_object *kept, rv_err **err)
{
    int rc = 0;

    if (kept) {
        json_object_object_foreach (kept, call_id, text)
            rc = rc == 0 ? take_rows(t, call_id, rv_json_str(text), err) : rc;
    }
    return rc;
}

/* Texts that become rows of the session when the turn is over. */
static int keep_visible(const struct model_progress *t, json_object *kept, rv_err **err)
{
    int rc = t->visible.len > 0 ? rv_json_set_str(kept, "said", rv_buf_str(&t->visible), err) : 0;

    if (rc == 0 && t->answer_at != SIZE_MAX)
        rc = rv_json_set_int(kept, "answer_at", (int64_t)t->answer_at, err);
    if (rc == 0 && t->is_hidden)
        rc = rv_json_set_bool(kept, "is_muted", true, err);
    if (rc == 0 && t->child_rows)
        rc = keep_child_rows(kept, t->child_rows, err);
    if (rc == 0 && !rv_usage_is_zero(&t->child_usage))
        rc = keep_usage(kept, "child_usage", &t->child_usage, err);
    return rc;
}

/* Save the part that is kept while the stage waits for a person (*out is the caller's), and restore it. */
static int keep_conversation(const rv_visit *v, json_object **out, rv_err **err)
{
    const struct model_progress *t = &v->model;
    json_object *kept = json_object_new_object();
    int rc = kept ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep a conversation");

    if (rc == 0)
        rc = rv_json_set_str(kept, "prompt", (rv_str){t->prompt, t->prompt_len}, err);
    if (rc == 0)
        rc = agent_parts_keep(t, kept, err);
    if (rc == 0)
        rc = visit_keep_copy(kept, "turns", t->messages, err);
    if (rc == 0)
        rc = keep_counts(t, kept, err);
    if (rc == 0)
        rc = keep_usage(kept, "usage", &t->usage, err);
    if (rc == 0)
        rc = keep_visible(t, kept, err);
    if (rc == 0)
        rc = keep_session(v, kept, err);
    if (rc < 0) {
        json_object_put(kept);
        return rc;
    }
    *out = kept;
    return 0;
}

static void take_call_times(rv_visit *v, json_object *kept)
{
    v->tools.key_visit = rv_json_int_or(kept, "key_visit", v->tools.key_visit);
    v->tools.called_us = rv_json_int_or(kept, "called_us", v->tools.called_us);
}

static void take_count(json_object *kept, const char *key, int64_t *out)
{
    int64_t n = 0;

    if (rv_json_get_int(kept, key, &n) && n > 0 && n <= RV_USAGE_MAX)
        *out = n;
}

static int take_visible(struct model_progress *t, json_object *kept, rv_err **err)
{
    int64_t at = 0;
    json_object *visible = NULL, *rows = rv_json_get_obj(kept, "child_rows");

    json_object_object_get_ex(kept, "said", &visible);
    rv_buf_add_str(&t->visible, rv_json_str(visible));
    if (rv_json_get_int(kept, "answer_at", &at) && at >= 0 && (uint64_t)at <= t->visible.len)
        t->answer_at = (size_t)at;
    t->is_hidden = rv_json_bool_or(kept, "is_muted", t->is_hidden);
    RV_IGNORE(!rv_usage_read_json(rv_json_get_obj(kept, "child_usage"), &t->child_usage), "absent: 0");
    int rc = rv_buf_check(&t->visible, "what was said", err);
    return rc == 0 ? take_child_rows(t, rows, err) : rc;
}

static int take_conversation(rv_visit *v, json_object *kept, rv_err **err)
{
    struct model_progress *t = &v->model;
    json_object *prompt = NULL, *messages = rv_json_get_arr(kept, "turns");
    int64_t steps = 0;

    json_object_object_get_ex(kept, "prompt", &prompt);
    rv_str text = rv_json_str(prompt);
    t->prompt = rv_str_dup(text);
    t->prompt_len = text.len;
    if (!t->prompt)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a conversation");
    int rc = agent_parts_take(t, kept, err);
    if (rc == 0 && messages)
        rc = rv_json_dup(messages, &t->messages, err);
    if (rc == 0)
        rc = take_visible(t, kept, err);
    if (rc == 0)
        rc = take_session(v, kept, err);
    take_count(kept, "rounds", &t->rounds);
    take_count(kept, "repairs", &t->repairs);
    take_count(kept, "bad_calls", &t->bad_calls);
    take_count(kept, "tool_calls", &t->tool_calls);
    take_count(kept, "requests", &t->requests);
    take_count(kept, "steps_before", &steps);
    t->steps_before = (size_t)steps;
    RV_IGNORE(!rv_usage_read_json(rv_json_get_obj(kept, "usage"), &t->usage), "it was written here; else it is 0");
    t->acting = true;
    return rc;
}

#define GATE    "confirmation_gate" /* kind of suspended work */
#define POLICY  "policy"
#define OUTCOME RV_OUTCOME_UNKNOWN

/* What is asked about a step: {tool, step_id, stage, parameters}. */
static int describe_step(const rv_visit *v, json_object *data, rv_err **err)
{
    json_object *parameters = agent_step_parameters(v, v->tools.at);
    char scratch[48];
    int rc = RV_SET(data, err, RV_M_STR("tool", agent_step_tool(v, v->tools.at)),
                    RV_M_STR("step_id", agent_step_id(v, v->tools.at, scratch, sizeof scratch)),
                    RV_M_TEXT("stage", v->agent->name), RV_M_IF(parameters, RV_M_OF(VALUE, "parameters", parameters)));

    return rc == 0 && !parameters ? rv_json_set_take(data, "parameters", json_object_new_object(), err) : rc;
}

int visit_pause(rv_visit *v, const struct visit_question *q, const char *work, struct rv_effects *out, rv_err **err)
{
    char interrupt[RV_ID_MAX];
    json_object *kept = json_object_new_object();
    int rc = kept ? visit_raise_for(v, q, interrupt, err) : RV_FAIL(err, RV_E_NOMEM, "keep the work of a stage");

    if (rc == 0)
        rc = RV_SET(kept, err, RV_M_TEXT("kind", work), RV_M_TEXT("interrupt_id", interrupt),
                    RV_M_OF(VALUE, "steps", v->tools.steps), RV_M_OF(VALUE, "results", v->tools.results),
                    RV_M_INT("at", (int64_t)v->tools.at),
                    RV_M_INT("key_visit", v->tools.key_visit ? v->tools.key_visit : v->visit_no),
                    RV_M_INT("called_us", v->tools.called_us), RV_M_INT("total_time_ms", v->tools.total_ms),
                    RV_M_BOOL("all_succeeded", v->tools.all_succeeded));
    if (rc == 0 && v->tools.hooks.side == HOOKS_PASSED)
        rc = rv_json_set_bool(kept, "hooks_passed", true, err);
    if (rc == 0 && v->tools.hooks.arguments)
        rc = rv_json_set_ref(kept, "arguments", v->tools.hooks.arguments, err);
    if (rc == 0)
        rc = visit_keep_copy(kept, "input", v->tools.input, err);
    json_object *kept_model = NULL;
    if (rc == 0 && v->model.acting)
        rc = keep_conversation(v, &kept_model, err);
    if (rc == 0 && kept_model)
        rc = rv_json_set_take(kept, "talk", kept_model, err);
    if (rc == 0 && v->planned)
        rc = agent_planned_keep(v, kept, err);
    if (rc == 0)
        rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), kept, err);
    if (rc == 0) {
        v->result.outcome = RV_OUTCOME_SKIP; /* nothing more was done in this visit */
        rc = visit_stay(v, out, err);
    }
    json_object_put(kept);
    return rc;
}

int visit_suspend(rv_visit *v, const struct rv_tool_info *info, struct rv_effects *out, rv_err **err)
{
    rv_buf message = RV_BUF_INIT(RV_QUESTION_MAX_BYTES);
    json_object *data = json_object_new_object(), *parameters = NULL;
    int rc = data ? describe_step(v, data, err) : RV_FAIL(err, RV_E_NOMEM, "suspend a stage");

    if (rc == 0)
        json_object_object_get_ex(data, "parameters", &parameters);
    if (rc == 0 && info->confirm)
        rc = agent_question_of_tool(v, info, parameters, &message, data, err);
    if (rc == 0 && message.len == 0)
        rv_buf_printf(&message, "tool \"%.*s\" %s%s: may it run with these parameters?",
                      RV_STR_ARG(rv_utf8_cut(agent_step_tool(v, v->tools.at), 200)),
                      rv_risk_needs_confirmation(rv_tool_risk(info)) ? "is " : "requires approval",
                      rv_risk_needs_confirmation(rv_tool_risk(info)) ? rv_risk_text(rv_tool_risk(info)) : "");
    if (rc == 0)
        rc = rv_buf_check(&message, "confirmation message", err);
    if (rc == 0)
        rc = visit_pause(
            v,
            &(struct visit_question){
                .kind = RV_INTERRUPT_CONFIRMATION, .text = rv_buf_str(&message), .data = data, .ttl_us = -1},
            GATE, out, err);
    json_object_put(data);
    rv_buf_fini(&message);
    return rc;
}

int visit_ask_outcome(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf message = RV_BUF_INIT(4096), key = RV_BUF_INIT(RV_KEY_MAX);
    json_object *data = json_object_new_object();
    char started[RV_TIME_MAX];
    int rc = data ? describe_step(v, data, err) : RV_FAIL(err, RV_E_NOMEM, "ask for the outcome of a call");

    rv_time_format(v->tools.called_us, started);
    agent_step_write_key(v, v->tools.at, v->now_us, &key); /* such a call was not tried twice */
    if (rc == 0)
        rc = rv_buf_check(&key, "idempotency key", err);
    if (rc == 0)
        rc = RV_SET(data, err, RV_M_TEXT("reason", RV_OUTCOME_UNKNOWN),
                    RV_M_IF(agent_tools_have_keys(v), RV_M_TEXT("idempotency_key", rv_buf_cstr(&key))),
                    RV_M_TEXT("started_at", started));
    rv_buf_printf(&message, "tool \"%.*s\" was called at %s and nobody knows whether it ran: did it happen?",
                  RV_STR_ARG(rv_utf8_cut(agent_step_tool(v, v->tools.at), 200)), started);
    if (rc == 0)
        rc = rv_buf_check(&message, "review message", err);
    if (rc == 0)
        rc = visit_pause(
            v, &(struct visit_question){.kind = RV_INTERRUPT_AGENT_REVIEW, .text = rv_buf_str(&message), .data = data},
            OUTCOME, out, err);
    json_object_put(data);
    rv_buf_fini(&message);
    rv_buf_fini(&key);
    return rc;
}

/* The answer to the interrupt that this work waits for; NULL: none was given. */
static json_object *answer_to(const rv_visit *v, json_object *kept)
{
    const char *id = NULL;
    struct rv_interrupt in = rv_envelope_interrupt(v->env);

    return rv_json_get_text(kept, "interrupt_id", &id) && in.exists && !rv_envelope_has_interrupt(v->env) &&
                   strcmp(in.id, id) == 0
               ? in.response
               : NULL;
}

static bool approved(const rv_visit *v, json_object *kept)
{
    json_object *answer = answer_to(v, kept);
    bool yes = false;

    return answer && rv_json_get_bool(answer, "approved", &yes) && yes;
}

/* It happened, it did not (it is called again, with the same key), or the stage gives up. No answer: ask again. */
static void take_answer(rv_visit *v, json_object *kept)
{
    json_object *answer = answer_to(v, kept);
    const char *decision = NULL;
    json_object *data = NULL;

    take_call_times(v, kept);
    v->tools.approved = true; /* the tool was called: it has its approval */
    if (!answer || !rv_json_get_text(answer, "decision", &decision))
        v->tools.review = REVIEW_ASK;
    else if (strcmp(decision, "happened") == 0)
        v->tools.review = REVIEW_HAPPENED;
    else if (strcmp(decision, "fail") == 0)
        v->tools.review = REVIEW_FAIL;
    if (v->tools.review == REVIEW_HAPPENED && json_object_object_get_ex(answer, "data", &data))
        v->tools.stated = json_object_get(data); /* of any type: it is judged as the tool's own answer would be */
}

/* The policy that asked joins those whose questions were approved before. */
static int approve_policy(rv_visit *v, json_object *kept, rv_err **err)
{
    json_object *before = rv_json_get_arr(kept, "approved"), *name = NULL;
    int rc = 0;

    if (before)
        rc = rv_json_dup(before, &v->approved_policies, err);
    else if (!(v->approved_policies = json_object_new_array()))
        rc = RV_FAIL(err, RV_E_NOMEM, "resume stage \"%s\"", v->agent->name);
    if (rc == 0 && json_object_object_get_ex(kept, "policy", &name))
        rc = rv_json_push_ref(v->approved_policies, name, err);
    return rc;
}

/* Each step before the one at hand has its result, and the conversation ends with the turn that asks for them all. */
static bool is_whole(json_object *steps, json_object *results, json_object *kept_model, size_t at)
{
    json_object *messages = kept_model ? rv_json_get_arr(kept_model, "turns") : NULL;
    size_t n = messages ? json_object_array_length(messages) : 0;
    json_object *calls = n ? rv_json_get_arr(json_object_array_get_idx(messages, n - 1), "tool_calls") : NULL;

    if (at >= json_object_array_length(steps) || json_object_array_length(results) != at)
        return false;
    return !kept_model || (calls && json_object_array_length(calls) == json_object_array_length(steps));
}

/* What a person approves or decides about is what hooks have left: they do not look at it again, unless the person
 * changes it. */
static void take_hooks(rv_visit *v, json_object *kept)
{
    bool passed = false;

    if (rv_json_get_bool(kept, "hooks_passed", &passed) && passed)
        v->tools.hooks.side = HOOKS_PASSED;
    v->tools.hooks.arguments = json_object_get(rv_json_get_obj(kept, "arguments"));
}

/* The answer about a call that waits for approval: an approval may change its arguments, which hooks before the tool
 * have not seen, and a denial comes here only where the model is to be told. */
static void take_approval(rv_visit *v, json_object *kept)
{
    json_object *answer = answer_to(v, kept), *arguments = answer ? rv_json_get_obj(answer, "arguments") : NULL;

    v->tools.approved = approved(v, kept);
    if (v->tools.approved && arguments) {
        json_object_put(v->tools.hooks.arguments);
        v->tools.hooks.arguments = json_object_get(arguments);
        if (v->shared->rules >= RV_RULES_4)
            v->tools.hooks.side = HOOKS_NOT_ASKED;
    } else if (!v->tools.approved && answer && agent_tells_model(v->shared, v->agent)) {
        v->tools.denial = json_object_get(answer);
    }
}

/* The tool was called, and asked: it has its approval, and the call that follows is the same effect. */
static int take_input(rv_visit *v, json_object *kept, rv_err **err)
{
    take_call_times(v, kept);
    v->tools.approved = true;
    return agent_input_answered(v, answer_to(v, kept), err);
}

json_object *visit_kept(const struct rv_visit_shared *shared, int stage, const rv_envelope *env, const char *kind)
{
    json_object *kept = rv_envelope_suspended(env, rv_str_of(shared->pipeline->agents[stage].name));
    const char *is = NULL;

    return kept && json_object_is_type(kept, json_type_object) && rv_json_get_text(kept, "kind", &is) &&
                   strcmp(is, kind) == 0
               ? kept
               : NULL;
}

int visit_resume_work(rv_visit *v, rv_err **err)
{
    rv_str name = rv_str_of(v->agent->name);
    json_object *kept = rv_envelope_suspended(v->env, name);
    const char *kind = NULL;
    int64_t at = 0;

    if (!kept || !rv_json_get_text(kept, "kind", &kind))
        return 0;
    if (strcmp(kind, RV_KEPT_PIPELINE) == 0) {
        if (v->agent->inner.pipeline && answer_to(v, kept))
            visit_resume_inner(v, kept);
    } else if (strcmp(kind, POLICY) == 0) {
        int rc = approved(v, kept) ? approve_policy(v, kept, err) : 0;
        if (rc < 0)
            return rc;
    } else if ((strcmp(kind, GATE) == 0 || strcmp(kind, OUTCOME) == 0 || strcmp(kind, RV_CLIENT_TOOLS) == 0 ||
                strcmp(kind, RV_TOOL_INPUT) == 0) &&
               v->agent->has_tools && rv_json_get_int(kept, "at", &at) && at >= 0) {
        json_object *steps = rv_json_get_arr(kept, "steps"), *results = rv_json_get_arr(kept, "results");
        /* A plan that was replaced meanwhile starts from its first step; the approval was for the old plan. */
        json_object *kept_model = v->agent->has_llm ? rv_json_get_obj(kept, "talk") : NULL;
        bool same_plan = kept_model || (!v->agent->has_llm && rv_json_equal(steps, visit_plan(v)));
        bool whole = steps && results && same_plan && is_whole(steps, results, kept_model, (size_t)at);
        int took = whole && v->planned ? planned_resume(v, kept, &whole, err) : 0;
        if (took < 0)
            return took;
        if (whole) { /* a copy: the kept results must not change if this visit fails */
            int rc = rv_json_dup(results, &v->tools.results, err);
            if (rc == 0 && kept_model)
                rc = take_conversation(v, kept_model, err);
            if (rc == 0 && kept_model && v->shared->rules >= RV_RULES_2) { /* errors name the tools that there are */
                json_object *offered = NULL;
                rc = agent_tools_offered(v, &offered, err);
            }
            if (rc < 0)
                return rc;
            v->tools.steps = json_object_get(steps);
            v->tools.at = (size_t)at;
            take_hooks(v, kept);
            rc = rv_json_get_obj(kept, "input") ? rv_json_dup(rv_json_get_obj(kept, "input"), &v->tools.input, err) : 0;
            if (rc < 0)
                return rc;
            if (strcmp(kind, OUTCOME) == 0)
                take_answer(v, kept);
            else if (strcmp(kind, RV_TOOL_INPUT) == 0)
                rc = take_input(v, kept, err);
            else if (strcmp(kind, RV_CLIENT_TOOLS) == 0)
                rc = answer_to(v, kept) ? agent_client_calls_answered(v, answer_to(v, kept), err) : 0;
            else
                take_approval(v, kept);
            v->tools.all_succeeded = true;
            v->tools.all_succeeded = rv_json_bool_or(kept, "all_succeeded", v->tools.all_succeeded);
            v->tools.total_ms = rv_json_int_or(kept, "total_time_ms", v->tools.total_ms);
            v->resumed = true;
            if (rc < 0)
                return rc;
        }
    }
    return rv_envelope_set_suspended(v->env, name, NULL, err);
}

/* --- answers about calls, before and when they are taken --- */

/* What the stage kept when it asked about a call; NULL: the interrupt is about none. */
static json_object *kept_call(const struct rv_visit_shared *shared, const rv_envelope *env, json_object *data,
                              const struct rv_agent **agent)
{
    const char *name = NULL;

    if (!json_object_is_type(data, json_type_object) || !rv_json_get_text(data, "stage", &name))
        return NULL;
    int stage = rv_pipeline_find_stage(shared->pipeline, rv_str_of(name));
    json_object *kept = stage >= 0 ? visit_kept(shared, stage, env, GATE) : NULL;
    if (!kept)
        return NULL;
    *agent = &shared->pipeline->agents[stage];
    return kept;
}

bool rv_visit_tells_denial(const struct rv_visit_shared *shared, const rv_envelope *env)
{
    const struct rv_interrupt in = rv_envelope_interrupt(env);
    const struct rv_agent *agent = NULL;
    const char *id = NULL;
    json_object *kept = kept_call(shared, env, in.data, &agent);

    return kept && agent_tells_model(shared, agent) && rv_json_get_obj(kept, "talk") &&
           rv_json_get_text(kept, "interrupt_id", &id) && strcmp(id, in.id) == 0;
}

static int check_arguments(const struct rv_visit_shared *shared, const rv_envelope *env,
                           const struct rv_response *response, rv_err **err)
{
    enum rv_interrupt_kind kind = RV_INTERRUPT_CONFIRMATION;
    const struct rv_agent *agent = NULL;
    const char *tool = NULL;
    json_object *data = rv_envelope_question_data(env, response->interrupt_id, &kind);

    if (!kept_call(shared, env, data, &agent) || !rv_json_get_text(data, "tool", &tool))
        return RV_FAIL(err, RV_E_INVALID, "the question is about no call that waits: its arguments cannot be changed");
    const struct rv_tool_info *info = shared->catalog.tool(shared->catalog.self, rv_str_of(tool));
    if (!info && strcmp(tool, RV_TOOL_ASK_AGENT) == 0)
        info = &rv_tool_ask_agent;
    if (!info)
        return RV_FAIL(err, RV_E_INVALID, "tool \"%.200s\" is not there: its arguments cannot be changed", tool);
    int rc = info->input ? rv_schema_check(info->input, response->arguments, err) : 0;
    return rc < 0 ? RV_WRAP(err, rc, "the changed arguments do not fit tool \"%.200s\"", tool) : 0;
}

int rv_visit_check_answer(const struct rv_visit_shared *shared, const rv_envelope *env,
                          const struct rv_response *response, int64_t now_us, rv_err **err)
{
    int rc = rv_envelope_check_response(env, response, now_us, err);

    enum rv_interrupt_kind kind = RV_INTERRUPT_CONFIRMATION;
    json_object *data = rv_envelope_question_data(env, response->interrupt_id, &kind);
    if (rc == 0 && !response->cancelled && !response->expired && rv_interrupt_asks_input(kind, data))
        return rv_input_check(data, response, err);
    return rc < 0 || !response->arguments ? rc : check_arguments(shared, env, response, err);
}

int visit_keep_copy(json_object *kept, const char *key, json_object *value, rv_err **err)
{
    json_object *copy = NULL;
    int rc = value ? rv_json_dup(value, &copy, err) : 0;

    return rc == 0 && copy ? rv_json_set_take(kept, key, copy, err) : rc;
}
