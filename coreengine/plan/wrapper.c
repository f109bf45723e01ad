/* How tools that this engine serves return artifacts: the standard schema, and the wrapper around a payload. */
#include "coreengine/plan/artifact_internal.h"

json_object *plan_typed_schema(struct rv_json_build *b, json_object *to, const char *key, const char *type)
{
    json_object *schema = rv_json_build(b, to, key, json_object_new_object());

    rv_json_build_text(b, schema, "type", type);
    return schema;
}

int rv_artifact_build_schema(json_object *artifact, json_object **out, rv_err **err)
{
    static const char *const members[] = {"context_id", "request_id", "trace_id", "user_id", "tool_name"};
    struct rv_json_build b = {err, 0};
    json_object *root = json_object_new_object();

    if (!root)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a schema of artifacts");
    rv_json_build_text(&b, root, "type", "object");
    json_object *properties = rv_json_build(&b, root, "properties", json_object_new_object());
    json_object *id = plan_typed_schema(&b, properties, "artifact_id", "string");
    rv_json_build_text(&b, id, "description", "the id of the artifact");
    if (artifact) {
        plan_artifact_share(&b, properties, "artifact", artifact);
    } else {
        json_object *any = plan_typed_schema(&b, properties, "artifact", "object");
        rv_json_build_text(&b, any, "description", "the artifact");
    }
    json_object *inner = rv_json_build(&b, plan_typed_schema(&b, properties, "_metadata", "object"), "properties",
                                       json_object_new_object());
    for (size_t i = 0; i < RV_COUNT(members); i++)
        plan_typed_schema(&b, inner, members[i], "string");
    json_object *at = plan_typed_schema(&b, inner, "executed_at", "string");
    rv_json_build_text(&b, at, "format", "date-time");
    json_object *required = rv_json_build(&b, root, "required", json_object_new_array());
    rv_json_build_text(&b, required, NULL, "artifact_id");
    rv_json_build_text(&b, required, NULL, "artifact");
    rv_json_build_text(&b, required, NULL, "_metadata");
    if (b.rc < 0)
        json_object_put(root);
    else
        *out = root;
    return b.rc;
}

/* A4: what is not known of the first five is empty, of the others absent. */
static void add_metadata(struct rv_json_build *b, json_object *to, const char *tool, const char *at,
                         const struct rv_artifact_context *c)
{
    const struct {
        const char *key, *text;
        bool always;
    } members[] = {
        {"context_id", c->context_id, true},
        {"request_id", c->request_id, true},
        {"trace_id", c->trace_id, true},
        {"user_id", c->user_id, true},
        {"tool_name", tool, true},
        {"executed_at", at, true},
        {"timestamp", at, true},
        {"session_id", c->session_id, false},
        {"agent_name", c->agent_name, false},
        {"task_id", c->task_id, false},
        {"skill_id", c->skill_id, false},
        {"skill_name", c->skill_name, false},
        {"execution_id", c->execution_id, false},
    };

    for (size_t i = 0; i < RV_COUNT(members); i++)
        if (members[i].always || (members[i].text && members[i].text[0]))
            rv_json_build_text(b, to, members[i].key, members[i].text ? members[i].text : "");
}

int rv_artifact_wrap(const struct rv_artifact_made *made, const struct rv_artifact_context *context, json_object **out,
                     rv_err **err)
{
    struct rv_json_build b = {err, 0};
    json_object *root = json_object_new_object();

    if (!root)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a result");
    json_object *content = rv_json_build(&b, root, "content", json_object_new_array());
    json_object *block = rv_json_build(&b, content, NULL, json_object_new_object());
    rv_json_build_text(&b, block, "type", "text");
    rv_json_build_text(&b, block, "text", made->summary);
    json_object *structured = rv_json_build(&b, root, "structuredContent", json_object_new_object());
    rv_json_build_text(&b, structured, "artifact_id", made->id);
    if (context->execution_id && context->execution_id[0])
        rv_json_build_text(&b, structured, "mcp_execution_id", context->execution_id);
    plan_artifact_share(&b, structured, "artifact", made->artifact);
    add_metadata(&b, rv_json_build(&b, structured, "_metadata", json_object_new_object()), made->tool, made->at,
                 context);
    json_object *meta = rv_json_build(&b, root, "_meta", json_object_new_object());
    json_object *provenance = rv_json_build(&b, meta, RV_ARTIFACT_PROVENANCE, json_object_new_object());
    rv_json_build_text(&b, provenance, "artifact_id", made->id);
    add_metadata(&b, provenance, made->tool, made->at, context);
    if (b.rc < 0)
        json_object_put(root);
    else
        *out = root;
    return b.rc;
}
