/* The files that a command writes are none of those that it reads, and each is another one: what is written replaces a
 * file as a whole. Asked before anything runs. */
#include <string.h>
#include <sys/stat.h>

#include "coreengine/cli/cli.h"

static const char *const targets[] = {"record", "save", "failures", "debug-payload"};

static bool is_target(const struct rv_cli_option *option)
{
    for (size_t i = 0; i < RV_COUNT(targets); i++)
        if (strcmp(option->name, targets[i]) == 0)
            return true;
    return false;
}

/* By whatever name. A device, such as /dev/null, is not replaced. */
static bool is_one_file(const char *a, const char *b)
{
    struct stat of_a, of_b;

    if (stat(a, &of_a) < 0 || stat(b, &of_b) < 0)
        return strcmp(a, b) == 0 && strcmp(a, "-") != 0;
    return S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static int refuse(const char *target, const char *what, const char *path, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_INVALID, "--%s and %s are one file, \"%s\"", target, what, path);

    rv_err_set_hint(err, "name another file for --%s: it replaces what is there", target);
    return rc;
}

int cli_check_reads(const struct rv_cli *cli, const char *what, const char *path, rv_err **err)
{
    for (size_t i = 0; i < RV_COUNT(targets); i++) {
        const char *target = cli_value(cli, targets[i]);
        if (target && is_one_file(target, path))
            return refuse(targets[i], what, path, err);
    }
    return 0;
}

/* Words in brackets are a text, and a run file that is continued may be saved where it was. */
static int check_words(const struct rv_cli *cli, const char *name, const char *path, rv_err **err)
{
    const char *args = cli->verb->args;
    bool may_be_one = !args || args[0] == '[' || (strcmp(args, "RUN") == 0 && strcmp(name, "save") == 0);

    for (size_t i = 0; !may_be_one && i < cli->n_words; i++)
        if (is_one_file(path, cli->words[i]))
            return refuse(name, cli->verb->args, cli->words[i], err);
    return 0;
}

/* Wherever it is named, also for a command that does not use it, and what SQLite keeps beside it. */
static int check_store(const struct rv_cli *cli, const char *name, const char *path, rv_err **err)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    rv_buf store = RV_BUF_INIT(1 << 16);
    const char *scheme = "sqlite:";
    rv_err *cause = NULL;
    int rc = rv_app_find_store_path(&cli->app, &store, &cause);

    if (rc < 0) {
        rv_buf_fini(&store);
        if (rc == RV_E_NOMEM)
            return rv_err_pass(err, cause);
        rv_err_free(cause); /* who opens it says so */
        return 0;
    }
    size_t skipped = strncmp(rv_buf_cstr(&store), scheme, strlen(scheme)) == 0 ? strlen(scheme) : 0, len = store.len;
    for (size_t i = 0; rc == 0 && i < RV_COUNT(endings); i++) {
        rv_buf_truncate(&store, len);
        rv_buf_puts(&store, endings[i]);
        if (store.rc == 0 && is_one_file(path, rv_buf_cstr(&store) + skipped))
            rc = refuse(name, "the store", rv_buf_cstr(&store) + skipped, err);
    }
    rv_buf_fini(&store);
    return rc;
}

int cli_check_apart(const struct rv_cli *cli, rv_err **err)
{
    for (size_t i = 0; i < cli->n_given; i++) {
        const struct rv_cli_option *one = cli->given[i].option;
        if (!is_target(one) || !cli->given[i].value)
            continue;
        int rc = check_words(cli, one->name, cli->given[i].value, err);
        if (rc == 0)
            rc = check_store(cli, one->name, cli->given[i].value, err);
        for (size_t k = 0; rc == 0 && k < cli->n_given; k++) {
            const struct rv_cli_option *other = cli->given[k].option;
            rv_buf what = RV_BUF_INIT(100);
            if (other == one || !other->words || strcmp(other->words, "FILE") != 0 || !cli->given[k].value ||
                !is_one_file(cli->given[i].value, cli->given[k].value))
                continue;
            rv_buf_printf(&what, "--%s", other->name);
            rc = refuse(one->name, rv_buf_cstr(&what), cli->given[k].value, err);
            rv_buf_fini(&what);
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}
