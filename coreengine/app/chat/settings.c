/* What a chat takes from the environment, the defaults of an operator for models, history and moments, and what
 * documents of agents say instead. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/chat.h"
#include "coreengine/base/base.h"
#include "coreengine/model/provider/provider.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MODEL      "openai:gpt-4.1"
#define DEFAULT_MAX_TOKENS 4000 /* of one reply: two pages */
#define MAX_PROVIDERS      64   /* that a hint is looked for in: there are fewer */
#define DEFAULT_THRESHOLD  6000 /* tokens of a moment (p8-data 21) */

static int get_int(const char *name, int64_t least, int64_t *inout, rv_err **err)
{
    const char *text = app_env(name);
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

static int get_temperature(struct rv_chat_settings *out, rv_err **err)
{
    const char *text = app_env("P8_DEFAULT_TEMPERATURE");
    char *end = NULL;

    if (!text)
        return 0;
    double t = rv_number_read(text, &end);
    if (end == text || *end || !isfinite(t) || t < 0 || t > 2)
        return RV_FAIL(err, RV_E_INVALID, "P8_DEFAULT_TEMPERATURE must be a number from 0 to 2, not \"%.60s\"", text);
    out->has_temperature = true;
    out->temperature = t;
    return 0;
}

static int get_policy(struct rv_history_opts *out, rv_err **err)
{
    const char *text = app_env("P8_REPLAY_POLICY");

    if (!text)
        return 0;
    int policy = rv_replay_policy_of(rv_str_of(text));
    if (policy < 0)
        return RV_FAIL(err, RV_E_INVALID, "P8_REPLAY_POLICY must be synthesise or skip, not \"%.60s\"", text);
    out->policy = policy;
    return 0;
}

static int get_compaction(struct rv_history_opts *out, rv_err **err)
{
    const char *text = app_env("P8_COMPACTION");

    if (!text)
        return 0;
    int how = rv_compaction_of(rv_str_of(text));
    if (how < 0)
        return RV_FAIL(err, RV_E_INVALID, "P8_COMPACTION must be shorten, moments or none, not \"%.60s\"", text);
    rv_history_compact(out, (enum rv_compaction)how);
    return 0;
}

static int get_moments(struct rv_chat_settings *s, rv_err **err)
{
    int rc = get_int("P8_MOMENT_TOKEN_THRESHOLD", 0, &s->moment_token_threshold, err);

    if (rc == 0)
        rc = get_int("P8_MOMENT_MAX_INJECT", 0, &s->moments.max_inject, err);
    if (rc == 0)
        rc = get_int("P8_MOMENT_MAX_TOKENS", 0, &s->moments.max_tokens, err);
    s->moment_summariser = app_env("P8_MOMENT_SUMMARISER");
    if (rc == 0 && s->moment_summariser && !rv_agentdoc_is_name(rv_str_of(s->moment_summariser)))
        rc = RV_FAIL(err, RV_E_INVALID, "P8_MOMENT_SUMMARISER must be the name of an agent, not \"%.60s\"",
                     s->moment_summariser);
    return rc == 0 ? rv_moment_opts_check(&s->moments, err) : rc;
}

int rv_chat_settings_read(struct rv_chat_settings *out, rv_err **err)
{
    struct rv_chat_settings s = {.max_tokens = DEFAULT_MAX_TOKENS,
                                 .history = RV_HISTORY_OPTS_INIT,
                                 .moments = RV_MOMENT_OPTS_INIT,
                                 .moment_token_threshold = DEFAULT_THRESHOLD};

    s.default_model = app_env("P8_DEFAULT_MODEL") ? app_env("P8_DEFAULT_MODEL") : DEFAULT_MODEL;
    int rc = get_temperature(&s, err);
    if (rc == 0)
        rc = get_int("P8_DEFAULT_MAX_TOKENS", 1, &s.max_tokens, err);
    if (rc == 0)
        rc = get_int("P8_DEFAULT_REQUEST_LIMIT", 1, &s.request_limit, err);
    if (rc == 0)
        rc = get_int("P8_DEFAULT_TOKEN_LIMIT", 1, &s.token_limit, err);
    if (rc == 0)
        rc = get_int("P8_CONTEXT_TOKEN_BUDGET", 0, &s.history.max_tokens, err);
    if (rc == 0)
        rc = get_int("P8_ALWAYS_INCLUDE_LAST_MESSAGES", 0, &s.history.always_last, err);
    if (rc == 0)
        rc = get_policy(&s.history, err);
    if (rc == 0)
        rc = get_compaction(&s.history, err);
    if (rc == 0)
        rc = get_moments(&s, err);
    if (rc == 0)
        *out = s;
    return rc;
}

/* --- over them, what documents say --- */

struct rv_history_opts rv_chat_history_opts(const struct rv_chat_settings *settings, const struct rv_agentdoc *doc)
{
    struct rv_history_opts o = settings->history;

    if (doc->context_token_budget != 0)
        o.max_tokens = doc->context_token_budget > 0 ? doc->context_token_budget : 0;
    if (doc->always_include_last >= 0)
        o.always_last = doc->always_include_last;
    if (doc->replay != RV_UNSET)
        o.policy = doc->replay;
    if (doc->compaction != RV_UNSET)
        rv_history_compact(&o, (enum rv_compaction)doc->compaction);
    o.names_keys = rv_agentdoc_names_tool(doc, RV_LOOKUP_TOOL);
    return o;
}

int rv_chat_check_model(const char *model, bool is_played, rv_err **err)
{
    const char *colon = strchr(model, ':'), *names[MAX_PROVIDERS];
    size_t n_known;
    const struct rv_provider_info *known = rv_provider_list(&n_known);
    char provider[RV_CONTEXT_MAX_TEXT + 1];

    if (!model[0] || colon == model || (colon && !colon[1]) || strlen(model) > RV_CONTEXT_MAX_TEXT) {
        int rc = RV_FAIL(err, RV_E_INVALID, "a model is provider:model, not \"%.100s\"", model);
        rv_err_set_hint(err, "for example openai:gpt-4.1-mini; `reeve inspect --providers` lists the providers");
        return rc;
    }
    snprintf(provider, sizeof provider, "%.*s", colon ? (int)(colon - model) : 0, model);
    if (is_played || !colon || rv_provider_find(rv_str_of(provider)) || rv_provider_is_capability(provider))
        return 0;
    if (strcmp(provider, "scripted") == 0) {
        int rc = RV_FAIL(err, RV_E_INVALID, "model \"%.100s\" is played by a script, and there is none", model);
        rv_err_set_hint(err, "give the script with --script FILE, or name a provider and its model, such as "
                             "openai:gpt-4.1-mini");
        return rc;
    }
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown provider \"%.100s\"", provider);
    n_known = n_known < MAX_PROVIDERS ? n_known : MAX_PROVIDERS;
    for (size_t i = 0; i < n_known; i++)
        names[i] = known[i].name;
    const char *near = rv_nearest(rv_str_of(provider), names, n_known);
    if (near)
        rv_err_set_hint(err, "did you mean \"%s%.100s\"?", near, colon);
    else
        rv_err_set_hint(err, "for example openai:gpt-4.1-mini; `reeve inspect --providers` lists the providers");
    return rc;
}

/* Where another agent wants something else, it is what the settings say. */
static void agree(struct rv_history_opts *o, const struct rv_history_opts *other, const struct rv_history_opts *usual)
{
    if (o->max_tokens != other->max_tokens)
        o->max_tokens = usual->max_tokens;
    if (o->always_last != other->always_last)
        o->always_last = usual->always_last;
    if (o->policy != other->policy)
        o->policy = usual->policy;
    if (o->compress != other->compress || o->compacts != other->compacts) {
        o->compress = usual->compress;
        o->compacts = usual->compacts;
    }
    o->names_keys = o->names_keys && other->names_keys;
}

struct rv_history_opts rv_chat_shared_history_opts(const struct rv_chat_settings *settings,
                                                   const struct rv_pipeline *pipeline)
{
    struct rv_history_opts shared = settings->history;
    bool is_first = true;

    for (size_t i = 0; i < pipeline->n_agents; i++) {
        const struct rv_agent *a = &pipeline->agents[i];
        if (!a->declared.doc || !a->session.joins || a->declared.doc->context_token_budget < 0)
            continue; /* it is shown no history */
        struct rv_history_opts o = rv_chat_history_opts(settings, a->declared.doc);
        if (is_first)
            shared = o;
        else
            agree(&shared, &o, &settings->history);
        is_first = false;
    }
    return shared;
}

int rv_chat_choose_moment_opts(const struct rv_chat_settings *settings, const struct rv_agentdoc *doc,
                               struct rv_moment_opts *out, rv_err **err)
{
    *out = settings->moments;
    if (doc->moment_max_inject != RV_UNSET)
        out->max_inject = doc->moment_max_inject;
    if (doc->moment_max_tokens != RV_UNSET)
        out->max_tokens = doc->moment_max_tokens;
    return rv_moment_opts_check(out, err);
}
