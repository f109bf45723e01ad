/* An agent that another one asks, as a pipeline of one stage. What it is made from is in its arguments alone: the same
 * document below the same pipeline gives the same one, wherever and whenever. */
#include <string.h>

#include "config/config_internal.h"

#define DELEGATE_SECONDS 86400 /* the call that asks sets a deadline, which may be later than that of the pipeline */

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
    p->private->borrows_models = true;
}

/* The keys of its stage. Its rows go with the call by which it was asked, so it joins no session. */
static int make_keys(const struct rv_delegate *d, json_object **out, rv_err **err)
{
    json_object *keys = json_object_new_object();
    int rc = keys ? rv_json_set_text(keys, "agent", d->name, err) : RV_FAIL(err, RV_E_NOMEM, "make the stage");

    if (rc == 0)
        rc = rv_json_set_bool(keys, "joins_session", false, err);
    if (rc == 0 && d->structured != RV_UNSET)
        rc = rv_json_set_bool(keys, "structured_output", d->structured, err);
    if (rc == 0 && d->child_text != RV_UNSET)
        rc = rv_json_set_text(keys, "child_text", rv_child_text_text(d->child_text), err);
    if (rc < 0)
        json_object_put(keys);
    else
        *out = keys;
    return rc;
}

static void build_stage(struct rv_loader *l, const struct rv_delegate *d)
{
    static const struct rv_src nowhere = {0};
    struct rv_agent *a = rv_loader_array(l, 1, sizeof *a);
    json_object *keys = NULL;
    const struct rv_node *node = NULL;

    if (a && make_keys(d, &keys, NULL) == 0)
        node = rv_node_of_json(keys, &nowhere, l->arena);
    json_object_put(keys);
    if (!node) {
        l->rc = RV_E_NOMEM;
        return;
    }
    rv_agent_build(l, node, a);
    l->p->agents = a;
    l->p->n_agents = 1;
    if (l->rc == 0)
        rv_finish_agents(l);
}

static void keep_document(struct rv_loader *l, struct rv_agentdoc *doc)
{
    struct rv_pipeline_private *private = l->p->private;
    struct rv_bound_agent *bound = rv_loader_array(l, 1, sizeof *bound);
    struct rv_agentdoc **docs = rv_loader_array(l, 1, sizeof *docs);

    if (!bound || !docs) {
        rv_agentdoc_free(doc);
        return;
    }
    docs[0] = doc;
    *bound = (struct rv_bound_agent){l->p->name, l->p->file, private->text};
    private->docs = docs;
    private->bound = bound;
    private->n_bound = 1;
}

static int make(struct rv_loader *l, const struct rv_pipeline *of, const struct rv_delegate *d, rv_err **err)
{
    struct rv_agentdoc *doc = NULL;
    const char *role = d->model_role && d->model_role[0] ? d->model_role : "default";
    int rc = rv_agentdoc_parse(d->document, d->name, l->findings, &doc, err);

    if (rc < 0)
        return rc;
    if (doc)
        keep_document(l, doc);
    take_over(l->p, of);
    if (l->rc == 0)
        rv_reserve_models(l, of, 1);
    if (l->rc == 0)
        build_stage(l, d);
    if (l->rc == 0 && doc)
        rv_agent_add_document(l, &l->p->agents[0], doc, NULL, role);
    if (l->rc == 0)
        rv_check_budget(l);
    if (l->rc < 0)
        return RV_FAIL(err, l->rc, "make the stage");
    rc = rv_findings_first_error(l->findings, err);
    if (rc == 0 && !doc)
        rc = RV_FAIL(err, RV_E_INVALID, "the document is no agent");
    return rc < 0 ? rc : rv_pipeline_link(l->p, err);
}

int rv_pipeline_delegate(const struct rv_pipeline *of, const struct rv_delegate *d, struct rv_pipeline **out,
                         rv_err **err)
{
    static const struct rv_pipeline_opts opts = {.offline = true};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = rv_pipeline_blank(d->document, d->name, of->dir);
    struct rv_loader l = {.p = p, .findings = findings, .opts = &opts};
    int rc;

    if (findings && p) {
        l.arena = p->private->arena;
        rc = make(&l, of, d, err);
    } else {
        rc = RV_FAIL(err, RV_E_NOMEM, "make the stage");
    }
    rv_findings_free(findings);
    if (rc < 0) {
        rv_pipeline_free(p);
        return RV_WRAP(err, rc, "agent \"%s\"", d->name);
    }
    p->is_sound = true;
    *out = p;
    return 0;
}
