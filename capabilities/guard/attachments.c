/* Attachments of a request: the texts in them. The data of a text is base64. */
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
