/* Waits until a file changes: inotify on the folders of pipelines. */
#include "coreengine/cli/verbs/watch_internal.h"

#include "coreengine/base/base.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define QUIET_MS 100 /* without a further change: an editor has written all its files */

static const uint32_t changes = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE;

static int refuse(const char *path, int number, rv_err **err)
{
    if (number != ENOSPC)
        return RV_FAIL_SYSTEM(err, number, "cannot watch folder \"%s\"", path);
    int rc = RV_FAIL(err, RV_E_LIMIT, "cannot watch folder \"%s\": the system allows this user no more watches", path);
    rv_err_set_hint(err, "raise fs.inotify.max_user_watches with sysctl, or end other programs that watch files");
    return rc;
}

/* A folder in that of a file. One that is gone meanwhile, or that cannot be read, has nothing that a run reads. */
static int add_inner(int fd, const char *path, rv_err **err)
{
    if (inotify_add_watch(fd, path, changes | IN_ONLYDIR) >= 0 || errno == ENOENT || errno == ENOTDIR ||
        errno == EACCES)
        return 0;
    return refuse(path, errno, err);
}

/* A folder and the folders in it. */
static int add_folder(int fd, const char *path, rv_err **err)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int rc = dir && inotify_add_watch(fd, path, changes) >= 0 ? 0 : refuse(path, errno, err);

    while (rc == 0 && (rc = rv_folder_next(dir, path, &entry, err)) == 0 && entry) {
        char inner[PATH_MAX];
        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner)
            rc = add_inner(fd, inner, err);
    }
    if (dir)
        closedir(dir);
    return rc;
}

static int add_files(int fd, const struct rv_cli_files *files, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < files->n; i++) {
        const char *slash = strrchr(files->paths[i], '/');
        char *folder = slash
                           ? strndup(files->paths[i], slash == files->paths[i] ? 1 : (size_t)(slash - files->paths[i]))
                           : strdup(".");
        rc = folder ? add_folder(fd, folder, err) /* a folder that is watched already stays so */
                    : RV_FAIL(err, RV_E_NOMEM, "watch files");
        free(folder);
    }
    return rc;
}

int cli_watch_begin(const struct rv_cli_files *files, struct rv_cli_watch *out, rv_err **err)
{
    int fd = inotify_init1(IN_CLOEXEC);
    int rc = fd < 0 ? RV_FAIL_SYSTEM(err, errno, "cannot watch files") : add_files(fd, files, err);

    if (rc == 0) {
        out->fd = fd;
        return 0;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

/* False: nothing came within that time. */
static bool drain(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char events[4096];

    if (poll(&p, 1, timeout_ms) <= 0)
        return false;
    return read(fd, events, sizeof events) > 0;
}

void cli_watch_wait(const struct rv_cli_watch *w)
{
    while (!drain(w->fd, -1))
        ;
    while (drain(w->fd, QUIET_MS))
        ;
}

void cli_watch_end(struct rv_cli_watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}
