/* Handlers of agents: their documents, listed, read, kept, checked, deleted; what they were before. */
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/store/store.h"

#define KIND "agent"

static int write_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                       rv_err **err)
{
    (void)err;
    rv_app_agent_write(name, found, NULL, fault, self);
    return 0;
}

int srv_agents_list(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = rv_agents_list(c->handles->sources.agents, &c->app.scope, write_agent, &w, err);
    rv_jw_arr_end(&w);
    return rc;
}

/* Those of the built-in capability, and ask_agent, which every agent may have. */
int srv_tools(struct srv_call *c, rv_err **err)
{
    static const char *const members[] = {"name", "description", "risk", "category"};
    json_object *caps = NULL, *tools, *part;

    int rc = rv_app_build_capabilities(c->handles->sources.plugins, &caps, err);
    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_arr(&w);
    rv_jw_raw(&w, RV_STR_LIT("{\"name\":\"" RV_TOOL_ASK_AGENT "\",\"description\":\"Ask another agent\","
                             "\"risk\":\"read_only\",\"category\":\"read\",\"capability\":null}"));
    for (size_t i = 0; i < json_object_array_length(caps); i++) {
        json_object *cap = json_object_array_get_idx(caps, i), *name = NULL;
        json_object_object_get_ex(cap, "name", &name);
        tools = rv_json_get_arr(cap, "tools");
        for (size_t k = 0; tools && k < json_object_array_length(tools); k++) {
            rv_jw_obj(&w);
            for (size_t m = 0; m < RV_COUNT(members); m++)
                if (json_object_object_get_ex(json_object_array_get_idx(tools, k), members[m], &part))
                    rv_jw_kv_value(&w, members[m], part);
            rv_jw_kv_value(&w, "capability", name);
            rv_jw_obj_end(&w);
        }
    }
    rv_jw_arr_end(&w);
    json_object_put(caps);
    return 0;
}

int srv_agent_show(struct srv_call *c, rv_err **err)
{
    struct rv_agents_found found;
    int rc = rv_agents_find(c->handles->sources.agents, &c->app.scope, c->args[0], &found, err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_agentdoc_write_json(found.doc, &w);
    return 0;
}

int srv_agent_content(struct srv_call *c, rv_err **err)
{
    struct rv_agents_found found;
    int rc = rv_agents_find(c->handles->sources.agents, &c->app.scope, c->args[0], &found, err);

    if (rc < 0)
        return rc;
    c->status = 200;
    c->type = "application/yaml";
    rv_buf_add_str(&c->out, found.text);
    return 0;
}

/* The document: the body, or its member "content", where clients of REMLight put it. */
static int document_of(struct srv_call *c, rv_str *out, rv_err **err)
{
    static const struct rv_json_opts opts = {
        .max_bytes = RV_REQUEST_MAX_BYTES, .max_depth = RV_REQUEST_MAX_DEPTH, .what = "the body"};
    rv_str body = c->req->body;
    const char *text;
    bool is_object = body.len > 0 && body.ptr[0] == '{' && !c->body;
    int rc = is_object ? rv_json_try_parse(body, &opts, &c->body, err) : 0;

    *out = body;
    if (is_object && c->body && !json_object_object_get_ex(c->body, "name", NULL) &&
        rv_json_get_text(c->body, "content", &text))
        *out = rv_str_of(text); /* the call owns it */
    return rc;
}

/* What a chat would say of the document. *out may be NULL: the findings say why. */
static int check(struct srv_call *c, rv_findings *findings, struct rv_agentdoc **out, rv_err **err)
{
    rv_str text;
    int rc = document_of(c, &text, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    if (text.len == 0 || text.len > RV_AGENTDOC_MAX_BYTES)
        return RV_FAIL(err, RV_E_INVALID, "the body must be the document of an agent, as YAML or JSON");
    rc = rv_agentdoc_parse(text, "the body", findings, out, err);
    if (rc == 0)
        rc = rv_findings_check(findings, err);
    if (rc == 0 && *out)
        rc = rv_agents_check(*out, findings, err);
    if (rc == 0 && *out) {
        const struct rv_agents_found found = {*out, text, "file", "the body"};
        rc = rv_chat_check_agent(c->handles->sources.plugins, &found, findings, err);
    }
    rv_findings_sort(findings);
    return rc;
}

int srv_agent_check(struct srv_call *c, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *doc = NULL;
    int rc = findings ? check(c, findings, &doc, err) : RV_FAIL(err, RV_E_NOMEM, "check an agent");

    if (rc == 0) {
        rv_jw w = srv_call_json(c, 200);
        rv_jw_obj(&w);
        rv_jw_kv_bool(&w, "valid", doc && rv_findings_n_errors(findings) == 0);
        rv_jw_kv_text(&w, "name", doc ? doc->name : NULL);
        rv_jw_key(&w, "findings");
        rv_findings_write_json(findings, &w);
        rv_jw_obj_end(&w);
    }
    rv_agentdoc_free(doc);
    rv_findings_free(findings);
    return rc;
}

int srv_agent_put(struct srv_call *c, rv_err **err)
{
    struct rv_agentdoc *doc = NULL;
    bool changed = false, is_own = c->who.level == RV_LEVEL_USER;
    rv_str text;
    int rc = document_of(c, &text, err);

    if (rc == 0)
        rc = rv_agentdoc_read(text, "the body", &doc, err);
    if (rc < 0)
        return rc;
    rc = rv_agents_put(c->handles->sources.agents, &c->app.scope,
                       &(const struct rv_agent_text){.user_own = is_own, .text = text, .file = "the body"}, &changed,
                       err);
    if (rc == 0) {
        rv_jw w = srv_call_json(c, 200);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "name", doc->name);
        rv_jw_kv_text(&w, "version", doc->version);
        rv_jw_kv_bool(&w, "changed", changed);
        rv_jw_obj_end(&w);
    }
    rv_agentdoc_free(doc);
    return rc;
}

int srv_agent_delete(struct srv_call *c, rv_err **err)
{
    int rc = rv_agents_delete(c->handles->sources.agents, &c->app.scope, c->args[0], err);

    if (rc < 0)
        return rc;
    rv_agents_forget(c->handles->sources.agents);
    rv_jw w = srv_call_json(c, 200);
    rv_jw_raw(&w, RV_STR_LIT("{\"deleted\":true}"));
    return 0;
}

static int write_version(void *self, const struct rv_schema_version *v, rv_err **err)
{
    rv_jw *w = self;
    char time[RV_TIME_MAX];

    (void)err;
    rv_time_format(v->recorded_us, time);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "agent_id", v->schema_id);
    rv_jw_kv_text(w, "change_type", v->operation);
    rv_jw_kv_text(w, "name", v->name);
    rv_jw_kv_text(w, "version", v->version);
    rv_jw_kv_text(w, "content_hash", v->checksum);
    rv_jw_kv_text(w, "created_at", time);
    rv_jw_kv_str(w, "content", v->content);
    rv_jw_obj_end(w);
    return 0;
}

int srv_agent_versions(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);

    rv_jw_arr(&w);
    int rc = rv_store_list_schema_versions(c->store, &c->app.scope,
                                           &(const struct rv_schema_key){.kind = KIND, .name = c->args[0]},
                                           write_version, &w, err);
    rv_jw_arr_end(&w);
    return rc;
}
