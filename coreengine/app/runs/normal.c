/* What is the same in two runs, whatever they are called and whenever they went: ids by order of appearance, no times.
 *
 * An id is sixteen hexadecimal digits, alone or behind a prefix ("env_0123456789abcdef"), wherever it stands in a text:
 * keys of calls have ids in them. The first one of a run becomes #1, the next other one #2. */
#include "coreengine/app/past.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define ID_DIGITS 16
#define MAX_IDS   ((size_t)1000000)

struct rv_normal {
    rv_index seen; /* digits -> number; keys in the arena */
    rv_arena *arena;
    size_t n;
};

rv_normal *rv_normal_new(void)
{
    rv_normal *n = calloc(1, sizeof *n);

    if (n && !(n->arena = rv_arena_new(MAX_IDS * (ID_DIGITS + 16)))) {
        free(n);
        return NULL;
    }
    return n;
}

void rv_normal_free(rv_normal *n)
{
    if (!n)
        return;
    rv_index_fini(&n->seen);
    rv_arena_free(n->arena);
    free(n);
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Exactly as many digits as an id has, at p. */
static bool is_id(rv_str s, size_t at)
{
    size_t end = at;

    if (at > 0 && is_word(s.ptr[at - 1]))
        return false;
    while (end < s.len && end - at < ID_DIGITS && is_hex(s.ptr[end]))
        end++;
    return end - at == ID_DIGITS && (end == s.len || !is_word(s.ptr[end]));
}

static int number_of(rv_normal *n, rv_str digits, int *out, rv_err **err)
{
    *out = rv_index_get(&n->seen, digits);
    if (*out >= 0)
        return 0;
    if (n->n >= MAX_IDS)
        return RV_FAIL(err, RV_E_LIMIT, "a run has more than %zu ids", MAX_IDS);
    const char *kept = rv_arena_dup(n->arena, digits);
    *out = (int)n->n + 1;
    if (!kept || rv_index_add(&n->seen, rv_str_of(kept), *out) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "compare runs");
    n->n++;
    return 0;
}

static int normal_text(rv_normal *n, rv_str text, json_object **out, rv_err **err)
{
    rv_buf b = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int64_t us;
    int rc = 0, number = 0;

    if (text.len < RV_TIME_MAX && text.len >= 20 && rv_time_parse(text, &us, NULL) == 0) {
        *out = json_object_new_string("<time>");
        return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "compare runs");
    }
    for (size_t i = 0; i < text.len && rc == 0; i++) {
        if (!is_id(text, i)) {
            rv_buf_putc(&b, text.ptr[i]);
            continue;
        }
        rc = number_of(n, (rv_str){text.ptr + i, ID_DIGITS}, &number, err);
        rv_buf_printf(&b, "#%d", number);
        i += ID_DIGITS - 1;
    }
    if (rc == 0)
        rc = rv_buf_check(&b, "text", err);
    if (rc == 0 && !(*out = json_object_new_string_len(rv_buf_cstr(&b), (int)b.len)))
        rc = RV_FAIL(err, RV_E_NOMEM, "compare runs");
    rv_buf_fini(&b);
    return rc;
}

/* Members that say how long something took. */
static bool is_span(const char *key)
{
    static const char *const keys[] = {"duration_ms", "execution_time_ms", "processing_time_ms", "total_time_ms"};

    for (size_t i = 0; i < RV_COUNT(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static int normal(rv_normal *n, json_object *v, json_object **out, rv_err **err);

static int normal_object(rv_normal *n, json_object *v, json_object **out, rv_err **err)
{
    json_object *made = json_object_new_object();
    int rc = made ? 0 : RV_FAIL(err, RV_E_NOMEM, "compare runs");

    json_object_object_foreach (v, key, value) {
        json_object *part = NULL;
        if (rc < 0)
            break;
        if (is_span(key)) {
            rc = rv_json_set_text(made, key, "<time>", err);
            continue;
        }
        rc = normal(n, value, &part, err);
        if (rc == 0)
            rc = part ? rv_json_set_take(made, key, part, err) : rv_json_set_null(made, key, err);
    }
    if (rc < 0)
        json_object_put(made);
    else
        *out = made;
    return rc;
}

static int normal_array(rv_normal *n, json_object *v, json_object **out, rv_err **err)
{
    json_object *made = json_object_new_array();
    int rc = made ? 0 : RV_FAIL(err, RV_E_NOMEM, "compare runs");

    for (size_t i = 0; rc == 0 && i < json_object_array_length(v); i++) {
        json_object *part = NULL;
        rc = normal(n, json_object_array_get_idx(v, i), &part, err);
        if (rc == 0)
            rc = part ? rv_json_push_take(made, part, err) : rv_json_push_ref(made, NULL, err);
    }
    if (rc < 0)
        json_object_put(made);
    else
        *out = made;
    return rc;
}

static int normal(rv_normal *n, json_object *v, json_object **out, rv_err **err)
{
    *out = NULL;
    if (json_object_is_type(v, json_type_object))
        return normal_object(n, v, out, err);
    if (json_object_is_type(v, json_type_array))
        return normal_array(n, v, out, err);
    if (json_object_is_type(v, json_type_string))
        return normal_text(n, rv_json_str(v), out, err);
    *out = json_object_get(v);
    return 0;
}

int rv_normal_record(rv_normal *n, rv_str json, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_APP_MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH + 2};
    json_object *v = NULL;

    int rc = rv_json_parse(json, &opts, &v, err);
    if (rc == 0 && !n) {
        *out = v;
        return 0;
    }
    if (rc == 0) {
        static const char *const passing[] = {"seq", "now_us", "engine"}; /* seq: another owner may have come between */
        for (size_t i = 0; i < RV_COUNT(passing); i++)
            json_object_object_del(v, passing[i]);
        rc = normal(n, v, out, err);
    }
    json_object_put(v);
    return rc;
}

/* --- where two trees differ --- */

static bool differ(json_object *a, json_object *b, struct rv_difference *out)
{
    out->a = a;
    out->b = b;
    out->a_absent = out->b_absent = false;
    return true;
}

static bool objects_differ(json_object *a, json_object *b, struct rv_difference *out)
{
    size_t len = out->path.len;

    json_object_object_foreach (a, key, value) {
        json_object *other = NULL;
        bool there = json_object_object_get_ex(b, key, &other);
        rv_buf_printf(&out->path, "%s%s", len ? "." : "", key);
        if (!there) {
            differ(value, NULL, out);
            out->b_absent = true;
            return true;
        }
        if (rv_first_difference(value, other, out))
            return true;
        rv_buf_truncate(&out->path, len);
    }
    json_object_object_foreach (b, other_key, other_value) {
        if (json_object_object_get_ex(a, other_key, NULL))
            continue;
        rv_buf_printf(&out->path, "%s%s", len ? "." : "", other_key);
        differ(NULL, other_value, out);
        out->a_absent = true;
        return true;
    }
    return false;
}

static bool arrays_differ(json_object *a, json_object *b, struct rv_difference *out)
{
    size_t len = out->path.len, n_a = json_object_array_length(a), n_b = json_object_array_length(b);

    for (size_t i = 0; i < n_a || i < n_b; i++) {
        rv_buf_printf(&out->path, "[%zu]", i);
        json_object *in_a = i < n_a ? json_object_array_get_idx(a, i) : NULL;
        json_object *in_b = i < n_b ? json_object_array_get_idx(b, i) : NULL;
        if (i >= n_a || i >= n_b) {
            differ(in_a, in_b, out);
            out->a_absent = i >= n_a;
            out->b_absent = i >= n_b;
            return true;
        }
        if (rv_first_difference(in_a, in_b, out))
            return true;
        rv_buf_truncate(&out->path, len);
    }
    return false;
}

bool rv_first_difference(json_object *a, json_object *b, struct rv_difference *out)
{
    if (json_object_is_type(a, json_type_object) && json_object_is_type(b, json_type_object))
        return objects_differ(a, b, out);
    if (json_object_is_type(a, json_type_array) && json_object_is_type(b, json_type_array))
        return arrays_differ(a, b, out);
    return rv_json_equal(a, b) ? false : differ(a, b, out);
}
