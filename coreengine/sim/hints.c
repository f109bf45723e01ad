/* What a pipeline looks at: required fields, conditions of rules, paths in expressions and prompts, and which outputs
 * are plans. Made-up outputs have these fields, with values around the constants they are compared with. For a `when`
 * expression that is found by reading its text: paths below output, outputs and metadata, and the constants beside
 * them. A guess is enough: what is made from it is only tried, and the core decides. */
#include "coreengine/base/base.h"
#include "coreengine/sim/sim_internal.h"

#include <ctype.h>
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATHS 16 /* of one expression: people write fewer names; of further ones values are made without a hint */

static bool same_path(const struct sim_field *f, const rv_str *path, size_t n)
{
    if (f->n_path != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!rv_str_is(path[i], f->path[i]))
            return false;
    return true;
}

static struct sim_field *sim_hints_field(struct sim_shape *shape, const rv_str *path, size_t n_path)
{
    n_path = n_path > SIM_PATH_MAX ? SIM_PATH_MAX : n_path;
    for (size_t i = 0; i < shape->n_fields; i++)
        if (same_path(&shape->fields[i], path, n_path))
            return &shape->fields[i];
    if (!rv_has_room(&shape->fields, &shape->cap, shape->n_fields + 1, sizeof *shape->fields))
        return NULL;
    struct sim_field *f = &shape->fields[shape->n_fields];
    *f = (struct sim_field){.n_path = n_path, .values = json_object_new_array()};
    shape->n_fields++; /* its owner frees it, whole or not */
    for (size_t i = 0; i < n_path; i++)
        if (!(f->path[i] = rv_str_dup(path[i])))
            return NULL;
    return f->values ? f : NULL;
}

static struct sim_shape *sim_hints_of_key(struct sim_hints *h, const struct rv_pipeline *p, rv_str output_key)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (rv_str_is(output_key, p->agents[i].output.key))
            return &h->shapes[i];
    return NULL;
}

static int sim_hints_metadata(struct sim_hints *h, rv_str key, rv_err **err)
{
    for (size_t i = 0; i < h->n_metadata; i++)
        if (rv_str_is(key, h->metadata[i]))
            return 0;
    if (!rv_has_room(&h->metadata, &h->cap_metadata, h->n_metadata + 1, sizeof *h->metadata))
        return RV_FAIL(err, RV_E_NOMEM, "note what a pipeline looks at");
    char *copy = rv_str_dup(key);
    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "note what a pipeline looks at");
    h->metadata[h->n_metadata++] = copy;
    return 0;
}

/* --- expressions --- */

struct reading {
    struct sim_hints *h;
    const struct rv_pipeline *p;
    struct sim_shape *own;
    struct sim_shape *shapes[MAX_PATHS]; /* where each path is; owned */
    size_t fields[MAX_PATHS];            /* its index there: the list may move */
    size_t n;
    json_object *constants; /* array; owned */
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Methods and macros end a path. */
static bool is_method(rv_str name)
{
    static const char *const methods[] = {"contains", "startsWith", "endsWith", "size", "all",
                                          "exists",   "exists_one", "filter",   "map"};
    for (size_t i = 0; i < RV_COUNT(methods); i++)
        if (rv_str_is(name, methods[i]))
            return true;
    return false;
}

/* a.b["c"].d as parts; gives the byte after it. */
static const char *read_path(const char *p, rv_str *parts, size_t *n)
{
    *n = 0;
    for (;;) {
        const char *begin = p;
        while (is_name(*p))
            p++;
        rv_str part = {begin, (size_t)(p - begin)};
        if (part.len == 0 || is_method(part))
            return p;
        if (*n < SIM_PATH_MAX + 2)
            parts[(*n)++] = part;
        while (*p == '[' && (p[1] == '"' || p[1] == '\'')) {
            const char *end = strchr(p + 2, p[1]);
            if (!end)
                return p + 1;
            if (*n < SIM_PATH_MAX + 2)
                parts[(*n)++] = (rv_str){p + 2, (size_t)(end - p - 2)};
            p = end[1] == ']' ? end + 2 : end + 1;
        }
        if (*p != '.')
            return p;
        p++;
    }
}

static int take_path(struct reading *r, const rv_str *parts, size_t n, rv_err **err)
{
    struct sim_shape *shape = NULL;
    size_t first = 0;

    if (n >= 2 && rv_str_is(parts[0], "output")) {
        shape = r->own;
        first = 1;
    } else if (n >= 3 && rv_str_is(parts[0], "outputs")) {
        shape = sim_hints_of_key(r->h, r->p, parts[1]);
        first = 2;
    } else if (n >= 2 && rv_str_is(parts[0], "metadata")) {
        return sim_hints_metadata(r->h, parts[1], err);
    }
    if (!shape || r->n == MAX_PATHS)
        return 0;
    struct sim_field *f = sim_hints_field(shape, parts + first, n - first);
    if (!f)
        return RV_FAIL(err, RV_E_NOMEM, "note what an expression looks at");
    r->shapes[r->n] = shape;
    r->fields[r->n++] = (size_t)(f - shape->fields);
    return 0;
}

static int add_constant(struct reading *r, json_object *v, rv_err **err)
{
    return rv_json_push_take(r->constants, v, err);
}

/* A number and its neighbours, so that both sides of a comparison are tried. */
static int take_number(struct reading *r, const char **text, rv_err **err)
{
    char *end = NULL;
    double d = rv_number_read(*text, &end);
    bool whole = !memchr(*text, '.', (size_t)(end - *text));
    int rc = 0;

    for (int by = -1; by <= 1 && rc == 0; by++)
        rc = add_constant(r, whole ? json_object_new_int64((int64_t)d + by) : rv_json_new_double(d + by * 0.125), err);
    *text = end > *text ? end : *text + 1;
    if (**text == 'u')
        ++*text;
    return rc;
}

static int take_string(struct reading *r, const char **text, rv_err **err)
{
    const char *end = *text + 1;

    while (*end && *end != **text)
        end += *end == '\\' && end[1] ? 2 : 1;
    int rc = add_constant(r, json_object_new_string_len(*text + 1, (int)(end - *text - 1)), err);
    *text = *end ? end + 1 : end;
    return rc;
}

static int take_name(struct reading *r, const char **text, rv_err **err)
{
    rv_str parts[SIM_PATH_MAX + 2];
    size_t n = 0;
    const char *begin = *text;

    *text = read_path(begin, parts, &n);
    if (*text == begin)
        ++*text;
    if (n == 1 && (rv_str_is(parts[0], "true") || rv_str_is(parts[0], "false")))
        return add_constant(r, json_object_new_boolean(rv_str_is(parts[0], "true")), err);
    return take_path(r, parts, n, err);
}

/* Every path may be compared with every constant of the expression. */
static int combine(struct reading *r, bool lists, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < r->n && rc == 0; i++) {
        struct sim_field *f = &r->shapes[i]->fields[r->fields[i]];
        f->is_list = f->is_list || lists;
        for (size_t k = 0; k < json_object_array_length(r->constants) && rc == 0; k++)
            rc = rv_json_push_ref(f->values, json_object_array_get_idx(r->constants, k), err);
        if (rc == 0 && json_object_array_length(r->constants) == 0)
            rc = rv_json_push_take(f->values, json_object_new_boolean(1), err); /* used as a condition itself */
        if (rc == 0 && json_object_array_length(r->constants) == 0)
            rc = rv_json_push_take(f->values, json_object_new_boolean(0), err);
    }
    return rc;
}

/* is_list: what it looks at is to be a list. */
static int sim_hints_expr(struct sim_hints *h, const struct rv_pipeline *p, struct sim_shape *own, const char *text,
                          bool is_list, rv_err **err)
{
    struct reading r = {.h = h, .p = p, .own = own, .constants = json_object_new_array()};
    bool lists =
        is_list || strstr(text, "size(") || strstr(text, "exists") || strstr(text, "all(") || strstr(text, " in ");
    int rc = r.constants ? 0 : RV_FAIL(err, RV_E_NOMEM, "note what an expression looks at");

    for (const char *at = text; *at && rc == 0;) {
        if (isdigit((unsigned char)*at))
            rc = take_number(&r, &at, err);
        else if (*at == '"' || *at == '\'')
            rc = take_string(&r, &at, err);
        else if (is_name(*at))
            rc = take_name(&r, &at, err);
        else
            at++;
    }
    if (rc == 0)
        rc = combine(&r, lists, err);
    json_object_put(r.constants);
    return rc;
}

/* --- all hints of a pipeline --- */

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

static int of_template(struct sim_hints *h, const struct rv_pipeline *p, const rv_template *t, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; t && rc == 0 && i < rv_template_n_placeholders(t); i++) {
        struct rv_placeholder ph = rv_template_placeholder_at(t, i);
        rc = of_placeholder(h, p, &ph, err);
    }
    return rc;
}

static int of_prompt(struct sim_hints *h, const struct rv_sim_subject *subject, const char *key, rv_err **err)
{
    const struct rv_prompt_config *own = rv_pipeline_find_prompt(subject->pipeline, rv_str_of(key));
    const rv_template *t = own ? own->compiled
                           : subject->catalog && key[0] != 0
                               ? subject->catalog->prompt(subject->catalog->self, rv_str_of(key))
                               : NULL;

    return of_template(h, subject->pipeline, t, err);
}

/* Fields of outputs that an attachment is made of: among other values they have an address. */
static int of_attachment(struct sim_hints *h, const struct rv_pipeline *p, const rv_expr *e, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < rv_expr_n_names(e); i++) {
        struct rv_placeholder name = rv_expr_name_at(e, i);
        struct sim_shape *shape = rv_str_is(name.root, "outputs") ? sim_hints_of_key(h, p, name.field) : NULL;
        if (rv_str_is(name.root, "metadata"))
            rc = sim_hints_metadata(h, name.field, err);
        if (!shape || !name.member.ptr)
            continue;
        struct sim_field *f = sim_hints_field(shape, &name.member, 1);
        if (!f)
            return RV_FAIL(err, RV_E_NOMEM, "note what an attachment looks at");
        f->is_required = f->is_required || !name.is_test;
        rc = rv_json_push_take(f->values, json_object_new_string("https://example.org/picture.png"), err);
    }
    return rc;
}

/* Everything that the stage tells its model. */
static int of_request(struct sim_hints *h, const struct rv_sim_subject *subject, const struct rv_agent *a, rv_err **err)
{
    int rc = of_prompt(h, subject, a->model.prompt_key, err);

    if (rc == 0)
        rc = of_prompt(h, subject, a->model.system_key, err);
    for (size_t i = 0; rc == 0 && i < a->model.n_examples; i++) {
        rc = of_template(h, subject->pipeline, a->model.examples[i].user, err);
        if (rc == 0)
            rc = of_template(h, subject->pipeline, a->model.examples[i].assistant, err);
    }
    for (size_t i = 0; rc == 0 && i < a->model.n_attachments; i++)
        rc = of_attachment(h, subject->pipeline, a->model.attachments[i], err);
    return rc;
}

/* The conditions of branches look at the output of the stage that routes. */
static int of_branches(struct sim_hints *h, const struct rv_pipeline *p, struct sim_shape *own,
                       const struct rv_branches *list, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < list->n && rc == 0; i++)
        if (list->items[i].when)
            rc = sim_hints_expr(h, p, own, rv_expr_text(list->items[i].when), false, err);
    return rc;
}

static int of_rules(struct sim_hints *h, const struct rv_pipeline *p, const struct rv_agent *a, rv_err **err)
{
    struct sim_shape *own = &h->shapes[a->index];
    int rc = of_branches(h, p, own, &a->routing.branches, err);

    if (rc == 0 && a->each.list)
        rc = sim_hints_expr(h, p, own, rv_expr_text(a->each.list), false, err);
    for (size_t i = 0; i < a->routing.n_rules && rc == 0; i++) {
        const struct rv_rule *rule = &a->routing.rules[i];
        rc = of_branches(h, p, own, &rule->branches, err);
        if (rc < 0)
            break;
        if (rule->when) {
            rc = sim_hints_expr(h, p, own, rv_expr_text(rule->when), false, err);
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

/* The values of `set`, of `inputs` and of what a person is shown. */
static int of_built(struct sim_hints *h, const struct rv_pipeline *p, struct sim_shape *own, const struct rv_built *b,
                    rv_err **err)
{
    int rc = 0;

    if (b && b->kind == RV_BUILT_EXPR)
        return sim_hints_expr(h, p, own, rv_expr_text(b->expr), strstr(rv_expr_text(b->expr), ".filter(") != NULL, err);
    for (size_t i = 0; b && i < b->n && rc == 0; i++)
        rc = of_built(h, p, own, &b->items[i], err);
    return rc;
}

static int of_values(struct sim_hints *h, const struct rv_pipeline *p, const struct rv_agent *a, rv_err **err)
{
    struct sim_shape *own = &h->shapes[a->index];
    int rc = of_built(h, p, own, a->set, err);

    if (rc == 0)
        rc = of_built(h, p, own, a->inner.inputs, err);
    return rc == 0 && a->ask.show ? sim_hints_expr(h, p, own, rv_expr_text(a->ask.show), false, err) : rc;
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
        if (rc == 0 && a->each.list)
            rc = sim_hints_expr(h, p, &h->shapes[a->index], rv_expr_text(a->each.list), true, err);
        if (rc == 0)
            rc = of_rules(h, p, a, err);
        if (rc == 0)
            rc = of_values(h, p, a, err);
        if (rc == 0)
            rc = of_request(h, subject, a, err);
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
