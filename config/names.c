/* Names of values in the texts of a pipeline: what placeholders of prompts and expressions of stages look up is
 * compared with the outputs that the stages make, and with the fields that their schemas allow. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

/* --- Texts whose names are checked when all stages are known --- */

/* --- Names that placeholders of prompts may use --- */

/* What every prompt can name besides outputs (rule 5.5). */
static const char *const roots[] = {
    "raw_input",          "user_id", "session_id", "metadata",      "iteration", "loop_feedback", "prior_plans",
    "interrupt_response", "outputs", "state",      "stage_context",
};

bool rv_prompt_has_root(rv_str name)
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
    struct value_names names = {config_loader_array(l, RV_COUNT(roots) + l->p->n_agents, sizeof(char *)), 0, 0};

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

/* --- Names that only some visits have: `group` at a join, `error` at a handler, `item` and `index` in a list, `inputs`
 * in a pipeline that is a stage. A prompt or an expression that names one has to belong to such a stage. --- */

enum place_name { NAME_GROUP, NAME_ERROR, NAME_ITEM, NAME_INDEX, NAME_INPUTS, N_PLACE_NAMES };
static const struct {
    const char *name, *where, *hint;
    enum rv_severity severity;
} place_names[] = {
    [NAME_GROUP] = {"group", "at a join", "give the stage the key join, or take the name out", RV_SEVERITY_ERROR},
    [NAME_ERROR] = {"error", "in a stage that an error_next leads to",
                    "let the error_next of a stage name it, or take the name out", RV_SEVERITY_WARNING},
    [NAME_ITEM] = {"item", "in a stage with for_each", "give the stage for_each, or take the name out",
                   RV_SEVERITY_ERROR},
    [NAME_INDEX] = {"index", "in a stage with for_each", "give the stage for_each, or take the name out",
                    RV_SEVERITY_ERROR},
    [NAME_INPUTS] = {"inputs", "in a pipeline with the key inputs",
                     "list the names under inputs at the top of the file, or take the name out", RV_SEVERITY_ERROR},
};
RV_EACH_HAS_ROW(place_names, N_PLACE_NAMES);

static int find_place_name(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(place_names); i++)
        if (rv_str_is(name, place_names[i].name))
            return (int)i;
    return -1;
}

/* --- Outputs that templates and expressions name --- */

/* A place in a text that names a value of the run. */
struct use {
    const char *what;          /* how a finding about it begins */
    struct rv_src src;         /* of the name */
    enum rv_severity severity; /* of a value that there cannot be */
};

/* What fields the output of a stage can have; borrowed from the stage. A hook or a mock may add any. */
struct output_fields {
    bool is_open;                 /* any */
    bool is_text;                 /* only "response" */
    json_object *properties;      /* of a closed schema; NULL: none */
    const struct rv_built *built; /* of `set`; NULL: none */
};
static struct output_fields fields_of(const struct rv_agent *a)
{
    static const struct output_fields any = {.is_open = true};
    bool is_made_elsewhere = a->each.list || a->inner.file[0] || a->ask.question;
    json_object *closed = NULL;

    if (is_made_elsewhere || a->hooks.post_process[0] || a->hooks.mock_handler[0])
        return any;
    if (a->set)
        return a->set->kind == RV_BUILT_MAP ? (struct output_fields){.built = a->set} : any;
    if (!a->has_llm)
        return any;
    if (!a->output.schema)
        return a->output.mode == RV_OUTPUT_TEXT && !rv_plans(&a->planning) ? (struct output_fields){.is_text = true}
                                                                           : any;
    if (rv_plans(&a->planning) || !json_object_object_get_ex(a->output.schema, "additionalProperties", &closed) ||
        !json_object_is_type(closed, json_type_boolean) || json_object_get_boolean(closed) ||
        json_object_object_get_ex(a->output.schema, "patternProperties", NULL))
        return any;
    return (struct output_fields){.properties = rv_json_get_obj(a->output.schema, "properties")};
}

static bool has_field(const struct output_fields *fields, rv_str field)
{
    if (fields->is_open || (fields->is_text && rv_str_is(field, "response")))
        return true;
    for (size_t i = 0; fields->built && i < fields->built->n; i++)
        if (rv_str_is(field, fields->built->keys[i]))
            return true;
    if (!fields->properties)
        return false;
    json_object_object_foreach (fields->properties, name, schema) {
        (void)schema;
        if (rv_str_is(field, name))
            return true;
    }
    return false;
}

static void hint_fields(struct rv_loader *l, const struct output_fields *fields, rv_str field, char hint[RV_HINT_MAX])
{
    size_t n = fields->properties ? (size_t)json_object_object_length(fields->properties) : 0, i = 0;
    const char **names = config_loader_array(l, n + 1 + (fields->built ? fields->built->n : 0), sizeof *names);

    hint[0] = '\0';
    if (!names)
        return;
    if (fields->is_text)
        names[i++] = "response";
    for (size_t k = 0; fields->built && k < fields->built->n; k++)
        names[i++] = fields->built->keys[k];
    if (n > 0) {
        json_object_object_foreach (fields->properties, name, schema) {
            (void)schema;
            names[i++] = name;
        }
    }
    config_name_hint(l->findings, field, "fields", names, i, hint);
}

static const char *why_without(const struct output_fields *fields)
{
    return fields->is_text ? "which is a text and has only \"response\""
           : fields->built ? "whose `set` does not make it"
                           : "whose output_schema does not allow it";
}

/* A field that the output of no stage with that key can have; the hint names the fields of the last one. */
static void check_field(struct rv_loader *l, const struct use *use, rv_str key, rv_str field)
{
    char hint[RV_HINT_MAX];
    struct output_fields fields = {.is_open = true};

    for (size_t i = 0; i < l->p->n_agents; i++) {
        if (!rv_str_is(key, l->p->agents[i].output.key))
            continue;
        if (l->p->agents[i].ask.question && rv_str_is(field, "answer")) /* a person's, which joins the output */
            return;
        fields = fields_of(&l->p->agents[i]);
        if (has_field(&fields, field))
            return;
    }
    if (fields.is_open)
        return;
    hint_fields(l, &fields, field, hint);
    rv_findings_add(l->findings, RV_SEVERITY_WARNING, &use->src, hint,
                    "%s names the field \"%.*s\" of the output \"%.*s\", %s", use->what,
                    RV_STR_ARG(rv_utf8_cut(field, 100)), RV_STR_ARG(rv_utf8_cut(key, 100)), why_without(&fields));
}

/* The place of the response; its key is checked with the stages. */
static void check_response(struct rv_loader *l)
{
    const struct rv_response_place *place = &l->p->response;
    const struct rv_node *map = rv_node_get(l->root, "response");
    const struct rv_node *field = rv_node_get(map, "field");
    const struct rv_node *at = field ? field : rv_node_get(map, "output_key");
    const struct use use = {"response", at ? at->src : (struct rv_src){0}, RV_SEVERITY_WARNING};

    int stage = place->output_key ? rv_index_get(&l->p->internal->output_index, rv_str_of(place->output_key)) : -1;

    if (at && stage >= 0 && (field || !l->p->agents[stage].set)) /* a set may make a result of MCP in its place */
        check_field(l, &use, rv_str_of(place->output_key), rv_str_of(place->field ? place->field : "final_response"));
}

/* An output by its key, and its field (ptr NULL: none). Whether the field may be missing is up to the text. */
static void check_output(struct rv_loader *l, const struct use *use, rv_str key, rv_str field, bool is_test,
                         const struct value_names *names)
{
    char hint[RV_HINT_MAX];

    if (rv_index_get(&l->p->internal->output_index, key) < 0) {
        config_name_hint(l->findings, key, "output keys", names->items, names->n_outputs, hint);
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
        struct rv_placeholder other = rv_expr_name_at(expr, i);
        if (other.is_test && !other.member.ptr && rv_str_is(other.root, "output") && rv_str_eq(other.field, field))
            return true;
    }
    return false;
}

static void check_expr(struct rv_loader *l, const struct rv_noted_text *text, const struct value_names *names)
{
    int stage = text->owner ? rv_pipeline_find_stage(l->p, rv_str_of(text->owner)) : -1;

    for (size_t i = 0; i < rv_expr_n_names(text->expr); i++) {
        struct rv_placeholder place = rv_expr_name_at(text->expr, i);
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
    } else if (rv_prompt_has_root(place->root) || find_place_name(place->root) >= 0) {
        return;
    } else if (rv_index_get(&l->p->internal->output_index, place->root) >= 0) {
        check_output(l, &use, place->root, place->field, place->is_test, names);
    } else {
        config_name_hint(l->findings, place->root, "names", names->items, names->n, hint);
        rv_findings_add(l->findings, severity, &use.src, hint, "%s can have no value: nothing is called \"%.*s\"",
                        begin, RV_STR_ARG(rv_utf8_cut(place->root, 100)));
    }
}

/* One that is not a path, such as "{{größe}}"? */
static bool begins_with_name(rv_str tag)
{
    size_t at = 2;

    while (at < tag.len && (tag.ptr[at] == ' ' || tag.ptr[at] == '\t'))
        at++;
    return at < tag.len && (unsigned char)tag.ptr[at] >= 0x80;
}

/* What looks like a tag and is not one of a template (of another program, or misspelt) is sent to the model as it is
 * written. */
static void warn_of_foreign(struct rv_loader *l, const char *what, const struct rv_noted_text *text)
{
    for (size_t i = 0; i < rv_template_n_foreign(text->template); i++) {
        struct rv_foreign tag = rv_template_foreign_at(text->template, i);
        struct rv_src src = in_block(tag.src, &text->src, text->indent);

        rv_findings_add(l->findings, RV_SEVERITY_WARNING, &src,
                        begins_with_name(tag.text) ? RV_TEMPLATE_NAMES
                                                   : "tags are {{name}}, {{#list}}...{{/list}}, {{^list}}...{{/list}}; "
                                                     "write \\{{ for braces that are text",
                        "%s: the model gets \"%.*s\" as it stands", what, RV_STR_ARG(tag.text));
    }
}

static void check_template(struct rv_loader *l, const struct rv_noted_text *text, enum rv_severity severity,
                           const struct value_names *names)
{
    for (size_t i = 0; i < rv_template_n_placeholders(text->template); i++) {
        struct rv_placeholder place = rv_template_placeholder_at(text->template, i);

        place.src = in_block(place.src, &text->src, text->indent);
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
        check_template(l, &text, is_used ? RV_SEVERITY_ERROR : RV_SEVERITY_WARNING, names);
}

/* --- Fields that the stage has to make --- */

/* The failure ends each run that comes there, unless something goes on without the stage. */
static enum rv_severity severity_of(const struct rv_loader *l, const struct rv_agent *a)
{
    bool goes_on =
        a->routing.error_target != RV_TARGET_NONE || l->p->has_groups || l->p->default_run_mode == RV_MODE_PARALLEL;

    return goes_on || l->opts->file ? RV_SEVERITY_WARNING : RV_SEVERITY_ERROR;
}

static void check_required(struct rv_loader *l, const struct rv_agent *a, const struct output_fields *fields)
{
    const struct rv_str_list *need = &a->output.required_fields;
    char hint[RV_HINT_MAX];

    for (size_t i = 0; i < need->n; i++) {
        if (has_field(fields, rv_str_of(need->items[i])))
            continue;
        hint_fields(l, fields, rv_str_of(need->items[i]), hint);
        rv_findings_add(l->findings, severity_of(l, a), &need->srcs[i], hint,
                        "agent \"%s\": each visit fails: required_output_fields names \"%s\" of an output %s", a->name,
                        need->items[i], why_without(fields));
    }
}

/* --- Routing rules --- */

/* The values that a schema allows do not contain this one. */
static bool is_excluded(json_object *schema, json_object *value)
{
    json_object *listed = json_object_is_type(schema, json_type_object) ? rv_json_get_arr(schema, "enum") : NULL;

    for (size_t i = 0; listed && i < json_object_array_length(listed); i++)
        if (rv_json_equal(json_object_array_get_idx(listed, i), value))
            return false;
    return listed != NULL;
}

static void check_rule(struct rv_loader *l, const struct rv_agent *a, size_t i, const struct output_fields *fields)
{
    const struct rv_rule *rule = &a->routing.rules[i];
    json_object *schema = NULL;
    char hint[RV_HINT_MAX];

    if (!rule->condition)
        return;
    if (!has_field(fields, rv_str_of(rule->condition))) {
        hint_fields(l, fields, rv_str_of(rule->condition), hint);
        rv_findings_add(l->findings, RV_SEVERITY_WARNING, &rule->src, hint,
                        "stage \"%s\": rule %zu never matches: it tests the field \"%s\" of an output %s", a->name,
                        i + 1, rule->condition, why_without(fields));
    } else if (fields->properties && json_object_object_get_ex(fields->properties, rule->condition, &schema) &&
               is_excluded(schema, rule->value)) {
        rv_findings_add(l->findings, RV_SEVERITY_WARNING, &rule->src, "write one of the values of its enum",
                        "stage \"%s\": rule %zu never matches: output_schema does not allow that value of \"%s\"",
                        a->name, i + 1, rule->condition);
    }
}

static void check_fields(struct rv_loader *l)
{
    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++) {
        const struct rv_agent *a = &l->p->agents[i];
        struct output_fields fields = fields_of(a);

        check_required(l, a, &fields);
        for (size_t r = 0; r < a->routing.n_rules; r++)
            check_rule(l, a, r, &fields);
    }
}

/* --- All texts --- */

static void check_values(struct rv_loader *l)
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
            check_template(l, text, RV_SEVERITY_ERROR, &names);
    }
    check_response(l);
    rv_index_fini(&used);
}

/* --- Whether a stage has the names of its texts --- */

/* The names that a stage has, a bit each. */
static unsigned names_of(const struct rv_agent *a)
{
    return (a->join.wait != RV_WAIT_NOT ? 1U << NAME_GROUP : 0) |
           (a->each.list ? 1U << NAME_ITEM | 1U << NAME_INDEX : 0);
}

/* A text that asks whether the name is there knows that it may not be. */
static unsigned asked_for(const struct rv_placeholder *place)
{
    int which = place->is_test ? find_place_name(place->root) : -1;

    return which >= 0 ? 1U << which : 0;
}

/* Once for each name of a text. what: how the finding begins */
static void tell_misplaced(struct rv_loader *l, struct rv_placeholder *place, const char *what, unsigned *has)
{
    int which = find_place_name(place->root);

    if (which < 0 || *has >> which & 1U)
        return;
    *has |= 1U << which;
    rv_findings_add(l->findings, place_names[which].severity, &place->src, place_names[which].hint,
                    "%s names \"%s\", which is there only %s", what, place_names[which].name, place_names[which].where);
}

static void place_template(struct rv_loader *l, const rv_template *t, const struct rv_src *src, int indent,
                           const char *what, unsigned has)
{
    for (size_t i = 0; t && i < rv_template_n_placeholders(t); i++) {
        struct rv_placeholder place = rv_template_placeholder_at(t, i);
        has |= asked_for(&place);
    }
    for (size_t i = 0; t && i < rv_template_n_placeholders(t); i++) {
        struct rv_placeholder place = rv_template_placeholder_at(t, i);

        if (rv_index_get(&l->p->internal->output_index, place.root) >= 0) /* it may mean an output */
            continue;
        if (indent > 0 && place.src.line > src->line)
            place.src.col += indent;
        tell_misplaced(l, &place, what, &has);
    }
}

static void place_prompt(struct rv_loader *l, const struct rv_prompt_config *prompt, unsigned has)
{
    char what[RV_MAX_STAGE_NAME + 96];

    snprintf(what, sizeof what, "prompt \"%.*s\"", RV_STR_ARG(rv_utf8_cut(rv_str_of(prompt->key), 200)));
    place_template(l, prompt->compiled, &prompt->src, prompt->indent, what, has);
}

static void place_noted(struct rv_loader *l, const struct rv_noted_text *text, const unsigned *has)
{
    int stage = text->owner ? rv_pipeline_find_stage(l->p, rv_str_of(text->owner)) : -1;
    unsigned names = stage >= 0 ? has[stage] : 0;

    if (stage < 0)
        return;
    if (l->p->agents[stage].inner.file[0])
        names |= 1U << NAME_INPUTS; /* its outputs are looked up inside */
    place_template(l, text->template, &text->src, text->indent, text->what, names);
    for (size_t i = 0; text->expr && i < rv_expr_n_names(text->expr); i++) {
        struct rv_placeholder place = rv_expr_name_at(text->expr, i);
        names |= asked_for(&place);
    }
    for (size_t i = 0; text->expr && i < RV_COUNT(place_names); i++) {
        struct rv_placeholder place = {.root = rv_str_of(place_names[i].name)};

        if (!rv_expr_has_variable(text->expr, place_names[i].name, &place.src))
            continue;
        if (text->indent > 0 && place.src.line > text->src.line)
            place.src.col += text->indent;
        tell_misplaced(l, &place, text->what, &names);
    }
}

static void check_place_names(struct rv_loader *l)
{
    const struct rv_pipeline *p = l->p;
    unsigned *has = config_loader_array(l, p->n_agents, sizeof *has), all = p->inputs.n > 0 ? 1U << NAME_INPUTS : 0;
    unsigned *of_prompt = config_loader_array(l, p->n_prompts, sizeof *of_prompt);
    rv_index prompts = {NULL, 0, 0};

    if (!has || !of_prompt)
        return;
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];

        has[i] |= names_of(a) | all;
        if (a->routing.error_target >= 0)
            has[a->routing.error_target] |= 1U << NAME_ERROR;
    }
    for (size_t i = 0; i < p->n_prompts && l->rc == 0; i++)
        if (rv_index_add(&prompts, rv_str_of(p->prompts[i].key), (int)i) == RV_E_NOMEM)
            l->rc = RV_E_NOMEM;
    for (size_t i = 0; i < p->n_agents && l->rc == 0; i++) {
        int prompt = rv_index_get(&prompts, rv_str_of(p->agents[i].model.prompt_key));
        int system = rv_index_get(&prompts, rv_str_of(p->agents[i].model.system_key));

        if (prompt >= 0)
            of_prompt[prompt] |= has[i];
        if (system >= 0)
            of_prompt[system] |= has[i];
    }
    for (size_t i = 0; i < p->n_prompts && l->rc == 0; i++)
        place_prompt(l, &p->prompts[i], of_prompt[i] | all);
    for (const struct rv_noted_text *text = l->noted; text && l->rc == 0; text = text->next)
        place_noted(l, text, has);
    rv_index_fini(&prompts);
}

void config_check_names(struct rv_loader *l)
{
    check_values(l);
    check_fields(l);
    if (l->rc == 0)
        check_place_names(l);
}
