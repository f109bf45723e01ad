/* The builder of agents: each struct rv_agent is made here, whether a pipeline file, a chat or another agent asks for
 * it.
 *
 * A value comes from the keys of the stage, else from the agent document, else it is the default of the table. The keys
 * are read when the pipeline is loaded (config_agent_build()); stages.c then gives the agent its stage; the document is
 * added last, when agents are bound (config_agent_add_document()). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"
#include "config/models_internal.h"

#define MAX_SYSTEM_BYTES (4 * RV_AGENTDOC_MAX_BYTES) /* of layer 1: the document with its own words around it */

/* --- From keys --- */

/* A declared agent gives its stage a name. */
static void find_name(struct rv_key_reader *r, const struct rv_node *keys, struct rv_agent *a)
{
    const struct rv_node *name = rv_node_get(keys, "name");

    if (name && name->kind == RV_NODE_STR && name->text.len == 0) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &name->src, NULL, "name is required but empty");
    } else if (!name && a->declared.name[0]) {
        a->name = a->declared.name;
        a->places.name = a->places.agent;
    } else if (!name && keys->kind == RV_NODE_MAP && !rv_node_get(keys, "agent")) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &keys->src, "add `name:` with one word", "name is required");
    }
}

static const struct rv_key_word *words_of(const struct rv_key *keys)
{
    return keys == config_agent_table.keys  ? config_agent_words
           : keys == config_rule_table.keys ? config_rule_words
                                            : NULL;
}

void config_agent_build(struct rv_loader *l, const struct rv_node *keys, struct rv_agent *out)
{
    const struct rv_node *name = rv_node_get(keys, "name");
    const struct rv_key_table *table = &config_agent_table;
    struct rv_key_reader r = {.arena = l->arena,
                              .findings = l->findings,
                              .owner_kind = "agent",
                              .user = l,
                              .words = words_of,
                              .page = "pipelines"};

    if (!name)
        name = rv_node_get(keys, "agent");
    r.owner_name = name && name->kind == RV_NODE_STR ? name->text.ptr : NULL;
    out->places.stage = out->places.name = keys->src;
    out->output.state_merge = out->declared.structured = RV_UNSET;
    out->routing.join_of = out->level.fork = RV_TARGET_NONE; /* until its groups are found (groups.c) */
    out->model.system = out->tools.chained = out->routing.default_next = out->routing.error_next = "";
    config_planning_defaults(l, &r, out);
    rv_keys_read(&r, keys, table->keys, table->n_keys, out);
    out->has_llm = out->has_llm || out->declared.name[0];
    out->session.joins = out->session.joins && out->declared.name[0];
    out->has_tools = out->has_tools || (out->has_llm && out->tools.n_client > 0);
    find_name(&r, keys, out);
    if (r.rc < 0)
        l->rc = r.rc;
}

/* --- From its document --- */

struct declaration {
    struct rv_loader *l;
    struct rv_agent *a;
    const struct rv_agentdoc *doc;
    const struct rv_node *keys; /* of the stage; NULL: none */
};

static void finding(const struct declaration *d, enum rv_severity severity, const struct rv_src *src, const char *hint,
                    const char *text)
{
    rv_findings_add(d->l->findings, severity, src, hint, "agent \"%s\": %s", d->a->name, text);
}

/* What a call about the document answered. */
static void take_rc(const struct declaration *d, int rc, rv_err *err)
{
    if (rc == RV_E_NOMEM)
        d->l->rc = rc;
    else if (rc < 0)
        rv_findings_add_err(d->l->findings, RV_SEVERITY_ERROR, &d->doc->src, err);
    rv_err_free(err);
}

static void set_system(const struct declaration *d)
{
    rv_buf text = RV_BUF_INIT(MAX_SYSTEM_BYTES);
    rv_err *err = NULL;
    int rc = rv_agentdoc_write_prompt(d->doc, d->a->declared.structured, &text, &err);

    if (rc == 0)
        rc = rv_buf_check(&text, "prompt", &err);
    take_rc(d, rc, err);
    if (rc == 0 && text.len > 0 && !(d->a->model.system = rv_arena_dup(d->l->arena, rv_buf_str(&text))))
        d->l->rc = RV_E_NOMEM;
    rv_buf_fini(&text);
}

static void set_output(const struct declaration *d)
{
    struct rv_agent *a = d->a;
    rv_err *err = NULL;

    if (!a->output.schema) {
        int rc = rv_agentdoc_build_output_schema(d->doc, a->declared.structured, &a->output.schema, &err);
        take_rc(d, rc, err);
    }
    a->output.mode = a->output.schema ? RV_OUTPUT_JSON : RV_OUTPUT_TEXT;
    if (a->output.schema && a->output.via == RV_OUTPUT_VIA_AUTO)
        a->output.via = RV_OUTPUT_VIA_TOOL;
    else if (!a->output.schema && a->output.via != RV_OUTPUT_VIA_AUTO)
        finding(d, RV_SEVERITY_WARNING, &a->places.output_via, "write structured_output: true, or leave it out",
                "output_via says how to come to an output that nothing describes");
}

/* A text output is not a map, so a tool cannot take it. */
static void set_chain(const struct declaration *d)
{
    if (!d->doc->chained_tool)
        return;
    if (d->a->output.schema) {
        d->a->tools.chained = d->doc->chained_tool;
        d->a->tools.chained_map = d->doc->chained_map;
    } else {
        finding(d, RV_SEVERITY_WARNING, &d->doc->chained_src, "set structured_output and properties",
                "its chained_tool is never called, since its output is not structured");
    }
}

/* --- Tools --- */

static bool has_name(const struct rv_str_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i], name) == 0)
            return true;
    return false;
}

/* A tool that is not to be had is an error, never left out in silence (p8 W12). Asking another agent is the engine's
 * own, whichever server a document from elsewhere gives it (p8 7.1). */
static void check_tool(const struct declaration *d, const struct rv_agentdoc_tool *tool)
{
    if (strcmp(tool->name, RV_TOOL_ASK_AGENT) == 0)
        return;
    if (tool->server && !rv_pipeline_find_mcp_server(d->l->p, tool->server))
        rv_findings_add(d->l->findings, RV_SEVERITY_ERROR, &tool->src,
                        "add it to mcp_servers of the pipeline, leave server out for a tool of a capability, or take "
                        "the tool out",
                        "agent \"%s\": tool \"%s\": no server \"%s\" is configured", d->a->name, tool->name,
                        tool->server);
}

/* By what a stage calls it: a tool of an MCP server of the pipeline by both names, so that no other tool is meant. */
static const char *name_of(const struct declaration *d, const struct rv_agentdoc_tool *tool)
{
    if (!tool->server || !rv_pipeline_find_mcp_server(d->l->p, tool->server) ||
        strcmp(tool->name, RV_TOOL_ASK_AGENT) == 0)
        return tool->name;
    size_t len = strlen(tool->server) + strlen(tool->name) + 2;
    char *name = config_loader_array(d->l, len, 1);
    if (!name)
        return tool->name; /* out of memory, recorded */
    snprintf(name, len, "%s.%s", tool->server, tool->name);
    return name;
}

const char *rv_agent_callee(const struct rv_agent *a, const char *tool)
{
    return a->declared.doc && rv_agentdoc_find_resource(a->declared.doc, tool) ? RV_TOOL_READ_RESOURCE : tool;
}

static void set_tools(const struct declaration *d)
{
    struct rv_str_list *list = &d->a->tools.allowed;
    bool is_own = list->is_set;

    if (!is_own) {
        list->items = config_loader_array(d->l, d->doc->n_tools, sizeof *list->items);
        list->srcs = config_loader_array(d->l, d->doc->n_tools, sizeof *list->srcs);
        if (!list->items || !list->srcs)
            return;
        list->is_set = true;
    }
    for (size_t i = 0; i < d->a->tools.n_client; i++)
        if (rv_agentdoc_names_tool(d->doc, d->a->tools.client[i].name))
            finding(d, RV_SEVERITY_ERROR, &d->a->tools.client[i].src, "choose another name",
                    "client_tools has a tool that is called like one of its own");
    for (size_t i = 0; i < d->doc->n_tools; i++) {
        const struct rv_agentdoc_tool *tool = &d->doc->tools[i];
        const char *name = name_of(d, tool);
        bool is_there = has_name(list, name);

        if (is_own ? is_there : !is_there)
            check_tool(d, tool);
        if (is_own || is_there)
            continue;
        list->items[list->n] = name;
        list->srcs[list->n++] = tool->src;
    }
    d->a->has_tools = list->n > 0 || d->a->tools.n_client > 0;
    if (d->a->tools.access == RV_UNSET)
        d->a->tools.access = RV_ACCESS_ALL;
}

/* --- Limits --- */

static void put_if_unset(int64_t *limit, int64_t value)
{
    if (*limit == 0)
        *limit = value;
}

/* These limits apply however the agent is run; a limit that is not set has a default (p8 W2, W3). */
static void set_limits(const struct declaration *d)
{
    struct rv_llm_limits *own = &d->a->limits.llm;
    const struct rv_agentdoc_limits *said = &d->doc->limits;
    const struct rv_execution_config *all = &d->l->p->execution;
    int64_t cap = d->doc->max_iterations;

    put_if_unset(&own->request_limit,
                 cap > 0 && (said->request_limit == 0 || cap < said->request_limit) ? cap : said->request_limit);
    put_if_unset(&own->request_limit, all->agent_request_limit);
    put_if_unset(&own->tool_calls_limit, said->tool_calls_limit);
    put_if_unset(&own->input_tokens_limit, said->input_tokens_limit);
    put_if_unset(&own->output_tokens_limit, said->output_tokens_limit);
    put_if_unset(&own->total_tokens_limit, said->total_tokens_limit);
    put_if_unset(&own->total_tokens_limit, all->agent_token_limit);
    if (!rv_node_get(d->keys, "max_rounds") && d->a->limits.max_rounds < own->request_limit)
        d->a->limits.max_rounds = own->request_limit; /* or it would end the visit first */
    if (!d->a->model.has_temperature && !d->a->model.no_temperature && d->doc->has_temperature) {
        d->a->model.has_temperature = true;
        d->a->model.temperature = d->doc->temperature;
    }
    if (!d->a->model.has_max_tokens && d->doc->max_tokens > 0) {
        d->a->model.has_max_tokens = true;
        d->a->model.max_tokens = d->doc->max_tokens;
    }
}

/* --- Model --- */

static void set_model(const struct declaration *d, const char *default_role)
{
    struct rv_agent *a = d->a;
    const struct rv_pipeline *p = d->l->p;
    const struct rv_src *src = a->places.agent.line > 0 ? &a->places.agent : &d->doc->name_src;

    if (d->doc->model && (d->doc->model_overrides || !a->model.role[0])) {
        a->model.role = config_declare_model(d->l, a->declared.name, d->doc);
        a->places.model_role = d->doc->model_src;
        if (!a->model.role)
            a->model.role = "";
    } else if (!a->model.role[0]) {
        a->model.role = default_role;
        if (p->internal->has_models && !rv_pipeline_find_model(p, rv_str_of(default_role)) &&
            !config_is_dropped_role(p, default_role))
            rv_findings_add(d->l->findings, RV_SEVERITY_ERROR, src, "write model_role: ROLE, or model in its document",
                            "agent \"%s\": it has no model: its document names none, and models has no role \"%s\"",
                            a->name, default_role);
    }
}

void config_agent_add_document(struct rv_loader *l, struct rv_agent *a, const struct rv_agentdoc *doc,
                               const struct rv_node *keys, const char *default_role)
{
    const struct declaration d = {l, a, doc, keys};
    static void (*const steps[])(const struct declaration *) = {set_system, set_output, set_chain, set_tools,
                                                                set_limits};

    for (size_t i = 0; i < RV_COUNT(steps) && l->rc == 0; i++)
        steps[i](&d);
    if (l->rc == 0)
        set_model(&d, default_role);
    a->declared.doc = doc;
}

/* --- Binding: stages that name a declared agent become what its document says --- */

struct binding {
    struct rv_loader l;
    const struct rv_agent_source *source;
    rv_index names; /* of agents: their place among the bound ones */
    size_t n_bytes; /* of all documents so far */
    bool is_in_budget;
};

static size_t count_unbound(const struct rv_pipeline *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_agents; i++)
        n += rv_agent_is_unbound(&p->agents[i]);
    return n;
}

/* Room for every document that is missing. */
static void reserve(struct binding *b, size_t n_more)
{
    struct rv_pipeline_internal *internal = b->l.p->internal;
    struct rv_bound_agent *bound = config_loader_array(&b->l, internal->n_bound + n_more, sizeof *bound);
    struct rv_agentdoc **docs = config_loader_array(&b->l, internal->n_bound + n_more, sizeof *docs);

    if (!bound || !docs)
        return;
    for (size_t i = 0; i < internal->n_bound && b->l.rc == 0; i++) {
        bound[i] = internal->bound[i];
        docs[i] = internal->docs[i];
        b->n_bytes += bound[i].text.len;
        b->l.rc = rv_index_add(&b->names, rv_str_of(bound[i].name), (int)i);
    }
    if (b->l.rc < 0)
        return;
    internal->bound = bound;
    internal->docs = docs;
    config_reserve_models(&b->l, b->l.p, n_more);
}

/* What the source says is wrong is said at the stage, or where the source has a place for it. */
static int not_found(struct binding *b, const struct rv_agent *a, int rc, rv_err *cause, rv_err **err)
{
    rc = RV_WRAP(&cause, rc, "agent \"%s\"", a->name);
    if (rc != RV_E_NOT_FOUND && rc != RV_E_INVALID) {
        rv_err_pass(err, cause);
        return rc;
    }
    rv_findings_add_err(b->l.findings, RV_SEVERITY_ERROR, &a->places.agent, cause);
    rv_err_free(cause);
    return 0;
}

/* A document says itself what it is called; by that name others ask for it. */
static void check_name(struct binding *b, const struct rv_agent *a, const struct rv_agentdoc *doc)
{
    if (doc->name[0] && strcmp(doc->name, a->declared.name) != 0)
        rv_findings_add(b->l.findings, RV_SEVERITY_ERROR, &doc->name_src, NULL,
                        "agent \"%s\": the document is of agent \"%s\", not of \"%s\"", a->name, doc->name,
                        a->declared.name);
}

/* Ask for a document and keep it. *at: its place among the bound ones; -1: there is none, which is a finding. */
static int find(struct binding *b, const struct rv_agent *a, int *at, rv_err **err)
{
    struct rv_pipeline_internal *internal = b->l.p->internal;
    struct rv_bound_agent bound = {.name = a->declared.name};
    struct rv_agentdoc *doc = NULL;
    rv_err *cause = NULL;
    int rc = b->source->find(b->source->self, a->declared.name, &bound.text, &bound.place, &cause);

    *at = -1;
    if (rc < 0)
        return not_found(b, a, rc, cause, err);
    b->n_bytes += bound.text.len;
    if (b->n_bytes > RV_MAX_FILE_TOTAL_BYTES) {
        rv_findings_add(b->l.findings, RV_SEVERITY_ERROR, &a->places.agent, NULL,
                        "agent \"%s\": all agent documents together exceed %zu bytes", a->name,
                        RV_MAX_FILE_TOTAL_BYTES);
        return 0;
    }
    bound.place = rv_arena_dup(b->l.arena, rv_str_of(bound.place ? bound.place : a->declared.name));
    if (!bound.place)
        return RV_FAIL(err, RV_E_NOMEM, "keep agent \"%s\"", a->declared.name);
    rc = rv_agentdoc_parse(bound.text, bound.place, b->l.findings, &doc, &cause);
    if (rc < 0)
        return not_found(b, a, rc == RV_E_LIMIT ? RV_E_INVALID : rc, cause, err);
    internal->docs[internal->n_bound] = doc; /* from here on the pipeline's */
    internal->n_bound++;
    bound.text.ptr = rv_arena_dup(b->l.arena, bound.text);
    internal->bound[internal->n_bound - 1] = bound;
    rc = bound.text.ptr ? rv_index_add(&b->names, rv_str_of(bound.name), (int)internal->n_bound - 1) : RV_E_NOMEM;
    if (rc < 0)
        return RV_FAIL(err, rc, "keep agent \"%s\"", a->declared.name);
    if (doc)
        check_name(b, a, doc);
    *at = (int)internal->n_bound - 1;
    return 0;
}

static int bind_stage(struct binding *b, struct rv_agent *a, rv_err **err)
{
    const struct rv_pipeline_internal *internal = b->l.p->internal;
    int at = rv_index_get(&b->names, rv_str_of(a->declared.name)), rc = 0;

    if (at < 0)
        rc = find(b, a, &at, err);
    if (rc == 0 && at >= 0 && internal->docs[at])
        config_agent_add_document(&b->l, a, internal->docs[at],
                                  internal->agent_nodes ? internal->agent_nodes[a->index] : NULL, "default");
    if (rc == 0 && b->l.rc < 0)
        rc = RV_FAIL(err, b->l.rc, "bind agent \"%s\"", a->declared.name);
    return rc;
}

static int bind_all(struct binding *b, rv_err **err)
{
    struct rv_pipeline *p = b->l.p;
    size_t n = count_unbound(p);
    bool *known;
    int rc = 0;

    if (n == 0)
        return 0;
    known = config_loader_array(&b->l, p->n_models + n, sizeof *known);
    if (known)
        rv_pipeline_mark_used_models(p, known);
    if (b->l.rc == 0)
        reserve(b, n);
    if (b->l.rc < 0)
        return RV_FAIL(err, b->l.rc, "make room for %zu agents", n);
    for (size_t i = 0; i < p->n_agents && rc == 0; i++)
        if (rv_agent_is_unbound(&p->agents[i]) && rv_agentdoc_is_name(rv_str_of(p->agents[i].declared.name)))
            rc = bind_stage(b, &p->agents[i], err);
    if (rc < 0)
        return rc;
    config_check_prices(&b->l, p, b->is_in_budget, known);
    if (b->l.rc < 0)
        return RV_FAIL(err, b->l.rc, "check the budget");
    return rv_findings_check(b->l.findings, err);
}

/* is_in_budget: a pipeline that runs this one has a budget. */
static int bind_pipeline(struct rv_pipeline *p, const struct rv_agent_source *source, bool is_in_budget,
                         rv_findings *findings, rv_err **err)
{
    static const struct rv_pipeline_opts opts = {0};
    struct binding b = {.l = {.p = p, .arena = p->internal->arena, .findings = findings, .opts = &opts},
                        .source = source,
                        .is_in_budget = is_in_budget};
    size_t n_before = rv_findings_n_errors(findings);
    int rc = bind_all(&b, err);

    config_prices_free(b.l.prices);
    rv_index_fini(&b.names);
    if (rc < 0 || rv_findings_n_errors(findings) > n_before)
        p->is_sound = false;
    return rc < 0 ? RV_WRAP(err, rc, "bind the agents of pipeline \"%s\"", p->file) : 0;
}

int rv_pipeline_bind_agents(struct rv_pipeline *p, const struct rv_agent_source *source, rv_findings *findings,
                            rv_err **err)
{
    size_t n = p->internal->n_inner;
    bool *is_in_budget = calloc(n + 1, sizeof *is_in_budget);
    int rc = is_in_budget ? bind_pipeline(p, source, false, findings, err)
                          : RV_FAIL(err, RV_E_NOMEM, "bind the agents of pipeline \"%s\"", p->file);

    if (is_in_budget)
        config_mark_in_budget(p, is_in_budget);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = bind_pipeline(p->internal->inner[i], source, is_in_budget[i], findings, err);
        p->is_sound = p->is_sound && p->internal->inner[i]->is_sound;
    }
    p->is_sound = p->is_sound && rc == 0;
    free(is_in_budget);
    return rc;
}

const struct rv_bound_agent *rv_pipeline_bound_agents(const struct rv_pipeline *p, size_t *n)
{
    *n = p->internal->n_bound;
    return p->internal->bound;
}
