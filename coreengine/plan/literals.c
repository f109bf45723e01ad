/* What a tool requires is there, and the literals of its arguments fit its schema, whatever the references become. */
#include <json-c/linkhash.h>

#include "coreengine/plan/validate_internal.h"

#define MAX_FAULTS 64 /* literals of one call that do not fit: a model mends the first ones first */

static bool is_required(json_object *input, const char *name)
{
    json_object *required = rv_json_get_arr(input, "required");

    for (size_t i = 0; required && i < json_object_array_length(required); i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(required, i)), name))
            return true;
    return false;
}

static size_t count_values(json_object *value)
{
    size_t n = 1;

    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            n += count_values(json_object_array_get_idx(value, i));
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach (value, key, member) {
            (void)key;
            n += count_values(member);
        }
    }
    return n;
}

/* One level down: to the member, or the item, with the values before it added to *order. */
static json_object *enter(json_object *value, const char *key, size_t i, size_t *order)
{
    ++*order;
    if (!key) {
        for (size_t k = 0; k < i; k++)
            *order += count_values(json_object_array_get_idx(value, k));
        return json_object_array_get_idx(value, i);
    }
    json_object_object_foreach (value, name, member) {
        if (strcmp(name, key) == 0)
            return member;
        *order += count_values(member);
    }
    return NULL;
}

struct literals {
    struct rv_validation *c;
    json_object *arguments;
};

/* What the schema checker found. */
static void note_fault(void *self, const struct rv_schema_fault *fault)
{
    struct literals *l = self;
    struct rv_validation *c = l->c;
    json_object *at = l->arguments;
    rv_buf path = RV_BUF_INIT(RV_PLAN_MAX_PATH);
    struct rv_shape_names names = {0};
    size_t order = 0;

    if (fault->kind == RV_SCHEMA_FAULT_MISSING && fault->n_steps == 0 && is_required(c->tool->input, fault->name))
        return; /* V9 has said so */
    for (size_t i = 0; i < fault->n_steps; i++) {
        at = enter(at, fault->steps[i].key, fault->steps[i].i, &order);
        validation_write_step(fault->steps[i].key, fault->steps[i].i, &path);
    }
    bool is_unknown = fault->kind == RV_SCHEMA_FAULT_UNKNOWN;
    if (is_unknown) {
        enter(at, fault->name, 0, &order);
        validation_write_step(fault->name, 0, &path);
    }
    const char *argument = validation_keep(c, &path),
               *name = fault->name ? rv_arena_dup(c->arena, rv_str_of(fault->name)) : NULL;
    const char *text = rv_arena_dup(c->arena, rv_str_of(fault->text));
    if (!text || (fault->name && !name)) {
        validation_no_memory(c);
        return;
    }
    if (fault->properties)
        shape_note_names(&names, fault->properties);
    const char *const *allowed = is_unknown ? validation_names(c, &names) : NULL;
    struct rv_plan_error *e =
        validation_add_plain(c, is_unknown ? RV_PLAN_ERROR_UNKNOWN_ARGUMENT : RV_PLAN_ERROR_INVALID_ARGUMENT, order);
    if (e) {
        e->argument = argument;
        e->tool = c->tool->visible;
        e->subject = name;
        e->text = text;
        e->names = allowed;
        e->n_names = is_unknown ? names.n : 0;
    }
}

/* The literals fit the schema, whatever the references become. */
void validation_check_literals(struct rv_validation *c, json_object *arguments)
{
    struct literals literals = {c, arguments};
    struct rv_schema_partial partial = {c->hole, MAX_FAULTS, note_fault, &literals};
    rv_err *why = NULL;
    size_t n_faults = 0;

    if (!c->tool->input_schema || c->rc < 0)
        return;
    int rc = rv_schema_check_partial(c->tool->input_schema, arguments, &partial, &n_faults, &why);
    if (rc == RV_E_NOMEM) {
        validation_no_memory(c);
    } else if (rc < 0) {
        const char *text = rv_arena_dup(c->arena, rv_str_of(rv_err_text(why)));
        struct rv_plan_error *e = text ? validation_add_plain(c, RV_PLAN_ERROR_INVALID_ARGUMENT, 0) : NULL;
        if (!text)
            validation_no_memory(c);
        if (e) {
            e->tool = c->tool->visible;
            e->text = text;
        }
    }
    if (rc == 0 && n_faults > MAX_FAULTS)
        c->out->n_more += n_faults - MAX_FAULTS;
    rv_err_free(why);
}
