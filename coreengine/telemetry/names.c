/* Names of the conventions: providers; and events, as far as spans and metrics read them. */
#include <string.h>

#include "coreengine/telemetry/telemetry_internal.h"

#define MAX_EVENT ((size_t)16 << 20) /* bytes of an event; a longer one is not seen in spans and metrics */

static const struct {
    const char *ours, *theirs;
} providers[] = {
    {"azure", "azure.ai.openai"}, {"bedrock", "aws.bedrock"}, {"cohere", "cohere"},        {"gemini", "gcp.gemini"},
    {"google", "gcp.gemini"},     {"mistral", "mistral_ai"},  {"vertex", "gcp.vertex_ai"}, {"xai", "x_ai"},
};

static rv_str conventional(rv_str provider)
{
    for (size_t i = 0; i < RV_COUNT(providers); i++)
        if (rv_str_is(provider, providers[i].ours))
            return rv_str_of(providers[i].theirs);
    return provider;
}

struct model_name telemetry_model_name(const char *provider, const char *model)
{
    const char *colon = model ? strchr(model, ':') : NULL;

    if (*provider)
        return (struct model_name){conventional(rv_str_of(provider)), rv_str_of(model)};
    if (!colon || colon == model)
        return (struct model_name){RV_STR_LIT("_OTHER"), rv_str_of(model)};
    return (struct model_name){conventional((rv_str){model, (size_t)(colon - model)}), rv_str_of(colon + 1)};
}

json_object *rv_telemetry_parse_event(rv_str line)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_EVENT};
    json_object *event = NULL;

    return rv_json_parse(line, &opts, &event,
                         RV_CODE_ONLY("NULL: the event is not counted; the stream and the store have it")) < 0
               ? NULL
               : event;
}

bool telemetry_event_is(json_object *event, const char **type, int64_t *time_us)
{
    const char *time = NULL;

    return json_object_is_type(event, json_type_object) && rv_json_get_text(event, "type", type) &&
           rv_json_get_text(event, "time", &time) && rv_time_read(rv_str_of(time), time_us);
}

const char *telemetry_event_text(json_object *event, const char *member)
{
    const char *text = NULL;

    return rv_json_get_text(event, member, &text) ? text : "";
}

int64_t telemetry_event_int(json_object *event, const char *member)
{
    int64_t n = 0;

    return rv_json_get_int(event, member, &n) ? n : 0;
}
