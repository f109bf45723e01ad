/* Prompt templates: what is compiled, and rendering. The parts are appended in order, so what a value contains is never
 * looked at again. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/template_internal.h"

#define MAX_KEYS 64 /* of an object that are compared with a mistyped one: it is only a hint, as in expr.c */

/* --- The plainest scope: the members of one JSON object are the variables --- */

/* Names come from compiled texts, which have a NUL behind each; one inside would be cut by json-c. */
static bool member(json_object *obj, rv_str name, json_object **out)
{
    return json_object_is_type(obj, json_type_object) && !memchr(name.ptr, '\0', name.len) &&
           json_object_object_get_ex(obj, name.ptr, out);
}

static int lookup(void *self, rv_str name, rv_str field, json_object **out, bool *found, rv_err **err)
{
    json_object *v = NULL;

    (void)err;
    *found = member(self, name, &v) && (!field.ptr || member(v, field, &v));
    if (*found)
        *out = v;
    return 0;
}

struct rv_scope rv_scope_of_object(json_object *obj)
{
    return (struct rv_scope){.lookup = lookup, .self = obj};
}

/* --- templates --- */

int rv_template_compile(rv_str text, const struct rv_src *src, rv_template **out, rv_err **err)
{
    struct rv_src place = src ? *src : (struct rv_src){NULL, 1, 1};
    rv_template *t;
    int rc;

    if (text.len > RV_TEMPLATE_MAX_BYTES)
        return RV_FAIL_AT(err, src, RV_E_LIMIT, "template has %zu bytes, the limit is %zu", text.len,
                          RV_TEMPLATE_MAX_BYTES);
    t = calloc(1, sizeof(*t));
    if (!t)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
    t->text = rv_str_dup(text);
    t->len = text.len;
    t->paths = malloc(text.len + 1);
    t->file = src && src->file ? strdup(src->file) : NULL;
    if (!t->text || !t->paths || (src && src->file && !t->file)) {
        rv_template_free(t);
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
    }
    place.file = t->file;
    rc = lang_template_read(t, place, err);
    if (rc < 0) {
        rv_template_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void rv_template_free(rv_template *t)
{
    if (!t)
        return;
    free(t->text);
    free(t->file);
    free(t->paths);
    free(t->parts);
    free(t->holes);
    rv_arena_free(t->arena);
    free(t);
}

rv_str rv_template_text(const rv_template *t)
{
    return (rv_str){t->text, t->len};
}

size_t rv_template_n_placeholders(const rv_template *t)
{
    return t->n_holes;
}

static bool filters_have_default(const struct rv_part *p)
{
    for (size_t i = 0; i < p->n_filters; i++)
        if (p->filters[i].kind == RV_FILTER_DEFAULT)
            return true;
    return false;
}

struct rv_placeholder rv_template_placeholder_at(const rv_template *t, size_t i)
{
    const struct rv_part *part = &t->parts[t->holes[i]];
    struct rv_placeholder ph = part->ph;
    size_t pos = 0;

    for (int n = 0; n < 3 && pos < ph.path.len; n++) {
        rv_str segment = lang_path_segment(ph.path, &pos);
        if (n == 2)
            ph.member = segment;
    }
    ph.is_test = part->kind != RV_TAG_VALUE || filters_have_default(part);
    for (size_t k = 0; k < t->holes[i]; k++)
        ph.is_inside = ph.is_inside || t->parts[k].other > t->holes[i];
    return ph;
}

size_t rv_template_n_foreign(const rv_template *t)
{
    return t->n_foreign;
}

struct rv_foreign rv_template_foreign_at(const rv_template *t, size_t i)
{
    return t->foreign[i];
}

/* --- looking up --- */

static bool to_index(rv_str s, size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || *out > SIZE_MAX / 100)
            return false;
        *out = *out * 10 + (size_t)(s.ptr[i] - '0');
    }
    return s.len > 0;
}

static bool step(json_object *from, rv_str segment, json_object **out)
{
    size_t i;

    if (json_object_is_type(from, json_type_object))
        return json_object_object_get_ex(from, segment.ptr, out);
    if (!json_object_is_type(from, json_type_array) || !to_index(segment, &i) || i >= json_object_array_length(from))
        return false;
    *out = json_object_array_get_idx(from, i);
    return true;
}

static void hint_key(json_object *obj, rv_str segment, rv_err **err)
{
    const char *names[MAX_KEYS], *near;
    size_t n = 0;

    if (json_object_is_type(obj, json_type_array)) {
        rv_err_set_hint(err, "that list has %zu elements, counted from 0", json_object_array_length(obj));
        return;
    }
    if (!json_object_is_type(obj, json_type_object))
        return;
    json_object_object_foreach (obj, key, val) {
        (void)val;
        if (n < MAX_KEYS)
            names[n++] = key;
    }
    near = rv_nearest(segment, names, n);
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    else if (n > 0)
        rv_err_set_hint(err, "there is \"%s\"%s%s%s%s", names[0], n > 1 ? ", \"" : "", n > 1 ? names[1] : "",
                        n > 1 ? "\"" : "", n > 2 ? ", ..." : "");
}

/* `in` is the value that has no `segment`, or NULL if that is not known. */
static int no_value(const struct rv_placeholder *ph, json_object *in, rv_str segment, rv_err **err)
{
    int rc = RV_FAIL_AT(err, &ph->src, RV_E_NOT_FOUND, "no value for \"{{%.*s}}\": there is no \"%.*s\"",
                        RV_STR_ARG(ph->path), RV_STR_ARG(segment));

    hint_key(in, segment, err);
    return rc;
}

/* The members behind the first `pos` bytes of the path, from *v on. */
static int walk(const rv_template *t, const struct rv_placeholder *ph, size_t pos, json_object **v, rv_err **err)
{
    while (pos < ph->path.len) {
        json_object *from = *v;
        rv_str segment = lang_path_segment(ph->path, &pos);

        segment.ptr = t->paths + (segment.ptr - t->text); /* the copy that ends with a NUL */
        if (!step(from, segment, v))
            return no_value(ph, from, segment, err);
    }
    return 0;
}

static int find(const rv_template *t, const struct rv_placeholder *ph, const struct rv_scope *scope, json_object **out,
                rv_err **err)
{
    rv_str root = ph->root, field = ph->field, none = {NULL, 0};
    size_t ignored;
    bool found = false;
    int rc;

    /* A number may be an index, which only this file knows about: then the whole variable is needed. */
    if (field.ptr && to_index(field, &ignored))
        field = none;
    rc = scope->lookup(scope->self, root, field, out, &found, err);
    if (rc == 0 && !found && field.ptr) { /* which of the two is missing? */
        json_object *whole = NULL;

        rc = scope->lookup(scope->self, root, none, &whole, &found, err);
        if (rc == 0)
            return found ? no_value(ph, whole, field, err) : no_value(ph, NULL, root, err);
    }
    if (rc < 0)
        return rc;
    if (!found)
        return no_value(ph, NULL, root, err);
    return walk(t, ph, root.len + 1 + (field.ptr ? field.len + 1 : 0), out, err);
}

/* --- rendering --- */

struct rendering {
    const rv_template *t;
    const struct rv_scope *scope;
    rv_buf *out;
    size_t steps; /* left */
    rv_err **err;
};
/* What a section is about: an item of a list, or the value of its path. */
struct item {
    json_object *value;
    size_t i;
};

static int look_up(struct rendering *r, const struct rv_part *p, const struct item *item, json_object **out,
                   rv_err **err)
{
    *out = item ? item->value : NULL;
    return p->ph.root.ptr ? find(r->t, &p->ph, r->scope, out, err) : walk(r->t, &p->ph, 1, out, err);
}

/* *is_there: the path has a value. Without, and with is_needed, this is an error. */
static int value_of(struct rendering *r, const struct rv_part *p, const struct item *item, bool is_needed,
                    json_object **out, bool *is_there)
{
    int rc = look_up(r, p, item, out, is_needed ? r->err : NULL);

    *is_there = rc == 0;
    if (is_needed || rc == 0)
        return rc;
    if (rc == RV_E_NOMEM) /* a second try may have memory, and the section would be left out */
        return RV_FAIL(r->err, RV_E_NOMEM, "no memory to render a template");
    if (rc != RV_E_NOT_FOUND)
        return look_up(r, p, item, out, r->err); /* again, to say why */
    *out = NULL;
    return 0;
}

/* No value for a section: none, null, false, an empty text or list. */
static bool is_nothing(json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_null:
        return true;
    case json_type_boolean:
        return !json_object_get_boolean(v);
    case json_type_string:
        return json_object_get_string_len(v) == 0;
    case json_type_array:
        return json_object_array_length(v) == 0;
    case json_type_int:
    case json_type_double:
    case json_type_object:
        break;
    }
    return false;
}

static int render(struct rendering *r, size_t from, size_t to, const struct item *item);

static int render_section(struct rendering *r, size_t at, const struct item *around)
{
    const struct rv_part *p = &r->t->parts[at];
    bool is_there, is_list;
    struct item item = {NULL, 0};
    json_object *v;
    int rc = value_of(r, p, around, false, &v, &is_there);

    if (rc < 0)
        return rc;
    if (p->kind == RV_TAG_INVERTED)
        return is_nothing(v) ? render(r, at + 1, p->other + 1, around) : 0;
    if (is_nothing(v))
        return 0;
    is_list = json_object_is_type(v, json_type_array);
    for (size_t n = is_list ? json_object_array_length(v) : 1; rc == 0 && item.i < n; item.i++) {
        item.value = is_list ? json_object_array_get_idx(v, item.i) : v;
        rc = render(r, at + 1, p->other + 1, &item);
    }
    return rc;
}

static int render_part(struct rendering *r, size_t at, const struct item *item)
{
    const struct rv_part *p = &r->t->parts[at];
    bool is_there;
    json_object *v;
    int rc;

    switch (p->kind) {
    case RV_TAG_VALUE:
        rc = value_of(r, p, item, !filters_have_default(p), &v, &is_there);
        return rc < 0 ? rc : lang_filters_write(p, is_there ? v : NULL, r->scope->is_older, r->out, r->err);
    case RV_TAG_INDEX:
    case RV_TAG_NUMBER:
        rv_buf_printf(r->out, "%zu", (item ? item->i : 0) + (p->kind == RV_TAG_NUMBER));
        return 0;
    case RV_TAG_SECTION:
    case RV_TAG_INVERTED:
        return render_section(r, at, item);
    case RV_TAG_TEXT:
    case RV_TAG_END:
        break;
    }
    return 0;
}

/* The parts from..to; sections are rendered with all of their parts. Recurses as deep as sections are nested. */
static int render(struct rendering *r, size_t from, size_t to, const struct item *item)
{
    int rc = 0;

    for (size_t i = from; i < to && rc == 0; i++) {
        const struct rv_part *p = &r->t->parts[i];
        if (r->steps == 0)
            return RV_FAIL_AT(r->err, &p->ph.src, RV_E_LIMIT, "rendering takes more than %d steps",
                              RV_TEMPLATE_MAX_STEPS);
        r->steps--;
        rv_buf_add_str(r->out, p->before);
        rc = rv_buf_check(r->out, "rendered template", r->err);
        if (rc == 0)
            rc = render_part(r, i, item);
        if (rc == 0)
            rc = rv_buf_check(r->out, "rendered template", r->err);
        if (rc == 0 && (p->kind == RV_TAG_SECTION || p->kind == RV_TAG_INVERTED)) {
            i = p->other;
        }
    }
    return rc;
}

int rv_template_render(const rv_template *t, const struct rv_scope *scope, rv_buf *out, rv_err **err)
{
    struct rendering r = {t, scope, out, RV_TEMPLATE_MAX_STEPS, err};
    size_t start = out->len, max = out->max;
    int rc;

    if (max > start && max - start > RV_TEMPLATE_MAX_OUTPUT)
        out->max = start + RV_TEMPLATE_MAX_OUTPUT;
    rc = render(&r, 0, t->n_parts, NULL);
    out->max = max;
    if (rc < 0)
        rv_buf_truncate(out, start);
    return rc;
}
