/* What a turn's request asks of its model, over what the agent's document says: tools of the client, how it is to be
 * asked, the shape of the answer; and what the message has beside its text. It becomes a part of the turn's pipeline,
 * so that a replay and another process know it. */
#include <string.h>

#include "coreengine/app/chat/chat_internal.h"
#include "coreengine/telemetry/telemetry.h"

#define MESSAGE_KEY "message" /* of the metadata of a turn's state */
#define ATTACHMENTS "metadata." MESSAGE_KEY ".attachments"

/* The parameters of a tool are a schema. */
static int check_schema(json_object *tool, const char *name, rv_err **err)
{
    json_object *parameters = rv_json_get_obj(tool, "parameters");
    rv_schema *schema = NULL;
    int rc = parameters ? rv_schema_compile(parameters, name, &schema, err) : 0;

    rv_schema_free(schema);
    return rc;
}

int rv_chat_check_client_tools(const struct rv_agentdoc *doc, json_object *tools, size_t *at, rv_err **err)
{
    size_t n = tools ? json_object_array_length(tools) : 0;
    const char *name = "";
    int rc = 0;

    *at = SIZE_MAX;
    if (n > 0 && !doc->client_tools) {
        rc = RV_FAIL(err, RV_E_INVALID, "agent \"%s\" takes no tools of clients", doc->name);
        rv_err_set_hint(err, "its document has to say client_tools: true");
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        struct rv_agent a = {.declared.doc = doc};
        name = rv_json_text_or(tool, "name", "");
        *at = i;
        if (rv_client_tool_collides(&a, name))
            rc = RV_FAIL(err, RV_E_INVALID, "agent \"%s\" has a tool \"%s\" already: choose another name", doc->name,
                         name);
        else
            rc = check_schema(tool, name, err);
    }
    if (rc == 0)
        *at = SIZE_MAX;
    return rc;
}

/* The agent that was asked for decides for those that it leads to. */
int chat_request_check(const rv_chat *chat, rv_err **err)
{
    const struct rv_store_scope scope = chat_scope(chat);
    struct rv_agents_found found;
    size_t at;

    if (!chat->opts.request.client_tools)
        return 0;
    int rc = rv_agents_find(chat->opts.agents, &scope, chat->agent, &found, err);
    return rc < 0 ? rc : rv_chat_check_client_tools(found.doc, chat->opts.request.client_tools, &at, err);
}

/* A router leads to agents with tools of their own: what is called like one of theirs is left to them. */
static int fitting_tools(const struct rv_agentdoc *doc, json_object *tools, json_object **out, rv_err **err)
{
    const struct rv_agent a = {.declared.doc = doc};
    json_object *list = json_object_new_array();
    const char *name = "";
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "take the tools of a client");

    for (size_t i = 0; rc == 0 && i < json_object_array_length(tools); i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        if (rv_json_get_text(tool, "name", &name) && !rv_client_tool_collides(&a, name))
            rc = rv_json_push_ref(list, tool, err);
    }
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    *out = list;
    return 0;
}

int chat_request_tools(const rv_chat *chat, const struct rv_agentdoc *doc, json_object **out, rv_err **err)
{
    json_object *tools = chat->opts.request.client_tools;

    *out = NULL;
    if (!tools || json_object_array_length(tools) == 0)
        return 0;
    return fitting_tools(doc, tools, out, err);
}

void chat_request_apply(const rv_chat *chat, const struct rv_agentdoc *doc, struct rv_agent_pipeline *p)
{
    const struct rv_chat_request *r = &chat->opts.request;
    int64_t own = doc->max_tokens > 0 ? doc->max_tokens : chat->opts.settings.max_tokens;

    if (r->has_temperature) {
        p->has_temperature = true;
        p->temperature = r->temperature;
    }
    if (r->max_tokens > 0 && r->max_tokens < own)
        p->max_tokens = r->max_tokens;
    p->requires_tool = r->requires_tool;
    p->output_schema = r->output_schema;
    p->has_seed = r->has_seed;
    p->seed = r->seed;
    p->attachments = r->attachments ? ATTACHMENTS : NULL;
}

int chat_request_metadata(const rv_chat *chat, json_object **out, rv_err **err)
{
    const struct rv_chat_request *r = &chat->opts.request;
    json_object *metadata, *message = NULL;
    int rc = 0;

    *out = NULL;
    if (!r->attachments && !r->metadata && !r->trace)
        return 0;
    metadata = json_object_new_object();
    if (!metadata)
        return RV_FAIL(err, RV_E_NOMEM, "begin a turn");
    if (r->attachments || r->metadata) {
        message = json_object_new_object();
        rc = rv_json_set_take(metadata, MESSAGE_KEY, message, err);
    }
    if (rc == 0 && r->attachments)
        rc = rv_json_set_ref(message, "attachments", r->attachments, err);
    if (rc == 0 && r->metadata)
        rc = rv_json_set_ref(message, "metadata", r->metadata, err);
    if (rc == 0 && r->trace)
        rc = rv_json_set_text(metadata, RV_TRACE_PARENT, r->trace, err);
    if (rc == 0 && r->trace_state)
        rc = rv_json_set_text(metadata, RV_TRACE_STATE, r->trace_state, err);
    if (rc < 0) {
        json_object_put(metadata);
        return rc;
    }
    *out = metadata;
    return 0;
}
