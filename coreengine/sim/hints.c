/* What a pipeline looks at: required fields, conditions of rules, paths in expressions and prompts, and which outputs
 * are plans. Made-up outputs have these fields, with values around the constants they are compared with. */
#include "coreengine/sim/sim_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

static bool same_path(const struct sim_field *f, const rv_str *path, size_t n)
{
    if (f->n_path != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!rv_str_is(path[i], f->path[i]))
            return false;
    return true;
}

struct sim_field *sim_hints_field(struct sim_shape *shape, const rv_str *path, size_t n_path)
{
    n_path = n_path > SIM_PATH_MAX ? SIM_PATH_MAX : n_path;
    for (size_t i = 0; i < shape->n_fields; i++)
        if (same_path(&shape->fields[i], path, n_path))
            return &shape->fields[i];
    if (shape->n_fields == shape->cap) {
        size_t cap = shape->cap ? shape->cap * 2 : 8;
        struct sim_field *fields = realloc(shape->fields, cap * sizeof *fields);
        if (!fields)
            return NULL;
        shape->fields = fields;
        shape->cap = cap;
    }
    struct sim_field *f = &shape->fields[shape->n_fields];
    *f = (struct sim_field){.n_path = n_path, .values = json_object_new_array()};
    shape->n_fields++; /* its owner frees it, whole or not */
    for (size_t i = 0; i < n_path; i++)
        if (!(f->path[i] = rv_str_dup(path[i])))
            return NULL;
    return f->values ? f : NULL;
}

struct sim_shape *sim_hints_of_key(struct sim_hints *h, const struct rv_pipeline *p, rv_str output_key)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (rv_str_is(output_key, p->agents[i].output.key))
            return &h->shapes[i];
    return NULL;
}

int sim_hints_metadata(struct sim_hints *h, rv_str key, rv_err **err)
{
    for (size_t i = 0; i < h->n_metadata; i++)
        if (rv_str_is(key, h->metadata[i]))
            return 0;
    if (h->n_metadata == h->cap_metadata) {
        size_t cap = h->cap_metadata ? h->cap_metadata * 2 : 8;
        char **keys = realloc(h->metadata, cap * sizeof *keys);
        if (!keys)
            return RV_FAIL(err, RV_E_NOMEM, "note what a pipeline looks at");
        h->metadata = keys;
        h->cap_metadata = cap;
    }
    char *copy = rv_str_dup(key);
    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "note what a pipeline looks at");
    h->metadata[h->n_metadata++] = copy;
    return 0;
}

/* "outputs.plan.steps", or "plan.steps" in a prompt. */
static int of_placeholder(struct sim_hints *h, const struct rv_pipeline *p, const struct rv_placeholder *ph,
                          rv_err **err)
{
    rv_str parts[SIM_PATH_MAX + 2];
    size_t n = 0;

    for (size_t at = 0; at <= ph->path.len && n < RV_COUNT(parts);) {
        const char *dot = memchr(ph->path.ptr + at, '.', ph->path.len - at);
        size_t end = dot ? (size_t)(dot - ph->path.ptr) : ph->path.len;
        parts[n++] = (rv_str){ph->path.ptr + at, end - at};
        at = end + 1;
    }
    size_t first = n > 0 && rv_str_is(parts[0], "outputs") ? 1 : 0;
    if (n > 1 && rv_str_is(parts[0], "metadata"))
        return sim_hints_metadata(h, parts[1], err);
    struct sim_shape *shape = n > first ? sim_hints_of_key(h, p, parts[first]) : NULL;
    if (!shape || n < first + 2)
        return 0;
    struct sim_field *f = sim_hints_field(shape, parts + first + 1, n - first - 1);
    if (!f)
        return RV_FAIL(err, RV_E_NOMEM, "note what a prompt looks at");
    f->is_required = true; /* a prompt without it cannot be made */
    return 0;
}

static int of_prompt(struct sim_hints *h, const struct rv_sim_subject *subject, const struct rv_agent *a, rv_err **err)
{
    const struct rv_prompt_config *own = rv_pipeline_prompt(subject->pipeline, rv_str_of(a->model.prompt_key));
    const rv_template *t = own ? own->template
                           : subject->catalog && a->model.prompt_key[0] != 0
                               ? subject->catalog->prompt(subject->catalog->self, rv_str_of(a->model.prompt_key))
                               : NULL;
    int rc = 0;

    for (size_t i = 0; t && rc == 0 && i < rv_template_n_placeholders(t); i++) {
        struct rv_placeholder ph = rv_template_placeholder(t, i);
        rc = of_placeholder(h, subject->pipeline, &ph, err);
    }
    return rc;
}

static int of_rules(struct sim_hints *h, const struct rv_pipeline *p, const struct rv_agent *a, rv_err **err)
{
    struct sim_shape *own = &h->shapes[a->index];
    int rc = 0;

    for (size_t i = 0; i < a->routing.n_rules && rc == 0; i++) {
        const struct rv_rule *rule = &a->routing.rules[i];
        if (rule->when) {
            rc = sim_hints_expr(h, p, own, rv_expr_text(rule->when), err);
            continue;
        }
        rv_str path = rv_str_of(rule->condition);
        json_object *copy = NULL;
        struct sim_field *f = sim_hints_field(own, &path, 1);
        rc = f ? rv_json_dup(rule->value, &copy, err) : RV_FAIL(err, RV_E_NOMEM, "note what a rule looks at");
        if (rc == 0)
            rc = rv_json_push_ref(f->values, copy, err);
        json_object_put(copy);
    }
    return rc;
}

static int of_required(struct sim_hints *h, const struct rv_agent *a, rv_err **err)
{
    for (size_t i = 0; i < a->output.required_fields.n; i++) {
        rv_str path = rv_str_of(a->output.required_fields.items[i]);
        struct sim_field *f = sim_hints_field(&h->shapes[a->index], &path, 1);
        if (!f)
            return RV_FAIL(err, RV_E_NOMEM, "note what a stage requires");
        f->is_required = true;
    }
    return 0;
}

/* The stage's plan is another stage's output; the tools it may name are those it may call. */
static int of_plan(struct sim_hints *h, const struct rv_sim_subject *subject, const struct rv_agent *a, rv_err **err)
{
    const struct rv_pipeline *p = subject->pipeline;
    const char *const *names = a->tools.allowed.is_set ? a->tools.allowed.items : subject->tools;
    size_t n = a->tools.allowed.is_set ? a->tools.allowed.n : subject->n_tools;
    struct sim_shape *shape = sim_hints_of_key(h, p, rv_str_of(a->tools.plan_from));

    if (!a->has_tools || a->has_llm || !shape)
        return 0;
    const char **tools = realloc(shape->tools, (shape->n_tools + n + 1) * sizeof *tools);
    if (!tools)
        return RV_FAIL(err, RV_E_NOMEM, "note the tools of a plan");
    shape->tools = tools;
    for (size_t i = 0; i < n; i++)
        shape->tools[shape->n_tools++] = names[i];
    return 0;
}

static int fill(struct sim_hints *h, const struct rv_sim_subject *subject, rv_err **err)
{
    const struct rv_pipeline *p = subject->pipeline;
    int rc = 0;

    for (size_t i = 0; i < p->n_agents && rc == 0; i++) {
        const struct rv_agent *a = &p->agents[i];
        rc = of_required(h, a, err);
        if (rc == 0)
            rc = of_rules(h, p, a, err);
        if (rc == 0)
            rc = of_prompt(h, subject, a, err);
        if (rc == 0)
            rc = of_plan(h, subject, a, err);
    }
    struct sim_shape *shape =
        rc == 0 && p->response.output_key ? sim_hints_of_key(h, p, rv_str_of(p->response.output_key)) : NULL;
    rv_str field = rv_str_of(p->response.field ? p->response.field : "final_response");
    if (shape && !sim_hints_field(shape, &field, 1))
        rc = RV_FAIL(err, RV_E_NOMEM, "note where the response stands");
    return rc;
}

int sim_hints_new(const struct rv_sim_subject *subject, struct sim_hints **out, rv_err **err)
{
    struct sim_hints *h = calloc(1, sizeof *h);

    if (!h || !(h->shapes = calloc(subject->pipeline->n_agents + 1, sizeof *h->shapes))) {
        free(h);
        return RV_FAIL(err, RV_E_NOMEM, "look at pipeline \"%s\"", subject->pipeline->name);
    }
    h->n_shapes = subject->pipeline->n_agents;
    int rc = fill(h, subject, err);
    if (rc < 0)
        sim_hints_free(h);
    else
        *out = h;
    return rc;
}

void sim_hints_free(struct sim_hints *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->n_shapes; i++) {
        struct sim_shape *shape = &h->shapes[i];
        for (size_t f = 0; f < shape->n_fields; f++) {
            for (size_t k = 0; k < shape->fields[f].n_path; k++)
                free(shape->fields[f].path[k]);
            json_object_put(shape->fields[f].values);
        }
        free(shape->fields);
        free(shape->tools);
    }
    for (size_t i = 0; i < h->n_metadata; i++)
        free(h->metadata[i]);
    free(h->metadata);
    free(h->shapes);
    free(h);
}
