/* A pipeline of one stage, `agent: NAME`, that a program makes of an agent document. A chat has models and limits of
 * its own; an agent that another one asks borrows those of the pipeline it works in. What it is made from is in the
 * arguments alone: the same arguments give the same pipeline. */
#include <string.h>

#include "config/config_internal.h"

#define DELEGATE_SECONDS 86400 /* the call that asks sets a deadline, which may be later than that of the pipeline */
#define MAX_MODEL_NAME   4096  /* bytes of "provider:model"; a longer name is an error */

/* --- Its keys, as a file would have them --- */

static void build_double(struct rv_json_build *b, json_object *to, const char *key, double d)
{
    rv_json_build(b, to, key, b->rc < 0 ? NULL : rv_json_new_double(d));
}

static void build_model(struct rv_json_build *b, json_object *models, const struct rv_agent_model_role *m)
{
    json_object *keys = rv_json_build(b, models, m->role, json_object_new_object());
    rv_buf name = RV_BUF_INIT(MAX_MODEL_NAME);

    rv_buf_printf(&name, "%s%s", strchr(m->model, ':') ? "" : "openai:", m->model);
    if (b->rc == 0)
        b->rc = rv_buf_check(&name, "the name of a model", b->err);
    rv_json_build_text(b, keys, "model", rv_buf_cstr(&name));
    rv_buf_fini(&name);
    if (m->has_temperature)
        build_double(b, keys, "temperature", m->temperature);
    if (m->max_tokens > 0)
        rv_json_build_int(b, keys, "max_tokens", m->max_tokens);
}

/* What a pipeline says that borrows nothing. */
static void build_own(struct rv_json_build *b, json_object *p, const struct rv_agent_pipeline *from)
{
    json_object *list = rv_json_build(b, p, "capabilities", json_object_new_array());

    for (size_t i = 0; i < from->n_capabilities && b->rc == 0; i++)
        rv_json_build_text(b, list, NULL, from->capabilities[i]);
    list = rv_json_build(b, p, "models", json_object_new_object());
    for (size_t i = 0; i < from->n_models && b->rc == 0; i++)
        build_model(b, list, &from->models[i]);
    if (from->max_llm_calls > 0)
        rv_json_build_int(b, p, "max_llm_calls", from->max_llm_calls);
    if (from->agent_request_limit == 0 && from->agent_token_limit == 0 && !from->has_seed)
        return;
    list = rv_json_build(b, p, "execution", json_object_new_object());
    if (from->agent_request_limit > 0)
        rv_json_build_int(b, list, "agent_request_limit", from->agent_request_limit);
    if (from->agent_token_limit > 0)
        rv_json_build_int(b, list, "agent_token_limit", from->agent_token_limit);
    if (from->has_seed)
        rv_json_build_int(b, list, "llm_seed", from->seed);
}

static void build_stage(struct rv_json_build *b, json_object *stages, const struct rv_agent_pipeline *from)
{
    json_object *stage = rv_json_build(b, stages, NULL, json_object_new_object());

    rv_json_build_text(b, stage, "agent", from->agent);
    if (from->no_session)
        rv_json_build(b, stage, "joins_session", json_object_new_boolean(false));
    if (from->structured != RV_UNSET)
        rv_json_build(b, stage, "structured_output", json_object_new_boolean(from->structured));
    if (from->child_text != RV_UNSET)
        rv_json_build_text(b, stage, "child_text", rv_child_text_text(from->child_text));
    if (from->role && from->role[0])
        rv_json_build_text(b, stage, "model_role", from->role);
    if (from->has_temperature)
        build_double(b, stage, "temperature", from->temperature);
    if (from->max_tokens > 0)
        rv_json_build_int(b, stage, "max_tokens", from->max_tokens);
    if (from->client_tools)
        rv_json_build(b, stage, "client_tools", json_object_get(from->client_tools));
    if (from->requires_tool)
        rv_json_build_text(b, stage, "tool_choice", "required");
    if (from->output_schema)
        rv_json_build(b, stage, "output_schema", json_object_get(from->output_schema));
    if (from->attachments) {
        json_object *list = rv_json_build(b, stage, "attachments", json_object_new_array());
        rv_json_build_text(b, list, NULL, from->attachments);
    }
}

static int make_keys(const struct rv_agent_pipeline *from, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *p = json_object_new_object();

    if (!p)
        return RV_FAIL(err, RV_E_NOMEM, "make the pipeline of an agent");
    rv_json_build_text(&b, p, "name", from->agent);
    if (!from->of)
        build_own(&b, p, from);
    build_stage(&b, rv_json_build(&b, p, "agents", json_object_new_array()), from);
    if (b.rc < 0) {
        json_object_put(p);
        return RV_WRAP(err, b.rc, "make the pipeline of an agent");
    }
    *out = p;
    return 0;
}

/* --- With models of its own: as a file of these keys --- */

static int find(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    const struct rv_agent_pipeline *from = self;

    (void)name;
    (void)err;
    *text = from->document;
    *place = from->place ? from->place : from->agent;
    return 0;
}

static int make_own(const struct rv_agent_pipeline *from, json_object *keys, rv_findings *findings,
                    struct rv_pipeline **out, rv_err **err)
{
    const struct rv_agent_source source = {find, (void *)(uintptr_t)from};
    int rc = rv_pipeline_load_value(keys, from->file ? from->file : from->agent, findings, out, err);

    return rc == 0 && *out ? rv_pipeline_bind_agents(*out, &source, findings, err) : rc;
}

/* --- Below another pipeline --- */

/* Bounds, money and times are those of the run that it is a part of. */
static void take_over(struct rv_pipeline *p, const struct rv_pipeline *of)
{
    p->name = p->file;
    p->description = "";
    p->default_run_mode = RV_MODE_SEQUENTIAL;
    p->max_iterations = of->max_iterations;
    p->max_llm_calls = of->max_llm_calls;
    p->max_agent_hops = of->max_agent_hops;
    p->clarification_resume_stage = p->confirmation_resume_stage = "";
    p->agent_review_resume_stage = p->agent_review_reject_stage = "";
    p->has_budget = of->has_budget;
    p->budget_micro_usd = of->budget_micro_usd;
    p->budget_src = of->budget_src;
    p->execution = of->execution;
    p->schema_dir = of->schema_dir;
    p->max_delegation_depth = of->max_delegation_depth;
    p->max_delegation_repeats = of->max_delegation_repeats;
    p->child_text = of->child_text;
    p->delegation_timeout_ms = of->delegation_timeout_ms;
    p->default_timeout_seconds = DELEGATE_SECONDS;
    p->internal->borrows_models = true;
}

static void make_stage(struct rv_loader *l, json_object *keys)
{
    static const struct rv_src nowhere = {0};
    json_object *stages = rv_json_get_arr(keys, "agents");
    struct rv_agent *a = config_loader_array(l, 1, sizeof *a);
    const struct rv_node *node = a ? rv_node_of_json(json_object_array_get_idx(stages, 0), &nowhere, l->arena) : NULL;

    if (!node) {
        l->rc = RV_E_NOMEM;
        return;
    }
    config_agent_build(l, node, a);
    l->p->agents = a;
    l->p->n_agents = 1;
    if (l->rc == 0)
        config_finish_agents(l);
}

static void keep_document(struct rv_loader *l, struct rv_agentdoc *doc)
{
    struct rv_pipeline_internal *internal = l->p->internal;
    struct rv_bound_agent *bound = config_loader_array(l, 1, sizeof *bound);
    struct rv_agentdoc **docs = config_loader_array(l, 1, sizeof *docs);

    if (!bound || !docs) {
        rv_agentdoc_free(doc);
        return;
    }
    docs[0] = doc;
    *bound = (struct rv_bound_agent){l->p->name, l->p->file, internal->text};
    internal->docs = docs;
    internal->bound = bound;
    internal->n_bound = 1;
}

static int run_steps(struct rv_loader *l, const struct rv_agent_pipeline *from, json_object *keys, rv_err **err)
{
    const char *role = from->default_role && from->default_role[0] ? from->default_role : "default";
    struct rv_agentdoc *doc = NULL;
    int rc = rv_agentdoc_parse(from->document, from->place ? from->place : from->agent, l->findings, &doc, err);

    if (rc < 0)
        return rc;
    if (doc)
        keep_document(l, doc);
    take_over(l->p, from->of);
    if (l->rc == 0)
        config_reserve_models(l, from->of, 1);
    if (l->rc == 0)
        make_stage(l, keys);
    if (l->rc == 0 && doc)
        config_agent_add_document(l, &l->p->agents[0], doc, NULL, role);
    if (l->rc == 0)
        config_check_budget(l);
    if (l->rc == 0)
        l->rc = rv_findings_check(
            l->findings, RV_CODE_ONLY("it fails without memory only; the caller gets that code and says what it made"));
    return l->rc < 0 ? RV_FAIL(err, l->rc, "make the stage") : config_pipeline_link(l->p, err);
}

static int make_below(const struct rv_agent_pipeline *from, json_object *keys, rv_findings *findings,
                      struct rv_pipeline **out, rv_err **err)
{
    static const struct rv_pipeline_opts opts = {.offline = true};
    size_t n_before = rv_findings_n_errors(findings);
    struct rv_pipeline *p = config_pipeline_blank(from->document, from->file ? from->file : from->agent, from->of->dir);
    struct rv_loader l = {.p = p, .findings = findings, .opts = &opts};

    if (!p)
        return RV_FAIL(err, RV_E_NOMEM, "make the stage");
    l.arena = p->internal->arena;
    int rc = run_steps(&l, from, keys, err);
    p->is_sound = rc == 0 && rv_findings_n_errors(findings) == n_before;
    *out = p;
    return rc;
}

int rv_pipeline_build_agent(const struct rv_agent_pipeline *from, rv_findings *findings, struct rv_pipeline **out,
                            rv_err **err)
{
    struct rv_pipeline *p = NULL;
    json_object *keys = NULL;
    int rc = make_keys(from, &keys, err);

    if (rc == 0)
        rc = (from->of ? make_below : make_own)(from, keys, findings, &p, err);
    json_object_put(keys);
    if (rc < 0)
        rv_pipeline_free(p);
    else
        *out = p;
    return rc;
}

int rv_pipeline_delegate(const struct rv_pipeline *of, const struct rv_delegate *d, struct rv_pipeline **out,
                         rv_err **err)
{
    const struct rv_agent_pipeline from = {.agent = d->name,
                                           .document = d->document,
                                           .no_session = true,
                                           .structured = d->structured,
                                           .child_text = d->child_text,
                                           .default_role = d->model_role,
                                           .of = of};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    int rc = findings ? rv_pipeline_build_agent(&from, findings, &p, err) : RV_FAIL(err, RV_E_NOMEM, "make the stage");

    if (rc == 0 && !p->is_sound)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc < 0)
        rv_pipeline_free(p);
    else
        *out = p;
    rv_findings_free(findings);
    return rc < 0 ? RV_WRAP(err, rc, "agent \"%s\"", d->name) : 0;
}
