/* Shapes of inputs: the text in the table is the rule. */
#include "coreengine/app/fn/fn_internal.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#define MAX_FIELDS 32

struct field {
    rv_str name, type;
    bool optional;
};

/* The next "key?: type" of a shape; false at its end. */
static bool next_field(const char **at, struct field *out)
{
    const char *p = *at + strspn(*at, "{, ");
    size_t n = strcspn(p, "?:}");

    if (!p[0] || p[n] == '}' || !p[n])
        return false;
    out->name = (rv_str){p, n};
    out->optional = p[n] == '?';
    p += n + (out->optional ? 1 : 0);
    p += strspn(p, ": ");
    n = strcspn(p, ",}");
    out->type = (rv_str){p, n};
    *at = p + n;
    return true;
}

static bool is_word(json_object *v)
{
    rv_str s = rv_json_str(v);
    return json_object_is_type(v, json_type_string) && !(s.len && memchr(s.ptr, '\0', s.len));
}

static bool is_words(json_object *v)
{
    if (!json_object_is_type(v, json_type_array) || json_object_array_length(v) > RV_FN_MAX_WORDS)
        return false;
    for (size_t i = 0; i < json_object_array_length(v); i++)
        if (!is_word(json_object_array_get_idx(v, i)))
            return false;
    return true;
}

static bool is_one(json_object *v, rv_str type)
{
    if (rv_str_is(type, "any"))
        return true;
    if (rv_str_is(type, "word"))
        return is_word(v);
    if (rv_str_is(type, "words"))
        return is_words(v);
    if (rv_str_is(type, "int"))
        return rv_json_is_int(v);
    if (rv_str_is(type, "number"))
        return rv_json_is_number(v);
    if (rv_str_is(type, "bool"))
        return json_object_is_type(v, json_type_boolean);
    if (rv_str_is(type, "list"))
        return json_object_is_type(v, json_type_array);
    if (rv_str_is(type, "object"))
        return json_object_is_type(v, json_type_object);
    return json_object_is_type(v, json_type_string);
}

static bool matches(json_object *v, rv_str type)
{
    while (type.len) {
        const char *bar = memchr(type.ptr, '|', type.len);
        rv_str one = {type.ptr, bar ? (size_t)(bar - type.ptr) : type.len};
        if (is_one(v, one))
            return true;
        if (!bar)
            break;
        type = (rv_str){bar + 1, type.len - one.len - 1};
    }
    return false;
}

/* "object|bool" as people say it. */
static void say(rv_str type, rv_buf *b)
{
    static const char *const phrases[][2] = {
        {"word", "a string without NUL"},
        {"string", "a string"},
        {"int", "an integer"},
        {"number", "a number"},
        {"bool", "true or false"},
        {"object", "an object"},
        {"list", "a list"},
        {"words", "a list of strings"},
    };

    while (type.len) {
        const char *bar = memchr(type.ptr, '|', type.len);
        rv_str one = {type.ptr, bar ? (size_t)(bar - type.ptr) : type.len};
        for (size_t i = 0; i < RV_COUNT(phrases); i++)
            if (rv_str_is(one, phrases[i][0]))
                rv_buf_puts(b, phrases[i][1]);
        if (!bar)
            break;
        rv_buf_puts(b, " or ");
        type = (rv_str){bar + 1, type.len - one.len - 1};
    }
}

static int wrong(const char *what, rv_str type, json_object *v, rv_err **err)
{
    rv_buf legal = RV_BUF_INIT(256);

    say(type, &legal);
    int rc = RV_FAIL(err, RV_E_INVALID, "%s must be %s, not %s", what, rv_buf_cstr(&legal), rv_json_type_text(v));
    rv_buf_fini(&legal);
    return rc;
}

static int check_keys(const struct field *fields, size_t n, json_object *in, rv_err **err)
{
    char names[MAX_FIELDS][32];
    const char *list[MAX_FIELDS];

    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "%.*s", RV_STR_ARG(fields[i].name));
        list[i] = names[i];
    }
    json_object_object_foreach (in, key, value) {
        bool known = false;
        (void)value;
        for (size_t i = 0; i < n && !known; i++)
            known = strcmp(names[i], key) == 0;
        if (known)
            continue;
        const char *near = rv_nearest(rv_str_of(key), list, n);
        int rc = RV_FAIL(err, RV_E_INVALID, "unknown key \"%s\" in the input", key);
        if (near)
            rv_err_hint(err, "did you mean \"%s\"?", near);
        return rc;
    }
    return 0;
}

int rv_fn_check_shape(const char *shape, json_object *in, rv_err **err)
{
    struct field fields[MAX_FIELDS];
    size_t n = 0;

    if (shape[0] != '{')
        return matches(in, rv_str_of(shape)) ? 0 : wrong("the input", rv_str_of(shape), in, err);
    if (!json_object_is_type(in, json_type_object)) {
        int rc = wrong("the input", RV_STR_LIT("object"), in, err);
        rv_err_hint(err, "%s", shape);
        return rc;
    }
    for (const char *at = shape; n < MAX_FIELDS && next_field(&at, &fields[n]); n++) {
        json_object *value = NULL;
        char name[32];
        snprintf(name, sizeof name, "%.*s", RV_STR_ARG(fields[n].name));
        bool present = json_object_object_get_ex(in, name, &value);
        if (!present && !fields[n].optional) {
            int rc = RV_FAIL(err, RV_E_INVALID, "the input has no \"%s\"", name);
            rv_err_hint(err, "%s", shape);
            return rc;
        }
        if (!present || (!value && fields[n].optional))
            continue;
        if (!matches(value, fields[n].type))
            return wrong(name, fields[n].type, value, err);
    }
    return check_keys(fields, n, in, err);
}
