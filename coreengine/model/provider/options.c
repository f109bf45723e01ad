/* A role's options as numbers, defaults filled in. They were checked when the pipeline was loaded: what is not of its
 * type or range here counts as not given. */
#include "coreengine/model/provider/provider_internal.h"

#define DEFAULT_CONNECT_MS    10000
#define DEFAULT_FIRST_BYTE_MS 300000 /* a model that reasons, or that has to be loaded first, is silent for long */
#define DEFAULT_IDLE_MS       120000
#define DEFAULT_RETRY_WAIT_MS 60000
#define MAX_ATTEMPTS          100
#define MAX_MS                INT64_C(31536000000) /* a year, so that sums of times do not overflow */
#define MAX_COUNT             INT64_C(1000000000)

static int64_t number(json_object *options, const char *key, int64_t min, int64_t max, int64_t missing)
{
    int64_t n;

    if (!options || !rv_json_get_int(options, key, &n) || n < min)
        return missing;
    return n < max ? n : max;
}

static const char *text(json_object *options, const char *key)
{
    const char *s;

    return options && rv_json_get_text(options, key, &s) ? s : NULL;
}

struct rv_call_options rv_call_options_of(json_object *options)
{
    return (struct rv_call_options){
        .connect_us = RV_US_PER_MS * number(options, "connect_timeout_ms", 1, MAX_MS, DEFAULT_CONNECT_MS),
        .first_byte_us = RV_US_PER_MS * number(options, "first_byte_timeout_ms", 1, MAX_MS, DEFAULT_FIRST_BYTE_MS),
        .idle_us = RV_US_PER_MS * number(options, "idle_timeout_ms", 1, MAX_MS, DEFAULT_IDLE_MS),
        .max_attempts = number(options, "max_attempts", 1, MAX_ATTEMPTS, RV_LLM_DEFAULT_ATTEMPTS),
        .max_retry_wait_us = RV_US_PER_MS * number(options, "max_retry_wait_ms", 0, MAX_MS, DEFAULT_RETRY_WAIT_MS),
        .max_concurrent = number(options, "max_concurrent", 0, MAX_COUNT, 0),
        .requests_per_minute = number(options, "requests_per_minute", 0, MAX_COUNT, 0),
        .tokens_per_minute = number(options, "tokens_per_minute", 0, MAX_COUNT, 0),
        .ca_file = text(options, "ca_file"),
        .proxy = text(options, "proxy"),
    };
}
