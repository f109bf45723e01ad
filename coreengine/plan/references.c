/* One reference in the arguments of a call: does it point to an earlier call, to a field that is there, of a type that
 * the argument accepts? */
#include "coreengine/plan/plan.h"
#include "coreengine/plan/validate_internal.h"

static const char *shape_text(struct rv_validation *c, const struct rv_shape *shape)
{
    rv_buf text = RV_BUF_INIT(200);

    shape_write(shape, &text);
    return validation_keep(c, &text);
}

/* What the tool wants where the string is. */
static struct rv_shape target_of(struct rv_validation *c, const struct rv_place *at)
{
    struct rv_shape above, here;

    if (!at->up)
        return plan_shape_of(c->tool ? c->tool->input : NULL);
    above = target_of(c, at->up);
    struct rv_plan_accessor a = {at->key ? RV_ACCESSOR_KEY : RV_ACCESSOR_INDEX, rv_str_of(at->key), at->i, NULL};
    return shape_step(&above, &a, &here, c->names) ? here : plan_shape_of(NULL);
}

/* What a reference gives: a field of what a tool returns. */
struct source {
    const char *tool, *field; /* borrowed, as the shape is */
    const struct rv_shape *shape;
};

/* V8 */
static void check_types(struct rv_validation *c, const struct rv_place *at, rv_str template, bool whole,
                        const struct source *from)
{
    struct rv_shape text = {.types = RV_SHAPE_STRING}, target = target_of(c, at);
    const struct rv_shape *given = whole ? from->shape : &text;
    enum rv_shape_fit fit = shape_compare(given, &target);

    c->needs[c->call].n_optional += from->shape->is_optional;
    c->needs[c->call].n_deferred += fit == RV_SHAPE_MAY_FIT || from->shape->is_any;
    if (fit != RV_SHAPE_NEVER_FITS)
        return;
    const char *source_type = shape_text(c, given), *target_type = shape_text(c, &target);
    struct rv_plan_error *e = validation_add(c, RV_PLAN_ERROR_TYPE_MISMATCH, at, template);
    if (e) {
        e->tool = from->tool;
        e->subject = from->field;
        e->source_type = source_type;
        e->target_tool = c->tool->visible; /* without a tool everything fits */
        e->target_argument = e->argument;
        e->target_type = target_type;
    }
}

/* The path of a reference as text, up to its accessor `last`; NULL: the whole path. */
static const char *field_of(struct rv_validation *c, const struct rv_plan_ref *ref, const struct rv_plan_accessor *last)
{
    rv_buf text = RV_BUF_INIT(RV_PLAN_MAX_PATH);

    for (const struct rv_plan_accessor *a = ref->path; a; a = a->next) {
        validation_write_step(a->kind == RV_ACCESSOR_INDEX ? NULL : a->key.ptr, a->index, &text);
        if (a == last)
            break;
    }
    return validation_keep(c, &text);
}

/* A9: a tool that makes artifacts has their id, declared or not. */
static bool is_artifact_id(const struct rv_plan_tool *tool, const struct rv_plan_ref *ref,
                           const struct rv_plan_accessor *a)
{
    return a == ref->path && a->kind != RV_ACCESSOR_INDEX && rv_str_is(a->key, "artifact_id") &&
           shape_artifact_type(tool->output);
}

/* V6, V7, V8 */
static void check_field(struct rv_validation *c, const struct rv_place *at, rv_str template, bool whole,
                        const struct rv_plan_ref *ref, const struct rv_plan_tool *tool)
{
    struct rv_shape from = plan_shape_of(tool->output), to;
    struct rv_plan_error *e;
    int depth = 0;

    if (!tool->output && !c->rules->defer_unschematized) {
        e = validation_add(c, RV_PLAN_ERROR_NO_OUTPUT_SCHEMA, at, template);
        if (e)
            e->tool = tool->visible;
        return;
    }
    for (const struct rv_plan_accessor *a = ref->path; a; a = a->next, from = to) {
        if (depth++ < RV_JSON_MAX_DEPTH && shape_step(&from, a, &to, c->names)) /* no output is deeper */
            continue;
        if (is_artifact_id(tool, ref, a)) {
            to = (struct rv_shape){.types = RV_SHAPE_STRING};
            continue;
        }
        const char *field = field_of(c, ref, a);
        const char *const *names = validation_names(c, c->names);
        e = validation_add(c, RV_PLAN_ERROR_FIELD_NOT_FOUND, at, template);
        if (e) {
            e->tool = tool->visible;
            e->subject = field;
            e->names = names;
            e->n_names = c->names->n;
        }
        return;
    }
    check_types(c, at, template, whole, &(const struct source){tool->visible, field_of(c, ref, NULL), &from});
}

/* A reference to a result that stands: its value is known. */
static void check_done(struct rv_validation *c, const struct rv_place *at, rv_str template, bool whole,
                       const struct rv_plan_ref *ref)
{
    const struct rv_plan_done *done = &c->rules->done[ref->call];
    struct rv_plan_step_output output = {done->usable, done->value, done->artifact_id};
    struct rv_plan_ref first = {0, ref->path};
    rv_buf reason = RV_BUF_INIT(RV_PLAN_MAX_PATH);
    json_object *value = NULL;

    if (!done->usable)
        rv_buf_printf(&reason, "call %zu did not succeed", ref->call);
    if (done->usable && rv_plan_step_look_up(&output, 1, &first, &value, &reason)) {
        struct rv_shape shape = {.types = shape_types_of(value)};
        rv_buf_fini(&reason);
        check_types(c, at, template, whole, &(const struct source){done->tool, field_of(c, ref, NULL), &shape});
        return;
    }
    const char *why = validation_keep(c, &reason);
    struct rv_plan_error *e = validation_add(c, RV_PLAN_ERROR_UNRESOLVED_REFERENCE, at, template);
    if (e)
        e->subject = why;
}

/* V2 to V8 */
void validation_check_ref(struct rv_validation *c, const struct rv_place *at, rv_str template, bool whole,
                          const struct rv_plan_ref *ref)
{
    size_t n_done = c->rules->n_done, own = n_done + c->call, n = n_done + c->plan->n_calls;
    struct rv_plan_error *e;

    if (ref->call == own) {
        validation_add(c, RV_PLAN_ERROR_SELF_REFERENCE, at, template);
    } else if (ref->call > own) {
        e = validation_add(c, ref->call >= n ? RV_PLAN_ERROR_INDEX_OUT_OF_BOUNDS : RV_PLAN_ERROR_FORWARD_REFERENCE, at,
                           template);
        if (e) {
            e->referenced_index = ref->call;
            e->max_index = own == 0 ? SIZE_MAX : own - 1;
        }
    } else if (ref->call < n_done) {
        check_done(c, at, template, whole, ref);
    } else {
        const struct rv_plan_tool *tool = c->tools[ref->call - n_done];
        c->needed[ref->call - n_done] = true;
        if (tool) /* V5: else that call has an error of its own */
            check_field(c, at, template, whole, ref, tool);
    }
}
