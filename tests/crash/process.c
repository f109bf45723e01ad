#include "tests/crash/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/kit.h"

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

void world_fini(struct world *w)
{
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
