/* Scalars as the contract takes them (p8 1.1): numbers may be written as strings, whole floats are integers, booleans
 * have words; strings are strings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define MAX_NUMBER 400 /* bytes of a number in a string; a longer text is not a plausible number */

void *rv_agentdoc_room(struct rv_agentdoc_reading *r, size_t n, size_t size)
{
    void *p = rv_arena_alloc(r->keys.arena, (n + 1) * size);

    if (!p)
        r->keys.rc = RV_E_NOMEM;
    return p;
}

/* A finding about a value, with the key's own hint in place of the general one. */
static bool refuse(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char *what)
{
    rv_keys_wrong_type(&r->keys, node, key, what);
    return false;
}

bool rv_agentdoc_text(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char **out)
{
    if (node->kind != RV_NODE_STR)
        return refuse(r, node, key, "a string");
    *out = node->text.ptr;
    return true;
}

bool rv_agentdoc_bool(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, bool *out)
{
    static const char *const words[][2] = {{"false", "true"}, {"0", "1"}, {"no", "yes"},
                                           {"off", "on"},     {"f", "t"}, {"n", "y"}};

    if (node->kind == RV_NODE_BOOL || (node->kind == RV_NODE_INT && (node->i64 == 0 || node->i64 == 1))) {
        *out = node->i64 != 0;
        return true;
    }
    for (size_t i = 0; node->kind == RV_NODE_STR && i < RV_COUNT(words); i++)
        for (int value = 0; value < 2; value++)
            if (strlen(words[i][value]) == node->text.len && strcasecmp(words[i][value], node->text.ptr) == 0) {
                *out = value != 0;
                return true;
            }
    return refuse(r, node, key, "a boolean");
}

/* Digits from *i on; how many. */
static size_t digits(rv_str s, size_t *i, rv_buf *out)
{
    size_t from = *i;
    size_t n;

    while (*i < s.len && s.ptr[*i] >= '0' && s.ptr[*i] <= '9')
        ++*i;
    n = *i - from;
    while (out && from + 1 < *i && s.ptr[from] == '0')
        from++; /* JSON has no leading zeros */
    if (out)
        rv_buf_add(out, s.ptr + from, *i - from);
    return n;
}

/* s as a JSON number; false: it is none. */
static bool to_json_number(rv_str s, rv_buf *out)
{
    size_t i = 0;
    size_t n, n_fraction = 0;
    size_t start;

    s = rv_str_trim(s);
    if (s.len > MAX_NUMBER)
        return false;
    if (i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+'))
        rv_buf_puts(out, s.ptr[i++] == '-' ? "-" : "");
    n = digits(s, &i, out);
    if (n == 0)
        rv_buf_putc(out, '0');
    if (i < s.len && s.ptr[i] == '.') {
        start = ++i;
        n_fraction = digits(s, &i, NULL);
        if (n_fraction > 0) {
            rv_buf_putc(out, '.');
            rv_buf_add(out, s.ptr + start, n_fraction);
        }
    }
    if (n + n_fraction == 0)
        return false;
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        rv_buf_putc(out, 'e');
        i++;
        if (i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+'))
            rv_buf_putc(out, s.ptr[i++]);
        if (digits(s, &i, out) == 0)
            return false;
    }
    return i == s.len;
}

static int read_number(rv_str text, json_object **out)
{
    rv_buf json = RV_BUF_INIT(2 * MAX_NUMBER);
    rv_err *err = NULL;
    int rc = RV_E_INVALID;

    if (to_json_number(text, &json))
        rc = json.rc == 0 ? rv_json_parse(rv_buf_str(&json), NULL, out, &err) : json.rc;
    rv_err_free(err);
    rv_buf_fini(&json);
    return rc == 0 || rc == RV_E_NOMEM ? rc : RV_E_INVALID;
}

int rv_agentdoc_text_number(rv_str text, double *out)
{
    json_object *v = NULL;
    int rc = read_number(text, &v);
    double d = rc == 0 ? json_object_get_double(v) : 0;

    json_object_put(v);
    if (rc == 0 && !isfinite(d))
        rc = RV_E_INVALID;
    if (rc == 0)
        *out = d;
    return rc;
}

/* A float that is an int64. */
static bool is_whole(double d, int64_t *out)
{
    if (!isfinite(d) || floor(d) != d || d < -9223372036854775808.0 || d >= 9223372036854775808.0)
        return false;
    *out = (int64_t)d;
    return true;
}

int rv_agentdoc_text_int(rv_str text, int64_t *out)
{
    json_object *v = NULL;
    int rc = read_number(text, &v);

    if (rc == 0 && rv_json_is_int(v))
        *out = json_object_get_int64(v);
    else if (rc == 0 && (json_object_is_type(v, json_type_int) || !is_whole(json_object_get_double(v), out)))
        rc = RV_E_INVALID;
    json_object_put(v);
    return rc;
}

bool rv_agentdoc_number(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, double *out)
{
    int rc = RV_E_INVALID;

    if (node->kind == RV_NODE_STR)
        rc = rv_agentdoc_text_number(node->text, out);
    if (rc == RV_E_NOMEM)
        r->keys.rc = rc;
    if (rc == 0)
        return true;
    if ((node->kind != RV_NODE_INT && node->kind != RV_NODE_FLOAT) || !isfinite(node->f64))
        return refuse(r, node, key, "a number");
    *out = node->f64;
    return true;
}

bool rv_agentdoc_int(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, int64_t min,
                     int64_t *out)
{
    int64_t value = node->i64;
    int rc = RV_E_INVALID;

    if (node->kind == RV_NODE_STR)
        rc = rv_agentdoc_text_int(node->text, &value);
    if (rc == RV_E_NOMEM)
        r->keys.rc = rc;
    if (rc < 0 && node->kind != RV_NODE_INT && !(node->kind == RV_NODE_FLOAT && is_whole(node->f64, &value)))
        return refuse(r, node, key, "an integer");
    if (value < min) {
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &node->src,
                        min == 1 ? "leave the key out to get its default" : NULL, "%s%s must be %lld or more, not %lld",
                        r->keys.path ? r->keys.path : "", key, (long long)min, (long long)value);
        return false;
    }
    *out = value;
    return true;
}

bool rv_agentdoc_word(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char **out)
{
    const char *text;

    if (!rv_agentdoc_text(r, node, key, &text))
        return false;
    if (!rv_agentdoc_is_name(node->text)) {
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &node->src,
                        "a name is one word of letters, digits, \"-\", \"_\" and \".\", and begins with one of the "
                        "first two or \"_\"",
                        "%s%s must be a name, not \"%.60s\"", r->keys.path ? r->keys.path : "", key, text);
        return false;
    }
    *out = text;
    return true;
}
