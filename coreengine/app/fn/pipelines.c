/* Pipelines: routing of one stage (rule 5.8), readiness (4.5), proved bounds. */
#include "config/analysis/analysis.h"
#include "coreengine/app/fn/fn_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

/* --- route --- */

static bool is_reserved(const char *name)
{
    static const char *const names[] = {"", "end", "clarification", "confirmation"};
    for (size_t i = 0; i < RV_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* A stage of that name, once, so that routes to it are legal. */
static int add_stage(json_object *agents, json_object *seen, const char *name, rv_err **err)
{
    json_object *agent = NULL;

    if (is_reserved(name) || json_object_object_get_ex(seen, name, NULL))
        return 0;
    int rc = rv_json_set_take(seen, name, json_object_new_boolean(true), err);
    if (rc < 0)
        return rc;
    agent = json_object_new_object();
    if (!agent)
        return RV_FAIL(err, RV_E_NOMEM, "build a stage");
    rc = rv_json_set_take(agent, "name", json_object_new_string(name), err);
    if (rc < 0) {
        json_object_put(agent);
        return rc;
    }
    return rv_json_push_take(agents, agent, err);
}

/* The stages of a target: a name, or a list of names and {target: NAME}. */
static int add_target(json_object *agents, json_object *seen, json_object *target, rv_err **err)
{
    const char *name = NULL;
    int rc = 0;

    if (json_object_is_type(target, json_type_string))
        return add_stage(agents, seen, json_object_get_string(target), err);
    if (json_object_is_type(target, json_type_object))
        return rv_json_get_text(target, "target", &name) ? add_stage(agents, seen, name, err) : 0;
    if (!json_object_is_type(target, json_type_array))
        return 0;
    for (size_t i = 0; rc == 0 && i < json_object_array_length(target); i++) {
        json_object *one = json_object_array_get_idx(target, i);
        if (!json_object_is_type(one, json_type_array))
            rc = add_target(agents, seen, one, err);
    }
    return rc;
}

static int add_targets(json_object *agents, json_object *seen, json_object *agent, rv_err **err)
{
    static const char *const keys[] = {"default_next", "error_next"};
    json_object *rules = rv_json_get_arr(agent, "routing_rules"), *answers = rv_json_get_obj(agent, "on_answer");
    json_object *target = NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(keys); i++)
        if (json_object_object_get_ex(agent, keys[i], &target))
            rc = add_target(agents, seen, target, err);
    for (size_t i = 0; rc == 0 && rules && i < json_object_array_length(rules); i++) {
        json_object *rule = json_object_array_get_idx(rules, i);
        if (json_object_is_type(rule, json_type_object) && json_object_object_get_ex(rule, "target", &target))
            rc = add_target(agents, seen, target, err);
    }
    if (rc == 0 && answers) {
        json_object_object_foreach (answers, choice, to) {
            (void)choice;
            rc = rc == 0 ? add_target(agents, seen, to, err) : rc;
        }
    }
    return rc;
}

/* The stage without `join`: alone it has no group to join, and a join does not change where its stage leads. */
static int without_join(json_object *agent, json_object **out, rv_err **err)
{
    json_object *copy = NULL;
    int rc = rv_json_dup(agent, &copy, err);

    if (rc < 0)
        return rc;
    if (json_object_is_type(copy, json_type_object))
        json_object_object_del(copy, "join");
    *out = copy;
    return 0;
}

/* Outputs that are given are made by some stage. */
static int add_outputs(json_object *agents, json_object *seen, json_object *state, rv_err **err)
{
    json_object *outputs = state ? rv_json_get_obj(state, "outputs") : NULL;
    int rc = 0;

    if (outputs) {
        json_object_object_foreach (outputs, key, value) {
            (void)value;
            rc = rc == 0 && key[0] ? add_stage(agents, seen, key, err) : rc;
        }
    }
    return rc;
}

/* {name, agents: [the agent, a bare stage for each of its targets and each output of the state]} */
static int pipeline_around(json_object *agent, json_object *state, json_object **out, rv_err **err)
{
    json_object *config = json_object_new_object(), *agents = json_object_new_array(), *seen = json_object_new_object();
    json_object *alone = NULL;
    const char *name = NULL;
    int rc = config && agents && seen ? 0 : RV_FAIL(err, RV_E_NOMEM, "build a pipeline");

    if (rc == 0)
        rc = without_join(agent, &alone, err);
    if (rc == 0)
        rc = rv_json_push_take(agents, alone, err);
    if (rc == 0 && rv_json_get_text(agent, "name", &name))
        rc = rv_json_set_take(seen, name, json_object_new_boolean(true), err);
    if (rc == 0)
        rc = add_targets(agents, seen, agent, err);
    if (rc == 0)
        rc = add_outputs(agents, seen, state, err);
    if (rc == 0)
        rc = rv_json_set_take(config, "name", json_object_new_string("route"), err);
    if (rc == 0)
        rc = rv_json_set_ref(config, "agents", agents, err);
    json_object_put(seen);
    json_object_put(agents);
    if (rc < 0)
        json_object_put(config);
    else
        *out = config;
    return rc;
}

static int unknown_stage(const struct rv_pipeline *p, rv_str name, rv_err **err)
{
    const char *near = rv_nearest(name, p->stage_names, p->n_agents);
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "the pipeline has no stage \"%.*s\"", RV_STR_ARG(name));
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    return rc;
}

/* The branches of a list that begin with that output. */
static int write_branches(const struct rv_branches *list, const struct rv_scope *values, rv_jw *out, rv_err **err)
{
    int rc = 0;

    rv_jw_key(out, "branches");
    rv_jw_arr(out);
    for (size_t i = 0; i < list->n && rc == 0; i++) {
        bool begins = true;

        if (list->items[i].when)
            rc = rv_expr_test(list->items[i].when, values, &begins, err);
        if (rc == 0 && begins)
            rv_jw_text(out, list->items[i].name);
    }
    rv_jw_arr_end(out);
    return rc;
}

static int write_route(const struct rv_pipeline *p, int stage, const rv_envelope *env, json_object *in, rv_jw *out,
                       rv_err **err)
{
    struct rv_stage_scope scope;
    json_object *output = app_fn_any(in, "output");
    struct rv_routed routed = {RV_TARGET_END, RV_ROUTE_NO_MATCH, -1};

    struct rv_scope values = rv_stage_scope_init(&scope, p, env, output, false);
    int rc = rv_route(&p->agents[stage], output, &values, &routed, err);
    if (rc < 0) {
        rv_stage_scope_fini(&scope);
        return rc;
    }
    rv_jw_obj(out);
    rv_jw_kv_text(out, "target", rv_pipeline_target_name(p, routed.target));
    if (routed.target == RV_TARGET_LIST)
        rc = write_branches(routed.rule >= 0 ? &p->agents[stage].routing.rules[routed.rule].branches
                                             : &p->agents[stage].routing.branches,
                            &values, out, err);
    rv_stage_scope_fini(&scope);
    if (rc < 0)
        return rc;
    rv_jw_kv_text(out, "reason", rv_route_by_text(routed.by));
    rv_jw_key(out, "rule");
    if (routed.rule >= 0)
        rv_jw_int(out, routed.rule);
    else
        rv_jw_null(out);
    rv_jw_obj_end(out);
    return 0;
}

static int route(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *agent = rv_json_get_obj(in, "agent"), *config = NULL, *none = json_object_new_object(),
                *state = rv_json_get_obj(in, "envelope");
    rv_str name = app_fn_str(in, "agent");
    struct rv_pipeline *p = NULL;
    rv_envelope *env = NULL;
    int rc = none ? 0 : RV_FAIL(err, RV_E_NOMEM, "route"), stage = 0;

    if (rc == 0 && agent)
        rc = pipeline_around(agent, state, &config, err);
    else if (rc == 0 && !rv_json_get_obj(in, "pipeline"))
        rc = RV_FAIL(err, RV_E_INVALID, "an agent that is only named needs \"pipeline\"");
    if (rc == 0)
        rc = app_fn_pipeline(config ? config : rv_json_get_obj(in, "pipeline"), &p, err);
    if (rc == 0 && agent)
        name = app_fn_str(agent, "name");
    if (rc == 0 && (stage = rv_pipeline_find_stage(p, name)) < 0)
        rc = unknown_stage(p, name, err);
    if (rc == 0)
        rc = app_fn_envelope(state ? state : none, in, &env, err);
    if (rc == 0)
        rc = write_route(p, stage, env, in, out, err);
    rv_envelope_free(env);
    rv_pipeline_free(p);
    json_object_put(config);
    json_object_put(none);
    return rc;
}

/* --- ready_stages --- */

/* A name that is not a stage's changes nothing: no stage can depend on it. */
static void mark(const struct rv_pipeline *p, json_object *in, const char *key, enum rv_stage_state state,
                 enum rv_stage_state *states)
{
    json_object *list = rv_json_get_arr(in, key);

    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        int stage = rv_pipeline_find_stage(p, rv_json_str(json_object_array_get_idx(list, i)));
        if (stage >= 0)
            states[stage] = state;
    }
}

static int ready_stages(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_pipeline *p = NULL;
    enum rv_stage_state *states = NULL;
    int *ready = NULL;

    int rc = app_fn_pipeline(rv_json_get_obj(in, "pipeline"), &p, err);
    if (rc == 0) {
        states = calloc(p->n_agents + 1, sizeof *states);
        ready = calloc(p->n_agents + 1, sizeof *ready);
        if (!states || !ready)
            rc = RV_FAIL(err, RV_E_NOMEM, "find ready stages");
    }
    if (rc == 0 && states && ready) { /* to an analyser: without memory rc is not 0 */
        mark(p, in, "completed", RV_STAGE_COMPLETED, states);
        mark(p, in, "failed", RV_STAGE_FAILED, states);
        mark(p, in, "skipped", RV_STAGE_SKIPPED, states);
        mark(p, in, "active", RV_STAGE_ACTIVE, states);
        size_t n = rv_pipeline_collect_ready(p, states, ready);
        rv_jw_arr(out);
        for (size_t i = 0; i < n; i++)
            rv_jw_text(out, p->agents[ready[i]].name);
        rv_jw_arr_end(out);
    }
    free(states);
    free(ready);
    rv_pipeline_free(p);
    return rc;
}

/* --- prove --- */

static int prove(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_pipeline *p = NULL;
    struct rv_proof proof = {0};
    enum rv_run_mode mode = RV_MODE_SEQUENTIAL;
    rv_str word = app_fn_str(in, "mode");

    int rc = app_fn_pipeline(rv_json_get_obj(in, "pipeline"), &p, err);
    if (rc == 0 && word.ptr)
        rc = rv_run_mode_of(word, &mode, err);
    else if (rc == 0 && p->default_run_mode == RV_MODE_PARALLEL)
        mode = RV_MODE_PARALLEL;
    if (rc == 0)
        rc = rv_pipeline_prove(p, mode, &proof, err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_int(out, "max_visits", proof.max_visits);
        rv_jw_kv_bool(out, "max_visits_exact", proof.visits_exact);
        rv_jw_kv_int(out, "max_llm_calls", proof.max_llm_calls);
        rv_jw_kv_bool(out, "max_llm_calls_exact", proof.llm_exact);
        rv_jw_key(out, "visits_path");
        rv_jw_arr(out);
        for (size_t i = 0; i < proof.n_visits_path; i++)
            rv_jw_text(out, p->agents[proof.visits_path[i]].name);
        rv_jw_arr_end(out);
        rv_jw_obj_end(out);
    }
    rv_proof_fini(&proof);
    rv_pipeline_free(p);
    return rc;
}

static const struct rv_fn items[] = {
    {"route", "{agent: object|word, output: any, pipeline?: object, envelope?: object}",
     "{target: string, branches?: words, reason: string, rule: int}",
     "where a stage leads with that output; agent as in a pipeline file, or the name of one of `pipeline`", route},
    {"ready_stages", "{pipeline: object, completed?: words, failed?: words, skipped?: words, active?: words}", "words",
     "the stages that may start now in parallel mode", ready_stages},
    {"prove", "{pipeline: object, mode?: string}", "{max_visits: int, max_llm_calls: int, visits_path: words, ...}",
     "the bounds that no run of the pipeline passes", prove},
};
const struct rv_fn_group app_fn_group_pipelines = {items, RV_COUNT(items)};
