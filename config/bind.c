/* Binding: stages that name a declared agent become what its document says. */
#include <string.h>

#include "config/models_internal.h"

struct binding {
    struct rv_loader l;
    const struct rv_agent_source *source;
    rv_index names; /* of agents: their place among the bound ones */
    size_t n_bytes; /* of all documents so far */
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
    struct rv_pipeline_private *private = b->l.p->private;
    struct rv_bound_agent *bound = rv_loader_array(&b->l, private->n_bound + n_more, sizeof *bound);
    struct rv_agentdoc **docs = rv_loader_array(&b->l, private->n_bound + n_more, sizeof *docs);

    if (!bound || !docs)
        return;
    for (size_t i = 0; i < private->n_bound && b->l.rc == 0; i++) {
        bound[i] = private->bound[i];
        docs[i] = private->docs[i];
        b->n_bytes += bound[i].text.len;
        b->l.rc = rv_index_add(&b->names, rv_str_of(bound[i].name), (int)i);
    }
    if (b->l.rc < 0)
        return;
    private->bound = bound;
    private->docs = docs;
    rv_reserve_models(&b->l, b->l.p, n_more);
}

/* What the source says is wrong is said at the stage, or where the source has a place for it. */
static int not_found(struct binding *b, const struct rv_agent *a, int rc, rv_err *cause, rv_err **err)
{
    rc = RV_WRAP(&cause, rc, "agent \"%s\"", a->name);
    if (rc != RV_E_NOT_FOUND && rc != RV_E_INVALID) {
        *err = cause;
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
    struct rv_pipeline_private *private = b->l.p->private;
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
    private->docs[private->n_bound] = doc; /* from here on the pipeline's */
    private->n_bound++;
    bound.text.ptr = rv_arena_dup(b->l.arena, bound.text);
    private->bound[private->n_bound - 1] = bound;
    rc = bound.text.ptr ? rv_index_add(&b->names, rv_str_of(bound.name), (int)private->n_bound - 1) : RV_E_NOMEM;
    if (rc < 0)
        return RV_FAIL(err, rc, "keep agent \"%s\"", a->declared.name);
    if (doc)
        check_name(b, a, doc);
    *at = (int)private->n_bound - 1;
    return 0;
}

static int bind_stage(struct binding *b, struct rv_agent *a, rv_err **err)
{
    const struct rv_pipeline_private *private = b->l.p->private;
    int at = rv_index_get(&b->names, rv_str_of(a->declared.name)), rc = 0;

    if (at < 0)
        rc = find(b, a, &at, err);
    if (rc == 0 && at >= 0 && private->docs[at])
        rv_agent_add_document(&b->l, a, private->docs[at], private->agent_nodes ? private->agent_nodes[a->index] : NULL,
                              "default");
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
    known = rv_loader_array(&b->l, p->n_models + n, sizeof *known);
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
    rv_check_more_budget(&b->l, known);
    if (b->l.rc < 0)
        return RV_FAIL(err, b->l.rc, "check the budget");
    return rv_findings_check(b->l.findings, err);
}

int rv_pipeline_bind_agents(struct rv_pipeline *p, const struct rv_agent_source *source, rv_findings *findings,
                            rv_err **err)
{
    static const struct rv_pipeline_opts opts = {0};
    struct binding b = {.l = {.p = p, .arena = p->private->arena, .findings = findings, .opts = &opts},
                        .source = source};
    size_t n_before = rv_findings_n_errors(findings);
    int rc = bind_all(&b, err);

    rv_prices_free(b.l.prices);
    rv_index_fini(&b.names);
    if (rc < 0 || rv_findings_n_errors(findings) > n_before)
        p->is_sound = false;
    return rc < 0 ? RV_WRAP(err, rc, "bind the agents of pipeline \"%s\"", p->file) : 0;
}

const struct rv_bound_agent *rv_pipeline_bound_agents(const struct rv_pipeline *p, size_t *n)
{
    *n = p->private->n_bound;
    return p->private->bound;
}
