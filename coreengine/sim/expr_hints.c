/* What a `when` expression looks at, found by reading its text: paths below output, outputs and metadata, and the
 * constants beside them. A guess is enough: what is made from it is only tried, and the core decides. */
#include "coreengine/sim/sim_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATHS 16 /* of one expression */

struct reading {
    struct sim_hints *h;
    const struct rv_pipeline *p;
    struct sim_shape *own;
    struct sim_shape *shapes[MAX_PATHS]; /* where each path is */
    size_t fields[MAX_PATHS];            /* its index there: the list may move */
    size_t n;
    json_object *constants; /* array */
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Methods and macros end a path. */
static bool is_method(rv_str name)
{
    static const char *const methods[] = {"contains", "startsWith", "endsWith", "size", "all",
                                          "exists",   "exists_one", "filter",   "map"};
    for (size_t i = 0; i < RV_COUNT(methods); i++)
        if (rv_str_is(name, methods[i]))
            return true;
    return false;
}

/* a.b["c"].d as parts; gives the byte after it. */
static const char *read_path(const char *p, rv_str *parts, size_t *n)
{
    *n = 0;
    for (;;) {
        const char *begin = p;
        while (is_name(*p))
            p++;
        rv_str part = {begin, (size_t)(p - begin)};
        if (part.len == 0 || is_method(part))
            return p;
        if (*n < SIM_PATH_MAX + 2)
            parts[(*n)++] = part;
        while (*p == '[' && (p[1] == '"' || p[1] == '\'')) {
            const char *end = strchr(p + 2, p[1]);
            if (!end)
                return p + 1;
            if (*n < SIM_PATH_MAX + 2)
                parts[(*n)++] = (rv_str){p + 2, (size_t)(end - p - 2)};
            p = end[1] == ']' ? end + 2 : end + 1;
        }
        if (*p != '.')
            return p;
        p++;
    }
}

static int take_path(struct reading *r, const rv_str *parts, size_t n, rv_err **err)
{
    struct sim_shape *shape = NULL;
    size_t first = 0;

    if (n >= 2 && rv_str_is(parts[0], "output")) {
        shape = r->own;
        first = 1;
    } else if (n >= 3 && rv_str_is(parts[0], "outputs")) {
        shape = sim_hints_of_key(r->h, r->p, parts[1]);
        first = 2;
    } else if (n >= 2 && rv_str_is(parts[0], "metadata")) {
        return sim_hints_metadata(r->h, parts[1], err);
    }
    if (!shape || r->n == MAX_PATHS)
        return 0;
    struct sim_field *f = sim_hints_field(shape, parts + first, n - first);
    if (!f)
        return RV_FAIL(err, RV_E_NOMEM, "note what an expression looks at");
    r->shapes[r->n] = shape;
    r->fields[r->n++] = (size_t)(f - shape->fields);
    return 0;
}

static int add_constant(struct reading *r, json_object *v, rv_err **err)
{
    return rv_json_push_take(r->constants, v, err);
}

/* A number and its neighbours, so that both sides of a comparison are tried. */
static int take_number(struct reading *r, const char **text, rv_err **err)
{
    char *end = NULL;
    double d = strtod(*text, &end);
    bool whole = !memchr(*text, '.', (size_t)(end - *text));
    int rc = 0;

    for (int by = -1; by <= 1 && rc == 0; by++)
        rc = add_constant(r, whole ? json_object_new_int64((int64_t)d + by) : rv_json_double(d + by * 0.125), err);
    *text = end > *text ? end : *text + 1;
    if (**text == 'u')
        ++*text;
    return rc;
}

static int take_string(struct reading *r, const char **text, rv_err **err)
{
    const char *end = *text + 1;

    while (*end && *end != **text)
        end += *end == '\\' && end[1] ? 2 : 1;
    int rc = add_constant(r, json_object_new_string_len(*text + 1, (int)(end - *text - 1)), err);
    *text = *end ? end + 1 : end;
    return rc;
}

static int take_name(struct reading *r, const char **text, rv_err **err)
{
    rv_str parts[SIM_PATH_MAX + 2];
    size_t n = 0;
    const char *begin = *text;

    *text = read_path(begin, parts, &n);
    if (*text == begin)
        ++*text;
    if (n == 1 && (rv_str_is(parts[0], "true") || rv_str_is(parts[0], "false")))
        return add_constant(r, json_object_new_boolean(rv_str_is(parts[0], "true")), err);
    return take_path(r, parts, n, err);
}

/* Every path may be compared with every constant of the expression. */
static int combine(struct reading *r, bool lists, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < r->n && rc == 0; i++) {
        struct sim_field *f = &r->shapes[i]->fields[r->fields[i]];
        f->is_list = f->is_list || lists;
        for (size_t k = 0; k < json_object_array_length(r->constants) && rc == 0; k++)
            rc = rv_json_push_ref(f->values, json_object_array_get_idx(r->constants, k), err);
        if (rc == 0 && json_object_array_length(r->constants) == 0)
            rc = rv_json_push_take(f->values, json_object_new_boolean(1), err); /* used as a condition itself */
        if (rc == 0 && json_object_array_length(r->constants) == 0)
            rc = rv_json_push_take(f->values, json_object_new_boolean(0), err);
    }
    return rc;
}

int sim_hints_expr(struct sim_hints *h, const struct rv_pipeline *p, struct sim_shape *own, const char *text,
                   rv_err **err)
{
    struct reading r = {.h = h, .p = p, .own = own, .constants = json_object_new_array()};
    bool lists = strstr(text, "size(") || strstr(text, "exists") || strstr(text, "all(") || strstr(text, " in ");
    int rc = r.constants ? 0 : RV_FAIL(err, RV_E_NOMEM, "note what an expression looks at");

    for (const char *at = text; *at && rc == 0;) {
        if (isdigit((unsigned char)*at))
            rc = take_number(&r, &at, err);
        else if (*at == '"' || *at == '\'')
            rc = take_string(&r, &at, err);
        else if (is_name(*at))
            rc = take_name(&r, &at, err);
        else
            at++;
    }
    if (rc == 0)
        rc = combine(&r, lists, err);
    json_object_put(r.constants);
    return rc;
}
