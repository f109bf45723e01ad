/* Command lines by table: --name VALUE, --name=VALUE, -n VALUE, flags, "--" ends options. A value that begins with "--"
 * can only be given as --name=VALUE. */
#include "coreengine/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- what several verbs have --- */

static const struct rv_cli_option common[] = {
    {"capability-path", 'C', "DIR", "search DIR for capabilities first", "DIR", true},
    {"log-level", 0, "LEVEL", "write log records of this level and above to standard error (default error)",
     "trace debug info warn error off", false},
    {"log-format", 0, "FORMAT", "format of log records (default text)", "text json", false},
    {"no-color", 0, NULL, "do not use colours (as NO_COLOR does)", NULL, false},
    {"debug", 0, NULL, "show the source lines of reeve in errors", NULL, false},
    {"help", 'h', NULL, "show help for this verb", NULL, false},
};
#define STORE                                                                                                          \
    {                                                                                                                  \
        "store", 0, "URL", RV_CLI_STORE_DOC, "FILE", false                                                             \
    }
#define TENANT                                                                                                         \
    {                                                                                                                  \
        "tenant", 0, "ID", "tenant whose data is used (default REEVE_TENANT, else default)", NULL, false               \
    }
#define USER                                                                                                           \
    {                                                                                                                  \
        "user", 'u', "ID",                                                                                             \
            "only data of this user; \"\": only data without an owner (default REEVE_USER, else all data)", NULL,      \
            false                                                                                                      \
    }
#define SCHEMA_DIR                                                                                                     \
    {                                                                                                                  \
        "schema-dir", 0, "DIR", RV_CLI_SCHEMA_DIR_DOC, "DIR", false                                                    \
    }
#define QUOTAS                                                                                                         \
    {                                                                                                                  \
        "quotas", 0, "FILE", RV_CLI_QUOTAS_DOC, "FILE", false                                                          \
    }
static const struct rv_cli_option commits[] = {
    {"sync", 0, "WORD",
     "durability of a commit: full (survives power loss; default), normal (survives a crash of the process), off",
     "full normal off", false},
};
static const struct rv_cli_option stores[] = {STORE, USER, TENANT}, places[] = {STORE, TENANT, SCHEMA_DIR};
static const struct rv_cli_option results[] = {
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
    {"state", 0, NULL, "print the whole state as one JSON object", NULL, false},
    {"events", 'e', NULL, "print each event as a line of JSON instead of the answer", NULL, false},
    {"deltas", 0, NULL, "with --events: also the text of models as it is streamed", NULL, false},
    {"timeline", 't', NULL, "draw the timeline even when the output is not a terminal", NULL, false},
    {"save", 0, "FILE", "write the state here during the run and at its end, for `reeve resume`", "FILE", false},
    {"record", 0, "FILE", "write a script that replays the answers of this run", "FILE", false},
    {"debug-payload", 0, "FILE", "write each request to a provider as one line; - is standard error", "FILE", false},
    {"script", 's', "FILE", "answers for models, stages, tools, hooks and people", "FILE", false},
    {"no-store", 0, NULL, "do not use the store (--save still writes its file)", NULL, false},
    {"mock", 'm', NULL, "use mock handlers in all stages that have one", NULL, false},
};
static const struct rv_cli_option work[] = {
    {"quiet", 'q', NULL, "do not show progress", NULL, false},
    {"workers", 'w', "N", "maximum number of threads for capability code (default 64)", NULL, false},
    {"lease", 0, "SECONDS", RV_CLI_LEASE_DOC, NULL, false},
    QUOTAS,
};
static const struct rv_cli_option sources[] = {
    SCHEMA_DIR,
    {"capability", 0, "NAME", "capability that provides built-in agents (default p8, if it is found; \"\": none)", NULL,
     false},
    {"no-store", 0, NULL, "do not search the store", NULL, false},
};
static const struct rv_cli_option loading[] = {
    SCHEMA_DIR, {"store", 0, "URL", "also search this store for declared agents", "FILE", false}, USER, TENANT};

#define GROUP(name, list) const struct rv_cli_group name = {#list, list, RV_COUNT(list)}
GROUP(cli_common, common);
GROUP(cli_of_stores, stores);
GROUP(cli_of_commits, commits);
GROUP(cli_of_places, places);
GROUP(cli_of_runs, results);
GROUP(cli_of_work, work);
GROUP(cli_of_agents, sources);
GROUP(cli_of_pipelines, loading);
const struct rv_cli_group *const cli_groups[] = {&cli_common,    &cli_of_runs,      &cli_of_work,
                                                 &cli_of_places, &cli_of_stores,    &cli_of_commits,
                                                 &cli_of_agents, &cli_of_pipelines, NULL};

const struct rv_cli_takes cli_takes_runs = {"run", "last", "reeve runs list --ids"},
                          cli_takes_sessions = {"session", "", "reeve sessions list --ids"},
                          cli_takes_any_session = {"session", "last", "reeve sessions list --ids"},
                          cli_takes_agents = {"agent", "", "reeve agents list --names"},
                          cli_takes_tasks = {"task", "", "reeve tasks list --ids"},
                          cli_takes_schedules = {"schedule", "", "reeve schedules list --names"},
                          cli_takes_keys = {"key", "", "reeve keys list --ids"},
                          cli_takes_kinds = {"kind", "", "reeve entities list --ids"};

/* --- verbs --- */

const char *cli_short_name(const struct rv_cli_verb *verb)
{
    const char *blank = strchr(verb->name, ' ');
    return blank ? blank + 1 : verb->name;
}

const struct rv_cli_option *cli_option_at(const struct rv_cli_verb *verb, size_t i)
{
    if (i < verb->n_options)
        return &verb->options[i];
    i -= verb->n_options;
    for (size_t g = 0; g < RV_CLI_MAX_GROUPS && verb->groups[g]; g++) {
        if (i < verb->groups[g]->n)
            return &verb->groups[g]->options[i];
        i -= verb->groups[g]->n;
    }
    return i < cli_common.n ? &cli_common.options[i] : NULL;
}

/* --- what was given --- */

const char *cli_value(const struct rv_cli *cli, const char *name)
{
    for (size_t i = cli->n_given; i-- > 0;)
        if (strcmp(cli->given[i].option->name, name) == 0)
            return cli->given[i].value;
    return NULL;
}

bool cli_flag(const struct rv_cli *cli, const char *name)
{
    for (size_t i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].option->name, name) == 0)
            return true;
    return false;
}

const char *cli_nth(const struct rv_cli *cli, const char *name, size_t i)
{
    for (size_t k = 0; k < cli->n_given; k++)
        if (strcmp(cli->given[k].option->name, name) == 0 && i-- == 0)
            return cli->given[k].value;
    return NULL;
}

int cli_values(const struct rv_cli *cli, const char *name, const char **out, size_t max, size_t *n, rv_err **err)
{
    const char *value;

    *n = 0;
    for (size_t i = 0; (value = cli_nth(cli, name, i)); i++) {
        if (i == max)
            return cli_usage(cli, err, "more than %zu --%s", max, name);
        out[i] = value;
        *n = i + 1;
    }
    return 0;
}

static const struct rv_cli_option *find(const struct rv_cli_verb *verb, rv_str name, char letter)
{
    const struct rv_cli_option *o;

    for (size_t i = 0; (o = cli_option_at(verb, i)); i++)
        if (letter ? o->letter == letter : rv_str_is(name, o->name))
            return o;
    return NULL;
}

int cli_int(const struct rv_cli *cli, const char *name, int64_t least, int64_t most, int64_t *inout, rv_err **err)
{
    const char *text = cli_value(cli, name);
    char *end = NULL;

    if (!text)
        return 0;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < least || v > most) { /* errno: it was cut to the largest there is */
        int rc = RV_FAIL(err, RV_E_INVALID, "option --%s needs a whole number from %lld to %lld, not \"%s\"", name,
                         (long long)least, (long long)most, text);
        const struct rv_cli_option *o = find(cli->verb, rv_str_of(name), 0);
        if (o)
            rv_err_set_hint(err, "--%s %s: %s", name, o->arg, o->doc);
        return rc;
    }
    *inout = v;
    return 0;
}

int cli_span(const struct rv_cli *cli, const char *name, int64_t none, int64_t *inout_us, rv_err **err)
{
    const char *text = cli_value(cli, name);
    int64_t us = 0;

    if (!text)
        return 0;
    int rc = cli_parse_duration(text, &us, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "read --%s", name);
    *inout_us = us > 0 ? us : none;
    return 0;
}

/* --- reading a command line --- */

static bool is_word(const char *words, const char *value)
{
    size_t len = strlen(value);

    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");
        if (n == len && strncmp(w, value, n) == 0)
            return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

static int give(struct rv_cli *out, const struct rv_cli_option *o, const char *value, rv_err **err)
{
    if (out->n_given == RV_CLI_MAX_ARGS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d options", RV_CLI_MAX_ARGS);
    if (!o->many && o->arg && cli_value(out, o->name))
        return RV_FAIL(err, RV_E_INVALID, "option --%s is given twice", o->name);
    bool free_text = !o->words || strcmp(o->words, "FILE") == 0 || strcmp(o->words, "DIR") == 0;
    if (value && !free_text && !is_word(o->words, value)) {
        int rc = RV_FAIL(err, RV_E_INVALID, "option --%s does not take \"%s\"", o->name, value);
        rv_buf words = RV_BUF_INIT(1024);
        for (const char *c = o->words; *c; c++)
            rv_buf_puts(&words, *c == ' ' ? ", " : (char[]){*c, 0});
        rv_err_set_hint(err, "legal values: %s", rv_buf_cstr(&words));
        rv_buf_fini(&words);
        return rc;
    }
    out->given[out->n_given].option = o;
    out->given[out->n_given++].value = value;
    return 0;
}

static int not_a_value(const struct rv_cli_option *o, const char *word, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_INVALID, "option --%s needs a value (%s), not \"%s\"", o->name, o->arg, word);

    rv_err_set_hint(err, "a value that begins with \"--\" is written with an equals sign: --%s=%s", o->name, word);
    return rc;
}

/* The option with a value where it takes none, or the other way round. */
static int misused(const struct rv_cli_option *o, rv_err **err)
{
    int rc = o->arg ? RV_FAIL(err, RV_E_INVALID, "option --%s needs a value (%s)", o->name, o->arg)
                    : RV_FAIL(err, RV_E_INVALID, "option --%s takes no value", o->name);

    rv_err_set_hint(err, "write --%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    return rc;
}

int cli_parse(const struct rv_cli_verb *verb, int argc, char **argv, struct rv_cli *out, rv_err **err)
{
    bool only_words = false;

    out->verb = verb;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (only_words || word[0] != '-' || !word[1]) {
            if (out->n_words == RV_CLI_MAX_ARGS)
                return RV_FAIL(err, RV_E_LIMIT, "more than %d words", RV_CLI_MAX_ARGS);
            out->words[out->n_words++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_words = true;
            continue;
        }
        bool is_long = word[1] == '-';
        const char *eq = is_long ? strchr(word, '=') : NULL;
        rv_str name = is_long ? (rv_str){word + 2, eq ? (size_t)(eq - word - 2) : strlen(word + 2)}
                              : (rv_str){word + 1, strlen(word + 1)};
        const struct rv_cli_option *o = is_long         ? find(verb, name, 0)
                                        : name.len == 1 ? find(verb, name, word[1])
                                                        : NULL;
        if (!o)
            return cli_unknown_option(out, word, name, err);
        const char *value = eq ? eq + 1 : NULL;
        if (o->arg && !value) {
            if (++i >= argc)
                return misused(o, err);
            value = argv[i];
            if (value[0] == '-' && value[1] == '-') /* an option whose value was forgotten, and another one behind it */
                return not_a_value(o, value, err);
        } else if (!o->arg && value) {
            return misused(o, err);
        }
        int rc = give(out, o, value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- the rules of the table --- */

int cli_usage(const struct rv_cli *cli, rv_err **err, const char *fmt, ...)
{
    const struct rv_cli_verb *v = cli->verb;
    rv_buf text = RV_BUF_INIT(4096);
    va_list ap;

    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    int rc = RV_FAIL(err, RV_E_INVALID, "%s", rv_buf_cstr(&text));
    rv_err_set_hint(err, "usage: reeve %s%s%s; `reeve %s --help` has examples", v->name, v->args[0] ? " " : "", v->args,
                    v->name);
    rv_buf_fini(&text);
    return rc;
}

/* The next word of a rule; empty: the rule is over. */
static rv_str next_word(const char **at)
{
    *at += strspn(*at, " ");
    rv_str word = {*at, strcspn(*at, " ;")};

    *at += word.len;
    return word;
}

static bool is_given(const struct rv_cli *cli, rv_str name)
{
    for (size_t i = 0; i < cli->n_given; i++)
        if (rv_str_is(name, cli->given[i].option->name))
            return true;
    return false;
}

/* "json ids": not more than one of them. */
static int check_excludes(const struct rv_cli *cli, const char **at, rv_err **err)
{
    rv_buf all = RV_BUF_INIT(1024);
    rv_str word = next_word(at), next;
    size_t n = 0;

    for (bool first = true; word.len; word = next, first = false) {
        n += is_given(cli, word);
        next = next_word(at);
        rv_buf_printf(&all, "%s--%.*s", first ? "" : next.len ? ", " : " and ", RV_STR_ARG(word));
    }
    *at += **at == ';';
    int rc = n > 1 ? RV_FAIL(err, RV_E_INVALID, "%s exclude each other", rv_buf_cstr(&all)) : 0;
    if (rc < 0)
        rv_err_set_hint(err, "give one of them; `reeve %s --help` says what each does", cli->verb->name);
    rv_buf_fini(&all);
    return rc;
}

/* Words behind a pipeline are its input, most likely, unless they name another one. */
static int too_many_words(const struct rv_cli *cli, rv_err **err)
{
    const struct rv_cli_verb *v = cli->verb;
    const char *word = cli->words[v->max_words];

    if (v->max_words == 0 && find(v, RV_STR_LIT("note"), 0)) {
        int rc = RV_FAIL(err, RV_E_INVALID,
                         word[0] ? "`reeve %s` takes no argument, and was given \"%s\""
                                 : "`reeve %s` takes no argument, and was given an empty one%s",
                         v->name, word);
        rv_err_set_hint(err, "the option --note says what the key is for, such as --note laptop");
        return rc;
    }
    if (!word[0])
        return cli_usage(cli, err, "argument %zu of `reeve %s` is empty, and it does not take that many",
                         v->max_words + 1, v->name);
    if (v->max_words != 1 || !find(v, RV_STR_LIT("input"), 0) || cli_value(cli, "input") || strstr(word, ".y"))
        return cli_usage(cli, err, "`reeve %s` does not take \"%s\"", v->name, word);
    rv_buf line = RV_BUF_INIT(4096);
    rv_buf_printf(&line, "reeve %s ", v->name);
    cli_write_word(cli->words[0], &line);
    rv_buf_puts(&line, " --input ");
    rv_buf input = RV_BUF_INIT(4096);
    for (size_t i = 1; i < cli->n_words; i++)
        rv_buf_printf(&input, "%s%s", i > 1 ? " " : "", cli->words[i]);
    cli_write_word(rv_buf_cstr(&input), &line);
    int rc = RV_FAIL(err, RV_E_INVALID, "`reeve %s` does not take \"%s\"", v->name, word);
    if (input.rc == 0 && line.rc == 0)
        rv_err_set_hint(err, "write the input behind --input: %s", rv_buf_cstr(&line));
    else
        rv_err_set_hint(err, "write the input behind --input, or its file behind --input-file");
    rv_buf_fini(&input);
    rv_buf_fini(&line);
    return rc;
}

int cli_check(const struct rv_cli *cli, rv_err **err)
{
    const struct rv_cli_verb *v = cli->verb;
    int rc = 0;

    if (cli->n_words < v->min_words)
        return cli_usage(cli, err, "`reeve %s` needs %s", v->name, v->args);
    if (cli->n_words > v->max_words)
        return too_many_words(cli, err);
    for (const char *at = v->needs; at && *at && rc == 0; at += *at == ';') {
        rv_str word = next_word(&at), needed = next_word(&at);
        if (is_given(cli, word) && !is_given(cli, needed))
            rc = cli_usage(cli, err, "--%.*s needs --%.*s", RV_STR_ARG(word), RV_STR_ARG(needed));
    }
    for (const char *at = v->excludes; at && *at && rc == 0;)
        rc = check_excludes(cli, &at, err);
    const char *no_store = "no-store store"; /* of every verb that has both */
    return rc == 0 ? check_excludes(cli, &no_store, err) : rc;
}
