/* The way out: one request, said on the wire of its target. */
#include "coreengine/model/wire/wire_internal.h"

static const struct {
    const char *path;
    const struct wire_codec *codec;
} wires[RV_N_WIRES] = {
    [RV_WIRE_OPENAI] = {"/chat/completions", &rv_wire_openai},
    [RV_WIRE_ANTHROPIC] = {"/v1/messages", &rv_wire_anthropic},
    [RV_WIRE_OLLAMA] = {"/api/chat", &rv_wire_ollama},
};

const char *rv_wire_path(enum rv_wire_kind wire)
{
    return wires[wire].path;
}

const struct wire_codec *rv_wire_codec(enum rv_wire_kind wire)
{
    return wires[wire].codec;
}

int rv_wire_request(const struct rv_wire_target *t, json_object *request, rv_buf *body, rv_err **err)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    rv_jw w = rv_jw_on(body);
    int rc;

    if (t->no_tools && tools && json_object_array_length(tools) > 0)
        return RV_FAIL(err, RV_E_INVALID, "model \"%s\" can not call tools", t->model);
    rc = wires[t->wire].codec->request(t, request, &w, err);
    return rc < 0 ? rc : rv_buf_check(body, "the body of a model request", err);
}
