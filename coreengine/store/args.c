/* Checks of arguments, rows that own their texts, and metadata. The code behind these checks relies on ids, sizes,
 * encodings and order. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/store/store_internal.h"

#define MAX_DAMAGE 600 /* bytes of a text that says what is damaged: two ids of RV_STORE_MAX_ID and a sentence */

int store_check_text(const char *kind, const char *text, size_t max, rv_err **err)
{
    size_t len;

    if (!text)
        return RV_FAIL(err, RV_E_INVALID, "no %s given", kind);
    len = strnlen(text, max + 1);
    if (len > max)
        return RV_FAIL(err, RV_E_LIMIT, "the %s \"%.40s...\" is longer than %zu bytes", kind, text, max);
    if (!rv_utf8_valid((rv_str){text, len}, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the %s \"%s\" is not UTF-8", kind, text);
    return 0;
}

int store_check_id(const char *kind, const char *id, rv_err **err)
{
    if (id && !*id)
        return RV_FAIL(err, RV_E_INVALID, "the %s is empty", kind);
    return store_check_text(kind, id, RV_STORE_MAX_ID, err);
}

/* Only of what is new: what an older version took stays reachable. */
int store_check_new_id(const char *kind, const char *id, rv_err **err)
{
    for (const char *p = id; p && *p; p++)
        if (rv_utf8_control(p, strlen(p)))
            return RV_FAIL(err, RV_E_INVALID, "the %s has a control character at byte %td", kind, p - id);
    return 0;
}

int store_check_optional(const char *kind, const char *text, size_t max, rv_err **err)
{
    if (!text)
        return 0;
    if (!*text)
        return RV_FAIL(err, RV_E_INVALID, "the %s is empty", kind);
    return store_check_text(kind, text, max, err);
}

int store_check_scope(const struct rv_store_scope *scope, struct rv_store_scope *out, rv_err **err)
{
    int rc;

    if (!scope)
        return RV_FAIL(err, RV_E_INVALID, "no scope given");
    *out = *scope;
    if (!out->tenant)
        out->tenant = RV_STORE_TENANT;
    rc = store_check_id("tenant", out->tenant, err);
    if (rc == 0 && out->user)
        rc = store_check_text("user", out->user, RV_STORE_MAX_ID, err);
    return rc;
}

int store_check_scoped(const struct rv_store_scope *scope, const char *kind, const char *id, struct rv_store_scope *out,
                       rv_err **err)
{
    int rc = store_check_scope(scope, out, err);

    return rc < 0 ? rc : store_check_id(kind, id, err);
}

int store_check_hash(const char *hash, rv_err **err)
{
    if (!hash)
        return RV_FAIL(err, RV_E_INVALID, "no hash given");
    if (strnlen(hash, RV_HASH_MAX) != RV_HASH_MAX - 1 || strspn(hash, "0123456789abcdef") != RV_HASH_MAX - 1)
        return RV_FAIL(err, RV_E_INVALID, "\"%.80s\" is not a SHA-256: 64 digits of 0-9a-f", hash);
    return 0;
}

int store_check_bytes(const char *kind, rv_str s, size_t max, rv_err **err)
{
    size_t bad = 0;

    if (!s.ptr && s.len > 0)
        return RV_FAIL(err, RV_E_INVALID, "the %s has a length and no bytes", kind);
    if (s.len > max)
        return RV_FAIL(err, RV_E_LIMIT, "the %s has %zu bytes, more than %zu", kind, s.len, max);
    if (!rv_utf8_valid(s, &bad))
        return RV_FAIL(err, RV_E_INVALID, "the %s is not UTF-8 at byte %zu", kind, bad);
    return 0;
}

int store_check_time(const char *kind, int64_t us, rv_err **err)
{
    return us < 0 ? RV_FAIL(err, RV_E_INVALID, "%s is %lld, before 1970", kind, (long long)us) : 0;
}

/* Reading it as a whole tells where its fault is. */
static int not_an_object(const char *kind, rv_str text, const struct rv_json_opts *opts, rv_err **err)
{
    json_object *value = NULL;
    rv_err *cause = NULL;
    int rc = rv_json_parse(text, opts, &value, &cause);

    if (rc == RV_E_NOMEM)
        return rv_err_pass(err, cause);
    if (rc == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "the %s is not a JSON object but of type %s", kind, rv_json_type_text(value));
    else
        rc = RV_FAIL(err, RV_E_INVALID, "the %s is not a JSON object: %s", kind, rv_err_text(cause));
    rv_err_set_hint(err, "write an object, such as {\"key\": \"value\"}");
    rv_err_free(cause);
    json_object_put(value);
    return rc;
}

/* Checks the text without building a tree: it is stored unchanged. */
int store_check_object(const char *kind, rv_str json, size_t max, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = max};
    struct rv_json_scan scan = {0};
    rv_str text;
    int rc = store_check_bytes(kind, json, max, err);

    if (rc < 0 || json.len == 0)
        return rc;
    text = rv_str_trim(json);
    rc = rv_json_scan(text, &opts, &scan, NULL, err);
    if (rc == 0 && (scan.how != RV_JSON_VALUE || scan.end != text.len || text.ptr[0] != '{'))
        rc = not_an_object(kind, text, &opts, err);
    return rc;
}

int store_check_members(const char *kind, json_object *v, rv_err **err)
{
    if (v && !json_object_is_type(v, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "the %s is not a JSON object", kind);
    return 0;
}

/* --- Rows that were read --- */

int store_damaged(const struct sql_store *st, rv_err **err, const char *fmt, ...)
{
    char text[MAX_DAMAGE];
    va_list args;

    va_start(args, fmt);
    rv_vformat(text, sizeof text, fmt, args);
    va_end(args);
    RV_FAIL(err, RV_E_IO, "\"%s\": %s", sql_path(st), text);
    rv_err_set_hint(err, "`reeve store check` lists what else is");
    return RV_E_IO;
}

int store_check_numbers(const struct sql_store *st, const char *kind, const char *id, const int64_t *numbers, size_t n,
                        rv_err **err)
{
    for (size_t i = 0; i < n; i++)
        if (numbers[i] < 0 || numbers[i] > RV_STORE_MAX_NUMBER)
            return store_damaged(st, err, "%s \"%s\" is damaged: %lld is not a number that it can have", kind, id,
                                 (long long)numbers[i]);
    return 0;
}

char *store_pack(const struct rv_row_texts *row)
{
    size_t size = 1;
    char *own, *at;

    for (size_t i = 0; i < row->n_texts; i++)
        size += *row->texts[i] ? strlen(*row->texts[i]) + 1 : 0;
    for (size_t i = 0; i < row->n_strs; i++)
        size += row->strs[i]->ptr ? row->strs[i]->len + 1 : 0;
    own = at = malloc(size);
    if (!own)
        return NULL;
    for (size_t i = 0; i < row->n_texts; i++) {
        size_t len = *row->texts[i] ? strlen(*row->texts[i]) + 1 : 0;
        if (len > 0)
            *row->texts[i] = memcpy(at, *row->texts[i], len);
        at += len;
    }
    for (size_t i = 0; i < row->n_strs; i++) {
        rv_str *s = row->strs[i];
        if (!s->ptr)
            continue;
        s->ptr = memcpy(at, s->ptr, s->len);
        at[s->len] = 0;
        at += s->len + 1;
    }
    return own;
}

static uint32_t code_point(const unsigned char *at, size_t len)
{
    uint32_t c = len == 1 ? at[0] : at[0] & (0xffu >> (len + 1));

    for (size_t i = 1; i < len; i++)
        c = c << 6 | (at[i] & 0x3f);
    return c;
}

static size_t put_code_point(uint32_t c, unsigned char *at)
{
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = len; i-- > 1; c >>= 6)
        at[i] = (unsigned char)(0x80 | (c & 0x3f));
    at[0] = (unsigned char)(len == 1 ? c : (0xf0u << (4 - len)) | c);
    return len;
}

/* The least text above all that begin with the prefix, which is UTF-8, in the order of bytes; "": there is none. Its
 * last character becomes the one behind it: what is not UTF-8 is not a text for every database. */
void store_prefix_end(const char *prefix, char end[RV_STORE_MAX_ID + 2])
{
    size_t len = strlen(prefix);

    memcpy(end, prefix, len + 1);
    while (len > 0) {
        size_t begin = len - 1;
        while (begin > 0 && rv_utf8_continues(end[begin]))
            begin--;
        uint32_t c = code_point((const unsigned char *)end + begin, len - begin) + 1;
        if (c == 0xd800)
            c = 0xe000;
        len = begin;
        if (c <= 0x10ffff)
            len += put_code_point(c, (unsigned char *)end + begin);
        end[len] = 0;
        if (c <= 0x10ffff)
            return;
    }
}

/* --- Metadata --- */

static bool is_one_of(const char *key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

static int parse_old(rv_str text, json_object **out, rv_err **err)
{
    static const struct rv_json_opts opts = {
        .what = "metadata", .max_bytes = RV_STORE_MAX_META, .allow_duplicates = true};
    json_object *old = NULL;
    int rc = rv_json_parse(text.len > 0 ? text : RV_STR_LIT("{}"), &opts, &old, err);

    if (rc == 0 && !json_object_is_type(old, json_type_object)) {
        json_object_put(old);
        rc = RV_FAIL(err, RV_E_IO, "the metadata is damaged: it is not an object");
    }
    if (rc == RV_E_PARSE)
        return RV_WRAP(err, RV_E_IO, "the metadata is damaged");
    if (rc == 0)
        *out = old;
    return rc;
}

int store_merge(rv_str old, json_object *patch, const char *const *remove, size_t n_remove, rv_buf *out, rv_err **err)
{
    rv_jw w = rv_jw_on(out);
    json_object *present = NULL;
    int rc = parse_old(old, &present, err);

    if (rc < 0)
        return rc;
    /* Written while walking: the caller's tree is not changed, and no reference to it is taken. */
    rv_jw_obj(&w);
    json_object_object_foreach (present, key, value) {
        json_object *given = NULL;
        bool is_given = patch && json_object_object_get_ex(patch, key, &given);
        if (!is_one_of(key, remove, n_remove))
            rv_jw_kv_value(&w, key, is_given ? given : value);
    }
    if (patch) {
        json_object_object_foreach (patch, added, given) {
            if (!json_object_object_get_ex(present, added, NULL) && !is_one_of(added, remove, n_remove))
                rv_jw_kv_value(&w, added, given);
        }
    }
    rv_jw_obj_end(&w);
    json_object_put(present);
    return rv_buf_check(out, "metadata", err);
}

void store_blob_hex(const unsigned char digest[RV_STORE_DIGEST], char out[RV_HASH_MAX])
{
    rv_hex_make(digest, RV_STORE_DIGEST, out);
    out[RV_HASH_MAX - 1] = 0;
}
