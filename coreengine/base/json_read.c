/* The one JSON reader: RFC 8259 and nothing else, straight into json-c trees.
 *
 * Recursive descent with an exact depth limit; json_scalar.c has strings and numbers. */
#include "coreengine/base/json_reader_internal.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a tree may cost, in units of about a hundred bytes of heap: `{}` is two bytes of text and eight units. */
#define MAX_UNITS    ((size_t)1 << 21)
#define UNITS_SCALAR 1 /* about what a value costs in memory, of the reader's budget */
#define UNITS_ARRAY  2 /* an array has a list of its own */
#define UNITS_OBJECT 8 /* an object has a hash table of its own */
#define FIRST_ITEMS  4 /* most arrays are short; json-c's default of 32 costs more than the rest of the node */

static enum outcome read_value(struct reader *r, json_object **out);

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
        r->p++;
}

static enum outcome charge(struct reader *r, size_t units)
{
    r->units += units;
    if (r->units > MAX_UNITS)
        return base_jr_verdict(r, TOO_MUCH, r->p, "too many values");
    return OK;
}

static enum outcome read_word(struct reader *r, const char *word, const char *what)
{
    for (; *word; word++, r->p++)
        if (r->p == r->end || *r->p != *word)
            return base_jr_expected(r, what);
    return OK;
}

/* --- containers --- */

/* One key, its colon and its value, into obj (NULL when nothing is built). */
static enum outcome read_member(struct reader *r, json_object *obj)
{
    const char *start = r->p;
    struct lh_table *table = obj ? json_object_get_object(obj) : NULL;
    struct lh_entry *old = NULL;
    json_object *value = NULL;
    unsigned long hash = 0;
    char *key = NULL;
    rv_str name = {NULL, 0};
    enum outcome rc;

    if (r->p == r->end || *r->p != '"')
        return base_jr_expected(r, "a key in double quotes");
    rc = base_jr_string(r, &name);
    if (rc)
        return rc;
    if (name.len && memchr(name.ptr, '\0', name.len))
        return base_jr_verdict(r, BROKEN, start, "a key holds \\u0000");
    if (table) {
        key = rv_str_dup(name);
        if (!key)
            return NO_MEMORY;
        hash = lh_get_hash(table, key);
        old = lh_table_lookup_entry_w_hash(table, key, hash);
    }
    if (old && !r->opts->allow_duplicates) {
        rc = base_jr_verdict(r, BROKEN, start, "duplicate key");
        r->name = (rv_str){start + 1, (size_t)(r->p - start) - 2};
        goto done;
    }
    skip_space(r);
    if (r->p == r->end || *r->p != ':') {
        rc = base_jr_expected(r, "':' after the key");
        goto done;
    }
    r->p++;
    if (r->depth == 1)
        r->saw_key = true;
    skip_space(r);
    rc = read_value(r, &value);
    if (rc || !table)
        goto done;
    if (old) { /* the last of equal keys wins, at the place of the first */
        json_object_put(lh_entry_v(old));
        lh_entry_set_val(old, value);
        value = NULL;
    } else if (lh_table_insert_w_hash(table, key, value, hash, 0) == 0) {
        key = NULL; /* the table's, as is the value */
        value = NULL;
    } else {
        rc = NO_MEMORY;
    }
done:
    free(key);
    json_object_put(value);
    return rc;
}

static enum outcome read_object(struct reader *r, json_object *obj)
{
    enum outcome rc;

    r->p++;
    skip_space(r);
    if (r->p < r->end && *r->p == '}') {
        r->p++;
        return OK;
    }
    for (;;) {
        rc = read_member(r, obj);
        if (rc)
            return rc;
        skip_space(r);
        if (r->p == r->end || (*r->p != ',' && *r->p != '}'))
            return base_jr_expected(r, "',' or '}'");
        if (*r->p++ == '}')
            return OK;
        skip_space(r);
    }
}

static enum outcome read_array(struct reader *r, json_object *arr)
{
    enum outcome rc;

    r->p++;
    skip_space(r);
    if (r->p < r->end && *r->p == ']') {
        r->p++;
        return OK;
    }
    for (;;) {
        json_object *item = NULL;
        rc = read_value(r, &item);
        if (rc)
            return rc;
        if (arr && json_object_array_add(arr, item) < 0) {
            json_object_put(item);
            return NO_MEMORY;
        }
        skip_space(r);
        if (r->p == r->end || (*r->p != ',' && *r->p != ']'))
            return base_jr_expected(r, "',' or ']'");
        if (*r->p++ == ']')
            return OK;
        skip_space(r);
    }
}

static const char too_deep[] = "nesting is too deep"; /* journals have it: its limit is a hint */

static enum outcome read_container(struct reader *r, json_object **out)
{
    bool is_object = *r->p == '{';
    json_object *v = NULL;
    enum outcome rc;

    if (r->depth == r->max_depth)
        return base_jr_verdict(r, TOO_MUCH, r->p, too_deep);
    rc = charge(r, is_object ? UNITS_OBJECT : UNITS_ARRAY);
    if (rc)
        return rc;
    if (r->build) {
        v = is_object ? json_object_new_object() : json_object_new_array_ext(FIRST_ITEMS);
        if (!v)
            return NO_MEMORY;
    }
    r->depth++;
    rc = is_object ? read_object(r, v) : read_array(r, v);
    r->depth--;
    if (rc)
        json_object_put(v);
    else
        *out = v;
    return rc;
}

static enum outcome read_value(struct reader *r, json_object **out)
{
    enum outcome rc;

    *out = NULL;
    if (r->p == r->end)
        return base_jr_expected(r, "a value");
    if (*r->p == '{' || *r->p == '[')
        return read_container(r, out);
    rc = charge(r, UNITS_SCALAR);
    if (rc)
        return rc;
    switch (*r->p) {
    case '"':
        return base_jr_string_value(r, out);
    case 't':
        rc = read_word(r, "true", "\"true\"");
        return rc || !r->build ? rc : base_jr_made(json_object_new_boolean(1), out);
    case 'f':
        rc = read_word(r, "false", "\"false\"");
        return rc || !r->build ? rc : base_jr_made(json_object_new_boolean(0), out);
    case 'n':
        return read_word(r, "null", "\"null\"");
    default:
        if (*r->p == '-' || base_jr_at_digit(r))
            return base_jr_number(r, out);
        return base_jr_expected(r, "a value");
    }
}

/* --- entries --- */

static const struct rv_json_opts strict_defaults;

static struct reader reader_on(rv_str text, const struct rv_json_opts *opts, bool build)
{
    struct reader r = {.opts = opts, .build = build};

    r.text = r.p = r.at = text.ptr ? text.ptr : "";
    r.end = r.text + text.len;
    r.max_depth = opts->max_depth > 0 ? opts->max_depth : RV_JSON_MAX_DEPTH;
    rv_buf_init(&r.scratch, text.len);
    return r;
}

/* What stands where it broke, for people. */
static void describe(const struct reader *r, char *out, size_t size)
{
    unsigned char c = r->at < r->end ? (unsigned char)*r->at : 0;
    int n = r->at < r->end ? base_utf8_next((const unsigned char *)r->at, (size_t)(r->end - r->at)) : 0;

    if (r->at == r->end)
        snprintf(out, size, "the end of the text");
    else if (c < 0x20 || c == 0x7F || n <= 0)
        snprintf(out, size, "byte 0x%02x", c);
    else if (rv_utf8_unmark((rv_str){r->at, (size_t)(r->end - r->at)}).ptr != r->at)
        snprintf(out, size, "a byte order mark (U+FEFF)");
    else if (c == '\'')
        snprintf(out, size, "a single quote");
    else
        snprintf(out, size, "'%.*s'", n, r->at);
}

static int report(const struct reader *r, enum outcome how, rv_err **err)
{
    const char *what = r->opts->what ? r->opts->what : "JSON";
    int code = how == TOO_MUCH ? RV_E_LIMIT : RV_E_PARSE;
    size_t line = 1, column = 1;
    char found[32];
    const char *p;

    if (how == NO_MEMORY)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to read %s", what);
    for (p = r->text; p < r->at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) {
            column++;
        }
    }
    if (r->is_verdict && r->name.ptr)
        return RV_FAIL(err, code, "%s: line %zu, column %zu: %s \"%.*s\"", what, line, column, r->why,
                       RV_STR_ARG(rv_utf8_cut(r->name, 200)));
    if (r->is_verdict) {
        code = RV_FAIL(err, code, "%s: line %zu, column %zu: %s", what, line, column, r->why);
        if (r->why == too_deep)
            rv_err_set_hint(err, "the limit is %d levels of lists and objects within each other", r->max_depth);
        return code;
    }
    describe(r, found, sizeof found);
    return RV_FAIL(err, code, "%s: line %zu, column %zu: expected %s, found %s", what, line, column, r->why, found);
}

int rv_json_parse(rv_str text, const struct rv_json_opts *opts, json_object **out, rv_err **err)
{
    json_object *v = NULL;
    struct reader r;
    enum outcome how;
    size_t max;
    int rc = 0;

    opts = opts ? opts : &strict_defaults;
    max = opts->max_bytes ? opts->max_bytes : RV_JSON_MAX_BYTES;
    if (text.len > max)
        return RV_FAIL(err, RV_E_LIMIT, "%s is %zu bytes long, allowed are %zu", opts->what ? opts->what : "JSON",
                       text.len, max);
    r = reader_on(text, opts, true);
    skip_space(&r);
    how = read_value(&r, &v);
    if (how == OK) {
        skip_space(&r);
        if (r.p != r.end)
            how = base_jr_expected(&r, "the end of the text");
    }
    if (how == OK) {
        *out = v;
        v = NULL;
    } else {
        rc = report(&r, how, err);
    }
    json_object_put(v);
    rv_buf_fini(&r.scratch);
    return rc;
}

int rv_json_try_parse(rv_str text, const struct rv_json_opts *opts, json_object **out, rv_err **err)
{
    *out = NULL;
    int rc = rv_json_parse(text, opts, out, RV_CODE_ONLY("what cannot be read is NULL; want of memory is told below"));

    return rc == RV_E_NOMEM ? RV_FAIL(err, rc, "no memory to read %s", opts && opts->what ? opts->what : "JSON") : 0;
}

int rv_json_scan(rv_str text, const struct rv_json_opts *opts, struct rv_json_scan *scan, json_object **out,
                 rv_err **err)
{
    json_object *v = NULL;
    bool is_clipped;
    struct reader r;
    enum outcome how;
    size_t max;

    opts = opts ? opts : &strict_defaults;
    max = opts->max_bytes ? opts->max_bytes : RV_JSON_MAX_BYTES;
    is_clipped = text.len > max;
    if (is_clipped)
        text.len = max;
    r = reader_on(text, opts, out || !opts->allow_duplicates); /* only a tree tells duplicates */
    how = read_value(&r, &v);
    rv_buf_fini(&r.scratch);
    if (how == NO_MEMORY)
        return report(&r, how, err);
    scan->saw_key = r.saw_key;
    scan->end = (size_t)((how == OK ? r.p : r.at) - r.text);
    scan->how = how == OK ? RV_JSON_VALUE : how == CUT && !is_clipped ? RV_JSON_INCOMPLETE : RV_JSON_SYNTAX;
    if (how == OK && out) {
        *out = v;
        v = NULL;
    }
    json_object_put(v);
    return 0;
}
