/* Where verbs find agents. */
#include "coreengine/cli/sources.h"

#include "coreengine/cli/runs/runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int rv_cli_schema_dir(const struct rv_cli_args *args, const char **out, rv_err **err)
{
    const char *dir = rv_cli_value(args, "schema-dir");
    struct stat st;

    if (dir && dir[0] && (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)))
        return RV_FAIL(err, RV_E_NOT_FOUND, "--schema-dir: the folder \"%s\" does not exist", dir);
    if (!dir)
        dir = getenv("P8_SCHEMA_DIR");
    *out = dir && dir[0] ? dir : NULL;
    return 0;
}

void rv_cli_write_source(const struct rv_agents_found *found, rv_buf *b)
{
    static const struct {
        const char *source, *text;
    } texts[] = {{"store", "in the store"}, {"built-in", "built in, by"}, {"file", "in the file"}};
    const char *text = found->source;

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        if (strcmp(found->source, texts[i].source) == 0)
            text = texts[i].text;
    rv_buf_puts(b, text);
    if (found->place && found->place[0] && strcmp(found->source, "store") != 0) {
        rv_buf_putc(b, ' ');
        rv_cli_write_word(found->place, b);
    }
}

void rv_cli_write_hidden(const char *name, const struct rv_agents_found *found, const char *hidden, rv_buf *b)
{
    rv_buf_puts(b, "warning: agent ");
    rv_cli_write_word(name, b);
    rv_buf_puts(b, " is the one ");
    rv_cli_write_source(found, b);
    rv_buf_puts(b, "; it hides the one in the file ");
    rv_cli_write_word(hidden, b);
    rv_buf_puts(b, "\n  hint: give that one another name, or put it into the store with `reeve agents put`\n");
}

void rv_cli_warn_hidden(const rv_agents *agents, const char *name, const struct rv_agents_found *found)
{
    const char *hidden = rv_agents_hidden(agents, name, found);
    rv_buf text = RV_BUF_INIT(16384);

    if (hidden)
        rv_cli_write_hidden(name, found, hidden, &text);
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}

static int open_store(const struct rv_cli *cli, const struct rv_cli_args *args, enum rv_cli_store_use use,
                      rv_store **out, rv_err **err)
{
    if (rv_cli_flag(args, "no-store"))
        return use == RV_CLI_STORE_READ ? 0 : RV_FAIL(err, RV_E_INVALID, "--no-store excludes changes");
    return use == RV_CLI_STORE_READ ? rv_cli_store_open_if_any(cli, args, out, err)
                                    : rv_cli_store_open(cli, args, use, out, err);
}

static bool is_there(char **names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Is the capability of agents that are always at hand on the path? */
static int find_built_in(char **dirs, size_t n_dirs, bool *found, rv_err **err)
{
    char **names = NULL;
    size_t n = 0;

    int rc = rv_plugins_available((const char *const *)dirs, n_dirs, &names, &n, err);
    *found = rc == 0 && is_there(names, n, RV_CLI_BUILT_IN);
    rv_plugins_path_free(names);
    return rc;
}

int rv_cli_open_built_in(const struct rv_cli *cli, const char *base_dir, const char *name, rv_plugins **out,
                         rv_err **err)
{
    struct rv_capability_config which = {.name = name ? name : RV_CLI_BUILT_IN};
    rv_plugins *plugins = NULL;
    char **dirs = NULL;
    size_t n_dirs = 0;
    bool wanted = which.name[0];

    int rc = rv_plugins_path(cli->capability_dirs, cli->n_capability_dirs, base_dir, &dirs, &n_dirs, err);
    if (rc == 0) {
        struct rv_plugins_opts opts = {
            .dirs = (const char *const *)dirs, .n_dirs = n_dirs, .base_dir = base_dir, .log = cli->log};
        rc = rv_plugins_new(&opts, &plugins, err);
    }
    if (rc == 0 && !name)
        rc = find_built_in(dirs, n_dirs, &wanted, err);
    if (rc == 0 && wanted)
        rc = rv_plugins_load(plugins, &which, err);
    rv_plugins_path_free(dirs);
    if (rc < 0)
        rv_plugins_free(plugins);
    else
        *out = plugins;
    return rc;
}

int rv_cli_sources_open(const struct rv_cli *cli, const struct rv_cli_args *args, enum rv_cli_store_use use,
                        struct rv_cli_sources *out, rv_err **err)
{
    const char *dir = NULL;

    *out = (struct rv_cli_sources){.scope = rv_cli_scope(args)};
    int rc = rv_cli_schema_dir(args, &dir, err);
    if (rc == 0)
        rc = open_store(cli, args, use, &out->store, err);
    if (rc == 0)
        rc = rv_cli_open_built_in(cli, ".", rv_cli_value(args, "capability"), &out->plugins, err);
    if (rc == 0) {
        struct rv_agents_opts opts = {
            .store = out->store, .plugins = out->plugins, .dirs = &dir, .n_dirs = dir != NULL, .log = cli->log};
        rc = rv_agents_new(&opts, &out->agents, err);
    }
    if (rc < 0)
        rv_cli_sources_fini(out);
    return rc;
}

void rv_cli_sources_fini(struct rv_cli_sources *s)
{
    rv_agents_free(s->agents);
    rv_plugins_free(s->plugins);
    rv_store_close(s->store);
    memset(s, 0, sizeof *s);
}
