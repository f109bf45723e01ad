/* Loading a pipeline: the table of its keys, the order of the steps, and its end. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config/models_internal.h"

#define AT(member) offsetof(struct rv_pipeline, member)
#define MAX_BOUND  1e9 /* a larger bound bounds nothing: a run of a thousand steps a second needs 11 days for it */

static const struct rv_key state_field_keys[] = {
    {"key", RV_KEY_STR, offsetof(struct rv_state_field, key), .required = true, .doc = "An output key."},
    {"merge", RV_KEY_TERM, offsetof(struct rv_state_field, merge), .terms = &config_merge_list,
     .default_text = "\"replace\"", .doc = "How a new output joins what is there."},
};
const struct rv_key_table config_state_field_table = {"state_field",
                                                      "A field of the state: gathers a stage's outputs across loops",
                                                      state_field_keys, RV_COUNT(state_field_keys), NULL};

static const struct rv_key edge_limit_keys[] = {
    {"from", RV_KEY_STR, offsetof(struct rv_edge_limit, from_name), .required = true,
     .src_offset = offsetof(struct rv_edge_limit, from_src), .doc = "The stage that is left."},
    {"to", RV_KEY_STR, offsetof(struct rv_edge_limit, to_name), .required = true,
     .src_offset = offsetof(struct rv_edge_limit, to_src), .doc = "The stage that is entered."},
    {"max_count", RV_KEY_INT, offsetof(struct rv_edge_limit, max_count), .required = true, .min = 1, .max = MAX_BOUND,
     .doc = "How often a run may go this way; once more ends it."},
};
const struct rv_key_table config_edge_limit_table = {"edge_limit", "A limit of one way between two stages",
                                                     edge_limit_keys, RV_COUNT(edge_limit_keys), NULL};

/* RV_ARTIFACT_PROVENANCE is the default: the key of the servers that brought the form up. */
static const struct rv_key artifacts_keys[] = {
    {"provenance_key", RV_KEY_STR, AT(provenance_key), .default_text = "\"io.systemprompt/execution\"",
     .doc = "Where in `_meta` of a result the id of its artifact is, and what else is known about it."},
};

static const struct rv_key response_keys[] = {
    {"output_key", RV_KEY_STR, offsetof(struct rv_response_place, output_key), .default_text = "\"integration\"",
     .doc = "The output that has the final response."},
    {"field", RV_KEY_STR, offsetof(struct rv_response_place, field), .default_text = "\"final_response\"",
     .doc = "Its field; a string."},
};

static void read_edge_limits(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);
    size_t n;

    (void)target;
    l->p->edge_limits = config_loader_items(
        r, node, "edge_limits", RV_LIST_OF("a list of maps", RV_MAX_EDGE_LIMITS, sizeof *l->p->edge_limits), &n);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        struct rv_key_reader inner = {
            .arena = l->arena, .findings = l->findings, .owner_kind = "edge limit", .user = l};
        struct rv_edge_limit *edge = &l->p->edge_limits[i];

        l->p->n_edge_limits = i + 1;
        edge->src = node->items[i]->src;
        edge->from = edge->to = RV_TARGET_UNKNOWN;
        rv_keys_read(&inner, node->items[i], edge_limit_keys, RV_COUNT(edge_limit_keys), edge);
        if (inner.rc < 0)
            l->rc = inner.rc;
    }
}

static void read_state(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);
    size_t n;

    (void)target;
    l->p->state_fields = config_loader_items(
        r, node, "state", RV_LIST_OF("a list of maps", RV_MAX_STATE_FIELDS, sizeof *l->p->state_fields), &n);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        struct rv_key_reader inner = {
            .arena = l->arena, .findings = l->findings, .owner_kind = "state field", .user = l};

        l->p->n_state_fields = i + 1;
        l->p->state_fields[i].src = node->items[i]->src;
        rv_keys_read(&inner, node->items[i], state_field_keys, RV_COUNT(state_field_keys), &l->p->state_fields[i]);
        if (inner.rc < 0)
            l->rc = inner.rc;
    }
}

#define SECTION(key, limit, element, reader, text)                                                                     \
    {                                                                                                                  \
        .name = key, .type = RV_KEY_CUSTOM, .read = reader,                                                            \
        .schema = "{\"type\":\"array\",\"maxItems\":" limit ",\"items\":" element "}", .doc = text                     \
    }
#define BOUND(key, value, text)                                                                                        \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_INT, .offset = AT(key), .min = 1, .max = MAX_BOUND, .default_text = value,        \
        .doc = text                                                                                                    \
    }
#define NAME(key, text)                                                                                                \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_STR, .offset = AT(key), .doc = text                                               \
    }
#define KEY_LIST(key, text)                                                                                            \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_STR_LIST, .offset = AT(key), .doc = text                                          \
    }

static void read_agents(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);

    (void)target;
    l->p->agents = config_loader_items(r, node, "agents",
                                       RV_LIST_OF("a list of maps with a name", RV_MAX_STAGES, sizeof *l->p->agents),
                                       &l->p->n_agents);
    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++)
        config_agent_build(l, node->items[i], &l->p->agents[i]);
}

static const struct rv_key pipeline_keys[] = {
    {"name", RV_KEY_STR, AT(name), .required = true, .doc = "The pipeline's name."},
    NAME(description, "What it is for, in a sentence."),
    SECTION("capabilities", "256",
            "{\"anyOf\":[{\"type\":\"string\",\"minLength\":1},{\"$ref\":\"#/$defs/capability\"}]}",
            config_read_capabilities, "Plugins that bring tools, hooks, policies, prompts and providers."),
    {"mcp_servers", RV_KEY_CUSTOM, .read = config_read_mcp_servers,
     .schema = "{\"type\":\"object\",\"maxProperties\":64,\"additionalProperties\":{\"$ref\":\"#/$defs/"
               "mcp_server\"}}",
     .doc = "Map from name to MCP server: peers that bring tools."},
    {"models", RV_KEY_CUSTOM, .read = config_read_models,
     .schema = "{\"type\":\"object\",\"maxProperties\":256,\"additionalProperties\":{\"anyOf\":[{\"type\":\"string\","
               "\"pattern\":\"^[^:]+:.|^scripted$|\\\\$\\\\{\"},{\"$ref\":\"#/$defs/model\"}]}}",
     .doc = "Map from role to provider:model, or to a map."},
    SECTION("agents", "10000", "{\"$ref\":\"#/$defs/agent\"}", read_agents, "The stages."),
    {"default_run_mode", RV_KEY_TERM, AT(default_run_mode), .term_list = "run_mode",
     .doc = "How stages follow each other; unset: sequential."},
    BOUND(max_iterations, "3", "Loop-backs a run may make."),
    BOUND(max_llm_calls, "10", "Model calls a run may make."),
    BOUND(max_agent_hops, "21", "Stage visits a run may make."),
    {"budget", RV_KEY_CUSTOM, .read = config_read_budget, .src_offset = AT(budget_src),
     .schema = "{\"$ref\":\"#/$defs/budget\"}",
     .doc = "What a run may cost; every model that it can ask needs a price then."},
    {"default_timeout_seconds", RV_KEY_INT, AT(default_timeout_seconds), .min = 1, .max = 31536000,
     .default_text = "300", .doc = "Deadline of one stage visit, where the stage has none of its own."},
    SECTION("edge_limits", "10000", "{\"$ref\":\"#/$defs/edge_limit\"}", read_edge_limits,
            "Limits of single ways between stages."),
    NAME(schema_dir, "Folder of the documents of declared agents, relative to the pipeline's; unset: none."),
    {"max_delegation_depth", RV_KEY_INT, AT(max_delegation_depth), .min = 0, .max = 16, .default_text = "3",
     .doc = "How many agents may be asked below a stage, one by the other; 0: none."},
    {"max_delegation_repeats", RV_KEY_INT, AT(max_delegation_repeats), .min = 1, .max = 16, .default_text = "2",
     .doc = "How often one agent may stand in such a chain."},
    {"child_text", RV_KEY_TERM, AT(child_text), .terms = &config_child_text_list,
     .doc = "The child_text of agents where neither the stage nor the document says one; unset: final."},
    NAME(clarification_resume_stage, "Stage to go on with after a clarification; unset: the same."),
    NAME(confirmation_resume_stage,
         "Stage to go on with after an approval; unset: the default_next of the stage whose rule asked, with the "
         "output that was shown; after any other question the same stage."),
    NAME(agent_review_resume_stage, "Stage to go on with after a review; unset: the same."),
    NAME(agent_review_reject_stage, "Stage to go on with after a rejected review; unset: the run ends."),
    {"prompts", RV_KEY_CUSTOM, .read = config_read_prompts,
     .schema = "{\"type\":\"object\",\"maxProperties\":4096,\"additionalProperties\":{\"anyOf\":[{\"type\":\"string\"},"
               "{\"$ref\":\"#/$defs/prompt\"}]}}",
     .doc = "Map from key to a text with {{name}} placeholders, or to a file."},
    {"execution", RV_KEY_CUSTOM, .read = config_read_execution, .schema = "{\"$ref\":\"#/$defs/execution\"}",
     .doc = "Global knobs."},
    SECTION("state", "1024", "{\"$ref\":\"#/$defs/state_field\"}", read_state,
            "What is gathered across loops, and how."),
    KEY_LIST(retry_archive, "Outputs that a loop-back archives in prior_plans; unset: plan."),
    KEY_LIST(retry_clear, "Outputs that a loop-back deletes; unset: plan, arbiter, execution, synthesizer, critic."),
    KEY_LIST(stage_reset, "Outputs that `reeve fn advance_stage` deletes before the next part of the work; unset: "
                          "plan, execution, critic."),
    {"response", RV_KEY_MAP, AT(response), .keys = response_keys, .n_keys = RV_COUNT(response_keys),
     .doc = "Where the final response is."},
    {"mcp", RV_KEY_MAP, AT(mcp), .keys = config_mcp_offer_keys, .n_keys = RV_N_MCP_OFFER_KEYS,
     .doc = "How reeve offers the pipeline as an MCP server."},
    {"artifacts", RV_KEY_MAP, 0, .keys = artifacts_keys, .n_keys = RV_COUNT(artifacts_keys),
     .doc = "How artifacts are found in results of planned calls."},
    {"mock", RV_KEY_BOOL, AT(mock), .default_text = "false",
     .doc = "Use every stage's mock_handler, where it has one."},
    KEY_LIST(inputs, "What a stage that runs this pipeline has to give it; `inputs` in its expressions and prompts."),
    SECTION("tests", "4096", "{\"$ref\":\"#/$defs/test\"}", config_read_tests, "Tests of the pipeline."),
};
const struct rv_key_table config_pipeline_table = {"pipeline", "A pipeline: the whole file", pipeline_keys,
                                                   RV_COUNT(pipeline_keys), NULL};

/* --- The steps --- */

/* Prompts and agents can each name one; which of the sections comes first is the author's choice. */
static void reserve_files(struct rv_loader *l)
{
    const struct rv_node *prompts = rv_node_get(l->root, "prompts"), *agents = rv_node_get(l->root, "agents");
    size_t n = prompts && prompts->n <= RV_MAX_PROMPTS ? prompts->n : 0;

    n += agents && agents->n <= RV_MAX_STAGES ? agents->n : 0;
    l->p->internal->files = config_loader_array(l, n, sizeof *l->p->internal->files);
    l->p->internal->cap_files = n;
}

static const struct rv_key_word *words_of(const struct rv_key *keys)
{
    return keys == pipeline_keys              ? config_pipeline_words
           : keys == config_budget_table.keys ? config_budget_words
                                              : NULL;
}

static void read_all(struct rv_loader *l)
{
    const struct rv_node *name = rv_node_get(l->root, "name");
    struct rv_key_reader r = {.arena = l->arena,
                              .findings = l->findings,
                              .owner_kind = "pipeline",
                              .user = l,
                              .words = words_of,
                              .page = "pipelines"};

    if (name && name->kind == RV_NODE_STR)
        r.owner_name = name->text.ptr;
    config_execution_defaults(l);
    reserve_files(l);
    rv_keys_read(&r, l->root, pipeline_keys, RV_COUNT(pipeline_keys), l->p);
    if (r.rc < 0)
        l->rc = r.rc;
    if (l->rc == 0 && l->p->schema_dir[0])
        l->p->schema_dir = config_loader_path(l, rv_str_of(l->p->schema_dir));
}

/* False when the section of agents itself is broken or too long: every name would look unknown then. */
static bool knows_stages(const struct rv_loader *l)
{
    const struct rv_node *agents = rv_node_get(l->root, "agents");

    return l->p->n_agents > 0 || !agents || (agents->kind == RV_NODE_LIST && agents->n == 0);
}

/* Kept for agents that are bound later: their models were not in the text. */
static void keep_given_models(struct rv_loader *l)
{
    struct rv_pipeline_internal *internal = l->p->internal;
    size_t n = l->opts->n_models;

    if (!l->opts->models)
        return;
    internal->given_models = config_loader_array(l, n, sizeof *internal->given_models);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        internal->given_models[i] = l->opts->models[i];
        internal->given_models[i].role = rv_arena_dup(l->arena, rv_str_of(l->opts->models[i].role));
        const struct rv_chosen_model *from = &l->opts->models[i];
        struct rv_chosen_model *to = &internal->given_models[i];
        to->provider = to->replaces ? rv_arena_dup(l->arena, rv_str_of(from->provider)) : NULL;
        to->model = to->replaces ? rv_arena_dup(l->arena, rv_str_of(from->model)) : NULL;
        internal->n_given_models = i + 1;
        if (!to->role || (to->replaces && (!to->provider || !to->model)))
            l->rc = RV_E_NOMEM;
    }
}

static int run_steps(struct rv_loader *l, rv_err **err)
{
    static void (*const checks[])(struct rv_loader *) = {
        config_check_stages,    config_check_groups, config_check_work,  config_check_budget,
        config_check_mcp_offer, config_check_names,  config_check_tests,
    };

    keep_given_models(l);
    if (l->opts->model && !(l->p->internal->model = rv_arena_dup(l->arena, rv_str_of(l->opts->model))))
        l->rc = RV_E_NOMEM;
    if (l->rc == 0)
        read_all(l);
    if (l->rc == 0)
        config_decide_planning(l);
    if (l->rc == 0)
        config_resolve_fallbacks(l);
    if (l->rc == 0)
        config_finish_agents(l);
    for (size_t i = 0; i < RV_COUNT(checks) && l->rc == 0 && knows_stages(l); i++)
        checks[i](l);
    if (l->rc == 0)
        l->rc = rv_findings_check(
            l->findings, RV_CODE_ONLY("it fails without memory only; the line below reports that code with the file"));
    if (l->rc < 0)
        return RV_FAIL(err, l->rc, "load pipeline \"%s\"", l->p->file);
    return config_pipeline_link(l->p, err);
}

struct rv_pipeline *config_pipeline_blank(rv_str text, const char *name, const char *dir)
{
    struct rv_pipeline *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->internal = calloc(1, sizeof *p->internal);
    if (p->internal)
        p->internal->arena = rv_arena_new(RV_PIPELINE_MAX_ARENA);
    if (p->internal && p->internal->arena) {
        p->file = rv_arena_dup(p->internal->arena, rv_str_of(name));
        p->dir = rv_arena_dup(p->internal->arena, rv_str_of(dir && dir[0] ? dir : "."));
        p->internal->text = (rv_str){rv_arena_dup(p->internal->arena, text), text.len};
    }
    if (!p->file || !p->dir || !p->internal->text.ptr) {
        rv_pipeline_free(p);
        return NULL;
    }
    return p;
}

/* Where faults of a file go, and how many errors were there before. */
struct reported {
    rv_findings *findings; /* borrowed */
    size_t n_errors_before;
};

/* From the tree of its keys to a pipeline. Takes p. */
static int load_take(struct rv_pipeline *p, const struct rv_node *root, const struct rv_pipeline_opts *opts,
                     struct reported to, struct rv_pipeline **out, rv_err **err)
{
    struct rv_loader l = {.p = p, .opts = opts, .findings = to.findings, .arena = p->internal->arena, .root = root};
    int rc = run_steps(&l, err);

    rv_index_fini(&l.file_index);
    config_prices_free(l.prices);
    if (rc < 0) {
        rv_pipeline_free(p);
        return rc;
    }
    p->is_sound = rv_findings_n_errors(to.findings) == to.n_errors_before;
    *out = p;
    return 0;
}

int rv_pipeline_parse_with(const struct rv_pipeline_source *source, const struct rv_pipeline_opts *opts,
                           rv_findings *findings, struct rv_pipeline **out, rv_err **err)
{
    size_t n_errors_before = rv_findings_n_errors(findings);
    struct rv_pipeline *p = config_pipeline_blank(source->text, source->name, source->dir);
    const struct rv_node *root;

    if (!p)
        return RV_FAIL(err, RV_E_NOMEM, "load pipeline \"%s\"", source->name);
    int rc = rv_yaml_parse(source->text, p->file, findings, &p->internal->doc, err);
    root = rc == 0 && p->internal->doc ? rv_yaml_root(p->internal->doc) : NULL;
    if (root && root->kind == RV_NODE_MAP)
        return load_take(p, root, opts, (struct reported){findings, n_errors_before}, out, err);
    if (rc == 0 && p->internal->doc) {
        struct rv_src src = root ? root->src : (struct rv_src){p->file, 1, 1};
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, "begin with \"name:\" and \"agents:\"",
                        root ? "a pipeline must be a map, not %s" : "the file is empty",
                        root ? rv_node_kind_text(root->kind) : "");
        rc = rv_findings_check(findings, err);
    }
    rv_pipeline_free(p);
    if (rc == 0) /* nothing could be read */
        *out = NULL;
    return rc;
}

int rv_pipeline_load_value(json_object *keys, const char *name, rv_findings *findings, struct rv_pipeline **out,
                           rv_err **err)
{
    static const struct rv_pipeline_opts opts = {0};
    size_t n_errors_before = rv_findings_n_errors(findings);
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);

    rv_json_write(keys, &text);
    int rc = rv_buf_check(&text, "a pipeline", err);
    struct rv_pipeline *p = rc == 0 ? config_pipeline_blank(rv_buf_str(&text), name, ".") : NULL;
    const struct rv_node *root = NULL;
    if (p)
        root = rv_node_of_json(keys, &(struct rv_src){p->file, 1, 1}, p->internal->arena);
    rv_buf_fini(&text);
    if (root)
        return load_take(p, root, &opts, (struct reported){findings, n_errors_before}, out, err);
    rv_pipeline_free(p);
    return rc < 0 ? rc : RV_FAIL(err, RV_E_NOMEM, "load pipeline \"%s\"", name);
}

int rv_pipeline_parse(rv_str text, const char *name, const char *dir, rv_findings *findings, struct rv_pipeline **out,
                      rv_err **err)
{
    const struct rv_pipeline_opts opts = {0};

    return rv_pipeline_parse_with(&(const struct rv_pipeline_source){text, name, dir}, &opts, findings, out, err);
}

int rv_pipeline_load(const char *path, rv_findings *findings, struct rv_pipeline **out, rv_err **err)
{
    const struct rv_pipeline_opts opts = {0};

    return rv_pipeline_load_with(path, &opts, findings, out, err);
}

int rv_pipeline_load_with(const char *path, const struct rv_pipeline_opts *opts, rv_findings *findings,
                          struct rv_pipeline **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    const char *slash = strrchr(path, '/');
    char *dir = slash ? rv_str_dup((rv_str){path, slash == path ? 1 : (size_t)(slash - path)}) : NULL;
    int rc;

    if (slash && !dir)
        return RV_FAIL(err, RV_E_NOMEM, "load pipeline \"%s\"", path);
    rc = rv_file_read(path, &text, err);
    if (rc == 0)
        rc = rv_pipeline_parse_with(&(const struct rv_pipeline_source){rv_buf_str(&text), path, dir ? dir : "."}, opts,
                                    findings, out, err);
    else
        rc = RV_WRAP(err, rc, "load a pipeline"); /* the cause names it */
    rv_buf_fini(&text);
    free(dir);
    return rc;
}

void rv_pipeline_free(struct rv_pipeline *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_agents; i++) {
        for (size_t k = 0; k < p->agents[i].routing.n_rules; k++)
            json_object_put(p->agents[i].routing.rules[k].value);
        json_object_put(p->agents[i].output.schema);
        for (size_t k = 0; k < p->agents[i].tools.n_client; k++)
            json_object_put(p->agents[i].tools.client[k].parameters);
    }
    for (size_t i = 0; i < p->n_models && !(p->internal && p->internal->borrows_models); i++)
        json_object_put(p->models[i].options);
    for (size_t i = 0; i < p->n_capabilities; i++)
        json_object_put(p->capabilities[i].config);
    for (size_t i = 0; i < p->n_mcp_servers; i++) {
        json_object_put(p->mcp_servers[i].env);
        json_object_put(p->mcp_servers[i].headers);
        json_object_put(p->mcp_servers[i].auth);
    }
    for (size_t i = 0; i < p->n_prompts; i++)
        rv_template_free(p->prompts[i].compiled);
    for (size_t i = 0; i < p->n_tests; i++) {
        json_object_put(p->tests[i].input);
        json_object_put(p->tests[i].envelope);
        json_object_put(p->tests[i].expect);
    }
    rv_index_fini(&p->stage_index);
    if (p->internal) {
        for (size_t i = 0; i < p->internal->n_inner; i++)
            rv_pipeline_free(p->internal->inner[i]);
        config_links_fini(&p->internal->links);
        rv_index_fini(&p->internal->edges);
        rv_index_fini(&p->internal->output_index);
        for (size_t i = 0; i < p->internal->n_bound; i++)
            rv_agentdoc_free(p->internal->docs[i]);
        for (const struct rv_owned *o = p->internal->owned; o; o = o->next) {
            rv_expr_free(o->expr);
            rv_template_free(o->template);
            rv_yaml_free(o->doc);
            json_object_put(o->value);
        }
        rv_yaml_free(p->internal->doc);
        rv_arena_free(p->internal->arena);
        free(p->internal);
    }
    free(p);
}
