/* Each call is looked at once: its tool, what it has to have, each of its strings, and what is left of its arguments
 * when the references are taken for values that fit. */
#include <stdlib.h>

#include <json-c/linkhash.h>

#include "coreengine/base/base.h"
#include "coreengine/plan/validate_internal.h"

#define MAX_ARENA ((size_t)64 << 20) /* bytes of types: a plan of RV_PLAN_MAX_BYTES needs less */

int validation_no_memory(struct rv_validation *c)
{
    if (c->rc == 0)
        c->rc = RV_FAIL(c->err, RV_E_NOMEM, "no memory to validate a plan");
    return c->rc;
}

static void *take(struct rv_validation *c, size_t size)
{
    void *p = rv_arena_alloc(c->arena, size);

    if (!p)
        validation_no_memory(c);
    return p;
}

const char *validation_keep(struct rv_validation *c, rv_buf *text)
{
    rv_str whole = rv_buf_str(text);
    const char *copy = NULL;

    if (text->rc == RV_E_LIMIT)
        whole = rv_utf8_cut(whole, whole.len);
    if (text->rc != RV_E_NOMEM)
        copy = rv_arena_dup(c->arena, whole);
    rv_buf_fini(text);
    if (!copy)
        validation_no_memory(c);
    return copy ? copy : "";
}

/* --- errors --- */

void validation_write_step(const char *key, size_t i, rv_buf *out)
{
    if (key)
        rv_buf_printf(out, "%s%s", out->len > 0 ? "." : "", key);
    else
        rv_buf_printf(out, "[%zu]", i);
}

static void write_place(const struct rv_place *at, rv_buf *out)
{
    if (at && at->up) {
        write_place(at->up, out);
        validation_write_step(at->key, at->i, out);
    }
}

static const char *path_of(struct rv_validation *c, const struct rv_place *at)
{
    rv_buf path = RV_BUF_INIT(RV_PLAN_MAX_PATH);

    write_place(at, &path);
    return validation_keep(c, &path);
}

struct rv_plan_error *validation_add_plain(struct rv_validation *c, enum rv_plan_error_type type, size_t order)
{
    if (c->rc < 0)
        return NULL;
    if (c->n == RV_PLAN_MAX_ERRORS) {
        c->out->n_more++;
        return NULL;
    }
    if (!rv_has_room(&c->errors, &c->cap, c->n + 1, sizeof *c->errors)) {
        validation_no_memory(c);
        return NULL;
    }
    struct rv_plan_placed_error *p = &c->errors[c->n];
    *p = (struct rv_plan_placed_error){.order = order, .number = c->n};
    p->e.tool_index = c->rules->n_done + c->call;
    p->e.argument = "";
    p->e.written = RV_STR_LIT("");
    p->e.type = type;
    c->n++;
    return &p->e;
}

struct rv_plan_error *validation_add(struct rv_validation *c, enum rv_plan_error_type type, const struct rv_place *at,
                                     rv_str template)
{
    const char *path = path_of(c, at);
    struct rv_plan_error *e = validation_add_plain(c, type, at->order);

    if (e) {
        e->argument = path;
        e->written = template;
    }
    return e;
}

static int compare_errors(const void *a, const void *b)
{
    const struct rv_plan_placed_error *x = a, *y = b;

    if (x->e.tool_index != y->e.tool_index)
        return x->e.tool_index < y->e.tool_index ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

const char *const *validation_names(struct rv_validation *c, const struct rv_shape_names *names)
{
    const char **copy = take(c, (names->n + 1) * sizeof *copy);

    for (size_t i = 0; copy && i < names->n; i++)
        copy[i] = names->items[i];
    return copy;
}

/* --- strings --- */

/* T9: one error for the plan, at the first reference that is too many. */
static void note_too_many(struct rv_validation *c, const struct rv_place *at, rv_str template)
{
    struct rv_plan_error *e = validation_add(c, RV_PLAN_ERROR_TOO_MANY_REFERENCES, at, template);

    if (e)
        e->max = RV_PLAN_MAX_REFS;
}

/* The text of a string without references: escapes are undone. */
static json_object *literal_of(struct rv_validation *c, const struct rv_plan_argument *t, json_object *string)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *value = NULL;

    if (!t->first || (!t->first->next && t->first->text.len == rv_json_str(string).len))
        return json_object_get(string);
    for (const struct rv_plan_piece *p = t->first; p; p = p->next)
        rv_buf_add_str(&text, p->text);
    if (text.rc == 0)
        value = json_object_new_string_len(rv_buf_cstr(&text), (int)text.len);
    rv_buf_fini(&text);
    if (!value)
        validation_no_memory(c);
    return value;
}

/* The string with which the rest of the arguments is checked. */
static json_object *check_string(struct rv_validation *c, const struct rv_place *at, json_object *string)
{
    rv_str text = rv_json_str(string);
    struct rv_plan_argument t;

    if (!memchr(text.ptr, '$', text.len))
        return json_object_get(string);
    c->rc = rv_plan_argument_read(text, c->arena, &t, c->err);
    if (c->rc < 0)
        return NULL;
    if (t.fault) {
        if (t.fault == RV_PLAN_ERROR_TOO_MANY_REFERENCES)
            note_too_many(c, at, text);
        else
            validation_add(c, t.fault, at, text);
        return json_object_get(c->hole);
    }
    if (t.n_refs == 0)
        return literal_of(c, &t, string);
    c->needs[c->call].n_refs += t.n_refs;
    for (const struct rv_plan_piece *p = t.first; p; p = p->next) {
        if (!p->ref)
            continue;
        if (c->n_refs++ < RV_PLAN_MAX_REFS)
            validation_check_ref(c, at, text, t.whole, p->ref);
        else if (c->n_refs == RV_PLAN_MAX_REFS + 1)
            note_too_many(c, at, text);
    }
    return json_object_get(c->hole);
}

static json_object *check_value(struct rv_validation *c, struct rv_place *at, json_object *value);

static void check_members(struct rv_validation *c, const struct rv_place *at, json_object *value, json_object *copy)
{
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; c->rc == 0 && i < json_object_array_length(value); i++) {
            struct rv_place here = {at, NULL, i, at->depth + 1, 0};
            json_object *child = check_value(c, &here, json_object_array_get_idx(value, i));
            if (c->rc == 0)
                c->rc = rv_json_push_ref(copy, child, c->err);
            json_object_put(child);
        }
        return;
    }
    json_object_object_foreach (value, key, member) {
        struct rv_place here = {at, key, 0, at->depth + 1, 0};
        json_object *child = c->rc == 0 ? check_value(c, &here, member) : NULL;
        if (c->rc == 0)
            c->rc = rv_json_set_ref(copy, key, child, c->err);
        json_object_put(child);
    }
}

/* A copy with holes; the caller's. */
static json_object *check_value(struct rv_validation *c, struct rv_place *at, json_object *value)
{
    bool is_object = json_object_is_type(value, json_type_object);

    at->order = c->order++;
    if (json_object_is_type(value, json_type_string))
        return check_string(c, at, value);
    if (!is_object && !json_object_is_type(value, json_type_array))
        return json_object_get(value);
    if (at->depth >= RV_PLAN_MAX_DEPTH) {
        struct rv_plan_error *e = validation_add(c, RV_PLAN_ERROR_INVALID_ARGUMENT, at, RV_STR_LIT(""));
        if (e) {
            e->tool = c->tool ? c->tool->visible : "";
            e->text = "the arguments have more than " RV_LIMIT_TEXT(RV_PLAN_MAX_DEPTH) " levels";
        }
        return json_object_get(c->hole);
    }
    json_object *copy = is_object ? json_object_new_object() : json_object_new_array();
    if (copy)
        check_members(c, at, value, copy);
    else
        validation_no_memory(c);
    return copy;
}

/* --- calls --- */

static const char *const *list_tools(struct rv_validation *c)
{
    if (!c->tool_names)
        c->tool_names = take(c, (c->catalog->n + 1) * sizeof *c->tool_names);
    for (size_t i = 0; c->tool_names && i < c->catalog->n; i++)
        c->tool_names[i] = c->catalog->tools[i].visible;
    return c->tool_names;
}

static const char *const *list_candidates(struct rv_validation *c, rv_str name, size_t n)
{
    const char **names = take(c, n * sizeof *names);

    for (size_t i = 0; names && i < n; i++)
        names[i] = rv_plan_candidate_at(c->catalog, name, i)->qualified;
    return names;
}

static void find_tool(struct rv_validation *c, rv_str name)
{
    size_t n = 0;

    c->tool = c->tools[c->call] = rv_plan_find(c->catalog, name, &n);
    if (c->tool)
        return;
    const char *copy = rv_arena_dup(c->arena, rv_utf8_cut(name, RV_PLAN_MAX_PATH));
    const char *const *names = n == 0 ? list_tools(c) : list_candidates(c, name, n);
    if (!copy)
        validation_no_memory(c);
    struct rv_plan_error *e =
        validation_add_plain(c, n == 0 ? RV_PLAN_ERROR_UNKNOWN_TOOL : RV_PLAN_ERROR_AMBIGUOUS_TOOL, 0);
    if (e) {
        e->tool = copy;
        e->names = names;
        e->n_names = n == 0 ? c->catalog->n : n;
    }
}

static void refuse_option(struct rv_validation *c, const char *option, const char *why)
{
    struct rv_plan_error *e = validation_add_plain(c, RV_PLAN_ERROR_INVALID_CALL_OPTION, 0);

    if (e) {
        e->subject = option;
        e->text = why;
    }
}

static void check_options(struct rv_validation *c, const struct rv_plan_call *call)
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

/* Indices of the calls that are needed, ascending, with room for one more; NULL: no memory. */
static const size_t *list_needed(struct rv_validation *c, size_t *n)
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

static void note_needs(struct rv_validation *c)
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

/* V9: the required arguments of this call are there. */
static void check_required(struct rv_validation *c, json_object *arguments)
{
    json_object *required = c->tool->input && json_object_is_type(c->tool->input, json_type_object)
                                ? rv_json_get_arr(c->tool->input, "required")
                                : NULL;

    for (size_t i = 0; required && i < json_object_array_length(required); i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(required, i));
        if (json_object_object_get_ex(arguments, name, NULL))
            continue;
        struct rv_plan_error *e = validation_add_plain(c, RV_PLAN_ERROR_MISSING_REQUIRED_ARGUMENT, 0);
        if (e) {
            e->tool = c->tool->visible;
            e->subject = name;
        }
    }
}

static void check_call(struct rv_validation *c, const struct rv_plan_call *call)
{
    struct rv_place top = {0};

    memset(c->needed, 0, c->plan->n_calls * sizeof *c->needed);
    c->order = 0;
    find_tool(c, call->tool);
    check_options(c, call);
    if (!call->arguments) {
        struct rv_plan_error *e = validation_add_plain(c, RV_PLAN_ERROR_ARGUMENTS_NOT_OBJECT, 0);
        if (e)
            e->subject = call->actual_type;
    } else {
        if (c->tool)
            check_required(c, call->arguments);
        json_object *rest = check_value(c, &top, call->arguments);
        if (c->tool)
            validation_check_literals(c, rest);
        json_object_put(rest);
    }
    note_needs(c);
}

/* --- the plan --- */

static void note_fault_of_plan(struct rv_validation *c)
{
    const struct rv_plan *p = c->plan;
    struct rv_plan_error *e = validation_add_plain(c, p->fault, 0);

    if (!e)
        return;
    e->tool_index = 0;
    e->subject = p->reason;
    e->text = p->detail;
    e->count = p->n_given;
    e->max = p->max_calls;
}

static void check_calls(struct rv_validation *c)
{
    size_t n = c->plan->n_calls;

    c->tools = take(c, (n + 1) * sizeof *c->tools);
    c->needs = take(c, (n + 1) * sizeof *c->needs);
    c->needed = take(c, n + 1);
    c->names = take(c, sizeof *c->names);
    c->hole = json_object_new_string("");
    if (!c->hole || !c->tools || !c->needs || !c->needed || !c->names) {
        validation_no_memory(c);
        return;
    }
    c->out->tools = c->tools;
    c->out->needs = c->needs;
    c->out->n_calls = n;
    c->out->n_done = c->rules->n_done;
    for (c->call = 0; c->rc == 0 && c->call < n; c->call++)
        check_call(c, &c->plan->calls[c->call]);
}

static void publish(struct rv_validation *c)
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
    struct rv_validation c = {
        .plan = plan, .catalog = catalog, .rules = rules ? rules : &defaults, .out = out, .err = err};

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
