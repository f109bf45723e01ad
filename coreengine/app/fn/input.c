/* The inputs of functions: do they have the shape that was promised, and what is in them. */
#include "coreengine/app/fn/fn_internal.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS       32 /* of one function's input: those in the source have fewer */
#define MAX_CONFIG_BYTES RV_YAML_MAX_BYTES

/* --- shapes --- */

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
            rv_err_set_hint(err, "did you mean \"%s\"?", near);
        return rc;
    }
    return 0;
}

int app_fn_check_shape(const char *shape, json_object *in, rv_err **err)
{
    struct field fields[MAX_FIELDS];
    size_t n = 0;

    if (shape[0] != '{')
        return matches(in, rv_str_of(shape)) ? 0 : wrong("the input", rv_str_of(shape), in, err);
    if (!json_object_is_type(in, json_type_object)) {
        int rc = wrong("the input", RV_STR_LIT("object"), in, err);
        rv_err_set_hint(err, "%s", shape);
        return rc;
    }
    for (const char *at = shape; n < MAX_FIELDS && next_field(&at, &fields[n]); n++) {
        json_object *value = NULL;
        char name[32];
        snprintf(name, sizeof name, "%.*s", RV_STR_ARG(fields[n].name));
        bool present = json_object_object_get_ex(in, name, &value);
        if (!present && !fields[n].optional) {
            int rc = RV_FAIL(err, RV_E_INVALID, "the input has no \"%s\"", name);
            rv_err_set_hint(err, "%s", shape);
            return rc;
        }
        if (!present || (!value && fields[n].optional))
            continue;
        if (!matches(value, fields[n].type))
            return wrong(name, fields[n].type, value, err);
    }
    return check_keys(fields, n, in, err);
}

/* --- inputs --- */

rv_str app_fn_str(json_object *in, const char *key)
{
    json_object *v = app_fn_any(in, key);
    return json_object_is_type(v, json_type_string) ? rv_json_str(v) : (rv_str){NULL, 0};
}

bool app_fn_flag(json_object *in, const char *key)
{
    bool flag = false;
    return rv_json_get_bool(in, key, &flag) && flag;
}

json_object *app_fn_any(json_object *in, const char *key)
{
    json_object *v = NULL;
    return json_object_object_get_ex(in, key, &v) ? v : NULL;
}

int app_fn_words(json_object *in, const char *key, const char ***out, size_t *n, rv_err **err)
{
    json_object *list = rv_json_get_arr(in, key);
    size_t count = list ? json_object_array_length(list) : 0;
    const char **words = calloc(count + 1, sizeof *words);

    if (!words)
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", key);
    for (size_t i = 0; i < count; i++)
        words[i] = rv_json_str(json_object_array_get_idx(list, i)).ptr;
    *out = words;
    *n = count;
    return 0;
}

int app_fn_source(json_object *in, struct rv_fn_source *out, rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    rv_str now = app_fn_str(in, "now");
    int64_t seed = 0;

    out->now_us = clock.now_us(clock.self);
    out->rand = rv_json_get_int(in, "seed", &seed) ? rv_rand_seeded(&out->state, (uint64_t)seed) : rv_rand_system();
    return now.ptr ? rv_time_parse(now, &out->now_us, err) : 0;
}

int app_fn_envelope(json_object *state, json_object *in, rv_envelope **out, rv_err **err)
{
    struct rv_fn_source source;
    int rc = app_fn_source(in, &source, err);
    return rc < 0 ? rc : rv_envelope_load(state, source.rand, source.now_us, out, err);
}

int app_fn_pipeline(json_object *config, struct rv_pipeline **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_CONFIG_BYTES);
    rv_findings *findings = rv_findings_new();
    static const struct rv_pipeline_opts opts = {.has_other_outputs = true}; /* the input may be a part of one */
    struct rv_pipeline *p = NULL;
    int rc = findings ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the pipeline");

    rv_json_write(config, &text); /* JSON is YAML */
    if (rc == 0)
        rc = rv_buf_check(&text, "pipeline", err);
    if (rc == 0)
        rc = rv_pipeline_parse_with(&(const struct rv_pipeline_source){rv_buf_str(&text), "pipeline", "."}, &opts,
                                    findings, &p, err);
    if (rc == 0)
        rc = app_findings_error(findings, err);
    if (rc == 0 && (!p || !p->is_sound))
        rc = RV_FAIL(err, RV_E_INVALID, "the pipeline is empty");
    if (rc < 0)
        rv_pipeline_free(p);
    else
        *out = p;
    rv_findings_free(findings);
    rv_buf_fini(&text);
    return rc;
}
