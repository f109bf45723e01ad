/* The agent context as a value: its texts as rows, children, JSON. Where it comes from is headers.c. */
#include "coreengine/conversation/context_internal.h"

#include <json-c/linkhash.h>
#include <stddef.h>
#include <string.h>

#define ROW(name, header, max, has_lines)                                                                              \
    {                                                                                                                  \
#name, header, offsetof(struct rv_context, name), max, has_lines                                               \
    }
const struct rv_context_member rv_context_members[RV_N_CONTEXT_MEMBERS] = {
    ROW(user_id, "X-User-Id", RV_CONTEXT_MAX_TEXT, false),
    ROW(tenant_id, "X-Tenant-Id", RV_CONTEXT_MAX_TEXT, false),
    ROW(session_id, "X-Session-Id", RV_CONTEXT_MAX_TEXT, false),
    ROW(default_model, "X-Model-Name", RV_CONTEXT_MAX_TEXT, false),
    ROW(agent_schema_uri, "X-Agent-Schema", RV_CONTEXT_MAX_TEXT, false),
    ROW(client_id, "X-Client-Id", RV_CONTEXT_MAX_TEXT, false),
    ROW(user_profile_hint, NULL, RV_CONTEXT_MAX_HINT, true),
    ROW(user_email, "X-User-Email", RV_CONTEXT_MAX_TEXT, false),
    ROW(user_name, "X-User-Name", RV_CONTEXT_MAX_TEXT, false),
};

const char **rv_context_slot(struct rv_context *c, const struct rv_context_member *m)
{
    return (const char **)(void *)((char *)c + m->at);
}

static const char *text_of(const struct rv_context *c, const struct rv_context_member *m)
{
    return *(const char *const *)(const void *)((const char *)c + m->at);
}

static const struct rv_context_member *member_of(const char *name)
{
    for (size_t i = 0; i < RV_N_CONTEXT_MEMBERS; i++)
        if (strcmp(rv_context_members[i].name, name) == 0)
            return &rv_context_members[i];
    return NULL;
}

struct rv_context rv_context_child(const struct rv_context *parent, const char *agent, const char *model)
{
    struct rv_context child = *parent;

    if (rv_has_text(agent))
        child.agent_schema_uri = agent;
    if (rv_has_text(model))
        child.default_model = model;
    return child;
}

int rv_context_check(const struct rv_context *c, rv_err **err)
{
    for (size_t i = 0; i < RV_N_CONTEXT_MEMBERS; i++) {
        const struct rv_context_member *m = &rv_context_members[i];
        int rc = rv_text_check(rv_str_of(text_of(c, m)), m->name, m->max, m->has_lines, err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

void rv_context_write_json(const struct rv_context *c, rv_jw *w)
{
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_N_CONTEXT_MEMBERS; i++) {
        const char *text = text_of(c, &rv_context_members[i]);

        if (rv_has_text(text))
            rv_jw_kv_text(w, rv_context_members[i].name, text);
    }
    if (c->is_eval)
        rv_jw_kv_bool(w, "is_eval", true);
    rv_jw_obj_end(w);
}

static int read_member(const char *key, json_object *value, struct rv_context *c, rv_err **err)
{
    const struct rv_context_member *m = member_of(key);
    const char *text;
    int rc;

    if (strcmp(key, "is_eval") == 0) {
        if (!json_object_is_type(value, json_type_boolean))
            return RV_FAIL(err, RV_E_INVALID, "is_eval must be a boolean, not %s", rv_json_type_text(value));
        c->is_eval = json_object_get_boolean(value);
        return 0;
    }
    if (!m)
        return RV_FAIL(err, RV_E_INVALID, "unknown member \"%.*s\"", RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 64)));
    rc = rv_text_of_json(value, key, &text, err);
    if (rc == 0 && rv_has_text(text))
        *rv_context_slot(c, m) = text;
    return rc;
}

int rv_context_read_json(json_object *json, struct rv_context *out, rv_err **err)
{
    struct rv_context c = {.tenant_id = RV_DEFAULT_TENANT};
    int rc = 0;

    if (!json_object_is_type(json, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "an agent context must be an object, not %s", rv_json_type_text(json));
    json_object_object_foreach (json, key, value) {
        rc = read_member(key, value, &c, err);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        rc = rv_context_check(&c, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "agent context");
    *out = c;
    return 0;
}
