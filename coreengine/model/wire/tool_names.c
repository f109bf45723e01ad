/* Names of tools as providers take them: OpenAI and Anthropic refuse a request with another character than letters,
 * digits, "_" and "-", or with a long name. A tool of a server ("notes.put") is sent as "notes_put", and a call of that
 * is one of "notes.put". Legal names are sent as they are. */
#include <json-c/linkhash.h>
#include <string.h>

#include "coreengine/model/wire/wire_internal.h"

#define DIGITS 8 /* of the hash behind a name that another tool has: some 4 billion of them */

static bool is_legal_char(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || c == '_' || c == '-';
}

static bool is_legal(rv_str name, size_t max)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_legal_char(name.ptr[i]))
            return false;
    return name.len <= max;
}

static size_t replace(rv_str name, size_t max, char *out)
{
    size_t n = name.len < max ? name.len : max;

    for (size_t i = 0; i < n; i++)
        out[i] = is_legal_char(name.ptr[i]) ? name.ptr[i] : '_';
    return n;
}

/* Would that name stand for another tool, too? */
static bool is_shared(json_object *tools, rv_str name, rv_str sent, size_t max)
{
    char other[WIRE_MAX_TOOL_NAME];
    size_t n = tools ? json_object_array_length(tools) : 0;

    if (rv_str_is(sent, RV_OUTPUT_TOOL))
        return true;
    for (size_t i = 0; i < n; i++) {
        rv_str tool = wire_text(json_object_array_get_idx(tools, i), "name");
        if (tool.len == sent.len && !rv_str_eq(tool, name) &&
            rv_str_eq((rv_str){other, replace(tool, max, other)}, sent))
            return true;
    }
    return false;
}

rv_str wire_tool_name(const struct rv_wire_target *t, json_object *tools, rv_str name, char out[WIRE_MAX_TOOL_NAME])
{
    size_t max = t->wire == RV_WIRE_OPENAI ? 64 : WIRE_MAX_TOOL_NAME; /* as their references say */
    char hash[RV_HASH_MAX];

    if (t->wire == RV_WIRE_OLLAMA || is_legal(name, max)) /* Ollama gives names to the model as they are */
        return name;
    rv_str sent = {out, replace(name, max, out)};
    if (name.len <= max && !is_shared(tools, name, sent, max))
        return sent;
    if (sent.len > max - DIGITS - 1)
        sent.len = max - DIGITS - 1;
    rv_hash_format(name, hash);
    out[sent.len++] = '_';
    memcpy(out + sent.len, hash, DIGITS);
    sent.len += DIGITS;
    return sent;
}

int rv_wire_build_tool_names(const struct rv_wire_target *t, json_object *request, json_object **out, rv_err **err)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    size_t n = tools ? json_object_array_length(tools) : 0;
    char text[WIRE_MAX_TOOL_NAME], key[WIRE_MAX_TOOL_NAME + 1];
    json_object *names = NULL;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *tool = json_object_array_get_idx(tools, i), *name = NULL;
        rv_str real = wire_text(tool, "name"), sent = wire_tool_name(t, tools, real, text);
        if (rv_str_eq(real, sent) || !json_object_object_get_ex(tool, "name", &name))
            continue;
        if (!names && !(names = json_object_new_object()))
            return RV_FAIL(err, RV_E_NOMEM, "names of tools");
        memcpy(key, sent.ptr, sent.len);
        key[sent.len] = '\0';
        rc = rv_json_set_ref(names, key, name, err);
    }
    if (rc < 0) {
        json_object_put(names);
        names = NULL;
    }
    *out = names;
    return rc;
}
