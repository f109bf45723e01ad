/* Lines of the event stream, read again. */
#include "coreengine/app/past.h"

#include <string.h>

static int64_t count_of(json_object *obj, const char *key)
{
    json_object *value = NULL;
    int64_t n;

    if (!json_object_object_get_ex(obj, key, &value) || !json_object_is_type(value, json_type_int))
        return 0;
    n = json_object_get_int64(value);
    return n > 0 && n <= RV_USAGE_MAX ? n : 0;
}

void rv_app_spent_read(json_object *result, struct rv_app_spent *out)
{
    const char *status = NULL;
    bool failed = rv_json_get_text(result, "status", &status) && strcmp(status, "error") == 0;

    *out = (struct rv_app_spent){
        .is_told = json_object_object_get_ex(result, "input_tokens", NULL),
        .usage = {.calls = 1,
                  .input_tokens = count_of(result, "input_tokens"),
                  .output_tokens = count_of(result, "output_tokens"),
                  .cached_tokens = count_of(result, "cached_tokens"),
                  .reasoning_tokens = count_of(result, "reasoning_tokens"),
                  .cost_micro_usd = count_of(result, "cost_micro_usd")},
        .latency_ms = count_of(result, "latency_ms"),
        .first_ms = count_of(result, "first_token_ms"),
    };
    out->usage.estimated = out->usage.cost_micro_usd > 0 && (failed || !out->is_told);
}

int rv_app_read_event(rv_str line, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_APP_MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH, .what = "event"};

    return rv_json_parse(line, &opts, out, err);
}
