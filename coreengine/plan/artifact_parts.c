/* The parts of a result: structured content is one part; without it each block of the content is one. */
#include <string.h>

#include "coreengine/plan/artifact_internal.h"

static json_object *new_part(struct rv_json_build *b, json_object *parts)
{
    return rv_json_build(b, parts, NULL, json_object_new_object());
}

static void add_structured(struct rv_json_build *b, json_object *payload, json_object *parts)
{
    json_object *part = new_part(b, parts);

    if (json_object_is_type(payload, json_type_object)) {
        rv_artifact_share(b, part, "data", payload);
    } else if (json_object_is_type(payload, json_type_array)) {
        json_object *data = rv_json_build(b, part, "data", json_object_new_object());
        rv_artifact_share(b, data, "items", payload);
    } else if (json_object_is_type(payload, json_type_string)) {
        rv_artifact_share(b, part, "text", payload);
    } else {
        rv_buf text = RV_BUF_INIT(1000); /* a number, true or false */
        rv_json_write(payload, &text);
        rv_json_build_text(b, part, "text", rv_buf_cstr(&text));
        if (text.rc == RV_E_NOMEM && b->rc == 0)
            b->rc = rv_buf_check(&text, "part of an artifact", b->err);
        rv_buf_fini(&text);
    }
}

/* Members of a block, under the names that a file part has. */
static void add_file(struct rv_json_build *b, json_object *block, const char *const names[][2], size_t n,
                     json_object *parts)
{
    json_object *file = rv_json_build(b, new_part(b, parts), "file", json_object_new_object()), *value = NULL;

    for (size_t i = 0; i < n; i++)
        if (json_object_object_get_ex(block, names[i][0], &value) && json_object_is_type(value, json_type_string))
            rv_artifact_share(b, file, names[i][1], value);
}

static bool is_text(json_object *from, const char *key)
{
    const char *text;

    return json_object_is_type(from, json_type_object) && rv_json_get_text(from, key, &text);
}

/* false: the block cannot be read. */
static bool add_block(struct rv_json_build *b, const char *type, json_object *block, json_object *parts)
{
    static const char *const media[][2] = {{"data", "bytes"}, {"mimeType", "mimeType"}};
    static const char *const link[][2] = {{"name", "name"}, {"mimeType", "mimeType"}, {"uri", "url"}};
    static const char *const blob[][2] = {{"uri", "name"}, {"mimeType", "mimeType"}, {"blob", "bytes"}};
    json_object *resource = rv_json_get_obj(block, "resource"), *text = NULL;

    if (strcmp(type, "text") == 0 && is_text(block, "text")) {
        json_object_object_get_ex(block, "text", &text);
        rv_artifact_share(b, new_part(b, parts), "text", text);
    } else if ((strcmp(type, "image") == 0 || strcmp(type, "audio") == 0) && is_text(block, "data")) {
        add_file(b, block, media, RV_COUNT(media), parts);
    } else if (strcmp(type, "resource_link") == 0 && is_text(block, "uri")) {
        add_file(b, block, link, RV_COUNT(link), parts);
    } else if (strcmp(type, "resource") == 0 && is_text(resource, "text")) {
        json_object_object_get_ex(resource, "text", &text);
        rv_artifact_share(b, new_part(b, parts), "text", text);
    } else if (strcmp(type, "resource") == 0 && is_text(resource, "blob")) {
        add_file(b, resource, blob, RV_COUNT(blob), parts);
    } else {
        return false;
    }
    return true;
}

void rv_artifact_add_parts(struct rv_json_build *b, json_object *result, json_object *payload, json_object *parts,
                           rv_buf *faults)
{
    json_object *content;
    size_t n_skipped = 0;

    if (payload) {
        add_structured(b, payload, parts);
        return;
    }
    content = rv_json_get_arr(result, "content");
    for (size_t i = 0; content && i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i);
        const char *type = NULL;
        if (!json_object_is_type(block, json_type_object) || !rv_json_get_text(block, "type", &type) ||
            !add_block(b, type, block, parts))
            n_skipped++;
    }
    if (n_skipped > 0)
        rv_buf_printf(faults, "%zu blocks of the content cannot be read; ", n_skipped);
}
