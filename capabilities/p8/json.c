/* Arguments in, answers out. The host has parsed what comes in and checked it against the schema. */
#include "capabilities/p8/p8_internal.h"

#include <json-c/json_tokener.h>
#include <string.h>

#define STYLE (JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)

json_object *json_of(const char *text)
{
    json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH); /* the usual depth of json-c is 32 */
    json_object *value = tokener ? json_tokener_parse_ex(tokener, text, -1) : NULL;

    if (tokener)
        json_tokener_free(tokener);
    return value;
}

json_object *args_of(struct rv_cap_call *call)
{
    json_object *args = json_of(call->args);

    if (json_object_is_type(args, json_type_object))
        return args;
    if (args)
        call->fail(call, "ValidationError", "the arguments are not a JSON object");
    else
        call->fail(call, "ExecutionError", "out of memory");
    json_object_put(args);
    return NULL;
}

void put(bool *failed, json_object *obj, const char *key, json_object *value)
{
    if (!obj || !value || json_object_object_add(obj, key, value) != 0) {
        json_object_put(value);
        *failed = true;
    }
}

char *text_take(json_object *obj, bool failed)
{
    const char *text = failed ? NULL : json_object_to_json_string_ext(obj, STYLE);
    char *copy = text ? strdup(text) : NULL;

    json_object_put(obj);
    return copy;
}

int reply_take(struct rv_cap_call *call, json_object *obj, bool failed)
{
    const char *text = failed ? NULL : json_object_to_json_string_ext(obj, STYLE);
    int rc = text ? call->reply(call, text) : call->fail(call, "ExecutionError", "out of memory");

    json_object_put(obj);
    return rc;
}
