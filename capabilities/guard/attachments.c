/* Attachments of a request: the texts in them, and attachments without secrets. The data of a text is base64. */
#include "capabilities/guard/guard_internal.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static const char *text_of(json_object *item, const char *key)
{
    json_object *part = NULL;

    return json_object_object_get_ex(item, key, &part) && json_object_is_type(part, json_type_string)
               ? json_object_get_string(part)
               : NULL;
}

/* Of a type whose data are characters. */
static bool is_text_type(const char *type)
{
    static const char *const words[] = {"json", "xml", "yaml", "csv", "javascript"};

    if (!type)
        return false;
    bool is = strncmp(type, "text/", 5) == 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !is; i++)
        is = strstr(type, words[i]) != NULL;
    return is;
}

/* A string of the bytes; NULL: memory is short. The engine has checked that it is base64. */
static json_object *decode(const char *data)
{
    size_t n = 0, bits = 0;
    unsigned held = 0;
    char *bytes = malloc(strlen(data) + 1);

    if (!bytes)
        return NULL;
    for (const char *c = data; *c; c++) {
        const char *digit = strchr(digits, *c);
        if (!digit)
            continue;
        held = (held << 6 | (unsigned)(digit - digits)) & 0xffffu;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes[n++] = (char)(held >> bits & 0xffu);
        }
    }
    json_object *text = json_object_new_string_len(bytes, (int)n);
    free(bytes);
    return text;
}

static json_object *encode(json_object *text)
{
    const unsigned char *from = (const unsigned char *)json_object_get_string(text);
    size_t len = (size_t)json_object_get_string_len(text), n = 0;
    char *out = malloc(4 * (len / 3 + 1) + 1);

    if (!out)
        return NULL;
    for (size_t i = 0; i < len; i += 3) {
        unsigned three = (unsigned)from[i] << 16;
        three |= i + 1 < len ? (unsigned)from[i + 1] << 8 : 0;
        three |= i + 2 < len ? from[i + 2] : 0;
        out[n++] = digits[three >> 18];
        out[n++] = digits[three >> 12 & 63];
        out[n++] = i + 1 < len ? digits[three >> 6 & 63] : '=';
        out[n++] = i + 2 < len ? digits[three & 63] : '=';
    }
    json_object *data = json_object_new_string_len(out, (int)n);
    free(out);
    return data;
}

json_object *guard_read_attachment(json_object *item, int *failed)
{
    static const char *const keys[] = {"url", "name", "media_type"};
    json_object *read = json_object_new_object();
    const char *data = is_text_type(text_of(item, "media_type")) ? text_of(item, "data") : NULL;

    *failed |= !read;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && read; i++)
        if (text_of(item, keys[i]))
            guard_put(read, keys[i], json_object_new_string(text_of(item, keys[i])), failed);
    if (data && read)
        guard_put(read, "data", decode(data), failed);
    return read;
}

/* What a hook gives in place of an attachment that was read: an address with its type, or data. Takes read. */
static json_object *given(json_object *item, json_object *read, int *failed)
{
    json_object *part = NULL;

    if (text_of(read, "url")) {
        if (text_of(item, "type"))
            guard_put(read, "type", json_object_new_string(text_of(item, "type")), failed);
    } else if (json_object_object_get_ex(read, "data", &part)) {
        guard_put(read, "data", encode(part), failed);
    } else if (json_object_object_get_ex(item, "data", &part)) { /* its name has the secret */
        guard_put(read, "data", json_object_get(part), failed);
    }
    return read;
}

json_object *guard_redact_attachments(json_object *list, int *changed, int *failed)
{
    json_object *made = json_object_new_array();
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

    *failed |= !made;
    for (size_t i = 0; i < n && made; i++) {
        json_object *item = json_object_array_get_idx(list, i), *read = guard_read_attachment(item, failed);
        int here = 0;
        json_object *whole = guard_redact(read, &here, failed), *kept;
        json_object_put(whole); /* its members have names without secrets */
        if (here > 0) {
            kept = given(item, read, failed);
        } else {
            json_object_put(read);
            kept = json_object_new_int64((int64_t)i);
        }
        *changed += here;
        *failed |= !kept || json_object_array_add(made, kept) != 0;
    }
    return made;
}
