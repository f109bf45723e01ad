/* Prompt templates. Compilation splits the text into literal pieces and placeholders once; rendering appends them in
 * order, so what a value contains is never looked at again. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/expr.h"
#include "coreengine/lang/expr_internal.h"

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
    return (struct rv_scope){lookup, obj};
}

/* --- Templates --- */

#define MAX_PLACEHOLDERS 4096 /* of one template; also bounds the work of one rendering */
#define MAX_SEGMENTS     16   /* of one path */
#define MAX_KEYS         64   /* keys of an object that are compared with a mistyped one */

/* A literal piece of the text, then a placeholder; of the last one only the piece counts. */
struct part {
    rv_str before; /* in `text` of the template */
    struct rv_placeholder ph;
};

struct rv_template {
    char *text; /* owned, as all of the below */
    size_t len;
    char *file;
    char *paths; /* the paths, each with a NUL, at the same offset as in text */
    struct part *parts;
    size_t n_parts, cap_parts; /* a part that only splits a literal has no path */
    size_t *holes;             /* indices of the parts with a path */
    size_t n_holes;
};

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_char(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9') || c == '-';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static int add_part(rv_template *t, rv_str before, const struct rv_placeholder *ph, rv_err **err)
{
    if (t->n_parts == t->cap_parts) {
        size_t cap = t->cap_parts ? 2 * t->cap_parts : 8;
        struct part *parts = realloc(t->parts, cap * sizeof(*parts));

        if (!parts)
            return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
        t->parts = parts;
        t->cap_parts = cap;
    }
    t->parts[t->n_parts++] = (struct part){before, ph ? *ph : (struct rv_placeholder){.path = {NULL, 0}}};
    return 0;
}

/* --- Compilation ---------------------------------------------------------------------------------------------------
 */

/* The next segment of a path at *pos, which is moved behind it and a following dot. */
static rv_str next_segment(rv_str path, size_t *pos)
{
    const char *from = path.ptr + *pos;
    const char *dot = memchr(from, '.', path.len - *pos);
    size_t len = dot ? (size_t)(dot - from) : path.len - *pos;

    *pos += len + (dot != NULL);
    return (rv_str){from, len};
}

static size_t count_segments(rv_str path)
{
    size_t n = 0;

    for (size_t pos = 0; pos < path.len; n++)
        next_segment(path, &pos);
    return n;
}

/* The path at text[*pos..), which begins with a name. */
static int read_path(rv_str text, size_t *pos, const struct rv_src *at, rv_str *path, rv_err **err)
{
    size_t start = *pos, i = start;

    for (;;) {
        size_t segment = i;

        while (i < text.len && is_name_char(text.ptr[i]))
            i++;
        if (i == segment)
            return RV_FAIL_AT(err, at, RV_E_PARSE, "\"{{%.*s\": a name or an index must follow \".\"", (int)(i - start),
                              text.ptr + start);
        if (i == text.len || text.ptr[i] != '.')
            break;
        i++;
    }
    *path = (rv_str){text.ptr + start, i - start};
    while (i < text.len && is_blank(text.ptr[i]))
        i++;
    *pos = i;
    if (text.len - i >= 2 && memcmp(text.ptr + i, "}}", 2) == 0) {
        *pos += 2;
        return 0;
    }
    RV_IGNORE(RV_FAIL_AT(err, at, RV_E_PARSE, "\"{{%.*s\" is not followed by \"}}\"", (int)rv_utf8_cut(*path, 80).len,
                         path->ptr),
              "the code is returned with its hint below");
    rv_err_hint(err, "write \\{{ for two braces that are text");
    return RV_E_PARSE;
}

/* If a placeholder begins at text[*pos..) ("{{" is there), read it; *is_one tells. */
static int read_placeholder(rv_template *t, rv_str text, size_t *pos, struct rv_placeholder *ph, bool *is_one,
                            rv_err **err)
{
    size_t i = *pos + 2, off;
    rv_str path = {NULL, 0};
    int rc;

    while (i < text.len && is_blank(text.ptr[i]))
        i++;
    *is_one = i < text.len && is_name_start(text.ptr[i]);
    if (!*is_one)
        return 0;
    off = i;
    rc = read_path(text, &i, &ph->src, &path, err);
    if (rc < 0 || !path.ptr)
        return rc;
    if (count_segments(path) > MAX_SEGMENTS)
        return RV_FAIL_AT(err, &ph->src, RV_E_LIMIT, "placeholder has more than %d segments", MAX_SEGMENTS);

    /* Segments are cut by NULs in a second copy, as scopes and json-c want their names terminated. */
    ph->path = path;
    for (size_t at = 0; at < path.len; at++)
        t->paths[off + at] = path.ptr[at] == '.' ? '\0' : path.ptr[at];
    t->paths[off + path.len] = '\0';
    off = 0;
    ph->root = next_segment(path, &off);
    ph->field = off < path.len ? next_segment(path, &off) : (rv_str){NULL, 0};
    ph->root.ptr = t->paths + (ph->root.ptr - text.ptr);
    if (ph->field.ptr)
        ph->field.ptr = t->paths + (ph->field.ptr - text.ptr);
    *pos = i;
    return 0;
}

/* Line and column move along with the scan, so that many placeholders do not cost quadratic time. */
static void move_place(struct rv_src *place, rv_str text, size_t from, size_t to)
{
    *place = rv_text_place((rv_str){text.ptr + from, to - from}, place, to - from);
}

static int split(rv_template *t, rv_str text, struct rv_src place, rv_err **err)
{
    size_t literal = 0, placed = 0, i = 0;
    bool is_one;
    int rc;

    while (i < text.len) {
        const char *brace = memmem(text.ptr + i, text.len - i, "{{", 2);
        struct rv_placeholder ph = {.path = {NULL, 0}};
        size_t at;

        if (!brace)
            break;
        i = at = (size_t)(brace - text.ptr);
        if (at > literal && text.ptr[at - 1] == '\\') {
            rc = add_part(t, (rv_str){text.ptr + literal, at - 1 - literal}, NULL, err);
            if (rc < 0)
                return rc;
            literal = at; /* the braces begin the next literal */
            i = at + 2;
            continue;
        }
        move_place(&place, text, placed, at);
        placed = at;
        ph.src = place;
        rc = read_placeholder(t, text, &i, &ph, &is_one, err);
        if (rc < 0)
            return rc;
        if (!is_one) { /* of "{{{name}}}" the outer braces are text */
            i = at + 1;
            continue;
        }
        if (t->n_holes == MAX_PLACEHOLDERS)
            return RV_FAIL_AT(err, &ph.src, RV_E_LIMIT, "template has more than %d placeholders", MAX_PLACEHOLDERS);
        t->n_holes++;
        rc = add_part(t, (rv_str){text.ptr + literal, at - literal}, &ph, err);
        if (rc < 0)
            return rc;
        literal = i;
    }
    return add_part(t, (rv_str){text.ptr + literal, text.len - literal}, NULL, err);
}

static int list_holes(rv_template *t, rv_err **err)
{
    size_t n = 0;

    t->holes = malloc((t->n_holes + 1) * sizeof(*t->holes));
    if (!t->holes)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
    for (size_t i = 0; i < t->n_parts; i++) {
        if (t->parts[i].ph.path.ptr)
            t->holes[n++] = i;
    }
    return 0;
}

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
    if ((rc = split(t, (rv_str){t->text, text.len}, place, err)) < 0 || (rc = list_holes(t, err)) < 0) {
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

struct rv_placeholder rv_template_placeholder(const rv_template *t, size_t i)
{
    return t->parts[t->holes[i]].ph;
}

/* --- Rendering -----------------------------------------------------------------------------------------------------
 */

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
        rv_err_hint(err, "that list has %zu elements, counted from 0", json_object_array_length(obj));
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
        rv_err_hint(err, "did you mean \"%s\"?", near);
}

/* `in` is the value that has no `segment`, or NULL if that is not known. */
static int no_value(const struct rv_placeholder *ph, json_object *in, rv_str segment, rv_err **err)
{
    int rc = RV_FAIL_AT(err, &ph->src, RV_E_NOT_FOUND, "no value for \"{{%.*s}}\": there is no \"%.*s\"",
                        RV_STR_ARG(ph->path), RV_STR_ARG(segment));

    hint_key(in, segment, err);
    return rc;
}

static int find(const rv_template *t, const struct rv_placeholder *ph, const struct rv_scope *scope, json_object **out,
                rv_err **err)
{
    rv_str root = ph->root, field = ph->field, none = {NULL, 0}, segment;
    size_t pos = root.len + 1, ignored;
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

    if (field.ptr)
        pos += field.len + 1;
    while (pos < ph->path.len) {
        json_object *from = *out;

        segment = next_segment(ph->path, &pos);
        segment.ptr = t->paths + (segment.ptr - t->text); /* the copy that ends with a NUL */
        if (!step(from, segment, out))
            return no_value(ph, from, segment, err);
    }
    return 0;
}

int rv_template_render(const rv_template *t, const struct rv_scope *scope, rv_buf *out, rv_err **err)
{
    size_t start = out->len, max = out->max;
    int rc = 0;

    if (max > start && max - start > RV_TEMPLATE_MAX_OUTPUT)
        out->max = start + RV_TEMPLATE_MAX_OUTPUT;
    for (size_t i = 0; i < t->n_parts && rc == 0; i++) {
        const struct part *p = &t->parts[i];
        json_object *v = NULL;

        rv_buf_add_str(out, p->before);
        if (p->ph.path.ptr)
            rc = find(t, &p->ph, scope, &v, err);
        if (rc == 0 && p->ph.path.ptr && json_object_is_type(v, json_type_string))
            rv_buf_add_str(out, rv_json_str(v));
        else if (rc == 0 && p->ph.path.ptr)
            rv_json_write(v, out);
        if (rc == 0)
            rc = rv_buf_check(out, "rendered template", err);
    }
    out->max = max;
    if (rc < 0)
        rv_buf_truncate(out, start);
    return rc;
}
