/* Runs whose recovery ends the process that does it, such as those that call a plugin that crashes: the process of
 * their own that is all they can end. */
#include "coreengine/cli/runs/runs.h"

#include "coreengine/base/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* --- the process --- */

#define MAX_WORDS_BYTES ((size_t)1 << 20)

/* What this command was given, for the verb that recovers one run. The texts stand in `room`. */
static const char **child_words(const struct rv_cli_args *args, const char *run, rv_buf *room)
{
    const char **words = calloc(args->n_given + 5, sizeof *words);
    size_t n = 0, at = 0;

    for (size_t i = 0; i < args->n_given; i++) {
        const char *value = args->given[i].value;
        rv_buf_printf(room, "--%s%s%s", args->given[i].option->name, value ? "=" : "", value ? value : "");
        rv_buf_add(room, "", 1);
    }
    if (!words || room->rc < 0) {
        free(words);
        return NULL;
    }
    words[n++] = "reeve";
    words[n++] = "run-host";
    for (size_t i = 0; i < args->n_given; i++) {
        words[n++] = rv_buf_cstr(room) + at;
        at += strlen(rv_buf_cstr(room) + at) + 1;
    }
    words[n++] = "--";
    words[n] = run;
    return words;
}

static int plan(void *self, posix_spawn_file_actions_t *files)
{
    (void)self;
    return posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
}

/* Signals that end a command are the child's while it runs. A terminal sends SIGINT to both, others send SIGTERM to
 * this process alone. */
static int wait_for(pid_t pid, const sigset_t *signals)
{
    int how = 0;

    for (;;) {
        pid_t ended = waitpid(pid, &how, WNOHANG);
        if (ended == pid)
            return how;
        if (ended < 0 && errno != EINTR)
            return -1;
        if (sigwaitinfo(signals, NULL) == SIGTERM)
            kill(pid, SIGTERM);
    }
}

int rv_cli_recover_apart(const struct rv_cli_args *args, const char *run, int *status, int *number, rv_err **err)
{
    rv_buf room = RV_BUF_INIT(MAX_WORDS_BYTES);
    sigset_t signals, before;
    pid_t pid = 0;

    const char **words = child_words(args, run, &room);
    if (!words) {
        rv_buf_fini(&room);
        return RV_FAIL(err, RV_E_NOMEM, "start a process for run \"%s\"", run);
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* the parent may have set it to ignored, and then waitpid() reports no end */
    fflush(stdout);
    sigprocmask(SIG_BLOCK, &signals, &before);
    const struct rv_spawn how_to = {
        .program = "/proc/self/exe", .argv = (char *const *)(uintptr_t)words, .mask = &before, .plan = plan};
    int failed = rv_spawn(&how_to, &pid);
    int how = failed ? 0 : wait_for(pid, &signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(words);
    rv_buf_fini(&room);
    if (failed)
        return RV_FAIL(err, RV_E_IO, "start a process for run \"%s\": %s", run, strerror(failed));
    *number = how >= 0 && WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    *status = how >= 0 && WIFEXITED(how) ? WEXITSTATUS(how) : RV_EXIT_FAILED;
    return 0;
}
