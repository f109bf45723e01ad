/* The JSON functions of the header of plugins, beside the parser of the engine: of a text that is JSON both find the
 * same, and what the header writes is what it read. Of any other text the header reads nothing behind the end. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "capabilities/sdk/capability.h"
#include "coreengine/base/base.h"
#include "tests/kit/fuzz.h"

#define MAX_NESTED 50 /* of what is copied: the header writes up to 64 levels */

static void copy_value(struct rv_cap_out *out, const char *key, const char *value, int depth);

/* The decoded key of a member; "" when it has a NUL. */
static char *key_of(const struct rv_cap_iter *i)
{
    return i->key ? rv_cap_strdup(i->key) : NULL;
}

static void copy_members(struct rv_cap_out *out, const char *value, int depth)
{
    struct rv_cap_iter i = rv_cap_each(value);

    while (rv_cap_next(&i)) {
        char *key = key_of(&i);
        if (!i.key || key)
            copy_value(out, key, i.value, depth + 1);
        else
            out->failed = "a key has a NUL";
        free(key);
    }
}

static void copy_value(struct rv_cap_out *out, const char *key, const char *value, int depth)
{
    int64_t n;
    int yes;

    switch (rv_cap_type(value)) {
    case '{':
    case '[':
        if (depth > MAX_NESTED) {
            out->failed = "nested too deeply for this test";
            return;
        }
        rv_cap_begin(out, key, rv_cap_type(value));
        copy_members(out, value, depth);
        rv_cap_end(out);
        return;
    case '"': {
        char *text = rv_cap_strdup(value);
        if (text)
            rv_cap_put_str(out, key, text);
        else
            rv_cap_put_json(out, key, value);
        free(text);
        return;
    }
    case '0':
        if (rv_cap_int(value, &n) == 0 && !memchr(value, '.', rv_cap_size(value)) &&
            !memchr(value, 'e', rv_cap_size(value)) && !memchr(value, 'E', rv_cap_size(value)) &&
            (n != 0 || *value != '-'))
            rv_cap_put_int(out, key, n);
        else
            rv_cap_put_json(out, key, value);
        return;
    case 'b':
        require(rv_cap_bool(value, &yes) == 0);
        rv_cap_put_bool(out, key, yes);
        return;
    case 'n':
        rv_cap_put_str(out, key, NULL);
        return;
    default:
        out->failed = "not a value";
    }
}

/* The same value, by both readers. */
static void compare(json_object *want, const char *value)
{
    struct rv_cap_iter i = rv_cap_each(value);
    size_t n = 0;

    require(rv_cap_size(value) > 0);
    if (json_object_is_type(want, json_type_string)) {
        rv_str text = rv_json_str(want);
        char *got = rv_cap_strdup(value);
        require(rv_cap_type(value) == '"');
        require((got == NULL) == (memchr(text.ptr, '\0', text.len) != NULL));
        require(!got || (strlen(got) == text.len && memcmp(got, text.ptr, text.len) == 0));
        free(got);
    } else if (json_object_is_type(want, json_type_double)) {
        double number = 0, is = json_object_get_double(want);
        require(rv_cap_num(value, &number) != 0 || !(number < is || number > is));
    } else if (json_object_is_type(want, json_type_object)) {
        json_object_object_foreach (want, key, member) {
            (void)key;
            require(rv_cap_next(&i) != 0);
            compare(member, i.value);
            n++;
        }
        require(!rv_cap_next(&i));
    } else if (json_object_is_type(want, json_type_array)) {
        for (; n < json_object_array_length(want); n++) {
            require(rv_cap_next(&i) != 0 && i.index == n);
            compare(json_object_array_get_idx(want, n), i.value);
        }
        require(!rv_cap_next(&i));
    }
}

static void write_again(json_object *want, const char *text)
{
    struct rv_cap_out out = RV_CAP_OUT;
    json_object *back = NULL;

    copy_members(&out, text, 0);
    const char *again = rv_cap_text(&out);
    if (again) {
        require(rv_json_parse(rv_str_of(again), NULL, &back, NULL) == 0);
        require(rv_json_equal(want, back));
        json_object_put(back);
    }
    rv_cap_out_fini(&out);
}

RV_FUZZ_TARGET(sdk)
{
    char *text = malloc(size + 1), few[8];
    json_object *want = NULL;
    struct rv_cap_out out = RV_CAP_OUT;
    double number;
    int64_t n;
    int yes;

    require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (strlen(text) == size && rv_json_parse((rv_str){text, size}, NULL, &want, NULL) == 0) {
        compare(want, text);
        if (json_object_is_type(want, json_type_object))
            write_again(want, text);
        json_object_put(want);
    } else { /* nothing is read behind the end, which the sanitizer sees */
        copy_members(&out, text, 0);
        rv_cap_out_fini(&out);
        (void)rv_cap_num(text, &number);
        (void)rv_cap_int(text, &n);
        (void)rv_cap_bool(text, &yes);
    }
    (void)rv_cap_get(text, "a.b.0.c");
    require(rv_cap_str(text, few, sizeof few) < (long)sizeof few);
    require(rv_cap_size(text) <= size);
    free(text);
    return 0;
}
