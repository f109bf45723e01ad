/* Names of values in the texts of a pipeline: what placeholders of prompts and expressions of stages look up is
 * compared with the outputs that the stages make, and with the fields that their schemas allow. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

/* --- Texts whose names are checked when all stages are known --- */

void rv_note_text(struct rv_key_reader *r, const struct rv_node *node, const char *label, const rv_expr *expr,
                  const rv_template *template)
{
    struct rv_loader *l = rv_loader_of(r);
    struct rv_noted_text *noted = rv_loader_array(l, 1, sizeof *noted);
    char what[RV_MAX_STAGE_NAME + 96];

    snprintf(what, sizeof what, "agent \"%.*s\": %.60s", RV_MAX_STAGE_NAME, r->owner_name ? r->owner_name : "", label);
    if (!noted)
        return;
    *noted = (struct rv_noted_text){.what = rv_arena_dup(l->arena, rv_str_of(what)),
                                    .owner = r->owner_name,
                                    .src = rv_node_text_src(node),
                                    .indent = node->is_block ? node->indent : 0,
                                    .expr = expr,
                                    .template = template,
                                    .next = l->noted};
    if (!noted->what)
        l->rc = RV_E_NOMEM;
    else
        l->noted = noted;
}

/* --- Names that placeholders of prompts may use --- */

/* What every prompt can name besides outputs (rule 5.5). */
static const char *const roots[] = {
    "raw_input",          "user_id", "session_id", "metadata",      "iteration", "loop_feedback", "prior_plans",
    "interrupt_response", "outputs", "state",      "stage_context",
};

/* Of what is not an output. */
static bool is_prompt_root(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(roots); i++)
        if (rv_str_is(name, roots[i]))
            return true;
    return false;
}

/* Everything that a placeholder of a prompt may begin with: output keys, then what every prompt can name besides. */
struct value_names {
    const char **items; /* NULL: out of memory, recorded */
    size_t n_outputs, n;
};

static struct value_names collect_names(struct rv_loader *l)
{
    struct value_names names = {rv_loader_array(l, RV_COUNT(roots) + l->p->n_agents, sizeof(char *)), 0, 0};

    if (!names.items)
        return names;
    for (size_t i = 0; i < l->p->n_agents; i++)
        if (rv_index_get(&l->p->internal->output_index, rv_str_of(l->p->agents[i].output.key)) == (int)i)
            names.items[names.n_outputs++] = l->p->agents[i].output.key;
    names.n = names.n_outputs;
    for (size_t i = 0; i < RV_COUNT(roots); i++)
        names.items[names.n++] = roots[i];
    return names;
}

/* --- Outputs that templates and expressions name --- */

/* A place in a text that names a value of the run. */
struct use {
    const char *what;          /* how a finding about it begins */
    struct rv_src src;         /* of the name */
    enum rv_severity severity; /* of a value that there cannot be */
};

/* The fields that the output of a stage can have, as a map by name; NULL: any. A hook may add others. */
static json_object *fields_of(const struct rv_agent *a)
{
    json_object *closed = NULL;
    bool is_built = a->each.list || a->inner.file[0] || a->set || a->ask.question;
    bool is_open = is_built || !a->has_llm || !a->output.schema || a->hooks.post_process[0] || a->hooks.mock_handler[0];

    if (is_open || !json_object_object_get_ex(a->output.schema, "additionalProperties", &closed) ||
        !json_object_is_type(closed, json_type_boolean) || json_object_get_boolean(closed) ||
        json_object_object_get_ex(a->output.schema, "patternProperties", NULL))
        return NULL;
    return rv_json_get_obj(a->output.schema, "properties");
}

/* A field that the output of no stage with that key can have; the hint names the fields of the last one. */
static void check_field(struct rv_loader *l, const struct use *use, rv_str key, rv_str field)
{
    char hint[RV_HINT_MAX];
    json_object *fields = NULL;
    const char **names;
    size_t n = 0;

    for (size_t i = 0; i < l->p->n_agents; i++) {
        if (!rv_str_is(key, l->p->agents[i].output.key))
            continue;
        if (l->p->agents[i].ask.question && rv_str_is(field, "answer")) /* a person's, which joins the output */
            return;
        fields = fields_of(&l->p->agents[i]);
        if (!fields)
            return;
        json_object_object_foreach (fields, name, schema) {
            (void)schema;
            if (rv_str_is(field, name))
                return;
        }
    }
    names = fields ? rv_loader_array(l, (size_t)json_object_object_length(fields), sizeof *names) : NULL;
    if (!names)
        return;
    json_object_object_foreach (fields, name, schema) {
        (void)schema;
        names[n++] = name;
    }
    rv_name_hint(l->findings, field, "fields", names, n, hint);
    rv_findings_add(l->findings, RV_SEVERITY_WARNING, &use->src, hint,
                    "%s names the field \"%.*s\" of the output \"%.*s\", whose output_schema does not allow it",
                    use->what, RV_STR_ARG(rv_utf8_cut(field, 100)), RV_STR_ARG(rv_utf8_cut(key, 100)));
}

/* An output by its key, and its field (ptr NULL: none). Whether the field may be missing is up to the text. */
static void check_output(struct rv_loader *l, const struct use *use, rv_str key, rv_str field, bool is_test,
                         const struct value_names *names)
{
    char hint[RV_HINT_MAX];

    if (rv_index_get(&l->p->internal->output_index, key) < 0) {
        rv_name_hint(l->findings, key, "output keys", names->items, names->n_outputs, hint);
        rv_findings_add(l->findings, use->severity, &use->src, hint,
                        "%s names the output \"%.*s\", which no stage makes", use->what,
                        RV_STR_ARG(rv_utf8_cut(key, 100)));
    } else if (field.ptr && !is_test) {
        check_field(l, use, key, field);
    }
}

static struct rv_src in_block(struct rv_src src, const struct rv_src *start, int indent)
{
    if (indent > 0 && src.line > start->line)
        src.col += indent;
    return src;
}

/* Does the expression ask whether `output` has that field? */
static bool is_asked_for(const rv_expr *expr, rv_str field)
{
    for (size_t i = 0; i < rv_expr_n_names(expr); i++) {
        struct rv_placeholder other = rv_expr_name(expr, i);
        if (other.is_test && !other.member.ptr && rv_str_is(other.root, "output") && rv_str_eq(other.field, field))
            return true;
    }
    return false;
}

static void check_expr(struct rv_loader *l, const struct rv_noted_text *text, const struct value_names *names)
{
    int stage = text->owner ? rv_pipeline_stage(l->p, rv_str_of(text->owner)) : -1;

    for (size_t i = 0; i < rv_expr_n_names(text->expr); i++) {
        struct rv_placeholder place = rv_expr_name(text->expr, i);
        /* A pipeline that a run began with goes on as it is (file). */
        const struct use use = {text->what, in_block(place.src, &text->src, text->indent),
                                l->opts->file || l->opts->has_other_outputs ? RV_SEVERITY_WARNING : RV_SEVERITY_ERROR};

        if (rv_str_is(place.root, "outputs"))
            check_output(l, &use, place.field, place.member, place.is_test, names);
        else if (rv_str_is(place.root, "output") && stage >= 0)
            check_output(l, &use, rv_str_of(l->p->agents[stage].output.key), place.field,
                         is_asked_for(text->expr, place.field), names);
    }
}

/* what: how findings about the template begin */
static void check_placeholder(struct rv_loader *l, const char *what, const struct rv_placeholder *place,
                              enum rv_severity severity, const struct value_names *names)
{
    char begin[RV_MAX_STAGE_NAME + 256];
    const struct use use = {begin, place->src, severity};
    char hint[RV_HINT_MAX];

    snprintf(begin, sizeof begin, "%.*s: {{%.*s}}", RV_MAX_STAGE_NAME + 96, what,
             RV_STR_ARG(rv_utf8_cut(place->path, 100)));
    if (rv_str_is(place->root, "outputs") && place->field.ptr) {
        check_output(l, &use, place->field, place->member, place->is_test, names);
    } else if (is_prompt_root(place->root) || rv_is_place_name(place->root)) {
        return;
    } else if (rv_index_get(&l->p->internal->output_index, place->root) >= 0) {
        check_output(l, &use, place->root, place->field, place->is_test, names);
    } else {
        rv_name_hint(l->findings, place->root, "names", names->items, names->n, hint);
        rv_findings_add(l->findings, severity, &use.src, hint, "%s can have no value: nothing is called \"%.*s\"",
                        begin, RV_STR_ARG(rv_utf8_cut(place->root, 100)));
    }
}

/* Names that only some visits have: those of an element of a list, of a join, of a handler of errors. */
static bool has_place_name(const struct rv_pipeline *p, const struct rv_agent *a, rv_str name)
{
    if (rv_str_is(name, "item") || rv_str_is(name, "index"))
        return a->each.list != NULL;
    if (rv_str_is(name, "group"))
        return a->join.wait != RV_WAIT_NOT;
    for (size_t i = 0; rv_str_is(name, "error") && i < p->n_agents; i++)
        if (p->agents[i].routing.error_target == a->index)
            return true;
    return false;
}

/* prompt NULL: the text is of the stage `owner`. */
static bool is_place_name(const struct rv_pipeline *p, const char *prompt, const char *owner, rv_str name)
{
    if (rv_str_is(name, "inputs"))
        return p->inputs.n > 0;
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        bool uses = prompt ? strcmp(a->model.prompt_key, prompt) == 0 || strcmp(a->model.system_key, prompt) == 0
                           : owner && strcmp(a->name, owner) == 0;
        if (uses && has_place_name(p, a, name))
            return true;
    }
    return false;
}

/* A tag that is none reaches the model as it stands. */
static void warn_of_foreign(struct rv_loader *l, const char *what, const struct rv_noted_text *text)
{
    for (size_t i = 0; i < rv_template_n_foreign(text->template); i++) {
        struct rv_foreign tag = rv_template_foreign(text->template, i);
        struct rv_src src = in_block(tag.src, &text->src, text->indent);

        rv_findings_add(
            l->findings, RV_SEVERITY_WARNING, &src,
            "tags are {{name}}, {{#list}}...{{/list}}, {{^list}}...{{/list}}; write \\{{ for braces that are text",
            "%s: the model gets \"%.*s\" as it stands", what, RV_STR_ARG(tag.text));
    }
}

static void check_template(struct rv_loader *l, const char *prompt, const struct rv_noted_text *text,
                           enum rv_severity severity, const struct value_names *names)
{
    for (size_t i = 0; i < rv_template_n_placeholders(text->template); i++) {
        struct rv_placeholder place = rv_template_placeholder(text->template, i);

        place.src = in_block(place.src, &text->src, text->indent);
        if (!is_place_name(l->p, prompt, text->owner, place.root))
            check_placeholder(l, text->what, &place, severity, names);
    }
    warn_of_foreign(l, text->what, text);
}

static void check_prompt(struct rv_loader *l, const struct rv_prompt_config *prompt, bool is_used,
                         const struct value_names *names)
{
    char what[RV_MAX_STAGE_NAME + 96];
    const struct rv_noted_text text = {
        .what = what, .src = prompt->src, .indent = prompt->indent, .template = prompt->compiled};

    snprintf(what, sizeof what, "prompt \"%.*s\"", RV_STR_ARG(rv_utf8_cut(rv_str_of(prompt->key), 200)));
    if (prompt->compiled)
        check_template(l, prompt->key, &text, is_used ? RV_SEVERITY_ERROR : RV_SEVERITY_WARNING, names);
}

void rv_check_prompts(struct rv_loader *l)
{
    rv_index used = {NULL, 0, 0};
    struct value_names names = collect_names(l);

    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++)
        if (rv_index_add(&used, rv_str_of(l->p->agents[i].model.prompt_key), 1) == RV_E_NOMEM ||
            rv_index_add(&used, rv_str_of(l->p->agents[i].model.system_key), 1) == RV_E_NOMEM)
            l->rc = RV_E_NOMEM;
    for (size_t i = 0; i < l->p->n_prompts && l->rc == 0; i++)
        check_prompt(l, &l->p->prompts[i], rv_index_get(&used, rv_str_of(l->p->prompts[i].key)) >= 0, &names);
    for (const struct rv_noted_text *text = l->noted; text && l->rc == 0; text = text->next) {
        if (text->expr)
            check_expr(l, text, &names);
        else
            check_template(l, NULL, text, RV_SEVERITY_ERROR, &names);
    }
    rv_index_fini(&used);
}
