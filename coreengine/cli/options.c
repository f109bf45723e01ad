/* Command lines by table: --name VALUE, --name=VALUE, -n VALUE, flags, "--" ends options. A value that begins with "--"
 * can only be given as --name=VALUE. */
#include "coreengine/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct rv_cli_option rv_cli_common_options[] = {
    {"capability-path", 'C', "DIR", "search DIR for capabilities first", "DIR", true},
    {"log-level", 0, "LEVEL", "write log records of this level and above to standard error (default error)",
     "trace debug info warn error off", false},
    {"log-format", 0, "FORMAT", "format of log records (default text)", "text json", false},
    {"no-color", 0, NULL, "do not use colours (as NO_COLOR does)", NULL, false},
    {"debug", 0, NULL, "show the source lines of reeve in errors", NULL, false},
    {"help", 'h', NULL, "show help for this verb", NULL, false},
};
const size_t rv_cli_n_common_options = RV_COUNT(rv_cli_common_options);

const struct rv_cli_takes rv_cli_takes_runs = {"run", "last", "reeve runs list --ids"},
                          rv_cli_takes_sessions = {"session", "", "reeve sessions list --ids"},
                          rv_cli_takes_agents = {"agent", "", "reeve agents list --names"};

const char *rv_cli_short_name(const struct rv_cli_verb *verb)
{
    const char *blank = strchr(verb->name, ' ');
    return blank ? blank + 1 : verb->name;
}

const char *rv_cli_value(const struct rv_cli_args *args, const char *name)
{
    for (size_t i = args->n_given; i-- > 0;)
        if (strcmp(args->given[i].option->name, name) == 0)
            return args->given[i].value;
    return NULL;
}

bool rv_cli_flag(const struct rv_cli_args *args, const char *name)
{
    for (size_t i = 0; i < args->n_given; i++)
        if (strcmp(args->given[i].option->name, name) == 0)
            return true;
    return false;
}

const char *rv_cli_nth(const struct rv_cli_args *args, const char *name, size_t i)
{
    for (size_t k = 0; k < args->n_given; k++)
        if (strcmp(args->given[k].option->name, name) == 0 && i-- == 0)
            return args->given[k].value;
    return NULL;
}

static const struct rv_cli_option *find(const struct rv_cli_verb *verb, rv_str name, char letter)
{
    const struct rv_cli_option *lists[] = {verb->options, rv_cli_common_options};
    const size_t counts[] = {verb->n_options, rv_cli_n_common_options};

    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < counts[l]; i++)
            if (letter ? lists[l][i].letter == letter : rv_str_is(name, lists[l][i].name))
                return &lists[l][i];
    return NULL;
}

static int unknown(const struct rv_cli_verb *verb, const char *word, rv_str name, rv_err **err)
{
    const char *names[128];
    size_t n = 0;

    for (size_t i = 0; i < verb->n_options && n < RV_COUNT(names); i++)
        names[n++] = verb->options[i].name;
    for (size_t i = 0; i < rv_cli_n_common_options && n < RV_COUNT(names); i++)
        names[n++] = rv_cli_common_options[i].name;
    const char *near = rv_nearest(name, names, n);
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown option \"%s\" of `reeve %s`", word, verb->name);
    if (near)
        rv_err_hint(err, "did you mean --%s? `reeve %s --help` lists all", near, verb->name);
    else
        rv_err_hint(err, "`reeve %s --help` lists all options", verb->name);
    return rc;
}

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

static int give(struct rv_cli_args *out, const struct rv_cli_option *o, const char *value, rv_err **err)
{
    if (out->n_given == RV_CLI_MAX_ARGS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d options", RV_CLI_MAX_ARGS);
    if (!o->many && o->arg && rv_cli_value(out, o->name))
        return RV_FAIL(err, RV_E_INVALID, "option --%s is given twice", o->name);
    bool free_text = !o->words || strcmp(o->words, "FILE") == 0 || strcmp(o->words, "DIR") == 0;
    if (value && !free_text && !is_word(o->words, value)) {
        int rc = RV_FAIL(err, RV_E_INVALID, "option --%s does not take \"%s\"", o->name, value);
        rv_err_hint(err, "legal values: %s", o->words);
        return rc;
    }
    out->given[out->n_given].option = o;
    out->given[out->n_given++].value = value;
    return 0;
}

static int not_a_value(const struct rv_cli_option *o, const char *word, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_INVALID, "option --%s needs a value (%s), not \"%s\"", o->name, o->arg, word);

    rv_err_hint(err, "a value that begins with \"--\" is written with an equals sign: --%s=%s", o->name, word);
    return rc;
}

int rv_cli_parse(const struct rv_cli_verb *verb, int argc, char **argv, struct rv_cli_args *out, rv_err **err)
{
    bool only_words = false;

    memset(out, 0, sizeof *out);
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
            return unknown(verb, word, name, err);
        const char *value = eq ? eq + 1 : NULL;
        if (o->arg && !value) {
            if (++i >= argc)
                return RV_FAIL(err, RV_E_INVALID, "option --%s needs a value (%s)", o->name, o->arg);
            value = argv[i];
            if (value[0] == '-' && value[1] == '-') /* an option whose value was forgotten, and another one behind it */
                return not_a_value(o, value, err);
        } else if (!o->arg && value) {
            return RV_FAIL(err, RV_E_INVALID, "option --%s takes no value", o->name);
        }
        int rc = give(out, o, value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int rv_cli_int(const struct rv_cli_args *args, const char *name, int64_t least, int64_t most, int64_t *inout,
               rv_err **err)
{
    const char *text = rv_cli_value(args, name);
    char *end = NULL;

    if (!text)
        return 0;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < least || v > most) /* errno: it was cut to the largest there is */
        return RV_FAIL(err, RV_E_INVALID, "option --%s needs a whole number from %lld to %lld, not \"%s\"", name,
                       (long long)least, (long long)most, text);
    *inout = v;
    return 0;
}
