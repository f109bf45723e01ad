/* One call of posix_spawn() with its attributes and file actions. */
#include "coreengine/base/system.h"

#include <unistd.h>

extern char **environ;

int rv_spawn(const struct rv_spawn *opts, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int rc = posix_spawn_file_actions_init(&files);

    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        if ((rc = opts->plan(opts->self, &files)) == 0 && (rc = posix_spawnattr_setsigmask(&attr, opts->mask)) == 0 &&
            (rc = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK)) == 0)
            rc = posix_spawn(pid, opts->program, &files, &attr, opts->argv, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return rc;
}
