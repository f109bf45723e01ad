/* A value against a compiled schema. Two modes: a quiet question (alternatives), which ends at the first fault, and the
 * loud run, which lists every fault with its place. A value that fits costs no allocation. */
#include <json-c/linkhash.h>

#include "coreengine/tools/schema_internal.h"

/* Faults: their list, and what they say: the place, what was expected, what was found, each short enough for a model's
 * or a person's eye. */

#define MAX_FAULT  400 /* bytes of one fault: five lines of a terminal; longer ones are cut */
#define MAX_VALUE  60  /* bytes of a value shown: the fault stays on one line or two */
#define MAX_LISTED 8   /* names or values listed of many: they fit MAX_FAULT with MAX_VALUE each, mostly */
#define MAX_FRAMES 64  /* levels of a place shown; deeper ones start with "..." */

static void write_path(const struct rv_schema_path *path, rv_buf *b)
{
    const struct rv_schema_path *frames[MAX_FRAMES];
    size_t n = 0;

    if (!path || !path->up) {
        rv_buf_puts(b, "(root)");
        return;
    }
    for (; path->up && n < MAX_FRAMES; path = path->up)
        frames[n++] = path;
    if (path->up)
        rv_buf_puts(b, "...");
    while (n-- > 0) {
        const char *p = frames[n]->key;
        rv_buf_putc(b, '/');
        if (!p)
            rv_buf_printf(b, "%zu", frames[n]->i);
        for (; p && *p; p++) {
            if (*p == '~')
                rv_buf_puts(b, "~0");
            else if (*p == '/')
                rv_buf_puts(b, "~1");
            else
                rv_buf_putc(b, *p);
        }
    }
}

/* short JSON */
static void write_value(json_object *v, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);
    rv_str s = rv_json_str(v);

    switch (json_object_get_type(v)) {
    case json_type_string:
        if (s.len <= MAX_VALUE) {
            rv_jw_str(&w, s);
            return;
        }
        rv_jw_str(&w, rv_utf8_cut(s, MAX_VALUE));
        rv_buf_puts(b, "...");
        return;
    case json_type_array:
        rv_buf_puts(b, json_object_array_length(v) ? "[...]" : "[]");
        return;
    case json_type_object:
        rv_buf_puts(b, json_object_object_length(v) ? "{...}" : "{}");
        return;
    case json_type_null:
    case json_type_boolean:
    case json_type_int:
    case json_type_double:
        break;
    }
    rv_jw_value(&w, v);
}

static void write_found(json_object *v, rv_buf *b)
{
    rv_buf_printf(b, "found %s", rv_json_type_text(v));
    if (!v || json_object_is_type(v, json_type_array) || json_object_is_type(v, json_type_object))
        return;
    rv_buf_putc(b, ' ');
    write_value(v, b);
}

void tools_schema_write_types(unsigned types, rv_buf *b)
{
    static const char *const words[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    bool is_first = true;
    size_t i;

    for (i = RV_COUNT(words); i-- > 0;) { /* "string or null" reads better than "null or string" */
        if (!(types & (1u << i)))
            continue;
        if (!is_first)
            rv_buf_puts(b, " or ");
        rv_buf_puts(b, words[i]);
        is_first = false;
    }
}

static void write_values(json_object *values, rv_buf *b)
{
    size_t i, n = json_object_array_length(values);

    for (i = 0; i < n && i < MAX_LISTED; i++) {
        if (i)
            rv_buf_puts(b, ", ");
        write_value(json_object_array_get_idx(values, i), b);
    }
    if (n > MAX_LISTED)
        rv_buf_printf(b, " or one of %zu more", n - MAX_LISTED);
}

void tools_schema_write_expected(const struct rv_schema_node *n, rv_buf *b)
{
    while (n->target && !n->types && !n->enum_values && !n->has_const)
        n = n->target; /* ends: linking refused cycles */
    if (n->is_never) {
        rv_buf_puts(b, "nothing");
    } else if (n->has_const) {
        write_value(n->const_value, b);
    } else if (n->enum_values) {
        if (json_object_array_length(n->enum_values) > 1)
            rv_buf_puts(b, "one of ");
        write_values(n->enum_values, b);
    } else if ((!n->types || n->types == RV_SCHEMA_OBJECT) && n->required && json_object_array_length(n->required)) {
        rv_buf_puts(b, "object with ");
        write_values(n->required, b);
    } else if (n->types) {
        tools_schema_write_types(n->types, b);
        if (n->format)
            rv_buf_printf(b, " (%s)", n->format->name);
    } else if (n->title) {
        rv_buf_add_str(b, rv_utf8_cut(rv_str_of(n->title), MAX_VALUE));
    } else {
        rv_buf_printf(b, "what %s asks for", n->pointer[0] ? n->pointer : "the schema");
    }
}

bool tools_schema_begin_fault(struct rv_schema_check *c, const struct rv_schema_path *at, rv_buf *line)
{
    if (at->depth > c->deepest)
        c->deepest = at->depth;
    if (c->quiet)
        return false;
    c->n_faults++;
    if (c->n_listed == (c->partial ? c->partial->max_faults : RV_SCHEMA_MAX_FAULTS))
        return false;
    rv_buf_init(line, MAX_FAULT);
    c->fault_at = at;
    c->fault = (struct rv_schema_fault){.kind = RV_SCHEMA_FAULT_VALUE};
    if (c->partial)
        return true;
    write_path(at, line);
    rv_buf_puts(line, ": ");
    return true;
}

bool tools_schema_end_fault(struct rv_schema_check *c, rv_buf *line)
{
    if (line->rc == RV_E_NOMEM) {
        c->rc = RV_E_NOMEM;
    } else if (c->partial) {
        tools_schema_report(c, line);
    } else if (line->len && c->text.len + line->len + 5 <= c->text.max) {
        if (c->text.len)
            rv_buf_puts(&c->text, "; ");
        rv_buf_add_str(&c->text, rv_utf8_cut((rv_str){line->ptr, line->len}, line->len));
        if (line->rc)
            rv_buf_puts(&c->text, "...");
        c->n_listed++;
        if (c->text.rc == RV_E_NOMEM)
            c->rc = RV_E_NOMEM;
    }
    rv_buf_fini(line);
    return false;
}

bool tools_schema_fault_found(struct rv_schema_check *c, rv_buf *line, json_object *v)
{
    rv_buf_puts(line, ", ");
    write_found(v, line);
    return tools_schema_end_fault(c, line);
}

static bool fault_expected(struct rv_schema_check *c, const struct rv_schema_path *at, const struct rv_schema_node *n,
                           json_object *v)
{
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "expected ");
    tools_schema_write_expected(n, &line);
    return tools_schema_fault_found(c, &line, v);
}

/* --- Values --- */

#define MAX_NAMES 64 /* property names that a misspelt one is compared with: it is only a hint */

typedef struct rv_schema_node node;
typedef struct rv_schema_path path;

static bool give_up(struct rv_schema_check *c)
{
    if (!c->rc)
        c->rc = RV_E_LIMIT;
    return false;
}

static bool fault_bound(struct rv_schema_check *c, const path *at, const char *expected, json_object *bound,
                        json_object *v)
{
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected %s ", expected);
    write_value(bound, &line);
    return tools_schema_fault_found(c, &line, v);
}

unsigned tools_schema_types_of(json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_null:
        return RV_SCHEMA_NULL;
    case json_type_boolean:
        return RV_SCHEMA_BOOLEAN;
    case json_type_int:
        return RV_SCHEMA_INTEGER | RV_SCHEMA_NUMBER;
    case json_type_double:
        return tools_schema_is_integral(v) ? RV_SCHEMA_INTEGER | RV_SCHEMA_NUMBER : RV_SCHEMA_NUMBER;
    case json_type_string:
        return RV_SCHEMA_STRING;
    case json_type_array:
        return RV_SCHEMA_ARRAY;
    case json_type_object:
        break;
    }
    return RV_SCHEMA_OBJECT;
}

static bool check_range(struct rv_schema_check *c, const struct rv_schema_range *range, size_t n, const char *unit,
                        const path *at)
{
    bool is_low = n < range->min;
    size_t bound = is_low ? range->min : range->max;
    rv_buf line;

    if (!is_low && n <= range->max)
        return true;
    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected at %s %zu %s, found %zu", is_low ? "least" : "most", bound, unit, n);
    return tools_schema_end_fault(c, &line);
}

static bool fault_format(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected %s such as \"%s\"", n->format->name, n->format->example);
    return tools_schema_fault_found(c, &line, v);
}

static bool fault_pattern(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected text that matches %s", rv_pattern_text(n->pattern));
    return tools_schema_fault_found(c, &line, v);
}

static bool check_string(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    if (n->length.min > 0 || n->length.max < SIZE_MAX)
        ok = check_range(c, &n->length, rv_utf8_count(rv_json_str(v)), "characters", at);
    if (n->format && !n->format->fits(rv_json_str(v)))
        ok = fault_format(c, n, v, at);
    if (n->pattern && !tools_schema_matches(c, n->pattern, rv_json_str(v)))
        ok = !c->rc && fault_pattern(c, n, v, at);
    return ok;
}

static bool check_number(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    if (n->minimum && tools_schema_number_cmp(v, n->minimum) < 0)
        ok = fault_bound(c, at, "at least", n->minimum, v);
    if (n->maximum && tools_schema_number_cmp(v, n->maximum) > 0)
        ok = fault_bound(c, at, "at most", n->maximum, v);
    if (n->exclusive_minimum && tools_schema_number_cmp(v, n->exclusive_minimum) <= 0)
        ok = fault_bound(c, at, "more than", n->exclusive_minimum, v);
    if (n->exclusive_maximum && tools_schema_number_cmp(v, n->exclusive_maximum) >= 0)
        ok = fault_bound(c, at, "less than", n->exclusive_maximum, v);
    if (n->multiple_of && !tools_schema_is_multiple(v, n->multiple_of))
        ok = fault_bound(c, at, "a multiple of", n->multiple_of, v);
    return ok;
}

static bool check_unique(struct rv_schema_check *c, json_object *v, const path *at)
{
    size_t pair[2];
    bool found;
    rv_buf line;

    if (tools_schema_find_equal(v, &c->steps, &found, pair) < 0) {
        c->rc = RV_E_NOMEM;
        return false;
    }
    if (c->steps == 0)
        return give_up(c);
    if (!found)
        return true;
    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected no equal items, items %zu and %zu are equal", pair[0], pair[1]);
    return tools_schema_end_fault(c, &line);
}

static bool check_array(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    size_t i, len = json_object_array_length(v);
    bool ok = check_range(c, &n->items_range, len, "items", at);

    if (n->unique_items && !tools_schema_has_hole(c, v) && !check_unique(c, v, at))
        ok = false;
    if (!n->items && !n->prefix_items.n)
        return ok;
    for (i = 0; i < len && (ok || !c->quiet) && !c->rc; i++) {
        const node *item = i < n->prefix_items.n ? n->prefix_items.items[i] : n->items;
        path here = {at, NULL, i, at->depth + 1};
        if (!item)
            break;
        if (!tools_schema_check_node(c, item, json_object_array_get_idx(v, i), &here))
            ok = false;
    }
    return ok;
}

static bool fault_missing(struct rv_schema_check *c, json_object *name, const path *at)
{
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    c->fault.kind = RV_SCHEMA_FAULT_MISSING;
    c->fault.name = json_object_get_string(name);
    rv_buf_puts(&line, "missing required property ");
    write_value(name, &line);
    return tools_schema_end_fault(c, &line);
}

static bool fault_unknown(struct rv_schema_check *c, const node *n, const char *name, const path *at)
{
    const char *names[MAX_NAMES], *near;
    const struct lh_entry *e;
    size_t n_names = 0;
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    c->fault.kind = RV_SCHEMA_FAULT_UNKNOWN;
    c->fault.name = name;
    c->fault.properties = n->property_names;
    rv_buf_printf(&line, "unknown property \"%s\"", name);
    if (n->property_names)
        for (e = lh_table_head(json_object_get_object(n->property_names)); e && n_names < MAX_NAMES;
             e = lh_entry_next(e))
            names[n_names++] = lh_entry_k(e);
    near = rv_nearest(rv_str_of(name), names, n_names);
    if (near)
        rv_buf_printf(&line, " (did you mean \"%s\"?)", near);
    return tools_schema_end_fault(c, &line);
}

static bool check_additional(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    json_object_object_foreach (v, key, child) {
        path here = {at, key, 0, at->depth + 1};
        if (n->property_names && json_object_object_get_ex(n->property_names, key, NULL))
            continue;
        if (tools_schema_has_pattern_for(c, n, key))
            continue;
        if (n->additional->is_never ? !fault_unknown(c, n, key, at)
                                    : !tools_schema_check_node(c, n->additional, child, &here))
            ok = false;
        if ((!ok && c->quiet) || c->rc)
            break;
    }
    return ok;
}

static bool check_properties(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    const struct lh_entry *e = lh_table_head(json_object_get_object(n->property_names));
    size_t i,
        left =
            (size_t)json_object_object_length(v); /* checking a small value against a large schema is not much work */
    bool ok = true;

    for (i = 0; e && left > 0 && (ok || !c->quiet) && !c->rc; e = lh_entry_next(e), i++) {
        path here = {at, lh_entry_k(e), 0, at->depth + 1};
        json_object *child;
        if (!json_object_object_get_ex(v, here.key, &child))
            continue;
        left--;
        if (!tools_schema_check_node(c, n->properties.items[i], child, &here))
            ok = false;
    }
    return ok;
}

static bool check_object(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = check_range(c, &n->properties_range, (size_t)json_object_object_length(v), "properties", at);
    size_t i, n_required = n->required ? json_object_array_length(n->required) : 0;

    for (i = 0; i < n_required && (ok || !c->quiet); i++) {
        json_object *name = json_object_array_get_idx(n->required, i);
        if (!json_object_object_get_ex(v, json_object_get_string(name), NULL))
            ok = fault_missing(c, name, at);
    }
    if (n->property_names && (ok || !c->quiet) && !check_properties(c, n, v, at))
        ok = false;
    /* `true` and `{}` ask nothing, yet walking the keys for them is cheap enough. */
    if (n->additional && (ok || !c->quiet) && !check_additional(c, n, v, at))
        ok = false;
    return ok;
}

static bool check_enum(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    size_t i;

    for (i = 0; i < json_object_array_length(n->enum_values); i++)
        if (rv_json_equal(json_object_array_get_idx(n->enum_values, i), v))
            return true;
    return fault_expected(c, at, n, v);
}

static bool check_by_type(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    switch (json_object_get_type(v)) {
    case json_type_int:
    case json_type_double:
        return check_number(c, n, v, at);
    case json_type_string:
        return check_string(c, n, v, at);
    case json_type_array:
        return check_array(c, n, v, at);
    case json_type_object:
        return check_object(c, n, v, at);
    case json_type_null:
    case json_type_boolean:
        break;
    }
    return true;
}

static bool fault_type(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "expected ");
    tools_schema_write_types(n->types, &line);
    return tools_schema_fault_found(c, &line, v);
}

static bool check_rules(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok;

    if (n->is_never)
        return fault_expected(c, at, n, v);
    if (n->types && !(n->types & tools_schema_types_of(v)))
        return fault_type(c, n, v, at); /* whatever else is asked follows from the type */
    if (n->has_const && !rv_json_equal(n->const_value, v) && !tools_schema_has_hole(c, v))
        return fault_expected(c, at, n, v);
    if (n->enum_values && !tools_schema_has_hole(c, v) && !check_enum(c, n, v, at))
        return false;
    ok = check_by_type(c, n, v, at);
    if ((ok || !c->quiet) && !tools_schema_check_applied(c, n, v, at))
        ok = false;
    if ((ok || !c->quiet) && !tools_schema_check_combined(c, n, v, at))
        ok = false;
    if (ok && !tools_schema_check_unevaluated(c, n, v, at))
        ok = false;
    return ok;
}

bool tools_schema_check_node(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok;

    if (c->rc)
        return false;
    if (c->partial && v && v == c->partial->hole)
        return true;
    if (c->steps == 0 || c->nesting == RV_SCHEMA_MAX_NESTING)
        return give_up(c);
    c->steps--;
    c->nesting++;
    ok = check_rules(c, n, v, at);
    c->nesting--;
    return ok && !c->rc;
}

int tools_schema_unfinished(const rv_schema *s, const struct rv_schema_check *c, rv_err **err)
{
    if (c->failed)
        return RV_FAIL(err, c->rc, "%s: %s", s->what, rv_err_text(c->failed));
    if (c->rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "%s: no memory to check it against its schema", s->what);
    return RV_FAIL(err, c->rc, "%s: checking it against its schema takes more than %zu steps or %d levels", s->what,
                   RV_SCHEMA_MAX_STEPS, RV_SCHEMA_MAX_NESTING);
}

int rv_schema_check(const rv_schema *s, json_object *value, rv_err **err)
{
    struct rv_schema_check c = {.text = RV_BUF_INIT(RV_SCHEMA_MAX_TEXT), .steps = RV_SCHEMA_MAX_STEPS};
    path top = {NULL, NULL, 0, 0};
    bool ok = tools_schema_check_node(&c, s->root, value, &top);
    int rc = 0;

    if (c.rc)
        rc = tools_schema_unfinished(s, &c, err);
    else if (!ok && c.n_faults > c.n_listed)
        rc = RV_FAIL(err, RV_E_INVALID, "%s: %s; and %zu more", s->what, c.text.len ? c.text.ptr : "",
                     c.n_faults - c.n_listed);
    else if (!ok)
        rc = RV_FAIL(err, RV_E_INVALID, "%s: %s", s->what, c.text.ptr);
    rv_err_free(c.failed);
    rv_buf_fini(&c.text);
    return rc;
}
