/* parse_file: the text of a file of the configured folder, kept as a row of `files` so that get_file and searches find
 * it. */
#include "capabilities/p8/p8_internal.h"

#include <string.h>

#define MAX_SHOWN ((size_t)2 << 20)   /* bytes of the content in a result: a quarter of RV_CAP_MAX_REPLY */
#define MAX_SAVED ((size_t)900 << 10) /* bytes of JSON: what is larger does not fit an ask */

static json_object *member_of(json_object *obj, const char *key)
{
    return json_object_get(member(obj, key));
}

static int64_t count(const char *s, size_t len, bool lines)
{
    int64_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += lines ? s[i] == '\n' : ((unsigned char)s[i] & 0xc0) != 0x80;
    return lines && len > 0 && s[len - 1] != '\n' ? n + 1 : n;
}

/* What is known about it beside its text. */
static json_object *output_of(struct tool *t, json_object *file)
{
    json_object *out = json_object_new_object(), *content = member(file, "text");
    const char *s = json_object_get_string(content);
    size_t len = (size_t)json_object_get_string_len(content);

    add(t, out, "mime_type", member_of(file, "mime_type"));
    add(t, out, "size_bytes", member_of(file, "size_bytes"));
    add(t, out, "sha256", member_of(file, "sha256"));
    add(t, out, "char_count", json_object_new_int64(count(s, len, false)));
    add(t, out, "line_count", json_object_new_int64(count(s, len, true)));
    return out;
}

/* Of "a/report.pdf": "report". */
static json_object *name_of(json_object *file)
{
    const char *uri = text_in(file, "uri"), *slash = uri ? strrchr(uri, '/') : NULL;
    const char *name = slash ? slash + 1 : uri ? uri : "", *dot = strrchr(name, '.');

    return json_object_new_string_len(name, (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name)));
}

static json_object *save(struct tool *t, json_object *file, json_object *output)
{
    json_object *row = json_object_new_object();

    if (!user_of(t)) {
        json_object_put(row);
        return tool_fail(t, DENIED, "user_id is required for saving files");
    }
    add(t, row, "name", name_of(file));
    add(t, row, "uri", member_of(file, "uri"));
    add(t, row, "mime_type", member_of(file, "mime_type"));
    add(t, row, "size_bytes", member_of(file, "size_bytes"));
    add(t, row, "parsed_content", member_of(file, "text"));
    add(t, row, "parsed_output", json_object_get(output));
    add(t, row, "processing_status", text("completed"));
    if (!t->no_memory && strlen(json_object_to_json_string_ext(row, JSON_C_TO_STRING_PLAIN)) > MAX_SAVED) {
        json_object_put(row);
        return tool_fail(t, BAD_ARGUMENTS,
                         "the file is too large to be saved: at most %zu KiB are; save_to_db: false "
                         "reads it all the same",
                         MAX_SAVED >> 10);
    }
    return put_take(t, "files", row);
}

static void show(struct tool *t, json_object *result, json_object *file)
{
    json_object *content = member(file, "text");
    const char *s = json_object_get_string(content);
    size_t all = (size_t)json_object_get_string_len(content), len = all > MAX_SHOWN ? MAX_SHOWN : all;

    while (len < all && len > 0 && ((unsigned char)s[len] & 0xc0) == 0x80)
        len--;
    add(t, result, "content", json_object_new_string_len(s, (int)len));
    if (len < all)
        add(t, result, "truncated", json_object_new_boolean(1));
}

static json_object *result_of(struct tool *t, json_object *file, bool saves)
{
    json_object *output = output_of(t, file), *id = saves ? save(t, file, output) : NULL, *result;

    if (t->code) {
        json_object_put(output);
        return NULL;
    }
    result = success(t, "success");
    add(t, result, "file_id", id);
    add(t, result, "uri", member_of(file, "uri"));
    add(t, result, "uri_hash", member_of(file, "uri_hash"));
    add(t, result, "name", name_of(file));
    show(t, result, file);
    add(t, result, "parsed_output", output);
    return result;
}

static json_object *parse(struct tool *t, const void *self)
{
    const char *uri = arg_text(t, "uri", true), *user = arg_text(t, "user_id", false);
    json_object *saves = member(t->args, "save_to_db"), *args, *file, *result;

    (void)self;
    if (user && (!user_of(t) || strcmp(user, user_of(t)) != 0))
        return tool_fail(t, DENIED, "user_id is not the user of this conversation: leave it out");
    if (saves && !json_object_is_type(saves, json_type_boolean))
        tool_fail(t, BAD_ARGUMENTS, "save_to_db has to be true or false");
    if (t->code)
        return NULL;
    args = json_object_new_object();
    add(t, args, "uri", text(uri));
    file = ask_take(t, "files.read", args);
    if (!file)
        return NULL;
    result = result_of(t, file, !saves || json_object_get_boolean(saves));
    json_object_put(file);
    return result;
}

int parse_file(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, "uri", parse);
}
