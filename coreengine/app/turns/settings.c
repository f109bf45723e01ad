/* Settings of chats from the environment. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/turns/chat_internal.h"

#define DEFAULT_MODEL      "openai:gpt-4.1"
#define DEFAULT_MAX_TOKENS 4000

struct env {
    const char *(*get)(void *self, const char *name);
    void *self;
};

static const char *get(const struct env *e, const char *name)
{
    const char *value = e->get ? e->get(e->self, name) : NULL;
    return value && value[0] ? value : NULL;
}

static int get_int(const struct env *e, const char *name, int64_t least, int64_t *inout, rv_err **err)
{
    const char *text = get(e, name);
    char *end = NULL;

    if (!text)
        return 0;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno || *end || n < least)
        return RV_FAIL(err, RV_E_INVALID, "%s must be a whole number from %lld, not \"%.60s\"", name, (long long)least,
                       text);
    *inout = n;
    return 0;
}

static int get_temperature(const struct env *e, struct rv_chat_settings *out, rv_err **err)
{
    const char *text = get(e, "P8_DEFAULT_TEMPERATURE");
    char *end = NULL;

    if (!text)
        return 0;
    double t = strtod(text, &end);
    if (end == text || *end || !isfinite(t) || t < 0 || t > 2)
        return RV_FAIL(err, RV_E_INVALID, "P8_DEFAULT_TEMPERATURE must be a number from 0 to 2, not \"%.60s\"", text);
    out->has_temperature = true;
    out->temperature = t;
    return 0;
}

static int get_policy(const struct env *e, struct rv_history_opts *out, rv_err **err)
{
    const char *text = get(e, "P8_REPLAY_POLICY");

    if (!text)
        return 0;
    int policy = rv_replay_policy_of(rv_str_of(text));
    if (policy < 0)
        return RV_FAIL(err, RV_E_INVALID, "P8_REPLAY_POLICY must be synthesise or skip, not \"%.60s\"", text);
    out->policy = policy;
    return 0;
}

int rv_chat_settings_read(const char *(*get_env)(void *self, const char *name), void *self,
                          struct rv_chat_settings *out, rv_err **err)
{
    const struct env e = {get_env, self};
    struct rv_chat_settings s = {.max_tokens = DEFAULT_MAX_TOKENS, .history = RV_HISTORY_OPTS_INIT};

    s.default_model = get(&e, "P8_DEFAULT_MODEL");
    if (!s.default_model)
        s.default_model = DEFAULT_MODEL;
    int rc = get_temperature(&e, &s, err);
    if (rc == 0)
        rc = get_int(&e, "P8_DEFAULT_MAX_TOKENS", 1, &s.max_tokens, err);
    if (rc == 0)
        rc = get_int(&e, "P8_DEFAULT_REQUEST_LIMIT", 1, &s.request_limit, err);
    if (rc == 0)
        rc = get_int(&e, "P8_DEFAULT_TOKEN_LIMIT", 1, &s.token_limit, err);
    if (rc == 0)
        rc = get_int(&e, "P8_CONTEXT_TOKEN_BUDGET", 0, &s.history.max_tokens, err);
    if (rc == 0)
        rc = get_int(&e, "P8_ALWAYS_INCLUDE_LAST_MESSAGES", 0, &s.history.always_last, err);
    if (rc == 0)
        rc = get_policy(&e, &s.history, err);
    if (rc == 0)
        *out = s;
    return rc;
}
