/* Starts a program as a child process, with posix_spawn(): between fork and exec only the C library's own code runs, so
 * that a process with threads can use it. */
#ifndef RV_SPAWN_H
#define RV_SPAWN_H

#include "coreengine/base/base.h"

#include <signal.h>
#include <spawn.h>
#include <sys/types.h>

/* What it points to is borrowed for the call. */
struct rv_spawn {
    const char *program;  /* a path; PATH is not searched */
    char *const *argv;    /* ends with NULL */
    const sigset_t *mask; /* signals that are blocked in the child */
    /* Adds what happens to the descriptors of the child. Returns 0 or an errno. */
    int (*plan)(void *self, posix_spawn_file_actions_t *files);
    void *self;
};

/** The child has the environment of this process. Returns 0 or an errno, as posix_spawn() does. */
RV_MUST_CHECK int rv_spawn(const struct rv_spawn *opts, pid_t *pid);

#endif
