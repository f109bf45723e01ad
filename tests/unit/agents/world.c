#include "tests/unit/agents/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct rv_store_scope ann = {"acme", "ann"}, bob = {"acme", "bob"}, nobody = {"acme", ""};

static void open_store(struct world *w, int store)
{
    RV_AUTO(rv_buf_fini) rv_buf url = RV_BUF_INIT(4096);
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};

    if (store)
        rv_buf_printf(&url, "sqlite:%s/store.db", w->dir);
    else
        rv_buf_puts(&url, "memory:");
    w->url = rv_buf_steal(&url, NULL);
    ck_assert_int_eq(rv_store_open(w->url, &opts, &w->store, NULL), 0);
}

static void load_plugins(struct world *w)
{
    static const char *const dirs[] = {HOSTILE_DIR, CAPABILITY_DIR};
    const struct rv_plugins_opts opts = {dirs, RV_COUNT(dirs), w->dir, NULL, NULL, NULL};
    const struct rv_capability_config which = {.name = "agents"};

    ck_assert_int_eq(rv_plugins_new(&opts, &w->plugins, NULL), 0);
    ck_assert_msg(rv_plugins_load(w->plugins, &which, &w->err) == 0, "%s", error_of(w));
}

void world_begin(struct world *w, int store, int without)
{
    const char *dirs[2] = {"", NULL};
    struct rv_agents_opts opts = {.dirs = dirs, .n_dirs = 2, .registers = !(without & NOT_REGISTERING)};

    memset(w, 0, sizeof *w);
    w->dir = rv_kit_tmpdir();
    w->folder = rv_kit_path(w->dir, "documents");
    w->time.us = 1000000000;
    rv_kit_log_init(&w->log, RV_LOG_DEBUG, RV_LOG_TEXT);
    if (!(without & NO_STORE))
        open_store(w, store);
    if (!(without & NO_PLUGINS))
        load_plugins(w);
    if (!(without & NO_FOLDER))
        dirs[1] = w->folder;
    opts.store = w->store;
    opts.plugins = w->plugins;
    opts.clock = rv_kit_clock(&w->time);
    opts.log = w->log.log;
    ck_assert_int_eq(rv_agents_new(&opts, &w->agents, NULL), 0);
}

void world_end(struct world *w)
{
    rv_err_free(w->err);
    rv_agents_free(w->agents);
    rv_plugins_free(w->plugins);
    rv_store_close(w->store);
    rv_kit_log_fini(&w->log);
    free(w->url);
    free(w->folder);
    rv_kit_tmpdir_remove(w->dir);
}

void world_file(struct world *w, const char *name, const char *text)
{
    static int64_t seconds = 1000;
    char *path = rv_kit_path(w->folder, name);
    struct timespec times[2] = {{0, 0}, {0, 0}};

    ck_assert(mkdir(w->folder, 0755) == 0 || errno == EEXIST);
    rv_kit_write(path, text);
    times[0].tv_sec = times[1].tv_sec = ++seconds;
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

void world_no_file(struct world *w, const char *name)
{
    char *path = rv_kit_path(w->folder, name);

    ck_assert_int_eq(unlink(path), 0);
    free(path);
}

void world_put(struct world *w, const struct rv_store_scope *scope, bool own, const char *text)
{
    rv_err_free(w->err);
    w->err = NULL;
    ck_assert_msg(
        rv_agents_put(w->agents, scope,
                      &(const struct rv_agent_text){.user_own = own, .text = rv_str_of(text), .file = "mine.yaml"},
                      NULL, &w->err) == 0,
        "%s", error_of(w));
}

int world_find(struct world *w, const struct rv_store_scope *scope, const char *name)
{
    rv_err_free(w->err);
    w->err = NULL;
    return rv_agents_find(w->agents, scope, name, &w->found, &w->err);
}

void must_find(struct world *w, const struct rv_store_scope *scope, const char *name, const char *source,
               const char *prompt)
{
    ck_assert_msg(world_find(w, scope, name) == 0, "%s", error_of(w));
    ck_assert_str_eq(w->found.doc->name, name);
    ck_assert_str_eq(w->found.source, source);
    ck_assert_str_eq(w->found.doc->description, prompt);
    ck_assert_ptr_nonnull(w->found.place);
}

const char *error_of(const struct world *w)
{
    static char text[16384];
    rv_buf b = RV_BUF_INIT(sizeof text - 1);

    rv_err_write_text(w->err, false, &b);
    snprintf(text, sizeof text, "%s", rv_buf_cstr(&b));
    rv_buf_fini(&b);
    return text;
}

int64_t version_of(const struct world *w)
{
    int64_t version = 0;

    ck_assert_int_eq(rv_store_read_schemas_version(w->store, &version, NULL), 0);
    return version;
}
