/* The normalised pipeline as JSON: defaults filled in, order as it runs. */
#include <string.h>

#include "config/explain_internal.h"

static void write_list_if_set(rv_jw *w, const char *key, const struct rv_str_list *list)
{
    if (list->is_set)
        rv_jw_kv_list(w, key, list);
}

static void write_if(rv_jw *w, const char *key, const char *text)
{
    if (text && text[0])
        rv_jw_kv_text(w, key, text);
}

/* --- Agents --- */

static void write_targets(rv_jw *w, const char *key, const char *name, const struct rv_branches *branches)
{
    if (!branches->is_list) {
        rv_jw_kv_text(w, key, name);
        return;
    }
    rv_jw_key(w, key);
    rv_jw_arr(w);
    for (size_t i = 0; i < branches->n; i++) {
        if (!branches->items[i].when) {
            rv_jw_text(w, branches->items[i].name);
            continue;
        }
        rv_jw_obj(w);
        rv_jw_kv_text(w, "target", branches->items[i].name);
        rv_jw_kv_text(w, "when", rv_expr_text(branches->items[i].when));
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_rules(const struct rv_agent *a, rv_jw *w)
{
    rv_jw_key(w, "routing_rules");
    rv_jw_arr(w);
    for (size_t i = 0; i < a->routing.n_rules; i++) {
        const struct rv_rule *rule = &a->routing.rules[i];
        rv_jw_obj(w);
        if (rule->when) {
            rv_jw_kv_text(w, "when", rv_expr_text(rule->when));
        } else {
            rv_jw_kv_text(w, "condition", rule->condition);
            rv_jw_kv_value(w, "value", rule->value);
        }
        write_targets(w, "target", rule->target_name, &rule->branches);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_limits(const struct rv_llm_limits *limits, rv_jw *w)
{
    const struct {
        const char *key;
        int64_t value;
    } rows[] = {
        {"request_limit", limits->request_limit},           {"tool_calls_limit", limits->tool_calls_limit},
        {"input_tokens_limit", limits->input_tokens_limit}, {"output_tokens_limit", limits->output_tokens_limit},
        {"total_tokens_limit", limits->total_tokens_limit},
    };
    bool any = false;

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        any = any || rows[i].value > 0;
    if (!any)
        return;
    rv_jw_key(w, "limits");
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        if (rows[i].value > 0)
            rv_jw_kv_int(w, rows[i].key, rows[i].value);
    rv_jw_obj_end(w);
}

/* What the document and the keys of the stage come to; the limits and the rest are where every stage has them. */
static void write_declared(const struct rv_agent *a, rv_jw *w)
{
    rv_jw_kv_text(w, "agent", a->declared.name);
    if (a->declared.doc || a->declared.structured != RV_UNSET)
        rv_jw_kv_bool(w, "structured_output", a->declared.doc ? a->output.schema != NULL : a->declared.structured != 0);
    rv_jw_kv_bool(w, "joins_session", a->session.joins);
    if (a->tools.chained && a->tools.chained[0]) {
        rv_jw_kv_text(w, "chained_tool", a->tools.chained);
        if (a->tools.chained_map)
            rv_jw_kv_value(w, "chained_map", a->tools.chained_map);
    }
}

/* The word of a TERM key's value, from the key's own table row. */
static void write_term(rv_jw *w, const struct rv_key_table *table, const char *key, int value)
{
    size_t n = 0;
    const struct rv_term_list *lists = rv_term_lists(&n);
    const struct rv_term_list *list = NULL;

    for (size_t i = 0; i < table->n_keys; i++) {
        if (strcmp(table->keys[i].name, key) != 0)
            continue;
        list = table->keys[i].terms;
        for (size_t k = 0; !list && k < n; k++)
            if (strcmp(lists[k].name, table->keys[i].term_list) == 0)
                list = &lists[k];
    }
    if (list && value >= 0 && (size_t)value < list->n)
        rv_jw_kv_text(w, key, list->terms[value].text);
}

/* As the file has them: defaults are in the reference, secrets are not shown. */
static void write_mcp_servers(const struct rv_pipeline *p, rv_jw *w)
{
    if (p->n_mcp_servers == 0)
        return;
    rv_jw_key(w, "mcp_servers");
    rv_jw_obj(w);
    for (size_t i = 0; i < p->n_mcp_servers; i++) {
        rv_jw_key(w, p->mcp_servers[i].name);
        config_explain_guarded(w, p->internal->mcp_servers[i]);
    }
    rv_jw_obj_end(w);
}

static void write_capabilities(const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_key(w, "capabilities");
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_capabilities; i++) {
        const struct rv_capability_config *c = &p->capabilities[i];
        const struct rv_node *config = rv_node_get(p->internal->capabilities[i].node, "config");

        rv_jw_obj(w);
        rv_jw_kv_text(w, "name", c->name);
        write_term(w, &config_capability_table, "isolation", c->isolation);
        if (c->isolation == RV_ISOLATION_PROCESS) {
            rv_jw_key(w, "limits");
            rv_jw_obj(w);
            rv_jw_kv_int(w, "memory_mb", c->memory_mb);
            rv_jw_kv_int(w, "open_files", c->open_files);
            rv_jw_obj_end(w);
        }
        if (config) {
            rv_jw_key(w, "config");
            config_explain_guarded(w, config);
        }
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_child_text(const struct rv_pipeline *p, const struct rv_agent *a, rv_jw *w)
{
    int how = rv_agent_child_text_kind(p, a);

    if (!a->declared.name[0] && how == RV_UNSET && !a->session.child_text_resets)
        return;
    write_term(w, &config_agent_table, "child_text", how == RV_UNSET ? RV_CHILD_TEXT_FINAL : how);
    rv_jw_kv_bool(w, "child_text_resets", a->session.child_text_resets);
}

/* --- Groups and other kinds of work --- */

static void write_join(const struct rv_agent_join *join, rv_jw *w)
{
    rv_jw_key(w, "join");
    rv_jw_obj(w);
    if (join->wait == RV_WAIT_COUNT)
        rv_jw_kv_int(w, "wait", join->count);
    else
        rv_jw_kv_text(w, "wait", join->wait == RV_WAIT_ANY ? "any" : "all");
    write_term(w, &config_join_table, "failures", join->failures);
    if (join->n_merges > 0) {
        rv_jw_key(w, "merge");
        rv_jw_obj(w);
        for (size_t i = 0; i < join->n_merges; i++)
            rv_jw_kv_text(w, join->merges[i].key, config_merge_list.terms[join->merges[i].how].text);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

static void write_built(rv_jw *w, const char *key, const struct rv_built *built)
{
    if (!built)
        return;
    rv_jw_key(w, key);
    config_explain_guarded(w, built->node);
}

static void write_ask(const struct rv_agent_ask *ask, rv_jw *w)
{
    rv_jw_key(w, "ask");
    rv_jw_obj(w);
    rv_jw_key(w, "question");
    rv_jw_str(w, rv_template_text(ask->question));
    if (ask->show)
        rv_jw_kv_text(w, "show", rv_expr_text(ask->show));
    if (ask->any_text)
        rv_jw_kv_text(w, "options", RV_CHOICE_TEXT);
    else
        write_list_if_set(w, "options", &ask->options);
    if (ask->expires_seconds > 0)
        rv_jw_kv_int(w, "expires_seconds", ask->expires_seconds);
    rv_jw_obj_end(w);
    if (ask->n_routes == 0)
        return;
    rv_jw_key(w, "on_answer");
    rv_jw_obj(w);
    for (size_t i = 0; i < ask->n_routes; i++)
        rv_jw_kv_text(w, ask->routes[i].choice, ask->routes[i].target_name);
    rv_jw_obj_end(w);
}

/* What loading found out: the join of the groups that the stage opens, and the stages whose groups are open there. */
static void write_groups(const struct rv_pipeline *p, const struct rv_agent *a, rv_jw *w)
{
    if (a->routing.join_of >= 0)
        rv_jw_kv_text(w, "joined_by", p->stage_names[a->routing.join_of]);
    if (a->level.fork < 0)
        return;
    rv_jw_key(w, "inside");
    rv_jw_arr(w);
    for (int fork = a->level.fork; fork >= 0; fork = p->agents[fork].level.fork)
        rv_jw_text(w, p->stage_names[fork]);
    rv_jw_arr_end(w);
}

/* What the stage's file is: `reeve explain` of that file says more. */
static void write_inner(const struct rv_pipeline *p, rv_jw *w)
{
    bool is_parallel = p->default_run_mode == RV_MODE_PARALLEL;

    rv_jw_key(w, "runs");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", p->name);
    rv_jw_kv_text(w, "default_run_mode", rv_run_mode_text(is_parallel ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL));
    if (p->inputs.is_set)
        rv_jw_kv_list(w, "inputs", &p->inputs);
    rv_jw_key(w, "stages");
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_agents; i++)
        rv_jw_text(w, p->stage_names[i]);
    rv_jw_arr_end(w);
    rv_jw_kv_int(w, "max_iterations", p->max_iterations);
    rv_jw_kv_int(w, "max_llm_calls", p->max_llm_calls);
    rv_jw_kv_int(w, "max_agent_hops", p->max_agent_hops);
    if (p->has_budget)
        config_explain_double(w, "budget_usd", (double)p->budget_micro_usd / 1e6);
    rv_jw_obj_end(w);
}

static void write_work(const struct rv_agent *a, rv_jw *w)
{
    if (a->join.wait != RV_WAIT_NOT)
        write_join(&a->join, w);
    if (a->each.list) {
        rv_jw_kv_text(w, "for_each", rv_expr_text(a->each.list));
        rv_jw_kv_int(w, "max_items", a->each.max_items);
        rv_jw_kv_int(w, "max_parallel", a->each.max_parallel);
        write_term(w, &config_agent_table, "on_item_error", a->each.on_error);
    }
    write_if(w, "pipeline", a->inner.file);
    if (a->inner.pipeline)
        write_inner(a->inner.pipeline, w);
    write_built(w, "inputs", a->inner.inputs);
    write_built(w, "outputs", a->inner.outputs);
    write_built(w, "set", a->set);
    if (a->ask.question)
        write_ask(&a->ask, w);
    if (a->on_denied != RV_DENIED_END_RUN)
        write_term(w, &config_agent_table, "on_denied", a->on_denied);
}

static void write_client_tools(const struct rv_agent *a, rv_jw *w)
{
    if (a->tools.n_client == 0)
        return;
    rv_jw_key(w, "client_tools");
    rv_jw_arr(w);
    for (size_t i = 0; i < a->tools.n_client; i++) {
        rv_jw_obj(w);
        rv_jw_kv_text(w, "name", a->tools.client[i].name);
        rv_jw_kv_text(w, "description", a->tools.client[i].description);
        if (a->tools.client[i].parameters)
            rv_jw_kv_value(w, "parameters", a->tools.client[i].parameters);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_model(const struct rv_agent *a, rv_jw *w)
{
    write_if(w, "model_role", a->model.role);
    write_if(w, "prompt_key", a->model.prompt_key);
    write_if(w, "system_key", a->model.system_key);
    if (a->model.n_examples > 0)
        rv_jw_kv_int(w, "examples", (int64_t)a->model.n_examples);
    if (a->model.n_attachments > 0) {
        rv_jw_key(w, "attachments");
        rv_jw_arr(w);
        for (size_t i = 0; i < a->model.n_attachments; i++)
            rv_jw_text(w, rv_expr_text(a->model.attachments[i]));
        rv_jw_arr_end(w);
    }
    if (a->model.no_temperature)
        rv_jw_kv_value(w, "temperature", NULL);
    if (a->model.has_temperature)
        config_explain_double(w, "temperature", a->model.temperature);
    if (a->model.has_max_tokens)
        rv_jw_kv_int(w, "max_tokens", a->model.max_tokens);
}

static void write_hooks(const struct rv_agent_hooks *h, rv_jw *w)
{
    rv_jw_kv_list(w, "policies", &h->policies);
    write_if(w, "pre_process", h->pre_process);
    write_if(w, "post_process", h->post_process);
    write_list_if_set(w, "before_model", &h->before_model);
    write_list_if_set(w, "after_model", &h->after_model);
    write_list_if_set(w, "before_tool", &h->before_tool);
    write_list_if_set(w, "after_tool", &h->after_tool);
    write_if(w, "mock_handler", h->mock_handler);
    rv_jw_kv_bool(w, "mock", h->mock);
}

static void write_agent(const struct rv_pipeline *p, const struct rv_agent *a, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", a->name);
    if (a->declared.name[0])
        write_declared(a, w);
    write_child_text(p, a, w);
    rv_jw_kv_int(w, "stage_order", a->order.stage_order);
    rv_jw_kv_list(w, "requires", &a->order.required);
    rv_jw_kv_list(w, "after", &a->order.after);
    write_term(w, &config_agent_table, "join_strategy", a->order.join);
    rv_jw_kv_bool(w, "has_llm", a->has_llm);
    rv_jw_kv_bool(w, "has_tools", a->has_tools);
    rv_jw_kv_bool(w, "has_policies", a->has_policies);
    write_term(w, &config_agent_table, "tool_access", a->tools.access);
    write_list_if_set(w, "allowed_tools", &a->tools.allowed);
    write_model(a, w);
    rv_jw_kv_text(w, "output_key", a->output.key);
    write_term(w, &config_agent_table, "output_mode", a->output.mode);
    if (a->output.schema) {
        rv_jw_kv_value(w, "output_schema", a->output.schema);
        write_term(w, &config_agent_table, "output_via", a->output.via);
        rv_jw_kv_int(w, "max_repairs", a->limits.max_repairs);
    }
    rv_jw_kv_list(w, "required_output_fields", &a->output.required_fields);
    write_rules(a, w);
    write_targets(w, "default_next", a->routing.default_next[0] ? a->routing.default_next : "end",
                  &a->routing.branches);
    write_if(w, "error_next", a->routing.error_next);
    write_groups(p, a, w);
    write_work(a, w);
    write_if(w, "routing_function", a->routing.function);
    rv_jw_kv_int(w, "timeout_seconds", a->limits.timeout_seconds);
    rv_jw_kv_int(w, "max_retries", a->limits.max_retries);
    write_client_tools(a, w);
    if (a->model.tool_choice != RV_CHOICE_OF_MODEL)
        write_term(w, &config_agent_table, "tool_choice", a->model.tool_choice);
    if (a->has_llm && a->has_tools && !rv_plans(&a->planning)) {
        rv_jw_kv_int(w, "max_rounds", a->limits.max_rounds);
        rv_jw_kv_int(w, "max_bad_calls", a->limits.max_bad_calls);
    }
    config_planning_explain(a, w);
    write_limits(&a->limits.llm, w);
    if (a->limits.max_context_tokens > 0)
        rv_jw_kv_int(w, "max_context_tokens", a->limits.max_context_tokens);
    if (a->limits.max_visits > 0)
        rv_jw_kv_int(w, "max_visits", a->limits.max_visits);
    rv_jw_kv_text(w, "plan_from", a->tools.plan_from);
    write_hooks(&a->hooks, w);
    rv_jw_obj_end(w);
}

/* --- The rest --- */

static void write_edge_limits(const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_key(w, "edge_limits");
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_edge_limits; i++) {
        rv_jw_obj(w);
        rv_jw_kv_text(w, "from", p->edge_limits[i].from_name);
        rv_jw_kv_text(w, "to", p->edge_limits[i].to_name);
        rv_jw_kv_int(w, "max_count", p->edge_limits[i].max_count);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_prompts(const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_key(w, "prompts");
    rv_jw_obj(w);
    for (size_t i = 0; i < p->n_prompts; i++) {
        const struct rv_prompt_config *prompt = &p->prompts[i];
        size_t n = prompt->compiled ? rv_template_n_placeholders(prompt->compiled) : 0;

        rv_jw_key(w, prompt->key);
        rv_jw_obj(w);
        rv_jw_kv_text(w, "file", prompt->file);
        rv_jw_key(w, "placeholders");
        rv_jw_arr(w);
        for (size_t k = 0; k < n; k++)
            rv_jw_str(w, rv_template_placeholder_at(prompt->compiled, k).path);
        rv_jw_arr_end(w);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

static void write_execution(const struct rv_pipeline *p, rv_jw *w)
{
    const struct rv_execution_config *e = &p->execution;
    const struct {
        const char *key;
        int64_t value;
    } integers[] = {
        {"max_plan_steps", e->max_plan_steps},
        {"max_tool_retries", e->max_tool_retries},
        {"max_llm_retries", e->max_llm_retries},
        {"max_loop_iterations", e->max_loop_iterations},
        {"max_replan_iterations", e->max_replan_iterations},
        {"max_loop_back_rejections", e->max_loop_back_rejections},
        {"agent_request_limit", e->agent_request_limit},
        {"agent_token_limit", e->agent_token_limit},
        {"idempotency_ttl_ms", e->idempotency_ttl_ms},
    };
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"llm_timeout", (double)e->llm_timeout_ms / 1000},
        {"executor_timeout", (double)e->executor_timeout_ms / 1000},
        {"tool_timeout", (double)e->tool_timeout_ms / 1000},
        {"agent_timeout", (double)e->agent_timeout_ms / 1000},
        {"delegation_timeout", (double)p->delegation_timeout_ms / 1000},
        {"meta_validation_delay", (double)e->meta_validation_delay_ms / 1000},
        {"clarification_threshold", e->clarification_threshold},
        {"high_confidence_threshold", e->high_confidence_threshold},
    };
    const struct {
        const char *key;
        bool value;
    } flags[] = {
        {"require_confirmation_for_destructive", e->require_confirmation_for_destructive},
        {"replan_on_partial_success", e->replan_on_partial_success},
        {"strict_transition_validation", e->strict_transition_validation},
        {"enable_idempotency", e->enable_idempotency},
        {"enforce_idempotency_for_tools", e->enforce_idempotency_for_tools},
        {"enforce_idempotency_for_agents", e->enforce_idempotency_for_agents},
        {"meta_validation_enabled", e->meta_validation_enabled},
        {"enable_loop_back", e->enable_loop_back},
        {"enable_arbiter", e->enable_arbiter},
        {"skip_arbiter_for_read_only", e->skip_arbiter_for_read_only},
    };

    rv_jw_key(w, "execution");
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_COUNT(integers); i++)
        rv_jw_kv_int(w, integers[i].key, integers[i].value);
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        config_explain_double(w, numbers[i].key, numbers[i].value);
    for (size_t i = 0; i < RV_COUNT(flags); i++)
        rv_jw_kv_bool(w, flags[i].key, flags[i].value);
    if (e->has_llm_seed)
        rv_jw_kv_int(w, "llm_seed", e->llm_seed);
    rv_jw_kv_text(w, "log_level", e->log_level);
    rv_jw_obj_end(w);
}

static void write_state(const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_key(w, "state");
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_state_fields; i++) {
        rv_jw_obj(w);
        rv_jw_kv_text(w, "key", p->state_fields[i].key);
        write_term(w, &config_state_field_table, "merge", p->state_fields[i].merge);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_tests(const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_key(w, "tests");
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_tests; i++) {
        const struct rv_test_config *t = &p->tests[i];
        rv_jw_obj(w);
        rv_jw_kv_text(w, "name", t->name);
        write_if(w, "script", t->script);
        write_term(w, &config_test_table, "mode", t->mode);
        rv_jw_kv_bool(w, "mock", t->mock);
        write_list_if_set(w, "without", &t->without);
        rv_jw_kv_value(w, "input", t->input);
        rv_jw_kv_value(w, "expect", t->expect);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_mcp_offer(const struct rv_pipeline *p, rv_jw *w)
{
    const struct rv_mcp_offer_config *m = &p->mcp;

    if (m->kind == RV_MCP_OFFER_TOOL && m->tasks == RV_MCP_TASKS_OPTIONAL)
        return;
    rv_jw_key(w, "mcp");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "offer", rv_mcp_offer_text((enum rv_mcp_offer_kind)m->kind));
    write_if(w, "uri", m->uri);
    write_if(w, "mime_type", m->mime_type);
    if (m->tasks == RV_MCP_TASKS_REQUIRED)
        rv_jw_kv_text(w, "tasks", "required");
    rv_jw_obj_end(w);
}

void rv_pipeline_write_json(const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", p->name);
    write_if(w, "description", p->description);
    rv_jw_kv_text(
        w, "default_run_mode",
        rv_run_mode_text(p->default_run_mode == RV_UNSET ? RV_MODE_SEQUENTIAL : (enum rv_run_mode)p->default_run_mode));
    if (p->inputs.is_set)
        rv_jw_kv_list(w, "inputs", &p->inputs);
    rv_jw_kv_int(w, "max_iterations", p->max_iterations);
    rv_jw_kv_int(w, "max_llm_calls", p->max_llm_calls);
    rv_jw_kv_int(w, "max_agent_hops", p->max_agent_hops);
    if (p->has_budget) {
        rv_jw_key(w, "budget");
        rv_jw_obj(w);
        config_explain_double(w, "usd", (double)p->budget_micro_usd / 1e6);
        rv_jw_obj_end(w);
    }
    rv_jw_kv_int(w, "default_timeout_seconds", p->default_timeout_seconds);
    write_if(w, "schema_dir", p->schema_dir);
    rv_jw_kv_int(w, "max_delegation_depth", p->max_delegation_depth);
    rv_jw_kv_int(w, "max_delegation_repeats", p->max_delegation_repeats);
    if (p->child_text != RV_UNSET)
        rv_jw_kv_text(w, "child_text", rv_child_text_text((enum rv_child_text)p->child_text));
    write_if(w, "clarification_resume_stage", p->clarification_resume_stage);
    write_if(w, "confirmation_resume_stage", p->confirmation_resume_stage);
    write_if(w, "agent_review_resume_stage", p->agent_review_resume_stage);
    write_if(w, "agent_review_reject_stage", p->agent_review_reject_stage);
    write_capabilities(p, w);
    write_mcp_servers(p, w);
    config_explain_models(p, w);
    rv_jw_key(w, "agents");
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_agents; i++)
        write_agent(p, &p->agents[i], w);
    rv_jw_arr_end(w);
    write_edge_limits(p, w);
    write_prompts(p, w);
    write_execution(p, w);
    write_state(p, w);
    write_list_if_set(w, "retry_archive", &p->retry_archive);
    write_list_if_set(w, "retry_clear", &p->retry_clear);
    write_list_if_set(w, "stage_reset", &p->stage_reset);
    rv_jw_key(w, "response");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "output_key", p->response.output_key ? p->response.output_key : "integration");
    rv_jw_kv_text(w, "field", p->response.field ? p->response.field : "final_response");
    rv_jw_obj_end(w);
    if (p->provenance_key) {
        rv_jw_key(w, "artifacts");
        rv_jw_obj(w);
        rv_jw_kv_text(w, "provenance_key", p->provenance_key);
        rv_jw_obj_end(w);
    }
    write_mcp_offer(p, w);
    rv_jw_kv_bool(w, "mock", p->mock);
    write_tests(p, w);
    rv_jw_obj_end(w);
}
