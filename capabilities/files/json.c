/* Arguments in, answers out. The host has parsed what comes in strictly and checked it against the schema. */
#include "capabilities/files/files_internal.h"

#include <json-c/json_tokener.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 512 /* nesting of what the host gives: 256 levels of a value, inside an envelope */

json_object *json_of(const char *text)
{
    json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH); /* the usual depth of json-c is 32 */
    json_object *value = tokener ? json_tokener_parse_ex(tokener, text, -1) : NULL;

    if (tokener)
        json_tokener_free(tokener);
    return value;
}

json_object *args_parse(struct rv_cap_call *call)
{
    json_object *args = json_of(call->args);

    if (!args) {
        call->fail(call, "ExecutionError", "the arguments cannot be read");
        return NULL;
    }
    if (!json_object_is_type(args, json_type_object)) {
        json_object_put(args);
        call->fail(call, "ValidationError", "the arguments are not a JSON object");
        return NULL;
    }
    return args;
}

json_object *arg_in(json_object *args, const char *path)
{
    while (args && *path) {
        size_t len = strcspn(path, ".");
        char key[128];
        json_object *next = NULL;

        if (len >= sizeof key || !json_object_is_type(args, json_type_object))
            return NULL;
        memcpy(key, path, len);
        key[len] = '\0';
        if (!json_object_object_get_ex(args, key, &next))
            return NULL;
        args = next;
        path += len + (path[len] == '.');
    }
    return args;
}

const char *arg_text(json_object *args, const char *key)
{
    json_object *value = arg_in(args, key);

    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

const char *arg_path(json_object *args)
{
    json_object *value = arg_in(args, "path");
    const char *path = arg_text(args, "path");

    return path && strlen(path) == (size_t)json_object_get_string_len(value) ? path : NULL;
}

int64_t arg_int(json_object *args, const char *key, int64_t otherwise)
{
    json_object *value = arg_in(args, key);

    return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : otherwise;
}

void put(bool *failed, json_object *obj, const char *key, json_object *value)
{
    if (!obj || !value || json_object_object_add(obj, key, value) != 0) {
        json_object_put(value);
        *failed = true;
    }
}

void push(bool *failed, json_object *arr, json_object *value)
{
    if (!arr || !value || json_object_array_add(arr, value) != 0) {
        json_object_put(value);
        *failed = true;
    }
}

void write_decimal(double value, char out[DECIMAL_MAX])
{
    int len = snprintf(out, DECIMAL_MAX, "%.2f", value);
    size_t point = strspn(out, "-0123456789"); /* which the locale of the process may write in another way */

    if (len < 3 || (size_t)len >= DECIMAL_MAX || !out[point])
        return;
    memmove(out + point + 1, out + len - 2, 3);
    out[point] = '.';
}

json_object *new_decimal(double value)
{
    char text[DECIMAL_MAX];

    write_decimal(value, text);
    return json_object_new_double_s(value, text);
}

json_object *new_text(const char *text, size_t len)
{
    return len > INT32_MAX ? NULL : json_object_new_string_len(text, (int)len);
}

int reply_take(struct rv_cap_call *call, json_object *obj, bool failed)
{
    const char *text = NULL;
    int rc;

    if (!failed && obj)
        text = json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    rc = text ? call->reply(call, text) : call->fail(call, "ExecutionError", "out of memory");
    json_object_put(obj);
    return rc;
}

void text_add(struct text *t, const char *bytes, size_t len)
{
    if (t->failed || len == 0)
        return;
    if (t->len + len + 1 > t->cap) {
        size_t cap = (t->len + len + 1) * 2;
        char *ptr = realloc(t->ptr, cap);
        if (!ptr) {
            t->failed = true;
            return;
        }
        t->ptr = ptr;
        t->cap = cap;
    }
    memcpy(t->ptr + t->len, bytes, len);
    t->len += len;
    t->ptr[t->len] = '\0';
}

void text_puts(struct text *t, const char *text)
{
    text_add(t, text, strlen(text));
}

void text_printf(struct text *t, const char *fmt, ...)
{
    char small[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n > 0) /* for numbers and short words; longer texts go through text_add() */
        text_add(t, small, (size_t)n < sizeof small ? (size_t)n : sizeof small - 1);
}
