/* save_agent: the document of an agent, kept as the user's own. The result is an action: the program that shows the
 * conversation learns that there is an agent, or is asked to save the one that is on the screen. */
#include "capabilities/p8/p8_internal.h"

#include <string.h>

#define MAX_TAGS 64 /* of one agent: as the engine's service for agents takes; more is an error of the call */

static void add_given(struct tool *t, json_object *to, const char *as, const char *key)
{
    if (member(t->args, key))
        add(t, to, as, json_object_get(member(t->args, key)));
}

/* Nothing to save yet: the program that shows the conversation has the document. */
static json_object *trigger(struct tool *t)
{
    json_object *result = success(t, "success"), *payload = json_object_new_object();

    add_given(t, payload, "name", "name");
    add_given(t, payload, "description", "description");
    add_given(t, payload, "tags", "tags");
    if (json_object_object_length(payload) == 0) {
        json_object_put(payload);
        payload = NULL;
    }
    mark_action(t, result, "trigger_save", payload);
    return result;
}

static json_object *save(struct tool *t, const void *self)
{
    const char *name = arg_text(t, "name", false), *document = arg_text(t, "schema_yaml", false);
    json_object *overwrite = member(t->args, "overwrite"), *args, *said, *result;

    (void)self;
    t->action = "agent_save_error";
    arg_text(t, "description", false);
    arg_list(t, "tags", false, MAX_TAGS, json_type_string);
    if (overwrite && !json_object_is_type(overwrite, json_type_boolean))
        tool_fail(t, BAD_ARGUMENTS, "overwrite has to be true or false");
    if (t->code)
        return NULL;
    if (!document)
        return trigger(t);
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required for saving agents");
    args = json_object_new_object();
    add(t, args, "document", text(document));
    if (name && *name)
        add(t, args, "name", text(name));
    add_given(t, args, "description", "description");
    add_given(t, args, "tags", "tags");
    add_given(t, args, "overwrite", "overwrite");
    said = ask_take(t, "agents.save", args);
    if (!said)
        return NULL;
    result = success(t, "success");
    mark_action(t, result, "agent_saved", said);
    return result;
}

int save_agent(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, "name", save);
}
