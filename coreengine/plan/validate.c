/* Each call is looked at once: its tool, what it has to have, each of its strings, and what is left of its arguments
 * when the references are taken for values that fit. */
#include <stdlib.h>

#include <json-c/linkhash.h>

#include "coreengine/plan/argument.h"
#include "coreengine/plan/resolve.h"
#include "coreengine/plan/shape_internal.h"
#include "coreengine/plan/validate.h"

#define MAX_ARENA  ((size_t)64 << 20)
#define MAX_PATH   ((size_t)2 << 10) /* bytes of a path in an error; a longer one is cut */
#define MAX_FAULTS 64                /* literals of one call that do not fit */

/* Where a value is in the arguments. */
struct place {
    const struct place *up; /* NULL: the arguments themselves */
    const char *key;        /* NULL: an item of a list */
    size_t i;
    int depth;
    size_t order; /* of the value in the document: containers before their members */
};

struct placed {
    struct rv_plan_error e;
    size_t order, number;
};

struct checking {
    const struct rv_plan *plan;
    const rv_plan_catalog *catalog;
    const struct rv_plan_rules *rules;
    struct rv_plan_check *out;
    rv_arena *arena;
    struct placed *errors; /* owned */
    size_t n, cap;
    const struct rv_plan_tool **tools;
    struct rv_plan_needs *needs;
    bool *needed;      /* by this call, of each call */
    json_object *hole; /* in the place of a string with references */
    struct rv_shape_names *names;
    const char **tool_names; /* NULL: not listed yet */
    /* Of this call. */
    size_t call; /* its place in the plan */
    const struct rv_plan_tool *tool;
    size_t order;
    size_t n_refs; /* of the plan so far */
    int rc;
    rv_err **err;
};

static int no_memory(struct checking *c)
{
    if (c->rc == 0)
        c->rc = RV_FAIL(c->err, RV_E_NOMEM, "no memory to validate a plan");
    return c->rc;
}

static void *take(struct checking *c, size_t size)
{
    void *p = rv_arena_alloc(c->arena, size);

    if (!p)
        no_memory(c);
    return p;
}

/* The text of a buffer, kept; of an overlong one its beginning. */
static const char *keep(struct checking *c, rv_buf *text)
{
    rv_str whole = rv_buf_str(text);
    const char *copy = NULL;

    if (text->rc == RV_E_LIMIT)
        whole = rv_utf8_cut(whole, whole.len);
    if (text->rc != RV_E_NOMEM)
        copy = rv_arena_dup(c->arena, whole);
    rv_buf_fini(text);
    if (!copy)
        no_memory(c);
    return copy ? copy : "";
}

/* --- errors --- */

static void write_step(const char *key, size_t i, rv_buf *out)
{
    if (key)
        rv_buf_printf(out, "%s%s", out->len > 0 ? "." : "", key);
    else
        rv_buf_printf(out, "[%zu]", i);
}

static void write_place(const struct place *at, rv_buf *out)
{
    if (at && at->up) {
        write_place(at->up, out);
        write_step(at->key, at->i, out);
    }
}

static const char *path_of(struct checking *c, const struct place *at)
{
    rv_buf path = RV_BUF_INIT(MAX_PATH);

    write_place(at, &path);
    return keep(c, &path);
}

/* A new error of this call, or NULL: there are enough, or memory was short. */
static struct rv_plan_error *add(struct checking *c, enum rv_plan_error_type type, size_t order)
{
    if (c->rc < 0)
        return NULL;
    if (c->n == RV_PLAN_MAX_ERRORS) {
        c->out->n_more++;
        return NULL;
    }
    if (!rv_has_room(&c->errors, &c->cap, c->n + 1, sizeof *c->errors)) {
        no_memory(c);
        return NULL;
    }
    struct placed *p = &c->errors[c->n];
    *p = (struct placed){.order = order, .number = c->n};
    p->e.tool_index = c->rules->n_done + c->call;
    p->e.argument = "";
    p->e.template = RV_STR_LIT("");
    p->e.type = type;
    c->n++;
    return &p->e;
}

/* An error about a string. */
static struct rv_plan_error *add_at(struct checking *c, enum rv_plan_error_type type, const struct place *at,
                                    rv_str template)
{
    const char *path = path_of(c, at);
    struct rv_plan_error *e = add(c, type, at->order);

    if (e) {
        e->argument = path;
        e->template = template;
    }
    return e;
}

static int compare_errors(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->e.tool_index != y->e.tool_index)
        return x->e.tool_index < y->e.tool_index ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* --- one reference --- */

static const char *shape_text(struct checking *c, const struct rv_shape *shape)
{
    rv_buf text = RV_BUF_INIT(200);

    rv_shape_write(shape, &text);
    return keep(c, &text);
}

/* What the tool wants where the string is. */
static struct rv_shape target_of(struct checking *c, const struct place *at)
{
    struct rv_shape above, here;

    if (!at->up)
        return rv_shape_of(c->tool ? c->tool->input : NULL);
    above = target_of(c, at->up);
    struct rv_accessor a = {at->key ? RV_ACCESSOR_KEY : RV_ACCESSOR_INDEX, rv_str_of(at->key), at->i, NULL};
    return rv_shape_step(&above, &a, &here, c->names) ? here : rv_shape_of(NULL);
}

/* V8 */
static void check_types(struct checking *c, const struct place *at, rv_str template, bool whole, const char *tool,
                        const char *field, const struct rv_shape *source)
{
    struct rv_shape text = {.types = RV_SHAPE_STRING}, target = target_of(c, at);
    const struct rv_shape *given = whole ? source : &text;
    enum rv_shape_fit fit = rv_shape_compare(given, &target);

    c->needs[c->call].n_optional += source->is_optional;
    c->needs[c->call].n_deferred += fit == RV_SHAPE_MAY_FIT || source->is_any;
    if (fit != RV_SHAPE_NEVER_FITS)
        return;
    const char *source_type = shape_text(c, given), *target_type = shape_text(c, &target);
    struct rv_plan_error *e = add_at(c, RV_PLAN_ERROR_TYPE_MISMATCH, at, template);
    if (e) {
        e->tool = tool;
        e->subject = field;
        e->source_type = source_type;
        e->target_tool = c->tool->visible; /* without a tool everything fits */
        e->target_argument = e->argument;
        e->target_type = target_type;
    }
}

/* The path of a reference as text, up to its accessor `last`; NULL: all of it. */
static const char *field_of(struct checking *c, const struct rv_ref *ref, const struct rv_accessor *last)
{
    rv_buf text = RV_BUF_INIT(MAX_PATH);

    for (const struct rv_accessor *a = ref->path; a; a = a->next) {
        write_step(a->kind == RV_ACCESSOR_INDEX ? NULL : a->key.ptr, a->index, &text);
        if (a == last)
            break;
    }
    return keep(c, &text);
}

static const char *const *copy_names(struct checking *c, const struct rv_shape_names *names)
{
    const char **copy = take(c, (names->n + 1) * sizeof *copy);

    for (size_t i = 0; copy && i < names->n; i++)
        copy[i] = names->items[i];
    return copy;
}

/* A9: a tool that makes artifacts has their id, declared or not. */
static bool is_artifact_id(const struct rv_plan_tool *tool, const struct rv_ref *ref, const struct rv_accessor *a)
{
    return a == ref->path && a->kind != RV_ACCESSOR_INDEX && rv_str_is(a->key, "artifact_id") &&
           rv_shape_artifact_type(tool->output);
}

/* V6, V7, V8 */
static void check_field(struct checking *c, const struct place *at, rv_str template, bool whole,
                        const struct rv_ref *ref, const struct rv_plan_tool *tool)
{
    struct rv_shape from = rv_shape_of(tool->output), to;
    struct rv_plan_error *e;

    if (!tool->output && !c->rules->defer_unschematized) {
        e = add_at(c, RV_PLAN_ERROR_NO_OUTPUT_SCHEMA, at, template);
        if (e)
            e->tool = tool->visible;
        return;
    }
    for (const struct rv_accessor *a = ref->path; a; a = a->next, from = to) {
        if (rv_shape_step(&from, a, &to, c->names))
            continue;
        if (is_artifact_id(tool, ref, a)) {
            to = (struct rv_shape){.types = RV_SHAPE_STRING};
            continue;
        }
        const char *field = field_of(c, ref, a);
        const char *const *names = copy_names(c, c->names);
        e = add_at(c, RV_PLAN_ERROR_FIELD_NOT_FOUND, at, template);
        if (e) {
            e->tool = tool->visible;
            e->subject = field;
            e->names = names;
            e->n_names = c->names->n;
        }
        return;
    }
    check_types(c, at, template, whole, tool->visible, field_of(c, ref, NULL), &from);
}

/* A reference to a result that stands: its value is known. */
static void check_done(struct checking *c, const struct place *at, rv_str template, bool whole,
                       const struct rv_ref *ref)
{
    const struct rv_plan_done *done = &c->rules->done[ref->call];
    struct rv_step_output output = {done->usable, done->value, done->artifact_id};
    struct rv_ref first = {0, ref->path};
    rv_buf reason = RV_BUF_INIT(MAX_PATH);
    json_object *value = NULL;

    if (!done->usable)
        rv_buf_printf(&reason, "call %zu did not succeed", ref->call);
    if (done->usable && rv_step_look_up(&output, 1, &first, &value, &reason)) {
        struct rv_shape shape = {.types = rv_shape_types_of(value)};
        rv_buf_fini(&reason);
        check_types(c, at, template, whole, done->tool, field_of(c, ref, NULL), &shape);
        return;
    }
    const char *why = keep(c, &reason);
    struct rv_plan_error *e = add_at(c, RV_PLAN_ERROR_UNRESOLVED_REFERENCE, at, template);
    if (e)
        e->subject = why;
}

/* V2 to V8 */
static void check_ref(struct checking *c, const struct place *at, rv_str template, bool whole, const struct rv_ref *ref)
{
    size_t n_done = c->rules->n_done, own = n_done + c->call, n = n_done + c->plan->n_calls;
    struct rv_plan_error *e;

    if (ref->call == own) {
        add_at(c, RV_PLAN_ERROR_SELF_REFERENCE, at, template);
    } else if (ref->call > own) {
        e = add_at(c, ref->call >= n ? RV_PLAN_ERROR_INDEX_OUT_OF_BOUNDS : RV_PLAN_ERROR_FORWARD_REFERENCE, at,
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

/* --- strings --- */

static enum rv_plan_error_type type_of_fault(const char *fault)
{
    return rv_str_is(rv_str_of(fault), "embedded_reference")        ? RV_PLAN_ERROR_EMBEDDED_REFERENCE
           : rv_str_is(rv_str_of(fault), "invalid_template_syntax") ? RV_PLAN_ERROR_INVALID_TEMPLATE_SYNTAX
                                                                    : RV_PLAN_ERROR_TOO_MANY_REFERENCES;
}

/* T9: one error for the plan, at the first reference that is too many. */
static void note_too_many(struct checking *c, const struct place *at, rv_str template)
{
    struct rv_plan_error *e = add_at(c, RV_PLAN_ERROR_TOO_MANY_REFERENCES, at, template);

    if (e)
        e->max = RV_PLAN_MAX_REFS;
}

/* The text of a string without references: escapes are undone. */
static json_object *literal_of(struct checking *c, const struct rv_argument *t, json_object *string)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *value = NULL;

    if (!t->first || (!t->first->next && t->first->text.len == rv_json_str(string).len))
        return json_object_get(string);
    for (const struct rv_piece *p = t->first; p; p = p->next)
        rv_buf_add_str(&text, p->text);
    if (text.rc == 0)
        value = json_object_new_string_len(rv_buf_cstr(&text), (int)text.len);
    rv_buf_fini(&text);
    if (!value)
        no_memory(c);
    return value;
}

/* The string with which the rest of the arguments is checked. */
static json_object *check_string(struct checking *c, const struct place *at, json_object *string)
{
    rv_str text = rv_json_str(string);
    struct rv_argument t;

    if (!memchr(text.ptr, '$', text.len))
        return json_object_get(string);
    if (rv_argument_read(text, c->arena, &t, c->err) < 0) {
        c->rc = RV_E_NOMEM;
        return NULL;
    }
    if (t.fault) {
        enum rv_plan_error_type type = type_of_fault(t.fault);
        if (type == RV_PLAN_ERROR_TOO_MANY_REFERENCES)
            note_too_many(c, at, text);
        else
            add_at(c, type, at, text);
        return json_object_get(c->hole);
    }
    if (t.n_refs == 0)
        return literal_of(c, &t, string);
    c->needs[c->call].n_refs += t.n_refs;
    for (const struct rv_piece *p = t.first; p; p = p->next) {
        if (!p->ref)
            continue;
        if (c->n_refs++ < RV_PLAN_MAX_REFS)
            check_ref(c, at, text, t.whole, p->ref);
        else if (c->n_refs == RV_PLAN_MAX_REFS + 1)
            note_too_many(c, at, text);
    }
    return json_object_get(c->hole);
}

static json_object *check_value(struct checking *c, struct place *at, json_object *value);

static void check_members(struct checking *c, const struct place *at, json_object *value, json_object *copy)
{
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; c->rc == 0 && i < json_object_array_length(value); i++) {
            struct place here = {at, NULL, i, at->depth + 1, 0};
            json_object *child = check_value(c, &here, json_object_array_get_idx(value, i));
            if (c->rc == 0 && rv_json_push_ref(copy, child, c->err) < 0)
                c->rc = RV_E_NOMEM;
            json_object_put(child);
        }
        return;
    }
    json_object_object_foreach (value, key, member) {
        struct place here = {at, key, 0, at->depth + 1, 0};
        json_object *child = c->rc == 0 ? check_value(c, &here, member) : NULL;
        if (c->rc == 0 && rv_json_set_ref(copy, key, child, c->err) < 0)
            c->rc = RV_E_NOMEM;
        json_object_put(child);
    }
}

/* A copy with holes; the caller's. */
static json_object *check_value(struct checking *c, struct place *at, json_object *value)
{
    bool is_object = json_object_is_type(value, json_type_object);

    at->order = c->order++;
    if (json_object_is_type(value, json_type_string))
        return check_string(c, at, value);
    if (!is_object && !json_object_is_type(value, json_type_array))
        return json_object_get(value);
    if (at->depth >= RV_PLAN_MAX_DEPTH) {
        struct rv_plan_error *e = add_at(c, RV_PLAN_ERROR_INVALID_ARGUMENT, at, RV_STR_LIT(""));
        if (e) {
            e->tool = c->tool ? c->tool->visible : "";
            e->text = "the arguments have more than 64 levels";
        }
        return json_object_get(c->hole);
    }
    json_object *copy = is_object ? json_object_new_object() : json_object_new_array();
    if (copy)
        check_members(c, at, value, copy);
    else
        no_memory(c);
    return copy;
}

/* --- V9, V10 --- */

static bool is_required(json_object *input, const char *name)
{
    json_object *required = rv_json_get_arr(input, "required");

    for (size_t i = 0; required && i < json_object_array_length(required); i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(required, i)), name))
            return true;
    return false;
}

static void check_required(struct checking *c, json_object *arguments)
{
    json_object *required = c->tool->input && json_object_is_type(c->tool->input, json_type_object)
                                ? rv_json_get_arr(c->tool->input, "required")
                                : NULL;

    for (size_t i = 0; required && i < json_object_array_length(required); i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(required, i));
        if (json_object_object_get_ex(arguments, name, NULL))
            continue;
        struct rv_plan_error *e = add(c, RV_PLAN_ERROR_MISSING_REQUIRED_ARGUMENT, 0);
        if (e) {
            e->tool = c->tool->visible;
            e->subject = name;
        }
    }
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
    struct checking *c;
    json_object *arguments;
};

/* What the schema checker found. */
static void note_fault(void *self, const struct rv_schema_fault *fault)
{
    struct literals *l = self;
    struct checking *c = l->c;
    json_object *at = l->arguments;
    rv_buf path = RV_BUF_INIT(MAX_PATH);
    struct rv_shape_names names = {0};
    size_t order = 0;

    if (fault->kind == RV_SCHEMA_FAULT_MISSING && fault->n_steps == 0 && is_required(c->tool->input, fault->name))
        return; /* V9 has said so */
    for (size_t i = 0; i < fault->n_steps; i++) {
        at = enter(at, fault->steps[i].key, fault->steps[i].i, &order);
        write_step(fault->steps[i].key, fault->steps[i].i, &path);
    }
    bool is_unknown = fault->kind == RV_SCHEMA_FAULT_UNKNOWN;
    if (is_unknown) {
        enter(at, fault->name, 0, &order);
        write_step(fault->name, 0, &path);
    }
    const char *argument = keep(c, &path), *name = fault->name ? rv_arena_dup(c->arena, rv_str_of(fault->name)) : NULL;
    const char *text = rv_arena_dup(c->arena, rv_str_of(fault->text));
    if (!text || (fault->name && !name)) {
        no_memory(c);
        return;
    }
    if (fault->properties)
        rv_shape_note_names(&names, fault->properties);
    const char *const *allowed = is_unknown ? copy_names(c, &names) : NULL;
    struct rv_plan_error *e =
        add(c, is_unknown ? RV_PLAN_ERROR_UNKNOWN_ARGUMENT : RV_PLAN_ERROR_INVALID_ARGUMENT, order);
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
static void check_literals(struct checking *c, json_object *arguments)
{
    struct literals literals = {c, arguments};
    struct rv_schema_watch watch = {c->hole, MAX_FAULTS, note_fault, &literals};
    rv_err *why = NULL;
    size_t n_faults = 0;

    if (!c->tool->input_schema || c->rc < 0)
        return;
    int rc = rv_schema_watch(c->tool->input_schema, arguments, &watch, &n_faults, &why);
    if (rc == RV_E_NOMEM) {
        no_memory(c);
    } else if (rc < 0) {
        const char *text = rv_arena_dup(c->arena, rv_str_of(rv_err_text(why)));
        struct rv_plan_error *e = text ? add(c, RV_PLAN_ERROR_INVALID_ARGUMENT, 0) : NULL;
        if (!text)
            no_memory(c);
        if (e) {
            e->tool = c->tool->visible;
            e->text = text;
        }
    }
    if (rc == 0 && n_faults > MAX_FAULTS)
        c->out->n_more += n_faults - MAX_FAULTS;
    rv_err_free(why);
}

/* --- calls --- */

static const char *const *list_tools(struct checking *c)
{
    if (!c->tool_names)
        c->tool_names = take(c, (c->catalog->n + 1) * sizeof *c->tool_names);
    for (size_t i = 0; c->tool_names && i < c->catalog->n; i++)
        c->tool_names[i] = c->catalog->tools[i].visible;
    return c->tool_names;
}

static const char *const *list_candidates(struct checking *c, rv_str name, size_t n)
{
    const char **names = take(c, n * sizeof *names);

    for (size_t i = 0; names && i < n; i++)
        names[i] = rv_plan_candidate(c->catalog, name, i)->qualified;
    return names;
}

static void find_tool(struct checking *c, rv_str name)
{
    size_t n = 0;

    c->tool = c->tools[c->call] = rv_plan_find(c->catalog, name, &n);
    if (c->tool)
        return;
    const char *copy = rv_arena_dup(c->arena, rv_utf8_cut(name, MAX_PATH));
    const char *const *names = n == 0 ? list_tools(c) : list_candidates(c, name, n);
    if (!copy)
        no_memory(c);
    struct rv_plan_error *e = add(c, n == 0 ? RV_PLAN_ERROR_UNKNOWN_TOOL : RV_PLAN_ERROR_AMBIGUOUS_TOOL, 0);
    if (e) {
        e->tool = copy;
        e->names = names;
        e->n_names = n == 0 ? c->catalog->n : n;
    }
}

static void refuse_option(struct checking *c, const char *option, const char *why)
{
    struct rv_plan_error *e = add(c, RV_PLAN_ERROR_INVALID_CALL_OPTION, 0);

    if (e) {
        e->subject = option;
        e->text = why;
    }
}

static void check_options(struct checking *c, const struct rv_plan_call *call)
{
    size_t n_done = c->rules->n_done, n = 0;

    if (call->on_failure && !call->continues && !rv_str_is(rv_json_str(call->on_failure), "halt"))
        refuse_option(c, "on_failure", "use \"halt\" or \"continue\"");
    if (json_object_is_type(call->after, json_type_array))
        n = json_object_array_length(call->after);
    else if (call->after)
        refuse_option(c, "after", "use a list of indices of earlier calls");
    for (size_t i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(call->after, i);
        int64_t index = rv_json_is_int(item) ? json_object_get_int64(item) : -1;
        if (index < 0 || (uint64_t)index >= n_done + c->call) {
            refuse_option(c, "after", "each item has to be the index of an earlier call");
            return;
        }
        if ((size_t)index >= n_done)
            c->needed[(size_t)index - n_done] = true;
    }
}

/* The marked calls, ascending. */
static const size_t *list_needed(struct checking *c, size_t *n)
{
    size_t *calls;

    *n = 0;
    for (size_t i = 0; i < c->call; i++)
        *n += c->needed[i];
    calls = take(c, (*n + 1) * sizeof *calls);
    for (size_t i = 0, k = 0; calls && i < c->call; i++)
        if (c->needed[i])
            calls[k++] = i;
    return calls;
}

static void note_needs(struct checking *c)
{
    struct rv_plan_needs *needs = &c->needs[c->call];

    needs->calls = list_needed(c, &needs->n);
    for (size_t i = 0; c->rc == 0 && i < needs->n; i++) {
        const struct rv_plan_needs *other = &c->needs[needs->calls[i]];
        for (size_t k = 0; k < other->n_all; k++)
            c->needed[other->all[k]] = true;
    }
    needs->all = list_needed(c, &needs->n_all);
}

static void check_call(struct checking *c, const struct rv_plan_call *call)
{
    struct place top = {0};

    memset(c->needed, 0, c->plan->n_calls * sizeof *c->needed);
    c->order = 0;
    find_tool(c, call->tool);
    check_options(c, call);
    if (!call->arguments) {
        struct rv_plan_error *e = add(c, RV_PLAN_ERROR_ARGUMENTS_NOT_OBJECT, 0);
        if (e)
            e->subject = call->actual_type;
    } else {
        if (c->tool)
            check_required(c, call->arguments);
        json_object *rest = check_value(c, &top, call->arguments);
        if (c->tool)
            check_literals(c, rest);
        json_object_put(rest);
    }
    note_needs(c);
}

/* --- the plan --- */

static void note_fault_of_plan(struct checking *c)
{
    const struct rv_plan *p = c->plan;
    enum rv_plan_error_type type = rv_str_is(rv_str_of(p->fault), "empty_plan")       ? RV_PLAN_ERROR_EMPTY_PLAN
                                   : rv_str_is(rv_str_of(p->fault), "too_many_calls") ? RV_PLAN_ERROR_TOO_MANY_CALLS
                                                                                      : RV_PLAN_ERROR_PLAN_MALFORMED;
    struct rv_plan_error *e = add(c, type, 0);

    if (!e)
        return;
    e->tool_index = 0;
    e->subject = p->reason;
    e->text = p->detail;
    e->count = p->n_given;
    e->max = p->max_calls;
}

static void check_calls(struct checking *c)
{
    size_t n = c->plan->n_calls;

    c->tools = take(c, (n + 1) * sizeof *c->tools);
    c->needs = take(c, (n + 1) * sizeof *c->needs);
    c->needed = take(c, n + 1);
    c->names = take(c, sizeof *c->names);
    c->hole = json_object_new_string("");
    if (!c->hole || !c->tools || !c->needs || !c->needed || !c->names) {
        no_memory(c);
        return;
    }
    c->out->tools = c->tools;
    c->out->needs = c->needs;
    c->out->n_calls = n;
    c->out->n_done = c->rules->n_done;
    for (c->call = 0; c->rc == 0 && c->call < n; c->call++)
        check_call(c, &c->plan->calls[c->call]);
}

static void publish(struct checking *c)
{
    struct rv_plan_error *errors = take(c, (c->n + 1) * sizeof *errors);

    if (!errors)
        return;
    if (c->n > 1)
        qsort(c->errors, c->n, sizeof *c->errors, compare_errors);
    for (size_t i = 0; i < c->n; i++) {
        errors[i] = c->errors[i].e;
        if (errors[i].type == RV_PLAN_ERROR_TOO_MANY_REFERENCES)
            errors[i].count = c->n_refs;
    }
    c->out->errors = errors;
    c->out->n_errors = c->n;
}

int rv_plan_validate(const struct rv_plan *plan, const rv_plan_catalog *catalog, const struct rv_plan_rules *rules,
                     struct rv_plan_check *out, rv_err **err)
{
    static const struct rv_plan_rules defaults;
    struct checking c = {.plan = plan, .catalog = catalog, .rules = rules ? rules : &defaults, .out = out, .err = err};

    *out = (struct rv_plan_check){.arena = rv_arena_new(MAX_ARENA)};
    c.arena = out->arena;
    if (!c.arena)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to validate a plan");
    if (plan->fault)
        note_fault_of_plan(&c);
    else if (!plan->direct)
        check_calls(&c);
    if (c.rc == 0)
        publish(&c);
    json_object_put(c.hole);
    free(c.errors);
    return c.rc;
}

void rv_plan_check_fini(struct rv_plan_check *check)
{
    rv_arena_free(check->arena);
    *check = (struct rv_plan_check){0};
}
