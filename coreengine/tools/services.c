/* The list of services. A new one is a row here, and a row where it is answered. */
#include "coreengine/tools/source.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_KNOWN 512           /* bytes of a list of arguments in a hint: services have at most a dozen */
#define SECOND    INT64_C(1000) /* in milliseconds */

/* Sorted by name. */
static const struct rv_service_info services[] = {
    {"agents.save", RV_EFFECT_IDEMPOTENT, false, 30 * SECOND,
     "keep the document of an agent as an own one of this user"},
    {"dreaming.gather", RV_EFFECT_IDEMPOTENT, false, 60 * SECOND, "what this user did lately, for a dreamer"},
    {"engine.health", RV_EFFECT_SAFE, false, 5 * SECOND, "health of the tools that this engine has called"},
    {"engine.tools", RV_EFFECT_SAFE, false, 5 * SECOND, "the tools of the run, with their schemas"},
    {"entities.delete", RV_EFFECT_IDEMPOTENT, true, 30 * SECOND, "delete an entity of this user"},
    {"entities.find", RV_EFFECT_SAFE, false, 30 * SECOND, "entities of a kind, newest first"},
    {"entities.get", RV_EFFECT_SAFE, false, 30 * SECOND, "an entity by its id"},
    {"entities.lookup", RV_EFFECT_SAFE, false, 30 * SECOND, "what a name means"},
    {"entities.merge_edges", RV_EFFECT_IDEMPOTENT, false, 30 * SECOND, "add edges to an entity of this user"},
    {"entities.merge_metadata", RV_EFFECT_IDEMPOTENT, false, 30 * SECOND, "change metadata of an entity of this user"},
    {"entities.put", RV_EFFECT_IDEMPOTENT, false, 30 * SECOND, "write entities of this user"},
    {"events.publish", RV_EFFECT_IDEMPOTENT, true, 5 * SECOND, "an event of the run, for those who observe it"},
    {"files.read", RV_EFFECT_SAFE, false, 30 * SECOND, "a text file below the configured folder"},
    {"http.get", RV_EFFECT_SAFE, false, 60 * SECOND, "GET or HEAD of a public address"},
    {"http.request", RV_EFFECT_NON_IDEMPOTENT, false, 60 * SECOND, "a request of any method to a public address"},
    {"models.call", RV_EFFECT_IDEMPOTENT, false, 120 * SECOND, "have a model answer a prompt, in a run of its own"},
    {"moments.put", RV_EFFECT_IDEMPOTENT, false, 30 * SECOND, "write a moment of this user, with its session"},
    {"query", RV_EFFECT_SAFE, false, 60 * SECOND, "ask the knowledge base, in the REM dialect"},
    {"quotas.take", RV_EFFECT_IDEMPOTENT, true, 30 * SECOND, "count something against the quotas of this user"},
    {"schedules.add", RV_EFFECT_IDEMPOTENT, false, 30 * SECOND, "queue a task at a time, or again and again"},
    {"schedules.cancel", RV_EFFECT_IDEMPOTENT, true, 30 * SECOND, "end a schedule of this user"},
    {"schedules.list", RV_EFFECT_SAFE, false, 30 * SECOND, "the schedules of this user"},
    {"tasks.add", RV_EFFECT_IDEMPOTENT, false, 30 * SECOND, "queue a task, for a worker to do"},
};

const struct rv_service_info *rv_service_at(size_t i)
{
    return i < RV_COUNT(services) ? &services[i] : NULL;
}

const struct rv_service_info *rv_service_find(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(services); i++)
        if (rv_str_is(name, services[i].name))
            return &services[i];
    return NULL;
}

int rv_service_check(rv_str name, rv_err **err)
{
    const char *names[RV_COUNT(services)];

    if (rv_service_find(name))
        return 0;
    for (size_t i = 0; i < RV_COUNT(services); i++)
        names[i] = services[i].name;
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "there is no service \"%.*s\"",
                     (int)(name.len < RV_SERVICE_MAX_NAME ? name.len : RV_SERVICE_MAX_NAME), name.ptr);
    const char *near = rv_nearest(name, names, RV_COUNT(names));
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    else
        rv_err_set_hint(err, "docs/reference/sdk.md lists the services");
    return rc;
}

static int unknown(const char *key, const char *const *known, size_t n, rv_err **err)
{
    rv_buf list = RV_BUF_INIT(MAX_KNOWN);
    const char *near = rv_nearest(rv_str_of(key), known, n);
    int rc = RV_FAIL(err, RV_E_INVALID, "there is no argument \"%.100s\"", key ? key : "");

    for (size_t i = 0; i < n; i++)
        rv_buf_printf(&list, "%s%s", i ? ", " : "", known[i]);
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    else if (n)
        rv_err_set_hint(err, "the arguments are %s", rv_buf_cstr(&list));
    else
        rv_err_set_hint(err, "this service takes no arguments");
    rv_buf_fini(&list);
    return rc;
}

int rv_service_check_args(json_object *args, const char *const *known, size_t n, rv_err **err)
{
    if (!json_object_is_type(args, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "the arguments are not an object but %s", rv_json_type_text(args));
    json_object_object_foreach (args, key, value) {
        size_t i = 0;
        (void)value;
        while (i < n && strcmp(known[i], key) != 0)
            i++;
        if (i == n)
            return unknown(key, known, n, err);
    }
    return 0;
}

bool rv_service_fits(const struct rv_service_info *s, enum rv_effect_class of)
{
    return s->effect <= of;
}
