/* Faults: their list, and what they say: the place, what was expected, what was found, each short enough for a model's
 * or a person's eye. */
#include "coreengine/tools/schema_internal.h"

#define MAX_FAULT  400 /* bytes of one fault; longer ones are cut */
#define MAX_VALUE  60  /* bytes of a value shown */
#define MAX_LISTED 8   /* names or values listed of many */
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

void rv_schema_write_value(json_object *v, rv_buf *b)
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
    rv_schema_write_value(v, b);
}

void rv_schema_write_types(unsigned types, rv_buf *b)
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
        rv_schema_write_value(json_object_array_get_idx(values, i), b);
    }
    if (n > MAX_LISTED)
        rv_buf_printf(b, " or one of %zu more", n - MAX_LISTED);
}

void rv_schema_write_expected(const struct rv_schema_node *n, rv_buf *b)
{
    while (n->target && !n->types && !n->enum_values && !n->has_const)
        n = n->target; /* ends: linking refused cycles */
    if (n->is_never) {
        rv_buf_puts(b, "nothing");
    } else if (n->has_const) {
        rv_schema_write_value(n->const_value, b);
    } else if (n->enum_values) {
        if (json_object_array_length(n->enum_values) > 1)
            rv_buf_puts(b, "one of ");
        write_values(n->enum_values, b);
    } else if ((!n->types || n->types == RV_SCHEMA_OBJECT) && n->required && json_object_array_length(n->required)) {
        rv_buf_puts(b, "object with ");
        write_values(n->required, b);
    } else if (n->types) {
        rv_schema_write_types(n->types, b);
        if (n->format)
            rv_buf_printf(b, " (%s)", n->format->name);
    } else if (n->title) {
        rv_buf_add_str(b, rv_utf8_cut(rv_str_of(n->title), MAX_VALUE));
    } else {
        rv_buf_printf(b, "what %s asks for", n->pointer[0] ? n->pointer : "the schema");
    }
}

bool rv_schema_begin_fault(struct rv_schema_check *c, const struct rv_schema_path *at, rv_buf *line)
{
    if (at->depth > c->deepest)
        c->deepest = at->depth;
    if (c->quiet)
        return false;
    c->n_faults++;
    if (c->n_listed == RV_SCHEMA_MAX_FAULTS)
        return false;
    rv_buf_init(line, MAX_FAULT);
    write_path(at, line);
    rv_buf_puts(line, ": ");
    return true;
}

bool rv_schema_end_fault(struct rv_schema_check *c, rv_buf *line)
{
    if (line->rc == RV_E_NOMEM) {
        c->rc = RV_E_NOMEM;
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

bool rv_schema_fault_found(struct rv_schema_check *c, rv_buf *line, json_object *v)
{
    rv_buf_puts(line, ", ");
    write_found(v, line);
    return rv_schema_end_fault(c, line);
}

bool rv_schema_fault_expected(struct rv_schema_check *c, const struct rv_schema_path *at,
                              const struct rv_schema_node *n, json_object *v)
{
    rv_buf line;

    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "expected ");
    rv_schema_write_expected(n, &line);
    return rv_schema_fault_found(c, &line, v);
}
