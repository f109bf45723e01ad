/* One child process: start, stop, kill, wait. Children are waited for by their id only, so that other code of the
 * process can have children, too, and no handler of SIGCHLD is needed. */
#include "coreengine/tools/plugin/isolated_internal.h"

#include "coreengine/base/liveness.h"
#include "coreengine/base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOST_FD    3       /* the mark of this process's life follows it: see host.c */
#define STEP_NS    200000  /* between two looks at a child that is about to end */
#define LEAVE_US   1000000 /* to close a capability and leave */
#define OBVIOUS_US 100000  /* from the end of a socket to the end of its process */

/* Standard input and output are /dev/null, standard error is ours. Beside the socket a child inherits the mark of this
 * process: as long as the child lives, the owner of the runs that it works for is not gone. */
static int plan(void *self, posix_spawn_file_actions_t *files)
{
    const int *fd = self;
    int mark = rv_liveness_fd(), rc; /* its number is above HOST_FD + 1, so the first dup does not overwrite it */

    if ((rc = posix_spawn_file_actions_adddup2(files, *fd, HOST_FD)) != 0 ||
        (rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0)) != 0 ||
        (rc = posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)) != 0 ||
        (mark >= 0 && (rc = posix_spawn_file_actions_adddup2(files, mark, HOST_FD + 1)) != 0))
        return rc;
    return posix_spawn_file_actions_addclosefrom_np(files, HOST_FD + 1 + (mark >= 0));
}

static int spawn(const char *program, int fd, pid_t *pid)
{
    char name[] = "reeve", verb[] = "capability-host", number[] = "3";
    char *const argv[] = {name, verb, number, NULL};
    sigset_t none;
    const struct rv_spawn how = {.program = program, .argv = argv, .mask = &none, .plan = plan, .self = &fd};

    sigemptyset(&none);
    return rv_spawn(&how, pid);
}

int rv_process_start(const char *program, struct rv_process **out, rv_err **err)
{
    struct rv_process *c = calloc(1, sizeof *c);
    int ends[2], rc;

    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "start a capability's process");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        free(c);
        return RV_FAIL(err, RV_E_IO, "start a capability's process: no socket: errno %d", errno);
    }
    rc = spawn(program, ends[1], &c->pid);
    close(ends[1]);
    if (rc != 0) {
        close(ends[0]);
        free(c);
        return rc == ENOMEM ? RV_FAIL(err, RV_E_NOMEM, "start \"%s\" for a capability", program)
                            : RV_FAIL(err, RV_E_IO, "start \"%s\" for a capability: errno %d", program, rc);
    }
    rv_channel_init(&c->channel, ends[0], RV_CHANNEL_MAX_MANIFEST);
    *out = c;
    return 0;
}

/* True when it is gone; its status is gathered then. */
static bool has_ended(struct rv_process *c, int *status)
{
    pid_t pid = c->pid ? waitpid(c->pid, status, WNOHANG) : -1;

    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    c->pid = 0;
    return true;
}

static bool ends_within(struct rv_process *c, int64_t us, int *status)
{
    int64_t until_us = rv_channel_now_us() + us;

    while (!has_ended(c, status)) {
        struct timespec step = {0, STEP_NS};
        if (rv_channel_now_us() > until_us)
            return false;
        nanosleep(&step, NULL);
    }
    return true;
}

static void end_by_force(struct rv_process *c)
{
    int status;

    if (!c->pid)
        return;
    kill(c->pid, SIGKILL);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    c->pid = 0;
}

void rv_process_kill(struct rv_process *c)
{
    end_by_force(c);
    rv_channel_fini(&c->channel);
    free(c);
}

void rv_process_bury(struct rv_process *c, rv_buf *how)
{
    int status = 0;

    if (!ends_within(c, OBVIOUS_US, &status))
        rv_buf_puts(how, "its process closed the connection and was killed");
    else if (WIFSIGNALED(status) && sigabbrev_np(WTERMSIG(status)))
        rv_buf_printf(how, "its process died of signal %d (SIG%s)", WTERMSIG(status), sigabbrev_np(WTERMSIG(status)));
    else if (WIFSIGNALED(status))
        rv_buf_printf(how, "its process died of signal %d", WTERMSIG(status));
    else
        rv_buf_printf(how, "its process ended with status %d", WEXITSTATUS(status));
    rv_process_kill(c);
}

void rv_process_dismiss(struct rv_process *list)
{
    int64_t until_us = rv_channel_now_us() + LEAVE_US;

    for (struct rv_process *c = list; c; c = c->next)
        rv_channel_fini(&c->channel); /* the end of its input is what tells a child to leave */
    while (list) {
        struct rv_process *next = list->next;
        int64_t left_us = until_us - rv_channel_now_us();
        int status;

        RV_IGNORE(ends_within(list, left_us > 0 ? left_us : 0, &status), "it is killed then");
        rv_process_kill(list);
        list = next;
    }
}
