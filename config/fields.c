/* What fields the output of a stage can have, as far as its keys tell, and what of the stage itself looks for others:
 * required_output_fields and routing rules. A hook or a mock may add any. */
#include <json-c/linkhash.h>
#include <string.h>

#include "config/fields_internal.h"

struct config_fields config_fields_of(const struct rv_agent *a)
{
    static const struct config_fields any = {.is_open = true};
    bool is_made_elsewhere = a->each.list || a->inner.file[0] || a->ask.question;
    json_object *closed = NULL;

    if (is_made_elsewhere || a->hooks.post_process[0] || a->hooks.mock_handler[0])
        return any;
    if (a->set)
        return a->set->kind == RV_BUILT_MAP ? (struct config_fields){.built = a->set} : any;
    if (!a->has_llm)
        return any;
    if (!a->output.schema)
        return a->output.mode == RV_OUTPUT_TEXT && !rv_plans(&a->planning) ? (struct config_fields){.is_text = true}
                                                                           : any;
    if (rv_plans(&a->planning) || !json_object_object_get_ex(a->output.schema, "additionalProperties", &closed) ||
        !json_object_is_type(closed, json_type_boolean) || json_object_get_boolean(closed) ||
        json_object_object_get_ex(a->output.schema, "patternProperties", NULL))
        return any;
    return (struct config_fields){.properties = rv_json_get_obj(a->output.schema, "properties")};
}

bool config_has_field(const struct config_fields *fields, rv_str field)
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

void config_hint_fields(struct rv_loader *l, const struct config_fields *fields, rv_str field, char hint[RV_HINT_MAX])
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

const char *config_why_without(const struct config_fields *fields)
{
    return fields->is_text ? "which is a text and has only \"response\""
           : fields->built ? "whose `set` does not make it"
                           : "whose output_schema does not allow it";
}

/* --- Fields that the stage has to make --- */

/* The failure ends each run that comes there, unless something goes on without the stage. */
static enum rv_severity severity_of(const struct rv_loader *l, const struct rv_agent *a)
{
    bool goes_on =
        a->routing.error_target != RV_TARGET_NONE || l->p->has_groups || l->p->default_run_mode == RV_MODE_PARALLEL;

    return goes_on || l->opts->file ? RV_SEVERITY_WARNING : RV_SEVERITY_ERROR;
}

static void check_required(struct rv_loader *l, const struct rv_agent *a, const struct config_fields *fields)
{
    const struct rv_str_list *need = &a->output.required_fields;
    char hint[RV_HINT_MAX];

    for (size_t i = 0; i < need->n; i++) {
        if (config_has_field(fields, rv_str_of(need->items[i])))
            continue;
        config_hint_fields(l, fields, rv_str_of(need->items[i]), hint);
        rv_findings_add(l->findings, severity_of(l, a), &need->srcs[i], hint,
                        "agent \"%s\": each visit fails: required_output_fields names \"%s\" of an output %s", a->name,
                        need->items[i], config_why_without(fields));
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

static void check_rule(struct rv_loader *l, const struct rv_agent *a, size_t i, const struct config_fields *fields)
{
    const struct rv_rule *rule = &a->routing.rules[i];
    json_object *schema = NULL;
    char hint[RV_HINT_MAX];

    if (!rule->condition)
        return;
    if (!config_has_field(fields, rv_str_of(rule->condition))) {
        config_hint_fields(l, fields, rv_str_of(rule->condition), hint);
        rv_findings_add(l->findings, RV_SEVERITY_WARNING, &rule->src, hint,
                        "stage \"%s\": rule %zu never matches: it tests the field \"%s\" of an output %s", a->name,
                        i + 1, rule->condition, config_why_without(fields));
    } else if (fields->properties && json_object_object_get_ex(fields->properties, rule->condition, &schema) &&
               is_excluded(schema, rule->value)) {
        rv_findings_add(l->findings, RV_SEVERITY_WARNING, &rule->src, "write one of the values of its enum",
                        "stage \"%s\": rule %zu never matches: output_schema does not allow that value of \"%s\"",
                        a->name, i + 1, rule->condition);
    }
}

void config_check_fields(struct rv_loader *l)
{
    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++) {
        const struct rv_agent *a = &l->p->agents[i];
        struct config_fields fields = config_fields_of(a);

        check_required(l, a, &fields);
        for (size_t r = 0; r < a->routing.n_rules; r++)
            check_rule(l, a, r, &fields);
    }
}
