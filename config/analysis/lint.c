/* Warnings about pipelines that can be run and are probably not what was meant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/analysis/prove_internal.h"

/* Answers of people that lead back to a stage whose model may say something else the second time, and ask again. */

struct question {
    const struct rv_pipeline *p;
    const struct rv_agent *asker;
    int target;      /* RV_TARGET_CLARIFICATION or _CONFIRMATION */
    bool by_failure; /* error_next asks, not a route */
};

/* The stage that is visited after the answer; -1: none. */
static int answered_at(const struct question *q)
{
    bool confirms = q->target == RV_TARGET_CONFIRMATION;
    const char *resume = confirms ? q->p->confirmation_resume_stage : q->p->clarification_resume_stage;

    if (resume[0])
        return rv_pipeline_find_stage(q->p, rv_str_of(resume));
    if (confirms && !q->by_failure)
        return rv_agent_approved_target(q->asker);
    return q->asker->index;
}

static void warn(const struct question *q, rv_findings *findings)
{
    int at = answered_at(q);
    const struct rv_agent *a = at >= 0 ? &q->p->agents[at] : NULL;
    struct rv_src src = lint_stage_src(q->asker);

    if (!a || at > q->asker->index || !lint_agent_calls_model(a))
        return;
    if (q->target == RV_TARGET_CONFIRMATION && !q->by_failure)
        rv_findings_add(
            findings, RV_SEVERITY_WARNING, &src,
            "let confirmation_resume_stage or default_next name a stage that comes later; without "
            "confirmation_resume_stage a yes takes default_next with the output that was shown",
            "stage \"%s\": a yes to its confirmation leads back to stage \"%s\", whose model answers again: "
            "that answer may differ from what was approved, and can ask again",
            q->asker->name, a->name);
    else if (a->limits.max_visits == 0)
        rv_findings_add(
            findings, RV_SEVERITY_WARNING, &src, "set max_visits of the stage",
            "stage \"%s\": an answer to its question leads back to stage \"%s\", whose model can ask again, "
            "as often as max_agent_hops (%lld) allows",
            q->asker->name, a->name, (long long)q->p->max_agent_hops);
}

/* Can a route of the stage lead to that question (RV_TARGET_CLARIFICATION or _CONFIRMATION)? Not counting error_next.
 */
static bool routes_ask(const struct rv_routes *routes, int stage, int target)
{
    for (size_t i = routes->start[stage]; i < routes->start[stage + 1]; i++) {
        const struct rv_route *r = &routes->items[i];

        if (r->kind != RV_WAY_ERROR && r->fate == RV_WAY_LIVE && r->to == target)
            return true;
    }
    return false;
}

/* Answers that lead back to a model stage, which can ask again. Sequential runs only. */
static void lint_answers(const struct rv_pipeline *p, const struct rv_routes *routes, rv_findings *findings)
{
    static const int targets[] = {RV_TARGET_CLARIFICATION, RV_TARGET_CONFIRMATION};

    for (size_t i = 0; i < p->n_agents; i++) {
        for (size_t t = 0; t < RV_COUNT(targets); t++) {
            struct question q = {p, &p->agents[i], targets[t], false};

            if (routes_ask(routes, (int)i, targets[t]))
                warn(&q, findings);
            q.by_failure = true;
            if (p->agents[i].routing.error_target == targets[t])
                warn(&q, findings);
        }
    }
}

/* --- Routes, prompts, models --- */

struct rv_src lint_bounds_src(const struct rv_pipeline *p)
{
    return (struct rv_src){p->file, 1, 1};
}

struct rv_src lint_stage_src(const struct rv_agent *a)
{
    return a->places.name.line > 0 ? a->places.name : a->places.stage;
}

static struct rv_src src_or_stage(struct rv_src src, const struct rv_agent *a)
{
    return src.line > 0 ? src : lint_stage_src(a);
}

static void warn_rule(const struct rv_agent *a, const struct rv_route *route, rv_findings *findings)
{
    const struct rv_rule *rule = &a->routing.rules[route->rule];
    struct rv_src src = src_or_stage(rule->src, a);
    enum rv_outcome outcome;
    const char *value;

    switch (route->fate) {
    case RV_WAY_LIVE:
        return;
    case RV_WAY_REPEATED:
        rv_findings_add(findings, RV_SEVERITY_WARNING, &src, "the first rule that matches wins: remove one of the two",
                        "stage \"%s\": rule %d never matches, since rule %d has the same test", a->name,
                        route->rule + 1, route->because + 1);
        return;
    case RV_WAY_CUT_OFF:
        rv_findings_add(findings, RV_SEVERITY_WARNING, &src, "move the rule that always matches to the end",
                        "stage \"%s\": rule %d is never looked at, since rule %d always matches", a->name,
                        route->rule + 1, route->because + 1);
        return;
    case RV_WAY_OUTCOME:
        value = json_object_get_string(rule->value);
        if (rv_outcome_of(rv_str_of(value), &outcome, NULL) < 0)
            rv_findings_add(findings, RV_SEVERITY_WARNING, &src, "test another key, or use one of the outcomes",
                            "stage \"%s\": rule %d never matches, since a stage whose outcome is \"%s\" fails", a->name,
                            route->rule + 1, value);
        else
            rv_findings_add(findings, RV_SEVERITY_WARNING, &src, "test another key",
                            "stage \"%s\": rule %d is never followed, since outcome \"%s\" stops the stage there",
                            a->name, route->rule + 1, value);
        return;
    }
}

/* A person's yes goes along default_next. */
static bool approval_takes_default(const struct rv_pipeline *p, const struct rv_routes *routes, int stage)
{
    return !p->confirmation_resume_stage[0] && routes_ask(routes, stage, RV_TARGET_CONFIRMATION);
}

static void lint_routes(const struct rv_pipeline *p, const struct rv_routes *routes, rv_findings *findings)
{
    for (size_t i = 0; i < routes->n; i++) {
        const struct rv_route *route = &routes->items[i];
        const struct rv_agent *a = &p->agents[route->from];
        struct rv_src src;

        if (route->kind == RV_WAY_RULE)
            warn_rule(a, route, findings);
        if (route->kind == RV_WAY_DEFAULT && route->fate != RV_WAY_LIVE &&
            (a->routing.default_next[0] || a->routing.branches.is_list) &&
            !approval_takes_default(p, routes, route->from)) {
            src = src_or_stage(a->places.default_next, a);
            rv_findings_add(findings, RV_SEVERITY_WARNING, &src, NULL,
                            "stage \"%s\": default_next is never used, since rule %d always matches", a->name,
                            route->because + 1);
        }
    }
}

static bool leads(const struct rv_pipeline *p, const struct rv_routes *routes, int from, int to)
{
    const struct rv_agent_ask *ask = &p->agents[from].ask;

    for (size_t i = 0; i < ask->n_routes; i++)
        if (ask->routes[i].target == to)
            return true;
    for (size_t i = routes->start[from]; i < routes->start[from + 1]; i++) {
        const struct rv_route *route = &routes->items[i];
        const struct rv_branches *list = lint_route_branches(p, route);

        for (size_t k = 0; k < list->n && route->fate == RV_WAY_LIVE; k++)
            if (list->items[k].target == to)
                return true;
        if (route->kind == RV_WAY_FUNCTION || (route->fate == RV_WAY_LIVE && route->to == to))
            return true;
    }
    return false;
}

static void lint_edge_limits(const struct rv_pipeline *p, const struct rv_routes *routes, rv_findings *findings)
{
    for (size_t i = 0; i < p->n_edge_limits; i++) {
        const struct rv_edge_limit *limit = &p->edge_limits[i];

        if (!leads(p, routes, limit->from, limit->to))
            rv_findings_add(findings, RV_SEVERITY_WARNING, &limit->src,
                            "take it out, or name the stages of a route: from is where it leaves",
                            "edge limit \"%s\" to \"%s\" limits nothing: no route of \"%s\" leads there",
                            limit->from_name, limit->to_name, limit->from_name);
    }
}

static int lint_prompts(const struct rv_pipeline *p, rv_findings *findings, rv_err **err)
{
    rv_index used = {NULL, 0, 0};
    int rc = 0;

    for (size_t i = 0; i < p->n_agents && rc != RV_E_NOMEM; i++) {
        rc = rv_index_add(&used, rv_str_of(p->agents[i].model.prompt_key), 1);
        if (rc != RV_E_NOMEM)
            rc = rv_index_add(&used, rv_str_of(p->agents[i].model.system_key), 1);
    }
    for (size_t i = 0; i < p->n_prompts && rc != RV_E_NOMEM; i++) {
        if (rv_index_get(&used, rv_str_of(p->prompts[i].key)) < 0)
            rv_findings_add(findings, RV_SEVERITY_WARNING, &p->prompts[i].key_src,
                            "take it out, or name it as the prompt_key of a stage with has_llm: true",
                            "prompt \"%s\" is never used: no stage has it as prompt_key or system_key",
                            p->prompts[i].key);
    }
    rv_index_fini(&used);
    return rc == RV_E_NOMEM ? RV_FAIL(err, rc, "list the prompts in use") : 0;
}

/* Keys belong into the environment or a file of their own, not into what is shared and kept. */
static void lint_keys(const struct rv_pipeline *p, size_t i, rv_findings *findings)
{
    static const char *const headers[] = {"authorization", "x-api-key", "api-key"};
    const struct rv_node *written = rv_pipeline_written_model(p, i);
    const struct rv_node *key = rv_node_get(written, "api_key"), *map = rv_node_get(written, "headers");

    if (key && key->kind == RV_NODE_STR && key->text.len > 0 && !rv_has_indirection(key->text))
        rv_findings_add(
            findings, RV_SEVERITY_WARNING, &key->src, "write ${env:NAME} or ${file:path}",
            "model \"%s\": api_key is written out: everybody who has the file, or a store with its runs, has the key",
            p->models[i].role);
    for (size_t k = 0; map && map->kind == RV_NODE_MAP && k < map->n; k++) {
        const struct rv_node *value = map->items[k];
        bool is_key = false;

        for (size_t h = 0; h < RV_COUNT(headers); h++)
            is_key = is_key || strcasecmp(map->keys[k]->text.ptr, headers[h]) == 0;
        if (is_key && value->kind == RV_NODE_STR && !rv_has_indirection(value->text))
            rv_findings_add(findings, RV_SEVERITY_WARNING, &value->src, "write ${env:NAME} or ${file:path}",
                            "model \"%s\": the header %s is written out: everybody who has the file, or a store with "
                            "its runs, has the key",
                            p->models[i].role, map->keys[k]->text.ptr);
    }
}

static int lint_models(const struct rv_pipeline *p, rv_findings *findings, rv_err **err)
{
    bool *used = calloc(p->n_models + 1, sizeof *used), is_bound = true;

    for (size_t i = 0; i < p->n_agents; i++)
        is_bound = is_bound && !rv_agent_is_unbound(&p->agents[i]); /* else it is not known what they ask */
    if (!used)
        return RV_FAIL(err, RV_E_NOMEM, "list the models in use");
    rv_pipeline_mark_used_models(p, used);
    for (size_t i = 0; i < p->n_models; i++) {
        if (!used[i] && is_bound)
            rv_findings_add(findings, RV_SEVERITY_WARNING, &p->models[i].src, NULL,
                            "model \"%s\" is never used: no stage with has_llm has it as model_role",
                            p->models[i].role);
        lint_keys(p, i, findings);
    }
    free(used);
    return 0;
}

static void lint_unused_in_parallel(const struct rv_pipeline *p, rv_findings *findings)
{
    static const char hint[] = "parallel runs go by requires and after alone";

    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        struct rv_src src = lint_stage_src(a);

        if (a->routing.n_rules > 0) {
            src = src_or_stage(a->routing.rules[0].src, a);
            rv_findings_add(findings, RV_SEVERITY_WARNING, &src, hint,
                            "stage \"%s\": routing_rules are not used in parallel mode", a->name);
        }
        if (a->routing.default_target >= 0) {
            src = src_or_stage(a->places.default_next, a);
            rv_findings_add(findings, RV_SEVERITY_WARNING, &src, hint,
                            "stage \"%s\": default_next is not used in parallel mode", a->name);
        }
        if (a->routing.function[0]) {
            src = src_or_stage(a->places.routing_function, a);
            rv_findings_add(findings, RV_SEVERITY_WARNING, &src, hint,
                            "stage \"%s\": routing_function is not used in parallel mode", a->name);
        }
    }
    if (p->n_edge_limits > 0)
        rv_findings_add(findings, RV_SEVERITY_WARNING, &p->edge_limits[0].src, hint,
                        "edge_limits are not used in parallel mode");
}

/* Every stage has to run, once, but for those that wait for a failure. */
static void lint_parallel_bounds(const struct rv_pipeline *p, rv_findings *findings)
{
    struct rv_src src = lint_bounds_src(p);
    int64_t callers = 0, stages = 0;

    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        bool may_spare_it = a->hooks.before_model.n > 0 || a->each.list || lint_agent_may_sit_out(p, a, false);

        stages += !a->routing.on_failure_only;
        callers += !a->routing.on_failure_only && lint_agent_calls_model(a) && !may_spare_it;
    }
    if (stages > p->max_agent_hops)
        rv_findings_add(findings, RV_SEVERITY_WARNING, &src, "raise max_agent_hops",
                        "no run can be complete: it has %lld stages, and max_agent_hops is %lld", (long long)stages,
                        (long long)p->max_agent_hops);
    if (callers > p->max_llm_calls)
        rv_findings_add(findings, RV_SEVERITY_WARNING, &src, "raise max_llm_calls",
                        "no run can be complete: %lld stage%s a model, and max_llm_calls is %lld", (long long)callers,
                        callers == 1 ? " calls" : "s call", (long long)p->max_llm_calls);
}

/* --- groups of branches --- */

static void warn_of_lonely(const struct rv_pipeline *p, const struct rv_agent *a, const struct rv_branches *list,
                           rv_findings *findings)
{
    int join = a->routing.join_of;

    for (size_t i = 0; i < list->n && join >= 0; i++) {
        const struct rv_branch_target *one = &list->items[i];

        if (one->target >= 0 && !p->agents[one->target].level.can_join)
            rv_findings_add_as(findings, RV_SEVERITY_WARNING, "branch_never_joins", &one->src,
                               "let a stage of the branch route to the join; a branch that ends counts as ended there",
                               "stage \"%s\": the branch \"%s\" never routes to the join \"%s\" of the others", a->name,
                               one->name, p->agents[join].name);
    }
}

static void warn_of_race(const struct rv_agent *a, rv_findings *findings)
{
    const struct rv_agent_join *join = &a->join;

    if (join->wait == RV_WAIT_COUNT)
        rv_findings_add_as(findings, RV_SEVERITY_WARNING, "racing_join", &join->src,
                           "write join: all or any for the same result in each run, or leave it if time may decide",
                           "stage \"%s\": which branches this join merges depends on which of them arrive first",
                           a->name);
    else if (join->wait == RV_WAIT_ALL && join->failures == RV_FAILURES_FAST)
        rv_findings_add_as(findings, RV_SEVERITY_WARNING, "racing_join", &join->failures_src,
                           "write failures: drain or collect for the same result in each run, or leave it if time may "
                           "decide",
                           "stage \"%s\": which branches a failure cancels, and the error that is told, depend on time",
                           a->name);
}

static void lint_groups(const struct rv_pipeline *p, rv_findings *findings)
{
    for (size_t i = 0; i < p->n_agents && p->has_groups; i++) {
        const struct rv_agent *a = &p->agents[i];

        for (size_t r = 0; r < a->routing.n_rules; r++)
            warn_of_lonely(p, a, &a->routing.rules[r].branches, findings);
        warn_of_lonely(p, a, &a->routing.branches, findings);
        warn_of_race(a, findings);
    }
}

static int lint_sequential(const struct rv_pipeline *p, rv_findings *findings, rv_err **err)
{
    struct rv_routes routes = {NULL, 0, NULL};
    int rc = lint_routes_build(p, &routes, err);

    if (rc < 0)
        return rc;
    lint_routes(p, &routes, findings);
    lint_edge_limits(p, &routes, findings);
    lint_answers(p, &routes, findings);
    lint_groups(p, findings);
    rc = lint_reachable(p, &routes, findings, err);
    lint_routes_fini(&routes);
    return rc;
}

void rv_pipeline_lint(const struct rv_pipeline *p, rv_findings *findings)
{
    rv_err *err = NULL;
    int rc;

    if (!p->is_sound) /* what an unknown name was meant to be is not known, so every conclusion could be wrong */
        return;
    if (p->n_agents == 0)
        rv_findings_add(findings, RV_SEVERITY_WARNING, &(struct rv_src){p->file, 1, 1}, "list them in \"agents\"",
                        "the pipeline has no stages: a run does nothing");
    rc = lint_models(p, findings, &err);
    if (rc == 0)
        rc = lint_prompts(p, findings, &err);
    if (rc == 0 && p->default_run_mode == RV_MODE_PARALLEL) {
        lint_unused_in_parallel(p, findings);
        lint_parallel_bounds(p, findings);
    } else if (rc == 0) {
        rc = lint_sequential(p, findings, &err);
    }
    if (rc < 0)
        rv_findings_add_err(findings, RV_SEVERITY_ERROR, NULL, err);
    rv_err_free(err);
}

void rv_pipeline_lint_unscripted(const struct rv_pipeline *p, rv_findings *findings)
{
    char hint[512];

    /* With a section of models a role without one is an error, or optional: then it may be gone, and the file is right.
     */
    if (!p->is_sound || rv_pipeline_has_models(p))
        return;
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        struct rv_src src = src_or_stage(a->places.model_role, a);

        if (!lint_agent_calls_model(a) || rv_pipeline_find_model(p, rv_str_of(a->model.role)) || !a->model.role[0])
            continue; /* the model of a document, or a declared agent that is not bound */
        snprintf(hint, sizeof hint,
                 "give it one, for example models: {%.200s: provider:model}, or play it with --script", a->model.role);
        rv_findings_add(findings, RV_SEVERITY_WARNING, &src, hint,
                        "agent \"%s\" asks role \"%s\", which has no model: without --script it cannot run", a->name,
                        a->model.role);
    }
}
