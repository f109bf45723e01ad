/* Changes to a copy: the caller's values win over the environment, and the environment over the document (p8 1.7). The
 * changed copy is read again, so that it obeys the same rules; its places are those of the original. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

/* The variable's text; empty counts as not set. */
static const char *from_env(const struct rv_agentdoc_changes *c, const char *name)
{
    const char *text = c->env ? c->env(c->self, name) : NULL;

    return text && text[0] ? text : NULL;
}

static int set_model(const struct rv_agentdoc_changes *c, json_object *flat, rv_err **err)
{
    const char *model = c->model ? c->model : from_env(c, "AGENT_MODEL");

    if (!model)
        return 0;
    json_object_object_del(flat, "override_model"); /* who asks for a copy with another model gets it */
    return rv_json_set_text(flat, "model", model, err);
}

static int set_temperature(const struct rv_agentdoc_changes *c, json_object *flat, rv_err **err)
{
    const char *text = from_env(c, "AGENT_TEMPERATURE");
    double d = c->temperature;
    int rc = 0;

    if (c->no_temperature) {
        json_object_object_del(flat, "temperature");
        json_object_object_del(flat, "override_temperature");
        return 0;
    }
    if (!c->has_temperature && !text)
        return 0;
    if (!c->has_temperature)
        rc = rv_agentdoc_text_number(rv_str_of(text), &d);
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "read AGENT_TEMPERATURE");
    if (!c->has_temperature && (rc < 0 || d < 0 || d > 2))
        return RV_FAIL(err, RV_E_INVALID, "AGENT_TEMPERATURE must be a number from 0 to 2, not \"%.60s\"", text);
    return rv_json_set_take(flat, "temperature", rv_json_double(d), err);
}

/* given: 0 is as it is. */
static int set_int(const struct rv_agentdoc_changes *c, const char *variable, int64_t given, json_object *map,
                   const char *key, rv_err **err)
{
    const char *text = variable ? from_env(c, variable) : NULL;
    int64_t n = given;
    int rc = 0;

    if (given == 0 && !text)
        return 0;
    if (given == 0)
        rc = rv_agentdoc_text_int(rv_str_of(text), &n);
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "read %s", variable);
    if (given == 0 && (rc < 0 || n < 1))
        return RV_FAIL(err, RV_E_INVALID, "%s must be a whole number from 1, not \"%.60s\"", variable, text);
    return rv_json_set_int(map, key, n, err);
}

static int set_limits(const struct rv_agentdoc_changes *c, json_object *flat, rv_err **err)
{
    static const char *const variables[RV_AGENTDOC_LIMITS] = {"AGENT_REQUEST_LIMIT", "AGENT_TOOL_CALLS_LIMIT", NULL,
                                                              NULL, "AGENT_TOTAL_TOKENS_LIMIT"};
    json_object *limits = NULL;
    int rc = rv_json_dup(rv_json_get_obj(flat, "limits"), &limits, err);

    if (rc == 0 && !limits) {
        limits = json_object_new_object();
        rc = limits ? 0 : RV_FAIL(err, RV_E_NOMEM, "change the limits");
    }
    for (size_t i = 0; rc == 0 && i < RV_AGENTDOC_LIMITS; i++) {
        int64_t given;
        memcpy(&given, (const char *)&c->limits + rv_agentdoc_limit_keys[i].offset, sizeof given);
        rc = set_int(c, variables[i], given, limits, rv_agentdoc_limit_keys[i].name, err);
    }
    if (rc == 0 && json_object_object_length(limits) > 0)
        rc = rv_json_set_ref(flat, "limits", limits, err);
    json_object_put(limits);
    return rc;
}

static int change(const struct rv_agentdoc_changes *c, json_object *flat, rv_err **err)
{
    int rc = set_model(c, flat, err);

    if (rc == 0)
        rc = set_temperature(c, flat, err);
    if (rc == 0)
        rc = set_int(c, "AGENT_MAX_ITERATIONS", c->max_iterations, flat, "max_iterations", err);
    return rc == 0 ? set_limits(c, flat, err) : rc;
}

static bool keep_place(rv_arena *arena, struct rv_src *to, const struct rv_src *from)
{
    *to = *from;
    to->file = from->file ? rv_arena_dup(arena, rv_str_of(from->file)) : NULL;
    return !from->file || to->file;
}

/* The tools are the same ones in the same order. */
static int keep_places(struct rv_agentdoc *to, const struct rv_agentdoc *from, rv_err **err)
{
    rv_arena *arena = ((struct rv_agentdoc_owner *)(void *)to)->arena;
    struct rv_agentdoc_tool *tools = (struct rv_agentdoc_tool *)(void *)to->tools;
    bool ok = keep_place(arena, &to->src, &from->src) && keep_place(arena, &to->name_src, &from->name_src) &&
              keep_place(arena, &to->tools_src, &from->tools_src) &&
              keep_place(arena, &to->chained_src, &from->chained_src) &&
              keep_place(arena, &to->model_src, &from->model_src) &&
              keep_place(arena, &to->properties_src, &from->properties_src) &&
              keep_place(arena, &to->limits_src, &from->limits_src);

    for (size_t i = 0; ok && i < to->n_tools; i++)
        ok = keep_place(arena, &tools[i].src, &from->tools[i].src);
    to->form = from->form;
    return ok ? 0 : RV_FAIL(err, RV_E_NOMEM, "copy the places of agent \"%s\"", from->name);
}

int rv_agentdoc_with(const struct rv_agentdoc *d, const struct rv_agentdoc_changes *c, struct rv_agentdoc **out,
                     rv_err **err)
{
    json_object *flat = NULL;
    struct rv_agentdoc *copy = NULL;
    int rc = rv_json_dup(d->flat, &flat, err);

    if (rc == 0)
        rc = change(c, flat, err);
    if (rc == 0)
        rc = rv_agentdoc_of_value(flat, d->src.file ? d->src.file : "agent", &copy, err);
    if (rc == 0)
        rc = keep_places(copy, d, err);
    if (rc == 0) {
        copy->no_temperature = !copy->has_temperature && (c->no_temperature || d->no_temperature);
        *out = copy;
        copy = NULL;
    }
    rv_agentdoc_free(copy);
    json_object_put(flat);
    return rc < 0 ? RV_WRAP(err, rc, "change agent \"%s\"", d->name) : 0;
}
