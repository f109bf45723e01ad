/* Tools that the client calls (`client_tools`), as a visit knows them, and what the client answered. */
#include "coreengine/agent/tools_internal.h"

#include <stdlib.h>

void agent_client_tools_fini(rv_visit *v)
{
    for (size_t i = 0; i < v->n_client_tools; i++)
        rv_schema_free((rv_schema *)v->client_tools[i].input);
    free(v->client_tools);
    v->client_tools = NULL;
    v->n_client_tools = 0;
}

int agent_client_tools_open(rv_visit *v, rv_err **err)
{
    const struct rv_agent_tools *t = &v->agent->tools;
    int rc = 0;

    if (t->n_client == 0 || v->shared->origin)
        return 0;
    v->client_tools = calloc(t->n_client, sizeof *v->client_tools);
    if (!v->client_tools)
        return RV_FAIL(err, RV_E_NOMEM, "describe the tools of a client");
    for (size_t i = 0; i < t->n_client && rc == 0; i++) {
        rv_schema *input = NULL;
        if (t->client[i].parameters)
            rc = rv_schema_compile(t->client[i].parameters, t->client[i].name, &input, err);
        v->client_tools[v->n_client_tools++] = (struct rv_tool_info){.name = t->client[i].name,
                                                                     .description = t->client[i].description,
                                                                     .category = RV_UNSET,
                                                                     .risk = RV_RISK_READ_ONLY,
                                                                     .effect = RV_UNSET,
                                                                     .input = input,
                                                                     .input_json = t->client[i].parameters};
    }
    return rc;
}

const struct rv_tool_info *agent_client_tool(const rv_visit *v, rv_str name)
{
    for (size_t i = 0; i < v->n_client_tools; i++)
        if (rv_str_is(name, v->client_tools[i].name))
            return &v->client_tools[i];
    return NULL;
}

int agent_client_calls_answered(rv_visit *v, json_object *answer, rv_err **err)
{
    json_object *text = NULL, *data = rv_json_get_obj(answer, "data");
    json_object *results = data ? rv_json_get_obj(data, RV_CLIENT_RESULTS) : NULL;

    v->tools.client = results ? json_object_get(results) : json_object_new_object();
    if (!v->tools.client)
        return RV_FAIL(err, RV_E_NOMEM, "take the results of a client");
    json_object_object_get_ex(answer, "text", &text);
    if (rv_str_trim(rv_json_str(text)).len > 0)
        v->tools.client_text = json_object_get(text);
    return 0;
}
