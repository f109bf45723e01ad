/* Entry: finds the verb, parses its options, sets up log and terminal, runs it. */
#include "coreengine/cli/cli.h"
#include "coreengine/tools/plugin/plugin.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What other programs call a verb; NULL: nothing known. */
static const char *other_word(const char *name)
{
    static const char *const words[][2] = {
        {"validate", "lint"},    {"check", "lint"},     {"verify", "lint"},      {"init", "new"},
        {"create", "new"},       {"list", "runs list"}, {"ls", "runs list"},     {"ps", "top"},
        {"status", "runs list"}, {"show", "runs show"}, {"eval", "test"},        {"exec", "run"},
        {"start", "run"},        {"execute", "run"},    {"logs", "runs events"}, {"format", "fmt"},
        {"search", "query"},     {"draw", "graph"},     {"ask", "chat"},         {"repl", "chat"},
        {"continue", "resume"},  {"answer", "resume"},  {"import", "ingest"},
    };

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (strcmp(name, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}

/* The same for a verb below another one, of those that there are. */
static const char *word_below(const char *name, const char *const *names, size_t n)
{
    static const char *const words[][2] = {
        {"check", "validate"}, {"lint", "validate"}, {"verify", "validate"}, {"ls", "list"},
        {"get", "show"},       {"cat", "show"},      {"inspect", "show"},    {"create", "add"},
        {"new", "add"},        {"create", "put"},    {"add", "put"},         {"rm", "delete"},
        {"remove", "delete"},  {"del", "delete"},    {"stop", "cancel"},     {"upgrade", "migrate"},
    };

    for (size_t i = 0; i < RV_COUNT(words); i++)
        for (size_t k = 0; k < n && strcmp(name, words[i][0]) == 0; k++)
            if (strcmp(names[k], words[i][1]) == 0)
                return names[k];
    return NULL;
}

static int option_first(struct rv_cli *cli, const char *option)
{
    rv_err *err = NULL;

    if (RV_FAIL(&err, RV_E_INVALID, "the option \"%s\" stands where the verb is expected", option) < 0)
        rv_err_set_hint(&err,
                        "write options behind the verb: `reeve VERB [OPTIONS] ...`; `reeve --help` lists all verbs");
    return cli_report(cli, err);
}

/* parent NULL: a verb, else one below it. */
static int unknown_verb(struct rv_cli *cli, const struct rv_cli_verb *parent, const char *name)
{
    const struct rv_cli_verb *const *list = parent ? parent->subs : cli_verbs;
    const char *names[64], *above = parent ? parent->name : "", *blank = parent ? " " : "";
    size_t n = 0;
    rv_err *err = NULL;

    if (!parent && name[0] == '-')
        return option_first(cli, name);
    for (size_t i = 0; n < RV_COUNT(names) && list[i]; i++)
        if (!list[i]->hidden)
            names[n++] = cli_short_name(list[i]);
    const char *near = parent ? word_below(name, names, n) : other_word(name);
    if (!near)
        near = rv_nearest(rv_str_of(name), names, n);
    if (parent)
        RV_IGNORE(RV_FAIL(&err, RV_E_INVALID, "`reeve %s` does not know \"%s\"", above, name), "reported at once");
    else
        RV_IGNORE(RV_FAIL(&err, RV_E_INVALID, "unknown verb \"%s\"", name), "reported at once");
    if (near)
        rv_err_set_hint(&err, "did you mean `reeve %s%s%s`? `reeve %s%s--help` lists all verbs", above, blank, near,
                        above, blank);
    else
        rv_err_set_hint(&err, "`reeve %s%s--help` lists all verbs", above, blank);
    return cli_report(cli, err);
}

static int print_help(const struct rv_cli *cli, const struct rv_cli_verb *verb)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    cli_write_help(verb, cli, &text);
    cli_out(rv_buf_str(&text));
    rv_buf_fini(&text);
    return RV_EXIT_COMPLETED;
}

static int open_log(struct rv_cli *cli, rv_err **err)
{
    struct rv_log_opts opts = {.level = RV_LOG_ERROR, .format = RV_LOG_TEXT, .fd = STDERR_FILENO};
    const char *level = cli_value(cli, "log-level"), *format = cli_value(cli, "log-format");

    opts.color = cli->err_color;
    cli->app.keeps_log_level = level != NULL;
    if (level) {
        int rc = rv_log_level_of(rv_str_of(level), &opts.level, err);
        if (rc < 0)
            return rc;
    }
    if (format && strcmp(format, "json") == 0)
        opts.format = RV_LOG_JSON;
    cli->app.log = rv_log_new(&opts);
    return cli->app.log ? 0 : RV_FAIL(err, RV_E_NOMEM, "open the log");
}

/* An option counts also when it is empty; a variable that is empty is none. */
static const char *given(const struct rv_cli *cli, const char *option, const char *variable)
{
    const char *value = cli_value(cli, option);

    if (!value && (value = getenv(variable)) && !value[0])
        value = NULL;
    return value;
}

/* --capability of verbs that take one is the one with the built-in agents. Those that take many add them to it, and an
 * empty name leaves it out. */
static const char *built_in(const struct rv_cli *cli)
{
    const char *name = NULL;

    for (size_t i = 0; i < cli->n_given; i++) {
        const struct rv_cli_option *option = cli->given[i].option;
        const char *value = cli->given[i].value;
        if (strcmp(option->name, "capability") == 0 && (!option->many || !value[0]))
            name = value;
    }
    return name;
}

/* Options that several verbs have; one that a verb does not have is not given. With a user only that user's rows exist
 * for the command; without one it sees all of the tenant. */
static int say_where(struct rv_cli *cli, rv_err **err)
{
    struct rv_app *app = &cli->app;
    int64_t seconds = 0;
    int rc = cli_int(cli, "lease", 1, 86400, &seconds, err);

    app->lease_us = seconds * 1000000;
    app->client = "cli";
    app->host_program = "/proc/self/exe";
    app->debug = cli->debug;
    app->schema_dir = cli_value(cli, "schema-dir");
    app->capability = built_in(cli);
    app->store = cli_value(cli, "store");
    app->sync = cli_value(cli, "sync");
    app->quotas = cli_value(cli, "quotas");
    app->no_store = cli_flag(cli, "no-store");
    app->scope = (struct rv_store_scope){.tenant = given(cli, "tenant", "REEVE_TENANT"),
                                         .user = given(cli, "user", "REEVE_USER")};
    const char *tenant = cli_value(cli, "tenant");
    if (rc == 0 && tenant && !tenant[0])
        rc = cli_usage(cli, err, "--tenant is empty: name a tenant, or leave it out for the default one");
    return rc;
}

static int open_store(struct rv_cli *cli, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(4096);
    int rc;

    switch (cli->verb->store) {
    case RV_CLI_OPENS_NONE:
        break;
    case RV_CLI_READS:
        return rv_app_store_open(&cli->app, RV_APP_STORE_READ, &cli->store, err);
    case RV_CLI_READS_IF_ANY:
        rc = rv_app_find_store_path(&cli->app, &path, err); /* without a place nothing is known of what is stored */
        rv_buf_fini(&path);
        if (rc < 0)
            return rc;
        return rv_app_store_open_if_any(&cli->app, &cli->store, err);
    case RV_CLI_CHANGES:
        return rv_app_store_open(&cli->app, RV_APP_STORE_CHANGE, &cli->store, err);
    case RV_CLI_MAKES:
        return rv_app_store_open(&cli->app, RV_APP_STORE_MAKE, &cli->store, err);
    }
    return 0;
}

/* What the verb is about is not there: where all are listed, unless the message has a hint of its own. */
static void hint_at_list(const struct rv_cli *cli, rv_err **err)
{
    const struct rv_cli_takes *takes = cli->verb->takes;
    const rv_err *last = *err;
    bool has_hint = rv_err_hint_text(last);

    while (rv_err_cause(last)) {
        last = rv_err_cause(last);
        has_hint = has_hint || rv_err_hint_text(last);
    }
    if (takes && !has_hint && cli->n_words > 0 && strstr(rv_err_text(last), cli->words[0]))
        rv_err_set_hint(err, "`reeve %ss` lists them", takes->what);
}

static int run_checked(struct rv_cli *cli, rv_err **err)
{
    rv_mcp_lists *lists = rv_mcp_lists_new();
    const char *dirs[RV_CLI_MAX_ARGS];

    if (!lists)
        return RV_FAIL(err, RV_E_NOMEM, "keep lists of MCP servers");
    cli->app.mcp = lists;
    cli->app.capability_dirs = dirs;
    int rc = cli_values(cli, "capability-path", dirs, RV_COUNT(dirs), &cli->app.n_capability_dirs, err);
    if (rc == 0)
        rc = cli_check(cli, err);
    if (rc == 0)
        rc = say_where(cli, err);
    if (rc == 0)
        rc = cli_check_apart(cli, err);
    if (rc == 0)
        rc = open_log(cli, err);
    if (rc == 0)
        rc = open_store(cli, err);
    if (rc == 0)
        rc = cli->verb->run(cli, err);
    if (rc == RV_E_NOT_FOUND)
        hint_at_list(cli, err);
    rv_store_close(cli->store);
    rv_mcp_lists_free(lists);
    return rc;
}

static int run_verb(struct rv_cli *cli, const struct rv_cli_verb *verb, int argc, char **argv)
{
    rv_err *err = NULL;

    int rc = cli_parse(verb, argc, argv, cli, &err);
    if (rc == 0) {
        cli->debug = cli_flag(cli, "debug");
        if (cli_flag(cli, "no-color"))
            cli->out_color = cli->err_color = false;
        if (cli_flag(cli, "help"))
            return print_help(cli, verb);
        rc = run_checked(cli, &err);
    }
    int status = rc < 0 ? cli_report(cli, err) : rc;
    rv_log_free(cli->app.log);
    return status;
}

/* A verb with others below it: the word that follows says which, if one does. */
static int run_below(struct rv_cli *cli, const struct rv_cli_verb *verb, int argc, char **argv)
{
    const char *word = argc > 0 ? argv[0] : "";

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_help(cli, verb);
    if (!word[0] || word[0] == '-')
        return run_verb(cli, verb->subs[0], argc, argv);
    const struct rv_cli_verb *sub = cli_find_verb(verb->name, word);
    return sub ? run_verb(cli, sub, argc - 1, argv + 1) : unknown_verb(cli, verb, word);
}

static int help(struct rv_cli *cli, int argc, char **argv)
{
    const struct rv_cli_verb *verb = argc > 0 ? cli_find_verb(argv[0], NULL) : NULL;

    if (argc > 0 && !verb)
        return unknown_verb(cli, NULL, argv[0]);
    if (argc < 2 || !verb->subs)
        return print_help(cli, verb);
    const struct rv_cli_verb *sub = cli_find_verb(argv[0], argv[1]);
    return sub ? print_help(cli, sub) : unknown_verb(cli, verb, argv[1]);
}

/* The next file that is opened would take the place of a closed standard stream. The file that takes its place here
 * fails like a closed stream: reading input and writing output fail; lost messages do not. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 1 ? O_RDONLY : O_WRONLY) != fd)
            _exit(RV_EXIT_FAILED);
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool plain = (no_color && no_color[0]) || (term && strcmp(term, "dumb") == 0);
    struct rv_cli cli = {.verbs = cli_verbs, .out_tty = isatty(STDOUT_FILENO), .err_tty = isatty(STDERR_FILENO)};

    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that may not grow */
    rv_plugins_report_crashes();
    rv_store_spare_counts();
    cli.out_color = cli.out_tty && !plain;
    cli.err_color = cli.err_tty && !plain;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        int status = print_help(&cli, NULL);
        return cli_flush(argc < 2 ? RV_EXIT_USAGE : status, false);
    }
    const char *name = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    if (strcmp(name, "help") == 0)
        return cli_flush(help(&cli, argc - 2, argv + 2), false);
    const struct rv_cli_verb *verb = cli_find_verb(name, NULL);
    int status = !verb        ? unknown_verb(&cli, NULL, name)
                 : verb->subs ? run_below(&cli, verb, argc - 2, argv + 2)
                              : run_verb(&cli, verb, argc - 2, argv + 2);
    return cli_flush(status, cli.verb && cli.verb->outlives_reader && !cli_flag(&cli, "help"));
}
