#include "tests/crash/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"

#define HANGS_S 900

void world_init(struct world *w, const char *dir, const char *shim, const char *capabilities)
{
    char *real = realpath(dir, NULL); /* as the kernel names open files */

    if (!real)
        rv_kit_die("realpath %s: %s", dir, strerror(errno));
    *w = (struct world){.dir = dir, .shim = shim, .capabilities = capabilities};
    w->store = rv_kit_path(real, "store.db");
    w->effects = rv_kit_path(real, "effects.log");
    free(real);
}

void world_move(struct world *w, const struct rv_kit_postgres *server)
{
    static int n;
    rv_buf url = RV_BUF_INIT(4096);

    w->server = server;
    snprintf(w->schema, sizeof w->schema, "life_%d_%d", (int)getpid(), n++);
    rv_buf_printf(&url, "%s&schema=%s", server->url, w->schema);
    free(w->store);
    w->store = rv_buf_steal(&url, NULL);
}

static void run_sql(const struct world *w, const char *head, const char *tail)
{
    char sql[300];

    snprintf(sql, sizeof sql, "%s%s%s", head, w->schema, tail);
    free(rv_kit_postgres_sql(w->server, sql));
}

/* What a process that was killed had sent is still being done. */
static void wait_for_server(const struct world *w)
{
    char sql[200];

    snprintf(sql, sizeof sql, "SELECT count(*) FROM pg_stat_activity WHERE application_name = '%s'", w->schema);
    for (bool is_idle = false; !is_idle;) {
        char *n = rv_kit_postgres_sql(w->server, sql);
        is_idle = strtol(n, NULL, 10) == 0;
        free(n);
    }
}

void world_fini(struct world *w)
{
    if (w->server)
        run_sql(w, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS ", " CASCADE");
    free(w->store);
    free(w->effects);
}

static void redirect(const char *path, int to)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || dup2(fd, to) < 0)
        _exit(98);
    close(fd);
}

static void set_number(const char *name, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    setenv(name, text, 1);
}

/* In the child. */
static void become(const struct world *w, const char *const *argv, const struct death *death, const char *out,
                   const char *err, const char *count)
{
    int null = open("/dev/null", O_RDONLY);

    dup2(null, STDIN_FILENO);
    redirect(out, STDOUT_FILENO);
    redirect(err, STDERR_FILENO);
    if (w->server)
        setenv("PGAPPNAME", w->schema, 1);
    setenv("REEVE_CRASH_EFFECTS", w->effects, 1); /* the tools of effects.c write there, with or without the shim */
    if (w->capabilities)
        setenv("REEVE_CAPABILITY_PATH", w->capabilities, 1);
    if (death) {
        setenv("LD_PRELOAD", w->shim, 1);
        setenv("REEVE_CRASH_STORE", w->store, 1);
        setenv("REEVE_CRASH_COUNT", count, 1);
        setenv("REEVE_CRASH_HOW", death->how ? death->how : "before", 1);
        set_number("REEVE_CRASH_AT", (uint64_t)death->at);
        set_number("REEVE_CRASH_SEED", death->seed);
    }
    alarm(HANGS_S);
    execv(argv[0], (char *const *)argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(97);
}

static pid_t start(const struct world *w, const char *const *argv, const struct death *death, const char *out,
                   const char *err, const char *count)
{
    pid_t pid = fork();

    if (pid < 0)
        rv_kit_die("fork: %s", strerror(errno));
    if (pid == 0)
        become(w, argv, death, out, err, count);
    return pid;
}

void process_run(const struct world *w, const char *const *argv, const struct death *death, struct ending *out)
{
    char *out_path = rv_kit_path(w->dir, "out"), *err_path = rv_kit_path(w->dir, "err");
    char *count_path = rv_kit_path(w->dir, "count"), *count = NULL;
    int status = 0;

    unlink(count_path);
    pid_t pid = start(w, argv, death, out_path, err_path, count_path);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            rv_kit_die("waitpid: %s", strerror(errno));
    *out = (struct ending){.status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), .count = -1};
    if (w->server && WIFSIGNALED(status))
        wait_for_server(w);
    out->out = rv_kit_read(out_path);
    out->err = rv_kit_read(err_path);
    if (death && access(count_path, R_OK) == 0) {
        count = rv_kit_read(count_path);
        out->count = strtol(count, NULL, 10);
    }
    free(count);
    free(out_path);
    free(err_path);
    free(count_path);
}

void ending_fini(struct ending *e)
{
    free(e->out);
    free(e->err);
    *e = (struct ending){.status = 0};
}
