/* An option that a verb does not have: what its author may have meant, or which verb has it. */
#include <stdio.h>
#include <string.h>

#include "coreengine/cli/cli.h"

#define MAX_NAMES 8 /* of options or verbs in one hint: a line or two; `--help` lists all */

static bool has(const struct rv_cli_verb *verb, const char *name)
{
    const struct rv_cli_option *o;

    for (size_t i = 0; (o = cli_option_at(verb, i)); i++)
        if (strcmp(o->name, name) == 0)
            return true;
    return false;
}

/* What other programs call an option of this one. The first pair counts whose option the verb has. */
static const char *other_word(const struct rv_cli_verb *verb, rv_str name)
{
    static const char *const words[][2] = {
        {"port", "listen"},       {"host", "listen"},
        {"bind", "listen"},       {"address", "listen"},
        {"cert", "certificate"},  {"tls-key", "certificate-key"},
        {"prompt", "input"},      {"tls-cert", "certificate"},
        {"message", "input"},     {"query", "input"},
        {"text", "input"},        {"prompt", "message"},
        {"input", "message"},     {"system", "instruction"},
        {"file", "input-file"},   {"db", "store"},
        {"database", "store"},    {"verbose", "debug"},
        {"v", "debug"},           {"silent", "quiet"},
        {"dry", "dry-run"},       {"yes", "approve"},
        {"no", "deny"},           {"reject", "deny"},
        {"answer", "text"},       {"message", "text"},
        {"var", "set"},           {"vars", "set"},
        {"param", "set"},         {"params", "set"},
        {"output", "json"},       {"format", "json"},
        {"reporter", "json"},     {"o", "json"},
        {"stream", "deltas"},     {"trace", "timeline"},
        {"all", "limit"},         {"count", "limit"},
        {"last", "limit"},        {"state", "status"},
        {"jobs", "concurrency"},  {"parallel", "workers"},
        {"threads", "workers"},   {"parallel", "concurrency"},
        {"provider", "model"},    {"llm", "model"},
        {"grep", "filter"},       {"only", "filter"},
        {"agents", "schema-dir"}, {"agents-dir", "schema-dir"},
        {"image", "attach"},      {"file", "attach"},
        {"plugin", "capability"}, {"plugins", "capability-path"},
        {"step", "at"},           {"from", "at"},
    };

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(name, words[i][0]) && has(verb, words[i][1]))
            return words[i][1];
    return NULL;
}

/* What no verb has as an option, and where it is said instead; NULL: nothing known. */
static const char *elsewhere(rv_str name)
{
    static const char *const places[][2] = {
        {"temperature", "write it in the pipeline, at a model or a stage: temperature: 0.2"},
        {"max-tokens", "write it in the pipeline, at a model or a stage: max_tokens: 1000"},
        {"budget", "write it in the pipeline: budget: {usd: 0.10}"},
        {"max-cost", "write it in the pipeline: budget: {usd: 0.10}"},
        {"timeout", "write it in the pipeline, at a stage: timeout_seconds: 30"},
        {"api-key",
         "put the key into the environment, for example OPENAI_API_KEY; `reeve inspect --providers` lists them"},
        {"env-file", "set the variables in the environment, for example by: set -a; . ./FILE; set +a"},
        {"detach", "queue the run by `reeve submit`, for a `reeve worker`"},
        {"background", "queue the run by `reeve submit`, for a `reeve worker`"},
        {"force", "leave it out: the command asks no question"},
        {"version", "use `reeve version`"},
    };

    for (size_t i = 0; i < RV_COUNT(places); i++)
        if (rv_str_is(name, places[i][0]))
            return places[i][1];
    return NULL;
}

/* The verbs that have an option of this name, as "`reeve run`, `reeve test`"; false: none has. */
static bool verbs_with(const struct rv_cli_verb *const *verbs, rv_str name, rv_buf *out)
{
    char text[64];
    size_t n = 0;

    snprintf(text, sizeof text, "%.*s", RV_STR_ARG(rv_utf8_cut(name, 60)));
    for (size_t i = 0; verbs[i]; i++) {
        const struct rv_cli_verb *one[] = {verbs[i], NULL};
        for (const struct rv_cli_verb *const *v = one[0]->subs ? one[0]->subs : one; *v && n < MAX_NAMES; v++)
            if (!(*v)->hidden && has(*v, text))
                rv_buf_printf(out, "%s`reeve %s`", n++ > 0 ? ", " : "", (*v)->name);
    }
    return n > 0;
}

int cli_unknown_option(const struct rv_cli *cli, const char *word, rv_str name, rv_err **err)
{
    const struct rv_cli_verb *verb = cli->verb;
    const struct rv_cli_option *o;
    const char *names[128], *near = other_word(verb, name), *place = elsewhere(name);
    rv_buf text = RV_BUF_INIT(4096);
    size_t n = 0;

    for (; n < RV_COUNT(names) && (o = cli_option_at(verb, n)); n++)
        names[n] = o->name;
    if (!near && !place)
        near = rv_nearest(name, names, n);
    int rc =
        RV_FAIL(err, RV_E_INVALID, "unknown option \"%.*s\" of `reeve %s`", (int)strcspn(word, "="), word, verb->name);
    if (near) {
        rv_err_set_hint(err, "did you mean --%s? `reeve %s --help` lists all", near, verb->name);
    } else if (place) {
        rv_err_set_hint(err, "%s", place);
    } else if (name.len > 1 && verbs_with(cli->verbs, name, &text)) {
        rv_err_set_hint(err, "an option of %s; `reeve %s --help` lists those of this verb", rv_buf_cstr(&text),
                        verb->name);
    } else if (verb->n_options > 0) {
        for (size_t i = 0; i < verb->n_options && i < MAX_NAMES; i++)
            rv_buf_printf(&text, "%s--%s", i > 0 ? ", " : "", verb->options[i].name);
        rv_err_set_hint(err, "options: %s%s; `reeve %s --help` lists all", rv_buf_cstr(&text),
                        verb->n_options > MAX_NAMES ? ", ..." : "", verb->name);
    } else {
        rv_err_set_hint(err, "`reeve %s --help` lists all options", verb->name);
    }
    rv_buf_fini(&text);
    return rc;
}
