/* action: describes as data something that happens beside the answer. The engine turns the marker in the result into an
 * event; the tool itself changes nothing, so it may be called again. */
#include "capabilities/p8/p8_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

/* Members that the result itself has; and `data`, which would be read as the complete result. */
static bool is_reserved(const char *key)
{
    static const char *const keys[] = {"_action_event", "_metadata_event", "action_type", "status", "payload", "data"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Members of an observation stand at the top too, where those look who show how sure an answer is. */
static void copy_members(bool *failed, json_object *result, json_object *payload)
{
    put(failed, result, "_metadata_event", json_object_new_boolean(1));
    json_object_object_foreach (payload, key, value) {
        if (value && !is_reserved(key))
            put(failed, result, key, json_object_get(value));
    }
}

static json_object *result_of(const char *type, json_object *payload, bool *failed)
{
    json_object *result = json_object_new_object();

    put(failed, result, "_action_event", json_object_new_boolean(1));
    put(failed, result, "action_type", json_object_new_string(type));
    put(failed, result, "status", json_object_new_string("success"));
    if (!payload || json_object_object_length(payload) == 0)
        return result;
    put(failed, result, "payload", json_object_get(payload));
    if (result && strcmp(type, "observation") == 0)
        copy_members(failed, result, payload);
    return result;
}

int act(void *self, struct rv_cap_call *call)
{
    json_object *args = args_of(call), *type = NULL, *payload = NULL;
    bool failed = false;
    int rc;

    (void)self;
    if (!args)
        return 1;
    json_object_object_get_ex(args, "type", &type);
    json_object_object_get_ex(args, "payload", &payload);
    if (!json_object_is_type(type, json_type_string) || json_object_get_string_len(type) == 0) {
        rc = call->fail(call, "ValidationError",
                        "type is missing: observation, elicit, delegate, complete, escalate or "
                        "a word of your own");
    } else if (payload && !json_object_is_type(payload, json_type_object)) {
        rc = call->fail(call, "ValidationError", "payload has to be an object");
    } else {
        rc = check_payload(call, json_object_get_string(type), payload);
        if (rc == 0)
            rc = reply_take(call, result_of(json_object_get_string(type), payload, &failed), failed);
    }
    json_object_put(args);
    return rc;
}
