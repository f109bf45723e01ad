/* What the request of a turn asks of its model: what can be honoured becomes a part of the turn, and what cannot is
 * refused with the path of the parameter. */
#include <stdio.h>
#include <string.h>

#include "coreengine/server/chats_internal.h"

static void at_param(struct srv_call *c, const char *param)
{
    snprintf(c->param, sizeof c->param, "%s", param);
}

/* One tool by its name: the others are not offered. */
static int choose_tool(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    json_object *tools = a->req.tools;
    const char *name = NULL;

    for (size_t i = 0; i < json_object_array_length(tools); i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        if (!rv_json_get_text(tool, "name", &name) || strcmp(name, a->req.tool_named) != 0)
            continue;
        a->made = json_object_new_array();
        if (!a->made)
            return RV_FAIL(err, RV_E_NOMEM, "choose a tool");
        a->request.client_tools = a->made;
        return rv_json_push_ref(a->made, tool, err);
    }
    at_param(c, "tool_choice");
    return RV_FAIL(err, RV_E_INVALID, "tools has no tool \"%.80s\"", a->req.tool_named);
}

static int read_tools(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    const struct rv_request *req = &a->req;
    size_t n = req->tools ? json_object_array_length(req->tools) : 0;
    bool required = req->tool_choice && strcmp(req->tool_choice, "required") == 0;

    if (required && n == 0) {
        at_param(c, "tool_choice");
        return RV_FAIL(err, RV_E_INVALID, "a call of a tool is required, and the request has no tools");
    }
    if (n == 0 || (req->tool_choice && strcmp(req->tool_choice, "none") == 0))
        return 0;
    a->request.client_tools = req->tools;
    a->request.requires_tool = required;
    return req->tool_named ? choose_tool(c, a, err) : 0;
}

static int read_format(struct srv_call *c, struct srv_turn_ask *a, rv_err **err)
{
    json_object *schema = a->req.response_schema;
    rv_schema *compiled = NULL;
    const char *type = NULL;

    if (!schema)
        return 0;
    int rc = rv_schema_compile(schema, "the answer", &compiled, err);
    rv_schema_free(compiled);
    if (rc == 0 && (!rv_json_get_text(schema, "type", &type) || strcmp(type, "object") != 0))
        rc = RV_FAIL(err, RV_E_INVALID, "the schema of an answer must be of type object");
    if (rc < 0)
        at_param(c, a->opts.kind == RV_PROTOCOL_RESPONSES ? "text.format" : "response_format");
    a->request.output_schema = schema;
    return rc;
}

int srv_chat_request(struct srv_call *c, struct srv_turn_ask *a, const struct rv_agentdoc *doc, rv_err **err)
{
    const struct rv_request *req = &a->req;
    char path[32];
    size_t at = SIZE_MAX;

    a->request = (struct rv_chat_request){.has_temperature = req->has_temperature,
                                          .temperature = req->temperature,
                                          .max_tokens = req->max_tokens,
                                          .has_seed = req->has_seed,
                                          .seed = req->seed,
                                          .attachments = req->attachments,
                                          .metadata = req->metadata};
    int rc = read_tools(c, a, err);
    if (rc == 0)
        rc = read_format(c, a, err);
    if (rc < 0 || !doc || !a->request.client_tools)
        return rc;
    rc = rv_chat_check_client_tools(doc, a->request.client_tools, &at, err);
    if (rc < 0 && at == SIZE_MAX)
        at_param(c, "tools");
    else if (rc < 0) {
        snprintf(path, sizeof path, "tools[%zu]", at);
        at_param(c, path);
    }
    return rc;
}
