/* The plainest scope: the members of one JSON object are the variables. */
#include <string.h>

#include "coreengine/lang/expr.h"

/* Names come from compiled texts, which have a NUL behind each; one inside would be cut by json-c. */
static bool member(json_object *obj, rv_str name, json_object **out)
{
    return json_object_is_type(obj, json_type_object) && !memchr(name.ptr, '\0', name.len) &&
           json_object_object_get_ex(obj, name.ptr, out);
}

static int lookup(void *self, rv_str name, rv_str field, json_object **out, bool *found, rv_err **err)
{
    json_object *v = NULL;

    (void)err;
    *found = member(self, name, &v) && (!field.ptr || member(v, field, &v));
    if (*found)
        *out = v;
    return 0;
}

struct rv_scope rv_scope_of_object(json_object *obj)
{
    return (struct rv_scope){lookup, obj};
}
