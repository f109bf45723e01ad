/* Finding the one object that a model meant in a reply of prose, drafts and code fences (rule 5.6).
 *
 * Each "{" is tried with the real JSON reader, so braces in strings or prose cannot mislead. A broken text that started
 * like an object (it had a complete key) is skipped as a whole: its inner objects are never mistaken for the answer. */
#include "coreengine/agent/agent.h"

#include <string.h>

static const struct rv_json_opts lenient = {
    .allow_duplicates = true,
    .what = "model reply",
};

static bool has_all(json_object *obj, const char *const *required, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!json_object_object_get_ex(obj, required[i], NULL))
            return false;
    return true;
}

/* Offset after the brace that closes the one at text[0], strings respected; 0 if there is none. */
static size_t skip_braces(rv_str text)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

struct search {
    json_object *first;    /* first candidate; owned */
    json_object *complete; /* first candidate with all required fields; owned */
    bool truncated;
};

static int search_objects(rv_str text, const char *const *required, size_t n_required, struct search *s, rv_err **err)
{
    size_t at = 0;

    while (!s->complete) {
        const char *brace = memchr(text.ptr + at, '{', text.len - at);
        if (!brace)
            return 0;
        at = (size_t)(brace - text.ptr);
        rv_str rest = {brace, text.len - at};
        struct rv_json_scan scan;
        json_object *obj = NULL;
        int rc = rv_json_scan(rest, &lenient, &scan, &obj, err);
        if (rc < 0)
            return rc;

        if (scan.how == RV_JSON_VALUE) {
            if (has_all(obj, required, n_required))
                s->complete = json_object_get(obj);
            if (!s->first)
                s->first = json_object_get(obj);
            json_object_put(obj);
            at += scan.end;
        } else if (scan.how == RV_JSON_INCOMPLETE) {
            s->truncated = true;
            return 0;
        } else if (scan.saw_key) {
            size_t skipped = skip_braces(rest);
            if (skipped == 0)
                return 0;
            at += skipped;
        } else {
            at++;
        }
    }
    return 0;
}

int rv_extract_object(rv_str text, const char *const *required, size_t n_required, json_object **out, rv_err **err)
{
    struct rv_json_scan scan;
    json_object *whole = NULL;
    int rc;

    if (text.len > RV_JSON_MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "model reply of %zu bytes is longer than the %zu that are read", text.len,
                       RV_JSON_MAX_BYTES);
    if (text.len >= 3 && memcmp(text.ptr, "\xEF\xBB\xBF", 3) == 0)
        text = (rv_str){text.ptr + 3, text.len - 3};
    text = rv_str_trim(text);
    if (text.len == 0)
        return RV_FAIL(err, RV_E_PARSE, "no JSON object found: the model reply is empty");

    rc = rv_json_scan(text, &lenient, &scan, &whole, err);
    if (rc < 0)
        return rc;
    if (scan.how == RV_JSON_VALUE && scan.end == text.len) {
        if (json_object_is_type(whole, json_type_object)) {
            *out = whole;
            return 0;
        }
        rc = RV_FAIL(err, RV_E_PARSE, "no JSON object found: the model reply is of type %s, not an object",
                     rv_json_type_text(whole));
        json_object_put(whole);
        return rc;
    }
    json_object_put(whole);

    struct search s = {NULL, NULL, false};
    rc = search_objects(text, required, n_required, &s, err);
    if (rc == 0) {
        json_object *found = s.complete ? s.complete : s.first;
        if (found)
            *out = json_object_get(found);
        else if (s.truncated)
            rc = RV_FAIL(err, RV_E_PARSE, "no JSON object found: the model reply is truncated inside an object");
        else
            rc = RV_FAIL(err, RV_E_PARSE, "no JSON object found in the model reply");
    }
    json_object_put(s.first);
    json_object_put(s.complete);
    return rc;
}
