/* JSON at the border: one strict reader and one writer around json-c's value type.
 *
 * The reader accepts RFC 8259 and nothing else, and closes what json-c's own tokener lets through (single quotes, NaN,
 * duplicate keys, keys cut at an escaped NUL, clamped integers, overlong UTF-8, trailing bytes). Values stay json-c's
 * json_object, so that trees, reference counts and iteration are the library's. JSON null is a NULL pointer, as json-c
 * has it: test presence with json_object_object_get_ex. Trees belong to one thread: hand over text. Strings may hold
 * NULs: use rv_json_str(), never strlen. Numbers read keep their source text and are written as they were read: an
 * integer from -2^63 to 2^64-1 is exact, any other number is a double that keeps its digits. Out of the range of
 * doubles (1e400) is an error. */
#ifndef RV_BASE_JSON_H
#define RV_BASE_JSON_H

#include <json-c/json_object.h>

#include "coreengine/base/buf.h"

/* Defaults for untrusted text. */
#define RV_JSON_MAX_BYTES ((size_t)8 << 20) /* the longest model reply or state that is read at once */
#define RV_JSON_MAX_DEPTH 256               /* nesting; deeper input is an attack or a fault */

/* What it points to is borrowed for the call. */
struct rv_json_opts {
    size_t max_bytes;      /* 0: RV_JSON_MAX_BYTES */
    int max_depth;         /* 0: RV_JSON_MAX_DEPTH */
    bool allow_duplicates; /* true: the last of equal keys wins (model output); false: an error */
    bool refuse_big_ints;  /* true: an integer outside int64/uint64 is an error; false: a double with its text */
    const char *what;      /* for messages: "tool result"; NULL: "JSON" */
};

/** Parse exactly one JSON value, white space around it allowed. opts may be NULL (strict defaults).
 *  @param out the tree, owned by the caller; NULL for a JSON null (the return code tells success)
 *  @return 0, RV_E_PARSE (text has "line L, column C"), RV_E_LIMIT (also a tree above some 200 MB of heap: `{},{},...`
 *          costs two hundred times its text), RV_E_NOMEM */
RV_MUST_CHECK int rv_json_parse(rv_str text, const struct rv_json_opts *opts, json_object **out, rv_err **err);
/** The same of text that may be something else: *out is NULL for what cannot be read (and for a JSON null). It fails
 * without memory only. */
RV_MUST_CHECK int rv_json_try_parse(rv_str text, const struct rv_json_opts *opts, json_object **out, rv_err **err);

/* How a value that starts at the beginning of a text ends; for finding objects in prose. */
enum rv_json_end {
    RV_JSON_VALUE,      /* complete; `end` is the offset after it */
    RV_JSON_INCOMPLETE, /* the text ended inside a so far valid value */
    RV_JSON_SYNTAX,     /* broken at `end` (too deep counts as broken) */
};
struct rv_json_scan {
    enum rv_json_end how;
    size_t end;
    bool saw_key; /* at least one complete "key": of the outermost object was read */
};
/** Read one value at the start of text (no white space skipped, rest ignored). On RV_JSON_VALUE *out is the tree if out
 *  is not NULL. Fails only with RV_E_NOMEM; how it ended is in *scan. */
RV_MUST_CHECK int rv_json_scan(rv_str text, const struct rv_json_opts *opts, struct rv_json_scan *scan,
                               json_object **out, rv_err **err);

/* Writing. Sticky like rv_buf: check the buffer at the end. Compact, UTF-8 as is, no NaN (a non-finite double is a
 * sticky RV_E_INVALID), "/" not escaped, doubles in shortest round-trip form and always with a point or exponent. */
typedef struct rv_jw {
    rv_buf *out; /* borrowed */
    bool comma;  /* internal: a comma is due before the next item */
} rv_jw;
rv_jw rv_jw_on(rv_buf *out);
void rv_jw_obj(rv_jw *w);
void rv_jw_obj_end(rv_jw *w);
void rv_jw_arr(rv_jw *w);
void rv_jw_arr_end(rv_jw *w);
void rv_jw_key(rv_jw *w, const char *key);
void rv_jw_key_str(rv_jw *w, rv_str key);
void rv_jw_str(rv_jw *w, rv_str s);        /* invalid UTF-8 is a sticky RV_E_INVALID */
void rv_jw_buf(rv_jw *w, const rv_buf *s); /* a string; a failure that sticks to s sticks to the output then */
void rv_jw_text(rv_jw *w, const char *s);  /* NULL writes null */
void rv_jw_int(rv_jw *w, int64_t i);
void rv_jw_bool(rv_jw *w, bool b);
void rv_jw_double(rv_jw *w, double d);
void rv_jw_null(rv_jw *w);
void rv_jw_value(rv_jw *w, json_object *v); /* a whole tree; NULL writes null */
void rv_jw_raw(rv_jw *w, rv_str json);      /* text that is one valid JSON value already */
/* key and value in one call */
void rv_jw_kv_str(rv_jw *w, const char *key, rv_str s);
void rv_jw_kv_buf(rv_jw *w, const char *key, const rv_buf *s);
void rv_jw_kv_text(rv_jw *w, const char *key, const char *s);
void rv_jw_kv_int(rv_jw *w, const char *key, int64_t i);
void rv_jw_kv_bool(rv_jw *w, const char *key, bool b);
void rv_jw_kv_value(rv_jw *w, const char *key, json_object *v);

/** Append v to b as compact JSON (sticky, as above). */
void rv_json_write(json_object *v, rv_buf *b);
/** Append v indented by two blanks a level, for people. */
void rv_json_write_pretty(json_object *v, rv_buf *b);

/* Building trees. Each takes `val` on every path; a NULL val is an out-of-memory error, except in _set_null.
 * obj must be an object, arr an array (asserted: a bug of ours). An existing key is replaced in place. */
RV_MUST_CHECK int rv_json_set_take(json_object *obj, const char *key, json_object *val, rv_err **err);
RV_MUST_CHECK int rv_json_set_null(json_object *obj, const char *key, rv_err **err);
RV_MUST_CHECK int rv_json_set_str(json_object *obj, const char *key, rv_str s, rv_err **err);
RV_MUST_CHECK int rv_json_set_text(json_object *obj, const char *key, const char *s, rv_err **err); /* NULL: null */
RV_MUST_CHECK int rv_json_set_int(json_object *obj, const char *key, int64_t i, rv_err **err);
RV_MUST_CHECK int rv_json_set_bool(json_object *obj, const char *key, bool b, rv_err **err);
/** Set key to another reference of val (which may be NULL: JSON null). */
RV_MUST_CHECK int rv_json_set_ref(json_object *obj, const char *key, json_object *val, rv_err **err);
RV_MUST_CHECK int rv_json_push_take(json_object *arr, json_object *val, rv_err **err);
RV_MUST_CHECK int rv_json_push_ref(json_object *arr, json_object *val, rv_err **err); /* NULL: pushes null */

/** Take n values out of an array, from `at` on; that they are there is asserted: a bug of ours. */
void rv_json_cut(json_object *arr, size_t at, size_t n);

/* Building a whole tree: the first failure sticks, and what follows it does nothing. Check rc at the end. */
struct rv_json_build {
    rv_err **err; /* of the first failure; may be NULL; borrowed */
    int rc;
};
/** Add value, which it takes, to an object, or with key NULL to an array. A NULL value is an out-of-memory error.
 *  @return value, borrowed from `to`; NULL after a failure */
json_object *rv_json_build(struct rv_json_build *b, json_object *to, const char *key, json_object *value);
void rv_json_build_text(struct rv_json_build *b, json_object *to, const char *key, const char *text);
/* A failure that sticks to text sticks to b then. */
void rv_json_build_buf(struct rv_json_build *b, json_object *to, const char *key, const rv_buf *text);
void rv_json_build_int(struct rv_json_build *b, json_object *to, const char *key, int64_t i);

/* Looking. Nothing is coerced. */
rv_str rv_json_str(json_object *s);            /* bytes of a string node; empty view for any other type */
const char *rv_json_type_text(json_object *v); /* "object" "array" "string" "integer" "number" "boolean" "null" */
bool rv_json_is_int(json_object *v);           /* an integer that fits int64 */
bool rv_json_is_number(json_object *v);
bool rv_json_is_text(json_object *v); /* a string */
/** The string under key, borrowed; false if absent or of another type. NUL-terminated (json-c's own), so rv_json_str()
 *  when embedded NULs matter. */
bool rv_json_get_text(json_object *obj, const char *key, const char **out);
bool rv_json_get_int(json_object *obj, const char *key, int64_t *out);
bool rv_json_get_bool(json_object *obj, const char *key, bool *out);
/** The same with a value for what is absent or of another type; obj may be NULL. */
const char *rv_json_text_or(json_object *obj, const char *key, const char *otherwise);
int64_t rv_json_int_or(json_object *obj, const char *key, int64_t otherwise);
bool rv_json_bool_or(json_object *obj, const char *key, bool otherwise);
/** The child, borrowed; NULL: it is a null, or there is none, or obj is not an object. */
json_object *rv_json_member(json_object *obj, const char *key);
/** The string under key, borrowed; ptr NULL: absent, or of another type, or obj is not an object. */
rv_str rv_json_member_str(json_object *obj, const char *key);
/** The child, borrowed, if it is present and of that type; else NULL. */
json_object *rv_json_get_obj(json_object *obj, const char *key);
json_object *rv_json_get_arr(json_object *obj, const char *key);

/** Deep equality: same type and value; numbers by value across integer and float; objects without regard to order. */
bool rv_json_equal(json_object *a, json_object *b);
/** Deep copy that keeps number texts. *out is NULL for NULL. */
RV_MUST_CHECK int rv_json_dup(json_object *v, json_object **out, rv_err **err);
/** A double node in shortest round-trip form; NULL on failure or for a non-finite value. */
json_object *rv_json_new_double(double d);

/* Errors as JSON: {code, message, place?, hint?, causes: [...]}; and for people (see the README of this module). */
void rv_err_write_json(const rv_err *err, rv_jw *w);
/** "a: b: c  [code]  (file:line:col)\n  hint: ...\n"; with debug, one line per link with its C source place. */
void rv_err_write_text(const rv_err *err, bool debug, rv_buf *b);
/** The texts of err and its causes, as they are, with ": " between them. */
void rv_err_write_chain(const rv_err *err, rv_buf *out);

#endif
